package web

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"holdfast/store/ledger"
)

// tool is a call of the API as the Model Context Protocol has it. None decides
// what is for people: there is no tool that approves, clears or settles.
type tool struct {
	name, description string
	scope             string
	arguments         []argument
	hints             hints
	call              func(toolCall) (answer, error)
	action            *ledger.ActionType // of a tool that submits
}

// hints are what a host may make of a tool. idempotent is true only where the
// call cannot be made without an operation_id: a host that believes it repeats
// a call by itself, and the name is what makes that harmless.
type hints struct{ reads, idempotent, destroys, reachesOut bool }

// argument is a member of the object that a tool takes.
type argument struct {
	name     string
	required bool
	schema   string // JSON; empty: the action type's
}

// toolCall is one call: by whom, with what.
type toolCall struct {
	ctx   context.Context
	who   caller
	in    memberReader
	trace string
}

func (t tool) names() (all []string) {
	for _, a := range t.arguments {
		all = append(all, a.name)
	}
	return all
}

// isFor reports whether a token may use the tool at all.
func (t tool) isFor(who caller) bool {
	return who.holds(t.scope) == nil && (t.action == nil || who.mayUse(t.action.Name, t.action.Rail) == nil)
}

// described is the tool as a client sees it.
func (t tool) described() *mcp.Tool {
	var members, required []string
	for _, a := range t.arguments {
		if a.schema == "" {
			a.schema = payloadSchema(t.action)
		}
		members = append(members, fmt.Sprintf("%q:%s", a.name, a.schema))
		if a.required {
			required = append(required, strconv.Quote(a.name))
		}
	}
	schema := fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`, strings.Join(members, ","), strings.Join(required, ","))
	return &mcp.Tool{Name: t.name, Description: t.description, InputSchema: json.RawMessage(schema), Annotations: &mcp.ToolAnnotations{
		ReadOnlyHint: t.hints.reads, IdempotentHint: t.hints.idempotent, DestructiveHint: &t.hints.destroys, OpenWorldHint: &t.hints.reachesOut}}
}

// said is an argument that is described in one sentence.
func said(kind, description string) string {
	return fmt.Sprintf(`{%s,"description":%q}`, kind, description)
}

func aText(most int) string { return fmt.Sprintf(`"type":"string","maxLength":%d`, most) }

const aName = `"type":"string","pattern":"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"`

var (
	theName = argument{"operation_id", true, said(aName, "The purchase's one name, for ever. Name it once, after what it is (inv-481-charge), store the name before the first call, and give the same one every time.")}
	theRun  = argument{"run_id", false, said(aText(128), "Which run of yours asks; the run has one retry budget.")}
	theStep = argument{"step", false, said(aText(128), "Which step of the run it is: a step that is planned again is then recognised as the same purchase.")}
	theWait = argument{"wait", false, said(`"type":"integer","minimum":0,"maximum":60`, "Seconds to wait for the outcome before answering.")}
)

// tools are all that a tenant has, those that submit first.
func (s *Server) tools(tenant string) []tool {
	actions := s.Store.Rulebook(tenant).Actions
	var all []tool
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		all = append(all, s.submitTool(actions[name]))
	}
	return append(all,
		tool{name: "reserve_operation", scope: "operations:write", hints: hints{}, call: func(t toolCall) (answer, error) { return s.reserve(t.ctx, t.who, t.in) },
			description: "Get an operation_id for a purchase before it is planned in detail, or get back the one that it has: the same action_type and reference (or run_id and step) always give the same operation_id. " +
				"Use it when you have lost the name of a purchase. Store operation_id and submit under it. Sends nothing.",
			arguments: []argument{
				{"action_type", true, said(aText(64), "What is to be done; the submit tools have it in their name.")},
				{"reference", false, said(aText(256), "The invoice, order or ticket that the purchase is for.")}, theRun, theStep,
				{"quote", false, `{"type":"object","minProperties":1,"description":"An offer that the purchase must agree with later.","properties":{"id":{"type":"string","maxLength":256},"amount":{"type":"integer","minimum":1},"currency":{"type":"string","maxLength":16},"recipient":{"type":"string","maxLength":512},"expires_at":{"type":"string","maxLength":64}},"additionalProperties":false}`},
			}},
		tool{name: "get_operation", scope: "operations:read", hints: hints{reads: true, idempotent: true}, call: s.getOperation,
			description: "Ask where an operation stands, and do what next says. Free, and safe to repeat. With wait it answers as soon as the outcome is known.",
			arguments:   []argument{theName, theWait}},
		tool{name: "list_operations", scope: "operations:read", hints: hints{reads: true}, call: s.listOperations,
			description: "List operations, newest first. Use it to find a purchase whose name you have lost, by its reference, before you submit anything.",
			arguments: []argument{
				{"status", false, said(`"type":"string"`, "One status or several, joined by commas: "+statusWords()+".")},
				{"action_type", false, said(aText(64), "Only of this action type.")},
				{"reference", false, said(aText(256), "Only with this reference.")},
				{"run_id", false, said(aText(128), "Only of this run.")},
				{"cursor", false, said(`"type":"string"`, "next_cursor of the page before, with the same filter.")},
				{"limit", false, said(`"type":"integer","minimum":1,"maximum":200`, "How many at most.")},
			}},
		tool{name: "cancel_operation", scope: "operations:write", hints: hints{idempotent: true, destroys: true}, call: s.cancelOperation,
			description: "Take an operation back while nothing was sent. If that is too late the result is already_dispatched: do what its next says.",
			arguments:   []argument{theName}},
		tool{name: "get_run", scope: "operations:read", hints: hints{reads: true}, call: s.getRun,
			description: "Ask how many retries a run has left, over all its layers. Free.",
			arguments:   []argument{{"run_id", true, said(aText(128), "The run.")}}},
	)
}

func statusWords() string {
	var all []string
	for _, status := range ledger.Statuses() {
		all = append(all, string(status))
	}
	return strings.Join(all, ", ")
}

// submitTool is POST /v1/operations for one action type, whose schema is the
// payload's. A repeat of what has not ended is answered with where it stands, as
// HTTP answers it to "Prefer: respond-async": for a tool that is no error.
func (s *Server) submitTool(action *ledger.ActionType) tool {
	names := fmt.Sprintf(`{"type":"array","maxItems":100,"items":{%s},"description":`, aName)
	return tool{name: "submit_" + action.Name, scope: "operations:write", action: action,
		hints: hints{idempotent: true, destroys: true, reachesOut: true},
		description: "Ask for one " + action.Name + ". It is recorded under operation_id, approved where a person must approve it, sent once, and its outcome found out. " +
			"Keep the operation_id. On any error, timeout or lost answer call this again with the same operation_id and the same payload: that never pays twice. " +
			"Never make up another operation_id for the same purchase. Then do what next says.",
		arguments: []argument{theName,
			{"payload", true, ""},
			theRun, {"parent_run_id", false, said(aText(128), "The run that started this one.")}, theStep,
			{"distinct_from", false, names + `"Operations that look like this one and are other purchases. A person reads it; it decides nothing by itself."}`},
			{"because", false, said(aText(1000), "Why they are other purchases.")},
			{"replaces", false, said(aName, "An operation of which nothing was sent, and which this one, with changed arguments, is to stand for.")},
			{"after", false, names + `"Wait until these operations are confirmed."}`},
			theWait},
		call: func(t toolCall) (answer, error) {
			prefer, err := t.preference()
			if err != nil {
				return answer{}, err
			}
			t.in.members["action_type"] = action.Name
			sub, err := t.in.submission(t.trace, nil)
			if err != nil {
				return answer{}, err
			}
			return s.register(t.ctx, t.who, sub, prefer)
		}}
}

// preference is "Prefer: wait=N, respond-async".
func (t toolCall) preference() (preference, error) {
	seconds := t.in.integer("wait")
	if seconds != nil && *seconds < 0 {
		t.in.refuse("/wait", "send a number from 0 to 60", true)
	}
	if t.in.wrong != nil || seconds == nil {
		return preference{async: true}, t.in.wrong
	}
	return preference{wait: min(time.Duration(min(*seconds, 3600))*time.Second, longestWait), async: true}, nil
}

// operation reads the name, without which nothing is looked for.
func (t toolCall) operation() (string, error) {
	id := t.in.text("operation_id", 0)
	if t.in.wrong == nil && id == "" {
		return "", newProblem("operation_id_required", "")
	}
	return id, t.in.wrong
}

func (s *Server) getOperation(t toolCall) (answer, error) {
	id, err := t.operation()
	if err != nil {
		return answer{}, err
	}
	prefer, err := t.preference()
	if err != nil {
		return answer{}, err
	}
	return s.look(t.ctx, t.who, id, prefer)
}

func (s *Server) cancelOperation(t toolCall) (answer, error) {
	id, err := t.operation()
	if err != nil {
		return answer{}, err
	}
	return s.takeBack(t.ctx, t.who, id)
}

func (s *Server) listOperations(t toolCall) (answer, error) {
	q := url.Values{}
	for _, name := range []string{"status", "action_type", "reference", "run_id", "cursor"} {
		if _, given := t.in.members[name]; given {
			q.Set(name, t.in.text(name, 0))
		}
	}
	if limit := t.in.integer("limit"); limit != nil {
		q.Set("limit", strconv.FormatInt(*limit, 10))
	}
	if t.in.wrong != nil {
		return answer{}, t.in.wrong
	}
	return s.page(t.ctx, t.who, q)
}

func (s *Server) getRun(t toolCall) (answer, error) {
	id := t.in.text("run_id", 128)
	if t.in.wrong != nil {
		return answer{}, t.in.wrong
	}
	return s.lookAtRun(t.ctx, t.who, id)
}

// payloadSchema is an action type's schema at its place in a tool's. References
// to the schema's own root lead there, and what the schema says about the
// protocol itself is left out.
func payloadSchema(action *ledger.ActionType) string {
	schema, err := ledger.ParseStrict(action.Schema)
	if err != nil {
		panic(err) // it was compiled
	}
	root, ok := schema.(map[string]any)
	if !ok {
		return string(action.Schema) // true or false
	}
	_, ownRoot := root["$id"]
	delete(root, "$schema") // belongs at the top of a document
	text, err := json.Marshal(moved(root, !ownRoot))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// moved is a schema whose references follow it to its place.
func moved(v any, refer bool) any {
	schema, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for keyword, value := range schema {
		switch keyword {
		case "const", "enum", "default", "examples": // values, not schemas
		case "$ref", "$dynamicRef":
			if ref, ok := value.(string); ok && refer && (ref == "#" || strings.HasPrefix(ref, "#/")) {
				schema[keyword] = "#/properties/payload" + ref[1:]
			}
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			if named, ok := value.(map[string]any); ok {
				for name, inner := range named {
					named[name] = moved(inner, refer)
				}
			}
		default:
			if list, ok := value.([]any); ok {
				for i, inner := range list {
					list[i] = moved(inner, refer)
				}
				continue
			}
			schema[keyword] = moved(value, refer)
		}
	}
	return schema
}

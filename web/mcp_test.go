package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"holdfast/store/ledger"
)

// toolHost is what runs an agent: a real client of the protocol, over a real
// socket, whose network may lose the answers of tools.
type toolHost struct {
	t           testing.TB
	base, token string
	loses       atomic.Bool
	lost        atomic.Pointer[[]byte] // the answer that was lost last
}

// host gives an agent a host; the server listens for it.
func (a agent) host() *toolHost {
	a.t.Helper()
	server := httptest.NewServer(a.handler)
	a.t.Cleanup(server.Close)
	return &toolHost{t: a.t, base: server.URL, token: a.token}
}

var errAnswerLost = errors.New("the connection was cut before the answer")

func (h *toolHost) RoundTrip(q *http.Request) (*http.Response, error) {
	var body []byte
	if q.Body != nil {
		body, _ = io.ReadAll(q.Body)
	}
	q = q.Clone(q.Context())
	q.Body, q.GetBody = io.NopCloser(bytes.NewReader(body)), nil
	q.Header.Set("Authorization", "Bearer "+h.token)
	r, err := http.DefaultTransport.RoundTrip(q)
	if err != nil || !h.loses.Load() || !bytes.Contains(body, []byte(`"tools/call"`)) {
		return r, err
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	h.lost.Store(&answer)
	return nil, errAnswerLost
}

// connect begins a session. What the first one knew is gone.
func (h *toolHost) connect() *mcp.ClientSession {
	h.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test-host", Version: "1"}, nil)
	session, err := client.Connect(h.t.Context(), &mcp.StreamableClientTransport{Endpoint: h.base + "/mcp", HTTPClient: &http.Client{Transport: h}}, nil)
	must(h.t, err)
	h.t.Cleanup(func() { session.Close() })
	return session
}

// toolAnswer is the result of a tool.
type toolAnswer struct {
	failed bool
	said   map[string]any
}

// read checks what holds for every result: the same thing as data and as text.
func read(t testing.TB, r *mcp.CallToolResult) toolAnswer {
	t.Helper()
	a := toolAnswer{r.IsError, map[string]any{}}
	if len(r.Content) != 1 {
		t.Fatalf("the result has %d contents", len(r.Content))
	}
	must(t, json.Unmarshal([]byte(r.Content[0].(*mcp.TextContent).Text), &a.said))
	if !reflect.DeepEqual(r.StructuredContent, any(a.said)) {
		t.Errorf("as data it is %v, as text %v", r.StructuredContent, a.said)
	}
	if _, known := ledger.ProblemFor(fmt.Sprint(a.said["reason"])); a.failed && (!known || a.said["next"] == nil || a.said["terminal"] == nil || a.said["detail"] == "") {
		t.Errorf("it failed, and is no problem: %v", a.said)
	}
	return a
}

func (h *toolHost) call(session *mcp.ClientSession, tool string, arguments any) toolAnswer {
	h.t.Helper()
	r, err := session.CallTool(h.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		h.t.Fatalf("%s: %v", tool, err)
	}
	return read(h.t, r)
}

// use calls a tool in a session of its own.
func (h *toolHost) use(tool, arguments string) toolAnswer {
	h.t.Helper()
	session := h.connect()
	defer session.Close()
	return h.call(session, tool, json.RawMessage(arguments))
}

func (a toolAnswer) is(t testing.TB, reason, next string, failed bool) {
	t.Helper()
	if fmt.Sprint(a.said["reason"]) != reason || a.said["next"] != next || a.failed != failed {
		t.Errorf("answered reason %v next %v, failed %v; want %s %s %v\n%v", a.said["reason"], a.said["next"], a.failed, reason, next, failed, a.said)
	}
}

// equals compares with what HTTP says to the same question.
func (a toolAnswer) equals(t testing.TB, what string, h heard) {
	t.Helper()
	if a.failed != (h.Code >= 400) || !reflect.DeepEqual(a.said, h.said) {
		t.Errorf("%s:\nthe tool says (failed %v) %v\nHTTP says %d %v", what, a.failed, a.said, h.Code, h.said)
	}
}

// tooled is the good submission as a tool takes it.
func tooled(body string) string { return strings.Replace(body, `"action_type":"pay",`, "", 1) }

func (h *toolHost) tools() map[string]*mcp.Tool {
	h.t.Helper()
	session := h.connect()
	defer session.Close()
	listed, err := session.ListTools(h.t.Context(), nil)
	must(h.t, err)
	all := map[string]*mcp.Tool{}
	for _, tool := range listed.Tools {
		all[tool.Name] = tool
	}
	return all
}

// A host calls the submit tool, loses its session before the answer, connects
// anew and calls again with the same arguments.
func TestCase086CallOverADroppedSessionIsOneOperation(t *testing.T) {
	j := startJourney(t, journeyConfig(strings.NewReplacer("SPOILER", "http://127.0.0.1:1", "DOWN", "http://127.0.0.1:1").Replace(journeyRails)))
	h := &toolHost{t: t, base: j.base, token: j.token}
	call := func(id string) string {
		return fmt.Sprintf(`{"operation_id":%q,"payload":{"amount":4800,"currency":"EUR","recipient":"acct-%s","reference":%q},"wait":60}`, id, id, id)
	}
	t.Run("the answer is lost on the way", func(t *testing.T) {
		h.loses.Store(true)
		if _, err := h.connect().CallTool(t.Context(), &mcp.CallToolParams{Name: "submit_pay", Arguments: json.RawMessage(call("lost"))}); err == nil {
			t.Fatal("the answer came")
		}
		h.loses.Store(false)
		h.use("submit_pay", call("lost")).is(t, "<nil>", "use_result", false)
		j.happened("lost", 1, 1)
	})
	t.Run("the session ends while the provider is at work", func(t *testing.T) {
		must(t, j.book.arm(t.Context(), "dropped", "slow_ms:1500"))
		ctx, drop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		session := h.connect()
		go func() {
			_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "submit_pay", Arguments: json.RawMessage(call("dropped"))})
			ended <- err
		}()
		soon(t, "it is being sent", func() bool {
			o, err := j.Store.Operation(t.Context(), "default", "dropped")
			return err == nil && o.Status == ledger.InFlight
		})
		drop()
		if err := <-ended; err == nil {
			t.Fatal("the answer came")
		}
		session.Close()
		a := h.use("submit_pay", call("dropped"))
		a.is(t, "<nil>", "use_result", false)
		j.happened("dropped", 1, 1)
		if result, _ := a.said["result"].(map[string]any); result["id"] != j.effectsOf("dropped")[0].ID {
			t.Errorf("the agent is told %v", result)
		}
	})
	t.Run("without a name", func(t *testing.T) {
		a := h.use("submit_pay", strings.Replace(call("nameless"), `"operation_id":"nameless",`, "", 1))
		a.is(t, "operation_id_required", "fix_request", true)
		if !strings.Contains(fmt.Sprint(a.said["detail"]), "operation_id") {
			t.Error(a.said["detail"])
		}
		j.happened("nameless", 0, 0)
	})
}

// A host believes the hints and repeats a call whose answer it lost.
func TestCase088HintsAreTrueAndARepeatIsTheSame(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	h := a.host()
	a.submit(withLineage("op-A", "run-9", "charge")).is(t, 202, "", "wait", false)
	tools := h.tools()
	calls := map[string]string{
		"submit_pay":        tooled(named("op-B")),
		"submit_refund":     tooled(named("op-C")),
		"submit_watched":    tooled(named("op-D")),
		"reserve_operation": by("reference", "invoice-7"),
		"get_operation":     `{"operation_id":"op-A"}`,
		"list_operations":   `{"run_id":"run-9"}`,
		"cancel_operation":  `{"operation_id":"op-C"}`,
		"get_run":           `{"run_id":"run-9"}`,
	}
	if got, want := slices.Sorted(maps.Keys(tools)), slices.Sorted(maps.Keys(calls)); !slices.Equal(got, want) {
		t.Fatalf("the tools are %v, want %v: none of them may approve, clear or settle", got, want)
	}
	for _, name := range []string{"submit_pay", "submit_refund", "submit_watched", "reserve_operation", "get_operation", "list_operations", "cancel_operation", "get_run"} {
		tool := tools[name]
		demands := slices.Contains(required(tool), "operation_id")
		submits, reads := strings.HasPrefix(name, "submit_"), strings.HasPrefix(name, "get_") || strings.HasPrefix(name, "list_")
		hints := tool.Annotations
		if hints.IdempotentHint != demands || hints.ReadOnlyHint != reads || *hints.OpenWorldHint != submits || *hints.DestructiveHint != (submits || name == "cancel_operation") {
			t.Errorf("%s demands an operation_id: %v; its hints are %+v", name, demands, hints)
		}
		before := a.count("default")
		h.loses.Store(true)
		if _, err := h.connect().CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(calls[name])}); err == nil {
			t.Fatal("the answer came")
		}
		h.loses.Store(false)
		var lost struct {
			Result struct{ StructuredContent map[string]any }
		}
		must(t, json.Unmarshal(*h.lost.Load(), &lost))
		again := h.use(name, calls[name])
		if again.failed || len(again.said) == 0 || !reflect.DeepEqual(again.said, lost.Result.StructuredContent) {
			t.Errorf("%s: the answer that was lost: %v\nthe repeat (failed %v): %v", name, lost.Result.StructuredContent, again.failed, again.said)
		}
		more := 0
		if submits {
			more = 1
		}
		if n := a.count("default") - before; n != more {
			t.Errorf("%s made %d operations", name, n)
		}
	}
	a.wantDue("op-A", "op-B")
}

func required(tool *mcp.Tool) (all []string) {
	schema, _ := tool.InputSchema.(map[string]any)
	list, _ := schema["required"].([]any)
	for _, name := range list {
		all = append(all, fmt.Sprint(name))
	}
	return all
}

func TestToolsSayWhatHTTPSays(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	h := a.host()
	// Each is in another state, and told about in the same words.
	a.confirmed("op-done")
	h.use("submit_pay", tooled(withLineage("op-ready", "run-9", "charge"))).is(t, "<nil>", "wait", false)
	h.use("submit_pay", tooled(changed("4800", "200000", "ID", "op-asked"))).is(t, "<nil>", "await_approval", false)
	h.use("submit_pay", tooled(changed("ref-ID", "ref-op-done", "ID", "op-held"))).is(t, "same_reference", "await_human", false)
	denied := h.use("submit_pay", tooled(changed("acct-ID", "acct_bad", "ID", "op-denied")))
	denied.is(t, "policy_denied", "stop", true)
	lost := a.stored("default", "op-ready")
	a.lose(lost)
	for _, id := range []string{"op-done", "op-ready", "op-asked", "op-held", "op-denied"} {
		h.use("get_operation", fmt.Sprintf(`{"operation_id":%q}`, id)).equals(t, id, a.get("/v1/operations/"+id))
	}
	async := "Prefer: respond-async"
	for body, why := range map[string]string{
		named("op-done"): "what has ended", changed("4800", "200000", "ID", "op-asked"): "what waits", changed("ref-ID", "ref-op-done", "ID", "op-held"): "what is held",
		changed("acct-ID", "acct_bad", "ID", "op-denied"): "what was denied", changed("4800", "4900", "ID", "op-done"): "another payload",
		changed("4800", "0", "ID", "op-x"): "a payload that breaks the schema", changed("4800", `48.5`, "ID", "op-x"): "a fraction",
		changed(`"amount"`, `"Amount"`, "ID", "op-x"): "a name in another case", changed("ID", "op x"): "a bad name", changed("4800", "9007199254740993", "ID", "op-x"): "a number too fine",
		strings.Replace(named("op-x"), `}}`, `},"after":["op-none"]}`, 1):     "after what is not there",
		strings.Replace(named("op-x"), `}}`, `},"replaces":"op-done"}`, 1):    "in place of what has ended",
		strings.Replace(named("op-x"), `}}`, `},"replaces":"op-x"}`, 1):       "in place of itself",
		strings.Replace(named("op-x"), `}}`, `},"run_id":7}`, 1):              "a run that is a number",
		strings.Replace(named("op-done"), `"op-done"`, `"op-`+`reserved"`, 1): "another operation's terms",
	} {
		tool, http := h.use("submit_pay", tooled(body)), a.submit(body, async)
		if why == "a number too fine" { // the offset is counted in another text
			delete(tool.said, "offset")
			delete(http.said, "offset")
			tool.said["detail"], http.said["detail"] = "", ""
		}
		tool.equals(t, why, http)
	}
	h.use("list_operations", `{}`).equals(t, "the list", a.get("/v1/operations"))
	h.use("list_operations", `{"status":"unknown_hold,confirmed","limit":1}`).equals(t, "a page", a.get("/v1/operations?limit=1&status=unknown_hold,confirmed"))
	h.use("list_operations", `{"limit":0}`).equals(t, "a page of none", a.get("/v1/operations?limit=0"))
	h.use("list_operations", `{"status":"paid"}`).equals(t, "no status", a.get("/v1/operations?status=paid"))
	h.use("get_run", `{"run_id":"run-9"}`).equals(t, "a run", a.run("run-9"))
	h.use("get_run", `{"run_id":"run-0"}`).equals(t, "no run", a.run("run-0"))
	h.use("get_operation", `{"operation_id":"op-none"}`).equals(t, "no operation", a.get("/v1/operations/op-none"))
	h.use("cancel_operation", `{"operation_id":"op-asked"}`).equals(t, "taken back", a.call(http.MethodPost, "/v1/operations/op-asked/cancel", ""))
	h.use("cancel_operation", `{"operation_id":"op-done"}`).equals(t, "too late", a.call(http.MethodPost, "/v1/operations/op-done/cancel", ""))
	h.use("reserve_operation", by("reference", "inv-7")).equals(t, "an intent", a.intend(by("reference", "inv-7")))
	h.use("reserve_operation", by("reference", "ref-op-done")).equals(t, "an intent of what is there", a.intend(by("reference", "ref-op-done")))
	h.use("reserve_operation", by("run_id", "run-9")).equals(t, "an intent for nothing", a.intend(by("run_id", "run-9")))
	for _, tool := range []string{"get_operation", "cancel_operation"} {
		h.use(tool, `{}`).is(t, "operation_id_required", "fix_request", true)
		h.use(tool, `{"operation_id":"op-done","force":true}`).is(t, "malformed_json", "fix_request", true)
	}
}

func TestToolsSpendOneRetryBudget(t *testing.T) {
	a := newServer(t, strings.Replace(runsConfig, "max_attempts: 3", "max_attempts: 2", 1)).agent("default")
	h := a.host()
	for range 3 {
		h.use("submit_pay", tooled(inRun("op-A", "run-9"))).is(t, "<nil>", "wait", false)
	}
	h.use("submit_pay", tooled(inRun("op-A", "run-9"))).is(t, "retry_budget_exhausted", "stop", true)
	h.use("get_run", `{"run_id":"run-9"}`).equals(t, "the run", a.run("run-9"))
}

func TestToolWaitsForTheOutcome(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	h := a.host()
	answers := make(chan toolAnswer, 1)
	session := h.connect()
	go func() {
		defer close(answers)
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "submit_pay", Arguments: json.RawMessage(strings.Replace(tooled(named("op-A")), `}}`, `},"wait":60}`, 1))})
		if err == nil {
			answers <- read(t, r)
		}
	}()
	a.confirm("op-A")
	got, ok := <-answers
	if !ok {
		t.Fatal("no answer came")
	}
	got.equals(t, "with patience", a.get("/v1/operations/op-A"))
	h.use("get_operation", `{"operation_id":"op-A","wait":-1}`).is(t, "malformed_json", "fix_request", true)
}

func TestTokensSeeTheirOwnToolsOnly(t *testing.T) {
	w := newServer(t, apiConfig)
	narrowed := func(change func(*ledger.TokenRecord)) (agent, *toolHost) {
		t.Helper()
		r := ledger.TokenRecord{TenantID: "default", Agent: "agent-1", Owner: "owner@example.com", Scopes: Scopes[:2], ExpiresAt: w.Store.Now() + time.Hour.Milliseconds()}
		change(&r)
		token, _, err := IssueToken(t.Context(), w.Store, r, ledger.Holder{Kind: ledger.Person, Name: "test"})
		must(t, err)
		a := agent{w, r.TenantID, token}
		return a, a.host()
	}
	theirs := w.agent("t1")
	theirs.submit(named("op-theirs")).is(t, 202, "", "wait", false)

	reads := []string{"get_operation", "get_run", "list_operations"}
	a, h := narrowed(func(r *ledger.TokenRecord) { r.Scopes = []string{"operations:read"} })
	if got := slices.Sorted(maps.Keys(h.tools())); !slices.Equal(got, reads) {
		t.Error("a token that may only read sees ", got)
	}
	h.use("submit_pay", tooled(named("op-A"))).equals(t, "submitting", a.submit(named("op-A")))
	h.use("cancel_operation", `{"operation_id":"op-A"}`).is(t, "forbidden", "stop", true)
	h.use("reserve_operation", by("reference", "r")).is(t, "forbidden", "stop", true)

	a, h = narrowed(func(r *ledger.TokenRecord) { r.Scopes = []string{"operations:write"} })
	h.use("get_operation", `{"operation_id":"op-A"}`).equals(t, "reading", a.get("/v1/operations/op-A"))

	a, h = narrowed(func(r *ledger.TokenRecord) { r.ActionTypes = []string{"pay"} })
	if got := slices.Sorted(maps.Keys(h.tools())); !slices.Equal(got, append([]string{"cancel_operation"}, append(reads, "reserve_operation", "submit_pay")...)) {
		t.Error("a token for pay sees ", got)
	}
	h.use("submit_refund", tooled(named("op-A"))).equals(t, "another action type", a.submit(changed(`"pay"`, `"refund"`, "ID", "op-A")))

	_, h = narrowed(func(r *ledger.TokenRecord) { r.Rails = []string{"wire"} })
	if tools := h.tools(); tools["submit_pay"] != nil || tools["get_operation"] == nil {
		t.Error("a token for another rail sees ", slices.Sorted(maps.Keys(tools)))
	}
	cap := int64(100)
	a, h = narrowed(func(r *ledger.TokenRecord) { r.MaxAmount, r.Currency = &cap, "EUR" })
	h.use("submit_pay", tooled(named("op-A"))).equals(t, "above the cap", a.submit(named("op-A")))

	a, h = narrowed(func(*ledger.TokenRecord) {})
	for _, tool := range []string{"get_operation", "cancel_operation"} {
		absent, foreign := h.use(tool, `{"operation_id":"op-absent"}`), h.use(tool, `{"operation_id":"op-theirs"}`)
		if !reflect.DeepEqual(absent, foreign) {
			t.Errorf("%s tells what another tenant has: %v", tool, foreign)
		}
	}
	h.use("list_operations", `{}`).equals(t, "the list", a.get("/v1/operations"))
	_, h = narrowed(func(r *ledger.TokenRecord) { r.TenantID = "unheard-of" })
	if got := slices.Sorted(maps.Keys(h.tools())); len(got) != 5 {
		t.Error("a tenant without rules sees ", got)
	}
	if w.count("default") != 0 || w.count("t1") != 1 {
		t.Error("something was recorded")
	}
}

func TestToolCallsSpendTheTokensRate(t *testing.T) {
	a := newServer(t, strings.Replace(apiConfig, "requests_per_second: 1000000000", "requests_per_second: 10", 1)).agent("default")
	h := a.host()
	session := h.connect()
	answered, refused := 0, 0
	for range 15 {
		if r := h.call(session, "get_operation", json.RawMessage(`{"operation_id":"op-A"}`)); r.said["reason"] == "rate_limited" {
			r.is(t, "rate_limited", "wait", true)
			if r.said["retry_after"] != 1.0 {
				t.Error(r.said)
			}
			refused++
		} else {
			answered++
		}
	}
	if answered > 9 || answered < 7 || refused != 15-answered {
		t.Errorf("%d calls were answered, %d refused", answered, refused)
	}
	var wire *jsonrpc.Error
	if _, err := session.ListTools(t.Context(), nil); !errors.As(err, &wire) || wire.Code != tooManyRequests {
		t.Error("listing: ", err)
	}
	if h := a.get("/v1/operations/op-A"); h.Code != 429 {
		t.Error("over HTTP there is another limit: ", h.Code)
	}
}

const toolCallText = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"submit_pay","arguments":ARGUMENTS}}`

// post sends a message as it stands.
func (h *toolHost) post(body string, headers ...string) (int, string, http.Header) {
	h.t.Helper()
	q, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.base+"/mcp", strings.NewReader(body))
	must(h.t, err)
	q.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + h.token}, "Mcp-Protocol-Version": {"2025-06-18"}}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		q.Header.Set(name, value)
		if name == "Host" {
			q.Host = value
		}
	}
	r, err := http.DefaultClient.Do(q)
	must(h.t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	must(h.t, err)
	return r.StatusCode, string(text), r.Header
}

func TestMCPRequestsThatAreNone(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	h := a.host()
	good := strings.Replace(toolCallText, "ARGUMENTS", tooled(named("op-A")), 1)
	big := strings.Replace(good, "acct-op-A", strings.Repeat("a", maxBody), 1)
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
		says    string
	}{
		"no token":            {good, []string{"Authorization: "}, 401, `"reason":"unauthorized"`},
		"another token":       {good, []string{"Authorization: Bearer x.y.z"}, 401, `"reason":"unauthorized"`},
		"half a message":      {good[:len(good)/2], nil, 400, `"reason":"malformed_json"`},
		"a name twice":        {strings.Replace(good, `"amount":4800`, `"amount":1,"amount":4800`, 1), nil, 400, `"reason":"malformed_json"`},
		"arguments twice":     {strings.Replace(good, `"arguments":`, `"arguments":{},"arguments":`, 1), nil, 400, `"reason":"malformed_json"`},
		"no text":             {strings.Replace(good, "acct-op-A", "\xff", 1), nil, 400, `"reason":"malformed_json"`},
		"two messages in one": {good + good, nil, 400, `"reason":"malformed_json"`},
		"another type":        {good, []string{"Content-Type: text/plain"}, 415, `"reason":"media_type"`},
		"too large":           {strings.Replace(big, "aaa", strings.Repeat("a", roomForMessage), 1), nil, 413, `"reason":"body_too_large"`},
		"arguments too large": {big, nil, 200, `"reason":"body_too_large"`},
		"too deep":            {strings.Replace(good, `"amount":4800`, `"amount":`+strings.Repeat("[", 70)+strings.Repeat("]", 70), 1), nil, 200, `"reason":"malformed_json"`},
		"an action type":      {strings.Replace(good, `"operation_id"`, `"action_type":"refund","operation_id"`, 1), nil, 200, `"reason":"malformed_json"`},
		"no object":           {strings.Replace(toolCallText, "ARGUMENTS", `[]`, 1), nil, 200, `"reason":"malformed_json"`},
		"no arguments":        {strings.Replace(toolCallText, `,"arguments":ARGUMENTS`, "", 1), nil, 200, `"isError":true`},
		"no such tool":        {strings.Replace(good, "submit_pay", "approve", 1), nil, 200, `unknown tool`},
		"a subscription":      {`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, nil, 200, `-32601`},
		"another site":        {good, []string{"Origin: https://evil.example"}, 403, `"reason":"forbidden"`},
		"another port":        {good, []string{"Origin: http://localhost:1", "Sec-Fetch-Site: same-site"}, 403, `"reason":"forbidden"`},
		"no origin":           {good, []string{"Origin: null"}, 403, `"reason":"forbidden"`},
		"a name led here":     {good, []string{"Origin: http://evil.example:8420", "Host: evil.example:8420", "Sec-Fetch-Site: same-origin"}, 403, `"reason":"forbidden"`},
		"the same, silently":  {good, []string{"Origin: http://evil.example:8420", "Host: evil.example:8420"}, 403, `"reason":"forbidden"`},
	} {
		status, body, header := h.post(c.body, c.headers...)
		if status != c.status || !strings.Contains(body, c.says) || header.Get("X-Request-Id") == "" {
			t.Errorf("%s: answered %d %s, want %d and %s", name, status, body, c.status, c.says)
		}
		if status >= 400 && header.Get("Content-Type") != "application/problem+json" || (status == 401) != (header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %v", name, header)
		}
	}
	if a.count("default") != 0 {
		t.Error("something was recorded")
	}
	// Behind a proxy on this machine the name is not this machine's, and no browser asks.
	if status, body, _ := h.post(good, "Host: pay.example.com"); status != 200 || !strings.Contains(body, `"next":"wait"`) {
		t.Error("behind a proxy: ", status, body)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		h := a.call(method, "/mcp", "")
		h.is(t, 405, "method_not_allowed", "fix_request", false)
	}
}

func TestOldBatchesSpendTheRateOneByOne(t *testing.T) {
	a := newServer(t, strings.Replace(apiConfig, "requests_per_second: 1000000000", "requests_per_second: 5", 1)).agent("default")
	var calls []string
	for i := range 20 {
		calls = append(calls, strings.Replace(strings.Replace(toolCallText, `"id":1`, fmt.Sprintf(`"id":%d`, i), 1), "ARGUMENTS", tooled(named(fmt.Sprint("op-", i))), 1))
	}
	status, body, _ := a.host().post("["+strings.Join(calls, ",")+"]", "Mcp-Protocol-Version: 2025-03-26")
	if status != 200 || a.count("default") != 5 || strings.Count(body, `\"reason\":\"rate_limited\"`) != 15 {
		t.Errorf("%d operations: %d %s", a.count("default"), status, body)
	}
}

// oddType has a schema with everything that a place of its own changes.
const oddType = `  odd.one: { rail: card, effect: odd, schema: { $schema: "https://json-schema.org/draft/2020-12/schema", type: object, required: [amount, currency],
    $defs: { name: { type: object, properties: { first: { $ref: "#/$defs/text" }, const: { const: { $ref: "#/$defs/text" } } } }, text: { type: string, maxLength: 5 } },
    properties: { amount: { type: integer, x-role: amount }, currency: { type: string, x-role: currency }, who: { $ref: "#/$defs/name" } } } }
`

func TestToolSchemasAreTheActionTypes(t *testing.T) {
	w := newServer(t, strings.Replace(apiConfig, "  watched:", oddType+"  watched:", 1))
	tools := w.agent("default").host().tools()
	for name, tool := range tools {
		raw, err := json.Marshal(tool.InputSchema)
		must(t, err)
		parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		must(t, err)
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		must(t, c.AddResource("holdfast:///tool.json", parsed))
		schema, err := c.Compile("holdfast:///tool.json")
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, raw)
		}
		if tool.Description == "" || len(suggestions(tool.Description)) > 0 {
			t.Errorf("%s is described as %q", name, tool.Description)
		}
		if name != "submit_odd.one" {
			continue
		}
		for text, fits := range map[string]bool{
			`{"operation_id":"a","payload":{"amount":1,"currency":"EUR","who":{"first":"Ann"}}}`:      true,
			`{"operation_id":"a","payload":{"amount":1,"currency":"EUR","who":{"first":"Annabel"}}}`:  false,
			`{"payload":{"amount":1,"currency":"EUR"}}`:                                               false,
			`{"operation_id":"a","payload":{"amount":1}}`:                                             false,
			`{"operation_id":"a","payload":{"amount":1,"currency":"EUR"},"action_type":"refund"}`:     false,
			`{"operation_id":"a","payload":{"amount":1,"currency":"EUR"},"after":["b"],"because":""}`: true,
		} {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			must(t, err)
			if err := schema.Validate(value); (err == nil) != fits {
				t.Errorf("%s: %v", text, err)
			}
		}
		if !strings.Contains(string(raw), `"const":{"const":{"$ref":"#/$defs/text"}}`) {
			t.Errorf("what is no schema was changed: %s", raw)
		}
	}
	if tools["submit_odd.one"] == nil {
		t.Error("there are ", slices.Sorted(maps.Keys(tools)))
	}
	if len(suggestions(mcpInstructions)) > 0 {
		t.Error("the instructions suggest another name: ", suggestions(mcpInstructions))
	}
}

// initialize is how a host of an earlier protocol begins.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`

func TestHostsOfEarlierProtocolsAreServed(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	h := a.host()
	status, body, header := h.post(initialize, "Mcp-Protocol-Version: ")
	if status != 200 || !strings.Contains(body, `"protocolVersion":"2025-06-18"`) || !strings.Contains(body, "One purchase has one operation_id") || header.Get("Mcp-Session-Id") != "" {
		t.Errorf("initialize: %d %s", status, body)
	}
	if strings.Contains(body, "listChanged") || strings.Contains(body, "logging") {
		t.Error("it promises to speak first: ", body)
	}
	if status, body, _ := h.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != 202 || body != "" {
		t.Errorf("initialized: %d %s", status, body)
	}
	if status, body, _ := h.post(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); status != 200 || !strings.Contains(body, `"name":"submit_pay"`) {
		t.Errorf("tools/list: %d %s", status, body)
	}
	status, body, _ = h.post(strings.Replace(toolCallText, "ARGUMENTS", tooled(named("op-A")), 1))
	if status != 200 || !strings.Contains(body, `"structuredContent":{"operation_id":"op-A"`) {
		t.Errorf("tools/call: %d %s", status, body)
	}
}

// A fault in a tool is an answer, not the end of the process.
func TestToolThatPanicsIsAnInternalProblem(t *testing.T) {
	w := newServer(t, apiConfig)
	broken := tool{name: "broken", scope: "operations:read", call: func(toolCall) (answer, error) { panic("no") }}
	_, r := w.token("default", "agent-1", "owner@example.com")
	result, err := w.callTool(mcpRequest{who: caller{r}}, broken)(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}})
	must(t, err)
	var said map[string]any
	must(t, json.Unmarshal([]byte(result.Content[0].(*mcp.TextContent).Text), &said))
	if !result.IsError || said["reason"] != "internal" || said["next"] != "wait" {
		t.Error("it says ", said)
	}
}

// The configuration that the page for models shows is one that works.
func TestPageForModelsConfiguresAClient(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	h := a.host()
	page, err := http.Get(h.base + "/llms.txt")
	must(t, err)
	defer page.Body.Close()
	text, err := io.ReadAll(page.Body)
	must(t, err)
	_, rest, _ := strings.Cut(string(text), `{"mcpServers"`)
	line, _, _ := strings.Cut(rest, "\n")
	var config struct {
		Servers map[string]struct {
			Type, URL string
			Headers   map[string]string
		} `json:"mcpServers"`
	}
	must(t, json.Unmarshal([]byte(`{"mcpServers"`+line), &config))
	one := config.Servers["holdfast"]
	if one.Type != "http" || one.URL != h.base+"/mcp" || one.Headers["Authorization"] != "Bearer ${HOLDFAST_TOKEN}" {
		t.Errorf("it shows %+v", config)
	}
	for name := range h.tools() {
		if !strings.HasPrefix(name, "submit_") && !strings.Contains(string(text), name) {
			t.Errorf("it does not mention %s", name)
		}
	}
}

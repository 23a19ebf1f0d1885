package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"holdfast/store"
	"holdfast/store/ledger"
)

// refused is a row of the case table that uses up no id: whatever is wrong is
// named, nothing is recorded, and the same id is good afterwards.
type refused struct {
	name    string
	body    string // ID stands for the id
	headers []string
	code    int
	reason  string
	place   string // where it is wrong, named in the answer; ID stands for the id
}

var (
	deep    = strings.Repeat(`{"a":`, ledger.MaxDepth) + "1" + strings.Repeat("}", ledger.MaxDepth)
	tooDeep = changed(`"amount":4800`, `"amount":4800,"metadata":`+deep)
)

// strictCases is every way of not being strict JSON.
var strictCases = []string{
	"", " ", "null", "[]", `"text"`, "12", "nope", "{", `{"operation_id":"ID"`, order + "x", order + order, order + " null",
	"\ufeff" + order, changed(`"amount":4800,`, `"amount":4800,,`), changed(`"reference":"ref-ID"}}`, `"reference":"ref-ID",}}`),
	strings.ReplaceAll(order, `"`, `'`), changed("4800", "04800"), changed("4800", "+4800"), changed("4800", "4800."), changed("4800", ".5"),
	changed("4800", "NaN"), changed("4800", "Infinity"), changed("4800", "0x12C0"), changed("4800", "1e400"),
	changed("4800", "9007199254740993"), changed("4800", "0.1000000000000000055"), changed("4800", "True"), changed("4800", "undefined"),
	changed("acct-ID", "acct\xff"), changed("acct-ID", `\ud800`), changed("acct-ID", `\x41`), changed("acct-ID", "line\nbreak"),
	changed(`"payload"`, `payload`), "/* comment */" + order, order + "// comment",
	changed(`"action_type":"pay"`, `"action_type":"pay","action_type":"refund"`),
	changed(`"amount":4800`, `"amount":4800,"amount":480000`), changed(`"amount":4800`, `"amount":4800,"\u0061mount":480000`),
	changed(`"amount":4800`, `"amount":4800,"metadata":{"a":"1","a":"2"}`), tooDeep,
}

// refusedBodies are all bodies of the table, for the fuzzer to begin with.
func refusedBodies() (all []string) {
	for _, r := range refusals() {
		all = append(all, r.body)
	}
	return all
}

func refusals() []refused {
	bare := changed(`"operation_id":"ID",`, "")
	beside := func(member string) string { return changed(`"payload"`, member+`,"payload"`) }
	inside := func(member string) string { return changed(`"amount"`, member+`,"amount"`) }
	rows := []refused{
		{"no id", bare, nil, 400, "operation_id_required", "operation_id"},
		{"an empty id", changed(`"ID"`, `""`), nil, 400, "operation_id_required", ""},
		{"an empty header", bare, []string{"Idempotency-Key: "}, 400, "operation_id_required", ""},
		{"a header of quotes alone", bare, []string{`Idempotency-Key: ""`}, 400, "operation_id_required", ""},
		{"two ids", order, []string{"Idempotency-Key: other"}, 400, "invalid_operation_id", "Idempotency-Key"},
		{"two headers", bare, []string{"Idempotency-Key: ID", "Idempotency-Key: ID"}, 400, "invalid_operation_id", "Idempotency-Key"},
		{"a list in the header", bare, []string{"Idempotency-Key: ID, ID"}, 400, "invalid_operation_id", ""},
		{"an id that begins badly", changed(`"ID"`, `"-ID"`), nil, 400, "invalid_operation_id", ""},
		{"an id with a space", changed(`"ID"`, `"ID "`), nil, 400, "invalid_operation_id", ""},
		{"an id with a slash", changed(`"ID"`, `"ID/cancel"`), nil, 400, "invalid_operation_id", ""},
		{"an id beyond ASCII", changed(`"ID"`, `"ID\u00e9"`), nil, 400, "invalid_operation_id", ""},
		{"an id with a zero byte", changed(`"ID"`, `"ID\u0000"`), nil, 400, "invalid_operation_id", ""},
		{"an id of 129", changed(`"ID"`, `"`+strings.Repeat("a", 129)+`"`), nil, 400, "invalid_operation_id", ""},
		{"an id of 200,000", changed(`"ID"`, `"`+strings.Repeat("a", 200_000)+`"`), nil, 400, "invalid_operation_id", ""},
		{"an id of 129 in the header", bare, []string{"Idempotency-Key: " + strings.Repeat("a", 129)}, 400, "invalid_operation_id", ""},
		{"an id that is a number", changed(`"ID"`, `7`), nil, 400, "malformed_json", "/operation_id"},
		{"an id that is null", changed(`"ID"`, `null`), []string{"Idempotency-Key: ID"}, 400, "malformed_json", "/operation_id"},

		{"an action type that is a number", changed(`"pay"`, `7`), nil, 400, "malformed_json", "/action_type"},
		{"a run that is an object", beside(`"run_id":{}`), nil, 400, "malformed_json", "/run_id"},
		{"a run that is null", beside(`"run_id":null`), nil, 400, "malformed_json", "/run_id"},
		{"a step of 129", beside(`"step":"` + strings.Repeat("s", 129) + `"`), nil, 400, "malformed_json", "/step"},
		{"a because of 1,001", beside(`"because":"` + strings.Repeat("b", 1001) + `"`), nil, 400, "malformed_json", "/because"},
		{"a claim that is no list", beside(`"distinct_from":"op-1"`), nil, 400, "malformed_json", "/distinct_from"},
		{"a claim about no id", beside(`"distinct_from":["op-1","-"]`), nil, 400, "malformed_json", "/distinct_from/1"},
		{"a claim about 101", beside(`"distinct_from":["a"` + strings.Repeat(`,"a"`, 100) + `]`), nil, 400, "malformed_json", "/distinct_from"},
		{"no payload", `{"operation_id":"ID","action_type":"pay"}`, nil, 400, "malformed_json", "/payload"},
		{"a payload that is null", `{"operation_id":"ID","action_type":"pay","payload":null}`, nil, 400, "malformed_json", "/payload"},
		{"a payload that is a list", `{"operation_id":"ID","action_type":"pay","payload":[]}`, nil, 400, "malformed_json", "/payload"},
		{"a payload that is a text", `{"operation_id":"ID","action_type":"pay","payload":"{}"}`, nil, 400, "malformed_json", "/payload"},

		{"no action type", changed(`"action_type":"pay",`, ""), nil, 422, "unknown_action_type", "action_type"},
		{"an empty action type", changed(`"pay"`, `""`), nil, 422, "unknown_action_type", "action_type"},
		{"an action type nobody configured", changed(`"pay"`, `"frobnicate"`), nil, 422, "unknown_action_type", "frobnicate"},
		{"an action type in another case", changed(`"pay"`, `"Pay"`), nil, 422, "unknown_action_type", "Pay"},

		{"a member the schema lacks", inside(`"tip":100`), nil, 422, "invalid_payload", "/tip"},
		{"a member in another case", changed(`"amount"`, `"Amount"`), nil, 422, "invalid_payload", "/Amount"},
		{"no amount", changed(`"amount":4800,`, ""), nil, 422, "invalid_payload", "/amount"},
		{"an amount of nothing", changed("4800", "0"), nil, 422, "invalid_payload", "/amount"},
		{"a negative amount", changed("4800", "-4800"), nil, 422, "invalid_payload", "/amount"},
		{"a fraction", changed("4800", "48.5"), nil, 422, "invalid_payload", "/amount"},
		{"an amount as text", changed("4800", `"4800"`), nil, 422, "invalid_payload", "/amount"},
		{"an amount of null", changed("4800", "null"), nil, 422, "invalid_payload", "/amount"},
		{"an amount that is true", changed("4800", "true"), nil, 422, "invalid_payload", "/amount"},
		{"an amount beyond all money", changed("4800", "1e30"), nil, 422, "invalid_payload", "/amount"},
		{"a currency that is none", changed(`"EUR"`, `"EURO"`), nil, 422, "invalid_payload", "/currency"},
		{"a recipient of 201", changed("acct-ID", strings.Repeat("r", 201)), nil, 422, "invalid_payload", "/recipient"},
		{"a number among the metadata", inside(`"metadata":{"a/b":7}`), nil, 422, "invalid_payload", "/metadata/a~1b"},

		{"a body of 256 KiB and one", order + strings.Repeat(" ", maxBody+1-len(order)), nil, 413, "body_too_large", ""},
		{"a long memo", inside(`"metadata":{"memo":"` + strings.Repeat("m", maxBody) + `"}`), nil, 413, "body_too_large", ""},

		{"no media type", order, []string{"Content-Type: "}, 415, "media_type", ""},
		{"a form", order, []string{"Content-Type: application/x-www-form-urlencoded"}, 415, "media_type", ""},
		{"plain text", order, []string{"Content-Type: text/plain"}, 415, "media_type", ""},
		{"something like JSON", order, []string{"Content-Type: application/jsonl"}, 415, "media_type", ""},
		{"a problem", order, []string{"Content-Type: application/problem+json"}, 415, "media_type", ""},
		{"another charset", order, []string{"Content-Type: application/json; charset=latin1"}, 415, "media_type", ""},
		{"a media type that is none", order, []string{"Content-Type: application/json; charset"}, 415, "media_type", ""},
		{"two media types", order, []string{"Content-Type: application/json", "Content-Type: text/plain"}, 415, "media_type", ""},
		{"a compressed body", order, []string{"Content-Encoding: gzip"}, 415, "media_type", ""},
		{"a body compressed twice", order, []string{"Content-Encoding: gzip, br"}, 415, "media_type", ""},
	}
	for i, body := range strictCases {
		rows = append(rows, refused{fmt.Sprintf("not strict %d", i), body, nil, 400, "malformed_json", ""})
	}
	// What the ledger decides is not the agent's to say; and every name is known
	// in its one case.
	for _, member := range []string{"tenant_id", "tenant", "status", "reason", "provider_key", "approved", "approvals", "order_id", "fingerprint", "owner", "agent",
		"rail", "version", "Payload", "Operation_id", "Run_id", "", "payload "} {
		rows = append(rows, refused{"a member " + member, beside(fmt.Sprintf("%q:1", member)), nil, 400, "malformed_json", "/" + member})
	}
	return rows
}

func TestRefusalsNameThePlaceAndUseUpNoID(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	for i, c := range refusals() {
		t.Run(c.name, func(t *testing.T) {
			id, before := fmt.Sprintf("op-%d", i), w.count("default")
			fill := func(s string) string { return strings.ReplaceAll(s, "ID", id) }
			headers := []string{}
			for _, h := range c.headers {
				headers = append(headers, fill(h))
			}
			if !slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "Content-Type") }) {
				headers = append(headers, "Content-Type: application/json")
			}
			h := a.call(http.MethodPost, "/v1/operations", fill(c.body), headers...)
			h.is(t, c.code, c.reason, "fix_request", false)
			if !h.names(c.place) {
				t.Errorf("does not name %s: %s", c.place, h.Body)
			}
			a.absent(id)
			if w.count("default") != before {
				t.Error("something was recorded")
			}
			a.submit(named(id)).is(t, 202, "", "wait", false)
		})
	}
}

// names reports whether the answer says where it is wrong.
func (h heard) names(place string) bool {
	if place == "" || h.text("pointer") == place {
		return true
	}
	errors, _ := h.said["errors"].([]any)
	for _, e := range errors {
		if e := e.(map[string]any); e["pointer"] == place && e["message"] != "" {
			return true
		}
	}
	return !strings.HasPrefix(place, "/") && strings.Contains(h.text("detail"), place)
}

func TestMalformedJSONIsNamedByOffset(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	for body, offset := range map[string]int{`{"operation_id":"x",}`: 19, `{"a"`: 4, named("op-1") + "x": len(named("op-1"))} {
		h := a.submit(body)
		if h.said["offset"] != float64(offset) && !strings.Contains(h.text("detail"), "/a") {
			t.Errorf("%s: offset %v, want %d: %s", body, h.said["offset"], offset, h.text("detail"))
		}
	}
}

func TestSeveralErrorsOfAPayloadComeAtOnce(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	h := a.submit(changed("4800", `"48"`, `"EUR"`, `"E"`, `"recipient"`, `"Recipient"`))
	h.is(t, 422, "invalid_payload", "fix_request", false)
	for _, place := range []string{"/amount", "/currency", "/Recipient"} {
		if !h.names(place) {
			t.Errorf("does not name %s: %s", place, h.Body)
		}
	}
}

// What is strict is taken in every spelling.
func TestStrictJSONIsTakenInEverySpelling(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	for i, body := range []string{
		order, " \r\n\t" + order + " \n", changed("4800", "48e2"), changed("4800", "4800.0"), changed(`"amount"`, `"\u0061mount"`), changed("acct-ID", "\\ud83d\\ude00-ID"),
		`{"payload":{"reference":"ref-ID","recipient":"acct-ID","currency":"eur","amount":4800},"action_type":"pay","operation_id":"ID"}`,
		order + strings.Repeat(" ", maxBody-len(order)-20),
		changed(`"payload"`, `"run_id":"r","parent_run_id":"p","step":"s-ID","distinct_from":["a","b"],"because":"two invoices","payload"`),
	} {
		id := fmt.Sprintf("op-%d", i)
		h := a.submit(strings.ReplaceAll(body, "ID", id))
		h.is(t, 202, "", "wait", false)
		if o := a.stored("default", id); o.Terms.Amount != 4800 || o.Terms.Currency != "EUR" {
			t.Errorf("%s was read as %+v", body, o.Terms)
		}
	}
	for i, headers := range [][]string{{"Content-Type: application/json; charset=utf-8"}, {"Content-Type: Application/JSON; Charset=UTF-8"}} {
		if h := a.call(http.MethodPost, "/v1/operations", named(fmt.Sprintf("media-%d", i)), headers...); h.Code != 202 {
			t.Error(headers, h.Code, h.Body)
		}
	}
	o := a.stored("default", "op-8")
	if o.RunID != "r" || o.ParentRunID != "p" || o.Step != "s-op-8" || o.Because != "two invoices" || !slices.Equal(o.DistinctFrom, []string{"a", "b"}) {
		t.Errorf("lineage and claim were kept as %+v", o)
	}
}

func TestIDComesFromBodyOrHeader(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	bare := changed(`"operation_id":"ID",`, "")
	for i, c := range []struct{ body, key string }{{order, ""}, {bare, "ID"}, {bare, `"ID"`}, {order, "ID"}, {order, `"ID"`}, {changed(`"ID"`, `""`), "ID"}} {
		id := fmt.Sprintf("A.b_c:d-%d", i)
		fill := func(s string) string { return strings.ReplaceAll(s, "ID", id) }
		var headers []string
		if c.key != "" {
			headers = []string{"Idempotency-Key: " + fill(c.key)}
		}
		h := a.submit(fill(c.body), headers...)
		h.is(t, 202, "", "wait", false)
		if h.text("operation_id") != id {
			t.Errorf("%+v became %s", c, h.text("operation_id"))
		}
	}
	longest := strings.Repeat("9", 128)
	a.submit(named(longest)).is(t, 202, "", "wait", false)
}

func TestCase001IdentityIsNeverMintedByTheServer(t *testing.T) {
	a := newServer(t, apiConfig).agent("t1")
	bare := changed(`"operation_id":"ID",`, "")
	for range 2 {
		a.submit(bare).is(t, 400, "operation_id_required", "fix_request", false)
	}
	if a.count("t1") != 0 {
		t.Fatal("the server made a name up")
	}
	first := a.submit(named("op-A"))
	a.lose(a.stored("t1", "op-A")) // the provider acts, the answer is lost
	again := a.submit(named("op-A"))
	again.is(t, 409, "in_progress", "wait", false)
	if again.text("order_id") != first.text("order_id") || a.count("t1") != 1 || a.stored("t1", "op-A").Attempts != 1 {
		t.Error("the repeat is another operation: ", again.Body)
	}
}

func TestCase005VolatileMembersStayOutOfTheFingerprint(t *testing.T) {
	a := newServer(t, apiConfig).agent("t1")
	with := func(at string) string {
		return strings.Replace(named("op-A"), `"amount"`, `"sdk":{"created_at":"`+at+`"},"amount"`, 1)
	}
	a.submit(with("T1")).is(t, 202, "", "wait", false)
	kept := string(a.stored("t1", "op-A").Payload)
	a.submit(with("T2")).is(t, 409, "in_progress", "wait", false)
	a.submit(named("op-A")).is(t, 409, "in_progress", "wait", false)
	if after := string(a.stored("t1", "op-A").Payload); after != kept || !strings.Contains(after, "T1") {
		t.Error("what is sent is not what came first: ", after)
	}
}

func TestNewOperations(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	a.submit(named("earlier")).is(t, 202, "", "wait", false)
	for _, c := range []struct {
		name, body   string
		headers      []string
		code         int
		status       ledger.Status
		reason, next string
		terminal     bool
		retryAfter   string
	}{
		{"allowed", order, nil, 202, ledger.Ready, "", "wait", false, "1"},
		{"respond-async", order, []string{"Prefer: respond-async"}, 202, ledger.Ready, "", "wait", false, "1"},
		{"asks people", changed("4800", "100001"), nil, 202, ledger.AwaitingApproval, "", "await_approval", false, "30"},
		{"at the limit", changed("4800", "100000"), nil, 202, ledger.Ready, "", "wait", false, "1"},
		{"overlaps", changed("ref-ID", "ref-earlier"), nil, 202, ledger.UnknownHold, "same_reference", "await_human", false, "30"},
		{"observed", changed(`"pay"`, `"watched"`), nil, 202, ledger.Rejected, "observed", "stop", true, ""},
		{"observed, with patience", changed(`"pay"`, `"watched"`), []string{"Prefer: wait=5"}, 201, ledger.Rejected, "observed", "stop", true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := strings.ReplaceAll(strings.ReplaceAll(c.name, " ", "-"), ",", "")
			h := a.submit(strings.ReplaceAll(c.body, "ID", id), c.headers...)
			h.is(t, c.code, c.reason, c.next, c.terminal)
			o := w.stored("default", id)
			if o.Status != c.status || string(o.Reason) != c.reason || h.text("status") != string(c.status) {
				t.Errorf("stored %s %s, said %s", o.Status, o.Reason, h.text("status"))
			}
			if o.Attempts != 0 || o.OpenAttempts != 0 {
				t.Error("something was sent")
			}
			if h.Header().Get("Location") != "/v1/operations/"+id || h.text("poll") != "/v1/operations/"+id || h.Header().Get("ETag") != `"1"` {
				t.Error("Location, poll, ETag: ", h.Header(), h.text("poll"))
			}
			if h.Header().Get("Retry-After") != c.retryAfter || h.Header().Get("Idempotent-Replayed") != "" {
				t.Error("Retry-After, Idempotent-Replayed: ", h.Header())
			}
			h.isEnvelope(t, o)
		})
	}
	overlaps := a.get("/v1/operations/overlaps").said["overlaps"]
	if got, _ := json.Marshal(overlaps); string(got) != `[{"operation_id":"earlier","why":["reference equal","recipient different","amount equal","currency equal"]}]` {
		t.Errorf("overlaps are %s", got)
	}
}

// isEnvelope compares an answer with the operation that it is about, member by
// member: the shape never changes.
func (h heard) isEnvelope(t testing.TB, o ledger.Operation) {
	t.Helper()
	var names []string
	for name := range h.said {
		names = append(names, name)
	}
	want := []string{"operation_id", "order_id", "action_type", "status", "reason", "terminal", "next", "retry_after", "poll", "fingerprint", "words", "attempts",
		"result", "duplicate_of", "detail", "created_at", "updated_at"}
	for _, name := range want {
		if _, there := h.said[name]; !there {
			t.Errorf("the envelope lacks %s: %v", name, names)
		}
	}
	if h.said["operation_id"] != o.OperationID || h.said["order_id"] != o.OrderID || h.said["action_type"] != o.ActionType || h.said["fingerprint"] != o.Fingerprint ||
		h.said["attempts"] != float64(o.Attempts) || !strings.HasPrefix(o.OrderID, "ord_") || len(o.OrderID) != 30 || !strings.HasPrefix(o.Fingerprint, "hf1:sha256:") ||
		strings.Count(h.text("words"), "-") != 2 || h.text("detail") == "" || !strings.HasSuffix(h.text("created_at"), "Z") {
		t.Errorf("the envelope is not about %+v: %s", o, h.Body)
	}
}

func TestPolicyDenialIsRecordedAndReplayed(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	bad := strings.Replace(named("op-1"), "acct-op-1", "acct_bad", 1)
	h := a.submit(bad, "Prefer: wait=5")
	h.is(t, 403, "policy_denied", "stop", true)
	operation, _ := h.said["operation"].(map[string]any)
	if !strings.Contains(h.text("detail"), "blocked recipients") || operation["status"] != "rejected" || operation["reason"] != "policy_denied" || h.Header().Get("Retry-After") != "" {
		t.Error("the refusal says ", h.Body)
	}
	o := w.stored("default", "op-1")
	if o.Status != ledger.Rejected || o.Reason != ledger.PolicyDenied || o.PolicyRow != "blocked recipients" {
		t.Errorf("recorded as %s %s by %q", o.Status, o.Reason, o.PolicyRow)
	}
	again := a.submit(bad)
	again.is(t, 200, "policy_denied", "stop", true)
	if again.Header().Get("Idempotent-Replayed") != "true" || again.text("status") != "rejected" {
		t.Error("the repeat is answered ", again.Header(), again.Body)
	}
	// The name of what was refused stays taken: a milder payload is another one.
	a.submit(named("op-1")).is(t, 409, "request", "stop", true)
	if after := w.stored("default", "op-1"); after.Version != o.Version {
		t.Error("the repeat changed it")
	}
}

// TestRepeatsWhileItHasNotEnded asks about every state that an operation may wait in.
func TestRepeatsWhileItHasNotEnded(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	big := func(id string) string { return strings.Replace(named(id), "4800", "200000", 1) }
	a.submit(named("ready"))
	a.submit(big("awaiting_approval"))
	a.marked("in_flight")
	a.submit(named("unknown"))
	a.lose(w.stored("default", "unknown"))
	held := strings.Replace(named("unknown_hold"), "ref-unknown_hold", "ref-ready", 1)
	a.submit(held)
	for id, c := range map[string]struct{ body, wait, next string }{
		"ready": {named("ready"), "1", "wait"}, "awaiting_approval": {big("awaiting_approval"), "30", "await_approval"}, "in_flight": {named("in_flight"), "1", "wait"},
		"unknown": {named("unknown"), "5", "wait"}, "unknown_hold": {held, "30", "await_human"},
	} {
		t.Run(id, func(t *testing.T) {
			before := w.stored("default", id)
			h := a.submit(c.body)
			h.is(t, 409, "in_progress", "wait", false)
			operation, _ := h.said["operation"].(map[string]any)
			if h.Header().Get("Retry-After") != c.wait || h.text("poll") != "/v1/operations/"+id || h.text("order_id") != before.OrderID || h.text("operation_id") != id ||
				operation["status"] != id || operation["next"] != c.next || h.Header().Get("Idempotent-Replayed") != "" || h.Header().Get("Location") != "" {
				t.Error(h.Header(), h.Body)
			}
			// Another agent of the tenant may ask too.
			other, _ := w.token("default", "agent-2", "")
			h = agent{w, "default", other}.submit(c.body, "Prefer: respond-async")
			if h.Code != 202 || h.text("status") != id || h.text("next") != c.next || h.Header().Get("Preference-Applied") != "respond-async" || h.Header().Get("Retry-After") != c.wait {
				t.Error("respond-async: ", h.Code, h.Header(), h.Body)
			}
			h.isEnvelope(t, before)
			if after := w.stored("default", id); after.Version != before.Version || after.Status != before.Status || after.Attempts != before.Attempts || after.Agent != "agent-1" {
				t.Errorf("a repeat made it %s version %d", after.Status, after.Version)
			}
		})
	}
}

func TestRepeatOfWhatHasEndedReplaysIt(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	o := a.confirmed("op-1")
	shown := a.get("/v1/operations/op-1").Body.String()
	for _, body := range []string{
		named("op-1"), strings.Replace(named("op-1"), "4800", "4.8e3", 1), strings.Replace(named("op-1"), "EUR", "eur", 1), " " + named("op-1") + "\n",
		`{"action_type":"pay","run_id":"another","payload":{"reference":"ref-op-1","recipient":"acct-op-1","currency":"EUR","amount":4800},"operation_id":"op-1"}`,
	} {
		for _, prefer := range []string{"Prefer: wait=60", "Prefer: respond-async", "Prefer: unheard-of"} {
			h := a.submit(body, prefer)
			h.is(t, 200, "", "use_result", true)
			if h.Header().Get("Idempotent-Replayed") != "true" || h.Body.String() != shown || h.Header().Get("ETag") != fmt.Sprintf(`"%d"`, o.Version) {
				t.Error(h.Header(), h.Body)
			}
		}
	}
	result, _ := a.submit(named("op-1")).said["result"].(map[string]any)
	if result["id"] != "ch_op-1" || result["amount"] != 4800.0 || result["currency"] != "EUR" {
		t.Error("the receipt is ", result)
	}
	if after := w.stored("default", "op-1"); after.Version != o.Version || after.Attempts != 1 {
		t.Error("a repeat changed it")
	}
}

func TestCase034ReplayOfARejectionSaysThatAndWhen(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("t1")
	a.submit(named("op-A"))
	w.pass(1000)
	o := w.answer(w.stored("t1", "op-A"), ledger.Answer{Finding: ledger.Refused, HTTPStatus: 402, Sentence: "HTTP 402 card_declined."})
	ended := a.get("/v1/operations/op-A").text("updated_at")
	w.pass(1_000_000_000)
	h := a.submit(named("op-A"))
	h.is(t, 200, "declined", "stop", true)
	if o.Status != ledger.Rejected || h.Header().Get("Idempotent-Replayed") != "true" || h.text("updated_at") != ended || h.said["result"] != nil {
		t.Error(h.Header(), h.Body)
	}
}

func TestRepeatOfAnAliasIsAnsweredByItsOriginal(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	a.submit(named("first"))
	second := strings.Replace(named("second"), "ref-second", "ref-first", 1)
	a.submit(second)
	w.same("second")
	h := a.submit(second)
	h.is(t, 409, "in_progress", "wait", false)
	if operation, _ := h.said["operation"].(map[string]any); operation["status"] != "ready" || operation["duplicate_of"] != "first" || h.text("operation_id") != "second" {
		t.Error(h.Body)
	}
	w.answer(w.stored("default", "first"), receiptFor(w.stored("default", "first")))
	h = a.submit(second)
	h.is(t, 200, "", "use_result", true)
	result, _ := h.said["result"].(map[string]any)
	if h.Header().Get("Idempotent-Replayed") != "true" || h.text("duplicate_of") != "first" || result["id"] != "ch_first" || h.said["attempts"] != 0.0 {
		t.Error(h.Body)
	}
}

// TestAnotherPayloadIsNeverARetry has a row for every difference that counts.
func TestAnotherPayloadIsNeverARetry(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	for i, c := range []struct {
		name, from, to string
		places         string
	}{
		{"amount", "4800", "4801", "[/amount]"},
		{"one more", `"amount"`, `"metadata":{"order":"1"},"amount"`, "[/metadata]"},
		{"one less", `,"reference":"ref-ID"`, "", "[/reference]"},
		{"two", `4800,"currency":"EUR"`, `9999,"currency":"USD"`, "[/amount /currency]"},
		{"empty is not absent", "ref-ID", "", "[/reference]"},
		{"letters differ in case", "acct-ID", "Acct-ID", "[/recipient]"},
		{"action type", `"pay"`, `"refund"`, "[/action_type]"},
		{"action type with a payload that is not its own", `"pay","payload":{"amount":4800`, `"refund","payload":{"Amount":9999`, "[/action_type]"},
		{"action type that nobody configured", `"pay"`, `"frobnicate"`, "[/action_type]"},
		{"action type and amount", `"pay","payload":{"amount":4800`, `"refund","payload":{"amount":9999`, "[/action_type]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, state := range []string{"ready", "confirmed"} {
				id := fmt.Sprintf("op-%d-%s", i, state)
				if state == "confirmed" {
					a.confirmed(id)
				} else {
					a.submit(named(id))
				}
				before, log := w.stored("default", id), w.logOf(w.stored("default", id))
				h := a.submit(strings.ReplaceAll(changed(c.from, c.to), "ID", id), "Prefer: wait=1")
				h.is(t, 409, "request", "stop", true)
				if fmt.Sprint(h.said["mismatch"]) != c.places || h.text("order_id") != before.OrderID || h.Header().Get("Retry-After") != "" || h.Header().Get("Idempotent-Replayed") != "" {
					t.Errorf("mismatch %v, want %s: %s", h.said["mismatch"], c.places, h.Body)
				}
				if strings.Contains(h.Body.String(), "9999") || strings.Contains(h.Body.String(), "acct-") || strings.Contains(h.Body.String(), "USD") {
					t.Error("the answer holds values: ", h.Body)
				}
				if operation, _ := h.said["operation"].(map[string]any); operation["status"] != state {
					t.Error("the answer does not say how the registered one stands: ", h.Body)
				}
				if after := w.stored("default", id); after.Version != before.Version || after.Fingerprint != before.Fingerprint || w.logOf(after) != log {
					t.Error("the registered operation was touched")
				}
			}
		})
	}
}

func TestCase010ActionTypeIsPartOfTheFingerprint(t *testing.T) {
	a := newServer(t, apiConfig).agent("t1")
	charge := a.confirmed("op-A")
	h := a.submit(strings.Replace(named("op-A"), `"pay"`, `"refund"`, 1))
	h.is(t, 409, "request", "stop", true)
	if fmt.Sprint(h.said["mismatch"]) != "[/action_type]" || h.Header().Get("Idempotent-Replayed") != "" {
		t.Error("the refund is answered as if it were the charge: ", h.Header(), h.Body)
	}
	if after := a.stored("t1", "op-A"); after.ActionType != "pay" || after.Version != charge.Version || a.count("t1") != 1 {
		t.Error("the charge was touched")
	}
}

func TestCase013ExtraMemberIsAMismatch(t *testing.T) {
	a := newServer(t, apiConfig).agent("t1")
	a.submit(named("op-A"))
	a.lose(a.stored("t1", "op-A"))
	h := a.submit(strings.Replace(named("op-A"), `"amount"`, `"metadata":{"order":"1"},"amount"`, 1))
	h.is(t, 409, "request", "stop", true)
	if o := a.stored("t1", "op-A"); fmt.Sprint(h.said["mismatch"]) != "[/metadata]" || o.Attempts != 1 || o.Status != ledger.Unknown {
		t.Error(h.Body)
	}
	a.get("/v1/operations/op-A").is(t, 200, "", "wait", false)
}

func TestPatienceSeesTheEnd(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	a.submit(named("known"))
	for id, c := range map[string]struct {
		code   int
		replay string
		ask    func() heard
	}{
		"new":   {201, "", func() heard { return a.submit(named("new"), "Prefer: wait=60") }},
		"known": {200, "true", func() heard { return a.submit(named("known"), `Prefer: respond-async, wait="60"`) }},
	} {
		answer := inBackground(t, c.ask)
		a.confirm(id)
		h := answer()
		h.is(t, c.code, "", "use_result", true)
		if result, _ := h.said["result"].(map[string]any); result["id"] != "ch_"+id || h.Header().Get("Idempotent-Replayed") != c.replay || !strings.Contains(h.Header().Get("Preference-Applied"), "wait=60") {
			t.Errorf("%s: %v %s", id, h.Header(), h.Body)
		}
	}
	a.submit(named("watched"))
	answer := inBackground(t, func() heard { return a.get("/v1/operations/watched", "Prefer: wait=60, respond-async") })
	a.confirm("watched")
	h := answer()
	h.is(t, 200, "", "use_result", true)
	if h.Header().Get("Preference-Applied") != "wait=60" {
		t.Error("Preference-Applied: ", h.Header())
	}

	// Who waits for an alias waits for its original.
	a.submit(named("first"))
	second := strings.Replace(named("second"), "ref-second", "ref-first", 1)
	a.submit(second)
	w.same("second")
	answer = inBackground(t, func() heard { return a.submit(second, "Prefer: wait=10") })
	a.confirm("first")
	answer().is(t, 200, "", "use_result", true)
}

// confirm waits for the operation to appear, and lets the provider do it.
func (a agent) confirm(id string) {
	a.t.Helper()
	soon(a.t.(*testing.T), id+" is registered", func() bool {
		_, err := a.Store.Operation(a.t.Context(), a.tenant, id)
		return err == nil
	})
	a.answer(a.stored(a.tenant, id), receiptFor(a.stored(a.tenant, id)))
}

func TestPatienceEndsWithWhatIsKnown(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(named("known"))
	for _, h := range []heard{a.submit(named("known"), "Prefer: wait=1"), a.submit(named("new"), "Prefer: wait=1")} {
		h.is(t, 202, "", "wait", false)
		if h.Header().Get("Preference-Applied") != "wait=1" || h.Header().Get("Retry-After") != "1" {
			t.Error(h.Header())
		}
	}
}

func TestPreferencesAreReadAsTheRFCSays(t *testing.T) {
	for header, want := range map[string]preference{
		"": {}, "wait=5": {wait: 5e9}, `wait="5"`: {wait: 5e9}, "WAIT = 5": {wait: 5e9}, "wait=61": {wait: 60e9}, "wait=0": {}, "wait=-1": {}, "wait": {},
		"wait=soon": {}, "respond-async": {async: true}, "handling=lenient, respond-async , wait=2": {wait: 2e9, async: true}, "wait=9223372036854775807": {wait: 60e9},
		"respond-async; foo=bar": {async: true}, "wait=5; foo=bar": {wait: 5e9}, "wait=2, wait=9": {wait: 2e9},
	} {
		r, err := http.NewRequest(http.MethodPost, "/", nil)
		must(t, err)
		r.Header.Set("Prefer", header)
		if got := preferences(r); got != want {
			t.Errorf("Prefer: %s is %+v, want %+v", header, got, want)
		}
	}
}

func TestCancelBeforeAndAfterASend(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	cancel := func(id string) heard { return a.call(http.MethodPost, "/v1/operations/"+id+"/cancel", "") }
	a.submit(named("ready"))
	a.submit(changed("4800", "200000", "ID", "asked"))
	a.submit(changed("ref-ID", "ref-ready", "ID", "held"))
	for _, id := range []string{"ready", "asked", "held"} {
		for range 2 { // the same answer again
			cancel(id).is(t, 200, "cancelled", "stop", true)
		}
		if o := w.stored("default", id); o.Status != ledger.Rejected || o.Reason != ledger.Cancelled || o.Attempts != 0 || o.Version != 2 {
			t.Errorf("%s is %s %s version %d", id, o.Status, o.Reason, o.Version)
		}
	}
	h := a.submit(named("ready"))
	h.is(t, 200, "cancelled", "stop", true)
	if h.Header().Get("Idempotent-Replayed") != "true" {
		t.Error("the repeat of what was taken back: ", h.Header())
	}

	a.marked("in_flight")
	a.submit(named("unknown"))
	a.lose(w.stored("default", "unknown"))
	a.confirmed("confirmed")
	a.submit(named("declined"))
	w.answer(w.stored("default", "declined"), ledger.Answer{Finding: ledger.Refused, HTTPStatus: 402})
	for id, wait := range map[string]string{"in_flight": "1", "unknown": "5", "confirmed": "", "declined": ""} {
		before := w.stored("default", id)
		h := cancel(id)
		h.is(t, 409, "already_dispatched", "wait", false)
		operation, _ := h.said["operation"].(map[string]any)
		if h.Header().Get("Retry-After") != wait || operation["status"] != string(before.Status) || h.text("poll") != "/v1/operations/"+id {
			t.Errorf("%s: %v %s", id, h.Header(), h.Body)
		}
		if after := w.stored("default", id); after.Version != before.Version {
			t.Errorf("%s changed", id)
		}
	}
}

func TestTokensNarrowWhatTheyMayDo(t *testing.T) {
	w := newServer(t, apiConfig)
	cap := int64(4800)
	all := w.agent("default")
	all.submit(named("there"))
	narrowed := func(r ledger.TokenRecord) agent {
		r.TenantID, r.Agent, r.ExpiresAt = "default", "narrow", w.Store.Now()+3_600_000
		if r.Scopes == nil {
			r.Scopes = Scopes
		}
		token, _, err := IssueToken(t.Context(), w.Store, r, ledger.Holder{Kind: ledger.Person, Name: "test"})
		must(t, err)
		return agent{w, "default", token}
	}
	reads := narrowed(ledger.TokenRecord{Scopes: []string{"operations:read"}})
	writes := narrowed(ledger.TokenRecord{Scopes: []string{"operations:write"}})
	refunds := narrowed(ledger.TokenRecord{ActionTypes: []string{"refund"}})
	elsewhere := narrowed(ledger.TokenRecord{Rails: []string{"wire"}})
	small := narrowed(ledger.TokenRecord{MaxAmount: &cap, Currency: "EUR"})
	cancel := func(a agent) heard { return a.call(http.MethodPost, "/v1/operations/there/cancel", "") }
	for name, h := range map[string]heard{
		"operations:write": reads.submit(named("op-1")), "operations:write ": cancel(reads), "operations:write  ": reads.submit("no JSON at all"),
		"operations:read": writes.get("/v1/operations/there"), "operations:read ": writes.get("/v1/operations"), "operations:read  ": writes.get("/v1/operations/absent"),
		`"pay"`: refunds.submit(named("op-1")), `"pay" `: cancel(refunds), "rail": elsewhere.submit(named("op-1")), "rail ": cancel(elsewhere),
		"cap": small.submit(changed("4800", "4801", "ID", "op-1")), "cap ": small.submit(changed("EUR", "USD", "ID", "op-1")),
	} {
		h.is(t, 403, "forbidden", "stop", true)
		if !strings.Contains(h.text("detail"), strings.TrimSpace(name)) || h.said["operation"] != nil {
			t.Errorf("does not name %s: %s", name, h.Body)
		}
		if strings.Contains(h.Body.String(), "4800") {
			t.Error("the cap is told: ", h.Body)
		}
	}
	if o := w.stored("default", "there"); o.Version != 1 || w.count("default") != 1 {
		t.Error("something was recorded")
	}
	small.submit(named("op-1")).is(t, 202, "", "wait", false)
	// Any token of the tenant that may use the action type repeats any operation.
	h := small.submit(named("there"))
	h.is(t, 409, "in_progress", "wait", false)
	writes.submit(named("there")).is(t, 409, "in_progress", "wait", false)
	refunds.submit(named("there")).is(t, 403, "forbidden", "stop", true)
}

func TestDenialCarriesThePersonsSentence(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	body := changed("4800", "200000", "ID", "op-1")
	a.submit(body)
	o := w.stored("default", "op-1")
	_, err := w.Store.AskForChanges(t.Context(), "default", "op-1", store.Decision{Person: w.person("default", "ana@example.com", "approver"),
		Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}, Reason: "split it by month"})
	must(t, err)
	for _, h := range []heard{a.submit(body), a.get("/v1/operations/op-1"), a.submit(body, "Prefer: wait=5")} {
		h.is(t, 200, "denied", "stop", true)
		if decision, _ := h.said["decision"].(map[string]any); decision["message"] != "split it by month" {
			t.Error("the agent is not told: ", h.Body)
		}
	}
}

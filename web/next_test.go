package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast/store"
	"holdfast/store/ledger"
)

func TestReplacedOperationNamesItsSuccessor(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(changed("4800", "200000", "ID", "old"))
	before := a.get("/v1/operations/old")
	if value, there := before.said["replaced_by"]; value != nil || !there {
		t.Error("before: ", before.Body)
	}
	a.submit(replacing("new", "old"))
	h := a.get("/v1/operations/old", "If-None-Match: "+before.Header().Get("ETag"))
	h.is(t, 200, "replaced", "stop", true)
	if h.text("replaced_by") != "new" || !strings.Contains(h.text("detail"), "Operation new replaced it") {
		t.Error("it does not name its successor: ", h.Body)
	}
	// One that a person sent back is followed too, and its tag changes with that.
	a.submit(changed("4800", "200000", "ID", "large"))
	o := a.stored("default", "large")
	_, err := a.Store.AskForChanges(t.Context(), "default", "large", store.Decision{Person: a.person("default", "ana@example.com", "approver"),
		Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}, Reason: "at most 50 euro"})
	must(t, err)
	tag := a.get("/v1/operations/large").Header().Get("ETag")
	a.submit(replacing("small", "large"))
	h = a.get("/v1/operations/large", "If-None-Match: "+tag)
	h.is(t, 200, "denied", "stop", true)
	if h.text("replaced_by") != "small" || !strings.Contains(h.text("detail"), "Operation small stands in its place now") {
		t.Error("it is not followed: ", h.Body)
	}
}

func TestWhatWaitsForAnotherSaysForWhich(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(named("one"))
	a.submit(named("two"))
	h := a.submit(after("last", "one", "two"))
	h.is(t, 202, "", "wait", false)
	if h.Header().Get("Retry-After") != "30" || h.said["retry_after"] != 30.0 || !strings.Contains(h.text("detail"), "waits until one, two are confirmed") {
		t.Error("it says ", h.Body)
	}
	tag := h.Header().Get("ETag")
	a.confirm("one")
	h = a.get("/v1/operations/last", "If-None-Match: "+tag)
	if h.Code != 200 || !strings.Contains(h.text("detail"), "waits until two is confirmed") {
		t.Error("after one of them: ", h.Code, h.Body)
	}
	a.confirm("two")
	h = a.get("/v1/operations/last")
	if h.said["retry_after"] != 1.0 || strings.Contains(h.text("detail"), "until") {
		t.Error("after both: ", h.Body)
	}
}

func TestTooLateSaysWhetherThereIsAnOutcomeToWaitFor(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	cancel := func(id string) heard { return a.call(http.MethodPost, "/v1/operations/"+id+"/cancel", "") }
	a.submit(named("old"))
	a.submit(replacing("new", "old"))
	h := cancel("old")
	h.is(t, 409, "already_dispatched", "stop", true)
	if strings.Contains(h.text("detail"), "was sent, or") || !strings.Contains(h.text("detail"), "Operation new replaced it") || h.Header().Get("Retry-After") != "" {
		t.Error("a replaced one: ", h.Body)
	}
	a.submit(replacing("newer", "old")).is(t, 409, "already_dispatched", "stop", true)
	cancel("new").is(t, 200, "cancelled", "stop", true)

	// An alias whose original is held has nothing to wait for but a person.
	a.submit(named("first"))
	a.submit(changed("ref-ID", "ref-first", "ID", "held")).is(t, 202, "same_reference", "await_human", false)
	a.submit(changed("ref-ID", "ref-first", "4800", "4900", "ID", "alias")).is(t, 202, "same_reference", "await_human", false)
	o := a.stored("default", "alias")
	_, err := a.Store.SamePurchase(t.Context(), "default", "alias", store.Decision{Person: a.person("default", "ana@example.com", "approver"),
		Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}, Reason: "one invoice", Original: "held"})
	must(t, err)
	h = cancel("alias")
	h.is(t, 409, "already_dispatched", "await_human", false)
	if h.Header().Get("Retry-After") != "30" {
		t.Error("an alias of a held one: ", h.Header())
	}
	a.marked("sent")
	cancel("sent").is(t, 409, "already_dispatched", "wait", false)
}

func TestNothingComesAfterWhatItReplaces(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(named("old"))
	for body, pointer := range map[string]string{
		with("op-A", `"replaces":"old","after":["old"]`): "/after",
		replacing("op-A", "nope"):                        "/replaces",
		replacing("op-A", "op-A"):                        "/replaces",
		after("op-A", "op-A"):                            "/after",
	} {
		h := a.submit(body)
		h.is(t, 400, "invalid_request", "fix_request", false)
		if h.text("pointer") != pointer || pointer == "/replaces" && strings.Contains(h.text("detail"), "after") {
			t.Errorf("%s is answered %s", body, h.Body)
		}
	}
	a.is("old", ledger.Ready, "")
}

func TestIntentAfterANoSaysWhoSaidIt(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(changed("4800", "200000", "ID", "op-A"))
	o := a.stored("default", "op-A")
	_, err := a.Store.Reject(t.Context(), "default", "op-A", store.Decision{Person: a.person("default", "ana@example.com", "approver"),
		Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}, Reason: "we do not buy there"})
	must(t, err)
	for _, code := range []int{201, 200} {
		h := a.intend(by("reference", "ref-op-A"))
		h.gives(t, code)
		for _, word := range []string{"op-A, which was rejected: a person said no.", `They wrote: "we do not buy there".`, "Ask the person you work for before you submit it"} {
			if !strings.Contains(h.text("detail"), word) {
				t.Errorf("it does not say %q: %s", word, h.Body)
			}
		}
	}
	a.submit(named("op-B"))
	a.call(http.MethodPost, "/v1/operations/op-B/cancel", "").is(t, 200, "cancelled", "stop", true)
	if h := a.intend(by("reference", "ref-op-B")); !strings.Contains(h.text("detail"), "op-B, which was rejected: it was taken back") || strings.Contains(h.text("detail"), "Ask the person") {
		t.Error("after its own cancel: ", h.Body)
	}
}

func TestQuoteThatSaysNothingUsableIsRefusedByPlace(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	for quote, want := range map[string]string{
		`{}`:                                    "/quote",
		`{"id":""}`:                             "/quote",
		`{"amount":0}`:                          "/quote/amount",
		`{"amount":-1}`:                         "/quote/amount",
		`{"expires_at":"2026-03-04T08:59:59Z"}`: "/quote/expires_at",
	} {
		if h := a.intend(quoted("r", quote)); h.Code != 400 || h.text("pointer") != want {
			t.Errorf("%s is answered %d %s", quote, h.Code, fmt.Sprint(h.Body))
		}
	}
}

func TestCursorThatNoListGaveOutIsRefused(t *testing.T) {
	w := newServer(t, apiConfig)
	a, b := w.agent("t1"), w.agent("t2")
	for i := range 3 {
		a.submit(named(fmt.Sprint("op-", i)))
		b.submit(named(fmt.Sprint("op-", i)))
	}
	given := a.get("/v1/operations?limit=1").text("next_cursor")
	if h := a.get("/v1/operations?limit=1&cursor=" + given); h.Code != 200 || !strings.Contains(h.Body.String(), `"op-1"`) {
		t.Error("its own cursor: ", h.Body)
	}
	row, check, _ := strings.Cut(given, "-")
	for _, cursor := range []string{"1", "zzz", row, row + "-", "1-" + check, given + "0"} {
		a.get("/v1/operations?cursor="+cursor).is(t, 400, "invalid_request", "fix_request", false)
	}
	b.get("/v1/operations?cursor="+given).is(t, 400, "invalid_request", "fix_request", false)
}

func TestWhatIsReadOnOneLineCannotBreakIt(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	for _, member := range []string{"run_id", "parent_run_id", "step", "because"} {
		for _, odd := range []string{`a\u0000`, `a\nb`, `a\u202eb`, `a\u2066b`, `a\u007f`} {
			h := a.submit(with("op-A", fmt.Sprintf(`%q:"%s"`, member, odd)))
			h.is(t, 400, "malformed_json", "fix_request", false)
			if h.text("pointer") != "/"+member {
				t.Errorf("%s %s is answered %s", member, odd, h.Body)
			}
		}
	}
	a.absent("op-A")
	if h := a.intend(`{"action_type":"pay","run_id":"r\n","step":"s"}`); h.Code != 400 || h.text("pointer") != "/run_id" {
		t.Error("an intent: ", h.Body)
	}
}

func TestSmallTokenEndsNothingLarge(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	a.submit(named("op-A")).is(t, 202, "", "wait", false)
	most := int64(100)
	token, _, err := IssueToken(t.Context(), w.Store, ledger.TokenRecord{TenantID: "default", Agent: "small", Scopes: Scopes, MaxAmount: &most, Currency: "EUR",
		ExpiresAt: w.Store.Now() + 3_600_000}, ledger.Holder{Kind: ledger.Person, Name: "test"})
	must(t, err)
	small := agent{w, "default", token}
	small.call(http.MethodPost, "/v1/operations/op-A/cancel", "").is(t, 403, "forbidden", "stop", true)
	small.submit(replacing("op-B", "op-A", "4800", "50")).is(t, 403, "forbidden", "stop", true)
	a.is("op-A", ledger.Ready, "")
}

func TestRunThatIsOverHasNothingLeft(t *testing.T) {
	w := newServer(t, runsConfig)
	a := w.agent("default")
	a.lower("run-9", `{"max_attempts":1}`).has(t, 0, 1)
	if h := a.run("run-9"); !strings.Contains(h.text("detail"), "1 retry is left") {
		t.Error("it reads ", h.Body)
	}
	for body, pointer := range map[string]string{`{"max_attempts":9}`: "/max_attempts", `{"deadline":"2027-03-04T10:00:00Z"}`: "/deadline"} {
		h := a.lower("run-9", body)
		if h.Code != 400 || h.text("pointer") != pointer || strings.Contains(h.text("detail"), "Max_") {
			t.Errorf("%s is answered %s", body, h.Body)
		}
	}
	h := a.lower("run-9", `{"deadline":"2026-03-04T08:00:00Z"}`)
	h.has(t, 0, 0)
	if !strings.Contains(h.text("detail"), "time of the run run-9 is over") {
		t.Error("it reads ", h.Body)
	}
}

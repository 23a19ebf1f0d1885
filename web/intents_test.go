package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store/ledger"
)

func (a agent) intend(body string) heard {
	a.t.Helper()
	return a.call(http.MethodPost, "/v1/intents", body, "Content-Type: application/json")
}

// by names a purchase of the action type pay in some of the ways there are.
func by(names ...string) string {
	body := `{"action_type":"pay"`
	for i := 0; i < len(names); i += 2 {
		body += fmt.Sprintf(`,%q:%q`, names[i], names[i+1])
	}
	return body + "}"
}

// quoted is an intent with an offer.
func quoted(reference, quote string) string {
	return strings.TrimSuffix(by("reference", reference), "}") + `,"quote":` + quote + "}"
}

// gives checks that an intent was answered with an id, and returns it.
func (h heard) gives(t testing.TB, code int) string {
	t.Helper()
	id := h.text("operation_id")
	if h.Code != code || id == "" || h.text("poll") != "/v1/operations/"+id || h.Header().Get("Location") != h.text("poll") {
		t.Fatalf("answered %d %s, want %d and an id", h.Code, h.Body, code)
	}
	return id
}

// another is an agent of the same tenant with a name of its own.
func (a agent) another() agent {
	a.t.Helper()
	token, _ := a.world.token(a.tenant, "agent-2", "owner@example.com")
	return agent{a.world, a.tenant, token}
}

func TestSameReferenceGivesTheSameID(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	first := a.intend(by("reference", "invoice-481"))
	id := first.gives(t, 201)
	if first.said["previous"] != nil || first.said["operation"] != nil || first.text("reference") != "invoice-481" {
		t.Error("a new intent says ", first.Body)
	}
	for _, asking := range []agent{a, a.another()} {
		for _, spelled := range []string{"invoice-481", "INVOICE-481", "invoice-481 "} {
			if got := asking.intend(by("reference", spelled)).gives(t, 200); got != id {
				t.Errorf("%q has the id %s, not %s", spelled, got, id)
			}
		}
	}
	others := []string{by("reference", "invoice-482"), by("reference", "invoice 481"),
		strings.Replace(by("reference", "invoice-481"), `"pay"`, `"refund"`, 1)}
	for _, other := range others {
		if got := a.intend(other).gives(t, 201); got == id {
			t.Errorf("%s has the id of another purchase", other)
		}
	}
	if a.count("default") != 0 {
		t.Error("an intent made an operation")
	}
	a.submit(changed("ID", id, "ref-ID", "invoice-481")).is(t, 202, "", "wait", false)
}

func TestSameStepGivesTheSameID(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	id := a.intend(by("run_id", "run-9", "step", "charge")).gives(t, 201)
	// The reference becomes known later, and then leads to the same id too.
	for _, again := range []string{by("run_id", "run-9", "step", "charge"), by("run_id", "run-9", "step", "charge", "reference", "ref-1"), by("reference", "ref-1")} {
		if got := a.intend(again).gives(t, 200); got != id {
			t.Errorf("%s gave %s, not %s", again, got, id)
		}
	}
	for _, other := range []string{by("run_id", "run-8", "step", "charge"), by("run_id", "run-9", "step", "ship"), by("run_id", "run-9\",\"ch", "step", "arge")} {
		if got := a.intend(other).gives(t, 201); got == id {
			t.Errorf("%s has the id of another step", other)
		}
	}
}

// withLineage is the good submission as a step of a run.
func withLineage(id, run, step string, oldNew ...string) string {
	body := strings.TrimSuffix(named(id), "}") + fmt.Sprintf(`,"run_id":%q,"step":%q}`, run, step)
	return strings.NewReplacer(oldNew...).Replace(body)
}

func TestOperationWithoutIntentIsFoundAgain(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(withLineage("op-A", "run-9", "charge")).is(t, 202, "", "wait", false)
	for _, names := range []string{by("reference", "ref-op-A"), by("run_id", "run-9", "step", "charge"), by("reference", "ref-op-A", "run_id", "run-9", "step", "charge")} {
		h := a.another().intend(names)
		if got := h.gives(t, 200); got != "op-A" {
			t.Errorf("%s gave %s", names, got)
		}
		if said, _ := h.said["operation"].(map[string]any); said["status"] != "ready" || said["next"] != "wait" {
			t.Error("what became of it is not told: ", h.Body)
		}
	}
	// A second id for the same purchase is held and has no name.
	a.submit(changed("ref-ID", "ref-op-A", "ID", "op-B")).is(t, 202, "same_reference", "await_human", false)
	a.confirm("op-A")
	h := a.intend(by("reference", "ref-op-A"))
	if said, _ := h.said["operation"].(map[string]any); h.gives(t, 200) != "op-A" || said["next"] != "use_result" {
		t.Error("the second id took the name: ", h.Body)
	}
	// What a person calls the same purchase has the name of it.
	a.same("op-B")
	if got := a.intend(by("reference", "ref-op-A")).gives(t, 200); got != "op-A" {
		t.Error("the alias took the name: ", got)
	}
}

func TestIntentsAtOnceAreOneID(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	const many = 16
	for round, submits := range []bool{false, true} {
		reference := fmt.Sprint("ref-", round)
		ids := make(chan string, many)
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				if submits && i == many/2 { // somebody submits the same purchase without an intent
					a.submit(changed("ref-ID", reference, "ID", "op-A"))
				}
				h := a.intend(by("reference", reference, "run_id", "run-9", "step", fmt.Sprint("charge-", round)))
				if h.Code != 200 && h.Code != 201 {
					t.Error(h.Code, h.Body)
				}
				ids <- h.text("operation_id")
			})
		}
		all.Wait()
		close(ids)
		different := map[string]int{}
		for id := range ids {
			different[id]++
		}
		if len(different) != 1 {
			t.Error("at once there are ", different)
		}
	}
}

func TestReferenceAndStepOfTwoOperationsAreAConflict(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(named("op-A")).is(t, 202, "", "wait", false)
	a.submit(withLineage("op-B", "run-9", "charge")).is(t, 202, "", "wait", false)
	both := by("reference", "ref-op-A", "run_id", "run-9", "step", "charge")
	for range 2 {
		a.intend(both).is(t, 409, "intent_conflict", "stop", true)
	}
	for names, want := range map[string]string{by("reference", "ref-op-A"): "op-A", by("run_id", "run-9", "step", "charge"): "op-B"} {
		if got := a.intend(names).gives(t, 200); got != want {
			t.Errorf("after the conflict %s gave %s", names, got)
		}
	}
	// Once one of the two is over, there is nothing to choose.
	a.call(http.MethodPost, "/v1/operations/op-B/cancel", "").is(t, 200, "cancelled", "stop", true)
	if got := a.intend(both).gives(t, 200); got != "op-A" {
		t.Error("after one was cancelled: ", got)
	}
	if got := a.intend(by("run_id", "run-9", "step", "charge")).gives(t, 200); got != "op-A" {
		t.Error("the step did not follow: ", got)
	}
}

func TestRejectedOperationIsFollowedByANewID(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	names := by("reference", "ref-op-A", "run_id", "run-9", "step", "charge")
	a.submit(withLineage("op-A", "run-9", "charge")).is(t, 202, "", "wait", false)
	before := "op-A"
	for range 3 {
		a.call(http.MethodPost, "/v1/operations/"+before+"/cancel", "").is(t, 200, "cancelled", "stop", true)
		h := a.intend(names)
		id := h.gives(t, 201)
		if h.text("previous") != before || h.said["operation"] != nil {
			t.Fatalf("after %s: %s", before, h.Body)
		}
		if h = a.intend(names); h.gives(t, 200) != id || h.text("previous") != before {
			t.Fatalf("asked again after %s: %s", before, h.Body)
		}
		a.submit(withLineage(id, "run-9", "charge", "ref-"+id, "ref-op-A")).is(t, 202, "", "wait", false)
		before = id
	}
}

// An alias stands where its original stands: once that one was rejected, the
// purchase may be begun again.
func TestRejectedOriginalIsFollowedByANewID(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(named("op-A")).is(t, 202, "", "wait", false)
	a.submit(withLineage("op-B", "run-9", "charge", "ref-op-B", "ref-op-A")).is(t, 202, "same_reference", "await_human", false)
	a.same("op-B")
	names := []string{by("reference", "ref-op-A"), by("run_id", "run-9", "step", "charge")}
	if got := a.intend(names[1]).gives(t, 200); got != "op-B" {
		t.Error("the step leads to ", got)
	}
	a.answer(a.stored("default", "op-A"), ledger.Answer{Finding: ledger.Refused, HTTPStatus: 402})
	a.get("/v1/operations/op-B").is(t, 200, "declined", "stop", true)
	for _, n := range names {
		h := a.intend(n)
		id := h.gives(t, 201)
		if h.text("previous") == "" || h.said["operation"] != nil {
			t.Errorf("%s: %s", n, h.Body)
		}
		if got := a.intend(n).gives(t, 200); got != id {
			t.Errorf("%s gave %s and then %s", n, id, got)
		}
	}
}

func TestSubmissionKeepsToItsQuote(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	until := w.now().Add(time.Hour).UTC().Format(time.RFC3339)
	offer := fmt.Sprintf(`{"id":"q-1","amount":4800,"currency":"eur","recipient":"acct_7","expires_at":%q}`, until)
	first := a.intend(quoted("ref-1", offer))
	id := first.gives(t, 201)
	quote, _ := first.said["quote"].(map[string]any)
	if quote["id"] != "q-1" || quote["amount"] != 4800.0 || quote["expires_at"] != strings.Replace(until, "Z", ".000Z", 1) {
		t.Error("the quote reads ", first.Body)
	}
	good := changed("ref-ID", "ref-1", "acct-ID", "acct_7", "ID", id)
	for _, c := range []struct {
		body     string
		mismatch []any
	}{
		{strings.Replace(good, "4800", "4801", 1), []any{"/amount"}},
		{strings.Replace(good, "EUR", "USD", 1), []any{"/currency"}},
		{strings.Replace(good, "acct_7", "acct_8", 1), []any{"/recipient"}},
		{strings.Replace(good, "ref-1", "ref-2", 1), []any{"/reference"}},
		{strings.NewReplacer("4800", "1", "EUR", "GBP", "acct_7", "me").Replace(good), []any{"/amount", "/currency", "/recipient"}},
		{strings.Replace(good, `"pay"`, `"refund"`, 1), []any{"/action_type"}},
	} {
		h := a.submit(c.body)
		h.is(t, 409, "request", "stop", true)
		if got, _ := h.said["mismatch"].([]any); !slices.Equal(got, c.mismatch) || strings.Contains(h.text("detail"), "4800") {
			t.Errorf("%s\nanswered %s", c.body, h.Body)
		}
		a.absent(id)
	}
	// Another offer under the same name is refused while this one is good.
	h := a.intend(quoted("ref-1", strings.Replace(offer, "4800", "4700", 1)))
	h.is(t, 409, "request", "stop", true)
	if fmt.Sprint(h.said["mismatch"]) != "[/quote]" {
		t.Error("the differing quote is not named: ", h.Body)
	}
	if got := a.intend(quoted("ref-1", offer)).gives(t, 200); got != id {
		t.Error("the same quote gave ", got)
	}
	a.submit(good).is(t, 202, "", "wait", false)
	a.intend(quoted("ref-1", offer)).gives(t, 200)
	h = a.intend(quoted("ref-1", strings.Replace(offer, "4800", "4700", 1)))
	h.is(t, 409, "request", "stop", true)
	if fmt.Sprint(h.said["mismatch"]) != "[/amount]" {
		t.Error("a quote that came after the operation: ", h.Body)
	}
	w.pass(2 * time.Hour) // what was submitted in time is repeated at any time
	a = w.agent("default")
	a.submit(good).is(t, 409, "in_progress", "wait", false)
}

func TestQuoteComesAfterTheName(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	id := a.intend(by("reference", "ref-1")).gives(t, 201)
	if got := a.intend(quoted("ref-1", `{"amount":4800}`)).gives(t, 200); got != id {
		t.Error("the quote has another id: ", got)
	}
	a.submit(changed("4800", "4801", "ref-ID", "ref-1", "ID", id)).is(t, 409, "request", "stop", true)
	a.submit(changed("ref-ID", "ref-1", "ID", id)).is(t, 202, "", "wait", false)
}

func TestQuoteThatRanOutIsRefusedAndFollowed(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	offer := func(from time.Time) string {
		return quoted("ref-1", fmt.Sprintf(`{"id":"q","amount":4800,"expires_at":%q}`, from.Add(time.Minute).UTC().Format(time.RFC3339)))
	}
	a.intend(offer(w.now().Add(-2*time.Minute))).is(t, 400, "invalid_request", "fix_request", false)
	first := a.intend(offer(w.now())).gives(t, 201)
	w.pass(time.Minute)
	late := changed("ref-ID", "ref-1", "ID", first)
	for range 2 {
		h := a.submit(late)
		h.is(t, 409, "request", "stop", true)
		if fmt.Sprint(h.said["mismatch"]) != "[/quote]" || !strings.Contains(h.text("detail"), "ran out at 2026-03-04T09:01:00Z") {
			t.Error("it does not say that the quote ran out: ", h.Body)
		}
		a.absent(first)
	}
	h := a.intend(offer(w.now()))
	second := h.gives(t, 201)
	if second == first || h.text("previous") != first {
		t.Error("after the quote ran out: ", h.Body)
	}
	if h = a.intend(by("reference", "ref-1")); h.gives(t, 200) != second || h.text("previous") != first {
		t.Error("the new id is not found again: ", h.Body)
	}
	a.submit(late).is(t, 409, "request", "stop", true) // it stays on record
	a.submit(changed("ref-ID", "ref-1", "ID", second)).is(t, 202, "", "wait", false)
}

func TestIntentsAreTheTenantsOwn(t *testing.T) {
	w := newServer(t, apiConfig)
	one, two := w.agent("t1"), w.agent("t2")
	one.submit(withLineage("op-A", "run-9", "charge"))
	mine := one.intend(quoted("ref-1", `{"amount":1}`)).gives(t, 201)
	for _, names := range []string{by("reference", "ref-op-A"), by("run_id", "run-9", "step", "charge"), by("reference", "ref-1")} {
		h := two.intend(names)
		if id := h.gives(t, 201); id == "op-A" || id == mine || h.said["previous"] != nil || h.said["operation"] != nil || h.said["quote"] != nil {
			t.Errorf("%s tells a stranger %s", names, h.Body)
		}
	}
	// The first tenant's quote binds nobody else who uses the same id.
	two.submit(changed("ref-ID", "ref-x", "ID", mine)).is(t, 202, "", "wait", false)
	one.absent(mine)
}

func TestIntentsAreRefusedByPlace(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	for body, want := range map[string]string{
		`{"action_type":"pay"}`:                                     "400 invalid_request",
		by("run_id", "run-9"):                                       "400 invalid_request",
		by("step", "charge"):                                        "400 invalid_request",
		by("reference", ""):                                         "400 invalid_request",
		by("reference", strings.Repeat("r", 257)):                   "400 malformed_json",
		by("reference", "r", "operation_id", "op-mine"):             "400 malformed_json",
		`{"reference":"r"}`:                                         "422 unknown_action_type",
		`{"action_type":"fly","reference":"r"}`:                     "422 unknown_action_type",
		quoted("r", `"cheap"`):                                      "400 malformed_json",
		quoted("r", `{"amount":48.5}`):                              "400 malformed_json",
		quoted("r", `{"amount":"48"}`):                              "400 malformed_json",
		quoted("r", `{"amount":99999999999999999999}`):              "400 malformed_json",
		quoted("r", `{"price":48}`):                                 "400 malformed_json",
		quoted("r", `{"expires_at":"tomorrow"}`):                    "400 malformed_json",
		quoted("r", `{"expires_at":"2026-03-04T08:59:59Z"}`):        "400 invalid_request",
		`{"action_type":"pay","reference":"r","reference":"other"}`: "400 malformed_json",
	} {
		h := a.intend(body)
		if got := fmt.Sprint(h.Code, " ", h.text("reason")); got != want {
			t.Errorf("%s is answered %s, want %s", body, got, want)
		}
	}
	if got := a.intend(quoted("r", "null")).gives(t, 201); got == "" {
		t.Error("no quote is no fault")
	}
	for _, r := range []ledger.TokenRecord{{Scopes: []string{"operations:read"}}, {Scopes: Scopes, ActionTypes: []string{"refund"}}, {Scopes: Scopes, Rails: []string{"wire"}}} {
		r.TenantID, r.Agent, r.ExpiresAt = "default", "narrow", w.Store.Now()+3_600_000
		token, _, err := IssueToken(t.Context(), w.Store, r, ledger.Holder{Kind: ledger.Person, Name: "test"})
		must(t, err)
		agent{w, "default", token}.intend(by("reference", "r")).is(t, 403, "forbidden", "stop", true)
	}
}

// A name is compared in the form in which the payload would hold it.
func TestIntentIsReadAsThePayloadIs(t *testing.T) {
	config := strings.NewReplacer("recipient: { type: string,", "recipient: { type: string, x-normalize: lowercase,",
		"reference: { type: string,", "reference: { type: string, x-normalize: trim,").Replace(apiConfig)
	a := newServer(t, config).agent("default")
	a.submit(changed("ref-ID", " INV-1 ", "ID", "op-A")).is(t, 202, "", "wait", false)
	if got := a.intend(by("reference", " INV-1")).gives(t, 200); got != "op-A" {
		t.Error("the reference led to ", got)
	}
	id := a.intend(quoted("INV-2 ", `{"currency":"eur","recipient":"ACCT_7"}`)).gives(t, 201)
	a.submit(changed("ref-ID", "INV-2 ", "acct-ID", "ACCT_7", "ID", id)).is(t, 202, "", "wait", false)
}

// What an id was given out for protects the operation that uses it, whether the
// submission repeats it or not.
func TestIntentNamesTheOperationThatUsesItsID(t *testing.T) {
	for _, c := range []struct{ claim, intent, submission, fresh, held string }{
		{"by its reference", by("reference", "FA-1"), named("ID"), changed("ref-ID", "fa-1", "4800", "5100", "ID", "op-fresh"), "same_reference"},
		{"by its step", by("run_id", "run-9", "step", "charge"), named("ID"), withLineage("op-fresh", "run-9", "charge", "4800", "5100"), "same_step"},
		{"by its step, where the run alone is repeated", by("run_id", "run-9", "step", "charge"), strings.Replace(named("ID"), `"payload"`, `"run_id":"run-9","payload"`, 1),
			withLineage("op-fresh", "run-9", "charge", "4800", "5100"), "same_step"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			a := newServer(t, apiConfig).agent("default")
			id := a.intend(c.intent).gives(t, 201)
			body := strings.Replace(c.submission, `"ID"`, fmt.Sprintf("%q", id), 1)
			if c.held == "same_reference" {
				body = strings.Replace(body, `,"reference":"ref-ID"`, "", 1)
			}
			a.submit(body).is(t, 202, "", "wait", false)
			a.confirm(id)
			a.another().submit(c.fresh).is(t, 202, c.held, "await_human", false)
			a.submit(body).is(t, 200, "", "use_result", true)
			o := a.stored("default", id)
			if strings.Contains(string(o.Payload), "FA-1") || c.held == "same_reference" && o.Terms.Reference != "" {
				t.Errorf("the payload became %s", o.Payload)
			}
			for _, list := range []string{"?reference=FA-1", "?run_id=run-9"} {
				h := a.get("/v1/operations" + list)
				if strings.Contains(list, "FA-1") == (c.held == "same_reference") && !strings.Contains(h.Body.String(), id) {
					t.Errorf("%s lists %s", list, h.Body)
				}
			}
		})
	}
}

func TestSubmissionUnderAnIntentSaysNothingElse(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	id := a.intend(by("reference", "FA-1", "run_id", "run-9", "step", "charge")).gives(t, 201)
	for body, want := range map[string]string{
		withLineage(id, "run-8", "charge", "ref-"+id, "FA-1"): "[/run_id]",
		withLineage(id, "run-9", "ship", "ref-"+id, "FA-1"):   "[/step]",
		withLineage(id, "run-8", "ship"):                      "[/reference /run_id /step]",
	} {
		h := a.submit(body)
		h.is(t, 409, "request", "stop", true)
		if got := fmt.Sprint(h.said["mismatch"]); got != want {
			t.Errorf("%s names %s, want %s", body, got, want)
		}
		a.absent(id)
	}
	h := a.intend(by("reference", "FA-2", "run_id", "run-9", "step", "charge"))
	h.is(t, 409, "request", "stop", true)
	if fmt.Sprint(h.said["mismatch"]) != "[/reference]" {
		t.Error("another reference of the same step: ", h.Body)
	}
	a.submit(withLineage(id, "run-9", "charge", "ref-"+id, "fa-1")).is(t, 202, "", "wait", false)
}

// What a later intent says besides counts as what the first one said.
func TestIntentLearnsWhatALaterOneSays(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	id := a.intend(by("run_id", "run-9", "step", "charge")).gives(t, 201)
	a.intend(by("run_id", "run-9", "step", "charge", "reference", "FA-1")).gives(t, 200)
	a.submit(strings.Replace(named(id), fmt.Sprintf(`,"reference":"ref-%s"`, id), "", 1)).is(t, 202, "", "wait", false)
	a.another().submit(changed("ref-ID", "FA-1", "4800", "5100", "ID", "op-fresh")).is(t, 202, "same_reference", "await_human", false)
}

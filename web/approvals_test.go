package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// approvalsConfig gives people ten seconds to think again, and lets euros of the
// rule "small" be approved together.
var approvalsConfig = strings.Replace(pagesConfig, "policy:", `timing: { take_back: 10s }
policy:
  - { name: small, when: { currency: CHF }, then: ask, bulk: { up_to: 5000 } }`, 1)

func (b browser) approveMany(all ...ledger.Operation) int {
	b.t.Helper()
	return b.post(togetherPath, formOf(all...)).Code
}

func formOf(all ...ledger.Operation) url.Values {
	form := url.Values{}
	for _, o := range all {
		form.Add("operation_id", o.OperationID)
		form.Add("fingerprint", o.Fingerprint)
		form.Add("version", strconv.FormatInt(o.Version, 10))
	}
	return form
}

func TestPageAfterAnApprovalOffersToTakeItBackUntilItLeaves(t *testing.T) {
	w := newServer(t, approvalsConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "approver"))
	jon := w.signIn(w.person("default", "jon@example.com", "approver"))
	o := w.askedFor("")
	done := ana.act(o, "approve").Header().Get("Location")
	w.pass(2 * time.Second)
	shows(t, ana.get(done), http.StatusOK, "You approved €2,000.00.", "It leaves in 8 s.", "Take back approval", "(8)", `data-act="take-back"`)
	o = w.stored("default", o.OperationID)
	shows(t, jon.act(o, "take-back"), http.StatusForbidden, "Only who approved it can take that back.")
	shows(t, ana.get(ana.act(o, "take-back").Header().Get("Location")), http.StatusOK, "You took back your approval of €2,000.00.", "Nothing was sent.")
	o = w.stored("default", o.OperationID)
	if o.Status != ledger.AwaitingApproval {
		t.Fatalf("it is %s", o.Status)
	}
	ana.act(o, "approve")
	w.pass(10 * time.Second)
	o = w.stored("default", o.OperationID)
	claims, err := w.Store.Claim(t.Context(), "worker-1", "default", "card", 5, 5)
	must(t, err)
	if len(claims) != 1 {
		t.Fatalf("%d claims", len(claims))
	}
	hides(t, ana.get(done), `data-act="take-back"`)
	shows(t, ana.get(done), http.StatusOK, "the approval can't be taken back any more")
	shows(t, ana.act(o, "take-back"), http.StatusConflict, "A worker has it")
	shows(t, ana.get("/operations/"+o.OperationID), http.StatusOK, `data-refused="take-back"`)
}

func TestAgentIsToldTheFieldsThatAPersonPointedAt(t *testing.T) {
	w := newServer(t, approvalsConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "approver"))
	o := w.askedFor("")
	shows(t, ana.get("/operations/"+o.OperationID), http.StatusOK, `name="pointer" value="/amount"`)
	form := url.Values{"fingerprint": {o.Fingerprint}, "version": {strconv.FormatInt(o.Version, 10)}, "reason": {"Half of it."}, "pointer": {"/nowhere"}}
	path := "/operations/" + o.OperationID + "/ask-changes"
	shows(t, ana.post(path, form), http.StatusUnprocessableEntity, "A field was marked that is not in the payload.")
	form["pointer"] = []string{"/amount", "/recipient"}
	if answer := ana.post(path, form); answer.Code != http.StatusSeeOther {
		t.Fatalf("answered %d\n%s", answer.Code, text(answer))
	}
	token, _ := w.token("default", "agent-1", "")
	answer := w.do(http.MethodGet, "/v1/operations/"+o.OperationID, "", "Authorization: Bearer "+token)
	var said struct {
		Decision struct {
			Message  string
			Pointers []string
		}
	}
	must(t, json.Unmarshal(answer.Body.Bytes(), &said))
	if said.Decision.Message != "Half of it." || !slices.Equal(said.Decision.Pointers, []string{"/amount", "/recipient"}) || strings.Contains(answer.Body.String(), "ana@") {
		t.Errorf("the agent is told %s", answer.Body)
	}
}

func TestEachOfSeveralApprovedTogetherIsDecidedByItself(t *testing.T) {
	w := newServer(t, approvalsConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "approver"))
	jon := w.signIn(w.person("default", "jon@example.com", "approver"))
	small := func(owner string, amount int64) ledger.Operation {
		return w.ask(wanted{currency: "CHF", amount: amount, owner: owner})
	}
	one, two, stale, own, big := small("", 1000), small("", 5000), small("", 2000), small("ana@example.com", 1000), small("", 5001)
	shows(t, ana.get("/approvals"), http.StatusOK, togetherPath+"?action=pay&rule=small", "may be approved together")
	page := ana.get(togetherPath + "?rule=small&action=pay")
	shows(t, page, http.StatusOK, `data-act="approve-many"`, "Approve 3 operations, 80.00 CHF", "Someone else must decide.", "It is over what its rule lets be approved together")
	jon.act(stale, "reject", "reason", "not this one")

	answer := ana.post(togetherPath, formOf(one, two, stale, own, big))
	shows(t, answer, http.StatusOK, "You approved 2 operations, 60.00 CHF.", "Not approved", "It changed while you were reading.", "Someone else must decide.", "It is over what its rule")
	for _, c := range []struct {
		o      ledger.Operation
		status ledger.Status
	}{{one, ledger.Ready}, {two, ledger.Ready}, {stale, ledger.Rejected}, {own, ledger.AwaitingApproval}, {big, ledger.AwaitingApproval}} {
		if after := w.stored("default", c.o.OperationID); after.Status != c.status {
			t.Errorf("%s is %s, want %s", c.o.OperationID, after.Status, c.status)
		}
		log, err := w.Store.Timeline(t.Context(), "default", c.o.OperationID)
		must(t, err)
		approved := 0
		for _, e := range log {
			if e.Event == "approve" && strings.Contains(e.Fact, c.o.Fingerprint) && strings.Contains(e.Fact, `"together":5`) {
				approved++
			}
		}
		if want := map[bool]int{true: 1}[c.status == ledger.Ready]; approved != want {
			t.Errorf("%s has %d lines of an approval in the log, want %d", c.o.OperationID, approved, want)
		}
	}
	if code := ana.approveMany(one, two); code != http.StatusOK { // pressed twice: that was it already
		t.Errorf("the same form again is answered %d", code)
	}
}

func TestOneFormApprovesOneRuleAndTwentyFiveAtMost(t *testing.T) {
	w := newServer(t, approvalsConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "approver"))
	var all []ledger.Operation
	for range ledger.MostTogether + 1 {
		all = append(all, w.ask(wanted{currency: "CHF", amount: 1000}))
	}
	other := w.askedFor("")
	twice := []ledger.Operation{all[0], all[0]}
	for what, form := range map[string][]ledger.Operation{"too many": all, "two rules": {all[0], other}, "one twice": twice, "none": nil} {
		if code := ana.approveMany(form...); code != http.StatusUnprocessableEntity {
			t.Errorf("%s: answered %d", what, code)
		}
	}
	if code := ana.approveMany(other); code != http.StatusConflict { // its rule has no ceiling
		t.Errorf("a rule without bulk: answered %d", code)
	}
	for _, o := range append(all, other) {
		if after := w.stored("default", o.OperationID); after.Version != o.Version {
			t.Errorf("%s changed", o.OperationID)
		}
	}
	shows(t, ana.get(togetherPath+"?rule=small&action=pay"), http.StatusOK, "Approve 25 operations", "One form approves at most 25.")
}

func TestApprovalOfWhatWasReplacedMeanwhileIsNotRecorded(t *testing.T) {
	w := newServer(t, approvalsConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "approver"))
	o := w.askedFor("")
	token, _ := w.token("default", "agent-1", "")
	body := fmt.Sprintf(`{"operation_id":"newer","action_type":"pay","replaces":%q,"payload":{"amount":300000,"currency":"EUR","recipient":%q,"reference":%q,"iban":"DE-SECRET-77"}}`,
		o.OperationID, o.Terms.Recipient, o.Terms.Reference)
	if answer := w.do(http.MethodPost, "/v1/operations", body, "Authorization: Bearer "+token, "Content-Type: application/json"); answer.Code != http.StatusAccepted {
		t.Fatalf("replacing: %d %s", answer.Code, answer.Body)
	}
	shows(t, ana.act(o, "approve"), http.StatusPreconditionFailed, "This was replaced while you were reading.", "2,000.00 EUR", "3,000.00 EUR", "Your approval was not recorded.", "/operations/newer")
	if given, err := w.Store.Approvals(t.Context(), "default", o.OperationID); err != nil || len(given) != 0 {
		t.Errorf("it was recorded: %v %v", given, err)
	}
}

package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

// deciding is a row of the table below: an act, on what and with which form it
// is taken, and what becomes of the operation.
type deciding struct {
	act    string
	ready  func(w *world, owner string) ledger.Operation
	form   []string
	status ledger.Status
	reason ledger.Reason
}

var everyAct = []deciding{
	{"approve", (*world).askedFor, nil, ledger.Ready, ""},
	{"take-back", (*world).asksTwo, nil, ledger.AwaitingApproval, ""},
	{"reject", (*world).askedFor, []string{"reason", "wrong account"}, ledger.Rejected, ledger.Denied},
	{"reject", (*world).overlapping, []string{"reason", "not wanted"}, ledger.Rejected, ledger.Denied},
	{"ask-changes", (*world).askedFor, []string{"reason", "less, please"}, ledger.Rejected, ledger.Denied},
	{"happened", quietHold, []string{"receipt_id", "w_1_{op}", "amount", "48.00", "reason", "dashboard"}, ledger.Confirmed, ""},
	{"happened-twice", quietHold, []string{"receipt_id", "w_1_{op}", "second_receipt_id", "w_2_{op}", "reason", "dashboard"}, ledger.Confirmed, ""},
	{"did-not-happen", quietHold, []string{"reason", "their support says so"}, ledger.Rejected, ledger.NotExecuted},
	{"send-again", quietHold, []string{"reason", "they lost it"}, ledger.Ready, ""},
	{"still-unknown", freshHold, nil, ledger.UnknownHold, ledger.Inconclusive}, // this rail can't be asked: held again at once
	{"look-again", (*world).lost, nil, ledger.Unknown, ""},
	{"same-purchase", (*world).overlapping, []string{"reason", "the same invoice"}, ledger.Rejected, ledger.Duplicate},
	{"different-purchase", (*world).overlapping, []string{"reason", "two parcels"}, ledger.Ready, ""},
}

// asksTwo is an operation that waits for two people.
func (w *world) asksTwo(owner string) ledger.Operation {
	return w.ask(wanted{owner: owner, currency: "USD"})
}

func freshHold(w *world, owner string) ledger.Operation { return w.held(owner, false) }
func quietHold(w *world, owner string) ledger.Operation { return w.held(owner, true) }

// TestEveryActLeadsWhereItSays: whom it is refused to stands in the table of acts.
func TestEveryActLeadsWhereItSays(t *testing.T) {
	for _, c := range everyAct {
		t.Run(c.act, func(t *testing.T) {
			w := newServer(t, pagesConfig)
			owner := w.signIn(w.person("default", "owner@example.com", "admin", "approver", "finance"))

			for _, role := range []string{"approver", "finance", "admin"} {
				b := w.signIn(w.person("default", role+"@example.com", role))
				o := c.ready(w, owner.who.Email)
				if c.act == "take-back" {
					b.act(o, "approve")
					o = w.stored("default", o.OperationID)
				}
				shows(t, b.get("/operations/"+o.OperationID), http.StatusOK, `data-act="`+c.act+`"`)
				answer := b.act(o, c.act, c.form...)
				if answer.Code != http.StatusSeeOther {
					t.Fatalf("%s may %s, and was answered %d\n%s", role, c.act, answer.Code, text(answer))
				}
				after := w.stored("default", o.OperationID)
				if after.Status != c.status || after.Reason != c.reason {
					t.Errorf("after %s by %s it is %s %s, want %s %s", c.act, role, after.Status, after.Reason, c.status, c.reason)
				}
				if !w.named(o, b.who.Email) {
					t.Errorf("the log does not name %s", b.who.Email)
				}
				shows(t, b.get(answer.Header().Get("Location")), http.StatusOK, "Open it")
			}

			o := c.ready(w, "somebody@example.com")
			other := o
			other.Fingerprint = "hf1:sha256:00"
			if answer := owner.act(other, c.act, c.form...); answer.Code != http.StatusPreconditionFailed || w.stored("default", o.OperationID).Version != o.Version {
				t.Errorf("a form about another payload was answered %d\n%s", answer.Code, mainText(answer))
			}
		})
	}
}

func (w *world) named(o ledger.Operation, email string) bool {
	log, err := w.Store.Timeline(w.t.Context(), o.TenantID, o.OperationID)
	must(w.t, err)
	return slices.ContainsFunc(log, func(e ledger.Entry) bool { return e.ActorKind == ledger.Person && e.Actor == email })
}

func (w *world) logOf(o ledger.Operation) int {
	log, err := w.Store.Timeline(w.t.Context(), o.TenantID, o.OperationID)
	must(w.t, err)
	return len(log)
}

func TestFormWithAProblemComesBackAsItWasTyped(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	w.person("default", "bo@example.com", "admin")
	for _, c := range []struct {
		what, act string
		o         ledger.Operation
		form      []string
		says      string
	}{
		{"no reason", "reject", w.askedFor(""), nil, "A reason is needed."},
		{"only spaces", "reject", w.askedFor(""), []string{"reason", " \n "}, "A reason is needed."},
		{"too long a reason", "reject", w.askedFor(""), []string{"reason", strings.Repeat("é", 2001)}, "2001 characters"},
		{"no receipt", "happened", w.held("", true), []string{"amount", "48.00", "reason", "seen"}, "The provider's id is needed."},
		{"no amount", "happened", w.held("", true), []string{"receipt_id", "w_1", "reason", "seen"}, "The amount that the provider shows is needed."},
		{"too fine an amount", "happened", w.held("", true), []string{"receipt_id", "w_1", "amount", "48.001", "reason", "seen"}, "too many decimals"},
		{"a guess at an amount", "happened", w.held("", true), []string{"receipt_id", "w_1", "amount", "1,000", "reason", "seen"}, "plain decimal"},
		{"a negative amount", "happened", w.held("", true), []string{"receipt_id", "w_1", "amount", "-48", "reason", "seen"}, "without a sign"},
		{"one id twice", "happened-twice", w.held("", true), []string{"receipt_id", "w_1", "second_receipt_id", "w_1", "reason", "seen"}, "These are one id."},
		{"no text", "reject", w.askedFor(""), []string{"reason", "a\xff"}, "no text"},
		{"an unrelated original", "same-purchase", w.overlapping(""), []string{"original", "op-1", "reason", "guess"}, "Choose one of the operations that it overlaps."},
	} {
		answer := b.act(c.o, c.act, c.form...)
		shows(t, answer, http.StatusUnprocessableEntity, c.says)
		for i := 0; i < len(c.form); i += 2 {
			if typed := strings.TrimSpace(c.form[i+1]); typed != "" && c.form[i] != "original" && !strings.ContainsRune(typed, 0xfffd) && len(typed) < 100 && typed != "a\xff" {
				shows(t, answer, http.StatusUnprocessableEntity, typed)
			}
		}
		if after := w.stored("default", c.o.OperationID); after.Version != c.o.Version {
			t.Errorf("%s: it changed to %s", c.what, after.Status)
		}
	}
}

func TestAmountIsReadInTheCurrencyOfTheOperation(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	w.person("default", "bo@example.com", "admin")
	o := w.lose(w.ask(wanted{action: "wire", currency: "JPY", amount: 4800}))
	if answer := b.act(o, "happened", "receipt_id", "w_1", "amount", "4800", "reason", "seen"); answer.Code != http.StatusSeeOther {
		t.Fatalf("answered %d\n%s", answer.Code, text(answer))
	}
	if r := w.stored("default", o.OperationID).Receipt; r == nil || r.ID != "w_1" || r.Amount == nil || *r.Amount != 4800 {
		t.Errorf("the receipt is %+v", r)
	}
}

func TestHappenedTwiceOwesTheSecondBack(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	o := w.held("", true)
	b.act(o, "happened-twice", "receipt_id", "w_1", "second_receipt_id", "w_2", "reason", "both stand there")
	shows(t, b.get("/refunds"), http.StatusOK, "€48.00", "w_2")
	shows(t, b.get("/"), http.StatusOK, "Refund owed")
}

func TestConflictPageNamesWhoDecidedAndWhen(t *testing.T) {
	w := newServer(t, pagesConfig)
	jon, err := w.Store.AddPerson(t.Context(), ledger.PersonRecord{TenantID: "default", Email: "jon@example.com", Name: "Jon", Roles: []string{"finance"}}, "", operator)
	must(t, err)
	ana := w.signIn(w.person("default", "ana@example.com", "approver"))
	o := w.askedFor("")
	w.signIn(jon).act(o, "reject", "reason", "wrong account")
	w.pass(8000 * 1e6)
	shows(t, ana.act(o, "approve"), http.StatusConflict, "Jon decided this 8 s ago: Rejected", "wrong account", "Nothing from you was recorded.")
}

func TestDecisionTheLifecycleRefusesIsExplained(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	w.person("default", "bo@example.com", "admin")
	early := w.held("", false)
	shows(t, b.act(early, "did-not-happen", "reason", "I think"), http.StatusConflict, "may still act")
	shows(t, b.act(early, "send-again", "reason", "I think"), http.StatusConflict, "may still act")
	shows(t, b.get("/operations/"+early.OperationID), http.StatusOK, `data-refused="did-not-happen"`, `data-act="happened"`, "Possible from")
	ready := w.ask(wanted{})
	shows(t, b.act(ready, "approve"), http.StatusConflict, "this is not possible")
	shows(t, b.act(w.lost(""), "happened", "receipt_id", "x", "amount", "1.00", "reason", "seen"), http.StatusConflict, "We are still looking")
}

func TestDonePageSaysOnlyWhatTheLogSays(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	o := w.askedFor("")
	for _, claim := range []string{"approve", "reject", "", "nonsense"} {
		if answer := b.get("/operations/" + o.OperationID + "/done?act=" + claim); answer.Code != http.StatusSeeOther {
			t.Errorf("a link made the page claim %q: %d\n%s", claim, answer.Code, text(answer))
		}
	}
}

func TestTwoPeopleApproveWhereTheRuleWantsTwo(t *testing.T) {
	w := newServer(t, pagesConfig)
	ana, bo := w.signIn(w.person("default", "ana@example.com", "approver")), w.signIn(w.person("default", "bo@example.com", "finance"))
	o := w.ask(wanted{currency: "USD"})
	shows(t, ana.get(ana.act(o, "approve").Header().Get("Location")), http.StatusOK, "It needs another approval")
	once := w.stored("default", o.OperationID)
	if once.Status != ledger.AwaitingApproval {
		t.Fatalf("one of two made it %s", once.Status)
	}
	shows(t, ana.act(once, "approve"), http.StatusForbidden, "You approved this already")
	shows(t, ana.get("/operations/"+o.OperationID), http.StatusOK, `data-refused="approve"`)
	bo.act(once, "approve")
	if after := w.stored("default", o.OperationID); after.Status != ledger.Ready {
		t.Errorf("two of two made it %s", after.Status)
	}
}

func TestOnlyPersonApprovesAloneAndIsStamped(t *testing.T) {
	w := newServer(t, pagesConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "admin"))
	o := w.askedFor("ana@example.com")
	shows(t, ana.get("/operations/"+o.OperationID), http.StatusOK, "stamped Self-approved")
	ana.act(o, "approve")
	if after := w.stored("default", o.OperationID); after.Status != ledger.Ready {
		t.Fatalf("it is %s", after.Status)
	}
	shows(t, ana.get("/operations/"+o.OperationID), http.StatusOK, "Self-approved")

	w.person("default", "bo@example.com", "viewer")
	second := w.askedFor("ana@example.com")
	shows(t, ana.get("/operations/"+second.OperationID), http.StatusOK, "You own the token that asked for this. Someone else must decide.")
}

func TestRuleNamesWhoApprovesAndWantsAReason(t *testing.T) {
	w := newServer(t, pagesConfig)
	approver, finance := w.signIn(w.person("default", "ana@example.com", "approver")), w.signIn(w.person("default", "bo@example.com", "finance"))
	o := w.ask(wanted{currency: "GBP"})
	shows(t, approver.act(o, "approve", "reason", "fine"), http.StatusForbidden, "finance")
	shows(t, finance.act(o, "approve"), http.StatusUnprocessableEntity, "A reason is needed.")
	finance.act(o, "approve", "reason", "fine")
	if after := w.stored("default", o.OperationID); after.Status != ledger.Ready {
		t.Errorf("it is %s", after.Status)
	}
}

func TestApprovalAfterItsTimeIsRefused(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	o := w.askedFor("")
	w.clock.Store(o.Asked.ExpiresAt + 1)
	b = w.signIn(b.who)
	shows(t, b.act(o, "approve"), http.StatusConflict, "The time to approve it is over.")
}

func TestFormsAreBounded(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	o := w.askedFor("")
	shows(t, b.act(o, "reject", "reason", strings.Repeat("x", 70<<10)), http.StatusRequestEntityTooLarge)
	answer := w.do(http.MethodPost, "/operations/"+o.OperationID+"/approve", "{}", "Cookie: "+b.cookie, "Content-Type: application/json")
	shows(t, answer, http.StatusUnsupportedMediaType)
	shows(t, b.act(o, "no-such-act"), http.StatusNotFound)
	if after := w.stored("default", o.OperationID); after.Version != o.Version {
		t.Errorf("it changed to %s", after.Status)
	}
}

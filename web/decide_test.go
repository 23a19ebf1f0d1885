package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

// deciding is a row of the table below: an act, on what and with which form it
// is taken, and what becomes of the operation.
type deciding struct {
	act      string
	ready    func(w *world, owner string) ledger.Operation
	form     []string
	status   ledger.Status
	reason   ledger.Reason
	fourEyes bool // refused to the owner of the token
}

var everyAct = []deciding{
	{"approve", (*world).askedFor, nil, ledger.Ready, "", true},
	{"take-back", (*world).asksTwo, nil, ledger.AwaitingApproval, "", true},
	{"reject", (*world).askedFor, []string{"reason", "wrong account"}, ledger.Rejected, ledger.Denied, false},
	{"reject", (*world).overlapping, []string{"reason", "not wanted"}, ledger.Rejected, ledger.Denied, false},
	{"ask-changes", (*world).askedFor, []string{"reason", "less, please"}, ledger.Rejected, ledger.Denied, false},
	{"happened", quietHold, []string{"receipt_id", "w_1_{op}", "amount", "48.00", "reason", "dashboard"}, ledger.Confirmed, "", false},
	{"happened-twice", quietHold, []string{"receipt_id", "w_1_{op}", "second_receipt_id", "w_2_{op}", "reason", "dashboard"}, ledger.Confirmed, "", false},
	{"did-not-happen", quietHold, []string{"reason", "their support says so"}, ledger.Rejected, ledger.NotExecuted, false},
	{"send-again", quietHold, []string{"reason", "they lost it"}, ledger.Ready, "", true},
	{"still-unknown", freshHold, nil, ledger.UnknownHold, ledger.Inconclusive, false}, // this rail can't be asked: held again at once
	{"look-again", (*world).lost, nil, ledger.Unknown, "", false},
	{"same-purchase", (*world).overlapping, []string{"reason", "the same invoice"}, ledger.Rejected, ledger.Duplicate, false},
	{"different-purchase", (*world).overlapping, []string{"reason", "two parcels"}, ledger.Ready, "", true},
}

// asksTwo is an operation that waits for two people.
func (w *world) asksTwo(owner string) ledger.Operation {
	return w.ask(wanted{owner: owner, currency: "USD"})
}

func freshHold(w *world, owner string) ledger.Operation { return w.held(owner, false) }
func quietHold(w *world, owner string) ledger.Operation { return w.held(owner, true) }

func TestEveryActIsTakenByWhoMayAndByNobodyElse(t *testing.T) {
	for _, c := range everyAct {
		t.Run(c.act, func(t *testing.T) {
			w := newServer(t, pagesConfig)
			owner := w.signIn(w.person("default", "owner@example.com", "admin", "approver", "finance"))
			viewer := w.signIn(w.person("default", "viewer@example.com", "viewer"))
			stranger := w.signIn(w.person("other", "stranger@example.com", "admin", "approver", "finance"))

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

			refused := []struct {
				name   string
				by     browser
				change func(url.Values)
				status int
			}{
				{"viewer", viewer, nil, http.StatusForbidden},
				{"stale version", owner, func(f url.Values) { f.Set("version", "0") }, http.StatusConflict},
				{"no version", owner, func(f url.Values) { f.Del("version") }, http.StatusConflict},
				{"another fingerprint", owner, func(f url.Values) { f.Set("fingerprint", "hf1:sha256:00") }, http.StatusPreconditionFailed},
				{"other tenant", stranger, nil, http.StatusNotFound},
			}
			for _, r := range refused {
				o := c.ready(w, "somebody@example.com")
				log := w.logOf(o)
				form, err := url.ParseQuery(c.filledIn(o))
				must(t, err)
				if r.change != nil {
					r.change(form)
				}
				path := "/operations/" + o.OperationID + "/" + c.act
				if answer := r.by.post(path, form); answer.Code != r.status {
					t.Errorf("%s: answered %d, want %d\n%s", r.name, answer.Code, r.status, text(answer))
				}
				if after := w.stored("default", o.OperationID); after.Version != o.Version || after.Status != o.Status || w.logOf(o) != log {
					t.Errorf("%s: changed it from %s (%d) to %s (%d)", r.name, o.Status, o.Version, after.Status, after.Version)
				}
			}

			// The right person with the right form, but not by the form of the page.
			o := c.ready(w, "somebody@example.com")
			log := w.logOf(o)
			form := c.filledIn(o)
			path, own := "/operations/"+o.OperationID+"/"+c.act, "Cookie: "+owner.cookie
			const isForm = "Content-Type: application/x-www-form-urlencoded"
			for name, answer := range map[string]int{
				"GET":           owner.get(path + "?" + form).Code,
				"cross-site":    w.do(http.MethodPost, path, form, own, isForm, "Sec-Fetch-Site: cross-site").Code,
				"same site":     w.do(http.MethodPost, path, form, own, isForm, "Sec-Fetch-Site: same-site").Code,
				"other origin":  w.do(http.MethodPost, path, form, own, isForm, "Origin: https://evil.example").Code,
				"no session":    w.do(http.MethodPost, path, form, isForm).Code,
				"form in query": owner.post(path+"?"+form, nil).Code,
			} {
				if after := w.stored("default", o.OperationID); answer < 400 || after.Version != o.Version || w.logOf(o) != log {
					t.Errorf("%s: answered %d, and it is %s", name, answer, after.Status)
				}
			}

			mine := c.ready(w, owner.who.Email)
			answer := owner.act(mine, c.act, c.form...)
			if after := w.stored("default", mine.OperationID); c.fourEyes && (answer.Code != http.StatusForbidden || after.Version != mine.Version) {
				t.Errorf("the owner of the token decided alone: %d, %s", answer.Code, after.Status)
			} else if !c.fourEyes && answer.Code != http.StatusSeeOther {
				t.Errorf("the owner of the token may %s, and was answered %d\n%s", c.act, answer.Code, text(answer))
			}
		})
	}
	for name := range acts {
		if !slices.ContainsFunc(everyAct, func(c deciding) bool { return c.act == name }) {
			t.Errorf("the act %s is in no row of this test", name)
		}
	}
}

// filledIn is the form as a browser sends it.
func (c deciding) filledIn(o ledger.Operation) string {
	form := url.Values{"fingerprint": {o.Fingerprint}, "version": {strconv.FormatInt(o.Version, 10)}}
	for i := 0; i < len(c.form); i += 2 {
		form.Set(c.form[i], strings.ReplaceAll(c.form[i+1], "{op}", o.OperationID))
	}
	return form.Encode()
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

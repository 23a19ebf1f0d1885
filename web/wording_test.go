package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store/ledger"
)

var tags = regexp.MustCompile(`<[^>]*>`)

// reads is the main part of a page as somebody reads it: without its markup.
func reads(answer *httptest.ResponseRecorder) string {
	s := strings.Join(strings.Fields(tags.ReplaceAllString(mainMarkup(answer), " ")), " ")
	return strings.NewReplacer(" ,", ",", " .", ".", " :", ":", " ;", ";").Replace(s)
}

func mainMarkup(answer *httptest.ResponseRecorder) string {
	_, rest, _ := strings.Cut(text(answer), "<main")
	_, rest, _ = strings.Cut(rest, ">")
	main, _, _ := strings.Cut(rest, "</main>")
	return main
}

func says(t *testing.T, answer *httptest.ResponseRecorder, status int, texts ...string) {
	t.Helper()
	if answer.Code != status {
		t.Fatalf("answered %d, want %d\n%s", answer.Code, status, reads(answer))
	}
	for _, want := range texts {
		if !strings.Contains(reads(answer), want) {
			t.Errorf("the page does not say %q:\n%s", want, reads(answer))
		}
	}
}

func doesNotSay(t *testing.T, answer *httptest.ResponseRecorder, texts ...string) {
	t.Helper()
	for _, unwanted := range texts {
		if strings.Contains(reads(answer), unwanted) {
			t.Errorf("the page says %q:\n%s", unwanted, reads(answer))
		}
	}
}

// moneyConfig has a bill that we take and a payout that we make on a rail that
// can't be asked, and refunds of charges.
var moneyConfig = strings.Replace(pagesConfig, "  wire: { rail: wire, effect: wire, schema: "+pagesSchema+" }",
	"  wire: { rail: wire, effect: payout, schema: "+pagesSchema+" }\n  bill: { rail: wire, effect: charge, schema: "+pagesSchema+" }\n"+
		"  refund: { rail: wire, effect: refund, schema: { type: object, required: [amount, currency, charge], properties: { amount: { type: integer, x-role: amount }, currency: { type: string, x-role: currency }, charge: { type: string, x-role: refund_of } } } }", 1)

func TestUnknownOperationsPromiseNoSilence(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	o := w.lost("")
	w.held("", true)
	page := b.get("/operations/" + o.OperationID)
	says(t, page, http.StatusOK, "asks the provider now")
	doesNotSay(t, page, "sends nothing", "Nothing more is sent")
	list := b.get("/unknown")
	says(t, list, http.StatusOK, "Held ones are not sent again until somebody settles them.", "where the rail recognises the key it may be sent again with the same key")
	doesNotSay(t, list, "Nothing more is sent")
	done := b.get(b.act(o, "look-again").Header().Get("Location"))
	says(t, done, http.StatusOK, "The provider is being asked.")
	doesNotSay(t, done, "Nothing is sent")
}

func TestAnotherAmountThanApprovedIsAskedOnceMore(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	w.person("default", "bo@example.com", "admin")
	o := w.held("", true)
	form := []string{"receipt_id", "w_1", "amount", "47.00", "reason", "dashboard"}
	back := b.act(o, "happened", form...)
	says(t, back, http.StatusUnprocessableEntity, "You typed 47.00 EUR; 48.00 EUR was approved.", "The provider really shows another amount")
	shows(t, back, http.StatusUnprocessableEntity, `name="differs" value="yes"`, `value="47.00"`, `value="w_1"`, `value="dashboard"`)
	for _, amount := range []string{"0", "0.00", "90071992547409.92", "90071992547409.93"} {
		answer := b.act(o, "happened", "receipt_id", "w_1", "amount", amount, "reason", "dashboard", "differs", "yes")
		shows(t, answer, http.StatusUnprocessableEntity, `value="w_1"`)
	}
	if after := w.stored("default", o.OperationID); after.Version != o.Version {
		t.Fatalf("it changed to %s", after.Status)
	}
	done := b.get(b.act(o, "happened", append(form, "differs", "yes")...).Header().Get("Location"))
	says(t, done, http.StatusOK, "You said that it happened.", "You typed €47.00; €48.00 was approved.")
}

func TestWhatTheStoreFindsWrongWithAFormComesBackWithIt(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	w.person("default", "bo@example.com", "admin")
	form := []string{"receipt_id", "w_1", "amount", "48.00", "reason", "dashboard"}
	b.act(w.held("", true), "happened", form...)
	back := b.act(w.held("", true), "happened", form...)
	says(t, back, http.StatusUnprocessableEntity, "one payment proves one purchase")
	shows(t, back, http.StatusUnprocessableEntity, `value="w_1"`, `value="dashboard"`)
}

func TestReceiptThatAPersonTypedIsSaidToBeTheirs(t *testing.T) {
	w := newServer(t, pagesConfig)
	ana, err := w.Store.AddPerson(t.Context(), ledger.PersonRecord{TenantID: "default", Email: "ana@example.com", Name: "Ana", Roles: []string{"finance"}}, "", operator)
	must(t, err)
	b := w.signIn(ana)
	o := w.held("", true)
	b.act(o, "happened", "receipt_id", "w_1", "amount", "48.00", "reason", "dashboard")
	page := b.get("/operations/" + o.OperationID)
	says(t, page, http.StatusOK, "w_1 as typed by Ana", "Recipient not checked", "Reference not checked", "Our stamp not checked", "As typed,")
	doesNotSay(t, page, "As the provider wrote it")
}

func (w *world) mismatched() ledger.Operation {
	w.t.Helper()
	amount := int64(4801)
	o := w.answer(w.ask(wanted{action: "wire", amount: 4800}), ledger.Answer{Finding: ledger.Found, HTTPStatus: 201, Receipt: &ledger.Receipt{ID: "w_9", Amount: &amount}})
	if o.Reason != ledger.ReceiptMismatch {
		w.t.Fatalf("it should be held for its receipt, and is %s %s", o.Status, o.Reason)
	}
	return o
}

func TestReceiptThatDiffersShowsTheNumbersInTheOpen(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	w.person("default", "bo@example.com", "admin")
	o := w.mismatched()
	w.pass(24 * time.Hour)
	b = w.signIn(b.who)
	page := b.get("/operations/" + o.OperationID)
	says(t, page, http.StatusOK, "The provider's receipt differs from what was approved. What is true?", "approved €48.00, provider shows €48.01")
	doesNotSay(t, page, "no answer that proves anything", "Here we do not know", "here we do not know", "Missing:", "An empty search")
	shows(t, page, http.StatusOK, `data-refused="did-not-happen"`, `data-refused="send-again"`, "The provider's receipt is on record.")
	says(t, b.act(o, "did-not-happen", "reason", "guess"), http.StatusConflict, "The provider's receipt is on record.")
	says(t, b.act(o, "send-again", "reason", "guess"), http.StatusConflict, "The provider's receipt is on record.")
}

func TestWhatWeOweAndWhatIsOwedToUsStandApart(t *testing.T) {
	w := newServer(t, moneyConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	for _, c := range []struct {
		action, second string
		amount         int64
	}{{"bill", "w_2", 4800}, {"wire", "w_4", 700}} {
		o := w.lose(w.ask(wanted{action: c.action, amount: c.amount, recipient: "acct_" + c.action}))
		b.act(o, "happened-twice", "receipt_id", c.second+"a", "second_receipt_id", c.second, "reason", "both stand there")
	}
	page := b.get("/refunds")
	shows(t, page, http.StatusOK, "Owed 1 · €48.00", "owed to us 1 · €7.00", ">1 to us<")
	hides(t, page, "€55.00", "Promised by")
	says(t, page, http.StatusOK, "We owe €48.00 wire · 1 entry", "Owed to us €7.00 wire · 1 entry", "We owe acct_bill charged twice", "Owed to us by acct_wire paid out twice", "Due State")
	home := b.get("/")
	says(t, home, http.StatusOK, "We owe €48.00 to acct_bill wire op-", "Owed to us €7.00 by acct_wire wire op-", "Money went out that should not have. It is owed to us")
}

// confirmedCharge is a charge with a receipt.
func (w *world) confirmedCharge(receipt string, amount int64) ledger.Operation {
	return w.answer(w.ask(wanted{amount: amount}), ledger.Answer{Finding: ledger.Found, HTTPStatus: 201, Receipt: &ledger.Receipt{ID: receipt, Amount: &amount, Currency: "EUR"}})
}

func (w *world) refund(id, charge, amount string) ledger.Operation {
	w.t.Helper()
	token, _ := w.token("default", "agent-1", "")
	body := `{"operation_id":"` + id + `","action_type":"refund","payload":{"amount":` + amount + `,"currency":"EUR","charge":"` + charge + `"}}`
	if answer := w.do(http.MethodPost, "/v1/operations", body, "Authorization: Bearer "+token, "Content-Type: application/json"); answer.Code != http.StatusAccepted {
		w.t.Fatalf("submitting: %d %s", answer.Code, answer.Body)
	}
	return w.stored("default", id)
}

func TestRefundShowsItsChargeAndWhatIsLeftOfIt(t *testing.T) {
	w := newServer(t, moneyConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	charge := w.confirmedCharge("pay_77", 9000)
	w.refund("refund-1", "pay_77", "3000")
	w.refund("refund-other", "pay_78", "500")
	first := b.get("/operations/refund-1")
	says(t, first, http.StatusOK, "Original charge "+charge.OperationID+" €90.00, Confirmed, 4 Mar 2026, receipt pay_77", "Refunded so far €0.00 of €90.00.", "This refund would leave €60.00.")
	doesNotSay(t, first, "More than was charged")
	w.refund("refund-2", "pay_77", "6000") // one of more is refused when it is submitted
	says(t, b.get("/operations/refund-2"), http.StatusOK, "Refunded so far €30.00 of €90.00.", "This refund would leave €0.00.")
	says(t, b.get("/operations/refund-other"), http.StatusOK, "No charge with the receipt pay_78 is known here", "The charge is not known here")
	shows(t, b.get("/operations/refund-other"), http.StatusOK, `class="alarm"`)
}

func TestButtonPressedTwiceLeadsToTheSameDonePage(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	w.person("default", "bo@example.com", "admin")
	for _, c := range []struct {
		o    ledger.Operation
		act  string
		form []string
	}{
		{w.askedFor(""), "approve", nil},
		{w.ask(wanted{currency: "USD"}), "approve", nil},
		{w.askedFor(""), "reject", []string{"reason", "wrong account"}},
		{w.held("", true), "happened", []string{"receipt_id", "w_1", "amount", "48.00", "reason", "dashboard"}},
		{w.held("", true), "still-unknown", nil},
	} {
		var wait sync.WaitGroup
		answers := make([]*httptest.ResponseRecorder, 4)
		for i := range answers {
			wait.Go(func() { answers[i] = b.act(c.o, c.act, c.form...) })
		}
		wait.Wait()
		for _, answer := range answers {
			if to := answer.Header().Get("Location"); answer.Code != http.StatusSeeOther || to != "/operations/"+c.o.OperationID+"/done?act="+c.act {
				t.Errorf("%s, pressed at once: answered %d to %q\n%s", c.act, answer.Code, to, mainText(answer))
			}
		}
	}
}

func TestOwnEarlierDecisionIsNotTakenForThisOne(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	jon := w.signIn(w.person("default", "jon@example.com", "finance"))
	o := w.held("", true)
	b.act(o, "still-unknown") // held again at once
	again := w.stored("default", o.OperationID)
	jon.act(again, "still-unknown")
	says(t, b.act(again, "still-unknown"), http.StatusConflict, "Nothing from you was recorded.")
}

func TestConflictReportsWhatWasDoneAndNotAStatus(t *testing.T) {
	w := newServer(t, pagesConfig)
	first := w.signIn(w.person("default", "p@example.com", "approver"))
	second := w.signIn(w.person("default", "q@example.com", "approver"))
	o := w.ask(wanted{currency: "USD"})
	first.act(o, "approve")
	page := second.act(o, "approve")
	says(t, page, http.StatusConflict, "p@example.com approved this 0 s ago (1 of 2).")
	doesNotSay(t, page, "decided this 0 s ago: Needs approval")
	lost := w.lost("")
	w.pass(time.Hour)
	_, err := w.Store.RecordLook(t.Context(), "default", lost.OperationID, ledger.Look{Finding: ledger.LookInconclusive}, ledger.Holder{Kind: ledger.Reconciler, Name: "lookup"}, time.Hour)
	must(t, err)
	doesNotSay(t, second.act(lost, "still-unknown"), "decided this")
}

func TestReleaseOfAKeyThatIsNotRecognisedSaysThatItMayPayTwice(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	w.person("default", "bo@example.com", "admin")
	aged := w.lost("")
	w.pass(30 * time.Hour)
	_, err := w.Store.RecordLook(t.Context(), "default", aged.OperationID, ledger.Look{Finding: ledger.LookInconclusive}, ledger.Holder{Kind: ledger.Reconciler, Name: "lookup"}, time.Hour)
	must(t, err)
	b = w.signIn(b.who)
	for name, o := range map[string]ledger.Operation{"no promise": w.held("", true), "aged out": w.stored("default", aged.OperationID)} {
		if o.Status != ledger.UnknownHold {
			t.Fatalf("%s: it should be held, and is %s", name, o.Status)
		}
		page := b.get("/operations/" + o.OperationID)
		says(t, page, http.StatusOK, "This rail does not recognise the key: this may pay twice.", "again; this may pay twice")
		shows(t, page, http.StatusOK, `<span class="decide-needs">this rail does not recognise the key: this may pay twice</span>`)
		done := b.get(b.act(o, "send-again", "reason", "they lost it").Header().Get("Location"))
		says(t, done, http.StatusOK, "This rail does not recognise the key: this may pay twice.")
		for _, answer := range []*httptest.ResponseRecorder{page, done} {
			doesNotSay(t, answer, "safe")
		}
	}
}

func TestAskingForChangesNamesReplaces(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	o := w.askedFor("")
	says(t, b.get("/operations/"+o.OperationID), http.StatusOK, "the agent may submit a changed operation that names this one in replaces")
	says(t, b.get(b.act(o, "ask-changes", "reason", "less").Header().Get("Location")), http.StatusOK, "may submit a changed operation that names this one in replaces")
}

func TestReadyBehindARestingRailSaysUntilWhen(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	o := w.ask(wanted{})
	doesNotSay(t, b.get("/operations/"+o.OperationID), "waiting for rail")
	for range 100 {
		w.Config().Route(o).Breaker().Failed(time.UnixMilli(w.Store.Now()))
	}
	until := w.Config().Route(o).Breaker().OpenUntil(time.UnixMilli(w.Store.Now()))
	says(t, b.get("/operations/"+o.OperationID), http.StatusOK, "waiting for rail card until "+until.UTC().Format("15:04:05"))
}

func TestSearchAndCursorAreReadWithPatience(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	o := w.ask(wanted{})
	if to := b.get("/operations?q=" + url.QueryEscape("  "+o.OrderID+" \n")).Header().Get("Location"); to != "/operations/"+o.OperationID {
		t.Errorf("a pasted id with spaces leads to %q", to)
	}
	for _, cursor := range []string{"!!", "1"} {
		page := b.get("/operations?cursor=" + cursor)
		doesNotSay(t, page, "No operations yet.", "curl -sS")
		says(t, page, http.StatusOK, "Newest first")
	}
}

func TestHoldAfterAnAnswerIsNotCalledNoAnswer(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	w.person("default", "bo@example.com", "admin")
	o := w.answer(w.ask(wanted{action: "wire"}), ledger.Answer{Finding: ledger.Unclear, HTTPStatus: 500, Sentence: "HTTP 500"})
	for _, path := range []string{"/", "/unknown", "/operations/" + o.OperationID} {
		page := b.get(path)
		says(t, page, http.StatusOK, "Answer could not be read")
		doesNotSay(t, page, "No answer from the provider")
	}
	says(t, b.get("/operations/"+o.OperationID), http.StatusOK, "Taken by a worker")
	doesNotSay(t, b.get("/operations/"+o.OperationID), "Claim worker")
}

func TestReasonOfNothingThatShowsIsNone(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	o := w.askedFor("")
	for name, reason := range map[string]string{"zero width": "\u200b\u200d\ufeff", "Hangul filler": "\u3164", "Braille blank": "\u2800", "a mark alone": "\u0301", "tags": "\U000e0041"} {
		if answer := b.act(o, "reject", "reason", reason); answer.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: answered %d", name, answer.Code)
		}
	}
	if after := w.stored("default", o.OperationID); after.Version != o.Version {
		t.Fatalf("it changed to %s", after.Status)
	}
	if answer := b.act(o, "reject", "reason", "否"); answer.Code != http.StatusSeeOther {
		t.Errorf("a reason of one letter: answered %d", answer.Code)
	}
}

func TestFormFromAnotherSiteIsAnsweredWithOurPage(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	o := w.askedFor("")
	answer := w.do(http.MethodPost, "/operations/"+o.OperationID+"/approve", "", "Cookie: "+b.cookie, "Content-Type: application/x-www-form-urlencoded", "Sec-Fetch-Site: cross-site")
	shows(t, answer, http.StatusForbidden, "That did not come from a page of holdfast.", "Nothing was recorded.", `href="/operations/`+o.OperationID+`"`)
	if csp := answer.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("its policy is %q", csp)
	}
	shows(t, w.do(http.MethodPost, "/login", "", "Sec-Fetch-Site: cross-site"), http.StatusForbidden, `href="/"`)
}

func TestTooManyWrongSetUpCodesAreSaidToBe(t *testing.T) {
	w := newServer(t)
	for range 4 {
		hides(t, w.setup("AAAA-AAAA"), "wrong tries")
	}
	shows(t, w.setup("AAAA-AAAA"), http.StatusForbidden, "There were 5 wrong tries in the last 30 minutes")
}

func TestSetUpAsksHowPeopleWork(t *testing.T) {
	w := newServer(t)
	code, err := w.Store.NewSetupCode(t.Context())
	must(t, err)
	for _, mode := range []string{"", "nonsense"} {
		shows(t, w.setup(code, "mode", mode), http.StatusUnprocessableEntity, "Choose how you will work")
	}
	shows(t, w.setup(code), http.StatusOK)
}

func TestWrongPasswordsOfOthersCostNobodyLong(t *testing.T) {
	w := newServer(t, pagesConfig)
	w.personWithPassword("ana@example.com", "finance")
	w.personWithPassword("bo@example.com", "finance")
	for range 9 {
		w.login("ana@example.com", "not this one at all")
		w.pass(3 * time.Minute)
	}
	w.login("ana@example.com", "not this one at all")
	w.pass(6 * time.Second)
	if answer := w.login("bo@example.com", goodPassword); answer.Code != http.StatusSeeOther {
		t.Errorf("somebody else from that address was answered %d\n%s", answer.Code, mainText(answer))
	}
	shows(t, w.login("ana@example.com", goodPassword), http.StatusTooManyRequests)

	for range 20 { // many accounts, one address
		w.login("nobody@example.com", "not this one at all")
	}
	w.pass(time.Minute)
	if answer := w.login("bo@example.com", goodPassword); answer.Code != http.StatusSeeOther {
		t.Errorf("a minute later, somebody else from that address was answered %d", answer.Code)
	}
}

func TestSettingsShowNoVersionThatTheCommandDoesNot(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	doesNotSay(t, b.get("/settings"), "(devel)", "Version")
}

func TestPiledUpMarksStayInTheirLine(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	piled := "Z" + strings.Repeat("\u0301", 60)
	o := w.ask(wanted{recipient: "acct" + piled, reference: "ref" + piled, amount: 200000})
	for _, path := range []string{"/", "/approvals", "/operations", "/operations/" + o.OperationID, "/operations/" + o.OperationID + "?view=bytes"} {
		page := b.get(path)
		shows(t, page, http.StatusOK, `class="said stacked"`, "piles 60 marks on one character")
		for _, part := range strings.Split(page.Body.String(), "<bdi ")[1:] {
			if said, _, _ := strings.Cut(part, "</bdi>"); strings.Contains(said, "\u0301") && !strings.HasPrefix(part, `class="said stacked"`) {
				t.Errorf("%s: %.80q is drawn over its neighbours", path, said)
			}
		}
	}
}

// No sentence of ours speaks of a member as a program does.
func TestTimelineNamesMembersInWords(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	o := w.mismatched()
	pointer := regexp.MustCompile(`[ (]/(amount|currency|recipient|reference|stamp|id)\b`)
	if found := pointer.FindString(reads(b.get("/operations/" + o.OperationID))); found != "" {
		t.Errorf("the page says %q", found)
	}
}

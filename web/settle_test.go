package web

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast/store"
	"holdfast/store/ledger"
)

// givingConfig takes charges and gives them back; refunds wait for a person.
const givingConfig = `
rails:
  sandbox: { adapter: sandbox, quiet: 1s, LIMITS }
  spoiled: { adapter: sandbox, base_url: "SPOILER", timeout: 5s, quiet: 1s, limits: { max_attempts: 3, backoff: [10ms, 50ms] }, breaker: { failures: 1000, open_for: 1s } }
action_types:
  pay_spoiled: { rail: spoiled, effect: charge, schema: SCHEMA, refund: { action_type: give_back, payload: { charge: "{receipt_id}", amount: "{amount}", currency: "{currency}" } } }
  give_back: { rail: spoiled, effect: refund, schema: { type: object, required: [charge, amount, currency], properties: { charge: { type: string, x-role: refund_of },
      amount: { type: integer, minimum: 1, x-role: amount }, currency: { type: string, x-role: currency }, reference: { type: string, x-role: reference } } } }
policy:
  - { name: refunds, when: { effect: refund }, then: ask }
  - { name: the rest, when: {}, then: allow }
jobs: { lookup: "@every 1s", sweep: "@every 1s" }
`

// A charge that was made twice is given back once: one person settles, another
// one approves, the answer is lost, the program starts anew, and the provider's
// own book has one refund.
func TestJourneyGivesBackWhatWasTakenTwice(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s, spoiler := newSpoiler(t)
	config := strings.NewReplacer("SPOILER", spoiler, "SCHEMA", journeySchema, "LIMITS", "limits: { concurrency: 16 }").Replace(givingConfig)
	j := startJourneyIn(t, folder, config)
	s.provider.Store(&j.book.base)
	fin, ana := j.signIn("fin@example.com", "finance"), j.signIn("ana@example.com", "approver")

	const id = "cut-double"
	must(t, j.book.arm(t.Context(), id, "double"))
	j.begin("pay_spoiled", id)
	j.untilStatus(id, ledger.Confirmed)
	var e ledger.RefundOwed
	soon(t, "something is owed", func() bool {
		owed, err := j.Store.RefundsOwed(t.Context(), "default")
		must(t, err)
		if len(owed) == 1 {
			e = owed[0]
		}
		return len(owed) == 1
	})
	page := j.page(fin, http.MethodGet, "/refunds/"+e.ID, nil)
	for _, part := range []string{"create the refund", `data-act="settle"`, `value="48.00"`, "refund-" + e.ID + "-1", "Settle €48.00 over spoiled"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}

	// Two parts; the answer to the first is lost.
	first := "refund-" + e.ID + "-1"
	must(t, j.book.arm(t.Context(), e.ID+"-1", "drop_after"))
	wish := url.Values{"version": {fmt.Sprint(e.Version)}, "amount": {"18.00"}, "rail": {"spoiled"}}
	j.page(fin, http.MethodPost, "/refunds/"+e.ID+"/settle", wish)
	j.page(fin, http.MethodPost, "/refunds/"+e.ID+"/settle", wish) // pressed twice
	page = j.page(fin, http.MethodGet, "/refunds/"+e.ID, nil)
	if !strings.Contains(page, "Refund waiting for approval") || strings.Contains(page, "create the refund") {
		t.Error("while it waits for approval, the page has a second form or another word")
	}
	j.approve(fin, first)
	if o := j.stored(first); o.Status != ledger.AwaitingApproval {
		t.Fatalf("who asked for it approved it: %s", o.Status)
	}
	j.approve(ana, first)
	j.until(first, "sent", func(o ledger.Operation) bool { return o.Attempts > 0 && o.Status != ledger.InFlight })

	j.stop()
	must(t, j.stopped())
	must(t, j.Close())
	j = startJourneyIn(t, folder, config)
	s.provider.Store(&j.book.base)
	j.untilStatus(first, ledger.Confirmed)
	e, err := j.Store.RefundOwed(t.Context(), "default", e.ID)
	must(t, err)
	if e.Status != ledger.RefundIsOwed || e.Open != 3000 || e.Settled != 1800 {
		t.Fatalf("after the first part it is %s: %d open, %d settled", e.Status, e.Open, e.Settled)
	}

	second := "refund-" + e.ID + "-2"
	j.page(fin, http.MethodPost, "/refunds/"+e.ID+"/settle", url.Values{"version": {fmt.Sprint(e.Version)}, "amount": {"30.00"}, "rail": {"spoiled"}})
	j.approve(ana, second)
	j.untilStatus(second, ledger.Confirmed)
	e, err = j.Store.RefundOwed(t.Context(), "default", e.ID)
	must(t, err)
	if e.Status != ledger.RefundIsSettled || e.Open != 0 || e.Settled != 4800 {
		t.Errorf("at the end it is %s: %d open, %d settled", e.Status, e.Open, e.Settled)
	}
	for number := 1; number <= 2; number++ {
		if done := j.effectsOf(fmt.Sprintf("%s-%d", e.ID, number)); len(done) != 1 {
			t.Errorf("the provider's book has %d refunds for part %d", len(done), number)
		}
	}
	journal, err := j.Store.RefundJournal(t.Context(), "default", e.ID)
	must(t, err)
	for _, line := range journal {
		sum := int64(0)
		for _, p := range line.Postings {
			sum += p.Amount
		}
		if sum != 0 {
			t.Errorf("%s does not balance: %+v", line.Event, line.Postings)
		}
	}
}

// signIn gives a person a session, as a cookie.
func (j journey) signIn(email string, roles ...string) (cookie string) {
	j.t.Helper()
	p, err := j.Store.AddPerson(j.ctx, ledger.PersonRecord{TenantID: "default", Email: email, Roles: roles}, "", ledger.Holder{Kind: ledger.Person, Name: "test"})
	must(j.t, err)
	secret, err := j.Store.StartSession(j.ctx, p, ledger.Session{UserAgent: "test", ProvedWith: ledger.WithPassword})
	must(j.t, err)
	return sessionName + "=" + secret
}

// page is what a person's browser gets, redirects followed.
func (j journey) page(cookie, method, path string, form url.Values) string {
	j.t.Helper()
	q, err := http.NewRequestWithContext(j.ctx, method, j.base+path, strings.NewReader(form.Encode()))
	must(j.t, err)
	q.Header.Set("Cookie", cookie)
	q.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := j.client.Do(q)
	must(j.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(j.t, err)
	return string(text)
}

func (j journey) approve(cookie, id string) {
	j.t.Helper()
	o := j.stored(id)
	j.page(cookie, http.MethodPost, "/operations/"+id+"/approve", url.Values{"fingerprint": {o.Fingerprint}, "version": {fmt.Sprint(o.Version)}})
}

// twice is an entry about a second charge of the built-in configuration.
func (w *world) twice(a agent, id string, amount int64) ledger.RefundOwed {
	w.t.Helper()
	o := a.charged(id, amount)
	e, _, err := w.Store.ReportRefund(w.t.Context(), store.RefundReport{TenantID: "default", OperationID: id, ReceiptID: o.Receipt.ID,
		Amount: amount, Currency: "EUR", Reason: "charged for nothing", By: a.holderOf()})
	must(w.t, err)
	return e
}

func (a agent) holderOf() ledger.Holder { return ledger.Holder{Kind: ledger.Agent, Name: "agent-1"} }

// charged is a confirmed payment of so much.
func (a agent) charged(id string, amount int64) ledger.Operation {
	a.t.Helper()
	body := fmt.Sprintf(`{"operation_id":%q,"action_type":"create_payment","payload":{"amount":%d,"currency":"EUR","recipient":"acct-%s","reference":"ref-%s"}}`, id, amount, id, id)
	a.submit(body).is(a.t, 202, "", "wait", false)
	o := a.stored("default", id)
	answer := receiptFor(o)
	answer.Receipt.Recipient, answer.Receipt.Reference, answer.Receipt.Stamp = o.Terms.Recipient, o.Terms.Reference, o.OrderID
	if o = a.answer(o, answer); o.Status != ledger.Confirmed {
		a.t.Fatalf("%s is %s: %s", id, o.Status, o.Detail)
	}
	return o
}

func (a agent) refund(id, charge, amount string) heard {
	a.t.Helper()
	return a.submit(fmt.Sprintf(`{"operation_id":%q,"action_type":"refund","payload":{"charge":%q,"amount":%s,"currency":"EUR","reference":"ref-%s"}}`, id, charge, amount, id))
}

func TestCase089TheApiRefusesASecondWholeRefund(t *testing.T) {
	a := newServer(t).agent("default")
	charge := a.charged("op", 1000).Receipt.ID
	a.refund("R1", charge, "1000").is(t, 202, "", "await_approval", false)
	h := a.refund("R2", charge, "1000")
	h.is(t, 422, "refund_exceeds_remaining", "fix_request", false)
	if d := h.text("detail"); !strings.Contains(d, "0.00 EUR is left to give back, and this asks for 10.00 EUR. Recorded refunds of it: R1.") {
		t.Error(d)
	}
	if _, err := a.Store.Operation(t.Context(), "default", "R2"); err == nil {
		t.Error("it used up the id")
	}
	a.refund("R1", charge, "1000").is(t, 409, "in_progress", "wait", false)
}

func TestCase095ARefundNamesItsAmount(t *testing.T) {
	a := newServer(t).agent("default")
	charge := a.charged("op", 1000).Receipt.ID
	for _, amount := range []string{"0", "-100", "null", `""`} {
		a.refund("R", charge, amount).is(t, 422, "invalid_payload", "fix_request", false)
	}
	a.submit(fmt.Sprintf(`{"operation_id":"R","action_type":"refund","payload":{"charge":%q,"currency":"EUR"}}`, charge)).is(t, 422, "invalid_payload", "fix_request", false)
	a.refund("R", charge, "1000").is(t, 202, "", "await_approval", false)
}

func TestCase097PartsOfARefundAreWholeMinorUnits(t *testing.T) {
	a := newServer(t).agent("default")
	charge := a.charged("op", 10000).Receipt.ID
	a.refund("R", charge, `"33.333333"`).is(t, 422, "invalid_payload", "fix_request", false)
	a.refund("R", charge, `33.333333`).is(t, 422, "invalid_payload", "fix_request", false)
	for i, amount := range []string{"3333", "3333", "3334"} {
		a.refund(fmt.Sprint("R", i), charge, amount).is(t, 202, "", "await_approval", false)
	}
	a.refund("R", charge, "1").is(t, 422, "refund_exceeds_remaining", "fix_request", false)
}

func TestCase098TwoPartsCloseACharge(t *testing.T) {
	a := newServer(t).agent("default")
	charge := a.charged("op", 3020).Receipt.ID
	for i, amount := range []string{"1185", "1835"} {
		a.refund(fmt.Sprint("R", i), charge, amount).is(t, 202, "", "await_approval", false)
	}
	a.refund("R", charge, "1").is(t, 422, "refund_exceeds_remaining", "fix_request", false)
}

// decimalRefunds takes amounts as decimal strings, for charges and for refunds.
const decimalRefunds = `
rails: { card: { adapter: sandbox, base_url: "http://127.0.0.1:9" } }
action_types:
  create_payment: { rail: card, effect: charge, schema: { type: object, properties: {
    amount: { type: string, x-role: amount, x-normalize: decimal }, currency: { type: string, x-role: currency, x-normalize: currency },
    recipient: { type: string, x-role: recipient }, reference: { type: string, x-role: reference } } } }
  refund: { rail: card, effect: refund, schema: { type: object, properties: {
    amount: { type: string, x-role: amount, x-normalize: decimal }, currency: { type: string, x-role: currency, x-normalize: currency },
    charge: { type: string, x-role: refund_of }, reference: { type: string, x-role: reference } } } }
policy: [ { name: charges, when: { effect: charge }, then: allow } ]
limits: { requests_per_second: 1000000 }
`

func TestCase098TwoPartsInDecimalsCloseACharge(t *testing.T) {
	a := newServer(t, decimalRefunds).agent("default")
	a.submit(`{"operation_id":"op","action_type":"create_payment","payload":{"amount":"30.20","currency":"EUR","recipient":"acct","reference":"ref-op"}}`).is(t, 202, "", "wait", false)
	o := a.stored("default", "op")
	answer := receiptFor(o)
	answer.Receipt.Recipient, answer.Receipt.Reference, answer.Receipt.Stamp = o.Terms.Recipient, o.Terms.Reference, o.OrderID
	if o = a.answer(o, answer); o.Status != ledger.Confirmed || o.Terms.Amount != 3020 {
		t.Fatalf("%s over %d: %s", o.Status, o.Terms.Amount, o.Detail)
	}
	for i, amount := range []string{`"11.85"`, `"18.35"`} {
		a.refund(fmt.Sprint("R", i), o.Receipt.ID, amount).is(t, 202, "", "await_approval", false)
	}
	a.refund("R", o.Receipt.ID, `"0.01"`).is(t, 422, "refund_exceeds_remaining", "fix_request", false)
}

func TestTheSettleFormSaysWhatToChange(t *testing.T) {
	w := newServer(t)
	a := w.agent("default")
	e := w.twice(a, "op", 4800)
	fin, vic := w.signIn(w.person("default", "fin@example.com", "finance")), w.signIn(w.person("default", "vic@example.com", "viewer"))
	path := "/refunds/" + e.ID
	form := func(amount string, change ...string) url.Values {
		f := url.Values{"version": {fmt.Sprint(e.Version)}, "amount": {amount}, "rail": {"sandbox"}}
		for i := 0; i < len(change); i += 2 {
			f.Set(change[i], change[i+1])
		}
		return f
	}
	says(t, fin.get(path), http.StatusOK, "We owe €48.00", "Settle €48.00 over sandbox", "This creates a new operation refund-"+e.ID+"-1")
	says(t, vic.get(path), http.StatusOK, "This needs the role finance or admin.")
	says(t, vic.post(path+"/settle", form("48.00")), http.StatusForbidden, "This needs the role finance or admin.")
	for amount, why := range map[string]string{
		"": "The amount is needed.", "0": "The amount must be more than nothing.", "-1": "write it without a sign", "1,5": "can't be read",
		"1.005": "too many decimals", "48.01": "48.01 EUR is more than is owed; 48.00 EUR is.",
	} {
		says(t, fin.post(path+"/settle", form(amount)), http.StatusUnprocessableEntity, why)
	}
	says(t, fin.post(path+"/settle", form("48.00", "rail", "nowhere")), http.StatusUnprocessableEntity, "No action type gives money back on the rail nowhere")
	says(t, fin.post(path+"/settle", form("48.00", "version", "99")), http.StatusConflict, "This changed while you were reading.")
	says(t, fin.get("/refunds/owed_nothing"), http.StatusNotFound)
	if got := fin.post(path+"/settle", form("18.00")); got.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	says(t, fin.get(path), http.StatusOK, "Refund waiting for approval", "An operation is to pay this.")
	says(t, fin.get("/refunds?status=settling"), http.StatusOK, "Refund waiting for approval")
	says(t, fin.get("/operations/refund-"+e.ID+"-1"), http.StatusOK, "fin@example.com in person", "You asked for this. Someone else must decide.")
}

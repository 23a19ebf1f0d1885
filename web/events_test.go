package web

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

const webhookKey = "canary key of the provider 0001"

var webhookSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte(webhookKey))

// eventsConfig is the API's, with a card rail that hears signed events in every
// tenant, and a rail bare that hears unsigned ones.
var eventsConfig = func() string {
	const before, after = "    receipt: { id: /id, amount: /amount }\n", "    receipt: { id: /id, amount: /amount, currency: /currency, recipient: /recipient, stamp: /metadata/operation }\n"
	rules := strings.Replace(apiRules, before, after+
		`    events: { scheme: standard-webhooks, secret: "`+webhookSecret+`", id: /data/id, stamp: /data/metadata/operation, confirmed_when: { /type: payment.succeeded } }`+"\n", 1)
	rules = strings.Replace(rules, "action_types:\n", `  bare:
    adapter: http
    base_url: http://127.0.0.1:1
    send: { method: POST, path: /payments }
    receipt: { id: /id, amount: /amount }
    stamp: { header: X-Operation }
    lookup: { path: "/payments?reference={order_id}", items: /data }
    events: { scheme: none, stamp: /operation }
action_types:
  paybare: { rail: bare, effect: bare, schema: SCHEMA }
`, 1)
	inner := strings.ReplaceAll(rules, "\n", "\n    ")
	return strings.ReplaceAll(rules+"limits: { requests_per_second: 1000000 }\ntenants:\n  t1:"+inner, "SCHEMA", apiSchema)
}()

const cardEvents = "/v1/rails/card/events"

// webhook is what a provider sends.
type webhook struct {
	id, kind, receipt, stamp string
	amount                   int64
	at                       time.Time // when it was signed
	key                      string
}

func (e webhook) body() string {
	return fmt.Sprintf(`{"type":%q,"data":{"id":%q,"amount":%d,"currency":"EUR","recipient":%q,"metadata":{"operation":%q}}}`,
		e.kind, e.receipt, e.amount, "acct-op-A", e.stamp)
}

func (e webhook) headers() []string {
	at := strconv.FormatInt(e.at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(e.key))
	mac.Write([]byte(e.id + "." + at + "." + e.body()))
	return []string{"webhook-id: " + e.id, "webhook-timestamp: " + at, "webhook-signature: v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), "Content-Type: application/json"}
}

// succeeded is the event of an operation's one true receipt.
func (w *world) succeeded(o ledger.Operation, id string, change ...func(*webhook)) webhook {
	e := webhook{id, "payment.succeeded", "ch_" + o.OperationID, o.OrderID, o.Terms.Amount, w.now(), webhookKey}
	for _, c := range change {
		c(&e)
	}
	return e
}

func (w *world) deliver(e webhook, target ...string) heard {
	w.t.Helper()
	return hear(w.t, w.do(http.MethodPost, append(target, cardEvents)[0], e.body(), e.headers()...))
}

func (h heard) taken(t testing.TB) {
	t.Helper()
	if h.Code != http.StatusOK || h.Body.String() != "{\"received\":true}\n" {
		t.Errorf("answered %d %s", h.Code, h.Body)
	}
}

func (h heard) refusedAsUnsigned(t testing.TB) {
	t.Helper()
	h.is(t, 401, "bad_signature", "fix_request", false)
	if h.Header().Get("WWW-Authenticate") != `Signature realm="holdfast"` {
		t.Error(h.Header())
	}
}

func (w *world) inbox(tenant, rail string) []ledger.ProviderEvent {
	w.t.Helper()
	all, err := w.Store.Events(w.t.Context(), tenant, rail, "", 100)
	must(w.t, err)
	return all
}

// sending is an operation under way, with what its worker holds.
func (a agent) sending(id, body string) store.Marked {
	a.t.Helper()
	a.submit(body).is(a.t, 202, "", "wait", false)
	o := a.stored(a.tenant, id)
	claims, err := a.Store.Claim(a.t.Context(), "worker-1", a.tenant, o.Rail, 50, 50)
	must(a.t, err)
	i := slices.IndexFunc(claims, func(c store.Claim) bool { return c.Operation.OperationID == id })
	if i < 0 {
		a.t.Fatal(id, " is not due")
	}
	m, err := a.Store.Mark(a.t.Context(), claims[i], 10*time.Second, a.Config().Route(o).Render)
	must(a.t, err)
	return m
}

// comesBack settles an attempt with a receipt.
func (w *world) comesBack(m store.Marked, receipt string, amount int64) {
	w.t.Helper()
	o := m.Operation
	_, err := w.Store.Settle(w.t.Context(), m, ledger.Answer{Finding: ledger.Found, HTTPStatus: 201,
		Receipt: &ledger.Receipt{ID: receipt, Amount: &amount, Currency: "EUR", Recipient: o.Terms.Recipient, Stamp: o.OrderID}}, nil, time.Second)
	must(w.t, err)
}

func (a agent) owes(n int) {
	a.t.Helper()
	owed, err := a.Store.RefundsOwed(a.t.Context(), a.tenant)
	must(a.t, err)
	if len(owed) != n {
		a.t.Errorf("owed: %+v, want %d", owed, n)
	}
}

func (w *world) changes(o ledger.Operation, event string) (n int) {
	w.t.Helper()
	log, err := w.Store.Timeline(w.t.Context(), o.TenantID, o.OperationID)
	must(w.t, err)
	for _, e := range log {
		if e.Event == event {
			n++
		}
	}
	return n
}

// The webhook is there three seconds before the answer. It is kept before it is
// acknowledged, and counts at once, or when the receipt is there.
func TestCase044EventBeforeTheAnswerIsKeptAndCounts(t *testing.T) {
	a := newServer(t, eventsConfig).agent("default")
	m := a.sending("op-A", named("op-A"))
	nameless := a.succeeded(m.Operation, "msg_0", func(e *webhook) { e.stamp = "" })
	a.deliver(nameless).taken(t)
	if all := a.inbox("default", "card"); len(all) != 1 || all[0].State != ledger.EventUnmatched || string(all[0].Body) != nameless.body() || !all[0].Signed {
		t.Fatalf("kept %+v", all)
	}
	a.is("op-A", ledger.InFlight, "")

	a.deliver(a.succeeded(m.Operation, "msg_1")).taken(t)
	a.is("op-A", ledger.Confirmed, "")
	a.pass(3 * time.Second)
	a.comesBack(m, "ch_op-A", 4800)
	a.owes(0)
	if run, err := a.Scheduler.Run(t.Context(), "events"); err != nil || run.LookedAt != 1 {
		t.Errorf("%+v %v", run, err)
	}
	for _, e := range a.inbox("default", "card") {
		if e.State != ledger.EventMatched || e.OperationID != "op-A" {
			t.Errorf("%s is %s", e.EventID, e.State)
		}
	}

	must(t, a.Store.Close())
	h := a.deliver(a.succeeded(m.Operation, "msg_2"))
	h.is(t, 503, "store_unavailable", "wait", false)
	if h.Header().Get("Retry-After") != "2" {
		t.Error("Retry-After is ", h.Header().Get("Retry-After"))
	}
}

// The refund's webhook comes first, and the answer to the call four seconds later.
func TestCase046OneRefundByTwoWaysIsOneRefund(t *testing.T) {
	a := newServer(t, eventsConfig).agent("default")
	m := a.sending("op-A", changed("ID", "op-A", `"pay"`, `"refund"`, "4800", "300"))
	a.deliver(a.succeeded(m.Operation, "msg_1", func(e *webhook) { e.receipt = "re_1" })).taken(t)
	a.pass(4 * time.Second)
	a.comesBack(m, "re_1", 300)
	a.is("op-A", ledger.Confirmed, "")
	if o := a.stored("default", "op-A"); o.Receipt.ID != "re_1" || *o.Receipt.Amount != 300 || a.changes(o, "receive") != 1 {
		t.Errorf("%+v, received %d times", o.Receipt, a.changes(o, "receive"))
	}
	a.owes(0)
}

// The webhook comes twice with a part of the amount while the answer is under
// way.
func TestCase047PartialAmountTwiceIsOneNotice(t *testing.T) {
	a := newServer(t, eventsConfig).agent("default")
	m := a.sending("op-A", named("op-A"))
	part := a.succeeded(m.Operation, "msg_1", func(e *webhook) { e.amount = 2000 })
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { a.deliver(part).taken(t) })
	}
	both.Wait()
	a.pass(5 * time.Second)
	a.comesBack(m, "ch_op-A", 2000)
	a.is("op-A", ledger.UnknownHold, ledger.ReceiptMismatch)
	if o := a.stored("default", "op-A"); a.changes(o, "mismatch") != 1 || len(a.inbox("default", "card")) != 1 {
		t.Errorf("%d notices, %d events", a.changes(o, "mismatch"), len(a.inbox("default", "card")))
	}
	a.owes(0)
}

// The event that settles comes before one that is two minutes older.
func TestCase049OrderOfArrivalDecidesNothing(t *testing.T) {
	for _, kinds := range [][]string{{"payment.succeeded", "payment.pending", "payment.failed"}, {"payment.failed", "payment.pending", "payment.succeeded"}, {"payment.refunded", "payment.succeeded", "payment.failed"}} {
		a := newServer(t, eventsConfig).agent("default")
		m := a.sending("op-A", named("op-A"))
		for i, kind := range kinds {
			a.deliver(a.succeeded(m.Operation, fmt.Sprint("msg_", i), func(e *webhook) { e.kind, e.at = kind, a.now().Add(time.Duration(-i)*time.Minute) })).taken(t)
		}
		a.is("op-A", ledger.Confirmed, "")
		a.comesBack(m, "ch_op-A", 4800)
		a.owes(0)
	}
}

// A captured event, a day later: with its own time, with none, and with a new one.
func TestCase050ReplayedEventChangesNothing(t *testing.T) {
	a := newServer(t, eventsConfig).agent("default")
	m := a.sending("op-A", named("op-A"))
	captured := a.succeeded(m.Operation, "msg_1")
	a.deliver(captured).taken(t)
	a.comesBack(m, "ch_op-A", 4800)
	was := a.stored("default", "op-A")
	a.deliver(captured).taken(t) // at once, as providers do
	a.pass(24 * time.Hour)
	headers := captured.headers()
	for _, h := range [][]string{headers, {headers[0], headers[2]}, {headers[0], "webhook-timestamp: " + strconv.FormatInt(a.now().Unix(), 10), headers[2]}} {
		hear(t, a.do(http.MethodPost, cardEvents, captured.body(), h...)).refusedAsUnsigned(t)
	}
	// The provider itself may send it again, signed anew.
	captured.at = a.now()
	a.deliver(captured).taken(t)
	if o := a.stored("default", "op-A"); o.Version != was.Version || o.UpdatedAt != was.UpdatedAt || len(a.inbox("default", "card")) != 1 {
		t.Errorf("version %d was %d, %d events", o.Version, was.Version, len(a.inbox("default", "card")))
	}
	a.owes(0)
}

// Whatever is wrong, the answer is one and the same, and nothing is kept.
func TestWhoIsNotTheProviderLearnsNothing(t *testing.T) {
	w := newServer(t, eventsConfig)
	var log bytes.Buffer
	w.Log = slog.New(slog.NewTextHandler(&log, nil))
	m := w.agent("default").sending("op-A", named("op-A"))
	good := w.succeeded(m.Operation, "msg_1")
	forged := w.succeeded(m.Operation, "msg_1", func(e *webhook) { e.key = "another key that is long enough" })
	first := w.deliver(forged)
	first.refusedAsUnsigned(t)
	for name, target := range map[string]string{
		"no such rail": "/v1/rails/nothing/events", "no such tenant": cardEvents + "?tenant=nobody", "another tenant's rail, another's signature": cardEvents + "?tenant=t1",
	} {
		h := w.deliver(forged, target)
		h.refusedAsUnsigned(t)
		if h.Body.String() != first.Body.String() {
			t.Errorf("%s: answered otherwise: %s", name, h.Body)
		}
	}
	hear(t, w.do(http.MethodPost, cardEvents, good.body())).refusedAsUnsigned(t)
	hear(t, w.do(http.MethodPost, cardEvents, good.body()+" ", good.headers()...)).refusedAsUnsigned(t)
	if n := len(w.inbox("default", "card")) + len(w.inbox("t1", "card")); n > 0 {
		t.Errorf("%d are kept", n)
	}
	w.agent("default").is("op-A", ledger.InFlight, "")
	if n := strings.Count(log.String(), "an event was refused"); n != 6 || !strings.Contains(log.String(), "no signature fits") {
		t.Errorf("%d refusals in the log", n)
	}
	for _, secret := range []string{webhookKey, webhookSecret, "ch_op-A", m.Operation.OrderID, "nobody", "nothing"} {
		if strings.Contains(strings.ReplaceAll(log.String(), "nothing is set up", ""), secret) {
			t.Errorf("the log tells %q", secret)
		}
	}
}

// Another tenant's event, even if it is signed with the same secret, never
// touches this one's operation.
func TestAnEventOfAnotherTenantTouchesNothing(t *testing.T) {
	w := newServer(t, eventsConfig)
	a := w.agent("default")
	m := a.sending("op-A", named("op-A"))
	w.deliver(w.succeeded(m.Operation, "msg_1"), cardEvents+"?tenant=t1").taken(t)
	a.is("op-A", ledger.InFlight, "")
	if all := w.inbox("t1", "card"); len(all) != 1 || all[0].State != ledger.EventUnmatched || len(w.inbox("default", "card")) != 0 {
		t.Errorf("kept %+v", all)
	}
	theirs := w.agent("t1").sending("op-A", named("op-A"))
	w.deliver(w.succeeded(theirs.Operation, "msg_2"), cardEvents+"?tenant=t1").taken(t)
	w.agent("t1").is("op-A", ledger.Confirmed, "")
	a.is("op-A", ledger.InFlight, "")
}

func TestEventsThatAreTooLargeOrTooManyAreRefused(t *testing.T) {
	w := newServer(t, eventsConfig)
	for name, length := range map[string]int64{"announced": maxBody + 1, "chunked": -1} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, cardEvents, &endless{})
		r.ContentLength = length
		answer := httptest.NewRecorder()
		w.handler.ServeHTTP(answer, r)
		conforms(t, r.Method, r.URL.Path, answer.Code, answer.Header(), answer.Body.Bytes())
		if h := hear(t, answer); h.Code != 413 {
			t.Errorf("%s: %d", name, h.Code)
		}
	}
	w = newServer(t, strings.Replace(eventsConfig, "requests_per_second: 1000000", "requests_per_second: 2", 1))
	m := w.agent("default").sending("op-A", named("op-A"))
	e := w.succeeded(m.Operation, "msg_1", func(e *webhook) { e.kind = "payment.pending" })
	from := func(address string) heard {
		return hear(t, w.do(http.MethodPost, cardEvents, e.body(), append(e.headers(), "From-Address: "+address)...))
	}
	from("192.0.2.1").taken(t)
	from("192.0.2.1").taken(t)
	from("192.0.2.1").is(t, 429, "rate_limited", "wait", false)
	from("192.0.2.2").taken(t) // whoever floods is in nobody's way
}

// Without a signature an event only makes a look-up due, and strangers' events
// are not even kept.
func TestUnsignedEventOnlyMakesALookUpDue(t *testing.T) {
	w := newServer(t, eventsConfig)
	a := w.agent("default")
	m := a.sending("op-A", changed("ID", "op-A", `"pay"`, `"paybare"`))
	_, err := w.Store.Settle(t.Context(), m, ledger.Answer{}, nil, time.Second)
	must(t, err)
	post := func(body string) {
		hear(t, w.do(http.MethodPost, "/v1/rails/bare/events", body)).taken(t)
	}
	post(`{"operation":"ord_nobodys"}`)
	post(`not even JSON`)
	if n := len(w.inbox("default", "bare")); n != 0 {
		t.Errorf("%d strangers are kept", n)
	}
	if due, _ := w.Store.DueLooks(t.Context(), 10); len(due) != 0 {
		t.Fatal("due before the event")
	}
	for range 3 {
		post(fmt.Sprintf(`{"operation":%q,"status":"succeeded"}`, m.Operation.OrderID))
	}
	if due, _ := w.Store.DueLooks(t.Context(), 10); len(due) != 1 || len(w.inbox("default", "bare")) != 1 {
		t.Errorf("%d due, %d kept", len(due), len(w.inbox("default", "bare")))
	}
	a.is("op-A", ledger.Unknown, "")
}

// A process that ended between the two commits leaves a stored event. The next one
// weighs it before anything else.
func TestAnEventStoredByAProcessThatEndedIsWeighedAtStart(t *testing.T) {
	w := newServer(t, eventsConfig)
	m := w.agent("default").sending("op-A", named("op-A"))
	e := w.succeeded(m.Operation, "msg_1")
	_, err := w.Store.KeepEvent(t.Context(), ledger.ProviderEvent{TenantID: "default", Rail: "card", EventID: e.id, Signed: true, Body: []byte(e.body())})
	must(t, err)
	w = w.reopened()
	w.Scheduler.Store = w.Store
	run, err := w.Scheduler.Run(t.Context(), "events")
	if err != nil || run.LookedAt != 1 || run.Resolved != 1 {
		t.Errorf("%+v %v", run, err)
	}
	w.agent("default").is("op-A", ledger.Confirmed, "")
	w.deliver(e).taken(t) // the provider repeats what it got no answer to
	if n := len(w.inbox("default", "card")); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestAnEventIsShownAsEvidence(t *testing.T) {
	w := newServer(t, eventsConfig)
	m := w.agent("default").sending("op-A", named("op-A"))
	e := w.succeeded(m.Operation, "msg_1")
	w.deliver(e).taken(t)
	page := w.signIn(w.person("default", "ana@example.com", "admin")).get("/operations/op-A")
	text := mainText(page)
	for _, want := range []string{"Provider's event: found", "The provider's event payment.succeeded shows ch_op-A. It carries our stamp and agrees with what was approved.", "card msg_1", "As received"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q\n%s", want, text)
		}
	}
}

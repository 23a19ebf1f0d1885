package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82"

	"holdfast/dispatch"
	"holdfast/reconcile"
	"holdfast/store"
	"holdfast/store/ledger"
)

// shop is a ledger with its dispatcher and its look-ups, on a rail that leads to
// the stand-in. Its clock moves only when the test says so.
type shop struct {
	t     *testing.T
	clock atomic.Int64
	stand *stripeStand
	store *store.Store
	looks *reconcile.Scheduler
	token ledger.TokenRecord
	rules *dispatch.Config
	last  int
}

const (
	bySearch = `{ path: "/v1/payment_intents/search?query=metadata['operation']:'{order_id}'", items: /data, lag: 1m, next: { cursor: /next_page, param: page }, confirmed_when: { /status: succeeded } }`
	inPairs  = `{ path: "/v1/payment_intents?created[gte]={first_sent_at}&limit=2", items: /data, next: { last: /id, param: starting_after }, confirmed_when: { /status: [succeeded] } }`
)

func newShop(t *testing.T, lookup string) *shop {
	t.Helper()
	t.Parallel() // they mostly wait for the dispatcher's next round
	s := &shop{t: t}
	s.clock.Store(time.Now().Add(-1000 * time.Hour).UnixMilli()) // behind the machine's, so that no send deadline has passed
	now := func() time.Time { return time.UnixMilli(s.clock.Load()) }
	s.stand = newStripeStand(t, now)
	if lookup != "" {
		lookup = "\n    lookup: " + lookup
	}
	var err error
	s.rules, err = dispatch.ParseConfig(fmt.Appendf(nil, `
rails:
  stripe:
    adapter: stripe
    base_url: %q
    account: test
    auth: { bearer: "${STRIPE_SECRET_KEY}" }
    timeout: 5s
    quiet: 1s
    limits: { max_attempts: 50, max_elapsed: 100h, backoff: [10ms, 20ms] }
    breaker: { failures: 1000, open_for: 1s }
action_types:
  pay:
    rail: stripe
    effect: charge
    overlap: { mode: "off" }
    schema:
      type: object
      required: [amount, currency, payment_method]
      additionalProperties: false
      properties:
        amount: { type: integer, x-role: amount }
        currency: { type: string, x-role: currency, x-normalize: currency }
        customer: { type: string, x-role: recipient }
        payment_method: { type: string }
        metadata: { type: object, properties: { invoice: { type: string, x-role: reference } } }%s
  refund:
    rail: stripe
    effect: refund
    schema:
      type: object
      required: [payment_intent, amount, metadata]
      properties:
        payment_intent: { type: string, x-role: refund_of }
        amount: { type: integer, x-role: amount }
        metadata: { type: object, required: [currency], properties: { currency: { type: string, x-role: currency, x-normalize: currency } } }
policy: [{ name: all, when: {}, then: allow }]
timing: { unknown_for: 48h }
`, s.stand.URL, lookup), t.TempDir(), "test.yaml", func(string) (string, bool) { return "sk_test_canary5f1c0ffee", true }, now, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.store, err = store.Open(t.Context(), store.Options{Folder: t.TempDir(), Now: now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.store.Close() })
	if err := s.store.SetRulebooks(t.Context(), s.rules.Rulebooks()); err != nil {
		t.Fatal(err)
	}
	config := func() *dispatch.Config { return s.rules }
	s.looks = &reconcile.Scheduler{Store: s.store, Config: config, Node: "test", Log: slog.New(slog.DiscardHandler)}
	if s.token, err = s.store.AddToken(t.Context(), ledger.TokenRecord{TenantID: "default", Agent: "tester"}, ledger.Holder{Kind: ledger.Person, Name: "test"}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		(&dispatch.Dispatcher{Store: s.store, Config: config, Worker: "w", Log: slog.New(slog.DiscardHandler)}).Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-over })
	return s
}

// buy submits and waits until the first answer, or its loss, is recorded.
func (s *shop) buy(action, payload string) ledger.Operation {
	s.t.Helper()
	s.last++
	id := fmt.Sprintf("op-%d", s.last)
	value, err := ledger.ParseStrict([]byte(payload))
	if err != nil {
		s.t.Fatal(err)
	}
	n, wrong := s.rules.Tenants["default"].Rulebook.Actions[action].Normalize(value)
	if len(wrong) > 0 {
		s.t.Fatal(wrong)
	}
	if _, err := s.store.Submit(s.t.Context(), ledger.Operation{TenantID: "default", OperationID: id, ActionType: action, Agent: "tester", TokenID: s.token.ID,
		Fingerprint: n.Fingerprint, Canonical: n.Canonical, Payload: n.Payload, Terms: n.Terms}); err != nil {
		s.t.Fatal(err)
	}
	return s.await(id, "an answer", func(o ledger.Operation) bool { return o.Status != ledger.Ready && o.Status != ledger.InFlight })
}

const card = `{"amount":4800,"currency":"EUR","customer":"cus_7","payment_method":"pm_card_visa","metadata":{"invoice":"inv-1"}}`

func (s *shop) now(id string) ledger.Operation {
	s.t.Helper()
	o, err := s.store.Operation(s.t.Context(), "default", id)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

func (s *shop) await(id, what string, ok func(ledger.Operation) bool) ledger.Operation {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		o := s.now(id)
		if ok(o) {
			return o
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s: no %s in time: %s %s after %d attempts, %s", id, what, o.Status, o.Reason, o.Attempts, o.Detail)
		}
	}
}

// look lets time pass and runs the look-ups that are due then.
func (s *shop) look(id string, later time.Duration) ledger.Operation {
	s.t.Helper()
	s.clock.Add(later.Milliseconds())
	if _, err := s.looks.Run(s.t.Context(), "lookup"); err != nil {
		s.t.Fatal(err)
	}
	return s.now(id)
}

// resend lets the planned same-key send happen and waits for its answer.
func (s *shop) resend(o ledger.Operation) ledger.Operation {
	s.t.Helper()
	if o.Status != ledger.Unknown || o.NextSendAt == 0 {
		s.t.Fatalf("no resend is planned: %s %s", o.Status, o.Detail)
	}
	s.clock.Store(max(s.clock.Load(), o.NextSendAt))
	return s.await(o.OperationID, "second answer", func(n ledger.Operation) bool {
		return n.Attempts > o.Attempts && n.Status != ledger.InFlight && n.Status != ledger.Ready
	})
}

// once checks the provider's book: so many effects, and every request to act
// the same bytes under the same key.
func (s *shop) once(o ledger.Operation, effects int) {
	s.t.Helper()
	if got := s.stand.effects(o.OrderID); got != effects {
		s.t.Errorf("%s: the book holds %d effects, not %d", o.OperationID, got, effects)
	}
	posts := s.stand.postsOf(o.OrderID)
	for _, p := range posts {
		if p.Key != o.ProviderKey || p.Body != posts[0].Body {
			s.t.Errorf("%s: a request under key %s with %s", o.OperationID, p.Key, p.Body)
		}
	}
	if len(posts) != o.Attempts {
		s.t.Errorf("%s: %d attempts were %d requests", o.OperationID, o.Attempts, len(posts))
	}
}

func (s *shop) sentences(id string) string {
	all, err := s.store.Evidence(s.t.Context(), "default", id)
	if err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range all {
		b.WriteString(e.Source + " " + e.Finding + ": " + e.Sentence + "\n")
	}
	return b.String()
}

func TestStripeTakesAPaymentAndGivesItBack(t *testing.T) {
	s := newShop(t, "")
	o := s.buy("pay", card)
	if o.Status != ledger.Confirmed || o.Receipt == nil || *o.Receipt.Amount != 4800 || o.Receipt.Recipient != "cus_7" {
		t.Fatalf("%s %s %+v", o.Status, o.Detail, o.Receipt)
	}
	s.once(o, 1)
	s.stand.fault(losesAnswer)
	back := s.buy("refund", fmt.Sprintf(`{"payment_intent":%q,"amount":1000,"metadata":{"currency":"EUR"}}`, o.Receipt.ID))
	if back.Status != ledger.Unknown {
		t.Fatalf("%s %s", back.Status, back.Detail)
	}
	if back = s.look(back.OperationID, time.Minute); back.Status != ledger.Confirmed || !strings.HasPrefix(back.Receipt.ID, "re_") {
		t.Errorf("%s %s", back.Status, back.Detail)
	}
	s.once(back, 1)
}

// Whatever happens to the first request: one operation is one effect at most,
// one key, and an end that the facts allow.
func TestStripeNeverChargesTwice(t *testing.T) {
	s := newShop(t, inPairs)
	for range 5 { // others' payments, so that the list has pages
		s.buy("pay", card)
	}
	for _, c := range []struct {
		fault   string
		first   ledger.Status
		resends bool
		end     ledger.Status
		effects int
	}{
		{losesAnswer, ledger.Unknown, false, ledger.Confirmed, 1},
		{storesA500After, ledger.Unknown, false, ledger.Confirmed, 1},
		{losesRequest, ledger.Unknown, true, ledger.Confirmed, 1},
		{keyInUse, ledger.Unknown, true, ledger.Confirmed, 1},
		{rateLimits, ledger.Unknown, true, ledger.Confirmed, 1},
		{storesA500, ledger.Unknown, false, ledger.Unknown, 0},
		{foreignKey, ledger.Unknown, false, ledger.Unknown, 0},
		{loses402, ledger.Unknown, true, ledger.Unknown, 0},
		{declines, ledger.Rejected, false, ledger.Rejected, 0},
		{findsInvalid, ledger.Rejected, false, ledger.Rejected, 0},
	} {
		s.stand.fault(c.fault)
		o := s.buy("pay", card)
		if o.Status != c.first {
			t.Errorf("%s: at first %s, %s", c.fault, o.Status, o.Detail)
			continue
		}
		if o.Status == ledger.Unknown {
			for range 4 { // payments in between push ours off the first page
				s.buy("pay", card)
			}
			o = s.look(o.OperationID, time.Minute)
		}
		if c.resends {
			o = s.resend(o)
		}
		if o.Status != c.end {
			t.Errorf("%s: in the end %s, %s\n%s", c.fault, o.Status, o.Detail, s.sentences(o.OperationID))
		}
		s.once(o, c.effects)
	}
}

// A stored 500 is replayed for the life of the key, so sending again never
// helps. What helps is to look.
func TestAStored500IsSettledByLookingOnly(t *testing.T) {
	s := newShop(t, bySearch)
	s.stand.set(func(s *stripeStand) { s.searches = func(age time.Duration) bool { return age >= 30*time.Minute } })
	s.stand.fault(storesA500After)
	o := s.buy("pay", card)
	for range 3 {
		if o = s.look(o.OperationID, 3*time.Minute); o.Status != ledger.Unknown || o.NextSendAt != 0 {
			t.Fatalf("a stored 500 made it %s, to be sent at %d", o.Status, o.NextSendAt)
		}
	}
	if posts := s.stand.postsOf(o.OrderID); len(posts) != 1 {
		t.Errorf("it was sent %d times", len(posts))
	}
	if o = s.look(o.OperationID, 40*time.Minute); o.Status != ledger.Confirmed {
		t.Errorf("%s %s", o.Status, o.Detail)
	}
	s.once(o, 1)
}

// A decline whose answer was lost is replayed as a decline. It is no proof: a
// refusal of the second request says nothing about the first. A person reads
// what the look-up saw.
func TestAReplayedDeclineRejectsNothing(t *testing.T) {
	s := newShop(t, "")
	s.stand.fault(loses402)
	o := s.look(s.buy("pay", card).OperationID, time.Minute)
	if said := s.sentences(o.OperationID); o.Status != ledger.Unknown || !strings.Contains(said, `with our stamp, but its /status is "requires_payment_method": that is not a success yet.`) {
		t.Errorf("%s: %s", o.Status, said)
	}
	o = s.resend(o)
	if posts := s.stand.postsOf(o.OrderID); o.Status != ledger.Unknown || posts[1].Status != 402 || !posts[1].Replayed {
		t.Errorf("%s after %+v", o.Status, posts)
	}
	if o = s.look(o.OperationID, 49*time.Hour); o.Status != ledger.UnknownHold {
		t.Errorf("%s %s", o.Status, o.Reason)
	}
	s.once(o, 0)
}

// What Stripe works on is never sent again, and is confirmed when it succeeds.
func TestAStripePaymentUnderWayIsWaitedFor(t *testing.T) {
	s := newShop(t, "")
	o := s.buy("pay", strings.Replace(card, "pm_card_visa", "pm_processing", 1))
	if o.Status != ledger.Unknown || !o.Accepted {
		t.Fatalf("%s, accepted: %t", o.Status, o.Accepted)
	}
	if o = s.look(o.OperationID, time.Hour); o.Status != ledger.Unknown || o.NextSendAt != 0 {
		t.Errorf("%s, to be sent at %d", o.Status, o.NextSendAt)
	}
	s.stand.set(func(stand *stripeStand) { stand.records[0].Status = "succeeded" })
	if o = s.look(o.OperationID, time.Hour); o.Status != ledger.Confirmed {
		t.Errorf("%s %s", o.Status, o.Detail)
	}
	s.once(o, 1)
}

// After 24 hours Stripe forgets the key, and the same request would act again.
func TestAForgottenStripeKeyIsNeverUsed(t *testing.T) {
	s := newShop(t, bySearch)
	s.stand.set(func(s *stripeStand) { s.searches = func(time.Duration) bool { return false } })
	s.stand.fault(losesAnswer, losesAnswer)
	o := s.resend(s.look(s.buy("pay", card).OperationID, 2*time.Minute))
	o = s.look(o.OperationID, 25*time.Hour)
	if o.Status == ledger.Unknown && o.NextSendAt > 0 {
		t.Errorf("a resend is planned for a key that is forgotten")
	}
	if o = s.look(o.OperationID, 25*time.Hour); o.Status != ledger.UnknownHold || o.Reason != ledger.KeyExpired {
		t.Errorf("%s %s", o.Status, o.Reason)
	}
	s.once(o, 1)
	if len(s.stand.postsOf(o.OrderID)) != 2 {
		t.Errorf("%+v", s.stand.postsOf(o.OrderID))
	}
	// The stand-in is a judge only if it would have acted.
	post := s.stand.postsOf(o.OrderID)[0]
	req, _ := http.NewRequest("POST", s.stand.URL+post.Path, strings.NewReader(post.Body))
	req.Header = http.Header{"Authorization": {"Bearer sk_test_x"}, "Idempotency-Key": {post.Key}, "Content-Type": {"application/x-www-form-urlencoded"}, "Stripe-Version": {stripe.APIVersion}}
	if _, err := http.DefaultClient.Do(req); err != nil || s.stand.effects(o.OrderID) != 2 {
		t.Errorf("the stand-in remembers a key for ever: %v", err)
	}
}

func TestAListThatCannotBeReadWholeProvesNothing(t *testing.T) {
	s := newShop(t, "")
	s.stand.fault(losesAnswer)
	s.stand.set(func(s *stripeStand) { s.listDown = true })
	o := s.look(s.buy("pay", card).OperationID, time.Minute)
	if o.Status != ledger.Unknown || o.Looks != 0 {
		t.Errorf("%s after %d looks", o.Status, o.Looks)
	}
	s.stand.set(func(s *stripeStand) { s.listDown = false })
	if o = s.look(o.OperationID, time.Minute); o.Status != ledger.Confirmed {
		t.Errorf("%s %s", o.Status, o.Detail)
	}
	s.once(o, 1)
}

func TestCase052ASearchThatMissesIsAskedAgain(t *testing.T) {
	s := newShop(t, bySearch)
	s.stand.set(func(s *stripeStand) { s.searches = func(age time.Duration) bool { return age >= 10*time.Minute } })
	s.stand.fault(losesAnswer)
	o := s.buy("pay", card)
	// Only look-ups are to settle it.
	ann := ledger.PersonRecord{TenantID: dispatch.DefaultTenant, Email: "ann@example.com", Roles: []string{"finance"}}
	if err := s.store.PauseRail(t.Context(), dispatch.DefaultTenant, "stripe", store.Decision{Person: ann, Reason: "looking"}); err != nil {
		t.Fatal(err)
	}
	before := len(s.stand.postsOf(""))
	for range 2 {
		o = s.look(o.OperationID, 2*time.Minute)
		if o.Status != ledger.Unknown || !strings.Contains(s.sentences(o.OperationID), "lookup absent: The look-up found nothing.") {
			t.Fatalf("a miss made it %s", o.Status)
		}
	}
	// Looking created nothing there; what was sent was the one operation, under its key.
	s.stand.set(func(stand *stripeStand) {
		for _, p := range stand.posts[before:] {
			if p.Key != o.ProviderKey {
				t.Errorf("a look-up made %+v", p)
			}
		}
		if len(stand.gets) < 2 || slices.ContainsFunc(stand.gets, func(uri string) bool {
			return !strings.HasPrefix(uri, "/v1/payment_intents/search?query=metadata%5B'operation'%5D:'ord_")
		}) {
			t.Errorf("asked %q", stand.gets)
		}
	})
	if o = s.look(o.OperationID, 30*time.Minute); o.Status != ledger.Confirmed {
		t.Errorf("%s %s", o.Status, o.Detail)
	}
	s.once(o, 1)
}

func TestCase053TheFirstHitSettlesAndNoMissUndoesIt(t *testing.T) {
	s := newShop(t, strings.Replace(bySearch, "lag: 1m", "lag: 0s", 1))
	visible := atomic.Bool{}
	s.stand.set(func(s *stripeStand) { s.searches = func(time.Duration) bool { return visible.Load() } })
	s.stand.fault(losesAnswer)
	o := s.buy("pay", card)
	visible.Store(true)
	if o = s.look(o.OperationID, 10*time.Second); o.Status != ledger.Confirmed || !strings.Contains(s.sentences(o.OperationID), "lookup found") {
		t.Fatalf("%s\n%s", o.Status, s.sentences(o.OperationID))
	}
	receipt := *o.Receipt
	for _, shown := range []bool{false, true} {
		visible.Store(shown)
		if o = s.look(o.OperationID, 10*time.Minute); o.Status != ledger.Confirmed || o.Receipt.ID != receipt.ID {
			t.Errorf("shown %t: %s %+v", shown, o.Status, o.Receipt)
		}
	}
	if owed, err := s.store.RefundsOwed(t.Context(), "default"); err != nil || len(owed) != 0 {
		t.Errorf("owed %+v, %v", owed, err)
	}
	s.once(o, 1)
}

// The stand-in is believed because Stripe's own library reads it as Stripe.
func TestStripesLibraryKnowsTheStandIn(t *testing.T) {
	stand := newStripeStand(t, time.Now)
	library := stripe.NewClient("sk_test_1", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{URL: stripe.String(stand.URL),
		MaxNetworkRetries: stripe.Int64(0), EnableTelemetry: stripe.Bool(false), LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull}})))
	intents := library.V1PaymentIntents
	params := func(key string, amount int64) *stripe.PaymentIntentCreateParams {
		return &stripe.PaymentIntentCreateParams{Params: stripe.Params{IdempotencyKey: &key}, Metadata: map[string]string{"operation": "ord_1"},
			Amount: &amount, Currency: stripe.String("eur"), Confirm: stripe.Bool(true), PaymentMethod: stripe.String("pm_card_visa")}
	}
	made, err := intents.Create(t.Context(), params("k1", 100))
	if err != nil || made.Status != stripe.PaymentIntentStatusSucceeded || made.Amount != 100 || made.Metadata["operation"] != "ord_1" {
		t.Fatalf("%+v, %v", made, err)
	}
	again, err := intents.Create(t.Context(), params("k1", 100))
	if err != nil || again.ID != made.ID || again.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a replay is %+v, %v", again, err)
	}
	kind := func(err error) string {
		e, ok := err.(*stripe.Error)
		if !ok {
			t.Fatalf("%v is no error of Stripe's", err)
		}
		return strings.TrimSpace(fmt.Sprintf("%d %s %s", e.HTTPStatusCode, e.Type, e.Code))
	}
	if _, err = intents.Create(t.Context(), params("k1", 200)); kind(err) != "400 idempotency_error" {
		t.Error(kind(err))
	}
	stand.fault(declines)
	if _, err = intents.Create(t.Context(), params("k2", 100)); kind(err) != "402 card_error card_declined" {
		t.Error(kind(err))
	}
	stand.fault(keyInUse)
	if _, err = intents.Create(t.Context(), params("k3", 100)); kind(err) != "409 invalid_request_error idempotency_key_in_use" {
		t.Error(kind(err))
	}
	listed := 0
	list := &stripe.PaymentIntentListParams{CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: made.Created}}
	list.Limit = stripe.Int64(1)
	for _, err := range intents.List(t.Context(), list) {
		if err != nil {
			t.Fatal(err)
		}
		listed++
	}
	if listed != 2 {
		t.Errorf("%d listed", listed)
	}
	back, err := library.V1Refunds.Create(t.Context(), &stripe.RefundCreateParams{PaymentIntent: &made.ID, Amount: stripe.Int64(50)})
	if err != nil || back.Status != stripe.RefundStatusSucceeded || back.Currency != "eur" {
		t.Errorf("%+v, %v", back, err)
	}
}

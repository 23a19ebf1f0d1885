package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/dispatch"
	"holdfast/store"
	"holdfast/store/ledger"
)

// bench is a ledger with one operation whose answer was lost, and a provider
// that answers look-ups as the test says.
type bench struct {
	t        *testing.T
	provider string
	s        *Scheduler
	config   *dispatch.Config
	clock    atomic.Int64
	asked    atomic.Int64
	hung     atomic.Int64 // requests to the provider that hangs up on everybody
	answer   atomic.Value // func(http.ResponseWriter, *http.Request)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return benchOn(t, ", dedupe: { by: none }")
}

// benchOn is a bench whose rail card has some more settings.
func benchOn(t *testing.T, more string) *bench {
	t.Helper()
	b := &bench{t: t}
	b.clock.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
	now := func() time.Time { return time.UnixMilli(b.clock.Load()) }
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.asked.Add(1)
		b.answer.Load().(func(http.ResponseWriter, *http.Request))(w, r)
	}))
	t.Cleanup(provider.Close)
	b.provider = provider.URL
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.hung.Add(1)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(down.Close)
	config, err := dispatch.ParseConfig(fmt.Appendf(nil, `
rails:
  card: { adapter: sandbox, base_url: %q, quiet: 1s%s }
  down: { adapter: sandbox, base_url: %q, dedupe: { by: none }, quiet: 1s }
action_types:
  pay_down: { rail: down, effect: charge, overlap: { mode: "off" }, schema: { type: object, properties: { note: { type: string }, amount: { type: integer, x-role: amount }, currency: { type: string, x-role: currency } } } }
  pay: { rail: card, effect: charge, overlap: { mode: "off" }, schema: { type: object, properties: { note: { type: string }, amount: { type: integer, x-role: amount }, currency: { type: string, x-role: currency } } } }
policy: [{ name: all, when: {}, then: allow }]
`, provider.URL, more, down.URL), t.TempDir(), "test.yaml", nil, now, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), store.Options{Folder: t.TempDir(), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	if err := st.SetRulebooks(t.Context(), config.Rulebooks()); err != nil {
		t.Fatal(err)
	}
	b.s = &Scheduler{Store: st, Config: func() *dispatch.Config { return config }, Node: "test", Log: slog.New(slog.DiscardHandler)}
	b.config = config
	b.lose("op", "pay")
	return b
}

// lose submits an operation, sends it, and hears nothing.
func (b *bench) lose(id, action string) {
	b.t.Helper()
	config := b.config
	ctx := b.t.Context()
	token, err := b.s.Store.AddToken(ctx, ledger.TokenRecord{TenantID: "default", Agent: "tester"}, ledger.Holder{Kind: ledger.Person, Name: "test"})
	if err != nil {
		b.t.Fatal(err)
	}
	payload, _ := ledger.ParseStrict(fmt.Appendf(nil, `{"amount":4800,"currency":"EUR","note":%q}`, id)) // so that each is a purchase of its own
	n, wrong := config.Tenants["default"].Rulebook.Actions[action].Normalize(payload)
	if len(wrong) > 0 {
		b.t.Fatal(wrong)
	}
	if _, err := b.s.Store.Submit(ctx, ledger.Operation{TenantID: "default", OperationID: id, ActionType: action, Agent: "tester", TokenID: token.ID,
		Fingerprint: n.Fingerprint, Canonical: n.Canonical, Payload: n.Payload, Terms: n.Terms}); err != nil {
		b.t.Fatal(err)
	}
	claims, err := b.s.Store.Claim(ctx, "w", "default", config.Tenants["default"].Rulebook.Actions[action].Rail, 1, 1)
	if err != nil || len(claims) != 1 {
		b.t.Fatal(claims, err)
	}
	m, err := b.s.Store.Mark(ctx, claims[0], time.Second, config.Route(claims[0].Operation).Render)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.s.Store.Settle(ctx, m, ledger.Answer{Sentence: "No answer."}, nil, time.Second); err != nil {
		b.t.Fatal(err)
	}
}

// run lets the look-up become due and runs it.
func (b *bench) run(answer func(http.ResponseWriter, *http.Request)) (ledger.JobRun, ledger.Operation) {
	b.t.Helper()
	b.answer.Store(answer)
	b.clock.Add(time.Minute.Milliseconds())
	run, err := b.s.Run(b.t.Context(), "lookup")
	if err != nil {
		b.t.Fatal(err)
	}
	o, err := b.s.Store.Operation(b.t.Context(), "default", "op")
	if err != nil {
		b.t.Fatal(err)
	}
	return run, o
}

func holding(records string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"data":[%s],"has_more":false}`, records)
	}
}

func (b *bench) record(id string, amount int) string {
	o, err := b.s.Store.Operation(b.t.Context(), "default", "op")
	if err != nil {
		b.t.Fatal(err)
	}
	return fmt.Sprintf(`{"id":%q,"amount":%d,"currency":"EUR","operation":%q}`, id, amount, o.OrderID)
}

func TestOnlyAMatchingRecordConfirms(t *testing.T) {
	broken := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	b := newBench(t)
	if run, o := b.run(broken); o.Status != ledger.Unknown || o.Looks != 0 || run.Resolved != 0 {
		t.Errorf("a provider that cannot be asked changed something: %s after %d looks", o.Status, o.Looks)
	}
	if _, o := b.run(holding("")); o.Status != ledger.Unknown || o.Looks != 1 {
		t.Errorf("an empty search: %s after %d looks", o.Status, o.Looks)
	}
	run, o := b.run(holding(b.record("pay_1", 4800)))
	if o.Status != ledger.Confirmed || o.Receipt == nil || o.Receipt.ID != "pay_1" || run.Resolved != 1 || run.LookedAt != 1 {
		t.Errorf("%s %+v, run %+v", o.Status, o.Receipt, run)
	}
}

func TestADifferingRecordGoesToAPerson(t *testing.T) {
	b := newBench(t)
	if run, o := b.run(holding(b.record("pay_1", 4801))); o.Status != ledger.UnknownHold || o.Reason != ledger.ReceiptMismatch || run.Held != 1 {
		t.Errorf("%s %s, run %+v", o.Status, o.Reason, run)
	}
}

func TestTwoRecordsAreOneReceiptAndOneRefundOwed(t *testing.T) {
	b := newBench(t)
	_, o := b.run(holding(b.record("pay_1", 4800) + "," + b.record("pay_2", 4800)))
	owed, err := b.s.Store.RefundsOwed(t.Context(), "default")
	if err != nil || o.Status != ledger.Confirmed || len(owed) != 1 || owed[0].ReceiptID != "pay_2" || owed[0].Open != 4800 {
		t.Errorf("%s, owed %+v, %v", o.Status, owed, err)
	}
}

func TestWhatWasUnknownIsLookedAtOnceMore(t *testing.T) {
	b := newBench(t)
	b.run(holding(b.record("pay_1", 4800)))
	b.run(holding(b.record("pay_1", 4800) + "," + b.record("pay_2", 4800)))
	owed, err := b.s.Store.RefundsOwed(t.Context(), "default")
	if err != nil || len(owed) != 1 || owed[0].ReceiptID != "pay_2" {
		t.Errorf("a second effect was not found: %+v, %v", owed, err)
	}
	before := b.asked.Load()
	b.run(holding(""))
	if b.asked.Load() != before {
		t.Error("it was asked about for ever")
	}
}

// What is down is asked a few times and left alone until the next run, however
// much waits for it: the others do not wait.
func TestARailThatIsDownDoesNotKeepTheOthersWaiting(t *testing.T) {
	b := newBench(t)
	for i := range 2 * (silences + lookupsAtOnce) {
		b.lose(fmt.Sprint("down-", i), "pay_down")
	}
	run, o := b.run(holding(b.record("pay_1", 4800)))
	if o.Status != ledger.Confirmed || run.Resolved != 1 {
		t.Errorf("the one that could be asked about is %s", o.Status)
	}
	if n := b.hung.Load(); n < silences || n > silences+lookupsAtOnce {
		t.Errorf("what is down was asked %d times in one run", n)
	}
	b.run(holding(""))
	if n := b.hung.Load(); n <= silences {
		t.Errorf("it was not asked again in the next run: %d times in two", n)
	}
}

func TestAJobNeverOverlapsItself(t *testing.T) {
	b := newBench(t)
	var inside, most atomic.Int64
	b.answer.Store(func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), inside.Add(1)))
		holding("")(w, r)
		inside.Add(-1)
	})
	b.clock.Add(time.Minute.Milliseconds())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := b.s.Run(context.Background(), "lookup"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() != 1 || b.asked.Load() != 1 {
		t.Errorf("%d at once, asked %d times", most.Load(), b.asked.Load())
	}
}

func TestRunsAreRecordedAndAnUnknownJobIsNamed(t *testing.T) {
	b := newBench(t)
	b.run(holding(""))
	b.run(holding(""))
	for range 3 {
		if _, err := b.s.Run(t.Context(), "sweep"); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := b.s.Store.LastRuns(t.Context())
	if err != nil || len(runs) != 2 || runs[0].Job != "lookup" || runs[0].LookedAt != 1 || runs[1].Job != "sweep" {
		t.Errorf("%+v %v", runs, err)
	}
	if _, err := b.s.Run(t.Context(), "wash"); err == nil || !strings.Contains(err.Error(), `no job "wash"; there are [events lookup notify recheck refunds seal statements sweep]`) {
		t.Errorf("an unknown job: %v", err)
	}
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/dispatch"
	"holdfast/store"
	"holdfast/store/ledger"
)

// beside is another node on the same ledger.
func (b *bench) beside(node string) *Scheduler {
	return &Scheduler{Store: b.s.Store, Config: b.s.Config, Node: node, Log: b.s.Log}
}

func (b *bench) get(id string) ledger.Operation {
	b.t.Helper()
	o, err := b.s.Store.Operation(b.t.Context(), "default", id)
	if err != nil {
		b.t.Fatal(err)
	}
	return o
}

// entries counts what the log says happened to an operation.
func (b *bench) entries(id, event string) (n int) {
	b.t.Helper()
	all, err := b.s.Store.Timeline(b.t.Context(), "default", id)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range all {
		if e.Event == event {
			n++
		}
	}
	return n
}

func (b *bench) owed() []ledger.RefundOwed {
	b.t.Helper()
	owed, err := b.s.Store.RefundsOwed(b.t.Context(), "default")
	if err != nil {
		b.t.Fatal(err)
	}
	return owed
}

func (b *bench) exceptions() (kinds []string) {
	b.t.Helper()
	open, err := b.s.Store.OpenExceptions(b.t.Context(), "default")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range open {
		kinds = append(kinds, string(e.Kind))
	}
	return kinds
}

func TestCase064TwoReconcilersOnOneUnknownMakeOneTransition(t *testing.T) {
	b := newBench(t)
	b.answer.Store(holding(b.record("pay_1", 4800) + "," + b.record("pay_2", 4800)))
	b.clock.Add(time.Minute.Milliseconds())
	var all sync.WaitGroup
	for _, node := range []string{"a", "b"} {
		all.Go(func() {
			if _, err := b.beside(node).Run(context.Background(), "lookup"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if o := b.get("op"); o.Status != ledger.Confirmed || b.entries("op", "receive") != 1 || b.entries("op", "open") != 1 || len(b.owed()) != 1 {
		t.Errorf("%s; %d confirmations, %d opened, owed %+v", o.Status, b.entries("op", "receive"), b.entries("op", "open"), b.owed())
	}
}

func TestCase065ATickIsRunOnceWhateverTheClocksSay(t *testing.T) {
	b := newBench(t)
	b.answer.Store(holding(""))
	noon := time.UnixMilli(b.clock.Load())
	b.s.tick(t.Context(), "lookup", ledger.OnSchedule, noon)
	first, err := b.s.Store.LastRuns(t.Context())
	if err != nil || len(first) != 1 || first[0].Node != "test" || first[0].ScheduledFor != noon.UnixMilli() {
		t.Fatal(first, err)
	}
	b.clock.Add(200)
	b.beside("late").tick(t.Context(), "lookup", ledger.OnSchedule, noon) // its clock shows noon only now
	runs, err := b.s.Store.LastRuns(t.Context())
	if err != nil || len(runs) != 1 || runs[0].Node != "test" {
		t.Errorf("the tick ran twice: %+v %v", runs, err)
	}
	b.beside("late").tick(t.Context(), "lookup", ledger.OnSchedule, noon.Add(30*time.Second))
	if runs, _ := b.s.Store.LastRuns(t.Context()); runs[0].Node != "late" {
		t.Errorf("the next tick did not run: %+v", runs)
	}
}

// A tick that a clock far ahead began must not stop the job until then.
func TestAClockThatWasWrongDoesNotStopAJob(t *testing.T) {
	b := newBench(t)
	b.answer.Store(holding(""))
	now := time.UnixMilli(b.clock.Load())
	b.s.tick(t.Context(), "lookup", ledger.OnSchedule, now.AddDate(1, 0, 0))
	b.beside("right").tick(t.Context(), "lookup", ledger.OnSchedule, now)
	if runs, _ := b.s.Store.LastRuns(t.Context()); runs[0].Node != "right" {
		t.Errorf("%+v", runs)
	}
}

func TestAJobRunsOnOneNodeAtATime(t *testing.T) {
	b := newBench(t)
	s := b.s.Store
	lease, err := s.BeginJob(t.Context(), ledger.JobRun{Job: "lookup", Node: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.BeginJob(t.Context(), ledger.JobRun{Job: "lookup", Node: "b"}); !errors.Is(err, store.ErrJobBusy) {
		t.Errorf("another node was let in: %v", err)
	}
	b.clock.Add(store.JobLeaseFor.Milliseconds() - 1)
	if err := s.KeepJob(t.Context(), lease); err != nil {
		t.Errorf("a lease that is held was not renewed: %v", err)
	}
	b.clock.Add(store.JobLeaseFor.Milliseconds()) // it falls silent
	next, err := s.BeginJob(t.Context(), ledger.JobRun{Job: "lookup", Node: "b"})
	if err != nil || next.Fence <= lease.Fence {
		t.Fatalf("nobody took over: %+v %v", next, err)
	}
	if err := s.KeepJob(t.Context(), lease); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the old lease was renewed: %v", err)
	}
	if err := s.EndJob(t.Context(), lease, ledger.JobRun{Job: "lookup", Node: "a", LookedAt: 7}); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("a run under an old fence was recorded: %v", err)
	}
	if err := s.EndJob(t.Context(), next, ledger.JobRun{Job: "lookup", Node: "b", LookedAt: 1}); err != nil {
		t.Fatal(err)
	}
	if runs, _ := s.LastRuns(t.Context()); len(runs) != 1 || runs[0].Node != "b" || runs[0].LookedAt != 1 {
		t.Errorf("%+v", runs)
	}
}

func TestMissedTicksAreMadeUpForOnce(t *testing.T) {
	b := newBench(t)
	b.answer.Store(holding(""))
	b.clock.Add((10 * time.Hour).Milliseconds())
	asked := b.asked.Load()
	b.s.makeUp(t.Context(), "lookup")
	if runs, _ := b.s.Store.LastRuns(t.Context()); len(runs) != 1 || runs[0].Why != ledger.Missed || runs[0].LookedAt != 1 || b.asked.Load() != asked+1 {
		t.Errorf("%+v, asked %d times", runs, b.asked.Load()-asked)
	}
	b.beside("b").makeUp(t.Context(), "lookup")
	if runs, _ := b.s.Store.LastRuns(t.Context()); runs[0].Node != "test" {
		t.Errorf("it was made up for twice: %+v", runs)
	}
}

func TestEveryNodeMeansTheSameTick(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 7, 0, time.UTC)
	for spec, want := range map[string]time.Time{
		"@every 15s": at.Add(-7 * time.Second), "@every 10m": at.Add(-7 * time.Second), "30 3 * * *": time.Date(2026, 3, 1, 3, 30, 0, 0, time.UTC),
		"5 0 12 * * *": at.Add(-2 * time.Second), "0 0 29 2 *": time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
	} {
		schedule, err := dispatch.ParseSchedule(spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := dispatch.LastTick(schedule, at); !got.Equal(want) {
			t.Errorf("%s: %s, not %s", spec, got, want)
		}
	}
}

// The rail lists the attempt that it refused, and not yet the one that it took.
func TestCase067ARefusedAttemptInTheListConcludesNothing(t *testing.T) {
	b := benchOn(t, `, dedupe: { by: key, header: Idempotency-Key, retention: 24h }, lookup: { path: "/payments?key={provider_key}", items: /data, confirmed_when: { /state: done }, absence_proves_after: 1s }`)
	attempt := func(id, state string) string {
		return strings.TrimSuffix(b.record(id, 4800), "}") + fmt.Sprintf(`,"state":%q}`, state)
	}
	asks := func(records string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			if got, want := r.URL.Query().Get("key"), b.get("op").ProviderKey; got != want {
				t.Errorf("asked by %q, not by the key of the operation %q", got, want)
			}
			holding(records)(w, r)
		}
	}
	for range 4 {
		if _, o := b.run(asks(attempt("pay_1", "refused"))); o.Status != ledger.Unknown {
			t.Fatalf("a refused attempt concluded %s %s", o.Status, o.Reason)
		}
	}
	b.clock.Add((5 * time.Minute).Milliseconds())
	if _, o := b.run(asks(attempt("pay_1", "refused") + "," + attempt("pay_2", "done"))); o.Status != ledger.Confirmed || o.Receipt.ID != "pay_2" || len(b.owed()) != 0 {
		t.Errorf("%s %+v, owed %+v", o.Status, o.Receipt, b.owed())
	}
}

func TestCase068ALateEffectIsRecordedAndOwed(t *testing.T) {
	b := benchOn(t, `, dedupe: { by: none }, lookup: { path: "/payments?operation={order_id}", items: /data, absence_proves_after: 15m }`)
	b.clock.Add((16 * time.Minute).Milliseconds())
	if _, o := b.run(holding("")); o.Status != ledger.Rejected || o.Reason != ledger.NotExecuted {
		t.Fatal(o.Status, o.Reason)
	}
	b.run(holding("")) // the one more look finds nothing yet
	b.answer.Store(holding(b.record("pay_1", 4800)))
	for range 2 {
		b.clock.Add((24 * time.Hour).Milliseconds())
		if _, err := b.s.Run(t.Context(), "recheck"); err != nil {
			t.Fatal(err)
		}
	}
	owed := b.owed()
	if o := b.get("op"); o.Status != ledger.Rejected || len(owed) != 1 || owed[0].Cause != "late_effect" || owed[0].ReceiptID != "pay_1" {
		t.Errorf("%s, owed %+v", o.Status, owed)
	}
	if kinds := b.exceptions(); len(kinds) != 1 || kinds[0] != "late_effect" {
		t.Errorf("asked about %v", kinds)
	}
}

func TestCase070HoursOfSilenceAreOneProblemOfTheRail(t *testing.T) {
	b := newBench(t)
	b.run(holding(b.record("pay_1", 4800))) // op is out of the way
	const many = 200
	for i := range many {
		b.lose(fmt.Sprint("n-", i), "pay")
	}
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	b.answer.Store(hangUp)
	begun := b.asked.Load()
	for minute := range 180 { // also past the time in which an unknown is held otherwise
		b.clock.Add(time.Minute.Milliseconds())
		at := time.UnixMilli(b.clock.Load())
		b.s.tick(t.Context(), "lookup", ledger.OnSchedule, at)
		runs, err := b.s.Store.LastRuns(t.Context())
		if err != nil || len(runs[0].Problems) > 1 || runs[0].Held > 0 {
			t.Fatalf("minute %d: %+v %v", minute, runs, err)
		}
		if minute == 0 && !strings.Contains(strings.Join(runs[0].Problems, " "), "200 unknown wait for it. It last answered at 2026-03-01 12:01") {
			t.Fatalf("the problem says %q", runs[0].Problems)
		}
	}
	if n := b.asked.Load() - begun; n > 60 {
		t.Errorf("a provider that is down was asked %d times in three hours", n)
	}
	for i := range many {
		if o := b.get(fmt.Sprint("n-", i)); o.Status != ledger.Unknown {
			t.Fatalf("%s was escalated: %s %s", o.OperationID, o.Status, o.Reason)
		}
	}
	b.answer.Store(func(w http.ResponseWriter, r *http.Request) {
		order := r.URL.Query().Get("operation")
		holding(fmt.Sprintf(`{"id":"pay_%s","amount":4800,"currency":"EUR","operation":%q}`, order, order))(w, r)
	})
	b.clock.Add((5 * time.Minute).Milliseconds())
	b.s.tick(t.Context(), "lookup", ledger.OnSchedule, time.UnixMilli(b.clock.Load()))
	for i := range many {
		if o := b.get(fmt.Sprint("n-", i)); o.Status != ledger.Confirmed {
			t.Fatalf("%s did not settle on the first good pass: %s", o.OperationID, o.Status)
		}
	}
}

// The adapter of one rail breaks on every call.
func TestCase071ARailThatBreaksKeepsNoOtherWaiting(t *testing.T) {
	b := newBench(t)
	_, before := b.run(holding(b.record("pay_1", 4800)))
	if before.Status != ledger.Confirmed {
		t.Fatal(before.Status)
	}
	b.lose("a", "pay_down")
	b.lose("b", "pay")
	breaking, err := dispatch.ParseConfig(fmt.Appendf(nil, `
rails: { down: { adapter: sandbox, base_url: %q } }
action_types: { pay_down: { rail: down, effect: charge, schema: { type: object } } }
`, b.provider), t.TempDir(), "broken.yaml", nil, func() time.Time { panic("the clock of this rail is broken") }, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.config.Tenants["default"].Routes["pay_down"] = breaking.Tenants["default"].Routes["pay_down"]
	b.answer.Store(func(w http.ResponseWriter, r *http.Request) {
		order := r.URL.Query().Get("operation")
		holding(fmt.Sprintf(`{"id":"pay_b","amount":4800,"currency":"EUR","operation":%q}`, order))(w, r)
	})
	b.clock.Add(time.Minute.Milliseconds())
	run, err := b.s.Run(t.Context(), "lookup")
	if err != nil || len(run.Problems) != 1 || !strings.Contains(run.Problems[0], "Rail down of tenant default could not be asked, since it broke: the clock of this rail is broken") {
		t.Errorf("%q %v", run.Problems, err)
	}
	if o := b.get("b"); o.Status != ledger.Confirmed {
		t.Errorf("the other rail was not asked: %s", o.Status)
	}
	if o := b.get("a"); o.Status != ledger.Unknown {
		t.Errorf("a rail that breaks concluded %s", o.Status)
	}
}

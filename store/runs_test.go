package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// retries gives every run so many of them.
func retries(n int) func(*ledger.Rulebook) {
	return func(r *ledger.Rulebook) { r.Runs = ledger.RunLimits{MaxAttempts: n, MaxElapsed: 24 * time.Hour} }
}

// of makes an operation part of a run, perhaps with one above it.
func of(run string, parent ...string) func(*ledger.Operation) {
	return func(o *ledger.Operation) { o.RunID, o.ParentRunID = run, strings.Join(parent, "") }
}

func (b *bench) wantUsed(run string, used int, layers map[string]int) {
	b.t.Helper()
	r, err := b.s.Run(b.ctx, tenant, run)
	b.ok(err)
	if r.Used != used || fmt.Sprint(r.ByLayer) != fmt.Sprint(layers) {
		b.t.Fatalf("%s used %d %v, want %d %v", run, r.Used, r.ByLayer, used, layers)
	}
}

func TestMarksAfterTheFirstSpendTheRunsBudget(t *testing.T) {
	b := newBench(t, retries(2))
	b.submit("op", blind, nil, of("run", "above"))
	b.settle(b.mark(b.claim(blind)), silence)
	b.wantUsed("run", 0, nil) // a first send is no retry
	for n := 1; n <= 2; n++ {
		b.clock.move(time.Second)
		b.settle(b.mark(b.claim(blind)), silence)
		b.wantUsed("run", n, map[string]int{"mark": n})
		b.wantUsed("above", n, nil)
	}
	b.clock.move(time.Second)
	b.wantUnmarked(b.claim(blind))
	o := b.want("op", ledger.UnknownHold, ledger.BudgetExhausted)
	if o.Attempts != 3 || !strings.Contains(o.Detail, "The run run has used up its 2 retries") {
		t.Errorf("%d attempts: %s", o.Attempts, o.Detail)
	}
	b.wantUsed("run", 2, map[string]int{"mark": 2})
	var spent store.BudgetSpent
	if err := b.s.Repeat(b.ctx, o); !errors.As(err, &spent) {
		t.Error("a repeat is counted all the same: ", err)
	}
	if _, err := b.s.Submit(b.ctx, b.draft("next", blind, nil, of("run"))); !errors.As(err, &spent) {
		t.Error("a new operation is taken all the same: ", err)
	}
}

func TestSendsThatDidNotRunSpendTheRunsBudgetToo(t *testing.T) {
	b := newBench(t, retries(1))
	b.submit("op", letter, nil, of("run"))
	b.settle(b.mark(b.claim(letter)), notSent)
	b.clock.move(time.Second)
	b.settle(b.mark(b.claim(letter)), notSent)
	b.clock.move(time.Second)
	b.wantUnmarked(b.claim(letter))
	b.want("op", ledger.UnknownHold, ledger.BudgetExhausted)
}

func TestMarkThatIsRefusedForAnotherReasonSpendsNothing(t *testing.T) {
	b := newBench(t, retries(5))
	b.submit("op", blind, nil, of("run"))
	b.settle(b.mark(b.claim(blind)), silence)
	b.clock.move(25 * time.Hour) // the provider has forgotten the key
	b.wantUnmarked(b.claim(blind))
	b.want("op", ledger.UnknownHold, ledger.KeyExpired)
	b.wantUsed("run", 0, nil)
}

// A person who releases one more send knows that the run has nothing left: the
// send counts, and goes out.
func TestReleasedSendGoesOutOfASpentRun(t *testing.T) {
	b := newBench(t, retries(1))
	b.person("ana", "approver")
	dora := b.person("dora", "admin", "approver", "finance")
	b.submit("op", blind, nil, of("run"))
	b.settle(b.mark(b.claim(blind)), silence)
	_, err := b.s.ReportAttempts(b.ctx, tenant, "run", "http", 1)
	b.ok(err)
	b.clock.move(time.Second)
	b.wantUnmarked(b.claim(blind))
	b.want("op", ledger.UnknownHold, ledger.BudgetExhausted)
	b.clock.move(time.Hour)
	b.ok(b.decide(b.s.SendAgain, dora, "op"))
	m := b.mark(b.claim(blind))
	b.wantUsed("run", 2, map[string]int{"http": 1, "mark": 1})
	b.settle(m, found(m.Operation, "ch_1"))
	b.want("op", ledger.Confirmed, "")
}

func TestStoppedRunSendsNothingMore(t *testing.T) {
	const many = 1200 // more than any batch
	b := newBench(t)
	b.submit("sending", charge, nil, of("run"))
	sending := b.mark(b.claim(charge))
	b.submit("lost", blind, nil, of("run"))
	b.settle(b.mark(b.claim(blind)), silence)
	b.submit("unsent", wire, nil, of("run"))
	b.submit("claimed", proven, nil, of("run"))
	claimed := b.claim(proven)
	b.submit("asked", wire, to("acct_ask"), of("run"))
	b.submit("below", wire, nil, of("child", "run"))
	b.submit("far below", wire, nil, of("grandchild", "child"))
	b.submit("above", wire, nil, of("parent"))
	b.submit("beside", wire, nil, of("other", "parent"))
	for n := range many {
		b.submit(fmt.Sprint("more-", n), memo, nil, of("run"))
	}
	n, err := b.s.StopRun(b.ctx, tenant, "run", root)
	b.ok(err)
	if n != many+5 {
		t.Errorf("%d were stopped", n)
	}
	for _, id := range []string{"unsent", "claimed", "asked", "below", "far below", "more-0", fmt.Sprint("more-", many-1)} {
		b.want(id, ledger.Rejected, ledger.RunStopped)
	}
	b.want("above", ledger.Ready, "")
	b.want("beside", ledger.Ready, "")
	if _, err := b.tryMark(claimed); !errors.Is(err, store.ErrLeaseLost) {
		t.Error("what was claimed is marked: ", err)
	}
	if got := len(b.claims("w2", railOf(memo))); got != 0 {
		t.Errorf("%d are claimed", got)
	}
	// What is being sent goes to its end; what is unknown is not sent again.
	b.want("sending", ledger.InFlight, "")
	b.settle(sending, found(sending.Operation, "ch_1"))
	b.want("sending", ledger.Confirmed, "")
	b.want("lost", ledger.Unknown, "")
	b.clock.move(time.Second)
	b.wantUnmarked(b.claim(blind))
	b.want("lost", ledger.UnknownHold, ledger.BudgetExhausted)
	for _, run := range []string{"run", "child", "grandchild"} {
		if _, err := b.s.Submit(b.ctx, b.draft("new", wire, nil, of(run))); !errors.As(err, new(store.BudgetSpent)) {
			t.Errorf("%s takes something new: %v", run, err)
		}
	}
	again, err := b.s.StopRun(b.ctx, tenant, "run", root)
	if b.ok(err); again != 0 {
		t.Errorf("stopped a second time, it stops %d", again)
	}
}

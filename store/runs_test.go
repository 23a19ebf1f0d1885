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
	stop := store.Decision{Person: b.person("dora", "finance"), Reason: "it loops"}
	n, err := b.s.StopRun(b.ctx, tenant, "run", stop)
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
	again, err := b.s.StopRun(b.ctx, tenant, "run", stop)
	if b.ok(err); again != 0 {
		t.Errorf("stopped a second time, it stops %d", again)
	}
}

// A budget of nothing is not spent before something is taken from it: first
// submissions are free. The first retry is refused, and is the end of the run.
func TestRunWithoutRetriesTakesFirstSubmissionsUntilOneIsRefused(t *testing.T) {
	none := 0
	for name, repeat := range map[string]func(*bench, ledger.Operation){
		"a repeat": func(b *bench, o ledger.Operation) {
			if err := b.s.Repeat(b.ctx, o); !errors.As(err, new(store.BudgetSpent)) {
				b.t.Error("the first repeat goes through: ", err)
			}
		},
		"a second mark": func(b *bench, o ledger.Operation) {
			b.settle(b.mark(b.claim(blind)), silence)
			b.clock.move(time.Second)
			b.wantUnmarked(b.claim(blind))
			b.want("op", ledger.UnknownHold, ledger.BudgetExhausted)
		},
		"a layer's report": func(b *bench, _ ledger.Operation) {
			_, err := b.s.ReportAttempts(b.ctx, tenant, "run", "http", 1)
			b.ok(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, retries(5))
			_, err := b.s.LowerRun(b.ctx, tenant, "run", "", &none, nil)
			b.ok(err)
			o := b.submit("op", blind, nil, of("run"))
			b.submit("second", wire, nil, of("run"))
			b.wantUsed("run", 0, nil)
			repeat(b, o)
			if _, err := b.s.Submit(b.ctx, b.draft("third", wire, nil, of("run"))); !errors.As(err, new(store.BudgetSpent)) {
				t.Error("after a refused retry something new is taken: ", err)
			}
			used, err := b.s.Run(b.ctx, tenant, "run")
			b.ok(err)
			if err := b.s.Repeat(b.ctx, o); !errors.As(err, new(store.BudgetSpent)) {
				t.Error("a second repeat goes through: ", err)
			}
			b.wantUsed("run", used.Used, used.ByLayer) // once it is spent, what is refused counts no more
			b.want("second", ledger.Ready, "")         // what was taken on in time is not touched
		})
	}
}

func TestRunBelowOneWithoutRetriesIsEndedByItsFirstRepeat(t *testing.T) {
	none := 0
	b := newBench(t, retries(5))
	_, err := b.s.LowerRun(b.ctx, tenant, "top", "", &none, nil)
	b.ok(err)
	o := b.submit("op", wire, nil, of("low", "top"))
	b.submit("side", wire, nil, of("side", "top"))
	if err := b.s.Repeat(b.ctx, o); !errors.As(err, new(store.BudgetSpent)) || !strings.Contains(err.Error(), "The run top") {
		t.Error("the repeat of a run below is answered ", err)
	}
	for _, run := range []string{"top", "low", "side"} {
		if _, err := b.s.Submit(b.ctx, b.draft("new", wire, nil, of(run))); !errors.As(err, new(store.BudgetSpent)) {
			t.Errorf("%s takes something new: %v", run, err)
		}
	}
}

func TestRunIsStoppedByWhoMayAndSaysWhy(t *testing.T) {
	b := newBench(t)
	b.submit("op", wire, nil, of("run"))
	dora, vic := b.person("dora", "finance"), b.person("vic", "viewer")
	foreign := dora
	foreign.TenantID = "elsewhere"
	for name, d := range map[string]store.Decision{
		"viewer": {Person: vic, Reason: "x"}, "no reason": {Person: dora, Reason: " "}, "another tenant": {Person: foreign, Reason: "x"}, "nobody": {Reason: "x"},
	} {
		if _, err := b.s.StopRun(b.ctx, tenant, "run", d); !errors.Is(err, store.ErrForbidden) && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s stops it: %v", name, err)
		}
	}
	b.want("op", ledger.Ready, "")
	for n := range 40 { // entries on both sides of the one that is looked for
		b.submit(fmt.Sprint("before-", n), memo, nil)
	}
	b.clock.move(time.Second)
	_, err := b.s.StopRun(b.ctx, tenant, "run", store.Decision{Person: dora, Reason: "it loops"})
	b.ok(err)
	b.clock.move(time.Second)
	b.submit("after", memo, nil)
	_, err = b.s.StopRun(b.ctx, tenant, "run", store.Decision{Person: b.person("ed", "admin"), Reason: "me too"})
	b.ok(err)
	all, more, err := b.s.Runs(b.ctx, tenant, store.RunFilter{})
	b.ok(err)
	if len(all) != 1 || more || all[0].StoppedBy != dora.Email || all[0].StoppedWhy != "it loops" || all[0].Operations[ledger.Rejected] != 1 {
		t.Errorf("the runs are %+v", all)
	}
	if o := b.want("op", ledger.Rejected, ledger.RunStopped); !strings.Contains(o.Detail, "dora stopped its run, and nothing was sent: it loops") {
		t.Error("the agent is told ", o.Detail)
	}
}

func TestRunsAreListedNewestFirstWithTheirRelatives(t *testing.T) {
	b := newBench(t)
	b.submit("sending", charge, nil, of("top"))
	b.mark(b.claim(charge))
	for _, run := range [][]string{{"mid", "top"}, {"low", "mid"}, {"side", "top"}, {"other", ""}} {
		b.clock.move(time.Second)
		b.submit("op-"+run[0], wire, nil, of(run[0], run[1]))
	}
	var seen []string
	for after := ""; ; {
		page, more, err := b.s.Runs(b.ctx, tenant, store.RunFilter{After: after, Limit: 2})
		b.ok(err)
		for _, r := range page {
			after = r.RunID
			seen = append(seen, fmt.Sprintf("%s above=%d below=%v unsent=%d way=%d", r.RunID, len(r.Above), r.Below, r.Unsent, r.UnderWay))
		}
		if !more {
			break
		}
	}
	want := []string{"other above=0 below=[] unsent=1 way=0", "side above=1 below=[] unsent=1 way=0", "low above=2 below=[] unsent=1 way=0",
		"mid above=1 below=[low] unsent=2 way=0", "top above=0 below=[low mid side] unsent=3 way=1"}
	if strings.Join(seen, "\n") != strings.Join(want, "\n") {
		t.Errorf("listed\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
	one, _, err := b.s.Runs(b.ctx, tenant, store.RunFilter{RunID: "mid"})
	b.ok(err)
	if len(one) != 1 || one[0].RunID != "mid" {
		t.Errorf("one is asked for, and given are %+v", one)
	}
	if n, err := b.s.StopRun(b.ctx, tenant, "top", store.Decision{Person: b.person("dora", "admin"), Reason: "x"}); err != nil || n != 3 {
		t.Errorf("the list says that 3 are rejected, and %d are (%v)", n, err)
	}
	if one, _, err = b.s.Runs(b.ctx, tenant, store.RunFilter{RunID: "low"}); err != nil || len(one) != 1 {
		t.Fatal(one, err)
	}
	if state, by := one[0].Standing(b.clock.now().UnixMilli()); state != ledger.RunHalted || by.RunID != "top" {
		t.Errorf("below a stopped run one is %s by %s", state, by.RunID)
	}
}

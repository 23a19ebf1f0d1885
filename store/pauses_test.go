package store_test

import (
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

func TestPausedRailSendsNothingUntilItIsResumed(t *testing.T) {
	b := newBench(t)
	ann := b.person("ann", "finance")
	b.submit("before", charge, nil)
	claimed := b.claim(charge)
	b.wantErr(b.s.PauseRail(b.ctx, tenant, "card", " ", ann), store.ErrForbidden)
	b.ok(b.s.PauseRail(b.ctx, tenant, "card", "an incident", ann))
	b.ok(b.s.PauseRail(b.ctx, tenant, "card", "again", b.person("ben", "finance")))
	if p, err := b.s.Pauses(b.ctx, tenant); err != nil || len(p) != 1 || p[0].Person != ann.Display() || p[0].Reason != "an incident" {
		t.Errorf("pauses %v, %v", p, err)
	}

	if _, err := b.tryMark(claimed); err == nil {
		t.Fatal("what was claimed before the pause was marked in it")
	}
	if o := b.want("before", ledger.Ready, ""); o.Attempts != 0 || o.Claims != 0 || o.LeaseUntil != 0 {
		t.Errorf("the pause cost it something: %+v", o)
	}
	b.submit("during", charge, nil)
	if c, err := b.s.Claim(b.ctx, "w", tenant, "card", 9, 9); err != nil || len(c) != 0 {
		t.Errorf("claimed %v on a paused rail, %v", c, err)
	}
	b.submit("elsewhere", wire, nil)
	b.mark(b.claim(wire))

	b.ok(b.s.ResumeRail(b.ctx, tenant, "card", "it is over", ann))
	if c, err := b.s.Claim(b.ctx, "w", tenant, "card", 9, 9); err != nil || len(c) != 2 {
		t.Errorf("claimed %v after the pause, %v", c, err)
	}
}

func TestPauseOfAnotherTenantStopsNobodyElse(t *testing.T) {
	b := newBench(t)
	b.rules["other"] = newRules(t)
	b.ok(b.s.SetRulebooks(b.ctx, b.rules))
	ann := b.person("ann", "finance")
	b.ok(b.s.PauseRail(b.ctx, "other", "card", "an incident", ann))
	b.submit("op", charge, nil)
	b.mark(b.claim(charge))
	if p, err := b.s.Pauses(b.ctx, tenant); err != nil || len(p) != 0 {
		t.Errorf("%v, %v", p, err)
	}
}

func TestOnlySoManyClaimedWereSentBefore(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"again-1", "again-2", "again-3"} {
		b.submit(id, charge, nil)
		b.settle(b.mark(b.claim(charge)), ledger.Answer{Finding: ledger.NotSent})
	}
	b.submit("first-1", charge, nil)
	b.submit("first-2", charge, nil)
	b.clock.move(time.Hour)
	for _, c := range []struct{ limit, retries, want int }{{9, 0, 2}, {9, 1, 3}} {
		claims, err := b.s.Claim(b.ctx, "w", tenant, "card", c.limit, c.retries)
		b.ok(err)
		retries := 0
		for _, claim := range claims {
			if claim.Operation.Attempts > 0 {
				retries++
			}
			b.ok(b.s.Release(b.ctx, claim, 0, "Given back."))
		}
		if len(claims) != c.want || retries != c.retries {
			t.Errorf("%d of at most %d, %d of them sent before", len(claims), c.limit, retries)
		}
	}
}

package store_test

import (
	"errors"
	"strings"
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
	for why, c := range map[string]struct {
		rail string
		d    store.Decision
		want error
	}{
		"no reason":      {"card", store.Decision{Person: ann, Reason: " "}, store.ErrForbidden},
		"a viewer":       {"card", store.Decision{Person: b.person("vic", "viewer"), Reason: "an incident"}, store.ErrForbidden},
		"nobody":         {"card", store.Decision{Reason: "an incident"}, store.ErrNotFound},
		"no such rail":   {"cord", store.Decision{Person: ann, Reason: "an incident"}, store.ErrNotFound},
		"another screen": {"card", store.Decision{Person: ann, Reason: "an incident", Seen: store.Seen{Version: 1}}, store.ErrStale},
	} {
		if err := b.s.PauseRail(b.ctx, tenant, c.rail, c.d); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", why, err)
		}
	}
	b.wantErr(b.s.ResumeRail(b.ctx, tenant, "card", store.Decision{Person: ann, Reason: "it is over"}), store.ErrStale)
	b.ok(b.pause("card", "an incident", ann))
	b.wantErr(b.s.PauseRail(b.ctx, tenant, "card", store.Decision{Person: b.person("ben", "finance"), Reason: "again"}), store.ErrStale)
	b.wantErr(b.pause("card", "again", ann), store.ErrStale)
	p, err := b.s.Pauses(b.ctx, tenant)
	if one, _ := b.s.Pause(b.ctx, tenant, "card"); err != nil || len(p) != 1 || p[0].Person != ann.Email || p[0].Reason != "an incident" || one != p[0] {
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

	b.wantErr(b.s.ResumeRail(b.ctx, tenant, "card", store.Decision{Person: ann, Reason: "it is over", Seen: store.Seen{Version: p[0].At - 1}}), store.ErrStale)
	b.wantErr(b.s.ResumeRail(b.ctx, tenant, "card", store.Decision{Person: ann, Seen: store.Seen{Version: p[0].At}}), store.ErrForbidden)
	b.ok(b.s.ResumeRail(b.ctx, tenant, "card", store.Decision{Person: ann, Reason: "it is over", Seen: store.Seen{Version: p[0].At}}))
	if e, err := b.s.LastRailChange(b.ctx, tenant, "card"); err != nil || e.Event != "resume" || e.Actor != ann.Email || !strings.HasSuffix(e.Sentence, "resumed the rail card: it is over") {
		t.Errorf("the log says %+v, %v", e, err)
	}
	if c, err := b.s.Claim(b.ctx, "w", tenant, "card", 9, 9); err != nil || len(c) != 2 {
		t.Errorf("claimed %v after the pause, %v", c, err)
	}
}

// pause is a person's pause of a rail that nobody has paused.
func (b *bench) pause(rail, reason string, by ledger.PersonRecord) error {
	return b.s.PauseRail(b.ctx, tenant, rail, store.Decision{Person: by, Reason: reason})
}

func TestPauseOfAnotherTenantStopsNobodyElse(t *testing.T) {
	b := newBench(t)
	b.rules["other"] = newRules(t)
	b.ok(b.s.SetRulebooks(b.ctx, b.rules))
	ann := b.person("ann", "finance")
	b.wantErr(b.s.PauseRail(b.ctx, "other", "card", store.Decision{Person: ann, Reason: "an incident"}), store.ErrNotFound)
	ann.TenantID = "other"
	b.ok(b.s.PauseRail(b.ctx, "other", "card", store.Decision{Person: ann, Reason: "an incident"}))
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

package store_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// shapes are ways in which operations wait for each other: each waits for those
// that its line names, and the first one is rejected.
var shapes = map[string][][]int{
	"chain":    {{}, {0}, {1}, {2}},
	"triangle": {{}, {0}, {0, 1}},
	"diamond":  {{}, {0}, {0}, {1, 2}},
	"all":      {{}, {0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}},
	"backward": {{}, {0}, {1, 0}, {2, 0, 1}},
}

// rejections are the ways in which the first one can end; each finds it where
// that way begins.
var rejections = map[string]struct {
	before func(b *bench, id string, after func(*ledger.Operation)) // brings it there
	reject func(b *bench, id string)
}{
	"cancel": {asked, func(b *bench, id string) {
		_, err := b.s.Cancel(b.ctx, tenant, id, agent)
		b.ok(err)
	}},
	"deny": {asked, func(b *bench, id string) { b.ok(b.decide(b.s.Reject, b.person("ben", "approver"), id)) }},
	"replace": {asked, func(b *bench, id string) {
		b.submit("heir", charge, nil, func(o *ledger.Operation) { o.Replaces = id })
	}},
	"expire": {asked, func(b *bench, id string) {
		b.clock.move(48 * time.Hour)
		b.sweep()
	}},
	"stop the run": {asked, func(b *bench, id string) {
		_, err := b.s.StopRun(b.ctx, tenant, "r", store.Decision{Person: b.person("ben", "approver"), Reason: "enough"})
		b.ok(err)
	}},
	"the provider refuses": {inFlight, func(b *bench, id string) { b.settle(b.mark(b.claim(letter)), refused) }},
	"it did not happen": {inFlight, func(b *bench, id string) {
		b.settle(b.mark(b.claim(letter)), silence)
		b.clock.move(48 * time.Hour)
		b.ok(b.decide(b.s.DidNotHappen, b.person("ben", "finance"), id))
	}},
	"the same purchase": {func(b *bench, id string, after func(*ledger.Operation)) {
		b.settle(b.sent("earlier", letter), refused)
		b.submit("original", letter, map[string]any{"reference": "twin"})
		b.submit(id, letter, map[string]any{"reference": "twin"}, after)
	}, func(b *bench, id string) {
		_, err := b.s.Cancel(b.ctx, tenant, "original", agent)
		b.ok(err)
		b.ok(b.decide(b.s.Reject, b.person("ben", "approver"), id))
	}},
}

func asked(b *bench, id string, in func(*ledger.Operation)) {
	b.submit(id, charge, map[string]any{"recipient": "acct_ask"}, in)
}

func inFlight(b *bench, id string, in func(*ledger.Operation)) { b.submit(id, letter, nil, in) }

// Whatever rejects the first one rejects all that wait for it, in one piece:
// nothing is left ready behind it, and nothing makes the rejection impossible.
func TestWhatWaitsForARejectedOneIsRejectedWithIt(t *testing.T) {
	for shape, waits := range shapes {
		for way, r := range rejections {
			for _, askedToo := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, asked %t", shape, way, askedToo), func(t *testing.T) {
					b := newBench(t)
					name := func(i int) string { return fmt.Sprint("op-", i) }
					inRun := func(o *ledger.Operation) { o.RunID = "r" }
					r.before(b, name(0), inRun)
					for i := 1; i < len(waits); i++ {
						change := func(o *ledger.Operation) {
							o.RunID = "r"
							for _, first := range waits[i] {
								o.After = append(o.After, name(first))
							}
						}
						if askedToo {
							asked(b, name(i), change)
						} else {
							inFlight(b, name(i), change)
						}
					}
					r.reject(b, name(0))
					for i := range waits {
						if o := b.get(name(i)); o.Status != ledger.Rejected {
							t.Errorf("%s is %s (%s): %s", name(i), o.Status, o.Reason, o.Detail)
						}
					}
				})
			}
		}
	}
}

// One operation that cannot be swept keeps nobody else waiting.
func TestSweepGoesOnPastOneThatFails(t *testing.T) {
	b := newBench(t)
	asked(b, "broken", asIs)
	asked(b, "overdue", asIs)
	b.broken = true
	b.ok(b.sql(`create trigger jam before update on operations when old.operation_id = 'broken' begin select raise(abort, 'jammed'); end`))
	b.clock.move(48 * time.Hour)
	swept, err := b.s.Sweep(b.ctx, sweeper)
	if err == nil || swept.Resolved != 1 {
		t.Errorf("swept %+v, and said %v", swept, err)
	}
	b.want("overdue", ledger.Rejected, ledger.ApprovalExpired)
	b.ok(b.sql(`drop trigger jam`))
	b.sweep()
	b.want("broken", ledger.Rejected, ledger.ApprovalExpired)
}

func asIs(*ledger.Operation) {}

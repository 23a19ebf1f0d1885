package store_test

import (
	"testing"
	"time"

	"holdfast/store/ledger"
)

// Whatever keeps a planned resend from being claimed, nothing waits for it for
// ever: it keeps its place while it may still be sent, and then a person is told.
func TestResendThatNobodyClaimsEndsInFrontOfAPerson(t *testing.T) {
	for _, c := range []struct {
		claim  string
		begin  func(b *bench)
		gone   bool
		wait   time.Duration
		status ledger.Status
		reason ledger.Reason
	}{
		{"unknown, and it may still be sent", unheard, false, 10 * time.Minute, ledger.Unknown, ""},
		{"unknown, for longer than anybody waits", unheard, false, 49 * time.Hour, ledger.UnknownHold, ledger.BudgetExhausted},
		{"unknown, and its rail has gone", unheard, true, 2 * time.Minute, ledger.UnknownHold, ledger.Inconclusive},
		{"none of its attempts ran, and it may still be sent", turnedAway, false, 10 * time.Minute, ledger.Ready, ""},
		{"none of its attempts ran, for longer than the rail allows", turnedAway, false, 49 * time.Hour, ledger.UnknownHold, ledger.BudgetExhausted},
		{"none of its attempts ran, and its rail has gone", turnedAway, true, 2 * time.Minute, ledger.UnknownHold, ledger.Inconclusive},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			c.begin(b)
			if c.gone {
				b.rules = map[string]*ledger.Rulebook{tenant: {}}
				b.ok(b.s.SetRulebooks(b.ctx, b.rules))
			}
			b.clock.move(c.wait)
			b.sweep()
			b.sweep()
			b.want("op", c.status, c.reason)
		})
	}
}

func unheard(b *bench)    { b.settle(b.sent("op", blind), silence) }
func turnedAway(b *bench) { b.settle(b.sent("op", blind), ledger.Answer{Finding: ledger.NotSent}) }

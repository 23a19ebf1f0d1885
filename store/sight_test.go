package store_test

import (
	"testing"
	"time"

	"holdfast/store/ledger"
)

// That nothing is found is proof on this rail, and only where nothing that we
// know speaks against it: each of these must end with a person, or stay open.
func TestAbsenceIsNoProofAgainstWhatWeKnow(t *testing.T) {
	late := time.Hour + time.Minute + sendFor
	silent := func(b *bench) { b.lost("op", proven) }
	answers := func(a ledger.Answer) func(*bench) {
		return func(b *bench) { b.settle(b.sent("op", proven), a) }
	}
	look := func(l ledger.Look) func(*bench) {
		return func(b *bench) {
			b.lost("op", proven)
			l.AskedAt = b.s.Now()
			_, err := b.s.RecordLook(b.ctx, tenant, "op", l, reconciler, time.Second)
			b.ok(err)
		}
	}
	move := func(change func(*ledger.Rail)) func(*bench) {
		return func(b *bench) {
			b.lost("op", proven)
			b.rules = map[string]*ledger.Rulebook{tenant: newRules(b.t, func(r *ledger.Rulebook) {
				rail := r.Rails["registry"]
				change(&rail)
				r.Rails["registry"] = rail
			})}
		}
	}
	for _, c := range []struct {
		claim  string
		before func(*bench)
		wait   time.Duration
		status ledger.Status
		reason ledger.Reason
	}{
		{"an honest absence", silent, late, ledger.Rejected, ledger.NotExecuted},
		{"too early", silent, late - time.Second, ledger.UnknownHold, ledger.Inconclusive},
		{"asked at another address", move(func(r *ledger.Rail) { r.Address = "https://elsewhere.example" }), late, ledger.UnknownHold, ledger.Inconclusive},
		{"asked for another account", move(func(r *ledger.Rail) { r.Account = "test" }), late, ledger.UnknownHold, ledger.Inconclusive},
		{"a look saw it unfinished", look(ledger.Look{Finding: ledger.LookInconclusive, Sighted: true, Sentence: "Not yet."}), late, ledger.UnknownHold, ledger.EvidenceConflict},
		{"a look saw it, and a later page broke", look(ledger.Look{Finding: ledger.LookUnreachable, Sighted: true, Sentence: "Cut."}), late, ledger.UnknownHold, ledger.EvidenceConflict},
		{"a look that saw nothing of it", look(ledger.Look{Finding: ledger.LookInconclusive, Sentence: "Others."}), late, ledger.Rejected, ledger.NotExecuted},
		{"a success that could not be read", answers(ledger.Answer{Finding: ledger.Unclear, Sighted: true, HTTPStatus: 201, Sentence: "No id."}), late, ledger.UnknownHold, ledger.EvidenceConflict},
		{"accepted, and its time not over", answers(ledger.Answer{Finding: ledger.Pending, HTTPStatus: 202, Sentence: "Accepted."}), late, ledger.Unknown, ""},
		{"accepted, and its time over", answers(ledger.Answer{Finding: ledger.Pending, HTTPStatus: 202, Sentence: "Accepted."}), 169 * time.Hour, ledger.UnknownHold, ledger.EvidenceConflict},
		{"a signed event with our stamp", func(b *bench) { b.hear(about(b.lost("op", proven), "payment.pending", nil)) }, late, ledger.UnknownHold, ledger.EvidenceConflict},
		{"an event that nobody signed", func(b *bench) {
			e := about(b.lost("op", proven), "payment.pending", nil)
			e.naked = true
			b.hear(e)
		}, late, ledger.Rejected, ledger.NotExecuted},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			c.before(b)
			b.reopen() // what was seen outlives the process
			b.clock.move(c.wait)
			b.look("op", ledger.LookAbsent)
			b.want("op", c.status, c.reason)
			b.wantOwed()
		})
	}
}

// What is found at another place counts all the same: the stamp is ours alone.
func TestWhatIsFoundAtAnotherAddressIsFound(t *testing.T) {
	b := newBench(t)
	o := b.lost("op", proven)
	b.rules = map[string]*ledger.Rulebook{tenant: newRules(t, func(r *ledger.Rulebook) {
		rail := r.Rails["registry"]
		rail.Address = "https://elsewhere.example"
		r.Rails["registry"] = rail
	})}
	b.reopen()
	b.look("op", ledger.LookFound, receipt(o, "pay_1"))
	b.want("op", ledger.Confirmed, "")
}

// The one record under our id may confirm, and never says that money is owed.
func TestARecordWithoutItsOwnStampOwesNothing(t *testing.T) {
	presumed := func(o ledger.Operation, id string) ledger.Receipt {
		r := receipt(o, id)
		r.Presumed = true
		return r
	}
	b := newBench(t)
	o := b.lost("op", wire)
	b.look("op", ledger.LookFound, presumed(o, "pay_1"))
	b.want("op", ledger.Confirmed, "")
	b.clock.move(time.Minute)
	b.look("op", ledger.LookFound, presumed(o, "pay_stranger"))
	b.wantOwed()
	b.look("op", ledger.LookFound, receipt(o, "pay_2"), presumed(o, "pay_stranger"))
	b.wantOwed("pay_2 duplicate_charge 4800")
}

// One payment is one purchase's: it is not owed back because a look-up for
// another one, which has ended, shows it too.
func TestAnotherOnesReceiptOwesNothing(t *testing.T) {
	b := newBench(t)
	a, o := b.lost("a", wire), b.lost("b", wire)
	b.look("a", ledger.LookFound, receipt(a, "pay_1"))
	b.look("b", ledger.LookFound, receipt(o, "pay_2"))
	b.clock.move(time.Minute)
	b.look("b", ledger.LookFound, receipt(o, "pay_1"))
	b.want("b", ledger.Confirmed, "")
	b.wantOwed()
}

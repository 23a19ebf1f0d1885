package store_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

const pay, send = "pay", "send" // one effect, over card and over bank

// twoRails are rules under which one purchase may be paid by card and by bank.
func twoRails(t testing.TB, mode string) func(*ledger.Rulebook) {
	return func(r *ledger.Rulebook) {
		for name, rail := range map[string]string{pay: "card", send: "bank"} {
			a, err := ledger.NewActionType(name, ledger.ActionSpec{Rail: rail, Effect: "purchase", Schema: []byte(schema), Overlap: ledger.OverlapSpec{Mode: mode}}, r.Currencies)
			if err != nil {
				t.Fatal(err)
			}
			r.Actions[name] = a
		}
	}
}

// inv is a payload with a reference of its own, to one recipient.
func inv(reference string, amount int64) map[string]any {
	return map[string]any{"reference": reference, "amount": amount, "recipient": "acct_shop"}
}

// paidBy is a confirmed payment of a reference on the rail of an action type.
func (b *bench) paidBy(action, id string, payload map[string]any, change ...func(*ledger.Operation)) ledger.Operation {
	b.t.Helper()
	b.submit(id, action, payload, change...)
	m := b.markOf(id, map[string]string{pay: "card", send: "bank"}[action])
	return b.settle(m, found(m.Operation, "rc-"+id))
}

func TestOnePurchaseOnTwoRailsIsOwedBackOnce(t *testing.T) {
	b := newBench(t, twoRails(t, "off"))
	b.paidBy(pay, "A", inv("INV-481", 4800))
	b.clock.move(time.Hour)
	b.paidBy(send, "B", inv("inv-481 ", 4800))
	b.wantOwed("rc-B cross_rail_duplicate 4800")
	e := b.owed()[0]
	if e.OperationID != "B" || e.Rail != "bank" || e.Direction != ledger.WeOwe {
		t.Errorf("%+v", e)
	}
	entries, err := b.s.Timeline(b.ctx, tenant, "B")
	b.ok(err)
	said := ""
	for _, one := range entries {
		if one.Object == "refund_owed" {
			said = one.Sentence
		}
	}
	for _, part := range []string{"A", "card", "B", "bank", "same reference, amount and currency"} {
		if !strings.Contains(said, part) {
			t.Errorf("%q does not say %s", said, part)
		}
	}
	b.paidBy(pay, "C", inv("other", 4800)) // recipient and amount alone prove nothing
	b.wantOwed("rc-B cross_rail_duplicate 4800")
	for range 2 {
		b.reopen()
		_, err := b.s.AgeRefunds(b.ctx, sweeper)
		b.ok(err)
	}
	b.wantOwed("rc-B cross_rail_duplicate 4800")
	if asked := b.asked(); len(asked) > 0 {
		t.Error(asked)
	}
}

// What was sent first and found last is what was meant: the other one goes back.
func TestTheLaterEffectIsOwedBackWhicheverIsFoundFirst(t *testing.T) {
	b := newBench(t, twoRails(t, "off"))
	b.submit("A", pay, inv("inv", 4800))
	m := b.markOf("A", "card")
	b.settle(m, silence)
	b.clock.move(time.Minute)
	b.paidBy(send, "B", inv("inv", 4800))
	b.wantOwed()
	b.clock.move(time.Minute)
	b.look("A", ledger.LookFound, receipt(m.Operation, "rc-A"))
	b.want("A", ledger.Confirmed, "")
	b.wantOwed("rc-B cross_rail_duplicate 4800")
}

func TestOfThreeRailsTwoAreOwedBack(t *testing.T) {
	b := newBench(t, twoRails(t, "off"), func(r *ledger.Rulebook) {
		a, err := ledger.NewActionType("mail", ledger.ActionSpec{Rail: "queue", Effect: "purchase", Schema: []byte(schema), Overlap: ledger.OverlapSpec{Mode: "off"}}, r.Currencies)
		if err != nil {
			t.Fatal(err)
		}
		r.Actions["mail"] = a
	})
	b.submit("A", pay, inv("inv", 4800))
	m := b.markOf("A", "card")
	b.settle(m, silence)
	b.clock.move(time.Minute)
	b.paidBy(send, "B", inv("inv", 4800))
	b.submit("C", "mail", inv("inv", 4800))
	c := b.markOf("C", "queue")
	b.clock.move(time.Minute)
	b.settle(c, found(c.Operation, "rc-C"))
	b.wantOwed("rc-C cross_rail_duplicate 4800")
	b.look("A", ledger.LookFound, receipt(m.Operation, "rc-A"))
	if n := len(b.owed()); n != 2 {
		t.Errorf("%d entries for three payments of one purchase", n)
	}
}

func TestAPersonsWordThatItIsAnotherPurchaseStands(t *testing.T) {
	b := newBench(t, twoRails(t, "hold"))
	ana := b.person("ana", "approver")
	b.paidBy(pay, "A", inv("inv", 4800))
	b.submit("B", send, inv("inv", 4800), func(o *ledger.Operation) { o.DistinctFrom, o.Because = []string{"A"}, "a second one" })
	b.want("B", ledger.UnknownHold, ledger.SameReference)
	b.ok(b.decide(b.s.DifferentPurchase, ana, "B"))
	m := b.markOf("B", "bank")
	b.settle(m, found(m.Operation, "rc-B"))
	b.want("B", ledger.Confirmed, "")
	b.wantOwed()
	_, err := b.s.AgeRefunds(b.ctx, sweeper)
	b.ok(err)
	b.wantOwed()
}

// An agent's word is no person's.
func TestAnAgentsClaimClearsNothing(t *testing.T) {
	b := newBench(t, twoRails(t, "off"))
	b.paidBy(pay, "A", inv("inv", 4800))
	b.paidBy(send, "B", inv("inv", 4800), func(o *ledger.Operation) { o.DistinctFrom, o.Because = []string{"A"}, "a second one" })
	b.wantOwed("rc-B cross_rail_duplicate 4800")
}

// One step of one run on two rails, of which no reference tells.
func TestOneStepOnTwoRailsIsOwedBack(t *testing.T) {
	b := newBench(t, twoRails(t, "off"))
	step := func(o *ledger.Operation) { o.RunID, o.Step = "run-1", "pay the invoice" }
	unnamed := map[string]any{"reference": nil, "recipient": "acct_shop"}
	b.paidBy(pay, "A", unnamed, step)
	b.clock.move(time.Minute)
	b.paidBy(send, "B", unnamed, step)
	b.wantOwed("rc-B cross_rail_duplicate 4800")
	b.paidBy(send, "C", unnamed, func(o *ledger.Operation) { o.RunID, o.Step = "run-2", "pay the invoice" })
	b.wantOwed("rc-B cross_rail_duplicate 4800")
}

func TestWhatIsOnlyAlikeIsAskedAboutOnce(t *testing.T) {
	b := newBench(t, twoRails(t, "off"))
	ana := b.person("ana", "approver")
	b.paidBy(pay, "A", inv("inv", 4800))
	b.paidBy(send, "B", inv("inv", 1200))
	b.wantOwed()
	all, err := b.s.OpenExceptions(b.ctx, tenant)
	b.ok(err)
	if len(all) != 1 || all[0].Kind != ledger.Contradiction || all[0].OperationID != "B" || !strings.Contains(all[0].Sentence, "same reference, and another amount") {
		t.Fatalf("%+v", all)
	}
	d := b.decision(ana, "B")
	d.Seen.Version = all[0].Version
	b.ok(b.s.AnswerException(b.ctx, tenant, all[0].ID, d))
	_, err = b.s.AgeRefunds(b.ctx, sweeper)
	b.ok(err)
	if asked := b.asked(); len(asked) > 0 {
		t.Errorf("asked once more: %q", asked)
	}
}

func TestAReferenceThatComesBackLaterIsAnotherPurchase(t *testing.T) {
	b := newBench(t, twoRails(t, "off"))
	b.paidBy(pay, "A", inv("subscription-12", 4800))
	b.clock.move(25 * time.Hour)
	b.paidBy(send, "B", inv("subscription-12", 4800))
	b.wantOwed()
}

// It was given up on one rail and bought on another one; then it shows up. What
// was given up goes back: nobody counts on it.
func TestALateEffectOfWhatWasBoughtElsewhereIsOwedBackOnce(t *testing.T) {
	b := newBench(t, twoRails(t, "off"))
	b.submit("A", pay, inv("inv", 4800))
	m := b.markOf("A", "card")
	b.settle(m, refused)
	b.want("A", ledger.Rejected, ledger.Declined)
	b.clock.move(time.Minute)
	b.paidBy(send, "B", inv("inv", 4800))
	b.wantOwed()
	for range 2 {
		b.recheck("A", ledger.LookFound, receipt(m.Operation, "rc-A"))
		b.wantOwed("rc-A cross_rail_duplicate 4800")
	}
	_, err := b.s.AgeRefunds(b.ctx, sweeper)
	b.ok(err)
	b.wantOwed("rc-A cross_rail_duplicate 4800")
}

func TestALateEffectFoundBeforeTheOtherPurchaseIsTheOneOwedBack(t *testing.T) {
	b := newBench(t, twoRails(t, "off"))
	b.submit("A", pay, inv("inv", 4800))
	m := b.markOf("A", "card")
	b.settle(m, refused)
	b.recheck("A", ledger.LookFound, receipt(m.Operation, "rc-A"))
	b.wantOwed("rc-A late_effect 4800")
	b.paidBy(send, "B", inv("inv", 4800))
	b.wantOwed("rc-A late_effect 4800")
}

// A ledger from before this was looked for.
func TestTheRoundFindsWhatWasConfirmedBefore(t *testing.T) {
	b := newBench(t, twoRails(t, "off"))
	b.paidBy(pay, "A", inv("inv", 4800))
	b.paidBy(send, "B", inv("other", 4800))
	b.ok(b.sql(`update operations set reference_key = 'inv' where operation_id = 'B'`))
	a, err := b.s.AgeRefunds(b.ctx, sweeper)
	b.ok(err)
	if a.Paired != 1 {
		t.Errorf("%+v", a)
	}
	b.wantOwed("rc-B cross_rail_duplicate 4800")
	b.broken = true // the reference of B is not its own any more
}

package store_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// A proxy hands the same submission to a second process while the first is
// sending. Another process does not get the ledger, and the same one says that
// it is under way.
func TestCase041AProxysRepeatFindsItUnderWay(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", wire)
	b.clock.move(time.Second)
	if _, err := open(b.folder); err == nil {
		t.Error("a second process opened the ledger")
	}
	r, err := b.s.Submit(b.ctx, b.draft("op", wire, nil))
	b.ok(err)
	if !r.Existed || r.Operation.Status != ledger.InFlight {
		t.Errorf("existed %v, %s", r.Existed, r.Operation.Status)
	}
	if c := b.claims("w2", "bank"); len(c) != 0 {
		t.Error("it can be claimed a second time")
	}
	b.settle(m, found(m.Operation, "pay_1"))
	if o := b.want("op", ledger.Confirmed, ""); o.Attempts != 1 {
		t.Errorf("%d attempts", o.Attempts)
	}
}

// The receipt comes between the rescuer's look and its hand: the look and the
// change are one transaction, so nothing is left to rescue.
func TestCase055ARescuerLeavesAReceiptAlone(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", wire)
	b.clock.move(lease) // stale, as a rescuer reads it now
	b.settle(m, found(m.Operation, "pay_1"))
	if swept := b.sweep(); swept.LookedAt != 0 {
		t.Errorf("%+v", swept)
	}
	b.want("op", ledger.Confirmed, "")
}

// A call outlives its lease: nobody claims it afterwards, it is looked for.
func TestCase056ACallLongerThanItsLeaseGoesToTheLookUps(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", wire)
	b.clock.move(lease + time.Second)
	if c := b.claims("w2", "bank"); len(c) != 0 {
		t.Fatal("claimed although it was sent")
	}
	b.sweep()
	o := b.want("op", ledger.Unknown, "")
	if c := b.claims("w2", "bank"); len(c) != 0 || o.NextLookAt == 0 || o.NextSendAt != 0 {
		t.Errorf("%d claims, next look at %d, next send at %d", len(c), o.NextLookAt, o.NextSendAt)
	}
	b.settle(m, found(m.Operation, "pay_1")) // after its 90 seconds
	b.want("op", ledger.Confirmed, "")
}

// A worker of the same name is not the same worker: its fence says so.
func TestCase058AnEqualNameIsNotAnEqualFence(t *testing.T) {
	for _, a := range []ledger.Answer{refused, notSent, silence} {
		b := newBench(t)
		first := b.sent("op", blind) // worker w1, and then it hangs
		b.clock.move(lease)
		b.sweep()
		again := b.claim(blind) // w1, started anew
		if again.Worker != first.Attempt.Worker || again.Fence <= first.Attempt.Fence {
			t.Fatalf("%s with fence %d after %s with fence %d", again.Worker, again.Fence, first.Attempt.Worker, first.Attempt.Fence)
		}
		second := b.mark(again)
		b.settle(first, a)
		b.want("op", ledger.InFlight, "")
		b.settle(second, found(second.Operation, "pay_1"))
		b.want("op", ledger.Confirmed, "")
	}
}

// One clock writes and compares every lease, since one process holds the
// ledger: one with a clock of its own is turned away at the door. A clock that
// goes back ends no lease early.
func TestCase059OneClockForEveryLease(t *testing.T) {
	b := newBench(t)
	b.submit("op", wire, nil)
	c := b.claim(wire)
	ahead := func() time.Time { return b.clock.now().Add(lease + 25*time.Second) }
	if s, err := store.Open(b.ctx, store.Options{Folder: b.folder, Now: ahead}); err == nil {
		s.Close()
		t.Fatal("a process with another clock opened the ledger")
	}
	b.clock.move(3 * time.Second)
	for _, step := range []time.Duration{0, -2 * time.Hour} {
		b.clock.move(step)
		if got := b.claims("w2", "bank"); len(got) != 0 {
			t.Errorf("claimed under a live lease after a step of %s", step)
		}
	}
	b.mark(c)
}

// Whoever starts beside a living process changes nothing: it gets no ledger to
// recover.
func TestCase073AStartBesideALivingOneRecoversNothing(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", wire)
	if _, err := open(b.folder); err == nil {
		t.Fatal("a second process opened the ledger")
	}
	o := b.want("op", ledger.InFlight, "")
	if o.LeaseOwner != "w1" {
		t.Errorf("the lease is %s's", o.LeaseOwner)
	}
	b.settle(m, found(m.Operation, "pay_1"))
	if o := b.want("op", ledger.Confirmed, ""); o.Attempts != 1 {
		t.Errorf("%d attempts", o.Attempts)
	}
}

// The provider acted, the receipt could not be written, the process ended. The
// next one asks the provider; it is never ready again.
func TestCase074AReceiptThatWasNotWrittenIsLookedFor(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", wire)
	b.reopen()
	_, err := b.s.Recover(b.ctx)
	b.ok(err)
	b.want("op", ledger.Unknown, "")
	if c := b.claims("w2", "bank"); len(c) != 0 {
		t.Error("it is sent again")
	}
	b.clock.move(3 * time.Second)
	if due := b.due(); fmt.Sprint(due) != "[op]" {
		t.Errorf("due: %v", due)
	}
	b.look("op", ledger.LookFound, receipt(m.Operation, "pay_1"))
	b.want("op", ledger.Confirmed, "")
}

// Two memos that say the same in other words are two texts, and one purchase:
// its reference and its money say so.
func TestCase076FreeTextIsNoIdentity(t *testing.T) {
	b := newBench(t, func(r *ledger.Rulebook) {
		a, err := ledger.NewActionType(wire, ledger.ActionSpec{Rail: "bank", Effect: wire, Schema: []byte(`{
			"type": "object", "additionalProperties": false,
			"properties": {
				"amount":    {"type": "integer", "x-role": "amount"},
				"currency":  {"type": "string", "x-role": "currency"},
				"recipient": {"type": "string", "x-role": "recipient"},
				"reference": {"type": "string", "x-role": "reference"},
				"memo":      {"type": "string"}
			}
		}`)}, r.Currencies)
		if err != nil {
			t.Fatal(err)
		}
		r.Actions[wire] = a
	})
	pay := func(memo string) map[string]any {
		return map[string]any{"recipient": "acct_landlord", "reference": "rent-2026-03", "memo": memo}
	}
	first := b.submit("op-A", wire, pay("pay  rent"))
	second := b.submit("op-B", wire, pay("pay\n rent"))
	if first.Fingerprint == second.Fingerprint {
		t.Error("the two texts are taken for one request")
	}
	b.want("op-A", ledger.Ready, "")
	b.want("op-B", ledger.UnknownHold, ledger.SameReference)
}

// The process dies with -9 while the provider is working. What it held is not
// claimed as if it were unsent: its fence stands, and it is looked for.
func TestCase077AKilledProcessesSendIsOnlyLookedFor(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", wire)
	b.reopen() // at once, long before the lease ends
	for _, recovered := range []bool{false, true} {
		if recovered {
			_, err := b.s.Recover(b.ctx)
			b.ok(err)
		}
		if c := b.claims("w2", "bank"); len(c) != 0 {
			t.Fatalf("claimed (recovered %v)", recovered)
		}
	}
	if o := b.want("op", ledger.Unknown, ""); o.OpenAttempts != 1 || o.NextLookAt == 0 {
		t.Errorf("%d open, next look at %d", o.OpenAttempts, o.NextLookAt)
	}
	b.settle(m, found(m.Operation, "pay_1"))
	b.want("op", ledger.Confirmed, "")
}

// Two branches of one run come to the same step at once: they are given one id,
// and have one effect and one receipt.
func TestCase079ParallelBranchesOfAStepAreOneOperation(t *testing.T) {
	b := newBench(t)
	ids, states := make([]string, 8), make([]string, 8)
	together(len(ids), func(i int) {
		intent, err := b.s.Intend(b.ctx, ledger.Intent{TenantID: tenant, ActionType: wire, RunID: "run-7", Step: "pay", Agent: "buyer", TokenID: b.token[tenant]})
		if err != nil {
			t.Error(err)
			return
		}
		ids[i] = intent.Intent.OperationID
	})
	drafts := make([]ledger.Operation, len(ids))
	for i, id := range ids {
		drafts[i] = b.draft(id, wire, map[string]any{"recipient": "acct_7", "reference": "inv-7"}, func(o *ledger.Operation) { o.RunID, o.Step = "run-7", "pay" })
	}
	together(len(ids), func(i int) {
		r, err := b.s.Submit(b.ctx, drafts[i])
		if err != nil {
			t.Error(err)
			return
		}
		states[i] = r.Operation.OrderID
	})
	for i := range ids {
		if ids[i] != ids[0] || states[i] != states[0] || ids[i] == "" {
			t.Fatalf("%q, %q", ids, states)
		}
	}
	m := b.mark(b.claim(wire))
	b.settle(m, found(m.Operation, "pay_1"))
	b.want(ids[0], ledger.Confirmed, "")
	if c := b.claims("w2", "bank"); len(c) != 0 {
		t.Error("there is more to send")
	}
}

package store_test

import (
	"errors"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// held is an operation that was sent, got no answer, and waits for a person.
func (b *bench) held(id string) ledger.Operation {
	b.t.Helper()
	b.settle(b.sent(id, letter), silence)
	return b.want(id, ledger.UnknownHold, ledger.Inconclusive)
}

// meant says that the amount really is another than was approved.
func meant(d *store.Decision) { d.Differs = true }

func withReceipt(id string, amount int64) func(*store.Decision) {
	return func(d *store.Decision) { d.ReceiptID, d.Amount = id, &amount }
}

func TestItDidNotHappenIsSaidOnlyWhenQuiet(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	o := b.held("op")
	for _, at := range []int64{b.clock.ms.Load(), o.LastSendBy, o.QuietFrom - 1} {
		b.clock.ms.Store(at)
		b.wantErr(b.decide(b.s.DidNotHappen, fin, "op"), ledger.ErrNotAllowed)
		b.wantErr(b.decide(b.s.SendAgain, fin, "op"), ledger.ErrNotAllowed)
	}
	b.clock.ms.Store(o.QuietFrom)
	b.wantErr(b.decide(b.s.DidNotHappen, fin, "op", func(d *store.Decision) { d.Reason = "" }), store.ErrForbidden)
	b.ok(b.decide(b.s.DidNotHappen, fin, "op"))
	b.want("op", ledger.Rejected, ledger.NotExecuted)
}

func TestItHappened(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	b.held("op")
	b.wantErr(b.decide(b.s.Happened, fin, "op"), store.ErrForbidden) // no id
	b.wantErr(b.decide(b.s.Happened, fin, "op", func(d *store.Decision) { d.ReceiptID = "pay_1" }), store.ErrForbidden)
	b.ok(b.decide(b.s.Happened, fin, "op", withReceipt("pay_1", 4800)))
	if o := b.want("op", ledger.Confirmed, ""); o.Receipt.ID != "pay_1" || *o.Receipt.Amount != 4800 {
		t.Errorf("%+v", o.Receipt)
	}
	b.wantOwed()

	b.held("op2")
	for name, slip := range map[string]int64{"another amount": 5000, "nothing": 0, "less than nothing": -1, "more than a reader of JSON takes": 1 << 53} {
		if err := b.decide(b.s.Happened, fin, "op2", withReceipt("pay_2", slip)); !errors.Is(err, store.ErrForbidden) {
			t.Errorf("%s was taken without being meant: %v", name, err)
		}
	}
	b.wantErr(b.decide(b.s.Happened, fin, "op2", withReceipt("pay_1", 4800)), store.ErrForbidden) // the proof of another purchase
	b.ok(b.decide(b.s.Happened, fin, "op2", withReceipt("pay_2", 5000), meant))
	b.want("op2", ledger.Confirmed, "")
	b.wantOwed("pay_2 overcharge 200")
}

func TestItHappenedTwice(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	b.held("op")
	b.wantErr(b.decide(b.s.HappenedTwice, fin, "op", func(d *store.Decision) { d.ReceiptID, d.SecondReceiptID = "pay_1", "pay_1" }), store.ErrForbidden)
	b.wantErr(b.decide(b.s.HappenedTwice, fin, "op", func(d *store.Decision) { d.SecondReceiptID = "pay_1" }), store.ErrForbidden)
	b.wantErr(b.decide(b.s.HappenedTwice, fin, "op", func(d *store.Decision) { d.ReceiptID, d.SecondReceiptID = "pay_1", "PAY_1" }), store.ErrForbidden)
	b.held("other")
	b.ok(b.decide(b.s.HappenedTwice, fin, "other", func(d *store.Decision) { d.ReceiptID, d.SecondReceiptID = "pay_7", "pay_8" }))
	b.wantErr(b.decide(b.s.HappenedTwice, fin, "op", func(d *store.Decision) { d.ReceiptID, d.SecondReceiptID = "PAY_7", "pay_2" }), store.ErrForbidden)
	b.wantErr(b.decide(b.s.Happened, fin, "op", withReceipt("pay_8", 4800)), store.ErrForbidden) // the one too many of the other
	b.ok(b.decide(b.s.HappenedTwice, fin, "op", func(d *store.Decision) { d.ReceiptID, d.SecondReceiptID = "pay_1", "pay_2" }))
	if o := b.want("op", ledger.Confirmed, ""); o.Receipt.ID != "pay_1" {
		t.Errorf("%+v", o.Receipt)
	}
	b.wantOwed("pay_8 duplicate_charge 4800", "pay_2 duplicate_charge 4800")
}

func TestOneReleaseIsOneSend(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	o := b.held("op")
	b.clock.ms.Store(o.QuietFrom)
	b.ok(b.decide(b.s.SendAgain, fin, "op"))
	if o := b.want("op", ledger.Ready, ""); o.OpenAttempts != 1 || !o.Released {
		t.Errorf("%d unresolved, released %v", o.OpenAttempts, o.Released)
	}
	if _, err := b.s.Cancel(b.ctx, tenant, "op", agent); err == nil {
		t.Error("cancelled while an attempt is unresolved")
	}
	m := b.mark(b.claim(letter))
	if m.Attempt.Number != 2 || m.Attempt.ProviderKey != o.ProviderKey {
		t.Errorf("%+v", m.Attempt)
	}
	b.settle(m, notSent) // and the first one is still unresolved
	if o := b.want("op", ledger.UnknownHold, ledger.Inconclusive); o.OpenAttempts != 1 {
		t.Errorf("%d unresolved", o.OpenAttempts)
	}
	b.clock.move(100 * time.Hour)
	b.sweep()
	if c := b.claims("w1", "post"); len(c) != 0 {
		t.Error("sent a third time")
	}
}

func TestAReleasedSendFindsTimeToLook(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	b.lost("op", wire)
	b.clock.move(2 * time.Hour)
	b.look("op", ledger.LookAbsent)
	b.want("op", ledger.UnknownHold, ledger.Inconclusive)
	b.ok(b.decide(b.s.SendAgain, fin, "op"))
	m := b.mark(b.claim(wire))
	b.settle(m, silence)
	b.want("op", ledger.Unknown, "") // and not held before anybody looked
	b.look("op", ledger.LookFound, receipt(m.Operation, "pay_1"))
	b.want("op", ledger.Confirmed, "")
}

func TestAReleaseDoesNotLeadElsewhere(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	o := b.held("op")
	b.clock.ms.Store(o.QuietFrom)
	b.ok(b.decide(b.s.SendAgain, fin, "op"))
	b.changeRail(letter, func(r *ledger.Rail) { r.Address = "https://other.example" })
	b.wantUnmarked(b.claim(letter))
	b.want("op", ledger.UnknownHold, ledger.KeyExpired)
}

func TestAReleaseNeedsFourEyes(t *testing.T) {
	b := newBench(t)
	owner := b.person("olga", "finance")
	b.person("ann", "approver")
	o := b.held("op")
	b.clock.ms.Store(o.QuietFrom)
	b.wantErr(b.decide(b.s.SendAgain, owner, "op"), store.ErrForbidden)
	b.ok(b.decide(b.s.DidNotHappen, owner, "op"))
}

func TestStillUnknownIsLookedAtAgain(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	o := b.lost("op", wire)
	b.clock.move(2 * time.Hour)
	b.look("op", ledger.LookAbsent)
	b.want("op", ledger.UnknownHold, ledger.Inconclusive)
	b.ok(b.decide(b.s.StillUnknown, fin, "op"))
	b.want("op", ledger.Unknown, "")
	b.ok(b.decide(b.s.LookAgain, fin, "op"))
	if got := b.due(); len(got) != 1 {
		t.Errorf("due: %v", got)
	}
	b.look("op", ledger.LookFound, receipt(o, "pay_1"))
	b.want("op", ledger.Confirmed, "")

	b.held("nobody_to_ask")
	b.ok(b.decide(b.s.StillUnknown, fin, "nobody_to_ask"))
	b.want("nobody_to_ask", ledger.UnknownHold, ledger.Inconclusive)
}

func TestOnlyAPersonClearsAMismatch(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	m := b.sent("op", wire)
	r := wrong(m.Operation, "pay_1")
	b.settle(m, ledger.Answer{Finding: ledger.Found, Receipt: &r})
	b.want("op", ledger.UnknownHold, ledger.ReceiptMismatch)
	b.look("op", ledger.LookFound, receipt(m.Operation, "pay_2"))
	b.settle(m, found(m.Operation, "pay_2"))
	b.want("op", ledger.UnknownHold, ledger.ReceiptMismatch)
	b.clock.ms.Add(time.Hour.Milliseconds())
	b.wantErr(b.decide(b.s.DidNotHappen, fin, "op"), ledger.ErrNotAllowed) // its receipt is on record
	b.wantErr(b.decide(b.s.SendAgain, fin, "op"), ledger.ErrNotAllowed)
	b.ok(b.decide(b.s.Happened, fin, "op", withReceipt("pay_1", 4801), meant))
	b.want("op", ledger.Confirmed, "")
	b.wantOwed("pay_1 overcharge 1")
}

func TestSamePurchaseFollowsTheChain(t *testing.T) {
	b := newBench(t)
	ann := b.person("ann", "approver")
	same := map[string]any{"reference": "invoice-481"}
	b.submit("first", charge, same)
	b.submit("second", charge, same)
	b.submit("third", charge, same)
	b.wantErr(b.decide(b.s.SamePurchase, ann, "third", func(d *store.Decision) { d.Original = "elsewhere" }), store.ErrForbidden)
	b.wantErr(b.decide(b.s.SamePurchase, ann, "third", func(d *store.Decision) { d.Original = "third" }), store.ErrForbidden)
	b.ok(b.decide(b.s.SamePurchase, ann, "second"))
	b.ok(b.decide(b.s.SamePurchase, ann, "third", func(d *store.Decision) { d.Original = "second" }))
	for _, id := range []string{"second", "third"} {
		o := b.want(id, ledger.Rejected, ledger.Duplicate)
		if original, err := b.s.Original(b.ctx, o); err != nil || original == nil || original.OperationID != "first" {
			t.Errorf("%s stands for %v: %v", id, original, err)
		}
	}
	m := b.mark(b.claim(charge))
	b.settle(m, found(m.Operation, "pay_1"))
	// What overlaps an alias overlaps its original.
	b.submit("fourth", charge, map[string]any{"reference": "invoice-481", "amount": 1})
	if o := b.want("fourth", ledger.UnknownHold, ledger.SameReference); o.Overlaps[0].OperationID != "first" {
		t.Errorf("%v", o.Overlaps)
	}
}

func TestDifferentPurchaseIsJudgedAfresh(t *testing.T) {
	b := newBench(t)
	ann := b.person("ann", "approver")
	b.submit("first", charge, map[string]any{"reference": "r", "recipient": "acct_ask"})
	b.submit("allowed", charge, map[string]any{"reference": "r"})
	b.submit("asked", charge, map[string]any{"reference": "r", "recipient": "acct_ask"})
	b.wantErr(b.decide(b.s.DifferentPurchase, ann, "allowed", func(d *store.Decision) { d.Reason = "" }), store.ErrForbidden)
	b.ok(b.decide(b.s.DifferentPurchase, ann, "allowed"))
	b.want("allowed", ledger.Ready, "")
	b.ok(b.decide(b.s.DifferentPurchase, ann, "asked"))
	b.want("asked", ledger.AwaitingApproval, "")
	b.submit("no", charge, map[string]any{"reference": "r", "amount": 7})
	b.ok(b.decide(b.s.Reject, ann, "no"))
	b.want("no", ledger.Rejected, ledger.Denied)
	b.mark(b.claim(charge))
}

func TestAHoldAfterASendIsNoHoldBeforeOne(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	b.held("op")
	b.wantErr(b.decide(b.s.DifferentPurchase, fin, "op"), ledger.ErrNotAllowed)
	b.wantErr(b.decide(b.s.Reject, fin, "op"), ledger.ErrNotAllowed)
	if _, err := b.s.Cancel(b.ctx, tenant, "op", agent); err == nil {
		t.Error("cancelled after a send")
	}
	b.submit("before", charge, map[string]any{"reference": "r"})
	b.submit("held", charge, map[string]any{"reference": "r"})
	b.clock.move(1000 * time.Hour)
	for name, f := range map[string]deciding{"happened": b.s.Happened, "did not": b.s.DidNotHappen, "again": b.s.SendAgain, "still": b.s.StillUnknown} {
		if err := b.decide(f, fin, "held", withReceipt("pay_1", 4800)); err == nil {
			t.Errorf("%s was said of what was never sent", name)
		}
	}
	if _, err := b.s.Cancel(b.ctx, tenant, "held", agent); err != nil {
		t.Error(err)
	}
	if _, err := b.s.Cancel(b.ctx, tenant, "held", agent); err != nil {
		t.Errorf("a second time: %v", err)
	}
	b.want("held", ledger.Rejected, ledger.Cancelled)
}

func TestStillUnknownSendsNothing(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	b.settle(b.sent("op", charge), ledger.Answer{Sentence: "No answer."}) // a rail that deduplicates and can be asked
	b.clock.ms.Add(2 * time.Hour.Milliseconds())
	b.look("op", ledger.LookAbsent)
	b.want("op", ledger.UnknownHold, b.get("op").Reason)
	b.ok(b.decide(b.s.StillUnknown, fin, "op"))
	for range 5 {
		b.look("op", ledger.LookAbsent)
		b.clock.ms.Add(time.Minute.Milliseconds())
		if o := b.get("op"); o.NextSendAt != 0 || len(b.claims("w", o.Rail)) != 0 {
			t.Fatalf("%s: it would be sent again", o.Status)
		}
	}
	b.clock.ms.Add(2 * time.Hour.Milliseconds())
	b.look("op", ledger.LookAbsent)
	b.want("op", ledger.UnknownHold, b.get("op").Reason)
	b.ok(b.decide(b.s.SendAgain, fin, "op"))
	if o := b.get("op"); o.LookOnly || len(b.claims("w", o.Rail)) != 1 {
		t.Error("a released one is not sent")
	}
}

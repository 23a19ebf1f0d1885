package store_test

import (
	"errors"
	"testing"

	"holdfast/store"
	"holdfast/store/ledger"
)

// twice is a sale that went through twice: the entry about the second charge.
func (b *bench) twice(id string, amount int64) ledger.RefundOwed {
	b.t.Helper()
	b.submit(id, sale, map[string]any{"amount": amount, "customer": "c_91"})
	m := b.markOf(id, "card")
	b.settle(m, silence)
	b.look(id, ledger.LookFound, receipt(m.Operation, "ch-"+id), receipt(m.Operation, "ch2-"+id))
	for _, e := range b.owed() {
		if e.ReceiptID == "ch2-"+id {
			return e
		}
	}
	b.t.Fatalf("nothing is owed for %s", id)
	return ledger.RefundOwed{}
}

// giveBack settles a part of an entry as it stands now, and returns the operation
// that is to pay it.
func (b *bench) giveBack(p ledger.PersonRecord, entry string, amount int64, change ...func(*store.RefundDecision, *store.GiveBack)) (ledger.Operation, error) {
	b.t.Helper()
	d, g := b.refundDecision(p, entry), store.GiveBack{Amount: amount}
	for _, c := range change {
		c(&d, &g)
	}
	plan, _ := b.s.PlanRefund(b.ctx, tenant, entry, g)
	if _, err := b.s.SettleByRefund(b.ctx, tenant, entry, d, g); err != nil {
		return ledger.Operation{}, err
	}
	return b.get(plan.OperationID), nil
}

// overBank gives back over another rail than the money came in by.
func overBank(_ *store.RefundDecision, g *store.GiveBack) { g.Rail = "bank" }

// asking lets no refund go without somebody in finance or an approver.
func asking(t testing.TB) func(*ledger.Rulebook) {
	return func(r *ledger.Rulebook) {
		r.Policy = policy(t, ledger.PolicyRow{Name: "refunds", When: ledger.When{Effect: []string{"refund", "payout"}}, Then: "ask"},
			ledger.PolicyRow{Name: "rest", Then: "allow"})
	}
}

func TestAnEntryIsSettledByAnOperationThatAnotherPersonApproves(t *testing.T) {
	b := newBench(t, shop(t), asking(t))
	fin, ana := b.person("fin", "finance"), b.person("ana", "approver")
	e := b.twice("op", 1000)
	o, err := b.giveBack(fin, e.ID, 1000)
	b.ok(err)
	if o.Status != ledger.AwaitingApproval || o.OperationID != "refund-"+e.ID+"-1" || !o.InPerson() || o.Terms.RefundOf != "ch2-op" {
		t.Fatalf("%+v", o)
	}
	b.wantRefund(e.ID, ledger.RefundIsSettling, 1000, 0, 0)
	b.wantErr(b.decide(b.s.Approve, fin, o.OperationID), store.ErrForbidden)
	b.ok(b.decide(b.s.Approve, ana, o.OperationID))
	b.reopen()
	m := b.markOf(o.OperationID, "card")
	b.settle(m, silence)
	b.wantRefund(e.ID, ledger.RefundIsSettling, 1000, 0, 0)
	if _, err := b.giveBack(fin, e.ID, 1000); !errors.Is(err, ledger.ErrNoRefund) {
		t.Errorf("a second settlement while the first one's outcome is unknown: %v", err)
	}
	b.reopen()
	b.look(o.OperationID, ledger.LookFound, receipt(m.Operation, "re_1"))
	b.wantRefund(e.ID, ledger.RefundIsSettled, 0, 1000, 0)
	b.wantLeft("ch2-op", 0)
	b.wantLeft("ch-op", 1000) // the charge that was meant is another one
}

func TestAButtonPressedTwiceMakesOneRefund(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	e := b.twice("op", 1000)
	b.ok(errOf(b.giveBack(fin, e.ID, 300)))
	stale := func(d *store.RefundDecision, _ *store.GiveBack) { d.Version = e.Version }
	if _, err := b.giveBack(fin, e.ID, 300, stale); !errors.Is(err, store.ErrStale) {
		t.Errorf("pressed again: %v", err)
	}
	b.settle(b.markOf("refund-"+e.ID+"-1", "card"), refused)
	if _, err := b.giveBack(fin, e.ID, 300, stale); !errors.Is(err, store.ErrStale) {
		t.Errorf("pressed again after it fell: %v", err)
	}
}

// Two parts of one entry over the same amount are two refunds: each has its own
// reference, and neither is taken for a repeat of the other.
func TestPartsOfAnEntryAreNotTakenForOneAnother(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	e := b.twice("op", 1000)
	for i, open := range []int64{700, 400, 100} {
		o, err := b.giveBack(fin, e.ID, 300)
		b.ok(err)
		if o.Status != ledger.Ready {
			t.Fatalf("part %d is %s %s: %s", i+1, o.Status, o.Reason, o.Detail)
		}
		m := b.markOf(o.OperationID, "card")
		b.settle(m, found(m.Operation, "re_"+o.OperationID))
		b.wantRefund(e.ID, ledger.RefundIsOwed, open, 1000-open, 0)
	}
	if _, err := b.giveBack(fin, e.ID, 101); !errors.Is(err, ledger.ErrNoRefund) {
		t.Errorf("more than is owed: %v", err)
	}
	b.ok(errOf(b.giveBack(fin, e.ID, 100)))
}

// The provider has no money to give back: it is owed as before.
func TestCase100ARefusedRefundLeavesTheEntryOpen(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	e := b.twice("op", 1000)
	for i := range 2 {
		o, err := b.giveBack(fin, e.ID, 1000)
		b.ok(err)
		b.settle(b.markOf(o.OperationID, "card"), refused)
		b.want(o.OperationID, ledger.Rejected, ledger.Declined)
		after := b.wantRefund(e.ID, ledger.RefundIsOwed, 1000, 0, 0)
		if after.DueAt != e.DueAt {
			t.Error("it is due another day")
		}
		if n := len(b.owed()); n != 1 {
			t.Errorf("after %d refusals %d entries are listed", i+1, n)
		}
	}
	o, err := b.giveBack(fin, e.ID, 1000)
	b.ok(err)
	m := b.markOf(o.OperationID, "card")
	b.settle(m, found(m.Operation, "re_3"))
	b.wantRefund(e.ID, ledger.RefundIsSettled, 0, 1000, 0)
}

func TestPolicysNoLeavesTheEntryOwed(t *testing.T) {
	b := newBench(t, shop(t), func(r *ledger.Rulebook) {
		r.Policy = policy(t, ledger.PolicyRow{Name: "none back", When: ledger.When{Effect: []string{"refund"}}, Then: "deny"}, ledger.PolicyRow{Name: "rest", Then: "allow"})
	})
	fin := b.person("fin", "finance")
	e := b.twice("op", 1000)
	o, err := b.giveBack(fin, e.ID, 1000)
	b.ok(err)
	b.want(o.OperationID, ledger.Rejected, ledger.PolicyDenied)
	b.wantRefund(e.ID, ledger.RefundIsOwed, 1000, 0, 0)
}

// What an agent gave back of the second charge, a person does not give back
// again; and the other way round.
func TestAnAgentsRefundAndAPersonsCountTogether(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	e := b.twice("op", 1000)
	b.ok(errOf(b.refund("R1", "ch2-op", 800)))
	var exceeds store.RefundExceeds
	if _, err := b.giveBack(fin, e.ID, 300); !errors.As(err, &exceeds) || exceeds.Left != 200 {
		t.Errorf("beside the agent's: %v", err)
	}
	if _, err := b.giveBack(fin, e.ID, 300, overBank); !errors.As(err, &exceeds) || exceeds.Left != 200 {
		t.Errorf("over another rail: %v", err)
	}
	b.wantRefund(e.ID, ledger.RefundIsOwed, 1000, 0, 0)
	b.ok(errOf(b.giveBack(fin, e.ID, 200)))
	if _, err := b.refund("R2", "ch2-op", 1); err == nil {
		t.Error("an agent gave back what a person had given back")
	}
}

// Over another rail the refund does not name the charge, and counts all the same.
func TestWhatGoesBackOverAnotherRailCounts(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	e := b.twice("op", 1000)
	o, err := b.giveBack(fin, e.ID, 600, overBank)
	b.ok(err)
	if o.Rail != "bank" || o.ActionType != payout || o.Terms.Recipient != "c_91" || o.Terms.RefundOf != "" {
		t.Fatalf("%+v", o)
	}
	b.wantLeft("ch2-op", 400)
	m := b.markOf(o.OperationID, "bank")
	b.settle(m, found(m.Operation, "tr_1"))
	b.wantRefund(e.ID, ledger.RefundIsOwed, 400, 600, 0)
	b.wantLeft("ch2-op", 400)
	b.settle(b.markOf(func() string {
		o, err := b.giveBack(fin, e.ID, 400, overBank)
		b.ok(err)
		return o.OperationID
	}(), "bank"), refused)
	b.wantLeft("ch2-op", 400)
}

func TestOnlyWhoMaySettlesAndWhatTheySee(t *testing.T) {
	b := newBench(t, shop(t))
	e := b.twice("op", 1000)
	b.wantErr(errOf(b.giveBack(b.person("vic", "viewer"), e.ID, 1000)), store.ErrForbidden)
	stranger := b.person("fin", "finance")
	stranger.TenantID = "other"
	b.wantErr(errOf(b.giveBack(stranger, e.ID, 1000)), store.ErrNotFound)
	b.wantRefund(e.ID, ledger.RefundIsOwed, 1000, 0, 0)
}

// An agent cannot keep an entry from being settled by taking the refund's name.
func TestATakenNameDoesNotStopASettlement(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	e := b.twice("op", 1000)
	b.submit("refund-"+e.ID+"-1", memo, nil)
	o, err := b.giveBack(fin, e.ID, 1000)
	b.ok(err)
	if o.OperationID != "refund-"+e.ID+"-2" {
		t.Error(o.OperationID)
	}
}

// Money that went back outside is known by its proof, and leaves less to give
// back. Bounced, it leaves as much as before.
func TestCase094WhatWasGivenBackOutsideCounts(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	b.sold("op", 1000)
	e, _, err := b.report("op", 300, func(r *store.RefundReport) { r.ReceiptID = "ch-op" })
	b.ok(err)
	b.ok(b.prove(fin, e.ID, "re_outside", 300))
	b.wantLeft("ch-op", 700)
	if _, err := b.refund("R1", "ch-op", 800); err == nil {
		t.Error("800 of 1000 passed, and 300 were given back outside")
	}
	b.ok(errOf(b.refund("R1", "ch-op", 700)))
	b.ok(errOf(b.s.Cancel(b.ctx, tenant, "R1", agent)))
	all, err := b.s.RefundSettlements(b.ctx, tenant, e.ID)
	b.ok(err)
	b.ok(errOf(b.s.BounceRefund(b.ctx, tenant, all[0].ID, "the account is closed", root)))
	b.wantLeft("ch-op", 1000)
}

// A dispute that was lost returned the money: recorded by its proof, it counts
// as any refund does. The other way round, it is owed to us.
func TestCase091ALostDisputeCountsAsMoneyReturned(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	b.sold("op", 1000)
	e, _, err := b.report("op", 1000, func(r *store.RefundReport) { r.ReceiptID, r.Reason = "ch-op", "dispute du_1 was lost" })
	b.ok(err)
	b.ok(b.prove(fin, e.ID, "du_1", 1000))
	for id, amount := range map[string]int64{"whole": 1000, "tax": 200} {
		if _, err := b.refund(id, "ch-op", amount); err == nil {
			t.Errorf("a refund of %d after the dispute was lost", amount)
		}
	}
}

// A refund of ours that bounced has come back, and may be made once more.
func TestABouncedRefundMayBeMadeAgain(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	e := b.twice("op", 1000)
	o, err := b.giveBack(fin, e.ID, 1000)
	b.ok(err)
	m := b.markOf(o.OperationID, "card")
	b.settle(m, found(m.Operation, "re_1"))
	b.wantLeft("ch2-op", 0)
	all, err := b.s.RefundSettlements(b.ctx, tenant, e.ID)
	b.ok(err)
	b.ok(errOf(b.s.BounceRefund(b.ctx, tenant, all[0].ID, "the card is closed", root)))
	b.wantLeft("ch2-op", 1000)
	b.ok(errOf(b.giveBack(fin, e.ID, 1000)))
}

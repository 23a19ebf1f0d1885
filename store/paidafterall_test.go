package store_test

import (
	"strings"
	"testing"

	"holdfast/store/ledger"
)

// fell is an entry whose refund was sent and refused.
func (b *bench) fell(fin ledger.PersonRecord, amount int64) (e ledger.RefundOwed, refund ledger.Operation) {
	b.t.Helper()
	e = b.twice("op", 1000)
	o, err := b.giveBack(fin, e.ID, amount)
	b.ok(err)
	m := b.markOf(o.OperationID, "card")
	b.settle(m, refused)
	b.wantRefund(e.ID, ledger.RefundIsOwed, 1000, 0, 0)
	return e, m.Operation
}

// The refund was refused and paid all the same: it is not owed once more, and
// nothing is owed to us.
func TestARefusedRefundThatPaidAfterAllSettlesItsEntry(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	e, o := b.fell(fin, 1000)
	for range 2 {
		b.recheck(o.OperationID, ledger.LookFound, receipt(o, "re_late"))
		b.reopen()
		after := b.wantRefund(e.ID, ledger.RefundIsSettled, 0, 1000, 0)
		if after.DueAt != e.DueAt {
			t.Error("it is due another day")
		}
	}
	if n := len(b.owed()); n != 1 {
		t.Errorf("%d entries", n)
	}
	all, err := b.s.RefundSettlements(b.ctx, tenant, e.ID)
	b.ok(err)
	proofs := 0
	for _, s := range all {
		if s.Proof == "re_late" && strings.Contains(s.Reason, o.OperationID+" was rejected and happened after all") {
			proofs++
		}
	}
	if len(all) != 2 || proofs != 1 {
		t.Errorf("%+v", all)
	}
	b.wantLeft("ch2-op", 0)
}

func TestWhatALateRefundPaysBeyondTheEntryIsOwedToUs(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	e, o := b.fell(fin, 1000)
	b.ok(b.prove(fin, e.ID, "re_hand", 700)) // meanwhile, elsewhere
	b.recheck(o.OperationID, ledger.LookFound, receipt(o, "re_late"))
	b.wantRefund(e.ID, ledger.RefundIsSettled, 0, 1000, 0)
	over := b.owed()[1]
	if over.Direction != ledger.OwedToUs || over.Amount != 700 || over.ReceiptID != "re_late" {
		t.Errorf("%+v", over)
	}
	b.recheck(o.OperationID, ledger.LookFound, receipt(o, "re_late"))
	if n := len(b.owed()); n != 2 {
		t.Errorf("%d entries", n)
	}
}

// A second refund is under way when the first one turns up. Whatever becomes of
// the second, the money is owed by one side at most.
func TestALateRefundBesideAnotherOneCountsOnceThatOneFell(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	e, o := b.fell(fin, 1000)
	second, err := b.giveBack(fin, e.ID, 1000)
	b.ok(err)
	m := b.markOf(second.OperationID, "card")
	b.recheck(o.OperationID, ledger.LookFound, receipt(o, "re_late"))
	b.wantRefund(e.ID, ledger.RefundIsSettling, 1000, 0, 0)
	toUs := b.owed()[1]
	b.wantRefund(toUs.ID, ledger.RefundIsOwed, 1000, 0, 0)
	b.settle(m, refused)
	b.wantRefund(e.ID, ledger.RefundIsSettled, 0, 1000, 0)
	b.wantRefund(toUs.ID, ledger.RefundIsSettled, 0, 1000, 0)
}

func TestALateRefundBesideAnotherOneThatPaidIsOwedToUs(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	e, o := b.fell(fin, 1000)
	second, err := b.giveBack(fin, e.ID, 1000)
	b.ok(err)
	m := b.markOf(second.OperationID, "card")
	b.recheck(o.OperationID, ledger.LookFound, receipt(o, "re_late"))
	b.settle(m, found(m.Operation, "re_2"))
	b.wantRefund(e.ID, ledger.RefundIsSettled, 0, 1000, 0)
	b.wantRefund(b.owed()[1].ID, ledger.RefundIsOwed, 1000, 0, 0)
}

// The answer itself comes late, after the refusal.
func TestALateAnswerThatItPaidSettlesTheEntryToo(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	e := b.twice("op", 1000)
	o, err := b.giveBack(fin, e.ID, 1000)
	b.ok(err)
	m := b.markOf(o.OperationID, "card")
	b.settle(m, refused)
	b.settle(m, found(m.Operation, "re_late"))
	b.want(o.OperationID, ledger.Rejected, ledger.Declined)
	b.wantRefund(e.ID, ledger.RefundIsSettled, 0, 1000, 0)
}

package store_test

import (
	"testing"

	"holdfast/store"
	"holdfast/store/ledger"
)

// owe opens an entry: a wire that was recorded as happened twice.
func (b *bench) owe(id string, amount int64) ledger.RefundOwed {
	b.t.Helper()
	m := b.sent(id, wire)
	r := receipt(m.Operation, "pay-"+id)
	b.settle(m, ledger.Answer{Finding: ledger.Found, Receipt: &r})
	second := receipt(m.Operation, "twice-"+id)
	second.Amount = &amount
	b.look(id, ledger.LookFound, r, second)
	for _, e := range b.owed() {
		if e.ReceiptID == "twice-"+id {
			return e
		}
	}
	b.t.Fatalf("nothing is owed for %s", id)
	return ledger.RefundOwed{}
}

// begin settles a part of an entry by an operation that has just been sent.
func (b *bench) begin(e ledger.RefundOwed, operation string, amount int64) store.Marked {
	b.t.Helper()
	m := b.sent(operation, wire)
	_, err := b.s.BeginSettlement(b.ctx, tenant, e.ID, operation, amount, root)
	b.ok(err)
	return m
}

func (b *bench) wantRefund(id string, status ledger.RefundStatus, open, settled, waived int64) ledger.RefundOwed {
	b.t.Helper()
	e, err := b.s.RefundOwed(b.ctx, tenant, id)
	b.ok(err)
	if e.Status != status || e.Open != open || e.Settled != settled || e.Waived != waived || e.Settled+e.Waived+e.Open != e.Amount {
		b.t.Fatalf("%s: %d open, %d settled, %d waived of %d; want %s: %d, %d, %d", e.Status, e.Open, e.Settled, e.Waived, e.Amount, status, open, settled, waived)
	}
	return e
}

func TestASettlementFollowsItsOperation(t *testing.T) {
	b := newBench(t)
	e := b.owe("op", 4800)
	first := b.begin(e, "back-1", 1800)
	b.wantRefund(e.ID, ledger.RefundIsSettling, 4800, 0, 0)

	b.settle(first, silence)
	b.wantRefund(e.ID, ledger.RefundIsSettling, 4800, 0, 0) // unknown is neither
	b.submit("other", wire, nil)
	if _, err := b.s.BeginSettlement(b.ctx, tenant, e.ID, "other", 100, root); err == nil {
		t.Error("a second operation began while the first one's outcome is unknown")
	}

	b.look("back-1", ledger.LookFound, receipt(first.Operation, "re_1"))
	after := b.wantRefund(e.ID, ledger.RefundIsOwed, 3000, 1800, 0)
	if after.DueAt != e.DueAt {
		t.Errorf("due at %d, and was %d", after.DueAt, e.DueAt)
	}

	b.ok(errOf(b.s.Cancel(b.ctx, tenant, "other", agent)))
	b.settle(b.begin(e, "back-2", 3000), refused)
	b.wantRefund(e.ID, ledger.RefundIsOwed, 3000, 1800, 0)

	m := b.begin(e, "back-3", 3000)
	b.settle(m, found(m.Operation, "re_3"))
	b.wantRefund(e.ID, ledger.RefundIsSettled, 0, 4800, 0)
}

func TestASettlementIsNeverOverWhatIsOwed(t *testing.T) {
	b := newBench(t)
	e := b.owe("op", 4800)
	b.submit("back", wire, nil)
	for _, amount := range []int64{4801, 0, -1} {
		if _, err := b.s.BeginSettlement(b.ctx, tenant, e.ID, "back", amount, root); err == nil {
			t.Errorf("%d was taken", amount)
		}
	}
	b.wantRefund(e.ID, ledger.RefundIsOwed, 4800, 0, 0)
}

func TestASettlementOfWhatWasRejectedAtOnceFalls(t *testing.T) {
	b := newBench(t)
	e := b.owe("op", 4800)
	b.submit("back", wire, to("acct_bad"))
	after, err := b.s.BeginSettlement(b.ctx, tenant, e.ID, "back", 4800, root)
	b.ok(err)
	if after.Status != ledger.RefundIsOwed || after.Free() != 4800 {
		t.Errorf("%+v", after)
	}
}

func errOf[T any](_ T, err error) error { return err }

package store

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"holdfast/store/ledger"
)

// settler is who the log names for what the program settles by itself.
var settler = ledger.Holder{Kind: ledger.Reconciler, Name: "refunds"}

// paidAfterAll settles an entry by the effect of an operation that was to pay it,
// was rejected and happened all the same: otherwise the money would be owed to us
// and by us at once. over is what the effect paid beyond what was open. Where
// nothing is open any more, or another operation is paying it, the effect is one
// too many, and is not settled here.
func (t *tx) paidAfterAll(o ledger.Operation, r ledger.Receipt) (settled bool, over int64, err error) {
	if o.Status != ledger.Rejected {
		return false, 0, nil
	}
	s, err := scanSettlement(t.row(`
		select `+settlementColumns+` from refund_settlements
		where tenant_id = $1 and operation_id = $2 and kind = 'operation' and state = 'fell'`, o.TenantID, o.OperationID))
	if errors.Is(err, ErrNotFound) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	r.ID = cmp.Or(r.ID, o.OrderID)
	used, err := t.proofUsed(o.TenantID, o.Rail, r.ID)
	if err != nil || used != "" {
		return used != "", 0, err // found again, or recorded by hand
	}
	e, err := t.refund(s.TenantID, s.Entry)
	if err != nil {
		return false, 0, err
	}
	paid := s.Amount
	if r.Amount != nil {
		paid = *r.Amount
	}
	part := min(paid, e.Free())
	if part <= 0 || !strings.EqualFold(cmp.Or(r.Currency, s.Currency), e.Currency) {
		return false, 0, nil
	}
	_, err = t.settleBy(e, ledger.RefundSettlement{Proof: r.ID, Rail: o.Rail, Amount: part},
		fmt.Sprintf("%s was rejected and happened after all: %s paid %s of it.", o.OperationID, r.ID, t.s.Rulebook(e.TenantID).Currencies.Format(part, e.Currency)))
	return true, paid - part, err
}

// settleBy settles a part of an entry by a proof that the program found.
func (t *tx) settleBy(e ledger.RefundOwed, s ledger.RefundSettlement, sentence string) (ledger.RefundOwed, error) {
	s.ID, s.TenantID, s.Entry, s.Kind, s.Checked, s.Currency = randomID("set_"), e.TenantID, e.ID, ledger.ByProof, true, e.Currency
	s.State, s.Reason, s.By, s.At, s.EndedAt = ledger.SettlementLanded, sentence, settler.Name, t.now, t.now
	e, err := t.refundHappens(e, refundChange{event: ledger.RefundProve, amount: s.Amount, by: settler, settlement: s.ID, reason: sentence, sentence: sentence,
		fact: map[string]any{"settlement": s.ID, "proof": s.Proof, "rail": s.Rail, "amount": s.Amount}})
	if err != nil {
		return e, err
	}
	return e, t.insertSettlement(s)
}

// settleByLate settles an entry by what an earlier operation of it had paid after all,
// once the one that kept it from counting has fallen: what was owed to us for it
// is not any more.
func (t *tx) settleByLate(e ledger.RefundOwed) error {
	rows, err := t.rows(`
		select `+refundColumns+` from refunds_owed
		where tenant_id = $1 and operation_id in (
				select operation_id from refund_settlements where tenant_id = $1 and entry = $2 and kind = 'operation' and state = 'fell')
		  and direction = 'owed_to_us' and cause = 'late_effect' and status = 'owed' and open = amount and currency = $3
		order by number`, e.TenantID, e.ID, e.Currency)
	if err != nil {
		return err
	}
	late, err := collect(rows, func(r *sql.Rows) (ledger.RefundOwed, error) { return scanRefund(r) })
	if err != nil {
		return err
	}
	for _, l := range late {
		used, err := t.proofUsed(l.TenantID, l.Rail, l.ReceiptID)
		if err != nil {
			return err
		}
		if used != "" || l.Amount > e.Free() {
			continue
		}
		if e, err = t.settleBy(e, ledger.RefundSettlement{Proof: l.ReceiptID, Rail: l.Rail, Amount: l.Amount},
			fmt.Sprintf("%s had paid %s of it after all, by %s.", l.OperationID, t.s.Rulebook(e.TenantID).Currencies.Format(l.Amount, e.Currency), l.ReceiptID)); err != nil {
			return err
		}
		if _, err := t.settleBy(l, ledger.RefundSettlement{Proof: l.ReceiptID + " for " + e.ID, Rail: l.Rail, Amount: l.Amount},
			fmt.Sprintf("%s pays %s, so it is not owed to us.", l.ReceiptID, e.ID)); err != nil {
			return err
		}
	}
	return nil
}

package store

import (
	"context"
	"errors"

	"holdfast/store/ledger"
)

// GiveBack is how much of an entry goes back now, and over which rail.
type GiveBack struct {
	Amount int64
	Rail   string // empty: the one that the money came in by
}

// SettleByRefund registers the refund of an entry and begins its settlement, in
// one change. What comes of it, the entry hears from the operation. The refund is
// an operation like any other, which the person asks for: policy and four eyes
// judge it.
func (s *Store) SettleByRefund(ctx context.Context, tenant, entry string, d RefundDecision, g GiveBack) (ledger.RefundOwed, error) {
	return s.decideRefund(ctx, tenant, entry, d, func(t *tx, e ledger.RefundOwed, by ledger.Holder) (ledger.RefundOwed, error) {
		plan, err := t.planRefund(e, g)
		if err != nil {
			return e, err
		}
		o, err := t.register(plan.Draft(tenant, d.Person.Email))
		if err != nil {
			return e, err
		}
		if err := t.keepTo(o, e.ReceiptID, e.Rail); err != nil {
			return e, err
		}
		return t.beginSettlement(e, o.OperationID, o.Rail, g.Amount, by, d.Reason)
	})
}

func (t *tx) planRefund(e ledger.RefundOwed, g GiveBack) (ledger.RefundPlan, error) {
	return planRefund(t.s.Rulebook(e.TenantID), e, g, func(id string) (ledger.Operation, error) { return t.operation(e.TenantID, id) })
}

// PlanRefund is what [Store.SettleByRefund] would register now. Nothing is
// changed by it, and nothing reserved.
func (s *Store) PlanRefund(ctx context.Context, tenant, entry string, g GiveBack) (ledger.RefundPlan, error) {
	e, err := s.RefundOwed(ctx, tenant, entry)
	if err != nil {
		return ledger.RefundPlan{}, err
	}
	return planRefund(s.Rulebook(tenant), e, g, func(id string) (ledger.Operation, error) { return s.Operation(ctx, tenant, id) })
}

// planRefund makes the next refund of an entry. Its number is the first whose
// name nobody took: an agent may have given its own operation that name.
func planRefund(rules *ledger.Rulebook, e ledger.RefundOwed, g GiveBack, read func(id string) (ledger.Operation, error)) (p ledger.RefundPlan, err error) {
	w := ledger.RefundWish{Entry: e, Amount: g.Amount, Rail: g.Rail, Number: 1}
	if e.OperationID != "" {
		if w.Original, err = read(e.OperationID); err != nil {
			return p, err
		}
	}
	for ; ; w.Number++ {
		if _, err = read(w.OperationID()); errors.Is(err, ErrNotFound) {
			return rules.PlanRefund(w)
		}
		if err != nil {
			return p, err
		}
	}
}

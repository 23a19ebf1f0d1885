package store

import (
	"context"
	"errors"
	"fmt"

	"holdfast/store/ledger"
)

// GiveBack is what a person who settles an entry through the gateway wants: how
// much of it goes back now, and over which rail.
type GiveBack struct {
	Person  ledger.PersonRecord
	Version int64 // of the entry that was on the screen
	Amount  int64
	Rail    string // empty: the one that the money came in by
	Reason  string
}

// SettleByRefund registers the refund of an entry and begins its settlement, in
// one change. What comes of it, the entry hears from the operation. The refund is
// an operation like any other, which the person asks for: policy and four eyes
// judge it.
func (s *Store) SettleByRefund(ctx context.Context, tenant, entry string, g GiveBack) (e ledger.RefundOwed, o ledger.Operation, err error) {
	err = s.change(ctx, func(t *tx) error {
		if e, err = t.refund(tenant, entry); err != nil {
			return err
		}
		if g.Person.TenantID != tenant {
			return ErrNotFound
		}
		if may, why := ledger.MayAct(g.Person.Email, g.Person.Roles); !may {
			return fmt.Errorf("%w: %s", ErrForbidden, why)
		}
		if e.Version != g.Version {
			return ErrStale
		}
		var plan ledger.RefundPlan
		if plan, err = t.planRefund(e, g); err != nil {
			return err
		}
		if o, err = t.register(plan.Draft(tenant, g.Person.Email)); err != nil {
			return err
		}
		if err := t.keepTo(o, e.ReceiptID, e.Rail); err != nil {
			return err
		}
		e, err = t.beginSettlement(e, o.OperationID, o.Rail, g.Amount, ledger.Holder{Kind: ledger.Person, Name: g.Person.Email}, g.Reason)
		return err
	})
	return e, o, err
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

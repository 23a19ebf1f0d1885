package web

import (
	"context"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// countedRefunds bounds how many refunds are read to add up those of one charge.
const countedRefunds = 5000

// fillRefund reads the charge that a refund returns, and what other refunds have
// returned of it.
func (s *Server) fillRefund(ctx context.Context, p ledger.PersonRecord, o ledger.Operation, page *views.OperationPage) error {
	if o.Terms.RefundOf == "" {
		return nil
	}
	r := views.RefundOf{ID: o.Terms.RefundOf}
	charge, err := s.chargeOf(ctx, o)
	if err != nil {
		return err
	}
	if charge != nil {
		r.Charge = new(s.veil(p, *charge))
		if r.Refunded, r.Capped, err = s.refunded(ctx, o, *charge); err != nil {
			return err
		}
	}
	page.RefundOf = &r
	if r.Beyond(o) && !o.Status.Final() {
		page.Flags = append(page.Flags, beyond(r))
	}
	return nil
}

func beyond(r views.RefundOf) string {
	if r.Charge == nil {
		return "The charge is not known here"
	}
	return "More than was charged"
}

// chargeOf finds the operation whose receipt a refund names; on the refund's own
// rail where several have one of that id. Nil: none is known here.
func (s *Server) chargeOf(ctx context.Context, o ledger.Operation) (charge *ledger.Operation, err error) {
	found, err := s.Store.Operations(ctx, o.TenantID, store.Filter{Search: o.Terms.RefundOf, Limit: listed})
	if err != nil {
		return nil, err
	}
	for _, x := range found.Items {
		if x.Receipt == nil || x.Receipt.ID != o.Terms.RefundOf || x.Effect == o.Effect {
			continue
		}
		if charge == nil || x.Rail == o.Rail && charge.Rail != o.Rail {
			charge = &x
		}
	}
	return charge, nil
}

// refunded adds up the other refunds of a charge that were confirmed or may
// still be. Refunds are younger than their charge, so reading ends there.
func (s *Server) refunded(ctx context.Context, o, charge ledger.Operation) (sum int64, capped bool, err error) {
	cursor := ""
	for range countedRefunds / listed {
		found, err := s.Store.Operations(ctx, o.TenantID, store.Filter{ActionType: o.ActionType, Cursor: cursor, Limit: listed})
		if err != nil {
			return 0, false, err
		}
		for _, x := range found.Items {
			if x.CreatedAt < charge.CreatedAt {
				return sum, false, nil
			}
			if x.OperationID == o.OperationID || x.Terms.RefundOf != o.Terms.RefundOf || x.Status == ledger.Rejected || x.Terms.Currency != o.Terms.Currency {
				continue
			}
			amount := x.Terms.Amount
			if x.Receipt != nil && x.Receipt.Amount != nil {
				amount = *x.Receipt.Amount
			}
			added, ok := ledger.AddAmounts(sum, amount)
			if !ok {
				return sum, true, nil
			}
			sum = added
		}
		if cursor = found.Next; cursor == "" {
			return sum, false, nil
		}
	}
	return sum, true, nil
}

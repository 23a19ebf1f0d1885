package web

import (
	"context"
	"errors"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// fillRefund reads the charge that a refund returns, and what other refunds have
// returned of it.
func (s *Server) fillRefund(ctx context.Context, p ledger.PersonRecord, o ledger.Operation, page *views.OperationPage) error {
	if o.Terms.RefundOf == "" {
		return nil
	}
	r := views.RefundOf{ID: o.Terms.RefundOf}
	charge, err := s.Store.ChargeOf(ctx, o)
	switch {
	case err == nil:
		r.Known = &charge
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	if charge.OperationID != "" {
		made, err := s.Store.Operation(ctx, o.TenantID, charge.OperationID)
		if err != nil {
			return err
		}
		r.Charge = new(s.veil(p, made))
	}
	page.RefundOf = &r
	if r.Beyond(o) && !o.Status.Final() {
		page.Flags = append(page.Flags, beyond(r))
	}
	return nil
}

func beyond(r views.RefundOf) string {
	if r.Known == nil {
		return "The charge is not known here"
	}
	return "More than was charged"
}

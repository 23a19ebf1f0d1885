package web

import (
	"context"
	"errors"
	"slices"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// compared is what an operation can be laid beside: the one it replaces, the last
// one that people approved to the same recipient, and the charge that it gives
// back. It returns the one that was chosen; without a choice, what it replaces.
func (s *Server) compared(ctx context.Context, p ledger.PersonRecord, o ledger.Operation, page *views.OperationPage) (was *ledger.Operation, err error) {
	offer := func(kind string, other ledger.Operation, err error) error {
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if other.ActionType != o.ActionType && !seesAll(p) {
			return err // a schema of its own has secrets of its own
		}
		page.Beside = append(page.Beside, views.Comparison{Kind: kind, OperationID: other.OperationID})
		if page.Compare == kind || page.Compare == "" && kind == "replaced" {
			page.Compare, page.Was, was = kind, other.OperationID, &other
		}
		return err
	}
	if o.Replaces != "" {
		other, err := s.Store.Operation(ctx, p.TenantID, o.Replaces)
		if err := offer("replaced", other, err); err != nil {
			return nil, err
		}
	}
	other, err := s.Store.LastApproved(ctx, o)
	if err := offer("last", other, err); err != nil {
		return nil, err
	}
	if o.Terms.RefundOf == "" {
		return was, nil
	}
	charge, err := s.Store.ChargeOf(ctx, o)
	if err == nil && charge.OperationID == "" {
		return was, nil
	}
	if err == nil {
		other, err = s.Store.Operation(ctx, p.TenantID, charge.OperationID)
	}
	return was, offer("charge", other, err)
}

// likeWithLike leaves out what only the charge has: a refund is another kind of
// thing, and what it lacks is no change.
func likeWithLike(compare string, rows []views.Field) []views.Field {
	if compare != "charge" {
		return rows
	}
	rows = slices.DeleteFunc(rows, func(f views.Field) bool { return f.Gone })
	for i, f := range rows {
		if f.Was == views.NotThere {
			rows[i].Was, rows[i].Changed = "", false
		}
	}
	return rows
}

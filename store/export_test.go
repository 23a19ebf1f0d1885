package store

import (
	"context"

	"holdfast/store/ledger"
)

// BeginSettlement binds an operation to an entry, as the change that registers the
// operation does.
func (s *Store) BeginSettlement(ctx context.Context, tenant, entry, operationID string, amount int64, by ledger.Holder) (e ledger.RefundOwed, err error) {
	err = s.change(ctx, func(t *tx) error {
		if e, err = t.refund(tenant, entry); err != nil {
			return err
		}
		o, err := t.operation(tenant, operationID)
		if err != nil {
			return err
		}
		e, err = t.beginSettlement(e, operationID, o.Rail, amount, by, "")
		return err
	})
	return e, err
}

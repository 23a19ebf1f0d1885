package store

import (
	"context"

	"holdfast/store/ledger"
)

// RecipientKnown reports whether something else was ever confirmed to the
// recipient of an operation. Of one that names no recipient, it is true: there
// is nobody new.
func (s *Store) RecipientKnown(ctx context.Context, o ledger.Operation) (bool, error) {
	if o.Terms.Recipient == "" {
		return true, nil
	}
	var n int
	err := s.readers.QueryRowContext(ctx, `
		select count(*) from (
			select 1 from operations
			where tenant_id = $1 and effect = $2 and recipient = $3 and recipient <> '' and status = 'confirmed' and operation_id <> $4
			limit 1) as one`, o.TenantID, o.Effect, o.Terms.Recipient, o.OperationID).Scan(&n)
	return n > 0, err
}

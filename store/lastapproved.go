package store

import (
	"context"

	"holdfast/store/ledger"
)

// LastApproved is the operation of the same action type to the same recipient
// that people approved last, before this one; [ErrNotFound] where there is none.
func (s *Store) LastApproved(ctx context.Context, o ledger.Operation) (ledger.Operation, error) {
	if o.Terms.Recipient == "" {
		return ledger.Operation{}, ErrNotFound
	}
	var id string
	err := s.readers.QueryRowContext(ctx, `
		select o.operation_id from operations o join approvals a on a.tenant_id = o.tenant_id and a.operation_id = o.operation_id
		where o.tenant_id = $1 and o.effect = $2 and o.recipient = $3 and o.recipient <> '' and o.action_type = $4 and o.operation_id <> $5
		  and a.decision = 'approve' and a.voided_at = 0
		order by a.decided_at desc, a.id desc limit 1`, o.TenantID, o.Effect, o.Terms.Recipient, o.ActionType, o.OperationID).Scan(&id)
	if err != nil {
		return ledger.Operation{}, notFound(err)
	}
	return s.Operation(ctx, o.TenantID, id)
}

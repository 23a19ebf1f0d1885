package store

import (
	"context"
	"fmt"

	"holdfast/store/ledger"
)

// TakeBack takes a person's own approval back: the operation waits for people
// again. A claim needs that its time to leave has come, and this that it has not,
// so that of the two one finds the other's change and gives up.
func (s *Store) TakeBack(ctx context.Context, tenant, id string, d Decision) (ledger.Operation, error) {
	return s.decide(ctx, tenant, id, d, func(t *tx, o ledger.Operation, by ledger.Holder) (ledger.Operation, error) {
		rows, err := t.rows(selectApprovals, tenant, id)
		if err != nil {
			return o, err
		}
		given, err := collect(rows, scanApproval)
		if err != nil {
			return o, err
		}
		if ok, why := ledger.MayTakeBack(given, d.Person); !ok {
			return o, fmt.Errorf("%w: %s", ErrForbidden, why)
		}
		err = t.exec(`
			update approvals set voided_at = case when decided_at > $1 then decided_at else $1 end
			where tenant_id = $2 and operation_id = $3 and person_id = $4 and decision = 'approve' and voided_at = 0`,
			t.now, tenant, id, d.Person.ID)
		if err != nil {
			return o, err
		}
		return t.happen(o, happening{event: ledger.TakeBack, by: by, sentence: d.Person.Display() + " took the approval back before anything was sent.",
			fact: map[string]any{"fingerprint": o.Fingerprint, "reason": d.Reason},
			with: func(o *ledger.Operation) { o.NextSendAt = 0 }})
	})
}

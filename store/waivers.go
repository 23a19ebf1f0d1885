package store

import (
	"context"
	"database/sql"

	"holdfast/store/ledger"
)

// voidWaiver ends the wish to waive what has been paid meanwhile.
func (t *tx) voidWaiver(e ledger.RefundOwed) error {
	return t.exec(`update refund_waivers set state = 'void', ended_at = $1 where entry = $2 and state = 'asked'`, t.now, e.ID)
}

const waiverColumns = `id, tenant_id, entry, amount, reason, asked_by, asked_at, waived_by, agreement, state, ended_at`

func scanWaiver(r scanner) (w ledger.RefundWaiver, err error) {
	err = r.Scan(&w.ID, &w.TenantID, &w.Entry, &w.Amount, &w.Reason, &w.AskedBy, &w.AskedAt, &w.WaivedBy, &w.Agreement, &w.State, &w.EndedAt)
	return w, notFound(err)
}

// RefundWaivers lists who asked to let an entry go, and who agreed, oldest first.
func (s *Store) RefundWaivers(ctx context.Context, tenant, entry string) ([]ledger.RefundWaiver, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+waiverColumns+` from refund_waivers where tenant_id = $1 and entry = $2 order by asked_at, id`, tenant, entry)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.RefundWaiver, error) { return scanWaiver(r) })
}

package store

import (
	"context"
	"database/sql"

	"holdfast/store/ledger"
)

// selectOpen reads by the index on status: what has ended, which is nearly all
// of an old ledger, is not touched.
const selectOpen = `
	select rail, action_type, status, reason, attempts > 0 or quarantined = 1 as sent, count(*),
	       min(case when unknown_since > 0 then unknown_since else updated_at end), min(created_at)
	from operations
	where tenant_id = $1 and status in ('awaiting_approval', 'ready', 'in_flight', 'unknown', 'unknown_hold')
	group by rail, action_type, status, reason, sent
	order by rail, action_type, status, reason, sent`

// Numbers counts what is open in a tenant's ledger.
func (s *Store) Numbers(ctx context.Context, tenant string) (n ledger.Numbers, err error) {
	n.TenantID, n.At = tenant, s.now()
	rows, err := s.readers.QueryContext(ctx, selectOpen, tenant)
	if err != nil {
		return n, err
	}
	n.Open, err = collect(rows, func(r *sql.Rows) (c ledger.OpenCount, err error) {
		return c, r.Scan(&c.Rail, &c.ActionType, &c.Status, &c.Reason, &c.Sent, &c.N, &c.Since, &c.CreatedAt)
	})
	if err != nil {
		return n, err
	}
	n.Owed, err = s.countRefunds(ctx, tenant, n.At)
	return n, err
}

// countRefunds also tells of what is settled by now, with nothing open: a number
// that falls to nothing is seen to fall.
func (s *Store) countRefunds(ctx context.Context, tenant string, now int64) ([]ledger.OwedCount, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select rail, currency, direction, coalesce(sum(case when open > 0 then 1 else 0 end), 0), `+wideSum(`open`)+`,
		       coalesce(sum(case when open > 0 and due_at < $2 then 1 else 0 end), 0), `+wideSum(`case when due_at < $2 then open else 0 end`)+`
		from refunds_owed where tenant_id = $1 group by rail, currency, direction order by rail, currency, direction`, tenant, now)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (c ledger.OwedCount, err error) {
		var open, late wide
		err = r.Scan(&c.Rail, &c.Currency, &c.Direction, &c.N, &open.high, &open.low, &c.Overdue, &late.high, &late.low)
		c.Amount, c.Late = open.amount(), late.amount()
		return c, err
	})
}

// EveryTenant lists all there ever were, also those that are configured no more.
func (s *Store) EveryTenant(ctx context.Context) ([]string, error) {
	rows, err := s.readers.QueryContext(ctx, `select tenant_id from tenants order by tenant_id`)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (tenant string, err error) { return tenant, r.Scan(&tenant) })
}

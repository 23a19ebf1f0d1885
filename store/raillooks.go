package store

import (
	"context"
	"database/sql"
	"errors"

	"holdfast/store/ledger"
)

// RailLooks lists the rails that were ever looked at, with when they answered.
func (s *Store) RailLooks(ctx context.Context) ([]ledger.RailLook, error) {
	rows, err := s.readers.QueryContext(ctx, `select tenant_id, rail, answered_at, silent_since, silent_runs, ask_at from rail_looks`)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (l ledger.RailLook, err error) {
		return l, r.Scan(&l.TenantID, &l.Rail, &l.AnsweredAt, &l.SilentSince, &l.SilentRuns, &l.AskAt)
	})
}

// RecordRailLook keeps whether a rail answered in a run. One that was silent and
// answers again is asked at once about everything that waits for it, but what it
// was just asked about.
func (s *Store) RecordRailLook(ctx context.Context, tenant, rail string, answered bool, about string) error {
	return s.change(context.WithoutCancel(ctx), func(t *tx) error {
		l := ledger.RailLook{TenantID: tenant, Rail: rail}
		err := t.row(`select answered_at, silent_since, silent_runs from rail_looks where tenant_id = $1 and rail = $2`, tenant, rail).
			Scan(&l.AnsweredAt, &l.SilentSince, &l.SilentRuns)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		wasSilent := l.SilentSince > 0
		l = l.Heard(answered, t.now)
		err = t.exec(`
			insert into rail_looks (tenant_id, rail, answered_at, silent_since, silent_runs, ask_at) values ($1, $2, $3, $4, $5, $6)
			on conflict (tenant_id, rail) do update set answered_at = excluded.answered_at, silent_since = excluded.silent_since,
				silent_runs = excluded.silent_runs, ask_at = excluded.ask_at`,
			tenant, rail, l.AnsweredAt, l.SilentSince, l.SilentRuns, l.AskAt)
		if err != nil || !answered || !wasSilent {
			return err
		}
		// When to ask is a plan and no fact: it has no entry in the log.
		return t.exec(`
			update operations set next_look_at = $1 where tenant_id = $2 and rail = $3 and status = 'unknown' and next_look_at > $4 and operation_id <> $5`,
			t.now, tenant, rail, t.now, about)
	})
}

// WaitingForRail is how many operations of a rail have an unknown outcome.
func (s *Store) WaitingForRail(ctx context.Context, tenant, rail string) (n int, err error) {
	return n, s.readers.QueryRowContext(ctx, `
		select count(*) from operations where tenant_id = $1 and status = 'unknown' and rail = $2`, tenant, rail).Scan(&n)
}

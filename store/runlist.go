package store

import (
	"context"
	"database/sql"

	"holdfast/store/ledger"
)

// RunFilter narrows a list of runs; empty members do not count.
type RunFilter struct {
	RunID string // this one only
	After string // older than this one
	Limit int    // 1 to 100, default 25
}

// namedBelow bounds how many of the runs below one are named; all are counted.
const namedBelow = 20

// Runs lists a tenant's runs with their relatives and operations, newest first,
// and says whether there are older ones.
func (s *Store) Runs(ctx context.Context, tenant string, f RunFilter) (all []ledger.RunRecord, more bool, err error) {
	if f.Limit <= 0 || f.Limit > 100 {
		f.Limit = 25
	}
	rows, err := s.readers.QueryContext(ctx, `
		select `+runColumns+` from runs r
		where tenant_id = $1 and ($2 = '' or run_id = $2)
		  and ($3 = '' or exists (select 1 from runs n where n.tenant_id = $1 and n.run_id = $3
		    and (r.created_at < n.created_at or r.created_at = n.created_at and r.run_id > n.run_id)))
		order by created_at desc, run_id limit $4`, tenant, f.RunID, f.After, f.Limit+1)
	if err != nil {
		return nil, false, err
	}
	runs, err := collect(rows, func(r *sql.Rows) (ledger.Run, error) { return scanRun(r) })
	if err != nil {
		return nil, false, err
	}
	if more = len(runs) > f.Limit; more {
		runs = runs[:f.Limit]
	}
	for _, r := range runs {
		record, err := s.runRecord(ctx, r)
		if err != nil {
			return nil, false, err
		}
		all = append(all, record)
	}
	return all, more, nil
}

func (s *Store) runRecord(ctx context.Context, run ledger.Run) (r ledger.RunRecord, err error) {
	r.Run = run
	for _, fill := range []func(context.Context, *ledger.RunRecord) error{s.fillSpent, s.fillAbove, s.fillBelow, s.fillOperations, s.fillEffect, s.fillStop} {
		if err := fill(ctx, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (s *Store) fillSpent(ctx context.Context, r *ledger.RunRecord) (err error) {
	r.ByLayer, err = s.byLayer(ctx, r.TenantID, r.RunID)
	return err
}

func (s *Store) byLayer(ctx context.Context, tenant, run string) (map[string]int, error) {
	rows, err := s.readers.QueryContext(ctx, `select layer, count from run_reports where tenant_id = $1 and run_id = $2`, tenant, run)
	if err != nil {
		return nil, err
	}
	layers := map[string]int{}
	_, err = collect(rows, func(row *sql.Rows) (struct{}, error) {
		var layer string
		var n int
		err := row.Scan(&layer, &n)
		layers[layer] = n
		return struct{}{}, err
	})
	return layers, err
}

func (s *Store) fillAbove(ctx context.Context, r *ledger.RunRecord) error {
	seen := map[string]bool{r.RunID: true}
	for id := r.ParentRunID; id != "" && !seen[id] && len(r.Above) < longestLineage-1; {
		seen[id] = true
		parent, err := scanRun(s.readers.QueryRowContext(ctx, `select `+runColumns+` from runs where tenant_id = $1 and run_id = $2`, r.TenantID, id))
		if err == ErrNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		r.Above = append(r.Above, parent)
		id = parent.ParentRunID
	}
	return nil
}

func (s *Store) fillBelow(ctx context.Context, r *ledger.RunRecord) error {
	rows, err := s.readers.QueryContext(ctx, family+`
		select run_id, (select count(*) from family) - 1 from family where run_id <> $2 order by run_id limit $3`, r.TenantID, r.RunID, namedBelow)
	if err != nil {
		return err
	}
	r.Below, err = collect(rows, func(row *sql.Rows) (id string, err error) { return id, row.Scan(&id, &r.CountBelow) })
	return err
}

func (s *Store) fillOperations(ctx context.Context, r *ledger.RunRecord) error {
	rows, err := s.readers.QueryContext(ctx, `
		select status, count(*) from operations where tenant_id = $1 and run_id = $2 and run_id <> '' group by status`, r.TenantID, r.RunID)
	if err != nil {
		return err
	}
	r.Operations = map[ledger.Status]int{}
	_, err = collect(rows, func(row *sql.Rows) (struct{}, error) {
		var status ledger.Status
		var n int
		err := row.Scan(&status, &n)
		r.Operations[status] = n
		return struct{}{}, err
	})
	return err
}

// fillEffect counts what a stop would reject, and what it would leave alone.
func (s *Store) fillEffect(ctx context.Context, r *ledger.RunRecord) error {
	return s.readers.QueryRowContext(ctx, family+`
		, open as (
			select status in ('awaiting_approval', 'ready') and open_attempts = 0 and quarantined = 0
			    or status = 'unknown_hold' and attempts = 0 and quarantined = 0 as unsent
			from operations
			where tenant_id = $1 and run_id in (select run_id from family) and run_id <> ''
			  and status in ('awaiting_approval', 'ready', 'in_flight', 'unknown', 'unknown_hold')
		)
		select coalesce(sum(case when unsent then 1 else 0 end), 0), coalesce(sum(case when unsent then 0 else 1 end), 0) from open`,
		r.TenantID, r.RunID).Scan(&r.Unsent, &r.UnderWay)
}

func (s *Store) fillStop(ctx context.Context, r *ledger.RunRecord) error {
	if r.StoppedAt == 0 {
		return nil
	}
	e, err := s.lastEntry(ctx, r.TenantID, "run", r.RunID, "stop")
	if err != nil {
		return err
	}
	var fact struct{ Reason string }
	fromText(e.Fact, &fact)
	r.StoppedBy, r.StoppedWhy = e.Actor, fact.Reason
	return nil
}

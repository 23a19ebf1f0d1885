package store

import (
	"context"
	"errors"
	"fmt"

	"holdfast/store/ledger"
)

// BudgetSpent means that a run, or one that it belongs to, may repeat nothing
// more.
type BudgetSpent struct{ Sentence string }

func (b BudgetSpent) Error() string { return b.Sentence }

// BudgetRaised refuses to raise what agents may only lower.
type BudgetRaised struct{ Member, Sentence string }

func (b BudgetRaised) Error() string { return b.Sentence }

// longestLineage bounds how far a run's ancestors are followed.
const longestLineage = 32

const runColumns = `tenant_id, run_id, parent_run_id, max_attempts, deadline, used, stopped_at, created_at`

func scanRun(row scanner) (r ledger.Run, err error) {
	err = row.Scan(&r.TenantID, &r.RunID, &r.ParentRunID, &r.MaxAttempts, &r.Deadline, &r.Used, &r.StoppedAt, &r.CreatedAt)
	return r, notFound(err)
}

func (t *tx) run(tenant, id string) (ledger.Run, error) {
	return scanRun(t.row(`select `+runColumns+` from runs where tenant_id = $1 and run_id = $2`, tenant, id))
}

// enrol makes sure that a run is on record, with the budget that the
// configuration gives it.
func (t *tx) enrol(tenant, id, parent string) error {
	if id == "" {
		return nil
	}
	limits := t.s.Rulebook(tenant).Runs
	if parent == id {
		parent = ""
	}
	if parent != "" {
		if err := t.enrol(tenant, parent, ""); err != nil {
			return err
		}
	}
	return t.exec(`
		insert into runs (tenant_id, run_id, parent_run_id, max_attempts, deadline, used, stopped_at, created_at)
		values ($1, $2, $3, $4, $5, 0, 0, $6)
		on conflict (tenant_id, run_id) do update set parent_run_id = excluded.parent_run_id
		where runs.parent_run_id = '' and excluded.parent_run_id <> ''`,
		tenant, id, parent, limits.MaxAttempts, t.now+limits.MaxElapsed.Milliseconds(), t.now)
}

// lineage is a run and those it belongs to, itself first.
func (t *tx) lineage(tenant, id string) ([]ledger.Run, error) {
	var all []ledger.Run
	seen := map[string]bool{}
	for id != "" && !seen[id] && len(all) < longestLineage {
		seen[id] = true
		r, err := t.run(tenant, id)
		if errors.Is(err, ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		id = r.ParentRunID
	}
	return all, nil
}

// runOver says why a run or one of its ancestors may repeat nothing more.
func (t *tx) runOver(tenant, id string) (string, error) {
	all, err := t.lineage(tenant, id)
	for _, r := range all {
		if why := r.Over(t.now); why != "" {
			return why, err
		}
	}
	return "", err
}

// spend takes one retry from a run and all its ancestors: one count over all
// layers. Where one of them may do nothing more, nothing is taken, and the
// sentence says so. One that had none from the start is spent by the first that
// is asked of it: that one is counted, and refused.
func (t *tx) spend(tenant, id, layer string) (refused string, err error) {
	if id == "" {
		return "", nil
	}
	all, err := t.lineage(tenant, id)
	if err != nil {
		return "", err
	}
	for _, r := range all {
		if why := r.Over(t.now); why != "" {
			return why, nil
		}
	}
	for _, r := range all {
		if r.Left() == 0 {
			r.Used++
			refused = r.Over(t.now)
			break
		}
	}
	return refused, t.take(tenant, id, layer, 1)
}

func (t *tx) take(tenant, id, layer string, count int) error {
	all, err := t.lineage(tenant, id)
	if err != nil {
		return err
	}
	for _, r := range all {
		if err := t.exec(`update runs set used = used + $1 where tenant_id = $2 and run_id = $3`, count, tenant, r.RunID); err != nil {
			return err
		}
	}
	return t.exec(`
		insert into run_reports (tenant_id, run_id, layer, count) values ($1, $2, $3, $4)
		on conflict (tenant_id, run_id, layer) do update set count = run_reports.count + excluded.count`, tenant, id, layer, count)
}

// Repeat counts one more submission of an operation that has not ended. It is
// refused once its run has nothing left.
func (s *Store) Repeat(ctx context.Context, o ledger.Operation) error {
	var refused string
	err := s.change(ctx, func(t *tx) (err error) {
		refused, err = t.spend(o.TenantID, o.RunID, "repeat")
		return err
	})
	if err == nil && refused != "" { // and what spent the run stays on record
		return BudgetSpent{refused}
	}
	return err
}

// ReportAttempts counts retries and fallbacks that a layer outside made on its
// own. They happened: they count even if more than what was left.
func (s *Store) ReportAttempts(ctx context.Context, tenant, id, layer string, count int) (ledger.Run, error) {
	err := s.change(ctx, func(t *tx) error {
		if err := t.enrol(tenant, id, ""); err != nil {
			return err
		}
		return t.take(tenant, id, layer, count)
	})
	if err != nil {
		return ledger.Run{}, err
	}
	return s.Run(ctx, tenant, id)
}

// LowerRun lowers a run's budget. Agents may lower it, only the configuration
// raises it.
func (s *Store) LowerRun(ctx context.Context, tenant, id, parent string, maxAttempts *int, deadline *int64) (ledger.Run, error) {
	err := s.change(ctx, func(t *tx) error {
		if err := t.enrol(tenant, id, parent); err != nil {
			return err
		}
		r, err := t.run(tenant, id)
		if err != nil {
			return err
		}
		if maxAttempts != nil {
			if *maxAttempts > r.MaxAttempts {
				return BudgetRaised{"max_attempts", fmt.Sprintf("The run has max_attempts %d, which may only be lowered here; the configuration raises it.", r.MaxAttempts)}
			}
			r.MaxAttempts = *maxAttempts
		}
		if deadline != nil {
			if *deadline > r.Deadline {
				return BudgetRaised{"deadline", fmt.Sprintf("The deadline is %s and may only come nearer here; the configuration moves it away.", stampUTC(r.Deadline))}
			}
			r.Deadline = *deadline
		}
		return t.exec(`update runs set max_attempts = $1, deadline = $2 where tenant_id = $3 and run_id = $4`, r.MaxAttempts, r.Deadline, tenant, id)
	})
	if err != nil {
		return ledger.Run{}, err
	}
	return s.Run(ctx, tenant, id)
}

// Run reads a run and what its budget went into.
func (s *Store) Run(ctx context.Context, tenant, id string) (ledger.Run, error) {
	r, err := scanRun(s.readers.QueryRowContext(ctx, `select `+runColumns+` from runs where tenant_id = $1 and run_id = $2`, tenant, id))
	if err != nil {
		return r, err
	}
	r.ByLayer, err = s.byLayer(ctx, tenant, id)
	return r, err
}

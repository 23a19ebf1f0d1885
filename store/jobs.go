package store

import (
	"context"
	"database/sql"

	"holdfast/store/ledger"
)

// RecordRun keeps what a scheduled job did.
func (s *Store) RecordRun(ctx context.Context, r ledger.JobRun) error {
	if r.Problems == nil {
		r.Problems = []string{}
	}
	return s.change(context.WithoutCancel(ctx), func(t *tx) error {
		return t.exec(`
			insert into job_runs (id, job, node, started_at, finished_at, looked_at, resolved, held, opened, problems)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			t.s.rowIDs.next(t.now), r.Job, r.Node, r.StartedAt, r.FinishedAt, r.LookedAt, r.Resolved, r.Held, r.Opened, text(r.Problems))
	})
}

// LastRuns lists the most recent run of every job.
func (s *Store) LastRuns(ctx context.Context) ([]ledger.JobRun, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select id, job, node, started_at, finished_at, looked_at, resolved, held, opened, problems
		from job_runs where id in (select max(id) from job_runs group by job) order by job`)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (run ledger.JobRun, err error) {
		var problems string
		err = r.Scan(&run.ID, &run.Job, &run.Node, &run.StartedAt, &run.FinishedAt, &run.LookedAt, &run.Resolved, &run.Held, &run.Opened, &problems)
		fromText(problems, &run.Problems)
		return run, err
	})
}

// RecordIdleRun keeps the time of a run that found nothing to do: one row a job,
// so that a quiet ledger does not grow.
func (s *Store) RecordIdleRun(ctx context.Context, r ledger.JobRun) error {
	return s.change(ctx, func(t *tx) error {
		n, err := t.affected(`
			update job_runs set started_at = $1, finished_at = $2, node = $3
			where id = (select max(id) from job_runs where job = $4) and looked_at = 0 and problems = '[]'`,
			r.StartedAt, r.FinishedAt, r.Node, r.Job)
		if err != nil || n == 1 {
			return err
		}
		return t.exec(`
			insert into job_runs (id, job, node, started_at, finished_at, looked_at, resolved, held, opened, problems)
			values ($1, $2, $3, $4, $5, 0, 0, 0, 0, '[]')`, t.s.rowIDs.next(t.now), r.Job, r.Node, r.StartedAt, r.FinishedAt)
	})
}

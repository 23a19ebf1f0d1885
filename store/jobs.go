package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"holdfast/store/ledger"
)

// Why a job was not begun. Neither is a mistake.
var (
	ErrJobBusy = errors.New("the job runs on another node")
	ErrJobDone = errors.New("this tick of the job was begun before")
)

// JobLeaseFor is how long a job may stay silent before another node may run it.
// A run renews it three times in that time.
const JobLeaseFor = time.Minute

// clocksApart is more than the clocks of two nodes differ. A tick that is begun
// further ahead of the clock than that was begun by a clock that was wrong, and
// must not keep the job from running until then.
const clocksApart = time.Minute

// BeginJob gives a node the right to run a job: one node at a time, and each
// tick of the schedule once. A run that no schedule asked for has no tick.
func (s *Store) BeginJob(ctx context.Context, run ledger.JobRun) (ledger.JobLease, error) {
	lease := ledger.JobLease{Job: run.Job, Node: run.Node}
	err := s.change(ctx, func(t *tx) error {
		var until, ticked int64
		err := t.row(`select fence, lease_until, ticked_for from job_leases where job = $1`, run.Job).Scan(&lease.Fence, &until, &ticked)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		switch {
		case run.ScheduledFor > 0 && ticked >= run.ScheduledFor && ticked <= t.now+clocksApart.Milliseconds():
			return ErrJobDone
		case until > t.now:
			return ErrJobBusy
		}
		if run.ScheduledFor > 0 {
			ticked = run.ScheduledFor
		}
		lease.Fence++
		err = t.exec(`
			insert into job_leases (job, node, fence, lease_until, ticked_for) values ($1, $2, $3, $4, $5)
			on conflict (job) do update set node = excluded.node, fence = excluded.fence, lease_until = excluded.lease_until, ticked_for = excluded.ticked_for`,
			run.Job, run.Node, lease.Fence, t.now+JobLeaseFor.Milliseconds(), ticked)
		if err != nil || run.Why != ledger.OnRequest {
			return err
		}
		return t.log(ledger.Entry{TenantID: run.TenantID, Object: "job", ObjectID: run.Job, Event: "run", ActorKind: ledger.Person, Actor: run.AskedBy,
			Sentence: fmt.Sprintf("%s ran the job %s.", run.AskedBy, run.Job), Fact: factText(map[string]any{"node": run.Node, "fence": lease.Fence})})
	})
	return lease, err
}

// KeepJob renews a lease that is still held.
func (s *Store) KeepJob(ctx context.Context, l ledger.JobLease) error {
	return s.change(ctx, func(t *tx) error {
		n, err := t.affected(`update job_leases set lease_until = $1 where job = $2 and fence = $3 and lease_until > $4`,
			t.now+JobLeaseFor.Milliseconds(), l.Job, l.Fence, t.now)
		if err == nil && n == 0 {
			err = ErrLeaseLost
		}
		return err
	})
}

// EndJob records a run and lets its lease go. A run whose job was taken over
// meanwhile is not recorded: the other one counts. A run that found nothing to do
// takes the place of the one before that did not either, so that a quiet ledger
// does not grow; one that somebody asked for is kept.
func (s *Store) EndJob(ctx context.Context, l ledger.JobLease, r ledger.JobRun) error {
	if r.Problems == nil {
		r.Problems = []string{}
	}
	return s.change(context.WithoutCancel(ctx), func(t *tx) error {
		n, err := t.affected(`update job_leases set lease_until = 0 where job = $1 and fence = $2`, l.Job, l.Fence)
		if err == nil && n == 0 {
			err = ErrLeaseLost
		}
		if err != nil {
			return err
		}
		if r.Idle() && r.Why != ledger.OnRequest {
			n, err := t.affected(`
				update job_runs set started_at = $1, finished_at = $2, node = $3, why = $4, scheduled_for = $5, fence = $6
				where id = (select max(id) from job_runs where job = $7) and looked_at = 0 and opened = 0 and problems = '[]' and asked_by = ''`,
				r.StartedAt, r.FinishedAt, r.Node, r.Why, r.ScheduledFor, l.Fence, r.Job)
			if err != nil || n == 1 {
				return err
			}
		}
		return t.exec(`
			insert into job_runs (id, job, node, started_at, finished_at, looked_at, resolved, held, opened, problems, why, asked_by, scheduled_for, fence)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			t.s.rowIDs.next(t.now), r.Job, r.Node, r.StartedAt, r.FinishedAt, r.LookedAt, r.Resolved, r.Held, r.Opened, text(r.Problems),
			r.Why, r.AskedBy, r.ScheduledFor, l.Fence)
	})
}

// freeJobs ends the leases that a dead process left. It is called by the process
// that holds the folder's lock: there is no other.
func (s *Store) freeJobs(ctx context.Context) error {
	return s.change(ctx, func(t *tx) error {
		return t.exec(`update job_leases set lease_until = 0 where lease_until > 0`)
	})
}

// TickedFor is the last tick of a job's schedule that was begun; 0: none was.
func (s *Store) TickedFor(ctx context.Context, job string) (at int64, err error) {
	err = s.readers.QueryRowContext(ctx, `select ticked_for from job_leases where job = $1`, job).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return at, err
}

// LastRuns lists the most recent run of every job.
func (s *Store) LastRuns(ctx context.Context) ([]ledger.JobRun, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select id, job, node, started_at, finished_at, looked_at, resolved, held, opened, problems, why, asked_by, scheduled_for
		from job_runs where id in (select max(id) from job_runs group by job) order by job`)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (run ledger.JobRun, err error) {
		var problems string
		err = r.Scan(&run.ID, &run.Job, &run.Node, &run.StartedAt, &run.FinishedAt, &run.LookedAt, &run.Resolved, &run.Held, &run.Opened, &problems,
			&run.Why, &run.AskedBy, &run.ScheduledFor)
		fromText(problems, &run.Problems)
		return run, err
	})
}

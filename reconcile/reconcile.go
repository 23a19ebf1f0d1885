// Package reconcile finds out what happened. It runs the scheduled jobs: the
// sweep that ends silent leases and undecided approvals, the look-ups that ask
// providers about operations whose outcome is unknown, and the re-check of those
// that ended. It also takes in what providers tell of their own accord.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"holdfast/dispatch"
	"holdfast/store"
	"holdfast/store/ledger"
)

// Scheduler runs jobs by the configuration's clock, and one of them at once when
// somebody asks. A job never overlaps itself, here or on another node.
type Scheduler struct {
	Store  *store.Store
	Config func() *dispatch.Config
	Node   string
	Log    *slog.Logger
	Words  Wording             // of notices; nobody is told without it
	Chance func(n int64) int64 // a number in [0, n); the machine's own if left out

	running  sync.Map   // job name → *sync.Mutex
	counting sync.Mutex // over what a run has seen
}

// job does its work and counts it in the run.
type job func(context.Context, *ledger.JobRun) error

func (s *Scheduler) jobs() map[string]job {
	return map[string]job{"sweep": s.sweep, "lookup": s.lookup, "events": s.events, "recheck": s.recheck, "refunds": s.refunds, "statements": s.statements,
		"seal": s.seal, "notify": s.notify}
}

// Jobs lists the names that Run knows, in order.
func (s *Scheduler) Jobs() []string {
	var names []string
	for name := range s.jobs() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Start schedules every job until the context ends, and waits for those under
// way. What was missed while nobody ran is made up for with one run.
func (s *Scheduler) Start(ctx context.Context) error {
	c := cron.New(cron.WithLocation(time.UTC))
	for _, name := range s.Jobs() {
		when := inForce{s, name}
		if _, err := when.schedule(); err != nil {
			return fmt.Errorf("jobs.%s: %w", name, err)
		}
		var id cron.EntryID
		named := make(chan struct{})
		id = c.Schedule(when, cron.FuncJob(func() {
			<-named
			s.tick(ctx, name, ledger.OnSchedule, c.Entry(id).Prev)
		}))
		close(named)
	}
	var first sync.WaitGroup
	for _, name := range s.Jobs() {
		first.Go(func() { s.makeUp(ctx, name) })
	}
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done()
	first.Wait()
	return nil
}

// inForce is the schedule of a job in the configuration of the moment.
type inForce struct {
	s   *Scheduler
	job string
}

func (f inForce) schedule() (cron.Schedule, error) {
	return dispatch.ParseSchedule(f.s.Config().Jobs[f.job])
}

// Next is the next tick; a schedule that cannot be read has none.
func (f inForce) Next(t time.Time) time.Time {
	schedule, err := f.schedule()
	if err != nil {
		return time.Time{}
	}
	return schedule.Next(t)
}

// makeUp runs a job for its latest tick if that passed while nobody ran. The
// ticks before it are not made up for: one run finds what they would have.
func (s *Scheduler) makeUp(ctx context.Context, name string) {
	schedule, err := inForce{s, name}.schedule()
	if err != nil {
		return
	}
	if last := dispatch.LastTick(schedule, time.UnixMilli(s.Store.Now()).UTC()); !last.IsZero() {
		s.tick(ctx, name, ledger.Missed, last)
	}
}

// tick runs a job for one tick of its schedule. A tick that another node began,
// and one that comes while the job runs, are left out.
func (s *Scheduler) tick(ctx context.Context, name string, why ledger.JobWhy, at time.Time) {
	lock := s.lock(name)
	if ctx.Err() != nil || !lock.TryLock() {
		return
	}
	defer lock.Unlock()
	_, err := s.run(ctx, ledger.JobRun{Job: name, Why: why, ScheduledFor: at.UnixMilli()})
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrJobBusy) && !errors.Is(err, store.ErrJobDone) {
		s.Log.Warn("a job ended with a problem", "job", name, "error", err)
	}
}

// Run does one job now, for whoever typed the command, and records the run. A
// job that is under way already is waited for, and then run: whoever asks wants
// to see what is true after asking.
func (s *Scheduler) Run(ctx context.Context, name string) (ledger.JobRun, error) {
	return s.runNow(ctx, ledger.JobRun{Job: name, Why: ledger.OnCommand})
}

// RunFor is Run for a person, whose name is kept.
func (s *Scheduler) RunFor(ctx context.Context, name string, p ledger.PersonRecord) (ledger.JobRun, error) {
	return s.runNow(ctx, ledger.JobRun{Job: name, Why: ledger.OnRequest, TenantID: p.TenantID, AskedBy: p.Email})
}

func (s *Scheduler) runNow(ctx context.Context, run ledger.JobRun) (ledger.JobRun, error) {
	if _, known := s.jobs()[run.Job]; !known {
		return run, fmt.Errorf("no job %q; there are %v", run.Job, s.Jobs())
	}
	lock := s.lock(run.Job)
	lock.Lock()
	defer lock.Unlock()
	for {
		done, err := s.run(ctx, run)
		if !errors.Is(err, store.ErrJobBusy) {
			return done, err
		}
		select {
		case <-ctx.Done():
			return done, err
		case <-time.After(100 * time.Millisecond): // another node has it; few people ask at once
		}
	}
}

func (s *Scheduler) lock(name string) *sync.Mutex {
	lock, _ := s.running.LoadOrStore(name, &sync.Mutex{})
	return lock.(*sync.Mutex)
}

// run does a job under its lease and records what it did.
func (s *Scheduler) run(ctx context.Context, run ledger.JobRun) (ledger.JobRun, error) {
	run.Node, run.StartedAt = s.Node, s.Store.Now()
	lease, err := s.Store.BeginJob(ctx, run)
	if err != nil {
		return run, err
	}
	err = s.underLease(ctx, lease, func(ctx context.Context) error {
		return s.contained(func() error { return s.jobs()[run.Job](ctx, &run) })
	})
	if err != nil {
		run.Problems = append(run.Problems, err.Error())
	}
	run.FinishedAt = s.Store.Now()
	if recordErr := s.Store.EndJob(ctx, lease, run); err == nil {
		err = recordErr
	}
	return run, err
}

// underLease keeps the lease alive while the work goes on, and ends the work
// when another node took it over.
func (s *Scheduler) underLease(ctx context.Context, lease ledger.JobLease, work func(context.Context) error) error {
	ctx, end := context.WithCancelCause(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		beat := time.NewTicker(store.JobLeaseFor / 3)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
			}
			if err := s.Store.KeepJob(ctx, lease); errors.Is(err, store.ErrLeaseLost) {
				end(err)
			}
		}
	})
	err := work(ctx)
	end(nil)
	keeping.Wait()
	return err
}

// panicked is what broke inside a job or an adapter.
type panicked struct{ what any }

func (p panicked) Error() string { return fmt.Sprintf("it broke: %v", p.what) }

// contained turns a panic into an error: what breaks on one rail must not end
// the work on the others, nor the process.
func (s *Scheduler) contained(work func() error) (err error) {
	defer func() {
		if what := recover(); what != nil {
			s.Log.Error("a job or an adapter broke", "panic", what, "stack", string(debug.Stack()))
			err = panicked{what}
		}
	}()
	return work()
}

func (s *Scheduler) sweep(ctx context.Context, run *ledger.JobRun) error {
	swept, err := s.Store.Sweep(ctx, ledger.Holder{Kind: ledger.Clock, Name: "sweep"})
	run.LookedAt, run.Resolved, run.Held = swept.LookedAt, swept.Resolved, swept.Held
	return err
}

// chance gives a number in [0, n), for spreading retries and for samples.
func (s *Scheduler) chance(n int64) int64 {
	switch {
	case n <= 0:
		return 0
	case s.Chance != nil:
		return s.Chance(n)
	}
	return rand.Int64N(n)
}

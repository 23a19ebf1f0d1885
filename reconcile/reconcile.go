// Package reconcile finds out what happened. It runs the scheduled jobs: the
// sweep that ends silent leases and undecided approvals, and the look-ups that
// ask providers about operations whose outcome is unknown. It also takes in what
// providers tell of their own accord.
package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"holdfast/dispatch"
	"holdfast/store"
	"holdfast/store/ledger"
)

// Scheduler runs jobs by the configuration's clock, and one of them at once when
// somebody asks. A job never overlaps itself.
type Scheduler struct {
	Store  *store.Store
	Config func() *dispatch.Config
	Node   string
	Log    *slog.Logger

	running  sync.Map   // job name → *sync.Mutex
	counting sync.Mutex // over what a run has seen
}

// job does its work and counts it in the run.
type job func(context.Context, *ledger.JobRun) error

func (s *Scheduler) jobs() map[string]job {
	return map[string]job{"sweep": s.sweep, "lookup": s.lookup, "events": s.events, "refunds": s.refunds}
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
// way. Each runs once at the start: whatever was missed while nobody ran is made
// up for.
func (s *Scheduler) Start(ctx context.Context) error {
	c := cron.New(cron.WithLocation(time.UTC))
	for _, name := range s.Jobs() {
		when, err := dispatch.ParseSchedule(s.Config().Jobs[name])
		if err != nil {
			return fmt.Errorf("jobs.%s: %w", name, err)
		}
		c.Schedule(when, cron.FuncJob(func() { s.runScheduled(ctx, name) }))
	}
	for _, name := range s.Jobs() {
		s.runScheduled(ctx, name)
	}
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done()
	return nil
}

func (s *Scheduler) runScheduled(ctx context.Context, name string) {
	if ctx.Err() != nil {
		return
	}
	if _, err := s.Run(ctx, name); err != nil && ctx.Err() == nil {
		s.Log.Warn("a job ended with a problem", "job", name, "error", err)
	}
}

// Run does one job now and records the run. A job that is under way already is
// waited for, and then run: whoever asks wants to see what is true after asking.
func (s *Scheduler) Run(ctx context.Context, name string) (ledger.JobRun, error) {
	work, known := s.jobs()[name]
	if !known {
		return ledger.JobRun{}, fmt.Errorf("no job %q; there are %v", name, s.Jobs())
	}
	lock, _ := s.running.LoadOrStore(name, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()

	run := ledger.JobRun{Job: name, Node: s.Node, StartedAt: s.Store.Now()}
	err := work(ctx, &run)
	if err != nil {
		run.Problems = append(run.Problems, err.Error())
	}
	run.FinishedAt = s.Store.Now()
	if run.LookedAt == 0 && len(run.Problems) == 0 {
		return run, s.Store.RecordIdleRun(ctx, run)
	}
	if recordErr := s.Store.RecordRun(ctx, run); err == nil {
		err = recordErr
	}
	return run, err
}

func (s *Scheduler) sweep(ctx context.Context, run *ledger.JobRun) error {
	swept, err := s.Store.Sweep(ctx, ledger.Holder{Kind: ledger.Clock, Name: "sweep"})
	run.LookedAt, run.Resolved, run.Held = swept.LookedAt, swept.Resolved, swept.Held
	return err
}

// chance gives a number in [0, n), for spreading retries.
func chance(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return rand.Int64N(n)
}

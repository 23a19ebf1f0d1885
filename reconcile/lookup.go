package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// lookupsAtOnce bounds how many operations of one rail are asked about side by
// side, and lookupBatch how many of them one round takes; a run goes on while
// there is more.
const (
	lookupsAtOnce = 8
	lookupBatch   = 100
)

// lookup asks the rails about every operation whose look-up is due, each rail
// for itself.
func (s *Scheduler) lookup(ctx context.Context, run *ledger.JobRun) error {
	rails, err := s.railsToAsk(ctx, run)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		due, err := s.Store.DueLooks(ctx, lookupBatch)
		if err != nil {
			return err
		}
		batches := map[railKey][]ledger.Operation{}
		for _, o := range due {
			if k := keyOf(o); !rails.of(k).done {
				batches[k] = append(batches[k], o)
			}
		}
		if len(batches) == 0 {
			return s.tellOfRails(ctx, run, rails)
		}
		var all sync.WaitGroup
		for k, batch := range batches {
			rail := rails.of(k)
			all.Go(func() { s.lookAtAll(ctx, batch, run, rail) })
		}
		all.Wait()
	}
	return context.Cause(ctx)
}

// lookAtAll asks about a batch of one rail. A rail that was silent is asked about
// one operation first, and about the rest once it answers.
func (s *Scheduler) lookAtAll(ctx context.Context, due []ledger.Operation, run *ledger.JobRun, rail *lookedAt) {
	probe := rail.wasSilent
	if probe {
		due = due[:1]
	}
	rail.done = len(due) < lookupBatch && !probe
	var asking sync.WaitGroup
	places := make(chan struct{}, lookupsAtOnce)
	for _, o := range due {
		places <- struct{}{}
		if s.leftAlone(rail) || ctx.Err() != nil {
			break
		}
		asking.Go(func() {
			defer func() { <-places }()
			after, finding, err := s.lookAt(ctx, o)
			s.counting.Lock()
			defer s.counting.Unlock()
			rail.heard(finding, err)
			if !rail.broke(err) {
				count(run, o, after, err)
			}
		})
	}
	asking.Wait()
	if !probe {
		return
	}
	if rail.answered { // what waits for it is due now
		rail.wasSilent = false
		if err := s.Store.RecordRailLook(ctx, rail.tenant, rail.rail, true, due[0].OperationID); err != nil {
			s.Log.Warn("that a rail answers again was not kept", "tenant", rail.tenant, "rail", rail.rail, "error", err)
		}
		return
	}
	rail.silent, rail.done = max(rail.silent, silences), true
}

func count(run *ledger.JobRun, before, after ledger.Operation, err error) {
	if err != nil {
		run.Problems = append(run.Problems, fmt.Sprintf("%s: %v", before.OperationID, err))
		return
	}
	run.LookedAt++
	switch {
	case after.Status == before.Status:
	case after.Status.Final():
		run.Resolved++
	case after.Status == ledger.UnknownHold:
		run.Held++
	}
}

// lookAt asks about one operation. The answer is recorded whatever happens to
// the run meanwhile.
func (s *Scheduler) lookAt(ctx context.Context, o ledger.Operation) (after ledger.Operation, finding ledger.LookFinding, err error) {
	by := ledger.Holder{Kind: ledger.Reconciler, Name: "lookup"}
	look, r, err := s.ask(ctx, o)
	if err != nil {
		return o, look.Finding, err
	}
	backoff := time.Duration(0)
	if r != nil {
		limits := r.Promise().Limits
		backoff = rail.Backoff(limits.BackoffMin, limits.BackoffMax, o.Attempts, s.chance)
	}
	after, err = s.Store.RecordLook(ctx, o.TenantID, o.OperationID, look, by, backoff)
	return after, look.Finding, err
}

// ask asks a rail about one operation. What breaks in its adapter is an error,
// and no finding.
func (s *Scheduler) ask(ctx context.Context, o ledger.Operation) (look ledger.Look, r *rail.Rail, err error) {
	look.Finding = ledger.LookUnreachable
	r = s.Config().Route(o)
	if r == nil || !r.Promise().Lookup.Possible {
		look.Sentence = "Its rail is not configured for look-ups any more."
		return look, nil, nil
	}
	askedAt := s.Store.Now()
	err = s.contained(func() error {
		look = r.Lookup(ctx, o)
		return nil
	})
	look.AskedAt = askedAt
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return look, r, err
}

func isPanic(err error) bool {
	_, broke := errors.AsType[panicked](err)
	return broke
}

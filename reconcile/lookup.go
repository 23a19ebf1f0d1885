package reconcile

import (
	"context"
	"fmt"
	"sync"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// lookupsAtOnce bounds how many providers are asked side by side, and
// lookupBatch how many operations one round takes; a run goes on while there is
// more.
const (
	lookupsAtOnce = 16
	lookupBatch   = 200
)

// lookup asks the rails about every operation whose look-up is due.
func (s *Scheduler) lookup(ctx context.Context, run *ledger.JobRun) error {
	for ctx.Err() == nil {
		due, err := s.Store.DueLooks(ctx, lookupBatch)
		if err != nil || len(due) == 0 {
			return err
		}
		before := run.LookedAt
		s.lookAtAll(ctx, due, run)
		if run.LookedAt == before || len(due) < lookupBatch {
			return nil
		}
	}
	return ctx.Err()
}

func (s *Scheduler) lookAtAll(ctx context.Context, due []ledger.Operation, run *ledger.JobRun) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	places := make(chan struct{}, lookupsAtOnce)
	for _, o := range due {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			after, err := s.lookAt(ctx, o)
			mu.Lock()
			defer mu.Unlock()
			count(run, o, after, err)
		})
	}
	asking.Wait()
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
func (s *Scheduler) lookAt(ctx context.Context, o ledger.Operation) (ledger.Operation, error) {
	by := ledger.Holder{Kind: ledger.Reconciler, Name: "lookup"}
	r := s.Config().Route(o)
	if r == nil || !r.Promise().Lookup.Possible {
		look := ledger.Look{Finding: ledger.LookUnreachable, Sentence: "Its rail is not configured for look-ups any more."}
		return s.Store.RecordLook(ctx, o.TenantID, o.OperationID, look, by, 0)
	}
	askedAt := s.Store.Now()
	look := r.Lookup(ctx, o)
	look.AskedAt = askedAt
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	limits := r.Promise().Limits
	backoff := rail.Backoff(limits.BackoffMin, limits.BackoffMax, o.Attempts, chance)
	return s.Store.RecordLook(ctx, o.TenantID, o.OperationID, look, by, backoff)
}

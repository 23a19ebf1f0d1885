package reconcile

import (
	"context"
	"fmt"
	"sync"

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

// silences is after how many look-ups in a row that reached nobody a rail is left
// alone until the next run: what is down must not keep the others waiting.
const silences = 3

// lookup asks the rails about every operation whose look-up is due, each rail
// for itself.
func (s *Scheduler) lookup(ctx context.Context, run *ledger.JobRun) error {
	rails := map[railKey]*lookedAt{}
	for ctx.Err() == nil {
		due, err := s.Store.DueLooks(ctx, lookupBatch)
		if err != nil {
			return err
		}
		batches := map[railKey][]ledger.Operation{}
		for _, o := range due {
			k := railKey{o.TenantID, o.Rail}
			if rails[k] == nil {
				rails[k] = &lookedAt{}
			}
			if !rails[k].done {
				batches[k] = append(batches[k], o)
			}
		}
		if len(batches) == 0 {
			return nil
		}
		var all sync.WaitGroup
		for k, batch := range batches {
			all.Go(func() { s.lookAtAll(ctx, batch, run, rails[k]) })
		}
		all.Wait()
	}
	return ctx.Err()
}

type railKey struct{ tenant, rail string }

// lookedAt is what one run has seen of one rail.
type lookedAt struct {
	silent int  // in a row
	done   bool // for this run
}

func (s *Scheduler) lookAtAll(ctx context.Context, due []ledger.Operation, run *ledger.JobRun, rail *lookedAt) {
	rail.done = len(due) < lookupBatch
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
			count(run, o, after, err)
			rail.heard(finding != ledger.LookUnreachable && err == nil)
		})
	}
	asking.Wait()
}

func (s *Scheduler) leftAlone(rail *lookedAt) bool {
	s.counting.Lock()
	defer s.counting.Unlock()
	return rail.silent >= silences
}

// heard takes in whether somebody answered.
func (l *lookedAt) heard(answered bool) {
	if answered {
		l.silent = 0
		return
	}
	l.silent++
	l.done = l.done || l.silent >= silences
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
	r := s.Config().Route(o)
	if r == nil || !r.Promise().Lookup.Possible {
		look := ledger.Look{Finding: ledger.LookUnreachable, Sentence: "Its rail is not configured for look-ups any more."}
		after, err = s.Store.RecordLook(ctx, o.TenantID, o.OperationID, look, by, 0)
		return after, look.Finding, err
	}
	askedAt := s.Store.Now()
	look := r.Lookup(ctx, o)
	look.AskedAt = askedAt
	if ctx.Err() != nil {
		return o, look.Finding, ctx.Err()
	}
	limits := r.Promise().Limits
	backoff := rail.Backoff(limits.BackoffMin, limits.BackoffMax, o.Attempts, chance)
	after, err = s.Store.RecordLook(ctx, o.TenantID, o.OperationID, look, by, backoff)
	return after, look.Finding, err
}

package reconcile

import (
	"context"
	"fmt"

	"holdfast/store/ledger"
)

// recheck looks once more at a sample of what ended, each rail for itself: what a
// provider did twice behind one clean answer shows nowhere else. And it looks
// whether the log is still what was sealed.
func (s *Scheduler) recheck(ctx context.Context, run *ledger.JobRun) error {
	if err := s.checkLog(ctx, run); err != nil {
		return err
	}
	rails, err := s.railsToAsk(ctx, run)
	if err != nil {
		return err
	}
	for tenant, t := range s.Config().Tenants {
		for name, r := range t.Rails {
			sample, err := s.Store.RecheckSample(ctx, tenant, name, r.Promise().Limits.Recheck, s.chance)
			if err != nil {
				return err
			}
			s.recheckAll(ctx, sample, run, rails.of(railKey{tenant, name}))
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return s.tellOfRails(ctx, run, rails)
}

// recheckAll asks about one rail's sample, one after the other: nobody waits for
// it, and the provider has others to answer.
func (s *Scheduler) recheckAll(ctx context.Context, sample []ledger.Operation, run *ledger.JobRun, rail *lookedAt) {
	by := ledger.Holder{Kind: ledger.Reconciler, Name: "recheck"}
	for _, o := range sample {
		if rail.done || rail.silent >= silences || ctx.Err() != nil {
			return
		}
		look, r, err := s.ask(ctx, o)
		if r == nil && err == nil {
			continue // this action type cannot be looked up
		}
		rail.heard(look.Finding, err)
		if err == nil {
			var opened int
			_, opened, err = s.Store.RecordRecheck(ctx, o.TenantID, o.OperationID, look, by)
			run.Opened += opened
		}
		switch {
		case rail.broke(err):
		case err != nil:
			run.Problems = append(run.Problems, fmt.Sprintf("%s: %v", o.OperationID, err))
		case look.Finding != ledger.LookUnreachable:
			run.LookedAt++
		}
	}
}

package reconcile

import (
	"context"

	"holdfast/store/ledger"
)

// refunds ages what is owed: it counts what is open, and holds up what is past the
// day it was promised by.
func (s *Scheduler) refunds(ctx context.Context, run *ledger.JobRun) error {
	aged, err := s.Store.AgeRefunds(ctx, ledger.Holder{Kind: ledger.Clock, Name: "refunds"})
	run.LookedAt, run.Held, run.Resolved = aged.Open, aged.Overdue, aged.Ended+aged.Paired
	return err
}

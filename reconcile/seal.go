package reconcile

import (
	"context"

	"holdfast/store/ledger"
)

// seal signs a head over what was logged since the last one.
func (s *Scheduler) seal(ctx context.Context, run *ledger.JobRun) (err error) {
	run.LookedAt, err = s.Store.Seal(ctx)
	return err
}

// checkLog walks over the whole log once a day, so that a tampered entry is known
// before somebody needs it.
func (s *Scheduler) checkLog(ctx context.Context, run *ledger.JobRun) error {
	report, err := s.Store.CheckLog(ctx, nil, nil)
	if report.Fault != nil {
		run.Problems = append(run.Problems, "The action log is not what was sealed: "+report.Fault.Sentence+". Run holdfast verify.")
		s.Log.Error("the action log is not what was sealed", "entry", report.Fault.Seq, "sentence", report.Fault.Sentence)
	}
	return err
}

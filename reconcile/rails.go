package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/store/ledger"
)

// silences is after how many look-ups in a row that reached nobody a rail is left
// alone until the next run: what is down must not keep the others waiting.
const silences = 3

type railKey struct{ tenant, rail string }

func keyOf(o ledger.Operation) railKey { return railKey{o.TenantID, o.Rail} }

// lookedAt is what one run has seen of one rail.
type lookedAt struct {
	railKey
	before    ledger.RailLook
	wasSilent bool // and has not answered yet
	asked     bool
	answered  bool
	silent    int    // in a row
	breaks    string // what broke in its adapter
	done      bool   // for this run
}

// lookedAtRails are the rails of one run.
type lookedAtRails map[railKey]*lookedAt

func (l lookedAtRails) of(k railKey) *lookedAt {
	if l[k] == nil {
		l[k] = &lookedAt{railKey: k}
	}
	return l[k]
}

// railsToAsk tells what is known of the rails before a run. One that is silent is
// left alone for a while, unless somebody asks.
func (s *Scheduler) railsToAsk(ctx context.Context, run *ledger.JobRun) (lookedAtRails, error) {
	known, err := s.Store.RailLooks(ctx)
	if err != nil {
		return nil, err
	}
	rails, now := lookedAtRails{}, s.Store.Now()
	asked := run.Why == ledger.OnRequest || run.Why == ledger.OnCommand
	for _, k := range known {
		l := rails.of(railKey{k.TenantID, k.Rail})
		l.before, l.wasSilent = k, k.SilentSince > 0
		l.done = !asked && k.AskAt > now
	}
	return rails, nil
}

func (s *Scheduler) leftAlone(rail *lookedAt) bool {
	s.counting.Lock()
	defer s.counting.Unlock()
	return rail.silent >= silences
}

// heard takes in whether somebody answered. An adapter that breaks is asked no
// more in this run.
func (l *lookedAt) heard(finding ledger.LookFinding, err error) {
	l.asked = true
	switch {
	case isPanic(err):
		l.breaks, l.silent = err.Error(), silences
	case err == nil && finding != ledger.LookUnreachable:
		l.answered, l.silent = true, 0
		return
	default:
		l.silent++
	}
	l.done = l.done || l.silent >= silences
}

func (l *lookedAt) broke(err error) bool { return l.breaks != "" && isPanic(err) }

// tellOfRails keeps which rails answered, and names each one that did not: one
// problem a rail, however much waits for it.
func (s *Scheduler) tellOfRails(ctx context.Context, run *ledger.JobRun, rails lookedAtRails) error {
	for _, l := range rails {
		if !l.asked {
			continue
		}
		silent := l.silent >= silences || !l.answered
		if err := s.Store.RecordRailLook(ctx, l.tenant, l.rail, !silent, ""); err != nil {
			return err
		}
		if !silent {
			continue
		}
		waiting, err := s.Store.WaitingForRail(ctx, l.tenant, l.rail)
		if err != nil {
			return err
		}
		run.Problems = append(run.Problems, l.problem(waiting))
	}
	slices.Sort(run.Problems)
	return nil
}

// problem is the one sentence about a rail that could not be asked.
func (l *lookedAt) problem(waiting int) string {
	what := "could not be asked"
	if l.breaks != "" {
		what = "could not be asked, since " + l.breaks
	}
	last := "It has not answered a look-up yet."
	if l.before.AnsweredAt > 0 {
		last = "It last answered at " + time.UnixMilli(l.before.AnsweredAt).UTC().Format("2006-01-02 15:04:05") + " UTC."
	}
	return fmt.Sprintf("Rail %s of tenant %s %s; %d unknown wait for it. %s", l.rail, l.tenant, what, waiting, last)
}

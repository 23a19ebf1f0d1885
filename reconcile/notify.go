package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/dispatch"
	"holdfast/store"
	"holdfast/store/ledger"
)

// Wording says how notices read. It belongs to the pages, which use the same
// words.
type Wording struct {
	Notice   func(ledger.News) ledger.Notice
	Together func(ledger.NoticeKind, []ledger.Notice) ledger.Message
}

// notify tells people what waits for them. It reads the action log behind a
// cursor, so that no change of the ledger is slower for it, keeps what is to be
// told, and then sends it: each channel beside the others, and on a channel one
// message after the other.
func (s *Scheduler) notify(ctx context.Context, run *ledger.JobRun) error {
	if s.Words.Notice == nil || !s.tells() {
		return s.Store.StopNotices(ctx)
	}
	if err := s.takeNews(ctx, run); err != nil {
		return err
	}
	var telling sync.WaitGroup
	for tenant, t := range s.Config().Tenants {
		if t.Notify == nil {
			continue
		}
		for _, c := range t.Notify.Channels {
			telling.Go(func() {
				if err := s.contained(func() error { return s.tell(ctx, tenant, t.Notify, c, run) }); err != nil && ctx.Err() == nil {
					s.problem(run, fmt.Sprintf("%s: %v", c.Name, err))
				}
			})
		}
	}
	telling.Wait()
	return s.Store.ForgetNotices(ctx)
}

func (s *Scheduler) tells() bool {
	for _, t := range s.Config().Tenants {
		if t.Notify != nil {
			return true
		}
	}
	return false
}

func (s *Scheduler) problem(run *ledger.JobRun, what string) {
	s.counting.Lock()
	defer s.counting.Unlock()
	run.Problems = append(run.Problems, what)
}

// tell sends what a channel has to tell now, until nothing is left or it does not
// get through.
func (s *Scheduler) tell(ctx context.Context, tenant string, n *dispatch.Notify, c *dispatch.Channel, run *ledger.JobRun) error {
	for ctx.Err() == nil {
		m, err := s.Store.MessageUnderWay(ctx, tenant, c.Name)
		if errors.Is(err, store.ErrNotFound) {
			var any bool
			if m, any, err = s.nextMessage(ctx, tenant, n, c); err == nil && !any {
				return nil
			}
		}
		if err != nil || m.NextAt > s.Store.Now() {
			return err
		}
		s.counting.Lock()
		run.LookedAt++
		s.counting.Unlock()
		if err := c.Deliver(ctx, m); err != nil {
			var why *dispatch.Undelivered
			if ctx.Err() != nil || !errors.As(err, &why) {
				return err // the message stays under way, and comes again
			}
			gaveUp, err := s.Store.NotDelivered(ctx, m, why.Why, why.ForGood)
			if err != nil || !gaveUp {
				return errors.Join(why, err)
			}
			s.problem(run, c.Name+": given up: "+why.Why)
			continue
		}
		if err := s.Store.Delivered(ctx, m); err != nil {
			return err
		}
		s.counting.Lock()
		run.Resolved++
		s.counting.Unlock()
	}
	return ctx.Err()
}

// nextMessage writes down what a channel tells next, of what waits there.
func (s *Scheduler) nextMessage(ctx context.Context, tenant string, n *dispatch.Notify, c *dispatch.Channel) (m ledger.Message, any bool, err error) {
	all, err := s.Store.WaitingNotices(ctx, tenant, c.Name)
	if err != nil || len(all) == 0 {
		return m, false, err
	}
	var over, waiting []ledger.Notice
	for _, w := range all {
		if w.Over {
			over = append(over, w)
		} else {
			waiting = append(waiting, w)
		}
	}
	if err := s.Store.DropNotices(ctx, over); err != nil || len(waiting) == 0 {
		return m, false, err
	}
	sent, err := s.Store.SentAlone(ctx, tenant, c.Name)
	if err != nil {
		return m, false, err
	}
	batch, kind := ledger.NextBatch(waiting, sent, n.Quiet, s.Store.Now())
	if len(batch) == 0 {
		return m, false, nil
	}
	m, err = s.Store.BeginMessage(ctx, s.Words.Together(kind, batch), batch)
	return m, err == nil, err
}

// TestChannels has a harmless notice sent over every channel of a person's tenant,
// now. What came of it stands on the page of settings.
func (s *Scheduler) TestChannels(ctx context.Context, p ledger.PersonRecord) error {
	t := s.Config().Tenants[p.TenantID]
	if t == nil || t.Notify == nil {
		return store.ErrNotFound
	}
	news := ledger.News{Kind: ledger.AboutTest, Zone: t.Notify.Zone, At: s.Store.Now(), Now: s.Store.Now()}
	var notices []ledger.Notice
	for _, c := range t.Notify.Channels {
		notices = append(notices, s.addressed(news, p.TenantID, c, "")) // the store names it
	}
	if err := s.Store.TestNotices(ctx, notices, p); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if _, err := s.Run(ctx, "notify"); err != nil {
		s.Log.Warn("a test notice", "error", err)
	}
	return nil
}

// addressed is a notice for one channel. about makes it one of its kind there.
func (s *Scheduler) addressed(news ledger.News, tenant string, c *dispatch.Channel, about string) ledger.Notice {
	n := s.Words.Notice(news)
	n.TenantID, n.Channel, n.About = tenant, c.Name, about
	n.Lines = slices.Clip(n.Lines)
	return n
}

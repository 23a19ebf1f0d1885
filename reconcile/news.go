package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/dispatch"
	"holdfast/store"
	"holdfast/store/ledger"
)

// takeNews turns what happened into notices, once for every channel that is for
// them: what the log tells, approvals that are about to expire, rails that their
// breakers give a rest, and the day's note.
func (s *Scheduler) takeNews(ctx context.Context, run *ledger.JobRun) error {
	for {
		entries, cursor, err := s.Store.News(ctx)
		if err != nil {
			return err
		}
		var notices []ledger.Notice
		for _, e := range entries {
			found, err := s.fromEntry(ctx, e)
			if err != nil {
				return err
			}
			notices = append(notices, found...)
		}
		caughtUp := len(entries) == 0
		if caughtUp {
			others, err := s.fromElsewhere(ctx)
			if err != nil {
				return err
			}
			notices = append(notices, others...)
		}
		kept, err := s.Store.KeepNotices(ctx, cursor, notices)
		if err != nil {
			return err
		}
		run.Opened += kept
		if caughtUp {
			return nil
		}
	}
}

// fromEntry makes the notices of one entry of the log. What they say of the
// operation is what is true now.
func (s *Scheduler) fromEntry(ctx context.Context, e ledger.Entry) ([]ledger.Notice, error) {
	kind := ledger.NewsIn(e)
	if kind == "" || !s.anyTells(e.TenantID, kind) {
		return nil, nil
	}
	news := ledger.News{Kind: kind, Entry: e, At: e.At}
	if e.OperationID != "" {
		if err := s.aboutOperation(ctx, e.TenantID, e.OperationID, &news); err != nil {
			return nil, err
		}
	}
	switch kind {
	case ledger.AboutOwed:
		r, err := s.Store.RefundOwed(ctx, e.TenantID, e.ObjectID)
		if err != nil {
			return nil, err
		}
		news.Refund = r
	case ledger.AboutException:
		x, err := s.Store.Exception(ctx, e.TenantID, e.ObjectID)
		if err != nil {
			return nil, err
		}
		news.Exception = x.Kind
	}
	return s.forAll(e.TenantID, news, fmt.Sprintf("entry %d", e.Seq)), nil
}

func (s *Scheduler) aboutOperation(ctx context.Context, tenant, id string, news *ledger.News) error {
	o, err := s.Store.Operation(ctx, tenant, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.Status == ledger.UnknownHold {
		if news.Attempts, err = s.Store.Attempts(ctx, tenant, id); err != nil {
			return err
		}
	}
	news.Operation = s.Store.Rulebook(tenant).Actions[o.ActionType].Veil(o)
	return nil
}

// fromElsewhere makes the notices of what no entry of the log tells.
func (s *Scheduler) fromElsewhere(ctx context.Context) (all []ledger.Notice, err error) {
	now := s.Store.Now()
	waiting, err := s.Store.Expiring(ctx, time.Hour.Milliseconds())
	if err != nil {
		return nil, err
	}
	for _, o := range waiting {
		if !ledger.AboutToExpire(o, now) || !s.anyTells(o.TenantID, ledger.AboutExpiring) {
			continue
		}
		news := ledger.News{Kind: ledger.AboutExpiring, At: now}
		if err := s.aboutOperation(ctx, o.TenantID, o.OperationID, &news); err != nil {
			return nil, err
		}
		all = append(all, s.forAll(o.TenantID, news, fmt.Sprintf("expiring %s %d", o.OperationID, o.Asked.ExpiresAt))...)
	}
	for tenant, t := range s.Config().Tenants {
		if t.Notify == nil {
			continue
		}
		for name, r := range t.Rails {
			if until := r.Breaker().OpenUntil(time.UnixMilli(now)); !until.IsZero() {
				news := ledger.News{Kind: ledger.AboutRail, Rail: name, Until: until.UnixMilli(), At: now}
				all = append(all, s.forAll(tenant, news, fmt.Sprintf("rail %s %d", name, now/time.Hour.Milliseconds()))...) // not more often than hourly
			}
		}
		note, err := s.dailyNote(ctx, tenant, t.Notify)
		if err != nil {
			return nil, err
		}
		all = append(all, note...)
	}
	return all, nil
}

// dailyNote is the note of the day, from its time until the day ends, so that it
// also comes where nobody ran at that time. It is told once for a local date,
// whatever the clocks did in it.
func (s *Scheduler) dailyNote(ctx context.Context, tenant string, n *dispatch.Notify) ([]ledger.Notice, error) {
	now := s.Store.Now()
	at, date := ledger.DayAt(max(n.Daily, 0), n.Zone, now)
	if n.Daily < 0 || now < at {
		return nil, nil
	}
	about := "day " + date
	told, err := s.Store.ToldAbout(ctx, tenant, about)
	if err != nil || told >= len(n.Channels) {
		return nil, err
	}
	news := ledger.News{Kind: ledger.AboutDay, At: now, Now: now, Zone: n.Zone, Money: s.Store.Rulebook(tenant).Currencies}
	if news.Day, err = s.Store.Day(ctx, tenant); err != nil {
		return nil, err
	}
	var all []ledger.Notice
	for _, c := range n.Channels {
		all = append(all, s.addressed(news, tenant, c, about))
	}
	return all, nil
}

// forAll addresses news to every channel of a tenant that is for it.
func (s *Scheduler) forAll(tenant string, news ledger.News, about string) (all []ledger.Notice) {
	t := s.Config().Tenants[tenant]
	news.Now, news.Zone, news.Money = s.Store.Now(), t.Notify.Zone, s.Store.Rulebook(tenant).Currencies
	for _, c := range t.Notify.Channels {
		if c.Tells(news.Kind) {
			all = append(all, s.addressed(news, tenant, c, about))
		}
	}
	return all
}

func (s *Scheduler) anyTells(tenant string, kind ledger.NoticeKind) bool {
	t := s.Config().Tenants[tenant]
	if t == nil || t.Notify == nil {
		return false
	}
	for _, c := range t.Notify.Channels {
		if c.Tells(kind) {
			return true
		}
	}
	return false
}

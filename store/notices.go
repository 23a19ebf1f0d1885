package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"holdfast/store/ledger"
)

// NoticeCursor is up to where the log was read for notices, and to where it may
// be read now.
type NoticeCursor struct{ From, To int64 }

// noticeBatch bounds one reading of the log, and the commit that follows it.
const noticeBatch = 500

// News reads the entries of the log that are to be told, those after the cursor.
// It reads beside the writer, and what it found is brought back with KeepNotices.
// Without a cursor it begins at the end: nobody wants to be told last year.
func (s *Store) News(ctx context.Context) (news []ledger.Entry, c NoticeCursor, err error) {
	err = s.readers.QueryRowContext(ctx, `
		select coalesce((select cast(value as bigint) from meta where key = 'noticed_up_to'), -1), coalesce((select max(seq) from action_log), 0)`).Scan(&c.From, &c.To)
	if err != nil || c.From < 0 || c.From >= c.To {
		return nil, c, err
	}
	rows, err := s.readers.QueryContext(ctx, `
		select `+entryColumns+` from action_log
		where seq > $1 and seq <= $2 and at >= $3
		  and (object in ('refund_owed', 'exception') or object = 'operation' and from_status <> to_status and to_status in ('awaiting_approval', 'unknown_hold'))
		order by seq limit $4`, c.From, c.To, s.now()-ledger.NoticeLife.Milliseconds(), noticeBatch)
	if err != nil {
		return nil, c, err
	}
	if news, err = collect(rows, scanEntry); len(news) == noticeBatch {
		c.To = news[noticeBatch-1].Seq
	}
	return news, c, err
}

// KeepNotices stores notices and moves the cursor, together. What a channel was
// told about before is left out. kept is how many are new.
func (s *Store) KeepNotices(ctx context.Context, c NoticeCursor, notices []ledger.Notice) (kept int, err error) {
	if c.From == c.To && len(notices) == 0 {
		return 0, nil
	}
	return kept, s.change(ctx, func(t *tx) error {
		kept = 0
		var at int64
		if err := t.row(`select coalesce((select cast(value as bigint) from meta where key = 'noticed_up_to'), -1)`).Scan(&at); err != nil {
			return err
		}
		if at != c.From {
			return ErrStale // another node was faster
		}
		for _, n := range notices {
			added, err := t.addNotice(n)
			if err != nil {
				return err
			}
			kept += added
		}
		return t.exec(`insert into meta (key, value) values ('noticed_up_to', $1) on conflict (key) do update set value = excluded.value`, fmt.Sprint(c.To))
	})
}

// StopNotices forgets the cursor, where no channel is configured.
func (s *Store) StopNotices(ctx context.Context) error {
	var n int
	if err := s.readers.QueryRowContext(ctx, `select count(*) from meta where key = 'noticed_up_to'`).Scan(&n); err != nil || n == 0 {
		return err
	}
	return s.change(ctx, func(t *tx) error { return t.exec(`delete from meta where key = 'noticed_up_to'`) })
}

func (t *tx) addNotice(n ledger.Notice) (added int, err error) {
	count, err := t.affected(`
		insert into notices (id, tenant_id, channel, about, kind, operation_id, body, at) values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (tenant_id, channel, about) do nothing`,
		t.s.rowIDs.next(t.now), n.TenantID, n.Channel, n.About, n.Kind, n.Operation, text(n), n.At)
	return int(count), err
}

// Expiring lists what nobody has decided and what is over within a while.
func (s *Store) Expiring(ctx context.Context, within int64) ([]ledger.Operation, error) {
	return s.find(ctx, `status = 'awaiting_approval' and asked_until > $1 and asked_until <= $2 order by asked_until`, s.now(), s.now()+within)
}

// WaitingNotices are those that a channel has still to tell, in order, marked
// where somebody answered them meanwhile.
func (s *Store) WaitingNotices(ctx context.Context, tenant, channel string) ([]ledger.Notice, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select n.id, n.about, n.body, coalesce(o.status, '')
		from notices n left join operations o on o.tenant_id = n.tenant_id and o.operation_id = n.operation_id and n.operation_id <> ''
		where n.tenant_id = $1 and n.channel = $2 and n.message_id = 0 order by n.id limit $3`, tenant, channel, 2*noticeBatch)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (n ledger.Notice, err error) {
		var id int64
		var about, body string
		var status ledger.Status
		err = r.Scan(&id, &about, &body, &status)
		fromText(body, &n)
		n.ID, n.TenantID, n.Channel, n.About, n.Over = id, tenant, channel, about, !n.Kind.StillOpen(status)
		return n, err
	})
}

// DropNotices marks what was answered before it was told.
func (s *Store) DropNotices(ctx context.Context, notices []ledger.Notice) error {
	if len(notices) == 0 {
		return nil
	}
	return s.change(ctx, func(t *tx) error { return t.into(notices, -1) })
}

func (t *tx) into(notices []ledger.Notice, message int64) error {
	for _, n := range notices {
		if err := t.exec(`update notices set message_id = $1 where id = $2 and message_id = 0`, message, n.ID); err != nil {
			return err
		}
	}
	return nil
}

// TestNotices asks for a harmless notice over each of the channels. What is under
// way there is tried at once: whoever presses this wants to see what works.
func (s *Store) TestNotices(ctx context.Context, notices []ledger.Notice, p ledger.PersonRecord) error {
	return s.change(ctx, func(t *tx) error {
		if allowed, why := ledger.MayTestChannels(p); !allowed {
			return fmt.Errorf("%w: %s", ErrForbidden, why)
		}
		var channels []string
		for _, n := range notices {
			if n.TenantID != p.TenantID {
				return ErrNotFound
			}
			n.About = randomID("test_")
			if _, err := t.addNotice(n); err != nil {
				return err
			}
			if err := t.exec(`update notice_messages set next_at = $1 where tenant_id = $2 and channel = $3 and state = 'open'`, t.now, n.TenantID, n.Channel); err != nil {
				return err
			}
			channels = append(channels, n.Channel)
		}
		return t.log(ledger.Entry{TenantID: p.TenantID, Object: "channel", ObjectID: "all", Event: "test", ActorKind: ledger.Person, Actor: p.Email,
			Sentence: fmt.Sprintf("%s sent a test notice over every channel.", p.Display()), Fact: factText(map[string]any{"channels": channels})})
	})
}

// noticesKept is how long it stays known what was told.
const noticesKept = 30 * 24 * 60 * 60 * 1000

// ForgetNotices drops what was told long ago. Their ids begin with the time.
func (s *Store) ForgetNotices(ctx context.Context) error {
	old := s.now() - noticesKept
	var first int64
	err := s.readers.QueryRowContext(ctx, `select at from notices order by id limit 1`).Scan(&first)
	if errors.Is(err, sql.ErrNoRows) || err == nil && first > old {
		return nil
	}
	if err != nil {
		return err
	}
	return s.change(ctx, func(t *tx) error {
		if err := t.exec(`delete from notices where at < $1 and message_id <> 0`, old); err != nil {
			return err
		}
		return t.exec(`delete from notice_messages where state <> 'open' and ended_at < $1`, old)
	})
}

// ChannelStates says how each of a tenant's channels fared last.
func (s *Store) ChannelStates(ctx context.Context, tenant string) (map[string]ledger.ChannelState, error) {
	all := map[string]ledger.ChannelState{}
	rows, err := s.readers.QueryContext(ctx, `
		select channel, coalesce(max(case when state = 'delivered' then ended_at end), 0), sum(case when state = 'given_up' then 1 else 0 end),
		       max(case when state = 'open' then next_at else 0 end), coalesce(max(case when problem <> '' then tried_at end), 0)
		from notice_messages where tenant_id = $1 group by channel`, tenant)
	if err != nil {
		return nil, err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var name string
		var c ledger.ChannelState
		err := r.Scan(&name, &c.DeliveredAt, &c.GaveUp, &c.NextAt, &c.ProblemAt)
		all[name] = c
		return struct{}{}, err
	})
	if err != nil {
		return nil, err
	}
	return all, errors.Join(s.lastProblems(ctx, tenant, all), s.countWaiting(ctx, tenant, all))
}

func (s *Store) lastProblems(ctx context.Context, tenant string, all map[string]ledger.ChannelState) error {
	rows, err := s.readers.QueryContext(ctx, `
		select channel, problem from notice_messages
		where id in (select max(id) from notice_messages where tenant_id = $1 and problem <> '' group by channel)`, tenant)
	if err != nil {
		return err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var name, problem string
		err := r.Scan(&name, &problem)
		c := all[name]
		c.Problem = problem
		all[name] = c
		return struct{}{}, err
	})
	return err
}

func (s *Store) countWaiting(ctx context.Context, tenant string, all map[string]ledger.ChannelState) error {
	rows, err := s.readers.QueryContext(ctx, `
		select channel, count(*), min(at) from (
			select channel, at from notices where tenant_id = $1 and message_id = 0
			union all select channel, since from notice_messages where tenant_id = $1 and state = 'open') as open
		group by channel`, tenant)
	if err != nil {
		return err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var name string
		var n int
		since := int64(math.MaxInt64)
		err := r.Scan(&name, &n, &since)
		c := all[name]
		c.Waiting, c.Since = n, since
		all[name] = c
		return struct{}{}, err
	})
	return err
}

// ToldAbout counts the channels of a tenant that something is kept for.
func (s *Store) ToldAbout(ctx context.Context, tenant, about string) (n int, err error) {
	return n, s.readers.QueryRowContext(ctx, `select count(*) from notices where tenant_id = $1 and about = $2`, tenant, about).Scan(&n)
}

// Day is what a daily note says of a tenant.
func (s *Store) Day(ctx context.Context, tenant string) (d ledger.Day, err error) {
	c, err := s.Counts(ctx, tenant)
	if err != nil {
		return d, err
	}
	d = ledger.Day{Unknown: c.Unknown, Oldest: c.OldestSince, AtRisk: c.AtRisk, Owed: c.OwedEntries, OwedSums: c.Owed, Approvals: c.Approvals}
	lines, err := s.WaitingExceptions(ctx, tenant)
	if err != nil {
		return d, err
	}
	err = s.readers.QueryRowContext(ctx, `
		select (select count(*) from refunds_owed where tenant_id = $1 and open > 0 and direction = 'we_owe' and due_at > 0 and due_at < $2),
		       (select coalesce(max(answered_at), 0) from rail_looks where tenant_id = $1),
		       (select coalesce(max(visible_at), 0) from statements where tenant_id = $1 and undone_at = 0),
		       (select count(*) from exceptions where tenant_id = $1 and answered_at = 0)`, tenant, s.now()).
		Scan(&d.Overdue, &d.LookedAt, &d.Statement, &d.Exceptions)
	d.Exceptions += lines
	return d, err
}

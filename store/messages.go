package store

import (
	"context"
	"fmt"
	"time"

	"holdfast/store/ledger"
)

// MessageUnderWay is the one message that a channel is sending; [ErrNotFound]:
// there is none.
func (s *Store) MessageUnderWay(ctx context.Context, tenant, channel string) (ledger.Message, error) {
	var m ledger.Message
	var body string
	var id, since, made, attempts, next int64
	var name, problem string
	err := s.readers.QueryRowContext(ctx, `
		select id, name, body, since, made_at, attempts, next_at, problem from notice_messages
		where tenant_id = $1 and channel = $2 and state = 'open'`, tenant, channel).
		Scan(&id, &name, &body, &since, &made, &attempts, &next, &problem)
	fromText(body, &m)
	m.ID, m.Name, m.Since, m.MadeAt, m.Attempts, m.NextAt, m.Problem = id, name, since, made, int(attempts), next, problem
	return m, notFound(err)
}

// BeginMessage writes a message down before anything of it is sent, and takes
// its notices off what waits. Sent again after a crash, it has the same name.
func (s *Store) BeginMessage(ctx context.Context, m ledger.Message, notices []ledger.Notice) (ledger.Message, error) {
	return m, s.change(ctx, func(t *tx) error {
		m.ID, m.Name, m.MadeAt, m.NextAt = t.s.rowIDs.next(t.now), randomID("msg_"), t.now, t.now
		if err := t.into(notices, m.ID); err != nil {
			return err
		}
		return t.exec(`
			insert into notice_messages (id, name, tenant_id, channel, kind, body, since, made_at, attempts, next_at, problem, tried_at, state, ended_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, 0, $8, '', 0, 'open', 0)`,
			m.ID, m.Name, m.TenantID, m.Channel, m.Kind, text(m), m.Since, m.MadeAt)
	})
}

// Delivered ends a message whose receiver took it.
func (s *Store) Delivered(ctx context.Context, m ledger.Message) error {
	return s.change(context.WithoutCancel(ctx), func(t *tx) error {
		return t.exec(`
			update notice_messages set state = 'delivered', attempts = attempts + 1, tried_at = $1, ended_at = $1 where id = $2 and state = 'open'`, t.now, m.ID)
	})
}

// NotDelivered keeps why a message did not get through. It is tried again after a
// while, until its oldest notice is a day old, or refused for good; then it is
// given up, which the log tells.
func (s *Store) NotDelivered(ctx context.Context, m ledger.Message, problem string, forGood bool) (gaveUp bool, err error) {
	return gaveUp, s.change(context.WithoutCancel(ctx), func(t *tx) error {
		next := t.now + ledger.NoticeAfter(m.Attempts+1).Milliseconds()
		gaveUp = forGood || t.now >= m.Since+ledger.NoticeLife.Milliseconds()
		state, ended := "open", int64(0)
		if gaveUp {
			state, ended = "given_up", t.now
		}
		n, err := t.affected(`
			update notice_messages set state = $1, attempts = attempts + 1, tried_at = $2, ended_at = $3, next_at = $4, problem = $5 where id = $6 and state = 'open'`,
			state, t.now, ended, next, problem, m.ID)
		if err != nil || n == 0 || !gaveUp {
			return err
		}
		return t.log(ledger.Entry{TenantID: m.TenantID, Object: "channel", ObjectID: m.Channel, Event: "give_up", ActorKind: ledger.Clock, Actor: "notify",
			Sentence: fmt.Sprintf("A notice could not be told over %s: %s", m.Channel, problem), Fact: factText(map[string]any{"message": m.Name, "kind": m.Kind, "notices": m.Count})})
	})
}

// SentAlone counts what a channel told alone in the last minute, by kind.
func (s *Store) SentAlone(ctx context.Context, tenant, channel string) (map[ledger.NoticeKind]int, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select kind, count(*) from notice_messages
		where tenant_id = $1 and channel = $2 and state = 'delivered' and ended_at > $3 group by kind`,
		tenant, channel, s.now()-time.Minute.Milliseconds())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	sent := map[ledger.NoticeKind]int{}
	for rows.Next() {
		var kind ledger.NoticeKind
		var n int
		if err := rows.Scan(&kind, &n); err != nil {
			return nil, err
		}
		sent[kind] = n
	}
	return sent, rows.Err()
}

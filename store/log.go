package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"holdfast/store/ledger"
)

// log appends one entry. Numbers have no gap, and the time never runs backwards:
// readers may rely on both.
func (t *tx) log(e ledger.Entry) error {
	if t.seq == 0 {
		err := t.row(`select seq, at from action_log order by seq desc limit 1`).Scan(&t.seq, &t.logged)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	t.seq++
	t.logged = max(t.logged, t.now)
	const insert = `
		insert into action_log (seq, tenant_id, operation_id, object, object_id, event, actor_kind, actor, from_status, to_status, reason, sentence, fact, at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`
	return t.exec(insert, t.seq, e.TenantID, e.OperationID, e.Object, e.ObjectID, e.Event, e.ActorKind, e.Actor,
		e.From, e.To, e.Reason, e.Sentence, e.Fact, t.logged)
}

const entryColumns = `seq, tenant_id, operation_id, object, object_id, event, actor_kind, actor, from_status, to_status, reason, sentence, fact, at`

func scanEntry(rows *sql.Rows) (e ledger.Entry, err error) {
	return e, rows.Scan(&e.Seq, &e.TenantID, &e.OperationID, &e.Object, &e.ObjectID, &e.Event, &e.ActorKind, &e.Actor,
		&e.From, &e.To, &e.Reason, &e.Sentence, &e.Fact, &e.At)
}

// lastEntry is the last of these events that happened to a rail, a run or the
// like: who did it and why. The zero entry: none did.
func (s *Store) lastEntry(ctx context.Context, tenant, object, id string, events ...string) (e ledger.Entry, err error) {
	args := []any{tenant, object, id}
	for _, event := range events {
		args = append(args, event)
	}
	rows, err := s.readers.QueryContext(ctx, `
		select `+entryColumns+` from action_log
		where tenant_id = $1 and operation_id = '' and object = $2 and object_id = $3 and event in (`+strings.TrimPrefix(placeholders(4, len(events)), ",")+`)
		order by seq desc limit 1`, args...)
	if err != nil {
		return e, err
	}
	found, err := collect(rows, scanEntry)
	if err != nil || len(found) == 0 {
		return e, err
	}
	return found[0], nil
}

// Timeline is everything that happened to one operation, oldest first.
func (s *Store) Timeline(ctx context.Context, tenant, operation string) ([]ledger.Entry, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+entryColumns+` from action_log
		where tenant_id = $1 and operation_id = $2 and operation_id <> ''
		order by seq limit 1000`, tenant, operation)
	if err != nil {
		return nil, err
	}
	return collect(rows, scanEntry)
}

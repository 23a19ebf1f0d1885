package store

import (
	"context"
	"database/sql"
	"time"

	"holdfast/store/ledger"
)

// sampled bounds what is read to tell how a provider answers: the newest of a
// tenant's operations, whatever there are.
const sampled = 1000

const newestOperations = `
	with newest as (
		select tenant_id, operation_id, rail, created_at, unknown_since, ever_unknown from operations
		where tenant_id = $1 order by id desc limit $3
	)`

// RailTraffic says of each rail of a tenant what waits, what is unknown, and how
// its provider answered lately.
func (s *Store) RailTraffic(ctx context.Context, tenant string) (map[string]*ledger.RailTraffic, error) {
	all := map[string]*ledger.RailTraffic{}
	of := func(rail string) *ledger.RailTraffic {
		if all[rail] == nil {
			all[rail] = &ledger.RailTraffic{}
		}
		return all[rail]
	}
	since := s.now() - (24 * time.Hour).Milliseconds()
	for _, fill := range []func() error{
		func() error { return s.countOpen(ctx, tenant, of) },
		func() error { return s.fillAnswers(ctx, tenant, since, of) },
		func() error { return s.fillCleared(ctx, tenant, since, of) },
	} {
		if err := fill(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Store) countOpen(ctx context.Context, tenant string, of func(string) *ledger.RailTraffic) error {
	now := s.now()
	// What was sent, or may have been before a restore, may have happened.
	rows, err := s.readers.QueryContext(ctx, `
		with open as (
			select rail, status, attempts > 0 or quarantined = 1 as sent, created_at,
			       case when unknown_since > 0 then unknown_since else updated_at end as since
			from operations where tenant_id = $1 and status in ('ready', 'in_flight', 'unknown', 'unknown_hold')
		)
		select rail, status, sent, count(*), min(created_at), min(since),
		       sum(case when since > $2 then 1 else 0 end), sum(case when since > $3 then 1 else 0 end), sum(case when since > $4 then 1 else 0 end)
		from open group by rail, status, sent`, tenant,
		now-ledger.AgeSteps[0].Milliseconds(), now-ledger.AgeSteps[1].Milliseconds(), now-ledger.AgeSteps[2].Milliseconds())
	if err != nil {
		return err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var rail string
		var status ledger.Status
		var sent bool
		var n int
		var oldest, since int64
		var younger [len(ledger.AgeSteps)]int
		err := r.Scan(&rail, &status, &sent, &n, &oldest, &since, &younger[0], &younger[1], &younger[2])
		switch t := of(rail); {
		case status == ledger.Ready:
			t.Waiting += n
			t.OldestWaitingAt = earliest(t.OldestWaitingAt, oldest)
		case status == ledger.InFlight:
			t.Sending += n
		case status == ledger.UnknownHold && !sent:
			t.Held += n
		default:
			t.Unknown += n
			t.OldestUnknownAt = earliest(t.OldestUnknownAt, since)
			below := 0
			for i, y := range younger {
				t.UnknownAges[i] += y - below
				below = y
			}
			t.UnknownAges[len(younger)] += n - below
		}
		return struct{}{}, err
	})
	return err
}

func earliest(a, b int64) int64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

func (s *Store) fillAnswers(ctx context.Context, tenant string, since int64, of func(string) *ledger.RailTraffic) error {
	rows, err := s.readers.QueryContext(ctx, newestOperations+`
		select n.rail, a.marked_at, a.outcome_at - a.marked_at
		from newest n join attempts a on a.tenant_id = n.tenant_id and a.operation_id = n.operation_id
		where a.outcome in ('receipt', 'declined') and a.marked_at >= $2`, tenant, since, sampled)
	if err != nil {
		return err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var rail string
		var a ledger.AnsweredIn
		err := r.Scan(&rail, &a.At, &a.Took)
		of(rail).Answers = append(of(rail).Answers, a)
		return struct{}{}, err
	})
	return err
}

func (s *Store) fillCleared(ctx context.Context, tenant string, since int64, of func(string) *ledger.RailTraffic) error {
	rows, err := s.readers.QueryContext(ctx, newestOperations+`
		select n.rail, min(l.at) - n.unknown_since
		from newest n join action_log l on l.tenant_id = n.tenant_id and l.operation_id = n.operation_id and l.operation_id <> ''
		where n.ever_unknown = 1 and n.unknown_since > 0 and n.created_at >= $2 and l.to_status in ('confirmed', 'rejected') and l.from_status <> l.to_status
		group by n.rail, n.operation_id, n.unknown_since`, tenant, since, sampled)
	if err != nil {
		return err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var rail string
		var took int64
		err := r.Scan(&rail, &took)
		of(rail).Cleared = append(of(rail).Cleared, max(took, 0))
		return struct{}{}, err
	})
	return err
}

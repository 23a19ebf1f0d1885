package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"holdfast/store/ledger"
)

// Swept counts what a sweep did.
type Swept struct{ LookedAt, Resolved, Held int }

// Sweep ends what time ends: leases of attempts whose worker is silent, and
// approvals nobody gave. It resolves no outcome: an attempt whose lease ended
// may have happened. Each operation is a change of its own, so that one that
// cannot be swept keeps no other waiting.
func (s *Store) Sweep(ctx context.Context, by ledger.Holder) (Swept, error) {
	var swept Swept
	var failed []error
	for _, kind := range []struct {
		where string
		sweep func(*tx, *Swept, ledger.Operation, ledger.Holder) error
	}{
		{`status = 'in_flight' and lease_until <= $1 order by lease_until`, (*tx).sweepSilent},
		{`status = 'awaiting_approval' and asked_until > 0 and asked_until <= $1 order by asked_until`, (*tx).sweepUndecided},
		{`status = 'unknown' and next_look_at = 0 and next_send_at = 0 and lease_until <= $1 order by lease_until`, (*tx).sweepStale},
		{`(status = 'unknown' and next_send_at > 0 or status = 'ready' and attempts > 0) and next_send_at <= $1 - 60000 and lease_until <= $1 order by next_send_at`, (*tx).sweepOverdue},
	} {
		listed, err := s.find(ctx, kind.where, s.now())
		if err != nil {
			return swept, err
		}
		for _, was := range listed {
			var one Swept
			err := s.change(ctx, func(t *tx) error {
				one = Swept{}
				o, err := t.operation(was.TenantID, was.OperationID)
				if err != nil || o.Status != was.Status || o.LeaseUntil != was.LeaseUntil {
					return err // somebody was here first
				}
				return kind.sweep(t, &one, o, by)
			})
			if err != nil {
				failed = append(failed, fmt.Errorf("%s of %s: %w", was.OperationID, was.TenantID, err))
				continue
			}
			swept = Swept{swept.LookedAt + one.LookedAt, swept.Resolved + one.Resolved, swept.Held + one.Held}
		}
	}
	return swept, errors.Join(failed...)
}

func (t *tx) sweepSilent(swept *Swept, o ledger.Operation, by ledger.Holder) error {
	return t.sweepOne(swept, o, ledger.Lose, by, "The worker fell silent and its lease ended. It may have happened.")
}

func (t *tx) sweepUndecided(swept *Swept, o ledger.Operation, by ledger.Holder) error {
	return t.sweepOne(swept, o, ledger.Expire, by, "Nobody decided in time. Nothing was sent.")
}

// sweepStale replans an unknown operation for which nothing is planned, so that
// none waits for ever without an owner.
func (t *tx) sweepStale(swept *Swept, o ledger.Operation, by ledger.Holder) error {
	if o.NextLookAt != 0 || o.NextSendAt != 0 {
		return nil
	}
	swept.LookedAt++
	rules := t.s.Rulebook(o.TenantID)
	rail, _ := rules.Route(o)
	o, err := t.plan(o, rules, rail, by, 0)
	if err == nil && o.Status == ledger.UnknownHold {
		swept.Held++
	}
	return err
}

// sweepOverdue looks at what was to be sent again a while ago and was not: its
// rail is paused or resting, has no retries left or is not configured any more.
// While it may still be sent it keeps its place; after that it waits for nobody,
// and a person is told.
func (t *tx) sweepOverdue(swept *Swept, o ledger.Operation, by ledger.Holder) error {
	rules := t.s.Rulebook(o.TenantID)
	rail, known := rules.Route(o)
	reason, sentence := ledger.BudgetExhausted, "The time this rail allows for one operation is over, and nobody could send it again."
	switch {
	case !known:
		reason, sentence = ledger.Inconclusive, "Its rail is not configured any more."
	case o.Status == ledger.Unknown:
		planned, hold, _ := rail.Plan(o, rules.Harmless(o), rules.Timing.UnknownFor, t.now, 0)
		if hold == "" && planned.NextSendAt != 0 {
			return nil
		}
		o.NextSendAt, o.NextLookAt = 0, 0
		return t.sweepStale(swept, o, by)
	case o.Released || t.now-o.FirstMarkAt < rail.Limits.MaxElapsed.Milliseconds():
		return nil
	}
	swept.LookedAt++
	swept.Held++
	_, err := t.hold(o, by, reason, sentence)
	return err
}

func (t *tx) sweepOne(swept *Swept, o ledger.Operation, e ledger.Event, by ledger.Holder, sentence string) error {
	swept.LookedAt++
	o, err := t.happenAfterSend(o, e, "", by, sentence, nil, false, 0)
	if err != nil {
		return err
	}
	if o.Status == ledger.UnknownHold {
		swept.Held++
	} else {
		swept.Resolved++
	}
	return nil
}

// find reads a bounded number of operations by a condition and an order; the rest
// comes with the next sweep.
func (s *Store) find(ctx context.Context, where string, args ...any) ([]ledger.Operation, error) {
	rows, err := s.readers.QueryContext(ctx, selectSwept+where+` limit 1000`, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.Operation, error) { return scanOperation(r) })
}

func (t *tx) find(where string, args ...any) ([]ledger.Operation, error) {
	rows, err := t.rows(selectSwept+where+` limit 1000`, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.Operation, error) { return scanOperation(r) })
}

const selectSwept = `select ` + operationColumns + ` from operations where `

// Recover is called once, before the first claim, by the process that holds the
// lock: every lease in the ledger belongs to a process that is known to be dead.
// What was under way becomes unknown at once, and claims that were never marked
// cost nothing.
func (s *Store) Recover(ctx context.Context) (Swept, error) {
	var swept Swept
	by := ledger.Holder{Kind: ledger.Clock, Name: "start"}
	err := s.change(ctx, func(t *tx) error {
		swept = Swept{}
		if err := t.exec(`update operations set lease_until = 0, lease_owner = '' where lease_until > 0 and status in ('ready', 'unknown')`); err != nil {
			return err
		}
		for {
			orphans, err := t.find(`status = 'in_flight' order by lease_until`)
			if err != nil || len(orphans) == 0 {
				return err
			}
			for _, o := range orphans {
				if err := t.sweepOne(&swept, o, ledger.Lose, by, "The process that was sending it ended. It may have happened."); err != nil {
					return err
				}
			}
		}
	})
	return swept, err
}

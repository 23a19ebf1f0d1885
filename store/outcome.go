package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"holdfast/store/ledger"
)

// Settle records what came back from an attempt. Its context is not the
// caller's to cancel: an answer that was read is recorded, whoever went away.
// body is the answer as received. jitter spreads the next try: it gives a
// number in [0, n).
func (s *Store) Settle(ctx context.Context, m Marked, answer ledger.Answer, body []byte, backoff time.Duration) (ledger.Operation, error) {
	var settled ledger.Operation
	err := s.change(context.WithoutCancel(ctx), func(t *tx) error {
		o, err := t.operation(m.Operation.TenantID, m.Operation.OperationID)
		if err != nil {
			return err
		}
		// As it stands now: the same answer may come twice, or after another one.
		a, err := t.attempt(m.Attempt)
		if err != nil {
			return err
		}
		m.Attempt = a
		rail, _ := t.s.Rulebook(o.TenantID).Route(o)
		var mismatches []string
		if answer.Receipt != nil {
			mismatches = ledger.Compare(o, *answer.Receipt, rail.Compared)
			other, err := t.receiptOf(o, answer.Receipt.ID)
			if err != nil {
				return err
			}
			if other != "" {
				mismatches = append(mismatches, "/id")
				answer.Sentence += fmt.Sprintf(" %s is the receipt of %s already: one payment proves one purchase.", answer.Receipt.ID, other)
			}
		}
		fenceHolds := o.Epoch == m.Attempt.Epoch && o.Fence == m.Attempt.Fence && o.LeaseUntil > t.now
		s := ledger.Settle(o, m.Attempt, answer, mismatches, fenceHolds)
		if err := t.keepAnswer(o, m.Attempt, answer, s, body); err != nil {
			return err
		}
		settled, err = t.settle(o, m, answer, s, backoff)
		return err
	})
	return settled, err
}

// keepAnswer closes the attempt's own row and stores what was received as
// evidence, whatever it means.
func (t *tx) keepAnswer(o ledger.Operation, a ledger.Attempt, answer ledger.Answer, s ledger.Settlement, body []byte) error {
	err := t.exec(`
		update attempts set outcome = $1, outcome_at = $2, http_status = $3, sentence = $4
		where tenant_id = $5 and operation_id = $6 and number = $7`,
		s.Outcome, t.now, answer.HTTPStatus, answer.Sentence, o.TenantID, o.OperationID, a.Number)
	if err != nil {
		return err
	}
	return t.addEvidence(ledger.Evidence{TenantID: o.TenantID, OperationID: o.OperationID, Attempt: a.Number,
		Source: "answer", Finding: string(answer.Finding), Sentence: answer.Sentence, Body: body, By: a.Worker})
}

func (t *tx) settle(o ledger.Operation, m Marked, answer ledger.Answer, s ledger.Settlement, backoff time.Duration) (ledger.Operation, error) {
	by := ledger.Holder{Kind: ledger.Worker, Name: m.Attempt.Worker}
	o.Sighted = o.Sighted || s.Sighted
	if s.Late != "" {
		_, err := t.lateEffect(o, *answer.Receipt, lateCause(o), by)
		return o, err
	}
	// What this attempt resolves counts before the guards are asked: a refusal of
	// the only attempt leaves none unresolved.
	if s.Outcome.Resolved() {
		if err := t.recount(&o, m.Attempt.Number); err != nil {
			return o, err
		}
	}
	if s.Event == "" {
		return t.settleQuietly(o, m, answer, s, by, backoff)
	}
	o.LookOnly = o.LookOnly || s.LookOnly
	return t.happenAfterSend(o, s.Event, s.Reason, by, s.Sentence, answer.Receipt, s.Accepted, backoff)
}

// settleQuietly records an answer that changes no status. What the provider took
// on is never sent again, under whatever fence it said so.
func (t *tx) settleQuietly(o ledger.Operation, m Marked, answer ledger.Answer, s ledger.Settlement, by ledger.Holder, backoff time.Duration) (ledger.Operation, error) {
	was := o
	o.LookOnly = o.LookOnly || s.LookOnly
	if s.Accepted {
		o.Accepted, o.Released = true, false
		if o.Status != ledger.InFlight { // a claim that was to send it again is void
			o.LeaseUntil, o.LeaseOwner = 0, ""
		}
	}
	err := t.note(was, o, "answer", by, s.Sentence, map[string]any{"attempt": m.Attempt.Number, "finding": answer.Finding})
	if err != nil || !s.Accepted && !s.LookOnly || o.Status != ledger.Unknown {
		return o, err
	}
	rules := t.s.Rulebook(o.TenantID)
	rail, _ := rules.Route(o)
	return t.plan(o, rules, rail, by, backoff)
}

// lateCause says what an effect is that an operation did not need: its second
// one, or the first of one that had ended without.
func lateCause(o ledger.Operation) ledger.RefundCause {
	if o.Status == ledger.Confirmed {
		return ledger.CauseDuplicateCharge
	}
	return ledger.CauseLateEffect
}

// recount sets the number of unresolved attempts from their own rows, so that it
// can never drift from them.
func (t *tx) recount(o *ledger.Operation, attempt int) error {
	return t.row(`select count(*) from attempts where tenant_id = $1 and operation_id = $2 and outcome in ('open', 'unknown')`,
		o.TenantID, o.OperationID).Scan(&o.OpenAttempts)
}

// happenAfterSend applies an event that concerns an operation of which
// something was sent, and plans what comes next.
func (t *tx) happenAfterSend(o ledger.Operation, event ledger.Event, reason ledger.Reason, by ledger.Holder, sentence string, receipt *ledger.Receipt, accepted bool, backoff time.Duration) (ledger.Operation, error) {
	rules := t.s.Rulebook(o.TenantID)
	rail, _ := rules.Route(o)
	open, lookOnly := o.OpenAttempts, o.LookOnly
	o, err := t.happen(o, happening{event: event, by: by, reason: reason, sentence: sentence, fact: receipt, with: func(o *ledger.Operation) {
		o.OpenAttempts, o.LookOnly = open, lookOnly
		o.LeaseUntil, o.LeaseOwner = 0, ""
		o.NextSendAt, o.NextLookAt = 0, 0
		o.Accepted = o.Accepted || accepted
		switch o.Status {
		case ledger.Confirmed:
			o.Receipt = receipt
			o.NextLookAt = secondLook(*o, rail, t.now)
		case ledger.Ready:
			o.NextSendAt = t.now + backoff.Milliseconds()
		case ledger.Unknown:
			if o.UnknownSince == 0 || !o.EverUnknown {
				o.UnknownSince = t.now
			}
			o.EverUnknown = true
		case ledger.UnknownHold:
			o.EverUnknown = true
		case ledger.Rejected:
			if o.EverUnknown {
				o.NextLookAt = secondLook(*o, rail, t.now)
			}
		}
	}})
	if err != nil || o.Status != ledger.Unknown {
		return o, err
	}
	return t.plan(o, rules, rail, by, backoff)
}

// secondLook is when to look once more at what was ever unknown, past the
// rail's lag, so that a second effect shows. Zero where it never was, or where
// nobody can be asked.
func secondLook(o ledger.Operation, rail ledger.Rail, now int64) int64 {
	if !o.EverUnknown || !rail.Lookup.Possible {
		return 0
	}
	return max(now, o.LastSendBy) + (rail.Lookup.Lag + 30*time.Second).Milliseconds()
}

// plan decides what happens next to an unknown operation, or hands it to a
// person where nothing can.
func (t *tx) plan(o ledger.Operation, rules *ledger.Rulebook, rail ledger.Rail, by ledger.Holder, backoff time.Duration) (ledger.Operation, error) {
	was := o
	planned, hold, sentence := rail.Plan(o, rules.Harmless(o), rules.Timing.UnknownFor, t.now, backoff)
	if hold != "" {
		if by.Kind == ledger.Person { // who said "still unknown" did not hold it: the rail's limits do
			by = ledger.Holder{Kind: ledger.Clock, Name: "plan"}
		}
		return t.happen(o, happening{event: ledger.GiveUp, by: by, reason: hold, sentence: sentence,
			with: func(o *ledger.Operation) {
				o.NextLookAt, o.NextSendAt = 0, 0
				o.LeaseUntil, o.LeaseOwner = 0, ""
			}})
	}
	return planned, t.save(was, planned)
}

// lateEffect records an effect that an operation did not need. Of one that had
// ended without any, a person is told as well. It tells how many entries and
// exceptions that opened.
func (t *tx) lateEffect(o ledger.Operation, r ledger.Receipt, cause ledger.RefundCause, by ledger.Holder) (opened int, err error) {
	if other, err := t.receiptOf(o, r.ID); err != nil || other != "" {
		return 0, err // it is what that operation did, and not too many
	}
	settled, over, err := t.paidAfterAll(o, r)
	if err != nil || settled && over == 0 {
		return 0, err
	}
	if settled {
		r.Amount = &over
	}
	sentence := fmt.Sprintf("The provider also holds %s: a refund is owed (%s).", r.ID, cause)
	if cause == ledger.CauseLateEffect {
		instead, why, err := t.boughtElsewhere(o, r)
		if err != nil {
			return 0, err
		}
		if instead.OperationID != "" {
			cause = ledger.CauseCrossRailDuplicate
			sentence = fmt.Sprintf("%s happened after all, as %s on %s, and %s on %s was bought instead (%s): it is owed back.",
				o.OperationID, r.ID, o.Rail, instead.OperationID, instead.Rail, why)
		}
	}
	owed, err := t.owe(o, r, cause, by, sentence)
	if err != nil {
		return 0, err
	}
	if owed {
		opened++
	}
	if o.Status != ledger.Rejected {
		return opened, nil
	}
	if !owed { // no money, or known already: asked about once
		known, err := t.wasAsked(o, ledger.HappenedAfterAll)
		if err != nil || known {
			return opened, err
		}
	}
	asked, err := t.openException(o, ledger.HappenedAfterAll, fmt.Sprintf("The provider holds %s, of an operation that ended without it: it happened after all.", cmp.Or(r.ID, "an effect")), by)
	if asked {
		opened++
	}
	return opened, err
}

const attemptColumns = `tenant_id, operation_id, number, epoch, fence, worker, provider_key, address, account, request_sha256, marked_at, send_by, outcome, outcome_at, http_status, sentence`

func scanAttempt(row scanner) (a ledger.Attempt, err error) {
	err = row.Scan(&a.TenantID, &a.OperationID, &a.Number, &a.Epoch, &a.Fence, &a.Worker, &a.ProviderKey, &a.Address, &a.Account,
		&a.RequestSHA256, &a.MarkedAt, &a.SendBy, &a.Outcome, &a.OutcomeAt, &a.HTTPStatus, &a.Sentence)
	return a, notFound(err)
}

func (t *tx) attempt(a ledger.Attempt) (ledger.Attempt, error) {
	return scanAttempt(t.row(`select `+attemptColumns+` from attempts where tenant_id = $1 and operation_id = $2 and number = $3`,
		a.TenantID, a.OperationID, a.Number))
}

// Attempts lists the deliveries of an operation, first to last.
func (s *Store) Attempts(ctx context.Context, tenant, operation string) ([]ledger.Attempt, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+attemptColumns+` from attempts where tenant_id = $1 and operation_id = $2 order by number`, tenant, operation)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.Attempt, error) { return scanAttempt(r) })
}

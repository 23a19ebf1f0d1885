package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"holdfast/store/ledger"
)

const selectDueLooks = `
	with due as (
		select id, row_number() over (partition by tenant_id, rail order by next_look_at) as place from operations
		where next_look_at > 0 and next_look_at <= $1 and status in ('unknown', 'confirmed', 'rejected'))
	select ` + operationColumns + ` from operations
	where id in (select id from due where place <= $2)
	order by next_look_at`

// DueLooks lists operations whose look-up is due, at most limit of each rail:
// unknown ones, and ended ones that are looked at once more because they were
// unknown before.
func (s *Store) DueLooks(ctx context.Context, limit int) ([]ledger.Operation, error) {
	rows, err := s.readers.QueryContext(ctx, selectDueLooks, s.now(), limit)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.Operation, error) { return scanOperation(r) })
}

// RecordLook stores what asking the provider showed, and what it means. It
// tells the operation as it is afterwards.
func (s *Store) RecordLook(ctx context.Context, tenant, id string, look ledger.Look, by ledger.Holder, backoff time.Duration) (ledger.Operation, error) {
	var after ledger.Operation
	err := s.change(context.WithoutCancel(ctx), func(t *tx) error {
		o, err := t.operation(tenant, id)
		if err != nil {
			return err
		}
		if err := t.addEvidence(ledger.Evidence{TenantID: tenant, OperationID: id, Attempt: o.Attempts,
			Source: "lookup", Finding: string(look.Finding), Sentence: look.Sentence, Body: look.Body, By: by.Name}); err != nil {
			return err
		}
		after, err = t.weigh(o, look, by, backoff)
		return err
	})
	return after, err
}

func (t *tx) weigh(o ledger.Operation, look ledger.Look, by ledger.Holder, backoff time.Duration) (ledger.Operation, error) {
	rules := t.s.Rulebook(o.TenantID)
	rail, _ := rules.Route(o)
	w, other, err := t.provesOnce(o, rail.Weigh(o, look))
	if err != nil {
		return o, err
	}
	o.Sighted = o.Sighted || look.Shows(o)
	if o.Status.Final() {
		if other != "" {
			w.Receipt = nil // it is that operation's, and no money is owed for it
		}
		return t.lookBack(o, look, w, by)
	}
	if w.Event == ledger.Receive || w.Event == ledger.Mismatch { // extras have a stamp of their own
		for _, extra := range w.Extra {
			if _, err := t.lateEffect(o, extra, ledger.CauseDuplicateCharge, by); err != nil {
				return o, err
			}
		}
	}
	if w.Event != "" && o.May(w.Event, by.Kind, t.now) {
		return t.happenAfterSend(o, w.Event, w.Reason, by, w.Sentence, w.Receipt, false, backoff)
	}
	return t.lookedInVain(o, look, w, by, rules, rail, backoff)
}

// provesOnce refuses a receipt that is another operation's already, and names
// that one.
func (t *tx) provesOnce(o ledger.Operation, w ledger.Weighing) (ledger.Weighing, string, error) {
	if w.Receipt == nil {
		return w, "", nil
	}
	other, err := t.receiptOf(o, w.Receipt.ID)
	if err != nil || other == "" || w.Event != ledger.Receive {
		return w, other, err
	}
	w.Event, w.Reason = ledger.Mismatch, ledger.ReceiptMismatch
	w.Sentence = fmt.Sprintf("%s is the receipt of %s already: one payment proves one purchase.", w.Receipt.ID, other)
	return w, other, nil
}

// lookedInVain counts the look and plans the next step. An unreachable provider
// changes nothing but when to ask again.
func (t *tx) lookedInVain(o ledger.Operation, look ledger.Look, w ledger.Weighing, by ledger.Holder, rules *ledger.Rulebook, rail ledger.Rail, backoff time.Duration) (ledger.Operation, error) {
	was := o
	if look.Finding != ledger.LookUnreachable {
		o.Looks++
	}
	o.Detail = w.Sentence
	o.Version++
	if err := t.note(was, o, "look", by, w.Sentence, map[string]any{"finding": look.Finding}); err != nil {
		return o, err
	}
	if o.Status != ledger.Unknown {
		return o, nil
	}
	if look.Finding == ledger.LookUnreachable {
		patient := *rules
		patient.Timing.UnknownFor = max(patient.Timing.UnknownFor, outageFor)
		rules = &patient
	}
	o, err := t.plan(o, rules, rail, by, backoff)
	if err != nil || o.NextLookAt == 0 || look.Finding != ledger.LookUnreachable {
		return o, err
	}
	was = o
	o.NextLookAt = max(o.NextLookAt, o.AskAgain(t.now))
	return o, t.save(was, o)
}

// outageFor is how long an operation waits for a provider that cannot be asked,
// before a person is asked instead: an outage is one problem of the rail, and not
// one for everything that waits for it.
const outageFor = 24 * time.Hour

// lookBack is the one more look at an operation that ended: an effect that is
// not its receipt is money found twice.
func (t *tx) lookBack(o ledger.Operation, look ledger.Look, w ledger.Weighing, by ledger.Holder) (ledger.Operation, error) {
	was := o
	if o.Status == ledger.Confirmed && (look.Finding == ledger.LookAbsent || look.ShowsReceipt(o)) {
		if _, _, err := t.recheck(o, look, by); err != nil {
			return o, err
		}
		w.Extra, w.Receipt = nil, nil // weighed
	}
	found := w.Extra
	if w.Receipt != nil && !w.Receipt.Presumed {
		found = append(found, *w.Receipt)
	}
	for _, r := range found {
		if o.Receipt != nil && o.Receipt.ID == r.ID {
			continue
		}
		if _, err := t.lateEffect(o, r, lateCause(o), by); err != nil {
			return o, err
		}
	}
	o.NextLookAt = 0
	if look.Finding == ledger.LookUnreachable {
		o.NextLookAt = t.now + time.Minute.Milliseconds()
	}
	return o, t.note(was, o, "look", by, "Looked once more. "+w.Sentence, map[string]any{"finding": look.Finding})
}

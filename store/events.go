package store

import (
	"context"
	"errors"
	"fmt"

	"holdfast/store/ledger"
)

// WeighEvent makes of a kept event what it means, in one commit: the evidence,
// the change of the operation, and that it is done. The event comes with the names
// that were read in it; read turns it into evidence about the operation that
// they lead to. Whoever weighs it second changes nothing. Both operations are
// empty where it names none that we know.
func (s *Store) WeighEvent(ctx context.Context, e ledger.ProviderEvent, read func(ledger.Operation) ledger.Look) (before, after ledger.Operation, err error) {
	err = s.change(context.WithoutCancel(ctx), func(t *tx) error {
		before, after = ledger.Operation{}, ledger.Operation{}
		kept, err := scanEvent(t.row(`select `+eventColumns+` from events where id = $1`, e.ID))
		if err != nil || kept.State != ledger.EventKept {
			return err
		}
		kept.Stamp, kept.ReceiptID = e.Stamp, e.ReceiptID
		o, err := t.namedBy(kept)
		if errors.Is(err, ErrNotFound) {
			kept.State, kept.Sentence = ledger.EventUnmatched, "It names no operation of this rail."
			return t.placeEvent(kept)
		}
		if err != nil {
			return err
		}
		before = o
		look := read(o)
		if kept.Contradicts {
			look = ledger.Look{Finding: ledger.LookInconclusive, Body: look.Body,
				Sentence: fmt.Sprintf("The provider sent its event %s again with another content. Both are kept; this one changes nothing.", kept.EventID)}
		}
		kept.State, kept.OperationID = ledger.EventMatched, o.OperationID
		if after, kept.Sentence, err = t.hear(o, kept, look); err != nil {
			return err
		}
		return t.placeEvent(kept)
	})
	return before, after, err
}

func (t *tx) placeEvent(e ledger.ProviderEvent) error {
	return t.exec(`
		update events set state = $1, stamp = $2, receipt_id = $3, operation_id = $4, sentence = $5, weighed_at = $6
		where id = $7 and state = 'kept'`, e.State, e.Stamp, e.ReceiptID, e.OperationID, e.Sentence, t.now, e.ID)
}

// hear applies an event to its operation. A record in it obeys the comparison of
// a look-up, and counts whatever the fence. Nothing else that a provider says of
// its own accord changes a status: events come late, twice and in any order.
func (t *tx) hear(o ledger.Operation, e ledger.ProviderEvent, look ledger.Look) (ledger.Operation, string, error) {
	by := ledger.Holder{Kind: ledger.Reconciler, Name: "event"}
	rail, _ := t.s.Rulebook(o.TenantID).Route(o)
	w := ledger.Weighing{Sentence: look.Sentence}
	o.Sighted = o.Sighted || e.Signed && !e.Contradicts && e.Stamp == o.OrderID
	if look.Finding == ledger.LookFound {
		w = rail.Weigh(o, look)
		if w.Event == ledger.Receive {
			w.Sentence = "It carries our stamp and agrees with what was approved."
		}
		w.Sentence = look.Sentence + " " + w.Sentence
	}
	w, other, err := t.provesOnce(o, w)
	if err != nil {
		return o, "", err
	}
	if w.Receipt != nil && o.Receipt != nil && w.Receipt.ID == o.Receipt.ID {
		w.Sentence = look.Sentence + " It is the receipt we hold."
	}
	finding := map[ledger.Event]string{ledger.Receive: "found", ledger.Mismatch: "mismatch", "": "note"}[w.Event]
	if err := t.addEvidence(ledger.Evidence{TenantID: o.TenantID, OperationID: o.OperationID, Attempt: o.Attempts,
		Source: "event", Finding: finding, Sentence: w.Sentence, Body: look.Body, By: o.Rail + " " + e.EventID}); err != nil {
		return o, "", err
	}
	if w.Receipt != nil && o.Status.Final() && other == "" {
		if err := t.hearLate(o, *w.Receipt, by); err != nil {
			return o, "", err
		}
	}
	if w.Receipt != nil && !o.Status.Final() && o.Attempts == 0 && !o.Quarantined {
		if o, err = t.quarantine(o, *w.Receipt); err != nil {
			return o, "", err
		}
	}
	if w.Event != "" && o.May(w.Event, by.Kind, t.now) {
		o, err = t.happenAfterSend(o, w.Event, w.Reason, by, w.Sentence, w.Receipt, false, 0)
		return o, w.Sentence, err
	}
	o, err = t.heardOf(o, e, w, by)
	return o, w.Sentence, err
}

// hearLate is a record of an operation that has ended: what is not its receipt
// is money to be looked after.
func (t *tx) hearLate(o ledger.Operation, r ledger.Receipt, by ledger.Holder) error {
	if o.Receipt != nil && o.Receipt.ID == r.ID {
		return nil
	}
	_, err := t.lateEffect(o, r, lateCause(o), by)
	return err
}

// quarantine is for a record with our stamp on an operation of which this ledger
// sent nothing. Only we make that stamp, so another copy of the ledger sent it,
// and this one is older than the send: what holds after a restore holds here.
func (t *tx) quarantine(o ledger.Operation, r ledger.Receipt) (ledger.Operation, error) {
	return t.happen(o, happening{event: ledger.Restore, by: ledger.Holder{Kind: ledger.Clock, Name: "event"}, fact: r,
		sentence: fmt.Sprintf("The provider shows %s with our stamp, and nothing of it was sent from here: this ledger is older than the send.", r.ID),
		with: func(o *ledger.Operation) {
			o.NextSendAt, o.NextLookAt = 0, 0
			o.LeaseUntil, o.LeaseOwner = 0, ""
		}})
}

// heardOf records an event that changes no status, and makes a look-up due where
// one may show more. The version rises while somebody may still decide: who
// decides must have seen it.
func (t *tx) heardOf(o ledger.Operation, e ledger.ProviderEvent, w ledger.Weighing, by ledger.Holder) (ledger.Operation, error) {
	was := o
	if !o.Status.Final() {
		o.Version++
	}
	rail, _ := t.s.Rulebook(o.TenantID).Route(o)
	o.NextLookAt = lookAfterEvent(o, e, rail, t.now)
	return o, t.note(was, o, "event", by, w.Sentence, map[string]any{"event": e.EventID, "signed": e.Signed})
}

// lookAfterEvent is when to look next at an operation that an event spoke of. Of
// one that ended it is asked only if the event may be about an effect that should
// not be, and never before a look that is planned anyway.
func lookAfterEvent(o ledger.Operation, e ledger.ProviderEvent, rail ledger.Rail, now int64) int64 {
	another := o.Receipt == nil || e.ReceiptID != "" && e.ReceiptID != o.Receipt.ID
	switch {
	case !rail.Lookup.Possible || e.Contradicts:
	case o.Status == ledger.Unknown && (o.NextLookAt == 0 || o.NextLookAt > now):
		return now
	case o.Status.Final() && o.Attempts > 0 && another && o.NextLookAt == 0:
		return now + rail.Lookup.Lag.Milliseconds()
	}
	return o.NextLookAt
}

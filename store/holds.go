package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast/store/ledger"
)

// clear is a decision about an operation of which something was sent.
func (s *Store) clear(ctx context.Context, tenant, id string, d Decision, e ledger.Event, f func(*tx, ledger.Operation, ledger.Holder, bool) (ledger.Operation, error)) (ledger.Operation, error) {
	return s.decide(ctx, tenant, id, d, func(t *tx, o ledger.Operation, by ledger.Holder) (ledger.Operation, error) {
		self, err := t.mayDecideHold(o, e, d.Person)
		if err != nil {
			return o, err
		}
		return f(t, o, by, self)
	})
}

// personEvidence keeps what a person says as evidence, with the person's name.
func (t *tx) personEvidence(o ledger.Operation, finding, sentence string, d Decision) error {
	body := text(map[string]any{"receipt_id": d.ReceiptID, "amount": d.Amount, "second_receipt_id": d.SecondReceiptID, "reason": d.Reason})
	return t.addEvidence(ledger.Evidence{TenantID: o.TenantID, OperationID: o.OperationID, Attempt: o.Attempts,
		Source: "person", Finding: finding, Sentence: sentence, Body: []byte(body), By: d.Person.Email})
}

// Happened records that the effect was seen at the provider: a receipt by a
// person's hand.
func (s *Store) Happened(ctx context.Context, tenant, id string, d Decision) (ledger.Operation, error) {
	return s.clear(ctx, tenant, id, d, ledger.SayHappened, func(t *tx, o ledger.Operation, by ledger.Holder, _ bool) (ledger.Operation, error) {
		r, err := t.personReceipt(o, d)
		if err != nil {
			return o, err
		}
		sentence := fmt.Sprintf("%s says it happened: %s. %s", d.Person.Display(), d.ReceiptID, d.Reason)
		if err := t.personEvidence(o, "found", sentence, d); err != nil {
			return o, err
		}
		after, err := t.happenAfterSend(o, ledger.SayHappened, "", by, sentence, r, false, 0)
		if err != nil || r.Amount == nil || *r.Amount <= o.Terms.Amount {
			return after, err
		}
		over := *r.Amount - o.Terms.Amount
		_, err = t.openRefund(after, ledger.Receipt{ID: r.ID, Amount: &over, Currency: r.Currency}, ledger.CauseOvercharge, by)
		return after, err
	})
}

// personReceipt is what a person read at the provider, and nothing that they
// did not say: recipient and reference were not compared.
func (t *tx) personReceipt(o ledger.Operation, d Decision) (*ledger.Receipt, error) {
	if d.ReceiptID == "" {
		return nil, fmt.Errorf("%w: the provider's id is needed", ErrForbidden)
	}
	if err := needReason(d); err != nil {
		return nil, err
	}
	if err := t.plausible(o, d); err != nil {
		return nil, err
	}
	return &ledger.Receipt{ID: d.ReceiptID, Amount: d.Amount, Currency: o.Terms.Currency}, t.unusedReceipt(o, d.ReceiptID)
}

// largestAmount is what every reader of JSON takes exactly.
const largestAmount = 1<<53 - 1

// plausible refuses an amount that is a slip of the hand. One that differs from
// what was approved has to be meant.
func (t *tx) plausible(o ledger.Operation, d Decision) error {
	money := t.s.Rulebook(o.TenantID).Currencies
	switch {
	case !o.Terms.HasAmount:
		return nil
	case d.Amount == nil:
		return fmt.Errorf("%w: the amount at the provider is needed", ErrForbidden)
	case *d.Amount <= 0 || *d.Amount > largestAmount:
		return fmt.Errorf("%w: the amount must be more than nothing and at most %s", ErrForbidden, money.Format(largestAmount, o.Terms.Currency))
	case *d.Amount != o.Terms.Amount && !d.Differs:
		return fmt.Errorf("%w: you typed %s; %s was approved", ErrForbidden, money.Format(*d.Amount, o.Terms.Currency), money.Format(o.Terms.Amount, o.Terms.Currency))
	}
	return nil
}

// receiptOf is the operation that has a receipt already. Only payments are
// asked about: a record that is written twice is one record.
func (t *tx) receiptOf(o ledger.Operation, id string) (other string, err error) {
	if !o.Terms.HasAmount || id == "" {
		return "", nil
	}
	err = t.row(`
		select operation_id from operations
		where tenant_id = $1 and receipt_id = $2 and receipt_id <> '' and rail = $3 and effect = $4 and operation_id <> $5 limit 1`,
		o.TenantID, id, o.Rail, o.Effect, o.OperationID).Scan(&other)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return other, err
}

// unusedReceipt refuses a payment as the proof of a second purchase. A person types
// it, or copies it from where it stands in capitals: that is the same one.
func (t *tx) unusedReceipt(o ledger.Operation, id string) error {
	for _, spelled := range []string{id, strings.ToLower(id), strings.ToUpper(id)} {
		other, err := t.receiptOf(o, spelled)
		if err != nil {
			return err
		}
		if other != "" {
			return fmt.Errorf("%w: %s is the receipt of %s already; one payment proves one purchase", ErrForbidden, spelled, other)
		}
		e, err := t.refundOf(o.TenantID, o.Rail, spelled)
		if err == nil && e.OperationID != "" && e.OperationID != o.OperationID && o.Terms.HasAmount {
			return fmt.Errorf("%w: %s is owed back already (%s): it is an effect too many of something else", ErrForbidden, spelled, e.ID)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// HappenedTwice records two effects: the first is the receipt, the second is
// owed back.
func (s *Store) HappenedTwice(ctx context.Context, tenant, id string, d Decision) (ledger.Operation, error) {
	return s.clear(ctx, tenant, id, d, ledger.SayHappened, func(t *tx, o ledger.Operation, by ledger.Holder, _ bool) (ledger.Operation, error) {
		if d.SecondReceiptID == "" || ledger.ProofKey(d.SecondReceiptID) == ledger.ProofKey(d.ReceiptID) {
			return o, fmt.Errorf("%w: two different ids of the provider are needed", ErrForbidden)
		}
		if d.Amount == nil && o.Terms.HasAmount {
			d.Amount = &o.Terms.Amount // the form asks for ids only: both are what was approved
		}
		r, err := t.personReceipt(o, d)
		if err != nil {
			return o, err
		}
		sentence := fmt.Sprintf("%s says it happened twice: %s and %s. %s", d.Person.Display(), d.ReceiptID, d.SecondReceiptID, d.Reason)
		if err := t.personEvidence(o, "found", sentence, d); err != nil {
			return o, err
		}
		if err := t.unusedReceipt(o, d.SecondReceiptID); err != nil {
			return o, err
		}
		second := *r
		second.ID = d.SecondReceiptID
		after, err := t.happenAfterSend(o, ledger.SayHappened, "", by, sentence, r, false, 0)
		if err != nil {
			return o, err
		}
		_, err = t.openRefund(after, second, ledger.CauseDuplicateCharge, by)
		return after, err
	})
}

// DidNotHappen closes a hold as not executed. The lifecycle allows it only once
// no attempt can still act.
func (s *Store) DidNotHappen(ctx context.Context, tenant, id string, d Decision) (ledger.Operation, error) {
	return s.clear(ctx, tenant, id, d, ledger.SayNotHappened, func(t *tx, o ledger.Operation, by ledger.Holder, _ bool) (ledger.Operation, error) {
		if err := needReason(d); err != nil {
			return o, err
		}
		sentence := fmt.Sprintf("%s says it did not happen: %s", d.Person.Display(), d.Reason)
		if err := t.personEvidence(o, "absent", sentence, d); err != nil {
			return o, err
		}
		return t.happenAfterSend(o, ledger.SayNotHappened, "", by, sentence, nil, false, 0)
	})
}

// SendAgain releases one more send of the same operation: the same key, the
// same bytes. Its earlier attempts stay unresolved.
func (s *Store) SendAgain(ctx context.Context, tenant, id string, d Decision) (ledger.Operation, error) {
	return s.clear(ctx, tenant, id, d, ledger.SendAgain, func(t *tx, o ledger.Operation, by ledger.Holder, self bool) (ledger.Operation, error) {
		if err := needReason(d); err != nil {
			return o, err
		}
		if o.Accepted {
			return o, fmt.Errorf("%w: the provider accepted it and owes us the outcome; it is never sent again", ledger.ErrNotAllowed)
		}
		rail, _ := t.s.Rulebook(tenant).Route(o)
		recognised, _, _ := rail.RecognisesAt(o, t.late())
		sentence := fmt.Sprintf("%s releases one more send: %s", d.Person.Display(), d.Reason)
		if err := t.personEvidence(o, "note", sentence, d); err != nil {
			return o, err
		}
		return t.happen(o, happening{event: ledger.SendAgain, by: by, sentence: sentence, fact: releaseFact{self, recognised},
			with: func(o *ledger.Operation) {
				o.Released, o.LookOnly, o.Claims, o.NextSendAt = true, false, 0, t.now
				o.UnknownSince = 0 // if it is lost once more, the time to find out begins anew
			}})
	})
}

// StillUnknown hands a hold back to the scheduler, which looks again and sends
// nothing: the person who said so saw a button that promises it.
func (s *Store) StillUnknown(ctx context.Context, tenant, id string, d Decision) (ledger.Operation, error) {
	return s.clear(ctx, tenant, id, d, ledger.StillUnknown, func(t *tx, o ledger.Operation, by ledger.Holder, _ bool) (ledger.Operation, error) {
		rules := t.s.Rulebook(tenant)
		o, err := t.happen(o, happening{event: ledger.StillUnknown, by: by,
			sentence: fmt.Sprintf("%s: still unknown. %s", d.Person.Display(), d.Reason),
			with:     func(o *ledger.Operation) { o.UnknownSince, o.EverUnknown, o.LookOnly = t.now, true, true }})
		if err != nil {
			return o, err
		}
		rail, _ := rules.Route(o)
		return t.plan(o, rules, rail, by, 0)
	})
}

// LookAgain asks for a look-up now.
func (s *Store) LookAgain(ctx context.Context, tenant, id string, d Decision) (ledger.Operation, error) {
	return s.clear(ctx, tenant, id, d, ledger.StillUnknown, func(t *tx, o ledger.Operation, by ledger.Holder, _ bool) (ledger.Operation, error) {
		rail, _ := t.s.Rulebook(tenant).Route(o)
		if o.Status != ledger.Unknown || !rail.Lookup.Possible {
			return o, fmt.Errorf("%w: there is nothing to ask", ledger.ErrNotAllowed)
		}
		was := o
		o.NextLookAt = t.now
		return o, t.note(was, o, "look_again", by, fmt.Sprintf("%s asks to look again now.", d.Person.Display()), nil)
	})
}

// SamePurchase makes the operation an alias of an earlier one that it
// overlaps: whoever asks for it is shown that one's state and result.
func (s *Store) SamePurchase(ctx context.Context, tenant, id string, d Decision) (ledger.Operation, error) {
	return s.clear(ctx, tenant, id, d, ledger.Merge, func(t *tx, o ledger.Operation, by ledger.Holder, _ bool) (ledger.Operation, error) {
		original, err := t.original(o, d.Original)
		if err != nil {
			return o, err
		}
		return t.happen(o, happening{event: ledger.Merge, by: by, fact: map[string]any{"duplicate_of": original, "reason": d.Reason},
			sentence: fmt.Sprintf("%s says it is the same purchase as %s.", d.Person.Display(), original),
			with:     func(o *ledger.Operation) { o.DuplicateOf = original }})
	})
}

// original checks the choice of the earlier operation, and follows it to the
// one that stands for it now: whoever replaced it, or whose alias it became.
func (t *tx) original(o ledger.Operation, chosen string) (string, error) {
	if chosen == "" && len(o.Overlaps) > 0 {
		chosen = o.Overlaps[0].OperationID
	}
	if !slices.ContainsFunc(o.Overlaps, func(v ledger.Overlapped) bool { return v.OperationID == chosen }) {
		return "", fmt.Errorf("%w: %q is not one of the operations it overlaps", ErrForbidden, chosen)
	}
	stands, err := t.stands(o.TenantID, chosen)
	switch {
	case err != nil:
		return "", err
	case stands.OperationID == o.OperationID:
		return "", fmt.Errorf("%w: this operation stands for %s itself, so it cannot be the repeat of it; say that it is a different purchase to let it go on, or reject it", ErrForbidden, chosen)
	case stands.Status == ledger.Rejected:
		return "", fmt.Errorf("%w: %s was rejected and nothing stands for it, so it has no result to use; say that this is a different purchase, or reject it", ErrForbidden, chosen)
	}
	return stands.OperationID, nil
}

// DifferentPurchase lets a held operation go on: policy then allows it, or asks.
// A policy that denies it now still asks a person: one of them just decided.
func (s *Store) DifferentPurchase(ctx context.Context, tenant, id string, d Decision) (ledger.Operation, error) {
	return s.clear(ctx, tenant, id, d, ledger.Separate, func(t *tx, o ledger.Operation, by ledger.Holder, self bool) (ledger.Operation, error) {
		if err := needReason(d); err != nil {
			return o, err
		}
		rules := t.s.Rulebook(tenant)
		decision, err := t.judge(o, rules)
		if err != nil {
			return o, err
		}
		event, asked := ledger.SeparateAsk, decision.Asked
		if decision.Then == "allow" {
			event = ledger.Separate
		} else if asked.Approvals == 0 {
			asked = ledger.DefaultAsked(t.now)
		}
		o, err = t.happen(o, happening{event: event, by: by, fact: map[string]any{"self_approved": self, "reason": d.Reason},
			sentence: fmt.Sprintf("%s says it is a different purchase: %s. %s", d.Person.Display(), d.Reason, decision.Sentence),
			with: func(o *ledger.Operation) {
				o.PolicyVersion, o.PolicyRow, o.Asked, o.Claims = rules.Policy.Version, decision.Row, asked, 0
			}})
		if err != nil {
			return o, err
		}
		if err := t.separate(o, d, by); err != nil {
			return o, err
		}
		if first, err := t.strandedBy(o); err != nil || first == "" {
			return o, err
		} else if err := t.strand(o, first); err != nil {
			return o, err
		}
		return t.operation(o.TenantID, o.OperationID)
	})
}

func scanApproval(rows *sql.Rows) (a ledger.Approval, err error) {
	var self int
	var pointers string
	err = rows.Scan(&a.ID, &a.TenantID, &a.OperationID, &a.Decision, &a.Fingerprint, &a.PolicyVersion, &a.RailAddress, &a.RailAccount,
		&a.PersonID, &a.PersonEmail, &self, &a.Reason, &a.DecidedAt, &a.ExpiresAt, &a.SpentAt, &a.VoidedAt, &pointers)
	a.SelfApproved = self == 1
	fromText(pointers, &a.Pointers)
	return a, err
}

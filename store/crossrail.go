package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"holdfast/store/ledger"
)

// comparer is who the log names for what two rails show together.
var comparer = ledger.Holder{Kind: ledger.Reconciler, Name: "cross-rail"}

// crossRail looks, in the change that confirms an operation, for the same
// purchase confirmed on another rail. All but the earliest are owed back, once
// each; what is only alike, a person is asked about. Overlap holds nearly all of
// these before they are sent: what comes here was let go, found late, or allowed.
func (t *tx) crossRail(o ledger.Operation) (opened int, err error) {
	if !o.Terms.HasAmount || o.Receipt == nil || o.KnownAs() == "" && o.Step == "" {
		return 0, nil
	}
	all, err := t.onOtherRails(o)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	own, err := t.paid(o)
	if err != nil {
		return 0, err
	}
	all = append(all, own)
	slices.SortFunc(all, func(a, b ledger.Paid) int { // the same every time that it is asked
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Operation.CreatedAt, b.Operation.CreatedAt), cmp.Compare(a.Operation.OperationID, b.Operation.OperationID))
	})
	var kept []ledger.Paid
	for _, later := range all {
		known, err := t.givenBack(later.Operation)
		if err != nil {
			return opened, err
		}
		if known { // that one is owed back already, and stands in nobody's way
			continue
		}
		n, one, err := t.paidTwice(kept, later)
		opened += n
		if err != nil {
			return opened, err
		}
		if !one {
			kept = append(kept, later)
		}
	}
	return opened, nil
}

// paidTwice compares a payment with the earlier ones that are kept, and opens what
// that makes owed.
func (t *tx) paidTwice(kept []ledger.Paid, later ledger.Paid) (opened int, one bool, err error) {
	o := later.Operation
	for _, earlier := range kept {
		e := earlier.Operation
		twin, why, err := t.twin(earlier, later)
		switch {
		case err != nil:
			return opened, false, err
		case twin == ledger.OnePurchase:
			sentence := fmt.Sprintf("%s paid on %s what %s had paid on %s (%s): it is owed back.", o.OperationID, o.Rail, e.OperationID, e.Rail, why)
			owed, err := t.owe(o, *o.Receipt, ledger.CauseCrossRailDuplicate, comparer, sentence)
			if owed {
				return opened + 1, true, err
			}
			// Its entry says something else of the same effect: too much was taken, say.
			twin, why = ledger.PerhapsOne, why+"; a part of it is owed back for another reason"
			if err != nil {
				return opened, false, err
			}
		}
		if twin == ledger.PerhapsOne {
			asked, err := t.askOnce(o, fmt.Sprintf("%s on %s and %s on %s may be one purchase paid twice: %s. If so, report it as owed.", e.OperationID, e.Rail, o.OperationID, o.Rail, why))
			if asked {
				opened++
			}
			if err != nil {
				return opened, false, err
			}
		}
	}
	return opened, false, nil
}

// askOnce asks about a contradiction, and not again once it was answered.
func (t *tx) askOnce(o ledger.Operation, sentence string, evidence ...string) (asked bool, err error) {
	var n int
	if err := t.row(`select count(*) from exceptions where tenant_id = $1 and operation_id = $2 and kind = $3 and sentence = $4`,
		o.TenantID, o.OperationID, ledger.Contradiction, sentence).Scan(&n); err != nil || n > 0 {
		return false, err
	}
	return t.openException(o, ledger.Contradiction, sentence, comparer, evidence...)
}

// twin compares two payments; what a person has called two purchases is two.
func (t *tx) twin(a, b ledger.Paid) (ledger.Twinship, string, error) {
	rules := t.s.Rulebook(a.Operation.TenantID)
	twin, why := a.Twin(b, max(rules.OverlapWindow(a.Operation), rules.OverlapWindow(b.Operation)))
	if twin == ledger.TwoPurchases {
		return twin, "", nil
	}
	apart, err := t.saidApart(a.Operation, b.Operation)
	if err == nil && !apart {
		apart, err = t.saidApart(b.Operation, a.Operation)
	}
	if apart {
		return ledger.TwoPurchases, "", err
	}
	return twin, why, err
}

// saidApart reports whether a person has said of an operation, or of one that it
// replaces, that it is another purchase than an earlier one.
func (t *tx) saidApart(o, earlier ledger.Operation) (apart bool, err error) {
	for range longestSuccession {
		if apart, err = t.toldApart(o, earlier.OperationID); err != nil || apart || o.Replaces == "" {
			return apart, err
		}
		if o, err = t.operation(o.TenantID, o.Replaces); err != nil {
			return false, err
		}
	}
	return false, nil
}

// compared bounds how many payments of one reference are looked at.
const compared = 100

// onOtherRails are the confirmed payments on other rails that share a reference,
// or a step of one run, with an operation. One search by index for each.
func (t *tx) onOtherRails(o ledger.Operation) ([]ledger.Paid, error) {
	rows, err := t.rows(selectOnOtherRails, o.TenantID, o.Effect, o.KnownAs(), o.Step, o.RunID, o.ParentRunID, o.Rail, compared)
	if err != nil {
		return nil, err
	}
	found, err := collect(rows, func(r *sql.Rows) (ledger.Operation, error) { return scanOperation(r) })
	if err != nil {
		return nil, err
	}
	for _, v := range o.Overlaps {
		if slices.ContainsFunc(found, func(f ledger.Operation) bool { return f.OperationID == v.OperationID }) {
			continue
		}
		e, err := t.operation(o.TenantID, v.OperationID)
		if err != nil {
			return nil, err
		}
		if e.Status == ledger.Confirmed && e.Rail != o.Rail {
			found = append(found, e)
		}
	}
	var all []ledger.Paid
	for _, f := range found {
		if f.Receipt == nil {
			continue
		}
		p, err := t.paid(f)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

const selectOnOtherRails = `
	with alike as (
		select id from operations
		where tenant_id = $1 and effect = $2 and reference_key = $3 and reference_key <> ''
		union all select id from operations
		where tenant_id = $1 and effect = $2 and step = $4 and step <> '' and run_id = $5 and run_id <> ''
		union all select id from operations
		where tenant_id = $1 and effect = $2 and step = $4 and step <> '' and run_id = $6 and run_id <> ''
		union all select id from operations
		where tenant_id = $1 and effect = $2 and step = $4 and step <> '' and parent_run_id = $5 and parent_run_id <> ''
	)
	select ` + operationColumns + ` from operations
	where id in (select id from alike) and rail <> $7 and status = 'confirmed' and amount is not null
	order by id desc limit $8`

// paid tells when what an operation did was sent: by the attempt whose answer
// showed it, else by the first one.
func (t *tx) paid(o ledger.Operation) (ledger.Paid, error) {
	p := ledger.Paid{Operation: o}
	err := t.row(`select coalesce(max(marked_at), 0) from attempts where tenant_id = $1 and operation_id = $2 and outcome = $3`,
		o.TenantID, o.OperationID, ledger.AttemptReceipt).Scan(&p.At)
	if p.At == 0 {
		p.At = max(o.FirstMarkAt, o.CreatedAt)
	}
	return p, err
}

// givenBack reports whether all of an operation's effect is owed back already, or
// was given back, for whatever reason.
func (t *tx) givenBack(o ledger.Operation) (bool, error) {
	e, err := t.refundOf(o.TenantID, o.Rail, o.Receipt.ID)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && e.Cause != ledger.CauseOvercharge && e.Amount >= ledger.ComesTo(o), err
}

// boughtElsewhere is the confirmed operation on another rail that stands for the
// purchase of one that was rejected, where the effect of that one turns up. What
// was rejected is what nobody counts on, so its effect goes back, whenever it
// was sent.
func (t *tx) boughtElsewhere(o ledger.Operation, r ledger.Receipt) (e ledger.Operation, why string, err error) {
	if !o.Terms.HasAmount || o.KnownAs() == "" && o.Step == "" {
		return e, "", nil
	}
	all, err := t.onOtherRails(o)
	if err != nil {
		return e, "", err
	}
	o.Receipt = &r
	late, err := t.paid(o)
	for _, p := range all {
		if err != nil {
			return e, "", err
		}
		twin, why, err := t.twin(p, late)
		if err != nil || twin == ledger.OnePurchase {
			return p.Operation, why, err
		}
	}
	return e, "", err
}

// FindCrossRail compares what was confirmed before this was looked for, in small
// changes, each where the one before ended.
func (s *Store) FindCrossRail(ctx context.Context) (opened int, err error) {
	for more := true; more && ctx.Err() == nil; {
		n := 0
		err := s.change(ctx, func(t *tx) error {
			n = 0
			var after int64
			if err := t.row(`select after_id from cross_rail_sweeps where id = 1`).Scan(&after); err != nil {
				return err
			}
			rows, err := t.rows(`select id, `+operationColumns+` from operations where id > $1 order by id limit $2`, after, refundBatch)
			if err != nil {
				return err
			}
			page, err := collect(rows, func(r *sql.Rows) (ledger.Operation, error) { return scanOperation(withID{r, &after}) })
			if err != nil {
				return err
			}
			for _, o := range page {
				if o.Status != ledger.Confirmed {
					continue
				}
				found, err := t.crossRail(o)
				if err != nil {
					return err
				}
				n += found
			}
			if more = len(page) == refundBatch; len(page) == 0 {
				return nil
			}
			return t.exec(`update cross_rail_sweeps set after_id = $1 where id = 1`, after)
		})
		if err != nil {
			return opened, err
		}
		opened += n
	}
	return opened, ctx.Err()
}

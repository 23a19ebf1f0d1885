package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast/store/ledger"
)

// Registered is the answer to a submission: the operation as it now stands, and
// whether it was there before.
type Registered struct {
	Operation ledger.Operation
	Existed   bool
}

// Submit gives a wanted action its durable identity and judges it, or returns
// the operation that has the identity already. The draft carries who asks, what
// for and the normal form of the payload; everything else is decided here, in
// the commit that stores it.
func (s *Store) Submit(ctx context.Context, draft ledger.Operation) (Registered, error) {
	var r Registered
	err := s.changeTwice(ctx, func(t *tx) error {
		known, err := t.operation(draft.TenantID, draft.OperationID)
		if err == nil {
			r = Registered{known, true}
			return nil
		}
		if !errors.Is(err, ErrNotFound) {
			return err
		}
		o, err := t.register(draft)
		r = Registered{o, false}
		return err
	})
	if isUnique(err) { // another writer was first: what it registered is the answer
		o, readErr := s.Operation(ctx, draft.TenantID, draft.OperationID)
		return Registered{o, true}, readErr
	}
	return r, err
}

func (t *tx) register(o ledger.Operation) (ledger.Operation, error) {
	rules := t.s.Rulebook(o.TenantID)
	action := rules.Actions[o.ActionType]
	if action == nil {
		return o, fmt.Errorf("action type %q is not configured", o.ActionType)
	}
	rail, known := rules.Routes[o.ActionType]
	if !known {
		return o, fmt.Errorf("rail %q is not configured", action.Rail)
	}
	o.OrderID = ledger.OrderID(t.s.instance, o.TenantID, o.OperationID)
	o.ActionVersion, o.Effect = action.Version, action.Effect
	o.CreatedAt, o.UpdatedAt, o.Epoch = t.now, t.now, t.s.epoch
	bind(&o, t.s.instance, rail)
	o, err := t.admit(o)
	if err != nil {
		return o, err
	}
	replaced, err := t.replace(o)
	if err != nil {
		return o, err
	}
	if original, err := t.cached(o, action); err != nil || original != "" {
		return t.repeat(o, original, rules, err)
	}
	if err := t.keepToCharge(o); err != nil {
		return o, err
	}
	var first happening
	o, first, err = t.judgeFirst(o, action, rules, replaced)
	if err != nil {
		return o, err
	}
	if o, err = t.happen(o, first); err != nil {
		return o, err
	}
	return t.settleIn(o)
}

// admit refuses what contradicts the intent that the id was given out for, and
// what belongs to a run that may do nothing more. It uses up no id.
func (t *tx) admit(o ledger.Operation) (ledger.Operation, error) {
	o, err := t.keepToIntent(o)
	if err != nil {
		return o, err
	}
	if err := t.enrol(o.TenantID, o.RunID, o.ParentRunID); err != nil {
		return o, err
	}
	why, err := t.runOver(o.TenantID, o.RunID)
	if err == nil && why != "" {
		return o, BudgetSpent{why}
	}
	return o, err
}

// settleIn ties a registered operation to its names and to what it waits for.
func (t *tx) settleIn(o ledger.Operation) (ledger.Operation, error) {
	if o.Status != ledger.Rejected {
		if err := t.giveNames(o.TenantID, o.ActionType, o.OperationID, namesOf(o.KnownAs(), o.RunID, o.Step)); err != nil {
			return o, err
		}
	}
	blocked, err := t.waitFor(o)
	if err != nil || blocked == "" {
		return o, err
	}
	if err := t.strand(o, blocked); err != nil {
		return o, err
	}
	return t.operation(o.TenantID, o.OperationID)
}

// judgeFirst decides how a new operation begins.
func (t *tx) judgeFirst(o ledger.Operation, action *ledger.ActionType, rules *ledger.Rulebook, replaced ledger.Operation) (ledger.Operation, happening, error) {
	past, err := t.past(o, action.Overlap.Window.Milliseconds())
	if err != nil {
		return o, happening{}, err
	}
	reason, overlaps := past.FindOverlaps(o, action.Overlap.Window, t.now)
	if replaced.Status == ledger.UnknownHold {
		// The narrower purchase waits for the person whom the wider one waited for.
		reason, overlaps = inherit(reason, overlaps, replaced)
	}
	o.Overlaps = overlaps
	decision, err := t.judge(o, rules)
	if err != nil {
		return o, happening{}, err
	}
	o.PolicyVersion, o.PolicyRow, o.Asked = rules.Policy.Version, decision.Row, decision.Asked

	first := happening{by: o.Requester(), sentence: decision.Sentence,
		fact: map[string]any{"fingerprint": o.Fingerprint, "policy_row": o.PolicyRow, "overlaps": overlaps, "order_id": o.OrderID, "traceparent": o.Trace}}
	switch {
	case decision.Then == "deny":
		first.event = ledger.Forbid
	case action.Mode == "observe":
		first.event, first.sentence = ledger.Observe, "Observed only. "+decision.Sentence
	case len(overlaps) > 0 && action.Overlap.Mode == "hold":
		first.event, first.reason = ledger.Overlap, reason
		first.sentence = fmt.Sprintf("It overlaps %s: a person must say whether it is the same purchase.", overlaps[0].OperationID)
	case decision.Then == "ask", len(overlaps) > 0 && action.Overlap.Mode == "ask":
		first.event = ledger.Ask
		if o.Asked.Approvals == 0 {
			o.Asked = ledger.DefaultAsked(t.now)
			first.sentence = fmt.Sprintf("It overlaps %s, so a person is asked.", overlaps[0].OperationID)
		}
	case decision.Then == "allow":
		first.event = ledger.Allow
	default:
		return o, first, fmt.Errorf("the policy decided %q", decision.Then)
	}
	return o, first, nil
}

// inherit adds what a replaced operation was held for: that question is still
// open, whatever else the new one overlaps.
func inherit(reason ledger.Reason, overlaps []ledger.Overlapped, replaced ledger.Operation) (ledger.Reason, []ledger.Overlapped) {
	for _, earlier := range replaced.Overlaps {
		if !slices.ContainsFunc(overlaps, func(v ledger.Overlapped) bool { return v.OperationID == earlier.OperationID }) {
			overlaps = append(overlaps, earlier)
		}
	}
	if reason == "" {
		reason = replaced.Reason
	}
	return reason, overlaps
}

// bind ties an operation of which nothing was sent to the rail as it is now.
func bind(o *ledger.Operation, instance string, rail ledger.Rail) {
	o.Rail, o.RailAddress, o.RailAccount = rail.Name, rail.Address, rail.Account
	o.ProviderKey = ledger.ProviderKey(instance, o.TenantID, o.OperationID, rail.Account)
	o.RowHash = o.HashRow()
}

// facts answer what a policy row may ask about the past; failed gets the error
// of a question that could not be answered.
func (t *tx) facts(o ledger.Operation, failed *error) ledger.Facts {
	answered := func(err error) bool {
		if err != nil {
			*failed = err
		}
		return err == nil
	}
	return ledger.Facts{
		RecipientKnown: func() (known, ok bool) {
			var n int
			err := t.row(`
				select count(*) from (
					select 1 from operations
					where tenant_id = $1 and effect = $2 and recipient = $3 and recipient <> '' and status = 'confirmed' and operation_id <> $4
					limit 1) as one`,
				o.TenantID, o.Effect, o.Terms.Recipient, o.OperationID).Scan(&n)
			return n > 0, answered(err)
		},
		Spent: func(c ledger.SpentOver) (int64, bool) {
			sum, err := t.spent(o, c)
			return sum, answered(err)
		},
	}
}

// spent adds what is open and confirmed inside the window. The sum is exact:
// it is made in the transaction that adds the operation it is compared with.
func (t *tx) spent(o ledger.Operation, c ledger.SpentOver) (int64, error) {
	var sum wide
	from := t.now - c.Window.Milliseconds()
	err := t.row(`
		select `+wideSum(`amount`)+` from operations
		where tenant_id = $1 and id >= $8 and currency = $2 and created_at > $3 and status <> 'rejected' and operation_id <> $4
		  and ($5 = 'tenant' or ($5 = 'agent' and agent = $6) or ($5 = 'recipient' and recipient = $7))`,
		o.TenantID, c.Currency, from, o.OperationID, c.Per, o.Agent, o.Terms.Recipient, firstRowID(from)).Scan(&sum.high, &sum.low)
	return sum.amount(), err
}

package store

import (
	"context"
	"database/sql"
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
	err := s.change(ctx, func(t *tx) error {
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
	if err := t.admit(o); err != nil {
		return o, err
	}
	replaced, err := t.replace(o)
	if err != nil {
		return o, err
	}
	if original, err := t.cached(o, action); err != nil || original != "" {
		return t.repeat(o, original, rules, err)
	}
	o, first, err := t.judgeFirst(o, action, rules, replaced)
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
func (t *tx) admit(o ledger.Operation) error {
	if err := t.keepToIntent(o); err != nil {
		return err
	}
	if err := t.enrol(o.TenantID, o.RunID, o.ParentRunID); err != nil {
		return err
	}
	why, err := t.runOver(o.TenantID, o.RunID)
	if err == nil && why != "" {
		return BudgetSpent{why}
	}
	return err
}

// settleIn ties a registered operation to its names and to what it waits for.
func (t *tx) settleIn(o ledger.Operation) (ledger.Operation, error) {
	if o.Status != ledger.Rejected {
		if err := t.giveNames(o.TenantID, o.ActionType, o.OperationID, namesOf(o.Terms.Reference, o.RunID, o.Step)); err != nil {
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
	earlier, err := t.candidates(o, action.Overlap.Window.Milliseconds())
	if err != nil {
		return o, happening{}, err
	}
	reason, overlaps := ledger.FindOverlaps(o, earlier, action.Overlap.Window, t.now)
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

	first := happening{by: ledger.Holder{Kind: ledger.Agent, Name: o.Agent}, sentence: decision.Sentence,
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

// candidates are the earlier operations that could be the same purchase: every
// one that shares a reference, a step, a fingerprint or the money with the
// draft, and the originals of those that are aliases. What they mean is the
// domain's to say; the strongest come first, so that the limit cuts the list
// and never the decision.
func (t *tx) candidates(o ledger.Operation, window int64) ([]ledger.Operation, error) {
	// One search by index for each way of being alike: a price that everybody
	// pays must not slow down who pays it next.
	const query = `
		with alike as (
			select id from operations
			where tenant_id = $1 and effect = $2 and reference_key = $3 and reference_key <> ''
			union all select id from operations
			where tenant_id = $1 and effect = $2 and step = $4 and step <> '' and run_id in ($10, $11) and run_id <> ''
			union all select id from operations
			where tenant_id = $1 and effect = $2 and step = $4 and step <> '' and parent_run_id = $10 and parent_run_id <> ''
			union all select id from operations
			where tenant_id = $1 and effect = $2 and fingerprint = $5 and (updated_at >= $6 or status <> 'confirmed')
			union all select id from operations
			where tenant_id = $1 and effect = $2 and recipient = $7 and recipient <> '' and currency = $8 and amount = $9
			  and reference_key = '' and (updated_at >= $6 or status <> 'confirmed')
			union all select id from operations
			where tenant_id = $1 and effect = $2 and recipient = $7 and recipient <> '' and currency = $8 and amount = $9
			  and $3 = '' and (updated_at >= $6 or status <> 'confirmed')
			union all select id from operations
			where tenant_id = $1 and effect = $2 and recipient = $7 and recipient <> '' and currency = $8 and amount = $9
			  and (status in ('in_flight', 'unknown', 'unknown_hold') or open_attempts > 0 or quarantined = 1)
			  and (updated_at >= $6 or status <> 'confirmed')
			union all select id from operations
			where tenant_id = $1 and effect = $2 and recipient = $7 and recipient <> '' and currency = $8 and amount = $9
			  and duplicate_of <> ''
		)
		select ` + operationColumns + ` from operations
		where id in (select id from alike) and (status <> 'rejected' or duplicate_of <> '')
		order by (reference_key = $3 and reference_key <> '') desc, (step = $4 and step <> '') desc, (fingerprint = $5) desc, id
		limit 200`
	rows, err := t.rows(query, o.TenantID, o.Effect, ledger.ReferenceKey(o.Terms.Reference), o.Step, o.Fingerprint, t.now-window,
		o.Terms.Recipient, o.Terms.Currency, o.Terms.Amount, o.RunID, o.ParentRunID)
	if err != nil {
		return nil, err
	}
	found, err := collect(rows, func(r *sql.Rows) (ledger.Operation, error) { return scanOperation(r) })
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(found); i++ { // an original may be an alias itself
		if found[i].DuplicateOf == "" {
			continue
		}
		original, err := t.operation(o.TenantID, found[i].DuplicateOf)
		if err != nil {
			return nil, err
		}
		found = append(found, original)
	}
	return found, nil
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

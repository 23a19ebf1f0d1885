package store

import (
	"database/sql"
	"errors"
	"fmt"

	"holdfast/store/ledger"
)

// cached finds the confirmed operation whose result answers an identical repeat
// by the same agent inside the action type's time. Another agent's is never
// served, and only what is confirmed is.
func (t *tx) cached(o ledger.Operation, action *ledger.ActionType) (string, error) {
	if action.Cacheable <= 0 {
		return "", nil
	}
	var original string
	err := t.row(`
		select operation_id from operations
		where tenant_id = $1 and agent = $2 and action_type = $3 and fingerprint = $4 and status = 'confirmed' and updated_at >= $5
		order by updated_at desc limit 1`,
		o.TenantID, o.Agent, o.ActionType, o.Fingerprint, t.now-action.Cacheable.Milliseconds()).Scan(&original)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return original, err
}

// repeat registers an identical repeat as an alias: nothing is sent.
func (t *tx) repeat(o ledger.Operation, original string, rules *ledger.Rulebook, err error) (ledger.Operation, error) {
	if err != nil {
		return o, err
	}
	o.PolicyVersion, o.DuplicateOf = rules.Policy.Version, original
	o, err = t.happen(o, happening{event: ledger.Repeat, by: o.Requester(),
		sentence: fmt.Sprintf("An identical repeat of %s, whose result answers it. Nothing was sent.", original),
		fact:     map[string]any{"fingerprint": o.Fingerprint, "duplicate_of": original, "order_id": o.OrderID}})
	if err != nil {
		return o, err
	}
	return o, t.giveNames(o.TenantID, o.ActionType, o.OperationID, namesOf(o.KnownAs(), o.RunID, o.Step))
}

// CannotReplace says why an operation can no longer be replaced.
type CannotReplace struct{ Operation ledger.Operation }

func (c CannotReplace) Error() string {
	return fmt.Sprintf("%s was sent, has ended or was replaced already, and so cannot be replaced", c.Operation.OperationID)
}

// replace ends the operation that the new one stands for, of which nothing was
// sent, and returns it as it was: what it was held for is still an open question.
func (t *tx) replace(o ledger.Operation) (old ledger.Operation, err error) {
	if o.Replaces == "" {
		return old, nil
	}
	old, err = t.operation(o.TenantID, o.Replaces)
	if errors.Is(err, ErrNotFound) {
		return old, MissingPrerequisite{o.Replaces}
	}
	if err != nil {
		return old, err
	}
	if old.Status == ledger.Rejected && old.Attempts == 0 && !old.Quarantined && old.DuplicateOf == "" {
		// It ended before anything was sent: a person asked for changes, say. One
		// new operation may stand for it, not two.
		taken, err := t.hasSuccessor(old)
		if err == nil && taken {
			err = CannotReplace{old}
		}
		return ledger.Operation{}, err
	}
	if !old.May(ledger.Replace, ledger.Agent, t.now) {
		return old, CannotReplace{old}
	}
	_, err = t.happen(old, happening{event: ledger.Replace, by: ledger.Holder{Kind: ledger.Agent, Name: o.Agent},
		sentence: fmt.Sprintf("Replaced by %s. Nothing was sent.", o.OperationID), fact: map[string]any{"replaced_by": o.OperationID}})
	return old, err
}

// hasSuccessor reports whether an operation that lives stands for another, be it
// as the replacement of a replacement.
func (t *tx) hasSuccessor(old ledger.Operation) (bool, error) {
	var n int
	err := t.row(`
		with recursive heirs (operation_id) as (
			select operation_id from operations where tenant_id = $1 and replaces = $2 and replaces <> ''
			union
			select o.operation_id from operations o join heirs h on o.replaces = h.operation_id where o.tenant_id = $1 and o.replaces <> ''
		)
		select count(*) from operations
		where tenant_id = $1 and operation_id in (select operation_id from heirs) and (status <> 'rejected' or duplicate_of <> '')`,
		old.TenantID, old.OperationID).Scan(&n)
	return n > 0, err
}

// separate keeps a person's answer that two operations are two purchases.
func (t *tx) separate(o ledger.Operation, d Decision, by ledger.Holder) error {
	for _, earlier := range o.Overlaps {
		if err := t.exec(`
			insert into separations (tenant_id, operation_id, earlier_id, person, reason, at) values ($1, $2, $3, $4, $5, $6)
			on conflict (tenant_id, operation_id, earlier_id) do nothing`,
			o.TenantID, o.OperationID, earlier.OperationID, by.Name, d.Reason, t.now); err != nil {
			return err
		}
	}
	return nil
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"holdfast/store/ledger"
)

// MissingPrerequisite names an operation that should come first and is not on
// record. Only what exists can be waited for, so no circle can arise.
type MissingPrerequisite struct{ OperationID string }

func (m MissingPrerequisite) Error() string {
	return fmt.Sprintf("%s is not on record, so nothing can come after it", m.OperationID)
}

// waitFor records what an operation comes after. An alias is waited for as the
// operation it stands for.
func (t *tx) waitFor(o ledger.Operation) (blocked string, err error) {
	for _, id := range o.After {
		first, err := t.standing(o.TenantID, id)
		if errors.Is(err, ErrNotFound) {
			return "", MissingPrerequisite{id}
		}
		if err != nil {
			return "", err
		}
		if first.Status == ledger.Rejected {
			blocked = id
		}
		if err := t.exec(`
			insert into prerequisites (tenant_id, operation_id, after_id) values ($1, $2, $3)
			on conflict (tenant_id, operation_id, after_id) do nothing`, o.TenantID, o.OperationID, first.OperationID); err != nil {
			return "", err
		}
	}
	return blocked, nil
}

// standing follows aliases to the operation whose outcome counts.
func (t *tx) standing(tenant, id string) (ledger.Operation, error) {
	o, err := t.operation(tenant, id)
	for range 100 {
		if err != nil || o.DuplicateOf == "" {
			return o, err
		}
		o, err = t.operation(tenant, o.DuplicateOf)
	}
	return o, fmt.Errorf("aliases of %s go round in a circle", id)
}

// passOn tells those that wait for an operation what became of it.
func (t *tx) passOn(o ledger.Operation) error {
	if o.Status != ledger.Rejected {
		return nil
	}
	if o.DuplicateOf != "" {
		// Whoever waited for the alias waits for its original.
		if err := t.exec(`
			insert into prerequisites (tenant_id, operation_id, after_id)
			select tenant_id, operation_id, $1 from prerequisites where tenant_id = $2 and after_id = $3
			on conflict (tenant_id, operation_id, after_id) do nothing`, o.DuplicateOf, o.TenantID, o.OperationID); err != nil {
			return err
		}
		if err := t.exec(`delete from prerequisites where tenant_id = $1 and after_id = $2`, o.TenantID, o.OperationID); err != nil {
			return err
		}
		original, err := t.standing(o.TenantID, o.DuplicateOf)
		if err != nil || original.Status != ledger.Rejected {
			return err
		}
		o = original
	}
	return t.failDependents(o)
}

// failDependents rejects those that wait for an operation which was rejected.
// A held one is told when a person lets it go.
func (t *tx) failDependents(first ledger.Operation) error {
	rows, err := t.rows(`
		select `+operationColumns+` from operations
		where tenant_id = $1 and status in ('awaiting_approval', 'ready')
		  and operation_id in (select operation_id from prerequisites where tenant_id = $1 and after_id = $2)
		order by id`, first.TenantID, first.OperationID)
	if err != nil {
		return err
	}
	waiting, err := collect(rows, func(r *sql.Rows) (ledger.Operation, error) { return scanOperation(r) })
	if err != nil {
		return err
	}
	for _, listed := range waiting {
		// One that was rejected takes those with it that wait for it, and they may
		// stand further down in this list.
		o, err := t.operation(listed.TenantID, listed.OperationID)
		if err != nil {
			return err
		}
		if err := t.strand(o, first.OperationID); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) strand(o ledger.Operation, first string) error {
	if !o.May(ledger.Fail, ledger.Clock, t.now) {
		return nil // something of it was sent: its own outcome counts
	}
	_, err := t.happen(o, happening{event: ledger.Fail, by: ledger.Holder{Kind: ledger.Clock, Name: "order"},
		sentence: fmt.Sprintf("It was to come after %s, which was rejected.", first)})
	return err
}

// strandedBy is a rejected operation that another one waits for.
func (t *tx) strandedBy(o ledger.Operation) (string, error) {
	var first string
	err := t.row(`
		select p.after_id from prerequisites p join operations x on x.tenant_id = p.tenant_id and x.operation_id = p.after_id
		where p.tenant_id = $1 and p.operation_id = $2 and x.status = 'rejected' limit 1`, o.TenantID, o.OperationID).Scan(&first)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return first, err
}

// WaitsFor lists what an operation still waits for.
func (s *Store) WaitsFor(ctx context.Context, tenant, id string) ([]string, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select p.after_id from prerequisites p join operations x on x.tenant_id = p.tenant_id and x.operation_id = p.after_id
		where p.tenant_id = $1 and p.operation_id = $2 and x.status <> 'confirmed' order by p.after_id`, tenant, id)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (first string, err error) { return first, r.Scan(&first) })
}

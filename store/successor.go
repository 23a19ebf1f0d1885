package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"holdfast/store/ledger"
)

// selectSuccessor finds the operation that stands for another one: one that
// lives, where several were to.
const selectSuccessor = `
	select operation_id from operations where tenant_id = $1 and replaces = $2 and replaces <> ''
	order by case when status <> 'rejected' or duplicate_of <> '' then 0 else 1 end, id desc limit 1`

func scanSuccessor(row scanner) (id string, err error) {
	if err = row.Scan(&id); errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return id, err
}

func (t *tx) successor(tenant, id string) (string, error) {
	return scanSuccessor(t.row(selectSuccessor, tenant, id))
}

// Successor is the operation that replaces another; empty where none does.
func (s *Store) Successor(ctx context.Context, tenant, id string) (string, error) {
	return scanSuccessor(s.readers.QueryRowContext(ctx, selectSuccessor, tenant, id))
}

// Stands follows an operation to the one whose outcome is its outcome: through
// aliases, and from what was replaced to what replaces it.
func (s *Store) Stands(ctx context.Context, tenant, id string) (ledger.Operation, error) {
	return follow(id, func(id string) (ledger.Operation, error) { return s.Operation(ctx, tenant, id) },
		func(id string) (string, error) { return s.Successor(ctx, tenant, id) })
}

func (t *tx) stands(tenant, id string) (ledger.Operation, error) {
	return follow(id, func(id string) (ledger.Operation, error) { return t.operation(tenant, id) },
		func(id string) (string, error) { return t.successor(tenant, id) })
}

func follow(id string, read func(string) (ledger.Operation, error), successor func(string) (string, error)) (ledger.Operation, error) {
	for range 100 {
		o, err := read(id)
		if err != nil || o.Status != ledger.Rejected {
			return o, err
		}
		next := o.DuplicateOf
		if next == "" {
			if next, err = successor(id); err != nil || next == "" {
				return o, err
			}
		}
		id = next
	}
	return ledger.Operation{}, fmt.Errorf("what stands for %s goes round in a circle", id)
}

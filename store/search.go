package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"holdfast/store/ledger"
)

// found bounds the hits of each kind.
const found = 20

// Found is what a tenant has under one name, newest first. More says that there
// is more of some kind than is listed.
type Found struct {
	Operations []ledger.Operation
	Refunds    []ledger.RefundOwed
	Lines      []ledger.KeptLine
	More       bool
}

// Search looks for whatever has a name: an operation by its ids, its key, its
// receipt, its fingerprint or its three words, its reference, recipient or
// customer; what is owed by its id, receipt or customer; a statement line by the
// provider's id or our stamp. Only whole names count, but of a fingerprint. What
// is found may be more than its reader may find.
func (s *Store) Search(ctx context.Context, tenant, name string) (f Found, err error) {
	if name == "" {
		return f, nil
	}
	if err := s.searchOperations(ctx, tenant, name, &f); err != nil {
		return f, err
	}
	if err := s.searchRefunds(ctx, tenant, name, &f); err != nil {
		return f, err
	}
	return f, s.searchLines(ctx, tenant, name, &f)
}

// lookup is one way to find rows: a condition that one index answers.
type lookup struct {
	condition string
	args      []any
}

// anyOf reads the ids that one of the ways leads to, each as far as the limit.
func anyOf(table, id, tenant string, ways []lookup) (string, []any) {
	var parts []string
	args := []any{tenant}
	for _, w := range ways {
		condition := w.condition
		for _, a := range w.args {
			args = append(args, a)
			condition = strings.Replace(condition, "?", fmt.Sprint("$", len(args)), 1)
		}
		parts = append(parts, fmt.Sprintf(`select %s from (select %s from %s where tenant_id = $1 and %s limit %d) as w%d`, id, id, table, condition, found+1, len(parts)))
	}
	return strings.Join(parts, " union "), args
}

func (s *Store) searchOperations(ctx context.Context, tenant, name string, f *Found) error {
	effects, err := s.distinct(ctx, selectEffects, tenant)
	if err != nil {
		return err
	}
	query, args := operationSearch(tenant, name, effects)
	rows, err := s.readers.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	f.Operations, err = collect(rows, func(r *sql.Rows) (ledger.Operation, error) { return scanOperation(r) })
	f.Operations = capped(f.Operations, f)
	return err
}

// Every operation with a reference or a recipient is in the index that begins
// with its effect.
const (
	selectEffects = `select min(effect) from (
		select min(effect) as effect from operations where tenant_id = $1 and effect > $2 and reference_key <> ''
		union all select min(effect) from operations where tenant_id = $1 and effect > $2 and recipient <> '') as one`
	selectLineRails = `select min(rail) from (
		select min(rail) as rail from statement_lines where tenant_id = $1 and rail > $2 and provider_id <> ''
		union all select min(rail) from statement_lines where tenant_id = $1 and rail > $2 and stamp <> '') as one`
)

func operationSearch(tenant, name string, effects []string) (string, []any) {
	ways := []lookup{
		{`operation_id = ?`, []any{name}}, {`order_id = ?`, []any{name}}, {`provider_key = ?`, []any{name}},
		{`receipt_id = ? and receipt_id <> ''`, []any{name}}, {`customer = ? and customer <> ''`, []any{name}},
	}
	if from, before, ok := ledger.FingerprintRange(name); ok {
		ways = append(ways, lookup{`fingerprint >= ? and fingerprint < ?`, []any{from, before}})
	}
	for _, effect := range effects {
		ways = append(ways, lookup{`effect = ? and recipient = ? and recipient <> ''`, []any{effect, name}})
		if key := ledger.ReferenceKey(name); key != "" {
			ways = append(ways, lookup{`effect = ? and reference_key = ? and reference_key <> ''`, []any{effect, key}})
		}
	}
	ids, args := anyOf(`operations`, `id`, tenant, ways)
	return `select ` + operationColumns + ` from operations where id in (` + ids + fmt.Sprintf(`) order by id desc limit %d`, found+1), args
}

func (s *Store) searchRefunds(ctx context.Context, tenant, name string, f *Found) error {
	query, args := refundSearch(tenant, name)
	rows, err := s.readers.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	f.Refunds, err = collect(rows, scanRefundRow)
	f.Refunds = capped(f.Refunds, f)
	return err
}

func refundSearch(tenant, name string) (string, []any) {
	numbers, args := anyOf(`refunds_owed`, `number`, tenant, []lookup{
		{`id = ?`, []any{name}}, {`receipt_id = ?`, []any{name}}, {`customer = ? and customer <> ''`, []any{name}}})
	return `select ` + refundColumns + ` from refunds_owed where number in (` + numbers + fmt.Sprintf(`) order by number desc limit %d`, found+1), args
}

func (s *Store) searchLines(ctx context.Context, tenant, name string, f *Found) error {
	rails, err := s.distinct(ctx, selectLineRails, tenant)
	if err != nil || len(rails) == 0 {
		return err
	}
	query, args := lineSearch(tenant, name, rails)
	rows, err := s.readers.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	f.Lines, err = collect(rows, scanLines)
	f.Lines = capped(f.Lines, f)
	return err
}

func lineSearch(tenant, name string, rails []string) (string, []any) {
	var ways []lookup
	for _, rail := range rails {
		ways = append(ways, lookup{`rail = ? and provider_id = ? and provider_id <> ''`, []any{rail, name}}, lookup{`rail = ? and stamp = ? and stamp <> ''`, []any{rail, name}})
	}
	ids, args := anyOf(`statement_lines`, `id`, tenant, ways)
	return `select ` + prefixed("l", lineColumns) + ` from statement_lines l join statements s on ` + visible + `
		where l.id in (` + ids + fmt.Sprintf(`) order by l.id desc limit %d`, found+1), args
}

func capped[T any](items []T, f *Found) []T {
	if len(items) > found {
		f.More = true
		return items[:found]
	}
	return items
}

// OperationOfLine is the operation that a line is matched with, or that it is
// said to be about; empty: none.
func (s *Store) OperationOfLine(ctx context.Context, l ledger.KeptLine) (id string, err error) {
	err = s.readers.QueryRowContext(ctx, `
		select o.operation_id from statement_sides l join statement_sides o on o.match_id = l.match_id and o.operation_id <> '' and o.live = 1
		where l.line_id = $1 and l.live = 1 and l.tenant_id = $2 order by o.operation_id limit 1`, l.ID, l.TenantID).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return l.OperationID, nil
	}
	return id, err
}

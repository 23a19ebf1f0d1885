package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sort"
	"strings"

	"holdfast/store/ledger"
)

// AuditFilter narrows the log; empty members do not count.
type AuditFilter struct {
	Actor    string // as the entry names it: an e-mail address, an agent, a worker, a job
	Object   string // its kind: operation · refund_owed · rail · …
	ObjectID string // an operation, a refund owed, a rail, …
	Event    string
	From, To int64 // moments; To is the first that does not count
	Below    int64 // sequence number; 0: from the end
	Limit    int   // 1 to 1000, default 100
}

// Audit lists a tenant's log, newest first, and gives the sequence number below
// which the next page begins; 0 at the end.
func (s *Store) Audit(ctx context.Context, tenant string, f AuditFilter) (entries []ledger.Entry, below int64, err error) {
	if f.Limit <= 0 || f.Limit > 1000 {
		f.Limit = 100
	}
	from, err := s.firstEntrySince(ctx, f.From)
	if err != nil {
		return nil, 0, err
	}
	if f.To > 0 {
		end, err := s.firstEntrySince(ctx, f.To)
		if err != nil {
			return nil, 0, err
		}
		if f.Below <= 0 || end < f.Below {
			f.Below = end
		}
	}
	query, args := auditQuery(tenant, f, from)
	rows, err := s.readers.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, 0, err
	}
	entries, err = collect(rows, scanEntry)
	if len(entries) > f.Limit {
		entries = entries[:f.Limit]
		below = entries[f.Limit-1].Seq
	}
	return entries, below, err
}

// auditQuery names only the columns that are asked for: what is compared with an
// empty parameter as well is found by no index.
func auditQuery(tenant string, f AuditFilter, from int64) (string, []any) {
	where, args := `tenant_id = $1`, []any{tenant}
	narrow := func(condition string, v any) {
		args = append(args, v)
		where += " and " + strings.ReplaceAll(condition, "?", fmt.Sprint("$", len(args)))
	}
	if f.Actor != "" {
		narrow(`actor = ?`, f.Actor)
	}
	if f.Event != "" {
		narrow(`event = ?`, f.Event)
	}
	if f.Object == "operation" {
		where += ` and object = 'operation'`
	} else if f.Object != "" {
		narrow(`object = ? and object <> 'operation'`, f.Object)
	}
	if f.Below > 0 {
		narrow(`seq < ?`, f.Below)
	}
	if f.ObjectID != "" { // what was done about an operation is about its own objects too
		narrow(`seq in (
			select seq from action_log where tenant_id = $1 and operation_id = ? and operation_id <> ''
			union select seq from action_log where tenant_id = $1 and object_id = ? and object <> 'operation')`, f.ObjectID)
	}
	args = append(args, f.Limit+1, from)
	// The oldest that counts stands outside, where it leads no planner to the index
	// over all of a tenant's entries.
	return `select ` + entryColumns + ` from (
		select ` + entryColumns + ` from action_log where ` + where + fmt.Sprintf(` order by seq desc limit $%d) as page where seq >= $%d order by seq desc`, len(args)-1, len(args)), args
}

// firstEntrySince is the number of the first entry that is not older than a
// moment. The log has no gaps and its time never runs backwards, so that twenty
// looks find it among a million.
func (s *Store) firstEntrySince(ctx context.Context, at int64) (int64, error) {
	if at <= 0 {
		return 1, nil
	}
	var last int64
	if err := s.readers.QueryRowContext(ctx, `select coalesce(max(seq), 0) from action_log`).Scan(&last); err != nil {
		return 0, err
	}
	var failed error
	n := sort.Search(int(last), func(i int) bool {
		var t int64
		err := s.readers.QueryRowContext(ctx, `select at from action_log where seq = $1`, i+1).Scan(&t)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			failed = err
		}
		return t >= at
	})
	return int64(n) + 1, failed
}

// AuditKinds lists the kinds of objects and of events that a tenant's log has, in
// the order of the alphabet. It steps from one to the next by index and reads no
// entries between them.
func (s *Store) AuditKinds(ctx context.Context, tenant string) (objects, events []string, err error) {
	if objects, err = s.distinct(ctx, `select min(object) from action_log where tenant_id = $1 and object > $2 and object <> 'operation'`, tenant); err != nil {
		return nil, nil, err
	}
	events, err = s.distinct(ctx, `select min(event) from action_log where tenant_id = $1 and event > $2`, tenant)
	return objects, events, err
}

// distinct steps through the values of a column: next reads the first one beyond
// another.
func (s *Store) distinct(ctx context.Context, next, tenant string) (values []string, err error) {
	for last := ""; ; {
		var value sql.NullString
		if err := s.readers.QueryRowContext(ctx, next, tenant, last).Scan(&value); err != nil || !value.Valid {
			return values, err
		}
		last = value.String
		values = append(values, last)
	}
}

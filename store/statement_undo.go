package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"holdfast/store/ledger"
)

// UndoStatement takes an import back as a whole, as long as none of its lines
// counts in a closed period. Nobody sees its lines from the first commit on; what
// they were matched with is free again. Evidence and money owed stay: they are
// answered where they stand.
func (s *Store) UndoStatement(ctx context.Context, tenant, id string, d Decision) error {
	i, err := s.Statement(ctx, tenant, id)
	if err != nil {
		return err
	}
	defer s.lockAccount(StatementFile{TenantID: tenant, Rail: i.Rail, Statement: ledger.Statement{Account: i.Account}})()
	err = s.change(ctx, func(t *tx) error {
		if err := mayAct(tenant, d); err != nil {
			return err
		}
		closed, err := t.closedUntil(tenant, i.Rail, i.Account)
		if err != nil {
			return err
		}
		var locked bool
		if err := t.row(`select exists (select 1 from statement_lines where statement_id = $1 and counted_at < $2)`, id, closed).Scan(&locked); err != nil {
			return err
		}
		if locked {
			return refusal("the period of some of its lines is closed")
		}
		if err := t.countedOn(i); err != nil {
			return err
		}
		n, err := t.affected(`update statements set undone_at = $1, undone_by = $2, undone_reason = $3 where tenant_id = $4 and id = $5 and visible_at > 0 and undone_at = 0`,
			t.now, d.Person.Email, d.Reason, tenant, id)
		if err == nil && n != 1 {
			err = ErrStale
		}
		if err != nil {
			return err
		}
		return t.log(ledger.Entry{TenantID: tenant, Object: "statement", ObjectID: id, Event: "undo", ActorKind: ledger.Person, Actor: d.Person.Email,
			Sentence: fmt.Sprintf("%s took the import of %s back, %d lines: %s", d.Person.Display(), i.FileName, i.Lines-i.Already, d.Reason),
			Fact:     factText(map[string]any{"reason": d.Reason, "sha256": i.SHA256})})
	})
	if err != nil {
		return err
	}
	return s.finishUndoing(context.WithoutCancel(ctx))
}

// countedOn refuses to take back lines on which a later import counts: it found
// them there, and so did not store its own.
func (t *tx) countedOn(i ledger.StatementImport) error {
	var name string
	var at int64
	err := notFound(t.row(`
		select file_name, visible_at from statements
		where tenant_id = $1 and rail = $2 and account = $3 and id <> $4 and started_at >= $5 and visible_at > 0 and undone_at = 0
		  and already > 0 and from_at <= $6 and to_at >= $7
		order by started_at desc limit 1`, i.TenantID, i.Rail, i.Account, i.ID, i.StartedAt, i.To, i.From).Scan(&name, &at))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return refusal("%s was imported after it and counts on lines of it; take that import back first", name)
}

// finishUndoing frees, in small changes, what the lines of undone imports were
// matched with. A process that ended on the way is followed up by the next.
func (s *Store) finishUndoing(ctx context.Context) error {
	for n := 1; n > 0; {
		err := s.change(ctx, func(t *tx) error {
			rows, err := t.rows(`
				select `+prefixed("l", lineColumns)+` from statements s cross join statement_lines l
				where s.undone_at > 0 and l.statement_id = s.id and l.undone = 0 limit $1`, lineChunk)
			if err != nil {
				return err
			}
			lines, err := collect(rows, scanLines)
			if err != nil {
				return err
			}
			n = len(lines)
			for _, l := range lines {
				if err := t.undoLine(l); err != nil {
					return err
				}
			}
			if n > 0 {
				return t.lookAnew(lines[0].TenantID, lines[0].Rail)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// undoLine ends the match of a line, and has the other lines of that match, of
// imports that stay, looked at anew.
func (t *tx) undoLine(l ledger.KeptLine) error {
	if l.State == ledger.LineMatched {
		rows, err := t.rows(`select match_id from statement_sides where line_id = $1 and live = 1`, l.ID)
		if err != nil {
			return err
		}
		ids, err := collect(rows, func(r *sql.Rows) (id string, err error) { return id, r.Scan(&id) })
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := t.exec(`
				update statement_lines set state = 'unmatched', rule = '', operation_id = '', weighed_at = 0, version = version + 1
				where id in (select line_id from statement_sides where match_id = $1 and line_id is not null and line_id <> $2) and undone = 0`, id, l.ID); err != nil {
				return err
			}
			if err := t.endMatch(id, matcher.Name, "the import of one of its lines was undone"); err != nil {
				return err
			}
		}
	}
	return t.exec(`update statement_lines set undone = 1, version = version + 1 where id = $1`, l.ID)
}

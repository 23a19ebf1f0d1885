package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"holdfast/store/ledger"
)

// Exception is what a person has to answer: a line, or an operation that no
// statement shows.
type Exception struct {
	Exceptional
	Finding      ledger.LineFinding // empty: something is suggested, and nothing is wrong with it
	State        ledger.LineState   // of a line
	Line         *ledger.KeptLine   // nil: it is about an operation
	Rail         string
	Account      string // of a line
	Amount       int64
	Currency     string
	Since        int64 // its age counts from there
	Owner        string
	SnoozedUntil int64
	Sentence     string
	Row          int64 // where a page goes on after it
}

// ExceptionFilter narrows the exceptions; what is empty does not.
type ExceptionFilter struct {
	Rail, Account string
	Finding       ledger.LineFinding
	Before        int64 // counted, or confirmed, before it
	Snoozed       bool  // those that were put away too
	State         ledger.LineState
	After         int64 // of lists of one finding: the Row of the last one of the page before
	Limit         int
}

// openLines is the condition that a line needs a person's answer.
const openLines = `(l.state = 'suggested' or l.state = 'unmatched' and l.finding <> '')`

const fromOpenLines = `
	from statement_lines l join statements s on ` + visible + `
	where l.tenant_id = $1 and l.state in ('unmatched', 'suggested') and ` + openLines + `
	  and ($2 = '' or l.rail = $2) and ($3 = '' or l.account = $3) and ($4 = '' or l.finding = $4) and ($5 = 0 or l.counted_at < $5) and l.snoozed_until <= $6
	  and l.id > $7 and ($8 = '' or l.state = $8)`

// An operation belongs to a rail, and not to one of its accounts.
const fromOpenAbsences = `
	from statement_absences a join operations o on o.tenant_id = a.tenant_id and o.operation_id = a.operation_id
	where a.tenant_id = $1 and a.ended_at = 0 and a.answered_at = 0
	  and ($2 = '' or a.rail = $2) and ($3 = '' or $3 <> '') and ($4 = '' or $4 = 'missing') and ($5 = 0 or a.confirmed_at < $5) and a.snoozed_until <= $6
	  and o.id > $7 and $8 = ''`

func (f ExceptionFilter) args(s *Store, tenant string) []any {
	now := s.now()
	if f.Snoozed || f.Before > 0 { // what is put away stands in the way of closing all the same
		now = 1 << 62
	}
	return []any{tenant, f.Rail, f.Account, string(f.Finding), f.Before, now, f.After, string(f.State)}
}

// CountStatementExceptions counts what needs an answer.
func (s *Store) CountStatementExceptions(ctx context.Context, tenant string, f ExceptionFilter) (n int, err error) {
	return n, s.readers.QueryRowContext(ctx, `select (select count(*)`+fromOpenLines+`) + (select count(*)`+fromOpenAbsences+`)`, f.args(s, tenant)...).Scan(&n)
}

// StatementExceptions lists what needs an answer, oldest first.
func (s *Store) StatementExceptions(ctx context.Context, tenant string, f ExceptionFilter) ([]Exception, error) {
	limit := min(max(f.Limit, 1), 1000)
	rows, err := s.readers.QueryContext(ctx, `select `+prefixed("l", lineColumns)+fromOpenLines+` order by l.id limit $9`, append(f.args(s, tenant), limit)...)
	if err != nil {
		return nil, err
	}
	all, err := collect(rows, func(r *sql.Rows) (Exception, error) {
		l, err := scanLine(r)
		return Exception{Exceptional{l.ID, l.OperationID, l.Version}, l.Finding, l.State, &l, l.Rail, l.Account, l.Amount, l.Currency, l.At, l.Owner, l.SnoozedUntil, l.Says(), l.ID}, err
	})
	if err != nil {
		return nil, err
	}
	rows, err = s.readers.QueryContext(ctx, `
		select a.operation_id, a.version, a.rail, coalesce(o.amount, 0), o.currency, a.confirmed_at, a.owner, a.snoozed_until, o.id`+fromOpenAbsences+`
		order by o.id limit $9`, append(f.args(s, tenant), limit)...)
	if err != nil {
		return nil, err
	}
	missing, err := collect(rows, func(r *sql.Rows) (e Exception, err error) {
		e.Finding = ledger.AbsentFromStatement
		err = r.Scan(&e.OperationID, &e.Version, &e.Rail, &e.Amount, &e.Currency, &e.Since, &e.Owner, &e.SnoozedUntil, &e.Row)
		e.Sentence = fmt.Sprintf("%s was confirmed, and no statement that covers the day shows it.", e.OperationID)
		return e, err
	})
	all = append(all, missing...)
	slices.SortStableFunc(all, func(a, b Exception) int { return int(min(max(a.Since-b.Since, -1), 1)) })
	return all[:min(len(all), limit)], err
}

// StatementSides says of some operations how they stand to the statements.
func (s *Store) StatementSides(ctx context.Context, tenant string, operations []ledger.Operation) (map[string]ledger.StatementSide, error) {
	sides := map[string]ledger.StatementSide{}
	for chunk := range slices.Chunk(operations, lookedUp) {
		args := []any{tenant}
		for _, o := range chunk {
			args = append(args, o.OperationID)
			if o.Terms.HasAmount && o.Status == ledger.Confirmed {
				sides[o.OperationID] = ledger.NotOnStatement
			}
		}
		in := `(` + placeholders(2, len(chunk))[2:] + `)`
		rows, err := s.readers.QueryContext(ctx, `
			select operation_id, 'missing' from statement_absences where tenant_id = $1 and operation_id in `+in+` and ended_at = 0
			union all
			select o.operation_id, 'seen' from statement_sides o join statement_sides x on x.match_id = o.match_id and x.line_id is not null
			join statement_lines l on l.id = x.line_id join statements s on `+visible+`
			where o.tenant_id = $1 and o.operation_id in `+in+` and o.operation_id <> '' and o.live = 1`, args...)
		if err != nil {
			return nil, err
		}
		_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
			var id string
			var side ledger.StatementSide
			err := r.Scan(&id, &side)
			sides[id] = side
			return struct{}{}, err
		})
		if err != nil {
			return nil, err
		}
	}
	return sides, nil
}

// LinesAbout lists the lines that say something about an operation and are not
// matched with it: evidence, and what is suggested.
func (s *Store) LinesAbout(ctx context.Context, tenant, operation string) ([]ledger.KeptLine, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+prefixed("l", lineColumns)+` from statement_lines l join statements s on `+visible+`
		where l.tenant_id = $1 and l.operation_id = $2 and l.operation_id <> '' order by l.id limit 100`, tenant, operation)
	if err != nil {
		return nil, err
	}
	return collect(rows, scanLines)
}

// LinesOf lists the lines that an operation is matched with, and those that say
// something else about it.
func (s *Store) LinesOf(ctx context.Context, tenant, operation string) ([]ledger.KeptLine, error) {
	all, err := s.LinesAbout(ctx, tenant, operation)
	if err != nil {
		return nil, err
	}
	matches, err := s.OperationMatches(ctx, tenant, operation)
	if err != nil {
		return nil, err
	}
	for _, m := range matches {
		for _, side := range m.Lines {
			if slices.ContainsFunc(all, func(l ledger.KeptLine) bool { return l.ID == side.LineID }) {
				continue
			}
			l, err := s.StatementLine(ctx, tenant, side.LineID)
			if err != nil {
				return nil, err
			}
			all = append(all, l)
		}
	}
	return all, nil
}

// statementDue is how long after its confirmation an operation may be missing
// from statements, where the rail says nothing else.
const statementDue = 5 * 24 * time.Hour // a working week: what was booked on Friday stands there by Wednesday

// awaited is an operation in the order of its row, as the sweep needs it.
type awaited struct {
	row         int64
	operation   string
	final       bool
	money       bool // it is confirmed, and moved some
	known       bool // seen, or missing already
	confirmedAt int64
	covered     bool
}

// sweepAbsent finds the confirmed operations that a statement should show by now
// and none does.
func (s *Store) sweepAbsent(ctx context.Context) (opened int, err error) {
	rows, err := s.readers.QueryContext(ctx, `select distinct tenant_id, rail from statements where visible_at > 0 and undone_at = 0`)
	if err != nil {
		return 0, err
	}
	rails, err := collect(rows, func(r *sql.Rows) (of [2]string, err error) { return of, r.Scan(&of[0], &of[1]) })
	if err != nil {
		return 0, err
	}
	for _, of := range rails {
		n, err := s.sweepRail(ctx, of[0], of[1])
		opened += n
		if err != nil {
			return opened, err
		}
	}
	return opened, nil
}

func (s *Store) sweepRail(ctx context.Context, tenant, rail string) (opened int, err error) {
	due := statementDue
	if r := s.Rulebook(tenant).Rails[rail]; r.StatementDue > 0 {
		due = r.StatementDue
	}
	var after int64
	if err := s.readers.QueryRowContext(ctx, `select coalesce(max(after_id), 0) from statement_sweeps where tenant_id = $1 and rail = $2`, tenant, rail).Scan(&after); err != nil {
		return 0, err
	}
	mark, moving := after, true
	for ctx.Err() == nil {
		page, err := s.awaitedAfter(ctx, tenant, rail, after)
		if err != nil {
			return opened, err
		}
		var missing []awaited
		for _, a := range page {
			after = a.row
			late := a.money && !a.known && a.covered && a.confirmedAt+due.Milliseconds() <= s.now()
			if late {
				missing = append(missing, a)
			}
			// What has not ended, or is not due yet, is looked at again next time.
			if moving = moving && a.final && (!a.money || a.known || !a.covered || late); moving {
				mark = a.row
			}
		}
		n, err := s.noteAbsent(ctx, tenant, rail, missing, mark)
		opened += n
		if err != nil || len(page) < sweptPage {
			return opened, err
		}
	}
	return opened, ctx.Err()
}

const sweptPage = 500

const selectAwaited = `
	select id, operation_id, final, money, known, confirmed_at, exists (
			select 1 from statements s where s.tenant_id = $1 and s.rail = $2 and s.visible_at > 0 and s.undone_at = 0
			  and s.from_at <= confirmed_at and s.to_at > confirmed_at)
	from (
		select o.id, o.operation_id, o.status in ('confirmed', 'rejected') as final, o.status = 'confirmed' and o.amount is not null as money,
			exists (select 1 from statement_sides d where d.tenant_id = $1 and d.operation_id = o.operation_id and d.operation_id <> '' and d.live = 1)
			or exists (select 1 from statement_absences a where a.tenant_id = $1 and a.operation_id = o.operation_id and a.ended_at = 0) as known,
			coalesce((select min(g.at) from action_log g where g.tenant_id = $1 and g.operation_id = o.operation_id and g.operation_id <> ''
				and g.to_status = 'confirmed' and g.from_status <> 'confirmed'), 0) as confirmed_at
		from operations o where o.tenant_id = $1 and o.rail = $2 and o.id > $3 order by o.id limit $4) as page`

func (s *Store) awaitedAfter(ctx context.Context, tenant, rail string, after int64) ([]awaited, error) {
	rows, err := s.readers.QueryContext(ctx, selectAwaited, tenant, rail, after, sweptPage)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (a awaited, err error) {
		return a, r.Scan(&a.row, &a.operation, &a.final, &a.money, &a.known, &a.confirmedAt, &a.covered)
	})
}

func (s *Store) noteAbsent(ctx context.Context, tenant, rail string, missing []awaited, mark int64) (opened int, err error) {
	err = s.change(ctx, func(t *tx) error {
		opened = 0
		for _, a := range missing {
			n, err := t.affected(`
				insert into statement_absences (tenant_id, operation_id, rail, confirmed_at, opened_at, ended_at, owner, snoozed_until, answered_by, answered_at, reason, version)
				select $1, $2, $3, $4, $5, 0, '', 0, '', 0, '', 1
				where not exists (select 1 from statement_sides where tenant_id = $1 and operation_id = $2 and operation_id <> '' and live = 1)
				on conflict (tenant_id, operation_id) do update set ended_at = 0, opened_at = excluded.opened_at, answered_at = 0, answered_by = '', reason = '', version = statement_absences.version + 1
				where statement_absences.ended_at > 0`, tenant, a.operation, rail, a.confirmedAt, t.now)
			if err != nil {
				return err
			}
			opened += int(n)
		}
		return t.exec(`
			insert into statement_sweeps (tenant_id, rail, after_id) values ($1, $2, $3)
			on conflict (tenant_id, rail) do update set after_id = excluded.after_id`, tenant, rail, mark)
	})
	return opened, err
}

// lookAnew has all operations of a rail held against its statements again: what
// they cover has changed.
func (t *tx) lookAnew(tenant, rail string) error {
	return t.exec(`update statement_sweeps set after_id = 0 where tenant_id = $1 and rail = $2`, tenant, rail)
}

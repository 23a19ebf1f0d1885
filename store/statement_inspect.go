package store

import (
	"context"
	"database/sql"
)

// StatementFault is something about statements that does not hold.
type StatementFault struct {
	TenantID    string
	OperationID string // empty: it is about no operation
	Sentence    string
}

// statementFaults are questions whose every answer is a fault: tenant, operation,
// sentence.
var statementFaults = []string{
	// Each line counts once.
	`select l.tenant_id, '', 'line ' || l.number || ' of ' || l.statement_id || ' is ' || l.state || ' and stands in ' ||
		(select count(*) from statement_sides d where d.line_id = l.id and d.live = 1) || ' match(es)'
	from statement_lines l
	where l.undone = 0 and (select count(*) from statement_sides d where d.line_id = l.id and d.live = 1) <> case when l.state = 'matched' then 1 else 0 end`,
	`select d.tenant_id, '', 'match ' || d.match_id || ' stands, and its line ' || d.line_id || ' was undone'
	from statement_sides d join statement_lines l on l.id = d.line_id where d.live = 1 and l.undone = 1`,
	// What was matched and what was explained add up.
	`select m.tenant_id, '', 'match ' || m.id || ' does not add up'
	from statement_matches m
	where m.difference <> (select coalesce(sum(case when d.line_id is not null then d.amount else -d.amount end), 0) from statement_sides d where d.match_id = m.id)`,
	`select l.tenant_id, '', 'match ' || d.match_id || ' holds line ' || l.number || ' of ' || l.statement_id || ' with another amount'
	from statement_sides d join statement_lines l on l.id = d.line_id where d.amount <> l.amount`,
	`select m.tenant_id, '', 'match ' || m.id || ' and its sides do not agree whether it has ended'
	from statement_matches m join statement_sides d on d.match_id = m.id where (m.ended_at = 0) <> (d.live = 1) group by m.tenant_id, m.id`,
	// Everything in a match is of one tenant and one rail.
	`select m.tenant_id, d.operation_id, 'match ' || m.id || ' holds an operation of another tenant or rail'
	from statement_sides d join statement_matches m on m.id = d.match_id
	where d.operation_id <> '' and not exists (select 1 from operations o where o.tenant_id = m.tenant_id and o.operation_id = d.operation_id and o.rail = m.rail)`,
	`select m.tenant_id, '', 'match ' || m.id || ' holds a line of another tenant or rail'
	from statement_sides d join statement_matches m on m.id = d.match_id join statement_lines l on l.id = d.line_id
	where l.tenant_id <> m.tenant_id or l.rail <> m.rail or d.tenant_id <> m.tenant_id`,
	// A closed period has no unanswered exception.
	`select l.tenant_id, '', 'line ' || l.number || ' of ' || l.statement_id || ' has no answer, and its period is closed'
	from statement_periods p join statement_lines l on l.tenant_id = p.tenant_id and l.rail = p.rail and l.account = p.account and l.counted_at < p.until
	where l.undone = 0 and ` + openLines,
	`select a.tenant_id, a.operation_id, 'no statement shows it, nobody answered that, and the period is closed'
	from statement_periods p join statement_absences a on a.tenant_id = p.tenant_id and a.rail = p.rail and a.confirmed_at < p.until and a.opened_at <= p.closed_at
	where a.ended_at = 0 and a.answered_at = 0`,
	// Opening and lines come to the closing balance.
	`select tenant_id, '', 'the balances of statement ' || id || ' do not add up'
	from statements where visible_at > 0 and opening is not null and closing is not null and opening + total <> closing`,
	`select s.tenant_id, '', 'the lines of statement ' || s.id || ' are not those that were taken in'
	from statements s
	where s.visible_at > 0 and (
		(select count(*) from statement_lines l where l.statement_id = s.id) <> s.lines - s.already
		or s.already = 0 and s.total <> (select coalesce(sum(l.amount), 0) from statement_lines l where l.statement_id = s.id and (l.currency = s.currency or s.currency = '')))`,
}

// StatementFaults lists what does not hold about statements, at most a hundred a
// question. A file that was never opened by a holdfast that takes statements in
// has none.
func (s *Store) StatementFaults(ctx context.Context) ([]StatementFault, error) {
	var there bool
	if err := s.readers.QueryRowContext(ctx, `select exists (select 1 from migrations where name like '%\_statements.%' escape '\')`).Scan(&there); err != nil || !there {
		return nil, err
	}
	var all []StatementFault
	for _, question := range statementFaults {
		rows, err := s.readers.QueryContext(ctx, question+` limit 100`)
		if err != nil {
			return all, err
		}
		found, err := collect(rows, func(r *sql.Rows) (f StatementFault, err error) {
			return f, r.Scan(&f.TenantID, &f.OperationID, &f.Sentence)
		})
		if all = append(all, found...); err != nil {
			return all, err
		}
	}
	return all, nil
}

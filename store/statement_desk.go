package store

import (
	"context"
	"database/sql"
	"slices"

	"holdfast/store/ledger"
)

// LineCounts counts the lines of one import by how far they got.
func (s *Store) LineCounts(ctx context.Context, tenant, statement string) (map[ledger.LineState]int, error) {
	rows, err := s.readers.QueryContext(ctx, `select state, count(*) from statement_lines where statement_id = $1 and tenant_id = $2 and undone = 0 group by state`, statement, tenant)
	if err != nil {
		return nil, err
	}
	counts := map[ledger.LineState]int{}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var state ledger.LineState
		var n int
		err := r.Scan(&state, &n)
		counts[state] = n
		return struct{}{}, err
	})
	return counts, err
}

// ManyExceptions is where counting exceptions for every page ends: who has more
// reads "more than".
const ManyExceptions = 1000

// WaitingExceptions counts what needs an answer, up to ManyExceptions and one
// more. It stands on every page, so it never reads all of a large file.
func (s *Store) WaitingExceptions(ctx context.Context, tenant string) (n int, err error) {
	args := append(ExceptionFilter{}.args(s, tenant), ManyExceptions+1)
	err = s.readers.QueryRowContext(ctx, `
		select (select count(*) from (select l.id`+fromOpenLines+` limit $9)) + (select count(*) from (select a.operation_id`+fromOpenAbsences+` limit $9))`, args...).Scan(&n)
	return min(n, ManyExceptions+1), err
}

// CountByFinding counts what needs an answer by what is wrong; under the empty
// finding stand suggestions with nothing wrong.
func (s *Store) CountByFinding(ctx context.Context, tenant string) (map[ledger.LineFinding]int, error) {
	rows, err := s.readers.QueryContext(ctx, `select l.finding, count(*)`+fromOpenLines+` group by l.finding
		union all select 'missing', count(*)`+fromOpenAbsences, ExceptionFilter{}.args(s, tenant)...)
	if err != nil {
		return nil, err
	}
	counts := map[ledger.LineFinding]int{}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var finding ledger.LineFinding
		var n int
		err := r.Scan(&finding, &n)
		counts[finding] = n
		return struct{}{}, err
	})
	return counts, err
}

// AccountLines is how many lines of an account's statements need an answer.
type AccountLines struct {
	Rail, Account string
	N             int
}

// UnmatchedLines counts, for every account that has statements, the lines that
// no operation explains and nobody answered; none is told as zero.
func (s *Store) UnmatchedLines(ctx context.Context, tenant string) ([]AccountLines, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select rail, account, sum(n) from (
			select distinct rail, account, 0 as n from statements where tenant_id = $1 and visible_at > 0 and undone_at = 0
			union all
			select l.rail, l.account, count(*) as n from statement_lines l join statements s on `+visible+`
			where l.tenant_id = $1 and l.state in ('unmatched', 'suggested') and `+openLines+` group by l.rail, l.account) as a
		group by rail, account order by rail, account`, tenant)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (a AccountLines, err error) { return a, r.Scan(&a.Rail, &a.Account, &a.N) })
}

// StatementAccount is an account that has statements, how far they reach, and up
// to when it is closed.
type StatementAccount struct {
	Rail, Account       string
	ReachesTo, ClosedTo int64
}

// StatementAccounts lists them.
func (s *Store) StatementAccounts(ctx context.Context, tenant string) ([]StatementAccount, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select s.rail, s.account, max(s.to_at), coalesce((
			select max(p.until) from statement_periods p where p.tenant_id = s.tenant_id and p.rail = s.rail and p.account = s.account), 0)
		from statements s where s.tenant_id = $1 and s.visible_at > 0 and s.undone_at = 0 group by s.tenant_id, s.rail, s.account order by s.rail, s.account`, tenant)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (a StatementAccount, err error) {
		return a, r.Scan(&a.Rail, &a.Account, &a.ReachesTo, &a.ClosedTo)
	})
}

// unseenPages is how many pages of operations one list looks through: on an
// account where nearly all is matched, what is left is far apart.
const unseenPages = 10

// UnseenOperations lists the operations of a rail, submitted between two moments,
// that moved money or may have, and stand on no statement yet. next goes on after
// them; 0: there are no more.
func (s *Store) UnseenOperations(ctx context.Context, tenant, rail string, from, to, after int64, limit int) (all []ledger.Operation, next int64, err error) {
	after = max(after, firstRowID(max(from, 0))-1)
	for range unseenPages {
		last, n := after, 0
		rows, err := s.readers.QueryContext(ctx, `
			select o.id, o.amount is not null and o.status in ('confirmed', 'unknown', 'unknown_hold') and not exists (
				select 1 from statement_sides d where d.tenant_id = $1 and d.operation_id = o.operation_id and d.operation_id <> '' and d.live = 1), `+prefixed("o", operationColumns)+`
			from operations o where o.tenant_id = $1 and o.rail = $2 and o.id > $3 and o.id < $4 order by o.id limit $5`, tenant, rail, after, rowIDNear(to), sweptPage)
		if err != nil {
			return nil, 0, err
		}
		_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
			var row int64
			var open bool
			o, err := scanOperation(scanAfter{r, []any{&row, &open}})
			n++
			if len(all) < limit {
				last = row
				if open {
					all = append(all, o)
				}
			}
			return struct{}{}, err
		})
		switch {
		case err != nil:
			return nil, 0, err
		case len(all) >= limit:
			return all, last, nil
		case n < sweptPage:
			return all, 0, nil
		}
		after = last
	}
	return all, after, nil
}

// RefundsOfReceipts finds the entries that were opened for some effects, by rail
// and receipt.
func (s *Store) RefundsOfReceipts(ctx context.Context, tenant string, receipts []string) (map[[2]string]ledger.RefundOwed, error) {
	found := map[[2]string]ledger.RefundOwed{}
	for chunk := range slices.Chunk(receipts, lookedUp) {
		args := []any{tenant}
		for _, r := range chunk {
			args = append(args, r)
		}
		rows, err := s.readers.QueryContext(ctx, `
			select `+refundColumns+` from refunds_owed where tenant_id = $1 and receipt_id in (`+placeholders(2, len(chunk))[2:]+`)`, args...)
		if err != nil {
			return nil, err
		}
		entries, err := collect(rows, scanRefundRow)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			found[[2]string{e.Rail, e.ReceiptID}] = e
		}
	}
	return found, nil
}

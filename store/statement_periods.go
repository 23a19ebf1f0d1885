package store

import (
	"context"
	"database/sql"
	"fmt"

	"holdfast/store/ledger"
)

const selectClosedUntil = `select coalesce(max(until), 0) from statement_periods where tenant_id = $1 and rail = $2 and account = $3`

func (s *Store) closedUntil(ctx context.Context, tenant, rail, account string) (until int64, err error) {
	return until, s.readers.QueryRowContext(ctx, selectClosedUntil, tenant, rail, account).Scan(&until)
}

func (t *tx) closedUntil(tenant, rail, account string) (until int64, err error) {
	return until, t.row(selectClosedUntil, tenant, rail, account).Scan(&until)
}

// PeriodReport is what stands in the way of closing an account up to a moment,
// and what would be counted.
type PeriodReport struct {
	ledger.PeriodSheet
	Open       []Exception // each needs an answer first; at most a hundred are listed
	StillOpen  int         // how many there are
	ReachesTo  int64       // the end of what the statements cover
	ClosedFrom int64       // the end of what is closed already
}

// ReportPeriod says what is missing before an account can be closed up to a moment.
func (s *Store) ReportPeriod(ctx context.Context, tenant, rail, account string, until int64) (r PeriodReport, err error) {
	if r.ClosedFrom, err = s.closedUntil(ctx, tenant, rail, account); err != nil {
		return r, err
	}
	if r.ReachesTo, err = s.reachesTo(ctx, tenant, rail, account); err != nil {
		return r, err
	}
	f := ExceptionFilter{Rail: rail, Account: account, Before: until, Limit: 100}
	if r.Open, err = s.StatementExceptions(ctx, tenant, f); err != nil {
		return r, err
	}
	if r.StillOpen, err = s.CountStatementExceptions(ctx, tenant, f); err != nil {
		return r, err
	}
	r.PeriodSheet, err = s.sheet(ctx, tenant, rail, account, r.ClosedFrom, until)
	return r, err
}

// reachesTo is up to when the statements of an account go; zero: it has none.
func (s *Store) reachesTo(ctx context.Context, tenant, rail, account string) (at int64, err error) {
	err = s.readers.QueryRowContext(ctx, `
		select coalesce(max(to_at), 0) from statements where tenant_id = $1 and rail = $2 and account = $3 and visible_at > 0 and undone_at = 0`,
		tenant, rail, account).Scan(&at)
	return at, err
}

func (s *Store) sheet(ctx context.Context, tenant, rail, account string, from, until int64) (p ledger.PeriodSheet, err error) {
	p.Totals, p.Apart = map[string]int64{}, map[string]int64{}
	const lines = ` from statement_lines l join statements s on ` + visible + `
		where l.tenant_id = $1 and l.rail = $2 and l.account = $3 and l.counted_at >= $4 and l.counted_at < $5`
	args := []any{tenant, rail, account, from, until}
	rows, err := s.readers.QueryContext(ctx, `
		select l.currency, count(*), coalesce(sum(case when l.state = 'matched' then 1 end), 0), coalesce(sum(case when l.state = 'set_aside' then 1 end), 0), `+
		wideSum("l.amount")+lines+` group by l.currency`, args...)
	if err != nil {
		return p, err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var currency string
		var n, matched, aside int
		var sum wide
		err := r.Scan(&currency, &n, &matched, &aside, &sum.high, &sum.low)
		p.Lines, p.Matched, p.SetAside = p.Lines+n, p.Matched+matched, p.SetAside+aside
		p.Totals[currency] = sum.amount()
		return struct{}{}, err
	})
	if err != nil {
		return p, err
	}
	rows, err = s.readers.QueryContext(ctx, `
		select m.explained_as, coalesce(sum(m.difference), 0) from statement_matches m
		where m.explained_as <> '' and m.ended_at = 0 and m.id in (
			select d.match_id from statement_sides d where d.live = 1 and d.line_id in (select l.id`+lines+`))
		group by m.explained_as`, args...)
	if err != nil {
		return p, err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var as string
		var sum int64
		err := r.Scan(&as, &sum)
		p.Apart[as] = sum
		return struct{}{}, err
	})
	if err != nil {
		return p, err
	}
	err = s.readers.QueryRowContext(ctx, `
		select count(*) from statement_absences where tenant_id = $1 and rail = $2 and confirmed_at >= $3 and confirmed_at < $4 and answered_at > 0 and ended_at = 0`,
		tenant, rail, from, until).Scan(&p.Missing)
	return p, err
}

// ErrSheetChanged refuses to lock what was not looked at: it can't be opened again.
var ErrSheetChanged = fmt.Errorf("%w: the sheet up to that day was not what you saw; look at it, and close it then", ErrForbidden)

// ClosePeriod locks an account up to a moment: no line, match or import before it
// changes any more. Every exception has to be answered, and statements have to
// reach that far. What is in the way is in the report.
func (s *Store) ClosePeriod(ctx context.Context, tenant, rail, account string, until int64, d Decision) (PeriodReport, error) {
	if err := mayMatch(tenant, d.Person); err != nil {
		return PeriodReport{}, err
	}
	defer s.lockAccount(StatementFile{TenantID: tenant, Rail: rail, Statement: ledger.Statement{Account: account}})()
	// Asked before anything is matched, and once more in the commit that closes.
	switch r, err := s.ReportPeriod(ctx, tenant, rail, account, until); {
	case err != nil:
		return r, err
	case r.ReachesTo == 0: // who names no account of theirs sets nothing going
		return r, ErrNotFound
	case r.StillOpen == 0 && until > r.ClosedFrom && until <= r.ReachesTo && d.Seen.Fingerprint != r.Seen(until):
		return r, ErrSheetChanged
	}
	if _, err := s.MatchStatements(ctx); err != nil {
		return PeriodReport{}, err
	}
	r, err := s.ReportPeriod(ctx, tenant, rail, account, until)
	if err != nil {
		return r, err
	}
	err = s.change(ctx, func(t *tx) error {
		open, err := t.openBefore(tenant, rail, account, until)
		switch {
		case err != nil:
			return err
		case until <= r.ClosedFrom:
			return ErrStale
		case until > t.now:
			return refusal("that is not over yet")
		case r.ReachesTo < until:
			return refusal("the statements of %s end with %s; import what is missing first", account, day(r.ReachesTo-1))
		case open > 0 || r.StillOpen > 0:
			return refusal("%d exception(s) need an answer first", max(open, r.StillOpen))
		case d.Seen.Fingerprint != r.Seen(until):
			return ErrSheetChanged
		}
		if err := t.exec(`insert into statement_periods (tenant_id, rail, account, until, closed_by, closed_at, sheet) values ($1, $2, $3, $4, $5, $6, $7)`,
			tenant, rail, account, until, d.Person.Email, t.now, text(r.PeriodSheet)); err != nil {
			return err
		}
		return t.log(ledger.Entry{TenantID: tenant, Object: "statement_period", ObjectID: rail + " " + account, Event: "close", ActorKind: ledger.Person, Actor: d.Person.Email,
			Sentence: fmt.Sprintf("%s closed %s, account %s, up to %s: %d lines.", d.Person.Display(), rail, account, day(until-1), r.Lines), Fact: text(r.PeriodSheet)})
	})
	return r, err
}

// openBefore counts, in the commit that closes, what would be locked unanswered.
func (t *tx) openBefore(tenant, rail, account string, until int64) (n int, err error) {
	err = t.row(`
		select (select count(*) from statement_lines l join statements s on `+visible+`
				where l.tenant_id = $1 and l.rail = $2 and l.account = $3 and l.counted_at < $4 and l.state in ('unmatched', 'suggested')
				  and (`+openLines+` or l.weighed_at = 0))
			+ (select count(*) from statement_absences where tenant_id = $1 and rail = $2 and confirmed_at < $4 and ended_at = 0 and answered_at = 0)`,
		tenant, rail, account, until).Scan(&n)
	return n, err
}

// StatementPeriods lists what was closed, newest first.
func (s *Store) StatementPeriods(ctx context.Context, tenant, rail, account string) ([]ledger.StatementPeriod, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select tenant_id, rail, account, until, closed_by, closed_at, sheet from statement_periods
		where tenant_id = $1 and ($2 = '' or rail = $2) and ($3 = '' or account = $3) order by until desc, rail, account limit 1000`, tenant, rail, account)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (p ledger.StatementPeriod, err error) {
		var sheet string
		err = r.Scan(&p.TenantID, &p.Rail, &p.Account, &p.Until, &p.ClosedBy, &p.ClosedAt, &sheet)
		fromText(sheet, &p.Sheet)
		return p, err
	})
}

// KeepMapping keeps how a person said that files with this header are read.
func (s *Store) KeepMapping(ctx context.Context, tenant, rail, fingerprint string, answers map[string]string, by ledger.Holder) error {
	return s.change(ctx, func(t *tx) error {
		return t.exec(`
			insert into statement_mappings (tenant_id, rail, fingerprint, answers, by, at) values ($1, $2, $3, $4, $5, $6)
			on conflict (tenant_id, rail, fingerprint) do update set answers = excluded.answers, by = excluded.by, at = excluded.at`,
			tenant, rail, fingerprint, text(answers), by.Name, t.now)
	})
}

// Mapping is how files with this header are read; nil where nobody said so.
func (s *Store) Mapping(ctx context.Context, tenant, rail, fingerprint string) (answers map[string]string, err error) {
	rows, err := s.readers.QueryContext(ctx, `select answers from statement_mappings where tenant_id = $1 and rail = $2 and fingerprint = $3`, tenant, rail, fingerprint)
	if err != nil {
		return nil, err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var kept string
		err := r.Scan(&kept)
		fromText(kept, &answers)
		return struct{}{}, err
	})
	return answers, err
}

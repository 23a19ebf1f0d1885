package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"holdfast/store/ledger"
)

const lineColumns = `id, statement_id, tenant_id, rail, account, number, line_id, provider_id, stamp, hash, kind, amount, gross, fee, currency,
	booked_at, counted_at, date_only, counterparty, reference, batch, text, content, occurrence,
	state, finding, operation_id, rule, sentence, not_this, owner, snoozed_until, answered_by, reason, version, weighed_at, of_id, zone`

func scanLine(row scanner) (l ledger.KeptLine, err error) {
	var dateOnly int
	var notThis string
	err = row.Scan(&l.ID, &l.StatementID, &l.TenantID, &l.Rail, &l.Account, &l.Number, &l.LineID, &l.ProviderID, &l.Stamp, &l.Hash, &l.Kind,
		&l.Amount, &l.Gross, &l.Fee, &l.Currency, &l.At, &l.CountedAt, &dateOnly, &l.Counterparty, &l.Reference, &l.Batch, &l.Text, &l.Content, &l.Occurrence,
		&l.State, &l.Finding, &l.OperationID, &l.Rule, &l.Sentence, &notThis, &l.Owner, &l.SnoozedUntil, &l.AnsweredBy, &l.Reason, &l.Version, &l.WeighedAt, &l.Of, &l.Zone)
	fromText(notThis, &l.NotThis)
	l.DateOnly = dateOnly == 1
	return l, notFound(err)
}

func scanLines(rows *sql.Rows) (ledger.KeptLine, error) { return scanLine(rows) }

func (t *tx) addLine(l ledger.KeptLine) error {
	return t.exec(`
		insert into statement_lines (`+lineColumns+`, identity, reference_key, undone)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
			'unmatched', '', '', '', '', '[]', '', 0, '', '', 1, 0, $27, $28, $25, $26, 0)`,
		l.ID, l.StatementID, l.TenantID, l.Rail, l.Account, l.Number, l.LineID, l.ProviderID, l.Stamp, l.Hash, l.Kind,
		l.Amount, l.Gross, l.Fee, l.Currency, l.At, l.CountedAt, flag(l.DateOnly), l.Counterparty, l.Reference, l.Batch, l.Text, l.Content, l.Occurrence,
		l.Identity(), ledger.ReferenceKey(l.Reference), l.Of, l.Zone)
}

// lookedUp is how many identities are asked about in one query.
const lookedUp = 200

// newLines are those of a file that the ledger does not hold. The nth line of an
// identity in the file is the nth one on the account: of two equal lines both are
// kept, and neither is stored again.
func (s *Store) newLines(ctx context.Context, i ledger.StatementImport, lines []ledger.StatementLine, closed int64) (fresh []ledger.KeptLine, already int, err error) {
	type key struct {
		identity   string
		occurrence int
	}
	seen := map[string]int{}
	for len(lines) > 0 {
		chunk := lines[:min(lookedUp, len(lines))]
		lines = lines[len(chunk):]
		args := []any{i.TenantID, i.Rail, i.Account}
		for _, l := range chunk {
			args = append(args, l.Identity())
		}
		rows, err := s.readers.QueryContext(ctx, `
			select `+lineColumns+` from statement_lines
			where tenant_id = $1 and rail = $2 and account = $3 and identity in (`+placeholders(4, len(chunk))[2:]+`) and undone = 0`, args...)
		if err != nil {
			return nil, 0, err
		}
		stored, err := collect(rows, scanLines)
		if err != nil {
			return nil, 0, err
		}
		held := map[key]ledger.KeptLine{}
		for _, l := range stored {
			held[key{l.Identity(), l.Occurrence}] = l
		}
		for _, l := range chunk {
			seen[l.Identity()]++
			l.Occurrence = seen[l.Identity()]
			was, there := held[key{l.Identity(), l.Occurrence}]
			if !there {
				fresh = append(fresh, ledger.KeptLine{StatementLine: l, StatementID: i.ID, TenantID: i.TenantID, Rail: i.Rail, Account: i.Account, CountedAt: max(l.At, closed)})
				continue
			}
			if differs := otherContent(was.StatementLine, l); differs != "" {
				return nil, 0, StatementRefused{l.Number, fmt.Sprintf("%s is on record already with another %s (line %d of an earlier statement); nothing was stored", l.LineID, differs, was.Number)}
			}
			already++
		}
	}
	return fresh, already, nil
}

// otherContent names in what a line that has the name of a stored one differs
// from it. Its texts may: two formats of one statement word them differently.
func otherContent(was, l ledger.StatementLine) string {
	apart := was.At - l.At
	near := int64(0)
	if was.DateOnly != l.DateOnly {
		near = (36 * time.Hour).Milliseconds() // a day of some zone, and a moment in it
	}
	switch {
	case was.Amount != l.Amount:
		return "amount"
	case was.Currency != l.Currency:
		return "currency"
	case was.Kind != l.Kind && was.Kind != "" && l.Kind != "":
		return "kind"
	case was.ProviderID != l.ProviderID && was.ProviderID != "" && l.ProviderID != "":
		return "provider id"
	case apart > near || apart < -near:
		return "date"
	}
	return ""
}

// visible is the condition that a line is there for readers. It needs statements
// as s and statement_lines as l.
const visible = `s.id = l.statement_id and s.visible_at > 0 and s.undone_at = 0 and l.undone = 0`

// LineFilter narrows a list of lines; what is empty does not.
type LineFilter struct {
	StatementID, Rail, Account string
	State                      ledger.LineState
	Finding                    ledger.LineFinding
	From, To                   int64 // counted
	After                      int64 // id of the last line of the page before
	Limit                      int
}

// StatementLines lists lines in the order in which they were stored.
func (s *Store) StatementLines(ctx context.Context, tenant string, f LineFilter) ([]ledger.KeptLine, error) {
	where, args := `l.tenant_id = $1 and l.id > $2`, []any{tenant, f.After}
	narrow := func(condition string, v any) {
		args = append(args, v)
		where += fmt.Sprintf(" and "+condition, len(args))
	}
	for _, c := range []struct{ column, value string }{{"l.statement_id", f.StatementID}, {"l.rail", f.Rail}, {"l.account", f.Account},
		{"l.state", string(f.State)}, {"l.finding", string(f.Finding)}} {
		if c.value != "" {
			narrow(c.column+" = $%d", c.value)
		}
	}
	if f.From > 0 {
		narrow("l.counted_at >= $%d", f.From)
	}
	if f.To > 0 {
		narrow("l.counted_at < $%d", f.To)
	}
	args = append(args, min(max(f.Limit, 1), 1000))
	rows, err := s.readers.QueryContext(ctx, fmt.Sprintf(`
		select `+prefixed("l", lineColumns)+` from statement_lines l join statements s on `+visible+`
		where `+where+` order by l.id limit $%d`, len(args)), args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, scanLines)
}

// StatementLine is one line, also of a statement that was undone.
func (s *Store) StatementLine(ctx context.Context, tenant string, id int64) (ledger.KeptLine, error) {
	return scanLine(s.readers.QueryRowContext(ctx, `select `+lineColumns+` from statement_lines where tenant_id = $1 and id = $2`, tenant, id))
}

func (t *tx) line(tenant string, id int64) (ledger.KeptLine, error) {
	return scanLine(t.row(`select `+prefixed("l", lineColumns)+` from statement_lines l join statements s on `+visible+` where l.tenant_id = $1 and l.id = $2`, tenant, id))
}

// saveLine writes what may change about a line.
func (t *tx) saveLine(was, l ledger.KeptLine) error {
	n, err := t.affected(`
		update statement_lines set state = $1, finding = $2, operation_id = $3, rule = $4, sentence = $5, not_this = $6, owner = $7, snoozed_until = $8,
			answered_by = $9, reason = $10, version = $11, weighed_at = $12
		where id = $13 and version = $14 and undone = 0`,
		l.State, l.Finding, l.OperationID, l.Rule, l.Sentence, text(l.NotThis), l.Owner, l.SnoozedUntil, l.AnsweredBy, l.Reason, was.Version+1, l.WeighedAt, l.ID, was.Version)
	if err == nil && n != 1 {
		err = ErrStale
	}
	return err
}

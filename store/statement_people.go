package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast/store/ledger"
)

// LineSeen is a line as a person had it on the screen.
type LineSeen struct {
	ID      int64
	Version int64
}

// Joining is what a person says belongs together.
type Joining struct {
	Person      ledger.PersonRecord
	Lines       []LineSeen
	Operations  []string
	ExplainedAs string // what the difference is: fee · fx · rounding · other; empty: there is none
	Explained   string // needed for other
	Reason      string
}

// explanations are what a difference may be explained as.
var explanations = []string{"fee", "fx", "rounding", "other"}

// refusal is a rule that a person ran into, said to them.
func refusal(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrForbidden, fmt.Sprintf(format, args...))
}

// mayMatch admits a person of the tenant who may do more than read.
func mayMatch(tenant string, p ledger.PersonRecord) error {
	if p.TenantID != tenant {
		return ErrNotFound
	}
	if ok, why := ledger.MayAct(p.Email, p.Roles); !ok {
		return refusal("%s", why)
	}
	return nil
}

// MatchDifference is what some lines show less what some operations come to, and
// the currency: the figure under the two columns.
func MatchDifference(lines []ledger.KeptLine, operations []ledger.Operation) (ledger.StatementMatch, string, error) {
	var m ledger.StatementMatch
	if len(lines) == 0 || len(operations) == 0 {
		return m, "", refusal("choose at least one line and one operation")
	}
	currency := lines[0].Currency
	for _, l := range lines {
		if l.Currency != currency || l.Rail != lines[0].Rail {
			return m, currency, refusal("the lines are of different currencies or rails")
		}
		m.Lines = append(m.Lines, ledger.MatchSide{LineID: l.ID, Amount: l.Amount})
	}
	shown, ok := ledger.MatchSum(m.Lines)
	for _, o := range operations {
		side, err := operationSide(o, currency, shown, len(operations))
		if err != nil {
			return m, currency, err
		}
		m.Operations = append(m.Operations, side)
	}
	ours, okOurs := ledger.MatchSum(m.Operations)
	m.Difference = shown - ours
	if !ok || !okOurs {
		return m, currency, refusal("the amounts come to more than is counted here")
	}
	return m, currency, nil
}

func operationSide(o ledger.Operation, currency string, shown int64, of int) (ledger.MatchSide, error) {
	switch {
	case o.Status != ledger.Confirmed:
		return ledger.MatchSide{}, refusal("%s is not confirmed; say first on its page what happened", o.OperationID)
	case !o.Terms.HasAmount:
		return ledger.MatchSide{}, refusal("%s moved no money", o.OperationID)
	case !strings.EqualFold(o.Terms.Currency, currency):
		return ledger.MatchSide{}, refusal("%s is in %s, the lines are in %s", o.OperationID, o.Terms.Currency, currency)
	}
	amount := o.Terms.Amount
	if o.Receipt != nil && o.Receipt.Amount != nil {
		amount = *o.Receipt.Amount
	}
	switch {
	case of == 1:
		amount = ledger.SignedLike(shown, amount)
	case o.Effect == "refund" || o.Effect == "payout":
		amount = -amount
	}
	return ledger.MatchSide{OperationID: o.OperationID, Amount: amount}, nil
}

// Match joins lines and operations by a person's word. What the amounts differ in
// has to be explained.
func (s *Store) Match(ctx context.Context, tenant string, j Joining) (ledger.StatementMatch, error) {
	var m ledger.StatementMatch
	err := s.change(ctx, func(t *tx) error {
		if err := mayMatch(tenant, j.Person); err != nil {
			return err
		}
		var lines []ledger.KeptLine
		for _, seen := range j.Lines {
			l, err := t.openLine(tenant, seen)
			if err != nil {
				return err
			}
			lines = append(lines, l)
		}
		var operations []ledger.Operation
		for _, id := range j.Operations {
			o, err := t.operation(tenant, id)
			if err != nil {
				return err
			}
			if len(lines) > 0 && o.Rail != lines[0].Rail {
				return refusal("%s went over the rail %s", id, o.Rail)
			}
			operations = append(operations, o)
		}
		var err error
		if m, _, err = MatchDifference(lines, operations); err != nil {
			return err
		}
		return t.join(&m, tenant, j, lines)
	})
	return m, err
}

func (t *tx) join(m *ledger.StatementMatch, tenant string, j Joining, lines []ledger.KeptLine) error {
	switch {
	case m.Difference == 0 && j.ExplainedAs != "":
		return refusal("nothing differs, so there is nothing to explain")
	case m.Difference != 0 && !slices.Contains(explanations, j.ExplainedAs):
		return refusal("the amounts differ by %s; say what that is: fee, fx, rounding or other", ledger.Currencies{}.Format(m.Difference, lines[0].Currency))
	case j.ExplainedAs == "other" && strings.TrimSpace(j.Explained) == "":
		return refusal("say what the difference is")
	}
	m.ID, m.TenantID, m.Rail, m.Rule, m.By, m.At = randomID("mat_"), tenant, lines[0].Rail, ledger.ByHand, j.Person.Email, t.now
	m.ExplainedAs, m.Explained, m.Reason = j.ExplainedAs, j.Explained, j.Reason
	err := t.addMatch(*m)
	if isUnique(err) {
		return refusal("one of the operations is on a statement already; unmatch it first")
	}
	if err != nil {
		return err
	}
	for _, l := range lines {
		was := l
		l.State, l.Finding, l.Rule, l.OperationID, l.AnsweredBy, l.WeighedAt = ledger.LineMatched, "", ledger.ByHand, j.Operations[0], j.Person.Email, t.now
		l.Sentence = fmt.Sprintf("%s matched it.", j.Person.Display())
		if err := t.saveLine(was, l); err != nil {
			return err
		}
	}
	return t.logMatch(*m, "match", j.Person, fmt.Sprintf("%s matched %d line(s) with %s.", j.Person.Display(), len(lines), strings.Join(j.Operations, ", ")))
}

func (t *tx) logMatch(m ledger.StatementMatch, event string, p ledger.PersonRecord, sentence string) error {
	return t.log(ledger.Entry{TenantID: m.TenantID, Object: "statement_match", ObjectID: m.ID, Event: event, ActorKind: ledger.Person, Actor: p.Email,
		Sentence: sentence, Fact: text(m)})
}

// openLine is a line as the person saw it, in a period that is open.
func (t *tx) openLine(tenant string, seen LineSeen) (ledger.KeptLine, error) {
	l, err := t.line(tenant, seen.ID)
	if err != nil {
		return l, err
	}
	if l.Version != seen.Version {
		return l, ErrStale
	}
	closed, err := t.closedUntil(tenant, l.Rail, l.Account)
	if err == nil && l.CountedAt < closed {
		err = refusal("its period is closed")
	}
	if err == nil && l.State == ledger.LineMatched {
		err = errLineMatched
	}
	return l, err
}

var errLineMatched = fmt.Errorf("%w: the line is matched; unmatch it first", ErrForbidden)

// Unmatch ends the match of a line, with all that belongs to it, or turns a
// suggestion down. The program does not suggest the same again.
func (s *Store) Unmatch(ctx context.Context, tenant string, seen LineSeen, d Decision) error {
	return s.change(ctx, func(t *tx) error {
		if err := mayAct(tenant, d); err != nil {
			return err
		}
		l, err := t.openLine(tenant, seen)
		switch {
		case errors.Is(err, errLineMatched):
			return t.endMatchOf(l, d)
		case err != nil:
			return err
		case l.State != ledger.LineSuggested:
			return refusal("the line is not matched, and nothing is suggested for it")
		}
		return t.turnDown(l, []string{l.OperationID}, d)
	})
}

// turnDown keeps that a line is none of some operations, and has it looked at anew.
func (t *tx) turnDown(l ledger.KeptLine, operations []string, d Decision) error {
	was := l
	l.NotThis = append(slices.Clone(l.NotThis), operations...)
	l.State, l.Finding, l.Rule, l.OperationID, l.WeighedAt = ledger.LineUnmatched, "", "", "", 0
	l.AnsweredBy, l.Reason, l.Sentence = d.Person.Email, d.Reason, fmt.Sprintf("%s said that it is not %s.", d.Person.Display(), strings.Join(operations, ", "))
	if err := t.saveLine(was, l); err != nil {
		return err
	}
	return t.log(ledger.Entry{TenantID: l.TenantID, Object: "statement_line", ObjectID: fmt.Sprint(l.ID), Event: "unmatch", ActorKind: ledger.Person,
		Actor: d.Person.Email, Sentence: l.Sentence, Fact: factText(map[string]any{"reason": d.Reason, "operations": operations})})
}

func (t *tx) endMatchOf(l ledger.KeptLine, d Decision) error {
	m, err := scanMatch(t.row(`select `+matchColumns+` from statement_matches where id = (select match_id from statement_sides where line_id = $1 and live = 1)`, l.ID))
	if err != nil {
		return err
	}
	if m.Lines, m.Operations, err = t.sides(m.ID); err != nil {
		return err
	}
	if err := t.endMatch(m.ID, d.Person.Email, d.Reason); err != nil {
		return err
	}
	var operations []string
	for _, o := range m.Operations {
		operations = append(operations, o.OperationID)
	}
	for _, side := range m.Lines {
		l, err := t.line(l.TenantID, side.LineID)
		if err != nil {
			return err
		}
		closed, err := t.closedUntil(l.TenantID, l.Rail, l.Account)
		if err != nil {
			return err
		}
		if l.CountedAt < closed {
			return refusal("line %d belongs to it, and its period is closed", l.Number)
		}
		if err := t.turnDown(l, operations, d); err != nil {
			return err
		}
	}
	if err := t.lookAnew(l.TenantID, l.Rail); err != nil {
		return err
	}
	m.EndedAt, m.EndedBy, m.EndedReason = t.now, d.Person.Email, d.Reason
	return t.logMatch(m, "unmatch", d.Person, fmt.Sprintf("%s ended the match with %s: %s", d.Person.Display(), strings.Join(operations, ", "), d.Reason))
}

func (t *tx) endMatch(id, by, reason string) error {
	if err := t.exec(`update statement_matches set ended_at = $1, ended_by = $2, ended_reason = $3 where id = $4 and ended_at = 0`, t.now, by, reason, id); err != nil {
		return err
	}
	return t.exec(`update statement_sides set live = 0 where match_id = $1 and live = 1`, id)
}

// Exceptional names what a person answers: a line, or an operation that no
// statement shows.
type Exceptional struct {
	LineID      int64
	OperationID string
	Version     int64 // as seen
}

// SetAside answers an exception without a match: the reason says why none is
// needed.
func (s *Store) SetAside(ctx context.Context, tenant string, e Exceptional, d Decision) error {
	return s.change(ctx, func(t *tx) error {
		if err := mayAct(tenant, d); err != nil {
			return err
		}
		if e.LineID == 0 {
			return t.changeAbsence(tenant, e, "set_aside", d, `answered_by = $1, answered_at = $2, reason = $3`, d.Person.Email, t.now, d.Reason)
		}
		l, err := t.openLine(tenant, LineSeen{e.LineID, e.Version})
		if err != nil {
			return err
		}
		was := l
		l.State, l.AnsweredBy, l.Reason, l.WeighedAt = ledger.LineSetAside, d.Person.Email, d.Reason, t.now
		return t.changeLine(was, l, "set_aside", d)
	})
}

// TakeException makes a person its owner; an empty e-mail hands it back.
func (s *Store) TakeException(ctx context.Context, tenant string, e Exceptional, p ledger.PersonRecord, owner string) error {
	return s.changeException(ctx, tenant, e, p, "take", func(l *ledger.KeptLine) { l.Owner = owner }, `owner = $1`, owner)
}

// SnoozeException puts it away until a moment; 0 brings it back.
func (s *Store) SnoozeException(ctx context.Context, tenant string, e Exceptional, p ledger.PersonRecord, until int64) error {
	return s.changeException(ctx, tenant, e, p, "snooze", func(l *ledger.KeptLine) { l.SnoozedUntil = until }, `snoozed_until = $1`, until)
}

func (s *Store) changeException(ctx context.Context, tenant string, e Exceptional, p ledger.PersonRecord, event string, with func(*ledger.KeptLine), set string, value any) error {
	return s.change(ctx, func(t *tx) error {
		if err := mayMatch(tenant, p); err != nil {
			return err
		}
		d := Decision{Person: p}
		if e.LineID == 0 {
			return t.changeAbsence(tenant, e, event, d, set, value)
		}
		l, err := t.openLine(tenant, LineSeen{e.LineID, e.Version})
		if err != nil {
			return err
		}
		was := l
		with(&l)
		return t.changeLine(was, l, event, d)
	})
}

func (t *tx) changeLine(was, l ledger.KeptLine, event string, d Decision) error {
	if err := t.saveLine(was, l); err != nil {
		return err
	}
	return t.log(ledger.Entry{TenantID: l.TenantID, Object: "statement_line", ObjectID: fmt.Sprint(l.ID), Event: event, ActorKind: ledger.Person, Actor: d.Person.Email,
		Sentence: strings.TrimSpace(fmt.Sprintf("%s: %s of line %d. %s", d.Person.Display(), strings.ReplaceAll(event, "_", " "), l.Number, d.Reason)),
		Fact:     factText(map[string]any{"statement": l.StatementID, "reason": d.Reason, "owner": l.Owner, "snoozed_until": l.SnoozedUntil})})
}

func (t *tx) changeAbsence(tenant string, e Exceptional, event string, d Decision, set string, values ...any) error {
	n := len(values)
	args := append(slices.Clone(values), tenant, e.OperationID, e.Version)
	changed, err := t.affected(fmt.Sprintf(`
		update statement_absences set %s, version = version + 1
		where tenant_id = $%d and operation_id = $%d and version = $%d and ended_at = 0 and answered_at = 0`, set, n+1, n+2, n+3), args...)
	if err != nil {
		return err
	}
	if changed != 1 {
		return ErrStale
	}
	return t.log(ledger.Entry{TenantID: tenant, Object: "statement_absence", ObjectID: e.OperationID, Event: event, ActorKind: ledger.Person, Actor: d.Person.Email,
		Sentence: strings.TrimSpace(fmt.Sprintf("%s: %s of %s, which no statement shows. %s", d.Person.Display(), strings.ReplaceAll(event, "_", " "), e.OperationID, d.Reason)),
		Fact:     factText(map[string]any{"reason": d.Reason})})
}

const matchColumns = `id, tenant_id, rail, rule, difference, explained_as, explained, matched_by, reason, at, ended_at, ended_by, ended_reason`

func scanMatch(row scanner) (m ledger.StatementMatch, err error) {
	err = row.Scan(&m.ID, &m.TenantID, &m.Rail, &m.Rule, &m.Difference, &m.ExplainedAs, &m.Explained, &m.By, &m.Reason, &m.At, &m.EndedAt, &m.EndedBy, &m.EndedReason)
	return m, notFound(err)
}

func (t *tx) sides(match string) (lines, operations []ledger.MatchSide, err error) {
	rows, err := t.rows(selectSides, match)
	return splitSides(rows, err)
}

const selectSides = `select coalesce(line_id, 0), operation_id, amount from statement_sides where match_id = $1 order by line_id, operation_id`

func splitSides(rows *sql.Rows, err error) (lines, operations []ledger.MatchSide, _ error) {
	if err != nil {
		return nil, nil, err
	}
	all, err := collect(rows, func(r *sql.Rows) (m ledger.MatchSide, err error) {
		return m, r.Scan(&m.LineID, &m.OperationID, &m.Amount)
	})
	for _, side := range all {
		if side.LineID != 0 {
			lines = append(lines, side)
		} else {
			operations = append(operations, side)
		}
	}
	return lines, operations, err
}

// LineMatches lists the matches of a line, the ended ones too, oldest first.
func (s *Store) LineMatches(ctx context.Context, tenant string, line int64) ([]ledger.StatementMatch, error) {
	return s.matchesWhere(ctx, `tenant_id = $1 and id in (select match_id from statement_sides where line_id = $2) order by at, id`, tenant, line)
}

// OperationMatches lists the matches of an operation that stand.
func (s *Store) OperationMatches(ctx context.Context, tenant, operation string) ([]ledger.StatementMatch, error) {
	return s.matchesWhere(ctx, `tenant_id = $1 and id in (select match_id from statement_sides where tenant_id = $1 and operation_id = $2 and operation_id <> '' and live = 1) order by at, id`, tenant, operation)
}

func (s *Store) matchesWhere(ctx context.Context, where string, args ...any) ([]ledger.StatementMatch, error) {
	rows, err := s.readers.QueryContext(ctx, `select `+matchColumns+` from statement_matches where `+where, args...)
	if err != nil {
		return nil, err
	}
	all, err := collect(rows, func(r *sql.Rows) (ledger.StatementMatch, error) { return scanMatch(r) })
	for n := range all {
		if err == nil {
			rows, failed := s.readers.QueryContext(ctx, selectSides, all[n].ID)
			all[n].Lines, all[n].Operations, err = splitSides(rows, failed)
		}
	}
	return all, err
}

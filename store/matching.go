package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/store/ledger"
)

// matcher is who the log names for what the program matches by itself.
var matcher = ledger.Holder{Kind: ledger.Reconciler, Name: "statements"}

// StatementsMatched counts what a matching pass did.
type StatementsMatched struct {
	LookedAt, Matched, Suggested, Unmatched int
	Missing                                 int // operations that no statement shows although one should
}

// MatchStatements looks at every line that is new or about which something
// changed, and at the operations that a statement should show by now. It changes
// nothing that a person decided.
func (s *Store) MatchStatements(ctx context.Context) (StatementsMatched, error) {
	if err := s.finishUndoing(ctx); err != nil {
		return StatementsMatched{}, err
	}
	if err := s.DropUnfinishedImports(ctx); err != nil {
		return StatementsMatched{}, err
	}
	if err := s.renewLines(ctx); err != nil {
		return StatementsMatched{}, err
	}
	m, err := s.matchLines(ctx, 0, 1<<62, func(int) {})
	if err != nil {
		return m, err
	}
	m.Missing, err = s.sweepAbsent(ctx)
	return m, err
}

// matchLines weighs the lines of a range of ids, chunk by chunk. It reports how
// many it has looked at.
func (s *Store) matchLines(ctx context.Context, first, last int64, report func(int)) (m StatementsMatched, err error) {
	for ctx.Err() == nil {
		n := 0
		err := s.change(ctx, func(t *tx) error {
			chunk, err := t.unweighed(first, last)
			if err != nil || len(chunk) == 0 {
				n = 0
				return err
			}
			n, first = len(chunk), chunk[len(chunk)-1].ID+1
			return t.weighLines(chunk, &m)
		})
		if err != nil || n == 0 {
			return m, err
		}
		m.LookedAt += n
		report(m.LookedAt)
	}
	return m, ctx.Err()
}

// unweighed is the next chunk: lines of one rail of one tenant.
func (t *tx) unweighed(first, last int64) ([]ledger.KeptLine, error) {
	rows, err := t.rows(`
		select `+prefixed("l", lineColumns)+` from statement_lines l cross join statements s
		where `+visible+` and l.id >= $1 and l.id <= $2 and l.weighed_at = 0 and l.state in ('unmatched', 'suggested') order by l.id limit $3`, first, last, lineChunk)
	if err != nil {
		return nil, err
	}
	all, err := collect(rows, scanLines)
	for n, l := range all {
		if l.TenantID != all[0].TenantID || l.Rail != all[0].Rail || l.Account != all[0].Account {
			return all[:n], err
		}
	}
	return all, err
}

func (t *tx) weighLines(chunk []ledger.KeptLine, m *StatementsMatched) error {
	closed, err := t.closedUntil(chunk[0].TenantID, chunk[0].Rail, chunk[0].Account)
	if err != nil {
		return err
	}
	found, err := t.matchCandidates(chunk)
	if err != nil {
		return err
	}
	plain := map[ledger.LineFinding][]int64{}
	for _, l := range chunk {
		was := l
		l.WeighedAt = t.now
		if l.CountedAt < closed { // nothing of it changes any more
			if err := t.saveLine(was, l); err != nil {
				return err
			}
			continue
		}
		if err := t.fillCandidates(l, found[l.ID]); err != nil {
			return err
		}
		judged := l.Judge(found[l.ID])
		v, err := t.takenBack(l, judged)
		if err != nil {
			return err
		}
		if len(found[l.ID]) == 0 && v == judged && was.State == v.State && was.OperationID == "" {
			plain[v.Finding] = append(plain[v.Finding], l.ID)
			m.Unmatched++
			continue
		}
		l.State, l.Finding, l.Rule, l.Sentence, l.OperationID = v.State, v.Finding, v.Rule, v.Sentence, ""
		if v.Operation != nil {
			l.OperationID = v.Operation.OperationID
		}
		if err := t.carryOut(was, l, v); err != nil {
			return fmt.Errorf("line %d of %s: %w", l.Number, l.Rail, err)
		}
		switch v.State {
		case ledger.LineMatched:
			m.Matched++
		case ledger.LineSuggested:
			m.Suggested++
		default:
			m.Unmatched++
		}
	}
	for finding, ids := range plain {
		if err := t.savePlain(finding, ids); err != nil {
			return err
		}
	}
	return nil
}

// chunkOfIDs has room for a whole chunk; what is over is bound to no line.
var chunkOfIDs = placeholders(3, lineChunk)[2:]

// savePlain writes at once that no operation is behind lines of a chunk. Nearly
// all lines of a long file may be such: of their indexes only one is touched.
func (t *tx) savePlain(finding ledger.LineFinding, ids []int64) error {
	args := []any{finding, t.now}
	for n := range lineChunk {
		args = append(args, int64(0))
		if n < len(ids) {
			args[n+2] = ids[n]
		}
	}
	n, err := t.affected(`
		update statement_lines set finding = $1, rule = '', sentence = '', version = version + 1, weighed_at = $2
		where id in (`+chunkOfIDs+`) and weighed_at = 0 and state = 'unmatched' and operation_id = '' and undone = 0`, args...)
	if err == nil && n != int64(len(ids)) {
		err = ErrStale
	}
	return err
}

// carryOut commits a verdict: the match, the evidence, the money owed, the line.
func (t *tx) carryOut(was, l ledger.KeptLine, v ledger.LineVerdict) error {
	if v.State == ledger.LineMatched {
		match := ledger.StatementMatch{ID: randomID("mat_"), TenantID: l.TenantID, Rail: l.Rail, Rule: v.Rule, By: matcher.Name, At: t.now, Difference: v.Difference,
			Lines:      []ledger.MatchSide{{LineID: l.ID, Amount: l.Amount}},
			Operations: []ledger.MatchSide{{OperationID: v.Operation.OperationID, Amount: l.Amount - v.Difference}}}
		if v.Difference != 0 {
			match.ExplainedAs = "fee"
		}
		if err := t.addMatch(match); err != nil {
			return err
		}
	}
	if v.Finding == ledger.NotOurs && v.Operation != nil && v.Operation.Receipt != nil {
		if err := t.overpaid(l.TenantID, v.Operation.Receipt.ID, l.Rail, v.Sentence); err != nil {
			return err
		}
	}
	repeated := was.WeighedAt == 0 && was.Version > 1 && was.Finding == l.Finding && was.OperationID == l.OperationID
	if !repeated {
		if err := t.testify(l, v); err != nil {
			return err
		}
	}
	return t.saveLine(was, l)
}

// testify stores what a line proves about an operation: evidence that a person
// may act on, and money owed where it is an effect too many. It ends no unknown.
func (t *tx) testify(l ledger.KeptLine, v ledger.LineVerdict) error {
	if !v.Evidence && v.Second == nil {
		return nil
	}
	o, err := t.operation(l.TenantID, v.Operation.OperationID)
	if err != nil {
		return err
	}
	receipt := l.AsReceipt()
	if v.Evidence {
		finding := "mismatch"
		if v.Agrees {
			finding = "found"
		}
		if err := t.addEvidence(ledger.Evidence{TenantID: o.TenantID, OperationID: o.OperationID, Attempt: o.Attempts, Source: "statement", Finding: finding,
			Sentence: fmt.Sprintf("Line %d of a statement of %s: %s", l.Number, l.Account, v.Sentence), Body: []byte(text(receipt)), By: matcher.Name}); err != nil {
			return err
		}
	}
	if v.Second != nil {
		_, err := t.lateEffect(o, *v.Second, lateCause(o), matcher)
		return err
	}
	if o.Status.Final() {
		return nil
	}
	if o.Attempts == 0 && !o.Quarantined { // the stamp is ours, and this ledger sent nothing
		o, err = t.quarantine(o, receipt)
		return err
	}
	was := o
	rail, _ := t.s.Rulebook(o.TenantID).Route(o)
	o.Sighted = o.Sighted || l.Stamp == o.OrderID
	o.Version++ // who decides must have seen it
	if o.Status == ledger.Unknown && rail.Lookup.Possible && (o.NextLookAt == 0 || o.NextLookAt > t.now) {
		o.NextLookAt = t.now
	}
	return t.note(was, o, "statement", matcher, v.Sentence, map[string]any{"line": l.ID, "statement": l.StatementID})
}

// matchCandidates finds, rule by rule, the operations that the lines of a chunk
// lead to.
func (t *tx) matchCandidates(chunk []ledger.KeptLine) (map[int64][]ledger.MatchCandidate, error) {
	tenant, rail := chunk[0].TenantID, chunk[0].Rail
	first, last := chunk[0].ID, chunk[len(chunk)-1].ID
	found := map[int64][]ledger.MatchCandidate{}
	look := func(rule ledger.MatchRule, owed bool, join string, more ...any) error {
		// The cross join tells SQLite to begin at the lines, which are few. Between
		// them may stand lines of others: what is found for those nobody asks for.
		rows, err := t.rows(`
			select l.id, `+prefixed("o", operationColumns)+` from statement_lines l cross join `+join+`
			where l.id >= $3 and l.id <= $4 and l.undone = 0 and l.weighed_at = 0 and l.state in ('unmatched', 'suggested')`, append([]any{tenant, rail, first, last}, more...)...)
		if err != nil {
			return err
		}
		_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
			var line int64
			o, err := scanOperation(scanAfter{r, []any{&line}})
			found[line] = append(found[line], ledger.MatchCandidate{Rule: rule, Operation: o, Owed: owed})
			return struct{}{}, err
		})
		return err
	}
	err := errors.Join(
		look(ledger.ByProviderID, false, `operations o on o.tenant_id = $1 and o.receipt_id = l.provider_id and o.receipt_id <> '' and o.rail = $2`),
		look(ledger.ByProviderID, true, `refunds_owed w on w.tenant_id = $1 and w.rail = $2 and w.receipt_id = l.provider_id and l.provider_id <> ''
			join operations o on o.tenant_id = w.tenant_id and o.operation_id = w.operation_id and o.receipt_id <> l.provider_id`),
		look(ledger.ByStamp, false, `operations o on o.order_id = l.stamp and l.stamp <> '' and o.tenant_id = $1 and o.rail = $2`),
		look(ledger.ByHash, false, `operations o on o.tenant_id = $1 and o.receipt_id = l.hash and o.receipt_id <> '' and o.rail = $2`))
	if err != nil {
		return nil, err
	}
	effects, err := t.effects(tenant)
	if err != nil {
		return nil, err
	}
	earliest, latest := bookedBetween(chunk)
	for _, effect := range effects {
		err := errors.Join(
			look(ledger.ByReference, false, `operations o on o.tenant_id = $1 and o.effect = $5 and o.reference_key = l.reference_key and o.reference_key <> ''
				and o.rail = $2 and o.attempts > 0`, effect),
			look(ledger.ByAmountDate, false, `operations o on o.tenant_id = $1 and o.effect = $5 and o.recipient = l.counterparty and o.recipient <> ''
				and o.currency = l.currency and o.amount in (abs(l.amount), abs(l.gross)) and o.rail = $2 and o.status = 'confirmed'
				and o.id + 0 between $6 and $7`, effect, rowIDNear(earliest-nearWindow), rowIDNear(latest+nearWindow)))
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// nearWindow is how far from a chunk's days an operation may have been asked for
// to be suggested by amount and day; which day it is decides the ledger.
const nearWindow = 10 * 24 * 3600 * 1000

// bookedBetween are the first and the last day of a chunk.
func bookedBetween(chunk []ledger.KeptLine) (earliest, latest int64) {
	earliest, latest = chunk[0].At, chunk[0].At
	for _, l := range chunk {
		earliest, latest = min(earliest, l.At), max(latest, l.At)
	}
	return earliest, latest
}

// rowIDNear is the row id of a moment, also where a file names one that no clock
// here ever shows.
func rowIDNear(ms int64) int64 { return firstRowID(min(max(ms, 0), 1<<42)) }

// effects are the kinds of effect that a tenant's operations ever had. They are
// few, and each is one step in an index.
func (t *tx) effects(tenant string) ([]string, error) {
	seen := map[string]bool{}
	for _, a := range t.s.Rulebook(tenant).Actions {
		seen[a.Effect] = true
	}
	for last := ""; ; seen[last] = true {
		err := t.row(`select effect from operations where tenant_id = $1 and reference_key <> '' and effect > $2 order by effect limit 1`, tenant, last).Scan(&last)
		if errors.Is(err, sql.ErrNoRows) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// fillCandidates adds what else is known of the operations that a line leads to.
func (t *tx) fillCandidates(l ledger.KeptLine, all []ledger.MatchCandidate) error {
	for n := range all {
		c := &all[n]
		o := c.Operation
		if o.Status == ledger.Confirmed {
			err := t.row(`select exists (select 1 from action_log where tenant_id = $1 and operation_id = $2 and operation_id <> '' and event = $3)`,
				o.TenantID, o.OperationID, ledger.SayHappened).Scan(&c.ByPerson)
			if err != nil {
				return err
			}
		}
		taken, err := t.lineOf(o, l)
		if err != nil {
			return err
		}
		c.Taken = taken
		if c.Against, err = t.lineAgainst(o, l); err != nil {
			return err
		}
		if c.Against == nil && taken != nil && (taken.Amount < 0) != (l.Amount < 0) {
			c.Against = taken
		}
		if c.Rule != ledger.ByReference {
			continue
		}
		if err := t.row(`
			select count(*) from statement_lines l join statements s on `+visible+`
			where l.tenant_id = $1 and l.rail = $2 and l.reference_key = $3 and l.reference_key <> '' and l.id <> $4
			  and l.amount = $5 and l.currency = $6`,
			l.TenantID, l.Rail, ledger.ReferenceKey(l.Reference), l.ID, l.Amount, l.Currency).Scan(&c.Rivals); err != nil {
			return err
		}
	}
	return nil
}

// lineOf is the line that an operation is already: the one that is matched with
// it, or another one of the same kind that bears its receipt's name.
func (t *tx) lineOf(o ledger.Operation, but ledger.KeptLine) (*ledger.KeptLine, error) {
	var id int64
	err := t.row(`
		select coalesce(min(x.line_id), 0) from statement_sides o cross join statement_sides x
		where o.tenant_id = $1 and o.operation_id = $2 and o.operation_id <> '' and o.live = 1 and x.match_id = o.match_id and x.line_id is not null`,
		o.TenantID, o.OperationID).Scan(&id)
	if err != nil {
		return nil, err
	}
	l, err := t.line(o.TenantID, id)
	if errors.Is(err, ErrNotFound) && o.Receipt != nil && o.Receipt.ID != "" {
		l, err = scanLine(t.row(`
			select `+prefixed("l", lineColumns)+` from statement_lines l join statements s on `+visible+`
			where l.tenant_id = $1 and l.rail = $2 and l.provider_id = $3 and l.provider_id <> '' and l.id <> $4 and l.kind = $5
			  and l.provider_id <> $6 limit 1`,
			o.TenantID, o.Rail, o.Receipt.ID, but.ID, but.Kind, but.ProviderID))
	}
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return &l, err
}

// lineAgainst is a line of the same operation that went the other way than this
// one, where the file says of neither that it takes something back.
func (t *tx) lineAgainst(o ledger.Operation, l ledger.KeptLine) (*ledger.KeptLine, error) {
	other, err := scanLine(t.row(`
		select `+prefixed("l", lineColumns)+` from statement_lines l join statements s on `+visible+`
		where l.tenant_id = $1 and l.operation_id = $2 and l.operation_id <> '' and l.rail = $3 and l.id <> $4 and l.state <> 'set_aside'
		  and (l.amount < 0) <> ($5 < 0) and l.kind not in ('refund', 'dispute', 'adjustment', 'fee')
		order by l.id limit 1`, o.TenantID, o.OperationID, l.Rail, l.ID, l.Amount))
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return &other, err
}

func (t *tx) addMatch(m ledger.StatementMatch) error {
	if err := t.exec(`
		insert into statement_matches (id, tenant_id, rail, rule, difference, explained_as, explained, matched_by, reason, at, ended_at, ended_by, ended_reason)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, '', '')`,
		m.ID, m.TenantID, m.Rail, m.Rule, m.Difference, m.ExplainedAs, m.Explained, m.By, m.Reason, m.At); err != nil {
		return err
	}
	for _, side := range append(slices.Clone(m.Lines), m.Operations...) {
		var line any
		if side.LineID != 0 {
			line = side.LineID
		}
		if err := t.exec(`insert into statement_sides (match_id, tenant_id, line_id, operation_id, amount, live) values ($1, $2, $3, $4, $5, 1)`,
			m.ID, m.TenantID, line, side.OperationID, side.Amount); err != nil {
			return err
		}
		if side.OperationID != "" { // it was missing, and is not any more
			if err := t.exec(`update statement_absences set ended_at = $1, version = version + 1 where tenant_id = $2 and operation_id = $3 and ended_at = 0`,
				t.now, m.TenantID, side.OperationID); err != nil {
				return err
			}
		}
	}
	return nil
}

// renewFor is how long an unmatched line is held against what becomes known.
const renewFor = 92 * 24 * 3600 * 1000 // a quarter, as long as its books are open

const selectRenewed = `
	select l.id from statement_lines l cross join operations o on o.tenant_id = l.tenant_id and o.operation_id = l.operation_id
	where l.undone = 0 and l.state in ('unmatched', 'suggested') and l.operation_id <> '' and l.weighed_at > 0 and o.updated_at >= l.weighed_at and l.id > $1
	  and o.status in ('confirmed', 'rejected')
	union
	select l.id from statement_lines l cross join operations o on o.tenant_id = l.tenant_id and o.receipt_id = l.provider_id and o.receipt_id <> '' and o.rail = l.rail
	where l.undone = 0 and l.state = 'unmatched' and l.finding = 'not_ours' and l.weighed_at > 0 and o.updated_at >= l.weighed_at and l.id > $1
	union
	select l.id from statement_lines l cross join operations o on o.order_id = l.stamp and o.tenant_id = l.tenant_id and o.rail = l.rail
	where l.undone = 0 and l.state = 'unmatched' and l.finding = 'not_ours' and l.stamp <> '' and l.weighed_at > 0 and o.updated_at >= l.weighed_at and l.id > $1
	order by 1 limit 10000`

// renewLines takes up again lines about whose operation something changed, and
// lines whose operation is known by now.
func (s *Store) renewLines(ctx context.Context) error {
	since := firstRowID(max(s.now()-renewFor, 0))
	rows, err := s.readers.QueryContext(ctx, selectRenewed, since)
	if err != nil {
		return err
	}
	ids, err := collect(rows, func(r *sql.Rows) (id int64, err error) { return id, r.Scan(&id) })
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(ids, lineChunk) {
		err := s.change(ctx, func(t *tx) error {
			for _, id := range chunk {
				if err := t.exec(`update statement_lines set weighed_at = 0 where id = $1 and state in ('unmatched', 'suggested') and undone = 0`, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// prefixed puts the name of a table before each column of a list.
func prefixed(table, columns string) string {
	parts := strings.Split(columns, ",")
	for n, c := range parts {
		parts[n] = table + "." + strings.TrimSpace(c)
	}
	return strings.Join(parts, ", ")
}

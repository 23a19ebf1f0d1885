package store_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// booked is a line of a statement of the card rail, booked now.
func (b *bench) booked(amount int64, change ...func(*ledger.StatementLine)) ledger.StatementLine {
	l := ledger.StatementLine{Amount: amount, Gross: amount, Currency: "EUR", At: b.clock.now().UnixMilli()}
	for _, c := range change {
		c(&l)
	}
	return l
}

func named(id string) func(*ledger.StatementLine) {
	return func(l *ledger.StatementLine) { l.ProviderID = id }
}
func called(id string) func(*ledger.StatementLine) {
	return func(l *ledger.StatementLine) { l.LineID = id }
}
func stamped(o ledger.Operation) func(*ledger.StatementLine) {
	return func(l *ledger.StatementLine) { l.Stamp = o.OrderID }
}
func ref(reference string) func(*ledger.StatementLine) {
	return func(l *ledger.StatementLine) { l.Reference = reference }
}
func with(counterparty string) func(*ledger.StatementLine) {
	return func(l *ledger.StatementLine) { l.Counterparty = counterparty }
}
func kind(k ledger.LineKind) func(*ledger.StatementLine) {
	return func(l *ledger.StatementLine) { l.Kind = k }
}

// file is a statement of the days around now, as its reader would give it.
func (b *bench) file(rail, name string, lines ...ledger.StatementLine) store.StatementFile {
	b.t.Helper()
	day := 24 * time.Hour
	now := b.clock.now()
	st := ledger.Statement{Format: "CSV", Account: "main", Currency: "EUR", From: now.Add(-2 * day).UnixMilli(), To: now.Add(2 * day).UnixMilli(), Lines: lines}
	for n := range st.Lines {
		l := &st.Lines[n]
		l.Number = n + 1
		said, err := json.Marshal([]any{l.LineID, l.ProviderID, l.Amount, l.At, l.Reference, l.Counterparty, l.Stamp})
		b.ok(err)
		sum := sha256.Sum256(said)
		l.Content = hex.EncodeToString(sum[:])
	}
	sum := sha256.Sum256([]byte(name + fmt.Sprint(lines)))
	return store.StatementFile{TenantID: tenant, Rail: rail, Name: name, SHA256: hex.EncodeToString(sum[:]), Statement: st, By: root}
}

func (b *bench) take(f store.StatementFile) store.StatementImported {
	b.t.Helper()
	got, err := b.s.ImportStatement(b.ctx, f)
	b.ok(err)
	return got
}

// lines are all that readers see, by number of the file.
func (b *bench) lines() []ledger.KeptLine {
	b.t.Helper()
	all, err := b.s.StatementLines(b.ctx, tenant, store.LineFilter{Limit: 1000})
	b.ok(err)
	return all
}

func (b *bench) wantLine(l ledger.KeptLine, state ledger.LineState, finding ledger.LineFinding, rule ledger.MatchRule, operation string) {
	b.t.Helper()
	if l.State != state || l.Finding != finding || l.Rule != rule || l.OperationID != operation {
		b.t.Fatalf("line %d is %s %q by %q of %q (%s), want %s %q by %q of %q", l.Number, l.State, l.Finding, l.Rule, l.OperationID, l.Sentence, state, finding, rule, operation)
	}
}

// bought is a confirmed operation on the card rail.
func (b *bench) bought(id, receipt string) ledger.Operation {
	b.t.Helper()
	m := b.sent(id, charge)
	return b.settle(m, found(m.Operation, receipt))
}

func (b *bench) match() store.StatementsMatched {
	b.t.Helper()
	m, err := b.s.MatchStatements(b.ctx)
	b.ok(err)
	return m
}

func (b *bench) exceptions(finding ledger.LineFinding) []store.Exception {
	b.t.Helper()
	e, err := b.s.StatementExceptions(b.ctx, tenant, store.ExceptionFilter{Finding: finding, Limit: 100})
	b.ok(err)
	return e
}

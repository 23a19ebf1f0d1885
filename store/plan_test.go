package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// paying makes a store with one action type, and a draft of it.
func paying(t testing.TB, s *Store, rows ...ledger.PolicyRow) func(id string) ledger.Operation {
	t.Helper()
	schema := `{"type": "object", "additionalProperties": false, "properties": {
		"amount": {"type": "integer", "x-role": "amount"}, "currency": {"type": "string", "x-role": "currency"},
		"recipient": {"type": "string", "x-role": "recipient"}, "reference": {"type": "string", "x-role": "reference"}}}`
	action, err := ledger.NewActionType("pay", ledger.ActionSpec{Rail: "card", Schema: []byte(schema)}, ledger.Currencies{})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := ledger.NewPolicy(append(rows, ledger.PolicyRow{Name: "rest", Then: "allow"}))
	if err != nil {
		t.Fatal(err)
	}
	rail := ledger.Rail{Name: "card", Address: "https://card.example", Account: "live", Dedupe: ledger.Dedupe{By: ledger.DedupeKey, Retention: 24 * time.Hour},
		Lookup: ledger.LookupPromise{Possible: true}, Timeout: time.Second, Quiet: time.Minute, Limits: ledger.Limits{MaxAttempts: 5, MaxElapsed: time.Hour}}
	rules := &ledger.Rulebook{Actions: map[string]*ledger.ActionType{"pay": action}, Rails: map[string]ledger.Rail{"card": rail},
		Routes: map[string]ledger.Rail{"pay": rail}, Policy: policy, Timing: ledger.Timing{Lease: 30 * time.Second, UnknownFor: time.Hour},
		Runs: ledger.RunLimits{MaxAttempts: 20, MaxElapsed: time.Hour}}
	ctx := context.Background()
	if err := s.SetRulebooks(ctx, map[string]*ledger.Rulebook{"acme": rules}); err != nil {
		t.Fatal(err)
	}
	token, err := s.AddToken(ctx, ledger.TokenRecord{TenantID: "acme", Agent: "buyer"}, ledger.Holder{Kind: ledger.Person, Name: "root"})
	if err != nil {
		t.Fatal(err)
	}
	return func(id string) ledger.Operation {
		v, err := ledger.ParseStrict([]byte(`{"amount": 4800, "currency": "EUR", "recipient": "acct_7", "reference": "` + id + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		n, wrong := action.Normalize(v)
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		return ledger.Operation{TenantID: "acme", OperationID: id, ActionType: "pay", Fingerprint: n.Fingerprint, Canonical: n.Canonical, Payload: n.Payload,
			Terms: n.Terms, Agent: "buyer", TokenID: token.ID, RunID: "run-" + id, Step: "pay"}
	}
}

// A query on the hot path that scans a table is fast on the first day only.
func TestHotQueriesUseIndexes(t *testing.T) {
	s := openTest(t)
	yes := true
	draft := paying(t, s,
		ledger.PolicyRow{Name: "cap", When: ledger.When{SpentOver: &ledger.SpentOver{Amount: 1 << 50, Currency: "EUR", Window: time.Hour, Per: "agent"}}, Then: "deny"},
		ledger.PolicyRow{Name: "new", When: ledger.When{RecipientNew: &yes, Agent: []string{"nobody"}}, Then: "ask"})
	ctx := context.Background()
	clock := ledger.Holder{Kind: ledger.Clock, Name: "test"}
	if _, err := s.Submit(ctx, draft("op")); err != nil {
		t.Fatal(err)
	}
	claims, err := s.Claim(ctx, "w1", "acme", "card", 10, 10)
	if err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	m, err := s.Mark(ctx, claims[0], time.Second, func(o ledger.Operation) (ledger.Request, error) { return ledger.Request{Body: o.Payload}, nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Settle(ctx, m, ledger.Answer{Finding: ledger.Unclear}, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordLook(ctx, "acme", "op", ledger.Look{Finding: ledger.LookAbsent}, ledger.Holder{Kind: ledger.Reconciler, Name: "test"}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(ctx, clock); err != nil {
		t.Fatal(err)
	}
	takeInAndMatch(t, s)
	queries := []string{selectAnyDue, selectDueLooks, selectRenewed, selectAwaited, selectOnOtherRails}
	for q := range s.writer.stmts { // all that the calls above ran
		queries = append(queries, q)
	}
	seen := 0
	for _, q := range queries {
		if strings.Contains(q, "max(id)") { // once at the start
			continue
		}
		var args []any
		for n := 1; strings.Contains(q, fmt.Sprint("$", n)); n++ {
			args = append(args, 1)
		}
		rows, err := s.readers.Query(`explain query plan `+q, args...)
		if err != nil {
			t.Errorf("%v: %s", err, q)
			continue
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			for _, table := range []string{"operations", "attempts", "approvals", "evidence", "action_log", "requests", "tokens",
				"statement_lines", "statement_matches", "statement_sides", "statement_absences", "statement_periods", "l", "o", "d", "x", "w", "g"} {
				wholeTenant := strings.HasSuffix(detail, "(tenant_id=?)")
				if (strings.HasPrefix(detail+" ", "SCAN "+table+" ") || wholeTenant) && !strings.Contains(q, "order by seq desc limit 1") {
					t.Errorf("%s: %s", detail, q)
				}
				if strings.HasPrefix(detail, "SEARCH "+table) {
					seen++
				}
			}
			if testing.Verbose() {
				t.Log(strings.Join(strings.Fields(q), " ")[max(0, len(strings.Join(strings.Fields(q), " "))-100):], "=>", detail)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	if seen < 10 {
		t.Errorf("only %d searches by index were seen: nothing was tested", seen)
	}
}

// takeInAndMatch has every way by which a line leads to an operation looked up:
// statements grow faster than anything else here.
func takeInAndMatch(t *testing.T, s *Store) {
	t.Helper()
	at := s.now()
	lines := []ledger.StatementLine{{LineID: "a", ProviderID: "pay_1", Amount: 4800, Gross: 4800}, {LineID: "b", Stamp: "ord_1", Hash: "0xb", Amount: 1, Gross: 1},
		{LineID: "c", Reference: "op", Counterparty: "acct_7", Amount: 4800, Gross: 4800}}
	for n := range lines {
		lines[n].Number, lines[n].Currency, lines[n].At = n+1, "EUR", at
	}
	f := StatementFile{TenantID: "acme", Rail: "card", Name: "x.csv", SHA256: "x", By: matcher,
		Statement: ledger.Statement{Format: "CSV", Account: "main", Currency: "EUR", From: at - 1, To: at + 1, Lines: lines}}
	i, err := s.ImportStatement(context.Background(), f)
	if err != nil || i.New != len(lines) {
		t.Fatal(i, err)
	}
	if _, err := s.MatchStatements(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Many purchases of one price by one recipient must not slow each other down.
func BenchmarkSubmitBesideManyAlike(t *testing.B) {
	s := openTest(t)
	draft := paying(t, s)
	ctx := context.Background()
	const many = 5000
	err := s.change(ctx, func(x *tx) error {
		rules := s.Rulebook("acme")
		for i := range many {
			o := draft(fmt.Sprint("old", i))
			o.OrderID, o.Effect, o.Status, o.Version = ledger.OrderID("x", "acme", o.OperationID), "pay", ledger.Confirmed, 1
			bind(&o, "x", rules.Routes["pay"])
			o.CreatedAt, o.UpdatedAt = x.now, x.now
			if err := x.insert(o); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.ResetTimer()
	for i := range t.N {
		if r, err := s.Submit(ctx, draft(fmt.Sprint("new", i))); err != nil || r.Operation.Status != ledger.Ready {
			t.Fatal(r.Operation.Status, r.Operation.Reason, err)
		}
	}
}

func BenchmarkSubmit(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			s := openTest(b)
			draft := paying(b, s)
			b.SetParallelism(max(1, callers/2)) // times GOMAXPROCS, which is 2 on the machine that matters
			drafts := make([]ledger.Operation, b.N)
			for i := range drafts {
				drafts[i] = draft(fmt.Sprint("op", i))
				drafts[i].Terms.Recipient = fmt.Sprint("acct_", i)
			}
			next := make(chan int, b.N)
			for i := range b.N {
				next <- i
			}
			b.ResetTimer()
			run := func() {
				if _, err := s.Submit(context.Background(), drafts[<-next]); err != nil {
					b.Error(err)
				}
			}
			if callers == 1 {
				for range b.N {
					run()
				}
			} else {
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						run()
					}
				})
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
		})
	}
}

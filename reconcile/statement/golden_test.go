package statement

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

var update = flag.Bool("update", false, "write the expectations beside the files")

// The mappings that the files of the corpus are read with.
var (
	sandboxMapping = rail.Statement{Format: "csv", Amounts: "minor", Columns: map[string]string{"id": "id", "amount": "amount", "currency": "currency", "date": "created_at", "reference": "reference", "stamp": "operation", "counterparty": "recipient"}}
	bankMapping    = rail.Statement{Format: "csv", TimeZone: "Europe/Berlin", Columns: map[string]string{"date": "Buchungstag", "amount": "Betrag", "currency": "Währung", "balance": "Saldo", "counterparty": "Empfänger", "text": "Verwendungszweck"}}
	plainMapping   = rail.Statement{Format: "csv", Currency: "EUR", Columns: map[string]string{"date": "Date", "amount": "Amount", "reference": "Ref"}}
)

func with(m rail.Statement, change func(*rail.Statement)) rail.Statement {
	change(&m)
	return m
}

var corpus = []struct {
	file    string
	mapping rail.Statement
	answers map[string]string
	golden  string // where it is not called as the file
}{
	{file: "stripe-balance.csv"},
	{file: "stripe-activity.csv"},
	{file: "stripe-activity-broken.csv"},
	{file: "stripe-payments.csv"},
	{file: "stripe-payments-status.csv"},
	{file: "stripe-balance.csv", mapping: rail.Statement{Format: "paypal"}, golden: "another-format"},
	{file: "paypal.csv"},
	{file: "paypal-de.csv"},
	{file: "paypal-zone.csv"},
	{file: "paypal-order.csv"},
	{file: "paypal-order.csv", answers: map[string]string{"dates": "dmy"}, golden: "paypal-order-answered"},
	{file: "sandbox.csv", mapping: sandboxMapping},
	{file: "sandbox.csv", golden: "no-mapping"},
	{file: "sandbox-effects.json", mapping: sandboxMapping},
	{file: "sandbox-list.json"},
	{file: "sandbox-page.json"},
	{file: "bank-de.csv", mapping: bankMapping},
	{file: "bank-de-gap.csv", mapping: bankMapping},
	{file: "bank-de-1252.csv", mapping: bankMapping},
	{file: "bank-de-1252.csv", mapping: with(bankMapping, func(m *rail.Statement) { m.Encoding = "windows-1252" }), golden: "bank-de-1252-declared"},
	{file: "bank-debit-credit.csv", mapping: rail.Statement{Format: "csv", Currency: "GBP", Columns: map[string]string{"date": "Date", "debit": "Paid out", "credit": "Paid in", "reference": "Ref"}}},
	{file: "bank-indicator.tsv", mapping: rail.Statement{Format: "csv", Currency: "EUR", Columns: map[string]string{"date": "Date", "amount": "Amount", "indicator": "Side", "reference": "Ref"}}},
	{file: "headless.csv", mapping: plainMapping},
	{file: "headless.csv", mapping: rail.Statement{Format: "csv", Currency: "EUR", Header: "none", Columns: map[string]string{"date": "1", "amount": "2", "reference": "3"}}, golden: "headless-declared"},
	{file: "quote.csv", mapping: plainMapping},
	{file: "cut.csv", mapping: plainMapping},
	{file: "camt-08.xml", mapping: rail.Statement{Format: "camt053", TimeZone: "Europe/Berlin"}},
	{file: "camt-02.xml"},
	{file: "camt-sum.xml"},
	{file: "camt-currency.xml"},
	{file: "camt-052.xml"},
	{file: "camt-doctype.xml"},
	{file: "camt-day.xml"},
	{file: "camt-ebcdic.xml"},
	{file: "camt-latin1.xml"},
	{file: "camt-batch.xml"},
	{file: "camt-cut.xml"},
	{file: "camt-accounts.xml"},
	{file: "camt-accounts.xml", answers: map[string]string{"account": "4712"}, golden: "camt-accounts-answered"},
	{file: "camt-missing-day.xml"},
}

// TestCorpusIsReadAsExpected reads every file of the corpus and compares all that
// came out. After a change of a reader: go test ./reconcile/statement -run Corpus
// -update, and look at the difference.
func TestCorpusIsReadAsExpected(t *testing.T) {
	used := map[string]bool{}
	for _, c := range corpus {
		name := c.golden
		if name == "" {
			name = strings.TrimSuffix(c.file, filepath.Ext(c.file))
		}
		used[c.file] = true
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", c.file))
			if err != nil {
				t.Fatal(err)
			}
			s, err := Read(data, Options{Name: c.file, Rail: "bank", Mapping: c.mapping, Answers: c.answers})
			got := outcome(t, s, err)
			file := filepath.Join("testdata", "golden", name+".json")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: read as\n%s\nnot as\n%s", c.file, got, want)
			}
		})
	}
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() && !used[e.Name()] {
			t.Errorf("no test reads testdata/%s", e.Name())
		}
	}
}

// outcome is what came of a file, as text.
func outcome(t *testing.T, s ledger.Statement, err error) []byte {
	t.Helper()
	var v any = s
	if err != nil {
		if r, ok := errors.AsType[*Refusal](err); ok {
			v = map[string]any{"refused": r}
		} else if q, ok := errors.AsType[*Question](err); ok {
			v = map[string]any{"asked": q}
		} else {
			t.Fatalf("neither refused nor asked: %v", err)
		}
		if s.Lines != nil || s.Format != "" {
			t.Errorf("half a statement came with %v", err)
		}
	}
	b := new(bytes.Buffer)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

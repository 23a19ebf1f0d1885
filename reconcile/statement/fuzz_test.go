package statement

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

func read1(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// seed gives a fuzzer the files of the corpus that begin so.
func seed(f *testing.F, prefixes ...string) {
	for _, c := range corpus {
		for _, p := range prefixes {
			if strings.HasPrefix(c.file, p) {
				f.Add(read1(f, c.file))
			}
		}
	}
}

// holds looks at one reading of any bytes at all: it is the same twice, it is
// refused, asked or whole, and what is whole adds up.
func holds(t *testing.T, data []byte, o Options) {
	t.Helper()
	s, err := Read(data, o)
	again, errAgain := Read(data, o)
	if !reflect.DeepEqual(s, again) || !reflect.DeepEqual(err, errAgain) {
		t.Fatalf("two readings differ: %v, %v", err, errAgain)
	}
	if err != nil {
		r, refused := errors.AsType[*Refusal](err)
		q, isAsked := errors.AsType[*Question](err)
		switch {
		case !refused && !isAsked:
			t.Fatalf("neither refused nor asked: %v", err)
		case refused && r.Sentence == "", isAsked && len(q.Choices) < 2:
			t.Fatalf("says nothing: %+v", err)
		case s.Lines != nil:
			t.Fatal("half a statement")
		}
		return
	}
	seen := map[string]bool{}
	sums := map[string]int64{}
	for _, l := range s.Lines {
		if id := identity(l); seen[id] {
			t.Fatalf("two lines are %s", id)
		} else {
			seen[id] = true
		}
		if l.Amount+l.Fee != l.Gross {
			t.Fatalf("gross, fee and amount differ: %+v", l)
		}
		if len(l.Content) != 64 || l.Number < 1 || l.Occurrence < 1 || l.Currency == "" {
			t.Fatalf("not whole: %+v", l)
		}
		if l.At < 0 || l.At >= s.To && s.Opening == nil && s.Format == "CSV" || time.UnixMilli(l.At).Year() > 2201 {
			t.Fatalf("outside the statement's days: %+v", l)
		}
		sums[l.Currency] += l.Amount
	}
	if s.Opening != nil && s.Closing != nil && *s.Opening+sums[s.Currency] != *s.Closing {
		t.Fatal("opening and lines do not make closing")
	}
	if len(s.Lines) > 0 && s.Format == "" {
		t.Fatal("the format has no name")
	}
}

func FuzzReadCSV(f *testing.F) {
	seed(f, "bank", "sandbox.csv", "headless", "quote", "cut")
	for _, row := range []string{"03/04/2026;(1.234,56);a", "20260403;1,234.56 DR;b", "2026-04-03T10:00:00+02:00;$-5;c", "31/12/26;5.00-;d"} {
		f.Add([]byte("Date;Amount;Ref\n" + row + "\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range []rail.Statement{plainMapping, bankMapping, sandboxMapping,
			{Format: "csv", Currency: "EUR", Header: "none", Dates: "dmy2", Sign: "out", Decimal: "comma", Columns: map[string]string{"date": "1", "amount": "2", "fee": "3"}},
			{Format: "csv", Currency: "JPY", Encoding: "windows-1252", TimeZone: "America/Los_Angeles", Columns: map[string]string{"date": "Date", "debit": "Amount", "credit": "Ref"}}} {
			holds(t, data, Options{Name: "f", Rail: "r", Mapping: m})
		}
		holds(t, data, Options{Name: "f", Rail: "r"})
		holds(t, data, Options{Name: "f", Rail: "r", Answers: said(plainMapping)})
	})
}

func FuzzReadStripe(f *testing.F) {
	seed(f, "stripe")
	f.Fuzz(func(t *testing.T, data []byte) { holds(t, data, Options{}) })
}

func FuzzReadPayPal(f *testing.F) {
	seed(f, "paypal")
	f.Fuzz(func(t *testing.T, data []byte) {
		holds(t, data, Options{})
		holds(t, data, Options{Mapping: rail.Statement{Dates: "mdy", Decimal: "comma"}})
	})
}

func FuzzReadCamt(f *testing.F) {
	seed(f, "camt")
	f.Fuzz(func(t *testing.T, data []byte) {
		holds(t, data, Options{})
		holds(t, data, Options{Mapping: rail.Statement{Format: "camt053", Account: "4711", TimeZone: "Europe/Berlin"}})
	})
}

func FuzzReadBook(f *testing.F) {
	seed(f, "sandbox-")
	f.Fuzz(func(t *testing.T, data []byte) { holds(t, data, Options{}) })
}

// largeCSV has n lines, every tenth of them one that was there before.
func largeCSV(n int) []byte {
	b := []byte("Buchungstag;Empfänger;Verwendungszweck;Betrag;Währung;Saldo\n")
	balance := int64(100_000_000)
	for i := range n {
		amount := int64(-4800 - i%977)
		balance += amount
		b = fmt.Appendf(b, "%02d.11.2026;Lieferant %d GmbH;RE %d;%s;EUR;%s\n", 13+i%17, i%1000, i-i%10, comma(amount), comma(balance))
	}
	return b
}

func comma(n int64) string {
	s, sign := fmt.Sprintf("%03d", max(n, -n)), ""
	if n < 0 {
		sign = "-"
	}
	return sign + s[:len(s)-2] + "," + s[len(s)-2:]
}

// largeCamt has n entries.
func largeCamt(n int) []byte {
	b := []byte(`<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt><Acct><Id><IBAN>DE44500105175407324931</IBAN></Id><Ccy>EUR</Ccy></Acct>` + "\n")
	for i := range n {
		b = fmt.Appendf(b, `<Ntry><Amt Ccy="EUR">%d.%02d</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-11-%02d</Dt></BookgDt><AcctSvcrRef>B%d</AcctSvcrRef><NtryDtls><TxDtls><Refs><EndToEndId>E%d</EndToEndId><TxId>T%d</TxId></Refs><RltdPties><Cdtr><Pty><Nm>Lieferant %d</Nm></Pty></Cdtr></RltdPties><RmtInf><Ustrd>RE %d</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>`+"\n", 1+i%500, i%100, 1+i%30, i, i, i, i%1000, i)
	}
	return append(b, "</Stmt></BkToCstmrStmt></Document>\n"...)
}

func benchmark(b *testing.B, data []byte, o Options) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var s ledger.Statement
	for b.Loop() {
		var err error
		if s, err = Read(data, o); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(s.Lines)), "lines")
}

func BenchmarkCSV100000(b *testing.B)  { benchmark(b, largeCSV(100_000), Options{Mapping: bankMapping}) }
func BenchmarkCamt100000(b *testing.B) { benchmark(b, largeCamt(100_000), Options{}) }

package web

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/store/ledger"
)

// anyText draws texts of the kind that break files: any characters, and pieces of
// the very syntax that they are written into.
var anyText = rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "Z", "7", " ", "  ", "=", "-", ":", ";", "|", ",", "\"", "\\", "'", "\t", "\n", "\r\n", "\r", "(", ")", "[2026/1/1]",
		"date:2026-99-99", "type: A", "comment", "end", "@", "%", "é", "\u202e", "\u2028", "\x85", "\x00"}), 0, 8).Draw(t, "pieces"), "")
}))

func TestAnyTextComesBackFromATable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(anyText, 1, 6).Draw(t, "texts")
		amount, digits := rapid.Int64Range(-1<<53, 1<<53).Draw(t, "amount"), rapid.IntRange(0, 8).Draw(t, "digits")
		money := ledger.Currencies{"XCOIN": digits}
		var out bytes.Buffer
		w := newCSV(&out, money)
		var c cells
		c.text("x") // a row of one empty cell is an empty line, which readers leave out
		c.text(texts...)
		c.amount(money, &amount, "XCOIN")
		if err := w.row(c); err != nil {
			t.Fatal(err)
		}
		if err := w.out.Flush(); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(rows) != 1 || len(rows[0]) != len(texts)+3 {
			t.Fatalf("%v %q", err, rows)
		}
		for n, text := range texts {
			// The library's reader turns CR LF inside quotes into LF.
			if got := strings.TrimPrefix(rows[0][n+1], textMark); got != strings.ReplaceAll(text, "\r\n", "\n") {
				t.Fatalf("%q was read as %q", text, got)
			}
		}
		if back, err := money.MinorUnits(rows[0][len(texts)+1], "XCOIN"); err != nil || back != amount || rows[0][len(texts)+2] != fmt.Sprint(amount) {
			t.Fatalf("%d was read as %q", amount, rows[0][len(texts)+1:])
		}
	})
}

// anyBook draws entries with any names, amounts and notes, and the currencies that
// they are in.
func anyBook(t *rapid.T) (entries []ledger.BookEntry, money ledger.Currencies) {
	money = ledger.Currencies{}
	codes := []string{"EUR", "no such"}
	for digits := range 9 {
		code := fmt.Sprintf("%sCOIN%c", []string{"A", "9"}[digits%2], 'A'+rune(digits))
		money[code] = digits
		codes = append(codes, code)
	}
	for n := range rapid.IntRange(20, 60).Draw(t, "n") {
		e := ledger.RefundOwed{ID: anyText.Draw(t, "id"), Direction: rapid.SampledFrom([]ledger.RefundDirection{ledger.WeOwe, ledger.OwedToUs}).Draw(t, "direction"),
			Rail: anyText.Draw(t, "rail"), Customer: anyText.Draw(t, "customer"), Currency: rapid.SampledFrom(codes).Draw(t, "code"), ReceiptID: anyText.Draw(t, "receipt")}
		amount := rapid.Int64Range(1, 1<<53).Draw(t, "amount")
		j := ledger.JournalTransaction{ID: int64(n), Event: ledger.RefundOpen, At: rapid.Int64Range(0, 4e12).Draw(t, "at"), Reason: anyText.Draw(t, "reason"),
			Postings: []ledger.Posting{{Account: ledger.AccountOrigin, Amount: -amount}, {Account: ledger.AccountOpen, Amount: amount}}}
		entries = append(entries, ledger.BookRefund(e, j, ledger.RefundSettlement{}))
	}
	return entries, money
}

func writeAny(t testing.TB, d bookDialect, money ledger.Currencies, entries []ledger.BookEntry) string {
	t.Helper()
	var out bytes.Buffer
	book := newBook(&out, d, money)
	book.begin("any")
	for _, e := range entries {
		must(t, book.entry(e))
	}
	book.end("")
	must(t, book.out.Flush())
	return out.String()
}

// Few books, since a process of another program reads each.
func TestAnyBookIsReadByBothToolsAsItWasMeant(t *testing.T) {
	type book struct {
		entries []ledger.BookEntry
		money   ledger.Currencies
	}
	draw := rapid.Custom(func(t *rapid.T) book {
		entries, money := anyBook(t)
		return book{entries, money}
	})
	for seed := range 4 {
		b := draw.Example(seed)
		file := onDisk(t, "any.hledger", writeAny(t, hledger{}, b.money, b.entries))
		_, err := checker(t, "hledger", "-f", file, "check", "--strict")
		must(t, err)
		_, err = checker(t, "bean-check", onDisk(t, "any.beancount", writeAny(t, beancount{}, b.money, b.entries)))
		must(t, err)

		sums, want := accountants(t, file), map[string]*big.Int{}
		codes := map[string]string{}
		for _, e := range b.entries {
			for _, l := range e.Lines {
				name, _ := b.money.Commodity(l.Currency)
				key := l.Account.Name + " " + name
				if want[key] == nil {
					want[key] = new(big.Int)
				}
				want[key].Add(want[key], big.NewInt(l.Amount))
				codes[key] = l.Currency
			}
		}
		for key, sum := range want {
			text, known := b.money.DecimalSum(sum, codes[key])
			if !known {
				text = sum.String()
			}
			if sums[key] != text {
				t.Errorf("seed %d: %s holds %q, not %q", seed, key, sums[key], text)
			}
		}
		notesComeBack(t, file, b.entries)
	}
}

// notesComeBack reads the journal through hledger, and compares every note.
func notesComeBack(t *testing.T, file string, entries []ledger.BookEntry) {
	t.Helper()
	out, err := checker(t, "hledger", "-f", file, "print", "-O", "json")
	must(t, err)
	var read []struct {
		Code string      `json:"tcode"`
		Tags [][2]string `json:"ttags"`
	}
	must(t, json.Unmarshal([]byte(out), &read))
	notes := map[string]map[string]string{}
	for _, r := range read {
		notes[r.Code] = map[string]string{}
		for _, tag := range r.Tags {
			text, err := readNoteText(tag[1])
			must(t, err)
			notes[r.Code][tag[0]] = text
		}
	}
	for _, e := range entries {
		for _, n := range e.Notes {
			if got := notes[e.Code][n.Name]; got != n.Text {
				t.Errorf("%s of %s: %q was read as %q", n.Name, e.Code, n.Text, got)
			}
		}
	}
}

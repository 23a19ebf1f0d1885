package web

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"holdfast/store/ledger"
)

// bookWriter writes entries as text that hledger or beancount reads. It declares
// an account and a currency before their first use, and ends with what every
// account must hold: a file that was cut, or changed, does not check.
type bookWriter struct {
	out      *bufio.Writer
	money    ledger.Currencies
	dialect  bookDialect
	declared map[string]bool
	balances ledger.BookBalances
	last     int64 // the latest day of an entry
	rows     int
}

// bookDialect is what the two tools do not have in common.
type bookDialect interface {
	begin(w io.Writer, title string)
	account(w io.Writer, a ledger.BookAccount)
	currency(w io.Writer, name, code string, digits int)
	entry(w io.Writer, day string, e ledger.BookEntry, lines []bookLine)
	end(w io.Writer, last time.Time, balances []bookLine, rows int, remark string)
}

// bookLine is an account and an amount as they are written.
type bookLine struct{ account, number, currency string }

func newBook(w io.Writer, d bookDialect, money ledger.Currencies) *bookWriter {
	return &bookWriter{out: bufio.NewWriterSize(w, 64<<10), money: money, dialect: d, declared: map[string]bool{}}
}

func (b *bookWriter) begin(title string) { b.dialect.begin(b.out, title) }

func (b *bookWriter) entry(e ledger.BookEntry) error {
	if err := b.balances.Add(e); err != nil {
		return err
	}
	var lines []bookLine
	for _, l := range e.Lines {
		if !b.declared[l.Account.Name] {
			b.declared[l.Account.Name] = true
			b.dialect.account(b.out, l.Account)
		}
		name, exact := b.money.Commodity(l.Currency)
		if !b.declared[" "+name] {
			b.declared[" "+name] = true
			digits, _ := b.money.Digits(l.Currency)
			b.dialect.currency(b.out, name, l.Currency, digits)
		}
		number := fmt.Sprint(l.Amount)
		if exact {
			number, _ = b.money.Decimal(l.Amount, l.Currency)
		}
		lines = append(lines, bookLine{l.Account.Name, number, name})
	}
	b.rows++
	b.last = max(b.last, e.At)
	b.dialect.entry(b.out, time.UnixMilli(e.At).UTC().Format(time.DateOnly), e, lines)
	_, err := b.out.WriteString("\n")
	return err
}

// end writes the balances. A remark is about what is not in the file.
func (b *bookWriter) end(remark string) {
	var lines []bookLine
	for _, t := range b.balances.All() {
		name, exact := b.money.Commodity(t.Currency)
		number := t.Sum.String()
		if exact {
			number, _ = b.money.DecimalSum(t.Sum, t.Currency)
		}
		lines = append(lines, bookLine{t.Account.Name, number, name})
	}
	b.dialect.end(b.out, time.UnixMilli(b.last).UTC(), lines, b.rows, remark)
}

// noted are the notes of an entry, with its time in front.
func noted(e ledger.BookEntry) []ledger.Note {
	return append([]ledger.Note{{Name: "at", Text: stampText(e.At)}}, e.Notes...)
}

// noteText writes any text on one line, so that neither tool finds an end, a tag
// or a quote of its own in it. What it changes is percent-encoded, as in an address.
func noteText(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		edge := i == 0 || i+size == len(s)
		switch {
		case r == utf8.RuneError && size == 1, unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp), edge && unicode.IsSpace(r), strings.ContainsRune(`%,"\;|`, r):
			for _, c := range []byte(s[i : i+size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// readNoteText is the text that noteText wrote.
func readNoteText(s string) (string, error) { return url.PathUnescape(s) }

// hledger is the journal of hledger, which ledger reads as well for the most part.
type hledger struct{}

func (hledger) begin(w io.Writer, title string) {
	fmt.Fprintf(w, "; %s\n; check with: hledger -f FILE check --strict\ndecimal-mark .\n\n", title)
}

func (hledger) account(w io.Writer, a ledger.BookAccount) {
	fmt.Fprintf(w, "account %s\n", a.Name)
	for _, n := range a.Notes {
		fmt.Fprintf(w, "    ; %s: %s\n", n.Name, noteText(n.Text))
	}
}

func (h hledger) currency(w io.Writer, name, code string, digits int) {
	fmt.Fprintf(w, "commodity 1000.%s %s", strings.Repeat("0", digits), h.quoted(name))
	if name != code {
		fmt.Fprintf(w, "  ; currency: %s", noteText(code))
	}
	fmt.Fprintln(w)
}

// quoted puts a currency in quotes where it is more than letters.
func (hledger) quoted(name string) string {
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return `"` + name + `"`
	}
	return name
}

func (h hledger) entry(w io.Writer, day string, e ledger.BookEntry, lines []bookLine) {
	fmt.Fprintf(w, "%s * (%s) %s\n", day, strings.ReplaceAll(noteText(e.Code), ")", "%29"), noteText(e.Text))
	for _, n := range noted(e) {
		fmt.Fprintf(w, "    ; %s: %s\n", n.Name, noteText(n.Text))
	}
	for _, l := range lines {
		fmt.Fprintf(w, "    %s  %s %s\n", l.account, l.number, h.quoted(l.currency))
	}
}

// end asserts the balances on the last day, after everything else of that day.
func (h hledger) end(w io.Writer, last time.Time, balances []bookLine, rows int, remark string) {
	if len(balances) > 0 {
		fmt.Fprintf(w, "%s * balances at the end of this file\n", last.Format(time.DateOnly))
	}
	for _, l := range balances {
		c := h.quoted(l.currency)
		fmt.Fprintf(w, "    %s  0 %s = %s %s\n", l.account, c, l.number, c)
	}
	if remark != "" {
		fmt.Fprintf(w, "\n; %s\n", remark)
	}
	fmt.Fprintf(w, "\n; end of file: %d transactions\n", rows)
}

// beancount is the ledger of beancount, version 2 and 3.
type beancount struct{}

// dawn is before every entry: beancount opens accounts by date.
const dawn = "1970-01-01"

func (beancount) begin(w io.Writer, title string) {
	fmt.Fprintf(w, "; %s\n; check with: bean-check FILE\noption \"title\" \"%s\"\n\n", title, noteText(title))
}

func (b beancount) account(w io.Writer, a ledger.BookAccount) {
	fmt.Fprintf(w, "%s open %s\n", dawn, a.Name)
	b.notes(w, a.Notes)
}

func (b beancount) currency(w io.Writer, name, code string, _ int) {
	fmt.Fprintf(w, "%s commodity %s\n", dawn, name)
	if name != code {
		b.notes(w, []ledger.Note{{Name: "currency", Text: code}})
	}
}

func (beancount) notes(w io.Writer, notes []ledger.Note) {
	for _, n := range notes {
		fmt.Fprintf(w, "  %s: \"%s\"\n", n.Name, noteText(n.Text))
	}
}

func (b beancount) entry(w io.Writer, day string, e ledger.BookEntry, lines []bookLine) {
	fmt.Fprintf(w, "%s * \"%s\"\n  code: \"%s\"\n", day, noteText(e.Text), noteText(e.Code))
	b.notes(w, noted(e))
	for _, l := range lines {
		fmt.Fprintf(w, "  %s  %s %s\n", l.account, l.number, l.currency)
	}
}

// end asserts the balances on the morning after the last day. Without the zero,
// beancount lets the last digit differ.
func (beancount) end(w io.Writer, last time.Time, balances []bookLine, rows int, remark string) {
	for _, l := range balances {
		fmt.Fprintf(w, "%s balance %s  %s ~ 0 %s\n", last.AddDate(0, 0, 1).Format(time.DateOnly), l.account, l.number, l.currency)
	}
	if remark != "" {
		fmt.Fprintf(w, "\n; %s\n", remark)
	}
	fmt.Fprintf(w, "\n; end of file: %d transactions\n", rows)
}

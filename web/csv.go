package web

import (
	"bufio"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"holdfast/store/ledger"
)

// csvWriter writes RFC 4180: lines end in CR LF, and a cell with a quote, a comma
// or an end of line in it stands in quotes. The library's writer would take the CR
// out of a text, and then the text is another one.
type csvWriter struct {
	out   *bufio.Writer
	money ledger.Currencies
	rows  int
}

func newCSV(w io.Writer, money ledger.Currencies) *csvWriter {
	return &csvWriter{out: bufio.NewWriterSize(w, 64<<10), money: money}
}

// cells are a row in the making.
type cells []string

func (c *cells) text(texts ...string) {
	for _, s := range texts {
		*c = append(*c, keepText(s))
	}
}

func (c *cells) whole(n int64) { *c = append(*c, strconv.FormatInt(n, 10)) }

func (c *cells) moment(times ...int64) {
	for _, ms := range times {
		*c = append(*c, stampText(ms))
	}
}

// amount is two cells: the decimal with all digits of its currency, empty where
// nobody knows how many these are, and the minor units. A nil amount is not there,
// or not for the reader.
func (c *cells) amount(money ledger.Currencies, amount *int64, code string) {
	if amount == nil {
		*c = append(*c, "", "")
		return
	}
	decimal, _ := money.Decimal(*amount, code)
	*c = append(*c, decimal, strconv.FormatInt(*amount, 10))
}

func (w *csvWriter) header(names []string) error { return w.line(names) }

func (w *csvWriter) row(c cells) error {
	w.rows++
	return w.line(c)
}

func (w *csvWriter) line(texts []string) error {
	for n, s := range texts {
		if n > 0 {
			w.out.WriteByte(',')
		}
		if strings.ContainsAny(s, "\",\r\n") || s != strings.TrimSpace(s) {
			s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}
		w.out.WriteString(s)
	}
	_, err := w.out.WriteString("\r\n")
	return err
}

// textMark stands before a text that a spreadsheet would take for something else;
// whoever reads the file takes one away from a cell that begins with one.
const textMark = "'"

// keepText keeps a text a text in every spreadsheet. One that begins, behind
// whatever cannot be seen, like a formula, a number or a date would be run,
// rounded or written anew: it gets a mark in front, and so does one that begins
// with the mark.
func keepText(s string) string {
	if takenForMore(s) {
		return textMark + s
	}
	return s
}

// readAsDate are texts that begin with a letter and still do not stay texts.
var readAsDate = regexp.MustCompile(`(?i)^((true|false)$|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ ./-]*[0-9])`)

func takenForMore(s string) bool {
	if r, _ := utf8.DecodeRuneInString(s); s != "" && unicode.IsControl(r) {
		return true
	}
	plain := strings.TrimLeftFunc(norm.NFKC.String(s), func(r rune) bool { // a full-width sign counts as the plain one
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	})
	if plain == "" {
		return false
	}
	first, _ := utf8.DecodeRuneInString(plain)
	return strings.ContainsRune("=+-@'.,(|%\u2212", first) || unicode.IsDigit(first) || unicode.Is(unicode.Sc, first) || readAsDate.MatchString(plain)
}

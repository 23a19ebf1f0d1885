package statement

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// table is a CSV file whose header was found: rows of equal width, each with the
// line it begins on.
type table struct {
	titles []string
	rows   []row
	left   []string // sentences about rows that are none
}

type row struct {
	line  int
	cells []string
}

// headerDepth is how far down a header is looked for: banks put their name, the
// account and the dates above it.
const headerDepth = 40

var delimiters = map[string]rune{",": ',', ";": ';', "|": '|', "tab": '\t'}

// readTable finds the header by the titles that fits wants, under every
// delimiter that may be, and reads the rows below it. fits gives nil where the
// row is no header.
func readTable(text []byte, delimiter string, fits func(titles []string) bool, headless bool) (*table, error) {
	text = lineEnds(text)
	try := []string{delimiter}
	if delimiter == "" {
		try = []string{",", ";", "tab", "|"}
	}
	var seen []string
	for _, name := range try {
		if headless {
			return readRows(text, delimiters[cmpOr(delimiter, bestDelimiter(text))], nil, 0)
		}
		titles, skip, wide := findHeader(text, delimiters[name], fits)
		if titles != nil {
			return readRows(text, delimiters[name], titles, skip)
		}
		if len(wide) > len(seen) {
			seen = wide
		}
	}
	return nil, &noHeader{seen}
}

// lineEnds turns the line ends of old spreadsheets into today's.
func lineEnds(text []byte) []byte {
	if bytes.Contains(text, []byte("\n")) {
		return text
	}
	return bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// bestDelimiter is the one that stands most often in the first line.
func bestDelimiter(text []byte) string {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	best, most := ",", 0
	for _, name := range []string{",", ";", "tab", "|"} {
		if n := bytes.Count(first, []byte(string(delimiters[name]))); n > most {
			best, most = name, n
		}
	}
	return best
}

// noHeader is a file without the row that was looked for.
type noHeader struct{ seen []string }

func (n *noHeader) Error() string { return "no header" }

func (n *noHeader) columns() string {
	if len(n.seen) == 0 {
		return "no columns at all"
	}
	var all []string
	for _, s := range n.seen[:min(len(n.seen), 30)] {
		all = append(all, strconv.Quote(short(s)))
	}
	return strings.Join(all, ", ")
}

func newReader(text []byte, delimiter rune) *csv.Reader {
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord = delimiter, -1
	return r
}

func findHeader(text []byte, delimiter rune, fits func([]string) bool) (titles []string, skip int, widest []string) {
	r := newReader(text, delimiter)
	for n := range headerDepth {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil { // above a header, stray quotes say nothing about the table below
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if fits(cells) {
			return cells, n + 1, cells
		}
		if len(cells) > len(widest) {
			widest = cells
		}
	}
	return nil, 0, widest
}

// totals are the words that a row without a date begins with when it sums up
// others.
var totals = []string{"total", "totals", "grand total", "subtotal", "sum", "summe", "gesamt", "saldo", "endsaldo", "anfangssaldo", "balance", "opening balance", "closing balance", "end of report", "totale", "totaal"}

func readRows(text []byte, delimiter rune, titles []string, skip int) (*table, error) {
	r := newReader(text, delimiter)
	t := &table{titles: titles}
	for n := 0; ; n++ {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			if n < skip {
				continue
			}
			var p *csv.ParseError
			if errors.As(err, &p) {
				return nil, refuse(p.StartLine, "", "The quotes of this line do not pair: a text with quotes or line breaks stands wholly in double quotes. Export the file again.")
			}
			return nil, refuse(0, "", "The file cannot be read as CSV. Export it again.")
		}
		if n < skip {
			continue
		}
		line, _ := r.FieldPos(0)
		if t.titles == nil {
			for i := range cells {
				t.titles = append(t.titles, strconv.Itoa(i+1))
			}
		}
		if err := t.add(line, cells); err != nil {
			return nil, err
		}
	}
}

func (t *table) add(line int, cells []string) error {
	if len(t.rows) >= lineLimit {
		return refuse(line, "", "The file has more than %d lines. Export a shorter time.", lineLimit)
	}
	if len(cells) > widthLimit {
		return refuse(line, "", "The line has more than %d columns. Export the file again.", widthLimit)
	}
	empty := true
	for i, c := range cells {
		cells[i] = strings.TrimSpace(c)
		if len(c) > fieldLimit {
			return refuse(line, t.title(i), "The field is longer than %d KiB. A quote may be open; export the file again.", fieldLimit>>10)
		}
		empty = empty && cells[i] == ""
	}
	switch {
	case empty:
		return nil
	case slices.Equal(cells, t.titles):
		t.left = append(t.left, fmt.Sprintf("Line %d is the header again and was passed over.", line))
		return nil
	}
	for len(cells) > len(t.titles) && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	if len(cells) != len(t.titles) {
		if t.sumsUp(line, cells) {
			return nil
		}
		return refuse(line, "", "The line has %d columns and the header %d. The file may be cut off, or a text holds the delimiter without quotes; export it again.", len(cells), len(t.titles))
	}
	t.rows = append(t.rows, row{line, cells})
	return nil
}

// sumsUp passes over a row that sums up others, and says so.
func (t *table) sumsUp(line int, cells []string) bool {
	for _, c := range cells {
		if c == "" {
			continue
		}
		word := strings.TrimRight(strings.ToLower(c), ": ")
		if slices.Contains(totals, word) {
			t.left = append(t.left, fmt.Sprintf("Line %d (%q) sums up others and is no line of its own.", line, short(c)))
			return true
		}
		return false
	}
	return false
}

// dropTotals takes out the rows that sum up others: those that begin with such a
// word and have no date.
func (t *table) dropTotals(date int) {
	kept := t.rows[:0]
	for _, r := range t.rows {
		if _, err := readWritten(r.cells[date]); err != nil && t.sumsUp(r.line, r.cells) {
			continue
		}
		kept = append(kept, r)
	}
	t.rows = kept
}

func (t *table) title(i int) string {
	if i >= 0 && i < len(t.titles) {
		return t.titles[i]
	}
	return strconv.Itoa(i + 1)
}

// column finds the first of several titles; -1 if none is there.
func (t *table) column(names ...string) int { return columnOf(t.titles, names...) }

func columnOf(titles []string, names ...string) int {
	for _, name := range names {
		for i, title := range titles {
			if strings.EqualFold(title, name) {
				return i
			}
		}
	}
	return -1
}

// cell is empty where there is no such column.
func (r row) cell(i int) string {
	if i < 0 || i >= len(r.cells) {
		return ""
	}
	return r.cells[i]
}

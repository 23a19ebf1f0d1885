package statement

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// Options say what is known about a file before it is opened.
type Options struct {
	Name       string         // the file's, for messages
	Rail       string         // whose statement it is
	Mapping    rail.Statement // how the configuration says that the rail's files are written
	Currencies ledger.Currencies
	// Answers are a person's, by the Key of the question. They stand in for what
	// the mapping does not say.
	Answers map[string]string
}

// Read reads a whole file or refuses it: the error is then a *Refusal, or a
// *Question that a person has to answer first.
func Read(data []byte, o Options) (ledger.Statement, error) {
	if err := o.answer(); err != nil {
		return ledger.Statement{}, err
	}
	s, err := read(data, o)
	if err != nil {
		return ledger.Statement{}, err // nothing half read ever leaves
	}
	return s, nil
}

func read(data []byte, o Options) (ledger.Statement, error) {
	if looksLikeXML(data) { // its own first line says how it is encoded
		return readCamt(data, o)
	}
	text, err := decode(data, o.Mapping.Encoding)
	if err != nil {
		return ledger.Statement{}, err
	}
	switch bytes.TrimSpace(text)[0] {
	case '<':
		return readCamt(data, o)
	case '{':
		if err := o.expects("sandbox", "JSON"); err != nil {
			return ledger.Statement{}, err
		}
		return readBook(text, o)
	}
	return readCSV(text, o)
}

// expects refuses a file that is of another kind than the rail's are. A rail
// whose statements are csv may also be given what names itself.
func (o Options) expects(format, kind string) error {
	if f := o.Mapping.Format; f != "" && f != "csv" && f != format {
		return refuse(0, "", "The file is %s, but statements of the rail %s are %s by its configuration (statement.format). Choose another rail or file.", kind, o.Rail, f)
	}
	return nil
}

// readCSV finds out whose table it is by its header.
func readCSV(text []byte, o Options) (ledger.Statement, error) {
	m := o.Mapping
	if key, trouble := m.Missing(); o.named() && trouble != "" {
		return ledger.Statement{}, o.unnamed(text, key, trouble)
	}
	if m.Format == "camt053" || m.Format == "sandbox" {
		return ledger.Statement{}, o.expects("csv", "neither XML nor JSON")
	}
	if m.Header == "none" && m.Columns != nil {
		t, err := readTable(text, m.Delimiter, nil, true)
		if err != nil {
			return ledger.Statement{}, err
		}
		return readMapped(t, o)
	}
	mapped := func(titles []string) bool {
		if m.Columns == nil || m.Format != "" && m.Format != "csv" {
			return false
		}
		for _, title := range m.Columns {
			if columnOf(titles, title) < 0 {
				return false
			}
		}
		return true
	}
	for _, d := range []struct {
		format string
		fits   func([]string) bool
		read   func(*table, Options) (ledger.Statement, error)
	}{
		{"csv", mapped, readMapped},
		{"stripe_balance", isStripeBalance, readStripeBalance},
		{"stripe_payments", isStripePayments, readStripePayments},
		{"paypal", isPayPal, readPayPal},
	} {
		t, err := readTable(text, m.Delimiter, d.fits, false)
		if none, ok := errors.AsType[*noHeader](err); ok {
			if d.format == m.Format && d.format != "csv" || d.format == "paypal" {
				return ledger.Statement{}, o.unknown(text, none)
			}
			continue
		}
		if err != nil {
			return ledger.Statement{}, err
		}
		if err := o.expects(d.format, d.format); err != nil {
			return ledger.Statement{}, err
		}
		return d.read(t, o)
	}
	panic("unreachable: the last table was looked for")
}

func (o Options) unknown(text []byte, none *noHeader) error {
	switch {
	case o.named():
		return o.unnamed(text, "columns", "were named of another file: not all of them stand in this one")
	case o.Mapping.Columns != nil:
		var want []string
		for _, name := range rail.StatementColumns {
			if title := o.Mapping.Columns[name]; title != "" {
				want = append(want, title)
			}
		}
		return refuse(0, "", "No line of the file is the header: the columns %s are wanted, and these were seen: %s. Change statement.columns, or export with a header.", strings.Join(want, ", "), none.columns())
	case o.Mapping.Format == "" || o.Mapping.Format == "csv":
		return o.unnamed(text, "", "")
	}
	return refuse(0, "", "No reader knows this file. These columns were seen: %s. The statements of the rail %s are %s by its configuration.", none.columns(), o.Rail, o.Mapping.Format)
}

// answer puts a person's answers where the mapping is silent.
func (o *Options) answer() error {
	configured := o.Mapping.Columns != nil
	for _, key := range slices.Sorted(maps.Keys(o.Answers)) {
		value := o.Answers[key]
		if name, ok := strings.CutPrefix(key, columnKey); ok && slices.Contains(rail.StatementColumns, name) {
			if !configured {
				o.name(name, value)
			}
			continue
		}
		var place *string
		var known []string
		m := &o.Mapping
		switch key {
		case "dates":
			place, known = &m.Dates, rail.StatementDates
		case "decimal":
			place, known = &m.Decimal, []string{decimalPoint, decimalComma}
		case "sign":
			place, known = &m.Sign, []string{signIn, signOut}
		case "amounts":
			place, known = &m.Amounts, []string{amountsMinor, amountsDecimal}
		case "account":
			place = &m.Account
		case "currency":
			place, value = &m.Currency, strings.ToUpper(value)
			if _, ok := o.Currencies.Digits(value); !ok {
				return refuse(0, "", "%q is not a currency that is known. Use an ISO 4217 code, or configure it.", short(value))
			}
		case "time_zone":
			place = &m.TimeZone
			if _, err := time.LoadLocation(value); err != nil || value == "Local" {
				return refuse(0, "", "%q is not the name of a time zone, such as Europe/Berlin.", short(value))
			}
		case "header":
			place, known = &m.Header, []string{"none"}
		default:
			return refuse(0, "", "%q is no question that a file asks; there are account, amounts, columns, currency, dates, decimal, header, sign and time_zone.", short(key))
		}
		if known != nil && !slices.Contains(known, value) {
			return refuse(0, "", "%q is no answer to %s; there are %s.", short(value), key, strings.Join(known, ", "))
		}
		if *place == "" {
			*place = value
		}
	}
	return nil
}

const (
	signIn         = "in"
	signOut        = "out"
	amountsMinor   = "minor"
	amountsDecimal = "decimal"
)

// when reads the date of a row, in an order that is known.
func (d *draft) when(t *table, r row, column int, order, clock string) (at int64, dayOnly bool, err error) {
	return d.whenIn(t, r, column, order, clock, d.zone)
}

func (d *draft) whenIn(t *table, r row, column int, order, clock string, zone *time.Location) (at int64, dayOnly bool, err error) {
	s := r.cell(column)
	w, err := readWritten(s)
	if err != nil {
		return 0, false, refuse(r.line, t.title(column), "%q is not a date that can be read for certain. This file's dates are %s.", short(s), dateWords[order])
	}
	y, m, day, err := w.order(order)
	if err != nil {
		return 0, false, refuse(r.line, t.title(column), "%q is not a day of the calendar as this file writes them: %s.", short(s), dateWords[order])
	}
	if w.rest == "" {
		w.rest = clock
	}
	moment, dayOnly, err := moment(y, m, day, w.rest, zone)
	if err != nil {
		return 0, false, refuse(r.line, t.title(column), "%q cannot be placed in time: %s.", short(strings.TrimSpace(s+" "+clock)), err)
	}
	return moment.UnixMilli(), dayOnly, nil
}

var dateWords = map[string]string{"iso": "year first, 2026-04-03", "ymd": "year first, 2026/04/03", "dmy": "day first, 03/04/2026 is 3 April", "mdy": "month first, 03/04/2026 is 4 March",
	"dmy2": "day first with a year of two digits", "mdy2": "month first with a year of two digits", "ymd2": "year first with two digits"}

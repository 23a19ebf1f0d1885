package statement

import (
	"slices"
	"strconv"
	"strings"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// money are the columns of a table that hold amounts, read but not yet judged.
type money struct {
	table   *table
	columns []int
	numbers map[int][]number // by column; one a row
	empty   map[int][]bool
	mark    string
	minor   bool
}

// readMoney takes all amounts of some columns apart and finds the one decimal
// mark that the file uses.
func readMoney(t *table, o Options, columns ...int) (*money, error) {
	m := &money{table: t, numbers: map[int][]number{}, empty: map[int][]bool{}, mark: o.Mapping.Decimal, minor: o.Mapping.Amounts == amountsMinor}
	var open *row
	var openText string
	for _, c := range columns {
		if c < 0 || m.numbers[c] != nil {
			continue
		}
		m.columns = append(m.columns, c)
		numbers, empty := make([]number, len(t.rows)), make([]bool, len(t.rows))
		for i, r := range t.rows {
			s := r.cell(c)
			if s == "" {
				empty[i] = true
				continue
			}
			n, err := readNumber(s)
			if err != nil {
				return nil, refuse(r.line, t.title(c), "%q is not an amount that can be read for certain. Nothing of the file was taken.", short(s))
			}
			numbers[i] = n
			if m.minor || o.Mapping.Decimal != "" {
				continue
			}
			mark, isOpen, err := markOf(n.digits)
			switch {
			case err != nil:
				return nil, refuse(r.line, t.title(c), "%q is not an amount that can be read for certain. Nothing of the file was taken.", short(s))
			case isOpen:
				if open == nil {
					open, openText = &t.rows[i], s
				}
			case mark != "" && m.mark != "" && mark != m.mark:
				return nil, refuse(r.line, t.title(c), "%q has its decimals after another mark than the amounts above it. One file writes amounts in one way; export it again, or write decimal: point or comma.", short(s))
			case mark != "":
				m.mark = mark
			}
		}
		m.numbers[c], m.empty[c] = numbers, empty
	}
	if open != nil && m.mark == "" {
		return nil, &Question{Key: "decimal", Ask: "Which mark stands before the decimals?",
			Choices:  []Choice{{decimalPoint, "the point: 1,234.56"}, {decimalComma, "the comma: 1.234,56"}},
			Sentence: strconv.Quote(short(openText)) + " on line " + strconv.Itoa(open.line) + " may be about a thousand or about one, and no other amount of the file settles it."}
	}
	return m, nil
}

// marked tells whether any amount has a mark.
func (m *money) marked() bool { return m.mark != "" }

// signed tells whether any amount of a column says which way it went.
func (m *money) signed(column int) bool {
	return slices.ContainsFunc(m.numbers[column], func(n number) bool { return n.signed })
}

// at is the amount of a row; given is false where the cell is empty.
func (m *money) at(i, column int, currency string, known ledger.Currencies) (amount int64, given bool, err error) {
	if column < 0 || m.empty[column][i] {
		return 0, false, nil
	}
	amount, err = m.numbers[column][i].minorUnits(m.mark, m.minor, currency, known)
	if err != nil {
		return 0, true, refuse(m.table.rows[i].line, m.table.title(column), "%q cannot be read: %s.", short(m.table.rows[i].cell(column)), strings.TrimSuffix(err.Error(), "."))
	}
	return amount, true, nil
}

// mapped is a table whose columns the configuration names.
type mapped struct {
	*draft
	t *table
	c map[string]int // by name; -1 where there is none
	m *money
}

func readMapped(t *table, o Options) (ledger.Statement, error) {
	d, err := newDraft("CSV", o)
	if err != nil {
		return ledger.Statement{}, err
	}
	r := &mapped{draft: d, t: t, c: map[string]int{}}
	if err := r.place(); err != nil {
		return ledger.Statement{}, err
	}
	t.dropTotals(r.c["date"])
	d.Notes = append(d.Notes, t.left...)
	if len(t.rows) == 0 {
		return ledger.Statement{}, refuse(0, "", "The file has a header (%s) and no line below it. Export a time in which something happened.", strings.Join(t.titles[:min(len(t.titles), 30)], ", "))
	}
	order := o.Mapping.Dates
	if order == "" {
		if order, err = datesOf(t, r.c["date"]); err != nil {
			return ledger.Statement{}, err
		}
	}
	if r.m, err = readMoney(t, o, r.c["amount"], r.c["debit"], r.c["credit"], r.c["gross"], r.c["fee"], r.c["balance"]); err != nil {
		return ledger.Statement{}, err
	}
	if err := r.ask(); err != nil {
		return ledger.Statement{}, err
	}
	d.Lines = make([]ledger.StatementLine, 0, len(t.rows))
	for i := range t.rows {
		if err := r.line(i, order); err != nil {
			return ledger.Statement{}, err
		}
	}
	d.note("Dates are read %s, in the time zone %s.", dateWords[order], d.zone)
	d.sayTheSign()
	if err := r.running(r.c["balance"], r.m, true); err != nil {
		return ledger.Statement{}, err
	}
	return d.finish(false)
}

// place finds the columns.
func (r *mapped) place() error {
	for _, name := range rail.StatementColumns { // in a fixed order, so that the same file gets the same answer
		r.c[name] = -1
		title := r.o.Mapping.Columns[name]
		if title == "" {
			continue
		}
		if r.o.Mapping.Header == "none" {
			n, err := strconv.Atoi(title)
			if err != nil || n < 1 || n > len(r.t.titles) {
				return refuse(1, title, "The file has %d columns, and %s is mapped to column %s. Change statement.columns.%s.", len(r.t.titles), name, short(title), name)
			}
			r.c[name] = n - 1
			continue
		}
		r.c[name] = r.t.column(title)
		same := slices.DeleteFunc(slices.Clone(r.t.titles), func(s string) bool { return !strings.EqualFold(s, title) })
		if len(same) > 1 {
			return refuse(0, title, "The header has %q %d times, so it names no column. Rename one of them in the file.", short(title), len(same))
		}
	}
	if r.c["date"] < 0 || r.c["amount"] < 0 && (r.c["debit"] < 0 || r.c["credit"] < 0) {
		return refuse(0, "", "statement.columns of the rail %s names no date, or neither an amount nor debit and credit. These columns were seen: %s.", r.o.Rail, (&noHeader{r.t.titles}).columns())
	}
	return nil
}

// ask asks what the amounts themselves do not say.
func (r *mapped) ask() error {
	fraction, amount := false, max(r.c["amount"], r.c["debit"])
	at := slices.IndexFunc(r.t.rows, func(row row) bool { return row.cell(amount) != "" })
	if at < 0 {
		return nil // nothing to ask about: each line will be refused
	}
	first := r.t.rows[at]
	for _, row := range r.t.rows {
		code, _ := r.currency(row)
		digits, _ := r.o.Currencies.Digits(code)
		fraction = fraction || digits > 0
	}
	if r.o.Mapping.Amounts == "" && !r.m.marked() && fraction {
		return &Question{Key: "amounts", Ask: "What does a whole number in this file count?",
			Choices:  []Choice{{amountsDecimal, "whole units: 48 is 48.00"}, {amountsMinor, "the smallest units: 4800 is 48.00"}},
			Sentence: strconv.Quote(short(first.cell(amount))) + " on line " + strconv.Itoa(first.line) + " has no decimals, and no other amount of the file has any."}
	}
	// What a provider lists by its own ids are effects: they came in unless it says
	// otherwise. A bank's line without a sign could be either.
	named := r.c["id"] >= 0 || r.c["provider_id"] >= 0 || r.c["stamp"] >= 0
	if r.o.Mapping.Sign == "" && r.c["indicator"] < 0 && r.c["amount"] >= 0 && !named && !r.m.signed(r.c["amount"]) {
		return &Question{Key: "sign", Ask: "Which way did the amounts of this file go?",
			Choices:  []Choice{{signIn, "a number without a sign came in"}, {signOut, "a number without a sign went out"}},
			Sentence: "No amount of the file has a sign, and no column says debit or credit."}
	}
	return nil
}

func (r *mapped) currency(row row) (string, bool) {
	code := r.o.Mapping.Currency
	if c := row.cell(r.c["currency"]); c != "" {
		code = strings.ToUpper(c)
	}
	_, known := r.o.Currencies.Digits(code)
	return code, known
}

func (r *mapped) line(i int, order string) (err error) {
	row := r.t.rows[i]
	l := ledger.StatementLine{Number: row.line, LineID: row.cell(r.c["id"]), ProviderID: row.cell(r.c["provider_id"]), Stamp: row.cell(r.c["stamp"]),
		Hash: row.cell(r.c["hash"]), Counterparty: row.cell(r.c["counterparty"]), Reference: row.cell(r.c["reference"]), Batch: row.cell(r.c["batch"]), Text: row.cell(r.c["text"])}
	l.Of = row.cell(r.c["of"])
	if r.c["provider_id"] < 0 {
		l.ProviderID = l.LineID
	}
	if l.Stamp == "" {
		l.Stamp = orderIn(l.Reference, l.Text)
	}
	l.Kind = kindNamed(row.cell(r.c["kind"]))
	var known bool
	if l.Currency, known = r.currency(row); !known {
		return refuse(row.line, r.t.title(r.c["currency"]), "%q is not a currency that is known. Use an ISO 4217 code, or configure it.", short(l.Currency))
	}
	if l.At, l.DateOnly, err = r.when(r.t, row, r.c["date"], order, row.cell(r.c["time"])); err != nil {
		return err
	}
	if l.Amount, err = r.amount(i, l.Currency); err != nil {
		return err
	}
	if err = r.fee(i, &l); err != nil {
		return err
	}
	r.Lines = append(r.Lines, l)
	return nil
}

func kindNamed(s string) ledger.LineKind {
	k := ledger.LineKind(strings.ToLower(s))
	switch k {
	case ledger.LineCharge, ledger.LineRefund, ledger.LinePayout, ledger.LineFee, ledger.LineDispute, ledger.LineTransfer, ledger.LineAdjustment:
		return k
	}
	return ""
}

// amount is the row's, signed as the account sees it.
func (r *mapped) amount(i int, currency string) (int64, error) {
	row := r.t.rows[i]
	if r.c["amount"] < 0 {
		return r.debitCredit(i, currency)
	}
	amount, given, err := r.m.at(i, r.c["amount"], currency, r.o.Currencies)
	switch {
	case err != nil:
		return 0, err
	case !given:
		return 0, refuse(row.line, r.t.title(r.c["amount"]), "The line has no amount.")
	}
	if c := r.c["indicator"]; c >= 0 {
		out, known := directions[strings.ToLower(row.cell(c))]
		if !known {
			return 0, refuse(row.line, r.t.title(c), "%q says neither debit nor credit (D, C, DR, CR, DBIT, CRDT, S, H).", short(row.cell(c)))
		}
		if r.m.numbers[r.c["amount"]][i].signed {
			return 0, refuse(row.line, r.t.title(r.c["amount"]), "%q has a sign, and %s says %s: which of them counts is not certain. Map one of them.", short(row.cell(r.c["amount"])), r.t.title(c), short(row.cell(c)))
		}
		if out {
			return -amount, nil
		}
		return amount, nil
	}
	if r.o.Mapping.Sign == signOut {
		return -amount, nil
	}
	return amount, nil
}

func (r *mapped) debitCredit(i int, currency string) (int64, error) {
	row := r.t.rows[i]
	debit, isDebit, err := r.m.at(i, r.c["debit"], currency, r.o.Currencies)
	if err != nil {
		return 0, err
	}
	credit, isCredit, err := r.m.at(i, r.c["credit"], currency, r.o.Currencies)
	if err != nil {
		return 0, err
	}
	switch {
	case debit < 0 || credit < 0:
		return 0, refuse(row.line, r.t.title(r.c["debit"]), "An amount under debit or credit has a minus, which would turn it round; whether it should is not certain.")
	case !isDebit && !isCredit:
		return 0, refuse(row.line, r.t.title(r.c["debit"]), "The line has neither a debit nor a credit.")
	case debit != 0 && credit != 0:
		return 0, refuse(row.line, r.t.title(r.c["debit"]), "The line has both a debit and a credit.")
	}
	return credit - debit, nil
}

// fee fills in gross and fee: amount is what reached the account, gross what it
// was before the fee.
func (r *mapped) fee(i int, l *ledger.StatementLine) error {
	l.Gross = l.Amount
	gross, hasGross, err := r.m.at(i, r.c["gross"], l.Currency, r.o.Currencies)
	if err != nil {
		return err
	}
	fee, hasFee, err := r.m.at(i, r.c["fee"], l.Currency, r.o.Currencies)
	if err != nil {
		return err
	}
	switch {
	case hasGross && hasFee && !adds(l.Amount, fee, gross):
		if fee = -fee; !adds(l.Amount, fee, gross) {
			return refuse(r.t.rows[i].line, r.t.title(r.c["fee"]), "Gross less fee is not the amount of the line.")
		}
		l.Gross, l.Fee = gross, fee
	case hasGross:
		if !hasFee {
			fee = gross - l.Amount
		}
		if !adds(l.Amount, fee, gross) {
			return refuse(r.t.rows[i].line, r.t.title(r.c["gross"]), "The amounts of the line are too large.")
		}
		l.Gross, l.Fee = gross, fee
	case hasFee:
		fee = max(fee, -fee)
		sum, ok := ledger.AddAmounts(l.Amount, fee)
		if !ok || fee < 0 {
			return refuse(r.t.rows[i].line, r.t.title(r.c["fee"]), "The amounts of the line are too large.")
		}
		l.Gross, l.Fee = sum, fee
	}
	return nil
}

// adds tells whether a + b is exactly sum.
func adds(a, b, sum int64) bool {
	s, ok := ledger.AddAmounts(a, b)
	return ok && s == sum
}

// running looks whether the balances beside the lines follow from them, in the
// order of the file or against it, and takes opening and closing from them.
func (d *draft) running(column int, m *money, strict bool) error {
	if column < 0 || len(d.Lines) == 0 || len(d.Lines) != len(m.table.rows) {
		return nil
	}
	balances := make([]int64, len(d.Lines))
	for i, l := range d.Lines {
		b, given, err := m.at(i, column, l.Currency, d.o.Currencies)
		if err != nil && strict {
			return err
		}
		if err != nil || !given || l.Currency != d.Lines[0].Currency {
			d.note("Balances stand beside the lines, but not one of one currency beside each, so they were not checked.")
			return nil
		}
		balances[i] = b
	}
	breaks := func(newer, older int) bool { return !adds(balances[older], d.Lines[newer].Amount, balances[newer]) }
	down, up := -1, -1
	for i := 1; i < len(balances); i++ {
		if down < 0 && breaks(i, i-1) {
			down = i
		}
		if up < 0 && breaks(i-1, i) {
			up = i
		}
	}
	first, last := 0, len(balances)-1
	if down >= 0 && up < 0 {
		first, last = last, first
	}
	opening, ok := ledger.AddAmounts(balances[first], -d.Lines[first].Amount)
	if down >= 0 && up >= 0 || !ok {
		if !strict {
			d.note("The balances beside the lines do not follow from them, so they were not used.")
			return nil
		}
		return refuse(d.Lines[max(down, up, 0)].Number, m.table.title(column), "The balance does not follow from the line beside it: a line is missing, or stands in another order. Export the file again.")
	}
	d.Opening, d.Closing, d.Currency = &opening, &balances[last], d.Lines[0].Currency
	return nil
}

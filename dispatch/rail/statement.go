package rail

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Statement says how this rail's statements are written. What it leaves out is
// seen in the file, and where the file leaves it open, asked.
type Statement struct {
	Format    string            `yaml:"format"`    // one of StatementFormats
	Amounts   string            `yaml:"amounts"`   // minor · decimal
	Columns   map[string]string `yaml:"columns"`   // of StatementColumns: what the file calls it
	Delimiter string            `yaml:"delimiter"` // one of StatementDelimiters
	Decimal   string            `yaml:"decimal"`   // point · comma
	Sign      string            `yaml:"sign"`      // in: a positive amount came in · out: it went out
	Dates     string            `yaml:"dates"`     // one of StatementDates
	TimeZone  string            `yaml:"time_zone"` // of days, and of times that name no zone: Europe/Berlin; UTC is the default
	Encoding  string            `yaml:"encoding"`  // one of StatementEncodings; UTF-8 and byte-order marks need no word
	Header    string            `yaml:"header"`    // none: the file has no header, and columns are numbers from 1
	Account   string            `yaml:"account"`   // which of the accounts in the file
	Currency  string            `yaml:"currency"`  // of a file that names none
	Due       Duration          `yaml:"due"`       // how long after its confirmation an operation may be missing from it; a working week if left out
}

// What the keys of a statement may say. A two at the end of dates is for years
// of two digits, which are read as 20xx; nothing else reads them.
var (
	StatementFormats    = []string{"csv", "stripe_balance", "stripe_payments", "paypal", "camt053", "sandbox"}
	StatementColumns    = []string{"id", "provider_id", "amount", "debit", "credit", "indicator", "gross", "fee", "balance", "currency", "date", "time", "reference", "stamp", "counterparty", "hash", "kind", "batch", "text", "of"}
	StatementDates      = []string{"iso", "dmy", "mdy", "ymd", "dmy2", "mdy2", "ymd2"}
	StatementDelimiters = []string{",", ";", "|", "tab"}
	StatementEncodings  = []string{"utf-8", "utf-16le", "utf-16be", "windows-1252", "iso-8859-1", "iso-8859-15"}
	statementSigns      = []string{"in", "out"}
	statementDecimals   = []string{"point", "comma"}
)

func (s Statement) given() bool {
	return s.Columns != nil || s.Amounts+s.Delimiter+s.Decimal+s.Sign+s.Dates+s.TimeZone+s.Encoding+s.Header+s.Account+s.Currency != ""
}

// statement looks at what is said of the rail's statements.
func (f *findings) statement(c Config) {
	s := c.Statement
	if s.Format == "" && s.given() {
		f.add("statement.format", "is missing; write one of %s", strings.Join(StatementFormats, ", "))
	}
	for _, k := range []struct {
		key, value string
		known      []string
	}{
		{"format", s.Format, StatementFormats},
		{"amounts", s.Amounts, []string{amountsMinor, amountsDecimal}},
		{"delimiter", s.Delimiter, StatementDelimiters},
		{"decimal", s.Decimal, statementDecimals},
		{"sign", s.Sign, statementSigns},
		{"dates", s.Dates, StatementDates},
		{"encoding", s.Encoding, StatementEncodings},
		{"header", s.Header, []string{"none"}},
	} {
		if k.value != "" && !slices.Contains(k.known, k.value) {
			f.add("statement."+k.key, "%q is not one of %s", k.value, strings.Join(k.known, ", "))
		}
	}
	if s.TimeZone != "" {
		if _, err := time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "Local" {
			f.add("statement.time_zone", "%q is not the name of a time zone, such as Europe/Berlin", s.TimeZone)
		}
	}
	if s.Currency != "" && c.Digits != nil {
		if _, known := c.Digits(s.Currency); !known {
			f.add("statement.currency", "%q is a currency that nobody knows", s.Currency)
		}
	}
	f.statementColumns(s)
}

func (f *findings) statementColumns(s Statement) {
	for _, name := range slices.Sorted(maps.Keys(s.Columns)) {
		title := s.Columns[name]
		switch {
		case !slices.Contains(StatementColumns, name):
			f.add("statement.columns."+name, "is not one of %s", strings.Join(StatementColumns, ", "))
		case strings.TrimSpace(title) == "":
			f.add("statement.columns."+name, "is empty; write what the file calls this column, or leave it out")
		case s.Header == "none":
			if n, err := strconv.Atoi(title); err != nil || n < 1 {
				f.add("statement.columns."+name, "%q is not the number of a column, from 1; the file has no header to look in", title)
			}
		}
	}
	if s.Format != "csv" || s.Columns == nil {
		return
	}
	if key, sentence := s.Missing(); sentence != "" {
		f.add("statement."+key, "%s", sentence)
	}
}

// Missing says what a table needs before its lines can be read, and under which
// key; nothing where it names enough of its columns.
func (s Statement) Missing() (key, sentence string) {
	has := func(name string) bool { return s.Columns[name] != "" }
	switch {
	case !has("date"):
		return "columns.date", "is missing; a line without a day is none"
	case has("amount") == (has("debit") || has("credit")):
		return "columns.amount", "is needed, or else debit and credit, but not both"
	case has("debit") != has("credit"):
		return "columns.debit", "and credit go together"
	case has("indicator") && !has("amount"):
		return "columns.indicator", "says which way an amount went; debit and credit say so already"
	case !has("currency") && s.Currency == "":
		return "columns.currency", "is missing; name the column, or write the file's one currency under statement.currency"
	}
	return "", ""
}

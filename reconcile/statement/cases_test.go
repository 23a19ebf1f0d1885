package statement

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

func readAs(m rail.Statement, text string) (ledger.Statement, error) {
	return Read([]byte(text), Options{Name: "file", Rail: "bank", Mapping: m})
}

func mustRead(t *testing.T, m rail.Statement, text string) ledger.Statement {
	t.Helper()
	s, err := readAs(m, text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

// refusedAs wants a refusal on a line, with a word in it.
func refusedAs(t *testing.T, m rail.Statement, text string, line int, word string) {
	t.Helper()
	s, err := readAs(m, text)
	r, ok := errors.AsType[*Refusal](err)
	if !ok || r.Line != line || !strings.Contains(r.Error(), word) {
		t.Errorf("%q gave %v, not a refusal of line %d about %q", text, err, line, word)
	}
	if s.Lines != nil {
		t.Errorf("%q left %d lines behind", text, len(s.Lines))
	}
}

func asked(t *testing.T, m rail.Statement, text, key string) {
	t.Helper()
	_, err := readAs(m, text)
	q, ok := errors.AsType[*Question](err)
	if !ok || q.Key != key || len(q.Choices) < 2 {
		t.Errorf("%q gave %v, not a question about %s", text, err, key)
	}
}

func utf16File(text string, big, mark bool) string {
	var b []byte
	units := utf16.Encode([]rune(text))
	if mark {
		units = append([]uint16{0xFEFF}, units...)
	}
	for _, u := range units {
		if big {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return string(b)
}

// TestCase140: a byte-order mark is no part of the first column's name, lines
// above the header are passed over, and a file without a line says what was seen.
func TestCase140(t *testing.T) {
	file := "Date;Ref;Amount\n2026-11-03;inv-1;-48,00\n"
	preface := "My bank\nAccount;47 11\n\n" + file
	for name, text := range map[string]string{
		"bare": file, "marked": "\uFEFF" + file, "marked, with a preface": "\uFEFF" + preface, "preface": preface,
		"utf-16le": utf16File(file, false, true), "utf-16be": utf16File(file, true, true), "utf-16le without a mark": utf16File(file, false, false), "utf-16be without a mark": utf16File(file, true, false),
		"carriage returns": strings.ReplaceAll(file, "\n", "\r"), "both": strings.ReplaceAll(file, "\n", "\r\n"), "empty lines": strings.ReplaceAll(file, "\n", "\n\n"),
	} {
		s := mustRead(t, plainMapping, text)
		if len(s.Lines) != 1 || s.Lines[0].Amount != -4800 || s.Lines[0].Reference != "inv-1" {
			t.Errorf("%s: read as %+v", name, s.Lines)
		}
	}
	refusedAs(t, plainMapping, "\uFEFF", 0, "empty")
	refusedAs(t, plainMapping, "", 0, "empty")
	refusedAs(t, plainMapping, " \n\n", 0, "empty")
	refusedAs(t, plainMapping, "\uFEFFDate;Ref;Amount\n", 0, "Date, Ref, Amount")
	refusedAs(t, plainMapping, "Day;Ref;Amount\n2026-11-03;a;-1,00\n", 0, `"Day", "Ref", "Amount"`)
	refusedAs(t, plainMapping, utf16File(file, false, true)+"x", 0, "cut off")
	refusedAs(t, plainMapping, "Date,Amount,Ref\n2026-11-03,-1.00,caf\xe9\n", 2, "UTF-8")
	refusedAs(t, plainMapping, "Date,Amount,Ref\n2026-11-03,-1.00,a\x00b\n", 2, "control character")
}

// TestCase142: brackets, symbols and words tell the sign, or the file is
// refused. Nothing is taken for positive because its sign was not seen.
func TestCase142(t *testing.T) {
	for text, want := range map[string]int64{
		"(900.23)": -90023, "($900.23)": -90023, "$(900.23)": -90023, "$+1500.00": 150000, "900.23 DR": -90023, "900.23 CR": 90023,
		"-$900.23": -90023, "$-900.23": -90023, "900.23-": -90023, "900.23+": 90023, "+900.23": 90023, "USD 900.23 cr": 90023, "900.23USD-": -90023,
		"−900.23": -90023, "1,900.23-": -190023, "1 900.23-": -190023, "1\u00a0900.23-": -190023, "1'900.23-": -190023, "1’234’900.23-": -123490023,
		"-1.900,23": -190023, "-900,2": -90020, "-0.230": -23, "-1900.230": -190023, "(1,234,567.89)": -123456789,
	} {
		s, err := readAs(rail.Statement{Format: "csv", Currency: "USD", Columns: map[string]string{"date": "D", "amount": "A"}}, "D\tA\n2026-11-03\t"+text+"\n")
		if err != nil || len(s.Lines) != 1 || s.Lines[0].Amount != want {
			t.Errorf("%q was read as %+v, %v, not %d", text, s.Lines, err, want)
		}
	}
	for _, text := range []string{"-900.23 DR", "(-900.23)", "-900.23-", "((900.23))", "€-900.23", "-900.23 EUR", "$$-900.23", "-900.23 XX", "1,23.45-", "-12 34.00", "-1.2.3", "-1,234.5.6", "-.5", "-5.", "-", "()", "DR", "$", "abc", "-0x10", "1e3-", "-٣.00", "-99999999999999999999.00", "-1234.001", "-1..5", "-1.,5"} {
		refusedAs(t, rail.Statement{Format: "csv", Currency: "USD", Columns: map[string]string{"date": "D", "amount": "A"}}, "D\tA\n2026-11-03\t"+text+"\n", 2, "A")
	}
	asked(t, plainMapping, "Date,Amount,Ref\n2026-11-03,48.00,a\n", "sign")
	out := with(plainMapping, func(m *rail.Statement) { m.Sign = "out" })
	if s := mustRead(t, out, "Date,Amount,Ref\n2026-11-03,48.00,a\n"); s.Lines[0].Amount != -4800 || !slices.Contains(s.Notes, "−48.00 EUR = money out (line 2).") {
		t.Errorf("read as %+v", s)
	}
	asked(t, plainMapping, "Date,Amount,Ref\n2026-11-03,\"-1,234\",a\n", "decimal")
	asked(t, plainMapping, "Date,Amount,Ref\n2026-11-03,-1.234,a\n", "decimal")
	asked(t, plainMapping, "Date,Amount,Ref\n2026-11-03,-900.230,a\n", "decimal")
	asked(t, plainMapping, "Date,Amount,Ref\n2026-11-03,-48,a\n", "amounts")
	refusedAs(t, plainMapping, "Date;Amount;Ref\n2026-11-03;-1.50;a\n2026-11-03;-1,50;b\n", 3, "another mark")
	refusedAs(t, sandboxMapping, "id,amount,currency,created_at,reference,operation,recipient\na,48.00,EUR,2026-11-03T09:14:02Z,,,\n", 2, "minor units")
	minor := with(plainMapping, func(m *rail.Statement) { m.Amounts = "minor" })
	if s := mustRead(t, minor, "Date,Amount,Ref\n2026-11-03,-4800,a\n"); s.Lines[0].Amount != -4800 {
		t.Errorf("minor units were read as %d", s.Lines[0].Amount)
	}
}

// TestCase143: a minus may stand behind, and one line that cannot be read
// refuses the file.
func TestCase143(t *testing.T) {
	file := "Date,Amount,Ref\n2026-11-03,5.00-,a\n2026-11-03,2000.00,b\n2026-11-03,1200.00-,c\n"
	s := mustRead(t, plainMapping, file)
	var got []int64
	for _, l := range s.Lines {
		got = append(got, l.Amount)
	}
	if !slices.Equal(got, []int64{-500, 200000, -120000}) {
		t.Errorf("read as %v", got)
	}
	refusedAs(t, plainMapping, file+"2026-11-04,12..00-,d\n", 5, "Nothing of the file was taken")
	refusedAs(t, plainMapping, file+"2026-11-04,,d\n", 5, "no amount")
	dc := rail.Statement{Format: "csv", Currency: "EUR", Columns: map[string]string{"date": "Date", "debit": "Out", "credit": "In"}}
	refusedAs(t, dc, "Date,Out,In\n2026-11-03,1.00,2.00\n", 2, "both")
	refusedAs(t, dc, "Date,Out,In\n2026-11-03,,\n", 2, "neither")
	refusedAs(t, dc, "Date,Out,In\n2026-11-03,-1.00,\n", 2, "minus")
	side := rail.Statement{Format: "csv", Currency: "EUR", Columns: map[string]string{"date": "Date", "amount": "Amount", "indicator": "Side"}}
	refusedAs(t, side, "Date,Amount,Side\n2026-11-03,1.00,X\n", 2, "neither debit nor credit")
	refusedAs(t, side, "Date,Amount,Side\n2026-11-03,-1.00,D\n", 2, "which of them counts")
}

// TestCase145: one file has one order of dates, which is asked where the file
// leaves it open, and no day is made of one that is not in the calendar.
func TestCase145(t *testing.T) {
	file := func(dates ...string) string {
		b := "Date,Amount,Ref\n"
		for _, d := range dates {
			b += d + ",-1.00,a\n"
		}
		return b
	}
	order := func(name string) rail.Statement {
		return with(plainMapping, func(m *rail.Statement) { m.Dates = name })
	}
	asked(t, plainMapping, file("03/04/2026"), "dates")
	asked(t, plainMapping, file("03/04/26"), "dates")
	for name, want := range map[string]string{"dmy": "2026-04-03", "mdy": "2026-03-04"} {
		s, err := Read([]byte(file("03/04/2026")), Options{Mapping: plainMapping, Answers: map[string]string{"dates": name}})
		if err != nil || time.UnixMilli(s.Lines[0].At).UTC().Format(time.DateOnly) != want {
			t.Errorf("%s: %+v, %v", name, s.Lines, err)
		}
	}
	if s := mustRead(t, plainMapping, file("03/04/2026", "13/04/2026")); time.UnixMilli(s.Lines[0].At).UTC().Month() != time.April {
		t.Error("the second date did not settle the first")
	}
	refusedAs(t, plainMapping, file("03/04/2026", "13/04/2026", "04/13/2026"), 4, "another order")
	refusedAs(t, plainMapping, file("13/04/2026", "31/02/2026"), 3, "calendar")
	refusedAs(t, plainMapping, file("13/04/2026", "2026-04-03"), 3, "another order")
	refusedAs(t, order("dmy"), file("03/04/2026", "31/02/2026"), 3, "calendar")
	refusedAs(t, order("dmy"), file("03/04/2026", "2026-04-03"), 3, "day first")
	refusedAs(t, order("dmy"), file("03/04/26"), 2, "day first")
	refusedAs(t, order("iso"), file("2026-02-29"), 2, "calendar")
	asked(t, plainMapping, file("13/04/26"), "dates")
	refusedAs(t, plainMapping, file("13/04/69", "13/04/70", "70/04/13", "13/31/70"), 4, "another order")
	refusedAs(t, plainMapping, file("12/31/70"), 2, "two digits")
	refusedAs(t, plainMapping, file("soon"), 2, "date")
	if s := mustRead(t, order("dmy2"), file("03/04/26")); time.UnixMilli(s.Lines[0].At).UTC().Format(time.DateOnly) != "2026-04-03" {
		t.Error("two declared digits were read wrong")
	}
	if s := mustRead(t, plainMapping, file("20260403")); time.UnixMilli(s.Lines[0].At).UTC().Format(time.DateOnly) != "2026-04-03" {
		t.Error("a date without marks was read wrong")
	}
}

// identity is what a line is known by.
func identity(l ledger.StatementLine) string {
	name := "id " + l.LineID
	if l.LineID == "" {
		name = l.Content
	}
	return fmt.Sprint(name, " ", l.Occurrence)
}

func identities(s ledger.Statement) (all []string) {
	for _, l := range s.Lines {
		all = append(all, identity(l))
	}
	slices.Sort(all)
	return all
}

// TestCase146: two equal lines are two, in every reading of the file and of a
// longer one that overlaps it, in whatever order and dress; a line's own name
// comes before its content.
func TestCase146(t *testing.T) {
	rows := []string{"2026-11-03,-48.00,a", "2026-11-03,-48.00,a", "2026-11-04,-5.00,b"}
	file := func(rows ...string) string { return "Date,Amount,Ref\n" + strings.Join(rows, "\n") + "\n" }
	first := mustRead(t, plainMapping, file(rows...))
	if ids := identities(first); len(slices.Compact(ids)) != 3 {
		t.Fatalf("two equal lines became one: %v", ids)
	}
	again := identities(mustRead(t, plainMapping, file(rows...)))
	if !slices.Equal(identities(first), again) {
		t.Error("a second reading gives other lines")
	}
	longer := identities(mustRead(t, plainMapping, file("2026-11-05,-9.00,c", rows[2], rows[1], "2026-11-03,-48.00,a", rows[0])))
	for _, id := range again {
		if !slices.Contains(longer, id) {
			t.Errorf("%s is missing from the longer file", id)
		}
	}
	if len(longer) != 5 || len(slices.Compact(longer)) != 5 {
		t.Errorf("the longer file has %d lines", len(longer))
	}
	dressed := "\uFEFFBank\r\n\"Ref\";\"Amount\";\"Date\"\r\n\"a\";\"48,00-\";\"2026-11-03\"\r\n\"a\";\"(48,00)\";\"2026-11-03\"\r\n\"b\";\"-5,00\";\"2026-11-04\"\r\n"
	if got := identities(mustRead(t, plainMapping, dressed)); !slices.Equal(got, again) {
		t.Error("another delimiter or column order makes other lines")
	}
	named := with(plainMapping, func(m *rail.Statement) {
		m.Columns = map[string]string{"date": "Date", "amount": "Amount", "text": "Ref", "id": "No"}
	})
	a := mustRead(t, named, "No,Date,Amount,Ref\n7,2026-11-03,-48.00,a\n8,2026-11-03,-48.00,a\n")
	b := mustRead(t, named, "No,Date,Amount,Ref\n7,2026-11-03,-48.00,other words\n8,2026-11-03,-48.00,a\n")
	if !slices.Equal(identities(a), identities(b)) {
		t.Error("a line's own name does not win over its words")
	}
	refusedAs(t, named, "No,Date,Amount,Ref\n7,2026-11-03,-48.00,a\n7,2026-11-03,-49.00,a\n", 3, "names no line")
	if twice := mustRead(t, named, "No,Date,Amount,Ref\n7,2026-11-03,-48.00,a\n7,2026-11-03,-48.00,a\n"); twice.Lines[1].Occurrence != 2 {
		t.Error("a whole line that stands twice became one")
	}
}

// TestOrderOfTheFileDoesNotMatter shuffles a file and finds the same lines.
func TestOrderOfTheFileDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rows := []string{}
	for i := range 60 {
		rows = append(rows, fmt.Sprintf("2026-11-%02d,-%d.00,r%d", 1+i%20, 1+i%3, i%2))
	}
	want := identities(mustRead(t, plainMapping, "Date,Amount,Ref\n"+strings.Join(rows, "\n")))
	for range 20 {
		random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if got := identities(mustRead(t, plainMapping, "Date,Amount,Ref\n"+strings.Join(rows, "\n"))); !slices.Equal(got, want) {
			t.Fatal("another order of the file made other lines")
		}
	}
}

// TestCase148: without a header nothing is read unless the mapping says so; a
// header in the middle and totals are recognised, or the file is refused.
func TestCase148(t *testing.T) {
	two := "2026-11-03,-48.00,a\n2026-11-04,-5.00,b\n"
	refusedAs(t, plainMapping, two, 0, "header")
	headless := rail.Statement{Format: "csv", Currency: "EUR", Header: "none", Columns: map[string]string{"date": "1", "amount": "2", "reference": "3"}}
	if s := mustRead(t, headless, two); len(s.Lines) != 2 || s.Lines[1].Reference != "b" {
		t.Errorf("declared: read as %+v", s.Lines)
	}
	refusedAs(t, with(headless, func(m *rail.Statement) { m.Columns = map[string]string{"date": "1", "amount": "9"} }), two, 1, "3 columns")
	s := mustRead(t, plainMapping, "Date,Amount,Ref\n"+"2026-11-03,-48.00,Total\n"+"date,amount,ref\n2026-11-04,-5.00,b\nDate,Amount,Ref\nTotal,-53.00,\n"[len("date,amount,ref\n"):])
	if len(s.Lines) != 2 || s.Lines[0].Reference != "Total" || len(s.Notes) < 2 {
		t.Errorf("read as %+v, %q", s.Lines, s.Notes)
	}
	if s := mustRead(t, plainMapping, "Date,Amount,Ref\n2026-11-03,-48.00,a\nTotal: ,-48.00\n"); len(s.Lines) != 1 {
		t.Errorf("read as %+v", s.Lines)
	}
	refusedAs(t, plainMapping, "Date,Amount,Ref\n2026-11-03,-48.00,a\nThank you for banking with us\n", 3, "1 columns")
	refusedAs(t, plainMapping, "Date,Amount,Ref\n2026-11-03,-48.00,a\n,-48.00,\n", 3, "date")
	refusedAs(t, plainMapping, "Date,Amount,Ref,Amount\n2026-11-03,-48.00,a,-47.00\n", 0, "2 times")
}

// TestCase161: a day without a time is the day of the named zone, a moment is
// stored in UTC, and each falls into exactly one day and month of that zone,
// also where its clocks change.
func TestCase161(t *testing.T) {
	for _, zone := range []string{"UTC", "America/Los_Angeles", "Europe/Berlin", "Asia/Beirut", "Africa/Cairo", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Havana", "Pacific/Apia", "America/Scoresbysund"} {
		where, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		var before time.Time
		for day := time.Date(2010, 1, 1, 12, 0, 0, 0, time.UTC); day.Year() < 2027; day = day.AddDate(0, 0, 1) {
			if zone == "Pacific/Apia" && day.Format(time.DateOnly) == "2011-12-30" {
				if _, err := dayStart(2011, 12, 30, where); err == nil {
					t.Error("a day that never was has a beginning")
				}
				continue
			}
			start, err := dayStart(day.Year(), int(day.Month()), day.Day(), where)
			if err != nil {
				t.Fatalf("%s %s: %v", zone, day.Format(time.DateOnly), err)
			}
			if start.Format(time.DateOnly) != day.Format(time.DateOnly) || start.Add(-time.Millisecond).Format(time.DateOnly) == day.Format(time.DateOnly) {
				t.Fatalf("%s: the day %s begins at %s, which is not its first moment", zone, day.Format(time.DateOnly), start)
			}
			if !before.IsZero() && !nextDay(before).Equal(start) {
				t.Fatalf("%s: the day after %s is not %s", zone, before, start)
			}
			before = start
		}
	}
	pacific := with(plainMapping, func(m *rail.Statement) { m.TimeZone = "America/Los_Angeles" })
	s := mustRead(t, pacific, "Date,Amount,Ref\n2026-03-31T23:30:00-07:00,-1.00,a\n2026-04-01,-1.00,b\n2026-03-31 23:30,-1.00,c\n")
	zone, _ := time.LoadLocation("America/Los_Angeles")
	for i, want := range []string{"2026-03-31", "2026-04-01", "2026-03-31"} {
		if got := time.UnixMilli(s.Lines[i].At).In(zone).Format(time.DateOnly); got != want || s.Lines[i].DateOnly != (i == 1) {
			t.Errorf("line %d falls on %s, not on %s", i, got, want)
		}
	}
	if s.Lines[0].At != s.Lines[2].At || time.UnixMilli(s.Lines[0].At).UTC().Format(time.RFC3339) != "2026-04-01T06:30:00Z" {
		t.Error("the moment is not kept in UTC")
	}
	if time.UnixMilli(s.From).In(zone).Format(time.DateTime) != "2026-03-31 00:00:00" || time.UnixMilli(s.To).In(zone).Format(time.DateTime) != "2026-04-02 00:00:00" {
		t.Errorf("the days are %d to %d", s.From, s.To)
	}
	refusedAs(t, pacific, "Date,Amount,Ref\n2026-03-08 02:30,-1.00,a\n", 2, "clocks went forward")
	refusedAs(t, pacific, "Date,Amount,Ref\n2026-03-09 25:30,-1.00,a\n", 2, "time of day")
}

// TestAFeeIsAppliedOnce: amount is what reached the account.
func TestAFeeIsAppliedOnce(t *testing.T) {
	m := rail.Statement{Format: "csv", Currency: "EUR", Columns: map[string]string{"date": "D", "amount": "Net", "gross": "Gross", "fee": "Fee", "id": "ID"}}
	for _, fee := range []string{"1.00", "-1.00", ""} {
		l := mustRead(t, m, "ID,D,Gross,Fee,Net\n1,2026-11-03,48.00,"+fee+",47.00\n").Lines[0]
		if l.Amount != 4700 || l.Gross != 4800 || l.Fee != 100 {
			t.Errorf("fee %q: read as %+v", fee, l)
		}
	}
	refusedAs(t, m, "ID,D,Gross,Fee,Net\n1,2026-11-03,48.00,2.00,47.00\n", 2, "Gross less fee")
}

// TestAnswersAreChecked: an answer to no question, or none of its choices.
func TestAnswersAreChecked(t *testing.T) {
	for key, value := range map[string]string{"colour": "red", "dates": "ddmmyy", "sign": "+"} {
		_, err := Read([]byte("x"), Options{Answers: map[string]string{key: value}})
		if _, ok := errors.AsType[*Refusal](err); !ok {
			t.Errorf("%s: %s gave %v", key, value, err)
		}
	}
}

// TestEveryChoiceOfAQuestionIsAnAnswer: what is asked can be answered, and then
// it is not asked again.
func TestEveryChoiceOfAQuestionIsAnAnswer(t *testing.T) {
	for _, text := range []string{"Date,Amount,Ref\n03/04/2026,48,a\n", "Date,Amount,Ref\n03/04/26,\"1,234\",a\n"} {
		answers := map[string]string{}
		for range 5 {
			_, err := Read([]byte(text), Options{Mapping: plainMapping, Answers: answers})
			q, ok := errors.AsType[*Question](err)
			if !ok {
				break
			}
			if answers[q.Key] != "" {
				t.Fatalf("%s is asked again", q.Key)
			}
			answers[q.Key] = q.Choices[0].Value
		}
		if _, err := Read([]byte(text), Options{Mapping: plainMapping, Answers: answers}); err != nil {
			t.Errorf("after %v: %v", answers, err)
		}
	}
}

// TestLimitsHold: what is too large is refused, not kept.
func TestLimitsHold(t *testing.T) {
	refusedAs(t, plainMapping, "Date,Amount,Ref\n2026-11-03,-1.00,"+strings.Repeat("x", fieldLimit+1)+"\n", 2, "longer than")
	refusedAs(t, plainMapping, "Date,Amount,Ref\n2026-11-03,-1.00"+strings.Repeat(",", widthLimit)+"\n", 2, "columns")
	deep := strings.Repeat("<a>", depthLimit+2)
	refusedAs(t, rail.Statement{}, `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt>`+deep, 1, "too deep")
	wide := strings.Repeat("<a/>", elementLimit+1)
	refusedAs(t, rail.Statement{}, `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt><Ntry>`+wide, 1, "too large")
	_, err := Read(make([]byte, fileLimit+1), Options{})
	if r, ok := errors.AsType[*Refusal](err); !ok || !strings.Contains(r.Sentence, "larger than") {
		t.Errorf("a file over the limit gave %v", err)
	}
}

// TestReadingTwiceIsTheSame of every file in the corpus.
func TestReadingTwiceIsTheSame(t *testing.T) {
	for _, c := range corpus {
		data := read1(t, c.file)
		o := Options{Mapping: c.mapping, Answers: c.answers}
		a, errA := Read(data, o)
		b, errB := Read(data, o)
		if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(errA, errB) {
			t.Errorf("%s was read in two ways", c.file)
		}
	}
}

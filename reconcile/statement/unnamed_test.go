package statement

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"holdfast/dispatch/rail"
)

// said turns a mapping into what a person would have answered.
func said(m rail.Statement) map[string]string {
	answers := map[string]string{}
	for name, title := range m.Columns {
		answers["columns."+name] = title
	}
	for key, value := range map[string]string{"amounts": m.Amounts, "currency": m.Currency, "time_zone": m.TimeZone, "header": m.Header} {
		if value != "" {
			answers[key] = value
		}
	}
	return answers
}

func unnamed(t *testing.T, text string, answers map[string]string) *Unnamed {
	t.Helper()
	s, err := Read([]byte(text), Options{Rail: "bank", Answers: answers})
	u, ok := errors.AsType[*Unnamed](err)
	if !ok || s.Lines != nil {
		t.Fatalf("not asked: %v, %v", s, err)
	}
	if r, ok := errors.AsType[*Refusal](err); !ok || r.Sentence == "" {
		t.Fatalf("to others it is no refusal: %v", err)
	}
	return u
}

// TestNamingColumnsByHandReadsAsTheConfigurationDoes on files of the corpus.
func TestNamingColumnsByHandReadsAsTheConfigurationDoes(t *testing.T) {
	headless := rail.Statement{Format: "csv", Currency: "EUR", Header: "none", Columns: map[string]string{"date": "1", "amount": "2", "reference": "3"}}
	for file, m := range map[string]rail.Statement{"sandbox.csv": sandboxMapping, "bank-de.csv": bankMapping, "headless.csv": headless} {
		data := read1(t, file)
		want, err := Read(data, Options{Name: file, Rail: "bank", Mapping: m})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(data, Options{Name: file, Rail: "bank", Answers: said(m)})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n%+v\n%+v", file, err, got, want)
		}
	}
}

// TestWhatAPersonSaysBecomesAnswers by the place of each column.
func TestWhatAPersonSaysBecomesAnswers(t *testing.T) {
	u := unnamed(t, "Kontoauszug;;;\nTag;Summe;Ref;\n2026-11-03;-1,00;a;x\n", nil)
	if !reflect.DeepEqual(u.Titles, []string{"Tag", "Summe", "Ref", ""}) || len(u.Rows) != 1 || u.Headless {
		t.Fatalf("%+v", u)
	}
	for _, c := range []struct {
		holds    []string
		headless bool
		want     map[string]string
		sentence string
	}{
		{[]string{"date", "amount", "", ""}, false, map[string]string{"columns.date": "Tag", "columns.amount": "Summe"}, ""},
		{[]string{"date", "amount", "", "text", "id"}, true, map[string]string{"header": "none", "columns.date": "1", "columns.amount": "2", "columns.text": "4"}, ""},
		{[]string{"date", "date", "", ""}, false, nil, "Two columns hold the date"},
		{[]string{"colour"}, false, nil, "no such column"},
		{[]string{"", "", "", "text"}, false, nil, "without a title"},
		{nil, true, nil, "Say of each column"},
	} {
		got, sentence := u.Answers(c.holds, c.headless)
		if !maps.Equal(got, c.want) || !strings.Contains(sentence, c.sentence) || (sentence == "") != (c.sentence == "") {
			t.Errorf("%v gave %v, %q", c.holds, got, sentence)
		}
	}
}

// TestHalfANamingIsAskedAgain with what was said, and nothing is read by it.
func TestHalfANamingIsAskedAgain(t *testing.T) {
	const text = "Tag,Summe,Ref\n2026-11-03,-1.00,a\n"
	for want, answers := range map[string]map[string]string{
		"date is missing":          {"columns.amount": "Summe", "currency": "EUR"},
		"currency is missing":      {"columns.amount": "Summe", "columns.date": "Tag"},
		"but not both":             {"columns.amount": "Summe", "columns.date": "Tag", "columns.debit": "Ref", "columns.credit": "Ref"},
		"named of another file":    {"columns.amount": "Betrag", "columns.date": "Tag", "currency": "EUR"},
		"and credit go together":   {"columns.debit": "Summe", "columns.date": "Tag", "currency": "EUR"},
		"debit and credit say so ": {"columns.debit": "Summe", "columns.credit": "Ref", "columns.indicator": "Ref", "columns.date": "Tag", "currency": "EUR"},
	} {
		u := unnamed(t, text, answers)
		if !strings.Contains(u.Sentence, want) {
			t.Errorf("%v: %s", answers, u.Sentence)
		}
		if title, ok := answers["columns.date"]; ok && title == "Tag" && u.Holds[0] != "date" {
			t.Errorf("what was said of the date is lost: %v", u.Holds)
		}
	}
}

// TestAFirstLineWithADateIsTakenForALine: as a header it would be lost.
func TestAFirstLineWithADateIsTakenForALine(t *testing.T) {
	if u := unnamed(t, "2026-11-02,-2.00,a\n2026-11-03,-1.00,b\n", nil); !u.Headless {
		t.Errorf("%+v", u)
	}
}

// TestTheConfigurationsColumnsStand: what a person says of a file for which the
// configuration has columns changes nothing.
func TestTheConfigurationsColumnsStand(t *testing.T) {
	data := read1(t, "sandbox.csv")
	want, err := Read(data, Options{Rail: "card", Mapping: sandboxMapping})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(data, Options{Rail: "card", Mapping: sandboxMapping, Answers: map[string]string{"columns.amount": "created_at"}})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %+v", err, got)
	}
}

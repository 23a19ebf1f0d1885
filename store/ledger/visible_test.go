package ledger

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWhatAReaderWouldNotSeeIsMarked(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []Segment
	}{
		{"nothing", "", nil},
		{"plain", "customer asked", []Segment{{"customer asked", ""}}},
		{"other languages are plain", "Żółć, 東京, Привет мир, Ελλάδα", []Segment{{"Żółć, 東京, Привет мир, Ελλάδα", ""}}},
		{"zero width space", "a\u200bb", []Segment{{"a", ""}, {"\u200b", "U+200B"}, {"b", ""}}},
		{"override of direction", "\u202egpj", []Segment{{"\u202e", "U+202E"}, {"gpj", ""}}},
		{"isolate", "x\u2066", []Segment{{"x", ""}, {"\u2066", "U+2066"}}},
		{"control", "a\x00\nb", []Segment{{"a", ""}, {"\x00", "U+0000"}, {"\n", "U+000A"}, {"b", ""}}},
		{"no-break space", "1\u00a0000", []Segment{{"1", ""}, {"\u00a0", "U+00A0"}, {"000", ""}}},
		{"soft hyphen", "ac\u00adct", []Segment{{"ac", ""}, {"\u00ad", "U+00AD"}, {"ct", ""}}},
		{"tag", "a\U000e0041", []Segment{{"a", ""}, {"\U000e0041", "U+E0041"}}},
		{"variation selector", "a\ufe0f", []Segment{{"a", ""}, {"\ufe0f", "U+FE0F"}}},
		{"Hangul filler", "\u3164", []Segment{{"\u3164", "U+3164"}}},
		{"full width", "Ａb", []Segment{{"Ａ", "U+FF21"}, {"b", ""}}},
		{"mathematical", "𝐚b", []Segment{{"𝐚", "U+1D41A"}, {"b", ""}}},
		{"Cyrillic a in a Latin word", "pаypal", []Segment{{"p", ""}, {"а", "U+0430"}, {"ypal", ""}}},
		{"Latin a in a Cyrillic word", "прaвда", []Segment{{"пр", ""}, {"a", "U+0061"}, {"вда", ""}}},
		{"what is invisible does not part a word", "pay\u200bж", []Segment{{"pay", ""}, {"\u200b", "U+200B"}, {"ж", "U+0436"}}},
		{"all of it disguised", "асе 7", []Segment{{"а", "U+0430"}, {"с", "U+0441"}, {"е", "U+0435"}, {" 7", ""}}},
		{"not UTF-8", "a\xffb", []Segment{{"a", ""}, {"\xff", "byte FF"}, {"b", ""}}},
		{"the replacement character itself", "\ufffd", []Segment{{"\ufffd", ""}}},
	} {
		if got := Visible(c.text); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestWarningsArePlainSentences(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"customer asked", nil},
		{"Привет, Bob!\n\tЖдём 東京", nil},
		{"a\u200bb", []string{"contains 1 invisible character"}},
		{"a\u200bb\u2060", []string{"contains 2 invisible characters"}},
		{"\u202ea\u202c", []string{"contains 2 characters that turn the direction of the text"}},
		{"a\x1bb", []string{"contains 1 control character"}},
		{"a\u00a0b", []string{"contains 1 unusual space"}},
		{"ａcme", []string{"contains 1 look-alike of an ordinary character"}},
		{"pаypal", []string{"mixes Latin and Cyrillic letters"}},
		{"pаypal and gооgle", []string{"mixes Latin and Cyrillic letters"}},
		{"pαуpal", []string{"mixes Latin, Cyrillic and Greek letters"}},
		{"асе", []string{"has Cyrillic letters that look like Latin ones"}},
		{"acme    corp ", []string{"begins or ends with white space", "contains a long run of spaces"}},
		{"a\xff", []string{"is not valid UTF-8"}},
		{"\u200bpаy", []string{"contains 1 invisible character", "mixes Latin and Cyrillic letters"}},
	} {
		if got := Warnings(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q", c.text, got)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, seed := range []string{"a\u200bb", "pаypal", "\xff\xfe", "асе", "\u202e", "𝐚\u3164", "é", "e\u0301"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var whole strings.Builder
		previous := Segment{Mark: "-"}
		for _, run := range Visible(s) {
			if run.Text == "" || run.Mark == "" && previous.Mark == "" {
				t.Fatalf("%q falls into %q", s, Visible(s))
			}
			if run.Mark != "" && utf8.RuneCountInString(run.Text) != 1 {
				t.Fatalf("the mark %s stands for %q", run.Mark, run.Text)
			}
			for _, r := range run.Text {
				if run.Mark == "" && (r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e) {
					t.Fatalf("%q hides in %q", r, run.Text)
				}
			}
			whole.WriteString(run.Text)
			previous = run
		}
		if whole.String() != s {
			t.Fatalf("%q became %q", s, whole.String())
		}
		Warnings(s)
	})
}

package ledger

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Segment is a stretch of text. With a Mark it is one character that a reader
// would not see, or would take for another, and the mark is its name, like
// U+200B; a page draws the mark beside it or in its place.
type Segment struct {
	Text string
	Mark string
}

// Visible splits a text into runs, in order and without loss: the texts joined
// are s again.
func Visible(s string) []Segment {
	impostors := lookAlikes(s)
	var runs []Segment
	plain := 0 // where the current run without a mark begins
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		mark := ""
		switch {
		case r == utf8.RuneError && size == 1:
			mark = fmt.Sprintf("byte %02X", s[i])
		case kindOf(r) != ordinary || impostors[i]:
			mark = fmt.Sprintf("U+%04X", r)
		}
		if mark != "" {
			if plain < i {
				runs = append(runs, Segment{Text: s[plain:i]})
			}
			runs = append(runs, Segment{s[i : i+size], mark})
			plain = i + size
		}
		i += size
	}
	if plain < len(s) {
		runs = append(runs, Segment{Text: s[plain:]})
	}
	return runs
}

// Warnings says in plain words what about a text may deceive its reader.
func Warnings(s string) []string {
	var warnings []string
	count := map[oddity]int{}
	for _, r := range s {
		if r != '\n' && r != '\t' { // drawn, but nothing odd about them
			count[kindOf(r)]++
		}
	}
	for kind := invisible; kind <= styled; kind++ {
		if n := count[kind]; n > 0 {
			warnings = append(warnings, fmt.Sprintf("contains %d %s", n, oddities[kind][min(n, 2)-1]))
		}
	}
	warnings = append(warnings, mixtures(s)...)
	if strings.TrimSpace(s) != s {
		warnings = append(warnings, "begins or ends with white space")
	}
	if strings.Contains(s, "    ") {
		warnings = append(warnings, "contains a long run of spaces")
	}
	if !utf8.ValidString(s) {
		warnings = append(warnings, "is not valid UTF-8")
	}
	return warnings
}

// oddity is a way in which a character deceives on its own.
type oddity int

const (
	ordinary oddity = iota
	invisible
	bidirectional
	control
	oddSpace
	styled
)

// oddities names each in the singular and the plural; ordinary has no name.
var oddities = [...][2]string{
	invisible:     {"invisible character", "invisible characters"},
	bidirectional: {"character that turns the direction of the text", "characters that turn the direction of the text"},
	control:       {"control character", "control characters"},
	oddSpace:      {"unusual space", "unusual spaces"},
	styled:        {"look-alike of an ordinary character", "look-alikes of ordinary characters"},
}

func kindOf(r rune) oddity {
	switch {
	case r >= ' ' && r <= '~':
		return ordinary
	case unicode.Is(unicode.Bidi_Control, r):
		return bidirectional
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return control
	case unicode.Is(unicode.Zs, r):
		return oddSpace
	case unicode.In(r, unicode.Cf, unicode.Co, unicode.Variation_Selector, unicode.Noncharacter_Code_Point,
		unicode.Other_Default_Ignorable_Code_Point), r == '\u2800': // the last is a Braille cell without dots
		return invisible
	case r >= 0xff01 && r <= 0xff5e, r >= 0x1d400 && r <= 0x1d7ff: // full width; mathematical letters and digits
		return styled
	}
	return ordinary
}

// lookAlikeScripts have letters that are drawn like another's in the list.
var lookAlikeScripts = []string{"Latin", "Cyrillic", "Greek", "Armenian", "Cherokee", "Coptic"}

func scriptOf(r rune) string {
	for _, script := range lookAlikeScripts {
		if unicode.Is(unicode.Scripts[script], r) && unicode.IsLetter(r) {
			return script
		}
	}
	return ""
}

// word is a stretch of letters: where each stands and what script it is of.
type word struct {
	at      []int
	letters []rune
	scripts []string
}

func wordsOf(s string) (found []word) {
	var w word
	for i, r := range s {
		script := scriptOf(r)
		switch {
		case script != "":
			w.at, w.letters, w.scripts = append(w.at, i), append(w.letters, r), append(w.scripts, script)
		case unicode.IsMark(r) || kindOf(r) == invisible: // does not end a word
		case len(w.at) > 0:
			found, w = append(found, w), word{}
		}
	}
	if len(w.at) > 0 {
		found = append(found, w)
	}
	return found
}

// home is the script that most of a word is written in.
func (w word) home() (home string) {
	count := map[string]int{}
	for _, script := range w.scripts {
		count[script]++
	}
	for _, script := range lookAlikeScripts {
		if count[script] > count[home] {
			home = script
		}
	}
	return home
}

// Letters of Cyrillic and Greek that are drawn as Latin ones.
const disguises = "асԁеһіјӏорԛѕԝхуАВСЕНІЈКМОРЅТХУӀ" + "ονΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"

func (w word) disguised() bool {
	for _, r := range w.letters {
		if !strings.ContainsRune(disguises, r) {
			return false
		}
	}
	return true
}

// lookAlikes finds, by offset, the letters that are not of their word's own
// script. Where no letter of a text betrays that it is Cyrillic or Greek, all
// of it counts as disguised Latin.
func lookAlikes(s string) map[int]bool {
	found := map[int]bool{}
	all := wordsOf(s)
	foreign := slices.DeleteFunc(slices.Clone(all), func(w word) bool { return w.home() == "Latin" })
	disguised := !slices.ContainsFunc(foreign, func(w word) bool { return !w.disguised() })
	for _, w := range all {
		home := w.home()
		for i, at := range w.at {
			if w.scripts[i] != home || disguised && home != "Latin" {
				found[at] = true
			}
		}
	}
	return found
}

// mixtures says which scripts are mixed inside one word.
func mixtures(s string) (warnings []string) {
	say := func(warning string) {
		if !slices.Contains(warnings, warning) {
			warnings = append(warnings, warning)
		}
	}
	impostors := lookAlikes(s)
	for _, w := range wordsOf(s) {
		var mixed []string
		for _, script := range lookAlikeScripts {
			if slices.Contains(w.scripts, script) {
				mixed = append(mixed, script)
			}
		}
		switch {
		case len(mixed) > 1:
			last := len(mixed) - 1
			say("mixes " + strings.Join(mixed[:last], ", ") + " and " + mixed[last] + " letters")
		case impostors[w.at[0]]:
			say("has " + mixed[0] + " letters that look like Latin ones")
		}
	}
	return warnings
}

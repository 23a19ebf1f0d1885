package statement

import (
	"fmt"
	"strings"
)

// Refusal is a file that is not taken: where, why, and what to do.
type Refusal struct {
	Line     int    // of the file (of an XML or JSON file: its entry); 0: the file as a whole
	Column   string // or element; empty: the line as a whole
	Sentence string // what is wrong and what to do, for people
}

func (r *Refusal) Error() string {
	var place []string
	if r.Line > 0 {
		place = append(place, fmt.Sprintf("line %d", r.Line))
	}
	if r.Column != "" {
		place = append(place, "column "+r.Column)
	}
	if len(place) == 0 {
		return r.Sentence
	}
	return strings.Join(place, ", ") + ": " + r.Sentence
}

func refuse(line int, column, sentence string, args ...any) *Refusal {
	return &Refusal{line, column, fmt.Sprintf(sentence, args...)}
}

// Question is what the file leaves open and only a person can tell. The answer
// is one of the choices; it goes into Options.Answers under Key, and the file is
// read again. Key is also the key of the rail's statement: in the configuration,
// where the answer can be written down for good.
type Question struct {
	Key      string   // dates · decimal · sign · account · …
	Ask      string   // "In what order does this file write a date?"
	Choices  []Choice // never fewer than two
	Sentence string   // what was seen: "03/04/2026 on line 2 may be 3 April or 4 March."
}

// Choice is one possible answer.
type Choice struct {
	Value string // what is written into Answers: "dmy"
	Label string // for people: "day first: 3 April 2026"
}

func (q *Question) Error() string { return q.Ask + " " + q.Sentence }

package views

import (
	"strconv"
	"strings"

	"holdfast/store/ledger"
)

// DocsPage is the API's description, for people. The caller fills it from the
// document that is served to programs, so that there is one description.
type DocsPage struct {
	Frame    Frame
	Title    string
	Summary  string
	Intro    string // paragraphs, with blank lines between them
	Calls    []DocsCall
	Words    []DocsWords
	Shapes   []DocsShape
	Problems []ledger.Problem
}

// DocsCall is one call: an address and a method.
type DocsCall struct {
	Method, Path string
	Summary      string
	Text         string // paragraphs
	Scope        string // that the token needs; empty: no token
	Parameters   []DocsMember
	Body         string // name of its shape; empty: none
	Examples     []DocsExample
	Answers      []DocsAnswer
}

// DocsAnswer is one status that a call may be answered with.
type DocsAnswer struct {
	Status   string
	Text     string
	Headers  []DocsMember
	Shape    string
	Examples []DocsExample
}

// DocsMember is a parameter, a header, or a member of a shape.
type DocsMember struct {
	Name     string
	Where    string // path, query or header; empty for a member
	Kind     string // in words
	Shape    string // the shape that it has, if it is one with a name
	Required bool
	Text     string
}

// DocsShape is the shape of a body or of a part of one.
type DocsShape struct {
	Name, Text, Kind string
	Members          []DocsMember
}

// DocsWords is a list of words with a fixed meaning.
type DocsWords struct {
	Name, Text string
	Words      []DocsWord
}

// DocsWord is one of them.
type DocsWord struct{ Word, Meaning string }

// DocsExample is a body as it goes over the wire.
type DocsExample struct{ Title, Body string }

// ProblemsPage lists every kind of problem.
type ProblemsPage struct {
	Frame    Frame
	Problems []ledger.Problem
}

// ProblemPage explains one kind of problem.
type ProblemPage struct {
	Frame   Frame
	Problem ledger.Problem
	Means   string   // what the reason says
	NextIs  string   // what its next tells one to do
	From    []string // the calls that may be answered with it
	Example string
}

// anchor is the name of a part of the page.
func (c DocsCall) anchor() string {
	return strings.ToLower(c.Method) + strings.NewReplacer("/", "-", "{", "", "}", "", "_", "-").Replace(c.Path)
}

func paragraphs(text string) []string {
	var all []string
	for p := range strings.SplitSeq(text, "\n") {
		if p = strings.TrimSpace(p); p != "" {
			all = append(all, p)
		}
	}
	return all
}

// pieceOfText is a piece of a sentence; code stands between backticks.
type pieceOfText struct {
	text string
	code bool
}

func pieces(text string) []pieceOfText {
	var all []pieceOfText
	for i, piece := range strings.Split(text, "`") {
		if piece != "" {
			all = append(all, pieceOfText{piece, i%2 == 1})
		}
	}
	return all
}

// ends says whether a problem is the end of the matter.
func ends(p ledger.Problem) string {
	if p.Terminal {
		return "yes: nothing that is sent will change it"
	}
	return "no"
}

func status(p ledger.Problem) string { return strconv.Itoa(p.Status) }

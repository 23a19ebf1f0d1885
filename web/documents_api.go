package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"holdfast/static"
	"holdfast/views"
)

// described is the OpenAPI document as far as the page about it goes.
type described struct {
	Info       struct{ Title, Summary, Description string }
	Paths      ordered[describedPath]
	Components struct {
		Parameters map[string]describedParameter
		Headers    map[string]describedParameter
		Responses  map[string]describedAnswer
		Schemas    ordered[describedSchema]
		Examples   map[string]describedExample
	}
}

type describedPath struct {
	Parameters     []describedParameter
	Post, Get, Put *describedCall
}

type describedCall struct {
	Summary, Description string
	Security             []struct{ Bearer []string }
	Parameters           []describedParameter
	RequestBody          struct{ Content ordered[describedContent] }
	Responses            ordered[describedAnswer]
}

type describedParameter struct {
	Ref         string `json:"$ref"`
	Name, In    string
	Required    bool
	Description string
	Schema      describedSchema
}

type describedAnswer struct {
	Ref         string `json:"$ref"`
	Description string
	Headers     ordered[describedParameter]
	Content     ordered[describedContent]
}

type describedContent struct {
	Schema   describedSchema
	Examples ordered[describedExample]
}

type describedExample struct {
	Ref     string `json:"$ref"`
	Summary string
	Value   json.RawMessage
}

type describedSchema struct {
	Ref              string `json:"$ref"`
	Description      string
	Type             oneOrMore
	Const            any
	Pattern          string
	Minimum, Maximum *int64
	MaxLength        *int64
	MaxItems         *int64
	Items            *describedSchema
	Required         []string
	Properties       ordered[describedSchema]
	OneOf, AllOf     []describedSchema
}

// oneOrMore is the type of a schema: a word, or a list of them.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(o))
}

// ordered is an object whose members keep the order of the document, which was
// written for readers.
type ordered[T any] []namedMember[T]

type namedMember[T any] struct {
	name  string
	value T
}

func (o *ordered[T]) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil { // the opening brace
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		m := namedMember[T]{name: fmt.Sprint(name)}
		if err := d.Decode(&m.value); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	return nil
}

// describedAPI reads the document once.
var describedAPI = sync.OnceValue(func() *described {
	d := &described{}
	if err := json.Unmarshal(static.OpenAPI(), d); err != nil {
		panic(err) // the document is part of the program
	}
	return d
})

// refName is the last name of a reference; every reference leads to a component.
func refName(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

func (d *described) parameter(p describedParameter) describedParameter {
	if p.Ref == "" {
		return p
	}
	if strings.HasPrefix(p.Ref, "#/components/headers/") {
		return d.Components.Headers[refName(p.Ref)]
	}
	return d.Components.Parameters[refName(p.Ref)]
}

func (d *described) answer(a describedAnswer) describedAnswer {
	if a.Ref == "" {
		return a
	}
	return d.Components.Responses[refName(a.Ref)]
}

func (d *described) examples(all ordered[describedExample]) []views.DocsExample {
	var list []views.DocsExample
	for _, m := range all {
		e := m.value
		if e.Ref != "" {
			e = d.Components.Examples[refName(e.Ref)]
		}
		list = append(list, views.DocsExample{Title: e.Summary, Body: pretty(e.Value)})
	}
	return list
}

// page fills the page that people read.
func (d *described) page() views.DocsPage {
	p := views.DocsPage{Title: d.Info.Title, Summary: d.Info.Summary, Intro: d.Info.Description}
	for _, path := range d.Paths {
		for _, m := range path.value.methods() {
			p.Calls = append(p.Calls, d.call(m.name, path.name, path.value, m.value))
		}
	}
	for _, s := range d.Components.Schemas {
		if words := s.value.words(); len(words) > 0 {
			p.Words = append(p.Words, views.DocsWords{Name: s.name, Text: s.value.Description, Words: words})
			continue
		}
		shape := views.DocsShape{Name: s.name, Text: s.value.Description, Members: s.value.members()}
		if len(shape.Members) == 0 {
			shape.Kind, _ = s.value.kind()
		}
		p.Shapes = append(p.Shapes, shape)
	}
	return p
}

// methods of a path that are described, in the order of a purchase.
func (p describedPath) methods() []namedMember[*describedCall] {
	all := []namedMember[*describedCall]{{"POST", p.Post}, {"GET", p.Get}, {"PUT", p.Put}}
	return slices.DeleteFunc(all, func(m namedMember[*describedCall]) bool { return m.value == nil })
}

func (d *described) call(method, path string, in describedPath, call *describedCall) views.DocsCall {
	c := views.DocsCall{Method: method, Path: path, Summary: call.Summary, Text: call.Description}
	if len(call.Security) > 0 {
		c.Scope = strings.Join(call.Security[0].Bearer, ", ")
	}
	for _, p := range append(slices.Clone(in.Parameters), call.Parameters...) {
		p = d.parameter(p)
		kind, shape := p.Schema.kind()
		c.Parameters = append(c.Parameters, views.DocsMember{Name: p.Name, Where: p.In, Kind: kind, Shape: shape, Required: p.Required, Text: p.Description})
	}
	for _, content := range call.RequestBody.Content {
		c.Body, c.Examples = content.value.Schema.name(), d.examples(content.value.Examples)
	}
	for _, m := range call.Responses {
		answer := d.answer(m.value)
		a := views.DocsAnswer{Status: m.name, Text: answer.Description}
		for _, h := range answer.Headers {
			header := d.parameter(h.value)
			kind, _ := header.Schema.kind()
			a.Headers = append(a.Headers, views.DocsMember{Name: h.name, Kind: kind, Required: header.Required, Text: header.Description})
		}
		for _, content := range answer.Content {
			a.Shape, a.Examples = content.value.Schema.name(), d.examples(content.value.Examples)
		}
		c.Answers = append(c.Answers, a)
	}
	return c
}

// name is the component that a schema is, or narrows.
func (s describedSchema) name() string {
	switch {
	case s.Ref != "":
		return refName(s.Ref)
	case len(s.AllOf) > 0:
		return s.AllOf[0].name()
	}
	return ""
}

// words are the constants of a schema that is a choice between them.
func (s describedSchema) words() []views.DocsWord {
	var all []views.DocsWord
	for _, one := range s.OneOf {
		if word, ok := one.Const.(string); ok {
			all = append(all, views.DocsWord{Word: word, Meaning: one.Description})
		}
	}
	return all
}

func (s describedSchema) members() []views.DocsMember {
	var all []views.DocsMember
	for _, m := range s.Properties {
		kind, shape := m.value.kind()
		all = append(all, views.DocsMember{Name: m.name, Kind: kind, Shape: shape, Required: slices.Contains(s.Required, m.name), Text: m.value.Description})
	}
	return all
}

// kind says in words what a value is, and which shape it has, if that has a
// name.
func (s describedSchema) kind() (kind, shape string) {
	switch {
	case s.name() != "":
		return s.name(), s.name()
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const), ""
	case s.Items != nil:
		kind, shape = s.Items.kind()
		return "list of " + kind + limit("at most", s.MaxItems, ""), shape
	case len(s.OneOf) == 2: // null, or something
		kind, shape = s.OneOf[1].kind()
		return kind + " or null", shape
	}
	kind = strings.Join(s.Type, " or ") + limit("from", s.Minimum, "") + limit("to", s.Maximum, "") + limit("at most", s.MaxLength, " characters")
	if s.Pattern != "" {
		kind += ", `" + s.Pattern + "`"
	}
	return kind, ""
}

func limit(word string, n *int64, unit string) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf(", %s %d%s", word, *n, unit)
}

// meaning is the description of a word.
func (d *described) meaning(schema, word string) string {
	for _, s := range d.Components.Schemas {
		if s.name != schema {
			continue
		}
		for _, w := range s.value.words() {
			if w.Word == word {
				return w.Meaning
			}
		}
	}
	return ""
}

// answeredWith lists the calls that may be answered with a problem: those that
// have an example of it.
func (d *described) answeredWith(reason string) []string {
	var all []string
	for _, path := range d.Paths {
		for _, m := range path.value.methods() {
			for _, answer := range m.value.Responses {
				for _, content := range d.answer(answer.value).Content {
					if slices.ContainsFunc(content.value.Examples, func(e namedMember[describedExample]) bool { return e.name == reason }) {
						all = append(all, m.name+" "+path.name)
					}
				}
			}
		}
	}
	return all
}

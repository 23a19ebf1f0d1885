package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Roles that a property can have in money matters.
const (
	roleAmount    = "amount"
	roleCurrency  = "currency"
	roleRecipient = "recipient"
	roleReference = "reference"
	roleAccount   = "account"
	roleCustomer  = "customer"
	roleRefundOf  = "refund_of"
)

var (
	roles       = []string{roleAmount, roleCurrency, roleRecipient, roleReference, roleAccount, roleCustomer, roleRefundOf}
	normalizers = []string{"currency", "email", "decimal", "nfc", "trim", "lowercase"}
	annotations = map[string]string{"x-role": "string", "x-normalize": "string", "x-volatile": "boolean", "x-sensitive": "boolean"}
)

// shape is what a schema says about one place of a payload, other than whether
// a value is valid there: which names it knows, and what they mean. All that
// applies to the place is in it, also through $ref and allOf.
type shape struct {
	at        string // in the schema
	title     string
	role      string
	normalize string
	volatile  bool
	sensitive bool
	instant   bool     // format: date-time
	types     []string // that a value may have; empty: the schema does not say

	names     []string // of declared members, in the order of the schema
	members   map[string]*shape
	pattern   *regexp.Regexp // names that are allowed by pattern
	patterned *shape
	rest      *shape // other members, where the schema describes them
	open      bool   // other members are allowed

	first []*shape // the first elements of an array, one by one
	items *shape   // the elements after them
}

// member finds the shape of a member. A name can be known without a shape:
// inside what the schema leaves open.
func (s *shape) member(name string) (member *shape, known bool) {
	if s == nil {
		return nil, true
	}
	if member, known = s.members[name]; known {
		return member, true
	}
	if s.pattern != nil && s.pattern.MatchString(name) {
		return s.patterned, true
	}
	return s.rest, s.open
}

func (s *shape) element(i int) *shape {
	switch {
	case s == nil:
		return nil
	case i < len(s.first):
		return s.first[i]
	}
	return s.items
}

// child finds what a token of a pointer leads to, be it a name or an index.
func (s *shape) child(token string) *shape {
	if i, ok := elementIndex(token); ok {
		if element := s.element(i); element != nil {
			return element
		}
	}
	member, _ := s.member(token)
	return member
}

// find follows a path from here; nil where none is given or it leads nowhere.
func (s *shape) find(path []string) *shape {
	if len(path) == 0 {
		return nil
	}
	for _, token := range path {
		s = s.child(token)
	}
	return s
}

// source is one schema object and its place in the whole schema.
type source struct {
	at   string
	text map[string]any
}

// shaper reads a schema into shapes, and gathers what is wrong with it.
type shaper struct {
	action string
	schema any
	order  map[string][]string // pointer to an object → its names as written
	made   map[string]*shape   // by the places they were made from; also ends recursion
	looked map[string]bool     // places that were inspected
	refs   map[string]string   // place of a $ref → what it leads to
	places int
	wrong  []error
}

func newShaper(action string, schema any, text []byte) *shaper {
	return &shaper{action: action, schema: schema, order: nameOrder(text), made: map[string]*shape{}, looked: map[string]bool{}, refs: map[string]string{}}
}

// nameOrder notes in which order each object's names were written.
func nameOrder(text []byte) map[string][]string {
	order := map[string][]string{}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return order
		}
		if kind, n := d.StackIndex(d.StackDepth()); kind == jsontext.KindBeginObject && n%2 == 1 {
			object := string(d.StackPointer().Parent())
			order[object] = append(order[object], token.String())
		}
	}
}

func (s *shaper) refuse(at, format string, args ...any) {
	s.wrong = append(s.wrong, &SchemaError{s.action, at, fmt.Sprintf(format, args...)})
}

func (s *shaper) read() *shape {
	s.inspect("", true)
	for _, at := range slices.Sorted(maps.Keys(s.refs)) {
		if !s.looked[s.refs[at]] {
			s.refuse(under(at, "$ref"), "leads to where no schema stands, so nobody would read what it says; put it under $defs")
		}
	}
	root, ok := s.source("")
	if !ok {
		s.refuse("", "a payload's schema must be an object")
		return &shape{}
	}
	made := s.shape([]source{root})
	if !slices.Equal(made.types, []string{"object"}) {
		s.refuse("", `a payload is an object; say "type": "object"`)
	}
	return made
}

// source finds the schema object at a pointer. The schema true is an object
// that is open, false one that is closed; the validator judges both.
func (s *shaper) source(at string) (source, bool) {
	v, ok := Get(s.schema, at)
	if !ok {
		return source{}, false
	}
	switch v := v.(type) {
	case map[string]any:
		return source{at, v}, true
	case bool:
		return source{at, map[string]any{"additionalProperties": v}}, true
	}
	return source{}, false
}

func (s *shaper) resolve(ref string) (source, bool) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return source{}, false
	}
	pointer, err := url.PathUnescape(fragment)
	if err != nil {
		return source{}, false
	}
	return s.source(pointer)
}

// names lists the names under a keyword's object, as written.
func (s *shaper) names(at, keyword string) []string {
	return s.order[under(at, keyword)]
}

// shape merges all that is said about one place.
func (s *shaper) shape(sources []source) *shape {
	sources = s.inPlace(sources)
	if len(sources) == 0 {
		return nil
	}
	var places []string
	for _, here := range sources {
		places = append(places, here.at)
	}
	slices.Sort(places)
	key := strings.Join(places, "\n")
	if made, ok := s.made[key]; ok {
		return made
	}
	made := &shape{at: sources[0].at, members: map[string]*shape{}}
	s.made[key] = made
	for _, here := range sources {
		s.annotate(made, here)
	}
	s.describeMembers(made, sources)
	s.describeElements(made, sources)
	return made
}

// inPlace adds the schemas that speak about the same value. Which branch of a
// oneOf will fit is not known here: a name that any branch knows is known.
func (s *shaper) inPlace(sources []source) (all []source) {
	seen := map[string]bool{}
	queue := slices.Clone(sources)
	add := func(at string) {
		if more, ok := s.source(at); ok {
			queue = append(queue, more)
		}
	}
	for len(queue) > 0 {
		here := queue[0]
		queue = queue[1:]
		if seen[here.at] {
			continue
		}
		seen[here.at] = true
		all = append(all, here)
		if ref, ok := here.text["$ref"].(string); ok {
			if target, ok := s.resolve(ref); ok {
				queue = append(queue, target)
			}
		}
		for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
			branches, _ := here.text[keyword].([]any)
			for i := range branches {
				add(under(under(here.at, keyword), strconv.Itoa(i)))
			}
		}
		for _, name := range s.names(here.at, "dependentSchemas") {
			add(under(under(here.at, "dependentSchemas"), name))
		}
		add(under(here.at, "then"))
		add(under(here.at, "else"))
	}
	return all
}

func (s *shaper) annotate(made *shape, here source) {
	text := func(keyword string, into *string, known []string) {
		v, ok := here.text[keyword].(string)
		switch {
		case !ok:
		case known != nil && !slices.Contains(known, v):
			s.refuse(under(here.at, keyword), "%q is unknown; write one of %s", v, strings.Join(known, ", "))
		case known != nil && *into != "" && *into != v:
			s.refuse(under(here.at, keyword), "says %s, but %s says %s", v, orElse(made.at, "the schema"), *into)
		case *into == "":
			*into = v
		}
	}
	flag := func(keyword string, into *bool) {
		v, _ := here.text[keyword].(bool)
		*into = *into || v
	}
	text("title", &made.title, nil)
	text("x-role", &made.role, roles)
	text("x-normalize", &made.normalize, normalizers)
	flag("x-volatile", &made.volatile)
	flag("x-sensitive", &made.sensitive)
	made.instant = made.instant || here.text["format"] == "date-time"
	for _, name := range typesOf(here.text) {
		if !slices.Contains(made.types, name) {
			made.types = append(made.types, name)
		}
	}
}

// typesOf says which types a schema admits, by name or by example.
func typesOf(schema map[string]any) (types []string) {
	switch v := schema["type"].(type) {
	case string:
		return []string{v}
	case []any:
		for _, name := range v {
			types = append(types, fmt.Sprint(name))
		}
		return types
	}
	examples, _ := schema["enum"].([]any)
	if v, ok := schema["const"]; ok {
		examples = []any{v}
	}
	for _, example := range examples {
		types = append(types, typeOf(example))
	}
	return types
}

// typeOf names the type of a value as JSON Schema does.
func typeOf(v any) string {
	switch v := v.(type) {
	case json.Number:
		if _, err := wholeAmount(v); err != nil {
			return "number"
		}
		return "integer"
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return ""
}

func (s *shaper) describeMembers(made *shape, sources []source) {
	declared := map[string][]source{}
	var rest, patterned []source
	for _, here := range sources {
		for _, name := range s.names(here.at, "properties") {
			if _, ok := declared[name]; !ok {
				made.names = append(made.names, name)
			}
			if member, ok := s.source(under(under(here.at, "properties"), name)); ok {
				declared[name] = append(declared[name], member)
			}
		}
		for _, pattern := range s.names(here.at, "patternProperties") {
			if made.pattern != nil && made.pattern.String() != pattern {
				s.refuse(under(here.at, "patternProperties"), "more than one pattern for one object; list the names under properties")
				continue
			}
			made.pattern, _ = regexp.Compile(pattern) // the validator has compiled it too
			if member, ok := s.source(under(under(here.at, "patternProperties"), pattern)); ok {
				patterned = append(patterned, member)
			}
		}
		for _, keyword := range []string{"additionalProperties", "unevaluatedProperties"} {
			others, stated := here.text[keyword]
			made.open = made.open || stated && others != false
			if described, ok := others.(map[string]any); ok {
				rest = append(rest, source{under(here.at, keyword), described})
			}
		}
	}
	for _, name := range made.names {
		about := declared[name]
		if made.pattern != nil && made.pattern.MatchString(name) {
			about = append(about, patterned...)
		}
		made.members[name] = s.shape(about)
	}
	made.patterned = s.shape(patterned)
	made.rest = s.shape(rest)
}

func (s *shaper) describeElements(made *shape, sources []source) {
	var items []source
	var first [][]source
	for _, here := range sources {
		list, _ := here.text["prefixItems"].([]any)
		for i := range list {
			if i >= len(first) {
				first = append(first, nil)
			}
			if element, ok := s.source(under(under(here.at, "prefixItems"), strconv.Itoa(i))); ok {
				first[i] = append(first[i], element)
			}
		}
		for _, keyword := range []string{"items", "unevaluatedItems"} {
			if element, ok := s.source(under(here.at, keyword)); ok {
				items = append(items, element)
			}
		}
	}
	for _, about := range first {
		made.first = append(made.first, s.shape(about))
	}
	made.items = s.shape(items)
}

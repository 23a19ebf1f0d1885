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

// A few definitions that refer to one another can describe more places than
// there is time to visit.
const maxPlaces = 2000

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

// Where schemas stand inside a schema, by keyword.
var (
	oneSchema   = []string{"additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems", "contains", "propertyNames", "not", "if", "then", "else", "contentSchema"}
	listSchemas = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	mapSchemas  = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}

	// What is said below these is a question about a value, not a statement
	// about a place; annotations there would be read by nobody.
	questions = []string{"contains", "propertyNames", "not", "if", "contentSchema"}
)

// inspect walks over every schema in the schema and refuses what could be
// overlooked: annotations that are mistyped or stand where nobody reads them,
// and references that lead elsewhere.
func (s *shaper) inspect(at string, read bool) {
	here, ok := s.source(at)
	if !ok {
		return
	}
	s.looked[at] = true
	s.inspectReferences(here)
	for _, keyword := range s.order[at] {
		if strings.HasPrefix(strings.ToLower(keyword), "x-") {
			s.inspectAnnotation(under(at, keyword), keyword, here.text[keyword], read)
		}
	}
	for _, keyword := range oneSchema {
		s.inspect(under(at, keyword), read && !slices.Contains(questions, keyword))
	}
	for _, keyword := range listSchemas {
		list, _ := here.text[keyword].([]any)
		for i := range list {
			s.inspect(under(under(at, keyword), strconv.Itoa(i)), read)
		}
	}
	for _, keyword := range mapSchemas {
		for _, name := range s.names(at, keyword) {
			s.inspect(under(under(at, keyword), name), read)
		}
	}
}

func (s *shaper) inspectAnnotation(at, keyword string, v any, read bool) {
	want, known := annotations[keyword]
	switch {
	case !known:
		s.refuse(at, "unknown annotation; the known ones are %s", strings.Join(slices.Sorted(maps.Keys(annotations)), ", "))
	case !read:
		s.refuse(at, "not possible here: annotate the property itself")
	case typeOf(v) != want:
		s.refuse(at, "must be a %s", want)
	}
}

func (s *shaper) inspectReferences(here source) {
	if draft, ok := here.text["$schema"].(string); ok && strings.TrimSuffix(draft, "#") != draft202012 {
		s.refuse(under(here.at, "$schema"), "only JSON Schema 2020-12 is read; write %s", draft202012)
	}
	if _, ok := here.text["$id"]; ok && here.at != "" {
		s.refuse(under(here.at, "$id"), "only the whole schema may have an $id")
	}
	for _, keyword := range []string{"$dynamicRef", "$dynamicAnchor"} {
		if _, ok := here.text[keyword]; ok {
			s.refuse(under(here.at, keyword), "not supported; use $ref and $defs")
		}
	}
	if ref, ok := here.text["$ref"].(string); ok {
		target, ok := s.resolve(ref)
		if s.refs[here.at] = target.at; !ok {
			s.refuse(under(here.at, "$ref"), "must lead to a place in this schema, like #/$defs/address")
		}
	}
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

// place is a shape on the way through a schema: a path to it in a payload.
type place struct {
	shape     *shape
	path      []string
	many      bool // lies in an array, or is found by a pattern
	element   bool
	volatile  bool // it, or something it lies in
	sensitive bool
	ancestors []*shape
}

func (p place) pointer() string { return joinPointer(p.path) }

func (p place) child(s *shape, token string, many, element bool) place {
	return place{
		shape: s, path: append(slices.Clone(p.path), token), many: p.many || many, element: element,
		volatile: p.volatile || s.volatile, sensitive: p.sensitive || s.sensitive,
		ancestors: append(slices.Clone(p.ancestors), p.shape),
	}
}

func (p place) children() (all []place) {
	s := p.shape
	for _, name := range s.names {
		if member := s.members[name]; member != nil {
			all = append(all, p.child(member, name, false, false))
		}
	}
	for _, member := range []*shape{s.patterned, s.rest} {
		if member != nil {
			all = append(all, p.child(member, "*", true, false))
		}
	}
	for i, element := range s.first {
		if element != nil {
			all = append(all, p.child(element, strconv.Itoa(i), true, true))
		}
	}
	if s.items != nil {
		all = append(all, p.child(s.items, "*", true, true))
	}
	return all
}

// survey goes to every place that the schema describes, checks what is said
// there, and notes what has to be found again.
func (t *ActionType) survey(s *shaper) {
	t.roles = map[string][]string{}
	t.visit(s, place{shape: t.root, volatile: t.root.volatile, sensitive: t.root.sensitive})
	if t.root.volatile {
		s.refuse("/x-volatile", "the whole payload cannot be left out of its fingerprint")
	}
	if _, ok := t.roles[roleAmount]; ok && t.roles[roleCurrency] == nil {
		s.refuse("", "a property has x-role amount, but none has x-role currency; an amount says nothing without one")
	}
}

func (t *ActionType) visit(s *shaper, p place) {
	if s.places++; s.places == maxPlaces {
		s.refuse("", "the schema describes more than %d places of a payload; make it smaller", maxPlaces)
	}
	if s.places >= maxPlaces {
		return
	}
	if slices.Contains(p.ancestors, p.shape) {
		if annotated(p.shape, map[*shape]bool{}) {
			s.refuse(p.shape.at, "contains itself, so its annotations would have no end of places; annotate places that do not repeat")
		}
		return
	}
	s.checkPlace(p)
	t.note(s, p)
	for _, child := range p.children() {
		t.visit(s, child)
	}
}

func annotated(s *shape, seen map[*shape]bool) bool {
	if s == nil || seen[s] {
		return false
	}
	seen[s] = true
	if s.role != "" || s.normalize != "" || s.volatile || s.sensitive {
		return true
	}
	parts := append(slices.Collect(maps.Values(s.members)), s.patterned, s.rest, s.items)
	return slices.ContainsFunc(append(parts, s.first...), func(part *shape) bool { return annotated(part, seen) })
}

func (t *ActionType) note(s *shaper, p place) {
	here := p.shape
	t.volatile = t.volatile || here.volatile
	if here.sensitive {
		t.Sensitive = append(t.Sensitive, p.pointer())
	}
	if here.role != "" {
		if other, taken := t.roles[here.role]; taken {
			s.refuse(under(here.at, "x-role"), "%s is the %s already; each role is one property's", joinPointer(other), here.role)
		}
		t.roles[here.role] = p.path
	}
	isLeaf := len(here.names) == 0 && len(p.path) > 0
	if isLeaf && !p.many {
		name := p.path[len(p.path)-1]
		t.fields = append(t.fields, Field{p.pointer(), orElse(here.title, name), here.role, p.sensitive})
	}
}

// checkPlace refuses annotations that cannot mean what they say.
func (s *shaper) checkPlace(p place) {
	here := p.shape
	at := func(keyword string) string { return under(here.at, keyword) }
	only := func(types ...string) bool {
		return len(here.types) > 0 && !slices.ContainsFunc(here.types, func(name string) bool {
			return name != "null" && !slices.Contains(types, name)
		})
	}
	switch {
	case here.normalize != "" && !only("string"):
		s.refuse(at("x-normalize"), "works on strings; give the property type string")
	case here.normalize != "" && here.instant:
		s.refuse(at("x-normalize"), "a date-time is normalised as the instant that it is; leave x-normalize out")
	case here.volatile && here.normalize != "":
		s.refuse(at("x-volatile"), "is sent as first received; leave x-normalize out")
	case here.volatile && p.element:
		s.refuse(at("x-volatile"), "works on members, not on elements of an array")
	}
	switch {
	case here.role == "":
	case p.many:
		s.refuse(at("x-role"), "there can be many of these; a role belongs to one property outside of arrays")
	case p.volatile:
		s.refuse(at("x-role"), "must be part of the fingerprint; it is volatile, or lies in something that is")
	case here.role == roleAmount && here.normalize == "decimal" && only("string"): // checked above
	case here.role == roleAmount && (here.normalize != "" || !only("integer")):
		s.refuse(at("x-role"), "an amount is an integer in minor units, or a string with x-normalize decimal")
	case here.role == roleCurrency && !only("string"):
		s.refuse(at("x-role"), "a currency is a string")
	case here.role == roleCurrency && here.normalize != "" && here.normalize != "currency":
		s.refuse(at("x-normalize"), "a currency is normalised as one; write currency or leave it out")
	case here.role != roleAmount && !only("string", "integer"):
		s.refuse(at("x-role"), "needs a property of type string or integer")
	}
	if here.role == roleCurrency {
		here.normalize = "currency"
	}
}

package ledger

import (
	"maps"
	"slices"
	"strconv"
)

// A few definitions that refer to one another can describe more places than
// there is time to visit.
const maxPlaces = 2000

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

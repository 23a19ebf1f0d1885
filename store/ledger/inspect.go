package ledger

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

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

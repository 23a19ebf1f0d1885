package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// JSON Pointers, RFC 6901: "" is the whole value, "/a~1b/0" the first element
// of member "a/b".

var (
	escapeToken   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeToken = strings.NewReplacer("~0", "~", "~1", "/")
)

// under gives the pointer to a member or an element of the value at a pointer.
func under(pointer, token string) string {
	return pointer + "/" + escapeToken.Replace(token)
}

// splitPointer takes a pointer apart; not ok if it is none.
func splitPointer(pointer string) (tokens []string, ok bool) {
	if pointer == "" {
		return nil, true
	}
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return nil, false
	}
	tokens = strings.Split(rest, "/")
	for i, token := range tokens {
		tokens[i] = unescapeToken.Replace(token)
		if under("", tokens[i]) != "/"+token {
			return nil, false // a ~ that escapes nothing
		}
	}
	return tokens, true
}

// Get finds the value at a pointer.
func Get(v any, pointer string) (any, bool) {
	tokens, ok := splitPointer(pointer)
	if !ok {
		return nil, false
	}
	for _, token := range tokens {
		switch parent := v.(type) {
		case map[string]any:
			if v, ok = parent[token]; !ok {
				return nil, false
			}
		case []any:
			i, ok := elementIndex(token)
			if !ok || i >= len(parent) {
				return nil, false
			}
			v = parent[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// elementIndex reads an array index: digits, without a zero in front.
func elementIndex(token string) (int, bool) {
	i, err := strconv.Atoi(token)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == token
}

// Set puts a value at a pointer and makes the objects on the way that are
// missing. It goes through objects only: what an array's elements mean is not
// for a configured pointer to guess. An error leaves v as it was.
func Set(v any, pointer string, value any) error {
	tokens, ok := splitPointer(pointer)
	if !ok {
		return fmt.Errorf("%q is no JSON Pointer; write one like /metadata/operation", pointer)
	}
	if len(tokens) == 0 {
		return errors.New("the empty pointer names the whole value; name a member of it")
	}
	parent, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("cannot set %s: the value is not an object", pointer)
	}
	last := len(tokens) - 1
	for i, token := range tokens[:last] {
		child, exists := parent[token]
		if !exists {
			parent[token] = nest(tokens[i+1:last], tokens[last], value)
			return nil
		}
		if parent, ok = child.(map[string]any); !ok {
			return fmt.Errorf("cannot set %s: what stands at %s is not an object", pointer, joinPointer(tokens[:i+1]))
		}
	}
	parent[tokens[last]] = value
	return nil
}

func nest(way []string, last string, value any) map[string]any {
	object := map[string]any{last: value}
	for _, token := range slices.Backward(way) {
		object = map[string]any{token: object}
	}
	return object
}

func joinPointer(tokens []string) (pointer string) {
	for _, token := range tokens {
		pointer = under(pointer, token)
	}
	return pointer
}

// Diff lists, sorted, the pointers to the smallest places at which two values
// differ. It tells where, never what: the answer to a changed request must not
// show the payload that was registered.
func Diff(a, b any) []string {
	places := diff(nil, "", a, b)
	slices.Sort(places)
	return places
}

func diff(places []string, at string, a, b any) []string {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return diffObjects(places, at, x, y)
		}
	case []any:
		if y, ok := b.([]any); ok {
			return diffArrays(places, at, x, y)
		}
	default:
		if sameScalar(a, b) {
			return places
		}
	}
	return append(places, at)
}

func diffObjects(places []string, at string, x, y map[string]any) []string {
	for name, a := range x {
		if b, ok := y[name]; ok {
			places = diff(places, under(at, name), a, b)
		} else {
			places = append(places, under(at, name))
		}
	}
	for name := range y {
		if _, ok := x[name]; !ok {
			places = append(places, under(at, name))
		}
	}
	return places
}

func diffArrays(places []string, at string, x, y []any) []string {
	for i := range max(len(x), len(y)) {
		here := under(at, strconv.Itoa(i))
		if i >= len(x) || i >= len(y) {
			places = append(places, here)
		} else {
			places = diff(places, here, x[i], y[i])
		}
	}
	return places
}

func sameScalar(a, b any) bool {
	x, isX := a.(json.Number)
	y, isY := b.(json.Number)
	if isX && isY && x != y {
		m, okM := exactNumber(x.String())
		n, okN := exactNumber(y.String())
		return okM && okN && m == n
	}
	return reflect.DeepEqual(a, b)
}

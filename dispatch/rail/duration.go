package rail

import (
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Duration is a length of time in the configuration. It tells "not given" from
// zero, since a default may be neither, and knows the word never.
type Duration struct {
	length time.Duration
	given  bool
	never  bool
}

// Lasting is a Duration that was given.
func Lasting(d time.Duration) Duration { return Duration{length: d, given: true} }

// Never is what the word means: no length of time is long enough.
func Never() Duration { return Duration{given: true, never: true} }

// Or is the length that was given, or the default.
func (d Duration) Or(otherwise time.Duration) time.Duration {
	if !d.given {
		return otherwise
	}
	return d.length
}

func (d Duration) String() string {
	switch {
	case d.never:
		return "never"
	case !d.given:
		return ""
	}
	return d.length.String()
}

// MarshalYAML writes what UnmarshalYAML reads.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// UnmarshalYAML takes 10s, 500ms, 15m, 168h, or never. A bare number is
// refused: nobody agrees on its unit.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	text := node.GetToken().Value
	if s, ok := node.(*ast.StringNode); ok {
		text = s.Value
	}
	if strings.EqualFold(text, "never") {
		*d = Never()
		return nil
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < 0 || text == "0" {
		return &yaml.SyntaxError{
			Message: "not a duration; write one such as 500ms, 10s, 15m or 168h",
			Token:   node.GetToken(),
		}
	}
	*d = Lasting(length)
	return nil
}

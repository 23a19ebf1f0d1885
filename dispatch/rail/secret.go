package rail

import (
	"fmt"
	"log/slog"
)

// dots stand for a secret wherever one would be shown.
const dots = "••••"

// Secret is a credential that no printing, logging or encoding shows. The text
// stands behind a pointer: fmt ignores methods on unexported fields, and would
// print a plain string of a struct that merely holds one.
type Secret struct {
	text    *string
	written bool // it stands in the file as it is, without ${…}
}

// NewSecret wraps a credential.
func NewSecret(text string) Secret { return Secret{text: &text} }

// AsWritten is the same for a text that stands in the configuration as it is. It
// is shown no more than another.
func (s Secret) AsWritten() Secret {
	s.written = true
	return s
}

// reveal is called where bytes go to the wire and where answers are masked,
// nowhere else.
func (s Secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

func (s Secret) String() string               { return dots }
func (s Secret) GoString() string             { return dots }
func (s Secret) Format(f fmt.State, _ rune)   { fmt.Fprint(f, dots) }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(dots) }
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + dots + `"`), nil }
func (s Secret) MarshalText() ([]byte, error) { return []byte(dots), nil }
func (s Secret) MarshalYAML() (any, error)    { return dots, nil }

// UnmarshalYAML takes a scalar.
func (s *Secret) UnmarshalYAML(unmarshal func(any) error) error {
	var text string
	if err := unmarshal(&text); err != nil {
		return err
	}
	*s = NewSecret(text)
	return nil
}

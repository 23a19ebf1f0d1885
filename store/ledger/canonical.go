package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical gives the RFC 8785 bytes of a value: the only spelling of it that
// is ever hashed, shown or sent. There is one canonicaliser in the program.
//
// It takes what ParseStrict returns, and Go integers and floats beside it. A
// number that a double cannot hold is an error here too, never a rounding.
func Canonical(v any) ([]byte, error) {
	plain, err := appendPlain(nil, v)
	if err != nil {
		return nil, err
	}
	canonical := jsontext.Value(plain)
	if err := canonical.Canonicalize(); err != nil {
		return nil, fmt.Errorf("no canonical form: %w", err)
	}
	return canonical, nil
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// appendPlain writes JSON with exact numbers and names in no order.
func appendPlain(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return appendText(b, v)
	case json.Number:
		return appendNumber(b, v.String())
	case int:
		return appendNumber(b, strconv.Itoa(v))
	case int64:
		return appendNumber(b, strconv.FormatInt(v, 10))
	case uint64:
		return appendNumber(b, strconv.FormatUint(v, 10))
	case float64:
		return appendNumber(b, strconv.FormatFloat(v, 'g', -1, 64))
	case []any:
		return appendArray(b, v)
	case map[string]any:
		return appendObject(b, v)
	}
	return nil, fmt.Errorf("no canonical form: %T is not a JSON value", v)
}

func appendArray(b []byte, array []any) (_ []byte, err error) {
	b = append(b, '[')
	for i, element := range array {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendPlain(b, element); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendObject(b []byte, object map[string]any) (_ []byte, err error) {
	b = append(b, '{')
	first := true
	for name, member := range object {
		if !first {
			b = append(b, ',')
		}
		first = false
		if b, err = appendText(b, name); err != nil {
			return nil, err
		}
		if b, err = appendPlain(append(b, ':'), member); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendText(b []byte, s string) ([]byte, error) {
	b, err := jsontext.AppendQuote(b, s)
	if err != nil {
		return nil, errors.New("no canonical form: a text is not valid UTF-8")
	}
	return b, nil
}

func appendNumber(b []byte, text string) ([]byte, error) {
	exact, ok := exactNumber(text)
	if !ok || !jsonNumber.MatchString(text) {
		return nil, errors.New("no canonical form: a double cannot hold a number exactly; use a string")
	}
	return append(b, exact...), nil
}

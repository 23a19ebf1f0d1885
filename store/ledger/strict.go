package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth bounds how deep arrays and objects may nest.
const MaxDepth = 64

// SyntaxError says where a text is not the strict JSON that is asked for, and
// what to do about it. It never holds a value, only names and places.
type SyntaxError struct {
	Offset  int64  // of the byte at or after which it shows, from 0
	Pointer string // JSON Pointer to the place; empty at the top
	Message string
}

func (e *SyntaxError) Error() string {
	if e.Pointer == "" {
		return fmt.Sprintf("JSON at byte %d: %s", e.Offset, e.Message)
	}
	return fmt.Sprintf("JSON at byte %d, %s: %s", e.Offset, e.Pointer, e.Message)
}

// ParseStrict reads exactly one JSON value as map[string]any, []any, string,
// json.Number, bool or nil. What two readers could understand differently is
// refused: duplicate names, text that is not Unicode, data after the value,
// numbers that a double cannot hold. Every number comes back in the one
// spelling that RFC 8785 gives it.
func ParseStrict(raw []byte) (any, error) {
	return parse(raw, nil)
}

// DecodeObject reads an object and refuses every member that is not allowed,
// also one that differs in case only. With no names allowed, only {} passes.
func DecodeObject(raw []byte, allowed ...string) (map[string]any, error) {
	v, err := parse(raw, &allowed)
	if err != nil {
		return nil, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, &SyntaxError{Message: "send a JSON object"}
	}
	return object, nil
}

// reader reads tokens into values. Duplicate names and broken Unicode are the
// decoder's business, the rest is refused here.
type reader struct {
	tokens  *jsontext.Decoder
	allowed *[]string // names that the outermost object may have; nil: any
}

func parse(raw []byte, allowed *[]string) (any, error) {
	r := reader{jsontext.NewDecoder(bytes.NewBuffer(raw)), allowed}
	v, err := r.value()
	if err == nil {
		_, err = r.tokens.ReadToken()
		switch {
		case err == io.EOF:
			return v, nil
		case err == nil:
			err = r.refuse("more follows the value; send exactly one")
		}
	}
	return nil, asSyntaxError(err)
}

func (r reader) value() (any, error) {
	token, err := r.tokens.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case jsontext.KindBeginObject:
		return r.object()
	case jsontext.KindBeginArray:
		return r.array()
	case jsontext.KindString:
		return token.String(), nil
	case jsontext.KindNumber:
		text, ok := exactNumber(token.String())
		if !ok {
			return nil, r.refuse("a double cannot hold this number exactly; send it as a string")
		}
		return json.Number(text), nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return token.Bool(), nil
	}
	return nil, nil // null
}

func (r reader) object() (any, error) {
	if err := r.checkDepth(); err != nil {
		return nil, err
	}
	object := map[string]any{}
	for r.tokens.PeekKind() != jsontext.KindEndObject {
		token, err := r.tokens.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		if r.allowed != nil && r.tokens.StackDepth() == 1 && !slices.Contains(*r.allowed, name) {
			return nil, r.refuse(unknownName(name, *r.allowed))
		}
		if object[name], err = r.value(); err != nil {
			return nil, err
		}
	}
	_, err := r.tokens.ReadToken()
	return object, err
}

func (r reader) array() (any, error) {
	if err := r.checkDepth(); err != nil {
		return nil, err
	}
	array := []any{}
	for r.tokens.PeekKind() != jsontext.KindEndArray {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		array = append(array, v)
	}
	_, err := r.tokens.ReadToken()
	return array, err
}

func (r reader) checkDepth() error {
	if r.tokens.StackDepth() > MaxDepth {
		return r.refuse(fmt.Sprintf("nested deeper than %d levels; send it flatter", MaxDepth))
	}
	return nil
}

// refuse blames the token that was just read.
func (r reader) refuse(message string) error {
	return &SyntaxError{r.tokens.InputOffset(), string(r.tokens.StackPointer()), message}
}

func asSyntaxError(err error) error {
	if e, ok := errors.AsType[*SyntaxError](err); ok {
		return e
	}
	if errors.Is(err, io.EOF) {
		return &SyntaxError{Message: "nothing here; send one JSON value"}
	}
	e, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return &SyntaxError{Message: "not readable as JSON; send one JSON value"}
	}
	message := "not strict JSON; send what RFC 8259 describes, in UTF-8"
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		message = "this name appears twice in its object; send each name once"
	case errors.Is(err, jsontext.ErrNonStringName):
		message = "a member's name must be a string in double quotes"
	case errors.Is(err, io.ErrUnexpectedEOF):
		message = "ends in the middle of a value; send the whole of it"
	case e.Err != nil:
		message = e.Err.Error() + "; " + message
	}
	return &SyntaxError{e.ByteOffset, string(e.JSONPointer), message}
}

// unknownName refuses a name, and says which one may have been meant: most
// wrong names are a known one in another case.
func unknownName(name string, known []string) string {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return fmt.Sprintf("unknown name; did you mean %q?", k)
		}
	}
	return "unknown name; leave it out"
}

// exactNumber gives the RFC 8785 spelling of a JSON number, if that is the
// same decimal number. 0.1 is fine: its shortest double prints as 0.1 again.
// 9007199254740993 is not: it would be sent as another number than was read.
func exactNumber(text string) (string, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "", false // out of range
	}
	if f == 0 {
		mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
		return "0", strings.Trim(mantissa, "-0.") == "" // else it is too small for a double
	}
	short := string(jsontext.AppendFloat(nil, f, 64))
	return short, short == text || sameDecimal(short, text)
}

func sameDecimal(a, b string) bool {
	x, okX := decimalOf(a)
	y, okY := decimalOf(b)
	return okX && okY && x == y
}

// decimal is sign × 0.digits × 10^exponent, with no zero at either end of the
// digits, so that equal numbers are equal structs. It is not for zero.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

func decimalOf(text string) (d decimal, ok bool) {
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa := text
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		e, err := strconv.Atoi(text[i+1:])
		if err != nil {
			return d, false
		}
		mantissa, d.exponent = text[:i], e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	digits := strings.TrimLeft(all, "0")
	d.exponent += len(whole) - (len(all) - len(digits))
	d.digits = strings.TrimRight(digits, "0")
	return d, true
}

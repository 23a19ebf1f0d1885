package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const draft202012 = "https://json-schema.org/draft/2020-12/schema"

// nowhere is the loader of schemas from elsewhere: there is none.
type nowhere struct{}

func (nowhere) Load(string) (any, error) {
	return nil, errors.New("a schema is not loaded from elsewhere; put it under $defs")
}

// compile reads the schema three times: as JSON, as a validator, and as the
// shape that says what else a payload's members mean.
func (t *ActionType) compile() error {
	schema, err := ParseStrict(t.Schema)
	if e, ok := errors.AsType[*SyntaxError](err); ok {
		return &SchemaError{t.Name, "", "schema: " + e.Error()}
	}
	if t.validator, err = compileSchema(schema); err != nil {
		return t.refuseSchema(err)
	}
	s := newShaper(t.Name, schema, t.Schema)
	t.root = s.read()
	t.survey(s)
	return errors.Join(s.wrong...)
}

func compileSchema(schema any) (*jsonschema.Schema, error) {
	const here = "holdfast:///schema.json"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nowhere{})
	c.AssertFormat()
	if err := c.AddResource(here, schema); err != nil {
		return nil, err
	}
	return c.Compile(here)
}

// refuseSchema turns a compiler's error into ours, so that it names the place
// in the configured text.
func (t *ActionType) refuseSchema(err error) error {
	if e, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if e, ok := errors.AsType[*jsonschema.ValidationError](e.Err); ok {
			var wrong []error
			for _, f := range fieldErrors(e) {
				wrong = append(wrong, &SchemaError{t.Name, f.Pointer, f.Message})
			}
			return errors.Join(wrong...)
		}
	}
	message, _, _ := strings.Cut(err.Error(), "\n")
	return &SchemaError{t.Name, "", "schema: " + strings.ReplaceAll(message, "holdfast:///schema.json", "")}
}

// FieldError says what is wrong with one place of a payload. It never holds the
// value that was sent there: it may be sensitive.
type FieldError struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

// sortErrors puts errors in order of place, and drops repetitions.
func sortErrors(wrong []FieldError) []FieldError {
	slices.SortFunc(wrong, func(a, b FieldError) int {
		return cmp.Or(strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(wrong)
}

// fieldErrors gives a validator's finding in plain words.
func fieldErrors(e *jsonschema.ValidationError) []FieldError {
	at := joinPointer(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		var all []FieldError
		for _, cause := range e.Causes {
			all = append(all, fieldErrors(cause)...)
		}
		return sortErrors(all)
	case *kind.AnyOf:
		return closest(e, FieldError{at, "fits none of the alternatives that the schema allows"})
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return []FieldError{{at, "fits more than one alternative where the schema wants exactly one"}}
		}
		return closest(e, FieldError{at, "fits none of the alternatives that the schema allows"})
	case *kind.Required:
		return eachName(at, k.Missing, "is missing")
	case *kind.DependentRequired:
		return eachName(at, k.Missing, fmt.Sprintf("is missing; it goes with %q", k.Prop))
	case *kind.AdditionalProperties:
		return eachName(at, k.Properties, unknownName("", nil))
	}
	return []FieldError{{at, plainWords(e.ErrorKind)}}
}

func eachName(at string, names []string, message string) (wrong []FieldError) {
	for _, name := range names {
		wrong = append(wrong, FieldError{under(at, name), message})
	}
	return wrong
}

// closest adds what is wrong with the alternative that was most likely meant:
// one for this type of value, and then the one with the fewest faults.
func closest(e *jsonschema.ValidationError, whole FieldError) []FieldError {
	var best []FieldError
	fewest := 0
	for _, cause := range e.Causes {
		wrong := fieldErrors(cause)
		faults := len(wrong)
		if wrongType(cause, len(e.InstanceLocation)) {
			faults += 1000
		}
		if best == nil || faults < fewest {
			best, fewest = wrong, faults
		}
	}
	return append([]FieldError{whole}, best...)
}

// wrongType reports whether a value at the depth itself is of another type.
func wrongType(e *jsonschema.ValidationError, depth int) bool {
	if _, ok := e.ErrorKind.(*kind.Type); ok && len(e.InstanceLocation) == depth {
		return true
	}
	return slices.ContainsFunc(e.Causes, func(cause *jsonschema.ValidationError) bool { return wrongType(cause, depth) })
}

func plainWords(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be %s, not %s", article(strings.Join(k.Want, " or ")), article(k.Got))
	case *kind.Enum:
		return "must be one of " + listed(k.Want)
	case *kind.Const:
		return "must be " + listed([]any{k.Want})
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.Format:
		return fmt.Sprintf("is no valid %s", k.Want)
	case *kind.Pattern:
		return "does not fit the pattern " + k.Want
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %s", counted(k.Want, "character"))
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s", counted(k.Want, "character"))
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %s", counted(k.Want, "element"))
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s", counted(k.Want, "element"))
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %s", counted(k.Want, "member"))
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %s", counted(k.Want, "member"))
	case *kind.Minimum:
		return "must be at least " + plainNumber(k.Want)
	case *kind.Maximum:
		return "must be at most " + plainNumber(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + plainNumber(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + plainNumber(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + plainNumber(k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("elements %d and %d are equal; each must be there once", k.Duplicates[0], k.Duplicates[1])
	case *kind.PropertyNames:
		return "has a member whose name the schema does not allow"
	}
	return strings.TrimSuffix("does not fit the schema: "+strings.Join(k.KeywordPath(), " "), ": ")
}

func article(noun string) string {
	switch {
	case noun == "null":
		return noun
	case strings.ContainsAny(noun[:1], "aio"):
		return "an " + noun
	}
	return "a " + noun
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func listed(values []any) string {
	var all []string
	for _, v := range values {
		text, err := Canonical(v)
		if err != nil {
			return "what the schema says"
		}
		all = append(all, string(text))
	}
	return strings.Join(all, ", ")
}

func plainNumber(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'f', -1, 64)
}

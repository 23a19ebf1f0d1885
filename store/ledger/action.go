package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ActionSpec is an action type as it is configured.
type ActionSpec struct {
	Rail       string
	Effect     string // types that share an effect are compared for overlap; empty: the type's own name
	Schema     []byte // JSON Schema 2020-12, the whole contract of a payload
	Overlap    OverlapSpec
	Repeatable bool          // the effect may harmlessly happen twice
	Cacheable  time.Duration // an identical repeat inside it gets the earlier result
	Mode       string        // enforce (also when empty) · observe: decide and record, send nothing
	Refund     *RefundSpec   // how a refund owed is settled through the gateway
}

// OverlapSpec says what happens to an operation that looks like an earlier one.
// The zero value holds it, and looks back a day.
type OverlapSpec struct {
	Mode   string // hold · ask · off
	Window time.Duration
}

// RefundSpec is the operation that gives the money back; its payload may hold
// placeholders like {receipt_id}, see [Rulebook.PlanRefund].
type RefundSpec struct {
	ActionType string
	Payload    map[string]any
}

// ActionType is a kind of wanted write, ready to judge payloads. It is made by
// NewActionType and never changed; many goroutines may use it.
type ActionType struct {
	Name       string
	Rail       string
	Effect     string
	Schema     []byte // as configured
	Overlap    OverlapSpec
	Repeatable bool
	Cacheable  time.Duration
	Mode       string
	Refund     *RefundSpec
	Body       []byte   // all of the above in RFC 8785 form
	Version    string   // "sha256:…" over Body
	Sensitive  []string // JSON Pointers; * stands for any index or name

	root       *shape
	fields     []Field
	roles      map[string][]string // role → path of its property
	volatile   bool                // some member is left out of the fingerprint
	validator  *jsonschema.Schema
	currencies Currencies
}

// Field is one property for display. Pointer leads to it in a payload.
type Field struct {
	Pointer   string
	Title     string
	Role      string
	Sensitive bool
}

// SchemaError says what is wrong with an action type, and where in its schema.
type SchemaError struct {
	ActionType string
	Pointer    string // into the schema; empty: the action type itself
	Message    string
}

func (e *SchemaError) Error() string {
	if e.Pointer == "" {
		return fmt.Sprintf("action type %s: %s", e.ActionType, e.Message)
	}
	return fmt.Sprintf("action type %s, schema %s: %s", e.ActionType, e.Pointer, e.Message)
}

const overlapWindow = 24 * time.Hour // an agent that forgets tends to come back the same day

var actionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// NewActionType compiles an action type. Its error joins all that is wrong, a
// *SchemaError each.
func NewActionType(name string, spec ActionSpec, currencies Currencies) (*ActionType, error) {
	t := &ActionType{
		Name: name, Rail: spec.Rail, Effect: orElse(spec.Effect, name), Schema: slices.Clone(spec.Schema),
		Overlap:    OverlapSpec{orElse(spec.Overlap.Mode, "hold"), spec.Overlap.Window},
		Repeatable: spec.Repeatable, Cacheable: spec.Cacheable, Mode: orElse(spec.Mode, "enforce"),
		Refund: spec.Refund, currencies: maps.Clone(currencies),
	}
	if t.Overlap.Window == 0 {
		t.Overlap.Window = overlapWindow
	}
	if err := errors.Join(t.checkSpec(), t.compile()); err != nil {
		return nil, err
	}
	if err := t.hash(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *ActionType) checkSpec() error {
	var wrong []error
	expect := func(right bool, format string, args ...any) {
		if !right {
			wrong = append(wrong, &SchemaError{t.Name, "", fmt.Sprintf(format, args...)})
		}
	}
	expect(actionName.MatchString(t.Name), "name it with 1 to 64 of A-Z a-z 0-9 . _ -, first a letter or digit")
	expect(t.Rail != "", "say which rail it goes to")
	expect(slices.Contains([]string{"hold", "ask", "off"}, t.Overlap.Mode), "overlap mode %q is unknown; write hold, ask or off", t.Overlap.Mode)
	expect(t.Overlap.Window > 0, "the overlap window must be longer than nothing")
	expect(slices.Contains([]string{"enforce", "observe"}, t.Mode), "mode %q is unknown; write enforce or observe", t.Mode)
	expect(t.Cacheable >= 0, "cacheable must not be negative")
	expect(t.Refund == nil || t.Refund.ActionType != "" && len(t.Refund.Payload) > 0, "a refund needs an action_type and a payload")
	if t.Refund != nil {
		unknown := t.Refund.strangers()
		expect(len(unknown) == 0, "refund payload names %s; there are %s", strings.Join(unknown, ", "), strings.Join(refundPlaceholders, " "))
	}
	return errors.Join(wrong...)
}

// hash names the version. The schema counts as the value that it is, so that
// its layout and the order of its names do not matter.
func (t *ActionType) hash() error {
	schema, err := ParseStrict(t.Schema)
	if err != nil {
		return err
	}
	whole := map[string]any{
		"name": t.Name, "rail": t.Rail, "effect": t.Effect, "schema": schema, "rules": RuleSet,
		"overlap":    map[string]any{"mode": t.Overlap.Mode, "window": t.Overlap.Window.String()},
		"repeatable": t.Repeatable, "cacheable": t.Cacheable.String(), "mode": t.Mode,
	}
	if t.Refund != nil {
		whole["refund"] = map[string]any{"action_type": t.Refund.ActionType, "payload": t.Refund.Payload}
	}
	canonical, err := Canonical(whole)
	if err != nil {
		return &SchemaError{t.Name, "", "refund payload: " + err.Error()}
	}
	sum := sha256.Sum256(canonical)
	t.Body = canonical
	t.Version = "sha256:" + hex.EncodeToString(sum[:])
	return nil
}

// Fields lists the properties for display, in the order of the schema. What
// lies inside an array belongs to the array's own field.
func (t *ActionType) Fields() []Field {
	return slices.Clone(t.fields)
}

// Hides reports whether the value at a pointer into a payload is sensitive, or
// lies inside one that is.
func (t *ActionType) Hides(pointer string) bool {
	tokens, ok := splitPointer(pointer)
	if !ok {
		return true // whoever asks about no place at all is shown nothing
	}
	place := t.root
	for _, token := range tokens {
		if place.sensitive {
			return true
		}
		if place = place.child(token); place == nil {
			return false
		}
	}
	return place.sensitive
}

// Pointer leads to the member of a payload that has a role; empty if none has.
func (t *ActionType) Pointer(role string) string {
	if path, ok := t.roles[role]; ok {
		return joinPointer(path)
	}
	return ""
}

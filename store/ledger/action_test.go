package ledger

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func newAction(t testing.TB, name, schema string) *ActionType {
	t.Helper()
	a, err := NewActionType(name, ActionSpec{Rail: "card", Schema: []byte(schema)}, testCurrencies)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A schema that has one of everything.
const paymentSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "Payment",
  "type": "object",
  "required": ["amount", "currency", "recipient"],
  "properties": {
    "recipient": {"type": "string", "minLength": 1, "x-role": "recipient", "title": "Paid to"},
    "amount": {"type": "integer", "x-role": "amount"},
    "currency": {"type": "string", "pattern": "^[A-Z0-9]+$", "x-role": "currency", "x-normalize": "currency"},
    "reference": {"type": "string", "x-role": "reference"},
    "account": {"type": "string", "x-role": "account", "x-sensitive": true},
    "memo": {"type": ["string", "null"], "maxLength": 200},
    "due": {"type": "string", "format": "date-time"},
    "email": {"type": "string", "format": "email", "x-normalize": "email"},
    "rate": {"type": "string", "x-normalize": "decimal"},
    "tag": {"type": "string", "x-normalize": "lowercase"},
    "count": {"type": "number"},
    "sdk": {"type": "object", "x-volatile": true, "additionalProperties": true},
    "metadata": {"type": "object", "additionalProperties": {"type": "string", "x-normalize": "trim"}},
    "address": {"$ref": "#/$defs/address"},
    "lines": {"type": "array", "items": {"type": "object", "properties": {
      "text": {"type": "string"}, "secret": {"type": "string", "x-sensitive": true}, "trace": {"type": "string", "x-volatile": true}}}}
  },
  "$defs": {"address": {"type": "object", "title": "Address", "properties": {
    "street": {"type": "string", "x-sensitive": true}, "city": {"type": "string", "title": "City"}}}}
}`

func TestASchemaSaysWhatToShow(t *testing.T) {
	a := newAction(t, "create_payment", paymentSchema)
	want := []Field{
		{"/recipient", "Paid to", "recipient", false}, {"/amount", "amount", "amount", false},
		{"/currency", "currency", "currency", false}, {"/reference", "reference", "reference", false},
		{"/account", "account", "account", true}, {"/memo", "memo", "", false}, {"/due", "due", "", false},
		{"/email", "email", "", false}, {"/rate", "rate", "", false}, {"/tag", "tag", "", false}, {"/count", "count", "", false},
		{"/sdk", "sdk", "", false}, {"/metadata", "metadata", "", false},
		{"/address/street", "street", "", true}, {"/address/city", "City", "", false}, {"/lines", "lines", "", false},
	}
	if got := a.Fields(); !reflect.DeepEqual(got, want) {
		t.Errorf("fields %v", got)
	}
	if want := []string{"/account", "/address/street", "/lines/*/secret"}; !slices.Equal(a.Sensitive, want) {
		t.Errorf("sensitive: %v", a.Sensitive)
	}
	for pointer, want := range map[string]bool{
		"": false, "/account": true, "/account/0/x": true, "/memo": false, "/lines/7/secret": true, "/lines/7/text": false,
		"/lines/0": false, "/address/street": true, "/metadata/street": false, "/nope": false, "nonsense": true,
	} {
		if got := a.Hides(pointer); got != want {
			t.Errorf("%s is hidden: %v", pointer, got)
		}
	}
}

func TestAnActionTypeHasCarefulDefaults(t *testing.T) {
	a := newAction(t, "create_payment", paymentSchema)
	if a.Effect != "create_payment" || a.Mode != "enforce" || a.Overlap != (OverlapSpec{"hold", 24 * time.Hour}) || a.Repeatable || a.Cacheable != 0 {
		t.Errorf("got %+v", a)
	}
}

func TestAVersionNamesEverythingThatWasConfigured(t *testing.T) {
	base := func() ActionSpec {
		return ActionSpec{Rail: "card", Effect: "charge", Schema: []byte(`{"type":"object","properties":{"a":{},"b":{}}}`),
			Refund: &RefundSpec{"refund", map[string]any{"charge": "{receipt_id}", "n": 1}}}
	}
	version := func(name string, change func(*ActionSpec)) string {
		spec := base()
		change(&spec)
		a, err := NewActionType(name, spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		return a.Version
	}
	same := version("pay", func(*ActionSpec) {})
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(same) {
		t.Errorf("version %q", same)
	}
	for name, change := range map[string]func(*ActionSpec){
		"layout":        func(s *ActionSpec) { s.Schema = []byte(" {\"properties\":{\"b\":{},\"a\":{}},\n\"type\":\"object\"}") },
		"stated twice":  func(s *ActionSpec) { s.Mode, s.Overlap = "enforce", OverlapSpec{"hold", 24 * time.Hour} },
		"number's type": func(s *ActionSpec) { s.Refund.Payload["n"] = 1.0 },
	} {
		if got := version("pay", change); got != same {
			t.Errorf("%s makes another version", name)
		}
	}
	seen := map[string]string{same: "the base", version("pay2", func(*ActionSpec) {}): "name"}
	for name, change := range map[string]func(*ActionSpec){
		"rail": func(s *ActionSpec) { s.Rail = "sepa" }, "effect": func(s *ActionSpec) { s.Effect = "payout" },
		"schema":     func(s *ActionSpec) { s.Schema = []byte(`{"type":"object"}`) },
		"overlap":    func(s *ActionSpec) { s.Overlap.Mode = "ask" },
		"window":     func(s *ActionSpec) { s.Overlap.Window = time.Hour },
		"repeatable": func(s *ActionSpec) { s.Repeatable = true }, "cacheable": func(s *ActionSpec) { s.Cacheable = time.Minute },
		"mode": func(s *ActionSpec) { s.Mode = "observe" }, "no refund": func(s *ActionSpec) { s.Refund = nil },
		"refund type":    func(s *ActionSpec) { s.Refund.ActionType = "other" },
		"refund payload": func(s *ActionSpec) { s.Refund.Payload["n"] = 2 },
	} {
		got := version("pay", change)
		if other, taken := seen[got]; taken {
			t.Errorf("%s makes the same version as %s", name, other)
		}
		seen[got] = name
	}
}

func TestASpecThatCannotBeMeantIsRefused(t *testing.T) {
	for says, change := range map[string]func(*ActionSpec){
		"which rail":                  func(s *ActionSpec) { s.Rail = "" },
		`overlap mode "warn"`:         func(s *ActionSpec) { s.Overlap.Mode = "warn" },
		"overlap window":              func(s *ActionSpec) { s.Overlap.Window = -1 },
		`mode "off" is unknown`:       func(s *ActionSpec) { s.Mode = "off" },
		"cacheable":                   func(s *ActionSpec) { s.Cacheable = -1 },
		"needs an action_type":        func(s *ActionSpec) { s.Refund = &RefundSpec{} },
		"refund payload: no canonica": func(s *ActionSpec) { s.Refund = &RefundSpec{"r", map[string]any{"a": time.Second}} },
	} {
		spec := ActionSpec{Rail: "card", Schema: []byte(`{"type":"object"}`)}
		change(&spec)
		a, err := NewActionType("pay", spec, nil)
		if err == nil || a != nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "action type pay: ") {
			t.Errorf("%s: %v", says, err)
		}
	}
	for _, name := range []string{"", "a b", "-a", "ä", strings.Repeat("a", 65)} {
		if _, err := NewActionType(name, ActionSpec{Rail: "card", Schema: []byte(`{"type":"object"}`)}, nil); err == nil {
			t.Errorf("the name %q passes", name)
		}
	}
}

func TestASchemaThatCannotBeMeantIsRefusedAtItsPlace(t *testing.T) {
	object := func(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }
	const eur = `,"c":{"type":"string","x-role":"currency"}`
	for _, c := range []struct{ name, schema, pointer, says string }{
		{"nothing", ``, "", "schema: JSON at byte 0: nothing here"},
		{"no JSON", `{"type":"object"`, "", "ends in the middle"},
		{"a name twice", `{"type":"object","type":"object"}`, "", "/type: this name appears twice"},
		{"not an object", `[]`, "", "must be a boolean or object"},
		{"open to everything", `true`, "", "type"},
		{"not about objects", `{"type":"string"}`, "", `say "type": "object"`},
		{"no type", `{}`, "", `say "type": "object"`},
		{"bad keyword", object(`"a":{"type":"text"}`), "/properties/a/type", "fits none"},
		{"bad pattern", object(`"a":{"pattern":"("}`), "/properties/a/pattern", "no valid regex"},
		{"other draft", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, "/$schema", "only JSON Schema 2020-12"},
		{"elsewhere on the network", object(`"a":{"$ref":"https://example.com/a.json"}`), "", "not loaded from elsewhere"},
		{"elsewhere on the disk", object(`"a":{"$ref":"file:///etc/passwd"}`), "", "not loaded from elsewhere"},
		{"elsewhere beside it", object(`"a":{"$ref":"other.json"}`), "", "not loaded from elsewhere"},
		{"by anchor", object(`"a":{"$ref":"#x"},"b":{"$anchor":"x"}`), "/properties/a/$ref", "like #/$defs/address"},
		{"to nowhere", object(`"a":{"$ref":"#/$defs/x"}`), "", "schema"},
		{"to where no schema stands", `{"type":"object","properties":{"a":{"$ref":"#/shared/a"}},"shared":{"a":{"x-volatile":"yes"}}}`, "/properties/a/$ref", "put it under $defs"},
		{"inner identity", object(`"a":{"$id":"https://example.com/a"}`), "/properties/a/$id", "only the whole schema"},
		{"dynamic", object(`"a":{"$dynamicRef":"#x","$dynamicAnchor":"x"}`), "/properties/a/$dynamicRef", "not supported"},
		{"unknown role", object(`"a":{"type":"string","x-role":"payee"}`), "/properties/a/x-role", `"payee" is unknown; write one of amount`},
		{"role of a wrong type", object(`"a":{"type":"string","x-role":7}`), "/properties/a/x-role", "must be a string"},
		{"role twice", object(`"a":{"type":"string","x-role":"recipient"},"b":{"type":"string","x-role":"recipient"}`), "/properties/b/x-role", "/a is the recipient already"},
		{"two roles of one place", object(`"a":{"type":"string","x-role":"recipient","allOf":[{"x-role":"account"}]}`), "/properties/a/allOf/0/x-role", "says account"},
		{"role in an array", object(`"a":{"type":"array","items":{"type":"string","x-role":"recipient"}}`), "/properties/a/items/x-role", "can be many"},
		{"role in a tuple", object(`"a":{"type":"array","prefixItems":[{"type":"string","x-role":"recipient"}]}`), "/properties/a/prefixItems/0/x-role", "can be many"},
		{"too many places", `{"type":"object","properties":{"a":{"$ref":"#/$defs/0"}},"$defs":{` + entangled(9) + `}}`, "", "more than 2000 places"},
		{"role by pattern", `{"type":"object","patternProperties":{"^a":{"type":"string","x-role":"recipient"}}}`, "/patternProperties/^a/x-role", "can be many"},
		{"role of the whole", `{"type":"object","x-role":"recipient"}`, "/x-role", "type string or integer"},
		{"role of an object", object(`"a":{"type":"object","x-role":"recipient"}`), "/properties/a/x-role", "type string or integer"},
		{"role of no type", object(`"a":{"x-role":"recipient"}`), "/properties/a/x-role", "type string or integer"},
		{"amount without currency", object(`"a":{"type":"integer","x-role":"amount"}`), "", "none has x-role currency"},
		{"amount of type number", object(`"a":{"type":"number","x-role":"amount"}` + eur), "/properties/a/x-role", "integer in minor units"},
		{"amount of type string", object(`"a":{"type":"string","x-role":"amount"}` + eur), "/properties/a/x-role", "integer in minor units"},
		{"amount of two types", object(`"a":{"type":["integer","string"],"x-role":"amount"}` + eur), "/properties/a/x-role", "integer in minor units"},
		{"amount of no type", object(`"a":{"x-role":"amount"}` + eur), "/properties/a/x-role", "integer in minor units"},
		{"amount trimmed", object(`"a":{"type":"string","x-normalize":"trim","x-role":"amount"}` + eur), "/properties/a/x-role", "integer in minor units"},
		{"currency of type integer", object(`"c":{"type":"integer","x-role":"currency"}`), "/properties/c/x-role", "is a string"},
		{"currency in lower case", object(`"c":{"type":"string","x-role":"currency","x-normalize":"lowercase"}`), "/properties/c/x-normalize", "write currency"},
		{"unknown normaliser", object(`"a":{"type":"string","x-normalize":"upper"}`), "/properties/a/x-normalize", `"upper" is unknown`},
		{"normaliser of a number", object(`"a":{"type":"integer","x-normalize":"trim"}`), "/properties/a/x-normalize", "type string"},
		{"normaliser of an instant", object(`"a":{"type":"string","format":"date-time","x-normalize":"trim"}`), "/properties/a/x-normalize", "instant"},
		{"volatile of a wrong type", object(`"a":{"x-volatile":"yes"}`), "/properties/a/x-volatile", "must be a boolean"},
		{"volatile whole", `{"type":"object","x-volatile":true}`, "/x-volatile", "whole payload"},
		{"volatile element", object(`"a":{"type":"array","items":{"type":"string","x-volatile":true}}`), "/properties/a/items/x-volatile", "not on elements"},
		{"volatile and normalised", object(`"a":{"type":"string","x-volatile":true,"x-normalize":"trim"}`), "/properties/a/x-volatile", "as first received"},
		{"volatile role", object(`"a":{"type":"string","x-volatile":true,"x-role":"recipient"}`), "/properties/a/x-role", "part of the fingerprint"},
		{"role inside what is volatile", object(`"a":{"type":"object","x-volatile":true,"properties":{"b":{"type":"string","x-role":"recipient"}}}`), "/properties/a/properties/b/x-role", "part of the fingerprint"},
		{"mistyped annotation", object(`"a":{"type":"string","x-sensitiv":true}`), "/properties/a/x-sensitiv", "unknown annotation"},
		{"wrongly cased annotation", object(`"a":{"type":"string","X-Role":"recipient"}`), "/properties/a/X-Role", "unknown annotation"},
		{"annotation nobody reads", object(`"a":{"type":"array","contains":{"x-sensitive":true}}`), "/properties/a/contains/x-sensitive", "annotate the property itself"},
		{"annotation in a question", `{"type":"object","if":{"properties":{"a":{"x-sensitive":true}}}}`, "/if/properties/a/x-sensitive", "annotate the property itself"},
		{"endless annotation", `{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object","properties":{"t":{"$ref":"#/$defs/t"},"s":{"type":"string","x-sensitive":true}}}}}`, "/properties/t", "contains itself"},
		{"two patterns", `{"type":"object","patternProperties":{"^a":{},"^b":{}}}`, "/patternProperties", "more than one pattern"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := NewActionType("pay", ActionSpec{Rail: "card", Schema: []byte(c.schema)}, nil)
			if err == nil || a != nil {
				t.Fatalf("it passes")
			}
			for _, e := range each(err) {
				if strings.HasSuffix(e.Pointer, c.pointer) && strings.Contains(e.Error(), c.says) {
					return
				}
			}
			t.Errorf("says %v", err)
		})
	}
}

// entangled writes definitions that each refer to all the others.
func entangled(n int) string {
	var definitions []string
	for i := range n {
		var properties []string
		for j := range n {
			properties = append(properties, fmt.Sprintf(`"p%d":{"$ref":"#/$defs/%d"}`, j, j))
		}
		definitions = append(definitions, fmt.Sprintf(`"%d":{"type":"object","properties":{%s}}`, i, strings.Join(properties, ",")))
	}
	return strings.Join(definitions, ",")
}

// each takes joined errors apart; every one must be a SchemaError of one line.
func each(err error) (all []*SchemaError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, each(e)...)
		}
		return all
	}
	e, ok := errors.AsType[*SchemaError](err)
	if !ok || strings.Contains(e.Error(), "\n") {
		panic(err)
	}
	return append(all, e)
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	_, err := NewActionType("pay", ActionSpec{Mode: "maybe",
		Schema: []byte(`{"type":"object","properties":{"a":{"x-role":"payee"},"b":{"x-volatile":1}}}`)}, nil)
	if got := each(err); len(got) != 4 {
		t.Errorf("%d errors: %v", len(got), err)
	}
	if want := `action type pay, schema /properties/b/x-volatile: must be a boolean`; !strings.Contains(err.Error(), want) {
		t.Errorf("says %v", err)
	}
}

func TestARecursiveSchemaWithoutAnnotationsIsFine(t *testing.T) {
	a := newAction(t, "tree", `{"type":"object","properties":{"tree":{"$ref":"#/$defs/t"}},
		"$defs":{"t":{"type":"object","properties":{"name":{"type":"string"},"trees":{"type":"array","items":{"$ref":"#/$defs/t"}}}}}}`)
	normalize(t, a, `{"tree":{"name":"a","trees":[{"name":"b","trees":[]}]}}`)
	refuses(t, a, `{"tree":{"trees":[{"trees":[{"Name":"b"}]}]}}`, "/tree/trees/0/trees/0/Name", `did you mean "name"?`)
}

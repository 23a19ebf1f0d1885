package ledger

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func normalize(t testing.TB, a *ActionType, payload string) Normal {
	t.Helper()
	n, wrong := a.Normalize(mustParse(t, payload))
	if len(wrong) > 0 {
		t.Fatalf("%s: %v", payload, wrong)
	}
	return n
}

func refuses(t testing.TB, a *ActionType, payload, pointer, says string) {
	t.Helper()
	n, wrong := a.Normalize(mustParse(t, payload))
	if n.Fingerprint != "" || n.Payload != nil {
		t.Errorf("%s has a fingerprint though it is wrong", payload)
	}
	for _, f := range wrong {
		if f.Pointer == pointer && strings.Contains(f.Message, says) {
			return
		}
	}
	t.Errorf("%s: %v, not %q at %s", payload, wrong, says, pointer)
}

// one and other hold that payloads are, or are not, the same request.
func one(t *testing.T, a *ActionType, payloads ...string) {
	t.Helper()
	first := normalize(t, a, payloads[0])
	for _, payload := range payloads[1:] {
		if n := normalize(t, a, payload); n.Fingerprint != first.Fingerprint {
			t.Errorf("%s is another request than %s", payload, payloads[0])
		}
	}
}

func other(t *testing.T, a *ActionType, payloads ...string) {
	t.Helper()
	seen := map[string]string{}
	for _, payload := range payloads {
		n := normalize(t, a, payload)
		if earlier, taken := seen[n.Fingerprint]; taken {
			t.Errorf("%s is the same request as %s", payload, earlier)
		}
		seen[n.Fingerprint] = payload
	}
}

// with puts a member into a payment that is otherwise fine.
func with(member string) string {
	return `{"amount":1000,"currency":"EUR","recipient":"acct_7",` + member + `}`
}

func TestANormalFormIsWhatIsSent(t *testing.T) {
	a := newAction(t, "create_payment", paymentSchema)
	payload := mustParse(t, `{"sdk":{"at":"T1","n":1.0},"reference":"invoice-481","recipient":"acct_7","currency":"eur","amount":125000.0,
		"metadata":{"k":" v "},"lines":[{"trace":"x","text":"a"}],"memo":null}`)
	before := canonical(t, payload)
	n, wrong := a.Normalize(payload)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if canonical(t, payload) != before {
		t.Error("the payload was changed")
	}
	want := `{"amount":125000,"currency":"EUR","lines":[{"text":"a","trace":"x"}],"memo":null,"metadata":{"k":"v"},"recipient":"acct_7","reference":"invoice-481","sdk":{"at":"T1","n":1}}`
	if string(n.Payload) != want {
		t.Errorf("sent: %s", n.Payload)
	}
	want = `{"action_type":"create_payment","payload":{"amount":125000,"currency":"EUR","lines":[{"text":"a"}],"memo":null,"metadata":{"k":"v"},"recipient":"acct_7","reference":"invoice-481"}}`
	if string(n.Canonical) != want {
		t.Errorf("covered: %s", n.Canonical)
	}
	if n.Fingerprint != Fingerprint(n.Canonical) || !strings.HasPrefix(n.Fingerprint, "hf1:sha256:") {
		t.Errorf("fingerprint %s", n.Fingerprint)
	}
	if want := (Terms{Amount: 125000, HasAmount: true, Currency: "EUR", Recipient: "acct_7", Reference: "invoice-481"}); n.Terms != want {
		t.Errorf("terms %+v", n.Terms)
	}
}

func TestCase010ActionTypeIsPartOfTheFingerprint(t *testing.T) {
	charge, refund := newAction(t, "charge", paymentSchema), newAction(t, "refund", paymentSchema)
	const payload = `{"amount":500,"currency":"USD","recipient":"acct_7"}`
	if a, b := normalize(t, charge, payload), normalize(t, refund, payload); a.Fingerprint == b.Fingerprint {
		t.Error("a charge and a refund are one request")
	} else if string(a.Payload) != string(b.Payload) {
		t.Error("the same payload is sent differently")
	}
}

func TestCase005VolatileMembersStayOutOfTheFingerprint(t *testing.T) {
	a := newAction(t, "create_payment", paymentSchema)
	one(t, a, with(`"sdk":{"created_at":"T1"}`), with(`"sdk":{"created_at":"T2"}`), with(`"sdk":{}`), `{"amount":1000,"currency":"EUR","recipient":"acct_7"}`)
	one(t, a, with(`"lines":[{"text":"a","trace":"1"}]`), with(`"lines":[{"text":"a"}]`))
	// Every difference that is not declared volatile is another request.
	other(t, a, with(`"sdk":{"at":"T1"}`), with(`"sdk":{"at":"T1"},"metadata":{"at":"T1"}`), with(`"metadata":{"at":"T2"}`), with(`"metadata":{}`), with(`"lines":[{}]`), with(`"lines":[]`))
	n := normalize(t, a, with(`"sdk":{"e":"e\u0301","d":"2026-01-01T01:00:00+01:00"}`))
	if !strings.Contains(string(n.Payload), `"sdk":{"d":"2026-01-01T01:00:00+01:00","e":"e`+"\u0301"+`"}`) {
		t.Errorf("a volatile member is not sent as it was received: %s", n.Payload)
	}
}

func TestCase025CurrencyCaseIsOneCurrency(t *testing.T) {
	a := newAction(t, "create_payment", paymentSchema)
	code := func(c string) string { return `{"amount":1000,"currency":"` + c + `","recipient":"acct_7"}` }
	one(t, a, code("USD"), code("usd"), code("Usd"))
	one(t, a, code("USDC"), code("usdc"))
	other(t, a, code("USD"), code("EUR"), code("USDC"))
	if n := normalize(t, a, code("usd")); n.Terms.Currency != "USD" || !strings.Contains(string(n.Payload), `"USD"`) {
		t.Errorf("usd is %s, sent as %s", n.Terms.Currency, n.Payload)
	}
	// To Unicode the capital of a long s is an S. It is no currency all the same.
	for _, c := range []string{"", "XXQ", "EURO", " EUR", "EUR ", "u\u017fd", "€"} {
		refuses(t, a, code(c), "/currency", "unknown currency")
	}
	other(t, newAction(t, "note", `{"type":"object","properties":{"c":{"type":"string"}}}`), `{"c":"usd"}`, `{"c":"USD"}`)
	implied := newAction(t, "pay", `{"type":"object","properties":{"c":{"type":"string","x-role":"currency"}}}`)
	one(t, implied, `{"c":"usd"}`, `{"c":"USD"}`)
}

func TestCase026NFC(t *testing.T) {
	a := newAction(t, "create_payment", paymentSchema)
	one(t, a, with(`"memo":"Jos\u00e9"`), with(`"memo":"Jose\u0301"`), with(`"memo":"José"`))
	one(t, a, with(`"metadata":{"k":"\u212b"}`), with(`"metadata":{"k":"\u00c5"}`))
	if n := normalize(t, a, with(`"memo":"Jose\u0301"`)); !strings.Contains(string(n.Payload), "Jos\u00e9") {
		t.Errorf("sent as %s", n.Payload)
	}
	open := newAction(t, "note", `{"type":"object","additionalProperties":true}`)
	one(t, open, `{"a":[{"b":"Jos\u00e9"}]}`, `{"a":[{"b":"Jose\u0301"}]}`)
	// Neither compatibility nor case is folded in a free text.
	other(t, a, with(`"memo":"\ufb01"`), with(`"memo":"fi"`), with(`"memo":"FI"`), with(`"memo":" fi"`))
	// Recipients, accounts and references are compared as they came.
	for _, role := range []string{"account", "reference"} {
		other(t, a, with(`"`+role+`":"Jos\u00e9"`), with(`"`+role+`":"Jose\u0301"`), with(`"`+role+`":"JOS\u00c9"`))
	}
	other(t, a, `{"amount":1,"currency":"EUR","recipient":"Jos\u00e9"}`, `{"amount":1,"currency":"EUR","recipient":"Jose\u0301"}`)
	asked := newAction(t, "pay", `{"type":"object","properties":{"to":{"type":"string","x-role":"recipient","x-normalize":"nfc"}}}`)
	one(t, asked, `{"to":"Jos\u00e9"}`, `{"to":"Jose\u0301"}`)
}

func TestCase028Instants(t *testing.T) {
	a := newAction(t, "create_payment", paymentSchema)
	due := func(s string) string { return with(`"due":"` + s + `"`) }
	one(t, a, due("2026-01-01T00:00:00Z"), due("2026-01-01T00:00:00+00:00"), due("2026-01-01T01:00:00+01:00"),
		due("2025-12-31T19:00:00-05:00"), due("2026-01-01T00:00:00.000Z"), due("2026-01-01t00:00:00z"), due("2026-01-01T00:00:00-00:00"))
	one(t, a, due("2026-01-01T00:00:00.5Z"), due("2026-01-01T00:00:00.50+00:00"))
	other(t, a, due("2026-01-01T00:00:00Z"), due("2026-01-01T00:00:00+01:00"), due("2026-01-01T00:00:00.000000001Z"), due("2026-01-01T00:00:01Z"))
	if n := normalize(t, a, due("2026-01-01T01:00:00.250+01:00")); !strings.Contains(string(n.Payload), `"2026-01-01T00:00:00.25Z"`) {
		t.Errorf("sent as %s", n.Payload)
	}
	for _, s := range []string{"2026-01-01T00:00:00", "2026-01-01", "2026-01-01T00:00Z", "2026-01-01 00:00:00Z", "2026-02-30T00:00:00Z", "", "now",
		"2026-01-01T0:00:00Z", "2026-01-01T00:00:00,5Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00.0000000001Z", "2026-01-01T24:00:00Z",
		"2026-01-01T00:00:60Z", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+01", "0000-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"} {
		refuses(t, a, due(s), "/due", "with its offset")
	}
	// A string that is not declared an instant is compared as it is.
	other(t, a, with(`"memo":"2026-01-01T00:00:00Z"`), with(`"memo":"2026-01-01T00:00:00+00:00"`))
}

func TestWhatSaysTheSameIsOneRequestAndWhatDoesNotIsAnother(t *testing.T) {
	a := newAction(t, "create_payment", paymentSchema)
	one(t, a, with(`"count":1`), with(`"count":1.0`), with(`"count":1e0`), with(`"count":10e-1`))
	one(t, a, with(`"count":0`), with(`"count":-0`), with(`"count":-0.0`))
	one(t, a, with(`"email":"Ana@Example.COM"`), with(`"email":" Ana@example.com "`))
	one(t, a, with(`"rate":"1.50"`), with(`"rate":"1.5"`), with(`"rate":"001.500"`))
	one(t, a, with(`"rate":"0"`), with(`"rate":"-0.00"`), with(`"rate":"000"`))
	one(t, a, with(`"tag":"ABC"`), with(`"tag":"abc"`))
	other(t, a, with(`"memo":null`), with(`"memo":""`), `{"amount":1000,"currency":"EUR","recipient":"acct_7"}`)
	other(t, a, with(`"email":"Ana@example.com"`), with(`"email":"ana@example.com"`)) // the part before the @ is its owner's
	other(t, a, with(`"rate":"1.5"`), with(`"rate":"-1.5"`), with(`"rate":"1.05"`), with(`"rate":"15"`))
	other(t, a, with(`"lines":[{"text":"a"},{"text":"b"}]`), with(`"lines":[{"text":"b"},{"text":"a"}]`))
	other(t, a, with(`"reference":"INV-1"`), with(`"reference":"inv-1"`), with(`"reference":" inv-1"`))
	for _, rate := range []string{"", "1e3", "+1", " 1", ".5", "1,5"} {
		refuses(t, a, with(`"rate":"`+rate+`"`), "/rate", "plain decimal")
	}
}

func TestAPayloadThatBreaksItsSchemaIsRefusedAtItsPlace(t *testing.T) {
	a := newAction(t, "create_payment", paymentSchema)
	for _, c := range []struct{ payload, pointer, says string }{
		{`[]`, "", "must be an object"},
		{`null`, "", "must be an object"},
		{`{}`, "/amount", "is missing"},
		{`{}`, "/recipient", "is missing"},
		{`{"amount":1000,"recipient":"a"}`, "/currency", "is missing"},
		{with(`"Amount":1`), "/Amount", `did you mean "amount"?`},
		{with(`"extra":1`), "/extra", "unknown name"},
		{with(`"a/b~":1`), "/a~1b~0", "unknown name"},
		{with(`"address":{"City":"Oslo"}`), "/address/City", `did you mean "city"?`},
		{with(`"lines":[{},{"txt":"a"}]`), "/lines/1/txt", "unknown name"},
		{with(`"lines":[1]`), "/lines/0", "must be an object, not a number"},
		{with(`"lines":{}`), "/lines", "must be an array, not an object"},
		{with(`"reference":null`), "/reference", "must be a string, not null"},
		{with(`"memo":7`), "/memo", "must be a null or string, not a number"},
		{with(`"memo":"` + strings.Repeat("x", 201) + `"`), "/memo", "at most 200 characters"},
		{with(`"email":"nobody"`), "/email", "no valid email"},
		{with(`"metadata":{"k":1}`), "/metadata/k", "must be a string"},
		{`{"amount":1,"currency":"EUR","recipient":""}`, "/recipient", "at least 1 character"},
		{with(`"reference":"a\u0000b"`), "/reference", "control character"},
		{with(`"reference":"a\nb"`), "/reference", "control character"},
	} {
		refuses(t, a, c.payload, c.pointer, c.says)
	}
}

func TestARefusalNeverShowsWhatWasSent(t *testing.T) {
	a := newAction(t, "pay", `{"type":"object","properties":{
		"a":{"type":"string","pattern":"^x$"},"b":{"enum":["x","y"]},"c":{"const":1},"d":{"type":"string","format":"uuid"},"e":{"type":"integer","minimum":5},
		"f":{"type":"string","maxLength":3},"g":{"anyOf":[{"type":"integer"},{"type":"string","pattern":"^x"}]},"h":{"not":{"type":"string"}},
		"i":{"type":"string","x-normalize":"decimal"},"j":{"type":"string","x-normalize":"currency"},"k":{"type":"string","format":"date-time"},"l":{"oneOf":[{"const":"x"},{"const":"y"}]}}}`)
	for _, name := range strings.Split("abcdfghijkl", "") {
		_, wrong := a.Normalize(map[string]any{name: "hunter2"})
		if len(wrong) == 0 {
			t.Errorf("%s passes", name)
		}
		for _, f := range wrong {
			if strings.Contains(f.Message, "hunter2") || f.Message == "" {
				t.Errorf("%s: %s", f.Pointer, f.Message)
			}
		}
	}
	if _, wrong := a.Normalize(map[string]any{"e": json.Number("4")}); !slices.Equal(wrong, []FieldError{{"/e", "must be at least 5"}}) {
		t.Errorf("got %v", wrong)
	}
}

func TestEveryRuleOfASchemaIsSaidInPlainWords(t *testing.T) {
	for _, c := range []struct{ schema, value, says string }{
		{`{"enum":["a",1,null]}`, `2`, `must be one of "a", 1, null`},
		{`{"const":"a"}`, `"b"`, `must be "a"`},
		{`{"minimum":0.5}`, `0.25`, "must be at least 0.5"},
		{`{"maximum":5}`, `6`, "must be at most 5"},
		{`{"exclusiveMinimum":5}`, `5`, "must be more than 5"},
		{`{"exclusiveMaximum":5}`, `5`, "must be less than 5"},
		{`{"multipleOf":0.1}`, `0.25`, "must be a multiple of 0.1"},
		{`{"minItems":1}`, `[]`, "must have at least 1 element"},
		{`{"maxItems":2}`, `[1,2,3]`, "must have at most 2 elements"},
		{`{"uniqueItems":true}`, `[1,1.0]`, "elements 0 and 1 are equal"},
		{`{"contains":{"const":1}}`, `[2]`, "does not fit the schema: contains"},
		{`{"minProperties":1}`, `{}`, "must have at least 1 member"},
		{`{"maxProperties":1,"additionalProperties":true}`, `{"a":1,"b":2}`, "must have at most 1 member"},
		{`{"propertyNames":{"maxLength":1},"additionalProperties":true}`, `{"ab":1}`, "name the schema does not allow"},
		{`{"minLength":2}`, `"a"`, "must have at least 2 characters"},
		{`{"pattern":"^x$"}`, `"a"`, "does not fit the pattern ^x$"},
		{`{"not":{}}`, `1`, "does not fit the schema"},
		{`false`, `1`, "is not allowed here"},
		{`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, `1`, "more than one alternative"},
		{`{"oneOf":[{"type":"string"},{"type":"null"}]}`, `1`, "none of the alternatives"},
		{`{"anyOf":[{"type":"string"},{"minimum":9}]}`, `1`, "none of the alternatives"},
		{`{"anyOf":[{"type":"string","minLength":9},{"minimum":9}]}`, `1`, "must be at least 9"},
	} {
		a := newAction(t, "rule", `{"type":"object","properties":{"v":`+c.schema+`}}`)
		refuses(t, a, `{"v":`+c.value+`}`, "/v", c.says)
	}
	a := newAction(t, "rule", `{"type":"object","properties":{"a":{},"b":{}},"dependentRequired":{"a":["b"]}}`)
	refuses(t, a, `{"a":1}`, "/b", `is missing; it goes with "a"`)
}

func TestASchemaIsClosedUntilItOpensItself(t *testing.T) {
	for _, c := range []struct{ name, schema, payload, unknown string }{
		{"closed", `{"type":"object","properties":{"a":{}}}`, `{"a":1,"b":1}`, "/b"},
		{"empty", `{"type":"object"}`, `{"b":1}`, "/b"},
		{"closed inside", `{"type":"object","properties":{"a":{"type":"object"}}}`, `{"a":{"b":1}}`, "/a/b"},
		{"closed where nothing is said", `{"type":"object","properties":{"a":{}}}`, `{"a":{"b":1}}`, "/a/b"},
		{"open outside, closed inside", `{"type":"object","additionalProperties":true,"properties":{"a":{"type":"object"}}}`, `{"x":{"y":1},"a":{"b":1}}`, "/a/b"},
		{"open by schema, closed inside it", `{"type":"object","additionalProperties":{"type":"object","properties":{"a":{}}}}`, `{"x":{"a":1,"b":1}}`, "/x/b"},
		{"closed in words", `{"type":"object","additionalProperties":false,"properties":{"a":{}}}`, `{"b":1}`, "/b"},
		{"closed through a reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"properties":{"k":{}}}}}`, `{"a":{"k":1,"b":1}}`, "/a/b"},
		{"closed in an array", `{"type":"object","properties":{"a":{"items":{"properties":{"k":{}}}}}}`, `{"a":[{"k":1},{"b":1}]}`, "/a/1/b"},
		{"closed in a tuple", `{"type":"object","properties":{"a":{"prefixItems":[{},{"properties":{"k":{}}}]}}}`, `{"a":[1,{"b":1}]}`, "/a/1/b"},
		{"closed in what is volatile", `{"type":"object","properties":{"a":{"x-volatile":true}}}`, `{"a":{"b":1}}`, "/a/b"},
		{"beside a pattern", `{"type":"object","patternProperties":{"^k_":{"type":"object"}}}`, `{"k_a":{},"b":1}`, "/b"},
		{"closed below a pattern", `{"type":"object","patternProperties":{"^k_":{"type":"object"}}}`, `{"k_a":{"b":1}}`, "/k_a/b"},
		{"no branch knows it", `{"type":"object","oneOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}`, `{"a":1,"c":1}`, "/c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refuses(t, newAction(t, "note", c.schema), c.payload, c.unknown, "unknown name")
		})
	}
	for _, c := range []struct{ name, schema, payload string }{
		{"open", `{"type":"object","additionalProperties":true}`, `{"a":{"b":[{"c":1}]}}`},
		{"open for strings", `{"type":"object","additionalProperties":{"type":"string"}}`, `{"a":"x"}`},
		{"open when nobody else looked", `{"type":"object","unevaluatedProperties":{"type":"string"}}`, `{"a":"x"}`},
		{"anything goes", `{"type":"object","properties":{"a":true}}`, `{"a":{"b":1}}`},
		{"an array of anything", `{"type":"object","properties":{"a":{"type":"array"}}}`, `{"a":[{"b":1}]}`},
		{"parts put together", `{"type":"object","allOf":[{"properties":{"a":{"properties":{"x":{}}}}},{"properties":{"a":{"properties":{"y":{}}}}}]}`, `{"a":{"x":1,"y":1}}`},
		{"a condition", `{"type":"object","properties":{"a":{"properties":{"x":{},"y":{}}}},"if":{"properties":{"a":{"required":["x"]}}},"then":{"properties":{"a":{"required":["y"]}}}}`, `{"a":{"x":1,"y":1}}`},
		{"one of two", `{"type":"object","oneOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}`, `{"b":1}`},
		{"dependent", `{"type":"object","properties":{"a":{}},"dependentSchemas":{"a":{"properties":{"b":{}}}}}`, `{"a":1,"b":1}`},
		{"by pattern", `{"type":"object","patternProperties":{"^k_":{"type":"integer"}}}`, `{"k_a":1}`},
		{"by condition", `{"type":"object","properties":{"a":{}},"if":{"properties":{"a":{"const":1}}},"then":{"properties":{"b":{}}},"else":{"properties":{"c":{}}}}`, `{"a":1,"b":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			normalize(t, newAction(t, "note", c.schema), c.payload)
		})
	}
	a := newAction(t, "note", `{"type":"object","additionalProperties":false,"properties":{"a":{}}}`)
	refuses(t, a, `{"A":1}`, "/A", `did you mean "a"?`)
}

func TestAnnotationsAreFoundWhereverTheySpeakOfAPlace(t *testing.T) {
	for _, c := range []struct{ name, schema, payload, want string }{
		{"reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"string","x-normalize":"trim"}}}`, `{"a":" x "}`, `{"a":"x"}`},
		{"allOf", `{"type":"object","allOf":[{"properties":{"a":{"type":"string","x-normalize":"trim"}}}]}`, `{"a":" x "}`, `{"a":"x"}`},
		{"oneOf", `{"type":"object","oneOf":[{"properties":{"a":{"type":"string","x-normalize":"trim"}}},false]}`, `{"a":" x "}`, `{"a":"x"}`},
		{"beside a reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/t","x-normalize":"trim"}},"$defs":{"t":{"type":"string"}}}`, `{"a":" x "}`, `{"a":"x"}`},
		{"array", `{"type":"object","properties":{"a":{"items":{"type":"string","x-normalize":"trim"}}}}`, `{"a":[" x "," y"]}`, `{"a":["x","y"]}`},
		{"tuple", `{"type":"object","properties":{"a":{"prefixItems":[{},{"type":"string","x-normalize":"trim"}]}}}`, `{"a":[" x "," y"]}`, `{"a":[" x ","y"]}`},
		{"other members", `{"type":"object","additionalProperties":{"type":"string","x-normalize":"trim"},"properties":{"b":{}}}`, `{"a":" x ","b":" y"}`, `{"a":"x","b":" y"}`},
		{"pattern", `{"type":"object","patternProperties":{"^a":{"type":"string","x-normalize":"trim"}},"properties":{"ab":{}}}`, `{"a":" x ","ab":" y"}`, `{"a":"x","ab":"y"}`},
		{"a name with a slash", `{"type":"object","properties":{"a/b~":{"type":"string","x-normalize":"trim"}}}`, `{"a/b~":" x "}`, `{"a/b~":"x"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if n := normalize(t, newAction(t, "note", c.schema), c.payload); string(n.Payload) != c.want {
				t.Errorf("got %s", n.Payload)
			}
		})
	}
}

// decimalSchema is a payment whose amount is a decimal, below the top.
const decimalSchema = `{"type":"object","properties":{"money":{"type":"object","properties":{
	"value":{"type":["string","null"],"x-role":"amount","x-normalize":"decimal"},"code":{"type":"string","x-role":"currency"}}},
	"to":{"type":"integer","x-role":"recipient"},"customer":{"type":"string","x-role":"customer"},"charge":{"type":"string","x-role":"refund_of"}}}`

func TestAmountsAreReadInTheirCurrency(t *testing.T) {
	a := newAction(t, "refund", decimalSchema)
	money := func(value, code string) string { return `{"money":{"value":"` + value + `","code":"` + code + `"}}` }
	for _, c := range []struct {
		value, code string
		amount      int64
		sent        string
	}{
		{"48", "eur", 4800, "48.00"}, {"48.0", "EUR", 4800, "48.00"}, {"048.00", "EUR", 4800, "48.00"}, {"1250", "JPY", 1250, "1250"},
		{"0.001", "KWD", 1, "0.001"}, {"90.5", "USDC", 90500000, "90.500000"}, {"0", "EUR", 0, "0.00"}, {"-0", "EUR", 0, "0.00"},
	} {
		n := normalize(t, a, money(c.value, c.code))
		if n.Terms.Amount != c.amount || !n.Terms.HasAmount || string(n.Payload) != money(c.sent, strings.ToUpper(c.code)) && !strings.Contains(string(n.Payload), `"value":"`+c.sent+`"`) {
			t.Errorf("%s %s: %+v, sent as %s", c.value, c.code, n.Terms, n.Payload)
		}
	}
	one(t, a, money("48", "EUR"), money("48.00", "eur"))
	other(t, a, money("48", "EUR"), money("48", "USD"), money("4.8", "EUR"))
	for _, c := range []struct{ payload, pointer, says string }{
		{money("48.001", "EUR"), "/money/value", "too many decimals; this currency has 2"},
		{money("48.000", "EUR"), "/money/value", "too many decimals"},
		{money("1.5", "JPY"), "/money/value", "too many decimals; this currency has 0"},
		{money("-1", "EUR"), "/money/value", "must not be negative"},
		{money("1e3", "EUR"), "/money/value", "plain decimal"},
		{money("92233720368547758.08", "EUR"), "/money/value", "too large"},
		{money("48", "WAT"), "/money/code", "unknown currency"},
		{`{"money":{"value":"48"}}`, "/money/code", "an amount says nothing without its currency"},
		{`{"money":{"value":48,"code":"EUR"}}`, "/money/value", "not a number"},
	} {
		refuses(t, a, c.payload, c.pointer, c.says)
	}
	for _, payload := range []string{`{}`, `{"money":{}}`, `{"money":{"value":null,"code":"EUR"}}`, `{"money":{"code":"EUR"}}`} {
		if n := normalize(t, a, payload); n.Terms.HasAmount || n.Terms.Amount != 0 {
			t.Errorf("%s has an amount: %+v", payload, n.Terms)
		}
	}
	n := normalize(t, a, `{"to":7,"customer":"c_91","charge":"pay_92"}`)
	if want := (Terms{Recipient: "7", Customer: "c_91", RefundOf: "pay_92"}); n.Terms != want {
		t.Errorf("terms %+v", n.Terms)
	}

	whole := newAction(t, "pay", paymentSchema)
	for _, c := range []struct{ amount, says string }{
		{"10.5", "without a fraction"}, {"0.1", "without a fraction"}, {"1e-7", "without a fraction"}, {"-1", "must not be negative"},
		{"1e19", "too large"}, {"1e300", "too large"}, {`"10"`, "must be an integer, not a string"}, {"null", "must be an integer, not null"},
	} {
		refuses(t, whole, `{"amount":`+c.amount+`,"currency":"EUR","recipient":"a"}`, "/amount", c.says)
	}
	if n := normalize(t, whole, `{"amount":9007199254740992,"currency":"EUR","recipient":"a"}`); n.Terms.Amount != 1<<53 {
		t.Errorf("terms %+v", n.Terms)
	}
}

func TestWhatDidNotComeFromStrictJSONIsRefused(t *testing.T) {
	a := newAction(t, "pay", `{"type":"object","properties":{"a":{"type":"integer","x-role":"amount"},"c":{"type":"string","x-role":"currency"},"s":{"type":"string"}}}`)
	for _, payload := range []map[string]any{
		{"a": 100, "c": "EUR"}, {"a": int64(100), "c": "EUR"}, {"a": 1.0, "c": "EUR"}, {"a": json.Number("9007199254740993"), "c": "EUR"},
		{"a": json.Number("0x10"), "c": "EUR"}, {"s": "\xff"}, {"s": []string{"a"}},
	} {
		if n, wrong := a.Normalize(payload); len(wrong) == 0 {
			t.Errorf("%#v is read as %s", payload, n.Payload)
		}
	}
	if n, wrong := a.Normalize(map[string]any{"a": json.Number("1.0e2"), "c": "EUR"}); len(wrong) > 0 || n.Terms.Amount != 100 {
		t.Errorf("%+v, %v", n.Terms, wrong)
	}
}

func TestErrorsAreInOrderAndNotWithoutEnd(t *testing.T) {
	a := newAction(t, "note", `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}`)
	_, wrong := a.Normalize(mustParse(t, `{"b":1,"a":1,"c":1}`))
	if len(wrong) != 3 || wrong[0].Pointer != "/a" || wrong[1].Pointer != "/b" || wrong[2].Pointer != "/c" {
		t.Errorf("got %v", wrong)
	}
	many := map[string]any{}
	for i := range 5000 {
		many[fmt.Sprint("x", i)] = nil
	}
	if _, wrong := a.Normalize(many); len(wrong) != maxFieldErrors+1 {
		t.Errorf("%d errors", len(wrong))
	}
}

// purchaseModel is what a payload means, apart from how it is written.
type purchaseModel struct {
	Amount   int64
	Currency string
	To       string
	Memo     *string // nil: absent
	Due      int64   // Unix nanoseconds; 0: absent
	Rate     int64   // thousandths
}

func drawModel(t *rapid.T, label string) purchaseModel {
	texts := []string{"", "José", "Jose", "a<b>&c", "\u2028", "Å", "ﬁ", "fi", "日本"}
	m := purchaseModel{
		Amount:   rapid.Int64Range(0, 3).Draw(t, label+" amount"),
		Currency: rapid.SampledFrom([]string{"EUR", "USD"}).Draw(t, label+" currency"),
		To:       rapid.SampledFrom([]string{"acct_7", "ACCT_7", "Jos\u00e9", "Jose\u0301"}).Draw(t, label+" to"),
		Due:      rapid.SampledFrom([]int64{0, 1767225600e9, 1767225600e9 + 500, 1767229200e9}).Draw(t, label+" due"),
		Rate:     rapid.SampledFrom([]int64{0, 1500, 1050, 15000}).Draw(t, label+" rate"),
	}
	if rapid.Bool().Draw(t, label+" has a memo") {
		memo := rapid.SampledFrom(texts).Draw(t, label+" memo")
		m.Memo = &memo
	}
	return m
}

// write spells a model in one of many ways.
func (m purchaseModel) write(r *rand.Rand) string {
	pick := func(options ...string) string { return options[r.Intn(len(options))] }
	members := []string{
		`"amount":` + pick(fmt.Sprint(m.Amount), fmt.Sprintf("%d.0", m.Amount), fmt.Sprintf("%de0", m.Amount), fmt.Sprintf("%d.00e+0", m.Amount)),
		`"currency":"` + pick(m.Currency, strings.ToLower(m.Currency), m.Currency[:1]+strings.ToLower(m.Currency[1:])) + `"`,
		`"recipient":` + spell(r, m.To),
		fmt.Sprintf(`"rate":"%s%d.%03d%s"`, pick("", "0"), m.Rate/1000, m.Rate%1000, pick("", "00")),
		fmt.Sprintf(`"sdk":{"at":%d}`, r.Intn(1000)),
	}
	if m.Memo != nil {
		members = append(members, `"memo":`+spell(r, []string{*m.Memo, norm.NFD.String(*m.Memo)}[r.Intn(2)]))
	}
	if m.Due != 0 {
		zone := time.FixedZone("", []int{0, 3600, -19800}[r.Intn(3)])
		members = append(members, `"due":"`+time.Unix(0, m.Due).In(zone).Format(pick(time.RFC3339Nano, "2006-01-02T15:04:05.000000000Z07:00"))+`"`)
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, pick(",", " ,\n")) + "}"
}

// spell writes a JSON string with some of its characters escaped.
func spell(r *rand.Rand, s string) string {
	var b strings.Builder
	for _, c := range s {
		if r.Intn(2) == 0 && c < 0x10000 {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return `"` + b.String() + `"`
}

func TestTwoPayloadsHaveOneFingerprintExactlyWhenTheyMeanTheSame(t *testing.T) {
	action := newAction(t, "create_payment", paymentSchema)
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		a := drawModel(t, "a")
		b := a
		if rapid.Bool().Draw(t, "two models") {
			b = drawModel(t, "b")
		}
		textA, textB := a.write(r), b.write(r)
		x := normalForm(t, action, textA)
		y := normalForm(t, action, textB)
		// Memos were drawn in NFC, so models are equal exactly when they mean the same.
		if same := reflect.DeepEqual(a, b); same != (x.Fingerprint == y.Fingerprint) {
			t.Fatalf("%s\n%s\nmean the same: %v; covered %s and %s", textA, textB, same, x.Canonical, y.Canonical)
		}
	})
}

func normalForm(t *rapid.T, a *ActionType, text string) Normal {
	v, err := ParseStrict([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	n, wrong := a.Normalize(v)
	if len(wrong) > 0 {
		t.Fatalf("%s: %v", text, wrong)
	}
	return n
}

func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{
		`{"amount":1000,"currency":"eur","recipient":"acct_7"}`,
		with(`"memo":"Jose\u0301","due":"2026-01-01T01:00:00+01:00","rate":"01.50","tag":"\u0130\u212a"`),
		with(`"sdk":{"a":[1]},"lines":[{"text":"a","trace":"b","secret":"c"}],"metadata":{"k":" v\u00a0"}`),
		with(`"email":" A@B.C ","account":"e\u0301","count":-0.0,"address":{"city":"Oslo"}`),
		`{"Amount":1}`, `[]`, `{"amount":1.5,"currency":"XX"}`,
	} {
		f.Add([]byte(seed))
	}
	payment := newAction(f, "create_payment", paymentSchema)
	open := newAction(f, "note", `{"type":"object","additionalProperties":true,"properties":{"t":{"type":"string","x-normalize":"lowercase"},"e":{"type":"string","x-normalize":"email"}}}`)
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := ParseStrict(raw)
		if err != nil {
			return
		}
		for _, action := range []*ActionType{payment, open} {
			n, wrong := action.Normalize(v)
			if len(wrong) > 0 {
				continue
			}
			sent, err := ParseStrict(n.Payload)
			if err != nil {
				t.Fatalf("%s is not strict JSON: %v", n.Payload, err)
			}
			again, wrong := action.Normalize(sent)
			if len(wrong) > 0 {
				t.Fatalf("%s is sent, but breaks the schema: %v", n.Payload, wrong)
			}
			if !reflect.DeepEqual(n, again) {
				t.Fatalf("%s becomes %s when it is normalised again", n.Payload, again.Payload)
			}
			if n.Fingerprint != Fingerprint(n.Canonical) || Words(n.Fingerprint) == "" {
				t.Fatalf("fingerprint %s", n.Fingerprint)
			}
		}
	})
}

// FuzzNewActionType holds that no schema makes it panic, and that one that
// passes can judge a payload.
func FuzzNewActionType(f *testing.F) {
	f.Add([]byte(paymentSchema), []byte(`{"amount":1}`))
	f.Add([]byte(decimalSchema), []byte(`{"money":{"value":"1","code":"EUR"}}`))
	f.Add([]byte(`{"type":"object","$ref":"#"}`), []byte(`{}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"type":"object","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`), []byte(`{}`))
	f.Add([]byte(`{"type":"object","prefixItems":[true],"items":{"x-sensitive":true,"type":["string"]}}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, schema, payload []byte) {
		a, err := NewActionType("fuzz", ActionSpec{Rail: "card", Schema: schema}, nil)
		if err != nil {
			return
		}
		a.Fields()
		if v, err := ParseStrict(payload); err == nil {
			a.Normalize(v)
		}
	})
}

func BenchmarkNormalize(b *testing.B) {
	action := newAction(b, "create_payment", paymentSchema)
	raw := []byte(`{"amount":125000,"currency":"EUR","recipient":"acct_7","reference":"invoice-481","memo":"thanks"}`)
	b.ReportAllocs()
	for b.Loop() {
		v, err := ParseStrict(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, wrong := action.Normalize(v); len(wrong) > 0 {
			b.Fatal(wrong)
		}
	}
}

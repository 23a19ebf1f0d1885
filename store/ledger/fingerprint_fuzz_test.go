package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// FuzzFingerprint holds that two payloads have one fingerprint exactly when
// their normal forms are equal, judged member by member and not by the bytes
// that are hashed; and that the same payload in another spelling is the same.
func FuzzFingerprint(f *testing.F) {
	for _, pair := range [][2]string{
		{`{"amount":1000,"t":"A"}`, `{"t":"a","amount":1e3}`},
		{`{"t":"Jose\u0301"}`, `{"t":"Jos\u00e9"}`},
		{`{"e":"A@B.C"}`, `{"e":"a@b.c"}`},
		{`{"n":[1,2.5,-0.0],"x":{"y":null}}`, `{"x":{"y":null},"n":[1,2.50,0]}`},
		{`{"n":[1,[2]]}`, `{"n":[[1],2]}`},
		{`{"a":"1"}`, `{"a":1}`},
		{`{"a":{"b":1}}`, `{"a":{"b":1,"c":null}}`},
		{`{"k":9007199254740992}`, `{"k":9007199254740993}`},
		{`{"\ud83d\ude00":"","\ue000":""}`, `{"\ue000":"","\ud83d\ude00":""}`},
	} {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	action := newAction(f, "note", `{"type":"object","additionalProperties":true,"properties":{"t":{"type":"string","x-normalize":"lowercase"},"e":{"type":"string","x-normalize":"email"}}}`)
	normal := func(t *testing.T, raw []byte) (Normal, any, bool) {
		v, err := ParseStrict(raw)
		if err != nil {
			return Normal{}, nil, false
		}
		n, wrong := action.Normalize(v)
		if len(wrong) > 0 {
			return n, nil, false
		}
		form, err := ParseStrict(n.Payload)
		if err != nil {
			t.Fatalf("%s is not strict JSON: %v", n.Payload, err)
		}
		return n, form, true
	}
	f.Fuzz(func(t *testing.T, one, other []byte) {
		a, formA, ok := normal(t, one)
		if !ok {
			return
		}
		respelled := []byte(respell(formA))
		if b, _, ok := normal(t, respelled); !ok || b.Fingerprint != a.Fingerprint {
			t.Fatalf("%s and %s are one payload, accepted %v, with the fingerprints %s and %s", a.Payload, respelled, ok, a.Fingerprint, b.Fingerprint)
		}
		b, formB, ok := normal(t, other)
		if ok && sameForm(formA, formB) != (a.Fingerprint == b.Fingerprint) {
			t.Fatalf("%s and %s: equal %v, fingerprints %s and %s", a.Payload, b.Payload, sameForm(formA, formB), a.Fingerprint, b.Fingerprint)
		}
	})
}

// sameForm compares two values as what they mean.
func sameForm(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameForm)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameForm)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && fraction(a).Cmp(fraction(b)) == 0
	}
	return a == b
}

func fraction(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		panic("no number: " + n.String())
	}
	return r
}

// respell writes a value as nobody would: names backwards, blanks everywhere,
// every character escaped, numbers with an exponent.
func respell(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var members []string
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(v))) {
			members = append(members, respell(name)+" :\t"+respell(v[name]))
		}
		return "{ " + strings.Join(members, "\n, ") + " }"
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, respell(item))
		}
		return "[\r\n" + strings.Join(items, " ,") + "]"
	case string:
		var b strings.Builder
		for _, unit := range utf16.Encode([]rune(v)) {
			fmt.Fprintf(&b, `\u%04X`, unit)
		}
		return `"` + b.String() + `"`
	case json.Number:
		if strings.ContainsAny(v.String(), "eE") {
			return v.String()
		}
		return v.String() + "E+0"
	case bool:
		return fmt.Sprint(v)
	}
	return "null"
}

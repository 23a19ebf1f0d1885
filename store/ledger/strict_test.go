package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustParse(t testing.TB, text string) any {
	t.Helper()
	v, err := ParseStrict([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestStrictJSONIsReadAsItIsWritten(t *testing.T) {
	v := mustParse(t, ` {"a":[1,"x",true,false,null,{"A":"é\n\ud83d\ude00"}],"":{}} `)
	want := map[string]any{
		"a": []any{json.Number("1"), "x", true, false, nil, map[string]any{"A": "é\n😀"}},
		"":  map[string]any{},
	}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("got %#v", v)
	}
}

func TestWhatTwoReadersCouldReadDifferentlyIsRefused(t *testing.T) {
	for _, c := range []struct{ name, text, pointer, says string }{
		{"nothing", ``, "", "nothing here"},
		{"only space", " \n", "", "nothing here"},
		{"cut off", `{"a":[1,`, "/a", "ends in the middle"},
		{"two values", `{} {}`, "", "send exactly one"},
		{"trailing text", `{}x`, "", "not strict JSON"},
		{"single quotes", `{'a':1}`, "", "not strict JSON"},
		{"comment", `{"a":1/*b*/}`, "", "not strict JSON"},
		{"trailing comma", `[1,]`, "", "not strict JSON"},
		{"number as a name", `{1:2}`, "", "double quotes"},
		{"leading zero", `[01]`, "", "not strict JSON"},
		{"leading plus", `[+1]`, "/0", "not strict JSON"},
		{"not a number", `[NaN]`, "/0", "not strict JSON"},
		{"byte order mark", "\ufeff{}", "", "not strict JSON"},
		{"bare control character", "[\"\x01\"]", "/0", "not strict JSON"},
		{"broken UTF-8", "{\"a\":\"\xff\"}", "/a", "UTF-8"},
		{"broken UTF-8 in a name", "{\"\xff\":1}", "", "UTF-8"},
		{"lone high surrogate", `{"a":"\ud800"}`, "/a", `\ud800`},
		{"lone low surrogate", `{"a":"x\udc00y"}`, "/a", `\udc00`},
		{"surrogates in the wrong order", `["\udc00\ud800"]`, "/0", `\udc00`},
		{"one name twice", `{"a":1,"a":1}`, "/a", "appears twice"},
		{"one name twice, escaped", `{"a":1,"\u0061":2}`, "/a", "appears twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseStrict([]byte(c.text))
			e, ok := errors.AsType[*SyntaxError](err)
			if !ok {
				t.Fatalf("error is %v, not a SyntaxError", err)
			}
			if e.Pointer != c.pointer || !strings.Contains(e.Message, c.says) {
				t.Errorf("says %v at %q", e, e.Pointer)
			}
			if e.Offset < 0 || e.Offset > int64(len(c.text)) {
				t.Errorf("offset %d lies outside the text", e.Offset)
			}
		})
	}
}

func TestASyntaxErrorNamesThePlaceAndWhatToDo(t *testing.T) {
	_, err := ParseStrict([]byte(`{"to":{"n":9007199254740993}}`))
	want := "JSON at byte 27, /to/n: a double cannot hold this number exactly; send it as a string"
	if err == nil || err.Error() != want {
		t.Errorf("says %v", err)
	}
	_, err = ParseStrict([]byte(`[] []`))
	if err == nil || !strings.HasPrefix(err.Error(), "JSON at byte 4: ") {
		t.Errorf("says %v", err)
	}
}

func TestDepthEndsAtSixtyFour(t *testing.T) {
	for _, brackets := range []struct{ open, shut string }{{"[", "]"}, {`{"a":`, "}"}} {
		nested := func(n int) []byte {
			inner := strings.TrimSuffix(strings.Repeat(brackets.open, n), `"a":`)
			if brackets.shut == "}" {
				inner = strings.Repeat(brackets.open, n) + "1"
			}
			return []byte(inner + strings.Repeat(brackets.shut, n))
		}
		if _, err := ParseStrict(nested(MaxDepth)); err != nil {
			t.Errorf("%s: 64 levels: %v", brackets.open, err)
		}
		if _, err := ParseStrict(nested(MaxDepth + 1)); err == nil || !strings.Contains(err.Error(), "nested deeper than 64") {
			t.Errorf("%s: 65 levels: %v", brackets.open, err)
		}
	}
	if _, err := ParseStrict(bytes.Repeat([]byte("["), 200_000)); err == nil {
		t.Error("a tower of brackets was read")
	}
}

func TestCase023DuplicateNamesAreRefusedAtAnyDepth(t *testing.T) {
	for text, pointer := range map[string]string{
		`{"amount":100,"amount":100000,"currency":"USD"}`:             "/amount",
		`{"payload":{"amount":100,"amount":100000,"currency":"USD"}}`: "/payload/amount",
		`[[{"a":{"b":[{"c":1,"c":1}]}}]]`:                             "/0/0/a/b/0/c",
		`{"a":{},"b":{"a":{}},"a":{}}`:                                "/a",
	} {
		_, err := ParseStrict([]byte(text))
		e, ok := errors.AsType[*SyntaxError](err)
		if !ok || e.Pointer != pointer || !strings.Contains(e.Message, "send each name once") {
			t.Errorf("%s: %v", text, err)
		}
	}
	mustParse(t, `{"a":1,"A":2}`) // another case is another name
}

func TestCase019NumbersBeyondADoubleAreRefusedNeverConfused(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "-0e7": "0", "0e-99999999999": "0",
		"1": "1", "1.0": "1", "1e0": "1", "10E-1": "1", "0.1": "0.1", "1e-1": "0.1", "-2.50": "-2.5",
		"9007199254740991": "9007199254740991", "9007199254740992": "9007199254740992", "9007199254740994": "9007199254740994",
		"1e21": "1e+21", "1000000000000000000000": "1e+21", "1e23": "1e+23", "5e-324": "5e-324",
		"1.7976931348623157e308": "1.7976931348623157e+308", "0.000001": "0.000001", "1E-7": "1e-7",
		"123456789.125": "123456789.125", "0." + strings.Repeat("0", 400) + "1e401": "1",
	} {
		if v := mustParse(t, text); v != json.Number(want) {
			t.Errorf("%s is read as %v, not as %s", text, v, want)
		}
	}
	for _, text := range []string{
		"9007199254740993", "-9007199254740993", "9007199254740993.0", "9.007199254740993e15",
		"9223372036854775807", "18446744073709551615", "1970670598291982290", "1970670598291982301",
		"1e400", "-1e400", "1e-400", "4e-324", "0.1000000000000000055511151231257827", "333333333.33333329",
		"1e99999999999999999999", "1" + strings.Repeat("0", 400), "3.141592653589793238",
	} {
		if v, err := ParseStrict([]byte(`{"n":` + text + `}`)); err == nil {
			t.Errorf("%s was read as %v", text, v)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		// No two integers up to 10^30 that are both read are read as one.
		digits := rapid.StringMatching(`[1-9][0-9]{0,29}`)
		a, b := digits.Draw(t, "a"), digits.Draw(t, "b")
		if rapid.Bool().Draw(t, "near") { // a neighbour is the likelier mistake
			n, _ := new(big.Int).SetString(a, 10)
			b = n.Add(n, big.NewInt(rapid.Int64Range(-3, 3).Draw(t, "step"))).String()
		}
		x, errX := ParseStrict([]byte(a))
		y, errY := ParseStrict([]byte(b))
		if errX == nil && errY == nil && (x == y) != (a == b) {
			t.Fatalf("%s and %s are read as %v and %v", a, b, x, y)
		}
		if errX == nil && !sameRational(a, string(x.(json.Number))) {
			t.Fatalf("%s is read as %v", a, x)
		}
	})
}

// sameRational compares decimals with exact arithmetic.
func sameRational(a, b string) bool {
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}

func TestCase020AnIntegerIsTheSameWhereverItIsShownOrNotReadAtAll(t *testing.T) {
	_, err := ParseStrict([]byte(`{"recipient_id":9223372036854775807}`))
	if e, ok := errors.AsType[*SyntaxError](err); !ok || e.Pointer != "/recipient_id" || !strings.Contains(e.Message, "send it as a string") {
		t.Errorf("the largest int64 as a number: %v", err)
	}
	action := newAction(t, "pay", `{"type":"object","properties":{"recipient_id":{"type":"string","x-role":"recipient"}}}`)
	normal := normalize(t, action, `{"recipient_id":"9223372036854775807"}`)
	if got := string(normal.Payload); got != `{"recipient_id":"9223372036854775807"}` {
		t.Errorf("sent as %s", got)
	}
	if normal.Terms.Recipient != "9223372036854775807" {
		t.Errorf("shown as %s", normal.Terms.Recipient)
	}
}

func TestDecodeObjectRefusesWhatItDoesNotKnow(t *testing.T) {
	object, err := DecodeObject([]byte(`{"operation_id":"a","payload":{"anything":1}}`), "operation_id", "payload")
	if err != nil || object["operation_id"] != "a" {
		t.Fatalf("got %v, %v", object, err)
	}
	for _, c := range []struct{ text, pointer, says string }{
		{`{"payload":{},"extra":1}`, "/extra", "leave it out"},
		{`{"Payload":{}}`, "/Payload", `did you mean "payload"?`},
		{`{"a/b":1}`, "/a~1b", "unknown name"},
		{`[]`, "", "send a JSON object"},
		{`null`, "", "send a JSON object"},
		{`{"payload":{"a":1,"a":1}}`, "/payload/a", "twice"},
	} {
		_, err := DecodeObject([]byte(c.text), "operation_id", "payload")
		e, ok := errors.AsType[*SyntaxError](err)
		if !ok || e.Pointer != c.pointer || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	if _, err := DecodeObject([]byte(`{"a":1}`)); err == nil {
		t.Error("with no name allowed, a name was accepted")
	}
	if _, err := DecodeObject([]byte(`{}`)); err != nil {
		t.Error(err)
	}
}

func FuzzParseStrict(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.50,-0,1e21,"é\ud83d\ude00",null,true]}`, `{"a":1,"a":2}`, `9007199254740993`, `1e400`, "\"\xff\"", `"\ud800"`,
		`[[[[]]]]`, `{"b":2,"a":{"d":1,"c":"<&>\u2028"}}`, `{} x`, ``, `0.1`, `{"":{"~/":0}}`, `"\u0000"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		v, err := ParseStrict(raw)
		if !bytes.Equal(raw, before) {
			t.Fatal("the text was changed by reading it")
		}
		if err != nil {
			if _, ok := errors.AsType[*SyntaxError](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		agreesWithStandardLibrary(t, raw, v)
		canonical, err := Canonical(v)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseStrict(canonical)
		if err != nil {
			t.Fatalf("own canonical form %s: %v", canonical, err)
		}
		if !reflect.DeepEqual(v, again) {
			t.Fatalf("%s is read as %v, its canonical form as %v", raw, v, again)
		}
		if places := Diff(v, again); len(places) > 0 {
			t.Fatalf("differs at %v", places)
		}
	})
}

// agreesWithStandardLibrary holds that whatever is accepted means the same to
// an ordinary reader of JSON.
func agreesWithStandardLibrary(t *testing.T, raw []byte, v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var theirs any
	if err := d.Decode(&theirs); err != nil {
		t.Fatalf("encoding/json refuses %s: %v", raw, err)
	}
	if err := sameValue(v, theirs); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
}

func sameValue(a, b any) error {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return fmt.Errorf("%v is not %v", a, b)
		}
		for name := range x {
			if err := sameValue(x[name], y[name]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return fmt.Errorf("%v is not %v", a, b)
		}
		for i := range x {
			if err := sameValue(x[i], y[i]); err != nil {
				return err
			}
		}
		return nil
	case json.Number:
		// Exact arithmetic cannot afford every exponent; a float can compare those.
		y, ok := b.(json.Number)
		f, _ := x.Float64()
		g, err := y.Float64()
		if !ok || err != nil || f != g || len(y) < 40 && !strings.ContainsAny(y.String(), "eE") && !sameRational(x.String(), y.String()) {
			return fmt.Errorf("%v is not %v", a, b)
		}
		return nil
	}
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("%v is not %v", a, b)
	}
	return nil
}

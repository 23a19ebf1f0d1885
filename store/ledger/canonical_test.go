package ledger

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

func canonical(t testing.TB, v any) string {
	t.Helper()
	b, err := Canonical(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCanonicalFormIsRFC8785(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"order by UTF-16, RFC 8785 section 3.2.3",
			`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`,
			"{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}"},
		{"strings, RFC 8785 section 3.2.2.2",
			`"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`,
			`"€$\u000f\nA'B\"\\\\\"/"`},
		{"literals and space", " [ null , true , false ] ", `[null,true,false]`},
		{"numbers", `[4.50,2e-3,0.000000000000000000000000001,-0.0,1E30]`, `[4.5,0.002,1e-27,0,1e+30]`},
		{"nothing is escaped for HTML or JavaScript", `"<&>\u2028\u2029\u007f"`, "\"<&>\u2028\u2029\u007f\""},
		{"control characters", `"\u0000\b\t\n\f\r\u001f"`, `"\u0000\b\t\n\f\r\u001f"`},
		{"empty", `{"b":{},"a":[],"":""}`, `{"":"","a":[],"b":{}}`},
		{"a name that begins another", `{"ab":1,"a":2,"B":3}`, `{"B":3,"a":2,"ab":1}`},
	} {
		if got := canonical(t, mustParse(t, c.text)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// The samples of RFC 8785, appendix B.
func TestNumbersAreWrittenAsRFC8785Says(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0", 0x8000000000000000: "0",
		0x0000000000000001: "5e-324", 0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308", 0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992", 0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22", 0x44b52d02c7e14af6: "1e+23", 0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000", 0x444b1ae4d6e2ef4f: "999999999999999900000", 0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7", 0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332", 0x41b3de4355555554: "333333333.33333325", 0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334", 0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333", 0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		if got := canonical(t, math.Float64frombits(bits)); got != want {
			t.Errorf("%016x: got %s, want %s", bits, got, want)
		}
		if got := canonical(t, mustParse(t, want)); got != want {
			t.Errorf("%s becomes %s", want, got)
		}
	}
}

func TestWhatHasNoExactFormHasNoCanonicalOne(t *testing.T) {
	for _, v := range []any{
		json.Number("9007199254740993"), int64(math.MaxInt64), uint64(math.MaxUint64), math.NaN(), math.Inf(1),
		json.Number("0x10"), json.Number("1_0"), json.Number(""), json.Number("Inf"), json.Number(" 1"), json.Number("01"),
		"\xff", map[string]any{"\xff": 1}, []any{struct{}{}}, []string{"a"}, float32(1),
	} {
		if b, err := Canonical(v); err == nil {
			t.Errorf("%#v became %s", v, b)
		}
	}
	if got := canonical(t, map[string]any{"a": 1, "b": int64(-2), "c": uint64(3), "d": 0.5}); got != `{"a":1,"b":-2,"c":3,"d":0.5}` {
		t.Errorf("Go's numbers become %s", got)
	}
}

func TestCase022KeyOrderAndEscapingNeverMatter(t *testing.T) {
	spellings := []string{
		`{"b":2,"a":{"d":1,"c":"<&>\u2028"}}`,
		`{"a":{"c":"\u003c\u0026\u003e` + "\u2028" + `","d":1.0},"b":2e0}`,
		"{ \"b\" :\t2, \"\\u0061\":{\"d\":10e-1,\n\"c\":\"<\\u0026>\\u2028\"}}",
	}
	action := newAction(t, "note", `{"type":"object","additionalProperties":true}`)
	want := normalize(t, action, spellings[0])
	if got := string(want.Canonical); got != "{\"action_type\":\"note\",\"payload\":{\"a\":{\"c\":\"<&>\u2028\",\"d\":1},\"b\":2}}" {
		t.Errorf("canonical form %s", got)
	}
	for _, text := range spellings[1:] {
		got := normalize(t, action, text)
		if got.Fingerprint != want.Fingerprint || !bytes.Equal(got.Payload, want.Payload) {
			t.Errorf("%s has fingerprint %s over %s", text, got.Fingerprint, got.Canonical)
		}
	}
}

// jsonValue draws any value that strict JSON can hold.
func jsonValue(depth int) *rapid.Generator[any] {
	scalars := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.String().AsAny(),
		rapid.Custom(func(t *rapid.T) any {
			n := rapid.Int64Range(-1<<53, 1<<53).Draw(t, "n")
			return json.Number(canonicalOf(n))
		}),
		rapid.Custom(func(t *rapid.T) any { return json.Number(canonicalOf(rapid.Float64().Draw(t, "f"))) }),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	inner := rapid.Deferred(func() *rapid.Generator[any] { return jsonValue(depth - 1) })
	return rapid.OneOf(append(scalars, rapid.SliceOfN(inner, 0, 4).AsAny(), rapid.MapOfN(rapid.String(), inner, 0, 4).AsAny())...)
}

func canonicalOf(v any) string {
	b, err := Canonical(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestParsingTheCanonicalFormGivesTheValueBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := jsonValue(3).Draw(t, "v")
		b, err := Canonical(v)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseStrict(b)
		if err != nil {
			t.Fatal(err)
		}
		if places := Diff(v, again); len(places) > 0 {
			t.Fatalf("%s differs at %v", b, places)
		}
		twice, err := Canonical(again)
		if err != nil || !bytes.Equal(b, twice) {
			t.Fatalf("%s becomes %s, %v", b, twice, err)
		}
	})
}

func TestNamesStandInTheOrderOfTheirUTF16Units(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.String(), 2, 8, rapid.ID[string]).Draw(t, "names")
		object := map[string]any{}
		for _, name := range names {
			object[name] = true
		}
		order := nameOrder([]byte(canonicalOf(object)))[""]
		for i := 1; i < len(order); i++ {
			if compareUnits(utf16.Encode([]rune(order[i-1])), utf16.Encode([]rune(order[i]))) >= 0 {
				t.Fatalf("%q stands before %q", order[i-1], order[i])
			}
		}
		if len(order) != len(names) {
			t.Fatalf("%d names became %d", len(names), len(order))
		}
	})
}

func compareUnits(a, b []uint16) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
}

func BenchmarkCanonical(b *testing.B) {
	v := mustParse(b, `{"amount":125000,"currency":"EUR","recipient":"acct_7","reference":"invoice-481","memo":"`+strings.Repeat("x", 200)+`"}`)
	for b.Loop() {
		if _, err := Canonical(v); err != nil {
			b.Fatal(err)
		}
	}
}

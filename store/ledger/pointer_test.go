package ledger

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The document of RFC 6901, section 5.
const pointed = `{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}`

func TestGetFollowsRFC6901(t *testing.T) {
	v := mustParse(t, pointed)
	for pointer, want := range map[string]string{
		"": canonical(t, v), "/foo": `["bar","baz"]`, "/foo/0": `"bar"`, "/": "0", "/a~1b": "1", "/c%d": "2",
		"/e^f": "3", "/g|h": "4", `/i\j`: "5", `/k"l`: "6", "/ ": "7", "/m~0n": "8",
	} {
		if got, ok := Get(v, pointer); !ok || canonical(t, got) != want {
			t.Errorf("%q leads to %v", pointer, got)
		}
	}
	for _, pointer := range []string{"foo", "/foo/2", "/foo/-", "/foo/00", "/foo/+0", "/foo/-1", "/foo/0/x", "/nope", "/m~n", "/m~", "/m~2n", "/FOO"} {
		if got, ok := Get(v, pointer); ok {
			t.Errorf("%q leads to %v", pointer, got)
		}
	}
}

func TestSetMakesWhatIsMissingAndGoesThroughObjectsOnly(t *testing.T) {
	for _, c := range []struct{ before, pointer, after string }{
		{`{}`, "/a", `{"a":"x"}`},
		{`{"a":1}`, "/a", `{"a":"x"}`},
		{`{}`, "/metadata/operation", `{"metadata":{"operation":"x"}}`},
		{`{"metadata":{"b":1}}`, "/metadata/operation/id", `{"metadata":{"b":1,"operation":{"id":"x"}}}`},
		{`{}`, "/a~1b/~0", `{"a/b":{"~":"x"}}`},
		{`{}`, "/", `{"":"x"}`},
	} {
		v := mustParse(t, c.before)
		if err := Set(v, c.pointer, "x"); err != nil || canonical(t, v) != c.after {
			t.Errorf("%s with %s: %s, %v", c.before, c.pointer, canonical(t, v), err)
		}
	}
	for _, c := range []struct{ before, pointer, says string }{
		{`{}`, "", "whole value"},
		{`{}`, "a", "no JSON Pointer"},
		{`{}`, "/a~", "no JSON Pointer"},
		{`[]`, "/0", "not an object"},
		{`{"a":{"b":1}}`, "/a/b/c", "at /a/b is not an object"},
		{`{"a":[{}]}`, "/a/0/b", "at /a is not an object"},
		{`{"a":null}`, "/a/b", "at /a is not an object"},
	} {
		v := mustParse(t, c.before)
		if err := Set(v, c.pointer, "x"); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s with %q: %v", c.before, c.pointer, err)
		}
		if canonical(t, v) != c.before {
			t.Errorf("%s became %s by an error", c.before, canonical(t, v))
		}
	}
}

func TestDiffNamesTheSmallestPlaces(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want []string
	}{
		{`{"a":1}`, `{"a":1.0}`, nil},
		{`{"a":1}`, `{"a":2}`, []string{"/a"}},
		{`{"a":1}`, `{"a":"1"}`, []string{"/a"}},
		{`{"a":null}`, `{}`, []string{"/a"}},
		{`{"a":null}`, `{"a":""}`, []string{"/a"}},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3,"d":4}}`, []string{"/a/c", "/a/d"}},
		{`{"z":1,"a":[1,2,3]}`, `{"a":[1,5]}`, []string{"/a/1", "/a/2", "/z"}},
		{`[[]]`, `[{}]`, []string{"/0"}},
		{`[]`, `{}`, []string{""}},
		{`1`, `2`, []string{""}},
		{`{"x/y":{"~":1}}`, `{"x/y":{"~":2}}`, []string{"/x~1y/~0"}},
		{`{"amount":1,"metadata":{"order":"1"}}`, `{"amount":1}`, []string{"/metadata"}},
	} {
		a, b := mustParse(t, c.a), mustParse(t, c.b)
		if got := Diff(a, b); !slices.Equal(got, c.want) {
			t.Errorf("%s and %s differ at %v", c.a, c.b, got)
		}
		if got := Diff(b, a); !slices.Equal(got, c.want) {
			t.Errorf("%s and %s differ at %v the other way round", c.a, c.b, got)
		}
	}
}

func TestDiffIsEmptyExactlyForOneValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := jsonValue(2).Draw(t, "a"), jsonValue(2).Draw(t, "b")
		places := Diff(a, b)
		if (len(places) == 0) != (canonicalOf(a) == canonicalOf(b)) {
			t.Fatalf("%s and %s differ at %v", canonicalOf(a), canonicalOf(b), places)
		}
		for _, place := range places {
			x, inA := Get(a, place)
			y, inB := Get(b, place)
			if !inA && !inB || inA && inB && reflect.DeepEqual(x, y) {
				t.Fatalf("%q is named, but is the same in both", place)
			}
		}
	})
}

func FuzzPointer(f *testing.F) {
	f.Add(pointed, "/foo/0", "/a~1b")
	f.Add(`{"a":{"b":[1,{"c":2}]}}`, "/a/b/1/c", "/a/x/~0~1")
	f.Fuzz(func(t *testing.T, text, pointer, place string) {
		v, err := ParseStrict([]byte(text))
		if err != nil {
			return
		}
		Get(v, pointer)
		if err := Set(v, place, "x"); err != nil {
			return
		}
		if got, ok := Get(v, place); !ok || got != "x" {
			t.Fatalf("set at %q, found %v there", place, got)
		}
	})
}

package ledger

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestProviderKeyIsAUUIDv4(t *testing.T) {
	shape := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.String()
		k := ProviderKey(part.Draw(t, "instance"), part.Draw(t, "tenant"), part.Draw(t, "id"), part.Draw(t, "account"))
		if !shape.MatchString(k) {
			t.Fatalf("%q", k)
		}
	})
}

func TestOrderIDIsReadableAloud(t *testing.T) {
	shape := regexp.MustCompile(`^ord_[0-9A-HJKMNP-TV-Z]{26}$`)
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.String()
		if id := OrderID(part.Draw(t, "instance"), part.Draw(t, "tenant"), part.Draw(t, "id")); !shape.MatchString(id) {
			t.Fatalf("%q", id)
		}
	})
}

// The provider has seen these keys: a build that makes others pays twice after
// an upgrade or a restore.
func TestKeysAreTheSameForEver(t *testing.T) {
	for got, want := range map[string]string{
		OrderID("i1", "t1", "inv-481-charge"):                "ord_REX95E1RNSV0WMXEXJKQXPBGV1",
		ProviderKey("i1", "t1", "inv-481-charge", "live-eu"): "01c17686-af58-4b53-b759-645adb33fd76",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestKeysDoNotCollideWherePartsAreShifted(t *testing.T) {
	parts := [][4]string{
		{"a", "b", "c", "d"}, {"ab", "", "c", "d"}, {"", "ab", "c", "d"}, {"a", "bc", "", "d"}, {"a", "b", "cd", ""},
		{"a", "", "bc", "d"}, {"a", "b", "", "cd"}, {"", "", "", "abcd"}, {"abcd", "", "", ""}, {"b", "a", "c", "d"}, {"a", "b", "d", "c"},
		{"a\x00", "b", "c", "d"}, {"a", "\x00b", "c", "d"},
	}
	keys, orders := map[string][4]string{}, map[string][4]string{}
	for _, p := range parts {
		key := ProviderKey(p[0], p[1], p[2], p[3])
		if other, taken := keys[key]; taken {
			t.Errorf("%q and %q share a key", p, other)
		}
		keys[key] = p
		order := OrderID(p[0], p[1], p[2])
		if other, taken := orders[order]; taken && [3]string(other[:3]) != [3]string(p[:3]) {
			t.Errorf("%q and %q share an order id", p, other)
		}
		orders[order] = p
	}
}

// fixedAtRegistration are the fields that the row's hash covers.
var fixedAtRegistration = []string{
	"TenantID", "OperationID", "OrderID", "ProviderKey", "ActionType", "ActionVersion", "Effect",
	"Fingerprint", "Canonical", "Payload", "Terms", "Rail", "RailAddress", "RailAccount", "Agent", "TokenID", "Owner",
}

func TestRowHashCoversEverythingThatWasFixed(t *testing.T) {
	base := Operation{}
	for _, name := range fixedAtRegistration {
		o := base
		field := reflect.ValueOf(&o).Elem().FieldByName(name)
		if name != "Terms" {
			change(field)
			if o.HashRow() == base.HashRow() {
				t.Errorf("a change of %s keeps the hash", name)
			}
			continue
		}
		for i := range field.NumField() {
			o = base
			change(reflect.ValueOf(&o).Elem().FieldByName("Terms").Field(i))
			if o.HashRow() == base.HashRow() {
				t.Errorf("a change of Terms.%s keeps the hash", field.Type().Field(i).Name)
			}
		}
	}
	moved := Operation{Status: Ready, Detail: "x", Attempts: 3, Fence: 9, Version: 4, UpdatedAt: 5}
	if moved.HashRow() != base.HashRow() {
		t.Error("how far it got changes the hash")
	}
	if a, b := (Operation{Agent: "a", TokenID: "b"}), (Operation{Agent: "ab"}); a.HashRow() == b.HashRow() {
		t.Error("parts that are shifted share a hash")
	}
}

func change(field reflect.Value) {
	switch field.Kind() {
	case reflect.String:
		field.SetString("changed")
	case reflect.Int64:
		field.SetInt(7)
	case reflect.Bool:
		field.SetBool(true)
	case reflect.Slice:
		field.SetBytes([]byte("changed"))
	default:
		panic("a field of a new kind: " + field.Kind().String())
	}
}

func TestRequestHashCoversEveryByte(t *testing.T) {
	base := Request{Method: "POST", URL: "https://a/b", Header: [][2]string{{"A", "1"}, {"B", "2"}}, Body: []byte("x")}
	for name, r := range map[string]Request{
		"method":       {Method: "PUT", URL: base.URL, Header: base.Header, Body: base.Body},
		"url":          {Method: base.Method, URL: "https://a/c", Header: base.Header, Body: base.Body},
		"body":         {Method: base.Method, URL: base.URL, Header: base.Header, Body: []byte("y")},
		"header value": {Method: base.Method, URL: base.URL, Header: [][2]string{{"A", "1"}, {"B", "3"}}, Body: base.Body},
		"header order": {Method: base.Method, URL: base.URL, Header: [][2]string{{"B", "2"}, {"A", "1"}}, Body: base.Body},
		"header count": {Method: base.Method, URL: base.URL, Header: base.Header[:1], Body: base.Body},
	} {
		if r.HashRequest() == base.HashRequest() {
			t.Errorf("another %s keeps the hash", name)
		}
	}
	base.Display, base.SHA256 = "shown", "stored"
	if again := base; again.HashRequest() != (Request{Method: "POST", URL: "https://a/b", Header: [][2]string{{"A", "1"}, {"B", "2"}}, Body: []byte("x")}).HashRequest() || strings.ToLower(base.HashRequest()) != base.HashRequest() {
		t.Error("what is only shown changes the hash")
	}
}

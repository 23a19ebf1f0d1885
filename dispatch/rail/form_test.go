package rail

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast/store/ledger"
)

func TestFormsSayWhatTheJSONSaid(t *testing.T) {
	for _, c := range []struct{ payload, want, refused string }{
		{`{"amount":125000,"b":true,"c":false}`, "amount=125000&b=true&c=false", ""},
		{`{"z":1,"a":2}`, "a=2&z=1", ""},
		{`{"a":{"b":{"c":"d"}}}`, "a[b][c]=d", ""},
		{`{"a":["x","y"]}`, "a[0]=x&a[1]=y", ""},
		{`{"a":[{"b":"c"},{"b":"d"}]}`, "a[0][b]=c&a[1][b]=d", ""},
		{`{"n":9007199254740992}`, "n=9007199254740992", ""},
		{`{"n":-0}`, "n=0", ""},
		{`{"n":0.1}`, "n=0.1", ""},
		{`{"n":100000000000000000000}`, "n=100000000000000000000", ""},
		{`{"s":""}`, "s=", ""},
		{`{"s":"a b&c=d+e%f[g]é"}`, "s=a+b%26c%3Dd%2Be%25f%5Bg%5D%C3%A9", ""},
		{`{"a b&c":"d"}`, "a+b%26c=d", ""},
		{`{}`, "", ""},
		{`{"a":{"b":null}}`, "", "/a/b is null"},
		{`{"a":[null]}`, "", "/a/0 is null"},
		{`{"a":[]}`, "", "/a is an empty list"},
		{`{"a":{}}`, "", "/a is an empty object"},
		{`{"a[b]":1}`, "", "/a[b] has an empty name or one with a bracket"},
		{`{"a":{"":1}}`, "", "/a/ has an empty name"},
		{`{"a/b":null}`, "", "/a~1b is null"},
		{`{"n":1e300}`, "", "/n is a number too large"},
		{`{"n":1e-9}`, "", "/n is a number too large or too small"},
		{`[1]`, "", "the payload is no object"},
	} {
		v, err := ledger.ParseStrict([]byte(c.payload))
		if err != nil {
			t.Fatal(err)
		}
		got, err := encodeForm(v)
		switch {
		case c.refused == "" && (err != nil || string(got) != c.want):
			t.Errorf("%s is %s, %v; want %s", c.payload, got, err, c.want)
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s is %s, %v; want %q", c.payload, got, err, c.refused)
		}
	}
}

// No text may leave its place: what a form parser reads is the value that stood
// at the one member.
func FuzzFormTextsStayInTheirPlace(f *testing.F) {
	f.Add("metadata", "a&b=c")
	f.Add("x=y", "%00]")
	f.Fuzz(func(t *testing.T, name, text string) {
		if !utf8.ValidString(name) || !utf8.ValidString(text) {
			return
		}
		form, err := encodeForm(map[string]any{"top": map[string]any{name: text}, "last": true})
		if err != nil {
			return
		}
		got, err := url.ParseQuery(string(form))
		if err != nil || len(got) != 2 || got.Get("top["+name+"]") != text || got.Get("last") != "true" {
			t.Errorf("%q=%q is %s: %v, %v", name, text, form, got, err)
		}
	})
}

func TestAFormBodyCarriesStampAndKeyAsWell(t *testing.T) {
	r := mustRail(t, with(card("https://api.example.com"), func(c *Config) {
		c.Send.Encoding, c.Dedupe.Header, c.Dedupe.Body = "form", "", "/request_id"
	}))
	o := payment()
	req := mustRender(t, r, o)
	want := "amount=125000&currency=EUR&metadata[operation]=" + o.OrderID + "&recipient=acct_7&reference=invoice-481&request_id=" + o.ProviderKey
	if string(req.Body) != want || !strings.Contains(req.Display, "Content-Type: application/x-www-form-urlencoded\n") {
		t.Errorf("%s", req.Display)
	}
	plain := mustRail(t, with(card("https://api.example.com"), func(c *Config) {
		c.Send.Encoding, c.Dedupe, c.Stamp, c.Lookup = "form", Dedupe{By: "none"}, Stamp{}, Lookup{}
	}))
	if req := mustRender(t, plain, o); string(req.Body) != "amount=125000&currency=EUR&recipient=acct_7&reference=invoice-481" {
		t.Errorf("%s", req.Body)
	}
	o.Payload = []byte(`{"amount":null}`)
	if _, err := plain.Render(o); err == nil || !strings.Contains(err.Error(), "/amount is null, which a form cannot say") {
		t.Errorf("%v", err)
	}
}

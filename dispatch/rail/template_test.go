package rail

import (
	"net/url"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

func TestPlaceholdersAreEscapedForTheirPlace(t *testing.T) {
	o := payment()
	o.Terms.Reference = "a b/c&d=e?f#g%h+ü"
	o.Receipt = &ledger.Receipt{ID: "pay_1"}
	o.Payload = []byte(`{"id":"x/y","n":12,"a/b":"slash","deep":{"list":["zero","one"]}}`)
	for path, want := range map[string]string{
		"/p/{reference}":                   "/p/a%20b%2Fc&d=e%3Ff%23g%25h+%C3%BC",
		"/p?r={reference}":                 "/p?r=a+b%2Fc%26d%3De%3Ff%23g%25h%2B%C3%BC",
		"/p/{order_id}?k={provider_key}":   "/p/" + o.OrderID + "?k=" + o.ProviderKey,
		"/p/{operation_id}/x/{receipt_id}": "/p/inv-481-charge/x/pay_1",
		"/p/{/id}/{/n}/{/a~1b}":            "/p/x%2Fy/12/slash",
		"/p/{/deep/list/1}-{/n}":           "/p/one-12",
		"/plain%20path?x=1":                "/plain%20path?x=1",
	} {
		tpl, err := parseTemplate(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, err := tpl.fill(o); got != want || err != nil {
			t.Errorf("%s\n got %s %v\nwant %s", path, got, err, want)
		}
	}
}

func TestTemplatesThatLeadElsewhereAreRefused(t *testing.T) {
	for _, path := range []string{
		"payments", "//evil.example/x", "https://evil.example/", "/a b", "/a\r\nHost: x", "/a\x00", "/ü", "/a#b", `/a\b`,
		"/a/../b", "/./a", "/a/%2e%2E/b", "/{order_id", "/order_id}", "/{}", "/{order}", "/{Order_ID}", "/{ order_id}", "/{/a~2}", "/{{order_id}}", "/%2{order_id}", "/%{order_id}", "/%zz", "/a%2", "/a%",
	} {
		if _, err := parseTemplate(path); err == nil {
			t.Errorf("%q is accepted", path)
		}
	}
}

func TestValuesCannotChangeThePath(t *testing.T) {
	tpl, err := parseTemplate("/records/{reference}/x?r={reference}")
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", ".", "..", "../admin", "a/../b", `..\admin`, "%2e%2e", "a\r\nHost: evil", "a\x00b", "\u0085"} {
		o := payment()
		o.Terms.Reference = value
		if got, err := tpl.fill(o); err == nil {
			t.Errorf("%q leads to %s", value, got)
		}
	}
	o := payment()
	for _, payload := range []string{`{"id":null}`, `{"id":{}}`, `{"id":true}`, `{"id":[]}`, `{}`, `{"id":""}`} {
		pointer, _ := parseTemplate("/records/{/id}")
		o.Payload = []byte(payload)
		if got, err := pointer.fill(o); err == nil {
			t.Errorf("%s leads to %s", payload, got)
		}
	}
}

func FuzzValuesStayInTheirPlace(f *testing.F) {
	for _, seed := range []string{"invoice-481", "../x", "a b", "a&b=c", "\r\n", "%2f", "ü", "a;b", "?", "#"} {
		f.Add(seed)
	}
	tpl, err := parseTemplate("/records/{reference}/end?q={reference}&last=1")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, value string) {
		o := payment()
		o.Terms.Reference = value
		filled, err := tpl.fill(o)
		if err != nil {
			return
		}
		u, err := url.Parse("http://host" + filled)
		if err != nil {
			t.Fatalf("%q gives %q: %v", value, filled, err)
		}
		q, err := url.ParseQuery(u.RawQuery)
		if err != nil || q.Get("q") != value || q.Get("last") != "1" || len(q) != 2 {
			t.Errorf("%q comes back as %v %v", value, q, err)
		}
		if u.Path != "/records/"+value+"/end" || strings.Count(u.EscapedPath(), "/") != 3 {
			t.Errorf("%q gives the path %q", value, u.EscapedPath())
		}
	})
}

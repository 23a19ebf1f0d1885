package rail

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

func TestSameOperationGivesTheSameBytes(t *testing.T) {
	first := mustRender(t, mustRail(t, card("https://api.example.com/v1")), payment())
	for range 20 {
		again := mustRender(t, mustRail(t, card("https://api.example.com/v1")), payment())
		if again.SHA256 != first.SHA256 || !bytes.Equal(again.Body, first.Body) || again.Display != first.Display {
			t.Fatalf("rendered twice, it differs:\n%s\n%s", first.Display, again.Display)
		}
	}
	rotated := card("https://api.example.com/v1")
	rotated.Headers = map[string]Secret{"Authorization": NewSecret("Bearer rotated")}
	if again := mustRender(t, mustRail(t, rotated), payment()); again.SHA256 != first.SHA256 {
		t.Error("rotating a secret changes the request")
	}
	if first.URL != "https://api.example.com/v1/payments" || first.Method != "POST" || first.SHA256 != first.HashRequest() {
		t.Errorf("request is %+v", first)
	}
	want := `{"amount":125000,"currency":"EUR","metadata":{"operation":"` + payment().OrderID + `"},"recipient":"acct_7","reference":"invoice-481"}`
	if string(first.Body) != want {
		t.Errorf("body is %s", first.Body)
	}
	headers := [][2]string{
		{"Host", "api.example.com"}, {"User-Agent", "holdfast"}, {"Accept", "application/json"}, {"Accept-Encoding", "identity"}, {"Connection", "close"},
		{"Content-Type", "application/json"}, {"Content-Length", itoa(len(want))}, {"Idempotency-Key", payment().ProviderKey},
	}
	if fmt.Sprint(first.Header) != fmt.Sprint(headers) {
		t.Errorf("headers are %v", first.Header)
	}
}

func TestStampAndKeyGoWhereTheRailWantsThem(t *testing.T) {
	o := payment()
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"stamp in a header, body untouched": {func(c *Config) { c.Stamp = Stamp{Header: "Order"} }, string(o.Payload)},
		"key in the body": {func(c *Config) { c.Dedupe.Header, c.Dedupe.Body, c.Stamp, c.Lookup = "", "/key", Stamp{}, Lookup{} },
			`{"amount":125000,"currency":"EUR","key":"` + o.ProviderKey + `","recipient":"acct_7","reference":"invoice-481"}`},
		"no body": {func(c *Config) { c.Send.Body, c.Stamp, c.Lookup = "none", Stamp{}, Lookup{} }, ""},
	} {
		req := mustRender(t, mustRail(t, with(card("https://api.example.com"), c.change)), o)
		if string(req.Body) != c.want {
			t.Errorf("%s: %s", name, req.Body)
		}
		if strings.Contains(name, "header") && !strings.Contains(fmt.Sprint(req.Header), "[Order "+o.OrderID+"]") {
			t.Errorf("%s: %v", name, req.Header)
		}
	}
}

func TestStampNeverOverwritesWhatWasApproved(t *testing.T) {
	for _, payload := range []string{
		`{"metadata":{"operation":"theirs"}}`, `{"metadata":{"operation":null}}`, `{"metadata":"text"}`, `{"metadata":[]}`, `[]`, `{`, `{"a":1,"a":2}`,
	} {
		o := payment()
		o.Payload = []byte(payload)
		if req, err := mustRail(t, card("https://api.example.com")).Render(o); err == nil {
			t.Errorf("%s renders as %s", payload, req.Body)
		}
	}
}

func TestControlCharactersAreRefusedBeforeAnythingIsSent(t *testing.T) {
	r := mustRail(t, card("https://api.example.com"))
	for _, value := range []string{"a\r\nX-Evil: 1", "a\nb", "a\x00", "ü", " a", "a ", "", "a\x7f"} {
		o := payment()
		o.ProviderKey = value
		if _, err := r.Render(o); err == nil {
			t.Errorf("the key %q is rendered", value)
		}
	}
}

// What the provider parses must be what was rendered, whatever a payload holds.
func FuzzParsedRequestIsTheRenderedOne(f *testing.F) {
	for _, seed := range []string{"invoice-481", "\r\nX-Evil: 1", "a b", "../..", "\x00", "ü", "\\", "\"", "%0d%0a", "</script>"} {
		f.Add(seed, seed)
	}
	r := mustRail(f, with(card("http://api.example.com"), func(c *Config) { c.Send.Path = "/p/{reference}?r={/recipient}" }))
	f.Fuzz(func(t *testing.T, reference, recipient string) {
		o := payment()
		o.Terms.Reference = reference
		payload, err := ledger.Canonical(map[string]any{"recipient": recipient, "reference": reference})
		if err != nil {
			return
		}
		o.Payload = payload
		req, err := r.Render(o)
		if err != nil {
			return
		}
		wire, err := r.wireBytes(req)
		if err != nil {
			t.Fatalf("rendered, but not sendable: %v", err)
		}
		b := bufio.NewReader(bytes.NewReader(wire))
		got, err := http.ReadRequest(b)
		if err != nil {
			t.Fatalf("%q: %v", wire, err)
		}
		body, _ := io.ReadAll(got.Body)
		if b.Buffered() != 0 || !bytes.Equal(body, req.Body) || got.Host != "api.example.com" || got.URL.Path != "/p/"+reference ||
			got.URL.Query().Get("r") != recipient || len(got.URL.Query()) != 1 || len(got.Header) != len(req.Header) {
			t.Errorf("%q is read as %+v", wire, got)
		}
	})
}

func TestWireRefusesARequestThatIsNotItsOwn(t *testing.T) {
	p := newProvider(t, always(answer("201 Created", paid)))
	r := mustRail(t, card(p.url))
	rehash := func(q ledger.Request) ledger.Request { q.SHA256 = q.HashRequest(); return q }
	good := mustRender(t, r, payment())
	for name, bad := range map[string]func(ledger.Request) ledger.Request{
		"zero":            func(ledger.Request) ledger.Request { return ledger.Request{} },
		"other body":      func(q ledger.Request) ledger.Request { q.Body = []byte(`{"amount":1}`); return q },
		"other host":      func(q ledger.Request) ledger.Request { q.URL = "http://evil.example/payments"; return rehash(q) },
		"host as prefix":  func(q ledger.Request) ledger.Request { q.URL = p.url + ".evil.example/payments"; return rehash(q) },
		"userinfo":        func(q ledger.Request) ledger.Request { q.URL = p.url + "@evil.example/payments"; return rehash(q) },
		"break in path":   func(q ledger.Request) ledger.Request { q.URL += " HTTP/1.1\r\nX: y"; return rehash(q) },
		"break in method": func(q ledger.Request) ledger.Request { q.Method = "POST / HTTP/1.1\r\n"; return rehash(q) },
		"break in header": func(q ledger.Request) ledger.Request {
			q.Header = append([][2]string{{"X", "a\r\nY: b"}}, q.Header...)
			return rehash(q)
		},
	} {
		c, err := r.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if x := c.Send(t.Context(), bad(good), time.Now().Add(time.Minute)); x.Written != 0 || x.Err != Unfit {
			t.Errorf("%s: %+v", name, x)
		}
	}
	p.stop()
	if _, seen := p.seen(); seen != "" {
		t.Errorf("bytes left: %q", seen)
	}
}

// Whoever prints, logs or stores anything of this package sees no credential,
// although the provider repeats it in its answer.
func TestSecretsStayOnTheWire(t *testing.T) {
	basic := "user:" + canary + `"q`
	echo := `{"error":"bad key ` + canary + `","again":` + mustJSON(basic) + `}`
	p := newProvider(t, always(answer("401 Unauthorized", echo, "X-Echo: Bearer "+canary)))
	c := card(p.url)
	c.Headers["X-Api-Key"] = NewSecret(basic)
	c.Events = Events{Scheme: "stripe", Secret: NewSecret(canary), Stamp: "/data/object/metadata/operation"}
	r := mustRail(t, c)
	req := mustRender(t, r, payment())
	x := send(t, r)
	if _, seen := p.seen(); !strings.Contains(seen, "Authorization: Bearer "+canary+"\r\nX-Api-Key: "+basic+"\r\n") {
		t.Fatalf("the secret did not arrive: %q", seen)
	}
	if x.Status != 401 || !bytes.Contains(x.Body, []byte(dots)) {
		t.Errorf("exchange %d %s", x.Status, x.Body)
	}
	a := r.Classify(payment(), x)
	look := r.Lookup(t.Context(), payment())
	_, configErr := New("card", with(c, func(c *Config) { c.Timeout = Never() }), time.Now)
	closed := mustRail(t, with(c, func(c *Config) { c.BaseURL = "http://127.0.0.1:1" }))
	_, connectErr := closed.Connect(t.Context())
	if connectErr == nil || configErr == nil {
		t.Fatal("no errors to look at")
	}
	type holder struct {
		hidden Config
		rail   Rail
		secret Secret
	}
	x.full = nil // its own test below
	for name, v := range map[string]any{
		"config": c, "pointer": &c, "rail": r, "request": req, "exchange": x, "answer": a, "look": look, "config error": configErr, "connect error": connectErr,
		"unexported fields": holder{c, *r, NewSecret(canary)}, "map": c.Headers, "secret": NewSecret(canary),
	} {
		var logged bytes.Buffer
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "v", v)
		encoded, _ := json.Marshal(v)
		for _, text := range []string{fmt.Sprintf("%v", v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), fmt.Sprintf("%s", v), fmt.Sprintf("%q", v), fmt.Sprintf("%x", v), logged.String(), string(encoded)} {
			for _, leak := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprint([]byte(canary))[1:20]} {
				if strings.Contains(text, leak) {
					t.Errorf("%s leaks: %.300s", name, text)
				}
			}
		}
	}
	if !strings.Contains(req.Display, "Authorization: "+dots) || !strings.Contains(req.Display, "POST "+p.url+"/payments\n") || !strings.Contains(req.Display, string(req.Body)) {
		t.Errorf("display is\n%s", req.Display)
	}
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestConfiguredHeadersStandInForOurOwn(t *testing.T) {
	p := newProvider(t, always(answer("201 Created", paid)))
	r := mustRail(t, with(card(p.url), func(c *Config) {
		c.Headers["content-type"] = NewSecret("application/vnd.api+json")
		c.Headers["Accept"] = NewSecret("application/vnd.api+json")
	}))
	send(t, r)
	_, seen := p.seen()
	if n := strings.Count(strings.ToLower(seen), "content-type:"); n != 1 {
		t.Errorf("%d content types in %q", n, seen)
	}
	if !strings.Contains(seen, "content-type: application/vnd.api+json\r\n") || strings.Count(seen, "Accept: ") != 1 {
		t.Errorf("request is %q", seen)
	}
}

func TestALookupIsOnePlainQuestion(t *testing.T) {
	p := newProvider(t, func(p *provider, c *net.TCPConn) {
		if q := p.request(c); q != nil {
			io.WriteString(c, answer("200 OK", `{"data":[]}`))
		}
	})
	r := mustRail(t, card(p.url))
	r.Lookup(context.Background(), payment())
	_, seen := p.seen()
	want := "GET /payments?reference=" + payment().OrderID + " HTTP/1.1\r\nHost: " + p.addr + "\r\n"
	if !strings.HasPrefix(seen, want) || strings.Contains(seen, "Idempotency-Key") || !strings.Contains(seen, canary) {
		t.Errorf("request is %q", seen)
	}
}

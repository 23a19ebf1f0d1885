package dispatch

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// A test of a rail is worth something only if a rail that does not keep its
// word is caught. Each provider below breaks another promise.
func TestRailTestFindsTheBrokenPromise(t *testing.T) {
	const config = `
rails:
  card: { adapter: sandbox, base_url: "%s", timeout: 2s %s }
action_types:
  pay: { rail: card, effect: charge, schema: { type: object, required: [amount, currency, recipient], properties: {
    amount: { type: integer, x-role: amount }, currency: { type: string, x-role: currency }, recipient: { type: string, x-role: recipient } } } }
`
	for _, c := range []struct {
		claim    string
		provider SandboxOptions
		rail     string // more of the rail's configuration
		want     map[string]bool
		effects  int
		deaf     bool // it has records of others, and ignores what a list is filtered by
	}{
		{"it keeps them all", SandboxOptions{Dedupe: true}, "",
			map[string]bool{"absence": true, "send": true, "lookup": true, "replay": true, "mismatch": true, "once": true}, 1, false},
		{"it knows no keys", SandboxOptions{}, "",
			map[string]bool{"absence": true, "send": true, "lookup": true, "replay": false, "mismatch": false, "once": false}, 3, false},
		{"it knows no keys and promises none", SandboxOptions{}, ", dedupe: { by: none }",
			map[string]bool{"absence": true, "send": true, "lookup": true, "once": true}, 1, false},
		{"its index is late", SandboxOptions{Dedupe: true, Lag: time.Minute}, "",
			map[string]bool{"absence": true, "send": true, "lookup": false, "replay": true, "mismatch": true, "once": false}, 1, false},
		{"a repeat is not the same by nature", SandboxOptions{}, ", dedupe: { by: natural }",
			map[string]bool{"absence": true, "send": true, "lookup": true, "replay": false, "once": false}, 2, false},
		{"it ignores the filter", SandboxOptions{Dedupe: true}, "",
			map[string]bool{"absence": false, "send": true, "lookup": true, "replay": true, "mismatch": true, "once": true}, 2, true},
	} {
		t.Run(c.claim, func(t *testing.T) {
			provider := openSandbox(t, c.provider)
			base := provider.base
			if c.deaf {
				provider.do("POST", "/payments", "theirs", `{"amount":1200,"currency":"EUR","recipient":"acct_1","metadata":{"operation":"ord_theirs"}}`)
				base = withoutFilter(t, base)
			}
			parsed, err := ParseConfig(fmt.Appendf(nil, config, base, c.rail), t.TempDir(), "test.yaml", func(string) (string, bool) { return "", false }, time.Now, nil)
			if err != nil {
				t.Fatal(err)
			}
			tenant := parsed.Tenants[DefaultTenant]
			test := RailTest{Rail: tenant.Routes["pay"], Promise: tenant.Rulebook.Routes["pay"], Action: tenant.Rulebook.Actions["pay"], ID: "rail-test-1",
				Payload: []byte(`{"amount":1200,"currency":"EUR","recipient":"acct_1"}`), Now: time.Now, Pause: func(context.Context, time.Duration) error { return nil }}
			findings, err := test.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, f := range findings {
				got[f.Check] = f.Passed
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("%v, want %v: %+v", got, c.want, findings)
			}
			if n := len(provider.book().Effects); n != c.effects {
				t.Errorf("the provider's book has %d, want %d", n, c.effects)
			}
		})
	}
}

// withoutFilter is the same provider, which answers a list with all it has.
func withoutFilter(t *testing.T, base string) string {
	t.Helper()
	to, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.URL.RawQuery = ""
	}})
	t.Cleanup(server.Close)
	return server.URL
}

func TestRailTestThatTriedNothingHasNotPassed(t *testing.T) {
	if (ledger.RailTest{}).Passed() {
		t.Error("passed")
	}
}

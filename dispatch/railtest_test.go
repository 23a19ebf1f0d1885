package dispatch

import (
	"context"
	"fmt"
	"maps"
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
	}{
		{"it keeps them all", SandboxOptions{Dedupe: true}, "",
			map[string]bool{"absence": true, "send": true, "lookup": true, "replay": true, "mismatch": true, "once": true}, 1},
		{"it knows no keys", SandboxOptions{}, "",
			map[string]bool{"absence": true, "send": true, "lookup": true, "replay": false, "mismatch": false, "once": false}, 3},
		{"it knows no keys and promises none", SandboxOptions{}, ", dedupe: { by: none }",
			map[string]bool{"absence": true, "send": true, "lookup": true, "once": true}, 1},
		{"its index is late", SandboxOptions{Dedupe: true, Lag: time.Minute}, "",
			map[string]bool{"absence": true, "send": true, "lookup": false, "replay": true, "mismatch": true, "once": false}, 1},
	} {
		t.Run(c.claim, func(t *testing.T) {
			provider := openSandbox(t, c.provider)
			parsed, err := ParseConfig(fmt.Appendf(nil, config, provider.base, c.rail), t.TempDir(), "test.yaml", func(string) (string, bool) { return "", false }, time.Now, nil)
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

func TestRailTestThatTriedNothingHasNotPassed(t *testing.T) {
	if (ledger.RailTest{}).Passed() {
		t.Error("passed")
	}
}

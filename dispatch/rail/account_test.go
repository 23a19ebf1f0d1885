package rail

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

// A rail is configured anew between a send and its resend: what makes the
// provider take the same key for another's is another account.
func TestAnotherCredentialOrWrittenHeaderIsAnotherAccount(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue("live-eu")
	renewed, renewedKey := a.issue("live-eu")
	bearer := func(secret string) func(*Config) { return func(c *Config) { c.Auth.Bearer = NewSecret(secret) } }
	basic := func(user, password string) func(*Config) {
		return func(c *Config) { c.Auth.Basic = &Basic{User: NewSecret(user), Password: NewSecret(password)} }
	}
	shows := func(cert, key PEM) func(*Config) {
		return func(c *Config) { c.BaseURL, c.TLS.Cert, c.TLS.Key = "https://api.example.com", cert, key }
	}
	secret := func(name, value string) func(*Config) {
		return func(c *Config) { c.Headers[name] = NewSecret(value) }
	}
	written := func(name, value string) func(*Config) {
		return func(c *Config) { c.Headers[name] = NewSecret(value).AsWritten() }
	}
	ofCredential := func(change func(*Config)) func(*Config) {
		return func(c *Config) { c.Dedupe.Scope = scopeCredential; change(c) }
	}
	for _, c := range []struct {
		claim     string
		then, now func(*Config)
		differs   bool
	}{
		{"a header of the credential", ofCredential(secret("X-Key", "canary-1")), ofCredential(secret("X-Key", "canary-2")), true},
		{"a token", ofCredential(bearer("canary-1")), ofCredential(bearer("canary-2")), true},
		{"a password", ofCredential(basic("canary-1", "a")), ofCredential(basic("canary-1", "b")), true},
		{"a user", ofCredential(basic("canary-1", "a")), ofCredential(basic("canary-2", "a")), true},
		{"a certificate", ofCredential(shows(cert, key)), ofCredential(shows(renewed, renewedKey)), true},
		{"the same token", ofCredential(bearer("canary-1")), ofCredential(bearer("canary-1")), false},
		{"the same certificate", ofCredential(shows(cert, key)), ofCredential(shows(cert, key)), false},
		{"a token, keys belong to the account", bearer("canary-1"), bearer("canary-2"), false},
		{"a certificate, keys belong to the account", shows(cert, key), shows(renewed, renewedKey), false},
		{"a secret header, keys belong to the account", secret("X-Key", "canary-1"), secret("X-Key", "canary-2"), false},
		{"a written header", written("Stripe-Account", "canary-1"), written("Stripe-Account", "canary-2"), true},
		{"a written header that is new", func(*Config) {}, written("Stripe-Account", "canary-2"), true},
		{"a written header in other letters", written("Stripe-Account", "canary-1"), written("stripe-account", "canary-1"), false},
		{"who wrote the request", written("User-Agent", "canary-1"), written("User-Agent", "canary-2"), false},
		{"a written credential, keys belong to the account", written("Authorization", "canary-1"), written("Authorization", "canary-2"), false},
	} {
		t.Run(c.claim, func(t *testing.T) {
			promise := func(change func(*Config)) ledger.Rail {
				return mustRail(t, with(card("https://api.example.com"), func(k *Config) { k.Headers = map[string]Secret{}; change(k) })).Promise()
			}
			then, now := promise(c.then), promise(c.now)
			o := ledger.Operation{FirstMarkAt: 1, Attempts: 1, RailAddress: then.Address, RailAccount: then.Account, RecognisedBy: then.Dedupe.Recognition()}
			if ok, _, why := then.Resend(o, false, 2); !ok {
				t.Fatalf("with nothing changed: %s", why)
			}
			if ok, reason, why := now.Resend(o, false, 2); ok == c.differs || c.differs && reason != ledger.KeyExpired {
				t.Errorf("%t %s %s (%s, then %s)", ok, reason, why, then.Account, now.Account)
			}
			if !strings.HasPrefix(now.Account, "live") || strings.Contains(fmt.Sprint(then, now), "canary") {
				t.Errorf("it is shown as %q, then %q", then.Account, now.Account)
			}
		})
	}
}

func TestARailWithoutWrittenHeadersKeepsTheNameOfItsAccount(t *testing.T) {
	for _, p := range Profiles() {
		if got := profiled(t, p.Name).Promise().Account; p.Rail.Dedupe.Scope == "" && got != "live" {
			t.Errorf("%s: %q", p.Name, got)
		}
	}
	if got := mustRail(t, card("https://api.example.com")).Promise().Account; got != "live-eu" {
		t.Errorf("%q", got)
	}
}

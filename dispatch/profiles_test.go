package dispatch

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

const profiledYAML = `
rails:
  card:
    profile: %
    account: live-eu
    headers: { Authorization: "Bearer sk_canary" }
    quiet: 1m
action_types:
  pay: { rail: card, effect: charge, schema: { type: object, properties: { reference: { type: string, x-role: reference } } } }
policy: [{ name: all, when: {}, then: allow }]
`

func TestAProfileIsARailOfTheConfiguration(t *testing.T) {
	c, err := ParseConfig([]byte(strings.Replace(profiledYAML, "%", "stripe-v1", 1)), t.TempDir(), "holdfast.yaml", nil, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Tenants[DefaultTenant].Rulebook.Routes["pay"]
	if got.Address != "https://api.stripe.com" || got.Account != "live-eu" || got.Dedupe != (ledger.Dedupe{By: ledger.DedupeKey, Place: "header idempotency-key", Retention: 24 * time.Hour}) || got.Quiet != time.Minute {
		t.Errorf("promise %+v", got)
	}
	if c.Tenants[DefaultTenant].RailConfigs["card"].Adapter != rail.AdapterStripe {
		t.Error("what reads statements and events does not see the profile")
	}
}

// What an answer can mean is written in the file as the profiles write it.
func TestAnswersAreWrittenAsTheProfilesWriteThem(t *testing.T) {
	const answers = `    answers:
      - { status: [409], body: { /error/code: [exists, 7, null] }, means: confirmed, receipt: { id: /error/id, amount: /error/amount, currency: /error/currency, stamp: /error/stamp } }
      - { status: [500], means: look }
    dedupe: { by: key, header: Idempotency-Key, retention: 24h, scope: credential, replay_marker: { header: X-Replay, value: "1" } }
    quiet:`
	text := strings.Replace(strings.Replace(profiledYAML, "%", "modern-treasury", 1), "    quiet:", answers, 1)
	c, err := ParseConfig([]byte(text), t.TempDir(), "holdfast.yaml", nil, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Tenants[DefaultTenant].RailConfigs["card"]
	if len(got.Answers) != 2 || got.Answers[0].Receipt.Amount != "/error/amount" || len(got.Answers[0].Body["/error/code"].([]any)) != 3 || got.Answers[1].Means != "look" {
		t.Errorf("answers %+v", got.Answers)
	}
	if got.Dedupe.ReplayMarker != (rail.Marker{Header: "X-Replay", Value: "1"}) || !strings.HasPrefix(c.Tenants[DefaultTenant].Rulebook.Rails["card"].Account, "live-eu credential ") {
		t.Errorf("dedupe %+v", got.Dedupe)
	}
	_, err = ParseConfig([]byte(strings.Replace(text, "currency: /error/currency, ", "", 1)), t.TempDir(), "holdfast.yaml", nil, time.Now, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "holdfast.yaml:8: rails.card.answers[0].receipt.currency: is missing; it is compared on this rail") {
		t.Error(err)
	}
}

func TestAMistypedProfileIsFoundWithItsPlace(t *testing.T) {
	for name, want := range map[string]string{
		"stripe-v2":    `holdfast.yaml:4: rails.card.profile: "stripe-v2" is no profile; did you mean stripe-v1?`,
		"paypal":       `holdfast.yaml:4: rails.card.profile: "paypal" is no profile; did you mean paypal-orders?`,
		"bank":         `holdfast.yaml:4: rails.card.profile: "bank" is no profile; there are adyen-checkout, `,
		"square/../x":  `holdfast.yaml:4: rails.card.profile: "square/../x" is no profile; there are `,
		"checkout-com": `holdfast.yaml:3: rails.card.base_url: is missing`,
	} {
		_, err := ParseConfig([]byte(strings.Replace(profiledYAML, "%", name, 1)), t.TempDir(), "holdfast.yaml", nil, time.Now, nil)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s…", name, err, want)
		}
	}
}

func TestProfilesAreListedAndShown(t *testing.T) {
	var table, one, list bytes.Buffer
	if err := ListProfiles(&table, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{
		{"zendesk-tickets", "key", "2h", "first send + 1h40m", "by our stamp, 1m late", "never"},
		{"square-payments", "key", "none to rely on", "no resend", "none"},
		{"modern-treasury", "key of the credential", "none to rely on", "no resend"},
		{"plaid-transfer", "by nature", "any time"},
	} {
		line := ""
		for _, l := range strings.Split(table.String(), "\n") {
			if strings.HasPrefix(l, want[0]+" ") {
				line = l
			}
		}
		for _, cell := range want {
			if !strings.Contains(line, cell) {
				t.Errorf("%s: %q is not in %q", want[0], cell, line)
			}
		}
	}
	if err := ShowProfile(&one, "stripe-v1"); err != nil || !strings.Contains(one.String(), "https://docs.stripe.com/api/idempotent_requests") {
		t.Errorf("shown without its source: %v", err)
	}
	if err := ShowProfile(&one, "stripe"); err == nil || err.Error() != `"stripe" is no profile; did you mean stripe-v1?` {
		t.Error(err)
	}
	var items struct{ Items []rail.ProfileRow }
	if err := ListProfiles(&list, true); err != nil || json.Unmarshal(list.Bytes(), &items) != nil || len(items.Items) != len(rail.Profiles()) {
		t.Errorf("as JSON: %v, %s", err, list.String())
	}
}

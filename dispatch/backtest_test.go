package dispatch

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

func TestBacktestSaysWhatAPolicyWouldHaveDone(t *testing.T) {
	ctx := context.Background()
	now := newClock()
	st, err := store.Open(ctx, store.Options{Folder: t.TempDir(), Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	was, err := ReadConfig("", nil, now.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.SetRulebooks(ctx, was.Rulebooks()); err != nil {
		t.Fatal(err)
	}
	submit := func(id string, amount int, recipient string) {
		t.Helper()
		payload, err := ledger.ParseStrict(fmt.Appendf(nil, `{"amount":%d,"currency":"EUR","recipient":%q,"reference":%q}`, amount, recipient, id))
		if err != nil {
			t.Fatal(err)
		}
		n, wrong := was.Tenants["default"].Rulebook.Actions["create_payment"].Normalize(payload)
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		if _, err := st.Submit(ctx, ledger.Operation{TenantID: "default", OperationID: id, ActionType: "create_payment", Agent: "billing",
			Fingerprint: n.Fingerprint, Canonical: n.Canonical, Payload: n.Payload, Terms: n.Terms}); err != nil {
			t.Fatal(err)
		}
		now.pass(time.Minute)
	}
	submit("old", 500_000, "acct_old")
	now.pass(48 * time.Hour)
	since := st.Now()
	submit("small", 5_000, "acct_1")       // allowed then
	submit("middle", 150_000, "acct_2")    // asked then
	submit("large", 900_000, "acct_3")     // asked then
	submit("again", 150_000, "acct_2")     // asked then
	submit("forbidden", 1_000, "acct_bad") // allowed then
	would, err := ParseConfig([]byte(`
rails: { sandbox: { adapter: sandbox } }
action_types:
  create_payment: { rail: sandbox, effect: charge, schema: { type: object, required: [amount, currency], properties: { amount: { type: integer, x-role: amount }, currency: { type: string, x-role: currency }, recipient: { type: string, x-role: recipient }, reference: { type: string, x-role: reference } } } }
policy:
  - { name: bad, when: { recipient: [acct_bad] }, then: deny }
  - { name: daily cap, when: { spent_over: { amount: 1100000, currency: EUR, window: 24h, per: agent } }, then: ask }
  - { name: large, when: { currency: EUR, amount_over: 200000 }, then: ask }
  - { name: rest, when: {}, then: allow }
`), t.TempDir(), "new.yaml", nil, now.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := RunBacktest(ctx, st, would, since)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range b.Differences {
		got = append(got, fmt.Sprintf("%s %s→%s", d.OperationID, d.Was, d.Would))
	}
	// "again" would have gone over the daily cap: 5,000 + 150,000 + 900,000 + 150,000.
	if want := "middle ask→allow, forbidden allow→deny"; strings.Join(got, ", ") != want {
		t.Errorf("differences %v, want %s", got, want)
	}
	if b.Seen != 5 || b.Was["ask"] != 3 || b.Would["ask"] != 2 || b.Would["deny"] != 1 || b.Would["allow"] != 2 || b.LetThrough != 1 {
		t.Errorf("%+v", b)
	}
	var out bytes.Buffer
	if err := b.Print(&out, 2); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"In the last 2 days 5 operations came.", "asked for 2 (now 3)", `Row "bad" denies it`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the story lacks %q:\n%s", want, out.String())
		}
	}
}

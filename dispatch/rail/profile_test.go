package rail

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// profiled is a rail of a profile with what a user has to add.
func profiled(t testing.TB, name string, change ...func(*Config)) *Rail {
	t.Helper()
	p, known := ProfileNamed(name)
	if !known {
		t.Fatalf("there is no profile %s", name)
	}
	c := Config{Profile: name, Account: "live", Headers: map[string]Secret{"Authorization": NewSecret("Bearer " + canary)},
		Digits: ledger.Currencies{}.Digits}
	if p.Rail.BaseURL == "" {
		c.BaseURL = "https://own.example.com"
	}
	for _, f := range change {
		f(&c)
	}
	return mustRail(t, c)
}

func TestEveryProfileSaysWhatItKnowsAndSinceWhen(t *testing.T) {
	for _, p := range Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			profiled(t, p.Name)
			if day, err := time.Parse(time.DateOnly, p.Checked); err != nil || day.Year() < 2026 {
				t.Errorf("checked %q is no day", p.Checked)
			}
			if len(p.Sources) == 0 {
				t.Error("has no source")
			}
			for _, s := range p.Sources {
				place, _, _ := strings.Cut(strings.TrimPrefix(s, "https://"), " ")
				if u, err := url.Parse("https://" + place); err != nil || u.Host == "" || !strings.Contains(u.Path, "/") {
					t.Errorf("source %q names no place", s)
				}
			}
			for what, words := range map[string]string{"title": p.Title, "about": p.About, "credential": p.Credential, "key": p.Key, "scope": p.Scope,
				"replay": p.Replay, "mismatch": p.Mismatch.Words, "concurrent": p.Concurrent.Words, "events": p.Events, "caveats": strings.Join(p.Caveats, "")} {
				if words == "" {
					t.Errorf("says nothing under %s", what)
				}
			}
			c := p.Rail
			if c.Account != "" || c.AllowPrivate || c.Events.Secret.text != nil || c.Profile != "" || len(c.Answers) == 0 && c.Adapter != AdapterStripe {
				t.Error("holds what is the user's to say, or has no answers of its own")
			}
			for name := range c.Headers {
				if strings.EqualFold(name, "Authorization") {
					t.Error("holds a credential")
				}
			}
		})
	}
}

// published is how long each provider publishes that it keeps a key, read off
// its documents and written down here a second time. Whoever is not listed does
// not publish it, or keeps only what succeeded: then a key protects against
// nothing that a timeout may hide.
var published = map[string]time.Duration{
	"stripe-v1": 24 * time.Hour, "paypal-orders": 6 * time.Hour, "paypal-refunds": 45 * 24 * time.Hour, "adyen-checkout": 7 * 24 * time.Hour,
	"mollie-payments": 24 * time.Hour, "resend": 24 * time.Hour, "zendesk-tickets": 2 * time.Hour, "nylas-send": time.Hour,
}

// sameByNature are the requests that act once however often they come.
var sameByNature = map[string]bool{"hubspot-contacts": true, "plaid-transfer": true}

func TestAnUnpublishedRetentionIsNone(t *testing.T) {
	const hour = int64(time.Hour / time.Millisecond)
	for _, p := range Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			r := profiled(t, p.Name, func(c *Config) { c.Limits.MaxElapsed = Lasting(100 * 24 * time.Hour) }).Promise()
			keeps := published[p.Name]
			if r.Dedupe.Retention != keeps {
				t.Fatalf("keeps a key for %s, published is %s", r.Dedupe.Retention, keeps)
			}
			o := ledger.Operation{FirstMarkAt: 1000 * hour, Attempts: 1, OpenAttempts: 1, RailAddress: r.Address, RailAccount: r.Account, RecognisedBy: r.Dedupe.Recognition()}
			if ok, _, why := r.Resend(o, false, o.FirstMarkAt+1); ok != (keeps > 0 || sameByNature[p.Name]) {
				t.Errorf("a resend right after the first send: %t, %s", ok, why)
			}
			if keeps == 0 {
				return
			}
			until := o.FirstMarkAt + keeps.Milliseconds()*5/6
			if ok, _, why := r.Resend(o, false, until-hour/2); !ok {
				t.Errorf("half an hour before the margin it is refused: %s", why)
			}
			if ok, reason, _ := r.Resend(o, false, until); ok || reason != ledger.KeyExpired {
				t.Errorf("from the margin on: %t %s", ok, reason)
			}
		})
	}
}

// Nobody's silence is proof: none of these providers documents when an empty
// list would be.
func TestNoProfileTakesAbsenceForProof(t *testing.T) {
	for _, p := range Profiles() {
		if got := profiled(t, p.Name).Promise().Lookup.AbsenceProvesAfter; got != 0 {
			t.Errorf("%s: absence proves after %s", p.Name, got)
		}
	}
}

// A provider that answers a reused key with the result of the first request,
// whatever the second one asks for, needs a receipt that can be compared.
func TestAReplayOfAnotherRequestCanBeTold(t *testing.T) {
	for _, p := range Profiles() {
		r := profiled(t, p.Name).Promise()
		if r.Dedupe.By == ledger.DedupeKey && p.Mismatch.Status == 0 && r.Compared == (ledger.ReceiptFields{}) {
			t.Errorf("%s: documents no refusal of a reused key, and its receipt has nothing to compare", p.Name)
		}
	}
}

func TestWhatTheConfigurationWritesStandsInPlaceOfTheProfiles(t *testing.T) {
	p, _ := ProfileNamed("paypal-orders")
	r := profiled(t, "paypal-orders", func(c *Config) {
		c.BaseURL = "http://127.0.0.1:8421"
		c.Receipt = Receipt{ID: "/receipt"}
		c.Quiet = Lasting(0)
	})
	got := r.Config()
	if got.BaseURL != "http://127.0.0.1:8421" || got.Receipt != (Receipt{ID: "/receipt"}) || got.Quiet != Lasting(0) {
		t.Errorf("what was written did not win: %+v", got.Receipt)
	}
	if got.Send != p.Rail.Send || !reflect.DeepEqual(got.Lookup, p.Rail.Lookup) || !reflect.DeepEqual(got.Answers, p.Rail.Answers) {
		t.Error("what was not written is not the profile's")
	}
	again, _ := ProfileNamed("paypal-orders")
	if again.Rail.BaseURL != "https://api-m.paypal.com" {
		t.Error("a configuration changed the profile")
	}
}

func TestHeadersJoinTheProfilesByName(t *testing.T) {
	r := profiled(t, "paypal-orders", func(c *Config) { c.Headers["prefer"] = NewSecret("return=minimal") })
	h := r.Config().Headers
	if len(h) != 3 || h["prefer"].reveal() != "return=minimal" || h["Content-Type"].reveal() != "application/json" || h["Authorization"].reveal() == "" {
		t.Errorf("%d headers, prefer %q", len(h), h["prefer"].reveal())
	}
	p, _ := ProfileNamed("paypal-orders")
	if len(p.Rail.Headers) != 2 {
		t.Error("a configuration changed the profile")
	}
}

func TestAnUnknownProfileIsNamed(t *testing.T) {
	_, err := New("card", Config{Profile: "stripe"}, time.Now)
	if err == nil || !strings.HasPrefix(err.Error(), `rails.card.profile: "stripe" is no profile; there are adyen-checkout, `) {
		t.Error(err)
	}
}

// Where keys belong to a credential, another secret is another account: the
// provider would not know the key and act again.
func TestRotatingTheSecretEndsResendsWhereKeysBelongToIt(t *testing.T) {
	rotated := func(c *Config) { c.Headers["Authorization"] = NewSecret("Bearer another") }
	for name, belongs := range map[string]bool{"modern-treasury": true, "mollie-payments": false} {
		kept := func(c *Config) {
			p, _ := ProfileNamed(name)
			c.Dedupe = p.Rail.Dedupe
			c.Dedupe.Retention = Lasting(24 * time.Hour)
		}
		before, after := profiled(t, name, kept).Promise(), profiled(t, name, kept, rotated).Promise()
		o := ledger.Operation{FirstMarkAt: 1, Attempts: 1, RailAddress: before.Address, RailAccount: before.Account, RecognisedBy: before.Dedupe.Recognition()}
		if ok, _, why := before.Resend(o, false, 2); !ok {
			t.Errorf("%s: with the same secret: %s", name, why)
		}
		if ok, reason, _ := after.Resend(o, false, 2); ok == belongs || belongs && reason != ledger.KeyExpired {
			t.Errorf("%s: with another secret: %t %s", name, ok, reason)
		}
		if strings.Contains(fmt.Sprint(before), canary) {
			t.Errorf("%s: the promise shows the secret", name)
		}
	}
}

func TestAReplayBeforeAnyResendIsNobodysReceipt(t *testing.T) {
	marked := func(status int, body string) Exchange {
		x := answered(status, body)
		x.Header.Set("Idempotent-Replayed", "true")
		return x
	}
	o := payment()
	ours := `{"id":"pay_1","amount":125000,"currency":"EUR","recipient":"acct_7","reference":"invoice-481"%s}`
	marker := Marker{"Idempotent-Replayed", "true"}
	for _, c := range []struct {
		name     string
		attempts int
		receipt  Receipt
		x        Exchange
		want     ledger.Finding
	}{
		{"a first answer without the marker", 1, Receipt{ID: "/id"}, answered(201, fmt.Sprintf(ours, "")), ledger.Found},
		{"a replay, nothing to tell whose", 1, Receipt{ID: "/id"}, marked(201, fmt.Sprintf(ours, "")), ledger.Unclear},
		{"a replay with our stamp", 1, Receipt{ID: "/id"}, marked(201, fmt.Sprintf(ours, `,"metadata":{"operation":"`+o.OrderID+`"}`)), ledger.Found},
		{"a replay with another's stamp", 1, Receipt{ID: "/id"}, marked(201, fmt.Sprintf(ours, `,"metadata":{"operation":"ord_other"}`)), ledger.Unclear},
		{"a replay compared in part", 1, Receipt{ID: "/id", Amount: "/amount", Currency: "/currency"}, marked(201, fmt.Sprintf(ours, "")), ledger.Unclear},
		{"a replay compared in full", 1, Receipt{ID: "/id", Amount: "/amount", Currency: "/currency", Recipient: "/recipient", Reference: "/reference"}, marked(201, fmt.Sprintf(ours, "")), ledger.Found},
		{"a replay of our own earlier send", 2, Receipt{ID: "/id"}, marked(201, fmt.Sprintf(ours, "")), ledger.Found},
		{"a replayed refusal", 1, Receipt{ID: "/id"}, marked(402, `{}`), ledger.Unclear},
		{"our own refusal, replayed", 2, Receipt{ID: "/id"}, marked(402, `{}`), ledger.Refused},
		{"a replay that says nothing ran", 1, Receipt{ID: "/id"}, marked(429, `{}`), ledger.Unclear},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mustRail(t, with(card("https://api.example.com"), func(k *Config) { k.Dedupe.ReplayMarker, k.Receipt = marker, c.receipt }))
			o.Attempts = c.attempts
			if got := r.Classify(o, c.x); got.Finding != c.want {
				t.Errorf("%s: %s, want %s", got.Finding, got.Sentence, c.want)
			}
		})
	}
}

func TestSuccessMayComeAsAnError(t *testing.T) {
	r := mustRail(t, with(card("https://api.example.com"), func(c *Config) {
		c.Answers = []AnswerRow{{Status: []int{409}, Body: map[string]any{"/code": []any{"exists", 7}}, Means: "confirmed",
			Receipt: &Receipt{ID: "/object/id", Amount: "/object/total", Currency: "/object/currency", Recipient: "/object/to"}}}
	}))
	object := `"object":{"id":"pay_1","total":%d,"currency":"eur","to":"acct_7"}}`
	got := r.Classify(payment(), answered(409, fmt.Sprintf(`{"code":"exists",`+object, 125000)))
	if got.Finding != ledger.Found || got.Receipt.ID != "pay_1" || len(ledger.Compare(payment(), *got.Receipt, r.Promise().Compared)) != 0 {
		t.Errorf("%s: %+v", got.Sentence, got.Receipt)
	}
	got = r.Classify(payment(), answered(409, fmt.Sprintf(`{"code":7,`+object, 1)))
	if differ := ledger.Compare(payment(), *got.Receipt, r.Promise().Compared); len(differ) != 1 || differ[0] != "/amount" {
		t.Errorf("another amount differs in %v", differ)
	}
	for _, body := range []string{`{"code":"other","object":{"id":"pay_1"}}`, `{"code":"exists"}`, `{"code":["exists"]}`} {
		if got := r.Classify(payment(), answered(409, body)); got.Finding != ledger.Unclear {
			t.Errorf("%s: %s", body, got.Sentence)
		}
	}
}

package rail

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

const (
	oldKey = "an old key that is long enough"
	newKey = "a new key, also long enough 123"
	whose  = "the key of somebody else 123456"
)

func whsec(key string) Secret {
	return NewSecret("whsec_" + base64.StdEncoding.EncodeToString([]byte(key)))
}

var eventTime = time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)

// hearing is the card rail with a standing clock and that events block.
func hearing(t *testing.T, e Events) *Rail {
	t.Helper()
	r, err := New("card", with(card("https://api.example.com"), func(c *Config) { c.Events = e }), func() time.Time { return eventTime })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sum(key, signed string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(signed))
	return mac.Sum(nil)
}

func v1(key, signed string) string {
	return "v1," + base64.StdEncoding.EncodeToString(sum(key, signed))
}

func TestOnlyTheProvidersSignatureIsTaken(t *testing.T) {
	const id, body = "msg_1", `{"type":"payment.succeeded"}`
	now := strconv.FormatInt(eventTime.Unix(), 10)
	ago := func(d time.Duration) string { return strconv.FormatInt(eventTime.Add(-d).Unix(), 10) }
	good := func(at string) http.Header {
		return http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {v1(oldKey, id+"."+at+"."+body)}}
	}
	but := func(name string, values ...string) http.Header {
		h := good(now)
		h[name] = values
		return h
	}
	signed := id + "." + now + "." + body
	for _, c := range []struct {
		claim  string
		header http.Header
		body   string
		why    string // empty: it is taken
	}{
		{"the provider's own", good(now), body, ""},
		{"signed five minutes ago", good(ago(5 * time.Minute)), body, ""},
		{"signed five minutes ahead", good(ago(-5 * time.Minute)), body, ""},
		{"the new secret while both are good", but("Webhook-Signature", v1(newKey, signed)), body, ""},
		{"several, and one fits", but("Webhook-Signature", v1(whose, signed)+"  "+v1(oldKey, signed)), body, ""},
		{"another version before it", but("Webhook-Signature", "v1a,AAAA "+v1(oldKey, signed)), body, ""},
		{"another's secret", but("Webhook-Signature", v1(whose, signed)), body, "no signature fits"},
		{"an altered byte", good(now), strings.Replace(body, "s", "z", 1), "no signature fits"},
		{"a blank more", good(now), body + " ", "no signature fits"},
		{"a line end more", good(now), body + "\n", "no signature fits"},
		{"another id", but("Webhook-Id", "msg_2"), body, "no signature fits"},
		{"a newer time than was signed", but("Webhook-Timestamp", ago(time.Second)), body, "no signature fits"},
		{"too old", good(ago(5*time.Minute + time.Second)), body, "it was signed 5m1s from now"},
		{"a day old", good(ago(24 * time.Hour)), body, "it was signed 24h0m0s from now"},
		{"too new", good(ago(-5*time.Minute - time.Second)), body, "it was signed 5m1s from now"},
		{"no id", but("Webhook-Id"), body, "webhook-id is there 0 times"},
		{"no time", but("Webhook-Timestamp"), body, "webhook-timestamp is there 0 times"},
		{"no signature", but("Webhook-Signature"), body, "webhook-signature is there 0 times"},
		{"an empty signature", but("Webhook-Signature", ""), body, "webhook-signature is there 1 times"},
		{"two ids", but("Webhook-Id", id, "msg_2"), body, "webhook-id is there 2 times"},
		{"two times", but("Webhook-Timestamp", now, ago(0)), body, "webhook-timestamp is there 2 times"},
		{"two signature headers", but("Webhook-Signature", v1(oldKey, signed), "v1,AA"), body, "webhook-signature is there 2 times"},
		{"no version", but("Webhook-Signature", strings.TrimPrefix(v1(oldKey, signed), "v1,")), body, "no signature fits"},
		{"hex where base64 is due", but("Webhook-Signature", "v1,"+hex.EncodeToString(sum(oldKey, signed))), body, "no signature fits"},
		{"too many to look at", but("Webhook-Signature", strings.Repeat("v1,AAAA ", 16)+v1(oldKey, signed)), body, "no signature fits"},
		{"a time that is none", but("Webhook-Timestamp", "now"), body, "the time that was signed is none"},
		{"a time below zero", but("Webhook-Timestamp", "-5"), body, "the time that was signed is none"},
		{"a time with a sign", but("Webhook-Timestamp", "+"+now), body, "the time that was signed is none"},
		{"a time past all times", but("Webhook-Timestamp", strings.Repeat("9", 30)), body, "the time that was signed is none"},
		{"an id with a blank", but("Webhook-Id", "msg 1"), body, "webhook-id is no name"},
		{"an id past all bounds", but("Webhook-Id", strings.Repeat("m", 256)), body, "webhook-id is no name"},
	} {
		r := hearing(t, Events{Scheme: SchemeStandardWebhooks, Secret: whsec(oldKey), Secrets: []Secret{whsec(newKey)}, Stamp: "/data/operation"})
		o, err := r.Origin(c.header, []byte(c.body))
		switch {
		case c.why == "" && (err != nil || !o.Signed || o.EventID != id || len(o.Seal) != 3):
			t.Errorf("%s: %+v %v", c.claim, o, err)
		case c.why != "" && (err == nil || err.Error() != c.why || o.Signed || o.EventID != ""):
			t.Errorf("%s: %+v %v, want %q", c.claim, o, err, c.why)
		}
	}
}

func TestStripesSignatureIsTaken(t *testing.T) {
	const secret, second, body = "whsec_stripe_one", "whsec_stripe_two", `{"id":"evt_1","object":"event"}`
	at := strconv.FormatInt(eventTime.Unix(), 10)
	old := strconv.FormatInt(eventTime.Add(-6*time.Minute).Unix(), 10)
	mac := func(secret, at, body string) string { return hex.EncodeToString(sum(secret, at+"."+body)) }
	for _, c := range []struct {
		claim, header, body, id, why string
	}{
		{"one", "t=" + at + ",v1=" + mac(secret, at, body), body, "evt_1", ""},
		{"blanks between", "t=" + at + ", v1=" + mac(secret, at, body), body, "evt_1", ""},
		{"several, and the last fits", "t=" + at + ",v1=00,v1=" + mac(whose, at, body) + ",v1=" + mac(second, at, body) + ",v0=ab", body, "evt_1", ""},
		{"hex in capitals", "t=" + at + ",v1=" + strings.ToUpper(mac(secret, at, body)), body, "evt_1", ""},
		{"a body without an id goes by its hash", "t=" + at + ",v1=" + mac(secret, at, `{}`), `{}`, digest([]byte(`{}`)), ""},
		{"a body that is no JSON goes by its hash", "t=" + at + ",v1=" + mac(secret, at, `no`), `no`, digest([]byte(`no`)), ""},
		{"another's", "t=" + at + ",v1=" + mac(whose, at, body), body, "", "no signature fits"},
		{"the old version only", "t=" + at + ",v0=" + mac(secret, at, body), body, "", "no signature fits"},
		{"another body", "t=" + at + ",v1=" + mac(secret, at, body), body + " ", "", "no signature fits"},
		{"too old", "t=" + old + ",v1=" + mac(secret, old, body), body, "", "it was signed 6m0s from now"},
		{"no time", "v1=" + mac(secret, at, body), body, "", "Stripe-Signature has 0 times"},
		{"two times", "t=" + old + ",t=" + at + ",v1=" + mac(secret, at, body), body, "", "Stripe-Signature has 2 times"},
		{"nothing", "", body, "", "Stripe-Signature is there 1 times"},
	} {
		r := hearing(t, Events{Scheme: SchemeStripe, Secrets: []Secret{NewSecret(secret), NewSecret(second)}, Stamp: "/data/object/metadata/operation"})
		o, err := r.Origin(http.Header{"Stripe-Signature": {c.header}}, []byte(c.body))
		if c.why == "" && (err != nil || !o.Signed || o.EventID != c.id) || c.why != "" && (err == nil || err.Error() != c.why || o.Signed) {
			t.Errorf("%s: %+v %v, want %q %q", c.claim, o, err, c.id, c.why)
		}
	}
}

// Only a signed event of the configured kind holds a record; what the record is
// worth, the ledger judges.
func TestWhatAnEventShows(t *testing.T) {
	o := payment()
	object := func(more string) string {
		return `{"id":"pay_1","amount":125000,"currency":"eur","recipient":"acct_7"` + more + `}`
	}
	event := func(kind, data string) string { return fmt.Sprintf(`{"type":%q,"data":%s}`, kind, data) }
	stamped := object(`,"metadata":{"operation":"` + o.OrderID + `"}`)
	e := Events{Scheme: SchemeStandardWebhooks, Secret: whsec(oldKey), ID: "/data/id", Stamp: "/data/metadata/operation", ConfirmedWhen: map[string]any{"/type": "payment.succeeded"}}
	for _, c := range []struct {
		claim, body string
		unsigned    bool
		stamp, id   string
		sentence    string
		amount      int64 // 0: no record
	}{
		{"the receipt", event("payment.succeeded", stamped), false, o.OrderID, "pay_1", "The provider's event payment.succeeded shows pay_1.", 125000},
		{"one without a stamp", event("payment.succeeded", object("")), false, "", "pay_1", "The provider's event payment.succeeded shows pay_1.", 125000},
		{"an unsigned one", event("payment.succeeded", stamped), true, o.OrderID, "pay_1", "An event that is not signed names it, which proves nothing.", 0},
		{"a failure", event("payment.failed", stamped), false, o.OrderID, "pay_1", "The provider's event payment.failed proves nothing by itself.", 0},
		{"a kind that nobody knows", event("payment.odd", stamped), false, o.OrderID, "pay_1", "The provider's event payment.odd proves nothing by itself.", 0},
		{"no record", event("payment.succeeded", `"pay_1"`), false, "", "", "The provider's event payment.succeeded says that it happened, but without a receipt that can be read, which proves nothing.", 0},
		{"a record without an id", event("payment.succeeded", `{"amount":1}`), false, "", "", "The provider's event payment.succeeded says that it happened, but without a receipt that can be read, which proves nothing.", 0},
		{"no JSON", "type=payment.succeeded", false, "", "", "The provider's event proves nothing by itself.", 0},
		{"a name twice", `{"type":"payment.succeeded","type":"payment.failed","data":` + stamped + `}`, false, "", "", "The provider's event proves nothing by itself.", 0},
	} {
		r := hearing(t, e)
		said := r.ReadEvent([]byte(c.body))
		look := r.Testimony(o, said, !c.unsigned)
		if said.Stamp != c.stamp || said.ReceiptID != c.id || look.Sentence != c.sentence || string(look.Body) != c.body {
			t.Errorf("%s: stamp %q id %q, %q", c.claim, said.Stamp, said.ReceiptID, look.Sentence)
		}
		if c.amount == 0 && (look.Finding != ledger.LookInconclusive || len(look.Records) > 0) {
			t.Errorf("%s: %s with %d records", c.claim, look.Finding, len(look.Records))
		}
		if c.amount > 0 && (look.Finding != ledger.LookFound || len(look.Records) != 1 || look.Records[0].ID != "pay_1" || *look.Records[0].Amount != c.amount ||
			look.Records[0].Currency != "EUR" || look.Records[0].Stamp != c.stamp || !strings.HasPrefix(string(look.Records[0].Raw), `{"id":"pay_1"`)) {
			t.Errorf("%s: %s %+v", c.claim, look.Finding, look.Records)
		}
	}
}

func TestWhereTheRecordOfAnEventStands(t *testing.T) {
	for _, c := range []struct {
		events  Events
		receipt string
		want    string
		known   bool
	}{
		{Events{Scheme: SchemeStandardWebhooks, ID: "/data/id"}, "/id", "/data", true},
		{Events{Scheme: SchemeStandardWebhooks, ID: "/data/payment/id"}, "/id", "/data/payment", true},
		{Events{Scheme: SchemeStandardWebhooks, ID: "/id"}, "/id", "", true},
		{Events{Scheme: SchemeStandardWebhooks, ID: "/data/payment_id"}, "/id", "/data/payment_id", false},
		{Events{Scheme: SchemeStandardWebhooks, ID: "/data/payment_id", Object: "/data"}, "/id", "/data", true},
		{Events{Scheme: SchemeStandardWebhooks}, "/id", "/data", true},
		{Events{Scheme: SchemeStripe}, "/id", "/data/object", true},
	} {
		got, known := Config{Events: c.events, Receipt: Receipt{ID: c.receipt}}.eventObject()
		if got != c.want || known != c.known {
			t.Errorf("%+v: %q %v, want %q %v", c.events, got, known, c.want, c.known)
		}
	}
}

func TestMistakesInTheEventsBlockAreFound(t *testing.T) {
	right := Events{Scheme: SchemeStandardWebhooks, Secret: whsec(oldKey), ID: "/data/id", Stamp: "/data/operation", ConfirmedWhen: map[string]any{"/type": "paid"}}
	for _, c := range []struct {
		want   string
		change func(*Events)
	}{
		{"", func(*Events) {}},
		{"", func(e *Events) { e.Secrets, e.Secret = []Secret{whsec(newKey)}, Secret{} }},
		{"", func(e *Events) { *e = Events{Scheme: SchemeNone, Stamp: "/operation"} }},
		{`events.scheme: "hmac" is not one of standard-webhooks, stripe, none`, func(e *Events) { e.Scheme = "hmac" }},
		{`events.scheme: is missing; write one of standard-webhooks, stripe, none`, func(e *Events) { e.Scheme = "" }},
		{`events.secret: is missing`, func(e *Events) { e.Secret = Secret{} }},
		{`events.secret: is no secret of this scheme: write whsec_ and base64`, func(e *Events) { e.Secret = NewSecret(canary + "!") }},
		{`events.secret: is shorter than 24 bytes`, func(e *Events) { e.Secret = whsec("short") }},
		{`events.secrets[1]: is empty`, func(e *Events) { e.Secrets = []Secret{whsec(newKey), NewSecret("")} }},
		{`events.secret: has no use with scheme: none`, func(e *Events) { e.Scheme, e.ConfirmedWhen = SchemeNone, nil }},
		{`events.confirmed_when: has no use with scheme: none`, func(e *Events) { e.Scheme, e.Secret = SchemeNone, Secret{} }},
		{`events.stamp: is missing; without it, or id`, func(e *Events) { e.ID, e.Stamp = "", "" }},
		{`events.stamp: "data" is not a JSON Pointer`, func(e *Events) { e.Stamp = "data" }},
		{`events.object: "data" is not a JSON Pointer`, func(e *Events) { e.Object = "data" }},
		{`events.object: is missing; events.id does not end in receipt.id`, func(e *Events) { e.ID = "/data/payment" }},
		{`events.confirmed_when./type: must be compared with a text`, func(e *Events) { e.ConfirmedWhen["/type"] = []any{"paid"} }},
	} {
		e := right
		e.ConfirmedWhen = map[string]any{"/type": "paid"}
		c.change(&e)
		_, err := New("card", with(card("https://api.example.com"), func(c *Config) { c.Events = e }), time.Now)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), "rails.card."+c.want) {
			t.Errorf("want %q\n got %v", c.want, err)
		}
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}

func FuzzOrigin(f *testing.F) {
	f.Add("msg_1", "1772614800", "v1,AAAA", `{"type":"x"}`)
	f.Add("t=1772614800,v1=00", "", "", `{"id":"evt_1"}`)
	r, err := New("card", with(card("https://api.example.com"), func(c *Config) {
		c.Events = Events{Scheme: SchemeStandardWebhooks, Secret: whsec(oldKey), Stamp: "/data/operation", ID: "/data/id", ConfirmedWhen: map[string]any{"/type": "x"}}
	}), func() time.Time { return eventTime })
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, at, signature, body string) {
		if o, err := r.Origin(http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {signature}}, []byte(body)); err == nil {
			t.Fatalf("a signature that nobody made is taken: %+v", o)
		}
		r.Testimony(ledger.Operation{OrderID: "ord_1"}, r.ReadEvent([]byte(body)), true)
	})
}

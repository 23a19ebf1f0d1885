package rail

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"holdfast/store/ledger"
)

const cardYAML = `
adapter: http
base_url: https://api.example.com
account: live-eu
headers: { Authorization: "Bearer sk_canary_5f1c0ffee" }
timeout: 10s
dedupe:  { by: key, header: Idempotency-Key, retention: 24h }
send:    { method: POST, path: /payments }
stamp:   { body: /metadata/operation }
answers:
  - { status: [200, 201], means: confirmed }
  - { status: [202], means: pending }
  - { status: [402], means: rejected }
  - { status: [400, 422], body: { /error/type: invalid_request }, means: rejected }
  - { status: [429], means: not_sent }
receipt: { id: /id, amount: /amount, currency: /currency, recipient: /recipient, amounts: minor }
lookup:  { path: "/payments?reference={order_id}", items: /data, lag: 0s, absence_proves_after: never }
limits:  { concurrency: 8, max_attempts: 5, max_elapsed: 15m, backoff: [500ms, 60s], quota: 500 }
breaker: { failures: 5, open_for: 30s }
quiet: 15m
statement: { format: csv, amounts: minor, columns: { id: id, amount: amount, currency: currency, date: created_at, reference: reference, stamp: operation, counterparty: recipient } }
events:  { scheme: standard-webhooks, secret: "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5", id: /data/id, stamp: /data/metadata/operation, confirmed_when: { /type: payment.succeeded } }
`

func TestExampleOfTheContractIsAccepted(t *testing.T) {
	var c Config
	if err := yaml.UnmarshalWithOptions([]byte(cardYAML), &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	r := mustRail(t, c)
	want := ledger.Rail{
		Name: "card", Adapter: "http", Address: "https://api.example.com", Account: "live-eu",
		Dedupe:   ledger.Dedupe{By: ledger.DedupeKey, Place: "header idempotency-key", Retention: 24 * time.Hour},
		Lookup:   ledger.LookupPromise{Possible: true},
		Compared: ledger.ReceiptFields{Amount: true, Currency: true, Recipient: true},
		Timeout:  10 * time.Second, Quiet: 15 * time.Minute, PendingFor: 168 * time.Hour,
		Limits: ledger.Limits{Concurrency: 8, Quota: 500, Recheck: 200, MaxAttempts: 5, MaxElapsed: 15 * time.Minute, BackoffMin: 500 * time.Millisecond, BackoffMax: time.Minute},
	}
	if got := r.Promise(); !reflect.DeepEqual(got, want) {
		t.Errorf("promise\n got %+v\nwant %+v", got, want)
	}
	if got := r.config.Answers[3].Body["/error/type"]; got != "invalid_request" {
		t.Errorf("body condition is %v", got)
	}
	if r.config.Statement.Columns["date"] != "created_at" || r.config.Events.ConfirmedWhen["/type"] != "payment.succeeded" {
		t.Errorf("statement and events were not read: %+v", r.config.Statement)
	}
}

func TestWhatIsLeftOutPromisesLittle(t *testing.T) {
	r := mustRail(t, Config{Adapter: "http", BaseURL: "https://api.example.com/v1/"})
	want := ledger.Rail{
		Name: "card", Adapter: "http", Address: "https://api.example.com/v1",
		Dedupe:  ledger.Dedupe{By: ledger.DedupeNone},
		Timeout: 10 * time.Second, Quiet: 15 * time.Minute, PendingFor: 168 * time.Hour,
		Limits: ledger.Limits{Concurrency: 8, Quota: 500, Recheck: 200, MaxAttempts: 5, MaxElapsed: 15 * time.Minute, BackoffMin: 500 * time.Millisecond, BackoffMax: time.Minute},
	}
	if got := r.Promise(); !reflect.DeepEqual(got, want) {
		t.Errorf("promise\n got %+v\nwant %+v", got, want)
	}
	if _, err := r.Render(payment()); err == nil || !strings.Contains(err.Error(), "send.path is missing") {
		t.Errorf("a rail without a path renders: %v", err)
	}
	if _, err := r.For("charge", Override{}); err == nil || !strings.Contains(err.Error(), "rails.card.send.path") {
		t.Errorf("an action type without a path is accepted: %v", err)
	}
}

func TestErrorsNameTheirKey(t *testing.T) {
	one := func(n int) *int { return &n }
	for _, c := range []struct {
		want   string
		change func(*Config)
	}{
		{`rails.card.adapter: "" is not one of http, stripe, smtp, sandbox`, func(c *Config) { c.Adapter = "" }},
		{`rails.card.adapter: "ftp" is not one of http, stripe, smtp, sandbox`, func(c *Config) { c.Adapter = "ftp" }},
		{`rails.card.mail: is for adapter smtp`, func(c *Config) { c.Mail.From = "a@example.com" }},
		{`rails.card.base_url: is missing`, func(c *Config) { c.BaseURL = "" }},
		{`rails.card.base_url: must begin with`, func(c *Config) { c.BaseURL = "ftp://x" }},
		{`rails.card.base_url: must begin with`, func(c *Config) { c.BaseURL = "api.example.com" }},
		{`rails.card.base_url: names no host`, func(c *Config) { c.BaseURL = "https:///x" }},
		{`rails.card.base_url: holds a name or password`, func(c *Config) { c.BaseURL = "https://a:b@x" }},
		{`rails.card.base_url: holds a query`, func(c *Config) { c.BaseURL = "https://x/?a=b" }},
		{`rails.card.base_url: has a port`, func(c *Config) { c.BaseURL = "https://x:99999" }},
		{`rails.card.base_url: has a host`, func(c *Config) { c.BaseURL = "https://bänk.example" }},
		{`rails.card.base_url: has a path`, func(c *Config) { c.BaseURL = "https://x/a/../b" }},
		{`rails.card.answers[2].means: "maybe" is not one of confirmed, rejected, not_sent, pending, unknown`, func(c *Config) {
			c.Answers = []AnswerRow{{Status: []int{200}, Means: "confirmed"}, {Status: []int{202}, Means: "pending"}, {Status: []int{400}, Means: "maybe"}}
		}},
		{`rails.card.answers[0].means: "" is not one of`, func(c *Config) { c.Answers = []AnswerRow{{Status: []int{200}}} }},
		{`rails.card.answers[0].status: is missing`, func(c *Config) { c.Answers = []AnswerRow{{Means: "confirmed"}} }},
		{`rails.card.answers[0].status: 100 is not`, func(c *Config) { c.Answers = []AnswerRow{{Status: []int{100}, Means: "confirmed"}} }},
		{`rails.card.answers[0].status: 500 is a fault of the provider`, func(c *Config) { c.Answers = []AnswerRow{{Status: []int{500}, Means: "rejected"}} }},
		{`rails.card.answers[0].status: 502 is a fault of the provider`, func(c *Config) { c.Answers = []AnswerRow{{Status: []int{502}, Means: "not_sent"}} }},
		{`rails.card.answers[0].body: "type" is not a JSON Pointer`, func(c *Config) {
			c.Answers = []AnswerRow{{Status: []int{400}, Body: map[string]any{"type": "x"}, Means: "rejected"}}
		}},
		{`rails.card.answers[0].body./a: must be compared`, func(c *Config) {
			c.Answers = []AnswerRow{{Status: []int{400}, Body: map[string]any{"/a": map[string]any{"x": "y"}}, Means: "rejected"}}
		}},
		{`rails.card.answers[0].body./a: is an empty list`, func(c *Config) {
			c.Answers = []AnswerRow{{Status: []int{400}, Body: map[string]any{"/a": []any{}}, Means: "rejected"}}
		}},
		{`rails.card.answers[0].receipt.amount: is missing; it is compared on this rail`, func(c *Config) {
			c.Answers = []AnswerRow{{Status: []int{409}, Means: "confirmed", Receipt: &Receipt{ID: "/id", Currency: "/c", Recipient: "/r"}}}
		}},
		{`rails.card.answers[0].receipt.id: is missing`, func(c *Config) {
			c.Answers = []AnswerRow{{Status: []int{409}, Means: "confirmed", Receipt: &Receipt{Amount: "/a", Currency: "/c", Recipient: "/r"}}}
		}},
		{`rails.card.answers[0].receipt.id: "id" is not a JSON Pointer`, func(c *Config) {
			c.Answers = []AnswerRow{{Status: []int{409}, Means: "confirmed", Receipt: &Receipt{ID: "id", Amount: "/a", Currency: "/c", Recipient: "/r"}}}
		}},
		{`rails.card.answers[0].receipt: is read only where`, func(c *Config) {
			c.Answers = []AnswerRow{{Status: []int{402}, Means: "rejected", Receipt: &Receipt{ID: "/id", Amount: "/a", Currency: "/c", Recipient: "/r"}}}
		}},
		{`rails.card.answers[0].receipt: is missing; an answer of 409 confirms only by`, func(c *Config) {
			c.Answers, c.Receipt, c.Lookup = []AnswerRow{{Status: []int{409}, Means: "confirmed"}}, Receipt{}, Lookup{}
		}},
		{`rails.card.dedupe.scope: "region" is not one of account, credential`, func(c *Config) { c.Dedupe.Scope = "region" }},
		{`rails.card.dedupe.replay_marker: needs the name of a header and its value`, func(c *Config) { c.Dedupe.ReplayMarker.Header = "Replayed" }},
		{`rails.card.dedupe.replay_marker: needs the name of a header and its value`, func(c *Config) { c.Dedupe.ReplayMarker = Marker{"a b", "true"} }},
		{`rails.card.answers: is empty`, func(c *Config) { c.Answers = []AnswerRow{} }},
		{`rails.card.dedupe: by: key needs either`, func(c *Config) { c.Dedupe = Dedupe{By: "key"} }},
		{`rails.card.dedupe: by: key needs either`, func(c *Config) { c.Dedupe.Body = "/key" }},
		{`rails.card.dedupe.by: "keys" is not one of key, natural, none`, func(c *Config) { c.Dedupe.By = "keys" }},
		{`rails.card.dedupe.by: "" is not one of`, func(c *Config) { c.Dedupe.By = "" }},
		{`rails.card.dedupe.by: "none" sends no key`, func(c *Config) { c.Dedupe.By = "none" }},
		{`rails.card.dedupe.header: "A B" is not the name of a header`, func(c *Config) { c.Dedupe.Header = "A B" }},
		{`rails.card.dedupe.header: Authorization has another use`, func(c *Config) { c.Dedupe.Header = "Authorization" }},
		{`rails.card.timeout: is longer than 1h0m0s`, func(c *Config) { c.Timeout = Lasting(time.Hour + 1) }},
		{`rails.card.dedupe.retention: cannot be never`, func(c *Config) { c.Dedupe.Retention = Never() }},
		{`rails.card.stamp: has both`, func(c *Config) { c.Stamp.Header = "Order" }},
		{`rails.card.stamp.body: "operation" is not a JSON Pointer`, func(c *Config) { c.Stamp.Body = "operation" }},
		{`rails.card.stamp.body: stands in the place of dedupe.body`, func(c *Config) { c.Dedupe.Header, c.Dedupe.Body = "", "/metadata" }},
		{`rails.card.stamp.body: has no body`, func(c *Config) { c.Send.Body = "none" }},
		{`rails.card.send.method: "GET" is not one of`, func(c *Config) { c.Send.Method = "GET" }},
		{`rails.card.send.path: must begin with /`, func(c *Config) { c.Send.Path = "payments" }},
		{`rails.card.send.path: {receipt_id} is not known`, func(c *Config) { c.Send.Path = "/payments/{receipt_id}" }},
		{`rails.card.send.path: {order} is not one of {order_id}`, func(c *Config) { c.Send.Path = "/payments/{order}" }},
		{`rails.card.send.body: "form" is not one of`, func(c *Config) { c.Send.Body = "form" }},
		{`rails.card.send.path: {first_sent_at} is not known`, func(c *Config) { c.Send.Path = "/payments/{first_sent_at}" }},
		{`rails.card.send.encoding: "xml" is not one of json, form`, func(c *Config) { c.Send.Encoding = "xml" }},
		{`rails.card.auth: says the same as headers.Authorization`, func(c *Config) { c.Auth.Bearer = NewSecret(canary) }},
		{`rails.card.auth: has both bearer and basic`, func(c *Config) {
			c.Headers, c.Auth = nil, Auth{Bearer: NewSecret(canary), Basic: &Basic{User: NewSecret("u"), Password: NewSecret(canary)}}
		}},
		{`rails.card.auth.bearer: has a value with a control character`, func(c *Config) { c.Headers, c.Auth.Bearer = nil, NewSecret(canary+"\n") }},
		{`rails.card.auth.basic.user: is missing`, func(c *Config) { c.Headers, c.Auth.Basic = nil, &Basic{Password: NewSecret(canary)} }},
		{`rails.card.auth.basic.user: is missing, or holds a colon`, func(c *Config) {
			c.Headers, c.Auth.Basic = nil, &Basic{User: NewSecret("a:b"), Password: NewSecret(canary)}
		}},
		{`rails.card.auth.basic.password: is missing`, func(c *Config) { c.Headers, c.Auth.Basic = nil, &Basic{User: NewSecret("u")} }},
		{`rails.card.lookup.path: lists whatever was made since {first_sent_at}`, func(c *Config) {
			c.Stamp, c.Lookup.Path = Stamp{Header: "Order"}, "/payments?since={first_sent_at}"
		}},
		{`rails.card.lookup.next: needs either`, func(c *Config) { c.Lookup.Next = &Next{Param: "after"} }},
		{`rails.card.lookup.next: needs either`, func(c *Config) { c.Lookup.Next = &Next{Cursor: "/a", Last: "/b", Param: "after"} }},
		{`rails.card.lookup.next.param: is missing`, func(c *Config) { c.Lookup.Next = &Next{Cursor: "/a"} }},
		{`rails.card.lookup.next.param: "a&b" is not the name`, func(c *Config) { c.Lookup.Next = &Next{Cursor: "/a", Param: "a&b"} }},
		{`rails.card.lookup.next.param: "reference" stands in lookup.path already`, func(c *Config) { c.Lookup.Next = &Next{Cursor: "/a", Param: "reference"} }},
		{`rails.card.lookup.next.last: "id" is not a JSON Pointer`, func(c *Config) { c.Lookup.Next = &Next{Last: "id", Param: "after"} }},
		{`rails.card.lookup.next.pages: 0 is less than 1`, func(c *Config) { c.Lookup.Next = &Next{Last: "/id", Param: "after", Pages: one(0)} }},
		{`rails.card.lookup.confirmed_when: "status" is not a JSON Pointer`, func(c *Config) { c.Lookup.ConfirmedWhen = map[string]any{"status": "paid"} }},
		{`rails.card.lookup.confirmed_when./status: is an empty list`, func(c *Config) { c.Lookup.ConfirmedWhen = map[string]any{"/status": []any{}} }},
		{`rails.card.lookup.confirmed_when./status: must be compared`, func(c *Config) {
			c.Lookup.ConfirmedWhen = map[string]any{"/status": []any{"paid", []any{}}}
		}},
		{`rails.card.tls.key: is missing`, func(c *Config) { c.TLS.Cert = NewPEM("c.pem", nil) }},
		{`rails.card.tls.cert: is missing`, func(c *Config) { c.TLS.Key = NewPEM("k.pem", []byte(canary)) }},
		{`rails.card.tls.cert: "c.pem" holds no certificate`, func(c *Config) { c.TLS.Cert, c.TLS.Key = NewPEM("c.pem", nil), NewPEM("k.pem", []byte(canary)) }},
		{`rails.card.tls.ca: "ca.pem" holds no certificate`, func(c *Config) { c.TLS.CA = NewPEM("ca.pem", []byte(canary)) }},
		{`rails.card.tls: needs a base_url that begins with https`, func(c *Config) { c.BaseURL, c.TLS.CA = "http://127.0.0.1:1", NewPEM("ca.pem", nil) }},
		{`rails.card.auth: is missing; write { bearer: "${STRIPE_SECRET_KEY}" }`, func(c *Config) { *c = Config{Adapter: "stripe"} }},
		{`rails.card.lookup.path: is missing`, func(c *Config) { c.Lookup.Path = "" }},
		{`rails.card.lookup.path: names no placeholder`, func(c *Config) { c.Lookup.Path = "/payments" }},
		{`rails.card.lookup.items: "data" is not a JSON Pointer`, func(c *Config) { c.Lookup.Items = "data" }},
		{`rails.card.lookup.lag: cannot be never`, func(c *Config) { c.Lookup.Lag = Never() }},
		{`rails.card.receipt.id: is missing`, func(c *Config) { c.Receipt.ID = "" }},
		{`rails.card.receipt.amount: "amount" is not a JSON Pointer`, func(c *Config) { c.Receipt.Amount = "amount" }},
		{`rails.card.receipt.amounts: "euro" is not one of minor, decimal`, func(c *Config) { c.Receipt.Amounts = "euro" }},
		{`rails.card.receipt.amounts: decimal needs to know`, func(c *Config) { c.Receipt.Amounts = "decimal" }},
		{`rails.card.limits.max_attempts: 0 is less than 1`, func(c *Config) { c.Limits.MaxAttempts = one(0) }},
		{`rails.card.limits.concurrency: -1 is less than 1`, func(c *Config) { c.Limits.Concurrency = one(-1) }},
		{`rails.card.limits.backoff: must be two durations`, func(c *Config) { c.Limits.Backoff = []Duration{Lasting(time.Second)} }},
		{`rails.card.limits.backoff: must be two durations`, func(c *Config) {
			c.Limits.Backoff = []Duration{Lasting(time.Minute), Lasting(time.Second)}
		}},
		{`rails.card.breaker.failures: 0 is less than 1`, func(c *Config) { c.Breaker.Failures = one(0) }},
		{`rails.card.timeout: must be longer than zero`, func(c *Config) { c.Timeout = Lasting(0) }},
		{`rails.card.quiet: cannot be never`, func(c *Config) { c.Quiet = Never() }},
		{`rails.card.pending_for: must be longer`, func(c *Config) { c.PendingFor = Lasting(0) }},
		{`rails.card.headers.Authorization: has a value with a control character`, func(c *Config) { c.Headers["Authorization"] = NewSecret(canary + "\r\nX: y") }},
		{`rails.card.headers.Authorization: has a value that is empty`, func(c *Config) { c.Headers["Authorization"] = NewSecret(canary + " ") }},
		{`rails.card.headers.Host: Host is written by the program itself`, func(c *Config) { c.Headers["Host"] = NewSecret("x") }},
		{`rails.card.headers.transfer-encoding: transfer-encoding is written`, func(c *Config) { c.Headers["transfer-encoding"] = NewSecret("chunked") }},
		{`rails.card.headers.idempotency-key: idempotency-key is given twice`, func(c *Config) { c.Headers["idempotency-key"] = NewSecret("x") }},
		{`rails.card.statement.format: is missing`, func(c *Config) { c.Statement.Amounts = "minor" }},
		{`rails.card.statement.format: "xls" is not one of csv, stripe_balance`, func(c *Config) { c.Statement.Format = "xls" }},
		{`rails.card.statement.format: is missing; write one of`, func(c *Config) { c.Statement.TimeZone = "Europe/Berlin" }},
		{`rails.card.statement.amounts: "cents" is not one of minor, decimal`, func(c *Config) { c.Statement = Statement{Format: "csv", Amounts: "cents"} }},
		{`rails.card.statement.delimiter: "\t" is not one of ,, ;, |, tab`, func(c *Config) { c.Statement = Statement{Format: "csv", Delimiter: "\t"} }},
		{`rails.card.statement.decimal: "." is not one of point, comma`, func(c *Config) { c.Statement = Statement{Format: "csv", Decimal: "."} }},
		{`rails.card.statement.sign: "+" is not one of in, out`, func(c *Config) { c.Statement = Statement{Format: "csv", Sign: "+"} }},
		{`rails.card.statement.dates: "dd/mm" is not one of iso, dmy`, func(c *Config) { c.Statement = Statement{Format: "csv", Dates: "dd/mm"} }},
		{`rails.card.statement.encoding: "latin" is not one of utf-8`, func(c *Config) { c.Statement = Statement{Format: "csv", Encoding: "latin"} }},
		{`rails.card.statement.header: "no" is not one of none`, func(c *Config) { c.Statement = Statement{Format: "csv", Header: "no"} }},
		{`rails.card.statement.time_zone: "Berlin" is not the name of a time zone`, func(c *Config) { c.Statement = Statement{Format: "csv", TimeZone: "Berlin"} }},
		{`rails.card.statement.columns.sum: is not one of id, provider_id`, func(c *Config) { c.Statement = Statement{Format: "csv", Columns: map[string]string{"sum": "Sum"}} }},
		{`rails.card.statement.columns.date: is empty`, func(c *Config) { c.Statement = Statement{Format: "csv", Columns: map[string]string{"date": " "}} }},
		{`rails.card.statement.columns.date: "Day" is not the number of a column`, func(c *Config) {
			c.Statement = Statement{Format: "csv", Header: "none", Columns: map[string]string{"date": "Day"}}
		}},
		{`rails.card.statement.columns.date: is missing`, func(c *Config) { c.Statement = Statement{Format: "csv", Columns: map[string]string{"amount": "a"}} }},
		{`rails.card.statement.columns.amount: is needed`, func(c *Config) { c.Statement = Statement{Format: "csv", Columns: map[string]string{"date": "d"}} }},
		{`rails.card.statement.columns.debit: and credit go together`, func(c *Config) {
			c.Statement = Statement{Format: "csv", Columns: map[string]string{"date": "d", "debit": "x"}}
		}},
		{`rails.card.statement.columns.indicator: says which way`, func(c *Config) {
			c.Statement = Statement{Format: "csv", Columns: map[string]string{"date": "d", "debit": "x", "credit": "y", "indicator": "z"}}
		}},
		{`rails.card.statement.columns.currency: is missing`, func(c *Config) {
			c.Statement = Statement{Format: "csv", Columns: map[string]string{"date": "d", "amount": "x"}}
		}},
		{`rails.card.events.secret: is missing`, func(c *Config) { c.Events.Scheme = "standard-webhooks" }},
		{`rails.card.events.scheme: is missing`, func(c *Config) { c.Events.ID = "/id" }},
	} {
		_, err := New("card", with(card("https://api.example.com"), c.change), time.Now)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q\n got %v", c.want, err)
		}
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}

func TestEveryErrorIsReported(t *testing.T) {
	_, err := New("card", Config{Adapter: "http", Timeout: Never(), Answers: []AnswerRow{{}}}, time.Now)
	for _, key := range []string{"base_url", "timeout", "answers[0].means", "answers[0].status"} {
		if err == nil || !strings.Contains(err.Error(), "rails.card."+key) {
			t.Errorf("%s is not named in %v", key, err)
		}
	}
}

func TestDurationsNeedAUnit(t *testing.T) {
	for text, want := range map[string]Duration{
		"10s": Lasting(10 * time.Second), "500ms": Lasting(500 * time.Millisecond), `"24h"`: Lasting(24 * time.Hour),
		"0s": Lasting(0), "never": Never(),
	} {
		var d struct{ D Duration }
		if err := yaml.Unmarshal([]byte("d: "+text), &d); err != nil || d.D != want {
			t.Errorf("%s: %v, %v", text, d.D, err)
		}
	}
	for _, text := range []string{"10", "0", "-5s", "soon", "[1s]", "1.5", "true"} {
		var d struct{ D Duration }
		err := yaml.Unmarshal([]byte("a: 1\nd: "+text), &d)
		if err == nil || !strings.Contains(err.Error(), "[2:") || !strings.Contains(err.Error(), "not a duration") {
			t.Errorf("%s: %v, %v", text, d.D, err)
		}
	}
	if (Duration{}).Or(time.Minute) != time.Minute || Lasting(0).Or(time.Minute) != 0 {
		t.Error("a zero that was given is not a default")
	}
}

func TestAnActionTypeReplacesWholeBlocks(t *testing.T) {
	r := mustRail(t, card("https://api.example.com"))
	f, err := r.For("refund", Override{
		Send:    &Send{Path: "/charges/{/charge}/refunds"},
		Receipt: &Receipt{ID: "/refund/id"},
		Lookup:  &Lookup{Path: "/refunds/{receipt_id}"},
		Answers: []AnswerRow{{Status: []int{200}, Means: "confirmed"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := payment()
	o.Payload = []byte(`{"charge":"ch/1"}`)
	if req := mustRender(t, f, o); req.URL != "https://api.example.com/charges/ch%2F1/refunds" {
		t.Errorf("URL is %s", req.URL)
	}
	if f.Promise().Compared != (ledger.ReceiptFields{}) {
		t.Errorf("the rail's receipt shows through: %+v", f.Promise().Compared)
	}
	if f.Breaker() != r.Breaker() {
		t.Error("an action type has a breaker of its own")
	}
	if req := mustRender(t, r, payment()); req.URL != "https://api.example.com/payments" {
		t.Errorf("the rail itself changed: %s", req.URL)
	}
	if _, err := r.For("refund", Override{Answers: []AnswerRow{{Status: []int{200}, Means: "ok"}}}); err == nil {
		t.Error("an override is not checked")
	}
}

func TestSandboxComesReadyMade(t *testing.T) {
	r := mustRail(t, Config{Adapter: "sandbox"})
	p := r.Promise()
	if p.Dedupe != (ledger.Dedupe{By: ledger.DedupeKey, Place: "header idempotency-key", Retention: 24 * time.Hour}) || p.Quiet != 30*time.Second || !p.Lookup.Possible {
		t.Errorf("promise is %+v", p)
	}
	o := payment()
	o.Payload = []byte(`{"amount":1,"id":"c 7"}`)
	for effect, want := range map[string]string{
		"charge": "POST http://sandbox/payments",
		"refund": "POST http://sandbox/refunds",
		"email":  "POST http://sandbox/emails",
		"crm":    "PUT http://sandbox/records/c%207",
	} {
		f, err := r.For(effect, Override{})
		if err != nil {
			t.Fatal(err)
		}
		req := mustRender(t, f, o)
		if got := req.Method + " " + req.URL; got != want {
			t.Errorf("%s goes to %s, want %s", effect, got, want)
		}
		if want := `{"amount":1,"id":"c 7","metadata":{"operation":"` + o.OrderID + `"}}`; string(req.Body) != want {
			t.Errorf("body is %s", req.Body)
		}
	}
	if _, err := r.For("teleport", Override{}); err == nil || !strings.Contains(err.Error(), `"teleport"`) {
		t.Errorf("an unknown effect has a path: %v", err)
	}
	if _, err := r.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "start the sandbox") {
		t.Errorf("a sandbox without an address is dialled: %v", err)
	}
	own := mustRail(t, Config{Adapter: "sandbox", BaseURL: "http://127.0.0.1:1", Dedupe: Dedupe{By: "none"}, Quiet: Lasting(0)})
	if p := own.Promise(); p.Dedupe.By != ledger.DedupeNone || p.Quiet != 0 || p.Address != "http://127.0.0.1:1" {
		t.Errorf("the configuration does not win: %+v", p)
	}
}

func TestSandboxKeepsItsNameWhereverItListens(t *testing.T) {
	p := newProvider(t, always(answer("201 Created", strings.Replace(paid, `"x"`, `"`+payment().OrderID+`"`, 1))))
	r, err := mustRail(t, Config{Adapter: "sandbox"}).For("charge", Override{})
	if err != nil {
		t.Fatal(err)
	}
	moved, err := r.At(p.url)
	if err != nil {
		t.Fatal(err)
	}
	if mustRender(t, moved, payment()).SHA256 != mustRender(t, r, payment()).SHA256 || moved.Promise().Address != "http://sandbox" {
		t.Error("the address of the child process shows in requests")
	}
	a := moved.Classify(payment(), send(t, moved))
	if a.Finding != ledger.Found || len(ledger.Compare(payment(), *a.Receipt, moved.Promise().Compared)) > 0 {
		t.Errorf("answer %+v", a)
	}
}

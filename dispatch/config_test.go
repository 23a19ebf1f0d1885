package dispatch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// contractExample is the example of the written contract, but for the adapters
// and a payout type that its policy names.
const contractExample = `
rails:
  card:
    adapter: http                 # http · stripe · smtp · sandbox
    base_url: https://api.example.com   # a loopback or private address written as such is meant
    account: live-eu              # names the credential
    headers: { Authorization: "Bearer ${CARD_TOKEN}" }
    timeout: 10s
    dedupe:  { by: key, header: Idempotency-Key, retention: 24h }   # by: key · natural · none
    send:    { method: POST, path: /payments }                      # body: the approved payload and the stamp
    stamp:   { body: /metadata/operation }                          # where the order_id goes; or header: NAME
    answers:                      # first row that fits wins; no row fits = unknown
      - { status: [200, 201], means: confirmed }
      - { status: [202], means: pending }
      - { status: [402], means: rejected }
      - { status: [400, 422], body: { /error/type: invalid_request }, means: rejected }
      - { status: [429], means: not_sent }                          # the provider documents that nothing ran
    receipt: { id: /id, amount: /amount, currency: /currency, recipient: /recipient, amounts: minor }
    lookup:  { path: "/payments?reference={order_id}", items: /data, lag: 0s, absence_proves_after: never }
    limits:  { concurrency: 8, max_attempts: 5, max_elapsed: 15m, backoff: [500ms, 60s], quota: 500 }
    breaker: { failures: 5, open_for: 30s }
    quiet: 15m                    # after the last possible send, before "it did not happen" may be said
    statement: { format: csv, amounts: minor, columns: { id: id, amount: amount, currency: currency, date: created_at, reference: reference, stamp: operation, counterparty: recipient } }
    events:  { scheme: standard-webhooks, secret: "${CARD_WEBHOOK_SECRET}", id: /data/id, stamp: /data/metadata/operation, confirmed_when: { /type: payment.succeeded } }
action_types:
  create_payment:
    rail: card                    # send, answers, receipt and lookup may be given here too
    effect: charge
    schema: create_payment.schema.json          # a file beside this one, or inline
    overlap: { mode: hold, window: 24h }        # hold · ask · off
    repeatable: false
    cacheable: 0s
    refund: { action_type: refund, payload: { charge: "{receipt_id}", amount: "{amount}", currency: "{currency}" } }
    mode: enforce                 # observe: decide and record, send nothing
  refund: { rail: card, send: { method: POST, path: /refunds }, schema: { type: object, properties: { charge: { type: string, x-role: refund_of }, amount: { type: integer }, currency: { type: string } } } }
  payout: { rail: card, effect: payout, schema: { type: object } }
  mail:   { rail: card, effect: email, schema: { type: object } }
  record: { rail: card, effect: crm, schema: { type: object } }
policy:                           # first row that fits wins
  - { name: blocked recipients, when: { recipient: [acct_bad] }, then: deny }
  - { name: big charges, when: { action_type: create_payment, currency: EUR, amount_over: 100000 }, then: ask, of: finance, approvals: 1, expires: 24h }
  - { name: new recipients, when: { effect: payout, recipient_new: true }, then: ask, of: approver, approvals: 2, step_up: true }
  - { name: daily cap, when: { spent_over: { amount: 500000, currency: EUR, window: 24h, per: agent } }, then: ask }   # open + confirmed + this one
  - { name: charges in euro, when: { action_type: create_payment, currency: EUR }, then: allow }
  - { name: mail and crm, when: { effect: [email, crm] }, then: allow }
currencies: { USDC: 6 }           # minor-unit digits of what ISO 4217 does not know
timing:  { lease: 30s, unknown_for: 1h, take_back: 0s }
runs:    { max_attempts: 20, max_elapsed: 24h }
limits:  { requests_per_second: 200 }
jobs:    { sweep: "@every 15s", lookup: "@every 30s", statements: "@every 10m", refunds: "0 7 * * *", seal: "@every 1m", recheck: "30 3 * * *" }
`

var testNow = func() time.Time { return time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC) }

func fakeEnv(values map[string]string) Env {
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}

var cardEnv = fakeEnv(map[string]string{"CARD_TOKEN": "tok-5f1c9e", "CARD_WEBHOOK_SECRET": "whsec_NzdhYTEyLTc3YWExMi03N2FhMTItNzdhYTEy", "EMPTY": "", "N": "7", "RPS": "-41"})

// configDir holds the files that the tests' configurations name.
func configDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	schema, err := defaults.ReadFile("defaults/create_payment.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"create_payment.schema.json": string(schema),
		"broken.schema.json":         `{"type": "object",`,
		"annotated.schema.json":      `{"type": "object", "properties": {"amount": {"type": "integer", "x-role": "amuont"}}}`,
		"token":                      "file-tok-8842\n",
		"empty":                      "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/", filepath.Join(dir, "outside")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTheContractsExampleIsReadWhole(t *testing.T) {
	c, err := ParseConfig([]byte(contractExample), configDir(t), "holdfast.yaml", cardEnv, testNow, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := c.Tenants[DefaultTenant]
	book := d.Rulebook
	if got := book.Rails["card"]; got.Address != "https://api.example.com" || got.Account != "live-eu" || got.Timeout != 10*time.Second || got.Limits.BackoffMax != time.Minute || !got.Lookup.Possible {
		t.Errorf("rail: %+v", got)
	}
	action := book.Actions["create_payment"]
	if action.Effect != "charge" || action.Overlap != (ledger.OverlapSpec{Mode: "hold", Window: 24 * time.Hour}) || action.Refund.Payload["charge"] != "{receipt_id}" {
		t.Errorf("action type: %+v", action)
	}
	if got := len(book.Policy.Rows); got != 6 || book.Policy.Version == "" {
		t.Errorf("policy: %d rows, version %q", got, book.Policy.Version)
	}
	big := book.Policy.Rows[1]
	if *big.When.AmountOver != 100000 || big.Of[0] != "finance" || big.Expires != 24*time.Hour || big.When.ActionType[0] != "create_payment" {
		t.Errorf("row: %+v", big)
	}
	if digits, ok := book.Currencies.Digits("USDC"); !ok || digits != 6 {
		t.Errorf("USDC has %d digits, known %v", digits, ok)
	}
	if c.Timing != (ledger.Timing{Lease: 30 * time.Second, UnknownFor: time.Hour}) || book.Timing != c.Timing {
		t.Errorf("timing: %+v, %+v", c.Timing, book.Timing)
	}
	if c.Limits.RequestsPerSecond != 200 || d.Rulebook.Runs != (ledger.RunLimits{MaxAttempts: 20, MaxElapsed: 24 * time.Hour}) || c.Jobs["recheck"] != "30 3 * * *" {
		t.Errorf("limits %+v, runs %+v, jobs %v", c.Limits, d.Rulebook.Runs, c.Jobs)
	}
	if d.RailConfigs["card"].Statement.Columns["date"] != "created_at" || d.Routes["refund"] == nil {
		t.Error("statement or route is missing")
	}
	if c.Rulebooks()[DefaultTenant] != book {
		t.Error("Rulebooks does not give the tenant's rulebook")
	}
}

func TestWhatIsLeftOutKeepsItsDefault(t *testing.T) {
	c, err := ParseConfig([]byte("jobs: { sweep: \"*/5 * * * * *\" }\ntiming: { take_back: 1m }\nruns: { max_attempts: 3 }\ntenants: { acme: {} }\n"), t.TempDir(), "h.yaml", cardEnv, testNow, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Jobs["sweep"] != "*/5 * * * * *" || c.Jobs["lookup"] != "@every 30s" || len(c.Jobs) != 8 {
		t.Errorf("jobs: %v", c.Jobs)
	}
	if c.Timing != (ledger.Timing{Lease: 30 * time.Second, UnknownFor: time.Hour, TakeBack: time.Minute}) {
		t.Errorf("timing: %+v", c.Timing)
	}
	if got := c.Tenants[DefaultTenant].Rulebook.Runs; got != (ledger.RunLimits{MaxAttempts: 3, MaxElapsed: 24 * time.Hour}) {
		t.Errorf("runs: %+v", got)
	}
	if got := c.Tenants["acme"].Rulebook.Runs; got != (ledger.RunLimits{MaxAttempts: 20, MaxElapsed: 24 * time.Hour}) {
		t.Errorf("another tenant's runs: %+v", got)
	}
	if got := c.Tenants["acme"].Rulebook.Policy.Decide(ledger.Operation{}, ledger.Facts{}, 0).Then; got != ledger.ThenAsk {
		t.Errorf("an empty policy says %q", got)
	}
}

func TestAnEmptyFileHasNoRailsAndNoActionTypes(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "\n\n", "---\n"} {
		c, err := ParseConfig([]byte(text), t.TempDir(), "h.yaml", cardEnv, testNow, nil)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if d := c.Tenants[DefaultTenant]; len(d.Rails) != 0 || len(d.Rulebook.Actions) != 0 {
			t.Errorf("%q: %d rails, %d action types", text, len(d.Rails), len(d.Rulebook.Actions))
		}
	}
}

func TestTheHashIsOfTheTextWithoutItsSecrets(t *testing.T) {
	text := []byte("rails: { a: { adapter: http, base_url: https://a.example, headers: { X: \"${T}\" } } }\n")
	hash := func(token string) string {
		c, err := ParseConfig(text, t.TempDir(), "h.yaml", fakeEnv(map[string]string{"T": token}), testNow, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Hash
	}
	if a, b := hash("one"), hash("two"); a != b || !strings.HasPrefix(a, "sha256:") {
		t.Errorf("%s, %s", a, b)
	}
}

func TestNoSecretShowsInWhatIsPrinted(t *testing.T) {
	secrets := map[string]string{"A": "alpha-secret", "B": "https://beta-secret.example", "C": "gamma\"secret", "D": "mon-delta 08:00-18:00 UTC"}
	dir := configDir(t)
	text := `
rails:
  card: { adapter: http, base_url: "${B}", account: "${A}", headers: { X: "${A}", Y: "${file:token}" }, send: { path: /x } }
action_types: { pay: { rail: card, schema: { type: object } } }
policy: [{ name: p, when: { recipient: "${A}" }, then: deny }]
`
	c, err := ParseConfig([]byte(text), dir, "h.yaml", fakeEnv(secrets), testNow, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Tenants[DefaultTenant].Rulebook.Rails["card"].Address; got != secrets["B"] {
		t.Errorf("address %q", got)
	}
	if got := c.Tenants[DefaultTenant].Rulebook.Policy.Rows[0].When.Recipient[0]; got != "alpha-secret" {
		t.Errorf("recipient %q", got)
	}
	for _, printed := range []string{fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", *c), fmt.Sprint(c.Tenants), fmt.Sprintf("%+v", *c.Tenants[DefaultTenant])} {
		wantNoSecret(t, printed)
	}
	// The same secrets in places where they are wrong.
	bad := `
rails:
  card: { adapter: "${A}", base_url: "${C}" }
  more: { adapter: http, base_url: "${A}", account: "${A}", dedupe: { by: "${A}", retention: "${A}" }, send: { method: "${A}", path: "${A}", body: "${A}" }, limits: { quota: "${A}" } }
  last: { adapter: http, base_url: "${A}", dedupe: { by: "${A}" }, send: { method: "${C}", path: "/{${A}}" }, headers: { X: "${A} \u00e9" }, answers: [{ status: [200], means: "${A}" }] }
action_types:
  pay: { rail: "${A}", schema: "${A}", mode: "${C}", overlap: { mode: "${A}" }, refund: { action_type: "${A}", payload: { x: 1 } } }
  two: { rail: last, schema: { type: object }, mode: "${C}", overlap: { mode: "${A}" } }
policy:
  - { name: "${A}", when: { action_type: "${A}", rail: "${A}", effect: "${C}", currency: "${A}", hours: "${A}" }, then: "${C}", of: "${A}" }
  - { name: "${A}", when: { hours: "${D}", spent_over: { amount: 1, currency: "${A}", window: 1h, per: "${A}" } }, then: ask }
jobs: { sweep: "${A}", lookup: "${C}" }
currencies: { EUROO: "${A}" }
limits: { requests_per_second: "${A}" }
`
	for _, text := range []string{bad, strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(bad, `retention: "${A}"`, "retention: 1h"), `quota: "${A}"`, "quota: 1"), `: "${A}" }
limits: { requests_per_second: "${A}" }`, ": 3 }")} {
		_, err = ParseConfig([]byte(text), dir, "h.yaml", fakeEnv(secrets), testNow, nil)
		if err == nil {
			t.Fatal("nothing was wrong")
		}
		wantNoSecret(t, err.Error())
	}
	if _, ok := err.(ConfigErrors); !ok || len(err.(ConfigErrors)) < 20 {
		t.Errorf("the second pass found little:\n%v", err)
	}
}

func wantNoSecret(t *testing.T, printed string) {
	t.Helper()
	for _, secret := range []string{"alpha", "beta", "gamma", "delta", "file-tok"} {
		if strings.Contains(strings.ToLower(printed), secret) {
			t.Errorf("%s shows in:\n%s", secret, printed)
		}
	}
}

func TestSecretFilesLoseOnlyTheirLastLineBreak(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{"a\n": "a", "a\r\n": "a", "a": "a", " a \n\n": " a \n"} {
		if err := os.WriteFile(filepath.Join(dir, "s"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := ParseConfig([]byte(`policy: [{ name: p, when: { recipient: "${file:s}" }, then: deny }]`), dir, "h.yaml", cardEnv, testNow, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Tenants[DefaultTenant].Rulebook.Policy.Rows[0].When.Recipient[0]; got != want {
			t.Errorf("%q was read as %q", text, got)
		}
	}
}

func TestAnInlineSchemaIsTheSameAsItsFile(t *testing.T) {
	const asJSON = `{"type":"object","properties":{"b":{"type":"number","maximum":100000000000000000000,"enum":[1.50,2]},"a":{"type":["string","null"],"const":"10:30 \"x\" é","x-sensitive":true,"default":null}}}`
	const asYAML = `
      type: object
      properties:
        b: { type: number, maximum: 100000000000000000000, enum: [1.50, 2] }
        a:
          type: [string, "null"]
          const: "10:30 \"x\" é"
          x-sensitive: true
          default:
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.json"), []byte(asJSON), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(schema string) string {
		text := "rails: { a: { adapter: sandbox } }\naction_types:\n  pay:\n    rail: a\n    effect: charge\n    schema: " + schema + "\n"
		c, err := ParseConfig([]byte(text), dir, "h.yaml", cardEnv, testNow, nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(c.Tenants[DefaultTenant].Rulebook.Actions["pay"].Schema)
	}
	if file, inline := read("s.json"), read(asYAML); file != inline {
		t.Errorf("file\n%s\ninline\n%s", file, inline)
	}
}

func TestASandboxKeepsItsAddressWhereverItListens(t *testing.T) {
	text := []byte("rails: { mine: { adapter: sandbox }, named: { adapter: sandbox, base_url: \"http://127.0.0.1:9\" } }\naction_types: { pay: { rail: mine, effect: charge, schema: { type: object } } }\ntenants: { acme: { rails: { theirs: { adapter: sandbox, dedupe: { by: none } } } } }\n")
	var asked []string
	at := func(address string) *Config {
		c, err := ParseConfig(text, t.TempDir(), "h.yaml", cardEnv, testNow, func(tenant, rail string, dedupe bool) (string, error) {
			asked = append(asked, fmt.Sprintf("%s/%s:%t", tenant, rail, dedupe))
			return address, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := at("http://127.0.0.1:4001"), at("http://127.0.0.1:4002")
	if got := strings.Join(asked, " "); got != "acme/theirs:false default/mine:true acme/theirs:false default/mine:true" {
		t.Errorf("asked for %s", got)
	}
	for _, c := range []*Config{a, b} {
		d := c.Tenants[DefaultTenant]
		for _, promise := range []ledger.Rail{d.Rulebook.Rails["mine"], d.Rulebook.Routes["pay"], d.Rails["mine"].Promise(), d.Routes["pay"].Promise()} {
			if promise.Address != "http://sandbox" {
				t.Errorf("the promised address is %q", promise.Address)
			}
		}
		if got := d.Rulebook.Rails["named"].Address; got != "http://127.0.0.1:9" {
			t.Errorf("the named sandbox has the address %q", got)
		}
	}
	_, err := ParseConfig(text, t.TempDir(), "h.yaml", cardEnv, testNow, func(string, string, bool) (string, error) { return "", errors.New("it does not start") })
	if err == nil || !strings.Contains(err.Error(), "h.yaml:1: rails.mine: it does not start") || !strings.Contains(err.Error(), "h.yaml:3: tenants.acme.rails.theirs: it does not start") {
		t.Errorf("%v", err)
	}
	asked = nil
	_, err = ParseConfig(append([]byte("nonsense: 1\n"), text...), t.TempDir(), "h.yaml", cardEnv, testNow, func(string, string, bool) (string, error) {
		t.Error("a provider was asked for by a file with mistakes")
		return "", nil
	})
	if err == nil {
		t.Error("nonsense was accepted")
	}
}

// What a provider's address leads to, for the rail and for each action type.
func TestASandboxIsDialledWhereItListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := ReadConfig("", cardEnv, testNow, func(string, string, bool) (string, error) { return "http://" + l.Addr().String(), nil })
	if err != nil {
		t.Fatal(err)
	}
	d := c.Tenants[DefaultTenant]
	ways := map[string]*rail.Rail{"the rail itself": d.Rails["sandbox"]}
	for action, route := range d.Routes {
		ways[action] = route
	}
	for name, way := range ways {
		conn, err := way.Connect(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		conn.Close()
	}
	if len(ways) != 5 {
		t.Errorf("%d ways", len(ways))
	}
	nowhere, err := ReadConfig("", cardEnv, testNow, nil)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := nowhere.Tenants[DefaultTenant].Rails["sandbox"].Connect(t.Context()); err == nil {
		conn.Close()
		t.Error("a sandbox that nobody started can be reached")
	}
}

func TestADirectoryIsNoConfiguration(t *testing.T) {
	dir := t.TempDir()
	if all := CheckConfig(dir, cardEnv, testNow); len(all) != 1 || !strings.HasPrefix(all[0].Error(), dir+": cannot be read") {
		t.Errorf("%v", all)
	}
	file := filepath.Join(dir, "holdfast.yaml")
	if all := CheckConfig(file, cardEnv, testNow); len(all) != 1 || all[0].Error() != file+": there is no such file" {
		t.Errorf("%v", all)
	}
	if err := os.WriteFile(file, []byte("a: 1\nb: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all := CheckConfig(file, cardEnv, testNow); len(all) != 2 || !strings.HasPrefix(all[1].Error(), file+":2: b: unknown key") {
		t.Errorf("%v", all)
	}
}

func TestTheDefaultsDecideAsPromised(t *testing.T) {
	c, err := ReadConfig("", cardEnv, testNow, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Source != "built-in defaults" || len(c.Tenants) != 1 {
		t.Errorf("source %q, %d tenants", c.Source, len(c.Tenants))
	}
	book := c.Tenants[DefaultTenant].Rulebook
	pay := func(amount, currency string) string {
		return `{"amount":` + amount + `,"currency":"` + currency + `","recipient":"acct_7","reference":"r"}`
	}
	for _, tt := range []struct {
		name, action, payload string
		then, row             string
	}{
		{"1,000.00 EUR", "create_payment", pay("100000", "EUR"), "allow", "small charges"},
		{"1,000.00 usd in small letters", "create_payment", pay("100000", "usd"), "allow", "small charges"},
		{"1,000.00 GBP", "create_payment", pay("100000", "GBP"), "allow", "small charges"},
		{"0.01 EUR", "create_payment", pay("1", "EUR"), "allow", "small charges"},
		{"1,000.01 EUR", "create_payment", pay("100001", "EUR"), "ask", "charges over 1,000.00 EUR"},
		{"1,000.01 USD", "create_payment", pay("100001", "USD"), "ask", "charges over 1,000.00 USD"},
		{"1,000.01 GBP", "create_payment", pay("100001", "GBP"), "ask", "charges over 1,000.00 GBP"},
		{"50 JPY", "create_payment", pay("50", "JPY"), "ask", "everything else"},
		{"refund", "refund", `{"charge":"pay_1","amount":1,"currency":"EUR"}`, "ask", "refunds"},
		{"e-mail", "send_email", `{"to":"Ann@Example.com","subject":"s","body":"b"}`, "allow", "mail and crm"},
		{"crm", "update_crm", `{"record":"cus_7","fields":{"tier":"gold","n":[1,{"deep":null}]}}`, "allow", "mail and crm"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := ledger.ParseStrict([]byte(tt.payload))
			if err != nil {
				t.Fatal(err)
			}
			action := book.Actions[tt.action]
			normal, wrong := action.Normalize(v)
			if len(wrong) > 0 {
				t.Fatalf("%v", wrong)
			}
			o := ledger.Operation{ActionType: tt.action, Effect: action.Effect, Rail: action.Rail, Terms: normal.Terms, Payload: normal.Payload,
				OperationID: "op-1", OrderID: "ord_1", ProviderKey: "k"}
			d := book.Policy.Decide(o, ledger.Facts{}, testNow().UnixMilli())
			if d.Then != tt.then || d.Row != tt.row {
				t.Errorf("%s by %q, want %s by %q", d.Then, d.Row, tt.then, tt.row)
			}
			if tt.action == "refund" && strings.Join(d.Asked.Of, ",") != "finance" {
				t.Errorf("asks %v", d.Asked.Of)
			}
			if _, err := c.Tenants[DefaultTenant].Routes[tt.action].Render(o); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheDefaultActionTypesAreWhatTheyShouldBe(t *testing.T) {
	c, err := ReadConfig("", cardEnv, testNow, nil)
	if err != nil {
		t.Fatal(err)
	}
	actions := c.Tenants[DefaultTenant].Rulebook.Actions
	for name, want := range map[string]struct {
		effect     string
		overlap    ledger.OverlapSpec
		repeatable bool
	}{
		"create_payment": {"charge", ledger.OverlapSpec{Mode: "hold", Window: 24 * time.Hour}, false},
		"refund":         {"refund", ledger.OverlapSpec{Mode: "hold", Window: 24 * time.Hour}, false},
		"send_email":     {"email", ledger.OverlapSpec{Mode: "hold", Window: 10 * time.Minute}, false},
		"update_crm":     {"crm", ledger.OverlapSpec{Mode: "off", Window: 24 * time.Hour}, true},
	} {
		a := actions[name]
		if a == nil || a.Effect != want.effect || a.Overlap != want.overlap || a.Repeatable != want.repeatable || a.Rail != "sandbox" {
			t.Errorf("%s: %+v", name, a)
			continue
		}
		for _, f := range a.Fields() {
			if f.Title == "" {
				t.Errorf("%s%s has no title", name, f.Pointer)
			}
		}
	}
	if len(actions) != 4 || actions["create_payment"].Refund.ActionType != "refund" {
		t.Errorf("%d action types, refund %+v", len(actions), actions["create_payment"].Refund)
	}
	for _, payload := range []string{
		`{"amount":0,"currency":"EUR","recipient":"a"}`,
		`{"amount":1.5,"currency":"EUR","recipient":"a"}`,
		`{"amount":1,"currency":"EUR"}`,
		`{"amount":1,"currency":"EUR","recipient":"a","Reference":"x"}`,
		`{"amount":1,"currency":"EUR","recipient":"a","metadata":{"operation":"mine"}}`,
	} {
		v, err := ledger.ParseStrict([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		if _, wrong := actions["create_payment"].Normalize(v); len(wrong) == 0 {
			t.Errorf("%s was accepted", payload)
		}
	}
}

// A reload must not change what a pointer leads to: values are read as the
// ledger reads payloads.
func TestConfiguredValuesAreReadAsPayloadsAre(t *testing.T) {
	_, err := ParseConfig([]byte(`rails: { a: { adapter: http, base_url: https://a.example, answers: [{ status: [200], body: { /n: 12345678901234567, /s: "5", /b: true, /z: null }, means: confirmed }] } }`), t.TempDir(), "h.yaml", cardEnv, testNow, nil)
	if err == nil {
		t.Fatal("a number that a double cannot hold was accepted")
	}
	c, err := ParseConfig([]byte(`rails: { a: { adapter: http, base_url: https://a.example, answers: [{ status: [200], body: { /n: 1234567890123456, /f: 1.50, /s: "5", /b: true, /z: null }, means: confirmed }] } }`), t.TempDir(), "h.yaml", cardEnv, testNow, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rows []rail.AnswerRow = c.Tenants[DefaultTenant].RailConfigs["a"].Answers
	if got := fmt.Sprintf("%#v", rows[0].Body); got != `map[string]interface {}{"/b":true, "/f":"1.50", "/n":"1234567890123456", "/s":"5", "/z":interface {}(nil)}` {
		t.Errorf("%s", got)
	}
}

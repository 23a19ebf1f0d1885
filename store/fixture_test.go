package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/invariant"
	"holdfast/store/ledger"
)

const tenant = "acme"

// clock is the time of a test: it stands until it is moved.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time        { return time.UnixMilli(c.ms.Load()) }
func (c *clock) move(by time.Duration) { c.ms.Add(by.Milliseconds()) }

// bench is a ledger under test: a store in a folder of its own, rules made by
// hand, and a clock.
type bench struct {
	t      testing.TB
	ctx    context.Context
	folder string
	clock  *clock
	s      *store.Store
	rules  map[string]*ledger.Rulebook
	token  map[string]string // by tenant
	broken bool              // the test damaged the ledger on purpose
	second *sql.DB           // see raw
}

// Action types of the test rules, by the rail they go to.
const (
	charge = "charge" // card: deduplicates by key for a day, can be asked
	wire   = "wire"   // bank: does not deduplicate, can be asked, silence proves nothing
	letter = "letter" // post: does not deduplicate, cannot be asked
	proven = "proven" // registry: does not deduplicate, an empty late answer is proof
	blind  = "blind"  // queue: deduplicates by key, cannot be asked
	memo   = "memo"   // post as well, and harmless to repeat
)

func railOf(action string) string {
	return map[string]string{charge: "card", wire: "bank", letter: "post", proven: "registry", blind: "queue", memo: "post"}[action]
}

const schema = `{
	"type": "object", "additionalProperties": false,
	"properties": {
		"amount":    {"type": "integer", "x-role": "amount"},
		"currency":  {"type": "string", "x-role": "currency"},
		"recipient": {"type": "string", "x-role": "recipient"},
		"reference": {"type": "string", "x-role": "reference"}
	}
}`

// newRules are the rules most tests start from: small payments go out, those to
// acct_ask wait for one person and those to acct_two for two.
func newRules(t testing.TB, change ...func(*ledger.Rulebook)) *ledger.Rulebook {
	t.Helper()
	rail := func(name string, dedupe ledger.Dedupe, lookup ledger.LookupPromise) ledger.Rail {
		return ledger.Rail{Name: name, Adapter: "http", Address: "https://" + name + ".example", Account: "live", Dedupe: dedupe, Lookup: lookup,
			Compared: ledger.ReceiptFields{Amount: true, Currency: true, Recipient: true},
			Timeout:  10 * time.Second, Quiet: 15 * time.Minute, PendingFor: 168 * time.Hour,
			Limits: ledger.Limits{Concurrency: 8, MaxAttempts: 5, MaxElapsed: 48 * time.Hour, BackoffMin: time.Second, BackoffMax: time.Minute}}
	}
	none, key := ledger.Dedupe{By: ledger.DedupeNone}, ledger.Dedupe{By: ledger.DedupeKey, Retention: 24 * time.Hour}
	r := &ledger.Rulebook{
		Rails: map[string]ledger.Rail{
			"card":     rail("card", key, ledger.LookupPromise{Possible: true}),
			"bank":     rail("bank", none, ledger.LookupPromise{Possible: true}),
			"post":     rail("post", none, ledger.LookupPromise{}),
			"registry": rail("registry", none, ledger.LookupPromise{Possible: true, Lag: time.Minute, AbsenceProvesAfter: time.Hour}),
			"queue":    rail("queue", key, ledger.LookupPromise{}),
		},
		Actions: map[string]*ledger.ActionType{}, Routes: map[string]ledger.Rail{},
		Timing: ledger.Timing{Lease: 30 * time.Second, UnknownFor: time.Hour},
		Runs:   ledger.RunLimits{MaxAttempts: 1000, MaxElapsed: 24 * time.Hour},
	}
	for _, name := range []string{charge, wire, letter, proven, blind, memo} {
		a, err := ledger.NewActionType(name, ledger.ActionSpec{Rail: railOf(name), Effect: name, Schema: []byte(schema), Repeatable: name == memo}, r.Currencies)
		if err != nil {
			t.Fatal(err)
		}
		r.Actions[name] = a
	}
	r.Policy = policy(t,
		ledger.PolicyRow{Name: "blocked", When: ledger.When{Recipient: []string{"acct_bad"}}, Then: "deny"},
		ledger.PolicyRow{Name: "one", When: ledger.When{Recipient: []string{"acct_ask"}}, Then: "ask", Of: []string{"approver"}},
		ledger.PolicyRow{Name: "two", When: ledger.When{Recipient: []string{"acct_two"}}, Then: "ask", Approvals: 2},
		ledger.PolicyRow{Name: "rest", Then: "allow"})
	for _, c := range change {
		c(r)
	}
	for name, a := range r.Actions {
		r.Routes[name] = r.Rails[a.Rail]
	}
	return r
}

func policy(t testing.TB, rows ...ledger.PolicyRow) ledger.Policy {
	t.Helper()
	p, err := ledger.NewPolicy(rows)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newBench(t testing.TB, change ...func(*ledger.Rulebook)) *bench {
	t.Helper()
	b := newBenchIn(t, t.TempDir(), change...)
	t.Cleanup(func() {
		if !b.broken {
			b.check()
		}
		if err := b.s.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// newBenchIn leaves closing and checking to the test.
func newBenchIn(t testing.TB, folder string, change ...func(*ledger.Rulebook)) *bench {
	t.Helper()
	b := &bench{t: t, ctx: context.Background(), folder: folder, clock: &clock{}, token: map[string]string{},
		rules: map[string]*ledger.Rulebook{tenant: newRules(t, change...)}}
	b.clock.ms.Store(1_700_000_000_000)
	b.open()
	b.token[tenant] = b.addToken(tenant)
	return b
}

func (b *bench) open() {
	b.t.Helper()
	s, err := store.Open(b.ctx, store.Options{Folder: b.folder, Now: b.clock.now})
	b.ok(err)
	b.s = s
	b.ok(s.SetRulebooks(b.ctx, b.rules))
}

func (b *bench) reopen() {
	b.t.Helper()
	b.ok(b.s.Close())
	b.open()
}

func (b *bench) addToken(tenant string) string {
	b.t.Helper()
	r, err := b.s.AddToken(b.ctx, ledger.TokenRecord{TenantID: tenant, Agent: "buyer", Owner: "olga@acme.example", Scopes: []string{"operations:write"},
		ExpiresAt: b.clock.now().Add(720 * time.Hour).UnixMilli()}, root)
	b.ok(err)
	return r.ID
}

var (
	root       = ledger.Holder{Kind: ledger.Person, Name: "root"}
	sweeper    = ledger.Holder{Kind: ledger.Clock, Name: "sweep"}
	reconciler = ledger.Holder{Kind: ledger.Reconciler, Name: "lookup"}
	agent      = ledger.Holder{Kind: ledger.Agent, Name: "buyer"}
)

func (b *bench) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) wantErr(err, want error) {
	b.t.Helper()
	if !errors.Is(err, want) {
		b.t.Fatalf("error %v, want %v", err, want)
	}
}

// check holds the ledger against the invariants.
func (b *bench) check(books ...invariant.Book) {
	b.t.Helper()
	for _, v := range b.found(books...) {
		b.t.Errorf("%s", v)
	}
}

// found are the invariants that do not hold.
func (b *bench) found(books ...invariant.Book) []invariant.Violation {
	b.t.Helper()
	found, err := invariant.Check(b.ctx, b.s, books...)
	if err != nil {
		b.t.Errorf("checking the invariants: %v", err)
	}
	return found
}

// draft is what an agent asks for; change may alter it before it is handed in.
func (b *bench) draft(id, action string, payload map[string]any, change ...func(*ledger.Operation)) ledger.Operation {
	b.t.Helper()
	whole := map[string]any{"amount": 4800, "currency": "EUR", "recipient": "acct_" + id, "reference": "ref-" + id}
	for name, v := range payload {
		if whole[name] = v; v == nil {
			delete(whole, name)
		}
	}
	raw, err := json.Marshal(whole)
	b.ok(err)
	v, err := ledger.ParseStrict(raw)
	b.ok(err)
	n, wrong := b.rules[tenant].Actions[action].Normalize(v)
	if len(wrong) > 0 {
		b.t.Fatal(wrong)
	}
	o := ledger.Operation{TenantID: tenant, OperationID: id, ActionType: action, Fingerprint: n.Fingerprint, Canonical: n.Canonical, Payload: n.Payload, Terms: n.Terms,
		Agent: "buyer", TokenID: b.token[tenant], Owner: "olga@acme.example"}
	for _, c := range change {
		c(&o)
	}
	return o
}

func (b *bench) submit(id, action string, payload map[string]any, change ...func(*ledger.Operation)) ledger.Operation {
	b.t.Helper()
	r, err := b.s.Submit(b.ctx, b.draft(id, action, payload, change...))
	b.ok(err)
	if r.Existed {
		b.t.Fatalf("%s was there before", id)
	}
	return r.Operation
}

// to is a payload that names another recipient.
func to(recipient string) map[string]any { return map[string]any{"recipient": recipient} }

func (b *bench) get(id string) ledger.Operation {
	b.t.Helper()
	o, err := b.s.Operation(b.ctx, tenant, id)
	b.ok(err)
	return o
}

func (b *bench) want(id string, status ledger.Status, reason ledger.Reason) ledger.Operation {
	b.t.Helper()
	o := b.get(id)
	if o.Status != status || o.Reason != reason {
		b.t.Fatalf("%s is %s %q (%s), want %s %q", id, o.Status, o.Reason, o.Detail, status, reason)
	}
	return o
}

// claims takes all that is due on a rail.
func (b *bench) claims(worker, rail string) []store.Claim {
	b.t.Helper()
	c, err := b.s.Claim(b.ctx, worker, tenant, rail, 100, 100)
	b.ok(err)
	return c
}

// claim takes the one operation that is due on the rail of an action type.
func (b *bench) claim(action string) store.Claim {
	b.t.Helper()
	c := b.claims("w1", railOf(action))
	if len(c) != 1 {
		b.t.Fatalf("%d claims on %s, want 1", len(c), railOf(action))
	}
	return c[0]
}

const sendFor = 15 * time.Second

func render(o ledger.Operation) (ledger.Request, error) {
	return ledger.Request{Method: "POST", URL: o.RailAddress + "/pay", Header: [][2]string{{"Idempotency-Key", o.ProviderKey}}, Body: o.Payload, Display: "POST"}, nil
}

func (b *bench) tryMark(c store.Claim) (store.Marked, error) {
	return b.s.Mark(b.ctx, c, sendFor, render)
}

func (b *bench) mark(c store.Claim) store.Marked {
	b.t.Helper()
	m, err := b.tryMark(c)
	b.ok(err)
	return m
}

// wantUnmarked tries to mark, and must be told why not.
func (b *bench) wantUnmarked(c store.Claim) {
	b.t.Helper()
	_, err := b.tryMark(c)
	var refused store.NotMarked
	if !errors.As(err, &refused) || refused.Sentence == "" {
		b.t.Fatalf("mark: %v, want it refused with a sentence", err)
	}
}

// sent submits, claims and marks.
func (b *bench) sent(id, action string) store.Marked {
	b.t.Helper()
	b.submit(id, action, nil)
	return b.mark(b.claim(action))
}

func (b *bench) settle(m store.Marked, a ledger.Answer) ledger.Operation {
	b.t.Helper()
	o, err := b.s.Settle(b.ctx, m, a, []byte(`{}`), time.Second)
	b.ok(err)
	return o
}

func receipt(o ledger.Operation, id string) ledger.Receipt {
	amount := o.Terms.Amount
	return ledger.Receipt{ID: id, Amount: &amount, Currency: o.Terms.Currency, Recipient: o.Terms.Recipient, Reference: o.Terms.Reference, Stamp: o.OrderID, Raw: []byte(id)}
}

func found(o ledger.Operation, id string) ledger.Answer {
	r := receipt(o, id)
	return ledger.Answer{Finding: ledger.Found, Receipt: &r, HTTPStatus: 201}
}

// wrong is a receipt over another amount.
func wrong(o ledger.Operation, id string) ledger.Receipt {
	r := receipt(o, id)
	more := *r.Amount + 1
	r.Amount = &more
	return r
}

var (
	refused = ledger.Answer{Finding: ledger.Refused, HTTPStatus: 402}
	notSent = ledger.Answer{Finding: ledger.NotSent, HTTPStatus: 429}
	pending = ledger.Answer{Finding: ledger.Pending, HTTPStatus: 202}
	silence = ledger.Answer{Finding: ledger.Unclear}
)

func (b *bench) sweep() store.Swept {
	b.t.Helper()
	n, err := b.s.Sweep(b.ctx, sweeper)
	b.ok(err)
	return n
}

func (b *bench) look(id string, finding ledger.LookFinding, records ...ledger.Receipt) ledger.Operation {
	b.t.Helper()
	o, err := b.s.RecordLook(b.ctx, tenant, id, ledger.Look{Finding: finding, Records: records, AskedAt: b.s.Now()}, reconciler, time.Second)
	b.ok(err)
	return o
}

func (b *bench) due() []string {
	b.t.Helper()
	due, err := b.s.DueLooks(b.ctx, 100)
	b.ok(err)
	var ids []string
	for _, o := range due {
		ids = append(ids, o.OperationID)
	}
	return ids
}

func (b *bench) person(name string, roles ...string) ledger.PersonRecord {
	b.t.Helper()
	p, err := b.s.AddPerson(b.ctx, ledger.PersonRecord{TenantID: tenant, Email: name + "@acme.example", Name: name, Roles: roles}, "", root)
	b.ok(err)
	return p
}

// decision is what a person decides on what is there now.
func (b *bench) decision(p ledger.PersonRecord, id string) store.Decision {
	b.t.Helper()
	o := b.get(id)
	return store.Decision{Person: p, Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}, Reason: "checked with the customer"}
}

type deciding func(context.Context, string, string, store.Decision) (ledger.Operation, error)

func (b *bench) decide(f deciding, p ledger.PersonRecord, id string, change ...func(*store.Decision)) error {
	b.t.Helper()
	d := b.decision(p, id)
	for _, c := range change {
		c(&d)
	}
	_, err := f(b.ctx, tenant, id, d)
	return err
}

func (b *bench) owed() []ledger.RefundOwed {
	b.t.Helper()
	r, err := b.s.RefundsOwed(b.ctx, tenant)
	b.ok(err)
	return r
}

func (b *bench) wantOwed(want ...string) {
	b.t.Helper()
	var got []string
	for _, r := range b.owed() {
		got = append(got, fmt.Sprintf("%s %s %d", r.ReceiptID, r.Cause, r.Amount))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.t.Fatalf("owed %q, want %q", got, want)
	}
}

// raw is a second connection to the file, as anybody with a shell could open.
func (b *bench) raw() *sql.DB {
	b.t.Helper()
	if b.second != nil {
		return b.second
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.folder, "holdfast.db")+"?_pragma=busy_timeout(5000)")
	b.ok(err)
	db.SetMaxOpenConns(1)
	b.t.Cleanup(func() { db.Close() })
	b.second = db
	return db
}

func (b *bench) sql(query string, args ...any) error {
	b.t.Helper()
	_, err := b.raw().ExecContext(b.ctx, query, args...)
	return err
}

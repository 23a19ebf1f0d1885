package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/dispatch"
	"holdfast/dispatch/rail"
	"holdfast/store"
	"holdfast/store/invariant"
	"holdfast/store/ledger"
)

// TestMatrix sends one operation to every profile's provider for everything
// that can go wrong with a first request, and lets the ledger go on by itself
// until it ends or a person is asked. Dispatcher, rail and store are the real
// ones; the provider is a stand-in over a socket that behaves as the documents
// say. The end is the one written down beside the facts, and the provider's own
// book holds at most one effect.
func TestMatrix(t *testing.T) {
	for _, p := range rail.Profiles() {
		f, known := providers[p.Name]
		if !known {
			t.Errorf("%s: its provider's facts are not written down", p.Name)
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			m := newMatrix(t, p.Name, f)
			letters := strings.ReplaceAll(f.ends, " ", "")
			if len(letters) != len(columns) {
				t.Fatalf("%d ends for %d columns", len(letters), len(columns))
			}
			for i, column := range columns {
				m.cell(t, fmt.Sprintf("r%02d", i), column, ends[letters[i]])
			}
			broken, err := invariant.Check(t.Context(), m.store)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range broken {
				t.Errorf("the ledger: %s", b)
			}
		})
	}
}

// matrix is a ledger with one rail, at a time that the test moves.
type matrix struct {
	facts    facts
	provider *standIn
	folder   string
	store    *store.Store
	token    string
	action   *ledger.ActionType
	worker   *dispatch.Dispatcher
	clock    atomic.Int64
	patient  *dispatch.Config
	hasty    *dispatch.Config // gives up soon: for the first send of a provider that says nothing
	inForce  *dispatch.Config
}

func newMatrix(t *testing.T, profile string, f facts) *matrix {
	m := &matrix{facts: f}
	m.clock.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
	m.provider = newStandIn(t, f, m.now)
	m.patient, m.hasty = m.config(t, profile, "10s"), m.config(t, profile, "100ms")
	m.inForce = m.patient
	m.folder = t.TempDir()
	m.open(t)
	t.Cleanup(func() { m.store.Close() })
	token, err := m.store.AddToken(t.Context(), ledger.TokenRecord{TenantID: dispatch.DefaultTenant, Agent: "tester"}, ledger.Holder{Kind: ledger.Person, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	m.token, m.action = token.ID, m.patient.Tenants[dispatch.DefaultTenant].Rulebook.Actions["act"]
	return m
}

// open opens the ledger, as a process does that starts.
func (m *matrix) open(t *testing.T) {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{Folder: m.folder, Now: m.now})
	if err != nil {
		t.Fatal(err)
	}
	m.store = st
	if err := st.SetRulebooks(t.Context(), m.patient.Rulebooks()); err != nil {
		t.Fatal(err)
	}
	m.worker = &dispatch.Dispatcher{Store: st, Config: func() *dispatch.Config { return m.inForce }, Worker: "w", Log: slog.New(slog.DiscardHandler)}
}

func (m *matrix) now() time.Time { return time.UnixMilli(m.clock.Load()) }

func (m *matrix) config(t *testing.T, profile, timeout string) *dispatch.Config {
	t.Helper()
	// max_elapsed is long, so that it is the keys' age that ends resends;
	// unknown_for is short, but longer than any index is late.
	c, err := dispatch.ParseConfig(fmt.Appendf(nil, `
rails:
  out: { profile: %s, base_url: %q, account: live, headers: { Authorization: Bearer x }, timeout: %s, limits: { max_elapsed: 2000h } }
action_types:
  act: { rail: out, effect: charge, overlap: { mode: "off" }, schema: %s }
policy: [{ name: all, when: {}, then: allow }]
timing: { unknown_for: 10m }
`, profile, m.provider.URL, timeout, schemaOf(m.facts.roles)), t.TempDir(), "test.yaml", nil, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// schemaOf is a JSON Schema with the roles at their places.
func schemaOf(roles map[string]string) string {
	root := map[string]any{"type": "object", "additionalProperties": true}
	for role, at := range roles {
		at, isDecimal := strings.CutPrefix(at, "decimal ")
		here := root
		for _, name := range strings.Split(at, "/")[1:] {
			if here["properties"] == nil {
				here["type"], here["properties"], here["additionalProperties"] = "object", map[string]any{}, true
			}
			members := here["properties"].(map[string]any)
			if members[name] == nil {
				members[name] = map[string]any{}
			}
			here = members[name].(map[string]any)
		}
		here["x-role"] = role
		switch here["type"] = "string"; {
		case isDecimal:
			here["x-normalize"] = "decimal"
		case role == "amount":
			here["type"] = "integer"
		}
	}
	text, _ := json.Marshal(root)
	return string(text)
}

// cell sends one operation into one accident and holds its end against what is
// written down, and the provider's book against promise 4.
func (m *matrix) cell(t *testing.T, ref, column string, want [2]string) {
	t.Helper()
	o := m.submit(t, ref)
	m.provider.expect(o, ref, column)
	o = m.live(t, o, column)
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: "+format+"\n%s", append(append([]any{column}, args...), m.story(t, o))...)
	}
	if got := [2]string{string(o.Status), string(o.Reason)}; got != want {
		fail("ended %v, want %v", got, want)
	}
	requests, effects := m.provider.acts()
	if effects > 1 {
		fail("the provider did it %d times", effects)
	}
	if resends := m.facts.kind != none && m.facts.kind != forgets; requests > 1 && !resends {
		fail("%d requests to a provider that would act each time", requests)
	}
	late := strings.Contains(column, "woken")
	if requests > 1 && late && m.facts.keeps > 0 {
		fail("%d requests although the key was forgotten", requests)
	}
	if o.Status == ledger.Confirmed && effects != 1 {
		fail("confirmed, and the provider did it %d times", effects)
	}
}

func (m *matrix) submit(t *testing.T, ref string) ledger.Operation {
	t.Helper()
	payload, err := ledger.ParseStrict([]byte(strings.ReplaceAll(m.facts.payload, "$ref", ref)))
	if err != nil {
		t.Fatal(err)
	}
	n, wrong := m.action.Normalize(payload)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if _, err := m.store.Submit(t.Context(), ledger.Operation{TenantID: dispatch.DefaultTenant, OperationID: ref, ActionType: "act", Agent: "tester", TokenID: m.token,
		Fingerprint: n.Fingerprint, Canonical: n.Canonical, Payload: n.Payload, Terms: n.Terms}); err != nil {
		t.Fatal(err)
	}
	return m.operation(t, ref)
}

func (m *matrix) operation(t *testing.T, ref string) ledger.Operation {
	t.Helper()
	o, err := m.store.Operation(t.Context(), dispatch.DefaultTenant, ref)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// live lets the ledger do what is due, and moves the clock to what is due next,
// until the operation ends or waits for a person, and nothing more is planned.
func (m *matrix) live(t *testing.T, o ledger.Operation, column string) ledger.Operation {
	t.Helper()
	for range 200 {
		m.inForce = m.patient
		if strings.HasPrefix(column, "timeout") && o.Attempts == 0 {
			m.inForce = m.hasty
		}
		attempts := o.Attempts
		m.deliver(t)
		if o = m.operation(t, o.OperationID); attempts == 0 && o.Attempts == 1 && strings.Contains(column, "woken") {
			m.clock.Add((m.facts.keeps + time.Hour).Milliseconds())
		} else {
			m.look(t)
			o = m.operation(t, o.OperationID)
		}
		next := max(o.NextLookAt, o.NextSendAt)
		if o.NextLookAt > 0 && o.NextSendAt > 0 {
			next = min(o.NextLookAt, o.NextSendAt)
		}
		switch {
		case (o.Status.Final() || o.Status == ledger.UnknownHold) && next == 0:
			return o
		case next > m.clock.Load():
			m.clock.Store(next)
		}
	}
	t.Fatalf("%s: it does not end\n%s", column, m.story(t, o))
	return o
}

func (m *matrix) deliver(t *testing.T) {
	t.Helper()
	claims, err := m.store.Claim(t.Context(), "w", dispatch.DefaultTenant, "out", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		m.worker.Deliver(t.Context(), c)
		if m.inForce == m.hasty {
			m.provider.await(m.operation(t, c.Operation.OperationID).Attempts)
		}
	}
}

// look asks about everything whose look-up is due, as the scheduled job does.
func (m *matrix) look(t *testing.T) {
	t.Helper()
	due, err := m.store.DueLooks(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range due {
		askedAt := m.store.Now()
		look := m.patient.Route(o).Lookup(context.Background(), o)
		look.AskedAt = askedAt
		if _, err := m.store.RecordLook(t.Context(), o.TenantID, o.OperationID, look, ledger.Holder{Kind: ledger.Reconciler, Name: "lookup"}, time.Second); err != nil {
			t.Fatal(err)
		}
	}
}

// story is what the attempts say, for a cell that ended wrong.
func (m *matrix) story(t *testing.T, o ledger.Operation) string {
	t.Helper()
	attempts, err := m.store.Attempts(t.Context(), o.TenantID, o.OperationID)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  %s\n", o.Detail)
	for _, a := range attempts {
		fmt.Fprintf(&b, "  attempt %d: %s %d, %s\n", a.Number, a.Outcome, a.HTTPStatus, a.Sentence)
	}
	return b.String()
}

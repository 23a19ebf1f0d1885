package rail_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"holdfast/dispatch"
	"holdfast/dispatch/rail"
	"holdfast/store"
	"holdfast/store/ledger"
)

// The whole way: configuration, ledger, dispatcher, and the book of a mail
// server that runs as a process of its own. One budget counts all connections:
// what fails before the text is tried again inside it, what fails after the final
// dot is unknown.
func TestCase043ADeliveredMailEndsAsTheBookSays(t *testing.T) {
	address, arm, held := rail.StartMailServer(t)
	for _, c := range []struct {
		name, step, kind string
		code             int
		auth             string
		timeout          string
		status           ledger.Status
		reason           ledger.Reason
		attempts, held   int
	}{
		{name: "taken", status: ledger.Confirmed, attempts: 1, held: 1},
		{name: "refused recipient", step: "RCPT", kind: "reply", code: 550, status: ledger.Rejected, reason: ledger.Declined, attempts: 1},
		{name: "silence after the dot", step: "dot", kind: "silence", timeout: "300ms", status: ledger.UnknownHold, reason: ledger.Inconclusive, attempts: 1, held: 1},
		{name: "closed after the final dot", step: "dot", kind: "lose", status: ledger.UnknownHold, reason: ledger.Inconclusive, attempts: 1, held: 1},
		{name: "greylisted for ever", step: "MAIL", kind: "reply", code: 451, status: ledger.UnknownHold, reason: ledger.AttemptsExhausted, attempts: 2},
		{name: "cut before the dot, every time", step: "DATA", kind: "cut", status: ledger.UnknownHold, reason: ledger.AttemptsExhausted, attempts: 2},
		{name: "wrong password", auth: "auth: { basic: { user: holdfast, password: wrong } }", status: ledger.Ready},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := held()
			arm(c.step, c.kind, c.code)
			if c.timeout == "" {
				c.timeout = "5s"
			}
			o := deliver(t, address, c.auth, c.timeout, c.status)
			if o.Status != c.status || o.Reason != c.reason || o.Attempts != c.attempts || held()-before != c.held {
				t.Errorf("%s %s after %d attempts, the book holds %d; want %s %s after %d, and %d", o.Status, o.Reason, o.Attempts, held()-before, c.status, c.reason, c.attempts, c.held)
			}
			if c.status == ledger.Confirmed && o.Receipt.ID != "<"+o.ProviderKey+"@example.com>" {
				t.Errorf("receipt %+v", o.Receipt)
			}
		})
	}
}

func deliver(t *testing.T, address, auth, timeout string, want ledger.Status) ledger.Operation {
	t.Helper()
	config, err := dispatch.ParseConfig(fmt.Appendf(nil, `
rails:
  post:
    adapter: smtp
    base_url: smtp+plain://%s
    %s
    mail: { from: "Billing <billing@example.com>" }
    timeout: %s
    limits: { max_attempts: 2, backoff: [1ms, 2ms] }
action_types:
  send_email:
    rail: post
    effect: email
    schema: { type: object, required: [to, subject, body], properties: { to: { type: string, x-role: recipient }, subject: { type: string }, body: { type: string } } }
policy: [{ name: all, when: {}, then: allow }]
`, address, auth, timeout), t.TempDir(), "test.yaml", nil, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), store.Options{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := st.SetRulebooks(t.Context(), config.Rulebooks()); err != nil {
		t.Fatal(err)
	}
	token, err := st.AddToken(t.Context(), ledger.TokenRecord{TenantID: "default", Agent: "tester"}, ledger.Holder{Kind: ledger.Person, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := ledger.ParseStrict([]byte(`{"to":"ana@example.org","subject":"S","body":"B"}`))
	n, wrong := config.Tenants["default"].Rulebook.Actions["send_email"].Normalize(payload)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	_, err = st.Submit(t.Context(), ledger.Operation{TenantID: "default", OperationID: "op", ActionType: "send_email", Agent: "tester", TokenID: token.ID,
		Fingerprint: n.Fingerprint, Canonical: n.Canonical, Payload: n.Payload, Terms: n.Terms})
	if err != nil {
		t.Fatal(err)
	}
	logged := &lines{}
	d := &dispatch.Dispatcher{Store: st, Config: func() *dispatch.Config { return config }, Worker: "w", Log: slog.New(slog.NewTextHandler(logged, nil))}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	defer running.Wait()
	defer stop()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		o, err := st.Operation(t.Context(), "default", "op")
		if err != nil {
			t.Fatal(err)
		}
		if tried := want != ledger.Ready || logged.has("no connection"); o.Status == want && tried || time.Now().After(end) {
			return o
		}
	}
}

// lines is a log that can be asked.
type lines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.text, []byte(text))
}

package dispatch_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/dispatch"
	"holdfast/store/ledger"
)

// wants fails the test where the operation does not stand as it should, or the
// provider saw or did something else.
func (m *matrix) wants(t *testing.T, o ledger.Operation, status ledger.Status, reason ledger.Reason, requests, effects int) {
	t.Helper()
	if o.Status != status || o.Reason != reason {
		t.Errorf("it is %s %s, want %s %s\n%s", o.Status, o.Reason, status, reason, m.story(t, o))
	}
	if r, e := m.provider.acts(); r != requests || e != effects {
		t.Errorf("the provider got %d requests and did %d, want %d and %d\n%s", r, e, requests, effects, m.story(t, o))
	}
}

// The provider acts and answers 500; the client says it again three times.
func TestCase029AnErrorAfterTheEffectSendsNothingAgain(t *testing.T) {
	t.Parallel()
	m := newMatrix(t, "slack-chat", providers["slack-chat"]) // no keys: every request would act
	o := m.submit(t, "op-A")
	m.provider.expect(o, "op-A", "500, done")
	m.deliver(t)
	for range 3 {
		m.clock.Add(1500)
		o = m.submit(t, "op-A")
		m.deliver(t)
		m.wants(t, o, ledger.Unknown, "", 1, 1)
	}
	m.wants(t, m.live(t, o, ""), ledger.Confirmed, "", 1, 1)
}

// A process dies between the claim and the mark, and another one between the
// send and its receipt.
func TestCase031WhatADeadProcessLeftBehindRunsOnceOrIsLookedFor(t *testing.T) {
	t.Parallel()
	m := newMatrix(t, "stripe-v1", providers["stripe-v1"])

	o := m.submit(t, "op-A")
	m.provider.expect(o, "op-A", "")
	if claims, err := m.store.Claim(t.Context(), "dead", dispatch.DefaultTenant, "out", 1, 1); err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	m.die(t)
	m.wants(t, m.submit(t, "op-A"), ledger.Ready, "", 0, 0)
	m.deliver(t)
	m.wants(t, m.operation(t, "op-A"), ledger.Confirmed, "", 1, 1)

	o = m.submit(t, "op-B")
	m.provider.expect(o, "op-B", "")
	claims, err := m.store.Claim(t.Context(), "dead", dispatch.DefaultTenant, "out", 1, 1)
	if err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	r := m.patient.Route(claims[0].Operation)
	conn, err := r.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	marked, err := m.store.Mark(t.Context(), claims[0], time.Second, r.Render)
	if err != nil {
		t.Fatal(err)
	}
	conn.Send(t.Context(), marked.Request, time.Now().Add(time.Second))
	m.die(t)
	o = m.submit(t, "op-B")
	m.wants(t, o, ledger.Unknown, "", 1, 1)
	if o.Detail == "" || o.UnknownSince != m.clock.Load() {
		t.Errorf("unknown since %d, %q", o.UnknownSince, o.Detail)
	}
	m.wants(t, m.live(t, o, ""), ledger.Confirmed, "", 1, 1)
}

// die leaves everything as it lies and starts again.
func (m *matrix) die(t *testing.T) {
	t.Helper()
	if err := m.store.Close(); err != nil {
		t.Fatal(err)
	}
	m.open(t)
	if _, err := m.store.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The provider never lets go of the first request.
func TestCase035AKeyInUseIsAskedForUntilTheBudgetEnds(t *testing.T) {
	t.Parallel()
	m := newMatrix(t, "resend", providers["resend"])
	o := m.submit(t, "op-A")
	m.provider.expect(o, "op-A", "")
	m.provider.script = func(w http.ResponseWriter, request string, n int) {
		if n == 1 {
			silence(w)
			return
		}
		w.WriteHeader(409)
		io.WriteString(w, `{"name":"concurrent_idempotent_requests"}`)
	}
	began := m.clock.Load()
	o = m.live(t, o, "timeout")
	m.wants(t, o, ledger.UnknownHold, ledger.AttemptsExhausted, 5, 0)
	attempts, err := m.store.Attempts(t.Context(), o.TenantID, o.OperationID)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range attempts {
		if a.ProviderKey != o.ProviderKey || a.Outcome != ledger.AttemptUnknown || i > 0 && a.MarkedAt <= attempts[i-1].MarkedAt {
			t.Errorf("attempt %d: key %s, %s, at %d", a.Number, a.ProviderKey, a.Outcome, a.MarkedAt-began)
		}
	}
}

// The provider acts, and answers with something that is no receipt.
func TestCase037AnAnswerThatIsNoReceiptIsKeptAndLookedUpByKey(t *testing.T) {
	t.Parallel()
	m := newMatrix(t, "increase", providers["increase"])
	for ref, body := range map[string]string{"no-id": `{"amount":4800,"currency":"USD"}`, "html": "<html><h1>Thank you!</h1></html>",
		"empty": "", "half": `{"id":"obj_half_1","amount":48`} {
		o := m.submit(t, ref)
		m.provider.expect(o, ref, "")
		m.provider.script = func(w http.ResponseWriter, request string, _ int) {
			m.provider.act(request, false)
			io.WriteString(w, body)
		}
		m.deliver(t)
		o = m.operation(t, ref)
		m.wants(t, o, ledger.Unknown, "", 1, 1)
		evidence, err := m.store.Evidence(t.Context(), o.TenantID, ref)
		if err != nil || len(evidence) != 1 || string(evidence[0].Body) != body {
			t.Errorf("%s: kept is %+v, %v", ref, evidence, err)
		}
		o = m.live(t, o, "")
		m.wants(t, o, ledger.Confirmed, "", 1, 1)
		if o.Receipt == nil || o.Receipt.ID != "obj_"+ref+"_1" {
			t.Errorf("%s: the receipt is %+v", ref, o.Receipt)
		}
	}
}

// The card is declined, and the client says it again.
func TestCase038ADeclineIsReplayedAndANewTryIsANewOperation(t *testing.T) {
	t.Parallel()
	m := newMatrix(t, "stripe-v1", providers["stripe-v1"])
	o := m.submit(t, "op-A")
	m.provider.expect(o, "op-A", "")
	m.provider.script = func(w http.ResponseWriter, _ string, _ int) {
		w.WriteHeader(402)
		io.WriteString(w, `{"error":{"type":"card_error","code":"card_declined"}}`)
	}
	m.deliver(t)
	declined := m.operation(t, "op-A")
	if m.wants(t, declined, ledger.Rejected, ledger.Declined, 1, 0); !strings.Contains(declined.Detail, "402") {
		t.Errorf("its sentence is %q", declined.Detail)
	}
	again := m.submit(t, "op-A")
	m.deliver(t)
	if m.wants(t, again, ledger.Rejected, ledger.Declined, 1, 0); again.Detail != declined.Detail || again.Version != declined.Version {
		t.Errorf("the repeat is told %q", again.Detail)
	}
	m.provider.script = nil
	next := m.submit(t, "op-B")
	m.provider.expect(next, "op-B", "")
	m.deliver(t)
	if next.ProviderKey == declined.ProviderKey {
		t.Error("a new try goes under the old key")
	}
	m.wants(t, m.operation(t, "op-B"), ledger.Confirmed, "", 1, 1)
}

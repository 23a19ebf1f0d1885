package dispatch_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// A provider that overlooks the amount of a refund gives back the whole charge, and
// says so: 300 were approved, 1000 went out.
func TestCase101ARefundOfTheWholeIsHeldNeverConfirmed(t *testing.T) {
	sent := make(chan string, 1)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		r.Body.Read(body)
		sent <- string(body)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"id":"re_1","amount":1000,"currency":"EUR"}`)
	}))
	t.Cleanup(provider.Close)
	g := openGateway(t, t.TempDir(), `
rails:
  card:
    adapter: http
    base_url: `+provider.URL+`
    account: test
    dedupe: { by: none }
    send: { method: POST, path: /refunds }
    stamp: { body: /operation }
    answers: [ { status: [201], means: confirmed } ]
    receipt: { id: /id, amount: /amount, currency: /currency }
action_types:
  refund:
    rail: card
    effect: refund
    schema: { type: object, properties: { charge: { type: string, x-role: refund_of }, amount: { type: integer, x-role: amount },
      currency: { type: string, x-role: currency }, reference: { type: string, x-role: reference } } }
`+allowAll, nil)
	defer g.close()
	o := g.draftOf("r1", "refund", `{"charge":"ch_1","amount":300,"currency":"EUR","reference":"back-1"}`)
	if _, err := g.store.Submit(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	stop := g.run()
	defer stop()
	if body := <-sent; body != `{"amount":300,"charge":"ch_1","currency":"EUR","operation":"`+g.get("r1").OrderID+`","reference":"back-1"}` {
		t.Errorf("sent %s", body)
	}
	for end := time.Now().Add(10 * time.Second); g.get("r1").Status == ledger.InFlight && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if o := g.get("r1"); o.Status != ledger.UnknownHold || o.Reason != ledger.ReceiptMismatch {
		t.Errorf("it is %s (%s): %s", o.Status, o.Reason, o.Detail)
	}
}

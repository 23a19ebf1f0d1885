package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/dispatch"
	"holdfast/store/ledger"
)

// keyedBook is a provider that acts on every request whose key it has not seen,
// and on every one without; until it is mended it cuts before it answers.
type keyedBook struct {
	mu       sync.Mutex
	mended   bool
	seen     map[string]bool
	requests map[string]int // by reference
	effects  map[string]int
}

func (b *keyedBook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		io.WriteString(w, `{"data":[]}`)
		return
	}
	var payment struct{ Reference, Key string }
	if err := json.NewDecoder(r.Body).Decode(&payment); err != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	key := r.Header.Get("Idempotency-Key") + r.Header.Get("X-Key") + payment.Key
	b.requests[payment.Reference]++
	if key == "" || !b.seen[key] {
		b.effects[payment.Reference]++
	}
	b.seen[key] = true
	if !b.mended {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"id":"pay_%s"}`, payment.Reference)
}

func (b *keyedBook) mend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mended = true
}

func (b *keyedBook) of(reference string) (requests, effects int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests[reference], b.effects[reference]
}

// A rail is configured anew, as after a SIGHUP, while an operation is unknown
// that the provider has carried out.
func TestARailThatGainsAKeyAfterTheFirstSendActsOnce(t *testing.T) {
	const (
		none, natural = "dedupe: { by: none }", "dedupe: { by: natural }"
		header        = "dedupe: { by: key, header: Idempotency-Key, retention: 24h }"
		other         = "dedupe: { by: key, header: X-Key, retention: 24h }"
		body          = "dedupe: { by: key, body: /key, retention: 24h }"
		scoped        = "dedupe: { by: key, header: Idempotency-Key, retention: 24h, scope: credential }"
		ofA, ofB      = header + "\n    headers: { Stripe-Account: acct_a }", header + "\n    headers: { Stripe-Account: acct_b }"
		tokenA        = scoped + "\n    auth: { bearer: token-a }"
		tokenB        = scoped + "\n    auth: { bearer: token-b }"
	)
	for _, c := range []struct {
		claim     string
		then, now string
		requests  int
	}{
		{"none, then a key", none, header, 1},
		{"none, then by nature", none, natural, 1},
		{"a key, then in another header", header, other, 1},
		{"a key, then in the body", header, body, 1},
		{"a key, then none", header, none, 1},
		{"a key, then by nature", header, natural, 1},
		{"a key, then for another account", ofA, ofB, 1},
		{"a key, then of another token", tokenA, tokenB, 1},
		{"a key, and the same again", header, header, 2},
		{"a key of an account, and the same again", ofA, ofA, 2},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			book := &keyedBook{seen: map[string]bool{}, requests: map[string]int{}, effects: map[string]int{}}
			provider := httptest.NewServer(book)
			defer provider.Close()
			var ahead atomic.Int64
			config := func(dedupe string) string {
				return fmt.Sprintf(`
rails:
  card:
    adapter: http
    base_url: %s
    account: live
    %s
    timeout: 2s
    send: { path: /payments }
    stamp: { body: /metadata/operation }
    receipt: { id: /id }
    answers: [{ status: [201], means: confirmed }]
    lookup: { path: "/payments?operation={order_id}", items: /data }
    limits: { backoff: [1s, 2s] }
    breaker: { failures: 1000, open_for: 1s }
timing: { unknown_for: 10h }
action_types:`, provider.URL, dedupe) + action("pay", "card") + allowAll
			}
			folder := t.TempDir()
			g := openGateway(t, folder, config(c.then), func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
			defer g.close()
			look := func() {
				ahead.Add(int64(20 * time.Second))
				g.do("lookup")
			}
			g.submit("op", "pay")
			stop := g.run()
			eventuallyAll(t, g, []string{"op"}, func(s ledger.Status, n int) bool { return s == ledger.Unknown && n == 1 })
			stop()
			look() // plans a resend where the rail promises one

			now, err := dispatch.ParseConfig([]byte(config(c.now)), folder, "test.yaml", os.LookupEnv, time.Now, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := g.store.SetRulebooks(context.Background(), now.Rulebooks()); err != nil {
				t.Fatal(err)
			}
			g.config = now
			book.mend()
			look() // and under the new rules
			ahead.Add(int64(10 * time.Second))
			g.submit("later", "pay") // what is due is sent before it
			defer g.run()()
			eventuallyAll(t, g, []string{"later"}, func(s ledger.Status, _ int) bool { return s == ledger.Confirmed })
			if c.requests > 1 {
				eventuallyAll(t, g, []string{"op"}, func(s ledger.Status, _ int) bool { return s == ledger.Confirmed })
			}
			requests, effects := book.of("inv-op")
			if requests != c.requests || effects != 1 || len(g.attempts("op")) != c.requests {
				t.Errorf("%d requests of %d attempts, and it happened %d times: %s", requests, len(g.attempts("op")), effects, g.get("op").Detail)
			}
			if o := g.get("op"); c.requests == 1 && o.Status != ledger.Unknown && (o.Status != ledger.UnknownHold || !strings.Contains("key_expired inconclusive", string(o.Reason))) {
				t.Errorf("it is %s (%s): %s", o.Status, o.Reason, o.Detail)
			}
		})
	}
}

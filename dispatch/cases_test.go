package dispatch_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/dispatch"
	"holdfast/store/ledger"
)

// bank is the configuration of one rail, with as much at once as given.
func bank(addr string, atOnce int) string {
	return fmt.Sprintf(`
rails:
  bank: { adapter: sandbox, base_url: "http://%s", limits: { concurrency: %d } }
action_types:`, addr, atOnce) + action("pay", "bank") + allowAll
}

// Something about an operation makes its workers panic at each claim. After ten
// it is a person's, and whatever else waits goes on.
func TestCase061APayloadThatPanicsItsWorkersIsHeld(t *testing.T) {
	var ahead atomic.Int64
	provider := serveBook(t, true)
	g := openGateway(t, t.TempDir(), bank(provider, 1), func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	defer g.close()
	var panics atomic.Int64
	defer dispatch.SetReach(func(boundary string) {
		if boundary == "claim.after_commit" && panics.Add(1) <= 10 {
			ahead.Add(int64(time.Minute)) // the lease lapses
			panic("a payload that nobody survives")
		}
	})()
	defer g.run()()
	g.submit("poison", "pay")
	eventuallyAll(t, g, []string{"poison"}, func(s ledger.Status, _ int) bool { return s == ledger.UnknownHold })
	if o := g.get("poison"); o.Reason != ledger.ClaimsExhausted || o.Attempts != 0 || o.Detail == "" {
		t.Errorf("%s, %d attempts: %s", o.Reason, o.Attempts, o.Detail)
	}
	g.submit("healthy", "pay")
	eventuallyAll(t, g, []string{"healthy"}, func(s ledger.Status, _ int) bool { return s == ledger.Confirmed })
	if n := len(effectsOf(t, provider)); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// Ten are due and two may be on the way at once: no more are claimed than can
// start now, so that none waits under a lease that runs out.
func TestCase062OnlyWhatCanStartNowIsClaimed(t *testing.T) {
	gate := make(chan struct{})
	release := sync.OnceFunc(func() { close(gate) })
	var mu sync.Mutex
	atOnce, most := 0, 0
	behind := newBook(t)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		atOnce++
		most = max(most, atOnce)
		mu.Unlock()
		<-gate
		behind.ServeHTTP(w, r)
		mu.Lock()
		atOnce--
		mu.Unlock()
	}))
	defer provider.Close()
	defer release()
	g := openGateway(t, t.TempDir(), bank(provider.Listener.Addr().(*net.TCPAddr).String(), 2), nil)
	defer g.close()
	var ids []string
	for n := range 10 {
		ids = append(ids, fmt.Sprint("op", n))
		g.submit(ids[n], "pay")
	}
	defer g.run()()
	eventuallyAll(t, g, ids[:2], func(s ledger.Status, _ int) bool { return s == ledger.InFlight })
	for _, id := range ids[2:] {
		if o := g.get(id); o.Status != ledger.Ready || o.Fence != 0 || o.LeaseUntil != 0 {
			t.Errorf("%s is %s with fence %d", id, o.Status, o.Fence)
		}
	}
	release()
	eventuallyAll(t, g, ids, func(s ledger.Status, _ int) bool { return s == ledger.Confirmed })
	for _, id := range ids {
		if n := len(g.attempts(id)); n != 1 {
			t.Errorf("%s: %d attempts", id, n)
		}
	}
	if most > 2 {
		t.Errorf("%d at once", most)
	}
}

package dispatch_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/dispatch"
)

// How a provider can be down.
const (
	refuses = "nobody listens"
	hangsUp = "connections are taken and cut"
)

// fragile is a provider that goes down and comes up again at one address. It
// lives outside the simulated time: the sockets are real.
type fragile struct {
	addr   string
	listen func(on bool)
	calls  chan func()

	mu      sync.Mutex
	down    string
	sends   int // that found it down
	lookUps int // the same of look-ups
}

func startFragile(t *testing.T, behind http.Handler) *fragile {
	f := &fragile{calls: make(chan func())}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		down := f.down != ""
		switch {
		case down && r.Method == http.MethodGet:
			f.lookUps++
		case down:
			f.sends++
		}
		f.mu.Unlock()
		if down {
			panic(http.ErrAbortHandler)
		}
		behind.ServeHTTP(w, r)
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	var running sync.WaitGroup
	serve := func(l net.Listener) { running.Go(func() { server.Serve(l) }) }
	serve(l)
	// Its own goroutine listens and stops listening, so that none of it belongs
	// to the simulated time.
	running.Go(func() {
		for call := range f.calls {
			call()
		}
	})
	done := make(chan struct{}) // made here: one made in simulated time belongs to it
	f.listen = func(on bool) {
		f.calls <- func() {
			defer func() { done <- struct{}{} }()
			if !on {
				l.Close()
				return
			}
			if l, err = net.Listen("tcp", f.addr); err != nil {
				t.Error(err)
				return
			}
			serve(l)
		}
		<-done
	}
	t.Cleanup(func() { server.Close(); close(f.calls); running.Wait() })
	return f
}

func (f *fragile) fail(how string) {
	f.mu.Lock()
	f.down = how
	f.mu.Unlock()
	if how == refuses {
		f.listen(false)
	}
}

func (f *fragile) recover() (sends, lookUps int) {
	f.mu.Lock()
	was := f.down
	f.down = ""
	f.mu.Unlock()
	if was == refuses {
		f.listen(true)
	}
	return f.sends, f.lookUps
}

func newBook(t *testing.T) http.Handler {
	s, err := dispatch.NewSandbox(dispatch.SandboxOptions{Dedupe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.Handler()
}

// One provider is down for an hour while purchases keep arriving, for it and for
// another one. The hour is simulated: the real dispatcher, its look-ups and its
// sweeps run through every second of it.
func TestAnOutageDrainsInOrderOfAgeInsideTheBudgetsAndDelaysNobodyElse(t *testing.T) {
	defer dispatch.SetIdlePoll(5 * time.Second)()
	for _, how := range []string{refuses, hangsUp} {
		t.Run(how, func(t *testing.T) {
			card, bank := startFragile(t, newBook(t)), startFragile(t, newBook(t))
			folder := t.TempDir()
			var submitted []string
			synctest.Test(t, func(t *testing.T) { submitted = outage(t, how, folder, card, bank) })
			var acted []string
			for _, e := range effectsOf(t, card.addr) {
				acted = append(acted, e.Operation)
			}
			if len(acted) != len(submitted) {
				t.Errorf("the provider acted %d times for %d purchases", len(acted), len(submitted))
			}
			if how == refuses && !slices.Equal(acted, submitted) {
				t.Errorf("it drained in another order than that of age: %v", places(acted, submitted))
			}
		})
	}
}

func outage(t *testing.T, how, folder string, card, bank *fragile) (submitted []string) {
	const maxAttempts, maxElapsed = 4, 3 * time.Hour
	g := openGateway(t, folder, fmt.Sprintf(`
rails:
  card:
    adapter: sandbox
    base_url: http://%s
    limits: { concurrency: 1, max_attempts: %d, max_elapsed: %s, backoff: [500ms, 60s] }
    breaker: { failures: 5, open_for: 30s }
  bank: { adapter: sandbox, base_url: "http://%s" }
timing: { unknown_for: 4h }
jobs: { lookup: "@every 1m", sweep: "@every 1m" }
action_types:`+action("pay_card", "card")+action("pay_bank", "bank")+allowAll, card.addr, maxAttempts, maxElapsed, bank.addr), nil)
	defer g.close()
	stop := g.run()
	ctx, cancel := context.WithCancel(context.Background())
	var scheduled sync.WaitGroup
	scheduled.Go(func() { g.jobs.Start(ctx) })
	defer func() { stop(); cancel(); scheduled.Wait() }()

	var ids []string
	arrive := func(n int, every time.Duration) {
		for range n {
			id := fmt.Sprintf("%03d", len(ids))
			ids = append(ids, id)
			g.submit("card-"+id, "pay_card")
			g.submit("bank-"+id, "pay_bank")
			time.Sleep(every)
		}
	}
	arrive(5, time.Minute)
	card.fail(how)
	arrive(30, 2*time.Minute)
	sends, lookUps := card.recover()
	arrive(20, time.Second) // those that come now wait behind those that waited
	for range 60 {
		if !slices.ContainsFunc(ids, func(id string) bool { return g.get("card-"+id).Status != "confirmed" }) {
			break
		}
		time.Sleep(time.Minute)
	}

	for _, id := range ids {
		other := g.get("bank-" + id)
		if other.Status != "confirmed" || other.UpdatedAt-other.CreatedAt > 1000 {
			t.Errorf("%s of the rail that was well is %s after %d ms", other.OperationID, other.Status, other.UpdatedAt-other.CreatedAt)
		}
		o := g.get("card-" + id)
		if o.Status != "confirmed" {
			t.Errorf("%s is %s (%s): %s", o.OperationID, o.Status, o.Reason, o.Detail)
		}
		all := g.attempts(o.OperationID)
		if len(all) > maxAttempts || all[len(all)-1].MarkedAt-all[0].MarkedAt > maxElapsed.Milliseconds() {
			t.Errorf("%s was marked %d times in %d ms", o.OperationID, len(all), all[len(all)-1].MarkedAt-all[0].MarkedAt)
		}
		if how == refuses && len(all) != 1 {
			t.Errorf("%s counts %d attempts, and only one reached anybody", o.OperationID, len(all))
		}
		submitted = append(submitted, o.OrderID)
	}
	// Five in a row open the breaker; after that one goes every half minute.
	if most := 5 + 60*60/30; sends > most {
		t.Errorf("%d attempts were made while it was down, more than %d", sends, most)
	}
	if most := 30 * sends; lookUps > most { // less and less often: twice a minute would be 120 for each
		t.Errorf("%d attempts were looked up %d times while nobody could answer, more than %d", sends, lookUps, most)
	}
	t.Logf("%d attempts and %d look-ups while it was down", sends, lookUps)
	return submitted
}

// places says where each of the purchases stands in the provider's book.
func places(acted, submitted []string) (at []int) {
	for _, o := range acted {
		at = append(at, slices.Index(submitted, o))
	}
	return at
}

package dispatch_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// shears is the network between dispatcher and provider. Each connection is cut
// at its own place: after n bytes towards the provider, then, one connection
// later, after n bytes back. Once every place had its turn it is whole.
type shears struct {
	addr, provider string

	there, back int // bytes of one request and one answer, or a few more
	step        int // 1: every byte
	next        atomic.Int64
	whole       atomic.Bool
	untouched   atomic.Int64 // connections on which not one byte came
}

func newShears(t *testing.T, provider string, there, back, step int) *shears {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &shears{addr: l.Addr().String(), provider: provider, there: there, back: back, step: step}
	var carrying sync.WaitGroup
	carrying.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			carrying.Go(func() { s.carry(c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() { l.Close(); carrying.Wait() })
	return s
}

// places is how many cuts there are.
func (s *shears) places() int { return (s.there + s.back + 2) / s.step }

// carry lets so many bytes through. Every other cut is a reset.
func (s *shears) carry(client *net.TCPConn) {
	defer client.Close()
	p, err := net.Dial("tcp", s.provider)
	if err != nil {
		return
	}
	provider := p.(*net.TCPConn)
	defer provider.Close()
	there, back := int64(1<<30), int64(1<<30)
	if turn := s.next.Add(1) - 1; !s.whole.Load() {
		n := turn * int64(s.step)
		if n <= int64(s.there) {
			there = n
		} else {
			back = n - int64(s.there) - 1
		}
		if turn%2 == 1 {
			defer client.SetLinger(0)
		}
	}
	var requests sync.WaitGroup
	requests.Go(func() {
		if n, _ := io.Copy(provider, io.LimitReader(client, there)); n == 0 {
			s.untouched.Add(1)
		}
	})
	if there < 1<<30 { // the rest of the request is lost, and so is what is said to it
		requests.Wait()
		return
	}
	io.Copy(client, io.LimitReader(provider, back))
	client.CloseRead()
	requests.Wait()
}

// One dispatch is cut at every byte of its request and of its answer, on a rail
// that deduplicates and on one that does not. Each operation is its own cut.
func TestACutAtEveryByteIsConfirmedOrUnknownAndActsAtMostOnce(t *testing.T) {
	for _, dedupe := range []bool{true, false} {
		step := 1
		if dedupe { // the same bytes: what differs is what comes after the cut
			step = 7
		}
		t.Run(fmt.Sprintf("dedupe=%t", dedupe), func(t *testing.T) { cutEverywhere(t, dedupe, step) })
	}
}

func cutEverywhere(t *testing.T, dedupe bool, step int) {
	provider := serveBook(t, dedupe)
	request, answer := measure(t, provider, dedupe)
	s := newShears(t, provider, request, answer+longer, step)
	var ahead atomic.Int64
	g := openGateway(t, t.TempDir(), cutConfig(s.addr, dedupe), func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	defer g.close()
	defer g.run()()

	ids := make([]string, s.places())
	var submitting sync.WaitGroup
	var turn atomic.Int64
	for range 32 { // so that they share their commits
		submitting.Go(func() {
			for n := turn.Add(1) - 1; n < int64(len(ids)); n = turn.Add(1) - 1 {
				ids[n] = fmt.Sprintf("cut-%04d", n)
				g.submit(ids[n], fmt.Sprintf("pay%02d", n%cutLanes))
			}
		})
	}
	submitting.Wait()
	settled := func(status ledger.Status, attempts int) bool {
		return status.Final() || status == ledger.UnknownHold || status == ledger.Unknown && attempts > 0
	}
	eventuallyAll(t, g, ids, settled)
	if n := s.next.Load(); n < int64(len(ids)) {
		t.Fatalf("%d of %d places were cut", n, len(ids))
	}
	s.whole.Store(true)

	book := bookOf(t, provider)
	confirmed, notSent := 0, 0
	for _, id := range ids {
		o := g.get(id)
		switch n := book[o.OrderID]; {
		case o.Status != ledger.Confirmed && o.Status != ledger.Unknown:
			t.Errorf("%s is %s (%s) after a cut: %s", id, o.Status, o.Reason, o.Detail)
		case n > 1:
			t.Errorf("%s happened %d times", id, n)
		case o.Status == ledger.Confirmed && n != 1:
			t.Errorf("%s is confirmed and the provider holds %d of it", id, n)
		case o.Status == ledger.Confirmed:
			confirmed++
		}
		for _, a := range g.attempts(id) {
			if a.Outcome == ledger.AttemptNotSent {
				notSent++
			}
		}
	}
	if confirmed == 0 || len(book) == confirmed {
		t.Errorf("%d confirmed of %d that happened: the cuts show nothing", confirmed, len(book))
	}
	if n := s.untouched.Load(); int64(notSent) > n {
		t.Errorf("%d attempts are called unsent, and only %d connections carried nothing", notSent, n)
	}
	t.Logf("%d cuts: %d confirmed, %d happened, %d unsent", len(ids), confirmed, len(book), notSent)

	// The network is whole again, and the look-ups do their work.
	for _, pass := range []time.Duration{5 * time.Second, 2 * time.Hour} {
		ahead.Add(int64(pass))
		g.do("lookup")
		if dedupe {
			eventuallyAll(t, g, ids, func(status ledger.Status, _ int) bool { return status == ledger.Confirmed })
			break
		}
	}
	book = bookOf(t, provider)
	for _, id := range ids {
		o := g.get(id)
		n := book[o.OrderID]
		if !(o.Status == ledger.Confirmed && n == 1) && !(!dedupe && o.Status == ledger.UnknownHold && n == 0) {
			t.Errorf("%s ended %s (%s), and the provider holds %d of it: %s", id, o.Status, o.Reason, n, o.Detail)
		}
	}
}

// cutLanes is how many rails lead through the shears: a rail that fails is tried
// by one at a time, and these all fail.
const cutLanes = 4

// longer is how much longer an answer may be than the one that was measured, its
// id and its time are, and a step more: some answers come through whole.
const longer = 12 + 16

func cutConfig(addr string, dedupe bool) string {
	protection := "{ by: none }"
	if dedupe {
		protection = "{ by: key, header: Idempotency-Key, retention: 24h }"
	}
	rails, actions := "rails:", "action_types:"
	for n := range cutLanes {
		rails += fmt.Sprintf(`
  card%02d:
    adapter: sandbox
    base_url: http://%s
    dedupe: %s
    timeout: 10s
    limits: { concurrency: 4, max_attempts: 50, max_elapsed: 12h, backoff: [1ms, 2ms] }
    breaker: { failures: 100000, open_for: 1s }
`, n, addr, protection)
		actions += action(fmt.Sprintf("pay%02d", n), fmt.Sprintf("card%02d", n))
	}
	return rails + "timing: { unknown_for: 1h }\n" + actions + allowAll
}

// measure counts the bytes of one exchange, as it really goes over the wire.
func measure(t *testing.T, provider string, dedupe bool) (request, answer int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var carrying sync.WaitGroup
	carrying.Go(func() {
		client, err := l.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		p, err := net.Dial("tcp", provider)
		if err != nil {
			return
		}
		defer p.Close()
		carrying.Go(func() {
			n, _ := io.Copy(p, client)
			request = int(n)
			p.(*net.TCPConn).CloseWrite()
		})
		n, _ := io.Copy(client, p)
		answer = int(n)
	})
	g := openGateway(t, t.TempDir(), cutConfig(l.Addr().String(), dedupe), nil)
	defer g.close()
	defer g.run()()
	g.submit("cut-0000", "pay00")
	eventuallyAll(t, g, []string{"cut-0000"}, func(status ledger.Status, _ int) bool { return status == ledger.Confirmed })
	carrying.Wait()
	return request, answer
}

// eventuallyAll waits until every operation is where it should be.
func eventuallyAll(t *testing.T, g *gateway, ids []string, ok func(status ledger.Status, attempts int) bool) {
	t.Helper()
	end := time.Now().Add(2 * time.Minute)
	for _, id := range ids {
		for {
			o := g.get(id)
			if ok(o.Status, o.Attempts) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s is still %s: %s", id, o.Status, o.Detail)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

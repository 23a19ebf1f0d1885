package rail

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// line is one connection as a server holds it, with what it heard on it.
type line struct {
	*net.TCPConn
	heard strings.Builder
	in    *bufio.Reader
}

func (l *line) Read(p []byte) (int, error) {
	n, err := l.TCPConn.Read(p)
	l.heard.Write(p[:n])
	return n, err
}

// head reads a request up to its body, all the body.
func (l *line) head() *http.Request { q, _ := http.ReadRequest(l.in); return q }
func (l *line) all() {
	if q := l.head(); q != nil {
		io.Copy(io.Discard, q.Body)
	}
}

// reset lets the connection end without a goodbye.
func (l *line) reset() { l.SetLinger(0) }

// untilHungUp listens on for a second request until the other side ends. A
// deadline turns a client that keeps its connection into a failure.
func (l *line) untilHungUp(t *testing.T) {
	l.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.Copy(io.Discard, l.in); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Error("the connection was kept")
	}
}

// lines is a server that offers to keep its connections, and treats each as
// its script says.
type lines struct {
	url  string
	stop func()
	all  []*line
}

func serveLines(t *testing.T, script func(l *line)) *lines {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &lines{url: "http://" + listener.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			l := &line{TCPConn: c.(*net.TCPConn)}
			l.in = bufio.NewReader(l)
			s.all = append(s.all, l)
			serving.Go(func() { defer c.Close(); script(l) })
		}
	})
	s.stop = sync.OnceFunc(func() { listener.Close(); serving.Wait() })
	t.Cleanup(s.stop)
	return s
}

// requests counts them on one connection, whole or not.
func (l *line) requests() int {
	return strings.Count(l.heard.String(), "POST /payments") + strings.Count(l.heard.String(), "GET /payments")
}

// A server keeps its connection open for more and dies at every point of the
// exchange. Go's own transport would send the request a second time at several
// of them: it carries an Idempotency-Key.
func TestOneAttemptIsOneRequestWhereverAKeptConnectionDies(t *testing.T) {
	kept := answer("201 Created", paid, "Connection: keep-alive", "Keep-Alive: timeout=600, max=1000")
	body := strings.Index(kept, "{")
	for name, script := range map[string]func(l *line){
		"after accept":             func(l *line) {},
		"after accept, reset":      func(l *line) { l.reset() },
		"after the headers":        func(l *line) { l.head() },
		"after the headers, reset": func(l *line) { l.head(); l.reset() },
		"mid body":                 func(l *line) { io.ReadFull(l.head().Body, make([]byte, 10)); l.reset() },
		"before the status":        func(l *line) { l.all() },
		"before the status, reset": func(l *line) { l.all(); l.reset() },
		"mid status":               func(l *line) { l.all(); io.WriteString(l, kept[:10]) },
		"mid headers":              func(l *line) { l.all(); io.WriteString(l, kept[:body-10]); l.reset() },
		"mid answer":               func(l *line) { l.all(); io.WriteString(l, kept[:body+10]) },
		"mid answer, reset":        func(l *line) { l.all(); io.WriteString(l, kept[:body+10]); l.reset() },
		"answered, and kept open":  func(l *line) { l.all(); io.WriteString(l, kept); l.untilHungUp(t) },
		"answered, then reset":     func(l *line) { l.all(); io.WriteString(l, kept); l.reset() },
		"asked to try again": func(l *line) {
			l.all()
			io.WriteString(l, answer("503 Busy", "{}", "Retry-After: 0"))
			l.untilHungUp(t)
		},
		"asked to try again, 408":                func(l *line) { l.all(); io.WriteString(l, answer("408 Request Timeout", "", "Connection: close")) },
		"misdirected":                            func(l *line) { l.all(); io.WriteString(l, answer("421 Misdirected", "{}")); l.untilHungUp(t) },
		"answered twice, kept open":              func(l *line) { l.all(); io.WriteString(l, kept+kept); l.untilHungUp(t) },
		"answered before the request, kept open": func(l *line) { io.WriteString(l, answer("408 Request Timeout", "")); l.untilHungUp(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s := serveLines(t, script)
			r := mustRail(t, with(card(s.url), func(c *Config) { c.Timeout = Lasting(5 * time.Second) }))
			const sends, looks = 3, 3
			for range sends {
				c, err := r.Connect(t.Context())
				if err != nil {
					continue // reset so early that there was no connection: nothing is marked
				}
				x := c.Send(t.Context(), mustRender(t, r, payment()), time.Now().Add(5*time.Second))
				if a := r.Classify(payment(), x); x.Written == 0 && a.Finding != ledger.NotSent || x.Written > 0 && a.Finding == ledger.NotSent {
					t.Errorf("%d bytes left: %+v", x.Written, a)
				}
			}
			for range looks { // a look-up may be asked again, but by the schedule, not by the connection
				r.Lookup(context.Background(), payment())
			}
			s.stop()
			if len(s.all) != sends+looks {
				t.Errorf("%d connections for %d attempts and look-ups", len(s.all), sends+looks)
			}
			for i, l := range s.all {
				if n := l.requests(); n > 1 {
					t.Errorf("connection %d carried %d requests: %q", i+1, n, l.heard.String())
				}
			}
		})
	}
}

// The server is in the operating system's queue and dies before it takes the
// connection: the connection was made, and nothing answers on it.
func TestAServerThatDiesBeforeItAcceptsIsUnknownAndNotTriedAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := mustRail(t, card("http://"+l.Addr().String()))
	c, err := r.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go l.Close() // before the bytes or after them: both happen
	x := c.Send(t.Context(), mustRender(t, r, payment()), time.Now().Add(5*time.Second))
	if a := r.Classify(payment(), x); x.Written > 0 && a.Finding != ledger.Unclear || x.Written == 0 && a.Finding != ledger.NotSent {
		t.Errorf("%+v %+v", x, a)
	}
}

// Whatever ends the exchange after the first byte left, the outcome is unknown,
// and the provider, which acted, was asked once.
func TestCase040OneSendAndUnknownWhateverHappensAfterTheFirstByte(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(l *line, giveUp func())
		fault Fault
	}{
		"reset":     {func(l *line, _ func()) { l.reset() }, Cut},
		"EOF":       {func(*line, func()) {}, Cut},
		"time-out":  {func(l *line, _ func()) { l.untilHungUp(t) }, TimedOut},
		"cancelled": {func(l *line, giveUp func()) { giveUp(); l.untilHungUp(t) }, Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			var mu sync.Mutex
			effects := 0
			s := serveLines(t, func(l *line) {
				l.all()
				mu.Lock()
				effects++ // it commits, and then
				mu.Unlock()
				c.end(l, giveUp)
			})
			r := mustRail(t, with(card(s.url), func(c *Config) { c.Timeout = Lasting(300 * time.Millisecond) }))
			conn, err := r.Connect(ctx)
			if err != nil {
				t.Fatal(err)
			}
			x := conn.Send(ctx, mustRender(t, r, payment()), time.Now().Add(5*time.Second))
			s.stop()
			if a := r.Classify(payment(), x); a.Finding != ledger.Unclear || x.Err != c.fault || effects != 1 || len(s.all) != 1 {
				t.Errorf("%+v, fault %v, %d effects over %d connections", a, x.Err, effects, len(s.all))
			}
		})
	}
}

package rail

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unsafe"

	"holdfast/store/ledger"
)

func TestAWholeAnswerComesHome(t *testing.T) {
	p := newProvider(t, always(answer("201 Created", paid)))
	r := mustRail(t, card(p.url))
	x := send(t, r)
	if x.Status != 201 || !x.Whole || x.Err != nil || string(x.Body) != paid || x.Written == 0 {
		t.Fatalf("exchange %+v", x)
	}
	if _, seen := p.seen(); int64(len(seen)) != x.Written || strings.Count(seen, "POST ") != 1 {
		t.Errorf("%d bytes written, arrived %q", x.Written, seen)
	}
	if a := r.Classify(payment(), x); a.Finding != ledger.Found {
		t.Errorf("answer %+v", a)
	}
}

// The server hangs up after every possible number of request bytes, politely
// and with a reset. Whatever it does, at most one request leaves, and nothing
// that left is ever taken for unsent.
func TestOneRequestPerSendWhereverTheServerCuts(t *testing.T) {
	some := mustRail(t, card("http://127.0.0.1:65535"))
	wire, err := some.wireBytes(mustRender(t, some, payment()))
	if err != nil {
		t.Fatal(err)
	}
	whole := len(wire) - 1 // a port with fewer digits would leave the server waiting
	for _, reset := range []bool{false, true} {
		for n := 0; n < whole; n += 7 {
			p := newProvider(t, func(p *provider, c *net.TCPConn) {
				p.take(c, int64(n))
				if reset {
					c.SetLinger(0)
				}
			})
			r := mustRail(t, card(p.url))
			c, err := r.Connect(t.Context())
			if err != nil {
				continue // cut before anything was marked
			}
			x := c.Send(t.Context(), mustRender(t, r, payment()), time.Now().Add(5*time.Second))
			a := r.Classify(payment(), x)
			p.stop()
			conns, seen := p.seen()
			if conns != 1 || strings.Count(seen, "POST ") > 1 {
				t.Fatalf("cut after %d (reset %v): %d connections, %q", n, reset, conns, seen)
			}
			if x.Written > 0 && a.Finding != ledger.Unclear || x.Written == 0 && (a.Finding != ledger.NotSent || seen != "") {
				t.Fatalf("cut after %d (reset %v): %+v after %d bytes, of which %d arrived", n, reset, a, x.Written, len(seen))
			}
		}
	}
}

// An answer that is cut after every byte proves its effect whole or not at all.
func TestAnswerCutAfterEveryByteIsConfirmedOrUnknown(t *testing.T) {
	chunked := "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(paid), paid)
	untilEOF := "HTTP/1.1 201 Created\r\n\r\n" + paid
	refused := answer("402 Payment Required", `{"error":{"type":"card_declined"}}`)
	for _, whole := range []string{answer("201 Created", paid), chunked, untilEOF, refused} {
		for n := 0; n <= len(whole); n++ {
			p := newProvider(t, func(p *provider, c *net.TCPConn) {
				if p.request(c) != nil {
					io.WriteString(c, whole[:n])
				}
			})
			r := mustRail(t, card(p.url))
			a := r.Classify(payment(), send(t, r))
			want := ledger.Unclear
			if n == len(whole) {
				want = map[bool]ledger.Finding{true: ledger.Refused, false: ledger.Found}[whole == refused]
			}
			if a.Finding != want {
				t.Fatalf("cut after %d of %q: %+v", n, whole, a)
			}
			p.stop()
			if _, seen := p.seen(); strings.Count(seen, "POST ") != 1 {
				t.Fatalf("cut after %d: arrived %q", n, seen)
			}
		}
	}
}

func TestSendDeadlineIsLookedAtLast(t *testing.T) {
	p := newProvider(t, always(answer("201 Created", paid)))
	now := time.Now()
	for name, c := range map[string]struct {
		clock  func() time.Time
		sendBy time.Time
	}{
		"zero":                           {time.Now, time.Time{}},
		"passed":                         {time.Now, now.Add(-time.Second)},
		"now":                            {func() time.Time { return now }, now},
		"slept, monotonic clock stood":   {func() time.Time { return wallAhead(now, time.Hour) }, now.Add(time.Minute)},
		"wall clock alone, and it is on": {func() time.Time { return now.Round(0).Add(time.Hour) }, now.Round(0).Add(time.Minute)},
	} {
		r, err := New("card", card(p.url), c.clock)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := r.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x := conn.Send(t.Context(), mustRender(t, r, payment()), c.sendBy)
		if x.Written != 0 || x.Err != TooLate {
			t.Errorf("%s: %+v", name, x)
		}
		if a := r.Classify(payment(), x); a.Finding != ledger.NotSent || a.Sentence != "Nothing was sent: the send deadline had passed." {
			t.Errorf("%s: %+v", name, a)
		}
	}
	p.stop()
	if _, seen := p.seen(); seen != "" {
		t.Errorf("bytes left: %q", seen)
	}
}

// Also the end of a long request leaves before the deadline or not at all.
func TestASlowWriteEndsAtTheSendDeadline(t *testing.T) {
	asleep := make(chan struct{})
	p := newProvider(t, func(p *provider, c *net.TCPConn) { <-asleep; p.take(c, 1<<30) })
	defer close(asleep)
	now := time.Now() // it stands still, so that hashing a long request costs nothing
	r, err := New("card", with(card(p.url), func(c *Config) { c.Stamp, c.Lookup, c.Timeout = Stamp{}, Lookup{}, Lasting(2*time.Second) }), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	o := payment()
	o.Payload = []byte(`"` + strings.Repeat("a", 16<<20) + `"`)
	c, err := r.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := c.Send(t.Context(), mustRender(t, r, o), now.Add(200*time.Millisecond))
	a := r.Classify(o, x)
	if x.Err != TooLate || x.Written == 0 || a.Finding != ledger.Unclear || a.Sentence != "The send deadline passed while the request was being written." {
		t.Errorf("%d bytes, %v: %+v", x.Written, x.Err, a)
	}
}

// wallAhead is a reading of the clocks after a machine slept: the wall clock
// went on, the monotonic one stood. No function of time builds one, so the
// seconds of the wall clock are moved where time.Time keeps them.
func wallAhead(t time.Time, d time.Duration) time.Time {
	moved := t
	(*struct{ wall uint64 })(unsafe.Pointer(&moved)).wall += uint64(d/time.Second) << 30
	if moved.Sub(t) != 0 || moved.Round(0).Sub(t.Round(0)) != d {
		panic("time.Time keeps its clocks elsewhere now")
	}
	return moved
}

func TestAConnectionCarriesOneRequest(t *testing.T) {
	p := newProvider(t, always(answer("201 Created", paid)))
	r := mustRail(t, card(p.url))
	c, err := r.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	req := mustRender(t, r, payment())
	c.Send(t.Context(), req, time.Now().Add(time.Minute))
	if x := c.Send(t.Context(), req, time.Now().Add(time.Minute)); x.Written != 0 || x.Err != Used {
		t.Errorf("sent twice: %+v", x)
	}
	if conns, seen := p.seen(); conns != 1 || strings.Count(seen, "POST ") != 1 {
		t.Errorf("%d connections, %q", conns, seen)
	}
}

func TestWhoeverGivesUpBeforeTheFirstByteSendsNothing(t *testing.T) {
	p := newProvider(t, always(answer("201 Created", paid)))
	r := mustRail(t, card(p.url))
	c, err := r.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := c.Send(ctx, mustRender(t, r, payment()), time.Now().Add(time.Minute))
	if a := r.Classify(payment(), x); x.Written != 0 || x.Err != Interrupted || a.Finding != ledger.NotSent {
		t.Errorf("%+v %+v", x, a)
	}
}

func TestGivingUpWhileWaitingIsUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := newProvider(t, func(p *provider, c *net.TCPConn) {
		p.request(c)
		cancel()
		p.take(c, 1) // until the client hangs up
	})
	r := mustRail(t, card(p.url))
	c, err := r.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := c.Send(ctx, mustRender(t, r, payment()), time.Now().Add(time.Minute))
	if a := r.Classify(payment(), x); x.Err != Interrupted || a.Finding != ledger.Unclear || a.Sentence != "Sending was interrupted before an answer came." {
		t.Errorf("%+v %+v", x, a)
	}
}

func TestTheWholeAnswerHasOneDeadline(t *testing.T) {
	drip := func(beginning string) func(*provider, *net.TCPConn) {
		return func(p *provider, c *net.TCPConn) {
			if p.request(c) == nil {
				return
			}
			pace := time.NewTicker(5 * time.Millisecond)
			defer pace.Stop()
			for text := beginning; ; text = "a" {
				if _, err := io.WriteString(c, text); err != nil {
					return
				}
				<-pace.C
			}
		}
	}
	for name, script := range map[string]func(*provider, *net.TCPConn){
		"silence":      func(p *provider, c *net.TCPConn) { p.request(c); p.take(c, 1) },
		"slow headers": drip("HTTP/1.1 201 Created\r\nX: a"),
		"slow body":    drip("HTTP/1.1 201 Created\r\nContent-Length: 100000\r\n\r\n{"),
	} {
		p := newProvider(t, script)
		r := mustRail(t, with(card(p.url), func(c *Config) { c.Timeout = Lasting(300 * time.Millisecond) }))
		began := time.Now()
		x := send(t, r)
		if took := time.Since(began); x.Err != TimedOut || took > 20*time.Second {
			t.Errorf("%s: %v after %v", name, x.Err, took)
		}
		a := r.Classify(payment(), x)
		want := "No answer after 0.3 s."
		if name == "slow body" {
			want = "The answer, 201, was not whole after 0.3 s."
		}
		if a.Finding != ledger.Unclear || a.Sentence != want {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestAHugeBodyIsCutAtTheLimit(t *testing.T) {
	sent := make(chan int64, 1)
	p := newProvider(t, func(p *provider, c *net.TCPConn) {
		p.request(c)
		io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 1073741824\r\n\r\n{\"id\":\"pay_1\",\"x\":\"")
		n, _ := io.Copy(c, io.LimitReader(endless{}, 1<<30))
		sent <- n
	})
	r := mustRail(t, card(p.url))
	x := send(t, r)
	if x.Err != TooLong || x.Whole || len(x.Body) != keptLimit || len(x.full) > bodyLimit+1 {
		t.Errorf("%v, whole %v, kept %d, read %d", x.Err, x.Whole, len(x.Body), len(x.full))
	}
	if a := r.Classify(payment(), x); a.Finding != ledger.Unclear {
		t.Errorf("%+v", a)
	}
	if n := <-sent; n > 64<<20 {
		t.Errorf("the provider could send %d bytes", n)
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("a"), len(p))), nil }

func TestABodyBelowTheLimitIsReadWholeAndKeptInPart(t *testing.T) {
	body := `{"id":"pay_1","amount":125000,"currency":"EUR","recipient":"acct_7","pad":"` + strings.Repeat("a", 500_000) + `"}`
	p := newProvider(t, always(answer("201 Created", body)))
	r := mustRail(t, card(p.url))
	x := send(t, r)
	if a := r.Classify(payment(), x); a.Finding != ledger.Found || len(x.Body) != keptLimit || len(a.Receipt.Raw) != keptLimit {
		t.Errorf("%+v, kept %d", a.Sentence, len(x.Body))
	}
}

func TestAFloodOfHeadersIsCut(t *testing.T) {
	for name, flood := range map[string]string{
		"many headers":    "HTTP/1.1 201 Created\r\n" + strings.Repeat("X-A: b\r\n", 100_000) + "\r\n{}",
		"one long line":   "HTTP/1.1 201 Created\r\nX: " + strings.Repeat("a", 1<<20) + "\r\n\r\n{}",
		"interim answers": strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000) + answer("201 Created", paid),
	} {
		p := newProvider(t, func(p *provider, c *net.TCPConn) { p.request(c); io.WriteString(c, flood) })
		r := mustRail(t, card(p.url))
		x := send(t, r)
		if a := r.Classify(payment(), x); x.Status != 0 || a.Finding != ledger.Unclear || name != "interim answers" && x.Err != TooLong {
			t.Errorf("%s: %v %+v", name, x.Err, a)
		}
	}
}

func TestInterimAnswersAreWaitedThrough(t *testing.T) {
	p := newProvider(t, always("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+answer("201 Created", paid)))
	r := mustRail(t, card(p.url))
	if x := send(t, r); x.Status != 201 || !x.Whole {
		t.Errorf("%+v", x)
	}
}

func TestCompressionIsNotUndone(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	io.WriteString(w, paid)
	w.Close()
	p := newProvider(t, always(answer("201 Created", zipped.String(), "Content-Encoding: gzip")))
	r := mustRail(t, card(p.url))
	x := send(t, r)
	if a := r.Classify(payment(), x); !bytes.Equal(x.Body, zipped.Bytes()) || a.Finding != ledger.Unclear {
		t.Errorf("%q %+v", x.Body, a)
	}
}

func TestRedirectsAreOnlyAnswers(t *testing.T) {
	other := newProvider(t, always(answer("201 Created", paid)))
	for _, status := range []string{"301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"} {
		p := newProvider(t, always(answer(status, "", "Location: "+other.url+"/payments")))
		r := mustRail(t, card(p.url))
		if a := r.Classify(payment(), send(t, r)); a.Finding != ledger.Unclear || a.Sentence != "The provider answered "+status[:3]+", which proves nothing." {
			t.Errorf("%+v", a)
		}
	}
	if conns, _ := other.seen(); conns != 0 {
		t.Error("a redirect was followed")
	}
}

func TestWhatIsNotHTTPIsUnknown(t *testing.T) {
	for _, text := range []string{"hello\r\n\r\n", "HTTP/2.0 \r\n\r\n", "SSH-2.0-OpenSSH_9\r\n", "\x00\xff\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n",
		"HTTP/1.1 201 Created\r\nContent-Length: -1\r\n\r\n{}", "HTTP/1.1 201 Created\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"} {
		p := newProvider(t, always(text))
		r := mustRail(t, card(p.url))
		x := send(t, r)
		if a := r.Classify(payment(), x); a.Finding != ledger.Unclear || x.Err == nil || strings.Contains(a.Sentence+x.Err.Error(), "SSH") {
			t.Errorf("%q: %+v %v", text, a, x.Err)
		}
	}
}

func TestAnAnswerToHalfARequestIsRead(t *testing.T) {
	p := newProvider(t, func(p *provider, c *net.TCPConn) {
		p.take(c, 100)
		io.WriteString(c, answer("402 Payment Required", `{}`))
		c.CloseWrite()
		p.take(c, 1<<30)
	})
	r := mustRail(t, card(p.url))
	if a := r.Classify(payment(), send(t, r)); a.Finding != ledger.Refused {
		t.Errorf("%+v", a)
	}
}

func TestTLSIsCheckedBeforeAnythingIsMarked(t *testing.T) {
	requests := 0
	serve := func(change func(*tls.Config)) (*httptest.Server, *x509.CertPool) {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			requests++
			if q.ProtoMajor != 1 || q.TLS.ServerName != "" && q.TLS.ServerName != "example.com" {
				t.Errorf("spoken %s to %q", q.Proto, q.TLS.ServerName)
			}
			w.WriteHeader(201)
			io.WriteString(w, paid)
		}))
		s.EnableHTTP2 = true
		s.Config.ErrorLog = discard
		s.TLS = &tls.Config{}
		change(s.TLS)
		s.StartTLS()
		t.Cleanup(s.Close)
		pool := x509.NewCertPool()
		pool.AddCert(s.Certificate())
		return s, pool
	}
	good, pool := serve(func(*tls.Config) {})
	r := mustRail(t, card(good.URL))
	r.roots = pool
	x := send(t, r)
	if a := r.Classify(payment(), x); a.Finding != ledger.Found || x.Written <= int64(len(mustRender(t, r, payment()).Body)) {
		t.Fatalf("%+v %+v", x, a)
	}
	if requests != 1 {
		t.Errorf("%d requests", requests)
	}

	untrusted := mustRail(t, card(good.URL))
	untrusted.roots = x509.NewCertPool()
	old, oldPool := serve(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
	outdated := mustRail(t, card(old.URL))
	outdated.roots = oldPool
	misnamed := mustRail(t, card(strings.Replace(good.URL, "127.0.0.1", "localhost", 1)))
	misnamed.roots = pool
	plain := newProvider(t, always(answer("201 Created", paid)))
	speechless := mustRail(t, card("https://"+plain.addr))
	for name, r := range map[string]*Rail{"untrusted": untrusted, "TLS 1.1": outdated, "another name": misnamed, "no TLS at all": speechless} {
		if c, err := r.Connect(t.Context()); err == nil {
			c.Close()
			t.Errorf("%s: connected", name)
		} else if !strings.Contains(err.Error(), "TLS did not succeed") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if requests != 1 {
		t.Errorf("%d requests", requests)
	}
}

// A TLS record of which a part left may have arrived, although TLS itself
// counts it as unwritten.
func TestBytesAreCountedBelowTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = discard
	s.StartTLS()
	t.Cleanup(s.Close)
	r := mustRail(t, with(card(s.URL), func(c *Config) { c.Timeout = Lasting(500 * time.Millisecond) }))
	r.roots = x509.NewCertPool()
	r.roots.AddCert(s.Certificate())
	c, err := r.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.raw.Conn = &stingy{c.raw.Conn, 5}
	x := c.Send(t.Context(), mustRender(t, r, payment()), time.Now().Add(time.Minute))
	if a := r.Classify(payment(), x); x.Written != 5 || a.Finding != ledger.Unclear {
		t.Errorf("%+v %+v", x, a)
	}
}

// stingy is a network that takes n bytes and no more.
type stingy struct {
	net.Conn
	n int
}

func (s *stingy) Write(p []byte) (int, error) {
	n, _ := s.Conn.Write(p[:min(len(p), s.n)])
	s.n -= n
	return n, errors.New("the network is gone")
}

func TestAClosedPortCostsNoAttempt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := mustRail(t, card("http://"+l.Addr().String())).Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "it refused the connection") {
		t.Errorf("%v", err)
	}
}

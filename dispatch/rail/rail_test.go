package rail

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// canary is a credential that must appear nowhere but on the wire.
const canary = "sk_canary_5f1c0ffee"

func payment() ledger.Operation {
	amount := int64(125000)
	return ledger.Operation{
		TenantID:    "default",
		OperationID: "inv-481-charge",
		OrderID:     ledger.OrderID("test", "default", "inv-481-charge"),
		ProviderKey: ledger.ProviderKey("test", "default", "inv-481-charge", "live-eu"),
		ActionType:  "create_payment",
		Effect:      "charge",
		Payload:     []byte(`{"amount":125000,"currency":"EUR","recipient":"acct_7","reference":"invoice-481"}`),
		Terms:       ledger.Terms{Amount: amount, HasAmount: true, Currency: "EUR", Recipient: "acct_7", Reference: "invoice-481"},
	}
}

// card is the rail of the contract's example, in Go.
func card(base string) Config {
	return Config{
		Adapter: AdapterHTTP,
		BaseURL: base,
		Account: "live-eu",
		Headers: map[string]Secret{"Authorization": NewSecret("Bearer " + canary)},
		Timeout: Lasting(3 * time.Second),
		Dedupe:  Dedupe{By: "key", Header: "Idempotency-Key", Retention: Lasting(24 * time.Hour)},
		Send:    Send{Method: "POST", Path: "/payments"},
		Stamp:   Stamp{Body: "/metadata/operation"},
		Answers: []AnswerRow{
			{Status: []int{200, 201}, Means: "confirmed"},
			{Status: []int{202}, Means: "pending"},
			{Status: []int{402}, Means: "rejected"},
			{Status: []int{400, 422}, Body: map[string]any{"/error/type": "invalid_request"}, Means: "rejected"},
			{Status: []int{429}, Means: "not_sent"},
		},
		Receipt: Receipt{ID: "/id", Amount: "/amount", Currency: "/currency", Recipient: "/recipient"},
		Lookup:  Lookup{Path: "/payments?reference={order_id}", Items: "/data"},
	}
}

func mustRail(t testing.TB, c Config) *Rail {
	t.Helper()
	r, err := New("card", c, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustRender(t testing.TB, r *Rail, o ledger.Operation) ledger.Request {
	t.Helper()
	req, err := r.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// provider is the world outside: a socket, and a script for each connection.
// It notes every byte that arrives.
type provider struct {
	url  string
	addr string

	stop func() // ends the listener and waits for every connection; then seen is final

	mu    sync.Mutex
	conns int
	bytes strings.Builder
}

func newProvider(t testing.TB, script func(p *provider, c *net.TCPConn)) *provider {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{url: "http://" + l.Addr().String(), addr: l.Addr().String()}
	var accepting, served sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns++
			p.mu.Unlock()
			served.Go(func() {
				defer c.Close()
				script(p, c.(*net.TCPConn))
			})
		}
	})
	p.stop = sync.OnceFunc(func() { l.Close(); accepting.Wait(); served.Wait() })
	t.Cleanup(p.stop)
	return p
}

// seen is what arrived on all connections so far.
func (p *provider) seen() (conns int, bytes string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns, p.bytes.String()
}

func (p *provider) note(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes.Write(b)
}

// take reads n bytes of what comes, or all of it until the other side ends.
func (p *provider) take(c net.Conn, n int64) int64 {
	taken, _ := io.Copy(noting{p}, io.LimitReader(c, n))
	return taken
}

// request reads one whole request.
func (p *provider) request(c net.Conn) *http.Request {
	req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, noting{p})))
	if err != nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil
	}
	req.Body = io.NopCloser(strings.NewReader(string(body)))
	return req
}

type noting struct{ p *provider }

func (n noting) Write(b []byte) (int, error) { n.p.note(b); return len(b), nil }

// always answers every request with the same bytes.
func always(answer string) func(p *provider, c *net.TCPConn) {
	return func(p *provider, c *net.TCPConn) {
		if p.request(c) != nil {
			io.WriteString(c, answer)
		}
	}
}

func answer(status, body string, header ...string) string {
	return "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\n" + strings.Join(append(header, ""), "\r\n") +
		"Content-Length: " + itoa(len(body)) + "\r\n\r\n" + body
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

const paid = `{"id":"pay_1","amount":125000,"currency":"EUR","recipient":"acct_7","operation":"x"}`

// send renders the payment and sends it over a fresh connection.
func send(t testing.TB, r *Rail) Exchange {
	t.Helper()
	c, err := r.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c.Send(context.Background(), mustRender(t, r, payment()), time.Now().Add(5*time.Second))
}

func with(c Config, change func(*Config)) Config {
	c.Headers = maps.Clone(c.Headers)
	change(&c)
	return c
}

package dispatch_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// standIn is a provider that does what facts say, over a real socket, and keeps
// its own book.
type standIn struct {
	facts
	*httptest.Server
	now func() time.Time

	mu       sync.Mutex
	o        ledger.Operation // the one at hand
	ref      string
	fault    string                                             // what goes wrong with its first request
	script   func(w http.ResponseWriter, request string, n int) // stands in place of all that, for what acts
	requests int                                                // of this operation that could act
	book     []done
	keys     map[string]kept
}

// done is one effect.
type done struct {
	id, stamp, key, to string
	amount             int
}

// kept is what the provider knows about a key.
type kept struct {
	request string // which request it came with
	at      time.Time
	foreign bool // another client's, in the way
	done    *done
	status  int // of an answer that is kept as it was; zero: the record
}

func newStandIn(t *testing.T, f facts, now func() time.Time) *standIn {
	p := &standIn{facts: f, now: now}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Server.Close)
	return p
}

// expect turns the page of the book for the next operation.
func (p *standIn) expect(o ledger.Operation, ref, fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.o, p.ref, p.fault, p.requests, p.book, p.keys = o, ref, fault, 0, nil, map[string]kept{}
	if fault == "the key is another request's" && p.kind != none && p.kind != upserts {
		other := done{id: "theirs", stamp: "ord_theirs", key: p.theKey(), to: "acct_other", amount: 99}
		p.book = []done{other}
		p.keys[p.theKey()] = kept{request: "theirs", at: p.now(), foreign: true, done: &other}
	}
}

// acts counts what was done in the name of the operation at hand.
func (p *standIn) acts() (requests, effects int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.book {
		if e.stamp != "ord_theirs" {
			effects++
		}
	}
	return p.requests, effects
}

// await returns when that many requests have come in: one that its sender gave
// up on may still be on the way.
func (p *standIn) await(requests int) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if got, _ := p.acts(); got >= requests {
			return
		}
	}
}

func (p *standIn) theKey() string {
	switch p.kind {
	case none:
		return ""
	case byNature, upserts:
		return "nature"
	}
	return p.o.ProviderKey
}

func (p *standIn) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	request := r.Method + " " + r.RequestURI + " " + string(body)
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		p.list(w, r)
		return
	}
	p.requests++
	if p.script != nil {
		p.script(w, request, p.requests)
		return
	}
	fault := p.fault
	p.fault = ""
	carried := request + fmt.Sprint(r.Header)
	if p.kind != none && p.theKey() == p.o.ProviderKey && !strings.Contains(carried, p.o.ProviderKey) {
		w.WriteHeader(http.StatusTeapot) // a request without its key would act each time: let the test see it
		return
	}
	switch fault {
	case "timeout before the provider acted":
		silence(w)
	case "timeout after it acted", "timeout after it acted, and woken when keys are forgotten":
		p.act(request, false)
		silence(w)
	case "reset in the middle of the answer":
		e := p.act(request, false)
		cut(w, p.status, p.shown(p.record, *e))
	case "500, nothing done":
		p.failed(request, nil)
		w.WriteHeader(500)
	case "500, done":
		e := p.act(request, false)
		p.failed(request, e)
		w.WriteHeader(500)
		io.WriteString(w, `{"error":{"type":"api_error"}}`)
	case "409 while it is being done":
		e := p.act(request, false)
		p.occupied(w, *e)
	case "429, nothing done":
		w.WriteHeader(429)
		io.WriteString(w, `{}`)
	case "garbage for an answer, done":
		p.act(request, false)
		w.WriteHeader(p.status)
		io.WriteString(w, `{"id": <html>`)
	case "done with another amount or recipient":
		e := p.act(request, true)
		p.answer(w, p.status, p.shown(p.record, *e))
	default:
		p.perform(w, request)
	}
}

// perform does what the provider does with a request when nothing goes wrong.
func (p *standIn) perform(w http.ResponseWriter, request string) {
	k, known := p.keys[p.theKey()]
	if known && p.keeps > 0 && !k.at.Add(p.keeps).After(p.now()) {
		known = false
	}
	switch {
	case !known || k.done == nil && k.status == 0:
		e := p.act(request, false)
		p.answer(w, p.status, p.shown(p.record, *e))
		return
	case k.request != request && p.mismatch != 0:
		p.answer(w, p.mismatch, p.refusal)
		return
	}
	if p.marker[0] != "" {
		w.Header().Set(p.marker[0], p.marker[1])
	}
	switch {
	case k.status != 0:
		p.answer(w, k.status, `{"error":{"type":"api_error"}}`)
	case p.conflict != "":
		p.answer(w, p.again, p.shown(p.conflict, *k.done))
	case p.again != 0:
		p.answer(w, p.again, p.shown(p.record, *k.done))
	default:
		p.answer(w, p.status, p.shown(p.record, *k.done))
	}
}

// act does it, and remembers the key as far as the provider does.
func (p *standIn) act(request string, wrong bool) *done {
	e := done{id: fmt.Sprintf("obj_%s_%d", p.ref, len(p.book)+1), stamp: p.o.OrderID, key: p.o.ProviderKey, to: "acct_7", amount: 4800}
	if wrong {
		e.amount, e.to = 4801, "acct_8"
	}
	if p.kind == upserts && len(p.book) > 0 {
		return &p.book[0] // the same contact, written again
	}
	p.book = append(p.book, e)
	if p.kind == keepsAll || p.kind == keepsWork || p.kind == byNature {
		p.keys[p.theKey()] = kept{request: request, at: p.now(), done: &e}
	}
	return &e
}

// failed keeps a 500 for its key, where the provider does that.
func (p *standIn) failed(request string, e *done) {
	if p.kind == keepsAll {
		p.keys[p.theKey()] = kept{request: request, at: p.now(), done: e, status: 500}
	}
}

// occupied is the answer while the first request of the key is under way.
func (p *standIn) occupied(w http.ResponseWriter, e done) {
	if p.busyHead[0] != "" {
		w.Header().Set(p.busyHead[0], p.busyHead[1])
	}
	status, body := p.busy, p.busyBody
	if status == 0 {
		status = 409
	}
	if p.again == 409 { // a repeat is answered with what the first one made
		if body = p.conflict; body == "" {
			body = p.record
		}
	}
	p.answer(w, status, p.shown(body, e))
}

// list answers a look-up with what the book has under the stamp, the key or the
// reference that it asks for.
func (p *standIn) list(w http.ResponseWriter, r *http.Request) {
	var items []string
	asked := r.URL.Query()
	for _, e := range p.book {
		named := slices.Contains([]string{"/conversations.history", "/v1/payment_intents"}, r.URL.Path) // they list everything
		for _, values := range asked {
			for _, v := range values {
				named = named || strings.Contains(v, e.stamp) || v == e.key || v == p.ref
			}
		}
		if named {
			items = append(items, p.shown(p.item, e))
		}
	}
	io.WriteString(w, strings.Replace(p.facts.list, "$items", strings.Join(items, ","), 1))
}

func (p *standIn) shown(text string, e done) string {
	return strings.NewReplacer("$id", e.id, "$amount", fmt.Sprint(e.amount), "$value", fmt.Sprintf("%d.%02d", e.amount/100, e.amount%100),
		"$to", e.to, "$stamp", e.stamp, "$ref", p.ref).Replace(text)
}

func (p *standIn) answer(w http.ResponseWriter, status int, body string) {
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// silence holds the connection until the other side gives up.
func silence(w http.ResponseWriter) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	go func() {
		defer c.Close()
		io.Copy(io.Discard, c)
	}()
}

// cut sends half an answer and resets the connection.
func cut(w http.ResponseWriter, status int, body string) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	fmt.Fprintf(c, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body)+9, body[:len(body)/2])
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

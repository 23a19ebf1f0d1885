package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// SandboxOptions says how a sandbox provider behaves.
type SandboxOptions struct {
	Listen    string        // address to listen on; empty: a free port on loopback
	Book      string        // file; empty: memory
	Dedupe    bool          // recognise a repeated Idempotency-Key
	Retention time.Duration // how long a key is remembered; zero: a day, as most providers do
	Lag       time.Duration // how late an effect shows in the lists
	Now       func() time.Time
	Log       *slog.Logger
}

const (
	sandboxRetention = 24 * time.Hour
	sandboxDrain     = 5 * time.Second  // a body half sent when the end comes may still arrive
	sandboxPatience  = 30 * time.Second // for a request's head, and then for its body
)

// Sandbox is a provider that keeps its own books, so that a test looks at the
// destination and not at the gateway's opinion of it. It knows nothing of
// operations: it sees requests, performs effects, and misbehaves when told to.
type Sandbox struct {
	o      SandboxOptions
	book   *sandboxBook
	keys   sandboxKeys
	faults sandboxFaults

	ending chan struct{} // closed when the end has come: whoever sleeps acts now
	once   sync.Once
	mu     sync.Mutex // guards closed, so that nobody enters behind Close
	closed bool
	inside sync.WaitGroup
}

// NewSandbox opens the book, which it then holds alone.
func NewSandbox(o SandboxOptions) (*Sandbox, error) {
	if o.Retention < 0 || o.Lag < 0 {
		return nil, errors.New("sandbox: retention and lag cannot be negative")
	}
	if o.Retention == 0 {
		o.Retention = sandboxRetention
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	book, answers, err := openSandboxBook(o.Book, o.Log)
	if err != nil {
		return nil, err
	}
	return &Sandbox{
		o:      o,
		book:   book,
		keys:   sandboxKeys{retention: o.Retention, stored: answers, busy: map[string]sandboxRequest{}},
		ending: make(chan struct{}),
	}, nil
}

// Close lets requests under way finish at once and closes the book.
func (s *Sandbox) Close() error {
	s.hurry()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.inside.Wait()
	return s.book.close()
}

// hurry ends every sleep: what was accepted is done now rather than lost, and
// the book is free again before somebody else asks for it.
func (s *Sandbox) hurry() { s.once.Do(func() { close(s.ending) }) }

func (s *Sandbox) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.inside.Add(1)
	return true
}

// sleep does not look at the request's context: a provider goes on working
// although its client has gone, and that is what the faults are to show.
func (s *Sandbox) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ending:
	}
}

// RunSandbox listens, serves and, when ctx ends, drains. It calls ready with
// the address once requests are answered.
func RunSandbox(ctx context.Context, o SandboxOptions, ready func(addr string)) error {
	s, err := NewSandbox(o)
	if err != nil {
		return err
	}
	listen := o.Listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		closed := s.Close()
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("sandbox: %s is in use by another program: end that one, or choose another address with --listen", listen)
		} else {
			err = fmt.Errorf("sandbox: cannot listen on %s: %w", listen, err)
		}
		return errors.Join(err, closed)
	}
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: sandboxPatience,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	if ready != nil {
		ready(l.Addr().String())
	}

	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("sandbox: stopped serving: %w", err), s.Close())
	case <-ctx.Done():
	}
	s.hurry()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), sandboxDrain)
	defer cancel()
	if server.Shutdown(drain) != nil {
		server.Close()
	}
	return s.Close()
}

// Handler answers the provider's API.
func (s *Sandbox) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments", s.perform)
	mux.HandleFunc("POST /refunds", s.perform)
	mux.HandleFunc("POST /emails", s.perform)
	mux.HandleFunc("PUT /records/{id}", s.perform)
	for path, kind := range sandboxKinds {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.list(w, r, kind) })
		mux.HandleFunc("GET "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) { s.one(w, r, kind) })
	}
	mux.HandleFunc("GET /_effects", s.showEffects)
	mux.HandleFunc("GET /_requests", s.showRequests)
	mux.HandleFunc("GET /_faults", func(w http.ResponseWriter, _ *http.Request) { s.showFaults(w) })
	mux.HandleFunc("POST /_faults", s.armFaults)
	mux.HandleFunc("DELETE /_faults", func(w http.ResponseWriter, _ *http.Request) {
		s.faults.disarm()
		s.showFaults(w)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		sandboxRefusal(http.StatusNotFound, "not_found", fmt.Sprintf("there is no %s %s here", r.Method, r.URL.Path)).write(w)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler)
		}
		defer s.inside.Done()
		mux.ServeHTTP(w, r)
	})
}

// perform is the whole life of a request that wants an effect: it is read,
// noted, perhaps struck by a fault, recognised as a repeat or done, written
// down, and only then answered.
func (s *Sandbox) perform(w http.ResponseWriter, r *http.Request) {
	q, refusal := readSandboxRequest(w, r, s.o.Now())
	fault := sandboxFault{}
	if refusal == nil {
		fault = s.faults.take(q)
		q.Fault = fault.String()
	}
	if err := s.book.note(&q); err != nil {
		s.cannotWrite(w, err)
		return
	}
	if refusal == nil {
		refusal = fault.refusal()
	}
	switch {
	case fault.name == faultDropBefore:
		sandboxCut(w)
		return
	case refusal != nil:
		refusal.write(w)
		return
	}

	if s.o.Dedupe && q.Key != "" {
		earlier, refusal := s.keys.claim(q)
		switch {
		case refusal != nil:
			refusal.write(w)
			return
		case earlier != nil:
			w.Header().Set("Idempotent-Replayed", "true")
			s.deliver(w, *earlier, fault)
			return
		}
		defer s.keys.release(q)
	}
	if fault.name == faultSlow {
		s.sleep(fault.delay)
	}
	effects, answer := s.outcome(q, fault)
	done, err := s.book.commit(q.N, effects, answer)
	if err != nil {
		s.cannotWrite(w, err)
		return
	}
	if s.o.Dedupe && q.Key != "" {
		s.keys.keep(q, done) // before the answer: who has it may repeat at once
	}
	s.deliver(w, done, fault)
}

// outcome says what a request does, and how it is answered once its effects
// have their numbers.
func (s *Sandbox) outcome(q sandboxRequest, fault sandboxFault) ([]sandboxEffect, func([]sandboxEffect) sandboxAnswer) {
	stored := func(a sandboxAnswer) sandboxAnswer {
		a.Key, a.Method, a.Path, a.BodySHA256, a.At = q.Key, q.Method, q.Path, q.bodySHA256, q.At
		return a
	}
	if fault.name == faultDecline {
		return nil, func([]sandboxEffect) sandboxAnswer {
			return stored(*sandboxRefusal(http.StatusPaymentRequired, "card_declined", "the card was declined"))
		}
	}
	e := q.effect(s.o.Now())
	if fault.name == faultWrongAmount && e.Amount != nil {
		more := *e.Amount + 1
		e.Amount = &more
	}
	effects := []sandboxEffect{e}
	if fault.name == faultDouble {
		effects = append(effects, e)
	}
	return effects, func(done []sandboxEffect) sandboxAnswer {
		s.faults.delayLists(done, e.At)
		if fault.name == faultErrorAfter {
			return stored(*sandboxRefusal(http.StatusInternalServerError, "api_error", "something went wrong"))
		}
		return stored(sandboxAnswer{Status: http.StatusCreated, Body: string(done[0].receipt())})
	}
}

// deliver brings an answer, or what a fault leaves of it, to the client.
func (s *Sandbox) deliver(w http.ResponseWriter, a sandboxAnswer, fault sandboxFault) {
	switch fault.name {
	case faultDropAfter:
		sandboxCut(w)
	case faultResetMidBody:
		sandboxCutMidBody(w, a)
	case faultGarbage:
		a.Body = "\x00\xff{\"id\": <html>"
		a.write(w)
	case faultSlowAfter:
		s.sleep(fault.delay)
		a.write(w)
	default:
		a.write(w)
	}
}

// cannotWrite answers when the book failed. Whether the effect stands is then
// as open as with any 500.
func (s *Sandbox) cannotWrite(w http.ResponseWriter, err error) {
	s.o.Log.Error("sandbox: the book cannot be written", "error", err)
	sandboxRefusal(http.StatusInternalServerError, "book_unavailable", "the provider's book cannot be written: "+err.Error()).write(w)
}

// Package rail is how to speak to a configured destination: it renders a
// request, owns the connection it goes over, classifies the answer and asks
// afterwards what happened.
//
// Each protocol is an adapter, in a file of its name. One call of Send puts at
// most one request on the wire. The package writes HTTP/1.1 onto a connection of its own instead of using Go's transport, which
// repeats a request by itself when a kept connection turns out to be dead. It
// follows no redirects, uses no proxy, and never reuses a connection.
//
// Nothing here knows the store. Secrets live in Secret values, join the bytes
// at the wire, and appear in no request that is kept, shown or logged.
package rail

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"holdfast/store/ledger"
)

// Rail is one destination, ready to be spoken to. It is made by New, and for an
// action type with its own ways by For. It is safe for concurrent use.
type Rail struct {
	name    string
	given   Config // as configured, for For
	config  Config // with the defaults filled in
	promise ledger.Rail
	now     func() time.Time
	adapter adapter

	origin string   // scheme://host[:port], as it stands in requests
	base   *url.URL // with the path prefix
	dial   target   // where connections go
	secret []header // configured headers, added at the wire
	masker *strings.Replacer
	public [][2]string     // headers of the adapter's own, shown as they are
	shape  func(any) error // what the adapter does to the payload before it is written; nil: nothing

	certificates []tls.Certificate // shown to a server that asks for one
	roots        *x509.CertPool    // whom to trust; nil: the system's authorities

	sendPath, lookupPath template

	breaker *Breaker

	// Set by tests only: how to resolve names.
	resolver *net.Resolver
}

// header is one configured header. The name is no secret, the value is.
type header struct {
	name  string
	value Secret
}

// New checks the configuration of one rail and fills in the defaults. Every
// error names the key it is about, and all of them are reported.
func New(name string, c Config, now func() time.Time) (*Rail, error) {
	if now == nil {
		return nil, fmt.Errorf("rails.%s: needs a clock", name)
	}
	c, err := c.withProfile()
	if err != nil {
		return nil, fmt.Errorf("rails.%s.profile: %w", name, err)
	}
	r, err := build(name, c, "", now)
	if err != nil {
		return nil, err
	}
	r.breaker = NewBreaker(*r.config.Breaker.Failures, r.config.Breaker.OpenFor.Or(0))
	return r, nil
}

// For is the rail as one action type uses it: the action type's own send,
// answers, receipt and lookup stand in place of the rail's. The
// breaker stays shared, since it is about the destination.
func (r *Rail) For(effect string, o Override) (*Rail, error) {
	f, err := build(r.name, r.given.With(o), effect, r.now)
	if err != nil {
		return nil, err
	}
	if err := f.adapter.usable(f); err != nil {
		return nil, fmt.Errorf("rails.%s.%w (effect %q)", r.name, err, effect)
	}
	f.dial = r.dial
	f.breaker = r.breaker
	f.roots, f.resolver = r.roots, r.resolver
	return f, nil
}

// At is the same rail, dialled at another address. It serves the sandbox that
// is started as a child on whatever port is free: its requests and promises
// name it the same after every start.
func (r *Rail) At(baseURL string) (*Rail, error) {
	u, err := parseBase(baseURL)
	if err != nil {
		return nil, fmt.Errorf("rails.%s: the address %w", r.name, err)
	}
	moved := *r
	moved.dial = newTarget(u, r.config.AllowPrivate)
	return &moved, nil
}

// Promise is what the rail's configuration says about it, as the ledger judges it.
func (r *Rail) Promise() ledger.Rail { return r.promise }

// Config is the rail as it is configured, its profile put in, defaults not.
func (r *Rail) Config() Config { return r.given }

// Breaker is shared by every action type of the rail.
func (r *Rail) Breaker() *Breaker { return r.breaker }

// String keeps a rail out of logs but for its name; its configuration holds secrets.
func (r *Rail) String() string { return "rail " + r.name }

// Format prints the name whatever the verb.
func (r *Rail) Format(s fmt.State, _ rune) { fmt.Fprint(s, r.String()) }

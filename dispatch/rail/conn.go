package rail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// longestConnect bounds name look-up, TCP and TLS together. A rail with a
// shorter timeout waits no longer than that.
const longestConnect = 10 * time.Second

// Conn is a connection that is made, and proven by TLS where the rail has it,
// before anything is marked: a failure up to here costs no attempt. It carries
// one request and is closed.
type Conn struct {
	rail *Rail
	raw  *counted
	wire net.Conn // raw, or TLS over it
	used atomic.Bool

	speaker speaker
}

// counted counts the bytes that the operating system took, below TLS: a record
// of which a part left is a request that may have arrived.
type counted struct {
	net.Conn
	written atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// Connect dials the rail. It uses no proxy and goes nowhere but to the
// configured host and port.
func (r *Rail) Connect(ctx context.Context) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, min(r.promise.Timeout, longestConnect))
	defer cancel()
	if r.config.Adapter == AdapterSandbox && r.dial.address() == "sandbox:80" {
		return nil, fmt.Errorf("%s has no address: start the sandbox, or give rails.%s.base_url", r, r.name)
	}
	dialer := net.Dialer{Control: r.dial.control, Resolver: r.resolver, KeepAlive: -1}
	tcp, err := dialer.DialContext(ctx, "tcp", r.dial.address())
	if err != nil {
		return nil, fmt.Errorf("%s is not reached: %s: %w", r, WhyUnreached(err), err)
	}
	raw := &counted{Conn: tcp}
	c := &Conn{rail: r, raw: raw, wire: raw}
	if c.speaker, err = r.adapter.open(ctx, c); err != nil {
		tcp.Close()
		return nil, fmt.Errorf("%s is not reached: %w", r, err)
	}
	return c, nil
}

func (c *Conn) secure(ctx context.Context) error {
	t := tls.Client(c.raw, &tls.Config{
		ServerName: c.rail.dial.host,
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		RootCAs:    c.rail.roots,
		// A server that refuses the certificate under TLS 1.3 says so only after
		// the handshake, when the request may have left: that is unknown, not unsent.
		Certificates: c.rail.certificates,
	})
	if err := t.HandshakeContext(ctx); err != nil {
		return err
	}
	if p := t.ConnectionState().NegotiatedProtocol; p != "" && p != "http/1.1" {
		return errors.New("the server insists on another protocol than HTTP/1.1")
	}
	c.wire = t
	return nil
}

// Close ends the connection, used or not. Whatever was written stays written.
func (c *Conn) Close() error { return c.raw.Close() } // not TLS's: it would wait to say goodbye

// tlsError marks what went wrong after TCP was connected.
type tlsError struct{ cause error }

func (e *tlsError) Error() string { return "TLS did not succeed: " + e.cause.Error() }
func (e *tlsError) Unwrap() error { return e.cause }

// WhyUnreached says in a few words why there is no connection. It names no
// address, so that a sentence with it may be shown to agents.
func WhyUnreached(err error) string {
	var dns *net.DNSError
	var secured *tlsError
	var timeout net.Error
	switch {
	case errors.Is(err, errRefusedAddress):
		return "its address is not allowed"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no connection in time"
	case errors.As(err, &dns):
		return "its name cannot be resolved"
	case errors.As(err, &secured):
		return "TLS did not succeed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refused the connection"
	}
	return "no connection"
}

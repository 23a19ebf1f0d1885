package rail

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"holdfast/store/ledger"
)

const (
	headerLimit = 64 << 10 // of an answer, interim answers included
	bodyLimit   = 1 << 20  // read at most
	keptLimit   = 64 << 10 // kept as evidence at most
	interim     = 8        // 1xx answers that are waited through
)

// Exchange is what went out and what came back. It holds no secret: where an
// answer repeats one, dots stand in its place.
type Exchange struct {
	Written int64 // bytes the operating system took, TLS included; zero: nothing left
	Status  int   // 0: no answer
	Header  http.Header
	Body    []byte // as it came, cut for keeping
	Err     error  // why there is no whole answer; always a Fault
	Whole   bool   // the answer came to its own end

	full []byte // the body as it was read, for classifying
	mail mailEnd
}

// Fault is why an exchange has no whole answer.
type Fault string

// The faults. Those named first happen before a byte leaves.
const (
	TooLate     Fault = "the send deadline had passed"
	Used        Fault = "the connection had carried a request before"
	Unfit       Fault = "the request is not the one that was rendered for this rail"
	Interrupted Fault = "sending was interrupted"
	TimedOut    Fault = "no whole answer came in time"
	Cut         Fault = "the connection was cut"
	Garbled     Fault = "what came back was not an HTTP answer"
	TooLong     Fault = "the answer was too long"
)

func (f Fault) Error() string { return string(f) }

// Send writes the request once and reads the answer. After sendBy no byte is
// handed to the network: the deadline is looked at last, right before the first
// one. A second call on a connection sends nothing.
//
// sendBy must come from the rail's clock. Where the wall clock and the
// monotonic one disagree, the later one counts: a machine that slept has a
// monotonic clock that did not move.
func (c *Conn) Send(ctx context.Context, req ledger.Request, sendBy time.Time) Exchange {
	defer c.Close()
	if c.used.Swap(true) {
		return Exchange{Err: Used}
	}
	return c.speaker.send(ctx, req, sendBy)
}

func (c *Conn) sendHTTP(ctx context.Context, req ledger.Request, sendBy time.Time) Exchange {
	wire, err := c.rail.wireBytes(req)
	if err != nil {
		return Exchange{Err: Unfit}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.rail.promise.Timeout, TimedOut)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.raw.SetDeadline(longAgo) })
	defer stop()

	before := c.raw.written.Load()
	unwritten := c.write(ctx, wire, sendBy)
	x := Exchange{Written: c.raw.written.Load() - before}
	if x.Written == 0 && unwritten != nil {
		x.Err = unwritten
		return x
	}
	// A server that turned away early may have answered although the rest of
	// the request could not be written.
	c.read(ctx, req.Method, &x)
	if unwritten != nil && x.Status == 0 {
		x.Err = unwritten
	}
	c.rail.mask(&x)
	return x
}

// longAgo makes a socket give up at once.
var longAgo = time.Unix(1, 0)

func (c *Conn) write(ctx context.Context, request []byte, sendBy time.Time) error {
	if err := c.due(ctx, sendBy); err != nil {
		return err
	}
	if _, err := c.wire.Write(request); err != nil {
		return faultOf(ctx, err)
	}
	return nil
}

// due says whether bytes may leave now. It is asked right before they do.
func (c *Conn) due(ctx context.Context, sendBy time.Time) error {
	// Also a slow write ends at the deadline. Only the distance counts, since
	// the socket knows no clock but the machine's.
	left := sendBy.Sub(c.rail.now())
	c.raw.SetWriteDeadline(time.Now().Add(left))
	if ctx.Err() != nil {
		return faultOf(ctx, ctx.Err())
	}
	if now := c.rail.now(); !now.Before(sendBy) || !now.Round(0).Before(sendBy.Round(0)) {
		return TooLate
	}
	return nil
}

// read takes one answer off the wire. It keeps what came, whole or not.
func (c *Conn) read(ctx context.Context, method string, x *Exchange) {
	m := &metered{from: c.wire, left: headerLimit}
	buffered := bufio.NewReader(m)
	answer, err := readAnswer(buffered, method)
	if err != nil {
		x.Err = m.fault(ctx)
		return
	}
	x.Status, x.Header = answer.StatusCode, answer.Header
	m.left = -1
	body, err := io.ReadAll(io.LimitReader(answer.Body, bodyLimit+1))
	x.full, x.Body = body, body[:min(len(body), keptLimit)]
	switch {
	case len(body) > bodyLimit:
		x.Err = TooLong
	case err != nil:
		x.Err = m.fault(ctx)
	default:
		x.Whole = true
	}
}

func readAnswer(b *bufio.Reader, method string) (*http.Response, error) {
	for range interim {
		answer, err := http.ReadResponse(b, &http.Request{Method: method})
		if err != nil {
			return nil, err
		}
		if answer.StatusCode >= 200 || answer.StatusCode == http.StatusSwitchingProtocols {
			return answer, nil
		}
	}
	return nil, Garbled
}

// faultOf gives an error of the network one of our own words; its text is left
// behind, since it may quote what the other side wrote.
func faultOf(ctx context.Context, err error) Fault {
	var fault Fault
	switch {
	case errors.As(err, &fault):
		return fault
	case ctx.Err() != nil && context.Cause(ctx) != TimedOut:
		return Interrupted
	case ctx.Err() != nil:
		return TimedOut
	case errors.Is(err, os.ErrDeadlineExceeded):
		return TooLate // only the write deadline is set otherwise
	}
	return Cut
}

// wireBytes is the request as it goes out, with the secrets. It trusts nothing
// about a request that may have been stored for a while.
func (r *Rail) wireBytes(req ledger.Request) ([]byte, error) {
	path, ours := strings.CutPrefix(req.URL, r.origin)
	switch {
	case !ours || !strings.HasPrefix(path, "/"):
		return nil, fmt.Errorf("was rendered for another address than %s", r.origin)
	case strings.ContainsFunc(path, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return nil, errors.New("holds a control character in its address")
	case !isToken(req.Method):
		return nil, errors.New("has no method")
	case req.SHA256 == "" || req.SHA256 != req.HashRequest():
		return nil, errors.New("does not have the hash it was stored with")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", req.Method, path)
	for _, h := range req.Header {
		if !isToken(h[0]) || checkHeaderValue(h[1]) != nil {
			return nil, errors.New("holds a header that cannot be sent")
		}
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	for _, h := range r.secret {
		fmt.Fprintf(&b, "%s: %s\r\n", h.name, h.value.reveal())
	}
	b.WriteString("\r\n")
	b.Write(req.Body)
	return b.Bytes(), nil
}

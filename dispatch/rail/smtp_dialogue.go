package rail

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"holdfast/store/ledger"
)

// dialogueLimit is how much a mail server may say on one connection, its
// certificates included.
const dialogueLimit = 256 << 10

// mailEnd is where a dialogue ended. The zero value proves nothing.
type mailEnd struct {
	step string // the last thing that was said
	text string // the reply to it, without its code
	// withheld: it is proven that the final dot was not handed to the network,
	// not one byte of the record that holds it. A server must not deliver a
	// message whose end it did not see (RFC 5321 4.1.1.10).
	withheld bool
}

// dialogue is a connection on which everything is said but the message.
type dialogue struct {
	c      *Conn
	client *smtp.Client
	heard  *recorder
}

// open greets, turns TLS on and signs in. A server that does not offer what the
// address promises is not spoken to.
func (m overSMTP) open(ctx context.Context, c *Conn) (speaker, error) {
	stop := context.AfterFunc(ctx, func() { c.raw.SetDeadline(longAgo) })
	client, err := m.greet(ctx, c)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	// From here on every byte is kept, as evidence and to see where a reply ended.
	heard := &recorder{from: client.Text.R}
	client.Text.R = bufio.NewReader(heard)
	return &dialogue{c: c, client: client, heard: heard}, nil
}

func (m overSMTP) greet(ctx context.Context, c *Conn) (*smtp.Client, error) {
	host, scheme := c.rail.dial.host, c.rail.dial.scheme
	secure := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, RootCAs: c.rail.roots}
	var wire net.Conn = &bounded{Conn: c.raw, left: dialogueLimit}
	if scheme == smtpTLS {
		t := tls.Client(wire, secure)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, &tlsError{err}
		}
		wire = t
	}
	client, err := smtp.NewClient(wire, host)
	if err != nil {
		return nil, unready(ctx, "the greeting", err)
	}
	client.SkipSMTPUTF8(true) // nothing but ASCII is sent
	if err := client.Hello(m.domain); err != nil {
		return nil, unready(ctx, "EHLO", err)
	}
	if scheme == smtpStartTLS {
		if offered, _ := client.Extension("STARTTLS"); !offered {
			return nil, errors.New("it offers no STARTTLS; write smtps://, or smtp+plain:// if mail may travel in the clear")
		}
		if err := client.StartTLS(secure); err != nil {
			var refused *textproto.Error
			if errors.As(err, &refused) {
				return nil, unready(ctx, "STARTTLS", err)
			}
			return nil, &tlsError{err}
		}
	}
	if m.login == nil {
		return client, nil
	}
	auth, err := m.mechanism(client, host)
	if err != nil {
		return nil, err
	}
	if err := client.Auth(auth); err != nil {
		return nil, unready(ctx, "AUTH", err)
	}
	return client, nil
}

// mechanism is how the password is shown. The connection is encrypted, or it is
// this machine's own, which the configuration was checked for.
func (m overSMTP) mechanism(client *smtp.Client, host string) (smtp.Auth, error) {
	_, offered := client.Extension("AUTH")
	mechanisms := strings.Fields(strings.ToUpper(offered))
	user, password := m.login.User.reveal(), m.login.Password.reveal()
	switch {
	case slices.Contains(mechanisms, "PLAIN"):
		return smtp.PlainAuth("", user, password, host, true), nil
	case slices.Contains(mechanisms, "LOGIN"):
		return smtp.LoginAuth(user, password, host, true), nil
	}
	return nil, errors.New("it offers neither AUTH PLAIN nor AUTH LOGIN; leave out auth if it wants no password")
}

// unready says why a server is not ready, without its words: it may repeat what
// it was told, and it was told a password.
func unready(ctx context.Context, step string, err error) error {
	var refused *textproto.Error
	var garbled textproto.ProtocolError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("it answered %s with %s", step, codes(refused.Code, refused.Msg))
	case ctx.Err() != nil:
		return fmt.Errorf("no answer to %s in time", step)
	case errors.As(err, &garbled):
		return fmt.Errorf("its answer to %s is not SMTP", step)
	}
	return fmt.Errorf("it hung up at %s", step)
}

var enhancedCode = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// codes are the parts of a reply that are numbers: 550 5.1.1.
func codes(code int, text string) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, enhancedCode.FindString(text)))
}

// send says the message once. Before the dot everything may be taken back by
// falling silent; the dot itself is looked at like a first byte.
func (d *dialogue) send(ctx context.Context, req ledger.Request, sendBy time.Time) Exchange {
	from, receivers, err := d.c.rail.envelope(req)
	if err != nil {
		return Exchange{Err: Unfit}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.c.rail.promise.Timeout, TimedOut)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { d.c.raw.SetDeadline(longAgo) })
	defer stop()

	before := d.c.raw.written.Load()
	x := Exchange{mail: mailEnd{withheld: true}}
	d.say(ctx, &x, from, receivers, req.Body, sendBy)
	x.Written = d.c.raw.written.Load() - before
	x.Body = d.c.rail.masked(d.heard.kept.Bytes())
	x.mail.text = string(d.c.rail.masked([]byte(x.mail.text)))
	if x.Err == nil {
		d.leave()
	}
	return x
}

// say goes through the dialogue until the first reply that is not a yes.
func (d *dialogue) say(ctx context.Context, x *Exchange, from string, receivers []string, message []byte, sendBy time.Time) {
	ask := func(step string, say func() error) bool {
		x.mail.step = step
		if x.Err = d.mayGoOn(ctx, sendBy); x.Err != nil {
			return false
		}
		return d.note(ctx, x, say())
	}
	if !ask(mailFrom, func() error { return d.client.Mail(from) }) {
		return
	}
	for i, receiver := range receivers {
		if !ask(fmt.Sprintf("%s, recipient %d of %d", rcptTo, i+1, len(receivers)), func() error { return d.client.Rcpt(receiver) }) {
			return // one is refused: nobody gets it
		}
	}
	var data *smtp.DataCloser
	if !ask("DATA", func() error {
		w, err := d.client.Data()
		data, _ = w.(*smtp.DataCloser)
		return err
	}) {
		return
	}
	x.mail.step, x.Status, x.Whole = "the message", 0, false
	if _, err := data.WriteCloser.Write(message); err != nil {
		x.Err = faultOf(ctx, err)
		return
	}
	// The buffer is emptied first: what is written next is the dot and no more.
	if err := d.client.Text.W.Flush(); err != nil {
		x.Err = faultOf(ctx, err)
		return
	}
	x.mail.step = "the final dot"
	if x.Err = d.mayGoOn(ctx, sendBy); x.Err != nil {
		return
	}
	before := d.c.raw.written.Load()
	err := data.WriteCloser.Close()
	if x.mail.withheld = d.c.raw.written.Load() == before; err != nil {
		x.Err = faultOf(ctx, err)
		return
	}
	_, text, err := d.client.Text.ReadResponse(250)
	x.mail.text = text
	d.note(ctx, x, err)
}

// mayGoOn is asked before anything is said.
func (d *dialogue) mayGoOn(ctx context.Context, sendBy time.Time) error {
	// A reply to what was not said yet would be taken for the answer to it.
	if d.client.Text.R.Buffered() > 0 || d.heard.from.Buffered() > 0 {
		return Garbled
	}
	return d.c.due(ctx, sendBy)
}

// note takes down the reply to one step; true: go on.
func (d *dialogue) note(ctx context.Context, x *Exchange, err error) bool {
	var reply *textproto.Error
	var garbled textproto.ProtocolError
	isReply := errors.As(err, &reply)
	x.Status, x.Whole = 0, false
	switch {
	case err != nil && !isReply && errors.As(err, &garbled):
		x.Err = Garbled
		if d.heard.ended {
			x.Err = Cut
		}
	case err != nil && !isReply:
		x.Err = faultOf(ctx, err)
	case d.client.Text.R.Buffered() == 0 && !bytes.HasSuffix(d.heard.kept.Bytes(), []byte("\n")):
		x.Err = Cut // in the middle of its last line
	case err == nil:
		x.Status, x.Whole = 250, true
		return true
	case reply.Code < 400 || reply.Code > 599:
		x.Err = Garbled
	default:
		x.Status, x.Whole, x.mail.text = reply.Code, true, reply.Msg
	}
	return false
}

// leave is polite and waits for nothing: the connection is closed whatever the
// server thinks of it.
func (d *dialogue) leave() {
	d.c.raw.SetWriteDeadline(time.Now().Add(time.Second))
	if d.client.Text.PrintfLine("QUIT") == nil {
		d.client.Text.W.Flush()
	}
}

// envelope reads a request that may have been stored for a while.
func (r *Rail) envelope(req ledger.Request) (from string, receivers []string, err error) {
	switch {
	case req.Method != methodMail || req.URL != r.origin:
		return "", nil, fmt.Errorf("was rendered for another address than %s", r.origin)
	case req.SHA256 == "" || req.SHA256 != req.HashRequest():
		return "", nil, errors.New("does not have the hash it was stored with")
	case len(req.Header) < 2 || req.Header[0][0] != mailFrom:
		return "", nil, errors.New("has no sender or no recipient")
	}
	for i, h := range req.Header {
		a, err := parseMailbox(h[1])
		if err != nil || h[1] != "<"+a.Address+">" || i > 0 && h[0] != rcptTo {
			return "", nil, errors.New("holds an envelope that cannot be said")
		}
		if i > 0 {
			receivers = append(receivers, h[1])
		}
	}
	return req.Header[0][1], receivers, checkMessage(req.Body)
}

// recorder keeps what is read through it.
type recorder struct {
	from  *bufio.Reader
	kept  bytes.Buffer
	ended bool
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.kept.Write(p[:n]) // no more than dialogueLimit in all
	r.ended = r.ended || err != nil
	return n, err
}

// bounded is a connection on which the other side may say so much.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, TooLong
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

package rail

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"
)

// mailFault is what goes wrong on the next connections to the mail server. The
// steps are greeting, EHLO, MAIL, RCPT, DATA, text (the message without its dot)
// and dot.
type mailFault struct {
	Step string
	Kind string // reply · cut (before the step is acted on) · lose (after) · silence · garbage · die (after) · extra · cut_in · cut_out
	Code int    // of reply
	At   int    // of cut_in and cut_out: after so many bytes from, or to, the client
	RST  bool
	Rcpt string // of RCPT: only for this recipient
}

// mailServer is the child's side: go-smtp, with a book of what it took, and a
// socket on which each step can go wrong.
type mailServer struct {
	mu    sync.Mutex
	fault mailFault
	book  string
}

func (s *mailServer) armed() mailFault { s.mu.Lock(); defer s.mu.Unlock(); return s.fault }

// bookEntry is one message that the server said yes to, or was about to.
type bookEntry struct {
	From string
	To   []string
	Text string
	User string
}

// serveMail is the child process. It listens, says where, and takes a fault a
// line on its standard input until that ends.
func serveMail() int {
	s := &mailServer{book: os.Getenv("MAIL_BOOK")}
	server := gosmtp.NewServer(s)
	server.Domain, server.AllowInsecureAuth, server.MaxRecipients = "mail.test", true, 100
	server.ErrorLog = quiet{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	address := l.Addr()
	var listener net.Listener = l
	if mode := os.Getenv("MAIL_TLS"); mode != "" {
		pair, err := tls.LoadX509KeyPair(os.Getenv("MAIL_CERT"), os.Getenv("MAIL_KEY"))
		if err != nil {
			return 1
		}
		config := &tls.Config{Certificates: []tls.Certificate{pair}}
		if mode == "starttls" {
			server.TLSConfig = config
		} else {
			listener = tls.NewListener(l, config)
		}
	}
	go server.Serve(&faultyListener{listener, s})
	fmt.Println(address)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var f mailFault
		if json.Unmarshal(lines.Bytes(), &f) != nil {
			return 1
		}
		s.mu.Lock()
		s.fault = f
		s.mu.Unlock()
		fmt.Println("armed")
	}
	return 0
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

func (s *mailServer) NewSession(*gosmtp.Conn) (gosmtp.Session, error) {
	return &mailSession{server: s}, nil
}

type mailSession struct {
	server *mailServer
	entry  bookEntry
}

func (m *mailSession) answer(step, rcpt string) error {
	f := m.server.armed()
	if f.Step != step || f.Kind != "reply" || f.Rcpt != "" && f.Rcpt != rcpt || f.Code == 421 {
		return nil
	}
	return &gosmtp.SMTPError{Code: f.Code, EnhancedCode: gosmtp.EnhancedCode{f.Code / 100, 1, 1}, Message: "as you like it"}
}

func (m *mailSession) Mail(from string, _ *gosmtp.MailOptions) error {
	m.entry.From = from
	return m.answer("MAIL", "")
}

func (m *mailSession) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	m.entry.To = append(m.entry.To, to)
	return m.answer("RCPT", to)
}

func (m *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := m.answer("dot", ""); err != nil {
		return err
	}
	m.entry.Text = string(text)
	line, _ := json.Marshal(m.entry)
	book, err := os.OpenFile(m.server.book, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer book.Close()
	_, err = book.Write(append(line, '\n'))
	return err
}

func (m *mailSession) Reset()        { m.entry = bookEntry{User: m.entry.User} }
func (m *mailSession) Logout() error { return nil }

func (m *mailSession) AuthMechanisms() []string {
	if only := os.Getenv("MAIL_AUTH"); only != "" {
		return []string{only}
	}
	return []string{"PLAIN"}
}

func (m *mailSession) Auth(mechanism string) (sasl.Server, error) {
	check := func(user, password string) error {
		if user != "holdfast" || password != mailPassword {
			// As careless servers do.
			return &gosmtp.SMTPError{Code: 535, EnhancedCode: gosmtp.EnhancedCode{5, 7, 8}, Message: "wrong password " + password}
		}
		m.entry.User = user
		return nil
	}
	if mechanism == "LOGIN" {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
}

// loginServer speaks AUTH LOGIN, which go-sasl knows only as a client.
type loginServer struct {
	check func(user, password string) error
	heard []string
}

func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	if response == nil {
		return []byte("Username:"), false, nil
	}
	if l.heard = append(l.heard, string(response)); len(l.heard) == 1 {
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.heard[0], l.heard[1])
}

const mailPassword = "pw_canary_91c5d2"

type faultyListener struct {
	net.Listener
	server *mailServer
}

func (l *faultyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &faultyConn{Conn: c, fault: l.server.armed(), step: "greeting", lines: bufio.NewReader(c)}, nil
}

// faultyConn gives the server one line at a time, so that it knows at which step
// the dialogue is.
type faultyConn struct {
	net.Conn
	fault   mailFault
	step    string
	inText  bool
	opaque  bool // TLS from here on
	told    bool // the one reply of the fault
	lines   *bufio.Reader
	pending []byte
	in, out int
	mu      sync.Mutex
}

func (c *faultyConn) hangUp() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok && c.fault.RST {
		tcp.SetLinger(0)
	}
	c.Conn.Close()
	return io.EOF
}

func (c *faultyConn) Read(p []byte) (int, error) {
	if c.opaque && len(c.pending) == 0 {
		return c.lines.Read(p)
	}
	if len(c.pending) == 0 {
		line, err := c.line()
		if err != nil {
			return 0, err
		}
		c.pending = line
	}
	n := copy(p, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

func (c *faultyConn) line() ([]byte, error) {
	var line []byte
	for !bytes.HasSuffix(line, []byte("\n")) {
		if c.fault.Kind == "cut_in" && c.in == c.fault.At {
			return nil, c.hangUp()
		}
		b, err := c.lines.ReadByte()
		if err != nil {
			return nil, err
		}
		c.in++
		line = append(line, b)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(string(line))), " ")
	switch {
	case c.inText && string(line) == ".\r\n":
		c.step, c.inText = "dot", false
	case c.inText:
		c.step = "text"
	default:
		c.step, c.opaque = verb, verb == "STARTTLS"
	}
	if c.step == c.fault.Step && c.fault.Kind == "cut" {
		return nil, c.hangUp()
	}
	return line, nil
}

func (c *faultyConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.step == "DATA" && bytes.HasPrefix(p, []byte("354")) {
		c.inText = true
	}
	f := c.fault
	if f.Kind == "cut_out" && c.out+len(p) > f.At {
		c.Conn.Write(p[:f.At-c.out])
		return 0, c.hangUp()
	}
	c.out += len(p)
	if c.step != f.Step {
		return c.Conn.Write(p)
	}
	switch f.Kind {
	case "lose":
		return 0, c.hangUp()
	case "die":
		os.Exit(3)
	case "silence":
		return len(p), nil
	case "garbage":
		c.Conn.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		return len(p), nil
	case "extra":
		c.Conn.Write(append(bytes.Clone(p), "250 2.0.0 and so on\r\n"...))
		return len(p), nil
	case "reply":
		if f.Step == "greeting" || f.Step == "EHLO" || f.Step == "DATA" || f.Code == 421 {
			if c.told { // whatever the server would have said in several lines
				return len(p), nil
			}
			c.told = true
			fmt.Fprintf(c.Conn, "%d %d.1.1 as you like it\r\n", f.Code, f.Code/100)
			return len(p), nil
		}
	}
	return c.Conn.Write(p)
}

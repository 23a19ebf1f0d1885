package rail

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"

	"holdfast/store/ledger"
)

const (
	methodMail    = "MAIL" // in a stored request, where HTTP has POST
	mailFrom      = "MAIL FROM"
	rcptTo        = "RCPT TO"
	stampHeader   = "X-Holdfast-Operation"
	mostReceivers = 100 // what every server must take, RFC 5321 4.5.3.1.8
	longestLine   = 998 // of a message, RFC 5322 2.1.1
)

// letterMembers are the members of a payload that make a message; reference
// names what it is about, and stays here.
var letterMembers = []string{"to", "cc", "bcc", "reply_to", "subject", "body"}

const unsentMember = "reference"

// letter is an e-mail as the payload describes it.
type letter struct {
	to, cc, bcc   []*mail.Address
	replyTo       *mail.Address // nil: none
	subject, body string
}

func (m overSMTP) render(r *Rail, o ledger.Operation) (ledger.Request, error) {
	req, err := m.write(r, o)
	if err != nil {
		return ledger.Request{}, fmt.Errorf("rails.%s: %s cannot be rendered: %w", r.name, o.OperationID, err)
	}
	return req, nil
}

// write makes the envelope and the message. Nothing in it depends on when or
// how often it is written: the date is the operation's, and there is one part,
// so that no boundary has to be invented.
func (m overSMTP) write(r *Rail, o ledger.Operation) (req ledger.Request, err error) {
	if o.CreatedAt == 0 || o.ProviderKey == "" || o.OrderID == "" {
		return req, errors.New("it lacks its date, its key or its order id")
	}
	l, err := m.readLetter(o.Payload)
	if err != nil {
		return req, err
	}
	if req.Body, err = m.compose(l, o); err != nil {
		return req, err
	}
	if err := l.sameAs(req.Body); err != nil {
		return req, err
	}
	req.Method, req.URL = methodMail, r.origin
	req.Header = [][2]string{{mailFrom, "<" + m.from.Address + ">"}}
	for _, a := range l.receivers() {
		req.Header = append(req.Header, [2]string{rcptTo, "<" + a.Address + ">"})
	}
	req.SHA256 = req.HashRequest()
	req.Display, err = m.display(req)
	return req, err
}

// readLetter takes a payload apart. A member that has no place in the message
// is refused: a person who approved it would think that it was sent.
func (m overSMTP) readLetter(payload []byte) (l letter, err error) {
	v, err := ledger.ParseStrict(payload)
	if err != nil {
		return l, fmt.Errorf("the stored payload: %w", err)
	}
	members, ok := v.(map[string]any)
	if !ok {
		return l, errors.New("the payload is not an object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name != unsentMember && !slices.Contains(letterMembers, name) && !slices.Contains(m.leaveOut, name) {
			return l, fmt.Errorf("the payload's %s has no place in an e-mail, which is made of %s; name it in mail.leave_out if it is not meant to be sent",
				name, strings.Join(letterMembers, ", "))
		}
	}
	for _, field := range []struct {
		name string
		at   *[]*mail.Address
	}{{"to", &l.to}, {"cc", &l.cc}, {"bcc", &l.bcc}} {
		if *field.at, err = readMailboxes(members[field.name]); err != nil {
			return l, fmt.Errorf("the payload's %s %w", field.name, err)
		}
	}
	if _, given := members["reply_to"]; given {
		text, _ := members["reply_to"].(string)
		if l.replyTo, err = parseMailbox(text); err != nil {
			return l, fmt.Errorf("the payload's reply_to %w", err)
		}
	}
	var isText bool
	if l.subject, isText = members["subject"].(string); !isText || strings.TrimSpace(l.subject) == "" {
		return l, errors.New("the payload has no subject")
	}
	if !oneLine(l.subject) {
		return l, errors.New("the payload's subject holds a line break or a control character")
	}
	if l.body, isText = members["body"].(string); !isText || l.body == "" {
		return l, errors.New("the payload has no body")
	}
	l.body = unixLines(l.body)
	if strings.ContainsFunc(l.body, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }) {
		return l, errors.New("the payload's body holds a control character")
	}
	return l, l.checkReceivers()
}

func (l letter) checkReceivers() error {
	all := l.receivers()
	switch {
	case len(l.to) == 0:
		return errors.New("the payload names nobody in to")
	case len(all) > mostReceivers:
		return fmt.Errorf("the payload names %d recipients; one message has at most %d", len(all), mostReceivers)
	}
	seen := map[string]bool{}
	for _, a := range all {
		if lower := strings.ToLower(a.Address); seen[lower] {
			return fmt.Errorf("the payload names %s twice, who would get the message twice", a.Address)
		} else {
			seen[lower] = true
		}
	}
	return nil
}

func (l letter) receivers() []*mail.Address { return slices.Concat(l.to, l.cc, l.bcc) }

// compose writes the message with go-mail, ASCII throughout.
func (m overSMTP) compose(l letter, o ledger.Operation) ([]byte, error) {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent(), gomail.WithEncoding(gomail.EncodingQP), gomail.WithCharset(gomail.CharsetUTF8))
	msg.SetDateWithValue(time.UnixMilli(o.CreatedAt).UTC())
	msg.SetMessageIDWithValue(m.messageID(o))
	msg.SetGenHeader(stampHeader, o.OrderID)
	msg.SetGenHeader(gomail.HeaderSubject, plainOrCoded(l.subject))
	msg.FromMailAddress(m.from)
	msg.ToMailAddress(l.to...)
	if len(l.cc) > 0 {
		msg.CcMailAddress(l.cc...)
	}
	if l.replyTo != nil {
		msg.ReplyToMailAddress(l.replyTo)
	}
	msg.SetBodyString(gomail.TypeTextPlain, l.body)
	var b bytes.Buffer
	if _, err := msg.WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// messageID is the same for every attempt of one operation, so that a message
// which a person sends once more is recognised by whoever holds the first.
func (m overSMTP) messageID(o ledger.Operation) string { return o.ProviderKey + "@" + m.domain }

// sameAs reads the written message back as its recipient would. What was
// approved is what they read, or nothing is sent.
func (l letter) sameAs(message []byte) error {
	if err := checkMessage(message); err != nil {
		return err
	}
	got, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return errors.New("the message cannot be read back")
	}
	var words mime.WordDecoder
	subject, _ := words.DecodeHeader(got.Header.Get("Subject"))
	body, _ := io.ReadAll(quotedprintable.NewReader(got.Body))
	switch {
	case subject != l.subject:
		return errors.New("the payload's subject cannot be written without changing it")
	case unixLines(string(body)) != l.body:
		return errors.New("the payload's body cannot be written without changing it")
	case !sameAddresses(got.Header, "To", l.to) || !sameAddresses(got.Header, "Cc", l.cc):
		return errors.New("the payload's recipients cannot be written without changing them")
	}
	return nil
}

func sameAddresses(h mail.Header, field string, want []*mail.Address) bool {
	got, _ := h.AddressList(field)
	return slices.EqualFunc(got, want, func(a, b *mail.Address) bool { return *a == *b })
}

// checkMessage trusts nothing about bytes that go out as lines of a protocol.
func checkMessage(message []byte) error {
	if !bytes.HasSuffix(message, []byte("\r\n")) || bytes.ContainsFunc(message, func(c rune) bool {
		return c >= 0x7f || c < ' ' && c != '\r' && c != '\n' && c != '\t'
	}) {
		return errors.New("the message holds something else than lines of ASCII")
	}
	for line := range bytes.SplitSeq(bytes.TrimSuffix(message, []byte("\r\n")), []byte("\r\n")) {
		if len(line) > longestLine || bytes.ContainsAny(line, "\r\n") {
			return errors.New("the message holds a line that is broken or too long")
		}
	}
	return nil
}

// display is the envelope and the message with their encodings undone, read
// from the bytes that go out.
func (m overSMTP) display(req ledger.Request) (string, error) {
	var b strings.Builder
	fmt.Fprintln(&b, req.URL)
	if m.login != nil {
		fmt.Fprintf(&b, "AUTH %s\n", dots)
	}
	for _, h := range req.Header {
		fmt.Fprintf(&b, "%s:%s\n", h[0], h[1])
	}
	head, text, _ := bytes.Cut(req.Body, []byte("\r\n\r\n"))
	var words mime.WordDecoder
	for line := range strings.SplitSeq(strings.ReplaceAll(string(head), "\r\n ", " "), "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		value, err := words.DecodeHeader(strings.TrimSpace(value))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s: %s\n", name, value)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(text)))
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\n%s", unixLines(string(body)))
	return b.String(), nil
}

// plainOrCoded writes a header's text as it is where that comes out the same
// after folding, and else as encoded words of RFC 2047.
func plainOrCoded(text string) string {
	plain := !strings.Contains(text, "=?") && strings.Join(strings.Fields(text), " ") == text &&
		!strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c >= 0x7f }) &&
		!slices.ContainsFunc(strings.Fields(text), func(word string) bool { return len(word) > longestWord })
	if plain {
		return text
	}
	var words []string
	for rest := text; rest != ""; {
		n := min(len(rest), longestWord*3/4)
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n--
		}
		words = append(words, "=?UTF-8?B?"+base64.StdEncoding.EncodeToString([]byte(rest[:n]))+"?=")
		rest = rest[n:]
	}
	return strings.Join(words, " ")
}

const longestWord = 60 // of an encoded word's 75

// unixLines ends every line, also the last, with one line feed.
func unixLines(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// readMailboxes reads one address or a list of them.
func readMailboxes(v any) ([]*mail.Address, error) {
	list := []any{v}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		list = v
	}
	var all []*mail.Address
	for _, item := range list {
		text, isText := item.(string)
		if !isText {
			return nil, errors.New("is not an address or a list of addresses")
		}
		a, err := parseMailbox(text)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// localPart is what stands before the @, in the form that needs no quotes.
var localPart = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$")

// parseMailbox reads an address, or Name <address>. The error names no address:
// it may be sensitive.
func parseMailbox(text string) (*mail.Address, error) {
	if !oneLine(text) {
		return nil, errors.New("holds a line break or a control character")
	}
	a, err := mail.ParseAddress(text)
	if err != nil {
		return nil, errors.New("is not an e-mail address")
	}
	local, domain := strings.TrimSuffix(a.Address, "@"+domainOf(a.Address)), domainOf(a.Address)
	switch {
	case strings.ContainsFunc(a.Address, func(c rune) bool { return c >= 0x7f }):
		return nil, errors.New("has an address with letters that are not ASCII; write its domain in the xn-- form")
	case !localPart.MatchString(local) || len(local) > 64 || len(a.Address) > 254 || !isHostname(domain):
		return nil, errors.New("is not an e-mail address that every mail server understands")
	case !oneLine(a.Name):
		return nil, errors.New("holds a line break or a control character")
	}
	return a, nil
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

var hostname = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

func isHostname(s string) bool { return len(s) <= 253 && hostname.MatchString(s) }

// oneLine reports whether a text is one line however it is read.
func oneLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool {
		return unicode.IsControl(c) || c == '\u2028' || c == '\u2029'
	})
}

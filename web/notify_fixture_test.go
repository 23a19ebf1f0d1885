package web

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"holdfast/store/ledger"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// notifyRules ask for everything in US dollars, and keep one action type's
// recipient from view.
const notifyRules = `
rails:
  card: { adapter: http, base_url: "http://127.0.0.1:1", send: { path: /payments }, answers: [ { status: [201], means: confirmed } ],
    receipt: { id: /id, amount: /amount }, stamp: { header: X-Operation }, lookup: { path: "/payments?reference={order_id}", items: /data }, breaker: { failures: 1, open_for: 10m } }
action_types:
  pay: { rail: card, effect: charge, schema: SCHEMA }
  hush: { rail: card, effect: hush, schema: HUSH }
policy:
  - { name: short, when: { currency: GBP }, then: ask, expires: 2h }
  - { name: dollars, when: { currency: USD }, then: ask, expires: 72h }
  - { name: the rest, when: {}, then: allow }
`

// received is what one receiver got: Slack, ntfy and the webhook have a path each.
type received struct {
	path   string
	header http.Header
	body   []byte
}

func (h received) member(t testing.TB, name string) string {
	t.Helper()
	var all map[string]any
	must(t, json.Unmarshal(h.body, &all))
	return fmt.Sprint(all[name])
}

// channelWorld has the receivers of notices: a server for hooks and one for mail, both
// over real sockets.
type channelWorld struct {
	*world
	hooks *httptest.Server
	mail  *postbox

	mu    sync.Mutex
	got   []received
	reply func(received) int
}

// tell starts a world that tells people over all four kinds of channels, or over
// those of its name.
func tell(t testing.TB, more string, kinds ...string) *channelWorld {
	t.Helper()
	o := &channelWorld{reply: func(received) int { return http.StatusOK }}
	o.hooks = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h := received{r.URL.Path, r.Header, body}
		o.mu.Lock()
		o.got = append(o.got, h)
		reply := o.reply
		o.mu.Unlock()
		status := reply(h)
		if status >= 300 && status < 400 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(o.hooks.Close)
	o.mail = startPostbox(t)
	if kinds == nil {
		kinds = []string{"slack", "ntfy", "webhook", "smtp"}
	}
	lines := map[string]string{
		"slack":   `{ kind: slack, url: "` + o.hooks.URL + `/slack/T0/B0/s3cret" }`,
		"ntfy":    `{ kind: ntfy, url: "` + o.hooks.URL + `", topic: ops, token: tk_s3cret }`,
		"webhook": `{ kind: webhook, url: "` + o.hooks.URL + `/hook?key=s3cret", secret: ` + hookSecret + ` }`,
		"smtp":    `{ kind: smtp, url: "smtp+plain://` + o.mail.address + `", from: "holdfast <pay@example.com>", to: [ana@example.com, jon@example.com] }`,
	}
	config := "notify:\n  link: https://pay.example.com\n" + more + "  channels:\n"
	for _, k := range kinds {
		config += "    - " + lines[k] + "\n"
	}
	hush := strings.Replace(pagesSchema, "recipient: { type: string,", "recipient: { type: string, x-sensitive: true,", 1)
	o.world = newServer(t, config+strings.NewReplacer("SCHEMA", pagesSchema, "HUSH", hush).Replace(notifyRules))
	o.round() // the cursor begins at the end of the log
	return o
}

// round lets the job run once.
func (o *channelWorld) round() ledger.JobRun {
	o.t.Helper()
	run, _ := o.Scheduler.Run(o.t.Context(), "notify")
	return run
}

// take gives what came to a path since it was asked last.
func (o *channelWorld) take(path string) (taken []received) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var rest []received
	for _, h := range o.got {
		if h.path == path {
			taken = append(taken, h)
		} else {
			rest = append(rest, h)
		}
	}
	o.got = rest
	return taken
}

// titles are the first lines of what came to Slack since it was asked last.
func (o *channelWorld) titles() (all []string) {
	o.t.Helper()
	for _, h := range o.take(slackPath) {
		title, _, _ := strings.Cut(h.member(o.t, "text"), "\n")
		all = append(all, title)
	}
	return all
}

const slackPath, ntfyPath, hookPath = "/slack/T0/B0/s3cret", "/", "/hook"

func (o *channelWorld) answerWith(reply func(received) int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reply = reply
}

// wantDollars asks for something that a person must approve.
func (o *channelWorld) wantDollars(amount int64) ledger.Operation {
	o.t.Helper()
	return o.ask(wanted{currency: "USD", amount: amount, owner: "owner@example.com"})
}

// paid is an operation that went through with this receipt.
func (o *channelWorld) paid(receipt string) ledger.Operation {
	o.t.Helper()
	op := o.ask(wanted{amount: 4800})
	return o.answer(op, ledger.Answer{Finding: ledger.Found, HTTPStatus: 201,
		Receipt: &ledger.Receipt{ID: receipt, Amount: &op.Terms.Amount, Currency: "EUR", Recipient: op.Terms.Recipient}})
}

func (o *channelWorld) setClock(at time.Time) { o.clock.Store(at.UnixMilli()) }

// postbox is a mail server that keeps what it gets.
type postbox struct {
	address string
	mu      sync.Mutex
	letters []letter
}

type letter struct {
	to   []string
	text string
}

func startPostbox(t testing.TB) *postbox {
	t.Helper()
	p := &postbox{}
	server := gosmtp.NewServer(p)
	server.Domain, server.ErrorLog = "mail.test", silent{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p.address = l.Addr().String()
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return p
}

type silent struct{}

func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

func (p *postbox) NewSession(*gosmtp.Conn) (gosmtp.Session, error) { return &delivery{box: p}, nil }

type delivery struct {
	box *postbox
	letter
}

func (d *delivery) Mail(string, *gosmtp.MailOptions) error { return nil }
func (d *delivery) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	d.to = append(d.to, to)
	return nil
}
func (d *delivery) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	d.text = string(text)
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	d.box.letters = append(d.box.letters, d.letter)
	return err
}
func (d *delivery) Reset()        { d.letter = letter{} }
func (d *delivery) Logout() error { return nil }

func (p *postbox) take() []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.letters
	p.letters = nil
	return taken
}

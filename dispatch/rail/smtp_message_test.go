package rail

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

const someServer = "smtps://mail.example.com"

func TestTheSameOperationIsTheSameMessage(t *testing.T) {
	o := email()
	first := mustRender(t, mustRail(t, post(someServer)), o)
	for range 20 {
		if again := mustRender(t, mustRail(t, post(someServer)), o); again.SHA256 != first.SHA256 || again.Display != first.Display {
			t.Fatalf("rendered twice, it differs:\n%s\n%s", first.Body, again.Body)
		}
	}
	rotated := post(someServer)
	rotated.Auth.Basic.Password = NewSecret("another password")
	if mustRender(t, mustRail(t, rotated), o).SHA256 != first.SHA256 {
		t.Error("rotating the password changes the message")
	}
	want := strings.ReplaceAll(`Date: Sun, 01 Mar 2026 12:00:00 +0000
MIME-Version: 1.0
Message-ID: <`+o.ProviderKey+`@example.com>
Subject: Your ticket
X-Holdfast-Operation: `+o.OrderID+`
From: "Example Billing" <billing@example.com>
To: <ana@example.org>
Content-Transfer-Encoding: quoted-printable
Content-Type: text/plain; charset=UTF-8

Dear Ana,
it is done.
.
Bye
`, "\n", "\r\n")
	if string(first.Body) != want {
		t.Errorf("message\n%s\nwant\n%s", first.Body, want)
	}
}

// A person reads what goes out, not its encoding, and no secret.
func TestPeopleSeeTheMessageDecoded(t *testing.T) {
	config := post(someServer)
	config.Mail.From = "Zoë Müller <billing@example.com>"
	req := mustRender(t, mustRail(t, config), letterWith(`{"to":"Ana Öz <ana@example.org>","subject":"Größe  geändert","body":"Grüße, 100 € = viel\n\nfrüher"}`))
	for _, want := range []string{"smtps://mail.example.com\n", "AUTH " + dots + "\n", "MAIL FROM:<billing@example.com>\n", "RCPT TO:<ana@example.org>\n",
		"Subject: Größe  geändert\n", "Zoë Müller", "Ana Öz", "\n\nGrüße, 100 € = viel\n\nfrüher\n"} {
		if !strings.Contains(req.Display, want) {
			t.Errorf("%q is not shown in\n%s", want, req.Display)
		}
	}
	if strings.Contains(req.Display, mailPassword) || bytes.ContainsFunc(req.Body, func(c rune) bool { return c > 0x7e }) {
		t.Errorf("%s", req.Body)
	}
}

func TestWhatCannotBeSentAsApprovedIsRefused(t *testing.T) {
	r := mustRail(t, post(someServer))
	for payload, want := range map[string]string{
		`{"to":"a@b.example\r\nBcc: x@y.example","subject":"S","body":"B"}`:        "to holds a line break",
		`{"to":"a@b.example","subject":"S\r\nBcc: x@y.example","body":"B"}`:        "subject holds a line break",
		`{"to":"a@b.example","subject":"S\u2028T","body":"B"}`:                     "subject holds a line break",
		`{"to":"a@b.example","subject":"S\u0000","body":"B"}`:                      "subject holds a line break or a control",
		`{"to":"a@b.example","reply_to":"x@y.example\n","subject":"S","body":"B"}`: "reply_to holds a line break",
		`{"to":"a@b.example","subject":"S","body":"B\u0000"}`:                      "body holds a control character",
		`{"to":"a@b.example","subject":"S","body":"B","attachment":"x"}`:           "attachment has no place",
		`{"to":"a@b.example","subject":"S","body":"B","html":"<b>"}`:               "html has no place",
		`{"to":"=?utf-8?q?a=0D=0ABcc?= <a@b.example>","subject":"S","body":"B"}`:   "to holds a line break",
		`{"to":["a@b.example","A@b.example"],"subject":"S","body":"B"}`:            "twice",
		`{"to":"a@b.example","cc":["a@b.example"],"subject":"S","body":"B"}`:       "twice",
		`{"to":"a@b.example, c@d.example","subject":"S","body":"B"}`:               "not an e-mail address",
		`{"to":"<a@b.example> SIZE=1","subject":"S","body":"B"}`:                   "not an e-mail address",
		`{"to":"ü@b.example","subject":"S","body":"B"}`:                            "not ASCII",
		`{"to":"\"a b\"@b.example","subject":"S","body":"B"}`:                      "every mail server",
		`{"to":"a@[127.0.0.1]","subject":"S","body":"B"}`:                          "to is not an e-mail address",
		`{"to":[],"subject":"S","body":"B"}`:                                       "names nobody",
		`{"to":[1],"subject":"S","body":"B"}`:                                      "not an address or a list",
		`{"to":{"a":1},"subject":"S","body":"B"}`:                                  "not an address or a list",
		`{"subject":"S","body":"B"}`:                                               "names nobody",
		`{"to":"a@b.example","subject":" ","body":"B"}`:                            "no subject",
		`{"to":"a@b.example","subject":"S","body":""}`:                             "no body",
		`{"to":"a@b.example","subject":"S","body":["B"]}`:                          "no body",
		`[]`: "not an object",
	} {
		if req, err := r.Render(letterWith(payload)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q\n%s", payload, err, want, req.Body)
		}
	}
	crowd := letterWith(`{"to":[` + strings.TrimSuffix(strings.Repeat(`"a@b.example",`, 101), ",") + `],"subject":"S","body":"B"}`)
	if _, err := r.Render(crowd); err == nil || !strings.Contains(err.Error(), "101 recipients") {
		t.Errorf("%v", err)
	}
	undated := email()
	undated.CreatedAt = 0
	if _, err := r.Render(undated); err == nil {
		t.Error("a message without a date is rendered")
	}
}

func TestMembersThatAreNoPartOfTheMessageAreNamed(t *testing.T) {
	config := post(someServer)
	config.Mail.LeaveOut = []string{"ticket"}
	req := mustRender(t, mustRail(t, config), letterWith(`{"to":"a@b.example","subject":"S","body":"B","ticket":"4711-internal"}`))
	if strings.Contains(string(req.Body), "4711") {
		t.Errorf("%s", req.Body)
	}
}

// Whatever a payload holds, the message has the headers that were meant and no
// line more, or there is none.
func FuzzAPayloadAddsNoHeader(f *testing.F) {
	for _, seed := range []string{"Hello", "a\r\nBcc: x", "=?utf-8?q?x?=", " a  b ", "ü", strings.Repeat("long ", 60), strings.Repeat("a", 900), "\t", "\x7f", ".\n", "\"x\" <a@b>", "😀"} {
		f.Add(seed, seed, seed)
	}
	r := mustRail(f, post(someServer))
	f.Fuzz(func(t *testing.T, name, subject, body string) {
		payload, err := ledger.Canonical(map[string]any{"to": name + " <ana@example.org>", "subject": subject, "body": body})
		if err != nil {
			return
		}
		req, err := r.Render(letterWith(string(payload)))
		if err != nil {
			return
		}
		head, _, _ := bytes.Cut(req.Body, []byte("\r\n\r\n"))
		fields := 0
		for line := range strings.SplitSeq(string(head), "\r\n") {
			if !strings.HasPrefix(line, " ") {
				fields++
			}
		}
		if fields != 9 || len(req.Header) != 2 {
			t.Fatalf("%d header fields, envelope %v\n%s", fields, req.Header, head)
		}
		if _, _, err := r.envelope(req); err != nil {
			t.Fatalf("rendered, but not sendable: %v", err)
		}
	})
}

func TestMailConfigurationErrorsNameTheirKey(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*Config)
	}{
		{"base_url: is missing; write the provider's address, such as smtps://mail.example.com", func(c *Config) { c.BaseURL = "" }},
		{"base_url: must begin with smtps:// or smtp:// or smtp+plain://", func(c *Config) { c.BaseURL = "https://x" }},
		{"base_url: has a path", func(c *Config) { c.BaseURL = "smtps://x/y" }},
		{"base_url: holds a name or password", func(c *Config) { c.BaseURL = "smtps://a:b@x" }},
		{"auth: would send the password in the clear", func(c *Config) { c.BaseURL = "smtp+plain://mail.example.com" }},
		{"auth.basic.password: is missing", func(c *Config) { c.Auth.Basic.Password = Secret{} }},
		{"auth.basic.user: is missing", func(c *Config) { c.Auth.Basic.User = Secret{} }},
		{"auth.basic.password: holds a control character", func(c *Config) { c.Auth.Basic.Password = NewSecret("a\r\nRSET") }},
		{"mail.from: is missing", func(c *Config) { c.Mail.From = "" }},
		{"mail.from: is not an e-mail address", func(c *Config) { c.Mail.From = "Billing" }},
		{"mail.from: holds a line break", func(c *Config) { c.Mail.From = "a@b.example\nX: y" }},
		{`mail.domain: "exa mple" is not the name of a domain`, func(c *Config) { c.Mail.Domain = "exa mple" }},
		{"mail.leave_out: subject is part of the message", func(c *Config) { c.Mail.LeaveOut = []string{"subject"} }},
		{"headers: is not for adapter smtp", func(c *Config) { c.Headers = map[string]Secret{} }},
		{"dedupe: is not for adapter smtp", func(c *Config) { c.Dedupe = Dedupe{By: "key", Header: "Message-ID"} }},
		{"send: is not for adapter smtp", func(c *Config) { c.Send.Path = "/x" }},
		{"stamp: is not for adapter smtp", func(c *Config) { c.Stamp.Header = "X" }},
		{"answers: is not for adapter smtp", func(c *Config) { c.Answers = []AnswerRow{} }},
		{"receipt: is not for adapter smtp", func(c *Config) { c.Receipt.ID = "/id" }},
		{"lookup: is not for adapter smtp", func(c *Config) { c.Lookup.Path = "/x" }},
		{"limits.concurrency: 0 is less than 1", func(c *Config) { c.Limits.Concurrency = new(int) }},
		{"timeout: cannot be never", func(c *Config) { c.Timeout = Never() }},
	} {
		_, err := New("post", with(post(someServer), c.change), time.Now)
		if err == nil || !strings.Contains(err.Error(), "rails.post."+c.want) || strings.Contains(err.Error(), mailPassword) {
			t.Errorf("want %q\n got %v", c.want, err)
		}
	}
	r := mustRail(t, post(someServer))
	if _, err := r.For("email", Override{}); err != nil {
		t.Errorf("an action type needs nothing of its own: %v", err)
	}
	if _, err := r.For("email", Override{Send: &Send{Path: "/x"}}); err == nil || !strings.Contains(err.Error(), "rails.card.send: is not for adapter smtp") {
		t.Errorf("%v", err)
	}
	loopback := post("smtp+plain://127.0.0.1")
	mustRail(t, loopback)
}

func TestMailPromisesNoDeduplicationAndNoLookup(t *testing.T) {
	r := mustRail(t, post(someServer))
	p := r.Promise()
	if p.Dedupe != (ledger.Dedupe{By: ledger.DedupeNone}) || p.Lookup != (ledger.LookupPromise{}) || p.Address != someServer || p.Compared != (ledger.ReceiptFields{}) {
		t.Errorf("%+v", p)
	}
	if ok, reason, _ := p.Resend(ledger.Operation{Attempts: 1, RailAddress: someServer, RailAccount: "live", FirstMarkAt: 1}, false, 2); ok || reason != ledger.Inconclusive {
		t.Errorf("an unknown message is sent again: %v", reason)
	}
	if look := r.Lookup(t.Context(), email()); look.Finding != ledger.LookInconclusive {
		t.Errorf("%+v", look)
	}
}

// What a server repeats of the password is in no answer and no evidence.
func TestARepeatedPasswordIsMasked(t *testing.T) {
	r := mustRail(t, post(someServer))
	for _, h := range r.adapter.(overSMTP).login.shapes() {
		if got := string(r.masked([]byte("535 you said " + h.value.reveal() + "!"))); got != "535 you said "+dots+"!" {
			t.Errorf("%q", got)
		}
	}
	if text, _ := json.Marshal(r.config.Auth); strings.Contains(string(text), mailPassword) {
		t.Error("the configuration prints the password")
	}
}

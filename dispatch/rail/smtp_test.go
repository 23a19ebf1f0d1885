package rail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

func TestAMessageIsTakenOnceAndConfirmed(t *testing.T) {
	b := startMailServer(t)
	r := mustRail(t, post("smtp+plain://"+b.address))
	o := email()
	a, x, _ := mailOnce(t, r, o)
	id := "<" + o.ProviderKey + "@example.com>"
	if a.Finding != ledger.Found || a.Receipt == nil || a.Receipt.ID != id || !strings.HasPrefix(string(a.Receipt.Raw), "250 2.0.0") {
		t.Fatalf("answer %+v, receipt %+v, exchange %+v", a, a.Receipt, x)
	}
	if differ := ledger.Compare(o, *a.Receipt, r.Promise().Compared); differ != nil {
		t.Errorf("the receipt differs in %v", differ)
	}
	got := b.holds()
	if len(got) != 1 || got[0].From != "billing@example.com" || fmt.Sprint(got[0].To) != "[ana@example.org]" || got[0].User != "holdfast" {
		t.Fatalf("the book holds %+v", got)
	}
	if got[0].Text != string(mustRender(t, r, o).Body) {
		t.Errorf("arrived\n%s\nrendered\n%s", got[0].Text, mustRender(t, r, o).Body)
	}
	if !strings.Contains(string(x.Body), "250 2.0.0") {
		t.Errorf("evidence %q", x.Body)
	}
}

// Every step, and what may go wrong at it. Before the final dot nothing can have
// been delivered; after it only a reply is proof.
func TestEveryStepMayFailInEveryWay(t *testing.T) {
	const unconnected ledger.Finding = "" // no attempt was made
	b := startMailServer(t)
	type cell struct {
		step, kind string
		code       int
		want       ledger.Finding
		held       int
	}
	var cells []cell
	for _, step := range []string{"greeting", "EHLO"} {
		for _, kind := range []string{"lose", "silence", "garbage"} {
			cells = append(cells, cell{step, kind, 0, unconnected, 0})
		}
	}
	for _, step := range []string{"MAIL", "RCPT", "DATA"} {
		for _, kind := range []string{"cut", "lose", "silence", "garbage", "extra"} {
			cells = append(cells, cell{step, kind, 0, ledger.NotSent, 0})
		}
		cells = append(cells, cell{step, "reply", 451, ledger.NotSent, 0}, cell{step, "reply", 421, ledger.NotSent, 0}, cell{step, "reply", 550, ledger.Refused, 0})
	}
	cells = append(cells,
		cell{"greeting", "reply", 421, unconnected, 0},
		cell{"greeting", "reply", 554, unconnected, 0},
		cell{"EHLO", "reply", 502, ledger.Found, 1}, // an old server is greeted with HELO
		cell{"dot", "reply", 451, ledger.NotSent, 0},
		cell{"dot", "reply", 550, ledger.Refused, 0},
		cell{"dot", "reply", 421, ledger.Unclear, 1}, // it took it and went away
		cell{"dot", "cut", 0, ledger.Unclear, 0},
		cell{"dot", "lose", 0, ledger.Unclear, 1},
		cell{"dot", "silence", 0, ledger.Unclear, 1},
		cell{"dot", "garbage", 0, ledger.Unclear, 1},
		cell{"dot", "extra", 0, ledger.Found, 1},
		cell{"text", "cut", 0, ledger.Unclear, 0}, // small messages leave whole before the cut is seen
	)
	for _, c := range cells {
		name := fmt.Sprintf("%s %s %d", c.step, c.kind, c.code)
		b.empty()
		b.arm(mailFault{Step: c.step, Kind: c.kind, Code: c.code})
		config := plain(b.address)
		if c.kind == "silence" {
			config.Timeout = Lasting(200 * time.Millisecond)
		}
		a, x, connected := mailOnce(t, mustRail(t, config), email())
		switch {
		case c.step == "text" && a.Finding == ledger.NotSent && x.mail.withheld:
		case connected == (c.want == unconnected) || a.Finding != c.want:
			t.Errorf("%s: %s, connected %v; want %q (%s)", name, a.Finding, connected, c.want, a.Sentence)
		}
		if held := len(b.holds()); held != c.held {
			t.Errorf("%s: the book holds %d messages, not %d", name, held, c.held)
		}
	}
}

func TestAServerThatTakesTheMessageAndDiesLeavesUnknown(t *testing.T) {
	b := startMailServer(t)
	b.arm(mailFault{Step: "dot", Kind: "die"})
	a, _, _ := mailOnce(t, mustRail(t, plain(b.address)), email())
	if a.Finding != ledger.Unclear || len(b.holds()) != 1 {
		t.Errorf("%+v, book %d", a, len(b.holds()))
	}
}

// The connection is cut after every byte, in both directions, politely and with
// a reset. What is said to be unsent is not in the book; what is in the book is
// confirmed or unknown; nothing is in it twice.
func TestADialogueCutAtEveryByteIsNeverTakenForUnsentWrongly(t *testing.T) {
	b := startMailServer(t)
	r := mustRail(t, plain(b.address))
	counts := map[ledger.Finding]int{}
	for _, kind := range []string{"cut_in", "cut_out"} {
		for at, uncut := 0, false; !uncut; at++ {
			b.arm(mailFault{Kind: kind, At: at, RST: at%2 == 1})
			b.empty()
			a, x, connected := mailOnce(t, r, email())
			held := len(b.holds())
			switch {
			case held > 1:
				t.Fatalf("%s %d: %d messages", kind, at, held)
			case held == 1 && (!connected || a.Finding != ledger.Found && a.Finding != ledger.Unclear):
				t.Fatalf("%s %d: %+v, and the book holds it (%+v)", kind, at, a, x)
			case a.Finding == ledger.Found && !strings.HasSuffix(string(x.Body), "\n"):
				t.Fatalf("%s %d: confirmed by half a line, %q", kind, at, x.Body)
			case a.Finding == ledger.Found && held != 1:
				t.Fatalf("%s %d: confirmed, and the book holds nothing", kind, at)
			case a.Finding == ledger.Refused || a.Finding == ledger.Pending:
				t.Fatalf("%s %d: %+v", kind, at, a)
			}
			counts[a.Finding]++
			uncut = at > 200 && a.Finding == ledger.Found
			if at > 5000 {
				t.Fatal("the dialogue has no end")
			}
		}
	}
	if counts[""] < 20 || counts[ledger.NotSent] < 20 || counts[ledger.Unclear] < 20 || counts[ledger.Found] < 2 {
		t.Errorf("not every kind of end was seen: %v", counts)
	}
}

func TestOneRefusedRecipientMeansNobodyGetsIt(t *testing.T) {
	b := startMailServer(t)
	o := letterWith(`{"to":["ana@example.org","jon@example.org"],"cc":"mia@example.org","bcc":["kai@example.org"],"subject":"S","body":"B"}`)
	r := mustRail(t, plain(b.address))
	for code, want := range map[int]ledger.Finding{550: ledger.Refused, 450: ledger.NotSent} {
		for _, who := range []string{"ana", "jon", "mia", "kai"} {
			b.arm(mailFault{Step: "RCPT", Kind: "reply", Code: code, Rcpt: who + "@example.org"})
			a, _, _ := mailOnce(t, r, o)
			if a.Finding != want || len(b.holds()) != 0 || strings.Contains(a.Sentence, who) {
				t.Errorf("%s refused with %d: %+v, book %d", who, code, a, len(b.holds()))
			}
		}
	}
	b.arm(mailFault{})
	mailOnce(t, r, o)
	got := b.holds()
	if len(got) != 1 || fmt.Sprint(got[0].To) != "[ana@example.org jon@example.org mia@example.org kai@example.org]" || strings.Contains(got[0].Text, "kai") {
		t.Errorf("%+v", got)
	}
}

func TestTLSAndPasswordComeBeforeAnythingIsMarked(t *testing.T) {
	cert, pool := certificate(t)
	direct := startMailServer(t, append(cert, "MAIL_TLS=direct")...)
	upgraded := startMailServer(t, append(cert, "MAIL_TLS=starttls", "MAIL_AUTH=LOGIN")...)
	stripped := startMailServer(t)
	wrong := func(c *Config) { c.Auth.Basic.Password = NewSecret("pw_wrong_77aa88bb") }
	for _, c := range []struct {
		name   string
		base   string
		change func(*Config)
		trust  bool
		want   string // empty: sent
		box    *mailbox
	}{
		{"TLS from the first byte", "smtps://", nil, true, "", direct},
		{"STARTTLS, AUTH LOGIN", "smtp://", nil, true, "", upgraded},
		{"STARTTLS stripped", "smtp://", nil, true, "it offers no STARTTLS", stripped},
		{"untrusted", "smtps://", nil, false, "TLS did not succeed", direct},
		{"untrusted after STARTTLS", "smtp://", nil, false, "TLS did not succeed", upgraded},
		{"no TLS at all", "smtps://", nil, true, "TLS did not succeed", stripped},
		{"wrong password", "smtps://", wrong, true, "it answered AUTH with 535 5.7.8", direct},
		{"wrong password, LOGIN", "smtp://", wrong, true, "it answered AUTH with 535 5.7.8", upgraded},
	} {
		c.box.empty()
		config := post(c.base + c.box.address)
		if c.change != nil {
			c.change(&config)
		}
		r := mustRail(t, config)
		if c.trust {
			r.roots = pool
		}
		conn, err := r.Connect(t.Context())
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "pw_") {
				t.Errorf("%s: %v", c.name, err)
			}
			if len(c.box.holds()) != 0 {
				t.Errorf("%s: something was sent", c.name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		x := conn.Send(t.Context(), mustRender(t, r, email()), time.Now().Add(time.Minute))
		if a := r.Classify(email(), x); a.Finding != ledger.Found || len(c.box.holds()) != 1 || c.box.holds()[0].User != "holdfast" {
			t.Errorf("%s: %+v, book %+v", c.name, a, c.box.holds())
		}
	}
}

// The record that holds the dot is counted below TLS, alone: a message whose
// text left and whose dot did not is unsent, and a part of the dot's record is
// enough for doubt.
func TestTheDotIsCountedBelowTLS(t *testing.T) {
	cert, pool := certificate(t)
	b := startMailServer(t, append(cert, "MAIL_TLS=direct")...)
	r := mustRail(t, post("smtps://"+b.address))
	r.roots = pool
	req := mustRender(t, r, email())
	whole := func(spare int) (Exchange, ledger.Answer) {
		c, err := r.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if spare >= 0 {
			c.raw.Conn = &failing{c.raw.Conn, spare}
		}
		x := c.Send(t.Context(), req, time.Now().Add(time.Minute))
		return x, r.Classify(email(), x)
	}
	x, a := whole(-1)
	if a.Finding != ledger.Found {
		t.Fatalf("%+v", a)
	}
	b.empty()
	dot := 3 + 5 + 1 + 16 // the dot's record: header, ".\r\n", its type, its tag
	for spare, want := range map[int]ledger.Finding{
		0: ledger.NotSent, 10: ledger.NotSent, int(x.Written) - dot - 1: ledger.NotSent,
		int(x.Written) - dot + 1: ledger.Unclear, int(x.Written) - 1: ledger.Unclear,
	} {
		if x, a := whole(spare); a.Finding != want || len(b.holds()) != 0 {
			t.Errorf("the network took %d bytes: %+v %+v, book %d", spare, a, x, len(b.holds()))
		}
	}
}

// failing is a network that takes n bytes more, and then part of one write.
type failing struct {
	net.Conn
	n int
}

func (f *failing) Write(p []byte) (int, error) {
	n, err := f.Conn.Write(p[:min(len(p), f.n)])
	if f.n -= n; n < len(p) {
		err = errors.New("the network is gone")
	}
	return n, err
}

// Also a message whose text is on its way is held back when the time is over.
func TestTheSendDeadlineHoldsForTheDot(t *testing.T) {
	b := startMailServer(t)
	now := time.Now()
	for asked := 1; ; asked++ {
		calls := 0
		r, err := New("post", plain(b.address), func() time.Time {
			if calls++; calls > asked*2 { // due looks twice: how long it lasts, and whether it is over
				return now.Add(time.Hour)
			}
			return now
		})
		if err != nil {
			t.Fatal(err)
		}
		req := mustRender(t, r, email())
		c, err := r.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x := c.Send(t.Context(), req, now.Add(time.Minute))
		a := r.Classify(email(), x)
		if asked == 4 { // MAIL, RCPT, DATA, the dot
			if a.Finding != ledger.Found || len(b.holds()) != 1 {
				t.Errorf("in time for everything: %+v", a)
			}
			return
		}
		if a.Finding != ledger.NotSent || !errors.Is(x.Err, TooLate) || len(b.holds()) != 0 {
			t.Errorf("the time was over after step %d: %+v", asked, a)
		}
	}
}

func TestMailIsSentOnceAConnectionAndNotAfterGivingUp(t *testing.T) {
	b := startMailServer(t)
	r := mustRail(t, plain(b.address))
	req := mustRender(t, r, email())
	c, err := r.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Send(t.Context(), req, time.Now().Add(time.Minute))
	if x := c.Send(t.Context(), req, time.Now().Add(time.Minute)); x.Err != Used || r.Classify(email(), x).Finding != ledger.NotSent {
		t.Errorf("%+v", x)
	}
	other, err := r.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := other.Send(ctx, req, time.Now().Add(time.Minute))
	if x.Written != 0 || x.Err != Interrupted || r.Classify(email(), x).Finding != ledger.NotSent || len(b.holds()) != 1 {
		t.Errorf("%+v, book %d", x, len(b.holds()))
	}
}

func TestAMailRequestOfAnotherRailIsNotSent(t *testing.T) {
	b := startMailServer(t)
	r := mustRail(t, plain(b.address))
	rehash := func(q ledger.Request) ledger.Request { q.SHA256 = q.HashRequest(); return q }
	for name, change := range map[string]func(ledger.Request) ledger.Request{
		"another address":     func(q ledger.Request) ledger.Request { q.URL = "smtp+plain://127.0.0.1:1"; return rehash(q) },
		"another hash":        func(q ledger.Request) ledger.Request { q.Body = append(q.Body, "x\r\n"...); return q },
		"no recipient":        func(q ledger.Request) ledger.Request { q.Header = q.Header[:1]; return rehash(q) },
		"a command in it":     func(q ledger.Request) ledger.Request { q.Header[1][1] = "<a@b>\r\nRSET"; return rehash(q) },
		"parameters":          func(q ledger.Request) ledger.Request { q.Header[0][1] += " SIZE=1"; return rehash(q) },
		"bare line feeds":     func(q ledger.Request) ledger.Request { q.Body = []byte("a: b\n\n.\nQUIT\r\n"); return rehash(q) },
		"a request over HTTP": func(q ledger.Request) ledger.Request { q.Method = "POST"; return rehash(q) },
	} {
		q := change(mustRender(t, r, email()))
		c, err := r.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if x := c.Send(t.Context(), q, time.Now().Add(time.Minute)); x.Err != Unfit || x.Written != 0 {
			t.Errorf("%s: %+v", name, x)
		}
	}
	if len(b.holds()) != 0 {
		t.Error("something was sent")
	}
}

func TestNoExchangeIsNoAnswer(t *testing.T) {
	if a := mustRail(t, plain("127.0.0.1:1")).Classify(email(), Exchange{}); a.Finding != ledger.Unclear {
		t.Errorf("%+v", a)
	}
}

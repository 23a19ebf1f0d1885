package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// sandboxClient is a client of a sandbox, over a real socket.
type sandboxClient struct {
	t    *testing.T
	base string
	http *http.Client
}

func sandboxClientOf(t *testing.T, base string) sandboxClient {
	// A connection each: net/http never sends a second request on its own.
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return sandboxClient{t: t, base: base, http: &http.Client{Transport: transport, Timeout: 20 * time.Second}}
}

func openSandbox(t *testing.T, o SandboxOptions) sandboxClient {
	t.Helper()
	s, err := NewSandbox(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		s.hurry()
		server.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return sandboxClientOf(t, server.URL)
}

// sandboxReply is what a client saw; err stands for "the answer was lost".
type sandboxReply struct {
	status int
	body   string
	header http.Header
	err    error
}

func (p sandboxClient) do(method, path, key, body string) sandboxReply {
	q, err := http.NewRequest(method, p.base+path, io.MultiReader(strings.NewReader(body)))
	if err != nil {
		return sandboxReply{err: err}
	}
	q.ContentLength = int64(len(body))
	if body == "" {
		q.Body = http.NoBody
	}
	if key != "" {
		q.Header.Set("Idempotency-Key", key)
	}
	r, err := p.http.Do(q)
	if err != nil {
		return sandboxReply{err: err}
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return sandboxReply{status: r.StatusCode, body: string(b), header: r.Header, err: err}
}

func paymentBody(reference string) string {
	return fmt.Sprintf(`{"amount":1200,"currency":"EUR","recipient":"acct_7","reference":%q,"metadata":{"operation":"ord_%s"}}`, reference, reference)
}

func (p sandboxClient) pay(key, reference string) sandboxReply {
	return p.do("POST", "/payments", key, paymentBody(reference))
}

func (p sandboxClient) arm(faults string) {
	p.t.Helper()
	if r := p.do("POST", "/_faults", "", faults); r.status != 200 {
		p.t.Fatalf("arming %s: %d %s %v", faults, r.status, r.body, r.err)
	}
}

type shownSandboxBook struct {
	Effects []struct {
		Seq       int       `json:"seq"`
		Kind      string    `json:"kind"`
		ID        string    `json:"id"`
		Key       string    `json:"key"`
		Amount    int64     `json:"amount"`
		Currency  string    `json:"currency"`
		Recipient string    `json:"recipient"`
		Reference string    `json:"reference"`
		Operation string    `json:"operation"`
		Body      any       `json:"body"`
		At        time.Time `json:"at"`
	} `json:"effects"`
	Requests int `json:"requests"`
}

func (p sandboxClient) book() (b shownSandboxBook) {
	p.t.Helper()
	p.get("/_effects", &b)
	return b
}

func (p sandboxClient) get(path string, into any) {
	p.t.Helper()
	r := p.do("GET", path, "", "")
	if r.err != nil || r.status != 200 {
		p.t.Fatalf("GET %s: %d %s %v", path, r.status, r.body, r.err)
	}
	if err := json.Unmarshal([]byte(r.body), into); err != nil {
		p.t.Fatalf("GET %s: %v in %s", path, err, r.body)
	}
}

func (p sandboxClient) listed(path string) int {
	p.t.Helper()
	var l struct {
		Data    []any `json:"data"`
		HasMore bool  `json:"has_more"`
	}
	p.get(path, &l)
	return len(l.Data)
}

func sandboxErrorType(r sandboxReply) string {
	var e struct {
		Error struct{ Type, Message string } `json:"error"`
	}
	if json.Unmarshal([]byte(r.body), &e, json.MatchCaseInsensitiveNames(true)) != nil || e.Error.Message == "" {
		return ""
	}
	return e.Error.Type
}

func TestEachKindActsAnswersAndIsListed(t *testing.T) {
	p := openSandbox(t, SandboxOptions{})
	for _, c := range []struct{ method, path, body, list, id, recipient string }{
		{"POST", "/payments", paymentBody("r"), "/payments", "pay_1", "acct_7"},
		{"POST", "/refunds", `{"amount":1,"currency":"EUR","charge":"pay_1","reference":"r","operation":"ord_r"}`, "/refunds", "ref_1", ""},
		{"POST", "/emails", `{"to":"a@example.com","subject":"s","body":"b","reference":"r","operation":"ord_r"}`, "/emails", "msg_1", "a@example.com"},
		{"PUT", "/records/cust 7", `{"name":"x","currency":5,"reference":"r","operation":"ord_r"}`, "/records", "rec_1", ""},
	} {
		path := (&url.URL{Path: c.path}).EscapedPath()
		r := p.do(c.method, path, "k", c.body)
		var got struct {
			ID, Recipient, Reference, Operation string
			Created                             time.Time `json:"created_at"`
		}
		if err := json.Unmarshal([]byte(r.body), &got, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err, r)
		}
		if r.status != 201 || got.ID != c.id || got.Recipient != c.recipient || got.Reference != "r" || got.Operation != "ord_r" || got.Created.IsZero() {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.status, r.body)
		}
		for _, filter := range []string{"", "?reference=r", "?operation=ord_r", "?key=k", "?key=k&reference=r"} {
			if n := p.listed(c.list + filter); n != 1 {
				t.Errorf("%s%s lists %d", c.list, filter, n)
			}
		}
		for _, filter := range []string{"?reference=x", "?operation=x", "?key=x", "?key=k&reference=x", "?reference="} {
			if n := p.listed(c.list + filter); n != 0 {
				t.Errorf("%s%s lists %d", c.list, filter, n)
			}
		}
		if one := p.do("GET", c.list+"/"+c.id, "", ""); one.status != 200 || one.body != r.body {
			t.Errorf("GET %s/%s: %d %s", c.list, c.id, one.status, one.body)
		}
	}
	if r := p.do("GET", "/payments/pay_2", "", ""); r.status != 404 || sandboxErrorType(r) != "not_found" {
		t.Error(r)
	}
	if r := p.do("GET", "/payments?refrence=r", "", ""); r.status != 400 {
		t.Error("a filter with a typing error was answered:", r)
	}
	if b := p.book(); len(b.Effects) != 4 || b.Requests != 4 || b.Effects[3].Seq != 4 {
		t.Errorf("%+v", b)
	}
}

func TestARecordAnswersToItsNameWithItsNewestState(t *testing.T) {
	p := openSandbox(t, SandboxOptions{})
	p.do("PUT", "/records/c1", "", `{"reference":"old"}`)
	p.do("PUT", "/records/c1", "", `{"reference":"new"}`)
	if r := p.do("GET", "/records/c1", "", ""); !strings.Contains(r.body, `"rec_2"`) || !strings.Contains(r.body, `"new"`) {
		t.Error(r)
	}
	if b := p.book(); len(b.Effects) != 2 {
		t.Error("each PUT is an effect:", b)
	}
}

func TestTheStampIsFoundInMetadataMemberOrHeader(t *testing.T) {
	p := openSandbox(t, SandboxOptions{})
	for i, c := range []struct{ body, header, want string }{
		{`{"to":"a","metadata":{"operation":"m"},"operation":"o"}`, "h", "m"},
		{`{"to":"a","operation":"o"}`, "h", "o"},
		{`{"to":"a","metadata":{"operation":""}}`, "h", "h"},
		{`{"to":"a"}`, "", ""},
	} {
		q, _ := http.NewRequest("POST", p.base+"/emails", strings.NewReader(c.body))
		q.Header.Set("Operation", c.header)
		r, err := p.http.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if got := p.book().Effects[i].Operation; got != c.want {
			t.Errorf("%s with header %q: %q", c.body, c.header, got)
		}
	}
}

func TestWhatCannotBeReadNeverActs(t *testing.T) {
	p := openSandbox(t, SandboxOptions{Dedupe: true})
	cases := []struct {
		name, path, body, says string
		status                 int
	}{
		{"no JSON", "/payments", `{"amount":`, "JSON", 400},
		{"empty", "/payments", ``, "JSON", 400},
		{"null", "/payments", `null`, "JSON object", 400},
		{"a list", "/payments", `[]`, "JSON object", 400},
		{"trailing data", "/payments", paymentBody("r") + `{}`, "JSON", 400},
		{"a duplicate name", "/payments", `{"amount":1,"amount":2,"currency":"EUR","recipient":"a"}`, "duplicate", 400},
		{"a duplicate name below", "/payments", `{"amount":1,"currency":"EUR","recipient":"a","metadata":{"a":1,"a":2}}`, "duplicate", 400},
		{"bad UTF-8", "/payments", "{\"amount\":1,\"currency\":\"EUR\",\"recipient\":\"\xff\"}", "UTF-8", 400},
		{"no amount", "/payments", `{"currency":"EUR","recipient":"a"}`, "amount is missing", 400},
		{"wrong case", "/payments", `{"Amount":1,"currency":"EUR","recipient":"a"}`, "amount is missing", 400},
		{"a fraction", "/payments", `{"amount":1.5,"currency":"EUR","recipient":"a"}`, "amount must be", 400},
		{"text as amount", "/payments", `{"amount":"1","currency":"EUR","recipient":"a"}`, "amount must be", 400},
		{"nothing", "/payments", `{"amount":0,"currency":"EUR","recipient":"a"}`, "amount must be", 400},
		{"less than nothing", "/payments", `{"amount":-1,"currency":"EUR","recipient":"a"}`, "amount must be", 400},
		{"too much", "/payments", `{"amount":9223372036854775808,"currency":"EUR","recipient":"a"}`, "amount must be", 400},
		{"no currency", "/payments", `{"amount":1,"recipient":"a"}`, "currency is missing", 400},
		{"null currency", "/payments", `{"amount":1,"currency":null,"recipient":"a"}`, "currency is missing", 400},
		{"no recipient", "/payments", `{"amount":1,"currency":"EUR"}`, "recipient is missing", 400},
		{"a number as reference", "/payments", `{"amount":1,"currency":"EUR","recipient":"a","reference":7}`, "reference must be", 400},
		{"a refund without amount", "/refunds", `{"currency":"EUR"}`, "amount is missing", 400},
		{"an e-mail to nobody", "/emails", `{"subject":"s"}`, "to is missing", 400},
		{"too large", "/emails", `{"to":"a","body":"` + strings.Repeat("x", 1<<20) + `"}`, "larger", 413},
	}
	for _, c := range cases {
		r := p.do("POST", c.path, "k", c.body)
		if r.status != c.status || sandboxErrorType(r) == "" || !strings.Contains(r.body, c.says) {
			t.Errorf("%s: %d %s %v", c.name, r.status, r.body, r.err)
		}
	}
	if b := p.book(); len(b.Effects) != 0 || b.Requests != len(cases) {
		t.Errorf("%d effects of %d requests", len(b.Effects), b.Requests)
	}
	if r := p.pay("k", "r"); r.status != 201 {
		t.Error("a request that was refused unread used up its key:", r)
	}
}

func TestAShortBodyNeverActs(t *testing.T) {
	p := openSandbox(t, SandboxOptions{})
	whole := paymentBody("r")
	for name, head := range map[string]string{
		"length":  fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(whole)+1, whole),
		"chunked": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(whole), whole),
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		before := p.book().Requests
		io.WriteString(conn, "POST /payments HTTP/1.1\r\nHost: x\r\n"+head)
		conn.Close()
		eventually(t, name, func() bool { return p.book().Requests == before+1 })
		if n := len(p.book().Effects); n != 0 {
			t.Errorf("%s: %d effects", name, n)
		}
	}
}

func TestFaultsDoWhatTheirNamesSay(t *testing.T) {
	const lost = 0
	for _, c := range []struct {
		fault   string
		status  int // lost: no answer, or none that is whole
		effects int
		says    string
		again   int // the same key once more, with dedupe
		total   int // effects after that
	}{
		{"drop_before", lost, 0, "", 201, 1},
		{"drop_after", lost, 1, "", 201, 1},
		{"error_500_before", 500, 0, "api_error", 201, 1},
		{"error_500_after", 500, 1, "api_error", 500, 1},
		{"slow_ms:5", 201, 1, `"pay_1"`, 201, 1},
		{"slow_after_ms:5", 201, 1, `"pay_1"`, 201, 1},
		{"reset_mid_body", lost, 1, "", 201, 1},
		{"garbage_body", 201, 1, "<html>", 201, 1},
		{"wrong_amount", 201, 1, `"amount":1201`, 201, 1},
		{"double", 201, 2, `"pay_1"`, 201, 2},
		{"list_lag_ms:60000", 201, 1, `"pay_1"`, 201, 1},
		{"decline_402", 402, 0, "card_declined", 402, 0},
		{"rate_limit_429", 429, 0, "rate_limited", 201, 1},
		{"bad_request_400", 400, 0, "invalid_request", 201, 1},
		{"conflict_409", 409, 0, "conflict", 201, 1},
	} {
		for _, dedupe := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/dedupe=%v", c.fault, dedupe), func(t *testing.T) {
				p := openSandbox(t, SandboxOptions{Dedupe: dedupe})
				p.arm(fmt.Sprintf(`[{"match":{"reference":"r"},"fault":%q}]`, c.fault))
				if r := p.pay("other", "other"); r.status != 201 {
					t.Fatal("struck a request that does not match:", r)
				}
				r := p.pay("k", "r")
				switch {
				case c.status == lost && r.err == nil:
					t.Errorf("was answered: %d %s", r.status, r.body)
				case c.status != lost && (r.err != nil || r.status != c.status):
					t.Errorf("%d %s %v", r.status, r.body, r.err)
				}
				says := strings.ReplaceAll(c.says, "pay_1", "pay_2")
				if !strings.Contains(r.body, says) {
					t.Errorf("answer %q lacks %q", r.body, says)
				}
				if c.fault == "rate_limit_429" && r.header.Get("Retry-After") != "1" {
					t.Error("no Retry-After")
				}
				if n := len(p.book().Effects) - 1; n != c.effects {
					t.Errorf("%d effects, want %d", n, c.effects)
				}
				if got, want := p.book().Requests, 2; got != want {
					t.Errorf("%d requests, want %d", got, want)
				}

				again, total := c.again, c.total
				if !dedupe {
					again, total = 201, c.effects+1
				}
				if r := p.pay("k", "r"); r.status != again || r.err != nil {
					t.Errorf("again: %d %s %v", r.status, r.body, r.err)
				}
				if n := len(p.book().Effects) - 1; n != total {
					t.Errorf("%d effects after the second request, want %d", n, total)
				}
			})
		}
	}
}

func TestWrongAmountStandsInTheBook(t *testing.T) {
	p := openSandbox(t, SandboxOptions{})
	p.arm(`[{"fault":"wrong_amount"}]`)
	p.pay("", "r")
	e := p.book().Effects[0]
	if asked := e.Body.(map[string]any)["amount"]; e.Amount != 1201 || asked != 1200.0 {
		t.Errorf("book says %d, request said %v", e.Amount, asked)
	}
}

func TestARepeatGetsTheStoredBytesAndNothingHappens(t *testing.T) {
	p := openSandbox(t, SandboxOptions{Dedupe: true})
	first, second := p.pay("k", "r"), p.pay("k", "r")
	if first.status != 201 || second.status != 201 || first.body != second.body {
		t.Error(first, second)
	}
	if first.header.Get("Idempotent-Replayed") != "" || second.header.Get("Idempotent-Replayed") != "true" {
		t.Error("Idempotent-Replayed marks the repeat, and only that")
	}
	if b := p.book(); len(b.Effects) != 1 || b.Requests != 2 {
		t.Errorf("%d effects of %d requests", len(b.Effects), b.Requests)
	}
	p.pay("", "r")
	p.pay("", "r")
	if n := len(p.book().Effects); n != 3 {
		t.Errorf("%d effects: without a key each request acts", n)
	}
}

func TestAnAnswerCanBeLostOnAReplayToo(t *testing.T) {
	p := openSandbox(t, SandboxOptions{Dedupe: true})
	p.arm(`[{"fault":"drop_after","times":2}]`)
	if r := p.pay("k", "r"); r.err == nil {
		t.Error(r)
	}
	if r := p.pay("k", "r"); r.err == nil {
		t.Error(r)
	}
	if r := p.pay("k", "r"); r.status != 201 || len(p.book().Effects) != 1 {
		t.Error(r)
	}
}

func TestAKeyNamesOneRequest(t *testing.T) {
	p := openSandbox(t, SandboxOptions{Dedupe: true})
	p.pay("k", "r")
	for name, r := range map[string]sandboxReply{
		"other body": p.pay("k", "r2"),
		"other path": p.do("POST", "/refunds", "k", paymentBody("r")),
	} {
		if r.status != 409 || sandboxErrorType(r) != "idempotency_mismatch" {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if n := len(p.book().Effects); n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestAKeyIsInUseWhileItsRequestIsWorkedOn(t *testing.T) {
	p := openSandbox(t, SandboxOptions{Dedupe: true})
	p.arm(`[{"fault":"slow_ms:600000"}]`)
	// The client of the slow request is never answered: its own deadline ends it.
	go p.pay("k", "r")
	eventually(t, "the first request", func() bool { return p.book().Requests == 1 })
	eventually(t, "the key is in use", func() bool { return sandboxErrorType(p.pay("k", "r")) == "idempotency_key_in_use" })
	if r := p.pay("k", "r2"); sandboxErrorType(r) != "idempotency_mismatch" {
		t.Error(r)
	}
	if n := len(p.book().Effects); n != 0 {
		t.Errorf("%d effects", n)
	}
}

func TestConcurrentRequestsWithOneKeyActOnce(t *testing.T) {
	p := openSandbox(t, SandboxOptions{Dedupe: true, Book: t.TempDir() + "/book"})
	const n = 32
	answers := make([]sandboxReply, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			answers[i] = p.pay("k", "r")
		})
	}
	close(start)
	all.Wait()
	for _, r := range answers {
		ok := r.status == 201 && strings.Contains(r.body, `"pay_1"`)
		if !ok && sandboxErrorType(r) != "idempotency_key_in_use" {
			t.Error(r)
		}
	}
	if b := p.book(); len(b.Effects) != 1 || b.Requests != n {
		t.Errorf("%d effects of %d requests", len(b.Effects), b.Requests)
	}
}

func TestConcurrentRequestsWithoutDedupeAllAct(t *testing.T) {
	p := openSandbox(t, SandboxOptions{Book: t.TempDir() + "/book"})
	const n = 32
	var all sync.WaitGroup
	for range n {
		all.Go(func() { p.pay("k", "r") })
	}
	all.Wait()
	seen := map[string]bool{}
	for i, e := range p.book().Effects {
		if e.Seq != i+1 || seen[e.ID] {
			t.Errorf("effect %d has seq %d and id %s", i, e.Seq, e.ID)
		}
		seen[e.ID] = true
	}
	if len(seen) != n {
		t.Errorf("%d effects", len(seen))
	}
}

func TestAnEffectHappensAlthoughItsClientHasGone(t *testing.T) {
	p := openSandbox(t, SandboxOptions{})
	p.arm(`[{"fault":"slow_ms:300"}]`)
	ctx, leave := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, "POST", p.base+"/payments", strings.NewReader(paymentBody("r")))
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() {
		r, err := p.http.Do(q)
		if err == nil {
			r.Body.Close()
		}
		left <- err
	}()
	eventually(t, "the request", func() bool { return p.book().Requests == 1 })
	leave()
	if err := <-left; err == nil {
		t.Fatal("the client was answered before it left")
	}
	eventually(t, "the effect", func() bool { return len(p.book().Effects) == 1 })
}

func TestALateAnswerComesAfterTheEffect(t *testing.T) {
	p := openSandbox(t, SandboxOptions{})
	p.arm(`[{"fault":"slow_after_ms:600000"}]`)
	go p.pay("k", "r")
	eventually(t, "the effect", func() bool { return len(p.book().Effects) == 1 })
}

func TestAKeyIsForgottenAfterItsRetention(t *testing.T) {
	c := newClock()
	p := openSandbox(t, SandboxOptions{Dedupe: true, Retention: time.Hour, Now: c.Now})
	p.pay("k", "r")
	c.pass(time.Hour - time.Second)
	if r := p.pay("k", "r"); r.header.Get("Idempotent-Replayed") != "true" {
		t.Error(r)
	}
	c.pass(time.Second)
	if r := p.pay("k", "r"); !strings.Contains(r.body, `"pay_2"`) {
		t.Error("a forgotten key is a new request:", r)
	}
	if r := p.pay("k", "r"); !strings.Contains(r.body, `"pay_2"`) {
		t.Error("the key lives again from there:", r)
	}
}

func TestListsLagBehindTheBook(t *testing.T) {
	c := newClock()
	p := openSandbox(t, SandboxOptions{Lag: time.Minute, Now: c.Now})
	p.pay("", "r")
	c.pass(time.Minute - time.Millisecond)
	if n := p.listed("/payments?reference=r"); n != 0 {
		t.Errorf("%d listed too early", n)
	}
	if r := p.do("GET", "/payments/pay_1", "", ""); r.status != 200 {
		t.Error("its own id has no lag:", r)
	}
	c.pass(time.Millisecond)
	if n := p.listed("/payments?reference=r"); n != 1 {
		t.Errorf("%d listed", n)
	}
}

func TestAListLagHidesWhatMatchesForItsTime(t *testing.T) {
	c := newClock()
	p := openSandbox(t, SandboxOptions{Now: c.Now})
	late := `[{"match":{"reference":"r"},"fault":"list_lag_ms:1000"}]`
	p.arm(late)
	p.pay("", "r")
	p.pay("", "other")
	for range 3 { // however often one looks
		if n := p.listed("/payments?reference=r"); n != 0 {
			t.Errorf("%d listed too early", n)
		}
	}
	if n := p.listed("/payments"); n != 1 {
		t.Errorf("%d listed of those that do not match", n)
	}
	c.pass(time.Second)
	if n := p.listed("/payments?reference=r"); n != 1 {
		t.Errorf("%d listed", n)
	}

	p.pay("", "r2")
	p.arm(strings.ReplaceAll(late, `"r"`, `"r2"`)) // armed after the effect
	if n := p.listed("/payments?reference=r2"); n != 0 {
		t.Errorf("%d listed too early", n)
	}
	p.do("DELETE", "/_faults", "", "")
	if n := p.listed("/payments?reference=r2"); n != 1 {
		t.Errorf("%d listed after disarming", n)
	}
}

func TestFaultsAreForWhomTheyAreFor(t *testing.T) {
	for _, c := range []struct {
		match string
		fits  bool
	}{
		{`{}`, true},
		{`{"reference":"r"}`, true},
		{`{"reference":"R"}`, false},
		{`{"recipient":"acct_7"}`, true},
		{`{"recipient":"acct_8"}`, false},
		{`{"key":"k"}`, true},
		{`{"key":"k2"}`, false},
		{`{"operation":"ord_r"}`, true},
		{`{"operation":"ord"}`, false},
		{`{"path":"/payments"}`, true},
		{`{"path":"/pay"}`, false},
		{`{"path":"/refunds"}`, false},
		{`{"reference":"r","path":"/payments","key":"k"}`, true},
		{`{"reference":"r","path":"/refunds","key":"k"}`, false},
	} {
		p := openSandbox(t, SandboxOptions{})
		p.arm(`[{"match":` + c.match + `,"fault":"decline_402"}]`)
		if r := p.pay("k", "r"); (r.status == 402) != c.fits {
			t.Errorf("%s: %d", c.match, r.status)
		}
	}
}

func TestFaultsAreCountedInTheOrderTheyWereArmed(t *testing.T) {
	p := openSandbox(t, SandboxOptions{})
	p.arm(`[{"fault":"decline_402","times":2},{"fault":"rate_limit_429"},{"fault":"error_500_before","times":0}]`)
	var got []int
	for range 6 {
		got = append(got, p.pay("", "r").status)
	}
	if want := []int{402, 402, 429, 500, 500, 500}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	var armed struct {
		Faults []struct {
			Match map[string]string `json:"match"`
			Fault string            `json:"fault"`
			Times int               `json:"times"`
		} `json:"faults"`
	}
	p.get("/_faults", &armed)
	if len(armed.Faults) != 1 || armed.Faults[0].Fault != "error_500_before" || armed.Faults[0].Times != -1 {
		t.Errorf("%+v", armed)
	}
	p.do("DELETE", "/_faults", "", "")
	if r := p.pay("", "r"); r.status != 201 {
		t.Error("struck by what was disarmed:", r)
	}
}

func TestWrongFaultsArmNothing(t *testing.T) {
	p := openSandbox(t, SandboxOptions{})
	for faults, says := range map[string]string{
		`[{"fault":"decline_402"},{"fault":"explode"}]`: "reset_mid_body",
		`[{"fault":"slow_ms"}]`:                         "unknown fault",
		`[{"fault":"slow_ms:soon"}]`:                    "milliseconds",
		`[{"fault":"slow_ms:99999999"}]`:                "milliseconds",
		`[{"fault":"double:3"}]`:                        "unknown fault",
		`[{"fault":"double","times":-2}]`:               "times is -2",
		`[{"fault":"double","match":{"amount":"1"}}]`:   "amount",
		`{"fault":"double"}`:                            "JSON list",
		`[{"fault":`:                                    "JSON list",
	} {
		if r := p.do("POST", "/_faults", "", faults); r.status != 400 || !strings.Contains(r.body, says) {
			t.Errorf("%s: %d %s", faults, r.status, r.body)
		}
	}
	if r := p.do("GET", "/_faults", "", ""); r.body != `{"faults":[]}` {
		t.Error(r.body)
	}
}

func TestEveryRequestIsCountedWithWhatStruckIt(t *testing.T) {
	p := openSandbox(t, SandboxOptions{Dedupe: true})
	p.arm(`[{"fault":"drop_before"}]`)
	p.pay("k", "r")
	p.pay("k", "r")
	p.pay("k", "r")
	p.do("POST", "/emails", "e", `{}`)
	p.do("GET", "/payments", "", "")
	var came struct {
		Count    int `json:"count"`
		Requests []struct {
			N       int    `json:"n"`
			Method  string `json:"method"`
			Path    string `json:"path"`
			Key     string `json:"key"`
			Fault   string `json:"fault"`
			Refused string `json:"refused"`
		} `json:"requests"`
	}
	p.get("/_requests", &came)
	if came.Count != 4 || came.Requests[0].Fault != "drop_before" || came.Requests[1].Fault != "" || came.Requests[3].Refused == "" || came.Requests[3].Method != "POST" {
		t.Errorf("%+v", came)
	}
	p.get("/_requests?key=k", &came)
	if came.Count != 3 {
		t.Errorf("%d under the key", came.Count)
	}
}

func TestWhoComesAfterCloseIsCut(t *testing.T) {
	s, err := NewSandbox(SandboxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if r, err := http.Post(server.URL+"/payments", "application/json", bytes.NewReader([]byte(paymentBody("r")))); err == nil {
		r.Body.Close()
		t.Error("answered", r.Status)
	}
}

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// provider is a fake holdfast on a real socket: it answers by a script, the
// last line again and again, and remembers what it was sent.
type provider struct {
	*Client
	mu     sync.Mutex
	script []string // "200 {…}", "302 https://…", or "cut"
	got    []string // "POST /v1/operations {…}"
	head   []http.Header
}

func serve(t *testing.T, script ...string) *provider {
	t.Helper()
	p := &provider{script: script}
	server := httptest.NewServer(http.HandlerFunc(p.answer))
	t.Cleanup(server.Close)
	p.Client = New(server.URL+"/", "secret")
	p.Pause = 0
	p.chance = func(int64) int64 { return 0 }
	return p
}

func (p *provider) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	line := p.script[0]
	if len(p.script) > 1 {
		p.script = p.script[1:]
	}
	p.got = append(p.got, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	p.head = append(p.head, r.Header)
	p.mu.Unlock()
	status, text, _ := strings.Cut(line, " ")
	var code int
	if _, err := fmt.Sscan(status, &code); err != nil {
		panic(http.ErrAbortHandler) // cut
	}
	if code == http.StatusFound {
		w.Header().Set("Location", text)
	}
	w.Header().Set("Idempotent-Replayed", fmt.Sprint(code == 200))
	w.WriteHeader(code)
	io.WriteString(w, text)
}

func (p *provider) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.got...)
}

var charge = Operation{OperationID: "inv-481-charge", ActionType: "create_payment", RunID: "r1",
	Payload: map[string]any{"amount": 4800, "currency": "USD", "recipient": "c_91", "reference": "inv-481"}}

const (
	chargeJSON = `{"operation_id":"inv-481-charge","action_type":"create_payment","payload":{"amount":4800,"currency":"USD","recipient":"c_91","reference":"inv-481"},"run_id":"r1"}`
	confirmed  = `200 {"operation_id":"inv-481-charge","status":"confirmed","reason":null,"terminal":true,"next":"use_result","retry_after":null,"attempts":1,"result":{"id":"pay_1","amount":4800},"duplicate_of":null,"created_at":"2026-03-01T12:00:00.000Z"}`
	inProgress = `409 {"reason":"in_progress","terminal":false,"next":"wait","operation":{"operation_id":"inv-481-charge","status":"unknown","next":"wait"}}`
)

func TestTheSameBytesGoOutAgainUntilAnswered(t *testing.T) {
	for name, trouble := range map[string]string{
		"lost answer":   "cut",
		"500":           `500 {"reason":"internal","terminal":false,"next":"wait"}`,
		"503":           `503 {"reason":"store_unavailable","terminal":false,"next":"wait"}`,
		"a proxy's 502": `502 <html>Bad gateway</html>`,
		"rate":          `429 {"reason":"rate_limited","terminal":false,"next":"wait"}`,
		"in progress":   inProgress,
		"no JSON":       `202 <html>`,
	} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, trouble, trouble, confirmed)
			e, err := p.Submit(t.Context(), charge)
			if err != nil || e.Status != "confirmed" || e.Result.ID != "pay_1" || !e.Replayed || e.HTTPStatus != 200 {
				t.Errorf("%+v %v", e, err)
			}
			got := p.requests()
			if len(got) != 3 {
				t.Errorf("%d requests, want 3", len(got))
			}
			for _, q := range got {
				if q != "POST /v1/operations "+chargeJSON {
					t.Errorf("sent %s", q)
				}
			}
			for _, h := range p.head {
				if h.Get("Authorization") != "Bearer secret" {
					t.Error("no token")
				}
			}
		})
	}
}

func TestWhatWillNotChangeIsSaidAtOnce(t *testing.T) {
	for name, answer := range map[string]string{
		"another payload": `409 {"reason":"request","terminal":true,"next":"stop","mismatch":["/amount"]}`,
		"budget":          `429 {"reason":"retry_budget_exhausted","terminal":true,"next":"stop"}`,
		"policy":          `403 {"reason":"policy_denied","terminal":true,"next":"stop"}`,
		"payload":         `422 {"reason":"invalid_payload","next":"fix_request","errors":[{"pointer":"/amount","message":"is missing"}]}`,
		"redirect":        `302 http://127.0.0.1:1/`,
		"not ours":        `404 not found`,
	} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, answer)
			_, err := p.Submit(t.Context(), charge)
			var problem *Problem
			if !errors.As(err, &problem) || !strings.HasPrefix(answer, fmt.Sprint(problem.Status)) || problem.Reason == "" {
				t.Errorf("%v", err)
			}
			if n := len(p.requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

func TestProblemNamesThePlaces(t *testing.T) {
	p := serve(t, `409 {"reason":"request","terminal":true,"next":"stop","detail":"It is taken.","mismatch":["/amount"]}`)
	_, err := p.Submit(t.Context(), charge)
	if err == nil || err.Error() != "409 request: It is taken. /amount differs." {
		t.Error(err)
	}
}

func TestTriesAreBounded(t *testing.T) {
	p := serve(t, inProgress)
	p.Tries = 3
	_, err := p.Submit(t.Context(), charge)
	var problem *Problem
	if !errors.As(err, &problem) || problem.Operation.Status != "unknown" {
		t.Errorf("%v", err)
	}
	if n := len(p.requests()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

func TestWhatWaitsForAPersonIsNotRepeated(t *testing.T) {
	p := serve(t, "cut", `409 {"reason":"in_progress","terminal":false,"next":"wait","operation":{"status":"awaiting_approval","next":"await_approval"}}`)
	e, err := p.Submit(t.Context(), charge)
	if err != nil || e.Next != NextAwaitApproval || e.HTTPStatus != 409 || len(p.requests()) != 2 {
		t.Errorf("%+v %v after %d", e, err, len(p.requests()))
	}
}

func TestPausesDoubleWithFullJitterOnTopOfWhatWasAsked(t *testing.T) {
	c := New("http://127.0.0.1:1", "")
	c.Pause, c.Longest = time.Second, 5*time.Second
	for _, row := range []struct {
		err     error
		try     int
		least   time.Duration
		longest time.Duration
	}{
		{lost{io.EOF}, 1, 0, time.Second},
		{lost{io.EOF}, 3, 0, 4 * time.Second},
		{lost{io.EOF}, 4, 0, 5 * time.Second},
		{lost{io.EOF}, 90, 0, 5 * time.Second},
		{&Problem{Status: 503, RetryAfter: 7}, 2, 7 * time.Second, 9 * time.Second},
	} {
		c.chance = func(int64) int64 { return 0 }
		least, _ := c.pause(row.err, row.try)
		c.chance = func(n int64) int64 { return n }
		longest, again := c.pause(row.err, row.try)
		if least != row.least || longest != row.longest || !again {
			t.Errorf("%v, try %d: %s to %s", row.err, row.try, least, longest)
		}
	}
}

func TestAnUnnamedOperationIsNotSent(t *testing.T) {
	p := serve(t, confirmed)
	o := charge
	o.OperationID = ""
	if _, err := p.Submit(t.Context(), o); err == nil || len(p.requests()) != 0 {
		t.Errorf("%v, %d requests", err, len(p.requests()))
	}
}

func TestACallersEndEndsTheTries(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	p := serve(t, "503 {}")
	p.Tries = 1 << 20
	p.chance = func(int64) int64 { end(); return int64(time.Hour) }
	if _, err := p.Submit(ctx, charge); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestASilentServerIsALostAnswer(t *testing.T) {
	quiet := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-quiet }))
	defer server.Close()
	defer close(quiet)
	c := New(server.URL, "")
	c.Tries, c.Timeout = 1, 50*time.Millisecond
	if _, err := c.Submit(t.Context(), charge); !errors.As(err, new(lost)) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestWaitGoesOnUntilTheEnd(t *testing.T) {
	open := strings.ReplaceAll(strings.ReplaceAll(confirmed, "confirmed", "in_flight"), `"terminal":true`, `"terminal":false`)
	p := serve(t, open, "cut", confirmed)
	e, err := p.Wait(t.Context(), "inv-481-charge")
	if err != nil || e.Status != "confirmed" {
		t.Errorf("%+v %v", e, err)
	}
	got := p.requests()
	if len(got) != 3 || got[0] != "GET /v1/operations/inv-481-charge" || p.head[0].Get("Prefer") != "wait=20" {
		t.Errorf("%q", got)
	}
}

func TestCancelTwiceIsCancelledOnce(t *testing.T) {
	p := serve(t, "cut", `409 {"reason":"already_dispatched","next":"wait","operation":{"status":"rejected","reason":"cancelled"}}`)
	e, err := p.Cancel(t.Context(), "inv-481-charge")
	if err != nil || e.Reason != "cancelled" {
		t.Errorf("%+v %v", e, err)
	}
	p = serve(t, `409 {"reason":"already_dispatched","next":"wait","operation":{"status":"confirmed"}}`)
	var problem *Problem
	if _, err := p.Cancel(t.Context(), "inv-481-charge"); !errors.As(err, &problem) || problem.Operation.Status != "confirmed" {
		t.Error(err)
	}
}

func TestListAsksForWhatIsNamed(t *testing.T) {
	p := serve(t, `200 {"items":[{"operation_id":"a"}],"next_cursor":"c2"}`)
	page, err := p.List(t.Context(), Filter{Status: "unknown,unknown_hold", Reference: "inv 1", Limit: 5})
	if err != nil || len(page.Items) != 1 || page.NextCursor != "c2" {
		t.Errorf("%+v %v", page, err)
	}
	if got := p.requests()[0]; got != "GET /v1/operations?limit=5&reference=inv+1&status=unknown%2Cunknown_hold" {
		t.Error(got)
	}
	if _, err := p.Get(t.Context(), "a"); err != nil || p.requests()[1] != "GET /v1/operations/a" {
		t.Error(err, p.requests())
	}
}

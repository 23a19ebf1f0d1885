package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/dispatch"
	"holdfast/store"
	"holdfast/store/ledger"
)

// journey is a whole holdfast that serves on a port, with its provider in a
// process of its own, as one test sees it.
type journey struct {
	*Instance
	t       *testing.T
	ctx     context.Context // of requests
	client  *http.Client
	base    string // of the API
	token   string
	book    sandboxBook
	stop    context.CancelFunc
	stopped func() error // waits for Serve to return
}

const journeySchema = `{ type: object, required: [amount, currency, recipient], properties: { amount: { type: integer, minimum: 1, x-role: amount },
      currency: { type: string, x-role: currency, x-normalize: currency }, recipient: { type: string, x-role: recipient }, reference: { type: string, x-role: reference } } }`

// journeyRails are a rail to the sandbox that the server starts, one with little
// time, one whose answers are spoiled on the way, and one that is down at first.
const journeyRails = `
rails:
  sandbox: { adapter: sandbox, quiet: 1s, LIMITS }
  brisk: { adapter: sandbox, base_url: "SPOILER", timeout: 1s, quiet: 1s, LIMITS }
  spoiled: { adapter: sandbox, base_url: "SPOILER", quiet: 1s, limits: { max_attempts: 3, backoff: [10ms, 50ms] }, breaker: { failures: 1000, open_for: 1s } }
  down: { adapter: sandbox, base_url: "DOWN", quiet: 1s, LIMITS }
action_types:
  pay: { rail: sandbox, effect: charge, schema: SCHEMA }
  pay_brisk: { rail: brisk, effect: charge, schema: SCHEMA }
  pay_spoiled: { rail: spoiled, effect: charge, schema: SCHEMA }
  pay_down: { rail: down, effect: charge, schema: SCHEMA }
`

const journeyRest = `
policy:
  - { name: big charges, when: { currency: EUR, amount_over: 100000 }, then: ask }
  - { name: the rest, when: {}, then: allow }
jobs: { lookup: "@every 1s", sweep: "@every 1s" }
`

func journeyConfig(text string, oldNew ...string) string {
	oldNew = append(oldNew, "LIMITS", "limits: { concurrency: 16, max_attempts: 20, backoff: [10ms, 50ms] }, breaker: { failures: 1000, open_for: 1s }", "SCHEMA", journeySchema)
	return strings.NewReplacer(oldNew...).Replace(text + journeyRest)
}

// startJourney serves a ledger of its own until the test ends.
func startJourney(t *testing.T, config string) journey {
	t.Helper()
	return startJourneyIn(t, t.TempDir(), config)
}

// startJourneyIn goes on with what a folder holds.
func startJourneyIn(t *testing.T, folder, config string) journey {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "holdfast.yaml"), []byte(config), 0o600))
	i, err := OpenInstance(t.Context(), InstanceOptions{Folder: folder, Exe: exe, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { i.Close() })
	j := journey{Instance: i, t: t, ctx: t.Context(), client: http.DefaultClient, book: sandboxBook{i.SandboxAddress("default", "sandbox")}}
	j.token = j.newToken("agent-1")

	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- i.Serve(ctx, ServeOptions{Listen: "127.0.0.1:0", Ready: func(addr string) { ready <- addr }})
	}()
	j.stop, j.stopped = stop, sync.OnceValue(func() error { return <-ended })
	t.Cleanup(func() {
		stop()
		if err := j.stopped(); err != nil {
			t.Error("the server did not end cleanly: ", err)
		}
	})
	select {
	case addr := <-ready:
		j.base = "http://" + addr
	case err := <-ended:
		t.Fatal("the server ended: ", err)
	}
	return j
}

func (j journey) newToken(agent string) string {
	j.t.Helper()
	token, err := j.CreateToken(j.t.Context(), TokenOptions{Tenant: "default", Agent: agent, Owner: "owner@example.com", TTL: time.Hour}, io.Discard)
	must(j.t, err)
	return token
}

// in is the same journey, seen by a part of the test.
func (j journey) in(t *testing.T) journey {
	j.t, j.ctx = t, t.Context()
	return j
}

// call is one request of the agent, over the network.
func (j journey) call(method, path, body string, headers ...string) heard {
	j.t.Helper()
	q, err := http.NewRequestWithContext(j.ctx, method, j.base+path, strings.NewReader(body))
	must(j.t, err)
	q.Header.Set("Authorization", "Bearer "+j.token)
	q.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		q.Header.Set(name, value)
	}
	answer, err := j.client.Do(q)
	must(j.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(j.t, err)
	r := httptest.NewRecorder()
	r.Code, r.Body = answer.StatusCode, bytes.NewBuffer(text)
	for name, values := range answer.Header {
		r.Header()[name] = values
	}
	return hear(j.t, r)
}

func payment(action, id, reference string, amount int) string {
	return fmt.Sprintf(`{"operation_id":%q,"action_type":%q,"payload":{"amount":%d,"currency":"EUR","recipient":"acct-%s","reference":%q}}`, id, action, amount, id, reference)
}

// pay submits a payment whose reference is its id.
func (j journey) pay(action, id string, headers ...string) heard {
	j.t.Helper()
	return j.call(http.MethodPost, "/v1/operations", payment(action, id, id, 4800), headers...)
}

// begin submits a payment that is new and allowed.
func (j journey) begin(action, id string) {
	j.t.Helper()
	j.pay(action, id).is(j.t, 202, "", "wait", false)
}

func (j journey) stored(id string) ledger.Operation {
	j.t.Helper()
	o, err := j.Store.Operation(j.t.Context(), "default", id)
	must(j.t, err)
	return o
}

// until waits for the operation to get there.
func (j journey) until(id, what string, there func(ledger.Operation) bool) ledger.Operation {
	j.t.Helper()
	soon(j.t, id+" is "+what, func() bool { return there(j.stored(id)) })
	return j.stored(id)
}

func (j journey) untilStatus(id string, s ledger.Status) ledger.Operation {
	j.t.Helper()
	return j.until(id, string(s), func(o ledger.Operation) bool {
		if o.Status.Final() && o.Status != s {
			j.t.Fatalf("%s ended as %s %s: %s", id, o.Status, o.Reason, o.Detail)
		}
		return o.Status == s
	})
}

// went are the states that the operation went through, by the log.
func (j journey) went(id string) string {
	j.t.Helper()
	log, err := j.Store.Timeline(j.t.Context(), "default", id)
	must(j.t, err)
	var states []string
	for _, e := range log {
		if e.To != "" && (len(states) == 0 || states[len(states)-1] != string(e.To)) {
			states = append(states, string(e.To))
		}
	}
	return strings.Join(states, " ")
}

// happened compares the provider's book with what should be in it: so many
// requests for the reference, so many effects.
func (j journey) happened(reference string, requests, effects int) {
	j.t.Helper()
	got, err := j.book.requests(j.t.Context(), reference)
	must(j.t, err)
	done, err := j.book.effects(j.t.Context(), reference)
	must(j.t, err)
	if len(got) != requests || done != effects {
		j.t.Errorf("the provider got %d requests for %s and did %d, want %d and %d", len(got), reference, done, requests, effects)
	}
}

// effectsOf are what the provider did for the reference, first to last.
func (j journey) effectsOf(reference string) []bookedEffect {
	j.t.Helper()
	var answer struct{ Effects []bookedEffect }
	must(j.t, j.book.ask(j.t.Context(), http.MethodGet, "/_effects?reference="+url.QueryEscape(reference), nil, &answer))
	return answer.Effects
}

type bookedEffect struct {
	ID        string          `json:"id"`
	Body      json.RawMessage `json:"body"`
	Operation string          `json:"operation"`
}

// read lets the agent wait for the outcome, and compares it with the book.
func (j journey) read(id string) {
	j.t.Helper()
	h := j.call(http.MethodGet, "/v1/operations/"+id, "", "Prefer: wait=60")
	h.is(j.t, 200, "", "use_result", true)
	result, _ := h.said["result"].(map[string]any)
	effects := j.effectsOf(j.stored(id).Terms.Reference)
	if h.text("status") != "confirmed" || len(effects) == 0 || result["id"] != effects[0].ID || effects[0].Operation != h.text("order_id") {
		j.t.Errorf("the agent reads %s, the provider holds %+v", h.Body, effects)
	}
}

// spoiler is the network between holdfast and the provider: it carries
// everything, and spoils the answers to payments by their reference.
type spoiler struct {
	provider atomic.Pointer[string]
	mu       sync.Mutex
	keys     map[string][]string // by reference, of every request
	sent     map[string]string   // by reference, the body of the last answer
}

// newSpoiler listens; where it carries to is set when the provider runs.
func newSpoiler(t *testing.T) (*spoiler, string) {
	s := &spoiler{keys: map[string][]string{}, sent: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

// inUse is the reference of the payment whose key is always in use.
const inUse = "in-use-for-ever"

// spoilt answers, by reference: how they differ from what the provider said.
var spoilt = map[string]func(w http.ResponseWriter, honest []byte) string{
	"html":    func(w http.ResponseWriter, _ []byte) string { return say(w, 200, "<html><h1>Thank you!</h1></html>") },
	"empty":   func(w http.ResponseWriter, _ []byte) string { return say(w, 201, "") },
	"garbage": func(w http.ResponseWriter, _ []byte) string { return say(w, 201, "\x00\xff{\"id\": <html>") },
	"a-list":  func(w http.ResponseWriter, honest []byte) string { return say(w, 201, "["+string(honest)+"]") },
	"null":    func(w http.ResponseWriter, _ []byte) string { return say(w, 200, "null") },
	"no-id": func(w http.ResponseWriter, honest []byte) string {
		return say(w, 201, strings.Replace(string(honest), `"id":`, `"key":`, 1))
	},
	"twice-id": func(w http.ResponseWriter, honest []byte) string {
		return say(w, 201, strings.Replace(string(honest), `"id":`, `"id":"x","id":`, 1))
	},
	"half":       func(w http.ResponseWriter, honest []byte) string { return say(w, 201, string(honest[:len(honest)/2])) },
	"cut-short":  func(w http.ResponseWriter, honest []byte) string { return cutShort(w, honest) },
	"cut":        func(w http.ResponseWriter, _ []byte) string { return cutShort(w, nil) },
	"cut-double": func(w http.ResponseWriter, _ []byte) string { return cutShort(w, nil) },
}

func say(w http.ResponseWriter, status int, body string) string {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, body)
	return body
}

// cutShort promises the whole body and sends half of it; of none, it sends not
// even a status line.
func cutShort(w http.ResponseWriter, body []byte) string {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	if body == nil {
		return ""
	}
	half := string(body[:len(body)/2])
	fmt.Fprintf(conn, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), half)
	return half
}

func (s *spoiler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var named struct{ Reference string }
	json.Unmarshal(body, &named)
	post := r.Method == http.MethodPost
	if post {
		s.mu.Lock()
		s.keys[named.Reference] = append(s.keys[named.Reference], r.Header.Get("Idempotency-Key"))
		s.mu.Unlock()
	}
	if post && named.Reference == inUse {
		say(w, 409, `{"error":{"type":"idempotency_key_in_use"}}`)
		return
	}
	// A provider goes on working although its client has gone.
	q, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, *s.provider.Load()+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	q.Header = r.Header.Clone()
	q.GetBody = nil
	answer, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	honest, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	spoil, spoils := spoilt[named.Reference]
	if !post || !spoils {
		say(w, answer.StatusCode, string(honest))
		return
	}
	sent := spoil(w, honest)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[named.Reference] = sent
}

func (s *spoiler) seen(reference string) (keys []string, sent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys[reference]), s.sent[reference]
}

func TestJourney(t *testing.T) {
	t.Parallel()
	spoiler, spoilerAddress := newSpoiler(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	down := free.Addr().String()
	must(t, free.Close())
	j := startJourney(t, journeyConfig(journeyRails, "SPOILER", spoilerAddress, "DOWN", "http://"+down))
	spoiler.provider.Store(&j.book.base)
	must(t, j.CreateUser(t.Context(), UserOptions{Tenant: "default", Email: "ana@example.com", Roles: []string{"approver"}}, io.Discard))

	for name, part := range map[string]func(journey){
		"an approved payment is sent once and found when its answer is lost": journey.mainJob,
		"32 equal submissions are one operation and one effect":              journey.equalSubmissions,
		"16 ids with one reference are one effect":                           journey.oneReference,
		"Case029 a 500 after the effect is unknown and then found":           journey.case029,
		"Case038 a decline is rejected and replayed":                         journey.case038,
		"Case008 a batch run again from the start does nothing twice":        journey.case008,
		"Case007 a timeout is unknown until the late effect is found":        journey.case007,
		"Case035 a key in use is waited for":                                 journey.case035,
		"a receipt over another amount is held for a person":                 journey.wrongAmount,
		"a second effect is owed back":                                       journey.secondEffect,
		"Case035 a key in use for ever stays unknown":                        func(j journey) { j.inUseForEver(spoiler) },
		"a provider that is down costs no attempt, and a revoked token ends": func(j journey) { j.providerDown(down) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(j.in(t))
		})
	}
	for reference := range spoilt {
		if reference != "cut-double" {
			t.Run("Case037 an answer that is "+reference+" is unknown and then found", func(t *testing.T) {
				t.Parallel()
				j.in(t).case037(spoiler, reference)
			})
		}
	}
}

func (j journey) mainJob() {
	t, ctx := j.t, j.t.Context()
	const id = "inv-481"
	must(t, j.book.arm(ctx, id, "drop_after"))
	body := payment("pay", id, id, 184_000)
	h := j.call(http.MethodPost, "/v1/operations", body)
	h.is(t, 202, "", "await_approval", false)
	if h.text("status") != "awaiting_approval" || h.Header().Get("Location") != "/v1/operations/"+id {
		t.Fatal(h.Header(), h.Body)
	}
	j.happened(id, 0, 0)

	ana, _, err := j.Store.PersonByEmail(ctx, "ana@example.com")
	must(t, err)
	asked := j.stored(id)
	seen := store.Seen{Fingerprint: h.text("fingerprint"), Version: asked.Version}
	for _, wrong := range []store.Seen{{Fingerprint: "hf1:sha256:00", Version: seen.Version}, {Fingerprint: seen.Fingerprint, Version: seen.Version + 1}} {
		if _, err := j.Store.Approve(ctx, "default", id, store.Decision{Person: ana, Seen: wrong}); !errors.Is(err, store.ErrStale) {
			t.Fatal("what was not on the screen was approved: ", err)
		}
	}
	_, err = j.Store.Approve(ctx, "default", id, store.Decision{Person: ana, Seen: seen, Reason: "checked against the invoice"})
	must(t, err)

	j.read(id)
	if went := j.went(id); went != "awaiting_approval ready in_flight unknown confirmed" {
		t.Error("it went ", went)
	}
	j.happened(id, 1, 1)
	if o := j.stored(id); o.Attempts != 1 {
		t.Errorf("it took %d attempts", o.Attempts)
	}
	j.sentAsApproved(asked)
	approvals, err := j.Store.Approvals(ctx, "default", id)
	must(t, err)
	if len(approvals) != 1 || approvals[0].SpentAt == 0 || approvals[0].Fingerprint != asked.Fingerprint {
		t.Errorf("the approval is %+v", approvals)
	}
	h = j.call(http.MethodPost, "/v1/operations", body) // an agent that heard nothing says it again
	h.is(t, 200, "", "use_result", true)
	if h.Header().Get("Idempotent-Replayed") != "true" {
		t.Error("the repeat is answered ", h.Header())
	}
	j.happened(id, 1, 1)
}

// sentAsApproved compares the bytes in the provider's book with those that were
// approved: the stored normal form and the stamp, and nothing else.
func (j journey) sentAsApproved(approved ledger.Operation) {
	j.t.Helper()
	effects := j.effectsOf(approved.Terms.Reference)
	kept, err := j.Store.Request(j.t.Context(), "default", approved.OperationID)
	must(j.t, err)
	if len(effects) != 1 || !bytes.Equal(effects[0].Body, kept.Body) {
		j.t.Fatalf("the provider holds %s, kept is %s", effects, kept.Body)
	}
	stamp := fmt.Sprintf(`"metadata":{"operation":%q}`, approved.OrderID)
	var want, got map[string]any
	must(j.t, json.Unmarshal(approved.Payload, &want))
	must(j.t, json.Unmarshal(effects[0].Body, &got))
	delete(got, "metadata")
	if !strings.Contains(string(kept.Body), stamp) || fmt.Sprint(got) != fmt.Sprint(want) {
		j.t.Errorf("approved was %s, sent was %s", approved.Payload, kept.Body)
	}
}

func (j journey) equalSubmissions() {
	const id = "equal"
	answers := make(chan string, 32)
	var all sync.WaitGroup
	for range cap(answers) {
		all.Go(func() {
			h := j.pay("pay", id)
			answers <- fmt.Sprint(h.Code, " ", h.text("reason"))
		})
	}
	all.Wait()
	close(answers)
	fresh := 0
	for answer := range answers {
		switch answer {
		case "202 ":
			fresh++
		case "409 in_progress", "200 ": // the fast provider may be done by then
		default:
			j.t.Error("one was answered ", answer)
		}
	}
	if fresh != 1 {
		j.t.Errorf("%d of them were new", fresh)
	}
	j.read(id)
	j.happened(id, 1, 1)
}

func (j journey) oneReference() {
	const reference = "invoice-77"
	var goes, held atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			h := j.call(http.MethodPost, "/v1/operations", payment("pay", fmt.Sprintf("lost-id-%d", i), reference, 4800))
			switch {
			case h.Code == 202 && h.text("status") == "unknown_hold" && h.text("reason") == "same_reference" && h.text("next") == "await_human" && h.said["overlaps"] != nil:
				held.Add(1)
			case h.Code == 202 && h.text("next") == "wait" || h.Code == 202 && h.text("next") == "use_result":
				goes.Add(1)
			default:
				j.t.Error(h.Code, h.Body)
			}
		})
	}
	all.Wait()
	if goes.Load() != 1 || held.Load() != 15 {
		j.t.Errorf("%d go, %d are held", goes.Load(), held.Load())
	}
	for i := range 16 {
		if o := j.stored(fmt.Sprintf("lost-id-%d", i)); o.Status != ledger.UnknownHold {
			j.read(o.OperationID)
		}
	}
	j.happened(reference, 1, 1)
}

func (j journey) case029() {
	const id = "error-500"
	must(j.t, j.book.arm(j.t.Context(), id, "error_500_after"))
	j.begin("pay", id)
	j.until(id, "unknown or found", func(o ledger.Operation) bool { return o.EverUnknown })
	for range 3 {
		if h := j.pay("pay", id); h.Code != 409 && h.Code != 200 || h.text("status") == "rejected" {
			j.t.Error("the repeat is answered ", h.Code, h.Body)
		}
	}
	j.read(id)
	if went := j.went(id); went != "ready in_flight unknown confirmed" {
		j.t.Error("it went ", went)
	}
	j.happened(id, 1, 1)
}

func (j journey) case038() {
	const id = "declined"
	must(j.t, j.book.arm(j.t.Context(), id, "decline_402"))
	h := j.pay("pay", id, "Prefer: wait=60")
	h.is(j.t, 201, "declined", "stop", true)
	for range 2 {
		h := j.pay("pay", id)
		h.is(j.t, 200, "declined", "stop", true)
		if h.Header().Get("Idempotent-Replayed") != "true" || h.text("status") != "rejected" {
			j.t.Error(h.Header(), h.Body)
		}
	}
	j.happened(id, 1, 0)
	// A new try is a new operation; what was rejected does not hold it.
	h = j.call(http.MethodPost, "/v1/operations", payment("pay", "declined-again", id, 4800), "Prefer: wait=60")
	h.is(j.t, 201, "", "use_result", true)
	j.happened(id, 2, 1)
}

func (j journey) case008() {
	t := j.t
	const many = 60
	id := func(n int) string { return fmt.Sprintf("batch-%02d", n) }
	for n := range many {
		if n%8 != 0 { // most answers are lost
			must(t, j.book.arm(t.Context(), id(n), "drop_after"))
		}
	}
	run := func(until int) {
		var all sync.WaitGroup
		var next atomic.Int64
		for range 8 {
			all.Go(func() {
				for n := int(next.Add(1)) - 1; n < until; n = int(next.Add(1)) - 1 {
					if h := j.pay("pay", id(n)); h.Code != 202 && h.Code != 200 && h.text("reason") != "in_progress" {
						t.Error(id(n), h.Code, h.Body)
					}
				}
			})
		}
		all.Wait()
	}
	run(40) // the runner dies on the way
	run(many)
	for n := range many {
		j.untilStatus(id(n), ledger.Confirmed)
	}
	run(many)
	unknown := 0
	for n := range many {
		j.happened(id(n), 1, 1)
		if j.stored(id(n)).EverUnknown {
			unknown++
		}
	}
	if unknown != many-many/8-1 {
		t.Errorf("%d answers were lost", unknown)
	}
}

func (j journey) case007() {
	const id = "late"
	must(j.t, j.book.arm(j.t.Context(), id, "slow_after_ms:3000")) // done at once, answered after the timeout
	j.begin("pay_brisk", id)
	o := j.until(id, "unknown", func(o ledger.Operation) bool { return o.EverUnknown })
	if o.Status == ledger.Rejected {
		j.t.Error("a timeout is a rejection")
	}
	j.read(id)
	j.happened(id, 1, 1)
}

func (j journey) case035() {
	const id = "in-use"
	must(j.t, j.book.arm(j.t.Context(), id, "slow_ms:5000")) // the first request works on long after its client has gone
	j.begin("pay_brisk", id)
	j.read(id)
	if went := j.went(id); strings.Contains(went, "rejected") || !strings.HasPrefix(went, "ready in_flight unknown in_flight unknown") {
		j.t.Error("it went ", went)
	}
	attempts, err := j.Store.Attempts(j.t.Context(), "default", id)
	must(j.t, err)
	if !slices.ContainsFunc(attempts, func(a ledger.Attempt) bool { return a.HTTPStatus == 409 && a.Outcome == ledger.AttemptUnknown }) {
		j.t.Errorf("no attempt met the key in use: %+v", attempts)
	}
	requests, err := j.book.requests(j.t.Context(), id)
	must(j.t, err)
	for _, r := range requests {
		if r.Key != requests[0].Key || r.Key != j.stored(id).ProviderKey {
			j.t.Error("another key was used: ", r.Key)
		}
	}
	j.happened(id, len(attempts), 1)
}

// inUseForEver spends the rail's three attempts.
func (j journey) inUseForEver(s *spoiler) {
	j.begin("pay_spoiled", inUse)
	j.until(inUse, "sent three times", func(o ledger.Operation) bool {
		return o.Attempts == 3 && o.Status == ledger.Unknown && o.NextSendAt == 0 && o.Looks > 0
	})
	if went := j.went(inUse); strings.Contains(went, "rejected") || strings.Contains(went, "confirmed") {
		j.t.Error("it went ", went)
	}
	keys, _ := s.seen(inUse)
	if len(keys) != 3 || keys[0] != keys[1] || keys[1] != keys[2] || keys[0] != j.stored(inUse).ProviderKey {
		j.t.Error("it was sent with the keys ", keys)
	}
	j.pay("pay_spoiled", inUse).is(j.t, 409, "in_progress", "wait", false)
}

func (j journey) case037(s *spoiler, reference string) {
	j.begin("pay_spoiled", reference)
	j.read(reference)
	if went := j.went(reference); went != "ready in_flight unknown confirmed" {
		j.t.Error("it went ", went)
	}
	j.happened(reference, 1, 1)
	evidence, err := j.Store.Evidence(j.t.Context(), "default", reference)
	must(j.t, err)
	_, sent := s.seen(reference)
	if !slices.ContainsFunc(evidence, func(e ledger.Evidence) bool { return e.Source == "answer" && e.Attempt == 1 && string(e.Body) == sent }) {
		j.t.Errorf("the raw bytes %q are not kept: %+v", sent, evidence)
	}
}

func (j journey) wrongAmount() {
	const id = "wrong-amount"
	must(j.t, j.book.arm(j.t.Context(), id, "wrong_amount"))
	j.begin("pay", id)
	o := j.untilStatus(id, ledger.UnknownHold)
	h := j.call(http.MethodGet, "/v1/operations/"+id, "")
	h.is(j.t, 200, "receipt_mismatch", "await_human", false)
	if o.Reason != ledger.ReceiptMismatch || h.said["result"] != nil {
		j.t.Error("it is held for ", o.Reason, h.Body)
	}
	j.pay("pay", id).is(j.t, 409, "in_progress", "wait", false)
	j.happened(id, 1, 1)
}

func (j journey) secondEffect() {
	const id = "cut-double"
	must(j.t, j.book.arm(j.t.Context(), id, "double"))
	j.begin("pay_spoiled", id)
	j.read(id)
	j.happened(id, 1, 2)
	second := j.effectsOf(id)[1].ID
	owed, err := j.Store.RefundsOwed(j.t.Context(), "default")
	must(j.t, err)
	owed = slices.DeleteFunc(owed, func(e ledger.RefundOwed) bool { return e.OperationID != id })
	if len(owed) != 1 || owed[0].ReceiptID != second || owed[0].Amount != 4800 || owed[0].Currency != "EUR" || owed[0].Direction != "we_owe" {
		j.t.Errorf("owed is %+v, the second effect is %s", owed, second)
	}
}

// providerDown submits two payments while nobody listens, revokes the token of
// one, and starts the provider.
func (j journey) providerDown(addr string) {
	t := j.t
	gone := j
	gone.token = j.newToken("agent-gone")
	j.begin("pay_down", "down-stays")
	gone.begin("pay_down", "down-gone")
	// The oldest is tried; the others keep their places behind it.
	j.until("down-stays", "tried in vain", func(o ledger.Operation) bool { return strings.Contains(o.Detail, "could not be reached") })
	for _, id := range []string{"down-stays", "down-gone"} {
		o := j.stored(id)
		if o.Status != ledger.Ready || o.Attempts != 0 || o.OpenAttempts != 0 {
			t.Errorf("%s is %s with %d attempts", id, o.Status, o.Attempts)
		}
	}
	must(t, j.Store.RevokeToken(t.Context(), j.stored("down-gone").TokenID, operator))
	exe, err := os.Executable()
	must(t, err)
	_, stop, err := dispatch.StartSandboxChild(t.Context(), exe, []string{"--listen", addr}, nil)
	must(t, err)
	t.Cleanup(stop)

	j.book = sandboxBook{"http://" + addr}
	j.read("down-stays")
	if o := j.stored("down-stays"); o.Attempts != 1 {
		t.Errorf("it took %d attempts", o.Attempts)
	}
	j.happened("down-stays", 1, 1)
	h := j.call(http.MethodGet, "/v1/operations/down-gone", "", "Prefer: wait=60")
	h.is(t, 200, "authority_gone", "stop", true)
	if o := j.stored("down-gone"); o.Status != ledger.Rejected || o.Attempts != 0 {
		t.Errorf("what a revoked token asked for is %s with %d attempts", o.Status, o.Attempts)
	}
	j.happened("down-gone", 0, 0)
}

// A provider without duplicate protection gets a payment once, whatever becomes
// of it.
func TestJourneyWithoutDeduplication(t *testing.T) {
	t.Parallel()
	j := startJourney(t, journeyConfig(`
rails:
  sandbox: { adapter: sandbox, dedupe: { by: none }, quiet: 1s, LIMITS }
action_types:
  pay: { rail: sandbox, effect: charge, schema: SCHEMA }
timing: { unknown_for: 1s }
`))
	for id, c := range map[string]struct {
		fault   string
		effects int
		ends    func(journey, string)
	}{
		"nothing-came": {"drop_before", 0, func(j journey, id string) {
			o := j.untilStatus(id, ledger.UnknownHold)
			h := j.pay("pay", id)
			h.is(j.t, 409, "in_progress", "wait", false)
			if operation, _ := h.said["operation"].(map[string]any); o.Reason != ledger.Inconclusive || operation["next"] != "await_human" {
				j.t.Error("it is held for ", o.Reason, h.Body)
			}
		}},
		"answer-lost": {"drop_after", 1, journey.read},
		"500":         {"error_500_after", 1, journey.read},
		"honest":      {"", 1, journey.read},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			j := j.in(t)
			if c.fault != "" {
				must(t, j.book.arm(t.Context(), id, c.fault))
			}
			j.begin("pay", id)
			for range 3 {
				j.pay("pay", id, "Prefer: respond-async")
			}
			c.ends(j, id)
			j.happened(id, 1, c.effects)
			if o := j.stored(id); o.Attempts != 1 {
				t.Errorf("it took %d attempts", o.Attempts)
			}
		})
	}
}

// The end of the server's context is what SIGTERM is: a send under way is
// finished and recorded, nothing new begins, and whoever waits is answered.
func TestJourneyEndsWithTheAnswerRecorded(t *testing.T) {
	t.Parallel()
	j := startJourney(t, journeyConfig(`
rails:
  sandbox: { adapter: sandbox, quiet: 1s, limits: { concurrency: 1 } }
action_types:
  pay: { rail: sandbox, effect: charge, schema: SCHEMA }
`))
	must(t, j.book.arm(t.Context(), "slow", "slow_ms:2500"))
	j.begin("pay", "slow")
	soon(t, "the request is at the provider", func() bool {
		got, err := j.book.requests(t.Context(), "slow")
		must(t, err)
		return len(got) == 1
	})
	j.begin("pay", "next") // there is room for one at a time
	asked := make(chan struct{})
	fresh := j
	fresh.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	fresh.ctx = httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(asked) }})
	answer := inBackground(t, func() heard { return fresh.call(http.MethodGet, "/v1/operations/slow", "", "Prefer: wait=60") })
	<-asked
	// Connections are accepted in their order: once many later ones are answered,
	// the one that waits is inside.
	for range 30 {
		alive, err := fresh.client.Get(j.base + "/healthz")
		must(t, err)
		alive.Body.Close()
	}

	j.stop()
	answer().is(t, 200, "", "wait", false)
	must(t, j.stopped())
	if o := j.stored("slow"); o.Status != ledger.Confirmed || o.Receipt == nil || o.Attempts != 1 {
		t.Errorf("the slow one is %s: %s", o.Status, o.Detail)
	}
	if o := j.stored("next"); o.Status != ledger.Ready || o.Attempts != 0 {
		t.Errorf("the next one is %s", o.Status)
	}
	j.happened("slow", 1, 1)
	j.happened("next", 0, 0)
	if _, err := http.Get(j.base + "/healthz"); err == nil {
		t.Error("it still answers")
	}
}

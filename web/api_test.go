package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
)

// apiRules have a policy row of each kind and an action type that is only
// observed. Nothing listens at the rail's address.
const apiRules = `
rails:
  card:
    adapter: http
    base_url: http://127.0.0.1:1
    account: test
    dedupe: { by: key, header: Idempotency-Key, retention: 24h }
    send: { method: POST, path: /payments }
    answers: [ { status: [201], means: confirmed } ]
    receipt: { id: /id, amount: /amount }
    stamp: { header: X-Operation }
    lookup: { path: "/payments?reference={order_id}", items: /data }
action_types:
  pay: { rail: card, effect: charge, schema: SCHEMA }
  refund: { rail: card, effect: refund, schema: SCHEMA }
  watched: { rail: card, effect: watched, mode: observe, schema: SCHEMA }
policy:
  - { name: blocked recipients, when: { recipient: [acct_bad] }, then: deny }
  - { name: big, when: { currency: EUR, amount_over: 100000 }, then: ask }
  - { name: the rest, when: {}, then: allow }
`

const apiSchema = `{ type: object, required: [amount, currency, recipient], properties: { amount: { type: integer, minimum: 1, x-role: amount },
      currency: { type: string, x-role: currency, x-normalize: currency }, recipient: { type: string, maxLength: 200, x-role: recipient },
      reference: { type: string, x-role: reference }, metadata: { type: object, additionalProperties: { type: string } },
      sdk: { type: object, x-volatile: true, additionalProperties: { type: string } } } }`

// apiConfig has three tenants with the same rules: default, t1 and t2.
var apiConfig = func() string {
	inner := strings.ReplaceAll(apiRules, "\n", "\n    ")
	// The clock stands still, and so a bucket that is empty would stay so.
	return strings.ReplaceAll(apiRules+"limits: { requests_per_second: 1000000000 }\ntenants:\n  t1:"+inner+"\n  t2:"+inner, "SCHEMA", apiSchema)
}()

// order is a submission that is good; ID stands for its name.
const order = `{"operation_id":"ID","action_type":"pay","payload":{"amount":4800,"currency":"EUR","recipient":"acct-ID","reference":"ref-ID"}}`

func named(id string) string { return strings.ReplaceAll(order, "ID", id) }

// changed is the good submission with parts of it replaced.
func changed(oldNew ...string) string {
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(order, oldNew[i]) {
			panic("there is no " + oldNew[i] + " in the order")
		}
	}
	return strings.NewReplacer(oldNew...).Replace(order)
}

// agent is a program that writes with a token of its own.
type agent struct {
	*world
	tenant, token string
}

func (w *world) agent(tenant string) agent {
	token, _ := w.token(tenant, "agent-1", "owner@example.com")
	return agent{w, tenant, token}
}

// heard is an answer, with its JSON.
type heard struct {
	*httptest.ResponseRecorder
	said map[string]any
}

func (a agent) get(target string, headers ...string) heard {
	return a.call(http.MethodGet, target, "", headers...)
}

func (a agent) submit(body string, headers ...string) heard {
	return a.call(http.MethodPost, "/v1/operations", body, append(headers, "Content-Type: application/json")...)
}

func (a agent) call(method, target, body string, headers ...string) heard {
	a.t.Helper()
	return hear(a.t, a.do(method, target, body, append(headers, "Authorization: Bearer "+a.token)...))
}

// nexts are all words that may tell an agent what to do.
var nexts = []string{ledger.NextAwaitApproval, ledger.NextWait, ledger.NextAwaitHuman, ledger.NextUseResult, ledger.NextStop, ledger.NextFixRequest}

// hear reads an answer and checks what holds for every one of them.
func hear(t testing.TB, answer *httptest.ResponseRecorder) heard {
	t.Helper()
	h := heard{answer, map[string]any{}}
	if answer.Header().Get("X-Request-Id") == "" {
		t.Error("the answer has no X-Request-Id")
	}
	if answer.Code == http.StatusNotModified {
		if answer.Body.Len() > 0 {
			t.Error("a 304 has a body")
		}
		return h
	}
	must(t, json.Unmarshal(answer.Body.Bytes(), &h.said))
	media := "application/json"
	if answer.Code >= 400 {
		media = "application/problem+json"
		h.checkProblem(t)
	}
	if got := answer.Header().Get("Content-Type"); got != media {
		t.Errorf("Content-Type is %s, want %s", got, media)
	}
	if wait, given := h.said["retry_after"].(float64); given && answer.Code != 200 && answer.Code != 201 &&
		answer.Header().Get("Retry-After") != strconv.Itoa(int(wait)) {
		t.Errorf("Retry-After is %q, retry_after %v", answer.Header().Get("Retry-After"), wait)
	}
	return h
}

func (h heard) checkProblem(t testing.TB) {
	t.Helper()
	p, known := ledger.ProblemFor(h.text("reason"))
	if !known {
		t.Fatalf("%d with the unknown reason %q", h.Code, h.text("reason"))
	}
	if h.said["status"] != float64(h.Code) || h.Code != p.Status || h.said["type"] != "/problems/"+p.Reason || h.said["title"] != p.Title ||
		h.text("detail") == "" || p.Reason != "already_dispatched" && (h.said["next"] != p.Next || h.said["terminal"] != p.Terminal) {
		t.Errorf("%d is not the problem %s: %s", h.Code, p.Reason, h.Body)
	}
	operation, about := h.said["operation"].(map[string]any)
	if about && (h.said["order_id"] != operation["order_id"] || h.said["poll"] != operation["poll"] || h.said["operation_id"] != operation["operation_id"]) {
		t.Errorf("the problem and its operation name two: %s", h.Body)
	}
}

// text is a member that is a string; empty where it is null or missing.
func (h heard) text(name string) string {
	s, _ := h.said[name].(string)
	return s
}

// inBackground asks while the test goes on, and gives what waits for the answer.
func inBackground(t testing.TB, ask func() heard) (await func() heard) {
	answers := make(chan heard, 1)
	go func() {
		defer close(answers) // also where the asking ended the test
		answers <- ask()
	}()
	return func() heard {
		t.Helper()
		h, ok := <-answers
		if !ok {
			t.Fatal("no answer came")
		}
		return h
	}
}

// is compares an answer with a line of the contract.
func (h heard) is(t testing.TB, code int, reason, next string, terminal bool) {
	t.Helper()
	if h.Code != code || h.text("reason") != reason || h.text("next") != next || h.said["terminal"] != terminal {
		t.Errorf("answered %d reason %q next %q terminal %v, want %d %q %q %v\n%s",
			h.Code, h.text("reason"), h.text("next"), h.said["terminal"], code, reason, next, terminal, h.Body)
	}
	if !slices.Contains(nexts, h.text("next")) {
		t.Errorf("next is %q", h.text("next"))
	}
}

// count is how many operations the tenant has.
func (w *world) count(tenant string) int {
	w.t.Helper()
	page, err := w.Store.Operations(w.t.Context(), tenant, store.Filter{Limit: 200})
	must(w.t, err)
	return len(page.Items)
}

// absent fails the test if the id was used up.
func (a agent) absent(id string) {
	a.t.Helper()
	if o, err := a.Store.Operation(a.t.Context(), a.tenant, id); !errors.Is(err, store.ErrNotFound) {
		a.t.Errorf("%s is taken: %s %v", id, o.Status, err)
	}
}

// receiptFor is what a provider that did it answers.
func receiptFor(o ledger.Operation) ledger.Answer {
	amount := o.Terms.Amount
	return ledger.Answer{Finding: ledger.Found, HTTPStatus: 201, Receipt: &ledger.Receipt{ID: "ch_" + o.OperationID, Amount: &amount, Currency: o.Terms.Currency}}
}

func (a agent) confirmed(id string) ledger.Operation {
	a.t.Helper()
	a.submit(named(id)).is(a.t, 202, "", "wait", false)
	o := a.answer(a.stored(a.tenant, id), receiptFor(a.stored(a.tenant, id)))
	if o.Status != ledger.Confirmed {
		a.t.Fatalf("it should be confirmed, and is %s", o.Status)
	}
	return o
}

// marked is an operation of which an attempt is under way.
func (a agent) marked(id string) ledger.Operation {
	a.t.Helper()
	a.submit(named(id)).is(a.t, 202, "", "wait", false)
	claims, err := a.Store.Claim(a.t.Context(), "worker-1", a.tenant, "card", 50, 50)
	must(a.t, err)
	for _, c := range claims {
		if c.Operation.OperationID != id {
			must(a.t, a.Store.Release(a.t.Context(), c, 0, "another one's turn"))
			continue
		}
		_, err := a.Store.Mark(a.t.Context(), c, 10*time.Second, a.Config().Route(c.Operation).Render)
		must(a.t, err)
	}
	return a.stored(a.tenant, id)
}

func TestListPagesThroughEverythingOnce(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	w.agent("t1").submit(named("foreign"))
	var want []string
	for i := range 7 {
		id := fmt.Sprintf("op-%d", i)
		a.submit(changed("ID", id, `"payload"`, `"run_id":"run-`+strconv.Itoa(i%2)+`","payload"`))
		want = append([]string{id}, want...)
	}
	var got []string
	target := "/v1/operations?limit=3"
	for pages := 1; target != ""; pages++ {
		h := a.get(target)
		if h.Code != 200 || pages > 3 {
			t.Fatalf("page %d of %s: %d %s", pages, target, h.Code, h.Body)
		}
		for _, item := range h.said["items"].([]any) {
			got = append(got, item.(map[string]any)["operation_id"].(string))
		}
		target = ""
		if link := h.Header().Get("Link"); link != "" {
			target = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
			if !strings.Contains(target, "limit=3") || !strings.Contains(target, "cursor="+h.text("next_cursor")) {
				t.Error("the link to the next page is ", link)
			}
		} else if h.said["next_cursor"] != nil {
			t.Error("a cursor without a link")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want newest first %v", got, want)
	}
	for query, want := range map[string]int{
		"run_id=run-1": 3, "reference=ref-op-4": 1, "action_type=pay": 7, "action_type=refund": 0, "status=ready": 7,
		"status=confirmed,ready": 7, "status=unknown": 0, "reference=ref-foreign": 0, "run_id=run-0&reference=ref-op-2": 1,
	} {
		if h := a.get("/v1/operations?" + query); h.Code != 200 || len(h.said["items"].([]any)) != want {
			t.Errorf("%s: %d %s, want %d", query, h.Code, h.Body, want)
		}
	}
	empty := w.agent("t2").get("/v1/operations")
	if empty.Body.String() != `{"items":[],"next_cursor":null}`+"\n" {
		t.Error("an empty list is ", empty.Body)
	}
}

func TestListRefusesWhatItDoesNotUnderstand(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	a.submit(named("op-1"))
	for query, place := range map[string]string{
		"limit=0": "limit", "limit=201": "limit", "limit=ten": "limit", "status=lost": "status", "status=ready,": "status", "cursor=%21%21": "cursor",
		"cursor=-1": "cursor", "tenant=t2": "tenant", "Status=ready": "Status", "status=ready&status=unknown": "status", "reference=%zz": "query",
		"status=ready;limit=1": "query",
	} {
		h := a.get("/v1/operations?" + query)
		h.is(t, 400, "invalid_request", "fix_request", false)
		if !strings.HasPrefix(h.text("detail"), place+": ") {
			t.Errorf("%s: does not name %s: %s", query, place, h.text("detail"))
		}
	}
}

func TestETagSavesWhatDidNotChange(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	first := a.submit(named("op-1")).Header().Get("ETag")
	path := "/v1/operations/op-1"
	h := a.get(path)
	if h.Code != 200 || h.Header().Get("ETag") != first || first == "" {
		t.Fatalf("%d with %s, submitting said %s", h.Code, h.Header().Get("ETag"), first)
	}
	for _, known := range []string{first, "W/" + first, `"0", ` + first, "*"} {
		if h := a.get(path, "If-None-Match: "+known); h.Code != 304 || h.Header().Get("ETag") != first {
			t.Errorf("If-None-Match %s: %d", known, h.Code)
		}
	}
	if h := a.get(path, `If-None-Match: "0"`); h.Code != 200 {
		t.Error("another tag: ", h.Code)
	}
	a.lose(a.stored("default", "op-1"))
	if h := a.get(path, "If-None-Match: "+first); h.Code != 200 || h.Header().Get("ETag") == first || h.text("status") != "unknown" {
		t.Error("after a change: ", h.Code, h.Body)
	}
}

func TestAliasChangesItsETagWithItsOriginal(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	a.submit(named("first"))
	a.submit(changed("ref-ID", "ref-first", "ID", "second"))
	w.same("second")
	h := a.get("/v1/operations/second")
	if h.Code != 200 || h.text("duplicate_of") != "first" || h.text("status") != "ready" {
		t.Fatal(h.Code, h.Body)
	}
	w.answer(w.stored("default", "first"), receiptFor(w.stored("default", "first")))
	after := a.get("/v1/operations/second", "If-None-Match: "+h.Header().Get("ETag"))
	after.is(t, 200, "", "use_result", true)
	if result, _ := after.said["result"].(map[string]any); result["id"] != "ch_first" {
		t.Error("the alias shows ", after.Body)
	}
}

// same lets a person say that a held operation is the purchase it overlaps.
func (w *world) same(id string) {
	w.t.Helper()
	o := w.stored("default", id)
	_, err := w.Store.SamePurchase(w.t.Context(), "default", id, store.Decision{Person: w.person("default", "ana@example.com", "approver"),
		Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}, Reason: "one invoice", Original: o.Overlaps[0].OperationID})
	must(w.t, err)
}

func TestRequestIDIsTheCallersWhereItIsUsable(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	if got := a.get("/v1/operations", "X-Request-Id: trace-77:a.b_c").Header().Get("X-Request-Id"); got != "trace-77:a.b_c" {
		t.Error("it was replaced by ", got)
	}
	own := regexp.MustCompile(`^req_[0-9a-f]{16}$`)
	for _, bad := range []string{"", "two words", "<script>", strings.Repeat("a", 129), "x\u00e9"} {
		if got := a.get("/v1/operations", "X-Request-Id: "+bad).Header().Get("X-Request-Id"); !own.MatchString(got) {
			t.Errorf("%q came back as %q", bad, got)
		}
	}
}

// What cannot be found has one answer, so that nobody learns whether another
// tenant has it. The routes come from the router: a new one is in the test.
func TestForeignAbsentAndMalformedIDsAreOneAnswer(t *testing.T) {
	w := newServer(t, apiConfig)
	w.agent("t1").confirmed("secret-1")
	a := w.agent("t2")
	e := echo.New()
	w.routeAPI(e)
	tried := 0
	for _, r := range e.Routes() {
		if !strings.Contains(r.Path, ":id") {
			continue
		}
		tried++
		absent := a.call(r.Method, strings.Replace(r.Path, ":id", "absent-1", 1), "")
		absent.is(t, 404, "not_found", "fix_request", false)
		for _, id := range []string{"secret-1", "-begins-badly", "%20", "a%2Fb", "a%00b", "%zz", strings.Repeat("a", 129), "%C3%A9", "..%2F", "secret-1%20"} {
			if id == "%zz" { // the HTTP server itself refuses it
				continue
			}
			h := a.call(r.Method, strings.Replace(r.Path, ":id", id, 1), "")
			if h.Code != 404 || h.Body.String() != absent.Body.String() {
				t.Errorf("%s %s with %s: %d %s", r.Method, r.Path, id, h.Code, h.Body)
			}
			if !sameHeaders(h, absent) {
				t.Errorf("%s %s with %s: other headers %v", r.Method, r.Path, id, h.Header())
			}
		}
	}
	if tried < 2 {
		t.Errorf("only %d routes take an id", tried)
	}
	for _, path := range []string{"/v1/", "/v1/nothing", "/v1/operations/", "/v1/operations/x/y/z", "/v1/operation"} {
		if h := a.do(http.MethodGet, path, "", "Authorization: Bearer "+a.token); h.Code != 404 {
			t.Errorf("%s: %d", path, h.Code)
		}
	}
}

func sameHeaders(a, b heard) bool {
	for name, values := range a.Header() {
		if name != "X-Request-Id" && name != "Ratelimit" && !slices.Equal(values, b.Header()[name]) {
			return false
		}
	}
	return len(a.Header()) == len(b.Header())
}

func TestCase011TenantsShareNothing(t *testing.T) {
	w := newServer(t, apiConfig)
	first := w.agent("t1")
	mine := first.confirmed("op-A")
	second := w.agent("t2")
	h := second.submit(named("op-A"))
	h.is(t, 202, "", "wait", false)
	theirs := w.stored("t2", "op-A")
	if h.Header().Get("Idempotent-Replayed") != "" || h.said["overlaps"] != nil || h.text("status") != "ready" {
		t.Error("the second tenant learns of the first: ", h.Body)
	}
	if theirs.OrderID == mine.OrderID || theirs.ProviderKey == mine.ProviderKey {
		t.Error("two tenants share a name at the provider")
	}
	if theirs.Fingerprint != mine.Fingerprint {
		t.Error("the same bytes have two fingerprints")
	}
	if strings.Contains(h.Body.String(), mine.OrderID) || strings.Contains(h.Body.String(), "ch_op-A") {
		t.Error("the answer holds what is the first tenant's: ", h.Body)
	}
	other := second.submit(strings.Replace(named("op-A"), "4800", "4900", 1))
	other.is(t, 409, "request", "stop", true)
	if other.text("order_id") != theirs.OrderID {
		t.Error("compared with another tenant's: ", other.Body)
	}
	if after := w.stored("t1", "op-A"); after.Version != mine.Version {
		t.Error("the first tenant's operation changed")
	}
}

func TestTenantIsTheTokensWhateverIsAsked(t *testing.T) {
	w := newServer(t, apiConfig)
	w.agent("t1").submit(named("op-A"))
	a := w.agent("t2")
	for _, query := range []string{"tenant=t1", "tenant_id=t1", "tenant=t1,t2", "tenant=", "tenant=t2&tenant=t1"} {
		a.get("/v1/operations?"+query).is(t, 400, "invalid_request", "fix_request", false)
	}
	h := a.get("/v1/operations", "X-Tenant: t1", "X-Tenant-Id: t1")
	if h.Code != 200 || len(h.said["items"].([]any)) != 0 {
		t.Error("a header chose the tenant: ", h.Body)
	}
}

func TestCase002OneReferenceUnderTwoIdsIsHeld(t *testing.T) {
	a := newServer(t, apiConfig).agent("t1")
	var codes sync.Map
	var all sync.WaitGroup
	for _, id := range []string{"op-A", "op-B"} {
		all.Go(func() {
			codes.Store(id, a.do(http.MethodPost, "/v1/operations", changed("ref-ID", "order-77", "ID", id), "Content-Type: application/json", "Authorization: Bearer "+a.token).Code)
		})
	}
	all.Wait()
	var goes, waits int
	for _, id := range []string{"op-A", "op-B"} {
		if code, _ := codes.Load(id); code != 202 {
			t.Errorf("%s: %v", id, code)
		}
		switch o := a.stored("t1", id); {
		case o.Status == ledger.Ready:
			goes++
		case o.Status == ledger.UnknownHold && o.Reason == ledger.SameReference:
			waits++
		}
	}
	if goes != 1 || waits != 1 {
		t.Errorf("%d go, %d wait for a person", goes, waits)
	}
}

func TestCase016ParallelSubmissionsAreOneOperation(t *testing.T) {
	a := newServer(t, apiConfig).agent("t1")
	const many = 50
	codes := make(chan string, many)
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			h := a.submit(named("op-A"))
			codes <- fmt.Sprint(h.Code, h.text("reason"))
		})
	}
	all.Wait()
	close(codes)
	got := map[string]int{}
	for c := range codes {
		got[c]++
	}
	if got["202"] != 1 || got["409in_progress"] != many-1 {
		t.Error("the answers are ", got)
	}
	if a.count("t1") != 1 {
		t.Error("there are ", a.count("t1"))
	}
}

// Two action types race for one id: whoever is second is told so, also when the
// payloads are equal.
func TestRaceOfActionTypesIsAMismatch(t *testing.T) {
	a := newServer(t, apiConfig).agent("t1")
	for round := range 20 {
		id := fmt.Sprintf("op-%d", round)
		var all sync.WaitGroup
		for _, action := range []string{"pay", "refund"} {
			all.Go(func() {
				h := a.submit(changed(`"pay"`, strconv.Quote(action), "ID", id))
				if h.Code != 202 && (h.text("reason") != "request" || fmt.Sprint(h.said["mismatch"]) != "[/action_type]") {
					t.Errorf("%s: %d %s", action, h.Code, h.Body)
				}
			})
		}
		all.Wait()
	}
}

func (w *world) now() time.Time { return time.UnixMilli(w.clock.Load()) }

func TestStoreThatCannotCommitStillReads(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	a.submit(named("op-1")).is(t, 202, "", "wait", false)
	writable := w.Store
	reading, err := store.OpenForReading(t.Context(), store.Options{Folder: w.folder, Now: w.now})
	must(t, err)
	t.Cleanup(func() { reading.Close() })

	w.Store = reading
	a.call(http.MethodPost, "/v1/operations/op-1/cancel", "").is(t, 503, "store_unavailable", "wait", false)
	a.get("/v1/operations/op-1").is(t, 200, "", "wait", false)
	if h := a.get("/v1/operations"); h.Code != 200 {
		t.Error("the list: ", h.Code)
	}
	if ready := w.do(http.MethodGet, "/readyz", ""); ready.Code != 503 {
		t.Error("it calls itself ready: ", ready.Code)
	}
	if alive := w.do(http.MethodGet, "/healthz", ""); alive.Code != 200 {
		t.Error("it calls itself dead: ", alive.Code)
	}

	w.Store = writable
	if o := w.stored("default", "op-1"); o.Status != ledger.Ready || o.Version != 1 {
		t.Errorf("something was recorded: %s version %d", o.Status, o.Version)
	}
}

func TestStoreThatCannotCommitUsesUpNoID(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	a.submit(named("op-1")).is(t, 202, "", "wait", false)
	must(t, w.Store.Close())
	for name, h := range map[string]heard{
		"submitting": a.submit(named("op-2")), "repeating": a.submit(named("op-1")), "with patience": a.submit(named("op-2"), "Prefer: wait=1"),
		"reading": a.get("/v1/operations/op-1"), "listing": a.get("/v1/operations"), "cancelling": a.call(http.MethodPost, "/v1/operations/op-1/cancel", ""),
	} {
		h.is(t, 503, "store_unavailable", "wait", false)
		if h.Header().Get("Retry-After") != "2" || h.said["retry_after"] != 2.0 {
			t.Errorf("%s: Retry-After %q, %v", name, h.Header().Get("Retry-After"), h.said["retry_after"])
		}
	}
	st, err := store.Open(t.Context(), store.Options{Folder: w.folder, Now: w.now})
	must(t, err)
	t.Cleanup(func() { st.Close() })
	must(t, st.SetRulebooks(t.Context(), w.Config().Rulebooks()))
	w.Store = st
	a.absent("op-2")
	if o := w.stored("default", "op-1"); o.Status != ledger.Ready || o.Version != 1 || w.count("default") != 1 {
		t.Errorf("something was recorded: %s version %d of %d", o.Status, o.Version, w.count("default"))
	}
	a.submit(named("op-2")).is(t, 202, "", "wait", false)
}

// An agent's token is no person: no page takes it.
func TestAgentsDecideNothing(t *testing.T) {
	w := newServer(t, apiConfig)
	w.person("default", "ana@example.com", "approver")
	a := w.agent("default")
	a.submit(changed("4800", "200000", "ID", "op-1")).is(t, 202, "", "await_approval", false)
	o := w.stored("default", "op-1")
	form := "fingerprint=" + o.Fingerprint + "&version=1&reason=because"
	for act := range acts {
		answer := w.do(http.MethodPost, "/operations/op-1/"+act, form, "Authorization: Bearer "+a.token, "Content-Type: application/x-www-form-urlencoded")
		if answer.Code < 300 || answer.Code == 303 && !strings.HasPrefix(answer.Header().Get("Location"), "/login") {
			t.Errorf("%s: %d to %s", act, answer.Code, answer.Header().Get("Location"))
		}
	}
	if after := w.stored("default", "op-1"); after.Version != o.Version {
		t.Errorf("an agent made it %s", after.Status)
	}
}

// A session cookie is no agent: the API takes bearer tokens alone.
func TestSessionCookieIsNoToken(t *testing.T) {
	w := newServer(t, apiConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	h := hear(t, w.do(http.MethodPost, "/v1/operations", named("op-1"), "Cookie: "+b.cookie, "Content-Type: application/json"))
	h.is(t, 401, "unauthorized", "fix_request", false)
	h = hear(t, w.do(http.MethodGet, "/v1/operations", "", "Cookie: "+b.cookie))
	h.is(t, 401, "unauthorized", "fix_request", false)
}

// endless is a body that never ends, and counts what was taken from it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

func TestCase169EndlessBodyIsCutBeforeItIsRead(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	for name, c := range map[string]struct {
		length int64
		header string
		code   int
		reason string
		read   int
	}{
		"announced":         {2 << 30, "", 413, "body_too_large", 0},
		"a byte too many":   {maxBody + 1, "", 413, "body_too_large", 0},
		"chunked":           {-1, "", 413, "body_too_large", maxBody + 4096},
		"compressed":        {-1, "gzip", 415, "media_type", 0},
		"compressed, short": {100, "br", 415, "media_type", 0},
	} {
		body := &endless{}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/operations", io.NopCloser(body))
		r.ContentLength = c.length
		r.Header.Set("Authorization", "Bearer "+a.token)
		r.Header.Set("Content-Type", "application/json")
		if c.header != "" {
			r.Header.Set("Content-Encoding", c.header)
		}
		answer := httptest.NewRecorder()
		w.handler.ServeHTTP(answer, r)
		conforms(t, r.Method, r.URL.Path, answer.Code, answer.Header(), answer.Body.Bytes())
		hear(t, answer).is(t, c.code, c.reason, "fix_request", false)
		if body.read > c.read {
			t.Errorf("%s: %d bytes were read", name, body.read)
		}
	}
	if w.count("default") != 0 {
		t.Error("something was recorded")
	}
}

// FuzzSubmit sends any bytes as a body: whatever they are, the answer is one of
// the contract's, and never a fault of the server.
func FuzzSubmit(f *testing.F) {
	for _, seed := range append(slices.Clone(strictCases), refusedBodies()...) {
		f.Add([]byte(seed))
	}
	f.Add([]byte(named("op-1")))
	f.Add([]byte(strings.Replace(named("op-1"), "4800", "200000", 1)))
	w := newServer(f, apiConfig)
	a := w.agent("default")
	allowed := []int{200, 202, 400, 403, 409, 413, 415, 422, 429}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/operations", strings.NewReader(string(body)))
		r.Header.Set("Authorization", "Bearer "+a.token)
		r.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		w.handler.ServeHTTP(answer, r)
		conforms(t, r.Method, r.URL.Path, answer.Code, answer.Header(), answer.Body.Bytes())
		h := hear(t, answer)
		if !slices.Contains(allowed, h.Code) {
			t.Fatalf("%d %s\n%q", h.Code, h.Body, body)
		}
	})
}

func TestAWrongMethodIsNotAnAbsentOperation(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	for target, allow := range map[string]string{
		"/v1/operations":             "GET, POST",
		"/v1/operations/op-A":        "GET",
		"/v1/operations/op-A/cancel": "POST",
		"/v1/intents":                "POST",
	} {
		for _, method := range []string{"PUT", "DELETE", "PATCH"} {
			got := a.call(method, target, "")
			if got.Code != 405 || !strings.Contains(got.Body.String(), `"method_not_allowed"`) {
				t.Errorf("%s %s: %d %s", method, target, got.Code, got.Body)
			}
			for _, m := range strings.Split(allow, ", ") {
				if !strings.Contains(got.Header().Get("Allow"), m) {
					t.Errorf("%s %s: Allow is %q", method, target, got.Header().Get("Allow"))
				}
			}
		}
	}
	if got := w.do("HEAD", "/healthz", ""); got.Code != 200 {
		t.Errorf("HEAD where GET is answered: %d", got.Code)
	}
}

func TestATraceIsKeptWithWhatItCaused(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	w := newServer(t, apiConfig)
	a := w.agent("default")
	a.submit(named("op-A"), "traceparent: "+trace)
	a.submit(named("op-B"), "traceparent: not-a-trace")
	for id, want := range map[string]bool{"op-A": true, "op-B": false} {
		entries, err := w.Store.Timeline(t.Context(), "default", id)
		must(t, err)
		if len(entries) == 0 || strings.Contains(entries[0].Fact, trace) != want || strings.Contains(entries[0].Fact, "not-a-trace") {
			t.Errorf("%s: %+v", id, entries)
		}
	}
}

// Of 24 hours 20 are used: the provider's clock and pruning are not ours.
func TestDetailSaysUntilWhenARepeatIsRecognised(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	a.marked("op-A")
	const good = "The provider recognises its key until 2026-03-05T05:00:00.000Z; only this gateway may repeat it."
	if h := a.get("/v1/operations/op-A"); !strings.HasSuffix(h.text("detail"), good) {
		t.Error(h.text("detail"))
	}
	w.pass(20 * time.Hour)
	if h := a.get("/v1/operations/op-A"); strings.Contains(h.text("detail"), "recognises") {
		t.Error("the key may be forgotten by now: ", h.text("detail"))
	}
	if h := a.submit(named("op-B")); strings.Contains(h.text("detail"), "recognises") {
		t.Error("nothing was sent, so nothing is recognised: ", h.text("detail"))
	}
}

func TestPayloadThatCannotBeSentIsRefusedAtOnce(t *testing.T) {
	w := newServer(t, `
rails:
  post: { adapter: smtp, base_url: "smtp+plain://127.0.0.1:1", mail: { from: "Billing <billing@example.com>" } }
action_types:
  send_email: { rail: post, effect: email, schema: { type: object, required: [to, subject, body], properties: {
    to: { type: string, x-role: recipient }, subject: { type: string }, body: { type: string } } } }
policy: [ { name: all, when: {}, then: allow } ]
`)
	a := w.agent("default")
	mail := func(subject string) string {
		return `{"operation_id":"op-A","action_type":"send_email","payload":{"to":"ana@example.org","body":"B","subject":"` + subject + `"}}`
	}
	h := a.submit(mail(`Hello\nBcc: eve@example.org`))
	h.is(t, 422, "invalid_payload", "fix_request", false)
	if !strings.Contains(h.text("detail"), "subject") || strings.Contains(h.text("detail"), "rails.") {
		t.Error(h.text("detail"))
	}
	a.submit(mail("Hello")).is(t, 202, "", "wait", false)
}

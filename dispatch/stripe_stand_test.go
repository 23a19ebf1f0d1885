package dispatch_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// stripeStand behaves as Stripe documents its API v1 to behave, and keeps its
// own book: it stores what a request was answered under its key, a 500 too, and
// replays that for 24 hours; after that the key is forgotten and acts again.
// Errors of form, a key in use and a rate limit are not stored. Lists show a
// record at once, the search only later.
type stripeStand struct {
	*httptest.Server
	now func() time.Time

	mu       sync.Mutex
	stored   map[string]standAnswer
	records  []*standRecord // newest last
	posts    []standPost
	gets     []string
	faults   []string
	listDown bool
	searches func(age time.Duration) bool // whether the search shows a record of that age
}

type standAnswer struct {
	request string // endpoint and parameters
	status  int
	body    any
	at      time.Time
}

// standRecord is a payment intent or a refund. Only one that succeeded, or will,
// is an effect.
type standRecord struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"`
	Currency      string            `json:"currency"`
	Customer      *string           `json:"customer"`
	PaymentIntent string            `json:"payment_intent,omitempty"`
	Status        string            `json:"status"`
	Created       int64             `json:"created"`
	Metadata      map[string]string `json:"metadata"`
}

type standPost struct {
	Path, Key, Body string
	Status          int
	Replayed        bool
}

func newStripeStand(t *testing.T, now func() time.Time) *stripeStand {
	s := &stripeStand{now: now, stored: map[string]standAnswer{}, searches: func(age time.Duration) bool { return age >= time.Minute }}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// The faults that the next requests to act meet, one each.
const (
	losesRequest    = "request lost"     // cut before anything runs
	losesAnswer     = "answer lost"      // done, then cut
	storesA500After = "500 after acting" // done, and 500 for the life of the key
	storesA500      = "500 before acting"
	keyInUse        = "409 key in use"
	rateLimits      = "429"
	foreignKey      = "key used for other parameters"
	declines        = "declined"
	loses402        = "declined, answer lost"
	findsInvalid    = "400 parameter"
)

func (s *stripeStand) fault(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, names...)
}

func (s *stripeStand) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer sk_test_") {
		write(w, 401, problemOf("invalid_request_error", "", "no key"))
		return
	}
	if r.Method == http.MethodGet {
		s.gets = append(s.gets, r.URL.RequestURI())
		s.list(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	form, err := url.ParseQuery(string(body))
	if err != nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.Header.Get("Stripe-Version") == "" {
		write(w, 400, problemOf("invalid_request_error", "", "not a form of a version"))
		return
	}
	fault := ""
	if len(s.faults) > 0 {
		fault, s.faults = s.faults[0], s.faults[1:]
	}
	post := standPost{Path: r.URL.Path, Key: r.Header.Get("Idempotency-Key"), Body: string(body)}
	if fault == losesRequest {
		s.posts = append(s.posts, post)
		panic(http.ErrAbortHandler)
	}
	status, answer, replayed := s.act(post, form, fault)
	post.Status, post.Replayed = status, replayed
	s.posts = append(s.posts, post)
	if fault == losesAnswer || fault == loses402 {
		panic(http.ErrAbortHandler)
	}
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	write(w, status, answer)
}

// act is the idempotency layer around what a request does.
func (s *stripeStand) act(post standPost, form url.Values, fault string) (status int, answer any, replayed bool) {
	request := post.Path + "?" + form.Encode()
	if fault == foreignKey {
		s.stored[post.Key] = standAnswer{"/v1/customers?name=another", 200, map[string]any{"id": "cus_1"}, s.now()}
	}
	if was, known := s.stored[post.Key]; known && s.now().Sub(was.at) < 24*time.Hour {
		if was.request != request {
			return 400, problemOf("idempotency_error", "", "Keys for idempotent requests can only be used with the same parameters they were first used with."), false
		}
		return was.status, was.body, true
	}
	switch fault {
	case keyInUse:
		return 409, problemOf("invalid_request_error", "idempotency_key_in_use", "another request is under way"), false
	case rateLimits:
		return 429, problemOf("invalid_request_error", "rate_limit", "too many"), false
	}
	if status, answer = s.invalid(post.Path, form, fault); status != 0 {
		return status, answer, false
	}
	status, answer = s.perform(post.Path, form, fault)
	s.stored[post.Key] = standAnswer{request, status, answer, s.now()}
	return status, answer, false
}

func (s *stripeStand) invalid(path string, form url.Values, fault string) (int, any) {
	switch {
	case fault == findsInvalid || path == "/v1/payment_intents" && form.Get("amount") == "":
		return 400, problemOf("invalid_request_error", "parameter_missing", "Missing required param: amount.")
	case path != "/v1/payment_intents" && path != "/v1/refunds":
		return 404, problemOf("invalid_request_error", "", "no such place")
	}
	return 0, nil
}

// perform runs what was asked. A request that gets here counts, whatever its
// answer says.
func (s *stripeStand) perform(path string, form url.Values, fault string) (int, any) {
	if fault == storesA500 {
		return 500, problemOf("api_error", "", "something went wrong")
	}
	amount, _ := strconv.ParseInt(form.Get("amount"), 10, 64)
	r := &standRecord{Object: "payment_intent", Amount: amount, Currency: form.Get("currency"), Created: s.now().Unix(), Metadata: map[string]string{}, Status: "requires_confirmation"}
	for name, values := range form {
		if m := regexp.MustCompile(`^metadata\[(.+)\]$`).FindStringSubmatch(name); m != nil {
			r.Metadata[m[1]] = values[0]
		}
	}
	if customer := form.Get("customer"); customer != "" {
		r.Customer = &customer
	}
	r.ID = fmt.Sprintf("pi_%d", len(s.records)+1)
	if path == "/v1/refunds" {
		r.ID, r.Object, r.PaymentIntent = fmt.Sprintf("re_%d", len(s.records)+1), "refund", form.Get("payment_intent")
		of := s.record(r.PaymentIntent)
		if of == nil || of.Status != "succeeded" {
			return 400, problemOf("invalid_request_error", "resource_missing", "No such payment_intent")
		}
		r.Currency, r.Status = of.Currency, "succeeded"
	} else if form.Get("confirm") == "true" {
		r.Status = map[string]string{"pm_processing": "processing", "pm_3ds": "requires_action"}[form.Get("payment_method")]
		if r.Status == "" {
			r.Status = "succeeded"
		}
	}
	if fault == declines || fault == loses402 {
		r.Status = "requires_payment_method"
	}
	s.records = append(s.records, r)
	switch {
	case r.Status == "requires_payment_method":
		return 402, problemOf("card_error", "card_declined", "Your card was declined.")
	case fault == storesA500After:
		return 500, problemOf("api_error", "", "something went wrong")
	}
	return 200, r
}

func (s *stripeStand) record(id string) *standRecord {
	i := slices.IndexFunc(s.records, func(r *standRecord) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return s.records[i]
}

var searched = regexp.MustCompile(`^metadata\['operation'\]:'([^']+)'$`)

// list shows the newest first, page by page; the search knows our stamp only.
func (s *stripeStand) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	kind, search := map[string]string{"/v1/payment_intents": "payment_intent", "/v1/refunds": "refund", "/v1/payment_intents/search": "payment_intent"}[r.URL.Path], strings.HasSuffix(r.URL.Path, "/search")
	stamp := searched.FindStringSubmatch(q.Get("query"))
	if s.listDown || kind == "" || search != (stamp != nil) {
		write(w, 503, problemOf("api_error", "", "not now"))
		return
	}
	since, _ := strconv.ParseInt(q.Get("created[gte]"), 10, 64)
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil {
		limit = 10
	}
	data, more, behind := []*standRecord{}, false, q.Get("starting_after")
	for _, r := range slices.Backward(s.records) {
		switch {
		case r.Object != kind || r.Created < since:
		case search && (r.Metadata["operation"] != stamp[1] || !s.searches(s.now().Sub(time.Unix(r.Created, 0)))):
		case behind != "":
			if r.ID == behind {
				behind = ""
			}
		case len(data) == limit:
			more = true
		default:
			data = append(data, r)
		}
	}
	list := map[string]any{"object": "list", "url": r.URL.Path, "data": data, "has_more": more}
	if search {
		list["object"], list["next_page"] = "search_result", nil
	}
	write(w, 200, list)
}

// effects are what the book says happened under a stamp: money that moved or
// will.
func (s *stripeStand) effects(stamp string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.records {
		if r.Metadata["operation"] == stamp && r.Status != "requires_payment_method" && r.Status != "requires_confirmation" {
			n++
		}
	}
	return n
}

// postsOf are the requests to act that carried a stamp.
func (s *stripeStand) postsOf(stamp string) []standPost {
	s.mu.Lock()
	defer s.mu.Unlock()
	var mine []standPost
	for _, p := range s.posts {
		if strings.Contains(p.Body, stamp) {
			mine = append(mine, p)
		}
	}
	return mine
}

func (s *stripeStand) set(change func(*stripeStand)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func problemOf(kind, code, message string) any {
	return map[string]any{"error": map[string]string{"type": kind, "code": code, "message": message}}
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

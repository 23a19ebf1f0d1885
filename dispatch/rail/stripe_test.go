package rail

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82"

	"holdfast/store/ledger"
)

// intent is a payment as an agent asks for it: the names are Stripe's own.
func intent() ledger.Operation {
	o := payment()
	o.Payload = []byte(`{"amount":125000,"automatic_payment_methods":{"allow_redirects":"never","enabled":true},"currency":"EUR","customer":"cus_7",` +
		`"description":"Invoice 481, März & April","metadata":{"invoice":"invoice-481"},"payment_method":"pm_card_visa","transfer_data":{"destination":"acct_9"}}`)
	o.Terms = ledger.Terms{Amount: 125000, HasAmount: true, Currency: "EUR", Recipient: "cus_7", Reference: "invoice-481"}
	o.FirstMarkAt = 1_772_366_400_000
	return o
}

func takeBack() ledger.Operation {
	o := payment()
	o.OrderID, o.Effect = ledger.OrderID("test", "default", "inv-481-refund"), "refund"
	o.Payload = []byte(`{"amount":2500,"metadata":{"currency":"EUR"},"payment_intent":"pi_1","reason":"duplicate"}`)
	o.Terms = ledger.Terms{Amount: 2500, HasAmount: true, Currency: "EUR", RefundOf: "pi_1"}
	o.FirstMarkAt = 1_772_366_400_000
	return o
}

func stripeRail(t testing.TB, base, effect string, o Override) *Rail {
	t.Helper()
	r, err := New("stripe", Config{Adapter: AdapterStripe, BaseURL: base, Auth: Auth{Bearer: NewSecret(stripeTestKey)}}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.For(effect, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestStripeComesReadyMade(t *testing.T) {
	r := stripeRail(t, "", "charge", Override{})
	want := ledger.Rail{
		Name: "stripe", Adapter: "stripe", Address: "https://api.stripe.com",
		Dedupe:   ledger.Dedupe{By: ledger.DedupeKey, Place: "header idempotency-key", Retention: 24 * time.Hour},
		Lookup:   ledger.LookupPromise{Possible: true},
		Compared: ledger.ReceiptFields{Amount: true, Currency: true, Recipient: true, Stamp: true},
		Timeout:  30 * time.Second, Quiet: 15 * time.Minute, PendingFor: 168 * time.Hour,
		Limits: ledger.Limits{Concurrency: 8, Quota: 500, Recheck: 200, MaxAttempts: 5, MaxElapsed: 15 * time.Minute, BackoffMin: 500 * time.Millisecond, BackoffMax: time.Minute},
	}
	if got := r.Promise(); !reflect.DeepEqual(got, want) {
		t.Errorf("promise\n got %+v\nwant %+v", got, want)
	}
	if back := stripeRail(t, "", "refund", Override{}); back.Promise().Compared.Recipient {
		t.Error("a refund is compared with a customer that Stripe's refunds do not name")
	}
	own := Config{Adapter: AdapterStripe, Headers: map[string]Secret{"Authorization": NewSecret("Bearer " + canary), "Stripe-Version": NewSecret("2024-06-20")},
		Timeout: Lasting(time.Second), Receipt: Receipt{ID: "/id"}, Lookup: Lookup{Path: "/v1/payment_intents/search?query=metadata['operation']:'{order_id}'", Items: "/data", Lag: Lasting(time.Minute)},
		Events: Events{Secret: NewSecret("whsec_canary")}}
	c, err := New("stripe", own, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := c.For("charge", Override{}); err != nil || f.Promise().Timeout != time.Second || f.Promise().Lookup.Lag != time.Minute || f.Promise().Compared != (ledger.ReceiptFields{}) ||
		strings.Contains(mustRender(t, f, intent()).Display, stripeVersion) {
		t.Errorf("the configuration does not win: %v", err)
	}
	if e := c.config.Events; e.Scheme != "stripe" || e.Stamp != "/data/object/metadata/operation" || e.ConfirmedWhen["/type"] != "payment_intent.succeeded" {
		t.Errorf("events are %+v", e)
	}
	if _, err := c.For("payout", Override{Send: &Send{Path: "/v1/payouts"}}); err == nil || !strings.Contains(err.Error(), "rails.stripe.answers: is missing; the stripe adapter knows the effects charge and refund") {
		t.Errorf("an effect that nobody described: %v", err)
	}
	payout, err := c.For("payout", Override{Send: &Send{Path: "/v1/payouts"}, Answers: []AnswerRow{{Status: []int{200}, Means: "pending"}}})
	if err != nil || strings.Contains(string(mustRender(t, payout, intent()).Body), "confirm") {
		t.Errorf("%v", err)
	}
}

// oracle is what Stripe's own library would have sent. It is asked in tests
// only.
type oracle struct {
	method string
	url    *url.URL
	header http.Header
	form   url.Values
	answer string
}

func (q *oracle) RoundTrip(req *http.Request) (*http.Response, error) {
	q.method, q.url, q.header = req.Method, req.URL, req.Header
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if q.form, err = url.ParseQuery(string(body)); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(q.answer)), Request: req}, nil
}

func (q *oracle) client() *stripe.Client {
	return stripe.NewClient(stripeTestKey, stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		HTTPClient: &http.Client{Transport: q}, MaxNetworkRetries: stripe.Int64(0), EnableTelemetry: stripe.Bool(false),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})))
}

const stripeTestKey = "sk_test_canary5f1c0ffee"

// agrees compares our request with the library's: the same place, the same
// parameters, the same credential, key and version. Theirs alone are the texts
// with which the library describes itself.
func (q *oracle) agrees(t *testing.T, r *Rail, req ledger.Request) {
	t.Helper()
	wire, err := r.wireBytes(req)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(wire))))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(ours.Body)
	form, err := url.ParseQuery(string(body))
	if err != nil {
		t.Fatal(err)
	}
	if ours.Method != q.method || ours.Host != q.url.Host || ours.URL.Path != q.url.Path || ours.URL.Query().Encode() != q.url.Query().Encode() {
		t.Errorf("we ask %s %s%s, the library %s %s", ours.Method, ours.Host, ours.URL, q.method, q.url)
	}
	if form.Encode() != q.form.Encode() {
		t.Errorf("we send\n%s\nthe library\n%s", form.Encode(), q.form.Encode())
	}
	for _, name := range []string{"Authorization", "Idempotency-Key", "Stripe-Version"} {
		if ours.Header.Get(name) != q.header.Get(name) {
			t.Errorf("%s: ours is %q, the library's %q", name, ours.Header.Get(name), q.header.Get(name))
		}
	}
	if q.method == "POST" && ours.Header.Get("Content-Type") != q.header.Get("Content-Type") {
		t.Errorf("Content-Type: ours is %q, the library's %q", ours.Header.Get("Content-Type"), q.header.Get("Content-Type"))
	}
}

func TestStripeRequestsAreThoseOfItsLibrary(t *testing.T) {
	q := &oracle{answer: `{"id":"pi_1","object":"payment_intent"}`}
	o := intent()
	_, err := q.client().V1PaymentIntents.Create(t.Context(), &stripe.PaymentIntentCreateParams{
		Params: stripe.Params{IdempotencyKey: stripe.String(o.ProviderKey)}, Metadata: map[string]string{"invoice": "invoice-481", "operation": o.OrderID},
		Amount: stripe.Int64(125000), Currency: stripe.String("eur"), Customer: stripe.String("cus_7"), PaymentMethod: stripe.String("pm_card_visa"),
		Confirm: stripe.Bool(true), Description: stripe.String("Invoice 481, März & April"),
		AutomaticPaymentMethods: &stripe.PaymentIntentCreateAutomaticPaymentMethodsParams{Enabled: stripe.Bool(true), AllowRedirects: stripe.String("never")},
		TransferData:            &stripe.PaymentIntentCreateTransferDataParams{Destination: stripe.String("acct_9")},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := stripeRail(t, "", "charge", Override{})
	q.agrees(t, r, mustRender(t, r, o))
	if stripeVersion != stripe.APIVersion {
		t.Errorf("the adapter speaks %s, the library %s", stripeVersion, stripe.APIVersion)
	}

	b := takeBack()
	_, err = q.client().V1Refunds.Create(t.Context(), &stripe.RefundCreateParams{
		Params: stripe.Params{IdempotencyKey: stripe.String(b.ProviderKey)}, Metadata: map[string]string{"currency": "EUR", "operation": b.OrderID},
		Amount: stripe.Int64(2500), PaymentIntent: stripe.String("pi_1"), Reason: stripe.String("duplicate"),
	})
	if err != nil {
		t.Fatal(err)
	}
	back := stripeRail(t, "", "refund", Override{})
	q.agrees(t, back, mustRender(t, back, b))
}

func TestStripeListsAreReadAsItsLibraryReadsThem(t *testing.T) {
	q := &oracle{answer: `{"object":"list","data":[],"has_more":false}`}
	r := stripeRail(t, "", "charge", Override{})
	list := &stripe.PaymentIntentListParams{CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: 1_772_366_100}}
	list.Limit, list.StartingAfter = stripe.Int64(100), stripe.String("pi_9")
	for range q.client().V1PaymentIntents.List(t.Context(), list) {
	}
	query, err := r.query(intent(), "pi_9")
	if err != nil {
		t.Fatal(err)
	}
	q.form = nil // a GET has its parameters in the address
	q.agrees(t, r, query)

	q = &oracle{answer: `{"object":"search_result","data":[],"has_more":false}`}
	s := stripeRail(t, "", "charge", Override{Lookup: &Lookup{Path: "/v1/payment_intents/search?query=metadata['operation']:'{order_id}'", Items: "/data",
		Next: &Next{Cursor: "/next_page", Param: "page"}}})
	search := &stripe.PaymentIntentSearchParams{SearchParams: stripe.SearchParams{Query: "metadata['operation']:'" + intent().OrderID + "'"}, Page: stripe.String("p2")}
	for range q.client().V1PaymentIntents.Search(t.Context(), search) {
	}
	if query, err = s.query(intent(), "p2"); err != nil {
		t.Fatal(err)
	}
	q.form = nil
	q.agrees(t, s, query)
}

func TestWhatStripeAnswersMeansNoMoreThanItSays(t *testing.T) {
	o := intent()
	record := func(status string) string {
		return fmt.Sprintf(`{"id":"pi_1","object":"payment_intent","amount":125000,"currency":"eur","customer":"cus_7","status":%q,"metadata":{"operation":%q}}`, status, o.OrderID)
	}
	problem := func(kind, code string) string { return fmt.Sprintf(`{"error":{"type":%q,"code":%q}}`, kind, code) }
	back := func(status string) string {
		return fmt.Sprintf(`{"id":"re_1","object":"refund","amount":125000,"currency":"eur","status":%q,"metadata":{"operation":%q}}`, status, o.OrderID)
	}
	for _, c := range []struct {
		effect, status, body string
		want                 ledger.Finding
	}{
		{"charge", "200 OK", record("succeeded"), ledger.Found},
		{"charge", "200 OK", record("processing"), ledger.Pending},
		{"charge", "200 OK", record("requires_action"), ledger.Pending},
		{"charge", "200 OK", record("requires_capture"), ledger.Pending},
		{"charge", "200 OK", record("requires_payment_method"), ledger.Unclear},
		{"charge", "200 OK", record("canceled"), ledger.Unclear},
		{"charge", "200 OK", record("a word of next year"), ledger.Unclear},
		{"charge", "402 Payment Required", problem("card_error", "card_declined"), ledger.Refused},
		{"charge", "402 Payment Required", problem("api_error", ""), ledger.Unclear},
		{"charge", "400 Bad Request", problem("invalid_request_error", "parameter_missing"), ledger.Refused},
		{"charge", "400 Bad Request", problem("invalid_request_error", "amount_too_small"), ledger.Refused},
		{"charge", "400 Bad Request", problem("invalid_request_error", "payment_intent_unexpected_state"), ledger.Unclear},
		{"charge", "400 Bad Request", problem("invalid_request_error", ""), ledger.Unclear},
		{"charge", "400 Bad Request", problem("idempotency_error", "parameter_missing"), ledger.Stuck},
		{"charge", "401 Unauthorized", problem("invalid_request_error", ""), ledger.NotSent},
		{"charge", "403 Forbidden", problem("invalid_request_error", ""), ledger.NotSent},
		{"charge", "409 Conflict", problem("invalid_request_error", "idempotency_key_in_use"), ledger.Unclear},
		{"charge", "429 Too Many Requests", problem("invalid_request_error", "rate_limit"), ledger.Unclear},
		{"charge", "424 Failed Dependency", problem("api_error", ""), ledger.Unclear},
		{"charge", "500 Internal Server Error", problem("api_error", ""), ledger.Stuck},
		{"charge", "302 Found", "", ledger.Unclear},
		{"refund", "200 OK", back("succeeded"), ledger.Found},
		{"refund", "200 OK", back("pending"), ledger.Pending},
		{"refund", "200 OK", back("requires_action"), ledger.Pending},
		{"refund", "200 OK", back("failed"), ledger.Unclear},
		{"refund", "200 OK", back("canceled"), ledger.Unclear},
		{"refund", "400 Bad Request", problem("invalid_request_error", "charge_already_refunded"), ledger.Unclear},
		{"refund", "400 Bad Request", problem("invalid_request_error", "parameter_invalid_integer"), ledger.Refused},
	} {
		p := newProvider(t, always(answer(c.status, c.body)))
		r := stripeRail(t, p.url, c.effect, Override{})
		conn, err := r.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o := intent()
		o.Effect = c.effect
		a := r.Classify(o, conn.Send(t.Context(), mustRender(t, r, o), time.Now().Add(5*time.Second)))
		if a.Finding != c.want {
			t.Errorf("%s, %s %s: %s (%s), want %s", c.effect, c.status, c.body, a.Finding, a.Sentence, c.want)
		}
		if a.Finding == ledger.Found && c.effect == "charge" {
			if d := ledger.Compare(o, *a.Receipt, r.Promise().Compared); len(d) > 0 {
				t.Errorf("%s differs in %v", c.body, d)
			}
		}
	}
}

func TestAStripePaymentIsAlwaysTakenAtOnce(t *testing.T) {
	r := stripeRail(t, "", "charge", Override{})
	for payload, want := range map[string]string{
		`{"amount":1,"currency":"EUR"}`:                "amount=1&confirm=true&currency=eur&metadata[operation]=ord",
		`{"amount":1,"confirm":true}`:                  "amount=1&confirm=true&metadata[operation]=ord",
		`{"amount":1,"confirm":false}`:                 "",
		`{"amount":1,"confirm":"true"}`:                "",
		`{"amount":1,"metadata":{"operation":"mine"}}`: "",
		`{"amount":1,"customer":null}`:                 "",
	} {
		o := intent()
		o.OrderID, o.Payload = "ord", []byte(payload)
		req, err := r.Render(o)
		if want == "" && err == nil || want != "" && string(req.Body) != want {
			t.Errorf("%s is %s, %v", payload, req.Body, err)
		}
	}
}

// stripeMock is Stripe's own stand-in, which knows the shape of every request
// and keeps nothing.
func stripeMock(t *testing.T) (base string) {
	t.Helper()
	found, err := exec.Command("go", "tool", "-n", "stripe-mock").Output()
	if err != nil {
		t.Fatalf("stripe-mock is a tool of this module, and go tool -n stripe-mock says %v", err)
	}
	mock := exec.Command(strings.TrimSpace(string(found)), "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	out, err := mock.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := mock.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mock.Process.Kill(); mock.Wait() })
	address := regexp.MustCompile(`HTTP at address: (\S+)`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			go io.Copy(io.Discard, out)
			return "http://" + m[1]
		}
	}
	t.Fatal("stripe-mock says no address")
	return ""
}

// What is not in Stripe's own description of its API is refused by the mock:
// an unknown parameter, a number where a text belongs, a missing credential.
func TestStripeMockAcceptsEveryRequest(t *testing.T) {
	base := stripeMock(t)
	rendered := func(effect, payload string) Exchange {
		r := stripeRail(t, base, effect, Override{})
		o := intent()
		o.Payload = []byte(payload)
		conn, err := r.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return conn.Send(t.Context(), mustRender(t, r, o), time.Now().Add(5*time.Second))
	}
	for _, o := range []ledger.Operation{intent(), takeBack()} {
		x := rendered(o.Effect, string(o.Payload))
		var record struct {
			ID, Object string
			Amount     int64
			Metadata   map[string]string
		}
		if err := json.Unmarshal(x.Body, &record); err != nil || x.Status != 200 || record.Amount != o.Terms.Amount || record.ID == "" {
			t.Errorf("%s: %d %s", o.Effect, x.Status, x.Body)
		}
	}
	// The mock is a judge only if it also refuses.
	for _, payload := range []string{`{"amount":1,"currency":"eur","recipient":"acct_7"}`, `{"amount":"much","currency":"eur"}`, `{"currency":"eur"}`} {
		if x := rendered("charge", payload); x.Status != 400 {
			t.Errorf("%s: %d", payload, x.Status)
		}
	}
	search := Override{Lookup: &Lookup{Path: "/v1/payment_intents/search?query=metadata['operation']:'{order_id}'", Items: "/data", Next: &Next{Cursor: "/next_page", Param: "page"}}}
	for name, r := range map[string]*Rail{
		"charge list": stripeRail(t, base, "charge", Override{}), "refund list": stripeRail(t, base, "refund", Override{}), "search": stripeRail(t, base, "charge", search),
	} {
		// It keeps nothing, and shows others' records: whatever it says, it was asked rightly.
		for _, after := range []string{"", "x_1"} {
			req, err := r.query(intent(), after)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := r.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if x := conn.Send(t.Context(), req, time.Now().Add(5*time.Second)); x.Status != 200 {
				t.Errorf("%s: %d %s", name, x.Status, x.Body)
			}
		}
	}
}

package rail

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

func answered(status int, body string) Exchange {
	return Exchange{Written: 500, Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body), Whole: true}
}

func TestAnswersMeanWhatTheTableSays(t *testing.T) {
	r := mustRail(t, with(card("https://api.example.com"), func(c *Config) {
		c.Answers = append([]AnswerRow{
			{Status: []int{409}, Header: map[string]string{"Idempotent-Replayed": "true"}, Means: "confirmed"},
			{Status: []int{409}, Body: map[string]any{"/code": 7, "/final": true, "/hint": nil}, Means: "rejected"},
			{Status: []int{418}, Means: "unknown"},
			{Status: []int{418}, Means: "rejected"},
			{Status: []int{503}, Means: "not_sent"},
		}, c.Answers...)
	}))
	replayed := answered(409, paid)
	replayed.Header.Set("Idempotent-Replayed", "true")
	html := answered(402, "<html>")
	html.Header = http.Header{"Content-Type": {"text/html"}}
	for _, c := range []struct {
		name     string
		x        Exchange
		want     ledger.Finding
		sentence string
	}{
		{"zero", Exchange{}, ledger.Unclear, "The connection was cut before an answer came."},
		{"nothing left", Exchange{Err: TooLate}, ledger.NotSent, "Nothing was sent: the send deadline had passed."},
		{"an answer, but nothing written", Exchange{Status: 201, Whole: true, Body: []byte(paid)}, ledger.Found, "The provider answered 201 with receipt pay_1."},
		{"timeout", Exchange{Written: 1, Err: TimedOut}, ledger.Unclear, "No answer after 3.0 s."},
		{"cut", Exchange{Written: 1, Err: Cut}, ledger.Unclear, "The connection was cut before an answer came."},
		{"cut in the body", Exchange{Written: 1, Status: 402, Err: Cut}, ledger.Unclear, "The connection was cut in the middle of the answer, 402."},
		{"not whole", Exchange{Written: 1, Status: 201, Body: []byte(paid)}, ledger.Unclear, ""},
		{"too long", Exchange{Written: 1, Status: 201, Err: TooLong}, ledger.Unclear, "The answer, 201, was longer than this program reads."},
		{"a stranger's error", Exchange{Written: 1, Err: errors.New(canary)}, ledger.Unclear, "The connection was cut before an answer came."},
		{"late in writing", Exchange{Written: 1, Err: TooLate}, ledger.Unclear, "The send deadline passed while the request was being written."},

		{"201", answered(201, paid), ledger.Found, "The provider answered 201 with receipt pay_1."},
		{"201 number as id", answered(201, `{"id":12345678901234567890}`), ledger.Found, "The provider answered 201 with receipt 12345678901234567890."},
		{"201 empty", answered(201, ""), ledger.Unclear, "The provider answered 201, but without a receipt that can be read, which proves nothing."},
		{"201 garbage", answered(201, "\x00\xff{\"id\": <html>"), ledger.Unclear, "The provider answered 201 with a body that cannot be read, which proves nothing."},
		{"201 truncated", answered(201, paid[:len(paid)-3]), ledger.Unclear, ""},
		{"201 two receipts", answered(201, `{"id":"pay_1","id":"pay_2"}`), ledger.Unclear, ""},
		{"201 and more", answered(201, paid+paid), ledger.Unclear, ""},
		{"201 no id", answered(201, `{"amount":125000}`), ledger.Unclear, ""},
		{"201 empty id", answered(201, `{"id":" "}`), ledger.Unclear, ""},
		{"201 id of another kind", answered(201, `{"id":{"x":1}}`), ledger.Unclear, ""},
		{"201 control in id", answered(201, `{"id":"pay\r\n1"}`), ledger.Unclear, ""},
		{"201 endless id", answered(201, `{"id":"`+strings.Repeat("a", 5000)+`"}`), ledger.Unclear, ""},
		{"201 array", answered(201, `[]`), ledger.Unclear, ""},
		{"201 wrong amount is the ledger's to judge", answered(201, `{"id":"pay_1","amount":1}`), ledger.Found, ""},

		{"202", answered(202, ""), ledger.Pending, "The provider answered 202: accepted, the outcome comes later."},
		{"402", answered(402, `{"error":{"type":"card_declined"}}`), ledger.Refused, "The provider answered 402, a definite no on this rail."},
		{"402 empty", answered(402, ""), ledger.Refused, ""},
		{"402 calls itself JSON and is not", answered(402, "<html>"), ledger.Unclear, ""},
		{"402 other than JSON", html, ledger.Refused, ""},
		{"400 of the named kind", answered(400, `{"error":{"type":"invalid_request"}}`), ledger.Refused, ""},
		{"400 of another kind", answered(400, `{"error":{"type":"idempotency_error"}}`), ledger.Unclear, "The provider answered 400, which proves nothing."},
		{"400 empty", answered(400, ""), ledger.Unclear, ""},
		{"400 null", answered(400, "null"), ledger.Unclear, ""},
		{"429", answered(429, "{}"), ledger.NotSent, "The provider answered 429, which on this rail says that nothing ran."},
		{"503", answered(503, "{}"), ledger.NotSent, ""},
		{"500", answered(500, paid), ledger.Unclear, "The provider answered 500, which proves nothing."},
		{"502", answered(502, ""), ledger.Unclear, "The provider answered 502, which proves nothing."},
		{"307", answered(307, ""), ledger.Unclear, "The provider answered 307, which proves nothing."},
		{"204", answered(204, ""), ledger.Unclear, ""},
		{"401", answered(401, "{}"), ledger.Unclear, ""},
		{"409 replayed", replayed, ledger.Found, ""},
		{"409 all conditions", answered(409, `{"code":7.0,"final":true,"hint":null}`), ledger.Refused, ""},
		{"409 text is no number", answered(409, `{"code":"7","final":true,"hint":null}`), ledger.Unclear, ""},
		{"409 other number", answered(409, `{"code":8,"final":true,"hint":null}`), ledger.Unclear, ""},
		{"409 missing is not null", answered(409, `{"code":7,"final":true}`), ledger.Unclear, ""},
		{"409 half the conditions", answered(409, `{"code":7,"final":false,"hint":null}`), ledger.Unclear, ""},
		{"418 first row wins", answered(418, "{}"), ledger.Unclear, ""},
	} {
		a := r.Classify(payment(), c.x)
		if a.Finding != c.want || c.sentence != "" && a.Sentence != c.sentence || a.HTTPStatus != c.x.Status {
			t.Errorf("%s: %+v, want %s %q", c.name, a, c.want, c.sentence)
		}
		if (a.Finding == ledger.Found) != (a.Receipt != nil) || a.Sentence == "" || strings.Contains(a.Sentence, canary) {
			t.Errorf("%s: %+v", c.name, a)
		}
	}
}

func TestNothingIsRejectedByDefault(t *testing.T) {
	r := mustRail(t, Config{Adapter: "http", BaseURL: "https://api.example.com"})
	for status := 200; status < 600; status++ {
		want := map[int]ledger.Finding{200: ledger.Found, 201: ledger.Found, 202: ledger.Pending}[status]
		if want == "" {
			want = ledger.Unclear
		}
		if a := r.Classify(payment(), answered(status, "{}")); a.Finding != want {
			t.Errorf("%d: %+v", status, a)
		}
	}
}

// A rail whose answers name no receipt can still confirm: our own id stands in,
// so that the same answer twice is not two effects.
func TestWithoutAReceiptOurOwnIDStandsIn(t *testing.T) {
	r := mustRail(t, with(card("https://api.example.com"), func(c *Config) { c.Receipt, c.Lookup = Receipt{}, Lookup{} }))
	a := r.Classify(payment(), answered(200, ""))
	if a.Finding != ledger.Found || a.Receipt.ID != payment().OrderID || len(ledger.Compare(payment(), *a.Receipt, r.Promise().Compared)) > 0 {
		t.Errorf("%+v", a)
	}
}

func TestReceiptsAreReadExactly(t *testing.T) {
	decimal := func(c *Config) {
		c.Receipt.Amounts = "decimal"
		c.Digits = ledger.Currencies{"USDC": 6}.Digits
	}
	amount := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name   string
		change func(*Config)
		body   string
		want   *int64
	}{
		{"minor", nil, `"amount":125000,"currency":"EUR"`, amount(125000)},
		{"minor as text", nil, `"amount":"125000","currency":"EUR"`, amount(125000)},
		{"minor with a point", nil, `"amount":125000.0,"currency":"EUR"`, amount(125000)},
		{"beyond a double", nil, `"amount":9007199254740993,"currency":"EUR"`, amount(9007199254740993)},
		{"largest", nil, `"amount":9223372036854775807,"currency":"EUR"`, amount(9223372036854775807)},
		{"too large", nil, `"amount":9223372036854775808,"currency":"EUR"`, nil},
		{"fraction of a minor unit", nil, `"amount":1250.5,"currency":"EUR"`, nil},
		{"exponent", nil, `"amount":1e999999999,"currency":"EUR"`, nil},
		{"words", nil, `"amount":"a lot","currency":"EUR"`, nil},
		{"null", nil, `"amount":null,"currency":"EUR"`, nil},
		{"missing", nil, `"currency":"EUR"`, nil},
		{"negative", nil, `"amount":-5,"currency":"EUR"`, amount(-5)},

		{"decimal", decimal, `"amount":1250.00,"currency":"EUR"`, amount(125000)},
		{"decimal as text", decimal, `"amount":"1250.00","currency":"EUR"`, amount(125000)},
		{"decimal without digits", decimal, `"amount":"1250","currency":"EUR"`, amount(125000)},
		{"decimal with too many zeros", decimal, `"amount":"1250.0000","currency":"EUR"`, amount(125000)},
		{"decimal no double can hold", decimal, `"amount":90071992547409.93,"currency":"EUR"`, amount(9007199254740993)},
		{"decimal in yen", decimal, `"amount":1250,"currency":"JPY"`, amount(1250)},
		{"decimal in dinar", decimal, `"amount":1.25,"currency":"KWD"`, amount(1250)},
		{"decimal of our own", decimal, `"amount":"0.000001","currency":"USDC"`, amount(1)},
		{"decimal in small letters", decimal, `"amount":"1.00","currency":"eur"`, amount(100)},
		{"decimal too fine", decimal, `"amount":"1250.001","currency":"EUR"`, nil},
		{"decimal with commas", decimal, `"amount":"1,250.00","currency":"EUR"`, nil},
		{"decimal in nobody's currency", decimal, `"amount":"1250.00","currency":"XXZ"`, nil},
		{"decimal without currency", decimal, `"amount":"1250.00"`, nil},
		{"decimal in the approved currency", func(c *Config) { decimal(c); c.Receipt.Currency = "" }, `"amount":"1250.00"`, amount(125000)},
	} {
		if c.change == nil {
			c.change = func(*Config) {}
		}
		r := mustRail(t, with(card("https://api.example.com"), c.change))
		a := r.Classify(payment(), answered(201, `{"id":"pay_1",`+c.body+`}`))
		if a.Finding != ledger.Found {
			t.Errorf("%s: %+v", c.name, a)
			continue
		}
		got := a.Receipt.Amount
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: amount %v", c.name, got)
		}
	}
}

// Reading and the ledger's comparing meet: only what was approved matches.
func TestAReceiptMatchesOnlyWhatWasApproved(t *testing.T) {
	r := mustRail(t, with(card("https://api.example.com"), func(c *Config) {
		c.Receipt.Reference, c.Receipt.Stamp, c.Receipt.Amounts, c.Digits = "/ref", "/metadata/operation", "decimal", ledger.Currencies{}.Digits
	}))
	good := `{"id":"pay_1","amount":"1250.00","currency":"eur","recipient":"acct_7","ref":"invoice-481","metadata":{"operation":"` + payment().OrderID + `"}}`
	for body, want := range map[string]string{
		good: "",
		strings.Replace(good, "1250.00", "1250.01", 1):           "/amount",
		strings.Replace(good, "1250.00", "125000", 1):            "/amount",
		strings.Replace(good, `"eur"`, `"usd"`, 1):               "/currency",
		strings.Replace(good, "acct_7", "ACCT_7", 1):             "/recipient",
		strings.Replace(good, "invoice-481", "invoice-482", 1):   "/reference",
		strings.Replace(good, payment().OrderID, "ord_other", 1): "/stamp",
		`{"id":"pay_1"}`: "/amount /currency /recipient /reference /stamp",
	} {
		a := r.Classify(payment(), answered(201, body))
		if a.Receipt == nil {
			t.Errorf("%s: %+v", body, a)
			continue
		}
		if got := strings.Join(ledger.Compare(payment(), *a.Receipt, r.Promise().Compared), " "); got != want {
			t.Errorf("%s differs at %q, want %q", body, got, want)
		}
	}
}

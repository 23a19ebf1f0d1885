package rail

import (
	"fmt"
	"strings"
	"time"

	"holdfast/store/ledger"
)

// Stripe's ready-made ways, for payment intents and refunds of its API v1. A
// configuration that gives one of these blocks itself replaces that block.
//
// The requests are this package's own. Stripe's SDK retries by itself and makes
// up idempotency keys of its own, so it never touches the wire; tests hold what
// is written here against what it would have sent.

const (
	stripeBase = "https://api.stripe.com"

	// stripeVersion is the version of the API whose answers the rows and
	// pointers below were written for. Without the header an account's own
	// setting would choose another.
	stripeVersion = "2025-08-27.basil"

	stripeIntents = "/v1/payment_intents"
	stripeRefunds = "/v1/refunds"
)

// stripeLists are the places where Stripe keeps the effects of each kind.
var stripeLists = map[string]string{"charge": stripeIntents, "refund": stripeRefunds}

// stripeRefusals are the codes of a 400 with which Stripe says that the request
// itself is wrong. They are found before anything runs, and are not stored under
// the key. Any other 400 stays unknown: charge_already_refunded, for one, may
// speak of our own first attempt.
var stripeRefusals = []string{
	"parameter_missing", "parameter_unknown", "parameters_exclusive", "parameter_invalid_empty", "parameter_invalid_integer",
	"parameter_invalid_string_blank", "parameter_invalid_string_empty", "amount_too_small", "amount_too_large",
}

// stripe fills in what the configuration leaves out, and what every request of
// this adapter has.
func (f *findings) stripe(r *Rail, c Config, effect string) Config {
	list := stripeLists[effect]
	if effect == "" {
		list = stripeIntents // the rail by itself promises what a charge does
	}
	c = c.withStripeWays(list, effect)
	if list == "" && c.Answers == nil {
		f.add("answers", "is missing; the stripe adapter knows the effects charge and refund by itself, and %q has to say what an answer means", effect)
	}
	if !c.Auth.given() && !hasHeader(c.Headers, "Authorization") {
		f.add("auth", `is missing; write { bearer: "${STRIPE_SECRET_KEY}" }`)
	}
	r.public = [][2]string{{"Stripe-Version", stripeVersion}}
	r.shape = stripeShape(c.Send)
	return c
}

func hasHeader(headers map[string]Secret, name string) bool {
	for h := range headers {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

func (c Config) withStripeWays(list, effect string) Config {
	if c.BaseURL == "" {
		c.BaseURL = stripeBase
	}
	if !c.Timeout.given {
		c.Timeout = Lasting(30 * time.Second) // a card's bank may take its time
	}
	if c.Dedupe == (Dedupe{}) {
		c.Dedupe = Dedupe{By: "key", Header: "Idempotency-Key", Retention: Lasting(24 * time.Hour),
			ReplayMarker: Marker{Header: "Idempotent-Replayed", Value: "true"}}
	}
	if c.Send.Path == "" && effect != "" {
		c.Send.Path = list
	}
	if c.Send.Encoding == "" {
		c.Send.Encoding = encodingForm
	}
	if c.Stamp == (Stamp{}) {
		c.Stamp = Stamp{Body: "/metadata/operation"}
	}
	if !c.Quiet.given {
		c.Quiet = Lasting(15 * time.Minute)
	}
	if c.Events.Scheme == "" && c.Events.Secret.text != nil {
		c.Events.Scheme = "stripe"
	}
	if c.Events.Scheme == "stripe" && c.Events.ID == "" && c.Events.Stamp == "" && c.Events.ConfirmedWhen == nil {
		c.Events.ID, c.Events.Stamp = "/data/object/id", "/data/object/metadata/operation"
		// Not by the record's own status: a charge carries the metadata of its
		// payment intent, and its id would look like a second payment. Events of
		// all other types lead to a look-up.
		c.Events.ConfirmedWhen = map[string]any{"/type": "payment_intent.succeeded"}
	}
	if list == "" {
		return c
	}
	if c.Answers == nil {
		c.Answers = stripeAnswers(list)
	}
	if c.Receipt == (Receipt{}) {
		c.Receipt = Receipt{ID: "/id", Amount: "/amount", Currency: "/currency", Stamp: "/metadata/operation"}
		if list == stripeIntents {
			c.Receipt.Recipient = "/customer"
		}
	}
	if !c.Lookup.given() {
		c.Lookup = stripeLookup(list)
	}
	return c
}

// stripeAnswers are the rows for one kind of record. What no row names is
// unknown.
func stripeAnswers(list string) []AnswerRow {
	when := func(status int, pointer, value, means string) AnswerRow {
		return AnswerRow{Status: []int{status}, Body: map[string]any{pointer: value}, Means: means}
	}
	rows := []AnswerRow{when(200, "/status", "succeeded", meansConfirmed)}
	outstanding := []string{"processing", "requires_action", "requires_capture"}
	if list == stripeRefunds {
		outstanding = []string{"pending", "requires_action"}
	}
	for _, status := range outstanding {
		rows = append(rows, when(200, "/status", status, meansPending))
	}
	rows = append(rows,
		when(402, "/error/type", "card_error", meansRejected),
		when(400, "/error/type", "idempotency_error", meansLook),     // the key was used for other parameters; it will always be refused
		AnswerRow{Status: []int{500}, Means: meansLook},              // kept for the key: a resend never tells more
		AnswerRow{Status: []int{401, 403}, Means: meansNotSent},      // before anything runs
		AnswerRow{Status: []int{409, 424, 429}, Means: meansUnknown}, // not stored, but Stripe does not promise in words that nothing ran
	)
	for _, code := range stripeRefusals {
		rows = append(rows, AnswerRow{Status: []int{400}, Means: meansRejected,
			Body: map[string]any{"/error/type": "invalid_request_error", "/error/code": code}})
	}
	return rows
}

// stripeLookup reads the list, which shows a record as soon as it is made. The
// search does not, and Stripe says not to use it for reading after writing.
func stripeLookup(list string) Lookup {
	return Lookup{
		Path:          list + "?created[gte]={first_sent_at}&limit=100",
		Items:         "/data",
		Next:          &Next{Last: "/id", Param: "starting_after"},
		ConfirmedWhen: map[string]any{"/status": "succeeded"},
	}
}

// stripeShape writes what Stripe wants to read differently from how it was
// approved, and what makes a payment intent a payment. It changes no meaning.
func stripeShape(s Send) func(any) error {
	return func(v any) error {
		payload, ok := v.(map[string]any)
		if !ok {
			return nil // the form refuses it
		}
		// Documented in lower case; approved as ISO 4217 has it.
		if currency, ok := payload["currency"].(string); ok {
			payload["currency"] = strings.ToLower(currency)
		}
		if s.Path != stripeIntents {
			return nil
		}
		// An intent that is not confirmed takes no money, and would be mistaken for one that does.
		if given, taken := payload["confirm"]; taken && given != true {
			return fmt.Errorf("the payload says confirm: %s, and this rail takes the payment at once; leave it out", inWords(given))
		}
		return ledger.Set(v, "/confirm", true)
	}
}

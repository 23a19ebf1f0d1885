package dispatch_test

import "time"

// facts are what a provider's documents say it does, written down for the
// stand-in and apart from the profile that is under test. What the documents
// leave open is taken at its worst: a key whose retention is not published is
// forgotten at once, and one that is kept for successes only is forgotten
// whenever the answer was none.
type facts struct {
	payload string            // what the agent asks for; $ref differs in each cell
	roles   map[string]string // role: pointer into it; an amount written "decimal /pointer" is decimal

	status int    // of a first success
	record string // its body; $id $amount $value $currency $to $stamp $ref, value being the decimal amount
	item   string // a record as a look-up shows it; empty: no look-up
	list   string // the look-up's answer around them: $items

	kind  kind
	keeps time.Duration // how long it knows a key

	again    int       // status of a replay; zero: as the first time
	marker   [2]string // header of a replay
	conflict string    // body of a replay in place of the record
	mismatch int       // status where a key comes with another request; zero: not noticed, the first result is replayed
	refusal  string    // its body
	busy     int       // status while the first request runs; zero: 409
	busyBody string
	busyHead [2]string

	// Expected ends, one letter a column of [columns], and which of them rest on
	// a resend: everywhere else the provider must see one request.
	ends string
}

// kind is what a key does.
type kind int

const (
	none      kind = iota // there is no key: every request acts
	forgets               // retention not published, or successes only
	keepsAll              // the first answer is kept, errors too
	keepsWork             // the work is known by its key: a repeat shows its present state, and does what was not done
	byNature              // the request itself acts once
	upserts               // the request writes the same values again
)

// columns are what goes wrong, once, with the first request of an operation.
var columns = []string{
	"timeout before the provider acted",
	"timeout after it acted",
	"reset in the middle of the answer",
	"500, nothing done",
	"500, done",
	"409 while it is being done",
	"429, nothing done",
	"garbage for an answer, done",
	"done with another amount or recipient",
	"the key is another request's",
	"timeout after it acted, and woken when keys are forgotten",
}

// The letters of an end.
var ends = map[byte][2]string{
	'C': {"confirmed", ""},
	'I': {"unknown_hold", "inconclusive"},
	'K': {"unknown_hold", "key_expired"},
	'A': {"unknown_hold", "attempts_exhausted"},
	'M': {"unknown_hold", "receipt_mismatch"},
}

const (
	flat        = `{"amount":4800,"currency":"USD","to":"acct_7","ref":"$ref"}`
	intentShown = `{"id":"$id","amount":$amount,"currency":"usd","metadata":{"operation":"$stamp"},"status":"succeeded"}`
	flatShown   = `{"id":"$id","amount":$amount,"currency":"usd","metadata":{"order_id":"$stamp"}`
)

var flatRoles = map[string]string{"amount": "/amount", "currency": "/currency"}

// providers are the facts, by profile.
//
//	ends: timeout before, timeout after, reset, 500 before, 500 after, 409, 429, garbage, wrong amount, another's, late
var providers = map[string]facts{
	"stripe-v1": {payload: flat, roles: flatRoles, status: 200, record: intentShown, item: intentShown, list: `{"data":[$items],"has_more":false}`,
		kind: keepsAll, keeps: 24 * time.Hour, marker: [2]string{"Idempotent-Replayed", "true"},
		mismatch: 400, refusal: `{"error":{"type":"idempotency_error"}}`, busyBody: `{"error":{"code":"idempotency_key_in_use"}}`,
		ends: "CCCI CCCCM IC"},
	"paypal-orders": {payload: `{"order_id":"O-$ref","amount":"48.00","currency":"USD"}`, roles: map[string]string{"amount": "decimal /amount", "currency": "/currency"},
		status: 201, record: `{"id":"O-$ref","status":"COMPLETED","purchase_units":[{"payments":{"captures":[{"id":"$id","status":"COMPLETED","amount":{"value":"$value","currency_code":"USD"}}]}}]}`,
		kind: keepsWork, keeps: 6 * time.Hour, again: 200, ends: "CCCC CCCCM MK"},
	"paypal-refunds": {payload: `{"capture_id":"cap_$ref","amount":{"value":"48.00","currency_code":"USD"}}`, roles: map[string]string{"amount": "decimal /amount/value", "currency": "/amount/currency_code"},
		status: 201, record: `{"id":"$id","status":"COMPLETED","custom_id":"$stamp","amount":{"value":"$value","currency_code":"USD"}}`,
		kind: keepsWork, keeps: 45 * 24 * time.Hour, again: 200, ends: "CCCC CCCCM MK"},
	"adyen-checkout": {payload: `{"amount":{"value":4800,"currency":"EUR"},"reference":"$ref"}`, roles: map[string]string{"amount": "/amount/value", "currency": "/amount/currency", "reference": "/reference"},
		status: 200, record: `{"pspReference":"$id","resultCode":"Authorised","merchantReference":"$ref","amount":{"value":$amount,"currency":"EUR"}}`,
		kind: keepsAll, keeps: 7 * 24 * time.Hour, busy: 422, busyBody: `{"errorCode":"704"}`, busyHead: [2]string{"transient-error", "true"},
		ends: "CCCA ACCCM MK"},
	"square-payments": {payload: `{"amount_money":{"amount":4800,"currency":"USD"},"source_id":"cnon"}`, roles: map[string]string{"amount": "/amount_money/amount", "currency": "/amount_money/currency"},
		status: 200, record: `{"payment":{"id":"$id","status":"COMPLETED","reference_id":"$stamp","amount_money":{"amount":$amount,"currency":"USD"}}}`,
		kind: forgets, mismatch: 400, refusal: `{"errors":[{"category":"INVALID_REQUEST_ERROR","code":"IDEMPOTENCY_KEY_REUSED"}]}`,
		ends: "KKKK KKKKM IK"},
	"mollie-payments": {payload: `{"amount":{"value":"48.00","currency":"EUR"}}`, roles: map[string]string{"amount": "decimal /amount/value", "currency": "/amount/currency"},
		status: 201, record: `{"id":"$id","amount":{"value":"$value","currency":"EUR"},"metadata":{"order_id":"$stamp"}}`,
		kind: keepsAll, keeps: 24 * time.Hour, marker: [2]string{"Idempotent-Replayed", "true"}, mismatch: 400, refusal: `{"status":400}`,
		ends: "CCCA ACCCM IK"},
	"checkout-com": {payload: `{"amount":4800,"currency":"USD","reference":"$ref"}`, roles: map[string]string{"amount": "/amount", "currency": "/currency", "reference": "/reference"},
		status: 201, record: `{"id":"$id","approved":true,"amount":$amount,"currency":"USD","reference":"$ref"}`,
		item: `{"id":"$id","amount":$amount,"currency":"USD","reference":"$ref","metadata":{"order_id":"$stamp"}}`, list: `{"data":[$items]}`,
		kind: forgets, busy: 429, ends: "KCCK CCKCM MC"},
	"modern-treasury": {payload: flat, roles: flatRoles, status: 201, record: flatShown + `}`, kind: forgets, ends: "KKKK KKKKM MK"},
	"increase": {payload: flat, roles: flatRoles, status: 200, record: `{"id":"$id","amount":$amount,"currency":"USD"}`,
		item: `{"id":"$id","amount":$amount,"currency":"USD"}`, list: `{"data":[$items],"next_cursor":null}`,
		kind: forgets, marker: [2]string{"Idempotent-Replayed", "true"}, mismatch: 409, refusal: `{"type":"idempotency_key_already_used_error","resource_id":"x"}`,
		ends: "KCCK CCKCM MC"},
	"mercury": {payload: `{"account_id":"acc_1","recipientId":"acct_7","amount":48}`, roles: map[string]string{"recipient": "/recipientId"},
		status: 200, record: `{"id":"$id","counterpartyId":"$to","amount":-48}`, kind: forgets, again: 409, ends: "KKKK KCKKM MK"},
	"wise-transfers": {payload: `{"targetAccount":"acct_7","quoteUuid":"q-$ref"}`, roles: map[string]string{"recipient": "/targetAccount"},
		status: 200, record: `{"id":"$id","targetAccount":"$to"}`, kind: forgets, ends: "KKKK KKKKM MK"},
	"resend": {payload: `{"to":"a@example.com","subject":"$ref"}`, status: 200, record: `{"id":"$id"}`,
		kind: keepsAll, keeps: 24 * time.Hour, mismatch: 409, refusal: `{"name":"invalid_idempotent_request"}`, busyBody: `{"name":"concurrent_idempotent_requests"}`,
		ends: "CCCA ACCCC IK"},
	"sendgrid": {payload: `{"subject":"$ref"}`, status: 202, record: ``, kind: none, ends: "IIII IIIIC CI"},
	"zendesk-tickets": {payload: `{"ticket":{"subject":"$ref"}}`, status: 201, record: `{"ticket":{"id":"$id","external_id":"$stamp"}}`,
		item: `{"id":"$id","external_id":"$stamp"}`, list: `{"tickets":[$items],"count":1,"next_page":null}`,
		kind: keepsAll, keeps: 2 * time.Hour, marker: [2]string{"x-idempotency-lookup", "hit"}, mismatch: 400, refusal: `{"error":"IdempotentRequestError"}`,
		ends: "CCCA CCCCC IC"},
	"hubspot-contacts": {payload: `{"inputs":[{"id":"a@example.com","idProperty":"email","properties":{"company":"$ref"}}]}`,
		status: 200, record: `{"status":"COMPLETE","results":[{"id":"$id"}]}`, kind: upserts, ends: "CCCC CCCCC CC"},
	"slack-chat": {payload: `{"channel":"C1","text":"$ref","metadata":{"event_type":"order"}}`,
		status: 200, record: `{"ok":true,"channel":"C1","ts":"$id"}`,
		item: `{"ts":"$id","metadata":{"event_payload":{"order_id":"$stamp"}}}`, list: `{"ok":true,"messages":[$items],"has_more":false}`,
		kind: none, ends: "ICCI CCICC CC"},
	"gocardless": {payload: `{"payments":{"amount":4800,"currency":"GBP"}}`, roles: map[string]string{"amount": "/payments/amount", "currency": "/payments/currency"},
		status: 201, record: `{"payments":{"id":"$id","amount":$amount,"currency":"GBP","metadata":{"order_id":"$stamp"}}}`,
		kind: forgets, again: 409, conflict: `{"error":{"errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"$id"}}]}}`,
		ends: "KKKK KIKKM IK"},
	"column": {payload: `{"amount":4800,"currency_code":"USD"}`, roles: map[string]string{"amount": "/amount", "currency": "/currency_code"},
		status: 200, record: `{"id":"$id","amount":$amount,"currency_code":"USD"}`, kind: forgets, ends: "KKKK KKKKM MK"},
	"razorpay-payouts": {payload: `{"account_number":"787878","fund_account_id":"acct_7","amount":4800,"currency":"INR"}`, roles: map[string]string{"amount": "/amount", "currency": "/currency", "recipient": "/fund_account_id"},
		status: 200, record: `{"id":"$id","status":"processing","amount":$amount,"currency":"INR","fund_account_id":"$to","reference_id":"$stamp"}`,
		item: `{"id":"$id","amount":$amount,"currency":"INR","fund_account_id":"$to","reference_id":"$stamp"}`, list: `{"count":1,"items":[$items]}`,
		kind: forgets, mismatch: 400, refusal: `{"error":{"code":"BAD_REQUEST_ERROR"}}`, ends: "KCCK CCKCM KC"},
	"postmark": {payload: `{"To":"a@example.com","Subject":"$ref"}`, status: 200, record: `{"MessageID":"$id","ErrorCode":0}`,
		item: `{"MessageID":"$id","Metadata":{"order_id":"$stamp"}}`, list: `{"TotalCount":1,"Messages":[$items]}`, kind: none, ends: "ICCI CCICC CC"},
	"plaid-transfer": {payload: `{"authorization_id":"auth-$ref","amount":"48.00","currency":"USD"}`, roles: map[string]string{"amount": "decimal /amount", "currency": "/currency"},
		status: 200, record: `{"transfer":{"id":"$id","amount":"$value","iso_currency_code":"USD","metadata":{"order_id":"$stamp"}}}`, kind: byNature, ends: "CCCC CCCCM MC"},
	"telnyx-messages": {payload: `{"to":"acct_7","text":"$ref"}`, roles: map[string]string{"recipient": "/to"}, status: 200, record: `{"data":{"id":"$id","to":[{"phone_number":"$to"}]}}`,
		kind: forgets, mismatch: 422, refusal: `{"errors":[{"code":"10005"}]}`, ends: "KKKK KKKKM KK"},
	"nylas-send": {payload: `{"subject":"$ref"}`, status: 200, record: `{"data":{"id":"$id"}}`, kind: keepsAll, keeps: time.Hour, marker: [2]string{"Idempotent-Response", "true"},
		mismatch: 409, refusal: `{"error":{"type":"idempotency"}}`, ends: "CCCI IICCC IK"},
	"circle-payouts": {payload: `{"amount":{"amount":"48.00","currency":"USD"}}`, roles: map[string]string{"amount": "decimal /amount/amount", "currency": "/amount/currency"},
		status: 201, record: `{"data":{"id":"$id","amount":{"amount":"$value","currency":"USD"}}}`, kind: forgets, ends: "KKKK KKKKM MK"},
}

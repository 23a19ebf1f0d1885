package ledger

import "slices"

// Problem is an answer that is about a request, not about an operation's life:
// what RFC 9457 calls a problem type. Reason is the machine word, stable for
// ever; Detail says what to do where the place of the fault adds nothing.
type Problem struct {
	Reason   string
	Title    string
	Status   int // of HTTP
	Next     string
	Terminal bool
	Detail   string
}

// Type is the reference that identifies the problem; a document stands there.
func (p Problem) Type() string { return "/problems/" + p.Reason }

// Problems lists every problem an agent may meet, by HTTP status.
var Problems = []Problem{
	{"operation_id_required", "The operation has no name", 400, NextFixRequest, false,
		"Give operation_id in the body or the Idempotency-Key header: name the purchase once, when it is decided, store the name, and send the same one every time. Nothing was recorded or sent."},
	{"invalid_operation_id", "The operation's name is not usable", 400, NextFixRequest, false,
		"operation_id is 1 to 128 of A-Z a-z 0-9 . _ : - and begins with a letter or digit; where the Idempotency-Key header is given too, both are equal. Nothing was recorded or sent."},
	{"malformed_json", "The body is not strict JSON", 400, NextFixRequest, false,
		"Correct the body at the place that is named and send it again under the same operation_id. Nothing was recorded or sent."},
	{"invalid_request", "The request is not usable", 400, NextFixRequest, false,
		"Correct the header or parameter that is named. Nothing was recorded or sent."},
	{"unauthorized", "The token is not accepted", 401, NextFixRequest, false,
		"Send a valid token: this one is missing, damaged, expired or revoked. Nothing was recorded or sent."},
	{"bad_signature", "The event's signature is not accepted", 401, NextFixRequest, false,
		"Sign the event with the secret that is configured for this rail, at the time of sending: the signature is missing, wrong or older than five minutes, or no events are taken in at this address. Nothing was recorded."},
	{"policy_denied", "Policy says no", 403, NextStop, true,
		"Policy says no to this and nothing was sent. Stop and tell the person you work for. Do not create a new operation for this purchase."},
	{"forbidden", "The token may not do this", 403, NextStop, true,
		"This token lacks the right that is named. Nothing was recorded or sent. Stop and tell the person you work for."},
	{"not_found", "There is no such operation", 404, NextFixRequest, false,
		"No operation of this tenant has that name. Check the spelling; if you submitted it and got no answer, send the same operation_id and the same payload once more."},
	{"method_not_allowed", "This address does not answer that method", 405, NextFixRequest, false,
		"Use one of the methods in the Allow header. Nothing was recorded or sent."},
	{"in_progress", "The operation has not ended yet", 409, NextWait, false,
		"It is recorded and taken care of. Wait, then ask for it at the poll address. Do not create a new operation for this purchase."},
	{"request", "This id already belongs to another payload", 409, NextStop, true,
		"The id names an operation with another payload or action type; it is untouched and nothing was sent. Ask for that operation and use its result. Do not create a new operation for this purchase."},
	{"intent_conflict", "The reference and the step lead to two operations", 409, NextStop, true,
		"Two recorded operations fit this purchase and only a person can say which one it is. Stop and tell the person you work for. Do not create a new operation for this purchase."},
	{"already_dispatched", "It cannot be taken back any more", 409, NextWait, false,
		"It cannot be taken back any more: it was sent, or has ended. Wait for its outcome at the poll address. Do not create a new operation for this purchase."},
	{"body_too_large", "The body is too large", 413, NextFixRequest, false,
		"Keep the body within 256 KiB. Nothing was recorded or sent."},
	{"media_type", "The media type is not accepted", 415, NextFixRequest, false,
		"Send Content-Type: application/json. Nothing was recorded or sent."},
	{"invalid_payload", "The payload breaks the action type's schema", 422, NextFixRequest, false,
		"Correct the members that are listed and send the payload under the same operation_id. Nothing was recorded or sent."},
	{"unknown_action_type", "There is no such action type", 422, NextFixRequest, false,
		"Use one of the action types that are configured for this tenant. Nothing was recorded or sent."},
	{"refund_exceeds_remaining", "More than is left of the charge", 422, NextFixRequest, false,
		"A charge is given back once: what is confirmed, under way, unknown or waiting counts. Give back what is left under the same operation_id, or use the refunds that are recorded. Nothing was recorded or sent."},
	{"invalid_statement", "The statement cannot be taken in", 422, NextFixRequest, false,
		"Correct what is named at the line that is named, or answer the question with one of the choices, and send the whole file again. Nothing of it was stored."},
	{"retry_budget_exhausted", "The run has used up its budget", 429, NextStop, true,
		"This run may repeat nothing more. Stop and tell the person you work for; reading operations and their results stays free. Do not create a new operation for this purchase."},
	{"rate_limited", "Too many requests", 429, NextWait, false,
		"Wait as long as Retry-After says, then send the same operation_id and the same payload."},
	{"internal", "The server met a fault of its own", 500, NextWait, false,
		"It is not certain whether this was recorded. Wait, then send the same operation_id and the same payload: it is recorded once at most."},
	{"store_unavailable", "The ledger cannot be written", 503, NextWait, false,
		"Nothing is sent that was not recorded. Wait as long as Retry-After says, then send the same operation_id and the same payload. Do not create a new operation for this purchase."},
}

// ProblemFor finds a problem by its reason.
func ProblemFor(reason string) (Problem, bool) {
	i := slices.IndexFunc(Problems, func(p Problem) bool { return p.Reason == reason })
	if i < 0 {
		return Problem{}, false
	}
	return Problems[i], true
}

package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
)

// intentBody answers an intent: the id to use, and what became of it if it was
// used already.
type intentBody struct {
	OperationID string           `json:"operation_id"`
	ActionType  string           `json:"action_type"`
	Reference   *string          `json:"reference"`
	RunID       *string          `json:"run_id"`
	Step        *string          `json:"step"`
	Quote       *quoteBody       `json:"quote"`
	Previous    *string          `json:"previous"`
	Poll        string           `json:"poll"`
	Operation   *ledger.Envelope `json:"operation"`
	Detail      string           `json:"detail"`
	CreatedAt   *string          `json:"created_at"`
}

// storeTheName is what an agent reads that has just been given an id.
const storeTheName = "Store operation_id now and submit the purchase under it, however often you have to. Nothing was sent."

type quoteBody struct {
	ID        string  `json:"id,omitempty"`
	Amount    *int64  `json:"amount,omitempty"`
	Currency  string  `json:"currency,omitempty"`
	Recipient string  `json:"recipient,omitempty"`
	ExpiresAt *string `json:"expires_at,omitempty"`
}

// intend answers POST /v1/intents.
func (s *Server) intend(c echo.Context) error {
	who, err := s.authenticate(c, "operations:write")
	if err != nil {
		return err
	}
	in, err := readMembers(c, intentMembers...)
	if err != nil {
		return err
	}
	a, err := s.reserve(c.Request().Context(), who, in)
	if err != nil {
		return err
	}
	return a.write(c)
}

var intentMembers = []string{"action_type", "reference", "run_id", "step", "quote"}

// reserve gives a purchase its id, or the one that it has.
func (s *Server) reserve(ctx context.Context, who caller, in memberReader) (answer, error) {
	want, err := s.readIntent(in, who)
	if err != nil {
		return answer{}, err
	}
	found, err := s.Store.Intend(ctx, want)
	var differs store.Disagreement
	switch {
	case errors.As(err, &differs):
		return answer{}, s.disagree(want.TenantID, want.ActionType, differs)
	case errors.Is(err, store.ErrTwoNames):
		return answer{}, newProblem("intent_conflict", "")
	case err != nil:
		return answer{}, err
	}
	body := intentBody{OperationID: found.Intent.OperationID, ActionType: found.Intent.ActionType,
		Reference: given(want.Reference), RunID: given(want.RunID), Step: given(want.Step), Quote: quoteOf(found.Intent.Quote),
		Previous: given(found.Intent.Previous), Poll: "/v1/operations/" + found.Intent.OperationID,
		Detail: storeTheName, CreatedAt: utc(found.Intent.CreatedAt)}
	status := http.StatusCreated
	if found.Existed {
		status = http.StatusOK
	}
	if found.Operation == nil && found.Intent.Previous != "" {
		if body.Detail, err = s.afterPrevious(ctx, found.Intent); err != nil {
			return answer{}, err
		}
	}
	if found.Operation != nil {
		original, err := s.Store.Original(ctx, *found.Operation)
		if err != nil {
			return answer{}, err
		}
		e, err := s.envelope(ctx, *found.Operation, original)
		if err != nil {
			return answer{}, err
		}
		body.Operation, body.Detail, body.CreatedAt = &e, e.Detail, &e.CreatedAt
	}
	return answer{status: status, body: body, location: body.Poll}, nil
}

// afterPrevious says what became of the operation that stood for the purchase
// before. Whatever ended it, a new id is no answer to it: where people or policy
// said no, the agent's own people are asked first.
func (s *Server) afterPrevious(ctx context.Context, i ledger.Intent) (string, error) {
	stands, err := s.Store.Stands(ctx, i.TenantID, i.Previous)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Sprintf("The id %s was given out for this before, and its quote ran out unused. ", i.Previous) + storeTheName, nil
	}
	if err != nil {
		return "", err
	}
	e, err := s.envelope(ctx, stands, nil)
	if err != nil {
		return "", err
	}
	why, ask := whoEnded(stands)
	said := ""
	if e.Decision != nil {
		said = fmt.Sprintf(" They wrote: %q.", e.Decision.Message)
	}
	before := fmt.Sprintf("This purchase was asked for before as %s, which was rejected: %s.%s ", i.Previous, why, said)
	if !ask {
		return before + storeTheName, nil
	}
	return before + "Ask the person you work for before you submit it again. If they want it, use this operation_id. Nothing was sent.", nil
}

func (s *Server) readIntent(r memberReader, who caller) (ledger.Intent, error) {
	want := ledger.Intent{TenantID: who.TenantID, Agent: who.Agent, TokenID: who.ID}
	want.ActionType, want.Reference = r.text("action_type", 64), r.text("reference", 256)
	want.RunID, want.Step = r.line("run_id", 128), r.line("step", 128)
	want.Quote = r.quote()
	if r.wrong != nil {
		return want, r.wrong
	}
	action := s.Store.Rulebook(who.TenantID).Actions[want.ActionType]
	if action == nil {
		return want, problemf("unknown_action_type", "There is no action type %q here. Nothing was recorded or sent.", want.ActionType)
	}
	if err := who.mayUse(action.Name, action.Rail); err != nil {
		return want, err
	}
	want.Reference = action.Read("reference", want.Reference)
	if q := want.Quote; q != nil {
		q.Recipient, q.Currency = action.Read("recipient", q.Recipient), action.Read("currency", q.Currency)
	}
	if want.Reference == "" && (want.RunID == "" || want.Step == "") {
		return want, misplaced("/reference", "Give a reference, or a run_id and a step: by them the same purchase finds its id again.")
	}
	if want.Quote.Expired(s.Store.Now()) {
		return want, misplaced("/quote/expires_at", "The quote is over already.")
	}
	return want, nil
}

// quote reads the optional offer.
func (r *memberReader) quote() *ledger.Quote {
	v, there := r.members["quote"]
	if !there || v == nil {
		return nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		r.refuse("/quote", "send an object", true)
		return nil
	}
	inner := memberReader{members: object, at: "/quote"}
	inner.only("id", "amount", "currency", "recipient", "expires_at")
	q := &ledger.Quote{ID: inner.text("id", 256), Currency: inner.text("currency", 16), Recipient: inner.text("recipient", 512), Amount: inner.integer("amount")}
	if at := inner.text("expires_at", 64); at != "" {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			inner.refuse("/expires_at", "send an RFC 3339 time such as 2026-01-31T12:00:00Z", true)
		}
		q.ExpiresAt = when.UnixMilli()
	}
	if q.Amount != nil && *q.Amount <= 0 {
		inner.refuse("/amount", "send the amount as a positive whole number of minor units", true)
	}
	if inner.wrong == nil && q.Same(&ledger.Quote{}) {
		inner.refuse("", "say what was offered, or leave the quote out", true)
	}
	if r.wrong == nil {
		r.wrong = inner.wrong
	}
	return q
}

func quoteOf(q *ledger.Quote) *quoteBody {
	if q == nil {
		return nil
	}
	b := &quoteBody{ID: q.ID, Amount: q.Amount, Currency: q.Currency, Recipient: q.Recipient}
	b.ExpiresAt = utc(q.ExpiresAt)
	return b
}

// utc is a time as JSON has it; null where there is none.
func utc(ms int64) *string {
	if ms == 0 {
		return nil
	}
	at := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
	return &at
}

// disagree answers what contradicts the record with the places that differ.
func (s *Server) disagree(tenant, actionType string, d store.Disagreement) error {
	p := newProblem("request", d.Sentence+" Nothing was sent. Do not create a new operation for this purchase.")
	action := s.Store.Rulebook(tenant).Actions[actionType]
	for _, role := range d.Roles {
		switch {
		case role == "action_type":
			p.mismatch = append(p.mismatch, "/action_type")
		case role == "quote":
			p.mismatch = append(p.mismatch, "/quote")
		case action != nil && action.Pointer(role) != "":
			p.mismatch = append(p.mismatch, action.Pointer(role))
		default:
			p.mismatch = append(p.mismatch, "/"+role)
		}
	}
	return p
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// whoEnded says by whose decision an operation was rejected, and whether the
// people the agent works for must be asked before it is wanted again.
func whoEnded(o ledger.Operation) (why string, ask bool) {
	switch o.Reason {
	case ledger.Denied:
		return "a person said no", true
	case ledger.RunStopped:
		return "a person stopped its run", true
	case ledger.ApprovalExpired:
		return "nobody decided in time", true
	case ledger.PolicyDenied:
		return "policy said no", true
	case ledger.Cancelled:
		return "it was taken back before anything was sent", false
	case ledger.Replaced:
		return "the agent replaced it", false
	case ledger.PrerequisiteRejected:
		return "an operation that it waited for was rejected", true
	case ledger.Declined:
		return "the provider refused it", true
	case ledger.NotExecuted:
		return "it was shown not to have happened", true
	case ledger.Observed:
		return "its action type only observes", true
	}
	return "the authority to send it ended", true
}

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// Operation is one wanted write. The caller gives it its name.
type Operation struct {
	OperationID  string   `json:"operation_id"`
	ActionType   string   `json:"action_type"`
	Payload      any      `json:"payload"` // anything that encoding/json writes as an object
	RunID        string   `json:"run_id,omitempty"`
	ParentRunID  string   `json:"parent_run_id,omitempty"`
	Step         string   `json:"step,omitempty"`
	DistinctFrom []string `json:"distinct_from,omitempty"`
	Because      string   `json:"because,omitempty"`
	Replaces     string   `json:"replaces,omitempty"`
	After        []string `json:"after,omitempty"`
}

// What an answer tells the agent to do next.
const (
	NextAwaitApproval = "await_approval"
	NextWait          = "wait"
	NextAwaitHuman    = "await_human"
	NextUseResult     = "use_result"
	NextStop          = "stop"
	NextFixRequest    = "fix_request"
)

// Envelope is where an operation stands.
type Envelope struct {
	OperationID string    `json:"operation_id"`
	OrderID     string    `json:"order_id"`
	ActionType  string    `json:"action_type"`
	Status      string    `json:"status"`
	Reason      string    `json:"reason"`
	Terminal    bool      `json:"terminal"`
	Next        string    `json:"next"`
	RetryAfter  int       `json:"retry_after"` // seconds
	Poll        string    `json:"poll"`
	Fingerprint string    `json:"fingerprint"`
	Words       string    `json:"words"`
	Attempts    int       `json:"attempts"`
	Result      *Receipt  `json:"result"`
	DuplicateOf string    `json:"duplicate_of"`
	ReplacedBy  string    `json:"replaced_by"`
	Detail      string    `json:"detail"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	Overlaps    []Overlap `json:"overlaps"`
	Decision    *Said     `json:"decision"`

	// HTTPStatus and Replayed are how it was answered: the recorded result of an
	// operation that had ended before is 200, replayed.
	HTTPStatus int  `json:"-"`
	Replayed   bool `json:"-"`
}

// Receipt is the provider's own record of the effect.
type Receipt struct {
	ID        string `json:"id"`
	Amount    *int64 `json:"amount"` // minor units
	Currency  string `json:"currency"`
	Recipient string `json:"recipient"`
	Reference string `json:"reference"`
	Stamp     string `json:"stamp"`
}

// Overlap is an earlier operation that holds this one, and why.
type Overlap struct {
	OperationID string   `json:"operation_id"`
	Why         []string `json:"why"`
}

// Said is what a person told the agent.
type Said struct {
	Message  string   `json:"message"`
	Pointers []string `json:"pointers"`
}

// Submit registers an operation and returns where it stands, which is often
// "not ended yet": see [Client.Wait]. A lost answer, a server that is in trouble
// or asks for patience, and an operation under way are met with the same id and
// the same bytes again. Anything else that is no success is a [*Problem].
func (c *Client) Submit(ctx context.Context, o Operation) (Envelope, error) {
	if o.OperationID == "" {
		return Envelope{}, errors.New("name the operation: OperationID is empty, and the client never makes one up")
	}
	body, err := json.Marshal(o)
	if err != nil {
		return Envelope{}, fmt.Errorf("the payload cannot be written as JSON: %w", err)
	}
	e, err := c.operation(ctx, call{method: "POST", path: "/v1/operations", body: body})
	var p *Problem
	if errors.As(err, &p) && p.Reason == "in_progress" && p.Operation != nil && p.Operation.Next != NextWait {
		// It is registered and waits for a person: repeating it moves nothing.
		return answered(*p.Operation, p.Status, false), nil
	}
	return e, err
}

// Get reads where an operation stands.
func (c *Client) Get(ctx context.Context, id string) (Envelope, error) {
	return c.operation(ctx, call{method: "GET", path: operationPath(id)})
}

// waitFor is what one request of Wait asks the server to hold on for.
const waitFor = 20 * time.Second

// Wait returns once the operation has ended, however long that takes; the
// context bounds it. With its error comes where the operation stood last.
func (c *Client) Wait(ctx context.Context, id string) (Envelope, error) {
	var last Envelope
	for {
		began := time.Now()
		e, err := c.operation(ctx, call{method: "GET", path: operationPath(id), wait: waitFor})
		if err != nil {
			return last, err
		}
		if last = e; e.Terminal {
			return e, nil
		}
		// Where something between us and the server ends the wait early, its
		// suggestion keeps this from becoming a storm.
		pause := time.Duration(max(e.RetryAfter, 1))*time.Second - time.Since(began)
		if err := sleep(ctx, max(pause, 0)); err != nil {
			return last, err
		}
	}
}

// Cancel takes an operation back of which nothing was sent. One that was is a
// [*Problem] with the reason already_dispatched.
func (c *Client) Cancel(ctx context.Context, id string) (Envelope, error) {
	e, err := c.operation(ctx, call{method: "POST", path: operationPath(id) + "/cancel"})
	var p *Problem
	if errors.As(err, &p) && p.Operation != nil && p.Operation.Status == "rejected" && p.Operation.Reason == "cancelled" {
		return answered(*p.Operation, p.Status, true), nil // our own cancel, whose answer was lost
	}
	return e, err
}

func (c *Client) operation(ctx context.Context, one call) (Envelope, error) {
	var e Envelope
	one.want = &e
	answer, err := c.do(ctx, one)
	if err != nil {
		return Envelope{}, err
	}
	return answered(e, answer.StatusCode, answer.Header.Get("Idempotent-Replayed") == "true"), nil
}

func answered(e Envelope, status int, replayed bool) Envelope {
	e.HTTPStatus, e.Replayed = status, replayed
	return e
}

// Filter narrows a list; what is empty narrows nothing.
type Filter struct {
	Status, ActionType, Reference, RunID string
	Cursor                               string // from the page before
	Limit                                int
}

// Page is a part of a list, newest first.
type Page struct {
	Items      []Envelope `json:"items"`
	NextCursor string     `json:"next_cursor"` // empty: this was the last
}

// List reads operations of the token's tenant.
func (c *Client) List(ctx context.Context, f Filter) (Page, error) {
	q := url.Values{}
	for name, value := range map[string]string{"status": f.Status, "action_type": f.ActionType, "reference": f.Reference, "run_id": f.RunID, "cursor": f.Cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	path := "/v1/operations"
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	var page Page
	_, err := c.do(ctx, call{method: "GET", path: path, want: &page})
	return page, err
}

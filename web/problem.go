package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/labstack/echo/v4"

	"holdfast/store/ledger"
)

// problem is an answer about a request: RFC 9457, with the members of the
// contract. It is an error, so that a handler can return it from anywhere.
type problem struct {
	ledger.Problem
	detail     string // instead of the registry's
	retryAfter int    // seconds
	mismatch   []string
	errors     []ledger.FieldError
	offset     *int64
	pointer    string
	operation  *ledger.Envelope
	line       int        // of a statement file
	question   *askedBody // that a statement file leaves open
}

func (p problem) Error() string { return p.Reason + ": " + p.text() }

func (p problem) text() string {
	if p.detail != "" {
		return p.detail
	}
	return p.Detail
}

// newProblem looks a reason up in the registry. A detail says what to do about
// this very request; empty, the registry's general sentence stands.
func newProblem(reason, detail string) problem {
	registered, known := ledger.ProblemFor(reason)
	if !known {
		panic("no problem is registered as " + reason)
	}
	p := problem{Problem: registered, detail: detail}
	if reason == "store_unavailable" {
		p.retryAfter = 2
	}
	return p
}

func problemf(reason, format string, args ...any) problem {
	return newProblem(reason, fmt.Sprintf(format, args...))
}

// about adds the operation that the problem concerns.
func (p problem) about(e ledger.Envelope) problem {
	p.operation = &e
	if !p.Terminal && p.Next != ledger.NextFixRequest && e.RetryAfter != nil {
		p.retryAfter = *e.RetryAfter
	}
	return p
}

// problemBody is the JSON form, in the order in which a person reads it.
type problemBody struct {
	Type        string              `json:"type"`
	Title       string              `json:"title"`
	Status      int                 `json:"status"`
	Detail      string              `json:"detail"`
	Reason      string              `json:"reason"`
	Terminal    bool                `json:"terminal"`
	Next        string              `json:"next"`
	RetryAfter  int                 `json:"retry_after,omitempty"`
	Poll        string              `json:"poll,omitempty"`
	OperationID string              `json:"operation_id,omitempty"`
	OrderID     string              `json:"order_id,omitempty"`
	Mismatch    []string            `json:"mismatch,omitempty"`
	Errors      []ledger.FieldError `json:"errors,omitempty"`
	Offset      *int64              `json:"offset,omitempty"`
	Pointer     string              `json:"pointer,omitempty"`
	Line        int                 `json:"line,omitempty"`
	Question    *askedBody          `json:"question,omitempty"`
	Operation   *ledger.Envelope    `json:"operation,omitempty"`
}

func (p problem) body() problemBody {
	body := problemBody{
		Type: p.Type(), Title: p.Title, Status: p.Status, Detail: p.text(), Reason: p.Reason, Terminal: p.Terminal, Next: p.Next,
		RetryAfter: p.retryAfter, Mismatch: p.mismatch, Errors: p.errors, Offset: p.offset, Pointer: p.pointer, Line: p.line, Question: p.question, Operation: p.operation,
	}
	if p.operation != nil {
		body.Poll, body.OperationID, body.OrderID = p.operation.Poll, p.operation.OperationID, p.operation.OrderID
	}
	return body
}

func (p problem) write(c echo.Context) error {
	h := c.Response().Header()
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	switch p.Reason {
	case "unauthorized":
		h.Set("WWW-Authenticate", `Bearer realm="holdfast", error="invalid_token"`)
	case "bad_signature":
		h.Set("WWW-Authenticate", `Signature realm="holdfast"`)
	}
	return writeJSON(c, p.Status, "application/problem+json", p.body())
}

// writeJSON renders the whole answer before the first byte goes out.
func writeJSON(c echo.Context, status int, mediaType string, body any) error {
	b, err := rendered(body)
	if err != nil {
		return err
	}
	return c.Blob(status, mediaType, b)
}

// rendered renders a body as every transport sends it.
func rendered(body any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(body)
	return b.Bytes(), err
}

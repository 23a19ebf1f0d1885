package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// Problem is an answer that is no success: RFC 9457 with the members of the
// API. Reason is the machine word; Next says what to do.
type Problem struct {
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Status      int          `json:"status"` // of HTTP
	Detail      string       `json:"detail"`
	Reason      string       `json:"reason"`
	Terminal    bool         `json:"terminal"`
	Next        string       `json:"next"`
	RetryAfter  int          `json:"retry_after"` // seconds
	Poll        string       `json:"poll"`
	OperationID string       `json:"operation_id"`
	OrderID     string       `json:"order_id"`
	Mismatch    []string     `json:"mismatch"`
	Errors      []FieldError `json:"errors"`
	Operation   *Envelope    `json:"operation"`
}

// FieldError is one place in the payload and what is wrong there.
type FieldError struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

func (p *Problem) Error() string {
	text := fmt.Sprintf("%d %s: %s", p.Status, p.Reason, p.Detail)
	for _, place := range p.Mismatch {
		text += " " + place + " differs."
	}
	for _, e := range p.Errors {
		text += fmt.Sprintf(" %s: %s.", e.Pointer, e.Message)
	}
	return text
}

// passing reports whether the same request may be answered otherwise later.
func (p *Problem) passing() bool {
	switch {
	case p.Terminal:
		return false
	case p.Status >= 500, p.Status == http.StatusTooManyRequests:
		return true
	}
	return p.Reason == "in_progress" && p.Next == NextWait && (p.Operation == nil || p.Operation.Next == NextWait)
}

// readProblem reads an error answer. One that a proxy wrote has no members; its
// status alone says whether to come back.
func readProblem(answer *http.Response, text []byte) *Problem {
	var p Problem
	if json.Unmarshal(text, &p) != nil || p.Reason == "" {
		p = Problem{Detail: "the answer is not one of holdfast's: is the address right?", Reason: "no_problem_details"}
	}
	p.Status = answer.StatusCode
	if p.RetryAfter == 0 {
		p.RetryAfter, _ = strconv.Atoi(answer.Header.Get("Retry-After"))
	}
	p.RetryAfter = max(p.RetryAfter, 0)
	return &p
}

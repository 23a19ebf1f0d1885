package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
)

// runBody is a run's budget.
type runBody struct {
	RunID       string         `json:"run_id"`
	ParentRunID *string        `json:"parent_run_id"`
	MaxAttempts int            `json:"max_attempts"`
	Deadline    *string        `json:"deadline"`
	Used        int            `json:"used"`
	Left        int            `json:"left"`
	ByLayer     map[string]int `json:"by_layer"`
	Stopped     bool           `json:"stopped"`
	Detail      string         `json:"detail"`
}

func runAnswer(r ledger.Run, now int64) runBody {
	detail, left := r.Over(now), r.Left()
	if detail != "" {
		left = 0 // whatever was not used
	}
	switch {
	case detail == "" && left == 1:
		detail = "1 retry is left, over all layers and until the deadline. First submissions, reading and recorded results are free."
	case detail == "" && left == 0:
		detail = "No retries: the first one is refused, and ends the run. First submissions, reading and recorded results are free."
	case detail == "":
		detail = fmt.Sprintf("%d retries are left, over all layers and until the deadline. First submissions, reading and recorded results are free.", left)
	default:
		detail += " Stop and tell the person you work for; reading operations and their results stays free."
	}
	return runBody{RunID: r.RunID, ParentRunID: given(r.ParentRunID), MaxAttempts: r.MaxAttempts, Deadline: utc(r.Deadline),
		Used: r.Used, Left: left, ByLayer: r.ByLayer, Stopped: r.StoppedAt > 0, Detail: detail}
}

// showRun answers GET /v1/runs/{run_id}.
func (s *Server) showRun(c echo.Context) error {
	who, err := s.authenticate(c, "operations:read")
	if err != nil {
		return err
	}
	a, err := s.lookAtRun(c.Request().Context(), who, runID(c))
	if err != nil {
		return err
	}
	return a.write(c)
}

// lookAtRun says how much of its budget a run has left.
func (s *Server) lookAtRun(ctx context.Context, who caller, id string) (answer, error) {
	r, err := s.Store.Run(ctx, who.TenantID, id)
	return s.describeRun(r, err)
}

// lowerRun answers PUT /v1/runs/{run_id}.
func (s *Server) lowerRun(c echo.Context) error {
	who, err := s.authenticate(c, "operations:write")
	if err != nil {
		return err
	}
	in, err := readMembers(c, "max_attempts", "deadline", "parent_run_id")
	if err != nil {
		return err
	}
	parent := in.line("parent_run_id", 128)
	most := in.integer("max_attempts")
	var deadline *int64
	if at := in.text("deadline", 64); at != "" {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			in.refuse("/deadline", "send an RFC 3339 time such as 2026-01-31T12:00:00Z", true)
		}
		ms := when.UnixMilli()
		deadline = &ms
	}
	if most != nil && (*most < 0 || *most > 1_000_000) {
		in.refuse("/max_attempts", "send a number from 0 to 1000000", true)
	}
	if in.wrong != nil {
		return in.wrong
	}
	id := runID(c)
	if id == "" {
		return newProblem("invalid_request", "run_id: use 1 to 128 bytes, without control characters. Nothing was recorded.")
	}
	var attempts *int
	if most != nil {
		n := int(*most)
		attempts = &n
	}
	r, err := s.Store.LowerRun(c.Request().Context(), who.TenantID, id, parent, attempts, deadline)
	return s.answerRun(c, r, err)
}

// reportAttempts answers POST /v1/runs/{run_id}/attempts.
func (s *Server) reportAttempts(c echo.Context) error {
	who, err := s.authenticate(c, "operations:write")
	if err != nil {
		return err
	}
	in, err := readMembers(c, "layer", "count")
	if err != nil {
		return err
	}
	layer := in.text("layer", 32)
	if !slices.Contains(ledger.RunLayers, layer) {
		in.refuse("/layer", "send one of "+strings.Join(ledger.RunLayers, ", "), true)
	}
	count := in.integer("count")
	if count == nil || *count < 1 || *count > 10_000 {
		in.refuse("/count", "send a number from 1 to 10000", true)
	}
	if in.wrong != nil {
		return in.wrong
	}
	id := runID(c)
	if id == "" {
		return newProblem("invalid_request", "run_id: use 1 to 128 bytes, without control characters. Nothing was recorded.")
	}
	r, err := s.Store.ReportAttempts(c.Request().Context(), who.TenantID, id, layer, int(*count))
	return s.answerRun(c, r, err)
}

func (s *Server) answerRun(c echo.Context, r ledger.Run, err error) error {
	a, err := s.describeRun(r, err)
	if err != nil {
		return err
	}
	return a.write(c)
}

func (s *Server) describeRun(r ledger.Run, err error) (answer, error) {
	var raised store.BudgetRaised
	switch {
	case errors.Is(err, store.ErrNotFound):
		return answer{}, newProblem("not_found", "No run of this tenant has that name; it begins with its first operation.")
	case errors.As(err, &raised):
		return answer{}, misplaced("/"+raised.Member, "%s", raised.Sentence)
	case err != nil:
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: runAnswer(r, s.Store.Now())}, nil
}

// runID is the run that the path names; empty if it cannot be one.
func runID(c echo.Context) string {
	id := c.Param("run")
	if c.Request().URL.RawPath != "" { // the router saw the path as it was written
		unescaped, err := url.PathUnescape(id)
		if err != nil {
			return ""
		}
		id = unescaped
	}
	if len(id) > 128 || strings.ContainsFunc(id, misleads) {
		return ""
	}
	return id
}

package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
)

// routeAPI wires what agents call. Each handler names the scope it needs in its
// first line, but the one for providers, whose signature is their right.
func (s *Server) routeAPI(e *echo.Echo) {
	v1 := e.Group("/v1")
	v1.POST("/operations", s.submit)
	v1.GET("/operations", s.list)
	v1.GET("/operations/:id", s.show)
	v1.GET("/operations/:id/evidence", s.showEvidence)
	v1.POST("/operations/:id/cancel", s.cancel)
	v1.POST("/intents", s.intend)
	v1.GET("/runs/:run", s.showRun)
	v1.PUT("/runs/:run", s.lowerRun)
	v1.POST("/runs/:run/attempts", s.reportAttempts)
	v1.POST("/rails/:rail/events", s.hearEvent)
	v1.POST("/statements", s.takeStatement)
	v1.POST("/refunds-owed", s.reportRefund)
	v1.GET("/refunds-owed", s.listRefunds)
}

var operationID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)

// envelope describes an operation to an agent, with what a person told it.
func (s *Server) envelope(ctx context.Context, o ledger.Operation, original *ledger.Operation) (ledger.Envelope, error) {
	stands := o
	if original != nil {
		stands = *original
	}
	e := ledger.Describe(o, original)
	if rail, known := s.Store.Rulebook(o.TenantID).Route(stands); known && stands.Attempts > 0 {
		now := s.Store.Now()
		e = e.Resendable(keyUntil(stands, rail, now), now)
	}
	if len(stands.After) > 0 && stands.Status == ledger.Ready {
		first, err := s.Store.WaitsFor(ctx, stands.TenantID, stands.OperationID)
		if err != nil {
			return e, err
		}
		e = e.Waiting(first)
	}
	if stands.Status == ledger.Rejected && stands.Attempts == 0 {
		by, err := s.Store.Successor(ctx, stands.TenantID, stands.OperationID)
		if err != nil {
			return e, err
		}
		e = e.Succeeded(by)
	}
	switch {
	case stands.Status == ledger.Ready:
		pause, err := s.Store.Pause(ctx, stands.TenantID, stands.Rail)
		return e.Paused(pause), err
	case o.Status == ledger.Rejected && o.Reason == ledger.Denied:
		said, err := s.Store.Approvals(ctx, o.TenantID, o.OperationID)
		if err != nil || len(said) == 0 {
			return e, err
		}
		no := said[len(said)-1]
		return e.Saying(no.Reason, no.Pointers...), nil
	case o.Status == ledger.Rejected && o.Reason == ledger.RunStopped:
		log, err := s.Store.Timeline(ctx, o.TenantID, o.OperationID)
		for _, entry := range log {
			if ledger.Event(entry.Event) == ledger.StopRun {
				e = e.Saying(ownWords(entry))
			}
		}
		return e, err
	}
	return e, nil
}

// show answers GET /v1/operations/{id}.
func (s *Server) show(c echo.Context) error {
	who, err := s.authenticate(c, "operations:read")
	if err != nil {
		return err
	}
	prefer := preferences(c.Request())
	prefer.async = false
	a, err := s.look(c.Request().Context(), who, pathID(c), prefer)
	if err != nil {
		return err
	}
	prefer.applied(c)
	if matches(c.Request().Header.Values("If-None-Match"), a.etag) {
		c.Response().Header().Set("ETag", a.etag)
		return c.NoContent(http.StatusNotModified)
	}
	return a.write(c)
}

// look says where an operation stands, once it has ended or the wait is over.
func (s *Server) look(ctx context.Context, who caller, id string, prefer preference) (answer, error) {
	o, err := s.find(ctx, who, id)
	if err != nil {
		return answer{}, err
	}
	o, original, err := s.awaitEnd(ctx, o, prefer.wait)
	if err != nil {
		return answer{}, err
	}
	e, err := s.envelope(ctx, o, original)
	return answer{status: http.StatusOK, body: e, etag: etag(o, original, e)}, err
}

// pathID is the operation that the path names; empty if it cannot be one.
func pathID(c echo.Context) string {
	id, err := url.PathUnescape(c.Param("id"))
	if err != nil {
		return ""
	}
	return id
}

// find reads an operation. An id of another tenant, one that does not exist and
// one that cannot exist have one answer.
func (s *Server) find(ctx context.Context, who caller, id string) (ledger.Operation, error) {
	if !operationID.MatchString(id) {
		return ledger.Operation{}, newProblem("not_found", "")
	}
	o, err := s.Store.Operation(ctx, who.TenantID, id)
	if errors.Is(err, store.ErrNotFound) {
		return o, newProblem("not_found", "")
	}
	return o, err
}

// etag changes whenever an answer about the operation would.
func etag(o ledger.Operation, original *ledger.Operation, e ledger.Envelope) string {
	tag := strconv.FormatInt(o.Version, 10)
	if original != nil {
		tag += fmt.Sprintf("-%d", original.Version)
	}
	if beside := e.Beside(); beside != "" { // a pause changes no operation, and neither does what it waits for
		sum := sha256.Sum256([]byte(beside))
		tag += "-" + hex.EncodeToString(sum[:8])
	}
	return `"` + tag + `"`
}

func matches(ifNoneMatch []string, tag string) bool {
	for _, item := range strings.Split(strings.Join(ifNoneMatch, ","), ",") {
		item = strings.TrimPrefix(strings.TrimSpace(item), "W/")
		if item == tag || item == "*" {
			return true
		}
	}
	return false
}

// listBody is a page of operations, newest first.
type listBody struct {
	Items      []ledger.Envelope `json:"items"`
	NextCursor *string           `json:"next_cursor"`
}

// list answers GET /v1/operations.
func (s *Server) list(c echo.Context) error {
	who, err := s.authenticate(c, "operations:read")
	if err != nil {
		return err
	}
	q, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return newProblem("invalid_request", "query: write NAME=VALUE&NAME=VALUE, percent-encoded.")
	}
	a, err := s.page(c.Request().Context(), who, q)
	if err != nil {
		return err
	}
	return a.write(c)
}

// page is one page of a list.
func (s *Server) page(ctx context.Context, who caller, q url.Values) (answer, error) {
	f, err := listFilter(q)
	if err != nil {
		return answer{}, err
	}
	page, err := s.Store.Operations(ctx, who.TenantID, f)
	if errors.Is(err, store.ErrForbidden) {
		return answer{}, newProblem("invalid_request", "cursor: use one that a list gave out, with the same filter.")
	}
	if err != nil {
		return answer{}, err
	}
	body := listBody{Items: make([]ledger.Envelope, 0, len(page.Items))}
	for _, o := range page.Items {
		original, err := s.Store.Original(ctx, o)
		if err != nil {
			return answer{}, err
		}
		e, err := s.envelope(ctx, o, original)
		if err != nil {
			return answer{}, err
		}
		body.Items = append(body.Items, e)
	}
	link := ""
	if page.Next != "" {
		body.NextCursor = &page.Next
		q.Set("cursor", page.Next)
		link = fmt.Sprintf(`</v1/operations?%s>; rel="next"`, q.Encode())
	}
	return answer{status: http.StatusOK, body: body, link: link}, nil
}

func listFilter(q url.Values) (store.Filter, error) {
	f := store.Filter{ActionType: q.Get("action_type"), Reference: q.Get("reference"), RunID: q.Get("run_id"), Cursor: q.Get("cursor")}
	if err := knownParameters(q, "status", "action_type", "reference", "run_id", "cursor", "limit"); err != nil {
		return f, err
	}
	if word := q.Get("status"); word != "" {
		for _, one := range strings.Split(word, ",") {
			if !slices.Contains(ledger.Statuses(), ledger.Status(one)) {
				return f, problemf("invalid_request", "status: %q is no status.", one)
			}
			f.Statuses = append(f.Statuses, ledger.Status(one))
		}
	}
	limit, err := limitOf(q)
	f.Limit = limit
	return f, err
}

// knownParameters refuses what a list does not know, and what is given twice.
func knownParameters(q url.Values, known ...string) error {
	for name, values := range q {
		if !slices.Contains(known, name) {
			last := len(known) - 1
			return problemf("invalid_request", "%s: there is no such parameter; use %s or %s.", name, strings.Join(known[:last], ", "), known[last])
		}
		if len(values) > 1 {
			return problemf("invalid_request", "%s: give it once.", name)
		}
	}
	return nil
}

// limitOf is how many items a page is to have; 0 where nobody says.
func limitOf(q url.Values) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 200 {
		return 0, newProblem("invalid_request", "limit: give a number from 1 to 200.")
	}
	return n, nil
}

// cancel answers POST /v1/operations/{id}/cancel.
func (s *Server) cancel(c echo.Context) error {
	who, err := s.authenticate(c, "operations:write")
	if err != nil {
		return err
	}
	a, err := s.takeBack(c.Request().Context(), who, pathID(c))
	if err != nil {
		return err
	}
	return a.write(c)
}

// tooLate refuses to take back or to replace what was sent, has ended or has an
// original. Where nothing was ever sent there may be no outcome to wait for, and
// then what the operation says counts.
func tooLate(o ledger.Operation, original *ledger.Operation, e ledger.Envelope, cannot string) error {
	stands := o
	if original != nil {
		stands = *original
	}
	p := newProblem("already_dispatched", "")
	if stands.Attempts == 0 && !stands.Quarantined {
		p.detail = cannot + ", though nothing was sent. " + e.Detail
		p.Next, p.Terminal = e.Next, e.Terminal
	}
	return p.about(e)
}

// takeBack cancels an operation of which nothing was sent.
func (s *Server) takeBack(ctx context.Context, who caller, id string) (answer, error) {
	o, err := s.find(ctx, who, id)
	if err != nil {
		return answer{}, err
	}
	if err := who.mayEnd(o); err != nil {
		return answer{}, err
	}
	o, err = s.Store.Cancel(ctx, o.TenantID, o.OperationID, who.holder())
	refused := errors.Is(err, ledger.ErrNotAllowed)
	if err != nil && !refused {
		return answer{}, err
	}
	original, err := s.Store.Original(ctx, o)
	if err != nil {
		return answer{}, err
	}
	e, err := s.envelope(ctx, o, original)
	if err != nil {
		return answer{}, err
	}
	if refused {
		return answer{}, tooLate(o, original, e, "It can no longer be taken back")
	}
	return answer{status: http.StatusOK, body: e}, nil
}

package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// audit is the action log, newest first, with its filter in the URL.
func (s *Server) audit(c echo.Context, p ledger.PersonRecord) error {
	f, err := s.frame(c, views.AtAudit, p)
	if err != nil {
		return err
	}
	page := views.AuditPage{Frame: f, Filter: views.AuditFilter{Actor: asked(c, "actor"), Object: asked(c, "object"), ObjectID: asked(c, "id"),
		Event: asked(c, "event"), From: asked(c, "from"), To: asked(c, "to"), Below: asked(c, "below")}}
	ctx := c.Request().Context()
	if page.Objects, page.Events, err = s.Store.AuditKinds(ctx, p.TenantID); err != nil {
		return err
	}
	page.Ever = len(page.Events) > 0
	if page.Seal, err = s.seal(ctx); err != nil {
		return err
	}
	query, problem := auditQuery(page.Filter)
	if page.Problem = problem; problem != "" {
		return render(c, http.StatusUnprocessableEntity, views.Audit(page))
	}
	if page.Items, page.Below, err = s.Store.Audit(ctx, p.TenantID, query); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Audit(page))
}

// auditQuery reads the filter; days are UTC, and the last one counts whole.
func auditQuery(f views.AuditFilter) (store.AuditFilter, string) {
	q := store.AuditFilter{Actor: f.Actor, Object: f.Object, ObjectID: f.ObjectID, Event: f.Event}
	for _, day := range []struct {
		text string
		plus int
		at   *int64
	}{{f.From, 0, &q.From}, {f.To, 1, &q.To}} {
		if day.text == "" {
			continue
		}
		t, err := time.Parse(time.DateOnly, day.text)
		if err != nil {
			return q, "Write a day like 2026-01-31."
		}
		*day.at = max(t.AddDate(0, 0, day.plus).UnixMilli(), 1)
	}
	if f.Below != "" {
		below, err := strconv.ParseInt(f.Below, 10, 64)
		if err != nil || below < 1 {
			return q, "There is no entry of that number. Begin with the newest."
		}
		q.Below = below
	}
	return q, ""
}

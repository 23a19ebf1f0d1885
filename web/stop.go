package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// runs lists agent runs with their budgets, newest first, or shows one.
func (s *Server) runs(c echo.Context, p ledger.PersonRecord) error {
	return s.drawRuns(c, p, store.RunFilter{RunID: cut(c.QueryParam("run_id"), maxID), After: cut(c.QueryParam("after"), maxID)}, http.StatusOK, views.FormState{})
}

func (s *Server) drawRuns(c echo.Context, p ledger.PersonRecord, filter store.RunFilter, status int, form views.FormState) error {
	f, err := s.frame(c, views.AtRuns, p)
	if err != nil {
		return err
	}
	page := views.RunsPage{Frame: f, RunID: filter.RunID, Stop: mayStopRuns(p), Form: form}
	var more bool
	if page.Items, more, err = s.Store.Runs(c.Request().Context(), p.TenantID, filter); err != nil {
		return err
	}
	for i, r := range page.Items {
		if r.StoppedBy == "" {
			continue
		}
		if page.Items[i].StoppedBy, err = s.nameOf(c.Request().Context(), p.TenantID, r.StoppedBy); err != nil {
			return err
		}
	}
	if more {
		page.Older = page.Items[len(page.Items)-1].RunID
	}
	return render(c, status, views.Runs(page))
}

func mayStopRuns(p ledger.PersonRecord) views.Decision {
	d := views.Decision{Act: "stop-run", ReasonRequired: true}
	d.Allowed, d.Why = ledger.MayAct(p.Email, p.Roles)
	return d
}

// stopRun takes a person's end of a run from the form to the store, which has
// the last word. The page that follows says what the log says.
func (s *Server) stopRun(c echo.Context, p ledger.PersonRecord) error {
	ctx := c.Request().Context()
	f, err := s.frame(c, views.AtRuns, p)
	if err != nil {
		return err
	}
	id := c.Request().PostForm.Get("run_id") // whole, also the space at its ends
	found, _, err := s.Store.Runs(ctx, p.TenantID, store.RunFilter{RunID: id})
	switch {
	case err != nil:
		return err
	case id == "" || len(found) == 0:
		return render(c, http.StatusNotFound, views.Message(views.NoRun(f, cut(id, maxID))))
	}
	if d := mayStopRuns(p); !d.Allowed {
		return render(c, http.StatusForbidden, views.Message(views.Forbidden(f, d.Why)))
	}
	if was := found[0]; was.StoppedAt > 0 && !strings.EqualFold(was.StoppedBy, p.Email) {
		if was.StoppedBy, err = s.nameOf(ctx, p.TenantID, was.StoppedBy); err != nil {
			return err
		}
		return render(c, http.StatusConflict, views.Message(views.StoppedBefore(f, was)))
	}
	why := typed(c, "reason")
	problem := checkText("A reason", why, maxReason, true)
	if problem == "" {
		_, err = s.Store.StopRun(ctx, p.TenantID, id, store.Decision{Person: p, Reason: why})
		if errors.Is(err, store.ErrForbidden) {
			problem = sentence(err)
		} else if err != nil {
			return err
		}
	}
	if problem != "" {
		form := views.FormState{Act: "stop-run", Problem: problem, Values: map[string]string{"run_id": id, "reason": cut(why, 4*maxReason)}}
		return s.drawRuns(c, p, store.RunFilter{RunID: id}, http.StatusUnprocessableEntity, form)
	}
	return c.Redirect(http.StatusSeeOther, "/runs?"+url.Values{"run_id": {id}}.Encode())
}

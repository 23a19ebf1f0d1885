package web

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// What people decide about lines of statements. The store has the last word.

// back is the page that a form stood on.
func back(c echo.Context) string {
	to := localPath(typed(c, "back"))
	if !strings.HasPrefix(to, "/statements") && !strings.HasPrefix(to, "/operations/") {
		return "/statements"
	}
	return to
}

// answered leads back, or says why nothing was recorded.
func (s *Server) answered(c echo.Context, p ledger.PersonRecord, err error) error {
	if err == nil {
		return c.Redirect(http.StatusSeeOther, back(c))
	}
	f, trouble := s.frame(c, views.AtStatements, p)
	if trouble != nil {
		return trouble
	}
	allowed, why := ledger.MayAct(p.Email, p.Roles)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return render(c, http.StatusNotFound, views.Message(views.NoStatement(f, "")))
	case !allowed:
		return render(c, http.StatusForbidden, views.Message(views.Forbidden(f, why)))
	case errors.Is(err, store.ErrStale):
		return render(c, http.StatusConflict, views.Message(views.LineChanged(f, back(c))))
	case errors.Is(err, store.ErrForbidden):
		return render(c, http.StatusUnprocessableEntity, views.Message(views.Unclear(f, sentence(err), back(c))))
	}
	return err
}

var errNothingSeen = unclear{http.StatusUnprocessableEntity, "The form does not say what you saw. Open the statement again and decide there."}

// seenLine is a line as it was on the screen: its id and version.
func seenLine(text string) (store.LineSeen, error) {
	id, version, _ := strings.Cut(text, ":")
	var l store.LineSeen
	var err, also error
	l.ID, err = strconv.ParseInt(id, 10, 64)
	l.Version, also = strconv.ParseInt(version, 10, 64)
	if err != nil || also != nil || l.ID <= 0 || l.Version <= 0 {
		return l, errNothingSeen
	}
	return l, nil
}

// seenException is a line, or an operation that no statement shows.
func seenException(c echo.Context) (e store.Exceptional, err error) {
	if c.Request().PostForm.Has("line") {
		l, err := seenLine(typed(c, "line"))
		return store.Exceptional{LineID: l.ID, Version: l.Version}, err
	}
	e.OperationID = typed(c, "operation")
	if e.Version, err = strconv.ParseInt(typed(c, "version"), 10, 64); err != nil || e.Version <= 0 || e.OperationID == "" {
		return e, errNothingSeen
	}
	return e, nil
}

// reasoned is a decision with the reason that was typed.
func reasoned(c echo.Context, p ledger.PersonRecord) (store.Decision, error) {
	d := store.Decision{Person: p, Reason: typed(c, "reason")}
	if problem := checkText("A reason", d.Reason, maxReason, true); problem != "" {
		return d, unclear{http.StatusUnprocessableEntity, problem}
	}
	return d, nil
}

// matchLines joins what was ticked. What it differs in is told, and the form
// comes back as it was.
func (s *Server) matchLines(c echo.Context, p ledger.PersonRecord) error {
	ctx := c.Request().Context()
	j := store.Joining{Person: p, ExplainedAs: typed(c, "explained_as"), Explained: typed(c, "explained"), Reason: typed(c, "reason")}
	for _, text := range c.Request().PostForm["line"] {
		l, err := seenLine(text)
		if err != nil {
			return err
		}
		j.Lines = append(j.Lines, l)
	}
	for _, id := range c.Request().PostForm["operation"] {
		if id = strings.TrimSpace(id); id != "" {
			j.Operations = append(j.Operations, id)
		}
	}
	problem := checkText("An explanation", j.Explained, maxReason, false)
	if problem == "" {
		_, err := s.Store.Match(ctx, p.TenantID, j)
		if allowed, _ := ledger.MayAct(p.Email, p.Roles); !allowed || err == nil || !errors.Is(err, store.ErrForbidden) || errors.Is(err, store.ErrStale) {
			return s.answered(c, p, err)
		}
		problem = sentence(err)
	}
	at, err := url.Parse(back(c))
	if err != nil || !strings.HasPrefix(at.Path, "/statements/") {
		return unclear{http.StatusUnprocessableEntity, problem}
	}
	page := views.DeskPage{State: ledger.LineState(at.Query().Get("state")), Form: views.FormState{Act: "match", Problem: problem,
		Values: map[string]string{"explained_as": j.ExplainedAs, "explained": cut(j.Explained, 4*maxReason)}}, Ticked: map[string]bool{}}
	page.After, _ = strconv.ParseInt(at.Query().Get("after"), 10, 64)
	page.OperationsAfter, _ = strconv.ParseInt(at.Query().Get("ops"), 10, 64)
	for _, l := range j.Lines {
		page.Ticked["line "+strconv.FormatInt(l.ID, 10)] = true
	}
	for _, id := range j.Operations {
		page.Ticked["operation "+id] = true
	}
	return s.drawDesk(c, p, http.StatusUnprocessableEntity, page, strings.TrimPrefix(at.Path, "/statements/"))
}

// unmatch ends a match, or turns a suggestion down.
func (s *Server) unmatch(c echo.Context, p ledger.PersonRecord) error {
	l, err := seenLine(typed(c, "line"))
	if err != nil {
		return err
	}
	d, err := reasoned(c, p)
	if err == nil {
		err = s.Store.Unmatch(c.Request().Context(), p.TenantID, l, d)
	}
	return s.answered(c, p, err)
}

func (s *Server) setLineAside(c echo.Context, p ledger.PersonRecord) error {
	e, err := seenException(c)
	if err != nil {
		return err
	}
	d, err := reasoned(c, p)
	if err == nil {
		err = s.Store.SetAside(c.Request().Context(), p.TenantID, e, d)
	}
	return s.answered(c, p, err)
}

func (s *Server) takeLine(c echo.Context, p ledger.PersonRecord) error {
	return s.ownLine(c, p, p.Email)
}

func (s *Server) handLineBack(c echo.Context, p ledger.PersonRecord) error {
	return s.ownLine(c, p, "")
}

func (s *Server) ownLine(c echo.Context, p ledger.PersonRecord, owner string) error {
	e, err := seenException(c)
	if err != nil {
		return err
	}
	return s.answered(c, p, s.Store.TakeException(c.Request().Context(), p.TenantID, e, p, owner))
}

// longestSnooze is how far a line may be put away.
const longestSnooze = 366 * 24 * time.Hour

func (s *Server) snoozeLine(c echo.Context, p ledger.PersonRecord) error {
	e, err := seenException(c)
	if err != nil {
		return err
	}
	until := int64(0) // nothing typed brings it back
	if text := typed(c, "until"); text != "" {
		day, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return unclear{http.StatusUnprocessableEntity, "The day can't be read. Write it as 2026-01-31."}
		}
		if until = day.UnixMilli(); until <= s.Store.Now() || until > s.Store.Now()+longestSnooze.Milliseconds() {
			return unclear{http.StatusUnprocessableEntity, "Choose a day that is still to come, within a year."}
		}
	}
	return s.answered(c, p, s.Store.SnoozeException(c.Request().Context(), p.TenantID, e, p, until))
}

// undoImport takes an import back as a whole.
func (s *Server) undoImport(c echo.Context, p ledger.PersonRecord) error {
	d, err := reasoned(c, p)
	if err == nil {
		err = s.Store.UndoStatement(c.Request().Context(), p.TenantID, typed(c, "statement"), d)
	}
	return s.answered(c, p, err)
}

// closePeriod locks an account up to the end of a day. What is in the way is
// shown, and nothing is locked.
func (s *Server) closePeriod(c echo.Context, p ledger.PersonRecord) error {
	rail, account, until := c.Request().PostForm.Get("rail"), c.Request().PostForm.Get("account"), typed(c, "until")
	if may := mayReconcile(p, "close-period"); !may.Allowed {
		return s.answered(c, p, store.ErrForbidden)
	}
	form, status := views.FormState{Act: "close-period"}, http.StatusUnprocessableEntity
	at, err := dayAfter(until, s.zoneOf(p.TenantID, rail))
	if err != nil {
		form.Problem = "The day can't be read. Write it as 2026-01-31."
	} else {
		_, err = s.Store.ClosePeriod(c.Request().Context(), p.TenantID, rail, account, at,
			store.Decision{Person: p, Seen: store.Seen{Fingerprint: typed(c, "seen")}})
		switch {
		case err == nil:
			return c.Redirect(http.StatusSeeOther, string(views.ClosingPath(rail, account, until)))
		case !errors.Is(err, store.ErrForbidden):
			return s.answered(c, p, err)
		}
		if form.Problem = sentence(err); errors.Is(err, store.ErrSheetChanged) {
			status = http.StatusConflict
		}
	}
	return s.drawClosing(c, p, status, rail, account, until, form)
}

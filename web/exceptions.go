package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// exceptionNeeds are what contradicts operations that ended, as rows: those that
// the person may answer, and those of others.
func (s *Server) exceptionNeeds(ctx context.Context, p ledger.PersonRecord, form views.FormState) (mine, others []views.Need, err error) {
	open, err := s.Store.OpenExceptions(ctx, p.TenantID)
	if err != nil || len(open) == 0 {
		return nil, nil, err
	}
	people, err := s.countPeople(ctx, p.TenantID)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range open {
		o, err := s.Store.Operation(ctx, p.TenantID, e.OperationID)
		if err != nil {
			return nil, nil, err
		}
		row := views.Exception{Exception: e, Answer: mayAnswer(o, p, people)}
		if form.Values["exception"] == e.ID {
			row.Form = form
		}
		n := views.Need{Operation: s.veil(p, o), Exception: &row, Sentence: e.Sentence, Since: e.OpenedAt}
		if row.Answer.Allowed {
			mine = append(mine, n)
		} else {
			others = append(others, n)
		}
	}
	return mine, others, nil
}

func mayAnswer(o ledger.Operation, p ledger.PersonRecord, people int) views.Decision {
	d := views.Decision{Act: "set-aside", ReasonRequired: true}
	d.Allowed, _, d.Why = ledger.MayAnswer(o, p.Email, p.Roles, people)
	return d
}

// setAside takes a person's answer to an exception from the form to the store,
// which has the last word.
func (s *Server) setAside(c echo.Context, p ledger.PersonRecord) error {
	ctx := c.Request().Context()
	f, err := s.frame(c, views.AtHome, p)
	if err != nil {
		return err
	}
	id, why := typed(c, "exception"), typed(c, "reason")
	version, _ := strconv.ParseInt(typed(c, "version"), 10, 64) // what is no number was never on a screen
	problem := checkText("A reason", why, maxReason, true)
	if problem == "" {
		err := s.Store.AnswerException(ctx, p.TenantID, id, store.Decision{Person: p, Reason: why, Seen: store.Seen{Version: version}})
		switch {
		case errors.Is(err, store.ErrNotFound):
			return render(c, http.StatusNotFound, views.Message(views.Unclear(f, "There is no such exception.", "/")))
		case errors.Is(err, store.ErrStale):
			return render(c, http.StatusConflict, views.Message(views.AnsweredBefore(f)))
		case errors.Is(err, store.ErrForbidden):
			return render(c, http.StatusForbidden, views.Message(views.Forbidden(f, sentence(err))))
		case err != nil:
			return err
		}
		return c.Redirect(http.StatusSeeOther, "/")
	}
	page, err := s.homePage(c, p, views.FormState{Act: "set-aside", Problem: problem, Values: map[string]string{"exception": id, "reason": cut(why, 4*maxReason)}})
	if err != nil {
		return err
	}
	return render(c, http.StatusUnprocessableEntity, views.Home(page))
}

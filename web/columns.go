package web

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"holdfast/dispatch/rail"
	"holdfast/reconcile/statement"
	"holdfast/store/ledger"
	"holdfast/views"
)

// nameColumns takes what a person says the columns of a file hold, or takes back
// what was said.
func (s *Server) nameColumns(c echo.Context, p ledger.PersonRecord, held heldFile) error {
	id := typed(c, "upload")
	if typed(c, "anew") != "" {
		s.held.forget(id)
		return c.Redirect(http.StatusSeeOther, previewPath(id))
	}
	_, err := s.Scheduler.PreviewStatement(c.Request().Context(), held.upload(p))
	u, ok := errors.AsType[*statement.Unnamed](err)
	if !ok { // read by now, or refused: the page says which
		return c.Redirect(http.StatusSeeOther, previewPath(id))
	}
	var holds []string
	for i := range u.Titles {
		holds = append(holds, typed(c, "column-"+strconv.Itoa(i)))
	}
	answers, problem := u.Answers(holds, typed(c, "header") == "none")
	if problem != "" {
		f, err := s.frame(c, views.AtStatements, p)
		if err != nil {
			return err
		}
		form := views.FormState{Act: "import", Problem: problem, Values: map[string]string{}}
		for field := range c.Request().PostForm {
			form.Values[field] = cut(typed(c, field), maxID)
		}
		return s.drawPreview(c, p, f, id, held, form)
	}
	for _, key := range []string{"currency", "time_zone"} {
		if value := typed(c, key); value != "" {
			answers[key] = cut(value, 64)
		}
	}
	s.held.forget(id) // one who names columns names all of them
	s.held.answer(id, answers)
	return c.Redirect(http.StatusSeeOther, previewPath(id))
}

// fileColumns are the columns of a file that nobody named, for the page that asks.
func fileColumns(u *statement.Unnamed) *views.FileColumns {
	page := &views.FileColumns{Trouble: u.Trouble, Headless: u.Headless, Names: rail.StatementColumns}
	for i, title := range u.Titles {
		column := views.FileColumn{Title: title, Holds: u.Holds[i]}
		for _, row := range u.Rows {
			if i < len(row) {
				column.Sample = append(column.Sample, row[i])
			}
		}
		page.Columns = append(page.Columns, column)
	}
	return page
}

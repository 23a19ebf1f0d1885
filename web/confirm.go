package web

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store/ledger"
	"holdfast/views"
)

// confirmPath leads to the page that asks once more who it is, and back.
func confirmPath(next string) string { return "/confirm?" + url.Values{"next": {next}}.Encode() }

func (s *Server) confirmPage(c echo.Context, p ledger.PersonRecord, next string) (views.CodePage, error) {
	f, err := s.frame(c, "", p)
	return views.CodePage{Frame: f, Act: "confirm", Path: "/confirm", Next: localPath(next), Code: p.SecondFactorAt > 0}, err
}

func (s *Server) showConfirm(c echo.Context, p ledger.PersonRecord) error {
	page, err := s.confirmPage(c, p, c.QueryParam("next"))
	if err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Code(page))
}

// confirm makes a session fresh: with the second factor where there is one, else
// with the password. The session gets another secret.
func (s *Server) confirm(c echo.Context, p ledger.PersonRecord) error {
	page, err := s.confirmPage(c, p, typed(c, "next"))
	if err != nil {
		return err
	}
	with, wait := ledger.WithCode, time.Duration(0)
	if page.Code {
		wait, err = s.tryCode(c, p)
	} else {
		with = ledger.WithPassword
		wait, err = s.tryPassword(c, p, "password")
	}
	switch {
	case errors.Is(err, errNoMatch) || errors.Is(err, errTooMany):
		return s.wrongCode(c, page, wait, err)
	case err == nil:
		err = s.renewSession(c, p, with)
	}
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, page.Next)
}

// tryPassword checks the person's own password as it stands in a field.
func (s *Server) tryPassword(c echo.Context, p ledger.PersonRecord, field string) (time.Duration, error) {
	_, wait, err := s.trySignIn(c.Request().Context(), signInTry{email: p.Email, password: c.Request().PostForm.Get(field), from: clientAddress(c.Request())})
	return wait, err
}

func (s *Server) renewSession(c echo.Context, p ledger.PersonRecord, with ledger.Factor) error {
	secret, err := s.Store.RenewSession(c.Request().Context(), sessionSecret(c.Request()), p, with)
	if err == nil {
		c.SetCookie(sessionCookie(c.Request(), secret))
		c.Set(sessionName, secret)
	}
	return err
}

// currentSecret is the session's secret as the browser will hold it after this
// answer.
func currentSecret(c echo.Context) string {
	if renewed, ok := c.Get(sessionName).(string); ok {
		return renewed
	}
	return sessionSecret(c.Request())
}

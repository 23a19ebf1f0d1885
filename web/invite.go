package web

import (
	"errors"
	"net/http"
	"net/mail"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// inviteLink is what is sent to somebody. The secret stands in the path, which no
// log of ours writes down.
func inviteLink(c echo.Context, secret string) string {
	return baseURL(c.Request()) + "/invite/" + secret
}

// invited reads the link, and draws the page of a bad one.
func (s *Server) invited(c echo.Context) (views.InvitePage, bool, error) {
	i, err := s.Store.InviteBySecret(c.Request().Context(), c.Param("secret"))
	page := views.InvitePage{Frame: s.outside(c), Invite: i, Path: "/invite/" + c.Param("secret"), Email: i.Email}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return page, false, render(c, http.StatusNotFound, views.Message(views.NoInvite(page.Frame)))
	case err != nil:
		return page, false, s.trouble(c, ledger.PersonRecord{}, err)
	}
	return page, true, nil
}

func (s *Server) showInvite(c echo.Context) error {
	page, good, err := s.invited(c)
	if !good {
		return err
	}
	return render(c, http.StatusOK, views.InviteForm(page))
}

// acceptInvite makes the person whom a link was made for, and signs them in.
func (s *Server) acceptInvite(c echo.Context) error {
	if err := readForm(c); err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	page, good, err := s.invited(c)
	if !good {
		return err
	}
	page.Name = typed(c, "name")
	if page.Invite.Email == "" {
		page.Email = typed(c, "email")
	}
	password := c.Request().PostForm.Get("password")
	if page.Problem = personProblem(page.Name, page.Email, password); page.Problem != "" {
		return render(c, http.StatusUnprocessableEntity, views.InviteForm(page))
	}
	hash, err := HashPassword(password)
	if err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	p, err := s.Store.AcceptInvite(c.Request().Context(), c.Param("secret"), page.Name, page.Email, hash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return render(c, http.StatusNotFound, views.Message(views.NoInvite(page.Frame)))
	case errors.Is(err, store.ErrForbidden): // whose it is, and where, is nobody's business
		page.Problem = "That e-mail address can't be used here. Ask for a link for another one."
		return render(c, http.StatusUnprocessableEntity, views.InviteForm(page))
	case err == nil:
		err = s.startSession(c, p, ledger.WithPassword)
	}
	if err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	return c.Redirect(http.StatusSeeOther, "/")
}

// personProblem says what is wrong with what a new person typed.
func personProblem(name, email, password string) string {
	for _, problem := range []string{
		checkText("A name", name, 100, true),
		checkText("An e-mail address", email, maxEmail, true),
	} {
		if problem != "" {
			return problem
		}
	}
	if address, err := mail.ParseAddress(email); err != nil || address.Address != email {
		return "That is no e-mail address: write it like ana@example.com."
	}
	return PasswordProblem(password, email, name)
}

package web

import (
	"context"
	"errors"
	"net/http"
	"net/mail"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

const peoplePath = "/settings/people"

func (s *Server) routePeople(e *echo.Echo) {
	e.GET(peoplePath, s.signedIn(s.people))
	e.POST(peoplePath+"/invite", s.signedIn(s.managing(s.invite)))
	e.POST(peoplePath+"/revoke-invite", s.signedIn(s.managing(s.revokeInvite)))
	e.POST(peoplePath+"/change-roles", s.signedIn(s.managing(s.changeRoles)))
	e.POST(peoplePath+"/disable-person", s.signedIn(s.managing(s.toPerson(s.Store.DisableOther))))
	e.POST(peoplePath+"/enable-person", s.signedIn(s.managing(s.toPerson(s.Store.EnableOther))))
	e.POST(peoplePath+"/reset-second-factor", s.signedIn(s.managing(s.toPerson(s.Store.ResetSecondFactor))))
}

// people lists everybody of the tenant, and what an admin may change.
func (s *Server) people(c echo.Context, p ledger.PersonRecord) error {
	return s.managing(func(c echo.Context, p ledger.PersonRecord) error {
		return s.drawPeople(c, p, http.StatusOK, views.PeoplePage{})
	})(c, p)
}

// managing keeps the page and its forms to admins; the store has the last word.
func (s *Server) managing(do page) page {
	return func(c echo.Context, p ledger.PersonRecord) error {
		if ok, why := ledger.MayManagePeople(p); !ok {
			return s.forbid(c, p, why)
		}
		return do(c, p)
	}
}

func (s *Server) forbid(c echo.Context, p ledger.PersonRecord, why string) error {
	f, err := s.frame(c, views.AtSettings, p)
	if err != nil {
		return err
	}
	return render(c, http.StatusForbidden, views.Message(views.Forbidden(f, why)))
}

func (s *Server) drawPeople(c echo.Context, p ledger.PersonRecord, status int, page views.PeoplePage) (err error) {
	ctx := c.Request().Context()
	if page.Frame, err = s.frame(c, views.AtSettings, p); err != nil {
		return err
	}
	all, err := s.Store.People(ctx, p.TenantID)
	if err != nil {
		return err
	}
	for _, whom := range all {
		page.People = append(page.People, personRow(p, whom, all))
	}
	if page.Invites, err = s.Store.OpenInvites(ctx, p.TenantID); err != nil {
		return err
	}
	return render(c, status, views.People(page))
}

// personRow says what one person may do about another, and why not.
func personRow(by, whom ledger.PersonRecord, all []ledger.PersonRecord) views.PersonRow {
	row := views.PersonRow{Person: whom, Self: by.ID == whom.ID}
	others := 0
	for _, o := range all {
		if o.ID != whom.ID && o.DisabledAt == 0 && slices.Contains(o.Roles, "admin") {
			others++
		}
	}
	ok, why := ledger.MayChange(by, whom)
	row.Change = views.Decision{Act: "change-roles", Allowed: ok, Why: why}
	if ok {
		ok, why = ledger.MayDisable(whom, others)
	}
	row.Disable = views.Decision{Act: "disable-person", Allowed: ok, Why: why}
	return row
}

// peopleTrouble turns what the store says about a change of a person into a page.
func (s *Server) peopleTrouble(c echo.Context, p ledger.PersonRecord, err error, page views.PeoplePage) error {
	f, broken := s.frame(c, views.AtSettings, p)
	switch {
	case broken != nil:
		return broken
	case errors.Is(err, store.ErrNotFound):
		return render(c, http.StatusNotFound, views.Message(views.NoPerson(f)))
	case errors.Is(err, store.ErrStale):
		return render(c, http.StatusConflict, views.Message(views.PersonChanged(f)))
	case errors.Is(err, store.ErrForbidden):
		page.Form.Problem = sentence(err)
		return s.drawPeople(c, p, http.StatusForbidden, page)
	}
	return err
}

// invite makes a link, and shows it this once.
func (s *Server) invite(c echo.Context, p ledger.PersonRecord) error {
	email, roles := typed(c, "email"), c.Request().PostForm["role"]
	page := views.PeoplePage{Form: views.FormState{Act: "invite", Values: map[string]string{"email": cut(email, maxEmail), "roles": cut(strings.Join(roles, ","), maxID)}}}
	if address, err := mail.ParseAddress(email); email != "" && (err != nil || address.Address != email || len(email) > maxEmail) {
		page.Form.Problem = "That is no e-mail address: write it like ana@example.com."
	} else if good, why := ledger.GoodRoles(roles); !good {
		page.Form.Problem = why
	}
	if page.Form.Problem != "" {
		return s.drawPeople(c, p, http.StatusUnprocessableEntity, page)
	}
	i, secret, err := s.Store.Invite(c.Request().Context(), email, roles, p)
	if err != nil {
		return s.peopleTrouble(c, p, err, page)
	}
	return s.drawPeople(c, p, http.StatusOK, views.PeoplePage{Link: inviteLink(c, secret), Made: &i})
}

func (s *Server) revokeInvite(c echo.Context, p ledger.PersonRecord) error {
	if err := s.Store.RevokeInvite(c.Request().Context(), p.TenantID, typed(c, "invite"), p); err != nil {
		return s.peopleTrouble(c, p, err, views.PeoplePage{})
	}
	return c.Redirect(http.StatusSeeOther, peoplePath)
}

func (s *Server) changeRoles(c echo.Context, p ledger.PersonRecord) error {
	form := c.Request().PostForm
	id, roles := form.Get("person"), form["role"]
	page := views.PeoplePage{Form: views.FormState{Act: "change-roles", Values: map[string]string{"person": cut(id, maxID)}}}
	var seen []string
	if s := form.Get("seen"); s != "" {
		seen = strings.Split(s, ",")
	}
	if err := s.Store.ChangeRoles(c.Request().Context(), p.TenantID, id, seen, roles, p); err != nil {
		return s.peopleTrouble(c, p, err, page)
	}
	return c.Redirect(http.StatusSeeOther, peoplePath)
}

// toPerson is a form that names a person and nothing else.
func (s *Server) toPerson(do func(ctx context.Context, tenant, id string, by ledger.PersonRecord) error) page {
	return func(c echo.Context, p ledger.PersonRecord) error {
		id := c.Request().PostForm.Get("person")
		if err := do(c.Request().Context(), p.TenantID, id, p); err != nil {
			return s.peopleTrouble(c, p, err, views.PeoplePage{Form: views.FormState{Values: map[string]string{"person": cut(id, maxID)}}})
		}
		return c.Redirect(http.StatusSeeOther, peoplePath)
	}
}

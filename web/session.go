package web

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

const sessionName = "holdfast_session"

func sessionCookie(r *http.Request, secret string) *http.Cookie {
	return ownCookie(r, sessionName, secret)
}

// ownCookie holds the secret of a session. Lax and not Strict: a link in a mail
// or chat must not arrive signed out, and no GET decides anything.
func ownCookie(r *http.Request, name, secret string) *http.Cookie {
	c := &http.Cookie{Name: name, Value: secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if isHTTPS(r) {
		c.Name, c.Secure = "__Host-"+name, true
	}
	return c
}

// sessionSecret is what the browser holds; empty if nothing. A page that is
// served by https believes only the cookie that no other host could have set.
func sessionSecret(r *http.Request) string { return ownSecret(r, sessionName) }

func ownSecret(r *http.Request, name string) string {
	c, err := r.Cookie(ownCookie(r, name, "").Name)
	if err != nil {
		return ""
	}
	return c.Value
}

// whoAsks is the person whose session the browser holds, or store.ErrNotFound.
func (s *Server) whoAsks(c echo.Context) (ledger.PersonRecord, error) {
	secret := sessionSecret(c.Request())
	if secret == "" {
		return ledger.PersonRecord{}, store.ErrNotFound
	}
	p, err := s.Store.SessionPerson(c.Request().Context(), secret)
	if errors.Is(err, store.ErrUnavailable) && p.ID != "" {
		return p, nil // the visit could not be noted; reading goes on
	}
	return p, err
}

// startSession signs a person in. The session that the browser had ends: its
// secret may be known to whoever put it there.
func (s *Server) startSession(c echo.Context, p ledger.PersonRecord, with ledger.Factor) error {
	r := c.Request()
	if old := sessionSecret(r); old != "" {
		if err := s.Store.EndSession(r.Context(), old); err != nil {
			return err
		}
	}
	secret, err := s.Store.StartSession(r.Context(), p, ledger.Session{UserAgent: cut(r.UserAgent(), 200), Address: addressText(clientAddress(r)), ProvedWith: with})
	if err != nil {
		return err
	}
	c.SetCookie(sessionCookie(r, secret))
	return nil
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func (s *Server) endSession(c echo.Context) error {
	r := c.Request()
	if secret := sessionSecret(r); secret != "" {
		if err := s.Store.EndSession(r.Context(), secret); err != nil {
			return err
		}
	}
	dropCookie(c, sessionName)
	return nil
}

func dropCookie(c echo.Context, name string) {
	gone := ownCookie(c.Request(), name, "")
	gone.MaxAge = -1
	c.SetCookie(gone)
}

// page draws or decides something for a person.
type page func(c echo.Context, p ledger.PersonRecord) error

// signedIn lets a page be seen by people with a session only, reads the form of
// a POST, and turns an error into a page.
func (s *Server) signedIn(show page) echo.HandlerFunc {
	return s.known(func(c echo.Context, p ledger.PersonRecord) error {
		if err := readForm(c); err != nil {
			return err
		}
		return show(c, p)
	})
}

// known does the same, and leaves the form to the page.
func (s *Server) known(show page) echo.HandlerFunc {
	return func(c echo.Context) error {
		p, err := s.whoAsks(c)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return s.askWho(c)
		case err != nil:
			return s.trouble(c, ledger.PersonRecord{}, err)
		}
		if p.NeedsLongerPassword() && !strings.HasPrefix(c.Path(), accountPath) && c.Path() != "/confirm" {
			return c.Redirect(http.StatusSeeOther, accountPath) // nothing of a POST was done
		}
		if err := show(c, p); err != nil {
			return s.trouble(c, p, err)
		}
		return nil
	}
}

// askWho answers somebody without a session: with the way to sign in and back,
// or to the first set-up. A POST decides nothing, and says so.
func (s *Server) askWho(c echo.Context) error {
	r := c.Request()
	some, err := s.Store.HasPeople(r.Context())
	if err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	switch {
	case !some:
		return c.Redirect(http.StatusSeeOther, "/setup")
	case r.Method != http.MethodPost:
		return c.Redirect(http.StatusSeeOther, "/login?next="+url.QueryEscape(r.URL.RequestURI()))
	}
	login := s.loginPage(c)
	login.Notice = "You are not signed in, or your session ended. Nothing was recorded. Sign in, and then decide."
	login.Next = "/"
	if id := c.Param("id"); id != "" {
		login.Next = operationPath(id)
	}
	return render(c, http.StatusUnauthorized, views.Login(login))
}

// localPath is where to go after signing in: a path of ours, whatever the link
// said. Browsers read //host and /\host as another site.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil ||
		!strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r < ' ' }) {
		return "/"
	}
	if slices.Contains([]string{"/login", "/login/code", "/logout", "/setup", "/confirm"}, u.Path) {
		return "/"
	}
	return u.String()
}

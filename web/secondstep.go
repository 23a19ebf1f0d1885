package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// halfName is the cookie of somebody whose password was right and whose code has
// not come yet. It opens one page, for five minutes.
const halfName = "holdfast_half"

// maxCode is more than a code or a recovery code has, with its spaces.
const maxCode = 100

// askCode goes on to the second page of the sign-in.
func (s *Server) askCode(c echo.Context, p ledger.PersonRecord, next string) error {
	secret, err := s.Store.BeginSignIn(c.Request().Context(), p)
	if err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	c.SetCookie(ownCookie(c.Request(), halfName, secret))
	return c.Redirect(http.StatusSeeOther, "/login/code?"+url.Values{"next": {next}}.Encode())
}

func (s *Server) codePage(c echo.Context, next string) views.CodePage {
	return views.CodePage{Frame: s.outside(c), Act: "login-code", Path: "/login/code", Next: localPath(next), Code: true}
}

func (s *Server) showCode(c echo.Context) error {
	if _, err := s.halfSignedIn(c); err != nil {
		return s.notHalfSignedIn(c, err)
	}
	return render(c, http.StatusOK, views.Code(s.codePage(c, c.QueryParam("next"))))
}

func (s *Server) halfSignedIn(c echo.Context) (ledger.PersonRecord, error) {
	secret := ownSecret(c.Request(), halfName)
	if secret == "" {
		return ledger.PersonRecord{}, store.ErrNotFound
	}
	return s.Store.HalfSignedIn(c.Request().Context(), secret)
}

// notHalfSignedIn begins anew with the password.
func (s *Server) notHalfSignedIn(c echo.Context, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	login := s.loginPage(c)
	login.Notice = "The code has to come within 5 minutes of the password. Sign in anew."
	return render(c, http.StatusUnauthorized, views.Login(login))
}

// signInWithCode checks the second factor of somebody whose password was right.
func (s *Server) signInWithCode(c echo.Context) error {
	if err := readForm(c); err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	ctx := c.Request().Context()
	p, err := s.halfSignedIn(c)
	if err != nil {
		return s.notHalfSignedIn(c, err)
	}
	page := s.codePage(c, typed(c, "next"))
	wait, err := s.tryCode(c, p)
	switch {
	case errors.Is(err, errNoMatch) || errors.Is(err, errTooMany):
		return s.wrongCode(c, page, wait, err)
	case err == nil:
		if err = s.Store.EndHalfSignIn(ctx, ownSecret(c.Request(), halfName)); err == nil {
			err = s.startSession(c, p, ledger.WithCode)
		}
	}
	if errors.Is(err, store.ErrNotFound) { // ended by another page meanwhile
		return s.notHalfSignedIn(c, err)
	}
	if err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	dropCookie(c, halfName)
	return c.Redirect(http.StatusSeeOther, page.Next)
}

func (s *Server) wrongCode(c echo.Context, page views.CodePage, wait time.Duration, err error) error {
	status := http.StatusUnauthorized
	page.Wrong = errors.Is(err, errNoMatch)
	if page.WaitSeconds = waitSeconds(c, wait); page.WaitSeconds > 0 {
		status = http.StatusTooManyRequests
	}
	return render(c, status, views.Code(page))
}

// tryCode is one try of a code, counted with the tries of the password.
func (s *Server) tryCode(c echo.Context, p ledger.PersonRecord) (time.Duration, error) {
	return s.tryCodeFor(c, p, func(ctx context.Context, code string) (bool, error) { return s.Store.ProveSecondFactor(ctx, p, code) })
}

// tryCodeFor is the same where a right code does something else at once. One try
// at a time: tries sent side by side can't slip past the count.
func (s *Server) tryCodeFor(c echo.Context, p ledger.PersonRecord, use func(ctx context.Context, code string) (good bool, err error)) (time.Duration, error) {
	s.codes.Lock()
	defer s.codes.Unlock()
	ctx := c.Request().Context()
	g := signInTry{email: p.Email, person: p.ID, from: clientAddress(c.Request()), at: s.Store.Now()}
	if wait, err := s.signInWait(ctx, g); err != nil || wait > 0 {
		return wait, orError(err, errTooMany)
	}
	code := typed(c, "code")
	good := false
	if len(code) <= maxCode {
		var err error
		if good, err = use(ctx, code); err != nil {
			return 0, err
		}
	}
	if good {
		return 0, s.forgetTries(ctx, g)
	}
	wait, err := s.countTry(ctx, g)
	return wait, orError(err, errNoMatch)
}

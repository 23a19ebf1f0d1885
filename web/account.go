package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"rsc.io/qr"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

const accountPath = "/settings/account"

func (s *Server) routeAccount(e *echo.Echo) {
	e.GET("/confirm", s.signedIn(s.showConfirm))
	e.POST("/confirm", s.signedIn(s.confirm))
	e.GET(accountPath, s.signedIn(s.account))
	e.POST(accountPath+"/set-password", s.signedIn(s.setPassword))
	e.POST(accountPath+"/offer-second-factor", s.signedIn(s.offerSecondFactor))
	e.POST(accountPath+"/confirm-second-factor", s.signedIn(s.confirmSecondFactor))
	e.POST(accountPath+"/drop-second-factor", s.signedIn(s.dropSecondFactor))
	e.POST(accountPath+"/end-session", s.signedIn(s.endOwnSession))
	e.POST(accountPath+"/end-other-sessions", s.signedIn(s.endOtherSessions))
}

// account shows a person's own password, second factor and sessions.
func (s *Server) account(c echo.Context, p ledger.PersonRecord) error {
	return s.drawAccount(c, p, http.StatusOK, views.AccountPage{})
}

func (s *Server) drawAccount(c echo.Context, p ledger.PersonRecord, status int, page views.AccountPage) (err error) {
	ctx := c.Request().Context()
	if page.Frame, err = s.frame(c, views.AtSettings, p); err != nil {
		return err
	}
	page.Person, page.Fresh, page.LeastPassword = p, p.Fresh(s.Store.Now()), leastPassword(p)
	if page.Sessions, err = s.Store.Sessions(ctx, p, currentSecret(c)); err != nil {
		return err
	}
	if page.CodesLeft, err = s.Store.RecoveryCodesLeft(ctx, p); err != nil {
		return err
	}
	return render(c, status, views.Account(page))
}

// wrongAccount gives a form of the account back with what to change.
func (s *Server) wrongAccount(c echo.Context, p ledger.PersonRecord, act string, status int, problem string) error {
	return s.drawAccount(c, p, status, views.AccountPage{Form: views.FormState{Act: act, Problem: problem}})
}

// tried gives a form back whose password or code was wrong, or came too soon.
func (s *Server) tried(c echo.Context, p ledger.PersonRecord, act, wrong string, wait time.Duration, err error) error {
	problem, status := "", http.StatusForbidden
	if errors.Is(err, errNoMatch) {
		problem = wrong
	}
	if n := waitSeconds(c, wait); n > 0 {
		status = http.StatusTooManyRequests
		problem = strings.TrimSpace(problem + " " + views.TooMany(n))
	}
	return s.wrongAccount(c, p, act, status, problem)
}

func leastPassword(p ledger.PersonRecord) int {
	if p.SecondFactorAt > 0 {
		return besidePassword
	}
	return minPassword
}

// setPassword needs the password so far, or a sign-in of this moment: a browser
// that somebody left open is not enough. Other sessions end.
func (s *Server) setPassword(c echo.Context, p ledger.PersonRecord) error {
	const act = "set-password"
	form := c.Request().PostForm
	password, least := form.Get("password"), leastPassword(p)
	if problem := passwordProblem(password, p.Email, p.Name, least); problem != "" {
		return s.wrongAccount(c, p, act, http.StatusUnprocessableEntity, problem)
	}
	if !p.Fresh(s.Store.Now()) {
		if wait, err := s.tryPassword(c, p, "old"); errors.Is(err, errNoMatch) || errors.Is(err, errTooMany) {
			return s.tried(c, p, act, "The password so far is not that one.", wait, err)
		} else if err != nil {
			return err
		}
	}
	hash, err := HashPassword(password)
	if err != nil {
		return err
	}
	n := store.NewPassword{Hash: hash, Short: isShort(password), Keep: sessionSecret(c.Request())}
	if err := s.Store.SetPassword(c.Request().Context(), p, n); errors.Is(err, store.ErrForbidden) { // the second factor is gone since
		return s.wrongAccount(c, p, act, http.StatusConflict, sentence(err))
	} else if err != nil {
		return err
	}
	p.ShortPassword = n.Short
	return s.drawAccount(c, p, http.StatusOK, views.AccountPage{Notice: "Your password is set. You were signed out everywhere else."})
}

// offerSecondFactor shows the secret for an app, this once.
func (s *Server) offerSecondFactor(c echo.Context, p ledger.PersonRecord) error {
	const act = "offer-second-factor"
	if !p.Fresh(s.Store.Now()) {
		return c.Redirect(http.StatusSeeOther, confirmPath(accountPath))
	}
	secret, err := s.Store.OfferSecondFactor(c.Request().Context(), p)
	if errors.Is(err, store.ErrForbidden) {
		return s.wrongAccount(c, p, act, http.StatusConflict, sentence(err))
	} else if err != nil {
		return err
	}
	issuer := "holdfast " + p.TenantID
	picture, err := drawQR(ledger.SecretURL(secret, p.Email, issuer))
	if err != nil {
		return err
	}
	return s.drawAccount(c, p, http.StatusOK, views.AccountPage{Offered: true, Secret: ledger.SecretText(secret), Picture: picture})
}

// drawQR turns a text into squares; no other site draws it for us.
func drawQR(text string) (views.Squares, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return views.Squares{}, err
	}
	var path strings.Builder
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x, y)
			}
		}
	}
	return views.Squares{Size: code.Size, Path: path.String()}, nil
}

// confirmSecondFactor turns it on with a first code.
func (s *Server) confirmSecondFactor(c echo.Context, p ledger.PersonRecord) error {
	const act = "confirm-second-factor"
	if p.SecondFactorAt > 0 {
		return s.wrongAccount(c, p, act, http.StatusConflict, "There is a second factor already.")
	}
	var codes []string
	wait, err := s.tryCodeFor(c, p, func(ctx context.Context, code string) (bool, error) {
		var err error
		codes, err = s.Store.ConfirmSecondFactor(ctx, p, strings.ReplaceAll(code, " ", ""), sessionSecret(c.Request()))
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	})
	if errors.Is(err, errNoMatch) || errors.Is(err, errTooMany) {
		problem := views.TooMany(waitSeconds(c, wait))
		status := http.StatusTooManyRequests
		if wait == 0 {
			problem, status = "That code does not fit. Type the one that your app shows now.", http.StatusUnprocessableEntity
		}
		return s.drawAccount(c, p, status, views.AccountPage{Offered: true, Form: views.FormState{Act: act, Problem: problem}})
	} else if err != nil {
		return err
	}
	if err := s.renewSession(c, p, ledger.WithCode); err != nil {
		return err
	}
	p.SecondFactorAt, p.ProvedWith, p.SignedInAt = s.Store.Now(), ledger.WithCode, s.Store.Now()
	return s.drawAccount(c, p, http.StatusOK, views.AccountPage{RecoveryCodes: codes, Notice: "Your second factor is on. You were signed out everywhere else."})
}

// dropSecondFactor takes it away, for a code of it.
func (s *Server) dropSecondFactor(c echo.Context, p ledger.PersonRecord) error {
	const act = "drop-second-factor"
	if p.SecondFactorAt == 0 {
		return s.wrongAccount(c, p, act, http.StatusConflict, "There is no second factor.")
	}
	wait, err := s.tryCodeFor(c, p, func(ctx context.Context, code string) (bool, error) {
		return s.Store.DropSecondFactor(ctx, p, code, sessionSecret(c.Request()))
	})
	if errors.Is(err, errNoMatch) || errors.Is(err, errTooMany) {
		return s.tried(c, p, act, "That code does not fit.", wait, err)
	} else if err != nil {
		return err
	}
	p.SecondFactorAt = 0
	return s.drawAccount(c, p, http.StatusOK, views.AccountPage{Notice: "Your second factor is off. You were signed out everywhere else."})
}

func (s *Server) endOwnSession(c echo.Context, p ledger.PersonRecord) error {
	err := s.Store.EndOwnSession(c.Request().Context(), p, typed(c, "session"))
	if err != nil && !errors.Is(err, store.ErrNotFound) { // one that ended by itself has ended
		return err
	}
	return c.Redirect(http.StatusSeeOther, accountPath)
}

func (s *Server) endOtherSessions(c echo.Context, p ledger.PersonRecord) error {
	if err := s.Store.EndOtherSessions(c.Request().Context(), p, sessionSecret(c.Request())); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, accountPath)
}

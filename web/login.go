package web

import (
	"context"
	"crypto/subtle"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// maxEmail is as long as an address can be.
const maxEmail = 254

func (s *Server) loginPage(c echo.Context) views.LoginPage {
	return views.LoginPage{Frame: s.outside(c), Demo: s.demoLinks(c)}
}

func (s *Server) showLogin(c echo.Context) error {
	next := localPath(c.QueryParam("next"))
	_, err := s.whoAsks(c)
	switch {
	case err == nil:
		return c.Redirect(http.StatusSeeOther, next)
	case !errors.Is(err, store.ErrNotFound):
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	if some, err := s.Store.HasPeople(c.Request().Context()); err == nil && !some {
		return c.Redirect(http.StatusSeeOther, "/setup")
	}
	login := s.loginPage(c)
	login.Next = next
	if sessionSecret(c.Request()) != "" {
		login.Notice = "Your session ended. Sign in to go on."
	}
	return render(c, http.StatusOK, views.Login(login))
}

// signIn checks an e-mail and a password. Whoever is not set up gets the same
// answer as a wrong password, after the same work.
func (s *Server) signIn(c echo.Context) error {
	if err := readForm(c); err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	login := s.loginPage(c)
	login.Email = cut(typed(c, "email"), maxEmail)
	login.Next = localPath(typed(c, "next"))
	guess := signInTry{email: store.NormalEmail(login.Email), password: c.Request().PostForm.Get("password"), from: clientAddress(c.Request())}

	p, wait, err := s.trySignIn(c.Request().Context(), guess)
	switch {
	case err == nil && p.SecondFactorAt > 0:
		return s.askCode(c, p, login.Next)
	case err == nil:
		if err := s.startSession(c, p, ledger.WithPassword); err != nil {
			return s.trouble(c, ledger.PersonRecord{}, err)
		}
		return c.Redirect(http.StatusSeeOther, login.Next)
	case !errors.Is(err, errNoMatch) && !errors.Is(err, errTooMany):
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	status := http.StatusUnauthorized
	login.Wrong = errors.Is(err, errNoMatch)
	if login.WaitSeconds = waitSeconds(c, wait); login.WaitSeconds > 0 {
		status = http.StatusTooManyRequests
	}
	return render(c, status, views.Login(login))
}

// waitSeconds is a wait in whole seconds, and tells programs about it.
func waitSeconds(c echo.Context, wait time.Duration) int {
	n := int(math.Ceil(wait.Seconds()))
	if n > 0 {
		c.Response().Header().Set("Retry-After", strconv.Itoa(n))
	}
	return n
}

var (
	errNoMatch = errors.New("that e-mail and password don't match")
	errTooMany = errors.New("too many wrong ones")
)

type signInTry struct {
	email, password string
	person          string // id of whose second factor is tried; empty: a password
	from            netip.Addr
	at              int64
}

// subjects are what wrong tries are counted against: the address they come
// from, and the account as seen from there. Counting an account alone would let
// a stranger lock its owner out from afar. Whoever tries codes knows the password,
// and is no stranger: those count for the account from wherever they come.
func (g signInTry) subjects() []string {
	from := g.from.String()
	if g.from.Is6() { // whoever has one address of a network has all of them
		if network, err := g.from.WithZone("").Prefix(64); err == nil {
			from = network.String()
		}
	}
	minute := strconv.FormatInt(g.at/neighbourTime.Milliseconds(), 10)
	all := []string{"from " + from + " in minute " + minute, g.email + " from " + from}
	if g.person != "" {
		all = append(all, "codes of "+g.person)
	}
	return all
}

// neighbourTime bounds what the wrong tries of others cost somebody who signs in
// from the same address: an office has one. They are counted anew each minute.
// Guessing at many accounts from there stays slow, and each account still has its
// own, longer wait.
const neighbourTime = time.Minute

// trySignIn is one try. The wait is looked up, and the failure counted, while
// the try has its turn: tries sent side by side can't slip past the count.
func (s *Server) trySignIn(ctx context.Context, g signInTry) (ledger.PersonRecord, time.Duration, error) {
	end, err := takeTurn(ctx)
	if err != nil {
		return ledger.PersonRecord{}, 0, err
	}
	defer end()
	g.at = s.Store.Now()
	if wait, err := s.signInWait(ctx, g); err != nil || wait > 0 {
		return ledger.PersonRecord{}, wait, orError(err, errTooMany)
	}
	p, kept, err := s.Store.PersonByEmail(ctx, g.email)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return p, 0, err
	}
	readable := utf8.RuneCountInString(g.password) <= maxPassword
	if !readable {
		g.password = ""
	}
	if fits(g.password, kept) && readable {
		if p.SecondFactorAt > 0 {
			return p, 0, nil // wrong codes are forgotten for a right code only
		}
		return p, 0, s.forgetTries(ctx, g)
	}
	wait, err := s.countTry(ctx, g)
	return ledger.PersonRecord{}, wait, orError(err, errNoMatch)
}

func (s *Server) forgetTries(ctx context.Context, g signInTry) error {
	for _, subject := range g.subjects() {
		if err := s.Store.SignInSucceeded(ctx, subject); err != nil {
			return err
		}
	}
	return nil
}

// countTry counts a wrong one, and says how long to wait for the next.
func (s *Server) countTry(ctx context.Context, g signInTry) (time.Duration, error) {
	for _, subject := range g.subjects() {
		if err := s.Store.SignInFailed(ctx, subject); err != nil {
			return 0, err
		}
	}
	return s.signInWait(ctx, g)
}

func (s *Server) signInWait(ctx context.Context, g signInTry) (longest time.Duration, err error) {
	for i, subject := range g.subjects() {
		wait, err := s.Store.SignInWait(ctx, subject)
		if err != nil {
			return 0, err
		}
		if i == 0 { // the others' tries: with the minute they are forgotten
			wait = min(wait, neighbourTime-time.Duration(s.Store.Now()%neighbourTime.Milliseconds())*time.Millisecond)
		}
		longest = max(longest, wait)
	}
	return longest, nil
}

func orError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func (s *Server) signOut(c echo.Context) error {
	if err := s.endSession(c); err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	return c.Redirect(http.StatusSeeOther, "/login")
}

// signInByLink is the demo's one click. It works on the machine that the demo
// runs on and nowhere else.
func (s *Server) signInByLink(c echo.Context) error {
	email := s.linkedEmail(c, c.Param("secret"))
	p, _, err := s.Store.PersonByEmail(c.Request().Context(), email)
	if email == "" || err != nil {
		return s.trouble(c, ledger.PersonRecord{}, orError(err, store.ErrNotFound))
	}
	if err := s.startSession(c, p, ledger.WithLink); err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	return c.Redirect(http.StatusSeeOther, "/")
}

func (s *Server) linkedEmail(c echo.Context, secret string) (email string) {
	if !s.Test || !clientAddress(c.Request()).IsLoopback() {
		return ""
	}
	for known, whose := range s.SignInLinks {
		if subtle.ConstantTimeCompare([]byte(known), []byte(secret)) == 1 && known != "" {
			email = whose
		}
	}
	return email
}

// demoLinks offers the one-click sign-ins to whoever may use them.
func (s *Server) demoLinks(c echo.Context) []views.DemoLink {
	if !s.Test || !clientAddress(c.Request()).IsLoopback() {
		return nil
	}
	var links []views.DemoLink
	for secret, email := range s.SignInLinks {
		p, _, err := s.Store.PersonByEmail(c.Request().Context(), email)
		if err == nil {
			links = append(links, views.DemoLink{URL: "/in/" + secret, Name: p.Display(), Does: strings.Join(p.Roles, ", ")})
		}
	}
	slices.SortFunc(links, func(a, b views.DemoLink) int { return strings.Compare(a.Name, b.Name) })
	return links
}

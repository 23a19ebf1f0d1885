package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/dispatch"
	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// firstTokenLife is long enough to build something, and short enough that a
// token which was shown on a screen does not live for ever.
const firstTokenLife = 30 * 24 * time.Hour

// canSetUp sends everybody to the sign-in once somebody is set up.
func (s *Server) canSetUp(c echo.Context) (bool, error) {
	some, err := s.Store.HasPeople(c.Request().Context())
	if err != nil {
		return false, s.trouble(c, ledger.PersonRecord{}, err)
	}
	if some {
		return false, c.Redirect(http.StatusSeeOther, "/login")
	}
	return true, nil
}

func (s *Server) setupPage(c echo.Context) views.SetupPage {
	secure := isHTTPS(c.Request()) || clientAddress(c.Request()).IsLoopback()
	return views.SetupPage{Frame: s.outside(c), Alone: true, Secure: secure, Folder: s.Folder}
}

func (s *Server) showSetup(c echo.Context) error {
	if ok, err := s.canSetUp(c); !ok {
		return err
	}
	p := s.setupPage(c)
	if code := c.QueryParam("code"); code != "" {
		p.Code, p.CodeGiven = setupCode(code), true
	}
	return render(c, http.StatusOK, views.Setup(p))
}

// setupCode brings a typed code into the form in which it was printed.
func setupCode(code string) string {
	code = strings.ToUpper(strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, code))
	if len(code) == 8 {
		return code[:4] + "-" + code[4:]
	}
	return cut(code, maxID)
}

// setUp makes the first person of the default tenant, signed in and with a
// first token.
func (s *Server) setUp(c echo.Context) error {
	if ok, err := s.canSetUp(c); !ok {
		return err
	}
	if err := readForm(c); err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	page := s.setupPage(c)
	page.Code, page.Name, page.Email = setupCode(typed(c, "code")), typed(c, "name"), typed(c, "email")
	mode := typed(c, "mode")
	page.Alone = mode == "alone"
	password := c.Request().PostForm.Get("password")
	page.Problem = setupProblem(page, password)
	if page.Problem == "" && mode != "alone" && mode != "with-others" {
		page.Problem = "Choose how you will work: alone for now, or with others."
	}
	if page.Problem != "" {
		return render(c, http.StatusUnprocessableEntity, views.Setup(page))
	}
	hash, err := HashPassword(password)
	if err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	p, err := s.Store.SetUp(c.Request().Context(), page.Code,
		ledger.PersonRecord{TenantID: dispatch.DefaultTenant, Email: page.Email, Name: page.Name, Roles: []string{"admin", "approver", "finance"}}, hash)
	switch {
	case errors.Is(err, store.ErrForbidden):
		page.Problem = s.codeProblem(err)
		return render(c, http.StatusForbidden, views.Setup(page))
	case err != nil:
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	if err := s.startSession(c, p, ledger.WithPassword); err != nil {
		return s.trouble(c, ledger.PersonRecord{}, err)
	}
	return s.firstHome(c, p, mode == "with-others")
}

// triesPerCode is how many wrong codes a code survives; the store counts them.
const triesPerCode = 5

// wrongSetups remembers when wrong codes were typed, for as long as a code lives.
type wrongSetups struct {
	mu sync.Mutex
	at []int64
}

func (w *wrongSetups) add(now int64) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = append(slices.DeleteFunc(w.at, func(t int64) bool { return t <= now-30*time.Minute.Milliseconds() }), now)
	w.at = w.at[max(0, len(w.at)-100):]
	return len(w.at)
}

// codeProblem says why a code was refused, and what to do about it.
func (s *Server) codeProblem(err error) string {
	if some, _ := s.Store.HasPeople(context.Background()); some {
		return sentence(err)
	}
	another := " Make another on the machine that holdfast runs on: " + views.Command(s.Folder, "setup-link")
	if n := s.setups.add(s.Store.Now()); n >= triesPerCode {
		return fmt.Sprintf("That code is not good. There were %d wrong tries in the last 30 minutes, and a code survives %d.", n, triesPerCode-1) + another
	}
	return "That code is not good: it is wrong, used, or older than 30 minutes." + another
}

func setupProblem(p views.SetupPage, password string) string {
	if problem := checkText("The code", p.Code, maxID, true); problem != "" {
		return problem
	}
	return personProblem(p.Name, p.Email, password)
}

// firstHome is the first page of the first person. The token is on it and
// nowhere else, and so is the link that lets a second person in, so it is drawn at
// once: after a redirect somebody would have to keep them in between.
func (s *Server) firstHome(c echo.Context, p ledger.PersonRecord, withOthers bool) error {
	page, err := s.homePage(c, p, views.FormState{})
	if err != nil {
		return s.trouble(c, p, err)
	}
	token, _, err := IssueToken(c.Request().Context(), s.Store,
		ledger.TokenRecord{TenantID: p.TenantID, Agent: "first-agent", Owner: p.Email, ExpiresAt: s.Store.Now() + firstTokenLife.Milliseconds()},
		ledger.Holder{Kind: ledger.Person, Name: p.Email})
	if err != nil {
		return s.trouble(c, p, err)
	}
	page.FirstToken, page.FirstCurl = token, s.firstCurl(c, p.TenantID)
	if withOthers {
		_, secret, err := s.Store.Invite(c.Request().Context(), "", []string{"approver"}, p)
		if err != nil {
			return s.trouble(c, p, err)
		}
		page.InviteLink = inviteLink(c, secret)
	}
	return render(c, http.StatusOK, views.Home(page))
}

// firstCurl is a command that submits something harmless with the token.
func (s *Server) firstCurl(c echo.Context, tenant string) string {
	base := baseURL(c.Request())
	if s.Store.Rulebook(tenant).Actions["create_payment"] == nil {
		return fmt.Sprintf(`curl -sS %s/v1/operations -H "Authorization: Bearer $HOLDFAST_TOKEN"`, base)
	}
	return fmt.Sprintf(`curl -sS %s/v1/operations -H "Authorization: Bearer $HOLDFAST_TOKEN" -H "Prefer: wait=10" -H "Content-Type: application/json" `+
		`-d '{"operation_id":"first-charge","action_type":"create_payment","payload":{"amount":4800,"currency":"EUR","recipient":"acct_7","reference":"first-charge"}}'`, base)
}

// sentence is what the store says to the person, without the name of the error.
func sentence(err error) string {
	text := err.Error()
	for _, kind := range []error{store.ErrForbidden, ledger.ErrNotAllowed, ledger.ErrNoRefund} {
		text = strings.TrimPrefix(text, kind.Error()+": ")
	}
	if text == "" {
		return text
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"holdfast/static"
	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// routePages wires what people see. What decides is a POST.
func (s *Server) routePages(e *echo.Echo) {
	assets := echo.WrapHandler(static.Handler())
	e.GET(static.Prefix+"*", assets)
	e.HEAD(static.Prefix+"*", assets)

	e.GET("/login", s.showLogin)
	e.POST("/login", s.signIn)
	e.GET("/login/code", s.showCode)
	e.POST("/login/code", s.signInWithCode)
	e.POST("/logout", s.signOut)
	e.GET("/in/:secret", s.signInByLink)
	e.GET("/setup", s.showSetup)
	e.POST("/setup", s.setUp)
	e.GET("/invite/:secret", s.showInvite)
	e.POST("/invite/:secret", s.acceptInvite)

	e.GET("/", s.signedIn(s.home))
	e.GET("/counts", s.signedIn(s.counts))
	e.GET("/approvals", s.signedIn(s.approvals))
	e.GET(togetherPath, s.signedIn(s.together))
	e.POST(togetherPath, s.signedIn(s.approveTogether))
	e.GET("/unknown", s.signedIn(s.unknown))
	e.GET("/operations", s.signedIn(s.operations))
	e.GET("/operations/:id", s.signedIn(s.operation))
	e.GET("/operations/:id/done", s.signedIn(s.done))
	e.GET("/operations/:id/evidence.html", s.signedIn(s.evidencePack))
	e.GET("/refunds", s.signedIn(s.refunds))
	e.GET("/exports/:file", s.signedIn(s.export))
	e.GET("/refunds/:id", s.signedIn(s.refund))
	e.GET("/statements", s.signedIn(s.statements))
	e.GET("/statements/close", s.signedIn(s.closing))
	e.GET("/statements/preview/:upload", s.signedIn(s.preview))
	e.GET("/statements/:statement", s.signedIn(s.desk))
	e.GET("/rails", s.signedIn(s.rails))
	e.GET("/rails/numbers", s.signedIn(s.numbers))
	e.GET("/runs", s.signedIn(s.runs))
	e.GET("/audit", s.signedIn(s.audit))
	e.GET("/audit/head.txt", s.signedIn(s.logHead))
	e.GET("/search", s.signedIn(s.search))
	e.GET("/settings", s.signedIn(s.settings))

	e.POST("/operations/:id/:act", s.signedIn(s.decide))
	e.POST("/refunds/:id/:act", s.signedIn(s.decideRefund))
	e.POST("/statements/import", s.known(s.importFile)) // which reads its form itself: it may have a file
	e.POST("/statements/match", s.signedIn(s.matchLines))
	e.POST("/statements/unmatch", s.signedIn(s.unmatch))
	e.POST("/statements/set-aside", s.signedIn(s.setLineAside))
	e.POST("/statements/take", s.signedIn(s.takeLine))
	e.POST("/statements/hand-back", s.signedIn(s.handLineBack))
	e.POST("/statements/snooze", s.signedIn(s.snoozeLine))
	e.POST("/statements/undo", s.signedIn(s.undoImport))
	e.POST("/statements/close-period", s.signedIn(s.closePeriod))
	e.POST("/rails/pause-rail", s.signedIn(s.pauseRail))
	e.POST("/rails/resume-rail", s.signedIn(s.resumeRail))
	e.POST("/runs/stop-run", s.signedIn(s.stopRun))
	e.POST("/audit/verify-log", s.signedIn(s.verifyLog))
	e.POST("/exceptions/set-aside", s.signedIn(s.setAside))
	e.POST("/settings/run-job", s.signedIn(s.runJob))
	e.POST("/settings/test-notice", s.signedIn(s.testNotice))
	s.routePeople(e)
	s.routeAccount(e)
}

func operationPath(id string) string { return "/operations/" + url.PathEscape(id) }

// render draws a page into a buffer first: an error on the way is still an
// error page, and not half of another.
func render(c echo.Context, status int, page templ.Component) error {
	var b bytes.Buffer
	if err := page.Render(c.Request().Context(), &b); err != nil {
		return err
	}
	return c.HTMLBlob(status, b.Bytes())
}

// outside is the frame of somebody who is not signed in: it tells nothing.
func (s *Server) outside(c echo.Context) views.Frame {
	return views.Frame{BaseURL: baseURL(c.Request()), Test: s.Test, Now: s.Store.Now(), Asset: static.Path}
}

// frame is what every page of a person stands in.
func (s *Server) frame(c echo.Context, here views.Place, p ledger.PersonRecord) (views.Frame, error) {
	f := s.outside(c)
	counts, err := s.strip(c.Request().Context(), p.TenantID)
	if err != nil {
		return f, err
	}
	f.Tenant, f.Here, f.Counts = p.TenantID, here, counts
	f.Person = views.Person{Name: p.Name, Email: p.Email, Roles: p.Roles}
	f.Pages = views.Pages{Refunds: true, Statements: true, Rails: true, Runs: true, Audit: true, Settings: true}
	f.Money = s.Store.Rulebook(p.TenantID).Currencies
	return f, nil
}

// strip reads the numbers that stand on every page.
func (s *Server) strip(ctx context.Context, tenant string) (views.Counts, error) {
	c, err := s.Store.Counts(ctx, tenant)
	if err != nil {
		return views.Counts{}, err
	}
	runs, err := s.Store.LastRuns(ctx)
	if err != nil {
		return views.Counts{}, err
	}
	var checked int64
	for _, r := range runs {
		if r.Job == "lookup" {
			checked = r.FinishedAt
		}
	}
	pauses, err := s.Store.Pauses(ctx, tenant)
	if err != nil {
		return views.Counts{}, err
	}
	resting := slices.DeleteFunc(s.resting(tenant, s.Store.Now()), func(name string) bool {
		return slices.ContainsFunc(pauses, func(p ledger.Pause) bool { return p.Rail == name })
	})
	statements, err := s.Store.WaitingExceptions(ctx, tenant)
	if err != nil {
		return views.Counts{}, err
	}
	return views.Counts{Statements: statements, RailsPaused: len(pauses), RailsResting: len(resting), Approvals: c.Approvals, Unknown: c.Unknown, OldestUnknownAt: c.OldestSince, AtRisk: sums(c.AtRisk),
		Owed: c.OwedEntries, OwedSums: sums(c.Owed), OwedToUs: c.OwedToUsEntries, OwedToUsSums: sums(c.OwedToUs), CheckedAt: checked}, nil
}

// sums lists amounts by currency, in the order of the alphabet.
func sums(amounts map[string]int64) []views.Sum {
	var all []views.Sum
	for currency, amount := range amounts {
		all = append(all, views.Sum{Amount: amount, Currency: currency})
	}
	slices.SortFunc(all, func(a, b views.Sum) int { return cmp.Compare(a.Currency, b.Currency) })
	return all
}

// counts answers the script that refreshes the strip.
func (s *Server) counts(c echo.Context, p ledger.PersonRecord) error {
	f, err := s.frame(c, "", p)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, echo.MIMEApplicationJSON, f.Live())
}

// trouble turns what went wrong into a page that says so.
func (s *Server) trouble(c echo.Context, p ledger.PersonRecord, err error) error {
	if _, answered := errors.AsType[*echo.HTTPError](err); answered || c.Response().Committed {
		return err
	}
	f := s.errorFrame(c, p)
	if u, ok := errors.AsType[unclear](err); ok {
		return render(c, u.status, views.Message(views.Unclear(f, u.sentence, "")))
	}
	switch {
	case errors.Is(err, store.ErrNotFound) && c.Param("id") != "":
		return render(c, http.StatusNotFound, views.Message(views.NotFound(f, c.Param("id"))))
	case errors.Is(err, store.ErrNotFound):
		return render(c, http.StatusNotFound, views.Message(views.NoPage(f)))
	case errors.Is(err, store.ErrUnavailable):
		return render(c, http.StatusServiceUnavailable, views.Message(views.DiskTrouble(f, -1, false)))
	case errors.Is(err, context.Canceled): // nobody is there to read it
	default:
		s.Log.Error("a page could not be drawn", "request_id", requestIDOf(c), "route", c.Path(), "error", err)
	}
	return render(c, http.StatusInternalServerError, views.Message(views.Trouble(f, requestIDOf(c))))
}

// errorFrame is the person's own frame where it can be read. Where the numbers
// can't, none are shown: a strip that says "nothing unknown" would be a guess.
func (s *Server) errorFrame(c echo.Context, p ledger.PersonRecord) views.Frame {
	if p.ID == "" {
		return s.outside(c)
	}
	f, err := s.frame(c, "", p)
	if err != nil {
		return s.outside(c)
	}
	return f
}

type markedCrossSite struct{}

// markCrossSite lets a form that came from another site go no further than
// refuseCrossSite: only the answer is made by the ordinary way.
func markCrossSite(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), markedCrossSite{}, true)))
	})
}

// otherOrigin compares where a browser says it is with where it was sent: scheme,
// host and port. A browser that says itself how the two stand to each other was
// believed by the guard; one that does not, as none does over plain http, had its
// scheme looked at by nobody.
func otherOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if r.Method == http.MethodGet || origin == "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return false
	}
	return !strings.EqualFold(origin, baseURL(r))
}

// refuseCrossSite says that nothing was recorded, and leads back.
func (s *Server) refuseCrossSite(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().Context().Value(markedCrossSite{}) == nil && !otherOrigin(c.Request()) {
			return next(c)
		}
		if isAPI(c) {
			return problemf("forbidden", "The request came from a page of another site. Nothing was recorded or sent.")
		}
		back := ""
		if id := c.Param("id"); id != "" && strings.HasPrefix(c.Path(), "/operations/") {
			back = operationPath(id)
		} else if strings.HasPrefix(c.Path(), "/approvals") {
			back = "/approvals"
		} else if strings.HasPrefix(c.Path(), "/refunds") {
			back = "/refunds"
		} else if strings.HasPrefix(c.Path(), "/statements") {
			back = "/statements"
		} else if strings.HasPrefix(c.Path(), "/runs") {
			back = "/runs"
		} else if strings.HasPrefix(c.Path(), "/rails") {
			back = "/rails"
		} else if strings.HasPrefix(c.Path(), peoplePath) || strings.HasPrefix(c.Path(), accountPath) {
			back = c.Path()[:strings.LastIndex(c.Path(), "/")]
		}
		// Whoever sent it may not have been the person: the page shows nothing of theirs.
		return render(c, http.StatusForbidden, views.Message(views.CrossSite(s.outside(c), back)))
	}
}

// errorPage answers a browser whose request no page took.
func (s *Server) errorPage(c echo.Context, p problem) error {
	who, err := s.whoAsks(c)
	if err != nil {
		who = ledger.PersonRecord{}
	}
	f := s.errorFrame(c, who)
	switch p.Status {
	case http.StatusNotFound:
		if some, err := s.Store.HasPeople(c.Request().Context()); err == nil && !some && c.Request().Method == http.MethodGet {
			return c.Redirect(http.StatusSeeOther, "/setup")
		}
		return render(c, p.Status, views.Message(views.NoPage(f)))
	case http.StatusServiceUnavailable:
		return render(c, p.Status, views.Message(views.DiskTrouble(f, -1, false)))
	}
	return render(c, p.Status, views.Message(views.Trouble(f, requestIDOf(c))))
}

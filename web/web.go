// Package web is holdfast over HTTP: the JSON API that agents write to, and the
// pages on which people decide. It is the only package that knows echo; its
// handlers read a request, call the store, and render what came back.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/dispatch"
	"holdfast/reconcile"
	"holdfast/store"
)

// Server answers agents and people.
type Server struct {
	Store     *store.Store
	Config    func() *dispatch.Config // the one in force now
	Scheduler *reconcile.Scheduler
	Log       *slog.Logger
	Test      bool   // every page says that no real money moves
	Folder    string // of the data, for the commands that pages show

	// SignInLinks are one-click sign-ins for the demo; empty otherwise. The key is
	// the secret in /in/{secret}, the value the person's e-mail.
	SignInLinks map[string]string

	// MetricsToken opens /metrics; empty: see mayScrape.
	MetricsToken string

	meter  *meter
	tokens tokenCache
	asking waiting
	rates  rateLimit
	setups wrongSetups
	held   heldFiles // statement files between preview and import

	verifying sync.Mutex
	codes     sync.Mutex // held over a try of a code
}

// Handler answers every request.
func (s *Server) Handler() http.Handler {
	e := s.router()
	// Cross-site form posts are refused before any handler sees them; agents'
	// calls carry a bearer token and no Origin, and pass.
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(markCrossSite(e))
	return guard.Handler(headAsGet(e))
}

// router wires every route.
func (s *Server) router() *echo.Echo {
	s.meter = newMeter(s)
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.answerError
	e.Use(s.requestID, s.logRequests, s.recoverPanic, secureHeaders, s.refuseCrossSite)
	s.routeHealth(e)
	s.routeMetrics(e)
	s.routeAPI(e)
	s.routeMCP(e)
	s.routePages(e)
	s.routeDocuments(e)
	return e
}

// headAsGet lets every address that answers GET answer HEAD too; net/http leaves
// the body out by itself.
func headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			asGet := *r
			asGet.Method = http.MethodGet
			r = &asGet
		}
		next.ServeHTTP(w, r)
	})
}

// Serve answers on the listener until the context ends, and then lets the
// requests under way finish.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      90 * time.Second, // Prefer: wait may hold an answer for 60
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.asking.stop() // whoever waits for an outcome is answered with what is known now
	drain, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := srv.Shutdown(drain); err != nil {
		srv.Close()
		return fmt.Errorf("requests under way did not end in time: %w", err)
	}
	return nil
}

func (s *Server) routeHealth(e *echo.Echo) {
	e.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", func(c echo.Context) error {
		if err := s.Store.Ready(c.Request().Context()); err != nil {
			return c.String(http.StatusServiceUnavailable, "the store cannot commit\n")
		}
		return c.String(http.StatusOK, "ok\n")
	})
}

// answerError turns an error that no handler answered into a problem for
// agents, and into a page for people.
func (s *Server) answerError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	var p problem
	var h *echo.HTTPError
	switch {
	case errors.As(err, &h) && h.Code == http.StatusNotFound:
		p = newProblem("not_found", "")
		if isAPI(c) {
			p.detail = "There is no such address here; /openapi.json lists them."
		}
	case errors.As(err, &h) && h.Code == http.StatusMethodNotAllowed:
		p = newProblem("method_not_allowed", "")
	default:
		p = s.problemOf(err, requestIDOf(c), c.Path())
	}
	if isAPI(c) {
		err = p.write(c)
	} else {
		err = s.errorPage(c, p)
	}
	if err != nil {
		s.Log.Warn("an error could not be answered", "request_id", requestIDOf(c), "error", err)
	}
}

// problemOf turns an error that a call ended with into a problem.
func (s *Server) problemOf(err error, requestID, route string) problem {
	if p, ok := errors.AsType[problem](err); ok {
		return p
	}
	if errors.Is(err, store.ErrStale) { // twice: others change it at this very moment
		return newProblem("in_progress", "The operation changed while this was done, so nothing was. Wait a moment and send the same once more. Do not create a new operation for this purchase.")
	}
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		s.Log.Error("a request could not be answered", "request_id", requestID, "path", route, "error", err)
	}
	return newProblem("store_unavailable", "")
}

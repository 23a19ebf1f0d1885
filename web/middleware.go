package web

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// ownRequestID is what a caller may name its request: it ends up in logs and in
// headers.
var ownRequestID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// requestID gives every request a name, the caller's own where it is usable,
// and sends it back.
func (s *Server) requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get("X-Request-Id")
		if !ownRequestID.MatchString(id) {
			var b [8]byte
			rand.Read(b[:])
			id = "req_" + hex.EncodeToString(b[:])
		}
		c.Response().Header().Set("X-Request-Id", id)
		return next(c)
	}
}

// wellFormedTrace is a traceparent of W3C Trace Context.
var wellFormedTrace = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// traceparent is the caller's trace; a damaged one is ignored, as the
// recommendation says.
func traceparent(r *http.Request) string {
	if trace := r.Header.Values("traceparent"); len(trace) == 1 && wellFormedTrace.MatchString(trace[0]) {
		return trace[0]
	}
	return ""
}

func requestIDOf(c echo.Context) string { return c.Response().Header().Get("X-Request-Id") }

// logRequests writes one line a request: the route, never the query or a body.
func (s *Server) logRequests(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		err := next(c)
		if err != nil {
			c.Error(err) // answered here, so that the status is known
		}
		s.Log.Info("request", "request_id", requestIDOf(c), "method", c.Request().Method, "route", c.Path(),
			"status", c.Response().Status, "ms", time.Since(start).Milliseconds())
		s.meter.observe(c, time.Since(start))
		return nil
	}
}

func (s *Server) recoverPanic(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { // an answer that must not look whole
					panic(p)
				}
				s.Log.Error("a handler panicked", "request_id", requestIDOf(c), "route", c.Path(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				err = newProblem("internal", "")
			}
		}()
		return next(c)
	}
}

// secureHeaders forbid everything that no page of ours needs: scripts and
// styles from elsewhere or inline, frames, sniffing, referrers.
func secureHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		return next(c)
	}
}

// isAPI reports whether a program asks, and not a browser.
func isAPI(c echo.Context) bool {
	path := c.Request().URL.Path
	return strings.HasPrefix(path, "/v1/") || path == "/mcp"
}

package web

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"holdfast/static"
	"holdfast/store/ledger"
	"holdfast/views"
)

// routeDocuments wires what explains the API: to programs, to people and to
// models. Nobody needs to sign in for it.
func (s *Server) routeDocuments(e *echo.Echo) {
	e.GET("/openapi.json", func(c echo.Context) error {
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, static.OpenAPI())
	})
	e.GET("/llms.txt", func(c echo.Context) error {
		return c.String(http.StatusOK, static.ForModels(baseURL(c.Request())))
	})
	e.GET("/docs", s.docs)
	e.GET("/problems", s.problems)
	e.GET("/problems/:reason", s.problem)
}

// docs draws the OpenAPI document.
func (s *Server) docs(c echo.Context) error {
	page := describedAPI().page()
	page.Frame, page.Problems = s.outside(c), ledger.Problems
	return render(c, http.StatusOK, views.Docs(page))
}

// problemType is a kind of problem as JSON, in the order of RFC 9457.
type problemType struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"`
	Reason   string `json:"reason"`
	Terminal bool   `json:"terminal"`
	Next     string `json:"next"`
}

func typeOf(p ledger.Problem) problemType {
	return problemType{p.Type(), p.Title, p.Status, p.Detail, p.Reason, p.Terminal, p.Next}
}

// problems answers GET /problems.
func (s *Server) problems(c echo.Context) error {
	if !wantsJSON(c) {
		return render(c, http.StatusOK, views.Problems(views.ProblemsPage{Frame: s.outside(c), Problems: ledger.Problems}))
	}
	all := make([]problemType, 0, len(ledger.Problems))
	for _, p := range ledger.Problems {
		all = append(all, typeOf(p))
	}
	return writeJSON(c, http.StatusOK, echo.MIMEApplicationJSON, map[string]any{"items": all})
}

// problem answers GET /problems/{reason}, which is where the type of every
// problem leads.
func (s *Server) problem(c echo.Context) error {
	p, known := ledger.ProblemFor(c.Param("reason"))
	switch {
	case !known && wantsJSON(c):
		return newProblem("not_found", "There is no such kind of problem. All of them are listed at /problems.").write(c)
	case !known:
		return newProblem("not_found", "")
	case wantsJSON(c):
		return writeJSON(c, http.StatusOK, echo.MIMEApplicationJSON, typeOf(p))
	}
	d := describedAPI()
	_, means, _ := strings.Cut(d.meaning("ProblemReason", p.Reason), " ") // the HTTP status comes first, and has a line of its own
	return render(c, http.StatusOK, views.Problem(views.ProblemPage{
		Frame: s.outside(c), Problem: p,
		Means: means, NextIs: d.meaning("Next", p.Next),
		From: d.answeredWith(p.Reason), Example: pretty(d.Components.Examples[p.Reason].Value),
	}))
}

// wantsJSON reports whether the caller named JSON, and did not name HTML before
// it: a browser names HTML, and a program that names nothing reads the page.
func wantsJSON(c echo.Context) bool {
	c.Response().Header().Add("Vary", "Accept")
	for item := range strings.SplitSeq(strings.Join(c.Request().Header.Values("Accept"), ","), ",") {
		media, _, err := mime.ParseMediaType(item)
		switch {
		case err == nil && slices.Contains([]string{"application/json", "application/problem+json"}, media):
			return true
		case err == nil && media == "text/html":
			return false
		}
	}
	return false
}

// pretty indents JSON for people.
func pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return ""
	}
	return b.String()
}

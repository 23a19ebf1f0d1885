package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/reconcile"
	"holdfast/reconcile/statement"
	"holdfast/store"
	"holdfast/store/ledger"
)

// importBody answers an import and a preview, over HTTP and on the command line.
type importBody struct {
	StatementID     *string  `json:"statement_id"`
	Rail            string   `json:"rail"`
	Account         string   `json:"account"`
	Format          string   `json:"format"`
	From            *string  `json:"from"`
	To              *string  `json:"to"` // the start of the day after the last
	Lines           int      `json:"lines"`
	New             int      `json:"new"`
	AlreadyImported int      `json:"already_imported"`
	Matched         int      `json:"matched"`
	Suggested       int      `json:"suggested"`
	Unmatched       int      `json:"unmatched"`
	Stored          bool     `json:"stored"`
	Warnings        []string `json:"warnings"`
	Notes           []string `json:"notes"`
}

func importedBody(i ledger.StatementImport) importBody {
	b := importBody{Rail: i.Rail, Account: i.Account, Format: i.Format, From: utc(i.From), To: utc(i.To), Lines: i.Lines, AlreadyImported: i.Already,
		Warnings: i.Warnings, Notes: i.Notes}
	if b.Warnings == nil {
		b.Warnings = []string{}
	}
	if b.Notes == nil {
		b.Notes = []string{}
	}
	return b
}

// askedBody is a question that a file leaves open.
type askedBody struct {
	Key     string       `json:"key"`
	Ask     string       `json:"ask"`
	Choices []choiceBody `json:"choices"`
}

type choiceBody struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// takeStatement answers POST /v1/statements.
func (s *Server) takeStatement(c echo.Context) error {
	who, err := s.authenticate(c, "statements:write")
	if err != nil {
		return err
	}
	u, preview, err := statementRequest(c, who)
	if err != nil {
		return err
	}
	if len(who.Rails) > 0 && !slices.Contains(who.Rails, u.Rail) {
		return problemf("forbidden", "This token may not use the rail %s. Nothing was recorded.", u.Rail)
	}
	if u.Data, err = readStatementBody(c); err != nil {
		return err
	}
	http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(importTime))
	body, err := importStatement(c.Request().Context(), s.Scheduler, u, preview)
	if err != nil {
		return statementProblem(err, u.Rail)
	}
	status := http.StatusCreated
	if preview {
		status = http.StatusOK
	}
	return answer{status: status, body: body}.write(c)
}

// importTime is how long an upload may take to be stored and matched.
const importTime = 5 * time.Minute

// importStatement is what the API and the command line have in common.
func importStatement(ctx context.Context, s *reconcile.Scheduler, u reconcile.Upload, preview bool) (importBody, error) {
	if preview {
		p, err := s.PreviewStatement(ctx, u)
		body := importedBody(p.Import)
		body.New = p.New
		return body, err
	}
	done, err := s.ImportStatement(ctx, u)
	body := importedBody(done.Import)
	body.StatementID, body.Stored = given(done.Import.ID), err == nil
	body.New, body.AlreadyImported = done.New, done.Already
	body.Matched, body.Suggested, body.Unmatched = done.Matched, done.Suggested, done.Unmatched
	return body, err
}

// statementParameters are what the address may say; the answers to questions
// have the names of the questions.
var statementParameters = []string{"rail", "account", "name", "preview", "dates", "decimal", "sign", "amounts", "file_account"}

func statementRequest(c echo.Context, who caller) (u reconcile.Upload, preview bool, err error) {
	q, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return u, false, newProblem("invalid_request", "query: write NAME=VALUE&NAME=VALUE, percent-encoded.")
	}
	for name, values := range q {
		if !slices.Contains(statementParameters, name) {
			return u, false, problemf("invalid_request", "%s: there is no such parameter; use %s.", name, strings.Join(statementParameters, ", "))
		}
		if len(values) > 1 {
			return u, false, problemf("invalid_request", "%s: give it once.", name)
		}
	}
	if q.Get("rail") == "" {
		return u, false, newProblem("invalid_request", "rail: name the rail whose statement this is.")
	}
	switch q.Get("preview") {
	case "", "0", "false":
	case "1", "true":
		preview = true
	default:
		return u, false, newProblem("invalid_request", "preview: give 1, or leave it out.")
	}
	kind, _, err := mime.ParseMediaType(c.Request().Header.Get("Content-Type"))
	if err != nil || !slices.Contains(statementTypes, kind) {
		return u, false, problemf("media_type", "Send the file as it is, with Content-Type: %s. Nothing was recorded.", strings.Join(statementTypes, ", "))
	}
	name := q.Get("name")
	if name == "" {
		name = "upload"
	}
	u = reconcile.Upload{Tenant: who.TenantID, Rail: q.Get("rail"), Account: q.Get("account"), Name: name, By: who.holder(), Answers: answersOf(q)}
	return u, preview, nil
}

var statementTypes = []string{"text/csv", "text/plain", "application/xml", "text/xml", "application/json", "application/octet-stream"}

func answersOf(q url.Values) map[string]string {
	answers := map[string]string{}
	for _, key := range []string{"dates", "decimal", "sign", "amounts"} {
		if v := q.Get(key); v != "" {
			answers[key] = v
		}
	}
	if v := q.Get("file_account"); v != "" {
		answers["account"] = v
	}
	return answers
}

func readStatementBody(c echo.Context) ([]byte, error) {
	r := c.Request()
	large := problemf("body_too_large", "Keep the file within %d MiB. Nothing was recorded.", reconcile.MaxStatement>>20)
	if r.ContentLength > reconcile.MaxStatement {
		return nil, large
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, reconcile.MaxStatement))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, large
	}
	if err != nil {
		return nil, newProblem("invalid_request", "The file did not arrive whole. Send it again. Nothing was recorded.")
	}
	return body, nil
}

// statementProblem turns what is wrong with a file into an answer about it.
func statementProblem(err error, railName string) error {
	if r, ok := errors.AsType[*statement.Refusal](err); ok {
		p := newProblem("invalid_statement", r.Error())
		p.line, p.errors = r.Line, []ledger.FieldError{{Pointer: placeInFile(r.Line, r.Column), Message: r.Sentence}}
		return p
	}
	if q, ok := errors.AsType[*statement.Question](err); ok {
		p := problemf("invalid_statement", "%s %s Send it again with %s=CHOICE in the address. Nothing of it was stored.", q.Ask, q.Sentence, questionParameter(q.Key))
		p.question = &askedBody{Key: questionParameter(q.Key), Ask: q.Ask}
		for _, c := range q.Choices {
			p.question.Choices = append(p.question.Choices, choiceBody{c.Value, c.Label})
		}
		return p
	}
	if r, ok := errors.AsType[store.StatementRefused](err); ok {
		p := newProblem("invalid_statement", r.Error())
		p.line, p.errors = r.Line, []ledger.FieldError{{Pointer: placeInFile(r.Line, ""), Message: r.Sentence}}
		return p
	}
	if errors.Is(err, reconcile.ErrNoRail) {
		return problemf("invalid_request", "rail: there is no rail %q. Nothing was recorded.", railName)
	}
	return err
}

// questionParameter is the name of a question in an address: account is taken by
// what the account is to be called here.
func questionParameter(key string) string {
	if key == "account" {
		return "file_account"
	}
	return key
}

func placeInFile(line int, column string) string {
	p := ""
	if line > 0 {
		p = fmt.Sprintf("/%d", line)
	}
	if column != "" {
		p += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(column)
	}
	return p
}

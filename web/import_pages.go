package web

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/reconcile"
	"holdfast/reconcile/statement"
	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// The import of a statement by a person: the file is sent once and shown, and
// stored by a second form. See uploads.go for where it is in between.

func statementPath(id string) string { return "/statements/" + url.PathEscape(id) }

func previewPath(id string) string { return "/statements/preview/" + url.PathEscape(id) }

func mayReconcile(p ledger.PersonRecord, act string) views.Decision {
	d := views.Decision{Act: act}
	d.Allowed, d.Why = ledger.MayAct(p.Email, p.Roles)
	return d
}

func ownSession(c echo.Context) [sha256.Size]byte {
	return sha256.Sum256([]byte(sessionSecret(c.Request())))
}

// importFile takes the file of the first step, an answer about it, or the word to
// store it. Whoever may not import is told before anything is read.
func (s *Server) importFile(c echo.Context, p ledger.PersonRecord) error {
	f, err := s.frame(c, views.AtStatements, p)
	if err != nil {
		return err
	}
	if may := mayReconcile(p, "import"); !may.Allowed {
		return render(c, http.StatusForbidden, views.Message(views.Forbidden(f, may.Why)))
	}
	if kind, _, _ := mime.ParseMediaType(c.Request().Header.Get("Content-Type")); kind == echo.MIMEMultipartForm {
		return s.takeFile(c, p)
	}
	if err := readForm(c); err != nil {
		return err
	}
	held, ok := s.held.find(typed(c, "upload"), ownSession(c), p.TenantID, f.Now)
	if !ok {
		return render(c, http.StatusGone, views.Message(views.UploadGone(f)))
	}
	switch key := typed(c, "key"); key {
	case "":
	case "columns":
		return s.nameColumns(c, p, held)
	default:
		s.held.answer(typed(c, "upload"), map[string]string{cut(key, 40): cut(typed(c, "answer"), maxID)})
		return c.Redirect(http.StatusSeeOther, previewPath(typed(c, "upload")))
	}
	if typed(c, "sha256") != held.sha256 {
		return unclear{http.StatusConflict, "That is not the file that was shown. Choose it again."}
	}
	return s.storeFile(c, p, held)
}

// takeFile reads the form of the first step.
func (s *Server) takeFile(c echo.Context, p ledger.PersonRecord) error {
	held, problem, err := s.readUpload(c, p)
	if err != nil {
		return err
	}
	if problem != "" {
		form := views.FormState{Act: "import", Problem: problem, Values: map[string]string{"rail": held.rail, "account": held.account}}
		return s.drawStatements(c, p, http.StatusUnprocessableEntity, form)
	}
	return c.Redirect(http.StatusSeeOther, previewPath(s.held.hold(held, s.Store.Now())))
}

func (s *Server) readUpload(c echo.Context, p ledger.PersonRecord) (held heldFile, problem string, err error) {
	r := c.Request()
	large := unclear{http.StatusRequestEntityTooLarge, fmt.Sprintf("The file is larger than %d MiB. Split it by day or month, or import it at the machine: holdfast statement import takes up to %d MiB.",
		maxUpload>>20, reconcile.MaxStatement>>20)}
	const rest = 64 << 10 // of the form, around the file
	if r.ContentLength > maxUpload+rest {
		return held, "", large
	}
	http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(importTime))
	http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(importTime))
	r.Body = http.MaxBytesReader(c.Response(), r.Body, maxUpload+rest)
	err = r.ParseMultipartForm(maxUpload + rest) // all of it in memory: nothing is left on a disk
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return held, "", large
	}
	if err != nil {
		return held, "", unclear{http.StatusBadRequest, "The file did not arrive whole. Choose it again."}
	}
	field := func(name string) string { return strings.TrimSpace(url.Values(r.MultipartForm.Value).Get(name)) }
	held = heldFile{session: ownSession(c), tenant: p.TenantID, rail: field("rail"), account: cut(field("account"), maxID), answers: map[string]string{}}
	if t := s.Config().Tenants[p.TenantID]; t == nil || t.Rails[held.rail] == nil {
		held.rail = ""
		return held, "Choose the rail whose statement it is.", nil
	}
	files := r.MultipartForm.File["file"]
	if len(files) != 1 || files[0].Filename == "" {
		return held, "Choose a file.", nil
	}
	held.name = cut(path.Base(strings.ReplaceAll(files[0].Filename, `\`, "/")), 200)
	file, err := files[0].Open()
	if err != nil {
		return held, "", err
	}
	defer file.Close()
	if held.data, err = io.ReadAll(io.LimitReader(file, maxUpload+1)); err != nil {
		return held, "", err
	}
	switch {
	case len(held.data) > maxUpload:
		return held, "", large
	case len(held.data) == 0:
		return held, "The file is empty. Choose another.", nil
	}
	return held, "", nil
}

func (f heldFile) upload(p ledger.PersonRecord) reconcile.Upload {
	return reconcile.Upload{Tenant: f.tenant, Rail: f.rail, Account: f.account, Name: f.name, Data: f.data, Answers: maps.Clone(f.answers), Anew: f.anew,
		By: ledger.Holder{Kind: ledger.Person, Name: p.Email}}
}

// preview shows what an import would do.
func (s *Server) preview(c echo.Context, p ledger.PersonRecord) error {
	f, err := s.frame(c, views.AtStatements, p)
	if err != nil {
		return err
	}
	if may := mayReconcile(p, "import"); !may.Allowed {
		return render(c, http.StatusForbidden, views.Message(views.Forbidden(f, may.Why)))
	}
	id := c.Param("upload")
	held, ok := s.held.find(id, ownSession(c), p.TenantID, f.Now)
	if !ok {
		return render(c, http.StatusGone, views.Message(views.UploadGone(f)))
	}
	return s.drawPreview(c, p, f, id, held, views.FormState{})
}

func (s *Server) drawPreview(c echo.Context, p ledger.PersonRecord, f views.Frame, id string, held heldFile, form views.FormState) error {
	page := views.PreviewPage{Frame: f, Upload: id, SHA256: held.sha256, Rail: held.rail, Name: held.name, Until: held.until, Form: form}
	var err error
	if page.ByHand, err = s.Scheduler.NamedByHand(c.Request().Context(), held.upload(p)); err != nil {
		return err
	}
	seen, err := s.Scheduler.PreviewStatement(c.Request().Context(), held.upload(p))
	page.Import, page.New, page.First = seen.Import, seen.New, seen.First
	if err != nil && !fileTrouble(err, &page) {
		return err
	}
	status := http.StatusOK
	if err != nil || form.Problem != "" {
		status = http.StatusUnprocessableEntity
	}
	return render(c, status, views.Preview(page))
}

// fileTrouble puts what a file asks or what is wrong with it on the page.
func fileTrouble(err error, page *views.PreviewPage) bool {
	if q, ok := errors.AsType[*statement.Question](err); ok {
		page.Question = &views.FileQuestion{Key: q.Key, Ask: q.Ask, Sentence: q.Sentence}
		for _, choice := range q.Choices {
			page.Question.Choices = append(page.Question.Choices, views.FileChoice{Value: choice.Value, Label: choice.Label})
		}
		return true
	}
	if u, ok := errors.AsType[*statement.Unnamed](err); ok {
		page.Columns = fileColumns(u)
		return true
	}
	if r, ok := errors.AsType[*statement.Refusal](err); ok {
		page.Refused = &views.FileRefusal{Line: r.Line, Column: r.Column, Sentence: r.Sentence}
		return true
	}
	if r, ok := errors.AsType[store.StatementRefused](err); ok {
		page.Refused = &views.FileRefusal{Line: r.Line, Sentence: r.Sentence}
		return true
	}
	return false
}

// storeFile is the second step. A file that grew a problem meanwhile is shown
// with it.
func (s *Server) storeFile(c echo.Context, p ledger.PersonRecord, held heldFile) error {
	http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(importTime))
	done, err := s.Scheduler.ImportStatement(c.Request().Context(), held.upload(p))
	if fileTrouble(err, &views.PreviewPage{}) {
		return c.Redirect(http.StatusSeeOther, previewPath(typed(c, "upload")))
	}
	if err != nil {
		return err
	}
	s.held.drop(typed(c, "upload"))
	return c.Redirect(http.StatusSeeOther, statementPath(done.Import.ID))
}

// statements is the list of what was imported, and of what needs an answer.
func (s *Server) statements(c echo.Context, p ledger.PersonRecord) error {
	return s.drawStatements(c, p, http.StatusOK, views.FormState{})
}

// listedLines is how many lines or operations a page shows.
const listedLines = 50

func (s *Server) drawStatements(c echo.Context, p ledger.PersonRecord, status int, form views.FormState) error {
	ctx := c.Request().Context()
	f, err := s.frame(c, views.AtStatements, p)
	if err != nil {
		return err
	}
	page := views.StatementsPage{Frame: f, Form: form, Import: mayReconcile(p, "import"), Answer: mayReconcile(p, "set-aside"),
		Tab: cmp.Or(c.QueryParam("tab"), string(ledger.NotOurs)), Limit: listedImports}
	if t := s.Config().Tenants[p.TenantID]; t != nil {
		page.Rails = slices.Sorted(maps.Keys(t.Rails))
	}
	if page.Counts, err = s.Store.CountByFinding(ctx, p.TenantID); err != nil {
		return err
	}
	if page.Imports, err = s.Store.Statements(ctx, p.TenantID, "", listedImports); err != nil {
		return err
	}
	if c.QueryParam("tab") == "" {
		page.Tab = page.Fullest()
	}
	filter, known := tabFilter(page.Tab)
	if !known {
		return store.ErrNotFound
	}
	filter.After, filter.Limit, filter.Snoozed = cursor(c, "after"), listedLines+1, c.QueryParam("snoozed") == "1"
	page.Snoozed = filter.Snoozed
	found, err := s.Store.StatementExceptions(ctx, p.TenantID, filter)
	if err != nil {
		return err
	}
	if len(found) > listedLines {
		slices.SortFunc(found, func(a, b store.Exception) int { return cmp.Compare(a.Row, b.Row) })
		found = found[:listedLines]
		page.Next = found[listedLines-1].Row
	}
	if page.Items, err = s.exceptionRows(ctx, p, found); err != nil {
		return err
	}
	if page.Periods, err = s.Store.StatementPeriods(ctx, p.TenantID, "", ""); err != nil {
		return err
	}
	accounts, err := s.Store.StatementAccounts(ctx, p.TenantID)
	for _, a := range accounts {
		page.Accounts = append(page.Accounts, views.StatementAccount(a))
	}
	if err != nil {
		return err
	}
	return render(c, status, views.Statements(page))
}

const listedImports = 100

// tabFilter is what stands on a tab: a finding, or what is only suggested.
func tabFilter(tab string) (store.ExceptionFilter, bool) {
	if tab == views.SuggestedTab {
		return store.ExceptionFilter{State: ledger.LineSuggested}, true
	}
	return store.ExceptionFilter{Finding: ledger.LineFinding(tab)}, slices.Contains(views.StatementTabs(), tab)
}

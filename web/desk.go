package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// cursor is where a page of a list begins; what is no number is its beginning.
func cursor(c echo.Context, name string) int64 {
	n, _ := strconv.ParseInt(c.QueryParam(name), 10, 64)
	return max(n, 0)
}

// desk shows the lines of one import beside the operations of its rail.
func (s *Server) desk(c echo.Context, p ledger.PersonRecord) error {
	state := ledger.LineState(c.QueryParam("state"))
	return s.drawDesk(c, p, http.StatusOK, views.DeskPage{State: state, After: cursor(c, "after"), OperationsAfter: cursor(c, "ops")}, c.Param("statement"))
}

func (s *Server) drawDesk(c echo.Context, p ledger.PersonRecord, status int, page views.DeskPage, id string) (err error) {
	ctx := c.Request().Context()
	if page.Frame, err = s.frame(c, views.AtStatements, p); err != nil {
		return err
	}
	page.Statement, err = s.Store.Statement(ctx, p.TenantID, id)
	if errors.Is(err, store.ErrNotFound) {
		return render(c, http.StatusNotFound, views.Message(views.NoStatement(page.Frame, cut(id, maxID))))
	}
	if err != nil {
		return err
	}
	if page.Statement.UndoneAt > 0 { // its lines are nobody's any more
		return render(c, status, views.Desk(page))
	}
	page.Match, page.Answer, page.Undo = mayReconcile(p, "match"), mayReconcile(p, "set-aside"), mayReconcile(p, "undo")
	if page.Counts, err = s.Store.LineCounts(ctx, p.TenantID, id); err != nil {
		return err
	}
	if page.State == "" {
		page.State = page.FirstState()
	}
	if !slices.Contains(views.LineStates(), page.State) {
		return store.ErrNotFound
	}
	lines, err := s.Store.StatementLines(ctx, p.TenantID, store.LineFilter{StatementID: id, State: page.State, After: page.After, Limit: listedLines + 1})
	if err != nil {
		return err
	}
	if len(lines) > listedLines {
		lines = lines[:listedLines]
		page.Next = lines[listedLines-1].ID
	}
	if page.Lines, err = s.lineRows(ctx, p, lines); err != nil {
		return err
	}
	if err := s.fillOperations(ctx, p, &page); err != nil {
		return err
	}
	return render(c, status, views.Desk(page))
}

// around is how long before and after a statement's days its operations may have
// been submitted.
const around = 10 * 24 * time.Hour

// fillOperations puts first what the lines on the page are about, and then what
// stands on no statement yet.
func (s *Server) fillOperations(ctx context.Context, p ledger.PersonRecord, page *views.DeskPage) error {
	i := page.Statement
	rest, next, err := s.Store.UnseenOperations(ctx, p.TenantID, i.Rail, i.From-around.Milliseconds(), i.To+around.Milliseconds(), page.OperationsAfter, listedLines)
	if err != nil {
		return err
	}
	page.OperationsNext = next
	seen := map[string]bool{}
	add := func(o ledger.Operation) {
		if !seen[o.OperationID] {
			seen[o.OperationID] = true
			page.Operations = append(page.Operations, s.veil(p, o))
		}
	}
	if page.State == ledger.LineSuggested || page.State == ledger.LineUnmatched {
		for _, l := range page.Lines {
			if l.Operation != nil {
				add(*l.Operation)
			}
		}
	}
	for _, o := range rest {
		add(o)
	}
	page.Sides, err = s.Store.StatementSides(ctx, p.TenantID, page.Operations)
	return err
}

// lineRows adds to lines what they are about.
func (s *Server) lineRows(ctx context.Context, p ledger.PersonRecord, lines []ledger.KeptLine) (rows []views.StatementRow, err error) {
	var receipts []string
	for _, l := range lines {
		if l.OperationID != "" {
			receipts = append(receipts, l.AsReceipt().ID)
		}
	}
	owed, err := s.Store.RefundsOfReceipts(ctx, p.TenantID, receipts)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		row := views.StatementRow{Line: &l, Finding: l.Finding, Rail: l.Rail, Account: l.Account, Amount: l.Amount, Currency: l.Currency, Since: l.At,
			Version: l.Version, Sentence: l.Says(), SnoozedUntil: l.SnoozedUntil, Own: l.Owner == p.Email}
		if row.Owner, err = s.ownerName(ctx, p.TenantID, l.Owner); err != nil {
			return nil, err
		}
		if row.Operation, err = s.operationAbout(ctx, p, l.OperationID); err != nil {
			return nil, err
		}
		if e, ok := owed[[2]string{l.Rail, l.AsReceipt().ID}]; ok && e.OperationID == l.OperationID {
			row.Owed = &e
		}
		if l.State == ledger.LineMatched {
			if row.Matches, err = s.Store.LineMatches(ctx, p.TenantID, l.ID); err != nil {
				return nil, err
			}
			row.Matches = slices.DeleteFunc(row.Matches, func(m ledger.StatementMatch) bool { return m.EndedAt > 0 })
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// exceptionRows are lines, and operations that no statement shows.
func (s *Server) exceptionRows(ctx context.Context, p ledger.PersonRecord, all []store.Exception) (rows []views.StatementRow, err error) {
	for _, e := range all {
		if e.Line != nil {
			row, err := s.lineRows(ctx, p, []ledger.KeptLine{*e.Line})
			if err != nil {
				return nil, err
			}
			rows = append(rows, row...)
			continue
		}
		row := views.StatementRow{Finding: e.Finding, Rail: e.Rail, Amount: e.Amount, Currency: e.Currency, Since: e.Since, Version: e.Version, Sentence: e.Sentence,
			SnoozedUntil: e.SnoozedUntil, Own: e.Owner == p.Email}
		if row.Owner, err = s.ownerName(ctx, p.TenantID, e.Owner); err != nil {
			return nil, err
		}
		if row.Operation, err = s.operationAbout(ctx, p, e.OperationID); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (s *Server) ownerName(ctx context.Context, tenant, email string) (string, error) {
	if email == "" {
		return "", nil
	}
	return s.nameOf(ctx, tenant, email)
}

func (s *Server) operationAbout(ctx context.Context, p ledger.PersonRecord, id string) (*ledger.Operation, error) {
	if id == "" {
		return nil, nil
	}
	o, err := s.Store.Operation(ctx, p.TenantID, id)
	if err != nil {
		return nil, err
	}
	o = s.veil(p, o)
	return &o, nil
}

// zoneOf is the zone in which a rail's statements name their days.
func (s *Server) zoneOf(tenant, rail string) *time.Location {
	if t := s.Config().Tenants[tenant]; t != nil {
		if zone, err := time.LoadLocation(cmp.Or(t.RailConfigs[rail].Statement.TimeZone, "UTC")); err == nil {
			return zone
		}
	}
	return time.UTC
}

// closing shows what is missing before an account can be closed up to a day, what
// would be counted, and what was.
func (s *Server) closing(c echo.Context, p ledger.PersonRecord) error {
	return s.drawClosing(c, p, http.StatusOK, c.QueryParam("rail"), c.QueryParam("account"), c.QueryParam("until"), views.FormState{})
}

func (s *Server) drawClosing(c echo.Context, p ledger.PersonRecord, status int, rail, account, until string, form views.FormState) error {
	ctx := c.Request().Context()
	f, err := s.frame(c, views.AtStatements, p)
	if err != nil {
		return err
	}
	accounts, err := s.Store.StatementAccounts(ctx, p.TenantID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(accounts, func(a store.StatementAccount) bool { return a.Rail == rail && a.Account == account })
	if i < 0 {
		return store.ErrNotFound
	}
	zone := s.zoneOf(p.TenantID, rail)
	page := views.ClosingPage{Frame: f, Account: views.StatementAccount(accounts[i]), Zone: zone, Close: mayReconcile(p, "close-period"), Form: form}
	if page.Until, err = dayAfter(until, zone); err != nil {
		page.Until = lastMonthEnd(accounts[i].ReachesTo, accounts[i].ClosedTo, zone)
	}
	report, err := s.Store.ReportPeriod(ctx, p.TenantID, rail, account, page.Until)
	if err != nil {
		return err
	}
	page.Sheet, page.StillOpen = report.PeriodSheet, report.StillOpen
	if page.Open, err = s.exceptionRows(ctx, p, report.Open[:min(len(report.Open), listedLines)]); err != nil {
		return err
	}
	if page.Closed, err = s.Store.StatementPeriods(ctx, p.TenantID, rail, account); err != nil {
		return err
	}
	return render(c, status, views.Closing(page))
}

// dayAfter is the end of a day as somebody typed it.
func dayAfter(typed string, zone *time.Location) (int64, error) {
	t, err := time.ParseInLocation(time.DateOnly, typed, zone)
	return t.AddDate(0, 0, 1).UnixMilli(), err
}

// lastMonthEnd is the end of the last month that the statements cover whole and
// that is open; else the end of what they cover.
func lastMonthEnd(reaches, closed int64, zone *time.Location) int64 {
	if from, _ := ledger.Month(reaches, zone); from > closed {
		return from
	}
	return reaches
}

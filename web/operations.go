package web

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// operations is the list, newest first, with its filter in the URL. An id that
// was pasted into the search opens at once.
func (s *Server) operations(c echo.Context, p ledger.PersonRecord) error {
	f, err := s.frame(c, views.AtOperations, p)
	if err != nil {
		return err
	}
	page := views.OperationsPage{Frame: f, Filter: views.Filter{
		Status: asked(c, "status"), ActionType: asked(c, "action_type"), Reference: asked(c, "reference"), RunID: asked(c, "run_id"), Query: asked(c, "q"),
	}}
	page.Frame.Query = page.Filter.Query
	page.Types = slices.Sorted(maps.Keys(s.Store.Rulebook(p.TenantID).Actions))
	if err := s.fillList(c, p, &page); err != nil {
		return err
	}
	if len(page.Items) == 1 && page.Filter == (views.Filter{Query: page.Filter.Query}) && page.Filter.Query != "" {
		return c.Redirect(http.StatusSeeOther, operationPath(page.Items[0].OperationID))
	}
	return render(c, http.StatusOK, views.Operations(page))
}

func asked(c echo.Context, name string) string {
	return strings.TrimSpace(cut(c.QueryParam(name), 4*maxID))
}

func (s *Server) fillList(c echo.Context, p ledger.PersonRecord, page *views.OperationsPage) error {
	ctx, filter := c.Request().Context(), page.Filter
	counts, err := s.Store.Counts(ctx, p.TenantID)
	if err != nil {
		return err
	}
	page.Counts = counts.ByStatus
	query := store.Filter{ActionType: filter.ActionType, Reference: filter.Reference, RunID: filter.RunID, Search: filter.Query, Cursor: c.QueryParam("cursor")}
	if filter.Status != "" {
		query.Statuses = []ledger.Status{ledger.Status(filter.Status)}
		if !slices.Contains(ledger.Statuses(), query.Statuses[0]) {
			page.Problem = "There is no status of that name. Choose one from the list."
			return nil
		}
	}
	found, err := s.Store.Operations(ctx, p.TenantID, query)
	if errors.Is(err, store.ErrForbidden) {
		page.Problem = sentence(err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, o := range found.Items {
		if !s.keepsFrom(p, o, filter.Query) && !s.keepsFrom(p, o, filter.Reference) {
			page.Items = append(page.Items, s.veil(p, o))
		}
	}
	page.NextCursor = found.Next
	if len(page.Items) == 0 {
		page.Curl = s.firstCurl(c, p.TenantID)
	}
	page.Ever = len(page.Items) > 0
	if !page.Ever && query.Cursor != "" { // older than the oldest, and not the first day
		first, err := s.Store.Operations(ctx, p.TenantID, store.Filter{Limit: 1})
		if err != nil {
			return err
		}
		page.Ever = len(first.Items) > 0
	}
	return nil
}

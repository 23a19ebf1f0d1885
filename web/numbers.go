package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store/ledger"
	"holdfast/views"
)

// countFor is how long a reader waits while a long log is counted for the first
// time.
const countFor = 2 * time.Second

// numbers shows how far the ledger of the person's tenant may be believed.
func (s *Server) numbers(c echo.Context, p ledger.PersonRecord) error {
	ctx := c.Request().Context()
	f, err := s.frame(c, views.AtRails, p)
	if err != nil {
		return err
	}
	page := views.NumbersPage{Frame: f, Rails: slices.Sorted(maps.Keys(s.Store.Rulebook(p.TenantID).Rails))}
	if page.Now, err = s.Store.Numbers(ctx, p.TenantID); err != nil {
		return err
	}
	accounts, err := s.Store.UnmatchedLines(ctx, p.TenantID)
	if err != nil {
		return err
	}
	page.Statements = len(accounts) > 0
	for _, a := range accounts {
		page.Unmatched = append(page.Unmatched, views.AccountLines{Account: a.Account, Rail: a.Rail, N: a.N})
	}
	counting, cancel := context.WithTimeout(ctx, countFor)
	defer cancel()
	switch err := s.meter.tally.CatchUp(counting); {
	case err == nil:
		page.Happened = s.meter.tally.Of(p.TenantID)
	case errors.Is(counting.Err(), context.DeadlineExceeded) && ctx.Err() == nil:
		page.Counting = true
	default:
		return err
	}
	return render(c, http.StatusOK, views.Numbers(page))
}

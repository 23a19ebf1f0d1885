package web

import (
	"errors"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// refunds lists money that is owed.
func (s *Server) refunds(c echo.Context, p ledger.PersonRecord) error {
	f, err := s.frame(c, views.AtRefunds, p)
	if err != nil {
		return err
	}
	owed, err := s.Store.RefundsOwed(c.Request().Context(), p.TenantID)
	if err != nil {
		return err
	}
	from := map[string]ledger.Operation{}
	for _, r := range owed {
		o, err := s.Store.Operation(c.Request().Context(), p.TenantID, r.OperationID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err == nil {
			from[r.OperationID] = s.veil(p, o)
		}
	}
	paying, err := s.Store.PayingRefunds(c.Request().Context(), p.TenantID)
	if err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Refunds(views.RefundsPage{Frame: f, Items: owed, From: from, Paying: paying, Sums: railSums(owed)}))
}

// railSums adds what is open per direction, rail and currency, and nothing across
// them.
func railSums(owed []ledger.RefundOwed) (all []views.RailSum) {
	for _, r := range owed {
		if r.Open == 0 {
			continue
		}
		toUs := r.Direction == "owed_to_us"
		i := slices.IndexFunc(all, func(s views.RailSum) bool { return s.ToUs == toUs && s.Rail == r.Rail && s.Currency == r.Currency })
		if i < 0 {
			all = append(all, views.RailSum{ToUs: toUs, Rail: r.Rail, Sum: views.Sum{Currency: r.Currency}})
			i = len(all) - 1
		}
		sum, ok := ledger.AddAmounts(all[i].Amount, r.Open)
		if ok {
			all[i].Amount = sum
		}
		all[i].Count++
	}
	return all
}

package web

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

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
	return render(c, http.StatusOK, views.Refunds(views.RefundsPage{Frame: f, Items: owed, Sums: railSums(owed)}))
}

// railSums adds what is open per rail and currency, and nothing across them.
func railSums(owed []ledger.RefundOwed) (all []views.RailSum) {
	for _, r := range owed {
		if r.Open == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(s views.RailSum) bool { return s.Rail == r.Rail && s.Currency == r.Currency })
		if i < 0 {
			all = append(all, views.RailSum{Rail: r.Rail, Sum: views.Sum{Currency: r.Currency}})
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

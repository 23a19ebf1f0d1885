package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// refunds lists money that is owed, by how far it got.
func (s *Server) refunds(c echo.Context, p ledger.PersonRecord) error {
	ctx := c.Request().Context()
	page := views.RefundsPage{Tab: ledger.RefundStatus(cmp.Or(c.QueryParam("status"), string(ledger.RefundIsOwed)))}
	if !slices.Contains(ledger.RefundStatuses(), page.Tab) {
		return store.ErrNotFound
	}
	var err error
	if page.Frame, err = s.frame(c, views.AtRefunds, p); err != nil {
		return err
	}
	f := store.RefundFilter{Statuses: []ledger.RefundStatus{page.Tab}, Cursor: c.QueryParam("cursor"), Limit: 200}
	page.Items, page.Next, err = s.Store.RefundPage(ctx, p.TenantID, f)
	if errors.Is(err, store.ErrForbidden) { // a cursor of nobody's: the list from its beginning
		return c.Redirect(http.StatusSeeOther, "/refunds?status="+string(page.Tab))
	}
	if err != nil {
		return err
	}
	page.From = map[string]ledger.Operation{}
	for _, r := range page.Items {
		if from, err := s.refundOrigin(ctx, p, r); err != nil {
			return err
		} else if from != nil {
			page.From[r.OperationID] = *from
		}
		paid, err := s.Store.RefundSettlements(ctx, p.TenantID, r.ID)
		if err != nil {
			return err
		}
		paying, err := s.paying(ctx, p, paid)
		if err != nil {
			return err
		}
		page.Words = append(page.Words, views.RefundWord(r, paid, paying))
	}
	balances, err := s.Store.RefundBalances(ctx, p.TenantID)
	if err != nil {
		return err
	}
	page.Sums, page.Customers = openSums(balances)
	if page.Ages, err = s.Store.RefundAges(ctx, p.TenantID); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Refunds(page))
}

// refundOrigin is the operation that an entry is about, as this person may see it.
func (s *Server) refundOrigin(ctx context.Context, p ledger.PersonRecord, r ledger.RefundOwed) (*ledger.Operation, error) {
	if r.OperationID == "" {
		return nil, nil
	}
	o, err := s.Store.Operation(ctx, p.TenantID, r.OperationID)
	if err != nil {
		return nil, err
	}
	o = s.veil(p, o)
	return &o, nil
}

// paying is the operation by which an entry is being settled now.
func (s *Server) paying(ctx context.Context, p ledger.PersonRecord, paid []ledger.RefundSettlement) (*ledger.Operation, error) {
	i := slices.IndexFunc(paid, func(r ledger.RefundSettlement) bool { return r.State == ledger.SettlementOpen })
	if i < 0 {
		return nil, nil
	}
	o, err := s.Store.Operation(ctx, p.TenantID, paid[i].OperationID)
	if err != nil {
		return nil, err
	}
	o = s.veil(p, o)
	return &o, nil
}

// openSums adds what is open per direction, currency and rail, and per direction,
// currency and customer; nothing is added up across them.
func openSums(balances []ledger.RefundBalance) (rails, customers []views.RailSum) {
	for _, b := range balances {
		if b.Open > 0 {
			rails = addSum(rails, b, b.Rail)
			customers = addSum(customers, b, b.Customer)
		}
	}
	return rails, customers
}

func addSum(all []views.RailSum, b ledger.RefundBalance, name string) []views.RailSum {
	toUs := b.Direction == ledger.OwedToUs
	i := slices.IndexFunc(all, func(s views.RailSum) bool { return s.ToUs == toUs && s.Rail == name && s.Currency == b.Currency })
	if i < 0 {
		all, i = append(all, views.RailSum{ToUs: toUs, Rail: name, Sum: views.Sum{Currency: b.Currency}}), len(all)
	}
	if sum, ok := ledger.AddAmounts(all[i].Amount, b.Open); ok {
		all[i].Amount = sum
	}
	all[i].Count += b.Entries
	return all
}

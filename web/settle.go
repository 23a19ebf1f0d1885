package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// refund shows one entry of what is owed.
func (s *Server) refund(c echo.Context, p ledger.PersonRecord) error {
	e, err := s.Store.RefundOwed(c.Request().Context(), p.TenantID, c.Param("id"))
	if err != nil {
		return err
	}
	return s.drawRefund(c, p, e, http.StatusOK, views.FormState{})
}

func (s *Server) drawRefund(c echo.Context, p ledger.PersonRecord, e ledger.RefundOwed, status int, form views.FormState) error {
	f, err := s.frame(c, views.AtRefunds, p)
	if err != nil {
		return err
	}
	page := views.RefundPage{Frame: f, Entry: e, Settle: maySettle(p, e), Form: form}
	if err := s.fillEntry(c.Request().Context(), p, &page); err != nil {
		return err
	}
	return render(c, status, views.Refund(page))
}

// fillEntry reads where an entry came from, what pays it, and what the next
// refund would be.
func (s *Server) fillEntry(ctx context.Context, p ledger.PersonRecord, page *views.RefundPage) error {
	e := page.Entry
	if e.OperationID != "" {
		o, err := s.Store.Operation(ctx, p.TenantID, e.OperationID)
		if err != nil {
			return err
		}
		page.From = new(s.veil(p, o))
	}
	paying, err := s.Store.PayingRefunds(ctx, p.TenantID)
	if err != nil {
		return err
	}
	if o, under := paying[e.ID]; under {
		page.Paying = new(s.veil(p, o))
	}
	if page.Settlements, err = s.Store.RefundSettlements(ctx, p.TenantID, e.ID); err != nil || !page.Settle.Allowed {
		return err
	}
	page.Rails = s.refundRails(e)
	plan, err := s.Store.PlanRefund(ctx, p.TenantID, e.ID, store.GiveBack{Amount: e.Free()})
	if errors.Is(err, ledger.ErrNoRefund) {
		page.NextWhy = sentence(err)
		return nil
	}
	page.NextID = plan.OperationID
	return err
}

// refundRails are the rails over which an entry may go back: the one that the
// money came in by first.
func (s *Server) refundRails(e ledger.RefundOwed) []string {
	names := []string{e.Rail}
	for _, name := range slices.Sorted(maps.Keys(s.Store.Rulebook(e.TenantID).Rails)) {
		if name != e.Rail {
			names = append(names, name)
		}
	}
	return names
}

// maySettle says whether the form that settles an entry stands on its page.
func maySettle(p ledger.PersonRecord, e ledger.RefundOwed) views.Decision {
	d := views.Decision{Act: "settle"}
	may, why := ledger.MaySettle(p.Email, p.Roles)
	switch {
	case e.Open == 0:
	case e.Direction != ledger.WeOwe:
		d.Why = "This is owed to us: nothing goes out for it. It is settled by the proof that the money came in."
	case e.Settling > 0:
		d.Why = "An operation is to pay this. Until its outcome is known, nothing else may."
	case !may:
		d.Why = why
	default:
		d.Allowed = true
	}
	return d
}

// settle takes the wish to give money back from the form to the store, which has
// the last word.
func (s *Server) settle(c echo.Context, p ledger.PersonRecord) error {
	ctx, id := c.Request().Context(), c.Param("id")
	e, err := s.Store.RefundOwed(ctx, p.TenantID, id)
	if err != nil {
		return err
	}
	if may, why := ledger.MaySettle(p.Email, p.Roles); !may {
		return render(c, http.StatusForbidden, views.Message(views.Forbidden(s.errorFrame(c, p), why)))
	}
	version, _ := strconv.ParseInt(typed(c, "version"), 10, 64) // what is no number was never on a screen
	if version != e.Version {
		return s.refundChanged(c, p, e, version)
	}
	give := store.GiveBack{Rail: typed(c, "rail")}
	problem := ""
	if give.Amount, problem = s.amountBack(typed(c, "amount"), e); problem == "" {
		err := s.sendableRefund(ctx, p, e, give)
		if err == nil {
			_, err = s.Store.SettleByRefund(ctx, p.TenantID, id, store.RefundDecision{Person: p, Version: version, Reason: ""}, give)
		}
		switch {
		case err == nil:
			return c.Redirect(http.StatusSeeOther, "/refunds/"+id)
		case errors.Is(err, store.ErrStale):
			return s.refundChanged(c, p, e, version)
		}
		if problem = settleProblem(err); problem == "" {
			return err
		}
	}
	form := views.FormState{Act: "settle", Problem: problem, Values: map[string]string{"rail": cut(give.Rail, maxID), "amount": cut(typed(c, "amount"), maxID)}}
	return s.drawRefund(c, p, e, http.StatusUnprocessableEntity, form)
}

// amountBack reads what was typed, in the currency of the entry. Nothing typed
// is not "all of it".
func (s *Server) amountBack(text string, e ledger.RefundOwed) (int64, string) {
	if text == "" {
		return 0, "The amount is needed."
	}
	amount, problem := typedAmount(text, ledger.Operation{Terms: ledger.Terms{Currency: e.Currency}}, s.Store.Rulebook(e.TenantID).Currencies)
	if problem != "" {
		return 0, problem
	}
	if *amount == 0 {
		return 0, "The amount must be more than nothing."
	}
	return *amount, ""
}

// sendableRefund refuses a refund of which its rail can make no request.
func (s *Server) sendableRefund(ctx context.Context, p ledger.PersonRecord, e ledger.RefundOwed, give store.GiveBack) error {
	plan, err := s.Store.PlanRefund(ctx, p.TenantID, e.ID, give)
	if err != nil {
		return err
	}
	return s.sendable(ctx, plan.Draft(p.TenantID, p.Email))
}

// settleProblem is what to change about the form; empty for what no form can
// mend.
func settleProblem(err error) string {
	if p, ok := errors.AsType[problem](err); ok {
		return p.detail
	}
	var exceeds store.RefundExceeds
	switch {
	case errors.As(err, &exceeds):
		return exceeds.Sentence
	case errors.Is(err, ledger.ErrNoRefund), errors.Is(err, ledger.ErrOverSettled), errors.Is(err, ledger.ErrNotAllowed), errors.Is(err, store.ErrForbidden):
		return sentence(err)
	}
	return ""
}

// refundChanged answers a form that saw something old. A button that was pressed
// twice did its work once, and that was it.
func (s *Server) refundChanged(c echo.Context, p ledger.PersonRecord, e ledger.RefundOwed, seen int64) error {
	e, err := s.Store.RefundOwed(c.Request().Context(), p.TenantID, e.ID)
	if err != nil {
		return err
	}
	settlements, err := s.Store.RefundSettlements(c.Request().Context(), p.TenantID, e.ID)
	if err != nil {
		return err
	}
	open := slices.IndexFunc(settlements, func(r ledger.RefundSettlement) bool { return r.State == ledger.SettlementOpen && r.By == p.Email })
	if open >= 0 && e.Version == seen+1 {
		return c.Redirect(http.StatusSeeOther, "/refunds/"+e.ID)
	}
	return render(c, http.StatusConflict, views.Message(views.RefundChanged(s.errorFrame(c, p), e)))
}

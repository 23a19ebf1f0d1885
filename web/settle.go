package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// mayGiveBack says whether the form that pays an entry by an operation stands on
// its page.
func mayGiveBack(e ledger.RefundOwed, p ledger.PersonRecord) views.Decision {
	d := views.Decision{Act: "settle"}
	may, why := ledger.MaySettle(p.Email, p.Roles)
	switch {
	case e.Open == 0:
	case e.Direction != ledger.WeOwe:
		d.Why = "This is owed to us: nothing goes out for it. It is settled by the proof that the money came in."
	case e.Settling > 0:
		d.Why = "An operation is to pay this. Until its outcome is known, no other one may."
	case !may:
		d.Why = why
	default:
		d.Allowed = true
	}
	return d
}

// fillGiveBack says what the next refund of an entry would be.
func (s *Server) fillGiveBack(ctx context.Context, p ledger.PersonRecord, page *views.RefundPage) error {
	if page.GiveBack = mayGiveBack(page.Entry, p); !page.GiveBack.Allowed {
		return nil
	}
	plan, err := s.Store.PlanRefund(ctx, p.TenantID, page.Entry.ID, store.GiveBack{Amount: page.Entry.Free()})
	if errors.Is(err, ledger.ErrNoRefund) {
		page.NextWhy = sentence(err)
		return nil
	}
	page.NextID = plan.OperationID
	return err
}

// giveBack takes the wish to give money back from the form to the store, which
// has the last word.
func (s *Server) giveBack(c echo.Context, p ledger.PersonRecord, e ledger.RefundOwed) error {
	ctx := c.Request().Context()
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
			_, err = s.Store.SettleByRefund(ctx, p.TenantID, e.ID, store.RefundDecision{Person: p, Version: version}, give)
		}
		switch {
		case err == nil:
			return c.Redirect(http.StatusSeeOther, refundPath(e.ID))
		case errors.Is(err, store.ErrStale):
			return s.refundChanged(c, p, e, version)
		}
		if problem = settleProblem(err); problem == "" {
			return err
		}
	}
	form := views.FormState{Act: "give-back", Problem: problem, Values: map[string]string{"rail": cut(give.Rail, maxID), "amount": cut(typed(c, "amount"), maxID)}}
	return s.drawRefund(c, p, http.StatusUnprocessableEntity, form)
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
		return c.Redirect(http.StatusSeeOther, refundPath(e.ID))
	}
	return render(c, http.StatusConflict, views.Message(views.RefundChanged(s.errorFrame(c, p), e)))
}

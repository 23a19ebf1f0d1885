package web

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

func refundPath(id string) string { return "/refunds/" + url.PathEscape(id) }

// refund shows one entry: why it is owed, what became of it, and what may be done.
func (s *Server) refund(c echo.Context, p ledger.PersonRecord) error {
	return s.drawRefund(c, p, http.StatusOK, views.FormState{})
}

func (s *Server) drawRefund(c echo.Context, p ledger.PersonRecord, status int, form views.FormState) error {
	ctx, id := c.Request().Context(), c.Param("id")
	f, err := s.frame(c, views.AtRefunds, p)
	if err != nil {
		return err
	}
	page := views.RefundPage{Frame: f, Form: form}
	page.Entry, err = s.Store.RefundOwed(ctx, p.TenantID, id)
	if errors.Is(err, store.ErrNotFound) {
		return render(c, http.StatusNotFound, views.Message(views.NoRefund(f, cut(id, maxID))))
	}
	if err != nil {
		return err
	}
	if page.From, err = s.refundOrigin(ctx, p, page.Entry); err != nil {
		return err
	}
	if page.Settlements, err = s.Store.RefundSettlements(ctx, p.TenantID, id); err != nil {
		return err
	}
	if page.Waivers, err = s.Store.RefundWaivers(ctx, p.TenantID, id); err != nil {
		return err
	}
	if page.Journal, err = s.Store.RefundJournal(ctx, p.TenantID, id); err != nil {
		return err
	}
	if page.Paying, err = s.paying(ctx, p, page.Settlements); err != nil {
		return err
	}
	page.Rails = slices.Sorted(maps.Keys(s.Store.Rulebook(p.TenantID).Rails))
	page.Settle, page.Waive, page.Bounce = maySettle(page.Entry, p), mayWaive(page.Entry, page.Waivers, p), mayBounce(page.Entry, p)
	if err := s.fillGiveBack(ctx, p, &page); err != nil {
		return err
	}
	return render(c, status, views.Refund(page))
}

func maySettle(e ledger.RefundOwed, p ledger.PersonRecord) views.Decision {
	d := views.Decision{Act: "settle"}
	d.Allowed, d.Why = ledger.MaySettle(p.Email, p.Roles)
	switch {
	case !d.Allowed:
	case e.Settling > 0: // also where it pays a part only: one way at a time
		d.Allowed, d.Why = false, "A refund is under way. Until its outcome is known, nothing else may settle it."
	case e.Open == 0:
		d.Allowed, d.Why = false, "Nothing is left to settle."
	}
	return d
}

// mayBounce says whether somebody may say that money which was given back came
// back: whoever may settle.
func mayBounce(e ledger.RefundOwed, p ledger.PersonRecord) views.Decision {
	d := views.Decision{Act: "bounced", ReasonRequired: true}
	d.Allowed, d.Why = ledger.MaySettle(p.Email, p.Roles)
	if d.Allowed && e.Settled == 0 {
		d.Allowed, d.Why = false, "Nothing of it was given back."
	}
	return d
}

func mayWaive(e ledger.RefundOwed, waivers []ledger.RefundWaiver, p ledger.PersonRecord) views.Decision {
	d := views.Decision{Act: "waive", ReasonRequired: true}
	d.Allowed, d.Why = ledger.MayWaive(ledger.AskedWaiver(waivers), p.Email, p.Roles)
	switch {
	case !d.Allowed:
	case e.Status == ledger.RefundIsSettling:
		d.Allowed, d.Why = false, "A refund is under way. Until its outcome is known, nothing is waived."
	case e.Open == 0:
		d.Allowed, d.Why = false, "Nothing is left to waive."
	}
	return d
}

// decideRefund takes a person's decision on an entry from the form to the store,
// which has the last word.
func (s *Server) decideRefund(c echo.Context, p ledger.PersonRecord) error {
	ctx, id, act := c.Request().Context(), c.Param("id"), c.Param("act")
	if act != "settle" && act != "waive" && act != "bounced" {
		return echo.ErrNotFound
	}
	e, err := s.Store.RefundOwed(ctx, p.TenantID, id)
	if errors.Is(err, store.ErrNotFound) {
		return s.drawRefund(c, p, http.StatusNotFound, views.FormState{})
	}
	if err != nil {
		return err
	}
	if _, elsewhere := c.Request().PostForm["proof"]; act == "settle" && !elsewhere {
		return s.giveBack(c, p, e)
	}
	d := store.RefundDecision{Person: p, Reason: typed(c, "reason")}
	if d.Version, err = strconv.ParseInt(typed(c, "version"), 10, 64); err != nil || d.Version <= 0 {
		return unclear{http.StatusUnprocessableEntity, "The form does not say what you saw. Open the refund again and decide there."}
	}
	problem := ""
	switch act {
	case "waive":
		if problem = checkText("A reason", d.Reason, maxReason, true); problem == "" {
			_, _, err = s.Store.WaiveRefund(ctx, p.TenantID, id, d)
		}
	case "bounced":
		if problem = checkText("A reason", d.Reason, maxReason, true); problem == "" {
			_, err = s.Store.SayBounced(ctx, p.TenantID, id, typed(c, "settlement"), d)
		}
	default:
		var proof store.RefundProof
		proof, problem = s.typedProof(c, e, d)
		if may := maySettle(e, p); problem == "" && may.Allowed && d.Version == e.Version { // else the store refuses it, and nobody need be asked
			if proof.Checked, problem, err = s.checkProof(ctx, e, proof); err != nil {
				return err
			}
		}
		if problem == "" {
			_, err = s.Store.ProveRefund(ctx, p.TenantID, id, d, proof)
		}
	}
	if problem == "" && err == nil {
		return c.Redirect(http.StatusSeeOther, refundPath(id))
	}
	return s.refundRefused(c, p, e, d, act, problem, err)
}

// refundRefused answers what was not recorded. Whoever saw something old, or may
// not decide, is told that first; else the form comes back.
func (s *Server) refundRefused(c echo.Context, p ledger.PersonRecord, e ledger.RefundOwed, d store.RefundDecision, act, problem string, refusal error) error {
	f, err := s.frame(c, views.AtRefunds, p)
	if err != nil {
		return err
	}
	waivers, err := s.Store.RefundWaivers(c.Request().Context(), p.TenantID, e.ID)
	if err != nil {
		return err
	}
	may := maySettle(e, p)
	switch act {
	case "waive":
		may = mayWaive(e, waivers, p)
	case "bounced":
		may = mayBounce(e, p)
	}
	allowed, why := ledger.MaySettle(p.Email, p.Roles)
	typedWrong := problem != "" || errors.Is(refusal, store.ErrForbidden) || errors.Is(refusal, ledger.ErrOverSettled) || errors.Is(refusal, ledger.ErrNotAllowed)
	switch {
	case !typedWrong && !errors.Is(refusal, store.ErrStale):
		return refusal
	case !allowed:
		return render(c, http.StatusForbidden, views.Message(views.Forbidden(f, why)))
	case errors.Is(refusal, store.ErrStale) || d.Version != e.Version:
		return render(c, http.StatusConflict, views.Message(views.RefundChanged(f, e)))
	case !may.Allowed && errors.Is(refusal, store.ErrForbidden):
		return render(c, http.StatusForbidden, views.Message(views.Forbidden(f, may.Why)))
	case !may.Allowed:
		return render(c, http.StatusConflict, views.Message(views.RefundNotPossible(f, e, may.Why)))
	}
	form := views.FormState{Act: act, Problem: problem, Values: map[string]string{}}
	if problem == "" {
		form.Problem = sentence(refusal)
	}
	for field := range c.Request().PostForm {
		form.Values[field] = cut(typed(c, field), 4*maxReason)
	}
	return s.drawRefund(c, p, http.StatusUnprocessableEntity, form)
}

// typedProof reads what somebody says about a refund that was made elsewhere.
func (s *Server) typedProof(c echo.Context, e ledger.RefundOwed, d store.RefundDecision) (p store.RefundProof, problem string) {
	p.ID, p.Rail, p.PaidOn = typed(c, "proof"), cmp.Or(typed(c, "rail"), e.Rail), typed(c, "date")
	if problem = checkText("The proof", p.ID, maxID, true); problem != "" {
		return p, problem
	}
	if problem = checkText("A reason", d.Reason, maxReason, false); problem != "" {
		return p, problem
	}
	about := ledger.Operation{Terms: ledger.Terms{Currency: e.Currency}}
	amount, problem := typedAmount(typed(c, "amount"), about, s.Store.Rulebook(e.TenantID).Currencies)
	switch {
	case problem != "":
		return p, problem
	case amount == nil:
		return p, "The amount is needed: nothing is settled without saying how much."
	case *amount == 0:
		return p, "The amount must be more than nothing."
	}
	p.Amount = *amount
	if p.PaidOn != "" {
		day, err := time.Parse(time.DateOnly, p.PaidOn)
		if err != nil {
			return p, "The date can't be read. Write it as 2026-01-31."
		}
		if day.After(time.UnixMilli(s.Store.Now()).Add(24 * time.Hour)) {
			return p, "The date is still to come. Record it once it was paid."
		}
	}
	return p, ""
}

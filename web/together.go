package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

const togetherPath = "/approvals/together"

// groups are the rules and action types of which several operations may be
// approved with one form, in the order of the list.
func (s *Server) groups(p ledger.PersonRecord, needs []views.Need) (all []views.Group) {
	policy := s.Store.Rulebook(p.TenantID).Policy
	for _, n := range needs {
		o := n.Operation
		if may, _ := policy.MayTogether(o); !may {
			continue
		}
		i := slices.IndexFunc(all, func(g views.Group) bool { return g.Rule == o.PolicyRow && g.Action == o.ActionType })
		if i < 0 {
			i = len(all)
			all = append(all, views.Group{Rule: o.PolicyRow, Action: o.ActionType,
				URL: togetherPath + "?" + url.Values{"rule": {o.PolicyRow}, "action": {o.ActionType}}.Encode()})
		}
		all[i].Count++
	}
	return slices.DeleteFunc(all, func(g views.Group) bool { return g.Count < 2 })
}

// together shows what one form would approve: operations of one rule and action
// type that this person may approve, without those that were left out.
func (s *Server) together(c echo.Context, p ledger.PersonRecord) error {
	page, err := s.togetherPage(c, p, c.QueryParam("rule"), c.QueryParam("action"), c.QueryParams()["not"])
	if err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Together(page))
}

func (s *Server) togetherPage(c echo.Context, p ledger.PersonRecord, rule, action string, not []string) (views.TogetherPage, error) {
	page := views.TogetherPage{Rule: rule, Action: action}
	var err error
	if page.Frame, err = s.frame(c, views.AtApprovals, p); err != nil {
		return page, err
	}
	needs, err := s.waitingIn(c.Request().Context(), p, ledger.AwaitingApproval)
	if err != nil {
		return page, err
	}
	policy := s.Store.Rulebook(p.TenantID).Policy
	for _, n := range needs {
		o := n.Operation
		if o.PolicyRow != rule || o.ActionType != action {
			continue
		}
		item := views.TogetherItem{Operation: o, Flags: n.Flags}
		d, _, err := s.verdict(c, p, o, "approve")
		if err != nil {
			return page, err
		}
		may, why := policy.MayTogether(o)
		switch {
		case slices.Contains(not, o.OperationID):
			item.Why = "Left out by you."
		case !d.Allowed:
			item.Why = d.Why
		case !may:
			item.Why = why
		case len(page.Items) == ledger.MostTogether:
			item.Why = "One form approves at most 25."
		}
		if item.Why != "" {
			page.Others = append(page.Others, item)
			continue
		}
		item.Leave = togetherPath + "?" + url.Values{"rule": {rule}, "action": {action}, "not": append(slices.Clone(not), o.OperationID)}.Encode()
		page.Items = append(page.Items, item)
		page.Reason = page.Reason || o.Asked.ReasonRequired
	}
	page.Sums = sumOf(page.Items)
	return page, nil
}

func sumOf(items []views.TogetherItem) []views.Sum {
	amounts := map[string]int64{}
	for _, i := range items {
		amounts[i.Operation.Terms.Currency] += i.Operation.Terms.Amount
	}
	return sums(amounts)
}

// approveTogether decides each operation of the form by itself: the store says
// no to one, and the others are approved.
func (s *Server) approveTogether(c echo.Context, p ledger.PersonRecord) error {
	form := c.Request().PostForm
	ids, prints, versions := form["operation_id"], form["fingerprint"], form["version"]
	why := typed(c, "reason")
	if problem := checkText("A reason", why, maxReason, false); problem != "" {
		return unclear{http.StatusUnprocessableEntity, problem}
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) == 0 || len(ids) > ledger.MostTogether || len(distinct) != len(ids) || len(prints) != len(ids) || len(versions) != len(ids) {
		return unclear{http.StatusUnprocessableEntity, "One form approves 1 to 25 operations, each once. Open the table again and decide there."}
	}
	var asked []ledger.Operation
	for _, id := range ids {
		o, err := s.Store.Operation(c.Request().Context(), p.TenantID, id)
		if err != nil {
			return err
		}
		if asked = append(asked, o); o.PolicyRow != asked[0].PolicyRow || o.ActionType != asked[0].ActionType {
			return unclear{http.StatusUnprocessableEntity, "One form approves operations of one rule and one action type. Nothing was approved."}
		}
	}
	page := views.TogetherDone{}
	for i, o := range asked {
		version, _ := strconv.ParseInt(versions[i], 10, 64) // what is no number was never on a screen
		after, why, err := s.approveOne(c, p, o, store.Decision{Person: p, Reason: why, Together: len(ids),
			Seen: store.Seen{Fingerprint: prints[i], Version: version}})
		if err != nil {
			return err
		}
		if item := (views.TogetherItem{Operation: s.veil(p, after), Why: why}); why == "" {
			page.Approved = append(page.Approved, item)
		} else {
			page.Refused = append(page.Refused, item)
		}
	}
	var err error
	if page.Frame, err = s.frame(c, views.AtApprovals, p); err != nil {
		return err
	}
	page.Sums = sumOf(page.Approved)
	status := http.StatusOK
	if len(page.Approved) == 0 {
		status = http.StatusConflict
	}
	return render(c, status, views.TogetherResult(page))
}

// approveOne says why an operation was not approved, where it was not.
func (s *Server) approveOne(c echo.Context, p ledger.PersonRecord, o ledger.Operation, d store.Decision) (after ledger.Operation, why string, err error) {
	after, err = s.Store.Approve(c.Request().Context(), p.TenantID, o.OperationID, d)
	switch {
	case err == nil:
		return after, "", nil
	case errors.Is(err, store.ErrStale):
		own, err := s.decidedSince(c, p, o, d.Seen, "approve")
		if err != nil || own && d.Seen.Fingerprint == o.Fingerprint {
			return o, "", err
		}
		return o, "It changed while you were reading.", nil
	case errors.Is(err, store.ErrForbidden), errors.Is(err, ledger.ErrNotAllowed):
		return o, sentence(err), nil
	}
	return o, "", err
}

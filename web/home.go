package web

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// home is what needs this person now.
func (s *Server) home(c echo.Context, p ledger.PersonRecord) error {
	page, err := s.homePage(c, p, views.FormState{})
	if err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Home(page))
}

func (s *Server) homePage(c echo.Context, p ledger.PersonRecord, form views.FormState) (views.HomePage, error) {
	ctx := c.Request().Context()
	f, err := s.frame(c, views.AtHome, p)
	if err != nil {
		return views.HomePage{}, err
	}
	page := views.HomePage{Frame: f}
	needs, err := s.waitingIn(ctx, p, ledger.AwaitingApproval, ledger.UnknownHold)
	if err != nil {
		return page, err
	}
	if page.Items, page.Others, err = s.forMe(ctx, p, needs); err != nil {
		return page, err
	}
	owed, err := s.owedNeeds(ctx, p)
	if err != nil {
		return page, err
	}
	if mayAct, _ := ledger.MayAct(p.Email, p.Roles); mayAct {
		page.Items = append(page.Items, owed...)
	} else {
		page.Others = append(page.Others, owed...)
	}
	if n := f.Counts.Statements; n > 0 {
		open := views.Need{Statements: n, Sentence: "Somebody paid outside holdfast, a statement lacks what we confirmed, or an amount differs: each has to be matched or set aside."}
		if mayAct, _ := ledger.MayAct(p.Email, p.Roles); mayAct {
			page.Items = append(page.Items, open)
		} else {
			page.Others = append(page.Others, open)
		}
	}
	mine, others, err := s.exceptionNeeds(ctx, p, form)
	if err != nil {
		return page, err
	}
	page.Items, page.Others = append(page.Items, mine...), append(page.Others, others...)
	urgent(page.Items, f.Money, f.Now)
	urgent(page.Others, f.Money, f.Now)
	if page.Next, err = s.railsNext(ctx, p.TenantID, f.Now); err != nil {
		return page, err
	}
	return page, s.firstDay(ctx, p, &page)
}

// owedNeeds are the refunds that are still owed, as rows.
func (s *Server) owedNeeds(ctx context.Context, p ledger.PersonRecord) ([]views.Need, error) {
	owed, err := s.Store.RefundsOwed(ctx, p.TenantID)
	if err != nil {
		return nil, err
	}
	var needs []views.Need
	for _, r := range owed {
		if r.Open > 0 {
			n := views.Need{Refund: &r, Since: r.OpenedAt, Sentence: "Money was taken that should not have been. It is owed until it is settled."}
			if r.Direction == "owed_to_us" {
				n.Sentence = "Money went out that should not have. It is owed to us until it is settled."
			}
			if o, err := s.Store.Operation(ctx, p.TenantID, r.OperationID); err == nil {
				n.Operation = s.veil(p, o)
			}
			needs = append(needs, n)
		}
	}
	return needs, nil
}

// firstDay fills in the cards that tick themselves, until all are ticked.
func (s *Server) firstDay(ctx context.Context, p ledger.PersonRecord, page *views.HomePage) error {
	any, err := s.Store.Operations(ctx, p.TenantID, store.Filter{Limit: 1})
	if err != nil {
		return err
	}
	people, err := s.countPeople(ctx, p.TenantID)
	if err != nil {
		return err
	}
	page.NothingEver = len(any.Items) == 0
	if !page.NothingEver && people > 1 {
		return nil
	}
	page.Cards = []views.Card{
		{Title: "Send a first operation", Text: "Let an agent, or the command above, submit one. It stands here when it needs you.", URL: "/operations", Done: !page.NothingEver},
		{Title: "Add a second person", Text: views.Command(s.Folder, "user create") + " --tenant " + p.TenantID + " --email … --role approver. Until then you may decide alone on what your agents ask for, stamped Self-approved.", Done: people > 1},
	}
	return nil
}

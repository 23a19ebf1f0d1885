package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"holdfast/store/ledger"
	"holdfast/views"
)

// approvals lists what people must decide.
func (s *Server) approvals(c echo.Context, p ledger.PersonRecord) error {
	f, err := s.frame(c, views.AtApprovals, p)
	if err != nil {
		return err
	}
	needs, err := s.waitingIn(c.Request().Context(), p, ledger.AwaitingApproval)
	if err != nil {
		return err
	}
	urgent(needs, f.Money, f.Now)
	return render(c, http.StatusOK, views.Approvals(views.ApprovalsPage{Frame: f, Items: needs, Groups: s.groups(p, needs)}))
}

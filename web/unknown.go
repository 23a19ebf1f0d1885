package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"holdfast/store/ledger"
	"holdfast/views"
)

// unknown lists what is held and what is being looked up.
func (s *Server) unknown(c echo.Context, p ledger.PersonRecord) error {
	f, err := s.frame(c, views.AtUnknown, p)
	if err != nil {
		return err
	}
	needs, err := s.waitingIn(c.Request().Context(), p, ledger.UnknownHold, ledger.Unknown)
	if err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Unknown(views.UnknownPage{Frame: f, Items: needs}))
}

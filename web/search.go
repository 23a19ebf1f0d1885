package web

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"holdfast/store/ledger"
	"holdfast/views"
)

// search answers GET /search?q=: whatever has that name. The only one opens at
// once.
func (s *Server) search(c echo.Context, p ledger.PersonRecord) error {
	ctx, name := c.Request().Context(), asked(c, "q")
	f, err := s.frame(c, "", p)
	if err != nil {
		return err
	}
	page := views.SearchPage{Frame: f, Name: name}
	page.Frame.Query = name
	found, err := s.Store.Search(ctx, p.TenantID, name)
	if err != nil {
		return err
	}
	page.More = found.More
	for _, o := range found.Operations {
		if !s.keepsFrom(p, o, name) {
			page.Operations = append(page.Operations, s.veil(p, o))
		}
	}
	for _, r := range found.Refunds {
		hit, err := s.refundHit(ctx, p, r, name)
		if err != nil {
			return err
		}
		if hit != nil {
			page.Refunds = append(page.Refunds, *hit)
		}
	}
	for _, l := range found.Lines {
		about, err := s.Store.OperationOfLine(ctx, l)
		if err != nil {
			return err
		}
		page.Lines = append(page.Lines, views.LineHit{Line: l, OperationID: about})
	}
	if only := page.Only(); only != "" {
		return c.Redirect(http.StatusSeeOther, only)
	}
	return render(c, http.StatusOK, views.Search(page))
}

// refundHit is an entry as this person may find it; nil: they may not.
func (s *Server) refundHit(ctx context.Context, p ledger.PersonRecord, r ledger.RefundOwed, name string) (*views.RefundHit, error) {
	hit := views.RefundHit{Entry: r}
	if r.OperationID == "" {
		return &hit, nil
	}
	o, err := s.Store.Operation(ctx, p.TenantID, r.OperationID)
	if err != nil || r.ID != name && r.ReceiptID != name && s.keepsFrom(p, o, name) {
		return nil, err
	}
	hit.From = s.veil(p, o)
	return &hit, nil
}

package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// sealDays is how many days' heads the page lists.
const sealDays = 14

// seal is how far the log is signed. A head that does not open is for Verify chain
// to tell about: the entries are shown all the same.
func (s *Server) seal(ctx context.Context) (seal views.Seal, err error) {
	if seal.Key, err = s.Store.LogKey(ctx); errors.Is(err, store.ErrNotFound) {
		return seal, nil
	}
	if err != nil {
		return seal, err
	}
	if seal.Days, err = s.Store.DailyHeads(ctx, sealDays); err != nil {
		s.Log.Error("heads of the log", "error", err)
		seal.Unread = true
	}
	seal.Unsealed, err = s.Store.Unsealed(ctx)
	return seal, err
}

// verifyLog walks over the whole log while somebody waits. It decides nothing; one
// walk at a time is enough for everybody.
func (s *Server) verifyLog(c echo.Context, p ledger.PersonRecord) error {
	f, err := s.frame(c, views.AtAudit, p)
	if err != nil {
		return err
	}
	if !s.verifying.TryLock() {
		return render(c, http.StatusConflict, views.Message(views.Unclear(f, "Somebody verifies the log at this moment. Try again when that is over.", "/audit")))
	}
	defer s.verifying.Unlock()
	ctx := c.Request().Context()
	r, err := s.Store.CheckLog(ctx, nil, nil)
	if err != nil {
		return err
	}
	if r.Fault != nil {
		s.Log.Error("the action log is not what was sealed", "entry", r.Fault.Seq, "sentence", r.Fault.Sentence)
		return render(c, http.StatusOK, views.Message(views.LogBroken(f, r.Fault.Sentence)))
	}
	days, err := s.Store.DailyHeads(ctx, 2)
	if err != nil {
		return err
	}
	var before *ledger.LogHead
	if len(days) == 2 {
		before = &days[1]
	}
	return render(c, http.StatusOK, views.Message(views.LogChecked(f, r.Entries, r.FirstAt, r.Last, before, r.Heads)))
}

// logHead is the last signed head as a file, to be kept where nobody who can write
// the database can write.
func (s *Server) logHead(c echo.Context, _ ledger.PersonRecord) error {
	head, err := s.Store.LogHead(c.Request().Context())
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Disposition", `attachment; filename="holdfast-head.txt"`)
	return c.String(http.StatusOK, head.Note)
}

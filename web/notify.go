package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"holdfast/reconcile"
	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// wording is how notices read: in the words of the pages.
var wording = reconcile.Wording{Notice: views.Notice, Together: views.NoticesTogether}

// channels are a tenant's ways to tell people, with how each fared last.
func (s *Server) channels(ctx context.Context, p ledger.PersonRecord) (all views.Channels, err error) {
	all.Test = mayTestChannels(p)
	t := s.Config().Tenants[p.TenantID]
	if t == nil || t.Notify == nil {
		return all, nil
	}
	states, err := s.Store.ChannelStates(ctx, p.TenantID)
	if err != nil {
		return all, err
	}
	for _, c := range t.Notify.Channels {
		all.List = append(all.List, views.Channel{Name: c.Name, Kind: c.Kind, Topics: c.Topics, State: states[c.Name]})
	}
	all.Quiet = t.Notify.When
	if t.Notify.Daily >= 0 {
		all.Daily = fmt.Sprintf("%02d:%02d %s", t.Notify.Daily/60, t.Notify.Daily%60, t.Notify.Zone)
	}
	return all, nil
}

func mayTestChannels(p ledger.PersonRecord) views.Decision {
	d := views.Decision{Act: "test-notice"}
	d.Allowed, d.Why = ledger.MayTestChannels(p)
	return d
}

// testNotice sends one harmless notice over every channel.
func (s *Server) testNotice(c echo.Context, p ledger.PersonRecord) error {
	f, err := s.frame(c, views.AtSettings, p)
	if err != nil {
		return err
	}
	if d := mayTestChannels(p); !d.Allowed {
		return render(c, http.StatusForbidden, views.Message(views.Forbidden(f, d.Why)))
	}
	err = s.Scheduler.TestChannels(c.Request().Context(), p)
	if errors.Is(err, store.ErrNotFound) {
		return render(c, http.StatusUnprocessableEntity, views.Message(views.Unclear(f, "No channel is configured. Write notify into the configuration first.", "/settings")))
	}
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/settings#channels")
}

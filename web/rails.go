package web

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/dispatch"
	"holdfast/dispatch/rail"
	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// rails shows where operations go, the worst first.
func (s *Server) rails(c echo.Context, p ledger.PersonRecord) error {
	return s.drawRails(c, p, http.StatusOK, views.FormState{})
}

func (s *Server) drawRails(c echo.Context, p ledger.PersonRecord, status int, form views.FormState) error {
	f, err := s.frame(c, views.AtRails, p)
	if err != nil {
		return err
	}
	page := views.RailsPage{Frame: f, Pause: mayPauseRails(p), Form: form, Folder: s.Folder}
	if page.Items, err = s.railCards(c.Request().Context(), p.TenantID, f.Now); err != nil {
		return err
	}
	return render(c, status, views.Rails(page))
}

func mayPauseRails(p ledger.PersonRecord) views.Decision {
	d := views.Decision{Act: "pause-rail", ReasonRequired: true}
	d.Allowed, d.Why = ledger.MayAct(p.Email, p.Roles)
	return d
}

// railCards puts together what is configured, what waits, and what people and
// tests say. A rail that is gone stays while anything of it is open.
func (s *Server) railCards(ctx context.Context, tenant string, now int64) ([]views.RailCard, error) {
	pauses, err := s.pausesNamed(ctx, tenant)
	if err != nil {
		return nil, err
	}
	tests, err := s.Store.LastRailTests(ctx, tenant)
	if err != nil {
		return nil, err
	}
	traffic, err := s.Store.RailTraffic(ctx, tenant)
	if err != nil {
		return nil, err
	}
	cards := map[string]*views.RailCard{}
	if t := s.Config().Tenants[tenant]; t != nil {
		for name := range t.Rails {
			cards[name] = configuredRail(t, name, now)
		}
	}
	of := func(name string) *views.RailCard {
		if cards[name] == nil {
			cards[name] = &views.RailCard{Promise: ledger.Rail{Name: name}, Gone: true}
		}
		return cards[name]
	}
	for _, p := range pauses {
		of(p.Rail).Pause = p
	}
	for name, t := range traffic {
		if cards[name] != nil || t.Waiting+t.Sending+t.Unknown > 0 {
			of(name).Traffic = *t
		}
	}
	for _, t := range tests {
		if cards[t.Rail] != nil {
			cards[t.Rail].Test = &t
		}
	}
	var all []views.RailCard
	for _, name := range slices.Sorted(maps.Keys(cards)) {
		all = append(all, *cards[name])
	}
	slices.SortStableFunc(all, func(a, b views.RailCard) int {
		return cmp.Or(cmp.Compare(b.Trouble(), a.Trouble()), cmp.Compare(a.Traffic.OldestUnknownAt, b.Traffic.OldestUnknownAt))
	})
	return all, nil
}

func configuredRail(t *dispatch.Tenant, name string, now int64) *views.RailCard {
	r, given := t.Rails[name], t.RailConfigs[name]
	card := &views.RailCard{Promise: t.Rulebook.Rails[name], RestsUntil: restsUntil(r, now),
		Key: goesInto(given.Dedupe.Header, given.Dedupe.Body), Stamp: goesInto(given.Stamp.Header, given.Stamp.Body)}
	for _, action := range slices.Sorted(maps.Keys(t.Rulebook.Actions)) {
		if route := t.Rulebook.Routes[action]; route.Name == name {
			card.Types = append(card.Types, views.RailType{Name: action, Promise: route})
		}
	}
	return card
}

// restsUntil is when the rest ends that the breaker of this process gives a rail;
// 0: there is none.
func restsUntil(r *rail.Rail, now int64) int64 {
	if r == nil {
		return 0
	}
	if until := r.Breaker().OpenUntil(time.UnixMilli(now)); !until.IsZero() {
		return until.UnixMilli()
	}
	return 0
}

func goesInto(header, body string) string {
	switch {
	case header != "":
		return "header " + header
	case body != "":
		return "body " + body
	}
	return ""
}

// pausesNamed are a tenant's pauses with the names of those who made them.
func (s *Server) pausesNamed(ctx context.Context, tenant string) ([]ledger.Pause, error) {
	pauses, err := s.Store.Pauses(ctx, tenant)
	for i, p := range pauses {
		if pauses[i].Person, err = s.nameOf(ctx, tenant, p.Person); err != nil {
			return nil, err
		}
	}
	return pauses, err
}

func (s *Server) pauseNamed(ctx context.Context, tenant, rail string) (ledger.Pause, error) {
	pause, err := s.Store.Pause(ctx, tenant, rail)
	if err != nil || pause.At == 0 {
		return pause, err
	}
	pause.Person, err = s.nameOf(ctx, tenant, pause.Person)
	return pause, err
}

// railsNext tells the home page which rails send nothing now, and until when.
func (s *Server) railsNext(ctx context.Context, tenant string, now int64) ([]string, error) {
	pauses, err := s.pausesNamed(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var all []string
	paused := map[string]bool{}
	for _, p := range pauses {
		paused[p.Rail] = true
		all = append(all, "rail "+p.Rail+" is paused by "+p.Person)
	}
	for _, name := range s.resting(tenant, now) {
		if until := restsUntil(s.Config().Tenants[tenant].Rails[name], now); !paused[name] {
			all = append(all, "rail "+name+" re-opens at "+time.UnixMilli(until).UTC().Format("15:04:05")+" UTC")
		}
	}
	return all, nil
}

// resting names the rails of a tenant that the breakers of this process give a
// rest now.
func (s *Server) resting(tenant string, now int64) (names []string) {
	t := s.Config().Tenants[tenant]
	if t == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(t.Rails)) {
		if restsUntil(t.Rails[name], now) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// changeRail takes a person's pause or resumption from the form to the store,
// which has the last word.
func (s *Server) changeRail(c echo.Context, p ledger.PersonRecord, act string, change func(context.Context, string, string, store.Decision) error) error {
	ctx := c.Request().Context()
	f, err := s.frame(c, views.AtRails, p)
	if err != nil {
		return err
	}
	name := c.Request().PostForm.Get("rail") // whole, also the space at its ends
	pause, err := s.Store.Pause(ctx, p.TenantID, name)
	if err != nil {
		return err
	}
	if _, known := s.Store.Rulebook(p.TenantID).Rails[name]; !known && pause.At == 0 {
		return render(c, http.StatusNotFound, views.Message(views.NoRail(f, cut(name, maxID))))
	}
	if d := mayPauseRails(p); !d.Allowed {
		return render(c, http.StatusForbidden, views.Message(views.Forbidden(f, d.Why)))
	}
	seen, err := strconv.ParseInt(typed(c, "version"), 10, 64)
	if err != nil || seen < 0 {
		return unclear{http.StatusUnprocessableEntity, "The form does not say what you saw. Open the rails again and decide there."}
	}
	why := typed(c, "reason")
	problem := checkText("A reason", why, maxReason, true)
	if problem == "" {
		switch err := change(ctx, p.TenantID, name, store.Decision{Person: p, Reason: why, Seen: store.Seen{Version: seen}}); {
		case err == nil:
			return c.Redirect(http.StatusSeeOther, "/rails")
		case errors.Is(err, store.ErrStale):
			return s.railChanged(c, f, p, name, act)
		case errors.Is(err, store.ErrForbidden):
			problem = sentence(err)
		default:
			return err
		}
	}
	form := views.FormState{Act: act, Problem: problem, Values: map[string]string{"rail": name, "reason": cut(why, 4*maxReason)}}
	return s.drawRails(c, p, http.StatusUnprocessableEntity, form)
}

// railChanged says who was first, from the log. A button that was pressed twice
// did its work once, and that was it.
func (s *Server) railChanged(c echo.Context, f views.Frame, p ledger.PersonRecord, name, act string) error {
	last, err := s.Store.LastRailChange(c.Request().Context(), p.TenantID, name)
	if err != nil {
		return err
	}
	if last.Event+"-rail" == act && last.Actor == p.Email {
		return c.Redirect(http.StatusSeeOther, "/rails")
	}
	why := ownWords(last)
	if last.Actor, err = s.nameOf(c.Request().Context(), p.TenantID, last.Actor); err != nil {
		return err
	}
	return render(c, http.StatusConflict, views.Message(views.RailChanged(f, name, last, why)))
}

func (s *Server) pauseRail(c echo.Context, p ledger.PersonRecord) error {
	return s.changeRail(c, p, "pause-rail", s.Store.PauseRail)
}

func (s *Server) resumeRail(c echo.Context, p ledger.PersonRecord) error {
	return s.changeRail(c, p, "resume-rail", s.Store.ResumeRail)
}

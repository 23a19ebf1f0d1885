package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store/ledger"
)

// preference is what RFC 7240's Prefer header asks for.
type preference struct {
	wait  time.Duration
	async bool
}

const longestWait = 60 * time.Second

// preferences reads the header. What it does not understand is ignored, as the
// RFC says, and so are parameters and what is said a second time; of a longer
// wait, what is allowed is granted.
func preferences(r *http.Request) preference {
	var p preference
	for _, item := range strings.Split(strings.Join(r.Header.Values("Prefer"), ","), ",") {
		item, _, _ = strings.Cut(item, ";")
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "wait":
			seconds, err := strconv.Atoi(strings.Trim(strings.TrimSpace(value), `"`))
			if err == nil && seconds > 0 && p.wait == 0 {
				p.wait = min(time.Duration(min(seconds, 3600))*time.Second, longestWait)
			}
		case "respond-async":
			p.async = true
		}
	}
	return p
}

// applied says in the answer which preferences were honoured.
func (p preference) applied(c echo.Context) {
	var used []string
	if p.wait > 0 {
		used = append(used, "wait="+strconv.Itoa(int(p.wait/time.Second)))
	}
	if p.async {
		used = append(used, "respond-async")
	}
	if len(used) > 0 {
		c.Response().Header().Set("Preference-Applied", strings.Join(used, ", "))
	}
}

// waiting lets a shutdown end everybody's wait at once.
type waiting struct {
	once sync.Once
	mu   sync.Mutex
	c    chan struct{}
}

func (w *waiting) ended() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.c == nil {
		w.c = make(chan struct{})
	}
	return w.c
}

func (w *waiting) stop() { w.once.Do(func() { close(w.ended()) }) }

// awaitEnd waits until the operation, or the one that it is an alias of, has
// ended, and returns both as they then stand.
func (s *Server) awaitEnd(ctx context.Context, o ledger.Operation, wait time.Duration) (ledger.Operation, *ledger.Operation, error) {
	original, err := s.Store.Original(ctx, o)
	if err != nil || wait <= 0 || ended(o, original) {
		return o, original, err
	}
	watched := o.OperationID
	if original != nil {
		watched = original.OperationID
	}
	changed, end := s.Store.Watch(o.TenantID, watched)
	defer end()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		// Read after the watch began: a change in between is seen here.
		if o, err = s.Store.Operation(ctx, o.TenantID, o.OperationID); err != nil {
			return o, nil, err
		}
		if original, err = s.Store.Original(ctx, o); err != nil || ended(o, original) {
			return o, original, err
		}
		select {
		case <-changed:
		case <-timer.C:
			return o, original, nil
		case <-s.asking.ended():
			return o, original, nil
		case <-ctx.Done():
			return o, original, ctx.Err()
		}
	}
}

func ended(o ledger.Operation, original *ledger.Operation) bool {
	if original != nil {
		return original.Status.Final()
	}
	return o.Status.Final()
}

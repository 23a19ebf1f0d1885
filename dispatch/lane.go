package dispatch

import (
	"sync"
	"time"

	"holdfast/dispatch/rail"
)

type laneKey struct{ tenant, rail string }

// lane counts what is on the way to one rail, and whether the rail is worth
// trying. Waiting for either is no attempt.
type lane struct {
	mu       sync.Mutex
	inUse    int
	failures int       // in a row: while there are any, one goes at a time
	rest     time.Time // until then nothing is claimed
	quota    quota     // of retries
	pace     pace      // of all requests
}

// room is how many more may be claimed now, and how many of them may be retries.
// An open breaker has none; after it, one goes first to see.
func (l *lane) room(r *rail.Rail, now time.Time) (room, retries int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limits := r.Promise().Limits
	limit := limits.Concurrency
	if l.failures > 0 {
		limit = 1
	}
	if now.Before(l.rest) || now.Before(r.Breaker().OpenUntil(now)) {
		return 0, 0
	}
	room = min(max(0, limit-l.inUse), l.pace.room(limits.PerSecond, now))
	return room, min(room, l.quota.retries(limits.Quota, now))
}

// enter takes a place for a claim, and its part of the quota if it is a retry.
func (l *lane) enter(retry bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inUse++
	l.pace.begin()
	if retry {
		l.quota.retry()
	}
}

func (l *lane) leave() { l.mu.Lock(); defer l.mu.Unlock(); l.inUse-- }

// unsent gives back what a retry took that did not become an attempt.
func (l *lane) unsent(retry bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if retry {
		l.quota.unretry()
	}
}

// worked and failed tell the rail's breaker how it does.
func (l *lane) worked(r *rail.Rail) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures, l.rest = 0, time.Time{}
	r.Breaker().Worked()
}

// confirmed fills the quota of retries again.
func (l *lane) confirmed(retried bool) { l.mu.Lock(); defer l.mu.Unlock(); l.quota.worked(retried) }

// pause is the rail's back-off where it is not reached, or what the provider
// asked for. It is not the operation's, which keeps its place among those that
// wait.
func (l *lane) pause(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.rest) {
		l.rest = until
	}
}

func (l *lane) failed(r *rail.Rail, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures++
	r.Breaker().Failed(now)
	return l.failures
}

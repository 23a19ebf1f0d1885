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
	failures int // in a row: while there are any, one goes at a time
	rest     time.Time
}

// room is how many more may be claimed now. An open breaker has none; after it,
// one goes first to see.
func (l *lane) room(r *rail.Rail, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := r.Promise().Limits.Concurrency
	if l.failures > 0 {
		limit = 1
	}
	if now.Before(l.rest) || now.Before(r.Breaker().OpenUntil(now)) {
		return 0
	}
	return max(0, limit-l.inUse)
}

func (l *lane) enter() { l.mu.Lock(); defer l.mu.Unlock(); l.inUse++ }
func (l *lane) leave() { l.mu.Lock(); defer l.mu.Unlock(); l.inUse-- }

// worked and failed tell the rail's breaker how it does.
func (l *lane) worked(r *rail.Rail) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures, l.rest = 0, time.Time{}
	r.Breaker().Worked()
}

// pause is the rail's back-off where it is not reached. It is not the
// operation's, which keeps its place among those that wait.
func (l *lane) pause(until time.Time) { l.mu.Lock(); defer l.mu.Unlock(); l.rest = until }

func (l *lane) failed(r *rail.Rail, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures++
	r.Breaker().Failed(now)
	return l.failures
}

package rail

import (
	"sync"
	"time"
)

// Breaker gives a rail a rest after failures in a row. Waiting for it is no
// attempt: nothing was claimed, marked or sent. After the rest one goes first to
// see: the dispatcher sends one at a time while there are failures.
type Breaker struct {
	limit   int
	openFor time.Duration

	mu       sync.Mutex
	failures int
	until    time.Time // no request before
}

// NewBreaker opens for that long after so many failures in a row.
func NewBreaker(failures int, openFor time.Duration) *Breaker {
	return &Breaker{limit: max(failures, 1), openFor: openFor}
}

// Worked reports that the rail answered: it is up, whatever it said.
func (b *Breaker) Worked() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.until = 0, time.Time{}
}

// Failed reports that the rail could not be reached or was not well.
func (b *Breaker) Failed(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = min(b.failures+1, b.limit)
	if b.failures == b.limit {
		b.until = now.Add(b.openFor)
	}
}

// OpenUntil is when the rest ends; the zero time when there is none.
func (b *Breaker) OpenUntil(now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < b.limit || !now.Before(b.until) {
		return time.Time{}
	}
	return b.until
}

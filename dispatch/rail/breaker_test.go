package rail

import (
	"testing"
	"time"
)

func TestBackoffDrawsFromTheWholeRange(t *testing.T) {
	const shortest, longest = 500 * time.Millisecond, time.Minute
	none := func(int64) int64 { return 0 }
	most := func(n int64) int64 { return n - 1 }
	for attempt, ceiling := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second, 7: time.Minute, 8: time.Minute, 1000: time.Minute, -1: time.Second,
	} {
		if got := Backoff(shortest, longest, attempt, none); got != shortest {
			t.Errorf("attempt %d waits at least %v", attempt, got)
		}
		if got := Backoff(shortest, longest, attempt, most); got != ceiling {
			t.Errorf("attempt %d waits at most %v, want %v", attempt, got, ceiling)
		}
	}
	if got := Backoff(time.Minute, time.Minute, 3, most); got != time.Minute {
		t.Errorf("a fixed wait is %v", got)
	}
}

func TestBreakerOpensAfterFailuresInARow(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	b := NewBreaker(3, 30*time.Second)
	openUntil := func(second int, want time.Time) {
		t.Helper()
		if got := b.OpenUntil(at(second)); got != want {
			t.Fatalf("at %d s it is open until %v, not %v", second, got, want)
		}
	}
	b.Failed(at(0))
	b.Failed(at(0))
	openUntil(0, time.Time{})
	b.Worked() // failures must be in a row
	b.Failed(at(1))
	b.Failed(at(1))
	openUntil(1, time.Time{})
	b.Failed(at(1))
	openUntil(1, at(31))
	openUntil(30, at(31))
	openUntil(31, time.Time{}) // the rest is over
	b.Failed(at(32))           // and the first to go finds it as it was
	openUntil(33, at(62))
	b.Worked()
	openUntil(33, time.Time{})
}

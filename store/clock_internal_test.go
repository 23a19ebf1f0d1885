package store

import (
	"testing"
	"time"
	"unsafe"
)

// A wall clock that somebody sets moves no lease, forwards or backwards: the
// distance comes from the monotonic clock.
func TestTheStoresClockFollowsTheMonotonicOne(t *testing.T) {
	start := time.Now()
	reading := start
	now := steadyClock(func() time.Time { return reading })
	for _, step := range []time.Duration{2 * time.Hour, -2 * time.Hour, 25 * time.Second, -24 * time.Hour} {
		reading = setClock(start.Add(time.Minute), step)
		if got := now().Sub(start.Round(0)); got != time.Minute {
			t.Errorf("after a step of %s a minute takes %s", step, got)
		}
		if got := now().UnixMilli() - start.UnixMilli(); got != time.Minute.Milliseconds() {
			t.Errorf("after a step of %s a minute takes %d ms", step, got)
		}
	}
}

// setClock is a reading of the clocks after somebody set the wall clock: the
// monotonic one did not move. No function of time builds one, so the seconds of
// the wall clock are moved where time.Time keeps them.
func setClock(t time.Time, by time.Duration) time.Time {
	moved := t
	(*struct{ wall uint64 })(unsafe.Pointer(&moved)).wall += uint64(int64(by/time.Second)) << 30
	if moved.Sub(t) != 0 || moved.Round(0).Sub(t.Round(0)) != by {
		panic("time.Time keeps its clocks elsewhere now")
	}
	return moved
}

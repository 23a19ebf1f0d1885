package dispatch

import (
	"testing"
	"time"

	"holdfast/dispatch/rail"
)

func TestAFailingRailIsTriedByOneAtATime(t *testing.T) {
	failures := 2
	now := newClock()
	r, err := rail.New("card", rail.Config{Adapter: "sandbox", Breaker: rail.BreakerConfig{Failures: &failures, OpenFor: rail.Lasting(30 * time.Second)}}, now.Now)
	if err != nil {
		t.Fatal(err)
	}
	l := &lane{}
	room := func(want int) {
		t.Helper()
		if got := l.room(r, now.Now()); got != want {
			t.Fatalf("there is room for %d, not %d", got, want)
		}
	}
	room(8)
	l.enter()
	room(7)
	l.leave()
	l.failed(r, now.Now())
	room(1)
	l.enter()
	room(0) // the one that goes first to see
	l.leave()
	l.failed(r, now.Now())
	room(0) // the breaker is open
	now.pass(31 * time.Second)
	room(1)
	l.worked(r)
	room(8)
}

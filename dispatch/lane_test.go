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
		if got, _ := l.room(r, now.Now()); got != want {
			t.Fatalf("there is room for %d, not %d", got, want)
		}
	}
	room(8)
	l.enter(false)
	room(7)
	l.leave()
	l.failed(r, now.Now())
	room(1)
	l.enter(false)
	room(0) // the one that goes first to see
	l.leave()
	l.failed(r, now.Now())
	room(0) // the breaker is open
	now.pass(31 * time.Second)
	room(1)
	l.worked(r)
	room(8)
}

// A hundred retries in a row and no more, whatever waits; what was not sent yet
// still goes, and what works fills the quota again.
func TestRetriesAreBoundedAndFirstSendsAreNot(t *testing.T) {
	now := newClock()
	r, err := rail.New("card", rail.Config{Adapter: "sandbox"}, now.Now)
	if err != nil {
		t.Fatal(err)
	}
	l := &lane{}
	wants := func(claim string, retries int) {
		t.Helper()
		room, got := l.room(r, now.Now())
		if room != 8 || got != retries {
			t.Fatalf("%s: there is room for %d and %d retries, want 8 and %d", claim, room, got, retries)
		}
	}
	retry := func(times int) {
		for range times {
			l.enter(true)
			l.leave()
		}
	}
	wants("at first", 8)
	retry(98)
	wants("after 98 retries", 2)
	retry(2)
	wants("after 100", 0)
	l.unsent(true)
	wants("one was not sent after all", 1)
	l.confirmed(true)
	wants("a retry worked", 2)
	for range 5 {
		l.confirmed(false)
	}
	wants("five others worked", 3)
	for range 1000 {
		l.confirmed(false)
	}
	wants("it never holds more than its quota", 8)
	retry(100)
	wants("and never less than nothing", 0)
	now.pass(37 * time.Second)
	wants("one comes back in that time by itself", 1)
	now.pass(time.Hour)
	wants("and all of it in an hour", 8)
}

func TestProviderThatAsksForItIsLeftAlone(t *testing.T) {
	now := newClock()
	r, err := rail.New("card", rail.Config{Adapter: "sandbox"}, now.Now)
	if err != nil {
		t.Fatal(err)
	}
	l := &lane{}
	l.pause(now.Now().Add(time.Minute))
	l.pause(time.Time{}) // an answer that asks for nothing takes nothing back
	if room, _ := l.room(r, now.Now()); room != 0 {
		t.Error("it is not left alone")
	}
	now.pass(time.Minute)
	if room, _ := l.room(r, now.Now()); room != 8 {
		t.Error("it is left alone for longer than it asked")
	}
}

func TestNoMoreRequestsBeginInASecondThanTheRailTakes(t *testing.T) {
	now := newClock()
	r, err := rail.New("card", rail.Config{Adapter: "sandbox", Limits: rail.Limits{PerSecond: 3}}, now.Now)
	if err != nil {
		t.Fatal(err)
	}
	l := &lane{}
	began := 0
	for range 100 { // ten seconds, looked at ten times each
		for room, _ := l.room(r, now.Now()); room > 0; room, _ = l.room(r, now.Now()) {
			l.enter(false)
			l.leave()
			began++
		}
		now.pass(100 * time.Millisecond)
	}
	if began < 30 || began > 33 {
		t.Errorf("%d began in ten seconds of three each", began)
	}
}

package ledger

import (
	"slices"
	"time"
)

// RailTraffic is what a rail has to do, and how its provider answered lately.
type RailTraffic struct {
	Waiting         int   // allowed, and not sent yet
	OldestWaitingAt int64 // when the oldest of them came
	Sending         int
	Held            int // for people, before anything was sent
	Unknown         int // sent, and it may or may not have happened
	OldestUnknownAt int64
	UnknownAges     [len(AgeSteps) + 1]int // how many of the unknown are younger than each step; the last: older than all

	// Of a sample: the newest operations, at most a day old.
	Answers []AnsweredIn
	Cleared []int64 // from unknown to an end, milliseconds
}

// AgeSteps part the unknown by age: what just happened, what a look-up clears,
// what needs somebody today, and what was forgotten.
var AgeSteps = [...]time.Duration{5 * time.Minute, time.Hour, 24 * time.Hour}

// AnsweredIn is how long a provider took to answer one attempt.
type AnsweredIn struct {
	At   int64 // when it was marked
	Took int64 // milliseconds
}

// Percentile is the value that so many of a hundred do not exceed; 0 of none.
func Percentile(values []int64, of int) int64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*of+99)/100-1)]
}

package ledger

import (
	"strings"
	"time"
)

// Numbers are what is open in the ledger of one tenant at one moment: how far it
// may be believed, counted.
type Numbers struct {
	TenantID string
	At       int64
	Open     []OpenCount
	Owed     []OwedCount
}

// OpenCount is how many operations that have not ended stand alike.
type OpenCount struct {
	Rail       string
	ActionType string
	Status     Status
	Reason     Reason
	Sent       bool // or restored from a backup: it may have happened
	N          int
	Since      int64 // when the oldest of them became unknown, or changed last
	CreatedAt  int64 // when the oldest of them came
}

// Unclear reports whether these may or may not have happened. What is held
// before anything was sent has not.
func (c OpenCount) Unclear() bool {
	return c.Status == Unknown || c.Status == UnknownHold && c.Sent
}

// OwedCount is what is owed in one currency and one direction on a rail, with
// how much of it is past its day.
type OwedCount struct {
	Rail      string
	Currency  string
	Direction string
	N         int
	Amount    int64 // minor units
	Overdue   int
	Late      int64 // minor units of those
}

// Happened is what the action log says of all time, added up.
type Happened struct {
	Statuses []StatusCount
	Attempts []AttemptCount
	Resolved []ResolvedCount
}

// StatusCount is how many operations of a rail stand in a status.
type StatusCount struct {
	TenantID, Rail string
	Status         Status
	N              int
}

// AttemptCount is how many sends of a rail ended in a way.
type AttemptCount struct {
	TenantID, Rail string
	Outcome        AttemptOutcome
	N              int
}

// ResolvedCount is how long it took until what was unknown ended, by who found
// out.
type ResolvedCount struct {
	TenantID, Rail string
	How            Resolution
	Spread         Spread
}

// Resolution says what ended an unknown.
type Resolution string

// The resolutions, in the order in which one hopes for them.
const (
	ByAnswer    Resolution = "answer" // late, or of a send under the same key
	ByLookup    Resolution = "lookup"
	ByEvent     Resolution = "event"
	ByStatement Resolution = "statement"
	ByPerson    Resolution = "person"
	ByOther     Resolution = "other" // taken back after it was shown that nothing ran, or its time was over
)

// Resolutions lists them.
func Resolutions() []Resolution {
	return []Resolution{ByAnswer, ByLookup, ByEvent, ByStatement, ByPerson, ByOther}
}

// ResolvedBy tells from the log entry that ended an operation what ended it.
func ResolvedBy(by Holder) Resolution {
	switch {
	case by.Kind == Person:
		return ByPerson
	case by.Kind == Worker:
		return ByAnswer
	case by.Kind == Reconciler && by.Name == "event":
		return ByEvent
	case by.Kind == Reconciler && strings.HasPrefix(by.Name, "statement"):
		return ByStatement
	case by.Kind == Reconciler:
		return ByLookup
	}
	return ByOther
}

// SendEnded is what was known of a send when its operation left in_flight; empty
// where the change is no end of a send.
func SendEnded(from Status, e Event, to Status) AttemptOutcome {
	switch {
	case from != InFlight || to == InFlight:
		return ""
	case e == Receive || e == Mismatch: // also one that differs is a receipt
		return AttemptReceipt
	case e == Decline:
		return AttemptDeclined
	case e == Unsend:
		return AttemptNotSent
	}
	return AttemptUnknown
}

// ResolutionSteps part the time to a resolution: a late answer, a look-up or two,
// a provider's outage, a person's day, a statement's month.
var ResolutionSteps = [...]time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute,
	time.Hour, 4 * time.Hour, 24 * time.Hour, 72 * time.Hour, 168 * time.Hour, 720 * time.Hour}

// Spread is how spans of time lie between the steps.
type Spread struct {
	Steps [len(ResolutionSteps) + 1]int // how many took at most each step, and more than the one before; the last: longer than all
	N     int
	Sum   int64 // milliseconds
}

// Add counts one more span.
func (s *Spread) Add(ms int64) {
	i := 0
	for i < len(ResolutionSteps) && ms > ResolutionSteps[i].Milliseconds() {
		i++
	}
	s.Steps[i]++
	s.N++
	s.Sum += ms
}

// WriterHealth is how the one writer of a process fares, since it started.
type WriterHealth struct {
	Waiting int // changes that wait for their turn
	Commits int // batches that were tried
	Lost    int // batches of which nothing was kept, or of which that is not known
	Stopped bool
}

// Middle is the part in which half of them had ended.
func (s Spread) Middle() int {
	below := 0
	for i, n := range s.Steps {
		if below += n; 2*below >= s.N {
			return i
		}
	}
	return len(s.Steps) - 1
}

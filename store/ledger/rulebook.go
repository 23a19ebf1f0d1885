package ledger

import "time"

// A Rulebook is what is in force for one tenant: its action types, its rails'
// promises, its policy. It comes from the configuration; the zero value allows
// nothing, since it knows no action type.
type Rulebook struct {
	Actions    map[string]*ActionType
	Rails      map[string]Rail
	Routes     map[string]Rail // by action type: its rail, with what the action type overrides
	Policy     Policy
	Currencies Currencies
	Timing     Timing
	Runs       RunLimits
}

// RunLimits are the budget that a run begins with.
type RunLimits struct {
	MaxAttempts int
	MaxElapsed  time.Duration
}

// Timing holds the durations that are not a rail's.
type Timing struct {
	Lease      time.Duration // a worker that is silent for longer has lost its claim
	UnknownFor time.Duration // an operation unknown for longer goes to a person
	TakeBack   time.Duration // how long an approval can be taken back before it is sent
}

// Route is the rail of an operation as its action type speaks to it. An operation
// stays on the rail it was registered for.
func (r Rulebook) Route(o Operation) (Rail, bool) {
	if route, ok := r.Routes[o.ActionType]; ok && route.Name == o.Rail {
		return route, true
	}
	rail, ok := r.Rails[o.Rail]
	return rail, ok
}

// Harmless reports whether an operation's effect may happen twice without harm.
func (r Rulebook) Harmless(o Operation) bool {
	action := r.Actions[o.ActionType]
	return action != nil && action.Repeatable
}

// LeaseFor is how long a claim on the rail lasts: long enough for two time-outs,
// so that a slow answer never outlives the lease it came under.
func (r Rulebook) LeaseFor(rail Rail) time.Duration {
	return max(r.Timing.Lease, 2*rail.Timeout+2*time.Second)
}

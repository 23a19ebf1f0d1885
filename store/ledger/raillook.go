package ledger

import "time"

// RailLook is when a rail last answered a look-up, and how long it has not.
type RailLook struct {
	TenantID    string
	Rail        string
	AnsweredAt  int64 // 0: never
	SilentSince int64 // 0: it answers
	SilentRuns  int
	AskAt       int64 // left alone until then
}

// Heard takes in whether the rail answered. One that does not is asked less and
// less often, and never less than every few minutes: whoever waits for its
// return does not wait long.
func (l RailLook) Heard(answered bool, now int64) RailLook {
	if answered {
		l.AnsweredAt, l.SilentSince, l.SilentRuns, l.AskAt = now, 0, 0, 0
		return l
	}
	if l.SilentSince == 0 {
		l.SilentSince = now
	}
	wait := min(firstSilence<<min(l.SilentRuns, 10), longestUnasked)
	l.SilentRuns++
	l.AskAt = now + wait.Milliseconds()
	return l
}

// firstSilence is how long a rail that fell silent is left alone at first.
const firstSilence = 20 * time.Second // less than the look-ups' clock: one run is not left out

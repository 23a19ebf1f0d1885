package dispatch

import "time"

// What a retry costs a rail's quota, and what a success gives back. A rail that
// works never notices it; one that does not is retried less and less, however
// many operations wait, and what was not sent yet still goes. The figures are
// those of the AWS SDKs' standard retry mode: of 500, a hundred retries in a row.
const (
	retryCost     = 5
	successRefund = 1
)

// refillTime is how long a quota takes to fill by itself: what waits for a retry
// is tried now and then, also where nothing new comes that could succeed.
const refillTime = time.Hour

// quota is what is left of a rail's retries. The zero value is a full one: it
// counts what was spent.
type quota struct {
	spent float64
	at    time.Time
}

// retries is how many more there may be now, of a quota of full.
func (q *quota) retries(full int, now time.Time) int {
	if !q.at.IsZero() && now.After(q.at) {
		q.spent = max(0, q.spent-float64(full)*now.Sub(q.at).Seconds()/refillTime.Seconds())
	}
	q.at = now
	return max(0, int((float64(full)-q.spent)/retryCost))
}

func (q *quota) retry() { q.spent += retryCost }

// unretry is for a retry that was claimed and did not become an attempt.
func (q *quota) unretry() { q.spent = max(0, q.spent-retryCost) }

// worked gives a retry its cost back, and any other success a little.
func (q *quota) worked(retried bool) {
	if retried {
		q.unretry()
		return
	}
	q.spent = max(0, q.spent-successRefund)
}

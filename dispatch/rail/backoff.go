package rail

import "time"

// Backoff is how long to wait before the next attempt: anything from shortest
// to a ceiling that doubles with every attempt made, up to longest. The whole
// range is drawn from (full jitter), so that many operations that were struck
// at one moment do not come back at one moment. attempt counts those made, from
// 1; rnd returns a number below n.
func Backoff(shortest, longest time.Duration, attempt int, rnd func(n int64) int64) time.Duration {
	ceiling := shortest
	for range max(attempt, 1) {
		if ceiling >= longest/2 {
			ceiling = longest
			break
		}
		ceiling *= 2
	}
	if ceiling <= shortest {
		return shortest
	}
	return shortest + time.Duration(rnd(int64(ceiling-shortest)+1))
}

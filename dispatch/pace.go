package dispatch

import (
	"math"
	"time"
)

// pace bounds how many requests a rail begins in a second: a bucket that holds
// one second's worth. The zero value is a full one. What waits for it is not
// claimed, so waiting is no attempt.
type pace struct {
	begun float64 // of the second that the bucket holds
	at    time.Time
}

// room is how many more may begin now.
func (p *pace) room(perSecond int, now time.Time) int {
	if perSecond <= 0 {
		p.begun, p.at = 0, now
		return math.MaxInt
	}
	if !p.at.IsZero() && now.After(p.at) {
		p.begun = max(0, p.begun-float64(perSecond)*now.Sub(p.at).Seconds())
	}
	p.at = now
	return max(0, int(float64(perSecond)-p.begun))
}

func (p *pace) begin() { p.begun++ }

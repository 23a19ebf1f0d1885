package web

import (
	"fmt"
	"sync"

	"github.com/labstack/echo/v4"
)

// rateLimit gives each token, and each sender of events, a bucket that fills at the configured rate and
// holds one second's worth. It protects the server; it is no budget.
type rateLimit struct {
	mu      sync.Mutex
	buckets map[string]bucket
}

type bucket struct {
	left float64
	at   int64
}

// maxBuckets bounds the memory; a full table forgets everybody, which only
// makes the limit kinder for a second.
const maxBuckets = 100_000

// take uses one request of a bucket and says how many are left; ok is false when
// there is none.
func (l *rateLimit) take(name string, perSecond int, now int64) (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buckets == nil || len(l.buckets) >= maxBuckets {
		l.buckets = map[string]bucket{}
	}
	b, known := l.buckets[name]
	full := float64(perSecond)
	if !known {
		b = bucket{left: full, at: now}
	}
	b.left = min(full, b.left+float64(max(0, now-b.at))*full/1000)
	b.at = now
	if ok = b.left >= 1; ok {
		b.left--
	}
	l.buckets[name] = b
	return int(b.left), ok
}

// limitRate applies the limit and tells the caller where it stands.
func (s *Server) limitRate(c echo.Context, policy, bucket string) error {
	perSecond := s.Config().Limits.RequestsPerSecond
	if perSecond <= 0 {
		return nil
	}
	left, ok := s.rates.take(bucket, perSecond, s.Store.Now())
	h := c.Response().Header()
	h.Set("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=1`, policy, perSecond))
	h.Set("RateLimit", fmt.Sprintf(`"%s";r=%d;t=1`, policy, left))
	if !ok {
		return rateLimited()
	}
	return nil
}

func rateLimited() problem {
	p := newProblem("rate_limited", "")
	p.retryAfter = 1
	return p
}

package dispatch

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterIsObeyedWithinReason(t *testing.T) {
	now := time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		status int
		said   string
		want   time.Duration
	}{
		{429, "7", 7 * time.Second},
		{503, " 90 ", 90 * time.Second},
		{429, "Wed, 04 Mar 2026 09:00:30 GMT", 30 * time.Second},
		{429, "86400", longestRest},
		{429, "Thu, 05 Mar 2026 09:00:00 GMT", longestRest},
		{429, "99999999999999999999", 0},
		{429, "Tue, 03 Mar 2026 09:00:00 GMT", 0},
		{429, "soon", 0}, {429, "-3", 0}, {429, "1.5", 0}, {429, "", 0}, {429, "0", 0},
		{500, "7", 0}, {200, "7", 0},
	} {
		var want time.Time
		if c.want > 0 {
			want = now.Add(c.want)
		}
		if got := restUntil(c.status, http.Header{"Retry-After": {c.said}}, now); !got.Equal(want) {
			t.Errorf("%d with %q: until %s, want %s", c.status, c.said, got, want)
		}
	}
}

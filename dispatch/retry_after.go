package dispatch

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestRest bounds how long a provider's Retry-After is obeyed: a wrong one
// must not stop a rail for a day.
const longestRest = 15 * time.Minute

// restUntil is until when a provider asks to be left alone. Only an answer that
// says "too many" or "not now" may ask; the zero time: it does not.
func restUntil(status int, header http.Header, now time.Time) time.Time {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return time.Time{}
	}
	text := strings.TrimSpace(header.Get("Retry-After"))
	until := time.Time{}
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		until = now.Add(time.Duration(seconds) * time.Second)
	} else if at, err := http.ParseTime(text); err == nil {
		until = at
	}
	if !until.After(now) {
		return time.Time{}
	}
	if last := now.Add(longestRest); until.After(last) {
		return last
	}
	return until
}

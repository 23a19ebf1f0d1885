package views

import (
	"fmt"
	"strconv"
	"time"
)

// Age is a span of time as people say it: "12 s", "26 m", "2 h 14 m", "3 d 4 h".
func Age(ms int64) string {
	s := max(ms, 0) / 1000
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d m", s/60)
	case s < 24*3600:
		return fmt.Sprintf("%d h %02d m", s/3600, s%3600/60)
	}
	days, hours := s/86400, s%86400/3600
	if hours == 0 || days >= 7 {
		return fmt.Sprintf("%d d", days)
	}
	return fmt.Sprintf("%d d %d h", days, hours)
}

// span is a short duration with its tenths, for what happened inside a minute.
func span(ms int64) string {
	if ms < 60_000 {
		return fmt.Sprintf("%.1f s", float64(max(ms, 0))/1000)
	}
	return Age(ms)
}

// relative is a moment as seen from now: "12 s ago", "in 26 m".
func (f Frame) relative(t int64) string {
	if t > f.Now {
		return "in " + Age(t-f.Now)
	}
	return Age(f.Now-t) + " ago"
}

func utc(t int64) time.Time { return time.UnixMilli(t).UTC() }

// machine is a moment for <time datetime>.
func machine(t int64) string { return utc(t).Format("2006-01-02T15:04:05.000Z") }

// exact is a moment for people, to the millisecond; the day is left out when it
// is the day of the page.
func (f Frame) exact(t int64) string {
	if f.sameDay(t) {
		return utc(t).Format("15:04:05.000")
	}
	return utc(t).Format("2 Jan 2006 15:04:05.000")
}

// clock is a moment for sentences.
func (f Frame) clock(t int64) string {
	if f.sameDay(t) {
		return utc(t).Format("15:04") + " UTC"
	}
	return utc(t).Format("2 Jan 15:04") + " UTC"
}

func (f Frame) sameDay(t int64) bool {
	return utc(t).Format(time.DateOnly) == utc(f.Now).Format(time.DateOnly)
}

func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

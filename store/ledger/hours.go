package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a machine without zone files decides like any other
)

// hours is a weekly window of time in one place.
type hours struct {
	days     [7]bool // by time.Weekday; the day on which the window opens
	from, to int     // minutes of the day; to may be before from, across midnight
	zone     *time.Location
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// parseHours reads "mon-fri 08:00-18:00 Europe/Berlin". Days may be left out
// (every day) or listed ("mon,wed,sat-sun"). The zone may not: an hour without
// a place is a guess.
func parseHours(text string) (*hours, error) {
	const form = `write it like "mon-fri 08:00-18:00 Europe/Berlin"`
	parts := strings.Fields(text)
	if len(parts) == 2 {
		parts = append([]string{"mon-sun"}, parts...)
	}
	if len(parts) != 3 {
		return nil, fmt.Errorf("%q is not days, times and zone; %s", text, form)
	}
	var h hours
	for _, group := range strings.Split(strings.ToLower(parts[0]), ",") {
		first, last, isRange := strings.Cut(group, "-")
		if !isRange {
			last = first
		}
		a, b := slices.Index(weekdays, first), slices.Index(weekdays, last)
		if a < 0 || b < 0 {
			return nil, fmt.Errorf("%q is no day or range of days; %s", group, form)
		}
		for d := a; ; d = (d + 1) % 7 {
			h.days[d] = true
			if d == b {
				break
			}
		}
	}
	from, to, ok := strings.Cut(parts[1], "-")
	var okFrom, okTo bool
	h.from, okFrom = minuteOfDay(from)
	h.to, okTo = minuteOfDay(to)
	if !ok || !okFrom || !okTo || h.from == 24*60 {
		return nil, fmt.Errorf("%q is no range of times; %s", parts[1], form)
	}
	if h.from == h.to {
		return nil, fmt.Errorf("%q is empty; for a whole day write 00:00-24:00", parts[1])
	}
	zone, err := time.LoadLocation(parts[2])
	if err != nil || parts[2] == "Local" { // the machine's own zone is nobody's decision
		return nil, fmt.Errorf("%q is no time zone; use a name such as Europe/Berlin or UTC", parts[2])
	}
	h.zone = zone
	return &h, nil
}

func minuteOfDay(text string) (int, bool) {
	if text == "24:00" {
		return 24 * 60, true
	}
	t, err := time.Parse("15:04", text)
	return t.Hour()*60 + t.Minute(), err == nil && len(text) == len("15:04")
}

// contains reports whether the moment lies in the window: its first minute
// does, its last does not.
func (h *hours) contains(now int64) bool {
	t := time.UnixMilli(now).In(h.zone)
	day, minute := t.Weekday(), t.Hour()*60+t.Minute()
	if h.from < h.to {
		return h.days[day] && h.from <= minute && minute < h.to
	}
	yesterday := (day + 6) % 7
	return h.days[day] && minute >= h.from || h.days[yesterday] && minute < h.to
}

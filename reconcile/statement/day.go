package statement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/dispatch/rail"
)

var errDay = errors.New("this is no day of the calendar")

// written is a date as it stands in a file: three numbers in an order that may
// not be known yet, and what follows them.
type written struct {
	part    [3]int
	lengths [3]int
	rest    string // a time of day, perhaps with a zone
}

// readWritten takes 03/04/2026, 2026-04-03T10:00:00Z or 20260403 apart.
func readWritten(s string) (w written, err error) {
	s = strings.TrimSpace(s)
	i, k := 0, 0
	var mark byte
	for ; k < 3; k++ {
		start, limit := i, 4
		if compact := len(s) >= 8 && allDigits(s[:8]); compact {
			limit = []int{4, 2, 2}[k]
		}
		for i < len(s) && i-start < limit && s[i] >= '0' && s[i] <= '9' {
			w.part[k] = w.part[k]*10 + int(s[i]-'0')
			i++
		}
		if w.lengths[k] = i - start; i == start {
			return w, errDay
		}
		if k == 2 || limit != 4 || k == 0 && len(s) >= 8 && allDigits(s[:8]) {
			continue
		}
		if i >= len(s) || !strings.ContainsRune("-/.", rune(s[i])) || k == 1 && s[i] != mark {
			return w, errDay
		}
		mark = s[i]
		i++
	}
	w.rest = s[i:]
	if w.rest != "" && w.rest[0] != 'T' && w.rest[0] != ' ' && w.rest[0] != ',' {
		return w, errDay
	}
	if w.rest != "" {
		w.rest = strings.TrimSpace(w.rest[1:])
	}
	return w, nil
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// order gives year, month and day as the named order has them. One that does
// not fit what was written is an error: a year of four digits is never a day.
func (w written) order(name string) (y, m, d int, err error) {
	p, n := w.part, w.lengths
	year := 0
	switch name {
	case "iso", "ymd", "ymd2":
		y, m, d = p[0], p[1], p[2]
	case "dmy", "dmy2":
		d, m, y, year = p[0], p[1], p[2], 2
	case "mdy", "mdy2":
		m, d, y, year = p[0], p[1], p[2], 2
	}
	digits := 4
	if strings.HasSuffix(name, "2") {
		digits, y = 2, y+2000
	}
	for i := range n {
		if i == year && n[i] != digits || i != year && n[i] > 2 {
			return 0, 0, 0, errDay
		}
	}
	if m < 1 || m > 12 || d < 1 || d > daysIn(y, m) || y < 1970 || y > 2200 {
		return 0, 0, 0, errDay
	}
	return y, m, d, nil
}

func daysIn(y, m int) int { return time.Date(y, time.Month(m)+1, 0, 0, 0, 0, 0, time.UTC).Day() }

// datesOf finds the one order that all dates of a file fit. Two that fit are a
// question; none is a refusal at the first date that leaves none.
func datesOf(table *table, column int) (string, error) {
	open := slices.Clone(rail.StatementDates)
	for _, r := range table.rows {
		s := r.cells[column]
		w, err := readWritten(s)
		if err != nil {
			return "", refuse(r.line, table.title(column), "%q is not a date that can be read for certain, such as 2026-04-03.", short(s))
		}
		var left []string
		for _, name := range open {
			if _, _, _, err := w.order(name); err == nil {
				left = append(left, name)
			}
		}
		if len(left) == 0 {
			return "", refuse(r.line, table.title(column), "%q is not a day of the calendar, or is written in another order than the dates above it. One file writes its dates in one way; export it again.", short(s))
		}
		open = left
	}
	if slices.Contains(open, "iso") && slices.Contains(open, "ymd") {
		return "iso", nil
	}
	if len(open) == 1 && !strings.HasSuffix(open[0], "2") {
		return open[0], nil
	}
	first := table.rows[0]
	w, _ := readWritten(first.cells[column])
	q := &Question{Key: "dates", Ask: "In what order does this file write a date?"}
	for _, name := range open {
		y, m, d, _ := w.order(name)
		q.Choices = append(q.Choices, Choice{name, fmt.Sprintf("%s: %d %s %d", orderWords[name[:3]], d, time.Month(m), y)})
	}
	if len(q.Choices) == 1 {
		return "", refuse(first.line, table.title(column), "%q has a year of two digits. If that is %s, write dates: %s.", short(first.cells[column]), q.Choices[0].Label, open[0])
	}
	q.Sentence = fmt.Sprintf("%q on line %d can be read in %d ways, and no other date of the file settles it.", short(first.cells[column]), first.line, len(open))
	return "", q
}

var orderWords = map[string]string{"iso": "year first", "ymd": "year first", "dmy": "day first", "mdy": "month first"}

// dayStart is the first moment of a day in a zone. A day that a zone left out
// (Samoa had no 30 December 2011) is no day.
func dayStart(y, m, d int, zone *time.Location) (time.Time, error) {
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, zone)
	if t.Day() != d { // midnight fell into a gap: the day begins where it ends
		if _, end := t.ZoneBounds(); !end.IsZero() {
			t = end
		}
	} else if start, _ := t.ZoneBounds(); !start.IsZero() && t.Sub(start) < 3*time.Hour {
		// Clocks that went back over midnight have two of them; the first counts.
		if before := start.Add(-time.Nanosecond); before.Day() == d && before.Month() == time.Month(m) {
			_, late := t.Zone()
			_, early := before.Zone()
			t = t.Add(-time.Duration(early-late) * time.Second)
		}
	}
	if t.Day() != d || t.Month() != time.Month(m) || t.Year() != y {
		return t, fmt.Errorf("the zone %s has no such day", zone)
	}
	return t, nil
}

// nextDay is the start of the day after the one that t stands in.
func nextDay(t time.Time) time.Time {
	for add := 1; add < 3; add++ {
		n := time.Date(t.Year(), t.Month(), t.Day()+add, 12, 0, 0, 0, t.Location())
		if s, err := dayStart(n.Year(), int(n.Month()), n.Day(), t.Location()); err == nil {
			return s
		}
	}
	return t.AddDate(0, 0, 1)
}

// moment reads a day with what follows it. Without a time it is a day only.
func moment(y, m, d int, rest string, zone *time.Location) (at time.Time, dayOnly bool, err error) {
	if rest == "" {
		at, err = dayStart(y, m, d, zone)
		return at, true, err
	}
	clock, offset := rest, ""
	if i := strings.IndexAny(rest, "Z+-"); i >= 0 {
		clock, offset = rest[:i], rest[i:]
	}
	clock = strings.TrimSpace(clock)
	if rest, ok := strings.CutSuffix(clock, "UTC"); ok && offset == "" {
		clock, offset = strings.TrimSpace(rest), "Z"
	}
	var t time.Time
	err = errors.New("no")
	for _, layout := range clocks {
		if len(clock) >= len("15:04") && (len(clock) <= len(layout) || strings.Contains(clock, ".")) {
			if t, err = time.Parse(layout, clock); err == nil {
				break
			}
		}
	}
	if err != nil {
		return t, false, errors.New("the time of day cannot be read; write 14:05:00")
	}
	if offset != "" {
		if zone, err = readOffset(offset); err != nil {
			return t, false, err
		}
	}
	h, min, sec := t.Clock()
	at = time.Date(y, time.Month(m), d, h, min, sec, t.Nanosecond(), zone)
	if at.Hour() != h || at.Minute() != min {
		return at, false, fmt.Errorf("the zone %s had no such time on that day: its clocks went forward", zone)
	}
	return at, false, nil
}

var clocks = []string{"15:04:05", "15:04", "15:04:05.999999999", "3:04:05 PM", "3:04 PM"}

func readOffset(s string) (*time.Location, error) {
	s = strings.TrimSpace(s)
	if s == "Z" {
		return time.UTC, nil
	}
	for _, layout := range []string{"-07:00", "-0700", "-07"} {
		if t, err := time.Parse(layout, s); err == nil {
			_, seconds := t.Zone()
			if seconds == 0 {
				return time.UTC, nil
			}
			return time.FixedZone(s, seconds), nil
		}
	}
	return nil, errors.New("the zone after the time cannot be read; write Z or +02:00")
}

// short keeps a value from the file short enough to be read in a sentence.
func short(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

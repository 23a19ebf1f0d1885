package ledger

import "time"

// Message is what goes over a channel at once: one notice, or several together.
// A channel has one under way at a time, so that nothing overtakes.
type Message struct {
	ID        int64
	Name      string // the same at every attempt, for receivers that know repeats
	TenantID  string
	Channel   string
	Kind      NoticeKind
	Title     string
	Lines     []string
	Path      string
	Notices   []Notice // the first mostShown of them
	Count     int
	Since     int64 // of its oldest notice
	MadeAt    int64
	Attempts  int
	NextAt    int64
	Problem   string
	Delivered bool
	EndedAt   int64 // 0: under way
}

// ChannelState is how a channel fared last.
type ChannelState struct {
	DeliveredAt int64
	Waiting     int   // notices that are not told yet
	Since       int64 // the oldest of them
	Problem     string
	ProblemAt   int64
	NextAt      int64 // of the message under way
	GaveUp      int64 // messages in the last thirty days
}

const (
	mostAlone = 5           // of one kind in a minute; more of them come as one
	together  = time.Minute // how long the next of a kind wait for each other then
	// NoticeLife is how long a message is tried: what nobody could be told for a
	// day stands on the pages anyway.
	NoticeLife = 24 * time.Hour
)

// NoticeAfter is when a message is tried again that was not delivered so often.
func NoticeAfter(attempts int) time.Duration {
	steps := []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute}
	return steps[min(max(attempts, 1), len(steps))-1]
}

// NextBatch chooses what goes over a channel now, of what waits in the order in
// which it came; nothing: it all waits. sent counts what went alone in the last
// minute, by kind.
func NextBatch(waiting []Notice, sent map[NoticeKind]int, quiet QuietHours, now int64) (batch []Notice, kind NoticeKind) {
	end := quiet.Until(now)
	var kept []Notice // what came while it was quiet
	for _, n := range waiting {
		if end == 0 && n.Kind != AboutTest && n.Kind != AboutDay && quiet.Until(n.At) > 0 {
			kept = append(kept, n)
		}
	}
	if len(kept) > 1 {
		return kept, AboutMany
	}
	for _, first := range waiting {
		switch {
		case first.Kind == AboutTest:
			return []Notice{first}, first.Kind
		case end > 0 && !(first.Until > 0 && first.Until <= end):
			continue
		case first.Kind == AboutDay:
			return []Notice{first}, first.Kind
		}
		var alike []Notice
		for _, n := range waiting {
			if n.Kind == first.Kind && (end == 0 || n.Until > 0 && n.Until <= end) {
				alike = append(alike, n)
			}
		}
		switch {
		case len(alike) > mostAlone:
			return alike, first.Kind
		case sent[first.Kind]+len(alike) <= mostAlone:
			return alike[:1], first.Kind
		case now >= alike[0].At+together.Milliseconds():
			return alike, first.Kind
		}
	}
	return nil, ""
}

// QuietHours are the time of the day in which only what can't wait is told. The zero
// value is never quiet.
type QuietHours struct {
	from, to int // minutes of the day; to may be before from, across midnight
	zone     *time.Location
}

// Until is when the quiet of a moment ends; 0: it is none.
func (q QuietHours) Until(now int64) int64 {
	if q.zone == nil {
		return 0
	}
	t := time.UnixMilli(now).In(q.zone)
	minute, day := t.Hour()*60+t.Minute(), t.Day()
	switch {
	case q.from < q.to && (minute < q.from || minute >= q.to):
		return 0
	case q.from > q.to && minute < q.from && minute >= q.to:
		return 0
	case minute >= q.to:
		day++
	}
	end := time.Date(t.Year(), t.Month(), day, 0, q.to, 0, 0, q.zone)
	return max(end.UnixMilli(), now+1) // the hour that a clock shows twice
}

// DayAt is the moment of a daily note on the local day of now, and that day's
// name. A time that the clocks leave out is the moment they jump to; of one that
// they show twice it is the first.
func DayAt(minute int, zone *time.Location, now int64) (at int64, day string) {
	t := time.UnixMilli(now).In(zone)
	return time.Date(t.Year(), t.Month(), t.Day(), 0, minute, 0, 0, zone).UnixMilli(), t.Format(time.DateOnly)
}

// NewQuietHours reads two times such as 22:00 and 07:00.
func NewQuietHours(from, to string, zone *time.Location) (QuietHours, bool) {
	f, okFrom := MinuteOfDay(from)
	t, okTo := MinuteOfDay(to)
	return QuietHours{f, t, zone}, okFrom && okTo && f != t
}

// MinuteOfDay reads a time such as 09:00.
func MinuteOfDay(text string) (int, bool) {
	m, ok := minuteOfDay(text)
	return m, ok && m < 24*60
}

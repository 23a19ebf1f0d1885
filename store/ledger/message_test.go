package ledger

import (
	"fmt"
	"testing"
	"time"
)

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestQuietHoursEndWhenTheClockOnTheWallSaysSo(t *testing.T) {
	zone := berlin(t)
	const form = "2006-01-02 15:04 MST"
	for _, c := range []struct{ from, to, now, until string }{
		{"22:00", "07:00", "2026-03-04 21:59 CET", ""},
		{"22:00", "07:00", "2026-03-04 22:00 CET", "2026-03-05 07:00 CET"},
		{"22:00", "07:00", "2026-03-05 06:59 CET", "2026-03-05 07:00 CET"},
		{"22:00", "07:00", "2026-03-05 07:00 CET", ""},
		{"12:00", "13:30", "2026-03-05 13:29 CET", "2026-03-05 13:30 CET"},
		{"12:00", "13:30", "2026-03-05 13:30 CET", ""},
		// The night with one hour less, the one with one more, and an end inside
		// the hour that does not exist.
		{"22:00", "07:00", "2026-03-28 23:00 CET", "2026-03-29 07:00 CEST"},
		{"22:00", "07:00", "2026-10-24 23:00 CEST", "2026-10-25 07:00 CET"},
		{"22:00", "02:30", "2026-03-28 23:00 CET", "2026-03-29 03:30 CEST"},
		{"22:00", "07:00", "2026-12-31 23:00 CET", "2027-01-01 07:00 CET"},
	} {
		q, ok := NewQuietHours(c.from, c.to, zone)
		now, err := time.ParseInLocation(form, c.now, zone)
		if !ok || err != nil {
			t.Fatal(c, ok, err)
		}
		got := ""
		if end := q.Until(now.UnixMilli()); end > 0 {
			got = time.UnixMilli(end).In(zone).Format(form)
		}
		if got != c.until {
			t.Errorf("%s–%s at %s: until %q, want %q", c.from, c.to, c.now, got, c.until)
		}
	}
}

func TestTheHourThatIsShownTwiceIsNoEndInThePast(t *testing.T) {
	zone := berlin(t)
	q, _ := NewQuietHours("22:00", "02:45", zone)
	second := time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC) // 02:30 for the second time
	if end := q.Until(second.UnixMilli()); end <= second.UnixMilli() {
		t.Errorf("quiet until %s, which was before", time.UnixMilli(end).In(zone))
	}
}

func TestADayHasOneNoteWhateverTheClocksDo(t *testing.T) {
	zone := berlin(t)
	for _, minute := range []int{0, 2*60 + 30, 9 * 60, 23*60 + 59} {
		told := map[string]int{}
		from := time.Date(2026, 3, 27, 0, 0, 0, 0, time.UTC)
		for now := from; now.Before(from.AddDate(0, 8, 0)); now = now.Add(10 * time.Minute) {
			at, day := DayAt(minute, zone, now.UnixMilli())
			if now.UnixMilli() >= at && told[day] == 0 {
				told[day]++
			}
		}
		for day := time.Date(2026, 3, 28, 12, 0, 0, 0, zone); day.Before(from.AddDate(0, 7, 20)); day = day.AddDate(0, 0, 1) {
			if name := day.Format(time.DateOnly); told[name] != 1 && minute < 23*60+55 {
				t.Fatalf("at minute %d, the day %s had %d notes", minute, name, told[name])
			}
		}
	}
}

func TestWhatComesInNumbersIsToldTogether(t *testing.T) {
	const now = int64(10_000_000)
	some := func(kind NoticeKind, n int, at int64) (all []Notice) {
		for i := range n {
			all = append(all, Notice{ID: int64(i), Kind: kind, At: at})
		}
		return all
	}
	for _, c := range []struct {
		name    string
		waiting []Notice
		sent    map[NoticeKind]int
		want    string
	}{
		{"one goes alone", some(AboutApproval, 1, now), nil, "1 approval"},
		{"a few go one by one", some(AboutApproval, 5, now), nil, "1 approval"},
		{"many go together", some(AboutApproval, 38, now), nil, "38 approval"},
		{"what follows a few waits", some(AboutApproval, 2, now), map[NoticeKind]int{AboutApproval: 4}, "0 "},
		{"for a minute", some(AboutApproval, 2, now-60_000), map[NoticeKind]int{AboutApproval: 4}, "2 approval"},
		{"another kind need not wait for it", append(some(AboutApproval, 2, now), some(AboutHold, 1, now)...), map[NoticeKind]int{AboutApproval: 4}, "1 hold"},
	} {
		batch, kind := NextBatch(c.waiting, c.sent, QuietHours{}, now)
		if got := fmt.Sprintf("%d %s", len(batch), kind); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

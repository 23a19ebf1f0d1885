package ledger

import (
	"math"
	"testing"
	"time"
)

func TestCase161EachMomentIsInExactlyOneMonthOfTheZone(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kathmandu", "Pacific/Kiritimati"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		// Over two years, and over both changes of the clock, months follow each
		// other without a gap and without an overlap.
		from, to := Month(time.Date(2026, 1, 15, 0, 0, 0, 0, zone).UnixMilli(), zone)
		for range 24 {
			for _, at := range []int64{from, from + 1, (from + to) / 2, to - 1} {
				if f, u := Month(at, zone); f != from || u != to {
					t.Fatalf("%s: %s is in %d–%d, want %d–%d", name, time.UnixMilli(at).In(zone), f, u, from, to)
				}
			}
			next, end := Month(to, zone)
			if next != to {
				t.Fatalf("%s: after %d comes %d", name, to, next)
			}
			from, to = next, end
		}
	}
	// Sent on the last evening of March in California, dated 1 April by the bank.
	sent := time.Date(2026, 3, 31, 23, 30, 0, 0, time.FixedZone("", -7*3600)).UnixMilli()
	o := Operation{Status: Confirmed, Effect: "payout", FirstMarkAt: sent, CreatedAt: sent, Terms: Terms{Amount: 4800, HasAmount: true, Currency: "EUR", Recipient: "acct_7"}}
	for day, fits := range map[string]bool{"2026-03-29": false, "2026-03-31": true, "2026-04-01": true, "2026-04-05": true, "2026-04-08": false} {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		l := KeptLine{StatementLine: StatementLine{Amount: -4800, Gross: -4800, Currency: "EUR", At: at.UnixMilli(), DateOnly: true, Counterparty: "acct_7"}}
		v := l.Judge([]MatchCandidate{{Rule: ByAmountDate, Operation: o}})
		if (v.State == LineSuggested) != fits {
			t.Errorf("%s: %s", day, v.State)
		}
	}
}

func TestAmountAndDayNeverMatchByThemselves(t *testing.T) {
	o := Operation{OperationID: "a", Status: Confirmed, Terms: Terms{Amount: 4800, HasAmount: true, Currency: "EUR"}}
	l := KeptLine{StatementLine: StatementLine{Amount: 4800, Gross: 4800, Currency: "EUR"}}
	for _, rule := range matchRules {
		v := l.Judge([]MatchCandidate{{Rule: rule, Operation: o}})
		if matched := v.State == LineMatched; matched == (rule == ByAmountDate) || v.Rule != rule {
			t.Errorf("%s: %s by %s", rule, v.State, v.Rule)
		}
	}
}

func TestTheStrongestRuleSpeaks(t *testing.T) {
	a := Operation{OperationID: "a", Status: Confirmed, Terms: Terms{Amount: 4800, HasAmount: true, Currency: "EUR"}}
	b, gone := a, a
	b.OperationID, gone.OperationID, gone.Status = "b", "gone", Rejected
	l := KeptLine{StatementLine: StatementLine{Amount: 4800, Gross: 4800, Currency: "EUR"}}
	for _, c := range []struct {
		name    string
		all     []MatchCandidate
		state   LineState
		finding LineFinding
		is      string
	}{
		{"an id beats a reference", []MatchCandidate{{Rule: ByReference, Operation: b}, {Rule: ByProviderID, Operation: a}}, LineMatched, "", "a"},
		{"two strong ones contradict", []MatchCandidate{{Rule: ByStamp, Operation: b}, {Rule: ByProviderID, Operation: a}}, LineUnmatched, LineContradicts, "a"},
		{"two references are a suggestion", []MatchCandidate{{Rule: ByReference, Operation: a}, {Rule: ByReference, Operation: b}}, LineSuggested, "", "a"},
		{"a declined one keeps its reference", []MatchCandidate{{Rule: ByReference, Operation: gone}, {Rule: ByReference, Operation: b}}, LineMatched, "", "b"},
		{"a reference proves no effect of a rejected one", []MatchCandidate{{Rule: ByReference, Operation: gone}}, LineUnmatched, LateOnStatement, "gone"},
	} {
		v := l.Judge(c.all)
		if v.State != c.state || v.Finding != c.finding || v.Operation == nil || v.Operation.OperationID != c.is || v.Second != nil {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
	l.NotThis = []string{"a"}
	if v := l.Judge([]MatchCandidate{{Rule: ByProviderID, Operation: a}}); v.Finding != NotOurs {
		t.Errorf("what a person turned down was matched: %+v", v)
	}
}

func TestMagnitudeOfTheLowestNumber(t *testing.T) {
	if m := magnitude(math.MinInt64); m != math.MaxInt64 {
		t.Error(m)
	}
	if m := magnitude(-5); m != 5 {
		t.Error(m)
	}
}

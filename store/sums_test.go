package store

import (
	"math"
	"testing"
)

// Two mistyped amounts, or a thousand absurd ones, must not make every page of a
// tenant fail.
func TestSumsThatFitNoMachineWordAreStillTold(t *testing.T) {
	s := openTest(t)
	for _, c := range []struct {
		claim   string
		amounts string
		want    int64
	}{
		{"nothing", `select 0 as amount where 1 = 0`, 0},
		{"ordinary money", `select 4800 as amount union all select 1999999 union all select 1`, 2_004_800},
		{"the most of one reader of JSON", `select 9007199254740991 as amount`, 1<<53 - 1},
		{"twice the most that 64 bits hold", `select 9223372036854775807 as amount union all select 9223372036854775807`, math.MaxInt64},
	} {
		var w wide
		if err := s.readers.QueryRow(`select `+wideSum(`amount`)+` from (`+c.amounts+`) as all_of_them`).Scan(&w.high, &w.low); err != nil {
			t.Errorf("%s: %v", c.claim, err)
		}
		if w.amount() != c.want {
			t.Errorf("%s: %d, not %d", c.claim, w.amount(), c.want)
		}
	}
	sums := map[string]int64{"EUR": math.MaxInt64 - 1}
	if addTo(sums, "EUR", 5); sums["EUR"] != math.MaxInt64 {
		t.Errorf("%v", sums)
	}
}

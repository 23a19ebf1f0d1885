package ledger

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestWhatARecheckShows(t *testing.T) {
	const sent, day = int64(1_000_000), int64(24 * 60 * 60 * 1000)
	amount := func(n int64) *int64 { return &n }
	own := Receipt{ID: "pay_1", Stamp: "ord_1", Amount: amount(4800), Currency: "EUR"}
	second := Receipt{ID: "pay_2", Stamp: "ord_1", Amount: amount(4800), Currency: "EUR"}
	changed := Receipt{ID: "pay_1", Stamp: "ord_1", Amount: amount(4801), Currency: "EUR"}
	stranger := Receipt{ID: "pay_3", Stamp: "ord_2", Amount: amount(4800), Currency: "EUR"}
	bare := Receipt{ID: "pay_4", Stamp: "ord_1", Presumed: true, Amount: amount(4800), Currency: "EUR"}
	rail := Rail{Address: "here", Compared: ReceiptFields{Amount: true, Currency: true}, Lookup: LookupPromise{Possible: true, Lag: time.Hour}}
	proving := rail
	proving.Lookup.AbsenceProvesAfter = time.Hour
	for _, c := range []struct {
		claim   string
		rail    Rail
		status  Status
		look    Look
		missing int64
		extra   []string
		asks    ExceptionKind
		since   int64
	}{
		{"its receipt alone is what was known", rail, Confirmed, Look{Finding: LookFound, Records: []Receipt{own, stranger}, AskedAt: sent + day}, 0, nil, "", 0},
		{"its receipt shown again is not missing any more", rail, Confirmed, Look{Finding: LookFound, Records: []Receipt{own}, AskedAt: sent + day}, 7, nil, "", 0},
		{"a second effect is owed", rail, Confirmed, Look{Finding: LookFound, Records: []Receipt{second, own}, AskedAt: sent + day}, 0, []string{"pay_2"}, "", 0},
		{"a record without a stamp is owed by nobody", rail, Confirmed, Look{Finding: LookFound, Records: []Receipt{own, bare}, AskedAt: sent + day}, 0, nil, "", 0},
		{"another one in its place is a person's question", rail, Confirmed, Look{Finding: LookFound, Records: []Receipt{second}, AskedAt: sent + day}, 0, nil, Contradiction, 0},
		{"a changed amount is a person's question", rail, Confirmed, Look{Finding: LookFound, Records: []Receipt{changed, second}, AskedAt: sent + day}, 0, []string{"pay_2"}, ReceiptChanged, 0},
		{"nothing shown once is looked for again", rail, Confirmed, Look{Finding: LookAbsent, AskedAt: sent + day}, 0, nil, "", sent + day},
		{"twice within the day too", rail, Confirmed, Look{Finding: LookAbsent, AskedAt: sent + 2*day}, sent + 2*day - 1000, nil, "", sent + 2*day - 1000},
		{"twice a day apart it is gone", rail, Confirmed, Look{Finding: LookAbsent, AskedAt: sent + 2*day}, sent + day, nil, ReceiptGone, sent + day},
		{"before the index had its time nothing is missing", rail, Confirmed, Look{Finding: LookAbsent, AskedAt: sent + 1000}, 0, nil, "", 0},
		{"where silence is proof it is gone at once", proving, Confirmed, Look{Finding: LookAbsent, AskedAt: sent + day}, 0, nil, ReceiptGone, sent + day},
		{"at another address silence is nothing", func() Rail { r := proving; r.Address = "there"; return r }(), Confirmed, Look{Finding: LookAbsent, AskedAt: sent + day}, 0, nil, "", 0},
		{"who could not be asked has taken nothing back", proving, Confirmed, Look{Finding: LookUnreachable, AskedAt: sent + 2*day}, sent + day, nil, "", sent + day},
		{"an unclear answer has neither", proving, Confirmed, Look{Finding: LookInconclusive, AskedAt: sent + 2*day}, sent + day, nil, "", sent + day},
		{"an effect of what ended without one is owed and asked about", rail, Rejected, Look{Finding: LookFound, Records: []Receipt{own}, AskedAt: sent + day}, 0, []string{"pay_1"}, HappenedAfterAll, 0},
		{"no effect of what ended without one is right", proving, Rejected, Look{Finding: LookAbsent, AskedAt: sent + day}, 0, nil, "", 0},
	} {
		t.Run(c.claim, func(t *testing.T) {
			o := Operation{Status: c.status, OrderID: "ord_1", RailAddress: "here", LastSendBy: sent, Terms: Terms{Amount: 4800, HasAmount: true, Currency: "EUR"}}
			if c.status == Confirmed {
				o.Receipt = &own
			}
			got := c.rail.Recheck(o, c.look, c.missing)
			var extra []string
			for _, r := range got.Extra {
				extra = append(extra, r.ID)
			}
			if !slices.Equal(extra, c.extra) || got.Exception != c.asks || got.MissingSince != c.since || got.Sentence == "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestTheSamplePrefersWhatWasNeverLookedAtAndWhatIsRecent(t *testing.T) {
	const now = int64(1) << 41
	random := rand.New(rand.NewPCG(1, 2))
	var all []Candidate
	for i := range int64(4000) {
		c := Candidate{ID: i, EndedAt: now - (time.Hour).Milliseconds()}
		if i%2 == 1 {
			c.EndedAt = now - (400 * 24 * time.Hour).Milliseconds()
		}
		if i%4 >= 2 {
			c.CheckedAt = now - 1
		}
		all = append(all, c)
	}
	all = append(all, Candidate{ID: 9000, CheckedAt: now, Missing: true})
	drawn := Draw(all, 200, now, random.Int64N)
	of := map[int64]int{}
	for _, id := range drawn {
		if id != 9000 {
			of[id%4]++
		}
	}
	if len(drawn) != 200 || !slices.Contains(drawn, 9000) {
		t.Errorf("%d drawn, the missing one among them: %t", len(drawn), slices.Contains(drawn, 9000))
	}
	if of[0] < 3*of[1] || of[0] < 3*of[2] || of[1]+of[2]+of[3] == 0 {
		t.Errorf("recent and never looked at %d, old %d, looked at %d, both %d", of[0], of[1], of[2], of[3])
	}
	slices.Sort(drawn)
	if len(slices.Compact(drawn)) != len(drawn) {
		t.Error("one was drawn twice")
	}
	if one := Draw(all[:3], 200, now, random.Int64N); len(one) != 3 {
		t.Errorf("of three, %d", len(one))
	}
}

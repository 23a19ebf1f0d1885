package ledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Recheck is what one more look at an operation that ended shows.
type Recheck struct {
	Finding      LookFinding
	MissingSince int64     // since when its receipt is not shown; 0: it is, or silence proves nothing
	Extra        []Receipt // further effects: each is a refund owed
	Exception    ExceptionKind
	Sentence     string
}

// Quiet reports whether the look found nothing for anybody to do.
func (r Recheck) Quiet() bool { return len(r.Extra) == 0 && r.Exception == "" }

// goneAfter is how far apart two looks must be that both miss a receipt. The job
// runs daily, and a day in spring has 23 hours.
const goneAfter = 20 * time.Hour

// Recheck judges a look at an operation that ended. Nothing leads out of its
// status: what does not fit is a refund owed or a person's question. Who could
// not be asked, or said nothing clear, has taken nothing back.
func (r Rail) Recheck(o Operation, look Look, missingSince int64) Recheck {
	c := Recheck{Finding: look.Finding, MissingSince: missingSince, Sentence: orElse(look.Sentence, "The provider was looked at once more.")}
	switch look.Finding {
	case LookFound:
		return r.recheckFound(o, look, c)
	case LookAbsent:
		if o.Status == Confirmed {
			return r.recheckAbsent(o, look, c)
		}
		c.MissingSince = 0
	}
	return c
}

func (r Rail) recheckFound(o Operation, look Look, c Recheck) Recheck {
	var own *Receipt
	var others []Receipt
	for i, rec := range look.Records {
		switch {
		case rec.Stamp != o.OrderID:
		case o.Receipt != nil && rec.ID == o.Receipt.ID:
			own = &look.Records[i]
		case !rec.Presumed:
			others = append(others, rec)
		}
	}
	switch {
	case o.Status != Confirmed && len(others) > 0:
		c.Extra, c.Exception = others, HappenedAfterAll
		c.Sentence = fmt.Sprintf("The provider holds %s under our stamp, of an operation that ended without it.", others[0].ID)
	case own == nil && len(others) > 0:
		// One record is one effect: whether it is a second one, a person must see.
		c.Extra, c.Exception = others[1:], Contradiction
		c.Sentence = fmt.Sprintf("The provider shows %s under our stamp, and not the receipt that confirmed it.", others[0].ID)
	case own != nil && len(Compare(o, *own, r.Compared)) > 0 && !sameTerms(*own, *o.Receipt):
		c.Extra, c.Exception, c.MissingSince = others, ReceiptChanged, 0
		c.Sentence = fmt.Sprintf("%s differs now from what was approved: %s.", own.ID, difference(o, *own, Compare(o, *own, r.Compared)))
	case own != nil:
		c.Extra, c.MissingSince = others, 0
		if len(others) > 0 {
			c.Sentence = fmt.Sprintf("The provider holds %d more of it.", len(others))
		}
	}
	return c
}

// sameTerms reports whether a receipt says what it said when it confirmed: a
// person may have taken one that differs.
func sameTerms(a, b Receipt) bool {
	amount := func(r Receipt) int64 {
		if r.Amount == nil {
			return -1
		}
		return *r.Amount
	}
	return amount(a) == amount(b) && a.Currency == b.Currency && a.Recipient == b.Recipient && a.Reference == b.Reference
}

// recheckAbsent decides what it means that a receipt is not shown. It is gone
// where the rail's rule makes silence proof, and otherwise after two looks a day
// apart. Before the index had its time, and at another place than we sent to,
// silence means nothing.
func (r Rail) recheckAbsent(o Operation, look Look, c Recheck) Recheck {
	after := r.Lookup.AbsenceProvesAfter
	switch {
	case o.RailAddress != r.Address || o.RailAccount != r.Account:
		c.Sentence = "It is not there, but the rail's address or account changed since it was sent, so that proves nothing."
		return c
	case look.AskedAt < o.LastSendBy+r.Lookup.Lag.Milliseconds():
		c.Sentence = "It is not shown yet; the provider's index may be late."
		return c
	}
	proven := after > 0 && look.AskedAt >= max(o.LastSendBy+(after+r.Lookup.Lag).Milliseconds(), o.QuietFrom)
	again := c.MissingSince > 0 && look.AskedAt-c.MissingSince >= goneAfter.Milliseconds()
	if c.MissingSince == 0 {
		c.MissingSince = look.AskedAt
	}
	if !proven && !again {
		c.Sentence = "Its receipt was not shown; it is looked for once more tomorrow."
		return c
	}
	name := "The receipt that confirmed it"
	if o.Receipt != nil && o.Receipt.ID != "" {
		name = o.Receipt.ID
	}
	c.Exception, c.Sentence = ReceiptGone, name+" is not shown by the provider any more."
	return c
}

// Candidate is an operation that may be drawn for a re-check.
type Candidate struct {
	ID        int64
	EndedAt   int64
	CheckedAt int64 // 0: never
	Missing   bool  // its receipt was not shown the last time
}

// weight is how likely a candidate is drawn: what ended lately and was never
// looked at again comes first, and what is old is not forgotten.
func (c Candidate) weight(now int64) float64 {
	w := 1.0
	if now-c.EndedAt < (30 * 24 * time.Hour).Milliseconds() {
		w *= 10
	}
	if c.CheckedAt == 0 {
		w *= 10
	}
	return w
}

// Draw picks at most n of the candidates by chance, by their weights and without
// putting any back; those whose receipt was missing are all in it.
func Draw(candidates []Candidate, n int, now int64, chance func(n int64) int64) []int64 {
	type lot struct {
		id  int64
		key float64
	}
	lots := make([]lot, 0, len(candidates))
	for _, c := range candidates {
		// The n largest of u^(1/w) are a weighted sample (Efraimidis and Spirakis, 2006).
		u := (float64(chance(1<<53)) + 1) / (1 << 53)
		key := math.Log(u) / c.weight(now)
		if c.Missing {
			key = 1
		}
		lots = append(lots, lot{c.ID, key})
	}
	slices.SortFunc(lots, func(a, b lot) int { return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(a.id, b.id)) })
	var drawn []int64
	for _, l := range lots {
		if len(drawn) < n || l.key == 1 {
			drawn = append(drawn, l.id)
		}
	}
	return drawn
}

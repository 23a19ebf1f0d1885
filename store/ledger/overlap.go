package ledger

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Past is what a draft is compared with.
type Past struct {
	Earlier []Operation
	// Family holds the runs that the draft's run comes from, those that it began
	// and itself.
	Family map[string]bool
	// Answered are the overlaps of the operation that the draft replaces, of
	// which a person has said that they are other purchases.
	Answered []Overlapped
}

// FindOverlaps compares a draft with earlier operations and says whether it
// looks like a purchase that was made, or may have been made, before. The
// reason is the strongest one; every operation that holds the draft is listed,
// the strongest first, with the comparison field by field.
//
// Only open and confirmed operations of the same tenant and effect count. An
// alias counts as the operation it stands for: it is compared by its own terms,
// and stands where that one stands, so the caller passes both. What the agent
// claims (DistinctFrom) is for the person to read: it clears nothing. What a
// person has answered is not asked again.
func (p Past) FindOverlaps(draft Operation, window time.Duration, now int64) (reason Reason, found []Overlapped) {
	best := map[string]hit{}
	for _, e := range p.Earlier {
		if e.TenantID != draft.TenantID || e.Effect != draft.Effect {
			continue
		}
		e = standsFor(e, p.Earlier)
		if e.OperationID == draft.OperationID || e.Status == Rejected || e.Status == "" {
			continue
		}
		c := compareOperations(draft, e)
		c.related = c.related || p.Family[e.RunID]
		r := c.holds(draft, e, window, now)
		if r == "" {
			continue
		}
		h := hit{slices.Index(overlapReasons, r), len(best), Overlapped{e.OperationID, c.words()}}
		if known, ok := best[e.OperationID]; !ok || h.rank < known.rank {
			best[e.OperationID] = h
		}
	}
	hits := slices.SortedFunc(maps.Values(best), func(a, b hit) int {
		return cmp.Or(a.rank-b.rank, a.order-b.order)
	})
	hits = slices.DeleteFunc(hits, func(h hit) bool { return p.answered(h.Overlapped) })
	for _, h := range hits {
		found = append(found, h.Overlapped)
	}
	if len(hits) > 0 {
		reason = overlapReasons[hits[0].rank]
	}
	return reason, found
}

// answered reports whether a person has said of the replaced operation that this
// one is another purchase, and the draft does not resemble it more: whatever now
// differs differs, all else was before that person.
func (p Past) answered(v Overlapped) bool {
	return slices.ContainsFunc(p.Answered, func(a Overlapped) bool {
		return a.OperationID == v.OperationID && !slices.ContainsFunc(v.Why, func(word string) bool {
			return !strings.HasSuffix(word, string(different)) && !slices.Contains(a.Why, word)
		})
	})
}

// hit is an overlap with its rank among the reasons.
type hit struct {
	rank, order int
	Overlapped
}

// overlapReasons, the most telling first.
var overlapReasons = []Reason{SameReference, SameStep, ExactRepeat, SameRecipientAmount}

// standsFor gives an alias the name and the standing of its original. An alias
// whose original was not passed counts as unclear: it cannot be told that its
// purchase did not happen.
func standsFor(e Operation, earlier []Operation) Operation {
	for range len(earlier) {
		if e.Status != Rejected || e.DuplicateOf == "" {
			return e
		}
		x := Operation{OperationID: e.DuplicateOf, Status: UnknownHold}
		for _, o := range earlier {
			if o.TenantID == e.TenantID && o.OperationID == e.DuplicateOf {
				x = o
			}
		}
		e.OperationID, e.DuplicateOf, e.Status = x.OperationID, x.DuplicateOf, x.Status
		e.OpenAttempts, e.Quarantined = x.OpenAttempts, x.Quarantined
		e.CreatedAt, e.UpdatedAt = max(e.CreatedAt, x.CreatedAt), max(e.UpdatedAt, x.UpdatedAt)
	}
	return e
}

// sameness is the comparison of one field. Two fields of which one is missing
// are never equal, and never different either.
type sameness string

const (
	equal     sameness = "equal"
	different sameness = "different"
	missing   sameness = "missing"
)

func compareText(a, b string) sameness {
	switch {
	case a == "" || b == "":
		return missing
	case a == b:
		return equal
	}
	return different
}

type comparison struct {
	reference, recipient, amount, currency sameness
	fingerprint, step                      sameness
	related                                bool // one run, or one comes from the other
	unclear                                bool // nobody knows what became of the earlier one
}

func compareOperations(draft, e Operation) comparison {
	a, b := draft.Terms, e.Terms
	c := comparison{
		reference:   compareText(draft.KnownAs(), e.KnownAs()),
		recipient:   compareText(a.Recipient, b.Recipient),
		amount:      missing,
		currency:    compareText(strings.ToUpper(a.Currency), strings.ToUpper(b.Currency)),
		fingerprint: compareText(draft.Fingerprint, e.Fingerprint),
		step:        compareText(draft.Step, e.Step),
		related: compareText(draft.RunID, e.RunID) == equal ||
			compareText(draft.ParentRunID, e.RunID) == equal ||
			compareText(draft.RunID, e.ParentRunID) == equal,
		unclear: !e.Status.Final() && (e.OpenAttempts > 0 || e.Quarantined ||
			e.Status == InFlight || e.Status == Unknown || e.Status == UnknownHold),
	}
	if a.HasAmount && b.HasAmount {
		c.amount = different
		if a.Amount == b.Amount {
			c.amount = equal
		}
	}
	return c
}

// holds is the rule. Each case is one sentence of it.
func (c comparison) holds(draft, e Operation, window time.Duration, now int64) Reason {
	// What is still open counts at any age: nobody has settled it yet. A
	// settled one counts from the moment it was settled.
	recent := !e.Status.Final() || now-max(e.CreatedAt, e.UpdatedAt) <= window.Milliseconds()
	sameMoney := c.recipient == equal && c.amount == equal &&
		// A type of one currency may not name it, on both sides.
		(c.currency == equal || draft.Terms.Currency == "" && e.Terms.Currency == "")
	switch {
	case c.reference == equal:
		return SameReference
	case c.related && c.step == equal:
		return SameStep
	case c.fingerprint == equal && recent:
		return ExactRepeat
	case sameMoney && c.reference == missing && recent:
		return SameRecipientAmount
	case sameMoney && c.unclear: // models invent references
		return SameRecipientAmount
	}
	return ""
}

// words lists the comparison for people: the four fields that any purchase has,
// and the others where they agree.
func (c comparison) words() []string {
	why := []string{
		"reference " + string(c.reference), "recipient " + string(c.recipient),
		"amount " + string(c.amount), "currency " + string(c.currency),
	}
	if c.fingerprint == equal {
		why = append(why, "fingerprint equal")
	}
	if c.related {
		why = append(why, "run related", "step "+string(c.step))
	}
	if c.unclear {
		why = append(why, "outcome unknown")
	}
	return why
}

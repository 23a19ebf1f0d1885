package ledger

import (
	"slices"
	"strings"
)

// Bulk lets people approve several operations of a policy row with one form:
// those of up to so many minor units in the row's own currency.
type Bulk struct {
	UpTo int64 `json:"up_to"`
}

// MostTogether is how many operations one form may approve: what a person can
// still read line by line.
const MostTogether = 25

// MayTogether says whether an operation may be approved with one form beside
// others of its row and action type. What it says about people is asked for each
// of them as ever.
func (p Policy) MayTogether(o Operation) (allowed bool, why string) {
	i := slices.IndexFunc(p.Rows, func(r PolicyRow) bool { return r.Name == o.PolicyRow })
	switch {
	case o.PolicyVersion != p.Version || i < 0:
		return false, "The policy changed since it asked: this one is decided by itself."
	case p.Rows[i].Bulk == nil:
		return false, "Its rule lets nothing be approved together."
	case !o.Terms.HasAmount || !strings.EqualFold(o.Terms.Currency, p.Rows[i].When.Currency[0]):
		return false, "It names no amount in its rule's currency: this one is decided by itself."
	case o.Terms.Amount > p.Rows[i].Bulk.UpTo:
		return false, "It is over what its rule lets be approved together: this one is decided by itself."
	}
	return true, ""
}

// understood checks a row's bulk: a ceiling needs one currency that it is in.
func (b *Bulk) understood(r PolicyRow) (faults []string) {
	if b == nil {
		return nil
	}
	if r.Then != ThenAsk {
		faults = append(faults, "bulk: belongs to then: ask; nobody approves what goes out by itself")
	}
	if len(r.When.Currency) != 1 {
		faults = append(faults, "bulk: needs exactly one currency in when; a ceiling without one says nothing")
	}
	if b.UpTo <= 0 {
		faults = append(faults, "bulk: up_to must be more than nothing; write it in minor units")
	}
	return faults
}

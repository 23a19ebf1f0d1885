package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Paid is a confirmed operation and the moment when what it did was sent.
type Paid struct {
	Operation Operation
	At        int64
}

// Twinship says how two payments on two rails stand to each other.
type Twinship int

// The zero value is two purchases.
const (
	TwoPurchases Twinship = iota
	PerhapsOne            // a person finds out
	OnePurchase           // paid twice
)

// Twin compares two payments on two rails. They are one purchase where both have
// its reference, or overlap history shows them to be one step of one run, and
// where the same money moved. That recipient and amount are equal proves nothing:
// people buy the same thing twice.
func (p Paid) Twin(q Paid, window time.Duration) (Twinship, string) {
	a, b := p.Operation, q.Operation
	if a.TenantID != b.TenantID || a.OperationID == b.OperationID || a.Effect != b.Effect || a.Rail == b.Rail ||
		!a.Terms.HasAmount || !b.Terms.HasAmount || magnitude(p.At-q.At) > window.Milliseconds() ||
		compareText(a.Terms.RefundOf, b.Terms.RefundOf) == different { // parts of two charges
		return TwoPurchases, ""
	}
	reference := compareText(a.KnownAs(), b.KnownAs())
	step := oneStep(a, b) || oneStep(b, a)
	link := "reference"
	switch {
	case reference == equal:
	case step:
		link = "step of one run"
	default:
		return TwoPurchases, ""
	}
	money := ComesTo(a) == ComesTo(b) && strings.EqualFold(paidIn(a), paidIn(b))
	switch {
	case !money:
		return PerhapsOne, fmt.Sprintf("same %s, and another amount", link)
	case reference == different:
		return PerhapsOne, fmt.Sprintf("same %s and amount, and another reference", link)
	}
	return OnePurchase, fmt.Sprintf("same %s, amount and currency", link)
}

// oneStep reports whether an operation was found to overlap another one as the
// same step of the same run, or of one that it comes from.
func oneStep(later, earlier Operation) bool {
	if compareText(later.Step, earlier.Step) != equal {
		return false
	}
	if compareText(later.RunID, earlier.RunID) == equal {
		return true
	}
	return slices.ContainsFunc(later.Overlaps, func(v Overlapped) bool {
		return v.OperationID == earlier.OperationID && slices.Contains(v.Why, "run related") && slices.Contains(v.Why, "step equal")
	})
}

// paidIn is the currency that the provider shows, else the approved one.
func paidIn(o Operation) string {
	if o.Receipt != nil && o.Receipt.Currency != "" {
		return o.Receipt.Currency
	}
	return o.Terms.Currency
}

// OverlapWindow is how far apart two payments may be to be compared. A type that
// is configured no more keeps the usual one.
func (r Rulebook) OverlapWindow(o Operation) time.Duration {
	if a := r.Actions[o.ActionType]; a != nil {
		return a.Overlap.Window
	}
	return overlapWindow
}

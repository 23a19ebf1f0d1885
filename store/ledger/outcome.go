package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is what an adapter makes of a provider's answer to one attempt.
type Finding string

// The findings. What no rule of the rail names is unclear, and so is the zero
// value.
const (
	Found   Finding = "found"    // the effect, with its record
	Refused Finding = "refused"  // a definite no
	NotSent Finding = "not_sent" // not one byte left, or the rail's table says nothing ran
	Pending Finding = "pending"  // accepted; the outcome comes later
	Unclear Finding = "unknown"
	Stuck   Finding = "look" // unclear, and what the provider keeps for this key: sending it again brings the same
)

// Answer is what one attempt brought home.
type Answer struct {
	Finding    Finding
	Receipt    *Receipt
	Sighted    bool // it says that the provider did it or took it on, whatever else is wrong with it
	HTTPStatus int
	Sentence   string // the adapter's: "HTTP 402 card_declined", "No answer in 10s."
}

// ReceiptFields names the members of a receipt that a rail's configuration maps.
// What is named is compared.
type ReceiptFields struct {
	Amount, Currency, Recipient, Reference, Stamp bool
}

// Compare lists, as JSON Pointers, where a receipt differs from what was
// approved. A named member that the receipt lacks differs; what was never
// approved, because the payload names none, is not compared. A receipt without
// an id is no receipt.
func Compare(o Operation, r Receipt, named ReceiptFields) []string {
	var differ []string
	add := func(compared, same bool, pointer string) {
		if compared && !same {
			differ = append(differ, pointer)
		}
	}
	t := o.Terms
	add(true, strings.TrimSpace(r.ID) != "", "/id")
	add(named.Amount && t.HasAmount, r.Amount != nil && *r.Amount == t.Amount, "/amount")
	add(named.Currency && t.Currency != "", strings.EqualFold(r.Currency, t.Currency), "/currency")
	add(named.Recipient && t.Recipient != "", r.Recipient == t.Recipient, "/recipient")
	add(named.Reference && t.Reference != "", r.Reference == t.Reference, "/reference")
	add(named.Stamp, r.Stamp != "" && r.Stamp == o.OrderID, "/stamp")
	return differ
}

// Settlement is what an answer means: for its attempt, for its operation, and
// for the refund ledger.
type Settlement struct {
	Outcome  AttemptOutcome
	Event    Event // empty: no status change
	Reason   Reason
	Accepted bool   // the provider took it on: never send it again
	LookOnly bool   // a same-key resend cannot tell more: only looking can
	Sighted  bool   // the provider showed something of it, which silence does not take back
	Late     string // "second_effect" or "late_effect" on an operation that had ended
	Sentence string
}

// The kinds of a late effect. Each is money to be looked after.
const (
	SecondEffect = "second_effect"
	LateEffect   = "late_effect"
)

// Settle decides what an answer means. The operation and the attempt are as
// they are stored, before the answer. A receipt counts whoever brings it; a
// negative result changes the status only under the fence it was sent under,
// and only if no other attempt could still act.
func Settle(o Operation, a Attempt, ans Answer, mismatches []string, fenceHolds bool) Settlement {
	var s Settlement
	switch {
	case ans.Finding == Found && ans.Receipt != nil:
		s = settleReceipt(o, *ans.Receipt, mismatches)
	case ans.Finding == Refused:
		s = settleNegative(o, a, fenceHolds, Settlement{Outcome: AttemptDeclined, Event: Decline, Reason: Declined,
			Sentence: "The provider refused this attempt."})
	case ans.Finding == NotSent:
		s = settleNegative(o, a, fenceHolds, Settlement{Outcome: AttemptNotSent, Event: Unsend,
			Sentence: "Nothing ran this time."})
	case ans.Finding == Pending:
		s = Settlement{Outcome: AttemptUnknown, Event: lose(o, fenceHolds), Accepted: !o.Status.Final(),
			Sentence: "The provider accepted it and owes us the outcome; it is never sent again."}
	case ans.Finding == Stuck:
		s = Settlement{Outcome: AttemptUnknown, Event: lose(o, fenceHolds), LookOnly: !o.Status.Final(),
			Sentence: "The answer proves nothing, and the provider keeps it for this key: only looking can tell more."}
	default:
		s = Settlement{Outcome: AttemptUnknown, Event: lose(o, fenceHolds),
			Sentence: "The answer proves nothing: it may or may not have happened."}
	}
	s.Outcome = firmer(a.Outcome, s.Outcome)
	s.Sighted = ans.Sighted || ans.Finding == Found || ans.Finding == Pending
	if !fenceHolds && s.Event == "" && s.Late == "" && !o.Status.Final() {
		s.Sentence += " It came under an old fence and changes no status."
	}
	if ans.Sentence != "" {
		s.Sentence += " " + ans.Sentence
	}
	return s
}

func settleReceipt(o Operation, r Receipt, mismatches []string) Settlement {
	s := Settlement{Outcome: AttemptReceipt}
	if len(mismatches) > 0 {
		// Something happened, but not what was approved: neither success nor
		// refusal, so the attempt stays unresolved.
		s.Outcome = AttemptUnknown
	}
	differs := "differs from what was approved: " + difference(o, r, mismatches)
	notOurs := slices.Contains(mismatches, "/stamp") || slices.Contains(mismatches, "/id")
	switch {
	case o.Status.Final() && notOurs:
		s.Sentence = fmt.Sprintf("Receipt %s %s. It is not shown to be this operation's, so no money is owed for it; it is kept as evidence.", r.ID, differs)
	case o.Status == Rejected:
		s.Late = LateEffect
		s.Sentence = fmt.Sprintf("Receipt %s arrived after the operation was rejected: it happened all the same.", r.ID)
	case o.Status == Confirmed && (o.Receipt == nil || o.Receipt.ID == "" || r.ID == ""):
		s.Sentence = "A receipt arrived for a confirmed operation; without both ids it cannot be told from the first."
	case o.Status == Confirmed && o.Receipt.ID == r.ID:
		s.Sentence = fmt.Sprintf("Receipt %s is the one we hold.", r.ID)
	case o.Status == Confirmed:
		s.Late = SecondEffect
		s.Sentence = fmt.Sprintf("Receipt %s is another one than %s: it happened twice.", r.ID, o.Receipt.ID)
	case len(mismatches) > 0 && o.May(Mismatch, Worker, 0):
		s.Event, s.Reason = Mismatch, ReceiptMismatch
		s.Sentence = fmt.Sprintf("Receipt %s %s.", r.ID, differs)
	case len(mismatches) > 0:
		s.Sentence = fmt.Sprintf("Receipt %s %s; it is kept as evidence.", r.ID, differs)
	case o.May(Receive, Worker, 0):
		s.Event = Receive
		s.Sentence = fmt.Sprintf("Receipt %s matches what was approved.", r.ID)
	default:
		s.Sentence = fmt.Sprintf("Receipt %s matches, and is kept as evidence: only a person clears this hold.", r.ID)
	}
	return s
}

// settleNegative keeps the definite outcome of the attempt. It speaks for the
// operation only if no other attempt could still act.
func settleNegative(o Operation, a Attempt, fenceHolds bool, s Settlement) Settlement {
	after := o.Resolve(a, s.Outcome)
	if after.holds(SomeOpen, 0) {
		s.Sentence += " Another one may have acted."
	}
	if !fenceHolds || !after.May(s.Event, Worker, 0) {
		s.Event, s.Reason = lose(o, fenceHolds), ""
	}
	return s
}

// lose is the event of an answer that proves nothing, where one is due.
func lose(o Operation, fenceHolds bool) Event {
	if fenceHolds && o.May(Lose, Worker, 0) {
		return Lose
	}
	return ""
}

// firmer keeps what is definite about an attempt: a receipt outlives every
// other answer, a definite no outlives silence.
func firmer(was, now AttemptOutcome) AttemptOutcome {
	if was == AttemptReceipt || was.Resolved() && now != AttemptReceipt {
		return was
	}
	return now
}

// Resolve returns the operation with the attempt's outcome counted: an attempt
// that was unresolved and now has a definite outcome is no longer open. Count it
// before [Operation.On], whose guards ask about the others.
func (o Operation) Resolve(a Attempt, outcome AttemptOutcome) Operation {
	if outcome.Resolved() && !a.Outcome.Resolved() && o.OpenAttempts > 0 {
		o.OpenAttempts--
	}
	return o
}

// difference says in words where a receipt differs.
func difference(o Operation, r Receipt, mismatches []string) string {
	var words []string
	for _, m := range mismatches {
		switch {
		case m == "/amount" && r.Amount != nil:
			words = append(words, fmt.Sprintf("it shows %s, and %s was approved", Currencies{}.Format(*r.Amount, orElse(r.Currency, o.Terms.Currency)), Currencies{}.Format(o.Terms.Amount, o.Terms.Currency)))
		case m == "/id":
			words = append(words, "its id is missing or another operation's")
		default:
			words = append(words, strings.TrimPrefix(m, "/"))
		}
	}
	return strings.Join(words, ", ")
}

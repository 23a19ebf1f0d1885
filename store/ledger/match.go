package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// MatchRule names why a line is held to be an operation.
type MatchRule string

// The rules, strongest first. The first four match by themselves, the fourth
// only where it leads to one line and one operation; what only fits by amount
// and day is a suggestion, and a person decides.
const (
	ByProviderID MatchRule = "provider_id"
	ByStamp      MatchRule = "stamp"
	ByHash       MatchRule = "hash"
	ByReference  MatchRule = "reference"
	ByAmountDate MatchRule = "amount_date" // with the counterparty
	ByHand       MatchRule = "person"
)

// matchRules are those that the program follows by itself, strongest first.
var matchRules = []MatchRule{ByProviderID, ByStamp, ByHash, ByReference, ByAmountDate}

// dayEdge is how far a booking day may lie from ours: a day begins elsewhere at
// another hour, and one day either side covers every zone.
const dayEdge = 24 * time.Hour

// dateWindow is how long after its send a payment may be booked and still be
// suggested by amount and day alone.
const dateWindow = 4 * 24 * time.Hour // sent on Friday evening, booked on Tuesday

// MatchCandidate is one operation that a rule leads to, with what else is known of it.
type MatchCandidate struct {
	Rule      MatchRule
	Operation Operation
	ByPerson  bool // its receipt is a person's word
	Owed      bool // the line is an effect of it for which a refund is owed already
	// Taken is the line that is this operation already; nil: none is.
	Taken *KeptLine
	// Against is another line of this operation that went the other way; nil: none did.
	Against *KeptLine
	// Rivals is how many other lines of the rail have the same reference and amount.
	Rivals int
}

// LineVerdict is what becomes of a line.
type LineVerdict struct {
	State     LineState
	Finding   LineFinding
	Rule      MatchRule
	Operation *Operation
	// Second is an effect that nobody wanted: money owed. It is the line's own, or
	// that of the line which was matched before the receipt itself turned up.
	Second *Receipt
	// Evidence says that the line is evidence about the operation.
	Evidence   bool
	Agrees     bool  // it shows what was approved
	Difference int64 // of a match; explained by the fee that the line states
	Sentence   string
}

// Judge decides what a line is, from all the operations that any rule leads to.
// The strongest rule speaks; two operations with an equal or independent claim
// are a contradiction, which only a person ends.
func (l KeptLine) Judge(all []MatchCandidate) LineVerdict {
	fitting := slices.DeleteFunc(slices.Clone(all), func(c MatchCandidate) bool {
		return slices.Contains(l.NotThis, c.Operation.OperationID) || !c.Operation.Terms.HasAmount || !kindsAgree(l.StatementLine, c)
	})
	strong := slices.DeleteFunc(slices.Clone(fitting), func(c MatchCandidate) bool { return c.Rule == ByReference || c.Rule == ByAmountDate })
	if rival := otherOperation(strong); rival != nil {
		return LineVerdict{State: LineUnmatched, Finding: LineContradicts, Rule: strong[0].Rule, Operation: &rival.Operation, Evidence: !rival.Operation.Status.Final(),
			Sentence: fmt.Sprintf("It is %s by its %s and %s by its %s. A person says which one is right; nothing was changed.",
				strong[0].Operation.OperationID, strong[0].Rule.words(), rival.Operation.OperationID, rival.Rule.words())}
	}
	for _, rule := range matchRules {
		var of []MatchCandidate
		for _, c := range fitting {
			if c.Rule == rule {
				of = append(of, c)
			}
		}
		if rule == ByReference {
			of = notDeclined(of)
		}
		if len(of) == 0 {
			continue
		}
		if v := l.judgeBy(rule, of); v.State != "" {
			return v
		}
	}
	switch l.Kind {
	case LineFee, LinePayout, LineAdjustment: // of every account
		return LineVerdict{State: LineUnmatched}
	}
	return l.disowned(all)
}

// disowned is the verdict of a line that nothing fits. Where it has the id of an
// operation all the same and is of another kind, a person is told which one: that
// it was not paid through here would be more than is known.
func (l KeptLine) disowned(all []MatchCandidate) LineVerdict {
	v := LineVerdict{State: LineUnmatched, Finding: NotOurs}
	if l.Kind == LineRefund || l.Kind == LineDispute { // of a charge, and counted with it
		return v
	}
	for _, c := range all {
		byName := c.Rule != ByReference && c.Rule != ByAmountDate
		if byName && c.Operation.Terms.HasAmount && !slices.Contains(l.NotThis, c.Operation.OperationID) {
			v.Rule, v.Operation = c.Rule, &c.Operation
			v.Sentence = fmt.Sprintf("It has the %s of %s, and is of another kind: a person compares the two.", c.Rule.words(), c.Operation.OperationID)
			return v
		}
	}
	return v
}

// Says is the sentence about a line. Of lines that are nothing of ours, which
// may be nearly all of a file, none is stored.
func (l KeptLine) Says() string {
	switch {
	case l.Sentence != "":
		return l.Sentence
	case l.Finding == NotOurs:
		return "No operation of this rail fits it: this was not paid through here."
	case l.WeighedAt == 0:
		return "It was not looked at yet."
	}
	return fmt.Sprintf("A line of the kind %s; no operation is behind it.", l.Kind)
}

// notDeclined leaves out what was rejected, where something else has the reference:
// a purchase that was declined and asked for again keeps its reference.
func notDeclined(of []MatchCandidate) []MatchCandidate {
	live := slices.DeleteFunc(slices.Clone(of), func(c MatchCandidate) bool { return c.Operation.Status == Rejected })
	if len(live) == 0 {
		return of
	}
	return live
}

func otherOperation(of []MatchCandidate) *MatchCandidate {
	for i := range of {
		if of[i].Operation.OperationID != of[0].Operation.OperationID {
			return &of[i]
		}
	}
	return nil
}

// judgeBy is the verdict of one rule; the zero verdict leaves it to a weaker one.
func (l KeptLine) judgeBy(rule MatchRule, of []MatchCandidate) LineVerdict {
	if rule == ByAmountDate {
		return l.suggestByDay(of)
	}
	c := of[0]
	if otherOperation(of) != nil {
		c = nearest(l, of)
		if !l.showsAmount(c.Operation) {
			return LineVerdict{}
		}
		return LineVerdict{State: LineSuggested, Rule: rule, Operation: &c.Operation,
			Sentence: fmt.Sprintf("%d operations have its %s; the nearest by day is suggested.", len(of), rule.words())}
	}
	switch {
	case c.Owed:
		return LineVerdict{State: LineUnmatched, Finding: TwiceOnStatement, Rule: rule, Operation: &c.Operation,
			Sentence: fmt.Sprintf("It is an effect of %s for which a refund is owed already.", c.Operation.OperationID)}
	case c.Against != nil && (rule != ByProviderID || c.Against.State == LineMatched): // else this is the receipt itself
		return l.wentTheOtherWay(rule, c)
	case !strings.EqualFold(l.Currency, c.Operation.Terms.Currency) && c.Operation.Terms.Currency != "",
		!l.showsAmount(c.Operation):
		return l.differs(rule, c)
	case c.Taken != nil && c.Taken.ID != l.ID:
		return l.second(rule, c)
	case !c.Operation.Status.Final():
		return LineVerdict{State: LineSuggested, Finding: LineAnswersUnknown, Rule: rule, Operation: &c.Operation, Evidence: true, Agrees: true,
			Sentence: fmt.Sprintf("It answers what is not known of %s: same %s, amount and currency. A person confirms it.", c.Operation.OperationID, rule.words())}
	case c.Operation.Status == Rejected && rule == ByReference:
		return LineVerdict{State: LineUnmatched, Finding: LateOnStatement, Rule: rule, Operation: &c.Operation,
			Sentence: fmt.Sprintf("%s has its reference and amount and was rejected. A reference is no proof: a person finds out whether it happened all the same.", c.Operation.OperationID)}
	case c.Operation.Status == Rejected:
		return LineVerdict{State: LineUnmatched, Finding: LateOnStatement, Rule: rule, Operation: &c.Operation, Evidence: true, Agrees: true, Second: l.effect(),
			Sentence: fmt.Sprintf("%s was rejected, and the statement shows its effect (same %s).", c.Operation.OperationID, rule.words())}
	case c.ByPerson && l.namesAnotherThan(c.Operation):
		return LineVerdict{State: LineSuggested, Finding: ProbablePair, Rule: rule, Operation: &c.Operation,
			Sentence: fmt.Sprintf("%s is confirmed by a person's word as %s; this line has the same %s and is called %s. Probably one payment: a person joins them.",
				c.Operation.OperationID, c.Operation.Receipt.ID, rule.words(), l.ProviderID)}
	case rule == ByReference && c.Rivals > 0:
		return LineVerdict{State: LineSuggested, Finding: TwiceOnStatement, Rule: rule, Operation: &c.Operation,
			Sentence: fmt.Sprintf("%d more have the same reference and amount: one is the payment, the rest may be too many. A person decides.", c.Rivals)}
	}
	return LineVerdict{State: LineMatched, Rule: rule, Operation: &c.Operation, Agrees: true, Difference: l.difference(c.Operation),
		Sentence: fmt.Sprintf("Same %s.", rule.words())}
}

// wentTheOtherWay is a line beside one of the same operation that went the other
// way: the one paid, the other took it back, and a file that does not say of what
// kind its lines are leaves open which. An effect too many it is not.
func (l KeptLine) wentTheOtherWay(rule MatchRule, c MatchCandidate) LineVerdict {
	return LineVerdict{State: LineUnmatched, Finding: LineContradicts, Rule: rule, Operation: &c.Operation, Evidence: !c.Operation.Status.Final(),
		Sentence: fmt.Sprintf("It has the %s of %s, as line %d of %s has, and went the other way: one of them takes back what the other paid. A person says which; nothing was counted.",
			rule.words(), c.Operation.OperationID, c.Against.Number, Currencies{}.Format(c.Against.Amount, c.Against.Currency))}
}

// differs is an operation of ours with another amount: never matched silently.
func (l KeptLine) differs(rule MatchRule, c MatchCandidate) LineVerdict {
	if c.Taken != nil && rule == ByReference {
		return LineVerdict{} // a second part of something, say; the reference alone proves nothing
	}
	o := c.Operation
	return LineVerdict{State: LineSuggested, Finding: AmountDiffers, Rule: rule, Operation: &o, Evidence: !o.Status.Final() && rule != ByReference,
		Sentence: fmt.Sprintf("Same %s as %s, but it shows %s and %s was expected.", rule.words(), o.OperationID,
			Currencies{}.Format(magnitude(l.Gross), l.Currency), Currencies{}.Format(ComesTo(o), o.Terms.Currency))}
}

// second is a line for an operation that another line is already. What is not
// the receipt that we hold is the effect too many.
func (l KeptLine) second(rule MatchRule, c MatchCandidate) LineVerdict {
	o := c.Operation
	v := LineVerdict{State: LineUnmatched, Finding: TwiceOnStatement, Rule: rule, Operation: &o,
		Sentence: fmt.Sprintf("%s is on the statement already (line %d); this is the same %s once more.", o.OperationID, c.Taken.Number, rule.words())}
	if o.Status != Confirmed || l.ProviderID == "" || c.Taken.ProviderID == "" || l.ProviderID == c.Taken.ProviderID {
		return v // it cannot be told from the first by name: a person decides
	}
	v.Second = l.effect()
	if o.Receipt != nil && o.Receipt.ID == l.ProviderID {
		v.Second = c.Taken.effect()
	}
	return v
}

// suggestByDay suggests what fits by amount, counterparty and day. It never
// matches by itself.
func (l KeptLine) suggestByDay(of []MatchCandidate) LineVerdict {
	near := slices.DeleteFunc(slices.Clone(of), func(c MatchCandidate) bool {
		return c.Taken != nil || c.Operation.Status != Confirmed || !l.showsAmount(c.Operation) || !l.nearDay(c.Operation)
	})
	if len(near) == 0 {
		return LineVerdict{}
	}
	c := nearest(l, near)
	sentence := "Same amount, day and counterparty, which proves nothing: a person decides."
	if n := len(near) - 1; n > 0 {
		sentence = fmt.Sprintf("Same amount, day and counterparty, and %d more fit as well: a person decides.", n)
	}
	return LineVerdict{State: LineSuggested, Rule: ByAmountDate, Operation: &c.Operation, Sentence: sentence}
}

// effect is the line as a receipt.
func (l KeptLine) effect() *Receipt {
	amount := magnitude(l.Gross)
	id := l.ProviderID
	if id == "" {
		id = orElse(l.LineID, l.Hash)
	}
	return &Receipt{ID: id, Amount: &amount, Currency: l.Currency, Recipient: l.Counterparty, Reference: l.Reference, Stamp: l.Stamp}
}

// AsReceipt is the line as evidence of an effect.
func (l KeptLine) AsReceipt() Receipt { return *l.effect() }

func (l KeptLine) namesAnotherThan(o Operation) bool {
	return l.ProviderID != "" && o.Receipt != nil && o.Receipt.ID != l.ProviderID
}

// ComesTo is what a statement should show of an operation.
func ComesTo(o Operation) int64 {
	if o.Receipt != nil && o.Receipt.Amount != nil {
		return *o.Receipt.Amount
	}
	return o.Terms.Amount
}

// showsAmount compares amounts before the fee, and after it where the account is
// told of nothing else.
func (l StatementLine) showsAmount(o Operation) bool {
	want := ComesTo(o)
	return magnitude(l.Gross) == want || magnitude(l.Amount) == want
}

// difference is what the line shows less what the operation comes to.
func (l StatementLine) difference(o Operation) int64 {
	return l.Amount - SignedLike(l.Amount, ComesTo(o))
}

// SignedLike gives an amount the sign of another one.
func SignedLike(sign, amount int64) int64 {
	if sign < 0 {
		return -amount
	}
	return amount
}

// magnitude is the amount without its sign; the lowest number has none.
func magnitude(n int64) int64 {
	if n < 0 {
		return max(-n, -(n + 1))
	}
	return n
}

// kindsAgree compares what a line says that it is with what the operation does,
// where both sides tell. A refund is never a charge.
func kindsAgree(l StatementLine, c MatchCandidate) bool {
	refund, charge, payout := c.Operation.Effect == "refund" || c.Operation.Terms.RefundOf != "", c.Operation.Effect == "charge", c.Operation.Effect == "payout"
	told := refund || charge || payout
	out := l.Amount < 0
	switch l.Kind {
	case LineFee, LineDispute, LineAdjustment:
		return false
	case LineCharge:
		return !told || charge && !refund && !out
	case LineRefund:
		return !told || refund && out
	case LinePayout, LineTransfer:
		return !told || payout && out
	}
	// The line does not say. Of what a reference or an amount alone leads to, money
	// that went out is no money that came in.
	if c.Rule == ByReference || c.Rule == ByAmountDate {
		return !(refund || payout) || out
	}
	return true
}

// nearDay compares the booking day with when it was sent, one day either side of
// the edges of a zone.
func (l StatementLine) nearDay(o Operation) bool {
	sent := max(o.FirstMarkAt, o.CreatedAt)
	return l.At >= sent-dayEdge.Milliseconds()-dayLength(l) && l.At <= sent+(dateWindow+dayEdge).Milliseconds()
}

// dayLength is how far before a moment of the day its date may stand.
func dayLength(l StatementLine) int64 {
	if l.DateOnly {
		return (24 * time.Hour).Milliseconds()
	}
	return 0
}

func nearest(l KeptLine, of []MatchCandidate) MatchCandidate {
	return slices.MinFunc(of, func(a, b MatchCandidate) int {
		return int(min(max(magnitude(a.Operation.CreatedAt-l.At)-magnitude(b.Operation.CreatedAt-l.At), -1), 1))
	})
}

func (r MatchRule) words() string {
	switch r {
	case ByProviderID:
		return "provider id"
	case ByStamp:
		return "order id"
	case ByHash:
		return "transaction hash"
	case ByReference:
		return "reference"
	case ByAmountDate:
		return "amount, day and counterparty"
	}
	return string(r)
}

// Month is the calendar month of a zone that a moment falls in: from its first
// moment to that of the next one. Every moment falls in exactly one.
func Month(at int64, zone *time.Location) (from, to int64) {
	t := time.UnixMilli(at).In(zone)
	first := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, zone)
	return first.UnixMilli(), first.AddDate(0, 1, 0).UnixMilli()
}

// MatchSum adds up one side of a match, and refuses what no account can hold.
func MatchSum(sides []MatchSide) (sum int64, ok bool) {
	ok = true
	for _, s := range sides {
		if sum, ok = AddAmounts(sum, s.Amount); !ok {
			return 0, false
		}
	}
	return sum, true
}

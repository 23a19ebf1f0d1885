package views

import (
	"fmt"
	"strings"

	"holdfast/store/ledger"
)

// Tone is the colour of a state. Violet means that an outcome is unknown, and
// nothing else in the product is violet.
type Tone string

// The tones.
const (
	Amber  Tone = "amber"  // a person must decide
	Grey   Tone = "grey"   // waiting for its turn
	Blue   Tone = "blue"   // under way
	Violet Tone = "violet" // unknown
	Green  Tone = "green"  // shown to have happened
	Slate  Tone = "slate"  // ended without an effect
	Red    Tone = "red"    // look twice: a new recipient, a changed amount
)

// Icon names a drawing in icons.templ. The word always stands beside it.
type Icon string

// The icons.
const (
	Hand      Icon = "hand"
	Clock     Icon = "clock"
	Arrow     Icon = "arrow"
	Question  Icon = "question"
	Check     Icon = "check"
	Bar       Icon = "bar"
	Circle    Icon = "circle"
	Cross     Icon = "cross"
	Hourglass Icon = "hourglass"
	Back      Icon = "back"
	Chain     Icon = "chain"
	Return    Icon = "return"
	Warn      Icon = "warn"
)

// Word is a status as people read it.
type Word struct {
	Text string
	Sub  string // the rest of the sentence; may be empty
	Icon Icon
	Tone Tone
}

// StatusWord says where an operation stands. Nothing else in the product words
// a status.
func StatusWord(o ledger.Operation) Word {
	switch o.Status {
	case ledger.AwaitingApproval:
		return Word{"Needs approval", "a person must decide; nothing was sent", Hand, Amber}
	case ledger.Ready:
		if o.Attempts > 0 {
			return Word{"Ready", "waiting to be sent again with the same key", Clock, Grey}
		}
		return Word{"Ready", "allowed, waiting for its turn", Clock, Grey}
	case ledger.InFlight:
		return Word{"Sending", "handed to the provider; no answer yet", Arrow, Blue}
	case ledger.Unknown:
		return Word{"Outcome unknown", "we are looking", Question, Violet}
	case ledger.UnknownHold:
		switch {
		case Overlaps(o.Reason):
			return Word{"Held", "overlaps another operation; nothing was sent", Question, Violet}
		case o.Reason == ledger.ClaimsExhausted:
			return Word{"Held", "needs a person; nothing was sent", Question, Violet}
		}
		return Word{"Outcome unknown", "needs a person", Question, Violet}
	case ledger.Confirmed:
		return Word{"Confirmed", "we hold a receipt", Check, Green}
	case ledger.Rejected:
		return rejectedWord(o.Reason)
	}
	// A status that this page does not know is not a good one.
	return Word{"Outcome unknown", "this page does not know the status; ask an operator", Question, Violet}
}

func rejectedWord(r ledger.Reason) Word {
	switch r {
	case ledger.Declined:
		return Word{"Declined by provider", "the provider said no, and nothing happened", Bar, Slate}
	case ledger.NotExecuted:
		return Word{"Did not happen", "shown not to have happened, with evidence", Circle, Slate}
	case ledger.Observed:
		return Word{"Did not happen", "observe mode: recorded and judged, never sent", Circle, Slate}
	case ledger.ApprovalExpired:
		return Word{"Expired", "nobody decided in time; nothing was sent", Hourglass, Slate}
	case ledger.Cancelled:
		return Word{"Withdrawn", "taken back before sending", Back, Slate}
	case ledger.Replaced:
		return Word{"Withdrawn", "replaced by a newer operation", Back, Slate}
	case ledger.RunStopped:
		return Word{"Withdrawn", "its run was stopped before sending", Back, Slate}
	case ledger.Duplicate:
		return Word{"Same purchase", "an earlier operation's result stands for it", Chain, Slate}
	case ledger.Denied:
		return Word{"Rejected", "a person said no before sending", Cross, Slate}
	case ledger.PolicyDenied:
		return Word{"Rejected", "a rule said no before sending", Cross, Slate}
	case ledger.PrerequisiteRejected:
		return Word{"Rejected", "what it was waiting for did not happen", Cross, Slate}
	case ledger.AuthorityGone:
		return Word{"Rejected", "it was no longer allowed when its turn came; nothing was sent", Cross, Slate}
	}
	return Word{"Rejected", "nothing was sent", Cross, Slate}
}

// Overlaps reports whether a hold is about an earlier operation that looks like
// the same purchase.
func Overlaps(r ledger.Reason) bool {
	switch r {
	case ledger.SameReference, ledger.SameRecipientAmount, ledger.SameStep, ledger.ExactRepeat:
		return true
	}
	return false
}

// BeforeSend reports whether a held operation was never sent, which decides the
// questions a person is asked about it.
func BeforeSend(o ledger.Operation) bool { return o.Attempts == 0 && !o.Quarantined }

// HoldReason says why an operation is held. Whether there was no answer, or one
// that could not be read, is told by its attempts.
func HoldReason(o ledger.Operation, attempts []ledger.Attempt) string {
	answer := "No answer from the provider"
	if o.Accepted {
		answer = "The provider accepted it, and did not say what became of it"
	} else if n := len(attempts); n > 0 && attempts[n-1].HTTPStatus > 0 {
		answer = "Answer could not be read"
	}
	switch o.Reason {
	case ledger.SameReference, ledger.SameRecipientAmount, ledger.SameStep, ledger.ExactRepeat:
		return "Overlaps another operation"
	case ledger.ClaimsExhausted:
		return "Attempts used up"
	case ledger.Inconclusive:
		return answer
	case ledger.KeyExpired:
		return answer + ", and a repeat may no longer be recognised"
	case ledger.AuthorityGone:
		return answer + ", and sending is no longer allowed"
	case ledger.EvidenceConflict, ledger.ReceiptMismatch:
		return "Evidence disagrees"
	case ledger.AttemptsExhausted, ledger.BudgetExhausted:
		return "Attempts used up"
	case ledger.Restored:
		return "Worker lost before saving the receipt"
	}
	return ""
}

// overlapWhy says in words what two operations share.
func overlapWhy(w string) string {
	switch w {
	case string(ledger.SameReference), "reference":
		return "same reference"
	case string(ledger.SameRecipientAmount):
		return "same recipient and amount"
	case string(ledger.SameStep), "step":
		return "same step of the same run"
	case string(ledger.ExactRepeat), "fingerprint":
		return "same payload, byte for byte"
	case "recipient":
		return "same recipient"
	case "amount":
		return "same amount"
	case "currency":
		return "same currency"
	}
	return strings.ReplaceAll(w, "_", " ")
}

// attemptWord says what is known about one delivery.
func attemptWord(a ledger.AttemptOutcome) Word {
	switch a {
	case ledger.AttemptReceipt:
		return Word{Text: "Receipt", Icon: Check, Tone: Green}
	case ledger.AttemptDeclined:
		return Word{Text: "Declined by provider", Icon: Bar, Tone: Slate}
	case ledger.AttemptNotSent:
		return Word{Text: "Not sent", Icon: Circle, Tone: Slate}
	case ledger.AttemptOpen:
		return Word{Text: "No answer yet", Icon: Arrow, Tone: Blue}
	}
	return Word{Text: "Unknown", Icon: Question, Tone: Violet}
}

// sourceWord says where evidence comes from.
func sourceWord(source string) string {
	switch source {
	case "answer":
		return "Provider's answer"
	case "lookup":
		return "Look-up"
	case "person":
		return "Brought by a person"
	case "event":
		return "Provider's event"
	case "statement":
		return "Statement line"
	}
	return source
}

// findingWord says what evidence shows. Absent is not proof: the rail decides
// when it counts.
func findingWord(finding string) string {
	switch finding {
	case "found":
		return "found"
	case "absent":
		return "not found"
	case "inconclusive", "unknown", "look":
		return "proves nothing"
	case "unreachable":
		return "provider not reachable"
	case "declined":
		return "declined"
	case "mismatch":
		return "differs from what was approved"
	case "note":
		return "note"
	}
	return finding
}

// eventWord says what happened, in the past tense of the timeline.
func eventWord(event string) string {
	switch ledger.Event(event) {
	case ledger.Allow:
		return "recorded, policy allows"
	case ledger.Ask:
		return "recorded, policy asks for people"
	case ledger.Overlap:
		return "recorded, overlaps an earlier operation"
	case ledger.Forbid:
		return "recorded, policy says no"
	case ledger.Observe:
		return "recorded, observe mode"
	case ledger.Repeat:
		return "answered with an earlier result"
	case ledger.Approve:
		return "approved"
	case ledger.Deny:
		return "rejected"
	case ledger.Expire:
		return "expired"
	case ledger.Cancel:
		return "withdrawn"
	case ledger.Replace:
		return "replaced by a newer operation"
	case ledger.StopRun:
		return "run stopped"
	case ledger.Fail:
		return "what it waited for was rejected"
	case ledger.Withdraw:
		return "no longer allowed"
	case ledger.AskAgain:
		return "needs approval again"
	case ledger.TakeBack:
		return "approval taken back"
	case ledger.GiveUp:
		return "held for a person"
	case ledger.Mark:
		return "marked, then sent"
	case ledger.Receive:
		return "receipt saved"
	case ledger.Decline:
		return "declined by provider"
	case ledger.Unsend:
		return "shown not to have been sent"
	case ledger.Lose:
		return "no answer"
	case ledger.Disprove:
		return "shown not to have happened"
	case ledger.Mismatch:
		return "receipt differs from what was approved"
	case ledger.Merge:
		return "same purchase"
	case ledger.Separate:
		return "different purchase, let go"
	case ledger.SeparateAsk:
		return "different purchase, needs approval"
	case ledger.SayHappened:
		return "settled: it happened"
	case ledger.SayNotHappened:
		return "settled: it did not happen"
	case ledger.SendAgain:
		return "released to be sent again"
	case ledger.StillUnknown:
		return "still unknown"
	case ledger.Restore:
		return "restored from a backup"
	}
	switch event { // what is noted without a change of status
	case "claim":
		return "taken by a worker"
	case "release":
		return "handed back by the worker"
	case "look":
		return "looked up"
	case "event":
		return "provider's event kept"
	case "look_again":
		return "asked to look again"
	case "answer":
		return "answer kept"
	case "open":
		return "refund owed recorded"
	}
	return strings.ReplaceAll(strings.ReplaceAll(event, "_", " "), "-", " ")
}

// verb is the action as a person would say it, from what it does out there.
func verb(o ledger.Operation) string {
	switch o.Effect {
	case "charge":
		return "Charge"
	case "refund":
		return "Refund"
	case "payout":
		return "Payout"
	case "transfer":
		return "Transfer"
	case "email":
		return "E-mail"
	case "crm":
		return "CRM update"
	}
	return sentenceCase(o.ActionType)
}

// sentenceCase turns create_payment into "Create payment".
func sentenceCase(name string) string {
	s := strings.ReplaceAll(strings.ReplaceAll(name, "_", " "), "-", " ")
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

// noun is the verb inside a sentence: "Approve $480.00 refund".
func noun(o ledger.Operation) string {
	v := verb(o)
	if o.Effect == "crm" {
		return v
	}
	return strings.ToLower(v)
}

// amount is the money of an operation, or nothing if it has none.
func (f Frame) amount(o ledger.Operation) string {
	if !o.Terms.HasAmount {
		return ""
	}
	return f.money(o.Terms.Amount, o.Terms.Currency)
}

// inFull is the money of an operation without a sign that several countries
// write, and the number that programs send: "0.05 USD · 5 minor units".
func (f Frame) inFull(o ledger.Operation) string {
	if !o.Terms.HasAmount {
		return ""
	}
	written, raw := f.Money.Format(o.Terms.Amount, o.Terms.Currency), minorUnits(o.Terms.Amount)
	if strings.HasPrefix(written, raw) { // nobody knows where its point is
		return written
	}
	return written + " · " + raw
}

func minorUnits(amount int64) string { return fmt.Sprintf("%d minor units", amount) }

// what is an operation's headline: "Charge $480.00".
func (f Frame) what(o ledger.Operation) string {
	if a := f.amount(o); a != "" {
		return verb(o) + " " + a
	}
	return verb(o)
}

// object is an operation inside a button or sentence: "$480.00 refund".
func (f Frame) object(o ledger.Operation) string {
	if a := f.amount(o); a != "" {
		return a + " " + noun(o)
	}
	return noun(o)
}

// sums lists amounts, one a currency, never added up.
func (f Frame) sums(sums []Sum) string {
	parts := make([]string, len(sums))
	for i, s := range sums {
		parts[i] = f.money(s.Amount, s.Currency)
	}
	return strings.Join(parts, " + ")
}

// refundWord says where a refund owed stands.
func refundWord(r ledger.RefundOwed) Word {
	switch r.Status {
	case "owed":
		return Word{Text: "Owed", Icon: Return, Tone: Amber}
	case "settling":
		return Word{Text: "Refund sending", Icon: Arrow, Tone: Blue}
	case "settled":
		return Word{Text: "Settled", Icon: Check, Tone: Green}
	case "waived":
		return Word{Text: "Waived", Icon: Back, Tone: Slate}
	}
	return Word{Text: sentenceCase(string(r.Status)), Icon: Return, Tone: Amber}
}

// toUs reports the direction of an entry.
func toUs(r ledger.RefundOwed) bool { return r.Direction == "owed_to_us" }

// owedBy says in which direction money is owed, before the name of the other.
func owedBy(r ledger.RefundOwed) string {
	if toUs(r) {
		return "Owed to us by"
	}
	return "We owe"
}

// owedTitle says the same before an amount.
func owedTitle(r ledger.RefundOwed) string { return directionWord(toUs(r)) }

func directionWord(toUs bool) string {
	if toUs {
		return "Owed to us"
	}
	return "We owe"
}

// owedWord is the badge of an entry among what needs somebody.
func owedWord(r ledger.RefundOwed) Word {
	if toUs(r) {
		return Word{Text: "Owed to us", Icon: Return, Tone: Amber}
	}
	return Word{Text: "Refund owed", Icon: Return, Tone: Amber}
}

// owedParty is who the other side is: the customer, else whom the operation
// names as its recipient.
func owedParty(r ledger.RefundOwed, o ledger.Operation) string {
	for _, who := range []string{r.Customer, o.Terms.Customer, o.Terms.Recipient} {
		if who != "" {
			return who
		}
	}
	return ""
}

// causeWord says why money is owed: what we took too much of, or what went out
// too often.
func causeWord(r ledger.RefundOwed) string {
	if r.Direction == "owed_to_us" {
		switch r.Cause {
		case "duplicate_charge":
			return "paid out twice"
		case "overcharge":
			return "paid out too much"
		case "orphan_charge":
			return "a payment that belongs to no operation"
		}
	}
	switch r.Cause {
	case "duplicate_charge":
		return "charged twice"
	case "cross_rail_duplicate":
		return "paid on two rails"
	case "orphan_charge":
		return "a charge that belongs to no operation"
	case "overcharge":
		return "charged too much"
	case "not_delivered":
		return "not delivered"
	case "late_effect":
		return "happened after it was said not to have"
	case "reported":
		return "reported"
	}
	return strings.ReplaceAll(string(r.Cause), "_", " ")
}

// plural is the word for so many.
func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// Command is a command as it is typed at the machine that holdfast runs on. It
// names the folder of the data: without, it would speak of another instance.
func Command(folder, words string) string {
	if folder == "" {
		return "holdfast " + words
	}
	return "holdfast " + words + " --data " + quoted(folder)
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@,", r)
	}
	if strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

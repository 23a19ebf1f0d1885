package ledger

import (
	"slices"
	"strings"
)

// MayApprove says whether a person may decide on an operation that waits for
// people. This is the one place where four eyes are checked: nobody decides on
// what they or an agent of theirs asked for, except where only one enabled person is
// set up in the tenant; then self is true and the decision is stamped
// self-approved. Where the answer is no, why is the sentence for the person.
func MayApprove(o Operation, personEmail string, roles []string, people int) (allowed, self bool, why string) {
	return mayDecide(o, personEmail, roles, o.Asked.roles(), people, true)
}

// MayDecideHold says the same about a hold. Anyone who may decide at all may
// clear one, but four eyes apply where the decision leads to a send.
func MayDecideHold(o Operation, e Event, personEmail string, roles []string, people int) (allowed, self bool, why string) {
	leadsToSend := e == Separate || e == SeparateAsk || e == SendAgain
	return mayDecide(o, personEmail, roles, decidingRoles, people, leadsToSend)
}

func mayDecide(o Operation, personEmail string, roles, of []string, people int, fourEyes bool) (allowed, self bool, why string) {
	if strings.TrimSpace(personEmail) == "" {
		return false, false, "Sign in to decide."
	}
	mayActAs := func(role string) bool {
		// A viewer never decides, even where a row names viewers.
		return slices.Contains(of, role) && slices.Contains(decidingRoles, role)
	}
	if !slices.ContainsFunc(roles, mayActAs) {
		return false, false, "This needs the role " + inWords(of) + "."
	}
	own := o.Owner != "" && strings.EqualFold(strings.TrimSpace(o.Owner), strings.TrimSpace(personEmail))
	switch {
	case !own || !fourEyes:
		return true, false, ""
	case people == 1:
		return true, true, ""
	case o.InPerson():
		return false, false, "You asked for this. Someone else must decide."
	}
	return false, false, "You own the token that asked for this. Someone else must decide."
}

// MayTakeBack says whether a person may take an approval back: whoever gave it,
// also where they could not give it any more. Less right to send is no danger.
func MayTakeBack(given []Approval, p PersonRecord) (allowed bool, why string) {
	if !ApprovedBy(given, p) {
		return false, "Only who approved it can take that back."
	}
	return true, ""
}

// ApprovedBy reports whether an approval of the person's stands.
func ApprovedBy(given []Approval, p PersonRecord) bool {
	return slices.ContainsFunc(given, func(a Approval) bool {
		return a.Decision == "approve" && a.PersonID == p.ID && a.VoidedAt == 0
	})
}

// MayAct says whether a person may do more than read: run a job, or see what is
// sensitive because it has to be decided about.
func MayAct(personEmail string, roles []string) (allowed bool, why string) {
	allowed, _, why = mayDecide(Operation{}, personEmail, roles, decidingRoles, 0, false)
	return allowed, why
}

// MustSignInAgain says what a person has to do first where a rule wants to be
// sure who decides; empty where the sign-in is fresh enough, or none is asked for.
func MustSignInAgain(o Operation, p PersonRecord, now int64) string {
	if !o.Asked.StepUp || p.Fresh(now) {
		return ""
	}
	return "This rule asks you to show once more who you are, right before you approve. It is good for 5 minutes."
}

// refundRoles may say that money was given back, or need not be.
var refundRoles = []string{"finance", "admin"}

// MaySettle says whether a person may say how a refund that is owed was paid.
func MaySettle(personEmail string, roles []string) (allowed bool, why string) {
	allowed, _, why = mayDecide(Operation{}, personEmail, roles, refundRoles, 0, false)
	return allowed, why
}

// MayWaive says whether a person may let a refund go, or ask for it: one asks and
// another one agrees. That nobody else is set up changes nothing here, because the
// money is somebody else's.
func MayWaive(asked *RefundWaiver, personEmail string, roles []string) (allowed bool, why string) {
	if allowed, why = MaySettle(personEmail, roles); !allowed {
		return false, why
	}
	if asked != nil && strings.EqualFold(strings.TrimSpace(asked.AskedBy), strings.TrimSpace(personEmail)) {
		return false, "You asked to waive this. Somebody else must agree."
	}
	return true, ""
}

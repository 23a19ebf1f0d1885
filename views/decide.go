package views

import "holdfast/store/ledger"

// label is what stands on the button of a decision: verb, object, amount.
func (p OperationPage) label(act string) string {
	switch act {
	case "approve":
		return "Approve " + p.Frame.object(p.Operation)
	case "reject":
		return "Reject"
	case "ask-changes":
		return "Ask for changes"
	case "take-back":
		return "Take back approval"
	case "take":
		return "Take it"
	case "hand-back":
		return "Hand back"
	case "look-again":
		return "Look again"
	case "happened":
		return "It happened — save receipt"
	case "did-not-happen":
		return "It did not happen — close"
	case "happened-twice":
		return "It happened twice — record refund owed"
	case "send-again":
		return "Send again with the same key"
	case "still-unknown":
		return "Still unknown — look again later"
	case "same-purchase":
		return "Same purchase — use the earlier result"
	case "different-purchase":
		return "Different purchase — let it go"
	}
	return sentenceCase(act)
}

// confirm is what stands on the second button, inside the opened panel.
func (p OperationPage) confirm(act string) string {
	amount := p.Frame.amount(p.Operation)
	if amount == "" {
		amount = noun(p.Operation)
	}
	switch act {
	case "approve":
		return "Confirm — approve " + amount
	case "reject":
		return "Confirm — reject " + amount
	case "ask-changes":
		return "Confirm — ask for changes"
	case "happened":
		return "Confirm — it happened"
	case "did-not-happen":
		return "Confirm — it did not happen"
	case "happened-twice":
		return "Confirm — it happened twice"
	case "send-again":
		if !p.Recognised {
			return "Confirm — send " + amount + " again; " + mayDoubleShort(p.Operation)
		}
		return "Confirm — send " + amount + " again with the same key"
	case "same-purchase":
		return "Confirm — same purchase"
	case "different-purchase":
		return "Confirm — different purchase"
	}
	return p.label(act)
}

// needs says what a decision takes or does, beside its button.
func (p OperationPage) needs(act string) string {
	switch act {
	case "happened":
		if p.Operation.Terms.HasAmount {
			return "needs the provider's id, the amount it shows, and where you saw it"
		}
		return "needs the provider's id and where you saw it"
	case "did-not-happen":
		return "needs what shows it; an empty search alone is no proof"
	case "happened-twice":
		return "needs both provider ids"
	case "send-again":
		if !p.Recognised {
			return mayDouble(p.Operation)
		}
		return "the same operation and the same key; never a new one"
	case "still-unknown":
		return "nothing is sent; the provider is asked again on schedule"
	case "look-again":
		return "asks the provider now"
	case "same-purchase":
		return "the agent gets the earlier receipt; nothing is sent"
	case "different-purchase":
		return "needs what makes it different; policy is asked again"
	case "reject":
		return "needs a sentence; it goes to the agent"
	case "take-back":
		return "nothing is sent, and it waits for people again"
	case "ask-changes":
		return "needs a sentence; the agent may submit a changed operation that names this one in replaces"
	}
	return ""
}

// pressed reports whether a decision is one button without a panel: it asks
// nothing and can be taken again.
func pressed(act string) bool {
	switch act {
	case "still-unknown", "look-again", "take", "hand-back":
		return true
	}
	return false
}

// mainAct reports the decision that is drawn as the first button.
func mainAct(act string) bool { return act == "approve" }

// reasonLabel asks for the reason in the words of the decision.
func reasonLabel(act string) string {
	switch act {
	case "approve":
		return "Reason"
	case "reject":
		return "Why not? The agent is told this sentence."
	case "ask-changes":
		return "What should change? The agent is told this sentence."
	case "different-purchase":
		return "What makes it different?"
	case "same-purchase":
		return "How do you know it is the same?"
	case "did-not-happen":
		return "What shows that it did not happen?"
	case "send-again":
		return "Why may it be sent again?"
	}
	return "Where did you see it?"
}

// mayDouble is what a send of a key that the rail does not recognise may do.
func mayDouble(o ledger.Operation) string {
	return "this rail does not recognise the key: " + mayDoubleShort(o)
}

func mayDoubleShort(o ledger.Operation) string {
	if o.Terms.HasAmount {
		return "this may pay twice"
	}
	return "this may happen twice"
}

// inBrackets adds the three words to a fingerprint, if it has any.
func inBrackets(words string) string {
	if words == "" {
		return ""
	}
	return " (" + words + ")"
}

// mustSay reports whether a decision is not taken without a reason.
func mustSay(d Decision) bool { return d.Act != "approve" || d.ReasonRequired }

// decision finds an act in the caller's list. One that is not in it is refused:
// the zero value refuses.
func (p OperationPage) decision(act string) Decision {
	for _, d := range p.Decisions {
		if d.Act == act {
			if !d.Allowed && d.Why == "" {
				d.Why = "This is not possible now."
			}
			return d
		}
	}
	return Decision{Act: act, Why: "This is not possible in its present state."}
}

func (p OperationPage) kept(act, field string) string {
	if p.Form.Act != act {
		return ""
	}
	return p.Form.Values[field]
}

// originals are the earlier operations whose result there is or may yet be.
func (p OperationPage) originals() (all []Earlier) {
	for _, e := range p.Earlier {
		if !e.Over {
			all = append(all, e)
		}
	}
	return all
}

package ledger

import "fmt"

// A model may read nothing of an answer but its detail. So each says what
// happened, what to do, and what never to do; and none suggests another name
// for the same purchase.
const (
	never = " Do not create a new operation for this purchase."
	again = " Do not send it again." + never
	tell  = " Stop and tell the person you work for." + never
)

// detail is the plain sentence for where an operation stands.
func detail(o Operation) string {
	switch o.Status {
	case AwaitingApproval:
		return "A person must approve it first; nothing was sent. Wait and ask for it again later." + never
	case Ready:
		if o.holds(SomeOpen, 0) {
			return "A person released it to be sent once more with the same key. Wait and ask for it again." + never
		}
		return "It is allowed and waits for its turn. Wait and ask for it again." + never
	case InFlight:
		return "It was handed to the provider and the answer is not here yet. Wait and ask for it again." + again
	case Unknown:
		return "It was sent and may or may not have happened; we are finding out. Wait and ask for it again." + again
	case UnknownHold:
		return holdDetail(o)
	case Confirmed:
		return "It happened: the provider's receipt is in result. Use it." + again
	case Rejected:
		return rejectedDetail(o)
	}
	return "Where it stands is not known here. Wait for a person." + again
}

func holdDetail(o Operation) string {
	const wait = " A person decides; wait and ask for it again later."
	switch o.Reason {
	case SameReference:
		return "Nothing was sent: an earlier operation has the same reference." + wait + never
	case SameStep:
		return "Nothing was sent: an earlier operation belongs to the same step of the same run." + wait + never
	case ExactRepeat:
		return "Nothing was sent: an earlier operation has exactly this payload." + wait + never
	case SameRecipientAmount:
		return "Nothing was sent: an earlier operation pays the same amount to the same recipient." + wait + never
	case ClaimsExhausted:
		return "Nothing was sent: it was taken up again and again without getting that far." + wait + never
	case Inconclusive:
		return "It was sent, and what could be found out does not show whether it happened." + wait + again
	case EvidenceConflict:
		return "It was sent, and the evidence about it disagrees." + wait + again
	case KeyExpired:
		return "It may have happened, and the provider may no longer recognise its key." + wait + again
	case AttemptsExhausted, BudgetExhausted:
		over, ran := "all attempts that the rail allows are used up", "It may have happened, and "
		if o.Reason == BudgetExhausted {
			over = "the time or the retries that it may take are used up"
		}
		if o.OpenAttempts == 0 && !o.Quarantined {
			ran = "None of its attempts ran, and "
		}
		return ran + over + "." + wait + again
	case ReceiptMismatch:
		return "It was sent, and the provider's receipt differs from what was approved." + wait + again
	case AuthorityGone:
		return "It may have happened, and the authority to send it has since ended." + wait + again
	case Restored:
		return "The ledger was restored from a backup, so it may have been sent without a trace here." + wait + again
	}
	return "It is held, and it may have happened." + wait + again
}

func rejectedDetail(o Operation) string {
	switch o.Reason {
	case Denied:
		return "A person said no; nothing was sent." + tell
	case ApprovalExpired:
		return "Nobody decided in time; nothing was sent." + tell
	case Cancelled:
		return "It was taken back before anything was sent." + tell
	case PolicyDenied:
		if o.PolicyRow == "" {
			return "Policy says no; nothing was sent." + tell
		}
		return fmt.Sprintf("Policy row %q says no; nothing was sent.", o.PolicyRow) + tell
	case Declined:
		return "The provider refused it and nothing happened." + tell
	case NotExecuted:
		return "It was sent, and was shown not to have happened." + tell
	case Replaced:
		return "A later operation of yours replaced it before anything was sent. Follow that one; stop asking for this one." + never
	case PrerequisiteRejected:
		return "An operation that it waited for was rejected; nothing was sent." + tell
	case RunStopped:
		return "A person stopped its run; nothing was sent." + tell
	case AuthorityGone:
		return "The authority to send it ended before anything happened." + tell
	case Observed:
		return "This action type only observes: it was judged and recorded, and nothing was sent." + tell
	case Duplicate:
		return "It is the same purchase as an earlier operation, named in duplicate_of: nothing was sent under this id. Ask for that one and use its result." + never
	}
	return "It was rejected." + tell
}

package views

import (
	"fmt"

	"holdfast/store/ledger"
)

// NotFound says that there is no such operation. The same words serve for one
// of another tenant's, to the letter.
func NotFound(f Frame, id string) MessagePage {
	this := "this one is live"
	if f.Test {
		this = "this one is TEST"
	}
	return MessagePage{Frame: f, Tone: Slate,
		Title: "No operation " + id + ".",
		Lines: []string{"It may belong to the other instance (" + this + ")."},
		Links: []Link{{"/operations", "All operations"}},
	}
}

// NoPage says that an address leads nowhere.
func NoPage(f Frame) MessagePage {
	return MessagePage{Frame: f, Tone: Slate,
		Title: "There is no page at this address.",
		Links: []Link{{"/", "What needs me now"}},
	}
}

// Conflict says that somebody decided first. The entry is the change that won;
// o is the operation as it is now, and given how many have approved it. What is
// reported is what was done: where it stands now is another matter.
func Conflict(f Frame, o ledger.Operation, won ledger.Entry, given int) MessagePage {
	who := won.Actor
	if who == "" {
		who = "Somebody"
	}
	title := "This was decided while you were reading."
	ago := Age(f.Now-won.At) + " ago"
	var first string
	switch {
	case won.ActorKind != ledger.Person:
		title = "This changed while you were reading."
		first = fmt.Sprintf("%s %s changed it %s: %s", sentenceCase(actorWord(won.ActorKind)), who, ago, decidedWord(won, o))
	case ledger.Event(won.Event) == ledger.Approve:
		first = fmt.Sprintf("%s approved this %s (%d of %d)", who, ago, given, max(o.Asked.Approvals, 1))
	default:
		first = fmt.Sprintf("%s decided this %s: %s", who, ago, decidedWord(won, o))
	}
	if won.Sentence != "" {
		first += ", ‘" + inWords(won.Sentence) + "’"
	}
	return MessagePage{Frame: f, Tone: Amber,
		Title: title,
		Lines: []string{first + ".", "Nothing from you was recorded."},
		After: &o,
		Links: []Link{{string(operationPath(o.OperationID)), "Open it as it is now"}},
	}
}

// decidedWord says what an entry did. An end is named as on every page; other
// statuses say nothing of a decision.
func decidedWord(won ledger.Entry, o ledger.Operation) string {
	switch e := ledger.Event(won.Event); {
	case e == "", e == ledger.Deny, e == ledger.Expire, e == ledger.Cancel:
		return StatusWord(o).Text
	case e == ledger.SayHappened:
		return "it happened"
	case e == ledger.SayNotHappened:
		return "it did not happen"
	}
	return eventWord(won.Event)
}

// Changed says that the form showed something else than what is stored. rows
// name the differences, if the caller knows them.
func Changed(f Frame, o ledger.Operation, rows []Field) MessagePage {
	return MessagePage{Frame: f, Tone: Amber,
		Title: "This was changed while you were reading.",
		Lines: []string{"Your decision was not recorded. Nothing was sent because of it."},
		Rows:  rows,
		After: &o,
		Links: []Link{{string(operationPath(o.OperationID)), "Open it as it is now"}},
	}
}

// ReplacedMeanwhile says that a newer operation stands for the one on the
// screen.
func ReplacedMeanwhile(f Frame, newer ledger.Operation, rows []Field) MessagePage {
	return MessagePage{Frame: f, Tone: Amber,
		Title: "This was replaced while you were reading.",
		Lines: []string{"Your approval was not recorded."},
		Rows:  rows,
		After: &newer,
		Links: []Link{{string(operationPath(newer.OperationID)), "Open the new one"}},
	}
}

// NotPossible says why a decision can't be taken in the operation's present
// state.
func NotPossible(f Frame, o ledger.Operation, why string) MessagePage {
	return MessagePage{Frame: f, Tone: Amber,
		Title: "This can't be decided that way now.",
		Lines: []string{why, "Nothing from you was recorded."},
		After: &o,
		Links: []Link{{string(operationPath(o.OperationID)), "Back to it"}},
	}
}

// Forbidden says why this person may not.
func Forbidden(f Frame, why string) MessagePage {
	return MessagePage{Frame: f, Tone: Slate,
		Title: "You may not do this.",
		Lines: []string{why, "Nothing from you was recorded."},
		Links: []Link{{"/", "What needs me now"}},
	}
}

// Unclear says that a form could not be read, and what to change.
func Unclear(f Frame, why string, back string) MessagePage {
	m := MessagePage{Frame: f, Tone: Amber,
		Title: "Something in the form needs changing.",
		Lines: []string{why, "Nothing was recorded."},
	}
	if back != "" {
		m.Links = []Link{{back, "Back to the form"}}
	}
	return m
}

// DiskTrouble says that nothing can be committed, so nothing is sent. freePercent
// below zero is left out; told says whether operators were notified.
func DiskTrouble(f Frame, freePercent int, told bool) MessagePage {
	line := "holdfast can't write to its disk"
	if freePercent >= 0 {
		line += fmt.Sprintf(" (%d %% free)", freePercent)
	}
	line += ". Nothing is being sent."
	if told {
		line += " Operators have been told."
	}
	return MessagePage{Frame: f, Tone: Amber,
		Title: "holdfast can't record anything now.",
		Lines: []string{line, "Nothing from you was recorded. Come back to the same page and decide then."},
	}
}

// Trouble says that a page could not be drawn. The request id finds it in the
// server's log.
func Trouble(f Frame, requestID string) MessagePage {
	m := MessagePage{Frame: f, Tone: Amber,
		Title: "holdfast could not answer this.",
		Lines: []string{"Nothing is sent twice because of it. Open the page again to see what was recorded."},
		Links: []Link{{"/", "What needs me now"}},
	}
	if requestID != "" {
		m.Lines = append(m.Lines, "For the operator: request "+requestID+".")
	}
	return m
}

// Done is the page after a decision: what was decided, where the operation
// stands now, and what comes next.
func Done(f Frame, o ledger.Operation, act string) MessagePage {
	m := MessagePage{Frame: f, Tone: StatusWord(o).Tone, After: &o,
		Links: []Link{
			{string(operationPath(o.OperationID)), "Open it"},
			{"/", "What needs me now"},
		},
	}
	thing := f.amount(o)
	if thing == "" {
		thing = "this " + noun(o)
	}
	switch act {
	case "approve":
		m.Title = "You approved " + thing + "."
		m.Lines = afterApproval(f, o)
	case "reject":
		m.Title = "You rejected " + thing + "."
		m.Lines = []string{"Nothing was sent. The agent is told your sentence."}
	case "ask-changes":
		m.Title = "You asked for changes."
		m.Lines = []string{"Nothing was sent. The agent is told your sentence, and may submit a changed operation that names this one in replaces."}
	case "take-back":
		m.Title = "You took back your approval of " + thing + "."
		m.Lines = []string{"Nothing was sent. It waits for people again."}
	case "happened":
		m.Title = "You said that it happened."
		m.Lines = []string{"The receipt is saved. The agent gets it as the result."}
		if r := o.Receipt; r != nil && r.Amount != nil && o.Terms.HasAmount && *r.Amount != o.Terms.Amount {
			m.Lines = append(m.Lines, "You typed "+f.money(*r.Amount, o.Terms.Currency)+"; "+f.amount(o)+" was approved.")
			if *r.Amount > o.Terms.Amount {
				m.Lines = append(m.Lines, "What is too much stands under refunds owed.")
			}
		}
	case "did-not-happen":
		m.Title = "You said that it did not happen."
		m.Lines = []string{"It is closed. If a receipt turns up after all, it is kept, and money owed is recorded by itself."}
	case "happened-twice":
		m.Title = "You said that it happened twice."
		m.Lines = []string{"The first receipt is the result. The second is recorded as a refund owed."}
	case "send-again":
		m.Title = "You let it be sent again."
		m.Lines = []string{"The same operation, the same bytes, the same key."}
	case "still-unknown":
		m.Title = "Still unknown."
		switch {
		case o.Status == ledger.UnknownHold:
			m.Lines = []string{"Nothing is sent. There is nothing left to ask, so it is held again until a person settles it."}
		case o.Status != ledger.Unknown:
			m.Title = "You said that it is still unknown."
			m.Lines = []string{"It has changed since: where it stands now is shown above."}
		case o.NextLookAt > f.Now:
			m.Lines = []string{"Nothing is sent. The next look-up is at " + f.clock(o.NextLookAt) + "."}
		default:
			m.Lines = []string{"Nothing is sent. The provider is asked again on schedule."}
		}
	case "look-again":
		m.Title = "The provider was asked."
		m.Lines = []string{"What it answered stands in the evidence."}
		if o.Status == ledger.Unknown {
			m.Title = "The provider is being asked."
			m.Lines = []string{"What it answers stands in the evidence. It does not show yet whether it happened."}
		}
	case "same-purchase":
		m.Title = "You said that it is the same purchase."
		m.Lines = []string{"Nothing was sent. Whoever asks for it gets the earlier result."}
	case "different-purchase":
		m.Title = "You said that it is a different purchase."
		switch o.Status {
		case ledger.AwaitingApproval:
			m.Lines = []string{"Policy asks for an approval before it leaves."}
		case ledger.Ready:
			m.Lines = []string{"It leaves as soon as it is its turn."}
		}
	default:
		m.Title = "Recorded."
	}
	return m
}

// DoubleSend adds to the page after a release what a key that is not recognised
// may do.
func DoubleSend(m MessagePage, o ledger.Operation) MessagePage {
	m.Lines = append(m.Lines, sentenceCase(mayDouble(o))+".")
	return m
}

// CrossSite says that a form did not come from a page of ours.
func CrossSite(f Frame, back string) MessagePage {
	m := MessagePage{Frame: f, Tone: Amber,
		Title: "That did not come from a page of holdfast.",
		Lines: []string{"Another site, or another address of this one, sent the form. Nothing was recorded. Open the page here, and decide there."},
		Links: []Link{{"/", "What needs me now"}},
	}
	if back != "" {
		m.Links = append([]Link{{back, "Back to it"}}, m.Links...)
	}
	return m
}

// AnsweredBefore says that an exception has its answer already.
func AnsweredBefore(f Frame) MessagePage {
	return MessagePage{Frame: f, Tone: Amber, Title: "Somebody answered it before you.",
		Lines: []string{"Nothing of yours was recorded. The operation's page shows what they wrote."},
		Links: []Link{{"/", "What needs me now"}}}
}

// JobDone is the page after a job was run by hand.
func JobDone(f Frame, run ledger.JobRun) MessagePage {
	m := MessagePage{Frame: f, Tone: Slate,
		Title: "The job " + run.Job + " ran.",
		Lines: []string{fmt.Sprintf("Looked at %s, resolved %s, held %s, opened %s, problems %s.",
			grouped(run.LookedAt), grouped(run.Resolved), grouped(run.Held), grouped(run.Opened), grouped(len(run.Problems)))},
		Links: []Link{{"/settings", "Settings"}},
	}
	m.Lines = append(m.Lines, run.Problems...)
	return m
}

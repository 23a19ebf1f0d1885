package web

import (
	"context"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// act is one thing that a person may do to an operation: the event of the
// lifecycle that it causes, who may, what the form brings, and the store's
// function for it. The table below is the only place that names them.
type act struct {
	event ledger.Event
	may   permission
	asks  func(brought, ledger.Operation, *store.Decision) (problem string)
	take  func(s *store.Store, ctx context.Context, tenant, id string, d store.Decision) (ledger.Operation, error)
}

// permission is a question to the domain about a person, among so many, where
// these approvals were given.
type permission func(o ledger.Operation, e ledger.Event, p ledger.PersonRecord, people int, given []ledger.Approval) (allowed bool, why string)

func mayApprove(o ledger.Operation, _ ledger.Event, p ledger.PersonRecord, people int, given []ledger.Approval) (bool, string) {
	ok, _, why := ledger.MayApprove(o, p.Email, p.Roles, people)
	if ok && ledger.ApprovedBy(given, p) {
		return false, "You approved this already. Somebody else must approve it too."
	}
	return ok, why
}

func mayTakeBack(_ ledger.Operation, _ ledger.Event, p ledger.PersonRecord, _ int, given []ledger.Approval) (bool, string) {
	return ledger.MayTakeBack(given, p)
}

func mayDecideHold(o ledger.Operation, e ledger.Event, p ledger.PersonRecord, people int, _ []ledger.Approval) (bool, string) {
	ok, _, why := ledger.MayDecideHold(o, e, p.Email, p.Roles, people)
	return ok, why
}

// acts by their data-act name.
var acts = map[string]act{
	"approve":            {ledger.Approve, mayApprove, reasonIfAsked, (*store.Store).Approve},
	"take-back":          {ledger.TakeBack, mayTakeBack, reasonIfGiven, (*store.Store).TakeBack},
	"reject":             {ledger.Deny, mayDecideHold, reasonAndFields, (*store.Store).Reject},
	"ask-changes":        {ledger.Deny, mayDecideHold, reasonAndFields, (*store.Store).AskForChanges},
	"happened":           {ledger.SayHappened, mayDecideHold, receipt, (*store.Store).Happened},
	"did-not-happen":     {ledger.SayNotHappened, mayDecideHold, reason, (*store.Store).DidNotHappen},
	"happened-twice":     {ledger.SayHappened, mayDecideHold, bothReceipts, (*store.Store).HappenedTwice},
	"send-again":         {ledger.SendAgain, mayDecideHold, reason, (*store.Store).SendAgain},
	"still-unknown":      {ledger.StillUnknown, mayDecideHold, reasonIfGiven, (*store.Store).StillUnknown},
	"look-again":         {"", mayDecideHold, reasonIfGiven, (*store.Store).LookAgain},
	"same-purchase":      {ledger.Merge, mayDecideHold, original, (*store.Store).SamePurchase},
	"different-purchase": {ledger.Separate, mayDecideHold, reason, (*store.Store).DifferentPurchase},
}

// offered lists the acts that a page of the operation shows to a person, in its
// order. Whose approval stands is told as well when it can't be taken back any
// more.
func offered(o ledger.Operation, own bool) []string {
	switch {
	case o.Status == ledger.AwaitingApproval && own:
		return []string{"take-back", "approve", "reject", "ask-changes"}
	case o.Status == ledger.AwaitingApproval:
		return []string{"approve", "reject", "ask-changes"}
	case own && o.Attempts <= 1 && (o.Status == ledger.Ready || o.Status == ledger.InFlight):
		return []string{"take-back"}
	case o.Status == ledger.UnknownHold && views.BeforeSend(o) && len(o.Overlaps) > 0:
		return []string{"same-purchase", "different-purchase", "reject"}
	case o.Status == ledger.UnknownHold && views.BeforeSend(o):
		return []string{"different-purchase", "reject"}
	case o.Status == ledger.UnknownHold, o.Status == ledger.Unknown:
		return []string{"happened", "did-not-happen", "happened-twice", "send-again", "still-unknown", "look-again"}
	}
	return nil
}

// decisions says of each act that a page shows whether this person may take it
// now, and why not.
func decisions(o ledger.Operation, p ledger.PersonRecord, people int, rail ledger.Rail, given []ledger.Approval, now int64) []views.Decision {
	var all []views.Decision
	for _, name := range offered(o, ledger.ApprovedBy(given, p)) {
		d, _ := judge(name, o, p, people, rail, given, now)
		all = append(all, d)
	}
	return all
}

// judge says whether a person may take one act now. forbidden: it is the person
// who may not, and not the moment.
func judge(name string, o ledger.Operation, p ledger.PersonRecord, people int, rail ledger.Rail, given []ledger.Approval, now int64) (d views.Decision, forbidden bool) {
	a := acts[name]
	d = views.Decision{Act: name, ReasonRequired: name == "approve" && o.Asked.ReasonRequired}
	if ok, why := a.may(o, a.event, p, people, given); !ok {
		d.Why = why
		return d, true
	}
	if why := ledger.MustSignInAgain(o, p, now); name == "approve" && why != "" {
		d.Why = why
		d.Way = &views.Link{URL: confirmPath(operationPath(o.OperationID)), Text: "Show who you are"}
		return d, true
	}
	d.Why, d.From = notNow(name, o, rail, now)
	d.Allowed = d.Why == ""
	return d, false
}

// notNow says why the operation does not allow an act in its present state, and
// from when on it will where time alone decides; empty if it does.
func notNow(name string, o ledger.Operation, rail ledger.Rail, now int64) (why string, from int64) {
	e := acts[name].event
	switch {
	case name == "look-again":
		return cannotLook(o, rail), 0
	case o.Status == ledger.UnknownHold && o.Reason == ledger.ReceiptMismatch && (e == ledger.SayNotHappened || e == ledger.SendAgain):
		return "The provider's receipt is on record.", 0
	case e == ledger.SendAgain && o.Accepted:
		return "The provider accepted it and owes us the outcome; it is never sent again.", 0
	case e == ledger.Approve && o.Asked.ExpiresAt > 0 && o.Asked.ExpiresAt <= now:
		return "The time to approve it is over.", 0
	case e == ledger.TakeBack && !o.May(e, ledger.Person, now):
		return hasLeft(o, now), 0
	case e == ledger.Merge && len(o.Overlaps) == 0:
		return "It overlaps no other operation.", 0
	case o.May(e, ledger.Person, now):
		return "", 0
	case o.Status == ledger.Unknown && e != ledger.Approve && e != ledger.Deny:
		return "We are still looking. Once nothing more can be found out by asking, a person decides.", 0
	case o.May(e, ledger.Person, o.QuietFrom) && o.QuietFrom > now:
		return "A request that was sent may still act.", o.QuietFrom
	case o.Status == ledger.UnknownHold && o.QuietFrom == 0 && (e == ledger.SayNotHappened || e == ledger.SendAgain):
		return "It is not known from when on no request can act any more.", 0
	}
	return "It stands at “" + views.StatusWord(o).Text + "”, and there this is not possible.", 0
}

// hasLeft says why an approval can't be taken back any more.
func hasLeft(o ledger.Operation, now int64) string {
	switch {
	case o.Status == ledger.Ready && o.LeaseUntil > now:
		return "A worker has it: it is about to be sent."
	case o.Status == ledger.Ready && !views.BeforeSend(o):
		return "It was sent before: an approval can be taken back only before the first send."
	case o.Status == ledger.Ready:
		return "The time to take the approval back is over. It leaves as soon as it is its turn."
	case o.Status == ledger.InFlight, o.Status == ledger.Unknown, o.Status == ledger.Confirmed:
		return "It left: an approval can be taken back only before that."
	}
	return "It stands at “" + views.StatusWord(o).Text + "”: no approval waits to be used."
}

func cannotLook(o ledger.Operation, rail ledger.Rail) string {
	switch {
	case !rail.Lookup.Possible:
		return "This rail cannot be asked."
	case o.Status == ledger.UnknownHold:
		return "It is held. Say that it is still unknown, and the provider is asked again."
	case o.Status != ledger.Unknown:
		return "There is nothing to ask: its outcome is not unknown."
	}
	return ""
}

package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Status says where an operation stands. The zero value is an operation that
// does not exist yet.
type Status string

// The seven statuses. There is no "failed": what is not known is unknown.
const (
	AwaitingApproval Status = "awaiting_approval" // a person must decide; nothing was sent
	Ready            Status = "ready"             // allowed, waiting for a worker
	InFlight         Status = "in_flight"         // marked: from here on it may have happened
	Unknown          Status = "unknown"           // it may or may not have happened; we are looking
	UnknownHold      Status = "unknown_hold"      // nothing is sent until a person settles it
	Confirmed        Status = "confirmed"         // the provider's receipt is stored
	Rejected         Status = "rejected"          // it did not happen and will not
)

// Reason says why an operation is held or was rejected; empty elsewhere.
type Reason string

// Reasons of a hold before any send.
const (
	SameReference       Reason = "same_reference"
	SameRecipientAmount Reason = "same_recipient_amount"
	SameStep            Reason = "same_step"
	ExactRepeat         Reason = "exact_repeat"
	ClaimsExhausted     Reason = "claims_exhausted"
)

// Reasons of a hold after a send.
const (
	Inconclusive      Reason = "inconclusive"
	EvidenceConflict  Reason = "evidence_conflict"
	KeyExpired        Reason = "key_expired"
	AttemptsExhausted Reason = "attempts_exhausted"
	BudgetExhausted   Reason = "budget_exhausted"
	ReceiptMismatch   Reason = "receipt_mismatch"
	AuthorityGone     Reason = "authority_gone" // also a reason of a rejection
	Restored          Reason = "restored"
)

// Reasons of a rejection.
const (
	Denied               Reason = "denied"
	ApprovalExpired      Reason = "approval_expired"
	Cancelled            Reason = "cancelled"
	PolicyDenied         Reason = "policy_denied"
	Declined             Reason = "declined"
	NotExecuted          Reason = "not_executed"
	Replaced             Reason = "replaced"
	PrerequisiteRejected Reason = "prerequisite_rejected"
	RunStopped           Reason = "run_stopped"
	Observed             Reason = "observed"
	Duplicate            Reason = "duplicate"
)

// Actor is a kind of cause. Which of them may cause a change stands in the
// table below, beside the change.
type Actor string

// The five actors.
const (
	Agent      Actor = "agent"
	Person     Actor = "person"
	Worker     Actor = "worker"
	Reconciler Actor = "reconciler"
	Clock      Actor = "clock"
)

// Event is what happened to an operation. Events are verbs.
type Event string

// The events, in the order of the table.
const (
	Allow          Event = "allow"    // submitted, and policy lets it through
	Ask            Event = "ask"      // submitted, and policy asks for people
	Overlap        Event = "overlap"  // submitted, and it looks like an earlier one
	Forbid         Event = "forbid"   // submitted, and policy says no
	Observe        Event = "observe"  // submitted to an action type that only watches
	Repeat         Event = "repeat"   // submitted, and a cached result answers it
	Approve        Event = "approve"  // the last approval that was needed
	Deny           Event = "deny"     // a person said no
	Expire         Event = "expire"   // nobody decided in time
	Cancel         Event = "cancel"   // taken back before anything was sent
	Replace        Event = "replace"  // a newer operation stands for it
	StopRun        Event = "stop_run" // its run was stopped
	Fail           Event = "prerequisite_rejected"
	Withdraw       Event = "withdraw" // token revoked, or policy now denies
	AskAgain       Event = "ask_again"
	TakeBack       Event = "take_back"
	GiveUp         Event = "give_up" // nothing more can be done without a person
	Mark           Event = "mark"    // "from here on it may have happened"
	Receive        Event = "receive" // a receipt that matches what was approved
	Decline        Event = "decline" // a definite refusal
	Unsend         Event = "unsend"  // shown that nothing ran
	Lose           Event = "lose"    // no answer, or one that proves nothing
	Disprove       Event = "disprove"
	Mismatch       Event = "mismatch" // a receipt that differs from what was approved
	Merge          Event = "merge"    // a person: same purchase as an earlier one
	Separate       Event = "separate" // a person: a different purchase, policy allows
	SeparateAsk    Event = "separate_ask"
	SayHappened    Event = "say_happened"
	SayNotHappened Event = "say_not_happened"
	SendAgain      Event = "send_again"
	StillUnknown   Event = "still_unknown"
	Restore        Event = "restore"
)

// Guard is the condition under which a row of the table holds. It is a
// question about the operation alone, so that the answer is the same for the
// worker, the page and the test.
type Guard string

// The guards.
const (
	Always    Guard = ""
	Unsent    Guard = "nothing sent yet"
	Staying   Guard = "nothing sent yet, and its time to leave has not come"
	Sent      Guard = "after a send"
	NoneOpen  Guard = "no attempt unresolved"
	SomeOpen  Guard = "an attempt unresolved"
	Quiet     Guard = "after a send, quiet, and no receipt on record"
	Clearable Guard = "after a send, and not for a person alone to clear"
)

// Rule is one row of the table: from a status, an event caused by one of By
// leads to a status with one of Reasons, if Guard holds.
type Rule struct {
	From    Status
	Event   Event
	By      []Actor
	Guard   Guard
	To      Status
	Reasons []Reason // empty: no reason; one: that one; more: the caller names it
	Note    string   // why, in a few words, for the picture
}

func by(a ...Actor) []Actor        { return a }
func because(r ...Reason) []Reason { return r }

// anyone who watches the outcome may bring a receipt home.
var witnesses = by(Worker, Reconciler)

// requesters may want something done: an agent, or a person who settles what is
// owed.
var requesters = by(Agent, Person)

// rules is the law: an operation changes status because a row allows it, and in
// no other way. The schema's CHECK, the picture in docs/ and the buttons on the
// pages are tested against it.
var rules = []Rule{
	{"", Allow, requesters, Always, Ready, nil, "policy allows"},
	{"", Ask, requesters, Always, AwaitingApproval, nil, "policy asks for people"},
	{"", Overlap, requesters, Always, UnknownHold, because(SameReference, SameStep, ExactRepeat, SameRecipientAmount), "overlaps an earlier operation"},
	{"", Forbid, requesters, Always, Rejected, because(PolicyDenied), "policy denies"},
	{"", Observe, requesters, Always, Rejected, because(Observed), "observe mode"},
	{"", Repeat, requesters, Always, Rejected, because(Duplicate), "identical repeat of a cacheable action"},

	{AwaitingApproval, Approve, by(Person), NoneOpen, Ready, nil, "last approval needed"},
	{AwaitingApproval, TakeBack, by(Person), NoneOpen, AwaitingApproval, nil, "an approval taken back before the last one was given"},
	{AwaitingApproval, Deny, by(Person), NoneOpen, Rejected, because(Denied), "a person says no"},
	{AwaitingApproval, Expire, by(Clock), NoneOpen, Rejected, because(ApprovalExpired), "nobody decided in time"},
	{AwaitingApproval, Cancel, by(Agent, Person), NoneOpen, Rejected, because(Cancelled), "taken back"},
	{AwaitingApproval, Replace, by(Agent), NoneOpen, Rejected, because(Replaced), "a newer operation stands for it"},
	{AwaitingApproval, StopRun, by(Person), NoneOpen, Rejected, because(RunStopped), "its run was stopped"},
	{AwaitingApproval, Fail, by(Clock, Worker), NoneOpen, Rejected, because(PrerequisiteRejected), "what it waits for was rejected"},

	{Ready, Fail, by(Clock, Worker), NoneOpen, Rejected, because(PrerequisiteRejected), "what it waits for was rejected"},
	{Ready, Cancel, by(Agent, Person), NoneOpen, Rejected, because(Cancelled), "taken back"},
	{Ready, Replace, by(Agent), NoneOpen, Rejected, because(Replaced), "a newer operation stands for it"},
	{Ready, StopRun, by(Person), NoneOpen, Rejected, because(RunStopped), "its run was stopped"},
	{Ready, Withdraw, by(Worker), NoneOpen, Rejected, because(AuthorityGone), "token revoked, or policy now denies"},
	{Ready, AskAgain, by(Worker, Person), NoneOpen, AwaitingApproval, nil, "approval gone, or policy asks for more"},
	{Ready, TakeBack, by(Person), Staying, AwaitingApproval, nil, "an approval taken back before it leaves"},
	{Ready, GiveUp, by(Worker, Clock), Unsent, UnknownHold, because(ClaimsExhausted), "claimed again and again without a mark"},
	{Ready, GiveUp, by(Worker, Clock), Sent, UnknownHold, because(AuthorityGone, Inconclusive, KeyExpired, AttemptsExhausted, BudgetExhausted), "authority gone after a send, or nothing more may be sent"},
	{Ready, Mark, by(Worker), Always, InFlight, nil, "the worker that holds the lease"},

	{InFlight, Receive, witnesses, Sent, Confirmed, nil, "a receipt that matches, whatever the fence"},
	{Unknown, Receive, witnesses, Sent, Confirmed, nil, "a receipt that matches, whatever the fence"},
	{Ready, Receive, witnesses, Sent, Confirmed, nil, "a late receipt that matches"},
	{AwaitingApproval, Receive, witnesses, Sent, Confirmed, nil, "a late receipt that matches"},
	{UnknownHold, Receive, witnesses, Clearable, Confirmed, nil, "a receipt that matches"},

	{InFlight, Decline, by(Worker), NoneOpen, Rejected, because(Declined), "a definite refusal, and no earlier attempt unresolved"},
	{InFlight, Unsend, by(Worker), NoneOpen, Ready, nil, "nothing ran, and no earlier attempt unresolved"},
	{InFlight, Lose, by(Worker, Clock), Always, Unknown, nil, "anything else, or the lease ended"},
	{Ready, Mismatch, by(Worker, Reconciler), Sent, UnknownHold, because(ReceiptMismatch), "a late receipt that differs: released once more, it must not be sent now"},
	{UnknownHold, Mismatch, by(Worker, Reconciler), Clearable, UnknownHold, because(ReceiptMismatch), "a late receipt that differs from what was approved"},
	{InFlight, Mismatch, by(Worker, Reconciler), Sent, UnknownHold, because(ReceiptMismatch), "a receipt that differs from what was approved"},

	{Unknown, Disprove, by(Reconciler), Quiet, Rejected, because(NotExecuted), "refused by key, or absent where that is proof"},
	{Unknown, Mark, by(Worker), Sent, InFlight, nil, "same key, same bytes, where promise 5 allows"},
	{Unknown, Mismatch, by(Worker, Reconciler), Sent, UnknownHold, because(ReceiptMismatch), "a receipt that differs from what was approved"},
	{Unknown, GiveUp, by(Reconciler, Worker, Clock), Sent, UnknownHold, because(Inconclusive, EvidenceConflict, KeyExpired, AttemptsExhausted, BudgetExhausted, AuthorityGone), "no way left to find out"},

	{UnknownHold, Merge, by(Person), Unsent, Rejected, because(Duplicate), "same purchase"},
	{UnknownHold, Separate, by(Person), Unsent, Ready, nil, "different purchase, policy allows"},
	{UnknownHold, SeparateAsk, by(Person), Unsent, AwaitingApproval, nil, "different purchase, policy asks"},
	{UnknownHold, Deny, by(Person), Unsent, Rejected, because(Denied), "a person says no"},
	{UnknownHold, Replace, by(Agent), Unsent, Rejected, because(Replaced), "a newer operation stands for it"},
	{UnknownHold, Cancel, by(Agent, Person), Unsent, Rejected, because(Cancelled), "taken back"},
	{UnknownHold, StopRun, by(Person), Unsent, Rejected, because(RunStopped), "its run was stopped"},

	{UnknownHold, SayHappened, by(Person), Sent, Confirmed, nil, "it happened, with its receipt"},
	{UnknownHold, SayNotHappened, by(Person), Quiet, Rejected, because(NotExecuted), "it did not happen"},
	{UnknownHold, SendAgain, by(Person), Quiet, Ready, nil, "send once more; its attempts stay unresolved"},
	{UnknownHold, StillUnknown, by(Person), Clearable, Unknown, nil, "look again later; where a receipt differs there is nothing to look for"},

	{AwaitingApproval, Restore, by(Clock), Always, UnknownHold, because(Restored), "restored from a backup"},
	{Ready, Restore, by(Clock), Always, UnknownHold, because(Restored), "restored from a backup"},
	{InFlight, Restore, by(Clock), Always, UnknownHold, because(Restored), "restored from a backup"},
	{Unknown, Restore, by(Clock), Always, UnknownHold, because(Restored), "restored from a backup"},
	{UnknownHold, Restore, by(Clock), Always, UnknownHold, because(Restored), "restored from a backup"},
}

// ErrNotAllowed means that the lifecycle has no row for the change. Nothing
// was changed.
var ErrNotAllowed = errors.New("the lifecycle does not allow this")

// On looks the event up in the table. The rule it returns has passed the check
// of who may cause it, but not yet its guard: see [Operation.On]. Where several
// rows share a status and an event, they lead to the same status.
func (s Status) On(e Event, actor Actor) (Rule, error) {
	rows, err := s.rows(e, actor)
	if err != nil {
		return Rule{}, err
	}
	return rows[0], nil
}

// rows returns the rows for the event that the actor may cause; at least one,
// or an error.
func (s Status) rows(e Event, actor Actor) ([]Rule, error) {
	var found []Rule
	known := false
	for _, r := range rules {
		if r.From != s || r.Event != e {
			continue
		}
		known = true
		if slices.Contains(r.By, actor) {
			found = append(found, r)
		}
	}
	switch {
	case !known:
		return nil, fmt.Errorf("%w: %s from %q", ErrNotAllowed, e, s)
	case len(found) == 0:
		return nil, fmt.Errorf("%w: %s may not %s an operation that is %s", ErrNotAllowed, actor, e, s)
	}
	return found, nil
}

// Final reports whether nothing leads out of the status.
func (s Status) Final() bool { return s == Confirmed || s == Rejected }

// Statuses lists every status, in the order of an ordinary life.
func Statuses() []Status {
	return []Status{AwaitingApproval, Ready, InFlight, Unknown, UnknownHold, Confirmed, Rejected}
}

// Rules returns a copy of the table.
func Rules() []Rule { return slices.Clone(rules) }

// reasonFor picks the reason of a change: the rule's only one, or the one the
// caller named if the rule lists it.
func (r Rule) reasonFor(named Reason) (Reason, error) {
	switch {
	case len(r.Reasons) == 0 && named == "":
		return "", nil
	case len(r.Reasons) == 1 && (named == "" || named == r.Reasons[0]):
		return r.Reasons[0], nil
	case slices.Contains(r.Reasons, named):
		return named, nil
	}
	return "", fmt.Errorf("%w: %q is no reason to %s an operation that is %s", ErrNotAllowed, named, r.Event, r.From)
}

// On applies the event to the operation: it checks the table, the actor, the
// guard and the reason, and returns the changed operation. The caller commits
// it together with its log entry, or not at all.
func (o Operation) On(e Event, actor Actor, named Reason, now int64) (Operation, error) {
	rows, err := o.Status.rows(e, actor)
	if err != nil {
		return o, err
	}
	var refusals []error
	for _, rule := range rows {
		if !o.holds(rule.Guard, now) {
			refusals = append(refusals, fmt.Errorf("%w: %s from %s needs %q", ErrNotAllowed, e, o.Status, rule.Guard))
			continue
		}
		reason, err := rule.reasonFor(named)
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		o.Status, o.Reason = rule.To, reason
		o.Quarantined = o.Quarantined || e == Restore
		o.Version++
		o.UpdatedAt = max(now, o.UpdatedAt)
		return o, nil
	}
	return o, errors.Join(refusals...)
}

func (o Operation) holds(g Guard, now int64) bool {
	switch g {
	case Always:
		return true
	case Unsent:
		// A quarantine after a restore counts as a send: the backup may be
		// older than the attempt that went out.
		return o.Attempts == 0 && !o.Quarantined
	case Staying:
		// No worker has it or may take it: a claim needs the opposite of both.
		return o.holds(Unsent, now) && now < o.NextSendAt && o.LeaseUntil <= now
	case Sent:
		return o.Attempts > 0 || o.Quarantined
	case NoneOpen:
		return o.OpenAttempts == 0 && !o.Quarantined
	case SomeOpen:
		return o.OpenAttempts > 0 || o.Quarantined
	case Quiet:
		if o.Reason == ReceiptMismatch {
			return false // the provider's receipt is on record: something did happen
		}
		// A quiet time that nobody set never comes.
		return (o.Attempts > 0 || o.Quarantined) && o.QuietFrom > 0 && now >= o.QuietFrom
	case Clearable:
		return (o.Attempts > 0 || o.Quarantined) && o.Reason != ReceiptMismatch && o.Reason != EvidenceConflict
	}
	return false // an unknown guard refuses
}

// May reports whether the event is possible now, for the buttons of a page.
func (o Operation) May(e Event, actor Actor, now int64) bool {
	rows, err := o.Status.rows(e, actor)
	return err == nil && slices.ContainsFunc(rows, func(r Rule) bool { return o.holds(r.Guard, now) })
}

// TooManyClaims is the reason to hold an operation that was claimed again and
// again without a mark: "claims exhausted" tells people that nothing was sent.
func (o Operation) TooManyClaims() Reason {
	if o.holds(Unsent, 0) {
		return ClaimsExhausted
	}
	return AttemptsExhausted
}

// Diagram draws the table as a Mermaid state diagram; docs/lifecycle.md keeps
// it, and a test keeps docs/lifecycle.md honest.
func Diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	name := func(s Status) string {
		if s == "" {
			return "[*]"
		}
		return string(s)
	}
	for _, r := range rules {
		fmt.Fprintf(&b, "    %s --> %s: %s", name(r.From), name(r.To), r.Event)
		if len(r.Reasons) == 1 {
			fmt.Fprintf(&b, " (%s)", r.Reasons[0])
		}
		b.WriteString("\n")
	}
	for _, s := range Statuses() {
		if s.Final() {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	return b.String()
}

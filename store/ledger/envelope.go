package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What an answer tells the agent to do next. None of them is "try another
// name": an agent that does pays twice.
const (
	NextAwaitApproval = "await_approval"
	NextWait          = "wait"
	NextAwaitHuman    = "await_human"
	NextUseResult     = "use_result"
	NextStop          = "stop"
	NextFixRequest    = "fix_request"
)

// Envelope is the shape of every answer about an operation, over HTTP and MCP
// alike. Members that say nothing are null, so that the shape never changes.
type Envelope struct {
	OperationID string       `json:"operation_id"`
	OrderID     string       `json:"order_id"`
	ActionType  string       `json:"action_type"`
	Status      Status       `json:"status"`
	Reason      *Reason      `json:"reason"`
	Terminal    bool         `json:"terminal"`
	Next        string       `json:"next"`
	RetryAfter  *int         `json:"retry_after"` // seconds; null when nothing will change
	Poll        string       `json:"poll"`
	Fingerprint string       `json:"fingerprint"`
	Words       string       `json:"words"`
	Attempts    int          `json:"attempts"`
	Result      *Receipt     `json:"result"`
	DuplicateOf *string      `json:"duplicate_of"`
	ReplacedBy  *string      `json:"replaced_by"`
	Detail      string       `json:"detail"`
	CreatedAt   string       `json:"created_at"`
	UpdatedAt   string       `json:"updated_at"`
	Overlaps    []Overlapped `json:"overlaps,omitempty"` // while they hold it
	Decision    *Said        `json:"decision,omitempty"` // what a person told the agent

	before string   // what stands in front of its detail
	beside []string // what it says that no operation's version counts
}

// Said is a person's sentence to the agent, and the members it is about.
type Said struct {
	Message  string   `json:"message"`
	Pointers []string `json:"pointers,omitempty"`
}

// Describe tells an agent about an operation. An alias has the standing of its
// original, under its own name.
func Describe(o Operation, original *Operation) Envelope {
	stands, prefix := o, ""
	if o.DuplicateOf != "" && original != nil {
		stands = *original
		prefix = "It is the same purchase as " + o.DuplicateOf + ", whose outcome stands for it. "
	}
	e := Envelope{
		OperationID: o.OperationID, OrderID: o.OrderID, ActionType: o.ActionType,
		Status: stands.Status, Reason: orNull(stands.Reason), Terminal: stands.Status.Final(),
		Next: Next(stands.Status, stands.Reason), RetryAfter: orNull(RetryAfter(stands.Status)),
		Poll:        "/v1/operations/" + o.OperationID,
		Fingerprint: o.Fingerprint, Words: Words(o.Fingerprint), Attempts: o.Attempts,
		DuplicateOf: orNull(o.DuplicateOf), Detail: prefix + detail(stands), before: prefix,
		CreatedAt: stamp(o.CreatedAt), UpdatedAt: stamp(max(o.UpdatedAt, stands.UpdatedAt)),
	}
	if stands.Status == Confirmed {
		e.Result = stands.Receipt
	}
	if o.Status == UnknownHold && o.holds(Unsent, 0) {
		e.Overlaps = o.Overlaps
	}
	return e
}

// Resendable adds until when the provider recognises a repeat of what was sent.
// It is the gateway's to repeat, never the agent's.
func (e Envelope) Resendable(until, now int64) Envelope {
	if until > now && (e.Status == InFlight || e.Status == Unknown || e.Status == UnknownHold) {
		e.Detail += " The provider recognises its key until " + stamp(until) + "; only this gateway may repeat it."
	}
	return e
}

// Paused says of what waits to be sent that a person has paused its rail.
func (e Envelope) Paused(p Pause) Envelope {
	if p.At > 0 && e.Status == Ready {
		e.Detail += " A person has paused its rail " + p.Rail + ": nothing is sent on it until a person resumes it, and then this goes out by itself. Keep waiting."
		e = e.patient(fmt.Sprint("paused ", p.At))
	}
	return e
}

// patient is an envelope of what goes on only when something else happened.
func (e Envelope) patient(why string) Envelope {
	if seconds := RetryAfter(UnknownHold); e.RetryAfter != nil {
		e.RetryAfter = &seconds
	}
	e.beside = append(slices.Clone(e.beside), why)
	return e
}

// Waiting says of what is allowed to be sent which operations come before it.
func (e Envelope) Waiting(first []string) Envelope {
	if len(first) == 0 || e.Status != Ready {
		return e
	}
	named, more := first[:min(len(first), 3)], ""
	if len(first) > len(named) {
		more = fmt.Sprintf(" and %d others", len(first)-len(named))
	}
	are := "is"
	if len(first) > 1 {
		are = "are"
	}
	e.Detail = e.before + fmt.Sprintf("It is allowed. It waits until %s%s %s confirmed, and then goes out by itself. Wait and ask for it again later.", strings.Join(named, ", "), more, are) + never
	return e.patient("waits for " + strings.Join(first, " "))
}

// Succeeded names the operation that replaced it.
func (e Envelope) Succeeded(by string) Envelope {
	if by == "" || e.Status != Rejected {
		return e
	}
	e.ReplacedBy = &by
	if e.Reason != nil && *e.Reason == Replaced {
		e.Detail = e.before + "Operation " + by + " replaced it before anything was sent. Ask for " + by + "; stop asking for this one." + never
	} else {
		e.Detail = "Operation " + by + " stands in its place now: ask for that one. " + e.Detail
	}
	e.beside = append(slices.Clone(e.beside), "replaced by "+by)
	return e
}

// Beside is what the envelope says about other things than the operation and its
// original: it may change while their versions do not. Empty: nothing.
func (e Envelope) Beside() string { return strings.Join(e.beside, ", ") }

// Saying adds what a person wrote to the agent when they decided. Nothing is
// added where they wrote nothing.
func (e Envelope) Saying(message string, pointers ...string) Envelope {
	if message != "" {
		e.Decision = &Said{message, pointers}
	}
	return e
}

// Next tells the agent what to do. The reason does not change it today; it is
// asked for because the contract promises an answer for the pair.
func Next(s Status, _ Reason) string {
	switch s {
	case AwaitingApproval:
		return NextAwaitApproval
	case Ready, InFlight, Unknown:
		return NextWait
	case Confirmed:
		return NextUseResult
	case Rejected:
		return NextStop
	}
	return NextAwaitHuman // a hold, and whatever nobody knows
}

// RetryAfter suggests how many seconds to wait before asking again: about as
// long as the next change can take. Zero when nothing will change.
func RetryAfter(s Status) int {
	switch s {
	case Ready, InFlight:
		return 1
	case Unknown:
		return 5
	case Confirmed, Rejected:
		return 0
	}
	return 30 // a person decides
}

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00") }

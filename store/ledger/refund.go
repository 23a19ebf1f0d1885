package ledger

import (
	"errors"
	"fmt"
	"slices"
)

// RefundOwed is money that went out twice, or too much of it, until it is
// settled. What it is about was fixed when it was opened; how much of it is
// open, under way, settled and waived are sums over its journal, and they always
// add up to the amount.
type RefundOwed struct {
	Number      int64 // in the order of opening
	ID          string
	TenantID    string
	OperationID string // empty: it was reported without one
	ReceiptID   string // the effect that should not be; one entry an effect
	Direction   RefundDirection
	Cause       RefundCause
	Rail        string
	Instrument  string // what it was paid with, where somebody knows
	Currency    string
	Amount      int64
	Open        int64 // still owed; what is under way is still owed
	Settling    int64 // the part of Open that a settlement under way is to pay
	Settled     int64
	Waived      int64
	Status      RefundStatus
	Customer    string
	Source      RefundSource
	OpenedBy    string
	Reason      string // in the words of who reported it
	Reopened    int64  // how often money that was settled came back
	Version     int64  // counts changes; forms carry it
	OverdueAt   int64  // when the log last said that it is overdue; 0: never
	DueAt       int64
	OpenedAt    int64
}

// Free is what a new settlement may still take: open, and not under way.
func (e RefundOwed) Free() int64 { return e.Open - e.Settling }

// Overdue reports whether money is owed past the day it was promised by.
func (e RefundOwed) Overdue(now int64) bool { return e.Open > 0 && e.DueAt > 0 && e.DueAt < now }

// RefundStatus says how far an entry got.
type RefundStatus string

// The statuses. Nothing but a bounce leads back out of the last two.
const (
	RefundIsOwed     RefundStatus = "owed"
	RefundIsSettling RefundStatus = "settling" // an operation that pays it is under way
	RefundIsSettled  RefundStatus = "settled"
	RefundIsWaived   RefundStatus = "waived" // the last of it was waived
)

// RefundStatuses lists every status, in the order of an ordinary life.
func RefundStatuses() []RefundStatus {
	return []RefundStatus{RefundIsOwed, RefundIsSettling, RefundIsSettled, RefundIsWaived}
}

// RefundDirection says who owes.
type RefundDirection string

// The directions. Money that went to a recipient twice is owed to us.
const (
	WeOwe    RefundDirection = "we_owe"
	OwedToUs RefundDirection = "owed_to_us"
)

// RefundCause says why money is owed.
type RefundCause string

// The causes.
const (
	CauseDuplicateCharge    RefundCause = "duplicate_charge"
	CauseCrossRailDuplicate RefundCause = "cross_rail_duplicate" // paid once on each of two rails
	CauseOrphanCharge       RefundCause = "orphan_charge"        // nothing was bought with it
	CauseOvercharge         RefundCause = "overcharge"
	CauseNotDelivered       RefundCause = "not_delivered"
	CauseLateEffect         RefundCause = "late_effect" // of an operation that had ended without one
	CauseReported           RefundCause = "reported"    // somebody says so
)

// RefundCauses lists every cause.
func RefundCauses() []RefundCause {
	return []RefundCause{CauseDuplicateCharge, CauseCrossRailDuplicate, CauseOrphanCharge, CauseOvercharge, CauseNotDelivered, CauseLateEffect, CauseReported}
}

// RefundSource says where an entry comes from: from what a provider showed, or
// from a report.
type RefundSource string

// The sources.
const (
	FromEvidence RefundSource = "evidence"
	FromReport   RefundSource = "report"
)

// RefundEvent is what happens to an entry.
type RefundEvent string

// The events.
const (
	RefundOpen   RefundEvent = "open"
	RefundBegin  RefundEvent = "begin" // an operation that is to pay it was registered
	RefundLand   RefundEvent = "land"  // that operation was confirmed
	RefundFall   RefundEvent = "fall"  // that operation was rejected
	RefundProve  RefundEvent = "prove" // it was paid elsewhere
	RefundWaive  RefundEvent = "waive"
	RefundBounce RefundEvent = "bounce" // what was paid came back
)

// RefundAccount is where the journal keeps an amount of an entry.
type RefundAccount string

// The accounts. What is owed comes from the origin, whose balance is the whole
// of it with the sign turned, so that the five of an entry add up to nothing.
const (
	AccountOrigin   RefundAccount = "origin"
	AccountOpen     RefundAccount = "open"
	AccountSettling RefundAccount = "settling"
	AccountSettled  RefundAccount = "settled"
	AccountWaived   RefundAccount = "waived"
)

// refundMoves says between which accounts an event moves its amount.
var refundMoves = map[RefundEvent]struct{ from, to RefundAccount }{
	RefundOpen:   {AccountOrigin, AccountOpen},
	RefundBegin:  {AccountOpen, AccountSettling},
	RefundLand:   {AccountSettling, AccountSettled},
	RefundFall:   {AccountSettling, AccountOpen},
	RefundProve:  {AccountOpen, AccountSettled},
	RefundWaive:  {AccountOpen, AccountWaived},
	RefundBounce: {AccountSettled, AccountOpen},
}

// rest says what must be left open after an event for a row to hold.
type rest int

const (
	something rest = iota + 1
	nothing
)

// RefundRule is one row of the table: from a status, an event leads to a status,
// if so much is left.
type RefundRule struct {
	From  RefundStatus
	Event RefundEvent
	Left  rest
	To    RefundStatus
}

// refundRules is the law of the entries: one changes its status because a row
// allows it. While an operation pays it, another one cannot begin and nothing is
// waived: its outcome may be unknown, and the money may have gone back already.
var refundRules = []RefundRule{
	{"", RefundOpen, something, RefundIsOwed},

	{RefundIsOwed, RefundBegin, something, RefundIsSettling},
	{RefundIsOwed, RefundProve, something, RefundIsOwed},
	{RefundIsOwed, RefundProve, nothing, RefundIsSettled},
	{RefundIsOwed, RefundWaive, something, RefundIsOwed},
	{RefundIsOwed, RefundWaive, nothing, RefundIsWaived},
	{RefundIsOwed, RefundBounce, something, RefundIsOwed},

	{RefundIsSettling, RefundLand, something, RefundIsOwed},
	{RefundIsSettling, RefundLand, nothing, RefundIsSettled},
	{RefundIsSettling, RefundFall, something, RefundIsOwed},
	{RefundIsSettling, RefundProve, something, RefundIsSettling},
	{RefundIsSettling, RefundBounce, something, RefundIsSettling},

	{RefundIsSettled, RefundBounce, something, RefundIsOwed},
	{RefundIsWaived, RefundBounce, something, RefundIsOwed},
}

// RefundRules returns a copy of the table.
func RefundRules() []RefundRule { return slices.Clone(refundRules) }

// ErrOverSettled refuses to give back more than is owed.
var ErrOverSettled = errors.New("more than is owed")

// Posting is one line of a transaction in the journal: an amount that an account
// of an entry gains, or loses.
type Posting struct {
	Account RefundAccount
	Amount  int64
}

// balance is what the journal says of an account.
func (e RefundOwed) balance(a RefundAccount) int64 {
	switch a {
	case AccountOrigin:
		return e.Amount
	case AccountOpen:
		return e.Free()
	case AccountSettling:
		return e.Settling
	case AccountSettled:
		return e.Settled
	case AccountWaived:
		return e.Waived
	}
	return 0
}

// On applies an event over an amount: it gives the entry as it is afterwards and
// the postings that say so. The caller commits both, or neither.
func (e RefundOwed) On(event RefundEvent, amount int64) (RefundOwed, []Posting, error) {
	move, known := refundMoves[event]
	if !known || !slices.ContainsFunc(refundRules, func(r RefundRule) bool { return r.From == e.Status && r.Event == event }) {
		return e, nil, fmt.Errorf("%w: %s of a refund that is %q", ErrNotAllowed, event, e.Status)
	}
	if amount <= 0 {
		return e, nil, fmt.Errorf("%w: the amount must be more than nothing", ErrNotAllowed)
	}
	if amount > e.balance(move.from) {
		return e, nil, fmt.Errorf("%w: %d of %d", ErrOverSettled, amount, e.balance(move.from))
	}
	after := e
	after.gain(move.from, -amount)
	after.gain(move.to, amount)
	to, ok := e.Status.on(event, after.Open)
	if !ok {
		return e, nil, fmt.Errorf("%w: %s of a refund that is %q, with %d left", ErrNotAllowed, event, e.Status, after.Open)
	}
	after.Status = to
	after.Version++
	if event == RefundBounce {
		after.Reopened++
		after.OverdueAt = 0
	}
	return after, []Posting{{move.from, -amount}, {move.to, amount}}, nil
}

func (s RefundStatus) on(event RefundEvent, left int64) (RefundStatus, bool) {
	for _, r := range refundRules {
		if r.From == s && r.Event == event && (r.Left == nothing) == (left == 0) {
			return r.To, true
		}
	}
	return s, false
}

func (e *RefundOwed) gain(a RefundAccount, amount int64) {
	switch a {
	case AccountOpen:
		e.Open += amount
	case AccountSettling: // under way is still open
		e.Settling += amount
		e.Open += amount
	case AccountSettled:
		e.Settled += amount
	case AccountWaived:
		e.Waived += amount
	}
}

// RefundSettlement is one way in which an entry is paid: by an operation of ours,
// or by the proof of a refund that was made elsewhere.
type RefundSettlement struct {
	ID          string
	TenantID    string
	Entry       string
	Kind        SettlementKind
	OperationID string
	Proof       string // the provider's refund id, a bank reference, a transaction hash; counts once
	Checked     bool   // the rail was asked and agreed
	Rail        string
	Amount      int64
	Currency    string
	PaidOn      string // a date, where somebody named one
	State       SettlementState
	Reason      string
	By          string
	At          int64
	EndedAt     int64
}

// SettlementKind says how an entry is paid.
type SettlementKind string

// The kinds.
const (
	ByOperation SettlementKind = "operation"
	ByProof     SettlementKind = "proof"
)

// SettlementState says what became of a settlement.
type SettlementState string

// The states. What landed may bounce; the others stay.
const (
	SettlementOpen    SettlementState = "open"
	SettlementLanded  SettlementState = "landed"
	SettlementFell    SettlementState = "fell"
	SettlementBounced SettlementState = "bounced"
)

// RefundWaiver is the wish of one person that an entry be let go, and the word of
// another one that it is.
type RefundWaiver struct {
	ID        string
	TenantID  string
	Entry     string
	Amount    int64
	Reason    string
	AskedBy   string
	AskedAt   int64
	WaivedBy  string
	Agreement string
	State     string // asked · waived · void
	EndedAt   int64
}

// AskedWaiver is the wish to waive that still waits for a second person; nil: none does.
func AskedWaiver(all []RefundWaiver) *RefundWaiver {
	i := slices.IndexFunc(all, func(w RefundWaiver) bool { return w.State == "asked" })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// JournalTransaction is one line of the journal as a person reads it.
type JournalTransaction struct {
	ID         int64
	Entry      string
	Event      RefundEvent
	Settlement string
	By         string
	Reason     string
	At         int64
	Postings   []Posting
}

// RefundParty is with whom, where and in which currency something is owed. Nothing
// is ever added up across two of them but by who reads it.
type RefundParty struct {
	Direction RefundDirection
	Customer  string
	Rail      string
	Currency  string
}

// RefundBalance is what the journal adds up to for a party.
type RefundBalance struct {
	RefundParty
	Owed     int64
	Open     int64 // with what is under way
	Settling int64
	Settled  int64
	Waived   int64
	Entries  int // of which something is open
}

// Add takes in the sum of one account.
func (b *RefundBalance) Add(a RefundAccount, sum int64) {
	switch a {
	case AccountOrigin:
		b.Owed -= sum
	case AccountOpen:
		b.Open += sum
	case AccountSettling:
		b.Open, b.Settling = b.Open+sum, b.Settling+sum
	case AccountSettled:
		b.Settled += sum
	case AccountWaived:
		b.Waived += sum
	}
}

// RefundAge is what is open in a currency, by how many days it has been: up to 7,
// up to 30, and more.
type RefundAge struct {
	Direction RefundDirection
	Currency  string
	Open      [3]int64
	Entries   [3]int
}

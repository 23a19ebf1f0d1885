package ledger

// Operation is one wanted write to the world outside. Its identity is
// (TenantID, OperationID), for ever. What is sent under it was fixed when it
// was registered; what changes is only how far it got.
type Operation struct {
	TenantID    string
	OperationID string
	OrderID     string // unique across tenants; the stamp in the provider's record
	ProviderKey string // the idempotency key of every attempt

	// What is to be sent, fixed at registration and covered by RowHash.
	ActionType    string
	ActionVersion string // hash of the action type it was judged under
	Effect        string // action types that share an effect are compared for overlap
	Fingerprint   string // "hf1:sha256:…" over Canonical
	Canonical     []byte // the bytes the fingerprint covers, without volatile members
	Payload       []byte // the bytes that go out: normal form with volatile members as first received
	Terms         Terms  // what the payload says about money, by role
	Rail          string
	RailAddress   string // where the rail pointed when this was judged
	RailAccount   string // which credential it named
	RowHash       string // over all of the above; checked before every send

	// Who asked, and in which run. Without an agent and a token, the owner asked
	// in person: see [Operation.InPerson].
	Agent       string
	TokenID     string
	Owner       string // e-mail of the person who counts as the requester; may be empty
	RunID       string
	ParentRunID string
	Step        string
	// ReferenceKey is the reference as overlap compares it: the payload's, and
	// where that has none the one that the id was given out for.
	ReferenceKey string
	Trace        string // traceparent of the call that submitted it; kept in its first log entry

	// What the agent said about it, and what it was compared with.
	DistinctFrom []string
	Because      string
	Replaces     string
	After        []string
	Overlaps     []Overlapped
	DuplicateOf  string // an alias: this operation's answers are that one's

	// The judgement.
	PolicyVersion string
	PolicyRow     string // name of the row that decided; empty when none fitted
	Asked         Asked

	// How far it got.
	Status       Status
	Reason       Reason
	Detail       string // one plain sentence about the last change
	Version      int64  // counts changes; forms and ETags carry it
	Attempts     int    // marks ever made
	OpenAttempts int    // marks without a definite outcome of their own
	Claims       int    // claims since the last mark or clean release
	Released     bool   // a person allowed one more send
	LookOnly     bool   // a person keeps it, or a resend cannot tell more: it is looked for, and sent only when released
	Accepted     bool   // the provider said "accepted, outcome later": never sent again
	Quarantined  bool   // restored from a backup: treated as sent
	EverUnknown  bool
	Sighted      bool // the provider showed something of it: that nothing is found is no proof any more

	Epoch      int64 // of the database, when the lease was taken
	Fence      int64 // rises with every claim
	LeaseOwner string
	LeaseUntil int64

	NextSendAt   int64 // not claimed before; 0 on an unknown operation: no resend is planned
	NextLookAt   int64 // 0: no look-up is planned
	Looks        int   // look-ups made since the last send
	FirstMarkAt  int64
	RecognisedBy string // how a repeat of the kept request is recognised, as the rail said at the first mark; see [Dedupe.Recognition]
	UnknownSince int64
	LastSendBy   int64 // the last moment at which an unresolved attempt may still have been sending
	QuietFrom    int64 // from then on "it did not happen" may be said

	Receipt   *Receipt
	CreatedAt int64
	UpdatedAt int64
}

// Terms are the members of a payload that have a role in money matters.
// HasAmount tells an amount of zero from none.
type Terms struct {
	Amount    int64 // minor units
	HasAmount bool
	Currency  string
	Recipient string
	Reference string
	Account   string
	Customer  string
	RefundOf  string
}

// Asked says which people a policy row asks for.
type Asked struct {
	Of             []string // roles; empty: approver, finance and admin
	Approvals      int
	ExpiresAt      int64
	StepUp         bool
	ReasonRequired bool
}

// Overlapped names an earlier operation and why it looks like the same
// purchase, field by field.
type Overlapped struct {
	OperationID string   `json:"operation_id"`
	Why         []string `json:"why"`
}

// Attempt is one delivery: exactly one request on the wire. Its row is
// committed before the first byte leaves.
type Attempt struct {
	TenantID      string
	OperationID   string
	Number        int // 1 is the first
	Epoch         int64
	Fence         int64
	Worker        string
	ProviderKey   string
	Address       string
	Account       string
	RequestSHA256 string
	MarkedAt      int64
	SendBy        int64 // not a byte is written after this
	Outcome       AttemptOutcome
	OutcomeAt     int64
	HTTPStatus    int
	Sentence      string
}

// AttemptOutcome is what is known about one attempt on its own.
type AttemptOutcome string

// The outcomes of an attempt. Only the last three are definite.
const (
	AttemptOpen     AttemptOutcome = "open"    // marked, nothing heard
	AttemptUnknown  AttemptOutcome = "unknown" // something was heard that proves nothing
	AttemptReceipt  AttemptOutcome = "receipt"
	AttemptDeclined AttemptOutcome = "declined"
	AttemptNotSent  AttemptOutcome = "not_sent"
)

// Resolved reports whether the attempt can no longer act.
func (a AttemptOutcome) Resolved() bool {
	return a == AttemptReceipt || a == AttemptDeclined || a == AttemptNotSent
}

// Request is what goes on the wire, without its secrets: those are added by the
// worker at the last moment and stored nowhere.
type Request struct {
	Method  string
	URL     string
	Header  [][2]string // in the order they are written
	Body    []byte
	SHA256  string // over all of the above
	Display string // the request as a person reads it, secrets as dots
}

// Receipt is the provider's own record of the effect.
type Receipt struct {
	ID        string `json:"id"`
	Amount    *int64 `json:"amount,omitempty"` // minor units
	Currency  string `json:"currency,omitempty"`
	Recipient string `json:"recipient,omitempty"`
	Reference string `json:"reference,omitempty"`
	Stamp     string `json:"stamp,omitempty"`
	Presumed  bool   `json:"-"` // it carries no stamp of its own: it was the only one found under our id
	Raw       []byte `json:"-"` // the record as the provider wrote it
}

// Approval is one person's decision about one operation.
type Approval struct {
	ID            string
	TenantID      string
	OperationID   string
	Decision      string // approve · reject · ask-changes
	Fingerprint   string // the one that was on the screen
	PolicyVersion string
	RailAddress   string
	RailAccount   string
	PersonID      string
	PersonEmail   string
	SelfApproved  bool
	Reason        string
	DecidedAt     int64
	ExpiresAt     int64
	SpentAt       int64    // by the first mark
	VoidedAt      int64    // taken back, or asked again
	Pointers      []string // of a no: the members of the payload that it is about
}

// Evidence is anything observed about an effect.
type Evidence struct {
	ID          string
	TenantID    string
	OperationID string
	Attempt     int
	Source      string // answer · lookup · person · event · statement
	Finding     string // found · absent · inconclusive · unreachable · declined · mismatch · note
	Sentence    string
	Body        []byte // as received, cut at the limit
	SHA256      string
	By          string // a worker, a job, or a person's e-mail
	At          int64
}

// Entry is one line of the action log.
type Entry struct {
	Seq         int64
	TenantID    string
	OperationID string // empty for entries about other things
	Object      string // operation · person · token · session · job · …
	ObjectID    string
	Event       string
	ActorKind   Actor
	Actor       string
	From        Status
	To          Status
	Reason      Reason
	Sentence    string
	Fact        string // JSON of what else belongs to the change
	At          int64
}

// Holder is the person or program that causes a change: its kind for the
// lifecycle table, its name for the log.
type Holder struct {
	Kind Actor
	Name string
}

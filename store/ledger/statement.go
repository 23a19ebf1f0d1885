package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// A statement is what a provider or a bank says happened on one account: an
// opinion from outside that everything here must agree with in the end.

// LineKind says what a statement line is about, where the file tells. The zero
// value is a line that does not say.
type LineKind string

// The kinds.
const (
	LineCharge     LineKind = "charge"
	LineRefund     LineKind = "refund"
	LinePayout     LineKind = "payout" // from the provider to our bank
	LineFee        LineKind = "fee"
	LineDispute    LineKind = "dispute"
	LineTransfer   LineKind = "transfer"
	LineAdjustment LineKind = "adjustment"
)

// Statement is one file as it was read. Nothing of it is stored yet.
type Statement struct {
	Format   string // as people name it: "camt.053.001.08", "Stripe itemised balance report", "CSV"
	Account  string // as the file names it; empty: the rail's own
	Currency string // of Opening and Closing
	From, To int64  // the days it covers, Unix milliseconds UTC; To is the start of the day after the last
	Zone     string // in which it names its days: Europe/Berlin
	// Opening and Closing are the balances the file states; nil where it states none.
	Opening, Closing *int64
	Lines            []StatementLine
	// Notes are sentences for the person who looks at the preview: how the sign and
	// the dates were read, what was left out and why.
	Notes []string
}

// StatementLine is one entry of a statement.
type StatementLine struct {
	Number int    // where it stands in the file: the line of a CSV file, the entry of an XML file; from 1
	LineID string // the line's own name on the account (balance transaction, bank reference); empty where it has none
	// ProviderID is the provider's id of the effect (charge, refund, payment): what
	// an operation's receipt is called.
	ProviderID string
	// Of is the provider's id of what the line takes back: the charge of a refund or
	// a dispute, the refund that came back; empty where the file does not say.
	Of           string
	Stamp        string // our order_id, where the provider carries it
	Hash         string // of a transaction on a chain
	Kind         LineKind
	Amount       int64 // minor units, signed as the account sees it: what came in is positive
	Gross        int64 // before the fee, signed alike; equal to Amount where the file knows no fee
	Fee          int64 // positive: what the provider kept
	Currency     string
	At           int64  // booked, Unix milliseconds UTC; of a date without a time, its first moment
	DateOnly     bool   // At is a day, not a moment
	Zone         string // whose day it is; empty: it has a time, or it was not kept
	Counterparty string
	Reference    string
	Batch        string // the payout that the line was part of
	Text         string // what else the file says, for people
	Content      string // SHA-256, hex, over what the file says of the line: the identity of a line without a name
	Occurrence   int    // how many times the same identity stood in the file so far, from 1: two equal lines are two
}

// Identity is what makes a line itself on its account: the name that it has
// there, else all that the file says of it.
func (l StatementLine) Identity() string {
	if l.LineID != "" {
		return "id:" + l.LineID
	}
	return "content:" + l.Content[:min(len(l.Content), 32)] // 128 bits tell lines apart as well as 256, in half the index
}

// StatementImport is one file that was taken in.
type StatementImport struct {
	ID               string
	TenantID         string
	Rail, Account    string
	Format, FileName string
	SHA256           string
	Currency         string
	From, To         int64
	Zone             string // in which it names its days; empty: it was not kept
	Opening, Closing *int64
	Total            int64 // of the amounts of all its lines
	Lines, Already   int   // in the file; of these, there before
	Warnings, Notes  []string
	By               string
	StartedAt        int64
	VisibleAt        int64 // 0: its lines are still being written
	UndoneAt         int64
	UndoneBy         string
	UndoneReason     string
}

// AddsUp reports whether opening and lines come to the closing balance. A file
// that states no balances does.
func (s StatementImport) AddsUp() bool {
	if s.Opening == nil || s.Closing == nil {
		return true
	}
	sum, ok := AddAmounts(*s.Opening, s.Total)
	return ok && sum == *s.Closing
}

// LineState is how far a line of a statement got.
type LineState string

// The states of a line.
const (
	LineUnmatched LineState = "unmatched"
	LineSuggested LineState = "suggested" // a person says whether it is that operation
	LineMatched   LineState = "matched"
	LineSetAside  LineState = "set_aside" // a person answered it without a match, with a reason
)

// LineFinding is what is remarkable about a line that is not matched.
type LineFinding string

// The findings.
const (
	FindingNone         LineFinding = ""
	NotOurs             LineFinding = "not_ours"        // on the statement, and no operation of ours
	AmountDiffers       LineFinding = "amount_differs"  // an operation of ours, and another amount
	TwiceOnStatement    LineFinding = "twice"           // one operation, and another line is it already
	LateOnStatement     LineFinding = "late_effect"     // an operation that ended without an effect
	LineContradicts     LineFinding = "contradicts"     // two operations have a claim to it
	ProbablePair        LineFinding = "probable_pair"   // a person's word stands for its operation; the line names another id
	LineAnswersUnknown  LineFinding = "answers_unknown" // evidence about an operation whose outcome is not known
	AbsentFromStatement LineFinding = "missing"         // of an operation: no statement shows it
)

// KeptLine is a line as it is stored.
type KeptLine struct {
	StatementLine
	ID           int64
	StatementID  string
	TenantID     string
	Rail         string
	Account      string
	CountedAt    int64 // in which period it counts
	State        LineState
	Finding      LineFinding
	OperationID  string // what is suggested, or what the finding is about
	Rule         MatchRule
	Sentence     string
	NotThis      []string // operations that a person said it is not
	Owner        string
	SnoozedUntil int64
	AnsweredBy   string
	Reason       string
	Version      int64
	WeighedAt    int64
}

// StatementMatch is what belongs together, and by which rule.
type StatementMatch struct {
	ID          string
	TenantID    string
	Rail        string
	Rule        MatchRule
	Lines       []MatchSide
	Operations  []MatchSide
	Difference  int64  // what the lines show less what the operations come to
	ExplainedAs string // fee · fx · rounding · other; empty: nothing differs
	Explained   string
	By          string
	Reason      string
	At          int64
	EndedAt     int64
	EndedBy     string
	EndedReason string
}

// MatchSide is one line or one operation of a match.
type MatchSide struct {
	LineID      int64
	OperationID string
	Amount      int64 // as the account sees it
}

// StatementSide says how an operation stands to the statements.
type StatementSide string

// The sides.
const (
	NotOnStatement    StatementSide = "not_yet"
	SeenOnStatement   StatementSide = "seen"
	MissingFromThere  StatementSide = "missing" // past the day by which a statement should show it
	NothingToBeSeenOf StatementSide = ""        // it moved no money, or has not ended
)

// StatementPeriod is an account that was closed up to a moment.
type StatementPeriod struct {
	TenantID string
	Rail     string
	Account  string
	Until    int64
	ClosedBy string
	ClosedAt int64
	Sheet    PeriodSheet
}

// PeriodSheet is what was counted when a period was closed.
type PeriodSheet struct {
	Lines    int              `json:"lines"`
	Matched  int              `json:"matched"`
	SetAside int              `json:"set_aside"`
	Missing  int              `json:"missing"` // operations that no statement showed, each answered
	Totals   map[string]int64 `json:"totals"`  // of the lines, by currency
	Apart    map[string]int64 `json:"apart"`   // explained differences, by how they were explained
}

// Seen names what somebody who closes a period has looked at: its end, and what
// is counted up to then. What was matched meanwhile changes none of it.
func (p PeriodSheet) Seen(until int64) string {
	p.Matched = 0
	said, _ := json.Marshal(p) // maps are written in the order of their keys
	sum := sha256.Sum256(fmt.Appendf(said, " %d", until))
	return hex.EncodeToString(sum[:8])
}

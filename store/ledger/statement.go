package ledger

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
	ProviderID   string
	Stamp        string // our order_id, where the provider carries it
	Hash         string // of a transaction on a chain
	Kind         LineKind
	Amount       int64 // minor units, signed as the account sees it: what came in is positive
	Gross        int64 // before the fee, signed alike; equal to Amount where the file knows no fee
	Fee          int64 // positive: what the provider kept
	Currency     string
	At           int64 // booked, Unix milliseconds UTC; of a date without a time, its first moment
	DateOnly     bool  // At is a day, not a moment
	Counterparty string
	Reference    string
	Batch        string // the payout that the line was part of
	Text         string // what else the file says, for people
	Content      string // SHA-256, hex, over what the file says of the line: the identity of a line without a name
	Occurrence   int    // how many times the same identity stood in the file so far, from 1: two equal lines are two
}

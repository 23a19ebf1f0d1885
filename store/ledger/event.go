package ledger

// ProviderEvent is a webhook as it came. It is kept before anything is made of
// it, and each one counts once.
type ProviderEvent struct {
	ID          int64 // of its row
	TenantID    string
	Rail        string
	EventID     string // the provider's name for it; where it has none, the hash of the body
	Signed      bool   // its signature was checked, and is the provider's
	Contradicts bool   // an earlier one of the same id had other bytes: kept, and without effect
	Seal        [][2]string
	Body        []byte
	SHA256      string
	ReceivedAt  int64

	State       EventState
	Stamp       string // the order id that it names
	ReceiptID   string // the provider's record that it names
	OperationID string
	Sentence    string
}

// EventState is what was made of an event.
type EventState string

// The states. An unmatched one is looked at again for some days: the operation's
// receipt, by which it would be known, may still be on its way.
const (
	EventKept      EventState = "kept" // nothing yet
	EventMatched   EventState = "matched"
	EventUnmatched EventState = "unmatched"
)

package ledger

// Exception is something that contradicts an operation which ended. A person
// answers it; no answer changes the operation.
type Exception struct {
	ID          string
	TenantID    string
	OperationID string
	Kind        ExceptionKind
	Sentence    string
	Evidence    []string // ids
	Owner       string   // e-mail of who owns the token that asked for the operation
	OpenedAt    int64
	AnsweredAt  int64 // 0: open
	AnsweredBy  string
	Answer      string
	Version     int64
}

// ExceptionKind says what contradicts the operation. One of a kind is open for
// an operation at a time.
type ExceptionKind string

// The kinds.
const (
	ReceiptGone      ExceptionKind = "receipt_gone"    // the provider does not show it any more
	ReceiptChanged   ExceptionKind = "receipt_changed" // the provider shows it with other terms
	HappenedAfterAll ExceptionKind = "late_effect"     // of an operation that ended without one
	Contradiction    ExceptionKind = "contradiction"   // another record stands in its place
)

// MayAnswer says whether a person may answer an exception of an operation: who
// may decide at all, and not about what an agent of theirs asked for, except
// where they are alone.
func MayAnswer(o Operation, personEmail string, roles []string, people int) (allowed, self bool, why string) {
	return mayDecide(o, personEmail, roles, decidingRoles, people, true)
}

package ledger

// Pause is a rail that a person has stopped: nothing more is sent on it until
// somebody lets it go on. What is under way goes to its end, and is looked up.
type Pause struct {
	TenantID string
	Rail     string
	Person   string // e-mail; pages show the name
	Reason   string
	At       int64
}

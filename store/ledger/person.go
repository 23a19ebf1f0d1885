package ledger

import "time"

// PersonRecord is somebody who may sign in.
type PersonRecord struct {
	ID         string
	TenantID   string
	Email      string // lower case; unique in the installation
	Name       string
	Roles      []string
	CreatedAt  int64
	DisabledAt int64
	SignedInAt int64 // of the session that this record came with; 0: none
}

// FreshFor is how long a sign-in is fresh enough for a rule that asks for it.
const FreshFor = 5 * time.Minute

// Fresh reports whether the person proved a moment ago who they are.
func (p PersonRecord) Fresh(now int64) bool {
	return p.SignedInAt > 0 && now-p.SignedInAt <= FreshFor.Milliseconds()
}

// Display is the name to show: the first name of the e-mail's owner, or the
// e-mail.
func (p PersonRecord) Display() string {
	if p.Name != "" {
		return p.Name
	}
	return p.Email
}

// TokenRecord is what is kept about an agent's token: everything but the token.
type TokenRecord struct {
	ID          string
	TenantID    string
	Agent       string
	Owner       string // e-mail of the person who counts as the requester
	Scopes      []string
	ActionTypes []string // empty: all
	Rails       []string // empty: all
	MaxAmount   *int64   // minor units of Currency
	Currency    string
	CreatedAt   int64
	ExpiresAt   int64
	RevokedAt   int64
}

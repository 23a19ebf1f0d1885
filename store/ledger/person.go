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

	SecondFactorAt int64 // since when a code is asked for at the sign-in; 0: it is not
	ShortPassword  bool  // good beside a second factor only
	LastSignInAt   int64

	SignedInAt int64  // when the session that this record came with was last proved; 0: none
	ProvedWith Factor // in that session
}

// Factor is what somebody showed to prove who they are.
type Factor string

// The factors. A link is the demo's one click.
const (
	WithPassword Factor = "password"
	WithCode     Factor = "code" // after the password: of an app, or a recovery code
	WithLink     Factor = "link"
)

// FreshFor is how long a sign-in is fresh enough for a rule that asks for it.
const FreshFor = 5 * time.Minute

// Fresh reports whether the person proved a moment ago who they are: with the
// second factor, where they have one.
func (p PersonRecord) Fresh(now int64) bool {
	if p.SecondFactorAt > 0 && p.ProvedWith != WithCode {
		return false
	}
	return p.SignedInAt > 0 && now-p.SignedInAt <= FreshFor.Milliseconds()
}

// NeedsLongerPassword reports whether the password was chosen beside a second
// factor that is gone since: alone it is too short, and nothing else is done
// before there is another.
func (p PersonRecord) NeedsLongerPassword() bool {
	return p.ShortPassword && p.SecondFactorAt == 0
}

// Session is a browser in which somebody is signed in.
type Session struct {
	ID         string // names it on a page; opens nothing
	UserAgent  string
	Address    string
	ProvedWith Factor
	CreatedAt  int64
	SeenAt     int64
	Current    bool // the one that asks
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

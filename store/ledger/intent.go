package ledger

import "strings"

// Intent is an id that was given out before anything was planned in detail.
type Intent struct {
	TenantID    string
	OperationID string
	ActionType  string
	Reference   string
	RunID       string
	Step        string
	Quote       *Quote
	Previous    string // the operation that this one follows, which was rejected
	Agent       string
	TokenID     string
	CreatedAt   int64
}

// Quote is what was offered: the later operation must agree with it.
type Quote struct {
	ID        string `json:"id,omitempty"`
	Amount    *int64 `json:"amount,omitempty"` // minor units
	Currency  string `json:"currency,omitempty"`
	Recipient string `json:"recipient,omitempty"`
	ExpiresAt int64  `json:"expires_at,omitempty"`
}

// Expired reports whether the offer is over.
func (q *Quote) Expired(now int64) bool { return q != nil && q.ExpiresAt > 0 && now >= q.ExpiresAt }

// Same reports whether two quotes offer the same.
func (q *Quote) Same(other *Quote) bool {
	if q == nil || other == nil {
		return q == other
	}
	sameAmount := q.Amount == nil && other.Amount == nil || q.Amount != nil && other.Amount != nil && *q.Amount == *other.Amount
	return sameAmount && q.ID == other.ID && strings.EqualFold(q.Currency, other.Currency) && q.Recipient == other.Recipient && q.ExpiresAt == other.ExpiresAt
}

// Disagree lists the roles in which an operation differs from its intent.
func (i Intent) Disagree(o Operation) []string {
	var roles []string
	add := func(same bool, role string) {
		if !same {
			roles = append(roles, role)
		}
	}
	add(i.Reference == "" || o.Terms.Reference == "" || ReferenceKey(i.Reference) == ReferenceKey(o.Terms.Reference), "reference")
	if q := i.Quote; q != nil {
		add(q.Amount == nil || o.Terms.HasAmount && o.Terms.Amount == *q.Amount, "amount")
		add(q.Currency == "" || strings.EqualFold(q.Currency, o.Terms.Currency), "currency")
		add(q.Recipient == "" || q.Recipient == o.Terms.Recipient, "recipient")
	}
	return roles
}

package ledger

import (
	"cmp"
	"strings"
)

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

// Names takes over what an id was given out for where the submission does not
// repeat it: the operation is then compared and found by it. The payload stays as
// it came, and nothing is sent that is not in it.
func (i Intent) Names(o Operation) Operation {
	o.ReferenceKey = cmp.Or(o.KnownAs(), ReferenceKey(i.Reference))
	o.RunID, o.Step = cmp.Or(o.RunID, i.RunID), cmp.Or(o.Step, i.Step)
	return o
}

// Disagree lists the roles in which an operation differs from its intent.
func (i Intent) Disagree(o Operation) []string {
	var roles []string
	add := func(same bool, role string) {
		if !same {
			roles = append(roles, role)
		}
	}
	agrees := func(mine, theirs string) bool { return mine == "" || theirs == "" || mine == theirs }
	add(agrees(ReferenceKey(i.Reference), o.KnownAs()), "reference")
	add(agrees(i.RunID, o.RunID), "run_id")
	add(agrees(i.Step, o.Step), "step")
	if q := i.Quote; q != nil {
		add(q.Amount == nil || o.Terms.HasAmount && o.Terms.Amount == *q.Amount, "amount")
		add(q.Currency == "" || strings.EqualFold(q.Currency, o.Terms.Currency), "currency")
		add(q.Recipient == "" || q.Recipient == o.Terms.Recipient, "recipient")
	}
	return roles
}

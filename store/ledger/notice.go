package ledger

import (
	"slices"
	"time"
)

// NoticeKind is what people are told about.
type NoticeKind string

// The kinds. A channel is configured for those in Topics; an approval that is
// about to expire belongs to approval, and the last two come by themselves.
const (
	AboutApproval  NoticeKind = "approval"
	AboutExpiring  NoticeKind = "expiring"
	AboutHold      NoticeKind = "hold"
	AboutOwed      NoticeKind = "owed" // opened, past its day, or come back
	AboutException NoticeKind = "exception"
	AboutRail      NoticeKind = "rail" // given a rest by its breaker
	AboutDay       NoticeKind = "daily"
	AboutTest      NoticeKind = "test"
	AboutMany      NoticeKind = "summary" // of a message only: what came while it was quiet
)

// Topics are what a channel may be configured for.
var Topics = []string{string(AboutApproval), string(AboutHold), string(AboutOwed), string(AboutException), string(AboutRail)}

// Topic is the one that a kind belongs to.
func (k NoticeKind) Topic() string {
	if k == AboutExpiring {
		return string(AboutApproval)
	}
	return string(k)
}

// Notice is one thing that people are told. It says who wants what, how much and
// where to look, and holds no power: no token, no secret, no payload. Texts of
// agents are made visible and harmless before they get here.
type Notice struct {
	ID        int64      `json:"-"`
	TenantID  string     `json:"-"`
	Channel   string     `json:"-"`
	About     string     `json:"-"` // what makes it one of its kind: it is told once
	Kind      NoticeKind `json:"kind"`
	Title     string     `json:"title"`
	Lines     []string   `json:"lines,omitempty"`
	Operation string     `json:"operation_id,omitempty"`
	Action    string     `json:"action_type,omitempty"`
	Amount    string     `json:"amount,omitempty"` // as people read it
	Recipient string     `json:"recipient,omitempty"`
	Agent     string     `json:"agent,omitempty"`
	Owner     string     `json:"owner,omitempty"`
	Words     string     `json:"words,omitempty"`
	Rule      string     `json:"rule,omitempty"`
	Why       string     `json:"why,omitempty"`
	Path      string     `json:"path"` // of the page, below the configured link
	Until     int64      `json:"until,omitempty"`
	At        int64      `json:"at"`

	Over bool `json:"-"` // somebody answered it before it was told
}

// News is what a notice is made of: what happened, and what it happened to.
type News struct {
	Kind      NoticeKind
	Entry     Entry
	Operation Operation // veiled
	Attempts  []Attempt
	Refund    RefundOwed
	Exception ExceptionKind
	Rail      string
	Until     int64
	Day       Day
	Money     Currencies
	Zone      *time.Location
	At        int64
	Now       int64
}

// Day is what a daily note says: what is not known, what is owed, and who looked.
type Day struct {
	Unknown    int
	Oldest     int64 // unknown since
	AtRisk     map[string]int64
	Owed       int
	OwedSums   map[string]int64
	Overdue    int
	LookedAt   int64 // a provider last answered a look-up
	Statement  int64 // the last import
	Approvals  int
	Exceptions int
}

// NewsIn says whether an entry of the log is something to tell, and of which kind.
func NewsIn(e Entry) NoticeKind {
	switch e.Object {
	case "operation":
		if e.To == AwaitingApproval && e.From != AwaitingApproval {
			return AboutApproval
		}
		if e.To == UnknownHold && e.From != UnknownHold {
			return AboutHold
		}
	case "refund_owed":
		if slices.Contains([]string{string(RefundOpen), "overdue", string(RefundBounce)}, e.Event) {
			return AboutOwed
		}
	case "exception":
		if e.Event == "open" {
			return AboutException
		}
	}
	return ""
}

// longestWarning is how long before its end an approval is called about to expire;
// one that lives shorter is called so in its last quarter.
const longestWarning = time.Hour

// AboutToExpire reports whether nobody has decided and little time is left.
func AboutToExpire(o Operation, now int64) bool {
	until := o.Asked.ExpiresAt
	warning := min(longestWarning.Milliseconds(), (until-o.CreatedAt)/4)
	return o.Status == AwaitingApproval && now < until && now >= until-warning
}

// StillOpen reports whether an operation still is where a notice of this kind
// says it is.
func (k NoticeKind) StillOpen(s Status) bool {
	switch k {
	case AboutApproval, AboutExpiring:
		return s == AwaitingApproval
	case AboutHold:
		return s == UnknownHold
	}
	return true
}

// MayTestChannels says whether a person may have a notice sent over every channel.
func MayTestChannels(by PersonRecord) (allowed bool, why string) { return MayManagePeople(by) }

package dispatch

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// Backtest says what a policy would have done to recorded operations. It sees
// them in the order in which they came, and answers the policy's questions about
// the past from what came before each of them, by what became of it since.
type Backtest struct {
	Seen        int            `json:"seen"`
	Was         map[string]int `json:"was"` // by what was decided: allow, ask, deny, hold
	Would       map[string]int `json:"would"`
	LetThrough  int            `json:"let_through"` // would be let through and were asked about
	WentWrong   int            `json:"went_wrong"`  // of those: rejected, or owed back
	Differences []Difference   `json:"differences"`
}

// Difference is one operation that the policy would have judged otherwise.
type Difference struct {
	TenantID    string `json:"tenant_id"`
	OperationID string `json:"operation_id"`
	Was         string `json:"was"`
	Would       string `json:"would"`
	Sentence    string `json:"sentence"`
	CreatedAt   int64  `json:"created_at"` // Unix milliseconds
}

// RunBacktest judges what was recorded since a moment by the policies of a
// configuration.
func RunBacktest(ctx context.Context, st *store.Store, c *Config, since int64) (Backtest, error) {
	b := Backtest{Was: map[string]int{}, Would: map[string]int{}, Differences: []Difference{}}
	past := history{}
	err := st.EachOperation(ctx, func(d store.Dossier) error {
		o := d.Operation
		if t := c.Tenants[o.TenantID]; t != nil && o.CreatedAt >= since && len(d.Entries) > 0 {
			b.judge(t.Rulebook.Policy, d, past)
		}
		past = append(past, o)
		return nil
	})
	return b, err
}

func (b *Backtest) judge(p ledger.Policy, d store.Dossier, past history) {
	o := d.Operation
	was := firstDecision(d.Entries[0])
	decision := p.Decide(o, past.facts(o), o.CreatedAt)
	b.Seen++
	b.Was[was]++
	b.Would[decision.Then]++
	if decision.Then == ledger.ThenAllow && was == ledger.ThenAsk {
		b.LetThrough++
		if o.Status == ledger.Rejected || len(d.Refunds) > 0 {
			b.WentWrong++
		}
	}
	if was != decision.Then && was != "hold" {
		b.Differences = append(b.Differences, Difference{o.TenantID, o.OperationID, was, decision.Then, decision.Sentence, o.CreatedAt})
	}
}

// firstDecision is what the policy in force said when the operation came. One
// that was held for an overlap was not judged to its end.
func firstDecision(e ledger.Entry) string {
	switch ledger.Event(e.Event) {
	case ledger.Allow:
		return ledger.ThenAllow
	case ledger.Ask:
		return ledger.ThenAsk
	case ledger.Forbid:
		return ledger.ThenDeny
	}
	return "hold"
}

// history is what came before, oldest first.
type history []ledger.Operation

func (h history) facts(o ledger.Operation) ledger.Facts {
	return ledger.Facts{
		RecipientKnown: func() (known, ok bool) {
			for _, e := range h {
				if e.TenantID == o.TenantID && e.Effect == o.Effect && e.Terms.Recipient == o.Terms.Recipient && e.Status == ledger.Confirmed && e.UpdatedAt <= o.CreatedAt {
					return true, true
				}
			}
			return false, true
		},
		Spent: func(c ledger.SpentOver) (sum int64, ok bool) {
			for _, e := range h {
				mine := c.Per == "tenant" || c.Per == "agent" && e.Agent == o.Agent || c.Per == "recipient" && e.Terms.Recipient == o.Terms.Recipient
				if mine && e.TenantID == o.TenantID && e.Terms.Currency == c.Currency && e.Status != ledger.Rejected && e.CreatedAt > o.CreatedAt-c.Window.Milliseconds() {
					sum += e.Terms.Amount
				}
			}
			return sum, true
		},
	}
}

// Print tells it in words.
func (b Backtest) Print(out io.Writer, days int) error {
	fmt.Fprintf(out, "In the last %d days %d operations came.\n", days, b.Seen)
	fmt.Fprintf(out, "This policy would have let through %d (now %d), asked for %d (now %d) and denied %d (now %d); %d were held for an overlap first.\n",
		b.Would[ledger.ThenAllow], b.Was[ledger.ThenAllow], b.Would[ledger.ThenAsk], b.Was[ledger.ThenAsk], b.Would[ledger.ThenDeny], b.Was[ledger.ThenDeny], b.Was["hold"])
	fmt.Fprintf(out, "Of the %d it would have let through without asking, %d were later rejected or owed back.\n", b.LetThrough, b.WentWrong)
	if len(b.Differences) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nTENANT\tOPERATION\tCAME\tWAS\tWOULD BE\tWHY")
	for _, d := range b.Differences {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", d.TenantID, d.OperationID, time.UnixMilli(d.CreatedAt).UTC().Format(time.RFC3339), d.Was, d.Would, d.Sentence)
	}
	return t.Flush()
}

package web

import (
	"encoding/json"
	"fmt"
	"time"

	"holdfast/store/ledger"
	"holdfast/views"
)

// usualReasons are offered for typing; none is filled in.
var usualReasons = []string{"Seen in the provider's dashboard", "The provider's support confirmed it", "Seen on the statement", "The recipient confirmed it"}

// holdPage adds to an operation's page what decides a hold: what the evidence
// says, and what is missing.
func (s *Server) holdPage(page views.OperationPage, o ledger.Operation) views.HoldPage {
	rail, _ := s.Store.Rulebook(o.TenantID).Route(o)
	hold := views.HoldPage{OperationPage: page, Usual: usualReasons}
	hold.Says = evidenceSays(o, page.Evidence)
	if o.Reason == ledger.ReceiptMismatch {
		hold.Differs = receiptDiffers(page, o, rail)
		return hold
	}
	hold.Missing = missing(o, rail, page.Frame.Now)
	return hold
}

// receiptDiffers puts what was approved beside what the provider's receipt shows,
// member by member. The log entry of the hold carries the receipt.
func receiptDiffers(page views.OperationPage, o ledger.Operation, rail ledger.Rail) (rows []views.Field) {
	var shown ledger.Receipt
	for _, e := range page.Log {
		if ledger.Event(e.Event) == ledger.Mismatch && e.Fact != "" {
			shown = ledger.Receipt{}
			if json.Unmarshal([]byte(e.Fact), &shown) != nil {
				return nil
			}
		}
	}
	if shown.ID == "" {
		return nil
	}
	money := page.Frame.Money
	amount := "none"
	if shown.Amount != nil {
		amount = money.Short(*shown.Amount, orText(shown.Currency, o.Terms.Currency))
	}
	for _, differs := range ledger.Compare(o, shown, rail.Compared) {
		f := map[string]views.Field{
			"/amount":    {Label: "Amount", Was: money.Short(o.Terms.Amount, o.Terms.Currency), Value: amount},
			"/currency":  {Label: "Currency", Was: o.Terms.Currency, Value: orText(shown.Currency, "none")},
			"/recipient": {Label: "Recipient", Was: o.Terms.Recipient, Value: orText(shown.Recipient, "none")},
			"/reference": {Label: "Reference", Was: o.Terms.Reference, Value: orText(shown.Reference, "none")},
			"/stamp":     {Label: "Our stamp", Was: o.OrderID, Value: orText(shown.Stamp, "none")},
		}[differs]
		if f.Label != "" {
			rows = append(rows, f)
		}
	}
	return rows
}

// evidenceSays counts what was found and what was looked for in vain.
func evidenceSays(o ledger.Operation, all []ledger.Evidence) []string {
	count := map[string]int{}
	for _, e := range all {
		if e.Source != "person" {
			count[e.Finding]++
		}
	}
	says := []string{"Not enough to decide."}
	switch {
	case o.Reason == ledger.ReceiptMismatch:
		says = []string{"Something happened, but the provider's record is not what was approved."}
	case count["found"] > 0:
		says = []string{"The provider showed a record. Compare it with what was approved."}
	}
	for _, c := range []struct{ finding, one, many string }{
		{"absent", "1 look-up found nothing.", "%d look-ups found nothing."},
		{"inconclusive", "1 look-up proved nothing.", "%d look-ups proved nothing."},
		{"unreachable", "The provider could not be asked once.", "The provider could not be asked %d times."},
	} {
		switch n := count[c.finding]; {
		case n == 1:
			says = append(says, c.one)
		case n > 1:
			says = append(says, fmt.Sprintf(c.many, n))
		}
	}
	return says
}

// missing says what would settle it, and from when on it can exist.
func missing(o ledger.Operation, rail ledger.Rail, now int64) []string {
	switch after := rail.Lookup.AbsenceProvesAfter; {
	case !rail.Lookup.Possible:
		return []string{"a record at the provider, or the provider's word that there is none: this rail cannot be asked by us."}
	case after > 0:
		from := max(o.LastSendBy+(after+rail.Lookup.Lag).Milliseconds(), o.QuietFrom)
		if now < from {
			return []string{"a record at the provider, or a look-up after " + clock(from) + " that finds none: earlier ones prove nothing."}
		}
		return []string{"a record at the provider, or one more look-up that finds none."}
	}
	return []string{"a record at the provider, or the provider's word that there is none: an empty search is no proof on this rail."}
}

func clock(t int64) string { return time.UnixMilli(t).UTC().Format("2 Jan 15:04") + " UTC" }

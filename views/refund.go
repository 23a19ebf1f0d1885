package views

import (
	"net/url"

	"github.com/a-h/templ"

	"holdfast/store/ledger"
)

func refundPath(id string) templ.SafeURL { return templ.SafeURL("/refunds/" + url.PathEscape(id)) }

// paying is what pays an entry of the list now.
func (p RefundsPage) paying(r ledger.RefundOwed) *ledger.Operation {
	if o, ok := p.Paying[r.ID]; ok {
		return &o
	}
	return nil
}

// from is where the money of an entry went out; the zero value for one that was
// reported without an operation.
func (p RefundPage) from() ledger.Operation {
	if p.From == nil {
		return ledger.Operation{}
	}
	return *p.From
}

// label is what stands on the button: verb, amount, where to.
func (p RefundPage) label() string {
	return "Settle " + p.Frame.money(p.Entry.Free(), p.Entry.Currency) + " over " + p.Entry.Rail
}

// kept is what was typed before the form came back; at first all that is owed.
func (p RefundPage) kept(field, first string) string {
	if typed, ok := p.Form.Values[field]; ok && p.Form.Act == "settle" {
		return typed
	}
	return first
}

// settlementWord says how a settlement ended.
func settlementWord(s ledger.RefundSettlement) string {
	switch s.State {
	case ledger.SettlementOpen:
		return "under way"
	case ledger.SettlementLanded:
		return "paid"
	case ledger.SettlementFell:
		return "did not happen, so its part is owed as before"
	case ledger.SettlementBounced:
		return "came back"
	}
	return string(s.State)
}

// RefundChanged says that an entry changed since the form was drawn.
func RefundChanged(f Frame, e ledger.RefundOwed) MessagePage {
	return MessagePage{Frame: f, Tone: Amber,
		Title: "This changed while you were reading.",
		Lines: []string{f.money(e.Open, e.Currency) + " of it is owed now.", "Nothing from you was recorded."},
		Links: []Link{{string(refundPath(e.ID)), "Open the entry as it is now"}},
	}
}

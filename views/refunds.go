package views

import (
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"holdfast/store/ledger"
)

func refundPath(id string) templ.SafeURL { return templ.URL("/refunds/" + id) }

// RefundWord says where an entry stands: also how far the operation is that pays
// it, and who says that it was paid.
func RefundWord(r ledger.RefundOwed, paid []ledger.RefundSettlement, paying *ledger.Operation) Word {
	w := refundWord(r)
	switch {
	case r.Status == ledger.RefundIsSettling && paying != nil:
		switch paying.Status {
		case ledger.AwaitingApproval:
			w.Text, w.Tone = "Refund waiting for approval", Amber
		case ledger.Unknown, ledger.UnknownHold:
			w.Text, w.Tone = "Refund outcome unknown", Amber
		}
	case r.Status == ledger.RefundIsSettled && outside(paid):
		w.Text = "Settled outside holdfast"
	case r.Status == ledger.RefundIsOwed && r.Reopened > 0:
		w.Text = "Reopened (the refund bounced)"
	}
	return w
}

// outside reports whether all that settled an entry was paid elsewhere.
func outside(paid []ledger.RefundSettlement) bool {
	landed := 0
	for _, s := range paid {
		if s.State == ledger.SettlementLanded {
			landed++
			if s.Kind != ledger.ByProof {
				return false
			}
		}
	}
	return landed > 0
}

func (p RefundsPage) word(i int) Word {
	if i < len(p.Words) {
		return p.Words[i]
	}
	return refundWord(p.Items[i])
}

// tabs are the lists of the page, with what they are called.
func (p RefundsPage) tabs() []ledger.RefundStatus { return ledger.RefundStatuses() }

func tabWord(s ledger.RefundStatus) string {
	switch s {
	case ledger.RefundIsOwed:
		return "Owed"
	case ledger.RefundIsSettling:
		return "In progress"
	case ledger.RefundIsSettled:
		return "Settled"
	case ledger.RefundIsWaived:
		return "Waived"
	}
	return sentenceCase(string(s))
}

func tabPath(s ledger.RefundStatus) templ.SafeURL { return templ.URL("/refunds?status=" + string(s)) }

func (p RefundsPage) more() templ.SafeURL {
	return templ.URL("/refunds?status=" + string(p.Tab) + "&cursor=" + p.Next)
}

// emptyWord is what stands where a tab has nothing.
func (p RefundsPage) emptyWord() (loud, quiet string) {
	switch p.Tab {
	case ledger.RefundIsSettling:
		return "Nothing is being settled.", ""
	case ledger.RefundIsSettled:
		return "Nothing was settled yet.", ""
	case ledger.RefundIsWaived:
		return "Nothing was waived.", ""
	}
	if len(p.Sums) > 0 {
		return "Nothing waits to be settled.", "What is open is in progress."
	}
	return "You owe nobody anything.", "Nobody owes you anything either."
}

func (p RefundsPage) loud() string { loud, _ := p.emptyWord(); return loud }

func (p RefundsPage) quiet() string { _, quiet := p.emptyWord(); return quiet }

func ageWords() [3]string { return [3]string{"0–7 days", "8–30 days", "31 days and more"} }

func toUsAge(a ledger.RefundAge) bool { return a.Direction == ledger.OwedToUs }

func (p RefundPage) word() Word { return RefundWord(p.Entry, p.Settlements, p.Paying) }

func (p RefundPage) action(act string) templ.SafeURL {
	return templ.URL("/refunds/" + p.Entry.ID + "/" + act)
}

func (p RefundPage) version() string { return strconv.FormatInt(p.Entry.Version, 10) }

func (p RefundPage) filling(act string) bool { return p.Form.Act == act && p.Form.Problem != "" }

// kept is what somebody had typed into a field.
func (p RefundPage) kept(act, field string) string {
	if p.Form.Act != act {
		return ""
	}
	return p.Form.Values[field]
}

func (p RefundPage) onRail(name string) bool {
	if chosen := p.kept("settle", "rail"); chosen != "" {
		return chosen == name
	}
	return name == p.Entry.Rail
}

// asked is the wish to waive that waits for a second person.
func (p RefundPage) asked() *ledger.RefundWaiver { return ledger.AskedWaiver(p.Waivers) }

func settlementWord(s ledger.RefundSettlement) string {
	switch s.State {
	case ledger.SettlementOpen:
		return "under way"
	case ledger.SettlementLanded:
		return "paid"
	case ledger.SettlementFell:
		return "was not paid"
	case ledger.SettlementBounced:
		return "came back"
	}
	return string(s.State)
}

func checkedWord(s ledger.RefundSettlement) string {
	switch {
	case s.Kind == ledger.ByOperation:
		return "by an operation of ours"
	case s.Checked:
		return "paid elsewhere, checked at the provider"
	}
	return "paid elsewhere, unchecked"
}

func journalWord(e ledger.RefundEvent) string {
	switch e {
	case ledger.RefundOpen:
		return "owed"
	case ledger.RefundBegin:
		return "a refund began"
	case ledger.RefundLand:
		return "the refund was paid"
	case ledger.RefundFall:
		return "the refund was not paid"
	case ledger.RefundProve:
		return "paid elsewhere"
	case ledger.RefundWaive:
		return "waived"
	case ledger.RefundBounce:
		return "the refund came back"
	}
	return string(e)
}

func accountWord(a ledger.RefundAccount) string {
	switch a {
	case ledger.AccountOrigin:
		return "owed in all"
	case ledger.AccountSettling:
		return "under way"
	}
	return strings.ReplaceAll(string(a), "_", " ")
}

// NoRefund says that there is no such entry; another tenant's is none either.
func NoRefund(f Frame, id string) MessagePage {
	return MessagePage{Frame: f, Tone: Slate, Title: "No refund " + id + ".", Links: []Link{{"/refunds", "All refunds owed"}}}
}

// RefundChanged says that an entry is not any more what was on the screen.
func RefundChanged(f Frame, e ledger.RefundOwed) MessagePage {
	return MessagePage{Frame: f, Tone: Amber,
		Title: "This changed while you were reading.",
		Lines: []string{"It stands at " + f.money(e.Open, e.Currency) + " open now.", "Nothing from you was recorded."},
		Links: []Link{{string(refundPath(e.ID)), "Open it as it is now"}},
	}
}

// RefundNotPossible says why an entry takes no such decision now.
func RefundNotPossible(f Frame, e ledger.RefundOwed, why string) MessagePage {
	return MessagePage{Frame: f, Tone: Amber,
		Title: "This is not possible now.",
		Lines: []string{why, "Nothing was recorded."},
		Links: []Link{{string(refundPath(e.ID)), "Open it as it is now"}},
	}
}

// refundParty is who the other side of an entry is.
func refundParty(p RefundPage) string {
	if p.From == nil {
		return p.Entry.Customer
	}
	return owedParty(p.Entry, *p.From)
}

func (p RefundPage) knownRail() bool { return slices.Contains(p.Rails, p.Entry.Rail) }

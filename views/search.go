package views

import (
	"net/url"

	"holdfast/store/ledger"
)

// SearchPage lists what has a name, where that is not exactly one thing.
type SearchPage struct {
	Frame      Frame
	Name       string
	Operations []ledger.Operation
	Refunds    []RefundHit
	Lines      []LineHit
	More       bool // of some kind there is more
}

// RefundHit is an entry with the operation that it is about; the zero one: none.
type RefundHit struct {
	Entry ledger.RefundOwed
	From  ledger.Operation
}

// party is the other side, as far as this reader is shown it.
func (h RefundHit) party() string {
	return owedParty(ledger.RefundOwed{}, h.From)
}

// LineHit is a statement line with the operation that it belongs to, if any.
type LineHit struct {
	Line        ledger.KeptLine
	OperationID string
}

// Only is the address of the one thing that was found; empty where there is none
// or a choice. A line of an operation that was found as well is no other thing.
func (p SearchPage) Only() string {
	var at []string
	seen := map[string]bool{}
	add := func(path string) {
		if !seen[path] {
			at = append(at, path)
		}
		seen[path] = true
	}
	for _, o := range p.Operations {
		add("/operations/" + url.PathEscape(o.OperationID))
	}
	for _, r := range p.Refunds {
		add("/refunds/" + url.PathEscape(r.Entry.ID))
	}
	for _, l := range p.Lines {
		if l.OperationID == "" {
			return "" // a line has no page of its own
		}
		add("/operations/" + url.PathEscape(l.OperationID))
	}
	if len(at) != 1 || p.More {
		return ""
	}
	return at[0]
}

func (p SearchPage) none() bool { return len(p.Operations)+len(p.Refunds)+len(p.Lines) == 0 }

func lineStateWord(s ledger.LineState) string {
	switch s {
	case ledger.LineUnmatched:
		return "Unmatched"
	case ledger.LineSuggested:
		return "Suggested"
	case ledger.LineMatched:
		return "Matched"
	case ledger.LineSetAside:
		return "Set aside"
	}
	return sentenceCase(string(s))
}

// searchTakes says what the search field finds.
const searchTakes = "Search takes a whole name: an operation id, an order id (ord_…), the provider's or a receipt's id, a provider key, a fingerprint or how it begins, its three words, a customer, a recipient, a reference, or the id of a refund owed."

func wordsOf(o ledger.Operation) string { return ledger.Words(o.Fingerprint) }

package invariant

import (
	"encoding/json"
	"fmt"

	"holdfast/store"
	"holdfast/store/ledger"
)

// history is what the log entries of one operation add up to.
type history struct {
	status  ledger.Status
	reason  ledger.Reason
	faults  []string // where an entry does not follow from the one before it
	revived []string // entries that lead out of an end
	marks   []markFact
	claims  []claimFact
	// freed says that since the last mark it was shown that nothing ran, or a
	// person released one more send.
	freed    bool
	releases int // sends that a person released
	receipt  string
	denials  []ledger.Entry // "it did not happen", by a person or by proof
}

type claimFact struct {
	Seq   int64 `json:"-"`
	Epoch int64 `json:"epoch"`
	Fence int64 `json:"fence"`
}

type markFact struct {
	Seq     int64  `json:"-"`
	Attempt int    `json:"attempt"`
	Epoch   int64  `json:"epoch"`
	Fence   int64  `json:"fence"`
	Key     string `json:"key"`
	Request string `json:"request"`
}

// read folds the log of one operation.
func read(d store.Dossier) history {
	var h history
	for _, e := range d.Entries {
		if e.Object != "operation" {
			continue
		}
		if e.From != h.status && !(e.From == e.To && h.status == e.From) {
			h.faults = append(h.faults, fmt.Sprintf("entry %d leads from %q, but it was %q", e.Seq, e.From, h.status))
		}
		if h.status.Final() && (e.To != h.status || e.Reason != h.reason) {
			h.revived = append(h.revived, fmt.Sprintf("entry %d leads from %s to %s", e.Seq, h.status, e.To))
		}
		h.apply(e)
	}
	return h
}

func (h *history) apply(e ledger.Entry) {
	h.status, h.reason = e.To, e.Reason
	switch ledger.Event(e.Event) {
	case ledger.Mark:
		m := markFact{Seq: e.Seq}
		h.parse(e, &m)
		h.marks = append(h.marks, m)
		h.freed = false
	case ledger.Unsend, ledger.SendAgain:
		h.freed = true
		if e.Event == string(ledger.SendAgain) {
			h.releases++
			h.denials = append(h.denials, e)
		}
	case ledger.Receive, ledger.SayHappened:
		h.receipt = e.Fact
	case ledger.Disprove, ledger.SayNotHappened:
		h.denials = append(h.denials, e)
	case "claim":
		f := claimFact{Seq: e.Seq}
		h.parse(e, &f)
		h.claims = append(h.claims, f)
	}
}

func (h *history) parse(e ledger.Entry, fact any) {
	if err := json.Unmarshal([]byte(e.Fact), fact); err != nil {
		h.faults = append(h.faults, fmt.Sprintf("the fact of entry %d is not readable", e.Seq))
	}
}

// history: the row is what its log adds up to (I-17), an end stays an end (I-5),
// and what waits for its first or next send has nothing under way (I-16).
func (c *checker) history(d store.Dossier, h history) {
	o := d.Operation
	for _, f := range h.faults {
		c.fault("I-17", o, "%s", f)
	}
	for _, f := range h.revived {
		c.fault("I-5", o, "%s", f)
	}
	if h.status != o.Status || h.reason != o.Reason {
		c.fault("I-17", o, "the row is %s %q, its log ends at %s %q", o.Status, o.Reason, h.status, h.reason)
	}
	if receipt := receiptText(o.Receipt); o.Status == ledger.Confirmed && receipt != h.receipt {
		c.fault("I-17", o, "its receipt is %s, the log holds %s", receipt, h.receipt)
	}
	if o.Status != ledger.Confirmed && o.Receipt != nil {
		c.fault("I-3", o, "is %s and has a receipt", o.Status)
	}
	if o.Status == ledger.Confirmed && (o.Receipt == nil || o.Receipt.ID == "") {
		c.fault("I-3", o, "is confirmed without a receipt")
	}
	waits := o.Status == ledger.Ready || o.Status == ledger.AwaitingApproval
	if waits && len(h.marks) > 0 && !h.freed {
		c.fault("I-16", o, "is %s, and its last attempt was neither shown not to have run nor released by a person", o.Status)
	}
	if o.Status == ledger.UnknownHold && beforeSend(o.Reason) && len(h.marks) > 0 {
		c.fault("I-16", o, "is held as %s, and was sent", o.Reason)
	}
}

func receiptText(r *ledger.Receipt) string {
	if r == nil {
		return "none"
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func beforeSend(r ledger.Reason) bool {
	switch r {
	case ledger.SameReference, ledger.SameRecipientAmount, ledger.SameStep, ledger.ExactRepeat, ledger.ClaimsExhausted:
		return true
	}
	return false
}

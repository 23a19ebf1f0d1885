package views

import (
	"cmp"
	"slices"
	"strings"

	"holdfast/store/ledger"
)

// beat is one moment on the axis that both sides share.
type beat struct {
	at     int64
	theirs bool
	text   string
	said   string // somebody else's words about it
	by     string
	tone   Tone
	dark   bool // from the first send on: here we do not know
	now    bool
}

// axis puts what we did and what the provider showed on one line of time, so
// that the window in which nobody knows can be seen. It uses only what was
// recorded, and the two moments still to come that decide what a person may
// say.
func (p HoldPage) axis() []beat {
	o := p.Operation
	beats := []beat{{at: o.CreatedAt, text: "recorded, before sending"}}
	for _, a := range p.Attempts {
		beats = append(beats, beat{
			at:   a.MarkedAt,
			text: "sent, attempt " + itoa(int64(a.Number)) + ", key " + shorten(a.ProviderKey),
			tone: Blue,
		})
		if a.OutcomeAt == 0 {
			continue
		}
		b := beat{at: a.OutcomeAt, said: a.Sentence}
		switch a.Outcome {
		case ledger.AttemptOpen, ledger.AttemptUnknown:
			if p.differs() {
				b.text = "no answer after " + span(a.OutcomeAt-a.MarkedAt)
				if a.HTTPStatus > 0 {
					b.text = "answer after " + span(a.OutcomeAt-a.MarkedAt)
				}
				break
			}
			b.text, b.tone = "no answer that proves anything after "+span(a.OutcomeAt-a.MarkedAt), Violet
		case ledger.AttemptReceipt:
			b.text, b.tone = "receipt after "+span(a.OutcomeAt-a.MarkedAt), Green
		default:
			b.text = strings.ToLower(attemptWord(a.Outcome).Text) + " after " + span(a.OutcomeAt-a.MarkedAt)
		}
		beats = append(beats, b)
	}
	for _, e := range p.Evidence {
		if e.Source == "answer" && len(e.Body) == 0 {
			continue // nothing came: that is our side's, and stands there
		}
		b := beat{at: e.At, theirs: true, text: strings.ToLower(sourceWord(e.Source)) + ": " + findingWord(e.Finding), said: e.Sentence, by: e.By}
		switch e.Finding {
		case "found":
			b.tone = Green
			if p.differs() && e.Source != "person" {
				b.text, b.tone = strings.ToLower(sourceWord(e.Source))+": "+findingWord("mismatch"), Red
			}
		case "mismatch":
			b.tone = Red
		}
		beats = append(beats, b)
	}
	beats = append(beats, beat{at: p.Frame.Now, text: "now", now: true})
	if o.QuietFrom > p.Frame.Now && !p.differs() {
		beats = append(beats, beat{at: o.QuietFrom, text: "no attempt can still act; from here on “it did not happen” may be said"})
	}
	if o.NextLookAt > p.Frame.Now {
		beats = append(beats, beat{at: o.NextLookAt, theirs: true, text: "next look-up"})
	}
	slices.SortStableFunc(beats, func(a, b beat) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	sent := p.firstSend()
	for i := range beats {
		beats[i].dark = sent > 0 && !p.differs() && beats[i].at >= sent && beats[i].at <= p.Frame.Now
	}
	return beats
}

// differs reports whether the provider's receipt is on record, and is not what
// was approved: then it is known that something happened.
func (p HoldPage) differs() bool { return p.Operation.Reason == ledger.ReceiptMismatch }

func (p HoldPage) firstSend() int64 {
	if len(p.Attempts) > 0 {
		return p.Attempts[0].MarkedAt
	}
	return p.Operation.FirstMarkAt
}

// darkFor is how long nobody has known.
func (p HoldPage) darkFor() string { return Age(p.Frame.Now - p.firstSend()) }

// settle lists the decisions of a hold, in the order of the page.
func (p HoldPage) settle() []string {
	if BeforeSend(p.Operation) {
		if len(p.Earlier) == 0 && len(p.Operation.Overlaps) == 0 {
			return []string{"different-purchase", "reject"}
		}
		return []string{"same-purchase", "different-purchase", "reject"}
	}
	return []string{"happened", "did-not-happen", "happened-twice", "send-again", "still-unknown", "look-again"}
}

// question is what a person is here to answer.
func (p HoldPage) question() string {
	o := p.Operation
	switch {
	case BeforeSend(o) && Overlaps(o.Reason):
		return "The question: is this the same purchase as an earlier one?"
	case BeforeSend(o):
		return "The question: shall this still be sent?"
	case p.differs():
		return "The provider's receipt differs from what was approved. What is true?"
	case p.Words != "":
		return "The question: did this exact " + noun(o) + " (" + p.Words + ") happen, once?"
	}
	return "The question: did this exact " + noun(o) + " happen, once?"
}

// heldSince is when the waiting began.
func (p HoldPage) heldSince() int64 {
	if p.Operation.UnknownSince > 0 {
		return p.Operation.UnknownSince
	}
	return p.Operation.CreatedAt
}

// clocks says what time alone changes: from when on absence may be said, and
// until when the provider recognises the key.
func (p HoldPage) clocks() []string {
	f, o := p.Frame, p.Operation
	if BeforeSend(o) || p.differs() {
		return nil
	}
	var out []string
	if o.QuietFrom > f.Now {
		out = append(out, "“It did not happen” may be said from "+f.clock(o.QuietFrom)+", "+f.relative(o.QuietFrom)+": until then a request may still act.")
	}
	switch {
	case o.Status == ledger.Unknown && o.LookOnly:
		out = append(out, "It is kept for looking: the provider is asked, and it is not sent again by itself.")
	case o.Status == ledger.Unknown && o.NextSendAt > 0:
		out = append(out, "It may be sent again with the same key from "+f.clock(o.NextSendAt)+" on, since the rail recognises the key.")
	}
	switch {
	case p.KeyLost:
		out = append(out, "The rail changed since the first send, and the provider would not recognise a repeat of it: a second send may be a second "+noun(o)+".")
	case p.KeyUntil == 0:
		out = append(out, "This rail promises nothing about repeated keys: a second send may be a second "+noun(o)+".")
	case p.KeyUntil > f.Now:
		out = append(out, "Same-key resend is safe on this rail until "+f.clock(p.KeyUntil)+" ("+Age(p.KeyUntil-f.Now)+" left).")
	default:
		out = append(out, "The provider key aged out "+f.relative(p.KeyUntil)+": a second send may be a second "+noun(o)+".")
	}
	return out
}

// likeness is one row of the comparison of a held operation with earlier ones.
type likeness struct {
	label string
	ours  string
	each  []string
	same  []bool
	any   bool
}

// compare puts a held operation beside the earlier ones, field by field.
func (p HoldPage) compare() []likeness {
	f, o := p.Frame, p.Operation
	rows := []struct {
		label string
		get   func(ledger.Operation) string
	}{
		{"Amount", f.amount},
		{"Recipient", func(o ledger.Operation) string { return fours(o.Terms.Recipient) }},
		{"Reference", func(o ledger.Operation) string { return cmp.Or(o.Terms.Reference, o.ReferenceKey) }},
		{"Customer", func(o ledger.Operation) string { return o.Terms.Customer }},
		{"Rail", func(o ledger.Operation) string { return o.Rail }},
		{"Agent", func(o ledger.Operation) string { return o.Agent }},
		{"Run", func(o ledger.Operation) string { return o.RunID }},
		{"Step", func(o ledger.Operation) string { return o.Step }},
		{"Fingerprint", func(o ledger.Operation) string { return shortHex(o.Fingerprint) }},
	}
	var out []likeness
	for _, r := range rows {
		l := likeness{label: r.label, ours: r.get(o)}
		filled := l.ours != ""
		for _, e := range p.Earlier {
			v := r.get(e.Operation)
			l.each = append(l.each, v)
			l.same = append(l.same, v != "" && v == l.ours)
			l.any = l.any || v != "" && v == l.ours
			filled = filled || v != ""
		}
		if filled {
			out = append(out, l)
		}
	}
	return out
}

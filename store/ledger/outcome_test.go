package ledger

import (
	"slices"
	"strings"
	"testing"
)

func TestCompareNamesEveryDifference(t *testing.T) {
	all := ReceiptFields{Amount: true, Currency: true, Recipient: true, Reference: true, Stamp: true}
	approved := Operation{OrderID: "ord_1", Terms: Terms{Amount: 4800, HasAmount: true, Currency: "EUR", Recipient: "acct_7", Reference: "inv-1"}}
	receipt := func(change ...func(*Receipt)) Receipt {
		r := Receipt{ID: "pay_1", Amount: ptr[int64](4800), Currency: "EUR", Recipient: "acct_7", Reference: "inv-1", Stamp: "ord_1"}
		for _, c := range change {
			c(&r)
		}
		return r
	}
	for _, c := range []struct {
		claim string
		o     Operation
		r     Receipt
		named ReceiptFields
		want  []string
	}{
		{"all equal", approved, receipt(), all, nil},
		{"currency in another case", approved, receipt(func(r *Receipt) { r.Currency = "eur" }), all, nil},
		{"no id", approved, receipt(func(r *Receipt) { r.ID = "" }), ReceiptFields{}, []string{"/id"}},
		{"a blank id", approved, receipt(func(r *Receipt) { r.ID = " \t" }), all, []string{"/id"}},
		{"amount", approved, receipt(func(r *Receipt) { r.Amount = ptr[int64](4900) }), all, []string{"/amount"}},
		{"currency", approved, receipt(func(r *Receipt) { r.Currency = "USD" }), all, []string{"/currency"}},
		{"recipient", approved, receipt(func(r *Receipt) { r.Recipient = "ACCT_7" }), all, []string{"/recipient"}},
		{"reference", approved, receipt(func(r *Receipt) { r.Reference = "inv-2" }), all, []string{"/reference"}},
		{"stamp", approved, receipt(func(r *Receipt) { r.Stamp = "ord_2" }), all, []string{"/stamp"}},
		{"a receipt that says nothing of what is named", approved, Receipt{ID: "pay_1"}, all, []string{"/amount", "/currency", "/recipient", "/reference", "/stamp"}},
		{"what is not named is not compared", approved, Receipt{ID: "pay_1", Amount: ptr[int64](1), Currency: "USD", Recipient: "x", Stamp: "y"}, ReceiptFields{}, nil},
		{"only what is named", approved, Receipt{ID: "pay_1", Amount: ptr[int64](1), Currency: "USD"}, ReceiptFields{Amount: true}, []string{"/amount"}},
		{"what was never approved is not compared", Operation{OrderID: "ord_1"}, receipt(), all, nil},
		{"an amount of zero is an amount", Operation{OrderID: "ord_1", Terms: Terms{HasAmount: true}}, receipt(), all, []string{"/amount"}},
		{"no stamp on either side is no proof", Operation{}, Receipt{ID: "pay_1"}, ReceiptFields{Stamp: true}, []string{"/stamp"}},
	} {
		if got := Compare(c.o, c.r, c.named); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.claim, got, c.want)
		}
	}
}

// sent is an operation of which attempts were made, some unresolved.
func sent(s Status, attempts, open int, change ...func(*Operation)) Operation {
	o := Operation{OperationID: "op", OrderID: "ord_1", Status: s, Attempts: attempts, OpenAttempts: open, QuietFrom: 1, Version: 1}
	for _, c := range change {
		c(&o)
	}
	return o
}

func why(r Reason) func(*Operation) { return func(o *Operation) { o.Reason = r } }

func TestWhatAnAnswerMeans(t *testing.T) {
	const (
		fence = true
		stale = false
	)
	receipt := &Receipt{ID: "pay_1"}
	found := Answer{Finding: Found, Receipt: receipt, HTTPStatus: 201}
	refused := Answer{Finding: Refused, HTTPStatus: 402, Sentence: "HTTP 402 card_declined."}
	notSent, pending, unclear, stuck := Answer{Finding: NotSent}, Answer{Finding: Pending}, Answer{Finding: Unclear}, Answer{Finding: Stuck}
	open := Attempt{Number: 1, Outcome: AttemptOpen}
	differs := []string{"/amount"}
	holding := func(r *Receipt) func(*Operation) { return func(o *Operation) { o.Receipt = r } }
	quarantined := func(o *Operation) { o.Quarantined = true }

	for _, c := range []struct {
		claim      string
		o          Operation
		a          Attempt
		answer     Answer
		mismatches []string
		fence      bool
		want       Settlement // its sentence is looked at below
	}{
		{"a matching receipt confirms", sent(InFlight, 1, 1), open, found, nil, fence, Settlement{Outcome: AttemptReceipt, Event: Receive}},
		{"a matching receipt confirms under an old fence", sent(InFlight, 2, 2), open, found, nil, stale, Settlement{Outcome: AttemptReceipt, Event: Receive}},
		{"a matching receipt confirms what was unknown", sent(Unknown, 1, 1), open, found, nil, stale, Settlement{Outcome: AttemptReceipt, Event: Receive}},
		{"a matching receipt confirms what was released again", sent(Ready, 1, 1), open, found, nil, stale, Settlement{Outcome: AttemptReceipt, Event: Receive}},
		{"a matching receipt clears an inconclusive hold", sent(UnknownHold, 1, 1, why(Inconclusive)), open, found, nil, stale, Settlement{Outcome: AttemptReceipt, Event: Receive}},
		{"only a person clears a mismatch", sent(UnknownHold, 1, 1, why(ReceiptMismatch)), open, found, nil, stale, Settlement{Outcome: AttemptReceipt}},
		{"only a person clears a conflict", sent(UnknownHold, 1, 1, why(EvidenceConflict)), open, found, nil, stale, Settlement{Outcome: AttemptReceipt}},
		{"a receipt for what was never marked is evidence only", sent(Ready, 0, 0), open, found, nil, stale, Settlement{Outcome: AttemptReceipt}},

		{"a receipt that differs is held", sent(InFlight, 1, 1), open, found, differs, fence, Settlement{Outcome: AttemptUnknown, Event: Mismatch, Reason: ReceiptMismatch}},
		{"a receipt that differs is held under an old fence", sent(Unknown, 1, 1), open, found, differs, stale, Settlement{Outcome: AttemptUnknown, Event: Mismatch, Reason: ReceiptMismatch}},
		{"a receipt that differs makes any hold one that only a person clears", sent(UnknownHold, 1, 1, why(Inconclusive)), open, found, differs, stale, Settlement{Outcome: AttemptUnknown, Event: Mismatch, Reason: ReceiptMismatch}},
		{"a receipt that differs is no news where it is known", sent(UnknownHold, 1, 1, why(ReceiptMismatch)), open, found, differs, stale, Settlement{Outcome: AttemptUnknown}},
		{"a receipt that differs stops one more send", sent(Ready, 1, 1), open, found, differs, stale, Settlement{Outcome: AttemptUnknown, Event: Mismatch, Reason: ReceiptMismatch}},
		{"found without a receipt proves nothing", sent(InFlight, 1, 1), open, Answer{Finding: Found}, nil, fence, Settlement{Outcome: AttemptUnknown, Event: Lose}},

		{"a refusal of the only attempt rejects", sent(InFlight, 1, 1), open, refused, nil, fence, Settlement{Outcome: AttemptDeclined, Event: Decline, Reason: Declined}},
		{"a refusal rejects where all others are resolved", sent(InFlight, 3, 1), open, refused, nil, fence, Settlement{Outcome: AttemptDeclined, Event: Decline, Reason: Declined}},
		{"a refusal says nothing about an earlier attempt", sent(InFlight, 2, 2), open, refused, nil, fence, Settlement{Outcome: AttemptDeclined, Event: Lose}},
		{"a refusal says nothing about what a restore forgot", sent(InFlight, 1, 1, quarantined), open, refused, nil, fence, Settlement{Outcome: AttemptDeclined, Event: Lose}},
		{"a refusal under an old fence changes no status", sent(InFlight, 1, 1), open, refused, nil, stale, Settlement{Outcome: AttemptDeclined}},
		{"a refusal never rejects what is unknown", sent(Unknown, 1, 1), open, refused, nil, fence, Settlement{Outcome: AttemptDeclined}},
		{"a refusal never rejects a hold", sent(UnknownHold, 1, 1, why(Inconclusive)), open, refused, nil, fence, Settlement{Outcome: AttemptDeclined}},

		{"what was not sent can be sent later", sent(InFlight, 1, 1), open, notSent, nil, fence, Settlement{Outcome: AttemptNotSent, Event: Unsend}},
		{"what was not sent this time may have been sent before", sent(InFlight, 2, 2), open, notSent, nil, fence, Settlement{Outcome: AttemptNotSent, Event: Lose}},
		{"what a restore forgot may have been sent before", sent(InFlight, 1, 1, quarantined), open, notSent, nil, fence, Settlement{Outcome: AttemptNotSent, Event: Lose}},
		{"not sent, under an old fence, changes no status", sent(InFlight, 1, 1), open, notSent, nil, stale, Settlement{Outcome: AttemptNotSent}},
		{"not sent never frees what is unknown", sent(Unknown, 1, 1), open, notSent, nil, fence, Settlement{Outcome: AttemptNotSent}},

		{"accepted is unknown, and never sent again", sent(InFlight, 1, 1), open, pending, nil, fence, Settlement{Outcome: AttemptUnknown, Event: Lose, Accepted: true}},
		{"accepted counts under an old fence", sent(InFlight, 2, 2), open, pending, nil, stale, Settlement{Outcome: AttemptUnknown, Accepted: true}},
		{"accepted counts on what is unknown", sent(Unknown, 1, 1), open, pending, nil, stale, Settlement{Outcome: AttemptUnknown, Accepted: true}},

		{"an answer that is kept for the key leaves only looking", sent(InFlight, 1, 1), open, stuck, nil, fence, Settlement{Outcome: AttemptUnknown, Event: Lose, LookOnly: true}},
		{"an answer that is kept counts under an old fence", sent(InFlight, 2, 2), open, stuck, nil, stale, Settlement{Outcome: AttemptUnknown, LookOnly: true}},
		{"an answer that is kept after the end is nothing", sent(Confirmed, 1, 0, holding(receipt)), open, stuck, nil, fence, Settlement{Outcome: AttemptUnknown}},

		{"no answer is unknown", sent(InFlight, 1, 1), open, unclear, nil, fence, Settlement{Outcome: AttemptUnknown, Event: Lose}},
		{"no answer under an old fence changes no status", sent(InFlight, 1, 1), open, unclear, nil, stale, Settlement{Outcome: AttemptUnknown}},
		{"no answer leaves unknown as it is", sent(Unknown, 1, 1), open, unclear, nil, fence, Settlement{Outcome: AttemptUnknown}},
		{"the zero answer is unknown", sent(InFlight, 1, 1), open, Answer{}, nil, fence, Settlement{Outcome: AttemptUnknown, Event: Lose}},
		{"a finding nobody knows is unknown", sent(InFlight, 1, 1), open, Answer{Finding: "ok"}, nil, fence, Settlement{Outcome: AttemptUnknown, Event: Lose}},

		{"the same receipt again is nothing new", sent(Confirmed, 1, 0, holding(receipt)), open, found, nil, stale, Settlement{Outcome: AttemptReceipt}},
		{"another receipt is a second effect", sent(Confirmed, 2, 1, holding(&Receipt{ID: "pay_0"})), open, found, nil, stale, Settlement{Outcome: AttemptReceipt, Late: SecondEffect}},
		{"another receipt that differs is a second effect", sent(Confirmed, 2, 1, holding(&Receipt{ID: "pay_0"})), open, found, differs, stale, Settlement{Outcome: AttemptUnknown, Late: SecondEffect}},
		{"a receipt cannot be told from one without an id", sent(Confirmed, 1, 1, holding(&Receipt{})), open, found, nil, stale, Settlement{Outcome: AttemptReceipt}},
		{"a receipt after a rejection is a late effect", sent(Rejected, 1, 1, why(NotExecuted)), open, found, nil, stale, Settlement{Outcome: AttemptReceipt, Late: LateEffect}},
		{"a receipt that differs, after a rejection, is a late effect", sent(Rejected, 1, 1, why(NotExecuted)), open, found, differs, stale, Settlement{Outcome: AttemptUnknown, Late: LateEffect}},
		{"another's receipt is no effect of ours, after a rejection", sent(Rejected, 1, 1, why(NotExecuted)), open, found, []string{"/stamp"}, stale, Settlement{Outcome: AttemptUnknown}},
		{"another's receipt is no second effect", sent(Confirmed, 2, 1, holding(&Receipt{ID: "pay_0"})), open, found, []string{"/id"}, stale, Settlement{Outcome: AttemptUnknown}},
		{"a refusal after the end is nothing", sent(Confirmed, 1, 0, holding(receipt)), open, refused, nil, fence, Settlement{Outcome: AttemptDeclined}},
		{"silence after the end is nothing", sent(Rejected, 1, 0), open, unclear, nil, fence, Settlement{Outcome: AttemptUnknown}},
		{"accepted after the end is nothing", sent(Rejected, 1, 0), open, pending, nil, fence, Settlement{Outcome: AttemptUnknown}},

		{"silence does not undo a definite no", sent(Unknown, 1, 0), Attempt{Outcome: AttemptDeclined}, unclear, nil, stale, Settlement{Outcome: AttemptDeclined}},
		{"a receipt undoes a definite no", sent(Unknown, 1, 0), Attempt{Outcome: AttemptDeclined}, found, nil, stale, Settlement{Outcome: AttemptReceipt, Event: Receive}},
		{"a no does not undo a receipt", sent(UnknownHold, 1, 0, why(EvidenceConflict)), Attempt{Outcome: AttemptReceipt}, refused, nil, fence, Settlement{Outcome: AttemptReceipt}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got := Settle(c.o, c.a, c.answer, c.mismatches, c.fence)
			sentence := got.Sentence
			got.Sentence = ""
			if shown := c.answer.Finding == Found || c.answer.Finding == Pending; got.Sighted != shown {
				t.Errorf("sighted: %t, and the answer shows something: %t", got.Sighted, shown)
			}
			got.Sighted = false
			if got != c.want {
				t.Errorf("%+v\nwant %+v\n%s", got, c.want, sentence)
			}
			if !strings.HasSuffix(sentence, ".") || c.answer.Sentence != "" && !strings.HasSuffix(sentence, c.answer.Sentence) {
				t.Errorf("sentence %q", sentence)
			}
			if got.Event == "" {
				return
			}
			if _, err := c.o.Resolve(c.a, got.Outcome).On(got.Event, Worker, got.Reason, 2); err != nil {
				t.Errorf("the lifecycle refuses what Settle decided: %v", err)
			}
		})
	}
}

func TestSettlementSaysWhatItMeans(t *testing.T) {
	open := Attempt{Outcome: AttemptOpen}
	for _, c := range []struct {
		o          Operation
		answer     Answer
		mismatches []string
		fence      bool
		want       string
	}{
		{sent(InFlight, 1, 1), Answer{Finding: Found, Receipt: &Receipt{ID: "pay_1"}}, nil, true, "Receipt pay_1 matches what was approved."},
		{sent(InFlight, 1, 1), Answer{Finding: Found, Receipt: &Receipt{ID: "pay_1"}}, []string{"/amount", "/currency"}, true, "Receipt pay_1 differs from what was approved: amount, currency."},
		{sent(InFlight, 2, 2), Answer{Finding: Refused, Sentence: "HTTP 402."}, nil, true, "The provider refused this attempt. Another one may have acted. HTTP 402."},
		{sent(InFlight, 1, 1), Answer{Finding: Refused}, nil, false, "The provider refused this attempt. It came under an old fence and changes no status."},
		{sent(InFlight, 1, 1), Answer{Finding: Unclear, Sentence: "No answer in 10s."}, nil, true, "The answer proves nothing: it may or may not have happened. No answer in 10s."},
		{sent(Confirmed, 2, 0, func(o *Operation) { o.Receipt = &Receipt{ID: "pay_1"} }), Answer{Finding: Found, Receipt: &Receipt{ID: "pay_2"}}, nil, false, "Receipt pay_2 is another one than pay_1: it happened twice."},
	} {
		if got := Settle(c.o, open, c.answer, c.mismatches, c.fence).Sentence; got != c.want {
			t.Errorf("%q\nwant %q", got, c.want)
		}
	}
}

// TestSettleNeverRejectsWhileAnAttemptMayAct tries every finding in every
// standing, and looks only at what must not be.
func TestSettleNeverRejectsWhileAnAttemptMayAct(t *testing.T) {
	for _, s := range Statuses() {
		for _, f := range []Finding{Found, Refused, NotSent, Pending, Stuck, Unclear, ""} {
			for attempts := 1; attempts <= 3; attempts++ {
				for open := 0; open <= attempts; open++ {
					for _, fenceHolds := range []bool{true, false} {
						for _, was := range []AttemptOutcome{AttemptOpen, AttemptUnknown, AttemptDeclined, AttemptNotSent} {
							o, a := sent(s, attempts, open), Attempt{Outcome: was}
							got := Settle(o, a, Answer{Finding: f, Receipt: &Receipt{ID: "r"}}, nil, fenceHolds)
							left := o.Resolve(a, got.Outcome).OpenAttempts
							place := string(s) + " " + string(f)
							if (got.Event == Decline || got.Event == Unsend) && (left > 0 || !fenceHolds) {
								t.Errorf("%s: %s with %d unresolved, fence %v", place, got.Event, left, fenceHolds)
							}
							if !fenceHolds && got.Event != "" && got.Event != Receive {
								t.Errorf("%s: an old fence caused %s", place, got.Event)
							}
							if s.Final() && got.Event != "" {
								t.Errorf("%s: %s after the end", place, got.Event)
							}
							if left < 0 {
								t.Errorf("%s: %d unresolved", place, left)
							}
						}
					}
				}
			}
		}
	}
}

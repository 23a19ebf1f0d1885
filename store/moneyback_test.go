package store_test

import (
	"errors"
	"strings"
	"testing"

	"holdfast/store"
	"holdfast/store/ledger"
)

// takes says what a line takes back.
func takes(of string) func(*ledger.StatementLine) {
	return func(l *ledger.StatementLine) { l.Of = of }
}

// Made directly at the provider, and told by its statement.
func TestCase094ARefundOnAStatementCountsOnce(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	line := b.booked(-300, named("re_outside"), kind(ledger.LineRefund), takes("ch-op"))
	for range 2 {
		b.take(b.file("card", "x.csv", line))
		b.match()
		b.wantLeft("ch-op", 700)
	}
	b.wantLine(b.lines()[0], ledger.LineUnmatched, ledger.NotOurs, "", "op")
	if e := b.exceptions(ledger.NotOurs); len(e) != 1 || !strings.Contains(e[0].Sentence, "A refund that was made elsewhere took back 3.00 EUR of op (ch-op)") {
		t.Errorf("%+v", e)
	}
	var exceeds store.RefundExceeds
	if _, err := b.refund("R1", "ch-op", 800); !errors.As(err, &exceeds) || exceeds.Left != 700 {
		t.Errorf("800: %v", err)
	}
	b.ok(errOf(b.refund("R1", "ch-op", 700)))
	if asked := b.asked(); len(asked) > 0 {
		t.Error(asked)
	}
}

// A refund of ours on the statement is the same money.
func TestARefundOfOursOnAStatementIsNoOther(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	b.sold("op", 1000)
	o, err := b.refund("R1", "ch-op", 300)
	b.ok(err)
	m := b.markOf("R1", "card")
	b.settle(m, silence)
	b.take(b.file("card", "x.csv", b.booked(-300, named("re_1"), kind(ledger.LineRefund), takes("ch-op"), stamped(o))))
	b.wantLeft("ch-op", 700)
	b.look("R1", ledger.LookFound, receipt(m.Operation, "re_1"))
	b.wantLeft("ch-op", 700)
	b.match()
	b.wantLeft("ch-op", 700)
	e, _, err := b.report("op", 200, func(r *store.RefundReport) { r.ReceiptID = "ch-op" })
	b.ok(err)
	b.ok(b.prove(fin, e.ID, "re_2", 200))
	b.take(b.file("card", "y.csv", b.booked(-200, named("re_2"), kind(ledger.LineRefund), takes("ch-op"))))
	b.wantLeft("ch-op", 500)
}

// Refunded, and then the dispute is lost: more went back than came in.
func TestCase091ADisputeAfterARefundIsFlagged(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	o, err := b.refund("R1", "ch-op", 1000)
	b.ok(err)
	m := b.markOf("R1", "card")
	b.settle(m, found(o, "re_1"))
	for _, name := range []string{"x.csv", "again.csv"} {
		b.take(b.file("card", name, b.booked(-1000, called("txn_1"), named("du_1"), kind(ledger.LineDispute), takes("ch-op"))))
	}
	all, err := b.s.OpenExceptions(b.ctx, tenant)
	b.ok(err)
	if len(all) != 1 || all[0].OperationID != "op" || len(all[0].Evidence) != 1 ||
		!strings.Contains(all[0].Sentence, "Of ch-op, 10.00 EUR came in and 20.00 EUR went back or may have. A dispute took back 10.00 EUR of op") {
		t.Fatalf("%+v", all)
	}
	b.wantLeft("ch-op", 0)
}

// The other way round no refund passes. A dispute that was won is no money lost.
func TestCase091NoRefundAfterALostDispute(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	b.take(b.file("card", "x.csv", b.booked(-1000, named("du_1"), kind(ledger.LineDispute), takes("ch-op"))))
	for id, amount := range map[string]int64{"whole": 1000, "tax": 200} {
		if _, err := b.refund(id, "ch-op", amount); err == nil {
			t.Errorf("a refund of %d after the dispute was lost", amount)
		}
	}
	b.take(b.file("card", "won.csv", b.booked(1000, named("du_1"), called("won"), kind(ledger.LineDispute), takes("ch-op"))))
	b.wantLeft("ch-op", 1000)
}

// A refund that was on its way when the dispute was lost may have paid: it counts.
func TestARefundUnderWayBesideADisputeIsFlagged(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	o, err := b.refund("R1", "ch-op", 1000)
	b.ok(err)
	m := b.markOf("R1", "card")
	b.take(b.file("card", "x.csv", b.booked(-1000, named("du_1"), kind(ledger.LineDispute), takes("ch-op"))))
	b.settle(m, found(o, "re_1"))
	if asked := b.asked(); len(asked) != 1 || asked[0] != string(ledger.Contradiction) {
		t.Errorf("asked %q", asked)
	}
}

// paidBack is an entry that an operation settled with the receipt re_1.
func (b *bench) paidBack() (ledger.RefundOwed, ledger.Operation) {
	b.t.Helper()
	e := b.twice("op", 1000)
	o, err := b.giveBack(b.person("fin", "finance"), e.ID, 1000)
	b.ok(err)
	m := b.markOf(o.OperationID, "card")
	o = b.settle(m, found(m.Operation, "re_1"))
	return b.wantRefund(e.ID, ledger.RefundIsSettled, 0, 1000, 0), o
}

func TestARefundThatCameBackOnAStatementIsOwedAgain(t *testing.T) {
	for name, says := range map[string][]func(*ledger.StatementLine){
		"by the refund's id":  {named("re_1")},
		"by what it is of":    {named("re_1_back"), takes("re_1")},
		"by its reference":    {ref("")},
		"by the stamp of it ": {nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shop(t))
			e, o := b.paidBack()
			switch {
			case says[0] == nil:
				says[0] = stamped(o)
			case name == "by its reference":
				says[0] = ref(o.Terms.Reference)
			}
			for range 2 {
				b.take(b.file("card", "x.csv", b.booked(1000, append(says, kind(ledger.LineAdjustment))...)))
				b.reopen()
				after := b.wantRefund(e.ID, ledger.RefundIsOwed, 1000, 0, 0)
				if after.DueAt != e.DueAt || after.Reopened != 1 {
					t.Errorf("%+v", after)
				}
			}
			b.wantLine(b.lines()[0], ledger.LineUnmatched, "", "", o.OperationID)
			b.wantLeft("ch2-op", 1000)
		})
	}
}

func TestAnotherAmountThatCameBackIsAPersonsQuestion(t *testing.T) {
	b := newBench(t, shop(t))
	e, o := b.paidBack()
	b.take(b.file("card", "x.csv", b.booked(400, named("re_1"), kind(ledger.LineAdjustment))))
	b.wantRefund(e.ID, ledger.RefundIsSettled, 0, 1000, 0)
	b.wantLine(b.lines()[0], ledger.LineUnmatched, ledger.AmountDiffers, "", o.OperationID)
}

func TestAnAgentsRefundThatCameBackIsAnException(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	o, err := b.refund("R1", "ch-op", 300)
	b.ok(err)
	b.settle(b.markOf("R1", "card"), found(o, "re_1"))
	b.take(b.file("card", "x.csv", b.booked(300, named("re_1"), kind(ledger.LineAdjustment))))
	b.wantLine(b.lines()[0], ledger.LineUnmatched, ledger.LineContradicts, "", "R1")
}

package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// Action types of a shop that takes money and gives it back.
const (
	sale   = "sale"   // card
	back   = "back"   // card: names the charge
	payout = "payout" // bank: names nobody but who gets it
)

// shop are rules under which a sale can be given back on its own rail or paid
// out on another one.
func shop(t testing.TB) func(*ledger.Rulebook) {
	return func(r *ledger.Rulebook) {
		add := func(name, rail, effect, schema string, refund *ledger.RefundSpec) {
			a, err := ledger.NewActionType(name, ledger.ActionSpec{Rail: rail, Effect: effect, Schema: []byte(schema), Refund: refund}, r.Currencies)
			if err != nil {
				t.Fatal(err)
			}
			r.Actions[name] = a
		}
		withCharge := strings.Replace(schema, `"properties": {`, `"required": ["charge", "amount"], "properties": {"charge": {"type": "string", "x-role": "refund_of"},`, 1)
		withCustomer := strings.Replace(schema, `"properties": {`, `"properties": {"customer": {"type": "string", "x-role": "customer"},`, 1)
		add(sale, "card", "charge", withCustomer, &ledger.RefundSpec{ActionType: back, Payload: map[string]any{
			"charge": "{receipt_id}", "amount": "{amount}", "currency": "{currency}"}})
		add(back, "card", "refund", strings.Replace(withCharge, `{"type": "integer", "x-role"`, `{"type": "integer", "minimum": 1, "x-role"`, 1), nil)
		add(payout, "bank", "payout", schema, nil)
	}
}

// sold is a confirmed sale of so much; its receipt is "ch-" and its name.
func (b *bench) sold(id string, amount int64) ledger.Operation {
	b.t.Helper()
	b.submit(id, sale, map[string]any{"amount": amount})
	m := b.markOf(id, "card")
	b.settle(m, found(m.Operation, "ch-"+id))
	return b.want(id, ledger.Confirmed, "")
}

// markOf claims what is due on a rail and marks one of it.
func (b *bench) markOf(id, rail string) store.Marked {
	b.t.Helper()
	for _, c := range b.claims("w1", rail) {
		if c.Operation.OperationID == id {
			return b.mark(c)
		}
	}
	b.t.Fatalf("%s is not due on %s", id, rail)
	return store.Marked{}
}

func (b *bench) refund(id, charge string, amount int64, change ...func(*ledger.Operation)) (ledger.Operation, error) {
	b.t.Helper()
	r, err := b.s.Submit(b.ctx, b.draft(id, back, map[string]any{"charge": charge, "amount": amount}, change...))
	return r.Operation, err
}

// wantLeft asks for more than is left, and is told how much that is.
func (b *bench) wantLeft(charge string, left int64) {
	b.t.Helper()
	_, err := b.refund("too-much", charge, 1_000_000)
	var exceeds store.RefundExceeds
	if !errors.As(err, &exceeds) || exceeds.Left != left {
		b.t.Fatalf("%d is left of %s, not %d: %v", exceeds.Left, charge, left, err)
	}
	if _, err := b.s.Operation(b.ctx, tenant, "too-much"); !errors.Is(err, store.ErrNotFound) {
		b.t.Error("what was refused used up its id")
	}
}

func TestCase089OneOfThreeWholeRefundsPasses(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	if _, err := b.refund("R1", "ch-op", 1000); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"R2", "R3"} {
		if _, err := b.refund(id, "ch-op", 1000); err == nil || err.Error() != "Of the charge ch-op over 10.00 EUR, 0.00 EUR is left to give back, and this asks for 10.00 EUR. Recorded refunds of it: R1." {
			t.Errorf("%s: %v", id, err)
		}
	}
	again, err := b.refund("R1", "ch-op", 1000)
	if err != nil || again.OperationID != "R1" {
		t.Errorf("the first one's repeat: %v", err)
	}
}

func TestCase089OneOfThreePassesInParallel(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	var passed, refused sync.Map
	var all sync.WaitGroup
	for i := range 12 {
		id := fmt.Sprint("R", i)
		draft := b.draft(id, back, map[string]any{"charge": "ch-op", "amount": 1000})
		all.Go(func() {
			var exceeds store.RefundExceeds
			if _, err := b.s.Submit(b.ctx, draft); err == nil {
				passed.Store(id, true)
			} else if errors.As(err, &exceeds) {
				refused.Store(id, true)
			}
		})
	}
	all.Wait()
	size := func(m *sync.Map) (n int) {
		m.Range(func(any, any) bool { n++; return true })
		return n
	}
	if size(&passed) != 1 || size(&refused) != 11 {
		t.Errorf("%d passed and %d were refused", size(&passed), size(&refused))
	}
}

// Whatever is not known not to have happened counts, at every step of its life.
func TestARefundCountsUntilItIsRejected(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	fin := b.person("fin", "finance", "approver")
	_, err := b.refund("R1", "ch-op", 300, func(o *ledger.Operation) {
		*o = b.draft("R1", back, map[string]any{"charge": "ch-op", "amount": 300, "recipient": "acct_ask"})
	})
	b.ok(err)
	b.want("R1", ledger.AwaitingApproval, "")
	b.wantLeft("ch-op", 700)
	b.ok(b.decide(b.s.Approve, fin, "R1"))
	b.wantLeft("ch-op", 700) // ready
	m := b.markOf("R1", "card")
	b.wantLeft("ch-op", 700) // sending
	b.settle(m, silence)
	b.want("R1", ledger.Unknown, "")
	b.wantLeft("ch-op", 700)
	b.look("R1", ledger.LookFound, receipt(m.Operation, "re_1"))
	b.want("R1", ledger.Confirmed, "")
	b.wantLeft("ch-op", 700)

	_, err = b.refund("R2", "ch-op", 700) // to the last cent
	b.ok(err)
	b.wantLeft("ch-op", 0)
	b.settle(b.markOf("R2", "card"), refused)
	b.want("R2", ledger.Rejected, ledger.Declined)
	b.wantLeft("ch-op", 700)
	_, err = b.refund("R3", "ch-op", 700, func(o *ledger.Operation) { o.Step = "" })
	b.ok(err)
	b.ok(errOf(b.s.Cancel(b.ctx, tenant, "R3", agent)))
	b.wantLeft("ch-op", 700)
}

func TestARefundIsInTheCurrencyOfItsCharge(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	_, err := b.s.Submit(b.ctx, b.draft("R1", back, map[string]any{"charge": "ch-op", "amount": 10, "currency": "USD"}))
	var exceeds store.RefundExceeds
	if !errors.As(err, &exceeds) || exceeds.Left != 1000 || !strings.Contains(err.Error(), "10.00 EUR is left to give back, and in that currency only; this asks in USD") {
		t.Errorf("%v", err)
	}
}

func TestAnUnknownChargeHasNoLimit(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	for i := range 2 {
		_, err := b.refund(fmt.Sprint("R", i), "ch-elsewhere", 5000)
		b.ok(err)
	}
	b.wantLeft("ch-op", 1000)
}

// A refund that is cut down replaces the one that waits: the two do not add up.
func TestAReplacedRefundDoesNotCount(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	_, err := b.refund("R1", "ch-op", 1000)
	b.ok(err)
	_, err = b.refund("R2", "ch-op", 900, func(o *ledger.Operation) { o.Replaces = "R1" })
	b.ok(err)
	b.want("R1", ledger.Rejected, ledger.Replaced)
	b.wantLeft("ch-op", 100)
	_, err = b.refund("R3", "ch-op", 1001, func(o *ledger.Operation) { o.Replaces = "R2" })
	if err == nil {
		t.Error("it replaced one and exceeds the charge")
	}
	if o := b.get("R2"); o.Status.Final() {
		t.Error("what was refused replaced another one")
	}
}

// The provider gave back the whole although it was asked for a part.
func TestCase101ADroppedAmountIsHeldAndCountsInFull(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	b.sold("op", 1000)
	o, err := b.refund("R1", "ch-op", 300)
	b.ok(err)
	m := b.markOf("R1", "card")
	whole := receipt(o, "re_1")
	amount := int64(1000)
	whole.Amount = &amount
	b.settle(m, ledger.Answer{Finding: ledger.Found, Receipt: &whole, HTTPStatus: 201})
	b.want("R1", ledger.UnknownHold, ledger.ReceiptMismatch)
	b.wantLeft("ch-op", 0) // not 700
	b.ok(b.decide(b.s.Happened, fin, "R1", withReceipt("re_1", 1000), meant))
	b.want("R1", ledger.Confirmed, "")
	b.wantLeft("ch-op", 0)
	b.wantOwed("re_1 overcharge 700")
	if e := b.owed()[0]; e.Direction != ledger.OwedToUs {
		t.Error(e.Direction)
	}
}

// A refund that took effect twice has given back twice.
func TestARefundsSecondEffectCounts(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	_, err := b.refund("R1", "ch-op", 300)
	b.ok(err)
	m := b.markOf("R1", "card")
	b.settle(m, silence)
	b.look("R1", ledger.LookFound, receipt(m.Operation, "re_1"), receipt(m.Operation, "re_2"))
	b.want("R1", ledger.Confirmed, "")
	b.wantLeft("ch-op", 400)
}

// Money that went back elsewhere while a refund waited leaves less than it asks
// for: it is not sent.
func TestARefundIsNotSentOverWhatWentBackMeanwhile(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("op", 1000)
	for _, id := range []string{"R1", "R2"} {
		_, err := b.refund(id, "ch-op", 400)
		b.ok(err)
	}
	claims := b.claims("w1", "card")
	whole := int64(700)
	m := b.mark(claims[0])
	r := receipt(m.Operation, "re_1")
	r.Amount = &whole
	b.settle(m, ledger.Answer{Finding: ledger.Found, Receipt: &r}) // 700 instead of 400
	b.wantUnmarked(claims[1])
	o := b.want(claims[1].Operation.OperationID, ledger.Rejected, ledger.AuthorityGone)
	if !strings.Contains(o.Detail, "3.00 EUR is left to give back, and this asks for 4.00 EUR") {
		t.Error(o.Detail)
	}
}

// Two rails may call two charges by one name.
func TestAChargeIsItsOwnRails(t *testing.T) {
	b := newBench(t, shop(t), func(r *ledger.Rulebook) {
		a, err := ledger.NewActionType("debit", ledger.ActionSpec{Rail: "bank", Effect: "debit", Schema: []byte(schema)}, r.Currencies)
		if err != nil {
			t.Fatal(err)
		}
		r.Actions["debit"] = a
	})
	b.submit("other", "debit", map[string]any{"amount": 50})
	m := b.markOf("other", "bank")
	b.settle(m, found(m.Operation, "ch-op"))
	b.clock.move(time.Hour)
	b.sold("op", 1000)
	b.wantLeft("ch-op", 1000)
}

package store_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/store"
	"holdfast/store/ledger"
)

// refundDecision is what a person decides about an entry as it is now.
func (b *bench) refundDecision(p ledger.PersonRecord, id string) store.RefundDecision {
	b.t.Helper()
	e, err := b.s.RefundOwed(b.ctx, tenant, id)
	b.ok(err)
	return store.RefundDecision{Person: p, Version: e.Version, Reason: "paid by hand"}
}

func (b *bench) prove(p ledger.PersonRecord, id, proof string, amount int64) error {
	b.t.Helper()
	return errOf(b.s.ProveRefund(b.ctx, tenant, id, b.refundDecision(p, id), store.RefundProof{Amount: amount, ID: proof, PaidOn: "2023-11-14"}))
}

func (b *bench) report(id string, amount int64, change ...func(*store.RefundReport)) (ledger.RefundOwed, bool, error) {
	b.t.Helper()
	r := store.RefundReport{TenantID: tenant, OperationID: id, Amount: amount, Currency: "EUR", By: agent}
	for _, c := range change {
		c(&r)
	}
	return b.s.ReportRefund(b.ctx, r)
}

func (b *bench) confirmed(id string) {
	b.t.Helper()
	m := b.sent(id, wire)
	b.settle(m, found(m.Operation, "pay-"+id))
}

func TestAReportIsOneEntryHoweverOftenItIsTold(t *testing.T) {
	b := newBench(t)
	b.confirmed("op")
	first, existed, err := b.report("op", 1000)
	b.ok(err)
	if existed || first.ReceiptID != "pay-op" || first.Rail != "bank" || first.Cause != ledger.CauseReported || first.Direction != ledger.WeOwe {
		t.Errorf("%v %+v", existed, first)
	}
	again, existed, err := b.report("op", 1000, func(r *store.RefundReport) { r.Reason = "told once more" })
	b.ok(err)
	if !existed || again.ID != first.ID || again.Version != first.Version {
		t.Errorf("%v %+v", existed, again)
	}
	_, _, err = b.report("op", 1001)
	var differs store.ReportDiffers
	if !errors.As(err, &differs) || fmt.Sprint(differs.Members) != "[amount]" {
		t.Errorf("another amount: %v", err)
	}
	free, existed, err := b.report("", 500, func(r *store.RefundReport) { r.ReceiptID, r.Rail, r.Customer = "ch_9", "card", "cus_1" })
	b.ok(err)
	if existed || free.OperationID != "" {
		t.Errorf("%+v", free)
	}
	byReceipt, existed, err := b.report("", 1000, func(r *store.RefundReport) { r.ReceiptID, r.Rail = "pay-op", "bank" })
	b.ok(err)
	if !existed || byReceipt.ID != first.ID {
		t.Errorf("the receipt of an operation was not recognised: %+v", byReceipt)
	}
	if len(b.owed()) != 2 {
		t.Errorf("%d entries", len(b.owed()))
	}
}

func TestAReportThatCannotBeRightIsRefusedByItsMember(t *testing.T) {
	b := newBench(t)
	b.confirmed("op")
	for member, change := range map[string]func(*store.RefundReport){
		"operation_id": func(r *store.RefundReport) { r.OperationID = "none" },
		"receipt_id":   func(r *store.RefundReport) { r.OperationID = "" },
		"rail":         func(r *store.RefundReport) { r.Rail = "moon" },
		"amount":       func(r *store.RefundReport) { r.Amount = 4801 },
		"currency":     func(r *store.RefundReport) { r.Currency = "USD" },
	} {
		_, _, err := b.report("op", 100, change)
		var wrong store.Misreported
		if !errors.As(err, &wrong) || wrong.Member != member {
			t.Errorf("%s: %v", member, err)
		}
	}
	_, _, err := b.report("op", 100, func(r *store.RefundReport) { r.Rail = "card" })
	var wrong store.Misreported
	if !errors.As(err, &wrong) || wrong.Member != "receipt_id" {
		t.Errorf("an effect on another rail without its id: %v", err)
	}
	if len(b.owed()) != 0 {
		t.Error("something is owed")
	}
}

// The same refund is told three times and counts once; a second one adds to it.
func TestCase092(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	e := b.owe("op", 10000)
	b.ok(b.prove(fin, e.ID, "re_1", 2500))
	for range 2 {
		b.wantErr(b.prove(fin, e.ID, "re_1", 2500), store.ErrForbidden)
	}
	for _, same := range []string{"RE_1 ", "re_\u200b1", "\uff52\uff45_1", "re _1", "re_1\x00", "r\te_1"} {
		b.wantErr(b.prove(fin, e.ID, same, 2500), store.ErrForbidden)
	}
	b.ok(b.prove(fin, e.ID, "re_2", 1000))
	b.wantRefund(e.ID, ledger.RefundIsOwed, 6500, 3500, 0)
	other := b.owe("op-2", 2500)
	b.wantErr(b.prove(fin, other.ID, "re_1", 2500), store.ErrForbidden)
}

// What is paid in unequal parts closes at exactly nothing.
func TestCase097And098(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	for _, c := range []struct {
		owed  int64
		parts []int64
	}{{1000, []int64{333, 333, 334}}, {3020, []int64{1185, 1835}}} {
		e := b.owe(fmt.Sprint("op-", c.owed), c.owed)
		for i, part := range c.parts {
			b.ok(b.prove(fin, e.ID, fmt.Sprint("re-", c.owed, "-", i), part))
		}
		after := b.wantRefund(e.ID, ledger.RefundIsSettled, 0, c.owed, 0)
		if after.DueAt != e.DueAt {
			t.Error("the day it was promised by moved")
		}
		b.wantErr(b.prove(fin, e.ID, "one-more", 1), ledger.ErrOverSettled)
	}
}

func TestWhatIsUnderWayIsNotPaidOnceMore(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	e := b.owe("op", 1000)
	m := b.begin(e, "back", 600)
	b.wantErr(b.prove(fin, e.ID, "re_1", 401), ledger.ErrOverSettled)
	b.ok(b.prove(fin, e.ID, "re_1", 400))
	b.wantRefund(e.ID, ledger.RefundIsSettling, 600, 400, 0)
	_, _, err := b.s.WaiveRefund(b.ctx, tenant, e.ID, b.refundDecision(fin, e.ID))
	b.wantErr(err, ledger.ErrNotAllowed)
	b.settle(m, found(m.Operation, "re_2"))
	b.wantRefund(e.ID, ledger.RefundIsSettled, 0, 1000, 0)
}

func TestAReceiptThatWasRecordedByHandSettlesOnce(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	e, other := b.owe("op", 1000), b.owe("op-2", 1000)
	m := b.begin(e, "back", 1000)
	b.ok(b.prove(fin, other.ID, "re_1", 1000))
	b.settle(m, found(m.Operation, "re_1"))
	b.wantRefund(e.ID, ledger.RefundIsOwed, 1000, 0, 0)
	b.wantRefund(other.ID, ledger.RefundIsSettled, 0, 1000, 0)
}

func TestAPaymentIsNotItsOwnRefund(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	e := b.owe("op", 1000)
	for _, proof := range []string{"twice-op", "TWICE-OP", "pay-op", "", "  "} {
		b.wantErr(b.prove(fin, e.ID, proof, 1000), store.ErrForbidden)
	}
}

// What one person asked to waive, another one agrees to; what came back since,
// nobody asked to waive.
func TestWhatCameBackSinceIsNotWaivedByOnePerson(t *testing.T) {
	b := newBench(t)
	fin, adm := b.person("fin", "finance"), b.person("adm", "admin")
	e := b.owe("op", 1000)
	b.ok(b.prove(fin, e.ID, "re_1", 600))
	_, asked, err := b.s.WaiveRefund(b.ctx, tenant, e.ID, b.refundDecision(fin, e.ID))
	b.ok(err)
	paid, err := b.s.RefundSettlements(b.ctx, tenant, e.ID)
	b.ok(err)
	b.ok(errOf(b.s.SayBounced(b.ctx, tenant, e.ID, paid[0].ID, b.refundDecision(adm, e.ID))))
	_, again, err := b.s.WaiveRefund(b.ctx, tenant, e.ID, b.refundDecision(adm, e.ID))
	b.ok(err)
	if !asked || !again {
		t.Error("one person waived what nobody else had seen")
	}
	b.wantRefund(e.ID, ledger.RefundIsOwed, 1000, 0, 0)
	_, _, err = b.s.WaiveRefund(b.ctx, tenant, e.ID, b.refundDecision(fin, e.ID))
	b.ok(err)
	b.wantRefund(e.ID, ledger.RefundIsWaived, 0, 0, 1000)
}

// A refund of ours that gave another payment back proves nothing here, and a day
// before the payment is a slip of the hand.
func TestAnotherPaymentsRefundIsNoProof(t *testing.T) {
	b := newBench(t, shop(t))
	fin := b.person("fin", "finance")
	b.sold("one", 1000)
	b.sold("other", 900)
	b.ok(errOf(b.refund("back", "ch-other", 900)))
	m := b.markOf("back", "card")
	b.settle(m, found(m.Operation, "re_other"))
	e, _, err := b.report("one", 1000)
	b.ok(err)
	for _, p := range []store.RefundProof{{Amount: 1000, ID: "re_other"}, {Amount: 1000, ID: "ch-other"}, {Amount: 1000, ID: "re_1", PaidOn: "1900-01-01"}} {
		_, err = b.s.ProveRefund(b.ctx, tenant, e.ID, b.refundDecision(fin, e.ID), p)
		b.wantErr(err, store.ErrForbidden)
	}
	b.wantRefund(e.ID, ledger.RefundIsOwed, 1000, 0, 0)
}

// A report names one effect: not the operation of one and the receipt of another,
// and not more than is left of what was taken.
func TestAReportOwesNoMoreThanIsLeftAndToNobodyElse(t *testing.T) {
	b := newBench(t, shop(t))
	b.sold("one", 1000)
	b.sold("other", 900)
	_, _, err := b.report("one", 100, func(r *store.RefundReport) { r.ReceiptID = "ch-other" })
	var wrong store.Misreported
	if !errors.As(err, &wrong) || wrong.Member != "receipt_id" || !strings.Contains(wrong.Sentence, "other") {
		t.Errorf("another's receipt: %v", err)
	}
	b.ok(errOf(b.refund("back", "ch-one", 800)))
	m := b.markOf("back", "card")
	b.settle(m, found(m.Operation, "re_1"))
	if _, _, err = b.report("one", 201); !errors.As(err, &wrong) || wrong.Member != "amount" || !strings.Contains(wrong.Sentence, "200 is left") {
		t.Errorf("more than is left: %v", err)
	}
	for _, known := range []bool{false, true} {
		if _, existed, err := b.report("one", 200); err != nil || existed != known {
			t.Errorf("what is left: %v %v", existed, err)
		}
	}
}

func TestWaivingTakesTwoPeople(t *testing.T) {
	b := newBench(t)
	fin, adm, view := b.person("fin", "finance"), b.person("adm", "admin"), b.person("view", "viewer", "approver")
	e := b.owe("op", 1000)
	waive := func(p ledger.PersonRecord) (bool, error) {
		_, asked, err := b.s.WaiveRefund(b.ctx, tenant, e.ID, b.refundDecision(p, e.ID))
		return asked, err
	}
	_, err := waive(view)
	b.wantErr(err, store.ErrForbidden)
	asked, err := waive(fin)
	b.ok(err)
	if !asked {
		t.Error("one person waived alone")
	}
	_, err = waive(fin)
	b.wantErr(err, store.ErrForbidden)
	b.wantRefund(e.ID, ledger.RefundIsOwed, 1000, 0, 0)
	b.ok(b.prove(fin, e.ID, "re_1", 300))
	asked, err = waive(adm)
	b.ok(err)
	if asked {
		t.Error("the second person was taken for the first")
	}
	b.wantRefund(e.ID, ledger.RefundIsWaived, 0, 300, 700)
	ws, err := b.s.RefundWaivers(b.ctx, tenant, e.ID)
	b.ok(err)
	if len(ws) != 1 || ws[0].AskedBy != fin.Email || ws[0].WaivedBy != adm.Email || ws[0].Amount != 700 {
		t.Errorf("%+v", ws)
	}
}

func TestABounceIsOwedAgainAsItWasDue(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	e := b.owe("op", 1000)
	b.ok(b.prove(fin, e.ID, "re_1", 1000))
	paid, err := b.s.RefundSettlements(b.ctx, tenant, e.ID)
	b.ok(err)
	for range 2 { // told twice
		_, err = b.s.BounceRefund(b.ctx, tenant, paid[0].ID, "account closed", reconciler)
		b.ok(err)
	}
	after := b.wantRefund(e.ID, ledger.RefundIsOwed, 1000, 0, 0)
	if after.DueAt != e.DueAt || after.Reopened != 1 {
		t.Errorf("%+v", after)
	}
	b.wantErr(b.prove(fin, e.ID, "re_1", 1000), store.ErrForbidden) // spent for ever
	b.ok(b.prove(fin, e.ID, "re_2", 1000))
}

func TestADecisionOnAnOldEntryIsRefused(t *testing.T) {
	b := newBench(t)
	fin, adm := b.person("fin", "finance"), b.person("adm", "admin")
	e := b.owe("op", 1000)
	old := b.refundDecision(adm, e.ID)
	b.ok(b.prove(fin, e.ID, "re_1", 100))
	_, err := b.s.ProveRefund(b.ctx, tenant, e.ID, old, store.RefundProof{Amount: 900, ID: "re_2"})
	b.wantErr(err, store.ErrStale)
	_, _, err = b.s.WaiveRefund(b.ctx, tenant, e.ID, old)
	b.wantErr(err, store.ErrStale)
	b.wantRefund(e.ID, ledger.RefundIsOwed, 900, 100, 0)
}

func TestBalancesAreTheJournalsPerCustomerRailAndCurrency(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	for i, customer := range []string{"cus_1", "cus_1", "cus_2"} {
		_, _, err := b.report("", 1000, func(r *store.RefundReport) {
			r.ReceiptID, r.Rail, r.Customer = fmt.Sprint("ch_", i), "card", customer
		})
		b.ok(err)
	}
	_, _, err := b.report("", 700, func(r *store.RefundReport) {
		r.ReceiptID, r.Rail, r.Currency, r.Direction = "po_1", "bank", "USD", ledger.OwedToUs
	})
	b.ok(err)
	b.ok(b.prove(fin, b.owed()[0].ID, "re_1", 400))
	all, err := b.s.RefundBalances(b.ctx, tenant)
	b.ok(err)
	var got []string
	for _, s := range all {
		got = append(got, fmt.Sprintf("%s %s %s %s %d/%d/%d", s.Direction, s.Customer, s.Rail, s.Currency, s.Open, s.Settled, s.Owed))
	}
	want := "we_owe cus_1 card EUR 1600/400/2000|we_owe cus_2 card EUR 1000/0/1000|owed_to_us  bank USD 700/0/700"
	if strings.Join(got, "|") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "|"), want)
	}
	b.clock.move(9 * 24 * time.Hour)
	ages, err := b.s.RefundAges(b.ctx, tenant)
	b.ok(err)
	if len(ages) != 2 || ages[0].Open != [3]int64{0, 2600, 0} || ages[0].Entries != [3]int{0, 3, 0} || ages[1].Currency != "USD" {
		t.Errorf("%+v", ages)
	}
}

func TestPagesOfWhatIsOwedFollowOneAnother(t *testing.T) {
	b := newBench(t)
	for i := range 7 {
		_, _, err := b.report("", 1000, func(r *store.RefundReport) {
			r.ReceiptID, r.Rail, r.DueAt = fmt.Sprint("ch_", i), "card", b.s.Now()+int64(i%3)
		})
		b.ok(err)
	}
	var got []string
	for f := (store.RefundFilter{Limit: 3, Rail: "card"}); ; {
		items, next, err := b.s.RefundPage(b.ctx, tenant, f)
		b.ok(err)
		for _, e := range items {
			got = append(got, e.ReceiptID)
		}
		if f.Cursor = next; next == "" {
			break
		}
	}
	if strings.Join(got, " ") != "ch_0 ch_3 ch_6 ch_1 ch_4 ch_2 ch_5" {
		t.Error(got)
	}
	_, _, err := b.s.RefundPage(b.ctx, "other", store.RefundFilter{Cursor: "1-abc"})
	b.wantErr(err, store.ErrForbidden)
}

func TestAnEntryIsSaidToBeOverdueOnce(t *testing.T) {
	b := newBench(t)
	e := b.owe("op", 1000)
	b.clock.move(5 * 24 * time.Hour) // the very day
	for i, want := range []store.RefundsAged{{Open: 1}, {Open: 1, Overdue: 1}, {Open: 1, Overdue: 1}} {
		a, err := b.s.AgeRefunds(b.ctx, sweeper)
		b.ok(err)
		if a != want {
			t.Errorf("round %d: %+v", i, a)
		}
		b.clock.move(24 * time.Hour)
	}
	said := 0
	b.ok(b.s.EachEntry(b.ctx, 0, func(l ledger.Entry) error {
		if l.ObjectID == e.ID && l.Event == "overdue" {
			said++
		}
		return nil
	}))
	if said != 1 {
		t.Errorf("said %d times", said)
	}
}

func TestTheFileKeepsTheJournal(t *testing.T) {
	b := newBench(t)
	fin, adm := b.person("fin", "finance"), b.person("adm", "admin")
	e := b.owe("op", 1000)
	b.ok(b.prove(fin, e.ID, "re_1", 400))
	for _, p := range []ledger.PersonRecord{fin, adm} {
		_, _, err := b.s.WaiveRefund(b.ctx, tenant, e.ID, b.refundDecision(p, e.ID))
		b.ok(err)
	}
	for _, change := range []string{
		`delete from refunds_owed`,
		`update refunds_owed set amount = amount + 1`,
		`update refunds_owed set due_at = due_at + 1`,
		`update refunds_owed set status = 'owed'`,
		`delete from refund_journal`,
		`update refund_journal set event = 'open'`,
		`delete from refund_postings`,
		`update refund_postings set amount = amount + 1`,
		`insert into refund_postings select transaction_id, line + 10, tenant_id, entry, direction, account, customer, rail, currency, amount from refund_postings limit 1`,
		`insert or replace into refund_postings select * from refund_postings`,
		`insert or replace into refund_journal select * from refund_journal`,
		`insert or replace into refunds_owed select * from refunds_owed`,
		`insert or replace into refund_settlements select * from refund_settlements`,
		`insert or replace into refund_waivers select * from refund_waivers`,
		`insert into refund_journal select 1, tenant_id, entry, event, settlement, by, reason, at from refund_journal limit 1`, // without postings
		`delete from refund_settlements`,
		`update refund_settlements set proof = 'other'`,
		`update refund_settlements set state = 'open', ended_at = 0`,
		`delete from refund_waivers`,
		`update refund_waivers set waived_by = asked_by`,
	} {
		if err := b.sql(change); err == nil {
			t.Errorf("the file took: %s", change)
		}
	}
	if err := b.sql(`begin;
		insert into refund_postings select 7, line, tenant_id, entry, direction, account, customer, rail, currency, case line when 1 then 5 else -4 end from refund_postings where transaction_id = (select min(id) from refund_journal);
		insert into refund_journal select 7, tenant_id, entry, event, settlement, by, reason, at from refund_journal limit 1;
		commit`); err == nil || !strings.Contains(err.Error(), "add up to nothing") {
		t.Errorf("an unbalanced transaction: %v", err)
	}
	b.ok(b.sql(`rollback`))
}

// Whatever happens to entries in whatever order, with the ledger closed and opened
// again in between: no balance is ever below nothing, and what is settled, waived
// and open adds up to what is owed.
func TestWhateverHappensTheSumsHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		folder, err := os.MkdirTemp("", "refunds")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(folder)
		b := newBenchIn(t, folder)
		defer func() { b.s.Close() }()
		fin, adm := b.person("fin", "finance"), b.person("adm", "admin")
		n := 0
		underWay := map[string]store.Marked{} // by entry
		pick := func() (ledger.RefundOwed, bool) {
			all := b.owed()
			if len(all) == 0 {
				return ledger.RefundOwed{}, false
			}
			return rapid.SampledFrom(all).Draw(rt, "entry"), true
		}
		amount := func() int64 { return rapid.SampledFrom([]int64{1, 50, 99, 100, 333, 1000}).Draw(rt, "amount") }
		end := func(answer func(store.Marked) ledger.Answer) {
			e, ok := pick()
			m, moving := underWay[e.ID]
			if !ok || !moving {
				return
			}
			b.settle(m, answer(m))
			delete(underWay, e.ID)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"open": func(*rapid.T) {
				n++
				b.owe(fmt.Sprint("op-", n), amount())
			},
			"report": func(*rapid.T) {
				_, _, err := b.report("", amount(), func(r *store.RefundReport) {
					r.ReceiptID, r.Rail = rapid.SampledFrom([]string{"ch_1", "ch_2"}).Draw(rt, "receipt"), "card"
				})
				var differs store.ReportDiffers
				if err != nil && !errors.As(err, &differs) {
					rt.Fatal(err)
				}
			},
			"prove": func(*rapid.T) {
				if e, ok := pick(); ok {
					_ = b.prove(fin, e.ID, rapid.SampledFrom([]string{"re_1", "re_2", "re_3", "re_4", "re_5", "re_6"}).Draw(rt, "proof"), amount())
				}
			},
			"begin": func(*rapid.T) {
				e, ok := pick()
				if !ok {
					return
				}
				n++
				id := fmt.Sprint("back-", n)
				m := b.sent(id, wire)
				if _, err := b.s.BeginSettlement(b.ctx, tenant, e.ID, id, amount(), root); err == nil {
					underWay[e.ID] = m
					return
				}
				b.settle(m, refused)
			},
			"land": func(*rapid.T) {
				proof := rapid.SampledFrom([]string{"re_1", "re_2", "re_7", "re_8"}).Draw(rt, "receipt")
				end(func(m store.Marked) ledger.Answer { return found(m.Operation, proof) })
			},
			"fall": func(*rapid.T) { end(func(store.Marked) ledger.Answer { return refused }) },
			"waive": func(*rapid.T) {
				if e, ok := pick(); ok {
					_, _, _ = b.s.WaiveRefund(b.ctx, tenant, e.ID, b.refundDecision(rapid.SampledFrom([]ledger.PersonRecord{fin, adm}).Draw(rt, "who"), e.ID))
				}
			},
			"bounce": func(*rapid.T) {
				e, ok := pick()
				if !ok {
					return
				}
				paid, err := b.s.RefundSettlements(b.ctx, tenant, e.ID)
				b.ok(err)
				if len(paid) > 0 {
					_, _ = b.s.BounceRefund(b.ctx, tenant, rapid.SampledFrom(paid).Draw(rt, "settlement").ID, "came back", reconciler)
				}
			},
			"reopen the ledger": func(*rapid.T) { b.reopen() },
			"": func(*rapid.T) {
				for _, e := range b.owed() {
					if e.Settled+e.Waived+e.Open != e.Amount || min(e.Settled, e.Waived, e.Open, e.Settling, e.Free()) < 0 {
						rt.Fatalf("%+v", e)
					}
				}
			},
		})
		if found := b.found(); len(found) > 0 {
			rt.Fatal(found)
		}
	})
}

package store_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// told is an event as a provider signed it: its name, what it says, and the
// names in it.
type told struct {
	name    string
	body    string // default: the name
	stamp   string
	receipt string
	record  *ledger.Receipt // nil: it shows none
	rail    string          // default: the operation's
	tenant  string
	naked   bool // nobody signed it
}

func (e told) row() ledger.ProviderEvent {
	if e.body == "" {
		e.body = e.name
	}
	if e.tenant == "" {
		e.tenant = tenant
	}
	return ledger.ProviderEvent{TenantID: e.tenant, Rail: e.rail, EventID: e.name, Signed: !e.naked, Body: []byte(e.body), Stamp: e.stamp, ReceiptID: e.receipt}
}

func (e told) look(ledger.Operation) ledger.Look {
	if e.record == nil {
		return ledger.Look{Finding: ledger.LookInconclusive, Sentence: "The event proves nothing.", Body: []byte(e.name)}
	}
	return ledger.Look{Finding: ledger.LookFound, Records: []ledger.Receipt{*e.record}, Sentence: "The event shows " + e.record.ID + ".", Body: []byte(e.name)}
}

// about is an event that carries an operation's stamp.
func about(o ledger.Operation, name string, record *ledger.Receipt) told {
	e := told{name: name, stamp: o.OrderID, rail: o.Rail, record: record}
	if record != nil {
		e.receipt = record.ID
	}
	return e
}

func shows(o ledger.Operation, id string) *ledger.Receipt   { r := receipt(o, id); return &r }
func differs(o ledger.Operation, id string) *ledger.Receipt { r := wrong(o, id); return &r }

func (b *bench) keep(e told) ledger.ProviderEvent {
	b.t.Helper()
	kept, err := b.s.KeepEvent(b.ctx, e.row())
	b.ok(err)
	return kept
}

func (b *bench) weigh(kept ledger.ProviderEvent, e told) {
	b.t.Helper()
	kept.Stamp, kept.ReceiptID = e.stamp, e.receipt
	_, _, err := b.s.WeighEvent(b.ctx, kept, e.look)
	b.ok(err)
}

func (b *bench) hear(e told) {
	b.t.Helper()
	if kept := b.keep(e); kept.ID > 0 {
		b.weigh(kept, e)
	}
}

// evidenceOf lists what events left behind, as finding and sentence.
func (b *bench) evidenceOf(id string) (all []string) {
	b.t.Helper()
	rows, err := b.s.Evidence(b.ctx, tenant, id)
	b.ok(err)
	for _, e := range rows {
		if e.Source == "event" {
			all = append(all, e.Finding)
		}
	}
	return all
}

func (b *bench) entries(id, event string) (n int) {
	b.t.Helper()
	log, err := b.s.Timeline(b.ctx, tenant, id)
	b.ok(err)
	for _, e := range log {
		if e.Event == event {
			n++
		}
	}
	return n
}

func (b *bench) eventsIn(rail string, state ledger.EventState) []ledger.ProviderEvent {
	b.t.Helper()
	all, err := b.s.Events(b.ctx, tenant, rail, state, 100)
	b.ok(err)
	return all
}

func TestWhatAnEventMeans(t *testing.T) {
	failed := func(o ledger.Operation) told { return about(o, "evt_failed", nil) }
	succeeded := func(o ledger.Operation) told { return about(o, "evt_ok", shows(o, "pay_1")) }
	other := func(o ledger.Operation) told { return about(o, "evt_other", shows(o, "pay_2")) }
	partial := func(o ledger.Operation) told { return about(o, "evt_partial", differs(o, "pay_1")) }
	unsigned := func(o ledger.Operation) told {
		return told{name: "evt_naked", stamp: o.OrderID, rail: o.Rail, naked: true}
	}
	type step = func(ledger.Operation) told
	for _, c := range []struct {
		claim  string
		answer *ledger.Answer // nil: none yet
		events []step
		status ledger.Status
		reason ledger.Reason
		left   string // the findings that are kept
		owed   []string
	}{
		{"a receipt before the answer confirms", nil, []step{succeeded}, ledger.Confirmed, "", "[found]", nil},
		{"a receipt after silence confirms", &silence, []step{succeeded}, ledger.Confirmed, "", "[found]", nil},
		{"a receipt of what was taken on confirms", &pending, []step{succeeded}, ledger.Confirmed, "", "[found]", nil},
		{"another amount goes to a person", nil, []step{partial}, ledger.UnknownHold, ledger.ReceiptMismatch, "[mismatch]", nil},
		{"another amount, then the right one: only a person clears it", &silence, []step{partial, succeeded}, ledger.UnknownHold, ledger.ReceiptMismatch, "[mismatch found]", nil},
		{"a failure rejects nothing that is under way", nil, []step{failed}, ledger.InFlight, "", "[note]", nil},
		{"a failure rejects nothing that is unknown", &silence, []step{failed}, ledger.Unknown, "", "[note]", nil},
		{"a failure, then a success", &silence, []step{failed, succeeded}, ledger.Confirmed, "", "[note found]", nil},
		{"a success, then a failure that is older", &silence, []step{succeeded, failed}, ledger.Confirmed, "", "[found note]", nil},
		{"two receipts are two effects", &silence, []step{succeeded, other}, ledger.Confirmed, "", "[found found]", []string{"pay_2 duplicate_charge 4800"}},
		{"the receipt we hold, once more", &silence, []step{succeeded, func(o ledger.Operation) told { return about(o, "evt_again", shows(o, "pay_1")) }},
			ledger.Confirmed, "", "[found found]", nil},
		{"a receipt after a refusal is money to be looked after", &refused, []step{succeeded}, ledger.Rejected, ledger.Declined, "[found]", []string{"pay_1 late_effect 4800"}},
		{"a late receipt twice is one entry", &refused, []step{succeeded, func(o ledger.Operation) told { return about(o, "evt_again", shows(o, "pay_1")) }},
			ledger.Rejected, ledger.Declined, "[found found]", []string{"pay_1 late_effect 4800"}},
		{"an unsigned one proves nothing", &silence, []step{unsigned}, ledger.Unknown, "", "[note]", nil},
		{"a record that carries another's stamp proves nothing", &silence, []step{func(o ledger.Operation) told {
			r := receipt(o, "pay_1")
			r.Stamp = "ord_other"
			return about(o, "evt_mixed", &r)
		}}, ledger.Unknown, "", "[note]", nil},
		{"a record without a stamp proves nothing", &silence, []step{func(o ledger.Operation) told {
			r := receipt(o, "pay_1")
			r.Stamp = ""
			return about(o, "evt_bare", &r)
		}}, ledger.Unknown, "", "[note]", nil},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			m := b.sent("op", wire)
			if c.answer != nil {
				b.settle(m, *c.answer)
			}
			for _, e := range c.events {
				b.clock.move(time.Second)
				b.hear(e(m.Operation))
			}
			b.want("op", c.status, c.reason)
			if left := fmt.Sprint(b.evidenceOf("op")); left != c.left {
				t.Errorf("kept %s, want %s", left, c.left)
			}
			b.wantOwed(c.owed...)
			if kept := len(b.eventsIn("bank", ledger.EventKept)); kept > 0 {
				t.Errorf("%d events wait", kept)
			}
		})
	}
}

func TestAnEventMakesALookUpDue(t *testing.T) {
	b := newBench(t)
	o := b.lost("unclear", wire)
	b.look("unclear", ledger.LookAbsent)
	b.clock.move(time.Second)
	b.look("unclear", ledger.LookAbsent)
	if due := b.due(); len(due) != 0 {
		t.Fatal("due before the event: ", due)
	}
	was := b.get("unclear").Version
	b.hear(about(o, "evt_1", nil))
	if due := fmt.Sprint(b.due()); due != "[unclear]" {
		t.Error("after the event, due is ", due)
	}
	if b.get("unclear").Version == was {
		t.Error("whoever decides now would not have seen it")
	}

	// Of what was refused it is asked, since the provider still speaks of it; of
	// what has its receipt only if the event is about another record.
	m := b.sent("refused", wire)
	b.settle(m, refused)
	b.hear(about(m.Operation, "evt_2", nil))
	m = b.sent("done", wire)
	b.settle(m, found(m.Operation, "pay_1"))
	b.hear(about(m.Operation, "evt_3", nil))
	if due := fmt.Sprint(b.due()); due != "[unclear refused]" {
		t.Error("due is ", due)
	}
	another := about(m.Operation, "evt_4", nil)
	another.receipt = "pay_2"
	b.hear(another)
	if due := fmt.Sprint(b.due()); due != "[unclear refused done]" {
		t.Error("due is ", due)
	}

	// A rail that cannot be asked is not.
	o = b.lost("silent", blind)
	b.hear(about(o, "evt_5", nil))
	if due := len(b.due()); due != 3 {
		t.Error("asked a rail that cannot be asked: ", b.due())
	}
}

func TestEachEventCountsOnce(t *testing.T) {
	b := newBench(t)
	o := b.lost("op", wire)
	e := about(o, "evt_1", nil)
	b.hear(e)
	was := b.get("op")
	b.clock.move(24 * time.Hour)
	b.hear(e)
	if now := b.get("op"); now.Version != was.Version || len(b.evidenceOf("op")) != 1 || len(b.eventsIn("bank", "")) != 1 {
		t.Errorf("the second time it changed something: %d events", len(b.eventsIn("bank", "")))
	}
	// The same name with other bytes: kept, and without effect, whatever it says.
	e.body, e.record = "forged", shows(o, "pay_1")
	b.hear(e)
	b.hear(e)
	b.want("op", ledger.Unknown, "")
	all := b.eventsIn("bank", "")
	if len(all) != 2 || !all[0].Contradicts || all[1].Contradicts || string(all[0].Body) != "forged" || !strings.Contains(all[0].Sentence, "again with another content") {
		t.Errorf("kept %+v", all)
	}
	if left := fmt.Sprint(b.evidenceOf("op")); left != "[note note]" {
		t.Error("evidence ", left)
	}
}

func TestThirtyTwoEqualDeliveriesAreOneEvent(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", wire)
	e := about(m.Operation, "evt_1", shows(m.Operation, "pay_1"))
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() { b.hear(e) })
	}
	all.Wait()
	b.want("op", ledger.Confirmed, "")
	if n := len(b.eventsIn("bank", "")); n != 1 || len(b.evidenceOf("op")) != 1 || b.entries("op", "receive") != 1 {
		t.Errorf("%d events, %v, %d entries", n, b.evidenceOf("op"), b.entries("op", "receive"))
	}
	b.wantOwed()
}

// What was stored and not weighed is found again by the process that starts
// next, and weighed once.
func TestAnEventSurvivesACrashBeforeItIsWeighed(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", wire)
	e := about(m.Operation, "evt_1", shows(m.Operation, "pay_1"))
	b.keep(e)
	b.reopen()
	b.want("op", ledger.InFlight, "")
	kept, err := b.s.KeptEvents(b.ctx, 0, 10)
	b.ok(err)
	if len(kept) != 1 || string(kept[0].Body) != "evt_1" || !kept[0].Signed {
		t.Fatalf("found %+v", kept)
	}
	b.weigh(kept[0], e)
	b.weigh(kept[0], e) // two at once, as the job and a repeated delivery may
	b.want("op", ledger.Confirmed, "")
	if left, err := b.s.KeptEvents(b.ctx, 0, 10); err != nil || len(left) != 0 || len(b.evidenceOf("op")) != 1 {
		t.Errorf("%d left, evidence %v, %v", len(left), b.evidenceOf("op"), err)
	}
}

func TestAnEventOfNothingWeKnowIsKeptUnmatched(t *testing.T) {
	b := newBench(t)
	o := b.lost("op", wire)
	b.s.SetRulebooks(b.ctx, map[string]*ledger.Rulebook{tenant: b.rules[tenant], "other": b.rules[tenant]})
	for _, e := range []told{
		{name: "evt_1", stamp: "ord_somebody_elses", rail: "bank", record: shows(o, "pay_1")},
		{name: "evt_2", rail: "bank"},
		{name: "evt_3", rail: "bank", receipt: "pay_unknown"},
		{name: "evt_4", stamp: o.OrderID, rail: "card", record: shows(o, "pay_1")},                  // another rail's
		{name: "evt_5", stamp: o.OrderID, rail: "bank", record: shows(o, "pay_1"), tenant: "other"}, // another tenant's
		{name: "evt_6", stamp: "ord_somebody_elses", rail: "bank", receipt: "pay_1", record: shows(o, "pay_1")},
	} {
		b.hear(e)
	}
	b.want("op", ledger.Unknown, "")
	if left := b.evidenceOf("op"); len(left) > 0 {
		t.Error("evidence: ", left)
	}
	if n := len(b.eventsIn("bank", ledger.EventUnmatched)); n != 4 {
		t.Errorf("%d unmatched, want 4", n)
	}
	theirs, err := b.s.Events(b.ctx, "other", "bank", ledger.EventUnmatched, 10)
	if err != nil || len(theirs) != 1 {
		t.Errorf("the other tenant has %d, %v", len(theirs), err)
	}
}

// An event that names only the provider's id waits for the receipt with that id.
func TestAnEventIsMatchedWhenTheReceiptArrives(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", wire)
	e := told{name: "evt_1", rail: "bank", receipt: "pay_1"}
	b.hear(e)
	b.ok(b.s.RenewEvents(b.ctx))
	if n := len(b.eventsIn("bank", ledger.EventUnmatched)); n != 1 {
		t.Fatal("unmatched: ", n)
	}
	b.settle(m, found(m.Operation, "pay_1"))
	b.ok(b.s.RenewEvents(b.ctx))
	kept, err := b.s.KeptEvents(b.ctx, 0, 10)
	b.ok(err)
	if len(kept) != 1 {
		t.Fatal("taken up again: ", len(kept))
	}
	b.weigh(kept[0], e)
	if all := b.eventsIn("bank", ledger.EventMatched); len(all) != 1 || all[0].OperationID != "op" || fmt.Sprint(b.evidenceOf("op")) != "[note]" {
		t.Errorf("%+v, evidence %v", all, b.evidenceOf("op"))
	}
	// After a week nobody looks at strangers any more.
	b.hear(told{name: "evt_2", rail: "bank", receipt: "pay_2"})
	b.clock.move(8 * 24 * time.Hour)
	m = b.sent("late", wire)
	b.settle(m, found(m.Operation, "pay_2"))
	b.ok(b.s.RenewEvents(b.ctx))
	if n := len(b.eventsIn("bank", ledger.EventUnmatched)); n != 1 {
		t.Error("unmatched: ", n)
	}
}

// The answer that comes after the event finds its receipt there.
func TestTheAnswerAfterTheEvent(t *testing.T) {
	for _, c := range []struct {
		claim  string
		answer func(ledger.Operation) ledger.Answer
		owed   []string
	}{
		{"with the same receipt changes nothing", func(o ledger.Operation) ledger.Answer { return found(o, "pay_1") }, nil},
		{"with another receipt is a second effect", func(o ledger.Operation) ledger.Answer { return found(o, "pay_2") }, []string{"pay_2 duplicate_charge 4800"}},
		{"that proves nothing changes nothing", func(ledger.Operation) ledger.Answer { return silence }, nil},
		{"that refuses changes nothing", func(ledger.Operation) ledger.Answer { return refused }, nil},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			m := b.sent("op", wire)
			b.hear(about(m.Operation, "evt_1", shows(m.Operation, "pay_1")))
			b.settle(m, c.answer(m.Operation))
			if o := b.want("op", ledger.Confirmed, ""); o.Receipt.ID != "pay_1" {
				t.Error("its receipt is ", o.Receipt.ID)
			}
			b.wantOwed(c.owed...)
		})
	}
}

func TestOneReceiptInAnEventProvesOnePurchase(t *testing.T) {
	b := newBench(t)
	m := b.sent("first", wire)
	b.settle(m, found(m.Operation, "pay_1"))
	o := b.lost("second", wire)
	b.hear(about(o, "evt_1", shows(o, "pay_1")))
	b.want("second", ledger.UnknownHold, ledger.ReceiptMismatch)

	// On one that has ended it is nobody's second effect either.
	m = b.sent("third", wire)
	b.settle(m, refused)
	b.hear(about(m.Operation, "evt_2", shows(m.Operation, "pay_1")))
	b.want("third", ledger.Rejected, ledger.Declined)
	b.wantOwed()
}

// A record with our stamp for what was never sent from here: another copy of the
// ledger sent it. It is not sent again.
func TestARecordOfWhatWasNeverSentStopsTheSend(t *testing.T) {
	b := newBench(t)
	b.submit("same", wire, nil)
	claim := b.claim(wire)
	b.hear(about(claim.Operation, "evt_1", shows(claim.Operation, "pay_1")))
	if _, err := b.tryMark(claim); err == nil {
		t.Error("it may be sent all the same")
	}
	b.want("same", ledger.Confirmed, "")

	o := b.submit("other", wire, to("acct_ask"))
	b.hear(about(o, "evt_2", differs(o, "pay_2")))
	b.want("other", ledger.UnknownHold, ledger.ReceiptMismatch)

	o = b.submit("mere", wire, nil)
	b.hear(about(o, "evt_3", nil))
	b.want("mere", ledger.Ready, "")
}

func TestUnsignedEventsDoNotFillTheDisk(t *testing.T) {
	b := newBench(t)
	o := b.lost("op", wire)
	for i := range 30 {
		b.hear(told{name: fmt.Sprint("naked-", i), stamp: o.OrderID, rail: "bank", naked: true})
		b.hear(told{name: fmt.Sprint("stray-", i), stamp: "ord_nobodys", rail: "bank", naked: true})
	}
	if n := len(b.eventsIn("bank", "")); n != 20 {
		t.Errorf("%d are kept, want 20", n)
	}
	b.want("op", ledger.Unknown, "")
}

func TestAnEventIsKeptAsItCame(t *testing.T) {
	b := newBench(t)
	o := b.lost("op", wire)
	b.hear(about(o, "evt_1", nil))
	for _, forge := range []string{
		`update events set body = 'other'`,
		`update events set event_id = 'evt_2'`,
		`update events set signed = 0`,
		`update events set state = 'kept', operation_id = ''`,
		`delete from events`,
	} {
		if err := b.sql(forge); err == nil {
			t.Errorf("%s: it was let through", forge)
		}
	}
}

package store_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// mixed is a ledger in which something of everything has happened.
func mixed(b *bench) {
	b.t.Helper()
	b.submit("waits", charge, to("acct_ask"))
	bought := b.sent("bought", charge)
	b.settle(bought, found(bought.Operation, "pay_1"))
	b.settle(b.sent("refused", charge), refused)
	b.lost("looked", charge)
	b.clock.move(90 * time.Second)
	b.look("looked", ledger.LookFound, receipt(b.get("looked"), "pay_2"))
	b.lost("open", charge)
	b.settle(b.sent("held", letter), silence)
	b.clock.move(time.Hour)
	b.settle(b.sent("settled", letter), silence)
	b.clock.move(2 * time.Hour)
	p := b.person("ana", "finance")
	b.ok(b.decide(b.s.Happened, p, "settled", func(d *store.Decision) { d.ReceiptID, d.Amount = "let_1", new(int64(4800)) }))
	b.submit("first", wire, map[string]any{"reference": "same"})
	b.submit("second", wire, map[string]any{"reference": "same"})
	b.submit("ready", charge, nil)
}

func TestNumbersAreWhatTheOperationsSay(t *testing.T) {
	b := newBench(t)
	mixed(b)
	want := map[string]int{}
	b.ok(b.s.EachOperation(b.ctx, func(d store.Dossier) error {
		if o := d.Operation; !o.Status.Final() {
			want[fmt.Sprint(o.Rail, o.ActionType, o.Status, o.Reason, o.Attempts > 0)]++
		}
		return nil
	}))
	n, err := b.s.Numbers(b.ctx, tenant)
	b.ok(err)
	got, unclear := map[string]int{}, 0
	for _, c := range n.Open {
		got[fmt.Sprint(c.Rail, c.ActionType, c.Status, c.Reason, c.Sent)] += c.N
		if c.Unclear() {
			unclear += c.N
			if o := b.get(map[string]string{"card": "open", "post": "held"}[c.Rail]); c.Since != o.UnknownSince {
				t.Errorf("%s: unknown since %d, want %d", c.Rail, c.Since, o.UnknownSince)
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || unclear != 2 {
		t.Errorf("open are\n%v, want\n%v; unknown %d, want 2", got, want, unclear)
	}
	if other, err := b.s.Numbers(b.ctx, "other"); err != nil || len(other.Open)+len(other.Owed) > 0 {
		t.Errorf("another tenant sees %v %v", other, err)
	}
}

func TestATallyIsTheLogAddedUp(t *testing.T) {
	b := newBench(t)
	tally := b.s.NewTally()
	b.ok(tally.CatchUp(b.ctx)) // once before, so that it has to go on
	mixed(b)
	b.ok(tally.CatchUp(b.ctx))
	b.ok(tally.CatchUp(b.ctx)) // and nothing counts twice

	stands, sends := map[string]int{}, map[string]int{}
	b.ok(b.s.EachOperation(b.ctx, func(d store.Dossier) error {
		stands[d.Operation.Rail+" "+string(d.Operation.Status)]++
		for _, a := range d.Attempts {
			outcome := a.Outcome
			if d.Operation.OperationID == "looked" || d.Operation.OperationID == "settled" {
				outcome = ledger.AttemptUnknown // what it was when it left in_flight
			}
			sends[d.Operation.Rail+" "+string(outcome)]++
		}
		return nil
	}))
	h := tally.Of(tenant)
	got := map[string]int{}
	for _, c := range h.Statuses {
		if c.N != 0 {
			got[c.Rail+" "+string(c.Status)] += c.N
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(stands) {
		t.Errorf("statuses are\n%v, want\n%v", got, stands)
	}
	got = map[string]int{}
	for _, c := range h.Attempts {
		got[c.Rail+" "+string(c.Outcome)] += c.N
	}
	if fmt.Sprint(got) != fmt.Sprint(sends) {
		t.Errorf("sends are\n%v, want\n%v", got, sends)
	}
	resolved := ""
	for _, c := range h.Resolved {
		resolved += fmt.Sprintf("%s by %s: %d in %s; ", c.Rail, c.How, c.Spread.N, time.Duration(c.Spread.Sum)*time.Millisecond)
	}
	if want := "card by lookup: 1 in 1m30s; post by person: 1 in 2h0m0s; "; resolved != want {
		t.Errorf("resolved %q, want %q", resolved, want)
	}
	if other := tally.Of("other"); len(other.Statuses)+len(other.Attempts)+len(other.Resolved) > 0 {
		t.Errorf("another tenant sees %v", other)
	}
	fresh := b.s.NewTally()
	b.ok(fresh.CatchUp(b.ctx))
	if fmt.Sprint(fresh.All()) != fmt.Sprint(tally.All()) {
		t.Error("a tally that starts anew counts otherwise")
	}
}

func TestOwedNumbersKeepCurrenciesApart(t *testing.T) {
	b := newBench(t)
	p := b.person("ana", "finance")
	for i, currency := range []string{"EUR", "USD", "EUR"} {
		id := fmt.Sprint("twice", i)
		b.submit(id, letter, map[string]any{"currency": currency, "amount": 4800 + i})
		b.settle(b.mark(b.claim(letter)), silence)
		b.clock.move(20 * time.Minute)
		b.ok(b.decide(b.s.HappenedTwice, p, id, func(d *store.Decision) { d.ReceiptID, d.SecondReceiptID = "a"+id, "b"+id }))
	}
	n, err := b.s.Numbers(b.ctx, tenant)
	b.ok(err)
	if got := fmt.Sprint(n.Owed); got != "[{post EUR we_owe 2 9602 0 0} {post USD we_owe 1 4801 0 0}]" {
		t.Errorf("owed %s", got)
	}
	b.clock.move(6 * 24 * time.Hour)
	n, err = b.s.Numbers(b.ctx, tenant)
	b.ok(err)
	if got := fmt.Sprint(n.Owed); got != "[{post EUR we_owe 2 9602 2 9602} {post USD we_owe 1 4801 1 4801}]" {
		t.Errorf("overdue %s", got)
	}
}

package store_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// together runs f n times at once.
func together(n int, f func(i int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

func TestEqualSubmissionsAtOnceMakeOneOperation(t *testing.T) {
	for _, n := range []int{32, 50} {
		b := newBench(t)
		draft := b.draft("op-A", charge, nil)
		got := make([]store.Registered, n)
		errs := make([]error, n)
		together(n, func(i int) { got[i], errs[i] = b.s.Submit(b.ctx, draft) })
		existed := 0
		for i := range n {
			b.ok(errs[i])
			if got[i].Existed {
				existed++
			}
			if got[i].Operation.OrderID != got[0].Operation.OrderID || got[i].Operation.Status != ledger.Ready {
				t.Errorf("%+v", got[i].Operation)
			}
		}
		if existed != n-1 {
			t.Errorf("%d of %d were told that it existed", existed, n)
		}
		page, err := b.s.Operations(b.ctx, tenant, store.Filter{})
		b.ok(err)
		if len(page.Items) != 1 {
			t.Errorf("%d rows", len(page.Items))
		}
	}
}

func TestManyIdsForOneReferenceAtOnceSendOne(t *testing.T) {
	b := newBench(t)
	const n = 16
	errs := make([]error, n)
	drafts := make([]ledger.Operation, n)
	for i := range n {
		drafts[i] = b.draft("op-"+string(rune('a'+i)), charge, map[string]any{"reference": "invoice-481", "amount": 100 + i})
	}
	together(n, func(i int) { _, errs[i] = b.s.Submit(b.ctx, drafts[i]) })
	ready := 0
	for i := range n {
		b.ok(errs[i])
		o := b.get(drafts[i].OperationID)
		switch o.Status {
		case ledger.Ready:
			ready++
		case ledger.UnknownHold:
			if o.Reason != ledger.SameReference || len(o.Overlaps) == 0 || !strings.Contains(strings.Join(o.Overlaps[0].Why, ","), "reference equal") {
				t.Errorf("%s held as %s, overlaps %v", o.OperationID, o.Reason, o.Overlaps)
			}
		default:
			t.Errorf("%s is %s", o.OperationID, o.Status)
		}
	}
	if ready != 1 {
		t.Errorf("%d are ready, want 1", ready)
	}
}

func TestTenantsShareNoIdentity(t *testing.T) {
	b := newBench(t)
	b.rules["other"] = newRules(t)
	b.ok(b.s.SetRulebooks(b.ctx, b.rules))
	b.token["other"] = b.addToken("other")
	b.settle(b.sent("op-A", charge), ledger.Answer{Finding: ledger.Refused})
	mine := b.get("op-A")
	r, err := b.s.Submit(b.ctx, b.draft("op-A", charge, nil, func(o *ledger.Operation) { o.TenantID, o.TokenID = "other", b.token["other"] }))
	b.ok(err)
	if o := r.Operation; r.Existed || o.Status != ledger.Ready || len(o.Overlaps) != 0 || o.OrderID == mine.OrderID || o.ProviderKey == mine.ProviderKey {
		t.Errorf("the other tenant got %+v", o)
	}
	if _, err := b.s.Operation(b.ctx, "third", "op-A"); err != store.ErrNotFound {
		t.Errorf("a third tenant got %v", err)
	}
	if c, err := b.s.Claim(b.ctx, "w1", tenant, "card", 10, 10); err != nil || len(c) != 0 {
		t.Errorf("a worker of %s claimed %d of another tenant: %v", tenant, len(c), err)
	}
}

func TestOverlapFindsTheOneAmongMany(t *testing.T) {
	b := newBench(t)
	// Many runs have a step of the same name, and many purchases cost the same.
	for i := range 250 {
		run := "run-" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		b.submit("op-"+run, charge, to("acct_7"), func(o *ledger.Operation) { o.RunID, o.Step = run, "charge" })
	}
	b.submit("first", charge, map[string]any{"amount": 1}, func(o *ledger.Operation) { o.RunID, o.Step = "run-9", "charge" })
	b.submit("again", charge, map[string]any{"amount": 2}, func(o *ledger.Operation) { o.RunID, o.Step = "run-9", "charge" })
	if o := b.want("again", ledger.UnknownHold, ledger.SameStep); o.Overlaps[0].OperationID != "first" {
		t.Errorf("overlaps %v", o.Overlaps)
	}
	b.submit("child", charge, map[string]any{"amount": 3}, func(o *ledger.Operation) { o.RunID, o.ParentRunID, o.Step = "run-10", "run-9", "charge" })
	b.want("child", ledger.UnknownHold, ledger.SameStep)
}

func TestStepIsOneThroughAllGenerationsOfARun(t *testing.T) {
	in := func(run, parent string) func(*ledger.Operation) {
		return func(o *ledger.Operation) { o.RunID, o.ParentRunID, o.Step = run, parent, "charge" }
	}
	for _, c := range []struct {
		claim string
		first [2]string // the run that made the purchase, and its parent
		again [2]string
		want  ledger.Status
	}{
		{"a great-grandchild repeats it", [2]string{"r1", ""}, [2]string{"r4", "r3"}, ledger.UnknownHold},
		{"its great-grandfather repeats it", [2]string{"r4", "r3"}, [2]string{"r1", ""}, ledger.UnknownHold},
		{"a grandchild names no parent", [2]string{"r1", ""}, [2]string{"r3", ""}, ledger.UnknownHold},
		{"a sister has a step of the same name", [2]string{"r2", "r1"}, [2]string{"s2", "r1"}, ledger.Ready},
		{"a stranger has a step of the same name", [2]string{"r2", "r1"}, [2]string{"x", ""}, ledger.Ready},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			for i, child := range []string{"r2", "r3", "r4"} {
				b.submit("born-"+child, charge, map[string]any{"reference": child}, func(o *ledger.Operation) {
					o.RunID, o.ParentRunID, o.Step = child, "r"+strconv.Itoa(i+1), "begin"
				})
			}
			b.submit("first", charge, map[string]any{"amount": 1, "reference": "a"}, in(c.first[0], c.first[1]))
			if o := b.submit("again", charge, map[string]any{"amount": 2, "reference": "b"}, in(c.again[0], c.again[1])); o.Status != c.want {
				t.Errorf("%s %s: %v", o.Status, o.Reason, o.Overlaps)
			}
		})
	}
}

// A person is asked about a pair once: what stands for the same purchase in the
// same ways is not held again, what looks otherwise is.
func TestPairThatWasToldApartIsNotAskedAgain(t *testing.T) {
	b := newBench(t)
	ann := b.person("ann", "finance")
	b.submit("first", charge, map[string]any{"recipient": "acct_7", "reference": nil})
	b.submit("second", charge, map[string]any{"recipient": "acct_7", "reference": nil})
	b.want("second", ledger.UnknownHold, ledger.ExactRepeat)
	b.ok(b.decide(b.s.DifferentPurchase, ann, "second"))
	standing := func(id string, over map[string]any, original string) ledger.Operation {
		over["recipient"] = "acct_7"
		return b.submit(id, charge, over, func(o *ledger.Operation) { o.Replaces = original })
	}
	if o := standing("third", map[string]any{"reference": nil}, "second"); o.Status != ledger.Ready || len(o.Overlaps) != 0 {
		t.Errorf("the replacement is %s: %v", o.Status, o.Overlaps)
	}
	if o := standing("fourth", map[string]any{"reference": "invoice-9"}, "third"); o.Status != ledger.Ready || len(o.Overlaps) != 0 {
		t.Errorf("the replacement of the replacement is %s: %v", o.Status, o.Overlaps)
	}
	if o := b.submit("fifth", charge, map[string]any{"recipient": "acct_7", "reference": nil}); o.Status != ledger.UnknownHold || len(o.Overlaps) != 2 {
		t.Errorf("a purchase of which nobody was asked is %s: %v", o.Status, o.Overlaps)
	}
}

func TestOnlyWhatOverlapsIsHeld(t *testing.T) {
	for _, c := range []struct {
		claim   string
		earlier string // what became of the first
		second  map[string]any
		wait    time.Duration
		reason  ledger.Reason
	}{
		{"another reference is another purchase", "", map[string]any{"reference": "b"}, 0, ""},
		{"an equal reference holds, whatever else differs", "", map[string]any{"reference": "a", "amount": 1, "recipient": "x"}, 0, ledger.SameReference},
		{"an equal reference holds after a month", "confirmed", map[string]any{"reference": "a", "amount": 1}, 720 * time.Hour, ledger.SameReference},
		{"equal money without a reference holds", "", map[string]any{"reference": nil}, 0, ledger.SameRecipientAmount},
		{"equal money without a reference, long after", "confirmed", map[string]any{"reference": nil}, 25 * time.Hour, ""},
		{"equal money and an invented reference, while the first is unknown", "unknown", map[string]any{"reference": "b"}, 0, ledger.SameRecipientAmount},
		{"a rejected one is no purchase", "rejected", map[string]any{"reference": "a"}, 0, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			b.submit("first", wire, map[string]any{"reference": "a", "recipient": "acct_7"})
			if c.earlier != "" {
				m := b.mark(b.claim(wire))
				b.settle(m, map[string]ledger.Answer{"confirmed": found(m.Operation, "pay_1"), "unknown": silence, "rejected": refused}[c.earlier])
			}
			b.clock.move(c.wait)
			if _, other := c.second["recipient"]; !other {
				c.second["recipient"] = "acct_7"
			}
			o := b.submit("second", wire, c.second)
			if o.Reason != c.reason || (o.Reason == "") != (o.Status == ledger.Ready) {
				t.Errorf("%s %q: %v", o.Status, o.Reason, o.Overlaps)
			}
		})
	}
}

func TestSubmitOfWhatIsNotConfiguredIsRefused(t *testing.T) {
	b := newBench(t)
	for _, change := range []func(*ledger.Operation){
		func(o *ledger.Operation) { o.ActionType = "steal" },
		func(o *ledger.Operation) { o.TenantID = "" },
		func(o *ledger.Operation) { o.TenantID = "nobody" },
	} {
		if r, err := b.s.Submit(b.ctx, b.draft("op", charge, nil, change)); err == nil {
			t.Errorf("registered %+v", r.Operation)
		}
	}
}

func TestRowsStayInOrderWhenTheClockIsSetBack(t *testing.T) {
	b := newBench(t)
	b.submit("one", charge, nil)
	b.clock.move(-time.Hour)
	b.reopen()
	b.submit("two", charge, nil)
	b.clock.move(-time.Hour)
	b.submit("three", charge, nil)
	page, err := b.s.Operations(b.ctx, tenant, store.Filter{})
	b.ok(err)
	if len(page.Items) != 3 || page.Items[0].OperationID != "three" || page.Items[2].OperationID != "one" {
		t.Errorf("%v", page.Items)
	}
}

func TestPolicySumsAreExactUnderLoad(t *testing.T) {
	limit := int64(20 * 4800)
	b := newBench(t, func(r *ledger.Rulebook) {
		r.Policy = policy(t,
			ledger.PolicyRow{Name: "cap", When: ledger.When{SpentOver: &ledger.SpentOver{Amount: limit, Currency: "EUR", Window: 24 * time.Hour, Per: "agent"}}, Then: "deny"},
			ledger.PolicyRow{Name: "rest", Then: "allow"})
	})
	drafts := make([]ledger.Operation, 60)
	for i := range drafts {
		drafts[i] = b.draft("op-"+strconv.Itoa(i), charge, nil)
	}
	together(len(drafts), func(i int) {
		if _, err := b.s.Submit(b.ctx, drafts[i]); err != nil {
			t.Error(err)
		}
	})
	ready := 0
	for _, d := range drafts {
		if o := b.get(d.OperationID); o.Status == ledger.Ready {
			ready++
		}
	}
	if ready != 20 {
		t.Errorf("%d went through a limit of 20", ready)
	}
	b.clock.move(25 * time.Hour)
	if o := b.submit("tomorrow", charge, nil); o.Status != ledger.Ready {
		t.Errorf("a day later it is %s", o.Status)
	}
}

// One proof proves one purchase: who comes second with it is held, and its own
// money is not taken for that of the first.
func TestCase164OneReceiptConfirmsOneOperation(t *testing.T) {
	b := newBench(t)
	var all []store.Marked
	for i := range 5 {
		all = append(all, b.sent(fmt.Sprint("op-", i+1), wire))
	}
	confirmed := map[string]int{}
	together(len(all), func(i int) {
		hash := "H1"
		if i == 4 {
			hash = "H2"
		}
		b.settle(all[i], found(all[i].Operation, hash))
	})
	for _, m := range all {
		switch o := b.get(m.Operation.OperationID); {
		case o.Status == ledger.Confirmed:
			confirmed[o.Receipt.ID]++
		case o.Status != ledger.UnknownHold || o.Reason != ledger.ReceiptMismatch || !strings.Contains(o.Detail, "one payment proves one purchase"):
			t.Errorf("%s is %s %s: %s", o.OperationID, o.Status, o.Reason, o.Detail)
		}
	}
	if confirmed["H1"] != 1 || confirmed["H2"] != 1 {
		t.Errorf("confirmed by proof: %v", confirmed)
	}
}

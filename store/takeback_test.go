package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// staysFor gives people time to take an approval back.
func staysFor(d time.Duration) func(*ledger.Rulebook) {
	return func(r *ledger.Rulebook) { r.Timing.TakeBack = d }
}

func TestATakenBackApprovalSendsNothing(t *testing.T) {
	b := newBench(t, staysFor(10*time.Second))
	ann, bob := b.person("ann", "approver"), b.person("bob", "approver")
	b.submit("op", charge, to("acct_ask"))
	b.ok(b.decide(b.s.Approve, ann, "op"))
	if c := b.claims("w1", "card"); len(c) != 0 {
		t.Fatal("it was claimed while the approval could be taken back")
	}
	b.clock.move(9 * time.Second)
	b.wantErr(b.decide(b.s.TakeBack, bob, "op"), store.ErrForbidden) // it is ann's word
	b.ok(b.decide(b.s.TakeBack, ann, "op"))
	b.want("op", ledger.AwaitingApproval, "")
	b.clock.move(time.Hour)
	if c := b.claims("w1", "card"); len(c) != 0 {
		t.Fatal("it was claimed after the approval was taken back")
	}
	given, err := b.s.Approvals(b.ctx, tenant, "op")
	b.ok(err)
	if len(given) != 1 || given[0].VoidedAt == 0 || given[0].SpentAt != 0 {
		t.Errorf("the approval is %+v", given)
	}
	log, err := b.s.Timeline(b.ctx, tenant, "op")
	b.ok(err)
	if e := log[len(log)-1]; e.Event != "take_back" || e.Actor != "ann@acme.example" || e.From != ledger.Ready || e.To != ledger.AwaitingApproval {
		t.Errorf("the log ends with %+v", e)
	}
	// Another approval, by the same person, is a new one and sends it.
	b.ok(b.decide(b.s.Approve, ann, "op"))
	b.clock.move(10 * time.Second)
	b.mark(b.claim(charge))
}

func TestAnApprovalIsTakenBackOnlyBeforeItLeaves(t *testing.T) {
	b := newBench(t, staysFor(10*time.Second))
	ann := b.person("ann", "approver")
	late := func(id string) {
		t.Helper()
		before := b.get(id)
		b.wantErr(b.decide(b.s.TakeBack, ann, id), ledger.ErrNotAllowed)
		if after := b.get(id); after.Version != before.Version || after.Status != before.Status {
			t.Errorf("%s went from %s to %s", id, before.Status, after.Status)
		}
	}
	b.submit("op", charge, to("acct_ask"))
	b.ok(b.decide(b.s.Approve, ann, "op"))
	b.clock.move(10 * time.Second)
	late("op") // the time is over, also where no worker came
	c := b.claim(charge)
	late("op")
	m := b.mark(c)
	late("op")
	b.settle(m, found(m.Operation, "pay_1"))
	late("op")
	given, err := b.s.Approvals(b.ctx, tenant, "op")
	b.ok(err)
	if given[0].VoidedAt != 0 || given[0].SpentAt == 0 {
		t.Errorf("the approval is %+v", given[0])
	}
}

func TestAClaimKeepsAnApprovalAlsoWhenTheClockIsSetBack(t *testing.T) {
	b := newBench(t, staysFor(10*time.Second))
	ann := b.person("ann", "approver")
	b.submit("op", charge, to("acct_ask"))
	b.ok(b.decide(b.s.Approve, ann, "op"))
	b.clock.move(10 * time.Second)
	c := b.claim(charge)
	b.clock.move(-5 * time.Second)
	b.wantErr(b.decide(b.s.TakeBack, ann, "op"), ledger.ErrNotAllowed)
	b.mark(c)
}

func TestOneOfTwoApprovalsIsTakenBack(t *testing.T) {
	b := newBench(t)
	ann, bob := b.person("ann", "approver"), b.person("bob", "approver")
	b.submit("op", charge, to("acct_two"))
	b.ok(b.decide(b.s.Approve, ann, "op"))
	b.ok(b.decide(b.s.TakeBack, ann, "op"))
	b.ok(b.decide(b.s.Approve, bob, "op"))
	b.want("op", ledger.AwaitingApproval, "") // bob's is the only one that stands
	b.ok(b.decide(b.s.Approve, ann, "op"))
	b.want("op", ledger.Ready, "")
	b.mark(b.claim(charge))
}

// Workers and people want the same operations at the very moment at which the
// time to take an approval back ends. Each goes one way, and one only.
func TestEitherTheTakeBackOrTheSendWins(t *testing.T) {
	const operations = 60
	b := newBench(t, staysFor(time.Second))
	ann := b.person("ann", "approver")
	for i := range operations {
		id := fmt.Sprint("op-", i)
		b.submit(id, charge, map[string]any{"recipient": "acct_ask", "amount": 1000 + i})
		b.ok(b.decide(b.s.Approve, ann, id))
		if i == operations/2 {
			b.clock.move(time.Millisecond) // the second half stays a moment longer
		}
	}
	b.clock.move(time.Second - time.Millisecond)
	var (
		all       sync.WaitGroup
		mu        sync.Mutex
		sent      = map[string]int{}
		takenBack = map[string]bool{}
		seen      = map[string]store.Decision{}
	)
	for i := range operations {
		id := fmt.Sprint("op-", i)
		seen[id] = b.decision(ann, id)
	}
	for w := range 4 {
		all.Go(func() {
			for range 40 {
				claims, err := b.s.Claim(b.ctx, fmt.Sprint("w", w), tenant, "card", 3, 3)
				if err != nil {
					t.Error(err)
				}
				for _, c := range claims {
					m, err := b.tryMark(c)
					if err != nil {
						t.Error("a claim was not marked: ", err)
						continue
					}
					mu.Lock()
					sent[m.Operation.OperationID]++
					mu.Unlock()
				}
			}
		})
	}
	for i := range operations {
		all.Go(func() {
			id := fmt.Sprint("op-", i)
			_, err := b.s.TakeBack(b.ctx, tenant, id, seen[id])
			if err != nil && !errors.Is(err, ledger.ErrNotAllowed) && !errors.Is(err, store.ErrStale) {
				t.Error(id, err)
			}
			mu.Lock()
			takenBack[id] = err == nil
			if len(takenBack) == operations/4 {
				b.clock.move(time.Millisecond) // the time of the others is over too
			}
			mu.Unlock()
		})
	}
	all.Wait()
	for _, c := range b.claims("last", "card") { // what nobody came for in time
		sent[b.mark(c).Operation.OperationID]++
	}
	for id, back := range takenBack {
		attempts, err := b.s.Attempts(b.ctx, tenant, id)
		b.ok(err)
		want := 1
		if back {
			want = 0
			b.want(id, ledger.AwaitingApproval, "")
		}
		if sent[id] != want || len(attempts) != want {
			t.Errorf("%s: taken back %t, sent %d times, %d attempts on record", id, back, sent[id], len(attempts))
		}
	}
	if len(sent) <= operations/2 {
		t.Errorf("%d of %d were sent: the time of half of them was over", len(sent), operations)
	}
}

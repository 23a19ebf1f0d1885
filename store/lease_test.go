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

const lease = 30 * time.Second

func TestAnOperationFromSubmitToReceipt(t *testing.T) {
	b := newBench(t)
	ann := b.person("ann", "approver")
	b.submit("op", charge, to("acct_ask"))
	b.want("op", ledger.AwaitingApproval, "")
	b.ok(b.decide(b.s.Approve, ann, "op"))
	b.want("op", ledger.Ready, "")
	c := b.claim(charge)
	b.want("op", ledger.Ready, "")
	m := b.mark(c)
	if o := b.want("op", ledger.InFlight, ""); o.Attempts != 1 || o.OpenAttempts != 1 || o.QuietFrom != m.Attempt.SendBy+15*time.Minute.Milliseconds() {
		t.Errorf("attempts %d, open %d, quiet from %d", o.Attempts, o.OpenAttempts, o.QuietFrom)
	}
	b.settle(m, found(m.Operation, "pay_1"))
	o := b.want("op", ledger.Confirmed, "")
	if o.Receipt == nil || o.Receipt.ID != "pay_1" || o.OpenAttempts != 0 || string(o.Receipt.Raw) != "pay_1" {
		t.Errorf("receipt %+v", o.Receipt)
	}
	kept, err := b.s.Request(b.ctx, tenant, "op")
	b.ok(err)
	if string(kept.Body) != string(o.Payload) || kept.SHA256 != kept.HashRequest() {
		t.Errorf("kept %+v", kept)
	}
	var events []string
	entries, err := b.s.Timeline(b.ctx, tenant, "op")
	b.ok(err)
	for _, e := range entries {
		events = append(events, e.Event)
	}
	if fmt.Sprint(events) != "[ask approve claim mark receive]" {
		t.Errorf("%v", events)
	}
	evidence, err := b.s.Evidence(b.ctx, tenant, "op")
	b.ok(err)
	if len(evidence) != 1 || evidence[0].Finding != "found" || string(evidence[0].Body) != "{}" {
		t.Errorf("%+v", evidence)
	}
}

func TestClaimersAtOnceGetEachOperationOnce(t *testing.T) {
	b := newBench(t)
	for i := range 20 {
		b.submit(fmt.Sprint("op", i), charge, nil)
	}
	var mu sync.Mutex
	got := map[string]int{}
	together(8, func(i int) {
		for {
			c, err := b.s.Claim(b.ctx, fmt.Sprint("w", i), tenant, "card", 3, 3)
			if err != nil {
				t.Error(err)
			}
			if len(c) == 0 {
				return
			}
			mu.Lock()
			for _, c := range c {
				got[c.Operation.OperationID]++
			}
			mu.Unlock()
		}
	})
	if len(got) != 20 {
		t.Errorf("%d of 20 were claimed", len(got))
	}
	for id, n := range got {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
}

func TestLeaseThatEndsBeforeTheMarkCostsNothing(t *testing.T) {
	b := newBench(t)
	b.submit("op", letter, nil)
	first := b.claim(letter)
	if c := b.claims("w2", "post"); len(c) != 0 {
		t.Fatal("claimed under a live lease")
	}
	b.clock.move(lease)
	b.sweep()
	second := b.claim(letter)
	if second.Fence != first.Fence+1 || second.Worker != first.Worker {
		t.Errorf("fences %d and %d of %s and %s", first.Fence, second.Fence, first.Worker, second.Worker)
	}
	if o := b.want("op", ledger.Ready, ""); o.Attempts != 0 {
		t.Errorf("%d attempts", o.Attempts)
	}
	_, err := b.tryMark(first) // an equal name is not an equal lease
	b.wantErr(err, store.ErrLeaseLost)
	m := b.mark(second)
	_, err = b.tryMark(second) // one lease, one mark
	b.wantErr(err, store.ErrLeaseLost)
	b.settle(m, found(m.Operation, "pay_1"))
}

func TestLeaseExpiryNeverResends(t *testing.T) {
	for _, action := range []string{wire, letter, proven} {
		b := newBench(t)
		b.sent("op", action)
		b.clock.move(lease)
		b.sweep()
		for range 20 {
			o := b.get("op")
			if o.Status == ledger.Ready || o.NextSendAt != 0 {
				t.Fatalf("%s: %s, next send at %d", action, o.Status, o.NextSendAt)
			}
			if c := b.claims("w2", railOf(action)); len(c) != 0 {
				t.Fatalf("%s: claimed again", action)
			}
			if o.Status == ledger.Unknown {
				b.look("op", ledger.LookUnreachable)
				b.look("op", ledger.LookInconclusive)
			}
			b.clock.move(10 * time.Minute)
			b.sweep()
		}
		b.want("op", ledger.UnknownHold, ledger.Inconclusive)
	}
}

func TestAnUnknownThatNobodyCanFindOutIsHeldAtOnce(t *testing.T) {
	b := newBench(t)
	b.settle(b.sent("op", letter), silence)
	b.want("op", ledger.UnknownHold, ledger.Inconclusive)
}

func TestHarmlessIsSentAgain(t *testing.T) {
	b := newBench(t)
	b.settle(b.sent("op", memo), silence)
	b.want("op", ledger.Unknown, "")
	b.clock.move(time.Second)
	m := b.mark(b.claim(memo))
	if !m.Harmless || m.Attempt.Number != 2 {
		t.Errorf("%+v", m.Attempt)
	}
}

func TestSweepAndReceiptAtTheSameInstant(t *testing.T) {
	for range 10 {
		b := newBench(t)
		m := b.sent("op", wire)
		b.clock.move(lease)
		together(2, func(i int) {
			if i == 0 {
				if _, err := b.s.Sweep(b.ctx, sweeper); err != nil {
					t.Error(err)
				}
				return
			}
			if _, err := b.s.Settle(b.ctx, m, found(m.Operation, "pay_1"), nil, 0); err != nil {
				t.Error(err)
			}
		})
		b.sweep()
		b.want("op", ledger.Confirmed, "")
	}
}

func TestStaleAnswers(t *testing.T) {
	for _, c := range []struct {
		claim  string
		answer func(store.Marked) ledger.Answer
		status ledger.Status
		reason ledger.Reason
		open   int
	}{
		{"a receipt confirms, however late", func(m store.Marked) ledger.Answer { return found(m.Operation, "pay_1") }, ledger.Confirmed, "", 0},
		{"a refusal changes no status", func(store.Marked) ledger.Answer { return refused }, ledger.Unknown, "", 0},
		{"nothing sent changes no status", func(store.Marked) ledger.Answer { return notSent }, ledger.Unknown, "", 0},
		{"silence changes nothing", func(store.Marked) ledger.Answer { return silence }, ledger.Unknown, "", 1},
		{"an acceptance changes no status", func(store.Marked) ledger.Answer { return pending }, ledger.Unknown, "", 1},
		{"a receipt that differs is held", func(m store.Marked) ledger.Answer {
			r := wrong(m.Operation, "pay_1")
			return ledger.Answer{Finding: ledger.Found, Receipt: &r}
		}, ledger.UnknownHold, ledger.ReceiptMismatch, 1},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			m := b.sent("op", wire)
			b.clock.move(lease)
			b.sweep()
			b.want("op", ledger.Unknown, "")
			b.settle(m, c.answer(m))
			if o := b.want("op", c.status, c.reason); o.OpenAttempts != c.open {
				t.Errorf("%d unresolved, want %d", o.OpenAttempts, c.open)
			}
			evidence, err := b.s.Evidence(b.ctx, tenant, "op")
			b.ok(err)
			if len(evidence) != 1 {
				t.Errorf("the answer was not kept: %v", evidence)
			}
		})
	}
}

// An acceptance that arrives late still forbids the resend that was planned.
func TestLateAcceptanceEndsTheResends(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", blind)
	b.clock.move(lease)
	b.sweep()
	if o := b.get("op"); o.NextSendAt == 0 {
		t.Fatal("no resend is planned")
	}
	c := b.claim(blind) // a resend is about to be marked
	b.settle(m, pending)
	_, err := b.tryMark(c)
	b.wantErr(err, store.ErrLeaseLost)
	b.clock.move(time.Hour)
	if c := b.claims("w2", "queue"); len(c) != 0 {
		t.Error("what the provider accepted is sent again")
	}
	if o := b.get("op"); !o.Accepted || o.NextSendAt != 0 {
		t.Errorf("accepted %v, next send at %d", o.Accepted, o.NextSendAt)
	}
}

func TestNegativeAnswersWhileAnotherAttemptMayHaveActed(t *testing.T) {
	for _, c := range []struct {
		claim  string
		answer ledger.Answer
	}{
		{"a refusal of the second is no refusal", refused},
		{"not sent the second time is not unsent", notSent},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			first := b.sent("op", blind)
			b.settle(first, silence)
			b.clock.move(2 * time.Second)
			second := b.mark(b.claim(blind))
			b.settle(second, c.answer)
			if o := b.want("op", ledger.Unknown, ""); o.OpenAttempts != 1 {
				t.Errorf("%d unresolved", o.OpenAttempts)
			}
			b.settle(first, found(first.Operation, "pay_1"))
			b.want("op", ledger.Confirmed, "")
		})
	}
}

func TestNegativeAnswersOfTheOnlyAttempt(t *testing.T) {
	b := newBench(t)
	b.settle(b.sent("op", wire), refused)
	b.want("op", ledger.Rejected, ledger.Declined)

	m := b.sent("op2", wire)
	for n := 1; ; n++ {
		b.settle(m, notSent)
		o := b.want("op2", ledger.Ready, "")
		if o.OpenAttempts != 0 || o.Attempts != n || o.NextSendAt != b.clock.ms.Load()+1000 {
			t.Fatalf("%d of %d unresolved, next send at %d", o.OpenAttempts, o.Attempts, o.NextSendAt)
		}
		if c := b.claims("w1", "bank"); len(c) != 0 {
			t.Fatal("claimed before its back-off was over")
		}
		b.clock.move(time.Second)
		c := b.claim(wire)
		if n == 5 {
			b.wantUnmarked(c)
			break
		}
		m = b.mark(c)
	}
	b.want("op2", ledger.UnknownHold, ledger.AttemptsExhausted)
}

func TestResendSendsTheSameBytesUnderTheSameKey(t *testing.T) {
	b := newBench(t)
	first := b.sent("op", blind)
	b.settle(first, silence)
	b.clock.move(time.Second)
	second, err := b.s.Mark(b.ctx, b.claim(blind), sendFor, func(ledger.Operation) (ledger.Request, error) {
		t.Error("rendered twice")
		return ledger.Request{}, errors.New("no")
	})
	b.ok(err)
	if second.Request.SHA256 != first.Request.SHA256 || string(second.Request.Body) != string(first.Request.Body) || second.Attempt.ProviderKey != first.Attempt.ProviderKey {
		t.Errorf("%+v, then %+v", first.Request, second.Request)
	}
}

func TestNoResendOutsideThePromise(t *testing.T) {
	for _, c := range []struct {
		claim  string
		wait   time.Duration
		change func(*ledger.Rail)
		reason ledger.Reason
	}{
		{"after the key's retention", 25 * time.Hour, nil, ledger.KeyExpired},
		{"to another address", 0, func(r *ledger.Rail) { r.Address = "https://other.example" }, ledger.KeyExpired},
		{"to another account", 0, func(r *ledger.Rail) { r.Account = "test" }, ledger.KeyExpired},
		{"on a rail that stopped to deduplicate", 0, func(r *ledger.Rail) { r.Dedupe.By = ledger.DedupeNone }, ledger.Inconclusive},
		{"with the key in another header", 0, func(r *ledger.Rail) { r.Dedupe.Place = "header x-key" }, ledger.KeyExpired},
		{"on a rail that knows repeats by nature now", 0, func(r *ledger.Rail) { r.Dedupe.By = ledger.DedupeNatural }, ledger.KeyExpired},
		{"more often than the rail allows", 0, func(r *ledger.Rail) { r.Limits.MaxAttempts = 1 }, ledger.AttemptsExhausted},
		{"for longer than the rail allows", 49 * time.Hour, func(r *ledger.Rail) { r.Dedupe.Retention = 1000 * time.Hour }, ledger.BudgetExhausted},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			b.settle(b.sent("op", blind), silence)
			b.clock.move(time.Second)
			if o := b.get("op"); o.Status != ledger.Unknown || o.NextSendAt == 0 {
				t.Fatalf("no resend is planned: %s", o.Status)
			}
			b.clock.move(c.wait)
			if c.change != nil {
				b.changeRail(blind, c.change)
			}
			b.wantUnmarked(b.claim(blind))
			b.want("op", ledger.UnknownHold, c.reason)
			if o := b.get("op"); o.Attempts != 1 {
				t.Errorf("%d attempts", o.Attempts)
			}
		})
	}
}

func (b *bench) changeRail(action string, change func(*ledger.Rail)) {
	b.t.Helper()
	rules := b.rules[tenant]
	r := rules.Rails[railOf(action)]
	change(&r)
	b.rules = map[string]*ledger.Rulebook{tenant: {Actions: rules.Actions, Policy: rules.Policy, Timing: rules.Timing,
		Rails: map[string]ledger.Rail{r.Name: r}, Routes: map[string]ledger.Rail{action: r}}}
	b.ok(b.s.SetRulebooks(b.ctx, b.rules))
}

func TestAPayloadThatKillsItsWorkersIsHeldAndOthersGoOn(t *testing.T) {
	b := newBench(t)
	b.submit("poison", letter, nil)
	for n := range 10 {
		if c := b.claims("w1", "post"); len(c) != 1 {
			t.Fatalf("claim %d: %d", n+1, len(c))
		}
		b.clock.move(lease)
	}
	b.submit("healthy", letter, nil)
	c := b.claims("w1", "post")
	if len(c) != 1 || c[0].Operation.OperationID != "healthy" {
		t.Fatalf("%+v", c)
	}
	b.want("poison", ledger.UnknownHold, ledger.ClaimsExhausted)
	m := b.mark(c[0])
	b.settle(m, found(m.Operation, "pay_1"))
}

// The same after a send: it must not block the others, nor be called unsent.
func TestAPayloadThatKillsItsWorkersAfterASend(t *testing.T) {
	for _, c := range []struct {
		action string
		answer ledger.Answer
	}{{letter, notSent}, {blind, silence}} {
		b := newBench(t)
		b.settle(b.sent("poison", c.action), c.answer)
		for range 10 {
			b.clock.move(lease)
			b.claim(c.action)
		}
		b.clock.move(lease)
		b.submit("healthy", c.action, nil)
		if got := b.claims("w1", railOf(c.action)); len(got) != 1 || got[0].Operation.OperationID != "healthy" {
			t.Fatalf("%+v", got)
		}
		b.want("poison", ledger.UnknownHold, ledger.AttemptsExhausted)
	}
}

func TestReleaseGivesAClaimBack(t *testing.T) {
	b := newBench(t)
	b.submit("op", letter, nil)
	for range 30 { // a provider that is down for long exhausts nothing
		c := b.claim(letter)
		b.ok(b.s.Release(b.ctx, c, b.clock.ms.Load()+1000, "The provider could not be reached."))
		b.wantErr(b.s.Release(b.ctx, c, 0, "again"), store.ErrLeaseLost)
		_, err := b.tryMark(c)
		b.wantErr(err, store.ErrLeaseLost)
		if c := b.claims("w1", "post"); len(c) != 0 {
			t.Fatal("claimed before its back-off was over")
		}
		b.clock.move(time.Second)
	}
	if o := b.want("op", ledger.Ready, ""); o.Attempts != 0 || o.Claims != 0 {
		t.Errorf("%d attempts, %d claims", o.Attempts, o.Claims)
	}
}

func TestWhatWasTakenBackUnderAClaimIsNotMarked(t *testing.T) {
	b := newBench(t)
	b.submit("op", letter, nil)
	c := b.claim(letter)
	if _, err := b.s.Cancel(b.ctx, tenant, "op", agent); err != nil {
		t.Fatal(err)
	}
	_, err := b.tryMark(c)
	b.wantErr(err, store.ErrLeaseLost)
	b.want("op", ledger.Rejected, ledger.Cancelled)
	m := b.sent("op2", letter)
	if _, err := b.s.Cancel(b.ctx, tenant, "op2", agent); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("cancelled after the mark: %v", err)
	}
	b.settle(m, found(m.Operation, "pay_1"))
}

func TestManyClaimsOneSlowWorker(t *testing.T) {
	b := newBench(t)
	for i := range 10 {
		b.submit(fmt.Sprint("op", i), letter, nil)
	}
	marked := 0
	for _, c := range b.claims("w1", "post") {
		m, err := b.tryMark(c)
		if err == nil {
			marked++
			b.settle(m, found(m.Operation, fmt.Sprint("pay", marked)))
		} else {
			b.wantErr(err, store.ErrLeaseLost)
		}
		b.clock.move(5 * time.Second)
	}
	if marked != 6 {
		t.Errorf("%d were marked within a lease of 30s at 5s each", marked)
	}
	if c := b.claims("w1", "post"); len(c) != 4 {
		t.Errorf("%d of the rest can be claimed", len(c))
	}
}

func TestTheMarkRenewsTheLease(t *testing.T) {
	b := newBench(t)
	b.submit("op", letter, nil)
	c := b.claim(letter)
	b.clock.move(lease - time.Second) // connecting took long
	m := b.mark(c)
	b.clock.move(sendFor)
	b.sweep()
	b.settle(m, refused) // in time, under its own fence
	b.want("op", ledger.Rejected, ledger.Declined)
}

func TestAClockThatMovesChangesOnlyTiming(t *testing.T) {
	b := newBench(t)
	b.submit("op", wire, nil)
	b.clock.move(-time.Hour) // not due before its time
	if c := b.claims("w1", "bank"); len(c) != 0 {
		b.mark(c[0])
	}
	b.clock.move(time.Hour)
	m := b.sent("op2", wire)
	b.clock.move(-24 * time.Hour)
	b.sweep()
	b.want("op2", ledger.InFlight, "")
	b.clock.move(48 * time.Hour)
	b.sweep()
	b.want("op2", ledger.Unknown, "")
	b.clock.move(-48 * time.Hour)
	b.settle(m, found(m.Operation, "pay_1"))
	b.want("op2", ledger.Confirmed, "")
}

func TestAStartMakesUnknownWhatTheDeadHadUnderWay(t *testing.T) {
	b := newBench(t)
	m := b.sent("sent", wire)
	b.submit("claimed", wire, nil)
	b.claim(wire)
	b.reopen()
	swept, err := b.s.Recover(b.ctx)
	b.ok(err)
	if swept.LookedAt != 1 {
		t.Errorf("%+v", swept)
	}
	b.want("sent", ledger.Unknown, "")
	c := b.claim(wire)
	if c.Operation.OperationID != "claimed" {
		t.Errorf("claimed %s", c.Operation.OperationID)
	}
	b.settle(m, refused) // the dead one's answer, by hand
	b.want("sent", ledger.Unknown, "")
	b.settle(m, found(m.Operation, "pay_1"))
	b.want("sent", ledger.Confirmed, "")
}

func TestSettlingTwiceIsSettlingOnce(t *testing.T) {
	b := newBench(t)
	for i, a := range []ledger.Answer{refused, notSent, silence, pending} {
		m := b.sent(fmt.Sprint("op", i), wire)
		first := b.settle(m, a)
		second := b.settle(m, a)
		if first.Status != second.Status || first.OpenAttempts != second.OpenAttempts || first.Reason != second.Reason {
			t.Errorf("%s: %s then %s", a.Finding, first.Status, second.Status)
		}
		if o := b.get(fmt.Sprint("op", i)); o.Status == ledger.Ready {
			_, err := b.s.Cancel(b.ctx, tenant, o.OperationID, agent)
			b.ok(err)
		}
	}
}

// A receipt outlives a definite no of the same attempt.
func TestAReceiptAfterARefusalOpensARefund(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", wire)
	b.settle(m, refused)
	b.settle(m, found(m.Operation, "pay_1"))
	b.settle(m, found(m.Operation, "pay_1"))
	b.want("op", ledger.Rejected, ledger.Declined)
	b.wantOwed("pay_1 late_effect 4800")
	attempts, err := b.s.Attempts(b.ctx, tenant, "op")
	b.ok(err)
	if attempts[0].Outcome != ledger.AttemptReceipt {
		t.Errorf("the attempt's outcome is %s", attempts[0].Outcome)
	}
}

func TestTamperedRowsAreNeverSent(t *testing.T) {
	for _, c := range []struct {
		claim  string
		sent   bool
		change []string
		reason ledger.Reason
	}{
		{"another payload", false, []string{`drop trigger operations_identity`, `update operations set payload = x'7b7d'`}, ledger.ClaimsExhausted},
		{"another amount", false, []string{`update operations set amount = 1`}, ledger.ClaimsExhausted},
		{"another recipient", false, []string{`update operations set recipient = 'acct_mine'`}, ledger.ClaimsExhausted},
		{"another rail", false, []string{`update operations set rail_address = 'https://mine.example'`}, ledger.ClaimsExhausted},
		{"another payload after a send", true, []string{`drop trigger operations_identity`, `update operations set payload = x'7b7d'`}, ledger.AuthorityGone},
		{"another request", true, []string{`drop trigger requests_no_update`, `update requests set body = x'7b7d'`}, ledger.AuthorityGone},
		{"another address in the request", true, []string{`drop trigger requests_no_update`, `update requests set url = 'https://mine.example'`}, ledger.AuthorityGone},
		{"another request with its hash", true, []string{`drop trigger requests_no_update`, `update requests set body = x'7b7d', sha256 = 'x'`}, ledger.AuthorityGone},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			b.broken = true
			if c.sent {
				b.settle(b.sent("op", blind), silence)
				b.clock.move(time.Second)
			} else {
				b.submit("op", blind, nil)
			}
			for _, change := range c.change {
				b.ok(b.sql(change))
			}
			b.wantUnmarked(b.claim(blind))
			b.want("op", ledger.UnknownHold, c.reason)
		})
	}
}

func TestWhatCannotBeRenderedIsHeld(t *testing.T) {
	b := newBench(t)
	b.submit("op", wire, nil)
	_, err := b.s.Mark(b.ctx, b.claim(wire), sendFor, func(ledger.Operation) (ledger.Request, error) { return ledger.Request{}, errors.New("no path") })
	var refused store.NotMarked
	if !errors.As(err, &refused) {
		t.Fatalf("%v", err)
	}
	if o := b.want("op", ledger.UnknownHold, ledger.ClaimsExhausted); o.Attempts != 0 {
		t.Errorf("%d attempts", o.Attempts)
	}
}

func TestARenderThatPanicsHurtsOnlyItself(t *testing.T) {
	b := newBench(t)
	b.submit("op", wire, nil)
	c := b.claim(wire)
	if _, err := b.s.Mark(b.ctx, c, sendFor, func(ledger.Operation) (ledger.Request, error) { panic("oh") }); err == nil {
		t.Fatal("marked")
	}
	if o := b.want("op", ledger.Ready, ""); o.Attempts != 0 {
		t.Errorf("%d attempts", o.Attempts)
	}
	b.mark(c)
}

// What an outlived worker brings home says nothing about the attempt of another.
func TestAnOldAnswerLeavesANewAttemptAlone(t *testing.T) {
	for _, a := range []ledger.Answer{refused, notSent, silence, pending} {
		b := newBench(t)
		first := b.sent("op", blind)
		b.clock.move(lease)
		b.sweep()
		second := b.mark(b.claim(blind))
		b.settle(first, a)
		if o := b.want("op", ledger.InFlight, ""); o.LeaseUntil != second.Operation.LeaseUntil {
			t.Errorf("the lease of the second ends at %d", o.LeaseUntil)
		}
		b.settle(second, found(second.Operation, "pay_1"))
		b.want("op", ledger.Confirmed, "")
	}
}

// A lease that ended is not held any more, though nobody has swept yet.
func TestAnAnswerAfterTheLeaseIsAnOldOne(t *testing.T) {
	for _, a := range []ledger.Answer{refused, notSent, silence} {
		b := newBench(t)
		m := b.sent("op", wire)
		b.clock.move(lease)
		b.settle(m, a)
		b.want("op", ledger.InFlight, "")
		b.sweep()
		b.want("op", ledger.Unknown, "")
	}
}

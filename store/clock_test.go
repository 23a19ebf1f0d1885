package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// The store's own clock is stepped by two hours at one point of a delivery, and
// at every point another worker tries to take the operation, and the sweep runs.
// Whatever the clock says there is one send for a rail that does not deduplicate,
// never two leases at once, and the receipt ends it.
func TestAClockStepAtAnyPointMakesNoSecondSendAndNoSecondLease(t *testing.T) {
	points := []string{"claim", "mark", "send", "settle", "sweep"}
	for _, action := range []string{wire, charge} {
		for _, at := range points {
			for _, step := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
				t.Run(fmt.Sprintf("%s/%s at %s", action, step, at), func(t *testing.T) {
					b := newBench(t)
					b.submit("op", action, nil)
					var taken []store.Claim // by others, meanwhile
					meanwhile := func(point string) {
						if point == at {
							b.clock.move(step)
						}
						b.sweep()
						if step < 0 { // nobody's lease ends early because the clock went back
							if c := b.claims("w2", railOf(action)); len(c) != 0 {
								t.Fatalf("taken over before %s", point)
							}
							return
						}
						taken = append(taken, b.claims("w2", railOf(action))...)
					}
					c := b.claim(action)
					meanwhile("claim")
					meanwhile("mark")
					m, err := b.tryMark(c)
					if len(taken) > 0 { // forwards, the lease was over: it is the other's now
						b.wantErr(err, store.ErrLeaseLost)
						m, err = b.tryMark(taken[0])
					}
					b.ok(err)
					taken = nil
					sends := 1
					for _, point := range []string{"send", "settle", "sweep"} {
						meanwhile(point)
					}
					for _, c := range taken { // what was marked is never claimed again as if it were unsent
						if _, err := b.tryMark(c); err == nil {
							sends++
						}
					}
					if sends != 1 {
						t.Errorf("sent %d times", sends)
					}
					b.clock.move(-step)
					b.settle(m, found(m.Operation, "pay_1"))
					b.sweep()
					if o := b.want("op", ledger.Confirmed, ""); o.Attempts != 1 {
						t.Errorf("%d attempts", o.Attempts)
					}
				})
			}
		}
	}
}

// A slow send on a patient rail: the lease is sized so that the last moment to
// begin, the whole time-out and the commit fit into it, and is not renewed.
func TestASlowSendLivesAsLongAsItsLease(t *testing.T) {
	const timeout = 10 * time.Minute // the configured lease is 30 s
	for _, c := range []struct {
		claim  string
		answer func(store.Marked) ledger.Answer
		status ledger.Status
	}{
		{"its receipt counts", func(m store.Marked) ledger.Answer { return found(m.Operation, "pay_1") }, ledger.Confirmed},
		{"and so does its refusal", func(store.Marked) ledger.Answer { return refused }, ledger.Rejected},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t, func(r *ledger.Rulebook) {
				bank := r.Rails["bank"]
				bank.Timeout = timeout
				r.Rails["bank"] = bank
			})
			rules := b.s.Rulebook(tenant)
			sendBy := rules.LeaseFor(rules.Rails["bank"]) / 2 // as the dispatcher counts it
			b.submit("op", wire, nil)
			claimed := b.claim(wire)
			b.clock.move(10 * time.Second) // connecting
			m, err := b.s.Mark(b.ctx, claimed, sendBy, render)
			b.ok(err)
			for _, pass := range []time.Duration{sendBy, timeout / 2, timeout/2 + 500*time.Millisecond} {
				b.clock.move(pass)
				b.sweep()
				b.want("op", ledger.InFlight, "")
				if c := b.claims("w2", "bank"); len(c) != 0 {
					t.Fatal("claimed under a live send")
				}
			}
			b.settle(m, c.answer(m))
			if o := b.get("op"); o.Status != c.status {
				t.Errorf("%s: %s", o.Status, o.Detail)
			}
		})
	}
}

// Every time-out leaves room for what a delivery takes at most.
func TestALeaseIsLongerThanTheSlowestSend(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, 30 * time.Second, time.Hour} {
		for _, timeout := range []time.Duration{0, time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute} {
			rules := ledger.Rulebook{Timing: ledger.Timing{Lease: lease}}
			whole := rules.LeaseFor(ledger.Rail{Timeout: timeout})
			if sendBy := whole / 2; sendBy+timeout >= whole && timeout > 0 || sendBy < timeout {
				t.Errorf("lease %s, time-out %s: a send begun by %s outlives %s", lease, timeout, sendBy, whole)
			}
		}
	}
}

// The budget of one operation: attempts, and time since its first mark. What
// waits for a connection spends neither.
func TestAnOperationsBudgetEndsInFrontOfAPerson(t *testing.T) {
	for _, c := range []struct {
		claim  string
		answer ledger.Answer
		limits func(*ledger.Limits)
		before time.Duration // waiting for a connection, before the first mark
		pause  time.Duration // between attempts
		marks  int
		reason ledger.Reason
	}{
		{"all attempts, none of them ran", notSent, func(l *ledger.Limits) { l.MaxAttempts = 3 }, 0, time.Second, 3, ledger.AttemptsExhausted},
		{"all attempts, nobody knows", silence, func(l *ledger.Limits) { l.MaxAttempts = 3 }, 0, time.Second, 3, ledger.AttemptsExhausted},
		{"one attempt", notSent, func(l *ledger.Limits) { l.MaxAttempts = 1 }, 0, time.Second, 1, ledger.AttemptsExhausted},
		{"all the time, none of them ran", notSent, func(l *ledger.Limits) { l.MaxElapsed = time.Minute }, 0, 30 * time.Second, 2, ledger.BudgetExhausted},
		{"all the time, nobody knows", silence, func(l *ledger.Limits) { l.MaxElapsed = time.Minute }, 0, 30 * time.Second, 2, ledger.BudgetExhausted},
		{"an hour without a connection costs nothing", notSent, func(l *ledger.Limits) { l.MaxElapsed, l.MaxAttempts = time.Minute, 2 }, time.Hour, time.Second, 2, ledger.AttemptsExhausted},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t, func(r *ledger.Rulebook) {
				queue := r.Rails["queue"]
				queue.Limits.MaxElapsed, queue.Limits.MaxAttempts = 12*time.Hour, 1000
				c.limits(&queue.Limits)
				r.Rails["queue"] = queue
			})
			b.submit("op", blind, nil)
			for waited := time.Duration(0); waited < c.before; waited += time.Minute {
				b.ok(b.s.Release(b.ctx, b.claim(blind), 0, "The provider could not be reached."))
				b.clock.move(time.Minute)
			}
			marks := 0
			for b.get("op").Status != ledger.UnknownHold {
				if got := b.claims("w1", "queue"); len(got) == 1 {
					m, err := b.tryMark(got[0])
					var over store.NotMarked
					if errors.As(err, &over) {
						break
					}
					b.ok(err)
					marks++
					b.settle(m, c.answer)
				}
				b.clock.move(c.pause)
			}
			if o := b.want("op", ledger.UnknownHold, c.reason); o.Attempts != c.marks || marks != c.marks {
				t.Errorf("%d attempts, %d marks, want %d", o.Attempts, marks, c.marks)
			}
		})
	}
}

// A claim that is given back keeps its place: what came later waits behind it.
func TestAReleasedClaimKeepsItsPlace(t *testing.T) {
	b := newBench(t)
	for n := range 3 {
		b.submit(fmt.Sprint("op", n), wire, nil)
		b.clock.move(time.Second)
	}
	for range 5 {
		c, err := b.s.Claim(b.ctx, "w1", tenant, "bank", 1, 1)
		b.ok(err)
		if len(c) != 1 || c[0].Operation.OperationID != "op0" {
			t.Fatalf("%+v", c)
		}
		b.ok(b.s.Release(b.ctx, c[0], 0, "The provider could not be reached."))
	}
}

// A laptop slept for a day: its monotonic clock stood still, and the provider
// has forgotten the key all the same.
func TestKeyAgesWhileTheMachineSleeps(t *testing.T) {
	b := newBench(t)
	b.settle(b.sent("op", blind), silence)
	b.ok(b.s.Close())
	s, err := store.Open(b.ctx, store.Options{Folder: b.folder, Now: b.clock.now, Wall: func() time.Time { return b.clock.now().Add(25 * time.Hour) }})
	b.ok(err)
	b.s = s
	b.ok(s.SetRulebooks(b.ctx, b.rules))
	b.clock.move(time.Second)
	b.wantUnmarked(b.claim(blind))
	b.want("op", ledger.UnknownHold, ledger.KeyExpired)
}

// A person releases a send whose key is good; it waits, on a paused rail say,
// until it is not.
func TestReleasedSendIsHeldWhoseKeyAgedWhileItWaited(t *testing.T) {
	for _, c := range []struct {
		claim         string
		before, after time.Duration // of the release
		sent          bool
	}{
		{"sent at once", 2 * time.Hour, time.Second, true},
		{"released with a good key, waited too long", 2 * time.Hour, 25 * time.Hour, false},
		{"released by somebody who knew that the key was old", 50 * time.Hour, time.Hour, true},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			ann := b.person("ann", "finance")
			b.changeRail(blind, func(r *ledger.Rail) { r.Limits.MaxAttempts = 1 })
			b.settle(b.sent("op", blind), silence)
			b.clock.move(c.before)
			b.want("op", ledger.UnknownHold, ledger.AttemptsExhausted)
			b.ok(b.decide(b.s.SendAgain, ann, "op"))
			b.clock.move(c.after)
			claim := b.claim(blind)
			if c.sent {
				b.mark(claim)
				return
			}
			b.wantUnmarked(claim)
			b.want("op", ledger.UnknownHold, ledger.KeyExpired)
		})
	}
}

// The clock is set back between an approval and the send that it is for.
func TestApprovalIsSpentNoEarlierThanItWasGiven(t *testing.T) {
	b := newBench(t)
	b.submit("op", charge, map[string]any{"recipient": "acct_ask"})
	b.ok(b.decide(b.s.Approve, b.person("ben", "approver"), "op"))
	b.clock.move(-time.Minute)
	b.clock.move(time.Second)
	claims, err := b.s.Claim(b.ctx, "w", tenant, "card", 1, 1)
	b.ok(err)
	for range 100 { // it is due when the clock has caught up
		if len(claims) > 0 {
			break
		}
		b.clock.move(time.Second)
		claims, err = b.s.Claim(b.ctx, "w", tenant, "card", 1, 1)
		b.ok(err)
	}
	b.clock.move(-30 * time.Second)
	b.mark(claims[0])
	b.check()
}

package store_test

import (
	"slices"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// lost is an operation whose only attempt got no answer.
func (b *bench) lost(id, action string) ledger.Operation {
	b.t.Helper()
	b.settle(b.sent(id, action), silence)
	return b.want(id, ledger.Unknown, "")
}

func TestWhatALookProves(t *testing.T) {
	for _, c := range []struct {
		claim   string
		action  string
		wait    time.Duration
		finding ledger.LookFinding
		records func(ledger.Operation) []ledger.Receipt
		status  ledger.Status
		reason  ledger.Reason
		looks   int
		owed    []string
	}{
		{"one record is the receipt", wire, 0, ledger.LookFound, func(o ledger.Operation) []ledger.Receipt { return []ledger.Receipt{receipt(o, "pay_1")} },
			ledger.Confirmed, "", 0, nil},
		{"of two, one is owed back", wire, 0, ledger.LookFound, func(o ledger.Operation) []ledger.Receipt {
			return []ledger.Receipt{receipt(o, "pay_1"), receipt(o, "pay_2")}
		}, ledger.Confirmed, "", 0, []string{"pay_2 duplicate_charge 4800"}},
		{"a record that differs is held", wire, 0, ledger.LookFound, func(o ledger.Operation) []ledger.Receipt { return []ledger.Receipt{wrong(o, "pay_1")} },
			ledger.UnknownHold, ledger.ReceiptMismatch, 0, nil},
		{"a record without our stamp is nobody's", wire, 0, ledger.LookFound, func(o ledger.Operation) []ledger.Receipt {
			r := receipt(o, "pay_1")
			r.Stamp = "ord_other"
			return []ledger.Receipt{r}
		}, ledger.Unknown, "", 1, nil},
		{"nothing found proves nothing", wire, 50 * time.Minute, ledger.LookAbsent, nil, ledger.Unknown, "", 1, nil},
		{"nothing found too early proves nothing", proven, 59 * time.Minute, ledger.LookAbsent, nil, ledger.Unknown, "", 1, nil},
		{"nothing found when the rail's rule says so", proven, time.Hour + time.Minute + sendFor, ledger.LookAbsent, nil, ledger.Rejected, ledger.NotExecuted, 0, nil},
		{"an answer that proves nothing", wire, 0, ledger.LookInconclusive, nil, ledger.Unknown, "", 1, nil},
		{"no answer changes nothing", wire, 0, ledger.LookUnreachable, nil, ledger.Unknown, "", 0, nil},
		{"past the deadline a person decides", wire, time.Hour, ledger.LookInconclusive, nil, ledger.UnknownHold, ledger.Inconclusive, 1, nil},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			o := b.lost("op", c.action)
			b.clock.move(c.wait)
			var records []ledger.Receipt
			if c.records != nil {
				records = c.records(o)
			}
			b.look("op", c.finding, records...)
			o = b.want("op", c.status, c.reason)
			if o.Status == ledger.Unknown && (o.Looks != c.looks || o.NextLookAt <= b.clock.ms.Load()) {
				t.Errorf("%d looks, the next at %d", o.Looks, o.NextLookAt-b.clock.ms.Load())
			}
			b.wantOwed(c.owed...)
			if records != nil { // the same again changes nothing
				b.look("op", c.finding, records...)
				b.want("op", c.status, c.reason)
				b.wantOwed(c.owed...)
			}
			evidence, err := b.s.Evidence(b.ctx, tenant, "op")
			b.ok(err)
			if len(evidence) < 2 {
				t.Errorf("the look was not kept: %v", evidence)
			}
		})
	}
}

func TestLooksAreDueSoonerThenLater(t *testing.T) {
	b := newBench(t)
	b.lost("op", wire)
	var last int64
	for range 8 {
		o := b.get("op")
		wait := o.NextLookAt - b.clock.ms.Load()
		if wait < last || wait <= 0 {
			t.Errorf("after %dms comes %dms", last, wait)
		}
		last = wait
		if got := b.due(); len(got) != 0 {
			t.Fatalf("%v is due before its time", got)
		}
		b.clock.ms.Store(o.NextLookAt)
		if got := b.due(); !slices.Equal(got, []string{"op"}) {
			t.Fatalf("due: %v", got)
		}
		if b.look("op", ledger.LookAbsent).Status != ledger.Unknown {
			return
		}
	}
}

func TestWhatWasUnknownIsLookedAtOnceMore(t *testing.T) {
	b := newBench(t)
	o := b.lost("op", wire)
	b.look("op", ledger.LookFound, receipt(o, "pay_1"))
	b.clock.move(time.Minute)
	if got := b.due(); !slices.Equal(got, []string{"op"}) {
		t.Fatalf("due: %v", got)
	}
	b.look("op", ledger.LookUnreachable)
	if got := b.due(); len(got) != 0 {
		t.Fatalf("asked again at once: %v", got)
	}
	b.clock.move(time.Minute)
	if got := b.due(); !slices.Equal(got, []string{"op"}) {
		t.Fatalf("an unreachable provider is not asked again: %v", got)
	}
	b.look("op", ledger.LookFound, receipt(o, "pay_1"), receipt(o, "pay_2"))
	b.want("op", ledger.Confirmed, "")
	b.wantOwed("pay_2 duplicate_charge 4800")
	b.clock.move(1000 * time.Hour)
	if got := b.due(); len(got) != 0 {
		t.Errorf("due for ever: %v", got)
	}
}

// A record that is another operation's receipt is what that one did, whatever
// stamp it is shown under.
func TestAnothersReceiptIsNoEffectTooMany(t *testing.T) {
	b := newBench(t)
	first, second := b.lost("first", wire), b.lost("second", wire)
	b.look("first", ledger.LookFound, receipt(first, "pay_1"))
	b.look("second", ledger.LookFound, receipt(second, "pay_2"), receipt(second, "pay_1"))
	b.want("second", ledger.Confirmed, "")
	b.wantOwed()
}

func TestALateEffectOnARejectedOneIsOwedBack(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	o := b.lost("op", wire)
	b.clock.move(time.Hour)
	b.look("op", ledger.LookAbsent)
	b.want("op", ledger.UnknownHold, ledger.Inconclusive)
	b.ok(b.decide(b.s.DidNotHappen, fin, "op"))
	b.want("op", ledger.Rejected, ledger.NotExecuted)
	b.clock.move(time.Minute)
	if got := b.due(); !slices.Equal(got, []string{"op"}) {
		t.Fatalf("due: %v", got)
	}
	b.look("op", ledger.LookFound, wrong(o, "pay_1"))
	b.want("op", ledger.Rejected, ledger.NotExecuted)
	b.wantOwed("pay_1 late_effect 4801")
}

// The provider acts after we stopped listening.
func TestATimeoutIsUnknownUntilTheLateAnswer(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", charge)
	b.settle(m, silence)
	o := b.want("op", ledger.Unknown, "")
	counts, err := b.s.Counts(b.ctx, tenant)
	b.ok(err)
	if counts.Unknown != 1 || counts.OldestSince != b.clock.ms.Load() || counts.AtRisk["EUR"] != o.Terms.Amount {
		t.Errorf("%+v", counts)
	}
	r, err := b.s.Submit(b.ctx, b.draft("op", charge, nil))
	b.ok(err)
	if !r.Existed || r.Operation.Status != ledger.Unknown {
		t.Errorf("the same id got %+v", r.Operation)
	}
	b.clock.move(time.Second)
	b.settle(m, found(o, "pay_1"))
	b.want("op", ledger.Confirmed, "")
}

func TestLookingComesBeforeResending(t *testing.T) {
	b := newBench(t)
	b.lost("op", charge)
	b.clock.move(time.Second)
	if c := b.claims("w1", "card"); len(c) != 0 {
		t.Fatal("sent again before anybody looked")
	}
	b.look("op", ledger.LookAbsent)
	b.clock.move(time.Second)
	m := b.mark(b.claim(charge))
	// A look that was under way when the second send began finds the first.
	b.look("op", ledger.LookFound, receipt(m.Operation, "pay_1"))
	b.want("op", ledger.Confirmed, "")
	b.settle(m, found(m.Operation, "pay_1"))
	b.wantOwed()
}

func TestAbsenceNeverDisprovesWhatIsUnderWay(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance", "approver")
	b.person("ann", "approver")
	b.lost("op", proven)
	b.clock.move(61 * time.Minute)
	b.look("op", ledger.LookInconclusive)
	b.want("op", ledger.UnknownHold, ledger.Inconclusive)
	b.ok(b.decide(b.s.SendAgain, fin, "op"))
	m := b.mark(b.claim(proven))
	b.clock.move(time.Hour)
	b.look("op", ledger.LookAbsent)
	b.want("op", ledger.InFlight, "")
	b.sweep()
	b.want("op", ledger.Unknown, "")
	b.look("op", ledger.LookAbsent) // an hour, and not yet the lag after the last possible send
	b.want("op", ledger.Unknown, "")
	b.clock.move(2 * time.Minute)
	b.look("op", ledger.LookAbsent)
	b.want("op", ledger.Rejected, ledger.NotExecuted)
	b.settle(m, found(m.Operation, "pay_1"))
	b.wantOwed("pay_1 late_effect 4800")
}

package ledger

import (
	"testing"

	"pgregory.net/rapid"
)

// world is one operation, its attempts, and what really happens at the
// provider, which the ledger only learns by answers and look-ups. It keeps the
// assumptions of the design and nothing else: a request may act until the quiet
// time is over, whatever its sender heard; what was refused or not sent does not
// act.
type world struct {
	dedupe  bool // the provider performs one key once
	o       Operation
	sent    []*request
	effects int
	now     int64
}

type request struct {
	Attempt
	mayAct   bool // it can still take effect
	acted    bool
	answered bool
}

const horizon = 5 // how long a request can act after its mark

func (w *world) on(t *rapid.T, e Event, actor Actor, named Reason) bool {
	was := w.o
	o, err := w.o.On(e, actor, named, w.now)
	if err != nil {
		return false
	}
	if was.Status.Final() {
		t.Fatalf("%s led out of %s", e, was.Status)
	}
	if o.Version != was.Version+1 {
		t.Fatalf("%s kept version %d", e, was.Version)
	}
	w.o = o
	return true
}

func (w *world) mark(t *rapid.T) {
	if w.o.Status == Unknown && !w.dedupe || w.o.Accepted || len(w.sent) == 4 || !w.on(t, Mark, Worker, "") {
		return
	}
	w.o.Attempts++
	w.o.OpenAttempts++
	w.o.QuietFrom = w.now + horizon
	w.sent = append(w.sent, &request{Attempt: Attempt{Number: w.o.Attempts, Outcome: AttemptOpen}, mayAct: true})
}

// act lets a request take effect, whatever the ledger thinks of it.
func (w *world) act(t *rapid.T) {
	r := w.pick(t, func(r *request) bool { return r.mayAct && !r.acted })
	if r == nil {
		return
	}
	r.acted = true
	if w.effects == 0 || !w.dedupe {
		w.effects++
	}
}

// pick is one of the requests that fit; nil if none does.
func (w *world) pick(t *rapid.T, fits func(*request) bool) *request {
	var found []*request
	for _, r := range w.sent {
		if fits(r) {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return rapid.SampledFrom(found).Draw(t, "request")
}

func (w *world) receipt() *Receipt { return &Receipt{ID: "pay_1", Stamp: "ord_1"} }

// answer brings the answer of one request home, early or late. Only the newest
// one can come under the fence.
func (w *world) answer(t *rapid.T) {
	r := w.pick(t, func(r *request) bool { return !r.answered })
	if r == nil {
		return
	}
	r.answered = true
	answer := Answer{Finding: Unclear}
	var mismatches []string
	if r.acted {
		answer.Finding = rapid.SampledFrom([]Finding{Found, Found, Unclear, Stuck, Pending, ""}).Draw(t, "finding")
		answer.Receipt = w.receipt()
		if rapid.IntRange(0, 9).Draw(t, "differs") == 0 {
			mismatches = []string{"/amount"}
		}
	} else {
		answer.Finding = rapid.SampledFrom([]Finding{Refused, NotSent, Unclear, Stuck, Pending, ""}).Draw(t, "finding")
		if answer.Finding == Refused || answer.Finding == NotSent {
			r.mayAct = false
		}
	}
	fenceHolds := r == w.sent[len(w.sent)-1] && w.o.Status == InFlight && rapid.Bool().Draw(t, "fence holds")
	s := Settle(w.o, r.Attempt, answer, mismatches, fenceHolds)
	w.o = w.o.Resolve(r.Attempt, s.Outcome)
	r.Outcome = s.Outcome
	w.o.Accepted, w.o.LookOnly = w.o.Accepted || s.Accepted, w.o.LookOnly || s.LookOnly
	if s.Event != "" && !w.on(t, s.Event, Worker, s.Reason) {
		t.Fatalf("the lifecycle refuses %s, which Settle decided, from %+v", s.Event, w.o)
	}
	if w.o.Status == Confirmed && w.o.Receipt == nil {
		w.o.Receipt = answer.Receipt
	}
}

// look asks the provider. Nothing found is taken as proof where the guard
// allows it.
func (w *world) look(t *rapid.T) {
	e := Disprove
	if w.effects > 0 {
		e = Receive
	}
	if w.on(t, e, Reconciler, "") && e == Receive {
		w.o.Receipt = w.receipt()
	}
}

// leaseEnds is what the sweep does to a worker that fell silent.
func (w *world) leaseEnds(t *rapid.T) { w.on(t, Lose, Clock, "") }

// decide lets a person say what they see at the provider at this moment.
func (w *world) decide(t *rapid.T) {
	e := rapid.SampledFrom([]Event{Approve, Merge, Separate, SeparateAsk, SayHappened, SayNotHappened, SendAgain, StillUnknown}).Draw(t, "decision")
	if sees := w.effects > 0; e == SayHappened && !sees || (e == SayNotHappened || e == SendAgain) && sees {
		return
	}
	w.on(t, e, Person, "")
}

// meddle lets anyone try anything that neither sends nor proves; seldom, or
// few lives would see a send.
func (w *world) meddle(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "seldom") > 0 {
		return
	}
	e := rapid.SampledFrom([]Event{Cancel, Deny, Replace, Expire, Fail, Withdraw, AskAgain, TakeBack, StopRun, GiveUp, Restore}).Draw(t, "event")
	actor := rapid.SampledFrom([]Actor{Agent, Person, Worker, Clock}).Draw(t, "actor")
	reason := Reason("")
	if e == GiveUp {
		reason = rapid.SampledFrom([]Reason{w.o.TooManyClaims(), Inconclusive, KeyExpired, AuthorityGone}).Draw(t, "reason")
	}
	if w.on(t, e, actor, reason) && e == Restore {
		w.o.QuietFrom = max(w.o.QuietFrom, w.now+horizon)
	}
}

func (w *world) wait(t *rapid.T) {
	w.now += int64(rapid.IntRange(1, horizon+1).Draw(t, "for"))
	if w.now >= w.o.QuietFrom {
		for _, r := range w.sent {
			r.mayAct = false
		}
	}
}

func (w *world) check(t *rapid.T) {
	open := 0
	for _, r := range w.sent {
		if !r.Outcome.Resolved() {
			open++
		}
	}
	switch {
	case w.o.OpenAttempts != open || w.o.OpenAttempts < 0:
		t.Fatalf("%d attempts open, the ledger says %d", open, w.o.OpenAttempts)
	case w.o.Attempts != len(w.sent):
		t.Fatalf("%d requests, the ledger says %d", len(w.sent), w.o.Attempts)
	case w.o.Status == Rejected && w.effects > 0:
		t.Fatalf("rejected (%s), but it happened", w.o.Reason)
	case w.o.Status == Rejected && open > 0 && w.o.Reason != NotExecuted:
		t.Fatalf("rejected (%s) with %d attempts unresolved", w.o.Reason, open)
	case w.o.Status == Confirmed && w.effects == 0:
		t.Fatal("confirmed, but it never happened")
	case w.effects > 1:
		t.Fatalf("it happened %d times", w.effects)
	}
}

// TestNoLifeTellsALieOrPaysTwice lets workers, people, agents, the clock and a
// provider do what they can in any order. Whatever they do, it happens at most
// once, "rejected" means that it did not and will not happen, and "confirmed"
// that it did.
func TestNoLifeTellsALieOrPaysTwice(t *testing.T) {
	for name, dedupe := range map[string]bool{"where the provider deduplicates": true, "where it does not": false} {
		t.Run(name, func(t *testing.T) {
			for range 30 { // a hundred lives each: the rare ones are the dangerous ones
				rapid.Check(t, func(t *rapid.T) {
					w := &world{dedupe: dedupe, now: 1}
					if first := rapid.SampledFrom([]Event{Allow, Allow, Ask, Overlap}).Draw(t, "submitted"); first == Overlap {
						w.on(t, first, Agent, SameReference)
					} else {
						w.on(t, first, Agent, "")
					}
					t.Repeat(map[string]func(*rapid.T){
						"mark": w.mark, "act": w.act, "answer": w.answer, "lease ends": w.leaseEnds, "look": w.look,
						"decide": w.decide, "meddle": w.meddle, "wait": w.wait, "": w.check,
					})
				})
			}
		})
	}
}

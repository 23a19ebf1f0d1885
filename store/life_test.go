package store_test

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/invariant"
	"holdfast/store/ledger"

	"pgregory.net/rapid"
)

// world is a ledger with providers that may act late, twice or not at all, and
// people who say what they find in the providers' books.
type world struct {
	*bench
	t      *rapid.T
	people []ledger.PersonRecord
	ids    []string
	claims []store.Claim
	wires  []*delivery
	books  map[string]*invariant.Book
	seen   map[string]*invariant.Effect // by rail and key, where the rail deduplicates
	latest int64                        // the providers' clock: it never goes back, whatever ours does
	n      int
}

// delivery is one request on its way: it may be sent until its deadline, and may
// act until it is quiet.
type delivery struct {
	m      store.Marked
	sent   bool
	over   bool // it acted, or never will
	effect *invariant.Effect
}

var lifeActions = []string{charge, wire, letter, proven, blind}

func (w *world) pick(label string, n int) int { return rapid.IntRange(0, n-1).Draw(w.t, label) }

func (w *world) submit(t *rapid.T) {
	id := fmt.Sprint("op", w.pick("id", 40))
	payload := map[string]any{"reference": fmt.Sprint("ref", w.pick("reference", 30)), "amount": 100 * (1 + w.pick("amount", 3)),
		"recipient": []string{"acct_1", "acct_2", "acct_3", "acct_4", "acct_5", "acct_6", "acct_7", "acct_8", "acct_ask", "acct_bad"}[w.pick("recipient", 10)]}
	_, known := w.known(id)
	var after []string
	if len(w.ids) > 0 && w.pick("waits", 3) == 0 {
		for range 1 + w.pick("for how many", 2) {
			after = append(after, w.ids[w.pick("after", len(w.ids))])
		}
	}
	r, err := w.s.Submit(w.ctx, w.draft(id, lifeActions[w.pick("action", len(lifeActions))], payload, func(o *ledger.Operation) { o.After = after }))
	w.ok(err)
	if r.Existed != known {
		t.Fatalf("%s existed: %v, and was known: %v", id, r.Existed, known)
	}
	if !known {
		w.ids = append(w.ids, id)
	}
}

func (w *world) known(id string) (ledger.Operation, bool) {
	o, err := w.s.Operation(w.ctx, tenant, id)
	return o, err == nil
}

func (w *world) claim(*rapid.T) {
	worker, limit := fmt.Sprint("w", w.pick("worker", 2)), 1+w.pick("limit", 2)
	for _, action := range lifeActions {
		c, err := w.s.Claim(w.ctx, worker, tenant, railOf(action), limit, limit)
		w.ok(err)
		w.claims = append(w.claims, c...)
	}
}

func (w *world) mark(t *rapid.T) {
	if len(w.claims) == 0 {
		return
	}
	n := w.pick("claim", len(w.claims))
	m, err := w.tryMark(w.claims[n])
	if w.pick("once more", 4) > 0 {
		w.claims = append(w.claims[:n], w.claims[n+1:]...)
	}
	var refused store.NotMarked
	switch {
	case err == nil:
		w.wires = append(w.wires, &delivery{m: m, sent: w.pick("sent at once", 4) > 0})
	case !errors.As(err, &refused) && !errors.Is(err, store.ErrLeaseLost):
		t.Fatal(err)
	}
}

// wire is one of the latest deliveries; nil if there was none yet.
func (w *world) wire() *delivery {
	if len(w.wires) == 0 {
		return nil
	}
	recent := w.wires[max(0, len(w.wires)-6):]
	return recent[w.pick("wire", len(recent))]
}

// send puts a request on the wire, if its worker's deadline still allows.
func (w *world) send(t *rapid.T) {
	d := w.wire()
	if d == nil {
		return
	}
	if d.m.Attempt.SendBy >= w.clock.ms.Load() {
		d.sent = true
	} else if !d.sent {
		d.over = true
	}
}

// act lets a request that was sent take effect, however late it may.
func (w *world) act(t *rapid.T) {
	d := w.wire()
	if d == nil {
		return
	}
	o := d.m.Operation
	quiet := d.m.Attempt.SendBy + w.rules[tenant].Rails[o.Rail].Quiet.Milliseconds()
	if !d.sent || d.over || w.clock.ms.Load() >= quiet {
		return
	}
	w.perform(d)
}

func (w *world) perform(d *delivery) {
	o := d.m.Operation
	d.over = true
	book := w.books[o.Rail]
	key := o.Rail + " " + o.ProviderKey
	if book.Dedupes && w.seen[key] != nil {
		d.effect = w.seen[key]
		return
	}
	w.n++
	e := invariant.Effect{Key: o.ProviderKey, Stamp: o.OrderID, ID: fmt.Sprint("pay_", w.n), Amount: o.Terms.Amount, Currency: o.Terms.Currency, At: max(w.latest, w.clock.ms.Load())}
	if w.pick("wrong amount", 10) == 0 {
		e.Amount++
	}
	book.Effects = append(book.Effects, e)
	d.effect, w.seen[key] = &e, &e
}

func record(o ledger.Operation, e invariant.Effect) ledger.Receipt {
	r := receipt(o, e.ID)
	r.Amount = &e.Amount
	return r
}

// answer settles a delivery with what a provider may truthfully say.
func (w *world) answer(t *rapid.T) {
	d := w.wire()
	if d == nil {
		return
	}
	if now := w.clock.ms.Load(); d.sent && !d.over && now <= d.m.Attempt.SendBy && w.pick("as usual", 2) == 0 {
		w.perform(d)
	}
	answers := []ledger.Answer{silence}
	switch {
	case d.effect != nil:
		r := record(d.m.Operation, *d.effect)
		answers = append(answers, ledger.Answer{Finding: ledger.Found, Receipt: &r}, ledger.Answer{Finding: ledger.Found, Receipt: &r})
	case !d.over && d.sent:
		answers = append(answers, pending, refused)
	case !d.over:
		answers = append(answers, notSent)
	}
	a := answers[w.pick("answer", len(answers))]
	if a.Finding == ledger.Refused || a.Finding == ledger.NotSent {
		d.over = true // it means what it says
	}
	w.settle(d.m, a)
}

func (w *world) effects(o ledger.Operation) (found []ledger.Receipt) {
	for _, e := range w.books[o.Rail].Effects {
		if e.Key == o.ProviderKey {
			found = append(found, record(o, e))
		}
	}
	return found
}

// any is one of the operations; there is none yet where some is false.
func (w *world) any() (o ledger.Operation, some bool) {
	if len(w.ids) == 0 {
		return o, false
	}
	return w.get(w.ids[w.pick("operation", len(w.ids))]), true
}

func (w *world) lookup(t *rapid.T) {
	o, some := w.any()
	if !some || o.Attempts == 0 || !w.rules[tenant].Rails[o.Rail].Lookup.Possible {
		return
	}
	w.lookAt(o, w.pick("finding", 4))
}

func (w *world) lookAt(o ledger.Operation, luck int) {
	records := w.effects(o)
	switch {
	case luck == 0:
		w.look(o.OperationID, ledger.LookUnreachable)
	case luck == 1:
		w.look(o.OperationID, ledger.LookInconclusive)
	case len(records) > 0:
		w.look(o.OperationID, ledger.LookFound, records...)
	default:
		w.look(o.OperationID, ledger.LookAbsent)
	}
}

// person decides something truthful; whether it may is the store's to say.
func (w *world) person(t *rapid.T) {
	o, some := w.any()
	if !some {
		return
	}
	p := w.people[w.pick("person", len(w.people))]
	receipts := w.effects(o)
	decisions := []deciding{w.s.Approve, w.s.Approve, w.s.Reject, w.s.AskForChanges, w.s.SendAgain, w.s.StillUnknown, w.s.LookAgain, w.s.SamePurchase, w.s.DifferentPurchase}
	d := w.decision(p, o.OperationID)
	switch len(receipts) {
	case 0:
		decisions = append(decisions, w.s.DidNotHappen)
	default:
		d.ReceiptID, d.Amount = receipts[0].ID, receipts[0].Amount
		decisions = append(decisions, w.s.Happened)
	}
	f := decisions[w.pick("decision", len(decisions))]
	if _, err := f(w.ctx, tenant, o.OperationID, d); err != nil && !errors.Is(err, store.ErrForbidden) && !errors.Is(err, ledger.ErrNotAllowed) {
		t.Fatal(err)
	}
}

func (w *world) cancel(t *rapid.T) {
	o, some := w.any()
	if !some || w.pick("cancel", 4) > 0 {
		return
	}
	_, err := w.s.Cancel(w.ctx, tenant, o.OperationID, agent)
	if err != nil && !errors.Is(err, ledger.ErrNotAllowed) {
		t.Fatal(err)
	}
}

func (w *world) sweepAll(*rapid.T) { w.sweep() }

func (w *world) time(*rapid.T) {
	jumps := []time.Duration{time.Second, 10 * time.Second, 31 * time.Second, 5 * time.Minute, 20 * time.Minute, time.Hour, 25 * time.Hour, -time.Minute}
	w.latest = max(w.latest, w.clock.ms.Load())
	w.clock.move(jumps[w.pick("jump", len(jumps))])
}

// crash ends the process and starts another: what it had not sent it never sends.
func (w *world) crash(*rapid.T) {
	w.reopen()
	_, err := w.s.Recover(w.ctx)
	w.ok(err)
	w.claims = nil
	for _, d := range w.wires {
		d.over = d.over || !d.sent
	}
}

// settleDown lets everything work for a while; then all must have come to rest.
func (w *world) settleDown() {
	for range 60 {
		w.clock.move(31 * time.Minute)
		w.sweep()
		for _, action := range lifeActions {
			for _, c := range w.bench.claims("w9", railOf(action)) {
				m, err := w.tryMark(c)
				if err != nil {
					continue
				}
				d := &delivery{m: m, sent: true}
				w.perform(d)
				r := record(m.Operation, *d.effect)
				w.settle(m, ledger.Answer{Finding: ledger.Found, Receipt: &r})
			}
		}
		due, err := w.s.DueLooks(w.ctx, 100)
		w.ok(err)
		for _, o := range due {
			w.lookAt(o, 3)
		}
	}
	w.clock.move(200 * time.Hour) // an accepted one is held in the end
	w.sweep()
	unsettled, err := invariant.Unsettled(w.ctx, w.s)
	w.ok(err)
	for _, v := range unsettled {
		w.t.Error(v)
	}
}

func (w *world) audit() {
	var books []invariant.Book
	for _, b := range w.books {
		books = append(books, *b)
	}
	found, err := invariant.Check(w.ctx, w.s, books...)
	w.ok(err)
	for _, v := range found {
		w.t.Error(v)
	}
}

func TestInvariantsHoldWhateverHappens(t *testing.T) {
	for name, value := range map[string]string{"rapid.checks": "15", "rapid.steps": "200"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue { // else somebody asked for more
			if err := f.Value.Set(value); err != nil {
				t.Fatal(err)
			}
			defer f.Value.Set(f.DefValue)
		}
	}
	tries := map[ledger.Status]int{}
	rapid.Check(t, func(rt *rapid.T) {
		b := newBenchIn(t, t.TempDir())
		w := &world{bench: b, t: rt, books: map[string]*invariant.Book{}, seen: map[string]*invariant.Effect{}}
		defer func() { b.ok(w.s.Close()) }()
		for _, action := range lifeActions {
			rail := b.rules[tenant].Rails[railOf(action)]
			w.books[rail.Name] = &invariant.Book{Rail: rail.Name, Dedupes: rail.Dedupe.By == ledger.DedupeKey}
		}
		w.people = []ledger.PersonRecord{b.person("ann", "approver"), b.person("fin", "finance", "admin"), b.person("olga", "approver")}
		rt.Repeat(map[string]func(*rapid.T){
			"submit": w.submit, "submit2": w.submit, "claim": w.claim, "claim2": w.claim, "mark": w.mark, "mark2": w.mark, "send": w.send, "send2": w.send,
			"act": w.act, "answer": w.answer, "answer2": w.answer, "look": w.lookup, "person": w.person, "person2": w.person, "cancel": w.cancel,
			"sweep": w.sweepAll, "time": w.time, "crash": w.crash,
		})
		w.audit()
		for _, id := range w.ids {
			tries[w.get(id).Status]++
		}
		w.settleDown()
		w.audit()
	})
	t.Log(tries)
	for _, s := range []ledger.Status{ledger.Confirmed, ledger.Rejected, ledger.Unknown, ledger.UnknownHold} {
		if tries[s] == 0 {
			t.Errorf("no life led to %s: little was tested", s)
		}
	}
}

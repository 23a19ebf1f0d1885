package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// RailTest tries on a test account what a rail promises. It is no operation: it
// leaves what it sends at the provider, once if the rail keeps its word.
type RailTest struct {
	Rail    *rail.Rail
	Promise ledger.Rail
	Action  *ledger.ActionType
	Payload []byte
	ID      string        // a name that no other test has
	Wait    time.Duration // how long to look for what was sent, beyond the rail's lag
	Now     func() time.Time
	Pause   func(context.Context, time.Duration) error // between looks
	Say     func(ledger.RailFinding)                   // progress, as it comes
}

// Run tries one promise after the other. It stops where the next step would
// mean nothing. The error is for a payload that cannot be sent at all.
func (t RailTest) Run(ctx context.Context) ([]ledger.RailFinding, error) {
	o, err := t.operation(t.ID, t.Payload)
	if err != nil {
		return nil, err
	}
	request, err := t.Rail.Render(o)
	if err != nil {
		return nil, err
	}
	var all []ledger.RailFinding
	found := func(check, promised, seen string, passed bool) {
		f := ledger.RailFinding{Check: check, Promised: promised, Seen: seen, Passed: passed}
		all = append(all, f)
		if t.Say != nil {
			t.Say(f)
		}
	}

	if t.Promise.Lookup.Possible {
		look := t.Rail.Lookup(ctx, o)
		found("absence", "nothing is found of what was never sent", lookWords(look), look.Finding == ledger.LookAbsent)
	}
	first := t.send(ctx, o, request)
	sent := t.receipt(o, first)
	found("send", "confirmed, with a receipt that agrees", answerWords(first, sent), sent.agrees)
	if !sent.agrees {
		return all, nil // what follows would be compared with nothing
	}
	if t.Promise.Lookup.Possible {
		seen, ok := t.find(ctx, o, sent.id)
		found("lookup", fmt.Sprintf("found by its stamp, not later than %s", t.Promise.Lookup.Lag), seen, ok)
	}
	if by := t.Promise.Dedupe.By; by == ledger.DedupeKey || by == ledger.DedupeNatural {
		promised := "a repeat under the same key gives the same receipt"
		if by == ledger.DedupeNatural {
			promised = "a repeat is the same by nature and gives the same receipt"
		}
		again := t.send(ctx, o, request)
		replay := t.receipt(o, again)
		found("replay", promised, answerWords(again, replay), replay.id == sent.id)
	}
	if t.Promise.Dedupe.By == ledger.DedupeKey {
		if other, ok := t.altered(o); ok {
			seen, ok := t.mismatch(ctx, other, sent.id)
			found("mismatch", "another request under the same key has no effect of its own", seen, ok)
		}
	}
	if t.Promise.Lookup.Possible {
		look := t.Rail.Lookup(ctx, o)
		once := look.Finding == ledger.LookFound && len(look.Records) == 1 && look.Records[0].ID == sent.id
		found("once", "after all this there is one", lookWords(look), once)
	}
	return all, nil
}

// operation is the payload as an operation of the tenant would be sent.
func (t RailTest) operation(id string, payload []byte) (ledger.Operation, error) {
	value, err := ledger.ParseStrict(payload)
	if err != nil {
		return ledger.Operation{}, fmt.Errorf("the payload is not strict JSON: %w", err)
	}
	n, wrong := t.Action.Normalize(value)
	if len(wrong) > 0 {
		return ledger.Operation{}, fmt.Errorf("the payload breaks the schema of %s at %s: %s", t.Action.Name, wrong[0].Pointer, wrong[0].Message)
	}
	return ledger.Operation{OperationID: id, ActionType: t.Action.Name, Effect: t.Action.Effect, Rail: t.Promise.Name,
		OrderID: ledger.OrderID("rail test", "", t.ID), ProviderKey: ledger.ProviderKey("rail test", "", t.ID, t.Promise.Account),
		Payload: n.Payload, Terms: n.Terms, FirstMarkAt: t.Now().UnixMilli(), CreatedAt: t.Now().UnixMilli()}, nil
}

func (t RailTest) send(ctx context.Context, o ledger.Operation, request ledger.Request) ledger.Answer {
	conn, err := t.Rail.Connect(ctx)
	if err != nil {
		return ledger.Answer{Finding: ledger.NotSent, Sentence: fmt.Sprintf("There is no connection: %v.", err)}
	}
	defer conn.Close()
	return t.Rail.Classify(o, conn.Send(ctx, request, t.Now().Add(t.Promise.Timeout)))
}

// verdict is what an answer's receipt is worth.
type verdict struct {
	id      string
	differs []string
	agrees  bool
}

func (t RailTest) receipt(o ledger.Operation, a ledger.Answer) verdict {
	if a.Finding != ledger.Found || a.Receipt == nil {
		return verdict{}
	}
	v := verdict{id: a.Receipt.ID, differs: ledger.Compare(o, *a.Receipt, t.Promise.Compared)}
	v.agrees = len(v.differs) == 0
	return v
}

// find looks until what was sent shows, and says how long that took.
func (t RailTest) find(ctx context.Context, o ledger.Operation, receipt string) (seen string, ok bool) {
	began := t.Now()
	for {
		look := t.Rail.Lookup(ctx, o)
		took := t.Now().Sub(began).Round(time.Millisecond)
		if look.Finding == ledger.LookFound {
			same := len(look.Records) == 1 && look.Records[0].ID == receipt
			return fmt.Sprintf("%s, after %s", strings.TrimSuffix(lookWords(look), "."), took), same && took <= t.Promise.Lookup.Lag+t.Promise.Timeout
		}
		if took >= t.Promise.Lookup.Lag+t.Wait {
			return fmt.Sprintf("not found in %s: %s", took, lookWords(look)), false
		}
		if err := t.Pause(ctx, time.Second); err != nil {
			return err.Error(), false
		}
	}
}

// altered is another request under the same key: one minor unit more.
func (t RailTest) altered(o ledger.Operation) (ledger.Operation, bool) {
	place := t.Action.Pointer("amount")
	value, err := ledger.ParseStrict(o.Payload)
	if place == "" || err != nil || !o.Terms.HasAmount {
		return o, false
	}
	if amount, _ := ledger.Get(value, place); fmt.Sprint(amount) != fmt.Sprint(o.Terms.Amount) {
		return o, false // a decimal text: what one unit more is depends on the currency
	}
	if ledger.Set(value, place, o.Terms.Amount+1) != nil {
		return o, false
	}
	payload, err := ledger.Canonical(value)
	if err != nil {
		return o, false
	}
	other, err := t.operation(o.OperationID, payload)
	return other, err == nil
}

func (t RailTest) mismatch(ctx context.Context, other ledger.Operation, receipt string) (seen string, ok bool) {
	request, err := t.Rail.Render(other)
	if err != nil {
		return err.Error(), false
	}
	a := t.send(ctx, other, request)
	v := t.receipt(other, a)
	switch {
	case v.id == "":
		return a.Sentence, a.Finding != ledger.Pending
	case v.id != receipt:
		return fmt.Sprintf("it acted a second time: receipt %s", v.id), false
	case v.agrees:
		return fmt.Sprintf("it answers with the first receipt, %s, and nothing in it shows that it is another request's; name amount under receipt", v.id), false
	}
	return fmt.Sprintf("it answers with the first receipt, %s; the comparison catches it at %s", v.id, strings.Join(v.differs, ", ")), true
}

func answerWords(a ledger.Answer, v verdict) string {
	if len(v.differs) > 0 {
		return fmt.Sprintf("%s It differs at %s.", a.Sentence, strings.Join(v.differs, ", "))
	}
	return a.Sentence
}

func lookWords(l ledger.Look) string {
	if l.Sentence == "" {
		return string(l.Finding)
	}
	return l.Sentence
}

// ErrNotATestAccount is what keeps a test off real money.
var ErrNotATestAccount = errors.New("a test sends for real, twice under one key: add --test-account if this rail's credentials are a test account's")

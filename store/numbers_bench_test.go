package store

import (
	"context"
	"fmt"
	"testing"

	"holdfast/store/ledger"
)

// BenchmarkNumbers tells what a scrape costs over a ledger of 100,000 operations:
// the first reads the whole log, the next ones what is open and what is new.
func BenchmarkNumbers(b *testing.B) {
	s := openTest(b)
	draft := paying(b, s)
	ctx := context.Background()
	const many, page = 100_000, 1000
	rules := s.Rulebook("acme")
	for i := 0; i < many; i += page {
		err := s.change(ctx, func(x *tx) error {
			for j := range page {
				if err := x.lived(draft(fmt.Sprint("op", i+j)), rules.Routes["pay"], (i+j)%50 == 0, (i+j)%1000 == 0); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	read := func(b *testing.B, t *Tally) {
		b.Helper()
		if err := t.CatchUp(ctx); err != nil {
			b.Fatal(err)
		}
		n, err := s.Numbers(ctx, "acme")
		if err != nil || len(n.Open) != 1 || n.Open[0].N != many/1000 {
			b.Fatal(n, err)
		}
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			read(b, s.NewTally())
		}
	})
	b.Run("next", func(b *testing.B) {
		t := s.NewTally()
		read(b, t)
		for b.Loop() {
			read(b, t)
		}
	})
}

// lived writes an operation with the log of its life: sent and confirmed, or
// unknown for an hour before, or unknown still.
func (t *tx) lived(o ledger.Operation, rail ledger.Rail, lost, open bool) error {
	o.OrderID, o.Effect, o.Status, o.Version = ledger.OrderID("x", "acme", o.OperationID), "pay", ledger.Confirmed, 1
	bind(&o, "x", rail)
	o.CreatedAt, o.UpdatedAt, o.Attempts, o.EverUnknown = t.now, t.now, 1, lost
	if lost {
		o.UnknownSince = t.now
	}
	steps := []ledger.Entry{{Event: "allow", To: ledger.Ready}, {Event: "mark", From: ledger.Ready, To: ledger.InFlight}}
	if lost {
		steps = append(steps, ledger.Entry{Event: "lose", From: ledger.InFlight, To: ledger.Unknown})
	}
	if open {
		o.Status = ledger.Unknown
	} else {
		steps = append(steps, ledger.Entry{Event: "receive", From: steps[len(steps)-1].To, To: ledger.Confirmed})
	}
	if err := t.insert(o); err != nil {
		return err
	}
	for _, e := range steps {
		e.TenantID, e.OperationID, e.Object, e.ObjectID = o.TenantID, o.OperationID, "operation", o.OperationID
		e.ActorKind, e.Actor, e.Sentence = ledger.Worker, "w1", "The provider's receipt agrees with what was approved, member by member."
		if err := t.log(e); err != nil {
			return err
		}
	}
	return nil
}

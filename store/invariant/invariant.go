// Package invariant is the one list of what must hold over a ledger, whatever
// crashed, raced or lied. Tests, the crash drill and "holdfast verify" use it.
//
// Every check reads what is stored, and believes the action log: the row of an
// operation must be what its entries add up to. Where the provider's own book is
// at hand, the ledger is held against it too.
package invariant

import (
	"context"
	"fmt"

	"holdfast/store"
	"holdfast/store/ledger"
)

// Violation is one thing that does not hold.
type Violation struct {
	Name      string // I-1 …, or the name of the check
	Tenant    string
	Operation string // empty: it is about the ledger as a whole
	Sentence  string
}

func (v Violation) String() string {
	if v.Operation == "" {
		return v.Name + ": " + v.Sentence
	}
	return fmt.Sprintf("%s: %s/%s: %s", v.Name, v.Tenant, v.Operation, v.Sentence)
}

// checks are what is looked at, in this order. What "holdfast verify" says it
// looks at is this list.
var checks = []struct {
	What string
	look func(*checker, context.Context) error
}{
	{"the file", (*checker).file},
	{"the seal of the log", (*checker).sealed},
	{"the order of the log", (*checker).log},
	{"operations", (*checker).operations},
	{"events", (*checker).events},
	{"what is owed", (*checker).refunds},
	{"statements", (*checker).statements},
}

// Check holds a ledger against every invariant, and against the books of
// providers where they are given. Its error means that it could not look; the
// violations found until then come with it.
func Check(ctx context.Context, db *store.Store, books ...Book) ([]Violation, error) {
	c := checker{db: db, shelf: newShelf(books), opened: map[opened]ledger.Entry{}}
	for _, check := range checks {
		if err := check.look(&c, ctx); err != nil {
			return c.found, err
		}
	}
	c.strangers()
	return c.found, nil
}

// Verification is what Verify has to tell it and hears from it.
type Verification struct {
	Heads    []string             // signed heads of the log that were kept elsewhere
	Progress func(read, of int64) // hears how far the log was read; may be nil
	Checked  func(what string)    // hears what holds; may be nil
	Log      store.LogReport      // about the log, as far as it was read
}

// Verify is Check for a person who waits: it stops behind the first check that
// found something.
func Verify(ctx context.Context, db *store.Store, v *Verification) ([]Violation, error) {
	c := checker{db: db, shelf: newShelf(nil), opened: map[opened]ledger.Entry{}, verification: v}
	for _, check := range checks {
		err := check.look(&c, ctx)
		if err != nil || len(c.found) > 0 {
			return c.found, err
		}
		if v.Checked != nil {
			v.Checked(check.What)
		}
	}
	return nil, nil
}

// waitsInOrder reports whether an operation waits for another one that may still
// be confirmed.
func waitsInOrder(ctx context.Context, db *store.Store, o ledger.Operation) (bool, error) {
	first, err := db.WaitsFor(ctx, o.TenantID, o.OperationID)
	for _, id := range first {
		f, err := db.Operation(ctx, o.TenantID, id)
		if err != nil || f.Status == ledger.Rejected {
			return false, err
		}
	}
	return len(first) > 0, err
}

// Unsettled lists what has not come to rest: once nothing fails any more, every
// operation has ended, waits for a person, or is unknown with a next step (I-34),
// and every event was weighed (I-23).
func Unsettled(ctx context.Context, db *store.Store) ([]Violation, error) {
	var found []Violation
	err := db.EachOperation(ctx, func(d store.Dossier) error {
		o := d.Operation
		if o.Status == ledger.Ready {
			waits, err := waitsInOrder(ctx, db, o)
			if err != nil || waits {
				return err
			}
		}
		if o.Status == ledger.Ready || o.Status == ledger.InFlight || o.Status == ledger.Unknown && !planned(o) {
			found = append(found, Violation{"I-34", o.TenantID, o.OperationID, fmt.Sprintf("is still %s", o.Status)})
		}
		return nil
	})
	if err != nil {
		return found, err
	}
	return found, db.EachEvent(ctx, func(e ledger.ProviderEvent) error {
		if e.State == ledger.EventKept {
			found = append(found, Violation{Name: "I-23", Tenant: e.TenantID, Sentence: fmt.Sprintf("event %s of rail %s was stored and never weighed", e.EventID, e.Rail)})
		}
		return nil
	})
}

// checker gathers what does not hold.
type checker struct {
	db     *store.Store
	shelf  *shelf
	found  []Violation
	opened map[opened]ledger.Entry // refunds owed, by the log
	until  int64                   // the time up to which the log was read

	verification *Verification // nil: nobody waits
}

func (c *checker) fault(name string, o ledger.Operation, format string, args ...any) {
	c.found = append(c.found, Violation{name, o.TenantID, o.OperationID, fmt.Sprintf(format, args...)})
}

func (c *checker) whole(name, format string, args ...any) {
	c.found = append(c.found, Violation{Name: name, Sentence: fmt.Sprintf(format, args...)})
}

// file checks the database itself: I-32, and that no page of it is damaged.
func (c *checker) file(ctx context.Context) error {
	file, known, err := c.db.Schema(ctx)
	if err != nil {
		return err
	}
	if file > known {
		c.whole("I-32", "the schema is at %d, newer than this binary's %d", file, known)
	}
	faults, err := c.db.CheckFile(ctx)
	for _, f := range faults {
		c.whole("file", "%s", f)
	}
	return err
}

// sealed checks that every entry is what was sealed, and that one head of the log
// grew out of the other (I-18).
func (c *checker) sealed(ctx context.Context) (err error) {
	v := c.verification
	if v == nil {
		v = &Verification{}
	}
	v.Log, err = c.db.CheckLog(ctx, v.Heads, v.Progress)
	if v.Log.Fault != nil {
		c.whole("I-18", "%s", v.Log.Fault.Sentence)
	}
	return err
}

// log checks that the log has no gap and no repeat (I-18), that its time never
// runs backwards (I-20), and that every operation it speaks of is there (I-33).
func (c *checker) log(ctx context.Context) error {
	var last ledger.Entry
	err := c.db.EachEntry(ctx, 0, func(e ledger.Entry) error {
		if e.Seq != last.Seq+1 {
			c.whole("I-18", "entry %d follows entry %d", e.Seq, last.Seq)
		}
		if e.At < last.At {
			c.whole("I-20", "entry %d is older than the one before it", e.Seq)
		}
		if e.Object == "refund_owed" && e.Event == string(ledger.RefundOpen) {
			c.opened[opened{e.TenantID, e.ObjectID}] = e
		}
		last, c.until = e, e.At
		return nil
	})
	if err != nil {
		return err
	}
	lost, err := c.db.LostOperations(ctx)
	for _, e := range lost {
		c.found = append(c.found, Violation{"I-33", e.TenantID, e.OperationID, fmt.Sprintf("entry %d registers it, and it is not in the ledger", e.Seq)})
	}
	return err
}

func (c *checker) operations(ctx context.Context) error {
	return c.db.EachOperation(ctx, func(d store.Dossier) error {
		h := read(d)
		c.identity(d)
		c.bytes(d, h)
		c.history(d, h)
		c.attempts(d, h)
		c.leases(d, h)
		c.approved(d)
		c.timing(d, h)
		c.wanted(d)
		c.effects(d, h)
		return nil
	})
}

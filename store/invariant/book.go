package invariant

import (
	"holdfast/store"
	"holdfast/store/ledger"
)

// Book is a provider's own record of what it did. Every effect counts, whatever
// it answered.
type Book struct {
	Rail    string
	Dedupes bool
	Effects []Effect
}

// Effect is one thing that a provider did.
type Effect struct {
	Key      string // the idempotency key that came with it
	Stamp    string // the order id, where the request carried one
	ID       string // the provider's
	Amount   int64
	Currency string
	At       int64
}

// shelf finds effects by key or stamp, and keeps count of those that nobody asked
// for.
type shelf struct {
	books   map[string]Book // by rail
	effects []Effect
	rails   []string
	byKey   map[string][]int
	byStamp map[string][]int
	owned   map[int]bool
}

func newShelf(books []Book) *shelf {
	s := &shelf{books: map[string]Book{}, byKey: map[string][]int{}, byStamp: map[string][]int{}, owned: map[int]bool{}}
	for _, b := range books {
		s.books[b.Rail] = b
		for _, e := range b.Effects {
			n := len(s.effects)
			s.effects, s.rails = append(s.effects, e), append(s.rails, b.Rail)
			if e.Key != "" {
				s.byKey[e.Key] = append(s.byKey[e.Key], n)
			}
			if e.Stamp != "" {
				s.byStamp[e.Stamp] = append(s.byStamp[e.Stamp], n)
			}
		}
	}
	return s
}

// of lists the effects of one operation: under its key, or with its stamp.
func (s *shelf) of(o ledger.Operation) []Effect {
	var found []Effect
	taken := map[int]bool{}
	for _, n := range append(s.byKey[o.ProviderKey], s.byStamp[o.OrderID]...) {
		if !taken[n] && s.rails[n] == o.Rail {
			taken[n], s.owned[n] = true, true
			found = append(found, s.effects[n])
		}
	}
	return found
}

// effects holds the provider's book against one operation: one effect at most,
// but for sends that a person released (I-1, I-2); what is confirmed is there
// (I-3); what was rejected is not (I-4); nothing happened before its mark (I-6),
// nor more often than there were marks (I-7).
func (c *checker) effects(d store.Dossier, h history) {
	o := d.Operation
	if _, ok := c.shelf.books[o.Rail]; !ok {
		return
	}
	effects := c.shelf.of(o)
	harmless := c.db.Rulebook(o.TenantID).Harmless(o)
	if len(effects) > 1+h.releases && !harmless {
		name := "I-1"
		if c.shelf.books[o.Rail].Dedupes {
			name = "I-2"
		}
		c.fault(name, o, "happened %d times at the provider", len(effects))
	}
	if len(effects) > len(h.marks) {
		c.fault("I-7", o, "happened %d times with %d attempts", len(effects), len(h.marks))
	}
	if o.Status == ledger.Confirmed {
		c.receiptIn(o, effects)
	}
	if o.Status == ledger.Rejected && len(effects) > 0 {
		c.fault("I-4", o, "is rejected (%s), and it happened: %s", o.Reason, effects[0].ID)
	}
	for _, e := range effects {
		if len(d.Attempts) > 0 && e.At > 0 && e.At < d.Attempts[0].MarkedAt {
			c.fault("I-6", o, "happened as %s before it was marked", e.ID)
		}
	}
}

func (c *checker) receiptIn(o ledger.Operation, effects []Effect) {
	if o.Receipt == nil {
		return // said elsewhere
	}
	for _, e := range effects {
		if e.ID != o.Receipt.ID {
			continue
		}
		if o.Receipt.Amount != nil && (*o.Receipt.Amount != e.Amount || o.Receipt.Currency != "" && o.Receipt.Currency != e.Currency) {
			c.fault("I-3", o, "its receipt differs from the provider's %s: %d %s", e.ID, e.Amount, e.Currency)
		}
		return
	}
	c.fault("I-3", o, "is confirmed by %s, which the provider does not have under its key", o.Receipt.ID)
}

// strangers are effects that no operation of the ledger accounts for.
func (c *checker) strangers() {
	for n, e := range c.shelf.effects {
		if !c.shelf.owned[n] {
			c.whole("I-6", "the provider did %s, which no operation of this ledger asked for", e.ID)
		}
	}
}

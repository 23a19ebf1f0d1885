package invariant

import (
	"context"

	"holdfast/store"
	"holdfast/store/ledger"
)

// opened is an entry that the log says was opened, by its id or, in older entries
// of the log, by its receipt.
type opened struct{ tenant, id string }

// refunds: what is owed is settled, waived or open to the last unit, its journal
// says the same and balances, one settlement is under way at most, a proof counts
// once, and the log opened each entry (I-21).
func (c *checker) refunds(ctx context.Context) error {
	unbalanced, err := c.db.UnbalancedRefunds(ctx)
	if err != nil {
		return err
	}
	for _, id := range unbalanced {
		c.whole("I-21", "transaction %d of the refunds owed does not add up to nothing", id)
	}
	proofs := map[[3]string]string{}
	err = c.db.EachRefund(ctx, func(f store.RefundFile) error {
		c.journal(f)
		c.settlements(f, proofs)
		e := f.Entry
		byID, byReceipt := opened{e.TenantID, e.ID}, opened{e.TenantID, e.ReceiptID}
		_, first := c.opened[byID]
		_, second := c.opened[byReceipt]
		if !first && !second && e.OpenedAt < c.until { // a later one was opened while we looked
			c.owed(e, "is nowhere in the log")
		}
		delete(c.opened, byID)
		delete(c.opened, byReceipt)
		return nil
	})
	if err != nil {
		return err
	}
	for o, entry := range c.opened {
		c.found = append(c.found, Violation{"I-21", o.tenant, entry.OperationID, "the log opens a refund owed, " + o.id + ", which is not in the ledger"})
	}
	return nil
}

func (c *checker) owed(e ledger.RefundOwed, format string, args ...any) {
	c.fault("I-21", ledger.Operation{TenantID: e.TenantID, OperationID: e.OperationID}, "refund owed "+e.ID+" "+format, args...)
}

func (c *checker) journal(f store.RefundFile) {
	e := f.Entry
	sums := map[ledger.RefundAccount]int64{}
	for _, t := range f.Journal {
		for _, p := range t.Postings {
			sums[p.Account] += p.Amount
			if p.Account != ledger.AccountOrigin && sums[p.Account] < 0 {
				c.owed(e, "has less than nothing %s after transaction %d", p.Account, t.ID)
			}
		}
	}
	open := sums[ledger.AccountOpen] + sums[ledger.AccountSettling]
	if -sums[ledger.AccountOrigin] != e.Amount || open+sums[ledger.AccountSettled]+sums[ledger.AccountWaived] != e.Amount {
		c.owed(e, "is over %d, and %d are settled, %d waived and %d open", e.Amount, sums[ledger.AccountSettled], sums[ledger.AccountWaived], open)
	}
	if e.Open != open {
		c.owed(e, "keeps %d as open, and its journal adds up to %d", e.Open, open)
	}
	if closed := e.Status == ledger.RefundIsSettled || e.Status == ledger.RefundIsWaived; closed != (e.Open == 0) {
		c.owed(e, "is %s with %d open", e.Status, e.Open)
	}
}

func (c *checker) settlements(f store.RefundFile, proofs map[[3]string]string) {
	e := f.Entry
	var landed, underWay int64
	open := 0
	for _, s := range f.Settlements {
		switch s.State {
		case ledger.SettlementLanded:
			landed += s.Amount
		case ledger.SettlementOpen:
			open++
			underWay += s.Amount
		}
		if s.Proof == "" {
			continue
		}
		proof := [3]string{e.TenantID, s.Rail, s.Proof}
		if other := proofs[proof]; other != "" {
			c.owed(e, "was settled with %s, which settled %s", s.Proof, other)
		}
		proofs[proof] = e.ID
	}
	if open > 1 {
		c.owed(e, "has %d settlements under way", open)
	}
	if (open > 0) != (e.Status == ledger.RefundIsSettling) || underWay != e.Settling {
		c.owed(e, "is %s with %d under way, and its settlements say %d", e.Status, e.Settling, underWay)
	}
	if landed != e.Settled {
		c.owed(e, "has %d settled in its journal and %d in its settlements", e.Settled, landed)
	}
}

// wanted: an operation's own receipt is owed back only where too much was taken,
// it was paid on another rail as well, nothing was delivered, or somebody reported
// it (I-21).
func (c *checker) wanted(d store.Dossier) {
	o := d.Operation
	for _, r := range d.Refunds {
		if o.Receipt != nil && r.ReceiptID == o.Receipt.ID && r.Source == ledger.FromEvidence && r.Cause != ledger.CauseOvercharge && r.Cause != ledger.CauseCrossRailDuplicate {
			c.fault("I-21", o, "refund owed %s gives back the one effect that was wanted", r.ID)
		}
	}
	late := o.Status == ledger.Rejected && o.Terms.HasAmount && o.Terms.Amount > 0
	for _, a := range d.Attempts {
		if late && a.Outcome == ledger.AttemptReceipt && len(d.Refunds) == 0 && !d.PaidAfterAll {
			c.fault("I-21", o, "is rejected, attempt %d brought a receipt, and nothing is owed", a.Number)
		}
	}
}

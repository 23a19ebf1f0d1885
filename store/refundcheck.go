package store

import (
	"context"
	"database/sql"

	"holdfast/store/ledger"
)

// RefundFile is one entry with all that the ledger holds about it.
type RefundFile struct {
	Entry       ledger.RefundOwed
	Settlements []ledger.RefundSettlement
	Waivers     []ledger.RefundWaiver
	Journal     []ledger.JournalTransaction
}

// EachRefund calls f with every entry of every tenant, oldest first, until f
// returns an error. A file from before the journal has nothing to look at.
func (s *Store) EachRefund(ctx context.Context, f func(RefundFile) error) error {
	if kept, err := s.keepsJournal(ctx); err != nil || !kept {
		return err
	}
	for last := int64(0); ; {
		rows, err := s.readers.QueryContext(ctx, `select `+refundColumns+` from refunds_owed where number > $1 order by number limit $2`, last, inspectPage)
		if err != nil {
			return err
		}
		page, err := collect(rows, scanRefundRow)
		if err != nil {
			return err
		}
		for _, e := range page {
			file, err := s.refundFile(ctx, e)
			if err == nil {
				err = f(file)
			}
			if err != nil {
				return err
			}
			last = e.Number
		}
		if len(page) < inspectPage {
			return nil
		}
	}
}

// refundFile reads an entry again with what belongs to it, at one moment as good as
// none: a ledger that is written to while it is checked is read once more where
// the version moved on.
func (s *Store) refundFile(ctx context.Context, e ledger.RefundOwed) (f RefundFile, err error) {
	for range 3 {
		f = RefundFile{Entry: e}
		if f.Settlements, err = s.RefundSettlements(ctx, e.TenantID, e.ID); err != nil {
			return f, err
		}
		if f.Waivers, err = s.RefundWaivers(ctx, e.TenantID, e.ID); err != nil {
			return f, err
		}
		if f.Journal, err = s.RefundJournal(ctx, e.TenantID, e.ID); err != nil {
			return f, err
		}
		now, err := s.RefundOwed(ctx, e.TenantID, e.ID)
		if err != nil || now.Version == e.Version {
			return f, err
		}
		e = now
	}
	return f, nil
}

// UnbalancedRefunds lists, as far as the first hundred, transactions of the journal
// whose postings do not add up to nothing in one currency, or that have none, and
// those of which nothing but postings is there.
func (s *Store) UnbalancedRefunds(ctx context.Context) ([]int64, error) {
	if kept, err := s.keepsJournal(ctx); err != nil || !kept {
		return nil, err
	}
	rows, err := s.readers.QueryContext(ctx, `
		select transaction_id from refund_postings group by transaction_id, currency having sum(amount) <> 0
		union select transaction_id from refund_postings where transaction_id not in (select id from refund_journal)
		union select id from refund_journal where id not in (select transaction_id from refund_postings)
		limit 100`)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (id int64, err error) { return id, r.Scan(&id) })
}

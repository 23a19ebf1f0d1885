package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"holdfast/store/ledger"
)

// What leaves the ledger as a file is read page by page, and nothing is held open
// meanwhile. Rows that come while it runs are not part of it.

const exportPage = 500

// WalkOperations calls each with the operations of a tenant that a filter lets
// through, oldest first, and with the time at which they were confirmed; 0: they
// are not.
func (s *Store) WalkOperations(ctx context.Context, tenant string, f Filter, each func(o ledger.Operation, confirmedAt int64) error) error {
	f.OldestFirst, f.Limit = true, exportPage
	until := s.now()
	for last, done := int64(0), false; !done; {
		page, ids, err := s.listOperations(ctx, tenant, f, last)
		if err != nil {
			return err
		}
		at, err := s.confirmations(ctx, tenant, page)
		if err != nil {
			return err
		}
		for _, o := range page {
			if o.CreatedAt > until {
				return nil
			}
			if err := each(o, at[o.OperationID]); err != nil {
				return err
			}
		}
		if done = len(page) < exportPage; !done {
			last = ids[len(ids)-1]
		}
	}
	return nil
}

// confirmations tells when those of a page were confirmed. Nothing leads out of
// confirmed, so that there is one moment at most.
func (s *Store) confirmations(ctx context.Context, tenant string, page []ledger.Operation) (map[string]int64, error) {
	args := []any{tenant}
	for _, o := range page {
		if o.Status == ledger.Confirmed {
			args = append(args, o.OperationID)
		}
	}
	at := map[string]int64{}
	if len(args) == 1 {
		return at, nil
	}
	rows, err := s.readers.QueryContext(ctx, `
		select operation_id, min(at) from action_log
		where tenant_id = $1 and operation_id <> '' and operation_id in (`+strings.TrimPrefix(placeholders(2, len(args)-1), ",")+`)
		  and to_status = 'confirmed' and from_status <> 'confirmed'
		group by operation_id`, args...)
	if err != nil {
		return nil, err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var id string
		var moment int64
		err := r.Scan(&id, &moment)
		at[id] = moment
		return struct{}{}, err
	})
	return at, err
}

// WalkRefunds calls each with what is owed or was, soonest due first.
func (s *Store) WalkRefunds(ctx context.Context, tenant string, f RefundFilter, each func(ledger.RefundOwed) error) error {
	f.Limit = 200
	until := s.now()
	for {
		page, next, err := s.RefundPage(ctx, tenant, f)
		if err != nil {
			return err
		}
		for _, e := range page {
			if e.OpenedAt > until {
				continue
			}
			if err := each(e); err != nil {
				return err
			}
		}
		if f.Cursor = next; next == "" {
			return nil
		}
	}
}

// RefundMove is a transaction of the journal, with as much of its entry and of the
// settlement that it is about as tells what it was for.
type RefundMove struct {
	Entry       ledger.RefundOwed
	Transaction ledger.JournalTransaction
	Settlement  ledger.RefundSettlement
}

const selectRefundMoves = `
	select j.id, j.entry, j.event, j.settlement, j.by, j.reason, j.at, p.account, p.amount, p.direction, p.customer, p.rail, p.currency,
		coalesce(e.operation_id, ''), e.receipt_id, e.cause, coalesce(s.operation_id, ''), coalesce(s.proof, '')
	from refund_journal j join refund_postings p on p.transaction_id = j.id join refunds_owed e on e.id = j.entry
		left join refund_settlements s on s.id = j.settlement
	where j.id in (select id from refund_journal where tenant_id = $1 and id > $2 order by id limit $3)
	order by j.id, p.line`

// WalkRefundMoves calls each with the journal of what is owed, oldest first.
func (s *Store) WalkRefundMoves(ctx context.Context, tenant string, each func(RefundMove) error) error {
	until := s.now()
	for last, done := int64(0), false; !done; {
		rows, err := s.readers.QueryContext(ctx, selectRefundMoves, tenant, last, exportPage)
		if err != nil {
			return err
		}
		page, err := readRefundMoves(rows)
		if err != nil {
			return err
		}
		for _, m := range page {
			if m.Transaction.At > until {
				return nil
			}
			if err := each(m); err != nil {
				return err
			}
			last = m.Transaction.ID
		}
		done = len(page) < exportPage
	}
	return nil
}

func readRefundMoves(rows *sql.Rows) (page []RefundMove, err error) {
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var m RefundMove
		var p ledger.Posting
		e, j := &m.Entry, &m.Transaction
		err := r.Scan(&j.ID, &j.Entry, &j.Event, &j.Settlement, &j.By, &j.Reason, &j.At, &p.Account, &p.Amount, &e.Direction, &e.Customer, &e.Rail, &e.Currency,
			&e.OperationID, &e.ReceiptID, &e.Cause, &m.Settlement.OperationID, &m.Settlement.Proof)
		e.ID = j.Entry
		if n := len(page); n == 0 || page[n-1].Transaction.ID != j.ID {
			page = append(page, m)
		}
		of := &page[len(page)-1].Transaction
		of.Postings = append(of.Postings, p)
		return struct{}{}, err
	})
	return page, err
}

// Export is what left the ledger as a file, for the log.
type Export struct {
	Name    string            `json:"name"`
	Format  string            `json:"format"`
	Filter  map[string]string `json:"filter,omitempty"`
	Rows    int               `json:"rows"`
	Hidden  int               `json:"hidden,omitempty"`   // rows left out, because of what the person may not see
	CutWith string            `json:"cut_with,omitempty"` // what ended it before its end
}

// BeginExport notes that somebody takes a file out, before the first byte of it:
// what cannot be noted does not leave.
func (s *Store) BeginExport(ctx context.Context, tenant string, by ledger.Holder, x Export) error {
	return s.noteExport(ctx, tenant, by, x, "export_begun", fmt.Sprintf("%s takes out %s as %s.", by.Name, x.Name, x.Format))
}

// EndExport notes how much of it went.
func (s *Store) EndExport(ctx context.Context, tenant string, by ledger.Holder, x Export) error {
	sentence := fmt.Sprintf("%s took out %s as %s: %d rows.", by.Name, x.Name, x.Format, x.Rows)
	if x.CutWith != "" {
		sentence = fmt.Sprintf("%s took out a part of %s as %s: %d rows, then it ended early.", by.Name, x.Name, x.Format, x.Rows)
	}
	return s.noteExport(ctx, tenant, by, x, "exported", sentence)
}

func (s *Store) noteExport(ctx context.Context, tenant string, by ledger.Holder, x Export, event, sentence string) error {
	return s.change(ctx, func(t *tx) error {
		return t.log(ledger.Entry{TenantID: tenant, Object: "export", ObjectID: x.Name + "." + x.Format, Event: event, ActorKind: by.Kind, Actor: by.Name,
			Sentence: sentence, Fact: factText(x)})
	})
}

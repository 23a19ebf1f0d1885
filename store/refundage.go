package store

import (
	"context"
	"database/sql"
	"fmt"

	"holdfast/store/ledger"
)

// RefundsAged is what a round over the open entries of all tenants found.
type RefundsAged struct {
	Open    int // entries
	Overdue int // of them
	Ended   int // settlements whose operation had ended unnoticed
	Paired  int // entries and questions about one purchase on two rails, of the time before that was looked for
}

// AgeRefunds counts what is open and what is past its day. The log is told of an
// entry once, when it becomes overdue. A settlement whose operation has ended is
// brought home: nothing should leave one behind, and this looks all the same.
func (s *Store) AgeRefunds(ctx context.Context, by ledger.Holder) (a RefundsAged, err error) {
	if a.Ended, err = s.endSettlements(ctx); err != nil {
		return a, err
	}
	if a.Paired, err = s.FindCrossRail(ctx); err != nil {
		return a, err
	}
	for {
		told, err := s.tellOverdue(ctx, by)
		if err != nil {
			return a, err
		}
		if told < refundBatch {
			break
		}
	}
	return a, s.readers.QueryRowContext(ctx, `
		select count(*), coalesce(sum(case when due_at > 0 and due_at < $1 then 1 else 0 end), 0) from refunds_owed where open > 0`, s.now()).Scan(&a.Open, &a.Overdue)
}

// refundBatch bounds what one commit does for this.
const refundBatch = 200

func (s *Store) tellOverdue(ctx context.Context, by ledger.Holder) (told int, err error) {
	err = s.change(ctx, func(t *tx) error {
		rows, err := t.rows(`
			select `+refundColumns+` from refunds_owed
			where open > 0 and due_at > 0 and due_at < $1 and overdue_at = 0 order by due_at, number limit $2`, t.now, refundBatch)
		if err != nil {
			return err
		}
		late, err := collect(rows, scanRefundRow)
		if err != nil {
			return err
		}
		told = len(late)
		for _, e := range late {
			was := e
			e.OverdueAt = t.now
			if err := t.saveRefund(was, e); err != nil {
				return err
			}
			sentence := fmt.Sprintf("%s is overdue.", t.s.Rulebook(e.TenantID).Currencies.Format(e.Open, e.Currency))
			if err := t.logRefund(e, "overdue", by, sentence, map[string]any{"open": e.Open, "due_at": e.DueAt}); err != nil {
				return err
			}
		}
		return nil
	})
	return told, err
}

func (s *Store) endSettlements(ctx context.Context) (ended int, err error) {
	err = s.change(ctx, func(t *tx) error {
		rows, err := t.rows(`
			select `+operationColumns+` from operations
			where status in ('confirmed', 'rejected') and (tenant_id, operation_id) in (
				select tenant_id, operation_id from refund_settlements where state = 'open' and kind = 'operation')
			limit $1`, refundBatch)
		if err != nil {
			return err
		}
		over, err := collect(rows, func(r *sql.Rows) (ledger.Operation, error) { return scanOperation(r) })
		if err != nil {
			return err
		}
		ended = len(over)
		for _, o := range over {
			if err := t.settledBy(o); err != nil {
				return err
			}
		}
		return nil
	})
	return ended, err
}

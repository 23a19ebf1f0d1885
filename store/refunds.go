package store

import (
	"context"
	"database/sql"
	"time"

	"holdfast/store/ledger"
)

// refundDue is how long we give ourselves to return money that went out twice.
const refundDue = 5 * 24 * time.Hour // a working week: the customer reads the next statement before it is over

// openRefund makes a refund-owed entry for an effect, once: the same effect
// found again changes nothing.
func (t *tx) openRefund(o ledger.Operation, r ledger.Receipt, cause string) (opened bool, err error) {
	if !o.Terms.HasAmount && r.Amount == nil {
		return false, nil // a letter sent twice is not money owed
	}
	amount := o.Terms.Amount
	if r.Amount != nil {
		amount = *r.Amount
	}
	if r.ID == "" {
		r.ID = o.OrderID // an effect without a name still counts, once an operation
	}
	direction := "we_owe"
	if o.Effect == "payout" || o.Effect == "refund" {
		direction = "owed_to_us" // what went out twice went to a recipient
	}
	n, err := t.affected(`
		insert into refunds_owed (id, tenant_id, operation_id, receipt_id, direction, cause, rail, currency, amount, open, status, customer, due_at, opened_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, 'owed', $10, $11, $12)
		on conflict (tenant_id, rail, receipt_id) do nothing`,
		randomID("owed_"), o.TenantID, o.OperationID, r.ID, direction, cause, o.Rail, orCurrency(r.Currency, o.Terms.Currency), amount,
		o.Terms.Customer, t.now+refundDue.Milliseconds(), t.now)
	return n == 1, err
}

func orCurrency(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// RefundsOwed lists what is owed, soonest due first.
func (s *Store) RefundsOwed(ctx context.Context, tenant string) ([]ledger.RefundOwed, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+refundColumns+` from refunds_owed where tenant_id = $1 order by due_at, id limit 1000`, tenant)
	if err != nil {
		return nil, err
	}
	return collect(rows, scanRefund)
}

const refundColumns = `id, tenant_id, operation_id, receipt_id, direction, cause, rail, currency, amount, open, status, customer, due_at, opened_at`

func scanRefund(r *sql.Rows) (e ledger.RefundOwed, err error) {
	return e, r.Scan(&e.ID, &e.TenantID, &e.OperationID, &e.ReceiptID, &e.Direction, &e.Cause, &e.Rail, &e.Currency, &e.Amount, &e.Open,
		&e.Status, &e.Customer, &e.DueAt, &e.OpenedAt)
}

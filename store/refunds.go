package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"holdfast/store/ledger"
)

// refundDue is how long we give ourselves to return money that went out twice.
const refundDue = 5 * 24 * time.Hour // a working week: the customer reads the next statement before it is over

// openRefund makes a refund-owed entry for an effect, once: the same effect
// found again changes nothing.
func (t *tx) openRefund(o ledger.Operation, r ledger.Receipt, cause ledger.RefundCause, by ledger.Holder) (opened bool, err error) {
	return t.owe(o, r, cause, by, fmt.Sprintf("The provider also holds %s: a refund is owed (%s).", r.ID, cause))
}

func (t *tx) owe(o ledger.Operation, r ledger.Receipt, cause ledger.RefundCause, by ledger.Holder, sentence string) (opened bool, err error) {
	if !o.Terms.HasAmount && r.Amount == nil {
		return false, nil // a letter sent twice is not money owed
	}
	amount := o.Terms.Amount
	if r.Amount != nil {
		amount = *r.Amount
	}
	if amount <= 0 {
		return false, nil // neither is a payment of nothing
	}
	e := ledger.RefundOwed{TenantID: o.TenantID, OperationID: o.OperationID, Direction: ledger.DirectionOf(o.Effect), Cause: cause,
		ReceiptID: cmp.Or(r.ID, o.OrderID), // an effect without a name still counts, once an operation
		Rail:      o.Rail, Currency: cmp.Or(r.Currency, o.Terms.Currency), Amount: amount, Customer: o.Terms.Customer,
		Source: ledger.FromEvidence, OpenedBy: by.Name}
	if _, err := t.refundOf(e.TenantID, e.Rail, e.ReceiptID); err == nil || !errors.Is(err, ErrNotFound) {
		return false, err
	}
	_, err = t.addRefund(e, by, sentence, r)
	return err == nil, err
}

// addRefund opens an entry: its row, its first transaction in the journal and its
// log entry.
func (t *tx) addRefund(e ledger.RefundOwed, by ledger.Holder, sentence string, fact any) (ledger.RefundOwed, error) {
	e.Number, e.ID, e.OpenedAt = t.s.rowIDs.next(t.now), randomID("owed_"), t.now
	if e.DueAt == 0 {
		e.DueAt = t.now + refundDue.Milliseconds()
	}
	return t.refundHappens(e, refundChange{event: ledger.RefundOpen, amount: e.Amount, by: by, reason: e.Reason, sentence: sentence, fact: fact})
}

// refundChange is one thing that happens to an entry.
type refundChange struct {
	event      ledger.RefundEvent
	amount     int64
	by         ledger.Holder
	settlement string // which one it is about
	reason     string
	sentence   string
	fact       any
}

// refundHappens is the one door of the entries: the row, the postings and the log
// entry change together or not at all.
func (t *tx) refundHappens(was ledger.RefundOwed, c refundChange) (ledger.RefundOwed, error) {
	e, postings, err := was.On(c.event, c.amount)
	if err != nil {
		return was, err
	}
	if was.Status == "" {
		err = t.insertRefund(e)
	} else {
		err = t.saveRefund(was, e)
	}
	if err != nil {
		return was, err
	}
	if err := t.post(e, c, postings); err != nil {
		return was, err
	}
	if e.Open == 0 || e.Open > was.Open { // nobody asked to waive what came back since
		if err := t.voidWaiver(e); err != nil {
			return was, err
		}
	}
	if e.Open == 0 {
		if err := t.answerWith(e, c.by); err != nil {
			return was, err
		}
	}
	return e, t.logRefund(e, string(c.event), c.by, c.sentence, c.fact)
}

func (t *tx) insertRefund(e ledger.RefundOwed) error {
	return t.exec(`
		insert into refunds_owed (number, id, tenant_id, operation_id, receipt_id, direction, cause, rail, instrument, currency, amount, open, status,
			customer, source, opened_by, reason, reopened, version, overdue_at, due_at, opened_at)
		values ($1, $2, $3, nullif($4, ''), $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 0, $18, 0, $19, $20)`,
		e.Number, e.ID, e.TenantID, e.OperationID, e.ReceiptID, e.Direction, e.Cause, e.Rail, e.Instrument, e.Currency, e.Amount, e.Open, e.Status,
		e.Customer, e.Source, e.OpenedBy, e.Reason, e.Version, e.DueAt, e.OpenedAt)
}

// saveRefund writes back what may change. The version that was read stands in the
// where clause.
func (t *tx) saveRefund(was, e ledger.RefundOwed) error {
	n, err := t.affected(`
		update refunds_owed set open = $1, status = $2, reopened = $3, version = $4, overdue_at = $5
		where tenant_id = $6 and id = $7 and version = $8`,
		e.Open, e.Status, e.Reopened, e.Version, e.OverdueAt, e.TenantID, e.ID, was.Version)
	if err == nil && n != 1 {
		return ErrStale
	}
	return err
}

// post writes a transaction into the journal: the postings, then the line that
// closes them.
func (t *tx) post(e ledger.RefundOwed, c refundChange, postings []ledger.Posting) error {
	id := t.s.rowIDs.next(t.now)
	for i, p := range postings {
		if err := t.exec(`
			insert into refund_postings (transaction_id, line, tenant_id, entry, direction, account, customer, rail, currency, amount)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			id, i+1, e.TenantID, e.ID, e.Direction, p.Account, e.Customer, e.Rail, e.Currency, p.Amount); err != nil {
			return err
		}
	}
	return t.exec(`
		insert into refund_journal (id, tenant_id, entry, event, settlement, by, reason, at) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		id, e.TenantID, e.ID, c.event, c.settlement, c.by.Name, c.reason, t.now)
}

// logRefund writes what happened to an entry into the action log, beside the
// operation that it is about. The operation's own status is not touched by it.
func (t *tx) logRefund(e ledger.RefundOwed, event string, by ledger.Holder, sentence string, fact any) error {
	entry := ledger.Entry{TenantID: e.TenantID, OperationID: e.OperationID, Object: "refund_owed", ObjectID: e.ID,
		Event: event, ActorKind: by.Kind, Actor: by.Name, Sentence: sentence, Fact: factText(fact)}
	if e.OperationID != "" {
		o, err := t.operation(e.TenantID, e.OperationID)
		if err != nil {
			return err
		}
		entry.From, entry.To, entry.Reason = o.Status, o.Status, o.Reason
	}
	return t.log(entry)
}

const refundColumns = `number, id, tenant_id, coalesce(operation_id, ''), receipt_id, direction, cause, rail, instrument, currency, amount, open,
	(select coalesce(sum(p.amount), 0) from refund_postings p where p.entry = id and p.account = 'settling'),
	(select coalesce(sum(p.amount), 0) from refund_postings p where p.entry = id and p.account = 'settled'),
	(select coalesce(sum(p.amount), 0) from refund_postings p where p.entry = id and p.account = 'waived'),
	status, customer, source, opened_by, reason, reopened, version, overdue_at, due_at, opened_at`

// earlyRefundColumns are the same in a file from before the journal, where
// nothing was settled yet.
const earlyRefundColumns = `0, id, tenant_id, operation_id, receipt_id, direction, cause, rail, '', currency, amount, open, 0, 0, 0,
	status, customer, 'evidence', '', '', 0, 1, 0, due_at, opened_at`

func scanRefund(r scanner) (e ledger.RefundOwed, err error) {
	err = r.Scan(&e.Number, &e.ID, &e.TenantID, &e.OperationID, &e.ReceiptID, &e.Direction, &e.Cause, &e.Rail, &e.Instrument, &e.Currency, &e.Amount, &e.Open,
		&e.Settling, &e.Settled, &e.Waived,
		&e.Status, &e.Customer, &e.Source, &e.OpenedBy, &e.Reason, &e.Reopened, &e.Version, &e.OverdueAt, &e.DueAt, &e.OpenedAt)
	return e, notFound(err)
}

func scanRefundRow(r *sql.Rows) (ledger.RefundOwed, error) { return scanRefund(r) }

const selectRefund = `select ` + refundColumns + ` from refunds_owed where tenant_id = $1 and id = $2`

func (t *tx) refund(tenant, id string) (ledger.RefundOwed, error) {
	return scanRefund(t.row(selectRefund, tenant, id))
}

// refundOf is the entry about an effect.
func (t *tx) refundOf(tenant, rail, receipt string) (ledger.RefundOwed, error) {
	return scanRefund(t.row(`select `+refundColumns+` from refunds_owed where tenant_id = $1 and rail = $2 and receipt_id = $3`, tenant, rail, receipt))
}

// RefundOwed reads one entry.
func (s *Store) RefundOwed(ctx context.Context, tenant, id string) (ledger.RefundOwed, error) {
	return scanRefund(s.readers.QueryRowContext(ctx, selectRefund, tenant, id))
}

// RefundsOwed lists what is owed, soonest due first.
func (s *Store) RefundsOwed(ctx context.Context, tenant string) ([]ledger.RefundOwed, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+refundColumns+` from refunds_owed where tenant_id = $1 order by due_at, number limit 1000`, tenant)
	if err != nil {
		return nil, err
	}
	return collect(rows, scanRefundRow)
}

// RefundsOf lists what is owed for an operation, oldest first.
func (s *Store) RefundsOf(ctx context.Context, tenant, operation string) ([]ledger.RefundOwed, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+refundColumns+` from refunds_owed where tenant_id = $1 and operation_id = $2 order by number limit 1000`, tenant, operation)
	if err != nil {
		return nil, err
	}
	return collect(rows, scanRefundRow)
}

package store

import (
	"context"
	"database/sql"
	"errors"

	"holdfast/store/ledger"
)

// RefundExceeds refuses a refund of more than is left of its charge. It uses up
// no id.
type RefundExceeds struct {
	Left     int64
	Sentence string
}

func (r RefundExceeds) Error() string { return r.Sentence }

// keepToCharge refuses a refund of more than is left of its charge. It is asked
// in the change that registers the refund, which is the only one of its moment:
// of two that would both fit alone, the second finds the first. A charge that
// nobody knows here has no limit here.
func (t *tx) keepToCharge(o ledger.Operation) error {
	if o.Terms.RefundOf == "" {
		return nil
	}
	return t.keepTo(o, o.Terms.RefundOf, o.Rail)
}

// keepTo compares a refund with the charge of a receipt, which it may give back
// over another rail without naming it.
func (t *tx) keepTo(o ledger.Operation, receipt, rail string) error {
	c, err := findCharge(t.rows, o.TenantID, receipt, rail, o.OperationID, registered)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if why := c.Beyond(o.Terms, t.s.Rulebook(o.TenantID).Currencies); why != "" {
		return RefundExceeds{c.Left(), why}
	}
	return nil
}

// chargeSpent says why a refund that waited does not fit any more: money went
// back elsewhere meanwhile. Refunds of which nothing was sent do not count here,
// or two would each stand in the other's way.
func (t *tx) chargeSpent(o ledger.Operation) (string, error) {
	if o.Terms.RefundOf == "" {
		return "", nil
	}
	c, err := findCharge(t.rows, o.TenantID, o.Terms.RefundOf, o.Rail, o.OperationID, sent)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return c.Beyond(o.Terms, t.s.Rulebook(o.TenantID).Currencies), err
}

// ChargeOf is the charge that a refund gives back, and its other refunds;
// [ErrNotFound] where none is known here.
func (s *Store) ChargeOf(ctx context.Context, o ledger.Operation) (ledger.Charge, error) {
	return findCharge(func(query string, args ...any) (*sql.Rows, error) { return s.readers.QueryContext(ctx, query, args...) },
		o.TenantID, o.Terms.RefundOf, o.Rail, o.OperationID, registered)
}

// querying reads inside a change, or beside it.
type querying func(query string, args ...any) (*sql.Rows, error)

// How far a refund must have got to count.
const (
	registered = 0 // whatever was not rejected
	sent       = 1
)

// findCharge finds the charge of a receipt: the confirmed operation whose receipt
// it is, or the effect that a refund is owed for. Ids are a rail's own, so where
// several rails have it, the refund's own goes first.
func findCharge(q querying, tenant, receipt, rail, but string, far int) (ledger.Charge, error) {
	var none ledger.Charge
	if receipt == "" {
		return none, ErrNotFound
	}
	rows, err := q(`
		select operation_id, rail, currency, amount, receipt, 0 as known_by, id from operations
		where tenant_id = $1 and receipt_id = $2 and receipt_id <> '' and refund_of = '' and amount is not null and status = 'confirmed'
		union all
		select '', rail, currency, amount, null, 1, 0 from refunds_owed
		where tenant_id = $1 and receipt_id = $2 and direction = 'we_owe' and source = 'evidence' and cause <> 'overcharge'
		order by known_by, id`, tenant, receipt)
	if err != nil {
		return none, err
	}
	known, err := collect(rows, func(r *sql.Rows) (c ledger.Charge, err error) {
		var raw []byte
		var by, id int64
		if err := r.Scan(&c.OperationID, &c.Rail, &c.Currency, &c.Amount, &raw, &by, &id); err != nil {
			return c, err
		}
		c.ReceiptID, c.Amount = receipt, received(raw, c.Amount)
		return c, nil
	})
	switch {
	case err != nil:
		return none, err
	case len(known) == 0:
		return none, ErrNotFound
	}
	c, several := known[0], false
	for _, k := range known[1:] {
		several = several || k.Rail != c.Rail
		if k.Rail == rail && c.Rail != rail {
			c = k
		}
	}
	only := ""
	if several {
		only = c.Rail
	}
	if c.Returns, err = returnsOf(q, tenant, c, only, but, far); err != nil {
		return none, err
	}
	return c, nil
}

// returnsOf lists what of a charge went back or still may: refunds of ours, those
// whose receipt shows more by what it shows; settlements by proof or over another
// way; what a refund did twice; and what a statement shows to have been taken back
// by nobody here. A refund that bounced has come back, a dispute that was won too.
func returnsOf(q querying, tenant string, c ledger.Charge, onlyRail, but string, far int) ([]ledger.Return, error) {
	rows, err := q(`
		select o.operation_id, o.amount, o.receipt,
			coalesce((select l.fact from action_log l
				where l.tenant_id = $1 and l.operation_id = o.operation_id and l.event = $7 and o.status <> 'confirmed' order by l.seq desc limit 1), '')
		from operations o
		where o.tenant_id = $1 and o.refund_of = $2 and o.refund_of <> '' and o.status <> 'rejected' and o.currency = $3 and o.amount is not null
		  and ($4 = '' or o.rail = $4) and o.operation_id <> $5 and ($6 = 0 or o.attempts > 0 or o.quarantined = 1)
		  and not exists (select 1 from refund_settlements s where s.tenant_id = $1 and s.operation_id = o.operation_id and s.state = 'bounced')
		union all
		select coalesce(s.operation_id, ''), s.amount, null, '' from refund_settlements s
		join refunds_owed e on e.id = s.entry
		where e.tenant_id = $1 and e.receipt_id = $2 and e.rail = $8 and e.direction = 'we_owe' and s.currency = $3
		  and s.state in ('open', 'landed') and coalesce(s.operation_id, '') <> $5
		  and not exists (select 1 from operations o where o.tenant_id = $1 and o.refund_of = $2
		      and (o.operation_id = s.operation_id or lower(o.receipt_id) = lower(s.proof) and s.proof <> ''))
		union all
		select '', e.amount - coalesce((select sum(p.amount) from refund_postings p where p.entry = e.id and p.account = 'settled'), 0), null, ''
		from refunds_owed e join operations o on o.tenant_id = e.tenant_id and o.operation_id = e.operation_id
		where e.tenant_id = $1 and e.direction = 'owed_to_us' and e.cause <> 'overcharge' and e.currency = $3
		  and o.refund_of = $2 and o.refund_of <> '' and ($4 = '' or o.rail = $4)
		union all
		select '', -l.gross, null, '' from statement_lines l join statements s on `+visible+`
		where l.id in (
			select id from statement_lines where tenant_id = $1 and rail = $8 and of_id = $2 and of_id <> ''
			union all select id from statement_lines where tenant_id = $1 and rail = $8 and provider_id = $2 and provider_id <> ''
			union all select id from statement_lines where tenant_id = $1 and rail = $8 and reference_key = $9 and reference_key <> '')
		  and (l.kind = 'refund' and l.amount < 0 or l.kind = 'dispute') and l.currency = $3
		  and not exists (select 1 from operations o where o.tenant_id = $1 and o.refund_of = $2 and o.refund_of <> ''
		      and (o.operation_id = l.operation_id and o.status <> 'rejected' or o.receipt_id = l.provider_id and o.receipt_id <> ''))
		  and not exists (select 1 from refund_settlements r where r.tenant_id = $1 and r.rail = l.rail and lower(r.proof) = lower(l.provider_id) and r.proof <> '')
		  and not exists (select 1 from refunds_owed w where w.tenant_id = $1 and w.rail = l.rail and w.receipt_id = l.provider_id and w.direction = 'owed_to_us')`,
		tenant, c.ReceiptID, c.Currency, onlyRail, but, far, ledger.Mismatch, c.Rail, ledger.ReferenceKey(c.ReceiptID))
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (back ledger.Return, err error) {
		var raw, differs []byte
		if err := r.Scan(&back.OperationID, &back.Amount, &raw, &differs); err != nil {
			return back, err
		}
		if back.Amount = received(raw, back.Amount); len(differs) > 0 {
			back.Amount = max(back.Amount, received(differs, 0))
		}
		return back, nil
	})
}

// received is the amount that a receipt shows; the approved one where it shows
// none.
func received(receipt []byte, approved int64) int64 {
	var r ledger.Receipt
	fromText(string(receipt), &r)
	if r.Amount == nil {
		return approved
	}
	return *r.Amount
}

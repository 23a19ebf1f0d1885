package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"holdfast/store/ledger"
)

// WaiveRefund lets an entry go: the first person asks, and a second one, who is
// somebody else, waives what is open then. asked tells the one from the other.
func (s *Store) WaiveRefund(ctx context.Context, tenant, id string, d RefundDecision) (e ledger.RefundOwed, asked bool, err error) {
	e, err = s.decideRefund(ctx, tenant, id, d, func(t *tx, e ledger.RefundOwed, by ledger.Holder) (ledger.RefundOwed, error) {
		if strings.TrimSpace(d.Reason) == "" {
			return e, fmt.Errorf("%w: a reason is needed", ErrForbidden)
		}
		if e.Status != ledger.RefundIsOwed {
			return e, fmt.Errorf("%w: it is %s", ledger.ErrNotAllowed, e.Status)
		}
		w, err := t.askedWaiver(e.ID)
		if errors.Is(err, ErrNotFound) {
			asked = true
			return t.askToWaive(e, d, by)
		}
		if err != nil {
			return e, err
		}
		if ok, why := ledger.MayWaive(&w, d.Person.Email, d.Person.Roles); !ok {
			return e, fmt.Errorf("%w: %s", ErrForbidden, why)
		}
		return t.waive(e, w, d, by)
	})
	return e, asked, err
}

func (t *tx) askedWaiver(entry string) (ledger.RefundWaiver, error) {
	return scanWaiver(t.row(`select `+waiverColumns+` from refund_waivers where entry = $1 and state = 'asked'`, entry))
}

func (t *tx) askToWaive(e ledger.RefundOwed, d RefundDecision, by ledger.Holder) (ledger.RefundOwed, error) {
	was := e
	e.Version++
	if err := t.saveRefund(was, e); err != nil {
		return was, err
	}
	if err := t.exec(`
		insert into refund_waivers (id, tenant_id, entry, amount, reason, asked_by, asked_at, waived_by, agreement, state, ended_at)
		values ($1, $2, $3, $4, $5, $6, $7, '', '', 'asked', 0)`,
		randomID("waive_"), e.TenantID, e.ID, e.Open, d.Reason, by.Name, t.now); err != nil {
		return was, err
	}
	return e, t.logRefund(e, "ask_to_waive", by, fmt.Sprintf("%s asks to waive it: %s", d.Person.Display(), d.Reason), map[string]any{"amount": e.Open, "reason": d.Reason})
}

func (t *tx) waive(e ledger.RefundOwed, w ledger.RefundWaiver, d RefundDecision, by ledger.Holder) (ledger.RefundOwed, error) {
	if err := t.exec(`update refund_waivers set state = 'waived', waived_by = $1, agreement = $2, amount = $3, ended_at = $4 where id = $5`,
		by.Name, d.Reason, e.Open, t.now, w.ID); err != nil {
		return e, err
	}
	return t.refundHappens(e, refundChange{event: ledger.RefundWaive, amount: e.Open, by: by, reason: d.Reason,
		sentence: fmt.Sprintf("%s waives it, as %s asked: %s", d.Person.Display(), w.AskedBy, d.Reason),
		fact:     map[string]any{"waiver": w.ID, "amount": e.Open, "asked_by": w.AskedBy, "reason": d.Reason}})
}

// voidWaiver ends the wish to waive what has been paid meanwhile, or has become more.
func (t *tx) voidWaiver(e ledger.RefundOwed) error {
	return t.exec(`update refund_waivers set state = 'void', ended_at = $1 where entry = $2 and state = 'asked'`, t.now, e.ID)
}

const waiverColumns = `id, tenant_id, entry, amount, reason, asked_by, asked_at, waived_by, agreement, state, ended_at`

func scanWaiver(r scanner) (w ledger.RefundWaiver, err error) {
	err = r.Scan(&w.ID, &w.TenantID, &w.Entry, &w.Amount, &w.Reason, &w.AskedBy, &w.AskedAt, &w.WaivedBy, &w.Agreement, &w.State, &w.EndedAt)
	return w, notFound(err)
}

// RefundWaivers lists who asked to let an entry go, and who agreed, oldest first.
func (s *Store) RefundWaivers(ctx context.Context, tenant, entry string) ([]ledger.RefundWaiver, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+waiverColumns+` from refund_waivers where tenant_id = $1 and entry = $2 order by asked_at, id`, tenant, entry)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.RefundWaiver, error) { return scanWaiver(r) })
}

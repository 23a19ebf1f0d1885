package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/store/ledger"
)

// beginSettlement binds an operation to an entry that it is to pay, in the change
// that registers the operation. An entry has one settlement under way at most,
// and an operation pays one entry. Where the operation ended at once (policy said
// no, say), so does the settlement.
func (t *tx) beginSettlement(e ledger.RefundOwed, operationID, rail string, amount int64, by ledger.Holder, reason string) (ledger.RefundOwed, error) {
	s := ledger.RefundSettlement{ID: randomID("set_"), TenantID: e.TenantID, Entry: e.ID, Kind: ledger.ByOperation, OperationID: operationID,
		Rail: rail, Amount: amount, Currency: e.Currency, State: ledger.SettlementOpen, Reason: reason, By: by.Name, At: t.now}
	e, err := t.refundHappens(e, refundChange{event: ledger.RefundBegin, amount: amount, by: by, settlement: s.ID, reason: reason,
		sentence: fmt.Sprintf("%s is to pay %s of it.", operationID, t.s.Rulebook(e.TenantID).Currencies.Format(amount, e.Currency)),
		fact:     map[string]any{"settlement": s.ID, "operation": operationID, "amount": amount, "reason": reason}})
	if err != nil {
		return e, err
	}
	if err := t.insertSettlement(s); err != nil {
		return e, err
	}
	o, err := t.operation(e.TenantID, operationID)
	if errors.Is(err, ErrNotFound) {
		return e, nil // it is registered next; a settlement without it does not commit
	}
	if err != nil {
		return e, err
	}
	if err := t.settledBy(o); err != nil {
		return e, err
	}
	return t.refund(e.TenantID, e.ID)
}

// settledBy tells the entry that an operation pays what became of it. It is
// called by the one door through which an operation changes its status. Until the
// operation ends, the entry is being settled, whatever the operation waits for.
func (t *tx) settledBy(o ledger.Operation) error {
	if !o.Status.Final() {
		return nil
	}
	s, err := scanSettlement(t.row(`
		select `+settlementColumns+` from refund_settlements
		where tenant_id = $1 and operation_id = $2 and kind = 'operation' and state = 'open'`, o.TenantID, o.OperationID))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	e, err := t.refund(s.TenantID, s.Entry)
	if err != nil {
		return err
	}
	event, state := ledger.RefundLand, ledger.SettlementLanded
	sentence := fmt.Sprintf("%s paid %s of it.", o.OperationID, t.s.Rulebook(e.TenantID).Currencies.Format(s.Amount, s.Currency))
	if o.Status == ledger.Rejected {
		event, state = ledger.RefundFall, ledger.SettlementFell
		sentence = fmt.Sprintf("%s was rejected, so its part is owed as before.", o.OperationID)
	} else if o.Receipt != nil {
		used, err := t.proofUsed(s.TenantID, s.Rail, o.Receipt.ID)
		if err != nil {
			return err
		}
		if used == "" {
			s.Proof = o.Receipt.ID
		} else if used != s.ID {
			// One payment settles once: it was recorded by hand before its operation
			// was heard of.
			event, state = ledger.RefundFall, ledger.SettlementFell
			sentence = fmt.Sprintf("%s was confirmed by %s, which counts as a settlement already.", o.OperationID, o.Receipt.ID)
		}
	}
	s.State = state
	if err := t.endSettlement(s); err != nil {
		return err
	}
	e, err = t.refundHappens(e, refundChange{event: event, amount: s.Amount, by: settler,
		settlement: s.ID, sentence: sentence, fact: map[string]any{"settlement": s.ID, "operation": o.OperationID, "amount": s.Amount}})
	if err != nil || event == ledger.RefundLand {
		return err
	}
	return t.settleByLate(e)
}

// RefundDecision is what a person says about an entry, and what they had on the
// screen.
type RefundDecision struct {
	Person  ledger.PersonRecord
	Version int64
	Reason  string
}

// decideRefund runs one person's decision on an entry.
func (s *Store) decideRefund(ctx context.Context, tenant, id string, d RefundDecision, f func(*tx, ledger.RefundOwed, ledger.Holder) (ledger.RefundOwed, error)) (after ledger.RefundOwed, err error) {
	err = s.change(ctx, func(t *tx) error {
		e, err := t.refund(tenant, id)
		if err != nil {
			return err
		}
		if d.Person.TenantID != tenant {
			return ErrNotFound
		}
		if d.Version != e.Version {
			after = e
			return ErrStale
		}
		if ok, why := ledger.MaySettle(d.Person.Email, d.Person.Roles); !ok {
			return fmt.Errorf("%w: %s", ErrForbidden, why)
		}
		after, err = f(t, e, ledger.Holder{Kind: ledger.Person, Name: d.Person.Email})
		return err
	})
	return after, err
}

// RefundProof says that an entry was paid outside.
type RefundProof struct {
	Amount  int64
	ID      string // the provider's refund id, a bank reference, a transaction hash
	Rail    string // where; empty: the entry's own
	PaidOn  string // 2026-01-31; may be empty
	Checked bool   // the rail was asked and agreed
}

// ProveRefund settles an entry, or a part of it, by the proof of a refund that was
// made elsewhere. A proof counts once, for ever.
func (s *Store) ProveRefund(ctx context.Context, tenant, id string, d RefundDecision, p RefundProof) (ledger.RefundOwed, error) {
	return s.decideRefund(ctx, tenant, id, d, func(t *tx, e ledger.RefundOwed, by ledger.Holder) (ledger.RefundOwed, error) {
		p.ID, p.Rail = strings.TrimSpace(p.ID), cmp.Or(p.Rail, e.Rail)
		if err := t.provable(e, d, p); err != nil {
			return e, err
		}
		r := ledger.RefundSettlement{ID: randomID("set_"), TenantID: tenant, Entry: e.ID, Kind: ledger.ByProof, Proof: p.ID, Checked: p.Checked, Rail: p.Rail,
			Amount: p.Amount, Currency: e.Currency, PaidOn: p.PaidOn, State: ledger.SettlementLanded, Reason: d.Reason, By: by.Name, At: t.now, EndedAt: t.now}
		sentence := fmt.Sprintf("%s says that %s was paid outside: %s on %s. %s", d.Person.Display(), t.s.Rulebook(tenant).Currencies.Format(p.Amount, e.Currency), p.ID, p.Rail, d.Reason)
		after, err := t.refundHappens(e, refundChange{event: ledger.RefundProve, amount: p.Amount, by: by, settlement: r.ID, reason: d.Reason,
			sentence: strings.TrimSpace(sentence), fact: map[string]any{"settlement": r.ID, "proof": p.ID, "rail": p.Rail, "amount": p.Amount, "checked": p.Checked, "reason": d.Reason}})
		if err != nil {
			return e, err
		}
		return after, t.insertSettlement(r)
	})
}

// provable refuses a proof that proves nothing.
func (t *tx) provable(e ledger.RefundOwed, d RefundDecision, p RefundProof) error {
	if p.ID == "" {
		return fmt.Errorf("%w: the proof is needed: the provider's id of the refund, a bank reference or a transaction hash", ErrForbidden)
	}
	if _, known := t.s.Rulebook(e.TenantID).Rails[p.Rail]; !known && p.Rail != e.Rail {
		return fmt.Errorf("%w: there is no rail %q", ErrForbidden, p.Rail)
	}
	if p.Rail != e.Rail && strings.TrimSpace(d.Reason) == "" {
		return fmt.Errorf("%w: say why it was paid on another rail than %s", ErrForbidden, e.Rail)
	}
	if p.Amount > e.Free() {
		money := t.s.Rulebook(e.TenantID).Currencies
		return fmt.Errorf("%w: %s is more than the %s that is left to settle", ledger.ErrOverSettled, money.Format(p.Amount, e.Currency), money.Format(e.Free(), e.Currency))
	}
	if ledger.ProofKey(p.ID) == "" {
		return fmt.Errorf("%w: the proof has nothing to read in it", ErrForbidden)
	}
	charge := e.ReceiptID
	if e.OperationID != "" {
		o, err := t.operation(e.TenantID, e.OperationID)
		if err != nil {
			return err
		}
		if o.Receipt != nil && ledger.ProofKey(p.ID) == ledger.ProofKey(o.Receipt.ID) {
			charge = o.Receipt.ID
		}
		if earliest := time.UnixMilli(o.CreatedAt - dayBefore).UTC().Format(time.DateOnly); p.PaidOn != "" && p.PaidOn < earliest {
			return fmt.Errorf("%w: %s is before the payment itself was asked for, on %s", ErrForbidden, p.PaidOn, day(o.CreatedAt))
		}
	}
	if err := t.provesThis(e, p); err != nil {
		return err
	}
	if ledger.ProofKey(p.ID) == ledger.ProofKey(charge) {
		return fmt.Errorf("%w: %s is the payment itself, not what gave it back", ErrForbidden, p.ID)
	}
	used, err := t.proofUsed(e.TenantID, p.Rail, p.ID)
	if err == nil && used != "" {
		return fmt.Errorf("%w: %s was recorded as a settlement already; a proof counts once", ErrForbidden, p.ID)
	}
	return err
}

// dayBefore allows for a day that began earlier elsewhere.
const dayBefore = 24 * 3600 * 1000

// provesThis refuses the receipt of an operation of ours that cannot have settled
// the entry: money that went the way of the effect itself, or that gave another
// payment back.
func (t *tx) provesThis(e ledger.RefundOwed, p RefundProof) error {
	var id, effect, refundOf string
	err := notFound(t.row(`
		select operation_id, effect, refund_of from operations
		where tenant_id = $1 and receipt_id = $2 and receipt_id <> '' and rail = $3 order by id limit 1`,
		e.TenantID, p.ID, p.Rail).Scan(&id, &effect, &refundOf))
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	case refundOf != "" && refundOf != e.ReceiptID:
		return fmt.Errorf("%w: %s is the refund %s, which gave back another payment", ErrForbidden, p.ID, id)
	case refundOf == "" && (effect == "charge" || effect == "payout") && ledger.DirectionOf(effect) == e.Direction: // which way others go nobody says
		return fmt.Errorf("%w: %s is the payment %s, and gave nothing back", ErrForbidden, p.ID, id)
	}
	return nil
}

// BounceRefund records that money which was given back came back: it is owed
// again, and was due when it was.
func (s *Store) BounceRefund(ctx context.Context, tenant, settlement, reason string, by ledger.Holder) (e ledger.RefundOwed, err error) {
	err = s.change(ctx, func(t *tx) error {
		r, err := scanSettlement(t.row(`select `+settlementColumns+` from refund_settlements where tenant_id = $1 and id = $2`, tenant, settlement))
		if err != nil {
			return err
		}
		if e, err = t.refund(tenant, r.Entry); err != nil {
			return err
		}
		e, err = t.bounce(r, e, reason, by)
		return err
	})
	return e, err
}

// SayBounced is a person's word that money which was given back came back.
func (s *Store) SayBounced(ctx context.Context, tenant, id, settlement string, d RefundDecision) (ledger.RefundOwed, error) {
	return s.decideRefund(ctx, tenant, id, d, func(t *tx, e ledger.RefundOwed, by ledger.Holder) (ledger.RefundOwed, error) {
		if strings.TrimSpace(d.Reason) == "" {
			return e, refusal("a reason is needed")
		}
		r, err := scanSettlement(t.row(`select `+settlementColumns+` from refund_settlements where tenant_id = $1 and id = $2 and entry = $3`, tenant, settlement, id))
		if errors.Is(err, ErrNotFound) {
			return e, refusal("there is no such settlement of it")
		}
		if err != nil {
			return e, err
		}
		return t.bounce(r, e, d.Reason, by)
	})
}

func (t *tx) bounce(r ledger.RefundSettlement, e ledger.RefundOwed, reason string, by ledger.Holder) (ledger.RefundOwed, error) {
	if r.State == ledger.SettlementBounced {
		return e, nil // told twice
	}
	if r.State != ledger.SettlementLanded {
		return e, fmt.Errorf("%w: only what landed can bounce", ledger.ErrNotAllowed)
	}
	r.State = ledger.SettlementBounced
	if err := t.endSettlement(r); err != nil {
		return e, err
	}
	return t.refundHappens(e, refundChange{event: ledger.RefundBounce, amount: r.Amount, by: by, settlement: r.ID, reason: reason,
		sentence: strings.TrimSpace(fmt.Sprintf("%s came back: it is owed again. %s", t.s.Rulebook(r.TenantID).Currencies.Format(r.Amount, r.Currency), reason)),
		fact:     map[string]any{"settlement": r.ID, "amount": r.Amount, "reason": reason}})
}

const settlementColumns = `id, tenant_id, entry, kind, coalesce(operation_id, ''), proof, checked, rail, amount, currency, paid_on, state, reason, by, at, ended_at`

func scanSettlement(r scanner) (s ledger.RefundSettlement, err error) {
	var checked int
	err = r.Scan(&s.ID, &s.TenantID, &s.Entry, &s.Kind, &s.OperationID, &s.Proof, &checked, &s.Rail, &s.Amount, &s.Currency, &s.PaidOn, &s.State,
		&s.Reason, &s.By, &s.At, &s.EndedAt)
	s.Checked = checked == 1
	return s, notFound(err)
}

func (t *tx) insertSettlement(s ledger.RefundSettlement) error {
	return t.exec(`
		insert into refund_settlements (id, tenant_id, entry, kind, operation_id, proof, checked, rail, amount, currency, paid_on, state, reason, by, at, ended_at, proof_key)
		values ($1, $2, $3, $4, nullif($5, ''), $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
		s.ID, s.TenantID, s.Entry, s.Kind, s.OperationID, s.Proof, flag(s.Checked), s.Rail, s.Amount, s.Currency, s.PaidOn, s.State, s.Reason, s.By, s.At, s.EndedAt, ledger.ProofKey(s.Proof))
}

func (t *tx) endSettlement(s ledger.RefundSettlement) error {
	return t.exec(`update refund_settlements set state = $1, proof = $2, ended_at = $3, proof_key = $5 where id = $4`, s.State, s.Proof, t.now, s.ID, ledger.ProofKey(s.Proof))
}

// proofUsed is the settlement that a proof counted for already; empty: none. What
// was recorded before proofs had a key is found by its capitals alone.
func (t *tx) proofUsed(tenant, rail, proof string) (settlement string, err error) {
	err = t.row(`
		select id from refund_settlements where tenant_id = $1 and rail = $2 and proof_key = $3 and proof_key <> ''
		union all
		select id from refund_settlements where tenant_id = $1 and rail = $2 and lower(proof) = lower($4) and proof <> ''
		limit 1`, tenant, rail, ledger.ProofKey(proof), proof).Scan(&settlement)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return settlement, err
}

// RefundSettlements lists how an entry was paid, or was to be, oldest first.
func (s *Store) RefundSettlements(ctx context.Context, tenant, entry string) ([]ledger.RefundSettlement, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+settlementColumns+` from refund_settlements where tenant_id = $1 and entry = $2 order by at, id`, tenant, entry)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.RefundSettlement, error) { return scanSettlement(r) })
}

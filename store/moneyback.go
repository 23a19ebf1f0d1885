package store

import (
	"errors"
	"fmt"

	"holdfast/store/ledger"
)

// A statement also shows money that goes back: refunds that were made elsewhere,
// lost disputes, and refunds of ours that came back.

// takenBack says of a line that is no operation of ours whether it takes back
// what is on record: a charge, or a refund. It changes the line's verdict, and
// opens what that makes owed.
func (t *tx) takenBack(l ledger.KeptLine, v ledger.LineVerdict) (ledger.LineVerdict, error) {
	if v.State != ledger.LineUnmatched || v.Operation != nil {
		return v, nil
	}
	switch back := l.Kind == ledger.LineRefund || l.Kind == ledger.LineDispute; {
	case back && l.Amount < 0:
		return t.returned(l, v)
	case l.Amount > 0 && (back || l.Kind == ledger.LineAdjustment):
		return t.cameBack(l, v)
	}
	return v, nil
}

// returned is money of a charge that went back without an operation. It counts
// against the charge because the line is there; here it is said, and a person is
// asked where more went back than came in.
func (t *tx) returned(l ledger.KeptLine, v ledger.LineVerdict) (ledger.LineVerdict, error) {
	for _, id := range []string{l.Of, l.ProviderID, l.Reference} {
		c, err := findCharge(t.rows, l.TenantID, id, l.Rail, "", sent)
		if errors.Is(err, ErrNotFound) || err == nil && (c.Rail != l.Rail || c.OperationID == "") {
			continue
		}
		if err != nil {
			return v, err
		}
		o, err := t.operation(l.TenantID, c.OperationID)
		if err != nil {
			return v, err
		}
		what := "A refund that was made elsewhere"
		if l.Kind == ledger.LineDispute {
			what = "A dispute"
		}
		v.Finding, v.Operation = ledger.NotOurs, &o
		v.Sentence = fmt.Sprintf("%s took back %s of %s (%s). It counts as given back.", what,
			t.s.Rulebook(l.TenantID).Currencies.Format(-l.Gross, l.Currency), o.OperationID, c.ReceiptID)
		return v, nil
	}
	return v, nil
}

// overpaid asks a person about a charge of which more went back than came in.
func (t *tx) overpaid(tenant, receipt, rail, why string) error {
	c, err := findCharge(t.rows, tenant, receipt, rail, "", sent)
	if errors.Is(err, ErrNotFound) || err == nil && (c.Returned() <= c.Amount || c.OperationID == "") {
		return nil
	}
	if err != nil {
		return err
	}
	o, err := t.operation(tenant, c.OperationID)
	if err != nil {
		return err
	}
	money := t.s.Rulebook(tenant).Currencies
	sentence := fmt.Sprintf("Of %s, %s came in and %s went back or may have. %s", c.ReceiptID, money.Format(c.Amount, c.Currency), money.Format(c.Returned(), c.Currency), why)
	e := ledger.Evidence{ID: randomID("ev_"), TenantID: tenant, OperationID: o.OperationID, Attempt: o.Attempts, Source: "statement", Finding: "note",
		Sentence: sentence, Body: []byte(text(c)), By: matcher.Name}
	asked, err := t.askOnce(o, sentence, e.ID)
	if err != nil || !asked {
		return err
	}
	return t.addEvidence(e)
}

// cameBack is a refund that did not reach the customer. Where it settled an
// entry, that is owed again and was due when it was; of another refund, a person
// is told.
func (t *tx) cameBack(l ledger.KeptLine, v ledger.LineVerdict) (ledger.LineVerdict, error) {
	r, err := scanSettlement(t.row(`
		select `+settlementColumns+` from refund_settlements
		where tenant_id = $1 and rail = $2 and state in ('landed', 'bounced') and proof <> '' and lower(proof) in (lower($3), lower($4)) limit 1`,
		l.TenantID, l.Rail, l.ProviderID, l.Of))
	if errors.Is(err, ErrNotFound) {
		r, err = scanSettlement(t.row(`
			select `+settlementColumns+` from refund_settlements
			where tenant_id = $1 and rail = $2 and state in ('landed', 'bounced') and operation_id in (
				select operation_id from operations where order_id = $3 and tenant_id = $1
				union all select operation_id from operations where tenant_id = $1 and effect in ('refund', 'payout') and reference_key = $4 and reference_key <> '')
			order by at limit 1`,
			l.TenantID, l.Rail, l.Stamp, ledger.ReferenceKey(l.Reference)))
	}
	if errors.Is(err, ErrNotFound) {
		return t.agentsRefundCameBack(l, v)
	}
	if err != nil {
		return v, err
	}
	e, err := t.refund(r.TenantID, r.Entry)
	if err != nil {
		return v, err
	}
	about := r.OperationID
	if about == "" {
		about = e.OperationID
	}
	if about != "" {
		o, err := t.operation(l.TenantID, about)
		if err != nil {
			return v, err
		}
		v.Operation = &o
	}
	if l.Currency != r.Currency || l.Gross != r.Amount && l.Amount != r.Amount {
		v.Finding = ledger.AmountDiffers
		v.Sentence = fmt.Sprintf("It takes back a refund of %s, over another amount. A person says on its page what is owed again.", e.ID)
		return v, nil
	}
	v.Finding, v.Sentence = "", fmt.Sprintf("The refund of %s came back: it is owed again.", e.ID)
	_, err = t.bounce(r, e, fmt.Sprintf("Line %d of a statement of %s shows that it came back.", l.Number, l.Account), matcher)
	return v, err
}

// agentsRefundCameBack is for a refund that settled no entry.
func (t *tx) agentsRefundCameBack(l ledger.KeptLine, v ledger.LineVerdict) (ledger.LineVerdict, error) {
	for _, id := range []string{l.ProviderID, l.Of} {
		if id == "" {
			continue
		}
		o, err := scanOperation(t.row(`
			select `+operationColumns+` from operations
			where tenant_id = $1 and receipt_id = $2 and receipt_id <> '' and rail = $3 and status = 'confirmed' and (effect = 'refund' or refund_of <> '')`, l.TenantID, id, l.Rail))
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return v, err
		}
		v.Finding, v.Operation = ledger.LineContradicts, &o
		v.Sentence = fmt.Sprintf("The refund %s came back: the customer does not have the money.", o.OperationID)
		return v, nil
	}
	return v, nil
}

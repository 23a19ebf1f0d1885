package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"holdfast/store/ledger"
)

// RefundReport is what somebody says is owed: for an effect of an operation, or
// for one that is known by the provider's id alone.
type RefundReport struct {
	TenantID    string
	OperationID string
	ReceiptID   string
	Rail        string
	Amount      int64
	Currency    string
	Cause       ledger.RefundCause
	Direction   ledger.RefundDirection
	Customer    string
	Reason      string
	DueAt       int64
	By          ledger.Holder
}

// Misreported refuses a report that cannot be right, and names the member.
type Misreported struct{ Member, Sentence string }

func (m Misreported) Error() string { return m.Sentence }

// ReportDiffers refuses a second report of an effect that says something else
// than the entry.
type ReportDiffers struct {
	Entry   ledger.RefundOwed
	Members []string
}

func (r ReportDiffers) Error() string {
	return fmt.Sprintf("%s is owed for this already, with another %s", r.Entry.ID, strings.Join(r.Members, " and "))
}

// ReportRefund opens an entry for what was reported. The same effect reported
// again gives the entry that is there, whoever opened it.
func (s *Store) ReportRefund(ctx context.Context, r RefundReport) (e ledger.RefundOwed, existed bool, err error) {
	err = s.change(ctx, func(t *tx) error {
		want, err := t.readReport(r)
		if err != nil {
			return err
		}
		e, err = t.refundOf(want.TenantID, want.Rail, want.ReceiptID)
		if err == nil {
			existed = true
			return sameReport(e, want)
		}
		if !errors.Is(err, ErrNotFound) {
			return err
		}
		if err := t.stillToGive(want); err != nil {
			return err
		}
		sentence := fmt.Sprintf("%s reports that %s is owed for %s (%s). %s", r.By.Name, t.s.Rulebook(r.TenantID).Currencies.Format(want.Amount, want.Currency),
			want.ReceiptID, want.Cause, want.Reason)
		e, err = t.addRefund(want, r.By, strings.TrimSpace(sentence), map[string]any{"receipt_id": want.ReceiptID, "amount": want.Amount, "reason": want.Reason})
		return err
	})
	return e, existed, err
}

// stillToGive refuses to owe what went back already, or may have.
func (t *tx) stillToGive(want ledger.RefundOwed) error {
	if want.Direction != ledger.WeOwe {
		return nil
	}
	c, err := findCharge(t.rows, want.TenantID, want.ReceiptID, want.Rail, "", registered)
	if errors.Is(err, ErrNotFound) || err == nil && (c.Currency != want.Currency || want.Amount <= c.Left()) {
		return nil
	}
	if err != nil {
		return err
	}
	return Misreported{"amount", fmt.Sprintf("of the %d that were taken, %d went back already or may have; %d is left to owe", c.Amount, c.Returned(), c.Left())}
}

func sameReport(e, want ledger.RefundOwed) error {
	var differ []string
	if e.Amount != want.Amount {
		differ = append(differ, "amount")
	}
	if e.Currency != want.Currency {
		differ = append(differ, "currency")
	}
	if e.Direction != want.Direction {
		differ = append(differ, "direction")
	}
	if len(differ) > 0 {
		return ReportDiffers{e, differ}
	}
	return nil
}

// readReport completes a report from the operation that it is about, and refuses
// what contradicts it.
func (t *tx) readReport(r RefundReport) (ledger.RefundOwed, error) {
	rules := t.s.Rulebook(r.TenantID)
	wrong := func(member, format string, args ...any) (ledger.RefundOwed, error) {
		return ledger.RefundOwed{}, Misreported{member, fmt.Sprintf(format, args...)}
	}
	o, err := t.reported(r)
	if errors.Is(err, ErrNotFound) && r.OperationID != "" {
		return wrong("operation_id", "there is no such operation")
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return ledger.RefundOwed{}, err
	}
	own := "" // what the operation itself is known by at the provider
	if o.OperationID != "" {
		if own = o.OrderID; o.Receipt != nil {
			own = o.Receipt.ID
		}
	}
	if other, err := t.receiptOfAnother(o, r); err != nil {
		return ledger.RefundOwed{}, err
	} else if other != "" {
		return wrong("receipt_id", "it is the receipt of the operation %s; name that one, or the effect of this", other)
	}
	e := ledger.RefundOwed{TenantID: r.TenantID, OperationID: o.OperationID, ReceiptID: cmp.Or(r.ReceiptID, own), Rail: cmp.Or(r.Rail, o.Rail),
		Amount: r.Amount, Currency: r.Currency, Cause: cmp.Or(r.Cause, ledger.CauseReported), Direction: cmp.Or(r.Direction, ledger.DirectionOf(o.Effect)),
		Customer: cmp.Or(r.Customer, o.Terms.Customer), Reason: r.Reason, DueAt: r.DueAt, Source: ledger.FromReport, OpenedBy: r.By.Name}
	_, known := rules.Rails[e.Rail]
	_, money := rules.Currencies.Digits(e.Currency)
	switch {
	case o.OperationID == "" && r.ReceiptID == "":
		return wrong("receipt_id", "name the operation, or the provider's id of the effect")
	case e.Rail == "":
		return wrong("rail", "name the rail that the effect is on")
	case !known:
		return wrong("rail", "there is no such rail")
	case r.ReceiptID == "" && o.Rail != e.Rail:
		return wrong("receipt_id", "name the effect on %s: the operation itself went to %s", e.Rail, o.Rail)
	case e.Amount <= 0 || e.Amount > largestAmount:
		return wrong("amount", "send a positive whole number of minor units, at most %d", int64(largestAmount))
	case !money:
		return wrong("currency", "nobody knows this currency: write an ISO 4217 code, or one that is configured")
	case o.Terms.Currency != "" && o.Terms.Currency != e.Currency:
		return wrong("currency", "the operation was in %s", o.Terms.Currency)
	case e.ReceiptID == own && o.Terms.HasAmount && e.Amount > taken(o):
		return wrong("amount", "more than the %d that were taken", taken(o))
	}
	return e, nil
}

// receiptOfAnother is the operation whose receipt a report names beside one that
// it is not; empty: there is none such.
func (t *tx) receiptOfAnother(o ledger.Operation, r RefundReport) (id string, err error) {
	if o.OperationID == "" || r.ReceiptID == "" {
		return "", nil
	}
	err = notFound(t.row(`
		select operation_id from operations
		where tenant_id = $1 and rail = $2 and receipt_id = $3 and operation_id <> $4
		  and not exists (select 1 from operations where tenant_id = $1 and rail = $2 and receipt_id = $3 and operation_id = $4) limit 1`,
		r.TenantID, cmp.Or(r.Rail, o.Rail), r.ReceiptID, o.OperationID).Scan(&id))
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return id, err
}

// reported is the operation that a report is about: the one it names, or the one
// whose receipt it names.
func (t *tx) reported(r RefundReport) (ledger.Operation, error) {
	if r.OperationID != "" {
		return t.standing(r.TenantID, r.OperationID)
	}
	return scanOperation(t.row(`
		select `+operationColumns+` from operations
		where tenant_id = $1 and rail = $2 and receipt_id = $3 and receipt_id <> '' order by id limit 1`, r.TenantID, r.Rail, r.ReceiptID))
}

// taken is what an operation took, as far as anybody knows.
func taken(o ledger.Operation) int64 {
	if o.Receipt != nil && o.Receipt.Amount != nil {
		return max(*o.Receipt.Amount, o.Terms.Amount)
	}
	return o.Terms.Amount
}

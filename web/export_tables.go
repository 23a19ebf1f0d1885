package web

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// The tables and books of the exports. Everything in them is as the person may see
// it on the pages.

var operationExport = []string{"operation_id", "order_id", "status", "reason", "action_type", "effect", "rail", "amount", "amount_minor", "currency",
	"recipient", "reference", "customer", "agent", "run_id", "step", "attempts", "receipt_id", "receipt_amount", "receipt_amount_minor", "receipt_currency",
	"duplicate_of", "replaces", "created_at", "confirmed_at", "updated_at", "fingerprint"}

// operations walks through what the filters name. Whoever may not see a value can't
// find by it either.
func (t *takeout) operations(ctx context.Context, each func(o ledger.Operation, confirmedAt int64) error) error {
	return t.Store.WalkOperations(ctx, t.who.TenantID, t.filter, func(o ledger.Operation, confirmedAt int64) error {
		if t.keepsFrom(t.who, o, t.filter.Search) || t.keepsFrom(t.who, o, t.filter.Reference) {
			return nil
		}
		return each(o, confirmedAt)
	})
}

func operationRows(ctx context.Context, t *takeout, row func(cells) error) error {
	return t.operations(ctx, func(o ledger.Operation, confirmedAt int64) error {
		o = t.veil(t.who, o)
		var c cells
		var amount *int64
		if o.Terms.HasAmount {
			amount = &o.Terms.Amount
		}
		c.text(o.OperationID, o.OrderID, string(o.Status), string(o.Reason), o.ActionType, o.Effect, o.Rail)
		c.amount(t.money, amount, o.Terms.Currency)
		c.text(o.Terms.Currency, o.Terms.Recipient, o.Terms.Reference, o.Terms.Customer, o.Agent, o.RunID, o.Step)
		c.whole(int64(o.Attempts))
		receipt := ledger.Receipt{}
		if o.Receipt != nil {
			receipt = *o.Receipt
		}
		code := orText(receipt.Currency, o.Terms.Currency)
		if receipt.Amount == nil {
			code = receipt.Currency
		}
		c.text(receipt.ID)
		c.amount(t.money, receipt.Amount, code)
		c.text(code, o.DuplicateOf, o.Replaces)
		c.moment(o.CreatedAt, confirmedAt, o.UpdatedAt)
		c.text(o.Fingerprint)
		return row(c)
	})
}

func operationBook(ctx context.Context, t *takeout, each func(ledger.BookEntry) error) error {
	return t.operations(ctx, func(o ledger.Operation, confirmedAt int64) error {
		if _, money := ledger.BookOperation(o, confirmedAt); !money {
			return nil
		}
		e, shown := ledger.BookOperation(t.veil(t.who, o), confirmedAt)
		if !shown {
			t.hidden++
			return nil
		}
		return each(e)
	})
}

var refundExport = []string{"id", "direction", "status", "cause", "rail", "customer", "currency", "amount", "amount_minor", "open", "open_minor",
	"settling", "settling_minor", "settled", "settled_minor", "waived", "waived_minor", "operation_id", "receipt_id", "instrument", "source", "opened_by", "reason",
	"reopened", "due_at", "opened_at"}

func refundRows(ctx context.Context, t *takeout, row func(cells) error) error {
	return t.Store.WalkRefunds(ctx, t.who.TenantID, t.owed, func(e ledger.RefundOwed) error {
		if err := t.veilRefund(ctx, &e); err != nil {
			return err
		}
		if t.owed.Customer != "" && e.Customer != t.owed.Customer { // it was hidden just now
			return nil
		}
		var c cells
		c.text(e.ID, string(e.Direction), string(e.Status), string(e.Cause), e.Rail, e.Customer, e.Currency)
		for _, amount := range []int64{e.Amount, e.Open, e.Settling, e.Settled, e.Waived} {
			c.amount(t.money, &amount, e.Currency)
		}
		c.text(e.OperationID, e.ReceiptID, e.Instrument, string(e.Source), e.OpenedBy, e.Reason)
		c.whole(e.Reopened)
		c.moment(e.DueAt, e.OpenedAt)
		return row(c)
	})
}

func refundBook(ctx context.Context, t *takeout, each func(ledger.BookEntry) error) error {
	return t.Store.WalkRefundMoves(ctx, t.who.TenantID, func(m store.RefundMove) error {
		words := m.Entry.Reason
		if err := t.veilRefund(ctx, &m.Entry); err != nil {
			return err
		}
		if m.Entry.Reason != words && m.Transaction.Reason != "" {
			m.Transaction.Reason = dots
		}
		return each(ledger.BookRefund(m.Entry, m.Transaction, m.Settlement))
	})
}

// veilRefund hides of an entry what its operation hides. Where it has none, nobody
// can say what is sensitive, and so its words are.
func (t *takeout) veilRefund(ctx context.Context, e *ledger.RefundOwed) error {
	if seesAll(t.who) {
		return nil
	}
	o, err := t.Store.Operation(ctx, t.who.TenantID, e.OperationID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err == nil && !t.conceals(t.who, o) {
		return nil
	}
	if err != nil || t.veil(t.who, withCustomer(o, e.Customer)).Terms.Customer == dots {
		e.Customer = hideText(e.Customer)
	}
	e.Reason = dots // free words may say anything
	return nil
}

func withCustomer(o ledger.Operation, customer string) ledger.Operation {
	o.Terms.Customer = customer
	return o
}

func hideText(s string) string {
	if s == "" {
		return ""
	}
	return dots
}

// wholeBook is what was confirmed, and then what is owed.
func wholeBook(ctx context.Context, t *takeout, each func(ledger.BookEntry) error) error {
	if err := operationBook(ctx, t, each); err != nil {
		return err
	}
	return refundBook(ctx, t, each)
}

// journalNotes are the notes of the books that have a column of their own.
var journalNotes = []string{"rail", "effect", "customer", "operation", "receipt", "recipient", "reference", "agent", "run", "entry", "event", "cause", "direction",
	"settlement", "paid-by", "proof", "by", "reason"}

var journalExport = append([]string{"transaction", "line", "source", "date", "at", "account", "amount", "amount_minor", "currency"}, journalNotes...)

// journalRows is the whole book as a table, a row a line.
func journalRows(ctx context.Context, t *takeout, row func(cells) error) error {
	return wholeBook(ctx, t, func(e ledger.BookEntry) error {
		for n, l := range e.Lines {
			var c cells
			c.text(e.Code)
			c.whole(int64(n + 1))
			c.text(e.Note("source"))
			c = append(c, time.UnixMilli(e.At).UTC().Format(time.DateOnly))
			c.moment(e.At)
			c.text(l.Account.Name)
			c.amount(t.money, &l.Amount, l.Currency)
			c.text(l.Currency)
			for _, name := range journalNotes {
				c.text(e.Note(name))
			}
			if err := row(c); err != nil {
				return fmt.Errorf("line %d of %s: %w", n+1, e.Code, err)
			}
		}
		return nil
	})
}

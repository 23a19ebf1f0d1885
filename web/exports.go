package web

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"holdfast/store"
	"holdfast/store/ledger"
)

// An export is a list of the ledger as a file: a table as CSV, and where money
// moves the same as books. Nothing is held in memory but the sums, and nothing is
// cut: a file that ends early is one that never ended for its reader.

// exportKind is one thing to take out. A line in exportKinds adds another.
type exportKind struct {
	name    string
	filters []string // by what it can be narrowed
	columns []string
	rows    func(ctx context.Context, t *takeout, row func(cells) error) error
	book    func(ctx context.Context, t *takeout, each func(ledger.BookEntry) error) error // nil: it has no books
}

var exportKinds = []exportKind{
	{"operations", []string{"status", "action_type", "reference", "run_id", "rail", "q"}, operationExport, operationRows, operationBook},
	{"refunds", []string{"status", "customer", "rail", "currency"}, refundExport, refundRows, refundBook},
	{"journal", nil, journalExport, journalRows, wholeBook},
}

// exportFormats lists the formats of every export, as they end a file's name.
var exportFormats = []string{"csv", "hledger", "beancount"}

func exportNames() (names []string) {
	for _, k := range exportKinds {
		names = append(names, k.name)
	}
	return names
}

func exportOf(name, format string) (exportKind, bool) {
	i := slices.IndexFunc(exportKinds, func(k exportKind) bool { return k.name == name })
	if i < 0 || !slices.Contains(exportFormats, format) || exportKinds[i].book == nil && format != "csv" {
		return exportKind{}, false
	}
	return exportKinds[i], true
}

// takeout is one export on its way to a person.
type takeout struct {
	*Server
	kind   exportKind
	format string
	who    ledger.PersonRecord
	by     ledger.Holder
	money  ledger.Currencies
	asked  map[string]string // by what it is narrowed
	filter store.Filter
	owed   store.RefundFilter
	bom    bool // Excel takes a CSV file for UTF-8 only with a mark in front
	hidden int  // entries left out of the books, since their amounts are not for this person
}

// write writes the whole of it, and notes in the log who took what, before the
// first byte and after the last.
func (t *takeout) write(ctx context.Context, w io.Writer) error {
	t.money = t.Store.Rulebook(t.who.TenantID).Currencies
	note := store.Export{Name: t.kind.name, Format: t.format, Filter: t.asked}
	if err := t.Store.BeginExport(ctx, t.who.TenantID, t.by, note); err != nil {
		return err
	}
	write := t.writeBook
	if t.format == "csv" {
		write = t.writeCSV
	}
	return write(ctx, w, func(rows int, err error) error {
		note.Rows, note.Hidden = rows, t.hidden
		if err != nil {
			note.CutWith = err.Error()
		}
		// Also where the reader has gone: what left has left.
		if noting := t.Store.EndExport(context.WithoutCancel(ctx), t.who.TenantID, t.by, note); err == nil {
			err = noting
		}
		return err
	})
}

func (t *takeout) writeCSV(ctx context.Context, w io.Writer, noted func(rows int, err error) error) error {
	out := newCSV(w, t.money)
	if t.bom {
		out.out.WriteString("\ufeff")
	}
	err := out.header(t.kind.columns)
	if err == nil {
		err = t.kind.rows(ctx, t, out.row)
	}
	if err := noted(out.rows, err); err != nil {
		return err
	}
	return out.out.Flush()
}

func (t *takeout) writeBook(ctx context.Context, w io.Writer, noted func(rows int, err error) error) error {
	var d bookDialect = hledger{}
	if t.format == "beancount" {
		d = beancount{}
	}
	book := newBook(w, d, t.money)
	book.begin(fmt.Sprintf("holdfast, tenant %s: %s", t.who.TenantID, t.kind.name))
	err := t.kind.book(ctx, t, book.entry)
	if err == nil {
		remark := ""
		if t.hidden > 0 {
			remark = fmt.Sprintf("not in this file: %d transactions whose amounts are not shown to %s", t.hidden, noteText(t.who.Email))
		}
		book.end(remark)
	}
	if err := noted(book.rows, err); err != nil {
		return err
	}
	return book.out.Flush()
}

// exportFilters lists the names of all filters there are.
var exportFilters = []string{"status", "action_type", "reference", "run_id", "rail", "q", "customer", "currency"}

// narrow takes the filters that are not empty. One that would be ignored is
// refused: a file that holds more than was asked for is trusted as if it did not.
func (t *takeout) narrow(asked map[string]string) error {
	t.asked = asked
	maps.DeleteFunc(t.asked, func(_, text string) bool { return text == "" })
	for name := range t.asked {
		if !slices.Contains(t.kind.filters, name) {
			return fmt.Errorf("%s can't be narrowed by %s", t.kind.name, name)
		}
	}
	if t.kind.name == "refunds" && t.format != "csv" && len(t.asked) > 0 {
		return fmt.Errorf("the books of refunds are whole; only their table can be narrowed")
	}
	t.filter = store.Filter{ActionType: asked["action_type"], Reference: asked["reference"], RunID: asked["run_id"], Rail: asked["rail"], Search: asked["q"]}
	t.owed = store.RefundFilter{Customer: asked["customer"], Rail: asked["rail"], Currency: asked["currency"]}
	status := asked["status"]
	switch {
	case status == "":
	case t.kind.name == "refunds" && slices.Contains(ledger.RefundStatuses(), ledger.RefundStatus(status)):
		t.owed.Statuses = []ledger.RefundStatus{ledger.RefundStatus(status)}
	case t.kind.name == "operations" && slices.Contains(ledger.Statuses(), ledger.Status(status)):
		t.filter.Statuses = []ledger.Status{ledger.Status(status)}
	default:
		return fmt.Errorf("there is no status %q", status)
	}
	return nil
}

package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

// A file of an older holdfast, with an entry of each kind that it knew.
func ledgerBeforeTheJournal(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	db, err := openSQLite(t.Context(), filepath.Join(folder, "holdfast.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, err := readMigrations("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`create table migrations (number bigint not null primary key, name text not null, sha256 text not null, applied_at bigint not null)`); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if strings.Contains(m.name, "_refunds.") {
			break
		}
		if err := apply(context.Background(), db, m, 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(`insert into tenants (tenant_id, created_at) values ('acme', 1)`); err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"op-1", "op-2", "op-3"} {
		insertBlank(t, db, "operations", map[string]any{"id": i + 1, "tenant_id": "acme", "operation_id": id, "order_id": id, "provider_key": id, "status": "confirmed", "version": 1})
	}
	if _, err := db.Exec(`
		insert into meta (key, value) values ('instance', 'x'), ('epoch', '1');
		insert into refunds_owed (id, tenant_id, operation_id, receipt_id, direction, cause, rail, currency, amount, open, status, customer, due_at, opened_at) values
			('owed_b', 'acme', 'op-2', 'pay_2', 'owed_to_us', 'late_effect', 'bank', 'EUR', 200, 200, 'owed', 'cus_2', 20, 12),
			('owed_a', 'acme', 'op-1', 'pay_1', 'we_owe', 'duplicate_charge', 'card', 'USD', 100, 100, 'owed', 'cus_1', 10, 11),
			('owed_c', 'acme', 'op-3', 'pay_3', 'we_owe', 'duplicate_charge', 'card', 'USD', 0, 0, 'owed', '', 30, 13)`); err != nil {
		t.Fatal(err)
	}
	return folder
}

// insertBlank inserts a row with so much in it and nothing else.
func insertBlank(t *testing.T, db *sql.DB, table string, values map[string]any) {
	t.Helper()
	rows, err := db.Query(`select name, type from pragma_table_info($1)`, table)
	if err != nil {
		t.Fatal(err)
	}
	var names, marks []string
	var args []any
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var name, kind string
		err := r.Scan(&name, &kind)
		value, given := values[name]
		if !given {
			value = map[string]any{"bigint": 0, "text": "", "blob": []byte{}}[strings.ToLower(kind)]
		}
		names, args = append(names, name), append(args, value)
		marks = append(marks, fmt.Sprintf("$%d", len(args)))
		return struct{}{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(fmt.Sprintf(`insert into %s (%s) values (%s)`, table, strings.Join(names, ", "), strings.Join(marks, ", ")), args...); err != nil {
		t.Fatal(err)
	}
}

func TestWhatWasOwedBeforeTheJournalIsPostedByTheMigration(t *testing.T) {
	folder := ledgerBeforeTheJournal(t)
	old, err := OpenForReading(t.Context(), Options{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := old.keepsJournal(t.Context()); kept || err != nil {
		t.Errorf("an older file keeps a journal: %v %v", kept, err)
	}
	rows, err := old.readers.Query(`select ` + earlyRefundColumns + ` from refunds_owed where id = 'owed_b'`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		if e, err := scanRefund(rows); err != nil || e.Amount != 200 || e.Direction != ledger.OwedToUs {
			t.Errorf("%+v %v", e, err)
		}
	}
	rows.Close()
	old.Close()

	s, err := Open(t.Context(), Options{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	owed, err := s.RefundsOwed(t.Context(), "acme")
	if err != nil || len(owed) != 3 {
		t.Fatal(owed, err)
	}
	for i, want := range []ledger.RefundOwed{
		{Number: 1, ID: "owed_a", OperationID: "op-1", ReceiptID: "pay_1", Direction: ledger.WeOwe, Cause: ledger.CauseDuplicateCharge, Rail: "card", Currency: "USD", Amount: 100, Open: 100, Status: ledger.RefundIsOwed, Customer: "cus_1", DueAt: 10, OpenedAt: 11},
		{Number: 2, ID: "owed_b", OperationID: "op-2", ReceiptID: "pay_2", Direction: ledger.OwedToUs, Cause: ledger.CauseLateEffect, Rail: "bank", Currency: "EUR", Amount: 200, Open: 200, Status: ledger.RefundIsOwed, Customer: "cus_2", DueAt: 20, OpenedAt: 12},
		{Number: 3, ID: "owed_c", OperationID: "op-3", ReceiptID: "pay_3", Direction: ledger.WeOwe, Cause: ledger.CauseDuplicateCharge, Rail: "card", Currency: "USD", Status: ledger.RefundIsSettled, DueAt: 30, OpenedAt: 13},
	} {
		want.TenantID, want.Source, want.Version = "acme", ledger.FromEvidence, 1
		if owed[i] != want {
			t.Errorf("%+v\nwant %+v", owed[i], want)
		}
		var open, all, lines int64
		if err := s.readers.QueryRow(`
			select coalesce(sum(case when account = 'open' then amount end), 0), coalesce(sum(amount), 0), count(*) from refund_postings where entry = $1`,
			want.ID).Scan(&open, &all, &lines); err != nil || open != want.Amount || all != 0 || lines > 2 {
			t.Errorf("%s: %d open, %d in all, in %d lines: %v", want.ID, open, all, lines, err)
		}
	}
}

package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"holdfast/store"
	"holdfast/store/ledger"
)

func TestExportsAreFilesWithANameAndADay(t *testing.T) {
	_, b := books(t)
	for _, k := range exportKinds {
		for _, format := range exportFormats {
			answer := b.get("/exports/" + k.name + "." + format)
			if answer.Code != http.StatusOK || answer.Header().Get("Content-Disposition") != `attachment; filename="holdfast-default-`+k.name+`-2026-03-05.`+format+`"` {
				t.Errorf("%s.%s: %d %s", k.name, format, answer.Code, answer.Header().Get("Content-Disposition"))
			}
			if kind := answer.Header().Get("Content-Type"); strings.HasPrefix(kind, "text/csv") != (format == "csv") || !strings.Contains(kind, "charset=utf-8") {
				t.Errorf("%s.%s: %s", k.name, format, kind)
			}
		}
	}
	plain, excel := b.file("/exports/refunds.csv"), b.file("/exports/refunds.csv?for=excel")
	if excel != "\ufeff"+plain {
		t.Error("the file for Excel is more than the same one with its mark")
	}
	for _, none := range []string{"/exports/refunds.pdf", "/exports/people.csv", "/exports/refunds", "/exports/.csv"} {
		if answer := b.get(none); answer.Code != http.StatusNotFound {
			t.Errorf("%s: %d", none, answer.Code)
		}
	}
	if answer := b.do(http.MethodGet, "/exports/refunds.csv", ""); answer.Code != http.StatusSeeOther || strings.Contains(answer.Body.String(), "owed_") {
		t.Errorf("without a session: %d", answer.Code)
	}
	shows(t, b.get("/operations?status=confirmed"), http.StatusOK, `href="/exports/operations.csv?status=confirmed"`, `href="/exports/operations.hledger?status=confirmed"`)
	shows(t, b.get("/refunds"), http.StatusOK, `href="/exports/refunds.csv"`, `href="/exports/journal.beancount"`)
}

func TestExportIsNarrowedAsTheListIsOrRefused(t *testing.T) {
	_, b := books(t)
	all, some := table(t, b.file("/exports/operations.csv")), table(t, b.file("/exports/operations.csv?status=confirmed&action_type=pay"))
	if len(all) != 8 || len(some) != 6 {
		t.Errorf("%d and %d rows", len(all), len(some))
	}
	if rows := table(t, b.file("/exports/refunds.csv?customer=cus&rail=wire")); len(rows) != 1 || rows[0]["currency"] != "9COIN" {
		t.Errorf("%v", rows)
	}
	for _, path := range []string{"/exports/operations.csv?status=paid", "/exports/refunds.csv?status=confirmed", "/exports/journal.csv?status=owed", "/exports/refunds.hledger?rail=wire", "/exports/operations.csv?customer=cus"} {
		says(t, b.get(path), http.StatusUnprocessableEntity, "Nothing was taken out:")
	}
}

// An export is on record with its rows before anybody can have it, and whose list
// it is decides the session alone.
func TestEveryExportIsNoted(t *testing.T) {
	w, b := books(t)
	b.file("/exports/operations.csv?status=confirmed")
	log, _, err := w.Store.Audit(t.Context(), "default", store.AuditFilter{Limit: 2})
	must(t, err)
	if log[0].Event != "exported" || log[0].Actor != "ana@example.com" || log[0].ObjectID != "operations.csv" || !strings.Contains(log[0].Fact, `"rows":7`) || !strings.Contains(log[0].Fact, `"status":"confirmed"`) {
		t.Errorf("%+v", log[0])
	}
	if log[1].Event != "export_begun" || !strings.Contains(log[1].Fact, `"status":"confirmed"`) {
		t.Errorf("%+v", log[1])
	}
	eve, _, err := w.Store.PersonByEmail(t.Context(), "eve@example.net")
	must(t, err)
	others := w.signIn(eve).file("/exports/journal.csv?tenant=default")
	if !strings.Contains(others, "acct_of_others") || strings.Contains(others, "owed_") || strings.Contains(others, "'=1+1") {
		t.Errorf("another tenant's: %s", others)
	}
}

// deaf is a reader who hangs up.
type deaf struct{ *httptest.ResponseRecorder }

func (deaf) Write([]byte) (int, error) { return 0, errors.New("connection reset") }

func TestAFileThatEndsEarlyIsABrokenDownload(t *testing.T) {
	w, b := books(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/exports/journal.csv", nil)
	r.Header.Set("Cookie", b.cookie)
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler {
				t.Errorf("the connection was ended in good order: %v", p)
			}
		}()
		w.handler.ServeHTTP(deaf{httptest.NewRecorder()}, r)
	}()

	// Where the ledger can't be read to its end, the log says so, and nothing went.
	ctx, gone := context.WithCancel(t.Context())
	kind, _ := exportOf("operations", "csv")
	kind.rows = func(context.Context, *takeout, func(cells) error) error { gone(); return ctx.Err() }
	var out bytes.Buffer
	take := &takeout{Server: w.Server, kind: kind, format: "csv", who: b.who, by: ledger.Holder{Kind: ledger.Person, Name: b.who.Email}}
	if err := take.write(ctx, &out); !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("%v %q", err, out.String())
	}
	log, _, err := w.Store.Audit(t.Context(), "default", store.AuditFilter{Limit: 1})
	must(t, err)
	if log[0].Event != "exported" || !strings.Contains(log[0].Sentence, "ended early") || !strings.Contains(log[0].Fact, "cut_with") {
		t.Errorf("%+v", log[0])
	}
}

func TestNoRowIsCut(t *testing.T) {
	w := newServer(t, exportConfig)
	const many = 1_234 // more than any page or list holds
	var reports sync.WaitGroup
	for n := range many {
		reports.Go(func() {
			_, _, err := w.Store.ReportRefund(t.Context(), store.RefundReport{TenantID: "default", ReceiptID: fmt.Sprint("ch_", n), Rail: "card", Amount: 100, Currency: "EUR",
				Cause: ledger.CauseNotDelivered, Customer: fmt.Sprint("cus_", n%100), By: ledger.Holder{Kind: ledger.Agent, Name: "agent-1"}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	reports.Wait()
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	receipts := map[string]bool{}
	for _, row := range table(t, b.file("/exports/refunds.csv")) {
		receipts[row["receipt_id"]] = true
	}
	if len(receipts) != many || len(table(t, b.file("/exports/journal.csv"))) != 2*many {
		t.Errorf("%d of %d", len(receipts), many)
	}
}

// veiledConfig hides amount and customer of one action type from viewers.
var veiledConfig = strings.Replace(exportConfig, "  bill: { rail: wire, effect: charge, schema: "+pagesSchema+" }",
	`  bill: { rail: wire, effect: charge, schema: { type: object, required: [amount, currency, recipient], properties: { amount: { type: integer, x-role: amount, x-sensitive: true },
      currency: { type: string, x-role: currency }, recipient: { type: string, x-role: recipient, x-sensitive: true }, reference: { type: string, x-role: reference },
      customer: { type: string, x-role: customer, x-sensitive: true }, iban: { type: string } } } }`, 1)

func TestAViewerTakesOutNoMoreThanThePagesShow(t *testing.T) {
	w := newServer(t, veiledConfig)
	amount := int64(7_654_321)
	o := w.answer(w.ask(wanted{action: "bill", amount: amount, recipient: "acct_secret", currency: "JPY"}), ledger.Answer{Finding: ledger.Found, HTTPStatus: 201, Receipt: &ledger.Receipt{ID: "w_1", Amount: &amount}})
	if o.Status != ledger.Confirmed {
		t.Fatal(o.Status)
	}
	_, _, err := w.Store.ReportRefund(t.Context(), store.RefundReport{TenantID: "default", OperationID: o.OperationID, Amount: 5, Currency: "JPY", Cause: ledger.CauseNotDelivered,
		Customer: "cus_secret", Reason: "words of cus_secret", By: ledger.Holder{Kind: ledger.Agent, Name: "agent-1"}})
	must(t, err)
	finance, viewer := w.signIn(w.person("default", "ana@example.com", "finance")), w.signIn(w.person("default", "vic@example.com", "viewer"))
	for _, k := range exportKinds {
		for _, format := range exportFormats {
			path := "/exports/" + k.name + "." + format
			seen, veiled := finance.file(path), viewer.file(path)
			if !strings.Contains(seen, "secret") && !strings.Contains(seen, "7654321") {
				t.Errorf("%s holds nothing to hide", path)
			}
			for _, hidden := range []string{"secret", "7654321"} {
				if strings.Contains(veiled, hidden) {
					t.Errorf("%s shows a viewer %s", path, hidden)
				}
			}
			if format != "csv" && k.name != "refunds" && !strings.Contains(veiled, "not in this file: 1 transactions whose amounts are not shown to vic@example.com") {
				t.Errorf("%s does not say that something is left out", path)
			}
		}
	}
	for _, path := range []string{"/exports/operations.csv?q=acct_secret", "/exports/refunds.csv?customer=cus_secret"} {
		if all, found := strings.Count(finance.file(path), "\n"), strings.Count(viewer.file(path), "\n"); all != 2 || found != 1 {
			t.Errorf("%s: %d lines for finance, and %d for a viewer who may not see the value", path, all, found)
		}
	}
	file := onDisk(t, "veiled.hledger", viewer.file("/exports/journal.hledger"))
	_, err = checker(t, "hledger", "-f", file, "check", "--strict")
	must(t, err)
}

func TestTheCommandLineWritesTheSameFiles(t *testing.T) {
	w, b := books(t)
	page := b.file("/exports/journal.hledger")
	i := &Instance{Store: w.Store, Log: slog.New(slog.DiscardHandler)}
	var out bytes.Buffer
	must(t, i.Export(t.Context(), ExportOptions{Tenant: "default", Name: "journal", Format: "hledger"}, &out))
	if out.String() != page {
		t.Error("the command line writes another journal")
	}
	for _, o := range []ExportOptions{{Tenant: "default", Name: "people", Format: "csv"}, {Tenant: "default", Name: "refunds", Format: "xls"}, {Tenant: "default", Name: "journal", Format: "csv", Rail: "card"},
		{Tenant: "default", Name: "operations", Format: "csv", Status: "paid"}, {Tenant: "No", Name: "refunds", Format: "csv"}} {
		var usage Usage
		if err := i.Export(t.Context(), o, &out); !errors.As(err, &usage) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := i.Export(t.Context(), ExportOptions{Tenant: "nobody", Name: "refunds", Format: "csv"}, &out); err == nil || !strings.Contains(err.Error(), "there is no tenant nobody") {
		t.Errorf("%v", err)
	}
}

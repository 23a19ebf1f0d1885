package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

func (b browser) searchFor(name string) (status int, location string) {
	b.t.Helper()
	answer := b.get("/search?q=" + url.QueryEscape(name))
	return answer.Code, answer.Header().Get("Location")
}

func (w *world) paid(a wanted, receipt string) ledger.Operation {
	w.t.Helper()
	o := w.ask(a)
	amount := o.Terms.Amount
	return w.answer(o, ledger.Answer{Finding: ledger.Found, HTTPStatus: 201, Receipt: &ledger.Receipt{ID: receipt, Amount: &amount, Stamp: o.OrderID}})
}

func TestOneExactHitOpensWhateverItIsNamedBy(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	o := w.paid(wanted{reference: "Invoice  77"}, "pay_77")
	w.paid(wanted{}, "pay_78")
	hex := strings.TrimPrefix(o.Fingerprint, "hf1:sha256:")
	for _, name := range []string{o.OperationID, o.OrderID, o.ProviderKey, "pay_77", o.Fingerprint, o.Fingerprint[:24], hex, hex[:12], hex[:4] + " " + hex[4:8] + " " + hex[8:12] + " …",
		ledger.Words(o.Fingerprint), "invoice 77", " INVOICE 77 ", o.Terms.Recipient} {
		if status, at := b.searchFor(name); status != http.StatusSeeOther || at != "/operations/"+o.OperationID {
			t.Errorf("%q: %d %s", name, status, at)
		}
	}
	e := w.owe("default", "ch_9", 4800)
	for _, name := range []string{e.ID, "ch_9", "cus_1"} {
		if status, at := b.searchFor(name); status != http.StatusSeeOther || at != "/refunds/"+e.ID {
			t.Errorf("%q: %d %s", name, status, at)
		}
	}
	w.owe("default", "pay_77", 100)
	says(t, b.get("/search?q=pay_77"), http.StatusOK, "Operations", "Refunds owed", o.OperationID, "receipt pay_77")
	for _, none := range []string{"nobody", "op-", "pay_7", "%", "op-%", "' or '1'='1", `<script>alert(1)</script>`, strings.Repeat("x", 5000), "a\x00b", "\u202e77"} {
		page := b.get("/search?q=" + url.QueryEscape(none))
		says(t, page, http.StatusOK, "Nothing here is called", "Search takes a whole name")
		if strings.Contains(page.Body.String(), "<script>alert") {
			t.Error("a script stands on the page")
		}
	}
	says(t, b.get("/search"), http.StatusOK, "Nothing was asked for.")
	says(t, b.get("/search?q=++"), http.StatusOK, "Nothing was asked for.")
	if answer := w.do(http.MethodGet, "/search?q="+o.OperationID, ""); answer.Code != http.StatusSeeOther || !strings.HasPrefix(answer.Header().Get("Location"), "/login") {
		t.Errorf("without a session: %d %s", answer.Code, answer.Header().Get("Location"))
	}
	shows(t, b.get("/"), http.StatusOK, `action="/search"`)
}

func TestSearchFindsAStatementLineByTheProvidersId(t *testing.T) {
	lines := "statement: { format: csv, amounts: minor, columns: { id: id, amount: amount, currency: currency, date: created_at, reference: reference, stamp: operation, counterparty: recipient } }\n"
	w := newServer(t, strings.Replace(pagesConfig, "    dedupe: {", "    "+lines+"    dedupe: {", 1))
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	o := w.paid(wanted{}, "pay_1")
	file := "id,amount,currency,created_at,reference,operation,recipient\npay_1,100,EUR,2026-03-04,," + o.OrderID + ",\npay_stray,77,EUR,2026-03-04,,,\n"
	token, _ := w.token("default", "agent-1", "")
	if answer := w.do(http.MethodPost, "/v1/statements?rail=card", file, "Authorization: Bearer "+token, "Content-Type: text/csv"); answer.Code != http.StatusCreated {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	says(t, b.get("/search?q=pay_stray"), http.StatusOK, "Statement lines pay_stray · Unmatched line", "rail card")
	if status, at := b.searchFor("pay_1"); status != http.StatusSeeOther || at != "/operations/"+o.OperationID {
		t.Errorf("%d %s", status, at)
	}
	eve := w.signIn(w.person("other", "eve@example.net", "admin"))
	says(t, eve.get("/search?q=pay_stray"), http.StatusOK, "Nothing here is called")
}

func TestSearchKeepsTenantsApart(t *testing.T) {
	w := newServer(t, pagesConfig)
	o := w.paid(wanted{reference: "inv-9"}, "pay_9")
	e := w.owe("default", "ch_9", 4800)
	eve := w.signIn(w.person("other", "eve@example.net", "admin"))
	for _, name := range []string{o.OperationID, o.OrderID, o.ProviderKey, "pay_9", o.Fingerprint, ledger.Words(o.Fingerprint), "inv-9", o.Terms.Recipient, e.ID, "ch_9", "cus_1"} {
		page := eve.get("/search?q=" + url.QueryEscape(name))
		says(t, page, http.StatusOK, "Nothing here is called")
		hides(t, page, `href="/operations/`+o.OperationID, `href="/refunds/`+e.ID)
	}
	mine := w.paid(wanted{tenant: "other", reference: "inv-9"}, "pay_9")
	if status, at := eve.searchFor("pay_9"); status != http.StatusSeeOther || at != "/operations/"+mine.OperationID {
		t.Errorf("%d %s", status, at)
	}
}

// What a viewer is not shown, no viewer finds by.
func TestNobodyFindsByWhatTheyMayNotSee(t *testing.T) {
	hidden := pagesConfig
	for _, member := range []string{"recipient", "reference"} {
		hidden = strings.ReplaceAll(hidden, member+": { type: string, x-role: "+member+" }", member+": { type: string, x-role: "+member+", x-sensitive: true }")
	}
	hidden = strings.ReplaceAll(hidden, "note: { type: string }", "note: { type: string, x-role: customer, x-sensitive: true }")
	w := newServer(t, hidden)
	viewer, finance := w.signIn(w.person("default", "eve@example.com", "viewer")), w.signIn(w.person("default", "ana@example.com", "finance"))
	o := w.paid(wanted{reference: "secret-ref", recipient: "secret-person"}, "pay_1")
	_, _, err := w.Store.ReportRefund(t.Context(), store.RefundReport{TenantID: "default", OperationID: o.OperationID, Amount: 100, Currency: "EUR", Customer: "secret-person", Cause: ledger.CauseNotDelivered, By: operator})
	must(t, err)
	for _, name := range []string{"secret-ref", "SECRET-REF", "secret-person"} {
		says(t, viewer.get("/search?q="+name), http.StatusOK, "Nothing here is called")
		for _, list := range []string{"/operations?q=" + name, "/operations?reference=" + name} {
			hides(t, viewer.get(list), o.OperationID)
		}
		if name == "secret-person" {
			says(t, finance.get("/search?q="+name), http.StatusOK, "Operations", "Refunds owed")
		} else if status, _ := finance.searchFor(name); status != http.StatusSeeOther {
			t.Errorf("finance does not find %s: %d", name, status)
		}
	}
	if status, at := viewer.searchFor(o.OrderID); status != http.StatusSeeOther || at != "/operations/"+o.OperationID {
		t.Errorf("%d %s", status, at)
	}
	list := viewer.get("/search?q=pay_1")
	hides(t, list, "secret-ref", "secret-person")
	w.pass(time.Second)
}

package web

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"holdfast/store"
	"holdfast/store/ledger"
)

// owe reports money that is owed, and gives the entry.
func (w *world) owe(tenant, receipt string, amount int64) ledger.RefundOwed {
	w.t.Helper()
	e, _, err := w.Store.ReportRefund(w.t.Context(), store.RefundReport{TenantID: tenant, ReceiptID: receipt, Rail: "card", Amount: amount, Currency: "EUR",
		Customer: "cus_1", Cause: ledger.CauseNotDelivered, By: ledger.Holder{Kind: ledger.Agent, Name: "agent-1"}})
	must(w.t, err)
	return e
}

func (b browser) onRefund(id, act string, fields ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	e, err := b.Store.RefundOwed(b.t.Context(), b.who.TenantID, id)
	must(b.t, err)
	form := url.Values{"version": {fmt.Sprint(e.Version)}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.post("/refunds/"+id+"/"+act, form)
}

func (w *world) refundIs(id string, status ledger.RefundStatus, open int64) {
	w.t.Helper()
	e, err := w.Store.RefundOwed(w.t.Context(), "default", id)
	must(w.t, err)
	if e.Status != status || e.Open != open {
		w.t.Errorf("it is %s with %d open, want %s with %d", e.Status, e.Open, status, open)
	}
}

func TestASettlementMadeElsewhereIsRecordedOnItsPage(t *testing.T) {
	w := newServer(t, pagesConfig)
	fin := w.signIn(w.person("default", "fin@example.com", "finance"))
	e, other := w.owe("default", "ch_1", 4800), w.owe("default", "ch_2", 4800)
	page := fin.get("/refunds/" + e.ID)
	shows(t, page, 200, `data-act="settle"`, "Record settlement made elsewhere", `name="proof"`, `name="date"`, `data-act="waive"`, "48.00", "not delivered", "cus_1", "ch_1")
	for name, c := range map[string]struct {
		fields []string
		says   string
	}{
		"no amount":   {[]string{"proof", "re_1"}, "amount is needed"},
		"nothing":     {[]string{"proof", "re_1", "amount", "0"}, "more than nothing"},
		"no proof":    {[]string{"proof", "", "amount", "48.00"}, "proof is needed"},
		"too much":    {[]string{"proof", "re_1", "amount", "48.01"}, "more than"},
		"no date":     {[]string{"proof", "re_1", "amount", "48.00", "date", "31.12.25"}, "2026-01-31"},
		"a later day": {[]string{"proof", "re_1", "amount", "48.00", "date", "2199-01-01"}, "still to come"},
		"no rail":     {[]string{"proof", "re_1", "amount", "48.00", "rail", "moon"}, "no rail"},
		"no reason":   {[]string{"proof", "re_1", "amount", "48.00", "rail", "wire"}, "Say why"},
		"itself":      {[]string{"proof", "ch_1", "amount", "48.00"}, "payment itself"},
	} {
		answer := fin.onRefund(e.ID, "settle", c.fields...)
		if answer.Code != 422 || !strings.Contains(mainText(answer), c.says) {
			t.Errorf("%s: %d %s", name, answer.Code, mainText(answer))
		}
	}
	w.refundIs(e.ID, ledger.RefundIsOwed, 4800)
	if answer := fin.onRefund(e.ID, "settle", "amount", "18.00", "proof", "re_1", "date", "2026-01-31", "reason", "at the desk"); answer.Code != 303 {
		t.Fatalf("%d %s", answer.Code, mainText(answer))
	}
	w.refundIs(e.ID, ledger.RefundIsOwed, 3000)
	if answer := fin.onRefund(other.ID, "settle", "amount", "18.00", "proof", "re_1"); answer.Code != 422 || !strings.Contains(mainText(answer), "counts once") {
		t.Errorf("a proof counted twice: %d", answer.Code)
	}
	if answer := fin.onRefund(e.ID, "settle", "amount", "30.00", "proof", "re_2"); answer.Code != 303 {
		t.Fatal(answer.Code)
	}
	w.refundIs(e.ID, ledger.RefundIsSettled, 0)
	shows(t, fin.get("/refunds/"+e.ID), 200, "Settled outside holdfast", "re_1", "re_2", "2026-01-31", "unchecked", "Nothing is left to settle.")
	hides(t, fin.get("/refunds/"+e.ID), `data-act="settle"`, `data-act="waive"`, "failed", "success", "pending", " style=")
	shows(t, fin.get("/refunds?status=settled"), 200, "Settled outside holdfast")
	hides(t, fin.get("/refunds"), e.ID)
}

func TestWaivingOnThePageTakesTwoPeople(t *testing.T) {
	w := newServer(t, pagesConfig)
	fin, adm := w.signIn(w.person("default", "fin@example.com", "finance")), w.signIn(w.person("default", "adm@example.com", "admin"))
	e := w.owe("default", "ch_1", 4800)
	if answer := fin.onRefund(e.ID, "waive"); answer.Code != 422 {
		t.Errorf("without a reason: %d", answer.Code)
	}
	if answer := fin.onRefund(e.ID, "waive", "reason", "a gift"); answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	w.refundIs(e.ID, ledger.RefundIsOwed, 4800)
	shows(t, fin.get("/refunds/"+e.ID), 200, "Somebody else must agree", `data-refused="waive"`)
	if answer := fin.onRefund(e.ID, "waive", "reason", "a gift"); answer.Code != 403 {
		t.Errorf("one person twice: %d", answer.Code)
	}
	shows(t, adm.get("/refunds/"+e.ID), 200, "You are the second person", "a gift")
	if answer := adm.onRefund(e.ID, "waive", "reason", "agreed"); answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	w.refundIs(e.ID, ledger.RefundIsWaived, 0)
}

func TestWhoMayNotSettleHasNoFormAndIsToldWhy(t *testing.T) {
	w := newServer(t, pagesConfig)
	e := w.owe("default", "ch_1", 4800)
	for _, role := range []string{"viewer", "approver"} {
		b := w.signIn(w.person("default", role+"@example.com", role))
		page := b.get("/refunds/" + e.ID)
		shows(t, page, 200, `data-refused="settle"`, "This needs the role")
		hides(t, page, `data-act="settle"`, `data-act="waive"`)
		for _, act := range []string{"settle", "waive"} {
			if answer := b.onRefund(e.ID, act, "amount", "48.00", "proof", "re_1", "reason", "x"); answer.Code != 403 {
				t.Errorf("%s %s: %d", role, act, answer.Code)
			}
		}
	}
	w.refundIs(e.ID, ledger.RefundIsOwed, 4800)
}

func TestAnOldFormOfARefundChangesNothing(t *testing.T) {
	w := newServer(t, pagesConfig)
	fin := w.signIn(w.person("default", "fin@example.com", "finance"))
	e := w.owe("default", "ch_1", 4800)
	fin.onRefund(e.ID, "settle", "amount", "10.00", "proof", "re_1")
	old := url.Values{"version": {fmt.Sprint(e.Version)}, "amount": {"10.00"}, "proof": {"re_2"}}
	if answer := fin.post("/refunds/"+e.ID+"/settle", old); answer.Code != 409 || !strings.Contains(mainText(answer), "Nothing from you was recorded") {
		t.Errorf("%d %s", answer.Code, mainText(answer))
	}
	old.Del("version")
	if answer := fin.post("/refunds/"+e.ID+"/settle", old); answer.Code != 422 {
		t.Errorf("without a version: %d", answer.Code)
	}
	w.refundIs(e.ID, ledger.RefundIsOwed, 3800)
}

func TestOtherTenantsRefundIsAsAbsent(t *testing.T) {
	w := newServer(t, pagesConfig)
	fin := w.signIn(w.person("default", "fin@example.com", "finance"))
	theirs := w.owe("other", "ch_theirs", 4800)
	absent := "owed_" + strings.Repeat("0", len(theirs.ID)-5)
	form := url.Values{"version": {"1"}, "amount": {"48.00"}, "proof": {"re_1"}, "reason": {"x"}}
	for _, ask := range []func(string) *httptest.ResponseRecorder{
		func(id string) *httptest.ResponseRecorder { return fin.get("/refunds/" + id) },
		func(id string) *httptest.ResponseRecorder { return fin.post("/refunds/"+id+"/settle", form) },
		func(id string) *httptest.ResponseRecorder { return fin.post("/refunds/"+id+"/waive", form) },
	} {
		a, b := ask(theirs.ID), ask(absent)
		if a.Code != 404 || strings.ReplaceAll(a.Body.String(), theirs.ID, absent) != b.Body.String() {
			t.Errorf("%d %d %s", a.Code, b.Code, mainText(a))
		}
	}
	hides(t, fin.get("/refunds"), "ch_theirs")
	shows(t, fin.get("/refunds"), 200, "You owe nobody anything.")
}

func TestRefundsAreSummedPerRailAndCustomerAndNeverAcrossCurrencies(t *testing.T) {
	w := newServer(t, pagesConfig)
	fin := w.signIn(w.person("default", "fin@example.com", "finance"))
	w.owe("default", "ch_1", 4800)
	w.owe("default", "ch_2", 200)
	_, _, err := w.Store.ReportRefund(t.Context(), store.RefundReport{TenantID: "default", ReceiptID: "ch_3", Rail: "card", Amount: 700, Currency: "USD", Customer: "cus_1"})
	must(t, err)
	page := fin.get("/refunds")
	shows(t, page, 200, "€50.00", "$7.00", "By customer", "By age", "0–7 days", "In progress", "Waived")
	hides(t, page, "57.00")
}

func TestAPersonSaysThatARefundCameBack(t *testing.T) {
	w := newServer(t, pagesConfig)
	fin, vic := w.signIn(w.person("default", "fin@example.com", "finance")), w.signIn(w.person("default", "vic@example.com", "viewer"))
	e, other := w.owe("default", "ch_1", 4800), w.owe("default", "ch_2", 4800)
	if strings.Contains(mainText(fin.get("/refunds/"+e.ID)), "It came back") {
		t.Error("nothing was given back, and a form says that it came back")
	}
	fin.onRefund(e.ID, "settle", "amount", "48.00", "proof", "re_1")
	w.refundIs(e.ID, ledger.RefundIsSettled, 0)
	shows(t, fin.get("/refunds/"+e.ID), 200, `data-act="bounced"`, `name="settlement"`)
	all, err := w.Store.RefundSettlements(t.Context(), "default", e.ID)
	must(t, err)
	for name, c := range map[string]struct {
		who    browser
		entry  string
		fields []string
		status int
	}{
		"no reason":          {fin, e.ID, []string{"settlement", all[0].ID}, 422},
		"no settlement":      {fin, e.ID, []string{"reason", "closed"}, 422},
		"a viewer":           {vic, e.ID, []string{"settlement", all[0].ID, "reason", "closed"}, 403},
		"of another entry's": {fin, other.ID, []string{"settlement", all[0].ID, "reason", "closed"}, 403},
		"something old":      {fin, e.ID, []string{"settlement", all[0].ID, "reason", "closed", "version", "1"}, 409},
	} {
		if got := c.who.onRefund(c.entry, "bounced", c.fields...); got.Code != c.status {
			t.Errorf("%s: %d %s", name, got.Code, mainText(got))
		}
	}
	w.refundIs(e.ID, ledger.RefundIsSettled, 0)
	if got := fin.onRefund(e.ID, "bounced", "settlement", all[0].ID, "reason", "the account is closed"); got.Code != 303 {
		t.Fatalf("%d %s", got.Code, mainText(got))
	}
	w.refundIs(e.ID, ledger.RefundIsOwed, 4800)
	shows(t, fin.get("/refunds/"+e.ID), 200, "came back", "the account is closed")
}

// While an operation pays a part, nothing else settles the rest: there is no
// second form, and its reason stands there in words.
func TestWhileAPartIsUnderWayNoSecondFormStands(t *testing.T) {
	w := newServer(t)
	a := w.agent("default")
	e := w.twice(a, "op", 4800)
	fin := w.signIn(w.person("default", "fin@example.com", "finance"))
	if got := fin.onRefund(e.ID, "settle", "amount", "18.00", "rail", "sandbox"); got.Code != 303 {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	page := fin.get("/refunds/" + e.ID)
	shows(t, page, 200, "A refund is under way. Until its outcome is known, nothing else may settle it.")
	if strings.Contains(page.Body.String(), `data-act="settle"`) {
		t.Error("a second form stands there")
	}
}

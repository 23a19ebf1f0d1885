package web

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"holdfast/store/ledger"
)

func TestAnExceptionStandsOnHomeUntilSomebodyAnswersIt(t *testing.T) {
	w := newServer(t, pagesConfig)
	finance, viewer := w.signIn(w.person("default", "fin@example.com", "finance")), w.signIn(w.person("default", "viewer@example.com", "viewer"))
	stranger := w.signIn(w.person("other", "stranger@example.com", "admin"))
	o := w.confirmedCharge("pay_1", 4800)
	late := ledger.Look{Finding: ledger.LookAbsent, AskedAt: w.Store.Now() + time.Hour.Milliseconds()}
	for range 2 {
		_, _, err := w.Store.RecordRecheck(t.Context(), "default", o.OperationID, late, ledger.Holder{Kind: ledger.Reconciler, Name: "recheck"})
		must(t, err)
		late.AskedAt += (25 * time.Hour).Milliseconds()
	}
	open, err := w.Store.OpenExceptions(t.Context(), "default")
	must(t, err)
	if len(open) != 1 {
		t.Fatalf("open: %+v", open)
	}
	shows(t, finance.get("/"), http.StatusOK, "Receipt gone", `data-act="set-aside"`, "is not shown by the provider any more")
	hides(t, viewer.get("/"), `data-act="set-aside"`)
	shows(t, viewer.get("/"), http.StatusOK, `data-refused="set-aside"`)
	hides(t, stranger.get("/"), "Receipt gone")
	form := func(reason, version string) url.Values {
		return url.Values{"exception": {open[0].ID}, "version": {version}, "reason": {reason}}
	}
	const to = "/exceptions/set-aside"
	shows(t, viewer.post(to, form("no", "1")), http.StatusForbidden)
	shows(t, stranger.post(to, form("no", "1")), http.StatusNotFound)
	shows(t, finance.post(to, form(" ", "1")), http.StatusUnprocessableEntity, "Receipt gone", `data-act="set-aside"`)
	shows(t, finance.post(to, form("moved to their archive", "9")), http.StatusConflict)
	if answer := finance.post(to, form("moved to their archive", "1")); answer.Code != http.StatusSeeOther {
		t.Fatalf("answered %d", answer.Code)
	}
	shows(t, finance.post(to, form("moved to their archive", "1")), http.StatusConflict, "Somebody answered it before you.")
	hides(t, finance.get("/"), "Receipt gone")
	shows(t, finance.get("/operations/"+o.OperationID), http.StatusOK, "moved to their archive")
}

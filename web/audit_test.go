package web

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

var entryRow = regexp.MustCompile(`id="entry-(\d+)"`)

func TestAuditShowsWhatAnOperationWentThroughAndLeadsThere(t *testing.T) {
	w := newServer(t, pagesConfig)
	viewer := w.signIn(w.person("default", "eve@example.com", "viewer"))
	o := w.held("", true)
	e := w.owe("default", "ch_1", 4800)
	page := viewer.get("/audit")
	says(t, page, http.StatusOK, "agent agent-1", "worker worker-1", "Sending → Outcome unknown", "new → Ready", "Refund owed "+e.ID)
	shows(t, page, http.StatusOK, `href="/operations/`+o.OperationID+`"`, `href="/refunds/`+e.ID+`"`, `href="/audit" aria-current="page"`)
	says(t, viewer.get("/audit?id="+o.OperationID), http.StatusOK, "Marked, then sent")
	doesNotSay(t, viewer.get("/audit?id="+o.OperationID), e.ID)
	doesNotSay(t, viewer.get("/audit?actor=worker-1"), "agent-1 ")
	says(t, viewer.get("/audit?event=mark&object=operation&from=2026-03-04&to=2026-03-04"), http.StatusOK, "Marked, then sent")
	for _, none := range []string{"/audit?actor=nobody", "/audit?from=2026-03-09", "/audit?to=2026-03-03", "/audit?event=mark&actor=agent-1", "/audit?id=" + url.QueryEscape(`' or 1=1 --`)} {
		says(t, viewer.get(none), http.StatusOK, "Nothing like this was done.")
	}
	for _, wrong := range []string{"/audit?from=yesterday", "/audit?to=2026-13-01", "/audit?below=x", "/audit?below=-1"} {
		shows(t, viewer.get(wrong), http.StatusUnprocessableEntity, `role="alert"`)
	}
	if answer := w.do(http.MethodGet, "/audit", ""); answer.Code != http.StatusSeeOther || strings.Contains(answer.Body.String(), o.OperationID) {
		t.Errorf("without a session: %d", answer.Code)
	}
}

func TestAuditPagesByNumberWithoutGapOrRepeat(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	for range 130 {
		w.ask(wanted{})
		w.pass(time.Second)
	}
	seen, last, path := 0, 1<<30, "/audit"
	for path != "" {
		page := b.get(path).Body.String()
		for _, m := range entryRow.FindAllStringSubmatch(page, -1) {
			n := 0
			fmt.Sscan(m[1], &n)
			if n >= last {
				t.Fatalf("%d after %d", n, last)
			}
			last = n
			seen++
		}
		path = ""
		if m := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(page); m != nil {
			path = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	if seen < 131 || last > 3 {
		t.Errorf("%d entries down to number %d", seen, last)
	}
}

func TestAuditOfAnotherTenantIsNotThere(t *testing.T) {
	w := newServer(t, pagesConfig)
	o := w.held("", true)
	e := w.owe("default", "ch_1", 4800)
	eve := w.signIn(w.person("other", "eve@example.net", "admin"))
	for _, path := range []string{"/audit", "/audit?id=" + o.OperationID, "/audit?id=" + e.ID, "/audit?actor=agent-1", "/audit?actor=worker-1", "/audit?object=operation", "/audit?event=mark", "/audit?tenant=default"} {
		hides(t, eve.get(path), `href="/operations/`+o.OperationID, `href="/refunds/`+e.ID, `href="/audit?actor=worker-1`, `href="/audit?actor=agent-1`, "Marked, then sent")
	}
	if page := eve.get("/audit").Body.String(); strings.Contains(page, `value="mark"`) || strings.Contains(page, `value="refund_owed"`) {
		t.Error("the choices tell of another tenant's log")
	}
}

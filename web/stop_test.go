package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// stop sends the form of a run as it stands on the page.
func (b browser) stop(run, reason string) heard {
	b.t.Helper()
	return heard{ResponseRecorder: b.post("/runs/stop-run", url.Values{"run_id": {run}, "reason": {reason}})}
}

// begin lets an agent submit one operation of a run.
func (w *world) begin(run string, parent ...string) ledger.Operation {
	w.t.Helper()
	return w.ofRun(100, run, parent...)
}

func (w *world) ofRun(amount int, run string, parent ...string) ledger.Operation {
	w.t.Helper()
	counter++
	id := fmt.Sprintf("op-%d", counter)
	token, _ := w.token("default", "agent-1", "")
	body := fmt.Sprintf(`{"operation_id":%q,"action_type":"pay","run_id":%q,"parent_run_id":%q,"payload":{"amount":%d,"currency":"EUR","recipient":"acct_%d","reference":"ref-%d"}}`,
		id, run, strings.Join(parent, ""), amount, counter, counter)
	body = strings.Replace(body, `"parent_run_id":"",`, "", 1)
	if answer := w.do(http.MethodPost, "/v1/operations", body, "Authorization: Bearer "+token, "Content-Type: application/json"); answer.Code != http.StatusAccepted {
		w.t.Fatalf("submitting: %d %s", answer.Code, answer.Body)
	}
	return w.stored("default", id)
}

func (w *world) stopped(run string) (entries int) {
	w.t.Helper()
	all, _, err := w.Store.Audit(w.t.Context(), "default", store.AuditFilter{Limit: 1000})
	must(w.t, err)
	for _, e := range all {
		if e.Object == "run" && e.ObjectID == run {
			entries++
		}
	}
	return entries
}

// TestStopRunIsTakenByWhoMayAndByNobodyElse is the row of the table of acts that
// is about a run, and so carries no version of an operation.
func TestStopRunIsTakenByWhoMayAndByNobodyElse(t *testing.T) {
	w := newServer(t, pagesConfig)
	viewer := w.signIn(w.person("default", "viewer@example.com", "viewer"))
	stranger := w.signIn(w.person("other", "stranger@example.com", "admin", "approver", "finance"))
	for _, role := range []string{"approver", "finance", "admin"} {
		b := w.signIn(w.person("default", role+"@example.com", role))
		o := w.begin("of " + role)
		shows(t, b.get("/runs"), http.StatusOK, `data-act="stop-run"`)
		answer := b.stop("of "+role, "it loops")
		if answer.Code != http.StatusSeeOther {
			t.Fatalf("%s may stop a run, and was answered %d\n%s", role, answer.Code, mainText(answer.ResponseRecorder))
		}
		if after := w.stored("default", o.OperationID); after.Status != ledger.Rejected || after.Reason != ledger.RunStopped || !w.named(o, b.who.Email) {
			t.Errorf("after the stop by %s it is %s %s", role, after.Status, after.Reason)
		}
		shows(t, b.get(answer.Header().Get("Location")), http.StatusOK, "What was not sent was rejected; what was being sent goes to its end.", b.who.Email, "it loops")
		if again := b.stop("of "+role, "it loops"); again.Code != http.StatusSeeOther || w.stopped("of "+role) != 1 {
			t.Errorf("a button that was pressed twice: %d, and %d entries", again.Code, w.stopped("of "+role))
		}
	}
	owner := w.signIn(w.person("default", "owner@example.com", "admin"))
	says(t, owner.stop("of finance", "me too").ResponseRecorder, http.StatusConflict, "finance@example.com stopped it", "it loops", "Nothing from you was recorded.")

	o := w.begin("run-9")
	hides(t, viewer.get("/runs"), `data-act="stop-run"`)
	shows(t, viewer.get("/runs"), http.StatusOK, `data-refused="stop-run"`, "This needs the role")
	hides(t, stranger.get("/runs"), "run-9")
	absent, foreign := stranger.get("/runs?run_id=run-x"), stranger.get("/runs?run_id=run-9")
	if strings.ReplaceAll(absent.Body.String(), "run-x", "run-9") != foreign.Body.String() {
		t.Error("another tenant's run is shown otherwise than an absent one")
	}
	form := url.Values{"run_id": {"run-9"}, "reason": {"it loops"}}
	own := "Cookie: " + owner.cookie
	const isForm = "Content-Type: application/x-www-form-urlencoded"
	for name, c := range map[string]struct{ got, want int }{
		"viewer":        {viewer.stop("run-9", "it loops").Code, http.StatusForbidden},
		"other tenant":  {stranger.stop("run-9", "it loops").Code, http.StatusNotFound},
		"no such run":   {owner.stop("run-x", "it loops").Code, http.StatusNotFound},
		"no run":        {owner.stop("", "it loops").Code, http.StatusNotFound},
		"no reason":     {owner.stop("run-9", " ").Code, http.StatusUnprocessableEntity},
		"too long":      {owner.stop("run-9", strings.Repeat("x", 2001)).Code, http.StatusUnprocessableEntity},
		"GET":           {owner.get("/runs/stop-run?" + form.Encode()).Code, http.StatusMethodNotAllowed},
		"form in query": {owner.post("/runs/stop-run?"+form.Encode(), nil).Code, http.StatusNotFound},
		"cross-site":    {w.do(http.MethodPost, "/runs/stop-run", form.Encode(), own, isForm, "Sec-Fetch-Site: cross-site").Code, http.StatusForbidden},
		"no session":    {w.do(http.MethodPost, "/runs/stop-run", form.Encode(), isForm).Code, http.StatusUnauthorized},
		"other origin":  {w.do(http.MethodPost, "/runs/stop-run", form.Encode(), own, isForm, "Origin: https://evil.example").Code, http.StatusForbidden},
	} {
		if c.got != c.want {
			t.Errorf("%s: answered %d, want %d", name, c.got, c.want)
		}
	}
	if after := w.stored("default", o.OperationID); after.Version != o.Version || w.stopped("run-9") != 0 {
		t.Errorf("what was refused changed it to %s", after.Status)
	}
	back := owner.stop("run-9", strings.Repeat("x", 2001))
	shows(t, back.ResponseRecorder, http.StatusUnprocessableEntity, "A reason is too long", strings.Repeat("x", 2001), "<details class=\"decide\" name=\"decide\" open")
}

func TestRunsPageInEachState(t *testing.T) {
	w := newServer(t, pagesConfig+"\nruns: { max_attempts: 3, max_elapsed: 1h }\n")
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	says(t, b.get("/runs"), http.StatusOK, "No runs. Send run_id with an operation to group and cap them.")
	shows(t, b.get("/"), http.StatusOK, `href="/runs"`)

	o := w.begin("top")
	w.begin("low", "top")
	w.begin("lower", "low")
	shows(t, b.get("/operations/"+o.OperationID), http.StatusOK, `href="/runs?run_id=top"`)
	_, err := w.Store.ReportAttempts(t.Context(), "default", "low", "model", 2)
	must(t, err)
	all := b.get("/runs")
	says(t, all, http.StatusOK, "top Running", "2 of 3 runs below it 2", "2 of 3 model fallbacks 2", "10:00 UTC, in 1 h 00 m", "low began in run top Running",
		"Below it low · lower", "Rejected: 3 operations that were not sent.", "Stop top and 2 runs below it", "1 open")
	shows(t, all, http.StatusOK, `href="/operations?run_id=top"`)
	shows(t, b.get("/runs?run_id=low"), http.StatusOK, `href="/runs?run_id=lower"`)
	hides(t, b.get("/runs?run_id=low"), `value="top"`)

	b.stop("low", "it loops")
	says(t, b.get("/runs"), http.StatusOK, "low began in run top Stopped", "Stopped by ana@example.com", "top Running")
	says(t, b.get("/runs?run_id=lower"), http.StatusOK, "so it is with the run above, low", "1 ended without effect")
	_, err = w.Store.ReportAttempts(t.Context(), "default", "top", "http", 1)
	must(t, err)
	says(t, b.get("/runs?run_id=top"), http.StatusOK, "top Spent", "3 of 3")
	w.begin("later")
	w.pass(time.Hour)
	b = w.signIn(b.who)
	says(t, b.get("/runs?run_id=later"), http.StatusOK, "later Over")
}

func TestRunsUnderEveryNameAreShownAndStopped(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	for _, run := range []string{"a b", "a/b", "50%", "..", "lauf-ü", "x?y#z&w", `"><script>alert(1)</script>`} {
		w.begin(run)
		answer := b.stop(run, "it loops")
		page := b.get(answer.Header().Get("Location"))
		shows(t, page, http.StatusOK, "What was not sent was rejected")
		if strings.Contains(page.Body.String(), "<script>alert") {
			t.Error("the name of a run is markup")
		}
	}
}

func TestRunsBeyondTheFirstPageAreReached(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "viewer"))
	for n := range 30 {
		_, err := w.Store.ReportAttempts(t.Context(), "default", fmt.Sprintf("run-%02d", n), "http", 1)
		must(t, err)
	}
	shows(t, b.get("/runs"), http.StatusOK, "/runs?after=run-24")
	hides(t, b.get("/runs"), "run_id=run-25")
	shows(t, b.get("/runs?after=run-24"), http.StatusOK, "run_id=run-25", "run_id=run-29")
	hides(t, b.get("/runs?after=run-24"), "run_id=run-24", "Older")
}

// One operation of a run waits for people, one was sent: the stop ends the first
// and leaves the second to its end, and the agent hears so.
func TestStoppingARunFromSubmissionToTheAgentsNextTry(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "approver"))
	asked, sent := w.ofRun(200000, "run-9"), w.lose(w.begin("run-9"))
	says(t, b.get("/runs"), http.StatusOK, "2 open", "Rejected: 1 operation that was not sent.", "Not touched: 1 operation that was sent. It goes to its end.")
	answer := b.stop("run-9", "it pays the same ticket again and again")
	says(t, b.get(answer.Header().Get("Location")), http.StatusOK, "run-9 Stopped", "1 open · 1 ended without effect")

	token, _ := w.token("default", "agent-1", "")
	agent := func(method, path, body string) heard {
		return hear(t, w.do(method, path, body, "Authorization: Bearer "+token, "Content-Type: application/json"))
	}
	told := agent(http.MethodGet, "/v1/operations/"+asked.OperationID, "")
	told.is(t, 200, "run_stopped", "stop", true)
	if why, _ := told.said["decision"].(map[string]any); why["message"] != "it pays the same ticket again and again" {
		t.Error("the agent is not told why: ", told.Body)
	}
	fresh := `{"operation_id":"op-new","action_type":"pay","run_id":"run-9","payload":{"amount":100,"currency":"EUR","recipient":"acct_new"}}`
	agent(http.MethodPost, "/v1/operations", fresh).spent(t, "stopped by a person")
	if _, err := w.Store.Operation(t.Context(), "default", "op-new"); err != store.ErrNotFound {
		t.Error("what was refused is on record: ", err)
	}
	if after := w.stored("default", sent.OperationID); after.Status != ledger.Unknown {
		t.Errorf("what was sent is %s", after.Status)
	}
	says(t, b.get("/operations/"+asked.OperationID), http.StatusOK, "Withdrawn", "ana@example.com stopped its run, and nothing was sent: it pays the same ticket again and again")
}

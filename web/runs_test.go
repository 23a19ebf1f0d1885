package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// runsConfig gives every run of the tenant default three retries and an hour.
var runsConfig = apiConfig + "\nruns: { max_attempts: 3, max_elapsed: 1h }\n"

// inRun is the good submission as part of a run, perhaps with one above it.
func inRun(id, run string, parent ...string) string {
	body := strings.TrimSuffix(named(id), "}") + fmt.Sprintf(`,"run_id":%q`, run)
	for _, p := range parent {
		body += fmt.Sprintf(`,"parent_run_id":%q`, p)
	}
	return body + "}"
}

func (a agent) run(id string) heard { return a.get("/v1/runs/" + id) }

func (a agent) lower(run, body string) heard {
	a.t.Helper()
	return a.call(http.MethodPut, "/v1/runs/"+run, body, "Content-Type: application/json")
}

func (a agent) report(run, layer string, count int) heard {
	a.t.Helper()
	return a.call(http.MethodPost, "/v1/runs/"+run+"/attempts", fmt.Sprintf(`{"layer":%q,"count":%d}`, layer, count), "Content-Type: application/json")
}

// has compares a run's budget.
func (h heard) has(t testing.TB, used, left int) {
	t.Helper()
	if h.Code != 200 || h.said["used"] != float64(used) || h.said["left"] != float64(left) || h.text("detail") == "" {
		t.Errorf("answered %d %s, want %d used and %d left", h.Code, h.Body, used, left)
	}
}

// spent checks the answer of a run that may do nothing more.
func (h heard) spent(t testing.TB, why string) {
	t.Helper()
	h.is(t, 429, "retry_budget_exhausted", "stop", true)
	if h.Header().Get("Retry-After") != "" || h.said["retry_after"] != nil || !strings.Contains(h.text("detail"), why) {
		t.Errorf("want %q and no Retry-After: %v %s", why, h.Header(), h.Body)
	}
}

func TestRunBeginsWithTheConfiguredBudget(t *testing.T) {
	a := newServer(t, runsConfig).agent("default")
	a.run("run-9").is(t, 404, "not_found", "fix_request", false)
	a.submit(inRun("op-A", "run-9", "run-3")).is(t, 202, "", "wait", false)
	h := a.run("run-9")
	h.has(t, 0, 3)
	if h.text("deadline") != "2026-03-04T10:00:00.000Z" || h.text("parent_run_id") != "run-3" || h.said["max_attempts"] != 3.0 || h.said["stopped"] != false {
		t.Error("the run reads ", h.Body)
	}
	a.run("run-3").has(t, 0, 3)
}

func TestRunIsLoweredAndNeverRaised(t *testing.T) {
	a := newServer(t, runsConfig).agent("default")
	a.submit(inRun("op-A", "run-9"))
	a.lower("run-9", `{"max_attempts":2}`).has(t, 0, 2)
	a.lower("run-9", `{"deadline":"2026-03-04T09:30:00Z"}`).has(t, 0, 2)
	a.lower("run-9", `{"max_attempts":2,"deadline":"2026-03-04T10:30:00+01:00"}`).has(t, 0, 2) // the same again
	for body, want := range map[string]string{
		`{"max_attempts":3}`:                                        "invalid_request",
		`{"deadline":"2026-03-04T09:30:01Z"}`:                       "invalid_request",
		`{"max_attempts":1,"deadline":"2026-03-04T11:00:00Z"}`:      "invalid_request",
		`{"max_attempts":-1}`:                                       "malformed_json",
		`{"max_attempts":1.5}`:                                      "malformed_json",
		`{"max_attempts":"1"}`:                                      "malformed_json",
		`{"deadline":"soon"}`:                                       "malformed_json",
		`{"used":0}`:                                                "malformed_json",
		`{"max_attempts":1,"max_attempts":9}`:                       "malformed_json",
		`{"parent_run_id":"` + strings.Repeat("p", 129) + `"}`:      "malformed_json",
		`{"max_attempts":9999999999999999999999999999999999999999}`: "malformed_json",
	} {
		a.lower("run-9", body).is(t, 400, want, "fix_request", false)
	}
	h := a.run("run-9")
	h.has(t, 0, 2)
	if h.text("deadline") != "2026-03-04T09:30:00.000Z" {
		t.Error("after what was refused: ", h.Body)
	}
	// A budget may be set before the run begins, and never above the configured one.
	a.lower("run-new", `{"max_attempts":1}`).has(t, 0, 1)
	a.lower("run-high", `{"max_attempts":4}`).is(t, 400, "invalid_request", "fix_request", false)
	a.run("run-high").is(t, 404, "not_found", "fix_request", false)
}

func TestRepeatsOfWhatHasNotEndedSpend(t *testing.T) {
	w := newServer(t, runsConfig)
	a := w.agent("default")
	first := inRun("op-A", "run-9")
	a.submit(first).is(t, 202, "", "wait", false)
	a.submit(inRun("op-B", "run-9")).is(t, 202, "", "wait", false) // a first submission is free
	a.run("run-9").has(t, 0, 3)
	a.submit(first).is(t, 409, "in_progress", "wait", false)
	a.submit(first, "Prefer: respond-async").is(t, 202, "", "wait", false)
	a.another().submit(first).is(t, 409, "in_progress", "wait", false) // whoever repeats it
	// What is refused before it is known as a repeat, and reading, cost nothing.
	a.submit(strings.Replace(first, "4800", "1", 1)).is(t, 409, "request", "stop", true)
	a.get("/v1/operations/op-A")
	h := a.run("run-9")
	h.has(t, 3, 0)
	if got := fmt.Sprint(h.said["by_layer"]); got != "map[repeat:3]" {
		t.Error("it is made of ", got)
	}
	for range 2 {
		h := a.submit(first)
		h.spent(t, "used up its 3 retries")
		if operation, _ := h.said["operation"].(map[string]any); operation["status"] != "ready" || h.text("poll") != "/v1/operations/op-A" {
			t.Error("where the operation stands is not told: ", h.Body)
		}
	}
	a.run("run-9").has(t, 3, 0)
	if o := w.stored("default", "op-A"); o.Version != 1 || o.Status != ledger.Ready {
		t.Error("what was submitted in time is touched: ", o.Status)
	}
}

func TestSpentRunMayReadAndReplay(t *testing.T) {
	w := newServer(t, runsConfig)
	a := w.agent("default")
	a.submit(inRun("op-A", "run-9"))
	a.submit(inRun("op-open", "run-9"))
	a.answer(w.stored("default", "op-A"), receiptFor(w.stored("default", "op-A")))
	a.report("run-9", "http", 3).has(t, 3, 0)
	a.submit(inRun("op-new", "run-9")).spent(t, "used up its 3 retries")
	a.absent("op-new")
	a.submit(inRun("op-open", "run-9")).spent(t, "used up its 3 retries")
	for range 2 {
		a.submit(inRun("op-A", "run-9")).is(t, 200, "", "use_result", true)
	}
	a.get("/v1/operations/op-A").is(t, 200, "", "use_result", true)
	a.get("/v1/operations/op-open").is(t, 200, "", "wait", false)
	if h := a.get("/v1/operations?run_id=run-9"); h.Code != 200 || len(h.said["items"].([]any)) != 2 {
		t.Error("the list of a spent run: ", h.Body)
	}
	// An id that was lost is found again, and leads to the result.
	if got := a.intend(by("reference", "ref-op-A")).gives(t, 200); got != "op-A" {
		t.Error("the intent gave ", got)
	}
	a.submit(inRun("op-elsewhere", "run-10")).is(t, 202, "", "wait", false)
	a.confirm("op-open") // what was taken on goes to its end
	a.submit(inRun("op-open", "run-9")).is(t, 200, "", "use_result", true)
}

func TestAllLayersSpendOneBudget(t *testing.T) {
	w := newServer(t, strings.Replace(runsConfig, "max_attempts: 3", "max_attempts: 100", 1))
	a := w.agent("default")
	a.submit(inRun("op-A", "run-9"))
	used := 0
	for i, layer := range ledger.RunLayers {
		used += i + 1
		a.report("run-9", layer, i+1).has(t, used, 100-used)
	}
	a.submit(inRun("op-A", "run-9"))
	h := a.report("run-9", "http", 10_000) // it happened: it counts, however much it is
	h.has(t, 10_016, 0)
	if got := fmt.Sprint(h.said["by_layer"]); got != "map[http:10001 model:5 repeat:1 tool:2 worker:3 workflow:4]" {
		t.Error("it is made of ", got)
	}
	for _, body := range []string{`{"layer":"repeat","count":1}`, `{"layer":"mark","count":1}`, `{"layer":"http"}`, `{"layer":"http","count":0}`, `{"layer":"http","count":-3}`,
		`{"layer":"http","count":10001}`, `{"count":1}`, `{"layer":"HTTP","count":1}`, `{"layer":"http","count":1,"run_id":"other"}`} {
		a.call(http.MethodPost, "/v1/runs/run-9/attempts", body, "Content-Type: application/json").is(t, 400, "malformed_json", "fix_request", false)
	}
	a.run("run-9").has(t, 10_016, 0)
}

func TestAncestorsBudgetsCount(t *testing.T) {
	a := newServer(t, runsConfig).agent("default")
	a.submit(inRun("op-top", "top"))
	a.submit(inRun("op-mid", "mid", "top"))
	a.submit(inRun("op-low", "low", "mid"))
	a.submit(inRun("op-side", "side", "top"))
	a.submit(inRun("op-low", "low", "mid")).is(t, 409, "in_progress", "wait", false)
	a.report("side", "tool", 1)
	a.run("low").has(t, 1, 2)
	a.run("mid").has(t, 1, 2)
	a.run("side").has(t, 1, 2)
	a.run("top").has(t, 2, 1)
	a.report("mid", "model", 1).has(t, 2, 1)
	// The top is spent: so is everything below it, whatever it has left itself.
	a.run("side").has(t, 1, 2)
	for _, body := range []string{inRun("op-low", "low", "mid"), inRun("op-side", "side", "top"), inRun("op-mid", "mid", "top"), inRun("op-new", "fresh", "low")} {
		a.submit(body).spent(t, "The run top has used up")
	}
	a.absent("op-new")
	a.run("fresh").is(t, 404, "not_found", "fix_request", false)
	// A run can't leave its parent by naming another one, nor go round in a circle.
	a.submit(inRun("op-new", "low", "elsewhere")).spent(t, "The run top")
	a.submit(inRun("op-a", "ring-a", "ring-b")).is(t, 202, "", "wait", false)
	a.submit(inRun("op-b", "ring-b", "ring-a")).is(t, 202, "", "wait", false)
	a.submit(inRun("op-c", "self", "self")).is(t, 202, "", "wait", false)
	a.submit(inRun("op-a", "ring-a")).is(t, 409, "in_progress", "wait", false)
	a.run("ring-a").has(t, 1, 2)
	a.run("ring-b").has(t, 1, 2)
}

func TestRunIsOverAtItsDeadline(t *testing.T) {
	w := newServer(t, runsConfig)
	a := w.agent("default")
	a.submit(inRun("op-A", "run-9"))
	w.pass(59*time.Minute + 59*time.Second)
	a.submit(inRun("op-A", "run-9")).is(t, 409, "in_progress", "wait", false)
	w.pass(time.Second)
	a = w.agent("default")
	a.submit(inRun("op-A", "run-9")).spent(t, "The time of the run run-9 is over")
	a.submit(inRun("op-B", "run-9")).spent(t, "The time of the run run-9 is over")
	h := a.run("run-9")
	if h.Code != 200 || !strings.Contains(h.text("detail"), "is over") {
		t.Error("the run reads ", h.Body)
	}
}

func TestStoppedRunTakesNothing(t *testing.T) {
	w := newServer(t, runsConfig)
	a := w.agent("default")
	sending := a.marked("op-sending") // of no run
	a.submit(inRun("op-ready", "run-9"))
	a.submit(changed("4800", "200000", "ID", "op-asked", `"payload"`, `"run_id":"run-9","payload"`))
	a.submit(changed("ref-ID", "ref-op-ready", "ID", "op-held", `"payload"`, `"run_id":"run-9","payload"`))
	ana := store.Decision{Person: w.person("default", "ana@example.com", "admin"), Reason: "it loops"}
	n, err := w.Store.StopRun(t.Context(), "default", "run-9", ana)
	must(t, err)
	if n != 3 {
		t.Errorf("%d were stopped", n)
	}
	for _, id := range []string{"op-ready", "op-asked", "op-held"} {
		a.get("/v1/operations/"+id).is(t, 200, "run_stopped", "stop", true)
	}
	a.submit(inRun("op-ready", "run-9")).is(t, 200, "run_stopped", "stop", true)
	a.submit(inRun("op-new", "run-9")).spent(t, "stopped by a person")
	a.absent("op-new")
	if h := a.run("run-9"); h.said["stopped"] != true || !strings.Contains(h.text("detail"), "stopped by a person") {
		t.Error("the run reads ", h.Body)
	}
	if after := w.stored("default", "op-sending"); after.Version != sending.Version {
		t.Error("what is no part of the run is touched")
	}
	_, err = w.Store.StopRun(t.Context(), "t1", "run-9", store.Decision{Person: w.person("t1", "eve@example.com", "admin"), Reason: "mine"})
	if err != store.ErrNotFound {
		t.Error("another tenant stops it: ", err)
	}
}

func TestRunsAreTheTenantsOwn(t *testing.T) {
	w := newServer(t, runsConfig)
	mine, theirs := w.agent("t1"), w.agent("t2")
	mine.submit(inRun("op-A", "run-9", "run-3"))
	mine.report("run-9", "http", 19)
	foreign, absent := theirs.run("run-9"), theirs.run("run-none")
	if foreign.Code != 404 || foreign.Body.String() != absent.Body.String() || !sameHeaders(heardWithoutRate(foreign), heardWithoutRate(absent)) {
		t.Errorf("a foreign run is answered %s, an absent one %s", foreign.Body, absent.Body)
	}
	theirs.submit(inRun("op-A", "run-9")).is(t, 202, "", "wait", false)
	theirs.run("run-9").has(t, 0, 20)
	theirs.lower("run-9", `{"max_attempts":0}`).has(t, 0, 0)
	mine.run("run-9").has(t, 19, 1)
	mine.submit(inRun("op-A", "run-9", "run-3")).is(t, 409, "in_progress", "wait", false)
}

// heardWithoutRate leaves out what changes with every request of a token.
func heardWithoutRate(h heard) heard {
	h.Header().Del("RateLimit")
	return h
}

func TestRunsAreReadUnderEveryName(t *testing.T) {
	a := newServer(t, runsConfig).agent("default")
	for i, c := range []struct{ run, path string }{
		{"a b", "a%20b"}, {"a/b", "a%2Fb"}, {"50%", "50%25"}, {"50%25", "50%2525"}, {"a/50%", "a%2F50%25"}, {"lauf-ü", "lauf-%C3%BC"}, {"x?y#z", "x%3Fy%23z"},
	} {
		a.submit(inRun(fmt.Sprint("op-", i), c.run)).is(t, 202, "", "wait", false)
		if h := a.run(c.path); h.Code != 200 || h.text("run_id") != c.run {
			t.Errorf("%q under %s: %d %s", c.run, c.path, h.Code, h.Body)
		}
		a.report(c.path, "http", 1).has(t, 1, 2)
	}
	a.run(strings.Repeat("r", 129)).is(t, 404, "not_found", "fix_request", false)
	a.report(strings.Repeat("r", 129), "http", 1).is(t, 400, "invalid_request", "fix_request", false)
}

// First submissions are free, whatever the budget; the first repeat that there
// is none for is refused, and ends the run.
func TestRunWithoutRetriesEndsWithItsFirstRepeat(t *testing.T) {
	a := newServer(t, runsConfig).agent("default")
	h := a.lower("run-9", `{"max_attempts":0}`)
	h.has(t, 0, 0)
	if !strings.Contains(h.text("detail"), "No retries: the first one is refused, and ends the run.") {
		t.Error("the run reads ", h.Body)
	}
	first := inRun("op-A", "run-9")
	a.submit(first).is(t, 202, "", "wait", false)
	a.submit(inRun("op-B", "run-9")).is(t, 202, "", "wait", false)
	a.run("run-9").has(t, 0, 0)
	for range 2 {
		a.submit(first).spent(t, "The run run-9 has no retries, and something of it was to be repeated")
		a.submit(inRun("op-C", "run-9")).spent(t, "The run run-9 has no retries")
	}
	a.absent("op-C")
	a.run("run-9").has(t, 1, 0) // the one that ended it
	a.confirm("op-A")
	a.submit(first).is(t, 200, "", "use_result", true)
}

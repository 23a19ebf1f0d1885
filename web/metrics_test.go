package web

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"holdfast/store"
	"holdfast/store/ledger"
)

const scrapeToken = "a-token-that-nobody-could-ever-guess"

// scrape reads /metrics as Prometheus does: one line a series, with its labels
// in order. Of a histogram its count and sum are told.
func (w *world) scrape() map[string]float64 {
	w.t.Helper()
	w.MetricsToken = scrapeToken
	answer := w.do(http.MethodGet, "/metrics", "", "Authorization: Bearer "+scrapeToken)
	if answer.Code != http.StatusOK {
		w.t.Fatalf("/metrics: %d %s", answer.Code, answer.Body)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	must(w.t, err)
	all := map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			series := name + labels(m)
			switch family.GetType() {
			case dto.MetricType_GAUGE:
				all[series] = m.GetGauge().GetValue()
			case dto.MetricType_COUNTER:
				all[series] = m.GetCounter().GetValue()
			case dto.MetricType_HISTOGRAM:
				all[name+"_count"+labels(m)] = float64(m.GetHistogram().GetSampleCount())
				all[name+"_sum"+labels(m)] = m.GetHistogram().GetSampleSum()
			}
		}
	}
	return all
}

func labels(m *dto.Metric) string {
	var all []string
	for _, l := range m.GetLabel() {
		all = append(all, l.GetName()+"="+l.GetValue())
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ",") + "}"
}

// told are a ledger's own numbers among those of a scrape, as text.
func told(all map[string]float64, prefixes ...string) string {
	var lines []string
	for _, series := range slices.Sorted(maps.Keys(all)) {
		for _, p := range prefixes {
			if strings.HasPrefix(series, p) {
				lines = append(lines, fmt.Sprint(strings.TrimPrefix(series, "holdfast_"), " ", all[series]))
			}
		}
	}
	return strings.Join(lines, "\n")
}

// troubled is a world in which something of everything has happened, to two
// tenants.
func troubled(t *testing.T) *world {
	w := newServer(t, pagesConfig)
	ana := w.person("default", "ana@example.com", "finance")
	w.askedFor("")
	w.pass(30 * time.Second)
	found := func(o ledger.Operation, id string) ledger.Receipt {
		return ledger.Receipt{ID: id, Amount: &o.Terms.Amount, Currency: o.Terms.Currency, Recipient: o.Terms.Recipient, Reference: o.Terms.Reference, Stamp: o.OrderID}
	}
	bought := w.ask(wanted{})
	receipt := found(bought, "pay_1")
	w.answer(bought, ledger.Answer{Finding: ledger.Found, Receipt: &receipt})
	w.answer(w.ask(wanted{}), ledger.Answer{Finding: ledger.Refused})
	w.lost("")
	looked := w.lost("")
	w.pass(90 * time.Second)
	_, err := w.Store.RecordLook(t.Context(), "default", looked.OperationID, ledger.Look{Finding: ledger.LookFound, Records: []ledger.Receipt{found(looked, "pay_2")}, AskedAt: w.Store.Now()},
		ledger.Holder{Kind: ledger.Reconciler, Name: "lookup"}, time.Hour)
	must(t, err)
	twice := w.held("", true)
	shows(t, w.signIn(ana).act(twice, "happened-twice", "receipt_id", "wire_1", "second_receipt_id", "wire_2", "amount", "48.00", "reason", "both are on the account"), http.StatusSeeOther)
	w.held("", false)
	w.overlapping("")
	other := w.lose(w.ask(wanted{tenant: "other"}))
	if other.Status != ledger.Unknown {
		t.Fatal(other.Status)
	}
	w.pass(time.Minute)
	run := ledger.JobRun{Job: "lookup", Why: ledger.OnCommand, StartedAt: w.Store.Now() - 1000, FinishedAt: w.Store.Now(), LookedAt: 2, Problems: []string{"one"}}
	lease, err := w.Store.BeginJob(t.Context(), run)
	must(t, err)
	must(t, w.Store.EndJob(t.Context(), lease, run))
	return w
}

func TestMetricsAreWhatTheLedgerSays(t *testing.T) {
	w := troubled(t)
	got := w.scrape()
	byStatus, unknown, held := map[string]float64{}, map[string]float64{}, map[string]float64{}
	must(t, w.Store.EachOperation(t.Context(), func(d store.Dossier) error {
		o := d.Operation
		byStatus[fmt.Sprintf("holdfast_operations{rail=%s,status=%s,tenant=%s}", o.Rail, o.Status, o.TenantID)]++
		if o.Status == ledger.Unknown || o.Status == ledger.UnknownHold && o.Attempts > 0 {
			unknown[fmt.Sprintf("holdfast_unknown_operations{action_type=%s,rail=%s,tenant=%s}", o.ActionType, o.Rail, o.TenantID)]++
		}
		if o.Status == ledger.UnknownHold {
			held[fmt.Sprintf("holdfast_held_operations{rail=%s,reason=%s,tenant=%s}", o.Rail, o.Reason, o.TenantID)]++
		}
		return nil
	}))
	for prefix, want := range map[string]map[string]float64{"holdfast_operations{": byStatus, "holdfast_unknown_operations{": unknown, "holdfast_held_operations{": held} {
		maps.DeleteFunc(got, func(series string, n float64) bool { return strings.HasPrefix(series, prefix) && n == 0 })
		if got, want := told(got, prefix), told(want, prefix); got != want || want == "" {
			t.Errorf("%s\n%s\nwant\n%s", prefix, got, want)
		}
	}
	want := `approvals_oldest_age_seconds{tenant=default} 1090.001
approvals_oldest_age_seconds{tenant=other} 0
approvals_waiting{tenant=default} 1
approvals_waiting{tenant=other} 0
attempts_total{outcome=declined,rail=card,tenant=default} 1
attempts_total{outcome=receipt,rail=card,tenant=default} 1
attempts_total{outcome=unknown,rail=card,tenant=default} 2
attempts_total{outcome=unknown,rail=card,tenant=other} 1
attempts_total{outcome=unknown,rail=wire,tenant=default} 2
job_last_run_problems{job=lookup} 1
refunds_owed_minor_units{currency=EUR,direction=we_owe,rail=wire,tenant=default} 4800
refunds_owed_overdue_minor_units{currency=EUR,direction=we_owe,rail=wire,tenant=default} 0
refunds_owed_overdue{currency=EUR,direction=we_owe,rail=wire,tenant=default} 0
refunds_owed{currency=EUR,direction=we_owe,rail=wire,tenant=default} 1
resolution_seconds_count{how=lookup,rail=card,tenant=default} 1
resolution_seconds_count{how=person,rail=wire,tenant=default} 1
resolution_seconds_sum{how=lookup,rail=card,tenant=default} 90
resolution_seconds_sum{how=person,rail=wire,tenant=default} 910.001
store_commit_failures_total{} 0
store_stopped{} 0
unknown_oldest_age_seconds{rail=card,tenant=default} 1060.001
unknown_oldest_age_seconds{rail=card,tenant=other} 60
unknown_oldest_age_seconds{rail=wire,tenant=default} 60
unknown_oldest_age_seconds{rail=wire,tenant=other} 0`
	if got := told(got, "holdfast_approvals", "holdfast_attempts", "holdfast_job_last_run_problems", "holdfast_refunds", "holdfast_resolution", "holdfast_store_commit_failures", "holdfast_store_stopped", "holdfast_unknown_oldest"); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	counts, err := w.Store.Counts(t.Context(), "default")
	must(t, err)
	if counts.Owed["EUR"] != 4800 {
		t.Errorf("the strip says %v", counts)
	}
	if got["holdfast_store_commits_total{}"] < 10 || got["holdfast_job_last_run_timestamp_seconds{job=lookup}"] != float64(w.Store.Now())/1000 {
		t.Error(told(got, "holdfast_store", "holdfast_job"))
	}
}

func TestMetricsOfASecondScrapeGoOn(t *testing.T) {
	w := troubled(t)
	first := w.scrape()
	w.lost("")
	again := w.scrape()
	series := "holdfast_attempts_total{outcome=unknown,rail=card,tenant=default}"
	if again[series] != first[series]+1 {
		t.Errorf("%s went from %v to %v", series, first[series], again[series])
	}
	if n := again["holdfast_http_request_duration_seconds_count{route=/metrics,status=2xx}"]; n != 1 {
		t.Errorf("%v scrapes were counted before this one", n)
	}
	w.do("BREW", "/no/such/"+scrapeToken, "")
	w.do(http.MethodGet, "/operations/secret-id", "")
	for name := range w.scrape() {
		if strings.Contains(name, scrapeToken) || strings.Contains(name, "secret-id") || strings.Contains(name, "BREW") {
			t.Errorf("a caller made the series %s", name)
		}
	}
}

func TestMetricsFollowTheConventions(t *testing.T) {
	w := troubled(t)
	w.scrape()
	found, err := testutil.GatherAndLint(w.meter.registry)
	must(t, err)
	for _, p := range found {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// They name every tenant and its sums: no agent, no neighbour and no page of
// somebody else's may read them.
func TestMetricsAreForWhoeverRunsTheMachine(t *testing.T) {
	one := newServer(t)
	agent, _ := one.token("default", "agent-1", "")
	for _, c := range []struct {
		name, token string
		headers     []string
		want        int
	}{
		{"this machine", "", []string{"From-Address: 127.0.0.1", "Host: localhost:8420"}, 200},
		{"a neighbour", "", nil, 403},
		{"a neighbour that names itself", "", []string{"X-Forwarded-For: 127.0.0.1"}, 403},
		{"a proxy on this machine", "", []string{"From-Address: 127.0.0.1", "Host: localhost", "X-Forwarded-For: 203.0.113.7"}, 403},
		{"a proxy for this machine", "", []string{"From-Address: 127.0.0.1", "Host: localhost", "X-Forwarded-For: 127.0.0.1"}, 403},
		{"another proxy", "", []string{"From-Address: 127.0.0.1", "Host: localhost", "Forwarded: for=203.0.113.7"}, 403},
		{"a name that leads here", "", []string{"From-Address: 127.0.0.1", "Host: rebound.example"}, 403},
		{"an agent", "", []string{"Authorization: Bearer " + agent}, 403},
		{"an agent where there is a token", scrapeToken, []string{"Authorization: Bearer " + agent}, 401},
		{"the token", scrapeToken, []string{"Authorization: Bearer " + scrapeToken}, 200},
		{"a part of the token", scrapeToken, []string{"Authorization: Bearer " + scrapeToken[1:]}, 401},
		{"the token in another scheme", scrapeToken, []string{"Authorization: Basic " + scrapeToken}, 401},
		{"this machine, where there is a token", scrapeToken, []string{"From-Address: 127.0.0.1", "Host: localhost"}, 401},
	} {
		one.MetricsToken = c.token
		target := "/metrics"
		var headers []string
		for _, h := range c.headers {
			if host, ok := strings.CutPrefix(h, "Host: "); ok {
				target = "http://" + host + "/metrics"
				continue
			}
			headers = append(headers, h)
		}
		answer := one.do(http.MethodGet, target, "", headers...)
		if answer.Code != c.want || c.want != 200 && strings.Contains(answer.Body.String(), "default") {
			t.Errorf("%s: %d, want %d: %.80s", c.name, answer.Code, c.want, answer.Body)
		}
	}
	two := newServer(t, pagesConfig)
	if answer := two.do(http.MethodGet, "http://localhost/metrics", "", "From-Address: 127.0.0.1"); answer.Code != 403 || strings.Contains(answer.Body.String(), "other") {
		t.Errorf("a program beside two tenants: %d %s", answer.Code, answer.Body)
	}
	if checkMetricsToken("short") == nil || checkMetricsToken("") != nil || checkMetricsToken(scrapeToken) != nil {
		t.Error("a token is judged wrongly")
	}
}

// What can't be read is told as an error: a number that is missing must not look
// like a zero.
func TestMetricsOfAnUnreadableLedgerAreAnError(t *testing.T) {
	w := newServer(t)
	must(t, w.Store.Close())
	w.MetricsToken = scrapeToken
	if answer := w.do(http.MethodGet, "/metrics", "", "Authorization: Bearer "+scrapeToken); answer.Code != http.StatusInternalServerError {
		t.Errorf("%d %.200s", answer.Code, answer.Body)
	}
}

// The page says what /metrics says, of one tenant alone.
func TestNumbersPageIsOfOneTenant(t *testing.T) {
	w := troubled(t)
	w.ask(wanted{tenant: "other", currency: "JPY"})
	mine := w.signIn(w.person("default", "ben@example.com", "viewer")).get("/rails/numbers")
	shows(t, mine, http.StatusOK, "2 operations are unknown, on 2 rails", "Overlaps another: same reference", "2 unknowns have ended", "Of 6 sends, 4 brought no clear answer at first.",
		"Open on 1 rail, the most: wire, €48.00.")
	theirs := w.signIn(w.person("other", "eve@example.com", "admin")).get("/rails/numbers")
	shows(t, theirs, http.StatusOK, "1 operation is unknown, on 1 rail", "Nothing is held.", "Nothing that was unknown has ended yet.", "Of 1 send, 1 brought no clear answer at first.", "You owe nobody anything.")
	if answer := w.do(http.MethodGet, "/rails/numbers", ""); answer.Code != http.StatusSeeOther {
		t.Errorf("nobody is answered %d", answer.Code)
	}
	all := w.scrape()
	for series, want := range map[string]float64{
		"holdfast_unknown_operations{action_type=pay,rail=card,tenant=default}":                     1,
		"holdfast_unknown_operations{action_type=wire,rail=wire,tenant=default}":                    1,
		"holdfast_unknown_operations{action_type=pay,rail=card,tenant=other}":                       1,
		"holdfast_unknown_operations{action_type=wire,rail=wire,tenant=other}":                      0,
		"holdfast_attempts_total{outcome=unknown,rail=wire,tenant=default}":                         2,
		"holdfast_attempts_total{outcome=unknown,rail=card,tenant=default}":                         2,
		"holdfast_resolution_seconds_count{how=person,rail=wire,tenant=default}":                    1,
		"holdfast_resolution_seconds_count{how=lookup,rail=card,tenant=default}":                    1,
		"holdfast_refunds_owed_minor_units{currency=EUR,direction=we_owe,rail=wire,tenant=default}": 4800,
	} {
		if got, ok := all[series]; !ok || got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
}

// What is answered is what the document lists, and its rules ask for nothing else.
func TestMetricsDocumentListsWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	must(t, err)
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(holdfast_[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
		named[m[1]] = true
	}
	w := troubled(t)
	at := w.Store.Now()
	line := ledger.StatementLine{Number: 1, LineID: "l1", Amount: 1, Gross: 1, Currency: "EUR", At: at}
	_, err = w.Store.ImportStatement(t.Context(), store.StatementFile{TenantID: "default", Rail: "card", Name: "a", SHA256: "a",
		Statement: ledger.Statement{Format: "CSV", Currency: "EUR", From: at, To: at + 1, Lines: []ledger.StatementLine{line}}})
	must(t, err)
	w.scrape()
	families, err := w.meter.registry.Gather()
	must(t, err)
	there := map[string]bool{}
	for _, f := range families {
		if name := f.GetName(); strings.HasPrefix(name, "holdfast_") {
			there[name] = true
			if !named[name] {
				t.Errorf("docs/metrics.md does not list %s", name)
			}
		}
	}
	for _, name := range regexp.MustCompile(`holdfast_[a-z_]+`).FindAllString(string(text), -1) {
		if !there[name] {
			t.Errorf("docs/metrics.md speaks of %s, which is not there", name)
		}
	}
}

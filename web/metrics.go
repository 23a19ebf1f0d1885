package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"holdfast/store"
	"holdfast/store/ledger"
)

// readFor is how long one scrape may read the ledger; Prometheus waits for ten
// seconds by default.
const readFor = 8 * time.Second

// meter measures this process, and reads the ledger when it is asked.
type meter struct {
	registry *prometheus.Registry
	tally    *store.Tally
	requests *prometheus.HistogramVec
}

func newMeter(s *Server) *meter {
	m := &meter{registry: prometheus.NewRegistry(), tally: s.Store.NewTally(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "holdfast_http_request_duration_seconds",
			Help:    "How long requests took, by route and class of status. A call that waits for an outcome counts its waiting.",
			Buckets: []float64{.005, .025, .1, .5, 2.5, 10, 60}}, []string{"route", "status"})}
	m.registry.MustRegister(m.requests, &ledgerCollector{s, m.tally},
		collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled()),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// observe counts a request under the pattern of its route: what a caller wrote
// into an address or invented as a method never becomes a label.
func (m *meter) observe(c echo.Context, took time.Duration) {
	route := c.Path()
	if route == "" {
		route = "other"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(c.Response().Status/100)+"xx").Observe(took.Seconds())
}

// routeMetrics wires what Prometheus reads.
func (s *Server) routeMetrics(e *echo.Echo) {
	// One at a time: whoever asks twice at once does not read the ledger twice.
	numbers := promhttp.HandlerFor(s.meter.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 1})
	e.GET("/metrics", func(c echo.Context) error {
		if status, why := s.mayScrape(c.Request()); status != 0 {
			if status == http.StatusUnauthorized {
				c.Response().Header().Set("WWW-Authenticate", "Bearer")
			}
			return c.String(status, why+"\n")
		}
		numbers.ServeHTTP(c.Response(), c.Request())
		return nil
	})
}

// ledgerCollector reads the ledger at the time of the scrape: no counter of this
// process can differ from it, and a restart loses nothing.
type ledgerCollector struct {
	s     *Server
	tally *store.Tally
}

// emit hands over one value with its labels, in the order of the description.
type emit func(d *prometheus.Desc, value float64, labels ...string)

// sources are the places that numbers come from. Another one is one more line.
var sources = []struct {
	descs []*prometheus.Desc
	read  func(*ledgerCollector, context.Context, chan<- prometheus.Metric, emit) error
}{
	{[]*prometheus.Desc{unknownNow, unknownAge, heldNow, askedNow, askedAge, owedNow, owedMoney, owedLate, owedLateMoney}, (*ledgerCollector).open},
	{[]*prometheus.Desc{linesOpen}, (*ledgerCollector).statements},
	{[]*prometheus.Desc{statusNow, attemptsEnded, resolution}, (*ledgerCollector).happened},
	{[]*prometheus.Desc{jobRun, jobProblems}, (*ledgerCollector).jobs},
	{[]*prometheus.Desc{queued, commits, commitsLost, writerStopped}, (*ledgerCollector).writer},
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("holdfast_"+name, help, labels, nil)
}

var (
	unknownNow    = describe("unknown_operations", "Operations that were sent and may or may not have happened, looked for or held.", "tenant", "rail", "action_type")
	unknownAge    = describe("unknown_oldest_age_seconds", "For how long the oldest of the unknown operations has been so; 0 where there is none.", "tenant", "rail")
	heldNow       = describe("held_operations", "Operations that wait for a person to settle them, by reason; those that were sent are unknown too.", "tenant", "rail", "reason")
	askedNow      = describe("approvals_waiting", "Operations that wait for approval.", "tenant")
	askedAge      = describe("approvals_oldest_age_seconds", "How long ago the oldest operation that waits for approval was submitted; 0 where none waits.", "tenant")
	owedNow       = describe("refunds_owed", "Entries of the refund ledger with something open. we_owe and owed_to_us are never netted.", "tenant", "rail", "currency", "direction")
	owedMoney     = describe("refunds_owed_minor_units", "Money open in the refund ledger, in minor units of the currency of the label.", "tenant", "rail", "currency", "direction")
	owedLate      = describe("refunds_owed_overdue", "Entries of the refund ledger that are past the day they were due.", "tenant", "rail", "currency", "direction")
	owedLateMoney = describe("refunds_owed_overdue_minor_units", "Money open past the day it was due, in minor units of the currency of the label.", "tenant", "rail", "currency", "direction")

	linesOpen = describe("statement_lines_unmatched", "Lines of statements that no operation explains and nobody answered, suggestions among them.", "tenant", "rail", "account")

	statusNow     = describe("operations", "Operations by status, since the ledger began.", "tenant", "rail", "status")
	attemptsEnded = describe("attempts_total", "Sends that ended, by what was known when the operation left in_flight.", "tenant", "rail", "outcome")
	resolution    = describe("resolution_seconds", "From unknown to confirmed or rejected, by what brought it about.", "tenant", "rail", "how")

	jobRun      = describe("job_last_run_timestamp_seconds", "When a job ended last.", "job")
	jobProblems = describe("job_last_run_problems", "Problems that the last run of a job met.", "job")

	queued        = describe("store_changes_waiting", "Changes that wait for the writer.")
	commits       = describe("store_commits_total", "Groups of changes that this process tried to commit.")
	commitsLost   = describe("store_commit_failures_total", "Groups of changes that could not be committed.")
	writerStopped = describe("store_stopped", "1 when a commit left it open whether it was kept: the process must be started anew.")
)

// Describe implements [prometheus.Collector].
func (l *ledgerCollector) Describe(to chan<- *prometheus.Desc) {
	for _, s := range sources {
		for _, d := range s.descs {
			to <- d
		}
	}
}

// Collect implements [prometheus.Collector]. What could not be read is an error
// of the whole scrape: a missing number must not look like a zero.
func (l *ledgerCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readFor)
	defer cancel()
	one := func(d *prometheus.Desc, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if d == attemptsEnded || d == commits || d == commitsLost {
			kind = prometheus.CounterValue
		}
		to <- prometheus.MustNewConstMetric(d, kind, value, labelsOf(labels)...)
	}
	for _, s := range sources {
		if err := s.read(l, ctx, to, one); err != nil {
			l.s.Log.Warn("the ledger could not be measured", "error", err)
			to <- prometheus.NewInvalidMetric(s.descs[0], err)
		}
	}
}

// labelsOf makes text fit for a label, whatever was stored.
func labelsOf(all []string) []string {
	for i, l := range all {
		all[i] = strings.ToValidUTF8(l, "\uFFFD")
	}
	return all
}

func (l *ledgerCollector) open(ctx context.Context, _ chan<- prometheus.Metric, one emit) error {
	tenants, err := l.s.Store.EveryTenant(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		n, err := l.s.Store.Numbers(ctx, tenant)
		if err != nil {
			return err
		}
		l.openOf(n, one)
		for _, o := range n.Owed {
			one(owedNow, float64(o.N), tenant, o.Rail, o.Currency, o.Direction)
			one(owedMoney, float64(o.Amount), tenant, o.Rail, o.Currency, o.Direction)
			one(owedLate, float64(o.Overdue), tenant, o.Rail, o.Currency, o.Direction)
			one(owedLateMoney, float64(o.Late), tenant, o.Rail, o.Currency, o.Direction)
		}
	}
	return nil
}

// openOf adds up what is open of a tenant. What is configured and has nothing
// unknown is told as zero, so that a number is seen to fall.
func (l *ledgerCollector) openOf(n ledger.Numbers, one emit) {
	type route struct{ rail, action string }
	type hold struct{ rail, reason string }
	unknown, oldest, held := map[route]int{}, map[string]int64{}, map[hold]int{}
	rules := l.s.Store.Rulebook(n.TenantID)
	for action, rail := range rules.Routes {
		unknown[route{rail.Name, action}] = 0
	}
	for rail := range rules.Rails {
		oldest[rail] = n.At
	}
	asked, askedSince := 0, n.At
	for _, c := range n.Open {
		if c.Unclear() {
			unknown[route{c.Rail, c.ActionType}] += c.N
			if was, ok := oldest[c.Rail]; !ok || c.Since < was {
				oldest[c.Rail] = c.Since
			}
		}
		if c.Status == ledger.UnknownHold {
			held[hold{c.Rail, string(c.Reason)}] += c.N
		}
		if c.Status == ledger.AwaitingApproval {
			asked += c.N
			askedSince = min(askedSince, c.CreatedAt)
		}
	}
	for of, count := range unknown {
		one(unknownNow, float64(count), n.TenantID, of.rail, of.action)
	}
	for rail, since := range oldest {
		one(unknownAge, seconds(max(0, n.At-since)), n.TenantID, rail)
	}
	for of, count := range held {
		one(heldNow, float64(count), n.TenantID, of.rail, of.reason)
	}
	one(askedNow, float64(asked), n.TenantID)
	one(askedAge, seconds(n.At-askedSince), n.TenantID)
}

// statements tells of every account that has statements, also where nothing is open.
func (l *ledgerCollector) statements(ctx context.Context, _ chan<- prometheus.Metric, one emit) error {
	tenants, err := l.s.Store.EveryTenant(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		accounts, err := l.s.Store.UnmatchedLines(ctx, tenant)
		if err != nil {
			return err
		}
		for _, a := range accounts {
			one(linesOpen, float64(a.N), tenant, a.Rail, a.Account)
		}
	}
	return nil
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }

// happened tells what the log adds up to. The first scrape of a large ledger
// reads all of it; where its time ends before, the next one goes on from there.
func (l *ledgerCollector) happened(ctx context.Context, to chan<- prometheus.Metric, one emit) error {
	if err := l.tally.CatchUp(ctx); err != nil {
		return err
	}
	h := l.tally.All()
	for _, c := range h.Statuses {
		one(statusNow, float64(c.N), c.TenantID, c.Rail, string(c.Status))
	}
	for _, c := range h.Attempts {
		one(attemptsEnded, float64(c.N), c.TenantID, c.Rail, string(c.Outcome))
	}
	for _, c := range h.Resolved {
		buckets, below := map[float64]uint64{}, uint64(0)
		for i, step := range ledger.ResolutionSteps {
			below += uint64(c.Spread.Steps[i])
			buckets[step.Seconds()] = below
		}
		to <- prometheus.MustNewConstHistogram(resolution, uint64(c.Spread.N), seconds(c.Spread.Sum), buckets,
			labelsOf([]string{c.TenantID, c.Rail, string(c.How)})...)
	}
	return nil
}

func (l *ledgerCollector) jobs(ctx context.Context, _ chan<- prometheus.Metric, one emit) error {
	runs, err := l.s.Store.LastRuns(ctx)
	if err != nil {
		return err
	}
	for _, r := range runs {
		one(jobRun, seconds(r.FinishedAt), r.Job)
		one(jobProblems, float64(len(r.Problems)), r.Job)
	}
	return nil
}

func (l *ledgerCollector) writer(_ context.Context, _ chan<- prometheus.Metric, one emit) error {
	h := l.s.Store.WriterHealth()
	one(queued, float64(h.Waiting))
	one(commits, float64(h.Commits))
	one(commitsLost, float64(h.Lost))
	stopped := 0.0
	if h.Stopped {
		stopped = 1
	}
	one(writerStopped, stopped)
	return nil
}

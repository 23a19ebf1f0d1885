package dispatch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// configBuilder makes the rules and rails that a file describes, and finds what
// only shows when its parts are seen together.
type configBuilder struct {
	*findings
	around surroundings
}

var (
	tenantName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
	railName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`) // part of addresses
)

// defaultJobs are when the scheduled jobs run, and the only jobs there are.
var defaultJobs = map[string]string{
	"sweep":      "@every 15s",
	"lookup":     "@every 30s",
	"events":     "@every 30s",
	"statements": "@every 10m",
	"refunds":    "0 7 * * *", // before the office opens
	"seal":       "@every 1m",
	"notify":     "@every 10s",
	"recheck":    "30 3 * * *", // while nobody pays
}

func (b *configBuilder) config(text configText) *Config {
	c := &Config{Tenants: map[string]*Tenant{}, Jobs: b.jobs(text.Jobs)}
	c.Limits.RequestsPerSecond = b.count("limits.requests_per_second", text.Limits.RequestsPerSecond, 200)
	c.Timing = ledger.Timing{
		Lease:      b.length("timing.lease", text.Timing.Lease, 30*time.Second, time.Second),
		UnknownFor: b.length("timing.unknown_for", text.Timing.UnknownFor, time.Hour, time.Second),
		TakeBack:   b.length("timing.take_back", text.Timing.TakeBack, 0, 0),
	}
	c.Tenants[DefaultTenant] = b.tenant("", text.tenantText, c.Timing)
	for _, name := range sortedKeys(text.Tenants) {
		key := "tenants." + name
		switch {
		case name == DefaultTenant:
			b.add(key, "stands at the top of the file, not under tenants")
		case !tenantName.MatchString(name):
			b.add(key, "name it with 1 to 63 of a-z 0-9 -")
		default:
			c.Tenants[name] = b.tenant(key+".", text.Tenants[name], c.Timing)
		}
	}
	return c
}

func (b *configBuilder) jobs(given map[string]string) map[string]string {
	jobs := map[string]string{}
	for name, spec := range defaultJobs {
		jobs[name] = spec
	}
	for _, name := range sortedKeys(given) {
		key, spec := "jobs."+name, given[name]
		if _, known := defaultJobs[name]; !known {
			b.add(key, "%s", strings.Replace(unknownKey(name, sortedKeys(defaultJobs)), "unknown key", "unknown job", 1))
			continue
		}
		if err := checkSchedule(spec, b.around.now()); err != nil {
			b.foreign(key, fmt.Sprintf("%q %v", spec, err))
		}
		jobs[name] = spec
	}
	return jobs
}

func checkSchedule(spec string, now time.Time) error {
	const form = `is no schedule; write one such as "@every 30s" or "0 7 * * *"`
	if every, ok := strings.CutPrefix(spec, "@every "); ok {
		if d, err := time.ParseDuration(every); err != nil || d < time.Second {
			return fmt.Errorf("%s, not more often than once a second", form)
		}
	}
	zoned := strings.HasPrefix(spec, "TZ=") || strings.HasPrefix(spec, "CRON_TZ=")
	if zoned && !strings.Contains(spec, " ") { // the cron package cannot take it
		return fmt.Errorf("%s", form)
	}
	schedule, err := ParseSchedule(spec)
	if err != nil {
		return fmt.Errorf("%s", form)
	}
	if schedule.Next(now).IsZero() {
		return fmt.Errorf("is a day that never comes")
	}
	return nil
}

// length is a duration that was given, or its default.
func (b *configBuilder) length(key string, d rail.Duration, otherwise, least time.Duration) time.Duration {
	switch got := d.Or(otherwise); {
	case d == rail.Never():
		b.add(key, "cannot be never")
	case got < least:
		b.add(key, "is shorter than %s", least)
	default:
		return got
	}
	return otherwise
}

// count is a number of at least one that was given, or its default.
func (b *configBuilder) count(key string, n *int, otherwise int) int {
	switch {
	case n == nil:
		return otherwise
	case *n < 1:
		b.foreign(key, fmt.Sprintf("%d is less than 1", *n))
		return otherwise
	}
	return *n
}

// tenant builds one tenant's part; at is where its keys begin: "" or "tenants.NAME.".
func (b *configBuilder) tenant(at string, text tenantText, timing ledger.Timing) *Tenant {
	t := &Tenant{
		Rulebook: &ledger.Rulebook{
			Actions: map[string]*ledger.ActionType{}, Rails: map[string]ledger.Rail{}, Routes: map[string]ledger.Rail{},
			Currencies: b.currencies(at, text.Currencies), Timing: timing,
			Runs: ledger.RunLimits{
				MaxAttempts: b.count(at+"runs.max_attempts", text.Runs.MaxAttempts, 20),
				MaxElapsed:  b.length(at+"runs.max_elapsed", text.Runs.MaxElapsed, 24*time.Hour, time.Second),
			},
		},
		Rails: map[string]*rail.Rail{}, Routes: map[string]*rail.Rail{}, RailConfigs: map[string]rail.Config{},
	}
	for _, name := range sortedKeys(text.Rails) {
		b.rail(at, name, text.Rails[name], t)
	}
	for _, name := range sortedKeys(text.ActionTypes) {
		b.action(at, name, text, t)
	}
	b.policy(at, text, t)
	t.Notify = b.notify(at+"notify", text.Notify)
	return t
}

func (b *configBuilder) currencies(at string, given map[string]int) ledger.Currencies {
	for _, code := range sortedKeys(given) {
		if err := (ledger.Currencies{code: given[code]}).Check(); err != nil {
			_, message, _ := strings.Cut(err.Error(), ": ")
			b.foreign(at+"currencies."+code, message)
		}
	}
	return given
}

func (b *configBuilder) rail(at, name string, c rail.Config, t *Tenant) {
	key := at + "rails." + name
	if !railName.MatchString(name) {
		b.add(key, "name it with 1 to 63 of A-Z a-z 0-9 _ -")
		return
	}
	if _, known := rail.ProfileNamed(c.Profile); !known && c.Profile != "" {
		b.foreign(key+".profile", noProfile(c.Profile))
		return
	}
	c.Digits = t.Rulebook.Currencies.Digits
	r, err := rail.New(name, c, b.around.now)
	for _, e := range each(err) {
		rest, message := afterRail(e, name)
		b.foreign(key+"."+rest, message)
	}
	if err != nil {
		return
	}
	t.Rails[name], t.RailConfigs[name], t.Rulebook.Rails[name] = r, r.Config(), r.Promise()
}

// afterRail takes "rails.card.send.path: is missing" apart into send.path and
// the rest.
func afterRail(err error, name string) (key, message string) {
	key, message, _ = strings.Cut(strings.TrimPrefix(err.Error(), "rails."+name+"."), ": ")
	return key, message
}

// action builds one action type and the way to its rail.
func (b *configBuilder) action(at, name string, text tenantText, t *Tenant) {
	key, a := at+"action_types."+name, text.ActionTypes[name]
	spec := ledger.ActionSpec{
		Rail: a.Rail, Effect: a.Effect, Schema: a.Schema.json, Repeatable: a.Repeatable, Mode: a.Mode,
		Overlap:   ledger.OverlapSpec{Mode: a.Overlap.Mode},
		Cacheable: b.length(key+".cacheable", a.Cacheable, 0, 0),
	}
	if a.Overlap.Window != (rail.Duration{}) {
		spec.Overlap.Window = b.length(key+".overlap.window", a.Overlap.Window, 0, time.Second)
	}
	if a.Refund != nil {
		spec.Refund = &ledger.RefundSpec{ActionType: a.Refund.ActionType, Payload: a.Refund.Payload}
		if _, known := text.ActionTypes[a.Refund.ActionType]; !known && a.Refund.ActionType != "" {
			b.unknown(key+".refund.action_type", "action type", a.Refund.ActionType, sortedKeys(text.ActionTypes))
		}
	}
	if a.Rail != "" {
		if _, known := text.Rails[a.Rail]; !known {
			b.unknown(key+".rail", "rail", a.Rail, sortedKeys(text.Rails))
		}
	}
	if len(a.Schema.json) == 0 {
		b.add(key+".schema", "is missing; name a file with a JSON Schema, or write one here")
		spec.Schema = []byte(`{"type":"object"}`) // so that the rest is judged as well
	}
	action, err := ledger.NewActionType(name, spec, t.Rulebook.Currencies)
	for _, e := range each(err) {
		b.actionFault(key, a.Schema.file, e)
	}
	b.route(key, name, a, action, t)
	t.Rulebook.Actions[name] = action
}

// actionWords are how an action type's errors begin, and the keys they are
// about. All others are about the schema.
var actionWords = [][2]string{
	{"name it with", ""}, {"say which rail", ".rail"}, {"overlap mode", ".overlap.mode"}, {"the overlap window", ".overlap.window"},
	{"mode ", ".mode"}, {"cacheable", ".cacheable"}, {"a refund", ".refund"}, {"refund payload", ".refund.payload"},
}

func (b *configBuilder) actionFault(key, file string, err error) {
	e, ok := err.(*ledger.SchemaError)
	switch {
	case !ok:
		b.foreign(key+".schema", err.Error())
	case e.Pointer == "":
		place, message := ".schema", strings.TrimPrefix(e.Message, "schema: ")
		if file != "" {
			message = file + ": " + message
		}
		for _, w := range actionWords {
			if strings.HasPrefix(e.Message, w[0]) {
				place, message = w[1], e.Message
			}
		}
		b.foreign(key+place, message)
	case file != "":
		b.foreign(key+".schema", file+", "+e.Pointer+": "+e.Message)
	default:
		b.foreign(key+".schema"+strings.NewReplacer("/", ".", "~1", "/", "~0", "~").Replace(e.Pointer), e.Message)
	}
}

// route is the action type's rail as it speaks to it.
func (b *configBuilder) route(key, name string, a actionText, action *ledger.ActionType, t *Tenant) {
	r := t.Rails[a.Rail]
	if r == nil || action == nil {
		return // reported already
	}
	route, err := r.For(action.Effect, a.Override)
	for _, e := range each(err) {
		rest, message := afterRail(e, a.Rail)
		block, _, _ := strings.Cut(rest, ".")
		block, _, _ = strings.Cut(block, "[")
		if !slices.Contains([]string{"send", "answers", "receipt", "lookup"}, block) {
			// The rail's own key, which does not go with what stands here.
			b.foreign(key, fmt.Sprintf("with rails.%s.%s: %s", a.Rail, rest, message))
			continue
		}
		b.foreign(key+"."+rest, message)
	}
	if err != nil {
		return
	}
	t.Routes[name], t.Rulebook.Routes[name] = route, route.Promise()
}

func (b *configBuilder) unknown(key, what, name string, known []string) {
	hint := "there is none"
	if len(known) > 0 {
		hint = "there are " + strings.Join(known, ", ")
	}
	b.foreign(key, fmt.Sprintf("%q is no %s here; %s", name, what, hint))
}

// connectSandboxes leads the rails whose provider is started by this program to
// where it listens. What they promise, and what approvals are bound to, stays
// the same wherever that is.
func (b *configBuilder) connectSandboxes(c *Config) {
	for _, tenant := range sortedKeys(c.Tenants) {
		t := c.Tenants[tenant]
		for _, name := range sortedKeys(t.RailConfigs) {
			if given := t.RailConfigs[name]; given.Adapter != rail.AdapterSandbox || given.BaseURL != "" {
				continue
			}
			key := "rails." + name
			if tenant != DefaultTenant {
				key = "tenants." + tenant + "." + key
			}
			if err := b.connect(t, tenant, name); err != nil {
				b.add(key, "%v", err)
			}
		}
	}
}

func (b *configBuilder) connect(t *Tenant, tenant, name string) (err error) {
	address := nobody
	if b.around.sandbox != nil {
		dedupe := t.Rails[name].Promise().Dedupe.By == ledger.DedupeKey
		if address, err = b.around.sandbox(tenant, name, dedupe); err != nil {
			return err
		}
	}
	if t.Rails[name], err = t.Rails[name].At(address); err != nil {
		return err
	}
	for action, route := range t.Routes {
		if route.Promise().Name != name {
			continue
		}
		if t.Routes[action], err = route.At(address); err != nil {
			return err
		}
	}
	return nil
}

package rail

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/store/ledger"
)

const (
	amountsMinor   = "minor"
	amountsDecimal = "decimal"
	bodyPayload    = "payload"
	bodyNone       = "none"

	scopeAccount    = "account"
	scopeCredential = "credential"
)

// methods are those that may act.
var methods = []string{"POST", "PUT", "PATCH", "DELETE"}

// ownHeaders are written by this package: a second one would let two readers
// of the request see two requests.
var ownHeaders = []string{"host", "content-length", "transfer-encoding", "connection", "keep-alive",
	"accept-encoding", "te", "trailer", "upgrade", "expect", "proxy-authorization", "proxy-connection"}

// longestTimeout is the longest wait for one answer.
const longestTimeout = time.Hour

// findings collects what is wrong with a configuration, each with its key.
type findings struct {
	rail string
	errs []error
}

func (f *findings) add(key, format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("rails.%s.%s: "+format, append([]any{f.rail, key}, args...)...))
}

// check adds err under the key, if there is one.
func (f *findings) check(key string, err error) {
	if err != nil {
		f.add(key, "%w", err)
	}
}

// build checks a configuration, fills in its defaults and makes the rail that
// it describes, as far as it is not shared with others.
func build(name string, c Config, effect string, now func() time.Time) (*Rail, error) {
	r := &Rail{name: name, given: c, now: now}
	f := &findings{rail: name}
	switch c.Adapter {
	case AdapterHTTP:
	case AdapterSandbox:
		c = c.withSandboxWays(effect)
	case AdapterStripe:
		c = f.stripe(r, c, effect)
	case AdapterSMTP:
		return f.buildMail(r, c)
	default:
		f.add("adapter", "%q is not one of http, stripe, smtp, sandbox", c.Adapter)
		return nil, f.errs[0]
	}
	c = c.filled()
	f.onlyMail(c)
	f.sendAndLookup(r, &c)
	f.answers(c)
	f.keys(c)
	f.numbers(c)
	f.receipt(c)
	f.furnishings(c)
	f.headers(r, c)
	f.auth(r, c)
	base, err := parseBase(c.BaseURL)
	f.check("base_url", err)
	r.base = base
	f.tls(r, c)
	if len(f.errs) > 0 {
		return nil, errors.Join(f.errs...)
	}
	r.config, r.adapter = c, overHTTP{}
	r.origin = base.Scheme + "://" + base.Host
	r.dial = newTarget(base, c.AllowPrivate)
	r.masker = newMasker(r.secret, c.Auth.password())
	r.promise = c.promise(name, base)
	return r, nil
}

func (f *findings) sendAndLookup(r *Rail, c *Config) {
	var err error
	if !slices.Contains(methods, c.Send.Method) {
		f.add("send.method", "%q is not one of %s", c.Send.Method, strings.Join(methods, ", "))
	}
	if c.Send.Body != bodyPayload && c.Send.Body != bodyNone {
		f.add("send.body", "%q is not one of %s, %s", c.Send.Body, bodyPayload, bodyNone)
	}
	if contentTypes[c.Send.Encoding] == "" {
		f.add("send.encoding", "%q is not one of %s, %s", c.Send.Encoding, encodingJSON, encodingForm)
	}
	if c.Send.Path != "" {
		r.sendPath, err = parseTemplate(c.Send.Path)
		f.check("send.path", err)
		if r.sendPath.asks("receipt_id") {
			f.add("send.path", "{receipt_id} is not known before something was sent")
		}
		if r.sendPath.asks("first_sent_at") {
			f.add("send.path", "{first_sent_at} is not known before something was sent")
		}
	}
	if c.Lookup.Path == "" {
		if c.Lookup.given() {
			f.add("lookup.path", "is missing")
		}
		return
	}
	r.lookupPath, err = parseTemplate(c.Lookup.Path)
	f.check("lookup.path", err)
	asksBy := r.lookupPath.asks
	if asksBy("order_id") && c.Stamp.Body == "" && c.Stamp.Header == "" {
		f.add("lookup.path", "asks by {order_id}, which no request carries: give a stamp, or ask by something else")
	}
	if asksBy("provider_key") && c.Dedupe.Header == "" && c.Dedupe.Body == "" {
		f.add("lookup.path", "asks by {provider_key}, which no request carries: give dedupe a header or a body member, or ask by something else")
	}
	if asksBy("operation_id") && c.Lookup.AbsenceProvesAfter.Or(0) > 0 {
		f.add("lookup.absence_proves_after", "cannot be proof for a look-up by {operation_id}, which no request carries")
	}
	if err == nil && !slices.ContainsFunc(r.lookupPath.parts, func(p part) bool { return p.name != "" }) {
		f.add("lookup.path", "names no placeholder such as {order_id}, so its answer would not be about one operation")
	}
	if asksBy("first_sent_at") && c.Stamp.Body == "" && c.Receipt.Stamp == "" {
		f.add("lookup.path", "lists whatever was made since {first_sent_at}, where ours is known by its stamp only: give stamp.body or receipt.stamp")
	}
	f.pages(*r, c.Lookup)
	if c.Lookup.Items != "" {
		f.check("lookup.items", checkPointer(c.Lookup.Items))
	}
	if c.Receipt.ID == "" {
		f.add("receipt.id", "is missing; a look-up needs it to tell one record from another")
	}
	if c.Lookup.Lag.never {
		f.add("lookup.lag", "cannot be never")
	}
}

func (f *findings) answers(c Config) {
	if len(c.Answers) == 0 {
		f.add("answers", "is empty; leave it out for the default rows")
	}
	for i, row := range c.Answers {
		key := func(rest string) string { return fmt.Sprintf("answers[%d].%s", i, rest) }
		if !slices.Contains(meanings, row.Means) {
			f.add(key("means"), "%q is not one of %s", row.Means, strings.Join(meanings, ", "))
		}
		if len(row.Status) == 0 {
			f.add(key("status"), "is missing; list the status codes that the row is for")
		}
		for _, status := range row.Status {
			switch {
			case status < 200 || status > 599:
				f.add(key("status"), "%d is not the status of an answer", status)
			case status >= 500 && (row.Means == meansConfirmed || row.Means == meansRejected || row.Means == meansNotSent && status != 503):
				f.add(key("status"), "%d is a fault of the provider, which proves nothing; it cannot mean %s", status, row.Means)
			case status >= 300 && row.Means == meansConfirmed && row.Receipt == nil && c.Receipt.ID == "":
				f.add(key("receipt"), "is missing; an answer of %d confirms only by the record it holds: say where that stands", status)
			}
		}
		f.rowReceipt(i, row, c.Receipt)
		for _, pointer := range slices.Sorted(maps.Keys(row.Body)) {
			f.check(key("body"), checkPointer(pointer))
			for _, want := range oneOf(row.Body[pointer]) {
				f.check(key("body."+pointer), checkScalar(want))
			}
			if len(oneOf(row.Body[pointer])) == 0 {
				f.add(key("body."+pointer), "is an empty list, which nothing fits")
			}
		}
		for _, name := range slices.Sorted(maps.Keys(row.Header)) {
			if !isToken(name) {
				f.add(key("header"), "%q is not the name of a header", name)
			}
		}
	}
}

// rowReceipt looks at a row's own place for the record. What the rail compares
// must be there too, or every such record would count as differing.
func (f *findings) rowReceipt(i int, row AnswerRow, of Receipt) {
	if row.Receipt == nil {
		return
	}
	p, key := row.Receipt, fmt.Sprintf("answers[%d].receipt", i)
	if row.Means != meansConfirmed && row.Means != meansPending {
		f.add(key, "is read only where the row means confirmed or pending")
	}
	for _, m := range [][3]string{{"id", p.ID, "/"}, {"amount", p.Amount, of.Amount}, {"currency", p.Currency, of.Currency},
		{"recipient", p.Recipient, of.Recipient}, {"stamp", p.Stamp, of.Stamp}, {"reference", p.Reference, of.Reference}} {
		name, here, there := m[0], m[1], m[2]
		switch {
		case here != "":
			f.check(key+"."+name, checkPointer(here))
		case there != "":
			f.add(key+"."+name, "is missing; it is compared on this rail")
		}
	}
	if p.Amounts != "" && p.Amounts != amountsMinor && p.Amounts != amountsDecimal {
		f.add(key+".amounts", "%q is not one of %s, %s", p.Amounts, amountsMinor, amountsDecimal)
	}
}

func checkScalar(v any) error {
	switch v.(type) {
	case []any, map[string]any:
		return errors.New("must be compared with a text, a number, true, false or null")
	}
	if _, err := ledger.Canonical(v); err != nil {
		return errors.New("must be compared with a text, a number that is exact, true, false or null")
	}
	return nil
}

func (f *findings) keys(c Config) {
	d := c.Dedupe
	switch ledger.DedupeBy(d.By) {
	case ledger.DedupeKey:
		if (d.Header == "") == (d.Body == "") {
			f.add("dedupe", "by: key needs either header: or body:, the place where the key goes")
		}
	case ledger.DedupeNatural, ledger.DedupeNone:
		if d.Header != "" || d.Body != "" {
			f.add("dedupe.by", "%q sends no key; leave out header and body, or write by: key", d.By)
		}
	default:
		f.add("dedupe.by", "%q is not one of key, natural, none", d.By)
	}
	if d.Scope != "" && d.Scope != scopeAccount && d.Scope != scopeCredential {
		f.add("dedupe.scope", "%q is not one of %s, %s", d.Scope, scopeAccount, scopeCredential)
	}
	if m := d.ReplayMarker; m != (Marker{}) && (!isToken(m.Header) || checkHeaderValue(m.Value) != nil) {
		f.add("dedupe.replay_marker", "needs the name of a header and its value, such as { header: Idempotent-Replayed, value: \"true\" }")
	}
	if d.Retention.never {
		f.add("dedupe.retention", "cannot be never; write how long the provider documents that it keeps a key")
	}
	if c.Stamp.Body != "" && c.Stamp.Header != "" {
		f.add("stamp", "has both body and header; give one place")
	}
	for key, pointer := range map[string]string{"dedupe.body": d.Body, "stamp.body": c.Stamp.Body} {
		if pointer == "" {
			continue
		}
		f.check(key, checkPointer(pointer))
		if c.Send.Body == bodyNone {
			f.add(key, "has no body to go into: send.body is none")
		}
	}
	if d.Body != "" && c.Stamp.Body != "" && (strings.HasPrefix(d.Body+"/", c.Stamp.Body+"/") || strings.HasPrefix(c.Stamp.Body+"/", d.Body+"/")) {
		f.add("stamp.body", "stands in the place of dedupe.body")
	}
}

func (f *findings) numbers(c Config) {
	for _, n := range []struct {
		key   string
		value int
		least int
	}{
		{"limits.concurrency", *c.Limits.Concurrency, 1},
		{"limits.max_attempts", *c.Limits.MaxAttempts, 1},
		{"limits.quota", *c.Limits.Quota, 0},
		{"limits.recheck", *c.Limits.Recheck, 0},
		{"limits.per_second", c.Limits.PerSecond, 0},
		{"breaker.failures", *c.Breaker.Failures, 1},
	} {
		if n.value < n.least {
			f.add(n.key, "%d is less than %d", n.value, n.least)
		}
	}
	for _, d := range []struct {
		key   string
		value Duration
		zero  bool
	}{
		{"timeout", c.Timeout, false},
		{"limits.max_elapsed", c.Limits.MaxElapsed, false},
		{"breaker.open_for", c.Breaker.OpenFor, false},
		{"quiet", c.Quiet, true},
		{"pending_for", c.PendingFor, false},
	} {
		switch {
		case d.value.never:
			f.add(d.key, "cannot be never")
		case d.value.length == 0 && !d.zero:
			f.add(d.key, "must be longer than zero")
		}
	}
	if c.Timeout.length > longestTimeout {
		f.add("timeout", "is longer than %s; no connection stays open that long, and its worker would wait", longestTimeout)
	}
	b := c.Limits.Backoff
	if len(b) != 2 || b[0].never || b[1].never || b[0].length <= 0 || b[0].length > b[1].length {
		f.add("limits.backoff", "must be two durations, the shortest wait and the longest, such as [500ms, 60s]")
	}
}

func (f *findings) receipt(c Config) {
	p := c.Receipt
	any := false
	for _, m := range [][2]string{{"id", p.ID}, {"amount", p.Amount}, {"currency", p.Currency}, {"recipient", p.Recipient}, {"stamp", p.Stamp}, {"reference", p.Reference}} {
		if m[1] != "" {
			any = true
			f.check("receipt."+m[0], checkPointer(m[1]))
		}
	}
	if any && p.ID == "" && c.Lookup.Path == "" {
		f.add("receipt.id", "is missing; a receipt without an id is none")
	}
	switch {
	case p.Amounts != amountsMinor && p.Amounts != amountsDecimal:
		f.add("receipt.amounts", "%q is not one of %s, %s", p.Amounts, amountsMinor, amountsDecimal)
	case p.Amounts == amountsDecimal && c.Digits == nil:
		f.add("receipt.amounts", "decimal needs to know how many digits each currency has")
	}
}

// furnishings looks at the blocks that other parts of the program use.
func (f *findings) furnishings(c Config) {
	f.statement(c)
	f.events(c)
}

// headers takes the configured headers in a fixed order. No error shows a value.
func (f *findings) headers(r *Rail, c Config) {
	seen := map[string]bool{}
	for _, own := range [][2]string{{"dedupe.header", c.Dedupe.Header}, {"stamp.header", c.Stamp.Header}} {
		f.headerName(own[0], own[1], seen)
		if slices.Contains([]string{"user-agent", "accept", "content-type", "authorization", "cookie"}, strings.ToLower(own[1])) {
			f.add(own[0], "%s has another use", own[1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		key := "headers." + name
		if name == "" {
			f.add("headers", "has a header without a name")
			continue
		}
		f.headerName(key, name, seen)
		f.check(key, checkHeaderValue(c.Headers[name].reveal()))
		r.secret = append(r.secret, header{name, c.Headers[name]})
	}
	if hasControl(c.Account) {
		f.add("account", "holds a control character")
	}
}

func (f *findings) headerName(key, name string, seen map[string]bool) {
	lower := strings.ToLower(name)
	switch {
	case name == "":
		return
	case !isToken(name):
		f.add(key, "%q is not the name of a header", name)
	case slices.Contains(ownHeaders, lower):
		f.add(key, "%s is written by the program itself; leave it out", name)
	case seen[lower]:
		f.add(key, "%s is given twice", name)
	}
	seen[lower] = true
}

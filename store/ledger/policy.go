package ledger

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What a policy row may say. Anything else asks.
const (
	ThenAllow = "allow"
	ThenAsk   = "ask"
	ThenDeny  = "deny"
)

// approvalLife is how long people have when a row does not say: what is asked
// in the evening can still be decided the next afternoon.
const approvalLife = 24 * time.Hour

// Policy decides which operations go out by themselves, which wait for people
// and which never go. Its zero value asks for everything.
type Policy struct {
	Version string // "sha256:…" over the rows as they were understood
	Rows    []PolicyRow
	// Currencies write the amounts in sentences; the zero value knows ISO 4217.
	Currencies Currencies
}

// PolicyRow is one line of a policy. The first row that fits decides.
type PolicyRow struct {
	Name           string        `json:"name"`
	When           When          `json:"when"`
	Then           string        `json:"then"`
	Of             []string      `json:"of"` // roles; empty: approver, finance and admin
	Approvals      int           `json:"approvals"`
	StepUp         bool          `json:"step_up"`
	ReasonRequired bool          `json:"reason_required"`
	Expires        time.Duration `json:"expires"`
	Bulk           *Bulk         `json:"bulk,omitempty"` // nil: each is approved by itself
}

// When holds the conditions of a row. All that are set must hold; in a list,
// one equal member is enough. Without any, the row fits everything.
type When struct {
	ActionType   []string   `json:"action_type,omitempty"`
	Effect       []string   `json:"effect,omitempty"`
	Rail         []string   `json:"rail,omitempty"`
	Agent        []string   `json:"agent,omitempty"`
	RunID        []string   `json:"run_id,omitempty"`
	Recipient    []string   `json:"recipient,omitempty"`
	Currency     []string   `json:"currency,omitempty"`    // compared without regard to case
	AmountOver   *int64     `json:"amount_over,omitempty"` // strict, in minor units; needs Currency
	RecipientNew *bool      `json:"recipient_new,omitempty"`
	SpentOver    *SpentOver `json:"spent_over,omitempty"`
	Hours        string     `json:"hours,omitempty"` // "mon-fri 08:00-18:00 Europe/Berlin"

	window *hours // Hours, parsed by NewPolicy
}

// SpentOver holds when what is open, confirmed and asked for now exceeds
// Amount inside Window.
type SpentOver struct {
	Amount   int64         `json:"amount"`
	Currency string        `json:"currency"`
	Window   time.Duration `json:"window"`
	Per      string        `json:"per"` // agent · recipient · tenant
}

// Facts are what a policy may need to know beyond the operation. A function
// that is nil, or answers ok=false, cannot tell; then people are asked.
type Facts struct {
	// RecipientKnown: was this recipient paid before?
	RecipientKnown func() (known, ok bool)
	// Spent is the sum of open and confirmed operations, without the one
	// that is being judged.
	Spent func(SpentOver) (amount int64, ok bool)
}

// Decision is what the policy says about one operation, and why.
type Decision struct {
	Then     string
	Row      string // empty when no row fitted
	Asked    Asked  // set when Then is ask
	Sentence string
}

// decidingRoles may be named in a row, and are asked when it names none.
var decidingRoles = []string{"approver", "finance", "admin"}

// NewPolicy checks the rows, fills in what they leave out, and names the
// version. Every mistake is reported, each with its row.
func NewPolicy(rows []PolicyRow) (Policy, error) {
	p := Policy{Rows: make([]PolicyRow, 0, len(rows))}
	var faults []error
	seen := map[string]int{}
	for i, r := range rows {
		place := fmt.Sprintf("policy row %d (%q)", i+1, r.Name)
		switch first, double := seen[r.Name]; {
		case strings.TrimSpace(r.Name) == "":
			place = fmt.Sprintf("policy row %d", i+1)
			faults = append(faults, fmt.Errorf("%s: give it a name", place))
		case double:
			faults = append(faults, fmt.Errorf("%s: row %d has the same name; give each its own", place, first))
		default:
			seen[r.Name] = i + 1
		}
		r, more := r.understood()
		for _, f := range more {
			faults = append(faults, fmt.Errorf("%s: %w", place, f))
		}
		p.Rows = append(p.Rows, r)
	}
	if len(faults) > 0 {
		return Policy{}, errors.Join(faults...)
	}
	text, err := json.Marshal(p.Rows)
	if err != nil {
		return Policy{}, fmt.Errorf("policy: %w", err)
	}
	sum := digest("holdfast policy 1", text)
	p.Version = "sha256:" + hex.EncodeToString(sum[:])
	return p, nil
}

// understood returns the row with its defaults filled in and its lists sorted,
// so that two spellings of one row have one version.
func (r PolicyRow) understood() (PolicyRow, []error) {
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }

	switch r.Then {
	case ThenAsk:
		if r.Approvals == 0 {
			r.Approvals = 1
		}
		if r.Expires == 0 {
			r.Expires = approvalLife
		}
		if r.Approvals < 0 {
			fault("approvals: %d is not a number of people; write 1 or more", r.Approvals)
		}
		if r.Expires < 0 {
			fault("expires: %s is in the past; write a duration such as 24h", r.Expires)
		}
		for _, role := range r.Of {
			if !slices.Contains(decidingRoles, role) {
				fault("of: %q may not decide; use approver, finance or admin", role)
			}
		}
	case ThenAllow, ThenDeny:
		if len(r.Of) > 0 || r.Approvals != 0 || r.StepUp || r.ReasonRequired || r.Expires != 0 {
			fault("of, approvals, step_up, reason_required and expires belong to then: ask, not to then: %s", r.Then)
		}
	default:
		fault("then: %q is not known; use allow, ask or deny", r.Then)
	}
	r.Of = sorted(r.Of)
	when, more := r.When.understood()
	r.When = when
	for _, f := range r.Bulk.understood(r) {
		fault("%s", f)
	}
	return r, append(faults, more...)
}

func (w When) understood() (When, []error) {
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }

	for _, l := range w.lists() {
		switch {
		case *l.values != nil && len(*l.values) == 0:
			fault("%s: an empty list fits nothing; leave it out or name a value", l.name)
		case slices.Contains(*l.values, ""):
			fault("%s: an empty value fits nothing; remove it", l.name)
		}
		*l.values = sorted(*l.values)
	}
	if w.AmountOver != nil {
		if len(w.Currency) == 0 {
			fault("amount_over: needs currency beside it; an amount without one says nothing")
		}
		if *w.AmountOver < 0 {
			fault("amount_over: %d is below zero", *w.AmountOver)
		}
	}
	if s := w.SpentOver; s != nil {
		if s.Amount < 0 {
			fault("spent_over: amount: %d is below zero", s.Amount)
		}
		if s.Currency == "" {
			fault("spent_over: needs a currency")
		}
		if s.Window <= 0 {
			fault("spent_over: window: %s is no time; write a duration such as 24h", s.Window)
		}
		if !slices.Contains([]string{"agent", "recipient", "tenant"}, s.Per) {
			fault("spent_over: per: %q is not known; use agent, recipient or tenant", s.Per)
		}
	}
	if w.Hours != "" {
		window, err := parseHours(w.Hours)
		if err != nil {
			fault("hours: %w", err)
		}
		w.window = window
	}
	return w, faults
}

// list is a condition that holds when one of its values equals the
// operation's.
type list struct {
	name   string // in the configuration
	words  string // in a sentence
	values *[]string
	of     func(Operation) string
	equal  func(a, b string) bool
}

func exactly(a, b string) bool { return a == b }

func (w *When) lists() []list {
	return []list{
		{"action_type", "action type", &w.ActionType, func(o Operation) string { return o.ActionType }, exactly},
		{"effect", "effect", &w.Effect, func(o Operation) string { return o.Effect }, exactly},
		{"rail", "rail", &w.Rail, func(o Operation) string { return o.Rail }, exactly},
		{"agent", "agent", &w.Agent, func(o Operation) string { return o.Agent }, exactly},
		{"run_id", "run", &w.RunID, func(o Operation) string { return o.RunID }, exactly},
		{"recipient", "recipient", &w.Recipient, func(o Operation) string { return o.Terms.Recipient }, exactly},
		// A limit in EUR must also hold for a payload that says "eur".
		{"currency", "currency", &w.Currency, func(o Operation) string { return o.Terms.Currency }, strings.EqualFold},
	}
}

func sorted(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	values = slices.Clone(values)
	slices.Sort(values)
	return slices.Compact(values)
}

// Decide finds the first row that fits. Where none fits, or a row cannot be
// evaluated, people are asked: a row that nobody could evaluate might have
// said no.
func (p Policy) Decide(o Operation, facts Facts, now int64) Decision {
	for _, r := range p.Rows {
		fits, why, gap := r.When.fits(o, facts, p.Currencies, now)
		switch {
		case gap != "":
			return r.ask(now, fmt.Sprintf("Row %q cannot be evaluated, so it asks", r.Name), ": "+gap)
		case !fits:
			continue
		case r.Then == ThenAllow:
			return Decision{Then: ThenAllow, Row: r.Name, Sentence: fmt.Sprintf("Row %q allows it: %s.", r.Name, why)}
		case r.Then == ThenDeny:
			return Decision{Then: ThenDeny, Row: r.Name, Sentence: fmt.Sprintf("Row %q denies it: %s.", r.Name, why)}
		default:
			return r.ask(now, fmt.Sprintf("Row %q asks", r.Name), ": "+why)
		}
	}
	return PolicyRow{}.ask(now, "No policy row fits, so it asks", "")
}

// ask builds the decision to ask people. A row that says something else than
// ask has no people of its own; then the ordinary ones are asked.
func (r PolicyRow) ask(now int64, who, why string) Decision {
	a := DefaultAsked(now)
	if r.Then == ThenAsk {
		a.Of, a.Approvals, a.StepUp, a.ReasonRequired = r.Of, max(1, r.Approvals), r.StepUp, r.ReasonRequired
		if r.Expires > 0 {
			a.ExpiresAt = now + r.Expires.Milliseconds()
		}
	}
	sentence := fmt.Sprintf("%s %d of %s%s.", who, a.Approvals, inWords(a.roles()), why)
	return Decision{Then: ThenAsk, Row: r.Name, Asked: a, Sentence: sentence}
}

// DefaultAsked is who is asked where no row says it: one person of any role
// that decides.
func DefaultAsked(now int64) Asked {
	return Asked{Approvals: 1, ExpiresAt: now + approvalLife.Milliseconds()}
}

// fits evaluates every condition. One that does not hold settles it, even
// beside one that cannot be evaluated; gap then stays empty.
func (w When) fits(o Operation, facts Facts, money Currencies, now int64) (ok bool, why, gap string) {
	var plain, strong []string
	for _, l := range w.lists() {
		if *l.values == nil {
			continue
		}
		value := l.of(o)
		if !slices.ContainsFunc(*l.values, func(v string) bool { return l.equal(v, value) }) {
			return false, "", ""
		}
		clause := "the " + l.words + " is " + value
		if l.name == "recipient" {
			strong = append(strong, clause)
			continue
		}
		plain = append(plain, clause)
	}
	conditions := []func() (holds bool, clause, missing string){
		func() (bool, string, string) { return w.amount(o, money) },
		func() (bool, string, string) { return w.hour(now) },
		func() (bool, string, string) { return w.spent(o, facts, money) },
		func() (bool, string, string) { return w.recipient(o, facts) },
	}
	for _, c := range conditions {
		holds, clause, missing := c()
		switch {
		case missing != "" && gap == "":
			gap = missing
		case missing != "":
		case !holds:
			return false, "", ""
		case clause != "":
			strong = append(strong, clause)
		}
	}
	if gap != "" {
		return false, "", gap
	}
	if len(strong) > 0 { // what a row is about, without what it is limited to
		return true, strings.Join(strong, " and "), ""
	}
	if len(plain) > 0 {
		return true, strings.Join(plain, " and "), ""
	}
	return true, "it fits everything", ""
}

// amount says whether its condition holds and in which words, or what is
// missing to say so, as the three after it do for theirs. A condition that is
// not set holds without words.
func (w When) amount(o Operation, money Currencies) (holds bool, clause, missing string) {
	if w.AmountOver == nil {
		return true, "", ""
	}
	if !o.Terms.HasAmount {
		return false, "", "the operation names no amount"
	}
	if o.Terms.Currency == "" || len(w.Currency) == 0 {
		return false, "", "an amount without a currency says nothing"
	}
	return o.Terms.Amount > *w.AmountOver, "the amount is over " + money.Format(*w.AmountOver, strings.ToUpper(o.Terms.Currency)), ""
}

func (w When) spent(o Operation, facts Facts, money Currencies) (holds bool, clause, missing string) {
	s := w.SpentOver
	if s == nil {
		return true, "", ""
	}
	// A sum in one currency says nothing about an operation in another, nor
	// about one that moves no money.
	if !strings.EqualFold(o.Terms.Currency, s.Currency) {
		return false, "", ""
	}
	switch {
	case !o.Terms.HasAmount:
		return false, "", "the operation names no amount"
	case s.Per == "recipient" && o.Terms.Recipient == "":
		return false, "", "the operation names no recipient"
	case facts.Spent == nil:
		return false, "", "what was spent is not known"
	}
	before, ok := facts.Spent(*s)
	if !ok {
		return false, "", "what was spent is not known"
	}
	with, ok := AddAmounts(before, o.Terms.Amount)
	over := !ok || with > s.Amount // a sum that does not fit its type is over every limit
	does := "spends"
	if s.Per == "recipient" {
		does = "gets"
	}
	return over, fmt.Sprintf("with it, the %s %s over %s in %s", s.Per, does, money.Format(s.Amount, strings.ToUpper(s.Currency)), span(s.Window)), ""
}

func (w When) hour(now int64) (holds bool, clause, missing string) {
	if w.Hours == "" {
		return true, "", ""
	}
	if w.window == nil {
		return false, "", "the hours were never parsed"
	}
	return w.window.contains(now), "it is inside " + w.Hours, ""
}

func (w When) recipient(o Operation, facts Facts) (holds bool, clause, missing string) {
	if w.RecipientNew == nil {
		return true, "", ""
	}
	if o.Terms.Recipient == "" {
		return false, "", "the operation names no recipient"
	}
	const gap = "whether the recipient is new is not known"
	if facts.RecipientKnown == nil {
		return false, "", gap
	}
	known, ok := facts.RecipientKnown()
	if !ok {
		return false, "", gap
	}
	if known {
		return !*w.RecipientNew, "the recipient is known", ""
	}
	return *w.RecipientNew, "the recipient is new", ""
}

// AsksMoreThan reports whether people would have to decide again before what
// was asked for then may go out now. Only a decision that allows, or asks for
// no more people, no fewer roles and no more care, is satisfied by it.
func (d Decision) AsksMoreThan(a Asked) bool {
	switch d.Then {
	case ThenAllow:
		return false
	case ThenAsk:
		now := d.Asked
		return now.Approvals > a.Approvals ||
			now.StepUp && !a.StepUp ||
			now.ReasonRequired && !a.ReasonRequired ||
			slices.ContainsFunc(a.roles(), func(r string) bool { return !slices.Contains(now.roles(), r) })
	}
	return true
}

// roles lists who may decide.
func (a Asked) roles() []string {
	if len(a.Of) == 0 {
		return decidingRoles
	}
	return a.Of
}

// inWords joins names as a sentence does: a, b or c.
func inWords(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// span writes a duration without its zero parts: 24h, not 24h0m0s.
func span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

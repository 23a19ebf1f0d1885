package views

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"holdfast/store/ledger"
)

// NumbersPage shows how far the ledger of a tenant may be believed, drawn and in
// tables.
type NumbersPage struct {
	Frame    Frame
	Rails    []string // that are configured: what is zero is told too
	Now      ledger.Numbers
	Happened ledger.Happened
	Counting bool // the log is long and not all of it is read yet: Happened says nothing

	Statements bool // statements can be taken in here
	Unmatched  []AccountLines
}

// AccountLines is how many lines of an account's statements no operation of ours
// explains.
type AccountLines struct {
	Account string
	Rail    string
	N       int
}

// chart is bars from top to bottom, with a table behind them that says the same.
type chart struct {
	title string
	says  string // what is to be seen, in a sentence: for whoever does not see it
	empty string // what is said instead where there is nothing to draw
	tone  Tone
	bars  []chartBar
	heads []string   // of the table
	rows  [][]string // the first cell names the row
}

// chartBar is one of them; what stands at its end is exact, its length only shows.
type chartBar struct {
	label string
	n     int64
	text  string
}

// The measures of a bar's row, in the units of its picture.
const (
	barWidth  = 320
	rowHeight = 36
)

// labelRunes is what fits beside the number; the table has all of it.
const labelRunes = 34

func (b chartBar) cutLabel() string {
	runes := []rune(plainly(b.label))
	if len(runes) <= labelRunes {
		return string(runes)
	}
	return string(runes[:labelRunes-1]) + "…"
}

// width is how long a bar is beside the longest; what is there is seen.
func (c chart) width(b chartBar) string {
	if b.n <= 0 {
		return "0"
	}
	most := slices.MaxFunc(c.bars, func(x, y chartBar) int { return cmp.Compare(x.n, y.n) }).n
	return fmt.Sprintf("%.1f", max(2, float64(b.n)*barWidth/float64(most)))
}

func (c chart) box() string { return fmt.Sprintf("0 0 %d %d", barWidth, rowHeight*len(c.bars)) }

func at(row, below int) string { return strconv.Itoa(row*rowHeight + below) }

// charts are the page, top to bottom.
func (p NumbersPage) charts() []chart {
	all := []chart{p.unknown(), p.held()}
	if !p.Counting {
		all = append(all, p.resolved(), p.sends())
	}
	all = append(all, p.owed()...)
	if p.Statements {
		all = append(all, p.lines())
	}
	return all
}

func (p NumbersPage) unknown() chart {
	c := chart{title: "Unknown now, by rail", empty: "Nothing is unknown.", tone: Violet, heads: []string{"Rail", "Unknown", "The oldest for"}}
	counts, oldest := map[string]int{}, map[string]int64{}
	for _, name := range p.Rails {
		counts[name] = 0
	}
	total := 0
	for _, o := range p.Now.Open {
		if !o.Unclear() {
			continue
		}
		total += o.N
		counts[o.Rail] += o.N
		if since := oldest[o.Rail]; since == 0 || o.Since < since {
			oldest[o.Rail] = o.Since
		}
	}
	if total == 0 {
		return c
	}
	for _, name := range mostFirst(counts) {
		n, age := counts[name], "–"
		text := grouped(n)
		if n > 0 {
			age = Age(p.Now.At - oldest[name])
			text += ", oldest " + age
		}
		c.bars = append(c.bars, chartBar{name, int64(n), text})
		c.rows = append(c.rows, []string{name, grouped(n), age})
	}
	c.says = count(total, "operation is unknown", "operations are unknown") + ", on " + some(c.bars, "rail", "rails") + "."
	return c
}

func (p NumbersPage) held() chart {
	c := chart{title: "Held for a person, by reason", empty: "Nothing is held.", tone: Violet, heads: []string{"Why", "Held", "Of them sent"}}
	counts, sent := map[string]int{}, map[string]int{}
	total := 0
	for _, o := range p.Now.Open {
		if o.Status != ledger.UnknownHold {
			continue
		}
		why := heldWord(o.Reason)
		total += o.N
		counts[why] += o.N
		if o.Sent {
			sent[why] += o.N
		}
	}
	for _, why := range mostFirst(counts) {
		c.bars = append(c.bars, chartBar{why, int64(counts[why]), grouped(counts[why])})
		c.rows = append(c.rows, []string{why, grouped(counts[why]), grouped(sent[why])})
	}
	c.says = count(total, "operation waits", "operations wait") + " for a person, for " + some(c.bars, "reason", "reasons") + "."
	return c
}

// heldWord is the reason of a hold without the operation.
func heldWord(r ledger.Reason) string {
	switch {
	case Overlaps(r):
		return "Overlaps another: " + overlapWhy(string(r))
	case r == ledger.Inconclusive:
		return "No clear answer from the provider"
	case r == ledger.KeyExpired:
		return "A repeat may not be recognised"
	case r == ledger.AuthorityGone:
		return "Sending is no longer allowed"
	case r == ledger.ReceiptMismatch:
		return "The receipt differs"
	case r == ledger.BudgetExhausted:
		return "The run's budget is used up"
	case r == ledger.Restored:
		return "Restored from a backup"
	}
	return HoldReason(ledger.Operation{Reason: r}, nil)
}

func (p NumbersPage) resolved() chart {
	c := chart{title: "How long an unknown took to clear", empty: "Nothing that was unknown has ended yet.", tone: Green, heads: []string{"Within"}}
	var hows []ledger.Resolution
	var whole ledger.Spread
	by := map[ledger.Resolution]*ledger.Spread{}
	for _, how := range ledger.Resolutions() {
		for _, r := range p.Happened.Resolved {
			if r.How != how {
				continue
			}
			if by[how] == nil {
				by[how] = &ledger.Spread{}
				hows = append(hows, how)
			}
			for i, n := range r.Spread.Steps {
				by[how].Steps[i] += n
				whole.Steps[i] += n
				whole.N += n
			}
		}
	}
	if whole.N == 0 {
		return c
	}
	for _, how := range hows {
		c.heads = append(c.heads, resolutionWord(how))
	}
	c.heads = append(c.heads, "All")
	first, last := len(whole.Steps), 0
	for i, n := range whole.Steps {
		if n > 0 {
			first, last = min(first, i), i
		}
	}
	names := spans()
	for i := first; i <= last; i++ {
		c.bars = append(c.bars, chartBar{names[i], int64(whole.Steps[i]), grouped(whole.Steps[i])})
		row := []string{names[i]}
		for _, how := range hows {
			row = append(row, grouped(by[how].Steps[i]))
		}
		c.rows = append(c.rows, append(row, grouped(whole.Steps[i])))
	}
	c.says = count(whole.N, "unknown has ended", "unknowns have ended") + ", half of them " + within(whole.Middle()) + "."
	return c
}

func resolutionWord(how ledger.Resolution) string {
	switch how {
	case ledger.ByAnswer:
		return "Late answer"
	case ledger.ByLookup:
		return "Look-up"
	case ledger.ByEvent:
		return "Event"
	case ledger.ByStatement:
		return "Statement"
	case ledger.ByPerson:
		return "Person"
	}
	return "Otherwise"
}

// spans names the parts of a spread.
func spans() []string {
	steps := ledger.ResolutionSteps
	all := []string{"under " + duration(steps[0])}
	for i := 1; i < len(steps); i++ {
		all = append(all, duration(steps[i-1])+" to "+duration(steps[i]))
	}
	return append(all, "over "+duration(steps[len(steps)-1]))
}

// within is a part of a spread as the most that it took.
func within(part int) string {
	if part == len(ledger.ResolutionSteps) {
		return "after more than " + duration(ledger.ResolutionSteps[part-1])
	}
	return "within " + duration(ledger.ResolutionSteps[part])
}

func (p NumbersPage) sends() chart {
	c := chart{title: "How sends ended", empty: "Nothing was sent yet.", tone: Grey, heads: []string{"Rail", "Receipt", "Declined", "Not sent", "No clear answer"}}
	outcomes := []ledger.AttemptOutcome{ledger.AttemptReceipt, ledger.AttemptDeclined, ledger.AttemptNotSent, ledger.AttemptUnknown}
	totals, rails := map[ledger.AttemptOutcome]int{}, map[string]map[ledger.AttemptOutcome]int{}
	total := 0
	for _, a := range p.Happened.Attempts {
		if rails[a.Rail] == nil {
			rails[a.Rail] = map[ledger.AttemptOutcome]int{}
		}
		rails[a.Rail][a.Outcome] += a.N
		totals[a.Outcome] += a.N
		total += a.N
	}
	if total == 0 {
		return c
	}
	for i, o := range outcomes {
		text := grouped(totals[o])
		if totals[o] > 0 {
			text += " · " + share(totals[o], total)
		}
		c.bars = append(c.bars, chartBar{c.heads[i+1], int64(totals[o]), text})
	}
	for _, name := range inOrder(rails) {
		row := []string{name}
		for _, o := range outcomes {
			row = append(row, grouped(rails[name][o]))
		}
		c.rows = append(c.rows, row)
	}
	c.says = fmt.Sprintf("Of %s, %s brought no clear answer at first.", count(total, "send", "sends"), grouped(totals[ledger.AttemptUnknown]))
	return c
}

// share is a part of a whole; what is there is never told as nothing, nor what is
// missing as all.
func share(n, of int) string {
	switch part := 100 * float64(n) / float64(of); {
	case part < .1:
		return "under 0.1 %"
	case part > 99.9 && n < of:
		return "over 99.9 %"
	default:
		return fmt.Sprintf("%.1f %%", part)
	}
}

// owed is one chart a direction and currency: two currencies have no common
// measure, and what we owe is not netted with what we are owed.
func (p NumbersPage) owed() []chart {
	var all []chart
	at := map[string]int{}
	for _, o := range p.Now.Owed {
		if o.N == 0 {
			continue
		}
		title := directionWord(o.Direction == "owed_to_us") + ", " + plainly(o.Currency)
		i, known := at[title]
		if !known {
			i = len(all)
			at[title] = i
			all = append(all, chart{title: title, tone: Amber, heads: []string{"Rail", "Open", "Entries", "Past its day"}})
		}
		// A receipt names the currency as its provider writes it.
		sum, late := plainly(p.Frame.money(o.Amount, o.Currency)), plainly(p.Frame.money(o.Late, o.Currency))
		all[i].bars = append(all[i].bars, chartBar{o.Rail, o.Amount, sum})
		all[i].rows = append(all[i].rows, []string{o.Rail, sum, grouped(o.N), grouped(o.Overdue) + ", " + late})
	}
	for i, c := range all {
		all[i].says = "Open on " + some(c.bars, "rail", "rails") + "."
	}
	if len(all) == 0 {
		all = append(all, chart{title: "Refunds owed", empty: "You owe nobody anything. Nobody owes you anything either."})
	}
	return all
}

func (p NumbersPage) lines() chart {
	c := chart{title: "Statement lines without an operation", empty: "Every line of the statements has its operation.", tone: Amber, heads: []string{"Account", "Rail", "Lines"}}
	total := 0
	for _, a := range p.Unmatched {
		if a.N == 0 {
			continue
		}
		total += a.N
		c.bars = append(c.bars, chartBar{a.Account + " · " + a.Rail, int64(a.N), grouped(a.N)})
		c.rows = append(c.rows, []string{a.Account, a.Rail, grouped(a.N)})
	}
	c.says = count(total, "line", "lines") + " in " + some(c.bars, "account", "accounts") + "."
	return c
}

// some counts the bars that show something, and names the longest.
func some(bars []chartBar, one, many string) string {
	n, most := 0, chartBar{}
	for _, b := range bars {
		if b.n > 0 {
			n++
		}
		if b.n > most.n {
			most = b
		}
	}
	text := count(n, one, many)
	if n > 0 {
		text += ", the most: " + plainly(most.label) + ", " + most.text
	}
	return text
}

// mostFirst names what is counted, the largest count first.
func mostFirst(all map[string]int) []string {
	names := inOrder(all)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(all[b], all[a]) })
	return names
}

func inOrder[T any](all map[string]T) []string {
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

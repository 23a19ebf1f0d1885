package views

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/store/ledger"
)

// RailsPage shows where operations go: how each rail stands, what it has to do,
// and what it promises. The caller brings the worst first.
type RailsPage struct {
	Frame  Frame
	Items  []RailCard
	Pause  Decision // whether this person may pause and resume rails
	Form   FormState
	Folder string // of the data, for the commands that are shown
}

// RailCard is one rail.
type RailCard struct {
	Promise    ledger.Rail
	Gone       bool         // not configured any more; only its name is known
	Pause      ledger.Pause // Person is the name to show; the zero value: nobody paused it
	RestsUntil int64        // given a rest by its breaker in this process; 0: it is not
	Traffic    ledger.RailTraffic
	Test       *ledger.RailTest // the last; nil: never tested
	Key        string           // where the provider's key goes: "header Idempotency-Key"
	Stamp      string           // where the order id goes
	Types      []RailType       // action types that go out on it
}

// RailType is an action type, with what the rail promises for it.
type RailType struct {
	Name    string
	Promise ledger.Rail
}

// Troubled reports whether a rail asks for a look: such a card is unfolded.
func (c RailCard) Troubled() bool { return c.Trouble() > 0 }

// Trouble weighs what is wrong with a rail, for the order of the page.
func (c RailCard) Trouble() int {
	weight := 0
	for _, w := range []struct {
		holds bool
		of    int
	}{{c.Pause.At > 0, 16}, {c.RestsUntil > 0, 8}, {c.Traffic.Unknown > 0, 4}, {c.Gone, 2}, {c.Test != nil && !c.Test.Passed(), 1}} {
		if w.holds {
			weight += w.of
		}
	}
	return weight
}

// railWord says how a rail stands. A pause by a person outlasts a rest.
func (f Frame) railWord(c RailCard) Word {
	switch {
	case c.Pause.At > 0:
		return Word{Text: "Paused by " + plainly(c.Pause.Person), Icon: Hand, Tone: Amber}
	case c.Gone:
		return Word{Text: "Not configured", Sub: "nothing is sent on it", Icon: Bar, Tone: Slate}
	case c.RestsUntil > f.Now:
		return Word{Text: "Paused by breaker", Sub: "until " + utc(c.RestsUntil).Format("15:04:05") + " UTC; then one goes first to see", Icon: Hourglass, Tone: Amber}
	}
	return Word{Text: "Working", Icon: Arrow, Tone: Blue}
}

// load says what a rail has to do, in one line.
func (f Frame) load(t ledger.RailTraffic) string {
	var all []string
	add := func(n int, word string, since int64) {
		if n > 0 {
			text := grouped(n) + " " + word
			if since > 0 {
				text += ", oldest " + Age(f.Now-since)
			}
			all = append(all, text)
		}
	}
	add(t.Unknown, "unknown", t.OldestUnknownAt)
	add(t.Waiting, "waiting", t.OldestWaitingAt)
	add(t.Sending, "sending", 0)
	add(t.Held, "held for a person", 0)
	if len(all) == 0 {
		return "nothing waits, nothing is unknown"
	}
	return strings.Join(all, " · ")
}

// since counts what is so, and for how long the oldest of it is.
func (f Frame) since(n int, oldest int64) string {
	if n == 0 || oldest == 0 {
		return grouped(n)
	}
	return grouped(n) + ", the oldest for " + Age(f.Now-oldest)
}

// duration is a configured span: whole units as people write them, "24 h" and
// not "1 d".
func duration(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0 && d < 96*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h"
	case d > 0 && d < time.Second:
		return strconv.Itoa(int(d.Milliseconds())) + " ms"
	}
	return Age(d.Milliseconds())
}

// fact is one line of a capability sheet.
type fact struct{ name, says string }

// sheet is what a rail promises by its configuration.
func (c RailCard) sheet() []fact {
	r := c.Promise
	all := []fact{{"Same-key resend", resend(r)}, {"Look-up", lookUp(r)}, {"Empty search", absence(r)}, {"Receipt is compared by", compared(r.Compared)}}
	add := func(name, says string) {
		if says != "" {
			all = append(all, fact{name, says})
		}
	}
	add("Key goes into", c.Key)
	add("Stamp goes into", c.Stamp)
	add("Adapter", r.Adapter)
	add("Address", r.Address)
	add("Account", r.Account)
	add("Limits", limits(r))
	for _, t := range c.Types {
		add("Action type "+t.Name, own(r, t.Promise))
	}
	return all
}

func resend(r ledger.Rail) string {
	safe := time.Duration(r.ResendUntil(ledger.Operation{})) * time.Millisecond
	until := "; safe for " + duration(safe) + " after the first send"
	if own := r.Limits.MaxElapsed; own < safe {
		until += ", and used by itself for " + duration(own)
	}
	switch {
	case r.Dedupe.By == ledger.DedupeNatural && r.Dedupe.Retention == 0:
		return "a repeat is recognised by what it is" + until
	case r.Dedupe.By != ledger.DedupeKey && r.Dedupe.By != ledger.DedupeNatural, r.Dedupe.Retention == 0:
		return "not promised"
	case safe <= 0:
		return "promised for " + duration(r.Dedupe.Retention) + ", which is too short to be used"
	case r.Dedupe.By == ledger.DedupeNatural:
		return "a repeat is recognised by what it is for " + duration(r.Dedupe.Retention) + until
	}
	return "promised for " + duration(r.Dedupe.Retention) + until
}

func lookUp(r ledger.Rail) string {
	switch {
	case !r.Lookup.Possible:
		return "no. Unknowns here always need a person"
	case r.Lookup.Lag > 0:
		return "yes, lags " + duration(r.Lookup.Lag)
	}
	return "yes"
}

func absence(r ledger.Rail) string {
	switch {
	case !r.Lookup.Possible:
		return "can't be made"
	case r.Lookup.AbsenceProvesAfter > 0:
		return "proves that nothing happened, once it is made " + duration(r.Lookup.AbsenceProvesAfter+r.Lookup.Lag) + " after the last possible send"
	}
	return "is never proof here"
}

func compared(fields ledger.ReceiptFields) string {
	var all []string
	for _, f := range []struct {
		compared bool
		name     string
	}{{fields.Amount, "amount"}, {fields.Currency, "currency"}, {fields.Recipient, "recipient"}, {fields.Reference, "reference"}, {fields.Stamp, "our stamp"}} {
		if f.compared {
			all = append(all, f.name)
		}
	}
	if len(all) == 0 {
		return "its id alone"
	}
	return "id, " + strings.Join(all, ", ")
}

func limits(r ledger.Rail) string {
	l := r.Limits
	return fmt.Sprintf("%s at a time · %s and %s for one operation · one attempt takes at most %s · between attempts %s to %s · quiet %s after a send",
		grouped(l.Concurrency), count(l.MaxAttempts, "attempt", "attempts"), duration(l.MaxElapsed), duration(r.Timeout), duration(l.BackoffMin), duration(l.BackoffMax), duration(r.Quiet))
}

// own is what differs for an action type that speaks to the rail in its own way.
func own(r, t ledger.Rail) string {
	var all []string
	if lookUp(r) != lookUp(t) {
		all = append(all, "look-up: "+lookUp(t))
	}
	if absence(r) != absence(t) {
		all = append(all, "empty search: "+absence(t))
	}
	if r.Compared != t.Compared {
		all = append(all, "receipt is compared by "+compared(t.Compared))
	}
	if len(all) == 0 {
		return "as above"
	}
	return "its own way: " + strings.Join(all, "; ")
}

// tested says how the last test went.
func tested(t ledger.RailTest) string {
	if t.Passed() {
		return "kept all it promises."
	}
	var broken []string
	for _, f := range t.Findings {
		if !f.Passed {
			broken = append(broken, checkWord(f.Check))
		}
	}
	if len(broken) == 0 {
		return "nothing was tried."
	}
	return "did not keep all it promises: " + strings.Join(broken, ", ") + "."
}

func checkWord(check string) string {
	switch check {
	case "send":
		return "sending"
	case "replay":
		return "repeating it under the same key"
	case "mismatch":
		return "another request under the same key"
	case "absence":
		return "looking for what was never sent"
	case "lookup":
		return "finding what was sent"
	case "once":
		return "having it once"
	}
	return check
}

// testCommand is what a person types to test a rail.
func (p RailsPage) testCommand(c RailCard) string {
	words := "rail test " + quoted(c.Promise.Name)
	if p.Frame.Tenant != "default" {
		words += " --tenant " + quoted(p.Frame.Tenant)
	}
	words += " --payload payload.json"
	if c.Promise.Adapter != "sandbox" {
		words += " --test-account"
	}
	if len(c.Types) > 1 {
		words += " --action-type " + quoted(c.Types[0].Name)
	}
	return plainly(Command(p.Folder, words))
}

// act is what a person can do about a rail now.
func (c RailCard) act() string {
	if c.Pause.At > 0 {
		return "resume-rail"
	}
	return "pause-rail"
}

// wouldDo says what the act does to what the rail has now.
func (c RailCard) wouldDo() []string {
	t := c.Traffic
	if c.Pause.At > 0 {
		if t.Waiting == 0 {
			return []string{"New operations are sent again as they come."}
		}
		return []string{"Sent as soon as it is their turn: " + count(t.Waiting, "operation that waits.", "operations that wait.")}
	}
	all := []string{"Nothing more is sent on it until somebody resumes it. Operations are still taken, and wait."}
	if n := t.Sending + t.Unknown; n > 0 {
		all = append(all, "Not touched: "+count(n, "operation that was sent. It goes to its end, and is looked up.", "operations that were sent. They go to their end, and are looked up."))
	}
	return all
}

// filling reports whether the form of this rail came back with a problem.
func (p RailsPage) filling(c RailCard) bool {
	return p.Form.Act != "" && p.Form.Act == c.act() && p.Form.Values["rail"] == c.Promise.Name
}

func (p RailsPage) kept(c RailCard) string {
	if !p.filling(c) {
		return ""
	}
	return p.Form.Values["reason"]
}

// refusal says why this person pauses no rail.
func (p RailsPage) refusal() string {
	if p.Pause.Why == "" {
		return "This is not possible now."
	}
	return p.Pause.Why
}

// ages names the parts of the unknown by age.
func ages() []string {
	all := []string{"under " + duration(ledger.AgeSteps[0])}
	for i, step := range ledger.AgeSteps[1:] {
		all = append(all, duration(ledger.AgeSteps[i])+" to "+duration(step))
	}
	return append(all, "over "+duration(ledger.AgeSteps[len(ledger.AgeSteps)-1]))
}

// columns draws values as bars beside each other, a hundred wide and twenty high.
func columns(values []int64) string {
	most := slices.Max(append([]int64{1}, values...))
	width := 100 / float64(max(len(values), 1))
	var b strings.Builder
	for i, v := range values {
		if v > 0 {
			fmt.Fprintf(&b, "M%.1f 20v-%.1fh%.1fV20z", float64(i)*width+width*.1, max(1, float64(v)*20/float64(most)), width*.8)
		}
	}
	return b.String()
}

func wide(values []int) (all []int64) {
	for _, v := range values {
		all = append(all, int64(v))
	}
	return all
}

// answeredHour is how a provider answered in one hour of the last day.
type answeredHour struct {
	from     int64
	n        int
	p50, p95 int64
}

// hours parts the answers of the last day by the hour, the oldest first. Hours
// without an answer are there, and empty.
func (f Frame) hours(all []ledger.AnsweredIn) []answeredHour {
	const hour = int64(time.Hour / time.Millisecond)
	first := (f.Now/hour - 23) * hour
	took := make([][]int64, 24)
	for _, a := range all {
		if i := (a.At - first) / hour; a.At >= first && i < 24 {
			took[i] = append(took[i], a.Took)
		}
	}
	hours := make([]answeredHour, 24)
	for i, t := range took {
		hours[i] = answeredHour{first + int64(i)*hour, len(t), ledger.Percentile(t, 50), ledger.Percentile(t, 95)}
	}
	return hours
}

func p95s(hours []answeredHour) (all []int64) {
	for _, h := range hours {
		all = append(all, h.p95)
	}
	return all
}

func times(all []ledger.AnsweredIn) (took []int64) {
	for _, a := range all {
		took = append(took, a.Took)
	}
	return took
}

// quick is a short time in the words that fit it.
func quick(ms int64) string {
	if ms < 1000 {
		return strconv.FormatInt(ms, 10) + " ms"
	}
	return span(ms)
}

// NoRail says that there is no such rail, or that it is another tenant's.
func NoRail(f Frame, name string) MessagePage {
	return MessagePage{Frame: f, Tone: Slate,
		Title: "No rail " + name + ".",
		Lines: []string{"Nothing from you was recorded."},
		Links: []Link{{"/rails", "All rails"}},
	}
}

// RailChanged says that the rail was paused or resumed since the form was drawn.
// The entry is the last one about it, with a name for its actor.
func RailChanged(f Frame, rail string, last ledger.Entry, why string) MessagePage {
	m := MessagePage{Frame: f, Tone: Amber,
		Title: "This changed while you were reading.",
		Lines: []string{"Nothing from you was recorded."},
		Quote: why,
		Links: []Link{{"/rails", "Open the rails as they are now"}},
	}
	switch last.Event {
	case "pause":
		m.Lines = append([]string{last.Actor + " paused the rail " + rail + " " + f.relative(last.At) + "."}, m.Lines...)
	case "resume":
		m.Lines = append([]string{last.Actor + " resumed the rail " + rail + " " + f.relative(last.At) + "."}, m.Lines...)
	}
	return m
}

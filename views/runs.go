package views

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/a-h/templ"

	"holdfast/store/ledger"
)

// RunsPage lists agent runs with their budgets, newest first.
type RunsPage struct {
	Frame Frame
	RunID string // only this one was asked for
	Items []ledger.RunRecord
	Older string   // the last run of this page, if there are older ones
	Stop  Decision // whether this person may stop runs
	Form  FormState
}

func runPath(id string) templ.SafeURL {
	return templ.SafeURL("/runs?" + url.Values{"run_id": {id}}.Encode())
}

func runsAfter(id string) templ.SafeURL {
	return templ.SafeURL("/runs?" + url.Values{"after": {id}}.Encode())
}

func runOperations(id string, s ledger.Status) templ.SafeURL {
	return operationsPath(Filter{RunID: id, Status: string(s)}.values())
}

// runWord says where a run stands. Sub names the run above that it is owed to.
func (f Frame) runWord(r ledger.RunRecord) Word {
	state, by := r.Standing(f.Now)
	var w Word
	switch state {
	case ledger.RunGoing:
		return Word{Text: "Running", Icon: Arrow, Tone: Blue}
	case ledger.RunSpent:
		w = Word{Text: "Spent", Sub: "nothing may be repeated any more; new operations are refused", Icon: Bar, Tone: Slate}
	case ledger.RunOver:
		w = Word{Text: "Over", Sub: "its time has passed; new operations are refused", Icon: Hourglass, Tone: Slate}
	default: // also of a state that this page does not know
		w = Word{Text: "Stopped", Sub: "new operations are refused", Icon: Cross, Tone: Slate}
	}
	if by.RunID != r.RunID {
		w.Sub = "new operations are refused: so it is with the run above, " + plainly(by.RunID)
	}
	return w
}

// stoppable reports whether a stop would change anything about a run.
func (f Frame) stoppable(r ledger.RunRecord) bool {
	state, _ := r.Standing(f.Now)
	return state != ledger.RunHalted
}

// usedOf is how much of its budget a run has used.
func usedOf(r ledger.RunRecord) string {
	if r.MaxAttempts == 0 {
		return grouped(r.Used) + ", and none is allowed"
	}
	return grouped(r.Used) + " of " + grouped(r.MaxAttempts)
}

// bar is the drawn part of a hundred.
func bar(r ledger.RunRecord) string {
	switch {
	case r.Used >= r.MaxAttempts && r.Used > 0:
		return "M0 4h100"
	case r.Used == 0:
		return ""
	}
	return fmt.Sprintf("M0 4h%d", max(1, r.Used*100/r.MaxAttempts))
}

// spentOn says what each layer spent, and what runs below did.
func spentOn(r ledger.RunRecord) []string {
	var all []string
	rest := r.Used
	for _, l := range append([]string{"repeat", "mark"}, ledger.RunLayers...) {
		if n := r.ByLayer[l]; n > 0 {
			all = append(all, layerWord(l)+" "+grouped(n))
			rest -= n
		}
	}
	if rest > 0 {
		all = append(all, "runs below it "+grouped(rest))
	}
	return all
}

func layerWord(layer string) string {
	switch layer {
	case "repeat":
		return "submitted again"
	case "mark":
		return "sent again"
	case "http":
		return "HTTP client"
	case "tool":
		return "tool"
	case "worker":
		return "worker restarts"
	case "workflow":
		return "workflow"
	case "model":
		return "model fallbacks"
	}
	return layer
}

// runGroup is one number of a run's operations, with the list of them.
type runGroup struct {
	text string
	link templ.SafeURL
}

// groups counts a run's operations: open, held, confirmed, and ended without
// effect. What is open has several statuses: its list is that of the run.
func groups(r ledger.RunRecord) []runGroup {
	var all []runGroup
	add := func(n int, word string, s ledger.Status) {
		if n > 0 {
			all = append(all, runGroup{grouped(n) + " " + word, runOperations(r.RunID, s)})
		}
	}
	open := 0
	for s, n := range r.Operations {
		if !slices.Contains([]ledger.Status{ledger.UnknownHold, ledger.Confirmed, ledger.Rejected}, s) {
			open += n
		}
	}
	add(open, "open", "")
	add(r.Operations[ledger.UnknownHold], "held", ledger.UnknownHold)
	add(r.Operations[ledger.Confirmed], "confirmed", ledger.Confirmed)
	add(r.Operations[ledger.Rejected], "ended without effect", ledger.Rejected)
	return all
}

// wouldStop says what a stop does to what the run has now.
func wouldStop(r ledger.RunRecord) []string {
	all := []string{"New operations are refused."}
	if r.Unsent > 0 {
		all = append(all, "Rejected: "+count(r.Unsent, "operation that was not sent.", "operations that were not sent."))
	}
	if r.UnderWay > 0 {
		all = append(all, "Not touched: "+count(r.UnderWay, "operation that was sent. It goes to its end.", "operations that were sent. They go to their end."))
	}
	return all
}

// andBelow is the end of a stop button's words.
func andBelow(r ledger.RunRecord) string {
	if r.CountBelow == 0 {
		return ""
	}
	return " and " + count(r.CountBelow, "run below it", "runs below it")
}

// stopping reports whether the form of this run came back with a problem.
func (p RunsPage) stopping(r ledger.RunRecord) bool {
	return p.Form.Act == "stop-run" && p.Form.Values["run_id"] == r.RunID
}

func (p RunsPage) kept(r ledger.RunRecord) string {
	if !p.stopping(r) {
		return ""
	}
	return p.Form.Values["reason"]
}

// refusal says why this person stops no run.
func (p RunsPage) refusal() string {
	if p.Stop.Why == "" {
		return "This is not possible now."
	}
	return p.Stop.Why
}

// NoRun says that there is no such run, or that it is another tenant's.
func NoRun(f Frame, id string) MessagePage {
	return MessagePage{Frame: f, Tone: Slate,
		Title: "No run " + id + ".",
		Lines: []string{"Nothing from you was recorded."},
		Links: []Link{{"/runs", "All runs"}},
	}
}

// StoppedBefore says that somebody else stopped the run first.
func StoppedBefore(f Frame, r ledger.RunRecord) MessagePage {
	return MessagePage{Frame: f, Tone: Slate,
		Title: "This run is stopped already.",
		Lines: []string{r.StoppedBy + " stopped it " + f.relative(r.StoppedAt) + ".", "Nothing from you was recorded."},
		Quote: r.StoppedWhy,
		Links: []Link{{string(runPath(r.RunID)), "Open it"}},
	}
}

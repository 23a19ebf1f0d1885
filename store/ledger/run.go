package ledger

import "fmt"

// Run is one agent run with its one retry budget: however many layers retry,
// they spend the same.
type Run struct {
	TenantID    string
	RunID       string
	ParentRunID string
	MaxAttempts int
	Deadline    int64
	Used        int
	ByLayer     map[string]int // what Used is made of
	StoppedAt   int64
	CreatedAt   int64
}

// RunLayers are those that may report retries of their own.
var RunLayers = []string{"http", "tool", "worker", "workflow", "model"}

// Left is how many retries the run still has.
func (r Run) Left() int { return max(0, r.MaxAttempts-r.Used) }

// RunState says whether a run may still do something, and else why not.
type RunState string

// The states of a run. All but the first are its end.
const (
	RunGoing  RunState = "running"
	RunSpent  RunState = "spent"   // its retries are used up, or the first one it had none for was refused
	RunOver   RunState = "over"    // its deadline has passed
	RunHalted RunState = "stopped" // by a person
)

// State is where the run itself stands, whatever those above it do. A budget of
// nothing is not spent before something was to be taken from it: first
// submissions are free.
func (r Run) State(now int64) RunState {
	switch {
	case r.StoppedAt > 0:
		return RunHalted
	case r.Used > 0 && r.Used >= r.MaxAttempts:
		return RunSpent
	case now >= r.Deadline:
		return RunOver
	}
	return RunGoing
}

// Over says why the run may do nothing more; empty while it may.
func (r Run) Over(now int64) string {
	switch r.State(now) {
	case RunGoing:
		return ""
	case RunHalted:
		return fmt.Sprintf("The run %s was stopped by a person.", r.RunID)
	case RunSpent:
		if r.MaxAttempts == 0 {
			return fmt.Sprintf("The run %s has no retries, and something of it was to be repeated.", r.RunID)
		}
		if r.MaxAttempts == 1 {
			return fmt.Sprintf("The run %s has used up its one retry.", r.RunID)
		}
		return fmt.Sprintf("The run %s has used up its %d retries.", r.RunID, r.MaxAttempts)
	}
	return fmt.Sprintf("The time of the run %s is over.", r.RunID)
}

// RunRecord is a run with its relatives and what became of its operations.
type RunRecord struct {
	Run
	Above      []Run    // those it belongs to, the nearest first
	Below      []string // those that it began, and that they began: stopped with it; the first of them
	CountBelow int
	Operations map[Status]int // its own
	Unsent     int            // of it and those below: what a stop would reject
	UnderWay   int            // of them: what was sent, and goes to its end after a stop
	StoppedBy  string
	StoppedWhy string
}

// Standing is the run's state, and the run that it is owed to: itself, or one
// above it.
func (r RunRecord) Standing(now int64) (RunState, Run) {
	for _, one := range append([]Run{r.Run}, r.Above...) {
		if state := one.State(now); state != RunGoing {
			return state, one
		}
	}
	return RunGoing, r.Run
}

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

// Over says why the run may repeat nothing more; empty while it may.
func (r Run) Over(now int64) string {
	switch {
	case r.StoppedAt > 0:
		return fmt.Sprintf("The run %s was stopped by a person.", r.RunID)
	case r.Used >= r.MaxAttempts:
		return fmt.Sprintf("The run %s has used up its %d retries.", r.RunID, r.MaxAttempts)
	case now >= r.Deadline:
		return fmt.Sprintf("The time of the run %s is over.", r.RunID)
	}
	return ""
}

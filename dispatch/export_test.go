package dispatch

import (
	"context"
	"time"

	"holdfast/store"
)

// SetReach gives the crash boundaries a body; in this test binary only.
func SetReach(f func(boundary string)) (restore func()) {
	was := reach
	reach = f
	return func() { reach = was }
}

// AddTestProcess makes this test binary able to run as another process.
func AddTestProcess(name string, run func() int) { testProcesses[name] = run }

// TestProcess is the environment setting that names the process to be.
const TestProcess = testProcess

// SetIdlePoll makes long simulated times cheap: what arrives wakes the
// dispatcher anyway.
func SetIdlePoll(d time.Duration) (restore func()) {
	was := idlePoll
	idlePoll = d
	return func() { idlePoll = was }
}

// Deliver takes one claim to its end.
func (d *Dispatcher) Deliver(ctx context.Context, c store.Claim) { d.deliver(ctx, &lane{}, c) }

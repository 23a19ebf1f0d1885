package dispatch

import (
	"os"
	"sync"
	"testing"
	"time"
)

// testProcess in the environment turns the test binary into one of the
// processes that the tests start, kill and look at.
const testProcess = "DISPATCH_TEST_PROCESS"

// testProcesses are those it can turn into; each returns its exit code.
var testProcesses = map[string]func() int{
	"sandbox": serveSandbox,
	"parent":  holdSandbox,
	"silent":  staySilent,
	"environ": showEnviron,
}

func TestMain(m *testing.M) {
	if process, ok := testProcesses[os.Getenv(testProcess)]; ok {
		os.Exit(process())
	}
	os.Exit(m.Run())
}

// eventually polls what another process or goroutine is about to bring about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

// clock is a time that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

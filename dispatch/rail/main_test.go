package rail

import (
	"os"
	"testing"
)

// testProcess in the environment turns the test binary into one of the
// processes that the tests start and look at.
const testProcess = "RAIL_TEST_PROCESS"

// testProcesses are those it can turn into; each returns its exit code.
var testProcesses = map[string]func() int{"mailserver": serveMail}

func TestMain(m *testing.M) {
	if process, ok := testProcesses[os.Getenv(testProcess)]; ok {
		os.Exit(process())
	}
	os.Exit(m.Run())
}

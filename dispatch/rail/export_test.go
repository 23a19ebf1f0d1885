package rail

import "testing"

// StartMailServer lends the mail server's process to tests that stand outside
// of the package, because they need the dispatcher.
func StartMailServer(t testing.TB) (address string, arm func(step, kind string, code int), held func() int) {
	b := startMailServer(t)
	return b.address, func(step, kind string, code int) { b.arm(mailFault{Step: step, Kind: kind, Code: code}) }, func() int { return len(b.holds()) }
}

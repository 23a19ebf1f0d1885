package ledger

// RailTest is what a rail did against a test account, beside what its
// configuration promises.
type RailTest struct {
	TenantID string
	Rail     string
	By       string
	At       int64
	Findings []RailFinding
}

// RailFinding is one thing that was tried.
type RailFinding struct {
	Check    string `json:"check"` // send · replay · mismatch · absence · lookup · once
	Promised string `json:"promised"`
	Seen     string `json:"seen"`
	Passed   bool   `json:"passed"`
}

// Passed reports whether the rail kept every promise that was tried. A test
// that tried nothing has not passed.
func (t RailTest) Passed() bool {
	for _, f := range t.Findings {
		if !f.Passed {
			return false
		}
	}
	return len(t.Findings) > 0
}

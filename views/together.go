package views

import "holdfast/store/ledger"

// Group is what one form may approve: operations of one rule and action type.
type Group struct {
	Rule   string // name of the policy row
	Action string
	Count  int // that wait, whether or not this person may approve them
	URL    string
}

// TogetherPage is the table of what one form approves: nothing else and no more.
type TogetherPage struct {
	Frame   Frame
	Rule    string
	Action  string
	Items   []TogetherItem
	Others  []TogetherItem // of the same rule, which this form does not approve, and why
	Sums    []Sum          // of Items
	Reason  bool           // the rule wants one
	Problem string
}

// TogetherItem is one row of it.
type TogetherItem struct {
	Operation ledger.Operation
	Flags     []string
	Why       string // why it is not, or was not, approved
	Leave     string // address of the table without it
}

// TogetherDone says what became of each.
type TogetherDone struct {
	Frame    Frame
	Approved []TogetherItem
	Refused  []TogetherItem
	Sums     []Sum // of what was approved
}

func (p TogetherPage) button() string {
	return "Approve " + count(len(p.Items), "operation", "operations") + ", " + p.Frame.sums(p.Sums)
}

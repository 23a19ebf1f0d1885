package views

import "holdfast/store/ledger"

// leavesIn is how long an approved operation still stays, in milliseconds.
func leavesIn(f Frame, o ledger.Operation) int64 {
	if o.Status != ledger.Ready {
		return 0
	}
	return max(o.NextSendAt-f.Now, 0)
}

// seconds rounds up: as long as anything is left, it says so.
func seconds(ms int64) int64 { return (ms + 999) / 1000 }

// afterApproval says what comes next, while it can be taken back and after.
func afterApproval(f Frame, o ledger.Operation) []string {
	switch ms := leavesIn(f, o); {
	case o.Status == ledger.AwaitingApproval:
		return []string{"It needs another approval before it leaves."}
	case ms > 0:
		return []string{"It leaves in " + Age(seconds(ms)*1000) + "."}
	case o.Status == ledger.Ready && o.LeaseUntil > f.Now:
		return []string{"It is about to be sent: the approval can't be taken back any more."}
	case o.Status == ledger.Ready:
		return []string{"It leaves as soon as it is its turn."}
	case o.Status == ledger.InFlight:
		return []string{"It is being sent: the approval can't be taken back any more."}
	case o.Status == ledger.Confirmed && o.Receipt != nil:
		return []string{"It was sent, and happened: receipt " + o.Receipt.ID + ". The approval can't be taken back any more."}
	}
	return nil
}

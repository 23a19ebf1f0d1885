package ledger

import (
	"errors"
	"slices"
	"testing"
)

func TestARefundMovesOnlyAsItsTableSays(t *testing.T) {
	events := []RefundEvent{RefundOpen, RefundBegin, RefundLand, RefundFall, RefundProve, RefundWaive, RefundBounce, "nonsense"}
	for _, status := range append(RefundStatuses(), "") {
		for _, event := range events {
			e := RefundOwed{Amount: 100, Open: 60, Settling: 20, Settled: 30, Waived: 10, Status: status}
			after, postings, err := e.On(event, 20)
			listed := slices.ContainsFunc(RefundRules(), func(r RefundRule) bool { return r.From == status && r.Event == event && r.Left == something })
			if (err == nil) != listed {
				t.Errorf("%s from %q: %v, and the table says %v", event, status, err, listed)
			}
			if err != nil {
				if !errors.Is(err, ErrNotAllowed) || after != e {
					t.Errorf("%s from %q: %v", event, status, err)
				}
				continue
			}
			sum := int64(0)
			for _, p := range postings {
				sum += p.Amount
			}
			if sum != 0 || event != RefundOpen && after.Open+after.Settled+after.Waived != e.Amount {
				t.Errorf("%s from %q: %+v %v", event, status, after, postings)
			}
		}
	}
}

func TestNoEventMovesMoreThanThereIs(t *testing.T) {
	e := RefundOwed{Amount: 100, Open: 60, Settling: 20, Settled: 30, Waived: 10}
	for event, most := range map[RefundEvent]int64{RefundBegin: 40, RefundLand: 20, RefundFall: 20, RefundProve: 40, RefundWaive: 40, RefundBounce: 30} {
		for _, status := range RefundStatuses() {
			e.Status = status
			if _, _, err := e.On(event, most+1); err == nil {
				t.Errorf("%s of %d from %s", event, most+1, status)
			}
			for _, amount := range []int64{0, -1} {
				if _, _, err := e.On(event, amount); err == nil {
					t.Errorf("%s of %d", event, amount)
				}
			}
		}
	}
}

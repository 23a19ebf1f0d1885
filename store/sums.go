package store

import (
	"fmt"
	"math"

	"holdfast/store/ledger"
)

// A database refuses to add up what does not fit into 64 bits, and a page that
// cannot be drawn helps nobody: sums are made in two halves, and what is more
// than any money on earth is told as the most there is.

const wideUnit = 1_000_000

// wideSum is the two halves of a sum, as columns.
func wideSum(expression string) string {
	return fmt.Sprintf("coalesce(sum((%[1]s) / %[2]d), 0), coalesce(sum((%[1]s) %% %[2]d), 0)", expression, wideUnit)
}

// wide is a sum as it was read.
type wide struct{ high, low int64 }

func (w wide) amount() int64 {
	high := w.high + w.low/wideUnit
	if high >= math.MaxInt64/wideUnit {
		return math.MaxInt64
	}
	return high*wideUnit + w.low%wideUnit
}

func addTo(sums map[string]int64, currency string, amount int64) {
	sum, ok := ledger.AddAmounts(sums[currency], amount)
	if !ok {
		sum = math.MaxInt64
	}
	sums[currency] = sum
}

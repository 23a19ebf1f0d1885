package store_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// manyLines are lines of which every tenth is one of our operations.
func manyLines(b *bench, n int, ours []ledger.Operation) []ledger.StatementLine {
	lines := make([]ledger.StatementLine, n)
	for i := range lines {
		lines[i] = b.booked(int64(i+1), called(fmt.Sprint("txn_", i)), named(fmt.Sprint("pay_", i)), ref(fmt.Sprint("order ", i)), with(fmt.Sprint("acct_", i)))
		if len(ours) > 0 && i%10 == 0 {
			lines[i] = b.booked(4800, called(fmt.Sprint("txn_", i)), stamped(ours[i/10%len(ours)]))
		}
	}
	return lines
}

// While a long statement is taken in, fifty submissions a second go on, and none
// of them waits.
func TestAnImportKeepsNobodyWaiting(t *testing.T) {
	b := newBench(t)
	f := b.file("card", "long.csv", manyLines(b, 3_000, nil)...)
	done := make(chan struct{})
	var mu sync.Mutex
	var waits []time.Duration
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			d := b.draft(fmt.Sprint("busy-", n), charge, nil)
			wg.Go(func() {
				began := time.Now()
				if _, err := b.s.Submit(b.ctx, d); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				waits = append(waits, time.Since(began))
			})
		}
	})
	began := time.Now()
	b.take(f)
	took := time.Since(began)
	close(done)
	wg.Wait()
	slices.Sort(waits)
	if len(waits) == 0 {
		t.Fatal("nothing was submitted meanwhile")
	}
	longest := waits[len(waits)-1]
	t.Logf("3,000 lines in %s; %d submissions meanwhile, median %s, longest %s", took, len(waits), waits[len(waits)/2], longest)
	if longest > time.Second {
		t.Errorf("a submission waited %s", longest)
	}
}

// A hundred thousand lines, of which ten thousand are ours.
func BenchmarkImportStatement(t *testing.B) {
	b := newBench(t)
	var ours []ledger.Operation
	for n := range 200 {
		ours = append(ours, b.submit(fmt.Sprint("op", n), charge, nil))
	}
	for _, c := range b.claims("w1", "card") {
		m := b.mark(c)
		b.settle(m, found(m.Operation, "pay_of_"+c.Operation.OperationID))
	}
	lines := manyLines(b, 100_000, ours)
	t.ResetTimer()
	for n := range t.N {
		for i := range lines {
			lines[i].LineID = fmt.Sprint("txn_", n, "_", i)
		}
		b.take(b.file("card", fmt.Sprint(n), lines...))
	}
	t.ReportMetric(float64(t.N*len(lines))/t.Elapsed().Seconds(), "lines/s")
}

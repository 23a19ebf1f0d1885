package store_test

import (
	"testing"
	"time"
)

// BenchmarkSealAndCheckLog seals a log of 100,000 entries and walks over it.
func BenchmarkSealAndCheckLog(b *testing.B) {
	bench := newBenchIn(b, b.TempDir())
	defer bench.s.Close()
	bench.ok(bench.sql(`with recursive n (i) as (select (select max(seq) from action_log) + 1 union all select i + 1 from n where i < 100000)
		insert into action_log select i, 'acme', 'op-' || i, 'operation', 'op-' || i, 'mark', 'worker', 'vm-1/3', 'ready', 'in_flight', '',
			'Marked, then sent.', '{"attempt":1,"epoch":1,"fence":3,"key":"7c41a0de-93b2-4c58-8f01-1be2a9d77e60"}', 1800000000000 + i from n`))
	start := time.Now()
	sealed := bench.seal()
	took := time.Since(start)
	for b.Loop() {
		if r := bench.checkLog(); r.Fault != nil || r.Last.Size < int64(sealed) {
			b.Fatal(r.Fault)
		}
	}
	b.ReportMetric(took.Seconds(), "s/seal")
}

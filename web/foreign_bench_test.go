package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkForeignIDBesideAnAbsentOne asks by turns for an id that another
// tenant has, for one that nobody has and for another that nobody has. The ratio
// of the medians says whether an answer's time tells them apart; that of the two
// absent ones says what this machine's noise is.
func BenchmarkForeignIDBesideAnAbsentOne(b *testing.B) {
	for _, c := range []struct{ name, method, path, body string }{
		{"read", http.MethodGet, "/v1/operations/ID", ""},
		{"cancel", http.MethodPost, "/v1/operations/ID/cancel", ""},
		{"run", http.MethodGet, "/v1/runs/ID", ""},
		{"replace", http.MethodPost, "/v1/operations", strings.Replace(named("new"), "{", `{"replaces":"ID",`, 1)},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newServer(b, apiConfig)
			first := w.agent("t1")
			for i := range 200 {
				first.submit(strings.Replace(named(fmt.Sprint("taken-", i)), "{", fmt.Sprintf(`{"run_id":"taken-%d",`, i), 1))
			}
			second := w.agent("t2")
			took := map[string][]time.Duration{}
			ask := func(kind, id string) {
				begin := time.Now()
				h := second.call(c.method, strings.Replace(c.path, "ID", id, 1), strings.Replace(c.body, "ID", id, 1))
				took[kind] = append(took[kind], time.Since(begin))
				if h.Code < 400 || h.Code == http.StatusTooManyRequests {
					b.Fatal(h.Code, h.Body)
				}
			}
			for i := 0; b.Loop(); i++ {
				ask("foreign", fmt.Sprint("taken-", i%200))
				ask("absent", fmt.Sprint("nobody-", i%100))
				ask("absent too", fmt.Sprint("nobody-", 100+i%100))
			}
			median := func(kind string) float64 {
				slices.Sort(took[kind])
				return float64(took[kind][len(took[kind])/2])
			}
			b.ReportMetric(median("foreign")/median("absent"), "foreign/absent")
			b.ReportMetric(median("absent too")/median("absent"), "absent/absent")
		})
	}
}

package ledger

import (
	"testing"
	"time"
)

func TestResendOnlyWhereItCannotActTwice(t *testing.T) {
	minute := time.Minute.Milliseconds()
	rail := func(change ...func(*Rail)) Rail {
		r := Rail{Name: "card", Address: "https://a", Account: "live", Dedupe: Dedupe{DedupeKey, "header idempotency-key", 24 * time.Hour},
			Limits: Limits{MaxAttempts: 5, MaxElapsed: 48 * time.Hour}}
		for _, c := range change {
			c(&r)
		}
		return r
	}
	o := func(change ...func(*Operation)) Operation {
		o := Operation{Status: Unknown, RailAddress: "https://a", RailAccount: "live", Attempts: 1, OpenAttempts: 1, FirstMarkAt: hour, RecognisedBy: "key header idempotency-key"}
		for _, c := range change {
			c(&o)
		}
		return o
	}
	dedupe := func(by DedupeBy, retention time.Duration) func(*Rail) {
		return func(r *Rail) { r.Dedupe.By, r.Dedupe.Retention = by, retention }
	}
	by := func(recognised string) func(*Operation) { return func(o *Operation) { o.RecognisedBy = recognised } }
	const hourLong = time.Hour
	quiet := func(d time.Duration) func(*Rail) { return func(r *Rail) { r.Quiet = d } }
	for _, c := range []struct {
		claim    string
		rail     Rail
		o        Operation
		harmless bool
		after    int64 // the first mark
		ok       bool
		refusal  Reason
	}{
		{"a key that the provider still knows", rail(), o(), false, hour, true, ""},
		{"up to a sixth before its end", rail(), o(), false, 20*hour - 1, true, ""},
		{"inside the last sixth", rail(), o(), false, 20 * hour, false, KeyExpired},
		{"a request may sit at the provider until its key is forgotten", rail(dedupe(DedupeKey, hourLong), quiet(15*time.Minute)), o(), false, 45*minute - 1, true, ""},
		{"so the quiet time is kept free too", rail(dedupe(DedupeKey, hourLong), quiet(15*time.Minute)), o(), false, 45 * minute, false, KeyExpired},
		{"a key that lives shorter than a request may sit", rail(dedupe(DedupeKey, 4*time.Minute), quiet(15*time.Minute)), o(), false, 0, false, KeyExpired},
		{"a key with no published retention", rail(dedupe(DedupeKey, 0)), o(), false, 0, false, KeyExpired},
		{"a rail that deduplicates nothing", rail(dedupe(DedupeNone, 24*time.Hour)), o(), false, 0, false, Inconclusive},
		{"the zero rail's deduplication", rail(dedupe("", 24*time.Hour)), o(), false, 0, false, Inconclusive},
		{"a kind of deduplication nobody knows", rail(dedupe("magic", 24*time.Hour)), o(), false, 0, false, Inconclusive},
		{"a request that is the same by nature", rail(dedupe(DedupeNatural, 0)), o(by("natural")), false, 40 * hour, true, ""},
		{"by nature, but only for a time", rail(dedupe(DedupeNatural, time.Hour)), o(by("natural")), false, hour, false, KeyExpired},
		{"another address", rail(func(r *Rail) { r.Address = "https://b" }), o(), false, 0, false, KeyExpired},
		{"another account", rail(func(r *Rail) { r.Account = "test" }), o(), false, 0, false, KeyExpired},
		{"sent before how was kept", rail(), o(by("")), false, 0, false, KeyExpired},
		{"sent without a key", rail(), o(by("none")), false, 0, false, KeyExpired},
		{"sent with the key in another place", rail(), o(by("key body /key")), false, 0, false, KeyExpired},
		{"sent with the key in another header", rail(), o(by("key header x-key")), false, 0, false, KeyExpired},
		{"sent with a key that is the same by nature now", rail(dedupe(DedupeNatural, 0)), o(), false, 0, false, KeyExpired},
		{"sent without a key, and harmless", rail(), o(by("none")), true, 0, true, ""},
		{"all attempts used", rail(), o(func(o *Operation) { o.Attempts = 5 }), false, 0, false, AttemptsExhausted},
		{"no attempts allowed", rail(func(r *Rail) { r.Limits.MaxAttempts = 0 }), o(), false, 0, false, AttemptsExhausted},
		{"the time is over", rail(), o(), false, 48 * hour, false, BudgetExhausted},
		{"no time allowed", rail(func(r *Rail) { r.Limits.MaxElapsed = 0 }), o(), false, 0, false, BudgetExhausted},
		{"accepted by the provider", rail(), o(func(o *Operation) { o.Accepted = true }), true, 0, false, Inconclusive},
		{"harmless to repeat", rail(dedupe(DedupeNone, 0)), o(), true, 0, true, ""},
		{"harmless, but all attempts used", rail(dedupe(DedupeNone, 0)), o(func(o *Operation) { o.Attempts = 5 }), true, 0, false, AttemptsExhausted},
		{"harmless, but the time is over", rail(dedupe(DedupeNone, 0)), o(), true, 48 * hour, false, BudgetExhausted},
		{"the zero rail", Rail{}, o(), true, 0, false, AttemptsExhausted},
	} {
		t.Run(c.claim, func(t *testing.T) {
			ok, refusal, sentence := c.rail.Resend(c.o, c.harmless, c.o.FirstMarkAt+c.after)
			if ok != c.ok || refusal != c.refusal || sentence == "" {
				t.Errorf("%v %q %q, want %v %q", ok, refusal, sentence, c.ok, c.refusal)
			}
		})
	}
}

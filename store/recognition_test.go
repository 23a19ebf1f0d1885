package store_test

import (
	"testing"
	"time"

	"holdfast/store/ledger"
)

// The kept bytes go out again as they are: a rail that changed how it recognises
// a repeat recognises none of them.
func TestAResendIsRecognisedAsItWasSentOrHeld(t *testing.T) {
	none, natural := ledger.Dedupe{By: ledger.DedupeNone}, ledger.Dedupe{By: ledger.DedupeNatural}
	key := func(place string) ledger.Dedupe {
		return ledger.Dedupe{By: ledger.DedupeKey, Place: place, Retention: 24 * time.Hour}
	}
	header, other, body := key("header idempotency-key"), key("header x-key"), key("body /key")
	for _, c := range []struct {
		claim     string
		then, now ledger.Dedupe
		reason    ledger.Reason // empty: it is sent again
	}{
		{"none, then a key", none, header, ledger.KeyExpired},
		{"none, then by nature", none, natural, ledger.KeyExpired},
		{"by nature, then a key", natural, header, ledger.KeyExpired},
		{"by nature, then none", natural, none, ledger.Inconclusive},
		{"a key, then in another header", header, other, ledger.KeyExpired},
		{"a key, then in the body", header, body, ledger.KeyExpired},
		{"a key in the body, then in a header", body, header, ledger.KeyExpired},
		{"a key, then by nature", header, natural, ledger.KeyExpired},
		{"a key, then none", header, none, ledger.Inconclusive},
		{"a key, and the same again", header, header, ""},
		{"by nature, and the same again", natural, natural, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			use := func(d ledger.Dedupe) { b.changeRail(charge, func(r *ledger.Rail) { r.Dedupe = d }) }
			use(c.then)
			b.settle(b.sent("op", charge), silence)
			if c.then == none && b.get("op").NextSendAt != 0 {
				t.Fatal("a resend is planned on a rail that recognises none")
			}
			use(c.now)
			b.clock.move(time.Minute)
			b.look("op", ledger.LookInconclusive) // plans what comes next
			b.clock.move(time.Minute)
			for _, claim := range b.claims("w1", "card") {
				if c.reason != "" {
					b.wantUnmarked(claim)
					b.want("op", ledger.UnknownHold, c.reason)
					continue
				}
				b.mark(claim)
			}
			sends := 1
			if c.reason == "" {
				sends = 2
			}
			if o := b.get("op"); o.Attempts != sends || o.RecognisedBy != c.then.Recognition() {
				t.Errorf("%d attempts, recognised by %q", o.Attempts, o.RecognisedBy)
			}
		})
	}
}

// A person releases a send that would be recognised; before it goes the rail is
// changed. Who releases it after that knows.
func TestAReleasedSendIsHeldThatIsNoLongerRecognised(t *testing.T) {
	for claim, now := range map[string]ledger.Dedupe{
		"without a key": {By: ledger.DedupeNone},
		"by nature":     {By: ledger.DedupeNatural},
		"in the body":   {By: ledger.DedupeKey, Place: "body /key", Retention: 24 * time.Hour},
	} {
		t.Run(claim, func(t *testing.T) {
			b := newBench(t)
			ann := b.person("ann", "finance")
			b.changeRail(blind, func(r *ledger.Rail) { r.Limits.MaxAttempts = 1 })
			b.settle(b.sent("op", blind), silence)
			b.clock.move(2 * time.Hour)
			b.ok(b.decide(b.s.SendAgain, ann, "op"))
			b.changeRail(blind, func(r *ledger.Rail) { r.Dedupe = now })
			b.wantUnmarked(b.claim(blind))
			b.want("op", ledger.UnknownHold, ledger.KeyExpired)
			b.ok(b.decide(b.s.SendAgain, ann, "op"))
			b.mark(b.claim(blind))
		})
	}
}

func TestWhatWasSentBeforeItWasKeptIsNotResent(t *testing.T) {
	b := newBench(t)
	b.settle(b.sent("op", blind), silence)
	b.broken = true
	for _, damage := range []string{`drop trigger operations_recognised`, `update operations set recognised_by = ''`} {
		_, err := b.raw().Exec(damage)
		b.ok(err)
	}
	b.clock.move(time.Minute)
	b.wantUnmarked(b.claim(blind))
	b.want("op", ledger.UnknownHold, ledger.KeyExpired)
}

func TestHowARequestIsRecognisedIsNeverChanged(t *testing.T) {
	b := newBench(t)
	b.sent("op", blind)
	if _, err := b.raw().Exec(`update operations set recognised_by = 'natural'`); err == nil {
		t.Error("it was changed")
	}
}

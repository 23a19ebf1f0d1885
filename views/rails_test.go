package views_test

import (
	"testing"

	"golang.org/x/net/html"

	"holdfast/store/ledger"
	"holdfast/views"
)

func TestRailsPageSaysWhereEachRailStands(t *testing.T) {
	some := draw(t, views.Rails(rails()["some"]))
	mustSay(t, some,
		"card-eu 3 unknown, oldest 2 h 00 m · 1,204 waiting, oldest 11 m · 1 sending Paused by Ana", "Paused by Ana 12 m ago", "Stripe incident",
		"Sent as soon as it is their turn: 1,204 operations that wait.", "Resume card-eu",
		"Cleared half of 2 unknowns within 1 m", "p50 180 ms · p95 2.3 s", "under 5 m 1 5 m to 1 h 1 1 h to 24 h 1 over 24 h 0", "08:00 UTC 2 answers, p50 180 ms, p95 420 ms",
		"Same-key resend promised for 24 h; safe for 20 h after the first send", "Look-up yes, lags 15 m",
		"Empty search proves that nothing happened, once it is made 1 h 15 m after the last possible send", "Receipt is compared by id, amount, currency, recipient, reference, our stamp",
		"Limits 8 at a time · 5 attempts and 48 h for one operation · one attempt takes at most 10 s · between attempts 1 s to 1 m · quiet 15 m after a send",
		"Action type create_payment as above", "Action type refund its own way: look-up: no. Unknowns here always need a person; empty search: can't be made; receipt is compared by id, amount",
		"Tested 2 d ago by holdfast rail test: did not keep all it promises: repeating it under the same key, another request under the same key, looking for what was never sent, finding what was sent, having it once, more.",
		"kept: sending Confirmed as pay_1. promised: confirmed, with a receipt that agrees",
		"bank-eu 1 waiting, oldest 1 s · 2 held for a person Paused by breaker until 11:29:47 UTC; then one goes first to see", "Same-key resend not promised", "Receipt is compared by its id alone",
		"1 unknown, oldest 3 d Not configured nothing is sent on it",
		"smtp nothing waits, nothing is unknown Working Unknowns here always need a person.", "a repeat is recognised by what it is; safe for 48 h after the first send", "kept all it promises.",
		"promised for 1 m, which is too short to be used", "nothing was tried.", "a repeat is recognised by what it is for 1 h; safe for 45 m after the first send",
		"Never tested.", "holdfast rail test ledger --tenant 'Acme Ops' --payload payload.json --test-account --data /srv/holdfast")
	if open := len(some.all(func(n *html.Node) bool { return class("rail")(n) && has("open", "*")(n) })); open != 4 {
		t.Errorf("%d cards are unfolded, want the 4 in trouble", open)
	}
	mustSay(t, draw(t, views.Rails(rails()["empty"])), "No rails.")
	viewer := draw(t, views.Rails(rails()["viewer"]))
	if viewer.form("pause-rail") != nil || viewer.form("resume-rail") != nil {
		t.Error("a viewer has a form")
	}
	mustSay(t, viewer, "Pause or resume a rail: This needs the role approver, finance or admin.")
	mustSay(t, draw(t, views.Rails(rails()["opened"])), "A reason is needed.")
}

func TestPercentileIsAValueThatWasSeen(t *testing.T) {
	for _, c := range []struct {
		of     int
		values []int64
		want   int64
	}{{50, nil, 0}, {50, []int64{7}, 7}, {95, []int64{7}, 7}, {50, []int64{4, 1, 3, 2}, 2}, {95, []int64{4, 1, 3, 2}, 4}, {100, []int64{1, 9}, 9}, {0, []int64{5, 6}, 5}} {
		if got := ledger.Percentile(c.values, c.of); got != c.want {
			t.Errorf("%d of a hundred of %v: %d, want %d", c.of, c.values, got, c.want)
		}
	}
}

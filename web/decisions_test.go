package web

import (
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// Whatever the lifecycle table refuses to a person, no button offers; and a
// button that is refused says why.
func TestButtonsFollowTheLifecycle(t *testing.T) {
	const now = int64(1_000_000)
	admin := ledger.PersonRecord{ID: "pe_1", Email: "ana@example.com", Roles: []string{"admin"}}
	rail := ledger.Rail{Lookup: ledger.LookupPromise{Possible: true}}
	for _, status := range ledger.Statuses() {
		for _, sent := range []bool{false, true} {
			for _, quiet := range []int64{0, now - 1, now + 1} {
				o := ledger.Operation{Status: status, QuietFrom: quiet, NextSendAt: quiet, Overlaps: []ledger.Overlapped{{OperationID: "first"}}, Asked: ledger.Asked{Approvals: 1}}
				if sent {
					o.Attempts, o.OpenAttempts = 1, 1
				}
				for name, a := range acts {
					var given []ledger.Approval
					if name == "take-back" {
						given = []ledger.Approval{{PersonID: admin.ID, Decision: "approve"}}
					}
					d, forbidden := judge(name, o, admin, 2, rail, given, now)
					if forbidden {
						t.Errorf("%s from %s: an admin is forbidden it: %s", name, status, d.Why)
					}
					if want := name == "look-again" && status == ledger.Unknown || name != "look-again" && o.May(a.event, ledger.Person, now); d.Allowed != want {
						t.Errorf("%s from %s, sent %t, quiet from %d: allowed %t, the table says %t (%s)", name, status, sent, quiet, d.Allowed, want, d.Why)
					}
					if d.Allowed != (d.Why == "") {
						t.Errorf("%s from %s: allowed %t, and says %q", name, status, d.Allowed, d.Why)
					}
				}
				for _, name := range append(offered(o, false), offered(o, true)...) {
					if _, known := acts[name]; !known {
						t.Errorf("%s offers %s, which nobody can take", status, name)
					}
				}
			}
		}
	}
}

func TestRefusedButtonSaysWhy(t *testing.T) {
	const now = int64(1_000_000)
	person := func(roles ...string) ledger.PersonRecord {
		return ledger.PersonRecord{ID: "pe_1", Email: "ana@example.com", Roles: roles}
	}
	held := ledger.Operation{TokenID: "tok_1", Status: ledger.UnknownHold, Reason: ledger.Inconclusive, Attempts: 1, OpenAttempts: 1, QuietFrom: now - 1}
	asked := ledger.Operation{TokenID: "tok_1", Status: ledger.AwaitingApproval, Asked: ledger.Asked{Of: []string{"finance"}, Approvals: 2}}
	overlap := ledger.Operation{TokenID: "tok_1", Status: ledger.UnknownHold, Reason: ledger.SameReference, Overlaps: []ledger.Overlapped{{OperationID: "first"}}}
	asks := ledger.Rail{Lookup: ledger.LookupPromise{Possible: true, Lag: time.Minute}}
	with := func(o ledger.Operation, change func(*ledger.Operation)) ledger.Operation {
		change(&o)
		return o
	}
	for _, c := range []struct {
		act    string
		o      ledger.Operation
		by     ledger.PersonRecord
		people int
		rail   ledger.Rail
		given  []ledger.Approval
		why    string // empty: it is allowed
		from   int64
	}{
		{"approve", asked, person("finance"), 2, asks, nil, "", 0},
		{"approve", asked, person("approver", "admin"), 2, asks, nil, "This needs the role finance.", 0},
		{"approve", asked, person("viewer"), 2, asks, nil, "This needs the role", 0},
		{"approve", asked, person("finance"), 2, asks, []ledger.Approval{{Decision: "approve", PersonID: "pe_1"}}, "You approved this already.", 0},
		{"approve", asked, person("finance"), 2, asks, []ledger.Approval{{Decision: "approve", PersonID: "pe_1", VoidedAt: 7}}, "", 0},
		{"approve", asked, person("finance"), 2, asks, []ledger.Approval{{Decision: "approve", PersonID: "pe_2"}}, "", 0},
		{"approve", with(asked, func(o *ledger.Operation) { o.Owner = "ana@example.com" }), person("finance"), 2, asks, nil, "You own the token that asked for this.", 0},
		{"approve", with(asked, func(o *ledger.Operation) { o.Owner = "ana@example.com" }), person("finance"), 1, asks, nil, "", 0},
		{"approve", with(asked, func(o *ledger.Operation) { o.Asked.ExpiresAt = now }), person("finance"), 2, asks, nil, "The time to approve it is over.", 0},
		{"did-not-happen", held, person("finance"), 2, asks, nil, "", 0},
		{"did-not-happen", with(held, func(o *ledger.Operation) { o.QuietFrom = now + 5 }), person("finance"), 2, asks, nil, "A request that was sent may still act.", now + 5},
		{"did-not-happen", with(held, func(o *ledger.Operation) { o.QuietFrom = now + 5 }), person("viewer"), 2, asks, nil, "This needs the role", 0},
		{"did-not-happen", with(held, func(o *ledger.Operation) { o.QuietFrom = 0 }), person("finance"), 2, asks, nil, "not known from when", 0},
		{"send-again", held, person("finance"), 2, ledger.Rail{}, nil, "", 0}, // a named person may, also where the rail promises nothing
		{"send-again", with(held, func(o *ledger.Operation) { o.Owner = "ana@example.com" }), person("finance"), 2, asks, nil, "You own the token", 0},
		{"send-again", with(held, func(o *ledger.Operation) { o.Accepted = true }), person("finance"), 2, asks, nil, "it is never sent again", 0},
		{"happened", with(held, func(o *ledger.Operation) { o.Status = ledger.Unknown }), person("finance"), 2, asks, nil, "We are still looking.", 0},
		{"happened", with(held, func(o *ledger.Operation) { o.Status = ledger.Confirmed }), person("finance"), 2, asks, nil, "It stands at “Confirmed”", 0},
		{"look-again", held, person("finance"), 2, asks, nil, "It is held.", 0},
		{"look-again", with(held, func(o *ledger.Operation) { o.Status = ledger.Unknown }), person("finance"), 2, ledger.Rail{}, nil, "This rail cannot be asked.", 0},
		{"same-purchase", overlap, person("approver"), 2, asks, nil, "", 0},
		{"same-purchase", with(overlap, func(o *ledger.Operation) { o.Overlaps = nil }), person("approver"), 2, asks, nil, "It overlaps no other operation.", 0},
		{"different-purchase", with(overlap, func(o *ledger.Operation) { o.Owner = "ana@example.com" }), person("approver"), 2, asks, nil, "You own the token", 0},
		{"reject", with(overlap, func(o *ledger.Operation) { o.Owner = "ana@example.com" }), person("approver"), 2, asks, nil, "", 0},
	} {
		d, _ := judge(c.act, c.o, c.by, c.people, c.rail, c.given, now)
		if d.Allowed != (c.why == "") || !strings.Contains(d.Why, c.why) || d.From != c.from {
			t.Errorf("%s of %s by %v: %+v, want %q from %d", c.act, c.o.Status, c.by.Roles, d, c.why, c.from)
		}
	}
}

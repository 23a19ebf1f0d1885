package store_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// setPolicy puts another policy in force.
func (b *bench) setPolicy(rows ...ledger.PolicyRow) {
	b.t.Helper()
	r := *b.rules[tenant]
	r.Policy = policy(b.t, rows...)
	b.rules = map[string]*ledger.Rulebook{tenant: &r}
	b.ok(b.s.SetRulebooks(b.ctx, b.rules))
}

func TestARevokedTokenSendsNothing(t *testing.T) {
	b := newBench(t)
	b.submit("unsent", letter, nil)
	b.submit("not_run", wire, nil)
	m := b.mark(b.claim(wire))
	b.settle(m, notSent)
	b.settle(b.sent("open", blind), silence)
	b.clock.move(time.Second)
	unsent, notRun, open := b.claim(letter), b.claim(wire), b.claim(blind)
	b.ok(b.s.RevokeToken(b.ctx, b.token[tenant], root))
	for _, c := range []store.Claim{unsent, notRun, open} {
		b.wantUnmarked(c)
	}
	b.want("unsent", ledger.Rejected, ledger.AuthorityGone)
	b.want("not_run", ledger.Rejected, ledger.AuthorityGone)
	b.want("open", ledger.UnknownHold, ledger.AuthorityGone)
}

func TestATokenThatExpiredStillCounts(t *testing.T) {
	b := newBench(t)
	b.submit("op", letter, nil)
	b.clock.move(1000 * time.Hour)
	b.mark(b.claim(letter))
}

func TestAnUnknownTokenSendsNothing(t *testing.T) {
	b := newBench(t)
	b.submit("op", letter, nil, func(o *ledger.Operation) { o.TokenID = "tok_none" })
	b.wantUnmarked(b.claim(letter))
	b.want("op", ledger.Rejected, ledger.AuthorityGone)
}

func TestAChangedPolicyIsAskedAgain(t *testing.T) {
	allow := ledger.PolicyRow{Name: "all", Then: "allow"}
	deny := ledger.PolicyRow{Name: "none", Then: "deny"}
	ask := ledger.PolicyRow{Name: "ask", Then: "ask", Of: []string{"finance"}, Approvals: 2}
	for _, c := range []struct {
		claim  string
		sent   bool
		row    ledger.PolicyRow
		status ledger.Status
		reason ledger.Reason
	}{
		{"still allowed", false, allow, ledger.InFlight, ""},
		{"denied now", false, deny, ledger.Rejected, ledger.AuthorityGone},
		{"asks now", false, ask, ledger.AwaitingApproval, ""},
		{"still allowed after a send", true, allow, ledger.InFlight, ""},
		{"denied after a send", true, deny, ledger.UnknownHold, ledger.AuthorityGone},
		{"asks after a send: its first mark spent what it needed", true, ask, ledger.InFlight, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			if c.sent {
				b.settle(b.sent("op", blind), silence)
				b.clock.move(time.Second)
			} else {
				b.submit("op", blind, nil)
			}
			claim := b.claim(blind)
			b.setPolicy(c.row)
			if c.status == ledger.InFlight {
				b.mark(claim)
			} else {
				b.wantUnmarked(claim)
			}
			if o := b.want("op", c.status, c.reason); c.status == ledger.AwaitingApproval && (o.Asked.Approvals != 2 || o.PolicyVersion != b.rules[tenant].Policy.Version) {
				t.Errorf("asked %+v", o.Asked)
			}
		})
	}
}

func TestApprovalsThatAreNoLongerGood(t *testing.T) {
	for _, c := range []struct {
		claim  string
		change func(*bench)
	}{
		{"expired", func(b *bench) { b.clock.move(73 * time.Hour) }},
		{"void", func(b *bench) { b.ok(b.sql(`update approvals set voided_at = 1`)) }},
		{"another rail address", func(b *bench) { b.changeRail(letter, func(r *ledger.Rail) { r.Address = "https://other.example" }) }},
		{"another rail account", func(b *bench) { b.changeRail(letter, func(r *ledger.Rail) { r.Account = "other" }) }},
	} {
		t.Run(c.claim, func(t *testing.T) {
			b := newBench(t)
			ann, bob := b.person("ann", "approver"), b.person("bob", "finance")
			b.submit("op", letter, to("acct_two"))
			b.ok(b.decide(b.s.Approve, ann, "op"))
			b.ok(b.decide(b.s.Approve, bob, "op"))
			c.change(b)
			b.wantUnmarked(b.claim(letter))
			o := b.want("op", ledger.AwaitingApproval, "")
			if o.Asked.Approvals != 2 || o.Asked.ExpiresAt <= b.clock.ms.Load() {
				t.Errorf("asked %+v", o.Asked)
			}
			// The same people may say yes to what it is now.
			b.ok(b.decide(b.s.Approve, ann, "op"))
			b.want("op", ledger.AwaitingApproval, "")
			b.ok(b.decide(b.s.Approve, bob, "op"))
			m := b.mark(b.claim(letter))
			if rail := b.rules[tenant].Routes[letter]; m.Attempt.Address != rail.Address || m.Attempt.Account != rail.Account || m.Operation.ProviderKey != o.ProviderKey {
				t.Errorf("sent to %s %s", m.Attempt.Address, m.Attempt.Account)
			}
		})
	}
}

func TestARailThatMovedIsNeverSentToUnasked(t *testing.T) {
	b := newBench(t)
	b.submit("op", letter, nil)
	b.changeRail(letter, func(r *ledger.Rail) { r.Address = "https://other.example" })
	b.wantUnmarked(b.claim(letter))
	if o := b.want("op", ledger.AwaitingApproval, ""); o.Asked.Approvals != 1 {
		t.Errorf("asked %+v", o.Asked)
	}
}

func TestOnePersonCountsOnce(t *testing.T) {
	b := newBench(t)
	ann, bob := b.person("ann", "approver"), b.person("bob", "approver")
	b.submit("op", letter, to("acct_two"))
	b.ok(b.decide(b.s.Approve, ann, "op"))
	b.want("op", ledger.AwaitingApproval, "")
	b.wantErr(b.decide(b.s.Approve, ann, "op"), store.ErrForbidden)
	b.want("op", ledger.AwaitingApproval, "")
	if c := b.claims("w1", "post"); len(c) != 0 {
		t.Fatal("claimed with one approval of two")
	}
	b.ok(b.decide(b.s.Approve, bob, "op"))
	b.want("op", ledger.Ready, "")
	b.mark(b.claim(letter))
	approvals, err := b.s.Approvals(b.ctx, tenant, "op")
	b.ok(err)
	for _, a := range approvals {
		if a.SpentAt == 0 {
			t.Errorf("the approval of %s is not spent", a.PersonEmail)
		}
	}
}

func TestApprovalsAtOnceCountOnceEach(t *testing.T) {
	b := newBench(t)
	ann := b.person("ann", "approver")
	b.person("bob", "approver")
	b.submit("op", letter, to("acct_ask"))
	d := b.decision(ann, "op")
	errs := make([]error, 16)
	together(len(errs), func(i int) { _, errs[i] = b.s.Approve(b.ctx, tenant, "op", d) })
	yes := 0
	for _, err := range errs {
		if err == nil {
			yes++
		} else {
			b.wantErr(err, store.ErrStale)
		}
	}
	approvals, err := b.s.Approvals(b.ctx, tenant, "op")
	b.ok(err)
	if yes != 1 || len(approvals) != 1 {
		t.Errorf("%d clicks counted, %d approvals", yes, len(approvals))
	}
}

func TestFourEyes(t *testing.T) {
	b := newBench(t)
	owner := b.person("olga", "approver")
	b.submit("alone", letter, to("acct_ask"))
	b.ok(b.decide(b.s.Approve, owner, "alone"))
	b.want("alone", ledger.Ready, "")
	approvals, err := b.s.Approvals(b.ctx, tenant, "alone")
	b.ok(err)
	if !approvals[0].SelfApproved {
		t.Error("it is not stamped self-approved")
	}
	second := b.person("ann", "approver")
	b.submit("two", letter, map[string]any{"recipient": "acct_ask", "amount": 1})
	b.wantErr(b.decide(b.s.Approve, owner, "two"), store.ErrForbidden)
	b.want("two", ledger.AwaitingApproval, "")
	viewer := b.person("vic", "viewer")
	b.wantErr(b.decide(b.s.Approve, viewer, "two"), store.ErrForbidden)
	other := ledger.PersonRecord{ID: "pe_x", TenantID: "other", Email: "x@other.example", Roles: []string{"admin", "approver"}}
	b.wantErr(b.decide(b.s.Approve, other, "two"), store.ErrNotFound)
	b.ok(b.decide(b.s.Approve, second, "two"))
}

func TestADecisionOnWhatWasNotSeenIsRefused(t *testing.T) {
	b := newBench(t)
	ann := b.person("ann", "approver")
	b.submit("op", letter, to("acct_ask"))
	b.wantErr(b.decide(b.s.Approve, ann, "op", func(d *store.Decision) { d.Seen.Fingerprint = "hf1:sha256:00" }), store.ErrStale)
	b.wantErr(b.decide(b.s.Approve, ann, "op", func(d *store.Decision) { d.Seen.Version++ }), store.ErrStale)
	b.wantErr(b.decide(b.s.Reject, ann, "op", func(d *store.Decision) { d.Seen = store.Seen{} }), store.ErrStale)
	b.wantErr(b.decide(b.s.Reject, ann, "op", func(d *store.Decision) { d.Reason = " " }), store.ErrForbidden)
	b.want("op", ledger.AwaitingApproval, "")
	b.ok(b.decide(b.s.AskForChanges, ann, "op"))
	b.want("op", ledger.Rejected, ledger.Denied)
}

func TestAnApprovalInTimeOrNever(t *testing.T) {
	b := newBench(t)
	ann := b.person("ann", "approver")
	b.submit("op", letter, to("acct_ask"))
	b.clock.move(24 * time.Hour)
	b.wantErr(b.decide(b.s.Approve, ann, "op"), ledger.ErrNotAllowed) // though nobody swept yet
	b.sweep()
	b.want("op", ledger.Rejected, ledger.ApprovalExpired)
}

func TestAnApprovalIsForOneOperation(t *testing.T) {
	b := newBench(t)
	ann := b.person("ann", "approver")
	b.submit("op1", letter, to("acct_ask"))
	b.ok(b.decide(b.s.Approve, ann, "op1"))
	b.mark(b.claim(letter))
	b.submit("op2", letter, map[string]any{"recipient": "acct_ask", "amount": 1})
	for i := range 3 {
		if c := b.claims("w1", "post"); len(c) != 0 {
			t.Fatal(fmt.Sprint("claimed without an approval of its own ", i))
		}
		b.clock.move(time.Minute)
	}
	// Not even when the row says that it is ready.
	b.broken = true
	b.ok(b.sql(`update operations set status = 'ready' where operation_id = 'op2'`))
	b.wantUnmarked(b.claim(letter))
	b.want("op2", ledger.AwaitingApproval, "")
}

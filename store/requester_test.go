package store_test

import (
	"testing"

	"holdfast/store/ledger"
)

// inPerson is asked for by a person at a page, without an agent or a token.
func inPerson(p ledger.PersonRecord) func(*ledger.Operation) {
	return func(o *ledger.Operation) { o.Agent, o.TokenID, o.Owner = "", "", p.Email }
}

func TestWhatAPersonAsksForWaitsForAnother(t *testing.T) {
	b := newBench(t)
	fin, ana := b.person("fin", "finance", "approver"), b.person("ana", "approver")
	if o := b.submit("op", wire, to("acct_ask"), inPerson(fin)); o.Status != ledger.AwaitingApproval {
		t.Fatal(o.Status)
	}
	if err := b.decide(b.s.Approve, fin, "op"); err == nil || err.Error() != "not allowed: You asked for this. Someone else must decide." {
		t.Errorf("they approve it themselves: %v", err)
	}
	b.ok(b.decide(b.s.Approve, ana, "op"))
	m := b.mark(b.claim(wire))
	b.settle(m, found(m.Operation, "pay_1"))
	o := b.want("op", ledger.Confirmed, "")
	if o.Requester() != (ledger.Holder{Kind: ledger.Person, Name: fin.Email}) {
		t.Errorf("asked for by %v", o.Requester())
	}
	entries, err := b.s.Timeline(b.ctx, tenant, "op")
	b.ok(err)
	if entries[0].ActorKind != ledger.Person || entries[0].Actor != fin.Email {
		t.Errorf("the log says %s %s", entries[0].ActorKind, entries[0].Actor)
	}
}

func TestPolicyAsksAboutAPersonsWishAsAboutAnAgents(t *testing.T) {
	b := newBench(t)
	fin := b.person("fin", "finance")
	b.submit("no", wire, to("acct_bad"), inPerson(fin))
	b.want("no", ledger.Rejected, ledger.PolicyDenied)
	b.submit("yes", wire, nil, inPerson(fin))
	b.want("yes", ledger.Ready, "")
	b.submit("again", wire, map[string]any{"reference": "ref-yes"}, inPerson(fin))
	b.want("again", ledger.UnknownHold, ledger.SameReference)
}

// A person who left takes what they asked for along, as a revoked token does.
func TestNothingGoesOutForAPersonWhoMayNoLonger(t *testing.T) {
	for name, end := range map[string]func(*bench, ledger.PersonRecord){
		"disabled": func(b *bench, p ledger.PersonRecord) { b.ok(b.s.DisablePerson(b.ctx, p.Email, root)) },
		"viewer by now": func(b *bench, p ledger.PersonRecord) {
			b.ok(b.sql(`update people set roles = '["viewer"]' where id = $1`, p.ID))
		},
		"of another tenant": func(b *bench, p ledger.PersonRecord) {
			b.ok(b.sql(`insert into tenants (tenant_id, created_at) values ('other', 0)`))
			b.ok(b.sql(`update people set tenant_id = 'other' where id = $1`, p.ID))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.person("adm", "admin")
			fin := b.person("fin", "finance")
			b.submit("op", wire, nil, inPerson(fin))
			c := b.claim(wire)
			end(b, fin)
			b.wantUnmarked(c)
			b.want("op", ledger.Rejected, ledger.AuthorityGone)
		})
	}
}

// Without a name nobody has asked: an operation of no agent, no token and no
// person is not sent.
func TestNobodyIsNoRequester(t *testing.T) {
	b := newBench(t)
	b.submit("op", wire, nil, func(o *ledger.Operation) { o.Agent, o.TokenID, o.Owner = "", "", "" })
	b.wantUnmarked(b.claim(wire))
	b.want("op", ledger.Rejected, ledger.AuthorityGone)
}

package views_test

import (
	"testing"

	"holdfast/store/ledger"
	"holdfast/views"
)

// audits are the log's page in each of its states.
func audits() map[string]views.AuditPage {
	f := frame(views.AtAudit)
	f.Pages.Audit = true
	some := views.AuditPage{Frame: f, Ever: true, Below: 48091, Objects: []string{"person", "rail", "refund_owed", "run", "session"}, Events: []string{"ask", "mark", "pause", "sign_in"}, Items: []ledger.Entry{
		{Seq: 48112, Object: "operation", ObjectID: "inv-481-charge", OperationID: "inv-481-charge", Event: "lose", ActorKind: ledger.Worker, Actor: "vm-1/3", From: ledger.InFlight, To: ledger.Unknown, Sentence: "No answer in 30 s (/amount).", At: now - minute},
		{Seq: 48111, Object: "operation", ObjectID: "refund-5512", OperationID: "refund-5512", Event: "deny", ActorKind: ledger.Person, Actor: "ana@example.com", From: ledger.AwaitingApproval, To: ledger.Rejected, Reason: ledger.Denied, Sentence: "Ana: the last one failed, no retry.", At: now - 2*minute},
		{Seq: 48110, Object: "operation", ObjectID: "refund-5512", OperationID: "refund-5512", Event: "ask", ActorKind: ledger.Agent, Actor: "billing-3", To: ledger.AwaitingApproval, Sentence: "Rule “USDC over 50 needs Finance” asks for people.", At: now - hour},
		{Seq: 48109, Object: "refund_owed", ObjectID: "owed_1", OperationID: "inv-481-charge", Event: "open", ActorKind: ledger.Reconciler, Actor: "lookup", From: ledger.Confirmed, To: ledger.Confirmed, At: now - 2*hour},
		{Seq: 48108, Object: "rail", ObjectID: "card-eu", Event: "pause", ActorKind: ledger.Person, Actor: "ana@example.com", Sentence: "Ana paused the rail card-eu: Stripe incident", At: now - 3*hour},
		{Seq: 48107, Object: "run", ObjectID: "run-812", Event: "stop", ActorKind: ledger.Person, Actor: "jon@example.com", At: now - day},
		{Seq: 48106, Object: "session", ObjectID: "p_1", Event: "sign_in", ActorKind: ledger.Person, Actor: "ana@example.com", Sentence: "ana@example.com signed in.", At: now - 2*day},
		{Seq: 48105, Object: "operation", ObjectID: "inv-481-charge", OperationID: "inv-481-charge", Event: "expire", ActorKind: ledger.Clock, Actor: "", From: ledger.AwaitingApproval, To: ledger.Rejected, Reason: ledger.ApprovalExpired, At: now - 2*day},
	}}
	some.Seal = views.Seal{Days: []ledger.LogHead{{Size: 48100, Root: [32]byte{7, 1}, At: now - minute}, {Size: 40231, Root: [32]byte{9, 2}, At: now - day}}, Unsealed: 12, Key: "holdfast/7Q+1+A"}
	unread := some
	unread.Seal = views.Seal{Unread: true}
	filtered := some
	filtered.Items, filtered.Below = some.Items[4:5], 0
	filtered.Filter = views.AuditFilter{Actor: "ana@example.com", Object: "rail", ObjectID: "card-eu", Event: "pause", From: "2026-11-01", To: "2026-11-30"}
	none, wrong, end := filtered, filtered, some
	none.Items, wrong.Items, wrong.Problem, end.Items, end.Below = nil, nil, "Write a day like 2026-01-31.", nil, 0
	return map[string]views.AuditPage{"some": some, "filtered": filtered, "no-match": none, "wrong": wrong, "end": end, "unread-head": unread, "empty": {Frame: calm(f)}}
}

func TestTheLogSaysWhoDidWhatToWhatInWords(t *testing.T) {
	d := draw(t, views.Audit(audits()["some"]))
	mustSay(t, d, "48112", "worker vm-1/3", "No answer No answer in 30 s (amount).", "Sending → Outcome unknown",
		"person ana@example.com", "Needs approval → Rejected", "new → Needs approval", "agent billing-3", "job lookup Opened Refund owed owed_1 of inv-481-charge",
		"Paused Ana paused the rail card-eu", "time", "Needs approval → Expired", "no change of status", "Signed in")
	for href, n := range map[string]int{"/operations/inv-481-charge": 3, "/refunds/owed_1": 1, "/rails": 1, "/runs?run_id=run-812": 1, "/audit?id=card-eu": 1, "/audit?actor=vm-1%2F3": 1, "/audit?below=48091": 1} {
		if got := len(within(d.all(tag("main"))[0], has("href", href))); got != n {
			t.Errorf("%d links to %s, want %d", got, href, n)
		}
	}
	filtered := draw(t, views.Audit(audits()["filtered"]))
	mustSay(t, filtered, "who: ana@example.com", "kind: Rail", "object: card-eu", "what: paused", "from: 2026-11-01", "to: 2026-11-30")
	mustSay(t, draw(t, views.Audit(audits()["no-match"])), "Nothing like this was done.")
	mustSay(t, draw(t, views.Audit(audits()["empty"])), "Nothing was done yet.")
	mustSay(t, draw(t, views.Audit(audits()["end"])), "No older entries.")
	for name, page := range audits() {
		d := draw(t, views.Audit(page))
		posts := 1 // signing out
		if page.Ever {
			posts++
		}
		if len(d.all(has("method", "post"))) != posts || len(d.all(has("data-act", "verify-log"))) != posts-1 {
			t.Errorf("%s: something else than verifying posts from the log's page", name)
		}
	}
}

func TestTheSealSaysHowFarTheLogIsSigned(t *testing.T) {
	head := ledger.LogHead{Size: 48100, Root: [32]byte{7, 1}}
	d := draw(t, views.Audit(audits()["some"]))
	mustSay(t, d, "Verify chain", head.Words(), head.Hex(), "48,100 entries", "12 entries since the last seal", "40,231", "sha256:")
	mustSay(t, draw(t, views.Audit(audits()["unread-head"])), "A head cannot be read")
	unsealed := audits()["some"]
	unsealed.Seal = views.Seal{}
	mustSay(t, draw(t, views.Audit(unsealed)), "Not sealed yet.")
	f := frame(views.AtAudit)
	mustSay(t, draw(t, views.Message(views.LogChecked(f, 48112, now-day, head, nil, 3))), "48,100 entries, unbroken since", head.Words(), "12 entries since the last seal are not covered yet.")
	mustSay(t, draw(t, views.Message(views.LogChecked(f, 3, now, ledger.LogHead{}, nil, 0))), "not sealed yet")
	mustSay(t, draw(t, views.Message(views.LogBroken(f, "entry 4 is not what was sealed"))), "Entry 4 is not what was sealed.", "cannot be believed")
}

// searches are the page of what was searched for in each of its states.
func searches() map[string]views.SearchPage {
	f := frame("")
	line := views.LineHit{Line: ledger.KeptLine{StatementLine: ledger.StatementLine{Number: 12, ProviderID: "pay_91", At: now - day}, Rail: "card-eu", State: ledger.LineMatched}, OperationID: "inv-481-charge"}
	stray := line
	stray.OperationID, stray.Line.State = "", ledger.LineUnmatched
	owed := views.RefundHit{Entry: entryOwed(), From: charge(ledger.Confirmed, "")}
	return map[string]views.SearchPage{
		"nothing": {Frame: f}, "none": {Frame: test(f), Name: "pay_92"},
		"some": {Frame: f, Name: "pay_91", Operations: []ledger.Operation{charge(ledger.Confirmed, ""), refund()}, Refunds: []views.RefundHit{owed}, Lines: []views.LineHit{line, stray}, More: true},
	}
}

func TestOnlyOneThingOpensAtOnce(t *testing.T) {
	all := searches()["some"]
	all.More = false
	for want, p := range map[string]views.SearchPage{
		"/operations/inv-481-charge":          {Operations: all.Operations[:1], Lines: all.Lines[:1]},
		"/refunds/" + all.Refunds[0].Entry.ID: {Refunds: all.Refunds},
	} {
		if got := p.Only(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		p.More = true
		if p.Only() != "" {
			t.Error("it opens although there is more")
		}
	}
	for name, p := range map[string]views.SearchPage{"two": {Operations: all.Operations}, "none": {}, "stray line": {Operations: all.Operations[:1], Lines: all.Lines}, "two kinds": {Operations: all.Operations[:1], Refunds: all.Refunds}} {
		if got := p.Only(); got != "" {
			t.Errorf("%s opens %s", name, got)
		}
	}
}

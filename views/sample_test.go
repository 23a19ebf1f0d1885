package views_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/a-h/templ"

	"holdfast/store/ledger"
	"holdfast/views"
)

// now is a Monday morning in Bratislava's winter; the pages speak UTC.
var now = time.Date(2026, 11, 30, 11, 28, 12, 118_000_000, time.UTC).UnixMilli()

const (
	second = int64(1000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

var money = ledger.Currencies{"USDC": 6}

func frame(here views.Place) views.Frame {
	return views.Frame{
		Tenant: "Acme Ops", BaseURL: "https://pay.example.com", Here: here, Now: now, Money: money,
		Person: views.Person{Name: "Ana", Email: "ana@example.com", Roles: []string{"finance", "approver"}},
		Pages:  views.Pages{Refunds: true, Settings: true},
		Counts: views.Counts{
			Approvals: 4, Unknown: 3, OldestUnknownAt: now - 2*hour - 14*minute,
			AtRisk: []views.Sum{{Amount: 124000, Currency: "USD"}, {Amount: 90_000000, Currency: "USDC"}},
			Owed:   5, OwedSums: []views.Sum{{Amount: 31000, Currency: "USD"}}, CheckedAt: now - 12*second,
		},
	}
}

func calm(f views.Frame) views.Frame {
	f.Counts = views.Counts{CheckedAt: now - 12*second}
	return f
}

func test(f views.Frame) views.Frame { f.Test = true; return f }

func charge(status ledger.Status, reason ledger.Reason) ledger.Operation {
	payload := []byte(`{"amount":48000,"currency":"USD","metadata":{"table":12},"recipient":"Bistro Lind","reference":"inv-481"}`)
	o := ledger.Operation{
		TenantID: "acme", OperationID: "inv-481-charge", OrderID: "ord_5KZ0Q3M7T9W2XBVD4R8H6JNC1E",
		ProviderKey: "7c41a0de-93b2-4c58-8f01-1be2a9d77e60", ActionType: "create_payment", Effect: "charge",
		Fingerprint: "hf1:sha256:c6c56e6737df0b1a9d2e44f1035c8a7be2c1d90f6a54e3b8172c0d9eaf31b6a2",
		Canonical:   []byte(`{"action_type":"create_payment","payload":` + string(payload) + `}`), Payload: payload,
		Terms: ledger.Terms{Amount: 48000, HasAmount: true, Currency: "USD", Recipient: "Bistro Lind", Reference: "inv-481", Customer: "c_91"},
		Rail:  "card-eu", RailAddress: "https://api.example.com", RailAccount: "live-eu",
		Agent: "billing-3", TokenID: "tok_1", Owner: "jon@example.com", RunID: "run-812", Step: "charge ticket 5512",
		PolicyVersion: "9f2c77aa01d4e9b3", PolicyRow: "big charges",
		Asked:  ledger.Asked{Of: []string{"finance"}, Approvals: 1, ExpiresAt: now + 26*minute},
		Status: status, Reason: reason, Version: 7,
		CreatedAt: now - 2*hour - 14*minute - 192, UpdatedAt: now - hour,
	}
	switch status {
	case ledger.InFlight, ledger.Unknown, ledger.Confirmed:
		sent(&o)
	case ledger.UnknownHold:
		if !views.Overlaps(reason) && reason != ledger.ClaimsExhausted {
			sent(&o)
		}
	case ledger.Rejected:
		if reason == ledger.Declined || reason == ledger.NotExecuted {
			sent(&o)
		}
	}
	if status == ledger.Confirmed {
		amount := int64(48000)
		o.OpenAttempts = 0
		o.Receipt = &ledger.Receipt{ID: "pay_91", Amount: &amount, Currency: "USD", Recipient: "Bistro Lind", Reference: "inv-481",
			Stamp: o.OrderID, Raw: []byte("{\n  \"id\": \"pay_91\",\n  \"note\": \"processed, no error, success\"\n}")}
	}
	return o
}

func sent(o *ledger.Operation) {
	o.Attempts, o.OpenAttempts = 2, 1
	o.FirstMarkAt = now - 2*hour - 14*minute
	o.LastSendBy = o.FirstMarkAt + 30*second
	o.QuietFrom = now + 12*minute
	o.UnknownSince = now - 2*hour - 13*minute - 30*second
	o.NextLookAt = now + 3*minute
	o.Looks = 3
	o.EverUnknown = true
}

func refund() ledger.Operation {
	payload := []byte(`{"amount":90000000,"charge":"op_01H","currency":"USDC","network":"base","note":"customer asked` + "\u200b" + `","recipient":"0x9f3a7be2c41e00aa9f3a7be2c41e00aa02aac41e"}`)
	o := charge(ledger.AwaitingApproval, "")
	o.OperationID, o.ActionType, o.Effect, o.Rail = "refund-5512", "refund", "refund", "usdc-base"
	o.Payload, o.Canonical = payload, []byte(`{"action_type":"refund","payload":`+string(payload)+`}`)
	o.Terms = ledger.Terms{Amount: 90_000000, HasAmount: true, Currency: "USDC", Recipient: "0x9f3a7be2c41e00aa9f3a7be2c41e00aa02aac41e", Customer: "c_91"}
	o.PolicyRow = "USDC over 50 needs Finance"
	o.Because = "Customer reports double charge. The first try failed with an error, so this is safe to approve at once."
	o.DistinctFrom = []string{"inv-480-charge"}
	o.Replaces = "refund-5511"
	o.CreatedAt = now - 34*minute
	return o
}

func email() ledger.Operation {
	o := charge(ledger.Ready, "")
	o.OperationID, o.ActionType, o.Effect, o.Rail, o.Terms = "mail-77", "send_email", "email", "smtp", ledger.Terms{Recipient: "marta@example.com"}
	o.Payload = []byte(`{"body":"Dear Marta","to":"marta@example.com"}`)
	o.Canonical = []byte(`{"action_type":"send_email","payload":{"body":"Dear Marta","to":"marta@example.com"}}`)
	return o
}

func actionType(t testing.TB) *ledger.ActionType {
	a, err := ledger.NewActionType("create_payment", ledger.ActionSpec{Rail: "card-eu", Effect: "charge", Schema: []byte(`{
		"type": "object",
		"properties": {
			"amount": {"type": "integer", "x-role": "amount"},
			"currency": {"type": "string", "x-role": "currency"},
			"recipient": {"type": "string", "x-role": "recipient"},
			"reference": {"type": "string", "x-role": "reference", "title": "invoice"},
			"iban": {"type": "string", "x-sensitive": true}
		}}`)}, money)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func fields(t testing.TB, o ledger.Operation, was *ledger.Operation) []views.Field {
	rows, err := views.Fields(o, was, actionType(t), true, money)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func record(t testing.TB, f views.Frame, o ledger.Operation) views.OperationPage {
	p := views.OperationPage{
		Frame: f, Operation: o, Words: "amber-falcon-otter", Fields: fields(t, o, nil),
		Rule: "create_payment, USD, over 100.00 → 1 of finance", MaxAttempts: 5, KeyUntil: now + 21*hour + 46*minute,
		RailSays: "Same-key resend: promised for 24 h. Look-up by reference: yes, lags 15 m. An empty look-up is never proof here.",
		Facts:    []string{"Paid to this recipient 14 times before, last on 3 Nov."},
		Log: []ledger.Entry{
			{Seq: 48101, Object: "operation", Event: "ask", ActorKind: ledger.Agent, Actor: "billing-3", To: ledger.AwaitingApproval, Sentence: "Policy row big charges asks for finance.", At: o.CreatedAt},
			{Seq: 48104, Object: "operation", Event: "approve", ActorKind: ledger.Person, Actor: "ana@example.com", From: ledger.AwaitingApproval, To: ledger.Ready, Sentence: "Approved.", Fact: `{"fingerprint":"hf1:sha256:c6c5"}`, At: o.CreatedAt + 41*second},
		},
	}
	if o.Attempts > 0 {
		first := o.FirstMarkAt
		p.Attempts = []ledger.Attempt{
			{Number: 1, Fence: 14, Worker: "w-1", ProviderKey: o.ProviderKey, MarkedAt: first, Outcome: ledger.AttemptUnknown, OutcomeAt: first + 30*second, Sentence: "The connection was cut before an answer came."},
			{Number: 2, Fence: 15, Worker: "w-2", ProviderKey: o.ProviderKey, MarkedAt: first + 5*minute, Outcome: ledger.AttemptUnknown, OutcomeAt: first + 5*minute + 900, HTTPStatus: 500, Sentence: "HTTP 500 proves nothing on this rail."},
		}
		p.Evidence = []ledger.Evidence{
			{Source: "answer", Finding: "inconclusive", Sentence: "HTTP 500 after the request was read.", Body: []byte(`{"error":"internal failure, please retry"}`), SHA256: "ab12cd34ef56ab12cd34ef56", By: "w-2", At: first + 5*minute + 900, Attempt: 2},
			{Source: "lookup", Finding: "absent", Sentence: "Look-up by order id found nothing; this index can lag 15 m.", By: "lookup", At: first + 6*minute},
			{Source: "person", Finding: "note", Sentence: "Request req_9X is in the provider's log.", By: "ana@example.com", At: now - 40*minute},
		}
		p.Log = append(p.Log,
			ledger.Entry{Seq: 48110, Event: "mark", ActorKind: ledger.Worker, Actor: "w-1", From: ledger.Ready, To: ledger.InFlight, At: first},
			ledger.Entry{Seq: 48111, Event: "lose", ActorKind: ledger.Worker, Actor: "w-1", From: ledger.InFlight, To: ledger.Unknown, Sentence: "No answer after 30.0 s.", At: first + 30*second})
		p.Request = &ledger.Request{Method: "POST", SHA256: "9d2e44f1035c8a7be2c1d90f6a54e3b8172c0d9eaf31b6a2",
			Display: "POST https://api.example.com/payments\nAuthorization: ••••\nIdempotency-Key: " + o.ProviderKey + "\nContent-Type: application/json\n\n" + string(o.Payload)}
		p.Approvals = []ledger.Approval{{Decision: "approve", Fingerprint: o.Fingerprint, PersonEmail: "ana@example.com", SelfApproved: true, Reason: "Invoice checked.", DecidedAt: o.CreatedAt + 41*second, SpentAt: first}}
	}
	return p
}

func approval(t testing.TB) views.OperationPage {
	o := refund()
	was := o
	was.Payload = []byte(`{"amount":30000000,"charge":"op_01H","currency":"USDC","network":"base","note":"customer asked","recipient":"0x9f3a7be2c41e00aa9f3a7be2c41e00aa02aac41e"}`)
	was.Terms.Amount = 30_000000
	p := record(t, frame(views.AtApprovals), o)
	p.Fields = fields(t, o, &was)
	for i := range p.Fields {
		if p.Fields[i].Pointer == "/recipient" {
			p.Fields[i].Note = "never paid before"
		}
	}
	p.Was = "refund-5511"
	p.Flags = []string{"New recipient", "6× this customer's usual"}
	p.Rule = "refund, USDC, over 50.00 → 1 of finance"
	p.Facts = []string{"Original charge op_01H is Confirmed, receipt 0xabc1.", "Refunded so far 0.00 of 90.00 USDC; this refund would leave 0.00."}
	p.Decisions = []views.Decision{{Act: "approve", Allowed: true}, {Act: "reject", Allowed: true}, {Act: "ask-changes", Allowed: true}}
	return p
}

var afterSend = []views.Decision{
	{Act: "happened", Allowed: true},
	{Act: "did-not-happen", Why: "No look-up yet after the index delay.", From: now + 12*minute},
	{Act: "happened-twice", Allowed: true},
	{Act: "send-again", Why: "You own the token that asked for this. Someone else must decide."},
	{Act: "still-unknown", Allowed: true},
	{Act: "look-again", Allowed: true},
}

var beforeSend = []views.Decision{
	{Act: "same-purchase", Allowed: true},
	{Act: "different-purchase", Allowed: true},
	{Act: "reject", Allowed: true},
}

func hold(t testing.TB, reason ledger.Reason) views.HoldPage {
	p := views.HoldPage{OperationPage: record(t, frame(views.AtUnknown), charge(ledger.UnknownHold, reason))}
	p.Holder = "Ana"
	if views.BeforeSend(p.Operation) {
		p.Decisions = slices.Clone(beforeSend)
		earlier := charge(ledger.Confirmed, "")
		earlier.OperationID, earlier.CreatedAt, earlier.RunID = "inv-481", now-5*hour, "run-811"
		p.Earlier = []views.Earlier{{Operation: earlier, Why: []string{"same_reference", "recipient", "amount"}}}
		p.Operation.Overlaps = []ledger.Overlapped{{OperationID: "inv-481", Why: []string{"reference"}}}
		p.Operation.Because = "Second instalment, I am sure."
		return p
	}
	p.Decisions = slices.Clone(afterSend)
	p.Says = []string{"Not enough to decide.", "Three look-ups found nothing; none of them counts as proof on this rail."}
	p.Missing = []string{"one look-up after 11:40 UTC, or the provider's own record"}
	p.Usual = []string{"Seen in the provider's dashboard", "Support confirmed it in writing"}
	return p
}

func refundOwed() ledger.RefundOwed {
	return ledger.RefundOwed{ID: "ro_1", OperationID: "inv-481-charge", ReceiptID: "ch_78", Direction: "we_owe", Cause: "duplicate_charge",
		Rail: "card-eu", Currency: "USD", Amount: 4800, Open: 4800, Status: "owed", Customer: "Marta K.", OpenedAt: now - 3*day, DueAt: now + 7*hour}
}

// entryOwed is the same with the version that a form carries.
func entryOwed() ledger.RefundOwed {
	e := refundOwed()
	e.Version = 7
	return e
}

func home() views.HomePage {
	owed := refundOwed()
	return views.HomePage{
		Frame: frame(views.AtHome),
		Items: []views.Need{
			{Operation: charge(ledger.UnknownHold, ledger.Inconclusive), Sentence: "Provider has not answered; 3 look-ups found nothing. Key good for 21 h 46 m more.", Since: now - 2*hour - 14*minute},
			{Operation: refund(), Sentence: "Rule “USDC over 50 needs Finance”", Flags: []string{"new recipient"}, Until: now + 26*minute},
			{Refund: &owed, Sentence: "Charged twice; promised by today.", Since: now - 3*day},
		},
		Others:    []views.Need{{Operation: charge(ledger.AwaitingApproval, ""), Sentence: "You own the token that asked for this.", Until: now + 3*hour}},
		DoneToday: 7,
		Next:      []string{"1 approval expires 18:30 UTC"},
	}
}

// drawn is one page in one of its states.
type drawn struct {
	name string
	page templ.Component
}

// everyPage draws each page in each state that it can be in.
func everyPage(t testing.TB) []drawn {
	out := frame("")
	out.Person, out.Counts = views.Person{}, views.Counts{}
	var all []drawn
	add := func(name string, c templ.Component) { all = append(all, drawn{name, c}) }

	add("setup", views.Setup(views.SetupPage{Frame: out}))
	add("setup-link", views.Setup(views.SetupPage{Frame: out, Code: "KFQ7-2MXD", CodeGiven: true, Alone: true, Secure: true, Name: "Ana", Email: "ana@example.com", Problem: "That code was used already. holdfast setup-link makes another."}))
	add("login", views.Login(views.LoginPage{Frame: out, Next: "/approvals"}))
	add("login-wrong", views.Login(views.LoginPage{Frame: out, Email: "ana@example.com", Wrong: true}))
	add("login-wait", views.Login(views.LoginPage{Frame: out, WaitSeconds: 30, Notice: "Your session ended. Sign in, and you come back to the same page."}))
	add("login-demo", views.Login(views.LoginPage{Frame: test(out), Demo: []views.DemoLink{{URL: "/in/abc", Name: "Ana", Does: "finance"}, {URL: "/in/def", Name: "Jon", Does: "approver"}, {URL: "/in/ghi", Name: "Mia", Does: "admin"}}}))

	add("home", views.Home(home()))
	h := home()
	h.Frame, h.Items, h.Others, h.DoneToday, h.Next = calm(h.Frame), nil, nil, 0, nil
	h.LongestFor, h.LongestBy = 3*hour+2*minute, "Ana"
	add("home-empty", views.Home(h))
	h.Frame = test(h.Frame)
	h.FirstToken, h.FirstCurl, h.InviteLink = "eyJhbGciOiJFZERTQSJ9.e30.c2ln", "curl -sS https://pay.example.com/v1/operations -H \"Authorization: Bearer $HOLDFAST_TOKEN\" -d '{}'", "https://pay.example.com/setup?code=KFQ7-2MXD"
	h.Cards = []views.Card{{Title: "Send a test charge", Text: "The sandbox answers it.", URL: "/operations", Done: true}, {Title: "Invite a second person", Text: "Four eyes need two.", URL: "/settings"}, {Title: "Import a statement", Text: "It finds what nobody asked for."}}
	add("home-first-day", views.Home(h))

	add("approvals", views.Approvals(views.ApprovalsPage{Frame: frame(views.AtApprovals), Items: home().Items[1:2]}))
	add("approvals-empty", views.Approvals(views.ApprovalsPage{Frame: calm(frame(views.AtApprovals)), LastDecidedBy: "Jon", LastTook: 4 * minute}))
	add("unknown", views.Unknown(views.UnknownPage{Frame: frame(views.AtUnknown), Items: []views.Need{
		home().Items[0],
		{Operation: charge(ledger.UnknownHold, ledger.SameReference), Sentence: "An earlier operation has the same reference, inv-481.", Since: now - 20*minute, Holder: "Jon"},
		{Operation: charge(ledger.Unknown, ""), Sentence: "The next look-up is at 11:31 UTC.", Since: now - 4*minute},
	}}))
	add("unknown-empty", views.Unknown(views.UnknownPage{Frame: calm(frame(views.AtUnknown)), LongestFor: 3*hour + 2*minute}))

	list := []ledger.Operation{refund(), charge(ledger.Ready, ""), charge(ledger.InFlight, ""), charge(ledger.Unknown, ""), charge(ledger.UnknownHold, ledger.SameReference), charge(ledger.Confirmed, ""), charge(ledger.Rejected, ledger.Declined), email()}
	add("operations", views.Operations(views.OperationsPage{Frame: frame(views.AtOperations), Items: list, Ever: true, NextCursor: "c2", Types: []string{"create_payment", "refund"}, Counts: map[ledger.Status]int{ledger.Confirmed: 312}}))
	add("operations-filtered", views.Operations(views.OperationsPage{Frame: frame(views.AtOperations), Filter: views.Filter{Status: "unknown", Query: "rail:card older:2h"}, Ever: true, Many: true, Items: list[:2]}))
	add("operations-no-match", views.Operations(views.OperationsPage{Frame: frame(views.AtOperations), Filter: views.Filter{Status: "unknown", Query: "rail:card older:2h"}, Ever: true, Problem: "“older:2x” is no age; write older:2h."}))
	add("operations-none", views.Operations(views.OperationsPage{Frame: calm(frame(views.AtOperations)), Curl: "curl -sS https://pay.example.com/v1/operations"}))

	for name, page := range audits() {
		add("audit-"+name, views.Audit(page))
	}

	for name, page := range searches() {
		add("search-"+name, views.Search(page))
	}

	add("approval", views.Operation(approval(t)))
	for _, view := range []string{"request", "bytes"} {
		p := approval(t)
		p.View = view
		add("approval-"+view, views.Operation(p))
		r := record(t, frame(views.AtOperations), charge(ledger.Confirmed, ""))
		r.View = view
		add("confirmed-"+view, views.Operation(r))
		r.Concealed = "This action type has sensitive fields; your role sees the other fields only."
		add("concealed-"+view, views.Operation(r))
	}
	own := approval(t)
	own.Decisions = []views.Decision{{Act: "approve", Why: "You own the token that asked for this. Someone else must decide."}, {Act: "reject", Allowed: true}, {Act: "ask-changes", Allowed: true}}
	own.Form = views.FormState{Act: "reject", Problem: "Say why, in a sentence.", Values: map[string]string{"reason": "kept text"}}
	own.Operation.Asked.Approvals = 2
	add("approval-own", views.Operation(own))

	for _, o := range everyStatus() {
		name := fmt.Sprintf("operation-%s-%s", o.Status, o.Reason)
		p := record(t, frame(views.AtOperations), o)
		if o.Reason == ledger.Duplicate {
			p.Operation.DuplicateOf = "inv-481"
		}
		if o.Reason == ledger.Replaced {
			p.ReplacedBy = "inv-481-b"
		}
		if o.Status == ledger.Confirmed {
			p.Refunds = []ledger.RefundOwed{refundOwed()}
		}
		add(name, views.Operation(p))
		if o.Status == ledger.UnknownHold {
			add("hold-"+string(o.Reason), views.Hold(hold(t, o.Reason)))
		}
	}
	looking := hold(t, ledger.Inconclusive)
	looking.Operation.Status, looking.Operation.Reason = ledger.Unknown, ""
	looking.Decisions = []views.Decision{{Act: "look-again", Allowed: true}}
	add("hold-looking", views.Hold(looking))
	several := hold(t, ledger.SameRecipientAmount)
	second := several.Earlier[0]
	second.Operation.OperationID, second.Operation.Status, second.Operation.Reason = "inv-480", ledger.UnknownHold, ledger.Inconclusive
	second.Operation.Terms.Reference = "inv-480"
	several.Earlier = append(several.Earlier, second)
	several.Behind = []ledger.Operation{charge(ledger.UnknownHold, ledger.ExactRepeat)}
	several.Form = views.FormState{Act: "same-purchase"}
	add("hold-several", views.Hold(several))
	opened := hold(t, ledger.KeyExpired)
	opened.KeyUntil = now - hour
	opened.Form = views.FormState{Act: "happened", Problem: "Write the amount as the provider shows it, like 480.00.", Values: map[string]string{"receipt_id": "pay_91", "amount": "480,00"}}
	add("hold-opened", views.Hold(opened))

	add("refunds", views.Refunds(views.RefundsPage{Frame: frame(views.AtRefunds), Items: []ledger.RefundOwed{refundOwed()}, Sums: []views.RailSum{{Rail: "card-eu", Sum: views.Sum{Amount: 31000, Currency: "USD"}, Count: 4}, {Rail: "usdc-base", Sum: views.Sum{Amount: 90_000000, Currency: "USDC"}, Count: 1}}}))
	entry := views.RefundPage{Frame: frame(views.AtRefunds), Entry: entryOwed(), From: new(charge(ledger.Confirmed, "")), Rails: []string{"card-eu", "usdc-base"},
		GiveBack: views.Decision{Act: "settle", Allowed: true}, NextID: "refund-ro_1-2",
		Settlements: []ledger.RefundSettlement{{Kind: ledger.ByOperation, OperationID: "refund-ro_1-1", Rail: "card-eu", Amount: 4800, Currency: "USD", State: ledger.SettlementFell, By: "ana@example.com", At: now - day}}}
	add("refund", views.Refund(entry))
	entry.Form = views.FormState{Act: "give-back", Problem: "49.00 USD is more than is owed; 48.00 USD is.", Values: map[string]string{"amount": "49.00", "rail": "usdc-base"}}
	entry.NextID, entry.NextWhy = "", "No action type gives money back on the rail card-eu."
	add("refund-opened", views.Refund(entry))
	paying := refund()
	paying.OperationID, paying.Status = "refund-ro_1-2", ledger.Unknown
	entry.Form, entry.GiveBack = views.FormState{}, views.Decision{Act: "settle", Why: "An operation is to pay this. Until its outcome is known, nothing else may."}
	entry.Entry.Status, entry.Entry.Settling, entry.Paying = ledger.RefundIsSettling, 4800, &paying
	add("refund-unknown", views.Refund(entry))
	add("refunds-empty", views.Refunds(views.RefundsPage{Frame: calm(frame(views.AtRefunds))}))
	add("settings", views.Settings(settings()))
	quiet := settings()
	quiet.RunJob = views.Decision{Act: "run-job", Why: "Running jobs needs the role admin."}
	quiet.Tokens, quiet.Jobs, quiet.ConfigFile = nil, nil, ""
	add("settings-viewer", views.Settings(quiet))

	for name, c := range aboutPeople(out) {
		add(name, c)
	}

	for name, r := range runs() {
		add("runs-"+name, views.Runs(r))
	}

	for name, r := range rails() {
		add("rails-"+name, views.Rails(r))
	}

	for name, page := range statements() {
		add(name, page)
	}

	for name, n := range numbers() {
		add("numbers-"+name, views.Numbers(n))
	}

	for i, m := range messages() {
		add(fmt.Sprintf("message-%d", i), views.Message(m))
	}
	return all
}

// runs are the runs page in each of its states.
func runs() map[string]views.RunsPage {
	f := frame(views.AtRuns)
	f.Pages.Runs = true
	top := ledger.RunRecord{Run: ledger.Run{RunID: "nightly-2026-11-30", MaxAttempts: 20, Used: 9, Deadline: now + 23*hour, ByLayer: map[string]int{"repeat": 2, "mark": 1, "http": 3, "model": 1}, CreatedAt: now - hour},
		Below: []string{"run-812", "run-813"}, CountBelow: 4, Operations: map[ledger.Status]int{ledger.Ready: 2, ledger.InFlight: 1, ledger.UnknownHold: 1, ledger.Confirmed: 1240, ledger.Rejected: 3}, Unsent: 3, UnderWay: 1}
	low := ledger.RunRecord{Run: ledger.Run{RunID: "run-812", ParentRunID: "nightly-2026-11-30", MaxAttempts: 20, Deadline: now + 2*hour}, Above: []ledger.Run{top.Run}}
	spent := ledger.RunRecord{Run: ledger.Run{RunID: "spent", MaxAttempts: 3, Used: 3, Deadline: now + hour, ByLayer: map[string]int{"worker": 1, "tool": 1, "workflow": 1}}}
	over := ledger.RunRecord{Run: ledger.Run{RunID: "late", MaxAttempts: 3, Deadline: now - day}, Operations: map[ledger.Status]int{ledger.Confirmed: 1}}
	none := ledger.RunRecord{Run: ledger.Run{RunID: "careful\u202e", Deadline: now + hour}}
	stopped := ledger.RunRecord{Run: ledger.Run{RunID: "run-640", MaxAttempts: 20, Used: 2, Deadline: now + hour, StoppedAt: now - 3*minute}, StoppedBy: "Jon", StoppedWhy: "It retries the same failed page.", Operations: map[ledger.Status]int{ledger.Rejected: 2, ledger.Unknown: 1}}
	below := ledger.RunRecord{Run: ledger.Run{RunID: "run-641", ParentRunID: "run-640", MaxAttempts: 20, Deadline: now + hour}, Above: []ledger.Run{stopped.Run}}
	may := views.Decision{Act: "stop-run", Allowed: true}
	return map[string]views.RunsPage{
		"empty":  {Frame: calm(f), Stop: may},
		"some":   {Frame: f, Stop: may, Items: []ledger.RunRecord{top, low, spent, over, none, stopped, below}, Older: "run-641"},
		"viewer": {Frame: f, Stop: views.Decision{Act: "stop-run", Why: "This needs the role approver, finance or admin."}, Items: []ledger.RunRecord{top, stopped}},
		"absent": {Frame: f, Stop: may, RunID: "run-9"},
		"opened": {Frame: f, Stop: may, RunID: top.RunID, Items: []ledger.RunRecord{top}, Form: views.FormState{Act: "stop-run", Problem: "A reason is needed.", Values: map[string]string{"run_id": top.RunID, "reason": "it"}}},
	}
}

// rails are the rails page in each of its states.
func rails() map[string]views.RailsPage {
	f := frame(views.AtRails)
	f.Pages.Rails = true
	f.Counts.RailsPaused, f.Counts.RailsResting = 1, 1
	limits := ledger.Limits{Concurrency: 8, MaxAttempts: 5, MaxElapsed: 48 * time.Hour, BackoffMin: time.Second, BackoffMax: time.Minute}
	card := ledger.Rail{Name: "card-eu", Adapter: "http", Address: "https://api.example.com", Account: "live-eu", Timeout: 10 * time.Second, Quiet: 15 * time.Minute, Limits: limits,
		Dedupe: ledger.Dedupe{By: ledger.DedupeKey, Retention: 24 * time.Hour}, Lookup: ledger.LookupPromise{Possible: true, Lag: 15 * time.Minute, AbsenceProvesAfter: time.Hour},
		Compared: ledger.ReceiptFields{Amount: true, Currency: true, Recipient: true, Reference: true, Stamp: true}}
	named := func(name string, by ledger.DedupeBy, keeps time.Duration) ledger.Rail {
		r := card
		r.Name, r.Dedupe, r.Lookup, r.Compared = name, ledger.Dedupe{By: by, Retention: keeps}, ledger.LookupPromise{}, ledger.ReceiptFields{}
		return r
	}
	answers := []ledger.AnsweredIn{{At: now - 3*hour, Took: 180}, {At: now - 3*hour, Took: 420}, {At: now - minute, Took: 2300}, {At: now - 2*day, Took: 9}}
	refunds := card
	refunds.Lookup, refunds.Compared = ledger.LookupPromise{}, ledger.ReceiptFields{Amount: true}
	paused := views.RailCard{Promise: card, Pause: ledger.Pause{Rail: "card-eu", Person: "Ana", Reason: "Stripe incident", At: now - 12*minute}, Key: "header Idempotency-Key", Stamp: "body /metadata/order",
		Traffic: ledger.RailTraffic{Waiting: 1204, OldestWaitingAt: now - 11*minute, Sending: 1, Unknown: 3, OldestUnknownAt: now - 2*hour, UnknownAges: [4]int{1, 1, 1, 0}, Answers: answers, Cleared: []int64{minute, 3 * minute}},
		Types:   []views.RailType{{Name: "create_payment", Promise: card}, {Name: "refund", Promise: refunds}},
		Test: &ledger.RailTest{At: now - 2*day, By: "command line", Findings: []ledger.RailFinding{
			{Check: "send", Promised: "confirmed, with a receipt that agrees", Seen: "Confirmed as pay_1.", Passed: true}, {Check: "replay", Promised: "the same receipt", Seen: "Confirmed as pay_2."},
			{Check: "mismatch"}, {Check: "absence"}, {Check: "lookup"}, {Check: "once"}, {Check: "more"}}}}
	resting := views.RailCard{Promise: named("bank-eu", ledger.DedupeNone, 0), RestsUntil: now + 95*second, Traffic: ledger.RailTraffic{Held: 2, Waiting: 1, OldestWaitingAt: now - second}}
	resting.Promise.Lookup.Possible = true
	gone := views.RailCard{Promise: ledger.Rail{Name: "old\u202e"}, Gone: true, Traffic: ledger.RailTraffic{Unknown: 1, OldestUnknownAt: now - 3*day, UnknownAges: [4]int{0, 0, 0, 1}}}
	tried := views.RailCard{Promise: named("smtp", ledger.DedupeNatural, 0), Test: &ledger.RailTest{At: now - hour, Findings: []ledger.RailFinding{{Check: "send", Passed: true}}}}
	tried.Promise.Adapter = "sandbox"
	may := views.Decision{Act: "pause-rail", Allowed: true}
	all := []views.RailCard{paused, resting, gone, tried, {Promise: named("crm", ledger.DedupeKey, time.Minute), Test: &ledger.RailTest{At: now}}, {Promise: named("ledger", ledger.DedupeNatural, time.Hour)}}
	return map[string]views.RailsPage{
		"empty":  {Frame: calm(f), Pause: may},
		"some":   {Frame: f, Pause: may, Items: all, Folder: "/srv/holdfast"},
		"viewer": {Frame: f, Pause: views.Decision{Act: "pause-rail", Why: "This needs the role approver, finance or admin."}, Items: all[:2]},
		"opened": {Frame: f, Pause: may, Items: all[3:4], Form: views.FormState{Act: "pause-rail", Problem: "A reason is needed.", Values: map[string]string{"rail": "smtp", "reason": "it"}}},
	}
}

// numbers are the numbers page in each of its states.
func numbers() map[string]views.NumbersPage {
	f := frame(views.AtRails)
	f.Pages.Rails = true
	spread := func(took ...int64) (s ledger.Spread) {
		for _, ms := range took {
			s.Add(ms)
		}
		return s
	}
	some := views.NumbersPage{Frame: f, Rails: []string{"bank-eu", "card-eu", "smtp"}, Statements: true,
		Now: ledger.Numbers{At: now,
			Open: []ledger.OpenCount{
				{Rail: "card-eu", ActionType: "create_payment", Status: ledger.Unknown, Sent: true, N: 2, Since: now - 12*minute},
				{Rail: "card-eu", ActionType: "refund", Status: ledger.UnknownHold, Reason: ledger.KeyExpired, Sent: true, N: 1, Since: now - 2*hour},
				{Rail: "bank-eu", ActionType: "pay_out", Status: ledger.UnknownHold, Reason: ledger.Inconclusive, Sent: true, N: 1204, Since: now - 3*day},
				{Rail: "bank-eu", ActionType: "pay_out", Status: ledger.UnknownHold, Reason: ledger.SameRecipientAmount, N: 4, Since: now - hour},
				{Rail: "bank-eu", ActionType: "pay_out", Status: ledger.AwaitingApproval, N: 7, Since: now - hour},
			},
			Owed: []ledger.OwedCount{
				{Rail: "card-eu", Currency: "EUR", Direction: "we_owe", N: 3, Amount: 31000, Overdue: 1, Late: 4800},
				{Rail: "bank-eu", Currency: "EUR", Direction: "we_owe", N: 1, Amount: 9000},
				{Rail: "card-eu", Currency: "USD", Direction: "we_owe", N: 1, Amount: 480000},
				{Rail: "bank-eu", Currency: "EUR", Direction: "owed_to_us", N: 1, Amount: 120000},
				{Rail: "smtp", Currency: "EUR", Direction: "we_owe"},
			}},
		Happened: ledger.Happened{
			Attempts: []ledger.AttemptCount{{Rail: "card-eu", Outcome: ledger.AttemptReceipt, N: 48110}, {Rail: "card-eu", Outcome: ledger.AttemptDeclined, N: 902}, {Rail: "card-eu", Outcome: ledger.AttemptUnknown, N: 31}, {Rail: "bank-eu", Outcome: ledger.AttemptNotSent, N: 3}},
			Resolved: []ledger.ResolvedCount{
				{Rail: "card-eu", How: ledger.ByLookup, Spread: spread(2*second, 3*second, 40*second, 50*second, 4*minute)},
				{Rail: "card-eu", How: ledger.ByEvent, Spread: spread(second)},
				{Rail: "bank-eu", How: ledger.ByPerson, Spread: spread(3*hour, 26*hour)},
				{Rail: "bank-eu", How: ledger.ByLookup, Spread: spread(20 * minute)},
			}},
		Unmatched: []views.AccountLines{{Account: "EUR …4521", Rail: "card-eu", N: 3}, {Account: "USD", Rail: "card-eu"}},
	}
	none := views.NumbersPage{Frame: calm(f), Rails: some.Rails, Statements: true, Now: ledger.Numbers{At: now}}
	counting := some
	counting.Counting, counting.Happened, counting.Statements = true, ledger.Happened{}, false
	return map[string]views.NumbersPage{"some": some, "none": none, "counting": counting}
}

func settings() views.SettingsPage {
	limit := int64(100000)
	return views.SettingsPage{
		Frame: frame(views.AtSettings), RunJob: views.Decision{Act: "run-job", Allowed: true},
		Jobs: []views.Job{
			{Name: "sweep", Does: "expired leases and approvals", Schedule: "@every 15s", Last: &ledger.JobRun{Job: "sweep", StartedAt: now - 13*second, FinishedAt: now - 12*second, LookedAt: 1204}, NextAt: now + 3*second},
			{Name: "lookup", Does: "asks providers about unknowns", Schedule: "@every 30s", Last: &ledger.JobRun{Job: "lookup", StartedAt: now - 20*second, FinishedAt: now - 19*second, LookedAt: 3, Resolved: 1, Held: 1, Problems: []string{"card-eu did not answer within 10 s."}}, NextAt: now + 10*second},
			{Name: "seal", Does: "seals the log", Schedule: "@every 1m"},
		},
		Tokens: []ledger.TokenRecord{
			{ID: "tok_1", Agent: "billing-3", Owner: "jon@example.com", Scopes: []string{"operations:write", "operations:read"}, ActionTypes: []string{"create_payment"}, Rails: []string{"card-eu"}, MaxAmount: &limit, Currency: "EUR", CreatedAt: now - 20*day, ExpiresAt: now + 70*day},
			{ID: "tok_0", Agent: "crm-1", Scopes: []string{"operations:read"}, CreatedAt: now - 90*day, ExpiresAt: now + day, RevokedAt: now - day},
		},
		People:     []ledger.PersonRecord{{Name: "Ana", Email: "ana@example.com", Roles: []string{"finance"}, CreatedAt: now - 90*day}, {Name: "Old Tom", Email: "tom@example.com", Roles: []string{"viewer"}, CreatedAt: now - 300*day, DisabledAt: now - day}},
		ConfigHash: "sha256:0f9a", ConfigFile: "/etc/holdfast/holdfast.yaml", ConfigAt: now - 3*day, PolicyVersion: "9f2c77aa01d4e9b3", Instance: "hf-7Q",
	}
}

// everyStatus is an operation in each status with each reason that the
// lifecycle can give it.
func everyStatus() []ledger.Operation {
	var all []ledger.Operation
	seen := map[string]bool{}
	for _, r := range ledger.Rules() {
		reasons := r.Reasons
		if len(reasons) == 0 {
			reasons = []ledger.Reason{""}
		}
		for _, reason := range reasons {
			if key := string(r.To) + string(reason); !seen[key] {
				seen[key] = true
				all = append(all, charge(r.To, reason))
			}
		}
	}
	return all
}

func messages() []views.MessagePage {
	f := frame("")
	rows := []views.Field{{Label: "amount", Was: "30.00 USDC", Value: "90.00 USDC"}}
	all := []views.MessagePage{
		views.NotFound(test(f), "op_01J"),
		views.NotFound(f, "op_01J"),
		views.NoPage(f),
		views.NoRun(f, "run-9"),
		views.NoRail(f, "card\u202e"),
		views.RailChanged(f, "card-eu", ledger.Entry{Event: "pause", Actor: "Jon", At: now - 8*second}, "An incident."),
		views.RailChanged(f, "card-eu", ledger.Entry{Event: "resume", Actor: "Jon", At: now - 8*second}, "It is over."),
		views.StoppedBefore(f, ledger.RunRecord{Run: ledger.Run{RunID: "run-640", StoppedAt: now - 8*second}, StoppedBy: "Jon", StoppedWhy: "It loops."}),
		views.Conflict(f, charge(ledger.Rejected, ledger.Denied), ledger.Entry{ActorKind: ledger.Person, Actor: "Jon", Sentence: "wrong account", At: now - 8*second}, 1),
		views.Conflict(f, charge(ledger.Confirmed, ""), ledger.Entry{ActorKind: ledger.Reconciler, Actor: "lookup", At: now - 8*second}, 1),
		views.Changed(f, refund(), rows),
		views.ReplacedMeanwhile(f, refund(), rows),
		views.NotPossible(f, charge(ledger.Unknown, ""), "A request may still act until 11:40 UTC."),
		views.Forbidden(f, "You own the token that asked for this. Someone else must decide."),
		views.Unclear(f, "Write the amount as the provider shows it, like 480.00.", "/operations/inv-481-charge"),
		views.DiskTrouble(f, 3, true),
		views.DiskTrouble(f, -1, false),
		views.Trouble(f, "r-123"),
		withTakeBack(views.Done(f, leaving(10*second), "approve")),
		views.Done(f, approvedRefund(), "approve"),
		views.Done(f, refund(), "approve"),
		views.Done(f, refund(), "different-purchase"),
		views.JobDone(f, ledger.JobRun{Job: "sweep", LookedAt: 1204, Resolved: 1}),
	}
	for _, act := range []string{"reject", "ask-changes", "take-back", "happened", "did-not-happen", "happened-twice", "send-again", "still-unknown", "look-again", "same-purchase", "different-purchase", "snooze"} {
		all = append(all, views.Done(f, charge(ledger.Unknown, ""), act))
	}
	return all
}

// leaving is an approved refund that stays for a while yet.
func leaving(in int64) ledger.Operation {
	o := approvedRefund()
	o.NextSendAt = now + in
	return o
}

func withTakeBack(m views.MessagePage) views.MessagePage {
	m.TakeBack = m.After
	return m
}

func approvedRefund() ledger.Operation {
	o := refund()
	o.Status = ledger.Ready
	return o
}

package views_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"holdfast/store/ledger"
	"holdfast/views"
)

// hostile is what an agent, a provider or a customer may write anywhere.
var hostile = map[string]string{
	"script":      `<script>alert(1)</script>`,
	"attribute":   `"><img src=x onerror=alert(1)><a href="javascript:alert(1)">`,
	"quote":       `' onmouseover='alert(1)`,
	"close":       `</textarea></title></bdi></code></form><form action="//evil.example" method=post>`,
	"template":    `{{7*7}} ${7*7} {% raw %} <!--`,
	"override":    "pay \u202e00.1 DSU\u202c now",
	"isolate":     "\u2066acct_7\u2069\u200f",
	"zero width":  "acct\u200b_\u200d7\ufeff",
	"control":     "a\x00b\x1b[31mc\rd",
	"not utf-8":   "a\xff\xfeb",
	"look-alike":  "Аcme Ltd",
	"right-left":  "אבג 480 דהו",
	"tags":        "x\U000e0041\U000e0042",
	"line breaks": "one\n\n\n\ntwo\u2028three",
	"long":        strings.Repeat("0123456789", 60),
	"spaces":      "10.00" + strings.Repeat(" ", 500) + "EUR",
}

// everywhere puts a text into each place that others can write to, and draws
// the pages that show it.
func everywhere(t testing.TB, s string) []drawn {
	o := charge(ledger.Confirmed, "")
	o.Terms.Recipient, o.Terms.Reference, o.Terms.Customer = s, s, s
	o.Agent, o.Owner, o.RunID, o.ParentRunID, o.Step, o.Because, o.Detail = s, s, s, s, s, s, s
	o.PolicyRow, o.Rail, o.RailAddress, o.RailAccount = s, s, s, s
	o.Payload, o.Canonical = []byte(`{}`), []byte(s)
	o.Receipt.ID, o.Receipt.Recipient, o.Receipt.Reference, o.Receipt.Stamp, o.Receipt.Raw = s, s, s, s, []byte(s)
	f := frame(views.AtHome)
	f.Tenant, f.Person.Name, f.Query = s, s, s
	p := record(t, f, o)
	p.Fields = []views.Field{{Pointer: "/" + s, Label: s, Value: s, Was: s, Changed: true, Note: s}, {Label: s, Value: s}}
	p.Flags, p.Facts, p.Rule, p.RailSays = []string{s}, []string{s}, s, s
	p.Request = &ledger.Request{Display: s}
	for i := range p.Attempts {
		p.Attempts[i].Sentence, p.Attempts[i].Worker = s, s
	}
	for i := range p.Evidence {
		p.Evidence[i].Sentence, p.Evidence[i].By, p.Evidence[i].Body = s, s, []byte(s)
	}
	for i := range p.Log {
		p.Log[i].Actor, p.Log[i].Sentence, p.Log[i].Fact = s, s, s
	}
	for i := range p.Approvals {
		p.Approvals[i].Reason, p.Approvals[i].PersonEmail = s, s
	}
	owed := refundOwed()
	owed.Customer, owed.ReceiptID, owed.Rail = s, s, s
	p.Refunds = []ledger.RefundOwed{owed}
	p.Decisions = []views.Decision{{Act: "approve", Why: s}, {Act: "reject", Allowed: true}}
	p.Form = views.FormState{Act: "reject", Problem: s, Values: map[string]string{"reason": s}}

	var all []drawn
	for _, view := range []string{"fields", "request", "bytes"} {
		p.View = view
		all = append(all, drawn{"operation " + view, views.Operation(p)})
	}
	h := views.HoldPage{OperationPage: p, Holder: s, Says: []string{s, s}, Missing: []string{s}, Usual: []string{s}}
	h.Operation.Status, h.Operation.Reason = ledger.UnknownHold, ledger.Inconclusive
	h.Decisions = afterSend
	all = append(all, drawn{"hold after a send", views.Hold(h)})
	h.Operation.Attempts, h.Operation.Reason, h.Decisions = 0, ledger.SameReference, beforeSend
	h.Earlier = []views.Earlier{{Operation: o, Why: []string{s}}, {Operation: o}}
	all = append(all, drawn{"hold before a send", views.Hold(h)})

	log := audits()["filtered"]
	log.Filter = views.AuditFilter{Actor: s, Object: s, ObjectID: s, Event: s, From: s, To: s}
	log.Objects, log.Events = []string{s}, []string{s}
	log.Items = []ledger.Entry{{Seq: 1, Object: s, ObjectID: s, OperationID: s + "x", Event: s, ActorKind: ledger.Agent, Actor: s, Sentence: s, At: now}}
	all = append(all, drawn{"audit", views.Audit(log)})

	found := searches()["some"]
	found.Name, found.Frame.Query, found.Operations, found.Refunds[0].From = s, s, []ledger.Operation{o}, o
	found.Refunds[0].Entry.ReceiptID, found.Lines[0].Line.ProviderID, found.Lines[0].Line.Rail = s, s, s
	all = append(all, drawn{"search", views.Search(found)}, drawn{"search, none", views.Search(views.SearchPage{Frame: f, Name: s})})

	need := views.Need{Operation: o, Sentence: s, Flags: []string{s}, Holder: s, Since: now - hour}
	debt := views.Need{Refund: &owed, Sentence: s}
	set := settings()
	set.Frame = f
	set.Tokens[0].Agent, set.Tokens[0].Owner, set.People[0].Name, set.People[0].Email = s, s, s, s
	set.Jobs[1].Last.Problems = []string{s}
	m := views.Conflict(f, o, ledger.Entry{ActorKind: ledger.Person, Actor: s, Sentence: s, At: now}, 1)
	m.Quote, m.Rows = s, []views.Field{{Label: s, Was: s, Value: s}}
	rail := rails()["some"]
	rail.Frame, rail.Form = f, views.FormState{Act: "resume-rail", Problem: s, Values: map[string]string{"rail": s, "reason": s}}
	rail.Items = rail.Items[:1]
	c := &rail.Items[0]
	c.Promise.Name, c.Promise.Address, c.Promise.Account, c.Promise.Adapter, c.Pause.Person, c.Pause.Reason, c.Key, c.Stamp, c.Types[0].Name = s, s, s, s, s, s, s, s, s
	for i := range c.Test.Findings {
		c.Test.Findings[i] = ledger.RailFinding{Check: s, Promised: s, Seen: s}
	}
	counted := numbers()["some"]
	counted.Frame, counted.Rails = f, []string{s}
	for i := range counted.Now.Open {
		counted.Now.Open[i].Rail, counted.Now.Open[i].ActionType = s, s
	}
	for i := range counted.Now.Owed {
		counted.Now.Owed[i].Rail, counted.Now.Owed[i].Currency = s, s
	}
	for i := range counted.Happened.Attempts {
		counted.Happened.Attempts[i].Rail = s
	}
	counted.Unmatched[0].Account, counted.Unmatched[0].Rail = s, s
	line, file := lineRow(1, ledger.LineSetAside, ledger.TwiceOnStatement, o), imported()
	l := line.Line
	l.ProviderID, l.LineID, l.Hash, l.Reference, l.Counterparty, l.Text, l.Sentence, l.Reason, l.Currency = s, s, s, s, s, s, s, s, s
	line.Rail, line.Account, line.Owner, line.Sentence, line.Currency, line.Owed = s, s, s, s, s, &owed
	line.Matches = []ledger.StatementMatch{{Rule: ledger.ByHand, ExplainedAs: "other", Explained: s, By: s, Operations: []ledger.MatchSide{{OperationID: s}}}}
	file.FileName, file.Account, file.Format, file.Rail, file.By, file.Currency, file.Warnings, file.Notes = s, s, s, s, s, s, []string{s}, []string{s}
	yes := views.Decision{Allowed: true}
	p.Lines = []views.StatementRow{line}
	p.Operation.Status, p.Paused = ledger.Ready, c.Pause
	folk, invited, account := peoplePage(), invitePage(f), accountPage()
	folk.Frame, folk.Invites[0].Email, folk.Invites[0].By, folk.Made.Email = f, s, s, s
	for i := range folk.People {
		folk.People[i].Person.Name, folk.People[i].Person.Email = s, s
	}
	folk.Form = views.FormState{Act: "change-roles", Problem: s, Values: map[string]string{"person": folk.People[1].Person.ID}}
	invited.Invite.By, invited.Name, invited.Email, invited.Problem = s, s, s, s
	account.Frame, account.Person.Email = f, s
	for i := range account.Sessions {
		account.Sessions[i].UserAgent, account.Sessions[i].Address = s, s
	}
	return append(all,
		drawn{"statements", views.Statements(views.StatementsPage{Frame: f, Rails: []string{s}, Import: yes, Answer: yes, Imports: []ledger.StatementImport{file}, Tab: "twice", Items: []views.StatementRow{line},
			Accounts: []views.StatementAccount{{Rail: s, Account: s}}, Form: views.FormState{Act: "import", Problem: s, Values: map[string]string{"rail": s}}})},
		drawn{"preview", views.Preview(views.PreviewPage{Frame: f, Name: s, Rail: s, Import: file, First: []ledger.StatementLine{l.StatementLine}})},
		drawn{"preview refused", views.Preview(views.PreviewPage{Frame: f, Name: s, Rail: s, Refused: &views.FileRefusal{Line: 1, Column: s, Sentence: s}})},
		drawn{"preview asked", views.Preview(views.PreviewPage{Frame: f, Name: s, Rail: s, Question: &views.FileQuestion{Key: s, Ask: s, Sentence: s, Choices: []views.FileChoice{{Value: s, Label: s}}}})},
		drawn{"preview unnamed", views.Preview(views.PreviewPage{Frame: f, Name: s, Rail: s, Columns: &views.FileColumns{Trouble: s, Names: []string{"date"}, Columns: []views.FileColumn{{Title: s, Sample: []string{s}, Holds: s}}}})},
		drawn{"desk", views.Desk(views.DeskPage{Frame: f, Statement: file, State: ledger.LineSetAside, Lines: []views.StatementRow{line}, Operations: []ledger.Operation{o}, Match: yes, Answer: yes, Undo: yes,
			Form: views.FormState{Act: "match", Problem: s, Values: map[string]string{"explained": s}}})},
		drawn{"closing", views.Closing(views.ClosingPage{Frame: f, Account: views.StatementAccount{Rail: s, Account: s}, Zone: time.UTC, Open: []views.StatementRow{line}, Close: yes,
			Sheet: ledger.PeriodSheet{Totals: map[string]int64{s: 1}}, Closed: []ledger.StatementPeriod{{ClosedBy: s}}})},
		drawn{"rails", views.Rails(rail)},
		drawn{"numbers", views.Numbers(counted)},
		drawn{"behind a paused rail", views.Operation(p)},
		drawn{"home", views.Home(views.HomePage{Frame: f, Items: []views.Need{need, debt}, Others: []views.Need{need}, Next: []string{s}, FirstToken: "t", FirstCurl: "c", LongestBy: s, LongestFor: hour})},
		drawn{"approvals", views.Approvals(views.ApprovalsPage{Frame: f, Items: []views.Need{need}})},
		drawn{"approvals empty", views.Approvals(views.ApprovalsPage{Frame: f, LastDecidedBy: s})},
		drawn{"unknown", views.Unknown(views.UnknownPage{Frame: f, Items: []views.Need{{Operation: h.Operation, Sentence: s}}})},
		drawn{"operations", views.Operations(views.OperationsPage{Frame: f, Items: []ledger.Operation{o}, Filter: views.Filter{Status: s, ActionType: s, Reference: s, RunID: s, Query: s}, NextCursor: s, Problem: s})},
		drawn{"operations empty", views.Operations(views.OperationsPage{Frame: f, Filter: views.Filter{Query: s}})},
		drawn{"refunds", views.Refunds(views.RefundsPage{Frame: f, Items: []ledger.RefundOwed{owed}, Sums: []views.RailSum{{Rail: s}}})},
		drawn{"settings", views.Settings(set)},
		drawn{"people", views.People(folk)},
		drawn{"invite", views.InviteForm(invited)},
		drawn{"account", views.Account(account)},
		drawn{"confirm", views.Code(views.CodePage{Frame: f, Act: "confirm", Path: "/confirm", Next: s})},
		drawn{"message", views.Message(m)},
		drawn{"not found", views.Message(views.NotFound(f, s))},
		drawn{"login", views.Login(views.LoginPage{Frame: f, Email: s, Next: s, Notice: s})},
		drawn{"setup", views.Setup(views.SetupPage{Frame: f, Code: s, Name: s, Email: s, Problem: s})},
	)
}

func TestHostileTextIsDrawnInertly(t *testing.T) {
	shape := map[string]int{}
	for _, page := range everywhere(t, "plain") {
		shape[page.name] = len(draw(t, page.page).all(tag("form", "script", "a", "input", "img", "link")))
	}
	for name, s := range hostile {
		t.Run(name, func(t *testing.T) {
			for _, page := range everywhere(t, s) {
				d := draw(t, page.page)
				strict(t, page.name, d)
				if n := len(d.all(tag("form", "script", "a", "input", "img", "link"))); n != shape[page.name] {
					t.Errorf("%s: the text added or took away elements: %d, plain text %d", page.name, n, shape[page.name])
				}
				for n := range d.root.Descendants() {
					if n.Type == html.TextNode && n.Parent.Data != "textarea" {
						inert(t, page.name, n.Data)
					}
					for _, a := range n.Attr {
						// What somebody typed goes back to them as it was.
						if a.Key != "value" && a.Key != "href" {
							inert(t, page.name+" "+a.Key, a.Val)
						}
					}
				}
			}
		})
	}
}

// inert holds that no character is left on the page that hides, or turns or
// moves its neighbours.
func inert(t *testing.T, where, s string) {
	t.Helper()
	for _, r := range s {
		if r == '\n' || r == '\t' {
			continue
		}
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Bidi_Control, unicode.Zl, unicode.Zp, unicode.Variation_Selector) || r == unicode.ReplacementChar {
			t.Errorf("%s: U+%04X stands on the page: %.80q", where, r, s)
			return
		}
	}
}

func TestHostileTextIsDrawnTruthfully(t *testing.T) {
	for name, want := range map[string][]string{
		"script":     {`<script>alert(1)</script>`},
		"attribute":  {`"><img src=x onerror=alert(1)>`},
		"override":   {"pay ‹U+202E›00.1 DSU‹U+202C› now", "turn the direction of the text"},
		"zero width": {"acct‹U+200B›_‹U+200D›7‹U+FEFF›", "contains 3 invisible characters"},
		"control":    {"a‹U+0000›b‹U+001B›[31mc‹U+000D›d"},
		"not utf-8":  {"a‹byte FF›‹byte FE›b", "is not valid UTF-8"},
		"look-alike": {"А‹U+0410›cme Ltd"},
		"long":       {strings.Repeat("0123456789", 1000), "10,000 characters, all of them shown."},
		"right-left": {"אבג 480 דהו"},
		"spaces":     {"contains a long run of spaces"},
	} {
		t.Run(name, func(t *testing.T) {
			s := hostile[name]
			if name == "long" {
				s = want[0]
			}
			o := charge(ledger.AwaitingApproval, "")
			o.Canonical = []byte(s)
			p := record(t, frame(""), o)
			p.Fields = []views.Field{{Label: "note", Value: s}}
			for _, view := range []string{"fields", "bytes"} {
				p.View = view
				d := draw(t, views.Operation(p))
				for _, w := range want {
					mustSay(t, d, w)
				}
			}
		})
	}
}

func TestALookAlikeIsDrawnWithItsName(t *testing.T) {
	p := record(t, frame(""), charge(ledger.AwaitingApproval, ""))
	p.Fields = []views.Field{{Label: "recipient", Value: "Аcme"}}
	d := draw(t, views.Operation(p))
	for _, n := range d.all(class("ghost")) {
		if text(n, false) == "‹U+0410›" && n.PrevSibling != nil && strings.HasSuffix(n.PrevSibling.Data, "А") {
			return
		}
	}
	t.Error("the Cyrillic letter does not stand beside its name")
}

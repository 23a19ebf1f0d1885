package views_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"holdfast/store/ledger"
	"holdfast/views"
)

func TestEveryPageIsADocumentThatWorksWithoutScript(t *testing.T) {
	for _, page := range everyPage(t) {
		t.Run(page.name, func(t *testing.T) {
			d := draw(t, page.page)
			if !strings.HasPrefix(d.source, "<!doctype html>") && !strings.HasPrefix(d.source, "<!DOCTYPE html>") {
				t.Error("no doctype")
			}
			for _, once := range []string{"h1", "main", "title", "header", "footer"} {
				if n := len(d.all(tag(once))); n != 1 {
					t.Errorf("%d <%s>, want 1", n, once)
				}
			}
			if lang := attr(d.all(tag("html"))[0], "lang"); lang != "en" {
				t.Errorf("lang %q", lang)
			}
			if len(d.all(has("name", "viewport"))) != 1 {
				t.Error("no viewport")
			}
			if len(d.all(has("href", "#main"))) != 1 || len(d.all(has("id", "main"))) != 1 {
				t.Error("no skip link to the main part")
			}
			names(t, d)
			references(t, d)
		})
	}
}

// names: every control says what it is.
func names(t *testing.T, d document) {
	for _, n := range d.all(tag("a", "button", "summary")) {
		if _, hidden := lookup(n, "hidden"); !hidden && text(n, false) == "" {
			t.Errorf("a <%s %v> without words", n.Data, n.Attr)
		}
	}
	for _, n := range d.all(tag("input", "select", "textarea")) {
		if attr(n, "type") == "hidden" {
			continue
		}
		labelled := len(d.all(func(l *html.Node) bool {
			return l.Data == "label" && attr(l, "for") == attr(n, "id") && attr(n, "id") != ""
		})) == 1
		for p := n.Parent; p != nil; p = p.Parent {
			labelled = labelled || p.Data == "label"
		}
		if !labelled {
			t.Errorf("a <%s name=%q> without label", n.Data, attr(n, "name"))
		}
	}
}

// references: ids are unique, and what points to one finds it.
func references(t *testing.T, d document) {
	ids := map[string]bool{}
	for _, n := range d.all(has("id", "*")) {
		if ids[attr(n, "id")] {
			t.Errorf("id %q twice", attr(n, "id"))
		}
		ids[attr(n, "id")] = true
	}
	for _, name := range []string{"for", "aria-labelledby", "aria-describedby", "list"} {
		for _, n := range d.all(has(name, "*")) {
			if !ids[attr(n, name)] {
				t.Errorf("%s=%q leads nowhere", name, attr(n, name))
			}
		}
	}
	for _, n := range d.all(tag("a")) {
		if target, ok := strings.CutPrefix(attr(n, "href"), "#"); ok && !ids[target] {
			t.Errorf("href=#%s leads nowhere", target)
		}
	}
}

func TestNoPageCarriesInlineStyleOrScriptOrLoadsFromElsewhere(t *testing.T) {
	for _, page := range everyPage(t) {
		d := draw(t, page.page)
		strict(t, page.name, d)
	}
}

// strict holds what the content security policy will enforce.
func strict(t *testing.T, name string, d document) {
	t.Helper()
	allowed := []string{"html", "head", "meta", "title", "link", "script", "body", "a", "p", "b", "strong", "header", "div", "svg", "path", "circle", "rect", "text", "span",
		"bdi", "mark", "form", "label", "input", "button", "details", "summary", "ul", "ol", "li", "section", "nav", "main", "footer", "h1", "h2", "h3", "table", "caption",
		"thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "code", "time", "q", "i", "br", "fieldset", "legend", "select", "option", "textarea", "datalist", "blockquote"}
	for n := range d.root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if !slices.Contains(allowed, n.Data) {
			t.Errorf("%s: a <%s> stands on the page", name, n.Data)
		}
		for _, a := range n.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("%s: <%s %s=%q>", name, n.Data, a.Key, a.Val)
			}
			if slices.Contains([]string{"src", "href", "action", "formaction"}, a.Key) && a.Val != "" && !strings.HasPrefix(a.Val, "#") &&
				(!strings.HasPrefix(a.Val, "/") || strings.HasPrefix(a.Val, "//")) {
				t.Errorf("%s: <%s %s=%q> leaves this server", name, n.Data, a.Key, a.Val)
			}
		}
		if n.Data == "script" && (n.FirstChild != nil || !slices.Contains([]string{"/static/live.js", "/static/takeback.js"}, attr(n, "src"))) {
			t.Errorf("%s: a script that is not the page's own: %v", name, n.Attr)
		}
	}
}

func TestFormsThatDecideArePostsThatCarryWhatWasOnTheScreen(t *testing.T) {
	decides := regexp.MustCompile(`^/operations/[A-Za-z0-9][A-Za-z0-9._:-]*/([a-z-]+)$`)
	found := map[string]bool{}
	for _, page := range everyPage(t) {
		d := draw(t, page.page)
		for _, f := range d.all(tag("form")) {
			act, action := attr(f, "data-act"), attr(f, "action")
			if act == "" {
				if attr(f, "method") != "get" || !slices.Contains([]string{"/operations", "/audit", "/search"}, action) {
					t.Errorf("%s: a form without data-act that is no search: %v", page.name, f.Attr)
				}
				continue
			}
			found[act] = true
			if attr(f, "method") != "post" || !strings.HasPrefix(action, "/") {
				t.Errorf("%s: %s is %s to %q", page.name, act, attr(f, "method"), action)
			}
			if len(within(f, tag("button"))) != 1 || len(within(f, tag("form"))) != 0 {
				t.Errorf("%s: %s has not exactly one button", page.name, act)
			}
			m := decides.FindStringSubmatch(action)
			if m == nil {
				if want := map[string]string{"login": "/login", "logout": "/logout", "setup": "/setup", "run-job": "/settings/run-job", "stop-run": "/runs/stop-run",
					"pause-rail": "/rails/pause-rail", "resume-rail": "/rails/resume-rail", "settle": "/refunds/ro_1/settle", "import": "/statements/import", "match": "/statements/match", "unmatch": "/statements/unmatch", "set-aside": "/statements/set-aside",
					"take": "/statements/take", "hand-back": "/statements/hand-back", "snooze": "/statements/snooze", "undo": "/statements/undo", "close-period": "/statements/close-period",
					"login-code": "/login/code", "verify-log": "/audit/verify-log", "confirm": "/confirm", "accept-invite": "/invite/5ec7e7"}[act]; action != want && action != "/settings/people/"+act && action != "/settings/account/"+act {
					t.Errorf("%s: %s posts to %q", page.name, act, action)
				}
				if version := field(f, "version"); act == "settle" && (version == nil || attr(version, "value") != "7") {
					t.Errorf("%s: %s does not carry the version", page.name, act)
				}
				continue
			}
			if m[1] != act {
				t.Errorf("%s: %s posts to %q", page.name, act, action)
			}
			fingerprint, version := field(f, "fingerprint"), field(f, "version")
			if fingerprint == nil || version == nil || attr(fingerprint, "type") != "hidden" || attr(version, "value") != "7" ||
				!strings.HasPrefix(attr(fingerprint, "value"), "hf1:sha256:c6c56e67") {
				t.Errorf("%s: %s does not carry fingerprint and version", page.name, act)
			}
		}
	}
	for _, act := range []string{"login", "logout", "setup", "approve", "reject", "ask-changes", "happened", "did-not-happen", "happened-twice", "send-again",
		"still-unknown", "look-again", "same-purchase", "different-purchase", "run-job", "stop-run", "pause-rail", "resume-rail", "settle",
		"import", "match", "unmatch", "set-aside", "take", "hand-back", "snooze", "undo", "close-period",
		"login-code", "confirm", "accept-invite", "invite", "revoke-invite", "change-roles", "disable-person", "enable-person", "reset-second-factor",
		"set-password", "offer-second-factor", "confirm-second-factor", "drop-second-factor", "end-session", "end-other-sessions"} {
		if !found[act] && act != "did-not-happen" && act != "send-again" { // refused in the samples
			t.Errorf("no page has the form %s", act)
		}
	}
}

func TestFormsHaveTheFieldsOfTheContract(t *testing.T) {
	all := hold(t, ledger.Inconclusive)
	for i := range all.Decisions {
		all.Decisions[i].Allowed = true
	}
	after, before := draw(t, views.Hold(all)), draw(t, views.Hold(hold(t, ledger.SameReference)))
	wait, login := draw(t, views.Operation(approval(t))), draw(t, views.Login(views.LoginPage{}))
	setup := draw(t, views.Setup(views.SetupPage{}))
	for _, c := range []struct {
		d        document
		act      string
		required []string
		optional []string
	}{
		{login, "login", []string{"email", "password"}, nil},
		{setup, "setup", []string{"code", "name", "email", "password"}, []string{"mode"}},
		{wait, "approve", nil, []string{"reason"}},
		{wait, "reject", []string{"reason"}, []string{"pointer"}},
		{wait, "ask-changes", []string{"reason"}, []string{"pointer"}},
		{after, "happened", []string{"receipt_id", "amount", "reason"}, nil},
		{after, "did-not-happen", []string{"reason"}, nil},
		{after, "happened-twice", []string{"receipt_id", "second_receipt_id", "reason"}, nil},
		{after, "send-again", []string{"reason"}, nil},
		{after, "still-unknown", nil, nil},
		{after, "look-again", nil, nil},
		{before, "same-purchase", []string{"reason"}, []string{"original"}},
		{before, "different-purchase", []string{"reason"}, nil},
		{before, "reject", []string{"reason"}, []string{"pointer"}},
		{draw(t, views.Runs(runs()["opened"])), "stop-run", []string{"reason"}, nil},
		{draw(t, statements()["statements-none"]), "import", []string{"file"}, []string{"rail"}},
		{draw(t, statements()["closing"]), "set-aside", []string{"reason"}, nil},
		{draw(t, statements()["closing"]), "snooze", nil, []string{"until"}},
		{draw(t, statements()["desk-matched"]), "unmatch", []string{"reason"}, nil},
		{draw(t, statements()["closing"]), "close-period", []string{"until"}, nil},
		{draw(t, views.Rails(rails()["opened"])), "pause-rail", []string{"reason"}, nil},
		{draw(t, views.Rails(rails()["some"])), "resume-rail", []string{"reason"}, nil},
	} {
		f := c.d.form(c.act)
		if f == nil {
			t.Errorf("no form %s", c.act)
			continue
		}
		var names []string
		for _, n := range within(f, has("name", "*")) {
			name := attr(n, "name")
			if attr(n, "type") == "hidden" && name != "original" || slices.Contains(names, name) {
				continue
			}
			names = append(names, name)
			if _, must := lookup(n, "required"); must != slices.Contains(c.required, name) {
				t.Errorf("%s: %s required: %v", c.act, name, must)
			}
		}
		if want := append(slices.Clone(c.required), c.optional...); !sameSet(names, want) {
			t.Errorf("%s has fields %v, want %v", c.act, names, want)
		}
	}
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

func TestARefusedDecisionHasNoFormAndSaysWhy(t *testing.T) {
	d := draw(t, views.Hold(hold(t, ledger.Inconclusive)))
	if d.form("did-not-happen") != nil || d.form("send-again") != nil {
		t.Error("a refused decision has a form")
	}
	mustSay(t, d,
		"It did not happen — close No look-up yet after the index delay. Possible from 11:40 UTC, in 12 m.",
		"Send again with the same key You own the token that asked for this. Someone else must decide.")

	own := approval(t)
	own.Decisions = []views.Decision{{Act: "approve", Why: "You own the token that asked for this. Someone else must decide."}, {Act: "reject"}}
	d = draw(t, views.Operation(own))
	if d.form("approve") != nil || d.form("reject") != nil {
		t.Error("a refused decision has a form")
	}
	mustSay(t, d, "Approve 90.00 USDC refund You own the token that asked for this.", "Reject This is not possible now.")
}

func TestADecisionThatTheCallerDoesNotNameIsRefused(t *testing.T) {
	p := hold(t, ledger.Inconclusive)
	p.Decisions = nil
	d := draw(t, views.Hold(p))
	for _, act := range []string{"happened", "did-not-happen", "happened-twice", "send-again", "still-unknown", "look-again"} {
		if d.form(act) != nil {
			t.Errorf("%s has a form though nobody allowed it", act)
		}
		if len(d.all(has("data-refused", act))) != 1 {
			t.Errorf("%s is not drawn as refused", act)
		}
	}
	mustSay(t, d, "This is not possible in its present state.")
}

var forbidden = regexp.MustCompile(`(?i)\b(failed|success|pending|errors?|retry|retries|processed)\b`)

func TestNoPageSaysAForbiddenWord(t *testing.T) {
	for _, page := range everyPage(t) {
		d := draw(t, page.page)
		said := text(d.root, true)
		for n := range d.root.Descendants() {
			for _, a := range n.Attr {
				if slices.Contains([]string{"title", "placeholder", "aria-label", "alt"}, a.Key) {
					said += " " + a.Val
				}
			}
		}
		if w := forbidden.FindString(said); w != "" {
			t.Errorf("%s says %q", page.name, w)
		}
	}
	agents := draw(t, views.Operation(approval(t)))
	if !forbidden.MatchString(text(agents.root, false)) {
		t.Error("the sample's agent should have said a forbidden word, and its words should be drawn as they are")
	}
}

func TestVioletIsOnlyForUnknown(t *testing.T) {
	for _, page := range everyPage(t) {
		d := draw(t, page.page)
		for _, n := range d.all(func(n *html.Node) bool { return has("data-tone", "violet")(n) && class("badge")(n) }) {
			if w := text(n, false); w != "Outcome unknown" && w != "Refund outcome unknown" && w != "Held" && w != "Unknown" {
				t.Errorf("%s: %q is violet", page.name, w)
			}
		}
	}
}

func TestTheFrameShowsWhatExistsAndWhereOneIs(t *testing.T) {
	d := draw(t, views.Approvals(views.ApprovalsPage{Frame: frame(views.AtApprovals)}))
	nav := d.all(class("nav"))[0]
	if got := text(nav, false); got != "Home Approvals 4 Unknown 3 Operations Refunds owed 5 Settings" {
		t.Errorf("navigation: %q", got)
	}
	here := within(nav, has("aria-current", "page"))
	if len(here) != 1 || attr(here[0], "href") != "/approvals" {
		t.Errorf("aria-current: %v", here)
	}
	mustNotSay(t, d, "TEST", "Statements", "Audit")

	every := frame(views.AtHome)
	every.Pages = views.Pages{Refunds: true, Statements: true, Rails: true, Runs: true, Audit: true, Settings: true}
	nav = draw(t, views.Home(views.HomePage{Frame: every})).all(class("nav"))[0]
	if got := text(nav, false); got != "Home Approvals 4 Unknown 3 Operations Refunds owed 5 Statements Rails Runs Audit Settings" {
		t.Errorf("navigation: %q", got)
	}

	out := draw(t, views.Login(views.LoginPage{Frame: views.Frame{Test: true, Now: now}}))
	mustSay(t, out, "TEST — no real money moves")
	if len(out.all(class("nav")))+len(out.all(class("strip")))+len(out.all(tag("script")))+len(out.all(class("search"))) != 0 {
		t.Error("somebody who is not signed in sees the frame")
	}
	if href := attr(out.all(has("rel", "icon"))[0], "href"); href != "/static/favicon-test.svg" {
		t.Errorf("TEST has the favicon %q", href)
	}
}

func TestAssetsAreServedWhereTheCallerSays(t *testing.T) {
	f := frame(views.AtHome)
	f.Asset = func(name string) string { return "/static/hashed-" + name }
	d := draw(t, views.Home(views.HomePage{Frame: f}))
	if attr(d.all(has("rel", "stylesheet"))[0], "href") != "/static/hashed-holdfast.css" || attr(d.all(tag("script"))[0], "src") != "/static/hashed-live.js" {
		t.Error("the page does not use Asset")
	}
}

func TestTheTrustStripNeverAddsUpCurrencies(t *testing.T) {
	for _, c := range []struct {
		name, want, state string
		counts            views.Counts
	}{
		{"both", "Unknown 3 · oldest 2 h 14 m · at risk $1,240.00 + 90.00 USDC │ Owed 5 · $310.00", "unknown", frame("").Counts},
		{"none", "Nothing unknown · nothing owed · checked 12 s ago", "calm", views.Counts{CheckedAt: now - 12*second}},
		{"owed", "Nothing unknown │ Owed 1,200 · $310.00", "owed", views.Counts{Owed: 1200, OwedSums: []views.Sum{{Amount: 31000, Currency: "USD"}}}},
		{"unknown without money", "Unknown 1 · oldest 59 s │ Nothing owed", "unknown", views.Counts{Unknown: 1, OldestUnknownAt: now - 59*second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := frame(views.AtHome)
			f.Counts = c.counts
			d := draw(t, views.Home(views.HomePage{Frame: f}))
			strip := d.all(class("strip"))[0]
			got := strings.TrimSuffix(text(strip, false), " These numbers may be old: no answer from holdfast.")
			if got != c.want || attr(strip, "data-state") != c.state || f.Live().State != c.state {
				t.Errorf("strip says %q (%s)\nwant        %q (%s)", got, attr(strip, "data-state"), c.want, c.state)
			}
			for _, n := range d.all(has("data-live", "*")) { // the script would change nothing
				if want, ok := f.Live().Text[attr(n, "data-live")]; !ok || text(n, false) != want {
					t.Errorf("%s: page says %q, /counts %q", attr(n, "data-live"), text(n, false), want)
				}
			}
		})
	}
}

func TestTheApprovalShowsWhatItBinds(t *testing.T) {
	d := draw(t, views.Operation(approval(t)))
	mustSay(t, d,
		"Needs approval", "expires in 26 m", "Refund 90.00 USDC to 0x9f3a 7be2 c41e", "amber-falcon-otter", "New recipient", "6× this customer's usual",
		"What will be sent Fields Exact request Canonical bytes",
		"amount 90.00 USDC 90000000 minor units was 30.00 USDC changed", "customer asked‹U+200B›", "contains 1 invisible character", "never paid before",
		"Why you are asked Rule USDC over 50 needs Finance", "1 of finance must approve.", "Approval: Waiting",
		"Who asked agent billing-3 (token owner: jon@example.com)", "run run-812", "step charge ticket 5512",
		"What the agent said The agent's own words. Nobody checked them.",
		"What we know Nothing was sent.", "Refunded so far 0.00 of 90.00 USDC",
		"Approve 90.00 USDC refund", "Confirm — approve 90.00 USDC", "Reject", "Ask for changes",
		"Approving binds you to fingerprint c6c5 6e67 37df … (amber-falcon-otter). If anything changes, this approval is void.",
		"0 of 5", "a repeat is safe for 21 h 46 m from the first send")
	for view, want := range map[string]string{"fields": "amount", "request": "The request is rendered once", "bytes": `"action_type":"refund"`} {
		p := approval(t)
		p.View = view
		d := draw(t, views.Operation(p))
		mustSay(t, d, want)
		here := within(d.all(class("views"))[0], has("aria-current", "*"))
		if len(here) != 1 || attr(here[0], "href") != "/operations/refund-5512?view="+view+"#what" {
			t.Errorf("%s: the current way of looking is %v", view, here)
		}
	}
}

func TestAgentsWordsStandBehindAFence(t *testing.T) {
	d := draw(t, views.Operation(approval(t)))
	for _, n := range d.all(tag("bdi")) {
		if !strings.Contains(text(n, false), "safe to approve at once") {
			continue
		}
		fenced := false
		for p := n.Parent; p != nil; p = p.Parent {
			fenced = fenced || attr(p, "data-said") == "agent"
		}
		if !fenced {
			t.Error("the agent's words stand outside the fence")
		}
	}
}

func TestTheRecordShowsEveryEventWithItsNumberActorAndTime(t *testing.T) {
	d := draw(t, views.Operation(record(t, frame(views.AtOperations), charge(ledger.Confirmed, ""))))
	mustSay(t, d, "Confirmed we hold a receipt", "Receipt pay_91", "$480.00 as approved",
		"Attempts 2 of 5", "30.0 s", "w-1 fence 14", "HTTP 500",
		"Provider's answer: proves nothing", "Look-up: not found",
		"Recorded, policy asks for people", "#48101", "Approved person ana@example.com", "+41.0 s", "Marked, then sent", "Self-approved")
	if n := len(d.all(has("datetime", "2026-11-30T09:14:12.118Z"))); n == 0 {
		t.Error("no exact time of the first send")
	}
	wrong := charge(ledger.Confirmed, "")
	other := int64(48001)
	wrong.Receipt.Amount = &other
	mustSay(t, draw(t, views.Operation(record(t, frame(""), wrong))), "$480.01 not what was approved")
}

func TestTheHoldPageAsksItsQuestion(t *testing.T) {
	d := draw(t, views.Hold(hold(t, ledger.Inconclusive)))
	mustSay(t, d, "Outcome unknown needs a person", "The question: did this exact charge (amber-falcon-otter) happen, once?",
		"Why it is held: Answer could not be read.", "Our side Provider's side", "sent, attempt 1, key 7c41a0de…", "Here we do not know.",
		"What the evidence says Not enough to decide.", "Missing: one look-up after 11:40 UTC",
		"“It did not happen” may be said from 11:40 UTC, in 12 m", "Same-key resend is safe on this rail until 1 Dec 09:14 UTC (21 h 46 m left).",
		"It happened — save receipt", "It happened twice — record refund owed", "Still unknown — look again later", "Look again", "Approved was $480.00.")
	mustNotSay(t, d, "Same purchase", "Different purchase")

	d = draw(t, views.Hold(hold(t, ledger.SameReference)))
	mustSay(t, d, "Held overlaps another operation; nothing was sent", "The question: is this the same purchase as an earlier one?",
		"This one inv-481-charge", "Earlier inv-481", "Reference inv-481 inv-481 same", "same reference, same recipient, same amount",
		"Same purchase — use the earlier result", "Different purchase — let it go")
	mustNotSay(t, d, "It happened", "Send again", "Here we do not know")
}

func TestAHoldThatOverlapsSeveralAsksWhichOne(t *testing.T) {
	p := hold(t, ledger.SameReference)
	second := p.Earlier[0]
	second.Operation.OperationID = "inv-480"
	p.Earlier = append(p.Earlier, second)
	f := draw(t, views.Hold(p)).form("same-purchase")
	var values []string
	for _, n := range within(f, has("name", "original")) {
		if attr(n, "type") != "radio" {
			t.Errorf("original is %s", attr(n, "type"))
		}
		values = append(values, attr(n, "value"))
	}
	if !slices.Equal(values, []string{"inv-481", "inv-480"}) {
		t.Errorf("choices %v", values)
	}
}

func TestTheDarkWindowRunsFromTheFirstSendToNow(t *testing.T) {
	d := draw(t, views.Hold(hold(t, ledger.Inconclusive)))
	var dark, light []string
	for _, row := range within(d.all(class("axis"))[0], tag("tr")) {
		times := within(row, tag("time"))
		if len(times) == 0 {
			continue
		}
		if class("dark")(row) {
			dark = append(dark, attr(times[0], "datetime"))
		} else {
			light = append(light, attr(times[0], "datetime"))
		}
	}
	if !slices.IsSorted(dark) || dark[0] != "2026-11-30T09:14:12.118Z" || dark[len(dark)-1] != "2026-11-30T11:28:12.118Z" {
		t.Errorf("dark from %v", dark)
	}
	if !slices.Contains(light, "2026-11-30T09:14:11.926Z") || !slices.Contains(light, "2026-11-30T11:40:12.118Z") {
		t.Errorf("light: %v", light)
	}
}

func TestAFormComesBackWithWhatWasTyped(t *testing.T) {
	p := hold(t, ledger.Inconclusive)
	p.Form = views.FormState{Act: "happened", Problem: "Write the amount as the provider shows it, like 480.00.", Values: map[string]string{"receipt_id": "pay_91", "amount": "480,00", "reason": "dashboard"}}
	d := draw(t, views.Hold(p))
	f := d.form("happened")
	for name, want := range p.Form.Values {
		if got := attr(field(f, name), "value"); got != want {
			t.Errorf("%s came back as %q", name, got)
		}
	}
	if _, open := lookup(f.Parent, "open"); !open {
		t.Error("the panel is closed")
	}
	mustSay(t, d, p.Form.Problem)
	if attr(field(d.form("happened-twice"), "receipt_id"), "value") != "" {
		t.Error("another form got the text too")
	}
}

func TestEmptyPagesProveThatNothingIsWrong(t *testing.T) {
	f := calm(frame(views.AtHome))
	mustSay(t, draw(t, views.Home(views.HomePage{Frame: f, LongestFor: 3*hour + 2*minute, LongestBy: "Ana"})),
		"Nothing needs you. 0 unknown, 0 owed, last check 12 s ago. Longest unknown this month: 3 h 02 m, cleared by Ana.", "0 need you · 0 need someone else")
	f.Counts.OwedSums = []views.Sum{{Currency: "USD"}}
	mustSay(t, draw(t, views.Home(views.HomePage{Frame: f})), "0 unknown, $0.00 owed, last check 12 s ago.")
	mustSay(t, draw(t, views.Approvals(views.ApprovalsPage{Frame: f, LastDecidedBy: "Jon", LastTook: 4 * minute})), "No approvals waiting. The last one was decided by Jon in 4 m.")
	mustSay(t, draw(t, views.Unknown(views.UnknownPage{Frame: f, LongestFor: 3*hour + 2*minute})), "Nothing is unknown. The oldest one this month took 3 h 02 m.")
	mustSay(t, draw(t, views.Refunds(views.RefundsPage{Frame: f})), "You owe nobody anything.")
	mustSay(t, draw(t, views.Operations(views.OperationsPage{Frame: f, Filter: views.Filter{Query: "rail:card older:2h"}, Ever: true})), "No operations match search:rail:card older:2h.", "Clear search")
	mustSay(t, draw(t, views.Operations(views.OperationsPage{Frame: f, Curl: "curl -sS"})), "No operations yet.", "curl -sS")
	mustSay(t, draw(t, views.Operations(views.OperationsPage{Frame: f, Ever: true})), "No older operations.")
	mustSay(t, draw(t, views.Home(views.HomePage{Frame: f, NothingEver: true})), "No operation was submitted yet.")
}

func TestSignInSaysExactlyWhatIsWrong(t *testing.T) {
	d := draw(t, views.Login(views.LoginPage{Wrong: true, WaitSeconds: 30, Email: "ana@example.com", Next: "/approvals"}))
	mustSay(t, d, "That e-mail and password don't match.", "Wait 30 seconds")
	if attr(field(d.form("login"), "email"), "value") != "ana@example.com" || attr(field(d.form("login"), "next"), "value") != "/approvals" {
		t.Error("what was typed did not come back")
	}
	demo := draw(t, views.Login(views.LoginPage{Demo: []views.DemoLink{{URL: "/in/abc", Name: "Ana", Does: "finance"}}}))
	if len(demo.all(has("href", "/in/abc"))) != 1 {
		t.Error("no one-click link")
	}
}

func TestTheListCarriesItsFilterInTheURL(t *testing.T) {
	d := draw(t, views.Operations(views.OperationsPage{Frame: frame(views.AtOperations), Filter: views.Filter{Status: "unknown", RunID: "run 9&x"},
		Items: []ledger.Operation{refund()}, NextCursor: "c/2", Many: true, Types: []string{"refund"}}))
	next := d.all(has("rel", "next"))
	if len(next) != 1 || attr(next[0], "href") != "/operations?cursor=c%2F2&run_id=run+9%26x&status=unknown" {
		t.Errorf("next page: %v", next)
	}
	if len(d.all(has("href", "/operations?run_id=run+9%26x"))) != 1 {
		t.Error("no way to clear the status")
	}
	mustSay(t, d, "More than 10,000 match. Narrow it or export.")
	chosen := d.all(has("selected", "*"))
	if len(chosen) != 1 || attr(chosen[0], "value") != "unknown" {
		t.Errorf("chosen: %v", chosen)
	}
}

func TestDecisionPagesSayWhatWasRecorded(t *testing.T) {
	f := frame("")
	for _, c := range []struct {
		page views.MessagePage
		want []string
	}{
		{views.NotFound(test(f), "op_9"), []string{"No operation op_9. It may belong to the other instance (this one is TEST)."}},
		{views.Conflict(f, charge(ledger.Rejected, ledger.Denied), ledger.Entry{ActorKind: ledger.Person, Actor: "Jon", Sentence: "wrong account", At: now - 8*second}, 1),
			[]string{"Jon decided this 8 s ago: Rejected, ‘wrong account’. Nothing from you was recorded."}},
		{views.ReplacedMeanwhile(f, refund(), []views.Field{{Label: "amount", Was: "30.00", Value: "90.00"}}),
			[]string{"This was replaced while you were reading.", "amount 30.00 → 90.00", "Your approval was not recorded.", "Open the new one"}},
		{views.DiskTrouble(f, 3, true), []string{"holdfast can't write to its disk (3 % free). Nothing is being sent. Operators have been told."}},
		{views.Done(f, leaving(10*second), "approve"), []string{"You approved 90.00 USDC. Ready", "It leaves in 10 s."}},
		{withTakeBack(views.Done(f, leaving(8*second), "approve")), []string{"It leaves in 8 s.", "Take back approval (8)"}},
		{views.Done(f, refund(), "approve"), []string{"It needs another approval before it leaves."}},
	} {
		mustSay(t, draw(t, views.Message(c.page)), c.want...)
	}
	mustNotSay(t, draw(t, views.Message(views.DiskTrouble(f, -1, false))), "Operators have been told", "% free")
}

func TestSensitiveBytesAreNotDrawnForWhoMayNotSeeThem(t *testing.T) {
	o := charge(ledger.Confirmed, "")
	o.Payload = []byte(`{"amount":48000,"currency":"USD","iban":"SK8975000000000012345671"}`)
	o.Canonical = []byte(`{"payload":` + string(o.Payload) + `}`)
	p := record(t, frame(""), o)
	var err error
	if p.Fields, err = views.Fields(o, nil, actionType(t), false, money); err != nil {
		t.Fatal(err)
	}
	p.Concealed = "This action type has sensitive fields."
	for _, view := range []string{"fields", "request", "bytes"} {
		p.View = view
		d := draw(t, views.Operation(p))
		if strings.Contains(d.source, "SK89") {
			t.Errorf("%s shows the concealed value", view)
		}
		if view == "fields" {
			mustSay(t, d, "iban •••• not shown to your role")
		} else {
			mustSay(t, d, p.Concealed)
		}
	}
}

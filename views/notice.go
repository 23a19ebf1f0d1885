package views

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/store/ledger"
)

// Notice words one thing that people are told outside the pages. What agents
// wrote stands in it as it is drawn on a page: visible, on one line, bounded, and
// so that nothing makes a link of it.
func Notice(n ledger.News) ledger.Notice {
	o := n.Operation
	told := ledger.Notice{Kind: n.Kind, TenantID: o.TenantID, Operation: o.OperationID, Action: o.ActionType, Recipient: foreign(o.Terms.Recipient),
		Agent: foreign(o.Agent), Owner: foreign(o.Owner), Words: ledger.Words(o.Fingerprint), Path: "/operations/" + o.OperationID, At: n.At}
	if o.Terms.HasAmount {
		told.Amount = plainly(n.Money.Short(o.Terms.Amount, o.Terms.Currency))
	}
	switch n.Kind {
	case ledger.AboutApproval, ledger.AboutExpiring:
		told.Rule, told.Until = foreign(o.PolicyRow), o.Asked.ExpiresAt
		told.Title, told.Lines = "Needs approval: "+wanted(told), []string{requestedBy(told), whyNeeded(told)}
		if n.Kind == ledger.AboutExpiring {
			told.Title = "About to expire: " + wanted(told)
		}
		if told.Until > 0 {
			told.Lines = append(told.Lines, "Expires "+localTime(told.Until, n.Zone)+", in "+Age(told.Until-n.Now)+".")
		}
	case ledger.AboutHold:
		told.Why = HoldReason(o, n.Attempts)
		told.Title, told.Lines = StatusWord(o).Text+", needs a person: "+wanted(told), []string{told.Why + ".", requestedBy(told)}
	case ledger.AboutOwed:
		owedNotice(n, &told)
	case ledger.AboutException:
		told.Why = exceptionWord(n.Exception).Text
		told.Title, told.Lines = told.Why+": "+wanted(told), []string{"What a provider shows contradicts how it ended. A person answers it.", requestedBy(told)}
	case ledger.AboutRail:
		told.Until = 0
		told.Title, told.Path = "Rail "+foreign(n.Rail)+" is paused by its breaker", "/rails"
		told.Lines = []string{"It could not be reached several times in a row. The next look is at " + localTime(n.Until, n.Zone) + "; what is asked for meanwhile waits."}
	case ledger.AboutDay:
		told.Title, told.Path, told.Lines = "holdfast today", "/", dayLines(n)
	case ledger.AboutTest:
		told.Title, told.Path = "A test from holdfast", "/settings"
		told.Lines = []string{"This channel works. Nothing has to be done."}
	}
	if told.Words != "" {
		told.Lines = append(told.Lines, "Words "+told.Words+".")
	}
	return told
}

func owedNotice(n ledger.News, told *ledger.Notice) {
	r := n.Refund
	told.Path, told.Operation, told.Why = "/refunds/"+r.ID, r.OperationID, causeWord(r)
	told.Recipient = "" // of the payment, and not who is owed
	amount := ""
	if n.Operation.OperationID == "" || n.Operation.Terms.HasAmount {
		told.Amount = plainly(n.Money.Short(r.Open, r.Currency))
		amount = " " + told.Amount
	}
	whom := "Owed" + amount
	if r.Direction == "owed_to_us" {
		whom = "Owed to us" + amount
	}
	switch n.Entry.Event {
	case "overdue":
		told.Title = whom + ": past its day"
	case string(ledger.RefundBounce):
		told.Title = whom + ": reopened, what was paid came back"
	default:
		told.Title = whom + ": " + told.Why
	}
	told.Lines = nil
	if r.DueAt > 0 {
		told.Lines = append(told.Lines, "Due "+localTime(r.DueAt, n.Zone)+".")
	}
}

// wanted is what an operation is to do: verb, amount and whom.
func wanted(n ledger.Notice) string {
	text := foreign(n.Action)
	if n.Amount != "" {
		text += " " + n.Amount
	}
	if n.Recipient != "" {
		text += " to " + n.Recipient
	}
	return text
}

func requestedBy(n ledger.Notice) string {
	switch {
	case n.Agent == "":
		return "Asked for by " + n.Owner + "."
	case n.Owner == "":
		return "Asked for by " + n.Agent + "."
	}
	return "Asked for by " + n.Agent + ", for " + n.Owner + "."
}

func whyNeeded(n ledger.Notice) string {
	if n.Rule == "" {
		return "No rule fits it, so people are asked."
	}
	return "Rule “" + n.Rule + "” asks for people."
}

// dayLines are the three lines of a daily note: what is unknown, what is owed, and
// who looked last.
func dayLines(n ledger.News) []string {
	d := n.Day
	unknown := "Nothing unknown"
	if d.Unknown > 0 {
		unknown = fmt.Sprintf("Unknown %d · oldest %s", d.Unknown, Age(n.Now-d.Oldest))
		if len(d.AtRisk) > 0 {
			unknown += " · at risk " + sums(d.AtRisk, n.Money)
		}
	}
	owed := "nothing owed"
	if d.Owed > 0 {
		owed = fmt.Sprintf("Owed %d · %s", d.Owed, sums(d.OwedSums, n.Money))
		if d.Overdue > 0 {
			owed += fmt.Sprintf(" · %d past their day", d.Overdue)
		}
	}
	last := "Last look-up " + since(d.LookedAt, n.Now) + " · last statement " + since(d.Statement, n.Now)
	waits := fmt.Sprintf("%d need approval · %d exceptions wait for an answer", d.Approvals, d.Exceptions)
	if d.Approvals+d.Exceptions == 0 {
		waits = "nothing waits for a person"
	}
	if d.Unknown == 0 && d.Owed == 0 {
		return []string{unknown + " · " + owed, last, strings.ToUpper(waits[:1]) + waits[1:]}
	}
	if d.Owed == 0 {
		owed = "Nothing owed"
	}
	return []string{unknown, owed, last + " · " + waits}
}

func since(t, now int64) string {
	if t == 0 {
		return "never"
	}
	return Age(now-t) + " ago"
}

// sums lists amounts by currency; currencies are never added up.
func sums(all map[string]int64, money ledger.Currencies) string {
	var texts []string
	for _, code := range slices.Sorted(maps.Keys(all)) {
		texts = append(texts, plainly(money.Short(all[code], code)))
	}
	return strings.Join(texts, " + ")
}

// mostListed is how many of many are named in one message.
const mostListed = 5

// NoticesTogether words several notices as one message, and one as itself.
func NoticesTogether(kind ledger.NoticeKind, notices []ledger.Notice) ledger.Message {
	first := notices[0]
	m := ledger.Message{TenantID: first.TenantID, Channel: first.Channel, Kind: kind, Title: first.Title, Lines: first.Lines, Path: first.Path,
		Notices: notices[:min(len(notices), 100)], Count: len(notices), Since: first.At}
	if len(notices) == 1 {
		return m
	}
	m.Lines = nil
	for _, n := range notices[:min(len(notices), mostListed)] {
		m.Lines = append(m.Lines, n.Title)
	}
	if more := len(notices) - mostListed; more > 0 {
		m.Lines = append(m.Lines, fmt.Sprintf("and %d more", more))
	}
	if kind != ledger.AboutMany {
		m.Title, m.Path = fmt.Sprintf("%d %s", len(notices), many[kind].words), many[kind].path
		return m
	}
	count := map[ledger.NoticeKind]int{}
	for _, n := range notices {
		count[n.Kind]++
	}
	var parts []string
	for _, k := range []ledger.NoticeKind{ledger.AboutApproval, ledger.AboutExpiring, ledger.AboutHold, ledger.AboutOwed, ledger.AboutException, ledger.AboutRail} {
		if count[k] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[k], many[k].words))
		}
	}
	m.Title, m.Path = "In the quiet hours: "+strings.Join(parts, " · "), "/"
	return m
}

// many words a number of one kind, and where they are listed.
var many = map[ledger.NoticeKind]struct{ words, path string }{
	ledger.AboutApproval:  {"need approval", "/approvals"},
	ledger.AboutExpiring:  {"about to expire", "/approvals"},
	ledger.AboutHold:      {"held", "/unknown"},
	ledger.AboutOwed:      {"refunds owed, opened or due", "/refunds"},
	ledger.AboutException: {"exceptions", "/"},
	ledger.AboutRail:      {"rails paused by their breakers", "/rails"},
}

func localTime(ms int64, zone *time.Location) string {
	return time.UnixMilli(ms).In(zone).Format("2 Jan 2006 15:04 MST")
}

// longestQuote is how much of a text of somebody else's a notice holds.
const longestQuote = 80

// foreign is a text of somebody else's on one line, with what hides in it shown. An
// address in it is broken, since chats and mail programs make links of what looks
// like one, and a link in a notice is trusted.
func foreign(s string) string {
	cut := ""
	if all := []rune(s); len(all) > longestQuote {
		s, cut = string(all[:longestQuote]), "…"
	}
	return strings.ReplaceAll(plainly(s), "://", "[:]//") + cut
}

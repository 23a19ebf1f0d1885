package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

func TestANoticeSaysWhoWhatHowMuchAndWhere(t *testing.T) {
	o := tell(t, "")
	op := o.wantDollars(124000)
	words := ledger.Words(op.Fingerprint)
	o.round()
	want := []string{"Needs approval: pay $1,240.00 to " + op.Terms.Recipient, "Asked for by agent-1, for owner@example.com.", "Rule “dollars” asks for people.",
		"Expires 7 Mar 2026 09:00 UTC, in 3 d.", "Words " + words + ".", "https://pay.example.com/operations/" + op.OperationID}

	slack, ntfy, hook, mail := o.take(slackPath), o.take(ntfyPath), o.take(hookPath), o.mail.take()
	if len(slack) != 1 || len(ntfy) != 1 || len(hook) != 1 || len(mail) != 1 {
		t.Fatalf("slack %d, ntfy %d, webhook %d, mail %d; one each was wanted", len(slack), len(ntfy), len(hook), len(mail))
	}
	if got := slack[0].member(t, "text"); got != strings.Join(want, "\n") {
		t.Errorf("Slack reads\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	n := ntfy[0]
	if n.member(t, "topic") != "ops" || n.member(t, "title") != want[0] || n.member(t, "message") != strings.Join(want[1:], "\n") ||
		n.member(t, "click") != want[5] || n.header.Get("Authorization") != "Bearer tk_s3cret" {
		t.Errorf("ntfy got %s with %v", n.body, n.header)
	}
	if l := mail[0]; !strings.Contains(l.text, "Subject: "+want[0]) || !strings.Contains(l.text, words) || len(l.to) != 2 ||
		!strings.Contains(l.text, "\r\nFrom: \"holdfast\" <pay@example.com>") {
		t.Errorf("mail to %v:\n%s", l.to, l.text)
	}
	checkHook(t, o, hook[0])
	var seen struct {
		Type string
		Data struct {
			Count   int
			Notices []struct {
				Kind, Amount, Recipient, Agent, Owner, Words, Rule, Link string
				Until                                                    int64
			}
		}
	}
	must(t, json.Unmarshal(hook[0].body, &seen))
	if seen.Type != "holdfast.approval" || seen.Data.Count != 1 {
		t.Fatalf("webhook: %s", hook[0].body)
	}
	if one := seen.Data.Notices[0]; one.Amount != "$1,240.00" || one.Agent != "agent-1" || one.Owner != "owner@example.com" || one.Words != words ||
		one.Rule != "dollars" || one.Link != want[5] || one.Until != op.Asked.ExpiresAt {
		t.Errorf("webhook: %s", hook[0].body)
	}
	o.round()
	if again := len(o.take(slackPath)) + len(o.take(ntfyPath)) + len(o.take(hookPath)) + len(o.mail.take()); again != 0 {
		t.Errorf("it was told %d times more", again)
	}
}

// checkHook verifies a webhook as its receiver would, with the library that the
// specification comes with.
func checkHook(t *testing.T, o *channelWorld, h received) {
	t.Helper()
	theirs, err := standardwebhooks.NewWebhook(hookSecret)
	must(t, err)
	if err := theirs.VerifyIgnoringTimestamp(h.body, h.header); err != nil { // the clock of this world stands still
		t.Errorf("the receiver does not believe it: %v; %v", err, h.header)
	}
	if got := h.header.Get("webhook-timestamp"); got != fmt.Sprint(o.Store.Now()/1000) {
		t.Errorf("signed at %s", got)
	}
	if theirs.VerifyIgnoringTimestamp(append(slices.Clone(h.body), ' '), h.header) == nil {
		t.Error("a changed body is believed as well")
	}
}

func TestWhatAnActionTypeHidesIsInNoNotice(t *testing.T) {
	o := tell(t, "")
	o.ask(wanted{action: "hush", currency: "USD", amount: 700, recipient: "acct_hidden"})
	o.round()
	all := fmt.Sprint(o.mail.take())
	for _, h := range o.got {
		all += fmt.Sprint(string(h.body), h.header)
	}
	if !strings.Contains(all, "hush $7.00 to ••••") {
		t.Errorf("nothing about it was told: %s", all)
	}
	for _, secret := range []string{"acct_hidden", "DE-SECRET-77", "s3cret/", "eyJ"} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is in a notice", secret)
		}
	}
}

func TestWhatAnAgentWritesCallsNobodyAndLinksNowhere(t *testing.T) {
	o := tell(t, "")
	const hostile = "<!channel> @here <https://evil.example|Approve> [yes](https://evil.example)\r\nBcc: all@example.com\r\n\r\nhi \u202e&lt;"
	// A line break does not get in by the front door; behind it, it would be drawn.
	n := views.Notice(ledger.News{Kind: ledger.AboutApproval, Zone: time.UTC,
		Operation: ledger.Operation{Agent: hostile, Owner: hostile, PolicyRow: hostile, ActionType: "pay", Terms: ledger.Terms{Recipient: hostile}}})
	for _, line := range append(n.Lines, n.Title, n.Agent, n.Owner, n.Rule, n.Recipient) {
		if strings.ContainsAny(line, "\r\n\u202e") || strings.Contains(line, "://") {
			t.Errorf("a line of a notice reads %q", line)
		}
	}
	o.ask(wanted{currency: "USD", recipient: "<!channel> @here <https://evil.example|Approve> [yes](https://evil.example)"})
	o.ask(wanted{currency: "USD", recipient: "a\u202eb <!here>"})
	o.round()
	slack, ntfy, mail := o.take(slackPath), o.take(ntfyPath), o.mail.take()
	if len(slack) != 2 || len(ntfy) != 2 || len(mail) != 2 {
		t.Fatalf("slack %d, ntfy %d, mail %d; two each were wanted", len(slack), len(ntfy), len(mail))
	}
	ours := regexp.MustCompile(`https://pay\.example\.com/operations/op-\d+`)
	for _, h := range slack {
		text := h.member(t, "text")
		if strings.ContainsAny(text, "<>\u202e\r") || strings.Contains(text, " @") || strings.Contains(text, "](") || strings.Contains(ours.ReplaceAllString(text, ""), "://") {
			t.Errorf("Slack would act on %q", text)
		}
		if h.member(t, "mrkdwn") != "false" {
			t.Errorf("Slack reads markup: %s", h.body)
		}
	}
	for _, h := range ntfy {
		for name := range h.header {
			if !slices.Contains([]string{"User-Agent", "Accept", "Accept-Encoding", "Connection", "Content-Type", "Content-Length", "Authorization"}, name) {
				t.Errorf("ntfy got the header %s", name)
			}
		}
		if text := ours.ReplaceAllString(h.member(t, "title")+h.member(t, "message"), ""); strings.Contains(text, "://") || strings.Contains(text, "\r") {
			t.Errorf("ntfy would act on %q", text)
		}
	}
	for _, l := range mail {
		head, _, _ := strings.Cut(l.text, "\r\n\r\n")
		if strings.Contains(strings.ToLower(head), "\nbcc:") || len(l.to) != 2 {
			t.Errorf("a letter to %v:\n%s", l.to, head)
		}
	}
}

// oneOfEach makes a notice of every kind.
func (o *channelWorld) oneOfEach() {
	o.t.Helper()
	o.ask(wanted{currency: "GBP", amount: 5000})
	for range 2 {
		o.ask(wanted{amount: 900, recipient: "acct_same", reference: "same"})
	}
	paid := o.paid("pay_1")
	late := ledger.Look{Finding: ledger.LookAbsent, AskedAt: o.Store.Now() + time.Hour.Milliseconds()}
	for range 2 {
		_, _, err := o.Store.RecordRecheck(o.t.Context(), "default", paid.OperationID, late, ledger.Holder{Kind: ledger.Reconciler, Name: "recheck"})
		must(o.t, err)
		late.AskedAt += (25 * time.Hour).Milliseconds()
	}
	_, _, err := o.Store.ReportRefund(o.t.Context(), store.RefundReport{TenantID: "default", Rail: "card", ReceiptID: "ch_9", Direction: "we_owe", Cause: "duplicate_charge",
		Currency: "EUR", Amount: 4800, Reason: "twice", DueAt: o.Store.Now() + time.Hour.Milliseconds(), By: ledger.Holder{Kind: ledger.Agent, Name: "agent-1"}})
	must(o.t, err)
	o.Config().Tenants["default"].Rails["card"].Breaker().Failed(time.UnixMilli(o.Store.Now()))
	o.round()
	o.pass(90 * time.Minute)
	_, err = o.Store.AgeRefunds(o.t.Context(), ledger.Holder{Kind: ledger.Clock, Name: "refunds"})
	must(o.t, err)
	o.round()
}

func TestNoLinkOfANoticeDecidesAnything(t *testing.T) {
	o := tell(t, "  daily: \"09:00\"\n", "slack")
	ana := o.signIn(o.person("default", "ana@example.com", "admin", "finance", "approver"))
	o.oneOfEach()
	must(t, o.Scheduler.TestChannels(t.Context(), ana.who))
	var titles []string
	before := o.dump()
	for _, h := range o.take(slackPath) {
		text := h.member(t, "text")
		titles = append(titles, text[:strings.Index(text, "\n")])
		link := text[strings.LastIndex(text, "\n")+1:]
		path, ours := strings.CutPrefix(link, "https://pay.example.com")
		if !ours {
			t.Fatalf("%q leads to %s", titles[len(titles)-1], link)
		}
		if answer := ana.get(path); answer.Code != http.StatusOK {
			t.Errorf("%s: %d", path, answer.Code)
		}
		if answer := o.do(http.MethodGet, path, ""); answer.Code != http.StatusSeeOther {
			t.Errorf("%s for a stranger: %d", path, answer.Code)
		}
	}
	for _, want := range []string{"holdfast today", "Needs approval: pay £50.00", "Held, needs a person: pay €9.00", "Receipt gone: pay €48.00", "Owed €48.00: charged twice",
		"Rail card is paused by its breaker", "About to expire: pay £50.00", "Owed €48.00: past its day", "A test from holdfast"} {
		if !slices.ContainsFunc(titles, func(title string) bool { return strings.HasPrefix(title, want) }) {
			t.Errorf("nothing was told like %q; there are %q", want, titles)
		}
	}
	if after := o.dump(); after != before {
		t.Errorf("a link changed something:\n%s\n→\n%s", before, after)
	}
}

// dump is where everything stands that a decision could change.
func (o *channelWorld) dump() string {
	o.t.Helper()
	found, err := o.Store.Operations(o.t.Context(), "default", store.Filter{Limit: 200})
	must(o.t, err)
	var all strings.Builder
	for _, op := range found.Items {
		fmt.Fprintln(&all, op.OperationID, op.Status, op.Reason, op.Version)
	}
	owed, err := o.Store.RefundsOwed(o.t.Context(), "default")
	must(o.t, err)
	for _, r := range owed {
		fmt.Fprintln(&all, r.ID, r.Status, r.Version)
	}
	must(o.t, o.Store.EachEntry(o.t.Context(), 0, func(e ledger.Entry) error {
		if e.Object != "session" && e.Object != "job" {
			fmt.Fprintln(&all, e.Seq, e.Sentence)
		}
		return nil
	}))
	return all.String()
}

func TestAReceiverThatWasDownForHoursHearsEverythingInOrder(t *testing.T) {
	o := tell(t, "", "slack")
	o.answerWith(func(received) int { return http.StatusServiceUnavailable })
	var want []string
	for i := range 4 {
		op := o.wantDollars(int64(100 * (i + 1)))
		want = append(want, "Needs approval: pay $"+fmt.Sprint(i+1)+".00 to "+op.Terms.Recipient)
		for range 12 * 30 { // an hour of ticks
			o.pass(10 * time.Second)
			o.round()
		}
	}
	if n := len(o.take(slackPath)); n < 5 || n > 20 {
		t.Errorf("it was tried %d times in four hours; the waits grow from 10 s to half an hour", n)
	}
	o.answerWith(func(received) int { return http.StatusOK })
	for range 10 {
		o.pass(30 * time.Minute)
		o.round()
	}
	if got := o.titles(); !slices.Equal(got, want) {
		t.Errorf("it heard\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAMessageIsGivenUpAfterADayAndThePageSaysSo(t *testing.T) {
	o := tell(t, "", "slack")
	o.answerWith(func(received) int { return http.StatusFound })
	o.wantDollars(500)
	for range 50 {
		o.round()
		o.pass(31 * time.Minute)
	}
	o.mu.Lock()
	for _, h := range o.got {
		if h.path != slackPath {
			t.Errorf("a redirect was followed to %s", h.path)
		}
	}
	o.mu.Unlock()
	admin := o.signIn(o.person("default", "ana@example.com", "admin"))
	shows(t, admin.get("/settings"), http.StatusOK, "slack", "It answered 302, which leads elsewhere; redirects are not followed.")
	states, err := o.Store.ChannelStates(t.Context(), "default")
	must(t, err)
	if s := states["slack"]; s.GaveUp != 1 || s.Waiting != 0 || s.DeliveredAt != 0 {
		t.Errorf("the channel stands at %+v", s)
	}
	if !strings.Contains(o.dump(), "A notice could not be told over slack: It answered 302") {
		t.Error("the log does not tell that it was given up")
	}
	o.answerWith(func(received) int { return http.StatusOK })
	o.take(slackPath)
	later := o.wantDollars(600)
	o.round()
	if got := o.titles(); len(got) != 1 || !strings.Contains(got[0], later.Terms.Recipient) {
		t.Errorf("afterwards it heard %q", got)
	}
}

func TestAProcessThatEndsBetweenSendAndRecordDoublesOneMessage(t *testing.T) {
	o := tell(t, "", "webhook")
	o.wantDollars(100)
	o.wantDollars(200)
	o.answerWith(func(received) int {
		o.Store.Close() // nothing more is recorded
		return http.StatusOK
	})
	o.round()
	first := o.take(hookPath)
	o.answerWith(func(received) int { return http.StatusOK })
	now := func() time.Time { return time.UnixMilli(o.clock.Load()) }
	again, err := store.Open(t.Context(), store.Options{Folder: o.folder, Now: now})
	must(t, err)
	t.Cleanup(func() { again.Close() })
	must(t, again.SetRulebooks(t.Context(), o.Config().Rulebooks()))
	o.Store, o.Scheduler.Store = again, again
	for range 3 {
		o.round()
		o.pass(time.Minute)
	}
	heard := append(first, o.take(hookPath)...)
	names := map[string]int{}
	for _, h := range heard {
		names[h.header.Get("webhook-id")]++
	}
	if len(heard) != 3 || len(names) != 2 || names[heard[0].header.Get("webhook-id")] != 2 {
		t.Errorf("%d messages under %v; the one that was under way comes twice under its name, the other once", len(heard), names)
	}
	if string(heard[0].body) != string(heard[1].body) {
		t.Error("the second copy reads differently")
	}
}

func TestAReceiverThatHangsHoldsUpNoOperation(t *testing.T) {
	o := tell(t, "", "slack")
	held, let := make(chan struct{}), make(chan struct{})
	o.answerWith(func(received) int { close(held); <-let; return http.StatusOK })
	o.wantDollars(100)
	done := make(chan struct{})
	go func() { defer close(done); o.round() }()
	<-held
	op := o.paid("pay_2")
	if op.Status != ledger.Confirmed {
		t.Errorf("while the receiver hangs, an operation is %s", op.Status)
	}
	close(let)
	<-done
	if got := o.titles(); len(got) != 1 {
		t.Errorf("told: %q", got)
	}
}

func TestInTheQuietHoursOnlyWhatCannotWaitIsTold(t *testing.T) {
	o := tell(t, "  zone: Europe/Berlin\n  quiet: { from: \"22:00\", to: \"07:00\" }\n", "slack")
	night := time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC) // 23:00 in Berlin, and the clocks jump at two
	o.setClock(night)
	answered := o.wantDollars(100)
	for i := range 3 {
		o.wantDollars(int64(200 + i))
	}
	o.ask(wanted{currency: "GBP", amount: 5000}) // gone by one o'clock
	for range 2 {
		o.ask(wanted{amount: 900, recipient: "acct_same", reference: "same"}) // one is held
	}
	o.round()
	if got := o.titles(); len(got) != 1 || !strings.HasPrefix(got[0], "Needs approval: pay £50.00") {
		t.Fatalf("in the quiet hours it told %q", got)
	}
	ana := o.signIn(o.person("default", "ana@example.com", "approver"))
	if answer := ana.act(answered, "approve"); answer.Code != http.StatusSeeOther {
		t.Fatalf("approving: %d %s", answer.Code, answer.Body)
	}
	morning := time.Date(2026, 3, 29, 5, 0, 0, 0, time.UTC) // 07:00, an hour short
	for o.setClock(night.Add(2 * time.Hour)); o.Store.Now() < morning.UnixMilli(); o.pass(10 * time.Minute) {
		o.round()
		if got := o.titles(); len(got) != 0 && !strings.HasPrefix(got[0], "About to expire: pay £50.00") {
			t.Fatalf("at %s it told %q", time.UnixMilli(o.Store.Now()).UTC(), got)
		}
	}
	o.setClock(morning)
	o.round()
	if got := o.titles(); len(got) != 1 || got[0] != "In the quiet hours: 3 need approval · 1 held" {
		t.Errorf("in the morning it told %q", got)
	}
}

func TestManyAtOnceAreOneMessage(t *testing.T) {
	o := tell(t, "", "slack", "webhook")
	for i := range 38 {
		o.wantDollars(int64(100 + i))
	}
	o.round()
	texts := o.take(slackPath)
	if len(texts) != 1 || !strings.HasPrefix(texts[0].member(t, "text"), "38 need approval\n") || !strings.Contains(texts[0].member(t, "text"), "and 33 more\nhttps://pay.example.com/approvals") {
		t.Errorf("told: %s", texts)
	}
	var seen struct {
		Data struct {
			Count   int
			Notices []any
		}
	}
	must(t, json.Unmarshal(o.take(hookPath)[0].body, &seen))
	if seen.Data.Count != 38 || len(seen.Data.Notices) != 38 {
		t.Errorf("the webhook has %d of %d", len(seen.Data.Notices), seen.Data.Count)
	}
}

func TestTheDailyNoteComesOnceALocalDay(t *testing.T) {
	o := tell(t, "  zone: Europe/Berlin\n  daily: \"02:30\"\n", "slack")
	o.setClock(time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC))
	o.take(slackPath) // that of the day on which it all begins
	o.round()
	for range 5 * 24 {
		o.pass(time.Hour)
		o.round()
	}
	o.setClock(time.Date(2026, 10, 23, 12, 0, 0, 0, time.UTC))
	for range 4 * 48 {
		o.round()
		o.pass(30 * time.Minute)
	}
	notes := o.take(slackPath)
	if len(notes) != 6+5 {
		t.Errorf("%d notes for the 27th of March to the 1st of April and the 23rd to the 27th of October", len(notes))
	}
	if got := notes[0].member(t, "text"); got != "holdfast today\nNothing unknown · nothing owed\nLast look-up never · last statement never\nNothing waits for a person\nhttps://pay.example.com/" {
		t.Errorf("when all is quiet it reads\n%s", got)
	}
}

func TestTheDailyNoteSaysWhatIsOpen(t *testing.T) {
	o := tell(t, "  daily: \"11:00\"\n", "slack")
	o.lose(o.ask(wanted{amount: 124000}))
	o.oneOfEach()
	o.setClock(time.Date(2026, 3, 4, 11, 0, 0, 0, time.UTC))
	o.round()
	notes := o.take(slackPath)
	text := notes[len(notes)-1].member(t, "text")
	for _, want := range []string{"Unknown 2 · oldest 2 h 00 m · at risk €1,240.00\n", "Owed 1 · €48.00 · 1 past their day\n", "Last look-up never · last statement never · 1 need approval · 1 exceptions wait"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func TestAnAdminTriesEveryChannelFromThePage(t *testing.T) {
	o := tell(t, "  quiet: { from: \"00:00\", to: \"23:59\" }\n  daily: \"23:59\"\n")
	admin, viewer := o.signIn(o.person("default", "ana@example.com", "admin")), o.signIn(o.person("default", "vic@example.com", "viewer", "approver"))
	shows(t, admin.get("/settings"), http.StatusOK, `data-act="test-notice"`, "slack", "ntfy", "webhook", "smtp", "none yet", "Quiet 00:00–23:59 UTC", "Daily note 23:59 UTC")
	hides(t, admin.get("/settings"), "s3cret", hookSecret)
	hides(t, viewer.get("/settings"), `data-act="test-notice"`)
	shows(t, viewer.get("/settings"), http.StatusOK, "This needs the role admin.")
	shows(t, viewer.post("/settings/test-notice", url.Values{}), http.StatusForbidden)
	if n := len(o.take(slackPath)); n != 0 {
		t.Errorf("a viewer had %d notices sent", n)
	}
	if answer := admin.post("/settings/test-notice", url.Values{}); answer.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	slack, ntfy, hook, mail := o.take(slackPath), o.take(ntfyPath), o.take(hookPath), o.mail.take()
	if len(slack) != 1 || len(ntfy) != 1 || len(hook) != 1 || len(mail) != 1 || !strings.HasPrefix(slack[0].member(t, "text"), "A test from holdfast\n") {
		t.Errorf("slack %s, ntfy %s, webhook %s, mail %v", slack, ntfy, hook, mail)
	}
	hides(t, admin.get("/settings"), "none yet")
	if !strings.Contains(o.dump(), "ana@example.com sent a test notice over every channel.") {
		t.Error("the log does not tell who tested the channels")
	}
}

func TestWhoConfiguresNothingIsToldNothing(t *testing.T) {
	w := newServer(t, pagesConfig)
	w.ask(wanted{currency: "USD"})
	if run, err := w.Scheduler.Run(context.Background(), "notify"); err != nil || run.Opened != 0 || run.LookedAt != 0 {
		t.Errorf("%+v %v", run, err)
	}
	admin := w.signIn(w.person("default", "ana@example.com", "admin"))
	shows(t, admin.get("/settings"), http.StatusOK, "Nobody is told outside these pages.")
	shows(t, admin.post("/settings/test-notice", url.Values{}), http.StatusUnprocessableEntity, "No channel is configured.")
}

package web

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"holdfast/store"
	"holdfast/store/ledger"
)

// What people do, in a real browser, against a whole server and a provider in a
// process of its own.

func TestBrowserApprovalIsSentOnce(t *testing.T) {
	t.Parallel()
	j := startBrowserJourney(t)
	for _, c := range []struct {
		name, id string
		script   bool
	}{{"with script", "inv-481", true}, {"without script", "inv-482", false}} {
		t.Run(c.name, func(t *testing.T) { j.in(t).approves(c.id, c.script) })
	}
}

// approves signs in, finds an approval on the home page, and gives it.
func (j journey) approves(id string, script bool) {
	told := j.ask("pay", id, id, 123456)
	c := j.openChrome(script)
	if ran := evaluate[bool](c, `(() => { const s = document.createElement("script"); s.textContent = "window.ran = true"; document.documentElement.append(s); return window.ran === true })()`); ran != script {
		j.t.Fatal("the page's script runs: ", ran)
	}
	c.signIn(ana)
	c.shows("main", "Needs approval", "€1,234.56", "acct-"+id)
	c.press(fmt.Sprintf(`.need a.button[href="/operations/%s"]`, id))
	words := told["words"].(string)
	c.shows("#what", "1,234.56 EUR", "acct-"+id)
	c.shows(".op-head", words)
	c.shows(".ident", words)
	c.shows("#decide", "Approve €1,234.56 charge")
	j.happened(id, 0, 0)

	c.decide("approve", "reason", "The invoice is ours.")
	c.shows(`form[data-act="approve"]`, words, "If anything changes, this approval is void.")
	c.confirm("approve")
	c.shows("main", "You approved €1,234.56.")
	c.until(id, "Confirmed")
	c.shows("main", "pay_", "as approved", "The invoice is ours.")
	j.happened(id, 1, 1)
	if body := string(j.effectsOf(id)[0].Body); !strings.Contains(body, `"amount":123456`) || !strings.Contains(body, "acct-"+id) {
		j.t.Error("what happened is not what was approved: ", body)
	}
	j.read(id)
}

func TestBrowserHoldIsSettled(t *testing.T) {
	t.Parallel()
	j := startBrowserJourney(t)
	c := j.openChrome(true)
	c.signIn(ana)
	j.at("slow").mayStillAct(c, "inv-484")
	j.at("brisk").itHappened(c, "inv-483")
	j.at("slow").itDidNotHappen(c, "inv-484")
}

// itHappened settles a lost answer with what a person read at the provider.
func (j journey) itHappened(c *chrome, id string) {
	j.t.Helper()
	must(j.t, j.book.arm(j.ctx, id, "drop_after", "list_lag_ms:1800000"))
	j.ask("pay_brisk", id, id, 4800)
	j.untilStatus(id, ledger.UnknownHold)
	c.open("/unknown")
	c.press(fmt.Sprintf(`.need a.button[href="/operations/%s"]`, id))
	c.shows(".op-head", "Outcome unknown", "needs a person", "did this exact charge", "happen, once?")
	c.shows(".axis", "OUR SIDE", "PROVIDER'S SIDE", "recorded, before sending", "sent, attempt 1", "no answer that proves anything", "look-up: not found", "Here we do not know.")
	c.shows("main", "An empty search isn't proof")

	booked := j.effectsOf(id)
	c.decide("happened", "receipt_id", booked[0].ID, "amount", "48.00", "reason", "Seen in the provider's dashboard")
	c.confirm("happened")
	c.shows("main", "You said that it happened.")
	c.until(id, "Confirmed")
	c.shows("main", booked[0].ID, "€48.00")
	j.happened(id, 1, 1)
	j.read(id)
}

// mayStillAct loses a request on the way, and finds "it did not happen" refused
// in words for as long as that request may act.
func (j journey) mayStillAct(c *chrome, id string) {
	j.t.Helper()
	must(j.t, j.book.arm(j.ctx, id, "drop_before"))
	j.ask("pay_slow", id, id, 4800)
	j.untilStatus(id, ledger.UnknownHold)
	c.open("/operations/" + id)
	c.shows(`[data-refused="did-not-happen"]`, "It did not happen — close", "A request that was sent may still act.", "Possible from")
	if forms := evaluate[int](c, `document.querySelectorAll('form[data-act="did-not-happen"]').length`); forms != 0 {
		j.t.Error("it can be pressed")
	}
}

func (j journey) itDidNotHappen(c *chrome, id string) {
	j.t.Helper()
	j.until(id, "quiet", func(o ledger.Operation) bool { return j.Store.Now() >= o.QuietFrom })
	c.open("/operations/" + id)
	c.decide("did-not-happen", "reason", "The provider's support confirmed it")
	c.confirm("did-not-happen")
	c.shows("main", "You said that it did not happen.")
	c.until(id, "Did not happen")
	j.happened(id, 1, 0)
	j.call(http.MethodGet, "/v1/operations/"+id, "").is(j.t, 200, "not_executed", "stop", true)
}

func TestBrowserOverlapIsSettled(t *testing.T) {
	t.Parallel()
	j := startBrowserJourney(t)
	c := j.openChrome(true)
	c.signIn(ana)
	j.ask("pay", "inv-485-first", "inv-485", 4800)
	first := j.untilStatus("inv-485-first", ledger.Confirmed)
	for _, again := range []string{"inv-485-again", "inv-485-more"} {
		j.ask("pay", again, "inv-485", 4800)
		j.untilStatus(again, ledger.UnknownHold)
	}

	c.open("/operations/inv-485-again")
	c.shows(".op-head", "Held", "is this the same purchase as an earlier one?")
	c.shows(".beside", "inv-485-again", "inv-485-first", "Confirmed", first.Receipt.ID, "€48.00 same", "inv-485 same")
	c.decide("same-purchase", "reason", "One invoice")
	c.confirm("same-purchase")
	c.shows("main", "You said that it is the same purchase.")
	said := j.call(http.MethodGet, "/v1/operations/inv-485-again", "").said
	if result, _ := said["result"].(map[string]any); result["id"] != first.Receipt.ID || said["next"] != "use_result" || said["duplicate_of"] != "inv-485-first" {
		t.Error("the second id does not get the first one's result: ", said)
	}
	j.happened("inv-485", 1, 1)

	c.open("/operations/inv-485-more")
	c.decide("different-purchase", "reason", "The second instalment of the invoice")
	c.confirm("different-purchase")
	c.shows("main", "You said that it is a different purchase.")
	c.until("inv-485-more", "Confirmed")
	j.happened("inv-485", 2, 2)
}

func TestBrowserFormThatSawSomethingElseDecidesNothing(t *testing.T) {
	t.Parallel()
	j := startBrowserJourney(t)
	c := j.openChrome(true)
	c.signIn(ana)
	set := func(field, value string) func(string) {
		return func(string) {
			c.do(chromedp.SetValue(chromedp.CSS(fmt.Sprintf("form[data-act=approve] [name=%s]", field)), value))
		}
	}
	for _, was := range []struct {
		id     string
		change func(id string)
		status int64
		says   []string
	}{
		{"inv-486", set("fingerprint", "hf1:sha256:"+strings.Repeat("0", 64)), http.StatusPreconditionFailed, []string{"This was changed while you were reading.", "Your decision was not recorded."}},
		{"inv-487", set("version", "0"), http.StatusConflict, []string{"Nothing from you was recorded."}},
		{"inv-488", j.rejectedBy(jon, "wrong account"), http.StatusConflict, []string{"This was decided while you were reading.", "Jon decided this", "Rejected, ‘wrong account’.", "Nothing from you was recorded."}},
	} {
		j.ask("pay", was.id, was.id, 123456)
		c.open("/operations/" + was.id)
		c.decide("approve")
		was.change(was.id)
		before, log := j.stored(was.id), j.went(was.id)
		if status := c.confirm("approve"); status != was.status {
			t.Errorf("%s: answered %d, want %d", was.id, status, was.status)
		}
		c.shows("main", was.says...)
		after := j.stored(was.id)
		given, err := j.Store.Approvals(t.Context(), "default", was.id)
		must(t, err)
		approved := slices.ContainsFunc(given, func(a ledger.Approval) bool { return a.Decision == "approve" })
		if after.Status != before.Status || after.Version != before.Version || j.went(was.id) != log || approved {
			t.Errorf("%s was changed: %s %d, then %s %d", was.id, before.Status, before.Version, after.Status, after.Version)
		}
		j.happened(was.id, 0, 0)
	}
}

// rejectedBy is another person, who is first.
func (j journey) rejectedBy(email, why string) func(id string) {
	return func(id string) {
		j.t.Helper()
		p, _, err := j.Store.PersonByEmail(j.t.Context(), email)
		must(j.t, err)
		o := j.stored(id)
		_, err = j.Store.Reject(j.t.Context(), "default", id, store.Decision{Person: p, Reason: why, Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}})
		must(j.t, err)
	}
}

func TestBrowserSetUp(t *testing.T) {
	t.Parallel()
	j := startJourney(t, journeyConfig(browserRails, "LOOKUP", "pending_for: 1s"))
	c := j.openChrome(true)
	for _, path := range []string{"/", "/approvals", "/operations/inv-1", "/login", "/nowhere"} {
		c.open(path)
		if c.path() != "/setup" {
			t.Errorf("%s leads to %s", path, c.path())
		}
	}
	c.fits("/setup")
	code, err := j.Store.NewSetupCode(t.Context())
	must(t, err)
	c.open("/setup")
	c.do(typeIn("#code", strings.ToLower(code)), typeIn("#name", "Ana"), typeIn("#email", ana), typeIn("#password", goodPassword))
	c.press(`form[data-act="setup"] button`)
	c.shows("main", "Hello, Ana.", "Your first token", "It is shown this once.", "curl -sS "+j.base+"/v1/operations")
	j.token = regexp.MustCompile(`eyJ[A-Za-z0-9_.-]+`).FindString(c.text(".once"))
	if h := j.call(http.MethodGet, "/v1/operations", ""); h.Code != http.StatusOK {
		t.Errorf("the token is answered %d", h.Code)
	}
	c.open("/")
	if strings.Contains(c.text("html"), j.token) {
		t.Error("the token is shown twice")
	}
}

func TestBrowserPagesFitAndAreReachedByKeyboard(t *testing.T) {
	t.Parallel()
	j := startBrowserJourney(t)
	must(t, j.at("slow").book.arm(t.Context(), "inv-493", "drop_before"))
	j.ask("pay", "inv-489-paid", "inv-489", 4800)
	j.ask("pay_slow", "inv-493", "inv-493", 4800)
	j.ask("pay", "inv-490", "inv-490", 123456)
	j.untilStatus("inv-489-paid", ledger.Confirmed)
	j.ask("pay", "inv-489-again-with-a-name-that-is-long", "inv-489", 4800)
	j.untilStatus("inv-493", ledger.UnknownHold)

	c := j.openChrome(true)
	c.fits("/login")
	c.signIn(ana)
	for _, path := range []string{"/", "/approvals", "/unknown", "/operations", "/refunds", "/rails", "/settings",
		"/operations/inv-490", "/operations/inv-490?view=request", "/operations/inv-490?view=bytes",
		"/operations/inv-489-paid", "/operations/inv-489-again-with-a-name-that-is-long", "/operations/inv-493"} {
		c.fits(path)
	}
	j.approvesByKeyboard(c, "inv-490")
}

// focused is where the keyboard is: the decision, and whether that can be seen.
type focused struct {
	Act, Tag string
	Seen     bool
}

const focusedScript = `(() => {
	const e = document.activeElement, s = getComputedStyle(e), form = e.closest("details, form")?.querySelector("form[data-act]") ?? e.closest("form[data-act]");
	return { Act: form?.dataset.act ?? "", Tag: e.tagName, Seen: e.matches(":focus-visible") && s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 };
})()`

// tabTo presses Tab until the keyboard is at a part of a decision.
func (c *chrome) tabTo(act, tag string) {
	c.t.Helper()
	for range 80 {
		c.do(chromedp.KeyEvent(kb.Tab))
		f := evaluate[focused](c, focusedScript)
		if f.Act == act && f.Tag == tag {
			if !f.Seen {
				c.t.Errorf("the focus on %s of %s can't be seen", tag, act)
			}
			return
		}
	}
	c.t.Fatalf("Tab never reaches %s of %s", tag, act)
}

func (j journey) approvesByKeyboard(c *chrome, id string) {
	j.t.Helper()
	c.open("/operations/" + id)
	for _, act := range []string{"approve", "reject", "ask-changes"} {
		c.tabTo(act, "SUMMARY")
	}
	c.open("/operations/" + id)
	c.tabTo("approve", "SUMMARY")
	c.do(chromedp.KeyEvent(kb.Enter))
	c.tabTo("approve", "TEXTAREA")
	c.do(chromedp.KeyEvent("Without a mouse"))
	c.tabTo("approve", "BUTTON")
	c.load(chromedp.KeyEvent(kb.Enter))
	c.shows("main", "You approved €1,234.56.")
	c.until(id, "Confirmed")
	j.happened(id, 1, 1)
}

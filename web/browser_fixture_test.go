package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"holdfast/dispatch"
)

// browserRails are a card, and two banks that pay twice what is sent twice: one
// is quiet soon after a send, the other takes its time.
const browserRails = `
rails:
  sandbox: { adapter: sandbox, account: test-card }
  brisk: { adapter: sandbox, account: test-brisk, timeout: 1s, quiet: 1s, dedupe: { by: none }, LOOKUP,
    statement: { format: csv, amounts: minor, columns: { id: id, amount: amount, currency: currency, date: created_at, reference: reference, stamp: operation, counterparty: recipient } } }
  slow: { adapter: sandbox, account: test-slow, timeout: 1s, quiet: 12s, dedupe: { by: none }, LOOKUP }
action_types:
  pay: { rail: sandbox, effect: charge, schema: SCHEMA, overlap: { mode: hold, window: 24h } }
  pay_brisk: { rail: brisk, effect: charge, schema: SCHEMA }
  pay_slow: { rail: slow, effect: charge, schema: SCHEMA }
timing: { unknown_for: 1s }
`

// ana and jon may decide; neither owns the agent's token.
const (
	ana = "ana@example.com"
	jon = "jon@example.com"
)

// startBrowserJourney is a journey with people who have passwords.
func startBrowserJourney(t *testing.T) journey {
	t.Helper()
	j := startJourney(t, journeyConfig(browserRails, "LOOKUP", `lookup: { path: "/payments?operation={order_id}", items: /data }`))
	for _, email := range []string{ana, jon} {
		name, _, _ := strings.Cut(email, "@")
		must(t, j.CreateUser(t.Context(), UserOptions{Tenant: dispatch.DefaultTenant, Email: email, Name: strings.ToUpper(name[:1]) + name[1:],
			Roles: []string{"approver", "finance"}, Password: goodPassword}, io.Discard))
	}
	return j
}

// ask submits a payment, and returns what the agent was told.
func (j journey) ask(action, id, reference string, amount int) map[string]any {
	j.t.Helper()
	return j.call(http.MethodPost, "/v1/operations", payment(action, id, reference, amount)).said
}

// at is the same journey, seen at the provider of another rail.
func (j journey) at(rail string) journey {
	j.book = sandboxBook{j.SandboxAddress(dispatch.DefaultTenant, rail)}
	return j
}

// chrome is a person's browser. At the end it fails the test for whatever it
// complained about, and for every request that left the host.
type chrome struct {
	t    *testing.T
	ctx  context.Context // of the browser's one tab
	base string

	mu         sync.Mutex
	complaints []string
}

// patience is for one step in a browser that shares a small machine.
const patience = 30 * time.Second

type step = chromedp.Action[chromedp.Void]

// openChrome starts a browser of its own, with or without script.
func (j journey) openChrome(script bool) *chrome {
	j.t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		j.t.Fatal("install chromium (make test does): ", err)
	}
	// A short path: the browser makes a socket in it. What it leaves lying about
	// goes with it.
	folder, err := os.MkdirTemp("", "chrome-")
	must(j.t, err)
	j.t.Cleanup(func() { os.RemoveAll(folder) })
	flags := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(folder), chromedp.Env("TMPDIR="+folder), chromedp.WindowSize(1280, 900))
	for _, off := range []string{"disable-quic", "disable-component-update"} {
		flags = append(flags, chromedp.Flag(off, true))
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	j.t.Cleanup(stop)
	c := &chrome{t: j.t, base: j.base}
	tab, _ := chromedp.NewContext(allocator, chromedp.WithListener(c.hear))
	c.ctx = tab
	// The first run starts the browser, and must have no time limit.
	if err := chromedp.Do(tab); err != nil {
		j.t.Fatal("chromium does not start: ", err)
	}
	j.t.Cleanup(c.close)
	c.do(called(network.Enable, network.EnableParams{}), called(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !script}))
	return c
}

// called is a step that gives the browser one command.
func called[P, R any](command cdp.Command[P, R], params P) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

func (c *chrome) close() {
	end, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	if err := chromedp.Cancel(end); err != nil {
		c.t.Error("the browser did not end cleanly: ", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, complaint := range c.complaints {
		c.t.Error("the browser complains: ", complaint)
	}
}

// hear keeps what the browser complains about. What violates the content
// security policy is among it.
func (c *chrome) hear(event any) {
	var complaint string
	switch e := event.(type) {
	case *log.EventEntryAdded:
		// The console repeats that a form was answered 4xx; the tests look at
		// statuses themselves.
		refused := e.Entry.Source == "network" && strings.HasPrefix(e.Entry.URL, c.base+"/operations/")
		if !refused && (e.Entry.Level == "error" || e.Entry.Level == "warning") {
			complaint = fmt.Sprint(e.Entry.Source, ": ", e.Entry.Text, " ", e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		complaint = "exception: " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		complaint = "console: " + string(e.Type)
	case *network.EventRequestWillBeSent:
		// The browser draws its own date fields with pictures of its own; a page's
		// would be refused by the policy.
		if !strings.HasPrefix(e.Request.URL, c.base+"/") && !strings.HasPrefix(e.Request.URL, "data:image/svg+xml") {
			complaint = "a request to " + e.Request.URL
		}
	}
	if complaint != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.complaints = append(c.complaints, complaint)
	}
}

func (c *chrome) do(steps ...step) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		c.t.Fatalf("%v\n%s", err, c.text("main"))
	}
}

// load takes steps that lead to another page, and returns the status that it
// was answered with.
func (c *chrome) load(steps ...step) int64 {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	answer, err := chromedp.RunResponse(ctx, steps...)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, c.text("main"))
	}
	return answer.Status
}

// open goes to a page that has to be there.
func (c *chrome) open(path string) {
	c.t.Helper()
	if status := c.load(chromedp.Navigate(c.base + path)); status != http.StatusOK {
		c.t.Fatalf("%s: answered %d", path, status)
	}
}

// press clicks what leads to another page.
func (c *chrome) press(selector string) int64 {
	c.t.Helper()
	return c.load(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

func typeIn(selector, text string) step {
	return chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible)
}

// evaluate asks the page something.
func evaluate[T any](c *chrome, script string) T {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		c.t.Fatalf("%s: %v", script, err)
	}
	return v
}

// text is what can be read there, as one line.
func (c *chrome) text(selector string) string {
	c.t.Helper()
	return strings.Join(strings.Fields(evaluate[string](c, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))), " ")
}

func (c *chrome) shows(selector string, texts ...string) {
	c.t.Helper()
	all := c.text(selector)
	for _, want := range texts {
		if !strings.Contains(all, want) {
			c.t.Errorf("%s at %s does not say %q:\n%s", selector, c.path(), want, all)
		}
	}
}

func (c *chrome) path() string {
	c.t.Helper()
	return evaluate[string](c, "location.pathname")
}

// signIn is how a person comes in, with the keyboard.
func (c *chrome) signIn(email string) {
	c.t.Helper()
	c.open("/login")
	c.do(typeIn("#email", email), typeIn("#password", goodPassword))
	if status := c.press(`form[data-act="login"] button`); status != http.StatusOK || c.path() != "/" {
		c.t.Fatalf("signing in led to %s with %d: %s", c.path(), status, c.text("main"))
	}
}

// decide opens the panel of a decision and fills it in, but does not confirm.
func (c *chrome) decide(act string, fields ...string) {
	c.t.Helper()
	form := fmt.Sprintf("form[data-act=%q]", act)
	c.do(chromedp.Click(chromedp.CSS("details:has("+form+") > summary"), chromedp.NodeVisible))
	for i := 0; i < len(fields); i += 2 {
		c.do(typeIn(fmt.Sprintf("%s [name=%q]", form, fields[i]), fields[i+1]))
	}
}

// confirm presses the second button of a decision.
func (c *chrome) confirm(act string) int64 {
	c.t.Helper()
	return c.press(fmt.Sprintf("form[data-act=%q] button[type=submit]", act))
}

// until opens an operation's page again and again, as a person does who waits.
func (c *chrome) until(id, status string) {
	c.t.Helper()
	soon(c.t, id+" is shown as "+status, func() bool {
		c.open("/operations/" + id)
		return strings.HasPrefix(c.text(".op-status"), status)
	})
}

// fits checks that a page on a phone never scrolls sideways, in light and dark.
func (c *chrome) fits(path string) {
	c.t.Helper()
	const phone = 390
	c.do(chromedp.EmulateViewport(phone, 844))
	c.open(path)
	paper := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		c.do(called(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
		if wide := evaluate[int](c, "document.documentElement.scrollWidth"); wide > phone {
			c.t.Errorf("%s in %s is %d wide on a phone: %s", path, scheme, wide, evaluate[string](c, widest))
		}
		paper[evaluate[string](c, "getComputedStyle(document.body).backgroundColor")] = true
	}
	if len(paper) != 2 {
		c.t.Errorf("%s looks the same in light and dark", path)
	}
	c.do(chromedp.EmulateReset())
}

// widest names what sticks out, for the message.
const widest = `[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > 390)
	.map(e => e.tagName + "." + e.className).slice(0, 8).join(" ")`

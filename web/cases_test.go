package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"holdfast/store"
	"holdfast/store/ledger"
)

// reopened is the same ledger after the process was started anew.
func (w *world) reopened() *world {
	w.t.Helper()
	must(w.t, w.Store.Close())
	now := func() time.Time { return w.now() }
	st, err := store.Open(w.t.Context(), store.Options{Folder: w.folder, Now: now, Log: w.Log})
	must(w.t, err)
	w.t.Cleanup(func() { st.Close() })
	must(w.t, st.SetRulebooks(w.t.Context(), w.Config().Rulebooks()))
	next := &world{Server: &Server{Store: st, Config: w.Config, Log: w.Log, Scheduler: w.Scheduler}, t: w.t, folder: w.folder}
	next.clock.Store(w.clock.Load())
	next.handler = next.Handler()
	return next
}

// A tool wrapper raises after the gateway took the operation; three outer and two
// inner retries spend one budget, over a restart in the middle.
func TestCase080EveryLayersRetriesSpendOneBudget(t *testing.T) {
	w := newServer(t, strings.Replace(runsConfig, "max_attempts: 3", "max_attempts: 6", 1))
	a := w.agent("default")
	a.submit(inRun("op-A", "run-9")).is(t, 202, "", "wait", false)
	for outer := range 3 {
		if outer == 1 {
			w = w.reopened()
			a = agent{w, "default", a.token}
		}
		a.report("run-9", "workflow", 1)
		a.submit(inRun("op-A", "run-9")).is(t, 409, "in_progress", "wait", false)
	}
	a.run("run-9").has(t, 6, 0)
	a.submit(inRun("op-A", "run-9")).spent(t, "used up its 6 retries")
	o := a.answer(w.stored("default", "op-A"), receiptFor(w.stored("default", "op-A")))
	if o.Attempts != 1 || a.count("default") != 1 {
		t.Errorf("%d operations, sent %d times", a.count("default"), o.Attempts)
	}
	a.submit(inRun("op-A", "run-9")).is(t, 200, "", "use_result", true)
}

// Nine calls in one turn with the same arguments in another order.
func TestCase082CallsOfOneTurnAreOnePurchase(t *testing.T) {
	members := []string{`"amount":4800`, `"currency":"EUR"`, `"recipient":"acct_7"`, `"reference":"order-7"`}
	call := func(i int, id string) string {
		mixed := []string{members[i%4], members[(i+1)%4], members[(i+2)%4], members[(i+3)%4]}
		return fmt.Sprintf(`{"operation_id":%q,"action_type":"pay","payload":{%s}}`, id, strings.Join(mixed, ","))
	}
	byCall, byStep := newServer(t, apiConfig).agent("default"), newServer(t, apiConfig).agent("default")
	for i := range 9 {
		h, again := byCall.submit(call(i, fmt.Sprint("call_", i))), byStep.submit(call(i, "run-9-charge"))
		if i == 0 {
			h.is(t, 202, "", "wait", false)
			again.is(t, 202, "", "wait", false)
			continue
		}
		h.is(t, 202, "same_reference", "await_human", false)
		again.is(t, 409, "in_progress", "wait", false)
	}
	byCall.wantDue("call_0")
	byStep.wantDue("run-9-charge")
}

// An agent proposes again from a restored state what was approved meanwhile.
func TestCase083RestoredStateMakesNoSecondCard(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	big := changed("4800", "200000", "ID", "op-A")
	a.submit(big).is(t, 202, "", "await_approval", false)
	h := a.submit(big)
	if operation, _ := h.said["operation"].(map[string]any); operation["next"] != "await_approval" {
		t.Error("while it waits: ", h.Body)
	}
	o := w.stored("default", "op-A")
	_, err := w.Store.Approve(t.Context(), "default", "op-A", store.Decision{Person: w.person("default", "ana@example.com", "approver"),
		Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}})
	must(t, err)
	a.submit(big).is(t, 409, "in_progress", "wait", false)
	a.submit(changed("4800", "200000", "acct-ID", "acct-op-A", "ref-ID", "ref-op-A", "ID", "op-B")).is(t, 202, "same_reference", "await_human", false)
	a.confirm("op-A")
	a.submit(big).is(t, 200, "", "use_result", true)
	if cards := a.get("/v1/operations?status=awaiting_approval"); len(cards.said["items"].([]any)) != 0 {
		t.Error("there is a second card: ", cards.Body)
	}
}

// A run of three steps is killed after the second and begins again at the first.
func TestCase085RestartedRunReplaysWhatIsDone(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	step := func(n int) (id string, h heard) {
		id = a.intend(by("run_id", "run-9", "step", fmt.Sprint("step-", n))).text("operation_id")
		return id, a.submit(withLineage(id, "run-9", fmt.Sprint("step-", n), "ref-"+id, fmt.Sprint("ref-", n)))
	}
	var ids []string
	for n := range 2 {
		id, h := step(n)
		h.is(t, 202, "", "wait", false)
		a.confirm(id)
		ids = append(ids, id)
	}
	w = w.reopened()
	a = agent{w, "default", a.token}
	for n, want := range ids {
		id, h := step(n)
		h.is(t, 200, "", "use_result", true)
		if result, _ := h.said["result"].(map[string]any); id != want || result["id"] != "ch_"+want {
			t.Errorf("step %d is %s: %s", n, id, h.Body)
		}
	}
	id, h := step(2)
	h.is(t, 202, "", "wait", false)
	a.wantDue(id)
}

// decimalConfig takes amounts as decimal strings.
var decimalConfig = strings.NewReplacer("amount: { type: integer, minimum: 1, x-role: amount }", "amount: { type: string, x-role: amount, x-normalize: decimal }").Replace(apiConfig)

// paying is a decimal payment.
func paying(id, amount, currency string) string {
	return fmt.Sprintf(`{"operation_id":%q,"action_type":"pay","payload":{"amount":%s,"currency":%q,"recipient":"acct-%s","reference":"ref-%s"}}`, id, amount, currency, id, id)
}

func TestCase103CurrenciesHaveTheirOwnDigits(t *testing.T) {
	w := newServer(t, decimalConfig)
	a := w.agent("default")
	for i, c := range []struct {
		amount, currency string
		minor            int64
	}{
		{`"2000"`, "JPY", 2000}, {`"2000"`, "KRW", 2000}, {`"2000"`, "VND", 2000}, {`"2000"`, "CLP", 2000}, {`"2000"`, "ISK", 2000}, {`"2000"`, "XAF", 2000},
		{`"92"`, "KWD", 92000}, {`"92.5"`, "BHD", 92500}, {`"5"`, "USD", 500},
	} {
		id := fmt.Sprint("op-", i)
		a.submit(paying(id, c.amount, c.currency)).is(t, 202, "", "wait", false)
		if got := w.stored("default", id).Terms.Amount; got != c.minor {
			t.Errorf("%s %s is %d minor units", c.amount, c.currency, got)
		}
	}
}

// What the provider says it took is compared as it says it, never after a round
// trip through a conversion of our own.
func TestCase104ReceiptInOtherUnitsIsAMismatch(t *testing.T) {
	w := newServer(t, apiConfig)
	a := w.agent("default")
	a.submit(changed("4800", "10000", "EUR", "JPY", "ID", "op-A")).is(t, 202, "", "wait", false)
	less := int64(100)
	o := a.answer(w.stored("default", "op-A"), ledger.Answer{Finding: ledger.Found, HTTPStatus: 201, Receipt: &ledger.Receipt{ID: "ch_1", Amount: &less, Currency: "JPY"}})
	if o.Status != ledger.UnknownHold || o.Reason != ledger.ReceiptMismatch {
		t.Errorf("it is %s %s", o.Status, o.Reason)
	}
}

func TestCase106ZerosThatSayNothingAreOnePayment(t *testing.T) {
	a := newServer(t, decimalConfig).agent("default")
	first := a.submit(paying("op-A", `"705.00"`, "JPY"))
	first.is(t, 202, "", "wait", false)
	a.submit(paying("op-A", `"705"`, "JPY")).is(t, 409, "in_progress", "wait", false)
	if a.stored("default", "op-A").Terms.Amount != 705 {
		t.Error("it is not 705")
	}
	h := a.submit(paying("op-B", `"705.50"`, "JPY"))
	h.is(t, 422, "invalid_payload", "fix_request", false)
	if !strings.Contains(h.Body.String(), `"/amount"`) {
		t.Error("the place is not named: ", h.Body)
	}
	a.absent("op-B")
}

func TestCase107EveryPriceIsExact(t *testing.T) {
	w := newServer(t, decimalConfig)
	a := w.agent("default")
	pay := w.Store.Rulebook("default").Actions["pay"]
	for minor := int64(1); minor <= 10_000; minor++ {
		text := fmt.Sprintf("%d.%02d", minor/100, minor%100)
		n, wrong := pay.Normalize(map[string]any{"amount": text, "currency": "USD", "recipient": "acct_7"})
		if len(wrong) > 0 || n.Terms.Amount != minor {
			t.Fatalf("%s is %d minor units %v", text, n.Terms.Amount, wrong)
		}
	}
	whole := newServer(t, apiConfig).agent("default")
	for text, minor := range map[string]int64{"19.99": 1999, "8.20": 820, "17.08": 1708, "1.15": 115, "0.29": 29} {
		a.submit(paying("op-"+text, `"`+text+`"`, "USD")).is(t, 202, "", "wait", false)
		if got := w.stored("default", "op-"+text).Terms.Amount; got != minor {
			t.Errorf("%s is %d", text, got)
		}
		// A JSON fraction is no amount, whatever the type of amounts.
		a.submit(paying("op-number-"+text, text, "USD")).is(t, 422, "invalid_payload", "fix_request", false)
		whole.submit(changed("4800", text, "ID", "op-1")).is(t, 422, "invalid_payload", "fix_request", false)
	}
}

func TestCase109AmountsThatAreNoneAreRefusedByName(t *testing.T) {
	config := strings.Replace(apiConfig, "amount: { type: integer, minimum: 1,", "amount: { type: integer, minimum: 1, maximum: 10000000,", 3)
	a := newServer(t, config).agent("default")
	for _, amount := range []string{"-100", "0", "1" + strings.Repeat("0", 30), "true", `"NaN"`, "[]", "{}", `"4800"`, "48.5", "10000001"} {
		h := a.submit(changed("4800", amount, "ID", "op-A"))
		h.is(t, 422, "invalid_payload", "fix_request", false)
		if first, _ := h.said["errors"].([]any)[0].(map[string]any); first["pointer"] != "/amount" {
			t.Errorf("%s: the place is not named: %s", amount, h.Body)
		}
	}
	// No double holds this one exactly: it is no number that two readers agree on.
	h := a.submit(changed("4800", "9223372036854775808", "ID", "op-A"))
	if h.is(t, 400, "malformed_json", "fix_request", false); h.text("pointer") != "/payload/amount" {
		t.Error("the place is not named: ", h.Body)
	}
	if a.count("default") != 0 {
		t.Error("something is stored as proposed")
	}
}

func TestCase130TokensOfTheWrongKindAreRefused(t *testing.T) {
	m := newMint(t)
	now := m.Store.Now() / 1000
	for name, claims := range map[string]jwt.MapClaims{
		"exp past": {"exp": now - 61}, "exp missing": {"exp": nil}, "exp in milliseconds": {"exp": (now + 60) * 1000}, "nbf in the future": {"nbf": now + 61},
		"another service's": {"aud": "billing"}, "another issuer's": {"iss": "https://elsewhere.example"}, "of nobody": {"jti": nil},
	} {
		if h := (agent{m.world, "default", m.signed(nil, claims)}).submit(named("op-A")); h.Code != 401 || h.text("reason") != "unauthorized" {
			t.Errorf("%s: %d %s", name, h.Code, h.Body)
		}
	}
	b := m.signIn(m.person("default", "ana@example.com", "admin"))
	_, session, _ := strings.Cut(b.cookie, "=")
	(agent{m.world, "default", session}).submit(named("op-A")).is(t, 401, "unauthorized", "fix_request", false)
	if page := m.do(http.MethodGet, "/operations", "", "Cookie: "+sessionName+"="+m.signed(nil, nil)); page.Code == 200 {
		t.Error("an agent's token opens a page")
	}
	if m.count("default") != 0 {
		t.Error("something was recorded")
	}
}

func TestCase131RevokedTokenEndsAtOnce(t *testing.T) {
	w := newServer(t, apiConfig)
	token, r := w.token("default", "agent-1", "owner@example.com")
	a := agent{w, "default", token}
	a.submit(named("op-A")).is(t, 202, "", "wait", false)
	must(t, w.Store.RevokeToken(t.Context(), r.ID, ledger.Holder{Kind: ledger.Person, Name: "test"}))
	for _, h := range []heard{a.submit(named("op-A")), a.get("/v1/operations/op-A"), a.intend(by("reference", "r")), a.run("run-9"), a.report("run-9", "http", 1)} {
		h.is(t, 401, "unauthorized", "fix_request", false)
	}
}

// crossSite are the headers of a form that another site, or another port of the
// same host, submits with the person's cookie.
var crossSite = map[string][]string{
	"another site":             {"Sec-Fetch-Site: cross-site", "Origin: https://evil.example"},
	"another port":             {"Sec-Fetch-Site: same-site", "Origin: http://localhost:3000"},
	"another port, old client": {"Origin: http://localhost:3000"},
	"no origin to speak of":    {"Origin: null"},
}

func TestCase133And134FormsOfOtherOriginsDecideNothing(t *testing.T) {
	w := newServer(t, pagesConfig)
	o := w.askedFor("owner@example.com")
	b := w.signIn(w.person("default", "ana@example.com", "admin", "approver"))
	form := fmt.Sprintf("fingerprint=%s&version=%d&reason=x", o.Fingerprint, o.Version)
	for name, headers := range crossSite {
		for _, path := range []string{"/operations/" + o.OperationID + "/approve", "/operations/" + o.OperationID + "/reject", "/logout", "/login"} {
			for _, media := range []string{"text/plain", "application/x-www-form-urlencoded"} {
				if got := w.do(http.MethodPost, path, form, append(headers, "Cookie: "+b.cookie, "Content-Type: "+media)...).Code; got != 403 {
					t.Errorf("%s posts %s as %s and is answered %d", name, path, media, got)
				}
			}
		}
	}
	if after := w.stored("default", o.OperationID); after.Version != o.Version {
		t.Error("it was decided")
	}
	if page := b.get("/operations/" + o.OperationID); page.Code != 200 {
		t.Error("the session was ended: ", page.Code)
	}
	// What takes tokens takes no cookies.
	h := hear(t, w.do(http.MethodPost, "/v1/operations", named("op-1"), "Content-Type: application/json", "Cookie: "+b.cookie))
	h.is(t, 401, "unauthorized", "fix_request", false)
}

func TestCase136FiltersStayInsideTheTenant(t *testing.T) {
	w := newServer(t, pagesConfig)
	theirs := w.ask(wanted{tenant: "other", reference: "their-reference"})
	mine := w.ask(wanted{reference: "my-reference"})
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	for _, query := range []string{"", "?tenant=other", "?tenant=default,other", "?tenant=", "?tenant=default&tenant=other", "?tenant_id=other", "?reference=their-reference", "?q=" + theirs.OperationID} {
		hides(t, b.get("/operations"+query), "/operations/"+theirs.OperationID) // what was asked for may stand in the search field
	}
	shows(t, b.get("/operations"), 200, mine.OperationID)
	a := w.agent("default")
	for _, filter := range []string{"reference=their-reference", "run_id=their-run"} {
		if h := a.get("/v1/operations?" + filter); h.Code != 200 || len(h.said["items"].([]any)) != 0 {
			t.Errorf("%s: %s", filter, h.Body)
		}
	}
	h := a.submit(strings.Replace(named("op-1"), `"payload"`, `"tenant":"other","payload"`, 1))
	h.is(t, 400, "malformed_json", "fix_request", false)
}

// The tenant stands in no claim: it is the one of the token's own record.
func TestCase137TenantComesFromTheRecordAlone(t *testing.T) {
	m := newMint(t)
	for _, claim := range []any{nil, "", []string{"t1", "default"}, "t1", "no-such-tenant"} {
		a := agent{m.world, "default", m.signed(nil, jwt.MapClaims{"tenant": claim, "tenant_id": claim})}
		id := fmt.Sprintf("op-%v", m.count("default"))
		a.submit(named(id)).is(t, 202, "", "wait", false)
		if o := m.stored("default", id); o.TenantID != "default" {
			t.Error("it belongs to ", o.TenantID)
		}
	}
	if m.count("t1") != 0 || m.count("") != 0 {
		t.Error("something belongs to another tenant, or to none")
	}
	if _, err := m.Store.Operation(t.Context(), "", "op-0"); err == nil {
		t.Error("a query without a tenant finds something")
	}
}

func TestCase139HostileTextsComeBackAsJSON(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	const hostile = `<img src=x onerror=alert(1)></script><a href="javascript:alert(1)">`
	text, err := json.Marshal(hostile)
	must(t, err)
	a.submit(with("op-A", fmt.Sprintf(`"run_id":%s,"step":%s,"because":%s`, text, text, text), `"ref-op-A"`, string(text))).is(t, 202, "", "wait", false)
	intent := a.intend(fmt.Sprintf(`{"action_type":"pay","reference":%s}`, text))
	if intent.gives(t, 200) != "op-A" || intent.text("reference") != hostile {
		t.Error("the text changed: ", intent.Body)
	}
	for _, h := range []heard{intent, a.get("/v1/operations/op-A"), a.run(strings.NewReplacer("<", "%3C", ">", "%3E", " ", "%20", `"`, "%22", "/", "%2F").Replace(hostile))} {
		if h.Code != 200 || h.Header().Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Header().Get("Content-Security-Policy"), "default-src") {
			t.Errorf("%d %v", h.Code, h.Header())
		}
	}
}

// A cap holds for each operation, whatever a paid resource asks for.
func TestCase163CapIsForEachOperation(t *testing.T) {
	w := newServer(t, apiConfig)
	most := int64(100)
	token, _, err := IssueToken(t.Context(), w.Store, ledger.TokenRecord{TenantID: "default", Agent: "agent-1", Scopes: Scopes, MaxAmount: &most, Currency: "USD",
		ExpiresAt: w.Store.Now() + 3_600_000}, ledger.Holder{Kind: ledger.Person, Name: "test"})
	must(t, err)
	a := agent{w, "default", token}
	a.submit(changed("4800", "1", "EUR", "USD", "ID", "op-A")).is(t, 202, "", "wait", false)
	a.submit(changed("4800", "101", "EUR", "USD", "ID", "op-B")).is(t, 403, "forbidden", "stop", true)
	// The resource asks once more although it was paid: the same operation.
	a.confirm("op-A")
	h := a.submit(changed("4800", "1", "EUR", "USD", "ID", "op-A"))
	h.is(t, 200, "", "use_result", true)
	a.submit(changed("4800", "1", "EUR", "USD", "ref-ID", "ref-op-A", "ID", "op-C")).is(t, 202, "same_reference", "await_human", false)
}

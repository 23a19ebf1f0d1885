package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// onRail sends the form of a rail as it stands on the page now.
func (b browser) onRail(act, rail, reason string) heard {
	b.t.Helper()
	pause, err := b.Store.Pause(b.t.Context(), b.who.TenantID, rail)
	must(b.t, err)
	return heard{ResponseRecorder: b.post("/rails/"+act, railForm(rail, reason, pause.At))}
}

func railForm(rail, reason string, seen int64) url.Values {
	return url.Values{"rail": {rail}, "reason": {reason}, "version": {strconv.FormatInt(seen, 10)}}
}

// railLog are the entries about a rail, newest first.
func (w *world) railLog(rail string) (all []ledger.Entry) {
	w.t.Helper()
	log, _, err := w.Store.Audit(w.t.Context(), "default", store.AuditFilter{Limit: 1000})
	must(w.t, err)
	for _, e := range log {
		if e.Object == "rail" && e.ObjectID == rail {
			all = append(all, e)
		}
	}
	return all
}

func (w *world) paused(rail string) ledger.Pause {
	w.t.Helper()
	p, err := w.Store.Pause(w.t.Context(), "default", rail)
	must(w.t, err)
	return p
}

// TestRailsArePausedByWhoMayAndByNobodyElse is the row of the table of acts that
// is about a rail, and so carries the moment of its pause for a version.
func TestRailsArePausedByWhoMayAndByNobodyElse(t *testing.T) {
	w := newServer(t, pagesConfig)
	viewer := w.signIn(w.person("default", "viewer@example.com", "viewer"))
	stranger := w.signIn(w.person("other", "stranger@example.com", "admin", "approver", "finance"))
	owner := w.signIn(w.person("default", "owner@example.com", "admin"))
	for _, role := range []string{"approver", "finance", "admin"} {
		b := w.signIn(w.person("default", role+"@example.com", role))
		for _, c := range []struct{ act, event, other, reason string }{
			{"pause-rail", "pause", "resume-rail", "an incident there"}, {"resume-rail", "resume", "pause-rail", "it is over"},
		} {
			w.pass(time.Second)
			shows(t, b.get("/rails"), http.StatusOK, `data-act="`+c.act+`"`)
			seen, entries := w.paused("card").At, len(w.railLog("card"))
			answer := b.onRail(c.act, "card", c.reason)
			if answer.Code != http.StatusSeeOther {
				t.Fatalf("%s may %s, and was answered %d\n%s", role, c.act, answer.Code, mainText(answer.ResponseRecorder))
			}
			if is := w.paused("card"); (is.At > 0) != (c.event == "pause") || is.At > 0 && (is.Person != b.who.Email || is.Reason != c.reason) {
				t.Errorf("after %s it is %+v", c.act, is)
			}
			if again := b.post("/rails/"+c.act, railForm("card", c.reason, seen)); again.Code != http.StatusSeeOther {
				t.Errorf("a button that was pressed twice is answered %d", again.Code)
			}
			log := w.railLog("card")
			if len(log) != entries+1 || log[0].Event != c.event || log[0].Actor != b.who.Email || !strings.HasSuffix(log[0].Sentence, c.reason) {
				t.Errorf("the log says %+v", log)
			}
			late := owner.post("/rails/"+c.act, railForm("card", "me too", seen))
			says(t, late, http.StatusConflict, "This changed while you were reading.", role+"@example.com "+c.event, c.reason, "Nothing from you was recorded.")
			if len(w.railLog("card")) != entries+1 {
				t.Error("who came second is in the log")
			}
		}
	}

	for _, act := range []string{"pause-rail", "resume-rail"} {
		hides(t, viewer.get("/rails"), `data-act="`+act+`"`)
		shows(t, viewer.get("/rails"), http.StatusOK, `data-refused="pause-rail"`, "This needs the role")
		seen := w.paused("card")
		good := railForm("card", "an incident", seen.At)
		foreign := good.Encode()
		own := "Cookie: " + owner.cookie
		const isForm = "Content-Type: application/x-www-form-urlencoded"
		path := "/rails/" + act
		unversioned := url.Values{"rail": {"card"}, "reason": {"an incident"}}
		entries := len(w.railLog("card"))
		for name, c := range map[string]struct{ got, want int }{
			"viewer":          {viewer.post(path, good).Code, http.StatusForbidden},
			"no such rail":    {owner.post(path, railForm("cord", "an incident", 0)).Code, http.StatusNotFound},
			"no rail":         {owner.post(path, railForm("", "an incident", 0)).Code, http.StatusNotFound},
			"no reason":       {owner.post(path, railForm("card", " ", seen.At)).Code, http.StatusUnprocessableEntity},
			"too long":        {owner.post(path, railForm("card", strings.Repeat("x", 2001), seen.At)).Code, http.StatusUnprocessableEntity},
			"stale":           {owner.post(path, railForm("card", "an incident", seen.At+1)).Code, http.StatusConflict},
			"nothing seen":    {owner.post(path, unversioned).Code, http.StatusUnprocessableEntity},
			"GET":             {owner.get(path + "?" + foreign).Code, http.StatusMethodNotAllowed},
			"form in query":   {owner.post(path+"?"+foreign, nil).Code, http.StatusNotFound},
			"cross-site":      {w.do(http.MethodPost, path, foreign, own, isForm, "Sec-Fetch-Site: cross-site").Code, http.StatusForbidden},
			"no session":      {w.do(http.MethodPost, path, foreign, isForm).Code, http.StatusUnauthorized},
			"other origin":    {w.do(http.MethodPost, path, foreign, own, isForm, "Origin: https://evil.example").Code, http.StatusForbidden},
			"an unknown act":  {owner.post("/rails/stop-rail", good).Code, http.StatusNotFound},
			"others' too":     {owner.post(path, railForm("card ", "an incident", seen.At)).Code, http.StatusNotFound},
			"not yet decided": {owner.get("/rails").Code, http.StatusOK},
		} {
			if c.got != c.want {
				t.Errorf("%s, %s: answered %d, want %d", act, name, c.got, c.want)
			}
		}
		if w.paused("card") != seen || len(w.railLog("card")) != entries {
			t.Errorf("what was refused changed it to %+v", w.paused("card"))
		}
		back := owner.post(path, railForm("card", strings.Repeat("x", 2001), seen.At))
		shows(t, back, http.StatusUnprocessableEntity, "A reason is too long", strings.Repeat("x", 2001), "<details class=\"decide\" name=\"decide\" open")
		if act == "pause-rail" {
			owner.onRail(act, "card", "an incident of ours alone") // for the second turn
		}
	}
	// The stranger's own rail has the same name, and nothing of this tenant's.
	hides(t, stranger.get("/rails"), "an incident of ours alone", "owner@example.com")
	shows(t, stranger.get("/rails"), http.StatusOK, "Working")
	if answer := stranger.post("/rails/resume-rail", railForm("card", "mine", w.paused("card").At)); answer.Code != http.StatusConflict || w.paused("card").At == 0 {
		t.Error("somebody of another tenant resumes it: ", answer.Code)
	}
	if answer := stranger.onRail("pause-rail", "card", "mine"); answer.Code != http.StatusSeeOther {
		t.Error(answer.Code)
	}
	hides(t, owner.get("/rails"), "stranger@example.com")
}

func TestRailsPageInEachState(t *testing.T) {
	w := newServer(t, pagesConfig)
	w.Server.Folder = "/srv/hold fast"
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	calm := b.get("/rails")
	says(t, calm, http.StatusOK, "card nothing waits, nothing is unknown Working", "wire nothing waits, nothing is unknown Working",
		"Same-key resend promised for 24 h; safe for 20 h after the first send, and used by itself for 15 m", "Look-up yes", "Empty search is never proof here",
		"Receipt is compared by id, amount", "Key goes into header Idempotency-Key", "Stamp goes into header X-Operation", "Adapter http Address http://127.0.0.1:1 Account test",
		"Action type pay as above", "Same-key resend not promised", "Look-up no. Unknowns here always need a person",
		"Never tested. Whether it keeps what it promises is not known here.",
		"holdfast rail test card --payload payload.json --test-account --data '/srv/hold fast'")
	shows(t, calm, http.StatusOK, `href="/rails"`)
	hides(t, calm, `<details class="block rail" open`, "not-a-real-secret", "●")

	held := w.held("", false)
	w.ask(wanted{})
	w.pass(10 * time.Minute)
	troubled := b.get("/rails")
	says(t, troubled, http.StatusOK, "where operations go, the worst first · Numbers wire 1 unknown, oldest 10 m Working Unknowns here always need a person.",
		"card 1 waiting, oldest 10 m", "Not touched: 1 operation that was sent. It goes to its end, and is looked up.", "5 m to 1 h 1")
	if n := strings.Count(troubled.Body.String(), `<details class="block rail" open`); n != 1 {
		t.Errorf("%d cards are unfolded, want the troubled one", n)
	}
	b.act(w.stored("default", held.OperationID), "happened", "receipt_id", "w_1", "amount", "48.00", "reason", "seen")

	for range 100 {
		w.Config().Tenants["default"].Rails["card"].Breaker().Failed(time.UnixMilli(w.Store.Now()))
	}
	until := w.Config().Tenants["default"].Rails["card"].Breaker().OpenUntil(time.UnixMilli(w.Store.Now())).UTC().Format("15:04:05")
	says(t, b.get("/rails"), http.StatusOK, "Paused by breaker until "+until+" UTC; then one goes first to see")
	shows(t, b.get("/rails"), http.StatusOK, `data-live="rails-n">● 1 resting</span>`)
	says(t, b.get("/"), http.StatusOK, "rail card re-opens at "+until+" UTC")
	b.onRail("pause-rail", "card", "an incident")
	shows(t, b.get("/"), http.StatusOK, `data-live="rails-n">● 1 paused</span>`)
	says(t, b.get("/rails"), http.StatusOK, "card 1 waiting, oldest 10 m Paused by ana@example.com", "an incident", "Sent as soon as it is their turn: 1 operation that waits.")
	home := b.get("/")
	says(t, home, http.StatusOK, "rail card is paused by ana@example.com")
	doesNotSay(t, home, "re-opens")

	passed := ledger.RailFinding{Check: "send", Promised: "confirmed", Seen: "Confirmed as pay_1.", Passed: true}
	broken := ledger.RailFinding{Check: "replay", Promised: "the same receipt", Seen: "A second receipt, pay_2."}
	must(t, w.Store.RecordRailTest(t.Context(), ledger.RailTest{TenantID: "default", Rail: "card", By: "command line", Findings: []ledger.RailFinding{passed, broken}}))
	must(t, w.Store.RecordRailTest(t.Context(), ledger.RailTest{TenantID: "default", Rail: "wire", By: "command line", Findings: []ledger.RailFinding{passed}}))
	w.pass(48 * time.Hour)
	b = w.signIn(b.who)
	says(t, b.get("/rails"), http.StatusOK, "Tested 2 d ago by holdfast rail test: kept all it promises.",
		"Tested 2 d ago by holdfast rail test: did not keep all it promises: repeating it under the same key.",
		"not kept: repeating it under the same key A second receipt, pay_2. promised: the same receipt")
}

func TestRailsSayHowProvidersAnswered(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	amount := int64(100)
	for _, took := range []time.Duration{200, 300, 4000} {
		o := w.ask(wanted{})
		claims, err := w.Store.Claim(t.Context(), "worker-1", "default", "card", 1, 1)
		must(t, err)
		m, err := w.Store.Mark(t.Context(), claims[0], 10*time.Second, w.Config().Route(o).Render)
		must(t, err)
		w.pass(took * time.Millisecond)
		_, err = w.Store.Settle(t.Context(), m, ledger.Answer{Finding: ledger.Found, Receipt: &ledger.Receipt{ID: "pay_" + o.OperationID, Amount: &amount, Stamp: o.OrderID}}, nil, time.Hour)
		must(t, err)
		if o = w.stored("default", o.OperationID); o.Status != ledger.Confirmed {
			t.Fatal(o.Status, o.Detail)
		}
	}
	lost := w.held("", false) // no answer is no answer's time
	w.pass(3 * time.Minute)
	b.act(w.stored("default", lost.OperationID), "happened", "receipt_id", "w_1", "amount", "48.00", "reason", "seen")
	says(t, b.get("/rails"), http.StatusOK, "Answers p50 300 ms · p95 4.0 s", "of 3 answers in the last day", "09:00 UTC 3 answers, p50 300 ms, p95 4.0 s",
		"Cleared half of 1 unknown within 3 m")
	w.pass(25 * time.Hour)
	b = w.signIn(b.who)
	doesNotSay(t, b.get("/rails"), "p50", "Cleared")
}

func TestRailThatIsGoneIsShownWhileAnythingOfItIsOpen(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	w.ask(wanted{action: "wire"})
	b.onRail("pause-rail", "wire", "an incident")
	tenant := w.Config().Tenants["default"]
	delete(tenant.Rails, "wire")
	delete(tenant.Rulebook.Rails, "wire")
	says(t, b.get("/rails"), http.StatusOK, "wire 1 waiting, oldest 0 s Paused by ana@example.com")
	if answer := b.onRail("resume-rail", "wire", "it is gone"); answer.Code != http.StatusSeeOther {
		t.Error("a pause of what is gone can't be ended: ", answer.Code)
	}
	says(t, b.get("/rails"), http.StatusOK, "wire 1 waiting, oldest 0 s Not configured nothing is sent on it")
	if answer := b.onRail("pause-rail", "wire", "once more"); answer.Code != http.StatusNotFound {
		t.Error("what is gone can be paused: ", answer.Code)
	}
}

func TestReadyBehindAPausedRailSaysSoToPeopleAndAgents(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	o := w.ask(wanted{})
	token, _ := w.token("default", "agent-1", "")
	ask := func(headers ...string) heard {
		return hear(t, w.do(http.MethodGet, "/v1/operations/"+o.OperationID, "", append(headers, "Authorization: Bearer "+token)...))
	}
	before := ask()
	b.onRail("pause-rail", "card", "an incident there")
	w.pass(3 * time.Minute)
	says(t, b.get("/operations/"+o.OperationID), http.StatusOK, "Ready allowed, waiting for its turn waiting: rail card paused by ana@example.com an incident there 3 m ago")
	during := ask("If-None-Match: " + before.Header().Get("ETag"))
	during.is(t, 200, "", "wait", false)
	if detail := during.text("detail"); !strings.Contains(detail, "A person has paused its rail card") || !strings.Contains(detail, "Keep waiting.") ||
		!strings.Contains(detail, "Do not create a new operation for this purchase.") || strings.Contains(detail, "ana@") || strings.Contains(detail, "incident") {
		t.Errorf("the agent is told %q", detail)
	}
	if during.said["retry_after"] != 30.0 {
		t.Errorf("the agent is to ask again in %v s", during.said["retry_after"])
	}
	b.onRail("resume-rail", "card", "it is over")
	after := ask("If-None-Match: " + during.Header().Get("ETag"))
	if after.Code != 200 || after.text("detail") != before.text("detail") || after.Header().Get("ETag") != before.Header().Get("ETag") {
		t.Error("after the pause the agent is told ", after.Body)
	}
	doesNotSay(t, b.get("/operations/"+o.OperationID), "waiting: rail")

	lost := w.lost("")
	b.onRail("pause-rail", "card", "an incident there")
	if told := hear(t, w.do(http.MethodGet, "/v1/operations/"+lost.OperationID, "", "Authorization: Bearer "+token)).text("detail"); strings.Contains(told, "paused") {
		t.Errorf("of what was sent the agent is told %q", told)
	}
}

// A pause holds back what is allowed, and nothing of it reaches the provider
// until a person lets it go on.
func TestPausedRailSendsNothingToTheProviderUntilItIsResumed(t *testing.T) {
	t.Parallel()
	j := startJourney(t, journeyConfig(browserRails, "LOOKUP", `lookup: { path: "/payments?operation={order_id}", items: /data }`))
	ana, err := j.Store.AddPerson(t.Context(), ledger.PersonRecord{TenantID: "default", Email: ana, Roles: []string{"approver"}}, "", operator)
	must(t, err)
	must(t, j.Store.PauseRail(t.Context(), "default", "sandbox", store.Decision{Person: ana, Reason: "an incident"}))
	h := j.pay("pay", "inv-900")
	h.is(t, 202, "", "wait", false)
	j.begin("pay_brisk", "inv-901") // another rail's goes out, and shows that the dispatcher is at work
	j.at("brisk").read("inv-901")
	j.happened("inv-900", 0, 0)
	if o := j.stored("inv-900"); o.Status != ledger.Ready || o.Attempts+o.Claims != 0 || !strings.Contains(h.text("detail"), "A person has paused its rail sandbox") {
		t.Errorf("behind the pause it is %s after %d claims: %s", o.Status, o.Claims, h.text("detail"))
	}
	pause, err := j.Store.Pause(t.Context(), "default", "sandbox")
	must(t, err)
	must(t, j.Store.ResumeRail(t.Context(), "default", "sandbox", store.Decision{Person: ana, Reason: "it is over", Seen: store.Seen{Version: pause.At}}))
	j.read("inv-900")
	j.happened("inv-900", 1, 1)
}

package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

// everyPage lists what a person can open, for an operation.
func everyPage(id string) []string {
	return []string{"/", "/approvals", "/unknown", "/operations", "/operations?q=" + id, "/operations?status=unknown_hold", "/refunds", "/rails", "/runs", "/settings",
		"/operations/" + id, "/operations/" + id + "?view=request", "/operations/" + id + "?view=bytes"}
}

func TestEveryPageOfEveryState(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	amount := int64(100)
	for name, o := range map[string]ledger.Operation{
		"asked": w.askedFor(""), "ready": w.ask(wanted{}), "held": w.held("", true), "lost": w.lost(""), "overlapping": w.overlapping(""),
		"confirmed": w.answer(w.ask(wanted{}), ledger.Answer{Finding: ledger.Found, HTTPStatus: 201, Receipt: &ledger.Receipt{ID: "pay_1", Amount: &amount}}),
		"declined":  w.answer(w.ask(wanted{}), ledger.Answer{Finding: ledger.Refused, HTTPStatus: 402}),
	} {
		for _, path := range everyPage(o.OperationID) {
			answer := b.get(path)
			if answer.Code == http.StatusSeeOther && strings.HasPrefix(path, "/operations?q=") {
				continue // one exact hit opens it
			}
			if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "</html>") {
				t.Errorf("%s: %s is answered %d\n%s", name, path, answer.Code, mainText(answer))
			}
			if csp := answer.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "default-src 'self'") {
				t.Errorf("%s: the policy of %s is %q", name, path, csp)
			}
			if answer.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s may be kept by a cache", path)
			}
			hides(t, answer, "failed", "pending", " style=", "onclick=")
		}
	}
}

func TestOtherTenantsOperationIsAsAbsent(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	theirs := w.ask(wanted{tenant: "other", id: "theirs", amount: 200000, recipient: "acct_theirs", reference: "ref-theirs"})
	for _, path := range []string{"/operations/%s", "/operations/%s?view=bytes", "/operations/%s/done?act=approve"} {
		other, absent := b.get(strings.Replace(path, "%s", theirs.OperationID, 1)), b.get(strings.Replace(path, "%s", "absent", 1))
		if other.Code != http.StatusNotFound || strings.ReplaceAll(other.Body.String(), "theirs", "absent") != absent.Body.String() {
			t.Errorf("%s: another tenant's is answered otherwise than an absent one: %d", path, other.Code)
		}
	}
	for _, path := range everyPage("anything")[:10] {
		hides(t, b.get(path), "acct_theirs", "ref-theirs")
	}
	for _, query := range []string{theirs.OperationID, theirs.OrderID, theirs.ProviderKey, theirs.Fingerprint, "ref-theirs"} {
		shows(t, b.get("/operations?q="+url.QueryEscape(query)), http.StatusOK, "No operations match")
	}
}

func TestSensitiveMembersAreMaskedForViewers(t *testing.T) {
	w := newServer(t, pagesConfig)
	viewer, finance := w.signIn(w.person("default", "viewer@example.com", "viewer")), w.signIn(w.person("default", "ana@example.com", "finance"))
	amount := int64(100)
	for _, o := range []ledger.Operation{
		w.askedFor(""), w.held("", true), w.overlapping(""),
		w.answer(w.ask(wanted{}), ledger.Answer{Finding: ledger.Found, Receipt: &ledger.Receipt{ID: "pay_1", Amount: &amount, Raw: []byte(`{"iban":"DE-SECRET-77"}`)}}),
	} {
		seen := 0
		for _, path := range everyPage(o.OperationID) {
			if page := text(viewer.get(path)); strings.Contains(page, "DE-SECRET-77") {
				at := strings.Index(page, "DE-SECRET-77")
				t.Errorf("%s shows a viewer: %s", path, page[max(at-200, 0):at+20])
			}
			if strings.Contains(finance.get(path).Body.String(), "DE-SECRET-77") {
				seen++
			}
		}
		if seen == 0 {
			t.Errorf("whoever decides about %s does not see what about", o.OperationID)
		}
	}
}

func TestExactRequestIsShownBeforeItIsSentAndAfter(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	o := w.ask(wanted{})
	path := "/operations/" + o.OperationID + "?view=request"
	before := b.get(path)
	shows(t, before, http.StatusOK, "POST http://127.0.0.1:1/payments", o.ProviderKey, "Authorization: ••••")
	hides(t, before, "not-a-real-secret")
	o = w.lose(o)
	kept, err := w.Store.Request(t.Context(), "default", o.OperationID)
	must(t, err)
	after := b.get(path)
	shows(t, after, http.StatusOK, kept.SHA256)
	if !strings.Contains(text(before), kept.SHA256) {
		t.Error("what was shown before is not what went out")
	}
	shows(t, b.get("/operations/"+o.OperationID+"?view=bytes"), http.StatusOK, string(o.Canonical), o.Fingerprint)
}

func TestHostileTextsStayTexts(t *testing.T) {
	w := newServer(t, pagesConfig)
	hostile := `"><script>alert(1)</script><img src=x onerror=alert(2)>`
	name, err := w.Store.AddPerson(t.Context(), ledger.PersonRecord{TenantID: "default", Email: "ana@example.com", Name: hostile, Roles: []string{"admin"}}, "", operator)
	must(t, err)
	b := w.signIn(name)
	token, _ := w.token("default", "agent-1", "")
	body, err := json.Marshal(map[string]any{"operation_id": "hostile", "action_type": "wire", "run_id": "run-1", "because": hostile, "distinct_from": []string{"x"},
		"payload": map[string]any{"amount": 100, "currency": "EUR", "recipient": hostile, "reference": hostile + "\u202e\u200b", "note": hostile}})
	must(t, err)
	if answer := w.do(http.MethodPost, "/v1/operations", string(body), "Authorization: Bearer "+token, "Content-Type: application/json"); answer.Code != http.StatusAccepted {
		t.Fatalf("submitting: %d %s", answer.Code, answer.Body)
	}
	o := w.answer(w.stored("default", "hostile"), ledger.Answer{Finding: ledger.Unclear, Sentence: hostile})
	b.act(o, "still-unknown", "reason", hostile)
	form := b.act(w.stored("default", "hostile"), "happened", "receipt_id", hostile, "amount", hostile, "reason", hostile)
	pages := append(everyPage("hostile"), "/operations?reference="+url.QueryEscape(hostile), "/operations?q="+url.QueryEscape(hostile+"x"), "/operations/"+url.PathEscape(hostile), "/"+url.PathEscape(hostile))
	for _, path := range pages {
		raw := b.get(path).Body.String()
		for _, unwanted := range []string{"<script>alert", "<img", "\u202e", "\u200b"} {
			if strings.Contains(raw, unwanted) {
				t.Errorf("%s has %q in its markup", path, unwanted)
			}
		}
	}
	if raw := form.Body.String(); strings.Contains(raw, "<script>alert") || strings.Contains(raw, "<img") {
		t.Error("what was typed comes back as markup")
	}
}

func TestHomeSplitsWhatNeedsMeFromWhatNeedsOthers(t *testing.T) {
	w := newServer(t, pagesConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "approver"))
	w.person("default", "bo@example.com", "finance")
	shows(t, ana.get("/"), http.StatusOK, "Nothing needs you.", "0 need you · 0 need someone else")
	w.askedFor("")
	w.askedFor("ana@example.com")  // her own agent asked
	w.ask(wanted{currency: "GBP"}) // for finance only
	two := w.ask(wanted{currency: "USD"})
	held := w.held("", true)
	home := ana.get("/")
	shows(t, home, http.StatusOK, "3 need you · 2 need someone else", "Rule “big” asks for people.", "No answer from the provider.", "new recipient", "/operations/"+held.OperationID)
	ana.act(two, "approve")
	shows(t, ana.get("/"), http.StatusOK, "2 need you · 3 need someone else")
	shows(t, ana.get("/approvals"), http.StatusOK, "4 wait for a decision")
	shows(t, ana.get("/unknown"), http.StatusOK, "1 needs a person")
}

func TestRecipientPaidBeforeIsNotCalledNew(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "approver"))
	amount := int64(100)
	w.answer(w.ask(wanted{recipient: "acct_known"}), ledger.Answer{Finding: ledger.Found, Receipt: &ledger.Receipt{ID: "pay_1", Amount: &amount}})
	known, fresh := w.ask(wanted{recipient: "acct_known", amount: 200000}), w.askedFor("")
	page := b.get("/operations/" + known.OperationID)
	shows(t, page, http.StatusOK, "An earlier operation to this recipient is confirmed.")
	hides(t, page, "New recipient")
	shows(t, b.get("/operations/"+fresh.OperationID), http.StatusOK, "New recipient", "never paid before", "EUR, over 1,000.00 EUR → 1 of approver, finance or admin")
}

func TestCountsAreOnesOwn(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "viewer"))
	w.held("", true)
	w.askedFor("")
	w.ask(wanted{tenant: "other", amount: 200000})
	var live struct {
		State string
		Text  map[string]string
	}
	answer := b.get("/counts")
	must(t, json.Unmarshal(answer.Body.Bytes(), &live))
	if live.State != "unknown" || live.Text["approvals-n"] != "1" || live.Text["unknown-n"] != "1" || !strings.Contains(live.Text["unknown"], "€48.00") {
		t.Errorf("the counts are %s", answer.Body)
	}
	if out := w.do(http.MethodGet, "/counts", ""); out.Code != http.StatusSeeOther {
		t.Errorf("somebody signed out was answered %d", out.Code)
	}
}

func TestFilterStandsInTheURL(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "viewer"))
	shows(t, b.get("/operations"), http.StatusOK, "No operations yet.", "curl -sS")
	held, ready := w.held("", true), w.ask(wanted{reference: "inv-9"})
	shows(t, b.get("/operations?status=unknown_hold"), http.StatusOK, held.OperationID)
	hides(t, b.get("/operations?status=unknown_hold"), `/operations/`+ready.OperationID)
	shows(t, b.get("/operations?reference=inv-9&action_type=pay"), http.StatusOK, ready.OperationID)
	shows(t, b.get("/operations?status=nonsense"), http.StatusOK, "There is no status of that name.")
	shows(t, b.get("/operations?cursor=!!"), http.StatusOK, "The cursor is not one that a list gave out.")
	if to := b.get("/operations?q=" + held.OrderID).Header().Get("Location"); to != "/operations/"+held.OperationID {
		t.Errorf("an exact hit leads to %q", to)
	}
}

func TestJobsAreRunByWhoRunsTheServer(t *testing.T) {
	w := newServer(t, pagesConfig)
	admin, viewer := w.signIn(w.person("default", "ana@example.com", "admin")), w.signIn(w.person("default", "viewer@example.com", "viewer"))
	stranger := w.signIn(w.person("other", "stranger@example.com", "admin"))
	job := url.Values{"job": {"sweep"}}
	shows(t, viewer.post("/settings/run-job", job), http.StatusForbidden)
	shows(t, stranger.post("/settings/run-job", job), http.StatusForbidden)
	if runs, _ := w.Store.LastRuns(t.Context()); len(runs) != 0 {
		t.Fatalf("it ran: %+v", runs)
	}
	shows(t, admin.post("/settings/run-job", url.Values{"job": {"no such"}}), http.StatusUnprocessableEntity, "There is no job of that name.")
	shows(t, admin.post("/settings/run-job", job), http.StatusOK, "The job sweep ran.")
	if runs, _ := w.Store.LastRuns(t.Context()); len(runs) != 1 || runs[0].Job != "sweep" {
		t.Errorf("the runs are %+v", runs)
	}
	shows(t, admin.get("/settings"), http.StatusOK, w.Config().Hash, `data-act="run-job"`, "viewer@example.com")
	hides(t, admin.get("/settings"), "stranger@example.com")
	hides(t, viewer.get("/settings"), `data-act="run-job"`)
	hides(t, stranger.get("/settings"), "ana@example.com", `data-act="run-job"`)
}

func TestStoreThatCannotCommitIsSaidToBe(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	o := w.askedFor("")
	must(t, w.Store.Close())
	answer := b.act(o, "approve")
	if answer.Code < 500 || strings.Contains(text(answer), "Nothing unknown") {
		t.Errorf("answered %d\n%s", answer.Code, mainText(answer))
	}
}

func TestUnknownPathsArePages(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "viewer"))
	shows(t, b.get("/nowhere"), http.StatusNotFound, "There is no page at this address.", "ana@example.com")
	shows(t, w.do(http.MethodGet, "/nowhere", ""), http.StatusNotFound, "There is no page at this address.")
	shows(t, b.get("/operations/no-such"), http.StatusNotFound, "No operation no-such.")
}

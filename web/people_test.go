package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// form is what a form sends, as pairs; a name may come twice.
func form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

func (w *world) personNow(id string) ledger.PersonRecord {
	w.t.Helper()
	all, err := w.Store.People(w.t.Context(), "")
	must(w.t, err)
	for _, p := range all {
		if p.ID == id {
			return p
		}
	}
	w.t.Fatalf("there is no person %s", id)
	return ledger.PersonRecord{}
}

func (b browser) isOut() bool {
	b.t.Helper()
	return b.get("/approvals").Code == http.StatusSeeOther
}

func goesTo(t *testing.T, answer *httptest.ResponseRecorder, to string) {
	t.Helper()
	if got := answer.Header().Get("Location"); answer.Code != http.StatusSeeOther || got != to {
		t.Fatalf("answered %d to %q, want %q\n%s", answer.Code, got, to, reads(answer))
	}
}

// browserOf takes the session over that an answer began.
func (w *world) browserOf(p ledger.PersonRecord, answer *httptest.ResponseRecorder) browser {
	w.t.Helper()
	for _, c := range answer.Result().Cookies() {
		if c.Name == sessionName && c.MaxAge >= 0 {
			return browser{w, p, sessionName + "=" + c.Value}
		}
	}
	w.t.Fatalf("no session began: %d\n%s", answer.Code, reads(answer))
	return browser{}
}

var linked = regexp.MustCompile(`http://example\.com(/invite/[0-9a-f]{64})`)

func (w *world) linkOn(answer *httptest.ResponseRecorder) string {
	w.t.Helper()
	m := linked.FindStringSubmatch(text(answer))
	if m == nil {
		w.t.Fatalf("answered %d, and there is no link on the page\n%s", answer.Code, reads(answer))
	}
	return m[1]
}

func (w *world) accept(link string, pairs ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	f := form("name", "Bo", "email", "bo@example.com", "password", "nine calm herons wade")
	for i := 0; i < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	return w.do(http.MethodPost, link, f.Encode(), "Content-Type: application/x-www-form-urlencoded")
}

func TestInviteLinkLetsOnePersonInOnce(t *testing.T) {
	w := newServer(t, pagesConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "admin"))
	made := ana.post("/settings/people/invite", form("email", "Bo@Example.com", "role", "finance", "role", "approver"))
	link := w.linkOn(made)
	says(t, made, http.StatusOK, "The link for bo@example.com", "is not shown again")
	list := ana.get("/settings/people")
	hides(t, list, strings.TrimPrefix(link, "/invite/"))
	says(t, list, http.StatusOK, "Links that are still good")

	page := w.do(http.MethodGet, link, "")
	says(t, page, http.StatusOK, "ana@example.com lets you in as finance, approver.")
	shows(t, page, http.StatusOK, `data-act="accept-invite"`, `value="bo@example.com" readonly`)
	if all, _ := w.Store.People(t.Context(), ""); len(all) != 1 {
		t.Fatal("looking at the link let somebody in")
	}
	shows(t, w.accept(link, "password", "short"), http.StatusUnprocessableEntity, "at least 15")
	shows(t, w.accept(link, "name", " "), http.StatusUnprocessableEntity, "A name is needed.")
	in := w.accept(link, "email", "eve@example.com") // the link says whose it is
	goesTo(t, in, "/")
	bo := w.browserOf(ledger.PersonRecord{}, in)
	shows(t, bo.get("/"), http.StatusOK, "bo@example.com", "finance · approver")
	says(t, w.accept(link), http.StatusNotFound, "This link is not good.")
	says(t, w.do(http.MethodGet, link, ""), http.StatusNotFound, "This link is not good.")
	if answer := w.login("bo@example.com", "nine calm herons wade"); answer.Code != http.StatusSeeOther {
		t.Errorf("signing in later is answered %d", answer.Code)
	}
	doesNotSay(t, ana.get("/settings/people"), "Links that are still good")
}

func TestInviteLinkEnds(t *testing.T) {
	for name, end := range map[string]func(w *world, by browser){
		"after seven days": func(w *world, _ browser) { w.pass(7 * 24 * time.Hour) },
		"when it is revoked": func(w *world, by browser) {
			id := regexp.MustCompile(`name="invite" value="(in_[0-9a-f]+)"`).FindStringSubmatch(by.get("/settings/people").Body.String())
			goesTo(w.t.(*testing.T), by.post("/settings/people/revoke-invite", form("invite", id[1])), "/settings/people")
		},
		"when its maker is disabled": func(w *world, by browser) {
			must(w.t, w.Store.DisablePerson(w.t.Context(), by.who.Email, operator))
		},
		"when its maker is no admin any more": func(w *world, by browser) {
			other := w.signIn(w.person("default", "kim@example.com", "admin"))
			goesTo(w.t.(*testing.T), other.post("/settings/people/change-roles", form("person", by.who.ID, "seen", "admin", "role", "viewer")), "/settings/people")
		},
	} {
		w := newServer(t, pagesConfig)
		ana := w.signIn(w.person("default", "ana@example.com", "admin"))
		w.person("default", "zoe@example.com", "admin")
		link := w.linkOn(ana.post("/settings/people/invite", form("role", "viewer")))
		shows(t, w.do(http.MethodGet, link, ""), http.StatusOK, "accept-invite")
		end(w, ana)
		if code := w.do(http.MethodGet, link, "").Code; code != http.StatusNotFound {
			t.Errorf("%s: the link is answered %d", name, code)
		}
		if code := w.accept(link).Code; code != http.StatusNotFound {
			t.Errorf("%s: it lets somebody in: %d", name, code)
		}
	}
}

func TestInviteSecretIsNeverKept(t *testing.T) {
	w := newServer(t, pagesConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "admin"))
	secret := strings.TrimPrefix(w.linkOn(ana.post("/settings/people/invite", form("role", "viewer"))), "/invite/")
	if strings.Contains(w.everythingStored(), secret) {
		t.Error("the secret of a link stands in the database")
	}
}

func TestInvitedAddressThatIsTakenSaysNothingAboutWhose(t *testing.T) {
	w := newServer(t, pagesConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "admin"))
	w.person("other", "bo@example.com", "admin")
	link := w.linkOn(ana.post("/settings/people/invite", form("role", "viewer")))
	says(t, w.accept(link), http.StatusUnprocessableEntity, "That e-mail address can't be used here.")
	goesTo(t, w.accept(link, "email", "bea@example.com"), "/") // the link is not used up
	says(t, ana.post("/settings/people/invite", form("email", "bea@example.com", "role", "viewer")), http.StatusForbidden, "is already set up")
}

func TestWorkingWithOthersMakesALinkAtOnce(t *testing.T) {
	for mode, linked := range map[string]bool{"alone": false, "with-others": true} {
		w := newServer(t)
		code, err := w.Store.NewSetupCode(t.Context())
		must(t, err)
		first := w.setup(code, "mode", mode)
		if strings.Contains(text(first), "/invite/") != linked {
			t.Fatalf("%s: the link stands there: %t", mode, !linked)
		}
		if linked {
			in := w.accept(w.linkOn(first))
			goesTo(t, in, "/")
			shows(t, w.browserOf(ledger.PersonRecord{}, in).get("/"), http.StatusOK, "bo@example.com", "approver")
		}
	}
}

// Each act is tried by each role, on somebody who is no admin.
func TestWhatEachRoleMayDoAboutPeople(t *testing.T) {
	acts := map[string]func(b browser, whom ledger.PersonRecord) *httptest.ResponseRecorder{
		"look": func(b browser, _ ledger.PersonRecord) *httptest.ResponseRecorder { return b.get("/settings/people") },
		"invite": func(b browser, _ ledger.PersonRecord) *httptest.ResponseRecorder {
			return b.post("/settings/people/invite", form("role", "viewer"))
		},
		"revoke-invite": func(b browser, _ ledger.PersonRecord) *httptest.ResponseRecorder {
			admin := b.signIn(b.person("default", "temp@example.com", "admin"))
			i, _, err := b.Store.Invite(b.t.Context(), "", []string{"viewer"}, admin.who)
			must(b.t, err)
			return b.post("/settings/people/revoke-invite", form("invite", i.ID))
		},
		"change-roles": func(b browser, whom ledger.PersonRecord) *httptest.ResponseRecorder {
			return b.post("/settings/people/change-roles", form("person", whom.ID, "seen", "finance", "role", "viewer"))
		},
		"disable-person": func(b browser, whom ledger.PersonRecord) *httptest.ResponseRecorder {
			return b.post("/settings/people/disable-person", form("person", whom.ID))
		},
		"enable-person": func(b browser, whom ledger.PersonRecord) *httptest.ResponseRecorder {
			return b.post("/settings/people/enable-person", form("person", whom.ID))
		},
		"reset-second-factor": func(b browser, whom ledger.PersonRecord) *httptest.ResponseRecorder {
			return b.post("/settings/people/reset-second-factor", form("person", whom.ID))
		},
	}
	for name, act := range acts {
		w := newServer(t, pagesConfig)
		for _, roles := range [][]string{{"viewer"}, {"finance"}, {"approver"}, {"finance", "approver", "viewer"}, {"admin"}, {"viewer", "admin"}} {
			b := w.signIn(w.person("default", strings.Join(roles, "-")+"@example.com", roles...))
			whom := w.person("default", "whom-"+strings.Join(roles, "-")+"@example.com", "finance")
			allowed := strings.Contains(strings.Join(roles, " "), "admin")
			answer := act(b, whom)
			if forbidden := answer.Code == http.StatusForbidden; forbidden == allowed || answer.Code >= 500 || answer.Code == http.StatusNotFound {
				t.Errorf("%s as %v is answered %d", name, roles, answer.Code)
			}
			if now := w.personNow(whom.ID); !allowed && (now.DisabledAt > 0 || now.Roles[0] != "finance") {
				t.Errorf("%s as %v changed something", name, roles)
			}
			must(t, w.Store.DisablePerson(t.Context(), whom.Email, operator))
			if name == "revoke-invite" {
				break // one temporary admin is enough
			}
		}
	}
}

func TestNobodyChangesThemselves(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "admin"))
	w.person("default", "bo@example.com", "admin")
	for _, f := range []struct{ act, more string }{{"change-roles", "finance"}, {"disable-person", ""}, {"enable-person", ""}, {"reset-second-factor", ""}} {
		says(t, b.post("/settings/people/"+f.act, form("person", b.who.ID, "seen", "admin", "role", "admin", "role", f.more)), http.StatusForbidden, "Nobody changes their own roles")
	}
	if now := w.personNow(b.who.ID); now.DisabledAt > 0 || len(now.Roles) != 1 {
		t.Errorf("it changed to %+v", now)
	}
}

func TestLosingARoleOrBeingDisabledEndsTheSessions(t *testing.T) {
	w := newServer(t, pagesConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "admin"))
	p := w.person("default", "bo@example.com", "finance", "viewer")
	bo := w.signIn(p)
	goesTo(t, ana.post("/settings/people/change-roles", form("person", p.ID, "seen", "viewer,finance", "role", "finance", "role", "viewer", "role", "approver")), "/settings/people")
	if bo.isOut() {
		t.Error("whoever gains a role is signed out")
	}
	shows(t, bo.get("/"), http.StatusOK, "approver · finance · viewer")
	goesTo(t, ana.post("/settings/people/change-roles", form("person", p.ID, "seen", "approver,finance,viewer", "role", "viewer")), "/settings/people")
	if !bo.isOut() {
		t.Error("whoever loses a role goes on as before")
	}
	bo = w.signIn(p)
	goesTo(t, ana.post("/settings/people/disable-person", form("person", p.ID)), "/settings/people")
	if !bo.isOut() {
		t.Error("whoever is disabled goes on as before")
	}
	says(t, ana.get("/settings/people"), http.StatusOK, "Disabled")
	goesTo(t, ana.post("/settings/people/enable-person", form("person", p.ID)), "/settings/people")
	if !bo.isOut() {
		t.Error("an old session is good again")
	}
	if log := w.everythingStored(); !strings.Contains(log, "bo@example.com was approver, finance, viewer and is viewer.") || !strings.Contains(log, "bo@example.com was disabled.") || !strings.Contains(log, "bo@example.com was enabled again.") {
		t.Error("the log lacks a change")
	}
}

func TestRolesThatChangedMeanwhileAreNotOverwritten(t *testing.T) {
	w := newServer(t, pagesConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "admin"))
	p := w.person("default", "bo@example.com", "finance")
	says(t, ana.post("/settings/people/change-roles", form("person", p.ID, "seen", "viewer", "role", "admin")), http.StatusConflict, "Nothing from you was recorded.")
	for roles, want := range map[string]string{"": "Choose at least one role.", "root": "There is no such role."} {
		f := form("person", p.ID, "seen", "finance")
		if roles != "" {
			f.Set("role", roles)
		}
		says(t, ana.post("/settings/people/change-roles", f), http.StatusForbidden, want)
	}
	if now := w.personNow(p.ID); len(now.Roles) != 1 || now.Roles[0] != "finance" {
		t.Errorf("the roles are %v", now.Roles)
	}
}

func TestOtherTenantsPeopleAreAsAbsent(t *testing.T) {
	w := newServer(t, pagesConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "admin"))
	theirs := w.person("other", "theirs@example.com", "finance")
	boss := w.person("other", "boss@example.com", "admin")
	invite, _, err := w.Store.Invite(t.Context(), "new@example.com", []string{"viewer"}, boss)
	must(t, err)
	for _, act := range []string{"change-roles", "disable-person", "enable-person", "reset-second-factor"} {
		other := ana.post("/settings/people/"+act, form("person", theirs.ID, "seen", "finance", "role", "viewer"))
		absent := ana.post("/settings/people/"+act, form("person", "pe_absent", "seen", "finance", "role", "viewer"))
		if other.Code != http.StatusNotFound || other.Body.String() != absent.Body.String() {
			t.Errorf("%s: another tenant's is answered %d, an absent one %d", act, other.Code, absent.Code)
		}
	}
	if code := ana.post("/settings/people/revoke-invite", form("invite", invite.ID)).Code; code != http.StatusNotFound {
		t.Errorf("another tenant's link is answered %d", code)
	}
	hides(t, ana.get("/settings/people"), "theirs@example.com", "new@example.com")
	if now := w.personNow(theirs.ID); now.DisabledAt > 0 || now.Roles[0] != "finance" {
		t.Error("it was changed")
	}
}

// Whichever comes first wins; the other one is nobody by then.
func TestTwoAdminsWhoDisableEachOtherLeaveOne(t *testing.T) {
	w := newServer(t, pagesConfig)
	for round := range 10 {
		tenant := []string{"default", "other"}[round%2]
		a, b := w.person(tenant, "a"+strings.Repeat("x", round)+"@example.com", "admin"), w.person(tenant, "b"+strings.Repeat("x", round)+"@example.com", "admin")
		one, two := w.signIn(a), w.signIn(b)
		var wait sync.WaitGroup
		wait.Go(func() { one.post("/settings/people/disable-person", form("person", b.ID)) })
		wait.Go(func() {
			two.post("/settings/people/change-roles", form("person", a.ID, "seen", "admin", "role", "viewer"))
		})
		wait.Wait()
		a, b = w.personNow(a.ID), w.personNow(b.ID)
		aGone, bGone := a.Roles[0] != "admin", b.DisabledAt > 0
		if aGone == bGone {
			t.Fatalf("round %d: the first lost the role: %t; the second was disabled: %t", round, aGone, bGone)
		}
		// The survivor is alone, and stays.
		left, gone := a, b
		if aGone {
			left, gone = b, a
		}
		if err := w.Store.DisableOther(t.Context(), tenant, left.ID, gone); err == nil {
			t.Fatalf("round %d: whoever lost disables the other one", round)
		}
		if round < 2 {
			if err := w.Store.DisablePerson(t.Context(), left.Email, operator); err == nil {
				t.Fatal("the last admin was disabled")
			}
		}
		w.person(tenant, "next"+strings.Repeat("x", round)+"@example.com", "admin")
		must(t, w.Store.DisablePerson(t.Context(), left.Email, operator))
	}
}

func TestHostileNamesAreInertAmongPeople(t *testing.T) {
	w := newServer(t, pagesConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "admin"))
	link := w.linkOn(ana.post("/settings/people/invite", form("role", "viewer")))
	hostile := `"><script>alert(1)</script>` + "\u202e\u200b"
	goesTo(t, w.accept(link, "name", hostile), "/")
	w.do(http.MethodPost, "/login", form("email", "bo@example.com", "password", "nine calm herons wade").Encode(), "Content-Type: application/x-www-form-urlencoded", "User-Agent: "+hostile)
	bo := w.browserOf(ledger.PersonRecord{}, w.login("bo@example.com", "nine calm herons wade"))
	for _, page := range []*httptest.ResponseRecorder{ana.get("/settings/people"), bo.get("/settings/account"), bo.get("/confirm")} {
		for _, unwanted := range []string{"<script>alert", "\u202e", "\u200b"} {
			if page.Code != http.StatusOK || strings.Contains(page.Body.String(), unwanted) {
				t.Errorf("answered %d with %q", page.Code, unwanted)
			}
		}
	}
}

// everythingStored is the database as it lies on the disk.
func (w *world) everythingStored() string {
	w.t.Helper()
	var all strings.Builder
	for _, name := range []string{"holdfast.db", "holdfast.db-wal"} {
		b, err := os.ReadFile(filepath.Join(w.folder, name))
		must(w.t, err)
		all.Write(b)
	}
	return all.String()
}

package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

const goodPassword = "seven quiet otters swim"

func (w *world) personWithPassword(email string, roles ...string) ledger.PersonRecord {
	w.t.Helper()
	hash, err := HashPassword(goodPassword)
	must(w.t, err)
	p, err := w.Store.AddPerson(w.t.Context(), ledger.PersonRecord{TenantID: "default", Email: email, Roles: roles}, hash, operator)
	must(w.t, err)
	return p
}

func (w *world) login(email, password string, headers ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	return w.do(http.MethodPost, "/login", url.Values{"email": {email}, "password": {password}, "next": {"/approvals"}}.Encode(),
		append(headers, "Content-Type: application/x-www-form-urlencoded")...)
}

func cookieOf(t *testing.T, answer *httptest.ResponseRecorder) *http.Cookie {
	t.Helper()
	all := answer.Result().Cookies()
	if len(all) != 1 {
		t.Fatalf("answered %d with %d cookies\n%s", answer.Code, len(all), text(answer))
	}
	return all[0]
}

func TestSignInGoesWhereItWasAskedFor(t *testing.T) {
	w := newServer(t, pagesConfig)
	w.personWithPassword("ana@example.com", "finance")
	first := w.do(http.MethodGet, "/operations?status=unknown", "")
	if to := first.Header().Get("Location"); first.Code != http.StatusSeeOther || to != "/login?next=%2Foperations%3Fstatus%3Dunknown" {
		t.Fatalf("signed out, answered %d to %s", first.Code, to)
	}
	shows(t, w.do(http.MethodGet, first.Header().Get("Location"), ""), http.StatusOK, `data-act="login"`, `name="next" value="/operations?status=unknown"`)

	answer := w.login(" Ana@Example.com ", goodPassword)
	if answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != "/approvals" {
		t.Fatalf("answered %d to %s\n%s", answer.Code, answer.Header().Get("Location"), text(answer))
	}
	c := cookieOf(t, answer)
	signedIn := "Cookie: " + c.Name + "=" + c.Value
	shows(t, w.do(http.MethodGet, "/approvals", "", signedIn), http.StatusOK, "ana@example.com", "No approvals waiting.")

	out := w.do(http.MethodPost, "/logout", "", signedIn)
	if gone := cookieOf(t, out); out.Code != http.StatusSeeOther || gone.MaxAge >= 0 {
		t.Errorf("signing out answered %d, %+v", out.Code, gone)
	}
	if after := w.do(http.MethodGet, "/approvals", "", signedIn); after.Code != http.StatusSeeOther {
		t.Errorf("a session that ended still shows a page: %d", after.Code)
	}
}

func TestSessionCookieAttributes(t *testing.T) {
	w := newServer(t, pagesConfig)
	w.personWithPassword("ana@example.com", "finance")
	for _, c := range []struct {
		name    string
		headers []string
		cookie  string
		secure  bool
	}{
		{"http", nil, "holdfast_session", false},
		{"a proxy on this machine", []string{"From-Address: 127.0.0.1", "X-Forwarded-Proto: https"}, "__Host-holdfast_session", true},
		{"somebody who says so", []string{"X-Forwarded-Proto: https"}, "holdfast_session", false},
	} {
		got := cookieOf(t, w.login("ana@example.com", goodPassword, c.headers...))
		if got.Name != c.cookie || got.Secure != c.secure || !got.HttpOnly || got.SameSite != http.SameSiteLaxMode || got.Path != "/" || got.Domain != "" || len(got.Value) < 32 {
			t.Errorf("%s: the cookie is %v", c.name, got)
		}
	}
}

func TestSessionIsNewAtEverySignIn(t *testing.T) {
	w := newServer(t, pagesConfig)
	p := w.personWithPassword("ana@example.com", "finance")
	planted := w.signIn(p)
	fresh := cookieOf(t, w.login("ana@example.com", goodPassword, "Cookie: "+planted.cookie))
	if planted.cookie == fresh.Name+"="+fresh.Value {
		t.Error("the session was kept")
	}
	if answer := planted.get("/"); answer.Code != http.StatusSeeOther {
		t.Errorf("the session from before still works: %d", answer.Code)
	}
}

func TestSessionEndsIdleAndOld(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	for range 14 {
		w.pass(11 * time.Hour)
		shows(t, b.get("/"), http.StatusOK)
	}
	w.pass(13 * time.Hour)
	if answer := b.get("/"); answer.Code != http.StatusSeeOther {
		t.Errorf("idle for 13 hours: %d", answer.Code)
	}
	b = w.signIn(b.who)
	for range 17 {
		w.pass(10 * time.Hour)
		b.get("/")
	}
	if answer := b.get("/"); answer.Code != http.StatusSeeOther {
		t.Errorf("older than a week: %d", answer.Code)
	}
}

func TestDisabledPersonIsOutAtOnce(t *testing.T) {
	w := newServer(t, pagesConfig)
	w.person("default", "bo@example.com", "admin")
	p := w.personWithPassword("ana@example.com", "finance")
	b := w.signIn(p)
	must(t, w.Store.DisablePerson(t.Context(), p.Email, operator))
	if answer := b.get("/"); answer.Code != http.StatusSeeOther {
		t.Errorf("a page is shown: %d", answer.Code)
	}
	shows(t, w.login(p.Email, goodPassword), http.StatusUnauthorized, "That e-mail and password don't match.")
}

func TestWrongPasswordsHaveToWait(t *testing.T) {
	w := newServer(t, pagesConfig)
	w.personWithPassword("ana@example.com", "finance")
	for i := range 4 {
		shows(t, w.login("ana@example.com", "not this one at all"), http.StatusUnauthorized, "That e-mail and password don't match.")
		if i == 0 {
			hides(t, w.do(http.MethodGet, "/login", ""), "Too many")
		}
	}
	fifth := w.login("ana@example.com", "not this one at all")
	shows(t, fifth, http.StatusTooManyRequests, "Wait 5 seconds")
	if got := fifth.Header().Get("Retry-After"); got != "5" {
		t.Errorf("Retry-After is %q", got)
	}
	shows(t, w.login("ana@example.com", goodPassword), http.StatusTooManyRequests, "Wait 5 seconds")

	// Its owner is not locked out by a stranger elsewhere.
	if answer := w.login("ana@example.com", goodPassword, "From-Address: 198.51.100.7"); answer.Code != http.StatusSeeOther {
		t.Errorf("the right password from another address was answered %d", answer.Code)
	}
	// The address is throttled whoever it tries to be, and can't say that it is another.
	shows(t, w.login("bo@example.com", "anything"), http.StatusTooManyRequests)
	shows(t, w.login("ana@example.com", goodPassword, "X-Forwarded-For: 203.0.113.5"), http.StatusTooManyRequests)

	w.pass(6 * time.Second)
	if answer := w.login("ana@example.com", goodPassword); answer.Code != http.StatusSeeOther {
		t.Errorf("after the wait, the right password was answered %d", answer.Code)
	}
}

func TestStrangersGetTheAnswerOfAWrongPassword(t *testing.T) {
	w := newServer(t, pagesConfig)
	w.personWithPassword("ana@example.com", "finance")
	w.person("default", "bo@example.com", "finance") // has no password
	same := func(answer *httptest.ResponseRecorder, email string) string {
		return strings.ReplaceAll(answer.Body.String(), email, "")
	}
	known := same(w.login("ana@example.com", "not this one at all"), "ana@example.com")
	for _, email := range []string{"nobody@example.com", "bo@example.com", ""} {
		if answer := w.login(email, "not this one at all"); answer.Code != http.StatusUnauthorized || email != "" && same(answer, email) != known {
			t.Errorf("%q is answered otherwise: %d", email, answer.Code)
		}
	}
	if fits("", "") || fits(goodPassword, "") || fits(goodPassword, "damaged") {
		t.Error("a hash that is none fits")
	}
}

func TestNextNeverLeavesTheSite(t *testing.T) {
	for next, want := range map[string]string{
		"/approvals": "/approvals", "/operations?status=unknown&q=a%2Fb": "/operations?status=unknown&q=a%2Fb", "/": "/", "": "/",
		"//evil.example": "/", `/\evil.example`: "/", `\\evil.example`: "/", "https://evil.example": "/", "javascript:alert(1)": "/",
		"/\t/evil.example": "/", "/\n/evil.example": "/", "evil": "/", "///evil.example": "/", "/login": "/", "/logout": "/", "/%": "/", "http:/evil": "/", "@evil.example": "/",
	} {
		if got := localPath(next); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
	w := newServer(t, pagesConfig)
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	if to := b.get("/login?next=" + url.QueryEscape("//evil.example")).Header().Get("Location"); to != "/" {
		t.Errorf("it leads to %s", to)
	}
}

func TestSignedOutPostDecidesNothingAndLeadsBack(t *testing.T) {
	w := newServer(t, pagesConfig)
	w.person("default", "ana@example.com", "finance")
	o := w.askedFor("")
	answer := w.do(http.MethodPost, "/operations/"+o.OperationID+"/approve", "", "Content-Type: application/x-www-form-urlencoded")
	shows(t, answer, http.StatusUnauthorized, "Nothing was recorded.", `value="/operations/`+o.OperationID+`"`)
}

func TestOneClickLinksWorkOnTheDemosOwnMachineOnly(t *testing.T) {
	w := newServer(t, pagesConfig)
	w.person("default", "ana@example.com", "finance")
	w.SignInLinks = map[string]string{"s3cret": "ana@example.com"}
	in := func(headers ...string) int { return w.do(http.MethodGet, "/in/s3cret", "", headers...).Code }
	local := "From-Address: 127.0.0.1"
	if code := in(local); code != http.StatusNotFound {
		t.Errorf("without a demo: %d", code)
	}
	w.Test = true
	for name, code := range map[string]int{
		"from elsewhere":      in(),
		"through a proxy":     in(local, "X-Forwarded-For: 203.0.113.5"),
		"an unreadable proxy": in(local, "X-Forwarded-For: unknown"),
		"another secret":      w.do(http.MethodGet, "/in/s3cres", "", local).Code,
	} {
		if code != http.StatusNotFound {
			t.Errorf("%s: %d", name, code)
		}
	}
	hides(t, w.do(http.MethodGet, "/login", ""), "s3cret")
	shows(t, w.do(http.MethodGet, "/login", "", local), http.StatusOK, "/in/s3cret", "TEST — no real money moves")
	answer := w.do(http.MethodGet, "/in/s3cret", "", local)
	c := cookieOf(t, answer)
	shows(t, w.do(http.MethodGet, "/", "", "Cookie: "+c.Name+"="+c.Value), http.StatusOK, "ana@example.com")
}

package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

func (w *world) setup(code string, change ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	form := url.Values{"code": {code}, "name": {"Ana"}, "email": {"ana@example.com"}, "password": {goodPassword}, "mode": {"alone"}}
	for i := 0; i < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return w.do(http.MethodPost, "/setup", form.Encode(), "Content-Type: application/x-www-form-urlencoded")
}

func TestWhileNobodyIsSetUpEveryPageLeadsToSetUp(t *testing.T) {
	w := newServer(t)
	for _, path := range []string{"/", "/login", "/approvals", "/operations/op-1", "/settings", "/nowhere"} {
		if answer := w.do(http.MethodGet, path, ""); answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != "/setup" {
			t.Errorf("%s: answered %d to %s", path, answer.Code, answer.Header().Get("Location"))
		}
	}
	shows(t, w.do(http.MethodGet, "/setup?code=kfq72mxd", ""), http.StatusOK, `value="KFQ7-2MXD"`, "Your link brought it.")
	w.person("default", "ana@example.com", "admin")
	if answer := w.do(http.MethodGet, "/setup", ""); answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != "/login" {
		t.Errorf("somebody is set up, and it answered %d", answer.Code)
	}
}

func TestSetUpMakesThePersonAndATokenThatWorks(t *testing.T) {
	w := newServer(t)
	code, err := w.Store.NewSetupCode(t.Context())
	must(t, err)
	answer := w.setup(strings.ToLower(strings.ReplaceAll(code, "-", " ")))
	shows(t, answer, http.StatusOK, "Hello, Ana.", "Your first token", "curl -sS http://example.com/v1/operations")
	jwt := regexp.MustCompile(`eyJ[A-Za-z0-9_.-]+`).FindString(answer.Body.String())
	c := cookieOf(t, answer)
	home := w.do(http.MethodGet, "/", "", "Cookie: "+c.Name+"="+c.Value)
	shows(t, home, http.StatusOK, "admin · approver · finance")
	hides(t, home, jwt, "Your first token")

	body := regexp.MustCompile(`-d '(\{[^']*\})'`).FindStringSubmatch(text(answer))
	if body == nil {
		t.Fatal("there is no command to try")
	}
	if got := w.do(http.MethodPost, "/v1/operations", body[1], "Authorization: Bearer "+jwt, "Content-Type: application/json"); got.Code != http.StatusAccepted {
		t.Errorf("the command that is shown is answered %d %s", got.Code, got.Body)
	}
	if o := w.stored("default", "first-charge"); o.Owner != "ana@example.com" {
		t.Errorf("it belongs to %q", o.Owner)
	}
	if again := w.setup(code, "email", "eve@example.com"); again.Code == http.StatusOK {
		t.Error("the code was good twice")
	}
}

func TestSetUpCodeIsBounded(t *testing.T) {
	for name, use := range map[string]func(w *world, code string){
		"wrong five times": func(w *world, _ string) {
			for range 5 {
				shows(t, w.setup("AAAA-AAAA"), http.StatusForbidden, "That code is not good")
			}
		},
		"older than half an hour": func(w *world, _ string) { w.pass(31 * time.Minute) },
	} {
		w := newServer(t)
		code, err := w.Store.NewSetupCode(t.Context())
		must(t, err)
		use(w, code)
		if answer := w.setup(code); answer.Code != http.StatusForbidden {
			t.Errorf("%s: the code was answered %d", name, answer.Code)
		}
		if some, _ := w.Store.HasPeople(t.Context()); some {
			t.Errorf("%s: somebody is set up", name)
		}
	}
}

func TestSetUpGivesTheFormBack(t *testing.T) {
	w := newServer(t)
	code, err := w.Store.NewSetupCode(t.Context())
	must(t, err)
	for _, c := range []struct{ field, value, says string }{
		{"password", "short", "5 characters"},
		{"password", "ana@example.com12", "little more than your name"},
		{"email", "not an address", "That is no e-mail address"},
		{"email", "Ana <ana@example.com>", "That is no e-mail address"},
		{"name", " ", "A name is needed."},
		{"code", "", "The code is needed."},
	} {
		answer := w.setup(code, c.field, c.value)
		shows(t, answer, http.StatusUnprocessableEntity, c.says)
		hides(t, answer, goodPassword)
	}
	shows(t, w.setup(code), http.StatusOK) // none of that used it up
}

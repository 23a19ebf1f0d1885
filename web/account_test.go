package web

import (
	"encoding/base32"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// freshly signs somebody with a password in, the way that people do.
func (w *world) freshly(p ledger.PersonRecord) browser {
	w.t.Helper()
	return w.browserOf(p, w.login(p.Email, goodPassword))
}

var secretShown = regexp.MustCompile(`>([A-Z2-7]{4}(?: [A-Z2-7]{4}){7})<`)

// phone shows the codes of a secret.
type phone struct {
	w      *world
	secret []byte
}

func (f phone) code() string { return ledger.CodeNow(f.secret, f.w.Store.Now()) }

// enrol sets up a second factor, and returns the app and the recovery codes.
func (b *browser) enrol() (phone, []string) {
	b.t.Helper()
	offer := b.post("/settings/account/offer-second-factor", nil)
	m := secretShown.FindStringSubmatch(offer.Body.String())
	if m == nil {
		b.t.Fatalf("answered %d, and no secret is shown\n%s", offer.Code, reads(offer))
	}
	secret, err := base32.StdEncoding.DecodeString(strings.ReplaceAll(m[1], " ", ""))
	must(b.t, err)
	f := phone{b.world, secret}
	done := b.post("/settings/account/confirm-second-factor", form("code", f.code()))
	codes := regexp.MustCompile(`<code>([A-Z2-9]{4}(?:-[A-Z2-9]{4}){3})</code>`).FindAllStringSubmatch(done.Body.String(), -1)
	if done.Code != http.StatusOK || len(codes) != 10 {
		b.t.Fatalf("answered %d with %d recovery codes\n%s", done.Code, len(codes), reads(done))
	}
	*b = b.browserOf(b.who, done)
	var all []string
	for _, c := range codes {
		all = append(all, c[1])
	}
	b.pass(time.Minute)
	return f, all
}

// half types the right password, and returns the cookie of the second page.
func (w *world) half(email string, headers ...string) string {
	w.t.Helper()
	answer := w.login(email, goodPassword, headers...)
	goesTo(w.t.(*testing.T), answer, "/login/code?next=%2Fapprovals")
	c := cookieOf(w.t.(*testing.T), answer)
	if c.Name != halfName || !c.HttpOnly {
		w.t.Fatalf("the cookie is %+v", c)
	}
	return c.Name + "=" + c.Value
}

func (w *world) withCode(half, code string, headers ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	return w.do(http.MethodPost, "/login/code", url.Values{"code": {code}, "next": {"/approvals"}}.Encode(),
		append(headers, "Cookie: "+half, "Content-Type: application/x-www-form-urlencoded")...)
}

func TestPasswordIsChangedByWhoeverKnowsItOrJustSignedIn(t *testing.T) {
	const better = "eleven grey owls blink"
	w := newServer(t, pagesConfig)
	p := w.personWithPassword("ana@example.com", "finance")
	b, elsewhere := w.freshly(p), w.freshly(p)
	hides(t, b.get("/settings/account"), `name="old"`)
	says(t, b.post("/settings/account/set-password", form("password", "short")), http.StatusUnprocessableEntity, "needs at least 15")
	says(t, b.post("/settings/account/set-password", form("password", "correct horse battery staple")), http.StatusUnprocessableEntity, "guesses")
	says(t, b.post("/settings/account/set-password", form("password", better)), http.StatusOK, "Your password is set. You were signed out everywhere else.")
	if b.isOut() || !elsewhere.isOut() {
		t.Error("the wrong sessions ended")
	}
	shows(t, w.login(p.Email, goodPassword), http.StatusUnauthorized)

	w.pass(6 * time.Minute)
	shows(t, b.get("/settings/account"), http.StatusOK, `name="old"`, `autocomplete="new-password"`)
	says(t, b.post("/settings/account/set-password", form("password", goodPassword)), http.StatusForbidden, "The password so far is not that one.")
	for range 4 {
		b.post("/settings/account/set-password", form("password", goodPassword, "old", "wrong"))
	}
	says(t, b.post("/settings/account/set-password", form("password", goodPassword, "old", better)), http.StatusTooManyRequests, "Wait 5 seconds")
	w.pass(6 * time.Second)
	says(t, b.post("/settings/account/set-password", form("password", goodPassword, "old", better)), http.StatusOK, "Your password is set.")
	if code := w.login(p.Email, goodPassword).Code; code != http.StatusSeeOther {
		t.Errorf("the new password is answered %d", code)
	}
}

func TestSecondFactorIsAskedForOnASecondPage(t *testing.T) {
	w := newServer(t, pagesConfig)
	p := w.personWithPassword("ana@example.com", "finance")
	b, elsewhere := w.freshly(p), w.freshly(p)
	offer := b.post("/settings/account/offer-second-factor", nil)
	shows(t, offer, http.StatusOK, "<svg", "<path d=\"M0 0h1v1h-1z")
	hides(t, offer, "<img", "otpauth")
	shown := secretShown.FindStringSubmatch(offer.Body.String())[1]
	says(t, b.post("/settings/account/confirm-second-factor", form("code", "000000")), http.StatusUnprocessableEntity, "That code does not fit.")
	app, _ := b.enrol()
	for _, page := range []string{"/settings/account", "/settings/people", "/settings"} {
		hides(t, b.get(page), shown, ledger.SecretText(app.secret))
	}
	if !elsewhere.isOut() || b.isOut() {
		t.Error("the wrong sessions ended")
	}

	half := w.half(p.Email)
	page := w.do(http.MethodGet, "/login/code?next=%2Fapprovals", "", "Cookie: "+half)
	shows(t, page, http.StatusOK, `data-act="login-code"`, `autocomplete="one-time-code"`, `name="next" value="/approvals"`)
	if code := w.do(http.MethodGet, "/approvals", "", "Cookie: "+half).Code; code != http.StatusSeeOther {
		t.Errorf("the password alone opens a page: %d", code)
	}
	forged := sessionName + strings.TrimPrefix(half, halfName)
	if code := w.do(http.MethodGet, "/approvals", "", "Cookie: "+forged).Code; code != http.StatusSeeOther {
		t.Errorf("the half sign-in is good as a session: %d", code)
	}
	says(t, w.withCode(half, "000000"), http.StatusUnauthorized, "That code does not fit.")
	code := app.code()
	in := w.withCode(half, code[:3]+" "+code[3:])
	goesTo(t, in, "/approvals")
	shows(t, w.browserOf(p, in).get("/"), http.StatusOK, "ana@example.com")
	says(t, w.withCode(half, app.code()), http.StatusUnauthorized, "within 5 minutes of the password") // used up
	says(t, w.withCode(w.half(p.Email), code), http.StatusUnauthorized, "Each one counts once")        // a replay
	late := w.half(p.Email)
	w.pass(6 * time.Minute)
	says(t, w.withCode(late, app.code()), http.StatusUnauthorized, "within 5 minutes of the password")
}

func TestWrongCodesHaveToWaitFromWhereverTheyCome(t *testing.T) {
	w := newServer(t, pagesConfig)
	p := w.personWithPassword("ana@example.com", "finance")
	b := w.freshly(p)
	app, recovery := b.enrol()
	for i := range 5 {
		from := fmt.Sprintf("From-Address: 198.51.100.%d", i+1)
		answer := w.withCode(w.half(p.Email, from), "000000", from) // the right password between makes nothing forgotten
		if i < 4 {
			says(t, answer, http.StatusUnauthorized, "That code does not fit.")
		} else {
			says(t, answer, http.StatusTooManyRequests, "Wait 5 seconds")
		}
	}
	far := "From-Address: 203.0.113.9"
	half := w.half(p.Email, far)
	says(t, w.withCode(half, app.code(), far), http.StatusTooManyRequests, "Wait 5 seconds")
	says(t, w.withCode(half, recovery[0], far), http.StatusTooManyRequests, "Wait 5 seconds")
	w.pass(6 * time.Second)
	goesTo(t, w.withCode(half, app.code(), far), "/approvals")
	w.pass(time.Minute)
	says(t, w.withCode(w.half(p.Email), "000000"), http.StatusUnauthorized, "That code does not fit.") // counted anew
}

func TestPasswordAndCodeAreCountedTogether(t *testing.T) {
	w := newServer(t, pagesConfig)
	p := w.personWithPassword("ana@example.com", "finance")
	b := w.freshly(p)
	app, _ := b.enrol()
	half := w.half(p.Email)
	for range 3 {
		w.login(p.Email, "wrong")
	}
	w.withCode(half, "000000")
	says(t, w.login(p.Email, "wrong"), http.StatusTooManyRequests, "Wait 5 seconds")
	says(t, w.withCode(half, app.code()), http.StatusTooManyRequests, "Wait 5 seconds")
}

func TestRecoveryCodesCountOnceAndAreKeptHashed(t *testing.T) {
	w := newServer(t, pagesConfig)
	p := w.personWithPassword("ana@example.com", "finance")
	other := w.personWithPassword("bo@example.com", "finance")
	b, bo := w.freshly(p), w.freshly(other)
	_, codes := b.enrol()
	bo.enrol()
	goesTo(t, w.withCode(w.half(p.Email), strings.ToLower(strings.ReplaceAll(codes[3], "-", " "))), "/approvals")
	says(t, w.withCode(w.half(p.Email), codes[3]), http.StatusUnauthorized, "That code does not fit.")
	says(t, w.withCode(w.half(other.Email), codes[4]), http.StatusUnauthorized, "That code does not fit.")
	says(t, b.get("/settings/account"), http.StatusOK, "9 recovery codes are left.")
	hides(t, b.get("/settings/account"), codes[5])
	if stored := w.everythingStored(); strings.Contains(stored, codes[5]) || strings.Contains(stored, strings.ReplaceAll(codes[5], "-", "")) {
		t.Error("a recovery code stands in the database")
	}
}

func TestSecondFactorIsTakenAwayForACodeOnly(t *testing.T) {
	w := newServer(t, pagesConfig)
	p := w.personWithPassword("ana@example.com", "finance")
	b := w.freshly(p)
	app, _ := b.enrol()
	elsewhere := w.browserOf(p, w.withCode(w.half(p.Email), app.code()))
	w.pass(time.Minute)
	says(t, b.post("/settings/account/drop-second-factor", form("code", "000000")), http.StatusForbidden, "That code does not fit.")
	says(t, b.post("/settings/account/offer-second-factor", nil), http.StatusConflict, "There is a second factor already.")
	says(t, b.post("/settings/account/drop-second-factor", form("code", app.code())), http.StatusOK, "Your second factor is off.")
	if b.isOut() || !elsewhere.isOut() {
		t.Error("the wrong sessions ended")
	}
	goesTo(t, w.login(p.Email, goodPassword), "/approvals")
}

func TestShortPasswordIsGoodBesideASecondFactorOnly(t *testing.T) {
	w := newServer(t, pagesConfig)
	p := w.personWithPassword("ana@example.com", "finance")
	admin := w.signIn(w.person("default", "kim@example.com", "admin"))
	b := w.freshly(p)
	b.enrol()
	for _, common := range []string{"password", "P@ssword", "sunshine1", "12345678", "qwertyui", "abcdefgh"} {
		says(t, b.post("/settings/account/set-password", form("password", common)), http.StatusUnprocessableEntity, "guesses")
	}
	says(t, b.post("/settings/account/set-password", form("password", "h7 otter")), http.StatusOK, "Your password is set.")

	goesTo(t, admin.post("/settings/people/reset-second-factor", form("person", p.ID)), "/settings/people")
	if !b.isOut() {
		t.Error("taking the second factor away ends no session")
	}
	b = w.browserOf(p, w.login(p.Email, "h7 otter"))
	goesTo(t, b.get("/approvals"), "/settings/account")
	goesTo(t, b.post("/runs/stop-run", form("run_id", "r", "reason", "x")), "/settings/account")
	says(t, b.get("/settings/account"), http.StatusOK, "too short to stand alone")
	says(t, b.post("/settings/account/set-password", form("password", "h8 otter")), http.StatusUnprocessableEntity, "needs at least 15")
	says(t, b.post("/settings/account/set-password", form("password", goodPassword)), http.StatusOK, "Your password is set.")
	if b.isOut() {
		t.Error("the pages stay shut")
	}
	shows(t, b.get("/approvals"), http.StatusOK, "No approvals waiting.")
	if !strings.Contains(w.everythingStored(), "The second factor of ana@example.com was taken away.") {
		t.Error("the log does not tell")
	}
}

func TestSettingUpASecondFactorNeedsAFreshSignIn(t *testing.T) {
	w := newServer(t, pagesConfig)
	b := w.freshly(w.personWithPassword("ana@example.com", "finance"))
	w.pass(6 * time.Minute)
	goesTo(t, b.post("/settings/account/offer-second-factor", nil), "/confirm?next=%2Fsettings%2Faccount")
	says(t, b.post("/confirm", form("password", "wrong", "next", "/settings/account")), http.StatusUnauthorized, "That is not your password.")
	yes := b.post("/confirm", form("password", goodPassword, "next", "/settings/account"))
	goesTo(t, yes, "/settings/account")
	if !b.isOut() {
		t.Error("the session's old secret is still good")
	}
	b = w.browserOf(b.who, yes)
	b.enrol()
}

func TestSessionsAreListedAndEnded(t *testing.T) {
	w := newServer(t, pagesConfig)
	p := w.personWithPassword("ana@example.com", "finance")
	here := w.browserOf(p, w.login(p.Email, goodPassword, "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"))
	w.pass(3 * time.Minute)
	phone := w.browserOf(p, w.login(p.Email, goodPassword, "From-Address: 198.51.100.7", "User-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"))
	third := w.freshly(p)
	bo := w.freshly(w.personWithPassword("bo@example.com", "finance"))
	page := here.get("/settings/account")
	says(t, page, http.StatusOK, "Firefox on Linux this one 192.0.2.10", "Safari on an iPhone 198.51.100.7", "3 m ago")
	ids := regexp.MustCompile(`name="session" value="([0-9a-f]{16})"`).FindAllStringSubmatch(page.Body.String(), -1)
	if len(ids) != 2 {
		t.Fatalf("%d sessions can be ended", len(ids))
	}
	for _, id := range ids {
		goesTo(t, bo.post("/settings/account/end-session", form("session", id[1])), "/settings/account") // not Bo's: nothing ends
	}
	if phone.isOut() || third.isOut() {
		t.Fatal("somebody else's session was ended")
	}
	goesTo(t, here.post("/settings/account/end-session", form("session", ids[0][1])), "/settings/account")
	if phone.isOut() == third.isOut() {
		t.Error("not just one ended")
	}
	goesTo(t, here.post("/settings/account/end-other-sessions", nil), "/settings/account")
	if here.isOut() || !phone.isOut() || !third.isOut() || bo.isOut() {
		t.Error("the wrong ones ended")
	}
}

// stepUpConfig asks for a fresh sign-in where euros are many.
var stepUpConfig = strings.ReplaceAll(pagesConfig, "amount_over: 100000 }, then: ask }", "amount_over: 100000 }, then: ask, step_up: true }")

func TestStepUpAsksForTheSecondFactorWhereThereIsOne(t *testing.T) {
	w := newServer(t, stepUpConfig)
	p := w.personWithPassword("ana@example.com", "finance")
	b := w.freshly(p)
	o := w.askedFor("owner@example.com")
	w.pass(6 * time.Minute)
	page := b.get("/operations/" + o.OperationID)
	shows(t, page, http.StatusOK, `data-refused="approve"`, "show once more who you are", `href="/confirm?next=%2Foperations%2F`+o.OperationID+`"`)
	says(t, b.act(o, "approve"), http.StatusForbidden, "show once more who you are")
	yes := b.post("/confirm", form("password", goodPassword, "next", "/operations/"+o.OperationID))
	goesTo(t, yes, "/operations/"+o.OperationID)
	b = w.browserOf(p, yes)
	shows(t, b.get("/operations/"+o.OperationID), http.StatusOK, `data-act="approve"`)

	app, _ := b.enrol()
	link, err := w.Store.StartSession(t.Context(), p, ledger.Session{ProvedWith: ledger.WithPassword}) // a session without the second factor
	must(t, err)
	b = browser{w, p, sessionName + "=" + link}
	says(t, b.act(o, "approve"), http.StatusForbidden, "show once more who you are")
	shows(t, b.get("/confirm?next=/operations/"+o.OperationID), http.StatusOK, `name="code"`)
	says(t, b.post("/confirm", form("password", goodPassword)), http.StatusUnauthorized, "That code does not fit.")
	b = w.browserOf(p, b.post("/confirm", form("code", app.code(), "next", "//evil.example")))
	goesTo(t, b.act(o, "approve"), "/operations/"+o.OperationID+"/done?act=approve")
}

package web

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/dispatch"
	"holdfast/reconcile"
	"holdfast/store"
	"holdfast/store/ledger"
)

// world is a whole server over a ledger of its own. Its clock stands still
// until the test moves it.
type world struct {
	*Server
	t       testing.TB
	handler http.Handler
	folder  string
	clock   atomic.Int64 // Unix milliseconds
}

// newServer starts a world with the built-in configuration, or with the text of
// another. Nothing in it can be sent: no provider is started.
func newServer(t testing.TB, config ...string) *world {
	t.Helper()
	w := &world{t: t, folder: t.TempDir()}
	w.clock.Store(time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC).UnixMilli())
	now := func() time.Time { return time.UnixMilli(w.clock.Load()) }
	log := slog.New(slog.NewTextHandler(io.Discard, nil))

	st, err := store.Open(t.Context(), store.Options{Folder: w.folder, Now: now, Log: log})
	must(t, err)
	t.Cleanup(func() { st.Close() })

	nothing := func(string) (string, bool) { return "", false }
	var c *dispatch.Config
	if len(config) == 0 {
		c, err = dispatch.ReadConfig("", nothing, now, nil)
	} else {
		c, err = dispatch.ParseConfig([]byte(config[0]), t.TempDir(), "test.yaml", nothing, now, nil)
	}
	must(t, err)
	must(t, st.SetRulebooks(t.Context(), c.Rulebooks()))

	if len(config) == 0 {
		c.Limits.RequestsPerSecond = 1_000_000 // this world's clock stands still
	}
	inForce := func() *dispatch.Config { return c }
	w.Server = &Server{Store: st, Config: inForce, Log: log,
		Scheduler: &reconcile.Scheduler{Store: st, Config: inForce, Node: "test", Log: log, Words: wording}}
	w.handler = w.Handler()
	return w
}

// person sets somebody up who may sign in, but has no password.
func (w *world) person(tenant, email string, roles ...string) ledger.PersonRecord {
	w.t.Helper()
	p, err := w.Store.AddPerson(w.t.Context(), ledger.PersonRecord{TenantID: tenant, Email: email, Roles: roles}, "",
		ledger.Holder{Kind: ledger.Person, Name: "test"})
	must(w.t, err)
	return p
}

// token makes an agent's token that does everything, good for an hour.
func (w *world) token(tenant, agent, owner string) (string, ledger.TokenRecord) {
	w.t.Helper()
	jwt, r, err := IssueToken(w.t.Context(), w.Store, ledger.TokenRecord{TenantID: tenant, Agent: agent, Owner: owner, Scopes: Scopes,
		ExpiresAt: w.Store.Now() + time.Hour.Milliseconds()}, ledger.Holder{Kind: ledger.Person, Name: "test"})
	must(w.t, err)
	return jwt, r
}

// pass moves the clock.
func (w *world) pass(d time.Duration) { w.clock.Add(d.Milliseconds()) }

// do answers one request. Headers come as "Name: value".
func (w *world) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, target, strings.NewReader(body))
	r.RemoteAddr = "192.0.2.10:4000"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "From-Address" { // the test's own word for where it connects from
			r.RemoteAddr = value + ":4000"
			continue
		}
		r.Header.Add(name, value)
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	conforms(w.t, method, r.URL.EscapedPath(), answer.Code, answer.Header(), answer.Body.Bytes())
	return answer
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

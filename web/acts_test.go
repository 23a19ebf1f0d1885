package web

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// actsConfig has a rail with statements and money that can be given back.
var actsConfig = func() string {
	const pay = "  pay: { rail: card, effect: charge, schema: SCHEMA"
	rules := strings.ReplaceAll(pagesRules, "    account: test\n", "    account: test\n    statement: { format: csv, amounts: minor, columns: { id: id, amount: amount, currency: currency, date: date, reference: reference, stamp: stamp, counterparty: who } }\n")
	rules = strings.Replace(rules, pay, pay+`, refund: { action_type: give_back, payload: { charge: "{receipt_id}", amount: "{amount}", currency: "{currency}" } }`, 1)
	rules = strings.Replace(rules, "policy:\n", `  give_back: { rail: card, effect: refund, schema: { type: object, required: [charge, amount, currency], properties: { charge: { type: string, x-role: refund_of },
      amount: { type: integer, minimum: 1, x-role: amount }, currency: { type: string, x-role: currency } } } }
policy:
`, 1)
	rules += "notify: { link: https://pay.example.com, channels: [ { kind: slack, url: http://127.0.0.1:1 } ] }\n"
	return strings.ReplaceAll(rules+"tenants:\n  other:"+strings.ReplaceAll(rules, "\n", "\n    "), "SCHEMA", pagesSchema)
}()

// actRow is one form of the pages: who may send it, and what it is about.
type actRow struct {
	act    string
	about  string   // tells rows of the same act apart
	may    []string // roles
	owner  bool     // also who owns the token that asked for it
	scene  func(w *world, owner ledger.PersonRecord) (page string)
	nth    int // of the forms of that act on the page
	fields []string
	seen   string // the hidden field that says what was on the screen; empty: what it does is the same whatever was
	alone  bool   // it is about nothing of its tenant's: another tenant's people have a form of their own

	changesNothing bool // it only looks
}

var (
	deciders = []string{"admin", "approver", "finance"}
	settlers = []string{"admin", "finance"}
	admins   = []string{"admin"}
	everyone = []string{"admin", "approver", "finance", "viewer"}
)

func onOperation(ready func(*world, string) ledger.Operation) func(*world, ledger.PersonRecord) string {
	return func(w *world, owner ledger.PersonRecord) string {
		return "/operations/" + ready(w, owner.Email).OperationID
	}
}

func owed(w *world, _ ledger.PersonRecord) string {
	counter++
	return "/refunds/" + w.owe("default", fmt.Sprintf("ch_%d", counter), 4800).ID
}

// owedByUs can be given back through the gateway.
func owedByUs(w *world, _ ledger.PersonRecord) string {
	counter++
	receipt := fmt.Sprintf("pay_%d", counter)
	o := w.bought(4800, receipt)
	e, _, err := w.Store.ReportRefund(w.t.Context(), store.RefundReport{TenantID: "default", OperationID: o.OperationID, ReceiptID: receipt, Rail: "card", Amount: 4800, Currency: "EUR",
		Cause: ledger.CauseNotDelivered, By: ledger.Holder{Kind: ledger.Agent, Name: "agent-1"}})
	must(w.t, err)
	return "/refunds/" + e.ID
}

func waiverAsked(w *world, owner ledger.PersonRecord) string {
	page := owed(w, owner)
	id := strings.TrimPrefix(page, "/refunds/")
	e, err := w.Store.RefundOwed(w.t.Context(), "default", id)
	must(w.t, err)
	_, _, err = w.Store.WaiveRefund(w.t.Context(), "default", id, store.RefundDecision{Person: owner, Version: e.Version, Reason: "a gift"})
	must(w.t, err)
	return page
}

func settledElsewhere(w *world, owner ledger.PersonRecord) string {
	page := owed(w, owner)
	id := strings.TrimPrefix(page, "/refunds/")
	e, err := w.Store.RefundOwed(w.t.Context(), "default", id)
	must(w.t, err)
	_, err = w.Store.ProveRefund(w.t.Context(), "default", id, store.RefundDecision{Person: owner, Version: e.Version, Reason: "at the desk"}, store.RefundProof{ID: "re_" + id, Rail: "card", Amount: 4800})
	must(w.t, err)
	return page
}

// clerk is who prepares scenes: nobody that a row asks about.
func (w *world) clerk() browser {
	w.t.Helper()
	p, _, err := w.Store.PersonByEmail(w.t.Context(), "clerk@example.com")
	if err != nil {
		p = w.person("default", "clerk@example.com", deciders...)
	}
	return w.signIn(p)
}

// lineOnDesk is one line of a statement, alone on its desk.
func lineOnDesk(w *world, _ ledger.PersonRecord) string {
	counter++
	return w.clerk().imports(fileHead + fileLine(fmt.Sprintf("line-%d", counter), int64(4800+counter)))
}

func suggested(w *world, owner ledger.PersonRecord) string {
	counter++
	amount := int64(50000 + counter)
	o := w.bought(amount, fmt.Sprintf("pay-%d", counter))
	return w.clerk().imports(fileHead + fileLine(fmt.Sprintf("line-%d", counter), amount, "", "", o.Terms.Recipient))
}

func matchedLine(w *world, owner ledger.PersonRecord) string {
	counter++
	receipt, amount := fmt.Sprintf("pay-%d", counter), int64(50000+counter)
	w.bought(amount, receipt)
	return w.clerk().imports(fileHead + fileLine(receipt, amount))
}

// closable is an account of which every line is answered.
func closable(w *world, owner ledger.PersonRecord) string {
	matchedLine(w, owner)
	for _, l := range w.lines() {
		if l.State != ledger.LineMatched {
			w.clerk().post("/statements/set-aside", form("line", fmt.Sprintf("%d:%d", l.ID, l.Version), "reason", "known"))
		}
	}
	day := time.Date(2000, 1, counter, 0, 0, 0, 0, time.UTC).Format(time.DateOnly) // later each time
	return "/statements/close?rail=card&account=test&until=" + day
}

func receiptGone(w *world, owner ledger.PersonRecord) string {
	counter++
	o := w.bought(4800, fmt.Sprintf("pay_%d", counter))
	late := ledger.Look{Finding: ledger.LookAbsent, AskedAt: w.Store.Now() + 3_600_000}
	for range 2 {
		_, _, err := w.Store.RecordRecheck(w.t.Context(), "default", o.OperationID, late, ledger.Holder{Kind: ledger.Reconciler, Name: "recheck"})
		must(w.t, err)
		late.AskedAt += 25 * 3_600_000
	}
	return "/"
}

func railPaused(w *world, _ ledger.PersonRecord) string {
	if w.paused("card").At == 0 {
		w.clerk().onRail("pause-rail", "card", "an incident")
	}
	return "/rails"
}

func railRuns(w *world, _ ledger.PersonRecord) string {
	if w.paused("card").At > 0 {
		w.clerk().onRail("resume-rail", "card", "over")
	}
	return "/rails"
}

func runUnderWay(w *world, _ ledger.PersonRecord) string {
	counter++
	run := fmt.Sprintf("run-%d", counter)
	w.begin(run)
	return "/runs?run_id=" + run
}

func somebodyElse(w *world, _ ledger.PersonRecord) string {
	counter++
	w.person("default", fmt.Sprintf("aa-%06d@example.com", 1_000_000-counter), "viewer") // the newest stands first
	return "/settings/people"
}

func somebodyDisabled(w *world, owner ledger.PersonRecord) string {
	place := somebodyElse(w, owner)
	must(w.t, w.Store.DisablePerson(w.t.Context(), fmt.Sprintf("aa-%06d@example.com", 1_000_000-counter), operator))
	return place
}

func somebodyInvited(w *world, _ ledger.PersonRecord) string {
	_, _, err := w.Store.Invite(w.t.Context(), "", []string{"viewer"}, w.clerk().who)
	must(w.t, err)
	return "/settings/people"
}

func at(path string) func(*world, ledger.PersonRecord) string {
	return func(*world, ledger.PersonRecord) string { return path }
}

// actTable has a row for every form of the pages that decides anything.
var actTable = []actRow{
	{act: "approve", may: deciders, scene: onOperation((*world).askedFor), seen: "version"},
	{act: "reject", may: deciders, owner: true, scene: onOperation((*world).askedFor), fields: []string{"reason", "wrong account"}, seen: "version"},
	{act: "reject", about: "a hold", may: deciders, owner: true, scene: onOperation((*world).overlapping), fields: []string{"reason", "not wanted"}, seen: "version"},
	{act: "ask-changes", may: deciders, owner: true, scene: onOperation((*world).askedFor), fields: []string{"reason", "less, please"}, seen: "version"},
	{act: "happened", may: deciders, owner: true, scene: onOperation(quietHold), fields: []string{"receipt_id", "w_{n}", "amount", "48.00", "reason", "dashboard"}, seen: "version"},
	{act: "happened-twice", may: deciders, owner: true, scene: onOperation(quietHold), fields: []string{"receipt_id", "w_{n}", "second_receipt_id", "x_{n}", "reason", "dashboard"}, seen: "fingerprint"},
	{act: "did-not-happen", may: deciders, owner: true, scene: onOperation(quietHold), fields: []string{"reason", "their support says so"}, seen: "version"},
	{act: "send-again", may: deciders, scene: onOperation(quietHold), fields: []string{"reason", "they lost it"}, seen: "version"},
	{act: "still-unknown", may: deciders, owner: true, scene: onOperation(freshHold), seen: "version"},
	{act: "look-again", may: deciders, owner: true, scene: onOperation((*world).lost), seen: "version"},
	{act: "same-purchase", may: deciders, owner: true, scene: onOperation((*world).overlapping), fields: []string{"reason", "the same invoice"}, seen: "version"},
	{act: "different-purchase", may: deciders, scene: onOperation((*world).overlapping), fields: []string{"reason", "two parcels"}, seen: "version"},

	{act: "settle", may: settlers, owner: true, scene: owedByUs, fields: []string{"amount", "48.00", "rail", "card"}, seen: "version"},
	{act: "settle", about: "elsewhere", may: settlers, owner: true, scene: owed, fields: []string{"amount", "48.00", "proof", "re_{n}", "reason", "at the desk"}, seen: "version"},
	{act: "waive", may: settlers, owner: true, scene: owed, fields: []string{"reason", "a gift"}, seen: "version"},
	{act: "waive", about: "asked by the owner", may: settlers, scene: waiverAsked, fields: []string{"reason", "agreed"}, seen: "version"},
	{act: "bounced", may: settlers, owner: true, scene: settledElsewhere, fields: []string{"reason", "it came back"}, seen: "version"},

	{act: "match", about: "a suggestion", may: deciders, owner: true, scene: suggested, seen: "line"},
	{act: "unmatch", may: deciders, owner: true, scene: matchedLine, fields: []string{"reason", "another payout"}, seen: "line"},
	{act: "set-aside", about: "a line", may: deciders, owner: true, scene: lineOnDesk, fields: []string{"reason", "at the desk"}, seen: "line"},
	{act: "take", about: "a line", may: deciders, owner: true, scene: lineOnDesk, seen: "line"},
	{act: "snooze", about: "a line", may: deciders, owner: true, scene: lineOnDesk, fields: []string{"until", "2026-03-09"}, seen: "line"},
	{act: "undo", may: deciders, owner: true, scene: lineOnDesk, fields: []string{"reason", "the wrong file"}},
	{act: "close-period", may: deciders, owner: true, scene: closable, fields: []string{"until", "{until}"}, seen: "seen"},
	{act: "set-aside", about: "an exception", may: deciders, owner: true, scene: receiptGone, fields: []string{"reason", "archived there"}, seen: "version"},

	{act: "pause-rail", may: deciders, owner: true, scene: railRuns, fields: []string{"reason", "an incident"}, seen: "version", alone: true},
	{act: "resume-rail", may: deciders, owner: true, scene: railPaused, fields: []string{"reason", "over"}, seen: "version", alone: true},
	{act: "stop-run", may: deciders, owner: true, scene: runUnderWay, fields: []string{"reason", "it runs wild"}},
	{act: "run-job", may: deciders, owner: true, scene: at("/settings"), alone: true},

	{act: "test-notice", may: admins, owner: true, scene: at("/settings"), alone: true},
	{act: "verify-log", may: everyone, owner: true, scene: at("/audit"), alone: true, changesNothing: true},

	{act: "change-roles", may: admins, owner: true, scene: somebodyElse, fields: []string{"role", "approver"}, seen: "seen"},
	{act: "disable-person", may: admins, owner: true, scene: somebodyElse},
	{act: "enable-person", may: admins, owner: true, scene: somebodyDisabled},
	{act: "revoke-invite", may: admins, owner: true, scene: somebodyInvited},
	{act: "invite", may: admins, owner: true, scene: at("/settings/people"), fields: []string{"role", "viewer"}, alone: true},
}

// ofOnesOwn are the forms by which people sign in and keep their own account:
// there is nobody to refuse them to. Each has tests of its own.
var ofOnesOwn = []string{"login", "code", "confirm", "logout", "setup", "accept-invite", "set-password", "offer-second-factor", "confirm-second-factor", "drop-second-factor", "end-session", "end-other-sessions"}

// besideTheTable are forms that only one session or one person has, that need a
// second factor to be there, or that decide about many at once; who is refused
// them stands in the tests of their page.
var besideTheTable = []string{"import", "hand-back", "reset-second-factor", "take-back", "approve-many", "together"}

// TestEveryFormIsTakenFromWhoMayAndFromNobodyElse: each role, the owner of the
// token that asked, a stale form, a GET, another site, another tenant and nobody
// at all. What is refused leaves every table as it was.
func TestEveryFormIsTakenFromWhoMayAndFromNobodyElse(t *testing.T) {
	for _, row := range actTable {
		t.Run(strings.TrimSpace(row.act+" "+row.about), func(t *testing.T) {
			w := newServer(t, actsConfig)
			owner := w.person("default", "owner@example.com", deciders...)
			w.clerk()
			for _, role := range everyone {
				b := w.signIn(w.person("default", role+"@example.com", role))
				may := slices.Contains(row.may, role)
				row.tries(t, w, b, owner, role, may, http.StatusForbidden)
			}
			row.tries(t, w, w.signIn(owner), owner, "the owner", row.owner, http.StatusForbidden)
			row.refusesTheWrongWay(t, w, owner)
		})
	}
}

// tries lets a person send the form that stands on the page for who may.
func (row actRow) tries(t *testing.T, w *world, b browser, owner ledger.PersonRecord, name string, may bool, status int) {
	t.Helper()
	place := row.scene(w, owner)
	path, sent := row.form(t, w, place)
	onPage := strings.Contains(b.get(place).Body.String(), `data-act="`+row.act+`"`)
	before := w.everyTable()
	answer := b.post(path, sent)
	switch tables := tablesThatDiffer(before, w.everyTable()); {
	case may && (!onPage || answer.Code >= 400 || (len(tables) == 0) != row.changesNothing):
		t.Errorf("%s may, and was answered %d (the form was there: %v; changed: %v)\n%s", name, answer.Code, onPage, tables, mainText(answer))
	case !may && (onPage || answer.Code != status || len(tables) > 0):
		t.Errorf("%s may not, and was answered %d (the form was there: %v; changed: %v)\n%s", name, answer.Code, onPage, tables, mainText(answer))
	}
}

func (row actRow) refusesTheWrongWay(t *testing.T, w *world, owner ledger.PersonRecord) {
	t.Helper()
	place := row.scene(w, owner)
	path, sent := row.form(t, w, place)
	ana := w.signIn(w.person("default", "ana@example.com", deciders...))
	stranger := w.signIn(w.person("other", "stranger@example.com", deciders...))
	const isForm = "Content-Type: application/x-www-form-urlencoded"
	own, encoded := "Cookie: "+ana.cookie, sent.Encode()
	before := w.everyTable()
	refused := map[string]int{
		"GET":          ana.get(path + "?" + encoded).Code,
		"HEAD":         w.do(http.MethodHead, path+"?"+encoded, "", own).Code,
		"cross-site":   w.do(http.MethodPost, path, encoded, own, isForm, "Sec-Fetch-Site: cross-site").Code,
		"same site":    w.do(http.MethodPost, path, encoded, own, isForm, "Sec-Fetch-Site: same-site").Code,
		"other origin": w.do(http.MethodPost, path, encoded, own, isForm, "Origin: https://evil.example").Code,
		"another port": w.do(http.MethodPost, path, encoded, own, isForm, "Origin: http://example.com:81").Code,
		"text/plain":   w.do(http.MethodPost, path, encoded, own, "Content-Type: text/plain", "Sec-Fetch-Site: same-origin").Code,
		"no session":   w.do(http.MethodPost, path, encoded, isForm).Code,
	}
	if encoded != "" {
		refused["form in query"] = ana.post(path+"?"+encoded, nil).Code
	}
	if row.seen != "" {
		old := url.Values{}
		for name, values := range sent {
			old[name] = slices.Clone(values)
		}
		old.Set(row.seen, older(sent.Get(row.seen)))
		code := ana.post(path, old).Code
		if code != http.StatusConflict && code != http.StatusPreconditionFailed {
			t.Errorf("a stale form was answered %d", code)
		}
		refused["stale"] = code
	}
	if !row.alone {
		code := stranger.post(path, sent).Code
		if code != http.StatusNotFound {
			t.Errorf("another tenant was answered %d", code)
		}
		refused["other tenant"] = code
	}
	if tables := tablesThatDiffer(before, w.everyTable()); len(tables) > 0 {
		t.Errorf("something that was refused changed %v: %v", tables, refused)
	}
	for name, code := range refused {
		if code < 400 {
			t.Errorf("%s was answered %d", name, code)
		}
	}
	if answer := ana.post(path, sent); answer.Code >= 400 || (len(tablesThatDiffer(before, w.everyTable())) == 0) != row.changesNothing {
		t.Errorf("the same form in the right way was answered %d\n%s", answer.Code, mainText(answer))
	}
}

var formAct = regexp.MustCompile(`action="([^"]*)"`)

// form is the form as it stands on the page of somebody who may, filled in.
func (row actRow) form(t *testing.T, w *world, place string) (path string, sent url.Values) {
	t.Helper()
	counter++
	shown := w.clerk().get(place)
	forms := regexp.MustCompile(`<form[^>]*data-act="`+row.act+`"[^>]*>`).FindAllString(shown.Body.String(), -1)
	if len(forms) <= row.nth {
		t.Fatalf("%s has %d forms %s\n%s", place, len(forms), row.act, mainText(shown))
	}
	nth := row.nth
	for i := range forms { // of several forms of an act, the one that has our fields
		if row.fits(shown.Body.String(), row.act, i) {
			nth = i
			break
		}
	}
	sent = hidden(t, shown, row.act, nth)
	for i := 0; i < len(row.fields); i += 2 {
		_, until, _ := strings.Cut(place, "until=")
		sent.Set(row.fields[i], strings.NewReplacer("{n}", fmt.Sprint(counter), "{until}", until).Replace(row.fields[i+1]))
	}
	return html.UnescapeString(formAct.FindStringSubmatch(forms[nth])[1]), sent
}

// fits reports whether a form has an input for each field of the row.
func (row actRow) fits(page, act string, nth int) bool {
	all := regexp.MustCompile(`(?s)<form[^>]*data-act="`+act+`".*?</form>`).FindAllString(page, -1)
	for i := 0; i < len(row.fields); i += 2 {
		if !strings.Contains(all[nth], `name="`+row.fields[i]+`"`) {
			return false
		}
	}
	return true
}

// older is what a form would say that was drawn before the last change.
func older(seen string) string {
	if id, _, isLine := strings.Cut(seen, ":"); isLine && !strings.Contains(seen, "sha256") {
		return id + ":9999"
	}
	if strings.Trim(seen, "0123456789") == "" {
		return "9999"
	}
	return "hf1:sha256:00"
}

// everyTable is a hash of each table, as another program reads it from
// the disk. When a session was last seen says nothing about a decision.
func (w *world) everyTable() map[string]string {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.folder, "holdfast.db")+"?mode=ro&_pragma=busy_timeout(5000)")
	must(w.t, err)
	defer db.Close()
	all := map[string]string{}
	for _, table := range column(w.t, db, `select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name`) {
		columns := slices.DeleteFunc(column(w.t, db, `select name from pragma_table_info('`+table+`') order by cid`), func(name string) bool { return name == "seen_at" })
		for i := range columns {
			columns[i] = "quote(" + columns[i] + ")"
		}
		rows := column(w.t, db, `select `+strings.Join(columns, `||','||`)+` from `+table+` order by rowid`)
		all[table] = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(rows, "\n"))))
	}
	return all
}

// tablesThatDiffer names the tables in which two readings differ.
func tablesThatDiffer(before, after map[string]string) (tables []string) {
	for table := range after {
		if before[table] != after[table] {
			tables = append(tables, table)
		}
	}
	slices.Sort(tables)
	return tables
}

func column(t testing.TB, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.Query(query)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var s string
		must(t, rows.Scan(&s))
		all = append(all, s)
	}
	must(t, rows.Err())
	return all
}

// TestEveryFormHasARow: a form that a page gets tomorrow, and an address that takes
// one, is in the table, or this says so.
func TestEveryFormHasARow(t *testing.T) {
	known := slices.Concat(ofOnesOwn, besideTheTable)
	for _, row := range actTable {
		known = append(known, row.act)
	}
	found := map[string]bool{}
	files, err := filepath.Glob("../views/*.templ")
	must(t, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		must(t, err)
		for _, m := range regexp.MustCompile(`data-act="([^"]+)"`).FindAllStringSubmatch(string(b), -1) {
			found[m[1]] = true
		}
	}
	for _, route := range newServer(t).router().Routes() {
		act := route.Path[strings.LastIndex(route.Path, "/")+1:]
		if route.Method == http.MethodPost && !strings.HasPrefix(route.Path, "/v1/") && route.Path != "/mcp" && !strings.HasPrefix(act, ":") {
			found[act] = true
		}
	}
	for name := range acts { // those of an operation have one address, and their name is a part of it
		found[name] = true
	}
	if len(found) < 40 {
		t.Fatalf("only %d forms were found", len(found))
	}
	for name := range found {
		if !slices.Contains(known, name) {
			t.Errorf("the form %s is in no row of the table of acts", name)
		}
	}
}

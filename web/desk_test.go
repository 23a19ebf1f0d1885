package web

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// deskConfig is pagesConfig with statements.
var deskConfig = func() string {
	rules := strings.ReplaceAll(pagesRules, "    account: test\n", "    account: test\n    statement: { format: csv, amounts: minor, columns: { id: id, amount: amount, currency: currency, date: date, reference: reference, stamp: stamp, counterparty: who } }\n")
	return strings.ReplaceAll(rules+"tenants:\n  other:"+strings.ReplaceAll(rules, "\n", "\n    "), "SCHEMA", pagesSchema)
}()

const fileHead = "id,amount,currency,date,reference,stamp,who\n"

// fileLine is a line of a file as the rail's statements are written.
func fileLine(id string, amount int64, more ...string) string {
	for len(more) < 3 {
		more = append(more, "")
	}
	return fmt.Sprintf("%s,%d,EUR,2026-03-04,%s\n", id, amount, strings.Join(more, ","))
}

// send sends the form of the first step, as a browser without script does.
func (b browser) send(rail, name, data string, headers ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	must(b.t, m.WriteField("rail", rail))
	part, err := m.CreateFormFile("file", name)
	must(b.t, err)
	_, err = part.Write([]byte(data))
	must(b.t, err)
	must(b.t, m.Close())
	if len(headers) == 0 {
		headers = []string{"Sec-Fetch-Site: same-origin"}
	}
	return b.do("POST", "/statements/import", body.String(), append(headers, "Cookie: "+b.cookie, "Content-Type: "+m.FormDataContentType())...)
}

// shown is the preview that a file leads to.
func (b browser) shown(rail, name, data string) (at string, page *httptest.ResponseRecorder) {
	b.t.Helper()
	answer := b.send(rail, name, data)
	at = answer.Header().Get("Location")
	if answer.Code != 303 || !strings.HasPrefix(at, "/statements/preview/") {
		b.t.Fatalf("%d %s\n%s", answer.Code, at, mainText(answer))
	}
	return at, b.get(at)
}

// hidden are the hidden fields of the form of an act on a page, the nth one.
func hidden(t testing.TB, page *httptest.ResponseRecorder, act string, nth int) url.Values {
	t.Helper()
	forms := regexp.MustCompile(`(?s)<form[^>]*data-act="`+act+`".*?</form>`).FindAllString(page.Body.String(), -1)
	if len(forms) <= nth {
		t.Fatalf("the page has %d forms %s", len(forms), act)
	}
	fields := url.Values{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(forms[nth], -1) {
		fields.Add(m[1], strings.ReplaceAll(m[2], "&amp;", "&"))
	}
	return fields
}

// imports takes a file in, by both steps, and gives the address of its desk.
func (b browser) imports(data string) string { return b.importsOn("card", data) }

func (b browser) importsOn(rail, data string) string {
	b.t.Helper()
	_, page := b.shown(rail, "march.csv", data)
	answer := b.post("/statements/import", hidden(b.t, page, "import", 0))
	desk := answer.Header().Get("Location")
	if answer.Code != 303 || !strings.HasPrefix(desk, "/statements/stm_") {
		b.t.Fatalf("%d %s\n%s", answer.Code, desk, mainText(answer))
	}
	return desk
}

func (w *world) finance() browser { return w.signIn(w.person("default", "fin@example.com", "finance")) }

// bought is a confirmed operation with that receipt.
func (w *world) bought(amount int64, receipt string) ledger.Operation {
	w.t.Helper()
	o := w.ask(wanted{amount: amount})
	o = w.answer(o, ledger.Answer{Finding: ledger.Found, Receipt: &ledger.Receipt{ID: receipt, Amount: &amount, Currency: "EUR", Recipient: o.Terms.Recipient, Stamp: o.OrderID}})
	if o.Status != ledger.Confirmed {
		w.t.Fatalf("it is %s %s", o.Status, o.Reason)
	}
	return o
}

func (w *world) imported() (n int) {
	w.t.Helper()
	all, err := w.Store.Statements(w.t.Context(), "default", "", 10)
	must(w.t, err)
	return len(all)
}

func (w *world) lines() []ledger.KeptLine {
	w.t.Helper()
	all, err := w.Store.StatementLines(w.t.Context(), "default", store.LineFilter{Limit: 1000})
	must(w.t, err)
	return all
}

func TestAFileIsShownBeforeItIsStored(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	shows(t, fin.get("/statements"), 200, "No statements yet.", `data-act="import"`, `enctype="multipart/form-data"`, `name="rail"`, `name="file"`)
	at, page := fin.shown("card", `C:\books\march.csv`, fileHead+fileLine("l1", 4800, "r-1")+fileLine("l2", -700, "rent"))
	shows(t, page, 200, "CSV, account test, 4 Mar 2026, 2 lines", "new <b>2</b> · already imported <b>0</b> · unreadable <b>0</b>", "€48.00", "money in", "-€7.00", "money out", "r-1", "march.csv", "Import 2 new lines", "nothing is stored yet")
	hides(t, page, "books")
	if w.imported() != 0 {
		t.Fatal("the preview stored it")
	}
	form := hidden(t, page, "import", 0)
	changed := url.Values{"upload": form["upload"], "sha256": {strings.Repeat("0", 64)}}
	shows(t, fin.post("/statements/import", changed), 409, "not the file that was shown")
	answer := fin.post("/statements/import", form)
	if answer.Code != 303 || w.imported() != 1 {
		t.Fatal(answer.Code, w.imported())
	}
	shows(t, fin.get(answer.Header().Get("Location")), 200, "2 lines: 0 matched · 0 suggested · 2 unmatched", "On the statement, not ours.")
	shows(t, fin.get(at), 410, "not held any more", "Nothing was stored")
	shows(t, fin.post("/statements/import", form), 410, "Choose it again")
	shows(t, fin.get("/statements"), 200, "march.csv", "On the statement, not ours 2", "fin@example.com")

	_, page = fin.shown("card", "march.csv", fileHead+fileLine("l1", 4800, "r-1")+fileLine("l3", 9900))
	shows(t, page, 200, "new <b>1</b> · already imported <b>1</b>", "overlaps 1 statement(s)")
}

func TestWhatAFileLeavesOpenIsAskedOnThePage(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	_, page := fin.shown("card", "a.csv", fileHead+"l1,4800,EUR,03/04/2026,,,\nl2,4800,EUR,04/05/2026,,,\n")
	shows(t, page, 422, `name="answer"`, `type="radio"`, "Read it so")
	form := hidden(t, page, "import", 0)
	form.Set("answer", "dmy")
	answer := fin.post("/statements/import", form)
	if answer.Code != 303 || w.imported() != 0 {
		t.Fatal(answer.Code, w.imported())
	}
	page = fin.get(answer.Header().Get("Location"))
	shows(t, page, 200, "3 Apr", "4 May 2026")
	if answer := fin.post("/statements/import", hidden(t, page, "import", 0)); answer.Code != 303 || w.imported() != 1 {
		t.Error(answer.Code, w.imported())
	}
}

func TestWhatIsWrongWithAFileIsSaidWithItsLine(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	_, page := fin.shown("card", "a.csv", fileHead+fileLine("l1", 4800)+"l2,12x,EUR,2026-03-04,,,\n")
	shows(t, page, 422, "Line 3", "column", "amount", "Nothing was stored", "choose it again")
	hides(t, page, `data-act="import"`)
	for name, c := range map[string]struct {
		rail, file, data string
		status           int
		says             string
	}{
		"no file":   {"card", "", "", 422, "Choose a file."},
		"empty":     {"card", "a.csv", "", 422, "The file is empty"},
		"no rail":   {"moon", "a.csv", fileHead, 422, "Choose the rail"},
		"too large": {"card", "a.csv", strings.Repeat("x", maxUpload+1), 413, "The file is larger than 32 MiB. Split it by day or month"},
		"far more":  {"card", "a.csv", strings.Repeat("x", maxUpload+1<<20), 413, "larger than 32 MiB"},
	} {
		answer := fin.send(c.rail, c.file, c.data)
		if answer.Code != c.status || !strings.Contains(text(answer), c.says) {
			t.Errorf("%s: %d %s", name, answer.Code, mainText(answer))
		}
	}
	if w.imported() != 0 {
		t.Error("something was stored")
	}
}

func TestAHeldFileIsOnlyTheSessionsThatSentIt(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	at, page := fin.shown("card", "a.csv", fileHead+fileLine("l1", 4800))
	form := hidden(t, page, "import", 0)
	for name, b := range map[string]browser{
		"another session of the same person": w.signIn(fin.who),
		"another person":                     w.signIn(w.person("default", "jon@example.com", "finance")),
		"another tenant":                     w.signIn(w.person("other", "eve@example.com", "finance")),
	} {
		if got, posted := b.get(at), b.post("/statements/import", form); got.Code != 410 || posted.Code != 410 {
			t.Errorf("%s: %d, %d", name, got.Code, posted.Code)
		}
	}
	w.pass(heldFor + time.Second)
	if got := fin.get(at); got.Code != 410 || w.imported() != 0 {
		t.Error("it is held for ever: ", got.Code)
	}
}

func TestHeldFilesAreBounded(t *testing.T) {
	var h heldFiles
	for n := range 3 * maxHeldFiles {
		h.hold(heldFile{session: [32]byte{byte(n), byte(n >> 8)}, data: make([]byte, 1)}, int64(n))
	}
	if len(h.all) > maxHeldFiles {
		t.Errorf("%d are held", len(h.all))
	}
	h = heldFiles{}
	for n := range 8 {
		h.hold(heldFile{session: [32]byte{byte(n)}, data: make([]byte, maxUpload)}, int64(n))
	}
	bytes := 0
	for _, f := range h.all {
		bytes += len(f.data)
	}
	if bytes > maxHeldBytes {
		t.Errorf("%d bytes are held", bytes)
	}
}

func TestWhoMayOnlyReadSeesStatementsAndChangesNothing(t *testing.T) {
	w := newServer(t, deskConfig)
	fin, viewer := w.finance(), w.signIn(w.person("default", "viewer@example.com", "viewer"))
	w.bought(4800, "other-id")
	desk := fin.imports(fileHead + fileLine("l1", 4800))
	line := w.lines()[0]
	for _, path := range []string{desk, "/statements", "/statements/close?rail=card&account=test"} {
		page := viewer.get(path)
		shows(t, page, 200, "data-refused=")
		hides(t, page, `data-act="match"`, `data-act="set-aside"`, `data-act="take"`, `data-act="import"`, `data-act="undo"`, `data-act="close-period"`)
	}
	shows(t, viewer.send("card", "a.csv", fileHead+fileLine("l9", 1)), 403, "You may not do this")
	seen := fmt.Sprintf("%d:%d", line.ID, line.Version)
	for act, form := range map[string]url.Values{
		"import": {"upload": {"x"}}, "match": {"line": {seen}, "operation": {"op"}}, "unmatch": {"line": {seen}, "reason": {"x"}}, "set-aside": {"line": {seen}, "reason": {"x"}},
		"take": {"line": {seen}}, "hand-back": {"line": {seen}}, "snooze": {"line": {seen}}, "undo": {"statement": {line.StatementID}, "reason": {"x"}},
		"close-period": {"rail": {"card"}, "account": {"test"}, "until": {"2026-03-03"}},
	} {
		if answer := viewer.post("/statements/"+act, form); answer.Code != 403 || !strings.Contains(text(answer), "Nothing from you was recorded") {
			t.Errorf("%s: %d %s", act, answer.Code, mainText(answer))
		}
	}
	if now := w.lines()[0]; now.Version != line.Version {
		t.Error("the line changed")
	}
}

func TestAFormFromElsewhereImportsNothing(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	answer := fin.send("card", "a.csv", fileHead+fileLine("l1", 4800), "Sec-Fetch-Site: cross-site")
	shows(t, answer, 403, "Another site", `href="/statements"`)
	answer = fin.send("card", "a.csv", fileHead+fileLine("l1", 4800), "Origin: https://evil.example")
	shows(t, answer, 403, "Nothing was recorded")
}

func TestOtherTenantsStatementIsAsAbsent(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	desk := fin.imports(fileHead + fileLine("l1", 4800))
	line := w.lines()[0]
	eve := w.signIn(w.person("other", "eve@example.com", "finance"))
	shows(t, eve.get(desk), 404, "No statement stm_")
	shows(t, eve.get("/statements"), 200, "No statements yet.")
	shows(t, eve.get("/statements/close?rail=card&account=test"), 404)
	seen := fmt.Sprintf("%d:%d", line.ID, line.Version)
	for act, form := range map[string]url.Values{
		"match": {"line": {seen}, "operation": {"op"}}, "unmatch": {"line": {seen}, "reason": {"x"}}, "set-aside": {"line": {seen}, "reason": {"x"}},
		"take": {"line": {seen}}, "snooze": {"line": {seen}}, "undo": {"statement": {line.StatementID}, "reason": {"x"}},
	} {
		if answer := eve.post("/statements/"+act, form); answer.Code != 404 {
			t.Errorf("%s: %d %s", act, answer.Code, mainText(answer))
		}
	}
	if now := w.lines()[0]; now.Version != line.Version {
		t.Error("the line changed")
	}
}

func TestLinesAndOperationsAreJoinedOnTheDesk(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	a, b := w.bought(3000, "pay-a"), w.bought(2000, "pay-b")
	desk := fin.imports(fileHead + fileLine("payout-1", 4900))
	line := w.lines()[0]
	page := fin.get(desk)
	shows(t, page, 200, `type="checkbox" name="line" form="join"`, `name="operation" form="join" value="`+a.OperationID+`"`, `name="operation" form="join" value="`+b.OperationID+`"`, "Not on a statement yet")
	form := hidden(t, page, "match", 0)
	form["line"] = []string{fmt.Sprintf("%d:%d", line.ID, line.Version)}
	form["operation"] = []string{a.OperationID, b.OperationID, ""}
	again := fin.post("/statements/match", form)
	shows(t, again, 422, "The amounts differ by -1.00 EUR", fmt.Sprintf(`value="%d:%d" checked`, line.ID, line.Version), `value="`+b.OperationID+`" checked`)
	form.Set("explained_as", "other")
	shows(t, fin.post("/statements/match", form), 422, "Say what the difference is")
	form.Set("explained_as", "fee")
	if answer := fin.post("/statements/match", form); answer.Code != 303 || !strings.HasPrefix(answer.Header().Get("Location"), desk) {
		t.Fatal(answer.Code, mainText(answer))
	}
	shows(t, fin.get(desk), 200, "1 line: 1 matched", a.OperationID, b.OperationID, "explained as fee", `data-act="unmatch"`)
	shows(t, fin.get("/operations/"+a.OperationID), 200, "Seen on statement", "payout-1", "Open the statement")

	shows(t, fin.post("/statements/match", form), 409, "This changed while you were reading.")
	matched := w.lines()[0]
	undo := url.Values{"line": {fmt.Sprintf("%d:%d", matched.ID, matched.Version)}, "back": {desk}}
	shows(t, fin.post("/statements/unmatch", undo), 422, "A reason is needed")
	undo.Set("reason", "it is another payout")
	if answer := fin.post("/statements/unmatch", undo); answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	shows(t, fin.get("/operations/"+a.OperationID), 200, "Not on a statement yet")
}

func TestASuggestionIsTakenOrTurnedDown(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	one, two := w.bought(3000, "pay-a"), w.bought(2000, "pay-b")
	desk := fin.imports(fileHead + fileLine("x-1", 3000, "", "", one.Terms.Recipient) + fileLine("x-2", 2000, "", "", two.Terms.Recipient))
	page := fin.get(desk)
	shows(t, page, 200, "Suggested: same amount, day and counterparty (proves nothing)", one.OperationID, "Not this one")
	if answer := fin.post("/statements/match", hidden(t, page, "match", 0)); answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	no := hidden(t, page, "unmatch", 1)
	no.Set("reason", "another customer")
	if answer := fin.post("/statements/unmatch", no); answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	_, err := w.Store.MatchStatements(t.Context())
	must(t, err)
	lines := w.lines()
	if lines[0].State != ledger.LineMatched || lines[0].OperationID != one.OperationID || lines[1].State != ledger.LineUnmatched {
		t.Errorf("%+v", lines)
	}
}

func TestExceptionsAreAnsweredOnThePage(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	fin.imports(fileHead + fileLine("l1", 4800) + fileLine("l2", -700, "rent"))
	page := fin.get("/statements")
	shows(t, page, 200, "On the statement, not ours 2", "-€7.00", "this was not paid through here")
	shows(t, fin.get("/"), 200, "2 lines and operations need an answer", `data-live="statements-n">2<`)

	if answer := fin.post("/statements/take", hidden(t, page, "take", 0)); answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	shows(t, fin.post("/statements/take", hidden(t, page, "take", 0)), 409, "Nothing from you was recorded")
	page = fin.get("/statements")
	shows(t, page, 200, "has this.", `data-act="hand-back"`)
	if answer := fin.post("/statements/hand-back", hidden(t, page, "hand-back", 0)); answer.Code != 303 {
		t.Fatal(answer.Code)
	}
	page = fin.get("/statements")
	aside := hidden(t, page, "set-aside", 0)
	shows(t, fin.post("/statements/set-aside", aside), 422, "A reason is needed")
	aside.Set("reason", "Paid at the desk")
	if answer := fin.post("/statements/set-aside", aside); answer.Code != 303 {
		t.Fatal(answer.Code)
	}
	later := hidden(t, page, "snooze", 1)
	for _, wrong := range []string{"2026-03-01", "soon", "2199-01-01"} {
		later.Set("until", wrong)
		if answer := fin.post("/statements/snooze", later); answer.Code != 422 {
			t.Errorf("until %s: %d", wrong, answer.Code)
		}
	}
	later.Set("until", "2026-03-09")
	if answer := fin.post("/statements/snooze", later); answer.Code != 303 {
		t.Fatal(answer.Code)
	}
	page = fin.get("/statements")
	shows(t, page, 200, "Nothing on the statements was paid outside holdfast.")
	hides(t, fin.get("/"), "need an answer")
	shows(t, fin.get("/statements?snoozed=1"), 200, "Put away until 9 Mar 2026")
	shows(t, fin.get(string("/statements/"+w.lines()[0].StatementID+"?state=set_aside")), 200, "Paid at the desk")
	w.pass(6 * 24 * time.Hour)
	fin = w.signIn(fin.who)
	shows(t, fin.get("/statements"), 200, "-€7.00")
	shows(t, fin.get("/statements?tab=nonsense"), 404)
	for _, odd := range []string{"", "x:1", "1:0", "-1:1"} {
		if answer := fin.post("/statements/take", url.Values{"line": {odd}}); answer.Code != 422 {
			t.Errorf("line %q: %d", odd, answer.Code)
		}
	}
}

// What no statement shows stands on a tab of its own, and is answered alike.
func TestAnOperationThatNoStatementShowsIsAnswered(t *testing.T) {
	w := newServer(t, deskConfig)
	o := w.bought(4800, "pay-a")
	w.pass(6 * 24 * time.Hour)
	fin := w.finance()
	fin.imports(fileHead + fileLine("l1", 100) + "l2,200,EUR,2026-03-10,,,\n")
	_, err := w.Store.MatchStatements(t.Context())
	must(t, err)
	shows(t, fin.get("/operations/"+o.OperationID), 200, "Missing from statement")
	page := fin.get("/statements?tab=missing")
	shows(t, page, 200, "Ours, not on the statement 1", o.OperationID, "no statement that covers the day shows it")
	form := hidden(t, page, "set-aside", 0)
	form.Set("reason", "the bank says next week")
	if answer := fin.post("/statements/set-aside", form); answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	shows(t, fin.post("/statements/set-aside", form), 409)
	shows(t, fin.get("/statements?tab=missing"), 200, "No confirmed operation is missing from its statement.")
}

func TestALineThatAnswersAnUnknownFillsInTheForm(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	looking, o := w.lost(""), w.held("", false)
	desk := fin.importsOn("wire", fileHead+fileLine("ch_77", -4800, "", o.OrderID))
	other := fin.imports(fileHead + fileLine("ch_76", 100, "", looking.OrderID))
	shows(t, fin.get(other), 200, "This line answers an unknown.", "The provider is being asked.", "/operations/"+looking.OperationID+"?line=")
	line := w.lines()[0]
	link := fmt.Sprintf("/operations/%s?line=%d", o.OperationID, line.ID)
	shows(t, fin.get(desk), 200, "This line answers an unknown.", `href="`+link+`#decide"`)
	shows(t, fin.get("/operations/"+o.OperationID), 200, "On statements", "ch_77", "This line answers an unknown.")
	page := fin.get(link)
	shows(t, page, 200, `name="receipt_id" type="text" maxlength="500" autocomplete="off" spellcheck="false" required value="ch_77"`, `required value="48.00"`, "Seen on the statement of test, line 2")
	if w.stored("default", o.OperationID).Status.Final() {
		t.Fatal("a link decided")
	}
	hides(t, fin.get("/operations/"+o.OperationID+"?line=1"), `value="ch_77"`)
	form := hidden(t, page, "happened", 0)
	form.Set("receipt_id", "ch_77")
	form.Set("amount", "48.00")
	form.Set("reason", "Seen on the statement")
	if answer := fin.post("/operations/"+o.OperationID+"/happened", form); answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	_, err := w.Store.MatchStatements(t.Context())
	must(t, err)
	if l := w.lines()[0]; l.State != ledger.LineMatched || l.OperationID != o.OperationID {
		t.Errorf("afterwards it is %s %s", l.State, l.OperationID)
	}
}

func TestALineThatOpenedARefundLeadsToIt(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	o := w.bought(4800, "ch_77")
	desk := fin.imports(fileHead + fileLine("ch_77", 4800, o.Terms.Reference, o.OrderID) + fileLine("ch_78", 4800, o.Terms.Reference, o.OrderID))
	owed, err := w.Store.RefundsOwed(t.Context(), "default")
	must(t, err)
	if len(owed) != 1 || owed[0].ReceiptID != "ch_78" {
		t.Fatalf("%+v", owed)
	}
	shows(t, fin.get(desk+"?state=unmatched"), 200, "Twice on the statement.", "A refund owed was opened: <b>€48.00</b>", `href="/refunds/`+owed[0].ID+`"`)
	shows(t, fin.get("/statements?tab=twice"), 200, `href="/refunds/`+owed[0].ID+`"`)
}

func TestAPeriodIsClosedOnItsPage(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	desk := fin.imports(fileHead + fileLine("l1", 4800))
	w.pass(48 * time.Hour)
	fin = w.signIn(fin.who)
	at := "/statements/close?rail=card&account=test&until=2026-03-04"
	page := fin.get(at)
	shows(t, page, 200, "Sheet up to 4 Mar 2026", "1 exception needs an answer first.", "€48.00", `data-act="close-period"`)
	form := hidden(t, page, "close-period", 0)
	form.Set("until", "2026-03-04")
	shows(t, fin.post("/statements/close-period", form), 422, "1 exception(s) need an answer first")
	form.Set("until", "2026-03-05")
	shows(t, fin.post("/statements/close-period", form), 422, "end with 4 Mar 2026")
	form.Set("until", "someday")
	shows(t, fin.post("/statements/close-period", form), 422, "can't be read")
	aside := hidden(t, page, "set-aside", 0)
	aside.Set("reason", "Paid at the desk")
	if answer := fin.post("/statements/set-aside", aside); answer.Code != 303 || answer.Header().Get("Location") != strings.Replace(at, "rail=card&account=test", "account=test&rail=card", 1) {
		t.Fatal(answer.Code, answer.Header(), mainText(answer))
	}
	form.Set("until", "2026-03-04")
	shows(t, fin.post("/statements/close-period", form), 409, "was not what you saw")
	form = hidden(t, fin.get(at), "close-period", 0)
	form.Set("until", "2026-03-04")
	answer := fin.post("/statements/close-period", form)
	if answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	shows(t, fin.get(answer.Header().Get("Location")), 200, "Closed up to 4 Mar 2026", "1: 0 matched, 1 set aside", "fin@example.com", "is closed up to 4 Mar 2026 already")
	shows(t, fin.post("/statements/close-period", form), 409)
	undo := hidden(t, fin.get(desk), "undo", 0)
	undo.Set("reason", "wrong file")
	shows(t, fin.post("/statements/undo", undo), 422, "is closed")
}

func TestAnImportIsUndoneAsAWhole(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	desk := fin.imports(fileHead + fileLine("l1", 4800))
	form := hidden(t, fin.get(desk), "undo", 0)
	shows(t, fin.post("/statements/undo", form), 422, "A reason is needed")
	form.Set("reason", "wrong account")
	if answer := fin.post("/statements/undo", form); answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	shows(t, fin.post("/statements/undo", form), 409)
	shows(t, fin.get(desk), 200, "wrong account", "fin@example.com")
	shows(t, fin.get("/statements"), 200, "undone by", "On the statement, not ours 0")
	if len(w.lines()) != 0 {
		t.Error("lines are left")
	}
}

func TestWhatAFileSaysIsInert(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	evil := `<script>alert(1)</script>`
	name := `<img src=x onerror=alert(1)>.csv`
	_, page := fin.shown("card", name, fileHead+fileLine("l1", 4800, evil, "", "pay \u202e now"))
	shows(t, page, 200, "U+202E")
	for _, page := range []*httptest.ResponseRecorder{page, fin.get(fin.imports(fileHead + fileLine("l1", 4800, evil, "", "pay \u202e now"))), fin.get("/statements")} {
		if body := page.Body.String(); strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x") || strings.Contains(body, "\u202e") {
			t.Error("what the file says is alive")
		}
	}
}

func TestADeskOfManyLinesIsPaged(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	var file strings.Builder
	file.WriteString(fileHead)
	for n := range 120 {
		file.WriteString(fileLine("l"+strconv.Itoa(n), int64(n+1)))
	}
	desk := fin.imports(file.String())
	next := regexp.MustCompile(`rel="next" href="([^"]*)"`)
	for _, at := range []string{desk, "/statements"} {
		seen := map[string]bool{}
		for pages := 0; at != "" && pages < 5; pages++ {
			page := fin.get(at)
			for _, m := range regexp.MustCompile(`<li class="line" id="(line-\d+)"`).FindAllStringSubmatch(page.Body.String(), -1) {
				if seen[m[1]] {
					t.Errorf("%s twice", m[1])
				}
				seen[m[1]] = true
			}
			if at = ""; next.MatchString(page.Body.String()) {
				at = strings.ReplaceAll(next.FindStringSubmatch(page.Body.String())[1], "&amp;", "&")
			}
		}
		if len(seen) != 120 {
			t.Errorf("%d lines were seen", len(seen))
		}
	}
}

func TestOpenLinesAreMeasuredByAccount(t *testing.T) {
	w := newServer(t, deskConfig)
	fin := w.finance()
	fin.imports(fileHead + fileLine("l1", 4800) + fileLine("l2", 100))
	w.MetricsToken = "t"
	answer := w.do("GET", "/metrics", "", "Authorization: Bearer t")
	if !strings.Contains(answer.Body.String(), `holdfast_statement_lines_unmatched{account="test",rail="card",tenant="default"} 2`) {
		t.Error("the scrape does not tell it")
	}
	shows(t, fin.get("/rails/numbers"), 200, "Statement lines without an operation", "2 lines in 1 account")
}

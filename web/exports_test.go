package web

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// checker runs a tool that others wrote over a file, and gives what it printed.
// Without the tool the test fails: nobody else adds the books up.
func checker(t testing.TB, name string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v; make test installs it", err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "BEANCOUNT_DISABLE_LOAD_CACHE=1")
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", name, err, complaint.String())
	}
	if name == "bean-check" && complaint.Len() > 0 {
		return out.String(), errors.New(complaint.String())
	}
	return out.String(), nil
}

func onDisk(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// table reads a CSV file as its reader does, by the names of the columns. The mark
// in front of texts is taken away.
func table(t testing.TB, text string) (rows []map[string]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	must(t, err)
	for _, cells := range all[1:] {
		row := map[string]string{}
		for n, name := range all[0] {
			row[name] = strings.TrimPrefix(cells[n], textMark)
		}
		rows = append(rows, row)
	}
	return rows
}

// accountants is what hledger adds up, as account and currency → amount.
func accountants(t testing.TB, file string) map[string]string {
	t.Helper()
	out, err := checker(t, "hledger", "-f", file, "bal", "--flat", "--no-total", "--empty", "--layout=bare", "-O", "csv")
	must(t, err)
	sums := map[string]string{}
	for _, row := range table(t, out) {
		if row["commodity"] != "" {
			sums[row["account"]+" "+row["commodity"]] = row["balance"]
		}
	}
	return sums
}

// exportConfig names a currency of six digits and one of none but its own.
var exportConfig = strings.Replace(moneyConfig, "rails:\n", "currencies: { USDC: 6, 9COIN: 8 }\nrails:\n", 1)

// books is a world with money of every kind in its ledger: confirmed, owed in both
// directions, settled in part, waived, and come back.
func books(t testing.TB) (*world, browser) {
	w := newServer(t, exportConfig)
	ana, bo := w.person("default", "ana@example.com", "finance"), w.person("default", "bo@example.com", "admin")
	w.person("other", "eve@example.net", "finance")
	for n, code := range []string{"EUR", "EUR", "JPY", "BHD", "USDC", "9COIN"} {
		amount := int64(9_999*(n+1) + n)
		w.answer(w.ask(wanted{currency: code, amount: amount, recipient: "=1+1"}), ledger.Answer{Finding: ledger.Found, HTTPStatus: 201,
			Receipt: &ledger.Receipt{ID: fmt.Sprint("000123", n), Amount: &amount}})
	}
	w.ask(wanted{amount: 777}) // not confirmed
	stranger := int64(4444)
	w.answer(w.ask(wanted{tenant: "other", amount: stranger, recipient: "acct_of_others"}), ledger.Answer{Finding: ledger.Found, HTTPStatus: 201, Receipt: &ledger.Receipt{ID: "x", Amount: &stranger}})
	w.pass(26 * time.Hour)

	b := w.signIn(ana)
	b.act(w.held("", true), "happened-twice", "receipt_id", "w_1", "second_receipt_id", "w_2", "reason", "both stand there") // a payout
	w.pass(time.Hour)
	agent := ledger.Holder{Kind: ledger.Agent, Name: "agent-1"}
	report := func(receipt, customer, rail, code string, amount int64) ledger.RefundOwed {
		e, _, err := w.Store.ReportRefund(t.Context(), store.RefundReport{TenantID: "default", ReceiptID: receipt, Rail: rail, Amount: amount, Currency: code,
			Cause: ledger.CauseNotDelivered, Customer: customer, Reason: "=HYPERLINK(\"http://example.com\"), said \"they\"\r\nsecond line", By: agent})
		must(t, err)
		return e
	}
	decide := func(p ledger.PersonRecord, e ledger.RefundOwed) store.RefundDecision {
		now, err := w.Store.RefundOwed(t.Context(), "default", e.ID)
		must(t, err)
		return store.RefundDecision{Person: p, Version: now.Version, Reason: "as agreed; 50% of it, \"half\""}
	}
	part := report("9912140633506421", "Müller & Söhne; GmbH, \"Bonn\"", "card", "EUR", 10_001)
	_, err := w.Store.ProveRefund(t.Context(), "default", part.ID, decide(ana, part), store.RefundProof{Amount: 4_000, ID: "00012345"})
	must(t, err)
	for _, p := range []ledger.PersonRecord{ana, bo} {
		_, _, err := w.Store.WaiveRefund(t.Context(), "default", part.ID, decide(p, part))
		must(t, err)
	}
	back := report("ch_2", "-cus", "wire", "USDC", 1<<53-1)
	_, err = w.Store.ProveRefund(t.Context(), "default", back.ID, decide(ana, back), store.RefundProof{Amount: 1<<53 - 1, ID: "tx_1"})
	must(t, err)
	paid, err := w.Store.RefundSettlements(t.Context(), "default", back.ID)
	must(t, err)
	_, err = w.Store.BounceRefund(t.Context(), "default", paid[0].ID, "the account is closed", ledger.Holder{Kind: ledger.Person, Name: ana.Email})
	must(t, err)
	report("ch_3", "", "wire", "JPY", 5)
	report("ch_4", "cus", "wire", "9COIN", 12)
	return w, w.signIn(ana) // the clock moved past the first session
}

func (b browser) file(path string) string {
	b.t.Helper()
	answer := b.get(path)
	if answer.Code != http.StatusOK {
		b.t.Fatalf("%s: %d %s", path, answer.Code, mainText(answer))
	}
	return answer.Body.String()
}

// expected is what the ledger itself says that the accounts of the books hold.
func expected(t testing.TB, w *world) map[string]string {
	t.Helper()
	money := w.Store.Rulebook("default").Currencies
	sums := map[string]*big.Int{}
	add := func(account, code string, amount int64) {
		name, _ := money.Commodity(code)
		key := account + " " + name
		if sums[key] == nil {
			sums[key] = new(big.Int)
		}
		sums[key].Add(sums[key], big.NewInt(amount))
	}
	must(t, w.Store.WalkOperations(t.Context(), "default", store.Filter{Statuses: []ledger.Status{ledger.Confirmed}}, func(o ledger.Operation, _ int64) error {
		effect, amount := "Income", o.Terms.Amount
		if o.Effect == "payout" {
			effect, amount = "Expenses", -amount
		}
		add("Assets:Rail:"+ledger.AccountName(o.Rail), o.Terms.Currency, amount)
		add(effect+":"+ledger.AccountName(o.Effect), o.Terms.Currency, -amount)
		return nil
	}))
	balances, err := w.Store.RefundBalances(t.Context(), "default")
	must(t, err)
	for _, b := range balances {
		class, equity, sign := "Liabilities:WeOwe:", "Equity:WeOwe:", int64(-1)
		if b.Direction == ledger.OwedToUs {
			class, equity, sign = "Assets:OwedToUs:", "Equity:OwedToUs:", 1
		}
		party := ledger.AccountName(b.Rail) + ":" + ledger.AccountName(b.Customer) + ":"
		add(equity+party+"Origin", b.Currency, -sign*b.Owed)
		add(class+party+"Open", b.Currency, sign*(b.Open-b.Settling))
		for account, amount := range map[string]int64{class + party + "Settling": b.Settling, equity + party + "Settled": b.Settled, equity + party + "Waived": b.Waived} {
			if amount != 0 {
				add(account, b.Currency, sign*amount)
			}
		}
	}
	want := map[string]string{}
	for key, sum := range sums {
		_, name, _ := strings.Cut(key, " ")
		code := name
		if strings.HasPrefix(name, "X-") {
			code = "9COIN"
		}
		want[key], _ = money.DecimalSum(sum, code)
	}
	return want
}

func sameSums(t *testing.T, who string, got, want map[string]string) {
	t.Helper()
	zero := func(s string) bool { return strings.Trim(s, "-0.") == "" }
	for key, sum := range want {
		if got[key] != sum && !(zero(got[key]) && zero(sum)) {
			t.Errorf("%s: %s is %q, and the ledger says %q", who, key, got[key], sum)
		}
	}
	for key, sum := range got {
		if _, known := want[key]; !known && !zero(sum) {
			t.Errorf("%s: %s holds %s, and the ledger knows nothing of it", who, key, sum)
		}
	}
}

func TestHledgerAddsTheBooksUpToWhatTheLedgerSays(t *testing.T) {
	w, b := books(t)
	text := b.file("/exports/journal.hledger")
	file := onDisk(t, "books.hledger", text)
	_, err := checker(t, "hledger", "-f", file, "check", "--strict")
	must(t, err)
	want := expected(t, w)
	if len(want) < 20 {
		t.Fatalf("only %d sums: nothing was compared", len(want))
	}
	sameSums(t, "hledger", accountants(t, file), want)
	if strings.Contains(text, "acct_of_others") || strings.Contains(text, "44.44") {
		t.Error("the books hold what belongs to another tenant")
	}
	if again := b.file("/exports/journal.hledger"); again != text {
		t.Error("the same ledger gave other bytes")
	}
	// The sum of a part and the metadata can be asked for from outside.
	out, err := checker(t, "hledger", "-f", file, "reg", "tag:receipt=9912140633506421", "-O", "csv")
	must(t, err)
	if rows := table(t, out); len(rows) == 0 || !strings.HasPrefix(rows[0]["description"], "refund owed: open owed_") {
		t.Errorf("by its receipt: %v", rows)
	}
}

func TestBooksWithAnotherAmountInThemDoNotCheck(t *testing.T) {
	_, b := books(t)
	for _, c := range []struct {
		format string
		check  []string
	}{{"hledger", []string{"hledger", "check", "--strict", "-f"}}, {"beancount", []string{"bean-check"}}} {
		text := b.file("/exports/journal." + c.format)
		whole := func(text string) error {
			_, err := checker(t, c.check[0], append(slices.Clone(c.check[1:]), onDisk(t, "books."+c.format, text))...)
			return err
		}
		must(t, whole(text))
		if !strings.Contains(text, " 99.99 EUR") || !strings.Contains(text, " -99.99 EUR") {
			t.Fatal("the payment is not there")
		}
		wrong := strings.Replace(strings.Replace(text, " 99.99 EUR", " 100.00 EUR", 1), " -99.99 EUR", " -100.00 EUR", 1)
		if whole(wrong) == nil {
			t.Errorf("%s took a cent more on both sides for right", c.format)
		}
		entry := text[strings.Index(text, "\n2026"):]
		gone := strings.Replace(text, entry[:strings.Index(entry[1:], "\n2026")+1], "", 1)
		if whole(gone) == nil {
			t.Errorf("%s did not miss an entry", c.format)
		}
	}
}

func TestEveryBookIsTakenByBothTools(t *testing.T) {
	_, b := books(t)
	for _, name := range []string{"operations", "refunds", "journal"} {
		_, err := checker(t, "hledger", "-f", onDisk(t, "x.hledger", b.file("/exports/"+name+".hledger")), "check", "--strict")
		must(t, err)
		_, err = checker(t, "bean-check", onDisk(t, "x.beancount", b.file("/exports/"+name+".beancount")))
		must(t, err)
	}
}

func TestTablesAddUpToTheSameSums(t *testing.T) {
	w, b := books(t)
	money := w.Store.Rulebook("default").Currencies
	want := expected(t, w)
	lines := map[string]*big.Int{}
	codes := map[string]string{}
	for _, row := range table(t, b.file("/exports/journal.csv")) {
		name, _ := money.Commodity(row["currency"])
		key := row["account"] + " " + name
		minor, err := strconv.ParseInt(row["amount_minor"], 10, 64)
		must(t, err)
		if decimal, _ := money.Decimal(minor, row["currency"]); decimal != row["amount"] {
			t.Errorf("%s in minor units is %s", row["amount"], row["amount_minor"])
		}
		if lines[key] == nil {
			lines[key] = new(big.Int)
		}
		lines[key].Add(lines[key], big.NewInt(minor))
		codes[key] = row["currency"]
	}
	got := map[string]string{}
	for key, sum := range lines {
		got[key], _ = money.DecimalSum(sum, codes[key])
	}
	sameSums(t, "journal.csv", got, want)

	// What is owed, per direction, rail, customer and currency, and as the page has it.
	balances, err := w.Store.RefundBalances(t.Context(), "default")
	must(t, err)
	open := map[ledger.RefundParty]int64{}
	for _, row := range table(t, b.file("/exports/refunds.csv")) {
		minor, err := strconv.ParseInt(row["open_minor"], 10, 64)
		must(t, err)
		open[ledger.RefundParty{Direction: ledger.RefundDirection(row["direction"]), Customer: row["customer"], Rail: row["rail"], Currency: row["currency"]}] += minor
	}
	page := text(b.get("/refunds"))
	for _, owed := range balances {
		if open[owed.RefundParty] != owed.Open {
			t.Errorf("%+v: %d in the table", owed, open[owed.RefundParty])
		}
		if owed.Open > 0 && !strings.Contains(page, money.Short(owed.Open, owed.Currency)) {
			t.Errorf("the page does not show %s", money.Short(owed.Open, owed.Currency))
		}
	}
	if len(open) != len(balances) {
		t.Errorf("%d parties in the table, %d in the ledger", len(open), len(balances))
	}
}

// A text that a spreadsheet would run stays a text, whatever hides its beginning.
func TestCase149(t *testing.T) {
	w := newServer(t, pagesConfig)
	memos := []string{"=1+1", "+1", "-1+1", "@SUM(1)", " =1", "\u00a0=1", "\ufeff=1", "\u200b=1", "=HYPERLINK(\"http://example.com\",\"a\")", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20a",
		"\u22121", "'=1", "''", "a=1", "plain, \"quoted\""}
	for _, memo := range []string{"\t=1", "\r=1", "\n=1", "\x00=1", "\tplain"} { // no payload holds them, and yet
		if keepText(memo) != textMark+memo {
			t.Errorf("%q would be run", memo)
		}
	}
	for n, memo := range memos {
		w.ask(wanted{recipient: memo, reference: fmt.Sprint("r", n)})
	}
	b := w.signIn(w.person("default", "ana@example.com", "finance"))
	file := b.file("/exports/operations.csv")
	raw, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	must(t, err)
	column := slices.Index(raw[0], "recipient")
	for n, memo := range memos {
		cell := raw[n+1][column]
		if n < len(memos)-2 && !strings.HasPrefix(cell, textMark) {
			t.Errorf("%q would be run: %q", memo, cell)
		}
		if read := strings.TrimPrefix(cell, textMark); read != memo {
			t.Errorf("%q was read back as %q", memo, read)
		}
	}
	// For programs nothing is changed.
	token, _ := w.token("default", "agent-1", "")
	if list := w.do(http.MethodGet, "/v1/operations?reference=r0", "", "Authorization: Bearer "+token); !strings.Contains(list.Body.String(), "operation_id") || strings.Contains(list.Body.String(), "'=") {
		t.Errorf("%s", list.Body)
	}
	for _, line := range strings.SplitAfter(strings.TrimSuffix(file, "\r\n"), "\r\n") {
		if strings.HasSuffix(line, "\n") && !strings.HasSuffix(line, "\r\n") {
			t.Errorf("a line ends in LF alone: %q", line)
		}
	}
}

// An id keeps all its digits, the leading ones and the last ones.
func TestCase151(t *testing.T) {
	_, b := books(t)
	file := b.file("/exports/refunds.csv")
	for _, cell := range []string{",'9912140633506421,"} {
		if !strings.Contains(file, cell) {
			t.Errorf("%s is not in the file:\n%s", cell, file)
		}
	}
	if journal := b.file("/exports/journal.csv"); !strings.Contains(journal, ",'00012345,") || !strings.Contains(journal, ",'0001230,") {
		t.Error("an id with zeros in front of it is not kept as text")
	}
	for text, marked := range map[string]bool{"9912140633506421": true, "00012345": true, "1e5": true, "1E+10": true, "2026-03-04": true, "3/4": true, ".5": true, "MAR1": true, "Sep-2": true,
		"TRUE": true, "€5": true, "(5)": true, "12:30": true, "٣": true, "ch_1": false, "Marina": false, "octopus": false, "acct_7": false, "": false, "true love": false} {
		if kept := keepText(text); (kept != text) != marked || strings.TrimPrefix(kept, textMark) != text {
			t.Errorf("%q is written %q", text, kept)
		}
	}
}

// Amounts are plain digits with the places of their currency, however small or
// large; the sum of many is too.
func TestCase152(t *testing.T) {
	money := ledger.Currencies{"BTC": 8, "WEI": 18}
	for _, c := range []struct {
		amount int64
		code   string
		want   string
	}{{1, "JPY", "1"}, {100, "EUR", "1.00"}, {12, "BTC", "0.00000012"}, {-12, "BTC", "-0.00000012"}, {1e15, "JPY", "1000000000000000"}, {1e17, "EUR", "1000000000000000.00"}, {1, "WEI", "0.000000000000000001"}, {-9223372036854775808, "WEI", "-9.223372036854775808"}} {
		if got, ok := money.Decimal(c.amount, c.code); !ok || got != c.want {
			t.Errorf("%d %s is written %q, not %q", c.amount, c.code, got, c.want)
		}
		var row cells
		row.amount(money, &c.amount, c.code)
		if row[0] != c.want || row[1] != fmt.Sprint(c.amount) {
			t.Errorf("%v", row)
		}
	}
	huge, _ := new(big.Int).SetString("1000000000000000000000", 10)
	if got, _ := money.DecimalSum(huge, "EUR"); got != "10000000000000000000.00" {
		t.Errorf("10^21 cents are %s", got)
	}
	var row cells
	amount := int64(5)
	if row.amount(money, &amount, "ZZZ"); row[0] != "" || row[1] != "5" {
		t.Errorf("a point was guessed: %v", row)
	}
}

package web

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"holdfast/store/ledger"
)

// A payment is lost, a bank's file shows it, and a person who saw that file says
// so: without script, and on a phone to the last step but one.
func TestBrowserStatementAnswersAnUnknown(t *testing.T) {
	t.Parallel()
	j := startBrowserJourney(t).at("brisk")
	const id = "inv-501"
	must(t, j.book.arm(j.ctx, id, "drop_after", "list_lag_ms:1800000"))
	j.ask("pay_brisk", id, id, 4800)
	o := j.untilStatus(id, ledger.UnknownHold)
	booked := j.effectsOf(id)[0]
	file := filepath.Join(t.TempDir(), "november.csv")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "id,amount,currency,created_at,reference,operation,recipient\n%s,4800,EUR,%s,%s,%s,acct-%s\nstranger-1,700,EUR,%s,rent,,acct_9\n",
		booked.ID, time.UnixMilli(j.Store.Now()).UTC().Format(time.DateOnly), id, o.OrderID, id, time.UnixMilli(j.Store.Now()).UTC().Format(time.DateOnly)), 0o600))

	c := j.openChrome(false)
	c.signIn(ana)
	c.open("/statements")
	c.shows("main", "No statements yet.")
	c.do(chromedp.SetValue(chromedp.CSS("#import-rail"), "brisk"), chromedp.SendKeys(chromedp.CSS("#import-file"), file))
	if status := c.press(`form[data-act="import"] button`); status != http.StatusOK {
		t.Fatal(status, c.text("main"))
	}
	c.shows("main", "november.csv", "CSV, account test-brisk", "2 lines", "new 2", "already imported 0", "money in", "€48.00", "nothing is stored yet")
	if status := c.press(`form[data-act="import"] button`); status != http.StatusOK {
		t.Fatal(status, c.text("main"))
	}
	c.shows("main", "2 lines: 0 matched", "This line answers an unknown.", "1 suggested · 1 unmatched")
	desk := c.path()
	for _, path := range []string{desk, "/statements"} {
		c.fits(path)
	}
	c.open(desk)
	c.press(fmt.Sprintf(`a.button[href^="/operations/%s?line="]`, id))
	for field, want := range map[string]string{"receipt_id": booked.ID, "amount": "48.00"} {
		if got := evaluate[string](c, fmt.Sprintf(`document.querySelector('form[data-act="happened"] [name="%s"]').value`, field)); got != want {
			t.Errorf("%s is filled in with %q, want %q", field, got, want)
		}
	}
	c.shows("#lines", booked.ID, "Open the statement")
	c.confirm("happened")
	c.shows("main", "You said that it happened.")
	c.until(id, "Confirmed")
	_, err := j.Store.MatchStatements(j.ctx)
	must(t, err)
	c.open("/operations/" + id)
	c.shows("#lines", "Seen on statement", "Matched")
	c.open("/")
	c.shows("main", "1 line or operation needs an answer")
	j.happened(id, 1, 1)
}

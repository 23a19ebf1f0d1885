package web

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestFieldsAreComparedWithWhatWasLastApprovedToTheRecipient(t *testing.T) {
	w := newServer(t, approvalsConfig)
	ana := w.signIn(w.person("default", "ana@example.com", "approver"))
	viewer := w.signIn(w.person("default", "vic@example.com", "viewer"))
	first := w.ask(wanted{recipient: "acct_same", amount: 200000})
	ana.act(first, "approve")
	w.pass(10 * time.Second)
	w.answer(first, receiptFor(first))
	second := w.ask(wanted{recipient: "acct_same", amount: 300000})
	path := "/operations/" + second.OperationID
	plain := ana.get(path)
	shows(t, plain, http.StatusOK, "?compare=last#what", "last approved to this recipient")
	hides(t, plain, "Compared with")
	shows(t, ana.get(path+"?compare=last"), http.StatusOK, "Compared with last approved to this recipient,", "2,000.00 EUR", "3,000.00 EUR")
	hides(t, viewer.get(path+"?compare=last"), "DE-SECRET")
	if page := mainText(ana.get(path + "?compare=nonsense")); strings.Contains(page, "Compared with") {
		t.Error("it is compared with nothing known")
	}
}

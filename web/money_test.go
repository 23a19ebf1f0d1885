package web

import (
	"fmt"
	"strings"
	"testing"
)

// Minor units have as many digits as the currency has, and the number that
// programs send stands beside what people read.
func TestCase110AmountsStandInFullWithTheirRawValue(t *testing.T) {
	w := newServer(t, strings.Replace(pagesConfig, "{ name: the rest, when: {}, then: allow }", "{ name: the rest, when: {}, then: ask }", 1))
	a := w.agent("default")
	b := w.signIn(w.person("default", "ana@example.com", "admin", "approver"))
	for _, c := range []struct {
		amount                 int
		currency, written, raw string
	}{
		{92000, "KWD", "92.000 KWD", "92000 minor units"}, {500, "JPY", "500 JPY", "500 minor units"}, {5, "USD", "0.05 USD", "5 minor units"},
	} {
		id := "op-" + c.currency
		a.submit(fmt.Sprintf(`{"operation_id":%q,"action_type":"pay","payload":{"amount":%d,"currency":%q,"recipient":"acct-%s","reference":%q}}`,
			id, c.amount, c.currency, c.currency, id)).is(t, 202, "", "await_approval", false)
		for _, page := range []string{"/", "/approvals", "/operations"} {
			says(t, b.get(page), 200, c.written+" · "+c.raw)
		}
		approval := b.get("/operations/" + id)
		says(t, approval, 200, c.written+" · "+c.raw, c.written+" "+c.raw) // the head, and the field
		if c.currency != "USD" {                                           // there the button has the sign: $0.05
			says(t, approval, 200, "Approve "+c.written)
		}
		doesNotSay(t, approval, "920.00", "5.00", "500.000")
		a.call("POST", "/v1/operations/"+id+"/cancel", "").is(t, 200, "cancelled", "stop", true)
		says(t, b.get("/operations/"+id), 200, c.written+" · "+c.raw, c.written+" "+c.raw)
		says(t, b.get("/operations"), 200, c.written+" · "+c.raw)
	}
}

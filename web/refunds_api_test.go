package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

func (a agent) reportOwed(body string) heard {
	a.t.Helper()
	return a.call(http.MethodPost, "/v1/refunds-owed", body, "Content-Type: application/json")
}

const owesCharge = `{"receipt_id":"ch_1","rail":"card","amount":4800,"currency":"EUR","cause":"not_delivered","customer":"cus_1"}`

func TestARefundIsReportedOnceAndListed(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	first := a.reportOwed(owesCharge)
	if first.Code != 201 || first.said["status"] != "owed" || first.said["open"] != 4800.0 || first.said["operation_id"] != nil || first.said["due_at"] == nil {
		t.Fatalf("%d %v", first.Code, first.said)
	}
	again := a.reportOwed(owesCharge)
	if again.Code != 200 || again.said["id"] != first.said["id"] {
		t.Errorf("%d %v", again.Code, again.said)
	}
	differs := a.reportOwed(strings.Replace(owesCharge, "4800", "4801", 1))
	differs.is(t, 409, "request", "stop", true)
	if fmt.Sprint(differs.said["mismatch"]) != "[/amount]" {
		t.Errorf("%v", differs.said)
	}
	for i := range 3 {
		a.reportOwed(strings.Replace(owesCharge, "ch_1", fmt.Sprint("ch_1", i), 1))
	}
	n, target := 0, "/v1/refunds-owed?status=owed,settling&customer=cus_1&rail=card&limit=3"
	for range 2 {
		list := a.get(target)
		n += len(list.said["items"].([]any))
		if next, more := list.said["next_cursor"].(string); more {
			target = "/v1/refunds-owed?status=owed,settling&customer=cus_1&rail=card&limit=3&cursor=" + next
		}
	}
	if n != 4 {
		t.Errorf("%d on two pages", n)
	}
	for _, query := range []string{"status=paid", "cursor=x", "limit=0", "colour=red"} {
		a.get("/v1/refunds-owed?"+query).is(t, 400, "invalid_request", "fix_request", false)
	}
}

// No amount goes without saying: nothing, less than nothing and no number at all
// are refused, and nothing is recorded.
func TestCase095(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	for _, amount := range []string{`"amount":0,`, `"amount":-100,`, `"amount":null,`, `"amount":"",`, ``, `"amount":"4800",`, `"amount":48.5,`, `"amount":true,`} {
		a.reportOwed(`{"receipt_id":"ch_1","rail":"card",`+amount+`"currency":"EUR"}`).is(t, 422, "invalid_payload", "fix_request", false)
	}
	if list := a.get("/v1/refunds-owed"); len(list.said["items"].([]any)) != 0 {
		t.Errorf("%v", list.said)
	}
}

func TestAReportThatCannotBeRightNamesTheMember(t *testing.T) {
	a := newServer(t, apiConfig).agent("default")
	for member, change := range map[string][2]string{
		"/receipt_id": {`"receipt_id":"ch_1",`, ``},
		"/rail":       {`"card"`, `"moon"`},
		"/currency":   {`"EUR"`, `"ZZZ"`},
		"/cause":      {`not_delivered`, `bad luck`},
		"/direction":  {`"customer"`, `"direction":"both","customer"`},
		"/due_at":     {`"customer"`, `"due_at":"soon","customer"`},
	} {
		h := a.reportOwed(strings.Replace(owesCharge, change[0], change[1], 1))
		h.is(t, 422, "invalid_payload", "fix_request", false)
		if !strings.Contains(fmt.Sprint(h.said["errors"]), member) {
			t.Errorf("%s: %v", member, h.said)
		}
	}
	a.reportOwed(strings.Replace(owesCharge, `"rail"`, `"Rail"`, 1)).is(t, 400, "malformed_json", "fix_request", false)
}

func TestReportingAndReadingNeedTheirScopes(t *testing.T) {
	w := newServer(t, apiConfig)
	with := func(scope string) agent {
		token, _, err := IssueToken(t.Context(), w.Store, ledger.TokenRecord{TenantID: "default", Agent: "narrow", Scopes: []string{scope},
			ExpiresAt: w.Store.Now() + 1000}, operator)
		must(t, err)
		return agent{w, "default", token}
	}
	with("refunds:read").reportOwed(owesCharge).is(t, 403, "forbidden", "stop", true)
	with("refunds:report").get("/v1/refunds-owed").is(t, 403, "forbidden", "stop", true)
}

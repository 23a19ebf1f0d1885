package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

func TestAProofIsCheckedWhereTheRailCanBeAskedForIt(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/payments/re_1":
			w.Write([]byte(`{"id":"re_1","amount":4800,"currency":"EUR","recipient":"cus_1"}`))
		case "/payments/re_other":
			w.Write([]byte(`{"id":"re_other","amount":4800,"currency":"EUR","recipient":"cus_2"}`))
		case "/payments/re_usd":
			w.Write([]byte(`{"id":"re_usd","amount":4800,"currency":"USD","recipient":"cus_1"}`))
		case "/payments/re_down":
			w.WriteHeader(http.StatusBadGateway)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer provider.Close()
	config := strings.NewReplacer("http://127.0.0.1:1", provider.URL, "/payments?reference={order_id}", "/payments/{receipt_id}", ", items: /data", "",
		"receipt: { id: /id, amount: /amount }", "receipt: { id: /id, amount: /amount, currency: /currency, recipient: /recipient }").Replace(apiConfig)
	w := newServer(t, config)
	fin := w.signIn(w.person("default", "fin@example.com", "finance"))
	e := w.owe("default", "ch_1", 4800)
	for proof, says := range map[string]string{"re_none": "no such record", "re_other": "another payee", "re_usd": "USD", "re_down": "502"} {
		answer := fin.onRefund(e.ID, "settle", "amount", "48.00", "proof", proof)
		if answer.Code != 422 || !strings.Contains(mainText(answer), says) {
			t.Errorf("%s: %d %s", proof, answer.Code, mainText(answer))
		}
	}
	if answer := fin.onRefund(e.ID, "settle", "amount", "47.00", "proof", "re_1"); answer.Code != 422 {
		t.Errorf("another amount: %d", answer.Code)
	}
	w.refundIs(e.ID, ledger.RefundIsOwed, 4800)
	if answer := fin.onRefund(e.ID, "settle", "amount", "48.00", "proof", "re_1"); answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	w.refundIs(e.ID, ledger.RefundIsSettled, 0)
	shows(t, fin.get("/refunds/"+e.ID), 200, "checked at the provider")
}

package ledger

import (
	"errors"
	"strings"
	"testing"
)

// givingBack are the rules of a shop with two rails: card charges with a refund
// of their own, and another rail that pays out.
func givingBack(t *testing.T, refund *RefundSpec, more ...func(*Rulebook)) Rulebook {
	t.Helper()
	r := Rulebook{Actions: map[string]*ActionType{}, Currencies: Currencies{"USDC": 6}}
	add := func(name string, spec ActionSpec) {
		a, err := NewActionType(name, spec, r.Currencies)
		if err != nil {
			t.Fatal(err)
		}
		r.Actions[name] = a
	}
	add("pay", ActionSpec{Rail: "card", Effect: "charge", Refund: refund, Schema: []byte(`{"type":"object"}`)})
	add("refund", ActionSpec{Rail: "card", Effect: "refund", Schema: []byte(`{"type":"object","required":["charge","amount","currency"],"properties":{
		"charge":{"type":"string","x-role":"refund_of"},"amount":{"type":"integer","minimum":1,"x-role":"amount"},"currency":{"type":"string","x-role":"currency"},
		"reference":{"type":"string","x-role":"reference"},"note":{"type":"string"},"meta":{"type":"object","properties":{"for":{"type":"array","items":{"type":"string"}}}},"to":{"type":"string"}}}`)})
	add("send_usdc", ActionSpec{Rail: "base", Effect: "payout", Schema: []byte(`{"type":"object","required":["value","to","currency"],"properties":{
		"value":{"type":"string","x-role":"amount","x-normalize":"decimal"},"currency":{"type":"string","x-role":"currency"},"to":{"type":"string","x-role":"recipient"},
		"ref":{"type":"string","x-role":"reference"}}}`)})
	for _, m := range more {
		m(&r)
	}
	return r
}

func template(payload map[string]any) *RefundSpec { return &RefundSpec{"refund", payload} }

var plainRefund = template(map[string]any{"charge": "{receipt_id}", "amount": "{amount}", "currency": "{currency}"})

func wish(change ...func(*RefundWish)) RefundWish {
	w := RefundWish{Amount: 300, Number: 1,
		Entry: RefundOwed{ID: "owed_9", ReceiptID: "pay_2", Direction: WeOwe, Rail: "card", Currency: "EUR", Amount: 1000, Open: 1000, Customer: "c_91"},
		Original: Operation{OperationID: "op", ActionType: "pay", OrderID: "ord_1",
			Terms: Terms{Recipient: "acct_7", Reference: "inv-481", Customer: "c_of_op"}}}
	for _, c := range change {
		c(&w)
	}
	return w
}

func onRail(rail string) func(*RefundWish) { return func(w *RefundWish) { w.Rail = rail } }

func TestRefundIsMadeByTheOriginalsTemplate(t *testing.T) {
	for name, c := range map[string]struct {
		payload map[string]any
		wish    func(*RefundWish)
		want    string
	}{
		"the usual one":   {plainRefund.Payload, nil, `{"amount":300,"charge":"pay_2","currency":"EUR","reference":"owed_9-1"}`},
		"its rail named":  {plainRefund.Payload, onRail("card"), `{"amount":300,"charge":"pay_2","currency":"EUR","reference":"owed_9-1"}`},
		"the second part": {plainRefund.Payload, func(w *RefundWish) { w.Number = 2 }, `{"amount":300,"charge":"pay_2","currency":"EUR","reference":"owed_9-2"}`},
		"texts and places within": {map[string]any{"charge": "{receipt_id}", "amount": "{amount}", "currency": "{currency}", "reference": "{reference}",
			"note": "{amount} {currency} for {recipient}, {order_id}", "to": "{customer}", "meta": map[string]any{"for": []any{"{reference}", "x"}}}, nil,
			`{"amount":300,"charge":"pay_2","currency":"EUR","meta":{"for":["inv-481","x"]},"note":"300 EUR for acct_7, ord_1","reference":"inv-481 owed_9-1","to":"c_91"}`},
		"the customer of the operation": {map[string]any{"charge": "{receipt_id}", "amount": "{amount}", "currency": "{currency}", "to": "{customer}"},
			func(w *RefundWish) { w.Entry.Customer = "" }, `{"amount":300,"charge":"pay_2","currency":"EUR","reference":"owed_9-1","to":"c_of_op"}`},
		"a member that would say nothing": {map[string]any{"charge": "{receipt_id}", "amount": "{amount}", "currency": "{currency}", "to": "{recipient}"},
			func(w *RefundWish) { w.Original.Terms.Recipient = "" }, `{"amount":300,"charge":"pay_2","currency":"EUR","reference":"owed_9-1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := wish()
			if c.wish != nil {
				c.wish(&w)
			}
			p, err := givingBack(t, template(c.payload)).PlanRefund(w)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(p.Normal.Payload); got != c.want || p.ActionType.Name != "refund" {
				t.Errorf("%s %s\nwant %s", p.ActionType.Name, got, c.want)
			}
			if p.Normal.Terms.RefundOf != "pay_2" || p.Normal.Terms.Amount != 300 {
				t.Errorf("%+v", p.Normal.Terms)
			}
		})
	}
}

func TestRefundsNameFollowsFromEntryAndNumber(t *testing.T) {
	r := givingBack(t, plainRefund)
	id := func(number int, amount int64) string {
		p, err := r.PlanRefund(wish(func(w *RefundWish) { w.Number, w.Amount = number, amount }))
		if err != nil {
			t.Fatal(err)
		}
		return p.OperationID
	}
	if a, b := id(1, 300), id(1, 500); a != b || a != "refund-owed_9-1" {
		t.Errorf("%s and %s", a, b)
	}
	if id(1, 300) == id(2, 300) {
		t.Error("two parts have one name")
	}
}

func TestRefundOnAnotherRailIsWrittenInItsOwnForm(t *testing.T) {
	w := wish(onRail("base"), func(w *RefundWish) {
		w.Entry.Currency, w.Entry.Amount, w.Entry.Open, w.Amount, w.Entry.Customer = "USDC", 90_000000, 90_000000, 48_500000, "0x9f"
	})
	p, err := givingBack(t, plainRefund).PlanRefund(w)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"currency":"USDC","ref":"owed_9-1","to":"0x9f","value":"48.500000"}`
	if got := string(p.Normal.Payload); got != want || p.ActionType.Name != "send_usdc" || p.Normal.Terms.Amount != 48_500000 {
		t.Errorf("%s %s", p.ActionType.Name, got)
	}
}

func TestNoRefundIsGuessed(t *testing.T) {
	second := func(r *Rulebook) {
		twin := *r.Actions["send_usdc"]
		twin.Name = "send_usdc_slow"
		r.Actions[twin.Name] = &twin
	}
	for name, c := range map[string]struct {
		refund *RefundSpec
		rules  func(*Rulebook)
		wish   func(*RefundWish)
		says   string
	}{
		"nothing gives back there":   {plainRefund, nil, onRail("bank"), "no action type gives money back on the rail bank"},
		"several would":              {plainRefund, second, onRail("base"), "(send_usdc, send_usdc_slow)"},
		"it is owed to us":           {plainRefund, nil, func(w *RefundWish) { w.Entry.Direction = OwedToUs }, "owed to us"},
		"nothing":                    {plainRefund, nil, func(w *RefundWish) { w.Amount = 0 }, "more than nothing"},
		"less than nothing":          {plainRefund, nil, func(w *RefundWish) { w.Amount = -1 }, "more than nothing"},
		"more than is owed":          {plainRefund, nil, func(w *RefundWish) { w.Amount = 1001 }, "10.00 EUR is"},
		"no recipient":               {plainRefund, nil, func(w *RefundWish) { w.Rail, w.Entry.Customer, w.Original.Terms.Customer = "base", "", "" }, "names no customer"},
		"a type that is gone":        {&RefundSpec{"refund", plainRefund.Payload}, func(r *Rulebook) { delete(r.Actions, "refund") }, nil, "is not configured"},
		"a currency that is gone":    {plainRefund, nil, func(w *RefundWish) { w.Entry.Currency = "XQQ" }, "XQQ"},
		"the provider's id unknown":  {plainRefund, nil, func(w *RefundWish) { w.Entry.ReceiptID = w.Original.OrderID }, "/charge"},
		"a text that needs it":       {template(map[string]any{"charge": "ch {receipt_id}", "amount": "{amount}", "currency": "{currency}"}), nil, func(w *RefundWish) { w.Entry.ReceiptID = "" }, "{receipt_id}"},
		"no amount in the template":  {template(map[string]any{"charge": "{receipt_id}", "currency": "{currency}"}), nil, nil, "/amount"},
		"another amount":             {template(map[string]any{"charge": "{receipt_id}", "amount": 1000, "currency": "{currency}"}), nil, nil, "does not say 3.00 EUR"},
		"another currency":           {template(map[string]any{"charge": "{receipt_id}", "amount": "{amount}", "currency": "USD"}), nil, nil, "does not say 3.00 EUR"},
		"an amount inside of a text": {template(map[string]any{"charge": "{receipt_id}", "amount": "{amount} cents", "currency": "{currency}"}), nil, nil, "/amount"},
	} {
		t.Run(name, func(t *testing.T) {
			r := givingBack(t, c.refund)
			if c.rules != nil {
				c.rules(&r)
			}
			w := wish()
			if c.wish != nil {
				c.wish(&w)
			}
			p, err := r.PlanRefund(w)
			if !errors.Is(err, ErrNoRefund) || !strings.Contains(err.Error(), c.says) || p.OperationID != "" {
				t.Errorf("%+v, %v", p.OperationID, err)
			}
		})
	}
}

func TestRefundsTemplateNamesOnlyWhatIsKnown(t *testing.T) {
	_, err := NewActionType("pay", ActionSpec{Rail: "card", Schema: []byte(`{"type":"object"}`),
		Refund: template(map[string]any{"charge": "{receipt}", "meta": []any{map[string]any{"x": "a {Amount} b"}}})}, nil)
	if err == nil || !strings.Contains(err.Error(), "{Amount}, {receipt}; there are {receipt_id}") {
		t.Error(err)
	}
}

package rail

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

// A provider that ignores the filter answers with everybody's records, on as
// many pages as it has. None of them is ours because of the question, and ours
// is not absent because it is not among those that were shown.
func TestAnIgnoredFilterProvesNothing(t *testing.T) {
	ours := payment().OrderID
	stamped := func(id, stamp string) string { // stamp as JSON
		return fmt.Sprintf(`{"id":%q,"amount":125000,"currency":"EUR","recipient":"acct_7","status":"succeeded","metadata":{"operation":%s}}`, id, stamp)
	}
	bare := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"amount":125000,"currency":"EUR","recipient":"acct_7","status":"succeeded"}`, id)
	}
	many := func(n int, record func(int) string) string {
		records := make([]string, n)
		for i := range records {
			records[i] = record(i)
		}
		return strings.Join(records, ",")
	}
	list := func(records, more string) string { return answer("200 OK", `{"data":[`+records+`]`+more+`}`) }
	const byOrder, byKey, bySince, byReference = "/payments?op={order_id}", "/payments?key={provider_key}", "/payments?since={first_sent_at}", "/payments?reference={reference}"
	for _, c := range []struct {
		name, path, answer string
		named              bool // receipt.stamp
		want               ledger.LookFinding
		says               string
		sighted            bool
	}{
		{"strangers without a stamp", byOrder, list(many(8, func(i int) string { return bare(fmt.Sprint("p", i)) }), ""), true, ledger.LookInconclusive, "8 without a stamp", false},
		{"one stranger without a stamp", byOrder, list(bare("p1"), ""), true, ledger.LookInconclusive, "1 without a stamp", false},
		{"strangers with null", byOrder, list(stamped("p1", "null")+","+stamped("p2", "null"), ""), true, ledger.LookInconclusive, "2 without a stamp", false},
		{"strangers with an empty text", byOrder, list(stamped("p1", `""`), ""), true, ledger.LookInconclusive, "1 without a stamp", false},
		{"a number for a stamp", byOrder, list(stamped("p1", "7"), ""), true, ledger.LookInconclusive, "no text", false},
		{"an object for a stamp", byOrder, list(stamped("p1", `{"a":1}`), ""), true, ledger.LookInconclusive, "no text", false},
		{"false for a stamp", byKey, list(stamped("p1", `false`), ""), true, ledger.LookInconclusive, "no text", false},

		{"not named: the one answer is ours", byOrder, list(bare("p1"), ""), false, ledger.LookFound, "1 under our id", true},
		{"not named: the one answer, with null", byKey, list(stamped("p1", "null"), `,"total":1`), false, ledger.LookFound, "1 under our id", true},
		{"not named: two of them", byOrder, list(bare("p1")+","+bare("p2"), ""), false, ledger.LookInconclusive, "2 without a stamp", false},
		{"not named: one of more", byOrder, list(bare("p1"), `,"has_more":true`), false, ledger.LookInconclusive, "1 without a stamp", false},
		{"not named: one of many", byOrder, list(bare("p1"), `,"total":5000`), false, ledger.LookInconclusive, "1 without a stamp", false},
		{"not named: one beside another's", byOrder, list(bare("p1")+","+stamped("p2", `"ord_other"`), ""), false, ledger.LookInconclusive, "does not seem to filter", false},
		{"not named: a number for a stamp", byOrder, list(stamped("p1", "7"), ""), false, ledger.LookInconclusive, "no text", false},
		{"not named: ours beside a bare one", byOrder, list(bare("p1")+","+stamped("p2", `"`+ours+`"`), ""), false, ledger.LookFound, "1 with our stamp", true},
		{"not named: not a success yet", byOrder, list(strings.Replace(bare("p1"), "succeeded", "processing", 1), ""), false, ledger.LookInconclusive, "not a success yet", true},

		{"a hundred of others", byOrder, list(many(100, func(i int) string { return stamped(fmt.Sprint("p", i), fmt.Sprintf(`"ord_%d"`, i)) }), ""), true, ledger.LookInconclusive, "100 of other operations", false},
		{"others, asked by key", byKey, list(stamped("p1", `"ord_other"`), ""), true, ledger.LookInconclusive, "does not seem to filter", false},
		{"our stamp in another case", byOrder, list(stamped("p1", `"`+strings.ToUpper(ours)+`"`), ""), true, ledger.LookInconclusive, "another case", false},
		{"our stamp in another case, of everybody's", bySince, list(stamped("p1", `"`+strings.ToLower(ours)+` "`), ""), true, ledger.LookInconclusive, "another case", false},
		{"pagination.next", byOrder, list("", `,"pagination":{"next":"/payments?page=2"}`), true, ledger.LookInconclusive, "goes on", false},
		{"links.next as an object", byOrder, list("", `,"_links":{"next":{"href":"/payments?page=2"}}`), true, ledger.LookInconclusive, "goes on", false},
		{"next_url", byOrder, list("", `,"next_url":"/payments?page=2"`), true, ledger.LookInconclusive, "goes on", false},
		{"hasNextPage", byOrder, list("", `,"pageInfo":{"hasNextPage":true}`), true, ledger.LookInconclusive, "goes on", false},
		{"total 5000 and one page", byOrder, list("", `,"total":5000`), true, ledger.LookInconclusive, "5000", false},
		{"total 1 and none", byOrder, list("", `,"total":1`), true, ledger.LookInconclusive, "says that it has 1", false},
		{"meta.total_count as text", byOrder, list("", `,"meta":{"total_count":"3"}`), true, ledger.LookInconclusive, "says that it has 3", false},
		{"a total in a header", byOrder, answer("200 OK", `{"data":[]}`, "X-Total-Count: 2"), true, ledger.LookInconclusive, "says that it has 2", false},
		{"of everybody's, total of more", bySince, list(stamped("p1", `"ord_other"`), `,"count":2`), true, ledger.LookInconclusive, "says that it has 2", false},
		{"another reference than was asked for", byReference, list(strings.Replace(stamped("p1", `"ord_other"`), `"status"`, `"reference":"x","status"`, 1), ""), true, ledger.LookInconclusive, "does not seem to filter", false},
		{"ours, without an id", byOrder, list(`{"metadata":{"operation":"`+ours+`"}}`, ""), true, ledger.LookInconclusive, "without an id", true},
		{"ours, not a success yet", byOrder, list(strings.Replace(stamped("p1", `"`+ours+`"`), "succeeded", "processing", 1), ""), true, ledger.LookInconclusive, "not a success yet", true},

		{"an honest nothing", byOrder, list("", `,"has_more":false,"total":0,"pagination":{"next":null,"total":0}`), true, ledger.LookAbsent, "found nothing", false},
		{"an honest nothing, no notes", byOrder, list("", ""), true, ledger.LookAbsent, "found nothing", false},
		{"everybody's, and none ours", bySince, list(stamped("p1", `"ord_other"`)+","+stamped("p2", `"ord_others"`), `,"total":2,"has_more":false`), true, ledger.LookAbsent, "found nothing", false},
		{"others of the same reference", byReference, list(strings.Replace(stamped("p1", `"ord_other"`), `"status"`, `"reference":"invoice-481","status"`, 1), ""), true, ledger.LookAbsent, "found nothing", false},
	} {
		p := newProvider(t, always(c.answer))
		r := mustRail(t, with(card(p.url), func(k *Config) {
			k.Lookup = Lookup{Path: c.path, Items: "/data", ConfirmedWhen: map[string]any{"/status": "succeeded"}}
			k.Receipt.Reference = "/reference"
			if c.named {
				k.Receipt.Stamp = "/metadata/operation"
			}
		}))
		o := payment()
		o.FirstMarkAt = 1_772_366_400_000
		look := r.Lookup(t.Context(), o)
		if look.Finding != c.want || !strings.Contains(look.Sentence, c.says) || look.Shows(o) != c.sighted {
			t.Errorf("%s: %s %q, sighted %t; want %s %q, %t", c.name, look.Finding, look.Sentence, look.Shows(o), c.want, c.says, c.sighted)
		}
		for _, rec := range look.Records {
			if rec.Presumed != (c.says == "1 under our id") || rec.Presumed && rec.Stamp != ours {
				t.Errorf("%s: %+v", c.name, rec)
			}
		}
	}
}

// An answer whose head says "done" or "taken on" is remembered, whatever is wrong
// with the rest of it.
func TestASuccessThatCannotBeReadIsASight(t *testing.T) {
	r := mustRail(t, with(card("https://api.example.com"), func(c *Config) {
		c.Answers = append(c.Answers, AnswerRow{Status: []int{203}, Body: map[string]any{"/done": true}, Means: "confirmed"})
	}))
	cut := answered(201, `{"id":"pay_1"`)
	cut.Whole, cut.Err = false, Cut
	long := answered(201, "{")
	long.Whole, long.Err = false, TooLong
	refusedCut := answered(402, "{")
	refusedCut.Whole, refusedCut.Err = false, Cut
	for name, c := range map[string]struct {
		x    Exchange
		want bool
	}{
		"a receipt":                 {answered(201, `{"id":"pay_1","amount":125000,"currency":"EUR","recipient":"acct_7"}`), true},
		"no id":                     {answered(201, `{"amount":1}`), true},
		"empty":                     {answered(201, ""), true},
		"truncated":                 {answered(201, `{"id":"pay_1"`), true},
		"duplicate members":         {answered(201, `{"id":"pay_1","id":"pay_2"}`), true},
		"cut":                       {cut, true},
		"too big":                   {long, true},
		"accepted":                  {answered(202, ""), true},
		"the row needs the body":    {answered(203, `{"done":`), true},
		"the body says another one": {answered(203, `{"done":false}`), false},
		"refused":                   {answered(402, "{}"), false},
		"refused, cut":              {refusedCut, false},
		"an error":                  {answered(500, `{"id":"pay_1"}`), false},
		"silence":                   {Exchange{Written: 10, Err: TimedOut}, false},
	} {
		a := r.Classify(payment(), c.x)
		sighted := a.Sighted || a.Finding == ledger.Found || a.Finding == ledger.Pending
		if sighted != c.want {
			t.Errorf("%s: sighted %t: %+v", name, sighted, a)
		}
	}
}

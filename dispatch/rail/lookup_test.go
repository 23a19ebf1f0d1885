package rail

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

func TestLookupsProveWhatTheySay(t *testing.T) {
	ours := payment().OrderID
	record := func(id, stamp string) string {
		if stamp == "" {
			return fmt.Sprintf(`{"id":%q,"amount":125000,"currency":"EUR","recipient":"acct_7"}`, id)
		}
		return fmt.Sprintf(`{"id":%q,"amount":125000,"currency":"EUR","recipient":"acct_7","metadata":{"operation":%q}}`, id, stamp)
	}
	list := func(records ...string) string {
		return answer("200 OK", `{"data":[`+strings.Join(records, ",")+`],"has_more":false}`)
	}
	const byOrder, byKey, byReference, byReceipt = "/payments?reference={order_id}", "/payments/{provider_key}", "/payments?reference={reference}", "/payments/{receipt_id}"
	for _, c := range []struct {
		name, path, items, answer string
		want                      ledger.LookFinding
		records                   string // id:stamped, in order
	}{
		{"found with our stamp", byOrder, "/data", list(record("p1", ours)), ledger.LookFound, "p1:true"},
		{"found without a stamp, asked by order_id", byOrder, "/data", list(record("p1", "")), ledger.LookFound, "p1:true"},
		{"found twice", byOrder, "/data", list(record("p1", ours), record("p2", ours)), ledger.LookFound, "p1:true p2:true"},
		{"listed twice", byOrder, "/data", list(record("p1", ours), record("p1", ours)), ledger.LookFound, "p1:true"},
		{"another's stamp, asked by order_id", byOrder, "/data", list(record("p1", "ord_other")), ledger.LookInconclusive, ""},
		{"absent", byOrder, "/data", list(), ledger.LookAbsent, ""},
		{"bare list", byOrder, "", answer("200 OK", `[`+record("p1", ours)+`]`), ledger.LookFound, "p1:true"},
		{"bare empty list", byOrder, "", answer("200 OK", ` [ ] `), ledger.LookAbsent, ""},
		{"list deep inside", byOrder, "/pages/0/re~1cords", answer("200 OK", `{"x":[1],"pages":[{"re/cords":[`+record("p1", ours)+`]}]}`), ledger.LookFound, "p1:true"},
		{"the record itself, by key", byKey, "", answer("200 OK", record("p1", "")), ledger.LookFound, "p1:true"},
		{"404 by key", byKey, "", answer("404 Not Found", `{}`), ledger.LookAbsent, ""},
		{"404 of a list", byOrder, "/data", answer("404 Not Found", `{}`), ledger.LookUnreachable, ""},

		{"by reference, our stamp", byReference, "/data", list(record("p1", ours)), ledger.LookFound, "p1:true"},
		{"by reference, another's", byReference, "/data", list(record("p1", "ord_other")), ledger.LookAbsent, ""},
		{"by reference, no stamp", byReference, "/data", list(record("p1", "")), ledger.LookInconclusive, "p1:false"},
		{"by reference, all three", byReference, "/data", list(record("p1", ""), record("p2", "ord_other"), record("p3", ours)), ledger.LookFound, "p3:true p1:false"},
		{"by receipt id, no stamp", byReceipt, "", answer("200 OK", record("pay_9", "")), ledger.LookInconclusive, "pay_9:false"},

		{"more pages, nothing on this one", byOrder, "/data", answer("200 OK", `{"data":[],"has_more":true}`), ledger.LookInconclusive, ""},
		{"more pages by cursor", byOrder, "/data", answer("200 OK", `{"data":[],"next_cursor":"abc"}`), ledger.LookInconclusive, ""},
		{"more pages by link", byOrder, "/data", answer("200 OK", `{"data":[]}`, `Link: <https://x/?page=2>; rel="next"`), ledger.LookInconclusive, ""},
		{"no more pages", byOrder, "/data", answer("200 OK", `{"data":[],"next_cursor":null,"next":""}`), ledger.LookAbsent, ""},
		{"found before more pages", byOrder, "/data", answer("200 OK", `{"data":[`+record("p1", ours)+`],"has_more":true}`), ledger.LookFound, "p1:true"},
		{"an error beside an empty list", byOrder, "/data", answer("200 OK", `{"data":[],"error":{"message":"shard 3 timed out"}}`), ledger.LookInconclusive, ""},
		{"a part of a list", byOrder, "/data", answer("200 OK", `{"data":[],"partial":true}`), ledger.LookInconclusive, ""},
		{"no error beside an empty list", byOrder, "/data", answer("200 OK", `{"data":[],"error":null,"errors":[],"partial":false}`), ledger.LookAbsent, ""},
		{"an error beside what is ours", byOrder, "/data", answer("200 OK", `{"data":[`+record("p1", ours)+`],"error":"shard 3 timed out"}`), ledger.LookFound, "p1:true"},
		{"an old copy", byOrder, "/data", answer("200 OK", `{"data":[]}`, "Age: 86400"), ledger.LookInconclusive, ""},
		{"an old 404 by key", byKey, "", answer("404 Not Found", `{}`, "Age: 60"), ledger.LookInconclusive, ""},
		{"a fresh copy", byOrder, "/data", answer("200 OK", `{"data":[]}`, "Age: 0"), ledger.LookAbsent, ""},
		{"a record without an id", byOrder, "/data", list(`{"metadata":{"operation":"` + ours + `"}}`), ledger.LookInconclusive, ""},
		{"a record that is none", byOrder, "/data", list(`7`), ledger.LookInconclusive, ""},

		{"500", byOrder, "/data", answer("500 Oops", `{"data":[]}`), ledger.LookUnreachable, ""},
		{"401", byOrder, "/data", answer("401 Unauthorized", `{"data":[]}`), ledger.LookUnreachable, ""},
		{"206", byOrder, "/data", answer("206 Partial Content", `{"data":[]}`), ledger.LookUnreachable, ""},
		{"302", byOrder, "/data", answer("302 Found", "", "Location: /elsewhere"), ledger.LookUnreachable, ""},
		{"garbage", byOrder, "/data", answer("200 OK", `{"data":[`), ledger.LookUnreachable, ""},
		{"empty", byOrder, "/data", answer("200 OK", ""), ledger.LookUnreachable, ""},
		{"two lists", byOrder, "/data", answer("200 OK", `{"data":[],"data":[{}]}`), ledger.LookUnreachable, ""},
		{"no list there", byOrder, "/data", answer("200 OK", `{"items":[]}`), ledger.LookUnreachable, ""},
		{"null for a list", byOrder, "/data", answer("200 OK", `{"data":null}`), ledger.LookUnreachable, ""},
		{"object for a list", byOrder, "/data", answer("200 OK", `{"data":{}}`), ledger.LookUnreachable, ""},
		{"a word", byKey, "", answer("200 OK", `"none"`), ledger.LookUnreachable, ""},
		{"cut", byOrder, "/data", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"data\":[]}", ledger.LookUnreachable, ""},
		{"hung up", byOrder, "/data", "", ledger.LookUnreachable, ""},
	} {
		p := newProvider(t, always(c.answer))
		r := mustRail(t, with(card(p.url), func(k *Config) { k.Lookup = Lookup{Path: c.path, Items: c.items} }))
		o := payment()
		o.Receipt = &ledger.Receipt{ID: "pay_9"}
		look := r.Lookup(t.Context(), o)
		var got []string
		for _, rec := range look.Records {
			got = append(got, fmt.Sprintf("%s:%t", rec.ID, rec.Stamp == ours))
			if rec.Stamp != ours && rec.Stamp != "" {
				t.Errorf("%s: record with the stamp %q", c.name, rec.Stamp)
			}
			if !strings.Contains(string(rec.Raw), rec.ID) || !strings.Contains(c.answer, string(rec.Raw)) {
				t.Errorf("%s: raw record is %s", c.name, rec.Raw)
			}
		}
		if look.Finding != c.want || strings.Join(got, " ") != c.records || look.Sentence == "" {
			t.Errorf("%s: %+v with %v, want %s %s", c.name, look, got, c.want, c.records)
		}
	}
}

func TestWhatCannotBeAskedProvesNothing(t *testing.T) {
	o := payment()
	o.Terms.Reference = ""
	p := newProvider(t, always(answer("200 OK", `{"data":[]}`)))
	for path, o := range map[string]ledger.Operation{"/payments?reference={reference}": o, "/payments/{receipt_id}": payment(), "": payment()} {
		r := mustRail(t, with(card(p.url), func(c *Config) { c.Lookup = Lookup{Path: path} }))
		if look := r.Lookup(t.Context(), o); look.Finding != ledger.LookInconclusive {
			t.Errorf("%q: %+v", path, look)
		}
	}
	if conns, _ := p.seen(); conns != 0 {
		t.Errorf("asked %d times", conns)
	}
	gone := mustRail(t, card("http://127.0.0.1:1"))
	if look := gone.Lookup(t.Context(), payment()); look.Finding != ledger.LookUnreachable || look.Sentence != "The provider could not be asked: it refused the connection." {
		t.Errorf("%+v", look)
	}
	silent := newProvider(t, func(p *provider, c *net.TCPConn) { p.request(c); p.take(c, 1) })
	slow := mustRail(t, with(card(silent.url), func(c *Config) { c.Timeout = Lasting(200 * time.Millisecond) }))
	if look := slow.Lookup(t.Context(), payment()); look.Finding != ledger.LookUnreachable || !strings.Contains(look.Sentence, "No answer after 0.2 s.") {
		t.Errorf("%+v", look)
	}
}

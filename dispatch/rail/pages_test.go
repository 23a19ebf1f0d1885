package rail

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// shelf is a provider that keeps a list in pages: the first answer goes to a
// request without the parameter, the others to the value that asks for them.
func shelf(t *testing.T, param string, pages map[string]string) (*provider, func() []string) {
	var asked []string
	p := newProvider(t, func(p *provider, c *net.TCPConn) {
		req := p.request(c)
		if req == nil {
			return
		}
		q, err := url.ParseQuery(req.URL.RawQuery)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, q.Get(param))
		if page, ok := pages[q.Get(param)]; ok {
			io.WriteString(c, page)
		}
	})
	return p, func() []string { p.stop(); return asked }
}

func TestListsAreReadToTheirEnd(t *testing.T) {
	ours := payment().OrderID
	record := func(id, stamp, status string) string {
		return fmt.Sprintf(`{"id":%q,"amount":125000,"currency":"eur","recipient":"acct_7","status":%q,"metadata":{"operation":%q}}`, id, status, stamp)
	}
	list := func(more bool, cursor string, records ...string) string {
		return answer("200 OK", fmt.Sprintf(`{"data":[%s],"has_more":%t,"page":{"next":%s}}`, strings.Join(records, ","), more, cursor))
	}
	last := func(pages int) *Next { return &Next{Last: "/id", Param: "starting_after", Pages: &pages} }
	cursor := func(pages int) *Next { return &Next{Cursor: "/page/next", Param: "page[after]", Pages: &pages} }
	other := func(id string) string { return record(id, "ord_other", "succeeded") }
	for _, c := range []struct {
		name  string
		next  *Next
		pages map[string]string
		want  ledger.LookFinding
		says  string
		asked string
	}{
		{"found on the third page", last(20), map[string]string{"": list(true, "null", other("a")), "a": list(true, "null", other("b")), "b": list(false, "null", record("c", ours, "succeeded"))},
			ledger.LookFound, "found 1 with our stamp", ",a,b"},
		{"found twice, pages apart", last(20), map[string]string{"": list(true, "null", record("a", ours, "succeeded")), "a": list(false, "null", record("b", ours, "succeeded"))},
			ledger.LookFound, "found 2 with our stamp", ",a"},
		{"absent only after the last page", last(20), map[string]string{"": list(true, "null", other("a")), "a": list(false, "null")},
			ledger.LookAbsent, "found nothing", ",a,"},
		{"more pages than may be read", last(2), map[string]string{"": list(true, "null", other("a")), "a": list(true, "null", other("b")), "b": list(false, "null")},
			ledger.LookInconclusive, "goes on behind the 2 pages", ",a"},
		{"a page that is cut", last(20), map[string]string{"": list(true, "null", other("a")), "a": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"data\":[]}"},
			ledger.LookUnreachable, "Page 2 of the look-up", ",a"},
		{"a page that is an error", last(20), map[string]string{"": list(true, "null", other("a")), "a": answer("500 Oops", `{}`)},
			ledger.LookUnreachable, "with 500", ",a"},
		{"a page that never comes", last(20), map[string]string{"": list(true, "null", other("a"))},
			ledger.LookUnreachable, "Page 2", ",a"},
		{"found, and a later page broken", last(20), map[string]string{"": list(true, "null", record("a", ours, "succeeded"))},
			ledger.LookFound, "A later page could not be read", ",a"},
		{"a list that does not say where it ends", last(20), map[string]string{"": answer("200 OK", `{"data":[`+other("a")+`]}`)},
			ledger.LookInconclusive, "goes on", ""},
		{"an empty page that goes on", last(20), map[string]string{"": list(true, "null")}, ledger.LookInconclusive, "goes on", ""},
		{"a list that goes in a circle", last(20), map[string]string{"": list(true, "null", other("a")), "a": list(true, "null", other("a"))},
			ledger.LookInconclusive, "goes on", ",a"},

		{"cursor, found", cursor(20), map[string]string{"": list(true, `"x&y=1 é"`, other("a")), "x&y=1 é": list(false, "null", record("b", ours, "succeeded"))},
			ledger.LookFound, "", ",x&y=1 é"},
		{"cursor, absent", cursor(20), map[string]string{"": list(true, `"p2"`), "p2": list(false, `"p2"`)}, ledger.LookAbsent, "", ",p2,"},
		{"cursor without has_more, absent", cursor(20), map[string]string{"": answer("200 OK", `{"data":[],"page":{"next":7}}`), "7": answer("200 OK", `{"data":[],"page":{}}`)},
			ledger.LookAbsent, "", ",7,"},
		{"cursor missing though there is more", cursor(20), map[string]string{"": list(true, "null")}, ledger.LookInconclusive, "goes on", ""},
		{"cursor that cannot be read", cursor(20), map[string]string{"": answer("200 OK", `{"data":[],"page":{"next":{"a":1}}}`)}, ledger.LookInconclusive, "goes on", ""},
		{"cursor in a circle", cursor(20), map[string]string{"": list(true, `"p"`), "p": list(true, `"p"`)}, ledger.LookInconclusive, "goes on", ",p"},

		{"not a success yet", last(20), map[string]string{"": list(false, "null", record("a", ours, "processing"))},
			ledger.LookInconclusive, `The look-up found a with our stamp, but its /status is "processing": that is not a success yet.`, ""},
		{"one of several successes", last(20), map[string]string{"": list(false, "null", record("a", ours, "paid"))}, ledger.LookFound, "", ""},
		{"a failed one and a good one", last(20), map[string]string{"": list(false, "null", record("a", ours, "failed"), record("b", ours, "paid"))}, ledger.LookFound, "found 1 ", ""},
		{"another's failure", last(20), map[string]string{"": list(false, "null", record("a", "ord_other", "failed"))}, ledger.LookAbsent, "", ""},
	} {
		p, asked := shelf(t, c.next.Param, c.pages)
		r := mustRail(t, with(card(p.url), func(k *Config) {
			k.Lookup = Lookup{Path: "/payments?created[gte]={first_sent_at}&limit=100", Items: "/data", Next: c.next,
				ConfirmedWhen: map[string]any{"/status": []any{"succeeded", "paid"}}}
		}))
		o := payment()
		o.FirstMarkAt = 1_772_366_400_000
		look := r.Lookup(t.Context(), o)
		if look.Finding != c.want || !strings.Contains(look.Sentence, c.says) {
			t.Errorf("%s: %s %q, want %s %q", c.name, look.Finding, look.Sentence, c.want, c.says)
		}
		if got := strings.Join(asked(), ","); got != c.asked {
			t.Errorf("%s: asked for %q, want %q", c.name, got, c.asked)
		}
	}
}

// A record comes in while the list is read, newest first: after page one, and
// before its first record.
func TestCase160ARecordThatComesInBetweenTwoPagesIsNotAbsent(t *testing.T) {
	ours := payment().OrderID
	record := func(id, stamp string) string {
		return fmt.Sprintf(`{"id":%q,"amount":125000,"currency":"eur","recipient":"acct_7","metadata":{"operation":%q}}`, id, stamp)
	}
	list := func(more bool, records ...string) string {
		return answer("200 OK", fmt.Sprintf(`{"data":[%s],"has_more":%t}`, strings.Join(records, ","), more))
	}
	for _, c := range []struct {
		claim string
		again string // the first page after the last one was read
		want  ledger.LookFinding
	}{
		{"it is found on this pass", list(true, record("d", ours), record("c", "ord_other")), ledger.LookFound},
		{"others that come in do not hide it", list(true, record("d", "ord_other"), record("c", "ord_other")), ledger.LookAbsent},
		{"where so many came in that the windows do not overlap, a miss proves nothing", list(true, record("f", "ord_other"), record("e", "ord_other")), ledger.LookInconclusive},
		{"where the list cannot be read again, nobody was asked", answer("500 Oops", "{}"), ledger.LookUnreachable},
	} {
		t.Run(c.claim, func(t *testing.T) {
			pages := []string{list(true, record("c", "ord_other"), record("b", "ord_other")), list(false, record("a", "ord_other")), c.again}
			var turning sync.Mutex // each page comes over a connection of its own
			p := newProvider(t, func(p *provider, conn *net.TCPConn) {
				if p.request(conn) == nil {
					return
				}
				turning.Lock()
				page := pages[0]
				pages = pages[1:]
				turning.Unlock()
				io.WriteString(conn, page)
			})
			r := mustRail(t, with(card(p.url), func(k *Config) {
				n := 20
				k.Lookup = Lookup{Path: "/payments?created[gte]={first_sent_at}", Items: "/data", Next: &Next{Last: "/id", Param: "starting_after", Pages: &n}}
			}))
			o := payment()
			o.FirstMarkAt = 1_772_366_400_000
			if look := r.Lookup(t.Context(), o); look.Finding != c.want {
				t.Errorf("%s: %s", look.Finding, look.Sentence)
			}
		})
	}
}

// All pages together have the rail's time-out, however quickly each one comes.
func TestPagesShareOneTimeout(t *testing.T) {
	n := 0
	p := newProvider(t, func(p *provider, c *net.TCPConn) {
		if p.request(c) != nil {
			n++
			io.WriteString(c, answer("200 OK", fmt.Sprintf(`{"data":[{"id":"r%d","metadata":{"operation":"ord_other"}}],"has_more":true}`, n)))
		}
	})
	pages := 20000
	r := mustRail(t, with(card(p.url), func(c *Config) {
		c.Timeout, c.Lookup.Next = Lasting(200*time.Millisecond), &Next{Last: "/id", Param: "after", Pages: &pages}
	}))
	if look := r.Lookup(t.Context(), payment()); look.Finding != ledger.LookUnreachable || !strings.HasPrefix(look.Sentence, "Page ") {
		t.Errorf("%s: %s", look.Finding, look.Sentence)
	}
}

func TestAListOfEverybodysRecordsAccusesNobody(t *testing.T) {
	bare := func(amount int) string {
		return answer("200 OK", fmt.Sprintf(`{"data":[{"id":"a","amount":%d,"currency":"eur","recipient":"acct_7","metadata":{}},{"object":"without an id"}],"has_more":false}`, amount))
	}
	for amount, want := range map[int]ledger.LookFinding{125000: ledger.LookInconclusive, 99: ledger.LookAbsent} {
		p := newProvider(t, always(bare(amount)))
		r := mustRail(t, with(card(p.url), func(c *Config) { c.Lookup.Path = "/payments?since={first_sent_at}" }))
		o := payment()
		o.FirstMarkAt = 1_772_366_400_000
		if look := r.Lookup(t.Context(), o); look.Finding != want {
			t.Errorf("%d: %+v", amount, look)
		}
	}
}

func TestQueriesAreWrittenSoThatTheyAreRead(t *testing.T) {
	o := payment()
	o.Terms.Reference = "a b&c=d+e%2F#é"
	o.FirstMarkAt = 1_772_366_400_999
	o.Payload = []byte(`{"quote":"x' OR '1","slash":"x\\","plain":"a:b"}`)
	for path, want := range map[string]url.Values{
		"/v1/payment_intents?created[gte]={first_sent_at}&limit=100":          {"created[gte]": {"1772366100"}, "limit": {"100"}},
		"/v1/payment_intents/search?query=metadata['operation']:'{order_id}'": {"query": {"metadata['operation']:'" + o.OrderID + "'"}},
		`/v1/charges/search?query=metadata["operation"]:"{order_id}"&limit=1`: {"query": {`metadata["operation"]:"` + o.OrderID + `"`}, "limit": {"1"}},
		"/payments?reference={reference}&x=1":                                 {"reference": {o.Terms.Reference}, "x": {"1"}},
		"/payments?query=a%20AND%20metadata[%27x%27]:%27{/plain}%27":          {"query": {"a AND metadata['x']:'a:b'"}},
		"/payments?filter=<{/quote}>":                                         {"filter": {"<x' OR '1>"}},
		"/search?query=metadata['r']:'{/quote}'":                              nil,
		"/search?query=metadata['r']:'{/slash}'":                              nil,
		"/search?query=metadata%5B%27r%27%5D:%27{/quote}%27":                  nil,
	} {
		tpl, err := parseTemplate(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tpl.fill(o)
		if want == nil {
			if err == nil || !strings.Contains(err.Error(), "quotation mark") {
				t.Errorf("%s is %s, %v", path, got, err)
			}
			continue
		}
		u, parseErr := url.Parse(got)
		if err != nil || parseErr != nil || u.Query().Encode() != want.Encode() || strings.ContainsAny(got, "[]\"<> ") {
			t.Errorf("%s is %s, %v %v", path, got, err, parseErr)
		}
	}
}

func TestTheTimeOfTheFirstSendIsNeverGuessed(t *testing.T) {
	o := payment()
	o.CreatedAt = 1_772_366_000_000
	if got := firstSentAt(o); got != "" {
		t.Errorf("what was never marked was sent at %s", got)
	}
	o.Quarantined = true // restored from a backup: sent in the time that was lost, if at all
	if got := firstSentAt(o); got != "1772365700" {
		t.Errorf("a restored one was sent at %s", got)
	}
	o.FirstMarkAt = 1_772_366_400_000
	if got := firstSentAt(o); got != "1772366100" {
		t.Errorf("%s", got)
	}
}

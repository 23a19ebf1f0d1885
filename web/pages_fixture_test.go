package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// pagesRules have a rail that can be asked and recognises keys, one that can do
// neither, and a policy row of each kind. Nothing listens at either address.
const pagesRules = `
rails:
  card:
    adapter: http
    base_url: http://127.0.0.1:1
    account: test
    headers: { Authorization: "Bearer not-a-real-secret" }
    dedupe: { by: key, header: Idempotency-Key, retention: 24h }
    send: { method: POST, path: /payments }
    answers: [ { status: [201], means: confirmed } ]
    receipt: { id: /id, amount: /amount }
    stamp: { header: X-Operation }
    lookup: { path: "/payments?reference={order_id}", items: /data }
  wire:
    adapter: http
    base_url: http://127.0.0.1:1
    account: test
    send: { method: POST, path: /wires }
    answers: [ { status: [201], means: confirmed } ]
    receipt: { id: /id, amount: /amount }
action_types:
  pay: { rail: card, effect: charge, schema: SCHEMA }
  wire: { rail: wire, effect: wire, schema: SCHEMA }
policy:
  - { name: two people, when: { currency: USD }, then: ask, approvals: 2 }
  - { name: with a reason, when: { currency: GBP }, then: ask, of: finance, reason_required: true }
  - { name: big, when: { currency: EUR, amount_over: 100000 }, then: ask }
  - { name: the rest, when: {}, then: allow }
`

const pagesSchema = `{ type: object, required: [amount, currency, recipient], properties: { amount: { type: integer, x-role: amount },
      currency: { type: string, x-role: currency }, recipient: { type: string, x-role: recipient }, reference: { type: string, x-role: reference },
      note: { type: string }, iban: { type: string, x-sensitive: true } } }`

// pagesConfig has two tenants with the same rules.
var pagesConfig = strings.ReplaceAll(pagesRules+"tenants:\n  other:"+strings.ReplaceAll(pagesRules, "\n", "\n    "), "SCHEMA", pagesSchema)

// browser is somebody at a browser, signed in.
type browser struct {
	*world
	who    ledger.PersonRecord
	cookie string
}

// signIn gives a person a browser with a session.
func (w *world) signIn(p ledger.PersonRecord) browser {
	w.t.Helper()
	secret, err := w.Store.StartSession(w.t.Context(), p, ledger.Session{UserAgent: "test", ProvedWith: ledger.WithPassword})
	must(w.t, err)
	return browser{w, p, sessionName + "=" + secret}
}

func (b browser) get(path string) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.do(http.MethodGet, path, "", "Cookie: "+b.cookie)
}

func (b browser) post(path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	headers = append(headers, "Cookie: "+b.cookie, "Content-Type: application/x-www-form-urlencoded", "Sec-Fetch-Site: same-origin")
	return b.do(http.MethodPost, path, form.Encode(), headers...)
}

// act sends the form of a decision as it would stand on the page now. {op} in a
// field is the operation's id: one receipt proves one purchase.
func (b browser) act(o ledger.Operation, name string, fields ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	form := url.Values{"fingerprint": {o.Fingerprint}, "version": {strconv.FormatInt(o.Version, 10)}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], strings.ReplaceAll(fields[i+1], "{op}", o.OperationID))
	}
	return b.post("/operations/"+o.OperationID+"/"+name, form)
}

// wanted is what an agent asks for. Where a part is empty, it is made up so
// that nothing overlaps.
type wanted struct {
	tenant, owner, action, currency, recipient, reference, id string
	amount                                                    int64
}

var counter int

// ask registers an operation the way that an agent does.
func (w *world) ask(a wanted) ledger.Operation {
	w.t.Helper()
	counter++
	a.tenant, a.action, a.currency = orText(a.tenant, "default"), orText(a.action, "pay"), orText(a.currency, "EUR")
	a.id = orText(a.id, fmt.Sprintf("op-%d", counter))
	a.recipient, a.reference = orText(a.recipient, fmt.Sprintf("acct_%d", counter)), orText(a.reference, fmt.Sprintf("ref-%d", counter))
	token, _ := w.token(a.tenant, "agent-1", a.owner)
	body := fmt.Sprintf(`{"operation_id":%q,"action_type":%q,"payload":{"amount":%d,"currency":%q,"recipient":%q,"reference":%q,"iban":"DE-SECRET-77"}}`,
		a.id, a.action, max(a.amount, 100), a.currency, a.recipient, a.reference)
	answer := w.do(http.MethodPost, "/v1/operations", body, "Authorization: Bearer "+token, "Content-Type: application/json")
	if answer.Code != http.StatusAccepted {
		w.t.Fatalf("submitting: %d %s", answer.Code, answer.Body)
	}
	return w.stored(a.tenant, a.id)
}

func (w *world) stored(tenant, id string) ledger.Operation {
	w.t.Helper()
	o, err := w.Store.Operation(w.t.Context(), tenant, id)
	must(w.t, err)
	return o
}

// lose sends a ready operation and gets no answer.
func (w *world) lose(o ledger.Operation) ledger.Operation {
	w.t.Helper()
	return w.answer(o, ledger.Answer{Finding: ledger.Unclear, Sentence: "No answer in 10s."})
}

// answer sends a ready operation, as a worker would, and settles the answer.
func (w *world) answer(o ledger.Operation, answer ledger.Answer) ledger.Operation {
	w.t.Helper()
	ctx := w.t.Context()
	claims, err := w.Store.Claim(ctx, "worker-1", o.TenantID, o.Rail, 50, 50)
	must(w.t, err)
	for _, c := range claims {
		if c.Operation.OperationID != o.OperationID {
			must(w.t, w.Store.Release(ctx, c, 0, "another one's turn"))
			continue
		}
		m, err := w.Store.Mark(ctx, c, 10*time.Second, w.Config().Route(o).Render)
		must(w.t, err)
		_, err = w.Store.Settle(ctx, m, answer, []byte(`{"from":"provider"}`), time.Hour)
		must(w.t, err)
	}
	return w.stored(o.TenantID, o.OperationID)
}

// askedFor is an operation that waits for people.
func (w *world) askedFor(owner string) ledger.Operation {
	return w.ask(wanted{owner: owner, amount: 200000})
}

// held is an operation that was sent without an answer, on a rail that can't be
// asked; quiet: no request can act any more.
func (w *world) held(owner string, quiet bool) ledger.Operation {
	w.t.Helper()
	o := w.lose(w.ask(wanted{owner: owner, action: "wire", amount: 4800}))
	if o.Status != ledger.UnknownHold {
		w.t.Fatalf("it should be held, and is %s", o.Status)
	}
	if quiet {
		w.pass(time.Duration(o.QuietFrom-w.Store.Now()+1) * time.Millisecond)
	}
	return o
}

// lost is an operation whose outcome is unknown and that is still looked for.
func (w *world) lost(owner string) ledger.Operation {
	w.t.Helper()
	o := w.lose(w.ask(wanted{owner: owner}))
	if o.Status != ledger.Unknown {
		w.t.Fatalf("it should be unknown, and is %s", o.Status)
	}
	return o
}

// overlapping is an operation that is held because it has the reference of
// another.
func (w *world) overlapping(owner string) ledger.Operation {
	w.t.Helper()
	first := w.ask(wanted{owner: owner})
	o := w.ask(wanted{owner: owner, reference: first.Terms.Reference, amount: 300})
	if o.Status != ledger.UnknownHold || len(o.Overlaps) != 1 {
		w.t.Fatalf("it should be held for an overlap, and is %s", o.Status)
	}
	return o
}

func shows(t *testing.T, answer *httptest.ResponseRecorder, status int, texts ...string) {
	t.Helper()
	if answer.Code != status {
		t.Fatalf("answered %d, want %d\n%s", answer.Code, status, mainText(answer))
	}
	for _, want := range texts {
		if !strings.Contains(text(answer), want) {
			t.Errorf("the page does not say %q:\n%s", want, mainText(answer))
		}
	}
}

func hides(t *testing.T, answer *httptest.ResponseRecorder, texts ...string) {
	t.Helper()
	for _, unwanted := range texts {
		if strings.Contains(text(answer), unwanted) {
			t.Errorf("the page says %q", unwanted)
		}
	}
}

// text is a page with its entities undone and its spaces joined, as it is read.
func text(answer *httptest.ResponseRecorder) string {
	s := strings.NewReplacer("&#39;", "'", "&#34;", `"`, "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(answer.Body.String())
	return strings.Join(strings.Fields(s), " ")
}

// mainText is the part of a page between its frame and its foot, for messages.
func mainText(answer *httptest.ResponseRecorder) string {
	_, main, found := strings.Cut(text(answer), "<main")
	if !found {
		return text(answer)
	}
	main, _, _ = strings.Cut(main, "</main>")
	return main
}

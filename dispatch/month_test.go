package dispatch_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/dispatch"
	"holdfast/reconcile"
	"holdfast/store"
	"holdfast/store/invariant"
	"holdfast/store/ledger"
)

// The rails of the month: one that knows a key again, lists late and sends
// events; one that knows nothing again and lists hours late; one that can only be
// read on its statements.
const monthRails = `
rails:
  card:
    adapter: sandbox
    base_url: http://%[1]s
    dedupe: { by: key, header: Idempotency-Key, retention: 24h }
    lookup: { path: "/payments?operation={order_id}", items: /data, lag: 20m }
    statement: { format: csv, amounts: minor, columns: { id: id, amount: amount, currency: currency, date: created_at, reference: reference, stamp: operation, counterparty: recipient } }
    events: { scheme: standard-webhooks, secret: "whsec_bW9udGgtbW9udGgtbW9udGgtbW9udGgtbW9udGg=", id: /data/id, stamp: /data/operation, confirmed_when: { /type: payment.succeeded } }
  bank:
    adapter: sandbox
    base_url: http://%[2]s
    dedupe: { by: none }
    lookup: { path: "/payments?operation={order_id}", items: /data, lag: 3h, absence_proves_after: 26h }
    statement: { format: csv, amounts: minor, columns: { id: id, amount: amount, currency: currency, date: created_at, reference: reference, stamp: operation, counterparty: recipient } }
  wire:
    adapter: sandbox
    base_url: http://%[3]s
    dedupe: { by: none }
    statement: { format: csv, amounts: minor, columns: { id: id, amount: amount, currency: currency, date: created_at, reference: reference, stamp: operation, counterparty: recipient } }
timing: { unknown_for: 48h }
jobs: { lookup: "@every 10m", sweep: "@every 10m", events: "@every 1h", recheck: "30 3 * * *", statements: "@every 24h", refunds: "0 7 * * *" }
action_types:`

// monthProvider is a provider in this process, outside the simulated time, whose
// clock is the simulated one.
type monthProvider struct {
	rail, addr string
	known      map[string]bool // effects that were told as events
}

type monthEffect struct {
	ID        string    `json:"id"`
	Key       string    `json:"key"`
	Amount    int64     `json:"amount"`
	Currency  string    `json:"currency"`
	Recipient string    `json:"recipient"`
	Reference string    `json:"reference"`
	Operation string    `json:"operation"`
	At        time.Time `json:"at"`
}

func startMonthProvider(t *testing.T, rail string, dedupe bool, lag time.Duration, now func() time.Time) *monthProvider {
	s, err := dispatch.NewSandbox(dispatch.SandboxOptions{Dedupe: dedupe, Lag: lag, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s.Handler()}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(l) })
	t.Cleanup(func() { server.Close(); serving.Wait(); s.Close() })
	return &monthProvider{rail: rail, addr: l.Addr().String(), known: map[string]bool{}}
}

func (p *monthProvider) effects(t *testing.T) []monthEffect {
	t.Helper()
	// A connection that is kept open would hold the simulated time: it waits for
	// the world.
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + p.addr + "/_effects")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var book struct{ Effects []monthEffect }
	if err := json.NewDecoder(res.Body).Decode(&book); err != nil {
		t.Fatal(err)
	}
	return book.Effects
}

// purchase is one line of the month's plan.
type purchase struct {
	id, rail, currency string
	amount             int64
	at                 time.Duration
	faults             []string
}

// monthPlan spreads purchases over some days. Of a hundred, three lose their
// answer and one is acted on twice; a short month has five times that bad luck, so
// that everything happens in it.
func monthPlan(chance *rand.Rand, n, days int) (plan []purchase) {
	worse := 1
	if days < 30 {
		worse = 5
	}
	lost := []string{"drop_before", "drop_after", "error_500_before", "error_500_after", "reset_mid_body", "garbage_body"}
	for i := range n {
		p := purchase{id: fmt.Sprintf("p%05d", i), rail: []string{"card", "card", "bank", "wire"}[chance.IntN(4)], currency: []string{"EUR", "USD"}[chance.IntN(2)],
			amount: 100 + chance.Int64N(500_000), at: time.Duration(chance.Int64N(int64(days) * int64(24*time.Hour)))}
		if p.rail == "wire" {
			p.currency = []string{"EUR", "JPY"}[chance.IntN(2)]
		}
		switch luck := chance.IntN(1000); {
		case luck < 30*worse:
			p.faults = []string{lost[chance.IntN(len(lost))]}
		case luck < 40*worse:
			p.faults = []string{"double"}
		case luck < 50*worse:
			p.faults = []string{"decline_402"}
		}
		plan = append(plan, p)
	}
	slices.SortFunc(plan, func(a, b purchase) int { return cmp.Compare(a.at, b.at) })
	return plan
}

func (p *monthProvider) arm(t *testing.T, plan []purchase) {
	t.Helper()
	type fault struct {
		Match map[string]string `json:"match"`
		Fault string            `json:"fault"`
		Times int               `json:"times"`
	}
	faults := []fault{}
	for _, one := range plan {
		for _, f := range one.faults {
			if one.rail == p.rail {
				faults = append(faults, fault{map[string]string{"reference": one.id}, f, 1})
			}
		}
	}
	text, err := json.Marshal(faults)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post("http://"+p.addr+"/_faults", "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("arming faults: %s", res.Status)
	}
}

// month is one run of it, in simulated time.
type month struct {
	*gateway
	chance    *rand.Rand
	providers []*monthProvider
	clerk     ledger.PersonRecord
	decided   int
	days      int
}

// A month of purchases over three rails, with lost answers, providers that act
// twice, indexes that are late, events that are late and come twice, and
// statements drawn from the providers' own books. At its end the ledger and the
// books agree to the minor unit.
func TestAMonthEndsWithTheProvidersBooks(t *testing.T) {
	defer dispatch.SetIdlePoll(15 * time.Minute)()
	n, days := 300, 8 // a short one
	if text := os.Getenv("HOLDFAST_TEST_MONTH"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		days = 30
	}
	var clock atomic.Int64
	now := func() time.Time { return time.UnixMilli(clock.Load()) }
	providers := []*monthProvider{
		startMonthProvider(t, "card", true, 15*time.Minute, now),
		startMonthProvider(t, "bank", false, 2*time.Hour, now),
		startMonthProvider(t, "wire", false, 0, now),
	}
	chance := rand.New(rand.NewPCG(11, 30))
	plan := monthPlan(chance, n, days)
	for _, p := range providers {
		p.arm(t, plan)
	}
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		clock.Store(time.Now().UnixMilli())
		m := openMonth(t, folder, providers, chance, &clock)
		defer m.close()
		m.live(plan)
		m.agrees(plan)
	})
}

func openMonth(t *testing.T, folder string, providers []*monthProvider, chance *rand.Rand, clock *atomic.Int64) *month {
	config := fmt.Sprintf(monthRails, providers[0].addr, providers[1].addr, providers[2].addr) +
		action("pay_card", "card") + action("pay_bank", "bank") + action("pay_wire", "wire") + allowAll
	m := &month{gateway: openGateway(t, folder, config, nil), chance: chance, providers: providers}
	m.tick = func() { clock.Store(time.Now().UnixMilli()) }
	var err error
	m.clerk, err = m.store.AddPerson(context.Background(), ledger.PersonRecord{TenantID: dispatch.DefaultTenant, Email: "carla@acme.example", Name: "Carla",
		Roles: []string{"finance"}}, "", ledger.Holder{Kind: ledger.Person, Name: "root"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// live lets the plan happen, and twelve days more for what is late.
func (m *month) live(plan []purchase) {
	stop := m.run()
	ctx, cancel := context.WithCancel(context.Background())
	var scheduled sync.WaitGroup
	scheduled.Go(func() { m.jobs.Start(ctx) })
	defer func() { stop(); cancel(); scheduled.Wait() }()
	began, nextDay := time.Now(), 24*time.Hour
	for _, p := range plan {
		for p.at > nextDay {
			time.Sleep(nextDay - time.Since(began))
			m.day()
			nextDay += 24 * time.Hour
		}
		time.Sleep(p.at - time.Since(began))
		m.tick()
		m.buy(p)
	}
	for range 12 {
		time.Sleep(24 * time.Hour)
		m.day()
	}
}

func (m *month) buy(p purchase) {
	o := m.draftOf(p.id, "pay_"+p.rail, fmt.Sprintf(`{"amount":%d,"currency":%q,"recipient":"acct_%s","reference":%q}`, p.amount, p.currency, p.id, p.id))
	if _, err := m.store.Submit(context.Background(), o); err != nil {
		m.t.Fatal(err)
	}
}

// day is what happens once a day beside the purchases. Statements come every
// third day, and each covers five, so that they overlap.
func (m *month) day() {
	m.days++
	m.tick()
	m.tell()
	if m.days%3 == 0 {
		m.readStatements(time.Now().Add(-5 * 24 * time.Hour))
		m.answerHolds()
	}
}

// tell delivers the card provider's events of the last day, some twice, in no
// order.
func (m *month) tell() {
	p := m.providers[0]
	var fresh []monthEffect
	for _, e := range p.effects(m.t) {
		if !p.known[e.ID] && m.chance.IntN(3) > 0 { // the others come another day
			p.known[e.ID] = true
			fresh = append(fresh, e)
			if m.chance.IntN(10) == 0 {
				fresh = append(fresh, e)
			}
		}
	}
	m.chance.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
	for _, e := range fresh {
		body, err := json.Marshal(map[string]any{"type": "payment.succeeded", "data": map[string]any{"id": e.ID, "amount": e.Amount, "currency": e.Currency,
			"recipient": e.Recipient, "reference": e.Reference, "operation": e.Operation, "created_at": e.At.UTC().Format(time.RFC3339)}})
		if err != nil {
			m.t.Fatal(err)
		}
		if err := m.jobs.Hear(context.Background(), dispatch.DefaultTenant, p.rail, signedEvent("msg_"+e.ID, body), body); err != nil {
			m.t.Fatal(err)
		}
	}
}

func signedEvent(id string, body []byte) http.Header {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte("month-month-month-month-month"))
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	h := http.Header{}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", at)
	h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return h
}

// readStatements takes in what the providers' books say since a moment, an
// account a currency.
func (m *month) readStatements(since time.Time) {
	for _, p := range m.providers {
		files := map[string]*bytes.Buffer{}
		for _, e := range p.effects(m.t) {
			if e.At.Before(since) {
				continue
			}
			f := files[e.Currency]
			if f == nil {
				f = bytes.NewBufferString("id,amount,currency,created_at,reference,operation,recipient\n")
				files[e.Currency] = f
			}
			fmt.Fprintf(f, "%s,%d,%s,%s,%s,%s,%s\n", e.ID, e.Amount, e.Currency, e.At.UTC().Format(time.RFC3339), e.Reference, e.Operation, e.Recipient)
		}
		for currency, f := range files {
			_, err := m.jobs.ImportStatement(context.Background(), reconcile.Upload{Tenant: dispatch.DefaultTenant, Rail: p.rail, Account: currency,
				Name: p.rail + ".csv", Data: f.Bytes(), By: ledger.Holder{Kind: ledger.Person, Name: m.clerk.Email}})
			if err != nil {
				m.t.Fatal(p.rail, err)
			}
		}
	}
}

// patience is how long the clerk waits for a statement that shows an operation:
// what was sent in that time may stand on the next one.
const patience = 4 * 24 * time.Hour

// answerHolds is the clerk's work: what is held is answered by what the
// statements show, and only by that.
func (m *month) answerHolds() {
	for _, o := range m.waiting(ledger.UnknownHold) {
		lines, err := m.store.LinesAbout(context.Background(), dispatch.DefaultTenant, o.OperationID)
		if err != nil {
			m.t.Fatal(err)
		}
		d := store.Decision{Person: m.clerk, Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}, Reason: "seen on the statement"}
		switch {
		case len(lines) > 0:
			d.ReceiptID, d.Amount = lines[0].ProviderID, &lines[0].Gross
			_, err = m.store.Happened(context.Background(), dispatch.DefaultTenant, o.OperationID, d)
		case time.Since(time.UnixMilli(o.LastSendBy)) > patience:
			d.Reason = "not on the statements that cover the day"
			_, err = m.store.DidNotHappen(context.Background(), dispatch.DefaultTenant, o.OperationID, d)
		default:
			continue
		}
		if err != nil {
			m.t.Fatalf("%s: %v", o.OperationID, err)
		}
		m.decided++
	}
}

func (m *month) waiting(s ledger.Status) (all []ledger.Operation) {
	for cursor := ""; ; {
		page, err := m.store.Operations(context.Background(), dispatch.DefaultTenant, store.Filter{Statuses: []ledger.Status{s}, Limit: 200, Cursor: cursor})
		if err != nil {
			m.t.Fatal(err)
		}
		all = append(all, page.Items...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

// closes answers every exception that is left, and closes every account: each of
// them is about an effect that is owed, and about nothing else.
func (m *month) closes(owed []ledger.RefundOwed) {
	m.do("statements")
	left, err := m.store.StatementExceptions(context.Background(), dispatch.DefaultTenant, store.ExceptionFilter{Limit: 1000})
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range left {
		if e.LineID == 0 || !slices.ContainsFunc(owed, func(r ledger.RefundOwed) bool { return r.ReceiptID == e.Line.ProviderID && r.Rail == e.Line.Rail }) {
			m.t.Errorf("an exception that no entry answers: %+v", e)
		}
		d := store.Decision{Person: m.clerk, Reason: "given back as a refund owed"}
		if err := m.store.SetAside(context.Background(), dispatch.DefaultTenant, e.Exceptional, d); err != nil {
			m.t.Error(err)
		}
	}
}

// agrees holds the ledger against the providers' books.
func (m *month) agrees(plan []purchase) {
	type place struct{ rail, currency string }
	books, ours := map[place]int64{}, map[place]int64{}
	var kept []invariant.Book
	for _, p := range m.providers {
		b := invariant.Book{Rail: p.rail, Dedupes: p.rail == "card"}
		for _, e := range p.effects(m.t) {
			books[place{p.rail, e.Currency}] += e.Amount
			b.Effects = append(b.Effects, invariant.Effect{Key: e.Key, Stamp: e.Operation, ID: e.ID, Amount: e.Amount, Currency: e.Currency, At: e.At.UnixMilli()})
		}
		kept = append(kept, b)
	}
	ended := map[string]int{}
	for _, p := range plan {
		o := m.get(p.id)
		ended[fmt.Sprint(o.Rail, " ", o.Status, " ", o.Reason)]++
		switch o.Status {
		case ledger.Confirmed:
			ours[place{o.Rail, o.Terms.Currency}] += o.Terms.Amount
		case ledger.Rejected:
		default:
			m.t.Errorf("%s is %s (%s): %s", p.id, o.Status, o.Reason, o.Detail)
		}
	}
	owed, err := m.store.RefundsOwed(context.Background(), dispatch.DefaultTenant)
	if err != nil {
		m.t.Fatal(err)
	}
	twice := map[string]bool{}
	for _, r := range owed {
		ours[place{r.Rail, r.Currency}] += r.Amount
		if twice[r.OperationID] {
			m.t.Errorf("%s is owed for twice", r.OperationID)
		}
		twice[r.OperationID] = true
	}
	m.closes(owed)
	for at, sum := range books {
		if ours[at] != sum {
			m.t.Errorf("%s %s: the provider's book adds up to %d, confirmed and owed to %d", at.rail, at.currency, sum, ours[at])
		}
	}
	found, err := invariant.Check(context.Background(), m.store, kept...)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, v := range found {
		if slices.Contains([]string{"I-1", "I-2", "I-7"}, v.Name) && twice[v.Operation] {
			continue // the provider did it twice for one request, and it is owed
		}
		m.t.Error(v)
	}
	m.t.Logf("%d purchases, %d owed, %d decided by a person: %v", len(plan), len(owed), m.decided, ended)
}

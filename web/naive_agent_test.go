package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// naiveConfig has one rail to a sandbox provider and little patience, so that
// what goes wrong does so within the test.
const naiveConfig = `
rails:
  sandbox: { adapter: sandbox, timeout: 1s, quiet: 1s, LIMITS }
action_types:
  pay: { rail: sandbox, effect: charge, schema: SCHEMA }
runs: { max_attempts: 8, max_elapsed: 1h }
limits: { requests_per_second: 1000000000 }
`

// naiveFaults strike one call in five. Half of them leave the payment made.
var naiveFaults = []string{"drop_before", "drop_after", "error_500_before", "error_500_after", "reset_mid_body", "garbage_body", "rate_limit_429", "slow_ms:1500", "slow_ms:50"}

// bazaar is where many naive agents buy.
type bazaar struct {
	journey
	calls, exceptions, restarts, replans, intents, faults atomic.Int64
}

// naive is an agent that buys one thing. What it knows for sure is in its head:
// whom it pays and for which order. It reads nothing of an answer but next and
// poll; every error is a reason to try again; it plans again with other
// arguments; and when it is started anew it has forgotten its id.
//
// One that runs in a framework (run is not empty) changes whatever it likes
// under the framework's run and step. One on its own keeps to the order number
// as its reference, or leaves it out, and then pays the same amount: with
// neither reference, nor step, nor amount in common nobody could tell that two
// purchases are one.
type naive struct {
	*bazaar
	chance               *rand.Rand
	order, recipient     string
	run                  string
	drops                bool // plans again without its reference, and not with another amount
	id, reference, given string
	amount               int
	replaces             string
	silent               string // what its id was given out for, and it does not repeat
	ids                  int
}

func (c *bazaar) naive(n int) *naive {
	a := &naive{bazaar: c, chance: rand.New(rand.NewPCG(7, uint64(n))), order: fmt.Sprint("order-", n), recipient: fmt.Sprint("acct-", n)}
	if a.one(2) {
		a.run = fmt.Sprint("run-", n)
	}
	a.drops = a.one(2)
	a.reference, a.amount = a.order, 1000+a.chance.IntN(90_000)
	return a
}

// one is true one time in n.
func (a *naive) one(n int) bool { return a.chance.IntN(n) == 0 }

// trip arms the faults that this purchase will meet at the provider.
func (a *naive) trip() error {
	type match struct {
		Recipient string `json:"recipient"`
	}
	type fault struct {
		Match match  `json:"match"`
		Fault string `json:"fault"`
		Times int    `json:"times"`
	}
	var all []fault
	for a.one(5) {
		all = append(all, fault{match{a.recipient}, naiveFaults[a.chance.IntN(len(naiveFaults))], 1})
	}
	if len(all) == 0 {
		return nil
	}
	a.faults.Add(int64(len(all)))
	body, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return a.book.ask(a.ctx, http.MethodPost, "/_faults", body, &struct{}{})
}

var errLost = errors.New("connection reset by peer")

// ask is one request. One answer in six is lost on the way back, and a few
// requests are given up before anything can have come back.
func (a *naive) ask(method, path string, body any, headers ...string) (next, poll string, err error) {
	a.calls.Add(1)
	ctx, cancel := context.WithCancel(a.ctx)
	if a.one(30) {
		ctx, cancel = context.WithTimeout(a.ctx, time.Duration(a.chance.IntN(5000))*time.Microsecond)
	}
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return "", "", err
	}
	q, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(text))
	if err != nil {
		return "", "", err
	}
	q.Header.Set("Authorization", "Bearer "+a.token)
	q.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		q.Header.Set(name, value)
	}
	answer, err := a.client.Do(q)
	if err != nil {
		return "", "", err
	}
	defer answer.Body.Close()
	whole, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", "", err
	}
	if a.one(50) {
		conforms(a.t, method, path, answer.StatusCode, answer.Header, whole)
	}
	var said struct {
		Next        string `json:"next"`
		Poll        string `json:"poll"`
		OperationID string `json:"operation_id"`
	}
	if err := json.Unmarshal(whole, &said); err != nil {
		return "", "", err
	}
	if answer.StatusCode >= 500 {
		a.t.Errorf("%s %s: %s", method, path, whole)
	}
	if a.one(6) {
		return "", "", errLost
	}
	a.given = said.OperationID
	return said.Next, said.Poll, nil
}

// buy tries until it is told to stop, or gives up.
func (a *naive) buy() {
	if a.one(3) {
		a.reserve()
	} else {
		a.freshID()
	}
	heard := false // it does not go away before it was answered once
	for turn := 0; turn < 10 || !heard; turn++ {
		next, poll, err := a.submit()
		for err == nil && next == ledger.NextWait && a.one(2) { // else it simply submits again
			next, poll, err = a.ask(http.MethodGet, poll, nil, "Prefer: wait=2")
		}
		switch {
		case err != nil:
			a.exceptions.Add(1)
			a.stumble()
			continue
		case next == ledger.NextFixRequest: // it named something to replace that never arrived
			a.replaces = ""
			continue
		case next == ledger.NextWait:
		case next == ledger.NextUseResult && a.one(8): // done, and started anew all the same
			a.restart()
		case a.one(3):
			a.replan()
		default:
			return
		}
		heard = true
	}
}

func (a *naive) submit() (next, poll string, err error) {
	body := map[string]any{"operation_id": a.id, "action_type": "pay"}
	payload := map[string]any{"amount": a.amount, "currency": "EUR", "recipient": a.recipient}
	if a.reference != "" && a.silent != "reference" {
		payload["reference"] = a.reference
	}
	body["payload"] = payload
	if a.run != "" && a.silent != "step" {
		body["run_id"], body["step"] = a.run, "pay"
	}
	if a.replaces != "" && a.replaces != a.id {
		body["replaces"] = a.replaces
	}
	return a.ask(http.MethodPost, "/v1/operations", body)
}

// stumble is what it does after an exception.
func (a *naive) stumble() {
	switch a.chance.IntN(4) {
	case 0:
		a.restart()
	case 1:
		a.replan()
	} // else the same again
}

// restart forgets the id. It asks for the one that was given out for the order
// or the step, or comes with a fresh one.
func (a *naive) restart() {
	a.restarts.Add(1)
	a.replaces, a.reference = "", a.order
	if a.one(2) {
		a.freshID()
		return
	}
	a.reserve()
}

// reserve asks for the id of the order or the step. Half of the time it then does
// not repeat what it asked with: the id stands for it.
func (a *naive) reserve() {
	a.intents.Add(1)
	intent, name := map[string]any{"action_type": "pay", "reference": a.order}, "reference"
	if a.run != "" && a.one(2) {
		name, intent = "step", map[string]any{"action_type": "pay", "run_id": a.run, "step": "pay"}
	}
	if _, _, err := a.ask(http.MethodPost, "/v1/intents", intent); err != nil || a.given == "" {
		a.freshID()
		return
	}
	a.id, a.silent = a.given, ""
	if a.one(2) {
		a.silent = name
	}
}

// replan changes its mind about the arguments, under the old id or a fresh one,
// perhaps as a replacement of the old.
func (a *naive) replan() {
	a.replans.Add(1)
	old := a.id
	switch {
	case a.run != "":
		a.amount = 1000 + a.chance.IntN(90_000)
		a.reference = []string{a.order, "", fmt.Sprint("invented-", a.chance.Uint64())}[a.chance.IntN(3)]
	case a.drops:
		a.reference = []string{a.order, ""}[a.chance.IntN(2)]
	default:
		a.amount = 1000 + a.chance.IntN(90_000)
	}
	a.replaces = ""
	if !a.one(4) {
		a.freshID()
		if a.one(3) {
			a.replaces = old
		}
	}
}

func (a *naive) freshID() {
	a.ids++
	a.silent = ""
	a.id = fmt.Sprintf("%s-try-%d-%x", a.order, a.ids, a.chance.Uint32())
}

// everything reads all operations, or those in some states.
func (c *bazaar) everything(statuses ...ledger.Status) (all []ledger.Operation) {
	c.t.Helper()
	f := store.Filter{Limit: 200, Statuses: statuses}
	for {
		page, err := c.Store.Operations(c.ctx, "default", f)
		must(c.t, err)
		all = append(all, page.Items...)
		if f.Cursor = page.Next; f.Cursor == "" {
			return all
		}
	}
}

// rest waits until there is nothing left to send or to look up.
func (c *bazaar) rest() {
	c.t.Helper()
	end := time.Now().Add(3 * time.Minute)
	for {
		page, err := c.Store.Operations(c.ctx, "default", store.Filter{Limit: 1, Statuses: []ledger.Status{ledger.Ready, ledger.InFlight, ledger.Unknown}})
		must(c.t, err)
		if len(page.Items) == 0 {
			return
		}
		if time.Now().After(end) {
			o := page.Items[0]
			c.t.Fatalf("%s is still %s: %s", o.OperationID, o.Status, o.Detail)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// answerHolds lets a person look at the held ones of which nothing was sent, and
// answer all but some of them: it is the same purchase.
func (c *bazaar) answerHolds() (answered int) {
	c.t.Helper()
	ana, err := c.Store.AddPerson(c.ctx, ledger.PersonRecord{TenantID: "default", Email: "ana@example.com", Roles: []string{"approver"}}, "",
		ledger.Holder{Kind: ledger.Person, Name: "test"})
	must(c.t, err)
	for i, o := range c.everything(ledger.UnknownHold) {
		if o.Attempts > 0 || len(o.Overlaps) == 0 || i%4 == 0 {
			continue
		}
		_, err := c.Store.SamePurchase(c.ctx, "default", o.OperationID, store.Decision{Person: ana,
			Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}, Reason: "one order", Original: o.Overlaps[len(o.Overlaps)-1].OperationID})
		if errors.Is(err, store.ErrForbidden) { // that one is over: there is no result to use
			continue
		}
		must(c.t, err)
		answered++
	}
	return answered
}

// purchases is how many there are: a few in every run of the tests, and more
// where somebody has the time.
func purchases(t *testing.T) int {
	text := os.Getenv("HOLDFAST_TEST_PURCHASES")
	if text == "" {
		return 500
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

func TestNaiveAgentsBuyNothingTwice(t *testing.T) {
	many := purchases(t)
	began := time.Now()
	c := &bazaar{journey: startJourney(t, journeyConfig(naiveConfig))}
	c.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(c.client.CloseIdleConnections)
	next := make(chan int)
	var all sync.WaitGroup
	for range 24 {
		all.Go(func() {
			for n := range next {
				a := c.naive(n)
				if err := a.trip(); err != nil {
					t.Error(err)
					return
				}
				a.buy()
			}
		})
	}
	for n := range many {
		next <- n
	}
	close(next)
	all.Wait()
	c.rest()
	held := len(c.everything(ledger.UnknownHold))
	answered := c.answerHolds()
	c.rest()
	c.balance(many)
	t.Logf("%d purchases in %v: %d calls, %d exceptions, %d restarts, %d intents, %d plans changed, %d faults at the provider; %d operations were held, a person answered %d",
		many, time.Since(began).Round(time.Second), c.calls.Load(), c.exceptions.Load(), c.restarts.Load(), c.intents.Load(), c.replans.Load(), c.faults.Load(), held, answered)
}

// balance compares the provider's book with the ledger, purchase by purchase.
func (c *bazaar) balance(many int) {
	c.t.Helper()
	var book struct{ Effects []bookedEffect }
	must(c.t, c.book.ask(c.ctx, http.MethodGet, "/_effects", nil, &book))
	made := map[string]int{}
	for _, e := range book.Effects {
		var paid struct{ Recipient string }
		must(c.t, json.Unmarshal(e.Body, &paid))
		made[paid.Recipient]++
	}
	states := map[string][]ledger.Operation{}
	reasons := map[string]int{}
	for _, o := range c.everything() {
		states[o.Terms.Recipient] = append(states[o.Terms.Recipient], o)
		reasons[strings.TrimSpace(string(o.Status)+" "+string(o.Reason))]++
	}
	outcome := map[string]int{}
	for n := range many {
		who := fmt.Sprint("acct-", n)
		is := func(s ledger.Status) bool {
			return slices.ContainsFunc(states[who], func(o ledger.Operation) bool { return o.Status == s })
		}
		ended := !slices.ContainsFunc(states[who], func(o ledger.Operation) bool { return !o.Status.Final() && o.Status != ledger.UnknownHold })
		word := "rejected"
		switch {
		case len(states[who]) == 0 || !ended:
			c.t.Errorf("%s is neither confirmed, nor rejected, nor held: %d operations", who, len(states[who]))
			continue
		case is(ledger.Confirmed):
			word = "confirmed"
		case is(ledger.UnknownHold):
			word = "held"
		}
		outcome[word]++
		if made[who] > 1 || word == "confirmed" && made[who] != 1 || word == "rejected" && made[who] != 0 {
			c.t.Errorf("%s is %s, and the provider's book holds it %d times", who, word, made[who])
			for _, o := range states[who] {
				c.t.Logf("  %s %s %s attempts %d amount %d reference %q step %q replaces %q: %s", o.OperationID, o.Status, o.Reason, o.Attempts, o.Terms.Amount, o.Terms.Reference, o.Step, o.Replaces, o.Detail)
			}
		}
	}
	c.t.Logf("%d effects at the provider; purchases %v; operations %v", len(book.Effects), outcome, reasons)
	if outcome["confirmed"]*10 < many*8 { // caution that lets nothing through proves nothing
		c.t.Errorf("only %d of %d were made", outcome["confirmed"], many)
	}
}

package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"holdfast/dispatch"
	"holdfast/reconcile"
	"holdfast/store"
	"holdfast/store/ledger"
)

// gateway is a ledger, its dispatcher and its look-ups in this process, without
// the web in front: what happens between a submission and the provider.
type gateway struct {
	t      *testing.T
	store  *store.Store
	config *dispatch.Config
	jobs   *reconcile.Scheduler
	token  string
	tick   func() // called whenever the dispatcher looks at its rules; nil: nothing
}

// action is the configuration of one action type that pays over a rail.
func action(name, rail string) string {
	return fmt.Sprintf(`
  %s:
    rail: %s
    effect: charge
    schema:
      type: object
      required: [amount, currency, recipient, reference]
      properties:
        amount: { type: integer, x-role: amount }
        currency: { type: string, x-role: currency, x-normalize: currency }
        recipient: { type: string, x-role: recipient }
        reference: { type: string, x-role: reference }
`, name, rail)
}

const allowAll = `
policy:
  - { name: all, when: {}, then: allow }
`

func openGateway(t *testing.T, folder, config string, now func() time.Time) *gateway {
	t.Helper()
	c, err := dispatch.ParseConfig([]byte(config), folder, "test.yaml", os.LookupEnv, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(context.Background(), store.Options{Folder: folder, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetRulebooks(context.Background(), c.Rulebooks()); err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, store: s, config: c}
	g.jobs = &reconcile.Scheduler{Store: s, Config: g.rules, Node: "test", Log: slog.New(slog.DiscardHandler)}
	token, err := s.AddToken(context.Background(), ledger.TokenRecord{TenantID: dispatch.DefaultTenant, Agent: "buyer", Owner: "olga@acme.example",
		Scopes: []string{"operations:write"}}, ledger.Holder{Kind: ledger.Person, Name: "root"})
	if err != nil {
		t.Fatal(err)
	}
	g.token = token.ID
	return g
}

func (g *gateway) rules() *dispatch.Config {
	if g.tick != nil {
		g.tick()
	}
	return g.config
}

func (g *gateway) close() {
	g.t.Helper()
	if err := g.store.Close(); err != nil {
		g.t.Error(err)
	}
}

// run delivers until stop is called; stop waits for what is under way.
func (g *gateway) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	d := &dispatch.Dispatcher{Store: g.store, Config: g.rules, Worker: "w1", Log: slog.New(slog.DiscardHandler)}
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// draft is a purchase that is like no other.
func (g *gateway) draft(id, actionType string) ledger.Operation {
	g.t.Helper()
	return g.draftOf(id, actionType, fmt.Sprintf(`{"amount":4800,"currency":"EUR","recipient":"acct_%s","reference":"inv-%s"}`, id, id))
}

// draftOf is a submission of a payload as it is.
func (g *gateway) draftOf(id, actionType, payload string) ledger.Operation {
	g.t.Helper()
	v, err := ledger.ParseStrict([]byte(payload))
	if err != nil {
		g.t.Fatal(err)
	}
	n, wrong := g.config.Tenants[dispatch.DefaultTenant].Rulebook.Actions[actionType].Normalize(v)
	if len(wrong) > 0 {
		g.t.Fatal(wrong)
	}
	return ledger.Operation{TenantID: dispatch.DefaultTenant, OperationID: id, ActionType: actionType, Fingerprint: n.Fingerprint,
		Canonical: n.Canonical, Payload: n.Payload, Terms: n.Terms, Agent: "buyer", TokenID: g.token, Owner: "olga@acme.example"}
}

func (g *gateway) submit(id, actionType string) {
	g.t.Helper()
	if _, err := g.store.Submit(context.Background(), g.draft(id, actionType)); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gateway) get(id string) ledger.Operation {
	g.t.Helper()
	o, err := g.store.Operation(context.Background(), dispatch.DefaultTenant, id)
	if err != nil {
		g.t.Fatal(err)
	}
	return o
}

func (g *gateway) attempts(id string) []ledger.Attempt {
	g.t.Helper()
	a, err := g.store.Attempts(context.Background(), dispatch.DefaultTenant, id)
	if err != nil {
		g.t.Fatal(err)
	}
	return a
}

// do runs a job now.
func (g *gateway) do(job string) {
	g.t.Helper()
	if _, err := g.jobs.Run(context.Background(), job); err != nil {
		g.t.Fatal(err)
	}
}

// serveBook runs a provider in this process, and gives its address. Its book is
// asked for over its own socket.
func serveBook(t *testing.T, dedupe bool) string {
	t.Helper()
	ready := make(chan string, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := dispatch.RunSandbox(ctx, dispatch.SandboxOptions{Dedupe: dedupe}, func(addr string) { ready <- addr }); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); serving.Wait() })
	return <-ready
}

// bookOf counts a provider's effects by the order they carry.
func bookOf(t *testing.T, provider string) map[string]int {
	t.Helper()
	book := map[string]int{}
	for _, e := range effectsOf(t, provider) {
		book[e.Operation]++
	}
	return book
}

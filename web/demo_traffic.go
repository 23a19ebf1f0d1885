package web

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"holdfast/web/client"
)

// traffic is what the demo's agents do: real requests to the real API, one
// after the other at a pace that can be followed, with accidents at the
// providers from time to time.
type traffic struct {
	agents     map[string]*client.Client
	card, wire sandboxBook
	pace       time.Duration
	log        *slog.Logger

	next     int      // number of the next invoice
	payments []string // operations that can be refunded once they are confirmed
}

func newTraffic(n demoNote, c cast, pace time.Duration, log *slog.Logger) *traffic {
	t := &traffic{agents: map[string]*client.Client{}, card: sandboxBook{n.Sandboxes["card"]}, wire: sandboxBook{n.Sandboxes["wire"]}, pace: pace, log: log,
		// Numbers go up faster than they are used, so that a later demo in the same
		// folder begins above this one's.
		next: int(time.Now().Unix() % 1_000_000)}
	for agent, token := range c.tokens {
		t.agents[agent] = client.New(n.Dashboard, token)
	}
	return t
}

// scene is one thing that happens.
type scene struct {
	tells string
	plays func(context.Context) error
}

// run plays the opening, which shows each thing that needs a person once and
// soon, and then everyday work until the context ends.
func (t *traffic) run(ctx context.Context) {
	for _, s := range t.opening() {
		t.play(ctx, s, t.pace/4)
	}
	for ctx.Err() == nil {
		for _, s := range t.everyday() {
			t.play(ctx, s, t.pace)
		}
	}
}

func (t *traffic) play(ctx context.Context, s scene, pause time.Duration) {
	if ctx.Err() != nil {
		return
	}
	t.next++
	if err := s.plays(ctx); err != nil && ctx.Err() == nil {
		t.log.Warn("demo: an agent got stuck", "scene", s.tells, "error", err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

func (t *traffic) opening() []scene {
	return []scene{
		{"a charge over the limit waits for Ana", t.bigCharge},
		{"a payout's answer is lost at the bank", t.lostPayout},
		{"a charge's answer is lost", t.lostCharge},
		{"two workers charge one invoice", t.overlap},
		{"a small charge", t.charge},
		{"a refund waits for Jon or Mia", t.refund},
	}
}

func (t *traffic) everyday() []scene {
	return []scene{
		{"a small charge", t.charge},
		{"a receipt by e-mail", t.email},
		{"a customer's record", t.crm},
		{"a charge's answer is lost", t.lostCharge},
		{"a payout", t.payout},
		{"a small charge", t.charge},
		{"the provider answers 500, though it has acted", t.brokenCharge},
		{"a customer's record", t.crm},
		{"a refund", t.refund},
		{"a receipt by e-mail", t.email},
		{"a charge over the limit", t.bigCharge},
		{"a small charge", t.charge},
		{"a receipt's answer is lost", t.lostEmail},
		{"two workers charge one invoice", t.overlap},
		{"a small charge", t.charge},
		{"a payout's answer is lost at the bank", t.lostPayout},
	}
}

func (t *traffic) invoice() string { return fmt.Sprintf("inv-%06d", t.next) }

// amount differs from invoice to invoice, as amounts do.
func (t *traffic) amount(least, spread int) int { return least + t.next*7919%spread }

func (t *traffic) customer() string { return fmt.Sprintf("c_%d", 101+t.next%23) }

func (t *traffic) submit(ctx context.Context, agent, id, action string, payload map[string]any) error {
	_, err := t.agents[agent].Submit(ctx, client.Operation{OperationID: id, ActionType: action, RunID: agent + "-" + id, Payload: payload})
	return err
}

func (t *traffic) pay(ctx context.Context, id, reference string, amount int) error {
	return t.submit(ctx, billing, id, "create_payment", map[string]any{"amount": amount, "currency": "EUR", "recipient": t.customer(),
		"reference": reference, "description": "Subscription"})
}

func (t *traffic) charge(ctx context.Context) error {
	id := t.invoice() + "-charge"
	t.payments = append(t.payments, id)
	t.payments = t.payments[max(0, len(t.payments)-8):]
	return t.pay(ctx, id, t.invoice(), t.amount(1900, 9000))
}

// lostCharge clears by itself: the look-up finds the payment.
func (t *traffic) lostCharge(ctx context.Context) error {
	return t.struck(ctx, "drop_after")
}

func (t *traffic) brokenCharge(ctx context.Context) error {
	return t.struck(ctx, "error_500_after")
}

func (t *traffic) struck(ctx context.Context, fault string) error {
	if err := t.card.arm(ctx, t.invoice(), fault); err != nil {
		return err
	}
	return t.pay(ctx, t.invoice()+"-charge", t.invoice(), t.amount(1900, 9000))
}

func (t *traffic) bigCharge(ctx context.Context) error {
	if t.crowded(ctx, billing, "awaiting_approval") {
		return nil
	}
	return t.pay(ctx, t.invoice()+"-charge", t.invoice(), t.amount(120000, 400000))
}

// overlap is the accident that no key prevents: a second worker that never heard
// of the first gives the same invoice a name of its own.
func (t *traffic) overlap(ctx context.Context) error {
	if t.crowded(ctx, billing, "unknown_hold") {
		return nil
	}
	amount := t.amount(1900, 9000)
	if err := t.pay(ctx, t.invoice()+"-charge", t.invoice(), amount); err != nil {
		return err
	}
	return t.pay(ctx, t.invoice()+"-charge-after-restart", t.invoice(), amount)
}

func (t *traffic) payout(ctx context.Context) error {
	return t.submit(ctx, treasury, t.invoice()+"-payout", "create_payout", map[string]any{"amount": t.amount(9000, 50000), "currency": "EUR",
		"recipient": fmt.Sprintf("supplier_%d", t.next), "reference": t.invoice() + "-payout"})
}

// lostPayout needs a person: the bank would pay twice, and its list is late.
func (t *traffic) lostPayout(ctx context.Context) error {
	if t.crowded(ctx, treasury, "unknown_hold") {
		return nil
	}
	if err := t.wire.arm(ctx, t.invoice()+"-payout", "drop_after", "list_lag_ms:1800000"); err != nil {
		return err
	}
	return t.payout(ctx)
}

// refund gives back the oldest payment that this agent remembers and that is
// known to have happened.
func (t *traffic) refund(ctx context.Context) error {
	if len(t.payments) == 0 || t.crowded(ctx, support, "awaiting_approval") {
		return nil
	}
	// The agent has other things to do than to wait for ever.
	patience, end := context.WithTimeout(ctx, 5*t.pace)
	defer end()
	paid, err := t.agents[support].Wait(patience, t.payments[0])
	if err != nil || paid.Result == nil || paid.Result.Amount == nil {
		return err
	}
	t.payments = t.payments[1:]
	return t.submit(ctx, support, t.invoice()+"-refund", "refund", map[string]any{"charge": paid.Result.ID, "amount": *paid.Result.Amount,
		"currency": paid.Result.Currency, "recipient": paid.Result.Recipient, "reference": t.invoice() + "-refund", "reason": "Cancelled within 14 days"})
}

func (t *traffic) email(ctx context.Context) error {
	return t.submit(ctx, support, t.invoice()+"-mail", "send_email", map[string]any{"to": t.customer() + "@example.com", "subject": "Your receipt",
		"body": "Thank you. Your receipt is attached.", "reference": t.invoice() + "-mail"})
}

func (t *traffic) lostEmail(ctx context.Context) error {
	if err := t.card.arm(ctx, t.invoice()+"-mail", "drop_after"); err != nil {
		return err
	}
	return t.email(ctx)
}

func (t *traffic) crm(ctx context.Context) error {
	return t.submit(ctx, support, t.invoice()+"-crm", "update_crm", map[string]any{"record": t.customer(), "fields": map[string]any{"plan": "team", "invoice": t.invoice()}})
}

// crowd is how much of one kind waits for people at most: a demo that is left
// alone over lunch should not greet with a hundred approvals.
const crowd = 5

func (t *traffic) crowded(ctx context.Context, agent, status string) bool {
	page, err := t.agents[agent].List(ctx, client.Filter{Status: status, Limit: crowd})
	return err == nil && len(page.Items) >= crowd
}

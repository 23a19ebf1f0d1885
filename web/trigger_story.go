package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/store/ledger"
	"holdfast/web/client"
)

// storyPatience is how long a whole story may take: a loaded machine is slow,
// but a person who watches wants to hear that it hangs.
const storyPatience = 90 * time.Second

// storyPoll is how often a story looks whether its next step has happened.
const storyPoll = 50 * time.Millisecond

// story is one accident: a purchase of its own, the agent that makes it, and
// what has been told so far.
type story struct {
	note      demoNote
	out       io.Writer
	agent     *client.Client // without repeats of its own: the story shows each
	watcher   *client.Client
	card      sandboxBook
	id        string
	reference string
	amount    int
	told      int

	came, made int // what the provider received and holds, once counted
}

func newStory(n demoNote, name string, out io.Writer) *story {
	agent, watcher := client.New(n.Dashboard, n.Token), client.New(n.Dashboard, n.Token)
	agent.Tries = 1
	// The purchase is named once, here, and every step uses that name.
	named := fmt.Sprintf("%s-%s", name, randomHex(4))
	return &story{note: n, out: out, agent: agent, watcher: watcher, card: sandboxBook{n.Sandboxes["card"]}, id: named + "-charge", reference: named, amount: 4800}
}

func (s *story) payload(amount int) map[string]any {
	return map[string]any{"amount": amount, "currency": "USD", "recipient": "c_" + s.reference, "reference": s.reference}
}

func (s *story) operation() client.Operation {
	return client.Operation{OperationID: s.id, ActionType: "create_payment", RunID: s.id + "-run", Payload: s.payload(s.amount)}
}

func (s *story) money(amount int) string { return ledger.Currencies(nil).Format(int64(amount), "USD") }

// step prints what has just been seen to happen.
func (s *story) step(word, what, note string) {
	s.told++
	fmt.Fprintln(s.out, strings.TrimRight(fmt.Sprintf("%2d %-10s  %-28s  %s", s.told, word, what, note), " "))
}

// tell prints a step that is a sentence.
func (s *story) tell(sentence string) {
	s.told++
	fmt.Fprintf(s.out, "%2d %s\n", s.told, sentence)
}

// record submits and says under which words it was recorded.
func (s *story) record(ctx context.Context, o client.Operation) (client.Envelope, error) {
	e, err := s.agent.Submit(ctx, o)
	if err == nil {
		s.step("recorded", "charge "+s.money(s.amount), e.Words)
	}
	return e, err
}

// sent waits until the provider has received the first request.
func (s *story) sent(ctx context.Context) (arrived, error) {
	for {
		came, err := s.card.requests(ctx, s.reference)
		if err != nil {
			return arrived{}, err
		}
		if len(came) > 0 {
			s.step("sent", "attempt 1, key "+short(came[0].Key), "→ sandbox")
			return came[0], nil
		}
		if err := pauseFor(ctx, storyPoll); err != nil {
			return arrived{}, fmt.Errorf("nothing reached the provider: %w", err)
		}
	}
}

// until polls an operation until it is as expected.
func (s *story) until(ctx context.Context, id string, there func(client.Envelope) bool) (client.Envelope, error) {
	for {
		e, err := s.watcher.Get(ctx, id)
		if err != nil || there(e) {
			return e, err
		}
		if err := pauseFor(ctx, storyPoll); err != nil {
			return e, fmt.Errorf("%s did not get there in time and is %s: %w", id, e.Status, err)
		}
	}
}

// again sends the same operation once more and prints the answer.
func (s *story) again(ctx context.Context, o client.Operation) error {
	e, err := s.agent.Submit(ctx, o)
	var p *client.Problem
	switch {
	case errors.As(err, &p):
		s.tell(fmt.Sprintf("the agent sends the same id again → %d %s, poll %s, nothing sent", p.Status, p.Reason, p.Poll))
	case err != nil:
		return err
	case e.HTTPStatus == 409:
		s.tell(fmt.Sprintf("the agent sends the same id again → 409 in_progress, poll %s, nothing sent", e.Poll))
	default:
		s.tell(fmt.Sprintf("the agent sends the same id again → %d, the recorded result, nothing sent", e.HTTPStatus))
	}
	return nil
}

// paid is a purchase without any accident.
func (s *story) paid(ctx context.Context) error {
	if _, err := s.record(ctx, s.operation()); err != nil {
		return err
	}
	if _, err := s.sent(ctx); err != nil {
		return err
	}
	return s.confirmed(ctx, "")
}

func (s *story) confirmed(ctx context.Context, how string) error {
	e, err := s.until(ctx, s.id, func(e client.Envelope) bool { return e.Terminal || e.Next == client.NextAwaitHuman })
	if err != nil {
		return err
	}
	if e.Status != "confirmed" || e.Result == nil {
		return fmt.Errorf("%s was not confirmed: it is %s (%s)", s.id, e.Status, e.Reason)
	}
	if e.Attempts != 1 {
		how = fmt.Sprintf("after %d attempts with one key", e.Attempts)
	}
	s.step("confirmed", strings.TrimSpace(e.Result.ID+" "+how), "")
	return nil
}

// decideAt says where a person goes from here.
func (s *story) decideAt(id string) {
	s.tell("decide at " + s.note.Dashboard + operationPath(id))
	fmt.Fprintf(s.out, "   sign in first: %s (finance)\n", s.note.SignIn[demoPeople[0].email])
}

// atOnce does one thing n times side by side and counts the answers.
func (s *story) atOnce(n int, do func() string) string {
	answers := make(chan string, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			<-start
			answers <- do()
		})
	}
	close(start)
	all.Wait()
	close(answers)
	count := map[string]int{}
	for a := range answers {
		count[a]++
	}
	var texts []string
	for _, a := range slices.Sorted(maps.Keys(count)) {
		texts = append(texts, fmt.Sprintf("%d × %s", count[a], a))
	}
	return strings.Join(texts, ", ")
}

// promised counts at the provider, says so, and fails if it is not what was
// promised.
func (s *story) promised(ctx context.Context, requests, charges int) error {
	came, err := s.card.requests(ctx, s.reference)
	if err != nil {
		return err
	}
	if s.made, err = s.card.effects(ctx, s.reference); err != nil {
		return err
	}
	s.came = len(came)
	fmt.Fprintf(s.out, "   the sandbox provider received %s and holds %s\n", plural(s.came, "request"), plural(s.made, "charge"))
	if s.came != requests || s.made != charges {
		return fmt.Errorf("%s should end with %s and %s", s.reference, plural(requests, "request"), plural(charges, "charge"))
	}
	return nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// short is the beginning of a key: enough to tell two apart on a screen.
func short(key string) string { return key[:min(4, len(key))] + "…" }

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

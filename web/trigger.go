package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"holdfast/web/client"
)

// accident is one thing that goes wrong, told live: each step of its story is
// printed when it has been seen to happen, and the numbers at the end are what
// the provider says it received.
type accident struct {
	name  string
	tells string
	play  func(context.Context, *story) error
	naked func(context.Context, *story) error // the same without holdfast; nil where there is nothing to compare
}

var accidents = []accident{
	{"lost-answer", "the provider takes the money and its answer is lost", lostAnswer, nakedLostAnswer},
	{"provider-500", "the provider takes the money and answers 500", provider500, nakedProvider500},
	{"changed-payload", "the agent uses one id for another amount", changedPayload, nil},
	{"needs-approval", "the amount is over the limit and a person must agree", needsApproval, nil},
	{"overlap", "two workers give one invoice two ids", overlapping, nakedOverlapping},
	{"double-send", "the agent sends the same thing eight times at once", doubleSend, nakedDoubleSend},
}

// Accidents lists what Trigger knows, for the help.
func Accidents() string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "Accidents:")
	for _, a := range accidents {
		naked := ""
		if a.naked != nil {
			naked = "(also --naked)"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", a.name, a.tells, naked)
	}
	t.Flush()
	return b.String()
}

// Trigger makes one accident happen on the running demo and tells its story. It
// fails when the provider's book does not show what holdfast promises.
func Trigger(ctx context.Context, name string, naked bool, out io.Writer) error {
	return trigger(ctx, demoNotePath(), name, naked, out)
}

func trigger(ctx context.Context, notePath, name string, naked bool, out io.Writer) error {
	a, err := findAccident(name, naked)
	if err != nil {
		return err
	}
	n, err := readDemoNote(notePath)
	if err != nil {
		return err
	}
	if !n.running(ctx) {
		return errNoDemo
	}
	ctx, end := context.WithTimeout(ctx, storyPatience)
	defer end()
	if naked {
		return a.naked(ctx, newStory(n, a.name, out))
	}
	if a.naked == nil {
		return a.play(ctx, newStory(n, a.name, out))
	}
	// What the same accident does without holdfast is measured too, meanwhile and
	// in silence, with a purchase of its own.
	without := newStory(n, a.name, io.Discard)
	measured := make(chan error, 1)
	go func() { measured <- a.naked(ctx, without) }()
	err = a.play(ctx, newStory(n, a.name, out))
	if compared := <-measured; compared == nil {
		fmt.Fprintf(out, "   without holdfast (same accident, new key): %s, %s     holdfast trigger %s --naked\n",
			plural(without.came, "request"), plural(without.made, "charge"), a.name)
	} else {
		err = errors.Join(err, compared)
	}
	return err
}

func findAccident(name string, naked bool) (accident, error) {
	var known, comparable []string
	for _, a := range accidents {
		if a.name == name && (!naked || a.naked != nil) {
			return a, nil
		}
		known = append(known, a.name)
		if a.naked != nil {
			comparable = append(comparable, a.name)
		}
	}
	for _, a := range accidents {
		if a.name == name {
			return a, fmt.Errorf("%s shows something that only exists with holdfast; --naked goes with %s", name, strings.Join(comparable, ", "))
		}
	}
	return accident{}, usagef("no accident %q; there are %s", name, strings.Join(known, ", "))
}

func lostAnswer(ctx context.Context, s *story) error {
	// Later than the rail waits: the provider is done in time, only its answer is not.
	return s.lost(ctx, "slow_after_ms:4000", func(e client.Envelope, came arrived) {
		s.step("no answer", fmt.Sprintf("after %.1f s", e.UpdatedAt.Sub(came.At).Seconds()), "← money has moved, nobody knows")
	})
}

func provider500(ctx context.Context, s *story) error {
	return s.lost(ctx, "error_500_after", func(client.Envelope, arrived) {
		s.step("answer 500", "which says nothing", "← money has moved, nobody knows")
	})
}

// lost is the story of an outcome that nobody was told.
func (s *story) lost(ctx context.Context, fault string, struck func(client.Envelope, arrived)) error {
	if err := s.card.arm(ctx, s.reference, fault); err != nil {
		return err
	}
	if _, err := s.record(ctx, s.operation()); err != nil {
		return err
	}
	came, err := s.sent(ctx)
	if err != nil {
		return err
	}
	e, err := s.until(ctx, s.id, func(e client.Envelope) bool { return e.Status != "ready" && e.Status != "in_flight" })
	if err != nil {
		return err
	}
	struck(e, came)
	if err := s.again(ctx, s.operation()); err != nil {
		return err
	}
	if e.Status == "unknown" {
		s.step("unknown", "on the Home page now; looking it up", "")
	}
	if err := s.confirmed(ctx, "found by our stamp"); err != nil {
		return err
	}
	return s.promised(ctx, 1, 1)
}

func changedPayload(ctx context.Context, s *story) error {
	if err := s.paid(ctx); err != nil {
		return err
	}
	other := s.operation()
	other.Payload = s.payload(s.amount + 100)
	_, err := s.agent.Submit(ctx, other)
	var p *client.Problem
	if !errors.As(err, &p) || p.Reason != "request" {
		return fmt.Errorf("another amount under the same id was not refused: %w", orUnexpected(err))
	}
	s.tell(fmt.Sprintf("the agent sends the same id with %s → %d %s, mismatch %s, next: %s", s.money(s.amount+100), p.Status, p.Reason, strings.Join(p.Mismatch, " "), p.Next))
	return s.promised(ctx, 1, 1)
}

func needsApproval(ctx context.Context, s *story) error {
	s.amount = 184000
	e, err := s.record(ctx, s.operation())
	if err != nil {
		return err
	}
	if e.Next != client.NextAwaitApproval {
		return fmt.Errorf("%s was not held for a person: it is %s", s.money(s.amount), e.Status)
	}
	s.step("asked", "a person decides on exactly these bytes", "← nothing was sent")
	if err := s.again(ctx, s.operation()); err != nil {
		return err
	}
	s.decideAt(s.id)
	return s.promised(ctx, 0, 0)
}

func overlapping(ctx context.Context, s *story) error {
	if err := s.paid(ctx); err != nil {
		return err
	}
	second := s.operation()
	second.OperationID, second.RunID = s.id+"-after-restart", s.id+"-run-2"
	e, err := s.agent.Submit(ctx, second)
	if err != nil {
		return err
	}
	s.tell("a second worker, which knows nothing of the first, sends it as " + second.OperationID)
	if e.Status != "unknown_hold" || len(e.Overlaps) == 0 {
		return fmt.Errorf("a second id for one reference was not held: it is %s", e.Status)
	}
	s.step("held", strings.ReplaceAll(e.Reason, "_", " ")+" as "+e.Overlaps[0].OperationID, "← nothing was sent")
	s.decideAt(second.OperationID)
	return s.promised(ctx, 1, 1)
}

func doubleSend(ctx context.Context, s *story) error {
	answers := s.atOnce(8, func() string {
		e, err := s.agent.Submit(ctx, s.operation())
		var p *client.Problem
		switch {
		case errors.As(err, &p):
			return fmt.Sprintf("%d %s", p.Status, p.Reason)
		case err != nil:
			return err.Error()
		}
		return fmt.Sprintf("%d %s", e.HTTPStatus, e.Status)
	})
	s.tell("the agent sends " + s.money(s.amount) + " eight times at once, under one id")
	s.step("answered", answers, "")
	if _, err := s.sent(ctx); err != nil {
		return err
	}
	if err := s.confirmed(ctx, ""); err != nil {
		return err
	}
	return s.promised(ctx, 1, 1)
}

package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// What the same agents do without holdfast: they call the provider themselves,
// and when they do not know, they ask again under a name that is new.

// How long the naked agent waits for an answer: for the one that is lost as long
// as the demo's rail does, and for the others longer than any machine takes.
const (
	nakedPatience = 2 * time.Second
	nakedCalm     = 30 * time.Second
)

func nakedLostAnswer(ctx context.Context, s *story) error {
	return s.callTwice(ctx, "slow_after_ms:4000")
}

func nakedProvider500(ctx context.Context, s *story) error {
	return s.callTwice(ctx, "error_500_after")
}

func (s *story) callTwice(ctx context.Context, fault string) error {
	if err := s.card.arm(ctx, s.reference, fault); err != nil {
		return err
	}
	key := freshKey()
	began := time.Now()
	s.step("sent", "charge "+s.money(s.amount)+", key "+short(key), "→ sandbox")
	status, _, err := s.call(ctx, key, nakedPatience)
	switch {
	case err == nil && status < 500:
		return fmt.Errorf("the accident did not happen: the provider answered %d", status)
	case err == nil:
		s.step(fmt.Sprintf("answer %d", status), "which says nothing", "← money has moved, nobody knows")
	case ctx.Err() != nil:
		return err
	default:
		s.step("no answer", fmt.Sprintf("after %.1f s", time.Since(began).Seconds()), "← money has moved, nobody knows")
	}
	key = freshKey()
	s.step("sent again", "with a fresh key "+short(key), "→ sandbox")
	status, id, err := s.call(ctx, key, nakedCalm)
	if err != nil {
		return err
	}
	s.step(fmt.Sprintf("answer %d", status), id, "← the agent believes that it paid once")
	return s.promised(ctx, 2, 2)
}

func nakedOverlapping(ctx context.Context, s *story) error {
	for _, who := range []string{"one worker", "another, after a restart,"} {
		key := freshKey()
		status, id, err := s.call(ctx, key, nakedCalm)
		if err != nil {
			return err
		}
		s.tell(fmt.Sprintf("%s charges %s, key %s → %d %s", who, s.money(s.amount), short(key), status, id))
	}
	return s.promised(ctx, 2, 2)
}

func nakedDoubleSend(ctx context.Context, s *story) error {
	answers := s.atOnce(8, func() string {
		status, _, err := s.call(ctx, freshKey(), nakedCalm)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(status)
	})
	s.tell("the agent sends " + s.money(s.amount) + " eight times at once, each with a key of its own")
	s.step("answered", answers, "← each of them is a charge")
	return s.promised(ctx, 8, 8)
}

// call asks the provider for the charge, as an agent with an HTTP library does.
func (s *story) call(ctx context.Context, key string, patience time.Duration) (status int, id string, err error) {
	body, err := json.Marshal(s.payload(s.amount))
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.card.base+"/payments", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Idempotency-Key", key)
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	var payment struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&payment); err != nil {
		return 0, "", err
	}
	return answer.StatusCode, payment.ID, nil
}

func freshKey() string { return randomHex(16) }

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func orUnexpected(err error) error {
	if err == nil {
		return errors.New("it was accepted")
	}
	return err
}

package rail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/store/ledger"
)

// overHTTP is the adapter of JSON interfaces, and of the sandbox, which is one.
// Its parts: request.go renders, send.go sends, answer.go classifies, lookup.go
// asks.
type overHTTP struct{}

func (overHTTP) usable(r *Rail) error {
	if !r.sendPath.given() {
		return errors.New("send.path: is missing; give it to the rail or to the action type")
	}
	return nil
}

func (overHTTP) render(r *Rail, o ledger.Operation) (ledger.Request, error) {
	req, err := r.render(o)
	if err != nil {
		return ledger.Request{}, fmt.Errorf("rails.%s: %s cannot be rendered: %w", r.name, o.OperationID, err)
	}
	return req, nil
}

func (overHTTP) open(ctx context.Context, c *Conn) (speaker, error) {
	if c.rail.dial.scheme == "https" {
		if err := c.secure(ctx); err != nil {
			return nil, &tlsError{err}
		}
	}
	return httpSpeaker{c}, nil
}

func (overHTTP) classify(r *Rail, o ledger.Operation, x Exchange) ledger.Answer {
	return r.classify(o, x)
}

func (overHTTP) lookup(ctx context.Context, r *Rail, o ledger.Operation) ledger.Look {
	return r.lookup(ctx, o)
}

type httpSpeaker struct{ c *Conn }

func (s httpSpeaker) send(ctx context.Context, req ledger.Request, sendBy time.Time) Exchange {
	return s.c.sendHTTP(ctx, req, sendBy)
}

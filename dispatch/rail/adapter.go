package rail

import (
	"context"
	"time"

	"holdfast/store/ledger"
)

// adapter is one protocol, in one file of its name. What differs between
// destinations of one protocol stands in the Rail's configuration; what all
// protocols share (the guard, the count of bytes, one request a connection)
// stands outside.
type adapter interface {
	// usable says what an action type would still lack to be sent.
	usable(r *Rail) error
	// render writes the operation as what goes out, the same bytes each time.
	render(r *Rail, o ledger.Operation) (ledger.Request, error)
	// open brings a connected socket to where nothing remains to be said but the
	// request itself. It runs before the mark and names no operation.
	open(ctx context.Context, c *Conn) (speaker, error)
	// classify says what one exchange proves about its own attempt.
	classify(r *Rail, o ledger.Operation, x Exchange) ledger.Answer
	// lookup asks what happened.
	lookup(ctx context.Context, r *Rail, o ledger.Operation) ledger.Look
}

// speaker says one request over an opened connection and hears its answer.
type speaker interface {
	send(ctx context.Context, req ledger.Request, sendBy time.Time) Exchange
}

// Render writes the operation as the request that goes out, all of it but the
// secrets. The same operation on the same rail gives the same bytes each time.
func (r *Rail) Render(o ledger.Operation) (ledger.Request, error) { return r.adapter.render(r, o) }

// Classify says what one exchange proves about its own attempt.
func (r *Rail) Classify(o ledger.Operation, x Exchange) ledger.Answer {
	return r.adapter.classify(r, o, x)
}

// Lookup asks the provider what happened. It changes nothing there, so it may
// be repeated. Only a whole, readable answer counts; everything else means that
// the provider could not be asked.
func (r *Rail) Lookup(ctx context.Context, o ledger.Operation) ledger.Look {
	return r.adapter.lookup(ctx, r, o)
}

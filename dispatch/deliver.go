package dispatch

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"holdfast/dispatch/rail"
	"holdfast/store"
	"holdfast/store/ledger"
)

// deliver takes one claim to its end: connect, mark, send, settle. Each step may
// be the last one this process makes; what it leaves behind is read by Recover,
// the sweep or the next claim.
func (d *Dispatcher) deliver(ctx context.Context, l *lane, c store.Claim) {
	log := d.Log.With("tenant", c.Operation.TenantID, "operation", c.Operation.OperationID, "fence", c.Fence)
	defer func() {
		// The lease lapses by itself and the claim counts: an operation that
		// panics every worker ends in front of a person.
		if p := recover(); p != nil {
			log.Error("a delivery panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	retry, sent := c.Operation.Attempts > 0, false
	defer func() {
		if !sent {
			l.unsent(retry)
		}
	}()
	r := d.Config().Route(c.Operation)
	if r == nil {
		log.Warn("no rail is configured for it")
		return
	}
	reach("claim.after_commit")
	conn, err := r.Connect(ctx)
	if err != nil {
		d.giveBack(ctx, l, c, r, err, log)
		return
	}
	defer conn.Close()

	// The worker's own deadline is measured by the monotonic clock from before
	// the mark: whatever the commit takes is taken from the time to send.
	sendFor := d.Store.Rulebook(c.Operation.TenantID).LeaseFor(r.Promise()) / 2
	sendBy := time.Now().Add(sendFor)
	reach("mark.before_commit")
	m, err := d.Store.Mark(ctx, c, sendFor, r.Render)
	if err != nil {
		// Also where the commit's fate is not known: without a positive commit
		// nothing is sent.
		logUnmarked(log, err)
		return
	}
	reach("mark.after_commit")
	sent = true
	exchange := conn.Send(ctx, m.Request, sendBy)
	reach("response.after_read")
	answer := r.Classify(m.Operation, exchange)
	judgeRail(l, r, answer, exchange, retry)
	d.settle(ctx, m, answer, exchange.Body, r, log)
}

// giveBack returns a claim whose connection failed: not one byte left, nothing
// counts. The rail is tried again after a pause, and by the oldest first.
func (d *Dispatcher) giveBack(ctx context.Context, l *lane, c store.Claim, r *rail.Rail, cause error, log logger) {
	now := time.Now()
	failures := l.failed(r, now)
	limits := r.Promise().Limits
	pause := rail.Backoff(limits.BackoffMin, limits.BackoffMax, failures, chance)
	l.pause(now.Add(pause))
	log.Info("no connection", "rail", c.Operation.Rail, "error", cause, "pause", pause)
	err := d.Store.Release(ctx, c, 0, "The provider could not be reached. Nothing was sent.")
	if err != nil && !errors.Is(err, store.ErrLeaseLost) {
		log.Warn("giving a claim back", "error", err)
	}
}

func logUnmarked(log logger, err error) {
	var refused store.NotMarked
	if errors.As(err, &refused) || errors.Is(err, store.ErrLeaseLost) {
		log.Info("not sent", "why", err)
		return
	}
	log.Warn("not sent, the mark did not commit", "error", err)
}

// judgeRail feeds the breaker: a definite answer shows a rail that works,
// whatever it says; silence does not. Who asks to be left alone is.
func judgeRail(l *lane, r *rail.Rail, a ledger.Answer, x rail.Exchange, retry bool) {
	now := time.Now()
	if (a.Finding == ledger.Unclear || a.Finding == ledger.Stuck) && (a.HTTPStatus == 0 || a.HTTPStatus >= 500) {
		l.failed(r, now)
	} else {
		l.worked(r)
	}
	if a.Finding == ledger.Found {
		l.confirmed(retry)
	}
	l.pause(restUntil(x.Status, x.Header, now))
}

// settle commits what came back. An answer is worth keeping: a store that
// cannot commit now is asked again until the lease has long ended, and then the
// sweep has made the operation unknown.
func (d *Dispatcher) settle(ctx context.Context, m store.Marked, a ledger.Answer, body []byte, r *rail.Rail, log logger) {
	limits := r.Promise().Limits
	backoff := rail.Backoff(limits.BackoffMin, limits.BackoffMax, m.Attempt.Number, chance)
	reach("receipt.before_commit")
	for try := range settleTries {
		_, err := d.Store.Settle(ctx, m, a, body, backoff)
		if err == nil {
			return
		}
		log.Warn("an answer could not be recorded yet", "finding", a.Finding, "try", try+1, "error", err)
		if !errors.Is(err, store.ErrUnavailable) {
			return
		}
		time.Sleep(settlePause)
	}
}

const (
	settleTries = 60
	settlePause = time.Second
)

type logger interface {
	Info(msg string, args ...any)
	Warn(msg string, args ...any)
}

// Package dispatch delivers what the ledger allows: it claims, connects, marks
// and sends, and commits what came back. No transaction is open while the
// network is used, and nothing is written to a connection before the mark is
// known to be committed.
//
// The package also reads the configuration and holds the sandbox provider.
package dispatch

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"holdfast/store"
)

// idlePoll is how often the dispatcher looks for work that became due by time
// alone; everything else wakes it.
var idlePoll = 200 * time.Millisecond

// Dispatcher is one worker process's share of the work.
type Dispatcher struct {
	Store  *store.Store
	Config func() *Config // the one in force now
	Worker string         // names this process in leases and in the log
	Log    *slog.Logger

	lanes    map[laneKey]*lane
	underway sync.WaitGroup
}

// Run delivers until the context ends, and then waits for the sends under way:
// no new claims, no lost answers.
func (d *Dispatcher) Run(ctx context.Context) {
	d.lanes = map[laneKey]*lane{}
	changed, end := d.Store.WatchAll()
	defer end()
	tick := time.NewTicker(idlePoll)
	defer tick.Stop()
	for ctx.Err() == nil {
		d.round(ctx)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-tick.C:
		}
	}
	d.underway.Wait()
}

// round claims what is due on every rail, as far as there is room on it.
func (d *Dispatcher) round(ctx context.Context) {
	for tenant, t := range d.Config().Tenants {
		for name, r := range t.Rails {
			l := d.lane(laneKey{tenant, name})
			room, retries := l.room(r, time.Now())
			if room == 0 {
				continue
			}
			claims, err := d.Store.Claim(ctx, d.Worker, tenant, name, room, retries)
			if err != nil {
				if ctx.Err() == nil {
					d.Log.Warn("claiming", "tenant", tenant, "rail", name, "error", err)
				}
				continue
			}
			for _, c := range claims {
				l.enter(c.Operation.Attempts > 0)
				d.underway.Go(func() {
					defer l.leave()
					// A send that began is not cancelled by a shutdown: its answer is worth
					// more than a quick exit.
					d.deliver(context.WithoutCancel(ctx), l, c)
				})
			}
		}
	}
}

func (d *Dispatcher) lane(k laneKey) *lane {
	if d.lanes[k] == nil {
		d.lanes[k] = &lane{}
	}
	return d.lanes[k]
}

// chance gives a number in [0, n), for spreading retries.
func chance(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return rand.Int64N(n)
}

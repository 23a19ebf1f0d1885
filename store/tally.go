package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"sync"

	"holdfast/store/ledger"
)

// A Tally adds up what the action log says has happened. It goes on where it
// ended: the log only grows, its numbers have no gap, and so what was read once
// need not be read again. A ledger of any age costs a full reading once, and
// afterwards only what is new.
type Tally struct {
	s        *Store
	turn     chan struct{} // one reads the log, and who waits for that may go away
	read     int64         // the last number that is counted
	mu       sync.Mutex    // held over what follows
	statuses map[ledger.StatusCount]int
	attempts map[ledger.AttemptCount]int
	resolved map[ledger.ResolvedCount]*ledger.Spread
}

// tallyPage is how many entries are read in one transaction: a long read would
// keep the write-ahead log from being emptied.
const tallyPage = 20_000

// NewTally makes one that has read nothing.
func (s *Store) NewTally() *Tally {
	return &Tally{s: s, turn: make(chan struct{}, 1), statuses: map[ledger.StatusCount]int{}, attempts: map[ledger.AttemptCount]int{}, resolved: map[ledger.ResolvedCount]*ledger.Spread{}}
}

// CatchUp reads what was added to the log. Where the context ends first, what was
// read stays counted and the next call goes on from there.
func (a *Tally) CatchUp(ctx context.Context) error {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var last int64
	if err := a.s.readers.QueryRowContext(ctx, `select coalesce(max(seq), 0) from action_log`).Scan(&last); err != nil {
		return err
	}
	for a.read < last {
		to := min(last, a.read+tallyPage)
		changes, err := a.s.changesIn(ctx, a.read, to)
		if err != nil {
			return err
		}
		ends, err := a.s.endsIn(ctx, a.read, to)
		if err != nil {
			return err
		}
		a.count(changes, ends)
		a.read = to
	}
	return nil
}

// changed is how often operations of a rail went from one status to another by
// an event.
type changed struct {
	tenant, rail string
	event        ledger.Event
	from, to     ledger.Status
	n            int
}

const selectChanges = `
	select l.tenant_id, o.rail, l.event, l.from_status, l.to_status, count(*)
	from action_log l cross join operations o on o.tenant_id = l.tenant_id and o.operation_id = l.operation_id
	where l.seq > $1 and l.seq <= $2 and l.operation_id <> '' and l.object = 'operation' and l.from_status <> l.to_status
	group by l.tenant_id, o.rail, l.event, l.from_status, l.to_status`

func (s *Store) changesIn(ctx context.Context, after, to int64) ([]changed, error) {
	rows, err := s.readers.QueryContext(ctx, selectChanges, after, to)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (c changed, err error) {
		return c, r.Scan(&c.tenant, &c.rail, &c.event, &c.from, &c.to, &c.n)
	})
}

// ended is an operation that was unknown and ended.
type ended struct {
	tenant, rail string
	by           ledger.Holder
	took         int64
}

// It is unknown from the moment that its first send brought no clear answer, or
// that it was restored; a hold before any send is not meant.
const selectEnds = `
	select l.tenant_id, o.rail, l.actor_kind, l.actor, l.at - coalesce((
		select min(b.at) from action_log b
		where b.tenant_id = l.tenant_id and b.operation_id = l.operation_id and b.operation_id <> ''
		  and b.to_status in ('unknown', 'unknown_hold') and (b.from_status = 'in_flight' or b.to_status = 'unknown' or b.event = 'restore')), l.at)
	from action_log l cross join operations o on o.tenant_id = l.tenant_id and o.operation_id = l.operation_id
	where l.seq > $1 and l.seq <= $2 and l.operation_id <> '' and l.object = 'operation'
	  and l.to_status in ('confirmed', 'rejected') and l.from_status not in (l.to_status, '') and (o.ever_unknown = 1 or o.quarantined = 1)`

func (s *Store) endsIn(ctx context.Context, after, to int64) ([]ended, error) {
	rows, err := s.readers.QueryContext(ctx, selectEnds, after, to)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (e ended, err error) {
		return e, r.Scan(&e.tenant, &e.rail, &e.by.Kind, &e.by.Name, &e.took)
	})
}

func (a *Tally) count(changes []changed, ends []ended) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range changes {
		if c.from != "" {
			a.statuses[ledger.StatusCount{TenantID: c.tenant, Rail: c.rail, Status: c.from}] -= c.n
		}
		a.statuses[ledger.StatusCount{TenantID: c.tenant, Rail: c.rail, Status: c.to}] += c.n
		if outcome := ledger.SendEnded(c.from, c.event, c.to); outcome != "" {
			a.attempts[ledger.AttemptCount{TenantID: c.tenant, Rail: c.rail, Outcome: outcome}] += c.n
		}
	}
	for _, e := range ends {
		of := ledger.ResolvedCount{TenantID: e.tenant, Rail: e.rail, How: ledger.ResolvedBy(e.by)}
		if a.resolved[of] == nil {
			a.resolved[of] = &ledger.Spread{}
		}
		a.resolved[of].Add(max(e.took, 0))
	}
}

// All is what was counted, of every tenant: it is for whoever runs the machine,
// and for no page.
func (a *Tally) All() ledger.Happened { return a.of(func(string) bool { return true }) }

// Of is what was counted of one tenant.
func (a *Tally) Of(tenant string) ledger.Happened {
	return a.of(func(t string) bool { return t == tenant })
}

func (a *Tally) of(wanted func(tenant string) bool) (h ledger.Happened) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c, n := range a.statuses {
		if c.N = n; wanted(c.TenantID) {
			h.Statuses = append(h.Statuses, c)
		}
	}
	for c, n := range a.attempts {
		if c.N = n; wanted(c.TenantID) {
			h.Attempts = append(h.Attempts, c)
		}
	}
	for c, spread := range a.resolved {
		if c.Spread = *spread; wanted(c.TenantID) {
			h.Resolved = append(h.Resolved, c)
		}
	}
	slices.SortFunc(h.Statuses, func(a, b ledger.StatusCount) int {
		return cmp.Or(cmp.Compare(a.TenantID, b.TenantID), cmp.Compare(a.Rail, b.Rail), cmp.Compare(a.Status, b.Status))
	})
	slices.SortFunc(h.Attempts, func(a, b ledger.AttemptCount) int {
		return cmp.Or(cmp.Compare(a.TenantID, b.TenantID), cmp.Compare(a.Rail, b.Rail), cmp.Compare(a.Outcome, b.Outcome))
	})
	slices.SortFunc(h.Resolved, func(a, b ledger.ResolvedCount) int {
		return cmp.Or(cmp.Compare(a.TenantID, b.TenantID), cmp.Compare(a.Rail, b.Rail), cmp.Compare(a.How, b.How))
	})
	return h
}

package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"time"

	"holdfast/store/ledger"
)

// unsignedKept is how many events without a signature are kept about one
// operation. Anybody can send them, and each does no more than make a look-up
// due: those after the first few would only fill the disk.
const unsignedKept = 20

// KeepEvent stores an event as it came, before anything is made of it. The same
// one again changes nothing and is given back as it stands. The same id with other
// bytes is kept beside the first, as a contradiction. Of an unsigned event
// nothing is kept, and the row given back has no id, unless it names an operation
// of its rail.
func (s *Store) KeepEvent(ctx context.Context, e ledger.ProviderEvent) (ledger.ProviderEvent, error) {
	sum := sha256.Sum256(e.Body)
	e.SHA256, e.State = hex.EncodeToString(sum[:]), ledger.EventKept
	var kept ledger.ProviderEvent
	err := s.change(ctx, func(t *tx) error {
		var err error
		kept, err = t.keepEvent(e)
		return err
	})
	return kept, err
}

func (t *tx) keepEvent(e ledger.ProviderEvent) (ledger.ProviderEvent, error) {
	same, err := scanEvent(t.row(`
		select `+eventColumns+` from events where tenant_id = $1 and rail = $2 and event_id = $3 and sha256 = $4`,
		e.TenantID, e.Rail, e.EventID, e.SHA256))
	if !errors.Is(err, ErrNotFound) {
		return same, err
	}
	if !e.Signed {
		if worth, err := t.worthKeeping(e); err != nil || !worth {
			return ledger.ProviderEvent{}, err
		}
	}
	var earlier int
	if err := t.row(`select count(*) from events where tenant_id = $1 and rail = $2 and event_id = $3`, e.TenantID, e.Rail, e.EventID).Scan(&earlier); err != nil {
		return e, err
	}
	e.ID, e.Contradicts, e.ReceivedAt = t.s.rowIDs.next(t.now), earlier > 0, t.now
	return e, t.exec(`
		insert into events (id, tenant_id, rail, event_id, signed, contradicts, seal, body, sha256, received_at, state, stamp, receipt_id, operation_id, sentence, weighed_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, '', '', '', '', 0)`,
		e.ID, e.TenantID, e.Rail, e.EventID, flag(e.Signed), flag(e.Contradicts), text(e.Seal), notNil(e.Body), e.SHA256, e.ReceivedAt, e.State)
}

func (t *tx) worthKeeping(e ledger.ProviderEvent) (bool, error) {
	o, err := t.namedBy(e)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var n int
	err = t.row(`select count(*) from events where tenant_id = $1 and operation_id = $2 and operation_id <> '' and signed = 0`, o.TenantID, o.OperationID).Scan(&n)
	return n < unsignedKept, err
}

// namedBy is the operation that an event is about: the one whose order id it
// carries. One that carries none is about the operation whose receipt it names,
// if there is just one. Another tenant's or another rail's is none.
func (t *tx) namedBy(e ledger.ProviderEvent) (ledger.Operation, error) {
	if e.Stamp != "" {
		return scanOperation(t.row(`select `+operationColumns+` from operations where order_id = $1 and tenant_id = $2 and rail = $3`, e.Stamp, e.TenantID, e.Rail))
	}
	if e.ReceiptID == "" {
		return ledger.Operation{}, ErrNotFound
	}
	rows, err := t.rows(`
		select operation_id from operations where tenant_id = $1 and rail = $2 and receipt_id = $3 and receipt_id <> ''
		union select operation_id from refunds_owed where tenant_id = $1 and rail = $2 and receipt_id = $3 and operation_id is not null limit 2`,
		e.TenantID, e.Rail, e.ReceiptID)
	if err != nil {
		return ledger.Operation{}, err
	}
	ids, err := collect(rows, func(r *sql.Rows) (id string, err error) { return id, r.Scan(&id) })
	if err != nil {
		return ledger.Operation{}, err
	}
	if len(ids) != 1 {
		return ledger.Operation{}, ErrNotFound
	}
	return t.operation(e.TenantID, ids[0])
}

const eventColumns = `id, tenant_id, rail, event_id, signed, contradicts, seal, body, sha256, received_at, state, stamp, receipt_id, operation_id, sentence`

func scanEvent(row scanner) (e ledger.ProviderEvent, err error) {
	var signed, contradicts int
	var seal string
	err = row.Scan(&e.ID, &e.TenantID, &e.Rail, &e.EventID, &signed, &contradicts, &seal, &e.Body, &e.SHA256, &e.ReceivedAt,
		&e.State, &e.Stamp, &e.ReceiptID, &e.OperationID, &e.Sentence)
	fromText(seal, &e.Seal)
	e.Signed, e.Contradicts = signed == 1, contradicts == 1
	return e, notFound(err)
}

// KeptEvents lists, oldest first, events after a row of which nothing was made
// yet: a process ended between keeping and weighing them.
func (s *Store) KeptEvents(ctx context.Context, after int64, limit int) ([]ledger.ProviderEvent, error) {
	return s.eventsWhere(ctx, `state = 'kept' and id > $1 order by id limit $2`, after, limit)
}

// Events lists a tenant's events on one rail, newest first; those in one state, or
// in any.
func (s *Store) Events(ctx context.Context, tenant, rail string, state ledger.EventState, limit int) ([]ledger.ProviderEvent, error) {
	return s.eventsWhere(ctx, `tenant_id = $1 and rail = $2 and ($3 = '' or state = $3) order by id desc limit $4`, tenant, rail, state, limit)
}

func (s *Store) eventsWhere(ctx context.Context, where string, args ...any) ([]ledger.ProviderEvent, error) {
	rows, err := s.readers.QueryContext(ctx, `select `+eventColumns+` from events where `+where, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.ProviderEvent, error) { return scanEvent(r) })
}

// eventsSince is the schema that first held events.
const eventsSince = 4

// EachEvent calls f with every event of every tenant, oldest first, until f returns
// an error. It reads page by page; a file that was never opened by a holdfast that
// takes in events has none.
func (s *Store) EachEvent(ctx context.Context, f func(ledger.ProviderEvent) error) error {
	if file, _, err := s.Schema(ctx); err != nil || file < eventsSince {
		return err
	}
	for last := int64(0); ; {
		page, err := s.eventsWhere(ctx, `id > $1 order by id limit $2`, last, inspectPage)
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := f(e); err != nil {
				return err
			}
			last = e.ID
		}
		if len(page) < inspectPage {
			return nil
		}
	}
}

// rematchFor is how long an event that named nothing we knew is tried again: as
// long as a provider may owe us an outcome.
const rematchFor = 7 * 24 * time.Hour

const selectRematch = `
	select e.id from events e join operations o on o.order_id = e.stamp and o.tenant_id = e.tenant_id and o.rail = e.rail
	where e.state = 'unmatched' and e.stamp <> '' and e.received_at > $1
	union
	select e.id from events e join operations o on o.tenant_id = e.tenant_id and o.receipt_id = e.receipt_id and o.receipt_id <> '' and o.rail = e.rail
	where e.state = 'unmatched' and e.stamp = '' and e.receipt_id <> '' and e.received_at > $1
	group by e.id having count(distinct o.operation_id) = 1
	order by 1 limit 1000`

// RenewEvents takes up again what was unmatched and names a receipt, or an
// operation, that is known by now.
func (s *Store) RenewEvents(ctx context.Context) error {
	rows, err := s.readers.QueryContext(ctx, selectRematch, s.now()-rematchFor.Milliseconds())
	if err != nil {
		return err
	}
	ids, err := collect(rows, func(r *sql.Rows) (id int64, err error) { return id, r.Scan(&id) })
	if err != nil || len(ids) == 0 {
		return err
	}
	return s.change(ctx, func(t *tx) error {
		for _, id := range ids {
			if err := t.exec(`update events set state = 'kept' where id = $1 and state = 'unmatched'`, id); err != nil {
				return err
			}
		}
		return nil
	})
}

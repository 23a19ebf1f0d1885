package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"holdfast/store/ledger"
)

// maxBatch bounds how many callers share one fsync. More gains little and makes
// the first of them wait longer.
const maxBatch = 256

// writer is the goroutine that owns the only connection that may write. It
// takes what waits, without waiting for more, applies each caller's change
// behind a savepoint of its own, commits once and then answers everybody: no
// caller hears of a change before it is durable.
type writer struct {
	db     *sql.DB
	conn   *sql.Conn
	store  *Store
	queue  chan *job
	done   chan struct{}
	door   sync.RWMutex // held for reading while a job is put into the queue
	closed bool
	stmts  map[string]*sql.Stmt
	broken error // set once a commit left it open whether it happened
	walAt  int64 // the size of the write-ahead log at which it is emptied
	health ledger.WriterHealth
	tells  sync.Mutex // held over health
}

type job struct {
	ctx    context.Context
	change func(*tx) error
	err    error
	ended  chan struct{}
}

func startWriter(ctx context.Context, db *sql.DB, s *Store) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{db: db, conn: conn, store: s, queue: make(chan *job, 4*maxBatch), done: make(chan struct{}), stmts: map[string]*sql.Stmt{}, walAt: maxWAL}
	go w.run()
	return w, nil
}

// change hands a function to the writer and waits until its effect is durable
// or known not to be. A caller that goes away before its turn is skipped; after
// that its change is carried out, whoever still listens.
func (s *Store) change(ctx context.Context, f func(*tx) error) error {
	if s.writer == nil {
		return fmt.Errorf("%w: it was opened for reading", ErrUnavailable)
	}
	j := &job{ctx: ctx, change: f, ended: make(chan struct{})}
	if err := s.writer.enqueue(j); err != nil {
		return err
	}
	<-j.ended // what is in the queue is always answered, also while the store closes
	return j.err
}

// changeTwice makes a change anew where another writer was in between: whoever
// asked had nothing on a screen that could be outdated.
func (s *Store) changeTwice(ctx context.Context, f func(*tx) error) error {
	err := s.change(ctx, f)
	if errors.Is(err, ErrStale) {
		err = s.change(ctx, f)
	}
	return err
}

func (w *writer) enqueue(j *job) error {
	w.door.RLock()
	defer w.door.RUnlock()
	if w.closed {
		return fmt.Errorf("%w: it is closed", ErrUnavailable)
	}
	select {
	case w.queue <- j:
		return nil
	case <-j.ctx.Done():
		return j.ctx.Err()
	}
}

func (w *writer) close() error {
	w.door.Lock()
	if w.closed {
		w.door.Unlock()
		return nil
	}
	w.closed = true
	close(w.queue)
	w.door.Unlock()
	<-w.done
	for _, s := range w.stmts {
		s.Close()
	}
	return errors.Join(w.conn.Close(), w.db.Close())
}

func (w *writer) run() {
	defer close(w.done)
	for first := range w.queue {
		batch := append(make([]*job, 0, 16), first)
	fill:
		for len(batch) < maxBatch {
			select {
			case j, open := <-w.queue:
				if !open {
					break fill
				}
				batch = append(batch, j)
			default:
				break fill
			}
		}
		w.commit(batch)
	}
}

func (w *writer) commit(batch []*job) {
	changed, err := w.apply(batch)
	w.noteHealth(err)
	for _, j := range batch {
		if err != nil && j.err == nil {
			j.err = err
		}
		close(j.ended)
	}
	if err == nil {
		w.store.watchers.tell(changed)
		w.keepWALSmall()
	}
}

func (w *writer) noteHealth(err error) {
	w.tells.Lock()
	defer w.tells.Unlock()
	w.health.Commits++
	if err != nil {
		w.health.Lost++
	}
	w.health.Stopped = w.broken != nil
}

// WriterHealth tells how the writer of this process fares.
func (s *Store) WriterHealth() ledger.WriterHealth {
	if s.writer == nil {
		return ledger.WriterHealth{}
	}
	s.writer.tells.Lock()
	defer s.writer.tells.Unlock()
	h := s.writer.health
	h.Waiting = len(s.writer.queue)
	return h
}

// apply runs a batch in one transaction. Its error is everybody's.
func (w *writer) apply(batch []*job) ([]opKey, error) {
	if w.broken != nil {
		return nil, w.broken
	}
	ctx := context.Background() // a batch belongs to many callers: none of them may cancel it
	if _, err := w.conn.ExecContext(ctx, `begin immediate`); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	t := &tx{ctx: ctx, w: w, s: w.store, now: w.store.now()}
	for _, j := range batch {
		if j.err = j.ctx.Err(); j.err != nil {
			continue
		}
		if err := t.isolate(j); err != nil {
			w.rollback()
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	if _, err := w.conn.ExecContext(ctx, `commit`); err != nil {
		return nil, w.commitFailed(err)
	}
	return t.changed, nil
}

// commitFailed decides what a failed commit means. A full disk or a lock leaves
// the database as it was. Anything else may have reached the disk or not: an
// fsync that failed must not be tried again, so the writer stops for good and
// the process has to be started anew.
func (w *writer) commitFailed(err error) error {
	w.rollback()
	if !passes(err) {
		w.broken = fmt.Errorf("%w, and it is not known whether the last commit was kept; restart holdfast: %w", ErrUnavailable, err)
		w.store.log.Error("the store stopped", "error", err)
		return w.broken
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func (w *writer) rollback() {
	if _, err := w.conn.ExecContext(context.Background(), `rollback`); err != nil {
		w.store.log.Debug("rollback", "error", err)
	}
}

// tx is one batch's transaction as a change sees it. All changes of a batch
// share one time.
type tx struct {
	ctx     context.Context
	w       *writer
	s       *Store
	now     int64
	seq     int64 // of the last log entry; 0 until asked
	logged  int64 // its time
	changed []opKey
}

// isolate runs one caller's change behind a savepoint. The caller's own error
// stays with the caller; only a savepoint that fails is everybody's.
func (t *tx) isolate(j *job) error {
	if _, err := t.w.conn.ExecContext(t.ctx, `savepoint caller`); err != nil {
		return err
	}
	kept := len(t.changed)
	j.err = t.protect(j.change)
	if j.err != nil {
		t.changed, t.seq = t.changed[:kept], 0
		if passes(j.err) {
			j.err = fmt.Errorf("%w: %w", ErrUnavailable, j.err)
		}
		// A full disk may have ended the whole transaction: then there is
		// nothing to go back to, for nobody.
		if _, err := t.w.conn.ExecContext(t.ctx, `rollback to caller`); err != nil {
			return err
		}
	}
	_, err := t.w.conn.ExecContext(t.ctx, `release caller`)
	return err
}

// protect turns a panic in one caller's change into that caller's error: the
// writer is everybody's.
func (t *tx) protect(change func(*tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a change to the ledger panicked: %v", p)
			t.s.log.Error("a change to the ledger panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return change(t)
}

func (t *tx) stmt(query string) (*sql.Stmt, error) {
	if s, ok := t.w.stmts[query]; ok {
		return s, nil
	}
	s, err := t.w.conn.PrepareContext(t.ctx, query)
	if err != nil {
		return nil, err
	}
	t.w.stmts[query] = s
	return s, nil
}

func (t *tx) exec(query string, args ...any) error {
	_, err := t.affected(query, args...)
	return err
}

// affected runs a statement and says how many rows it changed.
func (t *tx) affected(query string, args ...any) (int64, error) {
	s, err := t.stmt(query)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// row and rows read inside the transaction.
func (t *tx) row(query string, args ...any) scanner {
	s, err := t.stmt(query)
	if err != nil {
		return badRow{err}
	}
	return s.QueryRowContext(t.ctx, args...)
}

func (t *tx) rows(query string, args ...any) (*sql.Rows, error) {
	s, err := t.stmt(query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(t.ctx, args...)
}

type scanner interface{ Scan(...any) error }

type badRow struct{ err error }

func (b badRow) Scan(...any) error { return b.err }

// collect reads all rows with one scan function and closes them.
func collect[T any](rows *sql.Rows, scan func(*sql.Rows) (T, error)) ([]T, error) {
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// notFound turns the driver's "no rows" into ours.
func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

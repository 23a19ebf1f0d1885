// Package store keeps the ledger on disk. It is the only package that speaks
// SQL, and the only one that changes an operation.
//
// One goroutine owns the writer: it commits the changes of many callers in one
// fsync, and a caller's mistake rolls back that caller's change alone. Readers
// use connections that cannot write. What a method decides comes from
// store/ledger; what it changes goes through one door, which appends the log
// entry in the same commit.
package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/store/ledger"

	_ "modernc.org/sqlite" // the driver
)

// Errors that callers act on. What they wrap says more.
var (
	ErrNotFound    = errors.New("not found")
	ErrStale       = errors.New("it changed since it was read")
	ErrForbidden   = errors.New("not allowed")
	ErrLeaseLost   = errors.New("the lease is gone")
	ErrUnavailable = errors.New("the store cannot commit")
	ErrLocked      = errors.New("another holdfast uses this data folder")
	ErrNewer       = errors.New("the database was written by a newer holdfast")
)

// Options are what a store needs from the world.
type Options struct {
	Folder string           // holds holdfast.db and its lock; made if missing
	Now    func() time.Time // default: the wall clock at start, moved by the monotonic one
	Wall   func() time.Time // default: the wall clock, or Now where that is given
	Log    *slog.Logger
}

// Store is an open ledger.
type Store struct {
	folder   string
	log      *slog.Logger
	clock    func() time.Time
	wall     func() time.Time
	lock     *os.File
	writer   *writer
	readers  *sql.DB
	rules    atomic.Pointer[map[string]*ledger.Rulebook]
	watchers watchers

	instance string
	epoch    int64
	rowIDs   rowIDs

	accounts  sync.Map // tenant, rail, account → *sync.Mutex: one import at a time
	importing sync.Map // imports whose lines are being written
	sealing   sync.Mutex
}

// Open opens the ledger in a folder, brings its schema up to date and takes
// the lock that makes this process its only writer.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := newStore(o)
	if err := prepareFolder(o.Folder); err != nil {
		return nil, err
	}
	lock, err := lockFolder(o.Folder)
	if err != nil {
		return nil, err
	}
	s.lock = lock
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func newStore(o Options) *Store {
	if o.Wall == nil {
		if o.Wall = o.Now; o.Wall == nil {
			o.Wall = time.Now
		}
	}
	if o.Now == nil {
		o.Now = steadyClock(time.Now)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{folder: o.Folder, log: o.Log, clock: o.Now, wall: o.Wall}
	s.rules.Store(&map[string]*ledger.Rulebook{})
	return s
}

func (s *Store) open(ctx context.Context) error {
	path := filepath.Join(s.folder, "holdfast.db")
	db, err := openSQLite(ctx, path)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	if err := migrate(ctx, db, s.now()); err != nil {
		db.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	if s.writer, err = startWriter(ctx, db, s); err != nil {
		db.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	if s.readers, err = openReaders(ctx, path); err != nil {
		return fmt.Errorf("opening %s for reading: %w", path, err)
	}
	if err := s.identify(ctx); err != nil {
		return err
	}
	return s.freeJobs(ctx)
}

const selectIdentity = `
	select (select value from meta where key = 'instance'), (select cast(value as bigint) from meta where key = 'epoch')`

// identify reads the instance's name and epoch, and makes them with a new
// database. The name is random and travels with backups: provider keys and
// order ids are derived from it.
func (s *Store) identify(ctx context.Context) error {
	return s.change(ctx, func(t *tx) error {
		if err := t.exec(`insert into meta (key, value) values ('instance', $1), ('epoch', '1') on conflict (key) do nothing`, randomID("")); err != nil {
			return err
		}
		if err := t.row(selectIdentity).Scan(&s.instance, &s.epoch); err != nil {
			return err
		}
		// Row ids go on from the last one, also where the clock was set back since.
		return t.row(`
			select coalesce(max(id), 0) from (
				select max(id) as id from operations union all select max(id) as id from job_runs union all select max(id) as id from events
				union all select max(number) as id from refunds_owed union all select max(id) as id from refund_journal
				union all select max(id) as id from statement_lines
				union all select max(id) as id from notices union all select max(id) as id from notice_messages
			) as used`).Scan(&s.rowIDs.last)
	})
}

// Close waits for the changes under way, seals the log and lets the lock go. A log
// that can't be sealed now is sealed after the next start.
func (s *Store) Close() error {
	var errs []error
	if s.writer != nil {
		if s.instance != "" {
			if _, err := s.Seal(context.Background()); err != nil {
				s.log.Error("the action log was not sealed at the end", "error", err)
			}
		}
		errs = append(errs, s.writer.close())
	}
	if s.readers != nil {
		errs = append(errs, s.readers.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// Instance is the random name of this ledger.
func (s *Store) Instance() string { return s.instance }

// Now is the store's one clock, in Unix milliseconds: leases, expiries and log
// times are all judged by it.
func (s *Store) Now() int64 { return s.now() }

func (s *Store) now() int64 { return s.clock().UnixMilli() }

// late is the later of the two clocks. What a provider forgets and what people
// let expire goes by the time of the world: a machine that slept has a monotonic
// clock that did not move. Being too late here only asks a person.
func (t *tx) late() int64 { return max(t.now, t.s.wall().UnixMilli()) }

// steadyClock reads the wall clock once and then follows the monotonic one, so
// that a clock that is set forwards or backwards changes no lease.
func steadyClock(read func() time.Time) func() time.Time {
	start := read()
	return func() time.Time { return start.Add(read().Sub(start)) }
}

func prepareFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("data folder %s cannot be made: %w; choose another with --data", folder, unwrapPath(err))
	}
	probe, err := os.CreateTemp(folder, ".write-*")
	if err != nil {
		return fmt.Errorf("data folder %s is not writable: %w; give it to this user or choose another with --data", folder, unwrapPath(err))
	}
	probe.Close()
	return os.Remove(probe.Name())
}

func unwrapPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// randomID is a prefix and 128 random bits.
func randomID(prefix string) string {
	var b [16]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

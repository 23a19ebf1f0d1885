package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// All that is particular to SQLite stands in this file and in the migrations
// named for it.

// minimumSQLite is the first version without a known fault in its WAL reset.
const minimumSQLite = "3.51.3"

// writerSettings: busy_timeout first, so that it holds for the rest; FULL, since
// in WAL mode NORMAL may lose the last commits, and the last commit may be the
// only record that money left. What a savepoint would undo is kept in memory:
// every change has one, and a file for it was a third of a long import's cost.
var writerSettings = []string{
	"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)",
	"trusted_schema(OFF)", "cell_size_check(ON)", "recursive_triggers(ON)", "mmap_size(0)", "journal_size_limit(16777216)", "temp_store(MEMORY)",
}

var readerSettings = []string{"busy_timeout(5000)", "query_only(ON)", "trusted_schema(OFF)", "cell_size_check(ON)", "mmap_size(0)"}

func sqliteURL(path string, settings []string, more ...string) string {
	q := url.Values{"_pragma": settings}
	s := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
	for _, m := range more {
		s += "&" + m
	}
	return s
}

func openSQLite(ctx context.Context, path string) (*sql.DB, error) {
	// SQLite gives its side files the rights of the main one: nobody else's eyes.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unwrapPath(err)
	}
	f.Close()
	db, err := sql.Open("sqlite", sqliteURL(path, writerSettings, "_txlock=immediate"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := checkSQLite(ctx, db); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

func openReaders(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", sqliteURL(path, readerSettings))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	return db, db.PingContext(ctx)
}

// maxWAL is the size of the write-ahead log above which the writer waits for
// readers in order to empty it. SQLite empties it by itself only in a moment
// without any reader, and on a busy day there is none.
const maxWAL = 16 << 20

// keepWALSmall empties a write-ahead log that grew too long. A reader that stays
// delays the writer for a moment only; it is tried again after as much growth.
func (w *writer) keepWALSmall() {
	grown, err := os.Stat(filepath.Join(w.store.folder, "holdfast.db-wal"))
	if err != nil || grown.Size() < w.walAt {
		return
	}
	w.walAt = maxWAL
	var busy, frames, copied int
	err = w.conn.QueryRowContext(context.Background(), `pragma busy_timeout(100)`).Scan(&busy)
	if err == nil {
		err = w.conn.QueryRowContext(context.Background(), `pragma wal_checkpoint(truncate)`).Scan(&busy, &frames, &copied)
	}
	if err != nil || busy != 0 {
		w.walAt = grown.Size() + maxWAL
		w.store.log.Warn("a long read keeps the write-ahead log from being emptied", "bytes", grown.Size(), "error", err)
	}
	if _, err := w.conn.ExecContext(context.Background(), `pragma busy_timeout(5000)`); err != nil {
		w.store.log.Warn("busy_timeout", "error", err)
	}
}

// checkSQLite refuses to start on a library or on settings that could lose a
// commit, and on a file that is damaged.
func checkSQLite(ctx context.Context, db *sql.DB) error {
	var version, journal, integrity string
	var synchronous, foreign int
	err := db.QueryRowContext(ctx, `select sqlite_version()`).Scan(&version)
	if err != nil {
		return err
	}
	if olderThan(version, minimumSQLite) {
		return fmt.Errorf("SQLite %s is too old: %s or later is needed", version, minimumSQLite)
	}
	if err := db.QueryRowContext(ctx, `pragma journal_mode`).Scan(&journal); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `pragma synchronous`).Scan(&synchronous); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `pragma foreign_keys`).Scan(&foreign); err != nil {
		return err
	}
	if journal != "wal" || synchronous != 2 || foreign != 1 {
		return fmt.Errorf("SQLite did not take the settings that make a commit durable (journal_mode=%s synchronous=%d foreign_keys=%d): is the file system one that supports WAL?", journal, synchronous, foreign)
	}
	if err := db.QueryRowContext(ctx, `pragma quick_check(1)`).Scan(&integrity); err != nil {
		return err
	}
	if integrity != "ok" {
		return fmt.Errorf("the database is damaged (%s): restore a backup", integrity)
	}
	return nil
}

// CheckFile reads the whole file and lists where it is damaged, and rows that
// belong to nothing.
func (s *Store) CheckFile(ctx context.Context) ([]string, error) {
	var faults []string
	rows, err := s.readers.QueryContext(ctx, `pragma integrity_check`)
	if err != nil {
		return nil, err
	}
	found, err := collect(rows, func(r *sql.Rows) (line string, err error) { return line, r.Scan(&line) })
	if err != nil {
		return nil, err
	}
	for _, line := range found {
		if line != "ok" {
			faults = append(faults, line)
		}
	}
	rows, err = s.readers.QueryContext(ctx, `select distinct "table", parent from pragma_foreign_key_check`)
	if err != nil {
		return nil, err
	}
	loose, err := collect(rows, func(r *sql.Rows) (string, error) {
		var table, parent string
		err := r.Scan(&table, &parent)
		return fmt.Sprintf("a row of %s belongs to no row of %s", table, parent), err
	})
	return append(faults, loose...), err
}

// SQLiteVersion is the version of the library that is built in.
func SQLiteVersion() string {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "unknown"
	}
	defer db.Close()
	var v string
	if err := db.QueryRow(`select sqlite_version()`).Scan(&v); err != nil {
		return "unknown"
	}
	return v
}

func olderThan(version, minimum string) bool {
	v, m := strings.Split(version, "."), strings.Split(minimum, ".")
	for i := range m {
		if i >= len(v) {
			return true
		}
		a, errA := strconv.Atoi(v[i])
		b, errB := strconv.Atoi(m[i])
		if errA != nil || errB != nil {
			return true
		}
		if a != b {
			return a < b
		}
	}
	return false
}

// isUnique reports whether an error is a violated unique constraint.
func isUnique(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// passes reports whether a failed commit left the database as it was and may
// go through later: a full disk or a lock that somebody else held.
func passes(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY:
		return true
	}
	return false
}

package store

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"holdfast/store/ledger"
)

// sealPage is how many entries one head covers anew at most: its hashes are
// written in one change, for which everybody waits.
const sealPage = 2000

const wholeDay = int64(24 * 60 * 60 * 1000) // milliseconds

// logKey is what heads are signed and leaves are blinded with.
type logKey struct {
	public      string
	seed, blind []byte
}

// errNotSealed means that no head was ever signed.
var errNotSealed = fmt.Errorf("%w: the log was not sealed yet", ErrNotFound)

// Seal signs a head over every entry that was committed when it was called, and
// says how many it covers anew. Hashes and head are one commit: what a crash leaves
// behind is the head before.
//
// The writer gives out numbers one after the other and a rolled-back change gives
// its own back, so that what is committed has no gap and nothing with a lower
// number comes later. A database with several writers must number entries under a
// lock that is held until the commit, never from a sequence; a head over a gap is
// not signed.
func (s *Store) Seal(ctx context.Context) (sealed int, err error) {
	s.sealing.Lock()
	defer s.sealing.Unlock()
	var last int64
	if err := s.readers.QueryRowContext(ctx, `select coalesce(max(seq), 0) from action_log`).Scan(&last); err != nil {
		return 0, err
	}
	for {
		n, size, err := s.sealPage(ctx)
		sealed += n
		if err != nil || n == 0 || size >= last {
			return sealed, err
		}
	}
}

// sealPage signs the next head. Whoever else sealed meanwhile has done the work.
func (s *Store) sealPage(ctx context.Context) (n int, size int64, err error) {
	before, err := s.LogHead(ctx)
	if err != nil && !errors.Is(err, errNotSealed) {
		return 0, 0, err
	}
	entries, err := s.storedEntries(ctx, before.Size, sealPage)
	if err != nil || len(entries) == 0 {
		return 0, before.Size, err
	}
	key, err := s.logKey(ctx)
	if err != nil {
		return 0, 0, err
	}
	tree, err := ledger.ResumeLogTree(before.Size, s.keptHashes(ctx))
	if err != nil {
		return 0, 0, err
	}
	if before.Size > 0 && tree.Root() != before.Root {
		return 0, 0, fmt.Errorf("the log is not sealed any further: its hashes are not those that the head of %d signs; run holdfast verify", before.Size)
	}
	var hashes []tlog.Hash
	for _, e := range entries {
		if e[0] != fmt.Sprint(tree.Size()+1) {
			return 0, 0, fmt.Errorf("the log is not sealed any further: entry %s follows entry %d; run holdfast verify", e[0], tree.Size())
		}
		hashes = append(hashes, tree.Add(tlog.RecordHash(e.Leaf(ledger.Blind(key.blind, e[0]))))...)
	}
	return len(entries), tree.Size(), s.change(ctx, func(t *tx) error {
		var there int64
		if err := t.row(`select coalesce(max(size), 0) from log_heads`).Scan(&there); err != nil || there != before.Size {
			return err
		}
		place := tlog.StoredHashCount(before.Size)
		for i, h := range hashes {
			if err := t.exec(`insert into log_hashes (place, hash) values ($1, $2)`, place+int64(i), h[:]); err != nil {
				return err
			}
		}
		head, err := ledger.SignHead(ledger.LogHead{Origin: ledger.LogOrigin(s.instance), Size: tree.Size(), Root: tree.Root(), At: max(t.now, before.At)}, key.seed)
		if err != nil {
			return err
		}
		return t.exec(`insert into log_heads (size, at, note) values ($1, $2, $3)`, head.Size, head.At, head.Note)
	})
}

// logKey returns the log's key, and makes it with the first head.
func (s *Store) logKey(ctx context.Context) (k logKey, err error) {
	if k, err = s.readLogKey(ctx); !errors.Is(err, errNotSealed) {
		return k, err
	}
	err = s.change(ctx, func(t *tx) error {
		k.seed, k.blind = make([]byte, ed25519.SeedSize), make([]byte, 32)
		rand.Read(k.seed)
		rand.Read(k.blind)
		if k.public, err = ledger.LogKey(ledger.LogOrigin(s.instance), k.seed); err != nil {
			return err
		}
		return t.exec(`insert into log_keys (key, seed, blind, created_at) values ($1, $2, $3, $4)`, k.public, k.seed, k.blind, t.now)
	})
	return k, err
}

func (s *Store) readLogKey(ctx context.Context) (k logKey, err error) {
	err = s.readers.QueryRowContext(ctx, `select key, seed, blind from log_keys`).Scan(&k.public, &k.seed, &k.blind)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNotSealed
	}
	return k, err
}

// LogKey is the public key that heads of the log are checked with.
func (s *Store) LogKey(ctx context.Context) (string, error) {
	k, err := s.readLogKey(ctx)
	return k.public, err
}

// LogHead is the last head, its signature checked.
func (s *Store) LogHead(ctx context.Context) (ledger.LogHead, error) {
	heads, err := s.openHeads(ctx, `select note from log_heads order by size desc limit 1`)
	if err == nil && len(heads) == 0 {
		err = errNotSealed
	}
	if err != nil {
		return ledger.LogHead{}, err
	}
	return heads[0], nil
}

// DailyHeads are the last heads of the most recent days that had any, newest first.
func (s *Store) DailyHeads(ctx context.Context, days int) (heads []ledger.LogHead, err error) {
	for h, err := s.LogHead(ctx); len(heads) < days; h, err = s.headBefore(ctx, h.At) {
		if errors.Is(err, errNotSealed) {
			return heads, nil
		}
		if err != nil {
			return nil, err
		}
		heads = append(heads, h)
	}
	return heads, nil
}

// headBefore is the last head of an earlier day than a moment's.
func (s *Store) headBefore(ctx context.Context, at int64) (ledger.LogHead, error) {
	heads, err := s.openHeads(ctx, `select note from log_heads where at < $1 order by at desc, size desc limit 1`, at-at%wholeDay)
	if err == nil && len(heads) == 0 {
		err = errNotSealed
	}
	if err != nil {
		return ledger.LogHead{}, err
	}
	return heads[0], nil
}

func (s *Store) openHeads(ctx context.Context, query string, args ...any) ([]ledger.LogHead, error) {
	rows, err := s.readers.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	notes, err := collect(rows, func(r *sql.Rows) (n string, err error) { return n, r.Scan(&n) })
	if err != nil || len(notes) == 0 {
		return nil, err
	}
	key, err := s.readLogKey(ctx)
	if err != nil {
		return nil, err
	}
	heads := make([]ledger.LogHead, len(notes))
	for i, n := range notes {
		if heads[i], err = ledger.OpenHead(n, key.public); err != nil {
			return nil, fmt.Errorf("a head of the log is %w; run holdfast verify", err)
		}
	}
	return heads, nil
}

// Unsealed counts the entries that no head covers yet.
func (s *Store) Unsealed(ctx context.Context) (n int64, err error) {
	return n, s.readers.QueryRowContext(ctx, `
		select (select coalesce(max(seq), 0) from action_log) - (select coalesce(max(size), 0) from log_heads)`).Scan(&n)
}

// keptHashes reads hashes of the tree by their place.
func (s *Store) keptHashes(ctx context.Context) tlog.HashReaderFunc {
	return func(places []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(places))
		for i, place := range places {
			var b []byte
			if err := s.readers.QueryRowContext(ctx, `select hash from log_hashes where place = $1`, place).Scan(&b); err != nil || len(b) != tlog.HashSize {
				return nil, fmt.Errorf("hash %d of the log cannot be read: %w", place, notFound(err))
			}
			hashes[i] = tlog.Hash(b)
		}
		return hashes, nil
	}
}

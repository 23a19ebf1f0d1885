package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"holdfast/store/ledger"
)

// storedEntries reads entries after a number as their rows hold them. A column
// that holds another type than its own is no entry: comparing would not find what
// hashing accepts.
func (s *Store) storedEntries(ctx context.Context, after int64, limit int) ([]ledger.StoredEntry, error) {
	rows, err := s.readers.QueryContext(ctx, `select `+entryColumns+` from action_log where seq > $1 order by seq limit $2`, after, limit)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (e ledger.StoredEntry, err error) {
		var cells [len(ledger.LeafColumns)]any
		into := make([]any, len(cells))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := r.Scan(into...); err != nil {
			return e, err
		}
		for i, c := range cells {
			number := i == 0 || i == len(cells)-1
			switch v := c.(type) {
			case int64:
				if e[i] = strconv.FormatInt(v, 10); number {
					continue
				}
			case string:
				if e[i] = v; !number {
					continue
				}
			}
			seq, _ := cells[0].(int64)
			return e, notStored{seq, ledger.LeafColumns[i]}
		}
		return e, nil
	})
}

// notStored is a column that holds what the program never writes.
type notStored struct {
	seq    int64 // 0: the number itself is what is wrong
	column string
}

func (n notStored) Error() string {
	return fmt.Sprintf("entry %d: its %s is not of the type that it is kept as", n.seq, n.column)
}

// ProveLog proves entries under the last head. The zero proof: nothing was sealed
// yet, and of the entries there are only the bytes.
func (s *Store) ProveLog(ctx context.Context, entries []ledger.Entry) (proof ledger.LogProof, leaves [][]byte, err error) {
	proof.Entries = []ledger.EntryProof{}
	key, err := s.readLogKey(ctx)
	if errors.Is(err, errNotSealed) {
		return proof, nil, nil
	}
	if err != nil {
		return proof, nil, err
	}
	head, err := s.LogHead(ctx)
	if errors.Is(err, errNotSealed) {
		return proof, nil, nil
	}
	if err != nil {
		return proof, nil, err
	}
	proof.Key, proof.Head = key.public, head.Note
	kept := s.keptHashes(ctx)
	for _, e := range entries {
		stored := e.Stored()
		leaf := stored.Leaf(ledger.Blind(key.blind, stored[0]))
		p, err := ledger.ProveEntry(head, e.Seq, leaf, kept)
		if err != nil {
			return proof, nil, err
		}
		proof.Entries, leaves = append(proof.Entries, p), append(leaves, leaf)
	}
	earlier, err := s.headBefore(ctx, head.At)
	if errors.Is(err, ErrNotFound) {
		return proof, leaves, nil
	}
	if err != nil {
		return proof, nil, err
	}
	grown, err := ledger.ProveGrowth(earlier, head, kept)
	proof.Earlier = &grown
	return proof, leaves, err
}

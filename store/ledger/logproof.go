package ledger

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// LogProof shows that entries stand under a head, to somebody who has neither the
// log nor this program: RFC 6962's audit paths, and the signed head.
type LogProof struct {
	Key     string       `json:"key"`  // what the head is checked with; empty: nothing was sealed yet
	Head    string       `json:"head"` // the signed note
	Entries []EntryProof `json:"entries"`
	Earlier *HeadProof   `json:"earlier"` // nil: there was no head on an earlier day
}

// EntryProof leads from one entry to the head.
type EntryProof struct {
	Seq  int64            `json:"seq"`
	Hash tlog.Hash        `json:"hash"` // SHA-256 of a zero byte and the leaf
	Path tlog.RecordProof `json:"path"` // nil: it came after the head
}

// HeadProof shows that the head has grown out of an earlier one and took nothing
// back.
type HeadProof struct {
	Head string         `json:"head"`
	Path tlog.TreeProof `json:"path"`
}

// ProveEntry makes the path of an entry to a head. Whether it leads there is for
// whoever checks it: an entry that was changed still gets the path of its place.
func ProveEntry(h LogHead, seq int64, leaf []byte, kept tlog.HashReader) (EntryProof, error) {
	p := EntryProof{Seq: seq, Hash: tlog.RecordHash(leaf)}
	if seq > h.Size {
		return p, nil
	}
	var err error
	p.Path, err = tlog.ProveRecord(h.Size, seq-1, kept)
	return p, err
}

// Check follows the path of an entry. What came after the head has none, and is
// not wrong.
func (p EntryProof) Check(h LogHead) error {
	if p.Path == nil && p.Seq > h.Size {
		return nil
	}
	if p.Seq < 1 || p.Seq > h.Size {
		return fmt.Errorf("entry %d cannot stand under a head of %d", p.Seq, h.Size)
	}
	if err := tlog.CheckRecord(p.Path, h.Size, h.Root, p.Seq-1, p.Hash); err != nil {
		return fmt.Errorf("entry %d is not what the head of %d signs", p.Seq, h.Size)
	}
	return nil
}

// ProveGrowth makes the path from an earlier head to a later one.
func ProveGrowth(earlier, later LogHead, kept tlog.HashReader) (HeadProof, error) {
	p := HeadProof{Head: earlier.Note}
	var err error
	p.Path, err = tlog.ProveTree(later.Size, earlier.Size, kept)
	return p, err
}

// CheckGrowth follows the path from an earlier head to a later one.
func CheckGrowth(earlier, later LogHead, path tlog.TreeProof) error {
	if err := tlog.CheckTree(path, later.Size, later.Root, earlier.Size, earlier.Root); err != nil {
		return fmt.Errorf("the head of %d did not grow out of the head of %d", later.Size, earlier.Size)
	}
	return nil
}

// Check follows every path, with the leaves where they are at hand, and returns
// the head. Nothing in it says whose key it is: compare its fingerprint.
func (p LogProof) Check(leaves map[int64][]byte) (LogHead, error) {
	h, err := OpenHead(p.Head, p.Key)
	if err != nil {
		return h, fmt.Errorf("the head is %w", err)
	}
	for _, e := range p.Entries {
		if leaf, shown := leaves[e.Seq]; shown {
			stored, ok := ReadLeaf(leaf)
			if !ok || stored[0] != fmt.Sprint(e.Seq) || tlog.RecordHash(leaf) != e.Hash {
				return h, fmt.Errorf("the bytes of entry %d are not what its hash is of", e.Seq)
			}
		}
		if err := e.Check(h); err != nil {
			return h, err
		}
	}
	if p.Earlier == nil {
		return h, nil
	}
	earlier, err := OpenHead(p.Earlier.Head, p.Key)
	if err != nil {
		return h, fmt.Errorf("the earlier head is %w", err)
	}
	return h, CheckGrowth(earlier, h, p.Earlier.Path)
}

// Follows reports whether the proof leads from a head that somebody kept.
func (p LogProof) Follows(kept string) (LogHead, error) {
	h, err := OpenHead(kept, p.Key)
	switch {
	case err != nil:
		return h, fmt.Errorf("the head you kept is %w", err)
	case kept == p.Head, p.Earlier != nil && p.Earlier.Head == kept:
		return h, nil
	}
	now, err := OpenHead(p.Head, p.Key)
	if err == nil && now.Size == h.Size && now.Root == h.Root {
		return h, nil
	}
	return h, errors.Join(err, fmt.Errorf("this file does not lead from the head of %d that you kept; holdfast verify --head on the ledger does", h.Size))
}

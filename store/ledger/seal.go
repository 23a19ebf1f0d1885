package ledger

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"
)

// The action log is sealed as a Merkle tree (RFC 6962): entry n is leaf n-1. What
// is hashed, what is signed and what is proved are functions over bytes here and
// in head.go and logproof.go; docs/log.md is the same for people.

const leafLabel = "holdfast log entry 1"

// LeafColumns name what a leaf covers, in order: every column of an entry.
var LeafColumns = [...]string{"seq", "tenant_id", "operation_id", "object", "object_id", "event", "actor_kind", "actor",
	"from_status", "to_status", "reason", "sentence", "fact", "at"}

// StoredEntry is an entry as its row holds it: the text of each column, in the
// order of LeafColumns. Numbers are decimal.
type StoredEntry [len(LeafColumns)]string

// Stored is the row that an entry is kept as.
func (e Entry) Stored() StoredEntry {
	return StoredEntry{strconv.FormatInt(e.Seq, 10), e.TenantID, e.OperationID, e.Object, e.ObjectID, e.Event, string(e.ActorKind), e.Actor,
		string(e.From), string(e.To), string(e.Reason), e.Sentence, e.Fact, strconv.FormatInt(e.At, 10)}
}

// Column is the text of a column; empty: there is none of that name.
func (e StoredEntry) Column(name string) string {
	if i := slices.Index(LeafColumns[:], name); i >= 0 {
		return e[i]
	}
	return ""
}

// Leaf are the exact bytes that are hashed for an entry: the label of this
// encoding, then a line a column, with its name, the number of its bytes and the
// bytes. The lengths make it unambiguous, whatever the text holds. The last line
// is the blind, which keeps whoever sees the hash from guessing the entry.
func (e StoredEntry) Leaf(blind string) []byte {
	b := append(make([]byte, 0, 512), leafLabel+"\n"...)
	for i, name := range LeafColumns {
		b = appendLine(b, name, e[i])
	}
	return appendLine(b, "blind", blind)
}

func appendLine(b []byte, name, value string) []byte {
	b = append(append(b, name...), ' ')
	b = append(strconv.AppendInt(b, int64(len(value)), 10), ' ')
	return append(append(b, value...), '\n')
}

// ReadLeaf takes an entry out of the bytes of its leaf.
func ReadLeaf(leaf []byte) (e StoredEntry, ok bool) {
	rest, ok := bytes.CutPrefix(leaf, []byte(leafLabel+"\n"))
	for i, name := range LeafColumns {
		if e[i], rest, ok = leafLine(rest, name, ok); !ok {
			return e, false
		}
	}
	_, rest, ok = leafLine(rest, "blind", ok)
	return e, ok && len(rest) == 0
}

func leafLine(from []byte, name string, ok bool) (value string, rest []byte, found bool) {
	from, named := bytes.CutPrefix(from, []byte(name+" "))
	digits, from, counted := bytes.Cut(from, []byte(" "))
	n, err := strconv.Atoi(string(digits))
	if !ok || !named || !counted || err != nil || n < 0 || n >= len(from) || from[n] != '\n' || strconv.Itoa(n) != string(digits) {
		return "", nil, false
	}
	return string(from[:n]), from[n+1:], true
}

// Blind is the last line of an entry's leaf. A proof shows the hashes of
// neighbours, which may be another tenant's; most of an entry can be guessed, and
// without the blind a guess could be checked against its hash.
func Blind(secret []byte, seq string) string {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("holdfast log blind 1 " + seq))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

// LogTree is the tree over the log as it grows. It keeps the roots of the whole
// subtrees that its right edge is made of, and so needs no more than their number.
type LogTree struct {
	size  int64
	roots []tlog.Hash // the largest subtree first
}

// ResumeLogTree is the tree over the first entries of a log whose hashes are kept.
func ResumeLogTree(size int64, kept tlog.HashReader) (*LogTree, error) {
	t := &LogTree{size: size}
	var at []int64
	for level, first := 62, int64(0); level >= 0; level-- {
		if whole := int64(1) << level; size&whole != 0 {
			at = append(at, tlog.StoredHashIndex(level, first>>level))
			first += whole
		}
	}
	if len(at) == 0 {
		return t, nil
	}
	var err error
	t.roots, err = kept.ReadHashes(at)
	return t, err
}

// Size is the number of entries in it.
func (t *LogTree) Size() int64 { return t.size }

// Add appends an entry's hash. It returns the hashes that are final from now on,
// in the order in which they are kept: the leaf, then what it completes.
func (t *LogTree) Add(leaf tlog.Hash) []tlog.Hash {
	final := []tlog.Hash{leaf}
	for n := t.size; n&1 == 1; n >>= 1 {
		last := len(t.roots) - 1
		leaf = tlog.NodeHash(t.roots[last], leaf)
		t.roots = t.roots[:last]
		final = append(final, leaf)
	}
	t.roots = append(t.roots, leaf)
	t.size++
	return final
}

// Root is the one hash that covers every entry.
func (t *LogTree) Root() tlog.Hash {
	if len(t.roots) == 0 {
		return sha256.Sum256(nil)
	}
	root := t.roots[len(t.roots)-1]
	for i := len(t.roots) - 2; i >= 0; i-- {
		root = tlog.NodeHash(t.roots[i], root)
	}
	return root
}

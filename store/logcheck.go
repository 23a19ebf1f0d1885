package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"holdfast/store/ledger"
)

// LogReport is what a walk over the whole log found.
type LogReport struct {
	Entries int64          // that are there
	Heads   int            // that were checked
	FirstAt int64          // of the first entry
	Last    ledger.LogHead // the zero head: nothing was sealed yet
	Key     string         // public, that heads are checked with
	Fault   *LogFault      // the first; nil: it is unbroken
}

// LogFault is where the log is not what was signed.
type LogFault struct {
	Seq      int64 // the entry; 0: it is about a head
	Sentence string
}

// CheckLog recomputes the seal of the log from the rows of its entries, and stops
// at the first thing that is not what was signed. Heads that were kept elsewhere
// must be of this log and lie on its way. The log may grow meanwhile: what comes
// after the last head of the beginning is not looked at. Progress hears from time
// to time how many entries were read.
func (s *Store) CheckLog(ctx context.Context, kept []string, progress func(read, of int64)) (LogReport, error) {
	c := logCheck{s: s, ctx: ctx, tree: &ledger.LogTree{}}
	err := c.walk(kept, progress)
	if f, found := errors.AsType[*LogFault](err); found {
		c.LogReport.Fault = f
		err = nil
	}
	return c.LogReport, err
}

// Error makes a fault end the walk.
func (f *LogFault) Error() string { return f.Sentence }

func fault(seq int64, format string, args ...any) error {
	return &LogFault{seq, fmt.Sprintf(format, args...)}
}

// logCheck is one walk: the tree as the rows make it, beside what was kept of it.
type logCheck struct {
	LogReport
	s       *Store
	ctx     context.Context
	tree    *ledger.LogTree
	blind   []byte
	kept    []ledger.LogHead // by size
	heads   []ledger.LogHead // the next ones
	checked int64            // the size up to which a head agreed
}

func (c *logCheck) walk(kept []string, progress func(read, of int64)) error {
	if err := c.begin(kept); err != nil {
		return err
	}
	for {
		entries, err := c.s.storedEntries(c.ctx, c.tree.Size(), sealPage)
		if odd, found := errors.AsType[notStored](err); found {
			return fault(odd.seq, "%v", odd)
		}
		if err != nil {
			return err
		}
		if c.FirstAt == 0 && len(entries) > 0 {
			fmt.Sscan(entries[0][len(entries[0])-1], &c.FirstAt)
		}
		if err := c.page(entries); err != nil {
			return err
		}
		if progress != nil {
			progress(c.Entries, c.Last.Size)
		}
		if len(entries) < sealPage {
			return c.end()
		}
	}
}

// begin reads the key and the last head.
func (c *logCheck) begin(kept []string) error {
	sealed, err := c.s.keepsSeal(c.ctx)
	if err != nil {
		return err
	}
	var key logKey
	err = errNotSealed
	if sealed {
		key, err = c.s.readLogKey(c.ctx)
	}
	if errors.Is(err, errNotSealed) {
		if len(kept) > 0 {
			return fault(0, "this log was never sealed, and a head of it was kept")
		}
		return nil
	}
	if err != nil {
		return err
	}
	c.Key, c.blind = key.public, key.blind
	if own, err := ledger.LogKey(ledger.LogOrigin(c.s.instance), key.seed); err != nil || own != key.public {
		return fault(0, "the log's key is not the one of this ledger")
	}
	for _, text := range kept {
		h, err := ledger.OpenHead(text, c.Key)
		if err != nil {
			return fault(0, "a head that was kept is %v", err)
		}
		c.kept = append(c.kept, h)
	}
	last, err := c.headsAfter(0, `order by size desc limit 1`)
	if err != nil || len(last) == 0 {
		return err
	}
	c.Last = last[0]
	return nil
}

func (c *logCheck) page(entries []ledger.StoredEntry) error {
	hashes, err := c.sealedHashes(len(entries))
	if err != nil {
		return err
	}
	for _, e := range entries {
		n := c.tree.Size() + 1
		if e[0] != fmt.Sprint(n) {
			return fault(n, "entry %d is missing: entry %s follows entry %d", n, e[0], n-1)
		}
		c.Entries = n
		if n > c.Last.Size {
			c.tree.Add(tlog.RecordHash(e.Leaf("")))
			continue
		}
		for i, h := range c.tree.Add(tlog.RecordHash(e.Leaf(ledger.Blind(c.blind, e[0])))) {
			if len(hashes) == 0 {
				return fault(n, "entry %d was sealed, and its hash is gone", n)
			}
			if hashes[0] != h && i == 0 {
				return fault(n, "entry %d is not what was sealed: it was changed, or its hash was", n)
			}
			if hashes[0] != h {
				return fault(n, "a hash over entry %d and those before it is not what they make", n)
			}
			hashes = hashes[1:]
		}
		if err := c.signed(n); err != nil {
			return err
		}
	}
	return nil
}

// signed compares the tree with the heads of its size.
func (c *logCheck) signed(n int64) error {
	if len(c.heads) == 0 {
		var err error
		if c.heads, err = c.headsAfter(n-1, `order by size limit 1000`); err != nil {
			return err
		}
	}
	if len(c.heads) > 0 && c.heads[0].Size == n {
		if c.heads[0].Root != c.tree.Root() {
			return fault(c.checked+1, "the entries from %d to %d are not those that the head of %d signs", c.checked+1, n, n)
		}
		c.checked, c.heads = n, c.heads[1:]
		c.Heads++
	}
	for _, h := range c.kept {
		if h.Size == n && h.Root != c.tree.Root() {
			return fault(n, "the log up to entry %d is not the one that the head you kept signs", n)
		}
	}
	return nil
}

func (c *logCheck) end() error {
	if c.Entries < c.Last.Size {
		return fault(c.Entries+1, "entry %d is missing: the head of %d signs %d entries, and %d are there", c.Entries+1, c.Last.Size, c.Last.Size, c.Entries)
	}
	for _, h := range c.kept {
		if h.Size > c.Last.Size {
			return fault(c.Last.Size+1, "the head you kept signs %d entries, and the log's last head %d: the log was cut after entry %d, or went on from an older copy", h.Size, c.Last.Size, c.Last.Size)
		}
	}
	return nil
}

// headsAfter opens the heads that cover more than a number of entries.
func (c *logCheck) headsAfter(size int64, order string) (heads []ledger.LogHead, err error) {
	rows, err := c.s.readers.QueryContext(c.ctx, `select size, at, note from log_heads where size > $1 `+order, size)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (h ledger.LogHead, err error) {
		var text string
		var size, at int64
		if err := r.Scan(&size, &at, &text); err != nil {
			return h, err
		}
		h, err = ledger.OpenHead(text, c.Key)
		if err == nil && (h.Size != size || h.At != at) {
			err = errors.New("of another size or time than it is kept as")
		}
		if err != nil {
			return h, fault(0, "the head of %d is %v", size, err)
		}
		return h, nil
	})
}

// sealedHashes reads the kept hashes of the next entries, as far as they are sealed.
func (c *logCheck) sealedHashes(entries int) ([]tlog.Hash, error) {
	from := tlog.StoredHashCount(c.tree.Size())
	to := tlog.StoredHashCount(min(c.tree.Size()+int64(entries), c.Last.Size))
	if to <= from {
		return nil, nil
	}
	rows, err := c.s.readers.QueryContext(c.ctx, `select hash from log_hashes where place >= $1 and place < $2 order by place`, from, to)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (h tlog.Hash, err error) {
		var b []byte
		err = r.Scan(&b)
		copy(h[:], b)
		return h, err
	})
}

// keepsSeal tells a file whose log can be sealed from an older one, which is only
// read here.
func (s *Store) keepsSeal(ctx context.Context) (kept bool, err error) {
	return kept, s.readers.QueryRowContext(ctx, `select exists (select 1 from migrations where name like '%_seal.%')`).Scan(&kept)
}

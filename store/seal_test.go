package store_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"holdfast/store"
	"holdfast/store/ledger"
)

// sealed is a ledger with entries under two heads, and one that is not sealed yet.
func sealed(t testing.TB) *bench {
	b := newBench(t)
	for i := range 6 {
		b.submit(fmt.Sprint("op-", i), charge, nil)
	}
	b.seal()
	b.clock.move(time.Minute)
	for i := range 5 {
		b.submit(fmt.Sprint("later-", i), charge, nil)
	}
	b.seal()
	b.submit("tail", charge, nil)
	return b
}

func (b *bench) seal() int {
	b.t.Helper()
	n, err := b.s.Seal(b.ctx)
	b.ok(err)
	return n
}

func (b *bench) head() ledger.LogHead {
	b.t.Helper()
	h, err := b.s.LogHead(b.ctx)
	b.ok(err)
	return h
}

func (b *bench) checkLog(kept ...string) store.LogReport {
	b.t.Helper()
	r, err := b.s.CheckLog(b.ctx, kept, nil)
	b.ok(err)
	return r
}

// wantFault checks that the log is not believed, and that the fault names the entry.
func (b *bench) wantFault(seq int64, says string, kept ...string) {
	b.t.Helper()
	r := b.checkLog(kept...)
	if r.Fault == nil || r.Fault.Seq != seq || !strings.Contains(r.Fault.Sentence, says) {
		b.t.Errorf("fault %+v, want one of entry %d that says %q", r.Fault, seq, says)
	}
}

// asAttacker changes the file as somebody does who has it: the triggers are gone,
// and there again afterwards.
func (b *bench) asAttacker(statements ...string) {
	b.t.Helper()
	b.broken = true
	rows, err := b.raw().QueryContext(b.ctx, `select name, sql from sqlite_master where type = 'trigger'`)
	b.ok(err)
	var drop, create []string
	for rows.Next() {
		var name, text string
		b.ok(rows.Scan(&name, &text))
		drop, create = append(drop, "drop trigger "+name), append(create, text)
	}
	b.ok(rows.Err())
	rows.Close()
	for _, s := range append(append(drop, statements...), create...) {
		b.ok(b.sql(s))
	}
}

func TestASealedLogIsUnbroken(t *testing.T) {
	b := sealed(t)
	r := b.checkLog()
	head := b.head()
	if r.Fault != nil || r.Heads != 2 || r.Last.Note != head.Note || r.Entries != head.Size+1 || r.FirstAt == 0 {
		t.Errorf("%+v", r)
	}
	if n, err := b.s.Unsealed(b.ctx); err != nil || n != 1 {
		t.Errorf("%d entries are unsealed, %v", n, err)
	}
	if n := b.seal(); n != 1 {
		t.Errorf("%d sealed anew", n)
	}
	before := b.head()
	if n := b.seal(); n != 0 || b.head().Note != before.Note {
		t.Errorf("%d sealed anew, though nothing was logged", n)
	}
	if r := b.checkLog(head.Note, before.Note); r.Fault != nil {
		t.Errorf("heads that were kept: %s", r.Fault)
	}
}

// Whatever somebody with the file does to what is sealed, the first entry that is
// not what it was is named.
func TestATamperedEntryIsNamed(t *testing.T) {
	const row4 = ` where seq = 4`
	for name, c := range map[string]struct {
		seq    int64
		says   string
		attack []string
	}{
		"one byte of a sentence": {4, "entry 4 is not what was sealed", []string{`update action_log set sentence = 'X' || substr(sentence, 2)` + row4}},
		"the time":               {4, "entry 4 is not", []string{`update action_log set at = at + 1` + row4}},
		"who did it":             {4, "entry 4 is not", []string{`update action_log set actor = 'bob'` + row4}},
		"one byte of a fact":     {4, "entry 4 is not", []string{`update action_log set fact = replace(fact, '}', ' }')` + row4}},
		"text moved over a line": {4, "entry 4 is not", []string{`update action_log set reason = reason || char(10), sentence = substr(sentence, 2)` + row4}},
		"another type":           {4, "its tenant_id is not of the type", []string{`update action_log set tenant_id = cast(tenant_id as blob)` + row4}},
		"time as a fraction":     {4, "its at is not of the type", []string{`update action_log set at = at + 0.5` + row4}},
		"one deleted":            {4, "entry 4 is missing", []string{`delete from action_log` + row4}},
		"one deleted, the rest moved up": {4, "entry 4 is not", []string{`delete from action_log` + row4,
			`update action_log set seq = -seq where seq > 4`, `update action_log set seq = -seq - 1 where seq < 0`}},
		"two in another order": {4, "entry 4 is not", []string{`update action_log set seq = -4` + row4, `update action_log set seq = 4 where seq = 5`, `update action_log set seq = 5 where seq = -4`}},
		"one put in between": {4, "entry 4 is not", []string{`update action_log set seq = -seq where seq >= 4`, `update action_log set seq = -seq + 1 where seq < 0`,
			`insert into action_log select 4, tenant_id, operation_id, object, object_id, event, actor_kind, actor, from_status, to_status, reason, sentence, fact, at from action_log where seq = 3`}},
		"the first deleted":            {1, "entry 1 is missing", []string{`delete from action_log where seq = 1`}},
		"the last sealed and its tail": {11, "entry 11 is missing", []string{`delete from action_log where seq >= 11`}},
		"a hash of a leaf":             {4, "entry 4 is not", []string{`update log_hashes set hash = zeroblob(32) where place = 4`}},
		"a hash over leaves":           {4, "a hash over entry 4", []string{`update log_hashes set hash = zeroblob(32) where place = 6`}},
		"hashes deleted":               {4, "its hash is gone", []string{`delete from log_hashes where place >= 4`}},
		"a head's size":                {0, "another size", []string{`update log_heads set size = size + 1 where size = (select max(size) from log_heads)`}},
		"a head's text":                {0, "not signed with the log's key", []string{`update log_heads set note = replace(note, 'time 2', 'time 3') where size = (select max(size) from log_heads)`}},
		"another key":                  {0, "key is not the one", []string{`update log_keys set seed = zeroblob(32)`}},
	} {
		t.Run(name, func(t *testing.T) {
			b := sealed(t)
			b.asAttacker(c.attack...)
			b.wantFault(c.seq, c.says)
		})
	}
}

// Whoever changes an entry and every hash after it has no head for them.
func TestHashesThatFitTheLieDoNotFitTheHead(t *testing.T) {
	b := sealed(t)
	head := b.head()
	b.asAttacker(`update action_log set actor = 'bob' where seq = 9`)
	b.rehash(head.Size)
	r := b.checkLog()
	if r.Fault == nil || !strings.Contains(r.Fault.Sentence, "are not those that the head of") || r.Fault.Seq > 9 || r.Fault.Seq < 6 {
		t.Errorf("%+v", r.Fault)
	}
	if _, err := b.s.Seal(b.ctx); err == nil || !strings.Contains(err.Error(), "not sealed any further") {
		t.Errorf("a head was signed over it: %v", err)
	}
}

// rehash writes every hash anew from the rows as they are.
func (b *bench) rehash(size int64) {
	b.t.Helper()
	var blind []byte
	b.ok(b.raw().QueryRowContext(b.ctx, `select blind from log_keys`).Scan(&blind))
	tree := &ledger.LogTree{}
	place := 0
	var hashes [][]byte
	b.ok(b.s.EachEntry(b.ctx, 0, func(e ledger.Entry) error {
		if e.Seq <= size {
			stored := e.Stored()
			for _, h := range tree.Add(tlog.RecordHash(stored.Leaf(ledger.Blind(blind, stored[0])))) {
				hashes = append(hashes, h[:])
			}
		}
		return nil
	}))
	var statements []string
	for ; place < len(hashes); place++ {
		statements = append(statements, fmt.Sprintf(`update log_hashes set hash = x'%x' where place = %d`, hashes[place], place))
	}
	b.asAttacker(statements...)
}

// An older copy of the file, or one whose end was cut off with its heads, is a
// whole ledger. Only a head that was kept elsewhere tells.
func TestAHeadThatWasKeptTellsOfATruncatedLog(t *testing.T) {
	b := sealed(t)
	b.seal()
	kept := b.head()
	b.asAttacker(`delete from action_log where seq > 8`, `delete from log_heads where size > 8`,
		`delete from log_hashes where place >= (select max(place) from log_hashes) - 5`)
	b.rehashTail()
	if r := b.checkLog(); r.Fault != nil {
		t.Fatalf("a log that was cut at a head is found without one: %s", r.Fault)
	}
	b.wantFault(b.head().Size+1, "the head you kept signs", kept.Note)
}

// rehashTail leaves exactly the hashes that the last head needs.
func (b *bench) rehashTail() {
	b.t.Helper()
	b.asAttacker(fmt.Sprintf(`delete from log_hashes where place >= %d`, tlog.StoredHashCount(b.head().Size)))
}

func TestAForkedLogIsToldByAHeadOfTheOtherBranch(t *testing.T) {
	b := sealed(t)
	b.ok(b.s.Close())
	copied := t.TempDir()
	data, err := os.ReadFile(filepath.Join(b.folder, "holdfast.db"))
	b.ok(err)
	b.ok(os.WriteFile(filepath.Join(copied, "holdfast.db"), data, 0o600))
	b.open()
	b.submit("here", charge, nil)
	b.submit("here-2", charge, nil)
	b.seal()
	other := newBenchIn(t, copied)
	other.submit("there", charge, nil)
	other.submit("there-2", charge, nil)
	other.submit("there-3", charge, nil)
	other.seal()
	other.wantFault(b.head().Size, "not the one that the head you kept signs", b.head().Note)
	other.ok(other.s.Close())
	stranger := sealed(t)
	stranger.wantFault(0, "not signed with the log's key", b.head().Note)
}

func TestWhatIsSealedIsKeptByTheDatabaseItself(t *testing.T) {
	b := sealed(t)
	for _, wrong := range []string{
		`update log_heads set at = 1`, `delete from log_heads`, `insert into log_heads (size, at, note) values (3, 1, '')`, `insert into log_heads (size, at, note) values (99999, 1, '')`,
		`insert or replace into log_heads (size, at, note) select size, at, '' from log_heads`,
		`update log_hashes set hash = zeroblob(32)`, `delete from log_hashes`, `insert into log_hashes (place, hash) values (9999, zeroblob(32))`,
		`insert or replace into log_hashes (place, hash) values (0, zeroblob(32))`,
		`update log_keys set seed = zeroblob(32)`, `delete from log_keys`, `insert into log_keys (key, seed, blind, created_at) values ('x', zeroblob(32), zeroblob(32), 1)`,
	} {
		if err := b.sql(wrong); err == nil {
			t.Errorf("%s went through", wrong)
		}
	}
}

func TestCloseSealsWhatIsThere(t *testing.T) {
	b := sealed(t)
	b.reopen()
	r := b.checkLog()
	if r.Fault != nil || r.Last.Size != r.Entries {
		t.Errorf("%d of %d entries are sealed, %v", r.Last.Size, r.Entries, r.Fault)
	}
}

// A log of many pages is sealed by one call, each page with a head of its own.
func TestALongLogIsSealedInPages(t *testing.T) {
	b := newBench(t)
	for i := range 40 {
		b.submit(fmt.Sprint("op-", i), charge, nil)
	}
	b.ok(b.sql(`with recursive n (i) as (select (select max(seq) from action_log) + 1 union all select i + 1 from n where i < 5003)
		insert into action_log select i, 'acme', '', 'job', 'x', 'run', 'person', 'root', '', '', '', 'ran', '{}', 1800000000000 from n`))
	if n := b.seal(); n != 5003 {
		t.Errorf("%d sealed", n)
	}
	if r := b.checkLog(); r.Fault != nil || r.Heads != 3 {
		t.Errorf("%d heads, %v", r.Heads, r.Fault)
	}
}

func TestEveryEntryOfAnOperationIsProvedByTheStore(t *testing.T) {
	b := sealed(t)
	entries, err := b.s.Timeline(b.ctx, tenant, "later-2")
	b.ok(err)
	tail, err := b.s.Timeline(b.ctx, tenant, "tail")
	b.ok(err)
	proof, leaves, err := b.s.ProveLog(b.ctx, append(entries, tail...))
	b.ok(err)
	bytesOf := map[int64][]byte{}
	for i, p := range proof.Entries {
		bytesOf[p.Seq] = leaves[i]
	}
	head, err := proof.Check(bytesOf)
	if err != nil || head.Note != b.head().Note || proof.Entries[0].Path == nil || proof.Entries[len(entries)].Path != nil || proof.Earlier != nil {
		t.Fatalf("%v %+v", err, proof)
	}
	for seq, leaf := range bytesOf {
		changed := map[int64][]byte{seq: bytes.Replace(leaf, []byte("buyer"), []byte("bayer"), 1)}
		if _, err := proof.Check(changed); err == nil {
			t.Errorf("entry %d with another byte is believed", seq)
		}
	}
	b.clock.move(24 * time.Hour)
	b.submit("next day", charge, nil, func(o *ledger.Operation) { o.OperationID = "next-day" })
	b.seal()
	proof, _, err = b.s.ProveLog(b.ctx, entries)
	b.ok(err)
	if _, err := proof.Check(nil); err != nil || proof.Earlier == nil || proof.Earlier.Head != head.Note {
		t.Fatalf("the earlier day: %v %+v", err, proof.Earlier)
	}
	if _, err := proof.Follows(head.Note); err != nil {
		t.Error(err)
	}
	days, err := b.s.DailyHeads(b.ctx, 7)
	if err != nil || len(days) != 2 || days[1].Note != head.Note {
		t.Errorf("%d days, %v", len(days), err)
	}
}

// Entries of an operation in a proof are the tenant's own: a neighbour is a hash
// that cannot be guessed, since its leaf ends with a blind.
func TestAProofDoesNotLetNeighboursBeGuessed(t *testing.T) {
	b := sealed(t)
	entries, err := b.s.Timeline(b.ctx, tenant, "op-1")
	b.ok(err)
	proof, _, err := b.s.ProveLog(b.ctx, entries)
	b.ok(err)
	guesses := map[[32]byte]int64{}
	b.ok(b.s.EachEntry(b.ctx, 0, func(e ledger.Entry) error {
		stored := e.Stored()
		guesses[tlog.RecordHash(stored.Leaf(""))] = e.Seq
		return nil
	}))
	for _, p := range proof.Entries {
		for _, h := range append(p.Path, p.Hash) {
			if seq, found := guesses[h]; found {
				t.Errorf("entry %d can be guessed from the proof of entry %d", seq, p.Seq)
			}
		}
	}
}

// Case 166: the time with all its digits is what is hashed, also after a restart,
// and one byte of it is found.
func TestCase166ALogIsVerifiedOverTheBytesThatAreKept(t *testing.T) {
	b := newBench(t)
	b.clock.ms.Store(1_700_000_000_123)
	b.submit("op-1", charge, map[string]any{"reference": "naïve \u202e"})
	b.reopen()
	if r := b.checkLog(); r.Fault != nil || r.Last.Size != r.Entries || r.Last.At != 1_700_000_000_123 {
		t.Fatalf("%+v", r)
	}
	b.asAttacker(`update action_log set at = at - at % 1000 where seq = 2`)
	b.wantFault(2, "entry 2 is not what was sealed")
}

// Case 167: appends side by side are one line, and two stores on one folder are
// refused; while somebody else seals as well, there is one line of heads.
func TestCase167ParallelAppendsAreOneLine(t *testing.T) {
	b := newBench(t)
	if _, err := store.Open(b.ctx, store.Options{Folder: b.folder}); err == nil {
		t.Fatal("a second process would write the same log")
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if _, err := b.s.Submit(b.ctx, b.draft(fmt.Sprint("op-", i), charge, nil)); err != nil {
				t.Error(err)
			}
			if _, err := b.s.Seal(b.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	b.seal()
	if r := b.checkLog(); r.Fault != nil || r.Last.Size != r.Entries || r.Entries < 50 {
		t.Errorf("%+v", r)
	}
}

// Whatever is done to one byte of one sealed row, in any log, that row is named.
func TestAnyByteOfAnyRowIsNamed(t *testing.T) {
	b := sealed(t)
	size := b.head().Size
	b.asAttacker() // so that the check at the end leaves it alone
	b.broken = true
	columns := []string{"tenant_id", "operation_id", "object", "object_id", "event", "actor_kind", "actor", "from_status", "to_status", "reason", "sentence", "fact"}
	rapid.Check(t, func(t *rapid.T) {
		seq := rapid.Int64Range(1, size).Draw(t, "seq")
		column := rapid.SampledFrom(columns).Draw(t, "column")
		with := rapid.StringN(1, 4, -1).Draw(t, "with")
		var was string
		if err := b.raw().QueryRow(`select `+column+` from action_log where seq = $1`, seq).Scan(&was); err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, len(was)).Draw(t, "at")
		b.ok(b.sql(`drop trigger if exists action_log_no_update`))
		b.ok(b.sql(`update action_log set `+column+` = $1 where seq = $2`, was[:at]+with+was[at:], seq))
		r := b.checkLog()
		b.ok(b.sql(`update action_log set `+column+` = $1 where seq = $2`, was, seq))
		if r.Fault == nil || r.Fault.Seq != seq {
			t.Fatalf("%s of entry %d: %+v", column, seq, r.Fault)
		}
	})
}

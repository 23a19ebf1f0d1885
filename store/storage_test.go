package store_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

func open(folder string) (*store.Store, error) {
	return store.Open(context.Background(), store.Options{Folder: folder})
}

// refusedToOpen expects an error that names the place or says what to do.
func refusedToOpen(t *testing.T, folder string, words ...string) error {
	t.Helper()
	s, err := open(folder)
	if err == nil {
		s.Close()
		t.Fatal("it was opened")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	return err
}

func TestASecondProcessIsRefused(t *testing.T) {
	b := newBench(t)
	if err := refusedToOpen(t, b.folder, b.folder); !errors.Is(err, store.ErrLocked) {
		t.Error(err)
	}
	b.submit("op", charge, nil) // and the first goes on
	r, err := store.OpenForReading(b.ctx, store.Options{Folder: b.folder})
	b.ok(err)
	defer r.Close()
	if o, err := r.Operation(b.ctx, tenant, "op"); err != nil || o.Status != ledger.Ready {
		t.Errorf("beside the writer: %s, %v", o.Status, err)
	}
	if r.Instance() != b.s.Instance() {
		t.Error("it reads another ledger")
	}
	_, err = r.Submit(b.ctx, b.draft("op2", charge, nil))
	b.wantErr(err, store.ErrUnavailable)
}

func TestAReaderNeedsALedger(t *testing.T) {
	folder := t.TempDir()
	if _, err := store.OpenForReading(context.Background(), store.Options{Folder: folder}); err == nil || !strings.Contains(err.Error(), folder) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "holdfast.db")); err == nil {
		t.Error("it made one")
	}
}

func TestAFolderThatCannotBeUsedIsNamed(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refusedToOpen(t, file, file, "--data")
	refusedToOpen(t, filepath.Join(file, "below"), file, "--data")
	if os.Geteuid() != 0 { // to root every folder is writable
		if err := os.Chmod(folder, 0o500); err != nil {
			t.Fatal(err)
		}
		refusedToOpen(t, folder, folder, "not writable")
	}
}

func TestANewFolderIsClosedToOthers(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	s, err := open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	info, err := os.Stat(folder)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// closed makes a ledger, closes it, and gives its folder and an open file.
func closed(t *testing.T) (folder string, db *sql.DB) {
	t.Helper()
	folder = t.TempDir()
	s, err := open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err = sql.Open("sqlite", filepath.Join(folder, "holdfast.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return folder, db
}

func TestANewerSchemaIsRefused(t *testing.T) {
	folder, db := closed(t)
	if _, err := db.Exec(`insert into migrations (number, name, sha256, applied_at) values (999, 'later', 'x', 0)`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if err := refusedToOpen(t, folder, "newer"); !errors.Is(err, store.ErrNewer) {
		t.Error(err)
	}
}

func TestAnEditedMigrationIsRefused(t *testing.T) {
	folder, db := closed(t)
	if _, err := db.Exec(`update migrations set sha256 = 'x' where number = 1`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	refusedToOpen(t, folder, "differs from the one that was applied")
}

func TestADamagedFileIsRefused(t *testing.T) {
	folder, db := closed(t)
	db.Close()
	path := filepath.Join(folder, "holdfast.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		claim  string
		damage func([]byte) []byte
	}{
		{"pages of rubbish", func(b []byte) []byte {
			for i := 4096; i < 5*4096; i++ {
				b[i] = 0xa5
			}
			return b
		}},
		{"cut short", func(b []byte) []byte { return b[:len(b)/2] }},
		{"another file", func([]byte) []byte { return []byte(strings.Repeat("this is no database ", 1000)) }},
	} {
		if err := os.WriteFile(path, c.damage(append([]byte{}, whole...)), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Log(refusedToOpen(t, folder, path))
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := open(folder)
	if err != nil {
		t.Fatal("the whole one: ", err)
	}
	s.Close()
}

// A copy of the main file alone, laid over a folder with the sidecars of another
// state, must not become a mixture.
func TestAMainFileCopiedAloneIsNotMixedWithOldSidecars(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"a", "b", "c"} {
		b.submit(id, charge, nil)
	}
	path := filepath.Join(b.folder, "holdfast.db")
	main, err := os.ReadFile(path)
	b.ok(err)
	target := t.TempDir()
	b.ok(os.WriteFile(filepath.Join(target, "holdfast.db"), main, 0o600))
	s, err := open(target)
	if err != nil {
		return // refused loudly: nothing to check
	}
	defer s.Close()
	if faults, err := s.CheckFile(b.ctx); err != nil || len(faults) > 0 {
		t.Errorf("%v %v", faults, err)
	}
}

func TestALedgerSurvivesItsProcess(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", wire)
	instance := b.s.Instance()
	b.reopen()
	if b.s.Instance() != instance {
		t.Error("the instance has another name")
	}
	b.settle(m, found(m.Operation, "pay_1"))
	if o := b.want("op", ledger.Confirmed, ""); o.Version != 3 || o.HashRow() != m.Operation.RowHash {
		t.Errorf("version %d", o.Version)
	}
}

func TestEveryColumnComesBackAsItWent(t *testing.T) {
	b := newBench(t)
	b.submit("earlier", charge, map[string]any{"reference": "r"})
	b.submit("old", charge, map[string]any{"recipient": "acct_old"})
	b.submit("z", charge, map[string]any{"recipient": "acct_z"})
	r, err := b.s.Submit(b.ctx, b.draft("op", charge, map[string]any{"reference": "r"}, func(o *ledger.Operation) {
		o.RunID, o.ParentRunID, o.Step = "run-1", "run-0", "pay"
		o.DistinctFrom, o.Because, o.Replaces, o.After = []string{"x", "y"}, "two invoices", "old", []string{"z"}
	}))
	b.ok(err)
	got := b.get("op")
	was := r.Operation
	if got.Overlaps[0].OperationID != "earlier" || len(got.DistinctFrom) != 2 || got.Because != was.Because || got.Replaces != "old" || got.After[0] != "z" ||
		got.RunID != "run-1" || got.ParentRunID != "run-0" || got.Step != "pay" || got.Owner != was.Owner || got.Terms != was.Terms ||
		got.PolicyRow != was.PolicyRow || got.PolicyVersion != was.PolicyVersion || got.ActionVersion != was.ActionVersion || got.CreatedAt != was.CreatedAt ||
		string(got.Payload) != string(was.Payload) || got.HashRow() != got.RowHash || got.Version != 1 {
		t.Errorf("went %+v\ncame %+v", was, got)
	}
	if o := b.submit("none", charge, map[string]any{"amount": nil}); o.Terms.HasAmount || b.get("none").Terms.HasAmount {
		t.Error("no amount became one")
	}
	if o := b.submit("zero", charge, map[string]any{"amount": 0}); !b.get("zero").Terms.HasAmount || o.Terms.Amount != 0 {
		t.Error("an amount of zero became none")
	}
}

func TestPagesFollowOneAnother(t *testing.T) {
	b := newBench(t)
	for _, id := range strings.Split("abcdefg", "") {
		b.submit(id, charge, nil)
	}
	var got []string
	for f := (store.Filter{Limit: 3}); ; {
		page, err := b.s.Operations(b.ctx, tenant, f)
		b.ok(err)
		for _, o := range page.Items {
			got = append(got, o.OperationID)
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	if strings.Join(got, "") != "gfedcba" {
		t.Errorf("%v", got)
	}
	var back []string
	for f := (store.Filter{Limit: 3, OldestFirst: true}); ; {
		page, err := b.s.Operations(b.ctx, tenant, f)
		b.ok(err)
		for _, o := range page.Items {
			back = append(back, o.OperationID)
		}
		if f.Cursor = page.Next; f.Cursor == "" || len(back) > 20 {
			break
		}
	}
	if strings.Join(back, "") != "abcdefg" {
		t.Errorf("oldest first: %v", back)
	}
	if _, err := b.s.Operations(b.ctx, tenant, store.Filter{Cursor: "' or 1=1"}); err == nil {
		t.Error("took a cursor nobody gave out")
	}
}

func TestLogTimeNeverRunsBackwards(t *testing.T) {
	b := newBench(t)
	b.submit("a", charge, nil)
	b.clock.move(-time.Hour)
	b.submit("b", charge, nil)
	b.reopen()
	b.submit("c", charge, nil)
	last := int64(0)
	b.ok(b.s.EachEntry(b.ctx, 0, func(e ledger.Entry) error {
		if e.At < last {
			t.Errorf("entry %d goes back", e.Seq)
		}
		last = e.At
		return nil
	}))
}

func TestWatchersAreWoken(t *testing.T) {
	b := newBench(t)
	one, end := b.s.Watch(tenant, "op")
	defer end()
	other, endOther := b.s.Watch(tenant, "other")
	defer endOther()
	all, endAll := b.s.WatchAll()
	b.submit("op", charge, nil)
	select {
	case <-one:
	case <-time.After(5 * time.Second):
		t.Error("who waits for it was not woken")
	}
	select {
	case <-all:
	case <-time.After(5 * time.Second):
		t.Error("who waits for work was not woken")
	}
	select {
	case <-other:
		t.Error("who waits for another was woken")
	default:
	}
	endAll()
	_, _ = b.s.Submit(b.ctx, b.draft("op", charge, nil))
	select {
	case <-one:
		t.Error("woken by a repeat that changed nothing")
	default:
	}
}

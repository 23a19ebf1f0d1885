package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func openTest(t testing.TB) *Store {
	t.Helper()
	s, err := Open(context.Background(), Options{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// hold keeps the writer busy until release is called, so that what is queued
// meanwhile makes one batch.
func hold(t testing.TB, s *Store) (release func()) {
	t.Helper()
	busy, free := make(chan struct{}), make(chan struct{})
	go s.change(context.Background(), func(*tx) error {
		close(busy)
		<-free
		return nil
	})
	<-busy
	return sync.OnceFunc(func() { close(free) })
}

// queued waits until so many jobs wait for the writer.
func queued(t testing.TB, s *Store, n int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); len(s.writer.queue) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d are queued", len(s.writer.queue), n)
		}
	}
}

func put(key string) func(*tx) error {
	return func(t *tx) error { return t.exec(`insert into meta (key, value) values ($1, '')`, key) }
}

func has(t testing.TB, s *Store, key string) bool {
	t.Helper()
	var n int
	if err := s.readers.QueryRow(`select count(*) from meta where key = $1`, key).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n == 1
}

func TestManyCallersShareAFsync(t *testing.T) {
	s := openTest(t)
	const callers = 200
	release := hold(t, s)
	var mu sync.Mutex
	batches := map[*tx]bool{}
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			err := s.change(context.Background(), func(x *tx) error {
				mu.Lock()
				batches[x] = true
				mu.Unlock()
				return put(fmt.Sprint("key", i))(x)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	queued(t, s, callers)
	release()
	all.Wait()
	if len(batches) != 1 {
		t.Errorf("%d commits for %d callers that waited together", len(batches), callers)
	}
	for i := range callers {
		if !has(t, s, fmt.Sprint("key", i)) {
			t.Errorf("the change of caller %d is not there", i)
		}
	}
}

func TestAFailedChangeHurtsOnlyItsCaller(t *testing.T) {
	s := openTest(t)
	mine := errors.New("mine")
	for _, c := range []struct {
		claim string
		fail  func(*tx) error
		want  string
	}{
		{"an error", func(*tx) error { return mine }, "mine"},
		{"a panic", func(*tx) error { panic("oh") }, "panicked: oh"},
		{"a violated constraint", put("instance"), "UNIQUE"},
		{"a statement that is none", func(t *tx) error { return t.exec(`not sql`) }, "syntax"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			release := hold(t, s)
			errs := make([]error, 5)
			var all sync.WaitGroup
			for i := range errs {
				all.Go(func() {
					errs[i] = s.change(context.Background(), func(x *tx) error {
						if err := put(fmt.Sprint(c.claim, i))(x); err != nil || i != 2 {
							return err
						}
						return c.fail(x)
					})
				})
			}
			queued(t, s, len(errs))
			release()
			all.Wait()
			for i, err := range errs {
				if failed := i == 2; failed != (err != nil) || has(t, s, fmt.Sprint(c.claim, i)) == failed {
					t.Errorf("caller %d: %v", i, err)
				}
			}
			if errs[2] == nil || !strings.Contains(errs[2].Error(), c.want) {
				t.Errorf("%v, want %q", errs[2], c.want)
			}
		})
	}
}

func TestACallerThatLeftBeforeItsTurnIsSkipped(t *testing.T) {
	s := openTest(t)
	release := hold(t, s)
	ctx, leave := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.change(ctx, put("gone")) }()
	queued(t, s, 1)
	leave()
	release()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if has(t, s, "gone") {
		t.Error("the change was made for nobody")
	}
}

func TestACallerThatLeavesInItsTurnGetsItsChange(t *testing.T) {
	s := openTest(t)
	ctx, leave := context.WithCancel(context.Background())
	err := s.change(ctx, func(t *tx) error {
		leave()
		return put("done")(t)
	})
	if err != nil || !has(t, s, "done") {
		t.Errorf("%v, and there: %v", err, has(t, s, "done"))
	}
}

func TestACommitOfUnknownFateStopsTheWriter(t *testing.T) {
	s := openTest(t)
	// A foreign key that is checked at the commit fails there, and not as a full
	// disk or a lock would.
	err := s.change(context.Background(), func(t *tx) error {
		if _, err := t.w.conn.ExecContext(t.ctx, `pragma defer_foreign_keys = on`); err != nil {
			return err
		}
		return t.exec(`insert into runs (tenant_id, run_id, parent_run_id, max_attempts, deadline, used, stopped_at, created_at) values ('none', 'r', '', 0, 0, 0, 0, 0)`)
	})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "restart") {
		t.Errorf("the caller was told %v", err)
	}
	if err := s.change(context.Background(), put("later")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("the writer went on: %v", err)
	}
	if has(t, s, "later") {
		t.Error("a change was made after a commit of unknown fate")
	}
}

func TestClosingAnswersEverybody(t *testing.T) {
	s := openTest(t)
	release := hold(t, s)
	const callers = 50
	errs := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { errs[i] = s.change(context.Background(), put(fmt.Sprint("key", i))) })
	}
	queued(t, s, callers)
	closed := make(chan error)
	go func() { closed <- s.writer.close() }()
	release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	all.Wait()
	for i, err := range errs {
		if (err == nil) != has(t, s, fmt.Sprint("key", i)) || err != nil && !errors.Is(err, ErrUnavailable) {
			t.Errorf("caller %d was told %v, and its change is there: %v", i, err, has(t, s, fmt.Sprint("key", i)))
		}
	}
	if err := s.change(context.Background(), put("late")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("after the end: %v", err)
	}
}

func TestFullDiskHurtsNobodyForLong(t *testing.T) {
	s := openTest(t)
	pages := func(n int) {
		t.Helper()
		if err := s.change(context.Background(), func(x *tx) error {
			var got int
			return x.w.conn.QueryRowContext(x.ctx, fmt.Sprintf(`pragma max_page_count(%d)`, n)).Scan(&got)
		}); err != nil {
			t.Fatal(err)
		}
	}
	pages(1) // SQLite takes it as "no more than there are"
	big := strings.Repeat("x", 1<<20)
	release := hold(t, s)
	errs := make([]error, 5)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			errs[i] = s.change(context.Background(), func(x *tx) error {
				return x.exec(`insert into meta (key, value) values ($1, $2)`, fmt.Sprint("key", i), big)
			})
		})
	}
	queued(t, s, len(errs))
	release()
	all.Wait()
	for i, err := range errs {
		if !errors.Is(err, ErrUnavailable) || has(t, s, fmt.Sprint("key", i)) {
			t.Errorf("caller %d was told %v, and its change is there: %v", i, err, has(t, s, fmt.Sprint("key", i)))
		}
	}
	pages(1 << 30)
	if err := s.change(context.Background(), put("after")); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

func TestNumbersBindByNumber(t *testing.T) {
	s := openTest(t)
	err := s.change(context.Background(), func(x *tx) error {
		var first, second, again string
		err := x.row(`select $2, $1, $2`, "one", "two").Scan(&first, &second, &again)
		if first != "two" || second != "one" || again != "two" {
			t.Errorf("$2, $1, $2 gave %s, %s, %s", first, second, again)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSettingsThatMakeACommitDurable(t *testing.T) {
	s := openTest(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "trusted_schema": "0",
		"cell_size_check": "1", "recursive_triggers": "1", "busy_timeout": "5000", "temp_store": "2"} {
		var got string
		if err := s.writer.conn.QueryRowContext(context.Background(), `pragma `+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("the writer's %s is %q, want %q: %v", pragma, got, want, err)
		}
	}
	if _, err := s.readers.Exec(`insert into meta (key, value) values ('x', 'y')`); err == nil {
		t.Error("a reader can write")
	}
}

func TestTheLogOfWritesIsEmptiedBesideReaders(t *testing.T) {
	s := openTest(t)
	size := func() int64 {
		i, err := os.Stat(filepath.Join(s.folder, "holdfast.db-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return i.Size()
	}
	big := strings.Repeat("x", 1<<20)
	fill := func(from, n int) {
		t.Helper()
		for i := range n {
			if err := s.change(context.Background(), func(x *tx) error {
				return x.exec(`insert into meta (key, value) values ($1, $2)`, fmt.Sprint("key", from+i), big)
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Readers that overlap leave no moment without one.
	read := func() func() {
		r, err := s.readers.BeginTx(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if err := r.QueryRow(`select count(*) from meta`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return func() { r.Rollback() }
	}
	first := read()
	fill(0, 40)
	if size() < 40<<20 {
		t.Fatalf("a reader did not hold the log: %d bytes", size())
	}
	first()
	fill(100, 20)
	if size() > 2*maxWAL {
		t.Errorf("without readers the log still has %d bytes", size())
	}
}

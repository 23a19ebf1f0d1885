package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

// importerFolder makes the test binary a process that takes in a statement until
// it is killed.
const importerFolder = "HOLDFAST_TEST_IMPORTER"

const killedLines, killedOurs = 600, 6 // six portions are written, and six matched

// killedFile is the statement of the kill test: the same in every process.
func (b *bench) killedFile() store.StatementFile {
	b.clock.ms.Store(1_700_000_060_000)
	lines := make([]ledger.StatementLine, killedLines)
	for n := range lines {
		lines[n] = b.booked(int64(n+1), ref(fmt.Sprint("order ", n)))
	}
	for n := range killedOurs {
		lines[n*killedLines/killedOurs] = b.booked(4800, named(fmt.Sprint("pay_", n)))
	}
	return b.file("card", "killed.csv", lines...)
}

func importUntilKilled(folder string) {
	b := &bench{t: victim{}, ctx: context.Background(), folder: folder, clock: &clock{}, token: map[string]string{},
		rules: map[string]*ledger.Rulebook{tenant: newRules(victim{})}}
	f := b.killedFile()
	b.open()
	f.Progress = func(done, _ int) { fmt.Println("done", done) }
	fmt.Println("done", 0)
	b.take(f)
	time.Sleep(time.Minute) // only a kill ends it
}

// Whenever it is killed, a statement is there whole or not at all, and the same
// file again ends with exactly its lines.
func TestAKilledImportIsWholeOrNothing(t *testing.T) {
	before := newBenchIn(t, t.TempDir())
	for n := range killedOurs {
		before.bought(fmt.Sprint("op", n), fmt.Sprint("pay_", n))
	}
	before.ok(before.s.Close())
	half, unmatched := 0, 0
	points := []int{0, 100, 300, 600, 700, 1000}
	for _, after := range points {
		b := *before
		b.folder, b.second = filepath.Join(t.TempDir(), "copy"), nil
		b.ok(os.CopyFS(b.folder, os.DirFS(before.folder)))
		killImporter(t, b.folder, after)

		var stored, visible, open int
		b.ok(b.raw().QueryRow(`select (select count(*) from statement_lines), (select count(*) from statements where visible_at > 0),
			(select count(*) from statement_lines where weighed_at = 0)`).Scan(&stored, &visible, &open))
		if visible == 0 && stored > 0 {
			half++
		}
		if visible == 1 && open > 0 {
			unmatched++
		}
		f := b.killedFile()
		b.open()
		if n := len(b.lines()); n != visible*killedLines {
			t.Errorf("killed after %d: %d lines are seen of %d imports", after, n, visible)
		}
		if n := len(b.exceptions(ledger.NotOurs)); visible == 0 && n > 0 {
			t.Errorf("killed after %d: %d exceptions of an import that nobody sees", after, n)
		}
		b.check()
		if got := b.take(f); got.New != (1-visible)*killedLines || got.New+got.Already != killedLines {
			t.Errorf("killed after %d with %d imports: the same file again had %d new lines and %d that were there", after, visible, got.New, got.Already)
		}
		b.match()
		b.ok(b.raw().QueryRow(`select (select count(*) from statement_lines), (select count(*) from statements), (select count(*) from statement_lines where weighed_at = 0)`).
			Scan(&stored, &visible, &open))
		if stored != killedLines || visible != 1 || open != 0 {
			t.Errorf("killed after %d: in the end there are %d lines of %d imports, %d of them not looked at", after, stored, visible, open)
		}
		for n, l := range b.lines() {
			if l.Number != n+1 || (l.State == ledger.LineMatched) != (n%(killedLines/killedOurs) == 0) {
				t.Fatalf("killed after %d: line %d in place %d is %s", after, l.Number, n+1, l.State)
			}
		}
		b.check()
		b.ok(b.s.Close())
	}
	t.Logf("%d kills: %d left half an import, %d an import of which not all was matched", len(points), half, unmatched)
	if half < 2 || unmatched < 1 {
		t.Errorf("%d kills left half an import and %d one of which not all was matched: nothing was tested", half, unmatched)
	}
}

// killImporter runs an importer and kills it once it said how far it is.
func killImporter(t *testing.T, folder string, after int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	p := exec.CommandContext(ctx, self)
	p.Env = append(os.Environ(), importerFolder+"="+folder)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == fmt.Sprint("done ", after) {
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.Wait(); err == nil || strings.Contains(err.Error(), "exit status") {
		t.Fatalf("the importer was not killed after %d: %v", after, err)
	}
}

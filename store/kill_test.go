package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/invariant"
	"holdfast/store/ledger"
)

// writerFolder makes the test binary a process that submits and sends until it is
// killed.
const writerFolder = "HOLDFAST_TEST_WRITER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(writerFolder); folder != "" {
		write(folder)
	}
	if folder := os.Getenv(importerFolder); folder != "" {
		importUntilKilled(folder)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// victim is the testing.TB of the writer process: it may only fail.
type victim struct{ testing.TB }

func (victim) Helper()        {}
func (victim) Cleanup(func()) {}
func (victim) Fatal(a ...any) {
	fmt.Fprintln(os.Stderr, a...)
	os.Exit(3)
}
func (v victim) Fatalf(f string, a ...any) { v.Fatal(fmt.Sprintf(f, a...)) }

// write says on its output what was acknowledged, and only that.
func write(folder string) {
	b := &bench{t: victim{}, ctx: context.Background(), folder: folder, clock: &clock{}, token: map[string]string{},
		rules: map[string]*ledger.Rulebook{tenant: newRules(victim{})}}
	b.clock.ms.Store(time.Now().UnixMilli())
	b.open()
	_, err := b.s.Recover(b.ctx)
	b.ok(err)
	b.token[tenant] = b.addToken(tenant)
	say := make(chan string, 100)
	for w := range 4 {
		go func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("op-%d-%d-%d", os.Getpid(), w, i)
				b.submit(id, wire, nil)
				say <- "submitted " + id
				claims, err := b.s.Claim(b.ctx, "w", tenant, "bank", 1, 1)
				b.ok(err)
				for _, c := range claims {
					m, err := b.tryMark(c)
					b.ok(err)
					say <- "marked " + m.Operation.OperationID
					b.settle(m, found(m.Operation, "pay-"+m.Operation.OperationID))
					say <- "confirmed " + m.Operation.OperationID
				}
			}
		}()
	}
	go func() { // so that some of them die between a head and the next
		for {
			n, err := b.s.Seal(b.ctx)
			b.ok(err)
			if n > 0 {
				say <- "sealed " + fmt.Sprint(b.head().Size)
			}
		}
	}()
	for line := range say {
		fmt.Println(line)
	}
}

func TestKillNineLosesNothingThatWasAcknowledged(t *testing.T) {
	folder := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for round := range 30 {
		p := exec.Command(self)
		p.Env = append(os.Environ(), writerFolder+"="+folder)
		p.Stderr = os.Stderr
		out, err := p.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			said = append(said, lines.Text())
			if n == 5+7*round { // somewhere in the middle of the next commits
				if err := p.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := p.Wait(); err == nil || strings.Contains(err.Error(), "exit status") {
			t.Fatalf("round %d: the writer was not killed: %v", round, err)
		}
	}
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	marked, heads := 0, 0
	for _, line := range said {
		what, id, _ := strings.Cut(line, " ")
		if what == "sealed" {
			heads++
			continue
		}
		o, err := s.Operation(ctx, tenant, id)
		if err != nil {
			t.Fatalf("%s, and: %v", line, err)
		}
		switch {
		case what == "confirmed" && o.Status != ledger.Confirmed, what == "marked" && (o.Attempts != 1 || o.Status == ledger.Ready):
			t.Errorf("%s, and it is %s with %d attempts", line, o.Status, o.Attempts)
		case what == "marked":
			marked++
		}
	}
	if marked == 0 || len(said) < 30*6 {
		t.Errorf("%d acknowledgements, %d marks: nothing was tested", len(said), marked)
	}
	found, err := invariant.Check(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
	log, err := s.CheckLog(ctx, nil, nil)
	if err != nil || heads == 0 || log.Heads < heads {
		t.Errorf("%d heads were signed, %d are there, %v", heads, log.Heads, err)
	}
	t.Logf("%d acknowledgements in 30 lives, %d marks, %d heads", len(said), marked, log.Heads)
}

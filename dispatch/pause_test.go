package dispatch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/dispatch"
	"holdfast/reconcile"
	"holdfast/store"
	"holdfast/store/ledger"
)

func init() { dispatch.AddTestProcess("worker", workUntilKilled) }

// pausedRail has a lease of 2.4 s: twice its time-out, and two seconds.
const pausedRail = `
rails:
  bank:
    adapter: sandbox
    base_url: http://%s
    dedupe: { by: none }
    timeout: 200ms
    quiet: 2h
timing: { lease: 1s, unknown_for: 1h }
jobs: { sweep: "@every 1s" }
action_types:`

const pausedLease = 2400 * time.Millisecond

// A worker is stopped by the operating system, in a process of its own, for
// longer than its lease, and goes on.
func TestAWorkerThatWasPausedPastItsLease(t *testing.T) {
	for _, c := range []struct {
		claim    string
		boundary string
		outcome  ledger.AttemptOutcome
		status   ledger.Status
		effects  int
	}{
		{"before its send sends nothing", "mark.after_commit", ledger.AttemptNotSent, ledger.Unknown, 0},
		{"after its answer has its receipt kept", "response.after_read", ledger.AttemptReceipt, ledger.Confirmed, 1},
	} {
		t.Run(c.claim, func(t *testing.T) {
			provider, folder := serveBook(t, false), t.TempDir()
			config := fmt.Sprintf(pausedRail, provider) + action("pay", "bank") + allowAll
			if err := os.WriteFile(filepath.Join(folder, "holdfast.yaml"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			g := openGateway(t, folder, config, nil)
			g.submit("op", "pay")
			g.close()

			w := startWorker(t, folder, c.boundary)
			w.awaitPause()
			time.Sleep(pausedLease + 300*time.Millisecond) // the operating system's time, which nobody simulates
			if n := len(effectsOf(t, provider)); n != c.effects {
				t.Fatalf("it happened %d times before the pause", n)
			}
			w.signal(syscall.SIGCONT)
			w.awaitEnd("op") // of its delivery
			w.kill()

			var ahead atomic.Int64
			g = openGateway(t, folder, config, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
			defer g.close()
			if _, err := g.store.Recover(context.Background()); err != nil {
				t.Fatal(err)
			}
			o, attempts := g.get("op"), g.attempts("op")
			if o.Status != c.status || len(attempts) != 1 || attempts[0].Outcome != c.outcome {
				t.Fatalf("it is %s (%s) after %+v", o.Status, o.Detail, attempts)
			}
			if n := len(effectsOf(t, provider)); n != c.effects {
				t.Errorf("it happened %d times", n)
			}
			if c.status == ledger.Unknown {
				saidOnlyWhenQuiet(t, g, &ahead)
			}
		})
	}
}

// saidOnlyWhenQuiet lets a person say that it did not happen: while something
// may still act it is refused, however true it is.
func saidOnlyWhenQuiet(t *testing.T, g *gateway, ahead *atomic.Int64) {
	t.Helper()
	ann, err := g.store.AddPerson(context.Background(), ledger.PersonRecord{TenantID: dispatch.DefaultTenant, Email: "ann@acme.example", Name: "Ann", Roles: []string{"finance"}},
		"", ledger.Holder{Kind: ledger.Person, Name: "root"})
	if err != nil {
		t.Fatal(err)
	}
	say := func() error {
		o := g.get("op")
		_, err := g.store.DidNotHappen(context.Background(), dispatch.DefaultTenant, "op", store.Decision{Person: ann,
			Seen: store.Seen{Fingerprint: o.Fingerprint, Version: o.Version}, Reason: "the bank says so"})
		return err
	}
	for _, pass := range []time.Duration{0, 61 * time.Minute} {
		ahead.Add(int64(pass))
		g.do("lookup")
		if err := say(); !errors.Is(err, ledger.ErrNotAllowed) {
			t.Errorf("%s later, %s: %v, want it refused until quiet", pass, g.get("op").Status, err)
		}
	}
	ahead.Add(int64(time.Hour))
	if err := say(); err != nil {
		t.Error(err)
	}
	if o := g.get("op"); o.Status != ledger.Rejected || o.Reason != ledger.NotExecuted {
		t.Errorf("%s %s", o.Status, o.Reason)
	}
}

// worker is the process that is paused.
type worker struct {
	t      *testing.T
	folder string
	cmd    *exec.Cmd
	paused chan struct{}
	dead   chan struct{}
}

func startWorker(t *testing.T, folder, boundary string) *worker {
	t.Helper()
	w := &worker{t: t, folder: folder, cmd: exec.Command(os.Args[0]), paused: make(chan struct{}), dead: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), dispatch.TestProcess+"=worker", "WORK_IN="+folder, "PAUSE_AT="+boundary)
	lines, err := w.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.dead)
		for in := bufio.NewScanner(lines); in.Scan(); {
			if in.Text() == "pausing" {
				close(w.paused)
			} else {
				t.Log(in.Text())
			}
		}
		w.cmd.Wait()
	}()
	t.Cleanup(w.kill)
	return w
}

func (w *worker) signal(s syscall.Signal) {
	w.t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// kill ends it, paused or not.
func (w *worker) kill() {
	w.cmd.Process.Kill()
	<-w.dead
}

func (w *worker) awaitPause() {
	w.t.Helper()
	select {
	case <-w.paused:
	case <-w.dead:
		w.t.Fatal("the worker died")
	case <-time.After(60 * time.Second):
		w.t.Fatal("the boundary was not reached")
	}
}

// awaitEnd reads over the worker's shoulder until the attempt has an outcome.
func (w *worker) awaitEnd(id string) {
	w.t.Helper()
	s, err := store.OpenForReading(context.Background(), store.Options{Folder: w.folder})
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		a, err := s.Attempts(context.Background(), dispatch.DefaultTenant, id)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(a) > 0 && a[0].Outcome != ledger.AttemptOpen {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("the delivery did not end: %+v", a)
		}
	}
}

// workUntilKilled is that process: it delivers, and stops itself once at one
// boundary. Whoever started it lets it go on.
func workUntilKilled() int {
	var once atomic.Bool
	dispatch.SetReach(func(boundary string) {
		if boundary == os.Getenv("PAUSE_AT") && !once.Swap(true) {
			fmt.Fprintln(os.Stderr, "pausing")
			syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			time.Sleep(100 * time.Millisecond) // a signal takes its moment; not a step further until it struck
		}
	})
	ctx, folder := context.Background(), os.Getenv("WORK_IN")
	c, err := dispatch.ReadConfig(filepath.Join(folder, "holdfast.yaml"), os.LookupEnv, time.Now, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := store.Open(ctx, store.Options{Folder: folder})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := s.SetRulebooks(ctx, c.Rulebooks()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	rules := func() *dispatch.Config { return c }
	jobs := &reconcile.Scheduler{Store: s, Config: rules, Node: "test", Log: slog.New(slog.DiscardHandler)}
	go jobs.Start(ctx)
	(&dispatch.Dispatcher{Store: s, Config: rules, Worker: "w1", Log: slog.New(slog.DiscardHandler)}).Run(ctx)
	return 0
}

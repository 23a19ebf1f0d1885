package dispatch

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serveSandbox is what the command line makes of `sandbox`.
func serveSandbox() int {
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	o := SandboxOptions{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags.StringVar(&o.Listen, "listen", "", "")
	flags.StringVar(&o.Book, "data", "", "")
	flags.BoolVar(&o.Dedupe, "dedupe", true, "")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return 2
	}
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer end()
	WatchStdin(os.Stdin, end)
	if err := RunSandbox(ctx, o, func(addr string) { fmt.Fprintln(os.Stderr, "listening on http://"+addr) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// holdSandbox starts a sandbox, says where it is, and waits to be killed.
func holdSandbox() int {
	os.Setenv(testProcess, "sandbox")
	addr, _, err := StartSandboxChild(context.Background(), os.Args[0], os.Args[1:], nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(addr)
	select {}
}

// staySilent never gets ready, and ends only when it is killed.
func staySilent() int {
	fmt.Fprintln(os.Stderr, "thinking")
	select {}
}

// showEnviron says which of our settings reached it, and dies.
func showEnviron() int {
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "HOLDFAST_") {
			fmt.Fprintln(os.Stderr, v)
		}
	}
	return 1
}

// startSandbox starts a sandbox by hand, as a process of its own whose
// standard input is /dev/null.
func startSandbox(t *testing.T, args ...string) (sandboxClient, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"sandbox", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), testProcess+"=sandbox")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), childReadyPrefix); ok {
			go io.Copy(io.Discard, stderr)
			return sandboxClientOf(t, "http://"+addr), cmd
		}
	}
	t.Fatal("the sandbox ended before it was ready")
	return sandboxClient{}, nil
}

func TestAChildServesUntilItIsStopped(t *testing.T) {
	t.Setenv(testProcess, "sandbox")
	book := t.TempDir() + "/book"
	addr, stop, err := StartSandboxChild(t.Context(), os.Args[0], []string{"--data", book}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if r := sandboxClientOf(t, "http://"+addr).pay("k", "r"); r.status != 201 {
		t.Error(r)
	}
	stop()
	stop() // a second time does nothing
	s, err := NewSandbox(SandboxOptions{Book: book})
	if err != nil {
		t.Fatal("the book of a stopped child is free:", err)
	}
	defer s.Close()
	if n := len(s.book.effectsSoFar()); n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestAChildInheritsNoneOfOurSettings(t *testing.T) {
	t.Setenv(testProcess, "environ")
	t.Setenv("HOLDFAST_CARD_TOKEN", "secret")
	t.Setenv("HOLDFAST_DATA", "/elsewhere")
	_, _, err := StartSandboxChild(t.Context(), os.Args[0], nil, nil)
	if err == nil || !strings.HasSuffix(err.Error(), "it said: HOLDFAST_CHILD=1") {
		t.Error(err)
	}
}

func TestAChildOutlivesTheContextOfItsStart(t *testing.T) {
	t.Setenv(testProcess, "sandbox")
	ctx, cancel := context.WithCancel(t.Context())
	addr, stop, err := StartSandboxChild(ctx, os.Args[0], nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	cancel()
	if r := sandboxClientOf(t, "http://"+addr).pay("k", "r"); r.status != 201 {
		t.Error(r)
	}
}

func TestKillingTheParentEndsTheChild(t *testing.T) {
	book := t.TempDir() + "/book"
	parent := exec.Command(os.Args[0], "--data", book)
	parent.Env = append(os.Environ(), testProcess+"=parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { parent.Process.Kill(); parent.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimSpace(line)
	p := sandboxClientOf(t, "http://"+addr)
	p.arm(`[{"match":{"key":"slow"},"fault":"slow_ms:600000"}]`)
	go p.pay("slow", "slow")
	eventually(t, "the slow request", func() bool { return p.book().Requests == 1 })

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Whoever is started at once in the parent's place gets the book, and finds
	// in it what the child had taken on.
	s, err := NewSandbox(SandboxOptions{Book: book})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n := len(s.book.effectsSoFar()); n != 1 {
		t.Errorf("%d effects: the child ended without doing what it had accepted", n)
	}
	eventually(t, "the child's port is closed", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

func TestASandboxStartedByHandDoesNotNeedItsInput(t *testing.T) {
	p, cmd := startSandbox(t)
	for range 20 {
		if r := p.pay("", "r"); r.status != 201 {
			t.Fatal(r)
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error("SIGTERM is a clean end:", err)
	}
}

func TestAChildThatDoesNotGetReadyIsExplained(t *testing.T) {
	t.Setenv(testProcess, "sandbox")
	book := t.TempDir() + "/book"
	if err := os.WriteFile(book, []byte("shopping list\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("changed my mind"))
	for _, c := range []struct {
		name, process, exe string
		ctx                context.Context
		patience           time.Duration
		says               string
	}{
		{"it dies", "sandbox", os.Args[0], t.Context(), time.Minute, "this is not a sandbox book"},
		{"it says nothing", "silent", os.Args[0], t.Context(), 10 * time.Millisecond, "did not say"},
		{"nobody wants it any more", "silent", os.Args[0], ended, time.Minute, "changed my mind"},
		{"there is no such program", "sandbox", book + ".exe", t.Context(), time.Minute, "cannot start"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(testProcess, c.process)
			addr, stop, err := startSandboxChild(c.ctx, c.exe, []string{"--data", book}, nil, c.patience)
			if err == nil || !strings.Contains(err.Error(), c.says) || addr != "" || stop != nil {
				t.Errorf("%q, %v", addr, err)
			}
		})
	}
}

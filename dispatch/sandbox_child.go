package dispatch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// childMark in the environment says that another holdfast started this
// process and holds its standard input. Without it the end of the input means
// nothing: started by hand, it may well be /dev/null.
const childMark = "HOLDFAST_CHILD"

const (
	childStartPatience = 10 * time.Second
	childStopPatience  = 10 * time.Second // longer than a sandbox drains
	childReadyPrefix   = "listening on http://"
)

// StartSandboxChild starts `exe sandbox` with args as a process of its own, on
// a free port of loopback, and waits until it is ready. ctx bounds the start
// only. The child lives until stop is called or this process is gone, however
// it ended: the kernel then closes the pipe on the child's standard input.
func StartSandboxChild(ctx context.Context, exe string, args []string, log *slog.Logger) (addr string, stop func(), err error) {
	return startSandboxChild(ctx, exe, args, log, childStartPatience)
}

func startSandboxChild(ctx context.Context, exe string, args []string, log *slog.Logger, patience time.Duration) (addr string, stop func(), err error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	cmd := exec.Command(exe, append([]string{"sandbox", "--listen", "127.0.0.1:0"}, args...)...)
	// Our own settings are not meant for it, and our secrets least of all.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "HOLDFAST_") })
	cmd.Env = append(cmd.Env, childMark+"=1")
	// Ctrl-C goes to the whole group; the provider has to outlive our drain.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, fmt.Errorf("sandbox provider: %w", err)
	}
	lines, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, fmt.Errorf("sandbox provider: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("sandbox provider: cannot start %s: %w", exe, err)
	}

	c := &sandboxChild{ready: make(chan string, 1), ended: make(chan struct{})}
	go c.watch(cmd, lines, log)
	stop = sync.OnceFunc(func() {
		hold.Close()
		select {
		case <-c.ended:
		case <-time.After(childStopPatience):
			log.Warn("sandbox provider: did not end by itself, killed", "pid", cmd.Process.Pid)
			cmd.Process.Kill()
			<-c.ended
		}
	})
	select {
	case addr := <-c.ready:
		return addr, stop, nil
	case <-c.ended:
		err = fmt.Errorf("sandbox provider: ended before it was ready (%s): %s", c.state, c.lastWords())
	case <-time.After(patience):
		err = fmt.Errorf("sandbox provider: %s did not say %q within %s", exe, childReadyPrefix+"ADDR", patience)
	case <-ctx.Done():
		err = fmt.Errorf("sandbox provider: not ready yet: %w", context.Cause(ctx))
	}
	if cmd.Process.Kill() == nil {
		<-c.ended
	}
	hold.Close()
	return "", nil, err
}

// sandboxChild is what the parent hears from its child.
type sandboxChild struct {
	ready chan string   // its address, once
	ended chan struct{} // closed when the process is gone; the rest may be read then
	state string
	last  []string
}

// watch reads the child's standard error to its end, so that it never blocks
// on a full pipe, and passes everything on to the log.
func (c *sandboxChild) watch(cmd *exec.Cmd, lines io.Reader, log *slog.Logger) {
	defer close(c.ended)
	r := bufio.NewReader(lines)
	for {
		line, err := r.ReadString('\n')
		if line = strings.TrimSpace(line); line != "" {
			if addr, ok := strings.CutPrefix(line, childReadyPrefix); ok {
				select {
				case c.ready <- addr:
				default: // it said so before
				}
			}
			log.Info("sandbox provider", "line", line)
			c.last = append(c.last, line)
			c.last = c.last[max(0, len(c.last)-5):]
		}
		if err != nil {
			break
		}
	}
	err := cmd.Wait()
	c.state = cmd.ProcessState.String()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		log.Warn("sandbox provider: lost", "error", err)
	}
	log.Info("sandbox provider ended", "state", c.state)
}

func (c *sandboxChild) lastWords() string {
	if len(c.last) == 0 {
		return "it said nothing"
	}
	return "it said: " + strings.Join(c.last, " / ")
}

// WatchStdin is the child's side: it calls end once r has ended, which it does
// when the parent stops or dies. In a process that was not started by another
// holdfast it does nothing. It returns at once.
func WatchStdin(r io.Reader, end context.CancelFunc) {
	if os.Getenv(childMark) != "1" {
		return
	}
	// Nobody reads our standard error once the parent is dead. A log line must
	// not kill us in the middle of an effect.
	signal.Ignore(syscall.SIGPIPE)
	go func() {
		_, _ = io.Copy(io.Discard, r) // an error is an end as well
		end()
	}()
}

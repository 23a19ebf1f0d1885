package web

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// callersTerminal is a caller's terminal that tells when something appeared on it.
type callersTerminal struct {
	strings.Builder
	first chan struct{}
}

func (c *callersTerminal) Write(p []byte) (int, error) {
	if c.Len() == 0 && len(p) > 0 {
		close(c.first)
	}
	return c.Builder.Write(p)
}

// A command that runs inside the server says how far it is while it runs, and
// not when all is over.
func TestACommandIsHeardWhileItRuns(t *testing.T) {
	folder := t.TempDir()
	terminal := &callersTerminal{first: make(chan struct{})}
	work := func(_ context.Context, call Call, notes io.Writer) Reply {
		fmt.Fprintln(notes, "50 % of", call.Args[0])
		select {
		case <-terminal.first:
		case <-time.After(10 * time.Second):
			t.Error("nothing was heard of the command while it ran")
		}
		fmt.Fprintln(notes, "note: it overlaps")
		return Reply{Code: 1, Stdout: []byte("600 lines\n")}
	}
	control, err := listenControl(folder, work, slog.New(slog.DiscardHandler))
	must(t, err)
	defer control.Close()
	reply, err := Forward(t.Context(), folder, Call{Args: []string{"statement"}}, terminal)
	must(t, err)
	if reply.Code != 1 || string(reply.Stdout) != "600 lines\n" || terminal.String() != "50 % of statement\nnote: it overlaps\n" {
		t.Errorf("%+v, and %q on the terminal", reply, terminal.String())
	}
}

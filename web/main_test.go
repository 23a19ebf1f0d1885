package web

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"holdfast/dispatch"
)

// TestMain lets the test binary be the sandbox provider that the server under
// test starts as a process of its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "sandbox" {
		os.Exit(runSandbox(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func runSandbox(args []string) int {
	var o dispatch.SandboxOptions
	f := flag.NewFlagSet("sandbox", flag.ExitOnError)
	f.StringVar(&o.Listen, "listen", "", "")
	f.StringVar(&o.Book, "data", "", "")
	f.BoolVar(&o.Dedupe, "dedupe", true, "")
	f.Parse(args)
	ctx, end := context.WithCancel(context.Background())
	defer end()
	dispatch.WatchStdin(os.Stdin, end)
	if err := dispatch.RunSandbox(ctx, o, func(addr string) { fmt.Fprintf(os.Stderr, "listening on http://%s\n", addr) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

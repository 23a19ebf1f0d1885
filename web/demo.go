package web

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"holdfast/dispatch"
)

// The demo is the whole system on one machine: this server, two sandbox
// providers in processes of their own, three people, and agents that keep
// working and run into accidents.

// DemoOptions say where the demo listens and what it is run by.
type DemoOptions struct {
	Listen  string
	Folder  string // empty: a fresh temporary one, removed at the end
	Exe     string // this binary, for the sandbox providers
	Out     io.Writer
	Version string
	Command func(*Instance) Answerer

	pace time.Duration // between two things the agents do; zero: a person's
	note string        // where trigger finds the demo; empty: the usual place
}

// demoPace lets a visitor follow what the agents do.
const demoPace = 4 * time.Second

//go:embed demo/holdfast.yaml
var demoFiles embed.FS

// Demo runs until the context ends.
func Demo(ctx context.Context, o DemoOptions) (err error) {
	// A closed terminal ends a demo: nobody looks at it any more.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	if o.pace == 0 {
		o.pace = demoPace
	}
	if o.note == "" {
		o.note = demoNotePath()
	}
	folder, fresh, err := demoFolder(o.Folder)
	if err != nil {
		return err
	}
	if fresh {
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	}
	logFile, err := os.OpenFile(filepath.Join(folder, "holdfast.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	inst, err := OpenInstance(ctx, InstanceOptions{Folder: folder, Exe: o.Exe, Log: slog.New(slog.NewJSONHandler(logFile, nil))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inst.Close()) }()
	cast, err := seedCast(ctx, inst)
	if err != nil {
		return err
	}
	return o.serve(ctx, inst, cast, folder, fresh)
}

// serve answers, and once it does lets the agents begin.
func (o DemoOptions) serve(ctx context.Context, inst *Instance, cast cast, folder string, fresh bool) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var agents sync.WaitGroup
	ready := func(addr string) {
		n := demoNote{PID: os.Getpid(), Dashboard: "http://" + visitable(addr), SignIn: cast.signIn("http://" + visitable(addr)), Token: cast.tokens[developer],
			Sandboxes: map[string]string{"card": inst.SandboxAddress(dispatch.DefaultTenant, "card"), "wire": inst.SandboxAddress(dispatch.DefaultTenant, "wire")}}
		if err := n.write(o.note); err != nil {
			stop(fmt.Errorf("trigger could not find this demo: %w", err))
			return
		}
		o.greet(n, folder, fresh)
		agents.Go(func() { newTraffic(n, cast, o.pace, inst.Log).run(ctx) })
	}
	serve := ServeOptions{Listen: o.Listen, Test: true, SignInLinks: cast.links, Ready: ready}
	if o.Command != nil {
		serve.Command = o.Command(inst)
	}
	err := inst.Serve(ctx, serve)
	broken := context.Cause(ctx)
	stop(nil)
	agents.Wait()
	removeDemoNote(o.note)
	if broken != nil && !errors.Is(broken, context.Canceled) {
		err = errors.Join(broken, err)
	}
	return err
}

// greet prints what a visitor needs, and nothing else: the log is in the folder.
func (o DemoOptions) greet(n demoNote, folder string, fresh bool) {
	where := "data in " + folder
	if fresh {
		where = "throw-away data in " + folder
	}
	fmt.Fprintf(o.Out, "holdfast %s · DEMO · %s · no real money moves\n", o.Version, where)
	label, how := "Dashboard", "one click signs you in"
	for _, p := range demoPeople {
		fmt.Fprintf(o.Out, "  %-9s  %s    %-22s (%s: %s)\n", label, n.SignIn[p.email], how, p.role, p.name)
		label, how = "", "or"
	}
	fmt.Fprintf(o.Out, "  API        %s/v1      docs /docs · spec /openapi.json · for agents /llms.txt\n", n.Dashboard)
	fmt.Fprintf(o.Out, "  Token      %s    (export HOLDFAST_TOKEN=…)\n", n.Token)
	fmt.Fprintf(o.Out, "  Try        holdfast trigger lost-answer\n")
}

// visitable is an address that a browser on this machine can open.
func visitable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}

// demoFolder makes the folder and puts the demo's configuration there. A folder
// that holds somebody's ledger is refused: the demo lets everybody on this
// machine sign in with one click.
func demoFolder(given string) (folder string, fresh bool, err error) {
	if given == "" {
		folder, err = os.MkdirTemp("", "holdfast-demo-")
		if err == nil {
			if err = writeDemoFiles(folder); err != nil {
				os.RemoveAll(folder)
			}
		}
		return folder, true, err
	}
	if folder, err = filepath.Abs(given); err != nil {
		return "", false, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", false, err
	}
	left, err := os.ReadDir(folder)
	if err != nil {
		return "", false, err
	}
	if len(left) == 0 {
		return folder, false, writeDemoFiles(folder)
	}
	if !isDemoFolder(folder) {
		return "", false, fmt.Errorf("%s is not empty and no earlier demo's; give --data an empty folder, or leave it out", folder)
	}
	return folder, false, nil
}

// isDemoFolder knows a demo's folder by the first line of its configuration.
func isDemoFolder(folder string) bool {
	ours, err := demoFiles.ReadFile("demo/holdfast.yaml")
	if err != nil {
		return false
	}
	there, err := os.ReadFile(filepath.Join(folder, "holdfast.yaml"))
	first, _, _ := bytes.Cut(ours, []byte("\n"))
	return err == nil && bytes.HasPrefix(there, first)
}

func writeDemoFiles(folder string) error {
	defaults := dispatch.Defaults()
	schemas, err := fs.Glob(defaults, "*.schema.json")
	if err != nil {
		return err
	}
	for _, name := range schemas {
		if err := copyFile(folder, name, defaults, name); err != nil {
			return err
		}
	}
	// Last, for it marks the folder as a whole demo's.
	return copyFile(folder, "holdfast.yaml", demoFiles, "demo/holdfast.yaml")
}

func copyFile(folder, name string, from fs.FS, path string) error {
	text, err := fs.ReadFile(from, path)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name), text, 0o600)
}

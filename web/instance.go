package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast/dispatch"
	"holdfast/reconcile"
	"holdfast/store"
)

// Instance is one holdfast: its ledger, the configuration in force, and
// whoever works on them.
type Instance struct {
	Store     *store.Store
	Scheduler *reconcile.Scheduler
	Log       *slog.Logger

	options   InstanceOptions
	listens   atomic.Pointer[string] // where it answers, while it serves
	config    atomic.Pointer[dispatch.Config]
	sandboxes *dispatch.Sandboxes
}

// InstanceOptions say where an instance keeps its data and what it is run by.
type InstanceOptions struct {
	Folder string
	Config string // file; empty: holdfast.yaml in the folder if it is there, else the defaults
	Exe    string // this binary, for the sandbox providers it starts; empty: none are started
	Log    *slog.Logger
}

// OpenInstance opens the ledger and puts the configuration in force. Nothing
// runs yet.
func OpenInstance(ctx context.Context, o InstanceOptions) (*Instance, error) {
	if o.Config == "" {
		if beside := filepath.Join(o.Folder, "holdfast.yaml"); exists(beside) {
			o.Config = beside
		}
	}
	// A mistake in the file is found before anything is opened or made.
	if errs := dispatch.CheckConfig(o.Config, os.LookupEnv, time.Now); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	st, err := store.Open(ctx, store.Options{Folder: o.Folder, Log: o.Log})
	if err != nil {
		return nil, err
	}
	i := &Instance{Store: st, Log: o.Log, options: o}
	i.Scheduler = &reconcile.Scheduler{Store: st, Config: i.Config, Node: nodeName(), Log: o.Log, Words: wording}
	if o.Exe != "" {
		i.sandboxes = &dispatch.Sandboxes{Exe: o.Exe, Folder: o.Folder, Log: o.Log}
	}
	if err := i.Reload(ctx); err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// Config is the configuration in force.
func (i *Instance) Config() *dispatch.Config { return i.config.Load() }

// Reload reads the configuration again. A bad file is refused with its errors
// and the old one stays.
func (i *Instance) Reload(ctx context.Context) error {
	var start dispatch.SandboxAddress
	if i.sandboxes != nil {
		start = i.sandboxes.Address
	}
	c, err := dispatch.ReadConfig(i.options.Config, os.LookupEnv, time.Now, start)
	if err != nil {
		return err
	}
	if was := i.Config(); was != nil && asksAnything(was) && !asksAnything(c) {
		return fmt.Errorf("%s names no action type any more; a file cut short would stop every agent", c.Source)
	}
	if err := i.Store.SetRulebooks(ctx, c.Rulebooks()); err != nil {
		return err
	}
	i.config.Store(c)
	return nil
}

// asksAnything reports whether agents may ask for anything at all.
func asksAnything(c *dispatch.Config) bool {
	for _, t := range c.Tenants {
		if len(t.Routes) > 0 {
			return true
		}
	}
	return false
}

// Close ends the providers that were started and lets the ledger go.
func (i *Instance) Close() error {
	if i.sandboxes != nil {
		i.sandboxes.Stop()
	}
	return i.Store.Close()
}

// SandboxAddress is where the sandbox provider of a rail listens, if this
// instance started one.
func (i *Instance) SandboxAddress(tenant, rail string) string {
	if i.sandboxes == nil {
		return ""
	}
	return i.sandboxes.Running(tenant, rail)
}

// ServeOptions say how an instance answers.
type ServeOptions struct {
	Listen      string
	Test        bool
	SignInLinks map[string]string
	Ready       func(addr string) // called once everything answers
	Command     Answerer
}

// Serve runs the whole of it: workers, jobs, API, pages and the socket for
// commands. When the context ends no new claim is made, sends under way finish,
// and requests under way are answered.
func (i *Instance) Serve(ctx context.Context, o ServeOptions) error {
	metricsToken := os.Getenv(MetricsTokenName)
	if err := checkMetricsToken(metricsToken); err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return listenError(o.Listen, err)
	}
	defer l.Close()
	control, err := listenControl(i.options.Folder, o.Command, i.Log)
	if err != nil {
		return err
	}
	defer control.Close()
	swept, err := i.Store.Recover(ctx)
	if err != nil {
		return err
	}
	if swept.LookedAt > 0 {
		i.Log.Warn("sends were under way when the last process ended; their outcome is unknown and is looked up", "operations", swept.LookedAt)
	}

	work, endWork := context.WithCancel(ctx)
	defer endWork()
	var working sync.WaitGroup
	d := &dispatch.Dispatcher{Store: i.Store, Config: i.Config, Worker: nodeName(), Log: i.Log}
	working.Go(func() { d.Run(work) })
	schedule := make(chan error, 1)
	working.Go(func() { schedule <- i.Scheduler.Start(work) })
	working.Go(func() { i.reloadOnHangup(work) })

	s := &Server{Store: i.Store, Config: i.Config, Scheduler: i.Scheduler, Log: i.Log, Test: o.Test, Folder: i.options.Folder, SignInLinks: o.SignInLinks, MetricsToken: metricsToken}
	addr := l.Addr().String()
	i.listens.Store(&addr)
	if o.Ready != nil {
		o.Ready(addr)
	}
	err = s.Serve(work, l)
	endWork()
	working.Wait()
	return errors.Join(err, <-schedule)
}

// address is where the server answers, or would by default.
func (i *Instance) address() string {
	if addr := i.listens.Load(); addr != nil {
		return visitable(*addr)
	}
	return "127.0.0.1:8420"
}

func (i *Instance) reloadOnHangup(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	notifyHangup(hangup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			if err := i.Reload(ctx); err != nil {
				i.Log.Error("the new configuration is refused, the old one stays in force", "error", err)
				continue
			}
			i.Log.Info("configuration reloaded", "hash", i.Config().Hash)
		}
	}
}

// listenError says what to do about an address that cannot be listened on.
func listenError(addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use; stop what listens there or choose another address with --listen", addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s may not be listened on by this user; choose a port above 1023 with --listen", addr)
	}
	return fmt.Errorf("cannot listen on %s (--listen takes HOST:PORT): %w", addr, err)
}

// nodeName names this process in leases and logs: host and process id.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

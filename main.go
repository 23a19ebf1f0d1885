// Command holdfast stands between agents and every API that changes something:
// it gives each wanted action one durable identity, sends exactly what was
// approved, and finds out what happened before anything is sent again.
//
// This file parses commands and wires the rooms together; what a command does
// lives in the room it belongs to.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/dispatch"
	"holdfast/store"
	"holdfast/web"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, program{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Args[1:]))
}

// Exit codes.
const (
	exitDone    = 0
	exitFinding = 1 // it ran, and found or met something
	exitUsage   = 2 // it was called wrongly
)

// program is one run of the command line: its streams, and the ledger it works
// on where it runs inside a server.
type program struct {
	in       io.Reader
	out, err io.Writer
	inside   *web.Instance // set in a server: commands that came over its socket work on this
}

// usageError is a command line that cannot be understood.
type usageError struct{ error }

// silent ends a command that has said everything itself.
type silent int

func (s silent) Error() string { return fmt.Sprintf("exit %d", int(s)) }

func run(ctx context.Context, p program, args []string) int {
	root := p.commands()
	root.SetArgs(args)
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	err := root.ExecuteContext(ctx)
	var usage usageError
	var called web.Usage
	var said silent
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &said):
		return int(said)
	case errors.As(err, &usage), errors.As(err, &called), strings.HasPrefix(err.Error(), "unknown command"):
		fmt.Fprintf(p.err, "holdfast: %v; see holdfast --help\n", err)
		return exitUsage
	}
	fmt.Fprintf(p.err, "holdfast: %v\n", err)
	return exitFinding
}

// settings are the flags every command takes.
type settings struct{ config, data, db string }

func (p program) commands() *cobra.Command {
	var s settings
	root := &cobra.Command{
		Use:           "holdfast",
		Short:         "A gateway between agents and every API that changes something",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags()) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.StringVar(&s.config, "config", "", "configuration `FILE` (default: holdfast.yaml in the data folder, if it is there)")
	flags.StringVar(&s.data, "data", "", "data `FOLDER` (default: ./holdfast-data)")
	flags.StringVar(&s.db, "db", "", "postgres:// `URL` instead of a data folder")
	root.AddCommand(
		p.serveCommand(&s), p.demoCommand(&s), p.triggerCommand(),
		p.tokenCommand(&s), p.userCommand(&s), p.setupLinkCommand(&s),
		p.reconcileCommand(&s), p.statementCommand(&s), p.exportCommand(&s), p.policyCommand(&s), p.configCommand(), p.railCommand(&s), p.verifyCommand(&s), p.sandboxCommand(), p.versionCommand(),
	)
	return root
}

// fromEnvironment gives every flag that was not set its twin's value:
// HOLDFAST_LISTEN for --listen.
func fromEnvironment(flags *pflag.FlagSet) error {
	var wrong error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, given := os.LookupEnv(name)
		if f.Changed || !given || f.Name == "help" {
			return
		}
		if err := f.Value.Set(value); err != nil && wrong == nil {
			wrong = usageError{fmt.Errorf("%s: %w", name, err)}
		}
		f.Changed = true
	})
	return wrong
}

// exactly wraps cobra's argument checks, so that a wrong number of arguments is
// wrong usage.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{fmt.Errorf("%s takes %d argument(s), not %d", cmd.CommandPath(), n, len(args))}
		}
		return nil
	}
}

// folder is the data folder the settings name.
func (s *settings) folder() (string, error) {
	switch {
	case s.db != "":
		return "", usageError{errors.New("--db: PostgreSQL is not available in this version; use --data FOLDER")}
	case s.data != "":
		return filepath.Abs(s.data)
	}
	return filepath.Abs("holdfast-data")
}

// onLedger runs a command on the ledger of the data folder: inside the server,
// if one runs there, and otherwise by opening it for the time of the command.
func (p program) onLedger(cmd *cobra.Command, s *settings, args []string, work func(*web.Instance) error) error {
	if p.inside != nil {
		return work(p.inside)
	}
	folder, err := s.folder()
	if err != nil {
		return err
	}
	stdin, err := p.takeStdin(cmd)
	if err != nil {
		return err
	}
	reply, err := web.Forward(cmd.Context(), folder, web.Call{Args: commandLine(cmd, args), Stdin: stdin}, p.err)
	if err == nil {
		p.out.Write(reply.Stdout)
		if reply.Code != exitDone {
			return silent(reply.Code)
		}
		return nil
	}
	if !errors.Is(err, web.ErrNoServer) {
		return err
	}
	if stdin != nil {
		cmd.Root().SetIn(bytes.NewReader(stdin))
	}
	log := slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	inst, err := web.OpenInstance(cmd.Context(), web.InstanceOptions{Folder: folder, Config: s.config, Exe: executable(), Log: log})
	if err != nil {
		return err
	}
	defer inst.Close()
	return work(inst)
}

// onExistingLedger is onLedger for a command that only looks or takes away: a
// mistyped folder is a mistake, not the beginning of a new ledger.
func (p program) onExistingLedger(cmd *cobra.Command, s *settings, args []string, work func(*web.Instance) error) error {
	if p.inside == nil {
		folder, err := s.folder()
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(folder, "holdfast.db")); err != nil {
			return fmt.Errorf("there is no ledger in %s; name its folder with --data", folder)
		}
	}
	return p.onLedger(cmd, s, args, work)
}

// takeStdin reads what a command wants from its input, so that it can travel.
func (p program) takeStdin(cmd *cobra.Command) ([]byte, error) {
	f := cmd.Flags().Lookup("password-stdin")
	if f == nil || f.Value.String() != "true" {
		return nil, nil
	}
	return io.ReadAll(io.LimitReader(p.in, 4096))
}

// commandLine writes the command again with every flag that was given, also by
// the environment, and without those that say which ledger is meant.
func commandLine(cmd *cobra.Command, args []string) []string {
	line := strings.Fields(cmd.CommandPath())[1:]
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "config" || f.Name == "data" || f.Name == "db" {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				line = append(line, "--"+f.Name+"="+v)
			}
			return
		}
		line = append(line, "--"+f.Name+"="+f.Value.String())
	})
	return append(append(line, "--"), args...)
}

// answer runs a command that came over a server's socket.
func answer(inst *web.Instance) web.Answerer {
	return func(ctx context.Context, call web.Call, notes io.Writer) web.Reply {
		var out bytes.Buffer
		p := program{in: bytes.NewReader(call.Stdin), out: &out, err: notes, inside: inst}
		code := run(ctx, p, call.Args)
		return web.Reply{Code: code, Stdout: out.Bytes()}
	}
}

// executable is this very binary, for the sandbox providers it starts.
func executable() string {
	exe, err := os.Executable()
	if err != nil {
		return ""
	}
	return exe
}

func (p program) serveCommand(s *settings) *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the server", Args: exactly(0),
		Example: "  holdfast serve --data /var/lib/holdfast --listen 127.0.0.1:8420",
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder, err := s.folder()
			if err != nil {
				return err
			}
			log := slog.New(slog.NewJSONHandler(p.err, nil))
			inst, err := web.OpenInstance(cmd.Context(), web.InstanceOptions{Folder: folder, Config: s.config, Exe: executable(), Log: log})
			if err != nil {
				return err
			}
			ready := func(addr string) {
				fmt.Fprintf(p.err, "listening on http://%s\n", addr)
				if err := inst.OfferSetUp(cmd.Context(), p.err, "http://"+addr); err != nil {
					log.Error("no set-up code could be made", "error", err)
				}
			}
			err = inst.Serve(cmd.Context(), web.ServeOptions{Listen: listen, Ready: ready, Command: answer(inst)})
			return errors.Join(err, inst.Close())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8420", "`ADDRESS` to answer on")
	return cmd
}

func (p program) demoCommand(s *settings) *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use: "demo", Short: "Run the whole system on this machine, with a sandbox provider and accidents", Args: exactly(0),
		Example: "  holdfast demo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return web.Demo(cmd.Context(), web.DemoOptions{Listen: listen, Folder: s.data, Exe: executable(), Out: p.out, Version: version(), Command: answer})
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8420", "`ADDRESS` to answer on")
	return cmd
}

func (p program) triggerCommand() *cobra.Command {
	var naked bool
	cmd := &cobra.Command{
		Use: "trigger NAME", Short: "Make one accident happen on the demo and tell its story",
		Long:    "Make one accident happen on the demo and tell its story.\n\n" + web.Accidents(),
		Example: "  holdfast trigger lost-answer\n  holdfast trigger lost-answer --naked",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return web.Trigger(cmd.Context(), args[0], naked, p.out)
		},
	}
	cmd.Flags().BoolVar(&naked, "naked", false, "the same accident without holdfast")
	return cmd
}

func (p program) tokenCommand(s *settings) *cobra.Command {
	token := &cobra.Command{Use: "token", Short: "Make, list and revoke agents' tokens"}
	var o web.TokenOptions
	create := &cobra.Command{
		Use: "create", Short: "Print a new token, alone, on standard output", Args: exactly(0),
		Example: "  holdfast token create --tenant default --agent billing --owner ana@example.com --max-amount 500.00 --currency EUR",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onLedger(cmd, s, args, func(i *web.Instance) error {
				signed, err := i.CreateToken(cmd.Context(), o, p.err)
				if err == nil {
					fmt.Fprintln(p.out, signed)
				}
				return err
			})
		},
	}
	f := create.Flags()
	f.StringVar(&o.Tenant, "tenant", "default", "`TENANT` it belongs to; made if it is new")
	f.StringVar(&o.Agent, "agent", "", "`NAME` of the agent (required)")
	f.StringVar(&o.Owner, "owner", "", "`EMAIL` of the person who counts as the requester")
	f.StringArrayVar(&o.Scopes, "scope", nil, "`SCOPE`, several times; default operations:write and operations:read")
	f.StringArrayVar(&o.ActionTypes, "action-type", nil, "narrow to this action `TYPE`, several times")
	f.StringArrayVar(&o.Rails, "rail", nil, "narrow to this `RAIL`, several times")
	f.StringVar(&o.MaxAmount, "max-amount", "", "cap for one operation, `DECIMAL` in --currency")
	f.StringVar(&o.Currency, "currency", "", "`CODE` of --max-amount")
	f.DurationVar(&o.TTL, "ttl", 720*time.Hour, "how long it is good")

	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List tokens", Args: exactly(0), Example: "  holdfast token list --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onExistingLedger(cmd, s, args, func(i *web.Instance) error { return i.ListTokens(cmd.Context(), p.out, asJSON) })
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	revoke := &cobra.Command{
		Use: "revoke ID", Short: "End a token at once", Args: exactly(1), Example: "  holdfast token revoke tok_5f…",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onExistingLedger(cmd, s, args, func(i *web.Instance) error { return i.RevokeToken(cmd.Context(), args[0], p.out) })
		},
	}
	token.AddCommand(create, list, revoke)
	return token
}

func (p program) userCommand(s *settings) *cobra.Command {
	user := &cobra.Command{Use: "user", Short: "Add, list and disable people"}
	var o web.UserOptions
	var fromStdin bool
	create := &cobra.Command{
		Use: "create", Short: "Add a person", Args: exactly(0),
		Example: "  holdfast user create --tenant default --email ana@example.com --role finance --password-stdin < password",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onLedger(cmd, s, args, func(i *web.Instance) error {
				if fromStdin {
					text, err := io.ReadAll(cmd.InOrStdin())
					if err != nil {
						return err
					}
					if o.Password = strings.TrimRight(string(text), "\r\n"); o.Password == "" {
						return errors.New("--password-stdin: standard input is empty")
					}
				}
				return i.CreateUser(cmd.Context(), o, p.out)
			})
		},
	}
	f := create.Flags()
	f.StringVar(&o.Tenant, "tenant", "default", "`TENANT` of the person; made if it is new")
	f.StringVar(&o.Email, "email", "", "`EMAIL`, unique in the installation (required)")
	f.StringVar(&o.Name, "name", "", "`NAME` to show")
	f.StringArrayVar(&o.Roles, "role", nil, "`ROLE`: admin, approver, finance or viewer; several times (required)")
	f.BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")

	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List people", Args: exactly(0), Example: "  holdfast user list",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onExistingLedger(cmd, s, args, func(i *web.Instance) error { return i.ListUsers(cmd.Context(), p.out, asJSON) })
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	disable := &cobra.Command{
		Use: "disable EMAIL", Short: "End a person's rights and sessions", Args: exactly(1), Example: "  holdfast user disable jon@example.com",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onExistingLedger(cmd, s, args, func(i *web.Instance) error { return i.DisableUser(cmd.Context(), args[0], p.out) })
		},
	}
	user.AddCommand(create, list, disable)
	return user
}

func (p program) setupLinkCommand(s *settings) *cobra.Command {
	var base string
	cmd := &cobra.Command{
		Use: "setup-link", Short: "Print a new one-time set-up link", Args: exactly(0), Example: "  holdfast setup-link",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onLedger(cmd, s, args, func(i *web.Instance) error { return i.SetUpLink(cmd.Context(), p.out, base) })
		},
	}
	cmd.Flags().StringVar(&base, "url", "", "`ADDRESS` under which the browser reaches the server (default: where it listens)")
	return cmd
}

func (p program) reconcileCommand(s *settings) *cobra.Command {
	var job string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "reconcile", Short: "Run the scheduled jobs now and print what each did", Args: exactly(0),
		Example: "  holdfast reconcile --job lookup",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onExistingLedger(cmd, s, args, func(i *web.Instance) error { return i.RunJobs(cmd.Context(), job, p.out, asJSON) })
		},
	}
	cmd.Flags().StringVar(&job, "job", "", "only this `JOB`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func (p program) statementCommand(s *settings) *cobra.Command {
	statement := &cobra.Command{Use: "statement", Short: "Take in statements of providers and banks"}
	var o web.ImportOptions
	take := &cobra.Command{
		Use: "import FILE", Short: "Import a statement and match its lines with operations", Args: exactly(1),
		Example: "  holdfast statement import --rail card --preview november.csv\n  holdfast statement import --rail card november.csv",
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := filepath.Abs(args[0]) // the server may stand elsewhere
			if err != nil {
				return err
			}
			o.File = file
			return p.onExistingLedger(cmd, s, []string{file}, func(i *web.Instance) error { return i.ImportStatement(cmd.Context(), o, p.out, p.err) })
		},
	}
	f := take.Flags()
	f.StringVar(&o.Tenant, "tenant", "default", "`TENANT` of the rail")
	f.StringVar(&o.Rail, "rail", "", "`RAIL` whose statement it is (required)")
	f.StringVar(&o.Account, "account", "", "`NAME` of the account (default: as the file says, else the rail's)")
	f.StringVar(&o.DateOrder, "date-order", "", "`ORDER` of day and month where the file leaves it open: dmy, mdy, ymd or iso")
	f.StringArrayVar(&o.Answers, "answer", nil, "`KEY=VALUE`, the answer to a question that the file leaves open; several times")
	f.BoolVar(&o.Preview, "preview", false, "say what it would do and store nothing")
	f.BoolVar(&o.JSON, "json", false, "as JSON")
	statement.AddCommand(take)
	return statement
}

func (p program) exportCommand(s *settings) *cobra.Command {
	var o web.ExportOptions
	cmd := &cobra.Command{
		Use: "export NAME", Short: "Write operations, refunds or the journal as CSV, hledger or beancount", Args: exactly(1),
		Long: "Write a list as a file, on standard output: operations, refunds (what is owed), or journal (what was\n" +
			"confirmed and what is owed, line by line). Every export is noted in the action log.",
		Example: "  holdfast export operations --status confirmed > operations.csv\n  holdfast export journal --format hledger > books.hledger && hledger -f books.hledger check --strict",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return p.onExistingLedger(cmd, s, args, func(i *web.Instance) error { return i.Export(cmd.Context(), o, p.out) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Tenant, "tenant", "default", "`TENANT` whose list it is")
	f.StringVar(&o.Format, "format", "csv", "csv, hledger or beancount")
	f.StringVar(&o.Status, "status", "", "only those of this `STATUS`")
	f.StringVar(&o.ActionType, "action-type", "", "only operations of this `TYPE`")
	f.StringVar(&o.Reference, "reference", "", "only operations with this `REFERENCE`")
	f.StringVar(&o.Run, "run", "", "only operations of this `RUN`")
	f.StringVar(&o.Query, "search", "", "only operations with this `ID`, reference or recipient")
	f.StringVar(&o.Rail, "rail", "", "only those on this `RAIL`")
	f.StringVar(&o.Customer, "customer", "", "only refunds of this `CUSTOMER`")
	f.StringVar(&o.Currency, "currency", "", "only refunds in this `CURRENCY`")
	return cmd
}

func (p program) policyCommand(s *settings) *cobra.Command {
	var days int
	var asJSON bool
	policy := &cobra.Command{Use: "policy", Short: "Try a policy"}
	backtest := &cobra.Command{
		Use: "backtest FILE", Short: "What the policy of this configuration would have done to recorded operations", Args: exactly(1),
		Example: "  holdfast policy backtest --days 30 new.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := filepath.Abs(args[0]) // the server may stand elsewhere
			if err != nil {
				return err
			}
			return p.onExistingLedger(cmd, s, []string{file}, func(i *web.Instance) error {
				return i.BacktestPolicy(cmd.Context(), file, days, p.out, asJSON)
			})
		},
	}
	backtest.Flags().IntVar(&days, "days", 90, "how many `DAYS` to look back")
	backtest.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	policy.AddCommand(backtest)
	return policy
}

func (p program) configCommand() *cobra.Command {
	config := &cobra.Command{Use: "config", Short: "Look at a configuration"}
	config.AddCommand(&cobra.Command{
		Use: "check FILE", Short: "Report every mistake with file, line and key", Args: exactly(1),
		Example: "  holdfast config check /etc/holdfast/holdfast.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			errs := dispatch.CheckConfig(args[0], os.LookupEnv, time.Now)
			for _, err := range errs {
				fmt.Fprintln(p.err, err)
			}
			if len(errs) > 0 {
				return silent(exitFinding)
			}
			fmt.Fprintf(p.out, "%s is good\n", args[0])
			return nil
		},
	})
	return config
}

func (p program) railCommand(s *settings) *cobra.Command {
	rail := &cobra.Command{Use: "rail", Short: "Look at rails"}
	rail.AddCommand(p.railProfilesCommand(), p.railTestCommand(s))
	return rail
}

func (p program) railProfilesCommand() *cobra.Command {
	var asJSON bool
	profiles := &cobra.Command{
		Use: "profiles [NAME]", Short: "List the ready-made profiles of providers, or print one with its sources",
		Example: "  holdfast rail profiles\n  holdfast rail profiles stripe-v1",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly(1)(cmd, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return dispatch.ShowProfile(p.out, args[0])
			}
			return dispatch.ListProfiles(p.out, asJSON)
		},
	}
	profiles.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return profiles
}

func (p program) railTestCommand(s *settings) *cobra.Command {
	var o web.RailTestOptions
	cmd := &cobra.Command{
		Use: "test NAME", Short: "Say what a rail promises, and try it on a test account",
		Long: "Say what a rail promises, and try it on a test account.\n\nWith --payload it sends for real: one request, the same one again under the same key,\n" +
			"and another one under that key; it looks for what it sent and says how long that took.\nA promise that was not kept is exit 1.",
		Example: "  holdfast rail test card\n  holdfast rail test card --action-type create_payment --payload payment.json --test-account",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Rail = args[0]; o.Payload != "" {
				file, err := filepath.Abs(o.Payload) // the server may stand elsewhere
				if err != nil {
					return err
				}
				if err := cmd.Flags().Set("payload", file); err != nil {
					return err
				}
			}
			return p.onLedger(cmd, s, args, func(i *web.Instance) error { return i.TestRail(cmd.Context(), o, p.out) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Tenant, "tenant", "default", "`TENANT` of the rail")
	f.StringVar(&o.ActionType, "action-type", "", "`TYPE` of the payload; may be left out where the rail has one")
	f.StringVar(&o.Payload, "payload", "", "`FILE` with a payload to send, as JSON")
	f.BoolVar(&o.TestAccount, "test-account", false, "the rail's credentials are a test account's; not asked of sandbox rails")
	return cmd
}

func (p program) verifyCommand(s *settings) *cobra.Command {
	o := web.VerifyOptions{Out: p.out, Notes: p.err}
	cmd := &cobra.Command{
		Use: "verify [FILE.html]", Short: "Check the action log's proofs and every rule of the ledger, or an evidence pack",
		Long: "Check that every entry of the action log is what was sealed, that one signed head grew out of the other,\nand every rule that must hold over the ledger. It only reads, beside a server or without one, and stops\n" +
			"at the first thing that does not hold: exit 1. With the file of an evidence pack it checks that file alone.\n\n" +
			"--head takes a signed head that was kept elsewhere: without one, nobody can tell a log whose end was cut off.",
		Example: "  holdfast verify\n  holdfast verify --head holdfast-head.txt\n  holdfast verify evidence.html",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly(1)(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return web.VerifyPack(args[0], o)
			}
			folder, err := s.folder()
			if err != nil {
				return err
			}
			return web.VerifyLedger(cmd.Context(), folder, o)
		},
	}
	cmd.Flags().StringArrayVar(&o.Heads, "head", nil, "`FILE` with a signed head that was kept elsewhere; several times")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "as JSON")
	return cmd
}

func (p program) sandboxCommand() *cobra.Command {
	var o dispatch.SandboxOptions
	cmd := &cobra.Command{
		Use: "sandbox", Short: "Run the sandbox provider", Args: exactly(0),
		Example: "  holdfast sandbox --listen 127.0.0.1:8421 --data book.jsonl",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, end := context.WithCancel(cmd.Context())
			defer end()
			dispatch.WatchStdin(p.in, end)
			o.Log = slog.New(slog.NewTextHandler(p.err, nil))
			// The book is this command's --data; the flag of the same name elsewhere is a folder.
			return dispatch.RunSandbox(ctx, o, func(addr string) { fmt.Fprintf(p.err, "listening on http://%s\n", addr) })
		},
	}
	cmd.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:8421", "`ADDRESS` to answer on")
	cmd.Flags().StringVar(&o.Book, "data", "", "`FILE` for its book; without it, memory")
	cmd.Flags().BoolVar(&o.Dedupe, "dedupe", true, "recognise a repeated Idempotency-Key")
	return cmd
}

func (p program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit, Go and SQLite version", Args: exactly(0), Example: "  holdfast version",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(p.out, "holdfast %s\n%s\nSQLite %s\n", version(), runtime.Version(), store.SQLiteVersion())
			return err
		},
	}
}

// version is the release and the commit it was built from, as far as the build
// knows them.
func version() string {
	const release = "0.1.0"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return release + " " + s.Value[:12]
		}
	}
	return release
}

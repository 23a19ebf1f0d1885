package dispatch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/robfig/cron/v3"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// Config is what a configuration file says, checked whole: there is no Config
// of a file with a mistake in it. It is never changed; a reload makes another.
type Config struct {
	Hash    string // "sha256:…" over the text as it stands in the file, without the secrets it names
	Source  string // the file, or "built-in defaults"
	Tenants map[string]*Tenant
	Jobs    map[string]string // by job: when it runs, as [ParseSchedule] reads it
	Limits  Limits
	Timing  ledger.Timing
}

// Tenant is one tenant's part of it.
type Tenant struct {
	Rulebook    *ledger.Rulebook
	Rails       map[string]*rail.Rail  // by name
	Routes      map[string]*rail.Rail  // by action type: its rail as it speaks to it
	RailConfigs map[string]rail.Config // by name, as configured: how to read statements and events
	Notify      *Notify                // whom to tell; nil: nobody
}

// Limits protect the server itself.
type Limits struct {
	RequestsPerSecond int
}

// DefaultTenant is whose rails and action types stand at the top of the file.
const DefaultTenant = "default"

// configLimit is far above any configuration that people write. It keeps the
// YAML parser, which recurses, from exhausting the stack.
const configLimit = 256 << 10

// nobody is where a sandbox rail leads whose provider nobody started: nothing
// listens there, so nothing can be sent by accident.
const nobody = "http://127.0.0.1:1"

// Env looks a name up in the environment, as [os.LookupEnv] does.
type Env func(name string) (value string, ok bool)

// SandboxAddress gives the base URL of the sandbox provider of a rail that has
// no base_url of its own. It is asked once the whole file is found to be right,
// so it may start the provider; dedupe is what the rail expects of it. Nil:
// nothing is started, and nothing can be sent.
type SandboxAddress func(tenant, rail string, dedupe bool) (baseURL string, err error)

// ReadConfig reads a configuration file; without a name, the built-in defaults.
// Its error is a [ConfigErrors] and holds every mistake.
func ReadConfig(file string, env Env, now func() time.Time, sandbox SandboxAddress) (*Config, error) {
	if file == "" {
		return defaultConfig(env, now, sandbox)
	}
	text, err := readUpTo(file, configLimit)
	if err != nil {
		return nil, ConfigErrors{{File: file, Message: err.Error()}}
	}
	return ParseConfig(text, filepath.Dir(file), file, env, now, sandbox)
}

// ParseConfig reads the text of a configuration. Schemas and secret files are
// looked for in dir; name stands in errors.
func ParseConfig(text []byte, dir, name string, env Env, now func() time.Time, sandbox SandboxAddress) (*Config, error) {
	beside := func(file string) ([]byte, error) {
		root, err := os.OpenRoot(dir) // a root: no symbolic link leads out of it either
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return fs.ReadFile(root.FS(), file)
	}
	secret := func(file string) ([]byte, error) {
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		return readUpTo(file, configLimit)
	}
	return parseConfig(text, name, surroundings{beside, secret, env, now, sandbox})
}

// CheckConfig lists every mistake of a file.
func CheckConfig(file string, env Env, now func() time.Time) []error {
	_, err := ReadConfig(file, env, now, nil)
	if all, ok := errors.AsType[ConfigErrors](err); ok {
		return all.Unwrap()
	}
	if err != nil {
		return []error{err}
	}
	return nil
}

// Rulebooks are what the ledger needs of it, by tenant.
func (c *Config) Rulebooks() map[string]*ledger.Rulebook {
	books := map[string]*ledger.Rulebook{}
	for name, t := range c.Tenants {
		books[name] = t.Rulebook
	}
	return books
}

// Format prints the name whatever the verb: a configuration holds secrets, also
// in places that nobody thought of as secret.
func (c Config) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "configuration %s (%s)", c.Source, c.Hash)
}

// Format keeps a tenant's part out of logs as well.
func (t Tenant) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "configuration of %d rails and %d action types", len(t.Rails), len(t.Routes))
}

// ParseSchedule reads when a job runs: five fields, six with seconds first, or
// @every and its like.
func ParseSchedule(spec string) (cron.Schedule, error) {
	schedule, err := scheduleParser.Parse(spec)
	if every, ok := schedule.(cron.ConstantDelaySchedule); ok {
		return steady(every.Delay), err
	}
	return schedule, err
}

// steady is every so often, counted from one moment for all nodes: so they mean
// the same tick, whenever each of them began.
type steady time.Duration

// Next is the first tick after a moment.
func (s steady) Next(t time.Time) time.Time {
	return t.Truncate(time.Duration(s)).Add(time.Duration(s))
}

// LastTick is the latest tick of a schedule that is not after a moment; the zero
// time where there was none in the last five years.
func LastTick(schedule cron.Schedule, now time.Time) (last time.Time) {
	for back := time.Second; back < 5*365*24*time.Hour && last.IsZero(); back *= 2 {
		for at := schedule.Next(now.Add(-back)); !at.IsZero() && !at.After(now); at = schedule.Next(at) {
			last = at
		}
	}
	return last
}

var scheduleParser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// surroundings are what a text cannot say itself.
type surroundings struct {
	beside  func(file string) ([]byte, error) // a file of the configuration's own directory
	secret  func(file string) ([]byte, error)
	env     Env
	now     func() time.Time
	sandbox SandboxAddress
}

func parseConfig(text []byte, name string, around surroundings) (*Config, error) {
	f := newFindings(name)
	r := &configReader{findings: f, around: around}
	written, ok := r.document(text)
	if !ok {
		return nil, f.errors()
	}
	b := &configBuilder{findings: f, around: around}
	c := b.config(written)
	if len(f.list) > 0 {
		return nil, f.errors()
	}
	b.connectSandboxes(c)
	if len(f.list) > 0 {
		return nil, f.errors()
	}
	sum := sha256.Sum256(text)
	c.Hash, c.Source = "sha256:"+hex.EncodeToString(sum[:]), name
	return c, nil
}

// readUpTo reads a file, or says why not without repeating its name.
func readUpTo(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, bare(err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("is larger than %d KiB", limit>>10)
	}
	return text, nil
}

// bare takes the name out of a file's error; the caller names the place.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("may not be read by this user")
	}
	return fmt.Errorf("cannot be read: %w", err)
}

// TenantName reports whether a tenant may be called so.
func TenantName(name string) bool { return tenantName.MatchString(name) }

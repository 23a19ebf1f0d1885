package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"holdfast/dispatch"
	"holdfast/store"
	"holdfast/store/ledger"
)

// What the command line does with an instance. main.go has the flags.

// Usage is a command that was called wrongly: exit 2.
type Usage struct{ error }

func usagef(format string, args ...any) error { return Usage{fmt.Errorf(format, args...)} }

// operator is who the log names for commands: whoever may read the data folder.
var operator = ledger.Holder{Kind: ledger.Person, Name: "command line"}

// TokenOptions are the flags of token create.
type TokenOptions struct {
	Tenant, Agent, Owner       string
	Scopes, ActionTypes, Rails []string
	MaxAmount                  string // decimal, in Currency
	Currency                   string
	TTL                        time.Duration
}

// CreateToken makes an agent's token and returns it. What else there is to say
// goes to notes.
func (i *Instance) CreateToken(ctx context.Context, o TokenOptions, notes io.Writer) (string, error) {
	if err := checkTenant(o.Tenant); err != nil {
		return "", err
	}
	if !operationID.MatchString(o.Agent) {
		return "", usagef("--agent %q: use 1 to 128 of letters, digits, . _ : and -, first a letter or digit", o.Agent)
	}
	if o.TTL <= 0 {
		return "", usagef("--ttl %s: give a duration longer than nothing, such as 720h", o.TTL)
	}
	r := ledger.TokenRecord{TenantID: o.Tenant, Agent: o.Agent, Owner: strings.ToLower(o.Owner), Scopes: o.Scopes,
		ActionTypes: o.ActionTypes, Rails: o.Rails, Currency: strings.ToUpper(o.Currency),
		ExpiresAt: i.Store.Now() + o.TTL.Milliseconds()}
	if err := i.checkToken(&r, o.MaxAmount); err != nil {
		return "", err
	}
	signed, _, err := IssueToken(ctx, i.Store, r, operator)
	if err == nil {
		err = i.noteOwner(ctx, r.Owner, notes)
	}
	return signed, err
}

// noteOwner says so when nobody is set up under the owner's address: four eyes
// compare it with who decides, and a slip of the hand would switch them off.
func (i *Instance) noteOwner(ctx context.Context, owner string, notes io.Writer) error {
	if owner == "" {
		return nil
	}
	_, _, err := i.Store.PersonByEmail(ctx, owner)
	if errors.Is(err, store.ErrNotFound) {
		fmt.Fprintf(notes, "note: nobody is set up as %s; check the spelling, since whoever has that address may not decide alone on what this agent asks for\n", owner)
		return nil
	}
	return err
}

// checkToken refuses a narrowing to something that does not exist: it would be
// a token that may do nothing, found out by an agent at night.
func (i *Instance) checkToken(r *ledger.TokenRecord, maxAmount string) error {
	book := i.Store.Rulebook(r.TenantID)
	for _, a := range r.ActionTypes {
		if book.Actions[a] == nil {
			return usagef("--action-type %q is not configured for tenant %s", a, r.TenantID)
		}
	}
	for _, rail := range r.Rails {
		if _, ok := book.Rails[rail]; !ok {
			return usagef("--rail %q is not configured for tenant %s", rail, r.TenantID)
		}
	}
	if (maxAmount == "") != (r.Currency == "") {
		return usagef("--max-amount and --currency go together")
	}
	if maxAmount == "" {
		return nil
	}
	amount, err := book.Currencies.MinorUnits(maxAmount, r.Currency)
	if err != nil {
		return usagef("--max-amount: %w", err)
	}
	if amount <= 0 {
		return usagef("--max-amount %s: a cap is more than nothing", maxAmount)
	}
	r.MaxAmount = &amount
	return nil
}

// UserOptions are the flags of user create.
type UserOptions struct {
	Tenant, Email, Name string
	Roles               []string
	Password            string // empty: no password yet; a set-up or invite link gives one
}

// Roles that a person may have.
var Roles = ledger.Roles

// CreateUser adds a person.
func (i *Instance) CreateUser(ctx context.Context, o UserOptions, out io.Writer) error {
	p := ledger.PersonRecord{TenantID: o.Tenant, Email: o.Email, Name: o.Name, Roles: o.Roles}
	if err := checkTenant(o.Tenant); err != nil {
		return err
	}
	if err := checkPerson(p); err != nil {
		return err
	}
	hash := ""
	if o.Password != "" {
		if problem := PasswordProblem(o.Password, o.Email, o.Name); problem != "" {
			return errors.New(problem)
		}
		var err error
		if hash, err = HashPassword(o.Password); err != nil {
			return err
		}
	}
	p, err := i.Store.AddPerson(ctx, p, hash, operator)
	if err != nil {
		return err
	}
	without := ""
	if hash == "" {
		without = ", without a password: nobody can sign in so yet; pass one with --password-stdin when creating"
	}
	_, err = fmt.Fprintf(out, "%s is set up in %s as %s%s\n", p.Email, p.TenantID, strings.Join(p.Roles, ", "), without)
	return err
}

// ListUsers prints everybody who is set up.
func (i *Instance) ListUsers(ctx context.Context, out io.Writer, asJSON bool) error {
	people, err := i.Store.People(ctx, "")
	if err != nil {
		return err
	}
	rows := make([]row, 0, len(people))
	for _, p := range people {
		rows = append(rows, row{{"email", p.Email}, {"tenant", p.TenantID}, {"name", p.Name}, {"roles", strings.Join(p.Roles, ",")}, {"disabled_at", stampText(p.DisabledAt)}})
	}
	return printRows(out, rows, asJSON)
}

// DisableUser ends a person's rights.
func (i *Instance) DisableUser(ctx context.Context, email string, out io.Writer) error {
	err := i.Store.DisablePerson(ctx, email, operator)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("nobody is set up as %s; see holdfast user list", email)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s is disabled and signed out\n", email)
	return err
}

// ListTokens prints what is kept about every token.
func (i *Instance) ListTokens(ctx context.Context, out io.Writer, asJSON bool) error {
	tokens, err := i.Store.Tokens(ctx, "")
	if err != nil {
		return err
	}
	rows := make([]row, 0, len(tokens))
	for _, t := range tokens {
		rows = append(rows, row{{"id", t.ID}, {"tenant", t.TenantID}, {"agent", t.Agent}, {"owner", t.Owner}, {"scopes", strings.Join(t.Scopes, ",")},
			{"expires_at", stampText(t.ExpiresAt)}, {"revoked_at", stampText(t.RevokedAt)}})
	}
	return printRows(out, rows, asJSON)
}

// RevokeToken ends a token at once.
func (i *Instance) RevokeToken(ctx context.Context, id string, out io.Writer) error {
	err := i.Store.RevokeToken(ctx, id, operator)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("no token %s; see holdfast token list", id)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s is revoked; what it asked for and was not sent is not sent any more\n", id)
	return err
}

// OfferSetUp prints a one-time set-up link where nobody is set up yet.
func (i *Instance) OfferSetUp(ctx context.Context, out io.Writer, base string) error {
	has, err := i.Store.HasPeople(ctx)
	if err != nil || has {
		return err
	}
	return i.SetUpLink(ctx, out, base)
}

// SetUpLink prints a new one-time set-up link.
func (i *Instance) SetUpLink(ctx context.Context, out io.Writer, base string) error {
	has, err := i.Store.HasPeople(ctx)
	if err != nil {
		return err
	}
	if has {
		return errors.New("somebody is set up already; add people with holdfast user create")
	}
	code, err := i.Store.NewSetupCode(ctx)
	if err != nil {
		return err
	}
	if base == "" {
		base = "http://" + i.address()
	}
	_, err = fmt.Fprintf(out, "Set-up code %s, one use, 30 minutes\n  %s/setup?code=%s\n", code, strings.TrimRight(base, "/"), code)
	return err
}

func checkPerson(p ledger.PersonRecord) error {
	address, err := mail.ParseAddress(p.Email)
	if err != nil || address.Address != strings.TrimSpace(p.Email) {
		return usagef("--email %q is not an e-mail address", p.Email)
	}
	if len(p.Roles) == 0 {
		return usagef("give at least one --role: %s", strings.Join(Roles, ", "))
	}
	for _, r := range p.Roles {
		if !slices.Contains(Roles, r) {
			return usagef("no role %q; there are %s", r, strings.Join(Roles, ", "))
		}
	}
	return nil
}

func checkTenant(name string) error {
	if !dispatch.TenantName(name) {
		return usagef("--tenant %q: use 1 to 63 of a-z, 0-9 and -", name)
	}
	return nil
}

// RunJobs runs one job now, or all of them, and prints what each did. One that
// meets a problem keeps no other waiting; all of them are told at the end.
func (i *Instance) RunJobs(ctx context.Context, name string, out io.Writer, asJSON bool) error {
	names := i.Scheduler.Jobs()
	if name != "" {
		if !slices.Contains(names, name) {
			return usagef("--job %q: there are %s", name, strings.Join(names, ", "))
		}
		names = []string{name}
	}
	var rows []row
	var problems []string
	for _, n := range names {
		run, err := i.Scheduler.Run(ctx, n)
		if err != nil && len(run.Problems) == 0 {
			run.Problems = []string{err.Error()}
		}
		for _, p := range run.Problems {
			problems = append(problems, n+": "+p)
		}
		rows = append(rows, row{{"job", n}, {"looked_at", fmt.Sprint(run.LookedAt)}, {"resolved", fmt.Sprint(run.Resolved)}, {"held", fmt.Sprint(run.Held)},
			{"opened", fmt.Sprint(run.Opened)}, {"problems", fmt.Sprint(len(run.Problems))}, {"node", run.Node}, {"at", stampText(run.StartedAt)}})
	}
	if err := printRows(out, rows, asJSON); err != nil || len(problems) == 0 {
		return err
	}
	return errors.New(strings.Join(problems, " "))
}

// BacktestPolicy prints what the policy of a configuration would have done to
// the operations of the last days.
func (i *Instance) BacktestPolicy(ctx context.Context, file string, days int, out io.Writer, asJSON bool) error {
	if days < 1 || days > 36500 {
		return usagef("--days %d: give a number from 1 to 36500", days)
	}
	c, err := dispatch.ReadConfig(file, os.LookupEnv, time.Now, nil)
	if err != nil {
		return err
	}
	b, err := dispatch.RunBacktest(ctx, i.Store, c, i.Store.Now()-int64(days)*24*time.Hour.Milliseconds())
	if err != nil {
		return err
	}
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(b)
	}
	return b.Print(out, days)
}

// row is one line of a listing: named cells, in order.
type row []struct{ name, value string }

// printRows prints a listing as a table, or as JSON.
func printRows(out io.Writer, rows []row, asJSON bool) error {
	if asJSON {
		list := make([]map[string]string, 0, len(rows))
		for _, r := range rows {
			cells := map[string]string{}
			for _, c := range r {
				cells[c.name] = c.value
			}
			list = append(list, cells)
		}
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(list)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for n, r := range rows {
		if n == 0 {
			for _, c := range r {
				fmt.Fprint(t, strings.ToUpper(c.name), "\t")
			}
			fmt.Fprintln(t)
		}
		for _, c := range r {
			fmt.Fprint(t, c.value, "\t")
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func stampText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

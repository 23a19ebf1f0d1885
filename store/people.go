package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"holdfast/store/ledger"
)

const personColumns = `people.id, people.tenant_id, people.email, people.name, people.roles, people.created_at, people.disabled_at,
	people.factor_at, people.password_short, people.signed_in_at`

func scanPerson(row scanner, more ...any) (p ledger.PersonRecord, err error) {
	var roles string
	var short int64
	err = row.Scan(append([]any{&p.ID, &p.TenantID, &p.Email, &p.Name, &roles, &p.CreatedAt, &p.DisabledAt,
		&p.SecondFactorAt, &short, &p.LastSignInAt}, more...)...)
	fromText(roles, &p.Roles)
	p.ShortPassword = short != 0
	return p, notFound(err)
}

// NormalEmail is how an address is kept and looked up.
func NormalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// AddPerson creates somebody who may sign in, and the tenant if it is new. An
// address is unique in the installation.
func (s *Store) AddPerson(ctx context.Context, p ledger.PersonRecord, passwordHash string, by ledger.Holder) (ledger.PersonRecord, error) {
	err := s.change(ctx, func(t *tx) (err error) {
		p, err = t.addPerson(p, passwordHash, by)
		return err
	})
	return p, err
}

func (t *tx) addPerson(p ledger.PersonRecord, passwordHash string, by ledger.Holder) (ledger.PersonRecord, error) {
	p.ID, p.Email, p.CreatedAt = randomID("pe_"), NormalEmail(p.Email), t.now
	if err := t.addTenant(p.TenantID); err != nil {
		return p, err
	}
	err := t.exec(`
		insert into people (id, tenant_id, email, name, roles, password_hash, created_at, disabled_at)
		values ($1, $2, $3, $4, $5, $6, $7, 0)`, p.ID, p.TenantID, p.Email, p.Name, text(p.Roles), passwordHash, p.CreatedAt)
	if isUnique(err) {
		return p, fmt.Errorf("%w: %s is already set up", ErrForbidden, p.Email)
	}
	if err != nil {
		return p, err
	}
	return p, t.logPerson(p, "create", by, fmt.Sprintf("%s was added as %s.", p.Email, strings.Join(p.Roles, ", ")), map[string]any{"roles": p.Roles})
}

// logPerson is the entry about a change of a person.
func (t *tx) logPerson(p ledger.PersonRecord, event string, by ledger.Holder, sentence string, fact map[string]any) error {
	if fact == nil {
		fact = map[string]any{}
	}
	return t.log(ledger.Entry{TenantID: p.TenantID, Object: "person", ObjectID: p.ID, Event: event, ActorKind: by.Kind, Actor: by.Name, Sentence: sentence, Fact: text(fact)})
}

// People lists those of a tenant; of every tenant when it is empty.
func (s *Store) People(ctx context.Context, tenant string) ([]ledger.PersonRecord, error) {
	rows, err := s.readers.QueryContext(ctx, `select `+personColumns+` from people where $1 = '' or tenant_id = $1 order by created_at, email`, tenant)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.PersonRecord, error) { return scanPerson(r) })
}

// PersonByEmail finds an enabled person and the hash of the password.
func (s *Store) PersonByEmail(ctx context.Context, email string) (ledger.PersonRecord, string, error) {
	var hash string
	p, err := scanPerson(s.readers.QueryRowContext(ctx, `select `+personColumns+`, password_hash from people where email = $1 and disabled_at = 0`, NormalEmail(email)), &hash)
	return p, hash, err
}

func (t *tx) person(id string) (ledger.PersonRecord, error) {
	return scanPerson(t.row(`select `+personColumns+` from people where id = $1`, id))
}

// otherAdmins counts the enabled admins of a person's tenant without the person.
func (t *tx) otherAdmins(p ledger.PersonRecord) (n int, err error) {
	err = t.row(`select count(*) from people where tenant_id = $1 and disabled_at = 0 and id <> $2 and roles like '%"admin"%'`, p.TenantID, p.ID).Scan(&n)
	return n, err
}

// DisablePerson ends a person's rights and sessions. The last admin stays.
func (s *Store) DisablePerson(ctx context.Context, email string, by ledger.Holder) error {
	return s.change(ctx, func(t *tx) error {
		p, err := scanPerson(t.row(`select `+personColumns+` from people where email = $1`, NormalEmail(email)))
		if err != nil {
			return err
		}
		return t.disable(p, by)
	})
}

func (t *tx) disable(p ledger.PersonRecord, by ledger.Holder) error {
	if p.DisabledAt > 0 {
		return nil
	}
	others, err := t.otherAdmins(p)
	if err != nil {
		return err
	}
	if ok, why := ledger.MayDisable(p, others); !ok {
		return fmt.Errorf("%w: %s", ErrForbidden, why)
	}
	if err := t.exec(`update people set disabled_at = $1 where id = $2`, t.now, p.ID); err != nil {
		return err
	}
	if err := t.shrunk(p); err != nil {
		return err
	}
	return t.logPerson(p, "disable", by, p.Email+" was disabled.", nil)
}

// shrunk ends what somebody who lost rights still had open: their sessions, and
// the links that they made.
func (t *tx) shrunk(p ledger.PersonRecord) error {
	if err := t.endSessions(p.ID, ""); err != nil {
		return err
	}
	return t.exec(`update invites set revoked_at = $1 where tenant_id = $2 and invited_by = $3 and used_at = 0 and revoked_at = 0`, t.now, p.TenantID, p.Email)
}

// changeOther is one person's change of another of the same tenant. Both are read
// in the change: whoever was disabled a moment ago changes nobody any more.
func (s *Store) changeOther(ctx context.Context, tenant, id string, by ledger.PersonRecord, change func(*tx, ledger.PersonRecord, ledger.Holder) error) error {
	return s.change(ctx, func(t *tx) error {
		by, err := t.person(by.ID)
		if err != nil {
			return err
		}
		whom, err := t.person(id)
		if err == nil && (whom.TenantID != tenant || by.TenantID != tenant) {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		if ok, why := ledger.MayChange(by, whom); !ok {
			return fmt.Errorf("%w: %s", ErrForbidden, why)
		}
		return change(t, whom, ledger.Holder{Kind: ledger.Person, Name: by.Email})
	})
}

// ChangeRoles gives a person just these roles. seen are those that stood on the
// screen: where they are others by now, nothing changes.
func (s *Store) ChangeRoles(ctx context.Context, tenant, id string, seen, roles []string, by ledger.PersonRecord) error {
	return s.changeOther(ctx, tenant, id, by, func(t *tx, p ledger.PersonRecord, by ledger.Holder) error {
		if ledger.Shrinks(seen, p.Roles) || ledger.Shrinks(p.Roles, seen) {
			return fmt.Errorf("%w: %s is %s by now", ErrStale, p.Email, strings.Join(p.Roles, ", "))
		}
		roles = slices.Compact(slices.Sorted(slices.Values(roles)))
		others, err := t.otherAdmins(p)
		if err != nil {
			return err
		}
		if ok, why := ledger.MayGiveRoles(p, roles, others); !ok {
			return fmt.Errorf("%w: %s", ErrForbidden, why)
		}
		if slices.Equal(roles, slices.Sorted(slices.Values(p.Roles))) {
			return nil
		}
		if err := t.exec(`update people set roles = $1 where id = $2`, text(roles), p.ID); err != nil {
			return err
		}
		if ledger.Shrinks(p.Roles, roles) {
			if err := t.shrunk(p); err != nil {
				return err
			}
		}
		return t.logPerson(p, "change_roles", by, fmt.Sprintf("%s was %s and is %s.", p.Email, strings.Join(p.Roles, ", "), strings.Join(roles, ", ")),
			map[string]any{"before": p.Roles, "after": roles})
	})
}

// DisableOther ends another person's rights, sessions and open invite links.
func (s *Store) DisableOther(ctx context.Context, tenant, id string, by ledger.PersonRecord) error {
	return s.changeOther(ctx, tenant, id, by, (*tx).disable)
}

// EnableOther gives a disabled person their rights back.
func (s *Store) EnableOther(ctx context.Context, tenant, id string, by ledger.PersonRecord) error {
	return s.changeOther(ctx, tenant, id, by, func(t *tx, p ledger.PersonRecord, by ledger.Holder) error {
		if p.DisabledAt == 0 {
			return nil
		}
		if err := t.exec(`update people set disabled_at = 0 where id = $1`, p.ID); err != nil {
			return err
		}
		return t.logPerson(p, "enable", by, p.Email+" was enabled again.", nil)
	})
}

// ResetSecondFactor takes another person's second factor away: their phone is
// gone, and so are the recovery codes.
func (s *Store) ResetSecondFactor(ctx context.Context, tenant, id string, by ledger.PersonRecord) error {
	return s.changeOther(ctx, tenant, id, by, func(t *tx, p ledger.PersonRecord, by ledger.Holder) error {
		if p.SecondFactorAt == 0 {
			return nil
		}
		if err := t.dropFactor(p.ID); err != nil {
			return err
		}
		if err := t.endSessions(p.ID, ""); err != nil {
			return err
		}
		return t.logPerson(p, "reset_second_factor", by, "The second factor of "+p.Email+" was taken away.", nil)
	})
}

// NewPassword is a password that somebody chose.
type NewPassword struct {
	Hash  string
	Short bool   // good beside a second factor only
	Keep  string // secret of the session that goes on
}

// SetPassword gives a person another password and ends their sessions, but not
// the one whose secret is kept.
func (s *Store) SetPassword(ctx context.Context, p ledger.PersonRecord, n NewPassword) error {
	return s.change(ctx, func(t *tx) error {
		p, err := t.person(p.ID)
		if err != nil {
			return err
		}
		if p.DisabledAt > 0 || n.Short && p.SecondFactorAt == 0 {
			return fmt.Errorf("%w: that password is good beside a second factor only", ErrForbidden)
		}
		short := 0
		if n.Short {
			short = 1
		}
		if err := t.exec(`update people set password_hash = $1, password_short = $2 where id = $3`, n.Hash, short, p.ID); err != nil {
			return err
		}
		if err := t.endSessions(p.ID, n.Keep); err != nil {
			return err
		}
		return t.logPerson(p, "set_password", ledger.Holder{Kind: ledger.Person, Name: p.Email}, p.Email+" set another password.", nil)
	})
}

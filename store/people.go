package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"holdfast/store/ledger"
)

const personColumns = `id, tenant_id, email, name, roles, created_at, disabled_at`

func scanPerson(row scanner, more ...any) (p ledger.PersonRecord, err error) {
	var roles string
	err = row.Scan(append([]any{&p.ID, &p.TenantID, &p.Email, &p.Name, &roles, &p.CreatedAt, &p.DisabledAt}, more...)...)
	fromText(roles, &p.Roles)
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
	return p, t.log(ledger.Entry{TenantID: p.TenantID, Object: "person", ObjectID: p.ID, Event: "create", ActorKind: by.Kind, Actor: by.Name,
		Sentence: fmt.Sprintf("%s was added as %s.", p.Email, strings.Join(p.Roles, ", ")), Fact: text(map[string]any{"roles": p.Roles})})
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

// DisablePerson ends a person's rights and sessions. The last admin stays.
func (s *Store) DisablePerson(ctx context.Context, email string, by ledger.Holder) error {
	return s.change(ctx, func(t *tx) error {
		p, err := scanPerson(t.row(`select `+personColumns+` from people where email = $1`, NormalEmail(email)))
		if err != nil {
			return err
		}
		if p.DisabledAt > 0 {
			return nil
		}
		var admins int
		if err := t.row(`select count(*) from people where tenant_id = $1 and disabled_at = 0 and id <> $2 and roles like '%"admin"%'`, p.TenantID, p.ID).Scan(&admins); err != nil {
			return err
		}
		if admins == 0 {
			return fmt.Errorf("%w: %s is the last admin of %s", ErrForbidden, p.Email, p.TenantID)
		}
		if err := t.exec(`update people set disabled_at = $1 where id = $2`, t.now, p.ID); err != nil {
			return err
		}
		if err := t.exec(`delete from sessions where person_id = $1`, p.ID); err != nil {
			return err
		}
		return t.log(ledger.Entry{TenantID: p.TenantID, Object: "person", ObjectID: p.ID, Event: "disable", ActorKind: by.Kind, Actor: by.Name,
			Sentence: p.Email + " was disabled.", Fact: "{}"})
	})
}

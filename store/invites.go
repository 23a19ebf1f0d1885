package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"holdfast/store/ledger"
)

const inviteColumns = `id, tenant_id, email, roles, invited_by, created_at, expires_at, used_at, revoked_at`

func scanInvite(row scanner) (i ledger.Invite, err error) {
	var roles string
	err = row.Scan(&i.ID, &i.TenantID, &i.Email, &roles, &i.By, &i.CreatedAt, &i.ExpiresAt, &i.UsedAt, &i.RevokedAt)
	fromText(roles, &i.Roles)
	return i, notFound(err)
}

// Invite makes a one-time link's secret for somebody who is to have these roles.
// Without an e-mail address, whoever has the link says theirs.
func (s *Store) Invite(ctx context.Context, email string, roles []string, by ledger.PersonRecord) (ledger.Invite, string, error) {
	secret := randomID("") + randomID("")
	i := ledger.Invite{ID: randomID("in_"), TenantID: by.TenantID, Email: NormalEmail(email), Roles: roles, By: by.Email}
	err := s.change(ctx, func(t *tx) error {
		by, err := t.person(by.ID)
		if err != nil {
			return err
		}
		ok, why := ledger.MayManagePeople(by)
		if ok {
			ok, why = ledger.GoodRoles(roles)
		}
		if !ok {
			return fmt.Errorf("%w: %s", ErrForbidden, why)
		}
		var known int
		if err := t.row(`select count(*) from people where tenant_id = $1 and email = $2`, i.TenantID, i.Email).Scan(&known); err != nil {
			return err
		}
		if known > 0 {
			return fmt.Errorf("%w: %s is already set up", ErrForbidden, i.Email)
		}
		i.CreatedAt, i.ExpiresAt = t.now, t.now+ledger.InviteLife.Milliseconds()
		if err := t.exec(`
			insert into invites (id, secret_hash, tenant_id, email, roles, invited_by, created_at, expires_at, used_at, revoked_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0)`,
			i.ID, secretHash(secret), i.TenantID, i.Email, text(i.Roles), i.By, i.CreatedAt, i.ExpiresAt); err != nil {
			return err
		}
		return t.logInvite(i, "create", by.Email, fmt.Sprintf("A link was made that lets %s in as %s.", orSomebody(i.Email), strings.Join(i.Roles, ", ")))
	})
	return i, secret, err
}

func orSomebody(email string) string {
	if email == "" {
		return "somebody"
	}
	return email
}

func (t *tx) logInvite(i ledger.Invite, event, actor, sentence string) error {
	return t.log(ledger.Entry{TenantID: i.TenantID, Object: "invite", ObjectID: i.ID, Event: event, ActorKind: ledger.Person, Actor: actor,
		Sentence: sentence, Fact: text(map[string]any{"roles": i.Roles, "email": i.Email})})
}

// OpenInvites lists the links of a tenant that are still good.
func (s *Store) OpenInvites(ctx context.Context, tenant string) ([]ledger.Invite, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+inviteColumns+` from invites where tenant_id = $1 and used_at = 0 and revoked_at = 0 and expires_at > $2 order by created_at, id`, tenant, s.now())
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.Invite, error) { return scanInvite(r) })
}

// RevokeInvite ends a link that was not used yet.
func (s *Store) RevokeInvite(ctx context.Context, tenant, id string, by ledger.PersonRecord) error {
	return s.change(ctx, func(t *tx) error {
		by, err := t.person(by.ID)
		if err != nil {
			return err
		}
		if ok, why := ledger.MayManagePeople(by); !ok {
			return fmt.Errorf("%w: %s", ErrForbidden, why)
		}
		i, err := scanInvite(t.row(`select `+inviteColumns+` from invites where tenant_id = $1 and id = $2`, tenant, id))
		switch {
		case err != nil:
			return err
		case i.RevokedAt > 0:
			return nil
		case i.UsedAt > 0:
			return fmt.Errorf("%w: the link was used already; disable the person instead", ErrForbidden)
		}
		if err := t.exec(`update invites set revoked_at = $1 where id = $2`, t.now, i.ID); err != nil {
			return err
		}
		return t.logInvite(i, "revoke", by.Email, "The link for "+orSomebody(i.Email)+" was revoked.")
	})
}

// InviteBySecret finds the open invite that a link belongs to.
func (s *Store) InviteBySecret(ctx context.Context, secret string) (ledger.Invite, error) {
	i, err := scanInvite(s.readers.QueryRowContext(ctx, `select `+inviteColumns+` from invites where secret_hash = $1`, secretHash(secret)))
	if err == nil && !i.Open(s.now()) {
		return ledger.Invite{}, ErrNotFound
	}
	return i, err
}

// AcceptInvite makes the person and uses the link up, in one commit.
func (s *Store) AcceptInvite(ctx context.Context, secret, name, email, passwordHash string) (p ledger.PersonRecord, err error) {
	err = s.change(ctx, func(t *tx) error {
		i, err := scanInvite(t.row(`select `+inviteColumns+` from invites where secret_hash = $1`, secretHash(secret)))
		if err != nil {
			return err
		}
		if !i.Open(t.now) {
			return ErrNotFound
		}
		if i.Email != "" {
			email = i.Email
		}
		if err := t.exec(`update invites set used_at = $1 where id = $2`, t.now, i.ID); err != nil {
			return err
		}
		p, err = t.addPerson(ledger.PersonRecord{TenantID: i.TenantID, Email: email, Name: name, Roles: i.Roles}, passwordHash, ledger.Holder{Kind: ledger.Person, Name: i.By})
		if err != nil {
			return err
		}
		return t.logInvite(i, "accept", p.Email, p.Email+" came in by the link of "+i.By+".")
	})
	return p, err
}

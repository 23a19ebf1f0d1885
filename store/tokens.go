package store

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"holdfast/store/ledger"
)

// SigningKey signs agents' tokens.
type SigningKey struct {
	KID     string
	Private ed25519.PrivateKey
}

// SigningKey returns the key in use, and makes one with a new ledger. The key
// stays in the database: whoever reads the database can sign, so its folder is
// closed to others.
func (s *Store) SigningKey(ctx context.Context) (SigningKey, error) {
	var k SigningKey
	err := s.change(ctx, func(t *tx) error {
		var seed []byte
		err := t.row(`select kid, private from signing_keys where retired_at = 0 order by created_at desc limit 1`).Scan(&k.KID, &seed)
		if errors.Is(err, sql.ErrNoRows) {
			seed = make([]byte, ed25519.SeedSize)
			rand.Read(seed)
			k.KID = randomID("k_")
			err = t.exec(`insert into signing_keys (kid, private, created_at, retired_at) values ($1, $2, $3, 0)`, k.KID, seed, t.now)
		}
		if err != nil {
			return err
		}
		k.Private = ed25519.NewKeyFromSeed(seed)
		return nil
	})
	return k, err
}

// AddToken records a token before it is handed out, and its tenant if it is new.
func (s *Store) AddToken(ctx context.Context, r ledger.TokenRecord, by ledger.Holder) (ledger.TokenRecord, error) {
	r.ID = randomID("tok_")
	return r, s.change(ctx, func(t *tx) error {
		if err := t.addTenant(r.TenantID); err != nil {
			return err
		}
		var amount any
		if r.MaxAmount != nil {
			amount = *r.MaxAmount
		}
		if err := t.exec(`
			insert into tokens (id, tenant_id, agent, owner, scopes, action_types, rails, max_amount, currency, created_at, expires_at, revoked_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0)`,
			r.ID, r.TenantID, r.Agent, r.Owner, text(r.Scopes), text(r.ActionTypes), text(r.Rails), amount, r.Currency, t.now, r.ExpiresAt); err != nil {
			return err
		}
		return t.log(ledger.Entry{TenantID: r.TenantID, Object: "token", ObjectID: r.ID, Event: "create", ActorKind: by.Kind, Actor: by.Name,
			Sentence: fmt.Sprintf("A token for agent %s was made.", r.Agent), Fact: text(r.Scopes)})
	})
}

const tokenColumns = `id, tenant_id, agent, owner, scopes, action_types, rails, max_amount, currency, created_at, expires_at, revoked_at`

func scanToken(row scanner) (r ledger.TokenRecord, err error) {
	var scopes, types, rails string
	err = row.Scan(&r.ID, &r.TenantID, &r.Agent, &r.Owner, &scopes, &types, &rails, &r.MaxAmount, &r.Currency, &r.CreatedAt, &r.ExpiresAt, &r.RevokedAt)
	fromText(scopes, &r.Scopes)
	fromText(types, &r.ActionTypes)
	fromText(rails, &r.Rails)
	return r, notFound(err)
}

// Token reads one token's record.
func (s *Store) Token(ctx context.Context, id string) (ledger.TokenRecord, error) {
	return scanToken(s.readers.QueryRowContext(ctx, `select `+tokenColumns+` from tokens where id = $1`, id))
}

// Tokens lists those of a tenant; of every tenant when it is empty.
func (s *Store) Tokens(ctx context.Context, tenant string) ([]ledger.TokenRecord, error) {
	rows, err := s.readers.QueryContext(ctx, `select `+tokenColumns+` from tokens where $1 = '' or tenant_id = $1 order by created_at, id`, tenant)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.TokenRecord, error) { return scanToken(r) })
}

// RevokeToken ends a token at once; what it asked for and was not sent is not
// sent any more.
func (s *Store) RevokeToken(ctx context.Context, id string, by ledger.Holder) error {
	return s.change(ctx, func(t *tx) error {
		r, err := scanToken(t.row(`select `+tokenColumns+` from tokens where id = $1`, id))
		if err != nil {
			return err
		}
		if r.RevokedAt > 0 {
			return nil
		}
		if err := t.exec(`update tokens set revoked_at = $1 where id = $2`, t.now, id); err != nil {
			return err
		}
		return t.log(ledger.Entry{TenantID: r.TenantID, Object: "token", ObjectID: r.ID, Event: "revoke", ActorKind: by.Kind, Actor: by.Name,
			Sentence: fmt.Sprintf("The token of agent %s was revoked.", r.Agent), Fact: "{}"})
	})
}

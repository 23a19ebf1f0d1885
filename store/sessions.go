package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"holdfast/store/ledger"
)

// A session ends when it was idle, or old, for too long.
const (
	sessionIdle = 12 * time.Hour     // a working day, with its lunch
	sessionLife = 7 * 24 * time.Hour // then the password is asked again
	setupLife   = 30 * time.Minute
	setupTries  = 5
)

// secretHash is what is kept of a secret that a browser or a person holds.
func secretHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// StartSession signs a person in and returns the secret for the cookie.
func (s *Store) StartSession(ctx context.Context, p ledger.PersonRecord, userAgent string) (string, error) {
	secret := randomID("") + randomID("")
	return secret, s.change(ctx, func(t *tx) error {
		if err := t.exec(`delete from sessions where expires_at <= $1`, t.now); err != nil {
			return err
		}
		if err := t.exec(`
			insert into sessions (token_hash, person_id, created_at, seen_at, expires_at, user_agent)
			values ($1, $2, $3, $3, $4, $5)`, secretHash(secret), p.ID, t.now, t.now+sessionLife.Milliseconds(), userAgent); err != nil {
			return err
		}
		return t.log(ledger.Entry{TenantID: p.TenantID, Object: "session", ObjectID: p.ID, Event: "sign_in", ActorKind: ledger.Person, Actor: p.Email,
			Sentence: p.Email + " signed in.", Fact: "{}"})
	})
}

// SessionPerson is who a cookie's secret belongs to.
func (s *Store) SessionPerson(ctx context.Context, secret string) (ledger.PersonRecord, error) {
	var seen, signedIn int64
	now := s.now()
	p, err := scanPerson(s.readers.QueryRowContext(ctx, `
		select p.id, p.tenant_id, p.email, p.name, p.roles, p.created_at, p.disabled_at, s.seen_at, s.created_at
		from sessions s join people p on p.id = s.person_id
		where s.token_hash = $1 and s.expires_at > $2 and s.seen_at > $3 and p.disabled_at = 0`,
		secretHash(secret), now, now-sessionIdle.Milliseconds()), &seen, &signedIn)
	p.SignedInAt = signedIn
	if err != nil {
		return p, err
	}
	if now-seen > time.Minute.Milliseconds() { // not on every page: it is a write
		err = s.change(ctx, func(t *tx) error {
			return t.exec(`update sessions set seen_at = $1 where token_hash = $2`, t.now, secretHash(secret))
		})
	}
	return p, err
}

// EndSession signs out.
func (s *Store) EndSession(ctx context.Context, secret string) error {
	return s.change(ctx, func(t *tx) error {
		return t.exec(`delete from sessions where token_hash = $1`, secretHash(secret))
	})
}

// SignInWait is how long this subject (an address or an e-mail) has to wait
// before it may try again: nothing for five tries, then longer each time.
func (s *Store) SignInWait(ctx context.Context, subject string) (time.Duration, error) {
	var count, last int64
	err := notFound(s.readers.QueryRowContext(ctx, `select count, last_at from sign_in_failures where subject = $1`, subject).Scan(&count, &last))
	if errors.Is(err, ErrNotFound) || count < 5 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	wait := min(time.Duration(1<<min(count-5, 10))*5*time.Second, 15*time.Minute)
	left := time.Duration(last-s.now())*time.Millisecond + wait
	return max(left, 0), nil
}

// SignInFailed counts a wrong password; SignInSucceeded forgets them.
func (s *Store) SignInFailed(ctx context.Context, subject string) error {
	return s.change(ctx, func(t *tx) error {
		// What is older counts no more: a flood of made-up addresses does not stay.
		if err := t.exec(`delete from sign_in_failures where last_at < $1`, t.now-time.Hour.Milliseconds()); err != nil {
			return err
		}
		return t.exec(`
			insert into sign_in_failures (subject, count, last_at) values ($1, 1, $2)
			on conflict (subject) do update set last_at = $2, count = sign_in_failures.count + 1`, subject, t.now)
	})
}

// SignInSucceeded forgets the wrong tries of a subject.
func (s *Store) SignInSucceeded(ctx context.Context, subject string) error {
	return s.change(ctx, func(t *tx) error {
		return t.exec(`delete from sign_in_failures where subject = $1`, subject)
	})
}

// setupAlphabet leaves out what is mistaken for something else.
const setupAlphabet = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"

// NewSetupCode makes a one-time code for the set-up page, such as KFQ7-2MXD.
func (s *Store) NewSetupCode(ctx context.Context) (string, error) {
	var raw [8]byte
	rand.Read(raw[:])
	code := make([]byte, 0, 9)
	for i, b := range raw {
		if i == 4 {
			code = append(code, '-')
		}
		code = append(code, setupAlphabet[int(b)%len(setupAlphabet)])
	}
	return string(code), s.change(ctx, func(t *tx) error {
		return t.exec(`insert into setup_codes (code_hash, created_at, expires_at, tries, used_at) values ($1, $2, $3, 0, 0)`,
			secretHash(string(code)), t.now, t.now+setupLife.Milliseconds())
	})
}

// SetUp redeems a set-up code for the first person of the installation. Wrong
// codes count against every open code. The code is used up and the person made in
// one commit, so that two codes never make two first people.
func (s *Store) SetUp(ctx context.Context, code string, p ledger.PersonRecord, passwordHash string) (ledger.PersonRecord, error) {
	good := false
	err := s.change(ctx, func(t *tx) error {
		var people int
		if err := t.row(`select count(*) from (select 1 from people limit 1) as one`).Scan(&people); err != nil {
			return err
		}
		if people > 0 {
			return fmt.Errorf("%w: somebody is set up already; sign in, or ask them", ErrForbidden)
		}
		n, err := t.affected(`update setup_codes set used_at = $1 where code_hash = $2 and used_at = 0 and expires_at > $1 and tries < $3`,
			t.now, secretHash(code), setupTries)
		if err != nil {
			return err
		}
		if good = n == 1; !good { // counted, so this is no error of the change
			return t.exec(`update setup_codes set tries = tries + 1 where used_at = 0`)
		}
		p, err = t.addPerson(p, passwordHash, ledger.Holder{Kind: ledger.Person, Name: NormalEmail(p.Email)})
		return err
	})
	if err == nil && !good {
		err = fmt.Errorf("%w: that code is not good: it is wrong, used, or older than 30 minutes; make another with holdfast setup-link", ErrForbidden)
	}
	return p, err
}

// HasPeople reports whether anybody is set up at all.
func (s *Store) HasPeople(ctx context.Context) (bool, error) {
	var n int
	err := s.readers.QueryRowContext(ctx, `select count(*) from (select 1 from people limit 1) as some`).Scan(&n)
	return n > 0, err
}

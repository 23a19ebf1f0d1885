package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
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
func (s *Store) StartSession(ctx context.Context, p ledger.PersonRecord, from ledger.Session) (string, error) {
	secret := randomID("") + randomID("")
	return secret, s.change(ctx, func(t *tx) error {
		if err := t.exec(`delete from sessions where expires_at <= $1`, t.now); err != nil {
			return err
		}
		if err := t.exec(`
			insert into sessions (token_hash, person_id, created_at, seen_at, expires_at, user_agent, address, proved_at, proved_with)
			values ($1, $2, $3, $3, $4, $5, $6, $3, $7)`,
			secretHash(secret), p.ID, t.now, t.now+sessionLife.Milliseconds(), from.UserAgent, from.Address, from.ProvedWith); err != nil {
			return err
		}
		if err := t.exec(`update people set signed_in_at = $1 where id = $2`, t.now, p.ID); err != nil {
			return err
		}
		return t.log(ledger.Entry{TenantID: p.TenantID, Object: "session", ObjectID: p.ID, Event: "sign_in", ActorKind: ledger.Person, Actor: p.Email,
			Sentence: p.Email + " signed in.", Fact: "{}"})
	})
}

// RenewSession notes that the person of a session showed once more who they are,
// and gives the session another secret: what was known before opens nothing.
func (s *Store) RenewSession(ctx context.Context, old string, p ledger.PersonRecord, with ledger.Factor) (string, error) {
	secret := randomID("") + randomID("")
	return secret, s.change(ctx, func(t *tx) error {
		n, err := t.affected(`update sessions set token_hash = $1, proved_at = $2, proved_with = $3, seen_at = $2 where token_hash = $4 and person_id = $5`,
			secretHash(secret), t.now, with, secretHash(old), p.ID)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		return t.log(ledger.Entry{TenantID: p.TenantID, Object: "session", ObjectID: p.ID, Event: "prove", ActorKind: ledger.Person, Actor: p.Email,
			Sentence: p.Email + " showed once more who they are.", Fact: text(map[string]any{"with": with})})
	})
}

// SessionPerson is who a cookie's secret belongs to.
func (s *Store) SessionPerson(ctx context.Context, secret string) (ledger.PersonRecord, error) {
	var seen, proved int64
	var with ledger.Factor
	now := s.now()
	p, err := scanPerson(s.readers.QueryRowContext(ctx, `
		select `+personColumns+`, sessions.seen_at, sessions.proved_at, sessions.proved_with
		from sessions join people on people.id = sessions.person_id
		where sessions.token_hash = $1 and sessions.expires_at > $2 and sessions.seen_at > $3 and people.disabled_at = 0`,
		secretHash(secret), now, now-sessionIdle.Milliseconds()), &seen, &proved, &with)
	p.SignedInAt, p.ProvedWith = proved, with
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

// sessionID names a session on a page: a part of the hash, which opens nothing.
const sessionID = `substr(token_hash, 1, 16)`

// Sessions lists a person's open ones, the last seen first. current is the secret
// of the one that asks.
func (s *Store) Sessions(ctx context.Context, p ledger.PersonRecord, current string) ([]ledger.Session, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+sessionID+`, user_agent, address, proved_with, created_at, seen_at, token_hash = $1
		from sessions where person_id = $2 and expires_at > $3 and seen_at > $4 order by seen_at desc, token_hash`,
		secretHash(current), p.ID, s.now(), s.now()-sessionIdle.Milliseconds())
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (o ledger.Session, err error) {
		err = r.Scan(&o.ID, &o.UserAgent, &o.Address, &o.ProvedWith, &o.CreatedAt, &o.SeenAt, &o.Current)
		return o, err
	})
}

// EndSession signs out.
func (s *Store) EndSession(ctx context.Context, secret string) error {
	return s.change(ctx, func(t *tx) error {
		return t.exec(`delete from sessions where token_hash = $1`, secretHash(secret))
	})
}

// EndOwnSession ends one of a person's own sessions, by its name on the page.
func (s *Store) EndOwnSession(ctx context.Context, p ledger.PersonRecord, id string) error {
	return s.change(ctx, func(t *tx) error {
		n, err := t.affected(`delete from sessions where person_id = $1 and `+sessionID+` = $2`, p.ID, id)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		return t.logPerson(p, "end_session", ledger.Holder{Kind: ledger.Person, Name: p.Email}, p.Email+" ended a session of theirs.", nil)
	})
}

// EndOtherSessions ends all of a person's sessions but the one whose secret is
// given.
func (s *Store) EndOtherSessions(ctx context.Context, p ledger.PersonRecord, keep string) error {
	return s.change(ctx, func(t *tx) error {
		if err := t.endSessions(p.ID, keep); err != nil {
			return err
		}
		return t.logPerson(p, "end_session", ledger.Holder{Kind: ledger.Person, Name: p.Email}, p.Email+" ended their other sessions.", nil)
	})
}

// endSessions ends a person's sessions, also those that are half begun. One may
// be kept, by its secret.
func (t *tx) endSessions(personID, keep string) error {
	if err := t.exec(`delete from half_sign_ins where person_id = $1`, personID); err != nil {
		return err
	}
	return t.exec(`delete from sessions where person_id = $1 and token_hash <> $2`, personID, secretHash(keep))
}

// BeginSignIn remembers that somebody typed the right password, and returns the
// secret under which the second factor may follow.
func (s *Store) BeginSignIn(ctx context.Context, p ledger.PersonRecord) (string, error) {
	secret := randomID("") + randomID("")
	return secret, s.change(ctx, func(t *tx) error {
		if err := t.exec(`delete from half_sign_ins where expires_at <= $1`, t.now); err != nil {
			return err
		}
		return t.exec(`insert into half_sign_ins (token_hash, person_id, expires_at) values ($1, $2, $3)`, secretHash(secret), p.ID, t.now+ledger.FreshFor.Milliseconds())
	})
}

// HalfSignedIn is who has still to show the second factor.
func (s *Store) HalfSignedIn(ctx context.Context, secret string) (ledger.PersonRecord, error) {
	return scanPerson(s.readers.QueryRowContext(ctx, `
		select `+personColumns+` from half_sign_ins join people on people.id = half_sign_ins.person_id
		where half_sign_ins.token_hash = $1 and half_sign_ins.expires_at > $2 and people.disabled_at = 0`, secretHash(secret), s.now()))
}

// EndHalfSignIn uses a half sign-in up; a second time it is ErrNotFound.
func (s *Store) EndHalfSignIn(ctx context.Context, secret string) error {
	return s.change(ctx, func(t *tx) error {
		n, err := t.affected(`delete from half_sign_ins where token_hash = $1`, secretHash(secret))
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		return err
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

// setupText is eight random characters in two halves: 39 bits.
func setupText() string {
	var raw [8]byte
	rand.Read(raw[:])
	code := make([]byte, 0, 9)
	for i, b := range raw {
		if i == 4 {
			code = append(code, '-')
		}
		code = append(code, setupAlphabet[int(b)%len(setupAlphabet)])
	}
	return string(code)
}

// NewSetupCode makes a one-time code for the set-up page, such as KFQ7-2MXD.
func (s *Store) NewSetupCode(ctx context.Context) (string, error) {
	code := setupText()
	return code, s.change(ctx, func(t *tx) error {
		return t.exec(`insert into setup_codes (code_hash, created_at, expires_at, tries, used_at) values ($1, $2, $3, 0, 0)`,
			secretHash(code), t.now, t.now+setupLife.Milliseconds())
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

package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"holdfast/store/ledger"
)

// recoveryCodes is how many are handed out at once.
const recoveryCodes = 10

// OfferSecondFactor makes the secret that an app and holdfast will share. It
// counts from the first code that fits; until then another offer replaces it.
func (s *Store) OfferSecondFactor(ctx context.Context, p ledger.PersonRecord) ([]byte, error) {
	secret := make([]byte, ledger.SecretSize)
	rand.Read(secret)
	return secret, s.change(ctx, func(t *tx) error {
		n, err := t.affected(`update people set factor_secret = $1, factor_step = 0 where id = $2 and factor_at = 0 and disabled_at = 0`, secret, p.ID)
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: there is a second factor already", ErrForbidden)
		}
		return err
	})
}

// ConfirmSecondFactor turns the offered one on with a first code, and returns the
// recovery codes. Sessions that were proved without it end, but the one whose
// secret is kept, which is proved by now. No code fits: ErrNotFound.
func (s *Store) ConfirmSecondFactor(ctx context.Context, p ledger.PersonRecord, code, keep string) ([]string, error) {
	var codes []string
	err := s.change(ctx, func(t *tx) error {
		secret, last, err := t.factor(p.ID)
		if err != nil {
			return err
		}
		if p, err = t.person(p.ID); err != nil {
			return err
		}
		if p.SecondFactorAt > 0 {
			return fmt.Errorf("%w: there is a second factor already", ErrForbidden)
		}
		step, good := ledger.CheckCode(secret, code, t.now, last)
		if !good {
			return ErrNotFound
		}
		if err := t.exec(`update people set factor_at = $1, factor_step = $2 where id = $3`, t.now, step, p.ID); err != nil {
			return err
		}
		if err := t.exec(`delete from recovery_codes where person_id = $1`, p.ID); err != nil {
			return err
		}
		for range recoveryCodes {
			code := setupText() + "-" + setupText()
			codes = append(codes, code)
			if err := t.exec(`insert into recovery_codes (code_hash, person_id, used_at) values ($1, $2, 0)`, recoveryHash(p.ID, code), p.ID); err != nil {
				return err
			}
		}
		if err := t.endSessions(p.ID, keep); err != nil {
			return err
		}
		return t.logPerson(p, "set_second_factor", ledger.Holder{Kind: ledger.Person, Name: p.Email}, p.Email+" set up a second factor.", nil)
	})
	return codes, err
}

// ProveSecondFactor uses up a code of the app, or a recovery code, and reports
// whether it was good.
func (s *Store) ProveSecondFactor(ctx context.Context, p ledger.PersonRecord, typed string) (good bool, err error) {
	err = s.change(ctx, func(t *tx) (err error) {
		good, err = t.prove(p, typed)
		return err
	})
	return good, err
}

func (t *tx) prove(p ledger.PersonRecord, typed string) (bool, error) {
	p, err := t.person(p.ID)
	if err != nil || p.SecondFactorAt == 0 || p.DisabledAt > 0 {
		return false, err
	}
	secret, last, err := t.factor(p.ID)
	if err != nil {
		return false, err
	}
	if step, good := ledger.CheckCode(secret, strings.ReplaceAll(typed, " ", ""), t.now, last); good {
		return true, t.exec(`update people set factor_step = $1 where id = $2`, step, p.ID)
	}
	n, err := t.affected(`update recovery_codes set used_at = $1 where code_hash = $2 and person_id = $3 and used_at = 0`, t.now, recoveryHash(p.ID, typed), p.ID)
	if err != nil || n == 0 {
		return false, err
	}
	return true, t.logPerson(p, "use_recovery_code", ledger.Holder{Kind: ledger.Person, Name: p.Email}, p.Email+" used a recovery code.", nil)
}

// DropSecondFactor takes a person's own second factor away, for a code of it.
func (s *Store) DropSecondFactor(ctx context.Context, p ledger.PersonRecord, typed, keep string) (good bool, err error) {
	err = s.change(ctx, func(t *tx) error {
		if good, err = t.prove(p, typed); err != nil || !good {
			return err
		}
		if err := t.dropFactor(p.ID); err != nil {
			return err
		}
		if err := t.endSessions(p.ID, keep); err != nil {
			return err
		}
		return t.logPerson(p, "drop_second_factor", ledger.Holder{Kind: ledger.Person, Name: p.Email}, p.Email+" took their second factor away.", nil)
	})
	return good, err
}

// RecoveryCodesLeft counts the unused ones.
func (s *Store) RecoveryCodesLeft(ctx context.Context, p ledger.PersonRecord) (n int, err error) {
	err = s.readers.QueryRowContext(ctx, `select count(*) from recovery_codes where person_id = $1 and used_at = 0`, p.ID).Scan(&n)
	return n, err
}

func (t *tx) factor(personID string) (secret []byte, last int64, err error) {
	err = t.row(`select factor_secret, factor_step from people where id = $1`, personID).Scan(&secret, &last)
	return secret, last, notFound(err)
}

func (t *tx) dropFactor(personID string) error {
	if err := t.exec(`update people set factor_secret = null, factor_at = 0, factor_step = 0 where id = $1`, personID); err != nil {
		return err
	}
	return t.exec(`delete from recovery_codes where person_id = $1`, personID)
}

// recoveryHash is what is kept of a recovery code. It has 79 random bits: a slow
// hash would add nothing.
func recoveryHash(personID, code string) string {
	plain := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToUpper(code))
	return secretHash(personID + " " + plain)
}

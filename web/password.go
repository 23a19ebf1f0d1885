package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// Passwords are bounded by length alone: no rule about digits or signs, which
// only make people write "Password1!".
const (
	minPassword    = 15 // characters; it is the only factor
	besidePassword = 8  // beside a second factor, which a guesser does not have
	maxPassword    = 200
)

// cost is what one guess costs. 19 MiB twice is what OWASP asks of Argon2id,
// and leaves a small machine room for its other work.
var cost = argon{memory: 19 << 10, passes: 2, lanes: 1}

type argon struct {
	memory uint32 // KiB
	passes uint32
	lanes  uint8
}

// hashing lets two passwords be hashed at once; the others wait their turn, so
// that a flood of guesses eats neither memory nor both cores.
var hashing = make(chan struct{}, 2)

// takeTurn waits until a password may be hashed, and gives the turn back at the end.
func takeTurn(ctx context.Context) (end func(), err error) {
	select {
	case hashing <- struct{}{}:
		return func() { <-hashing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// HashPassword is what is kept of a password: Argon2id in PHC string form.
func HashPassword(password string) (string, error) {
	end, err := takeTurn(context.Background())
	if err != nil {
		return "", err
	}
	defer end()
	salt := make([]byte, 16)
	rand.Read(salt)
	sum := cost.sum(password, salt, 32)
	return cost.phc(salt, sum), nil
}

func (a argon) phc(salt, sum []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, a.memory, a.passes, a.lanes, b64.EncodeToString(salt), b64.EncodeToString(sum))
}

var b64 = base64.RawStdEncoding

// sum hashes the NFC form: the same password typed on another keyboard is the
// same password.
func (a argon) sum(password string, salt []byte, length uint32) []byte {
	return argon2.IDKey([]byte(norm.NFC.String(password)), salt, a.passes, a.memory, a.lanes, length)
}

// stranger is a hash that no password fits: whoever is not set up, or has no
// password, costs the same work as whoever has one.
var stranger = sync.OnceValue(func() string {
	var nobody [32]byte
	rand.Read(nobody[:])
	return cost.phc(nobody[:16], nobody[:])
})

// fits reports whether a password belongs to a hash. The caller holds a turn.
func fits(password, kept string) bool {
	known := kept != ""
	if !known {
		kept = stranger()
	}
	a, salt, sum, err := parsePHC(kept)
	if err != nil {
		known = false
		a, salt, sum, _ = parsePHC(stranger())
	}
	same := subtle.ConstantTimeCompare(a.sum(password, salt, uint32(len(sum))), sum) == 1
	return same && known
}

func parsePHC(text string) (a argon, salt, sum []byte, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return a, nil, nil, errors.New("the stored password hash is not one of Argon2id")
	}
	if _, err = fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &a.memory, &a.passes, &a.lanes); err != nil {
		return a, nil, nil, err
	}
	if salt, err = b64.DecodeString(parts[4]); err != nil {
		return a, nil, nil, err
	}
	sum, err = b64.DecodeString(parts[5])
	if err == nil && (a.memory > 1<<20 || a.passes < 1 || a.passes > 100 || a.lanes < 1 || len(sum) < 16 || len(sum) > 64) {
		err = errors.New("the stored password hash has costs that nobody asked for")
	}
	return a, salt, sum, err
}

// PasswordProblem says what is wrong with a new password, in a sentence for the
// one who chose it; empty if it may be used.
func PasswordProblem(password, email, name string) string {
	return passwordProblem(password, email, name, minPassword)
}

// passwordProblem is PasswordProblem for a password of at least so many characters.
func passwordProblem(password, email, name string, least int) string {
	password = norm.NFC.String(password)
	length := utf8.RuneCountInString(password)
	switch {
	case !utf8.ValidString(password):
		return "The password has bytes that are no text. Type it again."
	case length < least:
		return fmt.Sprintf("The password has %d characters and needs at least %d. A few words in a row are fine.", length, least)
	case length > maxPassword:
		return fmt.Sprintf("The password has %d characters; at most %d are read.", length, maxPassword)
	case isCommon(password, least):
		return "That password is on every list of guesses. Choose another; a few words of your own in a row are fine."
	case isAbout(password, email, name):
		return "That password is little more than your name, your e-mail or holdfast. Choose another; a few words of your own in a row are fine."
	}
	return ""
}

// isShort reports whether a password is good beside a second factor only.
func isShort(password string) bool {
	return utf8.RuneCountInString(norm.NFC.String(password)) < minPassword
}

// commonPasswords are those that guessers try first, long ones before short ones, a
// line each, as plain makes them.
//
//go:embed passwords.txt
var commonPasswords string

var common = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, p := range strings.Fields(commonPasswords) {
		all[p] = true
	}
	return all
})

// plain drops what people add to a word to please a rule.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// runsOfKeys are rows that fingers walk along, forwards or backwards.
var runsOfKeys = []string{"01234567890123456789012345678901234567890", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
	"qwertyuiopasdfghjklzxcvbnm", "qwertzuiopasdfghjklyxcvbnm", "azertyuiopqsdfghjklmwxcvbn", "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p"}

func isCommon(password string, least int) bool {
	if repeats(password) {
		return true
	}
	p := plain(password)
	if utf8.RuneCountInString(p) < least*2/3 {
		return false // most of it is signs, and no list has those
	}
	if common()[p] || common()[strings.TrimRight(p, "0123456789")] || repeats(p) {
		return true
	}
	return slices.ContainsFunc(runsOfKeys, func(row string) bool { return strings.Contains(row, p) || strings.Contains(row, reversed(p)) })
}

// repeats reports whether a text is one short piece again and again.
func repeats(s string) bool {
	runes := []rune(s)
	for size := 1; size <= len(runes)/2 && size <= 8; size++ {
		again := true
		for i := size; i < len(runes) && again; i++ {
			again = runes[i] == runes[i-size]
		}
		if again {
			return true
		}
	}
	return false
}

func reversed(s string) string {
	runes := []rune(s)
	slices.Reverse(runes)
	return string(runes)
}

// isAbout reports whether little is left of a password without the words that a
// guesser knows about its owner.
func isAbout(password, email, name string) bool {
	known := append([]string{"holdfast", "password"}, strings.FieldsFunc(email+" "+name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })...)
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) })
	left := plain(password)
	for _, word := range known {
		if word = plain(word); utf8.RuneCountInString(word) >= 3 {
			left = strings.ReplaceAll(left, word, "")
		}
	}
	left = strings.Trim(left, "0123456789")
	return utf8.RuneCountInString(left) < 6 && left != plain(password)
}

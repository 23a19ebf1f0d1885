package ledger

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
)

// One-time codes after RFC 6238, with the numbers that every authenticator app
// takes for granted: SHA-1, six digits, 30 seconds. (That SHA-1 collides does not
// matter to an HMAC.)
const (
	codeStep   = 30_000 // milliseconds
	codeWindow = 1      // steps that a phone's clock may be off, either way
)

// SecretSize is 160 bits, as RFC 4226 recommends.
const SecretSize = 20

var base32Plain = base32.StdEncoding.WithPadding(base32.NoPadding)

// codeAt is the code of one step.
func codeAt(secret []byte, step int64) string {
	mac := hmac.New(sha1.New, secret)
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step))
	mac.Write(counter[:])
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0xf
	n := binary.BigEndian.Uint32(sum[at:at+4]) & 0x7fffffff
	return fmt.Sprintf("%06d", n%1_000_000)
}

// CodeNow is the code that an app shows at a moment.
func CodeNow(secret []byte, now int64) string { return codeAt(secret, now/codeStep) }

// CheckCode finds the step of a code that is good now. A code counts once: one of
// the last step that counted, or of an earlier one, is no good any more.
func CheckCode(secret []byte, code string, now, last int64) (step int64, good bool) {
	for s := now/codeStep - codeWindow; s <= now/codeStep+codeWindow; s++ {
		if subtle.ConstantTimeCompare([]byte(codeAt(secret, s)), []byte(code)) == 1 && s > last && len(secret) > 0 {
			step, good = s, true
		}
	}
	return step, good
}

// SecretText is a secret as it is typed into an app, in fours.
func SecretText(secret []byte) string {
	text := base32Plain.EncodeToString(secret)
	var fours []string
	for len(text) > 4 {
		fours, text = append(fours, text[:4]), text[4:]
	}
	return strings.Join(append(fours, text), " ")
}

// SecretURL is a secret as an app reads it from a picture.
func SecretURL(secret []byte, email, issuer string) string {
	q := url.Values{"secret": {base32Plain.EncodeToString(secret)}, "issuer": {issuer}}
	return "otpauth://totp/" + url.PathEscape(issuer) + ":" + url.PathEscape(email) + "?" + strings.ReplaceAll(q.Encode(), "+", "%20")
}

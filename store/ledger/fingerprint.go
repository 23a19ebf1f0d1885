package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// RuleSet names the rules by which a payload becomes the bytes that are hashed:
// normalisation, RFC 8785, and which members are left out. A rule that changes
// gets a new name here; operations keep the name they were registered under.
const RuleSet = "hf1"

const fingerprintPrefix = RuleSet + ":sha256:"

// Fingerprint names the canonical form of an action. Two submissions are the
// same request exactly when their fingerprints are equal.
func Fingerprint(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return fingerprintPrefix + hex.EncodeToString(sum[:])
}

// fingerprintSum gives the hash back; not ok if s is no fingerprint.
func fingerprintSum(s string) (sum [sha256.Size]byte, ok bool) {
	digits, ok := strings.CutPrefix(s, fingerprintPrefix)
	if !ok || len(digits) != 2*len(sum) || digits != strings.ToLower(digits) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(digits))
	return sum, err == nil
}

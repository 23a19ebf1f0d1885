package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// leastDigits is how many digits of a fingerprint are worth looking for: fewer
// fit too many, and are more likely somebody's number.
const leastDigits = 6

// FingerprintRange reads what people paste or say of a fingerprint: all of it, how
// it begins, with or without its rule set and in groups of four, or its three
// words. Those that fit are from the first string on and before the second; not
// ok if it is nothing of a fingerprint.
func FingerprintRange(said string) (from, before string, ok bool) {
	said = strings.ToLower(strings.TrimSpace(said))
	if first, last, ok := spoken(said); ok {
		return fingerprintPrefix + first, fingerprintPrefix + last, true
	}
	digits, named := strings.CutPrefix(said, fingerprintPrefix)
	digits = strings.Join(strings.Fields(strings.TrimRight(digits, "… .")), "")
	if len(digits) > 64 || strings.Trim(digits, "0123456789abcdef") != "" || len(digits) < leastDigits && !(named && digits != "") {
		return "", "", false
	}
	return fingerprintPrefix + digits, fingerprintPrefix + digits + "g", true // g follows every digit
}

// spoken turns three words into the digits that they stand for: thirty bits, and
// any two after them.
func spoken(said string) (first, last string, ok bool) {
	three := strings.FieldsFunc(said, func(r rune) bool { return r == '-' || r == ' ' || r == '\u00a0' })
	if len(three) != 3 {
		return "", "", false
	}
	bits := uint32(0)
	for _, word := range three {
		i := slices.Index(words, word)
		if i < 0 {
			return "", "", false
		}
		bits = bits<<10 | uint32(i)
	}
	return fmt.Sprintf("%08x", bits<<2), fmt.Sprintf("%08xg", bits<<2|3), true
}

package ledger

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// KnownAs is the reference by which an operation is found and compared, whether
// it came in the payload or with the intent.
func (o Operation) KnownAs() string {
	if o.ReferenceKey != "" {
		return o.ReferenceKey
	}
	return ReferenceKey(o.Terms.Reference)
}

// ReferenceKey is a reference as overlap compares it. An agent that names the
// same invoice again writes INV-481, inv-481 or "INV-481 " as it comes; what is
// sent keeps the spelling that was given.
func ReferenceKey(reference string) string {
	shown := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1 // no width, no meaning
		}
		return r
	}, norm.NFKC.String(reference))
	return strings.ToLower(strings.Join(strings.Fields(shown), " "))
}

// ProofKey is the proof of a payment as two are compared: one that is written with
// other blanks, capitals or invisible characters is the same one, and counts once.
func ProofKey(proof string) string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, ReferenceKey(proof))
	return strings.ReplaceAll(plain, " ", "")
}

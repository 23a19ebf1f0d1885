package rail

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/store/ledger"
)

// boundAccount is the account as the ledger binds operations to it: its name,
// and a mark of what else makes the provider take a request for another
// account's. Where a key is remembered for a credential, that is the credential;
// everywhere it is what the configuration writes into headers itself, such as
// Stripe-Account. A mark is too short to tell what it is made of.
func (c Config) boundAccount() string {
	if c.Dedupe.Scope == scopeCredential && c.resends() {
		return strings.TrimSpace(c.Account + " credential " + mark(c.credentialLines()))
	}
	if lines := c.writtenLines(); lines != nil {
		return strings.TrimSpace(c.Account + " headers " + mark(lines))
	}
	return c.Account
}

// resends reports whether anything is ever sent again by itself. Where nothing
// is, credentials need not be told apart.
func (c Config) resends() bool {
	return c.Dedupe.By == string(ledger.DedupeNatural) || c.Dedupe.Retention.Or(0) > 0
}

func mark(lines []string) string {
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:3])
}

// credentialLines are all that shows the provider who asks: every header, what
// auth becomes, and the certificate, of which the public part names it.
func (c Config) credentialLines() (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		lines = append(lines, headerLine(name, c.Headers[name]))
	}
	if c.Auth.given() {
		h := c.Auth.header()
		lines = append(lines, headerLine(h.name, h.value))
	}
	if block, _ := pem.Decode([]byte(c.TLS.Cert.text.reveal())); block != nil {
		lines = append(lines, fmt.Sprintf("certificate %x\n", block.Bytes))
	}
	return lines
}

// ofTheAnswer are headers that say how the answer is written, or who made the
// request, and never for which account it is. A written Authorization is left
// out too: it is the credential, which may rotate under one account.
var ofTheAnswer = []string{"accept", "accept-language", "authorization", "content-type", "prefer", "user-agent"}

// writtenLines are the headers whose text the configuration holds itself. What
// comes out of ${…} is taken for a secret, and what a profile adds is the same
// for every account.
func (c Config) writtenLines() (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		if c.Headers[name].written && !slices.Contains(ofTheAnswer, strings.ToLower(name)) {
			lines = append(lines, headerLine(name, c.Headers[name]))
		}
	}
	return lines
}

func headerLine(name string, value Secret) string {
	return fmt.Sprintf("%q: %q\n", strings.ToLower(name), value.reveal())
}

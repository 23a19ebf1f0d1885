package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// AccountName writes any text as one part of an account's name that hledger and
// beancount both take: letters, digits and dashes, a capital or a digit first.
// ReadAccountName gives the text back, so that two texts never share an account.
//
// A small first letter is written as a capital; any other beginning is written
// after "0-". Inside, a dash is two dashes, and every other byte that is neither
// letter nor digit is a dash and two hexadecimal digits.
func AccountName(text string) string {
	if text != "" && text[0] >= 'a' && text[0] <= 'z' {
		return string(text[0]-'a'+'A') + escapeName(text[1:])
	}
	return "0-" + escapeName(text)
}

func escapeName(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			b.WriteByte(c)
		case c == '-':
			b.WriteString("--")
		default:
			fmt.Fprintf(&b, "-%02x", c)
		}
	}
	return b.String()
}

var errNotAName = errors.New("no name of an account is written like this")

// ReadAccountName is the text that AccountName wrote.
func ReadAccountName(name string) (string, error) {
	rest, other := strings.CutPrefix(name, "0-")
	var text []byte
	if !other {
		if rest == "" || rest[0] < 'A' || rest[0] > 'Z' {
			return "", errNotAName
		}
		text, rest = append(text, rest[0]-'A'+'a'), rest[1:]
	}
	for rest != "" {
		if rest[0] != '-' {
			text, rest = append(text, rest[0]), rest[1:]
			continue
		}
		if strings.HasPrefix(rest, "--") {
			text, rest = append(text, '-'), rest[2:]
			continue
		}
		if len(rest) < 3 {
			return "", errNotAName
		}
		c, err := hex.DecodeString(rest[1:3])
		if err != nil {
			return "", errNotAName
		}
		text, rest = append(text, c...), rest[3:]
	}
	return string(text), nil
}

// Commodity is a currency's name in the books: its code where tools take that one
// and its digits are known. Any other is named by a hash of it, and its amounts
// are in minor units; exact tells the two apart.
func (c Currencies) Commodity(code string) (name string, exact bool) {
	_, known := c.Digits(code)
	if known && isCode(code) && code[0] > '9' {
		return code, true
	}
	sum := sha256.Sum256([]byte(code))
	return "X-" + strings.ToUpper(hex.EncodeToString(sum[:8])), known
}

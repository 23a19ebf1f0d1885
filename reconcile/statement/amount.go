package statement

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast/store/ledger"
)

// number is an amount as a file writes it, taken apart but not yet judged: its
// marks still have to be told apart.
type number struct {
	digits   string // with . and , as written; no other marks
	negative bool
	signed   bool // the file said which way, with a sign, brackets or a word
	currency string
}

// symbols are the signs that people put before money, with the currencies that
// each may mean.
var symbols = map[string][]string{
	"$": {"USD", "CAD", "AUD", "NZD", "HKD", "SGD", "MXN", "TWD", "BRL", "CLP", "COP", "ARS"},
	"€": {"EUR"}, "£": {"GBP", "FKP", "GIP", "SHP", "EGP"}, "¥": {"JPY", "CNY"}, "₹": {"INR"},
}

var marks = []string{"$", "€", "£", "¥", "₹"} // in a fixed order, so that the same text is read the same way

var directions = map[string]bool{ // true: went out
	"d": true, "dr": true, "dbit": true, "debit": true, "s": true, "soll": true,
	"c": false, "cr": false, "crdt": false, "credit": false, "h": false, "haben": false,
}

// spaces are what stands between thousands: blanks of several widths and apostrophes.
var spaces = strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "", "\u2009", "", "'", "", "’", "")

var errAmount = errors.New("this is no amount that can be read for certain")

// readNumber takes an amount apart. Each sign may be said once only: "-5.00 DR"
// could be five in or five out.
func readNumber(s string) (n number, err error) {
	s = strings.TrimSpace(strings.ReplaceAll(s, "−", "-"))
	if plainNumber(s) {
		n.digits, n.negative = strings.CutPrefix(s, "-")
		n.signed = n.negative
		return n, nil
	}
	signs := 0
	sign := func(negative bool) { signs++; n.signed, n.negative = true, n.negative || negative }
	symbol := func(code string) bool {
		if n.currency != "" {
			return false
		}
		n.currency = code
		return true
	}
	for again := true; again && s != ""; {
		again = false
		s = strings.TrimSpace(s)
		for _, mark := range marks {
			if rest, ok := strings.CutPrefix(s, mark); ok && symbol(mark) {
				s, again = strings.TrimSpace(rest), true
			}
			if rest, ok := strings.CutSuffix(s, mark); ok && symbol(mark) {
				s, again = strings.TrimSpace(rest), true
			}
		}
		switch {
		case s == "":
		case strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")"):
			s, again = s[1:len(s)-1], true
			sign(true)
		case s[0] == '-' || s[0] == '+':
			sign(s[0] == '-')
			s, again = s[1:], true
		case s[len(s)-1] == '-' || s[len(s)-1] == '+':
			sign(s[len(s)-1] == '-')
			s, again = s[:len(s)-1], true
		default:
			if rest, word := lastWord(s); word != "" {
				if out, known := directions[strings.ToLower(word)]; known {
					sign(out)
					s, again = rest, true
				} else if len(word) == 3 && strings.ToUpper(word) == word && symbol(word) {
					s, again = rest, true
				}
			} else if len(s) > 3 && upper(s[:3]) && symbol(s[:3]) {
				s, again = s[3:], true
			}
		}
	}
	s, err = ungroup(s)
	if err != nil || signs > 1 {
		return n, errAmount
	}
	n.digits = s
	return n, nil
}

// plainNumber is the usual case, which needs no taking apart: -1250.00.
func plainNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	if s == "" || s[0] < '0' || s[0] > '9' {
		return false
	}
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && s[i] != '.' {
			return false
		}
	}
	return strings.Count(s, ".") <= 1 && s[len(s)-1] != '.'
}

func upper(s string) bool { return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" }

// lastWord cuts off the letters at the end.
func lastWord(s string) (rest, word string) {
	i := len(s)
	for i > 0 && (s[i-1]|0x20) >= 'a' && (s[i-1]|0x20) <= 'z' {
		i--
	}
	return s[:i], s[i:]
}

// ungroup takes blanks and apostrophes from between thousands, where they stand
// right: never out of "12 34".
func ungroup(s string) (string, error) {
	bare := spaces.Replace(s)
	if bare == "" || strings.Trim(bare, "0123456789.,") != "" || bare[0] == '.' || bare[0] == ',' || strings.Trim(bare[len(bare)-1:], "0123456789") != "" {
		return "", errAmount
	}
	for i := 1; i < len(bare); i++ {
		if bare[i] < '0' && bare[i-1] < '0' { // two marks side by side
			return "", errAmount
		}
	}
	if bare == s {
		return s, nil
	}
	whole := s
	if i := strings.LastIndexAny(s, ".,"); i >= 0 {
		whole = s[:i]
	}
	group := ""
	for _, r := range whole {
		if r >= '0' && r <= '9' {
			continue
		}
		if group == "" {
			group = string(r)
		}
		if string(r) != group {
			return "", errAmount
		}
	}
	if !grouped(strings.Split(whole, group)) || len(spaces.Replace(s[len(whole):])) != len(s)-len(whole) {
		return "", errAmount
	}
	return bare, nil
}

// grouped are digits in threes: 1 to 3, then always 3.
func grouped(parts []string) bool {
	for i, p := range parts {
		if len(p) == 0 || len(p) > 3 || i > 0 && len(p) != 3 {
			return false
		}
	}
	return true
}

// The decimal marks.
const (
	decimalPoint = "point"
	decimalComma = "comma"
)

// markOf tells which mark is the decimal one. Both "" and open false: the number
// has no mark. open: it may be either, such as 1,234.
func markOf(digits string) (mark string, open bool, err error) {
	dot, comma := strings.Count(digits, "."), strings.Count(digits, ",")
	lastDot, lastComma := strings.LastIndexByte(digits, '.'), strings.LastIndexByte(digits, ',')
	switch {
	case dot == 0 && comma == 0:
		return "", false, nil
	case dot > 1 && comma > 1:
		return "", false, errAmount
	case dot > 0 && comma > 0 && lastDot > lastComma || dot == 0 && comma > 1:
		return decimalPoint, false, nil
	case dot > 0 && comma > 0 || dot > 1:
		return decimalComma, false, nil
	}
	at, mark := lastDot, decimalPoint
	if comma == 1 {
		at, mark = lastComma, decimalComma
	}
	if len(digits)-at-1 == 3 && at <= 3 && digits[0] != '0' {
		return mark, true, nil
	}
	return mark, false, nil
}

// minorUnits reads an amount, exactly. mark is the file's decimal mark, empty
// where no number of the file has one; minor: the file counts in minor units.
func (n number) minorUnits(mark string, minor bool, currency string, known ledger.Currencies) (int64, error) {
	digits, ok := known.Digits(currency)
	if !ok {
		return 0, fmt.Errorf("the currency %q is not known. Use an ISO 4217 code, or configure it", currency)
	}
	if n.currency != "" && n.currency != currency {
		if may, symbol := symbols[n.currency]; !symbol || !slices.Contains(may, currency) {
			return 0, fmt.Errorf("the amount is marked %s, but its currency is %s", n.currency, currency)
		}
	}
	plain := n.digits
	if minor {
		if strings.ContainsAny(plain, ".,") {
			return 0, errors.New("the amount has a mark, but this file is said to count in minor units. Write amounts: decimal if it does not")
		}
		digits = 0
	} else {
		group, point := ",", "."
		if mark == decimalComma {
			group, point = ".", ","
		}
		whole, fraction, _ := strings.Cut(plain, point)
		if strings.Contains(fraction, group) || strings.Contains(fraction, point) || strings.Contains(whole, group) && !grouped(strings.Split(whole, group)) {
			return 0, errAmount
		}
		plain = strings.ReplaceAll(whole, group, "")
		if fraction != "" {
			plain += "." + zeros(fraction, digits)
		}
	}
	if n.negative {
		plain = "-" + plain
	}
	return ledger.ParseDecimal(plain, digits)
}

// zeros takes zeros off the end that are more than the currency has: here it is
// known which mark is the decimal one, so that 48.000 is no thousand.
func zeros(fraction string, digits int) string {
	for len(fraction) > digits && len(fraction) > 1 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	return fraction
}

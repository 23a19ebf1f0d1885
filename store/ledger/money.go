package ledger

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
)

// Currencies knows how many digits a currency has after the point: ISO 4217's,
// and beside them the configured codes that ISO 4217 does not know. The zero
// value knows ISO 4217. A code is known in upper case only.
type Currencies map[string]int

// 18 digits still leave an int64 nine units in front of the point.
const maxDigits = 18

// Check refuses configured codes that could not be used, or that would give an
// ISO 4217 code another meaning.
func (c Currencies) Check() error {
	for code, digits := range c {
		if _, known := currency.GetDigits(code); known {
			return fmt.Errorf("currency %s: ISO 4217 fixes its digits; leave it out", code)
		}
		if !isCode(code) {
			return fmt.Errorf("currency %q: write 3 to 12 capital letters and digits", code)
		}
		if digits < 0 || digits > maxDigits {
			return fmt.Errorf("currency %s: write 0 to %d digits", code, maxDigits)
		}
	}
	return nil
}

func isCode(s string) bool {
	return len(s) >= 3 && len(s) <= 12 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// Digits gives the digits after the point; not ok if nobody knows the code.
func (c Currencies) Digits(code string) (int, bool) {
	if digits, ok := currency.GetDigits(code); ok {
		return int(digits), true
	}
	digits, ok := c[code]
	return digits, ok && digits >= 0 && digits <= maxDigits
}

// Format writes an amount for a table: 1,250.00 EUR. A configured currency
// drops zeros after its second digit, so that 90000000 of a six-digit USDC is
// 90.00 USDC. An amount whose currency nobody knows is shown as the bare
// number that it is, never with a point that was guessed.
func (c Currencies) Format(amount int64, code string) string {
	number, ok := c.number(amount, code)
	if !ok {
		return strings.TrimSuffix(fmt.Sprintf("%d minor units of %s", amount, code), " of ")
	}
	return number + " " + code
}

// Short writes an amount for a button or a heading: $480.00, €12.50, £3.00,
// and 90.00 USDC for all others.
func (c Currencies) Short(amount int64, code string) string {
	symbol, ok := map[string]string{"USD": "$", "EUR": "€", "GBP": "£"}[code]
	if !ok {
		return c.Format(amount, code)
	}
	number, _ := c.number(amount, code)
	if positive, negative := strings.CutPrefix(number, "-"); negative {
		return "-" + symbol + positive
	}
	return symbol + number
}

// Plain writes an amount as people type it into a form: 1250.00.
func (c Currencies) Plain(amount int64, code string) string {
	digits, _ := c.Digits(code)
	return decimalString(amount, digits)
}

func (c Currencies) number(amount int64, code string) (string, bool) {
	digits, ok := c.Digits(code)
	if !ok {
		return "", false
	}
	whole, fraction, _ := strings.Cut(decimalString(amount, digits), ".")
	if _, iso := currency.GetDigits(code); !iso && len(fraction) > 2 {
		fraction = fraction[:2] + strings.TrimRight(fraction[2:], "0")
	}
	number := groupThousands(whole)
	if fraction != "" {
		number += "." + fraction
	}
	return number, true
}

func groupThousands(whole string) string {
	whole, negative := strings.CutPrefix(whole, "-")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if negative {
		return "-" + whole
	}
	return whole
}

// Decimal writes an amount for programs: all the digits of its currency after the
// point, and no other mark. Not ok: nobody knows how many these are.
func (c Currencies) Decimal(amount int64, code string) (string, bool) {
	return c.DecimalSum(big.NewInt(amount), code)
}

// DecimalSum does the same for a sum of any size.
func (c Currencies) DecimalSum(amount *big.Int, code string) (string, bool) {
	digits, ok := c.Digits(code)
	if !ok {
		return "", false
	}
	return withPoint(amount.String(), digits), true
}

// decimalString writes minor units as a plain decimal with exactly so many
// digits after the point: 4800 with 2 digits is 48.00.
func decimalString(amount int64, digits int) string {
	return withPoint(strconv.FormatInt(amount, 10), digits)
}

// withPoint puts the point into a whole number.
func withPoint(whole string, digits int) string {
	all, negative := strings.CutPrefix(whole, "-")
	if digits > 0 {
		all = strings.Repeat("0", max(0, digits+1-len(all))) + all
		all = all[:len(all)-digits] + "." + all[len(all)-digits:]
	}
	if negative {
		return "-" + all
	}
	return all
}

// ParseDecimal reads a decimal like 48.00 as minor units, exactly: no float on
// the way, no rounding, no guess at what 1,000 or 1e3 may mean.
func ParseDecimal(s string, digits int) (int64, error) {
	if digits < 0 || digits > maxDigits {
		return 0, fmt.Errorf("no amount has %d digits after the point", digits)
	}
	unsigned, negative := strings.CutPrefix(s, "-")
	whole, fraction, point := strings.Cut(unsigned, ".")
	if !isDigits(whole) || point && !isDigits(fraction) {
		return 0, errors.New("write a plain decimal such as 1250.00: digits and at most one point, nothing else")
	}
	if len(fraction) > digits && len(fraction) != 3 && strings.Trim(fraction[digits:], "0") == "" {
		fraction = fraction[:digits] // 705.00 JPY is 705; but 1.000 may be meant as a thousand
	}
	if len(fraction) > digits {
		return 0, fmt.Errorf("too many decimals; this currency has %d", digits)
	}
	minor := whole + fraction + strings.Repeat("0", digits-len(fraction))
	if negative {
		minor = "-" + minor
	}
	amount, err := strconv.ParseInt(minor, 10, 64)
	if err != nil {
		return 0, errors.New("too large an amount")
	}
	return amount, nil
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// MinorUnits reads a decimal in a currency.
func (c Currencies) MinorUnits(s, code string) (int64, error) {
	digits, ok := c.Digits(code)
	if !ok {
		return 0, fmt.Errorf("unknown currency %q; use an ISO 4217 code or configure it", code)
	}
	return ParseDecimal(s, digits)
}

// AddAmounts adds minor units of one currency; not ok if the sum overflows.
func AddAmounts(a, b int64) (sum int64, ok bool) {
	if b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b {
		return 0, false
	}
	return a + b, true
}

package ledger

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var testCurrencies = Currencies{"USDC": 6, "POINTS": 0}

func TestDigitsComeFromISO4217AndTheConfiguration(t *testing.T) {
	for code, want := range map[string]int{"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3, "CLF": 4, "ISK": 0, "USDC": 6, "POINTS": 0} {
		if got, ok := testCurrencies.Digits(code); !ok || got != want {
			t.Errorf("%s has %d digits, %v", code, got, ok)
		}
	}
	for _, code := range []string{"", "eur", "EURO", "XXQ", "usdc", " EUR"} {
		if digits, ok := testCurrencies.Digits(code); ok {
			t.Errorf("%q has %d digits", code, digits)
		}
	}
	if _, ok := (Currencies)(nil).Digits("EUR"); !ok {
		t.Error("the zero value does not know ISO 4217")
	}
	if _, ok := (Currencies{"BAD": 30}).Digits("BAD"); ok {
		t.Error("a currency of 30 digits is known")
	}
}

func TestConfiguredCurrenciesAreChecked(t *testing.T) {
	if err := testCurrencies.Check(); err != nil {
		t.Error(err)
	}
	for _, c := range []Currencies{{"EUR": 3}, {"usdc": 6}, {"": 2}, {"AB": 2}, {"A B": 2}, {"USDC": -1}, {"USDC": 19}} {
		if err := c.Check(); err == nil {
			t.Errorf("%v passes", c)
		}
	}
}

func TestMoneyIsWrittenForPeople(t *testing.T) {
	for _, c := range []struct {
		amount      int64
		code        string
		long, short string
	}{
		{125000, "EUR", "1,250.00 EUR", "€1,250.00"},
		{48000, "USD", "480.00 USD", "$480.00"},
		{-4800, "USD", "-48.00 USD", "-$48.00"},
		{300, "GBP", "3.00 GBP", "£3.00"},
		{0, "EUR", "0.00 EUR", "€0.00"},
		{5, "EUR", "0.05 EUR", "€0.05"},
		{-5, "EUR", "-0.05 EUR", "-€0.05"},
		{1250, "JPY", "1,250 JPY", "1,250 JPY"},
		{1500, "KWD", "1.500 KWD", "1.500 KWD"},
		{90000000, "USDC", "90.00 USDC", "90.00 USDC"},
		{90120000, "USDC", "90.12 USDC", "90.12 USDC"},
		{90000001, "USDC", "90.000001 USDC", "90.000001 USDC"},
		{90100100, "USDC", "90.1001 USDC", "90.1001 USDC"},
		{123456789, "POINTS", "123,456,789 POINTS", "123,456,789 POINTS"},
		{math.MaxInt64, "USD", "92,233,720,368,547,758.07 USD", "$92,233,720,368,547,758.07"},
		{math.MinInt64, "USD", "-92,233,720,368,547,758.08 USD", "-$92,233,720,368,547,758.08"},
		{100, "EUR", "1.00 EUR", "€1.00"},
		{1000000, "WAT", "1000000 minor units of WAT", "1000000 minor units of WAT"},
		{7, "", "7 minor units", "7 minor units"},
	} {
		if got := testCurrencies.Format(c.amount, c.code); got != c.long {
			t.Errorf("%d %s is written %s, not %s", c.amount, c.code, got, c.long)
		}
		if got := testCurrencies.Short(c.amount, c.code); got != c.short {
			t.Errorf("%d %s is written %s, not %s", c.amount, c.code, got, c.short)
		}
	}
}

func TestDecimalsAreReadExactlyOrNotAtAll(t *testing.T) {
	for _, c := range []struct {
		text   string
		digits int
		want   int64
	}{
		{"48.00", 2, 4800}, {"48", 2, 4800}, {"48.1", 2, 4810}, {"0.07", 2, 7}, {"-0.07", 2, -7}, {"007.50", 2, 750},
		{"0.000001", 6, 1}, {"1250", 0, 1250}, {"-0", 2, 0}, {"92233720368547758.07", 2, math.MaxInt64}, {"-92233720368547758.08", 2, math.MinInt64},
	} {
		if got, err := ParseDecimal(c.text, c.digits); err != nil || got != c.want {
			t.Errorf("%s is read as %d, %v", c.text, got, err)
		}
	}
	for _, c := range []struct {
		text   string
		digits int
		says   string
	}{
		{"0.001", 2, "too many decimals; this currency has 2"}, {"1.5", 0, "too many decimals"}, {"1.000", 0, "too many decimals"}, {"1.0010", 2, "too many decimals"}, {"12.500", 2, "too many decimals"},
		{"92233720368547758.08", 2, "too large"}, {"1" + strings.Repeat("0", 30), 2, "too large"},
		{"+1", 2, "plain decimal"}, {"--1", 2, "plain decimal"}, {"1-", 2, "plain decimal"}, {"1e3", 2, "plain decimal"}, {"1E3", 2, "plain decimal"},
		{" 1", 2, "plain decimal"}, {"1 ", 2, "plain decimal"}, {"1,000.00", 2, "plain decimal"}, {"1.000,00", 2, "plain decimal"},
		{"", 2, "plain decimal"}, {"-", 2, "plain decimal"}, {".5", 2, "plain decimal"}, {"5.", 2, "plain decimal"}, {"1.2.3", 2, "plain decimal"},
		{"NaN", 2, "plain decimal"}, {"0x10", 2, "plain decimal"}, {"1_000", 2, "plain decimal"}, {"١٢", 2, "plain decimal"}, {"1", -1, "no amount"}, {"1", 19, "no amount"},
	} {
		if got, err := ParseDecimal(c.text, c.digits); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q is read as %d, %v", c.text, got, err)
		}
	}
	if got, err := testCurrencies.MinorUnits("90.5", "USDC"); err != nil || got != 90500000 {
		t.Errorf("90.5 USDC is read as %d, %v", got, err)
	}
	if _, err := testCurrencies.MinorUnits("90.5", "WAT"); err == nil || !strings.Contains(err.Error(), "unknown currency") {
		t.Errorf("an unknown currency: %v", err)
	}
}

func TestWritingAnAmountAndReadingItBackGivesTheAmount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount, digits := rapid.Int64().Draw(t, "amount"), rapid.IntRange(0, maxDigits).Draw(t, "digits")
		if got, err := ParseDecimal(decimalString(amount, digits), digits); err != nil || got != amount {
			t.Fatalf("%d is written %s and read as %d, %v", amount, decimalString(amount, digits), got, err)
		}
	})
}

func TestAnOverflowIsSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		want := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		sum, ok := AddAmounts(a, b)
		if ok != want.IsInt64() || ok && sum != want.Int64() {
			t.Fatalf("%d + %d = %d, %v", a, b, sum, ok)
		}
	})
	for _, c := range [][2]int64{{math.MaxInt64, 1}, {math.MinInt64, -1}, {math.MaxInt64, math.MaxInt64}, {math.MinInt64, math.MinInt64}} {
		if sum, ok := AddAmounts(c[0], c[1]); ok {
			t.Errorf("%d + %d = %d", c[0], c[1], sum)
		}
	}
}

func FuzzParseDecimal(f *testing.F) {
	for _, seed := range []string{"48.00", "-0.07", "1e3", "92233720368547758.08", "1,000", "", "00.1"} {
		f.Add(seed, 2)
	}
	f.Fuzz(func(t *testing.T, text string, digits int) {
		got, err := ParseDecimal(text, digits)
		if err != nil {
			return
		}
		want, ok := new(big.Rat).SetString(text)
		scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil))
		if !ok || want.Mul(want, scale).Cmp(new(big.Rat).SetInt64(got)) != 0 {
			t.Fatalf("%q with %d digits is read as %d", text, digits, got)
		}
	})
}

package ledger

import (
	"math/big"
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// What beancount takes as a part of an account's name, and as a currency, without
// letters beyond ASCII; hledger takes all of it.
var (
	legalPart      = regexp.MustCompile(`^[A-Z0-9][A-Za-z0-9-]*$`)
	legalCommodity = regexp.MustCompile(`^[A-Z][A-Z0-9'._-]{0,22}[A-Z0-9]$`)
)

func TestNamesOfAccountsAreLegalAndCanBeReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9_.:-]{0,12}`), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		name := AccountName(text)
		if !legalPart.MatchString(name) {
			t.Fatalf("%q is no part of an account's name", name)
		}
		if back, err := ReadAccountName(name); err != nil || back != text {
			t.Fatalf("%q became %q and is read as %q, %v", text, name, back, err)
		}
	})
	for text, want := range map[string]string{"card": "Card", "Card": "0-Card", "eu-west_1": "Eu--west-5f1", "7": "0-7", "": "0-", "Ü": "0--c3-9c"} {
		if got := AccountName(text); got != want {
			t.Errorf("%q is written %q, not %q", text, got, want)
		}
	}
	for _, name := range []string{"", "card", "Ca-5", "Ca-zz", "Ca-", "-a"} {
		if text, err := ReadAccountName(name); err == nil {
			t.Errorf("%q is read as %q", name, text)
		}
	}
}

func TestCommoditiesAreLegalAndNeverShared(t *testing.T) {
	known := Currencies{"USDC": 6, "9COIN": 8, "A1": 2}
	seen := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"EUR", "JPY", "USDC", "9COIN", "eur", "", "X-00"})).Draw(t, "code")
		name, _ := known.Commodity(code)
		if !legalCommodity.MatchString(name) {
			t.Fatalf("%q is no currency", name)
		}
		if other, used := seen[name]; used && other != code {
			t.Fatalf("%q and %q are both %s", code, other, name)
		}
		seen[name] = code
	})
}

func TestDecimalsAreReadBackExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount, digits := rapid.Int64().Draw(t, "amount"), rapid.IntRange(0, 18).Draw(t, "digits")
		money := Currencies{"XCOIN": digits}
		text, ok := money.Decimal(amount, "XCOIN")
		if back, err := money.MinorUnits(text, "XCOIN"); !ok || err != nil || back != amount {
			t.Fatalf("%d with %d digits is %q, and is read as %d, %v", amount, digits, text, back, err)
		}
	})
}

func TestAnEntryThatLeavesSomethingIsRefused(t *testing.T) {
	var b BookBalances
	line := func(account, code string, amount int64) BookLine {
		return BookLine{BookAccount{Name: account}, code, amount}
	}
	if err := b.Add(BookEntry{Lines: []BookLine{line("A", "EUR", 1), line("B", "EUR", -2)}}); err == nil {
		t.Error("one that does not balance was taken")
	}
	if err := b.Add(BookEntry{Lines: []BookLine{line("A", "EUR", 1), line("B", "USD", -1)}}); err == nil {
		t.Error("two currencies were added up")
	}
	if len(b.All()) != 0 {
		t.Errorf("what was refused counts: %v", b.All())
	}
	for range 3 { // more than 64 bits hold
		if err := b.Add(BookEntry{Lines: []BookLine{line("A", "EUR", 1<<62), line("B", "EUR", -1<<62)}}); err != nil {
			t.Fatal(err)
		}
	}
	if all := b.All(); len(all) != 2 || all[0].Sum.Cmp(new(big.Int).Mul(big.NewInt(3), big.NewInt(1<<62))) != 0 {
		t.Errorf("%v", all)
	}
}

package web

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

func TestPasswordRules(t *testing.T) {
	for password, problem := range map[string]string{
		"seven quiet otters swim":         "",
		"!@#$%^&*()_+{}|:<>?":             "",
		strings.Repeat("añ ", 66):         "guesses",
		"quiet otters 七つ静かに":              "",
		"thirteen char":                   "13 characters",
		strings.Repeat("é", 14):           "14 characters",
		strings.Repeat("e\u0301", 14):     "14 characters", // counted as it is compared
		strings.Repeat("ab cd ef ", 30):   "at most 200",
		"aaaaaaaaaaaaaaaa":                "guesses",
		"abcabcabcabcabcabc":              "guesses",
		"12345678901234567890":            "guesses",
		"0987654321098765":                "guesses",
		"Correct Horse Battery Staple":    "guesses",
		"correct-horse-battery-staple1":   "guesses",
		"P.a.s.s.w.o.r.d.123456":          "guesses",
		"qwertyuiopasdfgh":                "guesses",
		"holdfast-holdfast!":              "guesses", // it repeats
		"holdfast2026!!!!":                "little more than your name",
		"ana.lind@example.com":            "little more than your name",
		"AnaLind-holdfast-99":             "little more than your name",
		"Ana Lind likes grey herring":     "",
		"holdfast is what keeps the boat": "",
		"seven quiet otters \xff swim":    "no text",
	} {
		got := PasswordProblem(password, "ana.lind@example.com", "Ana Lind")
		if (got == "") != (problem == "") || !strings.Contains(got, problem) {
			t.Errorf("%q: %q, want %q", password, got, problem)
		}
	}
}

func TestPasswordFitsWhicheverWayItIsTyped(t *testing.T) {
	password := "sieben stille Öttër"
	hash, err := HashPassword(norm.NFC.String(password))
	must(t, err)
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("the hash is %s", hash)
	}
	if again, _ := HashPassword(password); again == hash {
		t.Error("two hashes of one password are equal: no salt")
	}
	if !fits(norm.NFD.String(password), hash) {
		t.Error("the decomposed form does not fit")
	}
	if fits(password+" ", hash) || fits(strings.ToUpper(password), hash) || fits("", hash) {
		t.Error("another password fits")
	}
}

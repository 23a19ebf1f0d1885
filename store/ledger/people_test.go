package ledger_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// The vectors of RFC 6238, appendix B, cut to six digits.
func TestCodesAreThoseOfTheRFC(t *testing.T) {
	secret := []byte("12345678901234567890")
	for second, want := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130"} {
		if got := ledger.CodeNow(secret, second*1000); got != want {
			t.Errorf("at %d: %s, want %s", second, got, want)
		}
	}
}

func TestCodeCountsOnceAndOneStepAround(t *testing.T) {
	secret, now := []byte("12345678901234567890"), int64(1_800_000_000_000)
	for off, good := range map[int64]bool{-2: false, -1: true, 0: true, 1: true, 2: false} {
		code := ledger.CodeNow(secret, now+off*30_000)
		step, ok := ledger.CheckCode(secret, code, now, 0)
		if ok != good || ok && step != now/30_000+off {
			t.Errorf("%d steps off: %t at step %d", off, ok, step)
		}
		if ok {
			if _, again := ledger.CheckCode(secret, code, now, step); again {
				t.Errorf("%d steps off: it counts twice", off)
			}
			if _, earlier := ledger.CheckCode(secret, ledger.CodeNow(secret, now-30_000), now, step); earlier {
				t.Errorf("%d steps off: an earlier one counts after it", off)
			}
		}
	}
	for _, code := range []string{"", "0", "00000a", ledger.CodeNow(secret, now) + "0"} {
		if _, ok := ledger.CheckCode(secret, code, now, 0); ok {
			t.Errorf("%q counts", code)
		}
	}
	if _, ok := ledger.CheckCode(nil, ledger.CodeNow(nil, now), now, 0); ok {
		t.Error("without a secret a code counts")
	}
}

func TestSecretIsWrittenForPeopleAndForApps(t *testing.T) {
	secret := []byte("12345678901234567890")
	if got := ledger.SecretText(secret); got != "GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ" {
		t.Errorf("it reads %s", got)
	}
	if got := ledger.SecretURL(secret, "ana@example.com", "holdfast Acme & Co"); got != "otpauth://totp/holdfast%20Acme%20&%20Co:ana@example.com?issuer=holdfast%20Acme%20%26%20Co&secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" {
		t.Errorf("it is %s", got)
	}
}

func TestFreshMeansTheSecondFactorWhereThereIsOne(t *testing.T) {
	now := int64(1_800_000_000_000)
	for _, c := range []struct {
		name  string
		p     ledger.PersonRecord
		fresh bool
	}{
		{"nobody signed in", ledger.PersonRecord{}, false},
		{"a password a moment ago", ledger.PersonRecord{SignedInAt: now - 1, ProvedWith: ledger.WithPassword}, true},
		{"a password long ago", ledger.PersonRecord{SignedInAt: now - 6*time.Minute.Milliseconds(), ProvedWith: ledger.WithPassword}, false},
		{"a password, and there is a second factor", ledger.PersonRecord{SignedInAt: now - 1, ProvedWith: ledger.WithPassword, SecondFactorAt: 1}, false},
		{"a demo's link, and there is a second factor", ledger.PersonRecord{SignedInAt: now - 1, ProvedWith: ledger.WithLink, SecondFactorAt: 1}, false},
		{"the second factor", ledger.PersonRecord{SignedInAt: now - 1, ProvedWith: ledger.WithCode, SecondFactorAt: 1}, true},
		{"the second factor long ago", ledger.PersonRecord{SignedInAt: now - 6*time.Minute.Milliseconds(), ProvedWith: ledger.WithCode, SecondFactorAt: 1}, false},
	} {
		if got := c.p.Fresh(now); got != c.fresh {
			t.Errorf("%s: fresh is %t", c.name, got)
		}
	}
}

func TestWhoMayChangeWhom(t *testing.T) {
	person := func(id string, disabled int64, roles ...string) ledger.PersonRecord {
		return ledger.PersonRecord{ID: id, TenantID: "acme", Email: id + "@example.com", Roles: roles, DisabledAt: disabled}
	}
	whom := person("jon", 0, "finance")
	for _, c := range []struct {
		by  ledger.PersonRecord
		why string
	}{
		{person("ana", 0, "admin"), ""},
		{person("ana", 0, "admin", "viewer"), ""},
		{person("ana", 1, "admin"), "You are disabled."},
		{person("ana", 0, "finance", "approver", "viewer"), "role admin"},
		{person("ana", 0), "role admin"},
		{person("jon", 0, "admin"), "Nobody changes their own"},
	} {
		if ok, why := ledger.MayChange(c.by, whom); ok != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s %v: %t %q", c.by.ID, c.by.Roles, ok, why)
		}
	}
	for _, c := range []struct {
		whom   ledger.PersonRecord
		roles  []string
		others int
		why    string
	}{
		{person("jon", 0, "admin"), []string{"finance"}, 1, ""},
		{person("jon", 0, "admin"), []string{"finance"}, 0, "last admin"},
		{person("jon", 1, "admin"), []string{"finance"}, 0, ""}, // a disabled one keeps nobody in
		{person("jon", 0, "finance"), []string{"viewer"}, 0, ""},
		{person("jon", 0, "admin"), []string{"admin", "finance"}, 0, ""},
		{person("jon", 0, "finance"), nil, 1, "at least one"},
		{person("jon", 0, "finance"), []string{"root"}, 1, "no such role"},
	} {
		if ok, why := ledger.MayGiveRoles(c.whom, c.roles, c.others); ok != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%v to %v with %d others: %t %q", c.whom.Roles, c.roles, c.others, ok, why)
		}
	}
	if ok, _ := ledger.MayDisable(person("jon", 0, "admin"), 0); ok {
		t.Error("the last admin may be disabled")
	}
	if !ledger.Shrinks([]string{"admin", "finance"}, []string{"finance", "viewer"}) || ledger.Shrinks([]string{"finance"}, []string{"finance", "admin"}) {
		t.Error("what shrinks is told wrongly")
	}
}

package ledger

import "testing"

func TestAReferenceIsOneHoweverItIsWritten(t *testing.T) {
	for _, same := range []string{"INV-481", "inv-481", " INV-481", "Inv-481\t", "INV\u200b-481", "ＩＮＶ－４８１"} {
		if got := ReferenceKey(same); got != "inv-481" {
			t.Errorf("%q is %q", same, got)
		}
	}
	for a, b := range map[string]string{"INV-481": "INV-482", "INV 481": "INV481", "INV_481": "INV-481", "a b": "ab"} {
		if ReferenceKey(a) == ReferenceKey(b) {
			t.Errorf("%q and %q are one", a, b)
		}
	}
	if ReferenceKey("  ") != "" {
		t.Error("blanks are a reference")
	}
}

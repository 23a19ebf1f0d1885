package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

func TestWhateverPeopleSayOfAFingerprintFindsIt(t *testing.T) {
	for i := range 500 {
		print := ledger.Fingerprint(fmt.Append(nil, i))
		hex := strings.TrimPrefix(print, "hf1:sha256:")
		words := ledger.Words(print)
		for _, said := range []string{print, print[:20], hex, hex[:6], hex[:12], hex[:4] + " " + hex[4:8] + " " + hex[8:12] + " …", strings.ToUpper(hex),
			words, strings.ReplaceAll(words, "-", " "), " " + strings.ToUpper(words) + " "} {
			from, before, ok := ledger.FingerprintRange(said)
			if !ok || print < from || print >= before {
				t.Fatalf("%q does not find %s: from %s, before %s", said, print, from, before)
			}
			other := ledger.Fingerprint(fmt.Append(nil, "other", i))
			if other >= from && other < before {
				t.Fatalf("%q finds %s too", said, other)
			}
		}
	}
	for _, nothing := range []string{"", " ", "…", "c6c56", "hf1:sha256:", "hf2:sha256:c6c56e67", "invoice-7", "abalone-acacia", "abalone-acacia-acorn-abalone", "abalone-acacia-nosuchword", strings.Repeat("a", 65), "c6c56e67'"} {
		if from, before, ok := ledger.FingerprintRange(nothing); ok {
			t.Errorf("%q is taken for a fingerprint: %s %s", nothing, from, before)
		}
	}
}

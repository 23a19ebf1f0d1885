package ledger

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTheWordListIs1024EasyWords(t *testing.T) {
	if len(words) != 1024 {
		t.Fatalf("%d words", len(words))
	}
	if !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != 1024 {
		t.Error("words are not sorted, or one is there twice")
	}
	easy := regexp.MustCompile(`^[a-z]{3,8}$`)
	for i, a := range words {
		if !easy.MatchString(a) {
			t.Errorf("%q", a)
		}
		for _, b := range words[i+1:] {
			if oneLetterApart(a, b) || strings.HasPrefix(b, a) {
				t.Errorf("%s and %s are easily mistaken for each other", a, b)
			}
		}
	}
}

func oneLetterApart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) == len(b) {
		return i < len(a) && a[i+1:] == b[i+1:]
	}
	return a[i:] == b[i+1:]
}

// The words of a fingerprint were read out and written down; they stay.
func TestWordsNeverChange(t *testing.T) {
	for fingerprint, want := range map[string]string{
		"hf1:sha256:" + strings.Repeat("0", 64):                 words[0] + "-" + words[0] + "-" + words[0],
		"hf1:sha256:" + strings.Repeat("f", 64):                 words[1023] + "-" + words[1023] + "-" + words[1023],
		"hf1:sha256:00400c04" + strings.Repeat("0", 56):         words[1] + "-" + words[0] + "-" + words[0x301],
		Fingerprint([]byte(`{"action_type":"a","payload":{}}`)): "romaine-cactus-orange",
	} {
		if got := Words(fingerprint); got != want {
			t.Errorf("%s is %s, not %s", fingerprint, got, want)
		}
	}
}

func TestWhatIsNoFingerprintHasNoWords(t *testing.T) {
	sum := strings.Repeat("a1", 32)
	for _, s := range []string{"", "hf1:sha256:", sum, "hf2:sha256:" + sum, "hf1:sha256:" + sum[1:], "hf1:sha256:" + sum + "0",
		"hf1:sha256:" + strings.ToUpper(sum), "HF1:sha256:" + sum, "hf1:sha256:" + strings.Repeat("zz", 32), " hf1:sha256:" + sum} {
		if got := Words(s); got != "" {
			t.Errorf("%q has the words %s", s, got)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add("hf1:sha256:" + strings.Repeat("0", 64))
	f.Add("hf1:sha256:")
	f.Fuzz(func(t *testing.T, s string) {
		if got := Words(s); got != "" && len(strings.Split(got, "-")) != 3 {
			t.Fatalf("%q has the words %s", s, got)
		}
		if got := Words(Fingerprint([]byte(s))); len(strings.Split(got, "-")) != 3 {
			t.Fatalf("a fingerprint has the words %q", got)
		}
	})
}

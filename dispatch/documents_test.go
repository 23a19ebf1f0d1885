package dispatch

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What a document tells people to write is read as they would have it read.
func TestDocumentedConfigurationsAreRight(t *testing.T) {
	text, err := os.ReadFile("../docs/stripe.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d examples", len(blocks))
	}
	search := strings.Replace(blocks[0][1], "    effect: charge\n", "    effect: charge\n    "+blocks[1][1], 1)
	for _, example := range []string{blocks[0][1], search} {
		c, err := ParseConfig([]byte(example), t.TempDir(), "stripe.yaml", func(string) (string, bool) { return "sk_test_1", true }, testNow, nil)
		if err != nil {
			t.Fatal(err)
		}
		pay := c.Tenants[DefaultTenant].Rulebook.Actions["create_payment"]
		for role, want := range map[string]string{"amount": "/amount", "currency": "/currency", "recipient": "/customer", "reference": "/metadata/invoice"} {
			if got := pay.Pointer(role); got != want {
				t.Errorf("%s is %s", role, got)
			}
		}
		if lag := c.Tenants[DefaultTenant].Rulebook.Routes["create_payment"].Lookup.Lag; (lag > 0) != (example == search) {
			t.Errorf("lag is %s", lag)
		}
	}
}

package rail

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// A provider repeats a credential as its language writes it. None of it reaches
// what is kept.
func TestASecretIsMaskedHoweverItIsRepeated(t *testing.T) {
	const secret = `sk/live+"5f1c&0f<fee>\\a=`
	m := newMasker([]header{{"Authorization", NewSecret("Bearer " + secret)}})
	for name, echo := range map[string]string{
		"as it is":               secret,
		"JSON of Go":             `sk/live+\"5f1c\u00260f\u003cfee\u003e\\\\a=`,
		"JSON of PHP":            `sk\/live+\"5f1c&0f<fee>\\\\a=`,
		"JSON, no more than due": `sk/live+\"5f1c&0f<fee>\\\\a=`,
		"a query":                "sk%2Flive%2B%225f1c%260f%3Cfee%3E%5C%5Ca%3D",
		"a page":                 "sk/live+&#34;5f1c&amp;0f&lt;fee&gt;\\\\a=",
		"base64":                 base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 for addresses":   base64.RawURLEncoding.EncodeToString([]byte(secret)),
	} {
		want := fmt.Sprintf("invalid key: %s!", dots)
		if got := m.Replace("invalid key: " + echo + "!"); got != want {
			t.Errorf("%s: %s", name, strings.ReplaceAll(got, dots, "…"))
		}
	}
}

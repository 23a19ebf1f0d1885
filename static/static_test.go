package static_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"holdfast/static"
)

var kinds = map[string]string{
	"holdfast.css":     "text/css; charset=utf-8",
	"docs.css":         "text/css; charset=utf-8",
	"live.js":          "text/javascript; charset=utf-8",
	"takeback.js":      "text/javascript; charset=utf-8",
	"favicon.svg":      "image/svg+xml",
	"favicon-test.svg": "image/svg+xml",
}

func get(t *testing.T, method, path, ifNoneMatch string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	if ifNoneMatch != "" {
		r.Header.Set("If-None-Match", ifNoneMatch)
	}
	w := httptest.NewRecorder()
	static.Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestAnAssetsNameCarriesTheHashOfItsContent(t *testing.T) {
	for name, kind := range kinds {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(body)
		stem, ext, _ := strings.Cut(name, ".")
		path := static.Path(name)
		if want := "/static/" + stem + "." + hex.EncodeToString(sum[:6]) + "." + ext; path != want {
			t.Errorf("%s is served as %s, want %s", name, path, want)
		}
		r := get(t, "GET", path, "")
		if r.StatusCode != 200 || r.ContentLength >= 0 && r.ContentLength != int64(len(body)) {
			t.Errorf("%s: status %d", path, r.StatusCode)
		}
		for header, want := range map[string]string{"Content-Type": kind, "Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"} {
			if got := r.Header.Get(header); got != want {
				t.Errorf("%s: %s: %q, want %q", path, header, got, want)
			}
		}
		if again := get(t, "GET", path, r.Header.Get("ETag")); again.StatusCode != 304 {
			t.Errorf("%s: asked again with its ETag: %d", path, again.StatusCode)
		}
		if plain := get(t, "GET", "/static/"+name, ""); plain.StatusCode != 200 || plain.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("/static/%s: %d, %q", name, plain.StatusCode, plain.Header.Get("Cache-Control"))
		}
	}
}

func TestWhatIsNoAssetIsNotServed(t *testing.T) {
	for _, path := range []string{"/static/", "/static/static.go", "/static/holdfast.000000000000.css", "/static/../static.go", "/static/nothing.js"} {
		if r := get(t, "GET", path, ""); r.StatusCode != 404 {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
	if r := get(t, "POST", static.Path("live.js"), ""); r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", r.StatusCode)
	}
	if static.Path("nothing.js") != "/static/nothing.js" {
		t.Error("an asset that does not exist has a hash")
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestAssetsLoadNothingFromElsewhere(t *testing.T) {
	for name := range kinds {
		body := strings.ReplaceAll(read(t, name), "http://www.w3.org/2000/svg", "")
		for _, outside := range []string{"http:", "https:", "@import", "url(", "eval(", "innerHTML", "import("} {
			if strings.Contains(body, outside) {
				t.Errorf("%s contains %s", name, outside)
			}
		}
	}
	if n := len(read(t, "live.js")); n >= 3000 {
		t.Errorf("live.js has %d bytes; it is to stay below 3000", n)
	}
}

func TestVioletMeansUnknownInTheStylesheetToo(t *testing.T) {
	unknown := regexp.MustCompile(`data-tone="violet"|unknown|\.axis|--violet`)
	for i, line := range strings.Split(read(t, "holdfast.css"), "\n") {
		selector, rule, _ := strings.Cut(line, "{")
		if strings.Contains(rule, "violet") && !unknown.MatchString(selector) {
			t.Errorf("holdfast.css:%d uses violet: %s", i+1, strings.TrimSpace(line))
		}
	}
}

// tokens reads the custom properties of the light theme, and of the dark one
// with the light one's where it sets none.
func tokens(t *testing.T) map[string]map[string]string {
	t.Helper()
	lightPart, rest, ok := strings.Cut(read(t, "holdfast.css"), "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("no dark theme")
	}
	darkPart, _, _ := strings.Cut(rest, "[data-tone")
	property := regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`)
	themes := map[string]map[string]string{"light": {}, "dark": {}}
	for _, m := range property.FindAllStringSubmatch(lightPart, -1) {
		themes["light"][m[1]], themes["dark"][m[1]] = m[2], m[2]
	}
	for _, m := range property.FindAllStringSubmatch(darkPart, -1) {
		themes["dark"][m[1]] = m[2]
	}
	return themes
}

// luminance and contrast are those of WCAG 2.
func luminance(t *testing.T, hexColour string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(hexColour, "#"), 16, 32)
	if err != nil {
		t.Fatalf("no colour: %q", hexColour)
	}
	linear := func(c uint64) float64 {
		v := float64(c&255) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(n>>16) + 0.7152*linear(n>>8) + 0.0722*linear(n)
}

func contrast(t *testing.T, a, b string) float64 {
	la, lb := luminance(t, a), luminance(t, b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

func TestContrastIsEnoughInBothThemes(t *testing.T) {
	type pair struct {
		over, under string
		least       float64
	}
	var pairs []pair
	for _, under := range []string{"paper", "panel", "sunk"} {
		pairs = append(pairs, pair{"ink", under, 7}, pair{"soft", under, 4.5}, pair{"focus", under, 3})
		for _, tone := range []string{"amber", "violet", "green", "red"} {
			pairs = append(pairs, pair{tone, under, 4.5})
		}
	}
	for _, tone := range []string{"amber", "grey", "blue", "violet", "green", "slate", "red"} {
		pairs = append(pairs, pair{tone, tone + "-bg", 4.5})
	}
	pairs = append(pairs, pair{"on-key", "key", 7}, pair{"on-key", "key-over", 7}, pair{"ink", "amber-bg", 7}, pair{"soft", "amber-bg", 4.5}, pair{"ink", "grey-bg", 7})
	for name, theme := range tokens(t) {
		for _, p := range pairs {
			if c := contrast(t, theme[p.over], theme[p.under]); c < p.least {
				t.Errorf("%s: %s on %s has contrast %.2f, want %.1f", name, p.over, p.under, c, p.least)
			}
		}
	}
}

func TestEveryColourComesFromATokenThatExists(t *testing.T) {
	css := read(t, "holdfast.css")
	defined := map[string]bool{}
	for _, m := range regexp.MustCompile(`--([a-z-]+):`).FindAllStringSubmatch(css, -1) {
		defined[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`var\(--([a-z-]+)\)`).FindAllStringSubmatch(css, -1) {
		if !defined[m[1]] {
			t.Errorf("var(--%s) is set nowhere", m[1])
		}
	}
}

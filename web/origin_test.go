package web

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A page of another origin posts a form with the person's cookie. Scheme, host
// and port are compared on every route that changes something, also where nobody
// is signed in yet. The routes are the router's own.
func TestCase134OriginIsComparedWholeOnEveryUnsafeRoute(t *testing.T) {
	w := newServer(t, pagesConfig)
	o := w.askedFor("owner@example.com")
	b := w.signIn(w.person("default", "ana@example.com", "admin", "approver"))
	form := fmt.Sprintf("fingerprint=%s&version=%d&reason=x&job=sweep&email=ana@example.com&password=x", o.Fingerprint, o.Version)

	var paths []string
	for _, r := range w.router().Routes() {
		if r.Method == http.MethodGet || r.Method == http.MethodHead || strings.HasPrefix(r.Path, "/v1/") || r.Path == "/mcp" {
			continue
		}
		if r.Method != http.MethodPost {
			t.Errorf("%s %s: pages have forms, and forms post", r.Method, r.Path)
		}
		path := strings.Replace(r.Path, ":id", o.OperationID, 1)
		if !strings.Contains(path, ":act") {
			paths = append(paths, path)
			continue
		}
		for _, act := range slices.Sorted(maps.Keys(acts)) {
			paths = append(paths, strings.Replace(path, ":act", act, 1))
		}
	}
	for _, want := range []string{"/login", "/logout", "/setup", "/operations/" + o.OperationID + "/approve", "/settings/run-job"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is not among the routes %v", want, paths)
		}
	}

	const base = "http://localhost:9200"
	foreign := map[string][]string{
		"another port":                  {"Sec-Fetch-Site: same-site", "Origin: http://localhost:3000"},
		"another port, old browser":     {"Origin: http://localhost:3000"},
		"another scheme":                {"Sec-Fetch-Site: cross-site", "Origin: https://localhost:9200"},
		"another scheme, old browser":   {"Origin: https://localhost:9200"},
		"another host":                  {"Sec-Fetch-Site: cross-site", "Origin: http://localhost.evil.example:9200"},
		"another host, old browser":     {"Origin: http://127.0.0.1:9200"},
		"no port, old browser":          {"Origin: http://localhost"},
		"a sandboxed frame":             {"Origin: null"},
		"a frame that hides its origin": {"Sec-Fetch-Site: cross-site"},
	}
	for _, path := range paths {
		for name, headers := range foreign {
			answer := w.do(http.MethodPost, base+path, form, append(headers, "Cookie: "+b.cookie, "Content-Type: application/x-www-form-urlencoded")...)
			if answer.Code != http.StatusForbidden || len(answer.Result().Cookies()) > 0 {
				t.Errorf("%s posts to %s and is answered %d", name, path, answer.Code)
			}
		}
		for name, headers := range map[string][]string{
			"its own page": {"Sec-Fetch-Site: same-origin", "Origin: " + base}, "its own page, old browser": {"Origin: " + base}, "a program": nil,
		} {
			if answer := w.do(http.MethodPost, base+path, "", append(headers, "Content-Type: application/x-www-form-urlencoded")...); answer.Code == http.StatusForbidden {
				t.Errorf("%s posts to %s and is answered 403", name, path)
			}
		}
	}
	if after := w.stored("default", o.OperationID); after.Version != o.Version {
		t.Error("it was decided")
	}
	if page := b.get("/operations/" + o.OperationID); page.Code != 200 {
		t.Error("the session was ended: ", page.Code)
	}
	// Behind a proxy on this machine the browser's connection is the encrypted one.
	proxied := []string{"From-Address: 127.0.0.1", "X-Forwarded-Proto: https", "Content-Type: application/x-www-form-urlencoded"}
	for origin, forbidden := range map[string]bool{"https://pay.example.com": false, "http://pay.example.com": true} {
		if answer := w.do(http.MethodPost, "http://pay.example.com/logout", "", append(proxied, "Origin: "+origin)...); (answer.Code == http.StatusForbidden) != forbidden {
			t.Errorf("%s is answered %d", origin, answer.Code)
		}
	}
}

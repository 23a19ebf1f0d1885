package web

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast/static"
	"holdfast/store/ledger"
)

// documents are all places that explain the API.
func documents() []string {
	all := []string{"/openapi.json", "/llms.txt", "/docs", "/problems"}
	for _, p := range ledger.Problems {
		all = append(all, p.Type())
	}
	return all
}

func TestDocumentsAreForEverybody(t *testing.T) {
	w := newServer(t)
	kinds := map[string]string{"/openapi.json": "application/json", "/llms.txt": "text/plain; charset=UTF-8"}
	for _, path := range documents() {
		answer := w.do(http.MethodGet, path, "", "Accept: text/html,application/xhtml+xml,*/*;q=0.8")
		want := "text/html; charset=UTF-8"
		if kinds[path] != "" {
			want = kinds[path]
		}
		if answer.Code != 200 || answer.Header().Get("Content-Type") != want || answer.Body.Len() < 300 {
			t.Errorf("%s: %d %s with %d bytes", path, answer.Code, answer.Header().Get("Content-Type"), answer.Body.Len())
		}
	}
	if answer := w.do(http.MethodGet, "/openapi.json", ""); answer.Body.String() != string(static.OpenAPI()) {
		t.Error("/openapi.json is not the document")
	}
}

var inline, tag = regexp.MustCompile(`</?(code|b|a|span)\b[^>]*>`), regexp.MustCompile(`<[^>]*>`)

// textOf is what a reader reads of a page, with a bar between its parts.
func textOf(page string) string {
	text := tag.ReplaceAllString(inline.ReplaceAllString(page, ""), " | ")
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}

// outside is what a page would load or send from elsewhere.
var outside = regexp.MustCompile(`(?i)(src|href|action)="?(https?:)?//|<script|<style|style=|@import|url\(`)

func TestDocumentPagesLoadNothingFromElsewhere(t *testing.T) {
	w := newServer(t)
	link := regexp.MustCompile(`(?:href|src)="([^"#]+)"`)
	anchor := regexp.MustCompile(`href="#([^"]+)"`)
	for _, path := range documents()[2:] {
		page := w.do(http.MethodGet, path, "").Body.String()
		if found := outside.FindString(page); found != "" {
			t.Errorf("%s has %s", path, found)
		}
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			if answer := w.do(http.MethodGet, m[1], ""); answer.Code != 200 && m[1] != "/" {
				t.Errorf("%s leads to %s, which is answered %d", path, m[1], answer.Code)
			}
		}
		for _, m := range anchor.FindAllStringSubmatch(page, -1) {
			if strings.Count(page, `id="`+m[1]+`"`) != 1 {
				t.Errorf("%s leads to #%s, which is not there once", path, m[1])
			}
		}
	}
}

func TestDocsPageShowsTheWholeDocument(t *testing.T) {
	page := html.UnescapeString(newServer(t).do(http.MethodGet, "/docs", "").Body.String())
	d := openAPI()
	for path := range d.object(place{"paths"}) {
		for _, method := range methods {
			call := d.object(place{"paths", path, method})
			if call == nil {
				continue
			}
			if !strings.Contains(page, `<code>`+strings.ToUpper(method)+" "+path+`</code>`) || !strings.Contains(page, call["summary"].(string)) {
				t.Errorf("the page lacks %s %s", method, path)
			}
			for status := range d.object(place{"paths", path, method, "responses"}) {
				if !strings.Contains(page, `<span class="docs-status">`+status+`</span>`) {
					t.Errorf("the page lacks %s", status)
				}
			}
		}
	}
	for name, schema := range d.object(place{"components", "schemas"}) {
		if !strings.Contains(page, `id="shape-`+name+`"`) {
			t.Errorf("the page lacks the shape %s", name)
		}
		members, _ := schema.(map[string]any)["properties"].(map[string]any)
		for member := range members {
			if !strings.Contains(page, "<code>"+member+"</code>") {
				t.Errorf("the page lacks %s of %s", member, name)
			}
		}
	}
	for name, e := range d.object(place{"components", "examples"}) {
		if summary := e.(map[string]any)["summary"].(string); !strings.Contains(page, summary) && name != "method_not_allowed" {
			t.Errorf("the page lacks the example %s", name)
		}
	}
	for _, s := range []string{"same_reference", "prerequisite_rejected", "use_result", `"operation_id": "inv-481-charge"`, "operations:write", "<code>RateLimit-Policy</code>"} {
		if !strings.Contains(page, s) {
			t.Errorf("the page lacks %s", s)
		}
	}
}

func TestEveryProblemHasAPageAndItsJSON(t *testing.T) {
	w := newServer(t)
	for _, p := range ledger.Problems {
		page := textOf(w.do(http.MethodGet, p.Type(), "").Body.String())
		status, means, _ := strings.Cut(describedAPI().meaning("ProblemReason", p.Reason), ". ")
		if status != strconv.Itoa(p.Status) {
			t.Errorf("%s: its description begins with %s, not with the HTTP status", p.Reason, status)
		}
		for _, s := range []string{p.Title, p.Detail, p.Reason, p.Next, means, describedAPI().meaning("Next", p.Next), `"type": "` + p.Type() + `"`} {
			if s = strings.ReplaceAll(s, "`", ""); s == "" || !strings.Contains(page, s) {
				t.Errorf("%s does not say %q", p.Type(), s)
			}
		}
		for _, accept := range []string{"application/json", "application/problem+json", "application/problem+json, application/json;q=0.9", "*/*, application/json"} {
			answer := w.do(http.MethodGet, p.Type(), "", "Accept: "+accept)
			var got problemType
			if json.Unmarshal(answer.Body.Bytes(), &got) != nil || got != typeOf(p) || answer.Header().Get("Content-Type") != "application/json" || answer.Header().Get("Vary") != "Accept" {
				t.Errorf("%s for %s: %s", p.Type(), accept, answer.Body)
			}
		}
	}
	var all struct{ Items []problemType }
	must(t, json.Unmarshal(w.do(http.MethodGet, "/problems", "", "Accept: application/json").Body.Bytes(), &all))
	if len(all.Items) != len(ledger.Problems) {
		t.Errorf("%d problems are listed", len(all.Items))
	}
	w.person("default", "ana@example.com", "admin") // before that, every unknown page leads to the set-up
	for _, accept := range []string{"text/html", "application/json", ""} {
		if answer := w.do(http.MethodGet, "/problems/unheard-of", "", "Accept: "+accept); answer.Code != 404 {
			t.Errorf("a problem that does not exist, for %q: %d", accept, answer.Code)
		}
	}
}

// What a model reads has every word that it may meet, and a call that works.
func TestPageForModelsTeachesTheWords(t *testing.T) {
	w := newServer(t)
	text := w.do(http.MethodGet, "http://pay.example.com/llms.txt", "").Body.String()
	words := slices.Clone(nexts)
	for _, p := range ledger.Problems {
		if p.Status == 409 && p.Reason != "intent_conflict" || p.Status == 403 || p.Status == 429 {
			words = append(words, p.Reason)
		}
	}
	for _, word := range append(words, "http://pay.example.com/v1/operations", "Prefer: wait=", "retry_after", "operation_id", "before the first call", "unknown_hold") {
		if !strings.Contains(text, word) {
			t.Errorf("it lacks %s", word)
		}
	}
	if strings.Contains(text, "{BASE}") {
		t.Error("an address is missing")
	}
	if lines := strings.Count(text, "\n"); lines > 130 {
		t.Errorf("%d lines are more than a page", lines)
	}
	body := regexp.MustCompile(`(?s)-d '([^']+)'`).FindStringSubmatch(text)
	if body == nil {
		t.Fatal("there is no call to copy")
	}
	w.agent("default").submit(body[1]).is(t, 202, "", "wait", false)
}

// suggestion is a way of saying that the same purchase may get another name.
var suggestion = regexp.MustCompile(`(?i)\b(new|another|fresh|different|second|other|unique)\s+(operation_?\s?ids?|operation|ids?|names?|keys?|idempotency[- ]key)\b`)

// refusal is what turns it into its opposite.
var refusal = regexp.MustCompile(`(?i)\b(not|never|none|no|refused)\b`)

func TestNothingSuggestsAnotherName(t *testing.T) {
	w := newServer(t)
	for _, path := range documents() {
		for _, bad := range suggestions(textOf(w.do(http.MethodGet, path, "").Body.String())) {
			t.Errorf("%s says: %s", path, bad)
		}
	}
	for _, bad := range []string{"Try it with a new id.", "Not done. Send it under another operation_id.", "Use a fresh idempotency key!"} {
		if len(suggestions(bad)) != 1 {
			t.Errorf("this is let through: %s", bad)
		}
	}
}

// suggestions are the sentences that offer another name and do not refuse it.
func suggestions(text string) (bad []string) {
	for sentence := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(".!?;|\"", r) }) {
		if suggestion.MatchString(sentence) && !refusal.MatchString(sentence) {
			bad = append(bad, strings.Join(strings.Fields(sentence), " "))
		}
	}
	return bad
}

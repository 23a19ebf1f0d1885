package views_test

import (
	"strings"
	"testing"

	"holdfast/store/ledger"
	"holdfast/views"
)

func docsPage() views.DocsPage {
	member := views.DocsMember{Name: "limit", Where: "query", Kind: "integer", Required: true, Text: "How many, see `next_cursor`."}
	return views.DocsPage{
		Title: "holdfast", Summary: "One identity.", Intro: "Read `next`.\n\nThen stop.",
		Calls: []views.DocsCall{
			{Method: "POST", Path: "/v1/things/{thing_id}", Summary: "Make one.", Text: "First.\nSecond.", Scope: "operations:write", Parameters: []views.DocsMember{member},
				Body: "Thing", Examples: []views.DocsExample{{Title: "A thing", Body: `{"a": "</code><script>alert(1)</script>"}`}},
				Answers: []views.DocsAnswer{{Status: "201", Text: "Made.", Shape: "Thing", Headers: []views.DocsMember{{Name: "ETag", Kind: "string", Text: "Changes."}},
					Examples: []views.DocsExample{{Title: "It is there", Body: "{}"}}}}},
			{Method: "GET", Path: "/healthz", Summary: "Lives."},
		},
		Words:    []views.DocsWords{{Name: "Next", Text: "What to do.", Words: []views.DocsWord{{Word: "wait", Meaning: "Wait `retry_after` seconds."}}}},
		Shapes:   []views.DocsShape{{Name: "Thing", Text: "A thing.", Members: []views.DocsMember{{Name: "next", Kind: "Next", Shape: "Next"}}}, {Name: "Name", Kind: "string, `^[a-z]$`"}},
		Problems: ledger.Problems,
	}
}

func TestDocumentPagesAreDocuments(t *testing.T) {
	p := ledger.Problems[0]
	for name, d := range map[string]document{
		"docs":     draw(t, views.Docs(docsPage())),
		"problems": draw(t, views.Problems(views.ProblemsPage{Problems: ledger.Problems})),
		"problem":  draw(t, views.Problem(views.ProblemPage{Problem: p, Means: "It means `this`.", NextIs: "Correct it.", From: []string{"POST /v1/operations"}, Example: "{}"})),
	} {
		t.Run(name, func(t *testing.T) {
			for _, once := range []string{"h1", "main", "title"} {
				if n := len(d.all(tag(once))); n != 1 {
					t.Errorf("%d <%s>, want 1", n, once)
				}
			}
			if len(d.all(tag("script"))) > 0 || len(d.all(has("style", "*"))) > 0 {
				t.Error("a script, or an inline style")
			}
			for _, link := range d.all(tag("link")) {
				if href := attr(link, "href"); !strings.HasPrefix(href, "/static/") {
					t.Errorf("it loads %s", href)
				}
			}
			for _, a := range d.all(tag("a")) {
				to, inside := strings.CutPrefix(attr(a, "href"), "#")
				if inside && len(d.all(has("id", to))) != 1 {
					t.Errorf("#%s leads nowhere", to)
				}
			}
			names(t, d)
			references(t, d)
		})
	}
}

func TestDocsPageDrawsWhatItIsGiven(t *testing.T) {
	d := draw(t, views.Docs(docsPage()))
	mustSay(t, d, "The holdfast API", "One identity.", "Read next.", "POST /v1/things/{thing_id}", "Make one.", "Needs a token with operations:write", "Needs no token",
		"limit", "required", "query, integer", "How many, see next_cursor.", "Headers of 201", "A thing", `{"a": "</code><script>alert(1)</script>"}`, "wait", "Wait retry_after seconds.", "string, ^[a-z]$")
	mustNotSay(t, d, "`")
	if n := len(d.all(has("id", "post-v1-things-thing-id"))); n != 1 {
		t.Errorf("the call has %d anchors", n)
	}
	for _, p := range ledger.Problems {
		if len(d.all(has("href", p.Type()))) != 1 {
			t.Errorf("no link to %s", p.Type())
		}
	}
}

func TestProblemPageSaysWhatToDo(t *testing.T) {
	for _, p := range ledger.Problems {
		d := draw(t, views.Problem(views.ProblemPage{Problem: p}))
		mustSay(t, d, p.Title, p.Reason, p.Next, p.Detail)
		if says := strings.Contains(d.text(), "yes: nothing that is sent"); says != p.Terminal {
			t.Errorf("%s: says terminal %v", p.Reason, says)
		}
	}
}

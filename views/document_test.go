package views_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"golang.org/x/net/html"
)

// document is a drawn page, parsed as a browser would.
type document struct {
	source string
	root   *html.Node
}

func draw(t testing.TB, c templ.Component) document {
	t.Helper()
	var b strings.Builder
	if err := c.Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return document{b.String(), root}
}

func (d document) all(match func(*html.Node) bool) []*html.Node { return within(d.root, match) }

func within(n *html.Node, match func(*html.Node) bool) []*html.Node {
	var out []*html.Node
	for c := range n.Descendants() {
		if c.Type == html.ElementNode && match(c) {
			out = append(out, c)
		}
	}
	return out
}

func tag(names ...string) func(*html.Node) bool {
	return func(n *html.Node) bool { return slices.Contains(names, n.Data) }
}

func has(name, value string) func(*html.Node) bool {
	return func(n *html.Node) bool { v, ok := lookup(n, name); return ok && (value == "*" || v == value) }
}

func lookup(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func attr(n *html.Node, name string) string { v, _ := lookup(n, name); return v }

func class(name string) func(*html.Node) bool {
	return func(n *html.Node) bool { return slices.Contains(strings.Fields(attr(n, "class")), name) }
}

// text is what a reader reads, with spaces as a browser would set them. What an
// agent, a provider or a person wrote is left out if ours is true.
func text(n *html.Node, ours bool) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
		case n.Data == "script" || n.Data == "style":
		case ours && attr(n, "data-said") != "":
		default:
			if blockLevel(n) {
				b.WriteByte('\n')
			}
			for c := range n.ChildNodes() {
				walk(c)
			}
			if blockLevel(n) {
				b.WriteByte('\n')
			}
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}

func blockLevel(n *html.Node) bool {
	return slices.Contains([]string{"p", "div", "li", "h1", "h2", "h3", "td", "th", "tr", "dt", "dd", "summary", "option", "form", "section", "label", "legend", "br", "title", "blockquote"}, n.Data)
}

func (d document) text() string { return text(d.root, false) }

// form is the one form of that data-act, or nil.
func (d document) form(act string) *html.Node {
	if forms := d.all(has("data-act", act)); len(forms) == 1 {
		return forms[0]
	}
	return nil
}

func field(form *html.Node, name string) *html.Node {
	if f := within(form, has("name", name)); len(f) > 0 {
		return f[0]
	}
	return nil
}

func mustSay(t *testing.T, d document, sentences ...string) {
	t.Helper()
	all := d.text()
	for _, s := range sentences {
		if !strings.Contains(all, s) {
			t.Errorf("the page does not say %.200q", s)
		}
	}
}

func mustNotSay(t *testing.T, d document, sentences ...string) {
	t.Helper()
	for _, s := range sentences {
		if strings.Contains(d.text(), s) {
			t.Errorf("the page says %q", s)
		}
	}
}

package views_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"holdfast/views"
)

// update writes the golden page anew: go test ./views -run Numbers -update
var update = flag.Bool("update", false, "write the golden files")

func TestNumbersPageSaysInWordsWhatItDraws(t *testing.T) {
	some := draw(t, views.Numbers(numbers()["some"]))
	mustSay(t, some,
		"1,207 operations are unknown, on 2 rails, the most: bank-eu, 1,204, oldest 3 d.", "card-eu 3 2 h 00 m", "smtp 0 –",
		"1,209 operations wait for a person, for 3 reasons, the most: No clear answer from the provider, 1,204.", "Overlaps another: same recipient and amount 4 0",
		"9 unknowns have ended, half of them within 1 m.", "Within Look-up Event Person All", "1 h to 4 h 0 0 1 1", "24 h to 72 h 0 0 1 1",
		"Of 49,046 sends, 31 brought no clear answer at first.", "card-eu 48,110 902 0 31", "31 · under 0.1 %", "902 · 1.8 %",
		"We owe, EUR Open on 2 rails, the most: card-eu, €310.00.", "card-eu €310.00 3 1, €48.00", "We owe, USD Open on 1 rail, the most: card-eu, $4,800.00.", "bank-eu €1,200.00 1 0, €0.00",
		"3 lines in 1 account, the most: EUR …4521 · card-eu, 3.")
	mustSay(t, draw(t, views.Numbers(numbers()["none"])), "Nothing is unknown.", "Nothing is held.", "Nothing that was unknown has ended yet.", "Nothing was sent yet.",
		"You owe nobody anything.", "Every line of the statements has its operation.")
	counting := draw(t, views.Numbers(numbers()["counting"]))
	mustSay(t, counting, "The log is long and is still being counted.")
	mustNotSay(t, counting, "Nothing was sent yet.", "Nothing that was unknown has ended yet.", "Statement lines")
}

// Every picture has a name, and a table behind it with a row for each thing that
// it tells of.
func TestEveryChartHasATableBehindIt(t *testing.T) {
	d := draw(t, views.Numbers(numbers()["some"]))
	charts := d.all(class("chart"))
	if len(charts) != 8 {
		t.Fatalf("%d charts", len(charts))
	}
	for _, c := range charts {
		title := text(within(c, tag("h2"))[0], false)
		pictures, tables := within(c, tag("svg")), within(c, tag("table"))
		if len(pictures) != 1 || len(tables) != 1 {
			t.Errorf("%s: %d pictures and %d tables", title, len(pictures), len(tables))
			continue
		}
		if p := pictures[0]; attr(p, "role") != "img" || !strings.HasPrefix(attr(p, "aria-label"), title+". ") || len(attr(p, "aria-label")) < len(title)+20 {
			t.Errorf("%s: the picture says %q", title, attr(p, "aria-label"))
		}
		heads := within(tables[0], func(n *html.Node) bool { return n.Data == "th" && attr(n, "scope") == "col" })
		for _, row := range within(tables[0], tag("tr"))[1:] {
			if n := len(within(row, tag("th", "td"))); n != len(heads) {
				t.Errorf("%s: a row of %d cells under %d heads", title, n, len(heads))
			}
		}
	}
}

func TestNumbersPageIsDrawnAsItWas(t *testing.T) {
	source := draw(t, views.Numbers(numbers()["some"])).source
	_, main, _ := strings.Cut(source, `<div class="charts">`)
	main, _, _ = strings.Cut(main, "</main>")
	main = strings.NewReplacer("<section", "\n<section", "<svg", "\n<svg", "<text", "\n<text", "<table", "\n<table", "<tr", "\n<tr").Replace(main) + "\n"
	const file = "testdata/numbers.html"
	if *update {
		if err := os.WriteFile(file, []byte(main), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if main != string(want) {
		t.Errorf("the page is drawn otherwise than in %s; look at it, and run: go test ./views -run Numbers -update", file)
	}
}

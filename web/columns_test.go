package web

import (
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// unmappedConfig is deskConfig whose rails say nothing about their statements.
var unmappedConfig = regexp.MustCompile(`(?m)^ *statement: .*\n`).ReplaceAllString(deskConfig, "")

const bankFile = "Tag;Summe;Verwendung\n03.11.2026;-48,00;miete\n14.11.2026;12,50;=1+1\n"

// naming is the form of the page that asks, filled in.
func naming(form url.Values, more ...string) url.Values {
	filled := url.Values{"upload": form["upload"], "key": form["key"]}
	for i := 0; i < len(more); i += 2 {
		filled.Set(more[i], more[i+1])
	}
	return filled
}

// TestAFileNobodyKnowsIsNamedByAPerson, once: the next one with its header is read
// without a question, until somebody names the columns again.
func TestAFileNobodyKnowsIsNamedByAPerson(t *testing.T) {
	w := newServer(t, unmappedConfig)
	fin := w.finance()
	at, page := fin.shown("card", "bank.csv", bankFile)
	shows(t, page, 422, "What do the columns hold?", "Verwendung", "-48,00", "miete", "the titles of the columns", `name="column-0"`, `name="column-2"`)
	form := hidden(t, page, "import", 0)

	twice := fin.post("/statements/import", naming(form, "column-0", "date", "column-1", "date", "header", "titles"))
	shows(t, twice, 422, "Two columns hold the date", `value="date" selected`)
	half := fin.post("/statements/import", naming(form, "column-0", "date", "column-1", "amount", "header", "titles"))
	if half.Code != 303 {
		t.Fatal(half.Code, mainText(half))
	}
	shows(t, fin.get(at), 422, "columns.currency is missing", `value="amount" selected`)

	whole := fin.post("/statements/import", naming(form, "column-0", "date", "column-1", "amount", "column-2", "text", "header", "titles", "currency", "eur"))
	if whole.Code != 303 {
		t.Fatal(whole.Code, mainText(whole))
	}
	page = fin.get(at)
	shows(t, page, 200, "2 lines", "-€48.00", "€12.50", "miete", "Import 2 new lines", "Name them again")
	if w.imported() != 0 {
		t.Fatal("the preview stored it")
	}
	form = hidden(t, page, "import", 0)
	if answer := fin.post("/statements/import", form); answer.Code != 303 || w.imported() != 1 {
		t.Fatal(answer.Code, w.imported())
	}
	if lines := w.lines(); len(lines) != 2 || lines[0].Amount+lines[1].Amount != 1250-4800 {
		t.Fatalf("%+v", lines)
	}

	at, page = fin.shown("card", "more.csv", strings.Replace(bankFile, "miete", "strom", 1))
	shows(t, page, 200, "new <b>1</b> · already imported <b>1</b>", "Name them again")
	again := url.Values{"upload": hidden(t, page, "import", 0)["upload"], "key": {"columns"}, "anew": {"1"}}
	if answer := fin.post("/statements/import", again); answer.Code != 303 {
		t.Fatal(answer.Code)
	}
	page = fin.get(at)
	shows(t, page, 422, "What do the columns hold?")
	hides(t, page, `value="amount" selected`)
}

// TestALineIsNotLostAsAHeader: a file without one is named by its first row, which
// is kept.
func TestALineIsNotLostAsAHeader(t *testing.T) {
	w := newServer(t, unmappedConfig)
	fin := w.finance()
	at, page := fin.shown("card", "bank.csv", "2026-11-03,-48.00,miete\n2026-11-04,12.50,strom\n")
	shows(t, page, 422, `value="none" checked`)
	form := hidden(t, page, "import", 0)
	if answer := fin.post("/statements/import", naming(form, "column-0", "date", "column-1", "amount", "column-2", "text", "header", "none", "currency", "EUR")); answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	shows(t, fin.get(at), 200, "Import 2 new lines", "miete", "strom")
}

// TestAnAnswerLaterKeepsTheNames: a question about a later file with the same
// header adds to what is kept, and takes none of it away.
func TestAnAnswerLaterKeepsTheNames(t *testing.T) {
	w := newServer(t, unmappedConfig)
	fin := w.finance()
	importAs := func(data string, more ...string) {
		t.Helper()
		at, page := fin.shown("card", "bank.csv", data)
		if len(more) > 0 {
			if answer := fin.post("/statements/import", naming(hidden(t, page, "import", 0), more...)); answer.Code != 303 {
				t.Fatal(answer.Code, mainText(answer))
			}
			page = fin.get(at)
		}
		shows(t, page, 200, "Import")
		if answer := fin.post("/statements/import", hidden(t, page, "import", 0)); answer.Code != 303 {
			t.Fatal(answer.Code, mainText(answer))
		}
	}
	importAs(bankFile, "column-0", "date", "column-1", "amount", "column-2", "text", "header", "titles", "currency", "EUR")
	at, page := fin.shown("card", "december.csv", "Tag;Summe;Verwendung\n03.12.2026;-1,000;a\n")
	for key, answer := range map[string]string{"dates": "dmy", "decimal": "point"} {
		form := url.Values{"upload": hidden(t, page, "import", 0)["upload"], "key": {key}, "answer": {answer}}
		if answer := fin.post("/statements/import", form); answer.Code != 303 {
			t.Fatal(answer.Code)
		}
	}
	if answer := fin.post("/statements/import", hidden(t, fin.get(at), "import", 0)); answer.Code != 303 || w.imported() != 2 {
		t.Fatal(answer.Code, mainText(answer))
	}
	_, page = fin.shown("card", "later.csv", "Tag;Summe;Verwendung\n31.12.2026;-2,000;a\n")
	shows(t, page, 200, "-€2,000.00", "Import 1 new line")
}

// TestADayIsShownAsTheFileNamesIt, in its own zone, before the import and after:
// a statement of December has no line of November.
func TestADayIsShownAsTheFileNamesIt(t *testing.T) {
	w := newServer(t, unmappedConfig)
	fin := w.finance()
	at, page := fin.shown("card", "bank.csv", "Tag;Summe;Verwendung\n31.12.2025;-48,00;miete\n01.12.2025;12,50;strom\n")
	if answer := fin.post("/statements/import", naming(hidden(t, page, "import", 0), "column-0", "date", "column-1", "amount", "column-2", "text", "header", "titles", "currency", "EUR", "time_zone", "Europe/Berlin")); answer.Code != 303 {
		t.Fatal(answer.Code, mainText(answer))
	}
	page = fin.get(at)
	desk := fin.post("/statements/import", hidden(t, page, "import", 0)).Header().Get("Location")
	for _, page := range []*httptest.ResponseRecorder{page, fin.get(desk), fin.get("/statements")} {
		shows(t, page, 200, "1 Dec 2025", "31 Dec 2025")
		hides(t, page, "30 Nov", "30 Dec")
	}
}

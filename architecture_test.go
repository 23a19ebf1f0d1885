package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport is the direction of imports: a package may use those on its right,
// and nothing else of ours.
var mayImport = map[string][]string{
	".":                   {"web", "reconcile", "dispatch", "store"},
	"web":                 {"web/client", "views", "static", "reconcile", "reconcile/statement", "dispatch", "dispatch/rail", "store", "store/invariant", "store/ledger"},
	"web/client":          {},
	"views":               {"store/ledger"},
	"static":              {},
	"reconcile":           {"reconcile/statement", "dispatch", "dispatch/rail", "store", "store/ledger"},
	"reconcile/statement": {"dispatch/rail", "store/ledger"},
	"dispatch":            {"dispatch/rail", "store", "store/ledger"},
	"dispatch/rail":       {"store/ledger"},
	"store":               {"store/ledger"},
	"store/invariant":     {"store", "store/ledger"},
	"store/ledger":        {},
}

// onlyIn names packages that one room alone may import.
var onlyIn = map[string][]string{
	"database/sql":                           {"store"},
	"modernc.org/sqlite":                     {"store"},
	"github.com/labstack/echo/v4":            {"web"},
	"github.com/a-h/templ":                   {"views", "web"},
	"github.com/spf13/cobra":                 {"."},
	"github.com/modelcontextprotocol/go-sdk": {"web"},
	"github.com/prometheus/client_golang":    {"web"},
}

// pure may not be imported by the domain: no SQL, no network, no files, no
// logger. Of time it may use durations and formats, which the test for the
// clock below checks.
var pure = []string{"database/sql", "net", "net/http", "os", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "context"}

type source struct {
	folder, file string
	imports      []string
	text         string
	documented   bool
}

func TestImportsPointOneWay(t *testing.T) {
	for _, s := range sources(t) {
		allowed, known := mayImport[s.folder]
		if !known {
			t.Errorf("%s: there is no room for package %s in the house", s.file, s.folder)
			continue
		}
		for _, i := range s.imports {
			if ours, ok := strings.CutPrefix(i, "holdfast/"); ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s: %s may not import %s", s.file, s.folder, ours)
			}
			for only, rooms := range onlyIn {
				if (i == only || strings.HasPrefix(i, only+"/")) && !slices.Contains(rooms, s.folder) {
					t.Errorf("%s: only %v may import %s", s.file, rooms, only)
				}
			}
			if s.folder == "store/ledger" && slices.Contains(pure, i) {
				t.Errorf("%s: the domain imports nothing of the world, and so not %s", s.file, i)
			}
		}
	}
}

// A statement is recognised by its first two words.
var statement = regexp.MustCompile("(?i)[\"`]\\s*(select\\s+[\\w*(]+.*\\sfrom\\s|insert\\s+into\\s|update\\s+\\w+\\s+set\\s|delete\\s+from\\s|create\\s+table\\s)")

func TestOnlyStoreSpeaksSQL(t *testing.T) {
	for _, s := range sources(t) {
		if s.folder != "store" && statement.MatchString(s.text) {
			t.Errorf("%s: holds a statement of SQL; only package store speaks it", s.file)
		}
	}
}

func TestTheDomainHasNoClock(t *testing.T) {
	clock := regexp.MustCompile(`time\.(Now|Since|Until|After|Sleep|Tick|NewTimer|NewTicker)\(`)
	for _, s := range sources(t) {
		if s.folder == "store/ledger" && clock.MatchString(s.text) {
			t.Errorf("%s: asks a clock; the time comes in by parameter", s.file)
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]int{}
	for _, s := range sources(t) {
		if s.documented {
			documented[s.folder]++
		}
	}
	for folder := range mayImport {
		if documented[folder] != 1 {
			t.Errorf("package %s has %d package comments, not one", folder, documented[folder])
		}
	}
}

func TestTopLevelIsTheUsers(t *testing.T) {
	allowed := []string{"main.go", "web", "views", "store", "dispatch", "reconcile", "static", "go.mod", "go.sum", "README.md",
		"docs", "Makefile", "LICENSE", ".ci", ".gitignore", ".git"}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(allowed, e.Name()) && !strings.HasSuffix(e.Name(), "_test.go") && !ignored(e.Name()) {
			t.Errorf("%s stands at the top level, which is the user's", e.Name())
		}
	}
}

// ignored are what a run of the program leaves in the checkout.
func ignored(name string) bool { return name == "holdfast" || name == "holdfast-data" }

// TestOneCanonicaliser: two canonical forms would be two fingerprints.
func TestOneCanonicaliser(t *testing.T) {
	for _, s := range sources(t) {
		if strings.Contains(s.text, ".Canonicalize(") && s.file != filepath.Join("store", "ledger", "canonical.go") {
			t.Errorf("%s: makes a canonical form of its own; ledger.Canonical is the one", s.file)
		}
	}
}

// sources reads every Go file of the program that is not a test.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		s := source{folder: filepath.ToSlash(filepath.Dir(path)), file: path, text: string(text), documented: f.Doc != nil}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, name)
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d files were found: the walk is broken", len(all))
	}
	return all
}

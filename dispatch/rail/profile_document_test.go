package rail

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of docs/profiles.md")

// TestProfilesStandInTheDocument keeps docs/profiles.md honest. After a change
// of a profile: go test ./dispatch/rail -run Document -update
func TestProfilesStandInTheDocument(t *testing.T) {
	const file = "../../docs/profiles.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for name, content := range map[string]string{"table": profileTable(t), "profiles": profileSections()} {
		begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->\n"
		before, rest, ok := strings.Cut(got, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no place for the %s", file, name)
		}
		got = before + begin + content + end + after
	}
	if got == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the profiles; run: go test ./dispatch/rail -run Document -update", file)
	}
	if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}

func profileTable(t *testing.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(ProfileColumns, " | "), strings.Repeat("---|", len(ProfileColumns)))
	for _, p := range Profiles() {
		row, err := p.Row()
		if err != nil {
			t.Fatal(err)
		}
		cells := row.Cells()
		cells[0] = fmt.Sprintf("[%s](#%s)", p.Name, p.Name)
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

func profileSections() string {
	var b strings.Builder
	for _, p := range Profiles() {
		fmt.Fprintf(&b, "### %s\n\n%s. %s\n\n", p.Name, p.Title, p.About)
		fmt.Fprintf(&b, "- Credential: `%s`\n- Key: %s\n- Scope: %s\n- A repeat: %s\n", p.Credential, p.Key, p.Scope, p.Replay)
		fmt.Fprintf(&b, "- Same key, another body: %s\n- While the first runs: %s\n- Events: %s\n", p.Mismatch, p.Concurrent, p.Events)
		if m := p.Rail.Dedupe.ReplayMarker; m.Header != "" {
			fmt.Fprintf(&b, "- Marks a replay: `%s: %s`\n", m.Header, m.Value)
		}
		b.WriteString("- Know before you trust it:\n")
		for _, c := range p.Caveats {
			fmt.Fprintf(&b, "  - %s\n", c)
		}
		fmt.Fprintf(&b, "- Sources, read on %s:\n", p.Checked)
		for _, s := range p.Sources {
			fmt.Fprintf(&b, "  - %s\n", s)
		}
		b.WriteString("\n")
	}
	return b.String()
}

package web

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// accidents plays every one of them, as trigger does.
func (d *runningDemo) accidents(t *testing.T) {
	const one = "received 1 request and holds 1 charge"
	for _, c := range []struct {
		name  string
		naked bool
		says  []string
	}{
		{"lost-answer", false, []string{" 1 recorded    charge 48.00 USD ", "no answer   after ", "409 in_progress", "found by our stamp", one, "same accident, new key): 2 requests, 2 charges"}},
		{"lost-answer", true, []string{"no answer   after ", "with a fresh key", "received 2 requests and holds 2 charges"}},
		{"provider-500", false, []string{"answer 500", "unknown", "found by our stamp", one, "2 requests, 2 charges"}},
		{"provider-500", true, []string{"answer 500", "received 2 requests and holds 2 charges"}},
		{"changed-payload", false, []string{"with 49.00 USD → 409 request, mismatch /amount, next: stop", one}},
		{"needs-approval", false, []string{"charge 1,840.00 USD", "decide at " + d.Dashboard + "/operations/needs-approval-", "received 0 requests and holds 0 charges"}},
		{"overlap", false, []string{"same reference as overlap-", "/operations/overlap-", one, "2 requests, 2 charges"}},
		{"overlap", true, []string{"received 2 requests and holds 2 charges"}},
		{"double-send", false, []string{"1 × 202 ", one, "8 requests, 8 charges"}},
		{"double-send", true, []string{"8 × 201", "received 8 requests and holds 8 charges"}},
	} {
		name := c.name
		if c.naked {
			name += " naked"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told strings.Builder
			must(t, trigger(t.Context(), d.notePath, c.name, c.naked, &told))
			for _, says := range c.says {
				if !strings.Contains(told.String(), says) {
					t.Errorf("does not say %q:\n%s", says, told.String())
				}
			}
			if t.Failed() || testing.Verbose() {
				t.Log("\n" + told.String())
			}
		})
	}
	t.Run("a book that shows something else is a failure", func(t *testing.T) {
		t.Parallel()
		var told strings.Builder
		s := newStory(d.demoNote, "broken", &told)
		must(t, nakedOverlapping(t.Context(), s))
		if err := s.promised(t.Context(), 1, 1); err == nil || !strings.Contains(told.String(), "received 2 requests and holds 2 charges") {
			t.Errorf("%v\n%s", err, told.String())
		}
	})
}

func TestTriggerSaysWhatIsMissing(t *testing.T) {
	folder := t.TempDir()
	note := func(name, text string) string {
		path := filepath.Join(folder, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	link := filepath.Join(folder, "link")
	must(t, os.Symlink(note("there", `{"dashboard":"http://127.0.0.1:1"}`), link))
	for _, c := range []struct {
		note, name string
		naked      bool
		says       string
	}{
		{filepath.Join(folder, "none"), "lost-answer", false, "no demo is running; start it with: holdfast demo"},
		{note("stale", `{"dashboard":"http://127.0.0.1:1"}`), "lost-answer", false, "no demo is running; start it with: holdfast demo"},
		{note("half", `{"dash`), "lost-answer", false, "no demo is running; start it with: holdfast demo"},
		{link, "lost-answer", false, link + " is not a demo's"},
		{"", "meteor", false, "there are lost-answer, provider-500, changed-payload, needs-approval, overlap, double-send"},
		{"", "needs-approval", true, "--naked goes with lost-answer, provider-500, overlap, double-send"},
	} {
		err := trigger(t.Context(), c.note, c.name, c.naked, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %v, want %q", c.note, c.name, err, c.says)
		}
	}
	for _, a := range accidents {
		if !strings.Contains(Accidents(), a.name+" ") {
			t.Errorf("the help lacks %s", a.name)
		}
	}
}

func TestNoteIsClosedToOthersAndTheNewestStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "note.json")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	must(t, os.Symlink(elsewhere, path)) // laid there by somebody else
	must(t, demoNote{PID: os.Getpid() + 1, Dashboard: "http://x"}.write(path))
	removeDemoNote(path)
	if n, err := readDemoNote(path); err != nil || n.Dashboard != "http://x" {
		t.Error("a later demo's note was taken away: ", err)
	}
	at, err := os.Lstat(path)
	must(t, err)
	if at.Mode() != 0o600 {
		t.Error(at.Mode())
	}
	if _, err := os.Lstat(elsewhere); !errors.Is(err, os.ErrNotExist) {
		t.Error("the note was written through a link")
	}
	must(t, demoNote{PID: os.Getpid(), Dashboard: "http://y"}.write(path))
	removeDemoNote(path)
	if _, err := readDemoNote(path); !errors.Is(err, errNoDemo) {
		t.Error("the note was left behind: ", err)
	}
}

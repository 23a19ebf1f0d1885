package web

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/web/client"
)

// runningDemo is a whole demo with its providers in processes of their own.
type runningDemo struct {
	demoNote
	notePath string
	folder   string
	printed  *safeBuffer
	end      func() error
}

// startDemo runs a demo; without a folder, in a temporary one of its own.
func startDemo(t *testing.T, folder string) *runningDemo {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	d := &runningDemo{notePath: filepath.Join(t.TempDir(), "note.json"), printed: &safeBuffer{}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Demo(ctx, DemoOptions{Listen: "127.0.0.1:0", Folder: folder, Exe: exe, Out: d.printed, Version: "0.0.0", pace: time.Second, note: d.notePath})
	}()
	d.end = sync.OnceValue(func() error {
		stop()
		return <-ended
	})
	t.Cleanup(func() { d.end() })
	soon(t, "the demo prints where it is", func() bool {
		select {
		case err := <-ended:
			t.Fatal("the demo ended: ", err)
		default:
		}
		return strings.Contains(d.printed.String(), "lost-answer")
	})
	d.demoNote, err = readDemoNote(d.notePath)
	must(t, err)
	_, after, _ := strings.Cut(d.printed.String(), "data in ")
	d.folder, _, _ = strings.Cut(after, " ·")
	return d
}

func (d *runningDemo) agent() *client.Client { return client.New(d.Dashboard, d.Token) }

func TestDemo(t *testing.T) {
	d := startDemo(t, "")
	t.Run("while it runs", func(t *testing.T) {
		t.Run("a printed link signs in with one click", func(t *testing.T) {
			t.Parallel()
			_, rest, _ := strings.Cut(d.printed.String(), "Dashboard  ")
			link, _, _ := strings.Cut(rest, " ")
			jar, err := cookiejar.New(nil)
			must(t, err)
			answer, err := (&http.Client{Jar: jar}).Get(link)
			must(t, err)
			defer answer.Body.Close()
			page, err := io.ReadAll(answer.Body)
			must(t, err)
			for _, says := range []string{"What needs me now", "Ana", "TEST"} {
				if answer.StatusCode != 200 || !bytes.Contains(page, []byte(says)) {
					t.Errorf("%d without %q", answer.StatusCode, says)
				}
			}
		})
		t.Run("a visitor sees the four situations", func(t *testing.T) {
			t.Parallel()
			d.showsEachSituation(t)
		})
		t.Run("accidents", d.accidents)
	})
	if err := d.end(); err != nil {
		t.Error("the demo did not end cleanly: ", err)
	}
	for _, left := range []string{d.folder, d.notePath} {
		if _, err := os.Lstat(left); !os.IsNotExist(err) {
			t.Errorf("%s was left behind", left)
		}
	}
}

// showsEachSituation watches the agents until it has seen all that the demo is to
// show in its first minute.
func (d *runningDemo) showsEachSituation(t *testing.T) {
	agent := d.agent()
	unknown, seen := map[string]bool{}, map[string]bool{}
	soon(t, "an approval, an unknown that clears by itself, one that needs a person, and an overlap", func() bool {
		page, err := agent.List(t.Context(), client.Filter{Limit: 200})
		must(t, err)
		for _, e := range page.Items {
			if !strings.HasPrefix(e.OperationID, "inv-") { // somebody else's accidents
				continue
			}
			switch {
			case e.Status == "awaiting_approval":
				seen["an approval"] = true
			case e.Status == "unknown":
				unknown[e.OperationID] = true
			case e.Status == "confirmed" && unknown[e.OperationID]:
				seen["an unknown cleared by itself"] = true
			case e.Status == "unknown_hold" && e.Attempts > 0:
				seen["an unknown needs a person"] = true
			case e.Status == "unknown_hold" && e.Reason == "same_reference" && len(e.Overlaps) > 0:
				seen["an overlap is held"] = true
			}
		}
		return len(seen) == 4
	})
}

func TestDemoGoesOnInItsOwnFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "d")
	first := startDemo(t, folder)
	e, err := first.agent().Submit(t.Context(), newStory(first.demoNote, "kept", io.Discard).operation())
	must(t, err)
	must(t, first.end())
	second := startDemo(t, folder)
	if _, err := second.agent().Get(t.Context(), e.OperationID); err != nil {
		t.Error("the ledger did not last: ", err)
	}
	must(t, second.end())
	if !isDemoFolder(folder) {
		t.Error("a folder that was given is kept")
	}
}

func TestDemoTouchesNobodysLedger(t *testing.T) {
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "holdfast.db"), nil, 0o600))
	err := Demo(t.Context(), DemoOptions{Listen: "127.0.0.1:0", Folder: folder, Out: io.Discard, note: filepath.Join(folder, "note")})
	if err == nil || !strings.Contains(err.Error(), folder) || !strings.Contains(err.Error(), "--data") {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Error("something was written: ", left, err)
	}
}

// soon polls what other processes are about to bring about.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// safeBuffer may be read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

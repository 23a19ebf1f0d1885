package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// demoNote is what a running demo leaves for trigger: where it is, and the
// token to speak to it with.
type demoNote struct {
	PID       int               `json:"pid"`
	Dashboard string            `json:"dashboard"`
	SignIn    map[string]string `json:"sign_in"` // e-mail → one-click link
	Token     string            `json:"token"`
	Sandboxes map[string]string `json:"sandboxes"` // rail → address of its provider
}

var errNoDemo = errors.New("no demo is running; start it with: holdfast demo")

// demoNotePath is one a user and machine: the newest demo is the one that
// trigger speaks to.
func demoNotePath() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("holdfast-demo-%d.json", os.Getuid()))
}

// write leaves the note, in place of one that an earlier demo left. The folder
// is everybody's: the file is made anew under a name nobody guessed, closed to
// others from its first moment, and then moved.
func (n demoNote) write(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already, if all went well
	err = json.NewEncoder(f).Encode(n)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// readDemoNote reads the note of this user's own demo.
func readDemoNote(path string) (demoNote, error) {
	var n demoNote
	at, err := os.Lstat(path)
	if err != nil {
		return n, errNoDemo
	}
	if owner, ok := at.Sys().(*syscall.Stat_t); !at.Mode().IsRegular() || ok && int(owner.Uid) != os.Getuid() {
		return n, fmt.Errorf("%s is not a demo's: remove it and start the demo again", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return n, err
	}
	if json.Unmarshal(text, &n) != nil || n.Dashboard == "" {
		return n, errNoDemo
	}
	return n, nil
}

// removeDemoNote takes the note away, unless a later demo wrote its own.
func removeDemoNote(path string) {
	if n, err := readDemoNote(path); err == nil && n.PID == os.Getpid() {
		os.Remove(path)
	}
}

// running finds out whether the demo of the note still answers: one that was
// killed left its note behind.
func (n demoNote) running(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, n.Dashboard+"/healthz", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
)

// Sandboxes are the sandbox providers that this process started, one a rail,
// each a process of its own with its book beside the data.
type Sandboxes struct {
	Exe    string // this very binary
	Folder string
	Log    *slog.Logger

	mu      sync.Mutex
	running map[laneKey]sandboxProcess
}

type sandboxProcess struct {
	address string
	dedupe  bool
	stop    func()
}

// Address starts the provider of a rail, or finds the one that runs.
func (s *Sandboxes) Address(tenant, rail string, dedupe bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := laneKey{tenant, rail}
	if p, ok := s.running[k]; ok && p.dedupe == dedupe {
		return p.address, nil
	} else if ok {
		p.stop()
	}
	book := filepath.Join(s.Folder, fmt.Sprintf("sandbox-%s-%s.jsonl", tenant, rail))
	addr, stop, err := StartSandboxChild(context.Background(), s.Exe, []string{"--data", book, fmt.Sprintf("--dedupe=%t", dedupe)}, s.Log)
	if err != nil {
		return "", err
	}
	if s.running == nil {
		s.running = map[laneKey]sandboxProcess{}
	}
	s.running[k] = sandboxProcess{"http://" + addr, dedupe, stop}
	return "http://" + addr, nil
}

// Stop ends them all.
func (s *Sandboxes) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.running {
		p.stop()
	}
	s.running = nil
}

// Running is the base URL of a rail's provider, empty if none was started.
func (s *Sandboxes) Running(tenant, rail string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[laneKey{tenant, rail}].address
}

package dispatch

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// writtenBook is a book with two payments, and its lines.
func writtenBook(t *testing.T) (path string, lines []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "book")
	s, err := NewSandbox(SandboxOptions{Book: path})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		q := sandboxRequest{Method: "POST", kind: kindPayment, body: []byte(`{}`)}
		q.Key = fmt.Sprint("k", i)
		if err := s.book.note(&q); err != nil {
			t.Fatal(err)
		}
		effects, answer := s.outcome(q, sandboxFault{})
		if _, err := s.book.commit(q.N, effects, answer); err != nil {
			t.Fatal(err)
		}
		if s.book.durable != s.book.size {
			t.Fatalf("answered with %d of %d bytes on disk", s.book.durable, s.book.size)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
}

func TestABookIsThereAgainAfterAStart(t *testing.T) {
	c := newClock()
	o := SandboxOptions{Book: t.TempDir() + "/book", Dedupe: true, Now: c.Now}
	var before, after shownSandboxBook
	var answers [3]sandboxReply
	t.Run("written", func(t *testing.T) {
		p := openSandbox(t, o)
		p.arm(`[{"match":{"key":"k1"},"fault":"error_500_after"}]`)
		for i := range answers {
			answers[i] = p.do("POST", "/payments", fmt.Sprint("k", i), "{ \"amount\": 5,\n\"currency\":\"EUR\", \"recipient\":\"\\u00e9\" }")
		}
		before = p.book()
	})
	p := openSandbox(t, o)
	after = p.book()
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("before %+v\nafter  %+v", before, after)
	}
	for i, a := range answers {
		r := p.do("POST", "/payments", fmt.Sprint("k", i), "{ \"amount\": 5,\n\"currency\":\"EUR\", \"recipient\":\"\\u00e9\" }")
		if r.status != a.status || r.body != a.body || r.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%d: was %d %s, is %d %s", i, a.status, a.body, r.status, r.body)
		}
	}
	if answers[1].status != 500 {
		t.Error(answers[1])
	}
	if r := p.pay("new", "r"); !strings.Contains(r.body, `"pay_4"`) {
		t.Error("ids go on from the book:", r)
	}
}

func TestATornLastLineIsCutOff(t *testing.T) {
	path, lines := writtenBook(t)
	whole := strings.Join(lines[:len(lines)-1], "")
	last := lines[len(lines)-1] + "\n"
	for name, torn := range map[string]string{
		"one byte":             last[:1],
		"half":                 last[:len(last)/2],
		"all but its line end": last[:len(last)-1],
		"never written":        "\x00\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(whole+torn), 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			s, err := NewSandbox(SandboxOptions{Book: path, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(s.book.effectsSoFar()); n != 1 {
				t.Errorf("%d effects", n)
			}
			if !strings.Contains(log.String(), "torn last line") || !strings.Contains(log.String(), "line=5") {
				t.Errorf("log: %s", log.String())
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if text, _ := os.ReadFile(path); string(text) != whole {
				t.Errorf("the file is now %q", text)
			}
		})
	}
}

func TestABookTornAtItsVeryStartBeginsAnew(t *testing.T) {
	for _, n := range []int{0, 1, len(sandboxBookHeader) - 1} {
		path := filepath.Join(t.TempDir(), "book")
		if err := os.WriteFile(path, []byte(sandboxBookHeader[:n]), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := NewSandbox(SandboxOptions{Book: path})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if text, _ := os.ReadFile(path); string(text) != sandboxBookHeader {
			t.Errorf("%d bytes: %q", n, text)
		}
	}
}

func TestABrokenBookIsRefusedAndLeftAlone(t *testing.T) {
	path, l := writtenBook(t)
	l[len(l)-1] += "\n"
	for name, c := range map[string]struct{ text, says string }{
		"another file":             {"dear diary\n", "line 1: this is not"},
		"another file, no newline": {"dear diary", "line 1: this is not"},
		"a line that is no JSON":   {l[0] + l[1] + "{]\n" + l[3], "line 3: "},
		"an empty line":            {l[0] + l[1] + "\n" + l[2], "line 3: "},
		"an unknown member":        {l[0] + `{"odd":1}` + "\n", "line 2: "},
		"a line without anything":  {l[0] + "{}\n", "line 2: neither"},
		"a request removed":        {l[0] + l[1] + l[2] + l[4], "line 4: request 2 acted before it came"},
		"a request removed first":  {l[0] + l[3] + l[4], "line 2: request 2 stands where 1"},
		"an effect removed":        {l[0] + l[1] + l[3] + l[4], "line 4: effect 2 stands where 1"},
		"an effect repeated":       {l[0] + l[1] + l[2] + l[2], "line 4: effect 1 stands where 2"},
		"an unknown kind":          {l[0] + l[1] + strings.ReplaceAll(l[2], `"payment"`, `"gift"`), `line 3: unknown kind`},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := NewSandbox(SandboxOptions{Book: path})
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if text, _ := os.ReadFile(path); string(text) != c.text {
			t.Errorf("%s: the file was changed to %q", name, text)
		}
	}
}

func TestABookThatCannotBeOpenedIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "book")
	if _, err := NewSandbox(SandboxOptions{Book: path}); err == nil || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

func TestASecondProcessIsRefusedTheBook(t *testing.T) {
	book := t.TempDir() + "/book"
	p, first := startSandbox(t, "--data", book)
	t.Setenv(testProcess, "sandbox")
	if _, _, err := StartSandboxChild(t.Context(), os.Args[0], []string{"--data", book}, nil); err == nil || !strings.Contains(err.Error(), "another sandbox provider is using it") {
		t.Error(err)
	}
	if r := p.pay("k", "r"); r.status != 201 {
		t.Error("the first one goes on:", r)
	}
	first.Process.Kill()
	_, stop, err := StartSandboxChild(t.Context(), os.Args[0], []string{"--data", book}, nil)
	if err != nil {
		t.Fatal("a killed process leaves no lock:", err)
	}
	stop()
}

func TestABookThatCannotBeWrittenPromisesNothing(t *testing.T) {
	s, err := NewSandbox(SandboxOptions{Book: t.TempDir() + "/book"})
	if err != nil {
		t.Fatal(err)
	}
	s.book.file.Close() // every write and flush fails from here on
	q := sandboxRequest{kind: kindPayment}
	if err := s.book.note(&q); err == nil {
		t.Error("noted in a closed file")
	}
	effects, answer := s.outcome(q, sandboxFault{})
	if a, err := s.book.commit(q.N, effects, answer); err == nil || a.Status != 0 {
		t.Error("done in a closed file:", a)
	}
	if n := len(s.book.effectsSoFar()); n != 0 {
		t.Errorf("%d effects", n)
	}
}

func TestAKeyIsFreeAgainWhenItsEffectCouldNotBeWritten(t *testing.T) {
	s, err := NewSandbox(SandboxOptions{Book: t.TempDir() + "/book", Dedupe: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	p := sandboxClientOf(t, server.URL)
	p.arm(`[{"fault":"slow_ms:600000"}]`)
	answer := make(chan sandboxReply, 1)
	go func() { answer <- p.pay("k", "r") }()
	eventually(t, "the request", func() bool {
		s.keys.mu.Lock()
		defer s.keys.mu.Unlock()
		return len(s.keys.busy) == 1
	})
	s.book.file.Close()
	s.hurry()
	if r := <-answer; r.status != 500 || sandboxErrorType(r) != "book_unavailable" {
		t.Error(r)
	}
	if len(s.keys.busy) != 0 || len(s.keys.stored) != 0 || len(s.book.effectsSoFar()) != 0 {
		t.Error("something is left of what was never written")
	}
}

func TestKilledInTheMiddleEveryAnsweredEffectIsInTheBookOnce(t *testing.T) {
	const writes, writers = 200, 8
	book := t.TempDir() + "/book"
	p, process := startSandbox(t, "--data", book)

	answers := make([]sandboxReply, writes)
	var next, answered atomic.Int64
	half := make(chan struct{})
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < writes; i = int(next.Add(1)) - 1 {
				answers[i] = p.pay(fmt.Sprint("key-", i), fmt.Sprint("r", i))
				if answers[i].err == nil && answered.Add(1) == writes/2 {
					close(half)
				}
			}
		})
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	select {
	case <-half:
	case <-over:
		t.Fatalf("only %d of %d writes were answered", answered.Load(), writes)
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-over
	process.Wait()
	if n := answered.Load(); n == writes {
		t.Fatal("the kill came too late to prove anything")
	}

	p, _ = startSandbox(t, "--data", book)
	under := map[string]int{}
	for _, e := range p.book().Effects {
		under[e.Key]++
	}
	for i, a := range answers {
		key := fmt.Sprint("key-", i)
		if n := under[key]; n > 1 || a.err == nil && n != 1 {
			t.Errorf("%s: %d effects, answered: %v", key, n, a.err == nil)
		}
		// The same key once more finds what stood, or does it now.
		r := p.pay(key, fmt.Sprint("r", i))
		if r.status != 201 || a.err == nil && r.body != a.body {
			t.Errorf("%s: was %s, is %d %s", key, a.body, r.status, r.body)
		}
		if replayed := r.header.Get("Idempotent-Replayed") == "true"; replayed != (under[key] == 1) {
			t.Errorf("%s: replayed %v with %d effects", key, replayed, under[key])
		}
	}
	if n := len(p.book().Effects); n != writes {
		t.Errorf("%d effects of %d keys", n, writes)
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	book := t.TempDir() + "/book"
	err = RunSandbox(t.Context(), SandboxOptions{Listen: l.Addr().String(), Book: book}, nil)
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()+" is in use") {
		t.Error(err)
	}
	s, err := NewSandbox(SandboxOptions{Book: book})
	if err != nil {
		t.Fatal("the book was left locked:", err)
	}
	s.Close()
}

func TestTheEndDrainsWhatWasAccepted(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	addr, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- RunSandbox(ctx, SandboxOptions{}, func(a string) { addr <- a }) }()
	p := sandboxClientOf(t, "http://"+<-addr)
	p.arm(`[{"fault":"slow_ms:600000"}]`)
	answer := make(chan sandboxReply, 1)
	go func() { answer <- p.pay("k", "r") }()
	eventually(t, "the request", func() bool { return p.book().Requests == 1 })
	end()
	if r := <-answer; r.status != 201 {
		t.Error(r)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

package dispatch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
)

// sandboxBookHeader is the first line of every book, so that no other file is
// ever taken for one, least of all cut off at its end.
const sandboxBookHeader = `{"book":"sandbox provider","version":1}` + "\n"

// sandboxLockPatience is for a predecessor that is just finishing: its parent
// was killed and started anew at once.
const sandboxLockPatience = 2 * time.Second

// sandboxBook is the provider's book: lines of JSON that are only ever added.
// What one request did, with the answer it was given, is one line, so that a
// kill leaves all of it or nothing. A line is on disk before its answer leaves.
type sandboxBook struct {
	file *os.File // nil: the book is kept in memory

	mu       sync.Mutex
	size     int64
	broken   error // once a write failed, the book takes nothing more
	effects  []sandboxEffect
	requests []sandboxRequest
	numbers  map[string]int // last number used, by kind

	flush   sync.Mutex
	durable int64 // bytes known to be on disk; guarded by flush
}

// sandboxLine is one line: a request that came in, or what one did.
type sandboxLine struct {
	Request *sandboxRequest `json:"request,omitempty"`
	Done    *sandboxDone    `json:"done,omitempty"`
}

type sandboxDone struct {
	N       int             `json:"n"` // of the request
	Effects []sandboxEffect `json:"effects"`
	Answer  sandboxAnswer   `json:"answer"`
}

// openSandboxBook locks and loads a book, and returns the answers that are
// kept in it, by key.
func openSandboxBook(path string, log *slog.Logger) (*sandboxBook, map[string]sandboxAnswer, error) {
	b := &sandboxBook{numbers: map[string]int{}}
	answers := map[string]sandboxAnswer{}
	if path == "" {
		return b, answers, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox book: %w: name a file in a folder that exists and can be written", err)
	}
	b.file = file
	if err := b.open(answers, log); err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("sandbox book %s: %w", path, err)
	}
	return b, answers, nil
}

func (b *sandboxBook) open(answers map[string]sandboxAnswer, log *slog.Logger) error {
	if err := b.lock(); err != nil {
		return err
	}
	if err := b.load(answers, log); err != nil {
		return err
	}
	if b.size == 0 {
		if _, err := b.file.WriteAt([]byte(sandboxBookHeader), 0); err != nil {
			return err
		}
		b.size = int64(len(sandboxBookHeader))
	}
	// What was loaded is answered from, so it has to be on disk now, the
	// file's name included.
	if err := b.file.Sync(); err != nil {
		return err
	}
	b.durable = b.size
	folder, err := os.Open(filepath.Dir(b.file.Name()))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// lock keeps a second provider off the book. The lock goes with the process.
func (b *sandboxBook) lock() error {
	for end := time.Now().Add(sandboxLockPatience); ; time.Sleep(20 * time.Millisecond) {
		err := syscall.Flock(int(b.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("cannot be locked: %w", err)
		case time.Now().After(end):
			return errors.New("another sandbox provider is using it: end that one, or name another file")
		}
	}
}

func (b *sandboxBook) load(answers map[string]sandboxAnswer, log *slog.Logger) error {
	r := bufio.NewReaderSize(b.file, 1<<16)
	for number := 1; ; number++ {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil {
			return b.cutTorn(line, number, log)
		}
		if number == 1 {
			if string(line) != sandboxBookHeader {
				return errors.New("line 1: this is not a sandbox book: name another file")
			}
		} else if err := b.read(line, answers); err != nil {
			return fmt.Errorf("line %d: %w: restore the file from a copy, or name another", number, err)
		}
		b.size += int64(len(line))
	}
}

// cutTorn takes off what a kill left of the last line. Nobody was answered on
// its strength, since an answer waits for the whole line.
func (b *sandboxBook) cutTorn(rest []byte, number int, log *slog.Logger) error {
	if len(rest) == 0 {
		return nil
	}
	if number == 1 && !bytes.HasPrefix([]byte(sandboxBookHeader), rest) {
		return errors.New("line 1: this is not a sandbox book: name another file")
	}
	log.Warn("sandbox book: cut off a torn last line; its request was never answered", "book", b.file.Name(), "line", number, "bytes", len(rest))
	return b.file.Truncate(b.size)
}

func (b *sandboxBook) read(text []byte, answers map[string]sandboxAnswer) error {
	var line sandboxLine
	if err := json.Unmarshal(text, &line, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	switch {
	case line.Request != nil && line.Done == nil:
		if line.Request.N != len(b.requests)+1 {
			return fmt.Errorf("request %d stands where %d was due: a line was removed or repeated", line.Request.N, len(b.requests)+1)
		}
	case line.Done != nil && line.Request == nil:
		if line.Done.N < 1 || line.Done.N > len(b.requests) {
			return fmt.Errorf("request %d acted before it came: a line was removed", line.Done.N)
		}
		for i, e := range line.Done.Effects {
			if e.Seq != len(b.effects)+i+1 {
				return fmt.Errorf("effect %d stands where %d was due: a line was removed or repeated", e.Seq, len(b.effects)+i+1)
			}
			if sandboxPrefix[e.Kind] == "" {
				return fmt.Errorf("unknown kind of effect %q", e.Kind)
			}
		}
		if a := line.Done.Answer; a.Key != "" {
			answers[a.Key] = a
		}
	default:
		return errors.New("neither a request nor what one did")
	}
	b.apply(line)
	return nil
}

func (b *sandboxBook) apply(line sandboxLine) {
	if line.Request != nil {
		b.requests = append(b.requests, *line.Request)
		return
	}
	b.effects = append(b.effects, line.Done.Effects...)
	for _, e := range line.Done.Effects {
		b.numbers[e.Kind]++
	}
}

// note writes down that a request came. It does not wait for the disk: the
// next effect takes it along, and a kill leaves it whole.
func (b *sandboxBook) note(q *sandboxRequest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	q.N = len(b.requests) + 1
	kept := *q
	kept.body = nil // the effect has it
	return b.write(sandboxLine{Request: &kept})
}

// commit numbers the effects of request n and puts them on disk together with
// the answer it will get. When it returns without an error they stand.
func (b *sandboxBook) commit(n int, effects []sandboxEffect, answer func([]sandboxEffect) sandboxAnswer) (sandboxAnswer, error) {
	b.mu.Lock()
	for i := range effects {
		e := &effects[i]
		e.Seq = len(b.effects) + i + 1
		e.ID = sandboxPrefix[e.Kind] + strconv.Itoa(b.numbers[e.Kind]+i+1)
	}
	done := sandboxDone{N: n, Effects: effects, Answer: answer(effects)}
	err := b.write(sandboxLine{Done: &done})
	size := b.size
	b.mu.Unlock()
	if err != nil {
		return sandboxAnswer{}, err
	}
	return done.Answer, b.sync(size)
}

// write adds one line. The caller holds mu.
func (b *sandboxBook) write(line sandboxLine) error {
	if b.broken != nil {
		return b.broken
	}
	if b.file != nil {
		text, err := json.Marshal(line)
		if err != nil {
			return err
		}
		text = append(text, '\n')
		if _, err := b.file.WriteAt(text, b.size); err != nil {
			// Half a line may stand there. If it can be taken off, this one
			// request failed; if not, nothing may be written behind it.
			if cut := b.file.Truncate(b.size); cut != nil {
				b.broken = errors.Join(err, cut)
			}
			return err
		}
		b.size += int64(len(text))
	}
	b.apply(line)
	return nil
}

// sync waits until the first upTo bytes are on disk. Whoever comes while a
// flush is under way shares the next one.
func (b *sandboxBook) sync(upTo int64) error {
	if b.file == nil {
		return nil
	}
	b.flush.Lock()
	defer b.flush.Unlock()
	if b.durable >= upTo {
		return nil
	}
	b.mu.Lock()
	size, err := b.size, b.broken
	b.mu.Unlock()
	if err != nil {
		return err
	}
	if err := b.file.Sync(); err != nil {
		// After a failed flush the kernel may have dropped the pages: what is
		// on disk is no longer known.
		b.mu.Lock()
		b.broken = fmt.Errorf("a flush to disk failed, start the provider again: %w", err)
		b.mu.Unlock()
		return err
	}
	b.durable = size
	return nil
}

// effectsSoFar is safe to read without the lock: effects are only ever added.
func (b *sandboxBook) effectsSoFar() []sandboxEffect {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.effects[:len(b.effects):len(b.effects)]
}

func (b *sandboxBook) requestsSoFar() []sandboxRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests[:len(b.requests):len(b.requests)]
}

func (b *sandboxBook) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken == nil {
		b.broken = errors.New("the book is closed")
	}
	if b.file == nil {
		return nil
	}
	err := errors.Join(b.file.Sync(), b.file.Close())
	if errors.Is(err, os.ErrClosed) { // a second Close
		return nil
	}
	return err
}

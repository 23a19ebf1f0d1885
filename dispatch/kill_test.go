package dispatch_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/dispatch"
	"holdfast/web"
)

// The kill test runs real processes: a server that is killed with SIGKILL again
// and again at one boundary, a provider that keeps its own book, and a cable
// between them that can be cut. Afterwards the provider's book is counted: it,
// and not the ledger, says how often something happened.

const (
	killOperations = 100
	killsDefault   = 6 // for each boundary; `make kill` kills 100 times
)

// killCase is one boundary. Those that the server reaches itself are named as
// in boundary.go; the others are seen on the cable.
type killCase struct{ name, boundary, cable string }

var killCases = []killCase{
	{name: "after the claim", boundary: "claim.after_commit"},
	{name: "before the mark", boundary: "mark.before_commit"},
	{name: "after the mark", boundary: "mark.after_commit"},
	{name: "during the send", cable: cutRequest},
	{name: "after the provider acted, before the answer is read", cable: cutAnswer},
	{name: "after the answer, before the commit", boundary: "receipt.before_commit"},
	{name: "during the look-up", cable: cutLookup},
}

func init() { dispatch.AddTestProcess("server", serveUntilKilled) }

func TestKilledServersNeverActTwice(t *testing.T) {
	for _, dedupe := range []bool{true, false} {
		for _, c := range killCases {
			t.Run(fmt.Sprintf("dedupe=%t/%s", dedupe, c.name), func(t *testing.T) {
				t.Parallel()
				killTest(t, c, dedupe)
			})
		}
	}
}

func killTest(t *testing.T, c killCase, dedupe bool) {
	kills := killsDefault
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_TEST_KILLS")); err == nil {
		kills = n
	}
	provider := startProvider(t, dedupe)
	rope := newCable(t, provider)
	s := newVictim(t, rope, dedupe)
	rope.cut = s.kill

	chunk := killOperations / kills
	for n := range kills {
		on := n%min(8, chunk) + 1 // the first, the second … to get there
		s.start(c.boundary, on)
		rope.arm(c.cable, on)
		if c.cable == cutLookup {
			rope.lose.Store(int64(on)) // something has to be unknown before it is looked up
		}
		s.submit(n*chunk, (n+1)*chunk)
		s.awaitDeath()
	}
	rope.arm("", 0)
	s.start("", 0)
	s.submit(0, killOperations) // an agent that heard nothing says it again
	s.awaitRest()
	s.compareWithBook(provider, dedupe)
}

// victim is the server under test and the agent that talks to it.
type victim struct {
	t       *testing.T
	folder  string
	rope    *cable
	addr    string
	token   string
	process *exec.Cmd
	dead    chan struct{}
	mu      sync.Mutex
}

func newVictim(t *testing.T, rope *cable, dedupe bool) *victim {
	v := &victim{t: t, folder: t.TempDir(), rope: rope}
	protection, patience := "{ by: key, header: Idempotency-Key, retention: 24h }", "10m"
	if !dedupe {
		protection, patience = "{ by: none }", "6s" // what was lost goes to a person soon
	}
	config := fmt.Sprintf(`
rails:
  sandbox:
    adapter: sandbox
    base_url: http://%s
    dedupe: %s
    timeout: 3s
    quiet: 2s
    limits: { concurrency: 8, max_attempts: 50, max_elapsed: 30m, backoff: [10ms, 50ms] }
    breaker: { failures: 1000, open_for: 1s }
action_types:
  create_payment:
    rail: sandbox
    effect: charge
    schema:
      type: object
      required: [amount, currency, recipient, reference]
      properties:
        amount: { type: integer, x-role: amount }
        currency: { type: string, x-role: currency, x-normalize: currency }
        recipient: { type: string, x-role: recipient }
        reference: { type: string, x-role: reference }
policy:
  - { name: all, when: {}, then: allow }
timing: { unknown_for: %s }
jobs: { lookup: "@every 1s", sweep: "@every 1s" }
`, rope.addr, protection, patience)
	if err := os.WriteFile(filepath.Join(v.folder, "holdfast.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	inst, err := web.OpenInstance(t.Context(), web.InstanceOptions{Folder: v.folder, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	v.token, err = inst.CreateToken(t.Context(), web.TokenOptions{Tenant: "default", Agent: "tester", TTL: time.Hour}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.kill)
	return v
}

// start runs a server that kills itself when the boundary is reached for the
// n-th time.
func (v *victim) start(boundary string, n int) {
	v.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), dispatch.TestProcess+"=server", "KILL_FOLDER="+v.folder, "KILL_AT="+boundary, fmt.Sprintf("KILL_ON=%d", n))
	lines, err := cmd.StderrPipe()
	if err != nil {
		v.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	ready, dead := make(chan string, 1), make(chan struct{})
	go func() {
		in := bufio.NewScanner(lines)
		for in.Scan() {
			if addr, ok := strings.CutPrefix(in.Text(), "listening on "); ok {
				ready <- addr
			} else {
				v.t.Log(in.Text())
			}
		}
		cmd.Wait()
		close(dead)
	}()
	v.mu.Lock()
	v.process, v.dead = cmd, dead
	v.mu.Unlock()
	select {
	case v.addr = <-ready:
	case <-dead: // killed on its way up: that is allowed
	case <-time.After(30 * time.Second):
		v.t.Fatal("the server did not get ready")
	}
}

func (v *victim) kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.process != nil {
		v.process.Process.Kill()
		<-v.dead
	}
}

// awaitDeath waits until the server was killed. A boundary that nobody reaches
// is a test that shows nothing.
func (v *victim) awaitDeath() {
	v.t.Helper()
	select {
	case <-v.dead:
	case <-time.After(60 * time.Second):
		v.t.Fatal("nobody was killed: the boundary was not reached")
	}
}

func (v *victim) call(method, path, body string) (int, map[string]any) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+v.addr+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+v.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	var answer map[string]any
	if json.NewDecoder(res.Body).Decode(&answer) != nil {
		return 0, nil
	}
	return res.StatusCode, answer
}

func killID(n int) string { return fmt.Sprintf("op-%03d", n) }

// submit says operations until the server has them, or is dead: the identity and
// the payload are always the same.
func (v *victim) submit(from, to int) {
	var all sync.WaitGroup
	next := atomic.Int64{}
	next.Store(int64(from))
	for range 8 {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < to; n = int(next.Add(1)) - 1 {
				body := fmt.Sprintf(`{"operation_id":%q,"action_type":"create_payment","payload":{"amount":%d,"currency":"EUR","recipient":"acct_%d","reference":"inv-%d"}}`, killID(n), 1000+n, n, n)
				code, answer := v.call("POST", "/v1/operations", body)
				if code == 0 {
					return // dead: what it has is in its file
				}
				if code != 202 && code != 200 && code != 409 {
					v.t.Errorf("submitting %s: %d %v", killID(n), code, answer)
				}
			}
		})
	}
	all.Wait()
}

func (v *victim) list() []map[string]any {
	var all []map[string]any
	cursor := ""
	for {
		code, page := v.call("GET", "/v1/operations?limit=200"+cursor, "")
		if code != 200 {
			return nil
		}
		for _, item := range page["items"].([]any) {
			all = append(all, item.(map[string]any))
		}
		next, more := page["next_cursor"].(string)
		if !more {
			return all
		}
		cursor = "&cursor=" + next
	}
}

// left counts what has neither ended nor is held; -1: the server does not say.
func (v *victim) left() int {
	all := v.list()
	if len(all) < killOperations {
		return -1
	}
	n := 0
	for _, o := range all {
		if o["terminal"] != true && o["status"] != "unknown_hold" {
			n++
		}
	}
	return n
}

func (v *victim) awaitRest() {
	v.t.Helper()
	for end := time.Now().Add(90 * time.Second); v.left() != 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			v.t.Fatalf("%d operations have neither ended nor are held", v.left())
		}
	}
}

// compareWithBook is the test's judgement.
func (v *victim) compareWithBook(provider string, dedupe bool) {
	t := v.t
	t.Helper()
	book := map[string]int{}
	for _, e := range effectsOf(t, provider) {
		book[e.Operation]++
	}
	confirmed, held, total := 0, 0, 0
	for _, o := range v.list() {
		id, status, n := o["operation_id"], o["status"], book[o["order_id"].(string)]
		total += n
		switch {
		case n > 1:
			t.Errorf("%v happened %d times", id, n)
		case status == "confirmed" && n != 1:
			t.Errorf("%v is confirmed and the provider holds %d of it", id, n)
		case status == "rejected" && n != 0:
			t.Errorf("%v is rejected and the provider holds %d of it", id, n)
		case dedupe && status != "confirmed":
			t.Errorf("%v is %v (%v): on a rail that deduplicates it can be brought to its end", id, status, o["reason"])
		case status == "unknown_hold" && n == 1:
			t.Errorf("%v is held, and a look-up by our stamp would have found it", id)
		}
		switch status {
		case "confirmed":
			confirmed++
		case "unknown_hold":
			held++
		}
	}
	if total != sum(book) {
		t.Errorf("the provider holds %d effects, only %d of them are an operation's", sum(book), total)
	}
	t.Logf("%d confirmed, %d held, %d effects", confirmed, held, total)
}

func sum(book map[string]int) (n int) {
	for _, v := range book {
		n += v
	}
	return n
}

// serveUntilKilled is the process that is killed: the whole server, with one
// boundary armed.
func serveUntilKilled() int {
	at, on := os.Getenv("KILL_AT"), int64(1)
	if n, err := strconv.ParseInt(os.Getenv("KILL_ON"), 10, 64); err == nil {
		on = n
	}
	var reached atomic.Int64
	dispatch.SetReach(func(boundary string) {
		if boundary == at && reached.Add(1) == on {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	inst, err := web.OpenInstance(context.Background(), web.InstanceOptions{Folder: os.Getenv("KILL_FOLDER"), Log: log})
	if err == nil {
		err = inst.Serve(context.Background(), web.ServeOptions{Listen: "127.0.0.1:0",
			Ready: func(addr string) { fmt.Fprintln(os.Stderr, "listening on", addr) }})
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

var providerStart sync.Mutex

// startProvider runs the sandbox as a process of its own.
func startProvider(t *testing.T, dedupe bool) string {
	t.Helper()
	providerStart.Lock() // what it is to be stands in the environment of all
	defer providerStart.Unlock()
	os.Setenv(dispatch.TestProcess, "sandbox")
	defer os.Unsetenv(dispatch.TestProcess)
	addr, stop, err := dispatch.StartSandboxChild(t.Context(), os.Args[0],
		[]string{"--data", filepath.Join(t.TempDir(), "book.jsonl"), fmt.Sprintf("--dedupe=%t", dedupe)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return addr
}

type effect struct {
	ID        string
	Operation string
}

func effectsOf(t *testing.T, provider string) []effect {
	t.Helper()
	res, err := http.Get("http://" + provider + "/_effects")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var book struct{ Effects []effect }
	if err := json.NewDecoder(res.Body).Decode(&book); err != nil {
		t.Fatal(err)
	}
	return book.Effects
}

// What the cable can do to the n-th exchange of its kind; the server dies with
// it.
const (
	cutRequest = "half of the request arrives"
	cutAnswer  = "the provider acted, and its answer is lost"
	cutLookup  = "the look-up is lost"
)

// cable is the network between server and provider, in this process.
type cable struct {
	t        *testing.T
	addr     string
	provider string
	cut      func() // kills the server

	mu   sync.Mutex
	mode string
	on   int
	lose atomic.Int64 // answers to lose without killing anybody
}

func newCable(t *testing.T, provider string) *cable {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c := &cable{t: t, addr: l.Addr().String(), provider: provider}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.carry(conn)
		}
	}()
	return c
}

func (c *cable) arm(mode string, on int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mode, c.on = mode, on
}

// fires reports whether this exchange is the one to cut.
func (c *cable) fires(mode string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode != mode {
		return false
	}
	c.on--
	if c.on != 0 {
		return false
	}
	c.mode = ""
	return true
}

// carry takes one exchange over: one connection is one request.
func (c *cable) carry(server net.Conn) {
	defer server.Close()
	req, err := http.ReadRequest(bufio.NewReader(server))
	if err != nil {
		return // connected, and then nothing was sent
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	var request bytes.Buffer
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.Write(&request)
	if req.Method == http.MethodGet && c.fires(cutLookup) {
		c.cut()
		return
	}
	provider, err := net.Dial("tcp", c.provider)
	if err != nil {
		return
	}
	defer provider.Close()
	if req.Method != http.MethodGet && c.fires(cutRequest) {
		provider.Write(request.Bytes()[:request.Len()-len(body)/2])
		c.cut()
		return
	}
	provider.Write(request.Bytes())
	answer, err := io.ReadAll(provider)
	if err != nil {
		return
	}
	if req.Method != http.MethodGet {
		if c.fires(cutAnswer) {
			c.cut()
			return
		}
		if c.lose.Add(-1) >= 0 {
			return
		}
	}
	server.Write(answer)
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"holdfast/web"
)

// asProgram in the environment makes the test binary the program itself.
const asProgram = "HOLDFAST_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is holdfast as a process of its own.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := exec.CommandContext(t.Context(), self, args...)
	p.Env = append(os.Environ(), asProgram+"=1")
	return p
}

// corpusConfig has a rail for every way in which the files of the corpus are read.
const corpusConfig = `
rails:
  any: { adapter: http, base_url: "https://any.example", send: { method: POST, path: /p } }
  paypal: { adapter: http, base_url: "https://paypal.example", send: { method: POST, path: /p }, statement: { format: paypal } }
  sandbox:
    adapter: http
    base_url: https://sandbox.example
    send: { method: POST, path: /p }
    statement: { format: csv, amounts: minor, columns: { id: id, amount: amount, currency: currency, date: created_at, reference: reference, stamp: operation, counterparty: recipient } }
  bank:
    adapter: http
    base_url: https://bank.example
    send: { method: POST, path: /p }
    statement: { format: csv, time_zone: Europe/Berlin, columns: { date: Buchungstag, amount: Betrag, currency: Währung, balance: Saldo, counterparty: Empfänger, text: Verwendungszweck } }
  bank-1252:
    adapter: http
    base_url: https://bank.example
    send: { method: POST, path: /p }
    statement: { format: csv, encoding: windows-1252, time_zone: Europe/Berlin, columns: { date: Buchungstag, amount: Betrag, currency: Währung, balance: Saldo, counterparty: Empfänger, text: Verwendungszweck } }
  sides:
    adapter: http
    base_url: https://bank.example
    send: { method: POST, path: /p }
    statement: { format: csv, currency: GBP, columns: { date: Date, debit: Paid out, credit: Paid in, reference: Ref } }
  indicator:
    adapter: http
    base_url: https://bank.example
    send: { method: POST, path: /p }
    statement: { format: csv, currency: EUR, columns: { date: Date, amount: Amount, indicator: Side, reference: Ref } }
  plain:
    adapter: http
    base_url: https://bank.example
    send: { method: POST, path: /p }
    statement: { format: csv, currency: EUR, columns: { date: Date, amount: Amount, reference: Ref } }
  headless:
    adapter: http
    base_url: https://bank.example
    send: { method: POST, path: /p }
    statement: { format: csv, currency: EUR, header: none, columns: { date: "1", amount: "2", reference: "3" } }
  berlin: { adapter: http, base_url: "https://bank.example", send: { method: POST, path: /p }, statement: { format: camt053, time_zone: Europe/Berlin } }
`

// corpusRails are the files of the corpus: the rail that each is read for, and
// where what comes of it is written down.
var corpusRails = []struct {
	file, rail, golden string
	flags              []string
}{
	{"stripe-balance.csv", "any", "", nil},
	{"stripe-balance.csv", "paypal", "another-format", nil},
	{"stripe-activity.csv", "any", "", nil},
	{"stripe-activity-broken.csv", "any", "", nil},
	{"stripe-payments.csv", "any", "", nil},
	{"stripe-payments-status.csv", "any", "", nil},
	{"paypal.csv", "any", "", nil},
	{"paypal-de.csv", "any", "", nil},
	{"paypal-zone.csv", "any", "", nil},
	{"paypal-order.csv", "any", "", nil},
	{"paypal-order.csv", "any", "paypal-order-answered", []string{"--date-order", "dmy"}},
	{"sandbox.csv", "sandbox", "", nil},
	{"sandbox.csv", "any", "no-mapping", nil},
	{"sandbox-effects.json", "sandbox", "", nil},
	{"sandbox-list.json", "any", "", nil},
	{"sandbox-page.json", "any", "", nil},
	{"bank-de.csv", "bank", "", nil},
	{"bank-de-gap.csv", "bank", "", nil},
	{"bank-de-1252.csv", "bank", "", nil},
	{"bank-de-1252.csv", "bank-1252", "bank-de-1252-declared", nil},
	{"bank-debit-credit.csv", "sides", "", nil},
	{"bank-indicator.tsv", "indicator", "", nil},
	{"headless.csv", "plain", "", nil},
	{"headless.csv", "headless", "headless-declared", nil},
	{"quote.csv", "plain", "", nil},
	{"cut.csv", "plain", "", nil},
	{"camt-08.xml", "berlin", "", nil},
	{"camt-02.xml", "any", "", nil},
	{"camt-sum.xml", "any", "", nil},
	{"camt-currency.xml", "any", "", nil},
	{"camt-052.xml", "any", "", nil},
	{"camt-doctype.xml", "any", "", nil},
	{"camt-day.xml", "any", "", nil},
	{"camt-ebcdic.xml", "any", "", nil},
	{"camt-latin1.xml", "any", "", nil},
	{"camt-batch.xml", "any", "", nil},
	{"camt-cut.xml", "any", "", nil},
	{"camt-accounts.xml", "any", "", nil},
	{"camt-accounts.xml", "any", "camt-accounts-answered", []string{"--answer", "account=4712"}},
	{"camt-missing-day.xml", "any", "", nil},
}

func ledgerIn(t *testing.T, config string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "holdfast.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// What the readers make of a file, the command says: how many lines a good one
// has, and in one line where a bad one is wrong and why.
func TestTheCommandSaysOfEveryStatementWhatItsReaderSays(t *testing.T) {
	inst, err := web.OpenInstance(t.Context(), web.InstanceOptions{Folder: ledgerIn(t, corpusConfig), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	const corpus = "reconcile/statement/testdata"
	good, bad := 0, 0
	used := map[string]bool{}
	for _, c := range corpusRails {
		used[c.file] = true
		name := c.golden
		if name == "" {
			name = strings.TrimSuffix(c.file, filepath.Ext(c.file))
		}
		var want struct {
			Lines   []struct{}
			Refused *struct {
				Line             int
				Column, Sentence string
			} `json:"refused"`
			Asked *struct{ Key, Ask, Sentence string } `json:"asked"`
		}
		text, err := os.ReadFile(filepath.Join(corpus, "golden", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		args := append([]string{"statement", "import", "--preview", "--json", "--rail", c.rail}, c.flags...)
		code := run(t.Context(), program{in: strings.NewReader(""), out: &out, err: &said, inside: inst}, append(args, filepath.Join(corpus, c.file)))
		if want.Refused == nil && want.Asked == nil {
			good++
			var got struct {
				Lines, New int
				Stored     bool
			}
			err := json.Unmarshal(out.Bytes(), &got)
			if code != exitDone || err != nil || said.Len() > 0 || got.Stored || got.Lines != len(want.Lines) || got.New != len(want.Lines) {
				t.Errorf("%s: exit %d, %s%s(%v), and it has %d lines", name, code, out.String(), said.String(), err, len(want.Lines))
			}
			continue
		}
		bad++
		words := []string{"holdfast: ", c.file + ": "}
		if r := want.Refused; r != nil {
			words = append(words, strings.ReplaceAll(r.Sentence, "the rail bank", "the rail "+c.rail))
			if r.Line > 0 {
				words = append(words, fmt.Sprintf("line %d", r.Line))
			}
		} else {
			words = append(words, want.Asked.Ask, want.Asked.Sentence, "--answer "+want.Asked.Key+"=", "Nothing was stored.")
		}
		for _, w := range words {
			if !strings.Contains(said.String(), w) {
				t.Errorf("%s: %q is not in %s", name, w, said.String())
			}
		}
		if code != exitFinding || out.Len() > 0 || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("%s: exit %d, %q, and on one line: %s", name, code, out.String(), said.String())
		}
	}
	entries, err := os.ReadDir(corpus)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() && !used[e.Name()] {
			t.Errorf("no command reads %s", e.Name())
		}
	}
	if good < 15 || bad < 15 {
		t.Errorf("%d good files and %d bad ones: nothing was tested", good, bad)
	}
	if all, err := inst.Store.Statements(t.Context(), "default", "", 10); err != nil || len(all) > 0 {
		t.Error("a preview stored something", all, err)
	}
}

// taken is what an importing process printed.
type taken struct {
	Lines, New      int
	AlreadyImported int `json:"already_imported"`
	said            string
	code            int
}

// importTwice runs two imports of one file as processes, at once.
func importTwice(t *testing.T, folder, file string) (both [2]taken) {
	t.Helper()
	var wg sync.WaitGroup
	for n := range both {
		wg.Go(func() {
			p := process(t, "statement", "import", "--data", folder, "--rail", "plain", "--json", file)
			var out, said bytes.Buffer
			p.Stdout, p.Stderr = &out, &said
			p.Run()
			both[n].said, both[n].code = said.String(), p.ProcessState.ExitCode()
			if both[n].code == exitDone {
				if err := json.Unmarshal(out.Bytes(), &both[n]); err != nil {
					t.Error(err, out.String())
				}
			}
		})
	}
	wg.Wait()
	return both
}

// Whoever hands in a file twice at once, from two processes, has one import of
// it: through the server that runs on the folder, and without one.
func TestTheSameFileFromTwoProcessesIsOneImport(t *testing.T) {
	const lines = 2000
	text := "Date,Amount,Ref\n"
	for n := range lines {
		text += fmt.Sprintf("2026-11-03,-%d.50,order %d\n", n+1, n)
	}
	file := filepath.Join(t.TempDir(), "november.csv")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := ledgerIn(t, corpusConfig)
	stop := serve(t, folder)
	both := importTwice(t, folder, file)
	for _, p := range both {
		if p.code != exitDone || p.Lines != lines || p.New+p.AlreadyImported != lines {
			t.Errorf("through the server: %+v", p)
		}
	}
	if both[0].New+both[1].New != lines {
		t.Errorf("through the server %d and %d lines are new, of %d", both[0].New, both[1].New, lines)
	}
	stop()
	wantOneImport(t, folder, lines)

	folder = ledgerIn(t, corpusConfig)
	wantOneImport(t, folder, 0)
	fresh := 0
	for _, p := range importTwice(t, folder, file) {
		fresh += p.New
		if p.code != exitDone && !strings.Contains(p.said, "another holdfast uses this data folder") {
			t.Errorf("without a server: %+v", p)
		}
	}
	if fresh != lines {
		t.Errorf("without a server %d lines are new, of %d", fresh, lines)
	}
	wantOneImport(t, folder, lines)
}

// serve starts a server and waits until it answers.
func serve(t *testing.T, folder string) (stop func()) {
	t.Helper()
	p := process(t, "serve", "--data", folder, "--listen", "127.0.0.1:0")
	said, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.Contains(lines.Text(), "listening on") {
	}
	go io.Copy(io.Discard, said)
	return func() {
		t.Helper()
		p.Process.Signal(syscall.SIGTERM)
		if err := p.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	}
}

// wantOneImport looks into a ledger that nobody uses: one statement with so many
// lines; no lines, no statement.
func wantOneImport(t *testing.T, folder string, lines int) {
	t.Helper()
	ctx := context.Background()
	inst, err := web.OpenInstance(ctx, web.InstanceOptions{Folder: folder, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	all, err := inst.Store.Statements(ctx, "default", "", 10)
	if err != nil || len(all) != min(lines, 1) || len(all) == 1 && (all[0].Lines != lines || all[0].Already != 0) {
		t.Errorf("%d lines were wanted in one import: %+v, %v", lines, all, err)
	}
}

// verify runs the command that only reads.
func verify(t *testing.T, folder string, args ...string) (code int, said map[string]any) {
	t.Helper()
	p := process(t, append([]string{"verify", "--json", "--data", folder}, args...)...)
	out, err := p.Output()
	if p.ProcessState == nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return p.ProcessState.ExitCode(), said
}

// Case 167: what several processes append is one line, beside a server and after
// it; a server that is asked to end seals what is there.
func TestCase167ProcessesAppendOneLineAndAnEndSealsIt(t *testing.T) {
	folder := ledgerIn(t, corpusConfig)
	stop := serve(t, folder)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if out, err := process(t, "token", "create", "--data", folder, "--agent", fmt.Sprint("a-", i)).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	if code, said := verify(t, folder); code != exitDone || said["holds"] != true || said["entries"].(float64) < 20 {
		t.Errorf("beside the server: %d %v", code, said)
	}
	stop()
	code, said := verify(t, folder)
	if code != exitDone || said["holds"] != true || said["unsealed"] != 0.0 || said["head"] == nil {
		t.Fatalf("after the server: %d %v", code, said)
	}
	kept := filepath.Join(t.TempDir(), "head.txt")
	if err := os.WriteFile(kept, []byte(said["head"].(map[string]any)["note"].(string)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := process(t, "token", "create", "--data", folder, "--agent", "later").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code, said := verify(t, folder, "--head", kept); code != exitDone || said["holds"] != true {
		t.Errorf("with a head that was kept: %d %v", code, said)
	}
	if code, said := verify(t, ledgerWithAnEntry(t), "--head", kept); code != exitFinding || said["holds"] != false {
		t.Errorf("with the head of another ledger: %d %v", code, said)
	}
}

func ledgerWithAnEntry(t *testing.T) string {
	t.Helper()
	folder := ledgerIn(t, corpusConfig)
	if out, err := process(t, "token", "create", "--data", folder, "--agent", "a").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return folder
}

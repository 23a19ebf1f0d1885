package web

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/store/ledger"
)

func (w *world) seal() {
	w.t.Helper()
	_, err := w.Store.Seal(w.t.Context())
	must(w.t, err)
}

// pack is the evidence pack of an operation as a person with the role gets it.
func (w *world) pack(o ledger.Operation, email, role string) string {
	w.t.Helper()
	answer := w.signIn(w.person("default", email, role)).get("/operations/" + o.OperationID + "/evidence.html")
	if answer.Code != http.StatusOK {
		w.t.Fatal(answer.Code)
	}
	return answer.Body.String()
}

// attack changes the file of a ledger without asking its triggers.
func (w *world) attack(statements ...string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.folder, "holdfast.db")+"?_pragma=busy_timeout(5000)")
	must(w.t, err)
	defer db.Close()
	for _, s := range statements {
		_, err := db.Exec(s)
		must(w.t, err)
	}
}

func verifyLedger(w *world, heads ...string) (string, error) {
	var out bytes.Buffer
	err := VerifyLedger(w.t.Context(), w.folder, VerifyOptions{Heads: heads, JSON: true, Out: &out, Notes: &out})
	return out.String(), err
}

// The ledger is written by this process meanwhile, as by a server.
func TestVerifyReadsBesideAServerAndNamesTheRow(t *testing.T) {
	w := newServer(t, pagesConfig)
	w.paid(wanted{}, "pay_1")
	if out, err := verifyLedger(w); err != nil || !strings.Contains(out, `"holds":true`) || !strings.Contains(out, `"head":null`) {
		t.Fatalf("before the first seal: %v %s", err, out)
	}
	w.seal()
	w.ask(wanted{})
	head, err := w.Store.LogHead(t.Context())
	must(t, err)
	kept := filepath.Join(t.TempDir(), "head.txt")
	must(t, os.WriteFile(kept, []byte(head.Note), 0o600))
	out, err := verifyLedger(w, kept)
	var said verified
	must(t, json.Unmarshal([]byte(out), &said))
	if err != nil || !said.Holds || said.Unsealed == 0 || said.Head.Note != head.Note || len(said.Checked) < 7 {
		t.Fatalf("%v %s", err, out)
	}
	w.attack(`drop trigger action_log_no_update`, `update action_log set sentence = sentence || '.' where seq = 3`)
	out, err = verifyLedger(w)
	if err == nil || !strings.Contains(err.Error(), "entry 3 is not what was sealed") || !strings.Contains(out, `"entry":3`) || !strings.Contains(out, `"holds":false`) {
		t.Errorf("%v %s", err, out)
	}
	w.attack(`update action_log set sentence = substr(sentence, 1, length(sentence) - 1) where seq = 3`, `update operations set detail = 'x', status = 'unknown' where status = 'ready'`)
	if out, err = verifyLedger(w); err == nil || !strings.Contains(err.Error(), "I-17") || !strings.Contains(out, `"the seal of the log"`) {
		t.Errorf("a row that its log does not add up to: %v %s", err, out)
	}
	if err := VerifyLedger(t.Context(), t.TempDir(), VerifyOptions{}); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("no ledger there: %v", err)
	}
}

func TestAPackIsVerifiedFromItsFileAlone(t *testing.T) {
	w := newServer(t, openConfig)
	o := w.paid(wanted{reference: `</pre><pre id="canonical" class="b64">AAAA</pre>`}, "pay_1")
	w.seal()
	yesterday, err := w.Store.LogHead(t.Context())
	must(t, err)
	w.pass(24 * time.Hour)
	w.ask(wanted{})
	w.seal()
	page := w.pack(o, "eve@example.com", "viewer")
	c, err := checkPack([]byte(page), []string{yesterday.Note})
	if err != nil || c.Fingerprint != o.Fingerprint || len(c.Proved) < 3 || c.Blocks[0].Entry == 0 || c.Canonical != string(o.Canonical) {
		t.Fatalf("%v %+v", err, c)
	}
	block := func(name string) (whole, body string) {
		m := regexp.MustCompile(`<pre id="` + name + `" class="[a-z0-9]+">([^<]*)</pre>`).FindStringSubmatch(page)
		raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(m[1], "\n", ""))
		must(t, err)
		return m[1], string(raw)
	}
	lie := func(name, old, with string) string {
		whole, body := block(name)
		if !strings.Contains(body, old) {
			t.Fatalf("%s has no %q", name, old)
		}
		return strings.Replace(page, whole, base64.StdEncoding.EncodeToString([]byte(strings.Replace(body, old, with, 1))), 1)
	}
	entry := fmt.Sprint("log-", c.Proved[0])
	for name, changed := range map[string]string{
		"the canonical bytes":       lie("canonical", "acct_", "acct-"),
		"an entry":                  lie(entry, "agent-1", "agent-2"),
		"the fingerprint":           lie("log-proof", o.Fingerprint[:20], "hf1:sha256:00000000"),
		"the operation":             lie("log-proof", `"operation_id": "`, `"operation_id": "x`),
		"the head":                  lie("log-proof", `time 2026`, `time 2025`),
		"an entry that is left out": strings.Replace(page, `id="`+fmt.Sprint("log-", c.Proved[1])+`"`, `id="gone"`, 1),
		"a block twice":             page + `<pre id="canonical" class="b64">AAAA</pre>`,
		"nothing":                   "",
	} {
		if _, err := checkPack([]byte(changed), nil); err == nil {
			t.Errorf("%s: a pack that was changed is believed", name)
		}
	}
	stranger := newServer(t, openConfig)
	stranger.paid(wanted{}, "pay_1")
	stranger.seal()
	head, err := stranger.Store.LogHead(t.Context())
	must(t, err)
	if _, err := checkPack([]byte(page), []string{head.Note}); err == nil {
		t.Error("it follows from a head of another log")
	}
}

func TestAPackWithoutItsBytesStillProvesItsEntries(t *testing.T) {
	w := newServer(t, pagesConfig)
	o := w.paid(wanted{}, "pay_1")
	w.seal()
	page := w.pack(o, "eve@example.com", "viewer")
	c, err := checkPack([]byte(page), nil)
	if err != nil || len(c.Proved) < 3 || c.Canonical != "" || len(c.Blocks) != 0 {
		t.Errorf("%v %+v", err, c)
	}
}

func TestAPackBeforeTheNextSealProvesNothingYet(t *testing.T) {
	w := newServer(t, openConfig)
	o := w.paid(wanted{}, "pay_1")
	if _, err := checkPack([]byte(w.pack(o, "eve@example.com", "viewer")), nil); err == nil {
		t.Error("without any seal")
	}
	w.seal()
	o = w.paid(wanted{}, "pay_2")
	c, err := checkPack([]byte(w.pack(o, "ana@example.com", "finance")), nil)
	if err == nil || !strings.Contains(err.Error(), "no sealed entry names the fingerprint") || len(c.Later) < 3 {
		t.Errorf("%v %+v", err, c)
	}
}

// The Python in the file needs nothing of ours, and sees one changed byte.
func TestThePythonInAPackFollowsItsProofs(t *testing.T) {
	w := newServer(t, openConfig)
	for i := range 9 {
		w.paid(wanted{}, fmt.Sprint("early_", i))
	}
	o := w.paid(wanted{}, "pay_1")
	w.seal()
	page := w.pack(o, "eve@example.com", "viewer")
	script := html.UnescapeString(regexp.MustCompile(`(?s)<pre>(python3 -.*?END)</pre>`).FindStringSubmatch(page)[1])
	run := func(page string) string {
		folder := t.TempDir()
		must(t, os.WriteFile(filepath.Join(folder, "evidence.html"), []byte(page), 0o600))
		c := exec.CommandContext(t.Context(), "sh", "-c", script)
		c.Dir = folder
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	c, err := checkPack([]byte(page), nil)
	must(t, err)
	if out := run(page); strings.Count(out, "stands under the head") != len(c.Proved) || strings.Contains(out, "NOT") {
		t.Error(out)
	}
	m := regexp.MustCompile(`<pre id="log-\d+" class="b64">\n([^<]*)</pre>`).FindStringSubmatch(page)
	if out := run(strings.Replace(page, m[1], "A"+m[1][1:], 1)); strings.Count(out, "IS NOT PROVED") != 1 {
		t.Error(out)
	}
}

func TestVerifyChainRunsInFrontOfWhoeverMaySeeTheLog(t *testing.T) {
	w := newServer(t, pagesConfig)
	viewer := w.signIn(w.person("default", "eve@example.com", "viewer"))
	w.ask(wanted{})
	says(t, viewer.get("/audit"), http.StatusOK, "Not sealed yet.", "Verify chain")
	says(t, viewer.post("/audit/verify-log", nil), http.StatusOK, "not sealed yet")
	w.seal()
	w.ask(wanted{})
	head, err := w.Store.LogHead(t.Context())
	must(t, err)
	says(t, viewer.get("/audit"), http.StatusOK, head.Words(), head.Hex(), "since the last seal")
	says(t, viewer.post("/audit/verify-log", nil), http.StatusOK, "unbroken since 4 Mar 2026", head.Words())
	if kept := viewer.get("/audit/head.txt"); kept.Code != http.StatusOK || kept.Body.String() != head.Note {
		t.Errorf("%d %s", kept.Code, kept.Body)
	}
	for _, path := range []string{"/audit/head.txt"} {
		if answer := w.do(http.MethodGet, path, ""); answer.Code != http.StatusSeeOther {
			t.Errorf("%s without a session: %d", path, answer.Code)
		}
	}
	w.attack(`drop trigger action_log_no_update`, `update action_log set actor = 'bob' where seq = 2`)
	says(t, viewer.post("/audit/verify-log", nil), http.StatusOK, "The log is not what was sealed.", "Entry 2 is not what was sealed")
}

func TestEvidenceOfTheAPICarriesItsProof(t *testing.T) {
	w := newServer(t, openConfig)
	o := w.paid(wanted{}, "pay_1")
	w.seal()
	_, body := w.evidenceOf("default", o.OperationID)
	var bundle struct {
		Log struct {
			ledger.LogProof
			Entries []struct {
				ledger.EntryProof
				Leaf struct{ Body string }
			}
		}
	}
	must(t, json.Unmarshal([]byte(body), &bundle))
	proof, leaves := bundle.Log.LogProof, map[int64][]byte{}
	for _, e := range bundle.Log.Entries {
		proof.Entries = append(proof.Entries, e.EntryProof)
		leaves[e.Seq] = []byte(e.Leaf.Body)
	}
	if _, err := proof.Check(leaves); err != nil || len(proof.Entries) < 3 {
		t.Errorf("%v: %s", err, body)
	}
}

package web

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	packHash  = regexp.MustCompile(`SHA-256 <code>([0-9a-f]{64})</code>`)
	packCheck = regexp.MustCompile(`<pre>(sed -n [^\n]*sha256sum)</pre>`)
)

// The commands in the file find its hashes with the tools of any machine.
func TestEvidencePackIsCheckedByTheCommandsInIt(t *testing.T) {
	w := newServer(t, openConfig)
	b := w.signIn(w.person("default", "eve@example.com", "viewer"))
	o := w.paid(wanted{reference: `</pre><script>alert(1)</script> id="canonical"`}, `"><img src=x onerror=alert(1)>`)
	answer := b.get("/operations/" + o.OperationID + "/evidence.html")
	source := answer.Body.String()
	if answer.Code != http.StatusOK || answer.Header().Get("Content-Disposition") != `attachment; filename="holdfast-default-`+o.OperationID+`-evidence.html"` ||
		!strings.Contains(answer.Header().Get("Content-Security-Policy"), "default-src 'none'; style-src 'sha256-") || !strings.Contains(answer.Header().Get("Content-Security-Policy"), "sandbox") {
		t.Fatalf("%d %v", answer.Code, answer.Header())
	}
	for _, active := range []string{"<script", "<img", "<a ", "<base", " href=", "<link", "url(", "@import", "<form", "<iframe"} {
		if strings.Contains(source, active) {
			t.Errorf("%s stands in the file", active)
		}
	}
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "evidence.html"), answer.Body.Bytes(), 0o600))
	hashes, commands := packHash.FindAllStringSubmatch(source, -1), packCheck.FindAllStringSubmatch(source, -1)
	if len(hashes) < 5 || len(hashes) != len(commands) {
		t.Fatalf("%d hashes, %d commands", len(hashes), len(commands))
	}
	for i, c := range commands {
		run := exec.CommandContext(t.Context(), "sh", "-c", strings.NewReplacer("&#39;", "'", "&#34;", `"`, "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(c[1]))
		run.Dir = folder
		out, err := run.Output()
		must(t, err)
		if !strings.HasPrefix(string(out), hashes[i][1]) {
			t.Errorf("%s prints %s, want %s", run, out, hashes[i][1])
		}
	}
	if "hf1:sha256:"+hashes[0][1] != o.Fingerprint {
		t.Error("the first block is not what the fingerprint is of")
	}
	says(t, b.get("/operations/"+o.OperationID), http.StatusOK, "Evidence pack")
	says(t, b.get("/audit?object=export"), http.StatusOK, "eve@example.com took out evidence as html")
}

func TestEvidencePackHidesWhatItsReaderMayNotSee(t *testing.T) {
	w := newServer(t, pagesConfig)
	o := w.paid(wanted{}, "pay_1")
	path := "/operations/" + o.OperationID + "/evidence.html"
	viewer, finance := w.signIn(w.person("default", "eve@example.com", "viewer")), w.signIn(w.person("default", "ana@example.com", "finance"))
	if source := viewer.get(path).Body.String(); strings.Contains(source, `class="b64"`) || strings.Contains(source, "DE-SECRET") || !strings.Contains(source, "not in this file") {
		t.Error("a viewer's file has what a viewer may not see")
	}
	if source := finance.get(path).Body.String(); !strings.Contains(source, `class="b64"`) {
		t.Error("whoever decides has no bytes")
	}
	eve := w.signIn(w.person("other", "eve@example.net", "admin"))
	if answer := eve.get(path); answer.Code != http.StatusNotFound || strings.Contains(answer.Body.String(), o.OrderID) {
		t.Errorf("another tenant: %d", answer.Code)
	}
	if answer := w.do(http.MethodGet, path, ""); answer.Code != http.StatusSeeOther {
		t.Errorf("without a session: %d", answer.Code)
	}
}

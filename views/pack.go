package views

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/a-h/templ"

	"holdfast/store/ledger"
)

// PackPage is one operation as a file: it opens without this server, runs
// nothing, loads nothing, and carries the bytes that its hashes are of.
type PackPage struct {
	Frame     Frame
	Operation ledger.Operation // as its reader may see it
	Hidden    bool             // bodies are their hashes alone
	Kept      []KeptBytes
	Approvals []ledger.Approval
	Attempts  []ledger.Attempt
	Evidence  []ledger.Evidence
	Lines     []ledger.KeptLine
	Refunds   []ledger.RefundOwed
	Log       []ledger.Entry
}

// KeptBytes is one byte string of the pack.
type KeptBytes struct {
	Name   string // of the block in the file; letters, digits and hyphens
	What   string
	Body   []byte
	SHA256 string // as it was recorded
}

func packPath(id string) templ.SafeURL { return operationPath(id) + "/evidence.html" }

// base64Lines is a body in lines that sed and base64 take.
func base64Lines(b []byte) string {
	text := base64.StdEncoding.EncodeToString(b)
	var out strings.Builder
	for len(text) > 76 {
		out.WriteString(text[:76] + "\n")
		text = text[76:]
	}
	return out.String() + text + "\n"
}

// checkCommand takes a block out of the file and hashes it.
func checkCommand(name string) string {
	return `sed -n '/id="` + name + `"/,/<\/pre>/{//!p;}' evidence.html | base64 -d | sha256sum`
}

// PackPolicy lets nothing into the file but its own style.
func PackPolicy() string {
	sum := sha256.Sum256([]byte(packStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

// packBlock writes kept bytes, which templ would space anew. None
// of it is anybody's text.
func packBlock(k KeptBytes) templ.Component {
	return templ.Raw("<pre id=\"" + k.Name + "\" class=\"b64\">\n" + base64Lines(k.Body) + "</pre>")
}

const packStyle = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#16202a;background:#fff}
h1{font-size:1.6rem}h2{font-size:1.1rem;margin-top:2rem;border-bottom:1px solid #ccd3da}
table{border-collapse:collapse;width:100%}th,td{text-align:start;vertical-align:top;padding:.35rem .6rem .35rem 0;border-bottom:1px solid #e3e7eb;overflow-wrap:anywhere}
pre,code{font:12.5px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}pre{background:#f3f5f7;padding:.6rem}
mark{background:#ffe08a;color:#16202a}.quiet{color:#55616d}
@media (prefers-color-scheme:dark){body{color:#e6ebf0;background:#12181f}pre{background:#1c242d}.quiet{color:#a3afbb}th,td,h2{border-color:#33404d}}
@media print{body{color:#000;background:#fff;margin:0;max-width:none}pre{background:none;border:1px solid #bbb}tr,h2{break-inside:avoid}}`

func packStyleBlock() templ.Component { return templ.Raw("<style>" + packStyle + "</style>") }

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
	Proof     *PackProof // nil: the log was not sealed yet
}

// PackProof shows that the log entries stand in the sealed log.
type PackProof struct {
	Head  ledger.LogHead
	Key   string
	Body  []byte // the proof as JSON
	Later int    // entries that came after the head
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
func packBlock(k KeptBytes) templ.Component { return rawBlock(k.Name, "b64", k.Body) }

func rawBlock(name, class string, body []byte) templ.Component {
	return templ.Raw("<pre id=\"" + name + "\" class=\"" + class + "\">\n" + base64Lines(body) + "</pre>")
}

// proofCheck follows the proofs of a pack with nothing but Python, by the rules of
// RFC 9162, 2.1.3.2. It can't check the signature.
const proofCheck = `python3 - <<'END'
import base64, hashlib, json, re
page = open("evidence.html", encoding="utf-8").read()
block = lambda name: base64.b64decode(re.search('<pre id="%s" class="[a-z0-9]+">([^<]*)</pre>' % name, page)[1])
sha = lambda b: hashlib.sha256(b).digest()
log = json.loads(block("log-proof"))["log"]
size, root = log["head"].split("\n")[1:3]
for e in log["entries"]:
    if e["path"] is None: print(e["seq"], "came after the head"); continue
    n, last, node = e["seq"] - 1, int(size) - 1, sha(b"\0" + block("log-%d" % e["seq"]))
    for p in map(base64.b64decode, e["path"]):
        if n & 1 or n == last:
            node = sha(b"\1" + p + node)
            while n and not n & 1: n, last = n >> 1, last >> 1
        else: node = sha(b"\1" + node + p)
        n, last = n >> 1, last >> 1
    print(e["seq"], "stands under the head" if last == 0 and base64.b64encode(node).decode() == root else "IS NOT PROVED")
END`

const packStyle = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#16202a;background:#fff}
h1{font-size:1.6rem}h2{font-size:1.1rem;margin-top:2rem;border-bottom:1px solid #ccd3da}
table{border-collapse:collapse;width:100%}th,td{text-align:start;vertical-align:top;padding:.35rem .6rem .35rem 0;border-bottom:1px solid #e3e7eb;overflow-wrap:anywhere}
pre,code{font:12.5px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}pre{background:#f3f5f7;padding:.6rem}
mark{background:#ffe08a;color:#16202a}.quiet{color:#55616d}
@media (prefers-color-scheme:dark){body{color:#e6ebf0;background:#12181f}pre{background:#1c242d}.quiet{color:#a3afbb}th,td,h2{border-color:#33404d}}
@media print{body{color:#000;background:#fff;margin:0;max-width:none}pre{background:none;border:1px solid #bbb}tr,h2{break-inside:avoid}}`

func packStyleBlock() templ.Component { return templ.Raw("<style>" + packStyle + "</style>") }

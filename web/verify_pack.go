package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"holdfast/store/ledger"
)

// packBlockText is a block of bytes in a pack: nobody's text can look like one,
// since all text in the file is escaped.
var packBlockText = regexp.MustCompile(`<pre id="([a-z0-9-]+)" class="(?:b64|proof)">([A-Za-z0-9+/=\n]*)</pre>`)

// checkedPack is what the check of a pack found, as JSON.
type checkedPack struct {
	Holds       bool         `json:"holds"`
	Sentence    string       `json:"sentence"` // what does not hold
	OperationID string       `json:"operation_id"`
	Fingerprint string       `json:"fingerprint"`
	Words       string       `json:"words"`
	Canonical   string       `json:"canonical"` // empty: not in the file
	Proved      []int64      `json:"proved"`    // entries under the head
	Later       []int64      `json:"later"`     // that came after it and are not proved
	Blocks      []packedText `json:"blocks"`
	Head        *headText    `json:"head"`
	Key         string       `json:"key"`
}

type packedText struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Entry  int64  `json:"entry"` // a proved entry that names the hash; 0: this file alone does
}

// VerifyPack checks the file of an evidence pack, with nothing else at hand.
func VerifyPack(file string, o VerifyOptions) error {
	heads, err := readHeads(o.Heads)
	if err != nil {
		return err
	}
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	c, found := checkPack(page, heads)
	if c.Holds = found == nil; !c.Holds {
		c.Sentence = found.Error()
	}
	if o.JSON {
		err = writeLine(o.Out, c)
	} else {
		err = c.print(o.Out)
	}
	if err == nil && found != nil {
		err = fmt.Errorf("%s: %w", file, found)
	}
	return err
}

// pack is what the blocks of a file hold.
type pack struct {
	blocks map[string][]byte
	proof  packProof
	leaves map[int64][]byte // by entry
	heads  []string         // that somebody kept
}

// packChecks are made in this order, until one finds something.
var packChecks = []func(*checkedPack, pack) error{
	(*checkedPack).paths,
	(*checkedPack).kept,
	(*checkedPack).bytes,
	(*checkedPack).entries,
}

// checkPack believes only the blocks: what the tables of the file say is drawn from
// them, and may say anything.
func checkPack(page []byte, heads []string) (checkedPack, error) {
	c := checkedPack{Proved: []int64{}, Later: []int64{}, Blocks: []packedText{}}
	p, err := c.read(page)
	if err != nil {
		return c, err
	}
	p.heads = heads
	for _, check := range packChecks {
		if err := check(&c, p); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c *checkedPack) read(page []byte) (p pack, err error) {
	p = pack{blocks: map[string][]byte{}, leaves: map[int64][]byte{}}
	for _, m := range packBlockText.FindAllSubmatch(page, -1) {
		name := string(m[1])
		if _, twice := p.blocks[name]; twice {
			return p, fmt.Errorf("the block %s is there twice", name)
		}
		body, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(string(m[2]), "\n", ""))
		if err != nil {
			return p, fmt.Errorf("the block %s is no base64", name)
		}
		p.blocks[name] = body
		if name != "log-proof" {
			sum := sha256.Sum256(body)
			c.Blocks = append(c.Blocks, packedText{Name: name, SHA256: hex.EncodeToString(sum[:])})
		}
	}
	if err := json.Unmarshal(p.blocks["log-proof"], &p.proof); err != nil {
		return p, errors.New("it has no proof of the log; it is no evidence pack, or the log was not sealed yet")
	}
	c.OperationID, c.Fingerprint, c.Words = p.proof.OperationID, p.proof.Fingerprint, ledger.Words(p.proof.Fingerprint)
	for _, e := range p.proof.Log.Entries {
		if leaf, shown := p.blocks[leafBlock(e.Seq)]; shown {
			p.leaves[e.Seq] = leaf
		}
	}
	return p, nil
}

// paths: the head is signed, and every entry's path leads to it.
func (c *checkedPack) paths(p pack) error {
	head, err := p.proof.Log.Check(p.leaves)
	c.Head, c.Key = tellHead(head), ledger.KeyFingerprint(p.proof.Log.Key)
	if err != nil {
		return err
	}
	for _, e := range p.proof.Log.Entries {
		if e.Path == nil {
			c.Later = append(c.Later, e.Seq)
		} else {
			c.Proved = append(c.Proved, e.Seq)
		}
	}
	return nil
}

// kept: the head goes through those that somebody kept.
func (c *checkedPack) kept(p pack) error {
	for _, head := range p.heads {
		if _, err := p.proof.Log.Follows(head); err != nil {
			return err
		}
	}
	return nil
}

// bytes: the canonical bytes are those of the fingerprint. Of the others it finds
// the proved entry that names their hash, if one does.
func (c *checkedPack) bytes(p pack) error {
	if len(c.Blocks) == 0 {
		return nil // whoever took the file may not see them
	}
	canonical := p.blocks["canonical"]
	c.Canonical = string(canonical)
	if ledger.Fingerprint(canonical) != c.Fingerprint {
		return fmt.Errorf("the canonical bytes are not those of the fingerprint %s", c.Fingerprint)
	}
	for i := range c.Blocks {
		for _, seq := range c.Proved {
			if bytes.Contains(p.leaves[seq], []byte(c.Blocks[i].SHA256)) {
				c.Blocks[i].Entry = seq
				break
			}
		}
	}
	return nil
}

// entries: they are about this operation, and a proved one registered its
// fingerprint.
func (c *checkedPack) entries(p pack) error {
	if len(c.Blocks) == 0 {
		return nil
	}
	registered := false
	for _, proved := range p.proof.Log.Entries {
		seq := proved.Seq
		leaf, shown := p.leaves[seq]
		if !shown {
			return fmt.Errorf("the bytes of entry %d are not in the file", seq)
		}
		e, ok := ledger.ReadLeaf(leaf)
		if !ok || e.Column("operation_id") != c.OperationID {
			return fmt.Errorf("entry %d is about another operation", seq)
		}
		registered = registered || e.Column("object") == "operation" && strings.Contains(e.Column("fact"), c.Fingerprint) && slices.Contains(c.Proved, seq)
	}
	if !registered {
		return errors.New("no sealed entry names the fingerprint; if the operation is new, take the file again in a minute")
	}
	return nil
}

func (c checkedPack) print(out io.Writer) error {
	var b strings.Builder
	if c.OperationID != "" {
		fmt.Fprintf(&b, "operation   %s\nfingerprint %s\n            %s\n", onTerminal(c.OperationID), onTerminal(c.Fingerprint), c.Words)
	}
	if c.Canonical != "" {
		fmt.Fprintf(&b, "registered  %s\n", onTerminal(c.Canonical))
	} else if c.Holds {
		b.WriteString("its bytes are not in this file; their hashes are\n")
	}
	if c.Head != nil {
		fmt.Fprintf(&b, "head        %s of %d entries, %s\nroot        %s\nkey         %s\n", c.Head.Words, c.Head.Entries, c.Head.At, c.Head.Root, c.Key)
	}
	for _, k := range c.Blocks {
		if strings.HasPrefix(k.Name, "log-") {
			continue
		}
		named := "named by this file alone"
		if k.Entry > 0 {
			named = fmt.Sprintf("named by entry %d", k.Entry)
		}
		fmt.Fprintf(&b, "bytes       %s %s, %s\n", k.SHA256, k.Name, named)
	}
	if c.Holds {
		fmt.Fprintf(&b, "✓ entries %s stand under the head\n", strings.Trim(fmt.Sprint(c.Proved), "[]"))
		if len(c.Later) > 0 {
			fmt.Fprintf(&b, "entries %s came after it and are not proved\n", strings.Trim(fmt.Sprint(c.Later), "[]"))
		}
		b.WriteString("Only bytes and entries were checked: believe what stands here, and compare the key with the one you know.\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// onTerminal writes what a reader would not see as its name.
func onTerminal(s string) string {
	var b strings.Builder
	for _, run := range ledger.Visible(s) {
		if run.Mark != "" {
			b.WriteString("[" + run.Mark + "]")
			continue
		}
		b.WriteString(run.Text)
	}
	return b.String()
}

package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"holdfast/store"
	"holdfast/store/invariant"
	"holdfast/store/ledger"
)

// VerifyOptions are the flags of verify.
type VerifyOptions struct {
	Heads      []string // files with signed heads that were kept elsewhere
	JSON       bool
	Out, Notes io.Writer
}

// headText is a head as verify tells it.
type headText struct {
	Words   string `json:"words"`
	Root    string `json:"root"`
	Entries int64  `json:"entries"`
	At      string `json:"at"`
	Note    string `json:"note"`
}

func tellHead(h ledger.LogHead) *headText {
	if h.Note == "" {
		return nil
	}
	return &headText{h.Words(), h.Hex(), h.Size, stampText(h.At), h.Note}
}

// verified is what verify found, as JSON.
type verified struct {
	Holds     bool      `json:"holds"`
	Entries   int64     `json:"entries"`
	Unsealed  int64     `json:"unsealed"`
	Heads     int       `json:"heads"`
	Since     string    `json:"since"`
	Head      *headText `json:"head"` // null: nothing was sealed yet
	Key       string    `json:"key"`  // its fingerprint
	Checked   []string  `json:"checked"`
	Violation *violated `json:"violation"`
}

type violated struct {
	Name      string `json:"name"`
	Tenant    string `json:"tenant"`
	Operation string `json:"operation_id"`
	Entry     int64  `json:"entry"` // 0: it is about no entry
	Sentence  string `json:"sentence"`
}

// VerifyLedger checks a ledger from beside: it opens the file for reading, whether a
// server writes it or not. What does not hold is its error.
func VerifyLedger(ctx context.Context, folder string, o VerifyOptions) error {
	v := invariant.Verification{Progress: progress(o.Notes)}
	var err error
	if v.Heads, err = readHeads(o.Heads); err != nil {
		return err
	}
	db, err := store.OpenForReading(ctx, store.Options{Folder: folder})
	if err != nil {
		return err
	}
	defer db.Close()
	said := verified{Checked: []string{}}
	v.Checked = func(what string) { said.Checked = append(said.Checked, what) }
	found, err := invariant.Verify(ctx, db, &v)
	if err != nil && len(found) == 0 {
		return fmt.Errorf("not everything could be checked: %w", err)
	}
	said.Holds, said.Entries, said.Heads, said.Head = len(found) == 0, v.Log.Entries, v.Log.Heads, tellHead(v.Log.Last)
	said.Unsealed, said.Since = max(0, v.Log.Entries-v.Log.Last.Size), stampText(v.Log.FirstAt)
	if v.Log.Key != "" {
		said.Key = ledger.KeyFingerprint(v.Log.Key)
	}
	if len(found) > 0 {
		f := found[0]
		said.Violation = &violated{Name: f.Name, Tenant: f.Tenant, Operation: f.Operation, Sentence: f.Sentence}
		if v.Log.Fault != nil {
			said.Violation.Entry = v.Log.Fault.Seq
		}
	}
	if o.JSON {
		err = writeLine(o.Out, said)
	} else {
		err = said.print(o.Out, len(o.Heads))
	}
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%s; keep the data folder as it is and compare with a backup", found[0])
	}
	return err
}

func (v verified) print(out io.Writer, kept int) error {
	var err error
	say := func(format string, args ...any) {
		_, wrong := fmt.Fprintf(out, format+"\n", args...)
		err = errors.Join(err, wrong)
	}
	for _, what := range v.Checked {
		say("✓ %s", what)
	}
	if v.Violation != nil {
		return err
	}
	if v.Head == nil {
		say("%d entries, not sealed yet: nothing signed covers them", v.Entries)
		return err
	}
	say("%d entries, unbroken since %s, heads checked: %d, entries since the last one: %d", v.Entries, v.Since, v.Heads, v.Unsealed)
	say("head %s of %d entries, %s", v.Head.Words, v.Head.Entries, v.Head.At)
	say("root %s", v.Head.Root)
	say("key  %s", v.Key)
	if kept > 0 {
		say("✓ it goes through each head that you kept")
	} else {
		say("A log whose end was cut off looks the same; compare with a head that was kept elsewhere (--head).")
	}
	return err
}

// progress tells somebody who waits for a long log that it goes on.
func progress(notes io.Writer) func(read, of int64) {
	const every = 100_000 // about a second's walk
	told := int64(0)
	return func(read, of int64) {
		if read-told >= every {
			told = read
			fmt.Fprintf(notes, "%d of %d entries\n", read, max(read, of))
		}
	}
}

// readHeads reads signed heads that were kept as files.
func readHeads(files []string) (heads []string, err error) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--head: %w", err)
		}
		heads = append(heads, string(text))
	}
	return heads, nil
}

func writeLine(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

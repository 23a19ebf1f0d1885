package ledger_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"holdfast/store/ledger"
)

// keptTree is a tree with the hashes that are kept of it.
type keptTree struct {
	ledger.LogTree
	hashes []tlog.Hash
}

func (k *keptTree) ReadHashes(places []int64) ([]tlog.Hash, error) {
	var out []tlog.Hash
	for _, p := range places {
		out = append(out, k.hashes[p])
	}
	return out, nil
}

func (k *keptTree) add(leaf []byte) { k.hashes = append(k.hashes, k.Add(tlog.RecordHash(leaf))...) }

// The leaves and roots that implementations of RFC 6962 share as test vectors.
func TestRootsAreThoseOfRFC6962(t *testing.T) {
	leaves := []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	roots := []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
	var k keptTree
	for n := 0; ; n++ {
		if root := k.Root(); hex.EncodeToString(root[:]) != roots[n] {
			t.Errorf("root of %d leaves: %x, want %s", n, root, roots[n])
		}
		if n == len(leaves) {
			return
		}
		leaf, err := hex.DecodeString(leaves[n])
		if err != nil {
			t.Fatal(err)
		}
		k.add(leaf)
	}
}

func leafOf(n int64) []byte {
	return ledger.Entry{Seq: n, Sentence: fmt.Sprint("entry ", n)}.Stored().Leaf("")
}

// Whatever was sealed in whatever portions is the tree that the oracle makes, and
// every entry and every earlier head is proved under it; nothing else is.
func TestEveryEntryAndEveryEarlierHeadIsProved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k keptTree
		var heads []ledger.LogHead
		for range rapid.IntRange(1, 6).Draw(t, "seals") {
			resumed, err := ledger.ResumeLogTree(k.Size(), &k)
			if err != nil || resumed.Root() != k.Root() {
				t.Fatalf("resumed at %d: %v", k.Size(), err)
			}
			k.LogTree = *resumed
			for range rapid.IntRange(1, 40).Draw(t, "entries") {
				k.add(leafOf(k.Size() + 1))
			}
			want, err := tlog.TreeHash(k.Size(), &k)
			if err != nil || want != k.Root() || int64(len(k.hashes)) != tlog.StoredHashCount(k.Size()) {
				t.Fatalf("the root of %d is %s, tlog's %s, %v", k.Size(), k.Root(), want, err)
			}
			heads = append(heads, ledger.LogHead{Origin: "holdfast/t", Size: k.Size(), Root: k.Root()})
		}
		last := heads[len(heads)-1]
		seq := rapid.Int64Range(1, last.Size).Draw(t, "seq")
		p, err := ledger.ProveEntry(last, seq, leafOf(seq), &k)
		if err != nil || p.Check(last) != nil {
			t.Fatalf("entry %d of %d: %v %v", seq, last.Size, err, p.Check(last))
		}
		for name, wrong := range map[string]ledger.EntryProof{
			"another place": {Seq: seq%last.Size + 1, Hash: p.Hash, Path: p.Path},
			"another leaf":  {Seq: seq, Hash: tlog.RecordHash(leafOf(seq + 1)), Path: p.Path},
			"no path":       {Seq: seq, Hash: p.Hash},
			"no place":      {Seq: 0, Hash: p.Hash, Path: p.Path},
			"beyond":        {Seq: last.Size + 1, Hash: p.Hash, Path: p.Path},
		} {
			if last.Size > 1 && wrong.Check(last) == nil {
				t.Errorf("%s of entry %d under a head of %d is believed", name, seq, last.Size)
			}
		}
		for _, h := range heads {
			g, err := ledger.ProveGrowth(h, last, &k)
			if err != nil || ledger.CheckGrowth(h, last, g.Path) != nil {
				t.Fatalf("%d to %d: %v", h.Size, last.Size, err)
			}
			h.Root[0] ^= 1
			if ledger.CheckGrowth(h, last, g.Path) == nil {
				t.Errorf("a head that never was leads to the head of %d", last.Size)
			}
		}
	})
}

func TestALeafIsReadBackAndNoTwoEntriesShareOne(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\n", " 0 ", "a\nat 1 2\n", "actor 1 x", "\x00", "\xff"}))
	draw := func(t *rapid.T, name string) ledger.StoredEntry {
		var e ledger.StoredEntry
		for i := range e {
			e[i] = text.Draw(t, name)
		}
		return e
	}
	rapid.Check(t, func(t *rapid.T) {
		one, other := draw(t, "one"), draw(t, "other")
		back, ok := ledger.ReadLeaf(one.Leaf("b"))
		if !ok || back != one {
			t.Fatalf("%q came back as %q", one, back)
		}
		if one != other && bytes.Equal(one.Leaf("b"), other.Leaf("b")) {
			t.Fatalf("%q and %q have the same bytes", one, other)
		}
		cut := rapid.IntRange(0, len(one.Leaf("b"))-1).Draw(t, "cut")
		if _, ok := ledger.ReadLeaf(one.Leaf("b")[:cut]); ok {
			t.Fatalf("half a leaf was read")
		}
	})
}

// What an entry's bytes are is fixed for ever: proofs were handed out.
func TestTheBytesOfALeaf(t *testing.T) {
	e := ledger.Entry{Seq: 41, TenantID: "default", OperationID: "op-1", Object: "operation", ObjectID: "op-1", Event: "approve", ActorKind: ledger.Person,
		Actor: "ana@example.com", From: ledger.AwaitingApproval, To: ledger.Ready, Sentence: "Grüße\nan alle", Fact: "{}", At: 1772614800123}
	leaf := e.Stored().Leaf(ledger.Blind([]byte("secret"), "41"))
	const want = "holdfast log entry 1\nseq 2 41\ntenant_id 7 default\noperation_id 4 op-1\nobject 9 operation\nobject_id 4 op-1\nevent 7 approve\nactor_kind 6 person\n" +
		"actor 15 ana@example.com\nfrom_status 17 awaiting_approval\nto_status 5 ready\nreason 0 \nsentence 15 Grüße\nan alle\nfact 2 {}\nat 13 1772614800123\n" +
		"blind 32 "
	if !strings.HasPrefix(string(leaf), want) {
		t.Errorf("%q", leaf)
	}
	if sum := sha256.Sum256(append([]byte{0}, leaf...)); sum != tlog.RecordHash(leaf) {
		t.Error("the hash of a leaf is not that of a zero byte and the leaf")
	}
}

var seed = bytes.Repeat([]byte{7}, 32)

func signedHead(t testing.TB, h ledger.LogHead) (ledger.LogHead, string) {
	t.Helper()
	key, err := ledger.LogKey(h.Origin, seed)
	if err != nil {
		t.Fatal(err)
	}
	h, err = ledger.SignHead(h, seed)
	if err != nil {
		t.Fatal(err)
	}
	return h, key
}

func TestAHeadIsReadBackOnlyAsItWasSigned(t *testing.T) {
	h, key := signedHead(t, ledger.LogHead{Origin: "holdfast/5f", Size: 48112, Root: tlog.RecordHash(nil), At: 1772614800123})
	back, err := ledger.OpenHead(h.Note, key)
	if err != nil || back != h {
		t.Fatalf("%+v %v", back, err)
	}
	if lines := strings.Split(h.Note, "\n"); lines[0] != "holdfast/5f" || lines[1] != "48112" || lines[2] != base64.StdEncoding.EncodeToString(h.Root[:]) || lines[3] != "time 2026-03-04T09:00:00.123Z" {
		t.Errorf("%q is no checkpoint", h.Note)
	}
	other, err := ledger.LogKey("holdfast/5f", bytes.Repeat([]byte{8}, 32))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.OpenHead(h.Note, other); err == nil {
		t.Error("another key opens it")
	}
	for i := range h.Note {
		changed := []byte(h.Note)
		changed[i] ^= 1
		if back, err := ledger.OpenHead(string(changed), key); err == nil && back.Root == h.Root && back.Size == h.Size && i < strings.Index(h.Note, "\n\n") {
			t.Errorf("byte %d changed, and it opens", i)
		}
	}
	if words := h.Words(); len(strings.Split(words, "-")) != 3 {
		t.Error(words)
	}
}

package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"time"
)

// A statement file is shown before it is stored, and picked once. Between the two
// steps it is held here, in memory only: for a while, for the session that sent
// it, and never more of it than a server can bear. A restart loses it, and the
// page says so.

// Limits of what is held between preview and import.
const (
	maxUpload    = 32 << 20
	maxHeldBytes = 4 * maxUpload
	maxHeldFiles = 64
	heldFor      = 15 * time.Minute
)

// heldFile is one of them.
type heldFile struct {
	session  [sha256.Size]byte // of the secret of the session that sent it
	tenant   string
	rail     string
	account  string
	name     string
	data     []byte
	sha256   string
	answers  map[string]string
	anew     bool // what was answered of such files before is forgotten
	until    int64
	received int64
}

// heldFiles are the files between the two steps, by a name that nobody guesses.
type heldFiles struct {
	mu  sync.Mutex
	all map[string]*heldFile
}

// hold keeps a file; the oldest ones make room.
func (h *heldFiles) hold(f heldFile, now int64) (id string) {
	var b [16]byte
	rand.Read(b[:])
	id = hex.EncodeToString(b[:])
	sum := sha256.Sum256(f.data)
	f.sha256, f.received, f.until = hex.EncodeToString(sum[:]), now, now+heldFor.Milliseconds()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]*heldFile{}
	}
	for other, held := range h.all {
		if held.session == f.session { // a person looks at one file at a time
			delete(h.all, other)
		}
	}
	h.makeRoom(len(f.data), now)
	h.all[id] = &f
	return id
}

func (h *heldFiles) makeRoom(size int, now int64) {
	maps.DeleteFunc(h.all, func(_ string, f *heldFile) bool { return f.until <= now })
	bytes := size
	for _, f := range h.all {
		bytes += len(f.data)
	}
	byAge := slices.SortedFunc(maps.Keys(h.all), func(a, b string) int { return int(h.all[a].received - h.all[b].received) })
	for len(byAge) > 0 && (bytes > maxHeldBytes || len(h.all) >= maxHeldFiles) {
		bytes -= len(h.all[byAge[0]].data)
		delete(h.all, byAge[0])
		byAge = byAge[1:]
	}
}

// find gives the file back to the session that sent it.
func (h *heldFiles) find(id string, session [sha256.Size]byte, tenant string, now int64) (heldFile, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.all[id]
	if f == nil || f.session != session || f.tenant != tenant || f.until <= now {
		return heldFile{}, false
	}
	held := *f
	held.answers = maps.Clone(f.answers)
	return held, true
}

// answer adds what a person says about a held file.
func (h *heldFiles) answer(id string, answers map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.all[id]; f != nil {
		maps.Copy(f.answers, answers)
	}
}

// forget takes back all that was said about a held file, and about those before it.
func (h *heldFiles) forget(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.all[id]; f != nil {
		f.answers, f.anew = map[string]string{}, true
	}
}

func (h *heldFiles) drop(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, id)
}

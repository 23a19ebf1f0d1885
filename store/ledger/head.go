package ledger

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// LogHead is what was signed about the log at one moment: so many entries, and
// the one hash that covers them.
type LogHead struct {
	Origin string // which log: the name in the key
	Size   int64
	Root   tlog.Hash
	At     int64  // Unix milliseconds, by the clock of whoever signed
	Note   string // the signed text, a C2SP checkpoint; empty: not signed yet
}

const headTime = "2006-01-02T15:04:05.000Z"

// text is what the signature covers: origin, size and root as in a checkpoint,
// and the time as its one line of extension.
func (h LogHead) text() string {
	return fmt.Sprintf("%s\n%d\n%s\ntime %s\n", h.Origin, h.Size, h.Root, time.UnixMilli(h.At).UTC().Format(headTime))
}

// Words are the root's three words, for the voice.
func (h LogHead) Words() string { return threeWords(h.Root) }

// Hex is the root as digits.
func (h LogHead) Hex() string { return hex.EncodeToString(h.Root[:]) }

// LogOrigin is the name of an instance's log.
func LogOrigin(instance string) string { return "holdfast/" + instance }

// LogKey is what heads are checked with, in the notation of a note's verifier
// key: name, hash and public key.
func LogKey(origin string, seed []byte) (string, error) {
	if len(seed) != ed25519.SeedSize {
		return "", errors.New("the log's key is damaged")
	}
	public, _ := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	return note.NewEd25519VerifierKey(origin, public)
}

// KeyFingerprint is how people compare a log's key.
func KeyFingerprint(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// SignHead signs a head with the seed of the log's key.
func SignHead(h LogHead, seed []byte) (LogHead, error) {
	key, err := LogKey(h.Origin, seed)
	if err != nil {
		return h, err
	}
	hash := strings.Split(key, "+")[1]
	private := base64.StdEncoding.EncodeToString(append([]byte{1}, seed...)) // 1: Ed25519
	signer, err := note.NewSigner("PRIVATE+KEY+" + h.Origin + "+" + hash + "+" + private)
	if err != nil {
		return h, err
	}
	signed, err := note.Sign(&note.Note{Text: h.text()}, signer)
	h.Note = string(signed)
	return h, err
}

// OpenHead reads a signed head and checks its signature with the log's key.
func OpenHead(signed, key string) (LogHead, error) {
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return LogHead{}, fmt.Errorf("the log's key cannot be read: %w", err)
	}
	n, err := note.Open([]byte(signed), note.VerifierList(verifier))
	if err != nil {
		return LogHead{}, fmt.Errorf("not signed with the log's key: %w", err)
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 5 {
		return LogHead{}, errors.New("it is no head of a log")
	}
	h := LogHead{Origin: lines[0], Note: signed}
	size, sizeErr := strconv.ParseInt(lines[1], 10, 64)
	root, rootErr := tlog.ParseHash(lines[2])
	at, timeErr := time.Parse(headTime, strings.TrimPrefix(lines[3], "time "))
	h.Size, h.Root, h.At = size, root, at.UnixMilli()
	if err := errors.Join(sizeErr, rootErr, timeErr); err != nil || size < 0 || h.text() != n.Text || h.Origin != verifier.Name() {
		return LogHead{}, errors.New("it is no head of this log")
	}
	return h, nil
}

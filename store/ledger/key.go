package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
)

// digest hashes length-prefixed parts under a label, so that no two different
// lists of parts have the same input.
func digest(label string, parts ...[]byte) [32]byte {
	h := sha256.New()
	writePart(h, []byte(label))
	for _, p := range parts {
		writePart(h, p)
	}
	return [32]byte(h.Sum(nil))
}

func writePart(w io.Writer, p []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(p)))
	w.Write(n[:])
	w.Write(p)
}

// orderAlphabet is Crockford's base 32: no I, L, O or U, so that a person can
// read an order id over the phone.
var orderAlphabet = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// OrderID names an operation across tenants. It depends on nothing that a
// restore could change.
func OrderID(instance, tenant, operationID string) string {
	sum := digest("holdfast order id", []byte(instance), []byte(tenant), []byte(operationID))
	return "ord_" + orderAlphabet.EncodeToString(sum[:])[:26]
}

// ProviderKey is the idempotency key of every attempt of one operation, shaped
// as a UUIDv4: every provider that documents a format accepts that one. It
// holds no time, attempt, worker or word of the agent's, so a re-send, also
// after a restore, carries the same key.
func ProviderKey(instance, tenant, operationID, account string) string {
	sum := digest("holdfast provider key", []byte(instance), []byte(tenant), []byte(operationID), []byte(account))
	k := sum[:16]
	k[6] = k[6]&0x0f | 0x40 // version 4
	k[8] = k[8]&0x3f | 0x80 // variant 10
	return fmt.Sprintf("%x-%x-%x-%x-%x", k[0:4], k[4:6], k[6:8], k[8:10], k[10:16])
}

// HashRow covers everything about an operation that was fixed when it was
// registered. A worker computes it again before every send: a row that was
// changed on disk is never sent.
func (o Operation) HashRow() string {
	sum := digest("holdfast row 1",
		[]byte(o.TenantID), []byte(o.OperationID), []byte(o.OrderID), []byte(o.ProviderKey),
		[]byte(o.ActionType), []byte(o.ActionVersion), []byte(o.Effect),
		[]byte(o.Fingerprint), o.Canonical, o.Payload,
		[]byte(o.Rail), []byte(o.RailAddress), []byte(o.RailAccount),
		binary.BigEndian.AppendUint64(nil, uint64(o.Terms.Amount)), fmt.Append(nil, o.Terms.HasAmount),
		[]byte(o.Terms.Currency), []byte(o.Terms.Recipient), []byte(o.Terms.Reference),
		[]byte(o.Terms.Account), []byte(o.Terms.Customer), []byte(o.Terms.RefundOf),
		[]byte(o.Agent), []byte(o.TokenID), []byte(o.Owner))
	return hex.EncodeToString(sum[:])
}

// Hashed are the bytes that HashRequest hashes: a label and every part, each
// behind its length, eight bytes with the highest first.
func (r Request) Hashed() []byte {
	var b bytes.Buffer
	writePart(&b, []byte(requestLabel))
	for _, p := range r.parts() {
		writePart(&b, p)
	}
	return b.Bytes()
}

const requestLabel = "holdfast request 1"

func (r Request) parts() [][]byte {
	parts := [][]byte{[]byte(r.Method), []byte(r.URL), r.Body}
	for _, h := range r.Header {
		parts = append(parts, []byte(h[0]), []byte(h[1]))
	}
	return parts
}

// HashRequest covers every byte of a request but its secrets.
func (r Request) HashRequest() string {
	sum := digest(requestLabel, r.parts()...)
	return hex.EncodeToString(sum[:])
}

package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// notInNames is what no name of a file has.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// evidencePack answers GET /operations/{id}/evidence.html: one operation as a file
// of its own. Who took it is on record before anybody has it.
func (s *Server) evidencePack(c echo.Context, p ledger.PersonRecord) error {
	ctx := c.Request().Context()
	o, err := s.Store.Operation(ctx, p.TenantID, c.Param("id"))
	if err != nil {
		return err
	}
	d, err := s.dossier(ctx, p, o)
	if err != nil {
		return err
	}
	f := s.outside(c)
	f.Tenant, f.Person.Email, f.Money = p.TenantID, p.Email, s.Store.Rulebook(p.TenantID).Currencies
	page := views.PackPage{Frame: f, Operation: d.Operation, Hidden: d.Hidden, Kept: packed(d), Approvals: d.Approvals, Attempts: d.Attempts,
		Evidence: d.Evidence, Lines: d.Lines, Refunds: d.Refunds, Log: d.Log}
	if page.Proof, err = packedProof(d); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := views.Pack(page).Render(ctx, &b); err != nil {
		return err
	}
	note := store.Export{Name: "evidence", Format: "html", Filter: map[string]string{"operation_id": o.OperationID}, Rows: 1}
	if err := s.Store.EndExport(ctx, p.TenantID, ledger.Holder{Kind: ledger.Person, Name: p.Email}, note); err != nil {
		return err
	}
	c.Response().Header().Set("Content-Security-Policy", views.PackPolicy()+"; frame-ancestors 'none'; sandbox")
	file := fmt.Sprintf("holdfast-%s-%s-evidence.html", p.TenantID, notInNames.ReplaceAllString(o.OperationID, "_"))
	_, err = (&download{c: c, file: file, kind: "text/html; charset=utf-8"}).Write(b.Bytes())
	return err
}

// packed lists the byte strings of a pack, each with the hash that was recorded
// for it.
func packed(d dossier) []views.KeptBytes {
	all := []views.KeptBytes{{Name: "canonical", What: "Canonical bytes", Body: d.Whole.Canonical, SHA256: keep(d.Whole.Canonical, true).SHA256}}
	all = append(all, views.KeptBytes{Name: "payload", What: "Payload as it goes out", Body: d.Whole.Payload, SHA256: keep(d.Whole.Payload, true).SHA256})
	if d.Request != nil {
		all = append(all, views.KeptBytes{Name: "request", What: "Request as it was hashed", Body: d.Request.Hashed(), SHA256: d.Request.SHA256},
			views.KeptBytes{Name: "request-body", What: "Body of the request", Body: d.Request.Body, SHA256: keep(d.Request.Body, true).SHA256})
	}
	for i, e := range d.Evidence {
		all = append(all, views.KeptBytes{Name: fmt.Sprint("evidence-", i+1), What: fmt.Sprintf("Evidence %d", i+1), Body: e.Body, SHA256: e.SHA256})
	}
	if d.Whole.Receipt != nil && len(d.Whole.Receipt.Raw) > 0 {
		all = append(all, views.KeptBytes{Name: "receipt", What: "Receipt as the provider wrote it", Body: d.Whole.Receipt.Raw, SHA256: keep(d.Whole.Receipt.Raw, true).SHA256})
	}
	for i, e := range d.Proof.Entries {
		all = append(all, views.KeptBytes{Name: leafBlock(e.Seq), What: fmt.Sprintf("Log entry %d as it was sealed", e.Seq), Body: d.Leaves[i], SHA256: keep(d.Leaves[i], true).SHA256})
	}
	return all
}

func leafBlock(seq int64) string { return fmt.Sprint("log-", seq) }

// packProof is what a pack says about itself to a program.
type packProof struct {
	OperationID string          `json:"operation_id"`
	Fingerprint string          `json:"fingerprint"`
	Log         ledger.LogProof `json:"log"`
}

// packedProof is the proof of a pack; nil before the first seal.
func packedProof(d dossier) (*views.PackProof, error) {
	if d.Proof.Key == "" {
		return nil, nil
	}
	head, err := ledger.OpenHead(d.Proof.Head, d.Proof.Key)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(packProof{d.Whole.OperationID, d.Whole.Fingerprint, d.Proof}, "", " ")
	p := &views.PackProof{Head: head, Key: d.Proof.Key, Body: text}
	for _, e := range d.Proof.Entries {
		if e.Path == nil {
			p.Later++
		}
	}
	return p, err
}

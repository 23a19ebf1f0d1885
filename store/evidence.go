package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"

	"holdfast/store/ledger"
)

// maxEvidence cuts what a provider sends: evidence, not a copy of its site.
const maxEvidence = 64 << 10

// addEvidence keeps something that was observed. Evidence is never changed and
// never thrown away, however late it came.
func (t *tx) addEvidence(e ledger.Evidence) error {
	if len(e.Body) > maxEvidence {
		e.Body = e.Body[:maxEvidence]
	}
	if e.Body == nil {
		e.Body = []byte{}
	}
	if e.ID == "" {
		e.ID = randomID("ev_")
	}
	sum := sha256.Sum256(e.Body)
	return t.exec(`
		insert into evidence (id, tenant_id, operation_id, attempt, source, finding, sentence, body, sha256, recorded_by, at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		e.ID, e.TenantID, e.OperationID, e.Attempt, e.Source, e.Finding, e.Sentence, e.Body, hex.EncodeToString(sum[:]), e.By, t.now)
}

// Evidence lists what was observed about an operation, oldest first.
func (s *Store) Evidence(ctx context.Context, tenant, operation string) ([]ledger.Evidence, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select id, tenant_id, operation_id, attempt, source, finding, sentence, body, sha256, recorded_by, at
		from evidence where tenant_id = $1 and operation_id = $2 order by at, id limit 1000`, tenant, operation)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (e ledger.Evidence, err error) {
		return e, r.Scan(&e.ID, &e.TenantID, &e.OperationID, &e.Attempt, &e.Source, &e.Finding, &e.Sentence, &e.Body, &e.SHA256, &e.By, &e.At)
	})
}

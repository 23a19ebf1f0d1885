package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"holdfast/store/ledger"
)

const pauseColumns = `tenant_id, rail, person, reason, at`

func scanPause(row scanner) (p ledger.Pause, err error) {
	err = row.Scan(&p.TenantID, &p.Rail, &p.Person, &p.Reason, &p.At)
	return p, notFound(err)
}

// PauseRail stops a rail until it is resumed: nothing of it is claimed, and what
// was claimed is not marked. Who paused it first is who is named.
func (s *Store) PauseRail(ctx context.Context, tenant, rail, reason string, by ledger.PersonRecord) error {
	if strings.TrimSpace(reason) == "" {
		return fmt.Errorf("%w: say why the rail is paused", ErrForbidden)
	}
	return s.change(ctx, func(t *tx) error {
		if _, err := t.pause(tenant, rail); !errors.Is(err, ErrNotFound) {
			return err
		}
		if err := t.exec(`insert into rail_pauses (tenant_id, rail, person, reason, at) values ($1, $2, $3, $4, $5)`,
			tenant, rail, by.Display(), reason, t.now); err != nil {
			return err
		}
		return t.logRail(tenant, rail, "pause", by, fmt.Sprintf("%s paused the rail %s: %s", by.Display(), rail, reason))
	})
}

// ResumeRail lets a paused rail go on. One that is not paused stays as it is.
func (s *Store) ResumeRail(ctx context.Context, tenant, rail, reason string, by ledger.PersonRecord) error {
	return s.change(ctx, func(t *tx) error {
		n, err := t.affected(`delete from rail_pauses where tenant_id = $1 and rail = $2`, tenant, rail)
		if err != nil || n == 0 {
			return err
		}
		sentence := fmt.Sprintf("%s resumed the rail %s.", by.Display(), rail)
		if reason = strings.TrimSpace(reason); reason != "" {
			sentence = strings.TrimSuffix(sentence, ".") + ": " + reason
		}
		return t.logRail(tenant, rail, "resume", by, sentence)
	})
}

func (t *tx) logRail(tenant, rail, event string, by ledger.PersonRecord, sentence string) error {
	return t.log(ledger.Entry{TenantID: tenant, Object: "rail", ObjectID: rail, Event: event,
		ActorKind: ledger.Person, Actor: by.Email, Sentence: sentence, Fact: "{}"})
}

func (t *tx) pause(tenant, rail string) (ledger.Pause, error) {
	return scanPause(t.row(`select `+pauseColumns+` from rail_pauses where tenant_id = $1 and rail = $2`, tenant, rail))
}

// Pauses lists a tenant's paused rails.
func (s *Store) Pauses(ctx context.Context, tenant string) ([]ledger.Pause, error) {
	rows, err := s.readers.QueryContext(ctx, `select `+pauseColumns+` from rail_pauses where tenant_id = $1 order by rail`, tenant)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.Pause, error) { return scanPause(r) })
}

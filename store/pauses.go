package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"holdfast/store/ledger"
)

const pauseColumns = `tenant_id, rail, person, reason, at`

func scanPause(row scanner) (p ledger.Pause, err error) {
	err = row.Scan(&p.TenantID, &p.Rail, &p.Person, &p.Reason, &p.At)
	return p, notFound(err)
}

// PauseRail is a person's end of sending on a rail until somebody resumes it:
// nothing of it is claimed, and what was claimed is not marked. The first pause
// stands, with who and why. Seen.Version is the moment of the pause that the
// person had on the screen; 0: none.
func (s *Store) PauseRail(ctx context.Context, tenant, rail string, d Decision) error {
	return s.changeRail(ctx, tenant, rail, d, func(t *tx, paused bool) error {
		if paused {
			return ErrStale
		}
		if _, known := s.Rulebook(tenant).Rails[rail]; !known {
			return ErrNotFound
		}
		if err := t.exec(`insert into rail_pauses (tenant_id, rail, person, reason, at) values ($1, $2, $3, $4, $5)`,
			tenant, rail, d.Person.Email, d.Reason, t.now); err != nil {
			return err
		}
		return t.logRail(tenant, rail, "pause", d, "paused")
	})
}

// ResumeRail lets a paused rail go on. Seen.Version is the moment of the pause
// that the person had on the screen.
func (s *Store) ResumeRail(ctx context.Context, tenant, rail string, d Decision) error {
	return s.changeRail(ctx, tenant, rail, d, func(t *tx, paused bool) error {
		if !paused {
			return ErrStale
		}
		if err := t.exec(`delete from rail_pauses where tenant_id = $1 and rail = $2`, tenant, rail); err != nil {
			return err
		}
		return t.logRail(tenant, rail, "resume", d, "resumed")
	})
}

func (s *Store) changeRail(ctx context.Context, tenant, rail string, d Decision, f func(t *tx, paused bool) error) error {
	return s.change(ctx, func(t *tx) error {
		p, err := t.pause(tenant, rail)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if err := mayAct(tenant, d); err != nil {
			return err
		}
		if d.Seen.Version != p.At {
			return ErrStale
		}
		return f(t, p.At > 0)
	})
}

func (t *tx) logRail(tenant, rail, event string, d Decision, did string) error {
	return t.log(ledger.Entry{TenantID: tenant, Object: "rail", ObjectID: rail, Event: event, ActorKind: ledger.Person, Actor: d.Person.Email,
		Sentence: fmt.Sprintf("%s %s the rail %s: %s", d.Person.Display(), did, rail, d.Reason), Fact: factText(map[string]any{"reason": d.Reason})})
}

func (t *tx) pause(tenant, rail string) (ledger.Pause, error) {
	return scanPause(t.row(`select `+pauseColumns+` from rail_pauses where tenant_id = $1 and rail = $2`, tenant, rail))
}

// LastRailChange is the last entry of the log about a pause of the rail, and of
// what ended it; the zero entry where there is none.
func (s *Store) LastRailChange(ctx context.Context, tenant, rail string) (ledger.Entry, error) {
	return s.lastEntry(ctx, tenant, "rail", rail, "pause", "resume")
}

// Pause is the pause of one rail; the zero pause where nobody paused it.
func (s *Store) Pause(ctx context.Context, tenant, rail string) (ledger.Pause, error) {
	p, err := scanPause(s.readers.QueryRowContext(ctx, `select `+pauseColumns+` from rail_pauses where tenant_id = $1 and rail = $2`, tenant, rail))
	if errors.Is(err, ErrNotFound) {
		return ledger.Pause{}, nil
	}
	return p, err
}

// Pauses lists a tenant's paused rails.
func (s *Store) Pauses(ctx context.Context, tenant string) ([]ledger.Pause, error) {
	rows, err := s.readers.QueryContext(ctx, `select `+pauseColumns+` from rail_pauses where tenant_id = $1 order by rail`, tenant)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.Pause, error) { return scanPause(r) })
}

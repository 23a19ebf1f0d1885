package store

import (
	"context"
	"database/sql"
	"fmt"

	"holdfast/store/ledger"
)

// family is a run, the runs that it began, and those that they began: what
// stops together.
const family = `
	with recursive family (run_id) as (
		select run_id from runs where tenant_id = $1 and run_id = $2
		union
		select r.run_id from runs r join family f on r.parent_run_id = f.run_id where r.tenant_id = $1
	)`

// openOf lists what a run's family has open, all of it: what a stop leaves out
// would be sent.
func (t *tx) openOf(tenant, id string) ([]ledger.Operation, error) {
	rows, err := t.rows(family+`
		select `+operationColumns+` from operations
		where tenant_id = $1 and run_id in (select run_id from family) and status in ('awaiting_approval', 'ready', 'unknown_hold')
		order by id`, tenant, id)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.Operation, error) { return scanOperation(r) })
}

// StopRun is a person's end of a run and of those that it began: what of it was
// not sent is rejected, nothing new is taken, and what is being sent goes to its
// end. The first stop stands, with who and why.
func (s *Store) StopRun(ctx context.Context, tenant, id string, d Decision) (rejected int, err error) {
	err = s.change(ctx, func(t *tx) error {
		rejected = 0
		r, err := t.run(tenant, id)
		if err != nil {
			return err
		}
		if err := mayAct(tenant, d); err != nil {
			return err
		}
		if r.StoppedAt == 0 {
			if err := t.noteStop(r, d); err != nil {
				return err
			}
		}
		rejected, err = t.rejectOpen(r, d)
		return err
	})
	return rejected, err
}

// mayAct admits a person of the tenant who may do more than read, and says why.
func mayAct(tenant string, d Decision) error {
	if d.Person.TenantID != tenant {
		return ErrNotFound
	}
	if ok, why := ledger.MayAct(d.Person.Email, d.Person.Roles); !ok {
		return fmt.Errorf("%w: %s", ErrForbidden, why)
	}
	return needReason(d)
}

func (t *tx) noteStop(r ledger.Run, d Decision) error {
	if err := t.exec(`update runs set stopped_at = $1 where tenant_id = $2 and run_id = $3`, t.now, r.TenantID, r.RunID); err != nil {
		return err
	}
	return t.log(ledger.Entry{TenantID: r.TenantID, Object: "run", ObjectID: r.RunID, Event: "stop", ActorKind: ledger.Person, Actor: d.Person.Email,
		Sentence: fmt.Sprintf("%s stopped the run %s: %s", d.Person.Display(), r.RunID, d.Reason), Fact: factText(map[string]any{"reason": d.Reason})})
}

func (t *tx) rejectOpen(r ledger.Run, d Decision) (rejected int, err error) {
	open, err := t.openOf(r.TenantID, r.RunID)
	if err != nil {
		return 0, err
	}
	by := ledger.Holder{Kind: ledger.Person, Name: d.Person.Email}
	sentence := fmt.Sprintf("%s stopped its run, and nothing was sent: %s", d.Person.Display(), d.Reason)
	for _, listed := range open {
		o, err := t.operation(listed.TenantID, listed.OperationID) // one before it may have taken it along
		if err != nil {
			return rejected, err
		}
		if !o.May(ledger.StopRun, by.Kind, t.now) {
			continue
		}
		if _, err := t.happen(o, happening{event: ledger.StopRun, by: by, sentence: sentence, fact: map[string]any{"run": r.RunID, "reason": d.Reason}}); err != nil {
			return rejected, err
		}
		rejected++
	}
	return rejected, nil
}

package store

import (
	"context"
	"database/sql"
	"slices"

	"holdfast/store/ledger"
)

// RecheckSample draws operations of one rail that ended after something was sent,
// to be looked at once more: confirmed ones, and those that ended as not
// executed, since a false "rejected" costs as much as a second send. What a
// person was asked about before is not asked about again.
func (s *Store) RecheckSample(ctx context.Context, tenant, rail string, n int, chance func(n int64) int64) ([]ledger.Operation, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select o.id, o.updated_at, coalesce(r.looked_at, 0), coalesce(r.missing_since, 0) > 0
		from operations o left join rechecks r on r.tenant_id = o.tenant_id and r.operation_id = o.operation_id
		where o.tenant_id = $1 and o.rail = $2 and o.attempts > 0
			and (o.status = 'confirmed' or o.status = 'rejected' and o.reason in ('not_executed', 'declined') and o.ever_unknown = 1)
			and not exists (select 1 from exceptions e where e.tenant_id = o.tenant_id and e.operation_id = o.operation_id)`, tenant, rail)
	if err != nil {
		return nil, err
	}
	candidates, err := collect(rows, func(r *sql.Rows) (c ledger.Candidate, err error) {
		return c, r.Scan(&c.ID, &c.EndedAt, &c.CheckedAt, &c.Missing)
	})
	if err != nil {
		return nil, err
	}
	var sample []ledger.Operation
	for _, id := range ledger.Draw(candidates, n, s.now(), chance) {
		o, err := scanOperation(s.readers.QueryRowContext(ctx, `select `+operationColumns+` from operations where id = $1`, id))
		if err != nil {
			return nil, err
		}
		sample = append(sample, o)
	}
	return sample, nil
}

// RecordRecheck keeps what a re-check showed, and opens what it makes owed or
// asks a person. It tells how many entries it opened; the same again opens none.
func (s *Store) RecordRecheck(ctx context.Context, tenant, id string, look ledger.Look, by ledger.Holder) (c ledger.Recheck, opened int, err error) {
	err = s.change(context.WithoutCancel(ctx), func(t *tx) error {
		opened = 0
		o, err := t.operation(tenant, id)
		if err != nil {
			return err
		}
		c, opened, err = t.recheck(o, look, by)
		return err
	})
	return c, opened, err
}

func (t *tx) recheck(o ledger.Operation, look ledger.Look, by ledger.Holder) (c ledger.Recheck, opened int, err error) {
	if !o.Status.Final() || look.Finding == ledger.LookUnreachable {
		return ledger.Recheck{Finding: look.Finding, Sentence: look.Sentence}, 0, nil
	}
	missing, err := t.missingSince(o)
	if err != nil {
		return c, 0, err
	}
	rail, _ := t.s.Rulebook(o.TenantID).Route(o)
	c = rail.Recheck(o, look, missing)
	if c.Extra, err = t.unclaimed(o, c.Extra); err != nil {
		return c, 0, err
	}
	if err := t.exec(`
		insert into rechecks (tenant_id, operation_id, looked_at, finding, missing_since) values ($1, $2, $3, $4, $5)
		on conflict (tenant_id, operation_id) do update set looked_at = excluded.looked_at, finding = excluded.finding, missing_since = excluded.missing_since`,
		o.TenantID, o.OperationID, t.now, c.Finding, c.MissingSince); err != nil {
		return c, 0, err
	}
	if c.Quiet() && c.MissingSince == 0 {
		return c, 0, nil // a look that found what was known is not evidence of anything new
	}
	evidence := ledger.Evidence{ID: randomID("ev_"), TenantID: o.TenantID, OperationID: o.OperationID, Attempt: o.Attempts,
		Source: "lookup", Finding: string(look.Finding), Sentence: c.Sentence, Body: look.Body, By: by.Name}
	if err := t.addEvidence(evidence); err != nil {
		return c, 0, err
	}
	if c.Exception != "" {
		asked, err := t.openException(o, c.Exception, c.Sentence, by, evidence.ID)
		if err != nil {
			return c, 0, err
		}
		if asked {
			opened++
		}
	}
	for _, r := range c.Extra {
		n, err := t.lateEffect(o, r, lateCause(o), by)
		if err != nil {
			return c, opened, err
		}
		opened += n
	}
	return c, opened, nil
}

func (t *tx) missingSince(o ledger.Operation) (at int64, err error) {
	err = notFound(t.row(`select missing_since from rechecks where tenant_id = $1 and operation_id = $2`, o.TenantID, o.OperationID).Scan(&at))
	if err == ErrNotFound {
		return 0, nil
	}
	return at, err
}

// unclaimed leaves out effects that are another operation's receipt.
func (t *tx) unclaimed(o ledger.Operation, effects []ledger.Receipt) ([]ledger.Receipt, error) {
	var failed error
	left := slices.DeleteFunc(slices.Clone(effects), func(r ledger.Receipt) bool {
		other, err := t.receiptOf(o, r.ID)
		if err != nil {
			failed = err
		}
		return other != ""
	})
	return left, failed
}

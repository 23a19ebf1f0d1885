package store

import (
	"database/sql"
	"strings"

	"holdfast/store/ledger"
)

// past gathers what a new operation is compared with.
func (t *tx) past(o ledger.Operation, window int64) (p ledger.Past, err error) {
	if p.Earlier, err = t.candidates(o, window); err != nil {
		return p, err
	}
	if p.Family, err = t.family(o); err != nil {
		return p, err
	}
	p.Answered, err = t.answered(o)
	return p, err
}

// familyOf is a table expression, to be put behind "with recursive": the run in
// one placeholder, those that it comes from, by the parent in the other one too,
// and those that it began, through all generations. The cross join tells SQLite
// to begin at the run that is known.
func familyOf(run, parent string) string {
	return strings.NewReplacer(":run", run, ":parent", parent).Replace(`
		elders (run_id) as (
			select :run where :run <> '' union select :parent where :run <> '' and :parent <> ''
			union
			select r.parent_run_id from elders e cross join runs r where r.tenant_id = $1 and r.run_id = e.run_id
		),
		heirs (run_id) as (
			select :run where :run <> ''
			union
			select r.run_id from heirs h cross join runs r where r.tenant_id = $1 and r.parent_run_id = h.run_id and r.parent_run_id <> ''
		),
		family (run_id) as (select run_id from elders where run_id <> '' union select run_id from heirs)`)
}

// family are the runs that are one lineage with an operation's: a step that one
// of them has done is the same step.
func (t *tx) family(o ledger.Operation) (map[string]bool, error) {
	family := map[string]bool{}
	if o.RunID == "" || o.Step == "" {
		return family, nil
	}
	rows, err := t.rows(`with recursive `+familyOf("$2", "$3")+` select run_id from family`, o.TenantID, o.RunID, o.ParentRunID)
	if err != nil {
		return nil, err
	}
	_, err = collect(rows, func(r *sql.Rows) (struct{}, error) {
		var id string
		err := r.Scan(&id)
		family[id] = true
		return struct{}{}, err
	})
	return family, err
}

// longestSuccession bounds how far back replacements are followed.
const longestSuccession = 32

// answered are the overlaps of those that an operation replaces, one after the
// other, of which a person has said that they are other purchases.
func (t *tx) answered(o ledger.Operation) (all []ledger.Overlapped, err error) {
	for range longestSuccession {
		if o.Replaces == "" {
			break
		}
		if o, err = t.operation(o.TenantID, o.Replaces); err != nil {
			return nil, err
		}
		for _, v := range o.Overlaps {
			apart, err := t.toldApart(o, v.OperationID)
			if err != nil {
				return nil, err
			}
			if apart {
				all = append(all, v)
			}
		}
	}
	return all, nil
}

func (t *tx) toldApart(o ledger.Operation, earlier string) (bool, error) {
	var n int
	err := t.row(`select count(*) from separations where tenant_id = $1 and operation_id = $2 and earlier_id = $3`,
		o.TenantID, o.OperationID, earlier).Scan(&n)
	return n > 0, err
}

// candidates are the earlier operations that could be the same purchase: every
// one that shares a reference, a step, a fingerprint or the money with the
// draft, and the originals of those that are aliases. What they mean is the
// domain's to say; the strongest come first, so that the limit cuts the list
// and never the decision.
func (t *tx) candidates(o ledger.Operation, window int64) ([]ledger.Operation, error) {
	// One search by index for each way of being alike: a price that everybody
	// pays must not slow down who pays it next.
	query := `
		with recursive ` + familyOf("$10", "$11") + `,
		alike as (
			select id from operations
			where tenant_id = $1 and effect = $2 and reference_key = $3 and reference_key <> ''
			union all select id from operations
			where tenant_id = $1 and effect = $2 and step = $4 and step <> '' and run_id in (select run_id from family)
			union all select id from operations
			where tenant_id = $1 and effect = $2 and step = $4 and step <> '' and parent_run_id = $10 and parent_run_id <> ''
			union all select id from operations
			where tenant_id = $1 and effect = $2 and fingerprint = $5 and (updated_at >= $6 or status <> 'confirmed')
			union all select id from operations
			where tenant_id = $1 and effect = $2 and recipient = $7 and recipient <> '' and currency = $8 and amount = $9
			  and reference_key = '' and (updated_at >= $6 or status <> 'confirmed')
			union all select id from operations
			where tenant_id = $1 and effect = $2 and recipient = $7 and recipient <> '' and currency = $8 and amount = $9
			  and $3 = '' and (updated_at >= $6 or status <> 'confirmed')
			union all select id from operations
			where tenant_id = $1 and effect = $2 and recipient = $7 and recipient <> '' and currency = $8 and amount = $9
			  and (status in ('in_flight', 'unknown', 'unknown_hold') or open_attempts > 0 or quarantined = 1)
			  and (updated_at >= $6 or status <> 'confirmed')
			union all select id from operations
			where tenant_id = $1 and effect = $2 and recipient = $7 and recipient <> '' and currency = $8 and amount = $9
			  and duplicate_of <> ''
		)
		select ` + operationColumns + ` from operations
		where id in (select id from alike) and (status <> 'rejected' or duplicate_of <> '')
		order by (reference_key = $3 and reference_key <> '') desc, (step = $4 and step <> '') desc, (fingerprint = $5) desc, id
		limit 200`
	rows, err := t.rows(query, o.TenantID, o.Effect, o.KnownAs(), o.Step, o.Fingerprint, t.now-window,
		o.Terms.Recipient, o.Terms.Currency, o.Terms.Amount, o.RunID, o.ParentRunID)
	if err != nil {
		return nil, err
	}
	found, err := collect(rows, func(r *sql.Rows) (ledger.Operation, error) { return scanOperation(r) })
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, f := range found {
		known[f.OperationID] = true
	}
	for i := 0; i < len(found); i++ { // an original may be an alias itself
		if found[i].Status == ledger.Rejected && found[i].DuplicateOf == "" {
			// It was replaced since: what replaced it stands for it.
			if found[i].DuplicateOf, err = t.successor(o.TenantID, found[i].OperationID); err != nil {
				return nil, err
			}
		}
		next := found[i].DuplicateOf
		if next == "" || known[next] {
			continue
		}
		original, err := t.operation(o.TenantID, next)
		if err != nil {
			return nil, err
		}
		known[next] = true
		found = append(found, original)
	}
	return found, nil
}

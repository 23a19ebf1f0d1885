package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

// copyRow inserts a copy of an operation's row in which some columns differ.
func copyRow(b *bench, id string, differ map[string]string) error {
	b.t.Helper()
	db := b.raw()
	_, err := db.Exec(`pragma foreign_keys = on`)
	b.ok(err)
	rows, err := db.QueryContext(b.ctx, `select name from pragma_table_info('operations')`)
	b.ok(err)
	var names, values []string
	for rows.Next() {
		var name string
		b.ok(rows.Scan(&name))
		value := name
		if v, ok := differ[name]; ok {
			value = v
		}
		names, values = append(names, name), append(values, value)
	}
	b.ok(rows.Err())
	_, err = db.ExecContext(b.ctx, fmt.Sprintf(`insert into operations (%s) select %s from operations where operation_id = '%s'`,
		strings.Join(names, ", "), strings.Join(values, ", "), id))
	return err
}

func TestSchemaAndLifecycleAgree(t *testing.T) {
	b := newBench(t)
	b.broken = true // rows from nowhere have no log
	b.submit("op", charge, nil)
	allowed := map[ledger.Status][]ledger.Reason{}
	reasons := []ledger.Reason{""}
	for _, r := range ledger.Rules() {
		if len(r.Reasons) == 0 {
			allowed[r.To] = append(allowed[r.To], "")
		}
		allowed[r.To] = append(allowed[r.To], r.Reasons...)
		reasons = append(reasons, r.Reasons...)
	}
	reasons = append(reasons, "nonsense")
	slices.Sort(reasons)
	reasons = slices.Compact(reasons)
	n := 0
	for _, status := range append(ledger.Statuses(), "failed", "") {
		for _, reason := range reasons {
			n++
			err := copyRow(b, "op", map[string]string{"id": fmt.Sprint(n), "operation_id": fmt.Sprintf("'copy%d'", n), "order_id": fmt.Sprintf("'ord%d'", n),
				"provider_key": fmt.Sprintf("'key%d'", n), "status": fmt.Sprintf("'%s'", status), "reason": fmt.Sprintf("'%s'", reason)})
			if want := slices.Contains(allowed[status], reason); (err == nil) != want {
				t.Errorf("%s %q: %v, and the lifecycle says %v", status, reason, err, want)
			}
		}
	}
}

func TestSchemaRefusesARowWithoutATenant(t *testing.T) {
	b := newBench(t)
	b.submit("op", charge, nil)
	for _, value := range []string{"null", "''", "'nobody'"} {
		if err := copyRow(b, "op", map[string]string{"id": "1", "operation_id": "'x'", "order_id": "'x'", "provider_key": "'x'", "tenant_id": value}); err == nil {
			t.Errorf("tenant %s was taken", value)
		}
	}
}

// over copies a row of a table into its own place: what "insert or replace"
// would do.
func over(table string) string { return `insert or replace into ` + table + ` select * from ` + table }

func TestTheFileRefusesToForget(t *testing.T) {
	b := newBench(t)
	approver := b.person("ann", "approver")
	b.submit("done", charge, to("acct_ask"))
	b.ok(b.decide(b.s.Approve, approver, "done"))
	m := b.mark(b.claim(charge))
	b.settle(m, found(m.Operation, "pay_1"))
	b.look("done", ledger.LookFound, receipt(m.Operation, "pay_1"), receipt(m.Operation, "pay_2"))
	b.wantOwed("pay_2 duplicate_charge 4800")
	b.submit("open", charge, nil)
	for _, change := range []string{
		`update action_log set sentence = 'nothing happened' where seq = 1`,
		`update action_log set at = at + 1`,
		`delete from action_log where seq = 3`,
		`delete from action_log where seq = (select max(seq) from action_log)`,
		over(`action_log`),
		`insert into action_log select seq + 2, tenant_id, operation_id, object, object_id, event, actor_kind, actor, from_status, to_status, reason, sentence, fact, at from action_log order by seq desc limit 1`,
		`insert into action_log select 0, tenant_id, operation_id, object, object_id, event, actor_kind, actor, from_status, to_status, reason, sentence, fact, at from action_log order by seq desc limit 1`,
		`insert into action_log select -1, tenant_id, operation_id, object, object_id, event, actor_kind, actor, from_status, to_status, reason, sentence, fact, at from action_log order by seq desc limit 1`,
		`delete from operations where operation_id = 'open'`,
		over(`operations`),
		`update operations set operation_id = 'other' where operation_id = 'open'`,
		`update operations set tenant_id = 'other' where operation_id = 'open'`,
		`update operations set payload = x'00' where operation_id = 'open'`,
		`update operations set canonical = x'00' where operation_id = 'open'`,
		`update operations set fingerprint = 'x' where operation_id = 'open'`,
		`update operations set order_id = 'x' where operation_id = 'open'`,
		`update operations set provider_key = 'x' where operation_id = 'done'`,
		`update operations set row_hash = 'x' where operation_id = 'done'`,
		`update operations set status = 'ready' where operation_id = 'done'`,
		`update operations set status = 'rejected', reason = 'declined' where operation_id = 'done'`,
		`update operations set receipt_id = 'x' where operation_id = 'done'`,
		`update operations set open_attempts = 1 where operation_id = 'open'`,
		`update requests set body = x'00'`,
		`delete from requests`,
		over(`requests`),
		`update attempts set marked_at = marked_at + 1`,
		`update attempts set outcome = 'not_sent'`,
		`update attempts set outcome = 'open'`,
		`delete from attempts`,
		over(`attempts`),
		`update evidence set body = x'00'`,
		`delete from evidence`,
		over(`evidence`),
		`update approvals set fingerprint = 'x'`,
		`update approvals set spent_at = 0`,
		`delete from approvals`,
		`delete from refunds_owed`,
		`update refunds_owed set open = amount + 1`,
	} {
		if err := b.sql(change); err == nil {
			t.Errorf("the file took: %s", change)
		}
	}
	b.check()
}

func TestFinalIsFinalForEveryEvent(t *testing.T) {
	for _, end := range []string{"confirmed", "rejected"} {
		b := newBench(t)
		finance := b.person("fin", "finance", "admin", "approver")
		m := b.sent("op", wire)
		b.settle(m, map[string]ledger.Answer{"confirmed": found(m.Operation, "pay_1"), "rejected": refused}[end])
		was := b.get("op")
		for _, a := range []ledger.Answer{refused, notSent, pending, silence, found(m.Operation, "pay_1")} {
			b.settle(m, a)
		}
		for _, f := range []ledger.LookFinding{ledger.LookAbsent, ledger.LookInconclusive, ledger.LookUnreachable, ledger.LookFound} {
			b.look("op", f)
		}
		b.clock.move(1000 * 1e9)
		b.sweep()
		for name, f := range map[string]deciding{"approve": b.s.Approve, "reject": b.s.Reject, "happened": b.s.Happened, "did not": b.s.DidNotHappen,
			"again": b.s.SendAgain, "still": b.s.StillUnknown, "same": b.s.SamePurchase, "different": b.s.DifferentPurchase} {
			d := b.decision(finance, "op")
			d.ReceiptID, d.Amount = "pay_9", &was.Terms.Amount
			if _, err := f(context.Background(), tenant, "op", d); err == nil {
				t.Errorf("%s: %s was taken", end, name)
			}
		}
		if _, err := b.s.Cancel(b.ctx, tenant, "op", agent); err == nil {
			t.Errorf("%s: cancelled", end)
		}
		o := b.get("op")
		if o.Status != was.Status || o.Reason != was.Reason || (o.Receipt == nil) != (was.Receipt == nil) {
			t.Errorf("%s became %s %s", end, o.Status, o.Reason)
		}
		if end == "rejected" {
			b.wantOwed("pay_1 late_effect 4800")
		} else {
			b.wantOwed()
		}
	}
}

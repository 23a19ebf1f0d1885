package invariant_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/invariant"
	"holdfast/store/ledger"

	_ "modernc.org/sqlite" // opens the file a second time, to damage it
)

const tenant = "acme"

// ledgerWithOneOfEach makes a ledger with a confirmed, a rejected, an unknown and a
// ready operation, and the provider's book of it.
func ledgerWithOneOfEach(t *testing.T) (*store.Store, *sql.DB, invariant.Book) {
	t.Helper()
	ctx := context.Background()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.UnixMilli(1_700_000_000_000)
	folder := t.TempDir()
	s, err := store.Open(ctx, store.Options{Folder: folder, Now: func() time.Time { return now }})
	ok(err)
	t.Cleanup(func() { s.Close() })
	action, err := ledger.NewActionType("pay", ledger.ActionSpec{Rail: "bank", Schema: []byte(`{"type": "object", "additionalProperties": false,
		"properties": {"amount": {"type": "integer", "x-role": "amount"}, "currency": {"type": "string", "x-role": "currency"}, "reference": {"type": "string", "x-role": "reference"}}}`)}, ledger.Currencies{})
	ok(err)
	policy, err := ledger.NewPolicy([]ledger.PolicyRow{{Name: "ask", Then: "ask"}})
	ok(err)
	rail := ledger.Rail{Name: "bank", Address: "https://bank.example", Account: "live", Timeout: time.Second, Quiet: time.Minute,
		Lookup: ledger.LookupPromise{Possible: true}, Limits: ledger.Limits{MaxAttempts: 5, MaxElapsed: time.Hour}}
	ok(s.SetRulebooks(ctx, map[string]*ledger.Rulebook{tenant: {Actions: map[string]*ledger.ActionType{"pay": action}, Rails: map[string]ledger.Rail{"bank": rail},
		Routes: map[string]ledger.Rail{"pay": rail}, Policy: policy, Timing: ledger.Timing{Lease: 30 * time.Second, UnknownFor: time.Hour}, Runs: ledger.RunLimits{MaxAttempts: 1000, MaxElapsed: 24 * time.Hour}}}))
	root := ledger.Holder{Kind: ledger.Person, Name: "root"}
	token, err := s.AddToken(ctx, ledger.TokenRecord{TenantID: tenant, Agent: "buyer"}, root)
	ok(err)
	ann, err := s.AddPerson(ctx, ledger.PersonRecord{TenantID: tenant, Email: "ann@acme.example", Roles: []string{"approver"}}, "", root)
	ok(err)
	book := invariant.Book{Rail: "bank"}
	for _, id := range []string{"confirmed", "rejected", "unknown", "ready"} {
		v, err := ledger.ParseStrict([]byte(`{"amount": 4800, "currency": "EUR", "reference": "` + id + `"}`))
		ok(err)
		n, _ := action.Normalize(v)
		r, err := s.Submit(ctx, ledger.Operation{TenantID: tenant, OperationID: id, ActionType: "pay", Agent: "buyer", TokenID: token.ID,
			Fingerprint: n.Fingerprint, Canonical: n.Canonical, Payload: n.Payload, Terms: n.Terms})
		ok(err)
		o, err := s.Approve(ctx, tenant, id, store.Decision{Person: ann, Seen: store.Seen{Fingerprint: n.Fingerprint, Version: r.Operation.Version}})
		ok(err)
		if id == "ready" {
			break
		}
		claims, err := s.Claim(ctx, "w1", tenant, "bank", 1, 1)
		ok(err)
		m, err := s.Mark(ctx, claims[0], time.Second, func(o ledger.Operation) (ledger.Request, error) { return ledger.Request{Body: o.Payload}, nil })
		ok(err)
		amount := o.Terms.Amount
		answer := map[string]ledger.Answer{"rejected": {Finding: ledger.Refused}, "unknown": {},
			"confirmed": {Finding: ledger.Found, Receipt: &ledger.Receipt{ID: "pay_1", Amount: &amount}}}[id]
		_, err = s.Settle(ctx, m, answer, nil, 0)
		ok(err)
		if id == "confirmed" {
			book.Effects = append(book.Effects, invariant.Effect{Key: o.ProviderKey, Stamp: o.OrderID, ID: "pay_1", Amount: amount, At: now.UnixMilli()})
		}
	}
	o, err := s.Operation(ctx, tenant, "unknown")
	ok(err)
	for _, e := range []ledger.ProviderEvent{{EventID: "evt_1", Stamp: o.OrderID}, {EventID: "evt_2"}} {
		e.TenantID, e.Rail, e.Signed, e.Body = tenant, "bank", true, []byte(e.EventID)
		kept, err := s.KeepEvent(ctx, e)
		ok(err)
		kept.Stamp = e.Stamp
		_, _, err = s.WeighEvent(ctx, kept, func(ledger.Operation) ledger.Look { return ledger.Look{Finding: ledger.LookInconclusive} })
		ok(err)
	}
	// What is owed for a second effect, a part of it paid elsewhere.
	amount := int64(4800)
	owed, _, err := s.ReportRefund(ctx, store.RefundReport{TenantID: tenant, OperationID: "confirmed", ReceiptID: "twice_1", Amount: amount, Currency: "EUR"})
	ok(err)
	fin := ledger.PersonRecord{TenantID: tenant, Email: "fin@acme.example", Roles: []string{"finance"}}
	_, err = s.ProveRefund(ctx, tenant, owed.ID, store.RefundDecision{Person: fin, Version: owed.Version}, store.RefundProof{ID: "re_1", Amount: 1800})
	ok(err)
	raw, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "holdfast.db")+"?_pragma=busy_timeout(5000)")
	ok(err)
	raw.SetMaxOpenConns(1)
	t.Cleanup(func() { raw.Close() })
	return s, raw, book
}

func violated(t *testing.T, s *store.Store, books ...invariant.Book) []string {
	t.Helper()
	found, err := invariant.Check(context.Background(), s, books...)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range found {
		t.Log(v)
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestEveryInvariantCanFail(t *testing.T) {
	unguarded := []string{"action_log_no_update", "action_log_no_delete", "action_log_in_order", "operations_final", "operations_identity", "operations_no_delete",
		"requests_no_update", "attempts_no_delete", "attempts_fixed", "approvals_fixed", "approvals_no_delete", "events_fixed",
		"refund_journal_no_delete", "refund_postings_no_update", "refund_postings_no_delete", "refund_settlements_no_delete", "refund_settlements_fixed"}
	for _, c := range []struct {
		name   string
		damage string
	}{
		{"", ``},
		{"I-3", `update operations set receipt = null, receipt_id = '' where operation_id = 'confirmed'`},
		{"I-3", `update operations set receipt = cast('{"id":"pay_9"}' as blob) where operation_id = 'unknown'`},
		{"I-5", `insert into action_log select (select max(seq) from action_log) + 1, tenant_id, operation_id, object, object_id, event, actor_kind, actor, 'rejected', 'ready', '', sentence, fact, at from action_log where operation_id = 'rejected' and event = 'decline'`},
		{"I-7", `update attempts set number = 7 where operation_id = 'unknown'`},
		{"I-8", `update operations set attempts = 2 where operation_id = 'unknown'`},
		{"I-8", `update operations set open_attempts = 0 where operation_id = 'unknown'`},
		{"I-8", `update attempts set outcome = 'not_sent' where operation_id = 'unknown'`},
		{"I-9", `update operations set provider_key = 'mine' where operation_id = 'ready'`},
		{"I-9", `update attempts set provider_key = 'mine' where operation_id = 'unknown'`},
		{"I-9", `update operations set order_id = 'mine' where operation_id = 'ready'`},
		{"I-10", `update operations set payload = x'00' where operation_id = 'ready'`},
		{"I-10", `update operations set amount = 1 where operation_id = 'ready'`},
		{"I-10", `update operations set canonical = x'00' where operation_id = 'ready'`},
		{"I-10", `update requests set body = x'00' where operation_id = 'unknown'`},
		{"I-10", `update attempts set request_sha256 = 'x' where operation_id = 'unknown'`},
		{"I-10", `update action_log set fact = replace(fact, '"request":"', '"request":"x') where event = 'mark' and operation_id = 'unknown'`},
		{"I-11", `delete from approvals where operation_id = 'unknown'`},
		{"I-11", `update approvals set fingerprint = 'x' where operation_id = 'confirmed'`},
		{"I-11", `update approvals set voided_at = 1 where operation_id = 'confirmed'`},
		{"I-11", `update operations set owner = 'ann@acme.example' where operation_id = 'confirmed'`},
		{"I-12", `update action_log set fact = replace(fact, '"fence":1', '"fence":0') where event = 'claim' and operation_id = 'unknown'`},
		{"I-12", `update operations set fence = 9 where operation_id = 'unknown'`},
		{"I-12", `update attempts set fence = 9 where operation_id = 'unknown'`},
		{"I-16", `update operations set status = 'ready' where operation_id = 'unknown'`},
		{"I-16", `update operations set status = 'unknown_hold', reason = 'claims_exhausted' where operation_id = 'unknown'`},
		{"I-17", `update operations set status = 'unknown' where operation_id = 'ready'`},
		{"I-17", `update operations set status = 'rejected', reason = 'declined', receipt = null where operation_id = 'confirmed'`},
		{"I-17", `update action_log set to_status = 'ready' where event = 'mark' and operation_id = 'unknown'`},
		{"I-17", `update operations set receipt = cast('{"id":"pay_9"}' as blob) where operation_id = 'confirmed'`},
		{"I-18", `delete from action_log where seq = 3`},
		{"I-20", `update action_log set at = at - 1 where seq = (select max(seq) from action_log)`},
		{"I-23", `update events set body = x'00'`},
		{"I-23", `update events set operation_id = 'confirmed' where state = 'matched'`},
		{"I-23", `update events set operation_id = 'nothing' where state = 'matched'`},
		{"I-23", `update events set rail = 'post'`},
		{"I-27", `update operations set next_look_at = 0, next_send_at = 0 where operation_id = 'unknown'`},
		{"I-31", `update action_log set event = 'disprove', to_status = 'rejected' where event = 'lose'`},
		{"I-32", `insert into migrations (number, name, sha256, applied_at) values (999, 'later', 'x', 0)`},
		{"I-33", `delete from operations where operation_id = 'ready'`},
		{"file", `insert into evidence select 'ev_x', tenant_id, 'nothing', attempt, source, finding, sentence, body, sha256, recorded_by, at from evidence limit 1`},
		{"I-21", `insert into refunds_owed (number, id, tenant_id, operation_id, receipt_id, direction, cause, rail, instrument, currency, amount, open, status, customer, source, opened_by, reason, reopened, version, overdue_at, due_at, opened_at)
			values (1, 'owed_x', 'acme', 'confirmed', 'pay_1', 'we_owe', 'duplicate_charge', 'bank', '', '', 1, 1, 'owed', '', 'evidence', '', '', 0, 1, 0, 0, 0)`},
		{"I-21", `update refunds_owed set open = 1 where receipt_id = 'twice_1'`},
		{"I-21", `update refunds_owed set open = 0, status = 'waived' where receipt_id = 'twice_1'`},
		{"I-21", `update refund_postings set amount = amount - 1 where account = 'open'`},
		{"I-21", `delete from refund_postings where account = 'origin'`},
		{"I-21", `delete from refund_journal where event = 'prove'`},
		{"I-21", `delete from refund_settlements`},
		{"I-21", `update refund_settlements set state = 'bounced'`},
		{"I-21", `insert into refund_settlements select 'set_x', tenant_id, entry, kind, operation_id, 'other', checked, rail, amount, currency, paid_on, state, reason, by, at, ended_at, 'other' from refund_settlements`},
	} {
		t.Run(c.name+" "+c.damage[:min(40, len(c.damage))], func(t *testing.T) {
			s, raw, book := ledgerWithOneOfEach(t)
			for _, trigger := range unguarded {
				if _, err := raw.Exec(`drop trigger ` + trigger); err != nil {
					t.Fatal(err)
				}
			}
			if c.damage != "" {
				res, err := raw.Exec(c.damage)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := res.RowsAffected(); n == 0 || err != nil {
					t.Fatal("nothing was damaged", err)
				}
			}
			got := violated(t, s, book)
			if c.name == "" && len(got) > 0 || c.name != "" && !slices.Contains(got, c.name) {
				t.Errorf("found %v, want %q", got, c.name)
			}
		})
	}
}

func TestTheBookDecides(t *testing.T) {
	s, _, book := ledgerWithOneOfEach(t)
	get := func(id string) ledger.Operation {
		o, err := s.Operation(context.Background(), tenant, id)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	done := book.Effects[0]
	effect := func(id string, change func(*invariant.Effect)) invariant.Effect {
		o := get(id)
		e := invariant.Effect{Key: o.ProviderKey, Stamp: o.OrderID, ID: "pay_2", Amount: 4800, At: done.At}
		if change != nil {
			change(&e)
		}
		return e
	}
	for _, c := range []struct {
		claim   string
		effects []invariant.Effect
		want    []string
	}{
		{"one effect of what is confirmed", []invariant.Effect{done}, nil},
		{"and one of what is unknown", []invariant.Effect{done, effect("unknown", nil)}, nil},
		{"two effects", []invariant.Effect{done, effect("confirmed", nil)}, []string{"I-1", "I-7"}},
		{"the second under another key, with our stamp", []invariant.Effect{done, effect("confirmed", func(e *invariant.Effect) { e.Key = "fresh" })}, []string{"I-1", "I-7"}},
		{"none of what is confirmed", nil, []string{"I-3"}},
		{"another amount than the receipt says", []invariant.Effect{effect("confirmed", func(e *invariant.Effect) { e.ID, e.Amount = "pay_1", 1 })}, []string{"I-3"}},
		{"an effect of what was rejected", []invariant.Effect{done, effect("rejected", nil)}, []string{"I-4"}},
		{"an effect of what was never marked", []invariant.Effect{done, effect("ready", nil)}, []string{"I-7"}},
		{"an effect before its mark", []invariant.Effect{done, effect("unknown", func(e *invariant.Effect) { e.At-- })}, []string{"I-6"}},
		{"an effect that nobody asked for", []invariant.Effect{done, {Key: "x", ID: "pay_3"}}, []string{"I-6"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if got := violated(t, s, invariant.Book{Rail: "bank", Effects: c.effects}); !slices.Equal(got, c.want) {
				t.Errorf("found %v, want %v", got, c.want)
			}
		})
	}
	if got := violated(t, s, invariant.Book{Rail: "bank", Dedupes: true, Effects: []invariant.Effect{done, effect("confirmed", nil)}}); !slices.Contains(got, "I-2") {
		t.Errorf("on a rail that deduplicates: %v", got)
	}
}

func TestUnsettledNamesWhatHasNotComeToRest(t *testing.T) {
	s, _, _ := ledgerWithOneOfEach(t)
	found, err := invariant.Unsettled(context.Background(), s)
	if err != nil || len(found) != 1 || found[0].Operation != "ready" {
		t.Errorf("%v %v", found, err)
	}
	if _, err := s.KeepEvent(context.Background(), ledger.ProviderEvent{TenantID: tenant, Rail: "bank", EventID: "evt_3", Signed: true}); err != nil {
		t.Fatal(err)
	}
	if found, err := invariant.Unsettled(context.Background(), s); err != nil || len(found) != 2 || found[1].Name != "I-23" {
		t.Errorf("an event that nobody weighed: %v %v", found, err)
	}
}

// A receipt that nobody wanted and what is owed for it are one change; where the
// entry is missing all the same, the check finds it.
func TestCase154(t *testing.T) {
	s, raw, book := ledgerWithOneOfEach(t)
	if got := violated(t, s, book); len(got) > 0 {
		t.Fatalf("found %v in what is whole", got)
	}
	for _, lose := range []string{`drop trigger refunds_owed_no_delete`, `drop trigger refund_journal_no_delete`, `drop trigger refund_postings_no_delete`,
		`drop trigger refund_settlements_no_delete`, `delete from refund_settlements`, `delete from refund_postings`, `delete from refund_journal`, `delete from refunds_owed`} {
		if _, err := raw.Exec(lose); err != nil {
			t.Fatal(err)
		}
	}
	if got := violated(t, s, book); !slices.Contains(got, "I-21") {
		t.Errorf("found %v", got)
	}
}

package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

// plan is how the database would answer a query.
func plan(t *testing.T, s *Store, query string, args ...any) string {
	t.Helper()
	rows, err := s.readers.Query(`explain query plan `+query, args...)
	if err != nil {
		t.Fatalf("%v: %s", err, query)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		all = append(all, detail)
	}
	return strings.Join(all, "; ")
}

func TestEveryFilterOfTheLogIsAnsweredByIndex(t *testing.T) {
	s := openTest(t)
	for want, f := range map[string]AuditFilter{
		"action_log_tenant (tenant_id=? AND seq<?)":            {Below: 9},
		"action_log_actor (tenant_id=? AND actor=? AND seq<?)": {Actor: "ana", Below: 9},
		"action_log_event (tenant_id=? AND event=? AND seq<?)": {Event: "mark", Below: 9},
		"action_log_kind (tenant_id=? AND object=? AND seq<?)": {Object: "rail", Below: 9},
		"action_log_object_id (tenant_id=? AND object_id=?)":   {ObjectID: "op"},
		"action_log_of (tenant_id=? AND operation_id=?)":       {ObjectID: "op", Actor: "ana"},
		"action_log_kind (tenant_id=? AND object=?)":           {Event: "mark", Object: "rail"},
	} {
		f.Limit = 100
		query, args := auditQuery("acme", f, 5)
		got := plan(t, s, query, args...)
		if !strings.Contains(got, want) || strings.Contains(got, "SCAN action_log") || strings.Contains(got, "TEMP B-TREE FOR ORDER BY") {
			t.Errorf("%+v: %s, want %s", f, got, want)
		}
	}
}

// Three hundred entries of two tenants, ten a second.
func TestAuditFiltersPagesAndKeepsTenantsApart(t *testing.T) {
	s := openTest(t)
	ctx := context.Background()
	start := s.now()
	for i := range 300 {
		err := s.change(ctx, func(x *tx) error {
			x.now = start + int64(i/10)*1000
			e := ledger.Entry{TenantID: []string{"acme", "other"}[i%2], Object: "rail", ObjectID: fmt.Sprint("rail-", i%3), Event: []string{"pause", "resume"}[i/2%2],
				ActorKind: ledger.Person, Actor: fmt.Sprint("p", i%5), Fact: "{}"}
			if i%4 == 0 {
				e.Object, e.OperationID, e.ObjectID = "refund_owed", fmt.Sprint("op-", i%8), fmt.Sprint("ro-", i)
			}
			return x.log(e)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all := func(tenant string, f AuditFilter) (got []ledger.Entry) {
		for {
			page, below, err := s.Audit(ctx, tenant, f)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page...)
			if f.Below = below; below == 0 {
				return got
			}
		}
	}
	whole := all("acme", AuditFilter{Limit: 7})
	if len(whole) != 150 || !slices.IsSortedFunc(whole, func(a, b ledger.Entry) int { return int(b.Seq - a.Seq) }) {
		t.Fatalf("%d entries, or not the newest first", len(whole))
	}
	keeps := map[string]struct {
		f    AuditFilter
		keep func(ledger.Entry) bool
	}{
		"actor":     {AuditFilter{Actor: "p2"}, func(e ledger.Entry) bool { return e.Actor == "p2" }},
		"event":     {AuditFilter{Event: "pause"}, func(e ledger.Entry) bool { return e.Event == "pause" }},
		"kind":      {AuditFilter{Object: "refund_owed"}, func(e ledger.Entry) bool { return e.Object == "refund_owed" }},
		"rail":      {AuditFilter{ObjectID: "rail-1"}, func(e ledger.Entry) bool { return e.ObjectID == "rail-1" }},
		"operation": {AuditFilter{ObjectID: "op-4"}, func(e ledger.Entry) bool { return e.OperationID == "op-4" }},
		"refund":    {AuditFilter{ObjectID: "ro-8"}, func(e ledger.Entry) bool { return e.ObjectID == "ro-8" }},
		"from":      {AuditFilter{From: start + 7000}, func(e ledger.Entry) bool { return e.At >= start+7000 }},
		"between":   {AuditFilter{From: start + 6500, To: start + 9000}, func(e ledger.Entry) bool { return e.At >= start+6500 && e.At < start+9000 }},
		"later":     {AuditFilter{From: start + 1e9}, func(ledger.Entry) bool { return false }},
		"earlier":   {AuditFilter{To: start}, func(ledger.Entry) bool { return false }},
		"all": {AuditFilter{Actor: "p2", Object: "rail", Event: "resume", To: start + 20000}, func(e ledger.Entry) bool {
			return e.Actor == "p2" && e.Object == "rail" && e.Event == "resume" && e.At < start+20000
		}},
		"nobody": {AuditFilter{Actor: "p2' or '1'='1"}, func(ledger.Entry) bool { return false }},
	}
	for name, c := range keeps {
		c.f.Limit = 9
		want := slices.DeleteFunc(slices.Clone(whole), func(e ledger.Entry) bool { return !c.keep(e) })
		if got := all("acme", c.f); !slices.Equal(got, want) {
			t.Errorf("%s: %d entries, want %d", name, len(got), len(want))
		}
	}
	objects, events, err := s.AuditKinds(ctx, "acme")
	if err != nil || fmt.Sprint(objects, events) != "[rail refund_owed] [pause resume]" {
		t.Error(objects, events, err)
	}
	if objects, events, err := s.AuditKinds(ctx, "nobody"); err != nil || len(objects)+len(events) > 0 {
		t.Error(objects, events, err)
	}
}

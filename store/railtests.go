package store

import (
	"context"
	"database/sql"
	"fmt"

	"holdfast/store/ledger"
)

// RecordRailTest keeps what a test of a rail showed.
func (s *Store) RecordRailTest(ctx context.Context, r ledger.RailTest) error {
	return s.change(ctx, func(t *tx) error {
		if err := t.exec(`insert into rail_tests (id, tenant_id, rail, by, at, findings) values ($1, $2, $3, $4, $5, $6)`,
			t.s.rowIDs.next(t.now), r.TenantID, r.Rail, r.By, t.now, text(r.Findings)); err != nil {
			return err
		}
		kept := "it kept what it promises"
		if !r.Passed() {
			kept = "it did not keep all that it promises"
		}
		return t.log(ledger.Entry{TenantID: r.TenantID, Object: "rail", ObjectID: r.Rail, Event: "test", ActorKind: ledger.Person, Actor: r.By,
			Sentence: fmt.Sprintf("%s tested the rail %s: %s.", r.By, r.Rail, kept), Fact: text(r.Findings)})
	})
}

// LastRailTests lists the last test of every rail of a tenant.
func (s *Store) LastRailTests(ctx context.Context, tenant string) ([]ledger.RailTest, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select tenant_id, rail, by, at, findings from rail_tests
		where id in (select max(id) from rail_tests where tenant_id = $1 group by rail) order by rail`, tenant)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (test ledger.RailTest, err error) {
		var findings string
		err = r.Scan(&test.TenantID, &test.Rail, &test.By, &test.At, &findings)
		fromText(findings, &test.Findings)
		return test, err
	})
}

package store

import (
	"strings"
	"testing"
)

func TestSearchLooksThingsUpAndScansNothing(t *testing.T) {
	s := openTest(t)
	name := "abalone-acacia-acorn"
	operations, args := operationSearch("acme", name, []string{"charge", "payout"})
	plans := plan(t, s, operations, args...)
	refunds, args := refundSearch("acme", name)
	plans += "; " + plan(t, s, refunds, args...)
	lines, args := lineSearch("acme", name, []string{"card"})
	plans += "; " + plan(t, s, lines, args...)
	for _, q := range []string{selectEffects, selectLineRails} {
		plans += "; " + plan(t, s, q, "acme", "")
	}
	for _, table := range []string{"operations", "refunds_owed", "statement_lines", "l", "s"} {
		for _, step := range strings.Split(plans, "; ") {
			if strings.HasPrefix(step, "SCAN "+table) && (step == "SCAN "+table || strings.HasPrefix(step, "SCAN "+table+" ")) || strings.HasSuffix(step, "(tenant_id=?)") {
				t.Errorf("%s", step)
			}
		}
	}
	for _, index := range []string{"operations_receipt", "operations_customer", "operations_fingerprint", "operations_reference", "operations_money", "refunds_owed_receipt", "refunds_owed_customer",
		"statement_lines_provider", "statement_lines_stamp"} {
		if !strings.Contains(plans, index+" (") {
			t.Errorf("%s is not used: %s", index, strings.ReplaceAll(plans, "; ", "\n"))
		}
	}
}

package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

const statementConfig = `
rails:
  card:
    adapter: http
    base_url: https://card.example
    send: { method: POST, path: /payments }
    statement: { format: csv, amounts: minor, columns: { id: id, amount: amount, currency: currency, date: created_at, reference: reference, stamp: operation, counterparty: recipient } }
action_types:
  create_payment:
    rail: card
    effect: charge
    schema: { type: object, additionalProperties: false, properties: { amount: { type: integer, x-role: amount }, currency: { type: string, x-role: currency }, recipient: { type: string, x-role: recipient }, reference: { type: string, x-role: reference } } }
policy:
  - { name: all, when: {}, then: allow }
`

const november = "id,amount,currency,created_at,reference,operation,recipient\nl1,4800,EUR,2026-03-02,r-1,,acct_1\nl2,-700,EUR,2026-03-03,rent,,acct_2\n"

func (w *world) upload(token, query, body string) (int, map[string]any) {
	w.t.Helper()
	a := w.do("POST", "/v1/statements?"+query, body, "Authorization: Bearer "+token, "Content-Type: text/csv")
	var got map[string]any
	must(w.t, json.Unmarshal(a.Body.Bytes(), &got))
	return a.Code, got
}

func counts(got map[string]any) string {
	return fmt.Sprint(got["lines"], got["new"], got["already_imported"], got["matched"], got["suggested"], got["unmatched"])
}

func TestAStatementIsTakenInOverTheAPI(t *testing.T) {
	w := newServer(t, statementConfig)
	token, _ := w.token("default", "books", "")
	if code, got := w.upload(token, "rail=card&preview=1", november); code != http.StatusOK || counts(got) != "2 2 0 0 0 0" || got["stored"] != false {
		t.Fatal(code, got)
	}
	if code, got := w.upload(token, "rail=card", november); code != http.StatusCreated || counts(got) != "2 2 0 0 0 2" || got["stored"] != true {
		t.Fatal(code, got)
	}
	if code, got := w.upload(token, "rail=card", november); code != http.StatusCreated || counts(got) != "2 0 2 0 0 0" {
		t.Fatal(code, got)
	}
	all, err := w.Store.Statements(t.Context(), "default", "", 10)
	must(t, err)
	if len(all) != 1 {
		t.Fatalf("%d imports", len(all))
	}
}

func TestAStatementThatCannotBeReadNamesItsLine(t *testing.T) {
	w := newServer(t, statementConfig)
	token, _ := w.token("default", "books", "")
	code, got := w.upload(token, "rail=card", november+"l3,12x,EUR,2026-03-03,a,,b\n")
	if code != http.StatusUnprocessableEntity || got["reason"] != "invalid_statement" || got["line"] != 4.0 {
		t.Fatal(code, got)
	}
	code, got = w.upload(token, "rail=card", strings.NewReplacer("2026-03-02", "03/04/2026", "2026-03-03", "05/04/2026").Replace(november))
	asked, _ := got["question"].(map[string]any)
	if code != http.StatusUnprocessableEntity || asked["key"] != "dates" || len(asked["choices"].([]any)) < 2 {
		t.Fatal(code, got)
	}
	if lines, err := w.Store.Statements(t.Context(), "default", "", 10); err != nil || len(lines) != 0 {
		t.Fatal("something was stored", lines, err)
	}
	code, got = w.upload(token, "rail=card&dates=dmy", strings.NewReplacer("2026-03-02", "03/02/2026", "2026-03-03", "05/02/2026").Replace(november))
	if code != http.StatusCreated {
		t.Fatal(code, got)
	}
	// The answer is kept for the next file with this header.
	if code, got = w.upload(token, "rail=card", strings.NewReplacer("l1", "l8", "l2", "l9", "2026-03-02", "06/02/2026", "2026-03-03", "07/02/2026").Replace(november)); code != http.StatusCreated {
		t.Fatal(code, got)
	}
}

func TestWhoMayHandInAStatement(t *testing.T) {
	w := newServer(t, statementConfig)
	token, _ := w.token("default", "books", "")
	narrow, _, err := IssueToken(t.Context(), w.Store, ledger.TokenRecord{TenantID: "default", Agent: "reader", Scopes: []string{"operations:read"},
		ExpiresAt: w.Store.Now() + 1e6}, operator)
	must(t, err)
	if code, got := w.upload(narrow, "rail=card", november); code != http.StatusForbidden {
		t.Error(code, got)
	}
	if code, got := w.upload(token, "rail=none", november); code != http.StatusBadRequest {
		t.Error(code, got)
	}
	if code, got := w.upload(token, "rail=card&colour=red", november); code != http.StatusBadRequest {
		t.Error(code, got)
	}
	a := w.do("POST", "/v1/statements?rail=card", november, "Authorization: Bearer "+token, "Content-Type: image/png")
	if a.Code != http.StatusUnsupportedMediaType {
		t.Error(a.Code)
	}
}

func TestAStatementIsTakenInByCommand(t *testing.T) {
	w := newServer(t, statementConfig)
	i := &Instance{Store: w.Store, Scheduler: w.Scheduler, Log: w.Log}
	file := filepath.Join(t.TempDir(), "november.csv")
	must(t, os.WriteFile(file, []byte(november), 0o600))
	var out, notes strings.Builder
	must(t, i.ImportStatement(t.Context(), ImportOptions{Tenant: "default", Rail: "card", File: file, JSON: true}, &out, &notes))
	var got map[string]any
	must(t, json.Unmarshal([]byte(out.String()), &got))
	if counts(got) != "2 2 0 0 0 2" {
		t.Fatal(out.String())
	}
	out.Reset()
	must(t, i.ImportStatement(t.Context(), ImportOptions{Tenant: "default", Rail: "card", File: file}, &out, &notes))
	if !strings.Contains(out.String(), "2 lines, 0 new, 2 already imported") {
		t.Fatal(out.String())
	}
	if err := i.ImportStatement(t.Context(), ImportOptions{Tenant: "default", Rail: "nope", File: file}, &out, &notes); err == nil {
		t.Fatal("a rail that is not there was taken")
	}
}

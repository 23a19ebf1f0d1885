package web

import (
	"slices"
	"testing"
	"time"

	"holdfast/store/ledger"
)

// A server died while it was sending on a rail that nobody can ask. Whatever a
// person can do about it stands on the page and is logged with their name; no
// timer does any of it for them.
func TestCase032OnlyAPersonEndsWhatADeadServerLeft(t *testing.T) {
	ways := []deciding{
		{act: "happened", form: []string{"receipt_id", "w_1_{op}", "amount", "48.00", "reason", "their dashboard"}, status: ledger.Confirmed},
		{act: "did-not-happen", form: []string{"reason", "their support says so"}, status: ledger.Rejected, reason: ledger.NotExecuted},
		{act: "send-again", form: []string{"reason", "they lost it"}, status: ledger.Ready},
	}
	w := newServer(t, pagesConfig)
	operations := map[string]ledger.Operation{}
	for _, way := range ways {
		o := w.ask(wanted{owner: "somebody@example.com", action: "wire", amount: 4800})
		claims, err := w.Store.Claim(t.Context(), "dead", o.TenantID, o.Rail, 1, 1)
		must(t, err)
		if len(claims) != 1 || claims[0].Operation.OperationID != o.OperationID {
			t.Fatal(claims)
		}
		_, err = w.Store.Mark(t.Context(), claims[0], 10*time.Second, w.Config().Route(o).Render)
		must(t, err)
		operations[way.act] = o
	}
	before := w
	w = w.reopened()
	_, err := w.Store.Recover(t.Context())
	must(t, err)
	for range 30 {
		before.pass(24 * time.Hour) // the ledger goes by its clock
		w.pass(24 * time.Hour)
		for _, job := range []string{"sweep", "lookup"} {
			w.Scheduler.Store = w.Store
			_, err := w.Scheduler.Run(t.Context(), job)
			must(t, err)
		}
	}
	ana := w.signIn(w.person("default", "ana@example.com", "approver"))
	for _, way := range ways {
		o := w.stored("default", operations[way.act].OperationID)
		if o.Status != ledger.UnknownHold || o.Attempts != 1 || o.Detail == "" {
			t.Fatalf("after a month it is %s %s, %q", o.Status, o.Reason, o.Detail)
		}
		log, err := w.Store.Timeline(t.Context(), "default", o.OperationID)
		must(t, err)
		if slices.ContainsFunc(log, func(e ledger.Entry) bool { return e.To.Final() }) {
			t.Error("something ended it before anybody looked")
		}
		shows(t, ana.get("/operations/"+o.OperationID), 200, `data-act="`+way.act+`"`)
		if answer := ana.act(o, way.act, way.form...); answer.Code != 303 {
			t.Fatalf("%s: answered %d\n%s", way.act, answer.Code, text(answer))
		}
		if after := w.stored("default", o.OperationID); after.Status != way.status || after.Reason != way.reason || !w.named(o, "ana@example.com") {
			t.Errorf("after %s it is %s %s", way.act, after.Status, after.Reason)
		}
	}
}

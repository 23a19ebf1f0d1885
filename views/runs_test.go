package views_test

import (
	"testing"

	"holdfast/views"
)

func TestRunsPageSaysWhereEachRunStands(t *testing.T) {
	some := draw(t, views.Runs(runs()["some"]))
	mustSay(t, some,
		"nightly-2026-11-30 Running", "9 of 20 submitted again 2 · sent again 1 · HTTP client 3 · model fallbacks 1 · runs below it 2",
		"1 Dec 10:28 UTC, in 23 h 00 m", "3 open · 1 held · 1,240 confirmed · 3 ended without effect", "run-812 · run-813 and 2 more",
		"run-812 began in run nightly-2026-11-30 Running", "none of its own",
		"spent Spent nothing may be repeated any more; new operations are refused", "3 of 3", "tool 1 · worker restarts 1 · workflow 1",
		"late Over its time has passed; new operations are refused", "29 Nov 11:28 UTC, 1 d ago",
		"0, and none is allowed",
		"run-640 Stopped new operations are refused", "Stopped by Jon 3 m ago What was not sent was rejected; what was being sent goes to its end. It retries the same failed page.",
		"run-641 began in run run-640 Stopped new operations are refused: so it is with the run above, run-640",
		"New operations are refused. Rejected: 3 operations that were not sent. Not touched: 1 operation that was sent. It goes to its end. Stopped with it: run-812 · run-813 and 2 more",
		"Stop nightly-2026-11-30 and 4 runs below it", "Older")
	if n := len(some.all(has("data-act", "stop-run"))); n != 5 {
		t.Errorf("%d runs can be stopped, want the 5 that nobody stopped", n)
	}
	for _, link := range []string{"/operations?run_id=nightly-2026-11-30&status=unknown_hold", "/operations?run_id=nightly-2026-11-30", "/runs?run_id=nightly-2026-11-30", "/runs?after=run-641"} {
		if len(some.all(has("href", link))) == 0 {
			t.Errorf("nothing leads to %s", link)
		}
	}
	mustSay(t, draw(t, views.Runs(runs()["empty"])), "No runs. Send run_id with an operation to group and cap them.")
	viewer := draw(t, views.Runs(runs()["viewer"]))
	if viewer.form("stop-run") != nil {
		t.Error("a viewer has the form")
	}
	mustSay(t, viewer, "Stop a run: This needs the role approver, finance or admin.")
	mustSay(t, draw(t, views.Runs(runs()["absent"])), "No run run-9.", "All runs")
	mustSay(t, draw(t, views.Runs(runs()["opened"])), "A reason is needed.")
}

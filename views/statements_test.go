package views_test

import (
	"testing"
	"time"

	"github.com/a-h/templ"

	"holdfast/store/ledger"
	"holdfast/views"
)

func imported() ledger.StatementImport {
	opening, closing := int64(1040000), int64(991210)
	return ledger.StatementImport{ID: "stm_1", Rail: "card-eu", Account: "DE89…4521", Format: "camt.053.001.08", FileName: "november.xml", SHA256: "9f2c77aa01d4e9b3", Currency: "EUR",
		From: time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC).UnixMilli(), To: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), Opening: &opening, Closing: &closing,
		Lines: 212, Already: 4, Warnings: []string{"There is a gap before it: the last statement ends with 1 Nov 2026, this one begins with 3 Nov 2026."},
		Notes: []string{"-48.00 EUR = money out (line 2)."}, By: "ana@example.com", VisibleAt: now - hour}
}

func keptLine(id int64, state ledger.LineState, finding ledger.LineFinding) ledger.KeptLine {
	return ledger.KeptLine{StatementLine: ledger.StatementLine{Number: int(id), ProviderID: "ch_77", Amount: -48000, Gross: -48000, Currency: "USD", At: now - day, DateOnly: true,
		Counterparty: "Bistro Lind", Reference: "inv-481", Text: "refund"}, ID: id, StatementID: "stm_1", Rail: "card-eu", Account: "DE89…4521", State: state, Finding: finding,
		Rule: ledger.ByAmountDate, Sentence: "Same amount, day and counterparty, which proves nothing: a person decides.", Version: 7, WeighedAt: now, Reason: "Paid at the desk."}
}

// lineRow is a line that is about an operation.
func lineRow(id int64, state ledger.LineState, finding ledger.LineFinding, o ledger.Operation) views.StatementRow {
	l := keptLine(id, state, finding)
	l.OperationID = o.OperationID
	return views.StatementRow{Line: &l, Operation: &o, Finding: finding, Rail: l.Rail, Account: l.Account, Amount: l.Amount, Currency: l.Currency, Since: l.At,
		Version: l.Version, Sentence: l.Says()}
}

// missingRow is an operation that no statement shows.
func missingRow() views.StatementRow {
	o := charge(ledger.Confirmed, "")
	return views.StatementRow{Operation: &o, Finding: ledger.AbsentFromStatement, Rail: o.Rail, Amount: o.Terms.Amount, Currency: o.Terms.Currency, Since: now - 6*day, Version: 7,
		Sentence: "inv-481-charge was confirmed, and no statement that covers the day shows it.", Owner: "Ana", Own: true, SnoozedUntil: now + day}
}

// statements are the pages about statements in each of their states.
func statements() map[string]templ.Component {
	f := frame(views.AtStatements)
	f.Pages.Statements, f.Counts.Statements = true, 2
	mayImport, aside := views.Decision{Act: "import", Allowed: true}, views.Decision{Act: "set-aside", Allowed: true}
	none := views.Decision{Why: "This needs the role approver, finance or admin."}
	twice := lineRow(3, ledger.LineUnmatched, ledger.TwiceOnStatement, charge(ledger.Confirmed, ""))
	owed := refundOwed()
	twice.Owed = &owed
	list := views.StatementsPage{Frame: f, Rails: []string{"card-eu", "usdc-base"}, Import: mayImport, Answer: aside, Imports: []ledger.StatementImport{imported()}, Limit: 1,
		Counts: map[ledger.LineFinding]int{ledger.AbsentFromStatement: 1, ledger.TwiceOnStatement: 1}, Tab: "twice", Items: []views.StatementRow{twice, missingRow()}, Next: 3,
		Accounts: []views.StatementAccount{{Rail: "card-eu", Account: "DE89…4521", ReachesTo: imported().To, ClosedTo: imported().From}}}
	undone := imported()
	undone.ID, undone.UndoneAt, undone.UndoneBy, undone.UndoneReason = "stm_2", now-hour, "Jon", "wrong account"
	calmed := list
	calmed.Tab, calmed.Items, calmed.Answer, calmed.Import, calmed.Imports = "not_ours", nil, none, none, []ledger.StatementImport{imported(), undone}
	wrong := views.StatementsPage{Frame: calm(f), Rails: list.Rails, Import: mayImport, Form: views.FormState{Act: "import", Problem: "Choose a file.", Values: map[string]string{"rail": "usdc-base"}}}

	read := views.PreviewPage{Frame: f, Upload: "0f3a", SHA256: "9f2c77aa", Rail: "card-eu", Name: "november.xml", Until: now + 15*minute, Import: imported(), New: 208,
		First: []ledger.StatementLine{keptLine(2, "", "").StatementLine}}
	refused, asked := read, read
	refused.Refused = &views.FileRefusal{Line: 17, Column: "Betrag", Sentence: "12x is no amount."}
	asked.Question = &views.FileQuestion{Key: "dates", Ask: "In what order does this file write a date?", Sentence: "03/04/2026 may be 3 April or 4 March.",
		Choices: []views.FileChoice{{Value: "dmy", Label: "day first: 3 April 2026"}, {Value: "mdy", Label: "month first: 4 March 2026"}}}

	may := func(act string) views.Decision { return views.Decision{Act: act, Allowed: true} }
	desk := views.DeskPage{Frame: f, Statement: imported(), Counts: map[ledger.LineState]int{ledger.LineMatched: 197, ledger.LineSuggested: 2, ledger.LineUnmatched: 3},
		State: ledger.LineSuggested, Next: 2, OperationsNext: 9, Match: may("match"), Answer: aside, Undo: may("undo"),
		Lines:      []views.StatementRow{lineRow(1, ledger.LineSuggested, "", charge(ledger.Confirmed, "")), lineRow(2, ledger.LineSuggested, ledger.AmountDiffers, refund())},
		Operations: []ledger.Operation{charge(ledger.Confirmed, ""), refund()}, Sides: map[string]ledger.StatementSide{"inv-481-charge": ledger.NotOnStatement}}
	joined, open, differs := desk, desk, desk
	matched := lineRow(1, ledger.LineMatched, "", charge(ledger.Confirmed, ""))
	matched.Matches = []ledger.StatementMatch{{ID: "mat_1", Rule: ledger.ByHand, ExplainedAs: "other", Explained: "a discount", By: "ana@example.com", At: now - hour,
		Operations: []ledger.MatchSide{{OperationID: "inv-481-charge"}, {OperationID: "inv-482-charge"}}}}
	joined.State, joined.Lines = ledger.LineMatched, []views.StatementRow{matched}
	open.State, open.Operations = ledger.LineUnmatched, nil
	open.Lines = []views.StatementRow{lineRow(1, ledger.LineUnmatched, ledger.LineAnswersUnknown, charge(ledger.UnknownHold, ledger.Inconclusive)),
		lineRow(2, ledger.LineUnmatched, ledger.LineAnswersUnknown, charge(ledger.Unknown, ""))}
	differs.Form = views.FormState{Act: "match", Problem: "The amounts differ by -1.00 USD; say what that is: fee, fx, rounding or other.", Values: map[string]string{"explained_as": "other", "explained": "a discount"}}
	differs.Ticked = map[string]bool{"line 1": true, "operation inv-481-charge": true}
	aparted, reading, gone := desk, desk, desk
	aparted.State, aparted.Lines = ledger.LineSetAside, []views.StatementRow{lineRow(1, ledger.LineSetAside, ledger.NotOurs, charge(ledger.Confirmed, ""))}
	reading.Match, reading.Answer, reading.Undo = none, none, none
	gone.Statement, gone.Lines, gone.Operations = undone, nil, nil

	sheet := ledger.PeriodSheet{Lines: 212, Matched: 209, SetAside: 3, Missing: 1, Totals: map[string]int64{"EUR": -48790}, Apart: map[string]int64{"fee": -120, "fx": 3}}
	closing := views.ClosingPage{Frame: f, Account: list.Accounts[0], Zone: time.UTC, Until: imported().To, Sheet: sheet, Open: []views.StatementRow{twice}, StillOpen: 1, Close: may("close-period"),
		Closed: []ledger.StatementPeriod{{Until: imported().From, ClosedBy: "Ana", ClosedAt: now - day, Sheet: sheet}}, Form: views.FormState{Act: "close-period", Problem: "1 exception(s) need an answer first."}}
	ready := closing
	ready.Open, ready.StillOpen, ready.Close, ready.Until = nil, 0, none, imported().To-day
	return map[string]templ.Component{
		"statements": views.Statements(list), "statements-calm": views.Statements(calmed), "statements-none": views.Statements(wrong),
		"preview": views.Preview(read), "preview-refused": views.Preview(refused), "preview-asked": views.Preview(asked),
		"desk": views.Desk(desk), "desk-matched": views.Desk(joined), "desk-unknown": views.Desk(open), "desk-differs": views.Desk(differs), "desk-aside": views.Desk(aparted),
		"desk-viewer": views.Desk(reading), "desk-undone": views.Desk(gone), "closing": views.Closing(closing), "closing-ready": views.Closing(ready),
		"statement-absent": views.Message(views.NoStatement(f, "stm_9")), "statement-changed": views.Message(views.LineChanged(f, "/statements")), "upload-gone": views.Message(views.UploadGone(f)),
	}
}

func TestAFileIsNamedWithItsSum(t *testing.T) {
	mustSay(t, draw(t, statements()["preview"]), "camt.053.001.08, account DE89…4521, 3 – 30 Nov 2026, 212 lines, opening €10,400.00 + 212 lines = closing €9,912.10 ✓",
		"new 208 · already imported 4 · unreadable 0", "There is a gap before it", "money out", "Import 208 new lines")
}

func TestTheDeskNamesItsRulesAndAsksNoUnmatchableYes(t *testing.T) {
	d := draw(t, statements()["desk"])
	mustSay(t, d, "197 matched · 2 suggested · 3 unmatched · 4 already imported", "Suggested: same amount, day and counterparty (proves nothing)", "Not this one", "On a phone you can read")
	if n := len(d.all(has("data-act", "match"))); n != 2 { // one suggestion, and the form at the foot
		t.Errorf("%d forms match", n)
	}
	mustSay(t, draw(t, statements()["desk-unknown"]), "This line answers an unknown.", "Use it as evidence", "The provider is being asked.")
	mustSay(t, draw(t, statements()["statements"]), "A refund owed was opened: $48.00", "Open it", "Ana has this")
}

package views

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"holdfast/store/ledger"
)

// StatementsPage is what was imported, what needs an answer, and what is closed.
type StatementsPage struct {
	Frame    Frame
	Rails    []string
	Import   Decision
	Answer   Decision
	Form     FormState // of the import
	Imports  []ledger.StatementImport
	Limit    int // how many imports are listed
	Counts   map[ledger.LineFinding]int
	Tab      string
	Items    []StatementRow
	Next     int64 // where the next page of the tab begins; 0: there is none
	Snoozed  bool  // what was put away is listed too
	Accounts []StatementAccount
	Periods  []ledger.StatementPeriod
}

// StatementAccount is an account that has statements.
type StatementAccount struct {
	Rail, Account       string
	ReachesTo, ClosedTo int64
}

// StatementRow is a line with what it is about, or an operation that no statement
// shows.
type StatementRow struct {
	Line          *ledger.KeptLine
	Operation     *ledger.Operation // nil: none
	Owed          *ledger.RefundOwed
	Matches       []ledger.StatementMatch // that stand
	Finding       ledger.LineFinding
	Rail, Account string
	Amount        int64
	Currency      string
	Since         int64
	Version       int64
	Owner         string // as people call them
	Own           bool   // it is the reader
	SnoozedUntil  int64
	Sentence      string
}

// PreviewPage is what an import would do, or what keeps it from being done.
type PreviewPage struct {
	Frame      Frame
	Upload     string // the file is held under it
	SHA256     string
	Rail, Name string
	Until      int64 // it is held until then
	Import     ledger.StatementImport
	New        int
	First      []ledger.StatementLine
	Question   *FileQuestion
	Columns    *FileColumns
	Refused    *FileRefusal
	Form       FormState
	ByHand     bool // a person named its columns
}

// FileQuestion is what only a person can tell about a file.
type FileQuestion struct {
	Key, Ask, Sentence string
	Choices            []FileChoice
}

// FileChoice is one possible answer.
type FileChoice struct{ Value, Label string }

// FileRefusal is what is wrong with a file.
type FileRefusal struct {
	Line             int // 0: the file as a whole
	Column, Sentence string
}

// DeskPage is the lines of an import beside the operations of its rail.
type DeskPage struct {
	Frame           Frame
	Statement       ledger.StatementImport
	Counts          map[ledger.LineState]int
	State           ledger.LineState
	After           int64
	Lines           []StatementRow
	Next            int64
	Operations      []ledger.Operation
	Sides           map[string]ledger.StatementSide
	OperationsAfter int64
	OperationsNext  int64
	Match           Decision
	Answer          Decision
	Undo            Decision
	Form            FormState
	Ticked          map[string]bool // "line 17", "operation inv-1": as the form came
}

// ClosingPage is what is missing before an account can be closed up to a moment.
type ClosingPage struct {
	Frame     Frame
	Account   StatementAccount
	Zone      *time.Location
	Until     int64
	Sheet     ledger.PeriodSheet
	Open      []StatementRow
	StillOpen int
	Closed    []ledger.StatementPeriod
	Close     Decision
	Form      FormState
}

// SuggestedTab is the tab of what only waits for a person's yes.
const SuggestedTab = "suggested"

// StatementTabs are the tabs of what needs an answer, in their order.
func StatementTabs() []string {
	return []string{string(ledger.NotOurs), string(ledger.AbsentFromStatement), string(ledger.AmountDiffers), string(ledger.TwiceOnStatement),
		string(ledger.LineAnswersUnknown), string(ledger.LateOnStatement), string(ledger.LineContradicts), string(ledger.ProbablePair), SuggestedTab}
}

func lineFindingWord(tab string) string {
	switch ledger.LineFinding(tab) {
	case ledger.NotOurs:
		return "On the statement, not ours"
	case ledger.AbsentFromStatement:
		return "Ours, not on the statement"
	case ledger.AmountDiffers:
		return "Amount differs"
	case ledger.TwiceOnStatement:
		return "Twice on the statement"
	case ledger.LineAnswersUnknown:
		return "Answers an unknown"
	case ledger.LateOnStatement:
		return "Happened after all"
	case ledger.LineContradicts:
		return "Two operations claim it"
	case ledger.ProbablePair:
		return "Probably one payment"
	}
	return "Suggested"
}

// emptyFinding is what stands on a tab with nothing on it.
func emptyFinding(tab string) string {
	switch ledger.LineFinding(tab) {
	case ledger.NotOurs:
		return "Nothing on the statements was paid outside holdfast."
	case ledger.AbsentFromStatement:
		return "No confirmed operation is missing from its statement."
	case ledger.AmountDiffers:
		return "No amount differs."
	case ledger.TwiceOnStatement:
		return "Nothing stands twice on a statement."
	case ledger.LineAnswersUnknown:
		return "No line waits to be taken as evidence."
	case ledger.LateOnStatement:
		return "No statement shows an operation that was rejected."
	case ledger.LineContradicts:
		return "No line is claimed by two operations."
	case ledger.ProbablePair:
		return "No line is probably one that a person confirmed."
	}
	return "Nothing is suggested."
}

func (p StatementsPage) count(tab string) int {
	if tab == SuggestedTab {
		return p.Counts[""]
	}
	return p.Counts[ledger.LineFinding(tab)]
}

func (p StatementsPage) open() (n int) {
	for _, of := range p.Counts {
		n += of
	}
	return n
}

// Fullest is the tab that is opened first: the first one with something on it.
func (p StatementsPage) Fullest() string {
	for _, tab := range StatementTabs() {
		if p.count(tab) > 0 {
			return tab
		}
	}
	return StatementTabs()[0]
}

func (p StatementsPage) path(tab string, after int64) templ.SafeURL {
	q := url.Values{"tab": {tab}}
	if after > 0 {
		q.Set("after", itoa(after))
	}
	if p.Snoozed {
		q.Set("snoozed", "1")
	}
	return templ.SafeURL("/statements?" + q.Encode())
}

func (p StatementsPage) kept(field string) string { return p.Form.Values[field] }

func statementPath(id string) templ.SafeURL {
	return templ.SafeURL("/statements/" + url.PathEscape(id))
}

// ClosingPath leads to what is missing before an account can be closed.
func ClosingPath(rail, account, until string) templ.SafeURL {
	q := url.Values{"rail": {rail}, "account": {account}}
	if until != "" {
		q.Set("until", until)
	}
	return templ.SafeURL("/statements/close?" + q.Encode())
}

// days is the span of a statement: "3 – 30 Nov 2026".
func days(from, to int64, zone string) string {
	first, last := inZone(from, zone), inZone(max(from, to-1), zone)
	switch {
	case first.Format("2 Jan 2006") == last.Format("2 Jan 2006"):
		return last.Format("2 Jan 2006")
	case first.Year() != last.Year():
		return first.Format("2 Jan 2006") + " – " + last.Format("2 Jan 2006")
	case first.Month() != last.Month():
		return first.Format("2 Jan") + " – " + last.Format("2 Jan 2006")
	}
	return first.Format("2") + " – " + last.Format("2 Jan 2006")
}

// named says what a file is, in one sentence.
func (f Frame) named(i ledger.StatementImport) string {
	all := []string{i.Format, "account " + i.Account, days(i.From, i.To, i.Zone), count(i.Lines, "line", "lines")}
	if i.Opening != nil && i.Closing != nil {
		all = append(all, "opening "+f.money(*i.Opening, i.Currency)+" + "+count(i.Lines, "line", "lines")+" = closing "+f.money(*i.Closing, i.Currency)+" ✓")
	} else {
		all = append(all, "it states no opening and closing balance to check")
	}
	return strings.Join(all, ", ")
}

// moved says which way the money of a line went.
func moved(amount int64) string {
	switch {
	case amount < 0:
		return "money out"
	case amount > 0:
		return "money in"
	}
	return "nothing moved"
}

// inZone is a moment as a statement names its days; one whose zone was not kept
// is in UTC.
func inZone(at int64, zone string) time.Time {
	if place, err := time.LoadLocation(zone); err == nil {
		return utc(at).In(place)
	}
	return utc(at)
}

// bookedOn is the day of a line, with its time where the file has one.
func bookedOn(l ledger.StatementLine) string {
	if l.DateOnly {
		return inZone(l.At, l.Zone).Format("2 Jan 2006")
	}
	return utc(l.At).Format("2 Jan 2006 15:04") + " UTC"
}

// lineTexts are what a file says of a line beside its amount and day.
func lineTexts(l ledger.StatementLine) (all []string) {
	for _, s := range []string{l.ProviderID, l.LineID, l.Hash, l.Reference, l.Counterparty, l.Text} {
		if s != "" && !contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

func contains(all []string, s string) bool {
	for _, other := range all {
		if other == s {
			return true
		}
	}
	return false
}

// ruleSays names why a line is held to be an operation.
func ruleSays(r ledger.MatchRule) string {
	switch r {
	case ledger.ByProviderID:
		return "same provider id (certain)"
	case ledger.ByStamp:
		return "our own id stands on the line (certain)"
	case ledger.ByHash:
		return "same transaction hash (certain)"
	case ledger.ByReference:
		return "same amount and reference"
	case ledger.ByAmountDate:
		return "same amount, day and counterparty (proves nothing)"
	case ledger.ByHand:
		return "a person said so"
	}
	return ""
}

// LineStates are the lists of a desk, in their order.
func LineStates() []ledger.LineState {
	return []ledger.LineState{ledger.LineSuggested, ledger.LineUnmatched, ledger.LineMatched, ledger.LineSetAside}
}

// FirstState is the list that is opened first: the first one with something on it.
func (p DeskPage) FirstState() ledger.LineState {
	for _, s := range LineStates() {
		if p.Counts[s] > 0 {
			return s
		}
	}
	return ledger.LineUnmatched
}

func lineWord(l ledger.KeptLine) Word {
	switch l.State {
	case ledger.LineMatched:
		return Word{Text: "Matched", Icon: Check, Tone: Green}
	case ledger.LineSuggested:
		return Word{Text: "Suggested", Icon: Hand, Tone: Amber}
	case ledger.LineSetAside:
		return Word{Text: "Set aside", Icon: Bar, Tone: Slate}
	}
	return Word{Text: "Unmatched", Icon: Circle, Tone: Grey}
}

func stateWord(s ledger.LineState) string {
	return lineWord(ledger.KeptLine{State: s}).Text
}

func (p DeskPage) path(state ledger.LineState, after, ops int64) templ.SafeURL {
	q := url.Values{"state": {string(state)}}
	if after > 0 {
		q.Set("after", itoa(after))
	}
	if ops > 0 {
		q.Set("ops", itoa(ops))
	}
	return statementPath(p.Statement.ID) + templ.SafeURL("?"+q.Encode())
}

func (p DeskPage) here() string { return string(p.path(p.State, p.After, p.OperationsAfter)) }

// joining reports whether lines of this list can be joined with operations.
func (p DeskPage) joining() bool {
	return p.Match.Allowed && (p.State == ledger.LineSuggested || p.State == ledger.LineUnmatched || p.State == ledger.LineSetAside)
}

// tally says how many lines were matched, by how far they got.
func (p DeskPage) tally() string {
	lines := 0
	for _, n := range p.Counts {
		lines += n
	}
	s := count(lines, "line", "lines") + ": " + grouped(p.Counts[ledger.LineMatched]) + " matched · " + grouped(p.Counts[ledger.LineSuggested]) + " suggested · " +
		grouped(p.Counts[ledger.LineUnmatched]) + " unmatched"
	if n := p.Counts[ledger.LineSetAside]; n > 0 {
		s += " · " + grouped(n) + " set aside"
	}
	if n := p.Statement.Already; n > 0 {
		s += " · " + grouped(n) + " already imported"
	}
	return s
}

func (p DeskPage) ticked(kind, id string) bool { return p.Ticked[kind+" "+id] }

func (p DeskPage) explained(as string) bool { return p.Form.Values["explained_as"] == as }

// suggested reports whether a row is one that a person may just say yes to.
func (r StatementRow) suggested() bool {
	return r.Line != nil && r.Line.State == ledger.LineSuggested && r.Operation != nil
}

// settled reports whether the suggestion leads to an operation that can be
// matched: one whose outcome is known and whose amount is the line's.
func (r StatementRow) confirmable() bool {
	return r.suggested() && r.Finding != ledger.AmountDiffers && r.Operation.Status == ledger.Confirmed
}

// openRow reports whether a row still needs an answer.
func (r StatementRow) openRow() bool {
	return r.Line == nil || r.Line.State == ledger.LineSuggested || r.Line.State == ledger.LineUnmatched
}

func (r StatementRow) key() string {
	if r.Line != nil {
		return "line-" + itoa(r.Line.ID)
	}
	return "missing-" + r.Operation.OperationID
}

func (r StatementRow) seen() string { return itoa(r.Line.ID) + ":" + itoa(r.Line.Version) }

// answersUnknown reports whether the line is evidence that a person may use.
func (r StatementRow) answersUnknown() bool {
	return r.Line != nil && r.Operation != nil && (r.Operation.Status == ledger.Unknown || r.Operation.Status == ledger.UnknownHold) &&
		(r.Finding == ledger.LineAnswersUnknown || r.Finding == ledger.AmountDiffers)
}

// evidencePath opens the page of an unknown operation with the line filled in.
func evidencePath(operation string, line int64) templ.SafeURL {
	return operationPath(operation) + templ.SafeURL("?line="+itoa(line)+"#decide")
}

func (r StatementRow) title() string {
	if r.Line == nil {
		return "Ours, not on the statement"
	}
	return "Line " + strconv.Itoa(r.Line.Number)
}

// sideWord says how an operation stands to the statements.
func sideWord(s ledger.StatementSide) string {
	switch s {
	case ledger.NotOnStatement:
		return "Not on a statement yet"
	case ledger.SeenOnStatement:
		return "Seen on statement"
	case ledger.MissingFromThere:
		return "Missing from statement"
	}
	return ""
}

func apartWord(as string) string {
	switch as {
	case "fx":
		return "FX"
	case "":
		return "nothing differs"
	}
	return as
}

// lastDay is the last day of a period that ends at a moment, as forms write it.
func (p ClosingPage) lastDay() string {
	return time.UnixMilli(p.Until).In(p.Zone).AddDate(0, 0, -1).Format(time.DateOnly)
}

func (p ClosingPage) dayOf(end int64) string {
	return time.UnixMilli(end - 1).In(p.Zone).Format("2 Jan 2006")
}

func (p ClosingPage) closedWord() string {
	if p.Account.ClosedTo == 0 {
		return "nothing closed yet"
	}
	return "closed up to " + p.dayOf(p.Account.ClosedTo)
}

// missing is what stands in the way of closing, in sentences.
func (p ClosingPage) missing() (all []string) {
	if p.Until <= p.Account.ClosedTo {
		return []string{"It is closed up to " + p.dayOf(p.Account.ClosedTo) + " already."}
	}
	if p.Account.ReachesTo < p.Until {
		all = append(all, "The statements end with "+p.dayOf(p.Account.ReachesTo)+". Import what is missing first.")
	}
	if p.Until > p.Frame.Now {
		all = append(all, "That day is not over yet.")
	}
	if p.StillOpen > 0 {
		all = append(all, count(p.StillOpen, "exception needs", "exceptions need")+" an answer first.")
	}
	return all
}

// statementsWord is the number in the navigation.
func (c Counts) statementsWord() string {
	const many = 1000 // where counting for every page ends
	if c.Statements > many {
		return "1,000+"
	}
	return number(c.Statements)
}

// NoStatement says that there is no such import or line; another tenant's is none
// either.
func NoStatement(f Frame, id string) MessagePage {
	title := "There is no such line or statement."
	if id != "" {
		title = "No statement " + id + "."
	}
	return MessagePage{Frame: f, Tone: Slate, Title: title, Lines: []string{"Nothing was recorded."}, Links: []Link{{"/statements", "All statements"}}}
}

// LineChanged says that a line is not any more what was on the screen.
func LineChanged(f Frame, back string) MessagePage {
	return MessagePage{Frame: f, Tone: Amber, Title: "This changed while you were reading.",
		Lines: []string{"Somebody answered it, or matching found more. Nothing from you was recorded."}, Links: []Link{{back, "Open it as it is now"}}}
}

// UploadGone says that a file is not held any more.
func UploadGone(f Frame) MessagePage {
	return MessagePage{Frame: f, Tone: Amber, Title: "The file is not held any more.",
		Lines: []string{"It is kept for 15 minutes, in memory only, and one at a time: a restart or a newer upload drops it. Nothing was stored.", "Choose the file again."},
		Links: []Link{{"/statements#import", "Choose it again"}}}
}

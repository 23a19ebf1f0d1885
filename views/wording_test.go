package views_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"holdfast/static"
	"holdfast/store/ledger"
	"holdfast/views"
)

// A page about a decision never describes what happened after it.
func TestDonePageDoesNotDescribeALaterStatus(t *testing.T) {
	f := frame("")
	for _, status := range []ledger.Status{ledger.Confirmed, ledger.Rejected, ledger.InFlight, ledger.Ready} {
		for _, act := range []string{"still-unknown", "look-again"} {
			mustNotSay(t, draw(t, views.Message(views.Done(f, charge(status, ""), act))), "Nothing is sent", "being asked")
		}
		if status != ledger.Ready {
			mustNotSay(t, draw(t, views.Message(views.Done(f, charge(status, ""), "different-purchase"))), "It leaves as soon")
		}
	}
	mustSay(t, draw(t, views.Message(views.Done(f, charge(ledger.Unknown, ""), "still-unknown"))), "Nothing is sent.")
	mustSay(t, draw(t, views.Message(views.Done(f, charge(ledger.UnknownHold, ledger.Inconclusive), "still-unknown"))), "it is held again until a person settles it")
}

func TestStripKeepsDirectionsApart(t *testing.T) {
	f := frame(views.AtHome)
	f.Counts = views.Counts{OwedToUs: 2, OwedToUsSums: []views.Sum{{Amount: 4800, Currency: "EUR"}}}
	d := draw(t, views.Refunds(views.RefundsPage{Frame: f}))
	strip := d.all(class("strip"))[0]
	if got := text(strip, false); !strings.HasPrefix(got, "Nothing unknown │ We owe nothing · owed to us 2 · €48.00") || attr(strip, "data-state") != "owed" {
		t.Errorf("strip says %q", got)
	}
	if got := text(d.all(class("nav"))[0], false); !strings.Contains(got, "Refunds owed 2 to us") {
		t.Errorf("navigation says %q", got)
	}
}

func TestOwedEntriesSayToWhomAndWhyByDirection(t *testing.T) {
	paid := refundOwed()
	paid.Direction, paid.Customer, paid.OperationID = "owed_to_us", "", "payout-1"
	from := charge(ledger.Confirmed, "")
	from.Terms.Customer = ""
	d := draw(t, views.Refunds(views.RefundsPage{Frame: frame(""), Items: []ledger.RefundOwed{refundOwed(), paid}, From: map[string]ledger.Operation{"payout-1": from}}))
	mustSay(t, d, "We owe Marta K. charged twice", "Owed to us by Bistro Lind paid out twice", "Due")
	mustNotSay(t, d, "Promised by")
}

func TestConflictSaysWhatSomebodyDid(t *testing.T) {
	f, o := frame(""), refund()
	o.Asked.Approvals = 2
	mustSay(t, draw(t, views.Message(views.Conflict(f, o, ledger.Entry{Event: "approve", ActorKind: ledger.Person, Actor: "Jon", At: now - 8*second}, 1))), "Jon approved this 8 s ago (1 of 2).")
	d := draw(t, views.Message(views.Conflict(f, charge(ledger.Unknown, ""), ledger.Entry{Event: "look", ActorKind: ledger.Reconciler, Actor: "lookup", At: now}, 0)))
	mustSay(t, d, "This changed while you were reading.", "Job lookup changed it 0 s ago: looked up.")
	mustNotSay(t, d, "decided")
}

func TestProgramsSentencesNameMembersInWords(t *testing.T) {
	p := hold(t, ledger.ReceiptMismatch)
	p.Operation.Detail = "Receipt pay_9 differs in /amount, /currency."
	p.Log = []ledger.Entry{{Seq: 1, Event: "mismatch", ActorKind: ledger.Worker, Sentence: "It differs (/reference) in /amount.", At: now},
		{Seq: 2, Event: "note", ActorKind: ledger.Person, Sentence: "Ana: see /amount", At: now}}
	p.Evidence = []ledger.Evidence{{Source: "answer", Finding: "found", Sentence: "Differs in /recipient", At: now}}
	d := draw(t, views.Hold(p))
	mustSay(t, d, "Receipt pay_9 differs in amount, currency.", "It differs (reference) in amount.", "Differs in recipient", "Ana: see /amount")
	mustNotSay(t, d, "in /amount", "(/reference", "in /recipient")
}

func TestNotedChangesHaveWords(t *testing.T) {
	p := record(t, frame(""), charge(ledger.Unknown, ""))
	p.Log = nil
	for _, event := range []string{"claim", "release", "look", "look_again", "answer", "open"} {
		p.Log = append(p.Log, ledger.Entry{Seq: 1, Event: event, ActorKind: ledger.Worker, Actor: "vm/1", At: now})
	}
	mustSay(t, draw(t, views.Operation(p)), "Taken by a worker", "Handed back by the worker", "Looked up", "Asked to look again", "Answer kept", "Refund owed recorded")
}

func TestMarksThatAreWritingAreNotPiles(t *testing.T) {
	for s, piled := range map[string]bool{"Ấ\u0301": false, "กำ่": false, "a\u0301\u0302\u0303": false, "a\u0301\u0302\u0303\u0304": true, "Z" + strings.Repeat("\u0489", 60): true} {
		p := approval(t)
		p.Operation.Terms.Recipient = s
		d := draw(t, views.Operation(p))
		found := false
		for _, n := range d.all(class("stacked")) {
			found = found || strings.Contains(text(n, false), s)
		}
		if found != piled {
			t.Errorf("%q is cut at its line: %t, want %t", s, found, piled)
		}
	}
}

// What is cut, and what shows that there is more, stands in the stylesheet.
func TestStylesheetCutsPilesAndShowsWhereToScroll(t *testing.T) {
	answer := httptest.NewRecorder()
	static.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, static.Path("holdfast.css"), nil))
	for _, rule := range []string{".said.stacked { display: inline-block; max-width: 100%; line-height: 1.5; overflow: clip;", ".scroll:focus-visible", "Scroll sideways for more"} {
		if !strings.Contains(answer.Body.String(), rule) {
			t.Errorf("the stylesheet lacks %q", rule)
		}
	}
}

func TestTablesInScrollersAreReachedByKeyboard(t *testing.T) {
	for _, page := range everyPage(t) {
		for _, n := range draw(t, page.page).all(func(n *html.Node) bool { return class("list")(n) || class("beside")(n) }) {
			if !class("scroll")(n.Parent) || attr(n.Parent, "tabindex") != "0" || attr(n.Parent, "role") != "region" ||
				attr(n.Parent, "aria-label")+attr(n.Parent, "aria-labelledby") == "" {
				t.Errorf("%s: a wide table stands in no scroller that has focus and a name", page.name)
			}
		}
	}
}

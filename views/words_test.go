package views_test

import (
	"strings"
	"testing"

	"holdfast/store/ledger"
	"holdfast/views"
)

func TestEveryStatusHasItsWordIconAndColour(t *testing.T) {
	type word struct {
		text string
		icon views.Icon
		tone views.Tone
	}
	byReason := map[ledger.Reason]word{
		ledger.Declined: {"Declined by provider", views.Bar, views.Slate}, ledger.NotExecuted: {"Did not happen", views.Circle, views.Slate},
		ledger.Denied: {"Rejected", views.Cross, views.Slate}, ledger.PolicyDenied: {"Rejected", views.Cross, views.Slate},
		ledger.ApprovalExpired: {"Expired", views.Hourglass, views.Slate}, ledger.Cancelled: {"Withdrawn", views.Back, views.Slate},
		ledger.Duplicate: {"Same purchase", views.Chain, views.Slate}, ledger.Replaced: {"Withdrawn", views.Back, views.Slate},
		ledger.RunStopped: {"Withdrawn", views.Back, views.Slate}, ledger.PrerequisiteRejected: {"Rejected", views.Cross, views.Slate},
		ledger.AuthorityGone: {"Rejected", views.Cross, views.Slate}, ledger.Observed: {"Did not happen", views.Circle, views.Slate},
	}
	byStatus := map[ledger.Status]word{
		ledger.AwaitingApproval: {"Needs approval", views.Hand, views.Amber}, ledger.Ready: {"Ready", views.Clock, views.Grey},
		ledger.InFlight: {"Sending", views.Arrow, views.Blue}, ledger.Unknown: {"Outcome unknown", views.Question, views.Violet},
		ledger.UnknownHold: {"Outcome unknown", views.Question, views.Violet}, ledger.Confirmed: {"Confirmed", views.Check, views.Green},
	}
	for _, o := range everyStatus() {
		got := views.StatusWord(o)
		want := byStatus[o.Status]
		if o.Status == ledger.Rejected {
			want = byReason[o.Reason]
		}
		if views.Overlaps(o.Reason) || o.Reason == ledger.ClaimsExhausted {
			want.text = "Held"
		}
		if (word{got.Text, got.Icon, got.Tone}) != want {
			t.Errorf("%s %s is %v, want %v", o.Status, o.Reason, got, want)
		}
		if o.Status == ledger.UnknownHold && views.HoldReason(o, nil) == "" {
			t.Errorf("nothing says why %s is held", o.Reason)
		}
	}
	if w := views.StatusWord(ledger.Operation{Status: "finished"}); w.Tone != views.Violet {
		t.Errorf("a status that nobody knows is drawn as %v", w)
	}
}

func TestAgesReadAsPeopleSayThem(t *testing.T) {
	for ms, want := range map[int64]string{
		-5: "0 s", 0: "0 s", 12 * second: "12 s", 59999: "59 s", 60 * second: "1 m", 26 * minute: "26 m",
		2*hour + 14*minute: "2 h 14 m", 3*hour + 2*minute: "3 h 02 m", 23*hour + 59*minute: "23 h 59 m",
		day: "1 d", 3*day + 4*hour: "3 d 4 h", 20*day + 5*hour: "20 d",
	} {
		if got := views.Age(ms); got != want {
			t.Errorf("Age(%d) = %q, want %q", ms, got, want)
		}
	}
}

func TestFieldsShowThePayloadAsItWillBeSent(t *testing.T) {
	o := charge(ledger.AwaitingApproval, "")
	o.Payload = []byte(`{"a/b":{"~":[1,{"x":true}]},"amount":48000,"big":12345678901234567890,"currency":"USD","empty":{},"iban":"SK89","n":null,"none":[],"reference":"inv"}`)
	was := o
	was.Payload = []byte(`{"amount":30000,"big":12345678901234567890,"currency":"USD","gone":"x","iban":"SK88"}`)
	was.Terms.Amount = 30000
	rows, err := views.Fields(o, &was, actionType(t), true, money)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range rows {
		change := ""
		if f.Changed {
			change = " ← " + f.Was
		}
		got = append(got, f.Pointer+" "+f.Label+": "+f.Value+change)
	}
	want := []string{
		"/amount amount: 480.00 USD ← 300.00 USD",
		"/currency currency: USD",
		"/reference invoice: inv ← not there",
		"/iban iban: SK89 ← SK88",
		"/a~1b/~0/0 a/b · ~ · 1: 1 ← not there",
		"/a~1b/~0/1/x a/b · ~ · 2 · x: true ← not there",
		"/big big: 12345678901234567890",
		"/empty empty: {} ← not there",
		"/n n: null ← not there",
		"/none none: [] ← not there",
		"/gone gone: not there ← x",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("rows:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	rows, err = views.Fields(o, &was, actionType(t), false, money)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range rows {
		if f.Masked != (f.Pointer == "/iban") || f.Masked && f.Value+f.Was+f.Raw != "" {
			t.Errorf("%s masked: %v, value %q", f.Pointer, f.Masked, f.Value)
		}
	}
	for _, broken := range []string{"", `{"a":`, `{} {}`, `nonsense`} {
		o.Payload = []byte(broken)
		if _, err := views.Fields(o, nil, nil, true, money); (err == nil) != (broken == "") {
			t.Errorf("payload %q: %v", broken, err)
		}
	}
}

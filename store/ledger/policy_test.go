package ledger

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// monday is 2024-11-04 10:00 in Berlin.
var monday = time.Date(2024, 11, 4, 9, 0, 0, 0, time.UTC).UnixMilli()

func ptr[T any](v T) *T { return &v }

func policy(t *testing.T, rows ...PolicyRow) Policy {
	t.Helper()
	p, err := NewPolicy(rows)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func charge(amount int64, change ...func(*Operation)) Operation {
	o := Operation{
		TenantID: "t1", ActionType: "create_payment", Effect: "charge", Rail: "card", Agent: "billing-3", RunID: "run-9",
		Terms: Terms{Amount: amount, HasAmount: true, Currency: "EUR", Recipient: "acct_7", Reference: "inv-1"},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func knows(known, ok bool) Facts {
	return Facts{RecipientKnown: func() (bool, bool) { return known, ok }}
}

func spends(amount int64, ok bool) Facts {
	return Facts{Spent: func(SpentOver) (int64, bool) { return amount, ok }}
}

// TestPolicyConditions puts one row over a row that allows all else: then a row
// that fits denies, one that does not allows, and one that cannot be evaluated
// asks.
func TestPolicyConditions(t *testing.T) {
	noAmount := func(o *Operation) { o.Terms.HasAmount, o.Terms.Amount = false, 0 }
	noRecipient := func(o *Operation) { o.Terms.Recipient = "" }
	dollars := func(o *Operation) { o.Terms.Currency = "USD" }
	limit := func(per string) *SpentOver {
		return &SpentOver{Amount: 500000, Currency: "EUR", Window: 24 * time.Hour, Per: per}
	}
	for _, c := range []struct {
		claim    string
		when     When
		o        Operation
		facts    Facts
		then     string
		sentence string
	}{
		{"no condition fits everything", When{}, Operation{}, Facts{}, ThenDeny, `Row "r" denies it: it fits everything.`},
		{"action type", When{ActionType: []string{"refund", "create_payment"}}, charge(1), Facts{}, ThenDeny, `Row "r" denies it: the action type is create_payment.`},
		{"another action type", When{ActionType: []string{"refund"}}, charge(1), Facts{}, ThenAllow, ""},
		{"effect", When{Effect: []string{"charge"}}, charge(1), Facts{}, ThenDeny, `Row "r" denies it: the effect is charge.`},
		{"another effect", When{Effect: []string{"email"}}, charge(1), Facts{}, ThenAllow, ""},
		{"rail", When{Rail: []string{"card"}}, charge(1), Facts{}, ThenDeny, `Row "r" denies it: the rail is card.`},
		{"another rail", When{Rail: []string{"bank"}}, charge(1), Facts{}, ThenAllow, ""},
		{"agent", When{Agent: []string{"billing-3"}}, charge(1), Facts{}, ThenDeny, `Row "r" denies it: the agent is billing-3.`},
		{"another agent", When{Agent: []string{"billing"}}, charge(1), Facts{}, ThenAllow, ""},
		{"run", When{RunID: []string{"run-9"}}, charge(1), Facts{}, ThenDeny, `Row "r" denies it: the run is run-9.`},
		{"another run", When{RunID: []string{"run-8"}}, charge(1), Facts{}, ThenAllow, ""},
		{"recipient", When{Recipient: []string{"acct_7"}}, charge(1), Facts{}, ThenDeny, `Row "r" denies it: the recipient is acct_7.`},
		{"another recipient", When{Recipient: []string{"acct_bad"}}, charge(1), Facts{}, ThenAllow, ""},
		{"no recipient is not one of the list", When{Recipient: []string{"acct_bad"}}, charge(1, noRecipient), Facts{}, ThenAllow, ""},
		{"currency", When{Currency: []string{"EUR"}}, charge(1), Facts{}, ThenDeny, `Row "r" denies it: the currency is EUR.`},
		{"currency in another case", When{Currency: []string{"EUR"}}, charge(1, func(o *Operation) { o.Terms.Currency = "eur" }), Facts{}, ThenDeny, `Row "r" denies it: the currency is eur.`},
		{"another currency", When{Currency: []string{"EUR"}}, charge(1, dollars), Facts{}, ThenAllow, ""},
		{"all conditions must hold", When{Effect: []string{"charge"}, Rail: []string{"bank"}}, charge(1), Facts{}, ThenAllow, ""},

		{"amount over", When{Currency: []string{"EUR"}, AmountOver: ptr[int64](100000)}, charge(100001), Facts{}, ThenDeny, `Row "r" denies it: the amount is over 1,000.00 EUR.`},
		{"an amount at the limit is not over it", When{Currency: []string{"EUR"}, AmountOver: ptr[int64](100000)}, charge(100000), Facts{}, ThenAllow, ""},
		{"over, in another currency", When{Currency: []string{"EUR"}, AmountOver: ptr[int64](100000)}, charge(100001, dollars), Facts{}, ThenAllow, ""},
		{"no amount to compare", When{Currency: []string{"EUR"}, AmountOver: ptr[int64](100000)}, charge(0, noAmount), Facts{}, ThenAsk, `Row "r" cannot be evaluated, so it asks 1 of approver, finance or admin: the operation names no amount.`},

		{"new recipient", When{RecipientNew: ptr(true)}, charge(1), knows(false, true), ThenDeny, `Row "r" denies it: the recipient is new.`},
		{"known recipient", When{RecipientNew: ptr(true)}, charge(1), knows(true, true), ThenAllow, ""},
		{"known recipient wanted", When{RecipientNew: ptr(false)}, charge(1), knows(true, true), ThenDeny, `Row "r" denies it: the recipient is known.`},
		{"known recipient wanted, new one", When{RecipientNew: ptr(false)}, charge(1), knows(false, true), ThenAllow, ""},
		{"nobody knows the recipient", When{RecipientNew: ptr(true)}, charge(1), knows(true, false), ThenAsk, `Row "r" cannot be evaluated, so it asks 1 of approver, finance or admin: whether the recipient is new is not known.`},
		{"nobody to ask about the recipient", When{RecipientNew: ptr(true)}, charge(1), Facts{}, ThenAsk, `Row "r" cannot be evaluated, so it asks 1 of approver, finance or admin: whether the recipient is new is not known.`},
		{"no recipient to know", When{RecipientNew: ptr(true)}, charge(1, noRecipient), knows(true, true), ThenAsk, `Row "r" cannot be evaluated, so it asks 1 of approver, finance or admin: the operation names no recipient.`},
		{"a condition that does not hold settles what cannot be evaluated", When{RecipientNew: ptr(true), Effect: []string{"payout"}}, charge(1), Facts{}, ThenAllow, ""},
		{"also when it is asked later", When{Currency: []string{"EUR"}, AmountOver: ptr[int64](1), RecipientNew: ptr(true)}, charge(0, noAmount), knows(true, true), ThenAllow, ""},

		{"spent over with this one", When{SpentOver: limit("agent")}, charge(1), spends(500000, true), ThenDeny, `Row "r" denies it: with it, the agent spends over 5,000.00 EUR in 24h.`},
		{"spent up to the limit with this one", When{SpentOver: limit("agent")}, charge(1), spends(499999, true), ThenAllow, ""},
		{"a sum too large to add", When{SpentOver: limit("recipient")}, charge(math.MaxInt64), spends(math.MaxInt64, true), ThenDeny, `Row "r" denies it: with it, the recipient gets over 5,000.00 EUR in 24h.`},
		{"spent, in another currency", When{SpentOver: limit("tenant")}, charge(1, dollars), spends(600000, true), ThenAllow, ""},
		{"spent, nobody knows", When{SpentOver: limit("tenant")}, charge(1), spends(0, false), ThenAsk, `Row "r" cannot be evaluated, so it asks 1 of approver, finance or admin: what was spent is not known.`},
		{"spent, nobody to ask", When{SpentOver: limit("tenant")}, charge(1), Facts{}, ThenAsk, `Row "r" cannot be evaluated, so it asks 1 of approver, finance or admin: what was spent is not known.`},
		{"spent, no amount", When{SpentOver: limit("agent")}, charge(0, noAmount), spends(0, true), ThenAsk, `Row "r" cannot be evaluated, so it asks 1 of approver, finance or admin: the operation names no amount.`},
		{"spent per recipient, no recipient", When{SpentOver: limit("recipient")}, charge(1, noRecipient), spends(0, true), ThenAsk, `Row "r" cannot be evaluated, so it asks 1 of approver, finance or admin: the operation names no recipient.`},

		{"inside the hours", When{Hours: "mon-fri 08:00-18:00 Europe/Berlin"}, charge(1), Facts{}, ThenDeny, `Row "r" denies it: it is inside mon-fri 08:00-18:00 Europe/Berlin.`},
		{"outside the hours", When{Hours: "mon-fri 08:00-18:00 Asia/Tokyo"}, charge(1), Facts{}, ThenAllow, ""},

		{"what a row is about comes before what it is limited to", When{ActionType: []string{"create_payment"}, Currency: []string{"EUR"}, AmountOver: ptr[int64](5), RecipientNew: ptr(true)}, charge(6), knows(false, true), ThenDeny, `Row "r" denies it: the amount is over 0.05 EUR and the recipient is new.`},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p := policy(t, PolicyRow{Name: "r", When: c.when, Then: ThenDeny}, PolicyRow{Name: "rest", Then: ThenAllow})
			d := p.Decide(c.o, c.facts, monday)
			if c.then == ThenAllow {
				c.sentence = `Row "rest" allows it: it fits everything.`
			}
			if d.Then != c.then || d.Sentence != c.sentence {
				t.Errorf("%s: %s\nwant %s: %s", d.Then, d.Sentence, c.then, c.sentence)
			}
		})
	}
}

func TestFirstRowThatFitsWins(t *testing.T) {
	p := policy(t,
		PolicyRow{Name: "big", When: When{Currency: []string{"EUR"}, AmountOver: ptr[int64](100000)}, Then: ThenAsk, Of: []string{"finance"}},
		PolicyRow{Name: "euro", When: When{Currency: []string{"EUR"}}, Then: ThenAllow},
		PolicyRow{Name: "never", When: When{Currency: []string{"EUR"}}, Then: ThenDeny})
	if d := p.Decide(charge(100001), Facts{}, monday); d.Row != "big" || d.Sentence != `Row "big" asks 1 of finance: the amount is over 1,000.00 EUR.` {
		t.Errorf("%+v", d)
	}
	if d := p.Decide(charge(1), Facts{}, monday); d.Row != "euro" || d.Then != ThenAllow {
		t.Errorf("%+v", d)
	}
}

func TestWhereNoRowFitsPeopleAreAsked(t *testing.T) {
	for name, p := range map[string]Policy{
		"the zero value":         {},
		"no row that fits":       policy(t, PolicyRow{Name: "mail", When: When{Effect: []string{"email"}}, Then: ThenAllow}),
		"a row of no known kind": {Rows: []PolicyRow{{Name: "r", Then: "alow"}}},
		"hours never parsed":     {Rows: []PolicyRow{{Name: "r", When: When{Hours: "mon-sun 00:00-24:00 UTC"}, Then: ThenAllow}}},
	} {
		d := p.Decide(charge(1), Facts{}, monday)
		if d.Then != ThenAsk || d.Asked.Approvals != 1 || d.Asked.ExpiresAt != monday+24*hour || len(d.Asked.Of) != 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d := (Policy{}).Decide(charge(1), Facts{}, monday); d.Sentence != "No policy row fits, so it asks 1 of approver, finance or admin." {
		t.Error(d.Sentence)
	}
}

func TestRowThatCannotBeEvaluatedAsksItsOwnPeople(t *testing.T) {
	p := policy(t, PolicyRow{Name: "new recipients", When: When{RecipientNew: ptr(true)}, Then: ThenAsk, Of: []string{"approver"}, Approvals: 2, StepUp: true, Expires: time.Hour},
		PolicyRow{Name: "rest", Then: ThenAllow})
	d := p.Decide(charge(1), Facts{}, monday)
	if d.Sentence != `Row "new recipients" cannot be evaluated, so it asks 2 of approver: whether the recipient is new is not known.` {
		t.Error(d.Sentence)
	}
	if d.Row != "new recipients" || d.Asked.Approvals != 2 || !d.Asked.StepUp || d.Asked.ExpiresAt != monday+hour {
		t.Errorf("%+v", d)
	}
}

func TestPolicyRefusesBadRowsByName(t *testing.T) {
	for _, c := range []struct {
		row  PolicyRow
		want string
	}{
		{PolicyRow{Then: ThenAllow}, "policy row 2: give it a name"},
		{PolicyRow{Name: "good", Then: ThenAllow}, `policy row 2 ("good"): row 1 has the same name`},
		{PolicyRow{Name: "r"}, `policy row 2 ("r"): then: "" is not known`},
		{PolicyRow{Name: "r", Then: "Allow"}, `policy row 2 ("r"): then: "Allow" is not known; use allow, ask or deny`},
		{PolicyRow{Name: "r", Then: ThenAsk, Of: []string{"viewer"}}, `policy row 2 ("r"): of: "viewer" may not decide`},
		{PolicyRow{Name: "r", Then: ThenAsk, Of: []string{"boss"}}, `policy row 2 ("r"): of: "boss" may not decide`},
		{PolicyRow{Name: "r", Then: ThenAsk, Approvals: -1}, `policy row 2 ("r"): approvals: -1`},
		{PolicyRow{Name: "r", Then: ThenAsk, Expires: -1}, `policy row 2 ("r"): expires:`},
		{PolicyRow{Name: "r", Then: ThenAllow, Approvals: 1}, `policy row 2 ("r"): of, approvals, step_up, reason_required and expires belong to then: ask`},
		{PolicyRow{Name: "r", Then: ThenDeny, StepUp: true}, `policy row 2 ("r"): of, approvals`},
		{PolicyRow{Name: "r", Then: ThenAllow, When: When{Effect: []string{}}}, `policy row 2 ("r"): effect: an empty list`},
		{PolicyRow{Name: "r", Then: ThenAllow, When: When{Rail: []string{""}}}, `policy row 2 ("r"): rail: an empty value`},
		{PolicyRow{Name: "r", Then: ThenAllow, When: When{AmountOver: ptr[int64](1)}}, `policy row 2 ("r"): amount_over: needs currency`},
		{PolicyRow{Name: "r", Then: ThenAllow, When: When{AmountOver: ptr[int64](-1), Currency: []string{"EUR"}}}, `policy row 2 ("r"): amount_over: -1 is below zero`},
		{PolicyRow{Name: "r", Then: ThenAllow, When: When{SpentOver: &SpentOver{Amount: -1, Currency: "EUR", Window: 1, Per: "agent"}}}, `spent_over: amount: -1`},
		{PolicyRow{Name: "r", Then: ThenAllow, When: When{SpentOver: &SpentOver{Window: 1, Per: "agent"}}}, `spent_over: needs a currency`},
		{PolicyRow{Name: "r", Then: ThenAllow, When: When{SpentOver: &SpentOver{Currency: "EUR", Per: "agent"}}}, `spent_over: window: 0s is no time`},
		{PolicyRow{Name: "r", Then: ThenAllow, When: When{SpentOver: &SpentOver{Currency: "EUR", Window: 1}}}, `spent_over: per: "" is not known`},
		{PolicyRow{Name: "r", Then: ThenAllow, When: When{Hours: "always"}}, `policy row 2 ("r"): hours: "always"`},
	} {
		_, err := NewPolicy([]PolicyRow{{Name: "good", Then: ThenAllow}, c.row})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v\nwant %s", c.row, err, c.want)
		}
	}
	_, err := NewPolicy([]PolicyRow{{Name: "a"}, {Name: "b", Then: "perhaps"}})
	if err == nil || strings.Count(err.Error(), "then:") != 2 {
		t.Errorf("not every mistake is reported: %v", err)
	}
}

func TestPolicyVersionNamesWhatTheRowsMean(t *testing.T) {
	base := []PolicyRow{
		{Name: "a", When: When{Effect: []string{"email", "crm"}}, Then: ThenAsk},
		{Name: "b", Then: ThenAllow},
	}
	version := policy(t, base...).Version
	if !strings.HasPrefix(version, "sha256:") || len(version) != len("sha256:")+64 {
		t.Fatal(version)
	}
	same := []PolicyRow{
		{Name: "a", When: When{Effect: []string{"crm", "email", "crm"}}, Then: ThenAsk, Approvals: 1, Expires: 24 * time.Hour},
		{Name: "b", Then: ThenAllow},
	}
	if policy(t, same...).Version != version {
		t.Error("another spelling of the same policy has another version")
	}
	if !slices.Equal(same[0].When.Effect, []string{"crm", "email", "crm"}) {
		t.Error("the caller's rows were changed")
	}
	for name, change := range map[string]func([]PolicyRow) []PolicyRow{
		"order":     func(r []PolicyRow) []PolicyRow { return []PolicyRow{r[1], r[0]} },
		"name":      func(r []PolicyRow) []PolicyRow { r[0].Name = "c"; return r },
		"then":      func(r []PolicyRow) []PolicyRow { r[1].Then = ThenDeny; return r },
		"of":        func(r []PolicyRow) []PolicyRow { r[0].Of = []string{"finance"}; return r },
		"approvals": func(r []PolicyRow) []PolicyRow { r[0].Approvals = 2; return r },
		"step up":   func(r []PolicyRow) []PolicyRow { r[0].StepUp = true; return r },
		"reason":    func(r []PolicyRow) []PolicyRow { r[0].ReasonRequired = true; return r },
		"expires":   func(r []PolicyRow) []PolicyRow { r[0].Expires = time.Hour; return r },
		"list":      func(r []PolicyRow) []PolicyRow { r[0].When.Effect = []string{"email"}; return r },
		"field":     func(r []PolicyRow) []PolicyRow { r[0].When = When{Rail: []string{"email", "crm"}}; return r },
		"hours":     func(r []PolicyRow) []PolicyRow { r[0].When.Hours = "mon 08:00-09:00 UTC"; return r },
		"amount": func(r []PolicyRow) []PolicyRow {
			r[0].When.Currency, r[0].When.AmountOver = []string{"EUR"}, ptr[int64](1)
			return r
		},
		"new": func(r []PolicyRow) []PolicyRow { r[0].When.RecipientNew = ptr(false); return r },
		"spent": func(r []PolicyRow) []PolicyRow {
			r[0].When.SpentOver = &SpentOver{1, "EUR", time.Hour, "agent"}
			return r
		},
	} {
		if policy(t, change(slices.Clone(base))...).Version == version {
			t.Errorf("a change of %s kept the version", name)
		}
	}
}

func TestAsksMoreThan(t *testing.T) {
	was := Asked{Of: []string{"approver", "finance"}, Approvals: 2, StepUp: true, ReasonRequired: true}
	ask := func(a Asked) Decision { return Decision{Then: ThenAsk, Asked: a} }
	for _, c := range []struct {
		claim string
		d     Decision
		was   Asked
		more  bool
	}{
		{"allowed now", Decision{Then: ThenAllow}, Asked{}, false},
		{"denied now", Decision{Then: ThenDeny}, was, true},
		{"no decision", Decision{}, was, true},
		{"the same", ask(was), was, false},
		{"less care", ask(Asked{Of: was.Of, Approvals: 1}), was, false},
		{"more roles may decide", ask(Asked{Approvals: 2}), was, false},
		{"more people", ask(Asked{Of: was.Of, Approvals: 3}), was, true},
		{"fewer roles may decide", ask(Asked{Of: []string{"finance"}, Approvals: 1}), was, true},
		{"fewer roles than everyone", ask(Asked{Of: []string{"finance"}, Approvals: 1}), Asked{Approvals: 1}, true},
		{"step up", ask(Asked{Approvals: 1, StepUp: true}), Asked{Approvals: 1}, true},
		{"a reason", ask(Asked{Approvals: 1, ReasonRequired: true}), Asked{Approvals: 1}, true},
		{"nobody was asked then", ask(Asked{Approvals: 1}), Asked{}, true},
		{"only the expiry differs", ask(Asked{Approvals: 1, ExpiresAt: 9}), Asked{Approvals: 1, ExpiresAt: 1}, false},
	} {
		if got := c.d.AsksMoreThan(c.was); got != c.more {
			t.Errorf("%s: %v", c.claim, got)
		}
	}
}

func TestHours(t *testing.T) {
	at := func(day, clock, zone string) int64 {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		moment, err := time.ParseInLocation("2006-01-02 15:04", day+" "+clock, loc)
		if err != nil {
			t.Fatal(err)
		}
		return moment.UnixMilli()
	}
	const mon, fri, sat, sun = "2024-11-04", "2024-11-08", "2024-11-09", "2024-11-10"
	for _, c := range []struct {
		hours, day, clock string
		in                bool
	}{
		{"mon-fri 08:00-18:00 Europe/Berlin", mon, "08:00", true},
		{"mon-fri 08:00-18:00 Europe/Berlin", mon, "07:59", false},
		{"mon-fri 08:00-18:00 Europe/Berlin", fri, "17:59", true},
		{"mon-fri 08:00-18:00 Europe/Berlin", fri, "18:00", false},
		{"mon-fri 08:00-18:00 Europe/Berlin", sat, "12:00", false},
		{"fri-mon 08:00-18:00 Europe/Berlin", sun, "12:00", true},
		{"mon,sat 08:00-18:00 Europe/Berlin", sat, "12:00", true},
		{"mon,sat 08:00-18:00 Europe/Berlin", sun, "12:00", false},
		{"08:00-18:00 Europe/Berlin", sun, "12:00", true},
		{"MON-sun 00:00-24:00 Europe/Berlin", sun, "23:59", true},
		{"fri 22:00-06:00 Europe/Berlin", fri, "22:00", true},
		{"fri 22:00-06:00 Europe/Berlin", sat, "05:59", true},
		{"fri 22:00-06:00 Europe/Berlin", sat, "06:00", false},
		{"fri 22:00-06:00 Europe/Berlin", fri, "05:00", false},
		{"fri 22:00-06:00 Europe/Berlin", sat, "22:00", false},
		{"sat 22:00-06:00 Europe/Berlin", sun, "05:00", true},
	} {
		h, err := parseHours(c.hours)
		if err != nil {
			t.Fatal(err)
		}
		if h.contains(at(c.day, c.clock, "Europe/Berlin")) != c.in {
			t.Errorf("%s at %s %s: want %v", c.hours, c.day, c.clock, c.in)
		}
	}
	for _, bad := range []string{
		"", "mon-fri", "mon-fri 08:00-18:00", "mon-fry 08:00-18:00 UTC", "mon-fri 8:00-18:00 UTC", "mon-fri 08:00-25:00 UTC",
		"mon-fri 08:00 UTC", "mon-fri 08:00-08:00 UTC", "mon-fri 24:00-08:00 UTC", "mon-fri 08:00-18:00 Berlin", "mon-fri 08:00-18:00 Local",
		"mon-fri 08:00-18:00 UTC today", "mon,,tue 08:00-18:00 UTC", "mon-tue-wed 08:00-18:00 UTC",
	} {
		if _, err := parseHours(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestFourEyes(t *testing.T) {
	asked := func(of ...string) Operation {
		return Operation{Agent: "billing-3", TokenID: "tok_1", Owner: "Jon@Example.com", Status: AwaitingApproval, Asked: Asked{Of: of, Approvals: 1}}
	}
	unowned := asked()
	unowned.Owner = ""
	inPerson := asked()
	inPerson.Agent, inPerson.TokenID = "", ""
	const own = "You own the token that asked for this. Someone else must decide."
	for _, c := range []struct {
		claim         string
		o             Operation
		email         string
		roles         []string
		people        int
		allowed, self bool
		why           string
	}{
		{"somebody else", asked(), "ana@example.com", []string{"approver"}, 2, true, false, ""},
		{"finance, where no role is named", asked(), "ana@example.com", []string{"finance"}, 2, true, false, ""},
		{"admin, where no role is named", asked(), "ana@example.com", []string{"admin"}, 2, true, false, ""},
		{"a viewer", asked(), "ana@example.com", []string{"viewer"}, 2, false, false, "This needs the role approver, finance or admin."},
		{"a viewer where a damaged row names viewers", asked("viewer"), "ana@example.com", []string{"viewer"}, 2, false, false, "This needs the role viewer."},
		{"a viewer who is also finance", asked(), "ana@example.com", []string{"viewer", "finance"}, 2, true, false, ""},
		{"the named role", asked("finance"), "ana@example.com", []string{"finance"}, 2, true, false, ""},
		{"another role", asked("finance"), "ana@example.com", []string{"approver"}, 2, false, false, "This needs the role finance."},
		{"admin is not every role", asked("finance"), "ana@example.com", []string{"admin"}, 2, false, false, "This needs the role finance."},
		{"no role", asked(), "ana@example.com", nil, 2, false, false, "This needs the role approver, finance or admin."},
		{"nobody", asked(), "", []string{"admin"}, 2, false, false, "Sign in to decide."},
		{"one's own", asked(), "jon@example.com", []string{"admin"}, 2, false, false, own},
		{"one's own, in another case", asked(), "JON@EXAMPLE.COM", []string{"admin"}, 2, false, false, own},
		{"one's own, alone", asked(), "jon@example.com", []string{"admin"}, 1, true, true, ""},
		{"one's own, nobody counted", asked(), "jon@example.com", []string{"admin"}, 0, false, false, own},
		{"one's own, alone, without the role", asked("finance"), "jon@example.com", []string{"admin"}, 1, false, false, "This needs the role finance."},
		{"somebody else, alone", asked(), "ana@example.com", []string{"admin"}, 1, true, false, ""},
		{"asked in person", inPerson, "jon@example.com", []string{"admin"}, 2, false, false, "You asked for this. Someone else must decide."},
		{"asked in person, alone", inPerson, "jon@example.com", []string{"admin"}, 1, true, true, ""},
		{"somebody else's, asked in person", inPerson, "ana@example.com", []string{"admin"}, 2, true, false, ""},
		{"a token that nobody owns", unowned, "jon@example.com", []string{"admin"}, 2, true, false, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			allowed, self, why := MayApprove(c.o, c.email, c.roles, c.people)
			if allowed != c.allowed || self != c.self || why != c.why {
				t.Errorf("%v %v %q", allowed, self, why)
			}
		})
	}
}

func TestFourEyesOnHoldsWhereTheDecisionSends(t *testing.T) {
	o := Operation{Owner: "jon@example.com", Status: UnknownHold, Asked: Asked{Of: []string{"finance"}}}
	for e, needsOther := range map[Event]bool{
		Separate: true, SeparateAsk: true, SendAgain: true,
		Merge: false, Deny: false, SayHappened: false, SayNotHappened: false, StillUnknown: false,
	} {
		if allowed, _, _ := MayDecideHold(o, e, "Jon@example.com", []string{"approver"}, 2); allowed == needsOther {
			t.Errorf("%s by the owner: %v", e, allowed)
		}
		if allowed, _, _ := MayDecideHold(o, e, "ana@example.com", []string{"approver"}, 2); !allowed {
			t.Errorf("%s by somebody else is refused", e)
		}
		if allowed, self, _ := MayDecideHold(o, e, "jon@example.com", []string{"admin"}, 1); !allowed || self != needsOther {
			t.Errorf("%s by the only person: %v, self %v", e, allowed, self)
		}
		if allowed, _, _ := MayDecideHold(o, e, "ana@example.com", []string{"viewer"}, 2); allowed {
			t.Errorf("%s by a viewer", e)
		}
	}
}

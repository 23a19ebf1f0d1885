package ledger

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const hour = int64(time.Hour / time.Millisecond)

// purchase is a draft and, with a status, an earlier operation: the same in
// everything until a test changes it.
func purchase(id string, s Status, change ...func(*Operation)) Operation {
	o := Operation{
		TenantID: "t1", OperationID: id, Effect: "charge", Status: s,
		Fingerprint: "hf1:sha256:" + id,
		Terms:       Terms{Amount: 4800, HasAmount: true, Currency: "EUR", Recipient: "acct_7", Reference: "inv-1"},
		CreatedAt:   100 * hour, UpdatedAt: 100 * hour,
	}
	if o.Status != "" && !o.Status.Final() && o.Status != AwaitingApproval && o.Status != Ready {
		o.Attempts, o.OpenAttempts = 1, 1
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func reference(r string) func(*Operation) { return func(o *Operation) { o.Terms.Reference = r } }
func fingerprint(f string) func(*Operation) {
	return func(o *Operation) { o.Fingerprint = "hf1:sha256:" + f }
}
func run(id, parent, step string) func(*Operation) {
	return func(o *Operation) { o.RunID, o.ParentRunID, o.Step = id, parent, step }
}
func old(o *Operation) { o.CreatedAt, o.UpdatedAt = 1*hour, 1*hour }
func otherMoney(o *Operation) {
	o.Terms = Terms{Amount: 1, HasAmount: true, Currency: "USD", Recipient: "x", Reference: o.Terms.Reference}
}

func TestOverlapHoldsWhatTheRuleNames(t *testing.T) {
	with := func(changes ...func(*Operation)) []func(*Operation) { return changes }
	confirmed, ready, asked := Confirmed, Ready, AwaitingApproval
	for _, c := range []struct {
		claim          string
		draft, earlier []func(*Operation)
		status         Status
		want           Reason
	}{
		{"equal reference", with(), with(), confirmed, SameReference},
		{"equal reference, everything else different", with(otherMoney), with(), confirmed, SameReference},
		{"equal reference, at any age", with(), with(old), confirmed, SameReference},
		{"equal reference of an open one", with(), with(), asked, SameReference},
		{"different references of a confirmed one", with(reference("inv-2")), with(), confirmed, ""},
		{"different references of a ready one", with(reference("inv-2")), with(), ready, ""},
		{"different references of one that waits for people", with(reference("inv-2")), with(), asked, ""},
		{"equal reference of a rejected one", with(), with(), Rejected, ""},
		{"equal reference in another tenant", with(), with(func(o *Operation) { o.TenantID = "t2" }), confirmed, ""},
		{"equal reference with another effect", with(), with(func(o *Operation) { o.Effect = "email" }), confirmed, ""},
		{"equal reference on another rail and action type", with(func(o *Operation) { o.Rail, o.ActionType = "usdc", "send_usdc" }), with(), confirmed, SameReference},
		{"a reference is one, however it is written", with(reference("INV-1")), with(), confirmed, SameReference},

		{"same run and step", with(otherMoney, reference("a"), run("r1", "", "charge")), with(run("r1", "", "charge")), confirmed, SameStep},
		{"same run and step, at any age", with(otherMoney, reference("a"), run("r1", "", "charge")), with(run("r1", "", "charge"), old), confirmed, SameStep},
		{"a child run's step", with(otherMoney, reference("a"), run("r2", "r1", "charge")), with(run("r1", "", "charge")), confirmed, SameStep},
		{"the parent run's step", with(otherMoney, reference("a"), run("r1", "", "charge")), with(run("r2", "r1", "charge")), confirmed, SameStep},
		{"same run, another step", with(otherMoney, reference("a"), run("r1", "", "refund")), with(run("r1", "", "charge")), confirmed, ""},
		{"same run, no step", with(otherMoney, reference("a"), run("r1", "", "")), with(run("r1", "", "")), confirmed, ""},
		{"another run, same step", with(otherMoney, reference("a"), run("r2", "", "charge")), with(run("r1", "", "charge")), confirmed, ""},
		{"no runs, same step", with(otherMoney, reference("a"), run("", "", "charge")), with(run("", "", "charge")), confirmed, ""},

		{"exact repeat without a reference", with(reference(""), fingerprint("f")), with(reference(""), fingerprint("f")), confirmed, ExactRepeat},
		{"exact repeat, settled before the window", with(reference(""), fingerprint("f")), with(reference(""), fingerprint("f"), old), confirmed, ""},
		{"exact repeat, old and unresolved", with(reference(""), fingerprint("f")), with(reference(""), fingerprint("f"), old), asked, ExactRepeat},
		{"exact repeat, old and unknown", with(reference(""), fingerprint("f")), with(reference(""), fingerprint("f"), old), Unknown, ExactRepeat},
		{"no fingerprints", with(otherMoney, reference("a"), func(o *Operation) { o.Fingerprint = "" }), with(func(o *Operation) { o.Fingerprint = "" }), confirmed, ""},

		{"same money, reference missing on the draft", with(reference("")), with(), confirmed, SameRecipientAmount},
		{"same money, reference missing on the earlier one", with(), with(reference("")), confirmed, SameRecipientAmount},
		{"same money, no reference, settled before the window", with(reference("")), with(old), confirmed, ""},
		{"same money, no reference, made before the window and settled inside it", with(reference("")), with(old, func(o *Operation) { o.UpdatedAt = 100 * hour }), confirmed, SameRecipientAmount},
		{"same money, no reference, old and still open", with(reference("")), with(old), ready, SameRecipientAmount},
		{"another recipient", with(reference(""), func(o *Operation) { o.Terms.Recipient = "acct_8" }), with(), confirmed, ""},
		{"another amount", with(reference(""), func(o *Operation) { o.Terms.Amount++ }), with(), confirmed, ""},
		{"another currency", with(reference(""), func(o *Operation) { o.Terms.Currency = "USD" }), with(), confirmed, ""},
		{"currency in another case", with(reference(""), func(o *Operation) { o.Terms.Currency = "eur" }), with(), confirmed, SameRecipientAmount},
		{"no currency on either side", with(reference(""), func(o *Operation) { o.Terms.Currency = "" }), with(func(o *Operation) { o.Terms.Currency = "" }), confirmed, SameRecipientAmount},
		{"no recipient on either side", with(reference(""), func(o *Operation) { o.Terms.Recipient = "" }), with(func(o *Operation) { o.Terms.Recipient = "" }), confirmed, ""},
		{"no amount on either side", with(reference(""), func(o *Operation) { o.Terms.HasAmount = false }), with(func(o *Operation) { o.Terms.HasAmount = false }), confirmed, ""},

		{"same money, different references, earlier in flight", with(reference("inv-2")), with(), InFlight, SameRecipientAmount},
		{"same money, different references, earlier unknown", with(reference("inv-2")), with(), Unknown, SameRecipientAmount},
		{"same money, different references, earlier held", with(reference("inv-2")), with(), UnknownHold, SameRecipientAmount},
		{"same money, different references, earlier unknown and old", with(reference("inv-2")), with(old), Unknown, SameRecipientAmount},
		{"same money, different references, earlier released with an attempt unresolved", with(reference("inv-2")), with(func(o *Operation) { o.Attempts, o.OpenAttempts = 1, 1 }), ready, SameRecipientAmount},
		{"other money, different references, earlier unknown", with(otherMoney, reference("inv-2")), with(), Unknown, ""},

		{"a claim to be distinct clears nothing", with(func(o *Operation) { o.DistinctFrom, o.Because = []string{"earlier"}, "two invoices" }), with(), confirmed, SameReference},
		{"the operation itself", with(func(o *Operation) { o.OperationID = "earlier" }), with(), confirmed, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			reason, found := Past{Earlier: []Operation{purchase("earlier", c.status, c.earlier...)}}.FindOverlaps(purchase("draft", "", c.draft...), 24*time.Hour, 101*hour)
			if reason != c.want {
				t.Fatalf("reason %q, want %q (found %v)", reason, c.want, found)
			}
			if (len(found) == 1) != (c.want != "") {
				t.Fatalf("found %v with reason %q", found, reason)
			}
		})
	}
}

func TestOverlapWindowEndsWhereItSays(t *testing.T) {
	draft := purchase("draft", "", reference(""))
	earlier := []Operation{purchase("earlier", Confirmed)}
	for age, want := range map[int64]Reason{24 * hour: SameRecipientAmount, 24*hour + 1: "", -5: SameRecipientAmount} {
		if got, _ := (Past{Earlier: earlier}).FindOverlaps(draft, 24*time.Hour, 100*hour+age); got != want {
			t.Errorf("at age %d: %q, want %q", age, got, want)
		}
	}
}

func TestOverlapListsEveryOneWithTheStrongestFirst(t *testing.T) {
	draft := purchase("draft", "", run("r1", "", "charge"), reference("inv-9"))
	earlier := []Operation{
		purchase("money", Unknown, reference("inv-3")),
		purchase("unrelated", Confirmed, otherMoney, reference("inv-4")),
		purchase("step", Confirmed, otherMoney, reference("inv-5"), run("r1", "", "charge")),
		purchase("ref", Confirmed, otherMoney, reference("inv-9")),
		purchase("exact", Confirmed, fingerprint("draft"), reference("inv-6")),
	}
	reason, found := Past{Earlier: earlier}.FindOverlaps(draft, 24*time.Hour, 101*hour)
	if reason != SameReference {
		t.Errorf("reason %q", reason)
	}
	want := []Overlapped{
		{"ref", []string{"reference equal", "recipient different", "amount different", "currency different"}},
		{"step", []string{"reference different", "recipient different", "amount different", "currency different", "run related", "step equal"}},
		{"exact", []string{"reference different", "recipient equal", "amount equal", "currency equal", "fingerprint equal"}},
		{"money", []string{"reference different", "recipient equal", "amount equal", "currency equal", "outcome unknown"}},
	}
	if len(found) != len(want) {
		t.Fatalf("found %v", found)
	}
	for i := range want {
		if found[i].OperationID != want[i].OperationID || !slices.Equal(found[i].Why, want[i].Why) {
			t.Errorf("%d: %v, want %v", i, found[i], want[i])
		}
	}
	_, found = Past{Earlier: []Operation{purchase("e", Confirmed)}}.FindOverlaps(purchase("draft", "", reference("")), 24*time.Hour, 101*hour)
	if len(found) != 1 || found[0].Why[0] != "reference missing" {
		t.Errorf("a missing reference is not said: %v", found)
	}
}

func TestAliasCountsAsTheOperationItStandsFor(t *testing.T) {
	alias := purchase("alias", Rejected, reference("inv-alias"), otherMoney, func(o *Operation) { o.Reason, o.DuplicateOf = Duplicate, "original" })
	draft := purchase("draft", "", reference("inv-alias"))
	for _, c := range []struct {
		claim    string
		original []Operation
		want     Reason
	}{
		{"of a confirmed original", []Operation{purchase("original", Confirmed, reference("inv-original"))}, SameReference},
		{"of an original that did not happen", []Operation{purchase("original", Rejected, reference("inv-original"))}, ""},
		{"of an original that was not passed", nil, SameReference},
	} {
		t.Run(c.claim, func(t *testing.T) {
			reason, found := Past{Earlier: append([]Operation{alias}, c.original...)}.FindOverlaps(draft, 24*time.Hour, 101*hour)
			if reason != c.want {
				t.Fatalf("reason %q, want %q", reason, c.want)
			}
			if c.want != "" && (len(found) != 1 || found[0].OperationID != "original") {
				t.Errorf("found %v, want the original", found)
			}
		})
	}
}

// TestPartialMatchIsNeverLetThroughAsSafe draws pairs from few values, so that
// fields often agree, and checks the rule from the other side: whatever passes
// must be excused by one of the few excuses there are.
func TestPartialMatchIsNeverLetThroughAsSafe(t *testing.T) {
	any := func(t *rapid.T, name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, name) }
	operation := func(t *rapid.T, who string, s Status) Operation {
		return Operation{
			TenantID: "t1", Effect: "charge", OperationID: who, Status: s,
			Fingerprint: any(t, who+" fingerprint", "f1", "f2"),
			RunID:       any(t, who+" run", "", "r1", "r2"), ParentRunID: any(t, who+" parent", "", "r1", "r2"),
			Step: any(t, who+" step", "", "s1", "s2"),
			Terms: Terms{Reference: any(t, who+" reference", "", "a", "b"), Recipient: any(t, who+" recipient", "", "x", "y"),
				Currency: any(t, who+" currency", "", "EUR", "eur", "USD"), Amount: int64(rapid.IntRange(1, 2).Draw(t, who+" amount")),
				HasAmount: rapid.Bool().Draw(t, who+" has amount")},
			DistinctFrom: []string{"earlier"},
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := operation(t, "draft", "")
		e := operation(t, "earlier", rapid.SampledFrom(Statuses()).Draw(t, "status"))
		e.CreatedAt = rapid.SampledFrom([]int64{1 * hour, 90 * hour}).Draw(t, "created")
		e.UpdatedAt = e.CreatedAt
		if !e.Status.Final() && e.Status != AwaitingApproval {
			e.Attempts = rapid.IntRange(0, 1).Draw(t, "attempts")
			e.OpenAttempts = e.Attempts
		}
		reason, found := Past{Earlier: []Operation{e}}.FindOverlaps(d, 24*time.Hour, 100*hour)

		settled := e.Status == Confirmed && e.CreatedAt == 1*hour
		sameMoney := d.Terms.Recipient != "" && d.Terms.Recipient == e.Terms.Recipient &&
			d.Terms.HasAmount && e.Terms.HasAmount && d.Terms.Amount == e.Terms.Amount &&
			strings.EqualFold(d.Terms.Currency, e.Terms.Currency)
		related := d.RunID != "" && (d.RunID == e.RunID || d.RunID == e.ParentRunID) || e.RunID != "" && e.RunID == d.ParentRunID
		different := d.Terms.Reference != "" && e.Terms.Reference != "" && d.Terms.Reference != e.Terms.Reference
		knownOutcome := e.Status == Confirmed || (e.Status == AwaitingApproval || e.Status == Ready) && e.OpenAttempts == 0
		switch {
		case e.Status == Rejected:
			if reason != "" {
				t.Fatal("a rejected operation holds")
			}
		case d.Terms.Reference != "" && d.Terms.Reference == e.Terms.Reference:
			if reason != SameReference {
				t.Fatalf("equal references: %q", reason)
			}
		case reason == "":
			if related && d.Step != "" && d.Step == e.Step {
				t.Fatal("the same step of related runs passed")
			}
			if d.Fingerprint == e.Fingerprint && !settled {
				t.Fatal("an exact repeat passed")
			}
			if sameMoney && !settled && !(different && knownOutcome) {
				t.Fatal("the same money passed without an excuse")
			}
		default:
			if !(related && d.Step != "" && d.Step == e.Step) && d.Fingerprint != e.Fingerprint && !sameMoney {
				t.Fatalf("held as %q without a match", reason)
			}
		}
		if (reason == "") != (len(found) == 0) {
			t.Fatalf("reason %q with %v", reason, found)
		}
		d.DistinctFrom = nil
		if r, _ := (Past{Earlier: []Operation{e}}).FindOverlaps(d, 24*time.Hour, 100*hour); r != reason {
			t.Fatal("a claim to be distinct changed the answer")
		}
	})
}

func TestStepIsOneThroughAllGenerationsOfARun(t *testing.T) {
	draft := purchase("draft", "", otherMoney, reference("a"), run("r4", "r3", "charge"))
	family := map[string]bool{"r1": true, "r2": true, "r3": true, "r4": true, "r5": true}
	for _, c := range []struct {
		earlier string
		want    Reason
	}{{"r1", SameStep}, {"r5", SameStep}, {"sister", ""}, {"", ""}} {
		e := purchase("earlier", Confirmed, run(c.earlier, "", "charge"))
		if got, _ := (Past{Earlier: []Operation{e}, Family: family}).FindOverlaps(draft, 24*time.Hour, 101*hour); got != c.want {
			t.Errorf("the run %q: %q, want %q", c.earlier, got, c.want)
		}
	}
}

func TestAnsweredPairIsAskedAgainOnlyWhereItLooksOtherwise(t *testing.T) {
	earlier := []Operation{purchase("first", Confirmed), purchase("other", Unknown)}
	replaced := purchase("replaced", Ready, reference(""))
	_, was := Past{Earlier: earlier}.FindOverlaps(replaced, 24*time.Hour, 101*hour)
	if len(was) != 2 {
		t.Fatalf("the replaced one overlaps %v", was)
	}
	past := Past{Earlier: earlier, Answered: was[:1]}
	if reason, found := past.FindOverlaps(purchase("draft", "", reference("")), 24*time.Hour, 101*hour); reason == "" || len(found) != 1 || found[0].OperationID == was[0].OperationID {
		t.Errorf("one of two was answered: %q %v", reason, found)
	}
	past.Answered = was
	if reason, found := past.FindOverlaps(purchase("draft", "", reference("")), 24*time.Hour, 101*hour); reason != "" || len(found) != 0 {
		t.Errorf("both were answered: %q %v", reason, found)
	}
	if reason, found := past.FindOverlaps(purchase("draft", ""), 24*time.Hour, 101*hour); reason != SameReference || len(found) != 2 {
		t.Errorf("with a reference it looks otherwise: %q %v", reason, found)
	}
}

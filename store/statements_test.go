package store_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

func TestRulesMatchInOrderOfStrength(t *testing.T) {
	b := newBench(t)
	b.bought("a", "pay_a")
	o := b.bought("b", "pay_b")
	b.bought("c", "pay_c")
	b.bought("d", "pay_d")
	got := b.take(b.file("card", "one.csv",
		b.booked(4800, named("pay_a"), kind(ledger.LineCharge)),
		b.booked(4800, named("txn_9"), stamped(o)),
		b.booked(4800, ref("REF-c ")),
		b.booked(4800, with("acct_d")),
		b.booked(9900, ref("nobody's")),
		b.booked(-30, kind(ledger.LineFee))))
	if got.New != 6 || got.Matched != 3 || got.Suggested != 1 || got.Unmatched != 2 {
		t.Fatalf("imported %+v", got)
	}
	l := b.lines()
	b.wantLine(l[0], ledger.LineMatched, "", ledger.ByProviderID, "a")
	b.wantLine(l[1], ledger.LineMatched, "", ledger.ByStamp, "b")
	b.wantLine(l[2], ledger.LineMatched, "", ledger.ByReference, "c")
	b.wantLine(l[3], ledger.LineSuggested, "", ledger.ByAmountDate, "d")
	b.wantLine(l[4], ledger.LineUnmatched, ledger.NotOurs, "", "")
	b.wantLine(l[5], ledger.LineUnmatched, "", "", "")
	b.wantOwed()
}

// An account that knows the fee shows the net: the difference is the fee, and
// stands on the match.
func TestTheFeeExplainsTheNet(t *testing.T) {
	b := newBench(t)
	b.bought("a", "pay_a")
	b.take(b.file("card", "net.csv", b.booked(4656, named("pay_a"), func(l *ledger.StatementLine) { l.Gross, l.Fee = 4800, 144 })))
	l := b.lines()[0]
	b.wantLine(l, ledger.LineMatched, "", ledger.ByProviderID, "a")
	m, err := b.s.LineMatches(b.ctx, tenant, l.ID)
	b.ok(err)
	if len(m) != 1 || m[0].Difference != -144 || m[0].ExplainedAs != "fee" {
		t.Fatalf("%+v", m)
	}
}

func TestAnotherAmountIsNeverMatchedSilently(t *testing.T) {
	b := newBench(t)
	b.bought("a", "pay_a")
	b.bought("b", "pay_b")
	b.take(b.file("card", "x.csv", b.booked(4801, named("pay_a")), b.booked(4800, named("pay_b"), func(l *ledger.StatementLine) { l.Currency = "USD" })))
	for n, l := range b.lines() {
		b.wantLine(l, ledger.LineSuggested, ledger.AmountDiffers, ledger.ByProviderID, string(rune('a'+n)))
	}
}

func TestARefundIsNeverMatchedWithACharge(t *testing.T) {
	b := newBench(t)
	b.bought("a", "pay_a")
	b.take(b.file("card", "x.csv", b.booked(-4800, ref("ref-a"), kind(ledger.LineRefund)), b.booked(-4800, named("pay_a"), kind(ledger.LineCharge))))
	l := b.lines()
	b.wantLine(l[0], ledger.LineUnmatched, ledger.NotOurs, "", "")
	b.wantLine(l[1], ledger.LineUnmatched, ledger.NotOurs, ledger.ByProviderID, "a")
	if says := l[1].Says(); !strings.Contains(says, "of another kind") {
		t.Error(says)
	}
}

func TestCase146TwoEqualRowsAreTwoMovements(t *testing.T) {
	b := newBench(t)
	row := b.booked(-4800, ref("rent"))
	first := b.file("card", "a.csv", row, row)
	if got := b.take(first); got.New != 2 {
		t.Fatalf("%+v", got)
	}
	if got := b.take(first); got.New != 0 || got.Already != 2 || len(b.lines()) != 2 {
		t.Fatalf("again: %+v, %d lines", got, len(b.lines()))
	}
	longer := b.booked(-100, ref("tea"))
	if got := b.take(b.file("card", "b.csv", row, row, longer)); got.New != 1 || got.Already != 2 || len(b.lines()) != 3 {
		t.Fatalf("longer: %+v, %d lines", got, len(b.lines()))
	}
	// A name of the bank's own wins over the content, and counts twice in one file.
	if got := b.take(b.file("card", "c.csv", b.booked(5, called("n1")), b.booked(5, called("n1")), b.booked(5, called("n2")))); got.New != 3 {
		t.Fatalf("named: %+v", got)
	}
	_, err := b.s.ImportStatement(b.ctx, b.file("card", "d.csv", b.booked(7), b.booked(6, called("n1"))))
	var refused store.StatementRefused
	if !errors.As(err, &refused) || refused.Line != 2 || !strings.Contains(refused.Sentence, "amount") {
		t.Fatalf("another amount under the same name: %v", err)
	}
	if n := len(b.lines()); n != 6 {
		t.Fatalf("%d lines: a refused file left some behind", n)
	}
}

func TestCase155AmountAndDateAreOnlyASuggestion(t *testing.T) {
	b := newBench(t)
	b.submit("op-A", charge, map[string]any{"recipient": "acct_7", "reference": "R2"})
	m := b.mark(b.claim(charge))
	b.settle(m, found(m.Operation, "pay_1"))
	b.take(b.file("card", "x.csv", b.booked(4800, ref("R1"), with("acct_7")), b.booked(4800, ref("R2"), with("acct_7"))))
	l := b.lines()
	b.wantLine(l[1], ledger.LineMatched, "", ledger.ByReference, "op-A")
	if l[0].State == ledger.LineMatched || l[0].Rule == ledger.ByReference {
		t.Fatalf("R1 is %s by %s", l[0].State, l[0].Rule)
	}
	b.submit("op-B", charge, map[string]any{"recipient": "acct_8", "reference": "R3"})
	m = b.mark(b.claim(charge))
	b.settle(m, found(m.Operation, "pay_2"))
	b.take(b.file("card", "y.csv", b.booked(4800, ref("R4"), with("acct_8"))))
	b.wantLine(b.lines()[2], ledger.LineSuggested, "", ledger.ByAmountDate, "op-B")
}

func TestCase157JobsChangeNoHumanDecision(t *testing.T) {
	b := newBench(t)
	finance := b.person("fin", "finance")
	b.lost("op-A", wire)
	b.clock.move(2 * time.Hour)
	b.look("op-A", ledger.LookInconclusive)
	b.want("op-A", ledger.UnknownHold, ledger.Inconclusive)
	b.ok(b.decide(b.s.Happened, finance, "op-A", func(d *store.Decision) { amount := int64(4800); d.ReceiptID, d.Amount = "pay_9", &amount }))
	was := b.want("op-A", ledger.Confirmed, "")
	other := b.lost("op-B", wire)
	b.take(b.file("bank", "night.csv", b.booked(4800, named("pay_9"), stamped(other))))
	l := b.lines()[0]
	b.wantLine(l, ledger.LineUnmatched, ledger.LineContradicts, ledger.ByProviderID, "op-B")
	if !strings.Contains(l.Sentence, "op-A") || !strings.Contains(l.Sentence, "op-B") {
		t.Errorf("the flag names not both: %s", l.Sentence)
	}
	if now := b.get("op-A"); now.Version != was.Version || now.Receipt.ID != "pay_9" {
		t.Errorf("what a person decided was changed: %+v", now)
	}
	if b.get("op-B").Status == ledger.Confirmed {
		t.Error("a contradiction confirmed something")
	}
	// A match by a person's hand stays, whatever the job thinks.
	b.bought("c", "pay_c")
	b.bought("d", "pay_d")
	b.take(b.file("card", "hand.csv", b.booked(4800, with("acct_d"))))
	l = b.lines()[1]
	_, err := b.s.Match(b.ctx, tenant, store.Joining{Person: finance, Lines: []store.LineSeen{{ID: l.ID, Version: l.Version}}, Operations: []string{"c"}})
	b.ok(err)
	b.clock.move(time.Hour)
	b.match()
	b.wantLine(b.lines()[1], ledger.LineMatched, "", ledger.ByHand, "c")
}

func TestCase158AWordAndALineAreAProbablePair(t *testing.T) {
	b := newBench(t)
	finance := b.person("fin", "finance")
	o := b.lost("op-A", wire)
	b.clock.move(2 * time.Hour)
	b.look("op-A", ledger.LookInconclusive)
	b.ok(b.decide(b.s.Happened, finance, "op-A", func(d *store.Decision) { amount := int64(4800); d.ReceiptID, d.Amount = "seen by mail", &amount }))
	got := b.take(b.file("bank", "x.csv", b.booked(-4800, named("wire_77"), ref(o.Terms.Reference))))
	l := b.lines()[0]
	b.wantLine(l, ledger.LineSuggested, ledger.ProbablePair, ledger.ByReference, "op-A")
	if got.Matched != 0 {
		t.Errorf("merged silently: %+v", got)
	}
	b.wantOwed() // it is one payment, not two
	_, err := b.s.Match(b.ctx, tenant, store.Joining{Person: finance, Lines: []store.LineSeen{{ID: l.ID, Version: l.Version}}, Operations: []string{"op-A"}})
	b.ok(err)
	b.wantLine(b.lines()[0], ledger.LineMatched, "", ledger.ByHand, "op-A")
	b.wantOwed()
}

func TestALineThatAnswersAnUnknownIsEvidenceAndNoMore(t *testing.T) {
	b := newBench(t)
	finance := b.person("fin", "finance")
	o := b.lost("op", wire)
	b.clock.move(2 * time.Hour)
	b.look("op", ledger.LookInconclusive)
	held := b.want("op", ledger.UnknownHold, ledger.Inconclusive)
	b.take(b.file("bank", "x.csv", b.booked(-4800, named("wire_1"), stamped(o))))
	b.wantLine(b.lines()[0], ledger.LineSuggested, ledger.LineAnswersUnknown, ledger.ByStamp, "op")
	now := b.want("op", ledger.UnknownHold, ledger.Inconclusive)
	if now.Version == held.Version || !now.Sighted {
		t.Error("who decides would not see the new evidence")
	}
	e, err := b.s.Evidence(b.ctx, tenant, "op")
	b.ok(err)
	n := 0
	for _, one := range e {
		if one.Source == "statement" {
			n++
			if one.Finding != "found" || !strings.Contains(string(one.Body), "wire_1") {
				t.Errorf("%+v", one)
			}
		}
	}
	if n != 1 {
		t.Fatalf("%d pieces of evidence from the statement", n)
	}
	b.ok(b.decide(b.s.Happened, finance, "op", func(d *store.Decision) { amount := int64(4800); d.ReceiptID, d.Amount = "wire_1", &amount }))
	b.clock.move(time.Minute)
	b.match()
	b.wantLine(b.lines()[0], ledger.LineMatched, "", ledger.ByProviderID, "op")
	b.wantOwed()
}

func TestAnEffectTooManyOpensARefundOnce(t *testing.T) {
	b := newBench(t)
	o := b.bought("twice", "pay_1")
	m := b.sent("no", wire)
	no := b.settle(m, refused)
	b.take(b.file("card", "x.csv", b.booked(4800, named("pay_2"), stamped(o)), b.booked(4800, named("pay_1"), stamped(o))))
	b.clock.move(time.Second) // so that the one is due before the other
	b.take(b.file("bank", "y.csv", b.booked(-4800, named("wire_5"), stamped(no))))
	b.wantOwed("pay_2 duplicate_charge 4800", "wire_5 late_effect 4800")
	l := b.lines()
	b.wantLine(l[0], ledger.LineUnmatched, ledger.TwiceOnStatement, ledger.ByStamp, "twice")
	b.wantLine(l[1], ledger.LineMatched, "", ledger.ByProviderID, "twice")
	b.wantLine(l[2], ledger.LineUnmatched, ledger.LateOnStatement, ledger.ByStamp, "no")
	b.clock.move(time.Hour)
	b.match()
	b.match()
	b.wantOwed("pay_2 duplicate_charge 4800", "wire_5 late_effect 4800")
}

// A file that does not say of what kind its lines are shows a charge, and the same
// money going back: nothing of it is an effect too many, whichever comes first.
func TestMoneyThatWentTheOtherWayIsNoSecondEffect(t *testing.T) {
	for name, lines := range map[string]func(b *bench, o ledger.Operation) []ledger.StatementLine{
		"in, then out": func(b *bench, o ledger.Operation) []ledger.StatementLine {
			return []ledger.StatementLine{b.booked(4800, named("pay_1")), b.booked(-4800, named("back_1"), ref("ref-op")), b.booked(-4800, named("back_2"), stamped(o))}
		},
		"out, then in": func(b *bench, o ledger.Operation) []ledger.StatementLine {
			return []ledger.StatementLine{b.booked(-4800, named("back_1"), stamped(o)), b.booked(4800, named("pay_1"), stamped(o))}
		},
		"a part": func(b *bench, o ledger.Operation) []ledger.StatementLine {
			return []ledger.StatementLine{b.booked(4800, named("pay_1")), b.booked(-1000, named("back_1"), stamped(o)), b.booked(-1000, named("pay_1"), called("x"))}
		},
	} {
		b := newBench(t)
		o := b.bought("op", "pay_1")
		b.take(b.file("card", name, lines(b, o)...))
		b.match()
		b.wantOwed()
		for _, l := range b.lines() {
			if l.Amount > 0 {
				b.wantLine(l, ledger.LineMatched, "", ledger.ByProviderID, "op")
			} else {
				b.wantLine(l, ledger.LineUnmatched, ledger.LineContradicts, l.Rule, "op")
			}
		}
	}
}

// The same of an operation that was rejected and happened after all: what came in
// is owed, and what went back is not owed once more.
func TestALateEffectThatWentBackIsOwedOnce(t *testing.T) {
	b := newBench(t)
	no := b.settle(b.sent("no", charge), refused)
	b.take(b.file("card", "x.csv", b.booked(4800, named("pay_1"), stamped(no)), b.booked(-4800, named("back_1"), stamped(no))))
	b.match()
	b.wantOwed("pay_1 late_effect 4800")
}

// A payout that came back is no second payout.
func TestAPayoutThatCameBackIsNotOwedToUs(t *testing.T) {
	b := newBench(t)
	m := b.sent("op", wire)
	o := b.settle(m, found(m.Operation, "wire_1"))
	b.take(b.file("bank", "x.csv", b.booked(-4800, named("wire_1"), stamped(o)), b.booked(4800, named("wire_1b"), stamped(o)), b.booked(4800, named("wire_1c"), stamped(o))))
	b.match()
	b.wantOwed()
	b.wantLine(b.lines()[1], ledger.LineUnmatched, ledger.LineContradicts, ledger.ByStamp, "op")
}

// Three lists tell of one effect: the exception of the operation, the line of the
// statement, and the entry. Who settles the entry has answered the other two.
func TestSettlingAnEntryAnswersItsLineAndItsException(t *testing.T) {
	b := newBench(t)
	p := b.person("frida", "finance")
	no := b.settle(b.sent("no", wire), refused)
	b.take(b.file("bank", "y.csv", b.booked(-4800, named("wire_5"), stamped(no)), b.booked(-100, named("wire_6"))))
	owed, err := b.s.RefundsOwed(b.ctx, tenant)
	b.ok(err)
	asked, err := b.s.OpenExceptions(b.ctx, tenant)
	b.ok(err)
	if len(owed) != 1 || len(asked) != 1 {
		t.Fatalf("%d entries and %d exceptions", len(owed), len(asked))
	}
	b.ok(b.prove(p, owed[0].ID, "back_1", 4000))
	b.wantLine(b.lines()[0], ledger.LineUnmatched, ledger.LateOnStatement, ledger.ByStamp, "no") // 8.00 is owed still
	b.ok(b.prove(p, owed[0].ID, "back_2", 800))
	if l := b.lines(); l[0].State != ledger.LineSetAside || !strings.Contains(l[0].Reason, owed[0].ID) || l[1].State != ledger.LineUnmatched {
		t.Errorf("%+v", l)
	}
	if asked, err = b.s.OpenExceptions(b.ctx, tenant); err != nil || len(asked) != 0 {
		t.Errorf("%v %+v", err, asked)
	}
	b.match()
	if l := b.lines(); l[0].State != ledger.LineSetAside {
		t.Errorf("the next pass opened it again: %+v", l[0])
	}
}

func TestAnImportIsSeenWholeOrNotAtAll(t *testing.T) {
	b := newBench(t)
	var lines []ledger.StatementLine
	for n := range 2000 {
		lines = append(lines, b.booked(int64(n+1)))
	}
	f := b.file("card", "big.csv", lines...)
	partial := 0
	f.Progress = func(done, of int) {
		if i, err := b.s.Statements(b.ctx, tenant, "", 10); err != nil || len(i) == 0 && len(b.lines()) > 0 {
			partial++
		}
	}
	b.take(f)
	if partial > 0 {
		t.Fatalf("readers saw a part of it %d times", partial)
	}
	// What a process that was killed left behind: the import that nobody sees.
	i := b.take(b.file("card", "small.csv", b.booked(1, ref("x"))))
	b.ok(b.sql(`insert into statements select 'stm_left', tenant_id, rail, account, format, file_name, 'other', currency, from_at, to_at, opening, closing, total, lines, already,
		warnings, notes, imported_by, started_at, 0, 0, '', '', zone from statements where id = ?`, i.Import.ID))
	b.ok(b.sql(`update statement_lines set statement_id = statement_id where id = 1`))
	b.match()
	var left int
	b.ok(b.raw().QueryRow(`select count(*) from statements where visible_at = 0`).Scan(&left))
	if left != 0 {
		t.Error("the unfinished import is still there")
	}
}

func TestTheSameFileTwiceAtOnceIsOneImport(t *testing.T) {
	b := newBench(t)
	f := b.file("card", "x.csv", b.booked(1), b.booked(2), b.booked(3))
	var wg sync.WaitGroup
	fresh := make(chan int, 8)
	for range 8 {
		wg.Go(func() {
			got, err := b.s.ImportStatement(b.ctx, f)
			if err != nil {
				t.Error(err)
			}
			fresh <- got.New
		})
	}
	wg.Wait()
	close(fresh)
	sum := 0
	for n := range fresh {
		sum += n
	}
	all, err := b.s.Statements(b.ctx, tenant, "", 100)
	b.ok(err)
	if sum != 3 || len(all) != 1 || len(b.lines()) != 3 {
		t.Fatalf("%d new lines, %d imports, %d lines", sum, len(all), len(b.lines()))
	}
}

func TestPreviewStoresNothing(t *testing.T) {
	b := newBench(t)
	b.take(b.file("card", "x.csv", b.booked(1), b.booked(2)))
	b.clock.move(10 * 24 * time.Hour)
	p, err := b.s.PreviewStatement(b.ctx, b.file("card", "y.csv", b.booked(4), b.booked(5)))
	b.ok(err)
	if p.New != 2 || p.Import.Already != 0 || len(p.First) != 2 || len(p.Import.Warnings) != 1 || !strings.Contains(p.Import.Warnings[0], "gap") {
		t.Fatalf("%+v", p)
	}
	if n := len(b.lines()); n != 2 {
		t.Fatalf("%d lines", n)
	}
}

func TestBalancesThatDoNotAddUpAreRefused(t *testing.T) {
	b := newBench(t)
	f := b.file("card", "x.csv", b.booked(100), b.booked(-30))
	opening, closing := int64(1000), int64(1069)
	f.Statement.Opening, f.Statement.Closing = &opening, &closing
	_, err := b.s.ImportStatement(b.ctx, f)
	var refused store.StatementRefused
	if !errors.As(err, &refused) || len(b.lines()) != 0 {
		t.Fatalf("%v, %d lines", err, len(b.lines()))
	}
	closing = 1070
	b.take(f)
}

func TestUndoFreesWhatWasMatched(t *testing.T) {
	b := newBench(t)
	finance := b.person("fin", "finance")
	b.bought("a", "pay_a")
	f := b.file("card", "x.csv", b.booked(4800, named("pay_a")))
	i := b.take(f).Import
	sides, err := b.s.StatementSides(b.ctx, tenant, []ledger.Operation{b.get("a")})
	b.ok(err)
	if sides["a"] != ledger.SeenOnStatement {
		t.Fatalf("a is %q", sides["a"])
	}
	b.ok(b.s.UndoStatement(b.ctx, tenant, i.ID, store.Decision{Person: finance, Reason: "the wrong month"}))
	if len(b.lines()) != 0 {
		t.Fatal("its lines are still seen")
	}
	b.wantErr(b.s.UndoStatement(b.ctx, tenant, i.ID, store.Decision{Person: finance, Reason: "again"}), store.ErrStale)
	if got := b.take(f); got.New != 1 || got.Matched != 1 {
		t.Fatalf("imported again: %+v", got)
	}
}

// A later import found lines of an earlier one and stored only what was new:
// without the earlier one its own lines would be gone from the books.
func TestAnImportIsNotUndoneUnderALaterOneThatCountsOnIt(t *testing.T) {
	b := newBench(t)
	why := store.Decision{Person: b.person("fin", "finance"), Reason: "the wrong file"}
	one, two, three := b.booked(100, called("u-1")), b.booked(200, called("u-2")), b.booked(300, called("u-3"))
	first := b.take(b.file("card", "first.csv", one, two)).Import
	both := b.file("card", "both.csv", one, two, three)
	second := b.take(both).Import
	b.wantErr(b.s.UndoStatement(b.ctx, tenant, first.ID, why), store.ErrForbidden)
	if got := len(b.lines()); got != 3 {
		t.Fatalf("%d lines are left", got)
	}
	b.ok(b.s.UndoStatement(b.ctx, tenant, second.ID, why))
	b.ok(b.s.UndoStatement(b.ctx, tenant, first.ID, why))
	if got := b.take(both); got.New != 3 || len(b.lines()) != 3 {
		t.Errorf("imported again: %+v, %d lines", got, len(b.lines()))
	}
}

func TestUnmatchIsAnEventAndIsNotUndoneByTheJob(t *testing.T) {
	b := newBench(t)
	finance, viewer := b.person("fin", "finance"), b.person("vera", "viewer")
	b.bought("a", "pay_a")
	b.take(b.file("card", "x.csv", b.booked(4800, named("pay_a"))))
	l := b.lines()[0]
	b.wantErr(b.s.Unmatch(b.ctx, tenant, store.LineSeen{ID: l.ID, Version: l.Version}, store.Decision{Person: viewer, Reason: "no"}), store.ErrForbidden)
	b.wantErr(b.s.Unmatch(b.ctx, tenant, store.LineSeen{ID: l.ID, Version: l.Version}, store.Decision{Person: finance}), store.ErrForbidden)
	b.wantErr(b.s.Unmatch(b.ctx, tenant, store.LineSeen{ID: l.ID, Version: l.Version - 1}, store.Decision{Person: finance, Reason: "no"}), store.ErrStale)
	b.ok(b.s.Unmatch(b.ctx, tenant, store.LineSeen{ID: l.ID, Version: l.Version}, store.Decision{Person: finance, Reason: "another customer's"}))
	b.clock.move(time.Hour)
	b.match()
	b.wantLine(b.lines()[0], ledger.LineUnmatched, ledger.NotOurs, "", "")
	m, err := b.s.LineMatches(b.ctx, tenant, l.ID)
	b.ok(err)
	if len(m) != 1 || m[0].EndedReason != "another customer's" || m[0].EndedBy != finance.Email {
		t.Fatalf("%+v", m)
	}
}

func TestAPayoutIsManyOperationsAndTheDifferenceIsExplained(t *testing.T) {
	b := newBench(t)
	finance := b.person("fin", "finance")
	b.bought("a", "pay_a")
	b.bought("b", "pay_b")
	b.take(b.file("card", "x.csv", b.booked(9400, ref("payout 12"))))
	l := b.lines()[0]
	j := store.Joining{Person: finance, Lines: []store.LineSeen{{ID: l.ID, Version: l.Version}}, Operations: []string{"a", "b"}}
	_, err := b.s.Match(b.ctx, tenant, j)
	b.wantErr(err, store.ErrForbidden)
	j.ExplainedAs = "fee"
	m, err := b.s.Match(b.ctx, tenant, j)
	b.ok(err)
	if m.Difference != -200 || len(m.Operations) != 2 {
		t.Fatalf("%+v", m)
	}
	_, err = b.s.Match(b.ctx, tenant, j)
	b.wantErr(err, store.ErrStale)
}

func TestMissingFromStatementPastItsDay(t *testing.T) {
	b := newBench(t)
	finance := b.person("fin", "finance")
	b.bought("a", "pay_a")
	b.bought("b", "pay_b")
	b.take(b.file("card", "x.csv", b.booked(4800, named("pay_a"))))
	if m := b.match(); m.Missing != 0 {
		t.Fatalf("%d missing before they are due", m.Missing)
	}
	b.clock.move(6 * 24 * time.Hour)
	if m := b.match(); m.Missing != 1 {
		t.Fatalf("%d missing", m.Missing)
	}
	if m := b.match(); m.Missing != 0 {
		t.Fatal("it was opened twice")
	}
	e := b.exceptions(ledger.AbsentFromStatement)
	if len(e) != 1 || e[0].OperationID != "b" || e[0].Amount != 4800 {
		t.Fatalf("%+v", e)
	}
	b.ok(b.s.TakeException(b.ctx, tenant, e[0].Exceptional, finance, finance.Email))
	e = b.exceptions(ledger.AbsentFromStatement)
	b.ok(b.s.SetAside(b.ctx, tenant, e[0].Exceptional, store.Decision{Person: finance, Reason: "asked the provider"}))
	if e = b.exceptions(""); len(e) != 0 {
		t.Fatalf("%+v", e)
	}
}

func TestAClosedPeriodIsLocked(t *testing.T) {
	b := newBench(t)
	finance := b.person("fin", "finance")
	d := store.Decision{Person: finance, Reason: "end of month"}
	b.bought("a", "pay_a")
	i := b.take(b.file("card", "x.csv", b.booked(4800, named("pay_a")), b.booked(-700, ref("rent")))).Import
	booked := b.clock.now()
	until := booked.Add(24 * time.Hour).UnixMilli()
	b.clock.move(36 * time.Hour)
	r, err := b.s.ClosePeriod(b.ctx, tenant, "card", "main", until, d)
	b.wantErr(err, store.ErrForbidden)
	if r.StillOpen != 1 || r.Open[0].Finding != ledger.NotOurs {
		t.Fatalf("%+v", r)
	}
	b.ok(b.s.SetAside(b.ctx, tenant, r.Open[0].Exceptional, store.Decision{Person: finance, Reason: "the office"}))
	r, err = b.s.ClosePeriod(b.ctx, tenant, "card", "main", until, d)
	b.wantErr(err, store.ErrForbidden) // nobody looked at what it comes to
	d.Seen.Fingerprint = r.Seen(until)
	r, err = b.s.ClosePeriod(b.ctx, tenant, "card", "main", until, d)
	b.ok(err)
	if r.Lines != 2 || r.Matched != 1 || r.SetAside != 1 || r.Totals["EUR"] != 4100 {
		t.Fatalf("%+v", r)
	}
	for _, l := range b.lines() {
		b.wantErr(b.s.Unmatch(b.ctx, tenant, store.LineSeen{ID: l.ID, Version: l.Version}, d), store.ErrForbidden)
	}
	b.wantErr(b.s.UndoStatement(b.ctx, tenant, i.ID, d), store.ErrForbidden)
	for _, change := range []string{
		`update statement_lines set state = 'unmatched'`, `update statement_lines set undone = 1`, `update statements set undone_at = 1`,
		`delete from statement_lines`, `delete from statements`, `delete from statement_matches`, `delete from statement_sides`, `delete from statement_periods`,
		`update statement_periods set until = 1`, `update statement_lines set amount = 1`, `update statement_matches set difference = 1, explained_as = 'fee'`,
	} {
		if err := b.sql(change); err == nil {
			t.Errorf("the file took: %s", change)
		}
	}
	// What comes late counts in the period that is open.
	late := b.booked(55, ref("late"), func(l *ledger.StatementLine) { l.At = booked.UnixMilli() })
	b.take(b.file("card", "late.csv", late))
	if l := b.lines()[2]; l.CountedAt != until || l.At != booked.UnixMilli() {
		t.Fatalf("counted at %d, booked %d, closed until %d", l.CountedAt, l.At, until)
	}
}

func TestAnotherTenantsStatementIsNotThere(t *testing.T) {
	b := newBench(t)
	o := b.bought("a", "pay_a")
	b.rules["other"] = newRules(t)
	b.ok(b.s.SetRulebooks(b.ctx, b.rules))
	f := b.file("card", "x.csv", b.booked(4800, named("pay_a"), stamped(o), ref("ref-a"), with("acct_a")))
	f.TenantID = "other"
	got := b.take(f)
	if got.Unmatched != 1 || len(b.lines()) != 0 {
		t.Fatalf("%+v, %d lines", got, len(b.lines()))
	}
	if _, err := b.s.Statement(b.ctx, tenant, got.Import.ID); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
}

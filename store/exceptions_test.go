package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
)

var rechecker = ledger.Holder{Kind: ledger.Reconciler, Name: "recheck"}

// paid is an operation that was confirmed by its answer, as pay_1.
func (b *bench) paid(id, action string) ledger.Operation {
	b.t.Helper()
	m := b.sent(id, action)
	b.settle(m, found(m.Operation, "pay_1"))
	return b.want(id, ledger.Confirmed, "")
}

func (b *bench) recheck(id string, finding ledger.LookFinding, records ...ledger.Receipt) int {
	b.t.Helper()
	_, opened, err := b.s.RecordRecheck(b.ctx, tenant, id, ledger.Look{Finding: finding, Records: records, AskedAt: b.clock.ms.Load()}, rechecker)
	b.ok(err)
	return opened
}

func (b *bench) asked() (kinds []string) {
	b.t.Helper()
	open, err := b.s.OpenExceptions(b.ctx, tenant)
	b.ok(err)
	for _, e := range open {
		kinds = append(kinds, string(e.Kind))
	}
	return kinds
}

func TestAReceiptIsGoneAfterTwoLooksADayApart(t *testing.T) {
	b := newBench(t)
	o := b.paid("op", wire)
	b.clock.move(time.Hour)
	b.recheck("op", ledger.LookAbsent)
	b.clock.move(time.Hour)
	b.recheck("op", ledger.LookAbsent)
	for range 3 { // days on which nobody could be asked take nothing back
		b.clock.move(24 * time.Hour)
		b.recheck("op", ledger.LookUnreachable)
		b.recheck("op", ledger.LookInconclusive)
	}
	if got := b.asked(); len(got) != 0 {
		t.Fatalf("asked about %v", got)
	}
	if n := b.recheck("op", ledger.LookAbsent); n != 1 || !slices.Equal(b.asked(), []string{"receipt_gone"}) {
		t.Errorf("opened %d: %v", n, b.asked())
	}
	if n := b.recheck("op", ledger.LookAbsent); n != 0 {
		t.Errorf("the same again opened %d", n)
	}
	if after := b.want("op", ledger.Confirmed, ""); after.Receipt.ID != o.Receipt.ID {
		t.Errorf("the receipt became %+v", after.Receipt)
	}
	open, err := b.s.OpenExceptions(b.ctx, tenant)
	b.ok(err)
	evidence, err := b.s.Evidence(b.ctx, tenant, "op")
	b.ok(err)
	if len(open[0].Evidence) != 1 || !slices.ContainsFunc(evidence, func(e ledger.Evidence) bool { return e.ID == open[0].Evidence[0] }) {
		t.Errorf("it rests on %v", open[0].Evidence)
	}
}

func TestAnExceptionIsAnsweredOnceByWhoMay(t *testing.T) {
	b := newBench(t)
	owner, finance, viewer := b.person("olga", "finance"), b.person("fin", "finance"), b.person("vic", "viewer")
	b.submit("op", wire, nil, func(o *ledger.Operation) { o.Owner = owner.Email })
	m := b.mark(b.claim(wire))
	b.settle(m, found(m.Operation, "pay_1"))
	changed := receipt(m.Operation, "pay_1")
	more := *changed.Amount + 1
	changed.Amount = &more
	b.clock.move(time.Hour)
	b.recheck("op", ledger.LookFound, changed)
	open, err := b.s.OpenExceptions(b.ctx, tenant)
	b.ok(err)
	if len(open) != 1 || open[0].Kind != ledger.ReceiptChanged {
		t.Fatal(open)
	}
	answer := func(p ledger.PersonRecord, reason string, version int64) error {
		return b.s.AnswerException(b.ctx, tenant, open[0].ID, store.Decision{Person: p, Reason: reason, Seen: store.Seen{Version: version}})
	}
	b.wantErr(answer(viewer, "why not", 1), store.ErrForbidden)
	b.wantErr(answer(owner, "it is mine", 1), store.ErrForbidden)
	b.wantErr(answer(finance, " ", 1), store.ErrForbidden)
	b.wantErr(answer(finance, "a fee was added", 7), store.ErrStale)
	stranger := finance
	stranger.TenantID = "other"
	b.wantErr(answer(stranger, "hello", 1), store.ErrNotFound)
	b.ok(answer(finance, "a fee was added", 1))
	b.wantErr(answer(finance, "a fee was added", 1), store.ErrStale)
	if got := b.asked(); len(got) != 0 || b.entries("op", "answer") != 1 {
		t.Errorf("open %v, %d answers in the log", got, b.entries("op", "answer"))
	}
	b.want("op", ledger.Confirmed, "")
	if err := b.sql(`delete from exceptions`); err == nil {
		t.Error("the file forgot an exception")
	}
	sample, err := b.s.RecheckSample(b.ctx, tenant, "bank", 10, func(int64) int64 { return 0 })
	b.ok(err)
	if len(sample) != 0 {
		t.Error("a person is asked about the same again")
	}
}

// What a look showed and what it opened are one commit: a process that ends
// between them leaves both or neither, and the next run finds the same.
func TestARecheckThatEndsHalfWayOpensOnce(t *testing.T) {
	b := newBench(t)
	o := b.paid("op", wire)
	b.clock.move(time.Hour)
	b.ok(b.sql(`create trigger cut before insert on refunds_owed begin select raise(abort, 'the process ends here'); end`))
	if _, _, err := b.s.RecordRecheck(b.ctx, tenant, "op", ledger.Look{Finding: ledger.LookFound, Records: []ledger.Receipt{receipt(o, "pay_1"), receipt(o, "pay_2")},
		AskedAt: b.clock.ms.Load()}, rechecker); err == nil {
		t.Fatal("it went through")
	}
	b.ok(b.sql(`drop trigger cut`))
	b.reopen()
	sample, err := b.s.RecheckSample(b.ctx, tenant, "bank", 10, func(int64) int64 { return 0 })
	b.ok(err)
	if len(sample) != 1 {
		t.Fatalf("it is not drawn again: %v", sample)
	}
	for i := range 2 {
		if n := b.recheck("op", ledger.LookFound, receipt(o, "pay_1"), receipt(o, "pay_2")); n != 1-i {
			t.Errorf("time %d opened %d", i, n)
		}
	}
	b.wantOwed("pay_2 duplicate_charge 4800")
}

func TestTheSampleHoldsWhatEndedAfterASend(t *testing.T) {
	b := newBench(t)
	b.paid("paid", wire)
	m := b.sent("refused", wire)
	b.settle(m, refused)
	lost := b.lost("lost", wire)
	b.submit("waits", wire, nil)
	sample, err := b.s.RecheckSample(b.ctx, tenant, "bank", 10, func(int64) int64 { return 0 })
	b.ok(err)
	if len(sample) != 1 || sample[0].OperationID != "paid" {
		t.Errorf("drawn: %v, %s", sample, lost.Status)
	}
	if none, err := b.s.RecheckSample(b.ctx, tenant, "card", 10, func(int64) int64 { return 0 }); err != nil || len(none) != 0 {
		t.Errorf("of another rail: %v %v", none, err)
	}
}

func TestAJobLeaseEndsWithItsProcess(t *testing.T) {
	b := newBench(t)
	_, err := b.s.BeginJob(b.ctx, ledger.JobRun{Job: "lookup", Node: "a", ScheduledFor: 1})
	b.ok(err)
	b.reopen()
	if _, err := b.s.BeginJob(b.ctx, ledger.JobRun{Job: "lookup", Node: "b", ScheduledFor: 2}); err != nil {
		t.Errorf("the dead process still has the job: %v", err)
	}
}

func TestAPersonsRunIsInTheLog(t *testing.T) {
	b := newBench(t)
	p := b.person("fin", "finance")
	lease, err := b.s.BeginJob(b.ctx, ledger.JobRun{Job: "sweep", Node: "a", Why: ledger.OnRequest, TenantID: tenant, AskedBy: p.Email})
	b.ok(err)
	b.ok(b.s.EndJob(b.ctx, lease, ledger.JobRun{Job: "sweep", Node: "a", Why: ledger.OnRequest, AskedBy: p.Email}))
	log, _, err := b.s.Audit(b.ctx, tenant, store.AuditFilter{Limit: 1})
	b.ok(err)
	if got := fmt.Sprint(log[0].Object, log[0].ObjectID, log[0].Event, log[0].Actor); got != "job"+"sweep"+"run"+p.Email {
		t.Errorf("%s", got)
	}
	runs, err := b.s.LastRuns(b.ctx)
	b.ok(err)
	if len(runs) != 1 || runs[0].AskedBy != p.Email {
		t.Errorf("%+v", runs)
	}
}

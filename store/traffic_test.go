package store_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/store/ledger"
)

func TestTrafficCountsWhatWaitsAndWhatIsUnknownByRail(t *testing.T) {
	b := newBench(t)
	began := b.clock.now().UnixMilli()
	lost := ledger.Answer{Finding: ledger.Unclear, Sentence: "No answer."}
	for _, at := range []time.Duration{0, 23 * time.Hour, 2 * time.Minute} {
		b.submit(fmt.Sprint("lost-", at), letter, nil)
		b.settle(b.mark(b.claim(letter)), lost)
		b.clock.move(at)
	}
	b.submit("answered", wire, nil)
	m := b.mark(b.claim(wire))
	b.clock.move(250 * time.Millisecond)
	b.settle(m, ledger.Answer{Finding: ledger.Refused, HTTPStatus: 402})
	b.submit("asleep", wire, nil)
	b.mark(b.claim(wire))
	waits := b.clock.now().UnixMilli()
	b.submit("waits", wire, nil)
	b.clock.move(time.Second)
	b.submit("waits too", wire, nil)

	all, err := b.s.RailTraffic(b.ctx, tenant)
	b.ok(err)
	post, bank := all["post"], all["bank"]
	if len(all) != 2 || post.Unknown != 3 || post.OldestUnknownAt != began || post.UnknownAges != [4]int{1, 0, 2, 0} || post.Waiting+post.Sending+post.Held != 0 || len(post.Answers) != 0 {
		t.Errorf("post: %+v", post)
	}
	if bank.Waiting != 2 || bank.OldestWaitingAt != waits || bank.Sending != 1 || bank.Unknown != 0 || len(bank.Answers) != 1 || bank.Answers[0].Took != 250 {
		t.Errorf("bank: %+v", bank)
	}
	b.clock.move(time.Hour)
	if all, err = b.s.RailTraffic(b.ctx, tenant); err != nil || all["post"].UnknownAges != [4]int{0, 0, 1, 2} {
		t.Errorf("an hour later: %+v, %v", all["post"], err)
	}
	if others, err := b.s.RailTraffic(b.ctx, "other"); err != nil || len(others) != 0 {
		t.Errorf("another tenant sees %v, %v", others, err)
	}
}

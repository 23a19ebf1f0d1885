package ledger

import (
	"strings"
	"time"
)

// Rail is what a destination promises, as far as deciding goes: where it is,
// whether and for how long it deduplicates, how it can be asked, and what its
// silence proves. How to speak to it is the adapter's business.
type Rail struct {
	Name    string
	Adapter string
	Address string // base URL; an approval is bound to it
	Account string // names the credential; part of the provider key
	Dedupe  Dedupe
	Lookup  LookupPromise
	// Compared names the members of a receipt that must agree with what was approved.
	Compared ReceiptFields
	Timeout  time.Duration // one attempt, from first byte to last
	Quiet    time.Duration // a request may sit at the provider that long after its sender died
	// PendingFor bounds how long an accepted operation may stay without an outcome.
	PendingFor time.Duration
	// StatementDue is how long after its confirmation an operation may be missing
	// from the rail's statements; zero: a working week.
	StatementDue time.Duration
	Limits       Limits
}

// Dedupe says how a rail recognises a repeated request. The zero value is the
// careful one: it does not.
type Dedupe struct {
	By        DedupeBy
	Place     string        // of a key: "header NAME" or "body POINTER"
	Retention time.Duration // zero: of a key, not published, so it counts as none; by nature, no end
}

// DedupeBy is the kind of duplicate protection.
type DedupeBy string

// The kinds. Only these three are known; anything else refuses.
const (
	DedupeNone    DedupeBy = "none"
	DedupeKey     DedupeBy = "key"
	DedupeNatural DedupeBy = "natural"
)

// Recognition names how a repeat is recognised. It is kept with the first mark: a
// request that was sent without a key does not get one by a change of the rail.
func (d Dedupe) Recognition() string {
	switch d.By {
	case DedupeKey:
		return strings.TrimSpace(string(DedupeKey) + " " + d.Place)
	case DedupeNatural:
		return string(DedupeNatural)
	}
	return string(DedupeNone)
}

// LookupPromise says how the rail can be asked and what the answer is worth.
type LookupPromise struct {
	Possible bool
	Lag      time.Duration // how late its index may be
	// AbsenceProvesAfter is how long after the last possible send an empty,
	// complete answer proves that nothing happened. Zero: never.
	AbsenceProvesAfter time.Duration
}

// Limits bound what one operation, and all of them together, may cost a rail.
type Limits struct {
	Concurrency int
	Quota       int // of retries, see the dispatcher
	PerSecond   int // requests begun; zero: no limit
	Recheck     int // operations that ended, looked at once more a day; zero: none
	MaxAttempts int
	MaxElapsed  time.Duration // since the first mark
	BackoffMin  time.Duration
	BackoffMax  time.Duration
}

// Resend decides whether an operation of which an attempt may have acted may be
// sent once more, and says why not. It is promise 4 and promise 5 in one place.
func (r Rail) Resend(o Operation, harmless bool, now int64) (ok bool, refusal Reason, sentence string) {
	switch {
	case o.Accepted:
		return false, Inconclusive, "The provider accepted it and owes us the outcome; it is never sent again."
	case o.LookOnly:
		return false, Inconclusive, "It is kept for looking: somebody said so, or the provider would give the same key the same answer. It is sent again only when somebody releases it."
	case o.Attempts >= r.Limits.MaxAttempts:
		return false, AttemptsExhausted, "All attempts this rail allows are used up."
	case now-o.FirstMarkAt >= r.Limits.MaxElapsed.Milliseconds():
		return false, BudgetExhausted, "The time this rail allows for one operation is over."
	case harmless:
		return true, "", "Its action type is declared harmless to repeat."
	}
	return r.RecognisesAt(o, now)
}

// Recognises reports whether the provider would take a repeat of what was sent
// for the same request while it remembers it, and if not, why.
func (r Rail) Recognises(o Operation) (ok bool, refusal Reason, sentence string) {
	switch {
	case r.Dedupe.By != DedupeKey && r.Dedupe.By != DedupeNatural:
		return false, Inconclusive, "This rail does not recognise a repeated request."
	case r.Dedupe.By == DedupeKey && r.Dedupe.Retention <= 0:
		return false, KeyExpired, "How long this provider remembers a key, and of which requests, is nothing to rely on: a repeat may act again."
	case o.RailAddress != r.Address || o.RailAccount != r.Account:
		return false, KeyExpired, "The rail's address or account changed since the first send; the provider would not recognise the key."
	case o.RecognisedBy == "":
		return false, KeyExpired, "How the provider would recognise a repeat was not kept with the first send; it may act again."
	case o.RecognisedBy != r.Dedupe.Recognition():
		return false, KeyExpired, "How the rail recognises a repeat changed since the first send (" + o.RecognisedBy + " then, " + r.Dedupe.Recognition() +
			" now); what is sent stays as it was, so a repeat may act again."
	}
	return true, "", "The provider recognises the key: a repeat is the same request."
}

// RecognisesAt is Recognises at a moment: what a provider remembers, it forgets.
// A request that is the same by nature, without an end, stays that.
func (r Rail) RecognisesAt(o Operation, now int64) (ok bool, refusal Reason, sentence string) {
	ok, refusal, sentence = r.Recognises(o)
	endless := r.Dedupe.By == DedupeNatural && r.Dedupe.Retention == 0
	if ok && !endless && now >= r.ResendUntil(o) {
		return false, KeyExpired, "The provider may have forgotten the key by now."
	}
	return ok, refusal, sentence
}

// ResendUntil is the moment from which a same-key send is no longer safe: the
// key's retention since the first send, less a sixth of it, since the provider's
// clock and pruning are not ours (of 24 hours, 20 remain), and less no less than
// the time a request may sit at the provider before it acts. A request that is
// the same by nature needs no key to be remembered: only the rail's own limit
// ends it.
func (r Rail) ResendUntil(o Operation) int64 {
	if r.Dedupe.By == DedupeNatural && r.Dedupe.Retention == 0 {
		return o.FirstMarkAt + r.Limits.MaxElapsed.Milliseconds()
	}
	margin := max(r.Dedupe.Retention/6, r.Quiet)
	return o.FirstMarkAt + (r.Dedupe.Retention - margin).Milliseconds()
}

package ledger

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"
)

// Look is what asking the provider showed.
type Look struct {
	Finding  LookFinding
	Records  []Receipt
	Sentence string
	Body     []byte // the answer as received, cut at the limit
	Sighted  bool   // something with our stamp was there, finished and readable or not
	AskedAt  int64  // when the question left; what was absent then may be there now
}

// LookFinding is the four-valued answer of a look-up.
type LookFinding string

// The findings. Unreachable changes nothing, and neither does the zero value.
const (
	LookFound        LookFinding = "found"
	LookAbsent       LookFinding = "absent"
	LookInconclusive LookFinding = "inconclusive"
	LookUnreachable  LookFinding = "unreachable"
)

// Weighing is what a look-up means for an operation.
type Weighing struct {
	Event    Event // empty: no status change
	Reason   Reason
	Receipt  *Receipt
	Extra    []Receipt // further effects: each is a refund owed
	Sentence string
}

// Shows reports whether the look saw something of the operation, be it one that
// is no success yet or cannot be read.
func (l Look) Shows(o Operation) bool {
	return l.Sighted || slices.ContainsFunc(l.Records, func(r Receipt) bool { return r.Stamp == o.OrderID })
}

// ShowsReceipt reports whether the look saw the operation's own receipt.
func (l Look) ShowsReceipt(o Operation) bool {
	return o.Receipt != nil && slices.ContainsFunc(l.Records, func(r Receipt) bool { return r.Stamp == o.OrderID && r.ID == o.Receipt.ID })
}

// Weigh decides what a look-up proves. A record counts only if it carries our
// stamp and agrees with what was approved; an empty answer proves something
// only where the rail's rule says so, and never while a request may still act.
func (r Rail) Weigh(o Operation, look Look) Weighing {
	switch look.Finding {
	case LookFound:
		return r.weighRecords(o, look.Records)
	case LookAbsent:
		return r.weighAbsence(o, look.AskedAt)
	case LookInconclusive:
		return Weighing{Sentence: orElse(look.Sentence, "The look-up's answer proves nothing.")}
	}
	return Weighing{Sentence: orElse(look.Sentence, "The provider could not be asked.")}
}

func (r Rail) weighRecords(o Operation, records []Receipt) Weighing {
	var ours, differing []Receipt
	for _, rec := range records {
		if rec.Stamp != o.OrderID {
			continue
		}
		if len(Compare(o, rec, r.Compared)) > 0 {
			differing = append(differing, rec)
			continue
		}
		ours = append(ours, rec)
	}
	switch {
	case len(ours) > 0:
		w := Weighing{Event: Receive, Receipt: &ours[0], Extra: certain(append(ours[1:], differing...))}
		w.Sentence = fmt.Sprintf("%s found by our stamp.", ours[0].ID)
		if len(w.Extra) > 0 {
			w.Sentence += fmt.Sprintf(" The provider holds %d more of it.", len(w.Extra))
		}
		return w
	case len(differing) > 0:
		return Weighing{Event: Mismatch, Reason: ReceiptMismatch, Receipt: &differing[0], Extra: certain(differing[1:]),
			Sentence: fmt.Sprintf("%s carries our stamp but differs from what was approved: %s.", differing[0].ID, difference(o, differing[0], Compare(o, differing[0], r.Compared)))}
	}
	return Weighing{Sentence: "Records were found, but none is proven to be this operation's."}
}

// certain leaves out what carries no stamp of its own: enough, at most, to say
// that ours is there, and never that money is owed.
func certain(records []Receipt) []Receipt {
	return slices.DeleteFunc(records, func(r Receipt) bool { return r.Presumed })
}

// weighAbsence decides what "nothing there" proves. It proves nothing where we
// asked another place than the one we sent to, and nothing against what the
// provider showed us before: two things that it says contradict each other
// then, and a person decides. What it has accepted has the time to appear that
// the rail gives it.
func (r Rail) weighAbsence(o Operation, askedAt int64) Weighing {
	after := r.Lookup.AbsenceProvesAfter
	if after <= 0 {
		return Weighing{Sentence: "The look-up found nothing, which is no proof on this rail."}
	}
	if o.RailAddress != r.Address || o.RailAccount != r.Account {
		return Weighing{Sentence: "The look-up found nothing, but the rail's address or account changed since it was sent: that it is not there proves nothing about where it went."}
	}
	provenFrom := max(o.LastSendBy+(after+r.Lookup.Lag).Milliseconds(), o.QuietFrom)
	if o.Accepted {
		provenFrom = max(provenFrom, o.UnknownSince+r.PendingFor.Milliseconds())
	}
	switch {
	case askedAt < provenFrom && o.Accepted:
		return Weighing{Sentence: "The look-up found nothing; the provider accepted it and may still owe us the outcome."}
	case askedAt < provenFrom:
		return Weighing{Sentence: "The look-up found nothing; it is too early for that to be proof."}
	case o.Sighted || o.Accepted:
		return Weighing{Event: GiveUp, Reason: EvidenceConflict,
			Sentence: "The look-up found nothing, but the provider has shown something of it before: a person must find out which of the two is true."}
	}
	return Weighing{Event: Disprove, Reason: NotExecuted,
		Sentence: fmt.Sprintf("The look-up found nothing %s after the last possible send, which this rail's rule makes proof.", after)}
}

// lookAfter is when to ask again: seconds, then minutes, then hours.
var lookAfter = []time.Duration{
	2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour,
}

// Plan sets what happens next to an operation that is unknown: when to look,
// when a same-key send is due, or, where neither can help, for which reason a
// person must decide. Looking comes before sending wherever the rail can be
// asked: a found effect costs nothing, a replay costs a request.
func (r Rail) Plan(o Operation, harmless bool, unknownFor time.Duration, now int64, backoff time.Duration) (planned Operation, hold Reason, sentence string) {
	o.NextLookAt, o.NextSendAt = 0, 0
	deadline := o.UnknownSince + unknownFor.Milliseconds()
	if o.Accepted {
		deadline = o.UnknownSince + r.PendingFor.Milliseconds()
	}
	if r.Lookup.Possible {
		wait := lookAfter[min(o.Looks, len(lookAfter)-1)]
		if o.Looks == 0 {
			wait = max(wait, r.Lookup.Lag)
		}
		o.NextLookAt = now + o.apart(wait).Milliseconds()
	}
	mayResend, refusal, why := r.Resend(o, harmless, now)
	if mayResend && (!r.Lookup.Possible || o.Looks > 0) {
		o.NextSendAt = now + backoff.Milliseconds()
	}
	switch {
	case now >= deadline:
		if o.Accepted || mayResend {
			refusal = Inconclusive
		}
		return o, refusal, "Nothing proved the outcome in the time this rail allows."
	case !r.Lookup.Possible && !mayResend && !o.Accepted:
		return o, refusal, why
	}
	return o, "", ""
}

// AskAgain is when to ask a provider again that could not be asked: less and
// less often, by how long the operation has been unknown, so that an outage does
// not become a storm. Who was not asked has not answered: the look does not
// count.
func (o Operation) AskAgain(now int64) int64 {
	age := time.Duration(now-o.UnknownSince) * time.Millisecond
	return now + o.apart(min(max(age/4, lookAfter[0]), longestUnasked)).Milliseconds()
}

// apart makes a wait up to an eighth longer, each operation by its own share: what
// became unknown together is not asked about together for ever.
func (o Operation) apart(wait time.Duration) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(o.OrderID))
	return wait + wait*time.Duration(h.Sum32()%1000)/8000
}

// longestUnasked is how long a provider that came back may wait to be asked.
const longestUnasked = 5 * time.Minute

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

package rail

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/store/ledger"
)

// sieve keeps the records that may be one operation's, page after page: first
// those that carry its stamp, then those that carry none. A record with another
// stamp is another operation's.
type sieve struct {
	rail *Rail
	o    ledger.Operation

	pages      int
	read       int    // records, ours or not
	total      int    // how many the provider says there are; 0 where it does not say
	body       []byte // of the page that counts most
	stamped    []ledger.Receipt
	bare       []ledger.Receipt
	unfinished string // about a record with our stamp that is not a success
	pending    string // what a record without a stamp lacks to be a success
	unreadable int
	illegible  int // stamps that are no text
	alike      int // stamps that are ours but for case or blanks
	strangers  int // records that the question should have left out
	sighted    bool
	doubt      string // why the silence of one of the pages proves nothing
	moved      bool   // the list is another one than when its first page was read
}

func (s *sieve) sift(p page) {
	s.pages++
	s.read += len(p.records)
	s.total = max(s.total, p.total)
	if s.doubt == "" {
		s.doubt = p.doubt
	}
	if len(s.stamped) == 0 {
		s.body = p.body
	}
	for _, raw := range p.records {
		record, _ := readJSON(raw) // it was read before, as a part
		stamp, legible := s.rail.stampOf(record)
		receipt, err := s.rail.extract(s.o, record, raw, s.rail.config.Receipt)
		receipt.Stamp = stamp
		switch why, success := s.rail.successful(record); {
		case stamp == s.o.OrderID:
			s.ours(receipt, err, why, success)
		case stamp != "" && strings.EqualFold(strings.TrimSpace(stamp), s.o.OrderID):
			s.alike++
		case stamp != "":
			if s.unasked(receipt) {
				s.strangers++
			}
		case s.anybodys() && (err != nil || s.differs(receipt)):
		default:
			s.nobodys(receipt, err, legible)
			if !success {
				s.pending = why
			}
		}
	}
}

// ours takes in a record with our stamp. It was seen, whatever else it says.
func (s *sieve) ours(receipt ledger.Receipt, err error, why string, success bool) {
	s.sighted = true
	switch {
	case err != nil:
		s.unreadable++
	case !success:
		s.unfinished = notYet(receipt, why)
	default:
		s.stamped = addOnce(s.stamped, receipt)
	}
}

// nobodys takes in a record without a stamp that can be read.
func (s *sieve) nobodys(receipt ledger.Receipt, err error, legible bool) {
	if !legible {
		s.illegible++
	}
	if err != nil {
		s.unreadable++
		return
	}
	s.bare = addOnce(s.bare, receipt)
}

func notYet(r ledger.Receipt, why string) string {
	return fmt.Sprintf("The look-up found %s with our stamp, but %s: that is not a success yet.", r.ID, why)
}

// asksForOurs reports whether the question names this operation, so that every
// record of an honest answer is its own.
func (s *sieve) asksForOurs() bool { return s.rail.lookupPath.asks("order_id", "provider_key") }

// unasked reports whether another operation's record shows that the provider
// does not filter as it was asked to.
func (s *sieve) unasked(r ledger.Receipt) bool {
	return s.asksForOurs() ||
		s.rail.lookupPath.asks("reference") && r.Reference != "" && r.Reference != s.o.Terms.Reference
}

// onlyAnswer reports whether the one bare record may count as stamped: who asks
// by order_id or provider_key is told about this operation only. That holds as
// long as nothing contradicts it: a rail that names the stamp expects to see
// it, and a provider that shows more than one record may not have filtered.
func (s *sieve) onlyAnswer(more bool) bool {
	return s.asksForOurs() && s.rail.config.Receipt.Stamp == "" && !more &&
		s.read == 1 && len(s.bare) == 1 && s.illegible == 0
}

// anybodys reports whether the list is of everything that was made in a time.
// There a record without a stamp is suspected only if it could be ours.
func (s *sieve) anybodys() bool { return s.rail.lookupPath.asksOnly("first_sent_at") }

func (s *sieve) differs(r ledger.Receipt) bool {
	named := s.rail.promise.Compared
	named.Stamp = false
	return len(ledger.Compare(s.o, r, named)) > 0
}

// successful says what about a record is not as a success has it.
func (r *Rail) successful(record any) (why string, ok bool) {
	for _, pointer := range slices.Sorted(maps.Keys(r.config.Lookup.ConfirmedWhen)) {
		got, _ := ledger.Get(record, pointer)
		wanted := oneOrMore(r.config.Lookup.ConfirmedWhen[pointer])
		if !slices.ContainsFunc(wanted, func(want any) bool { return sameScalar(want, got) }) {
			return fmt.Sprintf("its %s is %s", pointer, inWords(got)), false
		}
	}
	return "", true
}

// inWords shows a scalar of a provider's record, cut to a line.
func inWords(v any) string {
	switch v := v.(type) {
	case string:
		if len(v) > 60 {
			v = v[:60] + "…"
		}
		return fmt.Sprintf("%q", v)
	case stdjson.Number:
		return inWords(v.String())
	case bool:
		return fmt.Sprint(v)
	case nil:
		return "missing"
	}
	return "no single value"
}

// look is what all pages together show. more: the list goes on behind them.
func (s *sieve) look(more bool) ledger.Look {
	more = more || s.total > s.read
	if s.onlyAnswer(more) {
		only := s.bare[0]
		only.Stamp, only.Presumed = s.o.OrderID, true
		s.bare, s.sighted = nil, true
		if s.pending != "" {
			s.unfinished = notYet(only, s.pending)
		} else {
			s.stamped = []ledger.Receipt{only}
		}
	}
	look := ledger.Look{Finding: ledger.LookInconclusive, Records: append(s.stamped, s.bare...), Body: s.body, Sighted: s.sighted}
	switch {
	case len(s.stamped) > 0:
		look.Finding, look.Sentence = ledger.LookFound, fmt.Sprintf("The look-up found %d with our stamp.", len(s.stamped))
		if s.stamped[0].Presumed {
			look.Sentence = "The look-up found 1 under our id."
		}
	case s.unfinished != "":
		look.Sentence = s.unfinished
	case s.alike > 0:
		look.Sentence = "The look-up found our stamp written in another case; whose record that is cannot be told."
	case s.strangers > 0:
		look.Sentence = fmt.Sprintf("The look-up was answered with %d of other operations: the provider does not seem to filter, so what it does not show is not absent.", s.strangers)
	case s.illegible > 0:
		look.Sentence = fmt.Sprintf("The look-up found %d with a stamp that is no text; whose they are cannot be told.", s.illegible)
	case len(s.bare) > 0:
		look.Sentence = fmt.Sprintf("The look-up found %d without a stamp, which may be another's.", len(s.bare))
	case s.unreadable > 0:
		look.Sentence = "The look-up found a record without an id that can be read."
	case s.total > s.read:
		look.Sentence = fmt.Sprintf("The look-up's list says that it has %d, and %d were read; what is not among them is not absent.", s.total, s.read)
	case s.doubt != "":
		look.Sentence = s.doubt
	case s.moved:
		look.Sentence = "The look-up's list changed while it was read; what it did not show may have passed between two pages."
	case more && s.pages > 1:
		look.Sentence = fmt.Sprintf("The look-up's list goes on behind the %d pages that were read; what is not on them is not absent.", s.pages)
	case more:
		look.Sentence = "The look-up's list goes on; what is not on its first page is not absent."
	default:
		look.Finding, look.Sentence = ledger.LookAbsent, "The look-up found nothing."
	}
	return look
}

// broken is the look-up that ended at a page which could not be read. What the
// pages before it showed with our stamp stays true; their silence proves
// nothing.
func (s *sieve) broken(by ledger.Look) ledger.Look {
	switch {
	case len(s.stamped) > 0:
		look := s.look(true)
		look.Sentence += " A later page could not be read."
		return look
	case s.pages > 0:
		look := unreachable(fmt.Sprintf("Page %d of the look-up: %s", s.pages+1, by.Sentence), by.Body)
		look.Sighted = s.sighted
		return look
	}
	return by
}

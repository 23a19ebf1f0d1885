package rail

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"

	"holdfast/store/ledger"
)

// sieve keeps the records that may be one operation's, page after page: first
// those that carry its stamp, then those that carry none. Who asks by order_id
// or provider_key is told about this operation only, so there a record without
// a stamp counts as stamped. A record with another stamp is another operation's.
type sieve struct {
	rail *Rail
	o    ledger.Operation

	pages      int
	body       []byte // of the page that counts most
	stamped    []ledger.Receipt
	bare       []ledger.Receipt
	unfinished string // about a record with our stamp that is not a success
	unreadable int
}

func (s *sieve) sift(p page) {
	s.pages++
	if len(s.stamped) == 0 {
		s.body = p.body
	}
	ours := s.rail.lookupPath.asks("order_id", "provider_key")
	for _, raw := range p.records {
		record, _ := readJSON(raw) // it was read before, as a part
		stamp := s.rail.stampOf(record)
		if stamp == "" && ours {
			stamp = s.o.OrderID
		}
		if stamp != "" && stamp != s.o.OrderID {
			continue
		}
		receipt, err := s.rail.extract(s.o, record, raw, s.rail.config.Receipt)
		receipt.Stamp = stamp
		why, success := s.rail.successful(record)
		switch {
		case err != nil && !(stamp == "" && s.anybodys()):
			s.unreadable++
		case stamp == "" && s.anybodys() && (err != nil || s.differs(receipt)):
		case stamp != "" && !success:
			s.unfinished = fmt.Sprintf("The look-up found %s with our stamp, but %s: that is not a success yet.", receipt.ID, why)
		case stamp == "":
			s.bare = addOnce(s.bare, receipt)
		default:
			s.stamped = addOnce(s.stamped, receipt)
		}
	}
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
	look := ledger.Look{Records: append(s.stamped, s.bare...), Body: s.body}
	switch {
	case len(s.stamped) > 0:
		look.Finding, look.Sentence = ledger.LookFound, fmt.Sprintf("The look-up found %d with our stamp.", len(s.stamped))
	case s.unfinished != "":
		look.Finding, look.Sentence = ledger.LookInconclusive, s.unfinished
	case len(s.bare) > 0:
		look.Finding, look.Sentence = ledger.LookInconclusive, fmt.Sprintf("The look-up found %d without a stamp, which may be another's.", len(s.bare))
	case s.unreadable > 0:
		look.Finding, look.Sentence = ledger.LookInconclusive, "The look-up found a record without an id that can be read."
	case more && s.pages > 1:
		look.Finding, look.Sentence = ledger.LookInconclusive, fmt.Sprintf("The look-up's list goes on behind the %d pages that were read; what is not on them is not absent.", s.pages)
	case more:
		look.Finding, look.Sentence = ledger.LookInconclusive, "The look-up's list goes on; what is not on its first page is not absent."
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
		return unreachable(fmt.Sprintf("Page %d of the look-up: %s", s.pages+1, by.Sentence), by.Body)
	}
	return by
}

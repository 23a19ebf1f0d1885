package rail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"holdfast/store/ledger"
)

// lookup asks by the configured path. A list that goes on is read page by page,
// as far as the configuration says how.
func (r *Rail) lookup(ctx context.Context, o ledger.Operation) ledger.Look {
	if !r.lookupPath.given() {
		return ledger.Look{Finding: ledger.LookInconclusive, Sentence: "This rail has no look-up."}
	}
	if r.config.Lookup.Next != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.promise.Timeout, TimedOut) // all pages together
		defer cancel()
	}
	s := sieve{rail: r, o: o}
	seen := map[string]bool{}
	var first page
	for after := ""; ; {
		p, nothing := r.page(ctx, o, after)
		if nothing != nil {
			return s.broken(*nothing)
		}
		s.sift(p)
		if s.pages == 1 {
			first = p
		}
		if s.pages > 1 && !p.more && len(s.stamped) == 0 {
			return r.overlap(ctx, o, &s, first)
		}
		if p.after == "" || seen[p.after] || s.pages == r.pagesAtMost() {
			return s.look(p.more)
		}
		seen[p.after], after = true, p.after
	}
}

// page asks for one page of the look-up; where there is none to read, it says
// what there is instead.
func (r *Rail) page(ctx context.Context, o ledger.Operation, after string) (page, *ledger.Look) {
	req, err := r.query(o, after)
	if err != nil {
		what := "written"
		if errors.Is(err, errNothingToAsk) {
			what = "asked"
		}
		return page{}, &ledger.Look{Finding: ledger.LookInconclusive, Sentence: fmt.Sprintf("The look-up cannot be %s: %v.", what, err)}
	}
	conn, err := r.Connect(ctx)
	if err != nil {
		look := unreachable(fmt.Sprintf("The provider could not be asked: %s.", WhyUnreached(err)), nil)
		return page{}, &look
	}
	return r.see(conn.Send(ctx, req, r.now().Add(r.promise.Timeout)))
}

// overlap reads the first page once more after the last one. While a list is
// read, records may come in before its beginning: the window that was read must
// overlap the list as it is now, or something may have passed between.
func (r *Rail) overlap(ctx context.Context, o ledger.Operation, s *sieve, first page) ledger.Look {
	again, nothing := r.page(ctx, o, "")
	if nothing != nil {
		return s.broken(*nothing)
	}
	whole := len(again.records)
	again.records = slices.DeleteFunc(again.records, func(record jsontext.Value) bool {
		return slices.ContainsFunc(first.records, func(seen jsontext.Value) bool { return bytes.Equal(seen, record) })
	})
	s.sift(again)
	s.moved = whole > 0 && len(again.records) == whole
	return s.look(false)
}

func unreachable(sentence string, body []byte) ledger.Look {
	return ledger.Look{Finding: ledger.LookUnreachable, Sentence: sentence, Body: body}
}

// page is one whole answer to a look-up, taken apart.
type page struct {
	records []jsontext.Value
	more    bool   // the list goes on,
	after   string // and this asks for the next page; empty: nobody can ask for it
	total   int    // how many the list says it has; 0 where it does not say
	body    []byte
	doubt   string // why its silence proves nothing; empty: nothing speaks against it
}

// see reads the answer of a look-up; where it is no page, what it is instead.
func (r *Rail) see(x Exchange) (page, *ledger.Look) {
	refuse := func(sentence string) (page, *ledger.Look) {
		look := unreachable(sentence, x.Body)
		return page{}, &look
	}
	switch {
	case !x.Whole || x.Err != nil:
		return refuse("The provider could not be asked: " + r.interrupted(x))
	case x.Status == http.StatusNotFound && r.lookupPath.byID():
		if why := doubt(nil, x.Header); why != "" {
			return page{}, &ledger.Look{Finding: ledger.LookInconclusive, Sentence: why, Body: x.Body}
		}
		return page{}, &ledger.Look{Finding: ledger.LookAbsent, Sentence: "The provider has no such record.", Body: x.Body}
	case x.Status != http.StatusOK:
		return refuse(fmt.Sprintf("The provider answered the look-up with %d, which says nothing.", x.Status))
	}
	answer, err := readJSON(x.read())
	if err != nil {
		return refuse("The provider's answer to the look-up cannot be read.")
	}
	records, ok := rawRecords(x.read(), r.config.Lookup.Items)
	if !ok {
		return refuse(fmt.Sprintf("The provider's answer to the look-up has no list at %q.", r.config.Lookup.Items))
	}
	p := page{records: records, body: x.Body, doubt: doubt(answer, x.Header)}
	p.after, p.more = r.next(answer, records, x.Header)
	p.total = r.listTotal(answer, x.Header)
	return p, nil
}

// rawRecords cuts the records out of the answer as the provider wrote them.
// Where no place is named, the answer is the list, or else the one record.
func rawRecords(answer []byte, items string) (records []jsontext.Value, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(answer))
	if items == "" && d.PeekKind() != jsontext.KindBeginArray {
		return []jsontext.Value{answer}, d.PeekKind() == jsontext.KindBeginObject
	}
	for string(d.StackPointer()) != items || d.PeekKind() != jsontext.KindBeginArray {
		if _, err := d.ReadToken(); err != nil {
			return nil, false
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, false
	}
	for d.PeekKind() != jsontext.KindEndArray {
		record, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		records = append(records, record.Clone())
	}
	return records, true
}

// stampOf reads a record's stamp where the receipt names it, else where the
// request put it: most providers show a record as it was made. Something else
// than text that stands there is no stamp of ours, and not a missing one either.
func (r *Rail) stampOf(record any) (stamp string, legible bool) {
	place := r.config.Receipt.Stamp
	if place == "" {
		place = r.config.Stamp.Body
	}
	if place == "" {
		return "", true
	}
	found, _ := ledger.Get(record, place)
	text, isText := found.(string)
	if found == nil || isText && text == "" {
		return "", true
	}
	if isText {
		text = textAt(record, place)
	}
	return text, text != ""
}

// addOnce drops a record that a list shows twice.
func addOnce(records []ledger.Receipt, receipt ledger.Receipt) []ledger.Receipt {
	if slices.ContainsFunc(records, func(r ledger.Receipt) bool { return r.ID == receipt.ID }) {
		return records
	}
	return append(records, receipt)
}

package rail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"holdfast/store/ledger"
)

// Lookup asks the provider what happened. It changes nothing there, so it may
// be repeated. Only a whole, readable answer counts; everything else means that
// the provider could not be asked.
func (r *Rail) Lookup(ctx context.Context, o ledger.Operation) ledger.Look {
	if !r.lookupPath.given() {
		return ledger.Look{Finding: ledger.LookInconclusive, Sentence: "This rail has no look-up."}
	}
	req, err := r.query(o)
	if errors.Is(err, errNothingToAsk) {
		return ledger.Look{Finding: ledger.LookInconclusive, Sentence: fmt.Sprintf("The look-up cannot be asked: %v.", err)}
	}
	if err != nil {
		return ledger.Look{Finding: ledger.LookInconclusive, Sentence: fmt.Sprintf("The look-up cannot be written: %v.", err)}
	}
	conn, err := r.Connect(ctx)
	if err != nil {
		return unreachable(fmt.Sprintf("The provider could not be asked: %s.", whyUnreached(err)), nil)
	}
	return r.see(o, conn.Send(ctx, req, r.now().Add(r.promise.Timeout)))
}

func unreachable(sentence string, body []byte) ledger.Look {
	return ledger.Look{Finding: ledger.LookUnreachable, Sentence: sentence, Body: body}
}

// see reads the answer of a look-up.
func (r *Rail) see(o ledger.Operation, x Exchange) ledger.Look {
	switch {
	case !x.Whole || x.Err != nil:
		return unreachable("The provider could not be asked: "+r.interrupted(x), x.Body)
	case x.Status == http.StatusNotFound && r.lookupPath.byID():
		return ledger.Look{Finding: ledger.LookAbsent, Sentence: "The provider has no such record.", Body: x.Body}
	case x.Status != http.StatusOK:
		return unreachable(fmt.Sprintf("The provider answered the look-up with %d, which says nothing.", x.Status), x.Body)
	}
	answer, err := readJSON(x.read())
	if err != nil {
		return unreachable("The provider's answer to the look-up cannot be read.", x.Body)
	}
	records, ok := rawRecords(x.read(), r.config.Lookup.Items)
	if !ok {
		return unreachable(fmt.Sprintf("The provider's answer to the look-up has no list at %q.", r.config.Lookup.Items), x.Body)
	}
	look := r.sift(o, records, hasMore(answer, x.Header))
	look.Body = x.Body
	return look
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

// hasMore reports whether the list goes on elsewhere. No paging is configured,
// so the rest is not read, and what is not on this page is not absent.
func hasMore(answer any, header http.Header) bool {
	for _, link := range header.Values("Link") {
		if rel := strings.ToLower(strings.ReplaceAll(link, " ", "")); strings.Contains(rel, "rel=next") || strings.Contains(rel, `rel="next"`) {
			return true
		}
	}
	more, _ := ledger.Get(answer, "/has_more")
	if more == true {
		return true
	}
	return slices.ContainsFunc([]string{"/next", "/next_cursor", "/next_page"}, func(pointer string) bool {
		return textAt(answer, pointer) != ""
	})
}

// sift keeps the records that may be this operation's: first those that carry
// its stamp, then those that carry none. Who asks by order_id or provider_key
// is told about this operation only, so there a record without a stamp counts
// as stamped. A record with another stamp is another operation's.
func (r *Rail) sift(o ledger.Operation, records []jsontext.Value, more bool) ledger.Look {
	var stamped, bare []ledger.Receipt
	unreadable := 0
	ours := r.lookupPath.asks("order_id", "provider_key")
	for _, raw := range records {
		record, _ := readJSON(raw) // it was read before, as a part
		stamp := r.stampOf(record)
		if stamp == "" && ours {
			stamp = o.OrderID
		}
		if stamp != "" && stamp != o.OrderID {
			continue
		}
		receipt, err := r.extract(o, record, raw, r.config.Receipt)
		receipt.Stamp = stamp
		switch {
		case err != nil:
			unreadable++
		case stamp == "":
			bare = addOnce(bare, receipt)
		default:
			stamped = addOnce(stamped, receipt)
		}
	}
	look := ledger.Look{Records: append(stamped, bare...)}
	switch {
	case len(stamped) > 0:
		look.Finding, look.Sentence = ledger.LookFound, fmt.Sprintf("The look-up found %d with our stamp.", len(stamped))
	case len(bare) > 0:
		look.Finding, look.Sentence = ledger.LookInconclusive, fmt.Sprintf("The look-up found %d without a stamp, which may be another's.", len(bare))
	case unreadable > 0:
		look.Finding, look.Sentence = ledger.LookInconclusive, "The look-up found a record without an id that can be read."
	case more:
		look.Finding, look.Sentence = ledger.LookInconclusive, "The look-up's list goes on; what is not on its first page is not absent."
	default:
		look.Finding, look.Sentence = ledger.LookAbsent, "The look-up found nothing."
	}
	return look
}

// stampOf reads a record's stamp where the receipt names it, else where the
// request put it: most providers show a record as it was made.
func (r *Rail) stampOf(record any) string {
	if r.config.Receipt.Stamp != "" {
		return textAt(record, r.config.Receipt.Stamp)
	}
	return textAt(record, r.config.Stamp.Body)
}

// addOnce drops a record that a list shows twice.
func addOnce(records []ledger.Receipt, receipt ledger.Receipt) []ledger.Receipt {
	if slices.ContainsFunc(records, func(r ledger.Receipt) bool { return r.ID == receipt.ID }) {
		return records
	}
	return append(records, receipt)
}

package rail

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"holdfast/store/ledger"
)

// What a row of the answers may say an answer means.
const (
	meansConfirmed = "confirmed"
	meansRejected  = "rejected"
	meansNotSent   = "not_sent"
	meansPending   = "pending"
	meansUnknown   = "unknown"
	meansLook      = "look" // unknown, and a same-key resend can never tell more
)

var meanings = []string{meansConfirmed, meansRejected, meansNotSent, meansPending, meansUnknown, meansLook}

// Without rows of its own a rail confirms and accepts what HTTP says was done
// or taken on. Nothing is ever rejected by default: which refusals are definite
// is the provider's to document.
var defaultAnswers = []AnswerRow{
	{Status: []int{200, 201}, Means: meansConfirmed},
	{Status: []int{202}, Means: meansPending},
}

// classify says what one exchange proves about its own attempt. Whatever the
// configured rows do not name, and whatever cannot be read to its end, is
// unclear.
func (r *Rail) classify(o ledger.Operation, x Exchange) ledger.Answer {
	a := ledger.Answer{Finding: ledger.Unclear, HTTPStatus: x.Status}
	switch {
	case x.Written == 0 && x.Err != nil:
		a.Finding, a.Sentence = ledger.NotSent, fmt.Sprintf("Nothing was sent: %v.", x.Err)
		return a
	case !x.Whole || x.Err != nil || x.Status == 0:
		a.Sentence, a.Sighted = r.interrupted(x), r.mayBeDone(x)
		return a
	}
	body, bodyErr := readJSON(x.read())
	row := r.row(x, body, bodyErr == nil)
	means := row.Means
	a.Sighted = means == meansConfirmed || means == meansPending || bodyErr != nil && r.mayBeDone(x)
	if means != meansUnknown && means != meansLook && means != meansPending && bodyErr != nil && x.claimsJSON() {
		a.Sentence = fmt.Sprintf("The provider answered %d with a body that cannot be read, which proves nothing.", x.Status)
		return a
	}
	if means != meansUnknown && means != meansLook && r.foreign(o, x, body, row) {
		a.Sentence = fmt.Sprintf("The provider answered %d and says that it had this key before, but nothing was sent with it before: whose answer this is cannot be told.", x.Status)
		return a
	}
	switch means {
	case meansConfirmed:
		return r.confirm(o, x, body, bodyErr, row)
	case meansRejected:
		a.Finding, a.Sentence = ledger.Refused, fmt.Sprintf("The provider answered %d, a definite no on this rail.", x.Status)
	case meansNotSent:
		a.Finding, a.Sentence = ledger.NotSent, fmt.Sprintf("The provider answered %d, which on this rail says that nothing ran.", x.Status)
	case meansPending:
		a.Finding, a.Sentence = ledger.Pending, fmt.Sprintf("The provider answered %d: accepted, the outcome comes later.", x.Status)
		if receipt, err := r.extract(o, body, x.read(), r.receiptOf(row)); bodyErr == nil && err == nil {
			a.Receipt = &receipt
		}
	case meansLook:
		a.Finding = ledger.Stuck
		a.Sentence = fmt.Sprintf("The provider answered %d, which proves nothing, and which the same key would bring again.", x.Status)
	default:
		a.Sentence = fmt.Sprintf("The provider answered %d, which proves nothing.", x.Status)
	}
	return a
}

// confirm needs the provider's record of the effect, where the rail says how to
// read one. Where it does not, our own id stands in for the provider's: there
// is one receipt, and nothing of it can be compared.
func (r *Rail) confirm(o ledger.Operation, x Exchange, body any, bodyErr error, row AnswerRow) ledger.Answer {
	a := ledger.Answer{Finding: ledger.Found, HTTPStatus: x.Status, Sighted: true}
	place := r.receiptOf(row)
	if place.ID == "" {
		a.Receipt = &ledger.Receipt{ID: o.OrderID, Raw: r.masked(x.Body)}
		a.Sentence = fmt.Sprintf("The provider answered %d; this rail's answers name no receipt.", x.Status)
		return a
	}
	receipt, err := r.extract(o, body, x.read(), place)
	if bodyErr != nil || err != nil {
		a.Finding = ledger.Unclear
		a.Sentence = fmt.Sprintf("The provider answered %d, but without a receipt that can be read, which proves nothing.", x.Status)
		return a
	}
	a.Receipt = &receipt
	a.Sentence = fmt.Sprintf("The provider answered %d with receipt %s.", x.Status, receipt.ID)
	return a
}

// interrupted describes an answer that did not come, or not to its end.
func (r *Rail) interrupted(x Exchange) string {
	var fault Fault
	if !errors.As(x.Err, &fault) {
		fault = Cut
	}
	if x.Status != 0 {
		switch fault {
		case TimedOut:
			return fmt.Sprintf("The answer, %d, was not whole after %s.", x.Status, seconds(r))
		case TooLong:
			return fmt.Sprintf("The answer, %d, was longer than this program reads.", x.Status)
		}
		return fmt.Sprintf("The connection was cut in the middle of the answer, %d.", x.Status)
	}
	switch fault {
	case TimedOut:
		return fmt.Sprintf("No answer after %s.", seconds(r))
	case TooLate:
		return "The send deadline passed while the request was being written."
	case Interrupted:
		return "Sending was interrupted before an answer came."
	case Garbled:
		return "What came back was not an HTTP answer."
	case TooLong:
		return "The headers of the answer were longer than this program reads."
	}
	return "The connection was cut before an answer came."
}

func seconds(r *Rail) string { return fmt.Sprintf("%.1f s", r.promise.Timeout.Seconds()) }

// row is the first one that fits; one that means unknown if none does.
func (r *Rail) row(x Exchange, body any, readable bool) AnswerRow {
	for _, row := range r.config.Answers {
		if row.fits(x, body, readable) {
			return row
		}
	}
	return AnswerRow{Means: meansUnknown}
}

// mayBeDone reports whether an answer whose body cannot be read has the head of
// one that says: done, or taken on. What else the row asks of the body may have
// stood there.
func (r *Rail) mayBeDone(x Exchange) bool {
	return slices.ContainsFunc(r.config.Answers, func(row AnswerRow) bool {
		row.Body = nil
		return (row.Means == meansConfirmed || row.Means == meansPending) && row.fits(x, nil, false)
	})
}

// receiptOf is where an answer that a row fits holds the record.
func (r *Rail) receiptOf(row AnswerRow) Receipt {
	if row.Receipt == nil {
		return r.config.Receipt
	}
	place := *row.Receipt
	if place.Amounts == "" {
		place.Amounts = r.config.Receipt.Amounts
	}
	return place
}

// foreign reports whether the answer may be to somebody else's request: it is
// marked as the replay of an earlier one, and this operation had sent none. A
// record that names this operation is ours all the same (after a restore, the
// ledger may have forgotten a send), and so is one that agrees in everything
// that was approved.
func (r *Rail) foreign(o ledger.Operation, x Exchange, body any, row AnswerRow) bool {
	marker := r.config.Dedupe.ReplayMarker
	if marker.Header == "" || o.Attempts > 1 || !slices.Contains(x.Header.Values(marker.Header), marker.Value) {
		return false
	}
	if row.Means != meansConfirmed {
		return true
	}
	place := r.receiptOf(row)
	stamp := textAt(body, place.Stamp)
	if place.Stamp == "" {
		stamp = textAt(body, r.config.Stamp.Body)
	}
	if stamp != "" {
		return stamp != o.OrderID
	}
	t := o.Terms
	full := place.Amount != "" && t.HasAmount && place.Currency != "" && t.Currency != "" &&
		place.Recipient != "" && t.Recipient != "" && place.Reference != "" && t.Reference != ""
	return !full // what is named is compared by the ledger
}

func (row AnswerRow) fits(x Exchange, body any, readable bool) bool {
	if !slices.Contains(row.Status, x.Status) {
		return false
	}
	for name, want := range row.Header {
		if !slices.Contains(x.Header.Values(name), want) {
			return false
		}
	}
	for pointer, want := range row.Body {
		got, there := ledger.Get(body, pointer)
		if !readable || !there || !slices.ContainsFunc(oneOf(want), func(want any) bool { return sameScalar(want, got) }) {
			return false
		}
	}
	return true
}

// oneOf is what a condition allows: a scalar, or a list of them.
func oneOf(want any) []any {
	if list, ok := want.([]any); ok {
		return list
	}
	return []any{want}
}

// sameScalar compares a scalar of the configuration with one of an answer.
// Kinds differ: the number 1 is not the text "1".
func sameScalar(want, got any) bool {
	switch got := got.(type) {
	case stdjson.Number:
		a, errA := ledger.Canonical(want)
		b, errB := ledger.Canonical(got)
		return errA == nil && errB == nil && isNumber(a) && bytes.Equal(a, b)
	case string, bool, nil:
		return want == got
	}
	return false
}

// read is the body as it came, as far as it was read.
func (x Exchange) read() []byte {
	if x.full != nil {
		return x.full
	}
	return x.Body
}

// claimsJSON reports whether there is a body that calls itself JSON.
func (x Exchange) claimsJSON() bool {
	kind, _, _ := mime.ParseMediaType(x.Header.Get("Content-Type"))
	return len(x.read()) > 0 && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

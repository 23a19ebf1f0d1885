package statement

import (
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"holdfast/store/ledger"
)

// book is what the sandbox provider serves: its effects, or a list of its
// receipts.
type book struct {
	Effects  []effect `json:"effects"`
	Requests int      `json:"requests"`
	Data     []effect `json:"data"`
	HasMore  bool     `json:"has_more"`
}

type effect struct {
	Seq       int            `json:"seq"`
	Kind      string         `json:"kind"`
	ID        string         `json:"id"`
	Record    string         `json:"record"`
	Body      jsontext.Value `json:"body"`
	Amount    *int64         `json:"amount"`
	Currency  string         `json:"currency"`
	Path      string         `json:"path"`
	Key       string         `json:"key"`
	Recipient string         `json:"recipient"`
	Reference string         `json:"reference"`
	Operation string         `json:"operation"`
	At        *time.Time     `json:"at"`
	CreatedAt *time.Time     `json:"created_at"`
}

// effectKinds are by the beginning of an id, which says what the effect is in
// both lists; those that are not here move no money. A payment may be a charge or a
// payout: the provider does not know whose money it moves.
var effectKinds = map[string]ledger.LineKind{"pay_": "", "ref_": ledger.LineRefund}

func readBook(text []byte, o Options) (ledger.Statement, error) {
	d, err := newDraft("sandbox book", o)
	if err != nil {
		return ledger.Statement{}, err
	}
	var b book
	if err := json.Unmarshal(text, &b, json.RejectUnknownMembers(true)); err != nil {
		where := ""
		if e, ok := errors.AsType[*json.SemanticError](err); ok {
			where = " (" + short(string(e.JSONPointer)) + ")"
		}
		return ledger.Statement{}, refuse(0, "", "The file is JSON, but not the book of the sandbox provider%s. Save what GET /_effects answers.", where)
	}
	switch {
	case b.Effects != nil && b.Data != nil || b.Effects == nil && b.Data == nil:
		return ledger.Statement{}, refuse(0, "", "The file is JSON, but not the book of the sandbox provider: it has neither effects nor data. Save what GET /_effects answers.")
	case b.HasMore:
		return ledger.Statement{}, refuse(0, "", "The list goes on (has_more). Save what GET /_effects answers, which is whole.")
	case len(b.Effects)+len(b.Data) > lineLimit:
		return ledger.Statement{}, refuse(0, "", "The book has more than %d effects.", lineLimit)
	}
	still := 0
	for i, e := range append(b.Effects, b.Data...) {
		kind, moves := effectKinds[prefix(e.ID)]
		if !moves && (e.ID == "" || e.Amount != nil) {
			return ledger.Statement{}, refuse(i+1, "id", "%q is the id of no effect that is known.", short(e.ID))
		}
		if !moves {
			still++
			continue
		}
		if e.At == nil {
			e.At = e.CreatedAt
		}
		if e.At == nil {
			return ledger.Statement{}, refuse(i+1, "at", "The effect has no time.")
		}
		if e.At.Year() < 1970 || e.At.Year() > 2200 {
			return ledger.Statement{}, refuse(i+1, "at", "The effect's time is outside 1970 to 2200.")
		}
		if e.Amount == nil || *e.Amount < 0 {
			return ledger.Statement{}, refuse(i+1, "amount", "The effect has no amount, or one below zero.")
		}
		if _, known := o.Currencies.Digits(e.Currency); !known {
			return ledger.Statement{}, refuse(i+1, "currency", "%q is not a currency that is known. Use an ISO 4217 code, or configure it.", short(e.Currency))
		}
		l := ledger.StatementLine{Number: i + 1, LineID: e.ID, ProviderID: e.ID, Stamp: e.Operation, Kind: kind, Amount: *e.Amount, Currency: e.Currency,
			At: e.At.UnixMilli(), Counterparty: e.Recipient, Reference: e.Reference}
		if kind == ledger.LineRefund {
			l.Amount = -l.Amount
		}
		l.Gross = l.Amount
		d.Lines = append(d.Lines, l)
	}
	d.leftOut(still, "effect", "that moved no money (mail, records)")
	if len(d.Lines) > 0 {
		d.note("The book does not say whether a payment came in or went out: it is shown as money in.")
	}
	return d.finish(false)
}

func prefix(id string) string {
	before, _, found := strings.Cut(id, "_")
	if !found {
		return ""
	}
	return before + "_"
}

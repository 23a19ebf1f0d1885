package rail

import (
	stdjson "encoding/json"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"holdfast/store/ledger"
)

// readJSON reads what a provider wrote. Names must be unique and the text valid
// UTF-8, else two readers could see two receipts. Unlike an agent's payload it
// may hold any number, which stays as it was written: a large id or amount does
// not survive a float64.
func readJSON(body []byte) (v any, err error) {
	err = json.Unmarshal(body, &v, json.WithUnmarshalers(json.UnmarshalFromFunc(
		func(d *jsontext.Decoder, v *any) error {
			if d.PeekKind() != jsontext.KindNumber {
				return errors.ErrUnsupported
			}
			number, err := d.ReadValue()
			*v = stdjson.Number(number)
			return err
		})))
	return v, err
}

var errNoReceipt = errors.New("holds no receipt id")

// extract reads one record of the provider by the pointers of p. A member
// that is missing or unreadable stays empty: the ledger, which knows what must
// agree, takes that for a difference. A record without an id is no receipt.
func (r *Rail) extract(o ledger.Operation, record any, raw []byte, p Receipt) (ledger.Receipt, error) {
	receipt := ledger.Receipt{
		ID:        textAt(record, p.ID),
		Currency:  strings.ToUpper(textAt(record, p.Currency)),
		Recipient: textAt(record, p.Recipient),
		Reference: textAt(record, p.Reference),
		Stamp:     textAt(record, p.Stamp),
		Raw:       r.masked(raw[:min(len(raw), keptLimit)]),
	}
	if strings.TrimSpace(receipt.ID) == "" {
		return receipt, errNoReceipt
	}
	if p.Amount == "" {
		return receipt, nil
	}
	digits, known := 0, true
	if p.Amounts == amountsDecimal {
		currency := receipt.Currency
		if p.Currency == "" {
			currency = o.Terms.Currency
		}
		digits, known = r.config.Digits(currency)
	}
	if amount, ok := minorUnits(textAt(record, p.Amount), digits); ok && known {
		receipt.Amount = &amount
	}
	return receipt, nil
}

// longestText is more than any id, name or amount has. A longer one is not read.
const longestText = 1024

// textAt is the string or the number at a pointer, as it was written; empty
// where there is neither.
func textAt(record any, pointer string) string {
	if pointer == "" {
		return ""
	}
	var text string
	found, _ := ledger.Get(record, pointer)
	switch v := found.(type) {
	case string:
		text = v
	case stdjson.Number:
		text = v.String()
	}
	if len(text) > longestText || hasControl(text) {
		return ""
	}
	return text
}

// minorUnits reads an amount as minor units, exactly. Zeros behind the last
// digit that counts are the provider's habit (1250.000) and say nothing more;
// an exponent is no way to write an amount.
func minorUnits(text string, digits int) (int64, bool) {
	if whole, fraction, point := strings.Cut(text, "."); point && fraction != "" {
		text = whole
		if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
			text += "." + fraction
		}
	}
	amount, err := ledger.ParseDecimal(text, digits)
	return amount, err == nil
}

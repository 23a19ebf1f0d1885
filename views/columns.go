package views

import "strconv"

// FileColumns are the columns of a file that no reader knows.
type FileColumns struct {
	Trouble  string // with what was said of them; empty where nothing was
	Headless bool   // the first line looks like a line already
	Columns  []FileColumn
	Names    []string // what a column may hold
}

// FileColumn is one of them.
type FileColumn struct {
	Title  string
	Sample []string // of the first rows
	Holds  string   // as it was said before
}

// columnWords say what a column may hold.
var columnWords = map[string]string{
	"id": "the line's own id", "provider_id": "the provider's id of the payment", "amount": "amount", "debit": "amount that went out", "credit": "amount that came in",
	"indicator": "debit or credit (D, C)", "gross": "amount before the fee", "fee": "fee", "balance": "balance after the line", "currency": "currency", "date": "date", "time": "time of day",
	"reference": "reference", "stamp": "our order id", "counterparty": "name of the other side", "hash": "transaction hash", "kind": "kind of line", "batch": "payout it belongs to",
	"text": "text", "of": "id of the payment that it takes back",
}

func columnWord(name string) string {
	if word := columnWords[name]; word != "" {
		return word
	}
	return name
}

// chosen is what a column is said to hold: as just typed, else as said before.
func (p PreviewPage) chosen(i int) string {
	if v, ok := p.Form.Values[columnField(i)]; ok {
		return v
	}
	return p.Columns.Columns[i].Holds
}

func columnField(i int) string { return "column-" + strconv.Itoa(i) }

// headless is whether the first line is taken for a line.
func (p PreviewPage) headless() bool {
	if v, ok := p.Form.Values["header"]; ok {
		return v == "none"
	}
	return p.Columns.Headless
}

// namingTrouble is what is wrong with what was just typed, else with what was said
// before.
func (p PreviewPage) namingTrouble() string {
	if p.Form.Problem != "" {
		return p.Form.Problem
	}
	return p.Columns.Trouble
}

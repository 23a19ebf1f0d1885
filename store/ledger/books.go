package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// BookEntry is a transaction as tools for double entry read it: its lines add up
// to nothing in every currency. Confirmed operations and the journal of what is
// owed become such entries, and nothing else does.
type BookEntry struct {
	At    int64
	Code  string // its own id
	Text  string
	Notes []Note
	Lines []BookLine
}

// Note is one thing more to know about an entry: a name, and its text as it is.
type Note struct{ Name, Text string }

// BookLine is an amount that an account gains, or loses.
type BookLine struct {
	Account  BookAccount
	Currency string
	Amount   int64 // minor units
}

// BookAccount is an account of the books. Its name is legal wherever the books
// are read; what the name was made of is told beside it.
type BookAccount struct {
	Name  string
	Notes []Note
}

// The classes of accounts. Under what we owe and what is owed to us stand a rail,
// a customer and how far the amount got; see BookRefund.
const (
	bookRail     = "Assets:Rail"
	bookIncome   = "Income"   // what an effect brought in
	bookExpenses = "Expenses" // what an effect paid out
	bookWeOwe    = "Liabilities:WeOwe"
	bookOwedToUs = "Assets:OwedToUs"
	bookEquity   = "Equity"
)

// DirectionOf says who owes when an effect took place once too often: what went
// out twice went to a recipient, and all else was taken from a customer.
func DirectionOf(effect string) RefundDirection {
	if effect == "payout" || effect == "refund" {
		return OwedToUs
	}
	return WeOwe
}

// BookOperation is the entry of a confirmed operation: the rail against the
// effect, by what the provider's receipt says where it says an amount. Not ok: no
// money moved.
func BookOperation(o Operation, confirmedAt int64) (e BookEntry, ok bool) {
	amount, code := o.Terms.Amount, o.Terms.Currency
	receipt := ""
	if r := o.Receipt; r != nil {
		receipt, code = r.ID, cmp.Or(r.Currency, code)
		if r.Amount != nil {
			amount = *r.Amount
		}
	}
	if o.Status != Confirmed || amount == 0 || !o.Terms.HasAmount && (o.Receipt == nil || o.Receipt.Amount == nil) {
		return BookEntry{}, false
	}
	rail := BookAccount{bookRail + ":" + AccountName(o.Rail), notes("rail", o.Rail)}
	effect := BookAccount{bookIncome + ":" + AccountName(o.Effect), notes("effect", o.Effect)}
	if DirectionOf(o.Effect) == OwedToUs {
		effect.Name, amount = bookExpenses+":"+AccountName(o.Effect), -amount
	}
	return BookEntry{At: confirmedAt, Code: o.OrderID, Text: o.ActionType + " " + o.OperationID,
		Notes: notes("source", "operation", "operation", o.OperationID, "receipt", receipt, "rail", o.Rail, "effect", o.Effect, "customer", o.Terms.Customer,
			"recipient", o.Terms.Recipient, "reference", o.Terms.Reference, "agent", o.Agent, "run", o.RunID),
		Lines: []BookLine{{rail, code, amount}, {effect, code, -amount}}}, true
}

// BookRefund is the entry of a transaction in the journal of what is owed. Each of
// the journal's accounts keeps its place, so that the books add up to what the
// ledger says; what we owe is a debt, and so has the other sign.
func BookRefund(e RefundOwed, j JournalTransaction, s RefundSettlement) BookEntry {
	b := BookEntry{At: j.At, Code: fmt.Sprint(j.ID), Text: fmt.Sprintf("refund owed: %s %s", j.Event, e.ID),
		Notes: notes("source", "refund", "entry", e.ID, "event", string(j.Event), "cause", string(e.Cause), "direction", string(e.Direction),
			"operation", e.OperationID, "receipt", e.ReceiptID, "rail", e.Rail, "customer", e.Customer,
			"settlement", j.Settlement, "paid-by", s.OperationID, "proof", s.Proof, "by", j.By, "reason", j.Reason)}
	for _, p := range j.Postings {
		amount := p.Amount
		if e.Direction == WeOwe {
			amount = -amount
		}
		b.Lines = append(b.Lines, BookLine{refundAccount(e, p.Account), e.Currency, amount})
	}
	return b
}

func refundAccount(e RefundOwed, a RefundAccount) BookAccount {
	class, side := bookWeOwe, "WeOwe"
	if e.Direction == OwedToUs {
		class, side = bookOwedToUs, "OwedToUs"
	}
	if a != AccountOpen && a != AccountSettling {
		class = bookEquity + ":" + side
	}
	return BookAccount{class + ":" + AccountName(e.Rail) + ":" + AccountName(e.Customer) + ":" + AccountName(string(a)), notes("rail", e.Rail, "customer", e.Customer)}
}

// notes pairs names with texts, and leaves out what is empty.
func notes(pairs ...string) (all []Note) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, Note{pairs[i], pairs[i+1]})
		}
	}
	return all
}

// Note is the text of a note; empty: there is none of that name.
func (e BookEntry) Note(name string) string {
	for _, n := range e.Notes {
		if n.Name == name {
			return n.Text
		}
	}
	return ""
}

// BookBalances are the sums of the books so far. They have no bound: a hundred
// thousand of the largest amounts are more than 64 bits.
type BookBalances struct {
	sums     map[balanceOf]*big.Int
	accounts map[string]BookAccount
}

type balanceOf struct{ account, currency string }

// BookBalance is what an account holds of a currency.
type BookBalance struct {
	Account  BookAccount
	Currency string
	Sum      *big.Int
}

// Add takes an entry in. One that does not add up to nothing is refused: books
// with it would be wrong without showing it.
func (b *BookBalances) Add(e BookEntry) error {
	if b.sums == nil {
		b.sums, b.accounts = map[balanceOf]*big.Int{}, map[string]BookAccount{}
	}
	rest := map[string]*big.Int{}
	for _, l := range e.Lines {
		addAmount(rest, l.Currency, l.Amount)
	}
	for code, sum := range rest {
		if sum.Sign() != 0 {
			return fmt.Errorf("the transaction %s leaves %s of %s", e.Code, sum, code)
		}
	}
	for _, l := range e.Lines {
		addAmount(b.sums, balanceOf{l.Account.Name, l.Currency}, l.Amount)
		b.accounts[l.Account.Name] = l.Account
	}
	return nil
}

func addAmount[K comparable](sums map[K]*big.Int, key K, amount int64) {
	if sums[key] == nil {
		sums[key] = new(big.Int)
	}
	sums[key].Add(sums[key], big.NewInt(amount))
}

// All lists the balances by account and currency.
func (b *BookBalances) All() []BookBalance {
	var all []BookBalance
	for _, key := range slices.SortedFunc(maps.Keys(b.sums), func(x, y balanceOf) int {
		return cmp.Or(cmp.Compare(x.account, y.account), cmp.Compare(x.currency, y.currency))
	}) {
		all = append(all, BookBalance{b.accounts[key.account], key.currency, b.sums[key]})
	}
	return all
}

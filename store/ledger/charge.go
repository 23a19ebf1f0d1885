package ledger

import (
	"fmt"
	"strings"
)

// Charge is money that came in, and what of it has gone back or still may.
type Charge struct {
	ReceiptID   string
	OperationID string // empty: only a refund owed knows of it
	Rail        string
	Currency    string
	Amount      int64
	Returns     []Return
}

// Return is money of a charge that went back, is under way, or waits to go.
// Whatever is not known not to have happened counts.
type Return struct {
	OperationID string // empty: it was made elsewhere
	Amount      int64  // in the currency of the charge
}

// Returned adds up what has gone back or still may.
func (c Charge) Returned() (sum int64) {
	for _, r := range c.Returns {
		added, ok := AddAmounts(sum, r.Amount)
		if !ok {
			return c.Amount // more than anybody can count: nothing is left
		}
		sum = added
	}
	return sum
}

// Left is what may still be given back. Where more went back than came in,
// nothing is.
func (c Charge) Left() int64 { return max(0, c.Amount-c.Returned()) }

// Beyond says why a refund does not fit into what is left; empty where it does.
func (c Charge) Beyond(refund Terms, money Currencies) string {
	charge := fmt.Sprintf("the charge %s over %s", c.ReceiptID, money.Format(c.Amount, c.Currency))
	switch {
	case !strings.EqualFold(refund.Currency, c.Currency):
		return fmt.Sprintf("Of %s, %s is left to give back, and in that currency only; this asks in %s.%s", charge, money.Format(c.Left(), c.Currency), orElse(refund.Currency, "none"), c.recorded())
	case !refund.HasAmount:
		return fmt.Sprintf("Of %s, %s is left to give back, and this does not say how much.%s", charge, money.Format(c.Left(), c.Currency), c.recorded())
	case refund.Amount > c.Left():
		return fmt.Sprintf("Of %s, %s is left to give back, and this asks for %s.%s", charge, money.Format(c.Left(), c.Currency), money.Format(refund.Amount, c.Currency), c.recorded())
	}
	return ""
}

// recorded names the refunds that an agent may have forgotten.
func (c Charge) recorded() string {
	var names []string
	for _, r := range c.Returns {
		if r.OperationID != "" && len(names) < 3 {
			names = append(names, r.OperationID)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " Recorded refunds of it: " + strings.Join(names, ", ") + "."
}

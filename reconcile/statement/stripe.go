package statement

import (
	"slices"
	"strings"

	"holdfast/store/ledger"
)

// Stripe has two exports of its balance: the itemised report, with names like
// these, and the list of all activity, with titles for people.
func isStripeBalance(titles []string) bool {
	report := columnOf(titles, "balance_transaction_id") >= 0 && columnOf(titles, "reporting_category") >= 0
	list := columnOf(titles, "id") >= 0 && columnOf(titles, "Type") >= 0 && columnOf(titles, "Source") >= 0 && columnOf(titles, "Net") >= 0
	return (report || list) && columnOf(titles, "currency") >= 0 && columnOf(titles, "fee") >= 0
}

func isStripePayments(titles []string) bool {
	for _, name := range []string{"id", "Amount", "Amount Refunded", "Currency", "Status"} {
		if columnOf(titles, name) < 0 {
			return false
		}
	}
	return stripeCreated(titles) >= 0
}

func stripeCreated(titles []string) int {
	return columnOf(titles, "created_utc", "Created (UTC)", "Created date (UTC)", "created", "Created")
}

// stripeStamps are the columns in which a payment's or a refund's own data comes
// along; the ready-made adapter writes our order id under "operation".
func stripeStamps(t *table, o Options) (columns []int) {
	names := []string{"payment_metadata[operation]", "refund_metadata[operation]", "transfer_metadata[operation]", "operation (metadata)", "metadata[operation]", "Metadata: operation"}
	if title := o.Mapping.Columns["stamp"]; title != "" {
		names = []string{title}
	}
	for _, name := range names {
		if c := t.column(name); c >= 0 {
			columns = append(columns, c)
		}
	}
	return columns
}

func stampIn(r row, columns []int) string {
	for _, c := range columns {
		if s := r.cell(c); s != "" {
			return s
		}
	}
	return ""
}

// stripeKinds are reporting categories, and the older types of a balance
// transaction. What is not here is an adjustment, or a fee by its name.
var stripeKinds = map[string]ledger.LineKind{
	"charge": ledger.LineCharge, "payment": ledger.LineCharge,
	"refund": ledger.LineRefund, "payment_refund": ledger.LineRefund,
	"payout": ledger.LinePayout, "payout_reversal": ledger.LinePayout, "payout_cancel": ledger.LinePayout, "payout_failure": ledger.LinePayout,
	"dispute": ledger.LineDispute, "dispute_reversal": ledger.LineDispute,
	"transfer": ledger.LineTransfer, "transfer_reversal": ledger.LineTransfer, "topup": ledger.LineTransfer, "topup_reversal": ledger.LineTransfer,
	"network_cost": ledger.LineFee, "tax": ledger.LineFee,
}

func stripeKind(category string) ledger.LineKind {
	category = strings.ToLower(strings.ReplaceAll(category, " ", "_"))
	if k := stripeKinds[category]; k != "" {
		return k
	}
	if category == "fee" || strings.HasSuffix(category, "_fee") || strings.HasSuffix(category, "_fees") {
		return ledger.LineFee
	}
	return ledger.LineAdjustment
}

func readStripeBalance(t *table, o Options) (ledger.Statement, error) {
	o.Mapping.Amounts = amountsDecimal // both exports count in whole units
	d, err := newDraft("Stripe itemised balance report", o)
	if err != nil {
		return ledger.Statement{}, err
	}
	if t.column("balance_transaction_id") < 0 {
		d.Format = "Stripe balance activity"
	}
	id, created, currency := t.column("balance_transaction_id", "id"), stripeCreated(t.titles), t.column("currency")
	gross, fee, net := t.column("gross", "Amount"), t.column("fee"), t.column("net")
	category, source := t.column("reporting_category", "Type"), t.column("source_id", "Source")
	charge, intent := t.column("charge_id"), t.column("payment_intent_id")
	payout, text := t.column("automatic_payout_id", "Transfer"), t.column("description")
	name := t.column("customer_name", "customer_email", "customer_id")
	stamps := stripeStamps(t, o)
	if created < 0 || gross < 0 || net < 0 {
		return ledger.Statement{}, refuse(0, "", "The report has no column created_utc, gross or net. Export it with them.")
	}
	order, m, err := stripeTable(d, t, created, gross, fee, net)
	if err != nil {
		return ledger.Statement{}, err
	}
	for i, r := range t.rows {
		l := ledger.StatementLine{Number: r.line, LineID: r.cell(id), ProviderID: r.cell(source), Stamp: stampIn(r, stamps), Kind: stripeKind(r.cell(category)),
			Currency: strings.ToUpper(r.cell(currency)), Counterparty: r.cell(name), Batch: r.cell(payout), Text: r.cell(text)}
		if l.LineID == "" {
			return ledger.Statement{}, refuse(r.line, t.title(id), "The line has no balance transaction. Export the itemised report again.")
		}
		// A receipt of a payment is called by its payment intent.
		if p := r.cell(intent); p != "" && l.Kind == ledger.LineCharge {
			l.ProviderID = p
		} else if l.ProviderID == "" {
			l.ProviderID = r.cell(charge)
		}
		if l.Kind == ledger.LineRefund || l.Kind == ledger.LineDispute || strings.Contains(r.cell(category), "refund") {
			if l.Of = r.cell(intent); l.Of == "" {
				l.Of = r.cell(charge)
			}
		}
		if l.Stamp == "" {
			l.Stamp = orderIn(l.Text)
		}
		if l.At, l.DateOnly, err = d.when(t, r, created, order, ""); err != nil {
			return ledger.Statement{}, err
		}
		if err := amounts(d, m, i, &l, gross, fee, net, 1); err != nil {
			return ledger.Statement{}, err
		}
		d.Lines = append(d.Lines, l)
	}
	d.sayTheSign()
	return d.finish(false)
}

// stripeTable reads what both exports have in common: moments in UTC (a column
// without that in its name is in the report's own zone) and amounts.
func stripeTable(d *draft, t *table, created int, columns ...int) (order string, m *money, err error) {
	if created >= 0 && strings.Contains(strings.ToLower(t.title(created)), "utc") {
		if d.o.Mapping.TimeZone != "" && d.o.Mapping.TimeZone != "UTC" {
			d.note("The report's moments are in UTC; its days are those of %s.", d.zone)
		}
	} else {
		d.note("The report has no moments in UTC; they are read in the time zone %s.", d.zone)
	}
	t.dropTotals(created)
	d.Notes = append(d.Notes, t.left...)
	if len(t.rows) == 0 {
		return "", nil, refuse(0, "", "The report has a header and no line below it. Export a time in which something happened.")
	}
	if order = d.o.Mapping.Dates; order == "" {
		if order, err = datesOf(t, created); err != nil {
			return "", nil, err
		}
	}
	m, err = readMoney(t, d.o, columns...)
	return order, m, err
}

// amounts fills in gross, fee and net, which must agree to the last unit. sign
// is 1 where the fee is positive when it was kept, -1 where it is negative.
func amounts(d *draft, m *money, i int, l *ledger.StatementLine, gross, fee, net int, sign int64) error {
	var err error
	var hasGross, hasNet bool
	if l.Gross, hasGross, err = m.at(i, gross, l.Currency, d.o.Currencies); err != nil {
		return err
	}
	if l.Fee, _, err = m.at(i, fee, l.Currency, d.o.Currencies); err != nil {
		return err
	}
	if l.Amount, hasNet, err = m.at(i, net, l.Currency, d.o.Currencies); err != nil {
		return err
	}
	l.Fee *= sign
	switch {
	case !hasGross || !hasNet:
		return refuse(l.Number, m.table.title(gross), "The line has no gross or no net amount.")
	case !adds(l.Amount, l.Fee, l.Gross):
		return refuse(l.Number, m.table.title(net), "Gross, fee and net of the line do not agree. Export the file again, and do not change it.")
	}
	return nil
}

// paid are the statuses of a payment that moved money; unpaid those that did
// not. A status that is in neither is not guessed at.
var (
	paid   = []string{"paid", "succeeded", "refunded", "partially refunded", "partial refund", "disputed", "refund pending", "captured"}
	unpaid = []string{"failed", "canceled", "cancelled", "incomplete", "requires_payment_method", "requires_action", "requires_confirmation", "requires_capture", "uncaptured", "blocked", "pending", "processing", "early fraud warning", "expired"}
)

func readStripePayments(t *table, o Options) (ledger.Statement, error) {
	o.Mapping.Amounts = amountsDecimal
	d, err := newDraft("Stripe payments export", o)
	if err != nil {
		return ledger.Statement{}, err
	}
	id, created, currency := t.column("id"), stripeCreated(t.titles), t.column("Currency")
	gross, back, fee := t.column("Amount"), t.column("Amount Refunded"), t.column("Fee")
	into, status, captured := t.column("Converted Currency"), t.column("Status"), t.column("Captured")
	intent, text := t.column("PaymentIntent ID", "Payment Intent ID", "payment_intent_id"), t.column("Description")
	name, payout := t.column("Customer Email", "Customer Description", "Customer ID"), t.column("Transfer")
	stamps := stripeStamps(t, o)
	order, m, err := stripeTable(d, t, created, gross, back, fee)
	if err != nil {
		return ledger.Statement{}, err
	}
	left, refunded, converted := 0, 0, 0
	for i, r := range t.rows {
		word := strings.ToLower(r.cell(status))
		switch {
		case slices.Contains(unpaid, word) || strings.EqualFold(r.cell(captured), "false"):
			left++
			continue
		case !slices.Contains(paid, word):
			return ledger.Statement{}, refuse(r.line, t.title(status), "%q is not a status that is known to have moved money, or not to. Leave the line out of the export, or use the balance report.", short(r.cell(status)))
		}
		l := ledger.StatementLine{Number: r.line, LineID: r.cell(id), ProviderID: r.cell(id), Stamp: stampIn(r, stamps), Kind: ledger.LineCharge,
			Currency: strings.ToUpper(r.cell(currency)), Counterparty: r.cell(name), Batch: r.cell(payout), Text: r.cell(text)}
		if p := r.cell(intent); p != "" {
			l.ProviderID = p
		}
		if l.Stamp == "" {
			l.Stamp = orderIn(l.Text)
		}
		if l.LineID == "" {
			return ledger.Statement{}, refuse(r.line, t.title(id), "The line has no id. Export it again.")
		}
		if l.At, l.DateOnly, err = d.when(t, r, created, order, ""); err != nil {
			return ledger.Statement{}, err
		}
		var given bool
		if l.Gross, given, err = m.at(i, gross, l.Currency, o.Currencies); err != nil {
			return ledger.Statement{}, err
		}
		if !given || l.Gross < 0 {
			return ledger.Statement{}, refuse(r.line, t.title(gross), "A payment has an amount that came in; %q is none.", short(r.cell(gross)))
		}
		if c := r.cell(into); c != "" && !strings.EqualFold(c, l.Currency) {
			converted++ // its fee is of the other currency
		} else if l.Fee, _, err = m.at(i, fee, l.Currency, o.Currencies); err != nil {
			return ledger.Statement{}, err
		}
		if l.Amount, given = ledger.AddAmounts(l.Gross, -l.Fee); !given {
			return ledger.Statement{}, refuse(r.line, t.title(fee), "The amounts of the line are too large.")
		}
		if b, _, err := m.at(i, back, l.Currency, o.Currencies); err != nil {
			return ledger.Statement{}, err
		} else if b != 0 {
			refunded++
		}
		d.Lines = append(d.Lines, l)
	}
	d.leftOut(left, "payment", "not paid")
	if refunded > 0 {
		d.note("Of what was paid back (%s), this export tells neither when nor by which refund; the balance report does.", count(refunded, "payment"))
	}
	if converted > 0 {
		d.note("The fee of %s is of another currency and is not taken.", count(converted, "converted payment"))
	}
	d.sayTheSign()
	return d.finish(false)
}

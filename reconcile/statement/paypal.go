package statement

import (
	"slices"
	"strings"
	"time"

	"holdfast/store/ledger"
)

// paypalTitles are the titles of PayPal's activity download, in the languages
// that are read.
var paypalTitles = map[string][]string{
	"date": {"Date", "Datum"}, "time": {"Time", "Uhrzeit"}, "zone": {"TimeZone", "Time Zone", "Zeitzone"},
	"name": {"Name"}, "type": {"Type", "Typ", "Description", "Beschreibung"}, "status": {"Status"}, "currency": {"Currency", "Währung"},
	"gross": {"Gross", "Brutto"}, "fee": {"Fee", "Gebühr"}, "net": {"Net", "Netto"},
	"id": {"Transaction ID", "Transaktionscode"}, "of": {"Reference Txn ID", "Zugehöriger Transaktionscode", "Txn-Referenzkennung"},
	"invoice": {"Invoice Number", "Invoice ID", "Rechnungsnummer"}, "custom": {"Custom Number", "Individuelle Nummer"},
	"subject": {"Subject", "Betreff"}, "item": {"Item Title", "Artikelbezeichnung"}, "balance": {"Balance", "Guthaben"},
	"impact": {"Balance Impact", "Auswirkung auf Guthaben"}, "from": {"From Email Address", "Absender E-Mail-Adresse"}, "to": {"To Email Address", "Empfänger E-Mail-Adresse"},
}

func isPayPal(titles []string) bool {
	for _, name := range []string{"date", "time", "zone", "type", "currency", "gross", "fee", "net", "id"} {
		if columnOf(titles, paypalTitles[name]...) < 0 {
			return false
		}
	}
	return true
}

// The words that a download has for what happened to a transaction.
var (
	paypalDone   = []string{"completed", "cleared", "refunded", "partially refunded", "reversed", "paid", "abgeschlossen", "zurückgezahlt", "teilweise zurückgezahlt", "rückgängig gemacht"}
	paypalUndone = []string{"pending", "held", "denied", "failed", "canceled", "cancelled", "expired", "unclaimed", "uncleared", "returned", "placed", "removed", "voided", "ausstehend", "abgelehnt", "abgebrochen", "abgelaufen", "storniert"}
	paypalMemo   = []string{"memo"}
	paypalOut    = []string{"debit", "soll"}
	paypalIn     = []string{"credit", "haben"}
)

// paypalZones are the abbreviations that downloads carry. Two countries may use
// the same; these are the ones that PayPal's sites are in.
var paypalZones = map[string]int{ // minutes east of Greenwich
	"UTC": 0, "GMT": 0, "WET": 0, "BST": 60, "WEST": 60, "CET": 60, "MEZ": 60, "CEST": 120, "MESZ": 120, "EET": 120, "EEST": 180,
	"PST": -480, "PDT": -420, "MST": -420, "MDT": -360, "CST": -360, "CDT": -300, "EST": -300, "EDT": -240, "HST": -600, "AKST": -540, "AKDT": -480,
	"JST": 540, "SGT": 480, "HKT": 480, "AEST": 600, "AEDT": 660, "NZST": 720, "NZDT": 780, "BRT": -180,
}

func paypalZone(name string, seen map[string]*time.Location) (*time.Location, bool) {
	if z := seen[name]; z != nil {
		return z, true
	}
	var zone *time.Location
	if minutes, ok := paypalZones[name]; ok {
		zone = time.FixedZone(name, minutes*60)
	} else if offset, ok := strings.CutPrefix(name, "GMT"); ok && offset != "" {
		zone, _ = readOffset(offset)
	} else if strings.Contains(name, "/") {
		zone, _ = time.LoadLocation(name)
	}
	if zone == nil {
		return nil, false
	}
	seen[name] = zone
	return zone, true
}

func readPayPal(t *table, o Options) (ledger.Statement, error) {
	o.Mapping.Amounts = amountsDecimal
	d, err := newDraft("PayPal activity download", o)
	if err != nil {
		return ledger.Statement{}, err
	}
	c := map[string]int{}
	for name, titles := range paypalTitles {
		c[name] = t.column(titles...)
	}
	t.dropTotals(c["date"])
	d.Notes = append(d.Notes, t.left...)
	if len(t.rows) == 0 {
		return ledger.Statement{}, refuse(0, "", "The download has a header and no line below it. Export a time in which something happened.")
	}
	order := o.Mapping.Dates
	if order == "" {
		if order, err = datesOf(t, c["date"]); err != nil {
			return ledger.Statement{}, err
		}
	}
	m, err := readMoney(t, o, c["gross"], c["fee"], c["net"])
	if err != nil {
		return ledger.Statement{}, err
	}
	undone, memo := 0, 0
	zones := map[string]*time.Location{}
	for i, r := range t.rows {
		word, impact := strings.ToLower(r.cell(c["status"])), strings.ToLower(r.cell(c["impact"]))
		switch {
		case slices.Contains(paypalMemo, impact):
			memo++
			continue
		case slices.Contains(paypalUndone, word):
			undone++
			continue
		case c["status"] >= 0 && !slices.Contains(paypalDone, word):
			return ledger.Statement{}, refuse(r.line, t.title(c["status"]), "%q is not a status that is known to have moved money, or not to. Leave such lines out of the download.", short(r.cell(c["status"])))
		}
		l := ledger.StatementLine{Number: r.line, LineID: r.cell(c["id"]), ProviderID: r.cell(c["id"]), Reference: r.cell(c["invoice"]), Currency: strings.ToUpper(r.cell(c["currency"])), Counterparty: r.cell(c["name"])}
		zone, known := paypalZone(r.cell(c["zone"]), zones)
		if !known {
			return ledger.Statement{}, refuse(r.line, t.title(c["zone"]), "%q is not a time zone that is known. Set the account's zone to one with a name, such as Europe/Berlin, and export again.", short(r.cell(c["zone"])))
		}
		if l.LineID == "" {
			return ledger.Statement{}, refuse(r.line, t.title(c["id"]), "The line has no transaction ID. Export it again.")
		}
		if l.At, l.DateOnly, err = d.whenIn(t, r, c["date"], order, r.cell(c["time"]), zone); err != nil {
			return ledger.Statement{}, err
		}
		if l.DateOnly {
			return ledger.Statement{}, refuse(r.line, t.title(c["time"]), "The line has no time of day. Export it again, with its time.")
		}
		if err := amounts(d, m, i, &l, c["gross"], c["fee"], c["net"], -1); err != nil {
			return ledger.Statement{}, err
		}
		if l.Amount > 0 && slices.Contains(paypalOut, impact) || l.Amount < 0 && slices.Contains(paypalIn, impact) {
			return ledger.Statement{}, refuse(r.line, t.title(c["impact"]), "The line says %s, and its net amount %s. Export it again.", short(r.cell(c["impact"])), short(r.cell(c["net"])))
		}
		l.Kind = paypalKind(r.cell(c["type"]), l.Gross)
		l.Stamp = r.cell(c["custom"])
		if l.Stamp == "" {
			l.Stamp = orderIn(l.Reference)
		}
		if l.Counterparty == "" && l.Amount > 0 {
			l.Counterparty = r.cell(c["from"])
		} else if l.Counterparty == "" {
			l.Counterparty = r.cell(c["to"])
		}
		l.Text = r.cell(c["type"])
		for _, more := range []string{r.cell(c["subject"]), r.cell(c["item"])} {
			if more != "" {
				l.Text += " · " + more
			}
		}
		if of := r.cell(c["of"]); of != "" {
			if l.Kind == ledger.LineRefund || l.Kind == ledger.LineDispute || l.Kind == ledger.LineAdjustment {
				l.Of = of
			}
			l.Text += " · of " + of
		}
		d.Lines = append(d.Lines, l)
	}
	d.leftOut(undone, "transaction", "not completed")
	d.leftOut(memo, "memo", "without effect on the balance")
	d.note("Dates are read %s, each in the time zone beside it.", dateWords[order])
	d.sayTheSign()
	if b, err := readMoney(t, o, c["balance"]); err == nil && c["balance"] >= 0 && len(d.Lines) == len(t.rows) {
		if b.mark == "" {
			b.mark = m.mark
		}
		if err := d.running(c["balance"], b, false); err != nil {
			return ledger.Statement{}, err
		}
	}
	return d.finish(false)
}

// paypalKind reads the type, which is a sentence for people.
func paypalKind(kind string, gross int64) ledger.LineKind {
	kind = strings.ToLower(kind)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(kind, w) })
	}
	switch {
	case has("refund", "rückzahlung"):
		return ledger.LineRefund
	case has("chargeback", "dispute", "käuferbeschwerde"):
		return ledger.LineDispute
	case has("conversion", "währungsumrechnung", "hold", "reversal", "reserve", "einbehaltung"):
		return ledger.LineAdjustment
	case has("withdrawal", "abbuchung"):
		return ledger.LinePayout
	case has("fee", "gebühr"):
		return ledger.LineFee
	case has("deposit", "transfer", "gutschrift"):
		return ledger.LineTransfer
	case has("payment", "zahlung", "checkout") && gross > 0:
		return ledger.LineCharge
	case has("payment", "zahlung"):
		return ledger.LineTransfer
	}
	return ""
}

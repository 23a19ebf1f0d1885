package statement

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"

	"holdfast/store/ledger"
)

// draft is a statement that is being read.
type draft struct {
	ledger.Statement
	o    Options
	zone *time.Location
}

func newDraft(format string, o Options) (*draft, error) {
	d := &draft{o: o, zone: time.UTC}
	d.Format, d.Account = format, o.Mapping.Account
	if name := o.Mapping.TimeZone; name != "" {
		zone, err := time.LoadLocation(name)
		if err != nil {
			return nil, refuse(0, "", "There is no time zone %q; write one such as Europe/Berlin under statement.time_zone.", name)
		}
		d.zone = zone
	}
	return d, nil
}

func (d *draft) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

// leftOut notes how much of something is no movement.
func (d *draft) leftOut(n int, what, why string) {
	if n > 0 {
		d.note("Left out: %s %s.", count(n, what), why)
	}
}

// count is 1 payment, 2 payments, 3 entries, 4 batches.
func count(n int, what string) string {
	switch stem, y := strings.CutSuffix(what, "y"); {
	case n == 1:
	case y:
		what = stem + "ies"
	case strings.HasSuffix(what, "h"):
		what += "es"
	default:
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// order is our order_id, wherever it stands in a text.
var order = regexp.MustCompile(`\bord_[0-9A-HJKMNP-TV-Z]{26}\b`)

func orderIn(texts ...string) string {
	for _, t := range texts {
		if strings.Contains(t, "ord_") {
			if id := order.FindString(t); id != "" {
				return id
			}
		}
	}
	return ""
}

// finish gives every line its identity and looks at the whole: sums, days,
// balances. loose: the file's own names of lines may be used twice.
func (d *draft) finish(loose bool) (ledger.Statement, error) {
	if len(d.Lines) == 0 && d.Opening == nil && d.Closing == nil {
		return ledger.Statement{}, refuse(0, "", "No movement stands in the file. %s", strings.Join(d.Notes, " "))
	}
	if d.Lines == nil {
		d.Lines = []ledger.StatementLine{}
	}
	h := sha256.New()
	var buf []byte
	byName := map[string]int{}
	twice := map[string]bool{}
	for i := range d.Lines {
		l := &d.Lines[i]
		h.Reset()
		buf = d.appendContent(buf[:0], l)
		h.Write(buf)
		l.Content = hex.EncodeToString(h.Sum(nil))
		if l.LineID == "" {
			continue
		}
		first, seen := byName[l.LineID]
		switch {
		case !seen:
			byName[l.LineID] = i
		case d.Lines[first].Content == l.Content:
		case loose:
			twice[l.LineID] = true
		default:
			return ledger.Statement{}, refuse(l.Number, "", "%q already stood on line %d, with other content, so it names no line. If the column names payments and not lines, map it as provider_id instead of id.", short(l.LineID), d.Lines[first].Number)
		}
	}
	times := make(map[string]int, len(d.Lines))
	for i := range d.Lines {
		l := &d.Lines[i]
		if twice[l.LineID] {
			l.LineID = ""
		}
		name := "id " + l.LineID
		if l.LineID == "" {
			name = l.Content
		}
		times[name]++
		l.Occurrence = times[name]
	}
	if len(twice) > 0 {
		d.note("More than one line has the reference of another (%s); these lines are known by their content.", count(len(twice), "reference"))
	}
	d.Zone = d.zone.String()
	for i := range d.Lines {
		if l := &d.Lines[i]; l.DateOnly {
			l.Zone = d.Zone
		}
	}
	d.period()
	return d.Statement, d.balance()
}

// appendContent writes what the file says of a line so that no two lines share
// it that differ. A day is written as a day: it is the same day whatever the
// zone that was named for it.
func (d *draft) appendContent(b []byte, l *ledger.StatementLine) []byte {
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	for _, s := range []string{l.LineID, l.ProviderID, l.Stamp, l.Hash, string(l.Kind), l.Currency, l.Counterparty, l.Reference, l.Batch, l.Text} {
		text(s)
	}
	b = binary.AppendVarint(b, l.Amount)
	b = binary.AppendVarint(b, l.Gross)
	b = binary.AppendVarint(b, l.Fee)
	if l.DateOnly {
		return time.UnixMilli(l.At).In(d.zone).AppendFormat(b, time.DateOnly)
	}
	return binary.AppendVarint(b, l.At)
}

// period fills in the days that a file does not state: from its first line's
// day to the end of its last line's.
func (d *draft) period() {
	if len(d.Lines) == 0 {
		return
	}
	first, last := d.Lines[0].At, d.Lines[0].At
	for _, l := range d.Lines {
		first, last = min(first, l.At), max(last, l.At)
	}
	f := time.UnixMilli(first).In(d.zone)
	if start, err := dayStart(f.Year(), int(f.Month()), f.Day(), d.zone); err == nil {
		f = start
	}
	if d.From == 0 {
		d.From = f.UnixMilli()
	}
	if d.To == 0 {
		d.To = nextDay(time.UnixMilli(last).In(d.zone)).UnixMilli()
	}
}

// balance looks whether opening and lines make closing, where both are stated.
func (d *draft) balance() error {
	sums := map[string]int64{}
	for _, l := range d.Lines {
		sum, ok := ledger.AddAmounts(sums[l.Currency], l.Amount)
		if !ok {
			return refuse(l.Number, "", "The amounts of the file are too large to add up.")
		}
		sums[l.Currency] = sum
	}
	if d.Opening == nil || d.Closing == nil {
		return nil
	}
	money := func(n int64) string { return d.o.Currencies.Format(n, d.Currency) }
	sum, ok := ledger.AddAmounts(*d.Opening, sums[d.Currency])
	if !ok || sum != *d.Closing {
		return refuse(0, "", "The file does not add up: opening %s and %s of together %s make %s, but it states a closing balance of %s. Lines are missing; export it again.",
			money(*d.Opening), count(len(d.Lines), "line"), money(sums[d.Currency]), money(sum), money(*d.Closing))
	}
	d.note("Opening %s and %s make the closing %s that is stated.", money(*d.Opening), count(len(d.Lines), "line"), money(*d.Closing))
	return nil
}

// sayTheSign tells in words how the sign was read, by a line of the file.
func (d *draft) sayTheSign() {
	for _, out := range []bool{true, false} {
		for _, l := range d.Lines {
			if l.Amount < 0 == out && l.Amount != 0 {
				way := map[bool]string{true: "money out", false: "money in"}[out]
				d.note("%s = %s (line %d).", strings.Replace(d.o.Currencies.Format(l.Amount, l.Currency), "-", "−", 1), way, l.Number)
				break
			}
		}
	}
}

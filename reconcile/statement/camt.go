package statement

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"holdfast/store/ledger"
)

// What one element of a file may hold: a hostile one is refused before it is
// kept.
const (
	depthLimit   = 40
	elementLimit = 200_000 // in one entry; a batch of ten thousand payments is below
)

func looksLikeXML(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(data, utf8Mark), " \t\r\n"), []byte("<"))
}

// element is one XML element with what is in it. Names are without their
// namespaces: the document's own was looked at.
type element struct {
	name, text, currency string
	line                 int
	children             []*element
}

// get follows a path of names; nil where there is none.
func (e *element) get(path ...string) *element {
	for _, name := range path {
		if e == nil {
			return nil
		}
		i := slices.IndexFunc(e.children, func(c *element) bool { return c.name == name })
		if i < 0 {
			return nil
		}
		e = e.children[i]
	}
	return e
}

func (e *element) all(name string) (found []*element) {
	if e == nil {
		return nil
	}
	for _, c := range e.children {
		if c.name == name {
			found = append(found, c)
		}
	}
	return found
}

// value is the text at a path.
func (e *element) value(path ...string) string {
	if e = e.get(path...); e == nil {
		return ""
	}
	return strings.TrimSpace(e.text)
}

var xmlEncoding = regexp.MustCompile(`^<\?xml[^>]*\bencoding\s*=\s*["']([A-Za-z0-9._-]+)["']`)

// xmlNames are encodings as XML calls them.
var xmlNames = map[string]string{"utf-8": "", "us-ascii": "", "utf-16": "", "utf-16le": "utf-16le", "utf-16be": "utf-16be", "iso-8859-1": "iso-8859-1", "latin1": "iso-8859-1", "iso-8859-15": "iso-8859-15", "windows-1252": "windows-1252"}

// camt reads one camt.053 document.
type camt struct {
	*draft
	x        *xml.Decoder
	version  string
	accounts []string
	stmts    []*stmt
	left     map[string]int // entries that were not booked, by status
	whole    int            // batches that stayed one line
}

// stmt is one statement of the document.
type stmt struct {
	account, currency string
	from, to          time.Time
	opening, closing  *int64
	opened            bool // by its own OPBD
	lines             []ledger.StatementLine
	line              int
}

func readCamt(data []byte, o Options) (ledger.Statement, error) {
	if err := o.expects("camt053", "XML"); err != nil {
		return ledger.Statement{}, err
	}
	declared := o.Mapping.Encoding
	if m := xmlEncoding.FindSubmatch(bytes.TrimPrefix(data[:min(len(data), 300)], utf8Mark)); m != nil {
		name, known := xmlNames[strings.ToLower(string(m[1]))]
		if !known {
			return ledger.Statement{}, refuse(1, "", "The file says that it is written in %q, which is not read. Ask the bank for UTF-8.", short(string(m[1])))
		}
		declared = name
	}
	text, err := decode(data, declared)
	if err != nil {
		return ledger.Statement{}, err
	}
	d, err := newDraft("camt.053", o)
	if err != nil {
		return ledger.Statement{}, err
	}
	d.Account = ""
	c := &camt{draft: d, x: xml.NewDecoder(bytes.NewReader(text)), left: map[string]int{}}
	c.x.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // it is UTF-8 by now
	if err := c.document(); err != nil {
		return ledger.Statement{}, err
	}
	return c.join()
}

// next is the next token that means something.
func (c *camt) next() (xml.Token, error) {
	for {
		t, err := c.x.Token()
		if err != nil {
			line, _ := c.x.InputPos()
			if errors.Is(err, io.EOF) {
				return nil, refuse(line, "", "The file ends before its document does. It is cut off; fetch it again.")
			}
			return nil, refuse(line, "", "The file is not well-formed XML. Fetch it again, and do not change it.")
		}
		switch t.(type) {
		case xml.Directive:
			line, _ := c.x.InputPos()
			return nil, refuse(line, "", "The file has a document type of its own (DOCTYPE), which no bank's statement has. It is not read.")
		case xml.Comment, xml.ProcInst:
			continue
		}
		return t, nil
	}
}

const camtSpace = "urn:iso:std:iso:20022:tech:xsd:"

// document reads down to the statements, and each by itself, so that no more
// than one entry is kept as XML.
func (c *camt) document() error {
	root, err := c.open()
	if err != nil {
		return err
	}
	line, _ := c.x.InputPos()
	version, ok := strings.CutPrefix(root.Name.Space, camtSpace)
	switch {
	case root.Name.Local != "Document" || !ok:
		return refuse(line, "", "The file is XML, but no ISO 20022 document. Ask the bank for camt.053.")
	case version != "camt.053.001.02" && version != "camt.053.001.08":
		return refuse(line, "", "The file is %s. What is read is camt.053.001.02 and camt.053.001.08, the end-of-day statement; ask the bank for one of them.", short(version))
	}
	c.version, c.Format = version, version
	message, err := c.open()
	if err != nil {
		return err
	}
	if message.Name.Local != "BkToCstmrStmt" {
		line, _ := c.x.InputPos()
		return refuse(line, message.Name.Local, "The document holds no statement (BkToCstmrStmt).")
	}
	for {
		t, err := c.next()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.EndElement:
			return c.end()
		case xml.StartElement:
			if t.Name.Local == "Stmt" {
				err = c.stmt()
			} else {
				var e *element
				budget := elementLimit
				if e, err = c.element(t, 3, &budget); err == nil && strings.EqualFold(e.value("MsgPgntn", "LastPgInd"), "false") {
					err = refuse(e.line, "LastPgInd", "The file is page %s of several. Ask the bank for the whole statement in one file.", short(e.value("MsgPgntn", "PgNb")))
				}
			}
			if err != nil {
				return err
			}
		}
	}
}

// end looks that nothing but the document's end follows.
func (c *camt) end() error {
	depth := 1
	for {
		t, err := c.x.Token()
		if errors.Is(err, io.EOF) && depth == 0 {
			return nil
		}
		line, _ := c.x.InputPos()
		switch t := t.(type) {
		case xml.EndElement:
			depth--
			continue
		case xml.Comment, xml.ProcInst:
			continue
		case xml.CharData:
			if len(bytes.TrimSpace(t)) == 0 {
				continue
			}
		}
		return refuse(line, "", "Something stands in the file after the statements. It is not wholly understood; fetch it again.")
	}
}

// open is the next element's start.
func (c *camt) open() (xml.StartElement, error) {
	for {
		t, err := c.next()
		if err != nil {
			return xml.StartElement{}, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			return t, nil
		case xml.EndElement:
			line, _ := c.x.InputPos()
			return xml.StartElement{}, refuse(line, "", "The document is empty.")
		}
	}
}

// element keeps one element with what is in it, inside limits.
func (c *camt) element(start xml.StartElement, depth int, budget *int) (*element, error) {
	e := &element{name: start.Name.Local}
	e.line, _ = c.x.InputPos()
	for _, a := range start.Attr {
		if a.Name.Local == "Ccy" {
			e.currency = a.Value
		}
	}
	if *budget--; *budget < 0 || depth > depthLimit {
		return nil, refuse(e.line, e.name, "The entry is too deep or too large to be a bank's.")
	}
	for {
		t, err := c.next()
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			child, err := c.element(t, depth+1, budget)
			if err != nil {
				return nil, err
			}
			e.children = append(e.children, child)
		case xml.CharData:
			if len(e.text)+len(t) > fieldLimit {
				return nil, refuse(e.line, e.name, "The text is longer than %d KiB.", fieldLimit>>10)
			}
			if len(bytes.TrimSpace(t)) > 0 || e.text != "" {
				e.text += string(t)
			}
		case xml.EndElement:
			return e, nil
		}
	}
}

func (c *camt) stmt() error {
	s := &stmt{}
	s.line, _ = c.x.InputPos()
	var balances []*element
	for {
		t, err := c.next()
		if err != nil {
			return err
		}
		start, ok := t.(xml.StartElement)
		if _, end := t.(xml.EndElement); end {
			break
		}
		if !ok {
			continue
		}
		budget := elementLimit
		e, err := c.element(start, 4, &budget)
		if err != nil {
			return err
		}
		switch e.name {
		case "Acct":
			s.account = e.value("Id", "IBAN")
			if s.account == "" {
				s.account = e.value("Id", "Othr", "Id")
			}
			s.currency = e.value("Ccy")
		case "FrToDt":
			err = c.days(s, e)
		case "Bal":
			balances = append(balances, e)
		case "StmtPgntn":
			if strings.EqualFold(e.value("LastPgInd"), "false") {
				err = refuse(e.line, "LastPgInd", "The statement is page %s of several. Ask the bank for the whole statement in one file.", short(e.value("PgNb")))
			}
		case "Ntry":
			err = c.entry(s, e)
		}
		if err != nil {
			return err
		}
	}
	if s.account == "" {
		return refuse(s.line, "Acct", "The statement names no account.")
	}
	for _, b := range balances {
		if err := c.stated(s, b); err != nil {
			return err
		}
	}
	c.stmts = append(c.stmts, s)
	return nil
}

// days reads the days that a statement is about. A moment at midnight is the
// end of the day before it.
func (c *camt) days(s *stmt, e *element) error {
	for _, side := range []struct {
		to    bool
		names []string
	}{{false, []string{"FrDtTm", "FrDt"}}, {true, []string{"ToDtTm", "ToDt"}}} {
		for _, name := range side.names {
			text := e.value(name)
			if text == "" {
				continue
			}
			t, dayOnly, err := c.moment(e.get(name))
			if err != nil {
				return err
			}
			t = t.In(c.zone)
			switch {
			case !side.to:
				s.from = t
			case !dayOnly && t.Hour() == 0 && t.Minute() == 0 && t.After(s.from):
				s.to = t
			default:
				s.to = nextDay(t)
			}
			break
		}
	}
	if !s.from.IsZero() && !s.to.IsZero() && !s.to.After(s.from) {
		return refuse(e.line, "FrToDt", "The statement ends before it begins.")
	}
	return nil
}

// moment reads a date of XML: a day, or a day with a time. A day keeps no zone,
// whatever stands behind it: the bank means its own calendar.
func (c *camt) moment(e *element) (time.Time, bool, error) {
	text := strings.TrimSpace(e.text)
	day := text[:min(len(text), len(time.DateOnly))]
	w, err := readWritten(day)
	if err == nil && len(day) == len(time.DateOnly) {
		var y, m, d int
		if y, m, d, err = w.order("iso"); err == nil {
			rest := text[len(day):]
			if rest == "" || rest[0] != 'T' {
				if _, bad := readOffset(rest); rest == "" || bad == nil {
					t, err := dayStart(y, m, d, c.zone)
					if err == nil {
						return t, true, nil
					}
				}
			} else if t, _, err := moment(y, m, d, rest[1:], c.zone); err == nil && len(rest) > 1 {
				return t, false, nil
			}
		}
	}
	return time.Time{}, false, refuse(e.line, e.name, "%q is not a day of the calendar as XML writes it (2026-04-03), or not one in %s.", short(text), c.zone)
}

// money reads an amount with the side that it stands on.
func (c *camt) money(e *element, side string) (int64, error) {
	amount, err := c.o.Currencies.MinorUnits(xmlDecimal(strings.TrimSpace(e.text), e.currency, c.o.Currencies), e.currency)
	if err != nil {
		return 0, refuse(e.line, e.name, "%q cannot be read as an amount of %q: %s.", short(strings.TrimSpace(e.text)), short(e.currency), err)
	}
	switch {
	case amount < 0:
		return 0, refuse(e.line, e.name, "An amount of camt.053 has no sign; %q has one.", short(e.text))
	case side == "CRDT":
		return amount, nil
	case side == "DBIT":
		return -amount, nil
	}
	return 0, refuse(e.line, "CdtDbtInd", "%q says neither CRDT nor DBIT.", short(side))
}

// xmlDecimal drops zeros that are more than the currency has: XML's mark is
// always the point, so 48.000 is no thousand.
func xmlDecimal(s, currency string, known ledger.Currencies) string {
	digits, _ := known.Digits(currency)
	whole, fraction, point := strings.Cut(s, ".")
	if !point || fraction == "" {
		return s
	}
	return whole + "." + zeros(fraction, digits)
}

// stated keeps opening and closing. Other balances are of no day's end.
func (c *camt) stated(s *stmt, e *element) error {
	kind := e.value("Tp", "CdOrPrtry", "Cd")
	if kind != "OPBD" && kind != "PRCD" && kind != "CLBD" {
		return nil
	}
	a := e.get("Amt")
	if a == nil {
		return refuse(e.line, "Bal", "The balance has no amount.")
	}
	amount, err := c.money(a, e.value("CdtDbtInd"))
	if err != nil {
		return err
	}
	if err := s.one(a); err != nil {
		return err
	}
	var at time.Time
	if on := e.get("Dt"); on != nil && len(on.children) == 1 {
		if at, _, err = c.moment(on.children[0]); err != nil {
			return err
		}
		at = at.In(c.zone)
	}
	switch {
	case kind == "CLBD" && s.closing != nil, kind == "OPBD" && s.opened:
		return refuse(e.line, "Bal", "The statement has two balances %s.", kind)
	case kind == "CLBD":
		s.closing = &amount
		if s.to.IsZero() && !at.IsZero() {
			s.to = nextDay(at)
		}
	case kind == "OPBD":
		s.opening, s.opened = &amount, true
		if s.from.IsZero() && !at.IsZero() {
			s.from = at
		}
	case !s.opened: // the day before closed with it
		s.opening = &amount
		if s.from.IsZero() && !at.IsZero() {
			s.from = nextDay(at)
		}
	}
	return nil
}

// one holds a statement to one currency.
func (s *stmt) one(amount *element) error {
	if s.currency == "" {
		s.currency = amount.currency
	}
	if amount.currency != s.currency {
		return refuse(amount.line, "Amt", "The account is in %s, but this amount in %q. An account has one currency; ask the bank for a statement a currency.", short(s.currency), short(amount.currency))
	}
	return nil
}

func (c *camt) entry(s *stmt, e *element) error {
	if len(s.lines) >= lineLimit {
		return refuse(e.line, "Ntry", "The file has more than %d entries. Ask for a shorter time.", lineLimit)
	}
	status := e.value("Sts", "Cd")
	if status == "" {
		status = e.value("Sts")
	}
	switch status {
	case "BOOK":
	case "PDNG", "INFO", "FUTR":
		c.left[status]++
		return nil
	default:
		return refuse(e.line, "Sts", "%q is no status of an entry; there are BOOK, PDNG, INFO and FUTR.", short(status))
	}
	a, side := e.get("Amt"), e.value("CdtDbtInd")
	if a == nil {
		return refuse(e.line, "Ntry", "The entry has no amount.")
	}
	amount, err := c.money(a, side)
	if err != nil {
		return err
	}
	if err := s.one(a); err != nil {
		return err
	}
	l := ledger.StatementLine{Number: e.line, LineID: given(e.value("AcctSvcrRef")), Amount: amount, Gross: amount, Currency: a.currency}
	day := e.get("BookgDt")
	if day == nil {
		day = e.get("ValDt")
	}
	if day == nil || len(day.children) != 1 {
		return refuse(e.line, "BookgDt", "The entry has no day on which it was booked.")
	}
	t, dayOnly, err := c.moment(day.children[0])
	if err != nil {
		return err
	}
	l.At, l.DateOnly = t.UnixMilli(), dayOnly
	if e.value("RvslInd") == "true" || e.value("RvslInd") == "1" {
		l.Kind, l.Text = ledger.LineAdjustment, "Reversal"
	}
	var parts []*element
	for _, d := range e.all("NtryDtls") {
		parts = append(parts, d.all("TxDtls")...)
		for _, name := range []string{"PmtInfId", "MsgId"} {
			if v := given(d.value("Btch", name)); v != "" && l.Batch == "" {
				l.Batch = v
			}
		}
	}
	if len(parts) > 1 {
		lines, ok, err := c.split(l, e, parts)
		if err != nil {
			return err
		}
		if ok {
			s.lines = append(s.lines, lines...)
			return nil
		}
		c.whole++
		parts = nil
	}
	var part *element
	if len(parts) == 1 {
		part = parts[0]
	}
	c.describe(&l, e, part)
	if l.LineID == "" && part != nil {
		l.LineID = given(part.value("Refs", "AcctSvcrRef"))
	}
	s.lines = append(s.lines, l)
	return nil
}

// split makes a line of each part of a batch, if the parts say what they are of
// and make up the entry exactly. Otherwise the entry stays as it was booked.
func (c *camt) split(of ledger.StatementLine, e *element, parts []*element) (lines []ledger.StatementLine, ok bool, err error) {
	var sum int64
	for _, p := range parts {
		a := p.get("Amt")
		if a == nil {
			a = p.get("AmtDtls", "TxAmt", "Amt")
		}
		if a == nil || a.currency != of.Currency {
			return nil, false, nil
		}
		side := p.value("CdtDbtInd")
		if side == "" {
			side = e.value("CdtDbtInd")
		}
		l := of
		if l.Amount, err = c.money(a, side); err != nil {
			return nil, false, err
		}
		if sum, ok = ledger.AddAmounts(sum, l.Amount); !ok {
			return nil, false, nil
		}
		l.Gross, l.Number = l.Amount, p.line
		if l.Batch == "" {
			l.Batch = of.LineID
		}
		c.describe(&l, e, p)
		l.LineID = given(p.value("Refs", "AcctSvcrRef"))
		if l.LineID == of.LineID {
			l.LineID = "" // the batch's own name names no part of it
		}
		lines = append(lines, l)
	}
	return lines, sum == of.Amount, nil
}

// describe fills in who and what for: part is the one transaction behind the
// line, if there is one.
func (c *camt) describe(l *ledger.StatementLine, e, part *element) {
	l.ProviderID = given(part.value("Refs", "TxId"))
	var texts []string
	if l.Text != "" {
		texts = append(texts, l.Text)
	}
	for _, u := range part.get("RmtInf").all("Ustrd") {
		texts = append(texts, strings.TrimSpace(u.text))
	}
	for _, s := range part.get("RmtInf").all("Strd") {
		if ref := given(s.value("CdtrRefInf", "Ref")); ref != "" && l.Reference == "" {
			l.Reference = ref
		}
	}
	end := given(part.value("Refs", "EndToEndId"))
	if l.Reference == "" {
		l.Reference = end
	} else if end != "" {
		texts = append(texts, end)
	}
	for _, more := range []string{part.value("AddtlTxInf"), e.value("AddtlNtryInf")} {
		if more != "" {
			texts = append(texts, more)
		}
	}
	other := "Dbtr"
	if l.Amount < 0 {
		other = "Cdtr"
	}
	party := part.get("RltdPties", other)
	if party != nil {
		if l.Counterparty = party.value("Pty", "Nm"); l.Counterparty == "" { // since version .08
			l.Counterparty = party.value("Nm")
		}
	}
	if l.Batch == "" {
		l.Batch = given(part.value("Refs", "PmtInfId"))
	}
	l.Text = strings.Join(texts, " ")
	l.Stamp = orderIn(append(texts, end, l.Reference, part.value("Refs", "InstrId"))...)
}

// given drops what banks write where they have nothing to say.
func given(s string) string {
	switch strings.ToUpper(s) {
	case "NOTPROVIDED", "NONREF", "NOTAVAILABLE", "0":
		return ""
	}
	return s
}

// join makes one statement of those of one account that follow each other. Of
// several accounts one has to be chosen.
func (c *camt) join() (ledger.Statement, error) {
	if len(c.stmts) == 0 {
		return ledger.Statement{}, refuse(0, "", "The document holds no statement.")
	}
	for _, s := range c.stmts {
		if !slices.Contains(c.accounts, s.account) {
			c.accounts = append(c.accounts, s.account)
		}
	}
	account := c.accounts[0]
	if want := strings.ReplaceAll(c.o.Mapping.Account, " ", ""); want != "" {
		i := slices.IndexFunc(c.accounts, func(a string) bool { return strings.EqualFold(strings.ReplaceAll(a, " ", ""), want) })
		if i < 0 {
			return ledger.Statement{}, refuse(c.stmts[0].line, "Acct", "The rail %s is the account %s, and the file is about %s.", c.o.Rail, want, short(strings.Join(c.accounts, ", ")))
		}
		account = c.accounts[i]
	} else if len(c.accounts) > 1 {
		q := &Question{Key: "account", Ask: "Which account is this rail's?", Sentence: "The file has statements of several accounts, and one is taken at a time."}
		for _, a := range c.accounts {
			q.Choices = append(q.Choices, Choice{a, a})
		}
		return ledger.Statement{}, q
	}
	mine := slices.DeleteFunc(slices.Clone(c.stmts), func(s *stmt) bool { return s.account != account })
	slices.SortStableFunc(mine, func(a, b *stmt) int { return a.from.Compare(b.from) })
	first, last := mine[0], mine[len(mine)-1]
	for i, s := range mine {
		if i > 0 {
			if err := c.follows(mine[i-1], s); err != nil {
				return ledger.Statement{}, err
			}
		}
		alone := &draft{o: c.o, Statement: ledger.Statement{Lines: s.lines, Opening: s.opening, Closing: s.closing, Currency: s.currency}}
		if err := alone.balance(); err != nil {
			return ledger.Statement{}, err
		}
		c.Lines = append(c.Lines, s.lines...)
	}
	c.Account, c.Currency, c.Opening, c.Closing = account, first.currency, first.opening, last.closing
	if !first.from.IsZero() {
		c.From = first.from.UnixMilli()
	}
	if !last.to.IsZero() {
		c.To = last.to.UnixMilli()
	}
	c.leftOut(len(c.stmts)-len(mine), "statement", "of another account")
	for _, status := range []string{"PDNG", "INFO", "FUTR"} {
		c.leftOut(c.left[status], "entry", "with the status "+status+", not booked")
	}
	if c.whole > 0 {
		c.note("The parts of %s do not make up the entry, or have no amounts; it stays one line.", count(c.whole, "batch"))
	}
	c.sayTheSign()
	return c.finish(true)
}

// follows looks that a statement begins where the one before ended.
func (c *camt) follows(before, s *stmt) error {
	if s.currency != before.currency {
		return refuse(s.line, "Stmt", "The account is in %s in one statement and in %s in another.", short(before.currency), short(s.currency))
	}
	if before.closing != nil && s.opening != nil && *before.closing != *s.opening {
		return refuse(s.line, "Bal", "The statement opens with %s, but the one before it closed with %s. A statement between them is missing.",
			c.o.Currencies.Format(*s.opening, s.currency), c.o.Currencies.Format(*before.closing, before.currency))
	}
	return nil
}

package rail

import (
	"fmt"
	"time"

	"holdfast/store/ledger"
)

// ProfileRow is one line of the table of profiles: what the ledger may do on
// such a rail, as its promise says, not as the file does.
type ProfileRow struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Dedupe      string `json:"dedupe"`
	Retention   string `json:"retention"`
	ResendUntil string `json:"resend_until"`
	Lookup      string `json:"lookup"`
	Absence     string `json:"absence"`
	Checked     string `json:"checked"`
}

// ProfileColumns head the table.
var ProfileColumns = []string{"name", "dedupe", "retention", "resend safe until", "look-up", "proof of absence", "checked"}

// Cells are the row as it stands under [ProfileColumns].
func (r ProfileRow) Cells() []string {
	return []string{r.Name, r.Dedupe, r.Retention, r.ResendUntil, r.Lookup, r.Absence, r.Checked}
}

// somewhere stands in for the address that a profile leaves to its user.
const somewhere = "https://provider.example"

// Row says what the profile promises, with nothing written beside it.
func (p Profile) Row() (ProfileRow, error) {
	c := Config{Profile: p.Name, Digits: ledger.Currencies{}.Digits}
	if p.Rail.BaseURL == "" {
		c.BaseURL = somewhere
	}
	if p.Rail.Adapter == AdapterStripe {
		c.Auth.Bearer = NewSecret("sk_somebody")
	}
	r, err := New(p.Name, c, time.Now)
	if err != nil {
		return ProfileRow{}, err
	}
	promise := r.Promise()
	row := ProfileRow{Name: p.Name, Title: p.Title, Dedupe: "none", Retention: "–", ResendUntil: "no resend", Lookup: "none", Absence: "–", Checked: p.Checked}
	switch d := promise.Dedupe; {
	case d.By == ledger.DedupeNatural:
		row.Dedupe, row.ResendUntil = "by nature", "any time"
	case d.By == ledger.DedupeKey && d.Retention == 0:
		row.Dedupe, row.Retention = "key", "none to rely on"
	case d.By == ledger.DedupeKey:
		row.Dedupe, row.Retention = "key", spoken(d.Retention)
		row.ResendUntil = "first send + " + spoken(time.Duration(promise.ResendUntil(ledger.Operation{}))*time.Millisecond)
	}
	if row.Dedupe == "key" && p.Rail.Dedupe.Scope == scopeCredential {
		row.Dedupe = "key of the credential"
	}
	if l := promise.Lookup; l.Possible {
		row.Lookup, row.Absence = askedBy(r.lookupPath), "never"
		if l.Lag > 0 {
			row.Lookup += ", " + spoken(l.Lag) + " late"
		}
		if l.AbsenceProvesAfter > 0 {
			row.Absence = "after " + spoken(l.AbsenceProvesAfter)
		}
	}
	return row, nil
}

// askedBy says by what a look-up asks, in words.
func askedBy(t template) string {
	for _, by := range [][2]string{{"provider_key", "by the key"}, {"order_id", "by our stamp"}, {"reference", "by reference, told by our stamp"}} {
		if t.asks(by[0]) {
			return by[1]
		}
	}
	return "a list, told by our stamp"
}

// spoken is a duration without its empty parts: 20h, 1h40m, 37d12h.
func spoken(d time.Duration) (text string) {
	for _, unit := range []struct {
		length time.Duration
		letter string
		least  time.Duration // below it, the next unit reads better: 24h, not 1d
	}{{24 * time.Hour, "d", 72 * time.Hour}, {time.Hour, "h", time.Hour}, {time.Minute, "m", time.Minute}, {time.Second, "s", time.Second}} {
		if d >= unit.least {
			text += fmt.Sprintf("%d%s", d/unit.length, unit.letter)
			d %= unit.length
		}
	}
	return text
}

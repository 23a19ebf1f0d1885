package views

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/a-h/templ"

	"holdfast/store/ledger"
)

// AuditPage lists the action log, newest first.
type AuditPage struct {
	Frame   Frame
	Filter  AuditFilter
	Items   []ledger.Entry
	Below   int64    // where the next page begins; 0: this is the last
	Objects []string // kinds that the log has, beside operations
	Events  []string
	Ever    bool // the log has any entry at all
	Problem string
	Seal    Seal
}

// Seal is how far the log is signed.
type Seal struct {
	Days     []ledger.LogHead // the last head of each day, newest first; none: nothing was sealed yet
	Unread   bool             // a head is there and does not open
	Unsealed int64            // entries since the last head
	Key      string
}

// AuditFilter is what the log was asked for, as it stands in the URL.
type AuditFilter struct {
	Actor    string
	Object   string // a kind
	ObjectID string
	Event    string
	From, To string // days
	Below    string
}

func (f AuditFilter) values() url.Values {
	v := url.Values{}
	for name, s := range map[string]string{"actor": f.Actor, "object": f.Object, "id": f.ObjectID, "event": f.Event, "from": f.From, "to": f.To} {
		if s != "" {
			v.Set(name, s)
		}
	}
	return v
}

func (f AuditFilter) chips() []chip {
	var out []chip
	for _, c := range []struct{ name, label, value string }{
		{"actor", "who", f.Actor}, {"object", "kind", objectWord(f.Object)}, {"id", "object", f.ObjectID},
		{"event", "what", auditEvent("", f.Event)}, {"from", "from", f.From}, {"to", "to", f.To},
	} {
		if c.value == "" {
			continue
		}
		v := f.values()
		v.Del(c.name)
		out = append(out, chip{c.label, c.value, v})
	}
	return out
}

func auditPath(filter url.Values) templ.SafeURL {
	if len(filter) == 0 {
		return "/audit"
	}
	return templ.SafeURL("/audit?" + filter.Encode())
}

func (p AuditPage) older() templ.SafeURL {
	v := p.Filter.values()
	v.Set("below", strconv.FormatInt(p.Below, 10))
	return auditPath(v)
}

// by is the log of one actor.
func by(actor string) templ.SafeURL { return auditPath(url.Values{"actor": {actor}}) }

// about is the log of one object.
func about(id string) templ.SafeURL { return auditPath(url.Values{"id": {id}}) }

func objectWord(object string) string {
	switch object {
	case "operation":
		return "Operation"
	case "statement_absence":
		return "Missing from statement"
	}
	return sentenceCase(object)
}

// objectLink leads to the page of what an entry is about; empty where it has none.
func objectLink(e ledger.Entry) templ.SafeURL {
	switch e.Object {
	case "operation", "intent", "statement_absence":
		return operationPath(e.ObjectID)
	case "refund_owed":
		return refundPath(e.ObjectID)
	case "run":
		return runPath(e.ObjectID)
	case "rail":
		return "/rails"
	case "person", "token", "job":
		return "/settings"
	}
	return ""
}

// auditEvent says what happened, in the past tense. Of operations the timeline
// has the words; the same verb means something else where it is about another
// kind of object.
func auditEvent(object, event string) string {
	if object != "operation" {
		if word, ok := pastTense[event]; ok {
			return word
		}
	}
	return eventWord(event)
}

var pastTense = map[string]string{
	"open": "opened", "close": "closed", "close_period": "period closed", "create": "created", "disable": "disabled", "revoke": "revoked", "import": "imported",
	"undo": "undone", "intend": "name given out", "run": "run", "stop": "stopped", "test": "tested", "match": "matched", "unmatch": "unmatched",
	"answer": "answered", "pause": "paused", "resume": "resumed", "sign_in": "signed in", "set_aside": "set aside", "take": "taken", "snooze": "snoozed",
	"settle": "settled", "waive": "waived", "bounce": "came back", "overdue": "overdue", "export_begun": "export begun",
}

// moved says from which status to which; empty where nothing moved.
func changedFromTo(e ledger.Entry) (from, to string) {
	if e.From == e.To {
		return "", ""
	}
	if e.From != "" {
		from = StatusWord(ledger.Operation{Status: e.From}).Text
	}
	if e.To != "" {
		to = StatusWord(ledger.Operation{Status: e.To, Reason: e.Reason}).Text
	}
	return from, to
}

// LogChecked is the page after the chain was verified in front of somebody.
func LogChecked(f Frame, entries, since int64, last ledger.LogHead, before *ledger.LogHead, heads int) MessagePage {
	m := MessagePage{Frame: f, Tone: Green, Title: "The log is unbroken ✓", Links: []Link{{"/audit", "Audit"}}}
	if last.Size == 0 {
		m.Tone, m.Title = Slate, "The log was not sealed yet."
		m.Lines = []string{"It is sealed once a minute. Nothing signed covers its " + count(int(entries), "entry", "entries") + "."}
		return m
	}
	m.Lines = []string{fmt.Sprintf("%s, unbroken since %s, head %s.", count(int(last.Size), "entry", "entries"), utc(since).Format("2 Jan 2006"), last.Words()),
		"Every entry was hashed anew and stands under " + count(heads, "signed head", "signed heads") + ", each grown out of the one before it. Root " + last.Hex() + "."}
	if before != nil {
		m.Lines = append(m.Lines, fmt.Sprintf("It goes through the head of %s, %s.", utc(before.At).Format("2 Jan 2006"), before.Words()))
	}
	if tail := entries - last.Size; tail > 0 {
		m.Lines = append(m.Lines, sentenceCase(sinceSeal(tail))+" are not covered yet.")
	}
	return m
}

// LogBroken is the page after the chain was found not to be what was signed.
func LogBroken(f Frame, sentence string) MessagePage {
	return MessagePage{Frame: f, Tone: Red, Title: "The log is not what was sealed.", Lines: []string{sentenceCase(sentence) + ".",
		"What stands there and after it cannot be believed. Keep the data folder as it is, and compare with a head that was kept elsewhere: holdfast verify --head FILE."},
		Links: []Link{{"/audit", "Audit"}}}
}

func sinceSeal(n int64) string { return count(int(n), "entry", "entries") + " since the last seal" }

package views

import (
	"net/url"

	"holdfast/store/ledger"
)

// values is the filter as it stands in the URL, without what is empty.
func (f Filter) values() url.Values {
	v := url.Values{}
	for name, s := range map[string]string{"status": f.Status, "action_type": f.ActionType, "reference": f.Reference, "run_id": f.RunID, "q": f.Query} {
		if s != "" {
			v.Set(name, s)
		}
	}
	return v
}

// chip is one part of the filter, with the list as it would be without it.
type chip struct {
	name, value string
	without     url.Values
}

func (f Filter) chips() []chip {
	var out []chip
	for _, c := range []struct{ name, label, value string }{
		{"status", "status", f.Status}, {"action_type", "action", f.ActionType},
		{"reference", "reference", f.Reference}, {"run_id", "run", f.RunID}, {"q", "search", f.Query},
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

func (f Filter) text() string {
	s := ""
	for _, c := range f.chips() {
		if s != "" {
			s += " "
		}
		s += c.name + ":" + c.value
	}
	return s
}

// older is the filter with the cursor of the next page.
func (p OperationsPage) older() url.Values {
	v := p.Filter.values()
	v.Set("cursor", p.NextCursor)
	return v
}

// plain is the word of a bare status, for filters.
func plain(s ledger.Status) Word {
	w := StatusWord(ledger.Operation{Status: s})
	switch s {
	case ledger.UnknownHold:
		w.Text = "Held for a person"
	case ledger.Rejected:
		w.Text = "Ended without effect"
	}
	return w
}

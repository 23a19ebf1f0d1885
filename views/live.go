package views

import (
	"strconv"
	"strings"
)

// Live is what the script fetches every few seconds: the texts of the strip and
// the navigation, ready to be put in place. The words are made here, once, so
// that a page with script and one without say the same.
type Live struct {
	State string            `json:"state"` // calm · unknown · owed
	Text  map[string]string `json:"text"`
}

// Live words the counts.
func (f Frame) Live() Live {
	c := f.Counts
	live := Live{State: "calm", Text: map[string]string{
		"approvals-n":  number(c.Approvals),
		"unknown-n":    number(c.Unknown),
		"owed-n":       number(c.Owed),
		"to-us-n":      "",
		"unknown":      "Nothing unknown",
		"owed":         "Nothing owed",
		"to-us":        "",
		"sep":          "│",
		"checked":      "",
		"rails-n":      c.railsWord(),
		"statements-n": c.statementsWord(),
	}}
	if c.Owed > 0 {
		live.State = "owed"
		live.Text["owed"] = "Owed " + grouped(c.Owed)
		if s := f.sums(c.OwedSums); s != "" {
			live.Text["owed"] += " · " + s
		}
	}
	if c.OwedToUs > 0 {
		live.Text["to-us-n"] = number(c.OwedToUs) + " to us"
		live.Text["to-us"] = "· owed to us " + grouped(c.OwedToUs)
		if s := f.sums(c.OwedToUsSums); s != "" {
			live.Text["to-us"] += " · " + s
		}
		if live.State = "owed"; c.Owed == 0 {
			live.Text["owed"] = "We owe nothing"
		}
	}
	if c.Unknown > 0 {
		live.State = "unknown"
		text := "Unknown " + grouped(c.Unknown)
		if c.OldestUnknownAt > 0 {
			text += " · oldest " + Age(f.Now-c.OldestUnknownAt)
		}
		if s := f.sums(c.AtRisk); s != "" {
			text += " · at risk " + s
		}
		live.Text["unknown"] = text
	}
	if c.Unknown == 0 && c.Owed == 0 && c.OwedToUs == 0 {
		live.Text["owed"], live.Text["sep"] = "nothing owed", "·"
		if c.CheckedAt > 0 {
			live.Text["checked"] = "· checked " + Age(f.Now-c.CheckedAt) + " ago"
		}
	}
	return live
}

// railsWord says what keeps rails from sending; nothing while all of them work.
func (c Counts) railsWord() string {
	var all []string
	if c.RailsPaused > 0 {
		all = append(all, number(c.RailsPaused)+" paused")
	}
	if c.RailsResting > 0 {
		all = append(all, number(c.RailsResting)+" resting")
	}
	if len(all) == 0 {
		return ""
	}
	return "● " + strings.Join(all, ", ")
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

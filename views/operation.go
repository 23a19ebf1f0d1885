package views

import (
	"net/url"
	"slices"
	"strings"

	"holdfast/store/ledger"
)

// whatTitle names the payload by whether it left.
func whatTitle(o ledger.Operation) string {
	switch {
	case o.Attempts > 0 || o.Status == ledger.Confirmed:
		return "What was sent"
	case o.Status.Final():
		return "What would have been sent"
	}
	return "What will be sent"
}

// approvalWord says how far the approval got.
func (p OperationPage) approvalWord() string {
	o := p.Operation
	given := 0
	for _, a := range p.Approvals {
		if a.Decision == "approve" && a.VoidedAt == 0 {
			given++
		}
	}
	needed := max(o.Asked.Approvals, 1)
	switch {
	case o.Status == ledger.AwaitingApproval && given > 0:
		return "Waiting (" + grouped(given) + " of " + grouped(needed) + ")"
	case o.Status == ledger.AwaitingApproval:
		return "Waiting"
	case o.Reason == ledger.Denied:
		return "Rejected"
	case o.Reason == ledger.Replaced:
		return "Replaced by a newer operation"
	case o.Reason == ledger.ApprovalExpired:
		return "Expired"
	case o.Reason == ledger.Cancelled || o.Reason == ledger.RunStopped:
		return "Withdrawn"
	case given > 0:
		return "Approved (" + grouped(given) + " of " + grouped(needed) + ")"
	}
	return ""
}

// toDecide reports whether the page is there to be decided on: an approval that
// was given and can't be taken back any more is no question.
func (p OperationPage) toDecide() bool {
	return slices.ContainsFunc(p.Decisions, func(d Decision) bool { return d.Act != "take-back" || d.Allowed })
}

// whoDecides says which people may, and how many must.
func whoDecides(a ledger.Asked) string {
	of := "approver, finance or admin"
	if len(a.Of) > 0 {
		of = strings.Join(a.Of, " or ")
	}
	if a.Approvals > 1 {
		return count(a.Approvals, "person", "people") + " of " + of + " must approve"
	}
	return "1 of " + of + " must approve"
}

func decisionWord(a ledger.Approval) string {
	switch {
	case a.VoidedAt > 0:
		return "Approval taken back"
	case a.Decision == "approve":
		return "Approved"
	case a.Decision == "reject":
		return "Rejected"
	case a.Decision == "ask-changes":
		return "Asked for changes"
	}
	return sentenceCase(a.Decision)
}

// viewPath is the link to one of the three ways of looking at the payload.
func viewPath(o ledger.Operation, view string) string {
	return string(operationPath(o.OperationID)) + "?view=" + view + "#what"
}

// comparePath is the link to the fields beside another operation's.
func comparePath(o ledger.Operation, kind string) string {
	return string(operationPath(o.OperationID)) + "?compare=" + kind + "#what"
}

func compareWord(kind string) string {
	switch kind {
	case "replaced":
		return "the operation it replaces"
	case "last":
		return "last approved to this recipient"
	case "charge":
		return "the original charge"
	}
	return "nothing"
}

func (p OperationPage) comparing(kind string) bool {
	return p.Compare == kind || p.Was == "" && kind == "none"
}

func (p OperationPage) viewing(view string) bool {
	if p.View != "request" && p.View != "bytes" {
		return view == "fields"
	}
	return p.View == view
}

func shorten(id string) string {
	id = strings.TrimPrefix(id, "sha256:") // every one begins so: it tells nothing apart
	if len(id) <= 12 {
		return id
	}
	return id[:8] + "…"
}

func (p OperationPage) attemptsUsed() string {
	used := grouped(p.Operation.Attempts)
	if p.MaxAttempts > 0 {
		return used + " of " + grouped(p.MaxAttempts)
	}
	return used
}

// keyLife says until when a second send would be recognised as the first.
func (p OperationPage) keyLife() string {
	switch {
	case p.KeyLost:
		return "a repeat is not recognised: the rail changed since the first send"
	case p.KeyUntil == 0:
		return "this rail promises nothing about repeated keys"
	case p.Operation.FirstMarkAt == 0:
		return "a repeat is safe for " + Age(p.KeyUntil-p.Frame.Now) + " from the first send"
	case p.KeyUntil <= p.Frame.Now:
		return "aged out " + p.Frame.relative(p.KeyUntil)
	}
	return "good for " + Age(p.KeyUntil-p.Frame.Now) + " more"
}

func (p OperationPage) link() string {
	return p.Frame.BaseURL + string(operationPath(p.Operation.OperationID))
}

func (p OperationPage) curl() string {
	base := p.Frame.BaseURL
	if base == "" {
		base = "http://127.0.0.1:8420"
	}
	return `curl -sS -H "Authorization: Bearer $HOLDFAST_TOKEN" ` + base + "/v1/operations/" + url.PathEscape(p.Operation.OperationID)
}

func (p OperationPage) markdown() string {
	o := p.Operation
	s := "**" + p.Frame.what(o) + "** · " + StatusWord(o).Text + " · `" + o.OperationID + "`"
	if p.Words != "" {
		s += " · " + p.Words
	}
	if p.Frame.BaseURL != "" {
		s += " · " + p.link()
	}
	return s
}

// gap is the time between two entries, computed from the log, never guessed.
func gap(log []ledger.Entry, i int) string {
	if i == 0 {
		return ""
	}
	return "+" + span(log[i].At-log[i-1].At)
}

func actorWord(a ledger.Actor) string {
	switch a {
	case ledger.Clock:
		return "time"
	case ledger.Reconciler:
		return "job"
	}
	return string(a)
}

// changed puts changed fields first: they are what a second look is for.
func changed(fields []Field) (first, rest []Field) {
	flagged := func(f Field) bool { return f.Changed || f.Note != "" }
	if !slices.ContainsFunc(fields, flagged) {
		return nil, fields
	}
	for _, f := range fields {
		if flagged(f) || f.Role == "amount" { // how much is never folded away
			first = append(first, f)
		} else {
			rest = append(rest, f)
		}
	}
	return first, rest
}

func comparing(fields []Field) bool {
	for _, f := range fields {
		if f.Was != "" {
			return true
		}
	}
	return false
}

func amountText(f Frame, r *ledger.Receipt) string {
	if r.Amount == nil {
		return ""
	}
	return f.money(*r.Amount, r.Currency)
}

// saidBy leaves a person's own words as they are, and words a program's.
func saidBy(person bool, sentence string) string {
	if person {
		return sentence
	}
	return inWords(sentence)
}

// left is what would stay of the charge after this refund; below zero it would
// return more than was taken.
func (r RefundOf) left(o ledger.Operation) int64 {
	return r.Known.Amount - r.Known.Returned() - o.Terms.Amount
}

// Beyond reports whether a refund returns more than its charge, or nobody can
// say.
func (r RefundOf) Beyond(o ledger.Operation) bool {
	return r.Known == nil || r.Known.Currency != o.Terms.Currency || r.left(o) < 0
}

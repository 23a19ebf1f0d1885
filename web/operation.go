package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// operation shows one operation, whole.
func (s *Server) operation(c echo.Context, p ledger.PersonRecord) error {
	o, err := s.Store.Operation(c.Request().Context(), p.TenantID, c.Param("id"))
	if err != nil {
		return err
	}
	return s.drawOperation(c, p, o, http.StatusOK, views.FormState{})
}

// drawOperation draws the page that fits where the operation stands, with a form
// as somebody left it.
func (s *Server) drawOperation(c echo.Context, p ledger.PersonRecord, o ledger.Operation, status int, form views.FormState) error {
	page, err := s.operationPage(c, p, o)
	if err != nil {
		return err
	}
	page.Form = form
	if o.Status == ledger.AwaitingApproval {
		page.Frame.Here = views.AtApprovals
	}
	if o.Status != ledger.Unknown && o.Status != ledger.UnknownHold {
		return render(c, status, views.Operation(page))
	}
	page.Frame.Here = views.AtUnknown
	if form.Act == "" {
		page.Form = s.fromLine(c, page)
	}
	return render(c, status, views.Hold(s.holdPage(page, o)))
}

func (s *Server) operationPage(c echo.Context, p ledger.PersonRecord, o ledger.Operation) (views.OperationPage, error) {
	ctx := c.Request().Context()
	rules := s.Store.Rulebook(p.TenantID)
	rail, known := rules.Route(o)
	page := views.OperationPage{Operation: s.veil(p, o), View: c.QueryParam("view"), Compare: c.QueryParam("compare"), Words: ledger.Words(o.Fingerprint),
		MaxAttempts: rail.Limits.MaxAttempts, Rule: ruleWords(rules.Policy, o)}
	var err error
	if page.Frame, err = s.frame(c, views.AtOperations, p); err != nil {
		return page, err
	}
	page.KeyUntil = keyUntil(o, rail, page.Frame.Now)
	page.KeyLost = changedSince(o, rail, page.Frame.Now)
	page.RailSays = "It is not configured any more."
	if known {
		page.RailSays = railSays(rail)
	}
	if s.conceals(p, o) {
		page.Concealed = "Some of it is sensitive, and your role sees only the fields that are not."
	}
	page.Recognised = page.KeyUntil > page.Frame.Now
	page.RestsUntil = restsUntil(s.Config().Route(o), page.Frame.Now)
	if page.Paused, err = s.pauseNamed(ctx, p.TenantID, o.Rail); err != nil {
		return page, err
	}
	for _, fill := range []func(context.Context, ledger.PersonRecord, ledger.Operation, *views.OperationPage) error{
		s.fillRecord, s.fillLines, s.fillFields, s.fillRequest, s.fillRelatives, s.fillRefund, s.fillDecisions,
	} {
		if err := fill(ctx, p, o, &page); err != nil {
			return page, err
		}
	}
	return page, nil
}

// fillRecord reads what happened. The facts of log entries repeat the receipt,
// so they are left out where that is.
func (s *Server) fillRecord(ctx context.Context, p ledger.PersonRecord, o ledger.Operation, page *views.OperationPage) (err error) {
	if page.Approvals, err = s.Store.Approvals(ctx, p.TenantID, o.OperationID); err != nil {
		return err
	}
	if page.Attempts, err = s.Store.Attempts(ctx, p.TenantID, o.OperationID); err != nil {
		return err
	}
	if page.Evidence, err = s.Store.Evidence(ctx, p.TenantID, o.OperationID); err != nil {
		return err
	}
	if page.Log, err = s.Store.Timeline(ctx, p.TenantID, o.OperationID); err != nil {
		return err
	}
	if page.TypedBy, err = s.typedBy(ctx, o, page.Log); err != nil {
		return err
	}
	if page.Concealed != "" {
		for i := range page.Log {
			page.Log[i].Fact = ""
		}
	}
	owed, err := s.Store.RefundsOwed(ctx, p.TenantID)
	for _, r := range owed {
		if r.OperationID == o.OperationID {
			page.Refunds = append(page.Refunds, r)
		}
	}
	return err
}

// fillLines reads how the operation stands to the statements, and what lines of
// them say about it.
func (s *Server) fillLines(ctx context.Context, p ledger.PersonRecord, o ledger.Operation, page *views.OperationPage) error {
	sides, err := s.Store.StatementSides(ctx, p.TenantID, []ledger.Operation{o})
	if err != nil {
		return err
	}
	page.Side = sides[o.OperationID]
	lines, err := s.Store.LinesAbout(ctx, p.TenantID, o.OperationID)
	if err != nil {
		return err
	}
	matches, err := s.Store.OperationMatches(ctx, p.TenantID, o.OperationID)
	if err != nil {
		return err
	}
	for _, m := range matches {
		for _, side := range m.Lines {
			if slices.ContainsFunc(lines, func(l ledger.KeptLine) bool { return l.ID == side.LineID }) {
				continue
			}
			l, err := s.Store.StatementLine(ctx, p.TenantID, side.LineID)
			if err != nil {
				return err
			}
			lines = append(lines, l)
		}
	}
	page.Lines, err = s.lineRows(ctx, p, lines[:min(len(lines), listedLines)])
	return err
}

// fromLine fills in "it happened" with what a statement shows, if the person came
// by way of a line that says something about this operation. They still say it.
func (s *Server) fromLine(c echo.Context, page views.OperationPage) views.FormState {
	i := slices.IndexFunc(page.Lines, func(r views.StatementRow) bool { return strconv.FormatInt(r.Line.ID, 10) == c.QueryParam("line") })
	if i < 0 {
		return views.FormState{}
	}
	l, o := page.Lines[i].Line, page.Operation
	r := l.AsReceipt()
	values := map[string]string{"receipt_id": cut(r.ID, maxID), "reason": fmt.Sprintf("Seen on the statement of %s, line %d", l.Account, l.Number)}
	form := views.FormState{Act: "happened", Values: values}
	if r.Amount != nil && r.Currency == o.Terms.Currency {
		values["amount"] = page.Frame.Money.Plain(*r.Amount, r.Currency)
		form.Differs = o.Terms.HasAmount && *r.Amount != o.Terms.Amount && *r.Amount > 0
	}
	return form
}

// typedBy names the person whose word the receipt is; empty where a machine
// brought it.
func (s *Server) typedBy(ctx context.Context, o ledger.Operation, log []ledger.Entry) (string, error) {
	if o.Receipt == nil {
		return "", nil
	}
	for _, e := range slices.Backward(log) {
		if e.To == ledger.Confirmed && ledger.Event(e.Event) == ledger.SayHappened && e.ActorKind == ledger.Person {
			return s.nameOf(ctx, o.TenantID, e.Actor)
		}
	}
	return "", nil
}

// nameOf is how pages call the person with an e-mail.
func (s *Server) nameOf(ctx context.Context, tenant, email string) (string, error) {
	people, err := s.Store.People(ctx, tenant)
	for _, p := range people {
		if p.Email == email {
			return p.Display(), err
		}
	}
	return email, err
}

// fillFields reads the payload as rows, beside another operation's where there is
// one to compare with.
func (s *Server) fillFields(ctx context.Context, p ledger.PersonRecord, o ledger.Operation, page *views.OperationPage) error {
	was, err := s.compared(ctx, p, o, page)
	if err != nil {
		return err
	}
	known, err := s.Store.RecipientKnown(ctx, o)
	if err != nil {
		return err
	}
	fresh := !known && !o.Status.Final() // once it has ended it is a record, and no longer a warning
	if fresh {
		page.Flags = append(page.Flags, "New recipient")
	} else if known && o.Terms.Recipient != "" {
		page.Facts = append(page.Facts, "An earlier operation to this recipient is confirmed.")
	}
	action := s.Store.Rulebook(p.TenantID).Actions[o.ActionType]
	if page.Fields, err = views.Fields(o, was, action, seesAll(p), page.Frame.Money); err != nil {
		page.Facts = append(page.Facts, err.Error())
		return nil
	}
	page.Fields = likeWithLike(page.Compare, page.Fields)
	for i := range page.Fields {
		f := &page.Fields[i]
		if action == nil && !seesAll(p) { // nobody can say what is sensitive, so all of it is
			f.Value, f.Was, f.Masked = "", "", true
		}
		if f.Role == "recipient" && fresh {
			f.Note = "never paid before"
		}
	}
	return nil
}

// fillRequest shows the bytes that went out; of what was not sent yet, those
// that would go out now.
func (s *Server) fillRequest(ctx context.Context, p ledger.PersonRecord, o ledger.Operation, page *views.OperationPage) error {
	if page.View != "request" || page.Concealed != "" {
		return nil
	}
	kept, err := s.Store.Request(ctx, p.TenantID, o.OperationID)
	switch {
	case err == nil:
		page.Request = &kept
		return nil
	case !errors.Is(err, store.ErrNotFound):
		return err
	case o.Status.Final():
		page.RequestWhy = "Nothing was sent, so no request was made."
		return nil
	}
	rail := s.Config().Route(o)
	if rail == nil {
		page.RequestWhy = "Its rail is not configured any more, so no request can be made."
		return nil
	}
	request, err := rail.Render(o)
	if err != nil {
		page.RequestWhy = "The request can't be made: " + err.Error() + "."
		return nil
	}
	page.Request = &request
	return nil
}

// fillRelatives reads the operations that this one looks like or stands for, and
// those that are held because of it.
func (s *Server) fillRelatives(ctx context.Context, p ledger.PersonRecord, o ledger.Operation, page *views.OperationPage) error {
	for _, v := range o.Overlaps {
		earlier, err := s.Store.Operation(ctx, p.TenantID, v.OperationID)
		if err != nil {
			return err
		}
		stands, err := s.Store.Stands(ctx, p.TenantID, v.OperationID)
		if err != nil {
			return err
		}
		page.Earlier = append(page.Earlier, views.Earlier{Operation: s.veil(p, earlier), Why: v.Why,
			Over: stands.Status == ledger.Rejected || stands.OperationID == o.OperationID})
	}
	held, err := s.Store.Operations(ctx, p.TenantID, store.Filter{Statuses: []ledger.Status{ledger.UnknownHold}, Limit: listed})
	if err != nil {
		return err
	}
	for _, other := range held.Items {
		if slices.ContainsFunc(other.Overlaps, func(v ledger.Overlapped) bool { return v.OperationID == o.OperationID }) {
			page.Behind = append(page.Behind, s.veil(p, other))
		}
	}
	return nil
}

func (s *Server) fillDecisions(ctx context.Context, p ledger.PersonRecord, o ledger.Operation, page *views.OperationPage) error {
	people, err := s.countPeople(ctx, p.TenantID)
	if err != nil {
		return err
	}
	rail, _ := s.Store.Rulebook(p.TenantID).Route(o)
	page.Decisions = decisions(o, p, people, rail, page.Approvals, page.Frame.Now)
	if !slices.ContainsFunc(page.Earlier, func(e views.Earlier) bool { return !e.Over }) {
		for i, d := range page.Decisions {
			if d.Act == "same-purchase" && d.Allowed {
				page.Decisions[i].Allowed, page.Decisions[i].Why = false, "None of the operations it overlaps has a result or can still get one: they were rejected, or this one stands for them."
			}
		}
	}
	if ok, self, _ := ledger.MayApprove(o, p.Email, p.Roles, people); ok && self && o.Status != ledger.Ready && len(page.Decisions) > 0 {
		page.Facts = append(page.Facts, "You own the token that asked for this, and nobody else is set up: your decision is stamped Self-approved.")
	}
	return nil
}

// railSays is what the rail's configuration promises, in words.
func railSays(rail ledger.Rail) string {
	var says []string
	switch {
	case rail.Dedupe.By == ledger.DedupeKey && rail.Dedupe.Retention > 0:
		says = append(says, "Same-key resend: promised for "+long(rail.Dedupe.Retention)+".")
	case rail.Dedupe.By == ledger.DedupeNatural && rail.Dedupe.Retention == 0:
		says = append(says, "A repeat is recognised by what it is.")
	case rail.Dedupe.By == ledger.DedupeNatural && rail.Dedupe.Retention > 0:
		says = append(says, "A repeat is recognised by what it is, for "+long(rail.Dedupe.Retention)+".")
	default:
		says = append(says, "Same-key resend: not promised.")
	}
	switch {
	case !rail.Lookup.Possible:
		says = append(says, "Look-up: no, so an unknown outcome always needs a person.")
	case rail.Lookup.Lag > 0:
		says = append(says, "Look-up: yes, lags "+long(rail.Lookup.Lag)+".")
	default:
		says = append(says, "Look-up: yes.")
	}
	return strings.Join(says, " ")
}

func long(d time.Duration) string { return views.Age(d.Milliseconds()) }

// ruleWords says in words what the row that decided asks for, if that policy is
// still the one in force.
func ruleWords(policy ledger.Policy, o ledger.Operation) string {
	if o.PolicyVersion != policy.Version {
		return ""
	}
	i := slices.IndexFunc(policy.Rows, func(r ledger.PolicyRow) bool { return r.Name == o.PolicyRow })
	if i < 0 || o.PolicyRow == "" {
		return ""
	}
	row := policy.Rows[i]
	then := row.Then
	if row.Then == ledger.ThenAsk {
		of := strings.Join(row.Of, " or ")
		if of == "" {
			of = "approver, finance or admin"
		}
		then = fmt.Sprintf("%d of %s", max(row.Approvals, 1), of)
	}
	return orText(strings.Join(conditions(row.When, policy.Currencies), ", "), "everything") + " → " + then
}

func conditions(w ledger.When, money ledger.Currencies) (all []string) {
	for _, list := range [][]string{w.ActionType, w.Effect, w.Rail, w.Agent, w.RunID, w.Recipient, w.Currency} {
		if len(list) > 0 {
			all = append(all, strings.Join(list, " or "))
		}
	}
	if w.AmountOver != nil {
		currency := ""
		if len(w.Currency) == 1 {
			currency = strings.ToUpper(w.Currency[0])
		}
		all = append(all, "over "+money.Format(*w.AmountOver, currency))
	}
	if w.RecipientNew != nil && *w.RecipientNew {
		all = append(all, "a new recipient")
	} else if w.RecipientNew != nil {
		all = append(all, "a known recipient")
	}
	if spent := w.SpentOver; spent != nil {
		all = append(all, fmt.Sprintf("more than %s in %s per %s", money.Format(spent.Amount, spent.Currency), long(spent.Window), orText(spent.Per, "tenant")))
	}
	if w.Hours != "" {
		all = append(all, w.Hours)
	}
	return all
}

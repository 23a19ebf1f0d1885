package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// brought is what the form of a decision brings.
type brought struct {
	echo.Context
	money ledger.Currencies
}

func reasonIfGiven(b brought, _ ledger.Operation, d *store.Decision) string {
	d.Reason = typed(b, "reason")
	return checkText("A reason", d.Reason, maxReason, false)
}

func reason(b brought, _ ledger.Operation, d *store.Decision) string {
	d.Reason = typed(b, "reason")
	return checkText("A reason", d.Reason, maxReason, true)
}

// reasonAndFields reads a no: the sentence, and the fields that were marked.
func reasonAndFields(b brought, o ledger.Operation, d *store.Decision) string {
	d.Pointers = b.Request().PostForm["pointer"]
	if err := ledger.CheckPointers(o.Payload, d.Pointers); err != nil {
		return sentence(err)
	}
	return reason(b, o, d)
}

func reasonIfAsked(b brought, o ledger.Operation, d *store.Decision) string {
	d.Reason = typed(b, "reason")
	return checkText("A reason", d.Reason, maxReason, o.Asked.ReasonRequired)
}

func receipt(b brought, o ledger.Operation, d *store.Decision) (problem string) {
	d.ReceiptID = typed(b, "receipt_id")
	if problem = checkText("The provider's id", d.ReceiptID, maxID, true); problem != "" {
		return problem
	}
	if d.Amount, problem = typedAmount(typed(b, "amount"), o, b.money); problem != "" {
		return problem
	}
	if d.Amount == nil && o.Terms.HasAmount {
		return "The amount that the provider shows is needed."
	}
	if problem = asApproved(b, o, d); problem != "" {
		return problem
	}
	return reason(b, o, d)
}

func bothReceipts(b brought, o ledger.Operation, d *store.Decision) (problem string) {
	d.ReceiptID, d.SecondReceiptID = typed(b, "receipt_id"), typed(b, "second_receipt_id")
	if problem = checkText("The provider's id of the first", d.ReceiptID, maxID, true); problem != "" {
		return problem
	}
	if problem = checkText("The provider's id of the second", d.SecondReceiptID, maxID, true); problem != "" {
		return problem
	}
	if d.ReceiptID == d.SecondReceiptID {
		return "These are one id. Two effects have two ids at the provider."
	}
	if d.Amount, problem = typedAmount(typed(b, "amount"), o, b.money); problem != "" {
		return problem
	}
	if problem = asApproved(b, o, d); problem != "" {
		return problem
	}
	return reason(b, o, d)
}

// asApproved asks once more about an amount that is not the one approved: it is
// a slip of the hand more often than the truth.
func asApproved(b brought, o ledger.Operation, d *store.Decision) string {
	d.Differs = typed(b, "differs") == "yes"
	switch {
	case d.Amount == nil || !o.Terms.HasAmount || *d.Amount == o.Terms.Amount:
		return ""
	case *d.Amount == 0:
		return "The amount must be more than nothing. Where no money moved, it did not happen."
	case !d.Differs:
		return fmt.Sprintf("You typed %s; %s was approved.", b.money.Format(*d.Amount, o.Terms.Currency), b.money.Format(o.Terms.Amount, o.Terms.Currency))
	}
	return ""
}

func original(b brought, o ledger.Operation, d *store.Decision) string {
	d.Original = typed(b, "original")
	if d.Original != "" && !slices.ContainsFunc(o.Overlaps, func(v ledger.Overlapped) bool { return v.OperationID == d.Original }) {
		return "Choose one of the operations that it overlaps."
	}
	return reasonIfGiven(b, o, d)
}

// decide takes a person's decision from a form to the store. The store has the
// last word about everything; what is checked here only finds the better words.
func (s *Server) decide(c echo.Context, p ledger.PersonRecord) error {
	name, id := c.Param("act"), c.Param("id")
	a, known := acts[name]
	if !known {
		return echo.ErrNotFound
	}
	ctx := c.Request().Context()
	o, err := s.Store.Operation(ctx, p.TenantID, id)
	if err != nil {
		return err
	}
	version, _ := strconv.ParseInt(typed(c, "version"), 10, 64) // what is no number was never on a screen
	d := store.Decision{Person: p, Seen: store.Seen{Fingerprint: typed(c, "fingerprint"), Version: version}}
	if problem := a.asks(brought{c, s.Store.Rulebook(p.TenantID).Currencies}, o, &d); problem != "" {
		return s.askAnew(c, p, o, d.Seen, name, problem)
	}
	if _, err := a.take(s.Store, ctx, p.TenantID, id, d); err != nil {
		return s.refused(c, p, o, d.Seen, name, err)
	}
	if name == "look-again" {
		s.lookNow(ctx, p)
	}
	return c.Redirect(http.StatusSeeOther, operationPath(id)+"/done?act="+name)
}

// refused answers what the store did not take. Where the person may decide so,
// and the moment is right, it is about what was typed: the form comes back.
func (s *Server) refused(c echo.Context, p ledger.PersonRecord, o ledger.Operation, seen store.Seen, name string, refusal error) error {
	if errors.Is(refusal, store.ErrForbidden) && !errors.Is(refusal, store.ErrStale) {
		if d, _, err := s.verdict(c, p, o, name); err == nil && d.Allowed {
			return s.askAnew(c, p, o, seen, name, sentence(refusal))
		}
	}
	return s.notDecided(c, p, o.OperationID, seen, name, refusal)
}

// lookNow asks the provider while the person waits, but not for ever: the job's
// own clock asks again.
func (s *Server) lookNow(ctx context.Context, p ledger.PersonRecord) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := s.Scheduler.RunFor(ctx, "lookup", p); err != nil {
		s.Log.Warn("looking again", "error", err)
	}
}

// askAnew gives a form back with what was typed in it. Whoever saw something
// old, or may not decide, is told that first.
func (s *Server) askAnew(c echo.Context, p ledger.PersonRecord, o ledger.Operation, seen store.Seen, name, problem string) error {
	if seen.Fingerprint != o.Fingerprint || seen.Version != o.Version {
		return s.notDecided(c, p, o.OperationID, seen, name, store.ErrStale)
	}
	d, forbidden, err := s.verdict(c, p, o, name)
	switch {
	case err != nil:
		return err
	case forbidden:
		return s.notDecided(c, p, o.OperationID, seen, name, store.ErrForbidden)
	case !d.Allowed:
		return s.notDecided(c, p, o.OperationID, seen, name, ledger.ErrNotAllowed)
	}
	form := views.FormState{Act: name, Problem: problem, Values: map[string]string{}}
	form.Marked = c.Request().PostForm["pointer"]
	for field := range c.Request().PostForm {
		form.Values[field] = cut(typed(c, field), 4*maxReason)
	}
	if amount, problem := typedAmount(typed(c, "amount"), o, s.Store.Rulebook(p.TenantID).Currencies); problem == "" && amount != nil {
		form.Differs = o.Terms.HasAmount && *amount != o.Terms.Amount && *amount > 0
	}
	return s.drawOperation(c, p, o, http.StatusUnprocessableEntity, form)
}

func (s *Server) verdict(c echo.Context, p ledger.PersonRecord, o ledger.Operation, name string) (d views.Decision, forbidden bool, err error) {
	people, err := s.countPeople(c.Request().Context(), p.TenantID)
	if err != nil {
		return d, false, err
	}
	given, err := s.Store.Approvals(c.Request().Context(), p.TenantID, o.OperationID)
	if err != nil {
		return d, false, err
	}
	rail, _ := s.Store.Rulebook(p.TenantID).Route(o)
	d, forbidden = judge(name, o, p, people, rail, given, s.Store.Now())
	return d, forbidden, nil
}

// notDecided is the page for a decision that the store did not record.
func (s *Server) notDecided(c echo.Context, p ledger.PersonRecord, id string, seen store.Seen, name string, refusal error) error {
	stale, forbidden := errors.Is(refusal, store.ErrStale), errors.Is(refusal, store.ErrForbidden)
	if !stale && !forbidden && !errors.Is(refusal, ledger.ErrNotAllowed) {
		return refusal
	}
	o, err := s.Store.Operation(c.Request().Context(), p.TenantID, id)
	if err != nil {
		return err
	}
	if stale && seen.Fingerprint == o.Fingerprint {
		if own, err := s.decidedSince(c, p, o, seen, name); err != nil {
			return err
		} else if own {
			return c.Redirect(http.StatusSeeOther, operationPath(id)+"/done?act="+name)
		}
	}
	f, err := s.frame(c, views.AtOperations, p)
	if err != nil {
		return err
	}
	d, _, err := s.verdict(c, p, o, name)
	if err != nil {
		return err
	}
	shown := s.veil(p, o)
	if stale && o.Reason == ledger.Replaced {
		return s.replacedMeanwhile(c, f, p, o)
	}
	switch {
	case stale && seen.Fingerprint != o.Fingerprint:
		return render(c, http.StatusPreconditionFailed, views.Message(views.Changed(f, shown, nil)))
	case stale:
		return s.conflict(c, f, p, shown, seen)
	case forbidden:
		return render(c, http.StatusForbidden, views.Message(views.Forbidden(f, orText(d.Why, sentence(refusal)))))
	}
	return render(c, http.StatusConflict, views.Message(views.NotPossible(f, shown, orText(d.Why, sentence(refusal)))))
}

// replacedMeanwhile shows what the operation that stands for this one has other
// than it.
func (s *Server) replacedMeanwhile(c echo.Context, f views.Frame, p ledger.PersonRecord, o ledger.Operation) error {
	ctx := c.Request().Context()
	id, err := s.Store.Successor(ctx, p.TenantID, o.OperationID)
	if err != nil {
		return err
	}
	newer, err := s.Store.Operation(ctx, p.TenantID, id)
	if err != nil {
		return err
	}
	action := s.Store.Rulebook(p.TenantID).Actions[newer.ActionType]
	var rows []views.Field
	if seesAll(p) || action != nil && newer.ActionType == o.ActionType { // else nobody can say what is sensitive
		if rows, err = views.Fields(newer, &o, action, seesAll(p), f.Money); err != nil {
			return err
		}
	}
	rows = slices.DeleteFunc(rows, func(r views.Field) bool { return !r.Changed || r.Masked })
	return render(c, http.StatusPreconditionFailed, views.Message(views.ReplacedMeanwhile(f, s.veil(p, newer), rows)))
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// ownWords is what a person gave as the reason. The entry's sentence has it too,
// behind who it was and what they did, which the page says itself.
func ownWords(e ledger.Entry) string {
	var fact struct{ Reason, Message string }
	if e.ActorKind != ledger.Person || json.Unmarshal([]byte(e.Fact), &fact) != nil {
		return ""
	}
	return orText(fact.Message, fact.Reason)
}

// conflict names who was first, from the log.
func (s *Server) conflict(c echo.Context, f views.Frame, p ledger.PersonRecord, o ledger.Operation, seen store.Seen) error {
	log, err := s.Store.Timeline(c.Request().Context(), p.TenantID, o.OperationID)
	if err != nil {
		return err
	}
	won := whoWasFirst(log, o.Version-seen.Version)
	won.Sentence = orText(ownWords(won), won.Sentence)
	people, err := s.Store.People(c.Request().Context(), p.TenantID)
	if err != nil {
		return err
	}
	for _, other := range people {
		if won.ActorKind == ledger.Person && other.Email == won.Actor {
			won.Actor = other.Display()
		}
	}
	approvals, err := s.Store.Approvals(c.Request().Context(), p.TenantID, o.OperationID)
	if err != nil {
		return err
	}
	given := 0
	for _, a := range approvals {
		if a.Decision == "approve" && a.VoidedAt == 0 {
			given++
		}
	}
	if ledger.Event(won.Event) == ledger.Approve {
		won.Sentence = ownWords(won) // the page itself says who approved
	}
	return render(c, http.StatusConflict, views.Message(views.Conflict(f, o, won, given)))
}

// decidedSince reports whether this person took the act after what the form had
// seen: a button that was pressed twice decided once, and that was it.
func (s *Server) decidedSince(c echo.Context, p ledger.PersonRecord, o ledger.Operation, seen store.Seen, name string) (bool, error) {
	log, err := s.Store.Timeline(c.Request().Context(), p.TenantID, o.OperationID)
	if err != nil {
		return false, err
	}
	changes := o.Version - seen.Version
	for i, e := range slices.Backward(log) {
		if changes <= 0 {
			return false, nil
		}
		if e.Object != "operation" {
			continue
		}
		if e.ActorKind == ledger.Person && e.Actor == p.Email {
			return decidedSo(log[:i+1], p, name), nil
		}
		// What changes no status raises the version where somebody could see the difference.
		if e.From != e.To || e.Event == "approve" || e.Event == "look" || ledger.Event(e.Event) == ledger.TakeBack || ledger.Event(e.Event) == ledger.Restore {
			changes--
		}
	}
	return false, nil
}

// whoWasFirst is the entry that a person should hear of among the last changes
// of an operation: another person's decision where there is one.
func whoWasFirst(log []ledger.Entry, changes int64) (won ledger.Entry) {
	for _, e := range slices.Backward(log) {
		if e.From == e.To && e.Event != "approve" && ledger.Event(e.Event) != ledger.TakeBack { // a claim or a note: nothing that was decided
			continue
		}
		if won.Seq == 0 || e.ActorKind == ledger.Person {
			won = e
		}
		if changes--; changes <= 0 || won.ActorKind == ledger.Person {
			break
		}
	}
	return won
}

// done is the page after a decision. It says what the log says: a link can't
// make it claim anything.
func (s *Server) done(c echo.Context, p ledger.PersonRecord) error {
	ctx := c.Request().Context()
	o, err := s.Store.Operation(ctx, p.TenantID, c.Param("id"))
	if err != nil {
		return err
	}
	log, err := s.Store.Timeline(ctx, p.TenantID, o.OperationID)
	if err != nil {
		return err
	}
	name := c.QueryParam("act")
	if !decidedSo(log, p, name) {
		return c.Redirect(http.StatusSeeOther, operationPath(o.OperationID))
	}
	f, err := s.frame(c, views.AtOperations, p)
	if err != nil {
		return err
	}
	page := views.Done(f, s.veil(p, o), name)
	if back, _, err := s.verdict(c, p, o, "take-back"); err != nil {
		return err
	} else if name == "approve" && back.Allowed {
		page.TakeBack = page.After
	}
	if rail, _ := s.Store.Rulebook(p.TenantID).Route(o); name == "send-again" && keyUntil(o, rail, f.Now) <= f.Now {
		page = views.DoubleSend(page, o)
	}
	return render(c, http.StatusOK, views.Message(page))
}

// decidedSo reports whether the last thing that this person did to the
// operation is the act.
func decidedSo(log []ledger.Entry, p ledger.PersonRecord, name string) bool {
	a, known := acts[name]
	event := string(a.event)
	if name == "look-again" {
		event = "look_again"
	}
	for _, e := range slices.Backward(log) {
		if known && e.Object == "operation" && e.ActorKind == ledger.Person && e.Actor == p.Email {
			return e.Event == event || name == "different-purchase" && e.Event == string(ledger.SeparateAsk)
		}
	}
	return false
}

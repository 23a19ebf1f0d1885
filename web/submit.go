package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/labstack/echo/v4"

	"holdfast/store"
	"holdfast/store/ledger"
)

// maxBody bounds what an agent may send.
const maxBody = 256 << 10

// submission is the body of POST /v1/operations after its outer shape was
// checked.
type submission struct {
	operationID, actionType  string
	payload                  map[string]any
	runID, parentRunID, step string
	distinctFrom, after      []string
	because, replaces, trace string
}

// submit answers POST /v1/operations.
func (s *Server) submit(c echo.Context) error {
	who, err := s.authenticate(c, "operations:write")
	if err != nil {
		return err
	}
	sub, err := readSubmission(c)
	if err != nil {
		return err
	}
	prefer := preferences(c.Request())
	a, err := s.register(c.Request().Context(), who, sub, prefer)
	if err != nil {
		return err
	}
	prefer.applied(c)
	return a.write(c)
}

// register normalises the payload by its action type, and lets the store decide;
// the case table of the contract is in answerNew and answerRepeat.
func (s *Server) register(ctx context.Context, who caller, sub submission, prefer preference) (answer, error) {
	if err := s.otherType(ctx, who, sub); err != nil {
		return answer{}, err
	}
	draft, err := s.draft(who, sub)
	if err != nil {
		return answer{}, err
	}
	if err := s.mayReplace(ctx, who, sub.replaces); err != nil {
		return answer{}, err
	}
	if err := s.sendable(ctx, draft); err != nil {
		return answer{}, err
	}
	r, err := s.Store.Submit(ctx, draft)
	if err != nil {
		return answer{}, s.answerRefusal(ctx, draft, err)
	}
	if r.Existed {
		return s.answerRepeat(ctx, draft, r.Operation, prefer)
	}
	return s.answerNew(ctx, r.Operation, prefer)
}

// answerNew answers the first submission of an id.
func (s *Server) answerNew(ctx context.Context, o ledger.Operation, prefer preference) (answer, error) {
	o, original, err := s.awaitEnd(ctx, o, prefer.wait)
	if err != nil {
		return answer{}, err
	}
	e, err := s.envelope(ctx, o, original)
	if err != nil {
		return answer{}, err
	}
	a := answer{body: e, location: e.Poll, etag: etag(o, original, e)}
	switch {
	case o.DuplicateOf != "": // an identical repeat of what is confirmed
		a.status, a.replayed = http.StatusOK, true
	case o.Status == ledger.Rejected && o.Reason == ledger.PolicyDenied:
		return answer{}, problemf("policy_denied", "The policy row %q says no and nothing was sent. Stop and tell the person you work for. Do not create a new operation for this purchase.", o.PolicyRow).about(e)
	case prefer.wait > 0 && e.Terminal:
		a.status = http.StatusCreated
	default:
		a.status, a.retryAfter = http.StatusAccepted, e.RetryAfter
	}
	return a, nil
}

// answerRepeat answers an id that is known: with its result, with patience, or
// with a no if the payload is another one.
func (s *Server) answerRepeat(ctx context.Context, draft, o ledger.Operation, prefer preference) (answer, error) {
	switch {
	case o.ActionType != draft.ActionType: // it was registered after otherType looked
		return answer{}, s.mismatch(ctx, o, []string{"/action_type"})
	case o.Fingerprint != draft.Fingerprint:
		return answer{}, s.mismatch(ctx, o, differences(draft.Canonical, o.Canonical))
	}
	if err := s.countRepeat(ctx, o); err != nil {
		return answer{}, err
	}
	o, original, err := s.awaitEnd(ctx, o, prefer.wait)
	if err != nil {
		return answer{}, err
	}
	e, err := s.envelope(ctx, o, original)
	if err != nil {
		return answer{}, err
	}
	a := answer{body: e, etag: etag(o, original, e)}
	switch {
	case e.Terminal:
		a.status, a.replayed = http.StatusOK, true
		return a, nil
	case prefer.wait > 0 || prefer.async:
		a.status, a.retryAfter = http.StatusAccepted, e.RetryAfter
		return a, nil
	}
	return answer{}, newProblem("in_progress", e.Detail).about(e)
}

// countRepeat takes a repeat of what has not ended from the run's budget. What
// has ended is answered whatever is left.
func (s *Server) countRepeat(ctx context.Context, o ledger.Operation) error {
	original, err := s.Store.Original(ctx, o)
	if err != nil || ended(o, original) {
		return err
	}
	err = s.Store.Repeat(ctx, o)
	var spent store.BudgetSpent
	if !errors.As(err, &spent) {
		return err
	}
	e, err := s.envelope(ctx, o, original)
	if err != nil {
		return err
	}
	return budgetSpent(spent).about(e)
}

func budgetSpent(spent store.BudgetSpent) problem {
	return problemf("retry_budget_exhausted", "%s Stop and tell the person you work for; reading operations and their results stays free. Do not create a new operation for this purchase.", spent.Sentence)
}

// answerRefusal answers a submission that the store did not register. It used
// up no id.
func (s *Server) answerRefusal(ctx context.Context, draft ledger.Operation, err error) error {
	var differs store.Disagreement
	var missing store.MissingPrerequisite
	var late store.CannotReplace
	var spent store.BudgetSpent
	var exceeds store.RefundExceeds
	switch {
	case errors.As(err, &exceeds):
		return problemf("refund_exceeds_remaining", "%s Nothing was recorded or sent. Give back what is left under the same operation_id, or use the refunds that are recorded.", exceeds.Sentence)
	case errors.As(err, &differs):
		return s.disagree(draft.TenantID, draft.ActionType, differs)
	case errors.As(err, &spent):
		return budgetSpent(spent)
	case errors.As(err, &missing):
		if missing.OperationID == draft.Replaces {
			return misplaced("/replaces", "%s is not on record, so nothing can replace it: name an operation that was submitted before.", missing.OperationID)
		}
		return misplaced("/after", "%s: name operations that were submitted before.", missing.Error())
	case errors.As(err, &late):
		original, readErr := s.Store.Original(ctx, late.Operation)
		if readErr != nil {
			return readErr
		}
		e, readErr := s.envelope(ctx, late.Operation, original)
		if readErr != nil {
			return readErr
		}
		refusal := tooLate(late.Operation, original, e, "The operation that this one should replace can no longer be replaced")
		if p, ok := refusal.(problem); ok && p.detail == "" {
			p.detail = "The operation that this one should replace was sent, so it is not replaced. Ask for it at the poll address. Do not create a new operation for this purchase."
			return p
		}
		return refusal
	}
	return err
}

// mismatch refuses another payload under a known id. It names places, never
// values: the caller may not be the one who registered it.
func (s *Server) mismatch(ctx context.Context, o ledger.Operation, places []string) error {
	original, err := s.Store.Original(ctx, o)
	if err != nil {
		return err
	}
	e, err := s.envelope(ctx, o, original)
	if err != nil {
		return err
	}
	p := newProblem("request", "").about(e)
	p.mismatch = places
	return p
}

// otherType answers an id that belongs to another action type before the
// payload is judged by this one.
func (s *Server) otherType(ctx context.Context, who caller, sub submission) error {
	o, err := s.Store.Operation(ctx, who.TenantID, sub.operationID)
	if err != nil || o.ActionType == sub.actionType {
		return nil // the submission itself finds out about everything else
	}
	return s.mismatch(ctx, o, []string{"/action_type"})
}

// differences are the places in the payload at which two canonical forms differ.
func differences(a, b []byte) []string {
	va, errA := ledger.ParseStrict(a)
	vb, errB := ledger.ParseStrict(b)
	if errA != nil || errB != nil {
		return nil
	}
	pa, _ := ledger.Get(va, "/payload")
	pb, _ := ledger.Get(vb, "/payload")
	return ledger.Diff(pa, pb)
}

// submissionMembers are what a submission may have, with action_type.
var submissionMembers = []string{"operation_id", "payload", "run_id", "parent_run_id", "step", "distinct_from", "because", "replaces", "after"}

// readSubmission reads the body strictly: what two readers could understand
// differently is refused before anything is stored.
func readSubmission(c echo.Context) (submission, error) {
	r, err := readMembers(c, append([]string{"action_type"}, submissionMembers...)...)
	if err != nil {
		return submission{}, err
	}
	return r.submission(traceparent(c.Request()), c.Request().Header.Values("Idempotency-Key"))
}

// submission reads what is to be submitted. The keys are further names that the
// transport has for it.
func (r *memberReader) submission(trace string, keys []string) (submission, error) {
	sub := submission{
		actionType: r.text("action_type", 64), runID: r.line("run_id", 128), parentRunID: r.line("parent_run_id", 128), step: r.line("step", 128),
		because: r.line("because", 1000), replaces: r.text("replaces", 128),
		distinctFrom: r.texts("distinct_from"), after: r.texts("after"),
	}
	payload, given := r.members["payload"]
	object, isObject := payload.(map[string]any)
	if !isObject {
		r.refuse("/payload", "send the payload as a JSON object", given)
	}
	sub.payload, sub.trace = object, trace
	named := r.text("operation_id", 0)
	if r.wrong != nil {
		return sub, r.wrong
	}
	var err error
	if sub.operationID, err = identity(named, keys); err != nil {
		return sub, err
	}
	if sub.actionType == "" {
		return sub, newProblem("unknown_action_type", "Name the action type in action_type. Nothing was recorded or sent.")
	}
	switch {
	case sub.replaces == sub.operationID:
		return sub, misplaced("/replaces", "An operation cannot replace itself.")
	case slices.Contains(sub.after, sub.operationID):
		return sub, misplaced("/after", "An operation cannot come after itself.")
	case sub.replaces != "" && slices.Contains(sub.after, sub.replaces):
		return sub, misplaced("/after", "What it replaces ends unsent, so it cannot come after it.")
	}
	return sub, nil
}

// misplaced refuses what is well formed and makes no sense at its place.
func misplaced(pointer, format string, args ...any) problem {
	p := problemf("invalid_request", format+" Nothing was recorded or sent.", args...)
	p.pointer = pointer
	return p
}

// identity is the operation's name: from the body, from the Idempotency-Key
// header, or from both if they agree. The server never makes one up.
func identity(named string, keys []string) (string, error) {
	if len(keys) > 1 {
		return "", newProblem("invalid_operation_id", "Send one Idempotency-Key header. Nothing was recorded or sent.")
	}
	key := ""
	if len(keys) == 1 {
		key = strings.Trim(strings.TrimSpace(keys[0]), `"`) // the IETF draft quotes it
	}
	switch {
	case named == "" && key == "":
		return "", newProblem("operation_id_required", "")
	case named != "" && key != "" && named != key:
		return "", newProblem("invalid_operation_id", "operation_id and the Idempotency-Key header name two operations. Nothing was recorded or sent.")
	case named == "":
		named = key
	}
	if !operationID.MatchString(named) {
		return "", newProblem("invalid_operation_id", "")
	}
	return named, nil
}

// readJSONBody reads a body of at most so many bytes.
func readJSONBody(c echo.Context, most int64) ([]byte, error) {
	r := c.Request()
	// Two headers of a name are joined, as the RFC reads them: two types are none.
	media, params, err := mime.ParseMediaType(strings.Join(r.Header.Values("Content-Type"), ", "))
	charset := strings.ToLower(params["charset"])
	encoded := strings.Join(r.Header.Values("Content-Encoding"), "") != ""
	if err != nil || media != "application/json" || (charset != "" && charset != "utf-8") || encoded {
		return nil, newProblem("media_type", "")
	}
	if r.ContentLength > most {
		return nil, newProblem("body_too_large", "")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, most))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, newProblem("body_too_large", "")
	}
	if err != nil {
		return nil, newProblem("malformed_json", "The body did not arrive whole. Send it again under the same operation_id. Nothing was recorded or sent.")
	}
	return raw, nil
}

func malformed(err error) error {
	p := problemf("malformed_json", "%v. Nothing was recorded or sent.", err)
	var syntax *ledger.SyntaxError
	if errors.As(err, &syntax) {
		p.offset, p.pointer = &syntax.Offset, syntax.Pointer
	}
	return p
}

// memberReader reads members beside the payload and keeps the first thing that
// is wrong with them.
type memberReader struct {
	members map[string]any
	at      string // pointer to the object they are in
	wrong   error
}

// readMembers reads a body that is an object of these members and no others.
func readMembers(c echo.Context, allowed ...string) (memberReader, error) {
	raw, err := readJSONBody(c, maxBody)
	if err != nil {
		return memberReader{}, err
	}
	return decodeMembers(raw, allowed...)
}

func decodeMembers(raw []byte, allowed ...string) (memberReader, error) {
	members, err := ledger.DecodeObject(raw, allowed...)
	if err != nil {
		return memberReader{}, malformed(err)
	}
	return memberReader{members: members}, nil
}

// only refuses members of an inner object that are not known.
func (r *memberReader) only(allowed ...string) {
	for name := range r.members {
		if !slices.Contains(allowed, name) {
			r.refuse("/"+name, "is not known here; leave it out", true)
		}
	}
}

// integer reads an optional whole number.
func (r *memberReader) integer(name string) *int64 {
	v, given := r.members[name]
	if !given || v == nil {
		return nil
	}
	number, ok := v.(json.Number)
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if !ok || err != nil {
		r.refuse("/"+name, "send a whole number", true)
		return nil
	}
	return &n
}

func (r *memberReader) refuse(pointer, message string, given bool) {
	if r.wrong != nil {
		return
	}
	if !given {
		message = "is missing: " + message
	}
	pointer = r.at + pointer
	p := problemf("malformed_json", "%s: %s. Nothing was recorded or sent.", pointer, message)
	p.pointer = pointer
	r.wrong = p
}

// text reads an optional string of at most so many bytes (0: judged later).
func (r *memberReader) text(name string, most int) string {
	v, given := r.members[name]
	if !given {
		return ""
	}
	s, ok := v.(string)
	if !ok || (most > 0 && len(s) > most) {
		r.refuse("/"+name, fmt.Sprintf("send a string of at most %d bytes", max(most, 128)), true)
	}
	return s
}

// line reads an optional string that people read on one line: nothing in it may
// break it or turn it round.
func (r *memberReader) line(name string, most int) string {
	s := r.text(name, most)
	if strings.ContainsFunc(s, misleads) {
		r.refuse("/"+name, "leave out control characters and marks that change the direction of writing", true)
	}
	return s
}

func misleads(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

func (r *memberReader) texts(name string) []string {
	v, given := r.members[name]
	if !given {
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) > 100 {
		r.refuse("/"+name, "send a list of at most 100 operation ids", true)
		return nil
	}
	var all []string
	for i, item := range list {
		s, ok := item.(string)
		if !ok || !operationID.MatchString(s) {
			r.refuse(fmt.Sprintf("/%s/%d", name, i), "send an operation id", true)
			return nil
		}
		all = append(all, s)
	}
	return all
}

// draft is the operation as it would be registered: who asks for what, in its
// normal form.
func (s *Server) draft(who caller, sub submission) (ledger.Operation, error) {
	action := s.Store.Rulebook(who.TenantID).Actions[sub.actionType]
	if action == nil {
		return ledger.Operation{}, problemf("unknown_action_type", "There is no action type %q here. Nothing was recorded or sent.", sub.actionType)
	}
	if err := who.mayUse(action.Name, action.Rail); err != nil {
		return ledger.Operation{}, err
	}
	normal, wrong := action.Normalize(sub.payload)
	if len(wrong) > 0 {
		p := newProblem("invalid_payload", "")
		p.errors = wrong
		return ledger.Operation{}, p
	}
	if err := who.maySpend(normal.Terms); err != nil {
		return ledger.Operation{}, err
	}
	return ledger.Operation{
		TenantID: who.TenantID, OperationID: sub.operationID, ActionType: action.Name,
		Canonical: normal.Canonical, Payload: normal.Payload, Fingerprint: normal.Fingerprint, Terms: normal.Terms,
		Agent: who.Agent, TokenID: who.ID, Owner: who.Owner,
		RunID: sub.runID, ParentRunID: sub.parentRunID, Step: sub.step, Trace: sub.trace,
		DistinctFrom: sub.distinctFrom, Because: sub.because, Replaces: sub.replaces, After: sub.after,
	}, nil
}

// mayReplace checks that the token may end the operation that is to be replaced. One that is not there is the store's to refuse.
func (s *Server) mayReplace(ctx context.Context, who caller, id string) error {
	if id == "" {
		return nil
	}
	o, err := s.Store.Operation(ctx, who.TenantID, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return who.mayEnd(o)
}

// mayEnd checks that the token could have submitted what it is to take back or to
// replace.
func (c caller) mayEnd(o ledger.Operation) error {
	if err := c.mayUse(o.ActionType, o.Rail); err != nil {
		return err
	}
	return c.maySpend(o.Terms)
}

// mayUse checks a token's own narrowing to action types and rails.
func (c caller) mayUse(actionType, rail string) error {
	if len(c.ActionTypes) > 0 && !slices.Contains(c.ActionTypes, actionType) {
		return problemf("forbidden", "This token may not use the action type %q. Nothing was recorded or sent. Stop and tell the person you work for.", actionType)
	}
	if len(c.Rails) > 0 && !slices.Contains(c.Rails, rail) {
		return problemf("forbidden", "This token may not use the rail of this action type. Nothing was recorded or sent. Stop and tell the person you work for.")
	}
	return nil
}

// maySpend checks a token's own cap on one operation.
func (c caller) maySpend(t ledger.Terms) error {
	if c.MaxAmount == nil || !t.HasAmount {
		return nil
	}
	if t.Currency != c.Currency || t.Amount > *c.MaxAmount {
		return problemf("forbidden", "This token's cap for one operation does not cover the amount. Nothing was recorded or sent. Stop and tell the person you work for.")
	}
	return nil
}

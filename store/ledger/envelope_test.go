package ledger

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// contractReasons are the pairs of the contract, section 3.
var contractReasons = map[Status][]Reason{
	AwaitingApproval: {""}, Ready: {""}, InFlight: {""}, Unknown: {""}, Confirmed: {""},
	UnknownHold: append(slices.Clone(reasonsBeforeASend), reasonsAfterASend...),
	Rejected: {Denied, ApprovalExpired, Cancelled, PolicyDenied, Declined, NotExecuted, Replaced,
		PrerequisiteRejected, RunStopped, AuthorityGone, Observed, Duplicate},
}

var (
	reasonsBeforeASend = []Reason{SameReference, SameRecipientAmount, SameStep, ExactRepeat, ClaimsExhausted}
	reasonsAfterASend  = []Reason{Inconclusive, EvidenceConflict, KeyExpired, AttemptsExhausted, BudgetExhausted, ReceiptMismatch, AuthorityGone, Restored}
)

func TestNextIsWhatTheContractSays(t *testing.T) {
	next := map[Status]string{
		AwaitingApproval: "await_approval", Ready: "wait", InFlight: "wait", Unknown: "wait",
		UnknownHold: "await_human", Confirmed: "use_result", Rejected: "stop", "lost": "await_human",
	}
	wait := map[Status]int{AwaitingApproval: 30, Ready: 1, InFlight: 1, Unknown: 5, UnknownHold: 30}
	for s, reasons := range contractReasons {
		for _, r := range reasons {
			if Next(s, r) != next[s] {
				t.Errorf("%s %s: %s", s, r, Next(s, r))
			}
		}
		if RetryAfter(s) != wait[s] {
			t.Errorf("%s: retry after %d", s, RetryAfter(s))
		}
	}
}

// inviting are words by which an answer could lead a model to another name for
// the same purchase.
var inviting = regexp.MustCompile(`(?i)new (id|name|operation|key)|(another|different|other|fresh) (id|name|operation|operation_id|key)\b|retry|try again|resubmit|re-submit`)

func checkDetail(t *testing.T, place, detail string) {
	t.Helper()
	rest := strings.NewReplacer("Do not create a new operation for this purchase.", "", "Retry-After", "").Replace(detail)
	if found := inviting.FindString(rest); found != "" {
		t.Errorf("%s: %q says %q", place, detail, found)
	}
	if !strings.HasSuffix(detail, ".") || len(detail) > 300 {
		t.Errorf("%s: %q is no plain sentence", place, detail)
	}
	for _, word := range []string{"failed", "success", "error", "pending", "processed"} {
		if strings.Contains(strings.ToLower(detail), word) {
			t.Errorf("%s: %q uses the word %q", place, detail, word)
		}
	}
}

func TestNoDetailInvitesANewId(t *testing.T) {
	seen := map[string]string{}
	for s, reasons := range contractReasons {
		for _, r := range reasons {
			for _, o := range []Operation{sent(s, 0, 0, why(r)), sent(s, 2, 1, why(r)), sent(s, 0, 0, why(r), func(o *Operation) { o.PolicyRow = "blocked" })} {
				d := Describe(o, nil).Detail
				checkDetail(t, string(s)+" "+string(r), d)
				if !strings.HasSuffix(d, never) {
					t.Errorf("%s %s: %q does not say what never to do", s, r, d)
				}
				place := string(s) + " " + string(r)
				if other, taken := seen[d]; taken && other != place {
					t.Errorf("%s and %s say the same", place, other)
				}
				seen[d] = place
			}
		}
	}
	for s := range contractReasons {
		checkDetail(t, string(s), Describe(sent(s, 1, 1, why("unheard of")), nil).Detail)
	}
	checkDetail(t, "no status", Describe(Operation{}, nil).Detail)
	for _, p := range Problems {
		checkDetail(t, p.Reason, p.Detail)
	}
	alias, original := sent(Rejected, 0, 0, why(Duplicate), func(o *Operation) { o.DuplicateOf = "X" }), sent(Confirmed, 1, 0)
	checkDetail(t, "alias", Describe(alias, &original).Detail)
}

func TestNothingSentIsSaidOnlyWhereItIsTrue(t *testing.T) {
	for _, r := range reasonsAfterASend {
		if d := Describe(sent(UnknownHold, 1, 1, why(r)), nil).Detail; strings.Contains(d, "othing was sent") || !strings.Contains(d, "Do not send it again.") {
			t.Errorf("%s: %q", r, d)
		}
	}
	for _, r := range reasonsBeforeASend {
		if d := Describe(sent(UnknownHold, 0, 0, why(r)), nil).Detail; !strings.HasPrefix(d, "Nothing was sent") {
			t.Errorf("%s: %q", r, d)
		}
	}
}

func TestEnvelopeHasTheContractsNamesInOrder(t *testing.T) {
	o := Operation{
		OperationID: "inv-481-charge", OrderID: "ord_5KZ", ActionType: "create_payment", Fingerprint: "hf1:sha256:" + strings.Repeat("ab", 32),
		Status: UnknownHold, Reason: SameReference, Overlaps: []Overlapped{{"inv-480-charge", []string{"reference equal"}}},
		CreatedAt: 1730710800123, UpdatedAt: 1730710801000,
	}
	got, err := json.Marshal(Describe(o, nil).Saying("Use the supplier's new account.", "/recipient"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"operation_id":"inv-481-charge","order_id":"ord_5KZ","action_type":"create_payment",` +
		`"status":"unknown_hold","reason":"same_reference","terminal":false,` +
		`"next":"await_human","retry_after":30,"poll":"/v1/operations/inv-481-charge",` +
		`"fingerprint":"` + o.Fingerprint + `","words":"` + Words(o.Fingerprint) + `","attempts":0,"result":null,"duplicate_of":null,"replaced_by":null,` +
		`"detail":"Nothing was sent: an earlier operation has the same reference. A person decides; wait and ask for it again later. Do not create a new operation for this purchase.",` +
		`"created_at":"2024-11-04T09:00:00.123Z","updated_at":"2024-11-04T09:00:01.000Z",` +
		`"overlaps":[{"operation_id":"inv-480-charge","why":["reference equal"]}],` +
		`"decision":{"message":"Use the supplier's new account.","pointers":["/recipient"]}}`
	if string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if Words(o.Fingerprint) == "" {
		t.Error("no words")
	}
}

func TestEnvelopeOfWhatEndedHasItsResult(t *testing.T) {
	o := sent(Confirmed, 1, 0, func(o *Operation) {
		o.Receipt = &Receipt{ID: "pay_1", Amount: ptr[int64](4800), Currency: "EUR", Recipient: "acct_7"}
	})
	e := Describe(o, nil)
	if e.Result == nil || e.Result.ID != "pay_1" || !e.Terminal || e.Next != NextUseResult || e.RetryAfter != nil || e.Reason != nil || e.Decision != nil {
		t.Errorf("%+v", e)
	}
	body, err := json.Marshal(e)
	if err != nil || !strings.Contains(string(body), `"result":{"id":"pay_1","amount":4800,"currency":"EUR","recipient":"acct_7"}`) {
		t.Errorf("%s %v", body, err)
	}
	if !strings.Contains(string(body), `"reason":null,"terminal":true,"next":"use_result","retry_after":null`) || strings.Contains(string(body), "decision") || strings.Contains(string(body), "overlaps") {
		t.Errorf("%s", body)
	}
	// A receipt that differs from what was approved is no result.
	if e := Describe(sent(UnknownHold, 1, 1, why(ReceiptMismatch), func(o *Operation) { o.Receipt = &Receipt{ID: "pay_1"} }), nil); e.Result != nil {
		t.Errorf("a mismatching receipt is shown as the result: %+v", e)
	}
}

func TestAliasShowsTheStandingOfItsOriginal(t *testing.T) {
	alias := Operation{OperationID: "second", OrderID: "ord_2", ActionType: "create_payment", Fingerprint: "f2", Status: Rejected, Reason: Duplicate, DuplicateOf: "first", CreatedAt: 2, UpdatedAt: 3}
	original := Operation{OperationID: "first", OrderID: "ord_1", ActionType: "send_usdc", Fingerprint: "f1", Status: UnknownHold, Reason: Inconclusive, Attempts: 2, CreatedAt: 1, UpdatedAt: 9000}
	e := Describe(alias, &original)
	if e.OperationID != "second" || e.OrderID != "ord_2" || e.ActionType != "create_payment" || e.Fingerprint != "f2" || *e.DuplicateOf != "first" || e.Poll != "/v1/operations/second" {
		t.Errorf("not its own: %+v", e)
	}
	if e.Status != UnknownHold || *e.Reason != Inconclusive || e.Terminal || e.Next != NextAwaitHuman || *e.RetryAfter != 30 || e.Result != nil || e.UpdatedAt != "1970-01-01T00:00:09.000Z" {
		t.Errorf("not the original's: %+v", e)
	}
	if !strings.HasPrefix(e.Detail, "It is the same purchase as first,") {
		t.Error(e.Detail)
	}
	original.Status, original.Reason, original.Receipt = Confirmed, "", &Receipt{ID: "pay_1"}
	if e := Describe(alias, &original); e.Status != Confirmed || !e.Terminal || e.Result == nil || e.Reason != nil || e.Next != NextUseResult {
		t.Errorf("%+v", e)
	}
	if e := Describe(alias, nil); e.Status != Rejected || *e.Reason != Duplicate || e.Next != NextStop {
		t.Errorf("without its original: %+v", e)
	}
}

func TestEveryProblemIsWhatTheContractSays(t *testing.T) {
	type row struct {
		status   int
		next     string
		terminal bool
	}
	fix := func(status int) row { return row{status, "fix_request", false} }
	want := map[string]row{
		"operation_id_required": fix(400), "malformed_json": fix(400), "invalid_operation_id": fix(400), "invalid_request": fix(400),
		"unauthorized": fix(401), "bad_signature": fix(401), "not_found": fix(404), "method_not_allowed": fix(405), "body_too_large": fix(413), "media_type": fix(415),
		"invalid_payload": fix(422), "unknown_action_type": fix(422), "refund_exceeds_remaining": fix(422), "invalid_statement": fix(422),
		"policy_denied": {403, "stop", true}, "forbidden": {403, "stop", true},
		"request": {409, "stop", true}, "intent_conflict": {409, "stop", true}, "retry_budget_exhausted": {429, "stop", true},
		"in_progress": {409, "wait", false}, "already_dispatched": {409, "wait", false},
		"rate_limited": {429, "wait", false}, "store_unavailable": {503, "wait", false}, "internal": {500, "wait", false},
	}
	titles := map[string]bool{}
	for _, p := range Problems {
		if got := (row{p.Status, p.Next, p.Terminal}); got != want[p.Reason] {
			t.Errorf("%s: %+v, want %+v", p.Reason, got, want[p.Reason])
		}
		if p.Title == "" || titles[p.Title] {
			t.Errorf("%s: title %q", p.Reason, p.Title)
		}
		titles[p.Title] = true
		if p.Type() != "/problems/"+p.Reason {
			t.Error(p.Type())
		}
		if p.Next == NextWait && !strings.Contains(p.Detail, "Wait") || p.Next == NextStop && !strings.Contains(p.Detail, "Stop") && p.Reason != "request" {
			t.Errorf("%s: the detail does not say %s: %s", p.Reason, p.Next, p.Detail)
		}
	}
	for reason := range want {
		if p, ok := ProblemFor(reason); !ok || p.Reason != reason {
			t.Errorf("%s is missing", reason)
		}
	}
	if len(Problems) != len(want) {
		t.Errorf("%d problems, want %d", len(Problems), len(want))
	}
	if p, ok := ProblemFor("unheard of"); ok {
		t.Errorf("%+v", p)
	}
}

package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast/store/ledger"
)

// Seen is what a person had on the screen. A decision about anything else is
// refused and changes nothing.
type Seen struct {
	Fingerprint string
	Version     int64
}

// Decision is what a person says about one operation.
type Decision struct {
	Person ledger.PersonRecord
	Seen   Seen
	Reason string
	// For "it happened": the provider's id and amount in minor units, as the
	// person read them there.
	ReceiptID string
	Amount    *int64
	Differs   bool // the amount is meant to differ from what was approved
	// For "it happened twice".
	SecondReceiptID string
	// For "same purchase": the earlier operation, one of those it overlaps.
	Original string
	// For a no: the members of the payload that it is about, as JSON Pointers.
	Pointers []string
	// Together: how many were approved by one form, this one among them; more
	// than one needs a rule that allows it.
	Together int
}

// decide runs one person's decision: it reads the operation, compares it with
// what was seen, checks that the person may, and applies it.
func (s *Store) decide(ctx context.Context, tenant, id string, d Decision, f func(*tx, ledger.Operation, ledger.Holder) (ledger.Operation, error)) (ledger.Operation, error) {
	var after ledger.Operation
	err := s.change(ctx, func(t *tx) error {
		o, err := t.operation(tenant, id)
		if err != nil {
			return err
		}
		if d.Person.TenantID != tenant {
			return ErrNotFound
		}
		if d.Seen.Fingerprint != o.Fingerprint || d.Seen.Version != o.Version {
			after = o
			return ErrStale
		}
		after, err = f(t, o, ledger.Holder{Kind: ledger.Person, Name: d.Person.Email})
		return err
	})
	return after, err
}

// Approve adds a person's approval; the last one needed makes the operation
// ready. The approval is bound to the fingerprint, the policy version, and the
// rail's address and account of this moment.
func (s *Store) Approve(ctx context.Context, tenant, id string, d Decision) (ledger.Operation, error) {
	return s.decide(ctx, tenant, id, d, func(t *tx, o ledger.Operation, by ledger.Holder) (ledger.Operation, error) {
		if o.Status != ledger.AwaitingApproval {
			return o, fmt.Errorf("%w: it is %s", ledger.ErrNotAllowed, o.Status)
		}
		if o.Asked.ExpiresAt > 0 && o.Asked.ExpiresAt <= t.now {
			return o, fmt.Errorf("%w: the time to approve it is over", ledger.ErrNotAllowed)
		}
		self, err := t.mayApprove(o, d.Person)
		if err != nil {
			return o, err
		}
		if why := ledger.MustSignInAgain(o, d.Person, t.now); why != "" {
			return o, fmt.Errorf("%w: %s", ErrForbidden, why)
		}
		if may, why := t.s.Rulebook(tenant).Policy.MayTogether(o); d.Together > 0 && !may {
			return o, fmt.Errorf("%w: %s", ErrForbidden, why)
		}
		if o.Asked.ReasonRequired && strings.TrimSpace(d.Reason) == "" {
			return o, fmt.Errorf("%w: this rule needs a reason", ErrForbidden)
		}
		if err := t.addApproval(o, d, "approve", self); err != nil {
			return o, err
		}
		rail, _ := t.s.Rulebook(tenant).Route(o)
		given, err := t.validApprovals(o, rail)
		if err != nil {
			return o, err
		}
		sentence := fmt.Sprintf("Approved by %s (%d of %d).", d.Person.Display(), given, o.Asked.Approvals)
		if self {
			sentence = fmt.Sprintf("Self-approved by %s, the only person set up.", d.Person.Display())
		}
		fact := approvalFact{o.Fingerprint, self, d.Reason, d.Together}
		if given < o.Asked.Approvals {
			was := o
			o.Version++
			o.Detail = sentence
			return o, t.note(was, o, "approve", by, sentence, fact)
		}
		// Who lets it go has seen what it overlaps.
		if err := t.separate(o, d, by); err != nil {
			return o, err
		}
		return t.happen(o, happening{event: ledger.Approve, by: by, sentence: sentence, fact: fact, with: func(o *ledger.Operation) {
			o.NextSendAt = t.now + t.s.Rulebook(tenant).Timing.TakeBack.Milliseconds()
		}})
	})
}

// approvalFact is what the log keeps of an approval, with how many the same form
// approved.
type approvalFact struct {
	Fingerprint  string `json:"fingerprint"`
	SelfApproved bool   `json:"self_approved"`
	Reason       string `json:"reason"`
	Together     int    `json:"together,omitempty"`
}

func (t *tx) addApproval(o ledger.Operation, d Decision, decision string, self bool) error {
	rail, _ := t.s.Rulebook(o.TenantID).Route(o)
	pointers := ""
	if len(d.Pointers) > 0 {
		pointers = text(d.Pointers)
	}
	err := t.exec(`
		insert into approvals (`+approvalColumns+`)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, 0, $15)`,
		randomID("ap_"), o.TenantID, o.OperationID, decision, o.Fingerprint, o.PolicyVersion, rail.Address, rail.Account,
		d.Person.ID, d.Person.Email, flag(self), d.Reason, t.now, t.now+approvalLife.Milliseconds(), pointers)
	if isUnique(err) {
		return fmt.Errorf("%w: you approved this already; somebody else must", ErrForbidden)
	}
	return err
}

// approvalLife bounds how long a given approval may wait to be used.
const approvalLife = 72 * time.Hour // given on Friday evening, it survives until Monday

func (t *tx) mayApprove(o ledger.Operation, p ledger.PersonRecord) (self bool, err error) {
	people, err := t.countPeople(o.TenantID)
	if err != nil {
		return false, err
	}
	ok, self, why := ledger.MayApprove(o, p.Email, p.Roles, people)
	if !ok {
		return false, fmt.Errorf("%w: %s", ErrForbidden, why)
	}
	return self, nil
}

func (t *tx) mayDecideHold(o ledger.Operation, e ledger.Event, p ledger.PersonRecord) (self bool, err error) {
	people, err := t.countPeople(o.TenantID)
	if err != nil {
		return false, err
	}
	ok, self, why := ledger.MayDecideHold(o, e, p.Email, p.Roles, people)
	if !ok {
		return false, fmt.Errorf("%w: %s", ErrForbidden, why)
	}
	return self, nil
}

func (t *tx) countPeople(tenant string) (n int, err error) {
	return n, t.row(`select count(*) from people where tenant_id = $1 and disabled_at = 0`, tenant).Scan(&n)
}

// Reject is a person's no, with the sentence that goes to the agent. It also
// ends a hold of which nothing was sent.
func (s *Store) Reject(ctx context.Context, tenant, id string, d Decision) (ledger.Operation, error) {
	return s.refuse(ctx, tenant, id, d, "reject", "Rejected by %s: %s")
}

// AskForChanges is a no that tells the agent what to change: changed arguments
// are a new operation, judged afresh.
func (s *Store) AskForChanges(ctx context.Context, tenant, id string, d Decision) (ledger.Operation, error) {
	return s.refuse(ctx, tenant, id, d, "ask-changes", "%s asks for changes: %s")
}

func (s *Store) refuse(ctx context.Context, tenant, id string, d Decision, decision, wording string) (ledger.Operation, error) {
	return s.decide(ctx, tenant, id, d, func(t *tx, o ledger.Operation, by ledger.Holder) (ledger.Operation, error) {
		if err := needReason(d); err != nil {
			return o, err
		}
		// Saying no to an own request is no danger: only the roles are asked.
		if _, err := t.mayDecideHold(o, ledger.Deny, d.Person); err != nil {
			return o, err
		}
		if err := ledger.CheckPointers(o.Payload, d.Pointers); err != nil {
			return o, fmt.Errorf("%w: %s", ErrForbidden, err)
		}
		if err := t.addApproval(o, d, decision, false); err != nil {
			return o, err
		}
		fact := map[string]any{"decision": decision, "message": d.Reason}
		if len(d.Pointers) > 0 {
			fact["pointers"] = d.Pointers
		}
		return t.happen(o, happening{event: ledger.Deny, by: by, sentence: fmt.Sprintf(wording, d.Person.Display(), d.Reason), fact: fact})
	})
}

func needReason(d Decision) error {
	if strings.TrimSpace(d.Reason) == "" {
		return fmt.Errorf("%w: a reason is needed", ErrForbidden)
	}
	return nil
}

// Cancel takes an operation back while nothing was sent.
func (s *Store) Cancel(ctx context.Context, tenant, id string, by ledger.Holder) (ledger.Operation, error) {
	var after ledger.Operation
	err := s.changeTwice(ctx, func(t *tx) error {
		o, err := t.operation(tenant, id)
		if err != nil {
			return err
		}
		after = o
		if o.Status == ledger.Rejected && o.Reason == ledger.Cancelled {
			return nil // taken back already: the same answer again
		}
		after, err = t.happen(o, happening{event: ledger.Cancel, by: by, sentence: "Taken back before anything was sent."})
		return err
	})
	return after, err
}

const approvalColumns = `id, tenant_id, operation_id, decision, fingerprint, policy_version, rail_address, rail_account,
	person_id, person_email, self_approved, reason, decided_at, expires_at, spent_at, voided_at, pointers`

const selectApprovals = `
	select ` + approvalColumns + ` from approvals where tenant_id = $1 and operation_id = $2 order by decided_at, id`

// Approvals lists people's decisions on an operation, oldest first.
func (s *Store) Approvals(ctx context.Context, tenant, operation string) ([]ledger.Approval, error) {
	rows, err := s.readers.QueryContext(ctx, selectApprovals, tenant, operation)
	if err != nil {
		return nil, err
	}
	return collect(rows, scanApproval)
}

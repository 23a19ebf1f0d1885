package store

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"holdfast/store/ledger"
)

// authority checks again what gives the right to send. It returns an empty
// sentence when all of it still holds; otherwise it has already changed the
// operation accordingly and says why.
func (t *tx) authority(o ledger.Operation, worker string) (string, error) {
	by := ledger.Holder{Kind: ledger.Worker, Name: worker}
	rules := t.s.Rulebook(o.TenantID)
	rail, known := rules.Route(o)
	switch {
	case o.HashRow() != o.RowHash:
		return t.stop(o, by, "The stored operation was changed on disk: its hash does not fit. It is not sent.")
	case !known || rules.Actions[o.ActionType] == nil:
		return t.stop(o, by, "Its rail or action type is no longer configured.")
	}
	if sentence, err := t.requesterGone(o); err != nil || sentence != "" {
		return t.stopWith(o, by, sentence, err)
	}
	var decision ledger.Decision
	if o.PolicyVersion != rules.Policy.Version {
		var err error
		if decision, err = t.judge(o, rules); err != nil {
			return "", err
		}
		if decision.Then == ledger.ThenDeny {
			return t.stopWith(o, by, "The policy changed. "+decision.Sentence, nil)
		}
	}
	if o.Attempts > 0 || o.Quarantined {
		if sentence, err := t.mayResend(o, by, rail, rules.Harmless(o)); err != nil || sentence != "" {
			return sentence, err
		}
		return t.runAllows(o, by)
	}
	return t.mayStart(o, by, rail, rules, decision)
}

// runAllows asks the run's budget: a mark after an operation's first is a retry
// like any other, whoever makes it. One that a person released counts too, and
// goes out whatever is left: the person knew.
func (t *tx) runAllows(o ledger.Operation, by ledger.Holder) (string, error) {
	if o.RunID == "" || o.Attempts == 0 {
		return "", nil
	}
	if o.Released {
		return "", t.take(o.TenantID, o.RunID, "mark", 1)
	}
	refused, err := t.spend(o.TenantID, o.RunID, "mark")
	if err != nil || refused == "" {
		return "", err
	}
	return t.hold(o, by, ledger.BudgetExhausted, refused)
}

// mayStart judges an operation of which nothing was sent.
func (t *tx) mayStart(o ledger.Operation, by ledger.Holder, rail ledger.Rail, rules *ledger.Rulebook, decision ledger.Decision) (string, error) {
	if sentence, err := t.chargeSpent(o); err != nil || sentence != "" {
		return t.stopWith(o, by, sentence, err)
	}
	asked := askedAnew(o, decision, t.now)
	if o.RailAddress != rail.Address || o.RailAccount != rail.Account {
		return t.askAgain(o, by, rail, asked, "The rail's address or account changed since this was judged.")
	}
	if o.PolicyVersion != rules.Policy.Version && decision.AsksMoreThan(o.Asked) {
		return t.askAgain(o, by, rail, asked, "The policy changed. "+decision.Sentence)
	}
	if o.Asked.Approvals == 0 {
		return "", nil
	}
	n, err := t.validApprovals(o, rail)
	if err != nil {
		return "", err
	}
	if n < o.Asked.Approvals {
		return t.askAgain(o, by, rail, asked, "Its approval is no longer good: it expired, or belongs to something else.")
	}
	return "", nil
}

// askedAnew is who is asked when an operation goes back to people: those whom
// the policy names now, and never fewer than were asked before.
func askedAnew(o ledger.Operation, decision ledger.Decision, now int64) ledger.Asked {
	asked := ledger.DefaultAsked(now)
	switch {
	case decision.Then == ledger.ThenAsk && decision.AsksMoreThan(o.Asked):
		return decision.Asked
	case o.Asked.Approvals > 0:
		until := asked.ExpiresAt
		asked = o.Asked
		asked.ExpiresAt = until
	}
	return asked
}

// judge asks the policy. A question about the past that the store could not
// answer fails the change: it must not be decided on half the facts.
func (t *tx) judge(o ledger.Operation, rules *ledger.Rulebook) (ledger.Decision, error) {
	var failed error
	decision := rules.Policy.Decide(o, t.facts(o, &failed), t.now)
	return decision, failed
}

// mayResend judges an operation of which an attempt may have acted: promises 4
// and 5.
func (t *tx) mayResend(o ledger.Operation, by ledger.Holder, rail ledger.Rail, harmless bool) (string, error) {
	released := o.Released // by a person, with a name and a reason; the mark spends it
	none := o.Status == ledger.Ready && o.OpenAttempts == 0 && !o.Accepted && !o.Quarantined
	switch {
	case (released || none) && (o.RailAddress != rail.Address || o.RailAccount != rail.Account):
		return t.hold(o, by, ledger.KeyExpired, "The rail's address or account changed since it was approved: it is not sent there.")
	case released:
		return t.agedSinceRelease(o, by, rail)
	// Every earlier attempt is known not to have run: this is a first send in
	// all but number, bounded like any other.
	case none && o.Attempts >= rail.Limits.MaxAttempts:
		return t.hold(o, by, ledger.AttemptsExhausted, "All attempts this rail allows are used up, and none of them ran.")
	case none && t.now-o.FirstMarkAt >= rail.Limits.MaxElapsed.Milliseconds():
		return t.hold(o, by, ledger.BudgetExhausted, "The time this rail allows for one operation is over, and no attempt ran.")
	case none:
		return "", nil
	}
	ok, reason, sentence := rail.Resend(o, harmless, t.late())
	if ok {
		return "", nil
	}
	return t.hold(o, by, reason, sentence)
}

// agedSinceRelease stops what a person released while the provider would have
// recognised a repeat, and which waited until that changed: the key may be
// forgotten, or the rail recognises repeats in another way. That person saw
// another risk than there is now. Who releases a send after that has been told.
func (t *tx) agedSinceRelease(o ledger.Operation, by ledger.Holder, rail ledger.Rail) (string, error) {
	recognised, _, why := rail.RecognisesAt(o, t.late())
	if recognised || o.OpenAttempts == 0 && !o.Quarantined {
		return "", nil
	}
	var fact string
	err := t.row(`select fact from action_log where tenant_id = $1 and operation_id = $2 and event = $3 order by seq desc limit 1`,
		o.TenantID, o.OperationID, ledger.SendAgain).Scan(&fact)
	if err != nil {
		return "", err
	}
	then := releaseFact{Recognised: o.RecognisedBy == ""} // where the log does not say, the person is asked once more
	fromText(fact, &then)
	if !then.Recognised {
		return "", nil
	}
	return t.hold(o, by, ledger.KeyExpired, "When it was released, a repeat was to be recognised; now it may act again. "+why)
}

// releaseFact is what the log keeps of a release: whether the provider would
// have recognised the send as a repeat.
type releaseFact struct {
	SelfApproved bool `json:"self_approved"`
	Recognised   bool `json:"recognised"`
}

func (t *tx) validApprovals(o ledger.Operation, rail ledger.Rail) (int, error) {
	var n int
	err := t.row(`
		select count(distinct person_id) from approvals
		where tenant_id = $1 and operation_id = $2 and decision = 'approve' and voided_at = 0 and expires_at > $3
		  and fingerprint = $4 and policy_version = $5 and rail_address = $6 and rail_account = $7`,
		o.TenantID, o.OperationID, t.late(), o.Fingerprint, o.PolicyVersion, rail.Address, rail.Account).Scan(&n)
	return n, err
}

// requesterGone says why whoever asked for the operation no longer counts. A
// token that merely expired does: it was good when it asked.
func (t *tx) requesterGone(o ledger.Operation) (string, error) {
	if o.InPerson() {
		return t.personGone(o)
	}
	return t.tokenGone(o)
}

// personGone asks again whether the person who asked may ask for anything. Of
// what they had asked for before they were disabled, nothing goes out.
func (t *tx) personGone(o ledger.Operation) (string, error) {
	p, err := scanPerson(t.row(`select `+personColumns+` from people where tenant_id = $1 and email = $2`, o.TenantID, NormalEmail(o.Owner)))
	switch {
	case errors.Is(err, ErrNotFound):
		return "The person who asked for it is not known.", nil
	case err != nil:
		return "", err
	case p.DisabledAt > 0:
		return "The person who asked for it was disabled.", nil
	}
	if may, _ := ledger.MaySettle(p.Email, p.Roles); !may {
		return "The person who asked for it may no longer settle what is owed.", nil
	}
	return "", nil
}

func (t *tx) tokenGone(o ledger.Operation) (string, error) {
	var revoked int64
	err := t.row(`select revoked_at from tokens where tenant_id = $1 and id = $2`, o.TenantID, o.TokenID).Scan(&revoked)
	switch {
	case err == sql.ErrNoRows:
		return "The token that asked for it is not known.", nil
	case err != nil:
		return "", err
	case revoked > 0:
		return "The token that asked for it was revoked.", nil
	}
	return "", nil
}

func (t *tx) stopWith(o ledger.Operation, by ledger.Holder, sentence string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if o.May(ledger.Withdraw, by.Kind, t.now) {
		_, err := t.happen(o, happening{event: ledger.Withdraw, by: by, sentence: sentence})
		return sentence, err
	}
	return t.stop(o, by, sentence)
}

// stop hands the operation to a person: it must not be sent as it is.
func (t *tx) stop(o ledger.Operation, by ledger.Holder, sentence string) (string, error) {
	reason := ledger.AuthorityGone
	if o.Attempts == 0 && !o.Quarantined {
		reason = ledger.ClaimsExhausted
	}
	return t.hold(o, by, reason, sentence)
}

func (t *tx) hold(o ledger.Operation, by ledger.Holder, reason ledger.Reason, sentence string) (string, error) {
	_, err := t.happen(o, happening{event: ledger.GiveUp, by: by, reason: reason, sentence: sentence,
		with: func(o *ledger.Operation) { o.NextSendAt, o.LeaseUntil, o.LeaseOwner = 0, 0, "" }})
	return sentence, err
}

// askAgain sends an operation of which nothing left back to people, judged
// under the rules of now. Earlier approvals are void.
func (t *tx) askAgain(o ledger.Operation, by ledger.Holder, rail ledger.Rail, asked ledger.Asked, why string) (string, error) {
	rules := t.s.Rulebook(o.TenantID)
	sentence := strings.TrimSuffix(why, ".") + fmt.Sprintf(". %d approval(s) needed anew.", asked.Approvals)
	if err := t.exec(`update approvals set voided_at = $1 where tenant_id = $2 and operation_id = $3 and voided_at = 0`, t.now, o.TenantID, o.OperationID); err != nil {
		return "", err
	}
	_, err := t.happen(o, happening{event: ledger.AskAgain, by: by, sentence: sentence, with: func(o *ledger.Operation) {
		o.Asked, o.PolicyVersion = asked, rules.Policy.Version
		o.LeaseUntil, o.LeaseOwner = 0, ""
		bind(o, t.s.instance, rail)
	}})
	return sentence, err
}

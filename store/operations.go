package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"holdfast/store/ledger"
)

// operationColumns are all columns but id, in the order of operationValues and
// scanOperation.
const operationColumns = `tenant_id, operation_id, order_id, provider_key,
	action_type, action_version, effect, fingerprint, canonical, payload,
	amount, currency, recipient, reference, account, customer, refund_of,
	rail, rail_address, rail_account, row_hash,
	agent, token_id, owner, run_id, parent_run_id, step, reference_key,
	distinct_from, because, replaces, after_ids, overlaps, duplicate_of,
	policy_version, policy_row, asked, asked_until,
	status, reason, detail, version, attempts, open_attempts, claims,
	released, look_only, accepted, quarantined, ever_unknown,
	epoch, fence, lease_owner, lease_until,
	next_send_at, next_look_at, looks, first_mark_at, unknown_since, last_send_by, quiet_from,
	receipt_id, receipt, receipt_raw, created_at, updated_at, recognised_by, sighted`

const operationColumnCount = 68

var insertOperation = `insert into operations (id, ` + operationColumns + `) values ($1` + placeholders(2, operationColumnCount) + `)`

func placeholders(from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ", $%d", from+i)
	}
	return b.String()
}

func operationValues(o ledger.Operation) []any {
	var amount any
	if o.Terms.HasAmount {
		amount = o.Terms.Amount
	}
	id, receipt, raw := receiptValues(o.Receipt)
	return []any{
		o.TenantID, o.OperationID, o.OrderID, o.ProviderKey,
		o.ActionType, o.ActionVersion, o.Effect, o.Fingerprint, o.Canonical, o.Payload,
		amount, o.Terms.Currency, o.Terms.Recipient, o.Terms.Reference, o.Terms.Account, o.Terms.Customer, o.Terms.RefundOf,
		o.Rail, o.RailAddress, o.RailAccount, o.RowHash,
		o.Agent, o.TokenID, o.Owner, o.RunID, o.ParentRunID, o.Step, o.KnownAs(),
		text(o.DistinctFrom), o.Because, o.Replaces, text(o.After), text(o.Overlaps), o.DuplicateOf,
		o.PolicyVersion, o.PolicyRow, text(o.Asked), o.Asked.ExpiresAt,
		o.Status, o.Reason, o.Detail, o.Version, o.Attempts, o.OpenAttempts, o.Claims,
		flag(o.Released), flag(o.LookOnly), flag(o.Accepted), flag(o.Quarantined), flag(o.EverUnknown),
		o.Epoch, o.Fence, o.LeaseOwner, o.LeaseUntil,
		o.NextSendAt, o.NextLookAt, o.Looks, o.FirstMarkAt, o.UnknownSince, o.LastSendBy, o.QuietFrom,
		id, receipt, raw, o.CreatedAt, o.UpdatedAt, o.RecognisedBy, flag(o.Sighted),
	}
}

func receiptValues(r *ledger.Receipt) (id string, asJSON, raw any) {
	if r == nil {
		return "", nil, nil
	}
	return r.ID, []byte(text(r)), r.Raw
}

func scanOperation(row scanner) (ledger.Operation, error) {
	var o ledger.Operation
	var amount *int64
	var distinct, after, overlaps, asked, receiptID string
	var askedUntil int64
	var released, lookOnly, accepted, quarantined, everUnknown, sighted int
	var receipt, raw []byte
	err := row.Scan(
		&o.TenantID, &o.OperationID, &o.OrderID, &o.ProviderKey,
		&o.ActionType, &o.ActionVersion, &o.Effect, &o.Fingerprint, &o.Canonical, &o.Payload,
		&amount, &o.Terms.Currency, &o.Terms.Recipient, &o.Terms.Reference, &o.Terms.Account, &o.Terms.Customer, &o.Terms.RefundOf,
		&o.Rail, &o.RailAddress, &o.RailAccount, &o.RowHash,
		&o.Agent, &o.TokenID, &o.Owner, &o.RunID, &o.ParentRunID, &o.Step, &o.ReferenceKey,
		&distinct, &o.Because, &o.Replaces, &after, &overlaps, &o.DuplicateOf,
		&o.PolicyVersion, &o.PolicyRow, &asked, &askedUntil,
		&o.Status, &o.Reason, &o.Detail, &o.Version, &o.Attempts, &o.OpenAttempts, &o.Claims,
		&released, &lookOnly, &accepted, &quarantined, &everUnknown,
		&o.Epoch, &o.Fence, &o.LeaseOwner, &o.LeaseUntil,
		&o.NextSendAt, &o.NextLookAt, &o.Looks, &o.FirstMarkAt, &o.UnknownSince, &o.LastSendBy, &o.QuietFrom,
		&receiptID, &receipt, &raw, &o.CreatedAt, &o.UpdatedAt, &o.RecognisedBy, &sighted,
	)
	if err != nil {
		return o, notFound(err)
	}
	if amount != nil {
		o.Terms.Amount, o.Terms.HasAmount = *amount, true
	}
	o.Released, o.LookOnly, o.Accepted, o.Quarantined, o.EverUnknown = released == 1, lookOnly == 1, accepted == 1, quarantined == 1, everUnknown == 1
	o.Sighted = sighted == 1
	fromText(distinct, &o.DistinctFrom)
	fromText(after, &o.After)
	fromText(overlaps, &o.Overlaps)
	fromText(asked, &o.Asked)
	o.Asked.ExpiresAt = askedUntil
	if receipt != nil {
		o.Receipt = &ledger.Receipt{}
		fromText(string(receipt), o.Receipt)
		o.Receipt.Raw = bytes.Clone(raw)
	}
	return o, nil
}

// text is the JSON of small lists and records that only the program reads.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only plain structs of ours come here
	}
	return string(b)
}

func fromText(s string, v any) {
	if s != "" {
		_ = json.Unmarshal([]byte(s), v) // written by text; a damaged row is caught by its hash before it is sent
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rowIDs makes time-ordered ids: milliseconds, then a counter.
type rowIDs struct {
	mu   sync.Mutex
	last int64
}

func (r *rowIDs) next(now int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last+1, firstRowID(now))
	return r.last
}

// firstRowID is below the id of every row that is made from a moment on.
func firstRowID(now int64) int64 { return now << 20 }

const selectOperation = `select ` + operationColumns + ` from operations where tenant_id = $1 and operation_id = $2`

func (t *tx) operation(tenant, id string) (ledger.Operation, error) {
	return scanOperation(t.row(selectOperation, tenant, id))
}

func (t *tx) insert(o ledger.Operation) error {
	args := append([]any{t.s.rowIDs.next(t.now)}, operationValues(o)...)
	return t.exec(insertOperation, args...)
}

// save writes back what may change about an operation. The version, epoch and
// fence that were read stand in the where clause: a change that was decided on
// older facts affects no row.
func (t *tx) save(was, o ledger.Operation) error {
	const update = `
		update operations set
			status = $1, reason = $2, detail = $3, version = $4, attempts = $5, open_attempts = $6, claims = $7,
			released = $8, accepted = $9, quarantined = $10, ever_unknown = $11,
			epoch = $12, fence = $13, lease_owner = $14, lease_until = $15,
			next_send_at = $16, next_look_at = $17, looks = $18, first_mark_at = $19, unknown_since = $20, last_send_by = $21, quiet_from = $22,
			receipt_id = $23, receipt = $24, receipt_raw = $25, updated_at = $26,
			provider_key = $27, rail_address = $28, rail_account = $29, row_hash = $30,
			policy_version = $31, policy_row = $32, asked = $33, asked_until = $34, duplicate_of = $35, look_only = $42, recognised_by = $43, sighted = $44
		where tenant_id = $36 and operation_id = $37 and status = $38 and version = $39 and epoch = $40 and fence = $41`
	receiptID, receipt, raw := receiptValues(o.Receipt)
	n, err := t.affected(update,
		o.Status, o.Reason, o.Detail, o.Version, o.Attempts, o.OpenAttempts, o.Claims,
		flag(o.Released), flag(o.Accepted), flag(o.Quarantined), flag(o.EverUnknown),
		o.Epoch, o.Fence, o.LeaseOwner, o.LeaseUntil,
		o.NextSendAt, o.NextLookAt, o.Looks, o.FirstMarkAt, o.UnknownSince, o.LastSendBy, o.QuietFrom,
		receiptID, receipt, raw, o.UpdatedAt,
		o.ProviderKey, o.RailAddress, o.RailAccount, o.RowHash,
		o.PolicyVersion, o.PolicyRow, text(o.Asked), o.Asked.ExpiresAt, o.DuplicateOf,
		o.TenantID, o.OperationID, was.Status, was.Version, was.Epoch, was.Fence, flag(o.LookOnly), o.RecognisedBy, flag(o.Sighted))
	if err != nil {
		return err
	}
	if n != 1 {
		return ErrStale
	}
	t.changed = append(t.changed, opKey{o.TenantID, o.OperationID})
	return nil
}

// happening is one change of an operation: the event of the lifecycle table,
// who caused it, and what else about the operation changes with it.
type happening struct {
	event    ledger.Event
	by       ledger.Holder
	reason   ledger.Reason
	sentence string
	fact     any                     // kept in the log entry as JSON
	with     func(*ledger.Operation) // after the status changed
}

// happen is the one door: every status change of the program goes through it,
// and the log entry goes with it or neither does.
func (t *tx) happen(o ledger.Operation, h happening) (ledger.Operation, error) {
	was := o
	o, err := o.On(h.event, h.by.Kind, h.reason, t.now)
	if err != nil {
		return was, err
	}
	o.Detail = h.sentence
	if h.with != nil {
		h.with(&o)
	}
	if was.Status == "" {
		err = t.insert(o)
		t.changed = append(t.changed, opKey{o.TenantID, o.OperationID})
	} else {
		err = t.save(was, o)
	}
	if err != nil {
		return was, err
	}
	err = t.log(ledger.Entry{
		TenantID: o.TenantID, OperationID: o.OperationID, Object: "operation", ObjectID: o.OperationID,
		Event: string(h.event), ActorKind: h.by.Kind, Actor: h.by.Name,
		From: was.Status, To: o.Status, Reason: o.Reason, Sentence: h.sentence, Fact: factText(h.fact),
	})
	if err != nil {
		return o, err
	}
	if err := t.settledBy(o); err != nil {
		return o, err
	}
	if o.Status == ledger.Confirmed && was.Status != ledger.Confirmed {
		if _, err := t.crossRail(o); err != nil {
			return o, err
		}
	}
	return o, t.passOn(o)
}

// note records something about an operation that changes no status: a claim, a
// look-up that proved nothing. The version rises where an agent could see the
// difference.
func (t *tx) note(was, o ledger.Operation, event string, by ledger.Holder, sentence string, fact any) error {
	o.UpdatedAt = max(t.now, o.UpdatedAt)
	if err := t.save(was, o); err != nil {
		return err
	}
	return t.log(ledger.Entry{
		TenantID: o.TenantID, OperationID: o.OperationID, Object: "operation", ObjectID: o.OperationID,
		Event: event, ActorKind: by.Kind, Actor: by.Name, From: o.Status, To: o.Status, Reason: o.Reason,
		Sentence: sentence, Fact: factText(fact),
	})
}

func factText(fact any) string {
	if s := text(fact); s != "null" { // also of a receipt that is not there
		return s
	}
	return "{}"
}

// Operation reads one operation.
func (s *Store) Operation(ctx context.Context, tenant, id string) (ledger.Operation, error) {
	return scanOperation(s.readers.QueryRowContext(ctx, selectOperation, tenant, id))
}

// Original follows an alias to the operation whose result stands for it.
func (s *Store) Original(ctx context.Context, o ledger.Operation) (*ledger.Operation, error) {
	if o.DuplicateOf == "" {
		return nil, nil
	}
	original, err := s.Operation(ctx, o.TenantID, o.DuplicateOf)
	return &original, err
}

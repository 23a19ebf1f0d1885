package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/store/ledger"
)

// Disagreement is a submission or an intent that contradicts what is on record
// under the same name. Roles say in what.
type Disagreement struct {
	Roles    []string
	Sentence string
}

func (d Disagreement) Error() string { return d.Sentence }

// ErrTwoNames means that the reference and the step lead to two operations.
var ErrTwoNames = errors.New("the reference and the step lead to two operations")

// Intended is the answer to an intent.
type Intended struct {
	Intent    ledger.Intent
	Operation *ledger.Operation // what was submitted under the id, if anything was
	Existed   bool
}

// Intend gives the same id back for the same reference, or the same run and
// step, also when the operation was submitted without an intent: an agent that
// lost its id finds it again. Where that operation was rejected, or the quote
// ran out unused, a new id follows it.
func (s *Store) Intend(ctx context.Context, want ledger.Intent) (Intended, error) {
	var found Intended
	err := s.change(ctx, func(t *tx) error {
		var err error
		found, err = t.intend(want)
		return err
	})
	return found, err
}

// name is one business name of an operation.
type name struct{ kind, name string }

func namesOf(key, runID, step string) []name {
	var all []name
	if key != "" {
		all = append(all, name{"reference", key})
	}
	if runID != "" && step != "" {
		all = append(all, name{"step", text([]string{runID, step})})
	}
	return all
}

func (t *tx) intend(want ledger.Intent) (Intended, error) {
	live, previous, err := t.whoIsNamed(want)
	if err != nil {
		return Intended{}, err
	}
	if len(live) > 1 {
		return Intended{}, ErrTwoNames
	}
	if len(live) == 1 {
		found := live[0]
		if err := t.learn(want, &found); err != nil {
			return found, err
		}
		if err := t.giveNames(want.TenantID, want.ActionType, found.Intent.OperationID, namesOf(ledger.ReferenceKey(want.Reference), want.RunID, want.Step)); err != nil {
			return found, err
		}
		return found, t.agree(want, &found)
	}
	want.OperationID, want.Previous, want.CreatedAt = newOperationID(), previous, t.now
	if err := t.addIntent(want); err != nil {
		return Intended{}, err
	}
	err = t.giveNames(want.TenantID, want.ActionType, want.OperationID, namesOf(ledger.ReferenceKey(want.Reference), want.RunID, want.Step))
	if err != nil {
		return Intended{}, err
	}
	return Intended{Intent: want}, t.log(ledger.Entry{TenantID: want.TenantID, Object: "intent", ObjectID: want.OperationID, Event: "intend",
		ActorKind: ledger.Agent, Actor: want.Agent, Sentence: "An id was given out before the operation was planned.", Fact: text(want)})
}

// learn adds to an intent under which nothing was submitted what a later one
// says besides. One that says something else is about another purchase.
func (t *tx) learn(want ledger.Intent, found *Intended) error {
	i := &found.Intent
	if found.Operation != nil || i.CreatedAt == 0 {
		return nil
	}
	was := *i
	i.Reference, i.RunID, i.Step = cmp.Or(i.Reference, want.Reference), cmp.Or(i.RunID, want.RunID), cmp.Or(i.Step, want.Step)
	said := ledger.Operation{ReferenceKey: ledger.ReferenceKey(want.Reference), RunID: want.RunID, Step: want.Step}
	if roles := (ledger.Intent{Reference: i.Reference, RunID: i.RunID, Step: i.Step}).Disagree(said); len(roles) > 0 {
		return Disagreement{roles, "The id of this name was given out with another " + strings.Join(roles, " and ") + "."}
	}
	if i.Reference == was.Reference && i.RunID == was.RunID && i.Step == was.Step {
		return nil
	}
	return t.exec(`update intents set reference = $1, run_id = $2, step = $3 where tenant_id = $4 and operation_id = $5`,
		i.Reference, i.RunID, i.Step, i.TenantID, i.OperationID)
}

// agree compares a repeated intent with the one on record.
func (t *tx) agree(want ledger.Intent, found *Intended) error {
	found.Existed = true
	if want.Quote == nil {
		return nil
	}
	switch {
	case found.Operation != nil:
		want.Reference, want.RunID, want.Step = "", "", "" // they are the names that led here
		if roles := want.Disagree(*found.Operation); len(roles) > 0 {
			return Disagreement{roles, "The operation that has this name was submitted with other terms than this quote."}
		}
	case found.Intent.Quote != nil && !found.Intent.Quote.Same(want.Quote):
		return Disagreement{[]string{"quote"}, "This name has another quote on record, which is still good."}
	case found.Intent.Quote == nil:
		found.Intent.Quote = want.Quote
		return t.exec(`update intents set quote = $1, quote_until = $2 where tenant_id = $3 and operation_id = $4`,
			text(want.Quote), want.Quote.ExpiresAt, want.TenantID, found.Intent.OperationID)
	}
	return nil
}

// whoIsNamed finds the operations that have the names, without those that are
// over: previous is the last of these.
func (t *tx) whoIsNamed(want ledger.Intent) (live []Intended, previous string, err error) {
	for _, n := range namesOf(ledger.ReferenceKey(want.Reference), want.RunID, want.Step) {
		id, err := t.holder(want.TenantID, want.ActionType, n)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		found, over, err := t.named(want, id)
		switch {
		case err != nil:
			return nil, "", err
		case over:
			previous = id
			heir, err := t.heir(want, n)
			if err != nil {
				return nil, "", err
			}
			if heir != nil && (len(live) == 0 || live[0].Intent.OperationID != heir.Intent.OperationID) {
				live = append(live, *heir)
			}
		case len(live) == 0 || live[0].Intent.OperationID != id:
			live = append(live, found)
		}
	}
	return live, previous, nil
}

// heir is another operation of the same name that lives, where the first one
// that had the name is over: a purchase that a person called a different one.
func (t *tx) heir(want ledger.Intent, n name) (*Intended, error) {
	condition, args := `reference_key = $3`, []any{want.TenantID, want.ActionType, n.name}
	if n.kind == "step" {
		condition, args = `run_id = $3 and step = $4`, []any{want.TenantID, want.ActionType, want.RunID, want.Step}
	}
	rows, err := t.rows(`
		select operation_id from operations
		where tenant_id = $1 and action_type = $2 and `+condition+` and (status <> 'rejected' or duplicate_of <> '')
		order by id desc limit 100`, args...)
	if err != nil {
		return nil, err
	}
	ids, err := collect(rows, func(r *sql.Rows) (id string, err error) { return id, r.Scan(&id) })
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		found, over, err := t.named(want, id)
		if err != nil {
			return nil, err
		}
		if !over {
			return &found, nil
		}
	}
	return nil, nil
}

// named reads what stands behind an id, and whether it is over: rejected for
// good, or an offer that ran out unused.
func (t *tx) named(want ledger.Intent, id string) (found Intended, over bool, err error) {
	found.Intent, err = t.intent(want.TenantID, id)
	if errors.Is(err, ErrNotFound) {
		found.Intent, err = ledger.Intent{TenantID: want.TenantID, OperationID: id, ActionType: want.ActionType, Reference: want.Reference, RunID: want.RunID, Step: want.Step}, nil
	}
	if err != nil {
		return found, false, err
	}
	o, err := t.operation(want.TenantID, id)
	if errors.Is(err, ErrNotFound) {
		return found, found.Intent.Quote.Expired(t.now), nil
	}
	if err != nil {
		return found, false, err
	}
	found.Operation = &o
	stands, err := t.standing(want.TenantID, id)
	return found, stands.Status == ledger.Rejected, err
}

// giveNames ties names to an operation, where nobody has them or whoever had
// them is over.
func (t *tx) giveNames(tenant, actionType, operation string, names []name) error {
	for _, n := range names {
		given, err := t.affected(`
			insert into names (tenant_id, action_type, kind, name, operation_id, given_at) values ($1, $2, $3, $4, $5, $6)
			on conflict (tenant_id, action_type, kind, name) do nothing`, tenant, actionType, n.kind, n.name, operation, t.now)
		if err != nil {
			return err
		}
		if given == 1 {
			continue
		}
		holder, err := t.holder(tenant, actionType, n)
		if err != nil {
			return err
		}
		_, over, err := t.named(ledger.Intent{TenantID: tenant, ActionType: actionType}, holder)
		if err != nil {
			return err
		}
		if !over {
			continue
		}
		if err := t.exec(`
			update names set operation_id = $1, given_at = $2
			where tenant_id = $3 and action_type = $4 and kind = $5 and name = $6 and operation_id = $7`,
			operation, t.now, tenant, actionType, n.kind, n.name, holder); err != nil {
			return err
		}
	}
	return nil
}

// holder is the operation that has a name.
func (t *tx) holder(tenant, actionType string, n name) (id string, err error) {
	err = t.row(`select operation_id from names where tenant_id = $1 and action_type = $2 and kind = $3 and name = $4`,
		tenant, actionType, n.kind, n.name).Scan(&id)
	return id, notFound(err)
}

// keepToIntent refuses a submission that contradicts the intent its id was
// given out with, and takes over what that intent says and it does not repeat.
func (t *tx) keepToIntent(o ledger.Operation) (ledger.Operation, error) {
	i, err := t.intent(o.TenantID, o.OperationID)
	if errors.Is(err, ErrNotFound) {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	if i.ActionType != o.ActionType {
		return o, Disagreement{[]string{"action_type"}, "This id was given out for another action type."}
	}
	if roles := i.Disagree(o); len(roles) > 0 {
		return o, Disagreement{roles, "The submission differs from what this id was given out for, in " + strings.Join(roles, ", ") + "."}
	}
	if i.Quote.Expired(t.now) {
		return o, Disagreement{[]string{"quote"}, fmt.Sprintf("The quote of this intent ran out at %s.", stampUTC(i.Quote.ExpiresAt))}
	}
	return i.Names(o), nil
}

func (t *tx) addIntent(i ledger.Intent) error {
	quote, until := "", int64(0)
	if i.Quote != nil {
		quote, until = text(i.Quote), i.Quote.ExpiresAt
	}
	return t.exec(`
		insert into intents (tenant_id, operation_id, action_type, reference, run_id, step, quote, quote_until, previous, agent, token_id, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		i.TenantID, i.OperationID, i.ActionType, i.Reference, i.RunID, i.Step, quote, until, i.Previous, i.Agent, i.TokenID, i.CreatedAt)
}

func (t *tx) intent(tenant, id string) (ledger.Intent, error) {
	var i ledger.Intent
	var quote string
	err := t.row(`
		select tenant_id, operation_id, action_type, reference, run_id, step, quote, previous, agent, token_id, created_at
		from intents where tenant_id = $1 and operation_id = $2`, tenant, id).
		Scan(&i.TenantID, &i.OperationID, &i.ActionType, &i.Reference, &i.RunID, &i.Step, &quote, &i.Previous, &i.Agent, &i.TokenID, &i.CreatedAt)
	if quote != "" {
		i.Quote = &ledger.Quote{}
		fromText(quote, i.Quote)
	}
	return i, notFound(err)
}

func stampUTC(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// newOperationID is random: nobody can guess another's, and it says nothing.
func newOperationID() string {
	var b [16]byte
	rand.Read(b[:])
	return "op_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

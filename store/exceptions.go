package store

import (
	"context"
	"database/sql"
	"fmt"

	"holdfast/store/ledger"
)

const exceptionColumns = `id, tenant_id, operation_id, kind, sentence, evidence, owner, opened_at, answered_at, answered_by, answer, version`

func scanException(row scanner) (e ledger.Exception, err error) {
	var evidence string
	err = row.Scan(&e.ID, &e.TenantID, &e.OperationID, &e.Kind, &e.Sentence, &evidence, &e.Owner, &e.OpenedAt, &e.AnsweredAt, &e.AnsweredBy, &e.Answer, &e.Version)
	fromText(evidence, &e.Evidence)
	return e, notFound(err)
}

// openException asks a person about what contradicts an operation that ended.
// While it is open, the same again changes nothing.
func (t *tx) openException(o ledger.Operation, kind ledger.ExceptionKind, sentence string, by ledger.Holder, evidence ...string) (opened bool, err error) {
	id := randomID("exc_")
	n, err := t.affected(`
		insert into exceptions (`+exceptionColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, 0, '', '', 1)
		on conflict (tenant_id, operation_id, kind) where answered_at = 0 do nothing`,
		id, o.TenantID, o.OperationID, kind, sentence, text(evidence), o.Owner, t.now)
	if err != nil || n == 0 {
		return false, err
	}
	return true, t.log(ledger.Entry{TenantID: o.TenantID, OperationID: o.OperationID, Object: "exception", ObjectID: id, Event: "open",
		ActorKind: by.Kind, Actor: by.Name, From: o.Status, To: o.Status, Reason: o.Reason, Sentence: sentence, Fact: factText(map[string]any{"kind": kind})})
}

// wasAsked reports whether a person was asked about this before.
func (t *tx) wasAsked(o ledger.Operation, kind ledger.ExceptionKind) (asked bool, err error) {
	var n int
	err = t.row(`select count(*) from exceptions where tenant_id = $1 and operation_id = $2 and kind = $3`, o.TenantID, o.OperationID, kind).Scan(&n)
	return n > 0, err
}

// OpenExceptions lists what waits for a person's answer, oldest first.
func (s *Store) OpenExceptions(ctx context.Context, tenant string) ([]ledger.Exception, error) {
	rows, err := s.readers.QueryContext(ctx, `
		select `+exceptionColumns+` from exceptions where tenant_id = $1 and answered_at = 0 order by opened_at, id limit 1000`, tenant)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (ledger.Exception, error) { return scanException(r) })
}

// Exception reads one.
func (s *Store) Exception(ctx context.Context, tenant, id string) (ledger.Exception, error) {
	return scanException(s.readers.QueryRowContext(ctx, `select `+exceptionColumns+` from exceptions where tenant_id = $1 and id = $2`, tenant, id))
}

// AnswerException is a person's last word on an exception, with a reason. The
// operation stays as it is. Seen.Version is the exception's as it was on the
// screen.
func (s *Store) AnswerException(ctx context.Context, tenant, id string, d Decision) error {
	return s.change(ctx, func(t *tx) error {
		e, err := scanException(t.row(`select `+exceptionColumns+` from exceptions where tenant_id = $1 and id = $2`, tenant, id))
		if err != nil {
			return err
		}
		o, err := t.operation(tenant, e.OperationID)
		if err != nil {
			return err
		}
		self, err := t.mayAnswer(o, d)
		switch {
		case err != nil:
			return err
		case e.AnsweredAt > 0 || e.Version != d.Seen.Version:
			return ErrStale
		}
		if err := t.exec(`update exceptions set answered_at = $1, answered_by = $2, answer = $3, version = version + 1 where tenant_id = $4 and id = $5`,
			t.now, d.Person.Email, d.Reason, tenant, id); err != nil {
			return err
		}
		return t.log(ledger.Entry{TenantID: tenant, OperationID: e.OperationID, Object: "exception", ObjectID: id, Event: "answer",
			ActorKind: ledger.Person, Actor: d.Person.Email, From: o.Status, To: o.Status, Reason: o.Reason,
			Sentence: fmt.Sprintf("%s set it aside: %s", d.Person.Display(), d.Reason), Fact: factText(map[string]any{"kind": e.Kind, "self_approved": self})})
	})
}

// mayAnswer admits a person who may decide and did not ask for the operation
// through an agent of theirs.
func (t *tx) mayAnswer(o ledger.Operation, d Decision) (self bool, err error) {
	if err := mayAct(o.TenantID, d); err != nil {
		return false, err
	}
	people, err := t.countPeople(o.TenantID)
	if err != nil {
		return false, err
	}
	ok, self, why := ledger.MayAnswer(o, d.Person.Email, d.Person.Roles, people)
	if !ok {
		return false, fmt.Errorf("%w: %s", ErrForbidden, why)
	}
	return self, nil
}

package store

import (
	"fmt"

	"holdfast/store/ledger"
)

// answerWith closes what people are asked about one effect besides its entry: the
// statement line that shows it, and the exception of the operation that had ended
// without it. Once the entry is settled or waived nothing is left to be said of
// them. The lines of a closed period stay as they are.
func (t *tx) answerWith(e ledger.RefundOwed, by ledger.Holder) error {
	answer := fmt.Sprintf("The refund owed for it, %s, is %s.", e.ID, e.Status)
	if err := t.answerLines(e, answer, by); err != nil {
		return err
	}
	if e.Cause != ledger.CauseLateEffect {
		return nil
	}
	n, err := t.affected(`
		update exceptions set answered_at = $1, answered_by = $2, answer = $3, version = version + 1
		where tenant_id = $4 and operation_id = $5 and kind = $6 and answered_at = 0
		  and not exists (select 1 from refunds_owed where tenant_id = $4 and operation_id = $5 and cause = $7 and open > 0)`,
		t.now, by.Name, answer, e.TenantID, e.OperationID, ledger.HappenedAfterAll, ledger.CauseLateEffect)
	if err != nil || n == 0 {
		return err
	}
	return t.log(ledger.Entry{TenantID: e.TenantID, OperationID: e.OperationID, Object: "exception", ObjectID: e.ID, Event: "answer",
		ActorKind: by.Kind, Actor: by.Name, Sentence: answer})
}

func (t *tx) answerLines(e ledger.RefundOwed, answer string, by ledger.Holder) error {
	rows, err := t.rows(`
		select `+prefixed("l", lineColumns)+` from statement_lines l join statements s on `+visible+`
		where l.tenant_id = $1 and l.rail = $2 and l.provider_id = $3 and l.provider_id <> '' and l.state = 'unmatched' and l.finding <> ''`,
		e.TenantID, e.Rail, e.ReceiptID)
	if err != nil {
		return err
	}
	lines, err := collect(rows, scanLines)
	if err != nil {
		return err
	}
	for _, l := range lines {
		closed, err := t.closedUntil(l.TenantID, l.Rail, l.Account)
		if err != nil {
			return err
		}
		if l.CountedAt < closed {
			continue
		}
		was := l
		l.State, l.AnsweredBy, l.Reason, l.WeighedAt = ledger.LineSetAside, by.Name, answer, t.now
		if err := t.saveLine(was, l); err != nil {
			return err
		}
		if err := t.log(ledger.Entry{TenantID: l.TenantID, Object: "statement_line", ObjectID: fmt.Sprint(l.ID), Event: "set_aside",
			ActorKind: by.Kind, Actor: by.Name, Sentence: answer, Fact: factText(map[string]any{"statement": l.StatementID})}); err != nil {
			return err
		}
	}
	return nil
}

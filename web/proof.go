package web

import (
	"context"
	"fmt"
	"strings"

	"holdfast/store"
	"holdfast/store/ledger"
)

// checkProof asks the rail about a proof, where it can be asked by the provider's
// id. What does not agree is refused, and so is what could not be read: it may be
// recorded once the rail answers. Where a rail cannot be asked, the proof is kept
// as unchecked.
func (s *Server) checkProof(ctx context.Context, e ledger.RefundOwed, p store.RefundProof) (checked bool, problem string, err error) {
	t := s.Config().Tenants[e.TenantID]
	if t == nil || t.Rails[p.Rail] == nil || !t.Rails[p.Rail].AsksByReceipt() {
		return false, "", nil
	}
	record, finding, sentence := t.Rails[p.Rail].Record(ctx, p.ID, e.Currency)
	if finding != ledger.LookFound {
		return false, strings.TrimSpace(sentence + " Nothing was recorded."), nil
	}
	payees := []string{e.Customer}
	if e.OperationID != "" {
		o, err := s.Store.Operation(ctx, e.TenantID, e.OperationID)
		if err != nil {
			return false, "", err
		}
		payees = append(payees, o.Terms.Customer, o.Terms.Recipient)
	}
	return true, disagrees(record, e, p, payees, s.Store.Rulebook(e.TenantID).Currencies), nil
}

// disagrees says where the provider's record is not what was typed.
func disagrees(r ledger.Receipt, e ledger.RefundOwed, p store.RefundProof, payees []string, money ledger.Currencies) string {
	known, same := false, false
	for _, who := range payees {
		known, same = known || who != "", same || who != "" && who == r.Recipient
	}
	switch {
	case r.Amount == nil:
		return fmt.Sprintf("The provider's record of %s has no amount that can be read. Nothing was recorded.", p.ID)
	case *r.Amount != p.Amount:
		return fmt.Sprintf("The provider's record of %s is over %s, and you typed %s. Nothing was recorded.", p.ID, money.Format(*r.Amount, e.Currency), money.Format(p.Amount, e.Currency))
	case r.Currency != "" && !strings.EqualFold(r.Currency, e.Currency):
		return fmt.Sprintf("The provider's record of %s is in %s, and %s is owed. Nothing was recorded.", p.ID, r.Currency, e.Currency)
	case r.Recipient != "" && known && !same:
		return fmt.Sprintf("The provider's record of %s names another payee. Nothing was recorded.", p.ID)
	}
	return ""
}

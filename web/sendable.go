package web

import (
	"context"
	"errors"
	"strings"

	"holdfast/store"
	"holdfast/store/ledger"
)

// sendable refuses a new submission from which its rail can make no request: a
// mail whose subject has a line break, a payload without what the address needs.
// A person would otherwise approve what can never be sent. What is on record
// keeps its answer.
func (s *Server) sendable(ctx context.Context, draft ledger.Operation) error {
	action := s.Store.Rulebook(draft.TenantID).Actions[draft.ActionType]
	if action == nil || action.Mode == "observe" {
		return nil
	}
	if _, err := s.Store.Operation(ctx, draft.TenantID, draft.OperationID); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	r := s.Config().Tenants[draft.TenantID].Routes[draft.ActionType]
	if r == nil {
		return nil
	}
	// As it would be named if it were sent now: only the payload can be wrong.
	draft.Rail = r.Promise().Name
	draft.OrderID = ledger.OrderID(s.Store.Instance(), draft.TenantID, draft.OperationID)
	draft.ProviderKey = ledger.ProviderKey(s.Store.Instance(), draft.TenantID, draft.OperationID, r.Promise().Account)
	draft.CreatedAt, draft.FirstMarkAt = s.Store.Now(), s.Store.Now()
	_, err := r.Render(draft)
	if err == nil {
		return nil
	}
	_, why, _ := strings.Cut(err.Error(), "cannot be rendered: ")
	return problemf("invalid_payload", "No request can be made of this payload: %s. Nothing was recorded or sent. Fix the payload and send it again under the same operation_id.", why)
}

package web

import (
	"slices"

	"holdfast/store/ledger"
)

const dots = ledger.Masked

// seesAll reports whether a person is shown sensitive members: whoever decides
// must see what about; a viewer need not.
func seesAll(p ledger.PersonRecord) bool {
	ok, _ := ledger.MayAct(p.Email, p.Roles)
	return ok
}

// conceals reports whether the bytes of an operation hold anything that is not
// for this person. Where the action type is not configured any more, nobody can
// say what is sensitive, and so all of it is.
func (s *Server) conceals(p ledger.PersonRecord, o ledger.Operation) bool {
	if seesAll(p) {
		return false
	}
	action := s.Store.Rulebook(o.TenantID).Actions[o.ActionType]
	return action == nil || len(action.Sensitive) > 0
}

// veil is the operation as this person may see it in lists and headlines: terms
// that are sensitive are dots.
func (s *Server) veil(p ledger.PersonRecord, o ledger.Operation) ledger.Operation {
	if !s.conceals(p, o) {
		return o
	}
	return s.Store.Rulebook(o.TenantID).Actions[o.ActionType].Veil(o)
}

// keepsFrom reports whether a name is one of an operation's that this person is
// not shown: whoever may not see it can't find by it either.
func (s *Server) keepsFrom(p ledger.PersonRecord, o ledger.Operation, name string) bool {
	return s.conceals(p, o) && isNamed(o, name) && !isNamed(s.veil(p, o), name)
}

// isNamed reports whether a name that search takes is one of an operation's.
func isNamed(o ledger.Operation, name string) bool {
	if from, before, ok := ledger.FingerprintRange(name); ok && o.Fingerprint >= from && o.Fingerprint < before {
		return true
	}
	names := []string{o.OperationID, o.OrderID, o.ProviderKey, o.Terms.Recipient, o.Terms.Reference, o.Terms.Customer}
	if o.Receipt != nil {
		names = append(names, o.Receipt.ID)
	}
	key := ledger.ReferenceKey(name)
	return slices.Contains(names, name) || key != "" && o.ReferenceKey == key
}

package dispatch

import (
	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// Route is how to speak for an operation: the rail as its action type uses it.
// An operation stays on the rail it was registered for. Nil: it is not
// configured any more.
func (c *Config) Route(o ledger.Operation) *rail.Rail {
	t := c.Tenants[o.TenantID]
	if t == nil {
		return nil
	}
	if r := t.Routes[o.ActionType]; r != nil && r.Promise().Name == o.Rail {
		return r
	}
	return t.Rails[o.Rail]
}

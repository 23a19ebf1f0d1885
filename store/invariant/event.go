package invariant

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"holdfast/store"
	"holdfast/store/ledger"
)

// events: each is kept as it came, and belongs to an operation of its own tenant
// and rail or to none (I-23).
func (c *checker) events(ctx context.Context) error {
	return c.db.EachEvent(ctx, func(e ledger.ProviderEvent) error {
		about := ledger.Operation{TenantID: e.TenantID, OperationID: e.OperationID}
		if sum := sha256.Sum256(e.Body); hex.EncodeToString(sum[:]) != e.SHA256 {
			c.fault("I-23", about, "event %s of rail %s was changed: the hash does not fit", e.EventID, e.Rail)
		}
		if e.OperationID == "" {
			return nil
		}
		o, err := c.db.Operation(ctx, e.TenantID, e.OperationID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			c.fault("I-23", about, "event %s of rail %s belongs to it, and it is not in the ledger", e.EventID, e.Rail)
		case err != nil:
			return err
		case o.Rail != e.Rail || e.Stamp != "" && e.Stamp != o.OrderID:
			c.fault("I-23", about, "event %s of rail %s is another operation's", e.EventID, e.Rail)
		}
		return nil
	})
}

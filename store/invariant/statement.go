package invariant

import "context"

// statements: each line counts once, matches add up, what is closed is answered,
// and balances lead to each other (I-22).
func (c *checker) statements(ctx context.Context) error {
	faults, err := c.db.StatementFaults(ctx)
	for _, f := range faults {
		c.found = append(c.found, Violation{"I-22", f.TenantID, f.OperationID, f.Sentence})
	}
	return err
}

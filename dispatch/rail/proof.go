package rail

import (
	"context"

	"holdfast/store/ledger"
)

// AsksByReceipt reports whether the rail's look-up can be asked about one record by
// the provider's own id, and needs nothing else for it.
func (r *Rail) AsksByReceipt() bool {
	return r.lookupPath.given() && r.lookupPath.asksOnly("receipt_id")
}

// Record asks the provider for the one record of that id, whoever made it.
// Unreachable is silence, and says nothing about the record.
func (r *Rail) Record(ctx context.Context, id, currency string) (ledger.Receipt, ledger.LookFinding, string) {
	o := ledger.Operation{Receipt: &ledger.Receipt{ID: id}, Terms: ledger.Terms{Currency: currency}}
	req, err := r.query(o, "")
	if err != nil {
		return ledger.Receipt{}, ledger.LookUnreachable, "The look-up cannot be written."
	}
	conn, err := r.Connect(ctx)
	if err != nil {
		return ledger.Receipt{}, ledger.LookUnreachable, "The provider could not be asked: " + WhyUnreached(err) + "."
	}
	p, nothing := r.see(conn.Send(ctx, req, r.now().Add(r.promise.Timeout)))
	if nothing != nil {
		return ledger.Receipt{}, nothing.Finding, nothing.Sentence
	}
	for _, raw := range p.records {
		record, _ := readJSON(raw)
		receipt, err := r.extract(o, record, raw, r.config.Receipt)
		if err != nil || receipt.ID != id {
			continue
		}
		if why, ok := r.successful(record); !ok {
			return receipt, ledger.LookInconclusive, "The provider has it, but " + why + "."
		}
		return receipt, ledger.LookFound, ""
	}
	return ledger.Receipt{}, ledger.LookAbsent, "The provider has no such record."
}

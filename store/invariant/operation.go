package invariant

import (
	"strings"

	"holdfast/store"
	"holdfast/store/ledger"
)

// identity: the keys are those that the identity gives (I-9). They hold no time,
// attempt, worker or word of the agent's.
func (c *checker) identity(d store.Dossier) {
	o, instance := d.Operation, c.db.Instance()
	if o.TenantID == "" || o.OperationID == "" {
		c.fault("I-9", o, "has no identity")
	}
	if o.OrderID != ledger.OrderID(instance, o.TenantID, o.OperationID) {
		c.fault("I-9", o, "its order id is not its own")
	}
	if o.ProviderKey != ledger.ProviderKey(instance, o.TenantID, o.OperationID, o.RailAccount) {
		c.fault("I-9", o, "its provider key is not its own")
	}
	for _, a := range d.Attempts {
		if a.ProviderKey != o.ProviderKey {
			c.fault("I-9", o, "attempt %d went out under another key", a.Number)
		}
	}
}

// bytes: what was registered, approved and sent is the same, to the byte (I-10).
func (c *checker) bytes(d store.Dossier, h history) {
	o := d.Operation
	if o.HashRow() != o.RowHash {
		c.fault("I-10", o, "its row was changed: the hash does not fit")
	}
	if ledger.Fingerprint(o.Canonical) != o.Fingerprint {
		c.fault("I-10", o, "its fingerprint is not that of its canonical form")
	}
	if d.Request != nil && d.Request.HashRequest() != d.Request.SHA256 {
		c.fault("I-10", o, "its request was changed: the hash does not fit")
	}
	if (d.Request == nil) != (len(d.Attempts) == 0) {
		c.fault("I-10", o, "has %d attempts, and request kept: %v", len(d.Attempts), d.Request != nil)
	}
	for _, a := range d.Attempts {
		if d.Request != nil && a.RequestSHA256 != d.Request.SHA256 {
			c.fault("I-10", o, "attempt %d sent other bytes than are kept", a.Number)
		}
	}
	for _, m := range h.marks {
		if d.Request != nil && m.Request != d.Request.SHA256 {
			c.fault("I-10", o, "the log says that attempt %d sent other bytes than are kept", m.Attempt)
		}
	}
}

// attempts: marks in the log, rows and the count agree (I-7, I-8), and what is
// counted as unresolved is.
func (c *checker) attempts(d store.Dossier, h history) {
	o := d.Operation
	if o.Attempts != len(d.Attempts) || o.Attempts != len(h.marks) {
		c.fault("I-8", o, "counts %d attempts, has %d rows and %d marks in the log", o.Attempts, len(d.Attempts), len(h.marks))
		return
	}
	open := 0
	for i, a := range d.Attempts {
		if m := h.marks[i]; a.Number != i+1 || m.Attempt != a.Number || m.Epoch != a.Epoch || m.Fence != a.Fence || m.Key != a.ProviderKey {
			c.fault("I-7", o, "attempt %d is not the one that the log marked", a.Number)
		}
		if !a.Outcome.Resolved() {
			open++
		}
	}
	if !o.Status.Final() && o.OpenAttempts != open {
		c.fault("I-8", o, "counts %d unresolved attempts, and %d are", o.OpenAttempts, open)
	}
}

// leases: fences rise with every claim (I-12), each attempt went out under one
// that was handed out, and the row holds the last.
func (c *checker) leases(d store.Dossier, h history) {
	o := d.Operation
	var last claimFact
	handedOut := map[[2]int64]bool{}
	for _, f := range h.claims {
		if f.Epoch < last.Epoch || f.Epoch == last.Epoch && f.Fence <= last.Fence {
			c.fault("I-12", o, "entry %d hands out fence %d.%d after %d.%d", f.Seq, f.Epoch, f.Fence, last.Epoch, last.Fence)
		}
		last = f
		handedOut[[2]int64{f.Epoch, f.Fence}] = true
	}
	if o.Fence != last.Fence {
		c.fault("I-12", o, "its fence is %d, the last that was handed out is %d", o.Fence, last.Fence)
	}
	used := map[[2]int64]bool{}
	for _, a := range d.Attempts {
		fence := [2]int64{a.Epoch, a.Fence}
		if !handedOut[fence] || used[fence] {
			c.fault("I-12", o, "attempt %d was marked under fence %d.%d, which was not handed out for it", a.Number, a.Epoch, a.Fence)
		}
		used[fence] = true
	}
}

// approved: what people were asked for was given before the first send, by people
// who may, each counted once, for these bytes (I-11).
func (c *checker) approved(d store.Dossier) {
	o := d.Operation
	people := map[string]bool{}
	for _, a := range d.Approvals {
		if a.Decision != "approve" {
			continue
		}
		if a.Fingerprint != o.Fingerprint {
			c.fault("I-11", o, "an approval by %s is for another fingerprint", a.PersonEmail)
		}
		if strings.EqualFold(a.PersonEmail, o.Owner) && o.Owner != "" && !a.SelfApproved {
			c.fault("I-11", o, "%s approved an own request, and it is not stamped so", a.PersonEmail)
		}
		if a.SpentAt > 0 && len(d.Attempts) == 0 {
			c.fault("I-11", o, "an approval by %s is spent, and nothing was sent", a.PersonEmail)
		}
		good := a.SpentAt > 0 && a.VoidedAt == 0 && a.SpentAt < a.ExpiresAt && a.DecidedAt <= a.SpentAt &&
			a.RailAddress == o.RailAddress && a.RailAccount == o.RailAccount && a.PolicyVersion == o.PolicyVersion
		if good {
			people[a.PersonID] = true
		}
	}
	if len(d.Attempts) > 0 && len(people) < o.Asked.Approvals {
		c.fault("I-11", o, "was sent with %d of %d approvals", len(people), o.Asked.Approvals)
	}
}

// timing: what is under way has a lease that ends, what is unknown has a next
// step (I-27), and nobody said "it did not happen" while it still could (I-31).
func (c *checker) timing(d store.Dossier, h history) {
	o := d.Operation
	if o.Status == ledger.InFlight && o.LeaseUntil == 0 {
		c.fault("I-27", o, "is in flight under a lease that never ends")
	}
	if o.Status == ledger.Unknown && !planned(o) {
		c.fault("I-27", o, "is unknown and nothing is planned")
	}
	for _, e := range h.denials {
		for i, a := range d.Attempts {
			if i < len(h.marks) && h.marks[i].Seq < e.Seq && a.SendBy > e.At && !a.Outcome.Resolved() {
				c.fault("I-31", o, "entry %d (%s) was made while attempt %d could still be sent", e.Seq, e.Event, a.Number)
			}
		}
		if e.To == ledger.Rejected && e.At < o.QuietFrom {
			c.fault("I-31", o, "entry %d (%s) was made before it was quiet", e.Seq, e.Event)
		}
	}
}

// planned reports whether an unknown operation has a next step. One that the
// provider accepted may have none but the sweep, which holds it in the end.
func planned(o ledger.Operation) bool { return o.NextLookAt > 0 || o.NextSendAt > 0 || o.Accepted }

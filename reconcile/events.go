package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// Unproven means that an event is not proven to be the provider's: it was
// stored nowhere. The text says why, for the operator's log.
type Unproven struct{ Why string }

func (u Unproven) Error() string { return "the event is not proven to be the provider's: " + u.Why }

// ErrNoEvents means that no such rail takes in events.
var ErrNoEvents = errors.New("no such rail takes in events")

// Hear takes in what a provider sent to a rail of a tenant. When it returns
// without an error the event is stored, or was before, or is one of those without
// a signature that say nothing about any operation. What it means is worked out
// at once, and where that fails, by the job of the same name.
func (s *Scheduler) Hear(ctx context.Context, tenant, name string, header http.Header, body []byte) error {
	r := s.railOf(tenant, name)
	if r == nil || !r.HearsEvents() {
		return ErrNoEvents
	}
	origin, err := r.Origin(header, body)
	if err != nil {
		return Unproven{err.Error()}
	}
	e := ledger.ProviderEvent{TenantID: tenant, Rail: name, EventID: origin.EventID, Signed: origin.Signed, Seal: origin.Seal, Body: body}
	if !e.Signed { // anybody may have sent it: it is kept only if it names something
		said := r.ReadEvent(body)
		e.Stamp, e.ReceiptID = said.Stamp, said.ReceiptID
	}
	kept, err := s.Store.KeepEvent(ctx, e)
	if err != nil || kept.ID == 0 || kept.State != ledger.EventKept {
		return err
	}
	if _, _, err := s.weigh(ctx, kept); err != nil {
		s.Log.Warn("an event is stored and could not be weighed yet", "tenant", tenant, "rail", name, "event", kept.ID, "error", err)
	}
	return nil
}

func (s *Scheduler) railOf(tenant, name string) *rail.Rail {
	t := s.Config().Tenants[tenant]
	if t == nil {
		return nil
	}
	return t.Rails[name]
}

// weigh reads a stored event and commits what it means.
func (s *Scheduler) weigh(ctx context.Context, e ledger.ProviderEvent) (before, after ledger.Operation, err error) {
	config := s.Config()
	said := rail.Event{}
	if r := s.railOf(e.TenantID, e.Rail); r != nil {
		said = r.ReadEvent(e.Body)
	}
	e.Stamp, e.ReceiptID = said.Stamp, said.ReceiptID
	return s.Store.WeighEvent(ctx, e, func(o ledger.Operation) ledger.Look {
		r := config.Route(o)
		if r == nil {
			return ledger.Look{Finding: ledger.LookInconclusive, Sentence: "Its rail is not configured any more, so the event cannot be read."}
		}
		return r.Testimony(o, said, e.Signed)
	})
}

// events weighs what was stored and not weighed, by a process that ended or a
// store that could not commit, and what named nothing that was known then.
func (s *Scheduler) events(ctx context.Context, run *ledger.JobRun) error {
	if err := s.Store.RenewEvents(ctx); err != nil {
		return err
	}
	for last := int64(0); ctx.Err() == nil; {
		kept, err := s.Store.KeptEvents(ctx, last, lookupBatch)
		if err != nil || len(kept) == 0 {
			return err
		}
		for _, e := range kept {
			last = e.ID
			before, after, err := s.weigh(ctx, e)
			if err != nil {
				run.Problems = append(run.Problems, fmt.Sprintf("event %s of rail %s: %v", e.EventID, e.Rail, err))
				continue
			}
			count(run, before, after, nil)
		}
	}
	return ctx.Err()
}

package web

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"holdfast/store"
	"holdfast/store/ledger"
	"holdfast/views"
)

// listed is how many operations the pages of what waits show. Who has more
// waiting works from the top.
const listed = 200

// waitingIn reads the operations in some statuses, oldest first, as rows.
func (s *Server) waitingIn(ctx context.Context, p ledger.PersonRecord, statuses ...ledger.Status) ([]views.Need, error) {
	found, err := s.Store.Operations(ctx, p.TenantID, store.Filter{Statuses: statuses, Limit: listed, OldestFirst: true})
	if err != nil {
		return nil, err
	}
	var needs []views.Need
	for _, o := range found.Items {
		n, err := s.need(ctx, p, o)
		if err != nil {
			return nil, err
		}
		needs = append(needs, n)
	}
	return needs, nil
}

// need is the row of one operation: why it is here, and since when.
func (s *Server) need(ctx context.Context, p ledger.PersonRecord, o ledger.Operation) (views.Need, error) {
	rail, _ := s.Store.Rulebook(p.TenantID).Route(o)
	var attempts []ledger.Attempt
	if o.Status == ledger.UnknownHold && o.Attempts > 0 {
		all, err := s.Store.Attempts(ctx, p.TenantID, o.OperationID)
		if err != nil {
			return views.Need{}, err
		}
		attempts = all
	}
	n := views.Need{Operation: s.veil(p, o), Since: o.CreatedAt, Sentence: whyHere(o, attempts, rail, s.Store.Now())}
	if o.UnknownSince > 0 {
		n.Since = o.UnknownSince
	}
	if o.Status == ledger.AwaitingApproval {
		n.Until = o.Asked.ExpiresAt
	}
	known, err := s.Store.RecipientKnown(ctx, o)
	if !known {
		n.Flags = append(n.Flags, "new recipient")
	}
	return n, err
}

func whyHere(o ledger.Operation, attempts []ledger.Attempt, rail ledger.Rail, now int64) string {
	switch {
	case o.Status == ledger.AwaitingApproval && o.PolicyRow == "":
		return "No rule fits it, so people are asked."
	case o.Status == ledger.AwaitingApproval:
		return fmt.Sprintf("Rule “%s” asks for people.", o.PolicyRow)
	case o.Status == ledger.UnknownHold:
		return views.HoldReason(o, attempts) + "." + keyLeft(o, rail, now)
	case o.Looks == 1:
		return "The provider has not shown whether it happened; asked once so far." + keyLeft(o, rail, now)
	}
	return fmt.Sprintf("The provider has not shown whether it happened; asked %d times so far.", o.Looks) + keyLeft(o, rail, now)
}

func keyLeft(o ledger.Operation, rail ledger.Rail, now int64) string {
	if until := keyUntil(o, rail, now); o.Attempts > 0 && until > now {
		return " Key good for " + views.Age(until-now) + " more."
	}
	return ""
}

// keyUntil is how long a same-key send is safe; zero where the rail promises
// nothing for this key, or recognises repeats in another way than when it was
// sent. Of what was not sent yet, it is counted from now; of what
// may have been sent before a restore, nobody knows since when.
func keyUntil(o ledger.Operation, rail ledger.Rail, now int64) int64 {
	if o.Attempts == 0 && !o.Quarantined {
		o = asIfSent(o, rail, now)
	}
	if recognised, _, _ := rail.Recognises(o); !recognised {
		return 0
	}
	return rail.ResendUntil(o)
}

// changedSince reports whether the rail would recognise a repeat of what it is
// sent now, but not of what this operation sent.
func changedSince(o ledger.Operation, rail ledger.Rail, now int64) bool {
	recognised, _, _ := rail.Recognises(asIfSent(o, rail, now))
	return recognised && o.FirstMarkAt > 0 && keyUntil(o, rail, now) == 0
}

func asIfSent(o ledger.Operation, rail ledger.Rail, now int64) ledger.Operation {
	o.RailAddress, o.RailAccount = rail.Address, rail.Account
	o.FirstMarkAt, o.RecognisedBy = now, rail.Dedupe.Recognition()
	return o
}

// urgent sorts rows by the money at stake and how soon it gets worse. Amounts of
// different currencies are weighed alike here, which orders a list and says nothing.
func urgent(needs []views.Need, money ledger.Currencies, now int64) {
	weight := func(n views.Need) float64 {
		amount, currency, until := n.Operation.Terms.Amount, n.Operation.Terms.Currency, n.Until
		if n.Refund != nil {
			amount, currency, until = n.Refund.Open, n.Refund.Currency, n.Refund.DueAt
		}
		digits, _ := money.Digits(currency)
		hours := 24.0 // what has no end gets worse within a day
		if until > 0 {
			hours = math.Max(time.Duration(until-now).Hours()*1e6, 0)
		}
		return (1 + float64(amount)/math.Pow10(digits)) / (1 + hours)
	}
	slices.SortStableFunc(needs, func(a, b views.Need) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.Since, b.Since))
	})
}

// forMe splits rows into what this person can decide and what waits for others.
func (s *Server) forMe(ctx context.Context, p ledger.PersonRecord, needs []views.Need) (mine, others []views.Need, err error) {
	people, err := s.countPeople(ctx, p.TenantID)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range needs {
		var given []ledger.Approval
		if n.Operation.Asked.Approvals > 1 {
			if given, err = s.Store.Approvals(ctx, p.TenantID, n.Operation.OperationID); err != nil {
				return nil, nil, err
			}
		}
		rail, _ := s.Store.Rulebook(p.TenantID).Route(n.Operation)
		all := decisions(n.Operation, p, people, rail, given, s.Store.Now())
		if canSettle(all) {
			mine = append(mine, n)
		} else {
			others = append(others, n)
		}
	}
	return mine, others, nil
}

// canSettle leaves out saying no, and taking back what one said: whoever may only
// do that is not whom it waits for.
func canSettle(all []views.Decision) bool {
	return slices.ContainsFunc(all, func(d views.Decision) bool {
		return d.Allowed && d.Act != "reject" && d.Act != "ask-changes" && d.Act != "take-back"
	})
}

// countPeople is how many enabled people a tenant has: four eyes ask.
func (s *Server) countPeople(ctx context.Context, tenant string) (int, error) {
	people, err := s.Store.People(ctx, tenant)
	n := 0
	for _, p := range people {
		if p.DisabledAt == 0 {
			n++
		}
	}
	return n, err
}

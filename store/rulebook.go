package store

import (
	"context"
	"fmt"

	"holdfast/store/ledger"
)

// SetRulebooks puts rules in force, one set a tenant, and keeps every policy and
// action type that was ever in force, by hash: an operation names the ones it
// was judged under.
func (s *Store) SetRulebooks(ctx context.Context, rules map[string]*ledger.Rulebook) error {
	err := s.change(ctx, func(t *tx) error {
		for tenant, r := range rules {
			if err := t.keepRules(tenant, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.rules.Store(&rules)
	return nil
}

func (t *tx) keepRules(tenant string, r *ledger.Rulebook) error {
	if err := t.addTenant(tenant); err != nil {
		return err
	}
	const keep = `
		insert into versions (tenant_id, kind, name, hash, body, first_at) values ($1, $2, $3, $4, $5, $6)
		on conflict (tenant_id, kind, name, hash) do nothing`
	if err := t.exec(keep, tenant, "policy", "policy", r.Policy.Version, text(r.Policy.Rows), t.now); err != nil {
		return fmt.Errorf("keeping the policy of %s: %w", tenant, err)
	}
	for name, a := range r.Actions {
		if err := t.exec(keep, tenant, "action_type", name, a.Version, string(a.Body), t.now); err != nil {
			return fmt.Errorf("keeping action type %s of %s: %w", name, tenant, err)
		}
	}
	return nil
}

func (t *tx) addTenant(tenant string) error {
	return t.exec(`insert into tenants (tenant_id, created_at) values ($1, $2) on conflict (tenant_id) do nothing`, tenant, t.now)
}

// Rulebook is the one in force for a tenant. A tenant without any has no action
// types and no rails.
func (s *Store) Rulebook(tenant string) *ledger.Rulebook {
	if r := (*s.rules.Load())[tenant]; r != nil {
		return r
	}
	return &ledger.Rulebook{}
}

// Tenants lists the tenants that have rules.
func (s *Store) Tenants() []string {
	var names []string
	for t := range *s.rules.Load() {
		names = append(names, t)
	}
	return names
}

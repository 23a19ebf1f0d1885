package dispatch

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/store/ledger"
)

func (b *configBuilder) policy(at string, text tenantText, t *Tenant) {
	var rows []ledger.PolicyRow
	for i, row := range text.Policy {
		key := fmt.Sprintf("%spolicy[%d]", at, i)
		rows = append(rows, b.row(key, row, text, t.Rulebook.Currencies))
	}
	policy, err := ledger.NewPolicy(rows)
	for _, e := range each(err) {
		b.policyFault(at, rows, e)
	}
	policy.Currencies = t.Rulebook.Currencies
	t.Rulebook.Policy = policy
}

// policyFault finds the row and the key that a policy's error is about.
func (b *configBuilder) policyFault(at string, rows []ledger.PolicyRow, err error) {
	message, key := err.Error(), at+"policy"
	for i, row := range rows {
		for _, place := range []string{fmt.Sprintf("policy row %d (%q): ", i+1, row.Name), fmt.Sprintf("policy row %d: ", i+1)} {
			rest, ok := strings.CutPrefix(message, place)
			if !ok {
				continue
			}
			key = fmt.Sprintf("%s[%d]", key, i)
			inside, rest := b.keyed(key, rest)
			if inside == key {
				inside, rest = b.keyed(key+".when", rest)
			}
			if inside != key+".when" {
				key = inside
			}
			b.foreign(key, rest)
			return
		}
	}
	b.foreign(key, message)
}

func (b *configBuilder) row(key string, row rowText, text tenantText, money ledger.Currencies) ledger.PolicyRow {
	p := ledger.PolicyRow{
		Name: row.Name, Then: row.Then, Of: row.Of,
		StepUp: row.StepUp, ReasonRequired: row.ReasonRequired, Expires: b.length(key+".expires", row.Expires, 0, 0),
	}
	if row.Approvals != nil {
		p.Approvals = b.count(key+".approvals", row.Approvals, 1)
	}
	if row.Bulk != nil && row.Bulk.UpTo == nil {
		b.add(key+".bulk.up_to", "is missing; write it in minor units")
	} else if row.Bulk != nil {
		p.Bulk = &ledger.Bulk{UpTo: *row.Bulk.UpTo}
	}
	if row.When == nil {
		// A row that fits everything is too much to be said by leaving a line out.
		b.add(key+".when", "is missing; write when: {} for a row that fits everything")
		return p
	}
	w := *row.When
	p.When = ledger.When{
		ActionType: w.ActionType, Effect: w.Effect, Rail: w.Rail, Agent: w.Agent, RunID: w.RunID,
		Recipient: w.Recipient, Currency: w.Currency, AmountOver: w.AmountOver, RecipientNew: w.RecipientNew, Hours: w.Hours,
	}
	key += ".when"
	if s := w.SpentOver; s != nil {
		p.When.SpentOver = &ledger.SpentOver{Currency: s.Currency, Per: s.Per, Window: b.length(key+".spent_over.window", s.Window, 0, 0)}
		if s.Amount == nil {
			b.add(key+".spent_over.amount", "is missing; write it in minor units")
		} else {
			p.When.SpentOver.Amount = *s.Amount
		}
		b.knownCurrencies(key+".spent_over.currency", []string{s.Currency}, money)
	}
	b.knownCurrencies(key+".currency", w.Currency, money)
	b.knownNames(key+".action_type", "action type", w.ActionType, sortedKeys(text.ActionTypes))
	b.knownNames(key+".rail", "rail", w.Rail, sortedKeys(text.Rails))
	b.knownNames(key+".effect", "effect", w.Effect, effects(text.ActionTypes))
	return p
}

// effects are what the action types change; one without an effect has its own.
func effects(actions map[string]actionText) []string {
	var all []string
	for name, a := range actions {
		if a.Effect != "" {
			name = a.Effect
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// knownNames refuses a name that nothing has: a row for it would never fit, and
// what it should have stopped would go on to the next.
func (b *configBuilder) knownNames(key, what string, names, known []string) {
	for _, name := range names {
		if name != "" && !slices.Contains(known, name) {
			b.unknown(key, what, name, known)
		}
	}
}

func (b *configBuilder) knownCurrencies(key string, codes []string, money ledger.Currencies) {
	for _, code := range codes {
		if _, known := money.Digits(strings.ToUpper(code)); !known && code != "" {
			b.foreign(key, fmt.Sprintf("%q is not in ISO 4217; correct it, or add it to currencies", code))
		}
	}
}
